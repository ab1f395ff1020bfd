#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels widen an int to a long by the macros of cl/base/base.h alone, which some devices need
(WIDEN_BY_SHIFT, docs/DRIVERS.md). Clang's unoptimized code has each other widening as a `sext`, or as
a call of convert_long.

    widening.py [CLANG]

Exits with 77, skipped, where there is no clang.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPACES = "LOCAL_SIZE=1", "LOCAL_SIZE=64 AXES=4 NARROW THIN", "LOCAL_SIZE=1 AXES=4 NARROW SINGLE"
GPU = SPACES[1:2]
TRANSFORM = ("OUT=int IN=int WORD_BITS=32 LIMIT=4 LOG2_N=8 STAGES=8 LOG2_E=3 LOG2_LANES=1 LOG2_ROWS=0 "
             "LOAD_FIRST=0 STORE_FIRST=0 PIECES=1 INVERSE=1 COLUMNS=0 TOGETHER=0 PERMUTED=1 FROM_PASS=0 "
             "FOR_PASS=0 IN_ORDER=1 OUT_ORDER=1")
ITEMS = "A_ROWS=2 B_ROWS=1"
PROGRAMS = (  # name, options of its own, options of spaces
    ("core", "", (*SPACES, "LOCAL_SIZE=64 AXES=1 NARROW THIN WIDE=4")),
    ("vectors", "MULTIPLY=0", SPACES[:1]),
    ("vectors", "MULTIPLY=1", SPACES[:1]),
    ("products", "MULTIPLY=0", SPACES[:1]),
    ("ntt/general", "", SPACES[:1]),
    ("ntt/rows", "WORD_BITS=32 INVERSE=1 ROW_TILES=0 INTERLEAVED=0 PERMUTED=1", SPACES[:1]),
    ("ntt/registers", TRANSFORM, GPU),
    ("ntt/single", "OUT=int IN=int LOG2_N=8", SPACES[2:]),
    ("copy/lines", "", SPACES[:1]),
    ("copy/tiles", "", SPACES[:1]),
    ("copy/local", "", GPU),
    ("sum/local", "SUMMED", GPU),
    ("sum/items", "BITS=62 " + ITEMS, GPU),
    ("sum/items", "BITS=63 TURNED " + ITEMS, GPU),
    ("modular/repeated", "", GPU),
    ("digits/digits", "A=int A_UNSIGNED=uint", SPACES),
    ("digits/digits", "A=int A_UNSIGNED=uint LIMBS=3", SPACES),
    ("digits/digits", "A=int A_UNSIGNED=uint LIMBS=3 IN_LOCAL", GPU),
    ("gather/gather", "INDEX=int", SPACES),
)


def compiled(clang, name, options, folder):
    """LLVM's code of a program, with the lines that it comes from."""
    source = Path(folder) / "program.cl"
    source.write_text('#include "base/base.h"\n#include "base/arithmetic.h"\n#include "%s.cl"\n' % name)
    defines = ["-D" + macro for macro in ("WIDEN_BY_SHIFT COPY_SPACE ELEMENT=int "
                                          "ELEMENT_UNSIGNED=uint " + options).split()]
    return subprocess.run(
        [clang, "-x", "cl", "-cl-std=CL1.2", "-O0", "-g", "-w", "-S", "-emit-llvm", "-o", "-",
         "-target", "spir64-unknown-unknown", "-Xclang", "-finclude-default-header", "-Xclang",
         "-cl-ext=+cl_khr_fp64", *defines, "-I", str(ROOT / "cl"), str(source)],
        stdout=subprocess.PIPE, text=True, check=True).stdout


def widenings(code):
    """The functions and lines of code where an int with a sign becomes a long. A truth value, which C
    makes an int of, has none."""
    lines = dict(re.findall(r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+)", code, re.M))
    for function in re.split(r"^(?=define )", code, flags=re.M)[1:]:
        truths = set(re.findall(r"(%\w+) = zext i1 ", function))
        name = re.search(r"@(\w+)", function)[1]
        for value, place in re.findall(r"sext (?:<\d+ x )?i32>? (%\w+) to .*i64.*!dbg (!\d+)", function):
            if value not in truths:
                yield name, lines[place]
        for place in re.findall(r"call .*@_Z\d+convert_u?long\d+Dv\d+_i\(.*!dbg (!\d+)", function):
            yield name, lines[place]


def main():
    clang = sys.argv[1] if len(sys.argv) > 1 else shutil.which("clang-15") or shutil.which("clang")
    if not clang:
        print("no clang here: skipped")
        return 77
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        for name, options, spaces in PROGRAMS:
            for space in spaces:
                code = compiled(clang, name, options + " " + space, folder)
                found |= {(name, *at) for at in widenings(code)}
    for name, function, line in sorted(found):
        print("cl/%s.cl: %s widens an int without WIDEN, line %s of its file" % (name, function, line))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
