#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completes command lines as bash does, and holds the manual page of each command to its help.

    completion.py HEALCL [FOLDER OF MANUAL PAGES]

Exits with 77, skipped, where there is no bash.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake/healcl.bash"
healcl = sys.argv[1]


def complete(*words):
    done = subprocess.run(
        ["bash", "-c", 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _healcl\n'
         "printf '%s\\n' \"${COMPREPLY[@]}\"", "bash", SCRIPT, healcl, *words],
        capture_output=True, text=True, check=True)
    assert not done.stderr, (words, done)
    return done.stdout.split()


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    if not shutil.which("bash"):
        print("no bash")
        return 77
    commands = re.findall(r"^  (\w+) +[a-z]", output(healcl, "--help"), re.M)
    assert complete("") == ["help", "--help", "--version", *commands] and "run" in commands
    assert complete("be") == ["bench"] and complete("run", "-d", "g") == ["gpu"]
    assert complete("run", "x") == []  # files: bash completes them
    for command in commands[:-1]:  # the last one, version, takes none
        options = re.findall(r"^(?:  -\w, |      )(--[a-z-]+)", output(healcl, command, "--help"), re.M)
        assert "--help" in options and complete(command, "--") == options, (command, options)
        for page in (Path(folder) / f"healcl-{command}.1" for folder in sys.argv[2:] if folder):
            text = page.read_text().replace("\\", "")
            assert all(option in text for option in options), (page, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
