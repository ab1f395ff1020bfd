# SPDX-License-Identifier: Apache-2.0
"""A linear transform of slots at the size of bootstrapping: CKKS, n = 65536, many primes.

Bootstrapping is mostly such transforms (Cheon, Han, Kim, Kim, Song 2018): the sum over some
rotations of a diagonal times the turned slots (Halevi, Shoup 2014). Every rotation has its own
key, in a part for each prime: digits of the residue of that prime, no CRT value. Keys go to
the file part by part, so memory holds one part at a time."""

import numpy as np

from fhe import ckks
from fhe.keys import BASE_BITS, galois_indices, limb_factors
from fhe.program import Program, limbs_last
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

N, PRIME_BITS = 65536, 50
VALUE_BITS = 10            # slots and diagonals are integers of [-2^10, 2^10] ...
SCALE_BITS = 34            # ... times 2^34


def values(t, shape):
    """Integers in [-2^10, 2^10]."""
    return t.values.integers(-(1 << VALUE_BITS), 1 << VALUE_BITS, shape)


def upload_key_part(t, old, limb):
    """-> the two halves of a key for the digits of one residue, each [digits, k, n]."""
    key = t.secret.switching_key(t.sampler, old, limb_factors(t.ring, limb))
    return [t.upload(np.ascontiguousarray(key[:, half])) for half in (0, 1)]


def switch(t, c1, old):
    """c1 [n, k], a part under the key `old` -> two totals [1, k, n], a ciphertext of c1 old."""
    n, k = t.ring.n, t.ring.k
    first = t.op("unsqueeze", c1, 0)
    layer = t.op("unsqueeze", first, 2)
    coefficients = t.inverse(layer, (1, n, 1, k))
    t.free(first, layer)
    totals = [t.zeros((1, k, n)) for _ in (0, 1)]
    for limb in range(k):
        residue = t.pick(coefficients, Ellipsis, 0, limb)
        digits = -(-t.ring.primes[limb].bit_length() // BASE_BITS)
        small = t.op("apply_g_decomp", residue, digits, BASE_BITS, t.empty((1, n, digits), "int8"))
        moved = t.op("moveaxis", small, -1, 1)
        tiled = t.op("unsqueeze", moved, -2)
        spectrum = t.forward(tiled, -1, (1, digits, k, n), tile=True, skip_perm=True)
        t.free(residue, small, moved, tiled)
        halves = upload_key_part(t, old, limb)
        for half, total in zip(halves, totals):
            t.op("modmul_axis_sum", spectrum, half, t.tables["q"], t.tables["log2p"],
                 t.tables["mu"], t.tables["perm"], total, True)
        t.free(spectrum, *halves)
    t.free(coefficients)
    return totals


def rotate(t, ct, steps):
    """ct [n, 2, k] -> the same with its slots turned to the left."""
    q, element = t.tables["q"], ckks.rotation(t.ring.n, steps)
    indices = t.upload(galois_indices(t.ring.n, element).reshape(-1, 1, 1))
    turned = t.op("take_along_axis", ct, indices, 0, t.empty(t.array(ct).shape))
    c0, c1 = t.pick(turned, Ellipsis, 0, slice(None)), t.pick(turned, Ellipsis, 1, slice(None))
    totals = switch(t, c1, t.secret.turned(element).values)
    t.op("set_const_val", c1, 0)
    for part, total in zip((c0, c1), totals):
        flat = t.op("squeeze", total, 0)
        back = t.op("moveaxis", flat, -1, 0)
        t.op("_modsum_ttt", part, back, q, part)
        t.free(flat, back, part, total)
    t.free(indices)
    return turned


def times_diagonal(t, ct, diagonal):
    """ct [n, 2, k] becomes its product with slots, integers [n/2]."""
    encoded = ckks.encode(diagonal.astype(float), 2.0**SCALE_BITS)
    plain = t.ring.forward(t.ring.from_integers(encoded))
    plain = t.upload(np.moveaxis(plain, 0, 1)[:, None], fortran=True)
    t.op("_modmul_ttt", ct, plain, t.tables["q"], ct)
    t.free(plain)


def bootstrap(seed, sink=None, limbs=8, rotations=3):
    """a linear transform of 32768 slots at the size of bootstrapping, CKKS, n = 65536, up to eight
    50-bit primes, above 128-bit security: rotations with a key of 1.2 GB each"""
    if not 2 <= limbs <= 8:
        raise ValueError("two to eight primes")
    ring = RnsRing(N, ntt_primes(PRIME_BITS, N, limbs))
    t = Program(seed, ring, sink)
    slots = values(t, (N // 2,))
    with t.segment("upload_inf_context"):
        t.upload_tables()
    t.nothing()
    with t.segment("upload_ct_1"):
        message = ckks.encode(slots.astype(float), 2.0**SCALE_BITS)
        ct = t.upload(limbs_last(t.secret.encrypt(t.sampler, message)), fortran=True)
        total = t.zeros((N, 2, limbs))
    t.nothing()
    truth = np.zeros(N // 2, dtype=np.int64)
    for i in range(rotations):
        steps, diagonal = 1 << i, values(t, (N // 2,))
        truth += diagonal * np.roll(slots, -steps)
        with t.segment("compute_block_%d" % (i + 1)):
            turned = rotate(t, ct, steps)
            times_diagonal(t, turned, diagonal)
            t.op("_modsum_ttt", total, turned, t.tables["q"], total)
            t.free(turned)
        t.nothing()
    with t.segment("download_ct_1"):
        t.download_result(total)
        t.free(ct, total)
        t.free_tables()
    return t, t.answers("bootstrap", "CKKS", "slots", domain="values",
                        layout=["n", "part", "limb"], scale_bits=2 * SCALE_BITS,
                        unit=1 << (2 * VALUE_BITS), truth=truth.tolist())
