#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Squares encrypted numbers until no level is left, bootstraps them, and goes on, on any device.

    pip install ./bindings/python
    python bootstrapping.py [--device pocl] [--log2-n 10]

A toy without security unless n = 65536, which takes 12 GB of memory and some minutes.
"""
import argparse
import math
import time

import healcl
import numpy as np
from healcl import fhe
from healcl.fhe.client import Client

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--device", help="as for healcl.open(), or 'reference'")
parser.add_argument("--log2-n", type=int, default=10, choices=range(7, 17))
options = parser.parse_args()
n = 1 << options.log2_n

# Bootstrapping decides the moduli: here three levels are left, of 45 bits each.
b = fhe.Bootstrapping(n, levels=3)
ring = fhe.Ring(n, b.moduli)
print("%d primes, %.0f bits; keys for %d rotations" % (
    len(b.moduli), sum(map(math.log2, b.moduli)), len(b.rotations)))

# The client has the secret, whose 64 coefficients are not 0. It is no secure implementation.
device = healcl.open(options.device)
client = Client(ring, b.special, b.dnum, weight=64, device=device)
numbers = np.random.default_rng(1).uniform(-1, 1, n // 2)


def show(what, c):
    error = abs(client.decrypt(he.store(c), c.scale) - numbers).max()
    print("%-12s level %d, %.1f bits" % (what, c.level, -math.log2(error)))


# The server has keys and ciphertexts. Each rotation is a key, made when it is first used.
with client.evaluator(device, b.rotations, "within") as he:
    x = he.load(client.encrypt(numbers, 3, b.scale), b.scale)
    show("fresh", x)
    for power in (2, 4, 8):
        x, numbers = he.rescale(he.relinearize(he.square(x))), numbers**2
        show("power %d" % power, x)
    for run in ("with keys and tables", "again"):
        start = time.perf_counter()
        y = he.apply(b, x)
        he.wait()
        print("bootstrapping, %s: %.2f s" % (run, time.perf_counter() - start))
    show("bootstrapped", y)
    y, numbers = he.rescale(he.relinearize(he.square(y))), numbers**2
    show("power 16", y)
