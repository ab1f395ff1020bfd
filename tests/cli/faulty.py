#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Devices that compute wrongly (faulty_source.c): the self-test must refuse one whose arithmetic is
wrong, `healcl check` must find a wrong kernel and `healcl diagnose` the operation, and both must name
a small case that fails again alone.

    faulty.py HEALCL FAULTY_SOURCE.so

Exits with 77, skipped, where there is no device.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST, share  # noqa: E402
healcl, driver = sys.argv[1:3]

NO_FAULT = ("", "")
ADDITION = ("sum >= q ? sum - q : sum", "sum > q ? sum - q : sum")
NEGATION = ("return rest ? (long)(p.value - rest) : 0;", "return (long)(p.value - rest);")
# In every 64-bit program, but only in element 37 of what one work-item does.
ELEMENT = "x.element[j] = (ELEMENT)compute_##name("
ELEMENT_37 = (ELEMENT, ELEMENT.replace("= (", "= (ELEMENT)(span.linear + i == 37) + ("))
CHAIN = ("(ELEMENT)between", "(ELEMENT)(between + 1)")
ROW_70 = (ELEMENT, ELEMENT.replace("= (", "= (ELEMENT)(span.linear + i == 70 * 65536) + ("))
STRIDED = (ELEMENT, ELEMENT.replace(
    "= (", "= (ELEMENT)(space.operand[1].stride[space.rank - 1] > 1) + ("))
FAR_AND_STRIDED = (ELEMENT, ELEMENT.replace(
    "= (", "= (ELEMENT)(span.linear + i == 1500 && space.operand[1].stride[space.rank - 1] > 1) + ("))
REFUSAL = ("if (value < 1)", "if (value < 1 || value == 257)")
# Right for the first checks of a batch alone: a step by itself has no more.
LATER = ("make_modulus((ulong)max(value, 1L))", "make_modulus((ulong)max(value, 1L) + (space.key > 1))")
CRASH = (NEGATION[0], "*(volatile global long *)0 = 1; " + NEGATION[0])
WARNING = (NEGATION[0], '\n#warning "told"\n' + NEGATION[0])
# A reciprocal that is wrong by more than its estimates allow for, either way.
INVERSE = "(double)q * (1 - INVERSE_MARGIN)"
LARGE, SMALL = ((INVERSE, INVERSE + factor) for factor in (" * (1 + 1e-14)", " * (1 - 1e-14)"))
LAZY = ("return subtract_once(rest, m.twice);", "return rest;")
# A hint that ends the process, and one that no compiler knows.
PREFETCH = "#define PREFETCH(address) __builtin_prefetch(address)"
CRASHING, UNKNOWN = ((PREFETCH, "#define PREFETCH(address) " + text)
                     for text in ("__builtin_trap()", "no_such_function(address)"))
LOOPS_END = ("rounds < ROUNDS", "rounds < 4100")
CHAIN = ("c == 1 ? x_value : y_value, modulus);", "c == 1 ? x_value : y_value, modulus) + 1;")
FORWARD = "ntt_row(x, n, modulus.value, twiddles + j * n);"
SECOND_MODULUS = (FORWARD, FORWARD + " if (j == 1) x[0] ^= 1;")


def run(fault, *arguments, cache="", **more):
    environment = {**os.environ, "HEALCL_CACHE_DIR": cache, "HEALCL_VARIANT": "general",
                   "LD_PRELOAD": driver, **COMPILE_FAST, **more}
    if fault != NO_FAULT:
        environment.update(FAULTY_FROM=fault[0], FAULTY_TO=fault[1])
    return subprocess.run([healcl, *arguments], cwd=ROOT, env=environment, text=True,
                          capture_output=True)


def expect(result, code):
    if result.returncode != code:
        sys.exit(f"{result.args} ends with {result.returncode}, not {code}:\n"
                 f"{result.stdout}{result.stderr}")
    return result.stdout


