#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds CONTRIBUTING.md to its word: an elementwise operation, and a second transform for GPUs, take so
many files, no more.

Adds both to a copy of the tree, which is then built:

- modsub, a - b C remainder p, by rows beside modsum's. The copy must compute it in all shapes of kernels,
  in chains with other operations, on either side of them, and with every pass. Its result may be
  negative, and its operands may not change places: what says so are its rows.
- a variant "second" of transforms, whose kernel is a copy of cl/ntt/local.cl. The others are spoiled then,
  so that results tell which one has run. `healcl tune` must choose the second one.

Run: python3 scripts/test_additions.py"""

import json
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
IS_ALL = os.environ.get("HEALCL_TEST_ALL") == "1"
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


# The same of a second transform for GPUs, and its own files.
NTT_ROWS = [
    ("src/kernels/ntt.def", "NTT(single, SINGLE", 'NTT(second, LOCAL, TILED, "what local can do")\n'),
    ("src/programs/programs.def", "PROGRAM(ntt_single", 'PROGRAM(ntt_second, "ntt/second")\n'),
]
NTT_LAUNCH = """\
/* Transforms in local memory, a second time: cl/ntt/second.cl. */
#include "kernels/ntt.h"

const char *lacks_ntt_second(const struct step *step, const struct healcl_device *device)
{
    return lacks_ntt_local(step, device);
}

