#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: which small faults in the sources do the tests not notice?

    scripts/mutants.py --files 'src/plan/*.c' --count 200 --seed 1
    scripts/mutants.py --files 'cl/**/*.cl' --count 300 --seed 1
    scripts/mutants.py --files 'src/plan/*.c' --count 200 --seed 1 --survivors

A mutant is one file with one small change. The seed draws --count of all that the files have, without
any weight. Each is built in a copy of the tree, in --build, and tested until one test fails: the cheapest
first, and those before it that have noticed most until then. It is killed where a test fails, crashes, or takes much more processor time than it
should. Not viable is one that does not compile, and one whose code is what the compiler makes of the
unchanged file. What is done is kept in the build folder: the same command goes on where it stopped, and
--survivors tests those again that have survived, with the tests as they are now.

Changes: < and <=, > and >=, == and !=, + and -, += and -=, && and ||, true and false swapped; 0 and 1 off
by one; conditions negated; single statements removed. In kernels also: terms as `- q` dropped, indices
one higher, loops that end one earlier.

Files of src/plan are tested by unit tests, golden files, refused and bundled transcripts, random programs
(where a Python has NumPy), and unit tests under sanitizers, by clang; kernels by the operations that use them, as `healcl check` tests them
with the variants that the file has, and by unit tests of kernels. All of it needs a device that OpenCL
finds. Environment variables of the caller count: POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable and a
POCL_CACHE_DIR of its own save time."""
import argparse
import collections
import fnmatch
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RANDOM_SEEDS = (101, 102, 103, 104)

Change = collections.namedtuple("Change", "file line start end new operator")

# ---------------------------------------------------------------- changes


def masked(text, is_kernel):
    """The text with comments, strings, characters and what the preprocessor reads blanked out. Of
    kernels the bodies of macros are left."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.DOTALL)
    if is_kernel:
        text = re.sub(r"^[ \t]*#[ \t]*define[ \t]+\w+(\([^)\n]*\))?", blank, text, flags=re.MULTILINE)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", blank, text, flags=re.MULTILINE)


