# SPDX-License-Identifier: Apache-2.0
"""Refuses operators and functions of NumPy that would silently copy tensors to the host."""
from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//",
              "mod": "%", "divmod": "divmod()", "pow": "**", "lshift": "<<", "rshift": ">>",
              "and": "&", "xor": "^", "or": "|"}
_OTHERS = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()", "eq": "==", "ne": "!=",
           "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "bool": "bool()", "contains": "in"}
# HEAL's operations, by the names that Python and NumPy have.
_OPERATIONS = {"add": "modsum", "sub": "modneg and modsum", "subtract": "modneg and modsum",
               "mul": "modmul", "multiply": "modmul", "mod": "mod", "remainder": "mod",
               "neg": "modneg", "negative": "modneg", "abs": "abs", "absolute": "abs",
               "matmul": "modmul_axis_sum"}


def _refusal(tensor: object, what: str, name: str = "", instead: Optional[str] = None) -> TypeError:
    operation = _OPERATIONS.get(name)
    return TypeError("healcl.%s does not support %s: %s%s" % (
        type(tensor).__name__, what,
        "call %s on the device; " % operation if operation else "",
        instead or "np.asarray(tensor) copies to the host"))


def _refuser(what: str, name: str = "", instead: Optional[str] = None) -> Callable[..., Any]:
    def refuse(self: object, *_: object) -> Any:
        raise _refusal(self, what, name, instead)

    return refuse


class OnDevice:
    """An array that operators and functions of NumPy refuse; compared and hashed by identity."""

    __slots__ = ()

    __iter__ = _refuser("iteration", instead="tensor[i] is a view on the device; np.asarray("
                        "tensor) copies to the host")
    __int__ = _refuser("int()", instead="tensor.item() copies its one element")
    __float__ = _refuser("float()", instead="tensor.item() copies its one element")
    __reversed__ = None

    def _to_host(self) -> np.ndarray:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor on a device can only be copied to an array")
        array = self._to_host()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> Any:
        raise _refusal(self, "np." + ufunc.__name__, ufunc.__name__)

    def __array_function__(self, function: Any, _: Any, arguments: Any, __: Any) -> Any:
        if function in (np.shape, np.ndim, np.size) and len(arguments) == 1:
            return getattr(self, function.__name__)
        raise _refusal(self, "%s.%s" % (function.__module__.replace("numpy", "np"),
                                        function.__name__))


for _name, _symbol in [*_OPERATORS.items(), *_OTHERS.items()]:
    _what = _symbol if _symbol.endswith(")") else "'%s'" % _symbol
    setattr(OnDevice, "__%s__" % _name, _refuser(_what, _name))
    if _name in _OPERATORS:
        setattr(OnDevice, "__r%s__" % _name, _refuser(_what, _name))
