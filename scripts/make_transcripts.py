#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes HEAL transcripts with exact expected results.

Without arguments: the bundled ones, to transcripts/. Everything is drawn from fixed
seeds, so files come out byte for byte the same.
"""

import argparse
import json
import os
import sys

import python_with_numpy

python_with_numpy.require()

import heal_oracle
from bad_transcripts import bad_files
from bundled_workloads import WORKLOADS
from fhe import answers, workloads as encrypted
from random_program import RandomProgram
from stress_transcripts import write_int8_huge, write_large
from transcript_builder import Rng, Transcript

TRANSCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                           "transcripts")

README = """# Bundled transcripts

HEAL transcripts with exact expected results. `python3 scripts/make_transcripts.py` makes them from
fixed seeds; with `--check` it compares. `python3 scripts/heal_oracle.py FILE` verifies one without
the runtime. Files with "plain" in their name use the plain spelling, others the tagged one. Files
with "names" use strings as names.

| file | what it computes | operations | results |
|---|---|---|---|
"""

README_ENCRYPTED = """
Encrypted inference: real data under real keys. Decrypted results are compared with the plaintext
model's. The files are packed; `gunzip -c` unpacks them for the oracle. Each has a side file
`NAME.answers` with the secret key and the answers. Run `healcl run --dump DIR FILE`, then
`python3 scripts/check_answers.py DIR --answers NAME.answers`. `docs/WORKLOADS.md` has parameters,
security and budgets. Data and weights come from `models/`.

| file | what it computes | operations | results |
|---|---|---|---|
"""

README_SEAL = """
Another library's results: [`scripts/seal_transcript.py`](../scripts/seal_transcript.py) has
Microsoft SEAL compute what is expected, and `make_transcripts.py --check` verifies it.

| file | what it computes | operations | results |
|---|---|---|---|
| `%s` | CKKS with SEAL's key switching, n = 128, primes of 40, 30, 30 and 40 bits, no security: a product, relinearised, rescaled, rotated and conjugated | %d | %d |
"""

README_END = """
Not bundled, because large or endless:

