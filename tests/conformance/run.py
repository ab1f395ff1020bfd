#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whole transcripts with the healcl program and checks how each of them ends.

    run.py good|bad|bundled|bundled-bad|fallback|random|ways --healcl PROGRAM [--source DIR]
    run.py programs --healcl PROGRAM [--first SEED] [--count N]

good, bad: the conformance set, in the folder that HEALCL_SHARED names, else in ../shared beside the
clone. Exits 77 (skipped) where there is none.
bundled, bundled-bad: transcripts/ and tests/bad/ of this clone.
fallback: good ones of both, where the device lacks each operation alone and all of them: counts are
exact. HEALCL_AS shapes it.
random: programs drawn from fixed seeds, one for each environment. Exits 77 where no Python has NumPy,
which makes them.
good, bundled: each transcript runs with one of the kernel variants too, by turns, not optimised.
Where HEALCL_TEST_VARIANTS is 0 neither variants nor environments are tried. With HEALCL_TEST_ALL=1
all seeds, and all variants.
ways: good, where they are there, and bundled transcripts with general kernels and with each way to
multiply in vectors, and 100 random programs, in turn with one of these (with HEALCL_TEST_ALL=1 with
each), for other CPUs (scripts/aarch64.sh, qemu_x86.sh).
programs: random programs of other seeds, each once, by turns in all environments and with all ways
to multiply; compiled as the driver does it, so that what an optimiser does to kernels is seen. On
Oclgrind it fails where that has met a race, an access out of bounds or a wrong call. No test runs it:
    run.py programs --healcl build/release/healcl
    . ~/.local/share/healcl/vendors/environment  # of scripts/setup-vendors.sh
    HEALCL_DEVICE=Oclgrind run.py programs --healcl build/release/healcl --count 30

Every kind prints how many files it has run, and fails below the number that is known to be there.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST, IS_ALL, share  # noqa: E402

SKIPPED = 77
CPU_SECONDS = 20  # of processor time, in which a bad transcript must end
HANGING_SECONDS = 600  # what takes so long has not ended on a busy machine either
LIMITED = ["sh", "-c", 'ulimit -t %d; exec "$0" "$@"' % CPU_SECONDS]

# Kinds: how many files there are at least, in the whole, and what they are.
KINDS = {"good": (14, "shared transcripts verified"),
         "bad": (47, "shared bad transcripts ended as expected"),
         "bundled": (10, "bundled transcripts verified"),
         "bundled-bad": (200, "bundled bad transcripts ended as expected"),
         "fallback": (10, "transcripts verified without each operation"),
         "random": (40, "random programs verified"),
         "ways": (110, "transcripts verified with general kernels and each way to multiply"),
         "programs": (1, "random programs verified")}

VERIFIED, DIFFERENT, USAGE, REFUSED, DEVICE = range(5)

# Bad transcripts whose fault only their data, or the size of a device, reveal: `inspect`, which
# touches no device and sets no limit, accepts them.
ONLY_DATA = {
    "bad_index_out_of_range", "bad_mismatch", "bad_negative_modulus_tensor",
    "bad_not_a_permutation", "bad_too_large_for_device", "bad_zero_modulus_tensor",
    "axis_sum_perm_range", "axis_sum_perm_repeats", "full_q_equal_moduli",
    "full_q_modulus_zero", "full_q_not_coprime", "gather_index_high", "gather_index_low",
    "intt_modulus_zero", "intt_perm_negative", "modulus_negative_in_tensor",
    "modulus_zero_in_tensor", "modulus_zero_modneg", "ntt_modulus_negative", "ntt_perm_repeats",
    "permute_index_high", "permute_index_negative", "sum_modulus_zero", "upload_does_not_fit",
    "upload_does_not_fit_int32",
}

# Good transcripts that have no results. All others expect something of each of theirs.
NO_RESULTS = {"nothing.json"}
VERDICT = {False: re.compile(r"^verified: (\d+) of \1 result", re.MULTILINE),
           True: re.compile("^nothing to verify: 0 results,", re.MULTILINE)}

NEEDS_AT_LEAST = re.compile(r"needs at least (\d+) bytes of device memory")

