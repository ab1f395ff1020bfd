#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver that ends the process, crashes or hangs (faulty_driver.c) while platforms are listed, in a
build, in a launch of the self-test or of a run, or at the end of the process: each command ends with
exit code 4 and one line of its own, with the reports that were asked for, and leaves no process.

    driver_ends.py HEALCL FAULTY_DRIVER.so [HEALCL-MPI MPIRUN]

Exits with 77, skipped, where there is no device.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / room) for room in ("", "cli", "mpi")]
from devices import use_device  # noqa: E402
from launch import ENVIRONMENT  # noqa: E402
from requests import npy, transcript  # noqa: E402

FILE = "transcripts/names.json"
# "@" is a folder of their own.
COMMANDS = ["run -q --json @/report.json --junit @/report.xml " + FILE,
            "run --json - --requests 2 " + FILE,
            "check --quick --op abs --json - --junit @/report.xml",
            "diagnose --json @/report.json " + FILE,
            "bench --op modneg --n 16 --repeat 1 --json -",
            "tune --dry-run --json @/report.json",
            f"compile -o @/package.zip {FILE}",
            f"inspect --roofline --json - {FILE}",
            "devices --measure --json -"]
DEVICES = "devices --json @/report.json"
COMPARE = f"compare --no-measure --repeat 1 --json - --junit @/report.xml {FILE}"
RANKS = [f"run --json @/report.json {FILE}",
         "serve --input x=@/in --results @/out --json - @/model.json"]
WAYS = {"exit 0": "exit code 0", "exit 1": "exit code 1", "abort": "SIGABRT", "hang": None}
# In a launch: the first one behind a self-test that was passed before.
PLACES = ["list", "build", "self-test", "launch", "exit"]
SECONDS = 2


class Cell:
    """A command with a driver that fails at a place in a way."""

    def __init__(self, programs, driver, folder, number):
        self.programs, self.driver, self.folder, self.number = programs, driver, folder, number

    def environment(self, place, way):
        found = {**os.environ, **ENVIRONMENT, "FAULTY_HOW": way, "FAULTY_DEVICE": "",
                 "HEALCL_COMPILE_AHEAD": "0"}
        if place in ("list", "build", "exit"):
            found["FAULTY_WHERE"] = place
        if way == "hang":
            found["HEALCL_PROGRESS_SECONDS"] = "1"
        if place in ("build", "self-test"):  # has not been passed
            found["HEALCL_CACHE_DIR"] = f"{self.place}/cache"
        return found

    def run(self, program, command, place, way, launcher=()):
        self.place = Path(self.folder) / str(self.number)
        (self.place / "in").mkdir(parents=True)
        (self.place / "in/one.npy").write_bytes(npy([1, 2, 3]))
        (self.place / "model.json").write_text(json.dumps(transcript()))
        words = command.replace("@", str(self.place)).split()
        limit = ["--timeout", str(SECONDS)] if way == "hang" else []
        faulty = ["env", f"LD_PRELOAD={self.driver}", program]  # mpirun may ask OpenCL too
        ended = subprocess.run([*launcher, *faulty, *words, *limit], cwd=ROOT, text=True, timeout=600,
                               env=self.environment(place, way), capture_output=True, check=False)
        self.what = (words, place, way, ended)
        assert ended.returncode == 4, self.what
        lines = [line for line in ended.stderr.splitlines() if line.startswith("healcl")]
        self.notices = [line for line in lines if "has not returned for 1 s; --timeout S " in line]
        lines = [line for line in lines if line not in self.notices]
        told = WAYS[way] or f"{SECONDS} s" if place != "exit" else ""
        self.check_reports(words, ended)
        return lines, told

    def check_reports(self, words, ended):
        for option, path in zip(words, words[1:]):
            if option == "--json":
                text = ended.stdout if path == "-" else Path(path).read_text()
                self.report = json.loads(text)
            if option == "--junit":
                xml.etree.ElementTree.parse(path)


