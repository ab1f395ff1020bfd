# SPDX-License-Identifier: Apache-2.0
"""Converts structures of the library to rows of tables."""
from __future__ import annotations

from typing import Any, Dict, List

from ._errors import text
from ._native import ffi

_skip = object()


def _value(kind: Any, value: Any) -> Any:
    if kind.kind == "primitive":
        return value
    if kind.kind == "array" and kind.item.cname == "char":
        return text(value)
    if kind.kind == "pointer" and kind.item.cname == "char":
        return text(value) if value else None
    return _skip  # lists are tables of their own


def row(struct: Any) -> Dict[str, Any]:
    """Numbers and strings by the names of their fields. Nanoseconds become seconds."""
    kind = ffi.typeof(struct)
    result = {}
    for name, field in (kind.item if kind.kind == "pointer" else kind).fields:
        value = _value(field.type, getattr(struct, name))
        if value is _skip:
            continue
        if name.endswith("nanoseconds"):
            name, value = name.replace("nanoseconds", "seconds"), value * 1e-9
        result[name] = value
    return result


def rows(pointer: Any, count: int) -> List[Dict[str, Any]]:
    return [row(pointer[i]) for i in range(count)]
