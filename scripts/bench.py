#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether healcl keeps its promises, and reports those that it breaks.

Times are medians of several runs, memory is the largest of them. Decoding runs on one core.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
TRANSCRIPTS = os.path.join(os.path.dirname(SCRIPTS), "transcripts")
RECOGNIZER = os.path.join(TRANSCRIPTS, "recognizer.json")
DIGITS_TOY = os.path.join(TRANSCRIPTS, "encrypted_digits_toy.json.gz")
MEGABYTE = 1e6
MEBIBYTE = 2.0**20
LARGE_BYTES = 500_000_000


class Run:
    """One run of healcl: seconds of the clock and of the processor, and the most anonymous memory
    that it had: heap, stacks, and device buffers where they lie in the host's memory."""

    def __init__(self, command, one_core=False, environment=None, watch_memory=False):
        if one_core:
            core = min(os.sched_getaffinity(0))
            command = ["taskset", "-c", str(core), *command]
        self.anonymous = 0
        environment = dict(environment or {})
        if watch_memory:
            environment["HEALCL_ONE_PROCESS"] = "1"  # it is this one that is watched
        start = time.perf_counter()
        before = os.times()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, **environment})
        watcher = None
        if watch_memory:
            watcher = threading.Thread(target=self.watch, args=(process.pid,))
            watcher.start()
        self.out, err = process.communicate()
        self.seconds = time.perf_counter() - start
        after = os.times()
        self.cpu_seconds = (after.children_user - before.children_user
                            + after.children_system - before.children_system)
        if watcher:
            watcher.join()
        if process.returncode != 0:
            sys.exit("bench: %s: exit code %d\n%s" % (" ".join(command), process.returncode,
                                                      err.decode()))

    def watch(self, pid):
        """Looks at the process a thousand times a second until it is gone."""
        try:
            with open("/proc/%d/status" % pid, "rb", buffering=0) as status:
                while True:
                    status.seek(0)
                    for line in status.read().splitlines():
                        if line.startswith(b"RssAnon:"):
                            self.anonymous = max(self.anonymous, int(line.split()[1]) * 1024)
                            break
                    else:  # it has ended
                        return
                    time.sleep(0.001)
        except (OSError, ValueError):
            return


class Bench:
    def __init__(self, program, runs):
        self.program = os.path.abspath(program)
        self.runs = runs
        self.rows = []

    def row(self, name, value, unit, bar=None, at_least=False):
        """bar: the promised value."""
        good = None if bar is None else (value >= bar if at_least else value <= bar)
        self.rows.append({"name": name, "value": value, "unit": unit, "bar": bar,
                          "bar_is": ("at least" if at_least else "at most") if bar else None,
                          "good": good})

    def repeat(self, *arguments, **options):
        return [Run([self.program, *arguments], **options) for _ in range(self.runs)]

    def decoding(self, path):
        """The whole of a large transcript: found, checked, planned; then decoded and run."""
        size = os.path.getsize(path)
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)  # into the page cache

        inspected = self.repeat("inspect", path, one_core=True, watch_memory=True)
        seconds = statistics.median(run.seconds for run in inspected)
        self.row("500 MB: `inspect` (scan, check base64, plan), one core", size / MEGABYTE / seconds, "MB/s")
        self.row("500 MB: heap of `inspect`", max(run.anonymous for run in inspected) / MEBIBYTE, "MiB", 64)
        peak = json.loads(Run([self.program, "inspect", "--json", "-", path]).out)["device_memory_peak"]

        reference = ["run", "--reference", "--no-verify", "-q", path]
        ran = self.repeat(*reference, one_core=True, watch_memory=True)
        total = statistics.median(run.seconds for run in ran)
        self.row("500 MB: `run --reference --no-verify` (that, decoding, the operations), one core",
                 size / MEGABYTE / total, "MB/s", 400, at_least=True)
        self.row("500 MB: heap of `run --reference` beyond tensors",
                 (max(run.anonymous for run in ran) - peak) / MEBIBYTE, "MiB", 64)

        verified = self.repeat("run", "--reference", "-q", path, one_core=True)
        seconds = statistics.median(run.seconds for run in verified)
        self.row("500 MB: `run --reference`, all results compared, one core",
                 size / MEGABYTE / seconds, "MB/s")

        # On a CPU device buffers lie in the host's memory too, and so does the driver: what it
        # takes is what the small recognizer's run takes, which has next to no tensors.
        command = ["run", "--no-warmup", "--json", "-", path]
        on_device = self.repeat(*command, watch_memory=True)
        device_peak = max(json.loads(run.out)["device_memory_peak"] for run in on_device)
        small = self.repeat("run", "--json", "-", RECOGNIZER, watch_memory=True)
        driver = max(run.anonymous for run in small)
        seconds = statistics.median(run.seconds for run in on_device)
        self.row("500 MB: `run`, all cores, all results compared", size / MEGABYTE / seconds,
                 "MB/s")
        self.row("500 MB: device buffers of `run`", device_peak / MEBIBYTE, "MiB")
        self.row("500 MB: memory of the driver, in a small run", driver / MEBIBYTE, "MiB")
        self.row("500 MB: heap of `run` beyond both",
                 (max(run.anonymous for run in on_device) - device_peak - driver) / MEBIBYTE,
                 "MiB", 64)

    def times(self, name, runs, bar):
        """The promise is of the clock; where others use the machine, see the processor's time."""
        self.row(name, statistics.median(run.seconds for run in runs), "s", bar)
        self.row(name + ", the slowest", max(run.seconds for run in runs), "s")
        self.row(name + ", processor time", statistics.median(run.cpu_seconds for run in runs),
                 "s")

    def recognizer(self):
        """All of `healcl run`, from the start of the process to its end."""
        with tempfile.TemporaryDirectory(prefix="healcl-bench-") as folder:
            def environment(i):
                return {"POCL_CACHE_DIR": os.path.join(folder, "pocl%d" % i),
                        "HEALCL_CACHE_DIR": os.path.join(folder, "healcl%d" % i)}

            command = [self.program, "run", "-q", RECOGNIZER]
            cold = [Run(command, environment=environment(i)) for i in range(self.runs)]
            self.times("small recognizer, all of `healcl run`, cold caches (PoCL's own too)", cold, 5)
            for _ in range(3):
                Run(command, environment=environment(0))
            warm = [Run(command, environment=environment(0)) for _ in range(4 * self.runs)]
            self.times("small recognizer, all of `healcl run`, warm caches", warm, 0.3)
            reference = [Run([*command, "--reference"]).seconds for _ in range(self.runs)]
            self.row("small recognizer, all of `healcl run --reference`",
                     statistics.median(reference), "s")

    def transcript(self, name, path):
        """Times the segments with warm kernels: without start-up, reading and comparing."""
        for words, options, runs in (("", [], 4 * self.runs), ("on the reference, ", ["--reference"], 1)):
            out = Run([self.program, "run", "--json", "-", "--repeat", str(runs), *options, path]).out
            self.row("%s, %sa run" % (name, words),
                     statistics.median(json.loads(out)["runs_ns"]) / 1e6, "ms")

    def transcripts(self, folder):
        digits = os.path.join(folder, "digits.json")
        generate("--encrypted", "digits", digits)
        self.transcript("small recognizer", RECOGNIZER)
        self.transcript("encrypted digits, toy (n = 16)", DIGITS_TOY)
        self.transcript("encrypted digits (n = 8192)", digits)