def check_command(cell, command, place, way):
    lines, told = cell.run(cell.programs[0], command, place, way)
    assert len(lines) == 1 and told in lines[0], cell.what
    if way == "hang" and place in ("list", "build") and not command.startswith("devices"):
        call = "clGetPlatformIDs, which loads drivers," if place == "list" else "clBuildProgram of '"
        notice, = cell.notices
        assert call in notice, cell.what
    if "--json" in command and place != "exit":
        error = cell.report["error"]
        assert error["cause"] == "driver" and told in error["text"], cell.what


def check_devices(cell, place, way):
    lines, told = cell.run(cell.programs[0], DEVICES, place, way)
    if place in ("build", "self-test"):
        reasons = [device["self_test_failure"] for device in cell.report["devices"]]
        assert reasons and all(told in reason for reason in reasons) and not lines, cell.what
    else:
        assert len(lines) == 1 and told in lines[0], cell.what
        assert cell.report["error"]["cause"] == "driver", cell.what
        assert (place == "exit") == bool(cell.report["devices"]), cell.what


def check_compare(cell, place, way):
    lines, _ = cell.run(cell.programs[0], COMPARE, place, way)
    outcome = "failed" if way.startswith("exit") else "crashed" if way == "abort" else "timed out"
    if place == "list":
        error = cell.report["error"]
        assert len(lines) == 1 and error["message"] in lines[0], cell.what
        assert error["cause"] == "driver", cell.what
    else:
        assert {run["outcome"] for run in cell.report["runs"]} == {outcome}, cell.what


def check_ranks(cell, command, place, way):
    launcher = cell.programs[2], "-n", "2" if place == "list" else "1"
    lines, told = cell.run(cell.programs[1], command, place, way, launcher)
    assert lines and all(told in line for line in lines), cell.what
    if place != "exit":
        assert cell.report["error"]["cause"] == "driver", cell.what


def check_signals(cell):
    """Who ends the parent ends the child; a shell sees the signal."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        cell.place = Path(cell.folder) / f"signal{number}"
        cell.place.mkdir()
        report = cell.place / "report.json"
        environment = {**cell.environment("list", "hang"), "LD_PRELOAD": cell.driver}
        process = subprocess.Popen([cell.programs[0], "run", "--json", str(report), FILE], cwd=ROOT,
                                   env=environment, stderr=subprocess.PIPE)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (child := children.read_text().split()):
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)  # until nobody has the pipe any more
        assert process.returncode == -number and not errors and not report.exists(), (number, errors)
        assert not Path(f"/proc/{child[0]}/exe").exists(), number


def cells_of(programs):
    """The first command fails at each place in each way. Of the others each fails at each place, and
    between them at each place in each way."""
    ways = list(WAYS)
    for row, command in enumerate(COMMANDS):
        for column, place in enumerate(PLACES):
            if command.startswith(("inspect", "tune")) and place == "launch":
                continue  # there is none, or its result is cached
            if command.startswith("devices") and place == "exit":
                continue  # to measure takes long
            for way in ways if row == 0 else ways[(row + column) % 4:][:1]:
                yield check_command, command, place, way
    yield check_devices, "list", "hang"
    for column, place in enumerate(PLACES):
        if place != "launch":  # but the self-test's there is none
            yield check_devices, place, ways[column % 4]
        yield check_compare, place, ways[(column + 1) % 4]
    if programs[2]:
        for row, command in enumerate(RANKS):
            for column, place in enumerate(PLACES):
                yield check_ranks, command, place, ways[(row + column) % 4]


def main(healcl, driver, mpi="", mpirun=""):
    if not use_device(healcl):
        print("no device")
        return 77
    programs = [healcl, mpi, mpirun if mpi else ""]
    with tempfile.TemporaryDirectory(prefix="healcl-ends-") as folder:
        os.environ["HEALCL_CACHE_DIR"] = f"{folder}/cache"
        for command in COMMANDS:  # their programs are built, and cached
            subprocess.run([healcl, *command.replace("@", folder).split()], cwd=ROOT, check=True,
                           stdout=subprocess.DEVNULL)
        with ThreadPoolExecutor(4) as pool:
            ends = [pool.submit(check, Cell(programs, driver, folder, number), *more)
                    for number, (check, *more) in enumerate(cells_of(programs))]
            for end in ends:
                end.result()
        check_signals(Cell(programs, driver, folder, 0))
        print(len(ends), "cells")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
