# SPDX-License-Identifier: Apache-2.0
"""Rings, transforms and key switching on any device, for adapters of libraries.

    ring = fhe.Ring(8192, moduli)
    c0, c1 = fhe.key_switch(d2, relinearization_key, ring, device=healcl.open("gpu"))

All arrays are int64, residues in [0, q), and values are in the order of Ring.
"""
from ._arithmetic import base_convert, intt, key_switch, ntt, rescale
from ._ring import Ring

__all__ = [name for name in dir() if not name.startswith("_")]
