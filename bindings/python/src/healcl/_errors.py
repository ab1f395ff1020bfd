# SPDX-License-Identifier: Apache-2.0
"""Errors, and calls of the library that raise them."""
from __future__ import annotations

import difflib
import operator
import os
import time
from threading import get_ident
from typing import Any, Callable, Iterable, List, Optional, Union

from ._native import ffi, lib


class Error(Exception):
    """A refusal or failure. The message is one line, and names entry, operation and argument where
    they apply.

    entry      the transcript's entry, or the queue's call, counted from 0; or None
    operation  the operation's name, or None
    argument   which of its arguments, counted from 0; or None
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
    """A value, an axis, a count or a kind of argument that is not taken."""


class NameUnknownError(ArgumentError, KeyError):
    """A transcript has no input or result of this name or number."""


class ShapeError(Error, ValueError):
    """A shape that is not taken."""


class DtypeError(Error, TypeError):
    """A dtype that is not taken: tensors are int8, int32 or int64."""


class DataError(Error, ValueError):
    """An error in the elements: an index out of range, a modulus of 0."""


class OperationError(Error, AttributeError):
    """There is no such operation."""


class LimitError(Error, MemoryError):
    """A limit of memory or work would be passed."""


class FormatError(Error, ValueError):
    """A file is not what it should be."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class StateError(Error, RuntimeError):
    """A call at the wrong time: nothing runs, a result is not there, a queue is closed."""


class DeviceError(Error, RuntimeError):
    """The device or OpenCL failed, or there is none."""


class OutOfMemoryError(Error, MemoryError):
    """The host's memory ran out."""


class DifferenceError(Error):
    """An audited step has differed from the host reference."""


class CancelledError(Error):
    """Somebody has asked for the end of the run."""


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
}


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about a name that is none: "the nearest of 75 are 'ct', 'key', 'x'"."""
    known = sorted({each if len(each) < 60 else each[:57] + "..." for each in names})
    near = ", ".join(map(repr, difflib.get_close_matches(name[:60], known, 3, 0)))
    return "the nearest of %d are %s" % (len(known), near) if len(known) > 3 else \
        "there is only %s" % near if near else "there is none"


def integer(value: Any, what: str, bits: Optional[int] = None) -> int:
    """A Python integer of whatever is one; in [0, 2^bits), where bits are given."""
    try:
        result = operator.index(value)
    except TypeError:
        raise ArgumentError("%s is an integer, not %r" % (what, value)) from None
    if bits is not None and not 0 <= result < 1 << bits:
        raise ArgumentError("%s is from 0 to 2^%d - 1, not %d" % (what, bits, result))
    return result


def text(pointer: Any) -> str:
    """A string of the library's."""
    return str(ffi.string(pointer), errors="replace")


def c_string(value: Union[str, bytes, os.PathLike[str]]) -> Any:
    """A path, or a text, for the library."""
    try:
        encoded = os.fsencode(value)
    except (TypeError, ValueError):  # such as a lone surrogate
        raise ArgumentError("%r is neither a path nor a text" % (value,)) from None
    if b"\0" in encoded:
        raise ArgumentError("embedded null byte in %r" % (value,))
    return ffi.new("char[]", encoded)


def error_of(error: Any, operations: Any = ffi.NULL) -> Error:
    """The exception for a struct healcl_error, which is cleared. operations: those of manifests, by
    which operations were numbered."""
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
    """Around calls of the library that no lock of a handle guards. Once it is shut, as the
    interpreter ends, daemon threads begin none."""

    def __init__(self) -> None:
        self.threads: List[int] = []
        self.is_shut = False

    def __enter__(self) -> None:
        self.threads.append(get_ident())

    def __exit__(self, *_: object) -> None:
        self.threads.remove(get_ident())

    def shut(self) -> None:
        """Waits for the calls of other threads: drivers free, at exit, what these use."""
        self.is_shut = True
        while set(self.threads) - {get_ident()}:
            time.sleep(0.001)


in_library = _InLibrary()


def call(function: Callable[..., int], *arguments: Any, operations: Any = ffi.NULL) -> None:
    """Calls a function of the library that takes a struct healcl_error last, and raises that."""
    error = ffi.new("struct healcl_error *")
    with in_library:
        if in_library.is_shut:
            raise StateError("the interpreter is ending")
        status = function(*arguments, error)
    if status != lib.HEALCL_OK:
        raise error_of(error, operations)
