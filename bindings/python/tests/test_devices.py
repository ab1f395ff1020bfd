# SPDX-License-Identifier: Apache-2.0
import inspect
import os
import re
import subprocess
import sys
import sysconfig
import unittest
from unittest import mock

import healcl
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
        with self.assertRaisesRegex(healcl.ArgumentError, "no package"):
            healcl.open("reference", package="p")

    def test_a_closed_device_says_so(self):
        device()
        dev = healcl.open(device().info.selector)
        queue = dev.queue()
        dev.close()
        with self.assertRaisesRegex(healcl.StateError, "the device is closed"):
            dev.queue()
        self.assertEqual(queue.array([5]).item(), 5)  # it lives on

    def test_all_that_is_public_is_documented(self):
        for name in healcl.__all__:
            thing = getattr(healcl, name)
            with self.subTest(name):
                self.assertTrue(inspect.getdoc(thing) or not callable(thing))
            for each, member in vars(thing).items() if inspect.isclass(thing) else ():
                if not each.startswith("_") and callable(member):
                    with self.subTest(name + "." + each):
                        self.assertTrue(inspect.getdoc(member))

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


if __name__ == "__main__":
    unittest.main()
