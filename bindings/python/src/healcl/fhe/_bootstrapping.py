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
    """Raises the level of a ciphertext of n/2 complex slots, for keys of generator 5. It raises the
    modulus, which adds multiples of the old one. It moves coefficients to slots, in stages. The
    imaginary part of an exponential function removes the multiples. Slots then become coefficients
    again (Cheon, Han, Kim, Kim, Song 2018; Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021).

    n            the ring's n
    levels       the number of levels after bootstrapping; their primes have scale_bits
    scale_bits   the bits of the scale of ciphertexts
    base_bits    the bits of the prime of level 0; those above scale_bits limit messages
    bits         the bits of the primes of bootstrapping
    slot_bits    the bits of the primes of SlotToCoeff; None: `bits`
    special, special_bits  the number of special primes, and their bits
    dnum         the number of digits of key switching
    stages       the numbers of stages of CoeffToSlot and SlotToCoeff; more stages need more levels
                 and fewer rotations
    bound        the bound on multiples of the old modulus. For n = 65536, one ciphertext in 2^26
                 exceeds 16 if the secret has 64 nonzero coefficients; if 32, one in 2^72 exceeds 14
    degree       the degree of the Chebyshev polynomial of the exponential function
    doublings    how often the exponential function is squared
    corrected    whether a sine of the doubled angle corrects the sine's third power, with one more
                 level. Without it, numbers have 23 bits if base_bits is 13 above scale_bits,
                 and two bits less for each bit less. None: only if base_bits is less than 12 above;
                 numbers up to 1 then have 22 bits

    scale        2^scale_bits, the scale for which base_bits is chosen; others keep their values
    moduli       the moduli for fhe.Ring(n, b.moduli), with the special primes last
    rotations    the steps for which Galois keys are needed, in addition to that for conjugation

        b = fhe.Bootstrapping(65536)
        ring = fhe.Ring(b.n, b.moduli)
        he = fhe.from_arrays(dev, ring, special=b.special, dnum=b.dnum, generator=5, ...)
        y = he.apply(b, x)                  # at level b.levels

    The caller must check whether keys are secure with these moduli: the defaults are not a
    recommendation. With ephemeral_keys of from_arrays() the secret may be dense: a sparse one is
    used while the modulus is raised (Bossuat, Troncoso-Pastoriza, Hubaux 2022).
    """

    def __init__(self, n: int, *, levels: int = 2, scale_bits: int = 45, base_bits: int = 58,
                 bits: int = 58, slot_bits: Any = None, special: int = 4, special_bits: int = 60,
                 dnum: int = 5, stages: Sequence[int] = (3, 3), bound: int = 16, degree: int = 27,
                 doublings: int = 4, corrected: Optional[bool] = None) -> None:
        self.n, self.levels = integer(n, "n"), integer(levels, "levels")
        if self.n < 8 or self.n & (self.n - 1) or self.levels < 0 or not all(
                0 < count < self.n.bit_length() - 1 for count in stages) or len(stages) != 2:
            raise ArgumentError("cannot bootstrap with n = %d, levels = %d and stages = %r" % (
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
        """Implements Evaluator.apply()."""
        if list(he.ring.moduli) != self.moduli or he._generator != 5:
            raise ArgumentError("bootstrapping needs the moduli of Bootstrapping.moduli, and keys "
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
    """The stages of the map from coefficients to slots, without the bit reversal, and their
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
    """Multiplies adjacent parts, to `count` products. The first part is applied first."""
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
