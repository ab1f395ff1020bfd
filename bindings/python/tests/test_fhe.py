# SPDX-License-Identifier: Apache-2.0
"""healcl.fhe against published numbers, Python's integers, and this project's own scheme."""
import gc
import json
import math
import os
import sys
import tempfile
import unittest
from types import MappingProxyType

import numpy as np

import healcl
from healcl import fhe
from healcl.fhe.client import Client
from support import CLONE, both, transcript

DILITHIUM = 8380417  # FIPS 204: q, n = 256
FALCON = 12289       # and n = 1024
PRIMES = [1073741441, 1073740609, 1073739649, 1073738753]  # 1 modulo 64, of 30 bits


def integers(residues, moduli):
    """The integers below the moduli's product, of residues [k, n]."""
    product = math.prod(moduli)
    return [sum(int(x) * pow(product // q, -1, q) * (product // q)
                for x, q in zip(column, moduli)) % product for column in residues.T]


def residues(values, moduli):
    return np.array([[value % q for value in values] for q in moduli])


class Arrays(unittest.TestCase):
    def setUp(self):
        self.ring = fhe.Ring(32, PRIMES)
        self.rng = np.random.default_rng(47)

    def random(self, ring):
        return np.stack([self.rng.integers(0, q, ring.n) for q in ring.moduli])

    def test_published_tables(self):
        ring = fhe.Ring(256, [DILITHIUM])
        self.assertEqual(ring.psi, (1753,))
        self.assertEqual(ring.n_inverse.tolist(), [8347681])
        self.assertEqual(ring.psi_table[0, 1:9].tolist(), [  # FIPS 204, appendix B
            4808194, 3765607, 3761513, 5178923, 5496691, 5234739, 5178987, 7778734])
        self.assertEqual(ring.psi_table[0, -4:].tolist(), [1900052, 7598542, 1054478, 7648983])
        ring = fhe.Ring(1024, [FALCON])
        self.assertEqual(ring.psi, (7,))
        # The tables of Falcon's reference implementation are multiplied by 2^16.
        self.assertEqual((ring.psi_table[0, :8] * 2**16 % FALCON).tolist(),
                         [4091, 7888, 11060, 11208, 6960, 4342, 6275, 9759])
        self.assertEqual((ring.inverse_table[0, :8] * 2**16 % FALCON).tolist(),
                         [4091, 4401, 1081, 1229, 2530, 6014, 7947, 5329])

    @both
    def test_transforms_multiply_polynomials(self, dev):
        for n, q in ((256, DILITHIUM), (1024, FALCON)):
            ring = fhe.Ring(n, [q])
            a, b = self.random(ring), self.random(ring)
            values = fhe.ntt(a, ring, dev)
            self.assertEqual(values[0, :3].tolist(), [
                sum(int(x) * pow(ring.psi[0], i * (2 * int(r) + 1), q)
                    for i, x in enumerate(a[0])) % q for r in ring.bit_reversal[:3]])
            wide = np.convolve(a[0].astype(object), b[0].astype(object))
            product = wide[:n] - np.append(wide[n:], 0)
            np.testing.assert_array_equal(
                fhe.intt(values * fhe.ntt(b, ring, dev) % q, ring, dev)[0], product % q)

    def test_slots_are_values_at_powers(self):
        for n, generator in ((2, 3), (4, 5), (32, 3), (32, 5)):
            ring = fhe.Ring(n, PRIMES)
            with fhe.from_arrays(healcl.reference, ring, generator=generator) as he:
                a = he.load(np.zeros((2, 3, n), np.int64), 2.0**30)
                rows = self.rng.uniform(-1, 1, (2, n // 2)) + 1j * self.rng.uniform(-1, 1, n // 2)
                moduli, powers = ring.moduli[:3], [pow(generator, j, 2 * n) for j in range(n // 2)]
                for scale in 2.0**30, 2.0**80:
                    for plain, row in zip(he.encode(rows, a, scale), rows):
                        values = fhe.intt(plain.read()[0], ring.pick(range(3)))
                        half = math.prod(moduli) // 2
                        coefficients = [(c + half) % (2 * half + 1) - half
                                        for c in integers(values, moduli)]
                        for power, number in zip(powers, row):
                            found = sum(c / scale * np.exp(1j * np.pi * power * k / n)
                                        for k, c in enumerate(coefficients))
                            self.assertAlmostEqual(found, number, 6)

    def test_automorphisms(self):
        ring = self.ring
        a = self.random(ring)
        for element in (3, ring.galois_element(-1), 2 * ring.n - 1):
            turned = np.zeros_like(a)
            for i in range(ring.n):
                power = i * element % (2 * ring.n)
                turned[:, power % ring.n] = -a[:, i] if power >= ring.n else a[:, i]
            np.testing.assert_array_equal(
                fhe.ntt(turned % np.array(ring.moduli)[:, None], ring),
                fhe.ntt(a, ring)[:, ring.automorphism(element)])
        self.assertEqual(ring.galois_element(3, generator=5), 125 % 64)

    @both
    def test_base_conversion(self, dev):
        a, source, target = self.random(self.ring), PRIMES[:2], PRIMES[2:]
        product = math.prod(source)
        lifted = [sum(int(x) * pow(product // q, -1, q) % q * (product // q)
                      for x, q in zip(column, source)) for column in a[:2].T]
        self.assertEqual([value % product for value in lifted], integers(a[:2], source))
        np.testing.assert_array_equal(fhe.base_convert(a[:2], self.ring, 2, dev),
                                      residues(lifted, target))

    @both
    def test_division_by_the_last_prime(self, dev):
        a, last, rest = self.random(self.ring), PRIMES[-1], self.ring.pick(range(3))
        for rounding, half in (("nearest", last // 2), ("down", 0)):
            found = fhe.rescale(fhe.ntt(a, self.ring)[None], self.ring, rounding, dev)
            np.testing.assert_array_equal(fhe.intt(found[0], rest), residues(
                [(x + half) // last for x in integers(a, PRIMES)], PRIMES[:3]))

    @both
    def test_division_by_special_primes(self, dev):
        """Its errors are small and about 0 on average: a bias adds up in slot 0."""
        ring, low = self.ring, self.ring.pick([0])
        keys = np.stack([self.random(ring) for _ in range(2)])
        a, special = self.random(low), math.prod(PRIMES[1:])
        values = fhe.ntt(a % np.array(PRIMES)[:, None], ring)
        for turn, element in (("key_switch", 1), ("within", 5)):
            wide = values * keys.astype(object) % np.array(PRIMES, object)[:, None]
            wide = wide.astype(np.int64)[..., ring.automorphism(element)]
            if element == 1:
                found = fhe.key_switch(values[:1], keys[None], ring, 3, device=dev)
            else:
                with fhe.from_arrays(dev, ring, special=3, galois_keys={element: keys[None]},
                                     turn=turn, generator=5) as he:
                    one = he.load(np.stack((0 * values[:1], values[:1])), 1.0)
                    found = he.rotate(one, 1).read()
            errors = np.array([
                (int(x) - y + PRIMES[0] // 2) % PRIMES[0] - PRIMES[0] // 2
                for part, row in zip(found, wide) for x, y in zip(
                    fhe.intt(part, low)[0], [(2 * v + special) // (2 * special) for v in
                                             integers(fhe.intt(row, ring), PRIMES)])])
            self.assertLess(abs(errors).max(), 3)
            self.assertLess(abs(errors.mean()), 0.4)

    @both
    def test_requests_of_recordings(self, dev):
        """Their inputs alone are uploaded, by name. Without inputs only keys and ciphertexts are
        left out."""
        key, a = self.rng.integers(0, PRIMES[-1], (3, 2, 4, 32)), np.ones((2, 3, 32), np.int64)
        with tempfile.TemporaryDirectory() as folder, fhe.from_arrays(
                dev, self.ring, galois_keys={3: key}) as he:
            for inputs in True, False:
                path = os.path.join(folder, "t%d.json" % inputs)
                with he.record(path, inputs=inputs) as program:
                    x = program.load(a, 2.0**20, name="x")
                    y = program.rotate(x, 1) + program.load(a[0], 2.0**20) + \
                        program.encode([0.5], x) + program.key_switch(x, program.load_key(key))
                    wanted = program.store(y)
                    program.store(program.rescale(y - program.load(a, 2.0**20, "2nd")))
                    for name in "x", "5", "", "\\", "é", 5, 'a"':
                        with self.assertRaisesRegex(healcl.ArgumentError, "name"):
                            program.load(a, 2.0**20, name)
                t = healcl.load(path)
                self.assertEqual(t.segments, ("upload", "upload_ct_1", "compute_block_1",
                                              "download_1", "compute_block_2", "download_2"))
                self.assertEqual([info.name for info in t.inputs if info.segment == 1],
                                 ["x", "2nd"])
                packed = np.ascontiguousarray(key.transpose(1, 0, 2, 3)[:, :, [3, 0, 1, 2]])
                given = {number: a[:, None] if info.segment else packed
                         for number, info in enumerate(t.inputs) if not info.has_data}
                self.assertEqual(len(given), 0 if inputs else 4)
                report = t.run(dev, inputs=given, verify=True)
                self.assertEqual((report.verified, report.warnings), (True, []))
                with t.session(dev) as s:
                    for number, array in given.items():
                        s.inputs[number] = array
                    s.inputs["x"], s.inputs["2nd"] = a[:, None], a[:, None]
                    for _ in range(2):
                        s.run()
                    self.assertEqual(s.facts["bytes_uploaded"], 2 * a.nbytes + (
                        0 if inputs else 2 * key.nbytes))
                    for segment in "compute_block_1", "download_1":
                        s.run(segment)
                    np.testing.assert_array_equal(s.read(0)[:, 0], wanted)

    def test_mistakes(self):
        ring, zeros = self.ring, np.zeros((4, 32), np.int64)
        he = fhe.from_arrays(healcl.reference, ring)
        key = np.zeros((3, 2, 4, 32), np.int64)
        for error, word, make in (
                (healcl.ArgumentError, "power of two", lambda: fhe.Ring(24, PRIMES)),
                (healcl.ArgumentError, "integer", lambda: fhe.Ring(32.0, PRIMES)),
                (healcl.ArgumentError, "at least one", lambda: fhe.Ring(32, [])),
                (healcl.ArgumentError, "prime", lambda: fhe.Ring(32, [65 * 193 * 64 + 1])),
                (healcl.ArgumentError, "modulo 2n", lambda: fhe.Ring(256, [7681, 12289, 257])),
                (healcl.ArgumentError, "twice", lambda: fhe.Ring(32, PRIMES[:1] * 2)),
                (healcl.ArgumentError, "primitive", lambda: fhe.Ring(256, [DILITHIUM], [1])),
                (healcl.ArgumentError, "2 psi", lambda: fhe.Ring(256, [DILITHIUM], [1753, 1])),
                (healcl.ArgumentError, "steps", lambda: ring.galois_element(16)),
                (healcl.ArgumentError, "odd", lambda: ring.automorphism(4)),
                (healcl.DtypeError, "float", lambda: fhe.ntt(zeros * 1.0, ring)),
                (healcl.ShapeError, "shape", lambda: fhe.ntt(zeros[:3], ring)),
                (healcl.ArgumentError, "outside", lambda: fhe.ntt(zeros - 1, ring)),
                (healcl.ArgumentError, "source", lambda: fhe.base_convert(zeros, ring, 4)),
                (healcl.ArgumentError, "rounding", lambda: fhe.rescale(zeros[None], ring, "up")),
                (healcl.ArgumentError, "special", lambda: fhe.key_switch(zeros, zeros, ring, 4)),
                (healcl.ArgumentError, "digits",
                 lambda: fhe.key_switch(zeros[:2], zeros, ring, 2, 3)),
                (healcl.ArgumentError, "odd", lambda: fhe.from_arrays(
                    healcl.reference, ring, galois_keys={4: zeros})),
                (healcl.ArgumentError, "odd", lambda: fhe.from_arrays(
                    healcl.reference, ring, generator=2)),
                (healcl.ArgumentError, "turn", lambda: fhe.from_arrays(
                    healcl.reference, ring, turn="first")),
                (healcl.DtypeError, "a ring must be", lambda: fhe.from_arrays(
                    healcl.reference, PRIMES)),
                (healcl.DtypeError, "a ring must be", lambda: fhe.ntt(zeros, PRIMES)),
                (healcl.DtypeError, "a ring must be", lambda: fhe.base_convert(zeros, PRIMES, 1)),
                (healcl.ArgumentError, "distinct", lambda: ring.pick([0, 4])),
                (healcl.ShapeError, "2 or more parts", lambda: he.load(zeros[None, :3], 1.0)),
                (healcl.ShapeError, r"\[2, 0, 32\]", lambda: he.load(np.zeros((2, 0, 32), int), 1)),
                (healcl.ArgumentError, "a scale must be", lambda: he.load(zeros[:3])),
                (healcl.ArgumentError, "a scale must be", lambda: he.load(zeros[:3], 10**400)),
                (healcl.DtypeError, "not ndarray", lambda: np.arange(3) + he.load(zeros[:3], 1)),
                (healcl.DtypeError, "a plaintext", lambda: he.load(zeros[:3], 1) *
                 he.load(zeros[:3], 1)),
                (healcl.ShapeError, "the relinearization key", lambda: fhe.from_arrays(
                    healcl.reference, ring, relinearization_key=key[:2])),
                (healcl.ShapeError, "the key of element 3", lambda: fhe.from_arrays(
                    healcl.reference, ring, galois_keys={3: zeros})),
                (healcl.ShapeError, "the key of element 3", lambda: fhe.from_arrays(
                    healcl.reference, ring, galois_keys=MappingProxyType({3: zeros})).load_keys()),
                (healcl.ArgumentError, "30 bits, but a digit .* 60", lambda: fhe.from_arrays(
                    healcl.reference, ring, dnum=2, relinearization_key=key[:2])),
                (healcl.ArgumentError, "30 bits, but a digit .* 90", lambda: fhe.key_switch(
                    zeros[:3], key[:1], ring, 1, 1)),
                (healcl.ShapeError, "the key", lambda: fhe.key_switch(
                    zeros[:3], zeros[None, None].repeat(2, 1), ring))):
            with self.subTest(word), self.assertRaisesRegex(error, word):
                make()


class Verbs(unittest.TestCase):
    """What programs call, on toy keys: decrypted results are right, and calls in stacks give the
    bits of single ones."""

    def setUp(self):
        self.client = Client(fhe.Ring(64, fhe.primes(64, 50, 40, 40, 40, 55, 55)), 2, 2)
        rng = np.random.default_rng(3)
        self.x, self.y = rng.uniform(-1, 1, (2, 32, 2)) @ [1, 1j]

    def check(self, he, found, wanted, bound=1e-6):
        np.testing.assert_allclose(self.client.decrypt(he.store(found), found.scale), wanted,
                                   atol=bound)

    @both
    def test_rotations_and_dot(self, dev):
        for turn in ("before", "within", "after"):
            with self.subTest(turn), self.client.evaluator(
                    dev, (1, 2, 5, -1, 4), turn) as he:
                a, b = (he.load(self.client.encrypt(each, 2, 2.0**40), 2.0**40)
                        for each in (self.x, self.y))
                he.stack_memory = 8 * 64 * 5 * 4 * 2  # two at once
                steps = [1, 0, 2, 5, 3]
                turned = he.rotations(a, steps)
                for each, single in zip(turned, steps):
                    self.assertEqual(each.tensor.shape, (2, 1, 3, 64))
                    np.testing.assert_array_equal(each.read(), he.rotate(a, single).read())
                b.scale = 2.0**39
                pair = he.rotations([a, b], [2, 1])
                self.assertEqual([each.scale for each in pair], [2.0**40, 2.0**39])
                b.scale = a.scale
                np.testing.assert_array_equal(pair[1].read(), he.rotate(b, 1).read())
                rows = np.arange(160).reshape(5, 32) / 100 + 0.5j
                wanted = sum(np.roll(self.x, -i) * row for i, row in zip(steps, rows))
                dot = he.dot(turned, he.encode(rows, a))
                self.check(he, he.rescale(dot), wanted)
                mixed = he.dot([turned[4], b, *turned[:2]], list(he.encode(rows[:4], 2, 2.0**40)))
                self.check(he, mixed, np.roll(self.x, -3) * rows[0] + self.y * rows[1] +
                           np.roll(self.x, -1) * rows[2] + self.x * rows[3])
                stack = he.load(np.stack((a.read(), b.read()), 1), 2.0**40)
                for operation in (he.square, he.conjugate, lambda c: he.rotate(c, 3),
                                  lambda c: he.relinearize(c * b) - 2, he.rescale,
                                  lambda c: he.mod_raise(he.mod_switch(c, 1))):
                    together = operation(stack)
                    for i, each in enumerate((a, b)):
                        np.testing.assert_array_equal(together[i].read(), operation(each).read())

    @both
    def test_linear_transforms(self, dev):
        rng = np.random.default_rng(8)
        x = np.tile(rng.uniform(-1, 1, 16), 2)
        for turn in ("before", "within", "after"):
            for steps, baby_steps in (((0, 1, 2, 3, 5, -3, -1), 2), ((1, 3), None), ((2, 5), 1),
                                      ((0,), None), ((1, 2, 9, 10), 8)):
                diagonals = {k: rng.uniform(-1, 1, 16) + 1j for k in steps}
                t = fhe.LinearTransform(diagonals, 16, baby_steps)
                wanted = sum(np.tile(row, 2) * np.roll(x, -k) for k, row in diagonals.items())
                for keys in (t.rotations, (1, 2, 4, 8, -1, -2, -4, -8)):
                    with self.subTest(turn, steps=steps, keys=keys), self.client.evaluator(
                            dev, keys, turn) as he:
                        he.stack_memory = 8 * 64 * 5 * 4 * 2  # two rotations at once
                        a = he.load(self.client.encrypt(x, 2, 2.0**40), 2.0**40)
                        y = he.apply(t, a)
                        self.assertEqual((y.level, y.scale), (1, a.scale))
                        self.check(he, y, wanted)
                        he.prepare(t, 2, 2.0**35)
                        self.assertAlmostEqual(he.apply(t, a).scale * 2.0**-35,
                                               a.scale / he.ring.moduli[2])

    @both
    def test_numbers_and_tensors(self, dev):
        with dev.queue() as queue, self.client.evaluator(queue) as he:
            a = he.load(self.client.encrypt(self.x, 3, 2.0**40), 2.0**40)
            self.check(he, sum([a, 3 * a, 1 - a, a - 0.5, a + 1j, np.int64(2) * a]),
                       7 * self.x + 0.5 + 1j)
            half = he.rescale(0.5j * a)
            self.assertEqual((half.level, (0.25 * a).level), (2, 3))
            self.check(he, half + he.mod_switch(a, 2), (1 + 0.5j) * self.x)
            q = queue.array(np.array(self.client.ring.moduli[:4])[:, None])
            self.check(he, he.load(queue.ops.modsum(a.tensor, a.tensor, q), a.scale), 2 * self.x)
            he.wait()
            almost = he.mod_switch(a)
            almost.scale *= 1 + 2.0**-31
            self.check(he, almost + he.mod_switch(a, 2), 2 * self.x)
            almost.scale *= 1 + 2.0**-29
            with self.assertRaisesRegex(healcl.ArgumentError, r"differ by more .* a.scale = b"):
                almost + he.mod_switch(a, 2)
            large = he.encode([2.0**30, -1.5], a, 2.0**45)  # coefficients above 2^62
            self.check(he, he.mod_switch(a, 3) * large, self.x * np.pad([2.0**30, -1.5], (0, 30)),
                       1e2)

    @both
    def test_polynomials(self, dev):
        client = Client(fhe.Ring(64, fhe.primes(64, 55, *[45] * 7, 60)), 1, 8)
        x = np.random.default_rng(4).uniform(-1, 1, 32)
        with client.evaluator(dev) as he:
            a = he.load(client.encrypt(x, 7, 2.0**45), 2.0**45)
            for degree in (1, 2, 3, 4, 5, 7, 8, 11, 16, 31, 63):
                co = np.random.default_rng(degree).uniform(-1, 1, degree + 1)
                for basis, wanted in (("power", np.polynomial.polynomial.polyval(x, co)),
                                      ("chebyshev", np.polynomial.chebyshev.chebval(x, co))):
                    with self.subTest(basis, degree=degree):
                        y = he.polynomial(a, co, basis, 2.0**44)
                        self.assertEqual(y.scale, 2.0**44)
                        self.assertGreaterEqual(y.level, 7 - (degree.bit_length() + 1))
                        np.testing.assert_allclose(client.decrypt(y.read(), y.scale), wanted,
                                                   atol=1e-7)
            for word, make in (("8 levels: level 7", lambda: he.polynomial(a, np.ones(65))),
                               ("real, finite", lambda: he.polynomial(a, [1])),
                               ("real, finite", lambda: he.polynomial(a, [1, 1j])),
                               ("basis must be", lambda: he.polynomial(a, [1, 2], "monomial")),
                               ("different steps", lambda: fhe.LinearTransform({}, 32)),
                               ("needs 32 numbers", lambda: fhe.LinearTransform({1: [1]}, 32)),
                               ("do not divide", lambda: he.apply(fhe.LinearTransform(
                                   {0: 1}, 64), a)),
                               ("stages", lambda: fhe.Bootstrapping(64, stages=(0, 1)))):
                with self.subTest(word), self.assertRaisesRegex(healcl.Error, word):
                    make()
            stack = he.load(np.stack((a.read(), (-a).read()), 1), a.scale)
            y = he.polynomial(stack, co[:12], "chebyshev")
            np.testing.assert_array_equal(y[1].read(), he.polynomial(-a, co[:12],
                                                                     "chebyshev").read())
            gc.collect()
            gc.disable()
            self.addCleanup(gc.enable)
            he.polynomial(a, co)
            self.assertEqual(gc.collect(), 0)  # no cycle keeps tensors

    @both
    def test_bootstrapping(self, dev):
        b = fhe.Bootstrapping(64, stages=(2, 2), levels=1)
        ring = fhe.Ring(64, b.moduli)
        client = Client(ring, b.special, b.dnum)
        sparse = client.new_secret(16)
        x = np.exp(2j * np.pi * np.arange(32) / 7) * 0.9
        for turn, secret, weight in (("before", sparse, None), ("within", client.secret, 16)):
            client.secret = secret
            with self.subTest(turn), client.evaluator(dev, b.rotations, turn, weight) as he:
                a = he.load(client.encrypt(x, 1, 1.25 * b.scale), 1.25 * b.scale)
                y = he.apply(b, a)
                self.assertEqual((y.level, y.scale), (b.levels, a.scale))
                np.testing.assert_allclose(client.decrypt(y.read(), y.scale), x, atol=2.0**-22)
        near = fhe.Bootstrapping(64, stages=(2, 2), levels=1, scale_bits=40, base_bits=50, bits=55,
                                 slot_bits=40, special_bits=56, dnum=4, bound=14, degree=31,
                                 doublings=3)  # a sine alone has 17 bits of such large numbers
        other = Client(fhe.Ring(64, near.moduli), near.special, near.dnum)
        with other.evaluator(dev, near.rotations, "within", 16) as he:
            y = he.apply(near, he.load(other.encrypt(1, 0, near.scale), near.scale))
            np.testing.assert_allclose(other.decrypt(y.read(), y.scale), np.ones(32),
                                       atol=2.0**-22)
        with client.evaluator(dev) as he, self.assertRaisesRegex(healcl.NameUnknownError, "steps"):
            he.apply(b, he.load(client.encrypt(x, 1, b.scale), b.scale))
        with self.client.evaluator(dev) as he, self.assertRaisesRegex(
                healcl.ArgumentError, "the moduli of Bootstrapping"):
            he.apply(b, he.load(self.client.encrypt(x, 1, 2.0**40), 2.0**40))

    @both
    def test_keys(self, dev):
        client = self.client
        other = client.new_secret(8)
        with client.evaluator(dev, (1, 2)) as he:
            top = he.load(client.encrypt(self.x, 3, 2.0**40), 2.0**40)
            low = he.mod_switch(top, 1)
            key = 2 * 64 * 8
            self.assertEqual(he.load_keys([1], level=1), key * (2 + 2))
            turned = he.rotate(low, 1)
            self.assertEqual(he.load_keys(level=3), 4 * key * 2 * 6)
            self.check(he, turned, np.roll(self.x, -1))
            self.check(he, he.rotate(top, 1), np.roll(self.x, -1))  # by the whole key
            there = he.key_switch(low, he.load_key(client.key(client.secret, other, 1)))
            np.testing.assert_allclose(client.decrypt(there.read(), low.scale, other), self.x,
                                       atol=1e-6)
            back = he.key_switch(he.mod_raise(there), he.load_key(client.key(other)))
            self.check(he, he.mod_switch(back, 1), self.x)
            self.assertEqual(back.level, 3)
            with self.assertRaisesRegex(healcl.ArgumentError, "reaches level 1, not 3"):
                he.key_switch(top, he.load_key(client.key(client.secret, other, 1)))
            self.assertEqual(he.mod_switch(he.mod_switch(top, 0), 0).level, 0)

    @both
    def test_stacks_of_transforms(self, dev):
        ring = self.client.ring
        a = np.random.default_rng(5).integers(0, 2**39, (2, 3, 6, 64))
        values = fhe.ntt(a, ring, dev)
        np.testing.assert_array_equal(values[1, 2], fhe.ntt(a[1, 2], ring))
        np.testing.assert_array_equal(fhe.intt(values, ring, dev), a)


class Hybrid(unittest.TestCase):
    """Key switching in digits of several primes, against scripts/fhe/hybrid.py; and a workload."""

    def setUp(self):
        transcript("encrypted_hybrid_toy.json.gz")
        sys.path.insert(0, os.path.join(CLONE, "scripts"))
        self.addCleanup(sys.path.remove, sys.path[0])

    def test_the_workload_of_bootstrapping(self):
        from fhe import answers, workloads
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            workloads.write_encrypted("bootstrap_toy", path)
            t = healcl.load(path)
            self.assertTrue(t.run(healcl.reference).verified)
            side = json.loads(workloads.read_text(workloads.side_path(path)))
            self.assertEqual(side["results"][0]["entry"], t.results[0].entry)
            verdict = answers.judge(side, [t.results[0].data])
            self.assertTrue(verdict.good, verdict.lines)

    def scheme(self, limbs, dnum):
        """The scheme, and its ring. Its arrays have the limbs last, or values in natural order."""
        from fhe import hybrid
        from fhe.program import Program
        from fhe.ring import RnsRing
        parameters = hybrid.Parameters(64, limbs, dnum)
        moduli = parameters.primes + parameters.special
        program = Program(47, RnsRing(64, moduli))
        scheme = hybrid.Hybrid(program, parameters)
        scheme.upload_constants()
        return scheme, fhe.Ring(64, moduli, program.ring.tables.psi[:, 32])

    @both
    def test_rotation_and_product(self, dev):
        for limbs, dnum in ((7, 3), (4, 1), (3, 3)):
            scheme, ring = self.scheme(limbs, dnum)
            t, order = scheme.t, ring.bit_reversal
            element = ring.galois_element(5, generator=5)
            from fhe.ckks import galois_indices
            slots = t.values.integers(-1024, 1024, (2, 32))
            a, b = (scheme.upload_ciphertext(row, 2.0**40) for row in slots)
            keys = [scheme.upload_key(old) for old in (t.secret.turned(element).values,
                                                      t.secret.square())]
            turned = scheme.rotate(a, scheme.upload(galois_indices(64, element).reshape(1, 64, 1)),
                                   keys[0])
            product = scheme.multiply(turned, b, keys[1])
            wanted = [t.array(x).transpose(0, 2, 1)[..., order] for x in
                      (a, b, turned, product, scheme.divide(product, scheme.by_last))]
            galois, relinearization = (np.moveaxis(t.array(key), 0, 1)[..., order] for key in keys)
            special, secret = len(scheme.parameters.special), t.secret.values[:, order]
            backward = ring.automorphism(pow(element, -1, 128))
            for rounding, turn in (("down", "before"), ("nearest", "within"), ("nearest", "after")):
                with self.subTest(limbs=limbs, dnum=dnum, turn=turn), fhe.from_arrays(
                        dev, ring, special=special, relinearization_key=relinearization,
                        galois_keys={element: galois if turn == "before" else galois[..., backward]},
                        dnum=dnum, rounding=rounding, key_rounding=rounding, generator=5,
                        turn=turn) as he:
                    x, y = (he.load(array, 2.0**40) for array in wanted[:2])
                    found = [he.rotate(x, 5)]
                    found.append(he.relinearize(found[0] * y))
                    found.append(he.rescale(found[1]))
                    if rounding == "down":
                        for array, ciphertext in zip(wanted[2:], found):
                            np.testing.assert_array_equal(he.store(ciphertext), array)
                    # Other levels and variants: the same but for noise, whose secret is known.
                    low = he.mod_switch(x, limbs - 2)
                    some, moduli = ring.pick(range(limbs - 1)), ring.moduli[:limbs - 1]
                    (c0, c1), (d0, d1) = (he.store(each).astype(object) for each in
                                          (low, he.rotate(low, 5)))
                    column = np.array(moduli, dtype=object)[:, None]
                    old = ((c0 + c1 * secret[:limbs - 1]) % column)[:, ring.automorphism(element)]
                    noise = (d0 + d1 * secret[:limbs - 1] - old) % column
                    values = integers(fhe.intt(noise.astype(np.int64), some), moduli)
                    self.assertLess(max(min(v, math.prod(moduli) - v) for v in values), 2**20)
