# SPDX-License-Identifier: Apache-2.0
"""The object in which the HEAL SDK's Python runtime finds operations."""
from __future__ import annotations

from typing import Any, List, Optional

from ._arrays import as_torch, is_torch
from ._calls import FUNCTIONS, Tensor
from ._device import AnyDevice, device_of
from ._errors import ArgumentError
from ._handle import Uncopied
from ._operations import Operations
from ._queue import Queue


class Engine(Uncopied):
    """All operations by their names in transcripts, with positional arguments: the SDK's
    device_t_eng.

        engine._modmul_ttt(a, b, p, out)     # returns out

    host_to_device takes arrays of NumPy and tensors of PyTorch. device_to_host returns the kind
    that was uploaded last. Memory is freed when the last tensor that views it is dropped. All
    calls use engine.queue.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._uploads_torch = False

    def __repr__(self) -> str:
        return "<healcl.Engine on %s>" % self.queue.device.selector

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" and name[1:] in FUNCTIONS:
            return getattr(self, name[1:])
        function = getattr(self.queue.ops, name)
        setattr(self, name, function)
        return function

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *dir(self.queue.ops)})

    def host_to_device(self, host: Any, dtype: Any = None) -> Tensor:
        """Creates a tensor with a copy of the elements. dtype: another dtype that holds them."""
        tensor = self.queue.array(host, dtype)
        self._uploads_torch = is_torch(host)
        return tensor

    def device_to_host(self, tensor: Tensor, unused: None = None) -> Any:
        """Waits for all calls, and copies the elements to an array or a tensor of PyTorch."""
        array = _tensor(tensor).read()
        return as_torch(array) if self._uploads_torch else array

    def free_device_tensor(self, tensor: Tensor) -> None:
        """Frees a tensor, even if something still refers to it."""
        _tensor(tensor).release()


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError("a tensor must come from host_to_device() or an operation, not %s" %
                            type(value).__name__)
    return value


def heal_engine(device: AnyDevice = None, *, operations: Optional[Operations] = None,
                expand: Optional[str] = None) -> Engine:
    """Creates an engine for the HEAL SDK's runtime (its device_t_eng) on a device.

    device      a device, or an argument of open()
    operations  operations to add to the built-in ones
    expand      the order of expand's integers, as for Device.queue()
    """
    return Engine(device_of(device).queue(operations=operations, expand=expand))