# Good transcripts run with each of these: the kernels of all kinds of devices.
SHAPES = [{"HEALCL_VARIANT": "general"}, {"HEALCL_VARIANT": "vectors"}, {"HEALCL_AS": "gpu"},
          {"HEALCL_AS": "accelerator"}, {"HEALCL_LACKS": "all"}]

HAS_VARIANTS = os.environ.get("HEALCL_TEST_VARIANTS") != "0"

# The host reference is slow: files of up to this size.
FALLBACK_BYTES = 1000000

# Random programs run on the device as it is, then by turns overlapping, with work-groups of several work-items, the last of them not full, with the variants of
# other devices, and as if nothing fitted the caches.
SEEDS = range(101, 141)
ENVIRONMENTS = [
    {},
    {"HEALCL_TUNING": "launches_at_once=16"},
    {"HEALCL_TUNING": "general,local_size=4,elements_per_item=3,transform_local_size=4"},
    {"HEALCL_AS": "gpu", "HEALCL_TUNING": "local_size=8,transform_local_size=8,staging_bytes=4096"},
    {"HEALCL_AS": "accelerator"},
    {"HEALCL_TUNING": "past_caches_bytes=1"},
]

PASSES = ["products", "bases", "batches", "zeros", "stores", "copies", "sums", "chains"]

# How kernels for CPUs are forced to compute: one element at a time, or vectors of eight, multiplied
# in each style (docs/PORTING.md); steps that a device cannot run in it use another one.
WAYS = [{"HEALCL_VARIANT": "general"}] + [
    {"HEALCL_TUNING": "multiply=" + way} for way in ("doubles", "halves", "mul_hi")]
WAYS_SEEDS = range(201, 301)

# Random programs in one file (`programs`); prime to what their seeds decide beside their environment.
PROGRAMS_TOGETHER = 11

# A bad transcript: its path, what `run` exits with, and what its message or its first difference
# says of the place.
Bad = collections.namedtuple("Bad", "path code place")


def leak_options(arguments):
    """Sanitizers look for leaks where no device is opened: see tests/CMakeLists.txt."""
    options = os.environ.get("ASAN_OPTIONS", "")
    opens_none = arguments[0] == "inspect" or "--reference" in arguments
    return {"ASAN_OPTIONS": options.replace("detect_leaks=0", "detect_leaks=1")} if opens_none else {}


class Runner:
    def __init__(self, program):
        self.program = program
        self.failures = []
        self.hanging_seconds = HANGING_SECONDS

    def healcl(self, *arguments, limits=(), environment=None):
        """-> (exit code, standard output, standard error); the code is None after a time-out."""
        try:
            done = subprocess.run([*limits, self.program, *arguments], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=self.hanging_seconds, check=False,
                                  env={**os.environ, **leak_options(arguments),
                                       **(environment or {})})
        except subprocess.TimeoutExpired:
            return None, "", ""
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and limits:
            return None, "", ""
        return (done.returncode, done.stdout.decode("utf-8", "replace"),
                done.stderr.decode("utf-8", "replace"))

    def fail(self, path, what, output=""):
        self.failures.append("%s: %s%s" % (os.path.basename(path), what,
                                           "\n" + output.rstrip() if output else ""))

    def expect_good(self, path, *options, environment=None):
        """`run` verifies every result, and reports no error."""
        code, out, err = self.healcl("run", "--no-warmup", *options, path,
                                     environment=environment)
        what = " ".join(["run", *options, str(environment or "")]).strip()
        if code != VERIFIED:
            self.fail(path, "%s: exit code %s" % (what, code), out + err)
        elif not VERDICT[os.path.basename(path) in NO_RESULTS].search(out):
            self.fail(path, "%s: not every result is verified" % what, out)
        elif "healcl: " in err and "warning" not in err:
            self.fail(path, "%s: an error, yet exit code 0" % what, err)

    def least_memory(self, path):
        """The least device memory that a transcript asks for; 1 where its steps need none."""
        _, _, err = self.healcl("inspect", "--max-device-memory", "1", path)
        least = NEEDS_AT_LEAST.search(err)
        return int(least.group(1)) if least else 1

    def expect_limited(self, path):
        """`run` verifies in a quarter of the device memory that it takes without a limit, or in as
        much as its largest step needs, for which it asks."""
        _, out, _ = self.healcl("inspect", "--json", "-", path)
        peak = json.loads(out)["device_memory_peak"]
        limit = max(peak // 4, self.least_memory(path))
        self.expect_good(path, "--max-device-memory", str(limit))

    def expect_inspected(self, path, code):
        """`inspect` ends with code where no OpenCL platform can be found."""
        got, out, err = self.healcl("inspect", path, limits=LIMITED,
                                    environment={"OCL_ICD_VENDORS": "/nonexistent"})
        if got != code:
            self.fail(path, "inspect: exit code %s, not %d" % (got, code), out + err)
        if code == REFUSED:
            self.check_line(path, "inspect", err)

    def expect_bad(self, bad, *options):
        """`run` ends in time, with the right code and one line that names the position."""
        code, out, err = self.healcl("run", "--no-warmup", *options, bad.path, limits=LIMITED)
        what = " ".join(["run", *options])
        if code is None:
            self.fail(bad.path, "%s: does not end within %d s of processor time" % (what, CPU_SECONDS))
            return
        if code not in bad.code:
            self.fail(bad.path, "%s: exit code %d, not %s" % (
                what, code, " or ".join(map(str, bad.code))), out + err)
        self.check_line(bad.path, what, err)
        told = out if code == DIFFERENT else err
        if bad.place not in told:
            self.fail(bad.path, "%s: '%s' is not told" % (what, bad.place), told)
        if "verified: " in out:
            self.fail(bad.path, "%s: it claims to be verified" % what, out)

    def check_line(self, path, what, err):
        if err.count("\n") != 1 or not err.startswith("healcl: " + path + ": "):
            self.fail(path, "%s: not one line of 'healcl: FILE: ...'" % what, err)


def for_all(function, items):
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(function, items))


