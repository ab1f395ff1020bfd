# SPDX-License-Identifier: Apache-2.0
"""Decrypts results and compares them with the plaintext model's answers."""

import math

import numpy as np

from fhe import ckks, sharpen
from fhe._secret import SecretKey
from fhe.ring import RnsRing

ERROR_BARS = {"classes": 1e-3, "labels": 1e-2, "slots": 1e-3}
SHOWN = 10  # samples that are printed one by one
AGREEMENT_BAR = 0.99  # of the classes; of labels, all must agree


class Verdict:
    """lines: what to print. good: are the bars met?"""

    def __init__(self):
        self.lines, self.good, self.picture = [], True, None

    def say(self, text, *values):
        self.lines.append(text % values)

    def bar(self, met, text, *values):
        self.good = self.good and bool(met)
        self.say(("ok: " if met else "NOT MET: ") + text, *values)


def secret_key(side):
    ring = RnsRing(side["n"], side["primes"], side.get("roots"))
    return SecretKey(ring, np.array(["-0+".index(sign) - 1 for sign in side["secret_key"]]))


def decrypt(side, arrays):
    """Downloaded arrays in the order of side["results"] -> [the results stacked, ..., n] exact
    coefficients, of what remains of side["layout"] without n, part and limb."""
    secret = secret_key(side)
    order = [side["layout"].index(name) for name in ("part", "limb", "n")]
    parts = [np.moveaxis(array, order, (-3, -2, -1)) for array in arrays]
    stacked = np.ascontiguousarray(np.stack(parts))
    if side["domain"] == "coefficients":
        stacked = secret.ring.forward(stacked)
    elif side["domain"] == "bit-reversed values":
        stacked = stacked[..., secret.ring.tables.perm]
    return secret.decrypt(stacked)


def judge(side, arrays):
    """-> Verdict."""
    verdict = Verdict()
    coefficients = decrypt(side, arrays)
    TASKS[side["task"]](side, coefficients, verdict)
    full = math.prod(side["primes"])
    verdict.say("the largest decrypted coefficient has %d of the %d bits below half the modulus",
                int(abs(coefficients).max()).bit_length(), full.bit_length() - 1)
    return verdict


def slots(side, coefficients):
    return ckks.decode(coefficients, float(2 ** side["scale_bits"]))


def check_error(side, verdict, error):
    bar = side.get("error_bar", ERROR_BARS[side["task"]])
    verdict.bar(error < bar, "largest numeric error %.3g, below %g", error, bar)


def picture(side, coefficients, verdict):
    """Tiles of a picture, modulo the plaintext modulus."""
    t = side["plain_modulus"]
    values = coefficients[0] % t
    values = (values - (values > t // 2).astype(object) * t).astype(np.int64)
    high, wide = side["tiles"]
    tiles = values.reshape(high, wide, sharpen.SIDE, sharpen.SIDE)[:, :, 1:-1, 1:-1]
    found = np.concatenate(np.concatenate(tiles, axis=1), axis=1)
    truth = np.array(side["truth"])
    verdict.picture = np.array(side["before"]), found
    wrong = int(np.count_nonzero(found != truth))
    verdict.say("decrypted picture of %d x %d pixels, values %d to %d", found.shape[1],
                found.shape[0], found.min(), found.max())
    verdict.bar(not wrong, "%d of %d pixels differ from the filtered picture", wrong, found.size)


def show_images(shades, decided, verdict):
    """The first images, four in a row, over what they are recognized as."""
    for first in range(0, len(shades), 4):
        row = shades[first:first + 4]
        for lines in zip(*row):
            verdict.say("%s", "    ".join(lines).rstrip())
        verdict.say("%s", "    ".join("recognized as %d" % decided[first + i] + " "
                                      for i in range(len(row))).rstrip())


def classes(side, coefficients, verdict):
    """Logits [block, class, slot]; the most likely class of every image."""
    truth = np.array(side["truth"], dtype=object) / side["unit"]
    found = np.moveaxis(slots(side, coefficients), 1, 2)
    found = found.reshape(-1, truth.shape[1])[:len(truth)] / side["unit"]
    expected, decided = truth.argmax(axis=1), found.argmax(axis=1)
    labels = np.array(side["labels"])
    show_images(side["shades"], decided, verdict)
    verdict.say("image     encrypted  plaintext model  truth  largest error of a logit")
    for i in range(min(SHOWN, len(truth))):
        verdict.say("%5d %13d %16d %6d  %.2e", i, decided[i], expected[i], labels[i],
                    abs(found[i] - truth[i]).max())
    verdict.say("of %d images %d are recognized rightly, by the plaintext model %d", len(truth),
                np.count_nonzero(decided == labels), np.count_nonzero(expected == labels))
    same = np.mean(decided == expected)
    verdict.bar(same >= AGREEMENT_BAR, "%.1f %% have the class of the plaintext model",
                100 * same)
    check_error(side, verdict, abs(found - truth).max())


def labels(side, coefficients, verdict):
    """Scores in every stride-th slot; a positive one is a good opinion."""
    truth = np.array(side["truth"]) / side["unit"]
    found = slots(side, coefficients)[..., ::side["stride"]].reshape(-1)[:len(truth)] / side["unit"]
    given = np.array(side["labels"])
    verdict.say("encrypted  plaintext model  sentence")
    for i in range(min(SHOWN, len(truth))):
        verdict.say("%+9.4f %+16.4f  %s", found[i], truth[i], side["texts"][i])
    right = [np.count_nonzero((score > 0) == given) for score in (found, truth)]
    verdict.say("of %d sentences %d are judged rightly, by the plaintext model %d", len(truth),
                *right)
    wrong = np.count_nonzero((found > 0) != (truth > 0))
    verdict.bar(not wrong, "%d of %d labels differ from the plaintext model's", wrong, len(truth))
    check_error(side, verdict, abs(found - truth).max())


def all_slots(side, coefficients, verdict):
    """Every slot is an answer."""
    truth = np.array(side["truth"]) / side["unit"]
    found = slots(side, coefficients).reshape(-1) / side["unit"]
    verdict.say("     slot  encrypted  plaintext model")
    for i in range(SHOWN):
        verdict.say("%9d %+10.5f %+16.5f", i, found[i], truth[i])
    check_error(side, verdict, abs(found - truth).max())


TASKS = {"picture": picture, "classes": classes, "labels": labels,
         "slots": all_slots}
