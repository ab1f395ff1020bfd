#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares devices of which one crashes, hangs, exits or computes wrongly (faulty_driver.c): it must
become a row that says so, the others must go on, and no process may be left behind.

    processes.py HEALCL FAULTY_DRIVER.so

A driver without event times must be timed by the host's clock. PoCL is made to show two devices. Exits with 77, skipped, where there is no PoCL.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPT = "transcripts/recognizer.json"


class Compare:
    def __init__(self, healcl, driver, folder):
        self.healcl, self.folder = healcl, folder
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("HEALCL_") or key == "HEALCL_CACHE_DIR"}
        self.environment.update(LD_PRELOAD=driver, HEALCL_PROGRESS_SECONDS="0")
        self.show_pocl_alone()
        self.faulty = ""  # a part of the name of the first of them
        self.devices = []  # two of PoCL, as --device takes them, the one that can be faulty first

    def show_pocl_alone(self):
        """Other installed drivers are neither listed nor tested, if the loader can be configured so."""
        registered = Path(self.environment.get("OCL_ICD_VENDORS") or "/etc/OpenCL/vendors")
        found = list(registered.glob("*pocl*.icd")) if registered.is_dir() else []
        if found:
            alone = Path(self.folder) / "vendors"
            alone.mkdir()
            (alone / "pocl.icd").write_text(found[0].read_text())
            self.environment["OCL_ICD_VENDORS"] = str(alone)

    def find_devices(self):
        for names, self.faulty in (("basic pthread", "basic"), ("cpu-minimal cpu", "minimal")):
            self.environment["POCL_DEVICES"] = names  # before and since PoCL 4
            devices = subprocess.run([self.healcl, "devices", "--json", "-"], env=self.environment,
                                     capture_output=True, text=True).stdout
            found = {self.faulty in device["name"]: device["index"]
                     for device in json.loads(devices)["devices"]
                     if device["platform"] == "Portable Computing Language"}
            if len(found) == 2:
                self.devices = [found[True], found[False]]
                return

    def start(self, *arguments, devices=None, preexec_fn=None, **environment):
        command = [self.healcl, "compare", "--no-measure", *arguments]
        for device in devices or self.devices:
            command += ["-d", device]
        return subprocess.Popen(command, cwd=ROOT, env={**self.environment, **environment},
                                preexec_fn=preexec_fn, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, **more):
        process = self.start("--json", f"{self.folder}/out.json", *arguments, **more)
        out, errors = process.communicate()
        assert errors == "", errors
        return process.returncode, json.loads(Path(f"{self.folder}/out.json").read_text()), out


def test_faults(compare):
    for how, code, outcome, check in (
            ("crash", 4, "crashed", lambda run: run["signal"] == signal.SIGSEGV),
            ("abort", 4, "crashed", lambda run: run["signal"] == signal.SIGABRT
             and run["message"] == "driver: <b>internal error</b> ?[31m| `x`"),
            ("exit", 4, "failed", lambda run: run["exit_code"] == 42),
            ("hang", 4, "timed out", lambda run: run["process_ns"] >= 5e9),
            ("claim", 4, "failed", lambda run: run["exit_code"] == 0 and "speedup" not in run),
            ("wrong", 1, "different", lambda run: run["results"]["different"] == 1)):
        # Little time for what hangs, and for nothing else that might take long.
        options = ["--timeout", "5"] if how == "hang" else []
        devices = [compare.devices[0], "reference"] if how == "hang" else None
        got, report, table = compare.run(*options, TRANSCRIPT, devices=devices,
                                         FAULTY_DEVICE=compare.faulty, FAULTY_HOW=how)
        faulty, other = report["runs"]
        # A device that fails its self-test is refused before it computes a transcript wrongly.
        refused = how == "wrong" and faulty["outcome"] == "failed"
        if refused:
            assert got == 4 and "self-test" in faulty["message"], faulty
        else:
            assert got == code, (how, got)
            assert faulty["outcome"] == outcome and check(faulty), (how, faulty)
            assert faulty["verified"] is (False if how == "wrong" else None)
            assert outcome in table, table
        assert other["outcome"] == "verified", (how, other)


