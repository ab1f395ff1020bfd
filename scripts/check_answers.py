#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decrypts what `healcl run --dump RESULTS` wrote and compares it with the plaintext model.

The side file NAME.answers, which the generator writes beside a transcript, holds the
secret key and the model's answers.

Exit status: 0 the answers meet the bars, 1 they do not, 2 bad usage."""

import argparse
import json
import math
import os
import struct
import sys
import zlib

import python_with_numpy

python_with_numpy.require()

import numpy as np

from fhe import answers
from fhe.program import digest

FIELDS = {"workload", "scheme", "task", "n", "primes", "secret_key", "results", "layout", "domain"}


class Usage(Exception):
    """Something about the files that the user has to settle."""


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(path, pixels, zoom=1):
    """A PNG file (ISO/IEC 15948). pixels: integers [height, width], cut to [0, 255]; each becomes
    zoom x zoom."""
    pixels = np.clip(pixels, 0, 255).astype(np.uint8).repeat(zoom, axis=0).repeat(zoom, axis=1)
    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Usage("cannot read %s: %s" % (path, error))


def read_side(path):
    side = read_json(path)
    if not isinstance(side, dict) or not FIELDS <= set(side) or not all(
            {"entry", "shape", "sha256"} <= set(result) for result in side["results"]):
        raise Usage("%s is not a side file" % path)
    return side


def fits(side, listed):
    """Do the entries and shapes of a dump's list hold every result of a side file?"""
    shapes = {item["entry"]: item["shape"] for item in listed}
    return all(shapes.get(result["entry"]) == result["shape"] for result in side["results"])


def same_bits(side, arrays):
    """Are the results the ones that the transcript expects?"""
    return all(digest(array) == result["sha256"]
               for array, result in zip(arrays, side["results"]))


def load(folder, side, listed):
    """-> the results' arrays, in the side file's order."""
    files = {item["entry"]: item["file"] for item in listed}
    try:
        arrays = [np.load(os.path.join(folder, files[result["entry"]]), allow_pickle=False)
                  for result in side["results"]]
    except (OSError, ValueError, KeyError) as error:
        raise Usage("cannot read the results in %s: %s" % (folder, error))
    if any(list(array.shape) != result["shape"] or array.dtype.kind != "i"
           for array, result in zip(arrays, side["results"])):
        raise Usage("a file in %s does not match its list" % folder)
    return arrays


def write_pictures(pictures, folder, name):
    os.makedirs(folder, exist_ok=True)
    for picture, when in zip(pictures, ("before", "after")):
        path = os.path.join(folder, "%s_%s.png" % (name, when))
        write_png(path, picture, zoom=2)
        print("wrote %s" % path)


def check(options):
    path = os.path.join(options.results, "results.json")
    listed = read_json(path)
    if not isinstance(listed, list) or not all(
            isinstance(item, dict) and {"entry", "file", "shape"} <= set(item) for item in listed):
        raise Usage("%s is not a list that healcl run --dump wrote" % path)
    path = options.answers
    side = read_side(path)
    if not fits(side, listed):
        raise Usage("%s does not fit the results in %s" % (path, options.results))
    print("%s: %s, n = %d, a modulus of %d bits in %d prime%s, key and answers from %s" % (
        side["workload"], side["scheme"], side["n"], math.prod(side["primes"]).bit_length(),
        len(side["primes"]), "s"[len(side["primes"]) == 1:], path))
    arrays = load(options.results, side, listed)
    if not same_bits(side, arrays):
        print("the results differ from those that the transcript expects")
    verdict = answers.judge(side, arrays)
    print("\n".join(verdict.lines))
    if options.png and verdict.picture:
        write_pictures(verdict.picture, options.png, side["workload"])
    return 0 if verdict.good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     epilog=__doc__.split("\n\n")[-1].replace("\n", " "))
    parser.add_argument("results", metavar="RESULTS", help="a folder that healcl run --dump wrote")
    parser.add_argument("--answers", metavar="FILE", required=True, help="the side file")
    parser.add_argument("--png", metavar="DIR",
                        help="write the pictures, if any, before and after to a folder")
    try:
        return check(parser.parse_args())
    except Usage as usage:
        parser.error(str(usage))


if __name__ == "__main__":
    sys.exit(main())
