#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much more two ranks of healcl-mpi serve than one, and than two processes that share nothing.

    ranks_bench.py [OPTION...] [FILE [ENTRY]]

    --healcl-mpi PROGRAM   build/test/healcl-mpi
    --mpirun PROGRAM       mpirun
    --requests N           40, of each run
    --batch B              1, requests that run as one
    --sessions N           2, of each rank
    --repeats N            9
    --json FILE            writes all times there

Each rank and each process is pinned to a core of its own, with one thread of PoCL's. The three are run
in turn, so that a machine that slows down slows all of them. FILE is a transcript whose upload at
ENTRY comes with each request: that of the encrypted sentiment model, unless one is named. Every request
brings the tensor that the transcript holds there, and every result is compared with the transcript's.
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

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "POCL_MAX_PTHREAD_COUNT": "1"}


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
    def __init__(self, options, place):
        self.options, self.place = options, place
        self.request, self.result = live_request(options.file, options.entry)
        self.folders = 0

    def requests(self, count):
        """A folder of so many requests."""
        self.folders += 1
        folder = self.place / f"in{self.folders}"
        folder.mkdir()
        for number in range(count):
            (folder / f"r{number}.npy").write_bytes(self.request)
        return folder

    def start(self, cores, count):
        """Serves count requests, by a rank on each of these cores."""
        folder = self.requests(count)
        results = folder.with_name(folder.name.replace("in", "out"))
        options = self.options
        rank = ["taskset", "-c", None, options.healcl_mpi, "serve", "-i", f"{options.entry}={folder}",
                "--results", str(results), "--json", "-", "--batch", str(options.batch),
                "--sessions", str(options.sessions), str(options.file)]
        command = [options.mpirun]
        for core in cores:
            rank[2] = str(core)
            command += ([] if core == cores[0] else [":"]) + ["-n", "1", *rank]
        process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        return process, results, count

    def finish(self, started):
        """-> requests a second, without what opening takes"""
        process, results, count = started
        report = json.loads(process.communicate()[0])
        if process.returncode or report["requests"] != count:
            sys.exit(f"{process.args} has not served all requests")
        for path in results.glob("*.npy"):
            if elements(path.read_bytes()) != elements(self.result):
                sys.exit(f"{path} is wrong")
        return report["requests_per_second"]

    def one(self, cores):
        return self.finish(self.start(cores[:1], self.options.requests))

    def ranks(self, cores):
        return self.finish(self.start(cores, self.options.requests * len(cores)))

    def processes(self, cores):
        """Their rates together."""
        started = [self.start([core], self.options.requests) for core in cores]
        return sum(self.finish(process) for process in started)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    parser.add_argument("file", nargs="?", type=Path,
                        default=ROOT / "transcripts" / "encrypted_sentiment.json.gz")
    parser.add_argument("entry", nargs="?", type=int, default=25)
    parser.add_argument("--healcl-mpi", default=str(ROOT / "build" / "test" / "healcl-mpi"))
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main():
    options = parse()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this takes two cores")
    rates = {"one": [], "ranks": [], "processes": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        bench.one(cores)  # compiles kernels
        for _ in range(options.repeats):
            for name, of in rates.items():
                of.append(getattr(bench, name)(cores))
                print(f"{name:9} {of[-1]:8.2f} requests a second", flush=True)
    median = {name: statistics.median(of) for name, of in rates.items()}
    if options.json:
        options.json.write_text(json.dumps({"rates": rates, "medians": median}, indent=1) + "\n")
    print(f"medians of {options.repeats}: one rank {median['one']:.2f}, two ranks "
          f"{median['ranks']:.2f}, two processes {median['processes']:.2f} requests a second")
    print(f"two ranks serve {median['ranks'] / median['one']:.2f} times what one does, and "
          f"{median['ranks'] / median['processes']:.3f} of what two processes do")


if __name__ == "__main__":
    main()
