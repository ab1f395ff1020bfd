# SPDX-License-Identifier: Apache-2.0
"""CKKS on any device, for ciphertexts and keys of existing libraries, with bit-identical results.

    with fhe.from_seal(context, dev) as he:       # of TenSEAL; fhe.from_arrays for others
        a, b = he.load(ciphertext_a), he.load(ciphertext_b)
        result = he.store(he.rescale(he.relinearize(a * b)))

Ring, key_switch, base_convert, rescale, ntt and intt work on arrays, for adapters of other
libraries. All arrays are int64 residues in [0, q); values are in the order of Ring.
"""
from ._arithmetic import base_convert, intt, key_switch, ntt, rescale
from ._bootstrapping import Bootstrapping
from ._evaluator import Evaluator, Key, from_arrays
from ._linear import LinearTransform
from ._operands import Ciphertext, Plaintext
from ._ring import Ring, primes
from ._seal import SealEvaluator, from_seal

__all__ = ["Bootstrapping", "Ciphertext", "Evaluator", "Key", "LinearTransform", "Plaintext",
           "Ring", "SealEvaluator", "base_convert", "from_arrays", "from_seal", "intt",
           "key_switch", "ntt", "primes", "rescale"]