enum healcl_status launch_ntt_second(struct launcher *self, const struct step *step,
                                     const struct variant *variant, struct healcl_error *error)
{
    return launch_ntt_local(self, step, variant, error);
}
"""
NTT_FILES = ["cl/ntt/second.cl", "src/kernels/ntt_second.c"]
NTT_GENERATED = ["docs/KERNELS.md"]
# The transforms that the second one is to go before: wrong, or not to be built.
SPOILED = [
    ("cl/ntt/local.cl", "        *x = a + b;\n", "        *x = a + b + 1;\n"),
    ("cl/ntt/rows.cl", '#include "tensor_rows.cl"\n', "#error\n"),
    ("cl/ntt/single.cl", '#include "tensor_rows.cl"\n', "#error\n"),
]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def add_rows(tree, rows):
    for name, before, row in rows:
        path = os.path.join(tree, name)
        text = read(path)
        assert text.count(before) == 1, (name, before)
        if row is None:  # behind the last one
            text = text.replace(before, before + " \\\n    EACH(MODSUB, modsub, 2)")
        else:
            text = text.replace(before, row + before)
        write(path, text)


def replace(tree, name, old, new):
    """-> what the file was"""
    path = os.path.join(tree, name)
    text = read(path)
    assert text.count(old) == 1, (name, old)
    write(path, text.replace(old, new))
    return text


class Copy:
    """A copy of the tree, with what is added, and what is built of it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.tree = os.path.join(self.folder, "healcl")
        files = subprocess.run(["git", "ls-files", "CMakeLists.txt", "CMakePresets.json", "LICENSE",
                                "README.md", "CHANGELOG.md", "cl", "cmake", "include", "src", "docs"],
                               cwd=SOURCE, check=True, capture_output=True, text=True).stdout.split("\n")
        for file in filter(None, files):
            os.makedirs(os.path.join(self.tree, os.path.dirname(file)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, file), os.path.join(self.tree, file))
        add_rows(self.tree, ROWS + NTT_ROWS)
        texts = [read(os.path.join(self.tree, "cl/ntt/local.cl")), NTT_LAUNCH]
        for name, text in zip(NTT_FILES, texts):
            write(os.path.join(self.tree, name), text)
        self.build = os.path.join(self.folder, "build")
        self.healcl = os.path.join(self.build, "healcl")
        subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DBUILD_TESTING=OFF",
                        "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG",
                        "-DHEALCL_WERROR=ON"], check=True, stdout=subprocess.DEVNULL)
        self.compile()

    def compile(self):
        done = subprocess.run(["cmake", "--build", self.build, "--target", "healcl"], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr

    def run(self, variables, *arguments):
        """-> how it ended; variables: "NAME=VALUE" ..."""
        environment = {**os.environ, "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable",
                       **dict(variable.split("=", 1) for variable in variables)}
        return subprocess.run([self.healcl, *arguments], env=environment, capture_output=True, text=True,
                              check=False)


def setUpModule():
    global copy
    copy = Copy()


def tearDownModule():
    shutil.rmtree(copy.folder)


class Addition(unittest.TestCase):
    def run_healcl(self, variables, *arguments):
        done = copy.run(variables, *arguments)
        self.assertEqual(done.returncode, 0, (variables, arguments, done.stdout, done.stderr))
        return done.stdout

    def promised(self, pattern):
        return int(re.search(pattern, read(os.path.join(SOURCE, "CONTRIBUTING.md"))).group(1))


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


class Modsub(Addition):
    @classmethod
    def setUpClass(cls):
        copy.compile()

    def test_counts_files(self):
        self.assertEqual(len({name for name, _, _ in ROWS}),
                         self.promised(r"an elementwise operation takes rows in (\d+) files"))

    def test_every_shape_is_right(self):
        for shape in SHAPES:
            told = self.run_healcl([shape], "check", "--quick", "--op", "modsub")
            self.assertIn("calls are right", told)

    def test_what_passes_make_is_right(self):
        for shape in SHAPES[:2]:  # GPUs' kernels alone spare work where signs are known
            told = self.run_healcl([shape], "check", "--quick", "--op", "chains")
            self.assertIn("calls are right", told)

    def test_chains_are_right(self):
        path = os.path.join(copy.folder, "chains.json")
        write(path, chains().text())
        for shape in SHAPES:
            for passes in ("none", "chains", "batches,chains"):
                self.run_healcl([shape], "run", "--passes", passes, path)
            self.run_healcl([shape], "run", path)
        told = self.run_healcl(SHAPES[:1], "run", "--json", "-", path)
        self.assertIn('"modsub', told)

    @unittest.skipUnless(IS_ALL, "each mistake is a build")
    def test_notices_mistakes(self):
        for name, right, wrong in MISTAKES:
            before = replace(copy.tree, name, right, wrong)
            with self.subTest(mistake=wrong), self.assertRaises(AssertionError):
                copy.compile()
                self.test_every_shape_is_right()
                self.test_what_passes_make_is_right()
            write(os.path.join(copy.tree, name), before)
        copy.compile()


class SecondTransform(Addition):
    TRANSCRIPT = os.path.join(SOURCE, "transcripts", "recognizer.json")
    SECOND = ["HEALCL_AS=gpu", "HEALCL_TUNING=transform=local:second"]

    @classmethod
    def setUpClass(cls):
        cls.before = {name: replace(copy.tree, name, old, new) for name, old, new in SPOILED}
        copy.compile()

    @classmethod
    def tearDownClass(cls):
        for name, text in cls.before.items():
            write(os.path.join(copy.tree, name), text)

    def kernels(self, variables, transcript=TRANSCRIPT):
        """-> of those for ntt, by name: steps, and reasons why not"""
        told = json.loads(self.run_healcl(variables, "inspect", "--kernels", "--json", "-", transcript))
        return {kernel["kernel"]: (kernel["steps"], [why["reason"] for why in kernel["why_not"]])
                for kernel in told["kernels"] if kernel["step"] == "ntt"}

    def test_counts_files(self):
        files = {name for name, _, _ in NTT_ROWS}.union(NTT_FILES, NTT_GENERATED)
        self.assertEqual(len(files), self.promised(r"A second transform for GPUs takes (\d+) files"))

    def test_page_of_kernels_has_a_line_more(self):
        lines = read(os.path.join(SOURCE, "docs", "KERNELS.md")).splitlines()
        made = self.run_healcl([], "ops", "--kernels").splitlines()
        added = [line for line in made if line not in lines and not line.startswith("Steps:")]
        self.assertEqual([line[:10] for line in added], ["- `second`"])
        self.assertEqual(len(made), len(lines) + 1)

    def test_default_stays(self):
        told = self.kernels(["HEALCL_AS=gpu"])
        self.assertGreater(told["local"][0], 0)
        self.assertEqual(told["second"], (0, ["one before it can"]))
        wrong = copy.run(["HEALCL_AS=gpu"], "run", self.TRANSCRIPT)
        self.assertEqual(wrong.returncode, 1, wrong.stderr)

    def test_what_the_environment_prefers_runs(self):
        told = self.kernels(self.SECOND)
        self.assertEqual(told["local"], (0, ["the tuning prefers second"]))
        self.assertGreater(told["second"][0], 0)
        self.run_healcl(self.SECOND, "run", self.TRANSCRIPT)
        if IS_ALL:
            told = self.run_healcl(self.SECOND, "check", "--quick", "--op", "ntt")
            self.assertIn("calls are right", told)
        unknown = copy.run(["HEALCL_TUNING=transform=local:third"], "run", self.TRANSCRIPT)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("HEALCL_TUNING is 'transform=local:third', not like", unknown.stderr)

    def test_what_it_lacks_another_does(self):
        """With little local memory the general kernel does long rows."""
        variables = ["HEALCL_AS=gpu", "HEALCL_TUNING=transform=local:second,transform_tile=64"]
        told = self.kernels(variables, os.path.join(SOURCE, "transcripts", "ntt.json"))
        self.assertGreater(told["stages"][0], 0)
        self.assertEqual(told["second"][1], ["rows do not fit two passes"])

    def test_tune_chooses_it(self):
        """With work-groups of one work-item, of which there are few choices, unless all is asked for."""
        kept = os.path.join(copy.folder, "kept")
        variables = ["HEALCL_CACHE_DIR=" + kept, *([] if IS_ALL else ["POCL_MAX_WORK_GROUP_SIZE=1"])]
        report = json.loads(self.run_healcl([*variables, "HEALCL_AS=gpu"], "tune", "--force", "--op",
                                            "transform", "--json", "-"))
        outcomes = {}
        for alternative in report["alternatives"]:
            outcomes.setdefault(alternative["choice"].split(",")[0], set()).add(alternative["outcome"])
        self.assertEqual(outcomes, {"transform=local": {"wrong"}, "transform=local:second": {"right"},
                                    "transform=general": {"right"}, "transform=vectors": {"failed"},
                                    "transform=single": {"failed"}})
        chosen = [a for a in report["alternatives"] if a["chosen"]]
        self.assertEqual(len(chosen), 1)
        self.assertIn("transform=local:second", chosen[0]["choice"])
        self.assertIn(",transform=local:second", report["tuning"])
        # It is in force from now on, where the device is what it is.
        self.assertIn(", transform by second\n", self.run_healcl(variables, "devices"))
        self.assertGreater(self.kernels(variables)["second"][0], 0)
        self.run_healcl(variables, "run", self.TRANSCRIPT)


if __name__ == "__main__":
    unittest.main()
