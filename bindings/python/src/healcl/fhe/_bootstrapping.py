# SPDX-License-Identifier: Apache-2.0
"""Bootstrapping of CKKS (Cheon, Han, Kim, Kim, Song 2018)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

import numpy as np

from .._errors import ArgumentError, integer
from ._linear import LinearTransform
from ._operands import Ciphertext
from ._polynomial import depth, doubled
from ._ring import primes

if TYPE_CHECKING:
    from ._evaluator import Evaluator

_Matrix = Dict[int, np.ndarray]  # diagonals by steps


class Bootstrapping:
    """Raises the level of a ciphertext of n/2 complex slots, for keys of generator 5. The modulus
    is raised, which adds multiples of the old one. Coefficients are put into slots, in stages. A
    cosine takes the multiples away (Han, Ki 2020). Slots are put into coefficients again.

    n            of the ring
    levels       that are left; of the bits of scale
    scale_bits   of scale, that of ciphertexts, and of the primes of these levels
    base_bits    of the prime of level 0: what they are above scale_bits bounds messages
    bits         of the primes of bootstrapping; slot_bits: those of SlotToCoeff, None: the same
    special      special primes, of special_bits; dnum: digits of key switching
    stages       of CoeffToSlot and of SlotToCoeff: more take more levels and fewer rotations
    bound        of the multiples of the old modulus: 16 for secrets of 64 coefficients that are not
                 0, where one in 2^40 is larger; 12 for 32, one in 2^50
    degree, doublings  of the cosine: a Chebyshev polynomial, and how often its angle is doubled

    moduli       for fhe.Ring(n, b.moduli), the special ones last
    rotations    the steps for which Galois keys are needed, beside that for conjugation

        b = fhe.Bootstrapping(65536)
        ring = fhe.Ring(b.n, b.moduli)
        he = fhe.from_arrays(dev, ring, special=b.special, dnum=b.dnum, generator=5, ...)
        y = he.apply(b, x)                  # of level b.levels

    With ephemeral_keys of from_arrays() the secret may be dense, and a sparse one serves while the
    modulus is raised (Bossuat, Troncoso-Pastoriza, Hubaux 2022).
    """

    def __init__(self, n: int, *, levels: int = 2, scale_bits: int = 45, base_bits: int = 58,
                 bits: int = 58, slot_bits: Any = None, special: int = 4, special_bits: int = 60,
                 dnum: int = 5, stages: Sequence[int] = (3, 3), bound: int = 16, degree: int = 31,
                 doublings: int = 4) -> None:
        self.n, self.levels = integer(n, "n"), integer(levels, "levels")
        if self.n < 8 or self.n & (self.n - 1) or self.levels < 0 or not all(
                0 < count < self.n.bit_length() - 1 for count in stages) or len(stages) != 2:
            raise ArgumentError("no bootstrapping with n = %d, %d levels left and stages %r" % (
                self.n, self.levels, stages))
        self.special, self.dnum, self.doublings = special, dnum, doublings
        slots, middle = self.n // 2, depth(degree) + doublings
        counts = [1, self.levels, stages[1], middle + stages[0], special]
        widths = [base_bits, scale_bits, slot_bits or bits, bits, special_bits]
        self.moduli = primes(self.n, *np.repeat(widths, counts).tolist())
        self.scale = 2.0**scale_bits
        self._scale = 2.0**bits
        self._cosine = np.polynomial.chebyshev.chebinterpolate(
            lambda x: np.cos(2 * np.pi * (bound * x - 0.25) / 2**doublings), degree)
        forward, backward = _butterflies(self.n)
        factors = 0.5 / bound, self.moduli[0] / (2 * np.pi * self.scale)
        self._to_slots, self._to_coefficients = (
            [LinearTransform({k if k <= slots // 2 else k - slots: diagonal * factor**(1 / count)
                              for k, diagonal in matrix.items()}, slots)
             for matrix in _merged(parts, count)]
            for parts, count, factor in zip((backward[::-1], forward), stages, factors))
        self.rotations = sorted({steps for t in self._to_slots + self._to_coefficients
                                 for steps in t.rotations})

    def apply(self, he: Evaluator, a: Ciphertext) -> Ciphertext:
        if list(he.ring.moduli) != self.moduli or he._generator != 5:
            raise ArgumentError("bootstrapping takes the moduli of Bootstrapping.moduli, and keys "
                                "of generator 5")
        engine = he._engine
        ratio = a.scale / self.scale
        a = he._raised(he.mod_switch(a, 0))
        a.scale = float(self.moduli[0])
        for t in self._to_slots:
            a = t.scaled(he, a, self._scale)
        primes, column = a.level + 1, he._column(a.level + 1)
        conjugate = he.conjugate(a).tensor
        halves = he._on.empty(2, 2, primes, he.ring.n)  # real and imaginary parts, a stack
        engine.modsum(a.tensor, conjugate, column, halves[:, :1])
        engine.modsum(a.tensor, he._negative(conjugate), column, halves[:, 1:])
        engine.modmul(halves[:, 1:], self._unit(he, -1, a.level), column, halves[:, 1:])
        a = he.polynomial(he._new(a, halves), self._cosine, "chebyshev")
        for _ in range(self.doublings):
            a = doubled(he, a)
        a = a[0] + he._new(a, engine.modmul(a[1].tensor, self._unit(he, 1, a.level),
                                            he._column(a.level + 1)))
        step = (self.scale / a.scale)**(1 / len(self._to_coefficients))
        for t in self._to_coefficients:
            a = t.scaled(he, a, a.scale * step)
        a.scale = self.scale * ratio
        return a

    def _unit(self, he: Evaluator, sign: int, level: int) -> Any:
        """X^(n/2), i in all slots, or minus it: values [1, 1, k, n]."""
        row = np.zeros((1, self.n), np.int64)
        row[0, self.n // 2] = sign
        first = he.special
        return he._on.keep(("unit", sign, level),
                           lambda: he._on.encoded(row, first, first + level + 1))


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
