#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares kernels with each other and with peers, and says which bar is broken.

A peer is any program that is called as `PROGRAM bench OPTIONS --json -`, with options of
`healcl bench`, and prints such JSON: in results[0] at least median_ns and units. Where it has no
such case it exits with 2. Another build of healcl is a peer too. Names of peers choose bars: hexl,
heal_sdk, numpy; other peers are compared in all cases, and not judged.

A ratio is the median over pairs of runs that alternate, each a process of its own. Where a bar is
"at most", it is healcl's time over the other one; where it is "at least", it is the inverse.

Exit status: 0 all that was judged is good, 1 a bar is broken or a program failed, 2 bad usage."""

import argparse
import collections
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from typing import NamedTuple, Optional

from bench import machine, provenance

RUNS = 15
QUICK_RUNS, QUICK_SAMPLES = 3, ["--repeat", "5"]
CONFIDENCE = 0.95
NO_SUCH_CASE = 2  # exit code of a peer
TIME_LIMIT = 600  # seconds of one run
HOST_COPY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_copy.py")


# ------------------------------------------------------------------ what is measured


class Case(NamedTuple):
    options: str  # of `healcl bench`
    cores: int
    per: str  # what of the result its time is divided by


class Row(NamedTuple):
    work: str
    case: Case
    against: str  # a peer, or what base is called
    base: Optional[Case]  # of healcl too; None where against is a peer
    bar: Optional[float]
    at_least: bool = False


def case(op, cores=1, per="units", **options):
    words = ["--op", op]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    return Case(" ".join(words), cores, per)


def transform(op, cores=1, **changes):
    return case(op, cores, **{"n": 4096, "bits": 62, "batch": 64, "k": 1, "r": 1,
                              "layout": "contiguous", "dtype": "int64", "values": "reduced",
                              "perm": "none", **changes})


def elementwise(op, cores=1, **changes):
    """2^20 elements."""
    return case(op, cores, **{"n": 4096, "bits": 62, "batch": 256, "k": 1, "s": 1,
                              "layout": "contiguous", "dtype": "int64", "values": "reduced",
                              **changes})


def transform_rows(op):
    for n in (4096, 16384, 65536):
        work, one_core = "%s, n = %d" % (op, n), transform(op, n=n)
        yield Row(work, one_core, "hexl", None, 1.0)
        yield Row(work + ", two cores", transform(op, 2, n=n), "one core", one_core, 1.85, True)
        yield Row(work + ", int32", transform(op, n=n, bits=30, dtype="int32"), "62 bits",
                  one_core, 0.6)
    for n in (4096, 16384, 65536):
        for r, k in ((1, 1), (1, 2), (2, 2), (16, 2)):
            yield Row("%s, [l,n,r,k], n = %d, r k = %d" % (op, n, r * k),
                      transform(op, n=n, batch=64 // (r * k), r=r, k=k, layout="heal"),
                      "contiguous", transform(op, n=n), 1.3)
    yield Row("%s, [l,n,r,k], r k = 4, bits reversed" % op,
              transform(op, batch=16, r=2, k=2, layout="heal", perm="reverse"),
              "contiguous", transform(op, perm="reverse"), 1.3)
    yield Row("%s, n = 65536, bits reversed" % op, transform(op, n=65536, perm="reverse"),
              "in plain order", transform(op, n=65536), None)


def bandwidth_rows():
    """On two cores, in bytes, by what the machine's memory can do."""
    stream = case("host_copy", 2, "bytes", bytes=2**29)
    for work, op, options in (
            ("axis_modsum", "axis_modsum", {"bits": 62, "k": 2, "s": 64, "values": "reduced"}),
            ("[l,n,r,k] as [l,r,k,n]", "contiguous", {"k": 2, "r": 2}),
            ("[l,n,r,k] as [l,r,k,n] of int8", "contiguous", {"k": 2, "r": 4, "dtype": "int8"}),
            ("16 digits", "apply_g_decomp", {"bits": 62, "digits": 16, "base_bits": 4,
                                             "dtype": "int8", "values": "reduced"}),
            ("take_along_axis", "take_along_axis", {})):
        options = {"n": 4096, "bytes": 2**29, "dtype": "int64", **options}
        yield Row(work + ", 512 MB, two cores", case(op, 2, "bytes", **options), "stream copy",
                  stream, 0.7, True)


