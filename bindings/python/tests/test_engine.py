# SPDX-License-Identifier: Apache-2.0
import json
import os
import stat
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
from contextlib import nullcontext

import numpy as np

import healcl
from healcl import fhe
from support import (TRANSCRIPTS, both, device, is_tagged, operations, python, replay,
                     transcript)

VENDORS = os.path.join(TRANSCRIPTS, "..", "examples", "extensions")
QUICK = ["aliasing.json", "layout.json", "memory.json", "names.json", "recognizer.json", "ntt.json"]


def tagged():
    """All in HEALCL_TEST_ALL, else some of the transcripts in the spelling of the SDK."""
    transcript("ntt.json")
    names = sorted(os.listdir(TRANSCRIPTS)) if os.environ.get("HEALCL_TEST_ALL") == "1" else QUICK
    return [os.path.join(TRANSCRIPTS, name) for name in names
            if name.endswith((".json", ".json.gz")) and is_tagged(os.path.join(TRANSCRIPTS, name))]


class WithoutOut:
    """An engine that calls each operation without an `out` first: the result is as in a new one."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        function, queue = getattr(self.engine, name), self.engine.queue
        operation = queue._handle.table[name.lstrip("_")]

        def call(*arguments):
            form = next((form for form in operation.forms if len(form) == len(arguments)), ())
            for i, parameter in enumerate(form):
                if parameter.name == "out":
                    made = function(*arguments[:i], None, *arguments[i + 1:])
                    new = queue.zeros(arguments[i].shape, made.dtype)
                    function(*arguments[:i], new, *arguments[i + 1:])
                    np.testing.assert_array_equal(made.read(), new.read())
            return function(*arguments)

        return call


class Engines(unittest.TestCase):
    def test_results_are_made_where_out_is_left_out(self):
        for name in ("modular", "modular_int32", "sums", "ntt", "intt", "digits", "digits_full_q",
                     "gather", "pad_repeat", "empty_shapes", "high_rank"):
            for dev in (healcl.reference, device()) if name in ("sums", "gather") else (
                    healcl.reference,):
                with self.subTest(name):
                    replay(transcript(name + ".json"), WithoutOut(healcl.heal_engine(dev)))

    @both
    def test_transcripts_run_by_name(self, dev):
        for path in tagged():
            with self.subTest(path):
                replay(path, healcl.heal_engine(dev))

    def test_the_order_of_expand(self):
        for expand, shape in ((None, (1, 2)), ("spec", (1, 2)), ("sdk", (2, 1))):
            engine = healcl.heal_engine(healcl.reference, expand=expand)
            a = engine.zeros((1, 1), np.int64)
            self.assertEqual(engine.expand(a, 1, 2).shape if expand != "sdk" else
                             engine.expand(a, 2, 0).shape, shape)
        with self.assertRaises(healcl.ArgumentError):
            healcl.heal_engine(healcl.reference, expand="other")

    def test_names_and_results(self):
        engine = healcl.heal_engine(healcl.reference)
        a = engine.host_to_device(np.arange(4), np.int32)
        self.assertEqual(a.dtype, np.int32)
        out = engine.empty((4,), "torch.int32")
        self.assertIs(engine._modmul_ttc(a, a, 7, out), out)
        self.assertIs(engine.set_const_val(out, 3), out)
        self.assertEqual(engine.device_to_host(out).tolist(), [3] * 4)
        self.assertEqual(engine.device_to_host(out, None).tolist(), [3] * 4)
        self.assertEqual(engine.get_slice(a, (slice(1, None, 2),)).shape, (2,))
        engine.free_device_tensor(out)
        self.assertRaises(healcl.Error, engine.device_to_host, out)
        self.assertFalse(hasattr(engine, "key_switch"))
        self.assertIn("ntt", dir(engine))


class Recorders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "program.json")

    def record(self, program, **options):
        with healcl.record(self.path, healcl.heal_engine(healcl.reference), **options) as recorded:
            program(recorded)
        return healcl.load(self.path)

    def test_what_is_recorded_verifies_with_the_same_operations(self):
        self.path += ".gz"  # with all payloads in one file
        for path in tagged():
            with self.subTest(path):
                results = []
                t = self.record(lambda engine: results.append(replay(path, engine)))
                self.assertEqual(operations(self.path), operations(path))
                for dev in (healcl.reference, device()):
                    report = t.run(dev)
                    self.assertEqual(report.results_different, 0)
                    self.assertEqual(report.results_compared, results[0])
                self.assertEqual(replay(self.path, healcl.heal_engine(device())), results[0])

    def test_operations_of_manifests(self):
        own = healcl.Operations(VENDORS)
        with healcl.record(self.path, healcl.reference, operations=own) as engine:
            a, index, sign, q = map(engine.host_to_device, ([[5, 6]], [1, 0], [1, -1], [97]))
            engine.device_to_host(engine.automorphism(a, index, sign, q, engine.zeros((1, 2), "int64")))
        self.assertTrue(healcl.load(self.path, operations=own).run(device()).verified)
        with self.assertRaises(healcl.ArgumentError):
            healcl.record(self.path, healcl.heal_engine(healcl.reference), operations=own)
        # Data are checked for planned calls, and for those that are as planned before.
        with device().queue(operations=own) as q:
            a, index, sign = map(q.array, ([[5, 6]], [1, 0], [1, -1]))
            for modulus in (97, 97, 0, 101):
                out = q.ops.zeros((1, 2), "int64")
                with self.assertRaises(healcl.DataError) if modulus == 0 else nullcontext():
                    q.ops.automorphism(a, index, sign, q.array([modulus]), out)
                    q.wait()

    def test_slices_arrays_segments_and_packed_files(self):
        self.path += ".gz"

        def program(engine):
            with engine.segment("work"):
                a = engine.host_to_device(np.arange(12).reshape(3, 4))
                self.assertEqual((a.shape, len(a)), ((3, 4), 3))
                b = a[1:, 2]
                np.testing.assert_array_equal(np.asarray(b), [6, 10])

        t = self.record(program)
        self.assertEqual(operations(self.path), ["host_to_device", "get_slice", "device_to_host"])
        self.assertEqual([name for name in t.segments if name], ["work"])
        self.assertTrue(t.run(healcl.reference).verified)

    def test_calls_by_keywords_and_what_they_make(self):
        ring = fhe.Ring(4, [17])

        def program(engine):
            a = engine.host_to_device(np.arange(4).reshape(1, 1, 1, 4))
            for _ in range(2):
                b = engine.modmul(engine.intt(engine.ntt(a, ring), ring), p=5, b=2)
            c = engine.modmul_axis_sum(b, a[0], engine.host_to_device([17]))
            self.assertEqual(engine.device_to_host(c).tolist(), [[[0, 2, 8, 3]]])
            self.assertRaises(healcl.SignatureError, engine.modmul, a, p=5)

        t = self.record(program)
        self.assertEqual(operations(self.path).count("host_to_device"), 2 + len(ring.tables))
        self.assertEqual([name for name in operations(self.path) if name in ("empty", "zeros")],
                         ["empty"] * 6 + ["zeros"])
        self.assertTrue(t.run(healcl.reference).verified)

    def test_inputs_stay_out_if_asked(self):
        key = np.arange(1000) * 12345678912345

        def program(engine):
            a = engine.host_to_device(key)
            engine.device_to_host(engine.abs(a, a))

        t = self.record(program, inputs=False)
        self.assertFalse(t.inputs[0].has_data)
        self.assertEqual((t.inputs[0].shape, t.results[0].has_data), ((1000,), True))
        self.assertIsNone(t.inputs[0].data)
        self.assertTrue(t.run("reference", inputs={0: key}, verify=True).verified)
        with t.session("reference") as s:
            self.assertEqual(list(s.inputs.values()), [None])

    def test_large_tensors_have_a_file_of_their_own(self):
        arrays = [np.arange(1 << 20) * i for i in (3, 5)]
        arrays.append(arrays[0].reshape(2, -1).T)  # copied once

        def program(engine):
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            for array in arrays:
                engine.device_to_host(engine.host_to_device(array))
            self.assertLess(tracemalloc.get_traced_memory()[1], 2.2 * array.nbytes)

        for path in self.path, self.path + ".gz":
            self.path = path
            t = self.record(program)
            self.assertTrue(t.run("reference").verified)
            self.assertEqual(os.path.exists(path + ".bin"), path.endswith(".json"))
            t.close()
        self.path = self.path[:-3]
        self.assertLess(os.path.getsize(self.path), 10**4)
        with self.assertRaisesRegex(healcl.FileError, "No such file"):
            os.rename(self.path + ".bin", self.path + ".away")
            healcl.load(self.path)
        with healcl.load(self.record(program).inputs and self.path) as t, \
                self.assertRaisesRegex(healcl.FileError, "it is the input"):
            self.record(program)

    def test_no_expand_reads_two_ways(self):
        a = np.arange(2).reshape(2, 1, 1, 1)
        for order, first, second in (("spec", 2, 3), ("spec", 3, 1), ("spec", 1, 3), ("spec", 0, 2),
                                     ("sdk", 2, 3), ("sdk", 1, 3), ("sdk", 1, 2), ("sdk", 2, 2)):
            with self.subTest(order=order, numbers=(first, second)):
                engine = healcl.heal_engine(healcl.reference, expand=order)
                axis, count = (first, second) if order == "spec" else (second, first)
                wanted = a.repeat(count, axis) if axis else None
                with healcl.record(self.path, engine) as r:
                    b = r.host_to_device(a if axis else a[:1])
                    found = r.device_to_host(r.expand(b, first, second))
                    if axis:
                        np.testing.assert_array_equal(found, wanted)
                for expand in None, order:
                    report = healcl.load(self.path, expand=expand).run("reference")
                    self.assertEqual((report.verified, report.warnings), (True, []))

    def test_refused_calls_are_left_out(self):
        def program(engine):
            a = engine.host_to_device([1, 2, 3])
            out = engine.zeros(3, np.int64)
            self.assertRaises(healcl.ShapeError, engine.abs, a, engine.zeros((2,), np.int64))
            with self.assertRaises(healcl.DataError):
                engine.take_along_axis(a, engine.host_to_device([0, 9, 0]), 0, out)
            self.assertRaises(healcl.DtypeError, engine.host_to_device, [1.5])
            engine.abs(a, out)
            engine.device_to_host(out)

        t = self.record(program)
        self.assertEqual(operations(self.path), ["host_to_device", "zeros", "zeros",
                                                 "host_to_device", "abs", "device_to_host"])
        self.assertTrue(t.run(healcl.reference).verified)

    def test_names_are_freed_when_tensors_are(self):
        def program(engine):
            a = engine.zeros((4,), np.int64)
            b = engine.new_reference(a)
            del a
            engine.device_to_host(b)
            engine.free_device_tensor(b)
            self.assertRaises(healcl.ArgumentError, engine.device_to_host, b)

        self.record(program)
        with open(self.path, encoding="utf-8") as file:
            kinds = [entry[0]["value"] for entry in json.load(file)["transcript"]]
        self.assertEqual(kinds, ["DEVICE_OP", "DEVICE_OP", "FREE_DEVICE_TENSOR", "DEVICE_OP",
                                 "FREE_DEVICE_TENSOR"])

    def test_nothing_is_written_after_an_exception(self):
        self.assertRaises(ZeroDivisionError, self.record, lambda engine: 1 // 0)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_files_are_written_as_the_program_does(self):
        folder = os.path.dirname(self.path)
        target, node = (os.path.join(folder, name) for name in ("target", "node"))
        os.symlink(target, self.path)
        for path in target, self.path:
            with open(target, "w", encoding="utf-8"), healcl.record(path, "reference") as one, \
                    healcl.record(path, "reference") as other:
                one.device_to_host(one.host_to_device([1]))
                other.device_to_host(other.host_to_device([2, 3]))
                self.assertEqual(os.path.getsize(target), 0)
            self.assertTrue(healcl.load(self.path).run("reference").verified)
        self.assertTrue(os.path.islink(self.path))
        self.assertEqual(sorted(os.listdir(folder)), ["program.json", "target"])
        if os.getuid() == 0:
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 7))  # as /dev/full
            with self.assertRaisesRegex(healcl.FileError, "No space left"), \
                    healcl.record(node, "reference") as recorded:
                recorded.host_to_device(np.zeros(10**5, np.int64))
            self.assertTrue(stat.S_ISCHR(os.stat(node).st_mode))

    def test_a_limit_of_files_leaves_nothing(self):
        done = python("""
