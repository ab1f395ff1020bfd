#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: links lead somewhere, and tables of times say where they were measured.

    test_docs.py
"""
import glob
import os
import re
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
TIME = re.compile(r"\d (?:ns|us|µs|ms|s|[MG]B/s)\b")
VARIABLE = re.compile(r'"(HEALCL_[A-Z_]+)"')
PER_UNIT = re.compile(r"\bns per unit\b")
PROCESSOR = re.compile(r"\b(?:EPYC|Xeon|Ryzen|Core|Zen \d|Threadripper|Ampere|Graviton)\b")


def pages():
    found = glob.glob(os.path.join(TOP, "*.md"))
    for folder in ("bindings", "cl", "docs", "examples", "models", "scripts", "tests",
                   "transcripts"):
        found += glob.glob(os.path.join(TOP, folder, "**", "*.md"), recursive=True)
    return sorted(found)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def prose(text):
    """Without blocks of code, which have brackets of their own."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith(("```", "    ")):
            lines.append(CODE.sub("", line))
    return "\n".join(lines)


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
