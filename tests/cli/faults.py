#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that fail, each in turn and alone: allocations, and OpenCL's with three codes. The run ends
as if nothing had happened, or with its exit code and one line that says what failed. It leaves no
OpenCL object, does not hang, and the next run is right. Of a run that hangs a debugger tells where.

    faults.py [--share N] FOLDER [KIND.MODE...]

FOLDER: where the tests are built, as build/test. KIND.MODE: a cell of the table, as memory.run;
KIND alone: all of its cells. Without any all. Of allocations it tells how many distinct stacks of
calls have led to them; `check` makes many thousands by the same ones: of those the first one fails.

Takes a few positions of most cells (tests/share.py), or with --share N one of each N neighbours.
HEALCL_TEST_ALL=1 takes the whole, which is hours of processor time.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from devices import use_device  # noqa: E402
from share import IS_ALL, SEED, share  # noqa: E402

SMALL = ROOT / "transcripts/plain.json"
MODEL = ROOT / "transcripts/recognizer.json"
CODES = {"CL_OUT_OF_RESOURCES": -5, "CL_OUT_OF_HOST_MEMORY": -6, "CL_INVALID_OPERATION": -59}
# All that an audit can do again, of each request.
AUDITED = ["--requests", "2", "--audit", "100%", "--audit-seed", "1"]
POOL = ThreadPoolExecutor(2)
# Seconds. Once in thousands of runs what a program has cost reaches what its binary costs, and then
# closing the device has the driver compile all of its kernels (src/programs/binary.c). That takes a
# minute on a busy machine, and is no hang.
TIMEOUT = 600
TOLD_MOST = 8  # of what is wrong in a cell

# What is run, how many positions a share takes at most, the exit code of a failure, and whether of
# positions that the same calls have led to the first one is enough.
Mode = collections.namedtuple("Mode", "command draws code firsts", defaults=[4, False])
# What a run without a fault has met: how many calls there were, and the first position of each
# distinct stack of calls. None: nobody has looked.
Met = collections.namedtuple("Met", "count firsts", defaults=[None])
# How a run ended: with which failed call, and how many OpenCL objects left. None: not known.
End = collections.namedtuple("End", "code errors failed left", defaults=[None, 0])


class Memory:
    """Allocations of the program and of libraries that read files: tests/faulty_memory.c."""
    name, codes = "memory", ["memory"]

    def __init__(self, build, folder):
        self.faulty, self.folder = build / "tests/libfaulty_memory.so", folder
        healcl, package, baseline = build / "healcl", folder / "small.zip", folder / "baseline.json"
        compare = [healcl, "compare", "-d", "reference", "--repeat", "1"]
        run, check = [healcl, "run", "-q"], [healcl, "check", "--quick", "--op"]
        self.modes = {"reference": Mode([*run, "--reference", SMALL], 8),
                      "inspect": Mode([healcl, "inspect", SMALL], 8),
                      "baseline": Mode([*compare, "--baseline", baseline, SMALL], 15)}
        subprocess.run([*compare, "--json", baseline, SMALL], check=True, stdout=subprocess.DEVNULL)
        if "HEALCL_DEVICE" not in os.environ:
            return
        subprocess.run([healcl, "compile", "-o", package, SMALL], check=True,
                       stdout=subprocess.DEVNULL)
        self.modes |= {"devices": Mode([healcl, "devices", "--json", "-"], 2),
                       "run": Mode([*run, SMALL], 2),
                       "none": Mode([*run, "--passes", "none", SMALL], 0),
                       "limited": Mode([*run, "--max-device-memory", "1K", SMALL], 0),
                       "requests": Mode([*run, "--requests", "2", SMALL], 0),
                       "audit": Mode([*run, *AUDITED, SMALL], 2, firsts=True),
                       "package": Mode([*run, "--package", package, SMALL], 2),
                       "calls": Mode([build / "examples/example_calls"], 1, 1),
                       "check": Mode([*check, "flatten"], 1, firsts=True),
                       "computes": Mode([*check, "modneg"], 0, firsts=True)}

    def run(self, mode, position, code=None):
        count = self.folder / "count"
        environment = {"LD_PRELOAD": str(self.faulty), "FAULTY_MEMORY_AT": str(position)}
        if position == 0:
            environment["FAULTY_MEMORY_COUNT"] = str(count)
        end = ended(mode.command, environment)
        if position > 0:
            return end
        number, *firsts = map(int, count.read_text().split())
        return end, Met(number, firsts)

    def close(self):
        pass

    def is_told(self, line, end, code):
        return "out of memory" in line


