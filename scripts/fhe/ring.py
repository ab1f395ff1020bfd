# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic in Z_q[x]/(x^n + 1), q a product of primes below 2^62 that are 1 mod 2n.

A polynomial is int64 [..., k, n]: limb j holds its residues modulo prime j, in [0, q_j);
either coefficients or values. Value u of a polynomial a is a(psi^(2u + 1)), psi a primitive
2n-th root of unity."""

import math

import numpy as np

from fhe._secret import Polynomials
from transcript_builder import Ring

ONE_STEP_LIMIT = 2**50  # a product of residues below it is reduced in one step
SPLIT = 31              # bits of the lower part of a larger factor
CHUNK = 2**17           # elements that a pass over a long array touches at a time


def wrap_down(x, q):
    """x in [0, 2q) -> x mod q. Seen as unsigned, the wrong candidate is the larger one."""
    return np.minimum(x.view(np.uint64), (x - q).view(np.uint64)).view(np.int64)


def wrap_up(x, q):
    """x in (-q, q) -> x mod q."""
    return np.minimum(x.view(np.uint64), (x + q).view(np.uint64)).view(np.int64)


class Modulus:
    """Arithmetic modulo q, 1 < q < 2^62, on int64 arrays of residues in [0, q)."""

    def __init__(self, q):
        self.q, self.inverse = q, 1.0 / q

    def plus(self, a, b):
        return wrap_down(a + b, self.q)

    def minus(self, a, b):
        return wrap_up(a - b, self.q)

    def small_times(self, a, b):
        """a*b mod q where a*b < 2^50 q.

        The quotient is rounded from floating point, so it is off by at most 1/2 plus the
        rounding errors, 2^50 * 4 * 2^-53 = 1/2; the difference then lies in (-q, q), and
        is right although both products wrap around 2^64."""
        quotient = np.rint(a.astype(np.float64) * (b * self.inverse)).astype(np.int64)
        quotient *= self.q
        return wrap_up(a * b - quotient, self.q)

    def times(self, a, b):
        """a*b mod q; a and b broadcast. b is cut in two where q is above 2^50."""
        if self.q <= ONE_STEP_LIMIT:
            return self.small_times(a, b)
        high = self.small_times(a, b >> SPLIT)
        low = self.small_times(a, b & (2**SPLIT - 1))
        return self.plus(self.small_times(high, np.int64(2**SPLIT)), low)

    def sum(self, a, axis):
        """The sum over an axis, modulo q."""
        headroom = 2**63 // self.q
        while a.shape[axis] > 1:
            size = a.shape[axis]
            starts = np.arange(0, size, min(headroom, size))
            a = np.add.reduceat(a, starts, axis=axis) % self.q
        return np.take(a, 0, axis=axis)


class RnsRing(Polynomials):
    """The ring for given primes. `tables` holds what the operations of HEAL want."""

    def __init__(self, n, primes, roots=None):
        self.n, self.k, self.primes = n, len(primes), list(primes)
        self.tables = Ring(n, self.primes, roots)
        self.moduli = [Modulus(q) for q in self.primes]
        self.full = math.prod(self.primes)

    def limbwise(self, function, *operands):
        """function(modulus, limb of each operand) for every limb; -> [..., k, n]."""
        limbs = [function(modulus, *[x[..., j, :] for x in operands])
                 for j, modulus in enumerate(self.moduli)]
        return np.stack(limbs, axis=-2)

    def plus(self, a, b):
        return self.limbwise(Modulus.plus, a, b)

    def minus(self, a, b):
        return self.limbwise(Modulus.minus, a, b)

    def times(self, a, b):
        """The product of values, one by one."""
        return self.limbwise(Modulus.times, a, b)

    def forward(self, a):
        """Coefficients -> values, in natural order."""
        values = transform(a, forward_butterflies, self.tables.psi, self.moduli)
        return values[..., self.tables.perm]

    def inverse(self, a):
        """Values in natural order -> coefficients."""
        shuffled = a[..., self.tables.perm]
        scaled = transform(shuffled, inverse_butterflies, self.tables.ipsi, self.moduli)
        return self.limbwise(lambda modulus, x: modulus.times(
            x, np.int64(pow(self.n, -1, modulus.q))), scaled)


def transform(a, butterflies, roots, moduli):
    """a [..., k, n], or [..., 1, n] to read one limb for every prime; roots [k, n], both in
    [0, q) -> [..., k, n]."""
    n, k = a.shape[-1], len(moduli)
    out = np.empty(a.shape[:-2] + (k, n), dtype=np.int64)
    rows_in, rows_out = a.reshape((-1,) + a.shape[-2:]), out.reshape((-1, k, n))
    step = max(1, CHUNK // n)
    for j, modulus in enumerate(moduli):
        limb = j if a.shape[-2] == k else 0
        for start in range(0, len(rows_in), step):
            x = np.ascontiguousarray(rows_in[start:start + step, limb].T, dtype=np.int64)
            rows_out[start:start + step, j] = butterflies(x, roots[j], modulus).T
    return out


def forward_butterflies(x, psi, modulus):
    """x [n, rows] in [0, q), natural order -> bit-reversed order (Cooley-Tukey)."""
    n, m = len(x), 1
    while m < n:
        pairs = x.reshape(m, 2, n // (2 * m), -1)
        low, high = pairs[:, 0], modulus.times(pairs[:, 1], psi[m:2 * m, None, None])
        x = np.stack((modulus.plus(low, high), modulus.minus(low, high)), axis=1).reshape(n, -1)
        m *= 2
    return x


def inverse_butterflies(x, ipsi, modulus):
    """x [n, rows] in [0, q), bit-reversed order -> natural order (Gentleman-Sande), times n."""
    n, m = len(x), len(x) // 2
    while m >= 1:
        pairs = x.reshape(m, 2, n // (2 * m), -1)
        low, high = pairs[:, 0], pairs[:, 1]
        difference = modulus.times(modulus.minus(low, high), ipsi[m:2 * m, None, None])
        x = np.stack((modulus.plus(low, high), difference), axis=1).reshape(n, -1)
        m //= 2
    return x
