#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encrypts a handwritten digit, has it recognized without decrypting it, decrypts the answer, and
plots where the time went.

    pip install ./bindings/python matplotlib
    python encrypted_digit.py [TRANSCRIPT] [--device pocl] [--digit 7] [--plot FILE]

TRANSCRIPT is one of those that scripts/make_transcripts.py writes for digits, with its side file
of answers beside it, which has the secret key. The one that comes with healcl is a toy without any
security; scripts/demo.sh makes one with 128 bits, build/demo/digits.json.
"""
import argparse
import json
import math
import re
import secrets

import healcl
import numpy as np
from healcl import fhe

# One of each: 8 x 8 pixels of 0 to 16, a letter each. From E. Alpaydin, C. Kaynak: Optical
# Recognition of Handwritten Digits, UCI, 1998, doi:10.24432/C50P49, CC BY 4.0.
DIGITS = """
005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000
0001c8100004gg10001dgb0001bggc0002c8ga000000f8000004g4000003d400
0001ee30000abd8000070d8000007f10048cf40006gg6000002cc4200001dg50
009gd6000065gg000008f5000005e30000009f2000000bc00048bfc000bec800
0005e000001fd000009gd00005gfd00008gggf90004ae8500008c0000007a000
02fgge2003ge9a1007g6000003ef6000001dc0000008g000009gb00003gd1000
003f400000cg200001g7100003g1610003f8cd3002g207c000d949f0003dgf50
0008ee200006afb000000ea0028bcg8008gggg700000bf100009g700000cd100
00a7d900009acf20004bab00001ga10000cd400000c1c00001a2e00000be5000
00bc000002gggd0003gcae0001g1cf0000dg9f20000309b000009f40009cd300
""".split()


def root(n, q):
    """The primitive 2n-th root of unity modulo q that these transcripts have."""
    powers = (pow(base, (q - 1) // (2 * n), q) for base in range(2, q))
    return next(power for power in powers if pow(power, n, q) == q - 1)


class Client:
    """Has the secret key of CKKS (Cheon, Kim, Kim, Song 2017). A ciphertext, int64 [2, k, n], holds
    a number in its first slot, the value of a polynomial at e^(i pi / n)."""

    def __init__(self, side):
        n, primes = side["n"], side["primes"]
        self.ring = fhe.Ring(n, primes, [root(n, q) for q in primes])
        self.scale, self.unit = 2.0 ** (side["scale_bits"] // 2), side["unit"]
        self.cosines = np.cos(np.pi * np.arange(n) / n)
        self.queue = healcl.reference.queue()
        self.column = np.array(primes)[:, None]
        self.p, self.order = self.queue.array(self.column), self.queue.array(self.ring.bit_reversal)
        signs = [["-0+".index(sign) - 1 for sign in side["secret_key"]]]
        self.secret = self.values(np.array(signs))

    def values(self, coefficients):
        """Integers [m, n] -> a tensor of residues of their transforms, [m, 1, k, n]."""
        residues = self.queue.array(coefficients[:, None, None] % self.column)
        return self.queue.ops.ntt(residues, self.ring, perm=self.order)

    def encrypt(self, numbers):
        ops, shape = self.queue.ops, (len(numbers), self.ring.n)
        message = np.rint(numbers[:, None] * self.cosines * (2 * self.scale / self.ring.n))
        coins = np.frombuffer(secrets.token_bytes(6 * math.prod(shape)), np.uint8)
        heads = np.unpackbits(coins).reshape(*shape, 2, 24).sum(axis=-1, dtype=np.int64)
        errors = heads[..., 0] - heads[..., 1]
        a = self.queue.array([[[[secrets.randbelow(q) for _ in range(self.ring.n)]
                                for q in self.ring.moduli]] for _ in numbers])
        minus = ops.modneg(ops.modmul(a, self.secret, self.p), self.p)
        b = ops.modsum(self.values(message.astype(np.int64) + errors), minus, self.p)
        return np.concatenate((b.read(), a.read()), axis=1)

    def decrypt(self, ciphertexts):
        ops = self.queue.ops
        b, a = (self.queue.array(ciphertexts[:, part:part + 1]) for part in (0, 1))
        values = ops.modsum(b, ops.modmul(a, self.secret, self.p), self.p)
        residues = ops.intt(values, self.ring, perm=self.order).read()[:, 0]
        full = math.prod(self.ring.moduli)
        others = [full // q for q in self.ring.moduli]
        x = sum(residues[:, i].astype(object) * (other * pow(other, -1, q) % full)
                for i, (q, other) in enumerate(zip(self.ring.moduli, others))) % full
        x = np.where(x > full // 2, x - full, x).astype(float)
        return x @ self.cosines / self.scale**2 / self.unit


def number_in(infos, segments, name):
    """The number of the input or result that a segment has."""
    return next(number for number, info in enumerate(infos) if segments[info.segment] == name)


def recognize(transcript, device, client, image):
    """-> the logits, and the seconds that the second run has taken."""
    t = healcl.load(transcript)
    upload = number_in(t.inputs, t.segments, "upload_ct_1")
    download = number_in(t.results, t.segments, "download_ct_1")
    ciphertexts = np.moveaxis(client.encrypt(image), -1, 1)  # [64, n, 2, k]
    with t.session(device) as s:
        s[upload] = np.ascontiguousarray(ciphertexts[None, :, None])
        count = t.results[download].segment + 1
        s.run(0, count)   # uploads keys and weights, and compiles kernels
        s.run(0, count)
        return client.decrypt(np.moveaxis(s[download], 1, -1)), s.facts["seconds"]


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
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("transcript", nargs="?",
                        default=healcl.sample("encrypted_digits_toy.json.gz"))
    parser.add_argument("--device", help="as for healcl.open(), or 'reference'")
    parser.add_argument("--digit", type=int, default=7, choices=range(10))
    parser.add_argument("--plot", metavar="FILE", help="where to draw it, as .png or .svg")
    options = parser.parse_args()

    device = healcl.open(options.device)
    with open(re.sub(r"\.json(\.gz)?$", ".answers", options.transcript), encoding="utf-8") as file:
        client = Client(json.load(file))
    image = np.array([int(pixel, 17) for pixel in DIGITS[options.digit]])
    for row in image.reshape(8, 8):
        print("".join(" .:-=+*#@"[pixel // 2] * 2 for pixel in row))
    logits, seconds = recognize(options.transcript, device, client, image)
    print("recognized as %d, which it %s, in %.2f ms" % (
        logits.argmax(), "is" if logits.argmax() == options.digit else "is not", seconds * 1e3))
    if options.plot:
        report = healcl.load(options.transcript).run(device, profile=True)
        plot(options.plot, image, logits, report, device)


if __name__ == "__main__":
    main()
