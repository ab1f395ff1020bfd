#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl check and bench of manifests: operations by the calls in examples/, replacements by all.

    check.py HEALCL
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "extensions"))
from share import COMPILE_FAST, IS_ALL  # noqa: E402
from key_switch import call, host  # noqa: E402

os.environ.update(COMPILE_FAST)

def operation(name, has_kernel, has_body, **more):
    """out = a * f mod 97, by scale.cl and by modmul."""
    made = {
        "name": name,
        "parameters": [{"name": "a", "kind": "tensor", "dtype": ["int32", "int64"]},
                       {"name": "h", "kind": "hint"},
                       {"name": "f", "kind": "int"},
                       {"name": "out", "kind": "out", "dtype": "int64"}],
        "rules": ["size(a) == size(out)"],
    }
    if has_kernel:
        made["kernels"] = [{"source": "scale.cl", "kernel": "scale", "global": "size(out)",
                            "local": 1, "arguments": ["out", "a", "f"]}]
    if has_body:
        made["body"] = [{"name": "modmul", "args": ["a", "f", 97, "out"]}]
    made.update(more)
    return made


NEW = {
    "name": "first_row",
    "parameters": [{"name": "a", "kind": "tensor", "dtype": "int64", "layout": "any"}],
    "result": {"dtype": "int64", "shape": ["shape(a, 1)"]},
    "kernels": [{"source": "scale.cl", "kernel": "first_row", "global": "shape(a, 1)", "local": 1,
                 "arguments": ["out", "a"]}],
    "body": [{"name": "get_slice", "args": ["a", [0]], "out": "row"},
             {"name": "mod", "args": ["row", "%d" % (2**63 - 1), "out"]}],
}

SCALE = """
KERNEL scale(global long *out, long out_at, global const TYPE_a *a, long a_at, long f)
{
    long i = get_global_id(0), x = a[a_at + i];
    struct modulus m = make_modulus(97);
    ulong rest = multiply_mod(reduce(magnitude(x), m), (ulong)f, m);
    x = x < 0 ? -(long)rest : (long)rest;
    out[out_at + i] = x;
}
KERNEL first_row(global long *out, long out_at, global const long *a, long a_at, long down,
                 long along)
{
    out[out_at + get_global_id(0)] = a[a_at + get_global_id(0) * along] % LONG_MAX;
}
"""

RANKS = range(1, 6)

# C's remainder for int64, a kernel for each rank.
REPLACEMENTS = [{"step": "mod", "source": "mod.cl", "kernel": f"vendors_mod_{rank}",
                 "when": f"rank(out) == {rank} && dtype(out) == 64 && present(p) && rank(p) == rank(out)",
                 "global": "size(out)", "local": 1,
                 "arguments": [f"shape(out, {axis})" for axis in range(rank)] + ["out", "a", "p"]}
                for rank in RANKS]


def mod_kernel(rank):
    def each(text):
        return "".join(text.replace("#", str(axis)) for axis in range(rank))
    return f"""
KERNEL vendors_mod_{rank}({each("long n#, ")}global long *out, long out_at{each(", long out#")},
                   global const long *a, long a_at{each(", long a#")},
                   global const long *p, long p_at{each(", long p#")})
{{
    long i = get_global_id(0);
    {"".join(f"long i{axis} = i % n{axis}; i /= n{axis}; " for axis in reversed(range(rank)))}
    long q = p[p_at{each(" + i# * p#")}], x = a[a_at{each(" + i# * a#")}] % q;
    out[out_at{each(" + i# * out#")}] = x;
}}
"""


MOD = "".join(mod_kernel(rank) for rank in RANKS)


def example(name, expected=None):
    """One call, of [4,3] without negative values."""
    values = list(range(90, 102))
    if name == "first_row":
        return "[" + ",".join([call("host_to_device", [host(values, [4, 3])], "a"),
                               call(name, ["a"], "b")]) + "]"
    expected = [value * 5 % 97 for value in values] if expected is None else expected
    return "[" + ",".join([call("host_to_device", [host(values, [4, 3])], "a"),
                           call("empty", [[4, 3], ("int64",)], "out"),
                           call(name, ["a", None, 5, "out"], "out"),
                           call("device_to_host", ["out"], host(expected, [4, 3]))]) + "]"


