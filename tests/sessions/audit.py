#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Audited requests on devices that lie (faulty_launch.c): how often, and how soon, they are found.

    audit.py HEALCL FAULTY_LAUNCH.so [--trials 100] [--requests 50] [--share 2%]

A device with one wrong lane, and one that has a kernel wrong for one modulus, must be found in 99 of
100 trials; of others the share is printed. Exits with 77, skipped, where there is no device.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402

# Lies by name: whether each must be found, and a function of its trial's number. The toy has two moduli.
LIES = {
    "one lane": (True, lambda trial: f"lane {trial % 8} 8"),
    "one lane of one kernel": (True, lambda trial: f"lane_of {KERNELS[trial % len(KERNELS)]} "
                                                   f"{trial % 16} 16"),
    "one kernel for one modulus": (True, lambda trial: f"modulus {KERNELS[trial % len(KERNELS)]} "
                                                       f"{trial % 2} 2"),
    "of it one element": (False, lambda trial: f"element {KERNELS[trial % len(KERNELS)]} "
                                               f"{trial % 2} 2"),
    "one launch in a thousand": (False, lambda trial: "rarely 1000"),
    "one address": (False, lambda trial: f"stuck {trial % 512 * 8}"),
}
KERNELS = ["modmul_interleaved", "modmul_table", "modsum_table", "modmul_axis_sum_vectors",
           "modmul_axis_sum_interleaved", "intt_whole", "ntt_whole"]


def run(options, *arguments, lies=None, seed=0):
    environment = dict(os.environ)
    if lies:
        environment.update(LD_PRELOAD=options.driver, LIES=lies, LIES_SEED=str(seed))
    return subprocess.run([options.healcl, "run", "-q", "--no-verify", "--json", "-", *arguments,
                           options.transcript], env=environment, text=True, capture_output=True,
                          check=False)


def trial(options, lies, number):
    """(requests, audits) until it was found, or None."""
    done = run(options, "--requests", str(options.requests), "--audit", options.share,
               "--audit-seed", str(number + 1), lies=lies, seed=number)
    if done.returncode == 0:
        return None
    assert done.returncode == 1, (lies, done.stdout, done.stderr)
    report = json.loads(done.stdout)
    audit = report["audit"]
    assert audit["verdict"] == "differs" and ": audit: " in done.stderr, done
    return report["requests"] + 1, audit["audits"]


def trials(options):
    missed = False
    print(f"{'a device that lies':28} {'found':>9} {'requests':>14} {'audits':>14}")
    for name, (must, lies) in LIES.items():
        found = [trial(options, lies(i), i) for i in range(options.trials)]
        hits = [one for one in found if one]
        missed |= must and len(hits) * 100 < 99 * options.trials
        middle = [f"{statistics.median(values):.0f}, most {max(values)}"
                  for values in zip(*hits)] or ["-", "-"]
        print(f"{name:28} {len(hits):3} of {options.trials:3} {middle[0]:>14} {middle[1]:>14}",
              flush=True)
    assert run(options, "--requests", "20", "--audit", options.share).returncode == 0
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("healcl")
    parser.add_argument("driver")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--share", default="2%")
    parser.add_argument("--transcript",
                        default=str(ROOT / "transcripts" / "encrypted_digits_toy.json.gz"))
    options = parser.parse_args()
    if not use_device(options.healcl):
        print("no device")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HEALCL_CACHE_DIR", folder)
        # The self-test, and what takes long to compile, before anything lies.
        assert run(options, "--requests", "1").returncode == 0
        return trials(options)


if __name__ == "__main__":
    sys.exit(main())
