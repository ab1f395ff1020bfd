# SPDX-License-Identifier: Apache-2.0
"""Homomorphic encryption for the transcript generator: keys, CKKS, BGV, key switching.

Exact and deterministic, and written for test data: the random numbers are a function of
a public seed, and nothing here runs in constant time."""

import os

# The client of the Python package, whose _secret.py needs NumPy alone.
__path__.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings",
                             "python", "src", "healcl", "fhe"))
