#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of variants that `healcl check --quick` ends with: for each style of kernels it has all
that docs/KERNELS.md lists, and calls reach those of the style, each in all kinds of steps.

    variants.py HEALCL

Exits with 77, skipped, where there is no device.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST, share  # noqa: E402

healcl = sys.argv[1]
STYLES = {"vectors": {}, "local": {"HEALCL_AS": "gpu"}, "single": {"HEALCL_AS": "accelerator"}}
# Rows that no call can reach: for other kinds of steps, or behind one that runs all of them.
NOT_REACHED = {
    "vectors": "",
    "local": "modsum constant, mod constant, mod repeated, modneg constant, modneg repeated, chain constant, "
             "chain repeated, chain residues, ntt stages, intt stages, digits elements, digits_full_q elements",
    "single": "fill elements, copy elements, modmul table, modsum table, mod table, modneg table, chain table, "
              "abs elements, multiply_add elements, axis_modsum elements, modmul_axis_sum elements, "
              "base_conversion elements, ntt stages, digits elements, digits_full_q elements, gather elements"}


def documented():
    """Families and variants of docs/KERNELS.md."""
    found, family = set(), None
    for line in (ROOT / "docs" / "KERNELS.md").read_text().splitlines():
        heading, variant = re.match("## (.*)", line), re.match("- `([a-z]+)`", line)
        family = heading.group(1) if heading else family
        if family and variant:
            found.add((family, variant.group(1)))
    return found


def check(style):
    result = subprocess.run([healcl, "check", "--quick", "--json", "-"], cwd=ROOT, text=True,
                            env={**os.environ, **COMPILE_FAST, **STYLES[style]}, capture_output=True)
    report = json.loads(result.stdout)
    assert result.returncode == 0, report["failures"]
    rows = report["variants"]
    assert {(row["family"], row["variant"]) for row in rows} == documented()
    assert sum(row["recorded"] for row in rows) > 1000
    assert report["transcripts"]["calls"] >= 4
    assert not [row for row in rows if row["failed"] or ("kernel" in row) == ("not_reached" in row)]
    missed = [f"{row['step']} {row['variant']}" for row in rows
              if row.get("not_reached") and row["style"] in (style, "general")]
    assert ", ".join(missed) == NOT_REACHED[style], missed


def main():
    if not use_device(healcl):
        print("no device")
        return 77
    for style in share("styles of kernels", STYLES, 3):
        check(style)
    return 0


if __name__ == "__main__":
    sys.exit(main())
