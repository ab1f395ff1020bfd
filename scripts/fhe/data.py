# SPDX-License-Identifier: Apache-2.0
"""The committed data and model weights, all integers. models/README.md has their sources."""

import json
import os

import numpy as np

MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                      "models")


def read_lines(name):
    with open(os.path.join(MODELS, "data", name), encoding="ascii") as file:
        return file.read().splitlines()


def digits():
    """-> (pixels int64 [1797, 64] in [0, 16], classes int64 [1797])."""
    lines = read_lines("digits.txt")
    pixels = [[int(letter, 17) for letter in line[:64]] for line in lines]
    return np.array(pixels, dtype=np.int64), np.array([int(line[65]) for line in lines])


def shades(image):
    """pixels [64] of 0 to 16 -> eight lines of text, two characters a pixel."""
    return ["".join(" .:-=+*#@"[pixel // 2] * 2 for pixel in row)
            for row in image.reshape(8, 8).tolist()]


def camera():
    """-> grey levels int64 [124, 186] in [0, 255]."""
    return np.array([line.split() for line in read_lines("camera.txt")], dtype=np.int64)


def sentences():
    """-> list of (words, 1 for positive or 0)."""
    return [(line[2:].split(), int(line[0])) for line in read_lines("sentences.txt")]


def model(name):
    """The weights of a model: dict of int64 arrays, integers and lists of words."""
    with open(os.path.join(MODELS, name + ".json"), encoding="ascii") as file:
        fields = json.load(file)
    return {key: np.array(value, dtype=np.int64)
            if isinstance(value, list) and not isinstance(value[0], str) else value
            for key, value in fields.items()}
