#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a transcript of a Galois automorphism: automorphism.py [N [K [G]]] > FILE

It takes x to x^G modulo x^N + 1, G odd, for K moduli.

With --low the operations of HEAL that it is made of stand in its place. Expected results are worked
out here, with Python's integers.
"""

import argparse
import json
import random

from key_switch import call, host, moduli_of


def index_and_sign(n, g):
    """Returns the source of coefficient i of a(x^g), and its sign: x^n is -1."""
    index, sign = [0] * n, [0] * n
    for j in range(n):
        exponent = j * g % (2 * n)
        index[exponent % n], sign[exponent % n] = j, 1 if exponent < n else -1
    return index, sign


def low_level(n, k):
    """Returns the operations of an automorphism."""
    return [
        call("reshape", ["index", [1, n]], "rows"),
        call("reshape", ["q", [k, 1]], "moduli"),
        call("empty", [[k, n], ("int64",)], "moved"),
        call("take_along_axis", ["a", "rows", 1, "moved"], "moved"),
        call("modmul", ["moved", "sign", "moduli", "moved"], "moved"),
        call("modsum", ["moved", "moduli", "moduli", "out"], "out"),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=1024)
    parser.add_argument("k", type=int, nargs="?", default=3)
    parser.add_argument("g", type=int, nargs="?", default=5, help="odd")
    parser.add_argument("--low", action="store_true", help="without automorphism")
    options = parser.parse_args()
    n, k = options.n, options.k
    numbers = random.Random(1)
    moduli = moduli_of(n, k, 60)
    a = [[numbers.randrange(q) for _ in range(n)] for q in moduli]
    index, sign = index_and_sign(n, options.g)
    expected = [row[j] * s % q for row, q in zip(a, moduli) for j, s in zip(index, sign)]
    entries = [
        call("host_to_device", [host([value for row in a for value in row], [k, n])], "a"),
        call("host_to_device", [host(index, [n])], "index"),
        call("host_to_device", [host(sign, [n])], "sign"),
        call("host_to_device", [host(moduli, [k])], "q"),
        call("empty", [[k, n], ("int64",)], "out"),
        json.dumps({"type": "SEGMENT_START", "name": "automorphism"}),
        *(low_level(n, k) if options.low else
          [call("automorphism", ["a", "index", "sign", "q", "out"], "out")]),
        json.dumps({"type": "SEGMENT_END"}),
        call("device_to_host", ["out"], host(expected, [k, n]))]
    print("[\n" + ",\n".join(entries) + "\n]")


if __name__ == "__main__":
    main()
