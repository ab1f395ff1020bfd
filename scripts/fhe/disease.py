# SPDX-License-Identifier: Apache-2.0
"""Logistic regression with a cubic for the sigmoid: CKKS, two primes, two products.

A ciphertext holds one feature of many patients, a patient a slot."""

import numpy as np

from bundled_workloads import add_key_switched, square
from fhe import ckks, data
from fhe.digits import constants, dense
from fhe.program import Program, limbs_last
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

N, K, PRIME_BITS = 4096, 2, 53
SCALE_BITS = 17  # a feature of -192 to 192 times 2^17 is encoded


def probabilities(model, features):
    """The plaintext model in integers -> (object [patients], the unit)."""
    z = features.astype(object) @ model["w"].astype(object) + model["b"]
    one = model["feature_unit"] * model["weight_unit"]
    p = half(model) + model["c1"] * one**2 * z + model["c3"] * z**3
    return p, model["sigmoid_unit"] * one**3


def half(model):
    """The constant term, a probability of 1/2."""
    one = model["feature_unit"] * model["weight_unit"]
    return model["sigmoid_unit"] * one**3 // 2


def relinearise(t, key, hints, low, top):
    """low [1, 1, n, 2, k] += top [1, 1, n, k], switched from s^2 to s."""
    add_key_switched(t, t.ring.tables, t.tables, low, top, key,
                     lambda a, out: t.full_q_digits(a, out, hints))
    t.free(top)


def product(t, a, b, key, hints):
    """Ciphertexts [1, 1, n, 2, k] -> their product, relinearised."""
    n, k, q = t.ring.n, t.ring.k, t.tables["q"]
    shape = (1, 1, n, k)
    a0, a1, b0, b1 = [t.pick(ct, Ellipsis, part, slice(None)) for ct in (a, b) for part in (0, 1)]
    out = t.empty(shape[:-1] + (2, k))
    low, middle = [t.pick(out, Ellipsis, part, slice(None)) for part in (0, 1)]
    t.op("_modmul_ttt", a0, b0, q, low)
    t.op("_modmul_ttt", a0, b1, q, middle)
    top = t.op("_modmul_ttt", a1, b0, q, t.empty(shape))
    t.op("_modsum_ttt", middle, top, q, middle)
    t.op("_modmul_ttt", a1, b1, q, top)
    t.free(low, middle, a0, a1, b0, b1)
    relinearise(t, key, hints, out, top)
    return out


def cubic(t, z, terms, key, hints):
    """z [1, 1, n, 2, k] -> c0 + (c1 + c3 z^2) z."""
    q = t.tables["q"]
    inner, top = square(t, z, q, (1, 1, t.ring.n), t.ring.k)
    relinearise(t, key, hints, inner, top)
    t.op("_modmul_ttt", inner, terms["c3"], q, inner)
    add_constant(t, inner, terms["c1"])
    out = product(t, inner, z, key, hints)
    t.free(inner)
    add_constant(t, out, terms["c0"])
    return out


def add_constant(t, ct, value):
    constant = t.pick(ct, Ellipsis, 0, slice(None))
    t.op("_modsum_ttt", constant, value, t.tables["q"], constant)
    t.free(constant)


def upload_model(t, model):
    """Weights [1, features, 1, 1, k], bias and the cubic's terms [1, 1, 1, k]."""
    k, scale = t.ring.k, 1 << SCALE_BITS
    one = model["feature_unit"] * model["weight_unit"]

    def upload(values, shape):
        return t.upload(constants(t.ring, np.array(values, dtype=object), shape))

    return {"w": upload(model["w"].reshape(1, -1, 1, 1), (1, len(model["w"]), 1, 1, k)),
            "b": upload([model["b"] * scale], (1, 1, 1, k)),
            "c0": upload([half(model) * scale**3], (1, 1, 1, k)),
            "c1": upload([model["c1"] * one**2 * scale**2], (1, 1, 1, k)),
            "c3": upload([model["c3"]], (1, 1, 1, k))}


def disease(seed, sink=None):
    """risk of 190 patients from 30 features, CKKS, n = 4096, two 53-bit primes, 128-bit security:
    logistic regression with a cubic for the sigmoid, two products with relinearisation"""
    ring = RnsRing(N, ntt_primes(PRIME_BITS, N, K))
    t, model = Program(seed, ring, sink), data.model("disease")
    features, malignant = data.disease()
    features, malignant = features[model["held_out"]], malignant[model["held_out"]]
    slots = np.zeros((features.shape[1], N // 2))
    slots[:, :len(features)] = features.T
    with t.segment("upload_inf_context"):
        t.upload_tables()
        hints = t.upload_hints()
    t.nothing()
    with t.segment("upload_ek"):
        key = t.upload_switching_key(t.secret.square(), limbs_last=True, fortran=True)
    t.nothing()
    with t.segment("upload_pipeline"):
        terms = upload_model(t, model)
    t.nothing()
    with t.segment("upload_ct_1"):
        message = ckks.encode(slots, 2.0**SCALE_BITS)
        ct = t.upload(limbs_last(t.secret.encrypt(t.sampler, message))[None, :, None], fortran=True)
    t.nothing()
    with t.segment("compute_block_1"):
        z = dense(t, ct, terms["w"], terms["b"], (1, 1, N, K), 1)
        t.free(ct)
        result = cubic(t, z, terms, key, hints)
        t.free(z, key, *hints, *terms.values())
    t.nothing()
    with t.segment("download_ct_1"):
        t.download_result(result)
        t.free(result)
        t.free_tables()
    truth, unit = probabilities(model, features)
    return t, t.answers("disease", "CKKS", "probabilities", domain="values",
                        layout=["one", "r", "n", "part", "limb"], scale_bits=3 * SCALE_BITS,
                        unit=unit, labels=malignant.tolist(), truth=truth.tolist())
