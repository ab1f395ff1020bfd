# SPDX-License-Identifier: Apache-2.0
"""A rotation and a product with hybrid key switching: CKKS in residues, as compilers emit it.

Ciphertexts are modulo Q, the product of `limbs` primes, keys modulo P Q, P a product of
special primes of 61 bits (Gentry, Halevi, Smart 2012). The primes of Q fall into `dnum` digits
(Han, Ki 2020): switching a part c to another key extends its residues modulo each digit to all
primes (ModUp), adds up the products with the key, and divides by P (ModDown). Residues change
their moduli by the fast base conversion of Bajard, Eynard, Hasan and Zucca (2016), without the
correction of Halevi, Polyakov and Shoup (2019): x plus a small multiple of the old modulus,
which ModUp forgives because the key cancels it, and ModDown because it divides it away. The
product is rescaled by the last prime (Cheon, Han, Kim, Kim, Song 2018), which is a ModDown too."""

import math

import numpy as np

from bundled_workloads import intt_args, ntt_args
from fhe import ckks
from fhe._secret import digit_factors
from fhe.program import Program
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

FIRST_BITS, PRIME_BITS, SPECIAL_BITS = 60, 45, 61
VALUE_BITS = 10  # slots are integers of [-2^10, 2^10] over 2^10
STEPS = 5        # of the rotation
SIZES = [1 << log2 for log2 in range(6, 17)]  # what n may be
MOST_LIMBS = 48


