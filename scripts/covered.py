#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests have covered, and what of it another run has not.

    HEALCL_COVERED=/tmp/before.txt ctest --preset test -R '^(unit|coverage)'
    scripts/covered.py /tmp/before.txt
    scripts/covered.py /tmp/before.txt /tmp/after.txt

Each launch of a kernel is a line of such a file (tests/unit/helper_covered.c). Said of it, each as a set:
operations and kinds of step with the dtypes of their operands and the kernel; layouts of each operand by
kernel and dtype; sizes by kernel; values of each option by kernel, and pairs of values. With two files the
exit code is 1 where the second one lacks something of the first one that is no pair of values."""
import itertools
import sys

SETS = ("operations", "dtypes", "layouts", "sizes", "options", "pairs")


def options_of(text):
    """{"LOCAL_SIZE": "64"} of "-D LOCAL_SIZE=64"."""
    options = {}
    for word in text.split():
        if word != "-D":
            name, _, value = word.partition("=")
            options[name] = value
    return options


def read(path):
    """The sets of a file."""
    sets = {name: set() for name in SETS}
    with open(path, encoding="utf-8") as file:
        for line in set(file):
            operation, kind, operands, size, program, kernel, options = line.rstrip("\n").split("\t")
            kernel = f"{program}:{kernel}"
            of_operands = [operand.split(":") for operand in operands.split()] if operands != "-" else []
            dtypes = " ".join(dtype for dtype, _ in of_operands)
            sets["operations"].add((operation, kind, kernel))
            sets["dtypes"].add((kind, dtypes, kernel))
            for dtype, layout in of_operands:
                sets["layouts"].add((kind, kernel, dtype, layout))
            sets["sizes"].add((kind, kernel, size))
            values = [f"{name}={value}" for name, value in sorted(options_of(options).items())]
            sets["options"].update((kernel, value) for value in values)
            sets["pairs"].update((kernel, *pair) for pair in itertools.combinations(values, 2))
    return sets


def main():
    """Counts, or differences."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    before = read(sys.argv[1])
    if len(sys.argv) == 2:
        for name in SETS:
            print(f"{name}: {len(before[name])}")
            for item in sorted(before[name]) if name != "pairs" else ():
                print("   ", ", ".join(item))
        return 0
    after = read(sys.argv[2])
    lost = 0
    for name in SETS:
        gone = before[name] - after[name]
        print(f"{name}: {len(before[name])} before, {len(after[name])} after, {len(gone)} gone, "
              f"{len(after[name] - before[name])} new")
        if name != "pairs":
            lost += len(gone)
            for item in sorted(gone):
                print("    gone:", ", ".join(item))
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
