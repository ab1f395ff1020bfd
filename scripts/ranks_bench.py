#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much more two ranks of healcl-mpi do than one, and than two processes that share nothing.

    ranks_bench.py [OPTION...] [FILE [ENTRY]]        requests, each done by a rank (healcl-mpi serve)
    ranks_bench.py --split [OPTION...] FILE          one request that both ranks share (healcl-mpi run)

    --healcl-mpi PROGRAM   build/test/healcl-mpi; healcl lies beside it
    --mpirun PROGRAM       mpirun
    --repeats N            9
    --json FILE            writes all times there
  of requests
    --requests N           160, of each run
    --batch B              1, requests that run as one
    --sessions N           2, of each rank
  of a request that is shared
    --axis ENTRY:AXIS      to split along, as healcl-mpi run --split takes it
    --runs N               15, in each process

Each rank and each process is pinned to a core of its own, with one thread of PoCL's. The three are run
in turn, so that a machine that slows down slows all of them. Ratios are medians over the repeats.

FILE is a transcript whose upload at ENTRY comes with each request: that of the encrypted sentiment
model, unless one is named. Every request brings the tensor that the transcript holds there, and every
result is compared with the transcript's. What a shared request uploads stays on the devices.

Exit status: 0, or 1 where a bar is missed: two ranks do 1.75 times what one does, or 0.95 of what two
processes do; a rank of a shared request has 0.6 of one's device memory, and it sends what the
plan says.
"""
import argparse
import base64
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine, provenance
from kernels_bench import summary, write_json

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "POCL_MAX_PTHREAD_COUNT": "1"}
GAIN, SHARE, MEMORY = 1.75, 0.95, 0.6  # the bars


def read_transcript(path):
    """-> its entries"""
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        content = json.load(file)
    return content["transcript"] if isinstance(content, dict) else content


def live_request(path, entry):
    """-> the .npy files that the transcript holds at an upload, and as its last result"""
    entries = read_transcript(path)
    value = entries[entry][1]["args"][0]["value"]
    results = [payload["out"]["value"] for kind, payload in filter(None, entries)
               if kind and kind["value"] == "DEVICE_OP" and payload["name"] == "device_to_host"]
    return tuple(base64.b64decode(tensor["tensor_base64"]["data"])
                 for tensor in (value, results[-1]))


def elements(npy):
    return npy[10 + int.from_bytes(npy[8:10], "little"):]


class Bench:
    """Rates, requests a second, of one rank, of two, and of two processes together."""

    def __init__(self, options):
        self.options = options

    def start_ranks(self, cores, *arguments):
        """healcl-mpi with a rank on each of these cores."""
        command = [self.options.mpirun]
        for core in cores:
            command += ([] if core == cores[0] else [":"])
            command += ["-n", "1", "taskset", "-c", str(core), self.options.healcl_mpi,
                        *map(str, arguments)]
        return subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def report_of(self, process):
        told = process.communicate()[0]
        if process.returncode:
            sys.exit(f"{process.args} has failed")
        return json.loads(told)

    def start(self, cores):
        """Begins a run; finish takes what it gives."""
        raise NotImplementedError

    def finish(self, started):
        """-> requests a second, without what opening takes"""
        raise NotImplementedError

    def one(self, cores):
        return self.finish(self.start(cores[:1]))

    def ranks(self, cores):
        return self.finish(self.start(cores))

    def processes(self, cores):
        started = [self.start([core]) for core in cores]
        return sum(self.finish(process) for process in started)

    def facts(self, cores, medians):
        """More of a row, and what of it misses its bar."""
        return {}, []


class Requests(Bench):
    def __init__(self, options, place):
        super().__init__(options)
        self.place, self.folders = place, 0
        self.request, self.result = live_request(options.file, options.entry)

    def requests(self, count):
        """A folder of so many requests."""
        self.folders += 1
        folder = self.place / f"in{self.folders}"
        folder.mkdir()
        for number in range(count):
            (folder / f"r{number}.npy").write_bytes(self.request)
        return folder

    def start(self, cores):
        options, count = self.options, self.options.requests * len(cores)
        folder = self.requests(count)
        results = folder.with_name(folder.name.replace("in", "out"))
        process = self.start_ranks(cores, "serve", "-i", f"{options.entry}={folder}", "--results",
                                   results, "--json", "-", "--batch", options.batch, "--sessions",
                                   options.sessions, options.file)
        return process, results, count

    def finish(self, started):
        process, results, count = started
        report = self.report_of(process)
        if report["requests"] != count:
            sys.exit(f"{process.args} has not served all requests")
        for path in results.glob("*.npy"):
            if elements(path.read_bytes()) != elements(self.result):
                sys.exit(f"{path} is wrong")
        return report["requests_per_second"]


class Shared(Bench):
    """One request at a time, which all ranks share. Their reports are kept."""

    def __init__(self, options, place):
        super().__init__(options)
        self.place, self.reports = place, {}
        self.axis = ["--split", options.axis] if options.axis else []

    def start(self, cores):
        axis = self.axis if len(cores) > 1 else []
        return self.start_ranks(cores, "run", "--repeat", self.options.runs, "--json", "-", *axis,
                                self.options.file)

    def finish(self, started):
        report = self.report_of(started)
        if report["results_different"] or not report["results_compared"]:
            sys.exit(f"{started.args}: results differ, or there are none")
        self.reports[len(report["ranks"])] = report
        return 1e9 / max(rank["ns"] for rank in report["ranks"])

    def facts(self, cores, medians):
        one, = self.reports[1]["ranks"]
        shared = self.reports[len(cores)]["ranks"]
        memory = {key: {"one": one[key], "rank": max(rank[key] for rank in shared)}
                  for key in ("device_bytes_peak", "tensor_bytes")}
        for of in memory.values():
            of["ratio"] = of["rank"] / of["one"] if of["one"] else None
        sent = {key: [rank[key] for rank in shared] for key in ("bytes_sent", "bytes_foreseen")}
        split = self.reports[len(cores)]["split"]
        missed = []
        if memory["device_bytes_peak"]["ratio"] > MEMORY:
            missed.append(f"device memory: above {MEMORY} of one's")
        if sent["bytes_sent"] != sent["bytes_foreseen"]:
            missed.append("bytes sent: not those of the plan")
        return {"split": split, "memory": memory, "exchange": sent,
                "exchange_ns": max(rank["exchange_ns"] for rank in shared)}, missed


def print_facts(facts):
    if not facts:
        return
    memory, sent = facts["memory"], facts["exchange"]
    for name, of in memory.items():
        print(f"{name}: {of['rank'] / 1e6:.1f} MB of a rank, {of['one'] / 1e6:.1f} of one alone: "
              f"{of['ratio']:.2f}")
    print(f"sent by each rank: {sent['bytes_sent']} B, foreseen {sent['bytes_foreseen']}")
    print(f"exchanges take {facts['exchange_ns'] / 1e6:.2f} ms with waiting")


def measure(options, bench, cores):
    """-> a row of the report, and which bars it misses"""
    rates = {"one": [], "ranks": [], "processes": []}
    bench.one(cores)  # compiles kernels
    bench.ranks(cores)
    for _ in range(options.repeats):
        for name, of in rates.items():
            of.append(getattr(bench, name)(cores))
            print(f"{name:9} {of[-1]:8.2f} requests a second", flush=True)
    medians = {name: statistics.median(of) for name, of in rates.items()}
    against = {name: summary([mine / other for mine, other in zip(rates["ranks"], rates[name])])
               for name in ("one", "processes")}
    facts, missed = bench.facts(cores, medians)
    if against["one"]["median"] < GAIN and against["processes"]["median"] < SHARE:
        missed.append(f"two ranks: below {GAIN} times what one does, and {SHARE} of two processes")
    print(f"medians of {options.repeats}: one rank {medians['one']:.2f}, two ranks "
          f"{medians['ranks']:.2f}, two processes {medians['processes']:.2f} requests a second")
    print(f"two ranks do {against['one']['median']:.2f} times what one does, and "
          f"{against['processes']['median']:.3f} of what two processes do")
    print_facts(facts)
    return {"work": Path(options.file).name.split(".")[0].replace("_", " "),
            "kind": "one request" if options.split else "requests", "ranks": len(cores),
            "verdict": "BROKEN" if missed else "", "missed": missed, "rates": rates,
            "medians": medians, "against": against, **facts}, missed


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"), add_help=True)
    parser.add_argument("file", nargs="?", type=Path,
                        default=ROOT / "transcripts" / "encrypted_sentiment.json.gz")
    parser.add_argument("entry", nargs="?", type=int, default=25)
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--healcl-mpi", default=str(ROOT / "build" / "test" / "healcl-mpi"))
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--requests", type=int, default=160)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--axis")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    options = parse()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this takes two cores")
    report = {"machine": machine(), "runs": options.repeats,
              **provenance(Path(options.healcl_mpi).with_name("healcl"))}
    with tempfile.TemporaryDirectory() as folder:
        bench = (Shared if options.split else Requests)(options, Path(folder))
        row, missed = measure(options, bench, cores)
    if options.json:
        write_json({**report, "rows": [row]}, [options.json])
    for what in missed:
        print(f"missed: {what}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
