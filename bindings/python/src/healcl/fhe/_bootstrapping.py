# SPDX-License-Identifier: Apache-2.0
"""Bootstrapping of CKKS (Cheon, Han, Kim, Kim, Song 2018)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import numpy as np

from .._errors import ArgumentError, integer
from ._linear import LinearTransform
from ._operands import Ciphertext
from ._polynomial import evaluate
from ._ring import primes

if TYPE_CHECKING:
    from ._evaluator import Evaluator

_Matrix = Dict[int, np.ndarray]  # diagonals by steps


class Bootstrapping:
    """Raises the level of a ciphertext of n/2 complex slots, for keys of generator 5. The modulus
    is raised, which adds multiples of the old one. Coefficients are put into slots, in stages. The
    imaginary part of an exponential function takes the multiples away. Slots are put into
    coefficients again (Cheon, Han, Kim, Kim, Song 2018; Bossuat, Mouchet, Troncoso-Pastoriza,
    Hubaux 2021).

    n            of the ring
    levels       that are left; of the bits of scale
    scale_bits   of scale, that of ciphertexts, and of the primes of these levels
    base_bits    of the prime of level 0: what they are above scale_bits bounds messages
    bits         of the primes of bootstrapping; slot_bits: those of SlotToCoeff, None: the same
    special      special primes, of special_bits; dnum: digits of key switching
    stages       of CoeffToSlot and of SlotToCoeff: more take more levels and fewer rotations
    bound        of the multiples of the old modulus. At n = 65536 one ciphertext in 2^26 has larger
                 ones than 16 if 64 coefficients of the secret are not 0, one in 2^72 than 14 if 32
    degree, doublings  of the exponential function: a Chebyshev polynomial, and how often it is
                 squared
    corrected    whether a sine of the doubled angle makes up for the sine's third power, at a level
                 more. Else numbers have 23 bits where base_bits is 13 above scale_bits, two less
                 for each bit less. None: where it is less than 12 above; numbers up to 1 have 22
                 bits then

    scale        2^scale_bits, for which base_bits are meant; other scales keep their values
    moduli       for fhe.Ring(n, b.moduli), the special ones last
    rotations    the steps for which Galois keys are needed, beside that for conjugation

        b = fhe.Bootstrapping(65536)
        ring = fhe.Ring(b.n, b.moduli)
        he = fhe.from_arrays(dev, ring, special=b.special, dnum=b.dnum, generator=5, ...)
        y = he.apply(b, x)                  # of level b.levels

    Whether keys are secure with these moduli is up to the caller: the defaults are no advice. With
    ephemeral_keys of from_arrays() the secret may be dense, and a sparse one serves while the
    modulus is raised (Bossuat, Troncoso-Pastoriza, Hubaux 2022).
    """

    def __init__(self, n: int, *, levels: int = 2, scale_bits: int = 45, base_bits: int = 58,
                 bits: int = 58, slot_bits: Any = None, special: int = 4, special_bits: int = 60,
                 dnum: int = 5, stages: Sequence[int] = (3, 3), bound: int = 16, degree: int = 27,
                 doublings: int = 4, corrected: Optional[bool] = None) -> None:
        self.n, self.levels = integer(n, "n"), integer(levels, "levels")
        if self.n < 8 or self.n & (self.n - 1) or self.levels < 0 or not all(
                0 < count < self.n.bit_length() - 1 for count in stages) or len(stages) != 2:
            raise ArgumentError("no bootstrapping with n = %d, %d levels left and stages %r" % (
                self.n, self.levels, stages))
        self.special, self.dnum, self.doublings = special, dnum, doublings
        spare = base_bits - scale_bits
        self._corrected = spare < 12 if corrected is None else corrected
        self._factor = 1 << max(0, spare - 7) if self._corrected else 1
        slots, middle = self.n // 2, degree.bit_length() + doublings + self._corrected
        counts = [1, self.levels, stages[1], middle + stages[0], special]
        widths = [base_bits, scale_bits, slot_bits or bits, bits, special_bits]
        self.moduli = primes(self.n, *np.repeat(widths, counts).tolist())
        self.scale = 2.0**scale_bits
        self._scale = 2.0**bits
        interpolate = np.polynomial.chebyshev.chebinterpolate
        angle = 2 * np.pi * bound / 2**doublings
        cosine = interpolate(lambda x: np.cos(angle * x), degree)
        sine = interpolate(lambda x: np.sin(angle * x), degree)
        self._exponential = np.where(np.arange(degree + 1) % 2, sine, cosine)
        forward, backward = _butterflies(self.n)
        self._to_slots, self._to_coefficients = (
            [LinearTransform({k if k <= slots // 2 else k - slots: diagonal * factor**(1 / count)
                              for k, diagonal in matrix.items()}, slots)
             for matrix in _merged(parts, count)]
            for parts, count, factor in zip((backward[::-1], forward), stages, (0.5 / bound, 1)))
        self.rotations = sorted({steps for t in self._to_slots + self._to_coefficients
                                 for steps in t.rotations})

    def apply(self, he: Evaluator, a: Ciphertext) -> Ciphertext:
        """Evaluator.apply()."""
        if list(he.ring.moduli) != self.moduli or he._generator != 5:
            raise ArgumentError("bootstrapping takes the moduli of Bootstrapping.moduli, and keys "
                                "of generator 5")
        engine = he._engine
        ratio = a.scale / self.scale
        a = he.mod_switch(a, 0)
        a = he._raised(a * self._factor if self._factor > 1 else a)
        a.scale = float(self.moduli[0])
        for t in self._to_slots:  # the last is conjugated before it is rescaled: with small errors
            a = t.scaled(he, a, self._scale, t is not self._to_slots[-1])
        halves = he._on.empty(2, 2, a.level + 1, he.ring.n)  # real and imaginary parts, a stack
        conjugate, column = he.conjugate(a).tensor, he._column(a.level + 1)
        engine.modsum(a.tensor, conjugate, column, halves[:, :1])
        engine.modsum(a.tensor, he._negative(conjugate), column, halves[:, 1:])
        self._turn(he, halves[:, 1:], halves[:, 1:], [-1j])
        a = he.rescale(he._new(a, halves))
        a.scale = self._scale
        a = evaluate(he, a, self._exponential, True, a.scale,
                     lambda power, out: self._turn(he, power, out, [1j]))
        for _ in range(self.doublings):
            a = he.rescale(he.relinearize(he.square(a)))
        if self._corrected:  # 8 sin x - sin 2x is 6 x, but for the fifth power
            a = a * (8 - a)
        parts, column = he._on.empty(*a.tensor.shape), he._column(a.level + 1)
        self._turn(he, a.tensor, parts, [-1j, -1])
        engine.modsum(parts[:, :1], parts[:, 1:], column, parts[:, 1:])
        engine.modsum(parts[:, :1], a.tensor[:, 1:], column, parts[:, :1])
        a = he._new(a, parts)
        if self._corrected:
            a = he.rescale(he.relinearize(a))
        a = he._turned(list(a), [1, 2 * self.n - 1], summed=True)  # twice the imaginary parts
        a.scale *= self._factor * self.scale / self.moduli[0] * np.pi * (
            24 if self._corrected else 4)
        step = (self.scale / a.scale)**(1 / len(self._to_coefficients))
        for t in self._to_coefficients:
            a = t.scaled(he, a, a.scale * step)
        a.scale = self.scale * ratio
        return a

    def _turn(self, he: Evaluator, a: Any, out: Any, units: Sequence[complex]) -> None:
        """Multiplies a stack [..., k, n] by 1, i = X^(n/2), -1 or -i, one for all or one for each."""
        rows, first = np.zeros((len(units), self.n), np.int64), he.special
        rows[:, 0], rows[:, self.n // 2] = np.real(units), np.imag(units)
        primes = a.shape[-2]
        turns = he._on.keep(("units", *units, primes),
                            lambda: he._on.encoded(rows, first, first + primes))
        he._engine.modmul(a, turns, he._column(primes), out)


def _butterflies(n: int) -> "tuple[List[_Matrix], List[_Matrix]]":
    """The stages of the map from coefficients to slots, but for the reversal of bits, and their
    inverses (Chen, Chillotti, Song 2019)."""
    slots, place = n // 2, np.arange(n // 2)
    turns = np.array([pow(5, j, 2 * n) for j in range(slots)])
    forward: List[_Matrix] = []
    backward: List[_Matrix] = []
    width = 2
    while width <= slots:
        half, j = width // 2, place % width
        first = j < half
        w = np.exp(2j * np.pi * (turns[j % half] % (4 * width)) / (4 * width))
        stage = [(0, np.where(first, 1, -w)), (half, np.where(first, w, 0)),
                 (-half, np.where(first, 0, 1))]
        inverse = [(0, np.where(first, 0.5, -0.5 / w)), (half, np.where(first, 0.5, 0)),
                   (-half, np.where(first, 0, 0.5 / w))]
        for matrices, diagonals in ((forward, stage), (backward, inverse)):
            matrix: _Matrix = {}
            for k, diagonal in diagonals:
                matrix[k % slots] = matrix.get(k % slots, 0) + diagonal
            matrices.append(matrix)
        width *= 2
    return forward, backward


def _merged(parts: Sequence[_Matrix], count: int) -> List[_Matrix]:
    """Products of neighbours, `count` of them; the first part is applied first."""
    merged = []
    for group in np.array_split(np.arange(len(parts)), count):
        total: _Matrix = parts[group[0]]
        for i in group[1:]:
            product: _Matrix = {}
            slots = len(next(iter(total.values())))
            for k, outer in parts[i].items():
                for j, inner in total.items():
                    step = (k + j) % slots
                    product[step] = product.get(step, 0) + outer * np.roll(inner, -k)
            total = product
        merged.append(total)
    return merged
