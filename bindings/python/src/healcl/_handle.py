# SPDX-License-Identifier: Apache-2.0
"""Handles of the library. Each is closed once: explicitly, by the garbage collector or at exit. A
forked process never closes a handle of its parent."""
from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import weakref
from typing import Any, Callable, List, Optional, Tuple, TypeVar

from ._errors import DeviceError, Error, StateError, in_library
from ._native import ffi

_Self = TypeVar("_Self")
_opencl_used = False  # by this process, or by one that it was forked from
_forked = False       # from a process that has used OpenCL

_FORKED = ("this process was forked after healcl had used OpenCL, whose drivers do not survive "
           "a fork: start it with multiprocessing's 'spawn' or 'forkserver'")


def use_opencl() -> None:
    """Must be called before the library looks for devices. Raises in a forked process."""
    global _opencl_used
    if _forked:
        raise DeviceError(_FORKED)
    _opencl_used = True


class Uncopied:
    """A handle of this process, which can be neither copied nor pickled."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot copy or pickle '%s': it is a handle of this process" %
                        type(self).__name__)


class Closed(Uncopied):
    """A handle that can be used in a 'with', which closes it."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Watch:
    """Lets Python handle signals while the library works: the context of `cancelled`."""

    def __init__(self) -> None:
        self.interrupt: Optional[BaseException] = None  # that a signal's handler has raised
        self.context = ffi.new_handle(self)

    def take(self) -> Optional[BaseException]:
        interrupt, self.interrupt = self.interrupt, None
        return interrupt


def interrupted(kind: Any, exception: BaseException, traceback: Any) -> bool:
    ffi.from_handle(traceback.tb_frame.f_locals["context"]).interrupt = exception
    return True


def python_cancelled(context: Any) -> bool:
    """The library calls this regularly, so that Python runs the handlers of pending signals."""
    return in_library.is_shut or ffi.from_handle(context).interrupt is not None


ffi.def_extern(onerror=interrupted)(python_cancelled)


class Handle(Uncopied):
    """A pointer, with a lock that every caller of the library holds.

    what       its name in messages, such as "session"
    close      the library's function that closes it
    cancel     the library's function that ends a running call, and accepts NULL; or None
    on_device  whether only the process that opened the device can use it
    keep       an object that the library reads or writes until the handle is closed
    """

    __slots__ = ("pointer", "lock", "what", "on_device", "_close", "_cancel", "_keep", "_gone",
                 "__weakref__")

    def __init__(self, what: str, pointer: Any, close: Callable[[Any], None],
                 cancel: Optional[Callable[[Any], None]] = None, on_device: bool = False,
                 keep: Any = None) -> None:
        self.what = what
        self.pointer = pointer
        self.lock = threading.RLock()
        self.on_device = on_device
        self._gone: Optional[Error] = None
        self._cancel, self._keep = cancel, keep
        self._close = close
        _close_left()
        _all[id(self)] = self

    def get(self) -> Any:
        """Returns the pointer. The caller holds the lock."""
        if not self.pointer:
            raise self.gone()
        return self.pointer

    def gone(self) -> Error:
        return self._gone or StateError("the %s is closed" % self.what)

    def unlocked(self, function: Callable[[Any], Any]) -> Any:
        """Calls a function, even during other calls. It accepts NULL, and returns at once."""
        with _unlocked:
            return function(self.pointer)

    def cancel(self) -> None:
        if self._cancel:
            self.unlocked(self._cancel)

    def close(self) -> None:
        with _unlocked:
            pointer, self.pointer = self.pointer, ffi.NULL
        if not pointer:
            return
        with in_library:
            if self._cancel:
                self._cancel(pointer)
            if self.on_device and isinstance(sys.exc_info()[1], KeyboardInterrupt):
                _left.append((self, pointer))
                return
            with self.lock:  # a call that another thread is in ends first
                try:
                    while not self.is_settled(pointer):
                        pass  # Python looks for signals here
                except KeyboardInterrupt:
                    _left.append((self, pointer))
                    raise
                self._close(pointer)

    def is_settled(self, pointer: Any) -> bool:
        """Waits a moment, and returns whether the device is known to be done."""
        return True

    def __del__(self) -> None:
        if hasattr(self, "_close"):  # otherwise __init__ has not come to its end
            self.close()

    @property
    def is_of_process(self) -> bool:
        """Whether a forked process cannot use it."""
        return self.on_device

    def forsake(self, why: Error) -> None:
        """Called in a forked process, which lacks the threads of driver and library."""
        self.pointer = ffi.NULL
        self._gone = why


_all: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
_left: List[Tuple[Handle, Any]] = []  # not closed yet, because Ctrl-C does not wait for the device
_unlocked = threading.RLock()  # for a moment, while a pointer that a close may free is in use


def _handles() -> List[Handle]:
    return [handle for handle in [each() for each in _all.valuerefs()] if handle is not None]


def _close_left() -> None:
    for handle, pointer in _left[:]:
        if handle.is_settled(pointer):
            _left.remove((handle, pointer))
            handle._close(pointer)


def _after_fork() -> None:
    global _forked, _unlocked
    _forked = _opencl_used
    _unlocked = threading.RLock()
    in_library.threads.clear()
    _left.clear()
    for handle in _handles():
        was_free = handle.lock.acquire(blocking=False)
        handle.lock = threading.RLock()
        if handle.is_of_process:
            handle.forsake(DeviceError(_FORKED))
        elif not was_free:
            handle.forsake(StateError("this process was forked while another thread used the %s" %
                                      handle.what))


def _at_exit() -> None:
    """After Ctrl-C Python ends by a signal, so that no driver waits for the device. A Ctrl-C here does
    the same."""
    try:
        in_library.shut()
        ends_by_signal = issubclass(getattr(sys, "last_type", Exception), KeyboardInterrupt)
        handles = _handles()
        for handle in handles:
            if ends_by_signal and not hasattr(sys, "ps1"):
                handle.pointer = ffi.NULL
            while not handle.is_settled(handle.pointer):
                pass
        for handle in handles:
            handle.close()
        while _left and not ends_by_signal:
            _close_left()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
