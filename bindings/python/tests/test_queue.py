# SPDX-License-Identifier: Apache-2.0
import doctest
import inspect
import operator
import os
import pydoc
import tempfile
import threading
import unittest
import weakref
from unittest import mock

import numpy as np

import healcl
from healcl import fhe
from healcl._native import lib
from support import SETUP, both, device, python, transcript


class Calls(unittest.TestCase):
    @both
    def test_tensors_are_as_numpy_s(self, dev):
        x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        with dev.queue() as q:
            a = q.array(x)
            self.assertEqual((a.shape, a.dtype, a.ndim, a.size, a.nbytes, len(a)),
                             ((2, 3, 4), np.int32, 3, 24, 96, 2))
            for index in (0, -1, (1, 2), (Ellipsis, 1), slice(None, None, 2), np.int64(1),
                          (slice(0, 1), Ellipsis, slice(1, 3)), (1, -1, -2), slice(1, 3)):
                np.testing.assert_array_equal(np.asarray(a[index]), x[index])
            self.assertEqual(q.array(7).item(), 7)
            self.assertEqual((np.shape(a), np.ndim(a), np.size(a)), ((2, 3, 4), 3, 24))
            self.assertIs(a.device, dev)
            self.assertEqual(np.asarray(a, dtype=np.float64).dtype, np.float64)
            out = np.empty_like(x)
            self.assertIs(a.read(out=out), out)
            np.testing.assert_array_equal(out, x)
            for bad in ((9, 0), None, "x", 1.5, a, [0, 1], x > 3, slice(1.0, 3), slice([1], 3)):
                with self.assertRaises(healcl.Error):
                    a[bad]
            for bad in (2, np.int64(-3)):
                with self.assertRaises(IndexError):
                    a[bad]
            self.assertRaises(ValueError, a.__array__, copy=False)

    def test_what_would_copy_unseen_is_refused(self):
        x = np.arange(6).reshape(2, 3)
        with healcl.reference.queue() as q, tempfile.TemporaryDirectory() as folder, \
                healcl.record(os.path.join(folder, "t.json"), "reference") as recorder:
            for a in q.array(x), recorder.host_to_device(x):
                for word, work in (
                        ("'=='", lambda: a == a), ("'!='", lambda: a != None),
                        ("'<'", lambda: a < 3), ("'in'", lambda: 3 in a),
                        ("bool", lambda: not a), ("int", lambda: int(a)),
                        ("float().*item", lambda: float(a)), ("iteration", lambda: list(a)),
                        ("'[+]'.*modsum", lambda: a + a), ("'[*]'.*modmul", lambda: 3 * a),
                        ("'-'.*modneg", lambda: -a), ("abs", lambda: abs(a)),
                        ("'-'.*modsum", lambda: operator.isub(a, 1)), ("'//'", lambda: a // 2),
                        ("np.add.*modsum", lambda: np.add(a, a)), ("np.add", lambda: x + a),
                        ("(np.equal|'==')", lambda: x == a), ("np.less", lambda: x[0, 0] < a),
                        ("np.multiply.*modmul", lambda: np.int64(3) * a),
                        ("np.sum", lambda: np.sum(a)), ("np.linalg", lambda: np.linalg.norm(a)),
                        ("np.concatenate", lambda: np.concatenate([x, a]))):
                    with self.subTest(word), self.assertRaisesRegex(
                            TypeError, "^healcl.%s does not support %s" % (type(a).__name__, word)):
                        work()
                for name, word in (("tolist", "asarray"), ("T", "asarray"), ("cpu", "asarray"),
                                   ("reshape", "ops.reshape"), ("other", "'other'")):
                    self.assertRaisesRegex(AttributeError, word, getattr, a, name)
                self.assertEqual({a: 1}[a], 1)
                np.testing.assert_array_equal(np.array([a, a]), [x, x])

    @both
    def test_a_repr_shows_the_values(self, dev):
        with dev.queue() as q:
            a, end = q.array([[1, 20, 3], [4, 5, 6]], np.int32), ", device='%s')" % dev.selector
            for tensor, text in (
                    (a, "[[ 1, 20,  3],\n               [ 4,  5,  6]], shape=(2, 3), dtype=int32"),
                    (a[:, ::2], "[[1, 3],\n               [4, 6]], shape=(2, 2), dtype=int32"),
                    (a[0, 1], "20, shape=(), dtype=int32"),
                    (q.zeros((0, 3)), "[], shape=(0, 3), dtype=int64"),
                    (q.zeros((9, 999)), "shape=(9, 999), dtype=int64")):
                self.assertEqual(repr(tensor), "healcl.Tensor(" + text + end)
            a.release()
            self.assertEqual(repr(a), "healcl.Tensor(<released>" + end)
            b = q.array([1])
            with q._handle.lock, mock.patch("healcl._calls._PATIENCE", 0.01):
                texts = []
                thread = threading.Thread(target=lambda: texts.append(repr(b)))
                thread.start()
                thread.join()
            self.assertEqual(texts, ["healcl.Tensor(<in use by another thread>" + end])
            with mock.patch("healcl._calls._PATIENCE", 0):
                self.assertIn("<not computed yet>, shape=(1,)", repr(b))
        self.assertIn("<the queue is closed>, shape=(1,), dtype=int64", repr(b))

    def test_a_repr_leaves_errors_to_the_next_wait(self):
        with device().queue() as q:
            a, index = q.array([1, 2, 3]), q.array([0, 1, 9])
            for wait in q.wait, a.read:
                b = q.ops.take_along_axis(a, index, 0, q.zeros(3))
                for _ in range(2):
                    self.assertRegex(repr(b), r"<call \d+ \(take_along_axis.*>, shape=\(3,\)")
                self.assertRaises(healcl.DataError, wait)
                self.assertEqual(a.read().tolist(), [1, 2, 3])

    @both
    def test_writing_into_tensors_and_views(self, dev):
        x = np.arange(12, dtype=np.int64).reshape(3, 4)
        with dev.queue() as q:
            a = q.array(x)
            a[1] = [5, 6, 7, 8]
            a[:, 2] = 9
            a[2] = a[0]
            x[1] = [5, 6, 7, 8]
            x[:, 2] = 9
            x[2] = x[0]
            np.testing.assert_array_equal(np.asarray(a), x)
            a[...] = x.T.copy().T + 1
            np.testing.assert_array_equal(np.asarray(a), x + 1)
            with dev.queue() as other:
                a[...] = other.array(x)
            np.testing.assert_array_equal(np.asarray(a), x)
            small = q.zeros((2,), np.int8)
            with self.assertRaises(healcl.DtypeError):
                small[...] = [1, 1000]
            with self.assertRaises(ValueError):
                a[0] = [1, 2, 3]

    def test_arrays_of_all_kinds(self):
        with healcl.reference.queue() as q:
            for value in (np.arange(6).reshape(2, 3).T, np.arange(10)[::3], np.int8(3), [[1], [2]],
                          np.zeros((0, 3), np.int32), np.arange(3, dtype=np.int32)[::-1],
                          np.arange(3, dtype=">i8")):
                np.testing.assert_array_equal(np.asarray(q.array(value)), value)
            self.assertEqual(q.array([1, 2], np.int8).dtype, np.int8)
            self.assertEqual(q.zeros((2, 3), "int32").dtype, np.int32)
            for value, word in ((np.zeros(2, np.uint64), "uint64"), ([1.5], "float64"),
                                ([True], "bool"), (["x"], "U1"), (np.zeros(2, np.int16), "int16")):
                self.assertRaisesRegex(healcl.DtypeError, word, q.array, value)
            self.assertRaises(healcl.DtypeError, q.array, [300], np.int8)
            self.assertRaises(healcl.DtypeError, q.zeros, 3, np.uint64)
            self.assertRaises(healcl.Error, q.zeros, (2, -1))

    def test_operations_tell_their_forms(self):
        with healcl.reference.queue() as q:
            text = pydoc.plain(pydoc.render_doc(q.ops.ntt))
            self.assertIn("ntt(a, ring=None, out=None, *, axis=-1,", text)
            self.assertEqual(text.count("    ntt(a, "), 3)
            self.assertIn("_modmul_ttt"[1:], dir(q.ops))
            self.assertNotIn("host_to_device", dir(q.ops))
            with self.assertRaisesRegex(healcl.OperationError, "use queue.array"):
                q.ops._host_to_device
            with self.assertRaisesRegex(healcl.OperationError, r"'modmull': the nearest of \d+ are "
                                        "'modmul', '.*', '.*'$"):
                q.ops.modmull
            self.assertFalse(hasattr(q.ops, "__wrapped__"))

    @both
    def test_every_operation_has_an_example(self, dev):
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
        with dev.queue() as q:
            for name in dir(q.ops):
                example = parser.get_doctest(getattr(q.ops, name).__doc__,
                                             {"q": q, "fhe": fhe, "np": np}, name, None, 0)
                self.assertEqual(tuple(runner.run(example)), (0, 1), name)

    @both
    def test_calls_by_keywords(self, dev):
        with dev.queue() as q:
            a = q.array([[1, 2], [3, 4]])
            out = q.empty_like(a)
            self.assertIs(q.ops.modmul(out=out, p=7, b=a, a=a), out)
            self.assertEqual(out.read().tolist(), [[1, 4], [2, 2]])
            self.assertEqual(q.ops.modmul(a, a, 7, None).read().tolist(), [[1, 4], [2, 2]])
            self.assertEqual(q.ops.moveaxis(a, from_=0, to=1).read().tolist(), [[1, 3], [2, 4]])
            rows = q.array([[1, 0], [0, 1]])
            swapped = q.ops.permute(a, rows, 0, 1)
            self.assertEqual(swapped.read().tolist(), [[2, 1], [3, 4]])
            self.assertIs(q.ops.permute(a, rows, out, 0, 1), out)  # a form of HEAL's, in its order
            self.assertEqual(out.read().tolist(), swapped.read().tolist())
            first = str(inspect.signature(q.ops.permute))
            self.assertEqual(first, "(a, perms, elementwise_axis, perm_axis, *, out=None)")

    @both
    def test_transforms_by_a_ring(self, dev):
        ring = fhe.Ring(8, [17, 97])
        x = np.arange(16).reshape(1, 1, 2, 8)
        with dev.queue() as q:
            a, q_, psi = q.array(x), q.array([17, 97]), q.array(ring.psi_table)
            perm = q.array(ring.bit_reversal)
            y = q.ops.ntt(a, ring)
            np.testing.assert_array_equal(y.read()[0, 0], fhe.ntt(x[0, 0] % [[17], [97]], ring))
            np.testing.assert_array_equal(q.ops.ntt(a, q=q_, psi=psi).read(), y.read())
            natural = q.ops.ntt(a, ring, perm=perm)
            np.testing.assert_array_equal(natural.read(), y.read()[..., ring.bit_reversal])
            for back in q.ops.intt(y, ring, q.empty_like(a)), q.ops.intt(natural, ring, perm=perm):
                np.testing.assert_array_equal(back.read(), x % [[17], [97]])
            tiled = q.ops.ntt(a[:, :, :1], ring, tile=True, axis=3)
            self.assertEqual(tiled.shape, (1, 1, 2, 8))
            turned = q.array(x.transpose(0, 3, 1, 2))
            np.testing.assert_array_equal(q.ops.ntt(turned, ring, axis=-3).read(),
                                          y.read().transpose(0, 3, 1, 2))
            for call, words in ((lambda: q.ops.ntt(a), "missing a ring, or q and psi"),
                                (lambda: q.ops.intt(a, q=q_), "or ipsi and n_inv"),
                                (lambda: q.ops.ntt(a, ring, psi=psi), "a ring and psi exclude"),
                                (lambda: q.ops.ntt(a, [17]), "a healcl.fhe.Ring, not list")):
                self.assertRaisesRegex(TypeError, words, call)

    def test_a_queue_goes_with_its_last_name(self):
        q = healcl.reference.queue()
        q.ops.ntt(q.zeros((1, 1, 1, 4)), fhe.Ring(4, [17]))
        handle = weakref.ref(q._handle)
        del q
        self.assertIsNone(handle())

    def test_wrong_signatures_are_named(self):
        with healcl.reference.queue() as q:
            a = q.array([1, 2, 3])
            for call, words in (
                    (lambda: q.ops.modmul(a, a), "modmul: missing .*'p'; it takes .a, b, p, out"),
                    (lambda: q.ops.modmul(a, a, q=7), "missing .*'p'"),
                    (lambda: q.ops.modmul(a, a, 7, mod=7), "unexpected keyword argument 'mod'"),
                    (lambda: q.ops.modmul(a, a, 7, a=a), "multiple values for argument 'a'"),
                    (lambda: q.ops.abs(a, a, a), "too many positional"),
                    (lambda: q.ops.set_const_val(v=3), "missing .*'a'")):
                with self.assertRaisesRegex(TypeError, words) as caught:
                    call()
                self.assertIsInstance(caught.exception, healcl.SignatureError)
                self.assertTrue(caught.exception.operation)
            with self.assertRaisesRegex(healcl.ArgumentError, "'a': must be a tensor to write"):
                q.ops.set_const_val(None, 3)

    @both
    def test_arguments_of_other_kinds(self, dev):
        with dev.queue() as q:
            a = q.array([[1, 2, 3], [4, 5, 6]])
            out = q.empty_like(a)
            q.ops._modmul_ttc(a, a, np.int32(7), out)
            self.assertEqual(out.read().tolist(), [[1, 4, 2], [2, 4, 1]])
            self.assertEqual(q.ops.reshape(a, 6).shape, (6,))
            self.assertEqual(q.ops.reshape(a, [3, -1]).shape, (3, 2))
            self.assertEqual(q.ops.moveaxis(a, 0, 1).shape, (3, 2))
            self.assertEqual(q.ops.zeros((2, 2), np.dtype("int8")).dtype, np.int8)

    @both
    def test_what_is_refused_names_operation_and_argument(self, dev):
        with dev.queue() as q, dev.queue() as other:
            a, b = q.array([1, 2, 3]), q.array([1, 2])
            with self.assertRaises(healcl.ShapeError) as caught:
                q.ops.modmul(a, b, 97, a)
            self.assertEqual((caught.exception.operation, caught.exception.argument),
                             ("modmul", 1))
            self.assertIsInstance(caught.exception.entry, int)
            self.assertRaises(healcl.DtypeError, q.ops.modmul, a, a, 97, q.zeros(3, np.int32))
            self.assertRaises(healcl.ArgumentError, q.ops.modmul, a, a, 0, a)
            for value, error in ((1.5, healcl.DtypeError), (2**70, healcl.DtypeError),
                                 (np.arange(3), healcl.ArgumentError), ("x", healcl.ArgumentError),
                                 (other.array([1, 2, 3]), healcl.ArgumentError)):
                with self.assertRaises(error) as caught:
                    q.ops.modmul(a, value, 97, a)
                self.assertEqual((caught.exception.operation, caught.exception.argument),
                                 ("modmul", 1))
            self.assertEqual(a.read().tolist(), [1, 2, 3])

    @both
    def test_what_data_reveal_comes_with_a_wait(self, dev):
        with dev.queue() as q:
            a, index = q.array([1, 2, 3]), q.array([0, 1, 9])
            with self.assertRaises(healcl.DataError) as caught:
                q.ops.take_along_axis(a, index, 0, q.zeros(3))  # the reference does not put it off
                q.wait()
            self.assertEqual(caught.exception.operation, "take_along_axis")
            self.assertEqual(caught.exception.argument, 1)
            q.wait()
        with dev.queue(synchronous=True) as q:
            a, index = q.array([1, 2, 3]), q.array([0, 1, 9])
            self.assertRaises(healcl.DataError, q.ops.take_along_axis, a, index, 0, q.zeros(3))

    def test_a_closed_queue_says_so(self):
        q = healcl.reference.queue()
        a = q.array([1, 2])
        shape = a.shape
        q.close()
        self.assertEqual(a.shape, shape)
        for call in (lambda: q.array([1]), lambda: a.read(), lambda: q.ops.abs(a, a), q.wait,
                     lambda: a[0]):
            self.assertRaisesRegex(healcl.StateError, "the queue is closed", call)
        with healcl.reference.queue() as other:
            self.assertRaises(healcl.ArgumentError, other.ops.abs, a, a)

    def test_a_released_tensor_is_refused(self):
        with healcl.reference.queue() as q:
            a = q.array([1, 2])
            a.release()
            a.release()
            self.assertRaises(healcl.Error, q.ops.abs, a, a)
            self.assertRaises(healcl.Error, a.read)

    def test_ctrl_c_comes_through_whatever_waits(self):
        """While the device is behind: so it has not been waited for."""
        done = python(SETUP + """
import numpy as np, signal, time
from healcl._native import lib
x = np.arange(1 << 20)
q = dev.queue()
a, o = q.array(x), q.zeros(x.shape)
square = lambda: q.ops.modmul(a, a, 1000003, o)
def call_on():
    while True:
        square()
def drop_on():
    while True:
        q.ops.modmul(a[:4096], a[:4096], 97)
def assign():
    o[...] = x
def is_busy_when_interrupted(wait, calls):
    for _ in range(calls):
        square()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        wait()
        time.sleep(1)
    except KeyboardInterrupt:
        return not lib.healcl_queue_poll(q._handle.pointer)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for wait in (lambda: np.asarray(o), o[-1].item, assign, o.read, q.wait, lambda: o[::2].read(),
             call_on, drop_on):
    calls = 100
    while not is_busy_when_interrupted(wait, calls):
        calls *= 2
        assert calls < 1000
q.wait()
assert (square().read() == x * x % 1000003).all()
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @both
    def test_a_cancelled_wait_ends(self, dev):
        ring = fhe.Ring(1 << 14, [65537, 163841])
        with dev.queue() as q:
            a, out = q.zeros((64, 1, 2, 1 << 14)), q.empty((64, 1, 2, 1 << 14))
            q.ops.ntt(a, ring, out).read()
            timer = threading.Timer(0.05, q.cancel)
            with self.assertRaises(healcl.CancelledError):
                timer.start()
                for _ in range(100):
                    q.ops.ntt(a, ring, out)
                q.wait()
            timer.join()
            if dev is not healcl.reference:
                self.assertFalse(lib.healcl_queue_poll(q._handle.pointer))
            self.assertEqual(q.ops.set_const_val(out[:1, :, :, :2], 3).read().tolist(),
                             [[[[3, 3], [3, 3]]]])

    def test_misuse_raises_the_package_s_errors(self):
        t, engine = healcl.load(transcript("names.json")), healcl.heal_engine("reference")
        s, q, ragged = t.session("reference"), healcl.reference.queue(), [[1], [1, 2]]
        a = q.array([1, 2, 3])
        for wrong in "\ud800", 1.5, ragged, "\0":
            for call in (healcl.load, healcl.open, healcl.Operations, q.array, q.empty_like,
                         engine.host_to_device, engine.device_to_host, engine.free_device_tensor,
                         lambda each: healcl.load(b"", passes=each), t.session,
                         lambda each: healcl.open("pocl", package=each), t.run, a.read, s.run,
                         lambda each: t.run("reference", inputs={0: each}), s.read,
                         lambda each: t.session("reference", audit_share=[each]),
                         lambda each: q.zeros(2, each), q.ops.abs, q.ops.reshape,
                         lambda each: healcl.reference.queue(expand=each),
                         lambda each: healcl.heal_engine("reference", expand=each),
                         lambda each: a.__setitem__(0, each), lambda each: s.keep(each, True),
                         lambda each: a.__setitem__(..., [[1], [2]]), lambda each: a[each],
                         lambda each: getattr(q.ops, ""), lambda each: t.widen(each, [0])):
                with self.subTest(wrong=wrong), self.assertRaises(healcl.Error):
                    call(wrong)
        self.assertNotIn(int, s.inputs)
        self.assertEqual(t.run("reference", profile=3).verified, t.run("reference").verified)
        q.close()
        s.close()
        t.close()
        for call in (a.item, lambda: a[0], lambda: a.__setitem__(0, a), q.wait, s.run, s.start,
                     s.wait, lambda: s.facts, lambda: s.audit, lambda: s[0], lambda: s.view(0),
                     lambda: s.keep(0, True), lambda: dict(s.outputs), lambda: t.run("reference"),
                     lambda: t.inputs[0].data, lambda: t.widen(2, [0]), lambda: q.fallbacks,
                     lambda: t.session("reference")):
            self.assertRaises(healcl.StateError, call)
        q.cancel()
        s.cancel()

    @both
    def test_strides_are_as_numpy_s(self, dev):
        x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        with dev.queue() as q:
            a = q.array(x)
            for index in (Ellipsis, (Ellipsis, slice(None, None, 2)), 1, (slice(None), 2)):
                self.assertEqual(a[index].strides, x[index].strides)
            self.assertEqual(q.ops.moveaxis(a, 0, 2).strides, np.moveaxis(x, 0, 2).strides)
            self.assertEqual(q.ops.expand(a[:, :1], 1, 5).strides, (48, 0, 4))
        self.assertEqual(a.strides, x.strides)
        a.release()
        self.assertRaises(healcl.StateError, lambda: a.strides)


class Torch(unittest.TestCase):
    def test_what_looks_like_torch(self):
        class Tensor:
            def __init__(self, array):
                self.array = array

            def detach(self):
                return self

            cpu = detach

            def numpy(self):
                return self.array

        module = mock.Mock(Tensor=Tensor, from_numpy=Tensor)
        with mock.patch.dict("sys.modules", torch=module), healcl.reference.queue() as q:
            a = q.array(Tensor(np.arange(3)))
            self.assertIsInstance(a.torch(), Tensor)
            out = Tensor(np.zeros(3, np.int64))
            self.assertIs(a.read(out=out), out)
            self.assertEqual(out.array.tolist(), [0, 1, 2])
            engine = healcl.heal_engine(healcl.reference)
            self.assertIsInstance(engine.device_to_host(engine.host_to_device(out)), Tensor)
            self.assertIsInstance(engine.device_to_host(engine.host_to_device(out.array)),
                                  np.ndarray)
