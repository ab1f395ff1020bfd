# SPDX-License-Identifier: Apache-2.0
"""Secret keys, encryption under them, and gadget keys that switch to them.

Ring LWE with a ternary secret s and centred binomial errors e (Lyubashevsky, Peikert, Regev
2010). A ciphertext is (c0, c1) with c0 + c1 s = m + f e: f = 1 for CKKS, whose message takes
the error in, f = t for BGV (Brakerski, Gentry, Vaikuntanathan 2012), whose message is what
remains modulo t. Parts are held as values, int64 [..., 2, k, n]."""

import math

import numpy as np

BASE_BITS = 4


class SecretKey:
    """coefficients: int64 [n] of -1, 0, 1."""

    def __init__(self, ring, coefficients):
        self.ring, self.coefficients = ring, coefficients
        self.values = ring.forward(ring.from_integers(coefficients))

    def encrypt(self, sampler, message, factor=1):
        """Signed coefficients [..., n] -> ciphertexts [..., 2, k, n]."""
        errors = sampler.errors(message.shape) * factor
        return self.mask(sampler, self.ring.forward(self.ring.from_integers(message + errors)))

    def mask(self, sampler, values):
        """Values [..., k, n] -> (values - a s, a) with a uniform, [..., 2, k, n]."""
        ring = self.ring
        c1 = sampler.uniform(ring, values.shape[:-2])
        c0 = ring.minus(values, ring.times(c1, self.values))
        return np.stack((c0, c1), axis=-3)

    def decrypt(self, ciphertext):
        """[..., 2, k, n] -> the coefficients of c0 + c1 s, object [..., n], centred."""
        ring = self.ring
        c0, c1 = ciphertext[..., 0, :, :], ciphertext[..., 1, :, :]
        return ring.to_integers(ring.inverse(ring.plus(c0, ring.times(c1, self.values))))

    def turned(self, element):
        """The values of s(x^element), [k, n]."""
        return turn(self.values, element)

    def square(self):
        return self.ring.times(self.values, self.values)

    def switching_key(self, sampler, old, factors, error_factor=1):
        """Encryptions under s of old * factor for every factor (any integers): [d, 2, k, n].

        With factors 2^(4 i) and the digits of the CRT value of c, the sum of digit i times
        key i is a ciphertext of c * old (Brakerski, Vaikuntanathan 2011)."""
        ring = self.ring
        errors = sampler.errors((len(factors), ring.n)) * error_factor
        scaled = np.stack([ring.times_int(old, factor) for factor in factors])
        noisy = ring.plus(ring.forward(ring.from_integers(errors)), scaled)
        return self.mask(sampler, noisy)


def turn(values, element):
    """Values of a(x) -> values of a(x^element): the value at root r comes from r^element."""
    return values[..., galois_indices(values.shape[-1], element)]


def galois_indices(n, element):
    """int64 [n]: where each value of a(x^element) is among those of a(x)."""
    return ((2 * np.arange(n, dtype=np.int64) + 1) * element % (2 * n) - 1) // 2


def full_factors(ring):
    """The gadget over the full q: 2^(4 i) up to q."""
    return [1 << bit for bit in range(0, ring.full.bit_length(), BASE_BITS)]


def limb_factors(ring, limb):
    """The gadget of one prime: 2^(4 i) times the integer that is 1 modulo it, 0 modulo others."""
    q = ring.primes[limb]
    others = ring.full // q
    idempotent = others * pow(others, -1, q)
    return [(idempotent << bit) % ring.full for bit in range(0, q.bit_length(), BASE_BITS)]


def digit_factors(primes, special, digits):
    """The hybrid gadget over digits of several primes, ranges of `primes`: the product of the
    special primes times the integer that is 1 modulo those of a digit and 0 modulo the others."""
    factors = []
    for digit in digits:
        own = math.prod(primes[i] for i in digit)
        others = math.prod(primes) // own
        factors.append(math.prod(special) * others * pow(others, -1, own))
    return factors
