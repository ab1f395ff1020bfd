# SPDX-License-Identifier: Apache-2.0
"""Calls with keywords, and help texts, made from the library's table of operations."""
from __future__ import annotations

import inspect
import keyword
import textwrap
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ._errors import ArgumentError
from ._native import lib
from ._operations import Operation, Parameter

_WORDS = {
    lib.HEALCL_PARAMETER_TENSOR: "tensor", lib.HEALCL_PARAMETER_OUT: "tensor to write",
    lib.HEALCL_PARAMETER_INDICES: "tensor of indices, int32 or int64",
    lib.HEALCL_PARAMETER_SCALAR: "integer in [-2^63, 2^63)",
    lib.HEALCL_PARAMETER_MODULUS: "integer in [1, 2^63)", lib.HEALCL_PARAMETER_INT: "integer",
    lib.HEALCL_PARAMETER_FLAG: "True or False",
    lib.HEALCL_PARAMETER_PERM: "tensor of 0 to n - 1 in some order, int32 or int64",
    lib.HEALCL_PARAMETER_HINT: "tensor or integer; it is not used",
    lib.HEALCL_PARAMETER_SHAPE: "integers", lib.HEALCL_PARAMETER_DTYPE: "int8, int32 or int64",
    lib.HEALCL_PARAMETER_INDEX: "integers, slices and an Ellipsis",
    lib.HEALCL_PARAMETER_NOTHING: "None"}
_MORE_WORDS = {"out": "tensor of the result's shape; None: a new one",
               "skip_perm": "True or False; None: whether perm is None",
               "apply_perm": "True or False; None: whether perm is not None"}
_TABLES = {"ntt": ("q", "psi"), "intt": ("q", "ipsi", "n_inv")}  # which a ring has

# Arguments by name, and the elements of what is returned; of a tuple, its shape. A list becomes a
# tensor, or its first element where a form takes an integer. A text stands as it is.
_EXAMPLES: Dict[str, Tuple[Dict[str, Any], Any]] = {
    "empty": ({"shape": (2, 3), "dtype": "np.int32"}, (2, 3)),
    "zeros": ({"shape": 2, "dtype": "np.int64"}, [0, 0]),
    "set_const_val": ({"a": [1, 2], "v": 5}, [5, 5]),
    "reshape": ({"a": [5, 6], "shape": (2, -1)}, [[5], [6]]),
    "flatten": ({"a": [[5], [6]], "first": 0, "last": 1}, [5, 6]),
    "squeeze": ({"a": [[5, 6]], "axis": 0}, [5, 6]),
    "unsqueeze": ({"a": [5, 6], "axis": 0}, [[5, 6]]),
    "expand": ({"a": [[5, 6]], "axis": 0, "repeats": 2}, [[5, 6], [5, 6]]),
    "moveaxis": ({"a": [[5, 6]], "from_": 0, "to": 1}, [[5], [6]]),
    "new_reference": ({"a": [5, 6]}, [5, 6]),
    "get_slice": ({"a": [[5, 6], [7, 8]], "index": "(1, slice(None))"}, [7, 8]),
    "contiguous": ({"a": [5, 6]}, [5, 6]),
    "modmul": ({"a": [5, 6], "b": [4, 4], "p": [7, 7]}, [6, 3]),
    "modsum": ({"a": [5, 6], "b": [4, 4], "p": [7, 7]}, [2, 3]),
    "mod": ({"a": [9, 9], "b": [7, 7]}, [2, 2]),
    "modneg": ({"a": [5, 9], "p": [7, 7]}, [2, 5]),
    "abs": ({"a": [-5, 6]}, [5, 6]),
    "axis_modsum": ({"a": [[5, 6], [4, 8]], "axis": 0, "q": [7, 11]}, [2, 3]),
    "modmul_axis_sum": ({"a": [[[[5, 6]], [[4, 8]]]], "b": [[[1, 1]], [[2, 2]]], "q": [7]},
                        [[[6, 1]]]),
    "ntt": ({"a": [[[[0, 1, 0, 0]]]], "ring": "fhe.Ring(4, [17])"}, [[[[2, 15, 8, 9]]]]),
    "intt": ({"a": [[[[2, 15, 8, 9]]]], "ring": "fhe.Ring(4, [17])"}, [[[[0, 1, 0, 0]]]]),
    "apply_g_decomp": ({"a": [19, 32], "g_exp": 2, "base_bits": 4}, [[3, 1], [0, 2]]),
    "apply_g_decomp_relative_to_full_q": (
        {"a": [[[2], [3]]], "q": [5, 7], "g_exp": 2, "base_bits": 4}, [[[1], [1]]]),
    "take_along_axis": ({"a": [[5, 6, 7]], "idx": [[2, 0]], "axis": 1}, [[7, 5]]),
    "permute": ({"a": [[5, 6], [7, 8]], "perms": [[1, 0], [0, 1]], "elementwise_axis": 0,
                 "perm_axis": 1}, [[6, 5], [7, 8]]),
    "pad_single_axis": ({"a": [5, 6], "pad": 1, "axis": 0}, [5, 6, 0]),
    "repeat_interleave": ({"a": [5, 6], "repeats": 2, "axis": 0}, [5, 5, 6, 6]),
}


