# SPDX-License-Identifier: Apache-2.0
"""Arrays and dtypes of NumPy, and of PyTorch if the program has imported it."""
from __future__ import annotations

import operator
import sys
from typing import Any, Dict, Iterable, Tuple, Union

import numpy as np

from ._errors import DtypeError, ShapeError
from ._native import ffi, lib

DTYPES: Dict[int, np.dtype[Any]] = {
    lib.HEALCL_INT8: np.dtype(np.int8), lib.HEALCL_INT32: np.dtype(np.int32),
    lib.HEALCL_INT64: np.dtype(np.int64)}
_NUMBERS: Dict[Any, int] = {each: number for number, dtype in DTYPES.items()
                            for each in (dtype, dtype.type)}
_ADVICE = {"b": "convert it with .astype(np.int8)",
           "u": "convert it with .astype(np.int64), if all values are below 2^63",
           "f": "convert it with .astype(np.int64), or scale it first",
           "i": "convert it with .astype(np.int64)"}


def dtype_number(dtype: Any) -> int:
    """The enum healcl_dtype of a dtype of NumPy (in any byte order) or PyTorch, or of its name."""
    try:
        return _NUMBERS[dtype]
    except (KeyError, TypeError):
        pass
    try:
        native = np.dtype(str(dtype)[6:] if str(dtype).startswith("torch.") else dtype)
    except (TypeError, ValueError):
        native = None
    number = None if native is None else _NUMBERS.get(native.newbyteorder("="))
    if number is None:
        advice = _ADVICE.get(native.kind, "") if native is not None else ""
        raise DtypeError("dtype %s is not int8, int32 or int64%s" %
                         (native or dtype, advice and ": " + advice))
    return number


def converted(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The array in another dtype that holds all its elements."""
    result = array.astype(dtype, copy=False)
    if not np.can_cast(array.dtype, dtype) and not (result == array).all():
        raise DtypeError("not all elements of the %s array fit in %s" % (array.dtype, dtype))
    return result


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def as_array(value: Any) -> np.ndarray:
    """Converts value to an array with a dtype of tensors, in any byte order. It shares memory
    with value if possible."""
    try:
        array = value.detach().cpu().numpy() if is_torch(value) else np.asarray(value)
    except ValueError as error:  # such as rows of several lengths
        raise ShapeError("not an array: %s" % error) from None
    dtype_number(array.dtype)
    return array


def as_torch(array: np.ndarray) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        raise ImportError("import torch first: healcl does not import it")
    return torch.from_numpy(array)


def shape_of(shape: Union[int, Iterable[int]]) -> Tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, Iterable)) else (shape,)
    try:
        result = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ShapeError("a shape must be an integer or a tuple of integers, not %r" %
                         (shape,)) from None
    if result and not -2**63 <= min(result) <= max(result) < 2**63:
        raise ShapeError("a size of the shape %r does not fit in 64 bits" % (result,))
    return result


def check_array(array: np.ndarray, dtype: np.dtype[Any], shape: Tuple[int, ...],
                what: str) -> None:
    """Refuses an array whose dtype, shape or order differs from the library's."""
    if array.dtype != dtype:
        raise DtypeError("%s is %s, not %s" % (what, dtype, array.dtype))
    if array.shape != shape:
        raise ShapeError("%s has the shape %s, not %s" % (what, shape, array.shape))
    if not array.flags.c_contiguous:
        raise ShapeError("%s: the array is not in C order; pass np.ascontiguousarray(array)" %
                         what)


def check_output(out: Any, dtype: np.dtype[Any], shape: Tuple[int, ...], what: str) -> np.ndarray:
    """Checks an array of the caller that will be written, and returns it."""
    array = as_array(out)
    check_array(array, dtype, shape, what)
    if not (isinstance(out, np.ndarray) or is_torch(out)) or not array.flags.writeable:
        raise ShapeError("%s: out is not a writable array" % what)
    return array


def address(array: np.ndarray) -> Any:
    """A void * to the array's elements, valid as long as the array lives."""
    return ffi.cast("void *", array.ctypes.data)
