#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/PERFORMANCE.md from docs/measurements/*.json into the page.

  performance_page.py            writes them between the page's marks
  performance_page.py --check    exits with 1 where the page has other ones

`bench.sh --kernels --save FILE`, `passes_bench.py --save FILE` and `ranks_bench.py --json FILE` write
the data. A mark tells the files of its table: <!-- measured kernels-hexl.json kernels.json -->, up to
<!-- /measured -->.
"""
import json
import pathlib
import re
import sys

from devices_page import table, write_or_check

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/measurements"
PAGE = ROOT / "docs/PERFORMANCE.md"
MARKED = re.compile(r"(<!-- measured ([^>]*) -->\n).*?(<!-- /measured -->)", re.DOTALL)
SIZE = re.compile(r"\b(n|r k) = \d+")  # rows that differ in it alone are one line


def machine_text(reports):
    """One line for reports of one machine and commit."""
    if "about" in reports[0]:
        return reports[0]["about"]
    loads = [report["machine"]["load"] for report in reports]
    first, machine = reports[0], reports[0]["machine"]
    return "%s (%s), %d cores, load at most %.1f, %s, `%s`, %d pairs" % (
        machine["processor"], machine["model"], machine["cores"], max(loads), first["date"],
        first["commit"], first["runs"])


def span(values):
    """What some figures are, the smallest and the largest of them."""
    texts = ["%.3g" % value for value in (min(values), max(values))]
    return "–".join(dict.fromkeys(texts))


def ratio_text(rows):
    ratios = [row["ratio"] for row in rows]
    text = span([ratio["median"] for ratio in ratios])
    if len(rows) == 1:
        text += " [%.3g, %.3g]" % (ratios[0]["low"], ratios[0]["high"])
    return "**%s**" % text if any(row["verdict"] == "BROKEN" for row in rows) else text


def bar_text(row):
    sign = {"at most": "≤", "at least": "≥", None: ""}[row["bar_is"]]
    return "" if row["bar"] is None else "%s%g" % (sign, row["bar"])


def kernels_table(rows):
    lines = {}
    for row in rows:
        name = SIZE.sub(r"any \1", row["work"]), row["unit"], row["against"], bar_text(row)
        lines.setdefault(name, []).append(row)
    cells = []
    for (work, unit, against, bar), group in lines.items():
        work = work if len(group) > 1 else group[0]["work"]
        ns = span([row["ns_per_unit"] for row in group])
        cells.append([work, "%s/%s" % (ns, unit), against, ratio_text(group), bar])
    return table(["work", "ns", "against", "ratio", "bar"], cells)


def passes_table(rows):
    return table(
        ["workload", "ms: all passes, none", "ratio", "launches", "bytes", "of the roofline"],
        [[row["work"], "%.3g / %.3g" % (row["ms"], row["against_ms"]), ratio_text([row]),
          "%d / %d" % tuple(row["launches"]), "%.2f" % row["bytes_ratio"],
          "%.2f" % row["of_roofline"] if row["of_roofline"] <= 1 else "all: caches beat it"]
         for row in rows])


def ranks_table(rows):
    """Of scripts/ranks_bench.py."""
    def memory(row):
        return "%.3g" % row["memory"]["device_bytes_peak"]["ratio"] if "memory" in row else ""

    return table(
        ["workload", "a second: one rank, two, two processes", "against one", "against processes",
         "memory of a rank"],
        [["%s, %s" % (row["work"], row["kind"]),
          " / ".join("%.3g" % row["medians"][name] for name in ("one", "ranks", "processes")),
          *(ratio_text([{"ratio": row["against"][name], "verdict": row["verdict"]}])
            for name in ("one", "processes")), memory(row)]
         for row in rows])


def gpus_table(rows):
    names = ["healcl", "GPU-NTT", "phantom-fhe", "cheddar"]
    return table(["work", "limits: bytes, products", *names],
                 [[row["work"], *("/".join("%.4g" % each for each in row[name] or [])
                                  for name in ("limits", *names))] for row in rows])


def measured(names):
    """The machine and the table of some files of one kind, from one machine."""
    reports = [json.loads((DATA / name).read_text()) for name in names.split()]
    rows = [row for report in reports for row in report["rows"]]
    kind = (passes_table if "launches" in rows[0] else
            ranks_table if "rates" in rows[0] else
            gpus_table if "limits" in rows[0] else kernels_table)
    return "%s.\n\n%s" % (machine_text(reports), kind(rows))


def page_of(page):
    return MARKED.sub(lambda mark: "%s\n%s\n%s" % (mark[1], measured(mark[2]), mark[3]), page)


def main(arguments=None):
    return write_or_check(PAGE, page_of, __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
