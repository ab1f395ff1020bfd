#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the encrypted workloads: arithmetic, schemes, the fast machine, the bundled files.

Run: python3 scripts/test_fhe.py"""

import contextlib
import glob
import io
import json
import math
import os
import struct
import tempfile
import unittest
import zlib
from unittest import mock

import python_with_numpy

python_with_numpy.require()

import numpy as np

import check_answers
import heal_oracle as oracle
import make_transcripts
from fhe import (answers, ckks, data, digits, disease, hybrid, images, sentiment, sharpen,
                 workloads)
from fhe.keys import BASE_BITS, SecretKey, digit_factors, full_factors, limb_factors, turn
from fhe.machine import FAST, FastMachine
from fhe.ring import Modulus, RnsRing
from fhe.sampling import Sampler
from transcript_builder import Transcript, ntt_primes

TRANSCRIPTS = check_answers.TRANSCRIPTS


def expected_results(text, side):
    """The tensors that a transcript expects, in the order of its side file."""
    entries = json.loads(text)["transcript"]
    return [oracle.decode_op(entries[result["entry"]][1]).out.value.array
            for result in side["results"]]


def write_dump(folder, side, arrays):
    """What `healcl run --dump` writes."""
    listed = []
    for result, array in zip(side["results"], arrays):
        name = "entry_%06d.npy" % result["entry"]
        np.save(os.path.join(folder, name), array)
        listed.append({"entry": result["entry"], "file": name, "shape": list(array.shape)})
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump(listed, file)


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.sampler = Sampler(7)

    def test_products_and_sums(self):
        for bits in (13, 31, 49, 50, 51, 54, 60, 62):
            q = ntt_primes(bits, 16, 1)[0]
            modulus = Modulus(q)
            a, b = self.sampler.below(q, 5000), self.sampler.below(q, 5000)
            a[:4], b[:4] = (0, q - 1, q - 1, 1), (q - 1, q - 1, 1, 0)
            exact_a, exact_b = a.astype(object), b.astype(object)
            self.assertTrue((modulus.times(a, b) == exact_a * exact_b % q).all())
            self.assertTrue((modulus.plus(a, b) == (exact_a + exact_b) % q).all())
            self.assertTrue((modulus.minus(a, b) == (exact_a - exact_b) % q).all())
            self.assertEqual(int(modulus.sum(a, 0)), int(exact_a.sum()) % q)

    def test_negacyclic_product(self):
        n, ring = 32, RnsRing(32, ntt_primes(62, 32, 1) + ntt_primes(40, 32, 1))
        a, b = self.sampler.errors((n,)), self.sampler.errors((n,)) * 2**40
        expected = [0] * n
        for i in range(n):
            for j in range(n):
                expected[(i + j) % n] += int(a[i]) * int(b[j]) * (1 if i + j < n else -1)
        product = ring.times(*[ring.forward(ring.from_integers(x)) for x in (a, b)])
        self.assertEqual(ring.to_integers(ring.inverse(product)).tolist(), expected)

    def test_samples(self):
        errors = self.sampler.errors((100000,))
        self.assertTrue(abs(errors).max() <= 21)
        self.assertAlmostEqual(errors.var(), 10.5, delta=0.2)
        self.assertEqual(sorted(set(self.sampler.ternary((1000,)).tolist())), [-1, 0, 1])
        values = self.sampler.below(3 * 2**60, 100000)
        self.assertTrue(0 <= values.min() and values.max() < 3 * 2**60)
        self.assertAlmostEqual(values.mean() / (3 * 2**60), 0.5, delta=0.01)
        again = [Sampler(1).uniform(RnsRing(4, [17, 97]), (2,)).tolist() for _ in range(2)]
        self.assertEqual(*again)


class Schemes(unittest.TestCase):
    def setUp(self):
        self.sampler = Sampler(3)
        self.ring = RnsRing(32, ntt_primes(55, 32, 2))
        self.secret = SecretKey(self.ring, self.sampler.ternary((32,)))
        self.slots = np.linspace(-1, 1, 16)

    def test_slots_are_values(self):
        for n in (4, 32, 256):
            slots = np.sin(np.arange(n // 2) + 1.0)
            coefficients = ckks.encode(slots, 2.0**40)
            zeta = np.exp(1j * np.pi / n)
            for j in (0, 1, n // 2 - 1):
                powers = zeta ** (pow(5, j, 2 * n) * np.arange(n) % (2 * n))
                value = (coefficients * powers).sum() / 2**40
                self.assertAlmostEqual(value.real, slots[j], delta=1e-9)
                self.assertAlmostEqual(value.imag, 0, delta=1e-9)
            self.assertTrue(np.allclose(ckks.decode(coefficients, 2.0**40), slots, atol=1e-9))

    def test_roots(self):
        angles = np.pi * np.arange(512) / 256
        for found, expected in zip(ckks.roots_of_unity(256), (np.cos(angles), np.sin(angles))):
            self.assertTrue(np.allclose(found, expected, atol=1e-15))

    def test_bgv_is_exact(self):
        message = self.sampler.rng.integers(-100, 100, (5, 32))
        decrypted = self.secret.decrypt(self.secret.encrypt(self.sampler, message, 257))
        self.assertEqual(((decrypted + 128) % 257 - 128).tolist(), message.tolist())

    def digit_product(self, values, key, integers, count):
        """The sum over i of digit i of integers, times key i."""
        total = np.zeros((2,) + values.shape, dtype=np.int64)
        for i in range(count):
            digit = (integers >> (BASE_BITS * i)) & (2**BASE_BITS - 1)
            spectrum = self.ring.forward(self.ring.from_integers(digit))
            total = self.ring.plus(total, self.ring.times(spectrum[None], key[i]))
        return total

    def test_rotation_with_full_gadget(self):
        element = ckks.rotation(32, 3)
        key = self.secret.switching_key(self.sampler, self.secret.turned(element),
                                        full_factors(self.ring))
        ct = turn(self.secret.encrypt(self.sampler, ckks.encode(self.slots, 2.0**40)), element)
        integers = self.ring.to_integers(self.ring.inverse(ct[1])) % self.ring.full
        switched = self.digit_product(ct[1], key, integers, len(key))
        switched[0] = self.ring.plus(switched[0], ct[0])
        found = ckks.decode(self.secret.decrypt(switched), 2.0**40)
        self.assertTrue(np.allclose(found, np.roll(self.slots, -3), atol=1e-7))

    def test_limb_gadget(self):
        """The digits of the residues, each with its part of the key, add up to c times s^2."""
        c = self.sampler.uniform(self.ring, ())
        total = np.zeros((2,) + c.shape, dtype=np.int64)
        for limb in range(2):
            factors = limb_factors(self.ring, limb)
            key = self.secret.switching_key(self.sampler, self.secret.square(), factors)
            residues = self.ring.inverse(c)[limb].astype(object)
            total = self.ring.plus(total, self.digit_product(c, key, residues, len(factors)))
        exact = self.ring.inverse(self.ring.times(c, self.secret.square()))
        noise = self.secret.decrypt(total) - self.ring.to_integers(exact)
        noise = (noise + self.ring.full // 2) % self.ring.full - self.ring.full // 2
        self.assertTrue(0 < abs(noise).max() < 2**17)


class Hybrid(unittest.TestCase):
    """Hybrid key switching in its steps, and as a whole for digits of all shapes."""

    def test_conversion(self):
        """The sum is x and at most a few times the old modulus; modulo an old prime, x itself."""
        source, other = ntt_primes(45, 16, 3), ntt_primes(61, 16, 2)
        full = math.prod(source)
        for x in (0, 1, full // 3, full - 1):
            factors, weights = hybrid.conversion(source, other + source)
            residues = [x % d * int(f) % d for d, f in zip(source, factors)]
            wanted = sum(r * (full // d) for r, d in zip(residues, source))
            self.assertIn(wanted - x, range(0, len(source) * full, full))
            found = [sum(r * int(w) for r, w in zip(residues, column)) % m
                     for column, m in zip(weights.T, other + source)]
            self.assertEqual(found, [wanted % m for m in other] + [x % d for d in source])

    def test_gadget(self):
        parameters = hybrid.Parameters(64, 5, 3)
        special = math.prod(parameters.special)
        self.assertEqual([list(digit) for digit in parameters.digits], [[0, 1], [2, 3], [4]])
        self.assertGreaterEqual(special, parameters.primes[0] * parameters.primes[1])
        factors = digit_factors(parameters.primes, parameters.special, parameters.digits)
        for digit, factor in zip(parameters.digits, factors):
            self.assertEqual([factor % d for d in parameters.special], [0] * len(parameters.special))
            self.assertEqual([factor % q for q in parameters.primes],
                             [special % q * (i in digit) for i, q in enumerate(parameters.primes)])

    def test_all_shapes(self):
        """One digit of all primes, digits of one prime, a last digit that is shorter."""
        for limbs, dnum in ((2, 1), (3, 3), (5, 2), (8, 3)):
            sink = io.StringIO()
            program, side = hybrid.hybrid(9, sink, 64, limbs, dnum)
            program.finish()
            verdict = answers.judge(side, expected_results(sink.getvalue(), side))
            self.assertTrue(verdict.good, verdict.lines)
            found = answers.slots(side, answers.decrypt(
                side, expected_results(sink.getvalue(), side))).reshape(-1)
            self.assertLess(abs(found - np.array(side["truth"])).max() / side["unit"], 1e-8)


    def test_sizes(self):
        """Options that a workload does not have, or not so large, are refused before it writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            for arguments in (["hybrid", "--n", "100"], ["hybrid", "--rotations", "2"],
                              ["bootstrap", "--limbs", "9"], ["digits", "--dnum", "1"]):
                with mock.patch("sys.argv", ["make", path, "--encrypted"] + arguments), \
                        contextlib.redirect_stderr(io.StringIO()), \
                        self.assertRaises(SystemExit) as refused:
                    make_transcripts.main()
                self.assertEqual((refused.exception.code, os.listdir(folder)), (2, []))
            with mock.patch("sys.argv", ["make", path, "--encrypted", "hybrid", "--n", "64",
                                         "--limbs", "3", "--dnum", "2"]):
                self.assertFalse(make_transcripts.main())
            self.assertEqual(sorted(os.listdir(folder)), ["x.answers", "x.json"])


