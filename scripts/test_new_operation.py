#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds CONTRIBUTING.md to its word: an elementwise operation takes rows in so many files, no more.

Adds modsub, a - b C remainder p, to a copy of the tree, by rows beside modsum's. The copy is built, and
must then compute it in all shapes of kernels, in chains with other operations, on either side of them,
and with every pass. Its result may be negative, and its operands may not change places: what says so
are its rows.

Run: python3 scripts/test_new_operation.py"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import python_with_numpy

python_with_numpy.require()

import heal_oracle
from transcript_builder import INT64_MAX, Transcript

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = ("HEALCL_AS=cpu", "HEALCL_AS=gpu", "HEALCL_AS=accelerator", "HEALCL_VARIANT=general")

heal_oracle.register_modular("modsub", lambda a, b: a - b)

# File: what stands before a row, and the row.
ROWS = [
    ("src/ops/ops.def", 'OPERATION(MOD, "mod"', """\
OPERATION(MODSUB, "modsub", "elementwise", infer_elementwise, ARITHMETIC, ALIAS,
          "out = a-b, C remainder by p; broadcasting")
FORM(MODSUB, "modsub_ttt", TENSOR(a), TENSOR(b), TENSOR(p), OUT(out))
FORM(MODSUB, "modsub_tct", TENSOR(a), SCALAR(b), TENSOR(p), OUT(out))
FORM(MODSUB, "modsub", TENSOR(a), TENSOR(b), TENSOR(p), OUT(out))
FORM(MODSUB, "modsub", TENSOR(a), SCALAR(b), TENSOR(p), OUT(out))

"""),
    ("src/check/problems.def", "PROBLEM(MOD,", "PROBLEM(MODSUB, elementwise, 0, 0)\n"),
    ("src/plan/steps.def", "/* Two of those with moduli", """\
STEP(MODSUB, modsub, "modsub", "...", out, NO_WORK, UNKNOWN, MODULI, modsub, kernel, elementwise,
     .in_place = ALL, .moduli = 2, .chains = true, .batches = "...", .inputs = {"a", "b", "p"},
     .operation = "modsub", .arguments = "012o")
"""),
    ("src/reference/elementwise.c", "    EACH(MODNEG, modneg,", """\
    EACH(MODSUB, modsub, c_remainder((int128)a - b, p)) \\
"""),
    ("cl/base/geometry.h", "    EACH(MODNEG, modneg, 1)", None),
    ("cl/modular/compute.cl", "/* The same of residues", """\
static inline long compute_modsub(long a, long b, struct modulus p)
{
    if ((a ^ b) >= 0)
        return compute_mod(a - b, 0, p);
    return with_sign(reduce(magnitude(a) + magnitude(b), p), a < 0);
}

static inline long residues_modsub(long a, long b, struct modulus p)
{
    return a - b;
}

"""),
    ("cl/modular/repeated.cl", "/* out = operation of each", """\
static inline long repeated_modsub(long a, long b, struct twiddle w, struct modulus p)
{
    return compute_modsub(a, b, p);
}

"""),
    ("cl/modular/vectors.cl", "static inline long8 lanes_mod(", """\
static inline long8 lanes_modsub(long8 a, long8 b, struct lane_divisor p)
{
    long8 same = (a ^ b) >= 0;
    long8 size = as_long8(select(lane_magnitude(a) + lane_magnitude(b), lane_magnitude(a - b),
                                 as_ulong8(same)));
    return lane_sign(lane_reduce(as_ulong8(size), p), select(a, a - b, same) >> 63);
}

"""),
]


# What a newcomer may get wrong in these rows: file, what it says, and what it says then.
MISTAKES = [
    ("src/plan/steps.def", "UNKNOWN, MODULI, modsub", "RESIDUES, MODULI, modsub"),
    ("src/plan/steps.def", ".moduli = 2, .chains = true, .batches = \"...\", .inputs = {\"a\", \"b\"",
     ".moduli = 2, .commutes = true, .chains = true, .batches = \"...\", .inputs = {\"a\", \"b\""),
    ("cl/base/geometry.h", "EACH(MODSUB, modsub, 2)", "EACH(MODSUB, modsub, 1)"),
    ("cl/base/geometry.h", "EACH(MODSUM, modsum, 2)", "EACH(MODMUL, modmul, 2)"),
    ("src/reference/elementwise.c", "EACH(MODSUB, modsub, c_remainder((int128)a - b, p))",
     "EACH(MODSUB, modsub, c_remainder((int128)b - a, p))"),
]


