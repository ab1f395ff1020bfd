#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--junit of run, check and compare: XML that a parser takes whatever names hold, in the structure
that CI services read (testsuites, testsuite, testcase), with sums that are right, and with failures,
errors and what was skipped as the exit code says.

    junit.py HEALCL

Without a device `healcl check` is left out, which is said.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
healcl = sys.argv[1]
OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def run(*arguments, **environment):
    return subprocess.run([healcl, *arguments], cwd=ROOT, capture_output=True,
                          env={**os.environ, **environment})


def read(text):
    """The cases as (suite, name, outcome, message, text), with everything else checked."""
    top = ElementTree.fromstring(text)
    assert top.tag == "testsuites", top.tag
    cases, totals = [], {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in top:
        assert suite.tag == "testsuite" and suite.get("name"), suite.attrib
        counts = {"tests": len(suite), "failures": 0, "errors": 0, "skipped": 0}
        seconds = 0
        for case in suite:
            assert case.tag == "testcase" and case.get("classname") == suite.get("name"), case.attrib
            assert re.fullmatch(r"\d+\.\d{9}", case.get("time")), case.attrib
            seconds += float(case.get("time"))
            assert len(case) <= 1, list(case)
            outcome, message, body = "passed", "", ""
            for child in case:
                body = child.text or ""
                if child.tag != "system-out":
                    outcome, message = child.tag, child.get("message")
                    assert child.get("type") and message, child.attrib
                    counts[OUTCOMES[outcome]] += 1
            cases.append((suite.get("name"), case.get("name"), outcome, message, body))
        for key, count in counts.items():
            assert suite.get(key) == str(count), (suite.attrib, counts)
            totals[key] += count
        assert abs(float(suite.get("time")) - seconds) < 1e-6, suite.attrib
    for key, count in totals.items():
        assert top.get(key) == str(count), (top.attrib, totals)
    assert len({case[:2] for case in cases}) == len(cases), "names repeat"
    return cases


def check_run(folder):
    done = run("run", "--reference", "--junit", "-", "transcripts/memory.json")
    assert done.returncode == 0 and not done.stderr, done
    cases = read(done.stdout)
    assert [case[1] for case in cases] == [
        "segment 1: (outside segments)", "segment 2: nothing happens here", "segment 3: fills",
        "segment 4: references", "segment 5: (outside segments)"], cases
    assert {case[2] for case in cases} == {"passed"}, cases
    assert cases[2][4] == "verified: 20 of 20 results", cases[2]

    cases = read(run("run", "--reference", "--no-verify", "--junit", "-",
                     "transcripts/memory.json").stdout)
    assert [case[2] for case in cases] == ["passed"] * 2 + ["skipped"] * 3, cases
    assert "--no-verify" in cases[2][3], cases

    # In a file, beside JSON and the text; what differs stands in the case of its segment.
    paths = [f"{folder}/run.xml", f"{folder}/run.json"]
    done = run("run", "--reference", "--junit", paths[0], "--json", paths[1],
               "tests/bad/differs_in_last_value.json")
    assert done.returncode == 1 and b"segment" in done.stdout, done
    (suite, name, outcome, message, body), = read(Path(paths[0]).read_bytes())
    assert (suite, name) == ("tests/bad/differs_in_last_value.json", "segment 1: work")
    assert outcome == "failure" and message == "1 of 3 results differ", message
    assert body.splitlines() == json.loads(Path(paths[1]).read_text())["differences"], body

    done = run("run", "--reference", "--junit", "-", "tests/bad/op_unknown.json")
    (suite, name, outcome, message, _), = read(done.stdout)
    assert done.returncode == 3 and outcome == "error" and "unknown operation" in message, message


def check_names(folder):
    """Names of a transcript and its file may be anything."""
    attack = "<a b='c'>&amp;]]>\"\u0001\u001b[31m\ufffe\uffff\ud7ff\U0001f600\u0085 \t\r\n--><!--"
    entries = json.loads((ROOT / "tests/bad/differs_in_last_value.json").read_text())
    text = json.dumps(entries).replace('"work"', json.dumps(attack))
    assert json.dumps(attack) in text
    path = os.fsencode(folder) + b"/<\xff\xc0\xaf&'\"\x02\n\xed\xa0\x80>.json"
    Path(os.fsdecode(path)).write_text(text)
    for command in (["run", "--reference"], ["compare", "-d", "reference", "--repeat", "1"]):
        done = subprocess.run([os.fsencode(healcl), *map(os.fsencode, command), b"--junit", b"-",
                               path], capture_output=True)
        assert done.returncode == 1, done
        (suite, name, outcome, _, body), = read(done.stdout)
        assert outcome == "failure" and "tensor 102" in body, (outcome, body)
        assert suite.endswith(">.json") and "&'\"?" in suite and "\x02" not in suite, suite
        if command[0] == "run":
            assert name == "segment 1: " + re.sub("[\x01\x1b\ufffe\uffff]", "?", attack.replace("\x85", "??")), name


def check_compare(folder):
    files = ["transcripts/memory.json", "transcripts/nothing.json", "tests/bad/op_unknown.json",
             "tests/bad/differs_in_last_value.json"]
    path = f"{folder}/compare.xml"
    done = run("compare", "-d", "reference", "--junit", path, *files)
    assert done.returncode == 1 and b"verdict" in done.stdout, done
    cases = read(Path(path).read_bytes())
    assert [case[0] for case in cases] == files, cases
    assert {case[1] for case in cases} == {"reference host reference (healcl)"}, cases
    assert [case[2] for case in cases] == ["passed", "skipped", "error", "failure"], cases
    assert cases[1][3] == "nothing to verify" and "unknown operation" in cases[2][3], cases
    assert cases[3][3] == "different: 1 of 3, transcript's fault" and "tensor 102" in cases[3][4], cases
    assert "healcl run --reference" in cases[0][4], cases

def check_check():
    if run("devices").returncode == 4:
        print("no device: healcl check is left out")
        return
    done = run("check", "--quick", "--op", "modneg", "--junit", "-")
    assert done.returncode == 0, done
    cases = read(done.stdout)
    assert cases[0][:3] == ("self-test", "self-test", "passed"), cases
    assert {case[0] for case in cases[1:]} == {"modneg"} and len(cases) == 13, cases
    assert {case[2] for case in cases} == {"passed"}, cases

def main():
    with tempfile.TemporaryDirectory() as folder:
        check_run(folder)
        check_names(folder)
        check_compare(folder)
        check_check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