class Machines(unittest.TestCase):
    """The fast machine does what the oracle does."""

    def test_bundled_transcripts(self):
        for path in glob.glob(os.path.join(TRANSCRIPTS, "*.json")):
            status = oracle.run_text(workloads.read_text(path), FastMachine())
            self.assertEqual(status[0], 0, (path, status))

    def test_every_fast_operation(self):
        """On operands that are reduced, so that the fast function runs, and for limits of q."""
        for primes in (ntt_primes(62, 16, 2), ntt_primes(50, 16, 2), [97, 193]):
            ring, seen = RnsRing(16, primes), set()

            def spy(function, name):
                def call(**values):
                    result = function(**values)
                    seen.update([name] if result is not None else [])
                    return result
                return call
            outcomes = []
            for machine in (oracle.Machine(), FastMachine()):
                t = Transcript(5)
                t.machine = machine
                with mock.patch.dict(FAST, {name: spy(FAST[name], name) for name in FAST}):
                    outcomes.append(self.some_operations(t, ring))
            for one, other in zip(*outcomes):
                self.assertEqual(one.tolist(), other.tolist())
            self.assertEqual(seen, set(FAST) - {"g_decomposition"})

    def some_operations(self, t, ring):
        rng, n, k, table = t.rng, 16, 2, ring.tables
        tables = [t.upload(getattr(table, name)) for name in ("perm", "q", "psi", "ipsi", "n_inv")]
        perm, q, psi, ipsi, n_inv = tables
        a, b = (t.upload(table.residues(rng, (3, n, 1, k))) for _ in range(2))
        large = t.upload(rng.integers(0, 2**63 - 1, (n, 1, 1)))
        line, key = (t.upload(table.residues(rng, (reps, 5, k, n), 2)) for reps in (3, 1))
        key = t.op("squeeze", key, 0)
        flat = t.upload(table.residues(rng, (2, k, n), 1))
        count = -(-ring.full.bit_length() // 4)
        tiled = t.upload(rng.integers(0, 15, (3, 5, 1, n)).astype(np.int8))
        results = [
            t.op("_modmul_ttt", a, b, q, t.empty((3, n, 1, k))),
            t.op("_modsum_ttt", a, b, q, t.empty((3, n, 1, k))),
            t.op("_modmul_ttt", large, a, q, t.empty((3, n, 1, k))),
            t.op("_modsum_ttt", a, large, q, t.empty((3, n, 1, k))),
            t.op("axis_modsum", a, 0, q, t.empty((n, 1, k))),
            t.op("ntt", a, -3, perm, None, q, None, None, psi, t.empty((3, n, 1, k)), False, False),
            t.op("ntt", tiled, -1, None, None, q, None, None, psi, t.empty((3, 5, k, n)), 1, 1),
            t.op("intt", a, perm, None, q, None, None, ipsi, n_inv, t.empty((3, n, 1, k)), False),
            t.op("apply_g_decomp", flat, 16, 4, t.empty((2, k, n, 16), "int8")),
            t.op("apply_g_decomp_relative_to_full_q", flat, q, count, 4,
                 t.empty((2, count, n), "int8"))]
        for permuted in (True, False):
            out = t.upload(table.residues(rng, (3, k, n), 1))
            results.append(t.op("modmul_axis_sum", line, key, q, None, None, perm, out, permuted))
        return [t.array(handle).copy() for handle in results]


class PlaintextModels(unittest.TestCase):
    """The integer models are the ones in natural units."""

    def test_digits(self):
        model, (pixels, classes) = data.model("digits"), data.digits()
        w1, w2 = model["w1"] / 64, model["w2"] / 64
        h = pixels / 16 @ w1.T + model["b1"] / (64 * 16)
        expected = h * h @ w2.T + model["b2"] / (64 * (64 * 16) ** 2)
        found = (digits.logits(model, pixels) / digits.logit_unit(model)).astype(float)
        self.assertTrue(np.allclose(found, expected))
        self.assertGreater(np.mean(found.argmax(axis=1) == classes), 0.98)

    def test_disease(self):
        model, (features, _) = data.model("disease"), data.disease()
        z = features / 64 @ model["w"] / 64 + model["b"] / 64**2
        expected = 0.5 + (model["c1"] * z + model["c3"] * z**3) / 2**16
        found, unit = disease.probabilities(model, features)
        self.assertTrue(np.allclose((found / unit).astype(float), expected))

    def test_sentiment(self):
        model = data.model("sentiment")
        embedded = sentiment.embed(model)
        mean = embedded.mean(axis=1) / 64
        found, unit = sentiment.scores(model, embedded)
        self.assertTrue(np.allclose(found / unit, mean @ model["w"] / 64 + model["b"] / unit))

    def test_filter(self):
        picture = np.zeros((62, 124), dtype=np.int64)
        picture[0, 0] = 10
        found = sharpen.filtered(picture)
        self.assertEqual(found[:2, :2].tolist(), [[30, -10], [-10, 0]])
        self.assertEqual(np.count_nonzero(found), 3)


class BundledFiles(unittest.TestCase):
    def test_same_bytes(self):
        """Made again, the files are the committed ones."""
        for name in ("digits_toy", "sharpen", "sentiment", "hybrid_toy"):
            path = os.path.join(TRANSCRIPTS, "encrypted_%s.json.gz" % name)
            text, side, _ = workloads.bundled(name)
            self.assertTrue(text == workloads.read_text(path), name)
            self.assertTrue(side == workloads.read_text(workloads.side_path(path)), name)

    def test_another_seed(self):
        """Another key and other errors, the same answers."""
        one, other = [json.loads(workloads.side_text(sharpen.sharpen(seed, io.StringIO())[1]))
                      for seed in (1, 2)]
        self.assertNotEqual(one["secret_key"], other["secret_key"])
        self.assertEqual(one["truth"], other["truth"])

    def test_toys_on_the_oracle(self):
        for name in ("digits_toy", "hybrid_toy"):
            path = os.path.join(TRANSCRIPTS, "encrypted_%s.json.gz" % name)
            status = oracle.run_text(workloads.read_text(path), oracle.Machine())
            self.assertEqual(status[0], 0, status)


class Answers(unittest.TestCase):
    def check(self, *arguments):
        """-> (exit status, what check_answers prints)."""
        said = io.StringIO()
        with mock.patch("sys.argv", ["check_answers.py"] + list(arguments)), \
                contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = check_answers.main()
            except SystemExit as ended:
                status = ended.code
        return status, said.getvalue()

    def test_bundled(self):
        for name in ("digits_toy", "sharpen", "sentiment", "hybrid_toy"):
            path = os.path.join(TRANSCRIPTS, "encrypted_%s.json.gz" % name)
            with open(workloads.side_path(path), encoding="utf-8") as file:
                side = json.load(file)
            arrays = expected_results(workloads.read_text(path), side)
            with tempfile.TemporaryDirectory() as parent:
                folder = os.path.join(parent, "results")  # side files are looked for beside it
                os.mkdir(folder)
                write_dump(folder, side, arrays)
                status, said = self.check(folder)
                self.assertEqual(status, 0, said)
                self.assertIn("encrypted_" + name, said)
                arrays[0] = arrays[0].copy()
                arrays[0].reshape(-1)[5] ^= 1
                write_dump(folder, side, arrays)
                status, said = self.check(folder)
                self.assertEqual(status, 1, said)
                self.assertIn("NOT MET", said)

    def test_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.check(folder)[0], 2)
            write_dump(folder, {"results": [{"entry": 3}]}, [np.zeros((2, 2), dtype=np.int64)])
            status, said = self.check(folder)
            self.assertEqual(status, 2)
            self.assertIn("no side file fits", said)
            side = os.path.join(TRANSCRIPTS, "encrypted_sharpen.answers")
            self.assertEqual(self.check(folder, "--answers", side)[0], 2)

    def test_png(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.png")
            images.write_png(path, np.array([[-5, 0, 100], [255, 300, 7]]), zoom=2)
            with open(path, "rb") as file:
                content = file.read()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", content[16:24]), (6, 4))
        size = struct.unpack(">I", content[33:37])[0]
        lines = zlib.decompress(content[41:41 + size])
        self.assertEqual(lines[:14], b"\0\0\0\0\0dd" * 2)


if __name__ == "__main__":
    unittest.main()
