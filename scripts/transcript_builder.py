# SPDX-License-Identifier: Apache-2.0
"""Building blocks of the transcript generators: random numbers, number theory, a writer.

Everything is deterministic: the random numbers come from an own generator, not from a
library whose streams may change, and the .npy headers are written here byte by byte.
"""

import base64
import contextlib
import json
import math
import struct
import zlib

import numpy as np

import heal_oracle as oracle
from heal_oracle import Arg, HostTensor, Op, Pointer

MASK64 = 2**64 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Rng:
    """SplitMix64 (Steele, Lea, Flood 2014), scalar and vectorised, same on every machine."""

    GOLDEN = 0x9E3779B97F4A7C15

    def __init__(self, seed):
        if isinstance(seed, str):
            seed = zlib.crc32(seed.encode())
        self.state = seed * 0xD1342543DE82EF95 & MASK64

    def words(self, count):
        """uint64 [count], uniform."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(self.GOLDEN)
        z = steps + np.uint64(self.state)
        self.state = (self.state + self.GOLDEN * count) & MASK64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def integers(self, low, high, shape):
        """int64 array of values in [low, high], which lie in the int64 range."""
        words = self.words(math.prod(shape))
        span = high - low + 1
        if span <= MASK64:
            words = words % np.uint64(span)
        return (words + np.uint64(low & MASK64)).view(np.int64).reshape(shape)

    def between(self, low, high):
        """A Python int in [low, high]."""
        return low + int(self.words(1)[0]) % (high - low + 1)

    def chance(self, percent):
        return self.between(0, 99) < percent

    def choice(self, items):
        return items[self.between(0, len(items) - 1)]

    def permutation(self, n):
        """int64 [n], a permutation of 0..n-1."""
        return np.argsort(self.words(n), kind="stable").astype(np.int64)

    def extremes(self, shape, dtype="int64"):
        """Full-width values, mixed with small ones and the ends of the range."""
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        edges = np.array([low, low + 1, -2, -1, 0, 1, 2, high - 1, high], dtype=np.int64)
        mixed = np.choose(
            self.integers(0, 3, shape),
            [self.integers(low, high, shape), self.integers(low, high, shape),
             self.integers(-100, 100, shape), edges[self.integers(0, len(edges) - 1, shape)]])
        return np.asarray(mixed).astype(dtype).reshape(shape)


# --------------------------------------------------------------- number theory


def is_prime(n):
    """Miller-Rabin with the first twelve primes as bases: exact below 2^64."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % p == 0 for p in bases):
        return n in bases
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def ntt_primes(bits, n, count):
    """The `count` largest primes below 2^bits that are 1 mod 2n."""
    found, candidate = [], (2**bits - 2) // (2 * n) * (2 * n) + 1
    while len(found) < count:
        if is_prime(candidate):
            found.append(candidate)
        candidate -= 2 * n
    return found