def run_good(runner, paths):
    def check(at):
        path = paths[at]
        runner.expect_inspected(path, VERIFIED)
        runner.expect_good(path)
        runner.expect_good(path, "--reference")
        runner.expect_limited(path)
        for shape in SHAPES if IS_ALL else [SHAPES[at % len(SHAPES)]] if HAS_VARIANTS else []:
            runner.expect_good(path, environment={**shape, **COMPILE_FAST})
    for_all(check, range(len(paths)))
    return len(paths)


def fallbacks(runner, path, lacking, passes="none"):
    """Runs where an operation, or all, are lacking. -> steps on the host by operation."""
    code, out, err = runner.healcl("run", "--no-warmup", "--json", "-", "--passes", passes, path,
                                   environment={"HEALCL_LACKS": lacking})
    if code != VERIFIED:
        runner.fail(path, "without %s: exit code %s" % (lacking, code), out + err)
        return {}
    report = json.loads(out)
    if os.path.basename(path) not in NO_RESULTS and not report["verified"]:
        runner.fail(path, "without %s: nothing is verified" % lacking)
    steps = collections.Counter()
    for segment in report["segments"]:
        for kind in segment["operations_by_kind"]:
            if kind["fallbacks"]:
                steps[kind["name"]] += kind["fallbacks"]
                if kind["fallback_reason"] != "HEALCL_LACKS names it" or not kind["fallback_ns"]:
                    runner.fail(path, "without %s: %s" % (lacking, kind))
    return steps


def run_fallback(runner, paths):
    """Each operation alone falls back as often as it does where all do, and no other one does. Steps
    that passes have fused count for each of theirs."""
    def check(path):
        together = fallbacks(runner, path, "all")
        fallbacks(runner, path, "all", "all")
        for name, steps in share("fallbacks", sorted(together.items()), 8):
            fallbacks(runner, path, name, "all")
            alone = fallbacks(runner, path, name)
            # Results are packed on the host where a kernel would do it: how many wait is not fixed.
            if alone != {name: steps} and name != "device_to_host":
                runner.fail(path, "without %s: %s, and without all %s" % (name, alone, together))
    paths = [path for path in paths if os.path.getsize(path) <= FALLBACK_BYTES]
    for_all(check, paths)
    return len(paths)