def add_rows(tree):
    for name, before, row in ROWS:
        path = os.path.join(tree, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert text.count(before) == 1, (name, before)
        if row is None:  # behind the last one
            text = text.replace(before, before + " \\\n    EACH(MODSUB, modsub, 2)")
        else:
            text = text.replace(before, row + before)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def chains():
    """Operations of two, with modsub first or second, on either operand, in place and not."""
    t = Transcript("modsub")
    rng = t.rng
    values = [t.upload(rng.extremes((6, 40))) for _ in range(3)]
    p = t.upload(rng.integers(1, INT64_MAX, (40,)))
    for operation in ("modsub", "modmul", "modsum", "mod", "modneg"):
        for first, second in {(operation, "modsub"), ("modsub", operation)}:
            for place in range(2):
                between, out = (t.zeros((6, 40)) for _ in range(2))
                one = [values[0], values[1]] if first not in ("mod", "modneg") else [values[0]]
                t.op(first, *one, p, between)
                two = [between, values[2]][::1 - 2 * place]
                if second in ("mod", "modneg"):
                    two = [between]
                t.op(second, *two, p, out)
                t.free(between)
                t.download(out)
    return t


class Modsub(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.tree = os.path.join(cls.folder, "healcl")
        files = subprocess.run(["git", "ls-files", "CMakeLists.txt", "CMakePresets.json", "LICENSE",
                                "README.md", "CHANGELOG.md", "cl", "cmake", "include", "src", "docs"],
                               cwd=SOURCE, check=True, capture_output=True, text=True).stdout.split("\n")
        for file in filter(None, files):
            os.makedirs(os.path.join(cls.tree, os.path.dirname(file)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, file), os.path.join(cls.tree, file))
        add_rows(cls.tree)
        cls.build = os.path.join(cls.folder, "build")
        cls.healcl = os.path.join(cls.build, "healcl")
        subprocess.run(["cmake", "-S", cls.tree, "-B", cls.build, "-G", "Ninja", "-DBUILD_TESTING=OFF",
                        "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG",
                        "-DHEALCL_WERROR=ON"], check=True, stdout=subprocess.DEVNULL)
        cls.compile()

    @classmethod
    def compile(cls):
        done = subprocess.run(["cmake", "--build", cls.build, "--target", "healcl"], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_healcl(self, shape, *arguments):
        name, value = shape.split("=")
        environment = {**os.environ, name: value, "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
        done = subprocess.run([self.healcl, *arguments], env=environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, (shape, arguments, done.stdout, done.stderr))
        return done.stdout

    def test_counts_files(self):
        with open(os.path.join(SOURCE, "CONTRIBUTING.md"), encoding="utf-8") as file:
            promised = re.search(r"an elementwise operation takes rows in (\d+) files", file.read())
        self.assertEqual(len({name for name, _, _ in ROWS}), int(promised.group(1)))

    def test_every_shape_is_right(self):
        for shape in SHAPES:
            told = self.run_healcl(shape, "check", "--quick", "--op", "modsub")
            self.assertIn("calls are right", told)

    def test_what_passes_make_is_right(self):
        for shape in SHAPES[:2]:  # GPUs' kernels alone spare work where signs are known
            told = self.run_healcl(shape, "check", "--quick", "--op", "chains")
            self.assertIn("calls are right", told)

    def test_chains_are_right(self):
        path = os.path.join(self.folder, "chains.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(chains().text())
        for shape in SHAPES:
            for passes in ("none", "chains", "batches,chains"):
                self.run_healcl(shape, "run", "--passes", passes, path)
            self.run_healcl(shape, "run", path)
        told = self.run_healcl(SHAPES[0], "run", "--json", "-", path)
        self.assertIn('"modsub', told)

    @unittest.skipUnless(os.environ.get("HEALCL_TEST_ALL") == "1", "each mistake is a build")
    def test_notices_mistakes(self):
        for name, right, wrong in MISTAKES:
            path = os.path.join(self.tree, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(text.count(right), 1, (name, right))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(right, wrong))
            with self.subTest(mistake=wrong), self.assertRaises(AssertionError):
                self.compile()
                self.test_every_shape_is_right()
                self.test_what_passes_make_is_right()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.compile()


if __name__ == "__main__":
    unittest.main()