class OpenCL:
    """OpenCL's calls: tests/faulty_opencl.c."""
    name, codes = "opencl", list(CODES)

    def __init__(self, build, folder):
        self.workers, self.modes = {}, {}
        healcl, package = build / "tests/faulty_opencl", folder / "model.zip"
        if "HEALCL_DEVICE" not in os.environ:
            return
        subprocess.run([build / "healcl", "compile", "-o", package, MODEL], check=True,
                       stdout=subprocess.DEVNULL)
        run = [healcl, "run", "-q"]
        self.modes = {"run": Mode([*run, MODEL], 4),
                      "none": Mode([*run, "--passes", "none", MODEL], 3),
                      "limited": Mode([*run, "--max-device-memory", "100K", MODEL], 3),
                      "requests": Mode([*run, "--requests", "2", MODEL], 4),
                      "audit": Mode([*run, *AUDITED, MODEL], 3),
                      "package": Mode([*run, "--package", package, MODEL], 3)}

    def run(self, mode, position, code=None):
        runs = self.workers.setdefault(threading.get_ident(), Runs())
        end = runs.run(mode.command, position, CODES.get(code, 0))
        return (end, Met(runs.calls)) if position == 0 else end

    def close(self):
        for runs in self.workers.values():
            runs.close()

    def is_told(self, line, end, code):
        if end.failed == "clBuildProgram" and re.search(f"does not build on .*: {code}", line):
            return True
        return f"{end.failed} failed: {code} ({CODES[code]})" in line


class Runs:
    """Runs of a command in a process, one after the other."""
    MOST = 200  # in one process

    def __init__(self):
        self.process, self.command, self.calls = None, None, 0

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(TIMEOUT)
            self.process.stdout.close()
            self.process = None

    def run(self, command, position, code):
        if command != self.command or self.count == self.MOST:
            self.close()
        if not self.process:
            self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.command, self.count = command, 0
        self.count += 1
        hung = []
        timer = threading.Timer(TIMEOUT, lambda: hung.append(stop(self.process)))
        timer.start()
        self.process.stdin.write(f"{position} {code}\n".encode())
        self.process.stdin.flush()
        told = self.process.stdout.readline().split()
        errors = self.process.stdout.read(int(told[4])).decode() if told else ""
        timer.cancel()
        if not told:
            code = self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None
            return End(code, hung[0] if hung else "it has crashed")
        self.calls = int(told[0])
        return End(int(told[3]), errors, told[1].decode(), int(told[2]))


def stop(process):
    """Ends one that does not end; tells where it was."""
    where = threads_of(process.pid)
    process.kill()
    return f"it does not end:\n{where}"


