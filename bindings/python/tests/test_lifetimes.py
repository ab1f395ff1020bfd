# SPDX-License-Identifier: Apache-2.0
"""Threads, finalizers, exits, forks, and memory that is to stay flat. HEALCL_TEST_SECONDS says how
long the tests with threads take, HEALCL_TEST_ALL=1 has them repeat as often as is promised."""
import copy
import gc
import itertools
import os
import pickle
import random
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import healcl
from support import CLONE, SETUP, both, device, python, transcript

SECONDS = float(os.environ.get("HEALCL_TEST_SECONDS", 1))
VENDORS = os.path.join(CLONE, "examples", "extensions")
ALL = os.environ.get("HEALCL_TEST_ALL") == "1"


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Threads(unittest.TestCase):
    @both
    def test_tensors_are_dropped_while_another_thread_is_in_a_call(self, dev):
        errors, dropped, ended = [], [], threading.Event()

        def drop():
            while not ended.is_set() or dropped:
                if dropped:
                    dropped.pop()
                else:
                    time.sleep(0)

        thread = threading.Thread(target=drop)
        thread.start()
        until = time.monotonic() + SECONDS
        try:
            with dev.queue() as q:
                a, p = q.array(np.arange(64)), q.array([97])
                expected = (np.arange(64) ** 2 % 97).tolist()
                while time.monotonic() < until:
                    for _ in range(50):
                        b = q.empty_like(a)
                        q.ops.modmul(a, a, p, b)
                        dropped.append(b[::2])
                        dropped.append(b)
                    self.assertEqual(b.read().tolist(), expected)
                    del b
        finally:
            ended.set()
            thread.join()
        self.assertEqual(errors, [])

    @both
    def test_things_are_closed_while_threads_use_them(self, dev):
        t = healcl.load(transcript("recognizer.json"))
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            s, q, errors = t.session(dev), dev.queue(), []
            a = q.array(np.arange(10))

            def work(call):
                try:
                    while True:
                        call()
                except (healcl.StateError, healcl.CancelledError):
                    pass
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(call,)) for call in (
                s.run, lambda: s[0], lambda: q.ops.abs(a, a), lambda: a[1:].read())]
            s.run()
            for thread in threads:
                thread.start()
            time.sleep(random.random() * 0.02)
            s.close()
            q.close()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])

