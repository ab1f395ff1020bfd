#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: links lead somewhere, and tables of times say where they were measured.
run_docs.py, whose own tests are here too, runs its commands.

    test_docs.py
"""
import glob
import os
import re
import tempfile
import unittest
from unittest import mock

import run_docs
from run_docs import blocks, pages

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
TIME = re.compile(r"\d (?:ns|us|µs|ms|s|[MG]B/s)\b")
VARIABLE = re.compile(r'"(HEALCL_[A-Z_]+)"')
PER_UNIT = re.compile(r"\bns per unit\b")
PROCESSOR = re.compile(r"\b(?:EPYC|Xeon|Ryzen|Core|Zen \d|Threadripper|Ampere|Graviton)\b")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def prose(text):
    """Without blocks of code, which have brackets of their own."""
    return "\n".join(CODE.sub("", block.text) for block in blocks(text) if block.kind == "prose")


def anchors(text):
    """Of headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            for line in text.splitlines() if line.startswith("#")}


def broken_links(path, text):
    for target in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.join(os.path.dirname(path), name) if name else path
        if not os.path.exists(file):
            yield target
        elif anchor and file.endswith(".md") and anchor not in anchors(read(file) if name else text):
            yield target


def tables(text):
    """-> each table, and what stands before it in its section, down from the heading or, below one
    that says it for all, from the beginning of the page"""
    sections = re.split(r"^(?=#)", text, flags=re.M)
    for section in sections:
        before = ""
        for part in re.split(r"((?:^\|.*\n?)+)", section, flags=re.M):
            if part.startswith("|"):
                yield part, sections[0] + sections[1 if len(sections) > 1 else 0] + before
            before += part


def tables_without_processor(text):
    for table, before in tables(text):
        if (len(TIME.findall(table)) > 1 or PER_UNIT.search(table)) and not PROCESSOR.search(before):
            yield table.splitlines()[0]


def variables_of_code():
    """-> those of the environment that the sources read; one is for tests of them alone"""
    found = set()
    for path in glob.glob(os.path.join(TOP, "src", "**", "*.c"), recursive=True):
        if os.path.basename(path) != "porting_markdown.c":
            found.update(VARIABLE.findall(read(path)))
    return found - {"HEALCL_PROGRESS_SECONDS"}


class Documentation(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for path in pages():
            with self.subTest(os.path.relpath(path, TOP)):
                self.assertEqual(list(broken_links(path, read(path))), [])

    def test_tables_of_times_name_the_processor(self):
        for path in pages():
            with self.subTest(os.path.relpath(path, TOP)):
                self.assertEqual(list(tables_without_processor(read(path))), [])

    def test_all_of_the_environment_is_told(self):
        page = read(os.path.join(TOP, "docs", "PORTING.md"))
        self.assertEqual(set(re.findall(r"^\| `(HEALCL_[A-Z_]+)` \|", page, flags=re.M)),
                         variables_of_code())

    def test_what_is_wrong_is_found(self):
        page = os.path.join(TOP, "README.md")
        text = ("# A b\n[a](docs/OPS.md) [b](nowhere.md) `[c](code)` [d](#a-b) [e](#c) "
                "[f](https://example.org/x)\n\n    [g](code)\n\n![h](docs/images/no.png)\n")
        self.assertEqual(list(broken_links(page, text)),
                         ["nowhere.md", "#c", "docs/images/no.png"])
        table = "| a |\n|---|\n| 1 ms |\n| 2.5 ms |\n"
        self.assertEqual(list(tables_without_processor("# A\nFast.\n\n" + table)), ["| a |"])
        self.assertEqual(list(tables_without_processor("# A\nOn a Xeon:\n\n" + table)), [])
        self.assertEqual(list(tables_without_processor(
            "# A\n## B\nOn a Xeon:\n\n" + table + "\n## C\n\n" + table)), ["| a |"])

    def followed(self, text):
        """-> what a reader of the page would stumble over, or what was not run"""
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.md")
            with open(page, "w", encoding="utf-8") as file:
                file.write(text)
            try:
                options = run_docs.Options(folder)
                options.text = lambda *_: "healcl without options"
                followed = run_docs.Page(page, options)
                with mock.patch.object(run_docs, "make_clone", os.mkdir):
                    followed.run(folder, folder)
            except (run_docs.Wrong, ValueError) as error:
                return str(error)
            return followed.left_out

    def test_pages_that_fail_when_followed_are_found(self):
        for text, wrong in (
                ("    true\n    false # no\n", "2: false # no\nends with 1"),
                ("    x=1 \\\n        y=2\n    mkdir a\n    cd a\n\nb\n\n    test -e ../a$x$y\n",
                 "8: test -e ../a$x$y\nends with 1"),
                ("    exit 0\n    true\n", "1: the shell ended"),
                ("```ruby\n```\n", "1: nobody knows"),
                ("```sh\ntrue\n", "1: blocks begin and end"),
                ("    for i in 1; do\n", "bash does not read it"),
                ("```json\n{\"a\": 1 ...]\n```\n", "Expecting"),
                ("```python\na = 1\n```\nand\n```python\nassert a == 2\n```\n", "AssertionError"),
                ("    $ echo 7 of 8; false\n    7 of 9\n", "1: echo 7 of 8; false"),
                ("<!--with:NAME=x-->\n    true\n", "2: no 'NAME' is in the block"),
                ("<!--needs:GPU:NAME-->\n    true\n", "2: no 'NAME' is in the block"),
                ("    true\n<!--first:true-->\n", "2: a mark without a block"),
                ("<!--then:test -e b-->\n    touch a\n", "2: test -e b"),
                ("See `scripts/nowhere.sh`.\n", "1: there is no scripts/nowhere.sh"),
                ("See `scripts/demo.sh --nothing`.\n", "1: scripts/demo.sh --nothing: "),
                ("Try `cmake -S . -DA=~/b`.\n", "no shell expands"),
                ("Say `--nothing-takes-this`.\n", "1: nothing takes --nothing-takes-this")):
            with self.subTest(text):
                self.assertIn(wrong, self.followed(text))

    def test_what_is_left_out_is_told(self):
        self.assertEqual(self.followed(
            "<!--needs:GPU-->\n    false\n\n<!--needs:hours:b-->\n    true\n    false b\n\n"
            "<!--first:a=1-->\n<!--with:NAME=$a;c=-->\n    test NAME = 1 c\n\n"
            "<!--file:b/c-->\n```c\nint i;\n```\n\n    test \"$(cat b/c)\" = 'int i;'\n\nd\n\n"
            "    $ printf 'a  1.5 ms\\nb\\nc\\n'; false\n    a 17 us\n    ...\n"),
            [(2, "GPU", "false"), (6, "hours", "false b")])

    def test_every_page_of_docs_is_linked(self):
        linked = set()
        for path in pages():
            for target in LINK.findall(prose(read(path))):
                linked.add(os.path.normpath(os.path.join(os.path.dirname(path),
                                                         target.partition("#")[0])))
        self.assertEqual([path for path in pages()
                          if os.path.dirname(path) == os.path.join(TOP, "docs")
                          and path not in linked], [])


if __name__ == "__main__":
    unittest.main()
