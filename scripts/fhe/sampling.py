# SPDX-License-Identifier: Apache-2.0
"""Random polynomials as a function of an integer seed.

SplitMix64 is reproducible and fast, and no cryptographic generator: keys made here protect
nothing. Test data wants that; a client would draw from the operating system."""

import numpy as np

from transcript_builder import Rng

ETA = 21  # centred binomial: the sum of 21 coins minus that of 21 others; deviation 3.24


def popcount(words):
    """uint64 -> int64, the number of ones."""
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        mask = np.uint64(mask)
        words = (words & mask) + ((words >> np.uint64(shift)) & mask)
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


class Sampler:
    def __init__(self, seed):
        self.rng = Rng(seed)

    def ternary(self, shape):
        """int64 of -1, 0 and 1, evenly."""
        return self.rng.integers(-1, 1, shape)

    def errors(self, shape):
        """int64 in [-21, 21], centred binomial, variance 10.5."""
        words = self.rng.words(int(np.prod(shape))).reshape(shape)
        coins = np.uint64(2**ETA - 1)
        return popcount(words & coins) - popcount((words >> np.uint64(ETA)) & coins)

    def below(self, q, count):
        """int64 [count], uniform in [0, q): words cut to q's bits, those not below q rejected."""
        mask = np.uint64(2 ** q.bit_length() - 1)
        kept, missing = [], count
        while missing > 0:
            words = self.rng.words(missing + missing // 8 + 16) & mask
            words = words[words < np.uint64(q)][:missing]
            kept.append(words)
            missing -= len(words)
        return np.concatenate(kept).astype(np.int64)

    def uniform(self, ring, shape):
        """int64 [*shape, k, n], limb j uniform in [0, q_j)."""
        count = int(np.prod(shape)) * ring.n
        limbs = [self.below(q, count).reshape(tuple(shape) + (ring.n,)) for q in ring.primes]
        return np.stack(limbs, axis=-2)
