# SPDX-License-Identifier: Apache-2.0
"""Exceptions, and calls of the library that raise them."""
from __future__ import annotations

import difflib
import operator
import os
import time
from threading import get_ident
from typing import Any, Callable, Iterable, List, Optional, Union

from ._native import ffi, lib


class Error(Exception):
    """A refusal or failure. The message is one line. It names entry, operation and argument if
    they apply.

    entry      the entry of the transcript, or the call of the queue, counted from 0; or None
    operation  the operation's name, or None
    argument   the number of the argument, counted from 0; or None
    detail     several lines, such as the log of a compiler; or None
    """

    def __init__(self, message: str, *, entry: Optional[int] = None,
                 operation: Optional[str] = None, argument: Optional[int] = None,
                 detail: Optional[str] = None) -> None:
        super().__init__(message)
        self.entry = entry
        self.operation = operation
        self.argument = argument
        self.detail = detail

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(Error, ValueError):
    """A value, an axis, a count or a kind of argument is not accepted."""


class NameUnknownError(ArgumentError, KeyError):
    """A transcript has no input or result of this name or number."""


class ShapeError(Error, ValueError):
    """A shape is not accepted."""


class DtypeError(Error, TypeError):
    """A dtype is not accepted: tensors are int8, int32 or int64."""


class DataError(Error, ValueError):
    """Elements are wrong, such as an index out of range or a modulus of 0."""


class OperationError(Error, AttributeError):
    """The operation does not exist."""


class LimitError(Error, MemoryError):
    """A limit of memory or work would be exceeded."""


class FormatError(Error, ValueError):
    """A file does not have the expected format."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class StateError(Error, RuntimeError):
    """A call comes at the wrong time: nothing runs, a result is missing, a queue is closed."""


class DeviceError(Error, RuntimeError):
    """The device or OpenCL failed, or is missing."""


class OutOfMemoryError(Error, MemoryError):
    """The host ran out of memory."""


class DifferenceError(Error):
    """An audited step differed from the host reference."""


class CancelledError(Error):
    """The run was cancelled."""


_BY_STATUS = {
    lib.HEALCL_DIFFERENT: DifferenceError,
    lib.HEALCL_DEVICE: DeviceError,
    lib.HEALCL_NO_MEMORY: OutOfMemoryError,
    lib.HEALCL_CANCELLED: CancelledError,
}
_BY_CAUSE = {
    lib.HEALCL_CAUSE_ARGUMENT: ArgumentError,
    lib.HEALCL_CAUSE_SHAPE: ShapeError,
    lib.HEALCL_CAUSE_DTYPE: DtypeError,
    lib.HEALCL_CAUSE_DATA: DataError,
    lib.HEALCL_CAUSE_OPERATION: OperationError,
    lib.HEALCL_CAUSE_LIMIT: LimitError,
    lib.HEALCL_CAUSE_FORMAT: FormatError,
    lib.HEALCL_CAUSE_FILE: FileError,
    lib.HEALCL_CAUSE_STATE: StateError,
    lib.HEALCL_CAUSE_DEVICE: DeviceError,
    lib.HEALCL_CAUSE_MEMORY: OutOfMemoryError,
    lib.HEALCL_CAUSE_UNSUPPORTED: DeviceError,
}


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: "the nearest of 75 are 'ct', 'key', 'x'"."""
    known = sorted({each if len(each) < 60 else each[:57] + "..." for each in names})
    near = ", ".join(map(repr, difflib.get_close_matches(name[:60], known, 3, 0)))
    return "the nearest of %d are %s" % (len(known), near) if len(known) > 3 else \
        "there is only %s" % near if near else "there is none"


def integer(value: Any, what: str, bits: Optional[int] = None) -> int:
    """Converts value to a Python integer. It must be in [0, 2^bits) if bits is given."""
    try:
        result = operator.index(value)
    except TypeError:
        raise ArgumentError("%s must be an integer, not %r" % (what, value)) from None
    if bits is not None and not 0 <= result < 1 << bits:
        raise ArgumentError("%s must be from 0 to 2^%d - 1, not %d" % (what, bits, result))
    return result


def text(pointer: Any) -> str:
    """Converts a string of the library."""
    return str(ffi.string(pointer), errors="replace")


def c_string(value: Union[str, bytes, os.PathLike[str]]) -> Any:
    """Converts a path or a string for the library."""
    try:
        encoded = os.fsencode(value)
    except (TypeError, ValueError):  # such as a lone surrogate
        raise ArgumentError("%r is neither a path nor a string" % (value,)) from None
    if b"\0" in encoded:
        raise ArgumentError("embedded null byte in %r" % (value,))
    return ffi.new("char[]", encoded)


def error_of(error: Any, operations: Any = ffi.NULL) -> Error:
    """Converts a struct healcl_error to an exception, and clears it. operations: the manifests'
    operations that were used, which determine the operations' numbers."""
    info = ffi.new("struct healcl_operation_info *")
    named = error.operation >= 0 and lib.healcl_operation_describe(operations, error.operation,
                                                                   info)
    exception = _BY_CAUSE.get(error.cause) or _BY_STATUS.get(error.status, Error)
    result = exception(text(error.message),
                       entry=error.entry if error.entry >= 0 else None,
                       operation=text(info.name) if named else None,
                       argument=error.argument if error.argument >= 0 else None,
                       detail=text(error.detail) if error.detail else None)
    lib.healcl_error_clear(error)
    return result


class _InLibrary:
    """Surrounds calls of the library that no handle's lock guards. When the interpreter ends, it
    is shut: then daemon threads begin no further call."""

    def __init__(self) -> None:
        self.threads: List[int] = []
        self.is_shut = False

    def __enter__(self) -> None:
        self.threads.append(get_ident())

    def __exit__(self, *_: object) -> None:
        self.threads.remove(get_ident())

    def shut(self) -> None:
        """Waits for the calls of other threads. Drivers free, at exit, what those calls use."""
        self.is_shut = True
        while set(self.threads) - {get_ident()}:
            time.sleep(0.001)


in_library = _InLibrary()


def call(function: Callable[..., int], *arguments: Any, operations: Any = ffi.NULL) -> None:
    """Calls a function of the library whose last argument is a struct healcl_error; raises it."""
    error = ffi.new("struct healcl_error *")
    with in_library:
        if in_library.is_shut:
            raise StateError("the interpreter is ending")
        status = function(*arguments, error)
    if status != lib.HEALCL_OK:
        raise error_of(error, operations)
