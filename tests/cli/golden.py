#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the command lines of a case file and compares what they print with what stands there.

    golden.py HEALCL CASE [--update]

A case file is read like a terminal:

    # a comment
    $ healcl run --reference transcripts/nothing.json
    transcript  transcripts/nothing.json
    ...
    2> healcl: a line on standard error
    [3]

A line "$ COMMAND" is run by sh in the project's folder, with healcl on its PATH and $TMP an empty
folder; below it stand its standard output, its standard error behind "2> ", and its exit code in
brackets where it is not 0. What differs from run to run is masked on the way: times, and the
names and sizes of devices and memory. --update writes what was printed into the file.
A case that needs a device says so ("# needs a device"): where there is one, $HEALCL_DEVICE names it
(tests/devices.py), else it exits with 77, skipped.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402

MASKS = [
    (re.compile(r" +\d[\d.]* (ns|us|ms|s)\b"), "  <time>"),
    (re.compile(r" +\d[\d.]* %"), "  <share>"),
    (re.compile(r'("(?:time|compute|profiled|compile|first_launch|self_test|first_result|open_device|open_transcript|verify|total)_ns":\s*)\d+'), r"\1<time>"),
    (re.compile(r'("(?:runs|decode|transfer|compute)_ns":\s*\[)[^\]]*'), r"\1<times>"),
    (re.compile(r"above the limit of \d+$"), "above the limit of <host>"),
    (re.compile(r"^(device      )(?!host reference).*"), r"\1<device>"),
    (re.compile(r"^(driver      ).*"), r"\1<driver>"),
    (re.compile(r"^(commit      ).*"), r"\1<commit>"),
    (re.compile(r"healcl \d+\.\d+\.\d+"), "healcl <version>"),
    (re.compile(r'("healcl":\s*)"\d+\.\d+\.\d+"'), r'\1"<version>"'),
    (re.compile(r"\[(?:\.\./)*src/(\S+):\d+\]"), r"[src/\1:<line>]"),
]
# The width of a column of times depends on the times.
TIMED = re.compile(r"<time>|^segment .* time$|^operation .* time|^(transcript|device) .* compute |  refused  ")


def mask(line, temporary):
    line = line.replace(temporary, "$TMP")
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    if TIMED.search(line):
        line = re.sub(r" {2,}", "  ", line)
    return line


def run_command(command, healcl, folder, temporary):
    binaries = Path(folder) / "bin"
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("NO_COLOR", "POSIXLY_CORRECT")}
    environment.update(PATH=f"{binaries}:{environment['PATH']}", TMP=temporary, TERM="xterm")
    run = subprocess.run(["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True,
                         stdin=subprocess.DEVNULL)
    lines = [mask(line, temporary) for line in run.stdout.decode(errors="replace").splitlines()]
    lines += ["2> " + mask(line, temporary)
              for line in run.stderr.decode(errors="replace").splitlines()]
    if run.returncode:
        lines.append(f"[{run.returncode}]")
    return lines


def replay(text, healcl):
    """The case file as it would read if everything printed now were expected."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bin").mkdir()
        (Path(folder) / "bin/healcl").symlink_to(Path(healcl).resolve())
        temporary = f"{folder}/tmp"
        Path(temporary).mkdir()
        lines = []
        for line in text.splitlines():
            if line.startswith("$ "):
                lines.append(line)
                lines += run_command(line[2:], healcl, folder, temporary)
                lines.append("")
            elif line.startswith("#"):
                lines.append(line)
        return "\n".join(lines).rstrip("\n") + "\n"


def without_blank_lines(text):
    return [line for line in text.splitlines() if line]


def main():
    update = "--update" in sys.argv
    healcl, case = [argument for argument in sys.argv[1:] if argument != "--update"]
    text = Path(case).read_text()
    os.environ.pop("HEALCL_DEVICE", None)
    if "# needs a device" in text and not use_device(healcl):
        print("no device")
        return 77
    printed = replay(text, healcl)
    if update:
        Path(case).write_text(printed)
        return 0
    expected, actual = without_blank_lines(text), without_blank_lines(printed)
    for line in difflib.unified_diff(expected, actual, case, "printed now", lineterm=""):
        print(line)
    return 0 if expected == actual else 1


if __name__ == "__main__":
    sys.exit(main())
