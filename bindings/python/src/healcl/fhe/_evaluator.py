# SPDX-License-Identifier: Apache-2.0
"""CKKS on ciphertexts of other libraries."""
from __future__ import annotations

import math
import os
from contextlib import contextmanager
from numbers import Real
from typing import Any, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union, cast

import numpy as np

from .._device import AnyDevice
from .._engine import heal_engine
from .._errors import (ArgumentError, DtypeError, NameUnknownError, ShapeError, StateError,
                       integer)
from .._handle import Closed
from ._arithmetic import Arithmetic, check_key, check_layout, special_first
from ._encoding import Encoder
from ._record import SandboxRecorder
from ._ring import Ring

#: Stands for a Galois element among keys: that key is from the square of the secret.
RELINEARIZATION = 0
_Value = TypeVar("_Value", bound="_Operand")
_Evaluator = TypeVar("_Evaluator", bound="Evaluator")


class _Operand:
    """A tensor of an evaluator, with its scale."""

    __array_ufunc__ = None  # NumPy's arithmetic would copy, and knows no moduli
    __hash__ = object.__hash__

    def __init__(self, evaluator: Evaluator, tensor: Any, scale: float, slots: int) -> None:
        self._evaluator, self._tensor, self._scale, self._slots = evaluator, tensor, scale, slots

    def __eq__(self, other: object) -> bool:
        raise DtypeError("== does not compare what is encrypted: compare residues, from read()")

    @property
    def scale(self) -> float:
        """The scale of the numbers in it, which may be set.

            linear.scale = cubic.scale          # they differ by less than a millionth
        """
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale = self._evaluator._check_scale(scale, self.level + 1)

    @property
    def level(self) -> int:
        """How many primes can still be dropped, from 0: SEAL's chain index.

            he.mod_switch(a, 0).level           # 0
        """
        return int(self._tensor.shape[2]) - 1

    def read(self) -> np.ndarray:
        """A copy of the residues, int64 [parts, level + 1, n] in [0, q), in the ring's order.

            np.array_equal(c.read(), other.read())
        """
        return np.asarray(self._evaluator._engine.device_to_host(self._tensor))[:, 0]


class Plaintext(_Operand):
    """A plaintext on a device, an operand of +, - and *; from load() or encode().

        c + he.encode([1.5, 2.5], c)
    """

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Ciphertext):
            return NotImplemented  # the ciphertext's operators take plaintexts
        return self._evaluator._ciphertext(other)  # which raises what is wrong

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__

    def __repr__(self) -> str:
        return "<healcl.fhe.Plaintext: level %d, scale 2^%.2f>" % (self.level,
                                                                  math.log2(self.scale))


class Ciphertext(_Operand):
    """A ciphertext on a device; from Evaluator.load(), or from operations.

    +, - and * take ciphertexts and plaintexts of the same level. The scales of sums are equal;
    those of products multiply. A product has three parts: relinearize() makes two of them.

        c = he.rescale(he.relinearize(a * b + b * b))
    """

    @property
    def size(self) -> int:
        """How many parts it has: 2, or 3 of a product.

            (a * b).size                        # 3
        """
        return int(self._tensor.shape[0])

    def __add__(self, other: Any) -> Ciphertext:
        return self._evaluator.add(self, other)

    def __sub__(self, other: Any) -> Ciphertext:
        return self._evaluator.subtract(self, other)

    def __rsub__(self, other: Any) -> Ciphertext:
        return self._evaluator.add(-self, other)

    def __mul__(self, other: Any) -> Ciphertext:
        return self._evaluator.multiply(self, other)

    def __neg__(self) -> Ciphertext:
        return self._evaluator.negate(self)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return "<healcl.fhe.Ciphertext: %d parts, level %d, scale 2^%.2f>" % (
            self.size, self.level, math.log2(self.scale))


