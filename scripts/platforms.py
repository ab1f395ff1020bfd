#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs healcl on OpenCL platforms that need no hardware of their own, and prints what was right: the
bundled transcripts by `healcl compare`, and calls of all operations by `healcl check --quick`.

    platforms.py [--healcl PROGRAM] [--results FOLDER] PLATFORM...

Exits with 1 where a platform is not listed, cannot be used, takes too long, or has a wrong result.
FOLDER, by default build/platforms, gets a file for each, as results/ has them (device_table.py).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from device_table import checked, verified

TOP = Path(__file__).resolve().parents[1]
TRANSCRIPTS = sorted(path.name for path in (TOP / "transcripts").iterdir()
                     if path.name.endswith((".json", ".json.gz")))
FEW = ["recognizer.json", "digits.json", "segments.json", "plain.json", "modular_int32.json"]


class Platform(NamedTuple):
    named: str  # a part of the platform's name
    seconds: int  # that it may take
    title: str = ""  # instead of the device's; {driver} is its version
    transcripts: list = TRANSCRIPTS
    operations: list = [None]  # that are checked; None: all
    environment: dict = {}


PLATFORMS = {
    "pocl": Platform("Portable Computing Language", 900),
    "intel": Platform("Intel(R) OpenCL", 900),
    "fpga": Platform("FPGA Emulation", 900, "Intel's FPGA emulator"),
    "rusticl": Platform("rusticl", 900, "rusticl {driver} on llvmpipe"),
    # In a root of Debian 13 (platforms.sh). Its compiler takes minutes for all operations.
    "rusticl-13": Platform("rusticl", 900, "rusticl {driver} on llvmpipe",
                           operations=["modmul", "modsum", "modmul_axis_sum"]),
    "rusticl-13-fp64": Platform("rusticl", 900, "rusticl {driver} on llvmpipe, with fp64", FEW,
                                ["modmul", "modsum"], {"RUSTICL_FEATURES": "fp64"}),
    # Simulators take a thousand times as long. This one reports races and accesses out of bounds.
    "oclgrind": Platform("Oclgrind", 900, "Oclgrind", FEW, ["modsum"],
                         {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_CHECK_API": "1"}),
    "aarch64": Platform("Portable Computing Language", 900,
                        "PoCL {driver} on AArch64 (NEON), qemu-aarch64", FEW, ["modmul"]),
}


class Run:
    """A platform's runs, until its time is over."""

    def __init__(self, healcl, name, folder):
        self.healcl, self.name, self.platform, self.folder = healcl, name, PLATFORMS[name], folder
        self.begin = time.monotonic()
        # A cached self-test may be another commit's.
        self.environment = {**os.environ, "HEALCL_CACHE_DIR": str(folder), **self.platform.environment}

    def run(self, *arguments):
        """-> what was wrong, or None, and what was printed"""
        left = self.platform.seconds - (time.monotonic() - self.begin)
        done = subprocess.run(["timeout", "-k", "10", str(max(left, 1)), *self.healcl, *arguments],
                              cwd=TOP, env=self.environment, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        what = "is not done within %d s" % self.platform.seconds if done.returncode in (124, 137) \
            else "ends with exit code %d" % done.returncode
        return done.returncode and "healcl %s %s" % (arguments[0], what), done.stdout

    def read(self, name):
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else {}

    def device(self):
        """-> the platform's device, which must have passed its self-test, or what is wrong"""
        _, printed = self.run("devices", "--timeout", str(self.platform.seconds), "--json",
                              str(self.folder / "devices"))
        for device in self.read("devices").get("devices", []):
            if self.platform.named not in device["platform"]:
                continue
            if device["usable"] and device["self_test"] == "passed":
                return device
            return "it cannot be used: " + (device.get("unusable_because") or
                                            device.get("self_test_failure") or printed)
        return "healcl devices does not list it\n" + printed

    def check(self, device):
        """-> counts of `healcl check`, and what was wrong"""
        counts, wrong = {"quick": True, "calls": 0, "failed": 0, "unsupported": 0}, []
        for operation in self.platform.operations:
            options = ["--op", operation] if operation else []
            what, printed = self.run("check", "--quick", "-d", device["index"], *options,
                                     "--json", str(self.folder / "check"))
            report = self.read("check")
            for key in ("calls", "failed", "unsupported"):
                counts[key] += report.get(key, 0)
            if what:
                wrong.append(what + "\n" + printed[-4000:])
        if self.platform.operations != [None]:
            counts["operations"] = self.platform.operations
        return counts, wrong

    def all(self):
        """-> what a file of results/ has, and what was wrong"""
        device = self.device()
        if isinstance(device, str):
            return {}, [device]
        files = ["transcripts/" + name for name in self.platform.transcripts]
        what, printed = self.run("compare", "-d", device["index"], "--no-measure", "--repeat", "1",
                                 "--results", str(self.folder / "results"),
                                 *(str(TOP / file) for file in files))
        found = list((self.folder / "results").glob("*.json"))
        if not found:
            return {}, [(what or "healcl compare writes no results") + "\n" + printed[-4000:]]
        results = json.loads(found[0].read_text())
        wrong = [what + "\n" + printed[-4000:]] if what else []
        counts, more = self.check(device)
        compare = results["compare"]
        if len(compare["runs"]) < len(files):
            wrong.append("%d of %d transcripts ran" % (len(compare["runs"]), len(files)))
        results["check"] = {**{key: compare[key] for key in ("date", "healcl", "commit", "driver")
                               if key in compare}, **counts}
        if self.platform.title:
            results["title"] = self.platform.title.format(driver=device["driver"])
        if "qemu" in results["title"]:
            results["level"] = "emulated"
        results["ci"] = True
        return results, wrong + more


def run_platform(healcl, name, to):
    with tempfile.TemporaryDirectory(prefix="healcl-platform-", dir=to) as folder:
        run = Run(healcl, name, Path(folder))
        log = open(f"{folder}/log", "w+", encoding="utf-8", errors="replace")
        # A pipe: each process that a simulator runs in opens its log anew.
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log) as copy:
            run.environment["OCLGRIND_LOG"] = f"/proc/{os.getpid()}/fd/{copy.stdin.fileno()}"
            results, wrong = run.all()
        log.seek(0)
        wrong += [f"it has found errors:\n{found}" for found in [log.read(4000)] if found]
    seconds = time.monotonic() - run.begin
    counts = filter(None, [verified(results.get("compare", {})), checked(results.get("check", {}))])
    print("%-14s %-42s %s, %.0f s%s" % (
        name, f"{results.get('title', '?')} ({results.get('compare', {}).get('driver', '?')})",
        ", ".join(counts) or "no result is right", seconds, "; FAILED" if wrong else ""), flush=True)
    for what in wrong:
        print(f"{name}: {what}", flush=True)
    if not wrong:
        (to / (name + ".json")).write_text(json.dumps(results, indent=1) + "\n")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--healcl", default=str(TOP / "build/test/healcl"))
    parser.add_argument("--results", type=Path, default=TOP / "build/platforms")
    parser.add_argument("platforms", nargs="+", choices=PLATFORMS, metavar="PLATFORM")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    right = [run_platform([options.healcl], name, options.results) for name in options.platforms]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
