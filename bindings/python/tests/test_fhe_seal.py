# SPDX-License-Identifier: Apache-2.0
"""healcl.fhe against SEAL, by way of TenSEAL: all bits are equal."""
import gc
import os
import platform
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np

import healcl
from healcl import fhe
from healcl._recorder import Recorder
from support import CLONE, array_of, both, device, entries, transcript

try:
    import tenseal
    import tenseal.sealapi as seal
except ImportError:
    raise unittest.SkipTest("TenSEAL is not installed: SEAL is not there to compare with")

CHAINS = {4096: ([40, 30, 40], 20), 8192: ([60, 40, 40, 60], 40),
          16384: ([50, 40, 40, 40, 50], 40)}  # bits of primes, log2 of the scale


class Keys:
    """A context of sealapi, its keys, and two ciphertexts. Galois keys: for 1, 5 and -4 steps, so
    that -3 goes by 1 and -4, and for conjugates."""

    STEPS = (0, 1, 5, -3, -4)
    ROWS = (None, [1.5, -2.25], [0.5], [3.0, 0, 0.125], [-1.0] * 8)

    def __init__(self, n, bits, scale_bits, steps=(1, 5, -4)):
        parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
        parameters.set_poly_modulus_degree(n)
        parameters.set_coeff_modulus(seal.CoeffModulus.Create(n, bits))
        self.context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.NONE)
        generator, public = seal.KeyGenerator(self.context), seal.PublicKey()
        generator.create_public_key(public)
        self.relinearization, self.galois = seal.RelinKeys(), seal.GaloisKeys()
        generator.create_relin_keys(self.relinearization)
        generator.create_galois_keys([pow(3, each % (n // 2), 2 * n) for each in steps] +
                                     [2 * n - 1], self.galois)
        self.moduli = [q.value() for q in parameters.coeff_modulus()]
        self.encoder, self.scale = seal.CKKSEncoder(self.context), 2.0**scale_bits
        self.encryptor = seal.Encryptor(self.context, public)
        values = np.random.default_rng(n).uniform(-1, 1, (3, n // 2))
        self.a, self.b = (self.encrypt(row.tolist()) for row in values[:2])
        self.numbers = values[2].tolist()
        self.plain = self.encode(self.numbers)

    def encode(self, values, scale=None):
        plain = seal.Plaintext()
        self.encoder.encode(values, self.scale if scale is None else scale, plain)
        return plain

    def encrypt(self, values):
        ciphertext = seal.Ciphertext()
        self.encryptor.encrypt(self.encode(values), ciphertext)
        return ciphertext

    def evaluator(self, dev):
        return fhe.from_seal(self.context, dev, relinearization_keys=self.relinearization,
                             galois_keys=self.galois)

    def results(self):
        """Returns SEAL's results, by name."""
        evaluator = seal.Evaluator(self.context)

        def call(name, *operands):
            out = seal.Ciphertext()
            getattr(evaluator, name)(*operands, out)
            return out

        a, b, plain, keys, galois = self.a, self.b, self.plain, self.relinearization, self.galois
        product = call("multiply", a, b)
        relinearized = call("relinearize", product, keys)
        rescaled = call("rescale_to_next", relinearized)
        squared = call("relinearize", call("square", rescaled), keys)
        turned = [call("rotate_vector", a, steps, galois) for steps in self.STEPS]
        dot = call("multiply_plain", turned[0], plain)
        for each, row in zip(turned[1:], self.ROWS[1:]):
            dot = call("add", dot, call("multiply_plain", each, self.encode(row)))
        halves = call("multiply_plain", a, self.encode(0.3, float(self.moduli[-2])))
        return {
            **{"rotation %d" % i: each for i, each in enumerate(turned)}, "dot": dot,
            "sum of rotations": call("add", call("add", call("add", call(
                "add", turned[0], turned[1]), turned[2]), turned[3]), turned[4]),
            "square": call("square", a), "times 3": call("add", call("add", a, a), a),
            "plus 0.3": call("add_plain", a, self.encode(0.3)),
            "1 less": call("add_plain", call("negate", a), self.encode(1.0)),
            "times 0.3": halves, "times 0.3, rescaled": call("rescale_to_next", halves),
            "add": call("add", a, b), "subtract": call("sub", a, b), "negate": call("negate", a),
            "multiply": product, "relinearize": relinearized, "rescale": rescaled,
            "of four parts": call("multiply", product, b),
            "product and ciphertext": call("add", product, call("multiply_plain", b, plain)),
            "ciphertext less product": call("sub", call("multiply_plain", b, plain), product),
            "mod_switch": call("mod_switch_to_next", a),
            "plus plain": call("add_plain", a, plain), "less plain": call("sub_plain", a, plain),
            "times plain": call("multiply_plain", a, plain),
            "rotate by 1": call("rotate_vector", a, 1, galois),
            "rotate by 5": call("rotate_vector", rescaled, 5, galois),
            "rotate by -3": call("rotate_vector", a, -3, galois),
            "conjugate": call("complex_conjugate", a, galois), "depth 2": squared}

    def evaluate(self, he):
        """Returns an evaluator's results, by name."""
        a, b, plain = he.load(self.a), he.load(self.b), he.load(self.plain)
        product = a * b
        relinearized = he.relinearize(product)
        rescaled = he.rescale(relinearized)
        turned = he.rotations(a, self.STEPS)
        rows = he.encode([self.numbers, *[row + [0] * (len(self.numbers) - len(row))
                                          for row in self.ROWS[1:]]], a)
        return {
            **{"rotation %d" % i: each for i, each in enumerate(turned)},
            "dot": he.dot(turned, rows), "sum of rotations": sum(turned), "square": he.square(a),
            "times 3": 3 * a, "plus 0.3": a + 0.3, "1 less": 1 - a, "times 0.3": a * 0.3,
            "times 0.3, rescaled": he.rescale(0.3 * a),
            "add": a + b, "subtract": a - b, "negate": -a, "multiply": product,
            "relinearize": relinearized, "rescale": rescaled,
            "of four parts": b * product,
            "product and ciphertext": product + b * plain,
            "ciphertext less product": plain * b - product,
            "mod_switch": he.mod_switch(a), "plus plain": a + he.encode(self.numbers, a),
            "less plain": -(plain - a), "times plain": a * plain, "rotate by 1": he.rotate(a, 1),
            "rotate by 5": he.rotate(rescaled, 5), "rotate by -3": he.rotate(a, -3),
            "conjugate": he.conjugate(a), "depth 2": he.relinearize(he.square(rescaled))}


def saved(ciphertext):
    """All that SEAL knows of a ciphertext: parameters, scale and residues."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ciphertext")
        ciphertext.save(path)
        with open(path, "rb") as file:
            return file.read()


class Seal(unittest.TestCase):
    def compare(self, n, devices):
        keys = Keys(n, *CHAINS[n])
        expected = keys.results()
        for dev in devices:
            with keys.evaluator(dev) as he:
                he.stack_memory = 200 * n  # for two rotations of 4096
                found = keys.evaluate(he)
                self.assertEqual(found.keys(), expected.keys())
                for name, result in expected.items():
                    with self.subTest(name, n=n, device=dev):
                        self.assertTrue(saved(he.store(found[name])) == saved(result))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "all.json")
            with keys.evaluator(device()) as he, he.record(path) as program:
                for name, result in keys.evaluate(program).items():
                    program.expect(result, expected[name])
            transcript = healcl.load(path)
            self.assertEqual(transcript.segments,
                             ("upload", "upload_ct_1", "compute_block_1", "download_1"))
            for dev in (device(), healcl.reference):
                report = transcript.run(dev)
                self.assertEqual((report.verified, report.results_compared), (True, len(expected)))

    def test_4096(self):
        self.compare(4096, [device(), healcl.reference])

    def test_8192(self):
        self.compare(8192, [device()])

    def test_16384(self):
        self.compare(16384, [device()])

    def test_a_matrix(self):
        n, slots = 4096, 2048
        rng = np.random.default_rng(5)
        t = fhe.LinearTransform({k: rng.uniform(-1, 1, slots) for k in range(-2, 62)}, slots)
        self.assertEqual(t.rotations, [-8, *range(1, 9), *range(16, 57, 8)])
        keys = Keys(n, [40, 30, 40], 20, t.rotations)
        evaluator, last = seal.Evaluator(keys.context), float(keys.moduli[1])
        sums = []
        for giant in range(-8, 57, 8):
            total = None
            for k in range(max(giant, -2), min(giant + 8, 62)):
                turned, product = seal.Ciphertext(), seal.Ciphertext()
                evaluator.rotate_vector(keys.a, k - giant, keys.galois, turned)
                plain = keys.encode(np.roll(t._diagonals[k], giant).tolist(), last)
                evaluator.multiply_plain(turned, plain, product)
                total = total or product
                if total is not product:
                    evaluator.add_inplace(total, product)
            sums.append(seal.Ciphertext())
            evaluator.rotate_vector(total, giant, keys.galois, sums[-1])
            if giant > -8:
                evaluator.add_inplace(sums[0], sums[-1])
        evaluator.rescale_to_next_inplace(sums[0])
        for dev in (device(), healcl.reference):
            with keys.evaluator(dev) as he:
                a = he.load(keys.a)
                he.load_keys(t.rotations)
                np.testing.assert_array_equal(he.apply(t, a).read(), he.load(sums[0]).read())
                he.prepare(t, 1, 2.0**20)
                self.assertAlmostEqual(he.apply(t, a).scale * last, 2.0**40)
                if dev is healcl.reference:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "matrix.json")
                    with he.record(path) as program:
                        program.expect(program.apply(t, program.load(keys.a)), sums[0])
                    report = healcl.load(path).run(dev)
                    self.assertTrue(report.verified)

    def test_the_bundled_transcript_is_seal_s(self):
        path = transcript("seal_multiply.json.gz")
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, "again.json")
            subprocess.run([sys.executable, "-B", os.path.join(CLONE, "scripts",
                                                               "seal_transcript.py"), again],
                           check=True)
            results = [[array_of(payload["out"]) for kind, payload in entries(each)
                        if kind["value"] == "DEVICE_OP" and payload["name"] == "device_to_host"]
                       for each in (path, again)]
        self.assertEqual(len(results[0]), 5)
        for bundled, made in zip(*results):
            np.testing.assert_array_equal(bundled, made)

    def test_encoded_numbers(self):
        """Bits are equal, those of coefficients next to halves too."""
        random = np.random.default_rng(1)
        for n, bits, scales in ((64, [60, 40, 60], (20, 40)), (4096, [40, 30, 40], (20, 40)),
                                (8192, [60, 40, 40, 60], (30, 40, 70, 100)),
                                (32768, [60, 50, 60], (50,)), (1024, [30, 25, 30], (20,))):
            keys = Keys(n, bits, 20)
            he = keys.evaluator(healcl.reference)
            a, plain = he.load(keys.a), seal.Plaintext()
            places = np.array([pow(3, i, 2 * n) for i in range(n // 2)]) // 2
            for scale in (2.0**bits for bits in scales):
                rows = random.uniform(-1, 1, (5, n // 2)) + 0j
                rows[1] *= random.normal(size=n // 2) * 1j
                rows[2, 7:] = 0
                for row, size in ((3, 1e3), (4, 1e-9 * scale)):  # coefficients are halves, nearly
                    halves = np.rint(random.normal(size=n) * size) + 0.5
                    values = np.fft.ifft(halves * np.exp(1j * np.pi / n * np.arange(n))) * n
                    rows[row] = values[places] / scale
                for alike in (None, False):  # by SEAL, in the end
                    he._encodes_alike = alike
                    for numbers, plains in (*((each, [he.encode(each, a, scale)]) for each in (
                            rows[0].real, rows[2, :7], -0.5 / scale, 2.5 / scale, 0, 1j, [], -0.9)),
                            (rows, he.encode(rows, a, scale))):
                        for found, row in zip(plains, rows if len(plains) == 5 else [numbers]):
                            row = np.asarray(row, None if np.iscomplexobj(row) else float)
                            keys.encoder.encode(row.tolist(), he._ids[a.level], scale, plain)
                            with self.subTest(n=n, scale=scale, alike=alike, numbers=numbers):
                                np.testing.assert_array_equal(found.read(), he.load(plain).read())
                                self.assertEqual(found.scale, plain.scale)
                    if alike is None and platform.machine() == "x86_64":
                        self.assertEqual(he._encodes_alike, n != 1024)
            self.assertEqual(he.encode(np.zeros((0, 4)), a), [])

    @both
    def test_vectors_of_tenseal(self, dev):
        context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 4096, coeff_mod_bit_sizes=[40, 28, 40])
        context.global_scale = 2.0**28
        context.generate_galois_keys()
        x, y = (tenseal.ckks_vector(context, values) for values in ([1.5, 2, 3], [4, -5, 6]))
        with fhe.from_seal(context, dev) as he:
            a, b = he.load(x), he.load(y)
            np.testing.assert_allclose(he.store(he.rescale(he.relinearize(a * b))).decrypt(),
                                       [6, -10, 18], atol=0.1)
            for steps, wanted in ((1, [2, 3, 1.5]), (5, [3, 1.5, 2])):
                turned = he.store(he.rotate(a, steps))
                np.testing.assert_allclose(turned.decrypt(), wanted, atol=0.1)
            np.testing.assert_array_equal(he.load(turned).read(), he.rotate(a, steps).read())
            self.assertEqual(repr(a), "<healcl.fhe.Ciphertext: 2 parts, level 1, scale 2^28.00>")

    def test_a_tensor_dropped_while_the_recording_is_written(self):
        keys = Keys(64, [30, 25, 30], 20)

        def segment(recorder, name, original=Recorder.segment):
            gc.collect()
            return original(recorder, name)

        with tempfile.TemporaryDirectory() as folder, keys.evaluator(healcl.reference) as he:
            path = os.path.join(folder, "dropped.json")
            with mock.patch.object(Recorder, "segment", segment), he.record(path) as program:
                gc.disable()
                self.addCleanup(gc.enable)
                cycle = [program.load(keys.a)]
                cycle.append(cycle)
                del cycle
                program.expect(program.load(keys.b), keys.b)
            self.assertTrue(healcl.load(path).run(healcl.reference).verified)

    def test_mistakes(self):
        keys = Keys(1024, [30, 25, 30], 20)
        other = Keys(2048, [30, 25, 30], 20)
        bare = fhe.from_seal(keys.context, healcl.reference)
        he = keys.evaluator(healcl.reference)
        a, foreign = he.load(keys.a), bare.load(keys.a)
        product, low, plain = a * a, he.mod_switch(a), he.load(keys.plain)
        small = he.load(keys.a)
        small.scale = 2.0**10  # a guess of one's own
        bfv = tenseal.context(tenseal.SCHEME_TYPE.BFV, 4096, 1032193)
        for error, word, make in (
                (healcl.ArgumentError, "levels 1 and 0", lambda: a + low),
                (healcl.ArgumentError, "scales", lambda: a + product),
                (healcl.ArgumentError, "scales", lambda: a - he.encode(1, a, 2.0**10)),
                (healcl.ArgumentError, r"2\^60.00 does not fit", lambda: a * a * a),
                (healcl.ArgumentError, "does not fit", lambda: he.mod_switch(product * plain)),
                (healcl.ArgumentError, "only one prime", lambda: he.rescale(low)),
                (healcl.ArgumentError, "only one prime", lambda: he.mod_switch(low)),
                (healcl.ArgumentError, "from level 1 to level 2", lambda: he.mod_switch(a, 2)),
                (healcl.NameUnknownError, "no relinearization", lambda: bare.relinearize(
                    foreign * foreign)),
                (healcl.ArgumentError, "4 parts", lambda: he.relinearize(small * small * small)),
                (healcl.NameUnknownError, "2 steps, element 9 of generator 3, in galois_keys", lambda: he.rotate(a, 2)),
                (healcl.NameUnknownError, "conjugate", lambda: bare.conjugate(foreign)),
                (healcl.NameUnknownError, "3 steps, element 27 .* for -1, 4",
                 lambda: he.rotate(a, 3)),
                (healcl.ArgumentError, "512 slots by 512", lambda: he.rotate(a, 512)),
                (healcl.ArgumentError, "relinearize", lambda: he.rotate(product, 1)),
                (healcl.ArgumentError, "n = 2048, not 1024", lambda: he.load(other.a)),
                (healcl.ArgumentError, "another evaluator", lambda: a + foreign),
                (healcl.DtypeError, "encode", lambda: a * "2"),
                (healcl.ArgumentError, "not nan", lambda: np.nan - a),
                (healcl.ArgumentError, "does not fit", lambda: a * 2**60),
                (healcl.DtypeError, "read", lambda: np.asarray(a)),
                (healcl.DtypeError, "residues", lambda: a == a),
                (healcl.ArgumentError, "above 0", lambda: setattr(a, "scale", 0)),
                (healcl.DtypeError, "plaintext", lambda: he.negate(plain)),
                (healcl.DtypeError, "not list", lambda: he.load([1, 2])),
                (healcl.ArgumentError, "at most 512", lambda: he.encode(range(513), a)),
                (healcl.ArgumentError, "finite", lambda: he.encode(np.nan, a)),
                (healcl.ArgumentError, r"shape \[1, 1, 1\]", lambda: he.encode([[[1]]], a)),
                (healcl.ArgumentError, "rows", lambda: he.encode([[1], [1, 2]], a)),
                (healcl.ArgumentError, "SEAL cannot", lambda: he.encode(1e9, a, 2.0**30)),
                (healcl.ArgumentError, "a level must be from 0 to 1", lambda: he.encode(1, 2, 1.0)),
                (healcl.DtypeError, "RelinKeys", lambda: fhe.from_seal(
                    keys.context, healcl.reference, relinearization_keys=keys.galois)),
                (healcl.ArgumentError, "other parameters", lambda: fhe.from_seal(
                    keys.context, healcl.reference, galois_keys=other.galois)),
                (healcl.ArgumentError, "2 ciphertexts",
                 lambda: he.load(SimpleNamespace(ciphertext=lambda: [keys.a, keys.b]))),
                (healcl.ArgumentError, "BFV", lambda: fhe.from_seal(bfv, healcl.reference)),
                (healcl.ArgumentError, "context", lambda: fhe.from_seal(7, healcl.reference)),
                (healcl.StateError, "record", lambda: he.expect(a, keys.a)),
                (TypeError, "ufunc", lambda: np.add(a, a)),
                (healcl.StateError, "evaluator is closed", lambda: (bare.close(), foreign.read()))):
            with self.subTest(word), self.assertRaisesRegex(error, word):
                make()