class Folder:
    def __init__(self, healcl, path):
        self.healcl, self.path = healcl, path
        self.write("scale.cl", SCALE)
        self.write("mod.cl", MOD)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def take(self, *operations, replacements=(), calls=None):
        """With an example of each operation, or of those that are named."""
        examples = os.path.join(self.path, "examples")
        shutil.rmtree(examples, ignore_errors=True)
        os.mkdir(examples)
        for one in operations:
            if calls is None or one["name"] in calls:
                self.write(f"examples/{one['name']}.json", example(one["name"]))
        self.write("m.json", json.dumps({"healcl": 1, "operations": operations,
                                         "replacements": replacements}))

    def run(self, command, *options, code=0, **more):
        done = subprocess.run([self.healcl, command, "--ops", self.path, *options],
                              capture_output=True, text=True, check=False, env={**os.environ, **more})
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def json(self, command, *options, code=0):
        told = self.run(command, *options, "--json", "-", code=code)
        return json.JSONDecoder().raw_decode(told)[0]


def checks(folder):
    all_of_them = [operation("both", True, True), operation("body_only", False, True),
                   operation("kernel_only", True, False), operation("none", True, True),
                   operation("elsewhere", True, True), NEW]
    all_of_them[4]["kernels"][0]["device"] = "no such device"
    folder.take(*all_of_them, calls=["both", "body_only", "kernel_only", "elsewhere", "first_row"])
    # General kernels of the whole table need few programs, which the tests of the table compile
    # too.
    told = folder.run("check", "--quick", code=1,
                      **({} if IS_ALL else {"HEALCL_VARIANT": "general"}))
    for line in (r"both +(\d+)/\1 +(\d+)/\2", r"body_only +- +(\d+)/\1",
                 "kernel_only +- +-  not checked: there is no body to compare with",
                 "none +- +-  not checked: no transcript in examples/ calls it",
                 r"elsewhere +- +(\d+)/\1", r"first_row +(\d+)/\1 +(\d+)/\2",
                 "scale of m.json never ran: there is no body to compare with",
                 "scale of m.json never ran: no transcript in examples/ calls it",
                 "scale of m.json never ran: it is for other devices"):
        assert re.search(f"\n{line}\n", told), (line, told)
    assert ("; 2 operations not checked; 2 kernels of manifests never ran\n" in told
            and "\nFAILED: the " in told), told
    # Unchecked operations are never right.
    for name in "none", "kernel_only":
        assert "\nnothing was checked; 1 operation not checked; 1 kernel" in folder.run(
            "check", "--op", name, code=1)
        made = folder.json("check", "--op", "_" + name, code=1)
        assert not made["verified"] and not made["examples"][0]["checked"], made
    made = folder.json("check", "--op", "both")
    assert made["verified"] and made["calls"] > 100 and len(made["examples"]) == 1, made
    assert 'skipped="2"' in folder.run("check", "--op", "none", "--junit", "-", code=1)
    assert "unknown operation 'third'" in folder.run("check", "--op", "third", code=2)
    # Examples are transcripts, and say what to expect.
    folder.write("examples/both.json", example("both", [0] * 12))
    assert "examples/both.json: entry 3" in folder.run("check", "--op", "both", code=1)
    folder.write("examples/both.json", example("nothing_known"))
    assert "examples/both.json: entry 2 (nothing_known): unknown operation" in folder.run(
        "check", "--op", "both", code=3)


