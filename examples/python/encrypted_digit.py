#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encrypts a handwritten digit, has it recognized without decrypting it, decrypts the answer, and
plots where the time went.

    python examples/python/encrypted_digit.py [TRANSCRIPT] [--device pocl] [--image 7] [--plot FILE]

TRANSCRIPT is one of those that scripts/make_transcripts.py writes for digits, with its side file
of answers beside it, which has the secret key. The bundled one is a toy without any security;
scripts/demo.sh makes one with 128 bits, build/demo/digits.json.
"""
import argparse
import json
import os
import re
import secrets
import sys

import numpy as np

import healcl

CLONE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(CLONE, "scripts"))

from fhe import answers, ckks, data
from fhe.digits import SCALE_BITS
from fhe.program import limbs_last
from fhe.sampling import Sampler


def number_in(infos, segments, name):
    """The number of the input or result that a segment has."""
    return next(number for number, info in enumerate(infos) if segments[info.segment] == name)


def encrypt(secret, image):
    """Pixels [64] -> a ciphertext for each, as the transcript uploads them; one image, one slot."""
    slots = np.zeros((len(image), secret.ring.n // 2))
    slots[:, 0] = image
    sampler = Sampler(secrets.randbits(60))
    return limbs_last(secret.encrypt(sampler, ckks.encode(slots, 2.0**SCALE_BITS)))[None, :, None]


def recognize(transcript, device, secret, side, image):
    """-> the logits, and the seconds that the second run has taken."""
    t = healcl.load(transcript)
    upload = number_in(t.inputs, t.segments, "upload_ct_1")
    download = number_in(t.results, t.segments, "download_ct_1")
    with t.session(device) as s:
        s[upload] = np.ascontiguousarray(encrypt(secret, image))
        count = t.results[download].segment + 1
        s.run(0, count)   # uploads keys and weights, and compiles kernels
        s.run(0, count)
        logits = answers.slots(side, answers.decrypt(side, [s[download]]))
        return logits.reshape(10, -1)[:, 0] / side["unit"], s.facts["seconds"]


def plot(path, image, logits, report, device):
    """Draws the digit, what it was taken for, and the times of operations."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    times = {}
    for row in report.operations:
        times[row["name"]] = times.get(row["name"], 0) + row["seconds"] * 1e3
    names = sorted((name for name in times if times[name] > 0), key=times.get)[-12:]
    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(13, 4), width_ratios=(1, 1, 1.6), layout="constrained")
    left.imshow(image.reshape(8, 8), cmap="gray_r")
    left.set(title="encrypted digit", xticks=[], yticks=[])
    middle.bar(range(10), logits, color=["C1" if digit == logits.argmax() else "C0"
                                         for digit in range(10)])
    middle.set(title="decrypted logits", xticks=range(10), xlabel="digit")
    right.barh(names, [times[name] for name in names])
    right.set(title="time by operation on\n%s" % (device.info.name if device.info else "reference"),
              xlabel="ms in a run of the whole transcript")
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("transcript", nargs="?", default=os.path.join(
        CLONE, "transcripts", "encrypted_digits_toy.json.gz"))
    parser.add_argument("--device", help="as for healcl.open(), or 'reference'")
    parser.add_argument("--image", type=int, default=7, help="of the data set's 1,797")
    parser.add_argument("--plot", metavar="FILE", help="where to draw it, as .png or .svg")
    options = parser.parse_args()

    device = healcl.open(options.device)
    with open(re.sub(r"\.json(\.gz)?$", ".answers", options.transcript), encoding="utf-8") as file:
        side = json.load(file)
    images, classes = data.digits()
    image = images[options.image]
    print("\n".join(data.shades(image)))
    logits, seconds = recognize(options.transcript, device, answers.secret_key(side), side, image)
    print("recognized as %d, which it %s, in %.2f ms" % (
        logits.argmax(), "is" if logits.argmax() == classes[options.image] else "is not",
        seconds * 1e3))
    if options.plot:
        report = healcl.load(options.transcript).run(device, profile=True)
        plot(options.plot, image, logits, report, device)


if __name__ == "__main__":
    main()
