#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/DEVICES.md from docs/instruction_sets.json into the page.

  devices_page.py            writes them between the page's marks
  devices_page.py --check    exits with 1 where the page has other ones

device_code.py --save and cpu_code.py --save write the data. The page has a part of them: the first
case of some operations, some loops, and of kernels the worst of each family.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/instruction_sets.json"
PAGE = ROOT / "docs/DEVICES.md"


def has_rows(value):
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def one_row_a_line(value, depth=0):
    """JSON in which what holds no objects stands on one line."""
    if has_rows(value):
        opening, items, closing = "[", [one_row_a_line(item, depth + 1) for item in value], "]"
    elif isinstance(value, dict) and (depth < 2 or any(map(has_rows, value.values()))):
        opening, closing = "{}"
        items = ["%s: %s" % (json.dumps(key), one_row_a_line(item, depth + 1))
                 for key, item in value.items()]
    else:
        return json.dumps(value)
    indent = "\n" + " " * (depth + 1)
    return opening + indent + ("," + indent).join(items) + "\n" + " " * depth + closing


def save(path, **sections):
    """Sets sections of the data; the others stay."""
    path = pathlib.Path(path)
    data = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(one_row_a_line({**data, **sections}) + "\n")


SHOWN = "ntt", "intt", "modmul", "modmul_axis_sum", "copy"
SHOWN_LOOPS = "ntt", "intt", "ntt_32", "modmul_doubles", "modmul_halves"


def table(head, rows, align="---"):
    lines = ["| %s |\n" % " | ".join(map(str, line)) for line in (head, *rows)]
    lines.insert(1, "|---|%s\n" % ((align + "|") * (len(head) - 1)))
    return "".join(lines)


# ------------------------------------------------------------------ CPUs


def measured_tables(columns):
    """Times of operations against the core's limits: columns of "measured"."""
    text = "".join("- %s: %s; driver %s; load %.1f\n" % (
        column["title"], column["processor"], column["driver"], column["load"])
                   for column in columns)
    head, cases = ["operation", "a"], {}
    for place, column in enumerate(columns):
        head += [column["title"] + ": ns", "share"]
        seen = set()
        for row in column["rows"]:
            op = row["case"].split(",")[0]
            if op in SHOWN and op not in seen:
                seen.add(op)
                cells = cases.setdefault((row["case"], row["unit"]), [""] * (2 * len(columns)))
                cells[2 * place:2 * place + 2] = "%.3g" % row["ns"], "%.2f %s" % (
                    row["limit_ns"] / row["ns"], row["limited_by"])
    return text + "\n" + table(head, [[*case, *cells] for case, cells in cases.items()], "---:")


def loops_table(loops):
    """Cycles and instructions of inner loops, by llvm-mca."""
    names = [name for name in loops["costs"][0] if name != "loop"]
    return "By %s and llvm-mca of its version.\n\n" % loops["compiler"] + table(
        ["inner loop", *names],
        [["`%s`" % row["loop"], *("%.2f / %.1f" % tuple(row[name]) for name in names)]
         for row in loops["costs"] if row["loop"] in SHOWN_LOOPS], "---:")


# ------------------------------------------------------------------ GPUs


def cell_of(codes):
    """The worst of some kernels on a target: most registers and private memory, least waves."""
    if any(code is None for code in codes):
        return "?"
    if "simd" in codes[0]:
        text = "SIMD%d" % min(code["simd"] for code in codes)
    else:
        text = "%d / %d" % (max(code["registers"] for code in codes),
                            min(code["waves"] for code in codes))
    private = max(code.get("private", 0) for code in codes)
    return text + (" / **%d B**" % private if private else "")


def kernels_table(kernels, targets):
    families = {}
    for kernel in kernels:
        families.setdefault(kernel["family"], []).append(kernel)
    return table(["kernels", "shapes", *targets], [
        [family, len(rows),
         *(cell_of([row["codes"].get(target) for row in rows]) for target in targets)]
        for family, rows in families.items()])


def bytes_text(rows):
    """How far the operations of which bytes were counted are from the least."""
    more = [row for row in rows if row["of_least"] > 1]
    return "Of %d cases %d ask global memory for the least.%s\n" % (
        len(rows), len(rows) - len(more), " The others for %s of it." % ", ".join(
            "%.3f (`%s`)" % (row["of_least"], row["op"]) for row in more) if more else "")


def private_text(private):
    using = ["%d on %s" % (count, target) for target, (count, _) in private.items() if count]
    return "%s of %d launches use private memory.\n" % (
        ", ".join(using) or "None", max((total for _, total in private.values()), default=0))


def gpus_text(gpus):
    targets = list(gpus["compilers"])
    made = {}
    for target, compiler in gpus["compilers"].items():
        made.setdefault(compiler, []).append(target)
    text = "Made of %d transcripts by:\n\n" % len(gpus["transcripts"])
    text += "".join("- %s: %s\n" % (", ".join(names), compiler) for compiler, names in made.items())
    text += "\n" + private_text(gpus["private"])
    text += "\n" + kernels_table(gpus["kernels"], targets)
    return text + ("\n" + bytes_text(gpus["bytes"]) if gpus["bytes"] else "")


# ------------------------------------------------------------------ the page


def fill(page, sections):
    """Each text between the page's marks <!-- NAME --> and <!-- /NAME -->."""
    for name, text in sections.items():
        begin, end = "<!-- %s -->\n" % name, "<!-- /%s -->" % name
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError("%s has no lines <!-- %s --> and <!-- /%s -->"
                             % (PAGE.name, name, name))
        page = "%s%s\n%s\n%s%s" % (before, begin, text, end, after)
    return page


def page_of(data, page):
    return fill(page, {"measured": measured_tables(data["measured"]),
                       "loops": loops_table(data["loops"]), "gpus": gpus_text(data["gpus"])})


def write_or_check(page, make, description, arguments):
    """Writes what make makes of a page, or with --check compares. Returns the exit code."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    old = page.read_text()
    new = make(old)
    if not options.check:
        page.write_text(new)
        return 0
    if new != old:
        print("docs/%s is not what scripts/%s makes" % (page.name, parser.prog), file=sys.stderr)
    return int(new != old)


def main(arguments=None):
    return write_or_check(PAGE, lambda page: page_of(json.loads(DATA.read_text()), page), __doc__,
                          arguments)


if __name__ == "__main__":
    sys.exit(main())
