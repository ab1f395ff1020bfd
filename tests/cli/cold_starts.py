#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cold starts: many processes at once on an empty cache folder, processes that are killed at random
moments, and cache folders that cannot be written. Each run that ends by itself verifies its results
and prints no error, and the next one does too.

    cold_starts.py HEALCL [--rounds N] [--processes N] [--kills N]

Every tenth round PoCL's cache is empty too. Exits with 77, skipped, where there is no device.
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from devices import use_device  # noqa: E402
from share import COMPILE_FAST, SEED  # noqa: E402

SMALL = ROOT / "transcripts/plain.json"
OTHER = ROOT / "transcripts/segments.json"
NOTHING = ROOT / "transcripts/nothing.json"  # the self-test alone
TIMEOUT = 300  # seconds
NOBODY = 65534


def start(command, cache, **more):
    environment = {**os.environ, **COMPILE_FAST, "HEALCL_CACHE_DIR": str(cache), **more}
    return subprocess.Popen([*map(str, command)], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def end(process):
    """What is wrong with how it ends, or None."""
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


def is_gone(group):
    """Whether no process of a group is there, now or soon."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def timed(command, cache):
    begin = time.monotonic()
    return end(start(command, cache)), time.monotonic() - begin


def killed(healcl, folder, kills):
    """Until so many did not end by themselves. Every fifth run starts cold."""
    draw = random.Random(f"{SEED} kills")
    wrong = runs = interrupted = 0
    cache, outputs = folder / "cache-killed", folder / "outputs"
    command = [healcl, "run", "--json", outputs / "run.json", "--trace", outputs / "trace.json",
               "--dump", outputs / "dump", SMALL]
    outputs.mkdir()
    cold, warm = timed(command, cache)[1], timed(command, cache)[1]
    while interrupted < kills:
        is_cold = runs % 5 == 0
        if is_cold:
            shutil.rmtree(cache)
            shutil.rmtree(outputs)
            outputs.mkdir()
        runs += 1
        process = start(command, cache)
        time.sleep(draw.uniform(0, cold if is_cold else warm))
        interrupted += process.poll() is None
        process.kill()
        process.communicate()
        stories = [] if is_gone(process.pid) else ["a process is left"]
        story, warm = timed(command, cache)
        stories.append(story)
        for name in "run.json", "trace.json":
            try:
                json.loads((outputs / name).read_text())
            except (OSError, ValueError) as error:
                stories.append(f"{name}: {error}")
        for story in filter(None, stories):
            wrong += 1
            print(f"  kill {runs}: {story}", flush=True)
    print(f"killed: {interrupted} of {runs} runs before they had ended, {wrong} wrong", flush=True)
    return wrong


def unwritable(healcl, folder):
    """A cache folder is a help, never a need."""
    wrong = 0
    places = folder / "places"
    places.mkdir()
    nothing = places / NOTHING.name  # which anybody may read
    shutil.copyfile(NOTHING, nothing)
    nothing.chmod(0o644)

    def look(name, cache, prefix=(), file=SMALL, **more):
        nonlocal wrong
        for command in (["run", "-q", file], ["run", "-q", file], ["devices", "--json", "-"]):
            if story := end(start([*prefix, healcl, *command], cache, **more)):
                wrong += 1
                print(f"  a folder that is {name}: {story}", flush=True)

    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    can_be_nobody = os.geteuid() == 0 and shutil.which("setpriv") and subprocess.run(
        [*as_nobody, healcl, "version"], capture_output=True, check=False).returncode == 0
    if can_be_nobody:
        pocl = places / "pocl"
        pocl.mkdir()
        os.chown(pocl, NOBODY, NOBODY)
        folder.chmod(0o755)
        for name, owner, mode in (("read-only", NOBODY, 0o555), ("another user's", 0, 0o700),
                                  ("another user's, and readable", 0, 0o755)):
            place = places / name.replace(" ", "-")
            place.mkdir()
            start([healcl, "run", "-q", nothing], place).communicate()
            for path in (*place.iterdir(), place):
                os.chown(path, owner, owner)
            place.chmod(mode)
            look(name, place, as_nobody, nothing, POCL_CACHE_DIR=str(pocl))
    else:
        print("skipped: folders of another user and read-only ones, which take root and setpriv")

    print(f"folders that cannot be written: {wrong} wrong", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("healcl", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    if not use_device(options.healcl):
        print("no device")
        return 77
    print(f"HEALCL_TEST_SEED={SEED}")
    healcl = options.healcl.resolve()
    with tempfile.TemporaryDirectory(prefix="healcl-cold-") as name:
        folder = Path(name)
        wrong = at_once(healcl, folder, options.rounds, options.processes)
        wrong += killed(healcl, folder, options.kills)
        wrong += unwritable(healcl, folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