class Exits(unittest.TestCase):
    def test_exits_with_everything_alive_in_any_order(self):
        program = SETUP + r"""
import sys, threading
device = dev if sys.argv[1] == "device" else healcl.reference
make = {"t": 't = healcl.load(support.transcript("recognizer.json"))',
        "s": 's = healcl.load(support.transcript("recognizer.json")).session(device); s.run()',
        "b": 'b = healcl.load(support.transcript("encrypted_sharpen.json.gz")).session(device); '
             'b.start()',
        "q": 'q = device.queue(); a = q.array([1, 2, 3]); v = a[1:]; q.ops.abs(a, a)',
        "e": 'e = healcl.heal_engine(device); w = e.host_to_device([1]); e.me = e',
        "d": 'def forever():\n    q = device.queue(); a = q.array(list(range(1000)))\n'
             '    while True:\n        q.ops.modmul(a, a, 97, a); a.read()\n'
             'd = threading.Thread(target=forever, daemon=True); d.start()'}
for name, work in (("r", "t.run(device)"), ("i", "t.inputs[-1].data; t.results[0].data"),
                   ("l", "healcl.load(support.transcript('recognizer.json'))"),
                   ("v", "t.session(device).run()")):
    make[name] = ("t = healcl.load(support.transcript('recognizer.json'))\n"
                  "def forever():\n    while True:\n        %s\n"
                  "threading.Thread(target=forever, daemon=True).start(); "
                  "threading.Event().wait(0.1)" % work)
for what in sys.argv[2]:
    exec(make[what])
for name in sys.argv[3]:
    globals().pop(name, None)
print("end")
"""
        orders = ["".join(order) for order in itertools.permutations("tsbqe")] if ALL else \
            ["tsbqe", "eqbst", "bsqet", "qsteb"]
        threads = ["d", "dqs", *"rilv" * (6 if ALL else 1)]
        cases = list(itertools.product([*orders, *threads], ("device", "reference")))
        with ThreadPoolExecutor(4) as pool:
            ends = pool.map(lambda case: python(
                program, case[1], case[0], "" if case[0] in threads else case[0][::2]), cases)
        for (order, where), done in zip(cases, ends):
            with self.subTest(order=order, where=where):
                self.assertEqual((done.returncode, done.stdout), (0, "end\n"))
                if done.stderr:  # of a thread that goes on while all is closed
                    self.assertIn(order, threads)
                    self.assertRegex(done.stderr, "^Exception in thread")

    def test_ctrl_c_ends_a_process_while_the_device_works(self):
        at_exit = ("q = dev.queue(); work(q, False); signal.setitimer(signal.ITIMER_REAL, 0.1);"
                   "signal.signal(signal.SIGALRM, signal.default_int_handler)")
        for line in ("with dev.queue() as q: work(q, True)", "q = dev.queue(); work(q, True)", at_exit):
            with self.subTest(line):
                done = python("""
import atexit, os, signal, sys
def last():
    print("busy" if not lib.healcl_queue_poll(pointer) else "done", flush=True)
atexit.register(last)
""" + SETUP + """
import numpy as np
from healcl._native import lib
def work(q, is_interrupted):
    global pointer
    pointer, a = q._handle.pointer, q.array(np.arange(1 << 20))
    o = q.empty_like(a)
    for _ in range(1000):
        q.ops.modmul(a, a, 1000003, o)
    if is_interrupted:
        signal.raise_signal(2)
""" + line)
                self.assertEqual(done.returncode, -2, done.stderr)
                self.assertEqual(done.stdout, "" if line == at_exit else "busy\n")

    def test_a_forked_process_is_told(self):
        done = python(SETUP + """
import sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12's own, of forks beside threads
t = healcl.load(support.transcript("recognizer.json"))
s, q, r = t.session(dev), dev.queue(), t.session(healcl.reference)
a = q.array([1, 2, 3])
q.ops.abs(a, a)
s.run()
pid = os.fork()
if pid == 0:
    for call in (lambda: healcl.open(), healcl.devices, s.run, lambda: q.ops.abs(a, a), a.read,
                 lambda: t.run(dev), dev.queue, lambda: t.session(dev), lambda: a[0]):
        try:
            call()
            print("not told")
        except healcl.DeviceError as error:
            assert "forked" in str(error)
    assert "forked" in repr(a)
    assert t.run(healcl.reference).verified
    r.run()
    assert r.compare(0) == 0
    del a, q, s, t, r, dev
    print("child ends")
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
s.run()
assert s.compare(0) == 0 and a.read().tolist() == [1, 2, 3]
""")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "child ends\n", ""))

    def test_a_forked_process_leaves_what_another_thread_was_in(self):
        done = python("""
import healcl, os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
q, other = healcl.reference.queue(), healcl.reference.queue()
a, b = q.zeros(1 << 22), other.array([1, 2])
def work():
    while True:
        q.ops.set_const_val(a, 1)
threading.Thread(target=work, daemon=True).start()
while q._handle.lock.acquire(blocking=False):
    q._handle.lock.release()
pid = os.fork()
if pid == 0:
    try:
        q.wait()
    except healcl.StateError as error:
        assert "while another thread used the queue" in str(error)
        os._exit(b.read().tolist() != [1, 2])
assert os.waitpid(pid, 0)[1] == 0
""")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_process_forked_before_is_free_to_open(self):
        done = python("""
import multiprocessing, support
def work(_):
    q = support.device().queue()
    return q.array([1, 2, 3]).read().tolist()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(2)))
""")
        self.assertEqual(done.stdout, "[[1, 2, 3], [1, 2, 3]]\n", done.stderr)


class Copies(unittest.TestCase):
    def test_handles_are_neither_copied_nor_pickled(self):
        t = healcl.load(transcript("recognizer.json"))
        q, e = healcl.reference.queue(), healcl.heal_engine(healcl.reference)
        with tempfile.TemporaryDirectory() as folder:
            with healcl.record(os.path.join(folder, "t.json"), e) as r:
                things = [t, t.session(healcl.reference), q, q.array([1]), q.ops, e, r,
                          r.host_to_device([1]), device(), healcl.Operations(VENDORS)]
        for thing in things:
            for work in copy.copy, copy.deepcopy, pickle.dumps:
                with self.subTest(thing=thing, work=work), self.assertRaisesRegex(
                        TypeError, "^cannot copy or pickle '%s'" % type(thing).__name__):
                    work(thing)
        for work in copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)):
            self.assertIs(work(healcl.reference), healcl.reference)

class Memory(unittest.TestCase):
    @both
    def test_stays_flat(self, dev):
        """Runs of a session, calls, errors and handles: while allocators settle memory may grow."""
        t = healcl.load(transcript("modular.json"))
        array = np.zeros(t.inputs[0].shape, t.inputs[0].dtype)
        with t.session(dev) as s, dev.queue() as q:
            a = q.array(np.arange(16))

            def work():
                s[0] = array
                s.run()
                s.read(0)
                b = q.empty_like(a)
                q.ops.modmul(a, a, 97, b)
                q.ops.abs(b[::2], b[1::2])
                self.assertRaises(healcl.ShapeError, q.ops.abs, a, a[:2])
                with dev.queue() as other:
                    other.array([1])

            for settles in range(2):
                gc.collect()
                before = resident()
                for _ in range(5000 if ALL else 100):
                    work()
                gc.collect()
        self.assertLess(resident() - before, (4 if ALL else 2) << 20)
