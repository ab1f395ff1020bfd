# SPDX-License-Identifier: Apache-2.0
"""healcl.fhe.from_arrays against OpenFHE, which gives its arrays as JSON: all bits are equal.

openfhe.npz has made_by_openfhe(16, 3, 2) of versions 1.5.1 and 1.6.1, for who has no OpenFHE.
"""
import json
import os
import unittest

import numpy as np

from healcl import fhe
from support import both

try:
    import openfhe
    from openfhe import JSON
except ImportError:
    openfhe = None

STEPS = (1, -2)
STORED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openfhe.npz")


def read(text, roots=None):
    """Reads OpenFHE's JSON as lists and dicts, without its wrappers; polynomials are [k][n]. Adds
    roots of unity by modulus."""
    def plain(value):
        if isinstance(value.get("cm"), int) and roots is not None:
            roots[value["cm"]] = value["ru"]
        if "ptr_wrapper" in value:
            return value["ptr_wrapper"].get("data")
        return value.get("v", value)

    return json.loads(text, object_hook=plain)["value0"]


def key(parts):
    """A key [digits, 2, k, n]."""
    return np.stack((parts["bk"], parts["ak"]), 1)


def made_by_openfhe(n, depth, digits):
    """Arrays by name: a context, its keys, ciphertexts and results."""
    parameters = openfhe.CCParamsCKKSRNS()
    parameters.SetSecurityLevel(openfhe.HEStd_NotSet)
    parameters.SetRingDim(n)
    parameters.SetMultiplicativeDepth(depth)
    parameters.SetFirstModSize(55)
    parameters.SetScalingModSize(40)
    parameters.SetNumLargeDigits(digits)
    parameters.SetScalingTechnique(openfhe.FIXEDMANUAL)
    cc = openfhe.GenCryptoContext(parameters)
    for feature in (openfhe.PKE, openfhe.KEYSWITCH, openfhe.LEVELEDSHE):
        cc.Enable(feature)
    keys, roots = cc.KeyGen(), {}
    cc.EvalMultKeyGen(keys.secretKey)
    cc.EvalRotateKeyGen(keys.secretKey, list(STEPS))
    tag = keys.secretKey.GetKeyTag()
    relinearization = read(openfhe.SerializeEvalMultKeyString(JSON, tag), roots)[0]["value"][0]
    galois = read(openfhe.SerializeEvalAutomorphismKeyString(JSON, tag))[0]["value"]
    a, b = (cc.Encrypt(keys.publicKey, cc.MakeCKKSPackedPlaintext(np.random.default_rng(
        seed).uniform(-1, 1, n // 2).tolist())) for seed in range(2))
    found = {"a": a, "b": b, "product": cc.EvalMultNoRelin(a, b)}
    found["relinearized"] = cc.Relinearize(found["product"])
    found["rescaled"] = cc.Rescale(found["relinearized"])
    found["squared"] = cc.EvalMult(found["rescaled"], found["rescaled"])
    for steps in STEPS:
        for name in ("a", "squared"):
            found["%s by %d" % (name, steps)] = cc.EvalRotate(found[name], steps)
    return {
        "moduli": list(roots), "psi": list(roots.values()), "relinearization": key(relinearization),
        "elements": [each["key"] for each in galois],
        "galois": np.stack([key(each["value"]) for each in galois]),
        "turn": "within" if hasattr(openfhe, "__version__") else "after",  # since 1.6
        **{name: np.array(read(openfhe.Serialize(each, JSON))) for name, each in found.items()}}


class OpenFhe(unittest.TestCase):
    def compare(self, dev, case):
        a = case["a"]
        ring = fhe.Ring(a.shape[2], case["moduli"], case["psi"])
        with fhe.from_arrays(
                dev, ring, special=len(ring.moduli) - a.shape[1], generator=5,
                dnum=len(case["relinearization"]), relinearization_key=case["relinearization"],
                galois_keys=dict(zip(case["elements"], case["galois"])), key_rounding="down",
                turn=str(case["turn"])) as he:
            x, y = he.load(a, 2.0**40), he.load(case["b"], 2.0**40)
            found = {"product": x * y}
            found["relinearized"] = he.relinearize(found["product"])
            found["rescaled"] = he.rescale(found["relinearized"])
            found["squared"] = he.relinearize(he.square(found["rescaled"]))
            for steps in STEPS:
                found["a by %d" % steps] = he.rotate(x, steps)
                found["squared by %d" % steps] = he.rotate(found["squared"], steps)
            for name, each in found.items():
                with self.subTest(name):
                    np.testing.assert_array_equal(he.store(each), case[name])

    @both
    def test_what_it_made(self, dev):
        with np.load(STORED) as file:
            for version in ("1.5.1", "1.6.1"):
                self.compare(dev, {name[len(version) + 1:]: file[name] for name in file
                                   if name.startswith(version)})

    @unittest.skipUnless(openfhe, "OpenFHE is not installed: its stored results stand for it")
    @both
    def test_what_it_makes(self, dev):
        for n, depth, digits in ((64, 5, 3), (256, 3, 4)):
            self.compare(dev, made_by_openfhe(n, depth, digits))
