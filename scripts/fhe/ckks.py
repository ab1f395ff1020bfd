# SPDX-License-Identifier: Apache-2.0
"""The canonical embedding of CKKS (Cheon, Kim, Kim, Song 2017): slots to coefficients and back.

Slot j of a real polynomial m is m(zeta^(5^j)), zeta = e^(i pi / n), j in [0, n/2): x -> x^5
turns the slots by one to the left. Encoding decides bytes of transcripts, so it must round
alike everywhere: the roots come from integers, and sums and products are made of separate
additions and multiplications of IEEE doubles, which no machine may fuse."""

import functools
import math

import numpy as np

from transcript_builder import bit_reversal

FIXED = 200  # bits behind the point of the integers that the roots are made of


@functools.lru_cache(maxsize=None)
def roots_of_unity(n):
    """(cos, sin) of pi*i/n, two float64 [2n]; correctly rounded but for the last fixed bits."""
    one = 1 << FIXED
    cosine, sine = [one], [0]
    step = (0, one)  # a quarter turn, halved until it is pi/n
    steps = []
    for _ in range(n.bit_length() - 1):
        steps.append(step)
        step = tuple(math.isqrt((one + sign * step[0]) * one // 2) for sign in (1, -1))
    steps = [(-one, 0)] + steps  # pi, pi/2, ... pi/n
    for c, s in reversed(steps[:n.bit_length()]):
        cosine, sine = (cosine + [(x * c - y * s) >> FIXED for x, y in zip(cosine, sine)],
                        sine + [(x * s + y * c) >> FIXED for x, y in zip(cosine, sine)])
    return np.array([x / one for x in cosine]), np.array([y / one for y in sine])


def times(a, b):
    """The product of (real, imaginary) pairs, without fused operations."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def fourier(x, sign):
    """x (real, imaginary), each float64 [n, rows] -> sum over i of x[i] e^(sign 2 pi i u / n)."""
    n, rows = x[0].shape
    reverse = bit_reversal(n)
    real, imaginary = x[0][reverse], x[1][reverse]
    cosine, sine = roots_of_unity(n)
    m = 1
    while m < n:
        at = np.arange(m) * (n // m)
        root = cosine[at][:, None], sign * sine[at][:, None]
        pairs = [part.reshape(n // (2 * m), 2, m, rows) for part in (real, imaginary)]
        turned = times((pairs[0][:, 1], pairs[1][:, 1]), root)
        real, imaginary = (np.stack((pair[:, 0] + turn, pair[:, 0] - turn), axis=1).reshape(n, rows)
                           for pair, turn in zip(pairs, turned))
        m *= 2
    return real, imaginary


@functools.lru_cache(maxsize=None)
def slot_indices(n):
    """int64 [n/2]: slot j is the value at zeta^(2u + 1), u = slot_indices(n)[j]."""
    powers = [1]
    for _ in range(n // 2 - 1):
        powers.append(powers[-1] * 5 % (2 * n))
    return (np.array(powers, dtype=np.int64) - 1) // 2


def encode(slots, scale):
    """float64 [..., n/2] of real slots -> int64 [..., n] coefficients; |scale * slots| < 2^50."""
    n = 2 * slots.shape[-1]
    rows = slots.reshape(-1, n // 2).T
    values = np.zeros((n, rows.shape[1]))
    values[slot_indices(n)] = rows
    values[n - 1 - slot_indices(n)] = rows  # the conjugate place holds the same real value
    cosine, sine = roots_of_unity(n)
    real, _ = times(fourier((values, np.zeros_like(values)), -1),
                    (cosine[:n, None], -sine[:n, None]))
    return np.rint(real * (scale / n)).astype(np.int64).T.reshape(slots.shape[:-1] + (n,))


def decode(coefficients, scale):
    """Integers [..., n], of any size -> float64 [..., n/2], the real parts of the slots."""
    n = coefficients.shape[-1]
    rows = coefficients.reshape(-1, n).T.astype(np.float64)
    cosine, sine = roots_of_unity(n)
    values, _ = fourier((rows * cosine[:n, None], rows * sine[:n, None]), 1)
    return (values[slot_indices(n)] / scale).T.reshape(coefficients.shape[:-1] + (n // 2,))


def galois_indices(n, element):
    """int64 [n]: where each value of a(x^element) is among those of a(x)."""
    return ((2 * np.arange(n, dtype=np.int64) + 1) * element % (2 * n) - 1) // 2


def rotation(n, steps):
    """The Galois element that turns slots to the left by `steps`."""
    return pow(5, steps % (n // 2), 2 * n)