import resource, sys, healcl, numpy as np
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for size in 10, 10**5:  # noticed at the end, and on the way
    try:
        with healcl.record(sys.argv[1], healcl.reference) as e:
            for _ in range(10):
                try:
                    e.host_to_device(np.random.default_rng(0).integers(0, 1 << 62, size))
                except healcl.Error as error:
                    if size == 10:
                        raise
    except healcl.FileError as error:
        print(error)
""", self.path)
        self.assertEqual(done.stdout, "".join("cannot write '%s': File too large\n" % path
                                              for path in (self.path, self.path + ".bin")),
                         done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_inputs_are_not_written_over(self):
        pack = os.path.join(os.path.dirname(self.path), "p.json")
        subprocess.run([sys.executable, "-m", "healcl", "pack", transcript("segments.json"), "-o",
                        pack], stdout=subprocess.DEVNULL, check=True)
        dump = os.path.join(os.path.dirname(self.path), "dump")
        os.mkdir(dump)
        os.symlink(pack + ".bin", os.path.join(dump, "results.json"))
        os.link(pack + ".bin", self.path)
        with healcl.load(pack) as t:
            for path in pack, pack + ".bin", self.path:
                with self.assertRaisesRegex(healcl.FileError, "it is the input '.*p.json"):
                    healcl.record(path, "reference").__enter__()
            with self.assertRaisesRegex(healcl.FileError, "it is the input '.*p.json.bin'"):
                t.run("reference", dump=dump)
        self.assertTrue(healcl.load(pack).run("reference").verified)

    def test_what_is_recorded_can_be_loaded(self):
        def program(engine):
            with engine.segment(name):
                engine.zeros(1, np.int64)

        for name in ("", "é", "\n\"\\", "a" * 10**5):
            self.assertEqual(self.record(program).segments, (name,))
        for name in (None, 5, b"a", "\0", "\ud800", "a" * 10**6):
            with self.assertRaisesRegex(healcl.ArgumentError, "a segment's name"):
                self.record(program)
        arrays = [np.arange(6, dtype=dtype).reshape(2, 3) for dtype in (">i4", ">i8", "<i8")]
        for array in arrays + [arrays[0][::-1, ::2], np.asfortranarray(arrays[1])]:
            for inputs in (True, False):
                t = self.record(lambda engine: engine.device_to_host(engine.host_to_device(array)),
                                inputs=inputs)
                self.assertTrue(t.run("reference", verify=True, inputs=None if inputs else {
                    0: np.ascontiguousarray(array, t.inputs[0].dtype)}).verified)

    def test_what_is_no_engine_is_refused(self):
        for wrong in (healcl.reference.queue(), 5, healcl.heal_engine):
            with self.assertRaisesRegex(healcl.ArgumentError, "an engine of healcl.heal_engine.*"
                                        "not %s" % type(wrong).__name__):
                healcl.record(self.path, wrong)

    def test_tensors_of_others_are_refused(self):
        engine = healcl.heal_engine(healcl.reference)
        foreign = engine.host_to_device([1])
        with healcl.record(self.path, engine) as one:
            self.assertRaises(healcl.ArgumentError, one.abs, foreign, foreign)
            mine = one.host_to_device([1])
        self.assertRaises(healcl.StateError, one.abs, mine, mine)

    def test_all_dtypes_and_shapes_of_payloads(self):
        arrays = [np.arange(size, dtype=dtype).reshape(shape)
                  for dtype in (np.int8, np.int32, np.int64)
                  for size, shape in ((1, ()), (0, (0, 3)), (6, (2, 3)), (100, (100,)))]
        turned = np.arange(20).reshape(2, -1).T  # not in C order

        def program(engine):
            for array in [*arrays, turned]:
                np.testing.assert_array_equal(
                    engine.device_to_host(engine.host_to_device(array)), array)

        t = self.record(program)
        self.assertEqual(t.run(healcl.reference).results_compared, len(arrays) + 1)
