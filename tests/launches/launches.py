#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what is built and launched for all transcripts with launches.txt.

    launches.py LAUNCH_LISTING [--update | --full]

launch_listing runs the transcripts, bundled and those of the conformance set where it is there, and
random calls of each operation, on devices of each kind that compute nothing. For each kind,
launches.txt has the programs of bundled transcripts with their options, without the -D, and how
often they are built. Behind a kernel are its sizes, GLOBAL/LOCAL, and the launches in first runs +
those in later ones. A line for each transcript has its launches, and a hash of its whole listing:
also of a run with little memory. Calls have a line for each operation. Transcripts of the
conformance set count as long as the file is the one that was listed.

--update writes launches.txt; read the difference. --full prints whole listings: compare them with
those of another commit's launch_listing.
"""
import collections
import concurrent.futures
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDEN = HERE / "launches.txt"
KINDS = ["cpu", "gpu", "accelerator"]
PARTS = ["run", "first", "second", "third", "quarter", "calls"]
COUNTED = ["first", "third"]


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:12]


def transcripts():
    """{path: the name in launches.txt}"""
    bundled = [*(ROOT / "transcripts").glob("*.json"), *(ROOT / "transcripts").glob("*.json.gz")]
    shared = Path(os.environ.get("HEALCL_SHARED") or ROOT.parent / "shared") / "conformance"
    held = [path for path in shared.glob("*.json") if not path.name.startswith("bad_")]
    return {**{path: path.name for path in sorted(bundled)},
            **{path: f"{path.name}@{short_hash(path.read_bytes())}" for path in sorted(held)}}


def list_kind(program, kind, names):
    """{name: {part: Counter of lines}}"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HEALCL_")}
    text = subprocess.run([program, kind, *names], env={**environment, "HEALCL_CACHE_DIR": ""},
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    listing = {}
    for line in text.splitlines():
        if line.startswith("= "):
            part, of = line[2:].split("\t")
            name = f"{of}, calls" if part == "calls" else names[Path(of)]
            parts = listing.setdefault(name, {part: collections.Counter() for part in PARTS})
            lines = parts[part]
        else:
            lines[line] += 1
    for name, parts in listing.items():
        for one, same in (("run", "first"), ("second", "third")):
            if parts[one] != parts[same]:
                raise SystemExit(f"{kind} {name}: {one} and {same} differ in "
                                 f"{(parts[one] - parts[same]) + (parts[same] - parts[one])}")
    return listing


def whole_text(parts):
    """All that is listed of a transcript."""
    return "".join(f"{part}\t{count}\t{line}\n" for part in (*COUNTED, "quarter", "calls")
                   for line, count in sorted(parts[part].items()))


def counts(line, totals):
    return "+".join(str(totals[part][line]) for part in COUNTED)


def kind_lines(listing):
    """What bundled transcripts have in common, for a kind of device."""
    totals = {part: sum((parts[part] for name, parts in listing.items() if "@" not in name),
                        collections.Counter()) for part in COUNTED}
    programs = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in sorted(set().union(*totals.values())):
        *what, options, program = line.split("\t")
        if what == ["build"]:
            programs[program, options]["built"].append(counts(line, totals))
        else:
            size = tuple(map(int, what[:2]))
            programs[program, options][what[2]].append((size, counts(line, totals)))
    for (program, options), kernels in sorted(programs.items()):
        yield f"  {program}: {options.replace('-D ', '')}"
        for kernel, uses in sorted(kernels.items()):
            texts = uses if kernel == "built" else [
                f"{size[0]}/{size[1]}:{count}" for size, count in sorted(uses)]
            yield f"    {kernel} {' '.join(texts)}"


def make(listings):
    """The lines of launches.txt"""
    lines = []
    for kind, listing in listings.items():
        lines += [kind, *kind_lines(listing)]
    for kind, listing in listings.items():
        lines.append(f"{kind}, listings")
        for name, parts in listing.items():
            launched = "+".join(str(sum(parts[part].values()))
                                for part in (["calls"] if parts["calls"] else COUNTED))
            lines.append(f"  {name} {launched} {short_hash(whole_text(parts).encode())}")
    return lines


def flatten(lines):
    """Whole lines, each with what it belongs to, and each size of a kernel apart."""
    kind = program = ""
    for line in lines:
        if not line.startswith(" "):
            kind = line
        elif not line.startswith("    "):
            program = line.strip()
            yield f"{kind}: {program}"
        else:
            kernel, *sizes = line.split()
            for size in sizes:
                yield f"{kind}: {program}: {kernel} {size}"


def held(line):
    """What a line of a transcript that may be missing is about; None for others"""
    return line.rsplit(" ", 2)[0] if "@" in line else None


def main():
    program, *options = sys.argv[1:]
    names = transcripts()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        listings = dict(zip(KINDS, pool.map(lambda kind: list_kind(program, kind, names), KINDS)))
    lines = make(listings)
    if options == ["--full"]:
        for kind, listing in listings.items():
            for name, parts in listing.items():
                print(f"= {kind} {name}\n{whole_text(parts)}", end="")
        return
    if options == ["--update"]:
        if not any(map(held, lines)):
            raise SystemExit("launches.txt has the conformance set, which is missing here")
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    known = list(flatten(GOLDEN.read_text(encoding="utf-8").splitlines()))
    now = list(flatten(lines))
    both = {held(line) for line in known} & {held(line) for line in now}
    known, now = ([line for line in lines if held(line) in both] for lines in (known, now))
    different = [f"- {line}" for line in known if line not in set(now)]
    different += [f"+ {line}" for line in now if line not in set(known)]
    print(*different, sep="\n")
    if different:
        raise SystemExit(f"{len(different)} lines differ; --full shows what a hash stands for, and "
                         "ninja update_launches writes launches.txt")
    print(f"{len(now)} lines are the same, of {len(names)} transcripts")


if __name__ == "__main__":
    main()
