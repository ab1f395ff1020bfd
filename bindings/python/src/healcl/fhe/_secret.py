# SPDX-License-Identifier: Apache-2.0
"""Secret keys, encryption with them, and switching keys, only in NumPy. scripts/fhe uses it, too.

This implementation is not secure: a seed determines everything, and nothing runs in constant time."""
import math
from typing import Any, Callable, Iterable, List, Sequence, Tuple

import numpy as np

ETA = 21  # centred binomial: the sum of 21 coins minus that of 21 others; deviation 3.24


class Polynomials:
    """Polynomials modulo x^n + 1 and primes, int64 [..., k, n] in [0, q): coefficients, or values in
    the order of a derived class. Derived classes have forward(), inverse(), plus(), minus() and
    times() of values."""

    n: int
    primes: Sequence[int]
    forward: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray], np.ndarray]
    plus: Callable[[np.ndarray, np.ndarray], np.ndarray]
    minus: Callable[[np.ndarray, np.ndarray], np.ndarray]
    times: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def from_integers(self, values: np.ndarray) -> np.ndarray:
        """Signed integers [..., n] (int64, or object for longer ones) -> [..., k, n]."""
        return np.stack([(values % q).astype(np.int64) for q in self.primes], axis=-2)

    def to_integers(self, a: np.ndarray) -> np.ndarray:
        """Coefficients [..., k, n] -> object [..., n] in (-Q/2, Q/2], Q the product of primes."""
        full, total = math.prod(self.primes), np.zeros((), object)
        for j, q in enumerate(self.primes):
            total = total + a[..., j, :].astype(object) * (full // q * pow(full // q, -1, q))
        total = total % full
        return np.asarray(total - (total > full // 2).astype(object) * full)


def popcount(words: np.ndarray) -> np.ndarray:
    """uint64 -> int64, the number of bits that are 1."""
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        words = (words & np.uint64(mask)) + ((words >> np.uint64(shift)) & np.uint64(mask))
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


class Sampler:
    """Random polynomials. words(count) gives uint64 [count], uniform."""

    def __init__(self, words: Callable[[int], np.ndarray]) -> None:
        self.words = words

    def ternary(self, n: int) -> np.ndarray:
        """int64 [n], uniform in -1, 0 and 1."""
        return np.asarray((self.words(n) % np.uint64(3)).astype(np.int64) - 1)

    def sparse(self, n: int, weight: int) -> np.ndarray:
        """int64 [n] of -1, 0 and 1, of which `weight` are not 0."""
        out = np.zeros(n, np.int64)
        out[np.argsort(self.words(n), kind="stable")[:weight]] = \
            (self.words(weight) & np.uint64(2)).astype(np.int64) - 1
        return out

    def errors(self, shape: Tuple[int, ...]) -> np.ndarray:
        """int64 in [-21, 21], centred binomial, variance 10.5."""
        words = self.words(math.prod(shape)).reshape(shape)
        coins = np.uint64(2**ETA - 1)
        heads, tails = popcount(words & coins), popcount((words >> np.uint64(ETA)) & coins)
        return np.asarray(heads - tails)

    def below(self, q: int, count: int) -> np.ndarray:
        """int64 [count], uniform in [0, q): words cut to q's bits, those not below q rejected."""
        mask = np.uint64(2 ** q.bit_length() - 1)
        kept: List[np.ndarray] = []
        missing = count
        while missing > 0:
            words = self.words(missing + missing // 8 + 16) & mask
            kept.append(words[words < np.uint64(q)][:missing])
            missing -= len(kept[-1])
        return np.concatenate(kept).astype(np.int64)

    def uniform(self, ring: Polynomials, shape: Tuple[int, ...]) -> np.ndarray:
        """int64 [*shape, k, n], limb j uniform in [0, q_j)."""
        limbs = [self.below(q, math.prod(shape) * ring.n).reshape(*shape, ring.n)
                 for q in ring.primes]
        return np.stack(limbs, axis=-2)


class SecretKey:
    """A secret s; coefficients: int64 [n] of -1, 0, 1.

    Ring LWE with centred binomial errors e (Lyubashevsky, Peikert, Regev 2010). A ciphertext is
    (c0, c1) with c0 + c1 s = m + f e. For CKKS f = 1, and the error becomes part of the message.
    For BGV (Brakerski, Gentry, Vaikuntanathan 2012) f = t, and the message is the remainder
    modulo t. Parts are values, int64 [..., 2, k, n]."""

    def __init__(self, ring: Any, coefficients: np.ndarray) -> None:
        self.ring, self.coefficients = ring, coefficients
        self.values = ring.forward(ring.from_integers(coefficients))

    def encrypt(self, sampler: Sampler, message: np.ndarray, factor: int = 1) -> np.ndarray:
        """Signed coefficients [..., n] -> ciphertexts [..., 2, k, n]."""
        errors = sampler.errors(message.shape) * factor
        return self.mask(sampler, self.ring.forward(self.ring.from_integers(message + errors)))

    def mask(self, sampler: Sampler, values: np.ndarray) -> np.ndarray:
        """Values [..., k, n] -> (values - a s, a) with a uniform, [..., 2, k, n]."""
        c1 = sampler.uniform(self.ring, values.shape[:-2])
        return np.stack((self.ring.minus(values, self.ring.times(c1, self.values)), c1), axis=-3)

    def decrypt(self, ciphertext: np.ndarray) -> np.ndarray:
        """[..., 2, k, n] -> the coefficients of c0 + c1 s, object [..., n], centred."""
        ring, c0, c1 = self.ring, ciphertext[..., 0, :, :], ciphertext[..., 1, :, :]
        return np.asarray(ring.to_integers(ring.inverse(ring.plus(c0, ring.times(
            c1, self.values)))))

    def turned(self, element: int) -> "SecretKey":
        """s(x^element)."""
        n = self.ring.n
        powers = np.arange(n) * (element % (2 * n)) % (2 * n)
        turned = np.empty(n, np.int64)
        turned[powers % n] = np.where(powers < n, self.coefficients, -self.coefficients)
        return SecretKey(self.ring, turned)

    def square(self) -> np.ndarray:
        """The values of s^2."""
        return np.asarray(self.ring.times(self.values, self.values))

    def switching_key(self, sampler: Sampler, old: np.ndarray,
                      factors: Iterable[int]) -> np.ndarray:
        """Encryptions under s of old * factor for every factor (any integers): [d, 2, k, n].

        With factors 2^(4 i) and the digits of the CRT value of c, the sum of digit i times
        key i is a ciphertext of c * old (Brakerski, Vaikuntanathan 2011)."""
        ring = self.ring
        scaled = np.stack([ring.times(old, np.array([[factor % q] for q in ring.primes]))
                           for factor in factors])
        errors = ring.forward(ring.from_integers(sampler.errors((len(scaled), ring.n))))
        return self.mask(sampler, ring.plus(errors, scaled))


def digit_factors(primes: Sequence[int], special: Sequence[int],
                  digits: Iterable[range]) -> List[int]:
    """The hybrid gadget over digits of several primes, ranges of `primes`: the product of the
    special primes times the integer that is 1 modulo those of a digit and 0 modulo the others."""
    factors = []
    for digit in digits:
        own = math.prod(primes[i] for i in digit)
        others = math.prod(primes) // own
        factors.append(math.prod(special) * others * pow(others, -1, own))
    return factors
