#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenCL's calls fail, each in turn and alone, with three codes (tests/faulty_opencl.c). A run ends as
if nothing had happened, or with exit code 4 and one line that says what failed. It leaves no OpenCL
object, does not hang, and the next run is right. Memory that runs out is out_of_memory.py's.

    faults.py [--share N] FOLDER [MODE...]

FOLDER: where the tests are built, as build/test. MODE: a row of the table, as run; without any all.
Takes a few positions of each (tests/share.py), or with --share N one of each N neighbours.
HEALCL_TEST_ALL=1 takes the whole, which is hours of processor time.
"""
import collections
import os
import re
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

MODEL = ROOT / "transcripts/recognizer.json"
CODES = {"CL_OUT_OF_RESOURCES": -5, "CL_OUT_OF_HOST_MEMORY": -6, "CL_INVALID_OPERATION": -59}
MODES = {"run": [], "none": ["--passes", "none"], "limited": ["--max-device-memory", "100K"],
         "requests": ["--requests", "2"], "package": ["--package", "@"],
         # All that an audit can do again, of each request.
         "audit": ["--requests", "2", "--audit", "100%", "--audit-seed", "1"]}
DRAWS = 3  # positions of a share at most
POOL = ThreadPoolExecutor(2)
# Seconds. Once in thousands of runs what a program has cost reaches what its binary costs, and then
# closing the device has the driver compile all of its kernels (src/opencl/binary.c). That takes a
# minute on a busy machine, and is no hang.
TIMEOUT = 600
TOLD_MOST = 8  # of what is wrong with a code
# How a run ended: with which failed call, and how many OpenCL objects left.
End = collections.namedtuple("End", "code errors failed left", defaults=["-", 0])


class Runs:
    """Runs of a command in a process, one after the other."""
    MOST = 200  # in one process

    def __init__(self, command):
        self.command, self.process, self.calls, self.count = command, None, 0, 0

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(TIMEOUT)
            self.process.stdout.close()
            self.process = None

    def run(self, position, code):
        if self.count % self.MOST == 0:
            self.close()
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.count += 1
        timer = threading.Timer(TIMEOUT, self.process.kill)
        timer.start()
        self.process.stdin.write(f"{position} {code}\n".encode())
        self.process.stdin.flush()
        told = self.process.stdout.readline().split()
        errors = self.process.stdout.read(int(told[4])).decode() if told else ""
        timer.cancel()
        if not told:
            code = self.process.wait()
            self.process = None
            return End(code, "it has crashed, or did not end")
        self.calls = int(told[0])
        return End(int(told[3]), errors, told[1].decode(), int(told[2]))


def fault(code, end):
    """Returns an error in an end, or None."""
    # Runs that go on may warn. Some drivers have a log of a build that was not begun: the options
    # follow it.
    lines = [line for line in end.errors.splitlines()
             if ": warning: " not in line and not line.startswith("built with ")]
    if end.left:
        return f"{end.left} objects are left"
    if end.code == 0 and not lines:
        return None
    is_told = len(lines) == 1 and (f"{end.failed} failed: {code} ({CODES.get(code)})" in lines[0] or (
        end.failed == "clBuildProgram" and re.search(f"does not build on .*: {code}", lines[0])))
    return None if end.code == 4 and is_told else f"exit code {end.code}: {end.errors.strip()}"


def sweep(name, command, neighbours):
    """Prints the rows of a mode; how many are red."""
    workers, red = {}, 0

    def run(position, code=None):
        runs = workers.setdefault(threading.get_ident(), Runs(command))
        return runs.run(position, CODES.get(code, 0)), runs.calls

    if neighbours:
        POOL.submit(run, 0).result()  # caches are warm
    whole, calls = POOL.submit(run, 0).result()
    assert whole.code == 0, (name, whole)
    for code in CODES:
        positions = share(f"opencl {name} {code}", range(1, calls + 1),
                          neighbours or -(-calls // DRAWS), says=False)
        ends = [end for end, _ in POOL.map(lambda at: run(at, code), positions)]
        again = POOL.submit(run, 0).result()[0]
        wrong = [(at, end, what) for at, end in [*zip(positions, ends), (0, again)]
                 if (what := fault(code, end))]
        survived = collections.Counter(end.failed for end in ends if end.code == 0)
        print(f"{name:10}{code:24}{calls:>6} calls, {len(ends)} failed, {survived.total()} survived, "
              f"{len(wrong)} wrong", *(f"    survived {failed} {times}"
                                       for failed, times in sorted(survived.items())),
              *(f"    at {at}, {end.failed}: {what}" for at, end, what in wrong[:TOLD_MOST]),
              sep="\n", flush=True)
        red += bool(wrong)
    for runs in workers.values():
        runs.close()
    return red


def main():
    arguments = sys.argv[1:]
    neighbours = 1 if IS_ALL else 0
    if arguments[0] == "--share":
        neighbours = int(arguments[1])
        arguments = arguments[2:]
    build, wanted = Path(arguments[0]).resolve(), arguments[1:] or MODES
    red = 0
    with tempfile.TemporaryDirectory(prefix="healcl-faults-") as folder:
        os.environ |= {"HEALCL_CACHE_DIR": f"{folder}/cache", "HEALCL_COMPILE_AHEAD": "0",
                       "HEALCL_ONE_PROCESS": "1"}  # which counts its calls
        if not use_device(build / "healcl"):
            print("no device")
            return 77
        if neighbours != 1:
            print(f"a share of the whole: HEALCL_TEST_SEED={SEED}")
        package = f"{folder}/model.zip"
        subprocess.run([build / "healcl", "compile", "-o", package, MODEL], check=True,
                       stdout=subprocess.DEVNULL)
        for name in wanted:
            options = [package if option == "@" else option for option in MODES[name]]
            red += sweep(name, [build / "tests/faulty_opencl", "run", "-q", *options, MODEL],
                         neighbours)
    print(f"{red} rows are red")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
