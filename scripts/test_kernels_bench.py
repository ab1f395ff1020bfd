#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what bench.sh --kernels says, on programs whose times are known.

Run: python3 scripts/test_kernels_bench.py"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import kernels_bench

# A program that takes RULES: pairs of words that options have and of times for that. It writes down
# how it was called.
FAKE = """#!%(python)s -IS
import os, sys
arguments = " ".join(sys.argv[1:])
log = %(log)r
calls = open(log).read().splitlines() if os.path.exists(log) else []
mine = sum(line.startswith(%(name)r) for line in calls)
with open(log, "a") as file:
    print(%(name)r, os.environ["POCL_MAX_PTHREAD_COUNT"], os.environ["OMP_NUM_THREADS"],
          len(os.sched_getaffinity(0)), arguments, file=file)
for words, ns in %(rules)r:
    if all(word in arguments.split() for word in words.split()):
        break
else:
    sys.exit(2)
if isinstance(ns, str):
    print(ns)
    sys.exit("exit" in ns)
if isinstance(ns, list):
    ns = ns[mine %% len(ns)]
units = %(units)r
print('{"results": [{"unit": "element", "units": %%d, "bytes": %%d, "median_ns": %%f}]}'
      %% (units, 4 * units, ns * units))
"""
HEXL_MODMUL = "^modmul$"  # rows
ANY_VALUES = "^modmul, any"