def wrong_kernels(folder):
    folder.take(operation("both", True, True), NEW)
    # Wrong on views alone, and where one does not see it; mistakes.py has more.
    for old, new, name, message in (
            ("-(long)rest", "97 - (long)rest", "both", r"both, both.json, entry 2: \w+, any values that the body takes, its kernel: out"),
            ("* along]", "]", "first_row",
             r"first_row, first_row.json, entry 1: strided, .*, its kernel: out"),
            ("reduce(magnitude(x), m);", "nothing", "both", "both, both.json, .*does not build")):
        folder.write("scale.cl", SCALE.replace(old, new) if old in SCALE else SCALE.replace("= x;", "="))
        told = folder.run("check", "--op", name, code=1)
        assert re.search(message, told) and "\nFAILED: " in told, told
        kernel = {"both": "scale"}.get(name, name)
        assert f"\n  with the kernel {kernel}, of m.json\n" in told, told
        command, = [line for line in told.splitlines() if line.startswith("  healcl check ")]
        assert shlex.split(command)[-4:] == ["--ops", folder.path, "--op", name], command
        assert '<failure type="wrong" message="' in folder.run("check", "--op", name, "--junit", "-", code=1)
        made = folder.json("check", "--op", name, code=1)
        side = made["examples"][0]["kernel"]
        assert not made["verified"] and side["passed"] < side["calls"], made
        assert side["name"] == kernel and "  " + made["examples"][0]["repeat"] == command, made
        assert made["examples"][0]["body"]["passed"] == made["examples"][0]["body"]["calls"], made
    assert "scale.cl:9:" in told, told  # the line as the vendor has it
    # It is not measured either, and a failure without a body is reported too.
    folder.write("scale.cl", SCALE.replace("(97)", "(96)"))
    told = folder.run("bench", "--op", "both", code=1)
    assert "both, both.json, entry 2, its kernel: the device's result is wrong: " in told, told
    folder.write("scale.cl", SCALE.replace("KERNEL scale(", "KERNEL other("))
    folder.take(operation("kernel_only", True, False))
    folder.run("check", "--op", "kernel_only", code=1)
    # Compilers' warnings are reported.
    folder.write("scale.cl", SCALE.replace("= x;", "= x;\n    if (i = f)\n        return;"))
    folder.take(operation("both", True, True))
    told = folder.run("check", "--op", "both", HEALCL_CACHE_DIR="", POCL_CACHE_DIR=folder.path)
    assert "healcl: warning: messages of the compiler about manifests' sources:" in told, told
    assert "scale.cl:9:" in told, told
    # A kernel whose work-groups do not fit some sizes is refused there.
    uneven = operation("both", True, True)
    uneven["kernels"][0]["local"] = 4
    folder.write("scale.cl", SCALE)
    folder.take(uneven)
    assert "are not whole work-groups of 4" in folder.run("check", "--op", "both", code=1)
    # Kernels get only values that they may rely on.
    folder.write("scale.cl", SCALE.replace("-(long)rest", "97 - (long)rest"))
    relies = operation("both", True, True)
    relies["parameters"][0]["values"] = [0, 96]
    folder.take(relies)
    folder.run("check", "--op", "both")
    # A body that is no call of its operations.
    folder.write("scale.cl", SCALE)
    folder.take(operation("both", True, True, body=[{"name": "ntt", "args": [
        "a", -1, None, None, "a", None, None, "a", "out", 0, 1]}]))
    assert "examples/both.json: entry 2 (both): its body: ntt: " in folder.run("check", "--op", "both", code=3)


