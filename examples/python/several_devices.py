#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs transcripts on several devices, one process for each.

    python examples/python/several_devices.py [--device NAME...] TRANSCRIPT...

A process of its own keeps a driver's faults from the others. It is spawned and not forked: OpenCL
drivers do not survive a fork.
"""
import argparse
import concurrent.futures
import multiprocessing

import healcl


def verify(device, transcripts):
    """-> a row for each transcript. Runs in the device's process."""
    dev = healcl.open(device)
    rows = []
    for path in transcripts:
        report = healcl.load(path).run(dev, repeat=3)
        rows.append({"transcript": path, "device": device, "verified": report.verified,
                     "seconds": report.seconds})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", action="append", help="as for healcl.open(), or 'reference'")
    parser.add_argument("transcripts", nargs="+", metavar="TRANSCRIPT")
    options = parser.parse_args()
    devices = options.device or ["reference"] + [info.selector for info in healcl.devices()
                                                 if not info.unusable]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(len(devices), mp_context=context) as pool:
        for rows in pool.map(verify, devices, [options.transcripts] * len(devices)):
            for row in rows:
                print("%(device)-12s %(verified)-5s %(seconds)10.6f s  %(transcript)s" % row)


if __name__ == "__main__":
    main()
