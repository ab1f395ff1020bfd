#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes transcripts/seal_multiply.json.gz: CKKS by Microsoft SEAL, whose own results are expected.

    seal_transcript.py [FILE]

Needs the Python package, with TenSEAL: build/python/bin/python after scripts/test_python.sh. SEAL
draws keys and errors from a fixed seed, so that its results come out the same.
"""
import os
import sys
import tempfile

import tenseal.sealapi as seal

import healcl
from healcl import fhe as ckks

from fhe.workloads import read_text, text_writer

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(os.path.dirname(SCRIPTS), "transcripts", "seal_multiply.json.gz")
N, BITS, SCALE, SEED = 128, [40, 30, 30, 40], 2.0**30, 47


def text(device):
    """The transcript's text; the device computes while it is recorded."""
    parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
    parameters.set_poly_modulus_degree(N)
    parameters.set_coeff_modulus(seal.CoeffModulus.Create(N, BITS))
    parameters.set_random_generator(seal.Blake2xbPRNGFactory([SEED] * 8))
    context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.NONE)
    generator, public = seal.KeyGenerator(context), seal.PublicKey()
    keys, galois = seal.RelinKeys(), seal.GaloisKeys()
    generator.create_public_key(public)
    generator.create_relin_keys(keys)
    generator.create_galois_keys([3, 2 * N - 1], galois)
    encoder, encryptor = seal.CKKSEncoder(context), seal.Encryptor(context, public)
    evaluator = seal.Evaluator(context)

    def call(name, *operands):
        out = seal.Ciphertext()
        getattr(evaluator, name)(*operands, out)
        return out

    def encrypt(values):
        plain, out = seal.Plaintext(), seal.Ciphertext()
        encoder.encode(values, SCALE, plain)
        encryptor.encrypt(plain, out)
        return out

    a, b = (encrypt([first + i / N for i in range(N // 2)]) for first in (0.25, -1.0))
    product = call("multiply", a, b)
    relinearized = call("relinearize", product, keys)
    rescaled = call("rescale_to_next", relinearized)
    rotated = call("rotate_vector", rescaled, 1, galois)
    conjugate = call("complex_conjugate", rotated, galois)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "seal.json.gz")
        with ckks.from_seal(context, device, relinearization_keys=keys, galois_keys=galois) as he, \
                he.record(path) as program:
            x, y = program.load(a), program.load(b)
            found = [x * y]
            found.append(program.relinearize(found[-1]))
            found.append(program.rescale(found[-1]))
            found.append(program.rotate(found[-1], 1))
            found.append(program.conjugate(found[-1]))
            for result, expected in zip(found, (product, relinearized, rescaled, rotated,
                                                conjugate)):
                program.expect(result, expected)
        return read_text(path)


if __name__ == "__main__":
    with text_writer(sys.argv[1] if len(sys.argv) > 1 else FILE) as file:
        file.write(text(healcl.reference))
