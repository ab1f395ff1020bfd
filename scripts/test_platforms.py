#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that platforms.py fails where a platform is missing, cannot be used or is wrong, with a program
in the place of healcl that says so."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HEALCL = """#!{python}
import json, sys
here, arguments = {here!r}, sys.argv[1:]
reports = json.load(open(here + "/reports"))
if arguments[0] == "compare":
    path = arguments[arguments.index("--results") + 1]
    import os
    os.makedirs(path)
    open(path + "/device.json", "w").write(json.dumps(reports["compare"]))
else:
    open(arguments[arguments.index("--json") + 1], "w").write(json.dumps(reports[arguments[0]]))
sys.exit(reports.get("exit", dict()).get(arguments[0], 0))
"""
DEVICE = {"index": "0:0", "platform": "Oclgrind", "usable": True, "self_test": "passed", "driver": "1"}


def reports(*devices, right=5, calls=9, failed=0, **more):
    runs = [{"outcome": "verified" if i < right else "different"} for i in range(5)]
    return {"devices": {"devices": devices}, "check": {"calls": calls, "failed": failed},
            "compare": {"title": "it", "compare": {"date": "2026", "driver": "1", "runs": runs}}, **more}


class Platforms(unittest.TestCase):
    def run_with(self, said):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "healcl"
            program.write_text(HEALCL.format(python=sys.executable, here=folder))
            program.chmod(0o755)
            (Path(folder) / "reports").write_text(json.dumps(said))
            done = subprocess.run([sys.executable, "-B", Path(__file__).with_name("platforms.py"),
                                   "--healcl", program, "--results", folder, "oclgrind"],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, os.path.exists(f"{folder}/oclgrind.json")

    def test_right(self):
        code, said, is_written = self.run_with(reports(DEVICE))
        self.assertIn("5/5 transcripts, 9/9 calls of modsum", said)
        self.assertEqual((code, is_written), (0, True))

    def test_failures(self):
        for said, what in ((reports(), "does not list it"),
                           (reports({**DEVICE, "usable": False, "unusable_because": "no"}), "no"),
                           (reports({**DEVICE, "self_test": "failed", "self_test_failure": "bad"}), "bad"),
                           (reports(DEVICE, right=4, exit={"compare": 1}), "4/5 transcripts"),
                           (reports(DEVICE, failed=2, exit={"check": 1}), "7/9 calls"),
                           (reports(DEVICE, exit={"check": 124}), "is not done within")):
            with self.subTest(what):
                code, said, is_written = self.run_with(said)
                self.assertEqual((code, is_written), (1, False))
                self.assertIn(what, said)
                self.assertIn("FAILED", said)


if __name__ == "__main__":
    unittest.main()
