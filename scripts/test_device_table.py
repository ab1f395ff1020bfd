#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests device_table.py on made-up devices, and that those of results/ are in the README.

    test_device_table.py
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts/device_table.py"

DEVICES = {
    "b": {"level": "ran", "title": "B | chip", "platform": "Maker", "driver": "3.1",
          "compare": {"date": "2026-01-02T00:00:00Z", "commit": "abc", "runs": [
              {"outcome": "verified", "fallbacks": 3}, {"outcome": "different"},
              {"outcome": "nothing to verify"}]},
          "check": {"date": "2026-01-01T00:00:00Z", "commit": "old", "calls": 5000, "failed": 1,
                    "unsupported": 2}},
    "a": {"level": "compiled only", "title": "A", "driver": "clang 15", "note": "compiles"},
    "d": {"level": "compiled only", "title": "E", "driver": "clang 15", "note": "compiles"},
    "c": {"level": "emulated", "title": "C", "platform": "D", "driver": "D 1"},
}
TABLE = """\
| device | level | right | driver, date, commit |
|---|---|---|---|
| B \\| chip | ran | 1/2 transcripts (3 steps on the host), 4997/5000 calls (2 beyond it) | 3.1, 2026-01-02, `abc` |
| C | emulated |  | D 1 |
| A, E | compiled only | compiles | clang 15 |
"""


def run(*arguments):
    return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)],
                          capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, device in DEVICES.items():
            (folder / f"{name}.json").write_text(json.dumps(device))
        printed = run("--results", folder)
        assert printed.returncode == 0 and printed.stdout == TABLE, printed
        page = folder / "page.md"
        page.write_text("x\n<!-- devices -->\nold\n<!-- /devices -->\ny\n")
        assert run("--results", folder, "--check", page).returncode == 1
        assert run("--results", folder, page).returncode == 0
        assert page.read_text() == f"x\n<!-- devices -->\n\n{TABLE}\n<!-- /devices -->\ny\n"
        assert run("--results", folder, "--check", page).returncode == 0
        page.write_text("none")
        assert run("--results", folder, "--check", page).returncode == 1
        (folder / "a.json").write_text(json.dumps({**DEVICES["a"], "level": "dreamt"}))
        assert run("--results", folder).returncode != 0
    readme = run("--check", ROOT / "README.md")
    print(readme.stdout, end="")
    return readme.returncode


if __name__ == "__main__":
    sys.exit(main())
