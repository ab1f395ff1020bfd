# SPDX-License-Identifier: Apache-2.0
"""Rings of polynomials modulo x^n + 1 and primes, with the tables of their transforms."""
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np

from .._errors import ArgumentError, DtypeError, ShapeError, integer

#: The largest n: a transform's tables are 8 n bytes for each modulus.
LARGEST_N = 1 << 20
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough below 2^64 (Sorenson, Webster)


def _is_prime(q: int) -> bool:
    """The test of Miller and Rabin."""
    odd = (q - 1) // ((q - 1) & (1 - q))
    for witness in _WITNESSES:
        if q % witness == 0:
            return q == witness
        x, power = pow(witness, odd, q), odd
        while x not in (1, q - 1) and 2 * power < q - 1:
            x, power = x * x % q, 2 * power
        if x != q - 1 and (x != 1 or power != odd):
            return False
    return True


def primes(n: int, *bits: int) -> List[int]:
    """Different primes that are 1 modulo 2n, the largest of these numbers of bits.

        ring = fhe.Ring(8192, fhe.primes(8192, 60, 40, 40, 60))
    """
    found: List[int] = []
    for each in bits:
        q = ((1 << each) - 2) // (2 * n) * 2 * n + 1
        while q in found or not _is_prime(q):
            q -= 2 * n
        found.append(q)
    return found


def _powers(base: int, n: int, q: int) -> np.ndarray:
    """base^0 to base^(n - 1) modulo q, as Python integers, because products may have 126 bits."""
    powers = np.array([1], dtype=object)
    while len(powers) < n:
        powers = np.concatenate((powers, powers * pow(base, len(powers), q) % q))
    return powers[:n]


