#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in kernels of manifests: healcl check finds each, from one plain example, and passes the
kernels without them.

    mistakes.py HEALCL
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "extensions"))
from share import COMPILE_FAST  # noqa: E402
from key_switch import call, host  # noqa: E402

os.environ.update(COMPILE_FAST)

# out += a * b modulo q, of rows [k,n] with q [k].
OPERATION = """
KERNEL add_product(global TYPE_out *out, long out_at, long out_0, long out_1,
                   global const TYPE_a *a, long a_at, long a_0, long a_1,
                   global const TYPE_b *b, long b_at, global const TYPE_q *q, long q_at, long n,
                   long count)
{
    long i = get_global_id(0), row = i / n, column = i % n;
    if (i >= count) return;
    struct modulus m = make_modulus((ulong)q[q_at + row]);
    global TYPE_out *to = out + out_at + row * out_0 + column * out_1;
    ulong x = residue_of(a[a_at + row * a_0 + column * a_1], m), y = residue_of(b[b_at + i], m);
    ulong product = multiply_mod(x, y, m), sum = residue_of(*to, m);
    sum += product;
    *to = (TYPE_out)(sum >= m.value ? sum - m.value : sum);
}
"""

TENSOR = {"kind": "tensor", "dtype": ["int32", "int64"]}
MANIFEST = {"healcl": 1, "operations": [{
    "name": "add_product",
    "parameters": [{"name": "a", **TENSOR, "layout": "any"}, {"name": "b", **TENSOR},
                   {"name": "q", **TENSOR},
                   {**TENSOR, "name": "out", "kind": "out", "reads": True, "layout": "any"}],
    "rules": ["rank(a) == 2 && rank(b) == 2 && rank(q) == 1 && rank(out) == 2",
              "shape(a, 0) == size(q) && shape(b, 0) == size(q) && shape(out, 0) == size(q)",
              "shape(a, 1) == shape(out, 1) && shape(b, 1) == shape(out, 1)"],
    "kernels": [{"source": "k.cl", "kernel": "add_product", "global": "(size(out) + 63) / 64 * 64",
                 "local": 64, "arguments": ["out", "a", "b", "q", "shape(out, 1)", "size(out)"]}],
    "body": [{"name": "reshape", "args": ["a", [1, 1, "size(q)", "shape(a, 1)"]], "out": "terms"},
             {"name": "reshape", "args": ["b", [1, "size(q)", "shape(a, 1)"]], "out": "factors"},
             {"name": "reshape", "args": ["out", [1, "size(q)", "shape(a, 1)"]], "out": "sums"},
             {"name": "modmul_axis_sum", "args": ["terms", "factors", "q", "sums", -1]}]}]}

# out = a + b C remainder p, in place of healcl's own kernel.
STEP = """
KERNEL sums(global TYPE_out *out, long out_at, long out_0, long out_1, global const TYPE_a *a, long a_at,
            long a_0, long a_1, global const TYPE_b *b, long b_at, long b_0, long b_1,
            global const TYPE_p *p, long p_at, long p_0, long p_1, long n, long count)
{
    long i = get_global_id(0), row = i / n, column = i % n;
    if (i >= count) return;
    struct modulus m = make_modulus((ulong)p[p_at + row * p_0 + column * p_1]);
    global TYPE_out *to = out + out_at + row * out_0 + column * out_1;
    long x = a[a_at + row * a_0 + column * a_1], y = b[b_at + row * b_0 + column * b_1];
    struct wide sum = wide_add(wide_add(wide_zero(), x), y);
    long rest = (long)wide_reduce(sum, m);
    *to = (TYPE_out)(sum.high < 0 && rest != 0 ? rest - (long)m.value : rest);
}
"""

REPLACEMENT = {"healcl": 1, "replacements": [
    {"step": "modsum", "source": "k.cl", "kernel": "sums", "when": "rank(out) == 2",
     "global": "(size(out) + 63) / 64 * 64", "local": 64,
     "arguments": ["out", "a", "b", "p", "shape(out, 1)", "size(out)"]}]}

UNSIGNED = "(sizeof(TYPE_a) == 4 ? (long)(uint)a[a_at + row * a_0 + column * a_1] : a[a_at + row * a_0 + column * a_1])"
BOTH = [("no offset", "a[a_at + row", "a[row"),
        ("the offset twice", "b[b_at + ", "b[2 * b_at + "),
        ("strides swapped", "row * a_0 + column * a_1", "row * a_1 + column * a_0"),
        ("no guard", "if (i >= count) return;", ""),
        ("the sign of int32", "a[a_at + row * a_0 + column * a_1]", UNSIGNED)]