def slow_peer_rows():
    """Uses small sizes where much is promised: the peer must end."""
    medium = {"n": 4096, "bytes": 2**25, "dtype": "int64"}
    digits = {**medium, "bits": 62, "base_bits": 4, "dtype": "int8", "values": "reduced"}
    for measured in (
            *(transform(op, 2, layout="heal", batch=16, r=2, k=2) for op in ("ntt", "intt")),
            *(elementwise(op, 2) for op in ("modmul", "modsum", "mod", "modneg")),
            case("axis_modsum", 2, **medium, bits=62, k=2, s=64, values="reduced"),
            case("modmul_axis_sum", 2, n=4096, bits=62, batch=50, k=2, s=32, layout="heal",
                 dtype="int64", values="reduced", perm="none"),
            case("apply_g_decomp", 2, **digits, digits=16),
            case("apply_g_decomp_relative_to_full_q", 2, **digits, k=2, digits=31)):
        op = measured.options.split()[1]
        yield Row(op + ", two cores", measured, "heal_sdk", None, 50, True)


def plain_rows():
    large = {"n": 4096, "bytes": 2**26, "dtype": "int64"}
    for op, options in (("abs", {}), ("take_along_axis", {}), ("permute", {"r": 16}),
                        ("pad_single_axis", {}), ("repeat_interleave", {"s": 4}),
                        ("set_const_val", {}), ("contiguous", {"k": 2, "r": 2}),
                        ("copy", {"n": 2**20})):
        yield Row(op + ", 64 MB", case(op, **{**large, **options}), "numpy", None, 1.0)


MODMUL = elementwise("modmul")
BROADCAST = elementwise("modmul", batch=50, s=784, n=16, k=2, layout="heal")
PRODUCTS = elementwise("modmul", batch=50, s=32, k=2, layout="heal")
AXIS_SUM = case("modmul_axis_sum", n=4096, bits=62, batch=50, k=2, s=32, layout="contiguous",
                dtype="int64", values="reduced", perm="none")
ROWS = [
    *transform_rows("ntt"),
    Row("ntt, tiled from int8", transform("ntt", batch=32, k=2, dtype="int8"), "contiguous",
        transform("ntt"), 1.3),
    *transform_rows("intt"),
    Row("modmul", MODMUL, "hexl", None, 1.0),
    Row("modmul, any values", elementwise("modmul", values="any"), "modmul", MODMUL, 1.6),
    Row("modmul, (1,784,1,16,2)x(50,784,1,16,2)", BROADCAST, "modmul", MODMUL, 1.1),
    Row("modmul_axis_sum (50,32,2,4096)", AXIS_SUM, "modmul", MODMUL, 0.6),
    Row("modmul_axis_sum (50,32,2,4096)", AXIS_SUM, "as many modmul", PRODUCTS, 0.6),
    *bandwidth_rows(),
    *slow_peer_rows(),
    *plain_rows(),
]


def matches(pattern, row):
    """pattern: a part of what a row or its peer is called, or a regular expression for it."""
    names = [row.work] if row.base else [row.work, row.against]
    try:
        return any(pattern in name or re.search(pattern, name) for name in names)
    except re.error:
        return False


def chosen_rows(pattern, peers):
    """Returns the table's rows, and each case once for every peer that has no bars."""
    judging = {row.against for row in ROWS if not row.base}
    works = {}
    for row in ROWS:
        works.setdefault(row.case._replace(per="units"), row.work)
    rows = ROWS + [Row(work, measured, name, None, None)
                   for name in peers if name not in judging
                   for measured, work in works.items()]
    return [row for row in rows if matches(pattern, row)]


# ------------------------------------------------------------------ running


def progress(text):
    if sys.stderr.isatty():
        print("\r\x1b[K" + text, end="", file=sys.stderr, flush=True)


class Failure(Exception):
    """A program did not do what it should."""


class NoSuchCase(Exception):
    """A program knows nothing of a case."""


def physical_cores():
    """A processor of each core that this process may use."""
    of_core = {}
    for processor in sorted(os.sched_getaffinity(0)):
        try:
            path = "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % processor
            with open(path, encoding="ascii") as siblings:
                of_core.setdefault(siblings.read(), processor)
        except OSError:
            of_core[processor] = processor
    return list(of_core.values())


CORES = physical_cores()


def run_case(program, measured, more_options):
    """One process; -> results[0] of what it prints, with "ns", the time per unit."""
    command = [program, "bench", *measured.options.split(), *more_options, "--json", "-"]
    if shutil.which("taskset"):
        command = ["taskset", "-c", ",".join(map(str, CORES[:measured.cores])), *command]
    threads = str(measured.cores)
    environment = {**os.environ, "POCL_MAX_PTHREAD_COUNT": threads, "OMP_NUM_THREADS": threads}
    shown = " ".join(command)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=TIME_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure("%s: %s" % (shown, error)) from error
    if done.returncode == NO_SUCH_CASE:
        raise NoSuchCase("%s: %s" % (shown, done.stderr.strip()))
    if done.returncode != 0:
        raise Failure("%s: exit code %d\n%s" % (shown, done.returncode, done.stderr.strip()))
    try:
        result = json.loads(done.stdout)["results"][0]
        result["ns"] = result["median_ns"] / result[measured.per]
        if not 0 < result["ns"] < math.inf:
            raise ValueError("no time")
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise Failure("%s: it did not print a result: %r" % (shown, error)) from error
    return result