@lru_cache(maxsize=256)
def minimal_root(n: int, q: int) -> int:
    """The least primitive 2n-th root of unity modulo a prime q = 1 modulo 2n, as in SEAL.

        >>> minimal_root(256, 8380417)      # Dilithium's, as in FIPS 204
        1753
    """
    root = next(root for root in (pow(g, (q - 1) // (2 * n), q) for g in range(2, q))
                if pow(root, n, q) == q - 1)
    return int((_powers(root * root % q, n, q) * root % q).min())


class Ring:
    """Polynomials modulo x^n + 1 and primes, with all tables of their transforms.

    n       a power of two, from 2 to 2^20
    moduli  different primes below 2^62 that are 1 modulo 2n
    psi     a primitive 2n-th root of unity for each modulus; None: the least ones, as in SEAL

        ring = fhe.Ring(256, [8380417])
        ring.psi, ring.psi_table[0, 1]      # (1753,), 4808194

    Values of a polynomial a are int64 [..., k, n], in [0, q) for each of the k moduli: place i of
    an axis n holds a(psi^(2 r + 1)), r the bits of i in reverse order. That is HEAL's order without
    a permutation, SEAL's and OpenFHE's. values[..., ring.bit_reversal] are a(psi^(2 i + 1)).

    psi_table, inverse_table  int64 [k, n]: place i has psi^bit_reversal[i], or its inverse
    n_inverse                 int64 [k]: the inverses of n
    bit_reversal              int64 [n]
    """

    def __init__(self, n: int, moduli: Iterable[int], psi: Optional[Iterable[int]] = None) -> None:
        self.n = integer(n, "n")
        if not 2 <= self.n <= LARGEST_N or self.n & (self.n - 1):
            raise ArgumentError("n must be a power of two from 2 to %d, not %d" %
                                (LARGEST_N, self.n))
        self.moduli: Tuple[int, ...] = tuple(integer(q, "a modulus") for q in moduli)
        if not self.moduli:
            raise ArgumentError("a ring needs at least one modulus")
        for q in self.moduli:
            if not 2 < q < 2**62 or not _is_prime(q):
                raise ArgumentError("modulus %d is not an odd prime below 2^62" % q)
            if q % (2 * self.n) != 1:
                raise ArgumentError("modulus %d is not 1 modulo 2n = %d" % (q, 2 * self.n))
            if self.moduli.count(q) > 1:
                raise ArgumentError("modulus %d is there twice" % q)
        self.psi: Tuple[int, ...] = tuple(
            [minimal_root(self.n, q) for q in self.moduli] if psi is None else
            [integer(root, "a psi") for root in psi])
        if len(self.psi) != len(self.moduli):
            raise ArgumentError("%d psi do not match %d moduli" % (len(self.psi),
                                                                     len(self.moduli)))
        for root, q in zip(self.psi, self.moduli):
            if not 0 < root < q or pow(root, self.n, q) != q - 1:
                raise ArgumentError("psi %d is not a primitive root of unity of order 2n = %d "
                                    "modulo %d" % (root, 2 * self.n, q))
        self.bit_reversal = np.zeros(1, np.int64)
        while len(self.bit_reversal) < self.n:
            self.bit_reversal = np.concatenate((2 * self.bit_reversal, 2 * self.bit_reversal + 1))
        self.psi_table = self._table(self.psi)
        self.inverse_table = self._table([pow(root, -1, q)
                                          for root, q in zip(self.psi, self.moduli)])
        self.n_inverse = np.array([pow(self.n, -1, q) for q in self.moduli])

    def _table(self, roots: Iterable[int]) -> np.ndarray:
        return np.stack([_powers(root, self.n, q)[self.bit_reversal].astype(np.int64)
                         for root, q in zip(roots, self.moduli)])

    @property
    def tables(self) -> Dict[str, np.ndarray]:
        """The tables of HEAL's ntt and intt for the ring's order, by parameter names.

            q.ops.ntt(x, ring)                  # uses them on the queue q
        """
        return {"q": np.array(self.moduli), "psi": self.psi_table, "ipsi": self.inverse_table,
                "n_inv": self.n_inverse, "perm": np.arange(self.n)}

    def galois_element(self, steps: int, generator: int = 3) -> int:
        """The g for which a(x) -> a(x^g) rotates the n/2 slots of CKKS to the left by steps.
        steps: may be negative; |steps| < n/2. generator: 3 in SEAL, 5 in other libraries.

            ring.galois_element(1)              # 3
        """
        steps = integer(steps, "a number of steps")
        if abs(steps) >= max(self.n // 2, 1):
            raise ArgumentError("cannot rotate %d slots by %d steps" % (self.n // 2, steps))
        return pow(integer(generator, "a generator"), steps % (self.n // 2), 2 * self.n)

    def automorphism(self, element: int) -> np.ndarray:
        """Indices, int64 [n]: values[..., indices] are the values of a(x^element). element: odd,
        from 1 to 2n - 1; 2n - 1 conjugates slots.

            values = values[..., ring.automorphism(ring.galois_element(1))]
        """
        element = integer(element, "a Galois element")
        if not 0 < element < 2 * self.n or element % 2 == 0:
            raise ArgumentError("a Galois element must be odd and below 2n = %d, not %d" %
                                (2 * self.n, element))
        powers = (2 * self.bit_reversal + 1) * element % (2 * self.n)
        return self.bit_reversal[(powers - 1) // 2]

    def check(self, values: Any, moduli: Tuple[int, ...], rank: int, what: str) -> np.ndarray:
        """Checks an integer array [..., moduli, n] of the given rank with elements in [0, q), and
        returns it as int64. Errors name `what`.

            ring.check(values, ring.moduli, 2, "a polynomial")
        """
        array, wanted = np.asarray(values), (len(moduli), self.n)
        if array.dtype.kind not in "iu":
            raise DtypeError("%s must have integers, not %s" % (what, array.dtype))
        if array.ndim != rank or array.shape[-2:] != wanted:
            raise ShapeError("%s has the shape %s, not [%s%d, %d]" % (
                what, list(array.shape), "..., " * (rank - 2), *wanted))
        bounds = np.array(moduli, np.uint64)[:, None]
        if array.size and (array.min() < 0 or (array.astype(np.uint64) >= bounds).any()):
            raise ArgumentError("%s has elements outside [0, q)" % what)
        return np.asarray(array.astype(np.int64, copy=False), order="C")

    def pick(self, which: Iterable[int]) -> Ring:
        """Returns the ring of the moduli with these numbers, in this order.

            ring.pick([2, 0, 1]).psi
        """
        numbers = list(which)
        known = set(range(len(self.moduli)))
        if not numbers or len(set(numbers)) < len(numbers) or not known.issuperset(numbers):
            raise ArgumentError("pick() takes distinct numbers of the %d moduli, not %r" % (
                len(self.moduli), numbers))
        ring = object.__new__(Ring)
        ring.n, ring.bit_reversal = self.n, self.bit_reversal
        ring.moduli = tuple(self.moduli[i] for i in numbers)
        ring.psi = tuple(self.psi[i] for i in numbers)
        for name in ("psi_table", "inverse_table", "n_inverse"):
            setattr(ring, name, getattr(self, name)[numbers])
        return ring

    def __repr__(self) -> str:
        return "<healcl.fhe.Ring: n = %d, %d moduli, %d bits>" % (
            self.n, len(self.moduli), math.prod(self.moduli).bit_length())
