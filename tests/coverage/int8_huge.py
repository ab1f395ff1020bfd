#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a transcript with more than 2^31 int8 elements.

usage: int8_huge.py HEALCL FOLDER
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = os.path.join(ROOT, "tests"), os.path.join(ROOT, "scripts")
from devices import use_device  # noqa: E402
from python_with_numpy import find  # noqa: E402

NEEDED_BYTES = 6 << 30
SKIPPED = 77


def available_bytes():
    """Memory that can be had without swapping, by Linux's own estimate; None if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return None


def main():
    healcl, folder = sys.argv[1:]
    use_device(healcl)
    python = find()
    if not python:
        print("SKIPPED: no Python with NumPy here (package python3-numpy)")
        return SKIPPED
    available = available_bytes()
    if available is None or available < NEEDED_BYTES:
        print("SKIPPED: not enough memory")
        return SKIPPED
    path = os.path.join(folder, "int8_huge.json")
    subprocess.run([python, "-B", os.path.join(ROOT, "scripts", "make_transcripts.py"),
                    "--int8-huge", path], check=True)
    status = subprocess.run([healcl, "run", "-q", path], check=False).returncode
    os.remove(path)
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
