#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares requests that run together with the same requests one after the other in a warm session.

    requests_bench.py [--healcl PROGRAM] [--device SEL] [--runs N] [NAME=FILE...]

Without files it takes the bundled ones. A ratio is the median over pairs of runs that alternate,
each a process of its own: the time of a batch over that of as many requests alone. What a request
brings along is what segments upload_ct... upload; all else stays on the device.

Exit status: 0 all ratios are below their bars, 1 one is not, or a program failed."""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BATCHES, RUNS = 5, 9  # in each run, and pairs of runs
CASES = {  # requests together, most of their time alone
    "sentiment": (8, 0.55),
    "digits_toy": (8, 0.4),
    "digits": (4, 0.9),  # n = 8192; make_transcripts.py --encrypted digits FILE
}
BUNDLED = [f"{name}={ROOT}/transcripts/encrypted_{name}.json.gz" for name in ("sentiment", "digits_toy")]


def output(*command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def kept(program, file):
    """Options that keep what does not come with a request."""
    names = [segment["name"] for segment in output(program, "inspect", "--json", "-", file)["segments"]]
    return [word for name in names if name.startswith("upload") and not name.startswith("upload_ct")
            for word in ("--keep", name)]


def seconds(command, batch, *options):
    """That so many requests take."""
    report = output(*command, "--requests", str(batch * BATCHES), *options)
    if report["results_different"] > 0:
        sys.exit(f"{command[-1]}: results differ")
    return batch / report["requests_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--healcl", default=f"{ROOT}/build/release/healcl")
    parser.add_argument("--device", default="pocl")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("cases", nargs="*", metavar="NAME=FILE", default=BUNDLED)
    options = parser.parse_args()
    broken = False
    print("| workload | requests | ms alone | ms together | ratio | bar |\n|---|---|---|---|---|---|")
    for case in options.cases:
        name, file = case.split("=", 1)
        batch, bar = CASES[name]
        command = [options.healcl, "run", "--device", options.device, "--json", "-",
                   *kept(options.healcl, file), file]
        pairs = [(seconds(command, batch), seconds(command, batch, "--batch", str(batch)))
                 for _ in range(options.runs)]
        ratio = statistics.median(together / alone for alone, together in pairs)
        alone, together = (1e3 * statistics.median(times) for times in zip(*pairs))
        print(f"| {name} | {batch} | {alone:.3g} | {together:.3g} | {ratio:.3g} | {bar} |", flush=True)
        broken |= ratio > bar
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