def naf(steps: int) -> List[int]:
    """The non-adjacent form: powers of two with signs, the smallest first, whose sum is steps.

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

    ring     the primes of ciphertexts, then the special ones
    special  how many are special

        with fhe.from_arrays(dev, ring, relinearization_key=key) as he:
            a = he.load(array, 2.0**40)

    A ciphertext belongs to its evaluator. Operations are enqueued, and not waited for. Keys go to
    the device when they are first used.
    """

    def __init__(self, engine: Any, ring: Ring, special: int, dnum: int, keys: Any,
                 nearest: Tuple[bool, bool] = (True, True), generator: int = 3,
                 turn: str = "before") -> None:
        self.ring, self.special = ring, special
        self._dnum, self._keys, self._nearest = dnum, keys, nearest
        self._generator, self._turn = generator, turn
        self._encoder: Optional[Encoder] = None  # made when first needed
        self._primes = ring.moduli[:len(ring.moduli) - special]
        engine.queue._handle.what = "evaluator"  # in errors, after close()
        self._start(engine)

    def _start(self, engine: Any) -> None:
        self._engine = engine
        self._on = Arithmetic(engine, special_first(self.ring, self.special), self.special,
                              self._dnum, self._nearest)

    def close(self) -> None:
        """Ends what goes on, and gives the device's memory back. Ciphertexts can only be dropped
        then. Nothing in a recording, which ends with its 'with'."""
        if not isinstance(self._engine, SandboxRecorder):
            self._engine.queue.close()

    def __repr__(self) -> str:
        return "<healcl.fhe.%s: %r, %d special>" % (type(self).__name__, self.ring, self.special)

    # ---- in and out

    def load(self, values: Any, scale: Optional[float] = None) -> Any:
        """A ciphertext of an array, int64 [parts, k, n] in [0, q), or a plaintext of [k, n]: values
        in the ring's order, modulo its first k primes. A ciphertext is decrypted as parts[0] +
        parts[1] s + parts[2] s^2. scale: of the numbers in it.

            a = he.load(array, 2.0**40)
        """
        return self._load(values, scale, self.ring.n // 2, "the array")

    def _load(self, values: Any, scale: Any, slots: int, what: str) -> Any:
        array = np.asarray(values)
        if array.ndim not in (2, 3) or array.ndim == 3 and array.shape[0] < 2:
            raise ShapeError("%s has the shape %s; a ciphertext has two or more parts of two axes, "
                             "a plaintext one" % (what, list(array.shape)))
        primes = self._primes[:max(1, array.shape[-2])]
        array = self.ring.check(array, primes, array.ndim, what)
        scale = self._check_scale(scale, len(primes))
        is_input = array.ndim == 3
        tensor = self._on.upload(array.reshape(-1, 1, *array.shape[-2:]), is_input)
        return (Ciphertext if is_input else Plaintext)(self, tensor, scale, slots)

    def store(self, a: Ciphertext) -> Any:
        """The residues, int64 [parts, level + 1, n] in [0, q), in the ring's order.

            he.store(a * b).shape               # (3, 4, 16384)
        """
        return self._own(a).read()

    def encode(self, values: Any, like: Ciphertext, scale: Optional[float] = None) -> Any:
        """Numbers in slots as a plaintext of a ciphertext's level.

        values  a number for all slots, or at most n/2 of them; real or complex. Rows of numbers
                make a list of plaintexts, for less than one after the other
        scale   None: the ciphertext's

            a + he.encode(0.5, a)
        """
        level, default = self._ciphertext(like).level, like.scale
        scale = self._check_scale(default if scale is None else scale, level + 1)
        slots = self.ring.n // 2
        try:
            numbers = np.asarray(values)
        except ValueError:  # rows of different lengths
            numbers = np.array(None)
        if numbers.dtype.kind not in "iufc" or numbers.ndim > 2 or numbers.shape[-1:] > (slots,):
            raise ArgumentError("encode() takes a number, at most %d numbers, or rows of them, not "
                                "%s of shape %s" % (slots, numbers.dtype, list(numbers.shape)))
        numbers = numbers.astype(complex if numbers.dtype.kind == "c" else float)
        if not np.isfinite(numbers).all():
            raise ArgumentError("encode() takes finite numbers")
        rows = numbers if numbers.ndim == 2 else numbers[None] if numbers.ndim else \
            np.full((1, slots), numbers) if numbers.dtype.kind == "c" else numbers
        plains = [Plaintext(self, tensor, scale, slots)
                  for tensor in self._encoded(rows, level, scale)]
        return plains if numbers.ndim == 2 else plains[0]

    def _coefficients(self, numbers: np.ndarray, scale: float) -> Tuple[np.ndarray, float]:
        if self._encoder is None:
            self._encoder = Encoder(self.ring, self._generator)
        return self._encoder.coefficients(numbers, scale)

    def _encoded(self, numbers: np.ndarray, level: int, scale: float) -> List[Any]:
        """A real number for all slots [], or rows [m, at most n/2] of numbers -> tensors
        [1, 1, level + 1, n], slices of one."""
        primes = self._primes[:level + 1]
        coefficients, bits = self._coefficients(numbers, scale)
        if bits >= math.prod(primes).bit_length():
            raise ArgumentError("the numbers times 2^%.2f do not fit in the %d bits of level %d" % (
                math.log2(scale), math.prod(primes).bit_length(), level))
        if coefficients.dtype.kind == "f":
            coefficients = np.array([[[int(value) % q for value in row] for q in primes]
                                     for row in coefficients])
        return self._on.encoded(coefficients, self.special, self.special + level + 1)

    @contextmanager
    def record(self: _Evaluator, path: Union[str, os.PathLike[str]], *,
               inputs: bool = True) -> Iterator[_Evaluator]:
        """An evaluator for use in a 'with', which also writes what it does as a transcript.

        path    of the transcript; packed where it ends in .gz
        inputs  whether keys and ciphertexts are written with their elements; plaintexts, moduli and
                tables are in any case

        All is uploaded in its first segment. store() is a download, whose result is expected.

            with he.record("square.json") as program:
                a = program.load(ciphertext)
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
        """In a recording: a download, whose expected result is what load() takes, as from the
        library.

            program.expect(a * b, library_s_product)
        """
        if not isinstance(self._engine, SandboxRecorder):
            raise StateError("only what record() returns expects results")
        array = self.ring.check(values, self._primes[:self._ciphertext(a).level + 1], 3,
                                "the expected result")
        if len(array) != a.size:
            raise ShapeError("the expected result has %d parts, not %d" % (len(array), a.size))
        self._engine.expect(a._tensor, array[:, None])

    # ---- checks

    def _own(self, operand: Any) -> _Operand:
        if not isinstance(operand, _Operand):
            raise DtypeError("an operand is a Ciphertext or a Plaintext, not %s: load() or "
                             "encode() makes one" % type(operand).__name__)
        if operand._evaluator is not self:
            raise ArgumentError("the operand is one of another evaluator")
        return operand

    def _ciphertext(self, operand: Any) -> Ciphertext:
        if not isinstance(self._own(operand), Ciphertext):
            raise DtypeError("a plaintext stands where a ciphertext is wanted")
        return cast(Ciphertext, operand)

    def _check_scale(self, scale: Any, primes: int) -> float:
        try:
            number = float(scale) if isinstance(scale, Real) else 0.0
        except OverflowError:
            number = math.inf
        if not 0 < number < math.inf:
            raise ArgumentError("a scale is a finite number above 0, not %r" % (scale,))
        bits = math.prod(self._primes[:primes]).bit_length()
        if int(math.log2(number)) >= bits:
            raise ArgumentError("scale 2^%.2f does not fit in the %d bits of level %d" % (
                math.log2(number), bits, primes - 1))
        return number

    def _pair(self, a: Any, b: Any, same_scale: bool) -> Tuple[Ciphertext, _Operand]:
        a, b = self._ciphertext(a), self._own(b)
        if a.level != b.level:
            raise ArgumentError("levels %d and %d differ: mod_switch() or rescale() the higher one"
                                % (a.level, b.level))
        close = abs(a.scale - b.scale) < np.finfo(float).eps * max(a.scale, b.scale, 1.0)
        if same_scale and not close:
            raise ArgumentError("scales %r and %r differ: rescale() one, or encode() with the "
                                "other's" % (a.scale, b.scale))
        return a, b

    def _new(self, like: Ciphertext, tensor: Any, scale: Optional[float] = None) -> Ciphertext:
        return Ciphertext(self, tensor, like.scale if scale is None else scale, like._slots)

    def _column(self, primes: int) -> Any:
        return self._on.column(self.special, self.special + primes)

    # ---- operations

    def add(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """a + b, of equal levels and scales.

            he.add(a, b)                        # or a + b
        """
        return self._sum(*self._pair(a, b, True), negative=False)

    def subtract(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """a - b, of equal levels and scales.

            he.subtract(a, b)                   # or a - b
        """
        return self._sum(*self._pair(a, b, True), negative=True)

    def _sum(self, a: Ciphertext, b: _Operand, negative: bool) -> Ciphertext:
        engine, column = self._engine, self._column(a.level + 1)
        x, y = a._tensor, self._negative(b._tensor) if negative else b._tensor
        few, many = sorted((x.shape[0], y.shape[0]))
        out = target = self._on.empty(many, *x.shape[1:])
        if few < many:
            engine.modsum((x if x.shape[0] == many else y)[few:], 0, column, out[few:])
            x, y, target = x[:few], y[:few], out[:few]
        engine.modsum(x, y, column, target)
        return self._new(a, out)

    def _negative(self, tensor: Any) -> Any:
        return self._engine.modneg(tensor, self._column(tensor.shape[2]))

    def negate(self, a: Ciphertext) -> Ciphertext:
        """-a.

            he.negate(a)                        # or -a
        """
        return self._new(a, self._negative(self._ciphertext(a)._tensor))

    def multiply(self, a: Ciphertext, b: Union[Ciphertext, Plaintext]) -> Ciphertext:
        """a b, of equal levels. Of two ciphertexts of two parts it has three.

            he.multiply(a, b)                   # or a * b
        """
        a, other = self._pair(a, b, False)
        engine, primes = self._engine, a.level + 1
        column, moduli = self._column(primes), self._on.moduli(self.special, self.special + primes)
        scale = a.scale * other.scale
        self._check_scale(scale, primes)
        if isinstance(other, Plaintext):
            return self._new(a, engine.modmul(a._tensor, other._tensor, column), scale)
        x, y = a._tensor, other._tensor
        parts = range(x.shape[0] + y.shape[0] - 1)
        out = self._on.empty(len(parts), *x.shape[1:])
        if len(parts) == 3:  # the outer ones at once
            engine.modmul(x, y, column, out[::2])
            parts = range(1, 2)
        for part in parts:
            target = out[part:part + 1]
            first = max(0, part + 1 - y.shape[0])
            engine.modmul(x[first:first + 1], y[part - first:part - first + 1], column, target)
            for i in range(first + 1, min(part + 1, x.shape[0])):
                engine.modmul_axis_sum(x[i:i + 1], y[part - i], moduli, target[0], -1)
        return self._new(a, out, scale)

    def square(self, a: Ciphertext) -> Ciphertext:
        """a a, with three parts.

            he.relinearize(he.square(a))
        """
        return self.multiply(a, a)

    def relinearize(self, a: Ciphertext) -> Ciphertext:
        """Makes two parts of three: switches the third to the secret key.

            he.relinearize(a * b)
        """
        a = self._ciphertext(a)
        if a.size == 2:
            return a
        if a.size > 3:
            raise ArgumentError("cannot relinearize %d parts: relinearize() each product" % a.size)
        if RELINEARIZATION not in self._keys:
            raise NameUnknownError("there is no relinearization key: from_seal() and "
                                   "from_arrays() take it")
        return self._new(a, self._on.switch(a._tensor[2:], self._key(RELINEARIZATION),
                                            a._tensor[:2]))

    def rescale(self, a: Ciphertext) -> Ciphertext:
        """Divides by the last prime, which is dropped: the scale goes down with it.

            he.rescale(he.relinearize(a * b))
        """
        last = self._primes[self._above_last(self._ciphertext(a))]
        return self._new(a, self._on.rescale(a._tensor), a.scale / float(last))

    def mod_switch(self, a: _Value, level: Optional[int] = None) -> _Value:
        """Lowers the level of a ciphertext or plaintext; the scale stays.

        level  down to 0; None: the next one

            he.mod_switch(a, b.level) + b
        """
        above = self._above_last(a)
        level = above - 1 if level is None else integer(level, "a level")
        if not 0 <= level <= above:
            raise ArgumentError("cannot switch from level %d to level %d" % (above, level))
        self._check_scale(a.scale, level + 1)
        return type(a)(self, a._tensor[:, :, :level + 1], a.scale, a._slots)

    def _above_last(self, a: Any) -> int:
        level = self._own(a).level
        if level < 1:
            raise ArgumentError("the chain of moduli ends: level 0 has one prime, which stays")
        return level

    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Turns the slots to the left by steps, to the right where steps are negative. Without a
        Galois key of their own they go by powers of two, as in SEAL.

            he.rotate(a, -3)                    # a key for -3, or keys for 1 and -4
        """
        a = self._ciphertext(a)
        element = self.ring.galois_element(steps, self._generator)
        elements = [element]
        if steps == 0 or element not in self._keys:
            powers = [power for power in naf(steps) if abs(power) != self.ring.n // 2]
            elements = [self.ring.galois_element(power, self._generator) for power in powers]
            if not all(each in self._keys for each in elements):
                raise NameUnknownError("there is no Galois key for %d steps, element %d%s" % (
                    steps, element, "" if powers == [steps] else
                    ", nor are there all for %s" % ", ".join(map(str, powers))))
        for each in elements:
            a = self._turned(a, each)
        return a

    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """The conjugates of the slots.

            he.conjugate(a)
        """
        element = 2 * self.ring.n - 1
        if element not in self._keys:
            raise NameUnknownError("there is no Galois key to conjugate, element %d" % element)
        return self._turned(self._ciphertext(a), element)

    def _turned(self, a: Ciphertext, element: int) -> Ciphertext:
        if a.size != 2:
            raise ArgumentError("a ciphertext of %d parts does not turn: relinearize() it" % a.size)
        engine, on, values, key = self._engine, self._on, a._tensor, self._key(element)
        indices = on.constant(("indices", element),
                              lambda: self.ring.automorphism(element)[None, None, None])
        if self._turn == "before":
            values = engine.take_along_axis(values, indices, 3)
        within = indices if self._turn == "within" else None
        values = on.switch(values[1:], key, values[:1], within)
        if self._turn == "after":
            values = engine.take_along_axis(values, indices, 3)
        return self._new(a, values)

    def _key(self, element: int) -> Any:
        what = "the key of element %d" % element if element else "the relinearization key"
        return self._on.keep(("key", element), lambda: self._on.key(check_key(
            self.ring, self.special, self._dnum, self._keys[element], what)))


def from_arrays(device: AnyDevice, ring: Ring, *, special: int = 1, relinearization_key: Any = None,
                galois_keys: Optional[Mapping[int, Any]] = None, dnum: Optional[int] = None,
                rounding: str = "nearest", key_rounding: str = "nearest", generator: int = 3,
                turn: str = "before") -> Evaluator:
    """An evaluator for ciphertexts and keys in arrays, as an adapter of a library has them.

    ring                 the primes of ciphertexts, of which rescale() drops the last, then the
                         special ones; its psi are the library's
    special              how many of them are special
    relinearization_key  int64 [digits, 2, primes of the ring, n] in [0, q): see key_switch()
    galois_keys          such keys by Galois element
    dnum                 digits of key switching; None: one for each prime of ciphertexts
    rounding             of rescale(): "nearest", as in SEAL and OpenFHE, or "down"
    key_rounding         of key switching: "nearest", as in SEAL, or "down", as in OpenFHE
    generator            of the Galois elements of rotations: 3 as in SEAL, 5 as in OpenFHE
    turn                 when rotate() and conjugate() turn the slots: "before" key switching, as in
                         SEAL, with keys from s(x^element) to s(x); "within" it, before the
                         division, as in OpenFHE 1.6, or "after" it, as in OpenFHE 1.5, with keys
                         from s(x) to s(x^(1/element))

        ring = fhe.Ring(32768, primes + special_primes)
        with fhe.from_arrays(dev, ring, special=2, relinearization_key=key, dnum=3) as he:
            result = he.store(he.relinearize(he.load(a, scale) * he.load(b, scale)))
    """
    special, dnum = check_layout(ring, special, dnum, rounding, key_rounding)
    ring.automorphism(integer(generator, "a generator") % (2 * ring.n))
    if turn not in ("before", "within", "after"):
        raise ArgumentError("turn is 'before', 'within' or 'after', not %r" % (turn,))
    keys = {integer(element, "a Galois element"): key
            for element, key in (galois_keys or {}).items()}
    for element in keys:
        ring.automorphism(element)
    if relinearization_key is not None:
        keys[RELINEARIZATION] = relinearization_key
    if keys and not special:
        raise ArgumentError("key switching takes at least one special prime")
    return Evaluator(heal_engine(device, expand="spec"), ring, special, dnum, keys,
                     (rounding == "nearest", key_rounding == "nearest"), generator, turn)
