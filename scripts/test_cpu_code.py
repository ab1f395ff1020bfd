#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what cpu_code.py reads and what it makes of it, on measurements made by hand.

Run: python3 scripts/test_cpu_code.py"""

import json
import os
import tempfile
import unittest

import cpu_code
from cpu_code import Cost

MCA = """warning: found a call
[0] Code Region - ntt

Iterations:        100
Instructions:      2400
Total Cycles:      982

[1]    [2]    Instructions:

[1] Code Region - ntt_32

Iterations:        100
Instructions:      1600
Total Cycles:      800
"""


def row(op, ns, **other):
    return {"op": op, "shape": [64, 1, 4096], "unit": "element", "units": 100, "bytes": 2400,
            "dtype": "int64", "ns_per_unit": ns, **other}


LOOPS = {"ntt": 1.5, "ntt_32": 0.5, "modmul_halves": 4, "modmul_int128": 3, "mod": 0.2, "modsum": 0.1}


class CpuCode(unittest.TestCase):
    def test_costs_are_of_a_unit(self):
        self.assertEqual(cpu_code.parse_mca(MCA), {"ntt": Cost(982 / 800, 3), "ntt_32": Cost(0.5, 1)})

    def test_a_limit_is_the_longer_time(self):
        for op, dtype, copy, limit in (
                ("modmul", "int64", 0.1, (3, "arithmetic")), ("modmul", "int64", 0.2, (4.8, "memory")),
                ("ntt", "int64", 0, (1.5, "arithmetic")), ("ntt", "int32", 0, (0.5, "arithmetic")),
                ("modneg", "int64", 0, (0.2, "arithmetic")), ("mod", "int64", 0, (0.2, "arithmetic")),
                ("modmul_axis_sum", "int64", 0.01, (0.24, "memory"))):
            got, what = cpu_code.limit_of(row(op, 1, dtype=dtype), LOOPS, copy)
            self.assertAlmostEqual(got, limit[0], msg=op)
            self.assertEqual(what, limit[1], op)

    def test_cases_are_told_apart(self):
        self.assertEqual(cpu_code.case_of(row("ntt", 1)), "ntt, 64 x 4096")
        self.assertEqual(
            cpu_code.case_of(row("ntt", 1, layout="heal", values="any", perm="reverse", dtype="int8")),
            "ntt, 64 x 4096, int8, heal, any values, bits reversed")

    def test_columns_of_two_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, results in (("pthread-x", [row("modsum", 0.4), row("host_copy", 0.01)]),
                                  ("Intel", [row("host_copy", 0.02)])):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    json.dump({"processor": "P", "vectors": "AVX2", "load": 0.25, "loops": LOOPS, "bench": {
                        "device": {"name": name, "platform": "Intel(R) OpenCL", "driver": "1"},
                        "results": results}}, file)
            columns = cpu_code.measured(paths)
        self.assertEqual([column["title"] for column in columns],
                         ["AVX2, PoCL", "AVX2, Intel(R) OpenCL"])
        self.assertEqual(columns[0]["rows"][0], {
            "case": "modsum, 64 x 4096", "unit": "element", "ns": 0.4, "limit_ns": 0.24,
            "limited_by": "memory"})


if __name__ == "__main__":
    unittest.main()