def check_self_test(folder):
    transcript = "transcripts/memory.json"
    result = run(ADDITION, "run", transcript, cache=folder)
    expect(result, 4)
    assert re.search(r"device \d+:\d+ .* fails its self-test: add_mod\(0x.*\) is 0x.*, not 0x0",
                     result.stderr), result.stderr
    assert "fails its self-test" in expect(run(ADDITION, "devices", cache=folder), 4)
    # A child's findings are reported even if they cannot be cached.
    listed = expect(run(ADDITION, "devices"), 4)
    assert " failed " in listed and "fails its self-test: add_mod" in listed, listed
    # The failure is known, but the test runs again.
    expect(run(NO_FAULT, "run", "-q", transcript, cache=folder), 0)
    devices = json.loads(expect(run(NO_FAULT, "devices", "--json", "-", cache=folder), 0))["devices"]
    assert "passed" in [device.get("self_test") for device in devices], devices


def check_loops(folder):
    """Loops that end early are detected once; long sums are right, and steps with too many loop rounds
    are refused."""
    cache = f"{folder}/loops"
    expect(run(LOOPS_END, "run", "-q", "transcripts/memory.json", cache=cache), 0)
    devices = json.loads(expect(run(NO_FAULT, "devices", "--json", "-", cache=cache), 0))["devices"]
    assert 4100 in [device.get("loop_limit") for device in devices], devices
    bench = ("bench", "--n", "16", "--batch", "1", "--repeat", "1", "--op")
    expect(run(NO_FAULT, *bench, "axis_modsum", "--s", "30000", cache=cache), 0)
    digits = (*bench, "apply_g_decomp", "--digits", "4090")
    expect(run(NO_FAULT, *digits), 0)
    refused = run(NO_FAULT, *digits, cache=cache)
    expect(refused, 3)
    assert "this device ends loops after 4100" in refused.stderr, refused.stderr


def check_vectors(folder):
    """The self-test tries vectors' products, and hints to caches, and does without what fails."""
    vectors = {"HEALCL_VARIANT": "vectors", "HEALCL_TUNING": "multiply=doubles"}
    for i, (fault, key, value, told) in enumerate((
            (LARGE, "multiply_wrong", ["doubles"], "multiply=doubles is wrong; healcl uses another"),
            (SMALL, "multiply_wrong", ["doubles"], "multiply=doubles is wrong; healcl uses another"),
            (LAZY, "multiply_wrong", ["doubles", "halves", "mul_hi"], "healcl uses another"),
            (CRASHING, "without", "cache hints", "without cache hints"),
            (UNKNOWN, "without", "cache hints", "without cache hints"))):
        cache = f"{folder}/vectors{i}"
        expect(run(fault, "run", "-q", "transcripts/modular.json", cache=cache, **vectors), 0)
        devices = json.loads(expect(run(NO_FAULT, "devices", "--json", "-", cache=cache), 0))["devices"]
        if "PoCL" not in devices[0]["version"] and fault in (CRASHING, UNKNOWN):
            continue
        assert value in [device.get(key) for device in devices], (fault, devices)
        assert told in expect(run(NO_FAULT, "devices", cache=cache), 0), fault
        if fault == SMALL:
            assert told in expect(run(fault, "check", "--op", "zeros", cache=cache, **vectors), 0)
    # Nothing is cached, and a child tests the device.
    assert "without cache hints" in expect(run(CRASHING, "devices", cache=f"{folder}/child", **vectors), 0)


def check_warnings(folder):
    """Compilers' warnings are not shown; the only ones are some about vectors that are wider than the
    CPU's registers."""
    cache, logs = f"{folder}/warnings", Path(folder) / "logs"
    told = run(WARNING, "run", "-q", "transcripts/modular.json", cache=cache, POCL_CACHE_DIR=cache)
    assert expect(told, 0) == "" and told.stderr == "", told

    def build(fault, transcript, **more):
        # Its results are not there: nothing is launched.
        run(fault, "run", "-q", "--no-verify", f"transcripts/{transcript}.json", cache=cache,
            POCL_CACHE_DIR=f"{cache}/logged", FAULTY_WARNINGS=logs, **more)

    build(WARNING, "modular")
    if "told" not in logs.read_text():
        print("the driver's logs have no warnings: kernels were not looked at")
        return
    logs.unlink()
    for variant in share("variants without a warning", ("", "local", "single"), 3):
        build(NO_FAULT, "random_1", HEALCL_VARIANT=variant)
    warnings = [line for line in logs.read_text().splitlines()
                if "warning: " in line and "changes the ABI" not in line]
    assert not warnings, "\n".join(warnings)


