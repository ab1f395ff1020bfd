#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Costs of the kernels on CPUs: docs/DEVICES.md.

Prints costs of the kernels' inner loops (scripts/cpu_loops.cl) on CPUs that need not be here, compiled
by clang and counted by llvm-mca, of one version. --measure also times operations on one core of this
machine (healcl bench) against the core's limits.

A limit is the longer of two times. The arithmetic's is the kernels' fastest inner loop, compiled for
this core and run in its first cache. The memory's is the host's copy of as many bytes.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from device_code import ROOT, Failure, first_path, healcl_program, run
from host_copy import host_copy_ns

# How a CPU is called here, and by compilers.
Cpu = collections.namedtuple("Cpu", "title target name")
CPUS = [
    Cpu("Nehalem (SSE4.2)", "x86_64-linux-gnu", "nehalem"),
    Cpu("Haswell (AVX2)", "x86_64-linux-gnu", "haswell"),
    Cpu("Zen 3 (AVX2)", "x86_64-linux-gnu", "znver3"),
    Cpu("Skylake (AVX-512)", "x86_64-linux-gnu", "skylake-avx512"),
    Cpu("Neoverse N1 (NEON)", "aarch64-linux-gnu", "neoverse-n1"),
]
LOOPS = {  # of scripts/cpu_loops.cl, and how many units a trip of each has
    "ntt": 8, "intt": 8, "ntt_32": 16, "intt_32": 16, "modmul_doubles": 8, "modmul_halves": 8,
    "modmul_mul_hi": 8, "modsum": 8, "mod": 8}
TRIPS = 100  # that llvm-mca follows
MULTIPLY = {"doubles": 0, "halves": 1}  # cl/base/geometry.h: what else kernels compile differently for

Cost = collections.namedtuple("Cost", "cycles instructions")  # of a unit


def table(head, rows):
    for line in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        print("| %s |" % " | ".join(map(str, line)))
    print()


# ------------------------------------------------------------------ inner loops


def compile_loops(clang, options, words, multiply, out):
    texts = "cl/base/base.h", "cl/base/arithmetic.h", "scripts/cpu_loops.cl"
    pathlib.Path(out + ".cl").write_text("".join('#include "%s"\n' % (ROOT / text) for text in texts))
    run([clang, "-x", "cl", "-cl-std=CL1.2", "-O3", "-w", "-Xclang", "-finclude-default-header",
         "-Xclang", "-cl-ext=+cl_khr_fp64",
         *options, "-D", "LOCAL_SIZE=1", "-D", "WORD_BITS=%d" % words, "-D",
         "MULTIPLY=%d" % multiply, "-I", str(ROOT / "cl"),
         out + ".cl", "-o", out])
    return out


def parse_mca(text):
    """{loop: Cost} of what llvm-mca says of TRIPS trips"""
    costs = {}
    for part in re.split(r"^\[\d+\] Code Region - ", text, flags=re.M)[1:]:
        name = part.split("\n")[0].strip()
        cycles, instructions = (int(re.search(r"^%s: +(\d+)$" % what, part, re.M)[1])
                                for what in ("Total Cycles", "Instructions"))
        units = TRIPS * LOOPS[name]
        costs[name] = Cost(cycles / units, instructions / units)
    return costs


def costs_on(cpu, clang, mca, folder):
    """{loop: Cost}, each the least of what the kernels are compiled for"""
    costs = {}
    for words in (64, 32):
        for multiply in MULTIPLY.values():
            options = ["--target=" + cpu.target, "-mcpu=" + cpu.name
                       if cpu.target.startswith("aarch64") else "-march=" + cpu.name, "-S"]
            assembly = compile_loops(clang, options, words, multiply,
                                     os.path.join(folder, "loops.s"))
            text = pathlib.Path(assembly).read_text()  # llvm-mca knows one kind of comments
            pathlib.Path(assembly).write_text(text.replace("// LLVM-MCA", "# LLVM-MCA"))
            told = run([mca, "-mtriple=" + cpu.target, "-mcpu=" + cpu.name,
                        "--iterations=%d" % TRIPS, assembly])
            for name, cost in parse_mca(told).items():
                costs[name] = min(cost, costs.get(name, cost))
    return costs


def find_tools():
    """-> clang and llvm-mca of one version"""
    for version in (15, 16, 17, 18, 19, 20, 21, 14):
        tools = [first_path("/usr/bin/%s-%d" % (tool, version)) for tool in ("clang", "llvm-mca")]
        if all(tools):
            return [paths[0] for paths in tools]
    raise Failure("clang and llvm-mca of one version are needed (packages clang-15 and llvm-15)")


def print_loops(clang, mca, folder):
    costs = [costs_on(cpu, clang, mca, folder) for cpu in CPUS]
    print("Cycles / instructions of a unit, by %s and llvm-mca of its version.\n"
          % run([clang, "--version"]).splitlines()[0])
    table(["inner loop", *(cpu.title for cpu in CPUS)],
          [["`%s`" % loop, *("%.2f / %.1f" % cost[loop] for cost in costs)] for loop in LOOPS])


