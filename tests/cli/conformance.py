#!/usr/bin/env python3
"""Runs whole folders of transcripts through `healcl run`.

    conformance.py HEALCL [--device] [FOLDER...]

The folders default to transcripts/, tests/bad/ and, where the environment's HEALCL_CONFORMANCE
names one, that. In a folder with expected.txt each line "FILE EXIT [ENTRY [OPERATION]]" says how
a file ends; elsewhere bad_mismatch.json differs, other bad_*.json are refused, and the rest is
verified. Whatever ends badly ends with one line on standard error that begins with "healcl: FILE: ",
and no transcript may end by a signal or take longer than a minute.
"""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def expectations(folder):
    """(path, exit code, what the message must begin with) of each file of a folder."""
    listed = folder / "expected.txt"
    if listed.exists():
        for line in listed.read_text().splitlines():
            name, code, *place = line.split()
            begin = f"entry {place[0]}" if place and place[0] != "-" else ""
            if begin and len(place) > 1 and place[1] != "-":
                begin += f" ({place[1]}): "
            yield folder / name, int(code), begin
        return
    for path in sorted(folder.glob("*.json")):
        code = 0
        if path.name.startswith("bad_"):
            code = 1 if path.name == "bad_mismatch.json" else 3
        yield path, code, ""


def fault(healcl, options, path, code, begin):
    """What is wrong with the run of a file, or None."""
    try:
        run = subprocess.run([healcl, "run", "-q", *options, path], capture_output=True,
                             timeout=60, errors="replace")
    except subprocess.TimeoutExpired:
        return "takes longer than a minute"
    if run.returncode != code:
        return f"exits with {run.returncode}, not {code}: {run.stderr.strip()[-500:]}"
    lines = [line for line in run.stderr.splitlines() if "warning: " not in line]
    if code == 0:
        return f"prints {lines[0]}" if lines else None
    prefix = f"healcl: {path}: "
    if len(lines) != 1 or not lines[0].startswith(prefix):
        return f"not one line that begins with its name: {run.stderr}"
    message = run.stdout if code == 1 else lines[0][len(prefix):]
    if not message.startswith(begin):
        return f"'{message.strip()}' does not begin with '{begin}'"
    return None


def main():
    arguments = sys.argv[1:]
    options = ["--reference"]
    if "--device" in arguments:
        arguments.remove("--device")
        options = []
    healcl, *folders = arguments
    if not options and subprocess.run([healcl, "devices"], capture_output=True).returncode == 4:
        print("no device")
        return 77
    if not folders:
        folders = [ROOT / "transcripts", ROOT / "tests/bad"]
        if os.environ.get("HEALCL_CONFORMANCE"):
            folders.append(os.environ["HEALCL_CONFORMANCE"])
    count = faults = 0
    for folder in folders:
        for path, code, begin in expectations(Path(folder)):
            count += 1
            found = fault(healcl, options, path, code, begin)
            if found:
                faults += 1
                print(f"{path}: {found}")
    print(f"{count} transcripts, {faults} of them wrong")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
