#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands where memory runs out, by each way that leads to an allocation: one line and exit code 4, or
the usual end; and the next run is right. tests/faulty_program.c has them run.

    out_of_memory.py HEALCL FAULTY_PROGRAM

Of the ways it takes a share (tests/share.py).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from devices import use_device  # noqa: E402
from share import IS_ALL, SEED  # noqa: E402

PLAIN = "transcripts/plain.json"
ON_HOST = [
    f"inspect --passes --steps --json @/inspect.json {PLAIN}",
    "inspect --steps --ranks 2 transcripts/sentiment.json",
    "inspect --json - --max-device-memory 60K transcripts/sentiment.json",
    f"run --reference -v --json @/run.json --junit @/run.xml {PLAIN}",
    f"run --reference --json - --passes none {PLAIN}",
    f"run --reference --requests 3 {PLAIN}",
    f"run --reference --dump @/dump --trace @/trace.json {PLAIN}",
    "run --reference transcripts/recognizer.json",
    "run --reference transcripts/sentiment.json",
    "run --reference transcripts/gather.json",
    "run --reference transcripts/payloads.json",
    "ops --json -",
]
ON_DEVICE = [
    "devices --no-self-test --json -",
    f"run {PLAIN}",
    f"run --passes none --max-device-memory 1K {PLAIN}",
    f"run --requests 2 --audit 100% {PLAIN}",
    f"run --package @/package.zip {PLAIN}",
    f"compile -o @/made.zip {PLAIN}",
    f"diagnose --json - {PLAIN}",
    "check --quick --op abs",
]
SHARE_ON_DEVICE = 1 if IS_ALL else 47
SHARE_ON_HOST = 1 if IS_ALL else 7


def run(faulty, share, command, folder):
    """Returns whether all of its runs ended as they should."""
    words = command.replace("@", folder).split()
    done = subprocess.run([faulty, str(share), str(SEED), *words], capture_output=True, text=True,
                          check=False, cwd=ROOT)
    print(f"{command}\n{done.stdout}{done.stderr}", end="", flush=True)
    return done.returncode == 0


def main(healcl, faulty):
    healcl, faulty = os.path.abspath(healcl), os.path.abspath(faulty)
    with tempfile.TemporaryDirectory(prefix="healcl-memory-") as folder:
        os.environ |= {"HEALCL_CACHE_DIR": f"{folder}/cache", "HEALCL_COMPILE_AHEAD": "0"}
        right = [run(faulty, SHARE_ON_HOST, command, folder) for command in ON_HOST]
        if use_device(healcl):
            subprocess.run([healcl, "compile", "-o", f"{folder}/package.zip", PLAIN], check=True,
                           stdout=subprocess.DEVNULL, cwd=ROOT)
            right += [run(faulty, SHARE_ON_DEVICE, command, folder) for command in ON_DEVICE]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
