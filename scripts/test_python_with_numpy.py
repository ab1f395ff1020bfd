#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that need NumPy run where the first python3 has none, if another one has.

    test_python_with_numpy.py
"""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import python_with_numpy

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
# Tests import NumPy only to use it, so their help is as good as a run.
NEED_NUMPY = ["check_answers.py", "heal_oracle.py", "make_transcripts.py", "test_additions.py",
              "test_fhe.py", "test_heal_oracle.py"]


class WithoutNumpy(unittest.TestCase):
    def setUp(self):
        """A folder whose python3 sees no installed packages."""
        self.python = python_with_numpy.find()
        if not self.python:
            self.skipTest("no python3 here has NumPy")
        folder = tempfile.TemporaryDirectory(prefix="healcl-python-")
        self.addCleanup(folder.cleanup)
        self.first = os.path.join(folder.name, "python3")
        with open(self.first, "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\nexec '%s' -S \"$@\"\n" % sys.executable)
        os.chmod(self.first, 0o755)
        others = [os.path.dirname(self.python), *os.get_exec_path()]
        self.environment = {**os.environ, "PATH": os.pathsep.join([folder.name, *others]),
                            "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment.pop("PYTHONPATH", None)

    def run_script(self, *arguments):
        return subprocess.run([*arguments], env=self.environment, capture_output=True, text=True,
                              check=False)

    def test_the_first_python_has_none(self):
        self.assertNotEqual(self.run_script("python3", "-c", "import numpy").returncode, 0)

    def test_scripts_run(self):
        for name in NEED_NUMPY:
            with self.subTest(name):
                ran = self.run_script(os.path.join(SCRIPTS, name), "--help")
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertIn(name, ran.stdout)

    def test_arguments_and_exit_codes_arrive(self):
        path = os.path.join(SCRIPTS, "heal_oracle.py")
        good = os.path.join(SCRIPTS, "..", "transcripts", "nothing.json")
        bad = os.path.join(SCRIPTS, "..", "tests", "bad", "differs_in_last_value.json")
        for transcript in (good, bad):
            expected = subprocess.run([self.python, "-B", path, transcript], capture_output=True,
                                      text=True, check=False)
            ran = self.run_script(path, transcript)
            self.assertEqual((ran.returncode, ran.stderr), (expected.returncode, expected.stderr))
        self.assertNotEqual(ran.returncode, 0)

    def test_no_python_has_any(self):
        environment = {**self.environment, "PATH": os.path.dirname(self.first)}
        code = ("import sys, python_with_numpy\n"
                "python_with_numpy.has_numpy = lambda python: False\n"
                "sys.modules['__main__'].__file__ = '/some/where/script.py'\n"
                "python_with_numpy.require()\n")
        ran = subprocess.run([self.first, "-B", "-c", code], cwd=SCRIPTS, env=environment,
                             capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(ran.stderr, "script.py: no python3 here has NumPy: install package "
                                     "python3-numpy (scripts/setup.sh --demo does)\n")

    def test_every_script_is_known(self):
        """What calls require() is tested, but for what makes models and data sets."""
        calling = set()
        for path in glob.glob(os.path.join(SCRIPTS, "*.py")):
            with open(path, encoding="utf-8") as text:
                if "\npython_with_numpy.require()\n" in text.read():
                    calling.add(os.path.basename(path))
        self.assertEqual(calling - {"train_models.py", "extract_datasets.py"}, set(NEED_NUMPY))


if __name__ == "__main__":
    unittest.main()
