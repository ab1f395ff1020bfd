# SPDX-License-Identifier: Apache-2.0
import unittest

import numpy as np

import healcl
from support import SETUP, both, python, transcript


def first_input(t):
    """The data that the file has for its first input is not at hand: some of its own."""
    info = t.inputs[0]
    return np.arange(np.prod(info.shape), dtype=info.dtype).reshape(info.shape)


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

    @both
    def test_inputs_are_bound_without_a_copy(self, device):
        t = healcl.load(transcript("modular.json"))
        array = first_input(t)
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
        requests = [first_input(t) + i for i in range(3)]
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
        with self.assertRaises(healcl.Error):
            wide.widen(0, [0])

    @both
    def test_views_outlive_the_next_run_and_the_session(self, device):
        t = healcl.load(transcript("modular.json"))
        s = t.session(device)
        with self.assertRaises(healcl.StateError):
            s.view(0)
        s.run()
        view = s.view(0)
        expected = view.copy()
        s[0] = first_input(t)
        s.run()
        self.assertIs(s.view(0), view)
        np.testing.assert_array_equal(view, s[0])
        s[0] = None
        s.run()
        np.testing.assert_array_equal(view, expected)
        s.close()
        np.testing.assert_array_equal(view, expected)
        with self.assertRaisesRegex(healcl.StateError, "closed"):
            s.run()

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
            with self.assertRaises(healcl.StateError):
                s.read(0)
            s.run()
            with self.assertRaises(healcl.ShapeError):
                s.read(0, out=np.zeros(3, np.int64))
            fixed = s[0]
            fixed.flags.writeable = False
            with self.assertRaisesRegex(healcl.ShapeError, "written"):
                s.read(0, out=fixed)

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
            with self.assertRaises(KeyError):
                s.run("no such segment")

    @both
    def test_runs_in_the_background(self, device):
        t = healcl.load(transcript("encrypted_sharpen.json.gz"))
        with t.session(device) as s:
            with self.assertRaises(healcl.StateError):
                s.wait()
            s.start()
            with self.assertRaises(healcl.StateError):
                s.start()
            with self.assertRaises(healcl.StateError):
                s.read(0)
            s.wait()
            self.assertTrue(s.poll())
            self.assertEqual(s.compare(0), 0)
            s.start()
            s.cancel()
            with self.assertRaises(healcl.CancelledError):
                s.wait()
            s.run()
            self.assertEqual(s.compare(0), 0)

    def test_ctrl_c_cancels(self):
        done = python(SETUP + """
import signal, threading
t = healcl.load(support.transcript("encrypted_sharpen.json.gz"))
for device in (healcl.reference, dev):
    with t.session(device) as s:
        s.run()
        for call in (s.run, lambda: (s.start(), s.wait())):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    call()
            except KeyboardInterrupt:
                print("interrupted")
            s.run()
            assert s.compare(0) == 0
""")
        self.assertEqual(done.stdout, "interrupted\n" * 4, done.stderr)

    @both
    def test_audits(self, device):
        t = healcl.load(transcript("recognizer.json"))
        if device is healcl.reference:
            with self.assertRaises(healcl.Error):
                t.session(device, audit_share=0.5)
            return
        with t.session(device, audit_share=0.5) as s:
            for _ in range(100):  # half of one short run may not be enough for an audit
                s.run()
            self.assertGreater(s.audit["audits"], 0)
            self.assertTrue(s.audit["kernels"])
            self.assertIsNone(s.audit["difference"])


if __name__ == "__main__":
    unittest.main()
