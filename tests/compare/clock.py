#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the times of a comparison against an outside clock: this process's, around the same run.

    clock.py HEALCL

What the report says of a process is to be what this clock says, and the parts that it tells of
(start-up, reading, building, runs) are to be all of it, within 5 %. Runs are many, so that what lies
between them would show. A busy machine gets three tries.
"""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 0.05


def measure(healcl, device, report):
    begin = time.monotonic_ns()
    subprocess.run([healcl, "compare", "--no-measure", "-d", device, "--repeat", "4000", "--json",
                    report, "transcripts/recognizer.json"],
                   cwd=ROOT, stdout=subprocess.DEVNULL, check=True, timeout=500)
    outside = time.monotonic_ns() - begin
    run, = json.loads(Path(report).read_text())["runs"]
    parts = sum(run["samples_ns"]) + sum(run["profile"]["runs_ns"]) + sum(run[f"{part}_ns"] for part in
                                         ("open_device", "open_transcript", "compile"))
    print(f"{run['device']}: outside {outside / 1e9:.3f} s, process {run['process_ns'] / 1e9:.3f} s,"
          f" parts {parts / 1e9:.3f} s")
    return 1 - TOLERANCE <= run["process_ns"] / outside <= 1 and \
        1 - TOLERANCE <= parts / run["process_ns"] <= 1


def main():
    healcl = sys.argv[1]
    has_device = subprocess.run([healcl, "devices"], capture_output=True).returncode != 4
    with tempfile.TemporaryDirectory(prefix="healcl-clock-") as folder:
        for device in ["reference"] + [""] * has_device:
            assert any(measure(healcl, device, f"{folder}/out.json") for _ in range(3)), device
    return 0


if __name__ == "__main__":
    sys.exit(main())
