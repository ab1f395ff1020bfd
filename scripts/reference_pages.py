#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regenerates the lists in docs/OPS.md, docs/KERNELS.md and docs/PORTING.md from
`healcl ops --json -`.

    reference_pages.py HEALCL [--check]

Each operation, and each family of kernels, is a section: its heading, a paragraph and a list are
rewritten, and the prose after the list stays. PORTING.md has the table of tunables. --check writes
nothing, and fails if a page is out of date.
"""
import json
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"


def prose_of(page):
    """Returns the text before the sections, and by heading the text after a section's list."""
    head, *sections = re.split(r"^(?=##)", page, flags=re.M)
    prose = {}
    for section in sections:
        heading, _, rest = section.partition("\n")
        behind = re.split(r"^- `.*\n", rest, flags=re.M)[-1]
        prose[heading.lstrip("# ")] = behind.strip("\n")
    return head, prose


def section(mark, name, paragraph, items, prose):
    text = "%s %s\n\n%s\n\n%s\n\n" % (mark, name, paragraph, "\n".join("- " + i for i in items))
    return text + (prose[name] + "\n\n" if prose.get(name) else "")


def arguments(form):
    return ", ".join(a["name"] + ("" if a["kind"] in ("tensor", a["name"]) else " *%s*" % a["kind"])
                     for a in form["arguments"])


def spelled(names, operation):
    """Lists names with a suffix, where such a form exists: the page says that it is optional."""
    return ", ".join("`%s`" % n for n in
                     [n for n in names if n.startswith(operation + "_")] or names)


def operations_page(page, told):
    head, prose = prose_of(page)
    text, family = head, ""
    for operation in told["operations"]:
        if operation["family"] != family:
            family = operation["family"]
            text += "## %s\n\n" % family.capitalize()
        names = {}  # that take the same arguments
        for form in operation["forms"]:
            names.setdefault(arguments(form), []).append(form["name"])
        meaning = operation["meaning"][0].upper() + operation["meaning"][1:] + "."
        if operation["dtypes"] not in ("int8, int32, int64", "int32, int64"):
            meaning += " Dtypes: %s." % operation["dtypes"]
        text += section("###", operation["name"], meaning,
                        ["%s: %s" % (spelled(n, operation["name"]), a) for a, n in names.items()],
                        prose)
    return text.rstrip("\n") + "\n"


def kernels_page(page, told):
    text, prose = prose_of(page)
    for family in told["families"]:
        items = ["`%s`%s: %s, [%s](../%s)" % (
            v["name"], ", %s" % v["style"] if v["style"] != v["name"] else "", v["when"],
            v["source"], v["source"]) for v in family["variants"]]
        text += section("##", family["name"], "Steps: %s. Tuned as `%s`." % (
            ", ".join(family["steps"]), family["tuned_as"]), items, prose)
    return text.rstrip("\n") + "\n"


def is_read(told, tuning, tunable):
    """Whether kernels of a tuning's styles read a tunable, or no kernel does, as with queues."""
    readers = [(f, v) for f in told["families"] for v in f["variants"] if tunable in v["tunables"]]
    return not readers or any(v["style"] in ("general", tuning[f["tuned_as"]]) for f, v in readers)


def porting_page(page, told):
    tunings = [dict(part.split("=") for part in told["defaults"][kind].split(","))
               for kind in ("cpu", "gpu", "accelerator")]
    rows = ["| `%s` | %s | %s |" % (name, meaning, " | ".join(
        tuning[name] if is_read(told, tuning, name) else "–" for tuning in tunings))
            for name, meaning in told["tunables"].items()]
    table = "| tunable | meaning | CPUs | GPUs | FPGAs |\n|---|---|---|---|---|\n" + "\n".join(rows)
    return re.sub(r"^\| tunable \|(.*\n)*?\n", lambda _: table + "\n\n", page, flags=re.M)


def main():
    run = subprocess.run([sys.argv[1], "ops", "--json", "-"], check=True, stdout=subprocess.PIPE)
    told, old = json.loads(run.stdout), []
    for name, make in (("OPS.md", operations_page), ("KERNELS.md", kernels_page),
                       ("PORTING.md", porting_page)):
        page = (DOCS / name).read_text()
        made = make(page, told)
        if made != page and "--check" in sys.argv:
            old.append("docs/%s is out of date: scripts/reference_pages.py HEALCL" % name)
        elif made != page:
            (DOCS / name).write_text(made)
    sys.exit("\n".join(old) or None)


if __name__ == "__main__":
    main()
