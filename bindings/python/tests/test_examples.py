# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import CLONE, device, transcript


class Examples(unittest.TestCase):
    def run_example(self, name, *arguments, copied_to=None):
        transcript("recognizer.json")
        path = os.path.join(CLONE, "examples", "python", name)
        if copied_to:
            path = shutil.copy(path, copied_to)
        return subprocess.run([sys.executable, "-B", path, *arguments], capture_output=True,
                              text=True, timeout=300, check=False, cwd=copied_to)

    def test_an_encrypted_digit_is_recognized_and_plotted(self):
        device()
        with tempfile.TemporaryDirectory() as folder:  # the package has all that it needs
            path = os.path.join(folder, "digit.png")
            try:
                import matplotlib
                plot = ["--plot", path]
            except ImportError:
                plot = []
            done = self.run_example("encrypted_digit.py", "--device", device().info.selector, *plot,
                                    copied_to=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("recognized as 7, which it is", done.stdout)
            if not plot:
                self.skipTest("no matplotlib here: nothing was plotted")
            with open(path, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_seal_on_opencl(self):
        try:
            import tenseal
        except ImportError:
            self.skipTest("TenSEAL is not installed")
        done = self.run_example("seal_on_opencl.py", "--device", device().info.selector)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("186 of 190 patients right; equal to SEAL's to the last bit", done.stdout)

    def test_bootstrapping(self):
        done = self.run_example("bootstrapping.py", "--device", device().info.selector,
                                "--log2-n", "7")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"bootstrapped +level 3, (2[3-9]|3\d)\.\d bits")
        self.assertRegex(done.stdout, r"power 16 +level 2, (2[3-9]|3\d)\.\d bits")

    def test_several_devices(self):
        selector = device().info.selector
        done = self.run_example("several_devices.py", "--device", selector, "--device", "reference",
                                transcript("recognizer.json"), transcript("ntt.json"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()],
                         [[selector, "True"]] * 2 + [["reference", "True"]] * 2)
