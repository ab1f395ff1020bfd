#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what bench.sh says, on a program whose times are known.

    test_bench.py
"""
import os
import sys
import tempfile
import unittest

import bench

FAKE = """#!%s -IS
import sys
runs = "[2000000, 1000000, 9000000]" if "--reference" not in sys.argv else "[70000000]"
print('{"runs_ns": ' + runs + ', "device": {"platform": "P", "driver": "1.0", "tuned": true,'
      ' "tuned_by": "healcl tune"}}')
"""


class BenchTable(unittest.TestCase):
    def test_transcripts_and_markdown(self):
        with tempfile.TemporaryDirectory(prefix="healcl-test-") as folder:
            program = os.path.join(folder, "healcl")
            with open(program, "w", encoding="utf-8") as file:
                file.write(FAKE % sys.executable)
            os.chmod(program, 0o755)
            measured = bench.Bench(program, 1)
            measured.transcript("small", "transcript.json")
            measured.row("cold", 3.25, "s", 5)
            measured.row("cold, the slowest", 4.5, "s", detail=True)
            measured.row("decoding", 3243.3, "MB/s", 400, at_least=True)
            on = {"processor": "Some CPU", "cores": 2, "device": bench.device_of(program)}
        self.assertEqual(bench.markdown(on, measured.rows), """\
Some CPU, 2 cores; P, driver 1.0, tuned by healcl tune.

| | measured | promised |
|---|---|---|
| small, a run | 2 ms | |
| small, on the reference, a run | 70 ms | |
| cold | 3.25 s | at most 5 s |
| decoding | 3243 MB/s | at least 400 MB/s |""")


if __name__ == "__main__":
    unittest.main()
