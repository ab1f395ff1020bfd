#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the manual pages have every command and option, and that man can read them.

    manual.py HEALCL healcl.1 healcl.3
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout


def main(healcl, program, library):
    page = Path(program).read_text()
    commands = re.findall(r"^  (\w+) +[a-z]", output(healcl, "--help"), re.M)
    sections = dict(re.findall(r"^\.SS healcl (\w+)\n((?:(?!\.S[SH]).*\n)*)", page, re.M))
    assert "run" in commands and list(sections) == commands, (list(sections), commands)
    for command in commands:
        options = re.findall(r"^ +(-.*?)  ", output(healcl, command, "--help"), re.M)
        headings = re.findall(r"^\.TP\n\.B (.*)\n(?=\w)", sections[command].replace("\\", ""), re.M)
        assert options and headings == options, (command, headings, options)
    if not shutil.which("groff"):
        print("there is no groff: the pages were not read by it")
        return
    for path, name in (program, "--fail-slower PERCENT"), (library, " healcl_device_open(const char"):
        text = output("groff", "-man", "-ww", "-Tascii", "-P-cbou", path)
        assert name in text, (path, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