def run_bad(runner, files):
    def check(bad):
        name = os.path.splitext(os.path.basename(bad.path))[0]
        accepted = name in ONLY_DATA or bad.code == (DIFFERENT,)
        runner.expect_inspected(bad.path, VERIFIED if accepted else REFUSED)
        runner.expect_bad(bad)
        runner.expect_bad(bad, "--reference")
        if name in ONLY_DATA and DIFFERENT not in bad.code:
            runner.expect_bad(bad, "--max-device-memory", str(runner.least_memory(bad.path)))
    for_all(check, files)
    return len(files)


def transcripts(folder, is_bad, ending=".json"):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if name.endswith(ending) and name.startswith("bad_") == is_bad]


def shared_bad(folder):
    """Expectations of the conformance set: only the name gives them."""
    for path in transcripts(folder, True):
        name = os.path.basename(path)
        if name == "bad_mismatch.json":
            yield Bad(path, (DIFFERENT,), "entry ")
        elif name == "bad_too_large_for_device.json":
            yield Bad(path, (REFUSED, DEVICE), "entry ")
        else:
            yield Bad(path, (REFUSED,), "")


def bundled_bad(source):
    """Our own: expected.txt has file, exit code, entry and operation, "-" where there is none."""
    folder = os.path.join(source, "tests", "bad")
    with open(os.path.join(folder, "expected.txt"), encoding="utf-8") as lines:
        for line in lines:
            name, code, entry, operation = line.split()
            place = "" if entry == "-" else "entry %s" % entry
            place += "" if operation == "-" else " (%s)" % operation
            yield Bad(os.path.join(folder, name), (int(code),), place)


def drawn_passes(seed):
    """One set of them for each seed, all of them by turns."""
    return ",".join(name for bit, name in enumerate(PASSES) if seed >> bit & 1) or "none"


def random_maker(source):
    """-> the command that makes a random program; exits where no Python here can."""
    sys.path.insert(0, os.path.join(source, "scripts"))
    from python_with_numpy import find

    python = find()
    if not python:
        print("conformance: random: no Python with NumPy here (package python3-numpy): skipped")
        sys.exit(SKIPPED)
    # No byte code is left behind in the source tree.
    return [python, "-B", os.path.join(source, "scripts", "make_transcripts.py"), "--random"]


def make_random(maker, folder, *seeds, elements=300, operations=60):
    """The programs of some seeds in one file."""
    path = os.path.join(folder, "random_%d.json" % seeds[0])
    subprocess.run([*maker, ",".join(map(str, seeds)), "--operations", str(operations), "--elements",
                    str(elements), path], check=True)
    return path


def run_random(runner, source):
    maker = random_maker(source)
    with tempfile.TemporaryDirectory(prefix="healcl-random-") as folder:
        def check(seed):
            environment = ENVIRONMENTS[seed % len(ENVIRONMENTS)]
            path = make_random(maker, folder, seed)
            if environment and (HAS_VARIANTS or IS_ALL):
                runner.expect_good(path, environment={**environment, **COMPILE_FAST})
            runner.expect_good(path)
            runner.expect_good(path, "--reference", "--passes", drawn_passes(seed))
            runner.expect_good(path, "--reference", "--passes", "none")
        seeds = SEEDS if IS_ALL else SEEDS[:len(ENVIRONMENTS)]  # one for each environment
        for_all(check, seeds)
    return len(seeds)


def run_programs(runner, source, first, count):
    """Programs of one environment share a file, and so what they compile. Simulators take a thousand
    times as long: their programs are smaller."""
    maker = random_maker(source)
    is_simulated = os.environ["HEALCL_DEVICE"] == "Oclgrind"
    size = {"elements": 30, "operations": 20} if is_simulated else {}
    environments = ENVIRONMENTS + WAYS
    done = collections.Counter()
    runner.hanging_seconds *= PROGRAMS_TOGETHER
    with tempfile.TemporaryDirectory(prefix="healcl-programs-") as folder:
        def run(environment, seeds):
            path = make_random(maker, folder, *seeds, **size)
            log = os.path.join(folder, "log_%d" % seeds[0])
            failures = len(runner.failures)
            runner.expect_good(path, environment={**environment, "OCLGRIND_LOG": log,
                                                  "OCLGRIND_DATA_RACES": "1",
                                                  "OCLGRIND_CHECK_API": "1"})
            simulator_says_nothing(runner, path, {"name": "Oclgrind"}, log)
            os.remove(path)
            return len(runner.failures) == failures

        def check(seeds):
            environment = environments[seeds[0] % len(environments)]
            if not run(environment, seeds) and len(seeds) > 1:
                for seed in seeds:  # which one it is
                    run(environment, [seed])
            done[str(environment)] += len(seeds)
            print("conformance: programs: %d of %d, %d failures" % (
                sum(done.values()), count, len(runner.failures)), flush=True)
        for_all(check, program_groups(first, count, len(environments)))
    for environment, programs in sorted(done.items()):
        print("%5d %s" % (programs, environment))
    return count


