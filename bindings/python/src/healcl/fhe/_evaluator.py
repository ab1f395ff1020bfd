# SPDX-License-Identifier: Apache-2.0
"""CKKS on ciphertexts of other libraries."""
from __future__ import annotations

import math
import operator
import os
import struct
from collections import ChainMap
from contextlib import contextmanager
from itertools import accumulate
from numbers import Integral, Number, Real
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple,
                    TypeVar, Union, cast)

import numpy as np

from .._device import AnyDevice
from .._engine import Engine, heal_engine
from .._errors import (ArgumentError, DtypeError, NameUnknownError, ShapeError, StateError,
                       integer)
from .._handle import Closed
from .._queue import Queue
from .._refused import OnDevice
from ._arithmetic import (Arithmetic, check_key, check_layout, check_special, packed_key,
                          special_first)
from ._bootstrapping import Bootstrapping
from ._encoding import Encoder, scaled_integer
from ._linear import LinearTransform
from ._operands import Ciphertext, Operand, Plaintext, runs
from ._polynomial import evaluate
from ._record import SandboxRecorder
from ._ring import Ring

#: Stands for a Galois element among keys: that key is from the square of the secret.
RELINEARIZATION = 0
_Value = TypeVar("_Value", bound=Operand)
_Evaluator = TypeVar("_Evaluator", bound="Evaluator")
_CLOSE = 2.0**-30  # how far scales of sums may be apart, as a part of them


def naf(steps: int) -> List[int]:
    """The non-adjacent form of steps: signed powers of two with that sum, the smallest first.

        naf(7)                                  # [-1, 8]
    """
    terms, value, sign, power = [], abs(steps), -1 if steps < 0 else 1, 1
    while value:
        digit = 2 - value % 4 if value % 2 else 0
        if digit:
            terms.append(sign * digit * power)
        value, power = (value - digit) // 2, 2 * power
    return terms


