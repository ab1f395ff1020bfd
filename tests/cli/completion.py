#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bash with the script of `healcl completion bash`, as a Tab would, and reads COMPREPLY; checks
that every option of every command's help is completed, and zsh's script by zsh where there is one.

    completion.py HEALCL

Exits with 77, skipped, where there is no bash.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
healcl = sys.argv[1]
COMMANDS = ["run", "compare", "inspect", "devices", "check", "diagnose", "ops", "bench", "tune",
            "compile", "version"]
# What bash makes of a command line: words, taken apart at ':' and '='.
DRIVER = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_healcl "$HEALCL"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion:
    def __init__(self, script):
        self.script = script

    def of(self, *words, folder=ROOT):
        done = subprocess.run(["bash", "-c", DRIVER, "bash", self.script, "healcl", *words],
                              cwd=folder, env={"HEALCL": healcl, "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, (words, done)
        return done.stdout.splitlines()


def check_bash(completion, folder):
    assert completion.of("") == [*COMMANDS, "help"], completion.of("")
    assert completion.of("be") == ["bench"] and completion.of("--v") == ["--version"]
    assert completion.of("help", "co") == ["compare", "compile"]
    for command in COMMANDS:
        text = subprocess.run([healcl, command, "--help"], capture_output=True, text=True).stdout
        told = set(re.findall(r"^(?:  -\w, |      )(--[a-z-]+)", text, re.M))
        told |= set(re.findall(r"^      --k K, (--r) R", text, re.M))
        offered = completion.of(command, "--")
        assert told == set(offered) and len(offered) == len(told), (command, told, offered)
    assert completion.of("run", "--re") == ["--reference", "--repeat", "--requests"]
    for command, words in ("compare", ["reference"]), ("run", ["reference"]), ("check", []):
        assert completion.of(command, "-d", "re") == words, command
    assert "gpu" in completion.of("run", "--device", "")
    assert completion.of("bench", "--layout", "") == ["contiguous", "heal"]
    assert completion.of("check", "--op", "modn") == ["modneg"]
    assert completion.of("run", "--repeat", "") == []
    assert completion.of("tune", "x") == []
    assert completion.of("no-such-command", "") == []
    # Files by what they are for.
    for name in ("a.json", "b.json.gz", "c.json.zst", "d.txt", "with blank.json"):
        (folder / name).touch()
    (folder / "folder").mkdir()
    transcripts = ["a.json", "b.json.gz", "c.json.zst", "folder", "with blank.json"]
    assert sorted(completion.of("run", "", folder=folder)) == transcripts
    assert sorted(completion.of("run", "-q", "", folder=folder)) == transcripts
    assert completion.of("compare", "a.json", "w", folder=folder) == ["with blank.json"]
    assert completion.of("run", "--dump", "", folder=folder) == ["folder"]
    assert completion.of("run", "--json", "d", folder=folder) == ["d.txt"]
    assert completion.of("run", "--json", "=", "d", folder=folder) == ["d.txt"]
    assert completion.of("run", "--js") == ["--json"]


def check_devices(completion):
    listed = subprocess.run([healcl, "devices", "--no-self-test"], capture_output=True, text=True)
    indices = re.findall(r"^\d+:\d+", listed.stdout, re.M)
    assert [word for word in completion.of("run", "-d", "") if ":" in word] == indices
    if indices:
        platform, device = indices[0].split(":")
        assert device in completion.of("run", "-d", platform, ":", "")
        assert device in completion.of("run", "--device", "=", platform, ":", device)


def check_zsh(folder):
    script = subprocess.run([healcl, "completion", "zsh"], capture_output=True, text=True).stdout
    assert script.startswith("#compdef healcl\n")
    for command in COMMANDS:
        assert re.search(rf"^        '{command}:", script, re.M), command
        assert re.search(rf"^        {command}\) _arguments .*(\\\n.*)*'--help'", script, re.M), command
    zsh = shutil.which("zsh")
    if not zsh:
        print("there is no zsh: its script was not read by it")
        return
    (folder / "_healcl").write_text(script)
    subprocess.run([zsh, "-n", str(folder / "_healcl")], check=True)


def main():
    if not shutil.which("bash"):
        print("no bash")
        return 77
    with tempfile.TemporaryDirectory() as place:
        script = f"{place}/healcl"
        with open(script, "wb") as stream:
            subprocess.run([healcl, "completion", "bash"], stdout=stream, check=True)
        completion = Completion(script)
        (Path(place) / "files").mkdir()
        check_bash(completion, Path(place) / "files")
        check_devices(completion)
        check_zsh(Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
