#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that both libraries export the functions that include/healcl.h declares, and nothing else;
and that the shared one has nothing that only the program calls.

    exports.py NM SHARED STATIC
"""
import re
import subprocess
import sys
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include/healcl.h"


PROGRAMS = {"package_write", "process_run", "trace_create", "healcl_cl_base_lanes"}


def defined(nm, *arguments):
    lines = subprocess.run([nm, "--defined-only", *arguments], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return {fields[2] for fields in map(str.split, lines) if len(fields) == 3}


def main(nm, shared, static):
    code = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    code = re.sub(r"^static inline .*?^}", "", code, flags=re.S | re.M)
    declared = set(re.findall(r"\b(healcl_\w+)\s*\((?!\*)", code))
    assert {"healcl_run", "healcl_version"} <= declared, declared
    for found in defined(nm, "-g", "-D", shared), defined(nm, "-g", static):
        assert found == declared, (sorted(found - declared), sorted(declared - found))
    there = defined(nm, shared)
    assert there > declared and not PROGRAMS & there, PROGRAMS & there


if __name__ == "__main__":
    main(*sys.argv[1:])
