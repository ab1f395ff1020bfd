#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: links lead somewhere, tables of times say where they were measured, and
the environment is documented. run_docs.py runs its commands."""
import glob
import os
import re
import unittest

from device_table import MARKED
from run_docs import blocks, pages

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
TIME = re.compile(r"\d (?:ns|us|µs|ms|s|[MG]B/s)\b")
VARIABLE = re.compile(r'"(HEALCL_[A-Z_]+)"')
COUNT = re.compile(r"\b\d[\d,]+ (?:transcripts|right calls|(?:calls|runs) (?:are|were) right)\b")
PER_UNIT = re.compile(r"\bns per unit\b")
PROCESSOR = re.compile(r"\b(?:EPYC|Xeon|Ryzen|Core|Zen \d|Threadripper|Ampere|Graviton)\b")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def prose(text):
    """Returns the text without blocks of code, which have their own brackets."""
    return "\n".join(CODE.sub("", block.text) for block in blocks(text) if block.kind == "prose")


def anchors(text):
    """Returns headings' anchors, as GitHub makes them."""
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
    """-> each table, and the text before it in its section, and in the page's first section"""
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
    """-> variables of the environment that the sources read, except those that only tests set"""
    found = set()
    for path in glob.glob(os.path.join(TOP, "src", "**", "*.c"), recursive=True):
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

    def test_the_environment_is_documented(self):
        page = read(os.path.join(TOP, "docs", "PORTING.md"))
        self.assertEqual(set(re.findall(r"^\| `(HEALCL_[A-Z_]+)` \|", page, flags=re.M)),
                         variables_of_code())

    def test_counts_come_from_results(self):
        for path in pages():
            with self.subTest(os.path.relpath(path, TOP)):
                self.assertEqual(COUNT.findall(MARKED.sub("", read(path))), [])

    def test_the_readme_shows_an_example(self):
        self.assertIn(read(os.path.join(TOP, "examples", "run.c")),
                      read(os.path.join(TOP, "README.md")))

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
