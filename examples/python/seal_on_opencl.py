#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encrypts patients' data with TenSEAL, evaluates a logistic regression with SEAL and on an OpenCL
device, compares all bits, decrypts, and plots the times.

    python examples/python/seal_on_opencl.py [--device pocl] [--plot FILE]

Needs `pip install './bindings/python[seal]'`. A slot is a feature of a patient: 256 patients of 32 features.
"""
import argparse
import csv
import json
import os
import time

import numpy as np
import tenseal
import tenseal.sealapi as sealapi

import healcl
from healcl import fhe

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")
PATIENTS, FEATURES = 256, 32


class Seal:
    """SEAL's evaluator, called as healcl's is."""

    def __init__(self, context):
        seal = context.seal_context().data
        self.evaluator, self.encoder = sealapi.Evaluator(seal), sealapi.CKKSEncoder(seal)
        self.keys = {"relinearize": context.relin_keys().data,
                     "rotate_vector": context.galois_keys().data}

    def encode(self, values, like, scale=None):
        plain = sealapi.Plaintext()
        self.encoder.encode(values, like.parms_id(), scale or like.scale, plain)
        return plain

    def __getattr__(self, name):
        name = {"rotate": "rotate_vector", "rescale": "rescale_to_next",
                "mod_switch": "mod_switch_to_next"}.get(name, name)

        def call(*operands):
            plain = "_plain" if isinstance(operands[-1], sealapi.Plaintext) else ""
            keys, out = [self.keys[name]] if name in self.keys else [], sealapi.Ciphertext()
            getattr(self.evaluator, name + plain)(*operands, *keys, out)
            return out

        return call


def evaluate(he, x, model, encoded):
    """Encrypted features -> encrypted probabilities, in the first of each patient's slots.
    encoded: keeps plaintexts, by name, for the next time."""
    def plain(name, like, values, scale=None):
        if name not in encoded:
            encoded[name] = he.encode(values, like, scale)
        return encoded[name]

    def product(a, name, values):
        return he.rescale(he.multiply(a, plain(name, a, values, 2.0**40)))

    weights = np.zeros((PATIENTS, FEATURES))
    weights[:, :len(model["w"])] = np.array(model["w"]) / model["weight_unit"]
    z = product(x, "w", weights.ravel().tolist())
    for steps in (16, 8, 4, 2, 1):
        z = he.add(z, he.rotate(z, steps))
    z = he.add(z, plain("b", z, model["b"] / model["weight_unit"] / model["feature_unit"]))
    squared = he.rescale(he.relinearize(he.multiply(z, z)))
    cubic = product(z, "c3", model["c3"] / model["sigmoid_unit"])
    cubic = he.rescale(he.relinearize(he.multiply(squared, cubic)))
    linear = he.mod_switch(product(z, "c1", model["c1"] / model["sigmoid_unit"]))
    linear.scale = cubic.scale  # they differ by less than a millionth
    return he.add(he.add(cubic, linear), plain("half", cubic, 0.5))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", help="as for healcl.open()")
    parser.add_argument("--plot", metavar="FILE", help="where to draw the times, as .png or .svg")
    options = parser.parse_args()

    with open(os.path.join(MODELS, "disease.json"), encoding="ascii") as file:
        model = json.load(file)
    with open(os.path.join(MODELS, "data", "disease.csv"), encoding="ascii") as file:
        rows = np.array(list(csv.reader(file)), dtype=int)[model["held_out"]]
    features = np.zeros((PATIENTS, FEATURES))
    features[:len(rows), :rows.shape[1] - 1] = rows[:, :-1] / model["feature_unit"]
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 16384,
                              coeff_mod_bit_sizes=[60, 40, 40, 40, 60])
    context.global_scale = 2.0**40
    context.generate_galois_keys()
    encrypted = tenseal.ckks_vector(context, features.ravel())

    device, seconds = healcl.open(options.device), {}
    with fhe.from_seal(context, device) as he:
        def timed(name, on, x, wait):
            encoded = {}
            evaluate(on, x, model, encoded)  # encodes, uploads keys, and compiles kernels
            times = []
            for _ in range(3):
                start = time.perf_counter()
                result = wait(evaluate(on, x, model, encoded))
                times.append(time.perf_counter() - start)
            seconds[name] = min(times)
            return result

        expected = timed("SEAL, one core", Seal(context), encrypted.ciphertext()[0],
                         lambda result: result)
        name = device.info.name if device.info else "reference"
        result, residues = timed("healcl, " + name, he, he.load(encrypted),
                                 lambda result: (result, result.read()))
        equal = np.array_equal(residues, he.load(expected).read())
        probabilities = np.array(he.store(result).decrypt()).reshape(PATIENTS, FEATURES)[:, 0]
    right = ((probabilities[:len(rows)] > 0.5) == rows[:, -1]).sum()
    print("%d of %d patients right; %s to the last bit" % (
        right, len(rows), "equal to SEAL's" if equal else "NOT equal to SEAL's"))
    for name, value in seconds.items():
        print("%s: %.0f ms" % (name, value * 1e3))
    if options.plot:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
        figure, axes = pyplot.subplots(figsize=(8, 2), layout="constrained")
        bars = axes.barh([name.replace(", ", "\n") for name in seconds],
                         [each * 1e3 for each in seconds.values()])
        axes.bar_label(bars, fmt="%.0f ms", padding=4)
        axes.margins(x=0.2)
        axes.invert_yaxis()
        axes.set(xlabel="ms", title="Logistic regression on encrypted data of %d patients" %
                 len(rows))
        figure.savefig(options.plot, dpi=100)
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
