# SPDX-License-Identifier: Apache-2.0
"""Keys, encryption and decryption for tests of healcl.fhe, in NumPy. Not secure: noise and secrets
come from a seed."""
import math

import numpy as np

import healcl
from healcl import fhe
from healcl.fhe._ring import _is_prime


def primes(n, *bits):
    """Different primes that are 1 modulo 2n, of these bits, the special ones last."""
    found = []
    for each in bits:
        q = (1 << each) + 1
        while q in found or not _is_prime(q):
            q -= 2 * n
        found.append(q)
    return found


class Client:
    def __init__(self, ring, special, dnum, generator=5, weight=None, seed=1):
        self.ring, self.special, self.dnum, self.generator = ring, special, dnum, generator
        self.rng, self.queue = np.random.default_rng(seed), healcl.reference.queue()
        self.count = len(ring.moduli) - special
        self.column = np.array(ring.moduli)[:, None]
        self.secret = self.new_secret(weight)

    def new_secret(self, weight=None):
        """A ternary secret with that many coefficients that are not 0."""
        n = self.ring.n
        coefficients = np.zeros(n, np.int64)
        places = self.rng.choice(n, weight or n // 2, False)
        coefficients[places] = self.rng.choice([-1, 1], len(places))
        return fhe.ntt(coefficients % self.column, self.ring)

    def multiply(self, a, b):
        a, b = np.broadcast_arrays(a, b)
        column = self.column[:a.shape[-2]]
        ops, array = self.queue.ops, self.queue.array
        return ops.modmul(array(a), array(b), array(column)).read()

    def uniform(self, *lead):
        return np.stack([self.rng.integers(0, q, (*lead, self.ring.n))
                         for q in self.ring.moduli], -2)

    def error(self, *lead):
        noise = np.rint(self.rng.normal(0, 3.2, (*lead, 1, self.ring.n))).astype(np.int64)
        return fhe.ntt(noise % self.column, self.ring)

    def key(self, old, new=None, level=None):
        """A key [digits, 2, primes, n] from the secret `old` to `new`; cut to a level."""
        moduli, count = self.ring.moduli, self.count
        size = -(-count // self.dnum)
        digits = [range(i, min(i + size, count)) for i in range(0, count, size)]
        a = self.uniform(len(digits))
        b = (self.error(len(digits)) - self.multiply(a, self.secret if new is None else new)) % \
            self.column
        product = math.prod(moduli[count:])
        for i, digit in enumerate(digits):
            factors = np.array([[product % q if j in digit else 0]
                                for j, q in enumerate(moduli)])
            b[i] = (b[i] + self.multiply(old, factors)) % self.column
        key = np.stack((b, a), 1)
        if level is None:
            return key
        used = sum(digit.start <= level for digit in digits)
        return np.concatenate((key[:used, :, :level + 1], key[:used, :, count:]), 2)

    def relinearization_key(self):
        return self.key(self.multiply(self.secret, self.secret))

    def galois_keys(self, steps, turn="before", conjugate=True):
        n, ring = self.ring.n, self.ring
        elements = [ring.galois_element(each, self.generator) for each in steps] + \
            [2 * n - 1] * conjugate
        if turn == "before":
            return {g: self.key(self.secret[:, ring.automorphism(g)]) for g in elements}
        return {g: self.key(self.secret, self.secret[:, ring.automorphism(pow(g, -1, 2 * n))])
                for g in elements}

    def evaluator(self, device, steps=(), turn="before", **options):
        return fhe.from_arrays(
            device, self.ring, special=self.special, dnum=self.dnum, generator=self.generator,
            turn=turn, relinearization_key=self.relinearization_key(),
            galois_keys=self.galois_keys(steps, turn), **options)

    def encrypt(self, values, level, scale):
        """Residues [2, level + 1, n] of numbers in all slots."""
        with fhe.from_arrays(healcl.reference, self.ring, special=self.special,
                             generator=self.generator) as he:
            message = he.encode(values, level, scale).read()[0]
        k = level + 1
        a = self.uniform()[:k]
        masked = self.multiply(a, self.secret[:k])
        return np.stack(((message + self.error()[:k] - masked) % self.column[:k], a))

    def decrypt(self, residues, scale, secret=None):
        """The slots of residues [2, k, n]."""
        k, n = residues.shape[1], self.ring.n
        moduli = self.ring.moduli[:k]
        masked = self.multiply(residues[1], (self.secret if secret is None else secret)[:k])
        x = fhe.intt((residues[0] + masked) % self.column[:k], self.ring.pick(range(k)))
        product = math.prod(moduli)
        value = sum(row.astype(object) * (product // q * pow(product // q, -1, q))
                    for row, q in zip(x, moduli)) % product
        centred = np.where(value > product // 2, value - product, value)
        values = np.fft.ifft((centred / scale).astype(float) *
                             np.exp(1j * np.pi * np.arange(n) / n)) * n
        return values[[pow(self.generator, j, 2 * n) // 2 for j in range(n // 2)]]
