# SPDX-License-Identifier: Apache-2.0
"""The mean of word embeddings and a dense layer, both by rotations: CKKS, one prime.

Slot (sentence, token, i) holds coordinate i of a token's embedding. Turning the slots and
adding sums over tokens, and after the weights over coordinates; the score of a sentence is
then in its first slot. Few keys make a small file: a key is used for several turns."""

import numpy as np

from fhe import ckks, data
from fhe.program import BASE_BITS, Program
from fhe.ring import RnsRing
from transcript_builder import ntt_primes

N, PRIME_BITS = 4096, 48
EMBEDDING_BITS = 26  # an integer coordinate times 2^26 is encoded
WEIGHT_BITS = 2      # the weights repeat every 4 slots: 8 coefficients hold them almost exactly
RADIX = 4            # a sum of 4^i terms takes i keys of 3 turns each


def embed(model):
    """-> integers [sentences, tokens, size]: the embeddings of known words, then zeros."""
    place = {word: i for i, word in enumerate(model["words"])}
    samples = data.sentences()
    out = np.zeros((len(samples), int(model["tokens"]), model["embeddings"].shape[1]), np.int64)
    for row, (words, _) in zip(out, samples):
        known = [place[word] for word in words if word in place]
        row[:len(known)] = model["embeddings"][known]
    return out


def scores(model, embedded):
    """The plaintext model in integers -> ([sentences], the unit)."""
    unit = model["embedding_unit"] * model["weight_unit"] * model["tokens"]
    return embedded.sum(axis=1) @ model["w"] + model["b"], unit


def gather(t, ct, indices):
    """Turns [2, l, n, 1] by take_along_axis on a view of rank 15."""
    _, l, n, k = t.array(ct).shape
    deep = t.op("reshape", ct, [1, 2] + [1] * 6 + [l] + [1] * 4 + [n, k])
    turned = t.empty(t.array(deep).shape)
    t.op("take_along_axis", deep, indices, -2, turned)
    out = t.op("reshape", turned, [2, l, n, k])
    t.free(deep, turned)
    return out


def permuted(t, ct, indices):
    """Turns [2, l, n, 1] by permute, a row of indices for each half."""
    return t.op("permute", ct, indices, t.empty(t.array(ct).shape), 0, 2)


def rotate(t, ct, turn, indices, key):
    """ct [2, l, n, 1] -> the same with its slots turned, under the same key."""
    turned = turn(t, ct, indices)
    _, l, n, k = t.array(ct).shape
    digits, q = t.array(key).shape[1], t.tables["q"]
    c1 = t.pick(turned, 1)
    layer = t.op("unsqueeze", c1, 2)
    coefficients = t.inverse(layer, (l, n, 1, k))
    flat = t.op("flatten", coefficients, 1, -1)
    small = t.op("apply_g_decomp", flat, digits, BASE_BITS, t.empty((l, n, digits), "int8"))
    t.free(c1, layer, coefficients, flat)
    moved = t.op("moveaxis", small, 1, 2)
    tiled = t.op("unsqueeze", moved, 2)
    spectrum = t.forward(tiled, -1, (l, digits, k, n), tile=True, skip_perm=True)
    t.free(small, moved, tiled)
    out = t.empty((2, l, n, k))
    for half in (0, 1):
        total = t.zeros((l, k, n))
        t.apply_key(spectrum, key, half, total)
        back = t.op("moveaxis", total, 2, 1)
        target = t.pick(out, half)
        addend = t.pick(turned, 0) if half == 0 else t.zeros((l, n, k))
        t.op("_modsum_ttt", back, addend, q, target)
        t.free(total, back, target, addend)
    t.free(spectrum, turned)
    return out


def sum_slots(t, ct, turn, keys):
    """ct becomes the sum of its RADIX^len(keys) turns; keys: [(indices, key)]."""
    for indices, key in keys:
        turned = t.op("new_reference", ct)
        for _ in range(RADIX - 1):
            last, turned = turned, rotate(t, turned, turn, indices, key)
            t.free(last)
            t.op("_modsum_ttt", ct, turned, t.tables["q"], ct)
        t.free(turned)


def sentiment(seed, sink=None):
    """opinions of 94 sentences, CKKS, n = 4096, one 48-bit prime, 128-bit security: the mean of
    word embeddings and a dense layer, nine rotations with 4-bit digits by gathers on a rank-15
    view and by permute"""
    ring = RnsRing(N, ntt_primes(PRIME_BITS, N, 1))
    t, model = Program(seed, ring, sink), data.model("sentiment")
    embedded = embed(model)
    sentences, tokens, size = embedded.shape
    blocks = -(-sentences * tokens * size // (N // 2))
    slots = np.zeros(blocks * N // 2)
    slots[:embedded.size] = embedded.reshape(-1)
    pattern = np.tile(model["w"], N // 2 // size).astype(float)
    with t.segment("upload_inf_context"):
        t.upload_tables()
    t.nothing()
    with t.segment("upload_ek"):
        token_keys = [upload_rotation(t, size * RADIX**i, False) for i in range(2)]
        size_keys = [upload_rotation(t, 1, True)]
    t.nothing()
    with t.segment("upload_pipeline"):
        weights = ring.forward(ring.from_integers(ckks.encode(pattern, 2.0**WEIGHT_BITS)))
        weights = t.upload(weights.reshape(N, 1))
        bias = model["b"] << (EMBEDDING_BITS + WEIGHT_BITS)
        bias = t.upload(np.array([bias % ring.primes[0]]))
    t.nothing()
    with t.segment("upload_ct_1"):
        message = ckks.encode(slots.reshape(blocks, -1), 2.0**EMBEDDING_BITS)
        values = t.secret.encrypt(t.sampler, message)
        ct = t.upload(np.moveaxis(values, 1, 0).reshape(2, blocks, N, 1), fortran=True)
    t.nothing()
    with t.segment("compute_block_1"):
        sum_slots(t, ct, gather, token_keys)
        t.free(*[part for pair in token_keys for part in pair])
        t.op("_modmul_ttt", ct, weights, t.tables["q"], ct)
        sum_slots(t, ct, permuted, size_keys)
        t.free(weights, *[part for pair in size_keys for part in pair])
        constant = t.pick(ct, 0)
        t.op("_modsum_ttt", constant, bias, t.tables["q"], constant)
        t.free(constant, bias)
    t.nothing()
    with t.segment("download_ct_1"):
        t.download_result(ct)
        t.free(ct)
        t.free_tables()
    truth, unit = scores(model, embedded)
    return t, t.answers("sentiment", "CKKS", "labels", domain="values",
                        layout=["part", "block", "n", "limb"], stride=tokens * size,
                        scale_bits=EMBEDDING_BITS + WEIGHT_BITS, unit=unit,
                        labels=[label for _, label in data.sentences()],
                        texts=[" ".join(words) for words, _ in data.sentences()],
                        truth=truth.tolist())


def upload_rotation(t, steps, by_permute):
    """-> (indices for the gather or for permute, switching key) of a turn by `steps`."""
    element = ckks.rotation(t.ring.n, steps)
    indices = ckks.galois_indices(t.ring.n, element)
    if by_permute:
        indices = np.stack([indices, indices]).astype(np.int32)
    else:
        indices = indices.reshape((1,) * 13 + (-1, 1))
    return t.upload(indices), t.upload_switching_key(t.secret.turned(element).values)
