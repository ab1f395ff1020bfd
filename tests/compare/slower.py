#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare --fail-slower: exits with 5 where the whole interval is beyond what is allowed, and the
second process says so too; says what cannot be judged; verdicts go first. Baselines have times that
no machine comes near, so that nothing depends on how long anything takes; and with CPU_CLOCK.so
(tests/cpu_clock.c) times do not spread where the machine is busy.

    slower.py HEALCL [CPU_CLOCK.so]
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
healcl = sys.argv[1]
CLOCK = {"LD_PRELOAD": sys.argv[2]} if len(sys.argv) > 2 else {}
MEMORY, DIFFERS = "transcripts/memory.json", "tests/bad/differs_in_last_value.json"
REFUSED = "tests/bad/op_unknown.json"
SHORT, LONG = 1, 10**15  # ns
FIGURES = ["compute", "steady request"]


class Judge:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.saved = {}
        self.run("--json", f"{folder}/saved.json", MEMORY, DIFFERS)
        self.saved = json.loads((self.folder / "saved.json").read_text())

    def run(self, *arguments, **environment):
        """Once more where a busy machine has made times that nothing can be said of."""
        for _ in range(10):
            done = subprocess.run([healcl, "compare", "--no-measure", "-d", "reference", *arguments],
                                  cwd=ROOT, env={**os.environ, **CLOCK, **environment},
                                  capture_output=True, text=True)
            if "its new times spread" not in done.stderr:
                break
            for log in Path(environment.get("LD_DEBUG_OUTPUT", "/none/process")).parent.glob("*"):
                log.unlink()
        return done

    def baseline(self, samples):
        report = json.loads(json.dumps(self.saved))
        for run in report["runs"]:
            run["split"] = {"clock": "host", "compute_ns": samples}
            run["steady"] = {"requests_ns": samples}
        (self.folder / "base.json").write_text(json.dumps(report))
        return str(self.folder / "base.json")

    def judge(self, samples, *files):
        """The exit code, standard error, and the JSON."""
        path = self.folder / "out.json"
        done = self.run("--baseline", self.baseline(samples), "--fail-slower", "10",
                        "--repeat", "7", "--json", str(path), *files)
        return done.returncode, done.stderr, json.loads(path.read_text())


def test_slower(judge):
    code, told, report = judge.judge([SHORT] * 7, MEMORY)
    assert code == 5, (code, told)
    for figure, line, slowdown in zip(FIGURES, told.splitlines(), report["runs"][0]["slowdowns"]):
        assert f"{MEMORY}: reference host reference: {figure}: " in line, line
        assert slowdown["figure"] == figure and slowdown["slower"], slowdown
    assert len(told.splitlines()) == len(report["runs"][0]["slowdowns"]) == 2, told
    assert "slowdowns" not in report["runs"][1], report["runs"][1]


def test_verdicts_first(judge):
    code, told, _ = judge.judge([SHORT] * 7, MEMORY, DIFFERS)
    assert code == 1 and "slower" in told, (code, told)
    assert judge.judge([SHORT] * 7, MEMORY, REFUSED)[0] == 3


def test_defaults(judge):
    """Runs often enough for an interval by default, and judges by a baseline only on request."""
    base = judge.baseline([SHORT] * 15)
    done = judge.run("--baseline", base, "--fail-slower", "2.5", "--json", "-", MEMORY)
    report = json.loads(done.stdout)
    assert done.returncode == 5 and report["repeat"] == 15, done
    assert len(report["runs"][0]["samples_ns"]) == 15, report
    done = judge.run("--baseline", base, "--json", "-", MEMORY)
    assert done.returncode == 0 and not done.stderr and json.loads(done.stdout)["repeat"] == 5, done


def test_junit(judge):
    base = judge.baseline([SHORT] * 7)
    done = judge.run("--baseline", base, "--fail-slower", "10", "--junit", "-", MEMORY)
    verdict, time, steady = ElementTree.fromstring(done.stdout)[0]
    assert done.returncode == 5 and verdict.find("failure") is None, done
    assert time.find("failure").get("type") == "slower", done.stdout
    assert time.find("failure").get("message") in done.stderr, done
    assert steady.find("failure").get("message").startswith("steady request: "), done.stdout


def test_second_process(judge):
    """Slower runs are repeated, in a process of their own; others run once."""
    counts = []
    for samples in ([SHORT] * 7, [LONG] * 7):
        log = judge.folder / f"log{len(counts)}"
        log.mkdir()
        # The dynamic linker writes a file for each process.
        judge.run("--baseline", judge.baseline(samples), "--fail-slower", "10", MEMORY,
                  LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log / "process"))
        counts.append(len(list(log.iterdir())))
    assert counts[0] == counts[1] + 1, counts


def main():
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(folder)
        for test in test_slower, test_verdicts_first, test_defaults, test_junit, test_second_process:
            print(test.__name__, flush=True)
            test(judge)
    return 0


if __name__ == "__main__":
    sys.exit(main())
