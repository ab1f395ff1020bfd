# SPDX-License-Identifier: Apache-2.0
"""CKKS bootstrapping, recorded from the verbs of the Python package, which this workload needs.

The parameters are those that Cheddar publishes as bootparam_40_64bit (Choi, Kim, Ahn 2026): a
dense secret, and a sparse one while the modulus is raised (Bossuat, Troncoso-Pastoriza, Hubaux
2022). Keys are made from the seed when the program first uses them."""

import json

import numpy as np

from fhe.program import digest
from transcript_builder import Rng

WEIGHT = 32      # of the sparse secret
VALUE_BITS = 10  # slots are integers of [-2^10, 2^10] over 2^10
ERROR_BAR = 2.0**-18
SIZES = [1 << log2 for log2 in range(8, 17)]  # what n may be
PUBLISHED = {"scale_bits": 40, "base_bits": 50, "bits": 55, "slot_bits": 40, "special_bits": 56,
             "dnum": 4, "bound": 14, "degree": 31, "doublings": 3}


def record(path, seed, n, device, **parameters):
    """Writes a transcript -> the content of its side file."""
    from healcl import fhe as ckks
    from healcl.fhe.client import Client
    b = ckks.Bootstrapping(n, **PUBLISHED, **parameters)
    ring = ckks.Ring(n, b.moduli)
    client = Client(ring, b.special, b.dnum, seed=seed, device=device)
    slots = Rng(seed).integers(-(1 << VALUE_BITS), 1 << VALUE_BITS, (n // 2,))
    with client.evaluator(device, b.rotations, "within", WEIGHT) as he, he.record(path) as program:
        exhausted = client.encrypt(slots / 2.0**VALUE_BITS, 0, b.scale)
        fresh = program.apply(b, program.load(exhausted, b.scale, name="ciphertext"))
        result = program.store(fresh)[:, None]
    primes = fresh.level + 1
    return {"workload": "bootstrap", "scheme": "CKKS", "task": "slots", "n": n,
            "primes": list(ring.moduli[:primes]), "roots": list(ring.psi[:primes]),
            "secret_key": "".join("-0+"[sign + 1] for sign in client.secret),
            "results": [{"shape": list(result.shape), "sha256": digest(result)}],
            "domain": "bit-reversed values", "layout": ["part", "block", "limb", "n"],
            "scale_bits": PUBLISHED["scale_bits"] - VALUE_BITS, "unit": 1 << VALUE_BITS,
            "error_bar": ERROR_BAR, "truth": slots.tolist()}


def operations(text):
    """The names of a transcript's operations by number of the entry."""
    return {number: entry[1]["name"] for number, entry in enumerate(json.loads(text)["transcript"])
            if entry[0] and entry[0]["value"] == "DEVICE_OP"}


def bootstrap_toy(path, seed):
    """bootstrapping of 64 slots, CKKS in 15 primes of 40 to 55 bits and four special ones, n = 128,
    no security: a dense secret and a sparse one of weight 32, two stages each way, an exponential
    function by Chebyshev polynomials; recorded by the Python package"""
    import healcl
    return record(path, seed, 128, healcl.reference, levels=1, special=4, stages=(2, 2))


def bootstrap(path, seed, n=65536):
    """bootstrapping of 32768 slots, CKKS, n = 65536, 26 primes and seven special ones, 128-bit
    security: four stages of CoeffToSlot and three of SlotToCoeff, nine levels left"""
    import healcl
    return record(path, seed, n, healcl.open(), levels=9, special=7, stages=(4, 3))
