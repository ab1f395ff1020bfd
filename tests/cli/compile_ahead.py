#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiling ahead of a run: the process leaves kernels in the driver's cache, and a cold run that has
one beside it ends well.

    compile_ahead.py HEALCL

Exits with 77, skipped, where there is no PoCL.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
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


def run_plan(folder):
    """-> the report, the programs of kernels that ran, and the names of all spans"""
    report = json.loads(run(folder, "run", "--device", "pocl", "--json", "-", "--trace",
                            f"{folder}/trace", str(PLAN)).stdout)
    spans = json.loads((Path(folder) / "trace").read_text())["traceEvents"]
    used = {(span["args"]["program"], span["args"]["options"]) for span in spans
            if span.get("cat") == "kernel"}
    assert report["verified"], report
    assert report["programs_built"] + report["programs_loaded"] == len(used), (report, used)
    return report, [span["name"] for span in spans]


def kill_builders(folder, killed):
    """Kills processes that build programs of a run with that folder, until killed has an end."""
    while not killed[-1:] == [None]:
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
                if (words[1:2] == [b"compile-ahead"] and words[3] != b"--" and
                        folder.encode() in (place / "environ").read_bytes()):
                    os.kill(int(place.name), signal.SIGKILL)
                    killed.insert(0, place.name)
            except (OSError, IndexError):
                pass
        time.sleep(0.005)


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
            report, _ = run_plan(folder)
            assert report["programs_loaded"] == 0, report
            peaks.append(report["device_memory_peak"])
    assert peaks[0] == peaks[1], peaks
    if os.cpu_count() < 2:
        return 0
    # Where binaries are kept, child processes build most, from before the self-test on; none is
    # started for what they have left, and one that ends early is no loss.
    os.environ["HEALCL_KEEP_BINARIES"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        report, spans = run_plan(folder)
        assert report["programs_loaded"] > 0, report
        assert spans.index("start processes") < spans.index("self-test"), spans
        report, spans = run_plan(folder)
        assert report["programs_built"] == 0 and "start processes" not in spans, report
        tested, = Path(folder, "own").glob("selftest_*")
        passed = tested.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "own").mkdir()
        Path(folder, "own", tested.name).write_bytes(passed)
        killed = []
        killer = threading.Thread(target=kill_builders, args=(folder, killed))
        killer.start()
        try:
            report, spans = run_plan(folder)
        finally:
            killed.append(None)
            killer.join()
        assert len(killed) > 1 and "self-test" not in spans, (killed, spans)
        assert "start processes" in spans, spans
        assert report["programs_loaded"] == 0, report
    return 0


if __name__ == "__main__":
    sys.exit(main())
