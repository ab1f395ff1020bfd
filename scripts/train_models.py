#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the models of the encrypted workloads and writes their integer weights to models/.

NumPy alone, fixed seeds. The weights are committed, so nothing has to be trained again; on
another machine the last bits of floating point may round a weight differently."""

import python_with_numpy

python_with_numpy.require()

import numpy as np

from fhe import data
from transcript_builder import Rng


def normal(rng, shape):
    """Roughly normal numbers: the sum of twelve uniform ones, less six."""
    words = rng.words(12 * int(np.prod(shape))).reshape((12,) + shape)
    return (words / 2.0**64).sum(axis=0) - 6


class Adam:
    """Adam (Kingma, Ba 2015) on a list of arrays, in place."""

    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.step = parameters, rate, 0
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]

    def update(self, gradients):
        self.step += 1
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= self.rate * (m / (1 - 0.9**self.step)) / (
                np.sqrt(v / (1 - 0.999**self.step)) + 1e-8)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def quantised(values, unit):
    return np.rint(values * unit).astype(np.int64)


def digits(hidden=32, unit=64, epochs=1500):
    """logits = W2 (W1 x + b1)^2 + b2 for x = pixels / 16; weights in 1/unit."""
    pixels, classes = data.digits()
    held_out = np.arange(0, len(pixels), 9)
    train = np.setdiff1d(np.arange(len(pixels)), held_out)
    x, target = pixels[train] / 16.0, np.eye(10)[classes[train]]
    rng = Rng("digits model")
    w1, b1 = normal(rng, (hidden, 64)) / 8, np.zeros(hidden)
    w2, b2 = normal(rng, (10, hidden)) / 6, np.zeros(10)
    adam = Adam([w1, b1, w2, b2], 0.003)
    for _ in range(epochs):
        h = x @ w1.T + b1
        error = (softmax(h * h @ w2.T + b2) - target) / len(x)
        back = error @ w2 * 2 * h
        decay = 1e-3
        adam.update([back.T @ x + decay * w1, back.sum(axis=0),
                     error.T @ (h * h) + decay * w2, error.sum(axis=0)])
    model = {"held_out": held_out, "pixel_unit": 16, "weight_unit": unit,
             "w1": quantised(w1, unit), "b1": quantised(b1, unit * 16),
             "w2": quantised(w2, unit), "b2": quantised(b2, unit * (unit * 16) ** 2)}
    h = pixels[held_out] @ model["w1"].T + model["b1"]
    right = (h * h @ model["w2"].T + model["b2"]).argmax(axis=1) == classes[held_out]
    print("digits: %.1f %% of %d held out" % (100 * right.mean(), len(held_out)),
          "|h| to %.1f" % (abs(h).max() / unit / 16))
    return model


def cubic_sigmoid(limit, unit):
    """Integers (c1, c3), in 1/unit: 1/2 + c1 z + c3 z^3 fits the sigmoid on [-limit, limit]."""
    z = np.linspace(-limit, limit, 2001)
    columns = np.stack([z, z**3], axis=1)
    found = np.linalg.lstsq(columns, 1 / (1 + np.exp(-z)) - 0.5, rcond=None)[0]
    return [int(value) for value in quantised(found, unit)]


def disease(unit=64, sigmoid_unit=2**16, limit=12.0, epochs=3000):
    """p = 1/2 + c1 z + c3 z^3, z = w x + b, for standardised features x."""
    features, malignant = data.disease()
    held_out = np.arange(0, len(features), 3)
    train = np.setdiff1d(np.arange(len(features)), held_out)
    x, target = features[train] / 64.0, malignant[train]
    w, b = np.zeros(30), np.zeros(1)
    adam = Adam([w, b], 0.01)
    for _ in range(epochs):
        error = (1 / (1 + np.exp(-(x @ w + b))) - target) / len(x)
        adam.update([error @ x + 0.05 * w, error.sum(keepdims=True)])
    c1, c3 = cubic_sigmoid(limit, sigmoid_unit)
    model = {"held_out": held_out, "feature_unit": 64, "weight_unit": unit, "w": quantised(w, unit),
             "b": int(quantised(b[0], unit * 64)), "sigmoid_unit": sigmoid_unit, "c1": c1, "c3": c3}
    z = (features[held_out] @ model["w"] + model["b"]) / (64.0 * unit)
    p = 0.5 + (c1 * z + c3 * z**3) / sigmoid_unit
    print("disease: %.1f %% of %d held out, |z| to %.1f, p from %.2f to %.2f, off by %.2f" % (
        100 * ((p > 0.5) == malignant[held_out]).mean(), len(z), abs(z).max(), p.min(), p.max(),
        abs(p - 1 / (1 + np.exp(-z))).max()))
    return model


def sentiment(size=4, tokens=16, unit=64, epochs=600):
    """score = w (sum of the words' embeddings / tokens) + b: positive is a good opinion."""
    samples = data.sentences()
    train = [sample for i, sample in enumerate(samples) if i // 2 % 3 != 2]
    held_out = np.array([i for i in range(len(samples)) if i // 2 % 3 == 2])
    words = sorted({word for sentence, _ in train for word in sentence})
    place = {word: i for i, word in enumerate(words)}

    def counts(chosen):
        bags = np.zeros((len(chosen), len(words)))
        for row, (sentence, _) in enumerate(chosen):
            for word in sentence:
                if word in place:
                    bags[row, place[word]] += 1
        return bags

    x, target = counts(train) / tokens, np.array([label for _, label in train])
    rng = Rng("sentiment model")
    table, w, b = normal(rng, (len(words), size)) / 2, normal(rng, (size,)), np.zeros(1)
    adam = Adam([table, w, b], 0.02)
    for _ in range(epochs):
        mean = x @ table
        error = (1 / (1 + np.exp(-(mean @ w + b))) - target) / len(x)
        adam.update([x.T @ np.outer(error, w) + 1e-4 * table, error @ mean + 1e-4 * w,
                     error.sum(keepdims=True)])
    model = {"held_out": held_out, "tokens": tokens, "embedding_unit": unit, "weight_unit": unit,
             "words": words, "embeddings": quantised(table, unit), "w": quantised(w, unit),
             "b": int(quantised(b[0], unit * unit * tokens))}
    scores = counts(samples) @ model["embeddings"] @ model["w"] + model["b"]
    right = (scores > 0) == np.array([label for _, label in samples])
    print("sentiment: %.1f %% of %d held out, %.1f %% of all, least margin %.3f" % (
        100 * right[held_out].mean(), len(held_out), 100 * right.mean(),
        abs(scores).min() / (unit * unit * tokens)))
    return model


if __name__ == "__main__":
    for train_model in (digits, disease, sentiment):
        data.write_model(train_model.__name__, train_model())
