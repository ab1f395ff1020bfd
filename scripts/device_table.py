#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of devices that results/*.json make (docs/COMPARE.md), or puts it between the
markers of a page.

    device_table.py                   prints it
    device_table.py FILE...           puts it into each FILE
    device_table.py --check FILE...   exits with 1 where a FILE has another one

FILE has a line "<!-- devices -->" and one "<!-- /devices -->"; "<!-- devices: ran -->" asks for the
devices of one level alone.
"""
import argparse
import json
import re
import sys
from pathlib import Path

LEVELS = ["ran", "emulated", "compiled only"]
MARKED = re.compile(r"(<!-- devices(?:: (.*?))? -->\n).*?(<!-- /devices -->)", re.DOTALL)


def verified(part):
    runs = part.get("runs", [])
    right = sum(run["outcome"] == "verified" for run in runs)
    # Nothing to verify is nothing wrong either.
    of = sum(run["outcome"] != "nothing to verify" for run in runs)
    fallbacks = sum(run.get("fallbacks", 0) for run in runs)
    told = f"{right}/{of} transcripts"
    told += f" ({fallbacks:,} steps on the host)" if fallbacks else ""
    return told if of else ""


def checked(part):
    if part.get("message"):
        return part["message"]
    if "calls" not in part:
        return ""
    right = part["calls"] - part["failed"] - part["unsupported"]
    told = f"{right}/{part['calls']} calls"
    told += f" of {', '.join(part['operations'])}" if "operations" in part else ""
    return told + (f" ({part['unsupported']:,} beyond it)" if part["unsupported"] else "")


def cells(device):
    parts = [device[key] for key in ("compare", "check") if key in device]
    newest = max(parts, key=lambda part: part["date"], default={})
    right = [verified(device.get("compare", {})), checked(device.get("check", {})),
             device.get("note", "")]
    newest = newest or device  # what was recorded by hand
    commit = newest.get("commit", "")
    how = [device.get("driver", ""), newest["date"][:10], commit and f"`{commit}`",
           "`.ci/run`" if device.get("ci") else ""]
    return [device["title"], device["level"], ", ".join(filter(None, right)),
            ", ".join(filter(None, how))]


HEADINGS = ["device", "level", "right", "last run: driver, date, commit"]


def plain(text):
    """Escapes a driver's text, which is no markup."""
    return re.sub(r"([|<>\\])", r"\\\1", text).replace("\n", " ")


def grouped(rows):
    """Devices of which the same is told, as of one compiler, are one row."""
    groups = {}
    for title, *rest in rows:
        groups.setdefault(tuple(rest), []).append(title)
    return [[", ".join(titles), *rest] for rest, titles in groups.items()]


def table(level=None):
    folder = Path(__file__).resolve().parents[1] / "results"
    devices = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    devices = [device for device in devices if level in (None, device["level"])]
    devices.sort(key=lambda device: (LEVELS.index(device["level"]), device["title"]))
    rows = grouped([cells(device) for device in devices])
    lines = [HEADINGS, *([plain(cell) for cell in row] for row in rows)]
    lines = ["| " + " | ".join(line) + " |\n" for line in lines]
    return lines[0] + "|" + "---|" * len(HEADINGS) + "\n" + "".join(lines[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    options = parser.parse_args()
    if not options.files:
        sys.stdout.write(table())
    stale = 0
    for file in options.files:
        text = file.read_text()
        wanted, found = MARKED.subn(lambda mark: f"{mark[1]}\n{table(mark[2])}\n{mark[3]}", text)
        if not found or options.check and wanted != text:
            print(f"device_table.py: the table of {file} differs from results/; run "
                  f"scripts/device_table.py {file}")
            stale = 1
        elif wanted != text:
            file.write_text(wanted)
    return stale


if __name__ == "__main__":
    sys.exit(main())
