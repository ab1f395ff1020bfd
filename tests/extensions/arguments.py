#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manifests with wrong arguments for a kernel: each is refused by one line, and no driver gets them.

    arguments.py HEALCL [FAULTY_SOURCE.so]

Without the library, as with sanitizers, drivers that do not report kernels' parameters are left out.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "extensions"))
from key_switch import call  # noqa: E402
from share import COMPILE_FAST  # noqa: E402

healcl = os.path.abspath(sys.argv[1])
faulty = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
os.environ.update(COMPILE_FAST)

TAKES = "global long *out, long out_at, global const long *a, long a_at, long f"
GIVES = ["out", "a", "f"]
INTEGERS = ["size(out)", "size(a)", "size(out)", "0", "f"]

# (what a kernel takes, what the manifest gives, the end of the line; None: it is right)
CASES = [
    (TAKES, GIVES, None),
    ("global long*out,ulong out_at,constant long*a,unsigned long a_at,const long f", GIVES, None),
    ("global long *restrict out, long out_at, volatile global ulong2 *a, long a_at, my_long f", GIVES,
     None),
    (TAKES, INTEGERS, " takes 'global long* out' as argument 1, but the manifest gives a long, 'size(out)'"),
    (TAKES, ["out", "size(a)", 0, "f"],
     " takes 'global long* a' as argument 3, but the manifest gives a long, 'size(a)'"),
    (TAKES.replace("global const long *a", "long b"), GIVES,
     " takes 'long b' as argument 3, but the manifest gives the memory of 'a'"),
    (TAKES.replace("global const", "local"), GIVES,
     " takes 'local long* a' as argument 3, but the manifest gives the memory of 'a'"),
    (TAKES.replace("long f", "local long *f"), GIVES,
     " takes 'local long* f' as argument 5, but the manifest gives a long, 'f'"),
    (TAKES.replace("long f", "int f"), GIVES,
     " takes 'int f' as argument 5, but the manifest gives a long, 'f'"),
    (TAKES.replace("long f", "float f"), GIVES,
     " takes 'float f' as argument 5, but the manifest gives a long, 'f'"),
    (TAKES.replace("global const long *a", "constant ulong4 *a"), GIVES, None),
    (TAKES.replace("global const long *a", "global my_long *a"), GIVES, None),
    *[(TAKES.replace("global const long *a", f"{space} {given} *a"), GIVES,
       f" takes '{space.split()[0]} {told}* a' as argument 3, but the manifest gives the memory of 'a', int64")
      for space, given, told in (("global const", "int", "int"), ("global", "uint", "uint"),
                                 ("constant", "uint4", "uint4"), ("global const", "uchar", "uchar"),
                                 ("global volatile", "char", "char"), ("global", "short2", "short2"),
                                 ("global", "float", "float"), ("global", "double2", "double2"))],
    (TAKES, ["out", "a"],
     " takes 5 arguments, but the manifest gives 4, tensors' offsets and strides included"),
    (TAKES, ["out", "a", "f", "f"],
     " takes 5 arguments, but the manifest gives 6, tensors' offsets and strides included"),
]