OWN = BOTH + [("another's offset", "b[b_at + ", "b[a_at + "),
              ("the modulus of another row", "q[q_at + row]", "q[q_at + (row > 0 ? row - 1 : row)]"),
              ("a modulus beyond the last", "q[q_at + row]", "q[q_at + row + (row == 1)]"),
              ("not reduced", "sum >= m.value ? sum - m.value : sum", "sum"),
              ("out is read after it is written", "ulong product = multiply_mod(x, y, m)",
               "ulong product = multiply_mod(x, y, m); *to = (TYPE_out)product; ulong unused = 0"),
              ("an input is written", "sum += product;",
               "sum += product; ((global TYPE_a *)a)[a_at] = 1;")]
STEPS = BOTH + [("the modulus of another column", "column * p_1]", "(column > 0 ? column - 1 : 0) * p_1]"),
                ("not reduced", "long rest = (long)wide_reduce(sum, m)", "long rest = x + y"),
                ("an alias is read after it is written", "long x = a[a_at + row * a_0 + column * a_1],",
                 "long x = a[a_at + row * a_0 + column * a_1]; *to = (TYPE_out)x; long")]


# Mistakes in the manifest: what changes, and the reason that check names.
MANIFESTS = [({"kernel": "other"}, "CL_INVALID_KERNEL_NAME"),
             ({"arguments": ["b", "a", "out", "p", "shape(out, 1)", "size(out)"]}, "out[0, 0] is "),
             ({"global": 0}, "out[0, 0] is "),
             ({"global": "size(out) * 65536", "local": 65536}, "work-groups of 65536 work-items are larger than "),
             ({"when": "size(out) * 9223372036854775807 > 0"}, "a value is beyond 64 bits"),
             ({"defines": {"TYPE_out": 1}}, "does not build")]


def example():
    """One call of int64 [2,4], with residues."""
    rows = [[3, 1, 4, 1], [5, 9, 2, 6]]
    flat = sum(rows, [])
    expected = [(2 * x * x) % q for row, q in zip(rows, (97, 101)) for x in row]
    return "[" + ",\n".join([
        call("host_to_device", [host(flat, [2, 4])], "a"),
        call("host_to_device", [host([97, 101], [2])], "q"),
        call("zeros", [[2, 4], ("int64",)], "out"),
        *[call("add_product", ["a", "a", "q", "out"], "out")] * 2,
        call("device_to_host", ["out"], host(expected, [2, 4]))]) + "]"


def main():
    healcl = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as path:
        examples = Path(path, "add_product", "examples")
        examples.mkdir(parents=True)
        (examples / "a.json").write_text(example())
        Path(path, "modsum").mkdir()

        def check(manifest, source, option, name, *options):
            folder = Path(path, name)
            (folder / "m.json").write_text(json.dumps(manifest))
            (folder / "k.cl").write_text(source)
            return subprocess.run([healcl, "check", "--ops", folder, option, name, *options],
                                  capture_output=True, text=True, check=False)

        missed = []
        for change, reason in MANIFESTS:
            made, = REPLACEMENT["replacements"]
            done = check({"healcl": 1, "replacements": [{**made, **change}]}, STEP, "--op", "modsum", "--quick")
            if done.returncode != 1 or "\nFAILED: " not in done.stdout or reason not in done.stdout:
                missed.append((change, reason, done))
        done = check(REPLACEMENT, STEP.replace("long x =", "*(global long *)(a + 100000000000L) = 1; long x ="),
                     "--op", "modsum", "--quick")
        if done.returncode != 1 or "healcl: while sums, of m.json, was checked: crashed " not in done.stderr:
            missed.append(("a crash", done))
        for manifest, source, mistakes, options in (
                (MANIFEST, OPERATION, OWN, ["--op", "add_product"]),
                (REPLACEMENT, STEP, STEPS, ["--op", "modsum", "--quick"])):
            done = check(manifest, source, *options)
            assert done.returncode == 0, done
            for name, old, new in mistakes:
                assert old in source, name
                done = check(manifest, source.replace(old, new), *options)
                if done.returncode != 1 or "\nFAILED: " not in done.stdout:
                    missed.append((name, options, done))
            # Alternatives take turns: the last one is wrong.
            kernel = next(kernel for kernel in [*manifest.get("replacements", []),
                                                *manifest.get("operations", [{}])[0].get("kernels", [])])
            kernel["tunables"] = {"WAY": [0, 1, 2]}
            done = check(manifest, source.replace("return;", "return; if (WAY == 2 && i == 0) return;"),
                         *options)
            if done.returncode != 1 or "[WAY=2]" not in done.stdout:
                missed.append(("an alternative", options, done))
        assert not missed, missed


main()
