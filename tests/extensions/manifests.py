#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong manifests: each is refused with its line and field, as manifests.txt says.

    manifests.py HEALCL [--update]

Each case changes one place of a manifest that is right. Nothing of it is built or run: the command
only lists operations.
"""

import os
import subprocess
import sys
import tempfile

RIGHT = """{
  "healcl": 1,
  "operations": [
    {
      "name": "scale",
      "meaning": "out = a * f",
      "parameters": [
        {"name": "a", "kind": "tensor", "dtype": ["int32", "int64"], "layout": "any"},
        {"name": "f", "kind": "int"},
        {"name": "q", "kind": "modulus"},
        {"name": "h", "kind": "hint"},
        {"name": "out", "kind": "out", "dtype": "int64", "reads": true}
      ],
      "rules": [
        "rank(a) == 1 && shape(a, 0) == shape(out, 0)",
        "f >= 1"
      ],
      "kernels": [
        {
          "source": "scale.cl",
          "kernel": "scale",
          "options": "-D WIDE",
          "device": "no such",
          "type": "gpu",
          "when": "size(a) > 0",
          "global": "size(a)",
          "local": 1,
          "tunables": {"ROWS": [1, 2, "4"], "HALF": [0, 1]},
          "defines": {"N": "size(a)", "M": "ROWS * 2"},
          "arguments": ["out", "a", "f", "stride(a, 0)"]
        }
      ],
      "body": [
        {"name": "empty", "args": [["size(a)"], "int64"], "out": "t"},
        {"name": "modmul", "args": ["a", "f", "q", "t"]},
        {"name": "modsum", "args": ["t", 0, "q", "out"]}
      ]
    },
    {
      "name": "made",
      "parameters": [{"name": "a", "kind": "tensor", "dtype": "int64"}],
      "result": {"dtype": "int64", "shape": ["size(a)"]},
      "body": [{"name": "mod", "args": ["a", 7, "out"]}]
    }
  ]
}
"""

SOURCE = RIGHT[RIGHT.index('"source"'):RIGHT.index('"arguments": ["out"')]

# Other ones that are right.
TAKEN = [
    ("", ""),
    ('"scale.cl"', '"inside.cl"'),
    ('"-D WIDE"', '"-D WIDE=1+2 -DHALF=(3/2) -D X= -cl-mad-enable -cl-std=CL1.2 -cl-nv-maxrregcount=32 -w -Werror "'),
    ('"options": "-D WIDE",', ""),
    ('"layout": "any"', '"layout": "any", "values": "residues"'),
    ('"layout": "any"', '"layout": "any", "values": ["-9223372036854775808", 0]'),
]

# Those that are right where the folder is trusted.
TRUSTED = ["a link out of the folder", "a link to a folder beside it", "a link of several steps",
           "an included file", "a file of options", "a quote in a macro", "no macro"]

CASES = [
    ("right", "", ""),
    # JSON
    ("a comma is missing", '"name": "scale",', '"name": "scale"'),
    ("cut off", '"body": [{"name": "mod", "args": ["a", 7, "out"]}]\n    }\n  ]\n}\n', '"body": ['),
    ("text behind it", "  ]\n}\n", "  ]\n}\nmore"),
    ("a list", RIGHT, "[]"),
    ("empty", RIGHT, ""),
    ("a string without an end", '"meaning": "out = a * f"', '"meaning": "out'),
    ("nested without end", RIGHT, "[" * 5000),
    # the whole
    ("no version", '"healcl": 1,', ""),
    ("another version", '"healcl": 1,', '"healcl": 2,'),
    ("version as text", '"healcl": 1,', '"healcl": "1",'),
    ("unknown member", '"healcl": 1,', '"healcl": 1, "more": 1,'),
    ("twice", '"healcl": 1,', '"healcl": 1,\n"healcl": 1,'),
    ("operations no list", '"operations": [\n', '"operations": {}, "x": [\n'),
    # operations
    ("an operation that is none", '"operations": [\n', '"operations": [ 7,\n'),
    ("no name", '"name": "made",', ""),
    ("name is a number", '"name": "made"', '"name": 7'),
    ("name is empty", '"name": "made"', '"name": ""'),
    ("name with a space", '"name": "made"', '"name": "ma de"'),
    ("name begins with a digit", '"name": "made"', '"name": "1made"'),
    ("name with an underscore in front", '"name": "made"', '"name": "_made"'),
    ("name too long", '"name": "made"', '"name": "' + "m" * 65 + '"'),
    ("name of a built-in", '"name": "made"', '"name": "modmul"'),
    ("name of another", '"name": "made"', '"name": "scale"'),
    ("name beyond ASCII", '"name": "made"', '"name": "m\\u00e4de"'),
    ("line break in a meaning", '"out = a * f"', '"out\\n= a"'),
    ("unknown member of an operation", '"name": "made",', '"name": "made", "shape": [],'),
    # parameters
    ("no parameters", '"parameters": [{"name": "a", "kind": "tensor", "dtype": "int64"}],', ""),
    ("a parameter that is none", '{"name": "f", "kind": "int"}', '"f"'),
    ("kind is missing", '"name": "f", "kind": "int"', '"name": "f"'),
    ("no such kind", '"kind": "int"', '"kind": "float"'),
    ("same name", '"name": "f", "kind": "int"', '"name": "a", "kind": "int"'),
    ("dtype is missing", '"kind": "tensor", "dtype": ["int32", "int64"], ', '"kind": "tensor", '),
    ("no such dtype", '["int32", "int64"]', '["int32", "int16"]'),
    ("no dtype at all", '["int32", "int64"]', "[]"),
    ("dtype of an integer", '"kind": "int"', '"kind": "int", "dtype": "int64"'),
    ("no such layout", '"layout": "any"', '"layout": "all"'),
    ("out of another name", '"name": "out", "kind": "out"', '"name": "o", "kind": "out"'),
    ("a tensor named out", '"name": "out", "kind": "out"', '"name": "out", "kind": "tensor"'),
    ("reads of an input", '"layout": "any"', '"reads": true'),
    ("reads is no bool", '"reads": true', '"reads": 1'),
    ("too many parameters", '{"name": "f", "kind": "int"}',
     ",".join('{"name": "f%d", "kind": "hint"}' % i for i in range(9))),
    ("too many integers", '{"name": "f", "kind": "int"}',
     ",".join('{"name": "f%d", "kind": "int"}' % i for i in range(7))),
    ("too many tensors", '{"name": "a", "kind": "tensor", "dtype": "int64"}',
     ",".join('{"name": "a%d", "kind": "tensor", "dtype": "int64"}' % i for i in range(9))),
    # results and rules
    ("no result", '"result": {"dtype": "int64", "shape": ["size(a)"]},\n', ""),
    ("result beside out", '"rules": [', '"result": {"dtype": "int64", "shape": []},\n"rules": ['),
    ("result without a shape", ', "shape": ["size(a)"]', ""),
    ("result of no dtype", '{"dtype": "int64", "shape": ["size(a)"]', '{"shape": ["size(a)"]'),
    ("rank beyond 16", '"shape": ["size(a)"]', '"shape": [' + ",".join("1" * 17) + "]"),
    ("shape of itself", '"shape": ["size(a)"]', '"shape": ["size(out)"]'),
    ("rules no list", '"rules": [\n        "rank(a)', '"rules": "f", "x": [\n        "rank(a)'),
    ("a rule that is an object", '"f >= 1"', "{}"),
    ("a value is missing", '"f >= 1"', '"f >="'),
    ("a parenthesis is missing", '"f >= 1"', '"(f >= 1"'),
    ("text behind a rule", '"f >= 1"', '"f >= 1 1"'),
    ("no such name", '"f >= 1"', '"g >= 1"'),
    ("a tensor as an integer", '"f >= 1"', '"a >= 1"'),
    ("an integer as a tensor", '"f >= 1"', '"rank(f) >= 1"'),
    ("no such function", '"f >= 1"', '"sum(a) >= 1"'),
    ("a hint has no value", '"f >= 1"', '"h >= 1"'),
    ("an axis is missing", '"f >= 1"', '"shape(a) >= 1"'),
    ("a number beyond 64 bits", '"f >= 1"', '"f >= 9223372036854775808"'),
    ("nested too deep", '"f >= 1"', '"' + "(" * 100 + "f" + ")" * 100 + '"'),
    ("too long", '"f >= 1"', '"f' + " + 1" * 200 + '"'),
    ("strides in a rule", '"f >= 1"', '"stride(a, 0) == 1"'),
    ("a fraction", '"local": 1', '"local": 1.5'),
    # replacements
    ("a step that is none", '"operations": [\n', '"replacements": [{"step": "upload"}],\n"operations": [\n'),
    ("a name that the step lacks", '"operations": [\n',
     '"replacements": [{"step": "ntt", "kernel": "k", "source": "scale.cl", "global": "size(b)",'
     ' "local": 1, "arguments": []}],\n"operations": [\n'),
    ("a replacement without a step", '"operations": [\n', '"replacements": [{}],\n"operations": [\n'),
    # kernels
    ("neither a kernel nor a body", '      "body": [{"name": "mod", "args": ["a", 7, "out"]}]',
     '      "meaning": "x"'),
    ("a kernel without a source", '"source": "scale.cl",', ""),
    ("a source that is not there", '"scale.cl"', '"other.cl"'),
    ("a source elsewhere", '"scale.cl"', '"../scale.cl"'),
    ("a source from the root", '"scale.cl"', '"/etc/passwd"'),
    ("a source with a byte 0", '"scale.cl"', '"zero.cl"'),
    ("a folder as a source", '"scale.cl"', '"folder"'),
    ("a link out of the folder", '"scale.cl"', '"out.cl"'),
    ("a link to a folder beside it", '"scale.cl"', '"beside.cl"'),
    ("a link of several steps", '"scale.cl"', '"steps.cl"'),
    ("a library elsewhere", SOURCE, '"library": "out.cl", "entry": "scale", '),
    ("an included file", '"-D WIDE"', '"-D WIDE -include /etc/passwd"'),
    ("an included file behind -D", '"-D WIDE"', '"-D -include /etc/passwd"'),
    ("a folder of headers", '"-D WIDE"', '"-I /etc"'),
    ("a folder of headers in one word", '"-D WIDE"', '"-I/etc"'),
    ("a file of options", '"-D WIDE"', '"@/etc/passwd"'),
    ("a file that is written", '"-D WIDE"', '"-w -o /tmp/x"'),
    ("a file as it is", '"-D WIDE"', '"  /etc/passwd"'),
    ("an option of LLVM", '"-D WIDE"', '"-mllvm -load=x.so"'),
    ("another language", '"-D WIDE"', '"-x cl"'),
    ("a path in an option of OpenCL", '"-D WIDE"', '"-cl-x=/etc/passwd"'),
    ("a quote in a macro", '"-D WIDE"', '"-DWIDE=\\"a"'),
    ("a macro with an argument", '"-D WIDE"', '"-D WIDE(a)=a"'),
    ("a macro that begins with a digit", '"-D WIDE"', '"-D1=1"'),
    ("no macro", '"-D WIDE"', '"-w -D"'),
    ("warnings as they like", '"-D WIDE"', '"-Wno-error=x"'),
    ("a kernel without a name", '"kernel": "scale",', ""),
    ("no such type", '"type": "gpu"', '"type": "tpu"'),
    ("no global size", '"global": "size(a)",', ""),
    ("no local size", '"local": 1,', ""),
    ("a macro's name", '{"N": "size(a)", ', '{"N=1 -D M": "size(a)", '),
    ("defines no object", '{"N": "size(a)", "M": "ROWS * 2"}', '["N"]'),
    ("tunables no object", '{"ROWS": [1, 2, "4"], "HALF": [0, 1]}', '["ROWS"]'),
    ("a tunable's name", '{"ROWS"', '{"ROWS -D M"'),
    ("a tunable without values", '"HALF": [0, 1]', '"HALF": []'),
    ("a tunable that is one number", '"HALF": [0, 1]', '"HALF": 1'),
    ("a value of a tunable that is none", '"HALF": [0, 1]', '"HALF": [0, 0.5]'),
    ("a value of a tunable beyond 64 bits", '"HALF": [0, 1]', '"HALF": [0, "9223372036854775808"]'),
    ("a value of a tunable twice", '"HALF": [0, 1]', '"HALF": [1, "1"]'),
    ("too many values of a tunable", '"HALF": [0, 1]', '"HALF": [0, 1, 2, 3, 4, 5, 6, 7, 8]'),
    ("too many tunables", '"HALF": [0, 1]', '"A": [1], "B": [1], "C": [1], "D": [1]'),
    ("too many combinations", '"HALF": [0, 1]', '"HALF": [0, 1, 2, 3], "THIRD": [0, 1, 2]'),
    ("a tunable twice", '"HALF": [0, 1]', '"ROWS": [0, 1]'),
    ("a tunable named as an argument", '"HALF": [0, 1]', '"f": [0, 1]'),
    ("a tunable named as a define", '"HALF": [0, 1]', '"N": [0, 1]'),
    ("a tunable in a rule", '"f >= 1"', '"f >= ROWS"'),
    ("a tunable as a tensor", '"ROWS * 2"', '"size(ROWS)"'),
    ("tunables of native code", '"source": "scale.cl",\n          "kernel": "scale",\n          "options": "-D WIDE",',
     '"library": "x.so", "entry": "scale", "tunables": {},'),
    ("no arguments", ',\n          "arguments": ["out", "a", "f", "stride(a, 0)"]', ""),
    ("an argument that is nothing", '["out", "a", "f",', '["out", "a", null,'),
    ("an argument of no name", '["out", "a", "f",', '["out", "a", "g",'),
    ("too many arguments", '["out", "a", "f",', '["out", ' + '"a", ' * 32 + '"f",'),
    ("unknown member of a kernel", '"local": 1', '"local": 1, "library": "x.so"'),
    # bodies
    ("an empty body", '"body": [{"name": "mod", "args": ["a", 7, "out"]}]', '"body": []'),
    ("no such operation", '"name": "mod", "args"', '"name": "mud", "args"'),
    ("an operation of a manifest", '"name": "mod", "args"', '"name": "scale", "args"'),
    ("too few arguments", '"args": ["a", 7, "out"]', '"args": ["a"]'),
    ("arguments of other kinds", '"args": ["a", 7, "out"]', '"args": [7, 7, 7]'),
    ("a tensor that is not there", '"args": ["a", 7, "out"]', '"args": ["b", 7, "out"]'),
    ("a download", '{"name": "mod", "args": ["a", 7, "out"]}', '{"name": "device_to_host", "args": ["a"]}'),
    ("a tensor made without a name", '"int64"], "out": "t"}', '"int64"]}'),
    ("a tensor made twice", '{"name": "modmul"',
     '{"name": "empty", "args": [[1], "int64"], "out": "t"},\n{"name": "modmul"'),
    ("a tensor made in the place of an argument", '"out": "t"', '"out": "a"'),
    ("too many entries", '{"name": "modmul"', '{"name": "abs", "args": ["t", "t"]},' * 16 + '{"name": "modmul"'),
    ("examples as they were before", '"name": "made",', '"name": "made", "examples": [],'),
    ("values of an integer", '"kind": "int"', '"kind": "int", "values": "residues"'),
    ("values of a word", '"layout": "any"', '"layout": "any", "values": "all"'),
    ("values that are one", '"layout": "any"', '"layout": "any", "values": [1]'),
    ("values in the wrong order", '"layout": "any"', '"layout": "any", "values": [1, 0]'),
    ("values that are none", '"layout": "any"', '"layout": "any", "values": [0, 1.5]'),
    ("unknown member of an entry", '"args": ["a", 7, "out"]', '"args": ["a", 7, "out"], "dtype": 1'),
]


def told(healcl, folder, old, new, option="--ops"):
    assert old in RIGHT, old
    with open(os.path.join(folder, "m.json"), "w", encoding="utf-8") as file:
        file.write(RIGHT.replace(old, new, 1) if old else RIGHT)
    done = subprocess.run([healcl, "ops", option, folder, "--json", "-"], capture_output=True,
                          text=True, check=False)
    if done.returncode == 0:
        return "taken"
    assert done.returncode in (2, 3) and not done.stdout, done
    return done.stderr.strip().replace(folder + "/", "")


def links(folder):
    os.mkdir(folder + "_beside")
    for path in os.path.join(folder, "folder", "kept.cl"), os.path.join(folder + "_beside", "x.cl"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("kernel void scale() {}\n")
    for name, target in (("inside.cl", "folder/kept.cl"), ("out.cl", "/etc/passwd"),
                         ("beside.cl", folder + "_beside/x.cl"), ("steps.cl", "folder/more.cl"),
                         ("folder/more.cl", "../out.cl")):
        os.symlink(target, os.path.join(folder, name))


def main():
    healcl = os.path.abspath(sys.argv[1])
    golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "manifests.txt")
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "manifests")
        os.mkdir(folder)
        os.mkdir(os.path.join(folder, "folder"))
        for name, data in ("scale.cl", b"kernel void scale() {}\n"), ("zero.cl", b"a\0b"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        links(folder)
        for old, new in TAKEN:
            assert told(healcl, folder, old, new) == "taken", new
        for name, old, new in CASES:
            if name in TRUSTED:
                assert told(healcl, folder, old, new, "--trust") == "taken", name
        text = "".join(f"{name}\n    {told(healcl, folder, old, new)}\n" for name, old, new in CASES)
    if "--update" in sys.argv:
        with open(golden, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(golden, encoding="utf-8") as file:
        expected = file.read()
    if text != expected:
        sys.exit("not as manifests.txt says:\n" + text)
    assert text.count("    taken\n") == 1


main()
