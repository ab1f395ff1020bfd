#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows the documentation: runs every block of code, page by page, as a reader meets them.

    run_docs.py [--build BUILD] [PAGE...]

Each page has a bash of its own, in a fresh copy of this clone where BUILD (build/test) stands for
build/release. Shell blocks must end with 0. Blocks with `$ command` show what it prints: `...` is
anything, and a time is any time. Python runs, JSON is parsed, kernels are compiled, and commands in the
text must exist with their options. Pages that reference_pages.py makes have drawings and formulas, no code.

Marks say what a block needs. They stand above it (or above text whose commands run):

    <!--needs:GPU-->             not run, because CI has none; with needs:GPU:TEXT lines with TEXT alone
    <!--with:FILE=a.json;B=c-->  instead of placeholders
    <!--first:COMMAND-->         a command that the text says to run before
    <!--then:COMMAND-->          a command that must succeed after it
    <!--file:NAME-->             the block is this file
    <!--run-->                   commands in the text below run, too
"""
import argparse
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARK = re.compile(r"\s*<!--(needs|with|first|then|file|run)(?::(.*?))?-->\s*$")
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?:sudo |[A-Z_]+=(?:'[^']*'|\S)+ +)*(?:mpirun .*?)?"
                     r"(healcl(?:-mpi)?(?= [a-z])|(?:python3 )?(?:scripts|tests)/[\w/.]+\.(?:py|sh)|"
                     r"(?:cmake|cc)(?= )|\.ci/run|PATH=\S+)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
TIMES = re.compile(r"\d+(?:\.\d+)? (?:ns|us|µs|ms|s)\b")
# CMake builds in the clone: what it makes of the release is made already.
CMAKE = """#!/bin/sh
case "$*" in
"--preset release" | "--build --preset release"*) mkdir -p build && ln -sfn "$HEALCL_BUILD" build/release ;;
*) exec {cmake} "$@" ;;
esac
"""


class Wrong(Exception):
    """A mistake that would stop a reader."""


def pages():
    found = glob.glob(os.path.join(TOP, "*.md"))
    for folder in ("bindings", "cl", "docs", "examples", "models", "scripts", "tests",
                   "transcripts"):
        found += glob.glob(os.path.join(TOP, folder, "**", "*.md"), recursive=True)
    return sorted(found, key=lambda path: (path.count(os.sep), os.path.basename(path) != "README.md",
                                           path))


class Block:
    def __init__(self, line, kind, text, marks):
        self.line, self.kind, self.text, self.marks = line, kind, text, marks

    def of(self, mark):
        return [value for name, value in self.marks if name == mark]


def blocks(text):
    """-> code, of the kind that its fence says ("" where it is indented), and "prose", a paragraph,
    list or table"""
    lines, found, marks, at = text.splitlines(), [], [], 0
    while at < len(lines):
        start, line = at, lines[at]
        mark = MARK.match(line)
        fence = re.match(r"( *)```(\w*)", line)
        at += 1
        if mark:
            marks.append(mark.groups())
            continue
        if not line.strip():
            continue
        if line.startswith(("~~~", "\t")) or fence and not re.search(r"^ *```$", "\n".join(lines[at:]),
                                                                     flags=re.M):
            raise Wrong(f"{at}: blocks begin and end with ```, or have four spaces before each line")
        if fence:
            while lines[at].strip() != "```":
                at += 1
            kind, body = fence[2] or "sh", lines[start + 1:at]
            at += 1
        elif line.startswith("    "):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            kind, body = "", lines[start:at]
        else:
            while at < len(lines) and lines[at].strip() and not lines[at].startswith("```") and \
                    not MARK.match(lines[at]):
                at += 1
            kind, body = "prose", lines[start:at]
        shift = min((len(part) - len(part.lstrip()) for part in body if part.strip()), default=0)
        found.append(Block(start + 1, kind, "\n".join(part[shift:] for part in body).rstrip(), marks))
        marks = []
    if marks:
        raise Wrong(f"{len(lines)}: a mark without a block")
    return found


def filled(text, block):
    """with what the block's marks put in the place of words"""
    for value in block.of("with"):
        for pair in value.split(";"):
            word, _, instead = pair.partition("=")
            pattern = rf"(?<![\w.]){re.escape(word)}(?![\w])"
            text, count = re.subn(pattern, lambda _: instead, text)
            if not count:
                raise Wrong(f"{block.line}: no '{word}' is in the block")
    return text