def interval_ranks(count):
    """Returns the ranks, from 1, of so many ordered values between which the distribution's median
    lies in at least 95 % of cases, and in how many. It holds for any distribution: each value is
    below the median like heads of a coin. Fewer than 6 values cannot be as sure."""
    rank, tail = 1, 1  # tail / 2^count: how probable less than rank values are below
    while 2 * (tail + math.comb(count, rank)) <= (1 - CONFIDENCE) * 2**count:
        tail += math.comb(count, rank)
        rank += 1
    return rank, count + 1 - rank, 1 - 2 * tail / 2**count


def summary(ratios):
    low, high, _ = interval_ranks(len(ratios))
    ordered = sorted(ratios)
    return {"median": statistics.median(ratios), "low": ordered[low - 1],
            "high": ordered[high - 1], "all": ratios}


class Bench:
    def __init__(self, healcl, peers, runs, more_options):
        self.healcl = healcl
        self.peers = peers
        self.runs = runs
        self.more_options = more_options

    def own(self, measured):
        program = HOST_COPY if "host_copy" in measured.options else self.healcl
        try:
            return run_case(program, measured, self.more_options)
        except NoSuchCase as error:
            raise Failure(str(error)) from error

    def other(self, row):
        """Runs the other side of a row's comparison."""
        if row.base:
            return self.own(row.base)
        return run_case(self.peers[row.against], row.case, self.more_options)

    def repeat(self, label, function):
        results = []
        for i in range(self.runs):
            progress("%s, run %d of %d" % (label, i + 1, self.runs))
            results.append(function())
        return results

    @staticmethod
    def tell_own(told, row, results):
        told["ns_per_unit"] = statistics.median(result["ns"] for result in results)
        told["unit"] = "byte" if row.case.per == "bytes" else results[0].get("unit", "unit")

    def compare(self, told, row, label):
        """-> the verdict after alternating runs"""
        pairs = self.repeat(label, lambda: (self.own(row.case), self.other(row)))
        for own, other in pairs:
            if not row.base and own["units"] != other["units"]:
                raise Failure("%s counts %s units, healcl %s: %s" % (
                    row.against, other["units"], own["units"], row.case.options))
        self.tell_own(told, row, [own for own, _ in pairs])
        told["against_ns_per_unit"] = statistics.median(other["ns"] for _, other in pairs)
        ratio = summary([other["ns"] / own["ns"] if row.at_least else own["ns"] / other["ns"]
                         for own, other in pairs])
        told["ratio"] = ratio
        if row.bar is None:
            return "not judged"
        good = ratio["median"] >= row.bar if row.at_least else ratio["median"] <= row.bar
        return "good" if good else "BROKEN"

    def judge(self, told, row, label):
        if row.case.cores > len(CORES):
            return "too few cores"
        missing = "no peer"
        if row.base or row.against in self.peers:
            try:
                return self.compare(told, row, label)
            except NoSuchCase:
                missing = "no such case"
        self.tell_own(told, row, self.repeat(label, lambda: self.own(row.case)))
        return missing

    def measure(self, row, label):
        """-> a row's report"""
        told = {"work": row.work, "options": row.case.options, "cores": row.case.cores,
                "ns_per_unit": None, "unit": None, "against": row.against,
                "against_ns_per_unit": None, "ratio": None, "bar": row.bar,
                "bar_is": None if row.bar is None else "at least" if row.at_least else "at most"}
        try:
            told["verdict"] = self.judge(told, row, label)
        except Failure as failure:
            told["verdict"], told["error"] = "FAILED", str(failure)
        progress("")
        return told


# ------------------------------------------------------------------ telling


