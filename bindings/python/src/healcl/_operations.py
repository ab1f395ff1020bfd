# SPDX-License-Identifier: Apache-2.0
"""Operations of the library and of vendors' manifests."""
from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from ._arrays import DTYPES
from ._errors import ArgumentError, OperationError, c_string, call, integer, nearest, text
from ._handle import Uncopied
from ._native import ffi, lib


class Operations(Uncopied):
    """Operations and kernels of a vendor's manifests, the *.json of a folder (docs/VENDORS.md).

    They contain native code of the folder's author, and stay loaded until the process ends.
    trusted: whether manifests may name files outside of the folder, and use any compiler options.
    """

    def __init__(self, folder: Union[str, os.PathLike[str]], *, trusted: bool = False) -> None:
        pointer = ffi.new("struct healcl_operations **")
        load = lib.healcl_operations_load_trusted if trusted else lib.healcl_operations_load
        call(load, c_string(folder), pointer)
        self._pointer = pointer[0]
        self._table = _table(pointer[0])


@dataclass(frozen=True)
class Parameter:
    """kind: an enum healcl_parameter_kind. optional: whether it may be None."""

    name: str
    kind: int
    optional: bool


Form = Tuple[Parameter, ...]


def _dtypes(bits: int) -> str:
    return ", ".join(str(dtype) for number, dtype in DTYPES.items() if bits >> number & 1)


class Operation:
    """An operation under one of its names, with the forms of that name.

    canonical  its first name
    dtypes     "int32, int64; a also int8"
    """

    def __init__(self, name: str, info: Any, forms: List[Form]) -> None:
        self.name = name
        self.canonical = text(info.name)
        self.meaning = text(info.meaning)
        self.dtypes = _dtypes(info.dtypes)
        if info.other:
            self.dtypes += "; %s also %s" % (text(info.other),
                                             _dtypes(info.other_dtypes & ~info.dtypes))
        self.forms = forms
        self.manifest = text(info.manifest) if info.manifest else None
        self.function: Callable[..., Any]  # that calls it on a queue: see _calls.py
        self.bind: Callable[..., List[Any]]  # its Signature's


def _described(operations: Any) -> Iterator[Operation]:
    info = ffi.new("struct healcl_operation_info *")
    number = 0
    while lib.healcl_operation_describe(operations, number, info):
        number += 1
        names: Dict[str, List[Form]] = {}
        for form in info.forms[0:info.form_count]:
            parameters = tuple(Parameter(text(p.name), p.kind, p.optional)
                               for p in form.parameters[0:form.parameter_count])
            forms = names.setdefault(text(form.name), [])
            if parameters not in forms:
                forms.append(parameters)
        for name, forms in names.items():
            yield Operation(name, info, forms)


def _table(operations: Any) -> Dict[str, Operation]:
    return {operation.name: operation for operation in _described(operations)}


@lru_cache(maxsize=1)
def _builtin_table() -> Dict[str, Operation]:
    return _table(ffi.NULL)


def operations_by_name(operations: Optional[Operations] = None) -> Dict[str, Operation]:
    """All operations, by each of their names without a leading underscore."""
    return operations._table if operations else _builtin_table()


def find(table: Dict[str, Operation], name: str) -> Operation:
    operation = table.get(name[1:] if name.startswith("_") else name)
    if operation is None:
        raise OperationError("there is no operation '%s': %s" % (name, nearest(name, table)))
    return operation


_EXPAND = {None: lib.HEALCL_EXPAND_VALID, "spec": lib.HEALCL_EXPAND_SPECIFICATION,
           "sdk": lib.HEALCL_EXPAND_SDK}


def plan_options(memory_limit: int, work_limit: int, operations: Optional[Operations],
                 expand: Optional[str], passes: Any = ffi.NULL) -> Any:
    """A struct healcl_plan_options."""
    if not isinstance(expand, (str, type(None))) or expand not in _EXPAND:
        raise ArgumentError("expand must be 'spec', 'sdk' or None, not %r" % (expand,))
    return ffi.new("struct healcl_plan_options *",
                   {"memory_limit": integer(memory_limit, "memory_limit", 64),
                    "work_limit": integer(work_limit, "work_limit", 64), "passes": passes,
                    "operations": pointer_of(operations), "expand": _EXPAND[expand]})


def pointer_of(operations: Optional[Operations]) -> Any:
    if operations is None:
        return ffi.NULL
    if not isinstance(operations, Operations):
        raise ArgumentError("operations must be healcl.Operations(FOLDER), not %s" %
                            type(operations).__name__)
    return operations._pointer