def commands_of(text):
    """-> (lines from the first, command), of several lines where bash reads on"""
    whole = ""
    for number, line in enumerate(text.splitlines()):
        whole += line + "\n"
        if line.endswith("\\") or subprocess.run(["bash", "-nc", whole], check=False,
                                                  stderr=subprocess.DEVNULL).returncode:
            continue
        if whole.strip() and not whole.startswith("#"):
            yield number, whole
        whole = ""
    if whole:
        raise Wrong("bash cannot parse it: " + whole)


def matches(expected, output):
    """`...` as a line is any number of lines; times and widths of columns may differ"""
    def plain(text):
        return [" ".join(TIMES.sub("TIME", line).split()) for line in text.rstrip("\n").split("\n")]
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(line) + "\n"
                      for line in plain(expected))
    return re.fullmatch(pattern, "\n".join(plain(output)) + "\n")


class Options:
    """Options of commands, from their help or their text."""

    def __init__(self, build):
        self.build, self.texts = build, {}

    def text(self, *command):
        if command not in self.texts:
            self.texts[command] = subprocess.run(
                [os.path.join(self.build, command[0]), *command[1:], "--help"], text=True,
                capture_output=True).stdout
        return self.texts[command]

    def script(self, name):
        if name not in self.texts:
            with open(os.path.join(TOP, name), encoding="utf-8") as file:
                text = file.read()
            for other in re.findall(r"[\w]+\.py", text) if name.endswith(".sh") else []:
                if os.path.exists(os.path.join(TOP, "scripts", other)):
                    text += self.script("scripts/" + other)
            self.texts[name] = text
        return self.texts[name]

    def all(self):
        names = re.findall(r"^  ([a-z]+)  ", self.text("healcl"), flags=re.M)
        scripts = glob.glob("scripts/*.sh", root_dir=TOP) + glob.glob("scripts/*.py", root_dir=TOP)
        return "\n".join([self.text("healcl", name) for name in names] +
                         [self.text("healcl-mpi", name) for name in ("run", "serve")] +
                         [self.script(name) for name in scripts if "/test_" not in name])

    def check(self, line, text):
        """one command, whose options must be there"""
        found = COMMAND.match(text)
        if found and re.search(r" -\S*=~/", text):
            raise Wrong(f"{line}: {text}: no shell expands this ~")
        if not found or found[1].startswith(("c", "PATH", ".ci")):
            return
        name = found[1].replace("python3 ", "")
        words = re.split(r"[|;&#`]", text[found.end():])[0]
        if "/" in name:
            is_run = words.strip() and not found[1].startswith("python3")
            if not os.access(os.path.join(TOP, name), os.X_OK if is_run else os.R_OK):
                raise Wrong(f"{line}: there is no {name}, or it cannot be executed")
            known = self.script(name)
        else:
            command = re.match(r" +([a-z]+)(?= |$)", words)
            if not command:
                return
            known = self.text(name, command[1])
            if f" {name} {command[1]} " not in known:
                raise Wrong(f"{line}: there is no command {name} {command[1]}")
            if name == "healcl-mpi":  # "as healcl run has it, and the next five"
                known += self.text("healcl", "run")
        for option in OPTION.findall(words):
            if option != "--help" and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known):
                raise Wrong(f"{line}: {text}: {name} takes no {option}")


