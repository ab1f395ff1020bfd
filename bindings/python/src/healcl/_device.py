# SPDX-License-Identifier: Apache-2.0
"""Devices."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Union

from ._errors import ArgumentError, c_string, call
from ._handle import Closed, Handle, Watch, use_opencl
from ._native import ffi, lib
from ._rows import row

if TYPE_CHECKING:
    from ._operations import Operations
    from ._queue import Queue

_TYPES = {lib.HEALCL_DEVICE_OTHER: "other", lib.HEALCL_DEVICE_CPU: "cpu",
          lib.HEALCL_DEVICE_GPU: "gpu", lib.HEALCL_DEVICE_ACCELERATOR: "acc"}


@dataclass(frozen=True)
class DeviceInfo:
    """A device's description of itself.

    selector       its name for open(), such as "0:1"
    type           "cpu", "gpu", "acc" or "other"
    memory_bytes   only a hint: drivers' values are unreliable
    shares_memory  whether device and host share memory
    unusable       why it cannot be used; "" if it can
    """

    selector: str
    name: str
    vendor: str
    platform: str
    driver: str
    version: str
    type: str
    compute_units: int
    memory_bytes: int
    shares_memory: bool
    unusable: str


def _info(struct: Any) -> DeviceInfo:
    return DeviceInfo(**{**row(struct), "type": _TYPES[struct.type]})


class Device(Closed):
    """An OpenCL device, from open(); or healcl.reference, plain C on the host.

    Several threads may use one device. Runs of transcripts then take turns. Sessions and queues
    work at the same time, as far as the driver can.
    """

    def __init__(self, handle: Optional[Handle]) -> None:
        self._handle = handle
        self._info = None if handle is None else _info(lib.healcl_device_describe(handle.pointer))

    def _call(self, function: Callable[..., int], *arguments: Any,
              operations: Any = ffi.NULL) -> None:
        """Calls a library function whose first argument is the device, NULL for the reference."""
        if self._handle is None:
            call(function, ffi.NULL, *arguments, operations=operations)
            return
        with self._handle.lock:
            call(function, self._handle.get(), *arguments, operations=operations)

    @property
    def info(self) -> Optional[DeviceInfo]:
        """The device's description of itself; None for the reference."""
        return self._info

    @property
    def selector(self) -> str:
        """Its name for open(): "0:1", or "reference"."""
        return self._info.selector if self._info else "reference"

    def queue(self, *, memory_limit: int = 0, work_limit: int = 0,
              operations: Optional[Operations] = None, expand: Optional[str] = None,
              synchronous: bool = False) -> Queue:
        """Opens a queue of calls, with its own tensors.

        memory_limit  the most bytes of all tensors; 0: no limit
        work_limit    the most elements that one operation visits; 0: 2^42
        operations    operations to add to the built-in ones
        expand        the order of expand's integers: "spec" for (axis, repeats), "sdk" for
                      (repeats, axis); None: the order that is valid, else "spec"
        synchronous   each call waits for its end, and raises errors in data itself
        """
        from ._calls import QueueHandle
        from ._operations import plan_options
        from ._queue import Queue
        queue, watch = ffi.new("struct healcl_queue **"), Watch()
        options = plan_options(memory_limit, work_limit, operations, expand)
        self._call(lib.healcl_queue_open_with, ffi.new("struct healcl_queue_options *", {
            "plan": options, "synchronous": bool(synchronous), "cancelled_context": watch.context,
            "cancelled": ffi.addressof(lib, "native_cancelled")}), queue)
        return Queue(QueueHandle(queue[0], self, operations, watch))

    def close(self) -> None:
        """Closes the handle. Sessions and queues of the device stay open."""
        if self._handle is not None:
            self._handle.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return "reference" if self._handle is None else super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        if self._handle is None or self._info is None:
            return "healcl.reference"
        return "<healcl.Device %s: %r on %r%s>" % (
            self.selector, self._info.name, self._info.platform,
            "" if self._handle.pointer else ", closed")


#: The host reference in plain C: exact, slow, and always available.
reference = Device(None)

#: A device, or what open() takes.
AnyDevice = Union[Device, str, None]


def open(selector: Optional[str] = None, *, fallback: bool = True,
         package: Union[str, os.PathLike[str], None] = None) -> Device:
    """Opens an OpenCL device.

    selector  "0:1", a part of a platform's or device's name ("pocl"), "cpu", "gpu" or "acc", or
              "reference"; None: HEALCL_DEVICE in the environment, else the best device
    fallback  whether the host runs what the device cannot
    package   a package that `healcl compile` has made for the device
    """
    if (selector or os.environ.get("HEALCL_DEVICE")) == "reference":
        if package is not None:
            raise ArgumentError("the reference does not take a package")
        return reference
    use_opencl()
    strings = [c_string(value) if value is not None else ffi.NULL
               for value in (selector, package)]
    options = ffi.new("struct healcl_device_options *",
                      {"selector": strings[0], "package": strings[1],
                       "no_fallback": not fallback})
    device = ffi.new("struct healcl_device **")
    call(lib.healcl_device_open_with, options, device)
    return Device(Handle("device", device[0], lib.healcl_device_close, on_device=True))


def device_of(device: AnyDevice) -> Device:
    """Returns a device, or opens one, which closes when nothing refers to it any more."""
    if device is None or isinstance(device, str):
        return open(device)
    if not isinstance(device, Device):
        raise ArgumentError("a device must come from healcl.open(), or be its argument, not %s" %
                            type(device).__name__)
    return device


def devices() -> List[DeviceInfo]:
    """Lists all devices of all platforms, usable or not, without opening them."""
    use_opencl()
    infos = ffi.new("struct healcl_device_info **")
    count = ffi.new("size_t *")
    call(lib.healcl_device_list, infos, count)
    try:
        return [_info(infos[0][i]) for i in range(count[0])]
    finally:
        lib.healcl_device_list_free(infos[0])
