#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes models/data/ out of the copies that scikit-learn and scikit-image ship.

Not needed to generate transcripts or to train: the extracts are committed. Needs the
packages scikit-learn and scikit-image. models/README.md has sources and licences."""

import os

import python_with_numpy

python_with_numpy.require()

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models", "data")
GREY_LEVELS = "0123456789abcdefg"  # a pixel of the digits, 0 to 16


def write(name, lines):
    with open(os.path.join(DATA, name), "w", encoding="ascii", newline="") as file:
        file.write("".join(line + "\n" for line in lines))


def digits():
    """1797 lines: 64 pixels, row by row, a blank, the digit."""
    from sklearn.datasets import load_digits
    table = load_digits()
    pixels = table.data.astype(int)
    return ["".join(GREY_LEVELS[pixel] for pixel in row) + " %d" % label
            for row, label in zip(pixels, table.target)]


def disease():
    """569 lines: 30 features as integers of 1/64 standard deviation, cut to three deviations,
    then 1 for malignant."""
    from sklearn.datasets import load_breast_cancer
    table = load_breast_cancer()
    scores = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    scores = np.clip(np.rint(64 * scores).astype(int), -192, 192)
    return [",".join(map(str, row)) + ",%d" % (label == 0)
            for row, label in zip(scores, table.target)]


def camera():
    """124 lines of 186 grey levels: the middle of the picture at half its size."""
    from skimage.data import camera as load_camera
    whole = load_camera().astype(int)
    half = whole.reshape(256, 2, 256, 2).sum(axis=(1, 3)) // 4
    return [" ".join(map(str, row)) for row in half[20:144, 40:226]]


if __name__ == "__main__":
    write("digits.txt", digits())
    write("disease.csv", disease())
    write("camera.txt", camera())