def program_groups(first, count, of, together=PROGRAMS_TOGETHER):
    """Lists of seeds that are the same modulo `of`, all of first and the `count` - 1 after it."""
    rest = [list(range(seed, first + count, of)) for seed in range(first, min(first + of, first + count))]
    groups = [seeds[at:at + together] for seeds in rest for at in range(0, len(seeds), together)]
    return sorted(groups)


def run_ways(runner, folders, source):
    maker = random_maker(source)
    with tempfile.TemporaryDirectory(prefix="healcl-ways-") as folder:
        programs = [make_random(maker, folder, seed) for seed in WAYS_SEEDS]
        paths = [path for name in folders for ending in (".json", ".gz")
                 for path in transcripts(name, False, ending)]
        for i, way in enumerate(WAYS):
            mine = paths + (programs if IS_ALL else programs[i::len(WAYS)])
            for_all(lambda path: runner.expect_good(path, environment=way), mine)
            print("conformance: ways: %d transcripts with %s, %d failures until here" % (
                len(mine), "=".join(*way.items()), len(runner.failures)), flush=True)
    return len(paths) + len(programs)


def simulator_says_nothing(runner, path, device, log):
    """A simulator exits with 0 even when it has found errors: they are in its log."""
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as text:
            found = text.read()
        os.remove(log)
        if found:
            runner.fail(path, "%s has found errors" % device["name"], found[:2000])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--healcl", required=True, help="the program to test")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--source", default=os.path.dirname(os.path.dirname(here)),
                        help="the clone (default: this one)")
    parser.add_argument("--first", type=int, default=10001, help="programs: the first seed")
    parser.add_argument("--count", type=int, default=2000, help="programs: how many")
    arguments = parser.parse_args()

    source = os.path.abspath(arguments.source)
    shared = os.environ.get("HEALCL_SHARED") or os.path.join(os.path.dirname(source), "shared")
    shared = os.path.join(shared, "conformance")
    if arguments.kind in ("good", "bad") and not os.path.isdir(shared):
        print("conformance: %s: no shared conformance set beside this clone: skipped" %
              arguments.kind)
        return SKIPPED

    runner = Runner(arguments.healcl)
    if not os.environ.get("HEALCL_DEVICE"):
        use_device(arguments.healcl)
    own = os.path.join(source, "transcripts")
    folders = [folder for folder in (shared, own) if os.path.isdir(folder)]
    count = {
        "good": lambda: run_good(runner, transcripts(shared, False)),
        "bad": lambda: run_bad(runner, list(shared_bad(shared))),
        "fallback": lambda: run_fallback(runner, [path for folder in folders
                                                  for path in transcripts(folder, False)]),
        "bundled": lambda: run_good(runner, transcripts(own, False) + transcripts(own, False, ".gz")),
        "bundled-bad": lambda: run_bad(runner, list(bundled_bad(source))),
        "programs": lambda: run_programs(runner, source, arguments.first, arguments.count),
        "ways": lambda: run_ways(runner, folders, source),
        "random": lambda: run_random(runner, source),
    }[arguments.kind]()

    print(*sorted(runner.failures), sep="\n", end="\n" if runner.failures else "")
    least, what = KINDS[arguments.kind]
    if arguments.kind == "random" and not IS_ALL:
        least = len(ENVIRONMENTS)
    print("conformance: %d %s (at least %d are known)%s" % (
        count, what, least, "; %d FAILURES" % len(runner.failures) if runner.failures else ""))
    if count < least:
        print("conformance: too few")
    return 1 if runner.failures or count < least else 0


if __name__ == "__main__":
    sys.exit(main())