def run(*arguments, preload=False, **environment):
    if preload:
        environment.update(LD_PRELOAD=faulty, FAULTY_NO_ARGUMENTS="1")
    return subprocess.run([healcl, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def expect(done, code, text=""):
    if done.returncode != code or text not in done.stdout + done.stderr:
        sys.exit(f"{done.args} ends with {done.returncode}, not {code} and '{text}':\n"
                 f"{done.stdout}{done.stderr}")
    return done


# A kernel for each list of what it takes, in one source: compiling is most of what this test takes.
LISTS = list(dict.fromkeys(takes for takes, _, _ in CASES))


def name_of(takes):
    return f"scale_{LISTS.index(takes)}"


def kernel_of(takes):
    """A kernel with wrong arguments must not run: it would write far outside."""
    right = all(part in takes for part in ("out", "out_at", "*a", "a_at", " f")) and "local" not in takes
    line = "out[out_at + get_global_id(0)] = ((global const long *)a)[a_at + get_global_id(0)] * (long)f % 97;"
    line = line.replace("global const", "constant") if "constant" in takes else line
    return f"KERNEL {name_of(takes)}({takes})\n{{ {line if right else ''} }}\n"


def write(folder, takes, gives, replaces=False):
    kernel = {"source": "scale.cl", "kernel": name_of(takes), "global": "size(out)", "local": 1,
              "arguments": gives}
    operation = {
        "name": "scale",
        "parameters": [{"name": "a", "kind": "tensor", "dtype": "int64", "values": [0, 1000]},
                       {"name": "f", "kind": "int"},
                       {"name": "out", "kind": "out", "dtype": "int64"}],
        "rules": ["size(a) == size(out)"],
        "kernels": [kernel],
        "body": [{"name": "modmul", "args": ["a", "f", 97, "out"]}]}
    manifest = {"healcl": 1, "operations": [operation]}
    if replaces:
        manifest = {"healcl": 1, "replacements": [
            {"step": "mod", "when": "dtype(out) == 64", **kernel}]}
    (folder / "m.json").write_text(json.dumps(manifest))
    (folder / "scale.cl").write_text("typedef long my_long;\n" + "".join(map(kernel_of, LISTS)))


def transcript(folder):
    """b = scale(a, 5), of tensors that nobody uploads"""
    entries = [call("empty", [[6], ("int64",)], name) for name in "ab"]
    entries += [call("set_const_val", [name, 3], name) for name in "ab"]
    path = folder / "t.json"
    path.write_text("[" + ",".join([*entries, call("scale", ["a", 5, "b"], "b")]) + "]")
    return path


def check_case(folder, file, takes, gives, line):
    write(folder, takes, gives)
    done = run("run", "--ops", folder, file)
    if not line:
        expect(done, 0)
        expect(run("check", "--ops", folder, "--op", "scale"), 0, "calls are right")
        assert "warning" not in done.stderr, done
        return
    line = f"m.json: kernel '{name_of(takes)}'{line}"
    expect(done, 3, line)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("healcl: ") and not done.stdout, done
    expect(run("check", "--ops", folder, "--op", "scale"), 1, line)
    if gives is INTEGERS:
        expect(run("bench", "--ops", folder, "--op", "scale", "--repeat", "1"), 1, line)


def check_replacement(folder):
    shutil.rmtree(folder / "examples")
    for gives, line in ((["size(out)", "size(a)", 0, 0, 0], "takes 'global long* out' as argument 1"),
                        (["out"], "takes 5 arguments, but the manifest gives ")):
        write(folder, TAKES, gives, replaces=True)
        expect(run("check", "--ops", folder, "--op", "mod", "--quick"), 1, f"m.json: kernel '{name_of(TAKES)}' {line}")


def check_untold(folder, file):
    """Without the driver's report: checks their number, their sizes, and a warning, once."""
    warning = "the driver does not report the arguments of kernels of manifests"
    write(folder, TAKES, GIVES)
    done = expect(run("run", "--ops", folder, "--repeat", "3", file, preload=True), 0, warning)
    assert (done.stdout + done.stderr).count(warning) == 1, done
    expect(run("check", "--ops", folder, "--op", "scale", preload=True), 0, warning)
    write(folder, TAKES, ["out", "a"])
    expect(run("run", "--ops", folder, file, preload=True), 3,
           "m.json: kernel 'scale_0' takes 5 arguments, but the manifest gives 4")
    int_f = TAKES.replace("long f", "int f")
    write(folder, int_f, GIVES)
    expect(run("run", "--ops", folder, file, preload=True), 3,
           f"m.json: kernel '{name_of(int_f)}' does not take argument 5 as the manifest gives it, a long, 'f': "
           "CL_INVALID_ARG_SIZE")


def check_binaries(folder, file):
    """A binary counts for the arguments that its source was checked for: a manifest with others has it
    built anew, or finds none in a package."""
    cache, package = folder / "cache", folder / "p.healcl"
    write(folder, TAKES, GIVES)
    expect(run("compile", "--cache", "--ops", folder, file, HEALCL_CACHE_DIR=cache), 0)
    expect(run("compile", "--ops", folder, "-o", package, file), 0)
    for preload in [False, True] if faulty else [False]:
        write(folder, TAKES, GIVES)
        done = expect(run("run", "--ops", folder, "--json", "-", "-q", file, preload=preload,
                          HEALCL_CACHE_DIR=cache), 0)
        assert json.loads(done.stdout)["programs_built"] == 0 and "warning" not in done.stderr, done
        packaged = ("run", "--no-fallback", "--package", package, "--ops", folder, file)
        expect(run(*packaged, preload=preload), 0)
        write(folder, TAKES, INTEGERS)
        expect(run(*packaged, preload=preload), 4, "is not in")
    for _ in range(2):  # a refused one is not cached
        expect(run("run", "--ops", folder, file, HEALCL_CACHE_DIR=cache, HEALCL_KEEP_BINARIES="1"), 3,
               "m.json: kernel 'scale_0' takes 'global long* out' as argument 1")


def main():
    os.environ["HEALCL_CACHE_DIR"] = ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = transcript(folder)
        operations = folder / "operations"
        operations.mkdir()
        (operations / "examples").mkdir()
        shutil.copy(file, operations / "examples" / "t.json")
        for case in CASES:
            check_case(operations, file, *case)
        check_binaries(operations, file)
        if faulty:
            check_untold(operations, file)
        check_replacement(operations)


main()
