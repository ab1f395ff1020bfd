# SPDX-License-Identifier: Apache-2.0
"""Transcripts that must be refused, or whose results differ."""


def write_bad(folder):
    raise NotImplementedError
