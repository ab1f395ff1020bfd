# SPDX-License-Identifier: Apache-2.0
import inspect
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from unittest import mock

import healcl
from healcl import fhe
from support import CLONE, device, python, transcript


class Devices(unittest.TestCase):
    def test_devices_are_listed_and_opened(self):
        dev = device()
        selectors = [info.selector for info in healcl.devices()]
        self.assertIn(dev.info.selector, selectors)
        self.assertIn(dev.info.type, ("cpu", "gpu", "acc", "other"))
        self.assertIn(dev.info.name, repr(dev))

    def test_the_reference_is_a_device(self):
        self.assertIsNone(healcl.reference.info)
        self.assertEqual(repr(healcl.reference), "healcl.reference")
        self.assertIs(healcl.open("reference"), healcl.reference)
        with mock.patch.dict(os.environ, HEALCL_DEVICE="reference"):
            self.assertIs(healcl.open(), healcl.reference)
        with self.assertRaisesRegex(healcl.ArgumentError, "does not take a package"):
            healcl.open("reference", package="p")

    def test_a_closed_device_says_so(self):
        device()
        dev = healcl.open(device().info.selector)
        queue = dev.queue()
        dev.close()
        self.assertRaisesRegex(healcl.StateError, "the device is closed", dev.queue)
        self.assertEqual(queue.array([5]).item(), 5)  # it lives on

    def check_documented(self, name, thing):
        doc = inspect.getdoc(thing)
        with self.subTest(name):
            self.assertTrue(doc)
            new = set(re.findall("[a-z]+", doc.lower())) - {"a", "an", "the", "of", "its", "is"}
            self.assertTrue(new - set(re.findall("[a-z]+", name.lower())), "says what it is called")

    def test_all_that_is_public_is_documented(self):
        for module in healcl, fhe:
            self.assertEqual(set(module.__all__), {
                name for name, thing in vars(module).items()
                if name[0] != "_" and not inspect.ismodule(thing)})
            for name in module.__all__:
                thing = getattr(module, name)
                self.check_documented(name, thing)
                for each, member in inspect.getmembers(thing) if inspect.isclass(thing) else ():
                    if each[0] != "_" and (callable(member) or isinstance(member, property)):
                        self.check_documented(name + "." + each, member)

    def test_what_the_host_runs_is_told(self):
        selector = device().selector
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "p")
            subprocess.run([sys.executable, "-m", "healcl", "compile", "-d", selector, "-o",
                            package, transcript("nothing.json")], check=True, capture_output=True)
            lacking = healcl.open(selector, package=package)
            t = healcl.load(transcript("modular.json"))
            report = t.run(lacking)
            self.assertTrue(report.verified)
            self.assertRegex(str(report), r"fallbacks: the host ran \d+ steps, the first of modmul: "
                             "program .* is not in ")
            self.assertEqual(sum(each["fallbacks"] for each in report.operations),
                             report.facts["fallbacks"])
            with t.session(lacking) as s, lacking.queue() as q:
                s.run()
                self.assertEqual(s.facts["fallbacks"], report.facts["fallbacks"])
                q.ops.abs(q.array([1, -2]))
                self.assertEqual(q.fallbacks, 1)
            with device().queue() as q:
                q.ops.abs(q.array([1, -2]))
                self.assertEqual(q.fallbacks, 0)
            with self.assertRaises(healcl.DeviceError):
                t.run(healcl.open(selector, package=package, fallback=False))

    def test_types(self):
        """The package's, and what a program that uses all of it sees of them."""
        try:
            import mypy
        except ImportError:
            self.skipTest("mypy is not installed")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
             os.path.join(sys.prefix, "mypy"), "src/healcl", "tests/typed_program.py"],
            capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": "src"},
            cwd=os.path.join(CLONE, "bindings", "python"))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_the_version_is_the_library_s(self):
        with open(os.path.join(CLONE, "CMakeLists.txt"), encoding="utf-8") as file:
            self.assertIn("VERSION %s " % healcl.__version__, file.read())
        with open(os.path.join(CLONE, "bindings/python/pyproject.toml"), encoding="utf-8") as file:
            self.assertEqual(re.search('^version = "(.*?)"', file.read(), re.M).group(1),
                             healcl.__version__)

    def test_the_reference_works_without_an_opencl_loader(self):
        path = transcript("ntt.json")
        done = python("""
import healcl, sys
print(healcl.load(sys.argv[1]).run(healcl.reference).verified)
for call in (healcl.open, healcl.devices):
    try:
        call()
    except healcl.DeviceError as error:
        print("/no/such/loader.so" in str(error))
""", path, env={**os.environ, "HEALCL_OPENCL_LIBRARY": "/no/such/loader.so"})
        self.assertEqual((done.stdout, done.stderr), ("True\nTrue\nTrue\n", ""))

    def test_the_command_line(self):
        script = os.path.join(sysconfig.get_path("scripts"), "healcl")
        for command in [sys.executable, "-m", "healcl"], [script]:
            done = subprocess.run([*command, "run", "-d", "reference", "seal_multiply.json.gz"],
                                  stdout=subprocess.PIPE, text=True, check=True)
            self.assertIn("verified: 5 of 5 results", done.stdout)

    def test_importing_opens_nothing(self):
        done = python("import sys, healcl\nassert 'torch' not in sys.modules\n"
                      "from healcl import _handle\nassert not _handle._opencl_used")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
