#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cold starts: many processes at once on an empty cache folder, and cache folders that cannot be
written. Each run verifies its results and prints no error, and the next one does too.

    cold_starts.py HEALCL [--rounds N] [--processes N]

Every tenth round PoCL's cache is empty too. Exits with 77, skipped, where there is no device.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from devices import use_device  # noqa: E402
from share import COMPILE_FAST, SEED  # noqa: E402

SMALL = ROOT / "transcripts/plain.json"
OTHER = ROOT / "transcripts/segments.json"
TIMEOUT = 300  # seconds


def start(command, cache, **more):
    environment = {**os.environ, **COMPILE_FAST, "HEALCL_CACHE_DIR": str(cache), **more}
    return subprocess.Popen([*map(str, command)], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def end(process):
    """Returns an error in its end, or None."""
    try:
        _, errors = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "it does not end"
    if process.returncode == 0 and not errors:
        return None
    return f"exit code {process.returncode}: {errors.strip()}"


def at_once(healcl, folder, rounds, processes):
    wrong = 0
    for number in range(rounds):
        cache = folder / f"cache-{number}"
        more = {}
        if number % 10 == 9:
            more["POCL_CACHE_DIR"] = str(folder / f"pocl-{number}")
            os.mkdir(more["POCL_CACHE_DIR"])
        commands = [[healcl, "run", "-q", (SMALL, OTHER)[i % 2]] for i in range(processes)]
        started = [start(command, cache, **more) for command in commands]
        stories = [*map(end, started), end(start(commands[0], cache, **more))]
        stories += [f"{path} is left" for path in cache.rglob("*.tmp-*")]
        for story in filter(None, stories):
            wrong += 1
            print(f"  round {number}: {story}", flush=True)
        shutil.rmtree(cache, ignore_errors=True)
        shutil.rmtree(more.get("POCL_CACHE_DIR", cache), ignore_errors=True)
    print(f"at once: {rounds} rounds of {processes} processes, {wrong} wrong", flush=True)
    return wrong


def unwritable(healcl):
    """A cache folder is a help, never a need."""
    stories = [end(start([healcl, *command], "/proc/none"))
               for command in (["run", "-q", SMALL], ["devices", "--json", "-"])]
    for story in filter(None, stories):
        print(f"  a folder that cannot be written: {story}", flush=True)
    return len([story for story in stories if story])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("healcl", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args()
    if not use_device(options.healcl):
        print("no device")
        return 77
    print(f"HEALCL_TEST_SEED={SEED}")
    healcl = options.healcl.resolve()
    with tempfile.TemporaryDirectory(prefix="healcl-cold-") as name:
        folder = Path(name)
        wrong = at_once(healcl, folder, options.rounds, options.processes)
        wrong += unwritable(healcl)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
