# SPDX-License-Identifier: Apache-2.0
"""Transcripts that come with the package."""
from __future__ import annotations

import os

from . import _native
from ._errors import FileError

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(_native.__file__)), "transcripts")


def sample(name: str) -> str:
    """The path of a file that comes with the package.

    recognizer.json               a layer of a network and its keys, n = 16
    seal_multiply.json.gz         CKKS, n = 128; Microsoft SEAL has computed the expected results
    encrypted_digits_toy.json.gz  recognizes 200 handwritten digits, n = 16, not secure
    encrypted_digits_toy.answers  its secret key and the right answers, as JSON

        healcl.load(healcl.sample("seal_multiply.json.gz")).run(dev)

    The digits: E. Alpaydin, C. Kaynak, doi:10.24432/C50P49, CC BY 4.0.
    """
    names = sorted(os.listdir(_FOLDER))
    if name not in names:
        raise FileError("healcl has no sample '%s', but %s" % (name, ", ".join(names)))
    return os.path.join(_FOLDER, name)