def check_bench():
    """Rows between the first and the last ones are compared too."""
    bench = ("bench", "--op", "modneg", "--n", "65536", "--batch", "128", "--values",
             "any", "--repeat", "1")
    expect(run(NO_FAULT, *bench), 0)
    wrong = run(ROW_70, *bench)
    expect(wrong, 1)
    assert "the device's result is wrong: " in wrong.stderr and " at [70, 0, " in wrong.stderr, \
        wrong.stderr


def check_check():
    report = json.loads(expect(run(NEGATION, "check", "--quick", "--op", "modneg", "--json", "-"),
                               1))
    assert not report["verified"] and report["self_test"] == "passed"
    assert {failure["op"] for failure in report["failures"]} == {"modneg"}
    assert 0 < report["failed"] < report["calls"], report["failed"]
    case = report["failures"][0]["case"]
    again = expect(run(NEGATION, "check", "--case", case), 1)
    assert report["failures"][0]["message"] in again, again
    assert " right" in expect(run(NO_FAULT, "check", "--case", case), 0)
    text = expect(run(NEGATION, "check", "--quick", "--op", "modneg"), 1)
    assert "FAILED: " in text and "--case " in text, text
    expect(run(NEGATION, "check", "--quick", "--op", "abs"), 0)
    text = expect(run(STRIDED, "check", "--quick", "--op", "modneg"), 1)
    assert re.search("modneg +240/336 right, some WRONG", text), text
    # Steps that passes make are checked too.
    text = expect(run(CHAIN, "check", "--quick", "--op", "transcripts"), 1)
    assert re.search("\nsequences.json.gz: entry \\d+ .device_to_host.: results differ: ", text), text
    # Results before a driver's crash are shown, and the operation that crashed.
    crashed = run(CRASH, "check", "--quick")
    lines = expect(crashed, 4).splitlines()
    assert crashed.stderr == "healcl: crashed in a driver, or in healcl: SIGSEGV\n", crashed
    assert lines[-1].strip() == "modneg" and lines[-2].startswith("mod  "), crashed.stdout
    # Valid data that are refused are no limit of the device.
    told = json.loads(expect(run(REFUSAL, "check", "--quick", "--op", "modneg", "--json", "-"), 1))
    assert told["failed"] > 0 and told["unsupported"] == 0 and not told["verified"], told
    assert "a valid call is refused: " in told["failures"][0]["message"], told["failures"][0]
    # Calls beyond the device come first here; wrong ones are reported nevertheless.
    text = expect(run(FAR_AND_STRIDED, "check", "--quick", "--op", "mod",
                      FAULTY_ALLOCATION="16384"), 1)
    assert ", some WRONG" in text, text
    assert re.findall(r"(int\d+), .*\] is -?\d+, not -?\d+", text) == ["int32", "int64"], text
    assert "in one allocation" not in text.partition("\n\n")[2], text


def check_allocation():
    """Steps on tensors that no allocation holds run in slices, or on the host where they cannot be cut,
    in sessions too."""
    transcript, limit = "transcripts/encrypted_digits_toy.json.gz", {"FAULTY_ALLOCATION": "262144"}
    told = json.loads(expect(run(NO_FAULT, "run", "-q", "--json", "-", transcript, **limit), 0))
    assert told["verified"] and told["fallbacks"] == 0, told
    told = json.loads(expect(run(NO_FAULT, "run", "-q", "--json", "-",
                                 "transcripts/encrypted_sentiment.json.gz",
                                 FAULTY_ALLOCATION="260000"), 0))
    assert told["verified"] and told["fallbacks"] > 0, told
    told = expect(run(NO_FAULT, "run", "--requests", "2", transcript, **limit), 0)
    assert re.search("results +[0-9]+ compared, 0 differ", told), told


