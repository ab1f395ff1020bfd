#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/DEVICES.md is what its data make, and how its tables are made.

Run: python3 scripts/test_devices_page.py"""

import json
import os
import tempfile
import unittest

import devices_page


class Page(unittest.TestCase):
    def test_the_page_is_what_the_data_make(self):
        self.assertEqual(devices_page.main(["--check"]), 0, "run scripts/devices_page.py")

    def test_marks(self):
        page = "head\n<!-- a -->\nold\n<!-- /a -->\ntail\n"
        self.assertEqual(devices_page.fill(page, {"a": "new\n"}),
                         "head\n<!-- a -->\n\nnew\n\n<!-- /a -->\ntail\n")
        with self.assertRaisesRegex(ValueError, "has no lines"):
            devices_page.fill("head\n", {"a": "new\n"})

    def test_a_section_is_saved_beside_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data.json")
            devices_page.save(path, loops={"costs": [{"loop": "ntt", "Zen 3": [1.5, 2]}]})
            devices_page.save(path, gpus={"kernels": []})
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file), {
                    "loops": {"costs": [{"loop": "ntt", "Zen 3": [1.5, 2]}]},
                    "gpus": {"kernels": []}})

    def test_the_worst_of_shapes(self):
        codes = [{"registers": 20, "waves": 8, "private": 0},
                 {"registers": 30, "waves": 10, "private": 16}]
        self.assertEqual(devices_page.cell_of(codes), "30 / 8 / **16 B**")
        simd = [{"simd": 32, "private": 0}, {"simd": 16, "private": 0}]
        self.assertEqual(devices_page.cell_of(simd), "SIMD16")
        self.assertEqual(devices_page.cell_of([*codes, None]), "?")

    def test_columns_with_different_operations(self):
        row = {"unit": "element", "ns": 2, "limit_ns": 1, "limited_by": "memory"}
        column = {"processor": "P", "driver": "1", "load": 0}
        text = devices_page.measured_tables([
            {**column, "title": "A",
             "rows": [{**row, "case": "copy, 4"}, {**row, "case": "copy, 8"}]},
            {**column, "title": "B", "rows": [{**row, "case": "modsum, 4"}]}])
        self.assertIn("| copy, 4 | element | 2 | 0.50 memory |  |  |", text)
        self.assertNotIn("copy, 8", text)


if __name__ == "__main__":
    unittest.main()