SWAPS = [("boundary", r"(?<=\s)(<=|>=|<|>)(?=\s)", {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
         ("equality", r"(==|!=)", {"==": "!=", "!=": "=="}),
         ("sum", r"(?<=\s)([+-]=?)(?=\s)", {"+": "-", "-": "+", "+=": "-=", "-=": "+="}),
         ("logic", r"(&&|\|\|)", {"&&": "||", "||": "&&"}),
         ("boolean", r"\b(true|false)\b", {"true": "false", "false": "true"}),
         ("constant", r"(?<![\w.'])([01])(?![\w.'])", {"0": "1", "1": "0"}),
         ("constant", r"(?<![\w.'])(1)(?![\w.'])", {"1": "2"})]

STATEMENT = re.compile(
    r"(?P<body>(?:continue|break|"
    r"(?!return\b|sizeof\b|for\b|if\b|while\b|switch\b)[A-Za-z_]\w*\([^;{}]*\)|"
    r"\*?[A-Za-z_]\w*(?:(?:->|\.)\w+|\[[^;=\]]*\])*\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)[^;{}]*|"
    r"(?:\+\+|--)?[A-Za-z_][\w.>\[\]-]*(?:\+\+|--)));")


def closing(text, start):
    """Where the parenthesis that is open at start closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def spans(code, is_kernel):
    """(start, end, what stands there instead, the operator) of each change."""
    for operator, pattern, others in SWAPS:
        for match in re.finditer(pattern, code):
            yield match.start(1), match.end(1), others[match.group(1)], operator
    for match in re.finditer(r"\b(?:if|while) \(", code):
        start, end = match.end() - 1, closing(code, match.end() - 1)
        if end:
            yield start, end + 1, lambda old: "(!%s)" % old, "negated"
    for match in re.finditer(r"(?<=[;{}:)\n])[ \t]*\n[ \t]+(?=\S)|\belse\n[ \t]+", code):
        statement = STATEMENT.match(code, match.end())
        before = code[:match.start()].rstrip()
        if statement and (before[-1:] in ";{}:)" or before.endswith("else")):
            yield statement.start(), statement.end() - 1, "", "removed"
    if is_kernel:
        for match in re.finditer(r" [+-] \(?(?:two_|2 \* |4 \* )?(?:q|p|modulus|moduli)\b\)?", code):
            if match.group().count("(") == match.group().count(")"):
                yield match.start(), match.end(), "", "modulus"
        for match in re.finditer(r"\w\[([^\[\]\n]*\b[a-z]\w*[^\[\]\n]*)\]", code):
            yield match.start(1), match.end(1), lambda old: "(%s) + 1" % old, "index"
        for match in re.finditer(r"\bfor \([^;]*; *(\w+) < ", code):
            yield match.start(1), match.end(1), lambda old: old + " + 1", "loop"


def changes_of(file):
    """All of one file, in order."""
    with open(os.path.join(SOURCE, file), encoding="utf-8") as source:
        text = source.read()
    is_kernel = file.endswith(".cl")
    found = set()
    for start, end, new, operator in spans(masked(text, is_kernel), is_kernel):
        new = new(text[start:end]) if callable(new) else new
        found.add(Change(file, text.count("\n", 0, start) + 1, start, end, new, operator))
    return sorted(found)


def told(change):
    """FILE:LINE: the line as it was, and what has changed in it."""
    with open(os.path.join(SOURCE, change.file), encoding="utf-8") as source:
        text = source.read()
    first, last = text.rfind("\n", 0, change.start) + 1, text.find("\n", change.end)
    lines = [" ".join(line.split()) for line in (
        text[first:last], text[first:change.start] + change.new + text[change.end:last])]
    return "%s:%d: %s: %s  =>  %s" % (change.file, change.line, change.operator, *lines)


# ---------------------------------------------------------------- tests

# build: "build", or "sanitized", which is made with sanitizers.
Test = collections.namedtuple("Test", "name targets command environment build", defaults=["build"])
PROGRAM = "{build}/healcl"


def unit(name, **environment):
    of = ".".join([name, *environment.values()])
    return Test("unit." + of, ["tests/unit_tests"], ["{build}/tests/unit_tests", name], environment)


def sanitized(name):
    """A unit test that opens no device, for what reads out of bounds and leaks."""
    return Test("sanitized." + name, ["tests/unit_tests"], ["{sanitized}/tests/unit_tests", name],
                {"ASAN_OPTIONS": "detect_leaks=1"}, "sanitized")


def golden(case):
    return Test("cli." + case, ["healcl"], [sys.executable, "-B", "{tree}/tests/cli/golden.py", PROGRAM,
                                            "{tree}/tests/cli/cases/%s.txt" % case], {})


def own(kind):
    """What this script runs itself: see run_transcripts."""
    return Test("conformance." + kind, ["healcl"],
                [sys.executable, "-B", "{source}/scripts/mutants.py", "--transcripts", kind, PROGRAM], {})


def check(operations, **environment):
    """Some operations on small tensors, in order, or what comes of some passes."""
    line = " && ".join('"$0" check --quick --op ' + operation for operation in operations.split())
    of = ".".join([operations.replace(" ", "_"), *environment.values()])
    return Test("check." + of, ["healcl"], ["sh", "-c", line, PROGRAM], environment)


def simulated(**environment):
    """A small transcript on Oclgrind, where scripts/setup-vendors.sh has put it: accesses out of
    bounds, and races, are in its log."""
    line = ('. ~/.local/share/healcl/vendors/environment && rm -f "$OCLGRIND_LOG" && '
            '"$0" run "$1" && ! test -s "$OCLGRIND_LOG"')
    of = ".".join(["simulated", *environment.values()])
    return Test(of, ["healcl"], ["sh", "-c", line, PROGRAM, "{tree}/transcripts/plain.json"],
                {"HEALCL_DEVICE": "Oclgrind", "OCLGRIND_DATA_RACES": "1", **environment})


MEMORY = Test("unit.test_plan_faults", ["tests/test_plan_faults"],
              ["{build}/tests/test_plan_faults"], {})
STEPS, SANITIZED = golden("steps"), [sanitized("test_plan_rules")]
PASSES = [unit("test_plan_rules"), STEPS, unit("test_plan_cost"), own("reference"),
          unit("test_plan_values"), golden("inspect"), own("random"), unit("test_plan_passes"),
          unit("test_executor_values"),
          unit("test_vendor_operations"), MEMORY]
CALLS = [STEPS, golden("bad"), unit("test_plan_limits"), own("bad"),
         own("reference"), own("random"), golden("inspect"), golden("run"), unit("test_plan_steps"),
         unit("test_executor_errors"), unit("test_public"), unit("test_run_session"),
         unit("test_run_tensor"), unit("test_vendor_operations"), MEMORY]

# By the start of a file's path, the longest that fits; the cheapest first.
PLAN = {
    "src/plan/": CALLS,
    "src/plan/axes": [STEPS, unit("test_plan_axes"), unit("test_plan_widen"),
                      unit("test_plan_split_axes"), unit("test_plan_steps"), unit("test_run_audit"),
                      golden("diagnose"), unit("test_plan_memory"), unit("test_plan_split")],
    "src/plan/cost": [unit("test_plan_cost"), unit("test_plan_axes"), STEPS, unit("test_plan_limits"),
                      golden("inspect"), golden("json"), own("bad"), unit("test_plan_steps"),
                      golden("diagnose")],
    "src/plan/derive": [STEPS, unit("test_plan_widen"),
                        unit("test_vendor_operations"),
                        unit("test_run_widen"), unit("test_plan_split"), MEMORY],
    "src/plan/live": [unit("test_plan_live"), MEMORY, unit("test_public"), unit("test_run_causes"),
                      unit("test_run_queue"), unit("test_run_session"),
                      unit("test_vendor_operations"), unit("test_executor_errors")],
    "src/plan/memory": [unit("test_plan_memory"), golden("inspect"), own("bad"), own("random"), MEMORY],
    "src/plan/split": [unit("test_plan_split_axes"),
                       STEPS, MEMORY, unit("test_plan_split")],
    "src/plan/widen": [unit("test_plan_widen"), unit("test_plan_axes"),
                       unit("test_vendor_operations"), unit("test_run_widen"), MEMORY],
    "src/plan/origin": PASSES + [golden("fallback")],
    "src/plan/pass": PASSES,
    "src/plan/places": [unit("test_plan_places"), unit("test_executor_batching"), golden("inspect"),
                        golden("json"), own("random"), MEMORY],
    "src/plan/transcript": CALLS + [unit("test_plan_split"),
                                    unit("test_run_widen")],
    "src/plan/values": PASSES,
}

GPU, SINGLE = {"HEALCL_AS": "gpu"}, {"HEALCL_AS": "accelerator"}
GENERAL = {"HEALCL_VARIANT": "general"}
TRANSFORMS = [check("ntt intt"), check("chains"), unit("test_kernels_transforms"),
              unit("test_kernels_paths")]
HALVES = {"HEALCL_TUNING": "multiply=halves"}
LOCAL = {"HEALCL_TUNING": "local,transform_local_size=64"}
PAST_CACHES = {"HEALCL_TUNING": "past_caches_bytes=1"}
DIGITS = "apply_g_decomp apply_g_decomp_relative_to_full_q"
MODULAR = "modmul modsum mod modneg abs"

# The same of kernels.
KERNELS = {
    "cl/base/": [unit("test_programs_self_test"), check(MODULAR), check("axis_modsum intt"),
                 check("contiguous set_const_val"), check("chains"), unit("test_arithmetic_lanes"),
                 unit("test_kernels_paths"), check("modmul intt", **GPU)],
    "cl/base/derive": [check("axis_modsum intt"), check("chains"), unit("test_executor_errors"),
                       check("apply_g_decomp_relative_to_full_q permute take_along_axis"),
                       unit("test_executor_values"), unit("test_kernels_paths"),
                       unit("test_kernels_passes"), unit("test_kernels_paths", **LOCAL)],
    "cl/base/divisor": [check(MODULAR), check(MODULAR, **HALVES), check("chains"),
                        unit("test_arithmetic_lanes"), unit("test_kernels_paths"),
                        unit("test_kernels_paths", **HALVES), unit("test_kernels_sums")],
    "cl/base/groups": [check("axis_modsum modmul_axis_sum"), check("chains"),
                       unit("test_kernels_interleaved"), unit("test_kernels_sums")],
    "cl/base/lanes": [unit("test_arithmetic_lanes"), check("intt"), check(MODULAR)],
    "cl/base/measure": [golden("device"), unit("test_run_bench")],
    "cl/base/self_test": [unit("test_programs_self_test"), golden("device")],
    "cl/base/transpose": [check("intt"), check("axis_modsum modmul_axis_sum"),
                          unit("test_kernels_sums")],
    "cl/copy/general": [check("contiguous set_const_val", **GENERAL), unit("test_kernels_variants"),
                        check("contiguous set_const_val", **GPU), unit("test_kernels_wide")],
    "cl/copy/lines": [check("contiguous set_const_val abs", **PAST_CACHES),
                      unit("test_kernels_moves")],
    "cl/copy/local": [check("contiguous", **GPU), unit("test_kernels_wide"),
                      unit("test_kernels_moves", **GPU)],
    "cl/copy/tiles": [check("contiguous"), unit("test_kernels_moves")],
    "cl/digits/": [check(DIGITS), check(DIGITS, **GPU), check(DIGITS, **GENERAL),
                   check(DIGITS, **SINGLE), unit("test_kernels_moves"),
                   unit("test_kernels_variants"), unit("test_kernels_moves", **GPU)],
    "cl/gather/": [check("take_along_axis permute"), check("take_along_axis permute", **GPU),
                   check("take_along_axis permute", **GENERAL), unit("test_kernels_moves")],
    "cl/modular/": [check(MODULAR, **GENERAL), check("chains", **GENERAL), check(MODULAR, **GPU),
                    unit("test_kernels_residues", **GPU), unit("test_kernels_wide"),
                    unit("test_kernels_paths", **GENERAL)],
    "cl/modular/interleaved": [unit("test_kernels_interleaved"), check("chains"),
                               unit("test_plan_passes")],
    "cl/modular/repeated": [check(MODULAR, **GPU), unit("test_kernels_wide"),
                            unit("test_kernels_paths", **GPU)],
    "cl/modular/vectors": [check(MODULAR), check("chains"), unit("test_kernels_interleaved"),
                           unit("test_kernels_residues"), unit("test_kernels_paths")],
    "cl/ntt/": TRANSFORMS,
    "cl/ntt/general": [check("ntt intt", **GENERAL), unit("test_executor_values"),
                       unit("test_kernels_transforms"), unit("test_kernels_paths", **GENERAL)],
    "cl/ntt/local": [check("ntt intt", **GPU), check("chains", **GPU),
                     unit("test_kernels_paths", **GPU), unit("test_kernels_transforms"),
                     simulated(**GPU)],
    "cl/ntt/row_passes": TRANSFORMS + [unit("test_kernels_large")],
    "cl/ntt/single": [check("ntt intt", **SINGLE), unit("test_kernels_paths", **SINGLE),
                      unit("test_kernels_transforms")],
    "cl/ntt/stages": [check("ntt intt", **GENERAL), unit("test_executor_values"),
                      unit("test_kernels_transforms")],
    "cl/sum/": [unit("test_kernels_sums"), check("axis_modsum modmul_axis_sum"),
                check("axis_modsum modmul_axis_sum", **GENERAL), unit("test_kernels_paths")],
    "cl/sum/columns": [check("axis_modsum"), check("chains"), unit("test_arithmetic_lanes"),
                       unit("test_kernels_interleaved"), unit("test_kernels_sums")],
    "cl/sum/local": [unit("test_kernels_sums", **GPU), unit("test_kernels_wide"),
                     check("axis_modsum modmul_axis_sum", **GPU)],
    "cl/sum/product": [check("modmul_axis_sum"), check("chains"), unit("test_arithmetic_lanes"),
                       unit("test_kernels_variants"), unit("test_kernels_interleaved"),
                       unit("test_kernels_sums")],
}


def tests_of(file):
    is_kernel = file.startswith("cl/")
    table = KERNELS if is_kernel else PLAN
    fitting = [start for start in table if file.startswith(start)]
    if not fitting:
        sys.exit("no tests are known for %s" % file)
    return table[max(fitting, key=len)] + ([] if is_kernel else SANITIZED)


def run_transcripts(kind, program):
    """What --transcripts asks for: the first failure ends it."""
    sys.path.insert(0, os.path.join(SOURCE, "tests", "conformance"))
    import run as conformance  # pylint: disable=import-outside-toplevel

    runner = conformance.Runner(program)

    def stop():
        for failure in runner.failures:
            sys.exit(failure)
    if kind == "bad":
        for bad in conformance.bundled_bad(SOURCE):
            runner.expect_bad(bad, "--reference")
            stop()
    bundled = os.path.join(SOURCE, "transcripts")
    for path in conformance.transcripts(bundled, False) if kind == "reference" else ():
        runner.expect_good(path, "--reference")
        stop()
        runner.expect_good(path, "--reference", "--passes", "none")
        stop()
    for seed in RANDOM_SEEDS if kind == "random" else ():
        folder = os.environ["HEALCL_MUTANTS_RANDOM"]
        path = os.path.join(folder, "random_%d.json" % seed)
        if not os.path.exists(path):
            conformance.make_random(conformance.random_maker(SOURCE), folder, seed)
        runner.expect_good(path, "--reference")
        stop()
        runner.expect_good(path, "--reference", "--passes", conformance.drawn_passes(seed))
        stop()
        runner.expect_limited(path)
        stop()


# ---------------------------------------------------------------- one mutant


def limited(seconds, environment):
    """For preexec_fn: processor time ends, and memory, but for sanitizers, which map much. Tests set
    limits of their own."""
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if "ASAN_OPTIONS" not in environment:
            resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    return set_limits


def ticks_of(group):
    """Processor time that the processes of a group have had."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def exit_code(child, seconds):
    """None where it takes longer, or does nothing for a minute, as after a deadlock."""
    begin = moved = time.time()
    ticks = -1
    while time.time() < min(begin + seconds, moved + 60):
        try:
            return child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            if ticks_of(child.pid) != ticks:
                ticks, moved = ticks_of(child.pid), time.time()
    return None


def run(command, log, environment, seconds):
    """-> (exit code, or None where time ran out, processor seconds)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                          env={**os.environ, **environment}, start_new_session=True,
                          preexec_fn=limited(seconds, environment)) as child:
        try:
            code = exit_code(child, 60 + 10 * seconds)
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (None if code == -signal.SIGXCPU else code), spent


class Copy:
    """The tree once more, in which mutants are built."""

    def __init__(self, folder, jobs):
        self.tree = os.path.join(folder, "tree")
        self.build = os.path.join(folder, "build")
        self.sanitized = os.path.join(folder, "sanitized")
        self.jobs = jobs
        self.log = open(os.path.join(folder, "log.txt"), "w", encoding="utf-8")
        self.environment = {
            "HEALCL_MUTANTS_RANDOM": os.path.join(folder, "random"),
            "HEALCL_CACHE_DIR": os.path.join(folder, "cache"), "HEALCL_TEST_SEED": "1763800000",
            "OCLGRIND_LOG": os.path.join(folder, "oclgrind.log")}
        os.makedirs(self.environment["HEALCL_MUTANTS_RANDOM"], exist_ok=True)
        self.update()
        self.configure(self.build, "OFF", "cc")
        self.configure(self.sanitized, "ON", "clang")
        self.units, self.digests = self.commands(), {}

    def configure(self, build, sanitize, compiler):
        if not os.path.exists(os.path.join(build, "build.ninja")):
            subprocess.run(["cmake", "-S", self.tree, "-B", build, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DHEALCL_WERROR=OFF",
                            "-DHEALCL_SANITIZE=" + sanitize, "-DCMAKE_C_COMPILER=" + compiler],
                           check=True, stdout=self.log)

    def update(self):
        """What differs from the tree is copied."""
        names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard"], check=True, capture_output=True).stdout
        for name in names.decode().split("\0")[:-1]:
            source, copy = os.path.join(SOURCE, name), os.path.join(self.tree, name)
            if os.path.isfile(source) and not self.is_same(source, copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(source, copy)

    @staticmethod
    def is_same(a, b):
        if not os.path.exists(b):
            return False
        with open(a, "rb") as first, open(b, "rb") as second:
            return first.read() == second.read()

    def commands(self):
        """The object of each source."""
        text = subprocess.run(["ninja", "-C", self.build, "-t", "compdb"], check=True,
                              capture_output=True).stdout
        return {os.path.relpath(unit["file"], self.tree): unit["output"] for unit in json.loads(text)
                if unit["file"].startswith(self.tree + "/src/") and unit["output"].endswith(".o")}

    def make(self, targets, build="build"):
        code, _ = run(["ninja", "-C", getattr(self, build), "-j", str(self.jobs), *targets], self.log,
                      {}, 600)
        return code == 0

    def digest(self, file):
        with open(os.path.join(self.build, self.units[file]), "rb") as object_file:
            return hashlib.sha256(object_file.read()).hexdigest()

    def write(self, file, text):
        with open(os.path.join(self.tree, file), "w", encoding="utf-8") as copy:
            copy.write(text)

    def test(self, test, seconds):
        """-> (what went wrong or None, processor seconds)."""
        names = {"build": self.build, "sanitized": self.sanitized, "tree": self.tree, "source": SOURCE}
        self.log.write("-- %s\n" % test.name)
        self.log.flush()
        code, spent = run([word.format(**names) if "{" in word else word for word in test.command],
                          self.log, {**self.environment, **test.environment}, seconds)
        wrong = None if code == 0 else "time" if code is None else "exit code %d" % code
        return wrong, spent


def allowed(usual, slack):
    """Processor seconds for a test that usually takes so many."""
    return int(3 * usual) + slack


def baseline(copy, tests, times):
    """Adds the processor seconds of each test of the unchanged tree; None for one that fails."""
    tests = [test for test in tests if test.name not in times]
    for build in sorted({test.build for test in tests}):
        targets = {target for test in tests if test.build == build for target in test.targets}
        if not copy.make(sorted(targets), build):
            sys.exit("the unchanged tree does not build: see " + copy.log.name)
    for test in tests:
        wrong, times[test.name] = copy.test(test, 600)
        print("%8.2f s  %s%s" % (times[test.name], test.name, ": %s, left out" % wrong if wrong else ""),
              flush=True)
        if wrong:
            times[test.name] = None


def in_order(tests, times, done):
    """The cheapest first, and those before it that have noticed most."""
    kills = collections.Counter(what.split(": ")[0] for what in done.values() if ": " in what)
    return sorted(tests, key=lambda test: (times[test.name] or 0) / (1 + kills[test.name]))


def try_mutant(copy, change, text, tests, times):
    """-> what has become of it."""
    copy.write(change.file, text[:change.start] + change.new + text[change.end:])
    copy.log.write("\n== %s\n" % told(change))
    copy.log.flush()
    if change.file in copy.units:
        if not copy.make([copy.units[change.file]]):
            return "not viable"
        if copy.digest(change.file) == copy.digests[change.file]:
            return "same code"
    slack = 30 if change.file.endswith(".cl") else 5  # for what is compiled anew
    for test in tests:
        if times[test.name] is None:
            continue
        if not copy.make(test.targets, test.build):
            return "not viable"
        wrong, _ = copy.test(test, allowed(times[test.name], slack))
        if wrong:
            return "%s: %s" % (test.name, wrong)
    return "survived"


# ---------------------------------------------------------------- report


def report(done):
    """A line for each file, and the survivors."""
    files = collections.defaultdict(collections.Counter)
    for change, what in done.items():
        kind = what if what in ("survived", "not viable", "same code") else "killed"
        files[change.file][kind] += 1
    files["all"] = sum(files.values(), collections.Counter())
    print("%-32s %7s %7s %7s %9s" % ("", "viable", "killed", "score", "not viable"))
    for file, counts in sorted(files.items(), key=lambda item: (item[0] == "all", item[0])):
        viable = counts["killed"] + counts["survived"]
        print("%-32s %7d %7d %7s %9d" % (
            file, viable, counts["killed"],
            "%.0f %%" % (100 * counts["killed"] / viable) if viable else "-",
            counts["not viable"] + counts["same code"]))
    kills = collections.Counter(what.split(":")[0] for what in done.values() if ": " in what)
    print("killed by: " + ", ".join("%s %d" % kill for kill in kills.most_common()))
    for change in sorted(change for change, what in done.items() if what == "survived"):
        print("survived: " + told(change))


def drawn(arguments):
    """The mutants that the seed draws, in that order: what is done of them is a fair sample, too."""
    files = sorted({os.path.relpath(path, SOURCE) for pattern in arguments.files
                    for path in glob.glob(os.path.join(SOURCE, pattern), recursive=True)})
    every = [change for file in files for change in changes_of(file)]
    print("%d mutants of %d files" % (len(every), len(files)))
    draw = random.Random(arguments.seed)
    return draw.sample(every, min(arguments.count, len(every)))


def main():
    """Draws, builds, tests and reports."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", metavar="GLOB", default=["src/plan/*.c"])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="of ninja")
    parser.add_argument("--tests", default="", metavar="REGEX", help="only tests of such names")
    parser.add_argument("--build", default=os.path.join(SOURCE, "build", "mutants"))
    parser.add_argument("--survivors", action="store_true", help="test again what has survived")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="FILE:LINE",
                        help="only such mutants of those drawn; patterns")
    parser.add_argument("--list", action="store_true", help="list the mutants, and end")
    parser.add_argument("--report", action="store_true", help="report what is known, and end")
    parser.add_argument("--transcripts", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped: the same command goes on"))
    if arguments.transcripts:
        run_transcripts(*arguments.transcripts)
        return
    changes = [change for change in drawn(arguments)
               if any(fnmatch.fnmatch("%s:%d" % (change.file, change.line), pattern)
                      for pattern in arguments.only)]
    if arguments.list:
        print("\n".join(map(told, sorted(changes))))
        return
    os.makedirs(arguments.build, exist_ok=True)
    state = os.path.join(arguments.build, "state.jsonl")
    known = {}
    if os.path.exists(state):
        with open(state, encoding="utf-8") as lines:
            for line in lines:
                *change, text, what = json.loads(line)
                known[Change(*change), text] = what
    texts = {}
    for change in changes:
        with open(os.path.join(SOURCE, change.file), encoding="utf-8") as source:
            texts[change.file] = source.read()
    hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()}
    done = {change: known[change, hashes[change.file]] for change in changes
            if (change, hashes[change.file]) in known}
    left = [change for change in changes
            if change not in done or arguments.survivors and done[change] == "survived"]
    if left and not arguments.report:
        test_all(arguments, left, texts, hashes, state, done)
    report({change: done[change] for change in changes if change in done})


def test_all(arguments, left, texts, hashes, state, done):
    """Each of those that are left; what becomes of one is kept at once."""
    copy = Copy(arguments.build, arguments.jobs)
    last, times = None, {}
    try:
        with open(state, "a", encoding="utf-8") as lines:
            for number, change in enumerate(left):
                if last != change.file:
                    if last:
                        copy.write(last, texts[last])
                    last = change.file
                    tests = [test for test in tests_of(last) if re.search(arguments.tests, test.name)]
                    baseline(copy, tests, times)
                    if last in copy.units and last not in copy.digests:
                        copy.make([copy.units[last]])
                        copy.digests[last] = copy.digest(last)
                start = time.time()
                what = try_mutant(copy, change, texts[last], in_order(tests, times, done), times)
                done[change] = what
                lines.write(json.dumps([*change, hashes[last], what]) + "\n")
                lines.flush()
                print("%d of %d: %s: %s (%.1f s)" % (number + 1, len(left), told(change), what,
                                                   time.time() - start), flush=True)
    finally:
        if last:
            copy.write(last, texts[last])


if __name__ == "__main__":
    main()
