#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--json FILE|- must mean the same in every command: with - standard output is JSON alone; with a
FILE it holds what it holds without the option, and the file the JSON; a command that fails writes
the error there; without a value, and before another option, --json is an error that says what it
takes, and writes nothing.

    json_option.py HEALCL

Commands that need a device are left out, which is said, where there is none.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
healcl = sys.argv[1]
# Each command's arguments, and keys that its JSON must have.
COMMANDS = {
    "run": (["--reference", "transcripts/nothing.json"], {"transcript", "runs_ns"}),
    "compare": (["-d", "reference", "--repeat", "1", "transcripts/nothing.json"], {"runs", "date"}),
    "inspect": (["transcripts/nothing.json"], {"transcript", "entries"}),
    "ops": ([], {"operations"}),
}
DEVICE_COMMANDS = {
    "devices": ([], {"devices"}),
    "check": (["--quick", "--op", "abs"], {"rows", "calls"}),
    "bench": (["--op", "set_const_val", "--n", "16", "--batch", "1", "--repeat", "1"], {"results"}),
    "diagnose": (["transcripts/nothing.json"], {"outcome"}),
    "tune": (["--dry-run"], {"alternatives"}),
}
FAILURES = [
    ("run", ["--reference", "tests/bad/op_unknown.json"], 3, "refused"),
    ("inspect", ["tests/bad/op_unknown.json"], 3, "refused"),
    ("diagnose", ["tests/bad/op_unknown.json"], 3, "refused"),
    ("compare", ["-d", "no such device", "transcripts/nothing.json"], None, None),
    ("check", ["-d", "no such device"], None, None),
    ("tune", ["-d", "no such device"], None, None),
]


def run(*arguments):
    return subprocess.run([healcl, *arguments], cwd=ROOT, capture_output=True, text=True)


def without_figures(text):
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.]*(?: [kMG]?B/s| [numk]?s)?", "#", text))


def check_command(command, arguments, keys, folder):
    plain = run(command, *arguments)
    assert plain.returncode == 0, (command, plain)
    on_stdout = run(command, *arguments, "--json", "-")
    assert on_stdout.returncode == 0 and not on_stdout.stderr, (command, on_stdout)
    told = json.loads(on_stdout.stdout)
    assert keys <= set(told) and "healcl" in told, (command, sorted(told))
    path = Path(folder) / f"{command}.json"
    in_file = run(command, *arguments, "--json", str(path))
    assert in_file.returncode == 0, (command, in_file)
    assert without_figures(in_file.stdout) == without_figures(plain.stdout), (command, in_file, plain)
    assert set(json.loads(path.read_text())) == set(told), command
    lost = run(command, *arguments, "--json", f"{folder}/no/such")
    assert lost.returncode == 2 and "cannot write" in lost.stderr, (command, lost)


def check_usage(command, arguments, folder):
    """Nothing is run, and no file appears."""
    for wrong in (["--json"], ["--json", "--help"], ["--json="]):
        result = run(command, *arguments, *wrong)
        assert result.returncode == 2 and not result.stdout, (command, wrong, result)
        assert result.stderr.startswith("healcl: ") and "--json" in result.stderr, (command, wrong, result)
        assert result.stderr.count("\n") == 1, (command, wrong, result)
    assert "  --json FILE|-" in run(command, "--help").stdout, command
    assert not os.listdir(folder), os.listdir(folder)


def check_failure(command, arguments, code, status, folder):
    path = Path(folder) / "error.json"
    for where in ("-", str(path)):
        result = run(command, *arguments, "--json", where)
        text = result.stdout if where == "-" else path.read_text()
        error = json.loads(text)["error"]
        assert result.returncode == (code or result.returncode) != 0, (command, result)
        assert status in (None, error["status"]), (command, error)
        assert error["message"] in result.stderr, (command, error, result.stderr)
    path.unlink()


def main():
    has_device = run("devices").returncode != 4
    if not has_device:
        print("no device: commands that need one are left out")
    commands = {**COMMANDS, **(DEVICE_COMMANDS if has_device else {})}
    with tempfile.TemporaryDirectory() as folder:
        for command, (arguments, _) in {**COMMANDS, **DEVICE_COMMANDS}.items():
            check_usage(command, arguments, folder)
        for command, arguments, code, status in FAILURES:
            if command in commands:
                check_failure(command, arguments, code, status, folder)
        for command, (arguments, keys) in commands.items():
            check_command(command, arguments, keys, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
