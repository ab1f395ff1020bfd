# SPDX-License-Identifier: Apache-2.0
"""Encodes numbers as CKKS plaintexts."""
from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral
from typing import Any, Tuple

import numpy as np

from .._errors import ArgumentError
from .._native import ffi, lib
from ._ring import Ring


class Encoder:
    """Computes coefficients from the numbers in slots. Slot j is the value at psi^(generator^j).

    The bits are those of SEAL 4 if its compiler rounds each operation, as on x86-64. An FFT with
    another order of operations rounds some coefficient differently in 1.5% of plaintexts, at a
    scale of 2^40 and n = 8192. A provable bound on its error does not help: in each plaintext some
    coefficient is that close to a half.
    """

    def __init__(self, ring: Ring, generator: int) -> None:
        self._n = n = ring.n
        order = ring.bit_reversal
        exponents = [1]
        while len(exponents) < n // 2:
            exponents.append(exponents[-1] * generator % (2 * n))
        places = order[np.array(exponents) // 2]
        self._mirrored = places >= n // 2
        self._places = np.where(self._mirrored, n - 1 - places, places)
        gaps = [1 << i for i in range(n.bit_length() - 2)]
        self._roots = self._inverse_roots(np.concatenate(
            [*(order[:n // (4 * gap)] + gap for gap in gaps), [n // 2]]))

    def _inverse_roots(self, powers: np.ndarray) -> np.ndarray:
        """exp(-pi i e/n), [..., 2], for exponents e from 0 to n. All are computed from an eighth of
        the circle, as in SEAL, so that those of e and n - e have the same digits."""
        n = self._n
        angles = [2 * math.pi * i / (2 * n) for i in range(n // 4 + 1)]
        table = np.array([[math.cos(angle), math.sin(angle)] for angle in angles])
        near = np.minimum(powers, n - powers)
        roots: np.ndarray = table[np.minimum(near, n // 2 - near)]
        roots[near > n // 4] = roots[near > n // 4][:, ::-1]
        roots[powers > n // 2, 0] *= -1
        roots[:, 1] *= -1
        return roots

    def coefficients(self, numbers: np.ndarray, scale: float) -> Tuple[np.ndarray, float]:
        """A real number for all slots [], or rows [m, at most n/2] of numbers -> rounded
        coefficients [m, n], int64, or float if one does not fit; and their bits as SEAL counts."""
        if numbers.ndim == 0:
            return self._constant(float(numbers) * scale)
        rows, width = numbers.shape
        values = np.zeros((rows, 2, self._n // 2))
        places = self._places[:width]
        values[:, 0, places] = numbers.real
        if numbers.dtype.kind == "c":
            values[:, 1, places] = np.where(self._mirrored[:width], -numbers.imag, numbers.imag)
        rounded = np.empty((rows, self._n), np.int64)
        largest = float(lib.native_encode(
            ffi.from_buffer("double[]", values), ffi.from_buffer("int64_t[]", rounded),
            ffi.from_buffer("double[]", self._roots), rows, self._n, scale))
        bits = math.ceil(math.log2(max(largest, 1))) + 1 if largest < math.inf else math.inf
        return rounded if largest < 2**62 else values.reshape(rows, self._n), bits

    def _constant(self, value: float) -> Tuple[np.ndarray, float]:
        if not abs(value) < math.inf:
            return np.zeros((1, self._n)), math.inf
        whole = math.trunc(value)
        if abs(value - whole) >= 0.5:
            whole += 1 if value > 0 else -1
        coefficients = np.zeros((1, self._n), np.int64 if abs(whole) < 2**62 else float)
        coefficients[0, 0] = whole
        return coefficients, int(math.log2(abs(value))) + 2 if value else 0


def scaled_integer(number: Any, scale: float) -> int:
    """A number times a scale, rounded as in SEAL: halves away from zero. Exact for integers."""
    if not math.isfinite(number):
        raise ArgumentError("a number must be finite, not %r" % (number,))
    product = int(number) * Fraction(scale) if isinstance(number, Integral) else \
        Fraction(float(number) * scale)
    return int(abs(product) + Fraction(1, 2)) * (1 if product > 0 else -1)
