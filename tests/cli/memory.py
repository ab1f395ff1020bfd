#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out: each allocation in turn fails, and the run ends as if nothing had happened,
or with exit code 4 and one line that says so.

    memory.py HEALCL FAULTY_MEMORY [NAME...]

FAULTY_MEMORY is the library that has an allocation fail (tests/faulty_memory.c). NAME: which of the
commands; without it all. A share of each sweep is taken (tests/share.py); HEALCL_TEST_ALL=1 takes
the whole, which is most of an hour for `check`.
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from devices import use_device  # noqa: E402
from share import IS_ALL, share  # noqa: E402

TRANSCRIPT = ROOT / "transcripts/plain.json"
STEP = 7
# Positions beyond so many are the same again and again: values, cases.
MOST = 1 << 30 if IS_ALL else 700
TIMEOUT = 60  # seconds


class Memory:
    def __init__(self, healcl, faulty, folder):
        self.healcl, self.faulty, self.folder = healcl, faulty, Path(folder)

    def run(self, arguments, fails_at=0, count=None):
        environment = {**os.environ, "LD_PRELOAD": self.faulty, "FAULTY_MEMORY_AT": str(fails_at),
                       "HEALCL_COMPILE_AHEAD": "0"}
        if count:
            environment["FAULTY_MEMORY_COUNT"] = str(count)
        return subprocess.run([self.healcl, *map(str, arguments)], env=environment, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def run_again(self, arguments, position):
        """Once in some thousand runs one does not end, for a reason not known yet; it is done again."""
        try:
            return self.run(arguments, position)
        except subprocess.TimeoutExpired:
            print(f"did not end at {position}", flush=True)
            return self.run(arguments, position)

    def story(self, arguments, position):
        """What is wrong with how a run ends whose allocation of that number fails, or None."""
        ended = self.run_again(arguments, position)
        if ended.returncode == 0:
            return None
        lines = ended.stderr.splitlines()
        if ended.returncode == 4 and len(lines) == 1 and "out of memory" in lines[0]:
            return None
        return f"at {position}: exit code {ended.returncode}: {ended.stderr}"

    def sweep(self, name, arguments):
        count = self.folder / "count"
        ended = self.run(arguments, count=count)
        assert ended.returncode == 0, (name, ended)
        most = int(count.read_text())
        positions = share(f"memory {name}", range(1, min(most, MOST) + 1), STEP)
        with ThreadPoolExecutor(2) as pool:
            stories = list(pool.map(lambda at: self.story(arguments, at), positions))
        wrong = [story for story in stories if story]
        print(f"{name}: {len(positions)} of {most} allocations failed, {len(wrong)} wrongly told",
              flush=True)
        for story in wrong:
            print(f"  {story}", flush=True)
        return len(wrong)


def main():
    healcl, faulty, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="healcl-memory-") as folder:
        package, baseline = f"{folder}/package.zip", f"{folder}/baseline.json"
        commands = {"transcript": ["run", "-q", "--reference", TRANSCRIPT],
                    "inspect": ["inspect", TRANSCRIPT],
                    "baseline": ["compare", "-d", "reference", "--repeat", "1", "--baseline",
                                 baseline, TRANSCRIPT]}
        subprocess.run([healcl, "compare", "-d", "reference", "--repeat", "1", "--json", baseline,
                        TRANSCRIPT], check=True, stdout=subprocess.DEVNULL)
        if use_device(healcl):
            for arguments in (["run", "-q", TRANSCRIPT], ["compile", "-o", package, TRANSCRIPT]):
                subprocess.run([healcl, *arguments], check=True, stdout=subprocess.DEVNULL)
            commands |= {"devices": ["devices", "--json", "-"],
                         "run": ["run", "-q", TRANSCRIPT],
                         "package": ["run", "-q", "--package", package, TRANSCRIPT],
                         "check": ["check", "--quick", "--op", "flatten"]}
        else:
            print("no device")
        memory = Memory(healcl, faulty, folder)
        wrong = sum(memory.sweep(name, commands[name]) for name in names or commands)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