class Table:
    """Prints rows as they come: for a terminal, or for docs/PERFORMANCE.md."""

    HEAD = ("work", "ns per unit", "against", "ratio", "interval", "bar", "verdict")

    def __init__(self, rows, is_markdown):
        widths = max(len(row.work) for row in rows), max(len(row.against) for row in rows)
        self.form = ("| %s | %s | %s | %s | %s | %s | %s |" if is_markdown else
                     "%%-%ds  %%-16s  %%-%ds  %%6s %%-15s  %%-13s  %%s" % widths)
        self.line(*self.HEAD)
        if is_markdown:
            self.line(*["---"] * len(self.HEAD))

    def line(self, *cells):
        print((self.form % cells).rstrip(), flush=True)

    def row(self, told):
        ratio = told["ratio"]
        self.line(told["work"],
                  "%.3g %s" % (told["ns_per_unit"], told["unit"]) if told["ns_per_unit"] else "",
                  told["against"],
                  "%.3g" % ratio["median"] if ratio else "",
                  "[%.3g, %.3g]" % (ratio["low"], ratio["high"]) if ratio else "",
                  "%s %g" % (told["bar_is"], told["bar"]) if told["bar_is"] else "",
                  told["verdict"])


def print_head(report):
    low, high = report["interval"]["ranks"]
    print("%(processor)s, %(cores)d cores, load %(load).1f at the start" % report["machine"])
    print("%d runs; interval: from rank %d to rank %d, %.1f %% sure\n" % (
        report["runs"], low, high, 100 * report["interval"]["confidence"]))


def print_tail(rows):
    counts = collections.Counter(told["verdict"] for told in rows)
    print("\n%d rows: %s" % (len(rows), ", ".join("%d %s" % (count, verdict)
                                                  for verdict, count in counts.items())))


def write_json(report, paths):
    for path in paths:
        if path == "-":
            json.dump(report, sys.stdout, indent=2)
            print()
            continue
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


# ------------------------------------------------------------------ the command line


def peer(text):
    """NAME=PROGRAM or PROGRAM -> name, path"""
    name, is_named, program = text.partition("=")
    if not is_named or "/" in name:
        name, program = os.path.basename(text), text
    path = shutil.which(program)
    if not path or not name:
        raise argparse.ArgumentTypeError("'%s' cannot be run" % program)
    return name, os.path.abspath(path)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench.sh --kernels", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", action="store_true", help=argparse.SUPPRESS)  # of bench.sh
    parser.add_argument("--healcl", required=True, help="the program to measure")
    parser.add_argument("--peer", type=peer, action="append", default=[],
                        metavar="[NAME=]PROGRAM", help="may be given several times; without a name "
                        "the program's file has it")
    parser.add_argument("--only", default="", metavar="PATTERN",
                        help="rows with that in their names or their peer's; a regular "
                        "expression too")
    parser.add_argument("--runs", type=int, help="pairs of runs (default %d)" % RUNS)
    parser.add_argument("--quick", action="store_true",
                        help="only %d runs, with short times" % QUICK_RUNS)
    parser.add_argument("--json", "--save", action="append", default=[],
                        metavar="FILE|-", help="write the figures as JSON; - prints them instead "
                        "of the table")
    parser.add_argument("--markdown", action="store_true",
                        help="print the table for docs/PERFORMANCE.md")
    parser.add_argument("--list", action="store_true",
                        help="list the rows and the options that a peer gets")
    options = parser.parse_args(arguments)
    if len(dict(options.peer)) < len(options.peer):
        parser.error("two peers have the same name")
    if not chosen_rows(options.only, dict(options.peer)):
        parser.error("argument --only: no row matches '%s'; --list shows them"
                     % options.only)
    return options


def measure_all(options, rows):
    """-> the report; prints it as it comes, unless JSON alone is asked for"""
    runs = options.runs or (QUICK_RUNS if options.quick else RUNS)
    low, high, confidence = interval_ranks(runs)
    report = {"machine": machine(), **provenance(options.healcl), "runs": runs,
              "interval": {"ranks": [low, high], "confidence": confidence}, "rows": []}
    table = None
    if "-" not in options.json:
        print_head(report)
        table = Table(rows, options.markdown)
    bench = Bench(os.path.abspath(options.healcl), dict(options.peer), runs,
                  QUICK_SAMPLES if options.quick else [])
    for i, row in enumerate(rows):
        told = bench.measure(row, "%d of %d: %s" % (i + 1, len(rows), row.work))
        report["rows"].append(told)
        if table:
            table.row(told)
        if told["verdict"] == "FAILED":
            print("bench: %s" % told["error"], file=sys.stderr)
    if table:
        print_tail(report["rows"])
    return report


def main(arguments=None):
    options = parse(arguments)
    rows = chosen_rows(options.only, dict(options.peer))
    if options.list:
        for row in rows:
            print("%s (%s)\n    %s" % (row.work, row.against, row.case.options))
        return 0
    report = measure_all(options, rows)
    write_json(report, options.json)
    return int(any(told["verdict"] in ("BROKEN", "FAILED") for told in report["rows"]))


if __name__ == "__main__":
    sys.exit(main())