class SignatureError(ArgumentError, TypeError):
    """An argument is missing, is given twice, or does not belong to the operation."""


def _name(parameter: Parameter) -> str:
    return parameter.name + "_" * keyword.iskeyword(parameter.name)


class Signature:
    """How an operation is called with keywords: with the arguments of its longest form, or with a
    ring instead of tables.

    The default is None if the form takes it, False for a flag, and -1 for an axis that another form
    lacks. A permutation that is given is applied. Built-in operations can create their `out`.
    """

    def __init__(self, operation: Operation) -> None:
        forms, builtin = operation.forms, operation.manifest is None
        form = max(forms, key=len)
        self._operation = operation
        self._names = [_name(parameter) for parameter in form]
        self._tables = _TABLES.get(operation.canonical, ())
        first: Dict[str, Any] = {}
        rest: Dict[str, Any] = {"ring": None} if self._tables else {}
        for parameter, name in zip(form, self._names):
            if builtin and name == "out" or parameter.optional or name in self._tables:
                rest[name] = None
            elif parameter.kind == lib.HEALCL_PARAMETER_FLAG:
                rest[name] = None if name in _MORE_WORDS else False
            elif name == "axis" and not all(parameter in each for each in forms):
                rest[name] = -1
            else:
                first[name] = inspect.Parameter.empty
        self._required, self._defaults = first.keys(), rest
        self._positional = [*first, *(name for name in ("ring", "out") if name in rest)]
        if "out" in rest and any(
                len(each) == len(self._positional) and each[-1].name != "out" for each in forms):
            self._positional.remove("out")  # in that form it is elsewhere
        #: The number of arguments by position of a call that lacks only out, the last one; or None.
        self.without_out = len(form) - 1 if self._positional == self._names and \
            self._names[-1] == "out" else None
        kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.parameters = [
            inspect.Parameter(name, kinds[name in self._positional], default=default)
            for name, default in sorted({**first, **rest}.items(), key=self._place)]

    def _place(self, item: Tuple[str, Any]) -> int:
        return (self._positional + [item[0]]).index(item[0])

    def bind(self, arguments: Tuple[Any, ...], keywords: Mapping[str, Any],
             tables_of: Callable[[Any], Mapping[str, Any]]) -> List[Any]:
        """Returns the arguments of the longest form. Arguments by position that fit another form
        are returned unchanged. tables_of: returns a ring's tensors by name."""
        if not keywords and any(len(arguments) == len(form) for form in self._operation.forms):
            return list(arguments)
        given = dict(zip(self._positional, arguments), **keywords)
        values = {**self._defaults, **given}
        if (len(given) < len(arguments) + len(keywords) or len(values) > len(self.parameters) or
                not self._required <= given.keys()):
            self._refuse(arguments, keywords)
        if self._tables:
            self._add_tables(values, tables_of)
        for flag, default in ("skip_perm", True), ("apply_perm", False):
            if values.get(flag, default) is None:
                values[flag] = (values["perm"] is None) == default
        return [values[name] for name in self._names]

    def _add_tables(self, values: Dict[str, Any],
                    tables_of: Callable[[Any], Mapping[str, Any]]) -> None:
        given = [name for name in self._tables if values[name] is not None]
        if values["ring"] is None:
            missing = [name for name in self._tables if name not in given]
            if missing:
                raise self._error("missing a ring, or %s" % " and ".join(missing))
            return
        if given:
            raise self._error("a ring and %s exclude each other" % " and ".join(given))
        from .fhe._ring import Ring  # whose package imports this
        if not isinstance(values["ring"], Ring):
            raise self._error("a ring must be a healcl.fhe.Ring, not %s" %
                              type(values["ring"]).__name__)
        tables = tables_of(values["ring"])
        values.update((name, tables[name]) for name in self._tables)
        if values["perm"] is None and "skip_perm" not in values:
            values["perm"] = tables["perm"]  # intt has no form without

    def _refuse(self, arguments: Tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        try:
            inspect.Signature(self.parameters).bind(*arguments, **keywords)
        except TypeError as error:
            raise self._error(str(error)) from None

    def _error(self, text: str) -> SignatureError:
        name = self._operation.name
        return SignatureError("%s: %s; it takes %s" % (
            name, text, inspect.Signature(self.parameters)), operation=name)

    def documentation(self) -> str:
        """The text of help()."""
        operation = self._operation
        meaning = operation.meaning[:1].upper() + operation.meaning[1:] + "."
        width = max(len(each.name) for each in self.parameters) + 2
        lines = [*textwrap.wrap(meaning, 92), ""]
        lines += [each.name.ljust(width) + self._words(each.name) for each in self.parameters]
        lines += ["", "Values: any of %s." % operation.dtypes]
        example = self._example()
        lines += ["", *example] if example else []
        lines += ["", "By position, as in transcripts:", ""]
        for names in dict.fromkeys(tuple(each.name for each in form) for form in operation.forms):
            lines += textwrap.wrap("%s(%s)" % (operation.name, ", ".join(names)), 92,
                                   initial_indent="    ", subsequent_indent="        ")
        if operation.manifest:
            lines += ["", "From the manifest %s." % operation.manifest]
        return "\n".join(lines)

    def _words(self, name: str) -> str:
        if name == "ring":
            return "healcl.fhe.Ring, instead of %s" % " and ".join(self._tables)
        if name in _MORE_WORDS and name in self._defaults:
            return _MORE_WORDS[name]
        kinds = dict.fromkeys(_WORDS[parameter.kind] for form in self._operation.forms
                              for parameter in form if _name(parameter) == name)
        return " or ".join(kinds)

    def _example(self) -> List[str]:
        if self._operation.canonical not in _EXAMPLES or self._operation.manifest:
            return []
        arguments, result = _EXAMPLES[self._operation.canonical]
        kinds = {_name(each): each.kind for each in self._operation.forms[0]}
        texts: List[str] = []
        for name, value in arguments.items():
            if isinstance(value, list):
                integer = kinds[name] in (lib.HEALCL_PARAMETER_SCALAR, lib.HEALCL_PARAMETER_MODULUS)
                value = str(value[0]) if integer else "q.array(%s)" % value
            texts.append("%s=%s" % (name, value) if texts else str(value))
        tail = ".shape" if isinstance(result, tuple) else ".read().tolist()"
        return [">>> q.ops.%s(%s)%s" % (self._operation.name, ", ".join(texts), tail), str(result)]
