#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the optimiser's passes gain: compute segments with all of them, and with none.

  passes_bench.py --healcl build/release/healcl --save docs/measurements/passes.json FILE...

The two alternate in pairs of processes; a ratio is the median over pairs. Bytes are those that steps
read and write. The roofline is what the device's measured rates allow.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import kernels_bench
from bench import machine, provenance


def healcl(program, *arguments):
    done = subprocess.run([program, *arguments, "--json", "-"], capture_output=True, check=False)
    if done.returncode:
        sys.exit("passes_bench: %s: %s" % (" ".join(arguments), done.stderr.decode().strip()))
    return json.loads(done.stdout)


def run_ms(program, path, passes):
    """Milliseconds of kernels, the median of some runs."""
    told = healcl(program, "run", "--repeat", "9", "--passes", passes, path)
    if not told["verified"]:
        sys.exit("passes_bench: %s: wrong results" % path)
    return told["compute_ns"] / 1e6


def measure(program, path, pairs):
    all_passes = "products,batches,zeros,stores,copies,chains"
    segments = healcl(program, "inspect", "--roofline", path)["segments"]

    def total(key, part=lambda segment: segment):
        return sum(part(segment)[key] for segment in segments)

    def before(segment):
        return segment["without_passes"]

    times = []
    for i in range(pairs):
        kernels_bench.progress("%s, pair %d of %d" % (os.path.basename(path), i + 1, pairs))
        times.append((run_ms(program, path, all_passes), run_ms(program, path, "none")))
    kernels_bench.progress("")
    ms, against = (statistics.median(column) for column in zip(*times))
    return {"work": os.path.basename(path).split(".")[0].replace("_", " "), "ms": ms,
            "against_ms": against, "verdict": "",
            "ratio": kernels_bench.summary([ours / theirs for ours, theirs in times]),
            "launches": [total("launches"), total("launches", before)],
            "bytes_ratio": total("device_bytes") / total("device_bytes", before),
            "of_roofline": total("roofline_ns") / 1e6 / ms}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healcl", required=True, help="the program to measure")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--save", required=True, help="write the figures as JSON")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    report = {"machine": machine(), "runs": options.pairs,
              **provenance(options.healcl), "rows": []}
    for path in options.files:
        report["rows"].append(measure(options.healcl, path, options.pairs))
    kernels_bench.write_json(report, [options.save])


if __name__ == "__main__":
    main()