| command | what it writes |
|---|---|
| `make_transcripts.py --random SEED [--operations N] [--elements N] FILE` | a random program over every operation and argument form |
| `make_transcripts.py --large BYTES FILE` | uploads, frees, downloads and some arithmetic, of about that size |
| `make_transcripts.py --int8-huge FILE` | an int8 tensor of more than 2^31 elements, made without a payload |
| `make_transcripts.py --encrypted NAME [--seed SEED] FILE` | an encrypted workload and its side file; FILE may end in `.gz`. NAME is %s |
| `build/python/bin/python scripts/make_transcripts.py --encrypted bootstrap [--n N] FILE` | CKKS bootstrapping, recorded by the Python package from `scripts/test_python.sh`; `bootstrap_toy` as well |
| `make_transcripts.py --encrypted hybrid [--n N] [--limbs K] [--dnum D] FILE` | hybrid key switching: K primes in D digits, and special ones |
| `make_transcripts.py --bad DIR` | small transcripts that must be refused or that differ, and `expected.txt`: file, exit status, entry counted from 0, operation; `-` where there is none |
""" % (", ".join("`%s`" % name for name, workload in encrypted.ENCRYPTED.items()
                 if not workload.options))

PACKED_FROM = 2**20  # bytes
SEAL = "seal_multiply.json.gz"  # from scripts/seal_transcript.py
BUNDLED_ENCRYPTED = ["encrypted_" + name for name, workload in encrypted.ENCRYPTED.items()
                     if workload.bundled]


def bundled(name):
    """-> (file name and text of a bundled transcript, its line in the README)."""
    function, options = WORKLOADS[name]
    transcript = Transcript(name, **options)
    function(transcript)
    machine = transcript.machine
    file = name + (".json.gz" if len(transcript.text()) > PACKED_FROM else ".json")
    line = "| `%s` | %s | %d | %d |\n" % (
        file, " ".join(function.__doc__.split()), machine.operations, machine.downloads)
    return file, transcript.text(), line


def bundled_files(names):
    """-> dict of file name to text; the README too if these are all the transcripts."""
    files, lines, encrypted_lines = {}, [], []
    for name in names:
        if name in WORKLOADS:
            file, text, line = bundled(name)
            files[file] = text
            lines.append(line)
        else:
            texts = encrypted.bundled(name[len("encrypted_"):])
            files[name + ".json.gz"], files[name + ".answers"], line = texts
            encrypted_lines.append(line)
    if list(names) == list(WORKLOADS) + BUNDLED_ENCRYPTED:
        files[SEAL] = encrypted.read_text(os.path.join(TRANSCRIPTS, SEAL))
        operations = [entry[1]["name"] for entry in json.loads(files[SEAL])["transcript"]
                      if entry[0]["value"] == "DEVICE_OP"]
        files["README.md"] = (README + "".join(lines) + README_ENCRYPTED
                              + "".join(encrypted_lines)
                              + README_SEAL % (SEAL, len(operations),
                                               operations.count("device_to_host")) + README_END)
    return files


def check_files(files, folder):
    """Compares with what lies in a folder; -> exit status."""
    status = 0
    for name, text in files.items():
        path = os.path.join(folder, name)
        try:
            same = encrypted.read_text(path) == text
        except (OSError, EOFError):
            same = False
        if not same:
            print("%s differs from what the generator writes" % path)
            status = 1
    whole_folder = {"README.md", "expected.txt"} & set(files)
    for name in sorted(set(os.listdir(folder)) - set(files)) if whole_folder else ():
        print("%s is not what the generator writes" % os.path.join(folder, name))
        status = 1
    return status


def run_on_oracle(files):
    """Every transcript verifies, whatever undefined memory holds; -> exit status."""
    status = 0
    for name, text in files.items():
        for garbage in (0x5B, 0xA4) if name.endswith((".json", ".json.gz")) else ():
            verdict = heal_oracle.run_text(text, heal_oracle.Machine(garbage))
            if verdict[0]:
                print("%s: entry %s (%s): %s" % ((name,) + verdict[1:]))
                status = 1
    return status


def judge_answers(files):
    """Decrypts encrypted transcripts' expected results, and compares them with their models' answers;
    -> exit status."""
    status = 0
    for name in [name for name in files if name.endswith(".answers")]:
        side = json.loads(files[name])
        entries = json.loads(files[name.replace(".answers", ".json.gz")])["transcript"]
        results = [heal_oracle.decode_op(entries[result["entry"]][1]).out.value.array
                   for result in side["results"]]
        verdict = answers.judge(side, results)
        if not verdict.good:
            print(name, *verdict.lines, sep="\n")
            status = 1
    return status


def write_files(files, folder):
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with encrypted.text_writer(os.path.join(folder, name)) as file:
            file.write(text)


def write_random(seeds, operations, elements, path):
    """Random programs, one after the other; the first seed also decides the spelling and the kind of
    names."""
    seed = seeds[0]
    transcript = Transcript(seed, plain=seed % 5 == 3, string_names=seed % 7 == 2,
                            dtypes=seed % 10 != 3)
    for seed in seeds:
        transcript.rng = Rng(seed)
        program = RandomProgram(transcript, elements)
        program.run(operations, loops=15)
        if seed != seeds[-1]:
            transcript.free(*program.pool)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(transcript.text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     epilog="Without options: all bundled transcripts.")
    parser.add_argument("file", nargs="?", metavar="FILE",
                        help="what --large, --int8-huge, --random and --encrypted write")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--large", type=int, metavar="BYTES",
                      help="write a transcript of about this size, using little memory")
    kind.add_argument("--int8-huge", action="store_true",
                      help="write one with an int8 tensor of more than 2^31 elements")
    kind.add_argument("--random", type=lambda text: [int(seed) for seed in text.split(",")],
                      metavar="SEED[,SEED...]",
                      help="write a random program; the same seed gives the same file. Of several the "
                           "programs follow each other")
    kind.add_argument("--encrypted", choices=list(encrypted.ENCRYPTED), metavar="NAME",
                      help="write an encrypted workload and its side file: %s"
                           % ", ".join(encrypted.ENCRYPTED))
    kind.add_argument("--bad", metavar="DIR",
                      help="write the transcripts that must be refused or must differ, and expected.txt")
    parser.add_argument("--check", action="store_true",
                        help="write nothing: make the bundled (or bad) transcripts again, run them "
                             "on the oracle, and fail if a file differs")
    parser.add_argument("--operations", type=int, default=100, metavar="N",
                        help="the number of steps of a random program (default 100)")
    parser.add_argument("--elements", type=int, default=300, metavar="N",
                        help="how many elements the operands of a random program have at most, "
                             "about (default 300)")
    parser.add_argument("--seed", type=int, default=encrypted.SEED,
                        help="seed of the keys and errors of an encrypted workload (default %d)"
                             % encrypted.SEED)
    parser.add_argument("--limbs", type=int, metavar="K",
                        help="primes of a ciphertext of hybrid, 2 to 48 (default 24)")
    parser.add_argument("--n", type=int, metavar="N",
                        help="coefficients of bootstrap, 256 to 65536, or hybrid, 64 to 65536: a power "
                             "of two (default 65536, which alone gives 128 bits of security with the "
                             "other defaults)")
    parser.add_argument("--dnum", type=int, metavar="D",
                        help="digits of hybrid key switching, at most (default 4); more make "
                             "larger keys and fewer special primes")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=sorted(WORKLOADS) + BUNDLED_ENCRYPTED,
                        help="make only this bundled transcript; repeatable")
    parser.add_argument("--output", default=TRANSCRIPTS, metavar="DIR",
                        help="the folder of the bundled transcripts (default transcripts/)")
    options = parser.parse_args()
    writes_one = (options.large is not None or options.int8_huge or options.random is not None
                  or options.encrypted)
    if bool(writes_one) != (options.file is not None):
        parser.error("FILE needs --large, --int8-huge, --random or --encrypted")
    size = {name: getattr(options, name) for name in ("limbs", "n", "dnum")
            if getattr(options, name) is not None}
    allowed = encrypted.ENCRYPTED[options.encrypted].options if options.encrypted else {}
    for name, value in size.items():
        if value not in allowed.get(name, ()):
            parser.error("--%s %d does not apply to %s" % (name, value, options.encrypted or "this"))
    if options.encrypted:
        return encrypted.write_encrypted(options.encrypted, options.file, options.seed, **size)
    if options.large is not None:
        return write_large(options.large, options.file)
    if options.int8_huge:
        return write_int8_huge(options.file)
    if options.random is not None:
        return write_random(options.random, options.operations, options.elements, options.file)
    if options.bad:
        files, status = bad_files()
        folder = options.bad
    else:
        files, folder = bundled_files(options.only or list(WORKLOADS) + BUNDLED_ENCRYPTED), options.output
        status = run_on_oracle(files) | judge_answers(files)
    if options.check:
        return check_files(files, folder) or status
    write_files(files, folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
