# SPDX-License-Identifier: Apache-2.0
"""Gadgets of key switching, and where automorphisms take values from."""

import numpy as np

BASE_BITS = 4


def galois_indices(n, element):
    """int64 [n]: where each value of a(x^element) is among those of a(x)."""
    return ((2 * np.arange(n, dtype=np.int64) + 1) * element % (2 * n) - 1) // 2


def full_factors(ring):
    """The gadget over the full q: 2^(4 i) up to q."""
    return [1 << bit for bit in range(0, ring.full.bit_length(), BASE_BITS)]