# ------------------------------------------------------------------ measurements

TIMER = """
#include <stdio.h>
#include <time.h>
enum { COUNT = 128, ROUNDS = 200, SAMPLES = 15 };
static unsigned long x[COUNT][8] __attribute__((aligned(64))), y[COUNT][8] __attribute__((aligned(64)));
static unsigned long table[4][8] __attribute__((aligned(64)));
typedef void loop(void *, void *, void *, unsigned long);
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static void measure(const char *name, loop *run, int units)
{
    double best = 1e30;
    for (int sample = 0; sample < SAMPLES; sample++) {
        double start = now();
        for (int round = 0; round < ROUNDS; round++)
            run(x, y, table, COUNT);
        double spent = (now() - start) / (1.0 * ROUNDS * COUNT * units);
        best = spent < best ? spent : best;
    }
    printf("%s %.5f\\n", name, best);
}
#define LOOP(name, units) extern loop name;
#include "loops.h"
#undef LOOP
#define LOOP(name, units) measure(#name, name, units);
int main(void)
{
    for (int i = 0; i < COUNT * 8; i++)
        x[i / 8][i % 8] = y[i / 8][i % 8] = (unsigned long)i * 0x9e3779b97f4a7c15 >> 2;
    for (int i = 0; i < 8; i++) { /* times do not depend on values, but shifts are less than 64 */
        table[0][i] = 4611686018427322369;
        table[1][i] = 0x3bf0000000000000;
        table[2][i] = table[0][i] * 4;
        table[3][i] = 2;
    }
#include "loops.h"
}
"""


def loop_times(clang, march, folder):
    """{loop: ns a unit} on the core that this runs on, each the least of what kernels are compiled for"""
    times = {}
    path = os.path.join(folder, "timer")
    pathlib.Path(path + ".c").write_text(TIMER)
    for words in (64, 32):
        loops = {name: units for name, units in LOOPS.items() if name.endswith("_32") == (words == 32)}
        pathlib.Path(folder, "loops.h").write_text(
            "".join("LOOP(%s, %d)\n" % row for row in loops.items()))
        for multiply in MULTIPLY.values():
            part = compile_loops(clang, ["-march=" + march, "-c"], words, multiply,
                                 os.path.join(folder, "loops.o"))
            run([clang, "-O2", path + ".c", part, "-o", path])
            for line in run([path]).splitlines():
                name, time = line.split()
                times[name] = min(float(time), times.get(name, float(time)))
    return times


def case_of(row):
    """An operation of healcl bench in a few words."""
    words = [row["op"], " x ".join(str(n) for n in row["shape"] if n != 1)]
    for name, usual in (("dtype", "int64"), ("layout", "contiguous"), ("values", "reduced"),
                        ("perm", "none")):
        if row.get(name, usual) != usual:
            words.append({"perm": "bits reversed", "any": "any values"}.get(
                name if name == "perm" else row[name], row[name]))
    return ", ".join(words)


def limit_of(row, loops, copy):
    """-> ns a unit, and whether of arithmetic or memory; copy: ns a byte that the host copies"""
    names = [name for name in loops if name == row["op"] or name.startswith(row["op"] + "_")]
    if row["op"] in ("ntt", "intt"):
        names = [row["op"] + ("_32" if row["dtype"] == "int32" else "")]
    elif row["op"] == "modneg":
        names = ["mod"]
    arithmetic = min((loops[name] for name in names), default=0)
    memory = copy * row["bytes"] / row["units"]
    return max((arithmetic, "arithmetic"), (memory, "memory"))


def print_measured(healcl, device, march, clang, folder):
    """Times of operations on the first core, and their limits."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    path = os.path.join(folder, "bench.json")
    subprocess.run([healcl, "bench", "--device", device, "--json", path], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "POCL_MAX_PTHREAD_COUNT": "1"})
    loops, told = loop_times(clang, march, folder), json.loads(pathlib.Path(path).read_text())
    copy = host_copy_ns(2**29) / 2**29
    print("%s, driver %s; load %.1f\n" % (told["device"]["name"], told["device"]["driver"],
                                          os.getloadavg()[0]))
    rows = []
    for row in told["results"]:
        limit, what = limit_of(row, loops, copy)
        rows.append([case_of(row), row["unit"], "%.3g" % row["ns_per_unit"],
                     "%.2f %s" % (limit / row["ns_per_unit"], what)])
    table(["operation", "a", "ns", "limit over time"], rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", metavar="DEVICE", help="a device, selected as for healcl bench")
    parser.add_argument("--march", default="native", help="the limits' core, as compilers call it")
    parser.add_argument("--healcl", help="the program; by default build/release's, else build/test's")
    options = parser.parse_args(arguments)
    try:
        clang, mca = find_tools()
        with tempfile.TemporaryDirectory(prefix="healcl-cpu-code-") as folder:
            if options.measure:
                print_measured(options.healcl or healcl_program(), options.measure, options.march,
                               clang, folder)
            print_loops(clang, mca, folder)
    except (Failure, subprocess.CalledProcessError) as failure:
        print("cpu_code.py: %s" % failure, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
