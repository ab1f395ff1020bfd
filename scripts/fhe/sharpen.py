# SPDX-License-Identifier: Apache-2.0
"""An image filter on exact integers: BGV, one prime."""

import numpy as np

from fhe import data
from fhe.program import Program
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

N, PRIME_BITS, PLAIN_MODULUS = 4096, 60, 65537
SIDE, INSIDE = 64, 62  # a tile holds 62 x 62 pixels and a rim of one pixel
KERNEL = {(0, 0): 5, (0, 1): -1, (1, 0): -1, (0, -1): -1, (-1, 0): -1}


def filtered(picture):
    """The picture [h, w] under KERNEL, its rim repeated outwards."""
    wide = np.pad(picture, 1, mode="edge")
    h, w = picture.shape
    return sum(weight * wide[1 + y:1 + y + h, 1 + x:1 + x + w]
               for (y, x), weight in KERNEL.items())


def tiles(picture):
    """[h, w], multiples of 62 -> [tiles, 4096]: pixel (y, x) of a tile at 64 y + x."""
    wide = np.pad(picture, 1, mode="edge")
    return np.array([wide[y:y + SIDE, x:x + SIDE].reshape(-1)
                     for y in range(0, picture.shape[0], INSIDE)
                     for x in range(0, picture.shape[1], INSIDE)])


def kernel_polynomial(n):
    """Σ weight x^(64 y + x), modulo x^n + 1: the product shifts and adds pixels."""
    coefficients = np.zeros(n, dtype=np.int64)
    for (y, x), weight in KERNEL.items():
        power = SIDE * y + x
        coefficients[power % n] += weight if power >= 0 else -weight
    return coefficients


def sharpen(seed, sink=None):
    """image filter on exact integers, BGV modulo 65537, n = 4096, one 60-bit prime, 128-bit
    security: six encrypted tiles of a photograph times the kernel's polynomial, by ntt, modmul
    and intt"""
    ring = RnsRing(N, ntt_primes(PRIME_BITS, N, 1))
    t = Program(seed, ring, sink)
    picture = data.camera()
    message = tiles(picture)
    values = t.secret.encrypt(t.sampler, message, PLAIN_MODULUS)
    coefficients = ring.inverse(values)
    shape = (len(message), N, 2, 1)
    with t.segment("upload_inf_context"):
        t.upload_tables()
    t.nothing()
    with t.segment("upload_pipeline"):
        kernel = t.upload(ring.from_integers(kernel_polynomial(N)).reshape(1, N, 1, 1))
        weights = t.forward(kernel, -3, (1, N, 1, 1))
        t.free(kernel)
    t.nothing()
    with t.segment("upload_ct_1"):
        ct = t.upload(np.moveaxis(coefficients, -1, -3).reshape(shape), fortran=True)
    t.nothing()
    with t.segment("compute_block_1"):
        spectrum = t.forward(ct, -3, shape)
        t.free(ct)
        t.op("_modmul_ttt", spectrum, weights, t.tables["q"], spectrum)
        t.free(weights)
        result = t.inverse(spectrum, shape)
        t.free(spectrum)
    t.nothing()
    with t.segment("download_ct_1"):
        t.download_result(result)
        t.free(result)
        t.free_tables()
    return t, t.answers("sharpen", "BGV", "picture", plain_modulus=PLAIN_MODULUS,
                        layout=["tile", "n", "part", "limb"], domain="coefficients",
                        tiles=[picture.shape[0] // INSIDE, picture.shape[1] // INSIDE],
                        before=picture.tolist(), truth=filtered(picture).tolist())