def check_diagnosis(fault, transcript, operation, folder):
    """Returns what is told, and the case, which must fail again and be right without the fault."""
    case = f"{folder}/case.json"
    found = f"{folder}/found.json"
    told = expect(run(fault, "diagnose", "-o", case, "--json", found, transcript), 1)
    found = json.loads(Path(found).read_text())
    assert found["outcome"] == "differs" and found["self_test"] == "passed", found
    assert found["first"]["op"].removeprefix("_").startswith(operation), found
    assert {"name", "dtype", "shape", "strides", "offset", "storage"} == set(
        found["first"]["tensors"][-1]), found
    difference = found["difference"]
    assert 0 < difference["different"] <= difference["elements"], found
    assert f"first at {difference['index']}: {difference['actual']}, expected " \
        f"{difference['expected']}\n" in told, (told, found)
    assert found["smallest"]["call"] in told and found["smallest"]["file"] == case, found
    assert re.search(rf"entry +\d+ \(_?{operation}", told), told
    assert re.search(r"differ +\d+ of \d+ elements, the first at \[.*\]: -?\d+, expected -?\d+",
                     told), told
    assert "no smaller" not in told, told
    assert " differ" in expect(run(fault, "run", case), 1)
    expect(run(NO_FAULT, "run", "-q", case), 0)
    text = Path(case).read_text()
    os.remove(case)
    return told, json.loads(text)


def main():
    if not use_device(healcl):
        print("no device")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_self_test(folder)
        check_loops(folder)
        check_vectors(folder)
        check_warnings(folder)
        check_check()
        check_allocation()
        check_bench()
        told, case = check_diagnosis(NEGATION, "transcripts/modular.json", "modneg", folder)
        assert re.search(r"smallest .*a int\d+ \[1(, 1)*\]", told), told
        assert len(case) <= 8, case
        told, _ = check_diagnosis(ELEMENT_37, "transcripts/recognizer.json", "mod", folder)
        sizes = re.search(r"smallest .*out int\d+ \[([0-9, ]*)\]", told).group(1).split(", ")
        elements = 1
        for size in sizes:
            elements *= int(size)
        assert 38 <= elements <= 128, told
        check_diagnosis(STRIDED, "transcripts/aliasing.json", "modmul", folder) # keeps its views
        told, _ = check_diagnosis(SECOND_MODULUS, "transcripts/ntt.json", "ntt", folder)
        assert re.search(r"smallest .*out int\d+ \[1, 1, 2, \d+\]\)$", told, re.M), told
        # A fused step is named with its passes and all its entries.
        told = expect(run(CHAIN, "diagnose", "transcripts/sentiment.json"), 1)
        assert re.search(r"^step +chain, .*\nkernel +table, .*\npasses +chains\nfrom +entry \d+ "
                         r"\(_modsum_ttt\)\nfrom +entry \d+ \(_modsum_ttt\)$", told, re.M), told
        expect(run(CHAIN, "diagnose", "--passes", "none", "transcripts/sentiment.json"), 0)
        # Uploads through staging memory are checked on the device, not on the host.
        staged = {"HEALCL_TUNING": "staging_bytes=65536"}
        told = expect(run(LATER, "diagnose", "--json", "-", "transcripts/aliasing.json", **staged), 1)
        found = json.loads(told)
        assert found["outcome"] == "whole run differs" and "first" not in found, found
        told = expect(run(LATER, "diagnose", "transcripts/aliasing.json", **staged), 1)
        assert "each step alone agrees with the host reference, but the whole run does not: " \
            f"{found['failure']}\n" in told and found["failure"].startswith("entry "), told
        # A failed write loses no results.
        full = run(NEGATION, "diagnose", "-o", "/dev/full", "transcripts/modular.json")
        assert "\nsmallest " in expect(full, 2) and "\nwritten" not in full.stdout, full.stdout
        assert "cannot write '/dev/full'" in full.stderr, full.stderr
        told = expect(run(NO_FAULT, "diagnose", "transcripts/recognizer.json"), 0)
        assert "steps agree with the host reference" in told, told
        told = expect(run(NO_FAULT, "diagnose", "tests/bad/differs_in_last_value.json"), 1)
        assert "; the transcript expects another value" in told, told
    return 0


if __name__ == "__main__":
    sys.exit(main())
