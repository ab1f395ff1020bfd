#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs HEAL transcripts with exact integers and verifies every result.

This is the project's oracle: an implementation of every operation of the HEAL
interface that shares nothing with the C and OpenCL code. A device tensor is a
NumPy view, so slices, moved axes, broadcast views and aliases behave for real;
arithmetic uses Python's unlimited integers. Every operation computes its whole
result before it stores anything, so `out` may overlap any input.

Exit status: 0 all results equal, 1 a result differs, 2 bad usage, 3 refused.
"""

import argparse
import ast
import binascii
import json
import math
import re
import struct
import sys
import time
from typing import Any, NamedTuple, Optional

import python_with_numpy

python_with_numpy.require()

import numpy as np

DTYPES = {"int8": np.int8, "int32": np.int32, "int64": np.int64}
ARITHMETIC = ("int32", "int64")
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Refused(Exception):
    """The transcript is invalid. `entry` and `op` say where, when known."""

    def __init__(self, message, entry=None, op=None):
        super().__init__(message)
        self.entry, self.op = entry, op


class Mismatch(Exception):
    """A downloaded tensor differs from the expected one."""


def require(condition, message):
    if not condition:
        raise Refused(message)


# ---------------------------------------------------------------- the entries


class Pointer(NamedTuple):
    """A device tensor by name; dtype is None where the file names none."""

    name: Any
    dtype: Optional[str]


class HostTensor(NamedTuple):
    """An array and how its .npy payload is (to be) written."""

    array: np.ndarray
    version: int = 1
    fortran: bool = False
    big_endian: bool = False


class Arg(NamedTuple):
    """kind: DEVICE_TENSOR (Pointer), HOST_TENSOR (HostTensor), SHAPE (list of
    Arg), INT (int), NONE (None), TENSOR_TYPE (str), SLICE (slice), ELLIPSIS."""

    kind: str
    value: Any = None


class Op(NamedTuple):
    name: str
    args: list
    out: Optional[Arg]


class NonInteger(str):
    """A JSON number with a fraction or an exponent."""


def reject_constant(text):
    raise Refused("not JSON: %s" % text)


def parse_json(text):
    """JSON with exact integers; other numbers become NonInteger."""
    try:
        return json.loads(text, parse_float=NonInteger, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("not JSON: %s" % error)


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def decode_int(value, what):
    """An int in [-2^63, 2^63); true and false count as 1 and 0."""
    require(isinstance(value, int), "%s is not an integer" % what)
    require(INT_MIN <= value <= INT_MAX, "%s does not fit in 64 bits" % what)
    return int(value)


def decode_name(value):
    require(
        is_int(value) or (isinstance(value, str) and not isinstance(value, NonInteger)),
        "a tensor name must be an integer or a string",
    )
    if is_int(value):
        decode_int(value, "a tensor name")
    return value


def decode_dtype(value, prefix=""):
    require(
        isinstance(value, str)
        and value.startswith(prefix)
        and value[len(prefix):] in DTYPES,
        "dtype %r is not supported" % (value,),
    )
    return value[len(prefix):]


BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def decode_npy(data):
    """bytes of a .npy file -> array in C order and native byte order."""
    require(data[:6] == b"\x93NUMPY", "payload is not a .npy file")
    require(len(data) >= 10 and data[6] in (1, 2, 3) and data[7] == 0,
            "unsupported .npy version")
    at = 10 if data[6] == 1 else 12
    require(len(data) >= at, "the .npy header is cut off")
    length = struct.unpack("<H" if at == 10 else "<I", data[8:at])[0]
    require(len(data) >= at + length, "the .npy header is cut off")
    try:
        header = ast.literal_eval(data[at:at + length].decode("utf-8").strip())
        descr, order, shape = (header[key] for key in ("descr", "fortran_order", "shape"))
    except (ValueError, SyntaxError, KeyError, TypeError, UnicodeDecodeError):
        raise Refused("bad .npy header")
    require(isinstance(order, bool) and isinstance(shape, tuple), "bad .npy header")
    require(all(is_int(size) and size >= 0 for size in shape), "bad .npy shape")
    require(isinstance(descr, str) and descr in ("<i8", ">i8", "<i4", ">i4", "|i1", "<i1", ">i1"),
            "unsupported .npy dtype %r" % (descr,))
    dtype = np.dtype(descr)
    body = len(data) - at - length
    require(body == math.prod(shape) * dtype.itemsize,
            "the .npy shape and the length of the data disagree")
    array = np.frombuffer(data, dtype, offset=at + length)
    array = array.reshape(shape, order="F" if order else "C")
    return np.array(array, dtype=dtype.newbyteorder("="), order="C")


def decode_host_tensor(value):
    require(isinstance(value, dict) and isinstance(value.get("tensor_base64"), dict),
            "a host tensor needs tensor_base64")
    payload = value["tensor_base64"]
    require(payload.get("type") != "torch", "torch payloads are not supported")
    require(payload.get("type") == "numpy", "unknown payload type %r" % (payload.get("type"),))
    text = payload.get("data")
    require(isinstance(text, str) and BASE64.fullmatch(text), "bad base64")
    return HostTensor(decode_npy(binascii.a2b_base64(text.encode())))


def decode_slice(value):
    require(isinstance(value, dict), "a slice must be an object")
    parts = [value.get(key) for key in ("start", "stop", "step")]
    return slice(*[None if part is None else decode_int(part, "a slice bound") for part in parts])


def decode_arg(arg):
    """An ARG in either spelling -> Arg."""
    require(isinstance(arg, dict) and "arg_type" in arg, "an argument needs arg_type")
    kind = arg["arg_type"]
    if isinstance(kind, dict):
        kind = kind.get("value")
    value = arg.get("value")
    if kind == "DEVICE_TENSOR":
        require(isinstance(value, dict) and "inf_name" in value, "a tensor needs inf_name")
        dtype = value.get("dtype")
        if dtype is not None:
            dtype = decode_dtype(dtype, "torch.")
        return Arg(kind, Pointer(decode_name(value["inf_name"]), dtype))
    if kind == "HOST_TENSOR":
        return Arg(kind, decode_host_tensor(value))
    if kind == "SHAPE":
        require(isinstance(value, list), "a SHAPE must be a list")
        return Arg(kind, [decode_arg(item) for item in value])
    if kind == "INT":
        return Arg(kind, decode_int(value, "an INT"))
    if kind == "NONE":
        return Arg(kind)
    if kind == "TENSOR_TYPE":
        return Arg(kind, decode_dtype(value.get("value") if isinstance(value, dict) else value))
    if kind == "SLICE":
        return Arg(kind, decode_slice(value))
    if kind == "ELLIPSIS":
        return Arg(kind)
    raise Refused("unknown argument type %r" % (kind,))


def decode_op(body):
    require(isinstance(body, dict), "an operation must be an object")
    require(isinstance(body.get("name"), str), "an operation needs a name")
    name = body["name"]
    try:
        require(isinstance(body.get("args"), list), "an operation needs args")
        args = [decode_arg(arg) for arg in body["args"]]
        out = body.get("out")
        return Op(name, args, None if out is None else decode_arg(out))
    except Refused as refused:
        refused.op = name
        raise


def decode_entry(entry):
    """An entry in either spelling -> (kind, value); kind None is a no-op."""
    if isinstance(entry, list):
        require(len(entry) == 2, "an entry must be a pair")
        kind, body = entry
        if kind is None and body is None:
            return None, None
        require(isinstance(kind, dict), "an entry needs a kind")
        kind = kind.get("value")
        name = body
    else:
        require(isinstance(entry, dict), "an entry must be a pair or an object")
        require("type" in entry or not {"op", "args", "output"} <= set(entry),
                "the sketch with op, args and output side by side is not supported")
        kind = entry.get("type")
        body = entry.get("op") if kind == "DEVICE_OP" else entry
        name = entry.get("name")
    if kind == "SEGMENT_START":
        require(isinstance(name, str), "a segment needs a name")
        return kind, name
    if kind == "SEGMENT_END":
        return kind, None
    if kind == "DEVICE_OP":
        return kind, decode_op(body)
    if kind == "FREE_DEVICE_TENSOR":
        require(isinstance(body, dict) and "tensor_name" in body, "a free needs tensor_name")
        return kind, decode_name(body["tensor_name"])
    raise Refused("unknown entry type %r" % (kind,))


def transcript_entries(document):
    if isinstance(document, dict):
        require(document.get("__type__", "ExecutionTranscript") == "ExecutionTranscript",
                "the top level is not an ExecutionTranscript")
        document = document.get("transcript")
    require(isinstance(document, list), "the top level is not a transcript")
    return document


# ------------------------------------------------------------ exact arithmetic


def dtype_of(array):
    return array.dtype.name


def exact(array):
    """Returns the values as unlimited Python integers (an object array)."""
    return np.asarray(array.astype(object), dtype=object)


def wrap(values, dtype):
    """Exact integers -> two's complement of dtype's width."""
    span = 2 ** (8 * np.dtype(dtype).itemsize)
    values = np.asarray(values, dtype=object)
    return np.asarray((values + span // 2) % span - span // 2, dtype=object).astype(dtype)


def store(out, values):
    """values (any exact integers, out's shape) -> out, wrapped to its width."""
    if getattr(values, "dtype", None) != out.dtype:
        values = wrap(values, out.dtype)
    require(values.shape == out.shape,
            "out has shape %s, the result has %s" % (list(out.shape), list(values.shape)))
    out[...] = values
    return out


def c_remainder(values, moduli):
    """Remainder with the sign of the dividend, as C's %."""
    magnitude = abs(values) % moduli
    return np.where(np.asarray(values < 0, dtype=bool), -magnitude, magnitude)


def check_moduli(moduli, name):
    """moduli: a tensor or an int -> the same, exact, all in [1, 2^63)."""
    if isinstance(moduli, int):
        require(moduli >= 1, '"%s" is %d: a modulus must be at least 1' % (name, moduli))
        return moduli
    require(moduli.size == 0 or moduli.min() >= 1, '"%s" holds a modulus below 1' % name)
    return exact(moduli)


def check_dtypes(allowed=ARITHMETIC, **tensors):
    """All tensors have one dtype, which is among the allowed ones."""
    dtypes = {dtype_of(tensor) for tensor in tensors.values() if isinstance(tensor, np.ndarray)}
    require(len(dtypes) == 1 and dtypes <= set(allowed),
            "%s have dtypes %s" % (", ".join(tensors), ", ".join(sorted(dtypes))))


def check_broadcast(out, *operands):
    """out has exactly the shape that the operands broadcast to."""
    shapes = [operand.shape for operand in operands if isinstance(operand, np.ndarray)]
    try:
        shape = np.broadcast(*[np.broadcast_to(np.int8(0), s) for s in shapes]).shape
    except ValueError:
        raise Refused("shapes %s do not broadcast" % [list(s) for s in shapes])
    require(shape == out.shape,
            "out has shape %s, the operands broadcast to %s" % (list(out.shape), list(shape)))


def check_shape(tensor, shape, name):
    require(tensor.shape == tuple(shape),
            '"%s" has shape %s instead of %s' % (name, list(tensor.shape), list(shape)))


def check_rank(tensor, rank, name):
    require(tensor.ndim == rank, '"%s" has rank %d instead of %d' % (name, tensor.ndim, rank))


def normal_axis(axis, rank, name="axis"):
    require(-rank <= axis < rank, '"%s" is %d for rank %d' % (name, axis, rank))
    return axis % rank


def check_permutation(perm, n):
    """perm: int32 or int64 [n], each of 0..n-1 once -> int64 [n]."""
    require(perm is not None, '"perm" is NONE')
    check_dtypes(perm=perm)
    check_shape(perm, (n,), "perm")
    require(sorted(perm.tolist()) == list(range(n)), '"perm" is not a permutation')
    return perm.astype(np.int64)


# -------------------------------------------------------------- the operations

OPERATIONS = {}  # name without leading underscore -> list of Form


class Form(NamedTuple):
    """One argument list: params is [(name, kind)], kind one of T tensor, T? tensor
    or NONE, O output tensor, I int, S shape or index, D dtype, H host, N NONE."""

    params: list
    function: Any


KIND_NAMES = {"T": ("DEVICE_TENSOR",), "T?": ("DEVICE_TENSOR", "NONE"), "O": ("DEVICE_TENSOR",),
              "I": ("INT",), "S": ("SHAPE",), "D": ("TENSOR_TYPE",), "H": ("HOST_TENSOR",),
              "N": ("NONE",)}


def operation(names, *signatures):
    """Registers a function for some names; a signature reads "a:T axis:I out:O"."""

    def register(function):
        for name in names.split():
            for signature in signatures:
                params = [tuple(param.split(":")) for param in signature.split()]
                OPERATIONS.setdefault(name, []).append(Form(params, function))
        return function

    return register


def select_form(name, args):
    """The Form of an operation that fits the number and the kinds of args."""
    forms = OPERATIONS.get(name[1:] if name.startswith("_") else name)
    require(forms, 'unknown operation "%s"' % name)
    counts = sorted({len(form.params) for form in forms})
    forms = [form for form in forms if len(form.params) == len(args)]
    require(forms, "%d arguments instead of %s" % (len(args), " or ".join(map(str, counts))))
    for form in forms:
        wrong = [param for (param, kind), arg in zip(form.params, args)
                 if arg.kind not in KIND_NAMES[kind]]
        if not wrong:
            return form
    raise Refused('argument "%s" is of the wrong kind' % wrong[0])


# Memory


def shape_sizes(shape, lowest=0):
    """A SHAPE of INTs -> list of sizes, each at least `lowest`."""
    sizes = []
    for item in shape:
        require(item.kind == "INT", "a shape holds something that is not an INT")
        require(item.value >= lowest, "a shape holds %d" % item.value)
        sizes.append(item.value)
    return sizes


@operation("host_to_device", "host:H")
def host_to_device(machine, host, out_dtype=None):
    array = host.array
    dtype = DTYPES[out_dtype or dtype_of(array)]
    limits = np.iinfo(dtype)
    require(array.size == 0 or (array.min() >= limits.min and array.max() <= limits.max),
            "a value of the payload does not fit in %s" % np.dtype(dtype).name)
    return np.array(array, dtype=dtype, order="C")


@operation("device_to_host", "t:T", "t:T none:N")
def device_to_host(machine, t, none=None):
    return t


@operation("empty", "shape:S dtype:D")
def empty(machine, shape, dtype):
    array = machine.allocate(shape_sizes(shape), dtype)
    pattern = bytes([machine.garbage]) * array.itemsize
    array.fill(np.frombuffer(pattern, array.dtype)[0])
    return array


@operation("zeros", "shape:S dtype:D")
def zeros(machine, shape, dtype):
    return machine.allocate(shape_sizes(shape), dtype)


@operation("set_const_val", "a:O value:I")
def set_const_val(machine, a, value):
    limits = np.iinfo(a.dtype)
    require(limits.min <= value <= limits.max, "%d does not fit in %s" % (value, a.dtype.name))
    a[...] = value
    return a


@operation("free_device_tensor", "t:T")
def free_device_tensor(machine, t):
    return None  # the machine unbinds the name


# Views


@operation("reshape", "a:T shape:S")
def reshape(machine, a, shape):
    sizes = shape_sizes(shape, lowest=-1)
    require(sizes.count(-1) <= 1, "a shape holds more than one -1")
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes:
        require(known > 0 and a.size % known == 0, "-1 cannot be inferred")
        sizes[sizes.index(-1)] = a.size // known
    require(math.prod(sizes) == a.size, "shape %s cannot become %s" % (list(a.shape), sizes))
    return a.reshape(sizes)


@operation("flatten", "a:T first:I last:I")
def flatten(machine, a, first, last):
    first, last = normal_axis(first, a.ndim, "first"), normal_axis(last, a.ndim, "last")
    require(first <= last, '"first" lies after "last"')
    joined = math.prod(a.shape[first:last + 1])
    return a.reshape(a.shape[:first] + (joined,) + a.shape[last + 1:])


@operation("squeeze", "a:T axis:I")
def squeeze(machine, a, axis):
    axis = normal_axis(axis, a.ndim)
    require(a.shape[axis] == 1, "axis %d has size %d, not 1" % (axis, a.shape[axis]))
    return np.squeeze(a, axis)


@operation("unsqueeze", "a:T axis:I")
def unsqueeze(machine, a, axis):
    return np.expand_dims(a, normal_axis(axis, a.ndim + 1))


def can_expand(a, axis, repeats):
    return -a.ndim <= axis < a.ndim and a.shape[axis] == 1 and repeats >= 1


@operation("expand", "a:T axis:I repeats:I")
def expand(machine, a, axis, repeats):
    if not can_expand(a, axis, repeats) and can_expand(a, repeats, axis):
        axis, repeats = repeats, axis  # as the runtime of HEAL's SDK has them
    axis = normal_axis(axis, a.ndim)
    require(a.shape[axis] == 1, "axis %d has size %d, not 1" % (axis, a.shape[axis]))
    require(1 <= repeats, '"repeats" is %d' % repeats)
    shape, strides = list(a.shape), list(a.strides)
    shape[axis], strides[axis] = repeats, 0
    require(math.prod(shape) * a.itemsize <= INT_MAX, "the expanded tensor is too large")
    return np.lib.stride_tricks.as_strided(a, shape, strides)


@operation("moveaxis", "a:T from:I to:I")
def moveaxis(machine, a, **axes):
    source, target = (normal_axis(axes[name], a.ndim, name) for name in ("from", "to"))
    return np.moveaxis(a, source, target)


@operation("new_reference", "a:T")
def new_reference(machine, a):
    return a


@operation("get_slice", "a:T index:S")
def get_slice(machine, a, index):
    kinds = [item.kind for item in index]
    require(set(kinds) <= {"INT", "SLICE", "ELLIPSIS"}, "an index holds %s" % kinds)
    require(kinds.count("ELLIPSIS") <= 1, "an index holds more than one ELLIPSIS")
    require(len(kinds) - kinds.count("ELLIPSIS") <= a.ndim, "more indices than axes")
    spread = a.ndim - (len(kinds) - kinds.count("ELLIPSIS"))
    picks, axis = [], 0
    for item in index:
        if item.kind == "ELLIPSIS":
            picks.append(Ellipsis)
            axis += spread
            continue
        if item.kind == "INT":
            require(-a.shape[axis] <= item.value < a.shape[axis],
                    "index %d is beyond axis %d" % (item.value, axis))
        else:
            require(item.value.step is None or item.value.step > 0, "a slice step is not positive")
        picks.append(item.value)
        axis += 1
    if "ELLIPSIS" not in kinds:
        picks.append(Ellipsis)
    return a[tuple(picks)]


@operation("contiguous", "a:T")
def contiguous(machine, a):
    return a if a.flags.c_contiguous else np.array(a, order="C")


# Modular arithmetic, elementwise


def register_modular(name, combine):
    """modmul and modsum: the four variants and the name without a suffix."""

    def modular(machine, a, b, p, out):
        tensors = {key: value for key, value in (("a", a), ("b", b), ("p", p), ("out", out))
                   if isinstance(value, np.ndarray)}
        check_dtypes(**tensors)
        check_broadcast(out, a, b, p)
        moduli = check_moduli(p, "p")
        a, b = (exact(x) if isinstance(x, np.ndarray) else x for x in (a, b))
        return store(out, np.broadcast_to(c_remainder(combine(a, b), moduli), out.shape))

    for variant in ("ttt", "ttc", "tct", "tcc"):
        kinds = ["I" if letter == "c" else "T" for letter in variant]
        signature = "a:%s b:%s p:%s out:O" % tuple(kinds)
        operation("%s_%s %s" % (name, variant, name), signature)(modular)


register_modular("modmul", lambda a, b: a * b)
register_modular("modsum", lambda a, b: a + b)


@operation("mod_tt mod", "a:T b:T out:O")
@operation("mod_tc mod", "a:T b:I out:O")
@operation("mod_ct mod", "a:I b:T out:O")
def mod(machine, a, b, out):
    tensors = [x for x in (a, b) if isinstance(x, np.ndarray)]
    check_dtypes(**dict(zip("ab", tensors)), out=out)
    check_broadcast(out, *tensors)
    moduli = check_moduli(b, "b")
    a = exact(a) if isinstance(a, np.ndarray) else np.asarray(a, dtype=object)
    return store(out, np.broadcast_to(c_remainder(a, moduli), out.shape))


@operation("modneg_tt modneg", "a:T p:T out:O")
@operation("modneg_tc modneg", "a:T p:I out:O")
def modneg(machine, a, p, out):
    check_dtypes(a=a, p=p, out=out)
    check_broadcast(out, a, p)
    return store(out, np.broadcast_to(-exact(a) % check_moduli(p, "p"), out.shape))


@operation("abs", "a:T out:O")
def absolute(machine, a, out):
    check_dtypes(a=a, out=out)
    check_broadcast(out, a)
    return store(out, abs(exact(a)))


# Sums


@operation("axis_modsum", "a:T axis:I q:T out:O")
def axis_modsum(machine, a, axis, q, out):
    check_dtypes(a=a, q=q, out=out)
    axis = normal_axis(axis, a.ndim)
    require(axis != a.ndim - 1, '"axis" is the last axis')
    check_shape(q, a.shape[-1:], "q")
    check_shape(out, a.shape[:axis] + a.shape[axis + 1:], "out")
    moduli = check_moduli(q, "q")
    return store(out, np.asarray(exact(a).sum(axis=axis), dtype=object) % moduli)


@operation("modmul_axis_sum",
           "a:T b:T q:T log2p:T? mu:T? perm:T? out:O apply_perm:I",
           "a:T b:T q:T log2p:T? mu:T? perm:T? out:O apply_perm:I axis:I",
           "a:T b:T q:T out:O axis:I")
def modmul_axis_sum(machine, a, b, q, out, log2p=None, mu=None, perm=None, apply_perm=0, axis=-1):
    """axis -1: a [reps,s,k,n], b [s,k,n], out [reps,k,n];
    axis -3: a [reps,n,s,k], b [n,s,k], out [reps,n,k]; out accumulates."""
    check_dtypes(a=a, b=b, q=q, out=out)
    check_rank(a, 4, "a")
    last = transform_axis(axis) == 3
    if last:
        reps, s, k, n = a.shape
        check_shape(b, (s, k, n), "b")
        check_shape(out, (reps, k, n), "out")
    else:
        reps, n, s, k = a.shape
        check_shape(b, (n, s, k), "b")
        check_shape(out, (reps, n, k), "out")
    check_shape(q, (k,), "q")
    moduli = check_moduli(q, "q")
    moduli = moduli[:, None] if last else moduli
    moved = exact(a)
    if apply_perm:
        source = np.argsort(check_permutation(perm, n))  # position m comes from l, perm[l] = m
        moved = np.take(moved, source, axis=3 if last else 1)
    total = (moved * exact(b)).sum(axis=1 if last else 2)
    return store(out, (exact(out) + total) % moduli)


# Transforms


def transform_axis(axis):
    """-3 or 1 -> 1 (layout [l,n,r,k]); -1 or 3 -> 3 (layout [l,r,k,n])."""
    require(axis in (-3, -1, 1, 3), '"axis" is %d, not -3 or -1' % axis)
    return axis % 4


def check_transform(a, q, roots, out, axis, tile):
    """Checks shapes and dtypes; -> (a as [l,r,k,n] exact in [0,q), q [k,1], roots [k,n])."""
    check_rank(a, 4, "a")
    check_dtypes(q=q, roots=roots, out=out)
    require(dtype_of(a) in ("int8", dtype_of(out)), '"a" is %s, out %s' % (a.dtype, out.dtype))
    check_rank(q, 1, "q")
    k, n = q.shape[0], a.shape[axis]
    require(n > 0 and n & (n - 1) == 0, "the length %d is not a power of two" % n)
    check_shape(roots, (k, n), "roots")
    k_axis = 3 if axis == 1 else 2
    require(a.shape[k_axis] == (1 if tile else k), '"a" has size %d on its modulus axis'
            % a.shape[k_axis])
    shape = list(a.shape)
    shape[k_axis] = k
    check_shape(out, shape, "out")
    moduli = check_moduli(q, "q")[:, None]
    values = np.moveaxis(exact(a), axis, 3) % moduli
    return values, moduli, exact(roots) % moduli


def forward_butterflies(x, psi, q):
    """x [l,r,k,n] in [0,q), natural order -> the same, bit-reversed order."""
    n = x.shape[-1]
    m = 1
    while m < n:
        pairs = x.reshape(x.shape[:-1] + (m, 2, n // (2 * m)))
        low, high = pairs[..., 0, :], pairs[..., 1, :] * psi[:, m:2 * m, None]
        x = np.stack((low + high, low - high), axis=-2).reshape(x.shape) % q
        m *= 2
    return x


def inverse_butterflies(x, ipsi, q):
    """x [l,r,k,n] in [0,q), bit-reversed order -> natural order, not yet scaled."""
    n = x.shape[-1]
    m = n // 2
    while m >= 1:
        pairs = x.reshape(x.shape[:-1] + (m, 2, n // (2 * m)))
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        high, low = (low - high) * ipsi[:, m:2 * m, None], low + high
        x = np.stack((low, high), axis=-2).reshape(x.shape) % q
        m //= 2
    return x


@operation("ntt",
           "a:T axis:I perm:T? pairs:T? q:T log2p:T? mu:T? psi:T out:O tile:I skip_perm:I",
           "a:T perm:T? pairs:T? q:T log2p:T? mu:T? psi:T out:O tile:I skip_perm:I",
           "a:T perm:T? pairs:T? q:T psi:T out:O tile:I skip_perm:I")
def ntt(machine, a, perm, pairs, q, psi, out, tile, skip_perm, axis=-3, log2p=None, mu=None):
    axis = transform_axis(axis)
    x, moduli, psi = check_transform(a, q, psi, out, axis, tile)
    x = forward_butterflies(x, psi, moduli)
    if not skip_perm:
        x = x[..., check_permutation(perm, x.shape[-1])]
    return store(out, np.moveaxis(x, 3, axis))


@operation("intt",
           "a:T perm:T pairs:T? q:T log2p:T? mu:T? ipsi:T n_inv:T out:O tile:I",
           "a:T axis:I perm:T pairs:T? q:T log2p:T? mu:T? ipsi:T n_inv:T out:O tile:I")
def intt(machine, a, perm, pairs, q, log2p, mu, ipsi, n_inv, out, tile, axis=-3):
    axis = transform_axis(axis)
    check_dtypes(n_inv=n_inv, out=out)
    check_shape(n_inv, q.shape, "n_inv")
    values, moduli, ipsi = check_transform(a, q, ipsi, out, axis, tile)
    x = np.empty_like(values)
    x[..., check_permutation(perm, x.shape[-1])] = values
    x = inverse_butterflies(x, ipsi, moduli)
    return store(out, np.moveaxis(x * exact(n_inv)[:, None] % moduli, 3, axis))


# Digits


def check_base(g_exp, base_bits):
    require(g_exp >= 0, '"g_exp" is %d' % g_exp)
    require(base_bits >= 1, '"base_bits" is %d' % base_bits)


def gadget_digits(machine, values, g_exp, base_bits):
    """values >= 0, exact -> list of g_exp arrays, least significant digit first."""
    mask = 2**base_bits - 1
    digits = [(values >> (base_bits * i)) & mask for i in range(g_exp)]
    machine.dropped += int(np.count_nonzero(values >> (base_bits * g_exp)))
    return digits


@operation("apply_g_decomp g_decomposition", "a:T g_exp:I base_bits:I out:O")
def apply_g_decomp(machine, a, g_exp, base_bits, out):
    check_dtypes(a=a)
    check_base(g_exp, base_bits)
    check_shape(out, a.shape + (g_exp,), "out")
    bits = np.asarray(exact(a) % 2 ** (8 * a.itemsize), dtype=object)
    digits = gadget_digits(machine, bits, g_exp, base_bits)
    result = np.empty(out.shape, dtype=object)
    for i, digit in enumerate(digits):
        result[..., i] = digit
    return store(out, result)


@operation("apply_g_decomp_relative_to_full_q",
           "a:T q:T q_inv:T? g_exp:I base_bits:I level_bits:I level_inv:T? out:O",
           "a:T q:T g_exp:I base_bits:I out:O")
def apply_g_decomp_relative_to_full_q(machine, a, q, g_exp, base_bits, out,
                                      q_inv=None, level_bits=None, level_inv=None):
    """a [l,k,r] residues of x in [0, product of q) -> out [l,g_exp,r] digits of x."""
    check_dtypes(a=a, q=q)
    check_base(g_exp, base_bits)
    check_rank(a, 3, "a")
    check_shape(q, a.shape[1:2], "q")
    check_shape(out, (a.shape[0], g_exp, a.shape[2]), "out")
    moduli = check_moduli(q, "q").tolist()
    for i, one in enumerate(moduli):
        for other in moduli[:i]:
            require(math.gcd(one, other) == 1, '"q" holds moduli that are not coprime')
    full = math.prod(moduli)
    weights = np.array([full // one * pow(full // one, -1, one) for one in moduli], dtype=object)
    residues = exact(a) % np.array(moduli, dtype=object)[:, None]
    values = np.asarray((residues * weights[:, None]).sum(axis=1), dtype=object) % full
    result = np.empty(out.shape, dtype=object)
    for i, digit in enumerate(gadget_digits(machine, values, g_exp, base_bits)):
        result[:, i, :] = digit
    return store(out, result)


# Gathers and pads


@operation("take_along_axis", "a:T idx:T axis:I out:O")
def take_along_axis(machine, a, idx, axis, out):
    check_dtypes(a=a, out=out)
    check_dtypes(idx=idx)
    require(a.ndim == idx.ndim == out.ndim, '"a", "idx" and "out" have different ranks')
    axis = normal_axis(axis, a.ndim)
    size = a.shape[axis]
    source_shape = out.shape[:axis] + (size,) + out.shape[axis + 1:]
    try:
        source = np.broadcast_to(a, source_shape)
        indices = np.broadcast_to(idx.astype(np.int64), out.shape)
    except ValueError:
        raise Refused("the shapes of a and idx do not broadcast to that of out")
    require(idx.size == 0 or (idx.min() >= -size and idx.max() < size), "an index is out of range")
    return store(out, np.take_along_axis(source, indices % max(size, 1), axis))


@operation("permute", "a:T perms:T out:O elementwise_axis:I perm_axis:I")
def permute(machine, a, perms, out, elementwise_axis, perm_axis):
    check_dtypes(a=a, out=out)
    check_dtypes(perms=perms)
    along = normal_axis(elementwise_axis, a.ndim, "elementwise_axis")
    axis = normal_axis(perm_axis, a.ndim, "perm_axis")
    require(along != axis, "the two axes are the same")
    check_shape(perms, (a.shape[along], a.shape[axis]), "perms")
    check_shape(out, a.shape, "out")
    require(perms.size == 0 or (perms.min() >= 0 and perms.max() < a.shape[axis]),
            '"perms" holds an index that is out of range')
    shape = [1] * a.ndim
    shape[along], shape[axis] = perms.shape
    indices = (perms if along < axis else perms.T).astype(np.int64).reshape(shape)
    return store(out, np.take_along_axis(a, np.broadcast_to(indices, a.shape), axis))


@operation("pad_single_axis", "a:T pad:I axis:I out:O")
def pad_single_axis(machine, a, pad, axis, out):
    check_dtypes(a=a, out=out)
    axis = normal_axis(axis, a.ndim)
    require(pad >= 0, '"pad" is %d' % pad)
    check_shape(out, a.shape[:axis] + (a.shape[axis] + pad,) + a.shape[axis + 1:], "out")
    result = np.zeros(out.shape, dtype=a.dtype)
    result[(slice(None),) * axis + (slice(0, a.shape[axis]),)] = a
    return store(out, result)


@operation("repeat_interleave", "a:T repeats:I axis:I out:O")
def repeat_interleave(machine, a, repeats, axis, out):
    check_dtypes(a=a, out=out)
    axis = normal_axis(axis, a.ndim)
    require(repeats >= 0, '"repeats" is %d' % repeats)
    check_shape(out, a.shape[:axis] + (a.shape[axis] * repeats,) + a.shape[axis + 1:], "out")
    return store(out, np.repeat(a, repeats, axis=axis))


# ----------------------------------------------------------------- the machine


def element_visits(function, values):
    """Elements that an operation visits where views can repeat few of them without end; of others
    what is stored bounds them."""
    if function in (axis_modsum, modmul_axis_sum):
        return values["a"].size + values["out"].size
    if function is apply_g_decomp_relative_to_full_q and values["a"].ndim == 3:
        rows, k, columns = values["a"].shape
        return values["out"].size + (rows * columns + 1) * k * k
    return values["t"].size if function is device_to_host else 0


class Machine:
    """Names bound to tensors (NumPy views), and the operations on them."""

    def __init__(self, garbage=0x5B, memory_limit=2**36, work_limit=2**42):
        self.tensors = {}
        self.garbage = garbage  # the byte that fills what `empty` allocates
        self.memory_limit = memory_limit
        self.work_limit = work_limit
        self.downloads = 0
        self.operations = 0
        self.dropped = 0  # values that lost digits beyond g_exp

    def allocate(self, sizes, dtype):
        bytes_needed = math.prod(sizes) * np.dtype(DTYPES[dtype]).itemsize
        require(bytes_needed <= min(self.memory_limit, INT_MAX),
                "%d bytes are more than the limit" % bytes_needed)
        return np.zeros(sizes, dtype=DTYPES[dtype])

    def tensor(self, pointer):
        require(pointer.name in self.tensors, "no tensor is bound to %r" % (pointer.name,))
        tensor = self.tensors[pointer.name]
        require(pointer.dtype in (None, dtype_of(tensor)),
                "tensor %r is %s, not %s" % (pointer.name, tensor.dtype, pointer.dtype))
        return tensor

    def free(self, name):
        require(name in self.tensors, "no tensor is bound to %r" % (name,))
        del self.tensors[name]

    def argument(self, param, kind, arg):
        """An Arg -> what an operation's function gets."""
        if arg.kind != "DEVICE_TENSOR":
            return arg.value
        tensor = self.tensor(arg.value)
        if kind == "O":
            require(tensor.size == 0 or all(stride != 0 or size == 1 for stride, size
                                            in zip(tensor.strides, tensor.shape)),
                    '"%s" overlaps itself' % param)
        return tensor

    def execute(self, op):
        """Runs one Op; raises Refused, or Mismatch for a differing download."""
        self.operations += 1
        form = select_form(op.name, op.args)
        values = {param: self.argument(param, kind, arg)
                  for (param, kind), arg in zip(form.params, op.args)}
        visits = element_visits(form.function, values)
        require(visits <= self.work_limit, "%d elements to visit are more than the limit" % visits)
        if form.function is free_device_tensor:
            return self.free(op.args[0].value.name)
        if form.function is device_to_host:
            return self.verify(values["t"], op.out)
        require(op.out is not None and op.out.kind == "DEVICE_TENSOR", "out must be a DEVICE_TENSOR")
        target = op.out.value
        if form.function is host_to_device:
            values["out_dtype"] = target.dtype
        result = form.function(self, **values)
        require(target.dtype in (None, dtype_of(result)),
                "the result is %s, out says %s" % (result.dtype, target.dtype))
        self.tensors[target.name] = result

    def verify(self, tensor, out):
        require(out is not None and out.kind == "HOST_TENSOR", "out must be a HOST_TENSOR")
        self.downloads += 1
        expected = out.value.array
        if expected.shape != tensor.shape:
            raise Mismatch("shape %s, expected %s" % (list(tensor.shape), list(expected.shape)))
        differing = np.argwhere(tensor != expected)
        if len(differing):
            where = tuple(differing[0])
            raise Mismatch("%d of %d values differ, first at %s: %d, expected %d" % (
                len(differing), tensor.size, [int(i) for i in where],
                tensor[where], expected[where]))


def run(document, machine, on_mismatch, on_op=lambda op: None):
    """Runs a parsed transcript. on_mismatch(entry index, op name, Mismatch)."""
    segment_open = False
    for index, entry in enumerate(transcript_entries(document)):
        op_name = None
        try:
            kind, value = decode_entry(entry)
            if kind == "SEGMENT_START":
                require(not segment_open, "segments do not nest")
                segment_open = True
            elif kind == "SEGMENT_END":
                require(segment_open, "no segment is open")
                segment_open = False
            elif kind == "FREE_DEVICE_TENSOR":
                machine.free(value)
            elif kind == "DEVICE_OP":
                op_name = value.name
                on_op(value)
                machine.execute(value)
        except Mismatch as mismatch:
            on_mismatch(index, op_name, mismatch)
        except Refused as refused:
            raise Refused(str(refused), index, op_name or refused.op)
    require(not segment_open, "a segment is still open at the end")


def run_text(text, machine, on_op=lambda op: None):
    """-> (exit status, entry index or None, op name or None, message)."""
    found = []
    try:
        run(parse_json(text), machine, lambda *what: found.append(what), on_op)
    except Refused as refused:
        return 3, refused.entry, refused.op, str(refused)
    if found:
        index, name, mismatch = found[0]
        return 1, index, name, str(mismatch)
    return 0, None, None, "%d operations, %d results equal" % (machine.operations, machine.downloads)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        epilog="Exit status: 0 all results equal, 1 a result differs, 3 a transcript is refused.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a transcript, in either spelling")
    options = parser.parse_args()
    worst = 0
    for path in options.files:
        start = time.time()
        try:
            with open(path, "rb") as file:
                text = file.read().decode("utf-8", errors="replace")
        except OSError as error:
            parser.error(str(error))
        machine = Machine()
        status, index, name, message = run_text(text, machine)
        del text
        verdict = {0: "ok", 1: "DIFFERS", 3: "REFUSED"}[status]
        place = "" if index is None else " entry %d%s:" % (index, " (%s)" % name if name else "")
        warning = ", %d values lost digits" % machine.dropped if machine.dropped else ""
        print("%s: %s:%s %s%s, %.1f s" % (path, verdict, place, message, warning,
                                          time.time() - start))
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
