# SPDX-License-Identifier: Apache-2.0
import gzip
import os
import pickle
import tempfile
import unittest

import numpy as np

import healcl
from support import CLONE, SETUP, array_of, both, device, entries, python, transcript


class Transcripts(unittest.TestCase):
    @both
    def test_a_run_verifies(self, device):
        report = healcl.load(transcript("recognizer.json")).run(device, repeat=3, profile=True)
        self.assertIs(report.verified, True)
        self.assertEqual((report.results_different, len(report.runs)), (0, 3))
        self.assertGreater(report.seconds, 0)
        self.assertEqual({type(value) for row in report.segments + report.operations
                          for value in row.values()} - {str, int, float, type(None)}, set())
        self.assertEqual(sum(row["results_compared"] for row in report.segments),
                         report.results_compared)
        self.assertIn("axis_modsum", {row["name"] for row in report.operations})
        lines = str(report).split("\n")
        self.assertRegex(lines[0], "^verified: 1 of 1 results compared, 0 different$")
        self.assertRegex(lines[1], "^time: .* s, the median of 3 runs of ")
        self.assertIn("segment compute_block_1", str(report))
        self.assertLessEqual(len(lines), 10)
        self.assertRegex(repr(report), r"^<healcl.Report: verified: [^\n]* s>$")

    @both
    def test_results_that_differ_are_told(self, device):
        path = os.path.join(CLONE, "tests", "bad", "differs_in_last_value.json")
        report = healcl.load(path).run(device)
        self.assertIs(report.verified, False)
        self.assertEqual(report.results_different, 1)
        self.assertIn("expected", " ".join(report.differences))
        self.assertRegex(str(report), r"(?s)^different: 3 of 3 .*1 different\n.*\n"
                         r"  \[2, 3\]: -39, expected -40\n")
        self.assertIsNone(healcl.load(path).run(device, verify=False).verified)

    def test_samples_come_with_the_package(self):
        path = healcl.sample("seal_multiply.json.gz")
        self.assertTrue(healcl.load(path).run(healcl.reference).verified)
        with self.assertRaisesRegex(healcl.FileError, "no sample '../x', but .*, recognizer.json, seal_mul"):
            healcl.sample("../x")

    def test_a_transcript_from_memory(self):
        with open(transcript("ntt.json"), "rb") as file:
            data = file.read()
        for source in bytearray(data), gzip.compress(data):
            self.assertTrue(healcl.load(source).run(healcl.reference).verified)

    def test_a_path_with_a_nul_is_refused(self):
        t = healcl.load(transcript("recognizer.json"))
        for work in (lambda path: healcl.load(path), lambda path: healcl.Operations(path),
                     lambda path: healcl.open(path), lambda path: healcl.open(package=path),
                     lambda path: t.run(healcl.reference, dump=path),
                     lambda path: healcl.load(transcript("recognizer.json"), passes=path)):
            with self.assertRaisesRegex(ValueError, "null byte"):
                work(transcript("recognizer.json") + "\0x")

    def test_what_is_refused_names_its_place(self):
        with self.assertRaises(healcl.ShapeError) as caught:
            healcl.load(os.path.join(CLONE, "tests", "bad", "digits_out_shape.json"))
        error = caught.exception
        self.assertIsInstance(error.entry, int)
        self.assertIn("entry %d" % error.entry, str(error))
        self.assertIn(error.operation, str(error))
        self.assertIsInstance(error.argument, int)

    def test_files_that_are_not_there_or_none(self):
        self.assertRaises(OSError, healcl.load, "/nowhere.json")
        self.assertRaises(healcl.FormatError, healcl.load, b"no json")

    def test_data_are_the_file_s(self):
        for name in ("payloads.json", "empty_shapes.json", "seal_multiply.json.gz"):
            t, listed = healcl.load(transcript(name)), entries(transcript(name))
            for info in t.inputs + t.results:
                operation = listed[info.entry][1]
                argument = operation["args"][0] if info in t.inputs else operation["out"]
                expected = array_of(argument)
                np.testing.assert_array_equal(info.data, expected)
                self.assertEqual((info.data.shape, info.dtype), (expected.shape, info.data.dtype))
        info.data[...] = 0  # of a copy
        np.testing.assert_array_equal(info.data, expected)
        t.close()
        for info in (info, pickle.loads(pickle.dumps(info))):
            with self.assertRaises(healcl.StateError):
                info.data

    def test_expected_data_of_other_shapes_are_refused(self):
        t = healcl.load(os.path.join(CLONE, "tests", "bad", "differs_in_shape.json"))
        with self.assertRaisesRegex(healcl.ShapeError, r"\[3, 4\], but \[4, 3\] is expected"):
            t.results[1].data

    def test_other_inputs_leave_nothing_to_compare(self):
        t, selector = healcl.load(transcript("modular.json")), device().selector
        inputs = {0: t.inputs[0].data}
        report = t.run(selector, inputs=inputs)
        self.assertIsNone(report.verified)
        self.assertTrue(str(report).startswith("nothing to compare\n"))
        self.assertTrue(t.run(selector, inputs=inputs, verify=True).verified)
        inputs[0] += 1
        self.assertFalse(t.run(selector, inputs=inputs, verify=True).verified)
        with self.assertRaises(healcl.ShapeError):
            t.run(selector, inputs={0: np.zeros((1, 2, 3), t.inputs[0].dtype)})
        self.assertTrue(t.run(selector, inputs={0: None}).verified)
        self.assertRaisesRegex(KeyError, "no input 'ct'", t.run, selector, inputs={"ct": None})
        with self.assertRaisesRegex(healcl.ArgumentError, "a dict of arrays, not list"):
            t.run(selector, inputs=[inputs[0]])
        for wrong in (5, t):
            with self.assertRaisesRegex(healcl.ArgumentError, "a device must come from healcl.open"):
                t.run(wrong)

    def test_numbers_out_of_range_are_named(self):
        t, plain = healcl.load(transcript("modular.json")), healcl.reference
        for name, work in (("memory_limit", lambda n: plain.queue(memory_limit=n)),
                           ("work_limit", lambda n: healcl.load(b"", work_limit=n)),
                           ("repeat", lambda n: t.run(plain, repeat=n)),
                           ("device_memory", lambda n: t.run(plain, device_memory=n)),
                           ("audit_seed", lambda n: t.session(plain, audit_seed=n)),
                           ("batch", lambda n: t.widen(n, np.int64(0)))):
            for number in (-1, 1 << 64, 1.5):
                with self.assertRaisesRegex(healcl.ArgumentError, name + " must be .*, not %s" % number):
                    work(number)
        with plain.queue() as q:
            for work in (q.zeros, q.empty, lambda n: q.ops.reshape(q.zeros(1), n)):
                self.assertRaisesRegex(healcl.ShapeError, "does not fit in 64 bits", work, 1 << 64)
        for work in (lambda: plain.queue(operations=5), lambda: t.session(plain).run(1.5)):
            self.assertRaises(healcl.ArgumentError, work)

    def test_dumps(self):
        t = healcl.load(transcript("ntt.json"))
        with tempfile.TemporaryDirectory() as folder:
            t.run(device(), dump=folder)
            for info in t.results:
                np.testing.assert_array_equal(info.data, np.load(os.path.join(
                    folder, "entry_%06d_%s.npy" % (info.entry, info.name))))

    def test_a_closed_transcript_says_so(self):
        t = healcl.load(transcript("ntt.json"))
        t.close()
        with self.assertRaisesRegex(healcl.StateError, "the transcript is closed"):
            t.run(healcl.reference)

    @both
    def test_manifests(self, device):
        folder = os.path.join(CLONE, "examples", "extensions")
        operations = healcl.Operations(folder)
        with device.queue(operations=operations) as q:
            self.assertIn("key_switch", dir(q.ops))
            self.assertIn("manifest", q.ops.key_switch.__doc__)
        with device.queue() as q:
            self.assertFalse(hasattr(q.ops, "key_switch"))

    def test_ctrl_c_ends_a_run(self):
        done = python(SETUP + """
import os, signal, threading, time, sys
t = healcl.load(support.transcript("encrypted_sharpen.json.gz"))
for device in (healcl.reference, dev):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        t.run(device, repeat=100000)
    except KeyboardInterrupt:
        print("interrupted")
    t.run(device, verify=False)
""")
        self.assertEqual(done.stdout, "interrupted\n" * 2, done.stderr)
