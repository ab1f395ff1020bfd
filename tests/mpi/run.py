#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl-mpi run: transcripts on several ranks, split along axes, and splits that are refused.

    run.py HEALCL HEALCL-MPI MPIRUN [FILE...]

Each file, or a small choice of bundled ones, runs on 1 to 4 ranks; with HEALCL_TEST_ALL=1 along each
axis of each input. Ranks exchange as many bytes as healcl inspect reports. Exits with 77,
skipped, where there is no MPI.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from launch import Launcher  # noqa: E402
from share import IS_ALL  # noqa: E402

TRANSCRIPTS = HERE.parent.parent / "transcripts"
# A split with exchanges; one without, whose results are parts; and one that takes slices.
FILES = ("sentiment.json", "encrypted_digits_toy.json.gz", "payloads.json")


def inspect(healcl, path, ranks, *options):
    """-> the part of rank 0, or None where it is refused"""
    run = subprocess.run([healcl, "inspect", "--ranks", str(ranks), *options, "--json", "-", path],
                         capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["ranks"] if run.returncode == 0 else None


def check_run(healcl, launcher, path, ranks, options):
    """-> whether it was split"""
    part = inspect(healcl, path, ranks, *options)
    arguments = ("run", "--reference", "--json", "-", *options, path)
    if part is None:
        run = subprocess.run([healcl, "inspect", "--ranks", str(ranks), *options, path],
                             capture_output=True, text=True, check=False)
        words = run.stderr.strip().removeprefix("healcl: ").split(f"{path}: ")[-1]
        _, lines, _ = launcher.run((ranks, arguments), code=run.returncode)
        assert len(lines) == 1 and lines[0].endswith(words), (lines, words)
        return False
    out, lines, _ = launcher.run((ranks, arguments))
    report = json.loads(out)
    assert not lines and report["results_different"] == 0, (lines, report)
    assert report["exchanges"] == part["exchanges"]
    for rank in report["ranks"]:
        assert rank["bytes_sent"] == rank["bytes_foreseen"], rank
    assert report["ranks"][0]["bytes_sent"] == part["each"]["bytes_sent"]
    assert report["ranks"][0]["tensor_bytes"] == part["each"]["device_memory_peak"]
    return True


def check_memory(healcl, launcher, path):
    """A rank has room only for its part."""
    part = inspect(healcl, path, 2)
    most = part["each"]["device_memory_peak"]
    assert most < part["alone"]["device_memory_peak"]
    arguments = "run", "--reference", "-q", "--memory-limit"
    launcher.run((2, (*arguments, str(most), path)))
    _, lines, _ = launcher.run((2, (*arguments, str(most - 1), path)), code=3)
    assert len(lines) == 1 and f"takes {most} bytes, above the limit of {most - 1}" in lines[0], lines


def axes_of(healcl, path):
    part = inspect(healcl, path, 1)
    for tensor in part["inputs"]:
        for axis in range(tensor["rank"]):
            yield f"{tensor['entry']}:{axis}"


def check_file(healcl, launcher, path):
    splits = 0
    for ranks in (1, 2, 3, 4) if IS_ALL else (2, 3):
        splits += check_run(healcl, launcher, path, ranks, ())
        for axis in axes_of(healcl, path) if IS_ALL else ():
            splits += check_run(healcl, launcher, path, ranks, ("--split", axis))
    print(f"{path.name}: {splits} splits", flush=True)


def main(healcl, program, mpirun, *files):
    if not program or not mpirun:
        print("MPI is missing: there is no healcl-mpi to be tested")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(Path(program).resolve(), mpirun, folder)
        check_memory(healcl, launcher, TRANSCRIPTS / FILES[0])
        for path in files or [TRANSCRIPTS / name for name in FILES]:
            check_file(healcl, launcher, Path(path).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
