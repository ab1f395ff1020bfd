# SPDX-License-Identifier: Apache-2.0
"""A two-layer network with a square between its layers: CKKS, two primes.

A ciphertext holds one pixel (or neuron) of many images, an image a slot, so weights are
constants: a constant polynomial has the same value everywhere."""

import numpy as np

from bundled_workloads import add_key_switched, square
from fhe import ckks, data
from fhe.program import Program, limbs_last
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

K, PRIME_BITS, SCALE_BITS = 2, 62, 36  # a pixel of 0 to 16 times 2^36 is encoded
SHOWN = 8                              # images that the side file holds to look at


def logits(model, pixels):
    """The plaintext model in integers: object [images, 10]."""
    hidden = pixels @ model["w1"].T + model["b1"]
    return (hidden * hidden).astype(object) @ model["w2"].T.astype(object) + model["b2"]


def logit_unit(model):
    """Returns the integer for a logit of 1.0."""
    return model["weight_unit"] * (model["weight_unit"] * model["pixel_unit"]) ** 2


def constants(ring, values, shape):
    """Integers -> residues in the layout [..., n, k]; shape is what they broadcast to."""
    residues = np.stack([(values.astype(object) % q).astype(np.int64) for q in ring.primes], -1)
    return np.ascontiguousarray(np.broadcast_to(residues, shape))


def upload_weights(t, model, n):
    """Weights [outputs, inputs, 1, n, k] and biases; n is 1 where they are to be broadcast."""
    hidden, inputs = model["w1"].shape
    outputs, k, scale = len(model["w2"]), t.ring.k, 1 << SCALE_BITS

    def upload(values, axes, shape, fortran=False):
        values = values.astype(object).reshape(values.shape + (1,) * axes)
        return t.upload(constants(t.ring, values, shape), fortran=fortran)

    return {"w1": upload(model["w1"], 2, (hidden, inputs, 1, n, k), fortran=True),
            "b1": upload(model["b1"] * scale, 2, (hidden, 1, n, k)),
            "w2": upload(model["w2"], 1, (outputs, hidden, n, k)),
            "b2": upload(model["b2"].astype(object) * scale**2, 1, (outputs, n, k), fortran=True)}


def dense(t, ct, weights, bias, shape, group):
    """ct [1, m, ..., 2, k] times weights [o, m, ..., k], summed over m, plus the bias
    -> [shape, 2, k]; `group` outputs at a time bound the memory for the products."""
    out = t.empty(shape[:-1] + (2, shape[-1]))
    for half in (0, 1):
        part = t.pick(ct, Ellipsis, half, slice(None))
        for start in range(0, shape[0], group):
            rows = slice(start, min(start + group, shape[0]), 1)
            some = t.pick(weights, rows)
            size = rows.stop - rows.start
            products = t.empty((size, t.array(ct).shape[1]) + shape[1:])
            t.op("_modmul_ttt", part, some, t.tables["q"], products)
            target = t.pick(out, rows, Ellipsis, half, slice(0, shape[-1], 1))
            t.op("axis_modsum", products, 1, t.tables["q"], target)
            t.free(some, products, target)
        t.free(part)
    constant = t.pick(out, Ellipsis, 0, slice(None))
    t.op("_modsum_ttt", constant, bias, t.tables["q"], constant)
    t.free(constant)
    return out


def network(t, weights, key, hints, ct, sizes, group):
    """ct [1, inputs, 1, n, 2, k] -> logits [outputs, n, 2, k]."""
    n, k = t.ring.n, t.ring.k
    hidden, outputs = sizes
    layer = dense(t, ct, weights["w1"], weights["b1"], (hidden, 1, n, k), group)
    t.free(ct)
    squared, top = square(t, layer, t.tables["q"], (hidden, 1, n), k)
    t.free(layer)
    add_key_switched(t, t.ring.tables, t.tables, squared, top, key,
                     lambda a, out: t.full_q_digits(a, out, hints))
    t.free(top)
    flat = t.op("reshape", squared, [1, hidden, n, 2, k])
    t.free(squared)
    result = dense(t, flat, weights["w2"], weights["b2"], (outputs, n, k), group)
    t.free(flat)
    return result


def digits(seed, sink, n, group):
    """The held out images, n/2 at a time."""
    ring = RnsRing(n, ntt_primes(PRIME_BITS, n, K))
    t, model = Program(seed, ring, sink), data.model("digits")
    pixels, classes = data.digits()
    pixels, classes = pixels[model["held_out"]], classes[model["held_out"]]
    sizes = len(model["w1"]), len(model["w2"])
    with t.segment("upload_inf_context"):
        t.upload_tables()
        hints = t.upload_hints()
    t.nothing()
    with t.segment("upload_ek"):
        key = t.upload_switching_key(t.secret.square(), limbs_last=True, fortran=True)
    t.nothing()
    with t.segment("upload_pipeline"):
        weights = upload_weights(t, model, n if n <= 64 else 1)
    t.nothing()
    for block, start in enumerate(range(0, len(pixels), n // 2), 1):
        slots = np.zeros((pixels.shape[1], n // 2))
        batch = pixels[start:start + n // 2].T
        slots[:, :batch.shape[1]] = batch
        message = ckks.encode(slots, 2.0**SCALE_BITS)
        with t.segment("upload_ct_%d" % block):
            values = limbs_last(t.secret.encrypt(t.sampler, message))
            ct = t.upload(values[None, :, None], fortran=True)
        t.nothing()
        with t.segment("compute_block_%d" % block):
            result = network(t, weights, key, hints, ct, sizes, group)
        t.nothing()
        with t.segment("download_ct_%d" % block):
            t.download_result(result)
            t.free(result)
        t.nothing()
    t.free(key, *hints, *weights.values())
    t.free_tables()
    return t, t.answers("digits", "CKKS", "classes", domain="values",
                        layout=["class", "n", "part", "limb"], scale_bits=2 * SCALE_BITS,
                        unit=logit_unit(model), labels=classes.tolist(),
                        shades=[data.shades(image) for image in pixels[:SHOWN]],
                        truth=logits(model, pixels).tolist())


def digits_toy(seed, sink=None):
    """recognizes 200 handwritten digits, eight at a time, CKKS, n = 16, two 62-bit primes: a TOY
    without any security in the shape of the public sandbox; dense layer 64 to 32, square,
    relinearisation with 4-bit digits, dense layer 32 to 10"""
    return digits(seed, sink, 16, 32)


def digits_secure(seed, sink=None):
    """recognizes 200 handwritten digits at once, CKKS, n = 8192, two 62-bit primes, 128-bit
    security: dense layer 64 to 32, square, relinearisation with 4-bit digits, dense layer 32 to
    10"""
    return digits(seed, sink, 8192, 8)