def primitive_root(q, n):
    """A primitive 2n-th root of unity modulo the prime q."""
    for base in range(2, q):
        root = pow(base, (q - 1) // (2 * n), q)
        if pow(root, n, q) == q - 1:
            return root
    raise ValueError("no root")


def bit_reversal(n):
    """int64 [n]: the bit-reversed indices, n a power of two."""
    bits = n.bit_length() - 1
    return np.array([int(format(i, "0%db" % bits)[::-1], 2) if bits else 0 for i in range(n)],
                    dtype=np.int64)


class Ring:
    """The tables of Z_q[x]/(x^n + 1) for primes q[k], in the order that `ntt` wants.

    perm [n], pairs [n/2*log2(n), 2], q, log2p, mu, n_inv [k], psi, ipsi [k,n]; all int64,
    psi and ipsi in [0, q). mu and log2p are Barrett hints, pairs the butterflies' indices."""

    def __init__(self, n, moduli, roots=None):
        reverse, roots = bit_reversal(n), roots or [primitive_root(q, n) for q in moduli]
        self.n, self.k, self.moduli = n, len(moduli), moduli
        self.perm = reverse
        self.pairs = np.array([(i, i + half) for half in self.halves(n)
                               for i in range(n) if i // half % 2 == 0] or [(0, 0)], dtype=np.int64)
        self.q = np.array(moduli, dtype=np.int64)
        self.log2p = np.array([q.bit_length() for q in moduli], dtype=np.int64)
        self.mu = np.array([min(4**q.bit_length() // q, INT64_MAX) for q in moduli], dtype=np.int64)
        self.n_inv = np.array([pow(n, -1, q) for q in moduli], dtype=np.int64)
        self.psi, self.ipsi = (np.array([self.powers(pow(root, sign, q), q)
                                         for root, q in zip(roots, moduli)])[:, reverse]
                               for sign in (1, -1))

    @staticmethod
    def halves(n):
        return [n >> stage for stage in range(1, n.bit_length())]

    def powers(self, root, q):
        return [pow(root, i, q) for i in range(self.n)]

    def residues(self, rng, shape, k_axis=-1):
        """Random residues; shape's k axis has size k; values in [0, q) there."""
        k_axis %= len(shape)
        words = rng.words(math.prod(shape)).reshape(shape)
        column = [1] * len(shape)
        column[k_axis] = self.k
        return (words % self.q.astype(np.uint64).reshape(column)).astype(np.int64)


# ------------------------------------------------------------------ the writer


def npy_bytes(host):
    """HostTensor -> the bytes of a .npy file."""
    array = host.array
    if array.dtype == np.int8:
        descr = "|i1"
    else:
        descr = (">" if host.big_endian else "<") + "i%d" % array.itemsize
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (
        descr, host.fortran, tuple(int(size) for size in array.shape))
    prefix = 10 if host.version == 1 else 12
    header += " " * (-(prefix + len(header) + 1) % 64) + "\n"
    data = array.astype(np.dtype(descr)).tobytes("F" if host.fortran else "C")
    length = struct.pack("<H" if host.version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([host.version, 0]) + length + header.encode() + data


def host_value(host):
    return {"tensor_base64": {"type": "numpy", "data": base64.b64encode(npy_bytes(host)).decode()}}


def tag(type_name, **fields):
    return dict({"__type__": type_name}, **fields)


def tagged_arg(arg):
    kind, value = arg
    if kind == "DEVICE_TENSOR":
        value = tag("DeviceTensorPointer", dtype="torch." + value.dtype, inf_name=value.name)
    elif kind == "HOST_TENSOR":
        value = tag("HostTensor", **host_value(value))
    elif kind == "SHAPE":
        value = [tagged_arg(item) for item in value]
    elif kind == "TENSOR_TYPE":
        value = tag("dtype", value=value)
    elif kind == "SLICE":
        value = tag("slice", start=value.start, stop=value.stop, step=value.step)
    elif kind == "ELLIPSIS":
        value = tag("ellipsis")
    return tag("DeviceOpArg", arg_type=tag("DeviceOpArgType", value=kind), value=value)


def plain_arg(arg, dtypes):
    kind, value = arg
    if kind == "DEVICE_TENSOR":
        pointer = {"dtype": "torch." + value.dtype} if dtypes else {}
        value = dict(pointer, inf_name=value.name)
    elif kind == "HOST_TENSOR":
        value = host_value(value)
    elif kind == "SHAPE":
        value = [plain_arg(item, dtypes) for item in value]
    elif kind == "SLICE":
        value = {"start": value.start, "stop": value.stop, "step": value.step}
    elif kind == "ELLIPSIS":
        value = {}
    return {"arg_type": kind, "value": value}


class Handle:
    """A tensor's name in a Transcript."""

    def __init__(self, name):
        self.name = name


class Transcript:
    """Writes a transcript while running it on the oracle, which supplies every result.

    `plain` selects the plain spelling, whose pointers name their dtype if `dtypes`;
    `string_names` gives tensors strings as names. With `sink`, a text file, entries are
    written at once and not stored."""

    def __init__(self, seed, plain=False, string_names=False, dtypes=True, sink=None):
        self.rng = Rng(seed)
        self.plain, self.string_names, self.dtypes = plain, string_names, dtypes
        self.machine = oracle.Machine()
        self.entries, self.sink, self.count = [], sink, 0
        self.last_name = 99
        self.forms = set()  # (operation name, number of arguments) used so far

    # The text

    def text(self):
        return self.opening() + ",\n".join(self.entries) + self.closing()

    def opening(self):
        return "[\n" if self.plain else '{"__type__":"ExecutionTranscript","transcript":[\n'

    def closing(self):
        return "\n]\n" if self.plain else "\n]}\n"

    def entry(self, document):
        """Appends any JSON document as the next entry; -> its index."""
        text = json.dumps(document, separators=(",", ":"))
        if self.sink:
            self.sink.write((",\n" if self.count else self.opening()) + text)
        else:
            self.entries.append(text)
        self.count += 1
        return self.count - 1

    def finish(self):
        """Ends a file that is written through a sink."""
        self.sink.write(("" if self.count else self.opening()) + self.closing())

    def kinded(self, kind, tagged_body, **plain_fields):
        if self.plain:
            return self.entry(dict({"type": kind}, **plain_fields))
        return self.entry([tag("ExecutionTranscriptOpType", value=kind), tagged_body])

    # Entries

    def segment_start(self, name):
        return self.kinded("SEGMENT_START", name, name=name)

    def segment_end(self):
        return self.kinded("SEGMENT_END", None)

    @contextlib.contextmanager
    def segment(self, name):
        self.segment_start(name)
        yield
        self.segment_end()

    def nothing(self):
        """The no-op entry, which only the tagged spelling has."""
        if not self.plain:
            self.entry([None, None])

    def free(self, *handles):
        for handle in handles:
            self.machine.free(handle.name)
            self.write_free(handle)

    def write_free(self, handle):
        """A free as an entry, whether or not the name is bound."""
        return self.kinded("FREE_DEVICE_TENSOR",
                           tag("FreeDeviceTensor", tensor_name=handle.name),
                           tensor_name=handle.name)

    def write_op(self, op):
        """An Op as an entry, without running it."""
        if self.plain:
            convert = lambda arg: plain_arg(arg, self.dtypes)
            body = {"name": op.name}
        else:
            convert = tagged_arg
            body = tag("DeviceOp", name=op.name)
        body.update(args=[convert(arg) for arg in op.args],
                    out=None if op.out is None else convert(op.out))
        return self.kinded("DEVICE_OP", body, op=body)

    # Operations

    def new_handle(self):
        """A handle with a new name; names are not dense, as in real files."""
        self.last_name += self.rng.between(1, 3)
        return Handle("t%d" % self.last_name if self.string_names else self.last_name)

    def array(self, handle):
        """The NumPy view that the oracle holds under a handle."""
        return self.machine.tensors[handle.name]

    def pointer(self, handle, dtype=None):
        if dtype is None:
            bound = self.machine.tensors.get(handle.name)
            dtype = "int64" if bound is None else bound.dtype.name
        return Arg("DEVICE_TENSOR", Pointer(handle.name, dtype))

    def arg(self, value):
        """A Python value -> Arg: Handle, int, bool, None, "int8", a list, a slice, ..."""
        if isinstance(value, Arg):
            return value
        if isinstance(value, Handle):
            return self.pointer(value)
        if value is None:
            return Arg("NONE")
        if isinstance(value, (bool, int)):
            return Arg("INT", value)
        if isinstance(value, str):
            return Arg("TENSOR_TYPE", value)
        if isinstance(value, (list, tuple)):
            return Arg("SHAPE", [self.arg(item) for item in value])
        if isinstance(value, slice):
            return Arg("SLICE", value)
        if value is Ellipsis:
            return Arg("ELLIPSIS")
        if isinstance(value, np.ndarray):
            return Arg("HOST_TENSOR", HostTensor(value))
        raise TypeError(value)

    def raw(self, name, *args, out=None):
        """Writes an operation without running it; -> the entry's index."""
        return self.write_op(Op(name, [self.arg(arg) for arg in args],
                                None if out is None else self.arg(out)))

    def op(self, name, *args, out=None):
        """Runs and writes an operation. `out` names the result; by default it is the
        output tensor among the args, or a new name. -> Handle of the result."""
        args = [self.arg(arg) for arg in args]
        form = oracle.select_form(name, args)
        self.forms.add((name.lstrip("_"), len(args)))
        kinds = [kind for _, kind in form.params]
        if form.function is oracle.free_device_tensor:
            self.machine.execute(Op(name, args, None))
            self.write_op(Op(name, args, Arg("NONE")))
            return None
        if out is None:
            out = Handle(args[kinds.index("O")].value.name) if "O" in kinds else self.new_handle()
        self.machine.execute(Op(name, args, Arg("DEVICE_TENSOR", Pointer(out.name, None))))
        self.write_op(Op(name, args, self.pointer(out)))
        return out

    def upload(self, values, dtype=None, out=None, **npy_format):
        """host_to_device; dtype is what `out` names, by default the array's own. Where
        pointers name no dtype the payload itself has it.
        npy_format: version, fortran, big_endian."""
        array = np.asarray(values)
        if not self.dtypes:
            array = array.astype(dtype or array.dtype)
        out = out or self.new_handle()
        target = Arg("DEVICE_TENSOR", Pointer(out.name, dtype or array.dtype.name))
        op = Op("host_to_device", [Arg("HOST_TENSOR", HostTensor(array, **npy_format))], target)
        self.machine.execute(op)
        self.write_op(op)
        self.forms.add(("host_to_device", 1))
        return out

    def empty(self, shape, dtype="int64"):
        return self.op("empty", list(shape), dtype)

    def zeros(self, shape, dtype="int64"):
        return self.op("zeros", list(shape), dtype)

    def download(self, handle, dtype=None, none=True, **npy_format):
        """device_to_host with the true result as expectation, written as `dtype`."""
        array = self.array(handle)
        host = HostTensor(np.array(array, dtype=dtype or array.dtype, order="C"), **npy_format)
        args = [self.pointer(handle)] + ([Arg("NONE")] if none else [])
        op = Op("device_to_host", args, Arg("HOST_TENSOR", host))
        self.machine.execute(op)
        self.write_op(op)
        self.forms.add(("device_to_host", len(args)))

    def check(self, name, *args, out=None):
        """An operation, and the download of its result; -> its Handle."""
        result = self.op(name, *args, out=out)
        self.download(result)
        return result
