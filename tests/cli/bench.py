#!/usr/bin/env python3
"""Runs `healcl bench` for every operation on tiny sizes, in a share of every layout, dtype and kind of
values (tests/share.py), and checks that what it reports fits together. Times themselves are not
judged.

    bench.py HEALCL

Exits with 77, skipped, where there is no device.
"""
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from devices import use_device  # noqa: E402
from share import IS_ALL, fixed_share  # noqa: E402

SIZES = {"n": 16, "bits": 20, "batch": 3, "k": 2, "r": 3, "s": 5, "base-bits": 3}
CHOICES = {"layout": ["contiguous", "heal"], "dtype": ["int8", "int32", "int64"],
           "values": ["reduced", "any"], "perm": ["none", "reverse"]}
SHARE = 8
UNITS = {"butterfly", "element", "product", "byte"}


def bench(healcl, *arguments):
    return subprocess.run([healcl, "bench", "--repeat", "3", "--json", "-", *arguments],
                          capture_output=True, text=True, timeout=600)


def near(actual, expected):
    return math.isclose(actual, expected, rel_tol=1e-6)


def check_result(result):
    """Checks conditions of every result."""
    assert result["unit"] in UNITS, "unit"
    assert result["units"] > 0 and result["bytes"] > 0, "sizes"
    assert result["samples"] == 3 and result["launches"] >= 1, "samples"
    assert 0 < result["min_ns"] <= result["median_ns"] <= result["max_ns"], "order of times"
    assert near(result["ns_per_unit"], result["median_ns"] / result["units"]), "ns_per_unit"
    assert near(result["gb_per_s"], result["bytes"] / result["median_ns"]), "gb_per_s"
    if result["unit"] == "byte":
        assert result["units"] == result["bytes"], "bytes are the units"


def variants(options):
    """Command lines that cover every choice of an operation's options."""
    fixed = [argument for name, value in SIZES.items() if f"--{name}" in options
             for argument in (f"--{name}", str(value))]
    chosen = [name for name in CHOICES if f"--{name}" in options]
    for values in itertools.product(*(CHOICES[name] for name in chosen)):
        yield fixed + [argument for name, value in zip(chosen, values)
                       for argument in (f"--{name}", value)]


def check_variant(healcl, operation, arguments):
    """Whether the operation could be measured so."""
    run = bench(healcl, "--op", operation, *arguments)
    if run.returncode == 2 and "int8" in run.stderr:
        assert run.stdout == "", "output"
        return False
    assert run.returncode == 0, f"exit code {run.returncode}: {run.stderr}"
    report = json.loads(run.stdout)
    assert report["device"]["name"], "device"
    assert len(report["results"]) == 1, "results"
    result = report["results"][0]
    assert result["op"] == operation, "op"
    for name, value in zip(arguments[::2], arguments[1::2]):
        assert str(result[name[2:].replace("-", "_")]) == value, name
    check_result(result)
    return True


def check_suite(healcl):
    """The cases that are measured where no operation is named, made tiny; and their table."""
    tiny = ["--n", "16", "--batch", "2", "--s", "3"]
    run = bench(healcl, *tiny)
    assert run.returncode == 0, f"exit code {run.returncode}: {run.stderr}"
    results = json.loads(run.stdout)["results"]
    for result in results:
        check_result(result)
        assert result["n"] == 16 and result["batch"] == 2, "options of a suite"
    table = subprocess.run([healcl, "bench", "--repeat", "3", *tiny], capture_output=True,
                           text=True, timeout=600, check=True).stdout.splitlines()
    assert len(table) == len(results) + 3, "rows"


def main():
    healcl = sys.argv[1]
    if not use_device(healcl):
        print("no device")
        return 77
    listed = subprocess.run([healcl, "bench", "--list"], capture_output=True, text=True, check=True)
    failures = 0
    try:
        check_suite(healcl)
    except AssertionError as error:
        print(f"suite: {error}")
        failures += 1
    for line in listed.stdout.splitlines():
        operation, *options = line.split()
        measured = 0
        for arguments in fixed_share(variants(options), SHARE):
            try:
                measured += check_variant(healcl, operation, arguments)
            except AssertionError as error:
                print(f"{operation} {' '.join(arguments)}: {error}")
                failures += 1
        print(f"{operation}: {measured} cases")
        failures += measured == 0 and IS_ALL # a share may be one that int8 has no part in
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