class KernelsBench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="healcl-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fake(self, name, rules, units=1000):
        """A program; where rules is a number, all cases take that."""
        rules = rules if isinstance(rules, list) else [("", rules)]
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(FAKE % {"python": sys.executable, "log": self.log, "name": name,
                               "rules": rules, "units": units})
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def bench(self, healcl, *arguments):
        """-> exit code, rows, what was printed"""
        out, err, saved = io.StringIO(), io.StringIO(), self.path("told.json")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = kernels_bench.main(["--healcl", self.fake("healcl", healcl), "--runs", "3",
                                       "--json", saved, *arguments])
        with open(saved, encoding="utf-8") as file:
            return code, json.load(file)["rows"], out.getvalue() + err.getvalue()

    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as err, \
                self.assertRaises(SystemExit) as caught:
            kernels_bench.main(["--healcl", "healcl", *arguments])
        self.assertEqual(caught.exception.code, 2)
        return err.getvalue()

    def calls(self):
        with open(self.log, encoding="utf-8") as file:
            return [line.split() for line in file]

    def check_peer(self, ours, theirs, only, name, verdict, ratio):
        peer = self.fake("peer", theirs)
        code, rows, out = self.bench(ours, "--only", only, "--peer", name + "=" + peer)
        self.assertEqual(rows[0]["verdict"], verdict)
        self.assertAlmostEqual(rows[0]["ratio"]["median"], ratio, places=4)
        self.assertEqual(code, int(verdict == "BROKEN"))
        self.assertIn(verdict, out)

    def test_bars_of_peers(self):
        self.check_peer(2.0, 2.1, HEXL_MODMUL, "hexl", "good", 2 / 2.1)
        self.check_peer(2.0, 1.9, HEXL_MODMUL, "hexl", "BROKEN", 2 / 1.9)
        self.check_peer(1.0, 0.9, "^abs", "numpy", "BROKEN", 1 / 0.9)

    def test_markdown(self):
        peer = self.fake("peer", 2.0)
        _, _, out = self.bench(1.0, "--only", HEXL_MODMUL, "--peer", "hexl=" + peer, "--markdown")
        lines = [line for line in out.splitlines() if line.startswith("|")]
        self.assertEqual(lines[0], "| work | ns per unit | against | ratio | interval | bar |  | verdict |")
        self.assertEqual(set(lines[1]), {"|", "-"})
        self.assertTrue(lines[2].endswith("| hexl | 0.5 | [0.5, 0.5] | at most 1 |  | good |"), lines[2])
        self.assertEqual({line.count("|") for line in lines}, {9})

    @unittest.skipIf(len(kernels_bench.CORES) < 2, "needs two cores")
    def test_bar_that_is_at_least(self):
        self.check_peer(1.0, 51.0, "^mod, two", "heal_sdk", "good", 51)
        self.check_peer(1.0, 49.0, "^mod, two", "heal_sdk", "BROKEN", 49)

    @unittest.skipIf(len(kernels_bench.CORES) < 2, "needs two cores")
    def test_bytes_of_bandwidth(self):
        """A copy of 1 ns per element takes 0.25 ns per byte."""
        for ns, verdict in ((1.4, "good"), (1.45, "BROKEN")):
            _, rows, _ = self.bench([("host_copy", 1.0), ("", ns)], "--only", "^take.*512")
            self.assertEqual(rows[0]["verdict"], verdict)
            self.assertAlmostEqual(rows[0]["ns_per_unit"], ns / 4, places=4)
            self.assertAlmostEqual(rows[0]["ratio"]["median"], 1 / ns, places=4)
            self.assertEqual(rows[0]["unit"], "byte")

    def test_bars_of_own_cases(self):
        for ns, verdict in ((1.59, "good"), (1.61, "BROKEN")):
            code, rows, _ = self.bench([("any", ns), ("", 1.0)], "--only", ANY_VALUES)
            self.assertEqual((code, rows[0]["verdict"]), (int(verdict == "BROKEN"), verdict))

    def test_without_peer(self):
        code, rows, out = self.bench(1.25, "--only", HEXL_MODMUL)
        self.assertEqual((code, rows[0]["verdict"], rows[0]["ratio"]), (0, "no peer", None))
        self.assertAlmostEqual(rows[0]["ns_per_unit"], 1.25)
        self.assertNotIn("good", out)

    def test_peer_without_case(self):
        peer = self.fake("peer", [("ntt", 1.0)])
        code, rows, _ = self.bench(1.25, "--only", HEXL_MODMUL, "--peer", "hexl=" + peer)
        self.assertEqual((code, rows[0]["verdict"]), (0, "no such case"))
        self.assertAlmostEqual(rows[0]["ns_per_unit"], 1.25)

    def test_programs_that_fail(self):
        for rules, units, why in (("exit", 1000, "exit code 1"), ("[]", 1000, "no result"),
                                  (1.0, 999, "counts 999 units"), (0.0, 1000, "no time")):
            peer = self.fake("peer", rules, units)
            code, rows, out = self.bench(1.0, "--only", HEXL_MODMUL, "--peer", "hexl=" + peer)
            self.assertEqual((code, rows[0]["verdict"]), (1, "FAILED"))
            self.assertIn(why, out)
        code, rows, _ = self.bench([("no-such-word", 1.0)], "--only", HEXL_MODMUL)
        self.assertEqual((code, rows[0]["verdict"]), (1, "FAILED"))

    def test_other_peers_are_shown(self):
        old = self.fake("old", [("any", 1.0), ("", 0.5)])
        code, rows, _ = self.bench(1.0, "--only", "^modmul(, any values)?$", "--peer", old)
        told = [(row["work"], row["against"], row["verdict"]) for row in rows]
        self.assertEqual(code, 0)
        self.assertEqual(told, [("modmul", "hexl", "no peer"),
                                ("modmul, any values", "modmul", "good"),
                                ("modmul", "old", "not judged"),
                                ("modmul, any values", "old", "not judged")])
        self.assertAlmostEqual(rows[2]["ratio"]["median"], 2)
        self.assertAlmostEqual(rows[3]["ratio"]["median"], 1)

    def test_runs_alternate_on_so_many_cores(self):
        peer = self.fake("peer", 1.0)
        self.bench(1.0, "--only", HEXL_MODMUL, "--peer", "hexl=" + peer)
        calls = self.calls()
        self.assertEqual([call[0] for call in calls], ["healcl", "peer"] * 3)
        self.assertEqual({tuple(call[4:]) for call in calls}, {tuple(
            ["bench", *kernels_bench.MODMUL.options.split(), "--json", "-"])})
        cores = "1" if shutil.which("taskset") else str(len(os.sched_getaffinity(0)))
        self.assertEqual({tuple(call[1:4]) for call in calls}, {("1", "1", cores)})

    @unittest.skipIf(len(kernels_bench.CORES) < 2, "needs two cores")
    def test_two_cores(self):
        self.bench(1.0, "--only", "^ntt, n = 4096, two", "--quick", "--runs", "1")
        self.assertEqual([call[1] for call in self.calls()], ["2", "1"])
        self.assertTrue(all("--repeat" in call for call in self.calls()))

    @mock.patch.object(kernels_bench, "CORES", [0])
    def test_one_core_only(self):
        code, rows, _ = self.bench(1.0, "--only", "^ntt, n = 4096, two")
        self.assertEqual((code, rows[0]["verdict"]), (0, "too few cores"))

    def test_ratio_is_of_pairs(self):
        """The medians of both are alike; of the pairs' ratios it is not."""
        peer = self.fake("peer", [("", [3.0, 1.0, 2.0])])
        _, rows, _ = self.bench([("", [1.0, 2.0, 3.0])], "--only", HEXL_MODMUL, "--peer",
                                "hexl=" + peer)
        ratio = rows[0]["ratio"]
        self.assertAlmostEqual(rows[0]["ns_per_unit"], rows[0]["against_ns_per_unit"])
        for name, expected in (("median", 1.5), ("low", 1 / 3), ("high", 2.0)):
            self.assertAlmostEqual(ratio[name], expected)

    def test_interval(self):
        self.assertEqual(kernels_bench.interval_ranks(15), (4, 12, 1 - 2 * 576 / 32768))
        self.assertEqual(kernels_bench.interval_ranks(6), (1, 6, 0.96875))
        self.assertEqual(kernels_bench.interval_ranks(3), (1, 3, 0.75))
        told = kernels_bench.summary([float(i) for i in (9, 2, 15, 1, 4, 12, 3, 5, 14, 6, 7, 8, 10,
                                                         11, 13)])
        self.assertEqual((told["median"], told["low"], told["high"]), (8, 4, 12))

    def test_saved_run(self):
        saved = self.path("saved.json")
        self.bench([("any", 1.4), ("", 1.0)], "--only", "^modmul", "--save", saved)
        for ns, code in ((1.08, 0), (1.12, 1)):
            actual, rows, out = self.bench([("any", 1.4), ("", ns)], "--only", "^modmul$",
                                           "--against", saved)
            self.assertEqual((actual, rows[0]["slower"]), (code, bool(code)))
            self.assertAlmostEqual(rows[0]["of_saved"], ns, places=4)
            self.assertEqual("SLOWER" in out, bool(code))
            self.assertNotIn("ANOTHER MACHINE", out)
        with open(saved, encoding="utf-8") as file:
            report = json.load(file)
        report["machine"]["processor"] = "an abacus"
        with open(saved, "w", encoding="utf-8") as file:
            json.dump(report, file)
        _, _, out = self.bench(1.0, "--only", "^modmul$", "--against", saved)
        self.assertIn("an abacus: ANOTHER MACHINE", out)

    def test_json_alone(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            kernels_bench.main(["--healcl", self.fake("healcl", 1.0), "--runs", "1", "--only",
                                ANY_VALUES, "--json", "-"])
        self.assertEqual(json.loads(out.getvalue())["rows"][0]["verdict"], "good")

    def test_bad_usage(self):
        self.assertIn("no row matches", self.refused("--only", "nothing-like-it"))
        self.assertIn("cannot be run", self.refused("--peer", "hexl=/nowhere"))
        self.assertIn("same name", self.refused("--peer", "a=true", "--peer", "a=false"))
        self.assertIn("cannot write", self.refused("--json", "/nowhere/run.json"))
        self.refused("--runs", "0")
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(kernels_bench.main(["--healcl", "x", "--against", "/nowhere"]), 2)
        self.assertIn("cannot read the saved run", err.getvalue())


class TheTable(unittest.TestCase):
    def test_only(self):
        def chosen(pattern):
            return {row.work for row in kernels_bench.chosen_rows(pattern, {})}

        self.assertEqual(chosen("as [l,r,k,n], 512"), {"[l,n,r,k] as [l,r,k,n], 512 MB, two cores"})
        self.assertEqual(chosen("^ntt, n = 4096$"), {"ntt, n = 4096"})
        self.assertEqual(len(chosen("hexl")), 7)
        self.assertEqual(len(chosen("")), len({row.work for row in kernels_bench.ROWS}))

    def test_rows_differ(self):
        keys = [(row.work, row.against) for row in kernels_bench.ROWS]
        self.assertEqual(len(keys), len(set(keys)))

    def test_healcl_knows_the_options(self):
        top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        programs = [os.path.join(top, "build", preset, "healcl") for preset in ("test", "release")]
        program = next(filter(os.path.exists, programs), None)
        if not program:
            self.skipTest("healcl is not built")
        listed = subprocess.run([program, "bench", "--list"], capture_output=True, text=True,
                                check=True).stdout.splitlines()
        known = {words[0]: set(words[1:]) for words in map(str.split, listed)}
        cases = [row.case for row in kernels_bench.ROWS]
        cases += [row.base for row in kernels_bench.ROWS if row.base]
        for case in cases:
            words = case.options.split()
            self.assertLessEqual(set(words[2::2]), known[words[1]], case.options)


if __name__ == "__main__":
    unittest.main()
