#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the times of a comparison against an outside clock: what the system says that it took.

    clock.py HEALCL CPU_CLOCK.so

What the report says of a process is to be what this clock says, and the parts that it tells of
(start-up, reading, building, runs) are to be all of it, within 5 %. Runs are many, so that what lies
between them would show. All clocks are of processor time (tests/cpu_clock.c), so that a busy machine
disturbs nothing.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
TOLERANCE = 0.05


def children_ns():
    """The processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def measure(healcl, clock, device, report):
    before = children_ns()
    subprocess.run([healcl, "compare", "--no-measure", "-d", device, "--repeat", "4000", "--json",
                    report, "transcripts/recognizer.json"],
                   cwd=ROOT, stdout=subprocess.DEVNULL, check=True,
                   env={**os.environ, "LD_PRELOAD": clock})
    outside = children_ns() - before
    run, = json.loads(Path(report).read_text())["runs"]
    parts = sum(run["samples_ns"]) + sum(run["profile"]["runs_ns"]) + sum(run[f"{part}_ns"] for part in
                                         ("open_device", "open_transcript", "compile"))
    print(f"{run['device']}: outside {outside / 1e9:.3f} s, process {run['process_ns'] / 1e9:.3f} s,"
          f" parts {parts / 1e9:.3f} s")
    return 1 - TOLERANCE <= run["process_ns"] / outside <= 1 and \
        1 - TOLERANCE <= parts / run["process_ns"] <= 1


def main():
    healcl, clock = sys.argv[1:]
    device = use_device(healcl)
    with tempfile.TemporaryDirectory(prefix="healcl-clock-") as folder:
        for name in ["reference"] + [device] * bool(device):
            # A driver's threads that wait take time of their own where the machine is busy.
            assert any(measure(healcl, clock, name, f"{folder}/out.json") for _ in range(3)), name
    return 0


if __name__ == "__main__":
    sys.exit(main())
