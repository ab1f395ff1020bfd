# SPDX-License-Identifier: Apache-2.0
import gzip
import os
import tempfile
import unittest

import numpy as np

import healcl
from support import CLONE, both, python, transcript, SETUP


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

    @both
    def test_results_that_differ_are_told(self, device):
        path = os.path.join(CLONE, "tests", "bad", "differs_in_last_value.json")
        report = healcl.load(path).run(device)
        self.assertIs(report.verified, False)
        self.assertEqual(report.results_different, 1)
        self.assertIn("expected", " ".join(report.differences))
        self.assertIsNone(healcl.load(path).run(device, verify=False).verified)

    def test_samples_come_with_the_package(self):
        path = healcl.sample("seal_multiply.json.gz")
        self.assertTrue(healcl.load(path).run(healcl.reference).verified)
        with self.assertRaisesRegex(healcl.FileError, "no '../x' .*, recognizer.json, seal_mul"):
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
        with self.assertRaises(OSError):
            healcl.load("/nowhere.json")
        with self.assertRaises(healcl.FormatError):
            healcl.load(b"no json")

    @both
    def test_inputs_and_dumps(self, device):
        t = healcl.load(transcript("modular.json"))
        first = t.inputs[0]
        with tempfile.TemporaryDirectory() as folder:
            t.run(device, dump=folder)
            expected = {name: np.load(os.path.join(folder, name))
                        for name in os.listdir(folder) if name.endswith(".npy")}
            t.run(device, inputs={0: np.zeros(first.shape, first.dtype)}, dump=folder)
            self.assertTrue(any((np.load(os.path.join(folder, name)) != array).any()
                                for name, array in expected.items()))
        with self.assertRaises(healcl.ShapeError):
            t.run(device, inputs={0: np.zeros((1, 2, 3), first.dtype)})

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


if __name__ == "__main__":
    unittest.main()
