# SPDX-License-Identifier: Apache-2.0
"""healcl.fhe.from_arrays against OpenFHE, which gives its arrays as JSON: all bits are equal."""
import json
import unittest

import numpy as np

from healcl import fhe
from support import both

try:
    import openfhe
    from openfhe import JSON
except ImportError:
    raise unittest.SkipTest("OpenFHE is not installed: its results are not there to compare with")

TURN = "within" if hasattr(openfhe, "__version__") else "after"  # from 1.6 on


def read(text, roots):
    """What OpenFHE wrote, as lists and dicts without its wrappers: polynomials are [k][n]. Adds
    roots of unity by modulus."""
    def plain(value):
        if isinstance(value.get("cm"), int):
            roots[value["cm"]] = value["ru"]
        if "ptr_wrapper" in value:
            return value["ptr_wrapper"].get("data")
        return value.get("v", value)

    return json.loads(text, object_hook=plain)["value0"]


def array(ciphertext):
    return np.array(read(openfhe.Serialize(ciphertext, JSON), {}))


def key(parts):
    """A key [digits, 2, k, n]."""
    return np.stack((parts["bk"], parts["ak"]), 1)


class OpenFhe(unittest.TestCase):
    def compare(self, dev, n, depth, digits):
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
        cc.EvalRotateKeyGen(keys.secretKey, [1, -2])
        tag = keys.secretKey.GetKeyTag()
        relinearization = key(read(openfhe.SerializeEvalMultKeyString(JSON, tag), roots)[0][
            "value"][0])
        galois = {each["key"]: key(each["value"]) for each in read(
            openfhe.SerializeEvalAutomorphismKeyString(JSON, tag), roots)[0]["value"]}
        a, b = (cc.Encrypt(keys.publicKey, cc.MakeCKKSPackedPlaintext(np.random.default_rng(
            seed).uniform(-1, 1, n // 2).tolist())) for seed in range(2))
        ring = fhe.Ring(n, roots.keys(), roots.values())
        with fhe.from_arrays(dev, ring, special=len(roots) - array(a).shape[1], dnum=digits,
                             relinearization_key=relinearization, galois_keys=galois,
                             key_rounding="down", generator=5, turn=TURN) as he:
            x, y = (he.load(array(each), 2.0**40) for each in (a, b))
            while True:
                c, z = cc.EvalMultNoRelin(a, b), x * y
                np.testing.assert_array_equal(he.store(z), array(c))
                c, z = cc.Relinearize(c), he.relinearize(z)
                np.testing.assert_array_equal(he.store(z), array(c))
                for steps in (1, -2):
                    np.testing.assert_array_equal(he.store(he.rotate(z, steps)),
                                                  array(cc.EvalRotate(c, steps)))
                if not z.level:
                    break
                a, x = cc.Rescale(c), he.rescale(z)
                np.testing.assert_array_equal(he.store(x), array(a))
                x.scale, b, y = 2.0**20, a, x

    @both
    def test_equal(self, dev):
        for n, depth, digits in ((64, 5, 3), (256, 3, 4)):
            with self.subTest(n=n, depth=depth, digits=digits):
                self.compare(dev, n, depth, digits)


if __name__ == "__main__":
    unittest.main()
