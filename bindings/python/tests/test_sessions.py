# SPDX-License-Identifier: Apache-2.0
import contextlib
import itertools
import os
import sys
import tempfile
import unittest

import numpy as np

import healcl
from support import SETUP, both, device, python, transcript


def interrupted(call, line):
    """Calls, and raises KeyboardInterrupt before the line-th line in healcl that it comes to.
    Returns whether it has come so far."""
    lines = itertools.count()

    def trace(frame, event, _):
        if not frame.f_globals["__name__"].startswith("healcl."):
            return None
        if event == "line" and next(lines) == line:
            raise KeyboardInterrupt
        return trace

    traced = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(traced)
    return False


class Sessions(unittest.TestCase):
    @both
    def test_a_session_runs_again_and_again(self, device):
        t = healcl.load(transcript("recognizer.json"))
        with t.session(device) as s:
            for _ in range(3):
                s.run()
                self.assertEqual(s.compare(0), 0)
            name = t.results[0].name
            logits = s[name]
            self.assertEqual((logits.shape, logits.dtype), (t.results[0].shape, np.int64))
            out = np.zeros_like(logits)
            self.assertIs(s.read(name, out=out), out)
            np.testing.assert_array_equal(out, logits)
            self.assertEqual(s.facts["runs"], 3)

    def test_inputs_and_outputs_are_mappings(self):
        t = healcl.load(transcript("recognizer.json"))
        with t.session(device().selector) as s:
            self.assertEqual((len(s.inputs), len(s.outputs)), (len(t.inputs), 1))
            self.assertEqual(list(s.inputs), [info.name for info in t.inputs])
            name, result = t.inputs[-1].name, t.results[0].name
            for mapping, known in ((s.inputs, name), (s.outputs, result)):
                for each, there in ((known, True), (0, True), (np.int64(-1), True), (99, False),
                                    ("no", False), (None, False)):
                    self.assertEqual(each in mapping, there)
                self.assertIn(known, mapping.keys())
            array = s.inputs[name]
            np.testing.assert_array_equal(array, t.inputs[name].data)
            s.inputs[name] = array
            self.assertIs(s.inputs[-1], array)
            s.run()
            np.testing.assert_array_equal(dict(s.outputs)[result], t.results[0].data)
            s.inputs.update({name: array * 0})
            s.run()
            self.assertGreater(s.compare(result), 0)
            s.inputs[name] = None
            s.run()
            np.testing.assert_array_equal(s.outputs[-1], s[0])
            self.assertEqual(repr(s.outputs), "{'%s': int64 [4, 16, 2, 2]}" % result)
            self.assertRegex(repr(s.inputs), r"^\{'102': int64 \[16\], .*, \.\.\.\}$")
            self.assertIs(type(s.device.queue()), healcl.Queue)  # until the session goes
            for work in (lambda: s.inputs["13"], lambda: s.run("compute_block"),
                         lambda: t.inputs["13"]):
                self.assertRaisesRegex(KeyError, r"the nearest of \d+ are '.*', '.*', '.*'$", work)
            with self.assertRaisesRegex(KeyError, r"is no input '\\n': the nearest of \d+ are .*$"):
                healcl.load(transcript("names.json")).inputs["\n"]
            with self.assertRaisesRegex(KeyError, "there is only '%s'" % result):
                s.outputs["y"]
            for first, count in ((-1, None), (99, None), (0, 99), (1, -1)):
                self.assertRaisesRegex(healcl.NameUnknownError, "segments", s.run, first, count)
            with self.assertRaises(TypeError):
                "y" in s

    def test_names_of_several_are_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            with healcl.record(path, "reference") as r:
                for _ in range(2):
                    a = r.host_to_device([1, 2])
                    np.asarray(a[:1]), np.asarray(a)
                    del a
            with open(path, encoding="utf-8") as file:  # the second names are the first
                text = file.read().replace('_name":3}', '_name":1}')
            with healcl.load(text.encode()).session("reference") as s:
                self.assertEqual(list(s.inputs), [0, 1])
                self.assertEqual(list(s.outputs), ["2", 1, "4", 3])
                self.assertNotIn("1", s.inputs)
                with self.assertRaisesRegex(KeyError, "2 inputs have the name '1': use a number, "
                                            "such as 0 or 1"):
                    s.inputs["1"] = [1, 2]
                s.inputs[1] = [3, 4]
                s.run()
                self.assertEqual([array.tolist() for array in s.outputs.values()],
                                 [[1], [1, 2], [3], [3, 4]])

    @both
    def test_requests_leave_out_what_would_be_the_same(self, device):
        with tempfile.TemporaryDirectory() as folder:
            for changes in False, True:  # whether the first segment's tensor is changed later
                path = os.path.join(folder, "t%d.json" % changes)
                with healcl.record(path, "reference") as r:
                    with r.segment("upload"):
                        weights = r.host_to_device([17, 300])
                        digits = r.empty((2, 1), "int64")
                        r.apply_g_decomp(weights, 1, 8, digits)  # drops a digit, which is counted
                    with r.segment("upload_ct_1"):
                        x = r.host_to_device([[2], [3]])
                    with r.segment("compute"):
                        out = r.modmul(x, digits, 97, digits if changes else None)
                    r.device_to_host(out)
                t = healcl.load(path)
                with t.session(device) as s:
                    for place, array, dropped, result in (
                            (1, [[2], [3]], 1, [[34], [35]]), (1, [[3], [2]], changes, [[51], [88]]),
                            (0, [17, 301], 1, [[51], [90]]), (0, None, 1, [[51], [88]]),
                            (1, [[2], [3]], changes, [[34], [35]]), (1, None, 1, [[34], [35]]),
                            (1, None, 1, [[34], [35]])):
                        s[place] = array
                        s.run()
                        self.assertEqual(s.facts["dropped_digits"], dropped)
                        np.testing.assert_array_equal(s.read(0), result)
                    s.run("compute") if not changes else self.assertRaises(
                        healcl.StateError, s.run, "compute")

    @both
    def test_inputs_are_bound_without_a_copy(self, device):
        t = healcl.load(transcript("modular.json"))
        array = t.inputs[0].data
        with t.session(device) as s:
            s[0] = array
            s.run()
            one = [s[i] for i in range(len(t.results))]
            array += 1
            s.run()
            two = [s[i] for i in range(len(t.results))]
            self.assertTrue(any((a != b).any() for a, b in zip(one, two)))
            s[0] = None
            s.run()
            self.assertEqual([s.compare(i) for i in range(len(t.results))], [0] * len(t.results))

    @both
    def test_requests_together(self, device):
        t = healcl.load(transcript("modular.json"))
        requests = [t.inputs[0].data + i for i in range(3)]
        alone = []
        with t.session(device) as s:
            for request in requests:
                s[0] = request
                s.run()
                alone.append([s[i] for i in range(len(t.results))])
        wide = t.widen(3, [0])
        t.close()
        self.assertEqual(wide.inputs[0].shape, (3, *t.inputs[0].shape))
        with wide.session(device) as s:
            s[0] = np.stack(requests)
            s.run()
            for i, (one, all_) in enumerate(zip(t.results, wide.results)):
                if all_.shape == one.shape:
                    continue  # it does not depend on the input
                for request in range(3):
                    np.testing.assert_array_equal(s[i][request], alone[request][i])
        self.assertRaises(healcl.Error, wide.widen, 0, [0])

    @both
    def test_views_outlive_the_next_run_and_the_session(self, device):
        t = healcl.load(transcript("modular.json"))
        s = t.session(device)
        self.assertRaises(healcl.StateError, s.view, 0)
        s.run()
        view = s.view(0)
        expected = view.copy()
        s[0] = t.inputs[0].data + 1
        s.run()
        self.assertIs(s.view(0), view)
        np.testing.assert_array_equal(view, s[0])
        s[0] = None
        s.run()
        np.testing.assert_array_equal(view, expected)
        s.close()
        np.testing.assert_array_equal(view, expected)
        self.assertRaisesRegex(healcl.StateError, "closed", s.run)

    def test_shapes_dtypes_and_names_are_checked(self):
        t = healcl.load(transcript("modular.json"))
        info = t.inputs[0]
        with t.session(healcl.reference) as s:
            for dtype, word in ((np.uint64, "uint64"), (np.float64, "float64"), (bool, "bool")):
                with self.assertRaisesRegex(healcl.DtypeError, word):
                    s[0] = np.zeros(info.shape, dtype)
            with self.assertRaises(healcl.DtypeError):
                s[0] = np.zeros(info.shape, np.int8)
            with self.assertRaisesRegex(healcl.ShapeError, "has the shape"):
                s[0] = np.zeros((3, *info.shape), info.dtype)
            with self.assertRaisesRegex(healcl.ShapeError, "C order"):
                s[0] = np.zeros((*info.shape, 2), info.dtype)[..., 0]
            for name in ("nothing", 10**6):
                with self.assertRaises(KeyError):
                    s[name] = 1
            self.assertRaises(healcl.StateError, s.read, 0)
            s.run()
            self.assertRaises(healcl.ShapeError, s.read, 0, out=np.zeros(3, np.int64))
            fixed = s[0]
            fixed.flags.writeable = False
            self.assertRaisesRegex(healcl.ShapeError, "writable", s.read, 0, out=fixed)

    @both
    def test_segments_run_alone(self, device):
        t = healcl.load(transcript("recognizer.json"))
        with t.session(device) as s:
            for number, name in enumerate(t.segments):
                if name:
                    s.run(name)
                else:
                    s.run(number, 1)
            self.assertEqual(s.compare(0), 0)
            self.assertRaises(KeyError, s.run, "no such segment")

    @both
    def test_runs_in_the_background(self, device):
        t = healcl.load(transcript("encrypted_sharpen.json.gz"))
        with t.session(device) as s:
            self.assertRaises(healcl.StateError, s.wait)
            s.start()
            self.assertRaises(healcl.StateError, s.start)
            self.assertRaises(healcl.StateError, s.run)
            self.assertRaises(healcl.StateError, s.read, 0)
            s.wait()
            self.assertTrue(s.poll())
            self.assertEqual(s.compare(0), 0)
            s.start()
            s.cancel()
            self.assertRaises(healcl.CancelledError, s.wait)
            s.run()
            self.assertEqual(s.compare(0), 0)

    @both
    def test_inputs_are_kept_or_not(self, device):
        with healcl.load(transcript("modular.json")).session(device) as s:
            def uploaded():
                s.run()
                return s.facts["bytes_uploaded"]
            uploaded()
            kept, name = uploaded(), s.transcript.inputs[0].name
            s.keep(name, False)
            self.assertEqual(uploaded(), kept + s.transcript.inputs[0].bytes)
            s.keep(0, True)
            uploaded()
            self.assertEqual(uploaded(), kept)
            self.assertRaises(KeyError, s.keep, "nothing", True)

    def test_a_file_that_was_cut_is_refused(self):
        done = python(SETUP + """
import shutil, tempfile
with tempfile.TemporaryDirectory() as folder:
    for device in (dev, healcl.reference):
        path = shutil.copy(support.transcript("modular.json"), folder)
        t = healcl.load(path)
        s, ran = t.session(device), t.session(device)
        ran.run()
        os.truncate(path, 0)
        for call in (lambda: t.run(device), lambda: t.run(device, verify=False), s.run,
                     lambda: t.inputs[0].data, lambda: t.results[0].data,
                     lambda: ran.compare(0), lambda: t.widen(2, [0]).session(device).run()):
            try:
                call()
            except healcl.FileError as error:
                assert "it has 0 bytes" in str(error)
            else:
                print("not told")
""")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_ctrl_c_cancels(self):
        done = python(SETUP + """
import signal, threading
t = healcl.load(support.transcript("encrypted_sharpen.json.gz"))
for device in (healcl.reference, dev):
    with t.session(device) as s:
        s.run()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                s.run()
        except KeyboardInterrupt:
            print("interrupted")
        s.run()
        assert s.compare(0) == 0
""")
        self.assertEqual(done.stdout, "interrupted\n" * 2, done.stderr)

    def test_an_interrupt_at_any_line_leaves_nothing_running(self):
        with healcl.load(transcript("recognizer.json")).session(device()) as s:
            # the first three lines of wait() come before its try
            for call, first in (s.run, 0), (s.start, 0), (s.wait, 3):
                for line in itertools.count(first):
                    if call == s.wait:
                        s.start()
                    if not interrupted(call, line):
                        break
                    if call == s.start:  # which may have come to its end
                        with contextlib.suppress(healcl.StateError, healcl.CancelledError):
                            s.wait()
                    s.run()
                    self.assertEqual(s.compare(0), 0)
                self.assertGreater(line, first + 5)
                if call == s.start:
                    s.wait()

    @both
    def test_audits(self, device):
        t = healcl.load(transcript("recognizer.json"))
        if device is healcl.reference:
            self.assertRaises(healcl.Error, t.session, device, audit_share=0.5)
            return
        with t.session(device, audit_share=0.5) as s:
            while s.facts["runs"] < 50 and not s.audit["audits"]:
                s.run()
            self.assertGreater(s.audit["audits"], 0)
            self.assertTrue(s.audit["kernels"])
            self.assertIsNone(s.audit["difference"])