def make_clone(place):
    """with what is not committed, and without what was removed"""
    subprocess.run(["bash", "-ec", """
        git clone -q -s -n . "$0"
        git -C "$0" read-tree HEAD
        { git ls-files -zd; git ls-files -zco --exclude-standard; } | sort -z | uniq -zu |
            tar --null -T - -c | tar -C "$0" -x""", place], cwd=TOP, check=True)


class Page:
    """A page as a script for bash, which says where it is by lines that begin with a record separator."""

    def __init__(self, path, options):
        self.name, self.options = os.path.relpath(path, TOP), options
        self.script, self.steps, self.left_out, self.python = [], [], [], []
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.blocks = blocks(text)
        self.made = "<!-- scripts/reference_pages.py makes " in text
        for block in self.blocks:
            self.add(block)
        self.end_python()

    def step(self, line, command, expected=None):
        self.end_python()
        self.steps.append((line, command, expected))
        self.script.append(f"printf '\\n\\036%d\\n' {len(self.steps) - 1}\n{command.rstrip()}\n"
                           "printf '\\n\\036=%d\\n' $?\n")

    def end_python(self):
        """One program of all blocks that follow each other: what one names the next one may use."""
        if self.python:
            line, python, self.python = self.python[0][0], self.python, []
            body = "\n".join(text for _, text in python)
            self.step(line, "\"$([ -x venv/bin/python ] && echo venv/bin/python || echo python3)\" "
                      f"- <<'END_OF_PYTHON'\n{body}\nEND_OF_PYTHON")

    def add(self, block):
        if block.kind == "prose":
            for span in SPAN.findall(block.text):
                self.options.check(block.line, span)
                if span.startswith("--") and not re.search(
                        re.escape(span.split()[0]) + r"(?![\w-])", self.options.all()):
                    raise Wrong(f"{block.line}: nothing takes {span}")
        for command in block.of("first"):
            self.step(block.line, command)
        if block.kind != "prose" or block.of("run"):
            self.add_code(block)
        for command in block.of("then"):
            self.step(block.line, command)

    def add_code(self, block):
        needs = [value.partition(":") for value in block.of("needs")]
        for reason, _, line in needs:
            if not line:
                lines = block.text.splitlines()
                more = f" (and {len(lines) - 1} lines)" if len(lines) > 1 else ""
                self.left_out.append((block.line, reason, lines[0] + more))
                for part in lines:
                    self.options.check(block.line, part)
                return
        if block.of("file"):
            name = block.of("file")[0]
            self.step(block.line, f"mkdir -p $(dirname {name}) && cat >{name} <<'END_OF_FILE'\n"
                                  f"{block.text}\nEND_OF_FILE")
        elif block.kind in ("mermaid", "text"):
            pass
        elif block.kind == "json":
            json.loads(re.sub(r",?\s*\.\.\.", "", filled(block.text, block)))
        elif block.kind == "opencl":
            self.step(block.line, "clang -x cl -cl-std=CL1.2 -fsyntax-only -Xclang "
                      f"-finclude-default-header - <<'END_OF_KERNEL'\n{block.text}\nEND_OF_KERNEL")
        elif block.kind == "python":
            self.python.append((block.line, filled(block.text, block)))
        elif self.made and block.kind == "":
            pass
        elif block.kind in ("", "sh", "console", "prose"):
            self.add_shell(block, [(reason, line) for reason, _, line in needs])
        else:
            raise Wrong(f"{block.line}: blocks of {block.kind} are not supported")

    def add_shell(self, block, needs):
        text = block.text
        if block.kind == "prose":
            text = "\n".join(span.replace("\\|", "|") for span in SPAN.findall(text)
                             if COMMAND.match(span))
        if text.startswith("$ "):
            for part in re.split(r"^\$ ", filled(text, block), flags=re.M)[1:]:
                command, _, expected = part.partition("\n")
                self.step(block.line, command, expected)
            return
        for _, line in needs:
            if line not in text:
                raise Wrong(f"{block.line}: no '{line}' is in the block")
        kept = []
        for number, command in commands_of(text):
            number += block.line + (block.kind in ("sh", "console"))
            self.options.check(number, command)
            reasons = [reason for reason, line in needs if line in command]
            if reasons:
                self.left_out.append((number, reasons[0], command.strip()))
            else:
                kept.append((number, command))
        whole = filled("\0".join(command for _, command in kept), block)
        for (line, _), command in zip(kept, whole.split("\0")):
            self.step(line, command)

    def run(self, folder, build):
        """-> seconds of the processor"""
        if "$HEALCL_TOP/build/python" in "".join(self.script) and not os.path.exists(
                os.path.join(TOP, "build", "python")):
            self.left_out.append((1, "scripts/test_python.sh", "what takes build/python"))
            self.steps = []
        if not self.steps:
            return 0
        clone = os.path.join(folder, "healcl")
        shutil.rmtree(clone, ignore_errors=True)  # the page's before
        home = os.path.expanduser("~")
        path = f"{folder}/bin:{os.environ['PATH']}"
        make_clone(clone)
        if self.name != "README.md": # it says how to build; readers of other pages have done so
            os.mkdir(f"{clone}/build")
            os.symlink(build, f"{clone}/build/release")
            path += f":{clone}/build/release"
        with open(f"{folder}/page.sh", "w", encoding="utf-8") as file:
            file.writelines(self.script)
        before = os.times()
        done = subprocess.run(
            ["bash", file.name], text=True, cwd=clone, timeout=900, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
            env={**os.environ, "HOME": f"{folder}/home", "HEALCL_TOP": TOP, "HEALCL_BUILD": build,
                 "PATH": path,
                 "HEALCL_PROGRESS_SECONDS": "0", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                 "POCL_CACHE_DIR": os.environ.get("POCL_CACHE_DIR", f"{home}/.cache/pocl")})
        after = os.times()
        self.judge(done.stdout)
        return sum(after[2:4]) - sum(before[2:4])

    def judge(self, output):
        parts = output.split("\n\036")[1:]
        for (line, command, expected), part, code in zip(self.steps, parts[::2], parts[1::2]):
            said = part.partition("\n")[2]
            code = code.partition("\n")[0][1:]
            if expected is None and code != "0" or expected is not None and not matches(expected, said):
                raise Wrong(f"{line}: {command.strip()}\nends with {code} and prints\n{said}" +
                            (f"\nexpected\n{expected}" if expected else ""))
        if len(parts) != 2 * len(self.steps):
            raise Wrong(f"{self.steps[len(parts) // 2][0]}: the shell ended\n{output[-2000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build", "test"))
    parser.add_argument("page", nargs="*")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    options, bad, left_out = Options(build), 0, []
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/bin")
        os.mkdir(f"{folder}/home")
        with open(f"{folder}/bin/cmake", "w", encoding="utf-8") as file:
            file.write(CMAKE.replace("{cmake}", shlex.quote(shutil.which("cmake"))))
        os.chmod(f"{folder}/bin/cmake", 0o755)
        for path in [os.path.abspath(page) for page in arguments.page] or [
                page for page in pages() if not page.endswith("CHANGELOG.md")]: # commands of the past
            start, name = time.monotonic(), os.path.relpath(path, TOP)
            try:
                page = Page(path, options)
                seconds = page.run(folder, build)
                left_out += [(name, *what) for what in page.left_out]
                print(f"{name}: {len(page.blocks)} blocks, {len(page.steps)} commands run, "
                      f"{time.monotonic() - start:.1f} s, {seconds:.1f} s of the processor", flush=True)
            except (Wrong, ValueError, subprocess.TimeoutExpired) as error:
                bad += 1
                print(f"{name}:{error}", flush=True)
    print("not run:", *(f"  {name}:{line}: {reason}: {what}" for name, line, reason, what in left_out),
          sep="\n")
    if bad:
        sys.exit(f"run_docs.py: {bad} pages fail when followed")


if __name__ == "__main__":
    main()
