# SPDX-License-Identifier: Apache-2.0
"""Handles of the library: closed once, by hand, by the garbage collector or at exit, and never in a
process that was forked from theirs."""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, Optional, TypeVar

from ._errors import DeviceError, Error, StateError
from ._native import ffi

_Self = TypeVar("_Self")
_all: weakref.WeakSet[Handle] = weakref.WeakSet()
_opencl_used = False  # by this process, or by one that it was forked from
_forked = False       # from a process that has used OpenCL

_FORKED = ("this process was forked after healcl had used OpenCL, whose drivers do not survive "
           "that: start it with multiprocessing's 'spawn' or 'forkserver'")


def use_opencl() -> None:
    """To be called before the library looks for devices. Raises in a forked process."""
    global _opencl_used
    if _forked:
        raise DeviceError(_FORKED)
    _opencl_used = True


class Uncopied:
    """A handle of this process, which is neither copied nor pickled."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot copy or pickle '%s': it is a handle of this process" %
                        type(self).__name__)


class Closed(Uncopied):
    """A handle that a 'with' closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Handle(Uncopied):
    """A pointer, with a lock that who passes it to the library holds.

    what       "session": what messages call it
    close      the library's function
    cancel     what ends a call that goes on, before the handle is closed; or None
    on_device  whether it is of use only to the process that has opened the device
    keep       what lives until the handle is closed, as the library reads or writes it
    """

    __slots__ = ("pointer", "lock", "what", "on_device", "_finalizer", "_gone", "__weakref__")

    def __init__(self, what: str, pointer: Any, close: Callable[[Any], None],
                 cancel: Optional[Callable[[Any], None]] = None, on_device: bool = False,
                 keep: Any = None) -> None:
        self.what = what
        self.pointer = pointer
        self.lock = threading.RLock()
        self.on_device = on_device
        self._gone: Optional[Error] = None
        self._finalizer = weakref.finalize(self, _close, weakref.ref(self), pointer, self.lock,
                                           close, cancel, keep)
        _all.add(self)

    def get(self) -> Any:
        """The pointer, while the lock is held."""
        if not self.pointer:
            raise self.gone()
        return self.pointer

    def gone(self) -> Error:
        return self._gone or StateError("the %s is closed" % self.what)

    def close(self) -> None:
        self._finalizer()

    @property
    def is_of_process(self) -> bool:
        """Whether it is of no use in a forked process."""
        return self.on_device

    def forsake(self) -> None:
        """In a forked process: the driver's threads are not there, nor the library's."""
        self._finalizer.detach()
        self.pointer = ffi.NULL
        self._gone = DeviceError(_FORKED)


def _close(handle: Any, pointer: Any, lock: threading.RLock, close: Callable[[Any], None],
           cancel: Optional[Callable[[Any], None]], keep: Any) -> None:
    if cancel:
        cancel(pointer)
    with lock:  # a call that another thread is in ends first
        alive = handle()
        if alive is not None:
            alive.pointer = ffi.NULL
        close(pointer)


def _after_fork() -> None:
    global _forked
    _forked = _opencl_used
    for handle in list(_all):
        handle.lock = threading.RLock()  # another thread of the parent may hold the old one
        if handle.is_of_process:
            handle.forsake()


os.register_at_fork(after_in_child=_after_fork)
