#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the oracle against the definitions, element by element.

The oracle is written over whole arrays; here the same operations are computed by loops
that follow the formulas of the HEAL interface, or by properties such as the convolution
theorem. Run: python3 scripts/test_heal_oracle.py"""

import itertools
import math
import unittest

import python_with_numpy

python_with_numpy.require()

import numpy as np

from transcript_builder import INT64_MAX, INT64_MIN, Ring, Transcript, ntt_primes


class Definitions(unittest.TestCase):
    def setUp(self):
        self.t = Transcript(self.id())
        self.rng = self.t.rng

    def run_op(self, name, *args):
        """Arrays become uploads; -> the result as an array."""
        args = [self.t.upload(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return self.t.array(self.t.op(name, *args)).copy()

    def assert_same(self, actual, expected):
        self.assertEqual(actual.tolist(), np.array(expected, dtype=object).tolist())

    def test_remainders(self):
        a, b = self.rng.extremes((200,)), self.rng.extremes((200,))
        p = self.rng.integers(1, INT64_MAX, (200,))
        out = np.zeros((200,), dtype=np.int64)

        def truncated(x, modulus):
            quotient = abs(x) // modulus
            return x + quotient * modulus if x < 0 else x - quotient * modulus

        triples = list(zip(a.tolist(), b.tolist(), p.tolist()))
        self.assert_same(self.run_op("_modmul_ttt", a, b, p, out),
                         [truncated(x * y, m) for x, y, m in triples])
        self.assert_same(self.run_op("_modsum_ttt", a, b, p, out),
                         [truncated(x + y, m) for x, y, m in triples])
        self.assert_same(self.run_op("_mod_tt", a, p, out), [truncated(x, m) for x, _, m in triples])
        self.assert_same(self.run_op("_mod_ct", INT64_MIN, p, out),
                         [truncated(INT64_MIN, m) for m in p.tolist()])
        for value, x, m in zip(self.run_op("_modneg_tt", a, p, out).tolist(), a.tolist(), p.tolist()):
            self.assertTrue(0 <= value < m and (value + x) % m == 0)

    def test_modmul_axis_sum(self):
        reps, s, k, n = 2, 3, 2, 8
        q, perm = [97, INT64_MAX], self.rng.permutation(n)
        for last, applied in itertools.product((True, False), (True, False)):
            a = self.rng.extremes((reps, s, k, n) if last else (reps, n, s, k))
            b = self.rng.extremes((s, k, n) if last else (n, s, k))
            out = self.rng.extremes((reps, k, n) if last else (reps, n, k))
            expected = out.astype(object)
            for r, j, l in itertools.product(range(reps), range(k), range(n)):
                m = int(perm[l]) if applied else l
                total = 0
                for i in range(s):
                    x = a[r, i, j, l] if last else a[r, l, i, j]
                    y = b[i, j, m] if last else b[m, i, j]
                    total += int(x) * int(y)
                where = (r, j, m) if last else (r, m, j)
                expected[where] = (int(out[where]) + total) % q[j]
            self.assert_same(self.run_op("modmul_axis_sum", a, b, np.array(q), None, None, perm, out,
                                         applied, -1 if last else -3), expected)

    def transform_args(self, ring):
        return [ring.perm, ring.pairs, ring.q, ring.log2p, ring.mu]

    def test_ntt_evaluates(self):
        """Value u is the polynomial at psi^(2 bitreverse(u) + 1), in natural order with perm."""
        for n in (1, 2, 8, 32):
            ring = Ring(n, ntt_primes(62, n, 2))
            a = ring.residues(self.rng, (1, n, 1, 2))
            out = np.zeros_like(a)
            for skip in (True, False):
                actual = self.run_op("ntt", a, -3, *self.transform_args(ring), ring.psi, out, False, skip)
                for j, q in enumerate(ring.moduli):
                    root = int(ring.psi[j, ring.perm[1]]) if n > 1 else q - 1
                    for u in range(n):
                        point = pow(root, 2 * int(ring.perm[u] if skip else u) + 1, q)
                        value = sum(int(a[0, i, 0, j]) * pow(point, i, q) for i in range(n)) % q
                        self.assertEqual(int(actual[0, u, 0, j]), value)

    def test_negacyclic_product(self):
        n = 16
        ring = Ring(n, ntt_primes(63, n, 1))
        q = ring.moduli[0]
        x, y = (ring.residues(self.rng, (1, n, 1, 1)) for _ in range(2))
        out = np.zeros_like(x)
        spectra = [self.run_op("ntt", z, -3, *self.transform_args(ring), ring.psi, out, False, False)
                   for z in (x, y)]
        product = self.run_op("_modmul_ttt", *spectra, ring.q, out)
        actual = self.run_op("intt", product, *self.transform_args(ring), ring.ipsi, ring.n_inv, out, 0)
        expected = [0] * n
        for i, j in itertools.product(range(n), range(n)):
            sign = 1 if i + j < n else -1
            expected[(i + j) % n] += sign * int(x[0, i, 0, 0]) * int(y[0, j, 0, 0])
        self.assert_same(actual.reshape(n), [value % q for value in expected])

    def test_digits(self):
        for dtype, base_bits in itertools.product(("int32", "int64"), (1, 3, 4, 16, 64)):
            width = 8 * np.dtype(dtype).itemsize
            a, count = self.rng.extremes((20,), dtype), -(-width // base_bits)
            digits = self.run_op("apply_g_decomp", a, count, base_bits,
                                 np.zeros((20, count), dtype=np.int64))
            for value, row in zip(a.tolist(), digits.tolist()):
                row = [digit % 2**64 for digit in row]
                self.assertTrue(all(digit < 2**base_bits for digit in row))
                self.assertEqual(sum(digit << (base_bits * i) for i, digit in enumerate(row)),
                                 value % 2**width)

    def test_digits_of_crt_value(self):
        for moduli in ([97], [2**62, INT64_MAX], ntt_primes(62, 16, 5), [1, 6, 35]):
            k, full = len(moduli), math.prod(moduli)
            a = self.rng.extremes((2, k, 4))
            count = -(-full.bit_length() // 7)
            digits = self.run_op("apply_g_decomp_relative_to_full_q", a, np.array(moduli), count, 7,
                                 np.zeros((2, count, 4), dtype=np.int8))
            for l, r in itertools.product(range(2), range(4)):
                value = sum(int(digits[l, i, r]) << (7 * i) for i in range(count))
                self.assertTrue(0 <= value < full)
                for j, q in enumerate(moduli):
                    self.assertEqual((value - int(a[l, j, r])) % q, 0)

    def test_gathers(self):
        a, out = self.rng.extremes((3, 4, 5)), np.zeros((3, 4, 5), dtype=np.int64)
        for axis in range(3):
            size = a.shape[axis]
            idx = self.rng.integers(-size, size - 1, a.shape)
            expected = np.zeros(a.shape, dtype=object)
            for c in np.ndindex(*a.shape):
                source = list(c)
                source[axis] = idx[c]
                expected[c] = int(a[tuple(source)])
            self.assert_same(self.run_op("take_along_axis", a, idx, axis, out), expected)
        for along, axis in itertools.permutations(range(3), 2):
            perms = self.rng.integers(0, a.shape[axis] - 1, (a.shape[along], a.shape[axis]))
            expected = np.zeros(a.shape, dtype=object)
            for c in np.ndindex(*a.shape):
                source = list(c)
                source[axis] = perms[c[along], c[axis]]
                expected[c] = int(a[tuple(source)])
            self.assert_same(self.run_op("permute", a, perms, out, along, axis), expected)

    def test_overlap_reads_first(self):
        line = self.t.upload(np.arange(10))
        source = self.t.op("get_slice", line, [slice(0, 9)])
        target = self.t.op("get_slice", line, [slice(1, 10)])
        self.t.op("_modsum_tcc", source, 100, 1000, target)
        self.assert_same(self.t.array(line), [0] + list(range(100, 109)))


if __name__ == "__main__":
    unittest.main()