def ended(command, environment):
    environment = {**os.environ, **environment}
    with subprocess.Popen([*map(str, command)], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, errors = process.communicate(timeout=TIMEOUT)
            return End(process.returncode, errors)
        except subprocess.TimeoutExpired:
            return End(None, stop(process))


def threads_of(process):
    """Where its threads are, if there is a debugger."""
    if not shutil.which("gdb"):
        return "gdb would tell where it is"
    return subprocess.run(["gdb", "-p", str(process), "-batch", "-ex", "thread apply all bt"],
                          capture_output=True, text=True, check=False).stdout


def fault(kind, mode, code, end):
    """What is wrong with an end, or None."""
    # What goes on may warn. Some drivers have a log of a build that was not begun: below its line there
    # are the options.
    lines = [line for line in end.errors.splitlines()
             if ": warning: " not in line and not line.startswith("built with ")]
    if end.left:
        return f"{end.left} objects are left"
    if end.code == 0 and not lines:
        return None
    if end.code == mode.code and len(lines) == 1 and kind.is_told(lines[0], end, code):
        return None
    return f"exit code {end.code}: {end.errors.strip()}"


def sweep(kind, name, neighbours):
    """Prints the rows of a mode; how many are red."""
    mode, red = kind.modes[name], 0
    if neighbours:
        POOL.submit(kind.run, mode, 0).result()  # caches are warm
    whole, met = POOL.submit(kind.run, mode, 0).result()
    assert whole.code == 0, (name, whole)
    all_of = met.firsts if mode.firsts else range(1, met.count + 1)
    for code in kind.codes:
        positions = share(f"{kind.name} {name} {code}", all_of,
                          neighbours or -(-len(all_of) // mode.draws), says=False)
        ends = list(POOL.map(lambda at: kind.run(mode, at, code), positions))
        wrong = [(at, end, what) for at, end in zip(positions, ends)
                 if (what := fault(kind, mode, code, end))]
        if code == kind.codes[-1]:
            again = POOL.submit(kind.run, mode, 0).result()[0]
            if what := fault(kind, mode, code, again):
                wrong.append((0, again, f"the next run: {what}"))
        print_cell(name, code, met, ends, wrong)
        red += bool(wrong)
    return red


def print_cell(name, code, met, ends, wrong):
    survived = [end.failed for end in ends if end.code == 0]
    print_row(name, code, met.count, "-" if met.firsts is None else len(met.firsts), len(ends),
              len(survived), len(ends) - len(survived), len(wrong))
    for failed, times in sorted(collections.Counter(filter(None, survived)).items()):
        print(f"    survived {failed} {times}" if failed != "-" else f"    not reached {times}")
    for at, end, what in wrong[:TOLD_MOST]:
        print(f"    at {at}, {end.failed or 'an allocation'}: {what}", flush=True)
    if len(wrong) > TOLD_MOST:
        print(f"    and {len(wrong) - TOLD_MOST} more")


def print_row(*values):
    print("{:10}{:48}{:>8}{:>8}{:>8}{:>10}{:>8}{:>6}".format(*map(str, values)), flush=True)


def sweep_calls(build, neighbours):
    """The API's, in one process: tests/unit/test_run_faults.c goes on with the same device."""
    whole = {"HEALCL_TEST_ALL": "1"} if neighbours == 1 else {}
    told = subprocess.run([build / "tests/unit_tests", "test_run_faults"], env={**os.environ, **whole}, text=True,
                          check=False, capture_output=True)
    rows = re.findall(r"^fault matrix: (\w+) (\w+): (\d+) calls, (\d+) failed, (\d+) survived$",
                      told.stdout, re.MULTILINE)
    for name, code, count, failed, survived in rows:
        print_row(name, code, count, "-", failed, survived, int(failed) - int(survived), 0)
    if told.returncode or not rows:
        print(told.stdout, told.stderr)
    return told.returncode != 0 or not rows


def main():
    arguments = sys.argv[1:]
    neighbours = 1 if IS_ALL else 0
    if arguments[0] == "--share":
        neighbours = int(arguments[1])
        arguments = arguments[2:]
    build, wanted = Path(arguments[0]).resolve(), arguments[1:]
    red = 0
    with tempfile.TemporaryDirectory(prefix="healcl-faults-") as folder:
        os.environ |= {"HEALCL_CACHE_DIR": f"{folder}/cache", "HEALCL_COMPILE_AHEAD": "0",
                       "HEALCL_ONE_PROCESS": "1"}  # which counts its calls
        if not use_device(build / "healcl"):
            print("no device")
        if neighbours != 1:
            print(f"a share of the whole: HEALCL_TEST_SEED={SEED}")
        print_row("mode", "what fails", "calls", "stacks", "failed", "survived", "told", "red")
        for make in Memory, OpenCL:
            if wanted and make.name not in {cell.split(".")[0] for cell in wanted}:
                continue
            kind = make(build, Path(folder))
            for name in kind.modes:
                if wanted and not {kind.name, f"{kind.name}.{name}"} & set(wanted):
                    continue
                if neighbours or kind.modes[name].draws:
                    red += sweep(kind, name, neighbours)
            kind.close()
        if not wanted or "opencl.calls" in wanted:
            red += sweep_calls(build, neighbours)
    print(f"{red} cells are red")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
