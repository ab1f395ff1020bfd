#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/PERFORMANCE.md is what its data make, and how its tables are made.

Run: python3 scripts/test_performance_page.py"""

import unittest

import performance_page as page


def row(work, ns, median, verdict="good"):
    return {"work": work, "ns_per_unit": ns, "unit": "element", "against": "peer", "bar": 1.0,
            "bar_is": "at most", "verdict": verdict,
            "ratio": {"median": median, "low": median - 0.1, "high": median + 0.1}}


class Page(unittest.TestCase):
    def test_the_page_is_what_the_data_make(self):
        self.assertEqual(page.main(["--check"]), 0, "run scripts/performance_page.py")

    def test_a_row(self):
        lines = page.kernels_table([row("modmul", 0.25, 0.5)]).splitlines()
        self.assertEqual(lines[2], "| modmul | 0.25/element | peer | 0.5 [0.4, 0.6] | ≤1 |")

    def test_sizes_share_a_line_and_a_broken_bar_is_bold(self):
        lines = page.kernels_table([row("ntt, n = 16", 2, 0.5),
                                    row("ntt, n = 32", 3, 1.5, "BROKEN")]).splitlines()
        self.assertEqual(lines[2:], ["| ntt, any n | 2–3/element | peer | **0.5–1.5** | ≤1 |"])

    def test_passes(self):
        told = {**row("digits", 0, 0.5, ""), "ms": 1, "against_ms": 2, "launches": [3, 4],
                "bytes_ratio": 0.25, "of_roofline": 1.5}
        self.assertEqual(page.passes_table([told]).splitlines()[2],
                         "| digits | 1 / 2 | 0.5 [0.4, 0.6] | 3 / 4 | 0.25 | all: caches beat it |")

    def test_ranks(self):
        ratio = {"median": 1.8, "low": 1.7, "high": 1.9}
        told = {"work": "digits", "kind": "one request", "verdict": "", "rates": {},
                "medians": {"one": 10, "ranks": 18, "processes": 19},
                "against": {"one": ratio, "processes": ratio},
                "memory": {"device_bytes_peak": {"ratio": 0.53}}}
        lines = page.ranks_table([told, {"work": "sentiment", "kind": "requests", "verdict": "BROKEN",
                                         "medians": told["medians"], "against": told["against"]}])
        self.assertEqual(lines.splitlines()[2:], [
            "| digits, one request | 10 / 18 / 19 | 1.8 [1.7, 1.9] | 1.8 [1.7, 1.9] | 0.53 |",
            "| sentiment, requests | 10 / 18 / 19 | **1.8 [1.7, 1.9]** | **1.8 [1.7, 1.9]** |  |"])

    def test_machines(self):
        report = {"machine": {"processor": "P", "model": "M", "cores": 2, "load": 0.5},
                  "date": "2026-01-02", "commit": "abc", "runs": 7}
        other = {**report, "machine": {**report["machine"], "load": 1}}
        self.assertEqual(page.machine_text([report, other]),
                         "P (M), 2 cores, load at most 1.0, 2026-01-02, `abc`, 7 pairs")


if __name__ == "__main__":
    unittest.main()
