# SPDX-License-Identifier: Apache-2.0
"""Sequences of calls that passes make fewer steps of, by the patterns in sequences.txt.

Each sequence is a segment and starts from the same values. Another segment adds what it computed to a
checksum, modulo a prime that no sequence uses, so that values that are not reduced count too."""

import math
import os
import re

import numpy as np

PATTERNS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sequences.txt")
DIGITS = 3  # of a base conversion
FACTORS = "factors"
SMALL = 400  # elements
PAIRS = 16  # of two elementwise operations in a chain
MOST_DOWNLOADED = 64  # elements
POOL = 512  # random elements from which large tensors are drawn
LAYOUTS = ("packed", "strided", "swapped", "inner")


def read_patterns():
    """-> dict of letter, ':' or '<' to lines."""
    found = {}
    with open(PATTERNS, encoding="utf-8") as file:
        for line in file:
            match = re.match(r"([A-Z:<])(?: (.*))?$", line.rstrip("\n"))
            if match:
                found.setdefault(match.group(1), []).append(match.group(2) or "")
    return found


def parse_item(text):
    if text == "...":
        return Ellipsis
    if ":" in text:
        return slice(*(int(part) if part else None for part in text.split(":")))
    return int(text)


class Group:
    """Sequences on tensors of one size, dtype and layout."""

    def __init__(self, t, patterns, shared, sizes, dtype, layout, is_tame):
        self.shared = shared
        self.t, self.rng, self.patterns, self.dtype, self.layout = t, t.rng, patterns, dtype, layout
        self.sizes = dict(zip("rsnk", sizes))
        terms = -(-self.sizes["s"] // DIGITS)
        self.sizes.update(t=terms, f=2 * terms)
        self.half = 1 << 8 * np.dtype(dtype).itemsize - 3
        self.is_tame, self.number, self.slice, self.drawn = is_tame, 0, 0, {}
        self.names, self.values = {}, {}  # name -> Handle; of a, b, x -> (first contents, base, axis)
        self.changed = set()  # values that have other contents than at first, or another view
        for line in patterns["<"]:
            self.put_input(*line.split())
        prime = 2**31 - 1 if dtype == "int32" else 2**63 - 25
        self.prime = t.upload(np.full(self.sizes["k"], prime, dtype))
        self.weights = self.tensor("v", self.shape("rnk"))
        self.checksum = t.zeros(self.shape("rnk"), dtype)

    # Inputs

    def size(self, letter):
        if letter == "u":
            return self.sizes["t"] if self.slice + 1 < DIGITS else self.sizes["s"] - self.sizes["f"]
        return self.sizes[letter] if letter in self.sizes else int(letter)

    def shape(self, letters):
        return [self.size(letter) for letter in letters]

    def contents(self, kind, shape):
        rng, is_tame = self.rng, self.is_tame
        if kind == "p":
            return rng.permutation(shape[0])
        if kind == "i":
            return rng.integers(0, self.sizes["n"] - 1, shape)
        if kind == "m" and is_tame:
            return rng.integers(self.half, 2 * self.half - 1, shape)
        if kind == "m":
            return rng.integers(0, 4 * self.half - 1, shape) >> rng.integers(0, 24, shape) | 1
        values = rng.extremes(shape, self.dtype)
        tame = rng.integers(0, self.half - 1, shape)
        return np.where(rng.integers(0, 15, shape) > 0, tame, values) if is_tame else values

    def tensor(self, kind, shape):
        """A tensor of random contents. Large ones are drawn from small uploads, which keeps the file
        small."""
        t, count = self.t, math.prod(shape)
        if kind == "p" or count <= POOL:
            return t.upload(self.contents(kind, shape).astype(self.dtype))
        pool = (kind, self.dtype, self.is_tame, self.sizes["n"] if kind == "i" else 0)
        for key, make in ((FACTORS, lambda: self.rng.integers(1, 2**62, [2 * POOL, 2])),
                          (pool, lambda: self.contents(kind, [POOL]).astype(self.dtype))):
            if key not in self.shared:
                self.shared[key] = t.upload(make())
        rows, out = -(-count // POOL), t.empty(shape, self.dtype)
        drawn = t.empty([rows, POOL])
        column = t.op("get_slice", self.shared[FACTORS], [slice(0, rows), slice(0, 1)])
        row = t.op("get_slice", self.shared[FACTORS], [slice(0, POOL), 1])
        indices, flat = t.op("reshape", drawn, [rows * POOL]), t.op("reshape", out, [count])
        first = t.op("get_slice", indices, [slice(0, count)])
        t.op("modmul", column, row, self.rng.between(2**40, 2**50), drawn)
        t.op("mod", drawn, POOL, drawn)
        t.op("take_along_axis", self.shared[pool], first, 0, flat)
        t.free(drawn, column, row, indices, first, flat)
        return out

    def put_input(self, name, letters, kind):
        self.slice = int(name[1:] or 0)
        shape = self.shape(letters)
        if name[0] not in "abx":
            self.names[name] = self.tensor(kind, shape)
            return
        at = len(shape) - (2 if self.layout == "swapped" else 3)  # this axis comes one position later
        if self.layout == "strided":
            shape[-1] = 2 * shape[-1] + 1
        elif self.layout != "packed":
            shape[at:at + 2] = shape[at + 1], shape[at]
        self.values[name] = (self.tensor(kind, shape), self.t.empty(shape, self.dtype), at)

    def restore(self, name):
        """Gives a value its first contents again."""
        first, base, at = self.values[name]
        self.t.op("pad_single_axis", first, 0, 0, base)
        call = {"packed": ("new_reference", base), "strided": ("get_slice", base, [..., slice(1, None, 2)])}
        self.names[name] = self.t.op(*call.get(self.layout, ("moveaxis", base, at, at + 1)),
                                     out=self.names.get(name))

    # Calls

    def draw(self, letter):
        lines = self.patterns[letter]
        if letter in "YZ":
            return lines[(self.number if letter == "Y" else self.number // len(lines)) % len(lines)]
        return self.rng.choice(lines)

    def expand(self, text):
        """Replaces the letters in an alternative by alternatives, and marks by numbers."""
        def replace(match):
            mark, letter = match.group(1), match.group(2)
            if mark in "$&" and letter.isupper():
                self.drawn[letter] = self.draw(letter) if mark == "$" else self.drawn[letter]
                return self.expand(self.drawn[letter])
            if mark == "@":
                self.slice = int(letter)
                return ""
            return {"%": self.dtype, "#": str(self.slice), "^": str(self.slice + 1),
                    "~": str(self.size("u")), "$": str(self.sizes.get(letter))}[mark]
        return re.sub(r"([$&@])(.)|([%#^~])",
                      lambda match: replace(match) if match.group(1) else replace(
                          re.match("(.)(.?)", match.group(3))), text)

    def argument(self, text):
        if text in self.names:
            return self.names[text]
        if text.startswith("["):
            return [parse_item(item) for item in text[1:-1].split(",")]
        return None if text == "none" else text[1:] if text.startswith(":") else int(text)

    def call(self, text):
        """"out=operation arguments", "-name", which frees it, or "!name", which downloads it."""
        if text[0] == "-":
            self.t.free(self.names.pop(text[1:]))
        elif text[0] == "!":
            if self.t.array(self.names[text[1:]]).size <= MOST_DOWNLOADED:
                self.t.download(self.names[text[1:]])
        else:
            out, _, rest = text.rpartition("=")
            name, *arguments = rest.split(" ")
            result = self.t.op(name, *map(self.argument, arguments), out=self.names.get(out))
            if out:
                self.names[out] = result

    def run(self, number, patterns):
        """A segment of a chain and `patterns` other patterns; then the checksum of what changed."""
        self.number = number
        calls = self.expand("$C" + "$S" * patterns).strip(";").split(";")
        used = [name for name in self.values if re.search(r"\b%s\b" % name, " ".join(calls))]
        fresh = [name for name in used if name not in self.names or name in self.changed]
        if fresh:
            with self.t.segment("prepare"):
                for name in fresh:
                    self.restore(name)
            self.changed.difference_update(fresh)
        views = {name: self.t.array(self.names[name]) for name in used}
        with self.t.segment("sequence %d" % number):
            for call in calls:
                self.call(call)
        changed = [name for name in used if self.t.array(self.names[name]) is not views[name]
                   or not np.array_equal(*map(self.t.array, self.values[name][:2]))]
        self.changed.update(changed)
        self.add_all(changed)

    def add_all(self, names):
        with self.t.segment("checksum"):
            for name in names:
                self.add(self.names[name], name)

    def add(self, handle, name):
        t, terms = self.t, handle
        if name[0] != "x":
            shape = self.shape("rnk" if name[0] == "a" else "nk")
            terms = t.empty(shape, self.dtype)
            t.op("axis_modsum", handle, 1 if name[0] == "a" else 0, self.prime, terms)
        t.op("modmul", self.checksum, self.weights, self.prime, self.checksum)
        t.op("modsum", self.checksum, terms, self.prime, self.checksum)
        if terms is not handle:
            t.free(terms)

    def finish(self):
        """Downloads the sum of checksums, and values with the memory between their elements."""
        self.add_all([name for name in self.values if name in self.names])
        rows = self.t.empty(self.shape("rk"), self.dtype)
        self.t.op("axis_modsum", self.checksum, 1, self.prime, rows)
        self.t.download(rows)
        for name, (_, base, _) in self.values.items():
            if name in self.names and self.t.array(base).size <= MOST_DOWNLOADED:
                self.t.download(base)
        self.t.free(rows, self.checksum, self.weights, self.prime, *self.names.values(),
                    *(handle for first, base, _ in self.values.values() for handle in (first, base)))


def make(t):
    """Appends all sequences: chains of all pairs on small tensors, and some on others."""
    patterns, shared = read_patterns(), {}
    for at, line in enumerate(patterns[":"]):
        sizes = [int(size) for size in line.split()]
        is_small = sizes[0] * sizes[2] * sizes[3] <= SMALL
        each = 4 if is_small else 2  # sequences of a group
        for dtype in ("int64", "int32"):
            for first in range(0, PAIRS if is_small else each, each):
                group = Group(t, patterns, shared, sizes, dtype, LAYOUTS[(at + first // 4) % 4],
                              t.rng.chance(50))
                for number in range(first, first + each):
                    group.run(number, 8 if is_small else 4)
                group.finish()