class Evaluator(Closed):
    """Evaluates CKKS on a device, as SEAL 4 does; from from_seal() or from_arrays().

    ring          the primes of ciphertexts, then the special primes
    special       the number of special primes
    stack_memory  the most bytes that a stack of ciphertexts takes in key switching. Larger stacks
                  are cut, down to one ciphertext. It can be set

        with fhe.from_arrays(dev, ring, relinearization_key=key) as he:
            a = he.load(array, 2.0**40)

    A ciphertext belongs to its evaluator. Operations are enqueued, but not waited for. Keys are
    uploaded when they are first used, or by load_keys().
    """

    stack_memory = 1 << 28

    def __init__(self, engine: Any, ring: Ring, special: int, dnum: int, keys: Any,
                 nearest: Tuple[bool, bool] = (True, True), generator: int = 3,
                 turn: str = "before", ephemeral: Optional[Sequence[Any]] = None) -> None:
        self.ring, self.special = ring, special
        self._dnum, self._keys, self._nearest = dnum, keys, nearest
        self._generator, self._turn, self._ephemeral = generator, turn, ephemeral
        self._encoder: Optional[Encoder] = None  # made when first needed
        self._primes = ring.moduli[:len(ring.moduli) - special]
        self._bits = [product.bit_length() for product in accumulate(self._primes, operator.mul)]
        self._start(engine)

    def _start(self, engine: Any) -> None:
        self._engine = engine
        self._on = Arithmetic(engine, special_first(self.ring, self.special), self.special,
                              self._dnum, self._nearest)
        # Keys on the device by Galois element, the levels that they reach, and may reach.
        self._loaded: Dict[int, Tuple[Any, int, int]] = {}

    @property
    def queue(self) -> Queue:
        """The queue to which the tensors of ciphertexts and plaintexts belong.

            doubled = he.load(he.queue.ops.modsum(a.tensor, a.tensor, column), a.scale)
        """
        return cast(Queue, self._engine.queue)

    def wait(self) -> None:
        """Waits until the device has finished all operations.

            he.wait()                           # before a clock is read
        """
        self.queue.wait()

    def close(self) -> None:
        """Ends current operations, and frees the device's memory. Afterwards ciphertexts can only
        be dropped. In a recording it does nothing: the recording ends with its 'with'."""
        if not isinstance(self._engine, SandboxRecorder):
            self._engine.queue.close()

    def __repr__(self) -> str:
        return "<healcl.fhe.%s: %r, %d special>" % (type(self).__name__, self.ring, self.special)

    # ---- in and out

    def load(self, values: Any, scale: Optional[float] = None, name: Optional[str] = None) -> Any:
        """Uploads a ciphertext from an array, int64 [parts, k, n] in [0, q), or a plaintext from
        [k, n]: values in the ring's order, modulo its first k primes. A ciphertext is decrypted as
        parts[0] + parts[1] s + parts[2] s^2. scale: the scale of its numbers. name: the
        ciphertext's name in a recording, for session.inputs.

            a = he.load(array, 2.0**40, name="a")

        An array [parts, count, k, n] is a stack of ciphertexts, or with one part a stack of
        plaintexts. A tensor of the queue is taken, too, without a copy or a check of residues.
        """
        return self._load(values, scale, self.ring.n // 2, "the array", name)

    def _load(self, values: Any, scale: Any, slots: int, what: str, name: Optional[str]) -> Any:
        on_device = isinstance(values, OnDevice)
        array: Any = values if on_device else np.asarray(values)
        shape = list(array.shape)
        if len(shape) not in ((4,) if on_device else (2, 3, 4)) or 0 in shape or (
                len(shape) == 3 and shape[0] < 2):
            raise ShapeError("%s has the shape %s, but a ciphertext needs [2 or more parts, k, n], "
                             "a plaintext [k, n]" % (what, shape))
        primes = self._primes[:shape[-2]]
        if not on_device:
            array = self.ring.check(array, primes, len(shape), what)
        elif shape[2:] != [len(primes), self.ring.n] or array.dtype != np.int64:
            raise ShapeError("the tensor is %s %s, not int64 [parts, count, k, %d]" % (
                array.dtype, shape, self.ring.n))
        scale = self._check_scale(scale, len(primes))
        plain = len(shape) == 2 or shape[0] == 1
        if not on_device:
            lead = shape[:2] if len(shape) == 4 else (shape[0] if len(shape) == 3 else 1, 1)
            array = array.reshape(*lead, *shape[-2:])
            array = self._on.upload(array, not plain) if plain or not isinstance(
                self._engine, SandboxRecorder) else self._engine.upload_input(array, name)
        return (Plaintext if plain else Ciphertext)(self, array, scale, slots)

    def encode(self, values: Any, like: Union[Ciphertext, int],
               scale: Optional[float] = None) -> Any:
        """Encodes numbers in slots as a plaintext.

        values  one number for all slots, or at most n/2 numbers; real or complex. Rows of numbers
                give a list of plaintexts, in less time than single ones: slices of one tensor
        like    the level of the plaintext, or a ciphertext of that level
        scale   the scale of the plaintext; None: the ciphertext's

            a + he.encode([0.5, 1.5], a)
            he.dot(he.rotations(a, [0, 1]), he.encode([[1, 2], [3, 4]], a))
        """
        level, scale = self._encoding(like, scale)
        slots = self.ring.n // 2
        try:
            if type(values) is list and values and type(values[0]) is float:
                values = np.frombuffer(struct.pack("%dd" % len(values), *values))  # is faster
        except struct.error:  # complex numbers
            pass
        try:
            numbers = np.asarray(values)
        except ValueError:  # rows of different lengths
            numbers = np.array(None)
        if numbers.dtype.kind not in "iufc" or numbers.ndim > 2 or numbers.shape[-1:] > (slots,):
            raise ArgumentError("encode() takes a number, at most %d numbers, or rows of them, not "
                                "%s of shape %s" % (slots, numbers.dtype, list(numbers.shape)))
        numbers = numbers.astype(complex if numbers.dtype.kind == "c" else float)
        if not np.isfinite(numbers).all():
            raise ArgumentError("encode() takes only finite numbers")
        rows = numbers if numbers.ndim == 2 else numbers[None] if numbers.ndim else \
            np.full((1, slots), numbers) if numbers.dtype.kind == "c" else numbers
        if numbers.ndim < 2:
            return self._plaintext(rows, level, scale)
        return list(self._plaintext(rows, level, scale)) if len(rows) else []

    def _plaintext(self, numbers: np.ndarray, level: int, scale: float,
                   wide: bool = False) -> Plaintext:
        """A real number for all slots [], or rows [m, at most n/2] of numbers, as a stack. wide:
        modulo the special primes, too, which come first."""
        return Plaintext(self, self._encoded(numbers, level, scale, wide), scale,
                         self.ring.n // 2)

    def _coefficients(self, numbers: np.ndarray, scale: float) -> Tuple[np.ndarray, float]:
        if self._encoder is None:
            self._encoder = Encoder(self.ring, self._generator)
        return self._encoder.coefficients(numbers, scale)

    def _encoded(self, numbers: np.ndarray, level: int, scale: float, wide: bool = False) -> Any:
        """A number for all slots [], or rows [m, at most n/2] -> a tensor [1, m, level + 1, n]."""
        coefficients, bits = self._coefficients(numbers, scale)
        if bits >= self._bits[level]:
            raise ArgumentError("the numbers times 2^%.2f do not fit in the %d bits of level %d" % (
                math.log2(scale), self._bits[level], level))
        first, end = 0 if wide else self.special, self.special + level + 1
        if coefficients.dtype.kind == "f":
            moduli = self._on.ring.moduli[first:end]
            coefficients = np.array([[[int(value) % q for value in row] for q in moduli]
                                     for row in coefficients])
        return self._on.encoded(coefficients, first, end)

    def _encoding(self, like: Any, scale: Any) -> Tuple[int, float]:
        """The level and the scale of a plaintext."""
        if isinstance(like, Operand):
            level, scale = self._ciphertext(like).level, like.scale if scale is None else scale
        else:
            level = integer(like, "a level")
            if not 0 <= level < len(self._primes):
                raise ArgumentError("a level must be from 0 to %d, not %d" % (len(self._primes) - 1,
                                                                         level))
        return level, self._check_scale(scale, level + 1)

    def store(self, a: Ciphertext) -> Any:
        """Returns the residues, int64 [parts, level + 1, n] in [0, q), in the ring's order.

            he.store(a * b).shape               # (3, 4, 16384)
        """
        return self._own(a).read()

    @contextmanager
    def record(self: _Evaluator, path: Union[str, os.PathLike[str]], *,
               inputs: bool = True) -> Iterator[_Evaluator]:
        """Creates an evaluator, for a 'with', that also writes a transcript of its operations.

        path    the transcript's path; compressed if it ends in .gz
        inputs  whether the elements of keys and ciphertexts are written; those of plaintexts,
                moduli and tables always are

        The first segment, "upload", has keys and plaintexts. The next one has the ciphertexts, with
        the names that load() was given. store() is recorded as a download with its result. If the
        transcript is not compressed, tensors of 64 KiB or more are in a file beside it, PATH.bin.

            with he.record("square.json") as program:
                a = program.load(ciphertext, name="a")
                program.expect(program.square(a), library_s_square)
        """
        if isinstance(self._engine, SandboxRecorder):
            raise StateError("recordings do not nest")
        with SandboxRecorder(path, self._engine, inputs) as recorder:
            program = object.__new__(type(self))
            program.__dict__.update(self.__dict__)
            program._start(recorder)
            yield program

    def expect(self, a: Ciphertext, values: Any) -> None:
        """Records a download, with an expected result from another library: an array as for
        load(). Only for evaluators of record().

            program.expect(a * b, library_s_product)
        """
        if not isinstance(self._engine, SandboxRecorder):
            raise StateError("only an evaluator of record() can expect results")
        array = self.ring.check(values, self._primes[:self._ciphertext(a).level + 1], 3,
                                "the expected result")
        if len(array) != a.size:
            raise ShapeError("the expected result has %d parts, not %d" % (len(array), a.size))
        self._engine.expect(a._tensor, array[:, None])

    # ---- checks

    def _own(self, operand: Any) -> Operand:
        if not isinstance(operand, Operand):
            raise DtypeError("an operand must be a Ciphertext, a Plaintext or a number, not %s: "
                             "use load() or encode()" % type(operand).__name__)
        if operand._evaluator is not self:
            raise ArgumentError("the operand belongs to another evaluator")
        return operand

    def _ciphertext(self, operand: Any) -> Ciphertext:
        if not isinstance(self._own(operand), Ciphertext):
            raise DtypeError("a ciphertext is needed, not a plaintext")
        return cast(Ciphertext, operand)

    def _check_scale(self, scale: Any, primes: int) -> float:
        try:
            number = float(scale) if isinstance(scale, (float, Real)) else 0.0
        except OverflowError:
            number = math.inf
        if not 0 < number < math.inf:
            raise ArgumentError("a scale must be a finite number above 0, not %r" % (scale,))
        bits = self._bits[primes - 1]
        if int(math.log2(number)) >= bits:
            raise ArgumentError("scale 2^%.2f does not fit in the %d bits of level %d" % (
                math.log2(number), bits, primes - 1))
        return number

    def _pair(self, a: Any, b: Any, is_sum: bool) -> Tuple[Ciphertext, Operand]:
        a = self._ciphertext(a)
        b = self._own(self._scalar(a, b, is_sum) if isinstance(b, Number) else b)
        if a.level != b.level:
            raise ArgumentError("levels %d and %d differ: mod_switch() or rescale() the higher one"
                                % (a.level, b.level))
        if len(a) != len(b) and 1 not in (len(a), len(b)):
            raise ShapeError("stacks of %d and %d operands do not match" % (len(a), len(b)))
        if is_sum:
            self._check_scales(a.scale, b.scale)
        else:
            self._check_scale(a.scale * b.scale, a.level + 1)
        return a, b

    def _check_scales(self, a: float, b: float) -> None:
        if abs(a - b) <= _CLOSE * max(a, b):
            return
        advice = "rescale() the larger one, or encode() with the other's"
        if abs(math.log2(a / b)) < 1:
            advice = "multiply one by a plaintext that makes them equal, or set " \
                "a.scale = b.scale, which changes its numbers by a part of %.1g" % (
                    abs(a - b) / max(a, b))
        raise ArgumentError("scales 2^%.9f and 2^%.9f differ by more than 2^-30: %s" % (
            math.log2(a), math.log2(b), advice))

    def _scalar(self, a: Ciphertext, number: Any, is_sum: bool) -> Plaintext:
        """A number for all slots, [1, 1, k, 1], because a constant polynomial has equal values."""
        primes = self._primes[:a.level + 1]
        scale = a.scale if is_sum else 1.0 if isinstance(number, Integral) else float(primes[-1])
        if not isinstance(number, Real):
            return cast(Plaintext, self.encode(number, a, scale))
        value = scaled_integer(number, scale)
        if abs(value) >= math.prod(primes) // 2:
            raise ArgumentError("%r at scale 2^%.2f does not fit in level %d" % (
                number, math.log2(scale), a.level))
        return Plaintext(self, self._residues([value], a.level), scale, a._slots)

    def _residues(self, values: Sequence[int], level: int) -> Any:
        """Integers for all slots, [1, count, level + 1, 1]."""
        primes = self._primes[:level + 1]
        return self._on.upload([[[[value % q] for q in primes] for value in values]], False)

    def _new(self, like: Ciphertext, tensor: Any, scale: Optional[float] = None) -> Ciphertext:
        return Ciphertext(self, tensor, like.scale if scale is None else scale, like._slots)

    def _column(self, primes: int) -> Any:
        return self._on.column(self.special, self.special + primes)

    # ---- operations

    def add(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """Returns a + b. Levels must be equal; scales may differ by a part of 2^-30. The sum has
        the scale of a. b may be a number.

            he.add(a, b)                        # or a + b
        """
        if isinstance(b, Number) and b == 0:
            return self._new(a, self._ciphertext(a)._tensor)  # as sum() begins with 0
        return self._sum(*self._pair(a, b, True), negative=False)

    def subtract(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """Returns a - b, under the conditions of add().

            he.subtract(a, b)                   # or a - b
        """
        return self._sum(*self._pair(a, b, True), negative=True)

    def _sum(self, a: Ciphertext, b: Operand, negative: bool) -> Ciphertext:
        engine, column = self._engine, self._column(a.level + 1)
        x, y = a._tensor, self._negative(b._tensor) if negative else b._tensor
        few, many = sorted((x.shape[0], y.shape[0]))
        if few == many:
            return self._new(a, engine.modsum(x, y, column))
        count = max(len(a), len(b))
        out = self._on.empty(many, count, a.level + 1, self.ring.n)
        rest = (x if x.shape[0] == many else y)[few:]
        engine.modsum(rest if rest.shape[1] == count else engine.expand(rest, 1, count), 0, column,
                      out[few:])
        engine.modsum(x[:few], y[:few], column, out[:few])
        return self._new(a, out)

    def _negative(self, tensor: Any) -> Any:
        return self._engine.modneg(tensor, self._column(tensor.shape[2]))

    def negate(self, a: Ciphertext) -> Ciphertext:
        """Returns -a.

            he.negate(a)                        # or -a
        """
        return self._new(a, self._negative(self._ciphertext(a)._tensor))

    def multiply(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """Returns a b. Levels must be equal. Two ciphertexts of two parts make three parts. b may
        be a number: an integer keeps the scale, others multiply it by the last prime.

            he.multiply(a, b)                   # or a * b
        """
        a, other = self._pair(a, b, False)
        scale, x, y = a.scale * other.scale, a._tensor, other._tensor
        if isinstance(other, Plaintext):
            return self._new(a, self._engine.modmul(x, y, self._column(a.level + 1)), scale)
        out = self._on.empty(x.shape[0] + y.shape[0] - 1, max(len(a), len(other)), *x.shape[2:])
        self._product(x, y, out)
        return self._new(a, out, scale)

    def _product(self, x: Any, y: Any, out: Any) -> None:
        """Writes the product of tensors of two or more parts to out."""
        engine, column, parts = self._engine, self._column(x.shape[2]), range(out.shape[0])
        moduli = self._on.moduli(self.special, self.special + x.shape[2])
        if len(parts) == 3:  # the outer ones at once
            engine.modmul(x, y, column, out[::2])
            parts = range(1, 2)
        if len(parts) == 1 and x is y:
            middle = engine.modmul(x[:1], x[1:], column, out[1:2])
            engine.modsum(middle, middle, column, middle)
            return
        for part in parts:
            first = max(0, part + 1 - y.shape[0])
            engine.modmul(x[first:first + 1], y[part - first:part - first + 1], column,
                          out[part:part + 1])
            for i in range(first + 1, min(part + 1, x.shape[0])):
                for c in range(out.shape[1]):
                    at, beside = c % x.shape[1], c % y.shape[1]
                    engine.modmul_axis_sum(x[i:i + 1, at:at + 1], y[part - i, beside:beside + 1],
                                           moduli, out[part, c:c + 1], -1)

    def square(self, a: Ciphertext) -> Ciphertext:
        """Returns a a, with three parts. It needs one product less than multiply(a, b).

            he.relinearize(he.square(a))        # or a * a
        """
        return self.multiply(a, a)

    def dot(self, ciphertexts: Sequence[Ciphertext],
            plaintexts: Sequence[Plaintext]) -> Ciphertext:
        """Returns the sum of products of ciphertexts and plaintexts, given as lists or stacks.
        Levels must be equal, and the products' scales may differ by a part of 2^-30. If both are
        adjacent slices of stacks, this is a single call. Nothing is copied.

            he.dot(he.rotations(a, range(4)), he.encode(rows, a))
        """
        a, b = list(ciphertexts), list(plaintexts)
        if not a or len(a) != len(b):
            raise ShapeError("dot() needs as many plaintexts as ciphertexts, not %d and %d" % (
                len(b), len(a)))
        for x, y in zip(a, b):
            self._pair(x, y, False)
            if not isinstance(y, Plaintext) or len(x) + len(y) > 2 or x.size != a[0].size:
                raise DtypeError("dot() takes ciphertexts of equal size, then plaintexts")
            self._check_scales(a[0].scale * b[0].scale, x.scale * y.scale)
            self._pair(a[0], y, False)
        moduli = self._on.moduli(self.special, self.special + a[0].level + 1)
        out = self._engine.zeros((a[0].size, a[0].level + 1, self.ring.n), np.int64)
        for _, (x, y) in runs(a, b):
            self._engine.modmul_axis_sum(x, y[0], moduli, out, -1)
        return self._new(a[0], self._engine.unsqueeze(out, 1), a[0].scale * b[0].scale)

    def relinearize(self, a: Ciphertext) -> Ciphertext:
        """Makes two parts of three: switches the key of the third part.

            he.relinearize(a * b)
        """
        a = self._ciphertext(a)
        if a.size == 2:
            return a
        if a.size > 3:
            raise ArgumentError("cannot relinearize %d parts: relinearize() each product" % a.size)
        if RELINEARIZATION not in self._keys:
            raise NameUnknownError("there is no relinearization key: pass relinearization_keys to "
                                   "from_seal(), or relinearization_key to from_arrays()")
        keys = self._keys_at(a.level, [RELINEARIZATION] * len(a))
        return self._switched(a, keys, a._tensor[2:], a._tensor[:2])

    def _switched(self, a: Ciphertext, keys: List[Any], c: Any, added: Any,
                  on: Optional[Arithmetic] = None) -> Ciphertext:
        """Switches parts c [1, count, k, n], each with its key, and adds [1 or 2, count, k, n]."""
        on = on or self._on
        cuts = list(self._cuts([RELINEARIZATION] * len(a), a.level))
        if len(cuts) == 1:
            return self._new(a, on.switch(on.spread(c), keys, added))
        out = on.empty(2, *a._tensor.shape[1:])
        for i, end in cuts:
            on.switch(on.spread(c[:, i:end]), keys[i:end], added[:, i:end], out=out[:, i:end])
        return self._new(a, out)

    def _cuts(self, elements: Sequence[int], level: int) -> Iterator[Tuple[int, int]]:
        """Ranges that stack_memory allows, without element 1, which needs no key."""
        digits = sum(digit.start <= level for digit in self._on.digits)
        most = self.stack_memory // (
            8 * self.ring.n * (self.special + level + 1) * (digits + 2))
        first = 0
        for end in range(1, len(elements) + 1):
            if end == len(elements) or end - first >= most or 1 in (elements[first], elements[end]):
                if elements[first] != 1:
                    yield first, end
                first = end

    def rescale(self, a: Ciphertext) -> Ciphertext:
        """Divides by the last prime, and drops it. The scale is divided, too.

            he.rescale(he.relinearize(a * b))
        """
        last = self._primes[self._above_last(self._ciphertext(a).level)]
        return self._new(a, self._on.rescale(a._tensor), a.scale / float(last))

    def mod_switch(self, a: _Value, level: Optional[int] = None) -> _Value:
        """Lowers the level of a ciphertext or plaintext, and keeps its scale.

        level  the new level, from 0; None: one less

            he.mod_switch(a, b.level) + b
        """
        above = self._own(a).level
        level = self._above_last(above) - 1 if level is None else integer(level, "a level")
        if not 0 <= level <= above:
            raise ArgumentError("cannot switch from level %d to level %d" % (above, level))
        self._check_scale(a.scale, level + 1)
        return type(a)(self, a._tensor[:, :, :level + 1], a.scale, a._slots, a._place)

    def _above_last(self, level: int) -> int:
        if level < 1:
            raise ArgumentError("level 0 has only one prime, which cannot be dropped")
        return level

    def mod_raise(self, a: Ciphertext, level: Optional[int] = None) -> Ciphertext:
        """Raises the level: the same integers modulo more primes. The result decrypts to the
        message plus a multiple of the old modulus, which bootstrapping removes.

        level  the new level; None: the highest

            he.mod_raise(he.mod_switch(a, 0))
        """
        level = len(self._primes) - 1 if level is None else integer(level, "a level")
        old, on, engine, first = self._ciphertext(a).level, self._on, self._engine, self.special
        if not old <= level < len(self._primes):
            raise ArgumentError("cannot raise level %d to level %d" % (old, level))
        source, end = range(first, first + old + 1), first + level + 1
        half = math.prod(self._primes[:old + 1]) >> 1

        def halves(sign: int) -> Any:
            return on.constant(("halves", sign, old), lambda: [
                [sign * half % q] for q in on.ring.moduli[first:]])

        x = on.coefficients(a._tensor, first, source.stop)
        engine.modsum(x, halves(1)[:old + 1], self._column(old + 1), x)
        on.prepare(x, [source])
        x = on.convert(x, source, first, end)
        engine.modsum(x, halves(-1)[:level + 1], self._column(level + 1), x)
        return self._new(a, on.transform(x, first, end, x))

    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Rotates the slots to the left by steps, or to the right if steps is negative. Without a
        Galois key for steps, it rotates by powers of two, as SEAL does.

            he.rotate(a, -3)                    # a key for -3, or keys for 1 and -4
        """
        terms = self._ciphertext(a)
        for element in self._path(steps):
            terms = self._turned(list(terms), [element] * len(terms))
        return terms

    def rotations(self, a: Union[Ciphertext, Sequence[Ciphertext]],
                  steps: Iterable[int]) -> List[Ciphertext]:
        """Returns a rotation for each item of steps, in few calls: slices of one tensor. If turn is
        not "before", all rotations of one ciphertext share its decomposition.

        a  a ciphertext, or a list with one ciphertext for each item of steps

            he.dot(he.rotations(a, range(8)), he.encode(rows, a))
        """
        paths = [self._path(each) for each in steps]
        given = [self._ciphertext(each) for each in a]
        if len(given) not in (1, len(paths)):
            raise ShapeError("%d ciphertexts do not match %d numbers of steps" % (len(given),
                                                                                    len(paths)))
        which = [i for i, path in enumerate(paths) if path or len(given) == 1]
        given *= len(paths) if len(given) == 1 else 1
        terms = list(given)
        for i in range(max(map(len, paths), default=0)):
            turned = self._turned([terms[j] for j in which], [
                paths[j][i] if i < len(paths[j]) else 1 for j in which])
            for j, term in zip(which, turned):
                terms[j], term._scale, term._slots = term, given[j]._scale, given[j]._slots
        return terms

    def _path(self, steps: int) -> List[int]:
        """The Galois elements whose keys rotate the slots by steps."""
        element = self.ring.galois_element(steps, self._generator)
        if element in self._keys and element != 1:
            return [element]
        powers = [power for power in naf(steps) if abs(power) != self.ring.n // 2]
        elements = [self.ring.galois_element(power, self._generator) for power in powers]
        if not all(each in self._keys for each in elements):
            raise NameUnknownError("there is no Galois key for %d steps, element %d of generator "
                                   "%d, in galois_keys%s" % (
                                       steps, element, self._generator, "" if powers == [steps] else
                                       ", and not all keys for %s" % ", ".join(map(str, powers))))
        return elements

    def _rotated_sum(self, a: Sequence[Ciphertext], steps: Sequence[int]) -> Ciphertext:
        """The sum of one rotation of each ciphertext."""
        paths = [self._path(each) for each in steps]
        if self._turn != "before" or max(map(len, paths)) > 1:
            return cast(Ciphertext, sum(self.rotations(a, steps)))
        return self._turned(a, [path[0] if path else 1 for path in paths], summed=True)

    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """Returns the conjugates of the slots.

            he.conjugate(a)
        """
        element = 2 * self.ring.n - 1
        if element not in self._keys:
            raise NameUnknownError("there is no Galois key to conjugate, element %d, in "
                                   "galois_keys" % element)
        return self._turned(list(self._ciphertext(a)), [element] * len(a))

    def _turned(self, a: Sequence[Ciphertext], elements: Sequence[int],
                summed: bool = False) -> Ciphertext:
        """A stack of the ciphertexts, each rotated by its Galois element, or copied for element 1;
        or their sum, if they are rotated before key switching."""
        engine, on, like = self._engine, self._on, a[0]
        alike = all(each is like for each in a)
        for each in a[:1 if alike else None]:
            if each.size != 2:
                raise ArgumentError("cannot rotate a ciphertext of %d parts: relinearize() it" %
                                    each.size)
            if len(each) > 1 or each.level != like.level:
                raise ArgumentError("a stack is rotated as a whole, and rotations need one level")
        column = self._column(like.level + 1)
        cuts = list(self._cuts(elements, like.level))
        whole = summed or cuts == [(0, len(a))]  # what switch() returns is the result
        out: Any = None if whole else on.empty(2, len(a), like.level + 1, self.ring.n)
        hoisted = on.spread(like._tensor[1:]) if alike and self._turn != "before" else None
        for i, end in cuts:
            keys = self._keys_at(like.level, elements[i:end])
            indices = self._indices(elements[i:end])
            part = None if whole else out[:, i:end]
            values = self._joined(a[i:end], indices if self._turn == "before" else None)
            spread = on.spread(values[1:]) if hoisted is None else hoisted
            if self._turn == "after":
                part = engine.take_along_axis(on.switch(spread, keys, values[:1]), indices, 3, part)
            else:
                part = on.switch(spread, keys, values[:1],
                                 indices if self._turn == "within" else None, part, summed)
            if whole:
                out = part if out is None else engine.modsum(out, part, column)
        for i, element in enumerate(elements):
            if element == 1 and summed:
                term = a[i]._tensor
                out = term if out is None else engine.modsum(out, term, column)
            elif element == 1:
                engine.modsum(a[i]._tensor, 0, column, out[:, i:i + 1])
        return self._new(like, out)

    def _indices(self, elements: Sequence[int]) -> Any:
        """Indices of rotations by the Galois elements, [1, count, 1, n]."""
        return self._on.constant(("indices", *elements), lambda: np.stack(
            [self.ring.automorphism(each) for each in elements])[None, :, None])

    def _joined(self, terms: Sequence[Ciphertext], indices: Any) -> Any:
        """The terms as one tensor [2, count, k, n], or [2, 1, k, n] if all are the same. indices:
        None, or [1, count, 1, n] to rotate them."""
        pieces = [(0, [terms[0]._tensor])] if all(each is terms[0] for each in terms) else \
            list(runs(terms))
        if len(pieces) == 1:
            tensor = pieces[0][1][0]
            return tensor if indices is None else self._engine.take_along_axis(tensor, indices, 3)
        level = terms[0].level
        out = self._on.empty(2, len(terms), level + 1, self.ring.n)
        for i, (tensor,) in pieces:
            end = i + tensor.shape[1]
            if indices is None:
                self._engine.modsum(tensor, 0, self._column(level + 1), out[:, i:end])
            else:
                self._engine.take_along_axis(tensor, indices[:, i:end], 3, out[:, i:end])
        return out

    # ---- programs

    def prepare(self, transform: LinearTransform, level: int,
                scale: Optional[float] = None) -> None:
        """Encodes a transform's diagonals ahead of apply() at a level.

        scale  the scale of the diagonals; None: the level's last prime, so that apply() keeps the
               ciphertext's scale

            he.prepare(t, a.level)
        """
        self._encoding(level, 1.0)
        self._on.drop(("prepared", transform, level))
        transform.prepared(self, level, scale)

    def apply(self, program: Union[LinearTransform, Bootstrapping], a: Ciphertext) -> Ciphertext:
        """Applies a transform or a bootstrapping, which handles levels and scales itself.

            y = he.apply(fhe.LinearTransform(diagonals, slots), x)
        """
        return program.apply(self, self._ciphertext(a))

    def polynomial(self, a: Ciphertext, coefficients: Any, basis: str = "power",
                   scale: Optional[float] = None) -> Ciphertext:
        """Evaluates a polynomial of the slots by Paterson and Stockmeyer's method (1973). Degree d
        needs about log2(d + 1) + 1 levels.

        coefficients  real numbers, the lowest first
        basis         "power", or "chebyshev" for slots in [-1, 1]
        scale         the scale of the result; None: that of a

            y = he.polynomial(x, [0.5, 0.25, 0, -1 / 48])
            cosine = np.polynomial.chebyshev.chebinterpolate(np.cos, 15)
            y = he.polynomial(x, cosine, basis="chebyshev")
        """
        if basis not in ("power", "chebyshev"):
            raise ArgumentError("basis must be 'power' or 'chebyshev', not %r" % (basis,))
        default = self._ciphertext(a).scale
        scale = self._check_scale(default if scale is None else scale, a.level + 1)
        return evaluate(self, a, coefficients, basis == "chebyshev", scale)

    # ---- keys

    def load_keys(self, steps: Optional[Iterable[int]] = None,
                  level: Optional[int] = None) -> int:
        """Uploads keys ahead of their first use. Returns the bytes that they take on the device.

        steps  the steps of rotations whose keys are uploaded; None: all keys
        level  the highest level at which they are used; keys are cut to it. None: do not cut

            he.load_keys(transform.rotations, level=3)
        """
        elements = self._keys if steps is None else {
            element for each in steps for element in self._path(each)}
        level = len(self._primes) - 1 if level is None else integer(level, "a level")
        keys = [self._key(element, level, True) for element in elements]
        if steps is None and self._ephemeral:
            keys += self._ephemeral_keys()
        return sum(int(key.nbytes) for key in keys)

    def _key(self, element: int, level: int, cut: bool = False) -> Any:
        """A key that reaches a level. Loads it if needed; with cut, only up to that level."""
        tensor, reach, full = self._loaded.get(element, (None, -1, level))
        if reach < min(level, full):
            what = "the key of element %d" % element if element else "the relinearization key"
            layout = self.ring, self.special, self._dnum, self._keys[element]
            full = check_key(*layout, what)
            reach = min(level, full) if cut else full
            tensor = self._on.key(packed_key(*layout, reach, what))
            self._loaded[element] = tensor, reach, full
            for each in range(level):
                self._on.drop(("key", element, each))  # views of one that reached less
        if full < level and not cut:
            raise ArgumentError("the key of element %d reaches level %d, not %d" % (element, full,
                                                                                   level))
        return tensor

    def _keys_at(self, level: int, elements: Sequence[int]) -> List[Any]:
        return [self._on.keep(("key", element, level), lambda: self._on.cut(
            self._key(element, level), level)) for element in elements]

    def load_key(self, values: Any, special: Optional[int] = None) -> Key:
        """Uploads a key for key_switch(): an array as for fhe.key_switch(), or cut to a level,
        int64 [digits, 2, level + 1 + special, n]. special: the number of special primes in it,
        which are the first ones.

            key = he.load_key(array)
        """
        return Key(self, values, self.special if special is None else integer(special, "special"))

    def key_switch(self, a: Ciphertext, key: Key) -> Ciphertext:
        """Switches from the key's old secret to its new one.

            he.key_switch(a, he.load_key(array))
        """
        if self._ciphertext(a).size != 2:
            raise ArgumentError("cannot switch a ciphertext of %d parts: relinearize() it" %
                                a.size)
        if not isinstance(key, Key) or key.evaluator is not self:
            raise DtypeError("a key must come from load_key() of this evaluator")
        if a.level > key.level:
            raise ArgumentError("the key reaches level %d, not %d" % (key.level, a.level))
        return self._switched(a, [key.on.cut(key.tensor, a.level)] * len(a), a._tensor[1:],
                              a._tensor[:1], key.on)

    def _ephemeral_keys(self) -> List[Key]:
        to, back = cast(Sequence[Any], self._ephemeral)
        return cast(List[Key], self._on.keep("ephemeral", lambda: [
            self.load_key(to, np.shape(to)[2] - 1), self.load_key(back)]))

    def _raised(self, a: Ciphertext) -> Ciphertext:
        """As mod_raise(), but under the ephemeral secret, if any."""
        if not self._ephemeral:
            return self.mod_raise(a)
        there, back = self._ephemeral_keys()
        return self.key_switch(self.mod_raise(self.key_switch(a, there)), back)


class Key:
    """A key on a device, for Evaluator.key_switch(); from load_key().

        key.level, key.nbytes               # the highest level of ciphertexts, and the key's size
    """

    def __init__(self, evaluator: Evaluator, values: Any, special: int) -> None:
        ring, dnum, self.on = evaluator.ring, evaluator._dnum, evaluator._on
        primes = len(ring.moduli) - evaluator.special
        if special != evaluator.special:
            shape = np.shape(values)
            count = shape[2] - special if len(shape) == 4 else 0
            if not (0 < special <= evaluator.special and 0 < count <= primes):
                raise ShapeError("the key has the shape %s, with %d special primes" % (
                    list(shape), special))
            ring, dnum = ring.pick([*range(count), *range(primes, primes + special)]), shape[0]
            self.on = Arithmetic(evaluator._engine, special_first(ring, special), special, dnum,
                                 evaluator._nearest)
        check_special(ring, special, dnum)
        self.evaluator, self.level = evaluator, check_key(ring, special, dnum, values, "the key")
        self.tensor = self.on.key(packed_key(ring, special, dnum, values, self.level, "the key"))
        self.nbytes = int(self.tensor.nbytes)


def engine_of(device: Union[AnyDevice, Queue]) -> Engine:
    """Returns an engine on a device, or on a queue of the caller."""
    if isinstance(device, Queue):
        return Engine(device)
    engine = heal_engine(device, expand="spec")
    engine.queue._handle.what = "evaluator"  # in errors, after close()
    return engine


def from_arrays(device: Union[AnyDevice, Queue], ring: Ring, *, special: int = 1,
                relinearization_key: Any = None, galois_keys: Optional[Mapping[int, Any]] = None,
                dnum: Optional[int] = None, rounding: str = "nearest",
                key_rounding: str = "nearest", generator: int = 3, turn: str = "before",
                ephemeral_keys: Optional[Sequence[Any]] = None) -> Evaluator:
    """Creates an evaluator for ciphertexts and keys in arrays, for adapters of other libraries.

    device               a device, or a queue, whose operations can then use ciphertexts' tensors
    ring                 the primes of ciphertexts, of which rescale() drops the last, then the
                         special primes; with the library's psi
    special              the number of special primes
    relinearization_key  int64 [digits, 2, primes of the ring, n] in [0, q): see key_switch(); or
                         cut to a level, [its digits, 2, level + 1 + special, n]
    galois_keys          such keys by Galois element, see Ring.galois_element(): a dict, or a
                         mapping that creates a key on request; 0 is the relinearization key
    dnum                 digits of key switching; None: one for each prime of ciphertexts
    rounding             in rescale(): "nearest", as in SEAL and OpenFHE, or "down"
    key_rounding         in key switching: "nearest", as in SEAL, or "down", as in OpenFHE
    generator            the generator of Galois elements of rotations: 3 in SEAL, 5 in OpenFHE
    turn                 when rotate() and conjugate() move the slots: "before" key switching, as in
                         SEAL, with keys from s(x^element) to s(x); "within" it, before the
                         division, as in OpenFHE 1.6, or "after" it, as in OpenFHE 1.5, with keys
                         from s(x) to s(x^(1/element))
    ephemeral_keys       for bootstrapping with a dense secret: a key to a sparse one, at level 0 with
                         any number of the first special primes, [1, 2, 1 + special, n]; a key back

        ring = fhe.Ring(32768, primes + special_primes)
        with fhe.from_arrays(dev, ring, special=2, relinearization_key=key, dnum=3) as he:
            result = he.store(he.relinearize(he.load(a, scale) * he.load(b, scale)))
    """
    special, dnum = check_layout(ring, special, dnum, rounding, key_rounding)
    ring.automorphism(integer(generator, "a generator") % (2 * ring.n))
    if turn not in ("before", "within", "after"):
        raise ArgumentError("turn is 'before', 'within' or 'after', not %r" % (turn,))
    first = {} if relinearization_key is None else {RELINEARIZATION: relinearization_key}
    keys = ChainMap(first, cast(Dict[int, Any], galois_keys or {}))
    for element in galois_keys or ():
        ring.automorphism(element or 1)
    if keys:
        check_special(ring, special, dnum)
    for element in first if not isinstance(galois_keys, dict) else keys:
        check_key(ring, special, dnum, keys[element], "the key of element %d" % element
                  if element else "the relinearization key")
    return Evaluator(engine_of(device), ring, special, dnum, keys,
                     (rounding == "nearest", key_rounding == "nearest"), generator, turn,
                     ephemeral_keys)
