#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: which small faults in the sources do the tests not notice?

    scripts/mutants.py --files 'src/plan/pass_*.c' --count 30 --seed 1 --tests 'test_plan|cli.steps'

A mutant is one file with one small change; the seed draws --count of all that the files have. Each is
built in a copy of the tree, in --build, and tested by ctest until one of --tests fails. Those that no
test notices are listed.

Changes: < and <=, > and >=, == and !=, + and -, += and -=, && and ||, true and false swapped; 0 and 1 off
by one; conditions negated; single statements removed. In kernels also: terms as `- q` dropped, indices
one higher, loops that end one earlier."""
import argparse
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Change = collections.namedtuple("Change", "file line start end new operator")


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
    """Returns the position where the parenthesis that is open at start closes."""
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


def changes_of(file, text):
    """All of one file, in order."""
    is_kernel = file.endswith(".cl")
    found = set()
    for start, end, new, operator in spans(masked(text, is_kernel), is_kernel):
        new = new(text[start:end]) if callable(new) else new
        found.add(Change(file, text.count("\n", 0, start) + 1, start, end, new, operator))
    return sorted(found)


def run(*command, log):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode


def main():
    """Draws, builds, tests and reports."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", metavar="GLOB", default=["src/plan/*.c"])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", default=".", metavar="REGEX", help="of ctest")
    parser.add_argument("--build", default=os.path.join(SOURCE, "build", "mutants"))
    arguments = parser.parse_args()
    tree, build = os.path.join(arguments.build, "tree"), os.path.join(arguments.build, "build")
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True, capture_output=True).stdout
    for name in listed.decode().split("\0")[:-1]:
        os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
        shutil.copy2(os.path.join(SOURCE, name), os.path.join(tree, name))
    log = open(os.path.join(arguments.build, "log.txt"), "w", encoding="utf-8")
    if run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
           "-DHEALCL_WERROR=OFF", log=log) or run("ninja", "-C", build, log=log):
        sys.exit("the build of the unchanged tree failed: see " + log.name)
    tests = ("ctest", "--test-dir", build, "--stop-on-failure", "--timeout", "600", "-R", arguments.tests)
    if run(*tests, log=log):
        sys.exit("the tests of the unchanged tree failed: see " + log.name)
    texts = {}
    for pattern in arguments.files:
        for path in sorted(glob.glob(os.path.join(tree, pattern), recursive=True)):
            with open(path, encoding="utf-8") as file:
                texts[path] = file.read()
    every = [change for path, text in texts.items() for change in changes_of(path, text)]
    killed = 0
    draw = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    for change in draw:
        text = texts[change.file]
        with open(change.file, "w", encoding="utf-8") as file:
            file.write(text[:change.start] + change.new + text[change.end:])
        try:
            what = "not viable" if run("ninja", "-C", build, log=log) else \
                "killed" if run(*tests, log=log) else "SURVIVED"
        finally:
            with open(change.file, "w", encoding="utf-8") as file:
                file.write(text)
        killed += what == "killed"
        line = text.splitlines()[change.line - 1].strip()
        print(f"{what}: {os.path.relpath(change.file, tree)}:{change.line}: {change.operator}: "
              f"{text[change.start:change.end]!r} => {change.new!r} in: {line}", flush=True)
    print(f"{killed} of {len(draw)} were noticed")


if __name__ == "__main__":
    main()