def test_ignored_children(compare):
    """Some parents ignore SIGCHLD, which is inherited: ends of processes must not get lost."""
    code, report, _ = compare.run(TRANSCRIPT, FAULTY_DEVICE=compare.faulty, FAULTY_HOW="crash",
                                  preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert code == 4, code
    assert [run["outcome"] for run in report["runs"]] == ["crashed", "verified"], report["runs"]
    assert report["runs"][0]["signal"] == signal.SIGSEGV, report["runs"]


def test_listing(compare):
    """healcl devices runs the self-tests that have not run, each in a process of its own."""
    for how, words, outcomes in (
            ("crash", "ran its self-test: SIGSEGV", ["failed", "passed"]),
            ("exit", "ran its self-test: exit code 42", ["failed", "passed"]),
            ("wrong", "fails its self-test", ["failed", "passed"]),
            ("mute", "- platform 1 Mute?[2J platform cannot be asked for its devices: "
             "CL_OUT_OF_RESOURCES (-5)\n", ["passed", "passed"]),
            ("timeless", "", ["passed", "passed"])):
        for cache in f"{compare.folder}/listing-{how}", "":
            environment = {**compare.environment, "FAULTY_DEVICE": compare.faulty, "FAULTY_HOW": how,
                           "HEALCL_CACHE_DIR": cache}
            table = subprocess.run([compare.healcl, "devices"], env=environment,
                                   capture_output=True, text=True)
            assert table.returncode == 0 and not table.stderr, (how, table)
            *listed, told = table.stdout.split("\n\n")
            assert words in told and ("self-test" in words) == ("self-test" in told), (how, told)
            shown = {line.split()[0]: line for line in listed[0].splitlines()}
            for device, outcome in zip(compare.devices, outcomes):
                assert f" {outcome} " in shown[device], (how, outcome, shown[device])


def test_talking(compare):
    """A driver's text on standard output is never taken for JSON."""
    code, report, _ = compare.run(TRANSCRIPT, FAULTY_HOW="talk")
    assert code == 0, code
    for device, run in zip(report["devices"], report["runs"]):
        assert device["platform"] == "Portable Computing Language", device
        assert run["outcome"] == "verified", run
    environment = {**compare.environment, "FAULTY_HOW": "talk"}
    for command in (("devices", "--json", "-"), ("run", "-q", "--json", "-", TRANSCRIPT)):
        talk = subprocess.run([compare.healcl, *command], cwd=ROOT, env=environment,
                              capture_output=True, text=True)
        assert talk.returncode == 0 and json.loads(talk.stdout), talk
        assert ("welcome" in talk.stderr) == (command[0] == "run"), talk


def test_times_of_operations(compare):
    """A driver without times of its own: operations are timed by the host's clock, and the report
    says so. On both devices that is done in runs of their own."""
    code, report, _ = compare.run(TRANSCRIPT, FAULTY_DEVICE=compare.faulty, FAULTY_HOW="timeless")
    assert code == 0, code
    for run, clock in zip(report["runs"], ("host", "device")):
        profile = run["profile"]
        assert profile["clock"] == clock, run
        assert len(run["samples_ns"]) == len(profile["runs_ns"]) == 5, run
        assert profile["overhead"] > 0, run
        times = {part["name"]: part["time_ns"] for part in run["ops"]}
        assert times["ntt"] > 0 and times["modmul"] > 0 and times["reshape"] == 0, times


def children_of(process):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True,
                           text=True).stdout
    return [int(line) for line in found.split()]


def wait_for(condition, what, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def is_run(pid, device=""):
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"\0run\0" in command and f"\0{device}".encode() in command
    except OSError:
        return False


def test_interrupts(compare):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        report = Path(f"{compare.folder}/interrupted.json")
        process = compare.start("--json", str(report), TRANSCRIPT, FAULTY_DEVICE=compare.faulty,
                                FAULTY_HOW="hang")
        wait_for(lambda: any(map(is_run, children_of(process))), "no child was started")
        children = children_of(process)
        process.send_signal(number)
        assert process.wait() == -number, process.returncode
        wait_for(lambda: all(map(is_gone, children)), f"{children} live on after {number}")
        assert not report.exists()
        if number != signal.SIGKILL:
            assert not list(Path(compare.folder).glob("interrupted*"))


def test_interrupted_reports(compare):
    """Earlier measurements are written, and marked as incomplete."""
    good, faulty = compare.devices[::-1]
    for number in (signal.SIGINT, signal.SIGTERM):
        report = Path(f"{compare.folder}/partial.json")
        process = compare.start("--json", str(report), TRANSCRIPT, devices=[good, faulty],
                                FAULTY_DEVICE=compare.faulty, FAULTY_HOW="hang")
        wait_for(lambda: any(is_run(child, faulty) for child in children_of(process)),
                 "the second device does not run")
        process.send_signal(number)
        out, _ = process.communicate()
        assert process.returncode == -number, process.returncode
        told = json.loads(report.read_text())
        run, = told["runs"]
        assert run["outcome"] == "verified" and told["interrupted_of_runs"] == 2, told
        assert "Interrupted: 1 of 2 runs were made. " in out, out
        report.unlink()


def test_progress(compare):
    """Without a terminal, a line now and then."""
    process = compare.start("--timeout", "4", TRANSCRIPT, devices=compare.devices[::-1],
                            FAULTY_DEVICE=compare.faulty, FAULTY_HOW="hang",
                            HEALCL_PROGRESS_SECONDS="1")
    _, errors = process.communicate()
    lines = errors.splitlines()
    assert 2 <= len(lines) <= 60, errors
    told = re.compile(r"healcl: \d+ s: 2 of 2: [\d:]+: " +
                      re.escape(TRANSCRIPT))
    assert any(map(told.fullmatch, lines)), errors
    assert all(line.startswith("healcl: ") for line in lines), errors


def main():
    healcl, driver = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="healcl-compare-") as folder:
        compare = Compare(healcl, driver, folder)
        compare.find_devices()
        if not compare.devices:
            print("there is no PoCL that can show two devices")
            return 77
        for test in (test_faults, test_ignored_children, test_listing,
                     test_talking, test_times_of_operations, test_interrupts,
                     test_interrupted_reports, test_progress):
            print(test.__name__, flush=True)
            test(compare)
    return 0


if __name__ == "__main__":
    sys.exit(main())