def figure(value):
    """Three digits, as numbers are written in a text."""
    return "%.3g" % value if value < 1000 else "%.0f" % value


def print_table(on, rows):
    """As docs/BENCHMARKS.md shows it, and with details."""
    print("%(processor)s, %(cores)d cores, load %(load).1f at the start; %(device)s.\n" % on)
    print("| | measured | promised |\n|---|---|---|")
    for row in rows:
        bar = "" if row["bar"] is None else "%s %g %s%s " % (
            row["bar_is"], row["bar"], row["unit"], "" if row["good"] else ": **BROKEN**")
        print("| %s | %s %s | %s|" % (row["name"], figure(row["value"]), row["unit"], bar))


def generate(*arguments):
    subprocess.run([sys.executable, "-B", os.path.join(SCRIPTS, "make_transcripts.py"), *arguments],
                   check=True, stdout=sys.stderr)


def device_of(program):
    """The device that runs, its driver, and whether it is tuned."""
    device = json.loads(Run([program, "run", "--json", "-", RECOGNIZER]).out)["device"]
    tuned = "tuned by " + device["tuned_by"] if device["tuned"] else "not tuned"
    return "%s, driver %s, %s" % (device["platform"], device["driver"], tuned)


def machine():
    """Describes the machine of the figures."""
    facts = {}
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
    return {"processor": facts.get("model name", "unknown processor"),
            "model": "family %s, model %s" % (facts.get("cpu family", "?"),
                                              facts.get("model", "?")),
            "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}


def provenance(healcl):
    """When, and from which commit of healcl, the figures are."""
    version = subprocess.run([healcl, "--version"], capture_output=True, text=True, check=True).stdout
    commit = next(line.split()[1] for line in version.splitlines() if line.startswith("commit"))
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Kernels are measured by bench.sh --kernels; see bench.sh --kernels --help.")
    parser.add_argument("--healcl", required=True, help="the program to measure")
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--large", metavar="FILE",
                        help="a large transcript to decode; by default one of 500 MB is generated")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()

    bench = Bench(arguments.healcl, arguments.runs)
    started_on = {**machine(), "device": device_of(bench.program)}
    bench.recognizer()
    folder = tempfile.mkdtemp(prefix="healcl-bench-")
    try:
        bench.transcripts(folder)
        large = arguments.large
        if not large:
            large = os.path.join(folder, "large.json")
            generate("--large", str(LARGE_BYTES), large)
        bench.decoding(large)
    finally:
        shutil.rmtree(folder)

    if arguments.json:
        json.dump({"machine": started_on, "runs": arguments.runs, "figures": bench.rows},
                  sys.stdout, indent=2)
        print()
    else:
        print_table(started_on, bench.rows)
    return 1 if any(row["good"] is False for row in bench.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
