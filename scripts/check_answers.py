#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decrypts what `healcl run --dump RESULTS` wrote and compares it with the plaintext model.

The side file NAME.answers, which the generator writes beside a transcript, holds the
secret key and the model's answers. Without --answers the one that fits RESULTS is looked for
beside it, in the working directory and in transcripts/.

Exit status: 0 the answers meet the bars, 1 they do not, 2 bad usage."""

import argparse
import glob
import json
import math
import os
import sys

import numpy as np

from fhe import answers
from fhe.images import write_png

TRANSCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                           "transcripts")
ZOOM = 2  # of the pictures


class Usage(Exception):
    """Something about the files that the user has to settle."""


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Usage("cannot read %s: %s" % (path, error))


def fits(side, listed):
    """Do the entries and shapes of a dump's list hold every result of a side file?"""
    shapes = {item["entry"]: item["shape"] for item in listed}
    return all(shapes.get(result["entry"]) == result["shape"] for result in side["results"])


def find_side(folder, listed):
    """-> the path of the only side file that fits."""
    places = [os.path.join(folder, ".."), folder, ".", TRANSCRIPTS]
    paths = {os.path.realpath(path) for place in places
             for path in glob.glob(os.path.join(place, "*.answers"))}
    found = sorted(path for path in paths if fits(read_json(path), listed))
    if len(found) != 1:
        raise Usage("%s: name one with --answers" % (
            "no side file fits" if not found else "several side files fit: " + ", ".join(found)))
    return found[0]


def load(folder, side, listed):
    """-> the results' arrays, in the side file's order."""
    files = {item["entry"]: item["file"] for item in listed}
    try:
        return [np.load(os.path.join(folder, files[result["entry"]]), allow_pickle=False)
                for result in side["results"]]
    except (OSError, ValueError, KeyError) as error:
        raise Usage("cannot read the results in %s: %s" % (folder, error))


def write_pictures(pictures, folder, name):
    os.makedirs(folder, exist_ok=True)
    for picture, when in zip(pictures, ("before", "after")):
        path = os.path.join(folder, "%s_%s.png" % (name, when))
        write_png(path, picture, ZOOM)
        print("wrote %s" % path)


def check(options):
    listed = read_json(os.path.join(options.results, "results.json"))
    path = options.answers or find_side(options.results, listed)
    side = read_json(path)
    if not fits(side, listed):
        raise Usage("%s does not fit the results in %s" % (path, options.results))
    print("%s: %s, n = %d, a modulus of %d bits in %d prime%s, key and answers from %s" % (
        side["workload"], side["scheme"], side["n"], math.prod(side["primes"]).bit_length(),
        len(side["primes"]), "s"[len(side["primes"]) == 1:], path))
    verdict = answers.judge(side, load(options.results, side, listed))
    print("\n".join(verdict.lines))
    if options.png and verdict.picture:
        write_pictures(verdict.picture, options.png, side["workload"])
    return 0 if verdict.good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     epilog=__doc__.split("\n\n")[-1].replace("\n", " "))
    parser.add_argument("results", metavar="RESULTS", help="a folder that healcl run --dump wrote")
    parser.add_argument("--answers", metavar="FILE", help="the side file (default: found)")
    parser.add_argument("--png", metavar="DIR",
                        help="write pictures before and after to a folder, where there are any")
    try:
        return check(parser.parse_args())
    except Usage as usage:
        parser.error(str(usage))


if __name__ == "__main__":
    sys.exit(main())