def replacements(folder):
    folder.take(replacements=REPLACEMENTS)
    made = folder.json("check", "--quick", "--op", "mod")
    assert made["verified"] and sum(kernel["steps"] for kernel in made["kernels"]) > 100
    folder.write("mod.cl", MOD.replace("= x;", "= x < 0 ? x + q : x;"))
    told = folder.run("check", "--quick", "--op", "mod", code=1)
    command = [line for line in told.splitlines() if line.startswith("  healcl check ")][-1]
    case = shlex.split(command)[-1]
    again = subprocess.run([folder.healcl, *shlex.split(command)[1:]], capture_output=True, text=True,
                           check=False)
    assert again.returncode == 1 and "  with the kernel vendors_mod_" in again.stdout, again
    # Its failures apart from others.
    made = folder.json("check", "--quick", "--op", "mod", code=1)
    assert sum(kernel["failed"] for kernel in made["kernels"]) == made["failed"] > 1, made["kernels"]
    assert {kernel["name"] for kernel in made["kernels"]} <= {f"vendors_mod_{rank}" for rank in RANKS}
    assert all(one["kernel"]["manifest"] == "m.json" for one in made["failures"]), made["failures"]
    assert "the device's result is wrong" in folder.run(
        "bench", "--op", "mod", "--n", "64", "--batch", "1", "--values", "any", "--repeat", "1",
        code=1)
    folder.write("mod.cl", MOD)
    folder.run("check", "--case", case)
    # It is measured beside the built-in kernel, where it serves the shape.
    bench = ("bench", "--op", "mod", "--n", "64", "--batch", "2", "--repeat", "1")
    result, = folder.json(*bench)["results"]
    assert (result["kernel"], result["manifest"]) == ("vendors_mod_4", "m.json"), result
    assert result["ratio"] > 0 and "manifest" not in result["builtin"], result
    told = folder.run(*bench)
    assert re.search(r"\nmod, \[2, 1, 1, 64\]: the built-in kernel, \w+, takes [\d.]+ \(.*\) of the time of "
                     r"vendors_mod_4, of m.json\n", told), told
    folder.take(replacements=REPLACEMENTS[1:2])
    result, = folder.json(*bench)["results"]
    assert "manifest" not in result and "builtin" not in result, result
    assert result["not_run"].startswith("vendors_mod_2, of m.json, does not run: 'rank(out) == 2 "), result


def idle_kernels(folder):
    """A kernel that ran nothing fails the check, and an expression that fails refuses the call."""
    one = REPLACEMENTS[1]
    folder.write("fill.transcript", "[" + ",".join([
        call("empty", [[4, 3], ("int64",)], "out"), call("set_const_val", ["out", 7], "out"),
        call("empty", [[4, 3], ("int64",)], "p"), call("set_const_val", ["p", 5], "p"),
        call("mod", ["out", "p", "out"], "out")]) + "]")
    file = os.path.join(folder.path, "fill.transcript")
    check = ("check", "--quick", "--op", "mod")
    for change, why, code in (
            ({"when": "shape(out, 9) == 2"}, "'shape(out, 9) == 2': axis 9 is outside of rank 2", 3),
            ({"global": "size(out) / 0"}, "the global size 'size(out) / 0': 12 is divided by 0", 3),
            ({"local": 100000}, "12 work-items are not whole work-groups of 100000", 3),
            ({"global": "-64"}, "-64 work-items are not whole work-groups of 1", 3),
            ({"when": "size(out) < 0"}, "'size(out) < 0' does not hold", 0),
            ({"device": "no such device"}, "it is for other devices", 0)):
        folder.write("m.json", json.dumps({"healcl": 1, "replacements": [{**one, **change}]}))
        told = folder.run(*check, code=1)
        line, = [line for line in told.splitlines() if line.startswith("vendors_mod_2 of m.json never ran: ")]
        assert re.split(r"\d+", why)[-1] in line or "rank" in why, (line, why)
        listed = folder.json("inspect", "--kernels", file)["kernels"]
        row, = [row for row in listed if row["kernel"] == "vendors_mod_2"]
        assert row["steps"] == 0 and row["why_not"][0]["reason"].endswith(why), row
        told = folder.run("run", "--no-fallback", file, code=code)
        assert (why in told) == (code == 3), told
    folder.take(replacements=[{**one, "when": "size(out) < 0"}])
    assert '<failure type="ran nothing"' in folder.run(*check, "--junit", "-", code=1)