class Parameters:
    """The primes: `primes` of Q in order, `special` those of P, `digits` the ranges of Q's primes
    that make a digit each, at most dnum. P is at least as large as any digit."""

    def __init__(self, n, limbs, dnum):
        size = -(-limbs // dnum)
        self.primes = ntt_primes(FIRST_BITS, n, 1) + ntt_primes(PRIME_BITS, n, limbs - 1)
        self.digits = [range(first, min(first + size, limbs)) for first in range(0, limbs, size)]
        largest = max(math.prod(self.primes[i] for i in digit) for digit in self.digits)
        candidates = ntt_primes(SPECIAL_BITS, n, size + 1)
        count = next(i for i in range(1, size + 2) if math.prod(candidates[:i]) >= largest)
        self.special = candidates[:count]


def conversion(source, target):
    """Returns constants that convert residues x_i modulo the primes `source`, of product D, to `target`:
    factors (D/d_i)^-1 mod d_i, int64 [source], and weights D/d_i mod m, int64 [source, target]."""
    full = math.prod(source)
    inverses = [pow(full // d, -1, d) for d in source]
    return np.array(inverses), np.array([[full // d % m for m in target] for d in source])


class Hybrid:
    """The steps of the workload, on the program t. Ciphertexts are [2, n, limbs] on the device,
    values in natural order."""

    def __init__(self, t, parameters):
        self.t, self.parameters, self.n = t, parameters, t.ring.n
        self.limbs, self.all = len(parameters.primes), t.ring.k
        self.constants = []

    def upload(self, values):
        """A constant, int64, that lives to the end."""
        self.constants.append(self.t.upload(values))
        return self.constants[-1]

    def upload_constants(self):
        parameters = self.parameters
        self.t.upload_tables()
        self.q_tables = self.tables(0, self.limbs)
        ups = [conversion([parameters.primes[i] for i in digit],
                          parameters.primes + parameters.special) for digit in parameters.digits]
        self.up_factors = self.upload(np.concatenate([factors for factors, _ in ups]))
        self.up_weights = [self.upload(weights) for _, weights in ups]
        self.by_special = self.divider(self.limbs, self.all)
        self.by_last = self.divider(self.limbs - 1, self.limbs)

    def tables(self, first, end):
        """The tables of the primes first to end - 1."""
        t, some = self.t, slice(first, end)
        names = ("q", "log2p", "mu", "psi", "ipsi", "n_inv")
        views = {name: t.pick(t.tables[name], some) for name in names}
        self.constants += views.values()
        return dict(t.tables, **views)

    def divider(self, kept, end):
        """Returns constants that divide by the primes kept to end - 1 and leave those before."""
        primes = (self.parameters.primes + self.parameters.special)[:end]
        target, source = primes[:kept], primes[kept:]
        factors, weights = conversion(source, target)
        inverse = [pow(math.prod(source), -1, m) for m in target]
        return {"kept": kept, "from": self.tables(kept, end), "to": self.tables(0, kept),
                "factors": self.upload(factors), "weights": self.upload(-weights % target),
                "inverse": self.upload(np.array(inverse))}

    def free_constants(self):
        self.t.free(*self.constants)
        self.t.free_tables()

    def upload_key(self, old):
        """A key from `old`, values [k, n], int64 [2, digits, all primes, n] on the device."""
        t, parameters = self.t, self.parameters
        factors = digit_factors(parameters.primes, parameters.special, parameters.digits)
        key = t.secret.switching_key(t.sampler, old, factors)
        return t.upload(np.ascontiguousarray(np.moveaxis(key, 1, 0)))

    def upload_ciphertext(self, slots, scale):
        t = self.t
        values = t.secret.encrypt(t.sampler, ckks.encode(slots / 2.0**VALUE_BITS, scale))
        return t.upload(np.ascontiguousarray(np.moveaxis(values[:, :self.limbs], 1, 2)))

    def convert(self, residues, weights, q, out):
        """The sum over i of residues [..., n, i] times weights [i, m], modulo q [m], to out
        [..., n, m]."""
        t = self.t
        column = t.op("unsqueeze", residues, -1)
        shape = t.array(column).shape[:-1] + t.array(q).shape
        products = t.op("_modmul_ttt", column, weights, q, t.empty(shape))
        t.op("axis_modsum", products, -2, q, out)
        t.free(column, products)

    def mod_up(self, c):
        """c [n, limbs] -> the values of its digits modulo all primes, bit-reversed
        [1, digits, all, n]. The residues modulo a digit's own primes come out as they were."""
        t, n, tables = self.t, self.n, self.t.tables
        layer = t.op("reshape", c, [1, n, 1, self.limbs])
        coefficients = t.op("intt", *intt_args(self.q_tables, layer,
                                               t.empty((1, n, 1, self.limbs))))
        residues = t.op("reshape", coefficients, [n, self.limbs])
        t.op("_modmul_ttt", residues, self.up_factors, self.q_tables["q"], residues)
        t.free(layer, coefficients)
        raised = t.empty((n, len(self.parameters.digits), self.all))
        for i, digit in enumerate(self.parameters.digits):
            part = t.pick(residues, Ellipsis, slice(digit.start, digit.stop))
            target = t.pick(raised, slice(None), i)
            self.convert(part, self.up_weights[i], tables["q"], target)
            t.free(part, target)
        moved = t.op("moveaxis", raised, 0, -1)
        rows = t.op("unsqueeze", moved, 0)
        spectrum = t.empty(t.array(rows).shape)
        t.op("ntt", *ntt_args(tables, rows, -1, spectrum, False, True))
        t.free(residues, raised, moved, rows)
        return spectrum

    def divide(self, a, by):
        """a [2, n, kept + dropped], values -> [2, n, kept]: a less what a is modulo the dropped
        primes, divided by them."""
        t, n, kept = self.t, self.n, by["kept"]
        q, dropped = by["to"]["q"], t.array(a).shape[-1] - kept
        rest = t.pick(a, Ellipsis, slice(kept, None))
        layer = t.op("unsqueeze", rest, 2)
        coefficients = t.op("intt", *intt_args(by["from"], layer, t.empty((2, n, 1, dropped))))
        residues = t.op("squeeze", coefficients, 2)
        t.free(rest, layer, coefficients)
        t.op("_modmul_ttt", residues, by["factors"], by["from"]["q"], residues)
        wanted = t.empty((2, n, kept))
        self.convert(residues, by["weights"], q, wanted)
        rows = t.op("unsqueeze", wanted, 2)
        t.op("ntt", *ntt_args(by["to"], rows, -3, rows, False, False))
        high = t.pick(a, Ellipsis, slice(0, kept))
        t.op("_modsum_ttt", high, wanted, q, wanted)
        t.op("_modmul_ttt", wanted, by["inverse"], q, wanted)
        t.free(residues, rows, high)
        return wanted

    def switch(self, c, key):
        """c [n, limbs], a part under the old key of `key` -> a ciphertext [2, n, limbs]."""
        t = self.t
        spectrum = self.mod_up(c)
        totals = t.zeros((2, 1, self.all, self.n))
        for half in (0, 1):
            total = t.pick(totals, half)
            t.apply_key(spectrum, key, half, total)
            t.free(total)
        flat = t.op("squeeze", totals, 1)
        moved = t.op("moveaxis", flat, -1, 1)
        switched = self.divide(moved, self.by_special)
        t.free(spectrum, totals, flat, moved)
        return switched

    def add(self, a, b):
        """a += b."""
        self.t.op("_modsum_ttt", a, b, self.q_tables["q"], a)

    def rotate(self, ct, indices, key):
        """ct -> the same with its slots turned to the left."""
        t = self.t
        turned = t.op("take_along_axis", ct, indices, 1, t.empty(t.array(ct).shape))
        c0, c1 = t.pick(turned, 0), t.pick(turned, 1)
        switched = self.switch(c1, key)
        target = t.pick(switched, 0)
        self.add(target, c0)
        t.free(turned, c0, c1, target)
        return switched

    def multiply(self, a, b, key):
        """The product of ciphertexts, relinearised: d0 + d1 s + d2 s^2 with d2 switched to s."""
        t, q = self.t, self.q_tables["q"]
        shape = t.array(a).shape
        parts = [t.pick(ct, half) for ct in (a, b) for half in (0, 1)]
        (a0, a1), (b0, b1) = parts[:2], parts[2:]
        square = t.op("_modmul_ttt", a1, b1, q, t.empty(shape[1:]))
        switched = self.switch(square, key)
        constant, linear = t.pick(switched, 0), t.pick(switched, 1)
        for x, y, target in ((a0, b0, constant), (a0, b1, linear), (a1, b0, linear)):
            t.op("_modmul_ttt", x, y, q, square)
            self.add(target, square)
        t.free(square, constant, linear, *parts)
        return switched


def run(seed, sink, name, n, limbs, dnum):
    parameters = Parameters(n, limbs, dnum)
    t = Program(seed, RnsRing(n, parameters.primes + parameters.special), sink)
    h = Hybrid(t, parameters)
    x, y = (t.values.integers(-(1 << VALUE_BITS), 1 << VALUE_BITS, (n // 2,))
            for _ in (0, 1))
    element, last = ckks.rotation(n, STEPS), parameters.primes[-1]
    with t.segment("upload_inf_context"):
        h.upload_constants()
        indices = h.upload(ckks.galois_indices(n, element).reshape(1, n, 1))
    t.nothing()
    with t.segment("upload_ek"):
        keys = [h.upload_key(old) for old in (t.secret.turned(element).values, t.secret.square())]
    t.nothing()
    with t.segment("upload_ct_1"):
        # the second scale is the prime that the product is divided by
        a, b = h.upload_ciphertext(x, 2.0**PRIME_BITS), h.upload_ciphertext(y, float(last))
    t.nothing()
    with t.segment("compute_block_1"):
        turned = h.rotate(a, indices, keys[0])
        t.free(a, keys[0])
        product = h.multiply(turned, b, keys[1])
        t.free(turned, b, keys[1])
        result = h.divide(product, h.by_last)
        t.free(product)
    t.nothing()
    with t.segment("download_ct_1"):
        t.download_result(result)
        t.free(result)
        h.free_constants()
    truth = np.roll(x, -STEPS) * y
    return t, t.answers(name, "CKKS", "slots", primes=parameters.primes[:-1], domain="values",
                        layout=["part", "n", "limb"], scale_bits=PRIME_BITS - 2 * VALUE_BITS,
                        unit=1 << (2 * VALUE_BITS), truth=truth.tolist())


def hybrid_toy(seed, sink=None):
    """a rotation and a product, relinearised and rescaled, CKKS in seven primes of 45 and 60 bits
    and three special ones of 61, n = 128, no security: hybrid key switching in three digits by
    fast base conversion"""
    return run(seed, sink, "hybrid_toy", 128, 7, 3)


def hybrid(seed, sink=None, n=65536, limbs=24, dnum=4):
    """a rotation and a product, relinearised and rescaled, of 32768 slots: CKKS, n = 65536, 24
    primes and five special ones, 128-bit security, hybrid key switching in four digits"""
    return run(seed, sink, "hybrid", n, limbs, dnum)
