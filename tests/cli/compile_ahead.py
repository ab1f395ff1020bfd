#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiling ahead of a run: the process leaves kernels in the driver's cache, and a cold run that has
one beside it ends well.

    compile_ahead.py HEALCL

Exits with 77, skipped, where there is no PoCL.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from share import COMPILE_FAST  # noqa: E402

FILE = ROOT / "transcripts/gather.json"
PLAN = ROOT / "transcripts/encrypted_hybrid_toy.json.gz"
healcl = sys.argv[1]


def compiled(folder):
    """Kernels that PoCL has compiled, by their places in its cache."""
    return {path.relative_to(folder) for path in Path(folder).rglob("*.so")}


def run(folder, *arguments):
    environment = dict(os.environ, POCL_CACHE_DIR=f"{folder}/pocl", HEALCL_CACHE_DIR=f"{folder}/own",
                       HEALCL_COMPILE_AHEAD="1")
    return subprocess.run([healcl, *arguments], env=environment, capture_output=True, text=True)


def main():
    if subprocess.run([healcl, "devices", "-d", "pocl"], capture_output=True).returncode:
        print("no PoCL")
        return 77
    assert subprocess.run([healcl, "compile-ahead"]).returncode == 2
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pocl", "own"):
            (Path(folder) / name).mkdir()
        missing = run(folder, "compile-ahead", "pocl", "--", "no such file")
        assert missing.returncode == 4, missing
        ahead = run(folder, "compile-ahead", "pocl", "--", str(FILE))
        assert ahead.returncode == 0, ahead
        before = compiled(folder)
        done = run(folder, "run", "--device", "pocl", str(FILE))
        assert done.returncode == 0 and "verified" in done.stdout, done
        # All kernels of the transcript's steps were there; checks that data ask for may be left.
        assert before and len(compiled(folder) - before) <= len(before) / 4, (
            len(before), compiled(folder) - before)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pocl", "own"):
            (Path(folder) / name).mkdir()
        cold = run(folder, "run", "--device", "pocl", str(FILE))
        assert cold.returncode == 0 and "verified" in cold.stdout, cold
    # All programs of a plan are built side by side; no other ones, and in no other memory.
    peaks = []
    for count in "1", "4":
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(COMPILE_FAST, HEALCL_AS="gpu",
                              HEALCL_TUNING=f"builds_at_once={count}")
            report = json.loads(run(folder, "run", "--device", "pocl", "--json", "-", "--trace",
                                    f"{folder}/trace", str(PLAN)).stdout)
            spans = json.loads((Path(folder) / "trace").read_text())["traceEvents"]
            used = {(span["args"]["program"], span["args"]["options"]) for span in spans
                    if span.get("cat") == "kernel"}
            assert report["verified"] and report["programs_built"] == len(used), (report, used)
            peaks.append(report["device_memory_peak"])
    assert peaks[0] == peaks[1], peaks
    return 0


if __name__ == "__main__":
    sys.exit(main())