def diagnoses(folder):
    """A kernel of an operation is one step, with its copies; one of a replacement is cut smaller."""
    path = os.path.join(folder.path, "it's.transcript")
    transcript = [call("empty", [[4, 3], ("int64",)], "a"), call("empty", [[4, 3], ("int64",)], "out"),
                  call("set_const_val", ["a", -7], "a"), call("moveaxis", ["a", 0, 1], "a"),
                  call("moveaxis", ["out", 0, 1], "out"), call("both", ["a", None, 5, "out"], "out"),
                  call("empty", [[3, 4], ("int64",)], "q"), call("set_const_val", ["q", 97], "q"),
                  call("mod", ["a", "q", "out"], "out")]
    folder.write("it's.transcript", "[" + ",".join(transcript) + "]")
    folder.take(operation("both", True, True), replacements=REPLACEMENTS)
    folder.write("scale.cl", SCALE)
    assert "steps agree with the host reference" in folder.run("diagnose", path)
    folder.write("scale.cl", SCALE.replace("= x;", "= x < 0 ? x + 97 : x;"))
    told = folder.run("diagnose", path, code=1)
    for line in ("entry       5 (both)", "step        a vendor's operation, the last of 2 that were compared",
                 "kernel      scale, of m.json", "--op both"):
        assert f"\n{line}" in told or f" {line}" in told, (line, told)
    assert "the first at [0, 0]: 62, expected -35" in told, told
    made = folder.json("diagnose", path, code=1)
    assert (made["first"]["kernel"], made["first"]["manifest"], made["outcome"]) == (
        "scale", "m.json", "differs"), made
    # Without a kernel for the device its body runs there, step by step.
    elsewhere = operation("both", True, True)
    elsewhere["kernels"][0]["device"] = "no such device"
    folder.take(elsewhere, replacements=REPLACEMENTS)
    folder.write("mod.cl", MOD.replace("= x;", "= x < 0 ? x + q : x;"))
    case = os.path.join(folder.path, "a case")
    told = folder.run("diagnose", "--output", case, path, code=1)
    assert "\nkernel      vendors_mod_2, of m.json\n" in told and "\nsmallest " in told, told
    command, = [line for line in told.splitlines() if line.startswith("  healcl run ")]
    again = subprocess.run([folder.healcl, *shlex.split(command)[1:]], capture_output=True,
                           text=True, check=False)
    assert again.returncode == 1 and "1 of 1 result differs" in again.stdout + again.stderr, again
    folder.write("scale.cl", SCALE)
    folder.write("mod.cl", MOD)


def benchmarks(folder):
    folder.take(operation("both", True, True), operation("body_only", False, True),
                operation("kernel_only", True, False), NEW, operation("no_examples", False, True),
                calls=["both", "body_only", "kernel_only", "first_row"])
    listed = folder.run("bench", "--list").splitlines()
    assert listed[-5:] == ["both", "body_only", "kernel_only", "first_row", "no_examples"], listed
    for name, sides in (("_both", ["kernel", "body"]), ("body_only", ["body"]),
                        ("kernel_only", ["kernel"]), ("first_row", ["kernel", "body"])):
        made = folder.json("bench", "--op", name, "--repeat", "3")
        example, = made["examples"]
        assert made["results"] == [] and example["op"] == name.strip("_"), made
        assert example["example"] == name.strip("_") + ".json" and example["entry"] > 0, made
        assert [side for side in ("kernel", "body") if side in example] == sides, made
        assert all(example[side]["median_ns"] > 0 for side in sides), made
        assert example["checked"] == ("body" in sides), made
        assert ("ratio" in example) == (len(sides) == 2), made
    told = folder.run("bench", "--op", "both", "--repeat", "3")
    assert re.search(r"\nboth, both.json:2: the body takes [\d.]+ \([\d.]+ to [\d.]+\) times as long "
                     "as the kernel", told) and "not checked" not in told, told
    told = folder.run("bench", "--op", "kernel_only", "--repeat", "3")
    assert told.count("kernel_only, not checked  ") == 1 and "as long" not in told, told
    assert "--n does not apply to both" in folder.run("bench", "--op", "both", "--n", "8", code=2)
    assert "'no_examples' cannot be measured" in folder.run("bench", "--op", "no_examples", code=2)
    assert "bench cannot measure 'third'" in folder.run("bench", "--op", "third", code=2)


def main():
    with tempfile.TemporaryDirectory(prefix="healcl's ") as path:  # as a shell must quote it
        folder = Folder(os.path.abspath(sys.argv[1]), path)
        checks(folder)
        wrong_kernels(folder)
        replacements(folder)
        idle_kernels(folder)
        diagnoses(folder)
        benchmarks(folder)


if __name__ == "__main__":
    main()
