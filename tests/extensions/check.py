#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl check and bench of manifests: operations by their examples, replacements by all calls.

    check.py HEALCL
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from share import COMPILE_FAST, IS_ALL  # noqa: E402

os.environ.update(COMPILE_FAST)

TENSOR = {"dtype": "int64", "shape": [4, 3], "below": 1000}


def operation(name, has_kernel, has_body, **more):
    """out = a * f mod 97, by scale.cl and by modmul."""
    made = {
        "name": name,
        "parameters": [{"name": "a", "kind": "tensor", "dtype": ["int32", "int64"]},
                       {"name": "h", "kind": "hint"},
                       {"name": "f", "kind": "int"},
                       {"name": "out", "kind": "out", "dtype": "int64"}],
        "rules": ["size(a) == size(out)"],
        "examples": [{"a": TENSOR, "f": 5, "out": {"dtype": "int64", "shape": [4, 3]}},
                     {"a": {"dtype": "int64", "shape": [3], "values": [0, "96", -1]}, "f": 96,
                      "out": {"dtype": "int64", "shape": [3], "below": 2}}],
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
             {"name": "mod", "args": ["row", 1000, "out"]}],
    "examples": [{"a": TENSOR}],
}

SCALE = """
KERNEL scale(global long *out, long out_at, global const TYPE_a *a, long a_at, long f)
{
    long i = get_global_id(0), x = a[a_at + i] * f % 97;
    out[out_at + i] = x;
}
KERNEL first_row(global long *out, long out_at, global const long *a, long a_at, long down,
                 long along)
{
    out[out_at + get_global_id(0)] = a[a_at + get_global_id(0) * along];
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


class Folder:
    def __init__(self, healcl, path):
        self.healcl, self.path = healcl, path
        self.write("scale.cl", SCALE)
        self.write("mod.cl", MOD)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def take(self, *operations, replacements=()):
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
    no_examples = operation("none", True, True)
    del no_examples["examples"]
    all_of_them = [operation("both", True, True), operation("body_only", False, True),
                   operation("kernel_only", True, False), no_examples,
                   operation("elsewhere", True, True), NEW]
    all_of_them[4]["kernels"][0]["device"] = "no such device"
    folder.take(*all_of_them)
    # Of the whole table the general kernels: few programs, which the tests of the table compile too.
    told = folder.run("check", "--quick", **({} if IS_ALL else {"HEALCL_VARIANT": "general"}))
    for line in ("both         kernel 4/4  body 4/4", "body_only    no kernel  body 4/4",
                 "kernel_only  not checked: no body to compare with", "none         not checked: no examples",
                 "elsewhere    no kernel for this device  body 4/4", "first_row    kernel 2/2  body 2/2",
                 "kernels of manifests had a part in 0 calls of the table"):
        assert f"\n{line}\n" in told, (line, told)
    assert "; 2 operations are not checked\n" in told and "calls are right" in told, told
    # What is not checked is never right.
    for name in "none", "kernel_only":
        assert "\nnothing is checked; 1 operation is not checked\n" in folder.run(
            "check", "--op", name, code=1)
        made = folder.json("check", "--op", "_" + name, code=1)
        assert not made["verified"] and not made["examples"][0]["checked"], made
    made = folder.json("check", "--op", "both")
    assert made["verified"] and made["calls"] == 8 and len(made["examples"]) == 1, made
    assert 'skipped="1"' in folder.run("check", "--op", "none", "--junit", "-", code=1)
    assert "unknown operation 'third'" in folder.run("check", "--op", "third", code=2)


def wrong_kernels(folder):
    folder.take(operation("both", True, True), NEW)
    # Wrong for one value of an example, and wrong on views alone.
    for old, new, name, message in (
            ("= x;", "= x < 0 ? x + 97 : x;", "both",
             "both, example 2, contiguous, its kernel: the memory of out is 1, not -96, at [2]"),
            ("* along]", "]", "first_row",
             "first_row, example 1, strided, its kernel: the memory of out is "),
            ("long i = get", "long i = 2 * get", "both", "both, example 1, contiguous, its kernel: "),
            ("% 97;", "% 97", "both", "both, example 1, contiguous, its kernel: ")):
        assert old in SCALE
        folder.write("scale.cl", SCALE.replace(old, new))
        told = folder.run("check", "--op", name, code=1)
        assert message in told and "\nFAILED: " in told, told
        kernel = {"both": "scale"}.get(name, name)
        assert f"\n  with the kernel {kernel}, of m.json\n" in told, told
        command, = [line for line in told.splitlines() if line.startswith("  healcl check ")]
        assert shlex.split(command)[-4:] == ["--ops", folder.path, "--op", name], command
        assert f'<failure type="wrong" message="{message.split(", ", 1)[1][:20]}' in folder.run(
            "check", "--op", name, "--junit", "-", code=1)
        made = folder.json("check", "--op", name, code=1)
        assert not made["verified"] and made["examples"][0]["kernel"]["passed"] < 4, made
        assert made["examples"][0]["kernel"]["name"] == kernel, made
        assert "  " + made["examples"][0]["repeat"] == command, made
        assert made["examples"][0]["body"]["passed"] == made["examples"][0]["body"]["calls"], made
    # It is not measured either, and what fails without a body is told too.
    folder.write("scale.cl", SCALE.replace("% 97", "% 96"))
    told = folder.run("bench", "--op", "both", code=1)
    assert "both, example 1, its kernel: the memory of out is " in told, told
    folder.write("scale.cl", SCALE.replace("% 97", ""))
    folder.write("scale.cl", SCALE.replace("KERNEL scale(", "KERNEL other("))
    folder.take(operation("kernel_only", True, False))
    folder.run("check", "--op", "kernel_only", code=1)
    folder.write("scale.cl", SCALE)
    # A body that is no call of its operations.
    folder.take(operation("both", True, True, body=[{"name": "ntt", "args": [
        "a", -1, None, None, "a", None, None, "a", "out", 0, 1]}]))
    told = folder.run("check", "--op", "both", code=1)
    assert "its body: the host reference: " in told, told


def replacements(folder):
    folder.take(replacements=REPLACEMENTS)
    made = folder.json("check", "--quick", "--op", "mod")
    assert made["verified"] and sum(row["by_manifests"] for row in made["rows"]) > 100
    folder.write("mod.cl", MOD.replace("= x;", "= x < 0 ? x + q : x;"))
    told = folder.run("check", "--quick", "--op", "mod", code=1)
    command = [line for line in told.splitlines() if line.startswith("  healcl check ")][-1]
    case = shlex.split(command)[-1]
    again = subprocess.run([folder.healcl, *shlex.split(command)[1:]], capture_output=True, text=True,
                           check=False)
    assert again.returncode == 1 and "  with the kernel vendors_mod_" in again.stdout, again
    # Its failures apart from others, and what they have in common.
    made = folder.json("check", "--quick", "--op", "mod", code=1)
    assert sum(kernel["failed"] for kernel in made["kernels"]) == made["failed"] > 1, made["kernels"]
    assert {kernel["name"] for kernel in made["kernels"]} <= {f"vendors_mod_{rank}" for rank in RANKS}
    assert made["shared"]["dtype"] == "int64" and "n" not in made["shared"], made["shared"]
    assert all(one["kernel"]["manifest"] == "m.json" for one in made["failures"]), made["failures"]
    assert f", of m.json: {made['kernels'][0]['failed']} wrong calls of the table\n" in told, told
    assert f"\nall {made['failed']} wrong calls of the table have int64" in told, told
    assert "the device's result is wrong" in folder.run(
        "bench", "--op", "mod", "--n", "64", "--batch", "1", "--values", "any", "--repeat", "1",
        code=1)
    folder.write("mod.cl", MOD)
    folder.run("check", "--case", case)


def entry(name, out, *arguments):
    return {"type": "DEVICE_OP", "op": {"name": name, "args": arguments, "out": named(out)}}


def named(name):
    return {"arg_type": "DEVICE_TENSOR", "value": {"inf_name": name, "dtype": "int64"}}


def integers(kind, *values):
    return {"arg_type": kind, "value": [{"arg_type": "INT", "value": value} for value in values]}


def diagnoses(folder):
    """A kernel of an operation is one step, with its copies; one of a replacement is cut smaller."""
    shape, dtype = integers("SHAPE", 4, 3), {"arg_type": "TENSOR_TYPE", "value": "int64"}
    integer = [{"arg_type": "INT", "value": value} for value in (-7, 5, 0, 1, 97)]
    path = os.path.join(folder.path, "it's.transcript")
    transcript = [entry("empty", "a", shape, dtype), entry("empty", "out", shape, dtype),
                  entry("set_const_val", "a", named("a"), integer[0]),
                  entry("moveaxis", "a", named("a"), integer[2], integer[3]),
                  entry("moveaxis", "out", named("out"), integer[2], integer[3]),
                  entry("both", "out", named("a"), {"arg_type": "NONE"}, integer[1], named("out")),
                  entry("empty", "q", integers("SHAPE", 3, 4), dtype),
                  entry("set_const_val", "q", named("q"), integer[4]),
                  entry("mod", "out", named("a"), named("q"), named("out"))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(transcript, file)
    folder.take(operation("both", True, True), replacements=REPLACEMENTS)
    folder.write("scale.cl", SCALE)
    assert "steps agree with the host reference" in folder.run("diagnose", path)
    folder.write("scale.cl", SCALE.replace("= x;", "= x < 0 ? x + 97 : x;"))
    told = folder.run("diagnose", path, code=1)
    for line in ("entry       5 (both)", "step        a vendor's operation, 1 steps before it agree",
                 "kernel      scale, of m.json", "healcl check --op both"):
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
                operation("kernel_only", True, False), NEW,
                operation("no_examples", False, True, examples=[]))
    listed = folder.run("bench", "--list").splitlines()
    assert listed[-4:] == ["both", "body_only", "kernel_only", "first_row"], listed
    for name, sides in (("_both", ["kernel", "body"]), ("body_only", ["body"]),
                        ("kernel_only", ["kernel"]), ("first_row", ["kernel", "body"])):
        made = folder.json("bench", "--op", name, "--repeat", "3")
        assert made["results"] == [] and made["examples"], made
        for example in made["examples"]:
            assert example["op"] == name.strip("_"), made
            assert [side for side in ("kernel", "body") if side in example] == sides, made
            assert all(example[side]["median_ns"] > 0 for side in sides), made
            assert example["checked"] == ("body" in sides), made
            assert ("ratio" in example) == (len(sides) == 2), made
    told = folder.run("bench", "--op", "both", "--repeat", "3")
    assert told.count("\nboth ") == 4 and "not checked" not in told, told
    told = folder.run("bench", "--op", "kernel_only", "--repeat", "3")
    assert told.count("  kernel, not checked  ") == 2, told
    assert "--n means nothing to both" in folder.run("bench", "--op", "both", "--n", "8", code=2)
    assert "has no examples" in folder.run("bench", "--op", "no_examples", code=2)
    assert "no operation 'third' is measured" in folder.run("bench", "--op", "third", code=2)


def main():
    with tempfile.TemporaryDirectory(prefix="healcl's ") as path:  # as a shell must quote it
        folder = Folder(os.path.abspath(sys.argv[1]), path)
        checks(folder)
        wrong_kernels(folder)
        replacements(folder)
        diagnoses(folder)
        benchmarks(folder)


main()
