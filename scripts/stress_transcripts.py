# SPDX-License-Identifier: Apache-2.0
"""Transcripts that are large themselves, or whose tensors are."""

import numpy as np

from transcript_builder import Ring, Transcript, ntt_primes

BLOCK_BYTES = 3 * 2**20  # of tensor data; 4 MiB as base64
LIVE_BLOCKS = 4
TABLE_BYTES = 20000  # what a large transcript holds besides its blocks, about


class CountingFile:
    """A text file that knows how much was written."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8", newline="")
        self.written = 0

    def write(self, text):
        self.file.write(text)
        self.written += len(text)


def write_large(size, path):
    """A valid transcript of about `size` bytes. Blocks are uploaded as int64, int32 or int8,
    a few stay bound at a time, every fifth is downloaded whole, all are worked on a little."""
    sink = CountingFile(path)
    t = Transcript("large", sink=sink)
    block_bytes = max(64 * 64, min(BLOCK_BYTES, (size - TABLE_BYTES) // 16 // 512 * 512))
    noise = t.rng.words(block_bytes // 8)
    ring = Ring(64, ntt_primes(62, 64, 2))
    with t.segment("upload_context"):
        q, psi = t.upload(ring.q), t.upload(ring.psi)
    live, count, block_text = [], 0, 0
    while sink.written + block_text < size or count == 0:
        start = sink.written
        t.segment_start("block_%d" % count)
        dtype = ("int64", "int64", "int32", "int64", "int8")[count % 5]
        words = noise ^ np.uint64(count * 0x9E3779B97F4A7C15 % 2**64)
        block = words.view(dtype).reshape(-1, 64)
        live.append(t.upload(block, fortran=count % 3 == 1))
        if dtype != "int8":
            work(t, live[-1], dtype, q, psi)
        if count % 5 == 3:
            t.download(live[-1])
        if len(live) > LIVE_BLOCKS:
            t.free(live.pop(count % LIVE_BLOCKS))
        t.segment_end()
        count += 1
        block_text = max(block_text, (sink.written - start) // 2)
    with t.segment("download_ends"):
        for handle in live:
            t.download(t.op("get_slice", handle, [slice(-2, None)]))
    t.finish()
    sink.file.close()


def work(t, block, dtype, q, psi):
    """A modular product in the block's own memory, a transform of its last rows."""
    rows = t.op("get_slice", block, [slice(0, 8, 2), slice(None)])
    other = t.op("get_slice", block, [slice(-8, -4)])
    t.op("_modmul_ttc", rows, other, 2**31 - 1, rows)
    t.download(rows)
    if dtype == "int64":
        last = t.op("reshape", t.op("get_slice", block, [slice(-6, None)]), [1, 3, 2, 64])
        spectrum = t.empty((1, 3, 2, 64))
        t.op("ntt", last, -1, None, None, q, None, None, psi, spectrum, False, True)
        t.download(spectrum)
        t.free(last, spectrum)
    t.free(rows, other)


def write_int8_huge(path):
    """Works at offsets around and beyond 2^31 in int8 tensors that no payload fills."""
    sink = CountingFile(path)
    t = Transcript("int8 huge", sink=sink)
    half = 2**30 + 2**12
    ring = Ring(16, ntt_primes(62, 16, 2))
    with t.segment("upload"):
        values = t.upload(t.rng.extremes((40,)))
        q, psi = t.upload(ring.q), t.upload(ring.psi)
    with t.segment("fill all"):
        whole = t.op("set_const_val", t.empty((2, half), "int8"), -7)
        flat = t.op("reshape", whole, [-1])
        for start in (0, half - 4, 2**31 - 4, 2 * half - 8):
            t.check("get_slice", flat, [slice(start, start + 8)])
        t.check("get_slice", whole, [slice(None), slice(None, None, 2**27)])
        t.free(whole, flat)
    with t.segment("work at the end"):
        whole = t.zeros((2, half), "int8")
        flat = t.op("flatten", whole, 0, 1)
        t.op("set_const_val", t.op("get_slice", whole, [slice(None), -1]), -3)
        t.op("set_const_val", t.op("get_slice", flat, [slice(2**31 - 3, 2**31 + 3)]), 99)
        t.op("set_const_val", t.op("get_slice", flat, [slice(5, None, 2**28 + 1)]), 11)
        tail = t.op("get_slice", whole, [1, slice(half - 700, half - 60)])
        digits = t.op("reshape", tail, [40, 16])
        t.op("apply_g_decomp", values, 16, 4, digits)
        t.free(whole, tail)
        rows = t.op("get_slice", flat, [slice(2 * half - 700, None)])
        t.download(rows)
        spectrum = t.empty((1, 40, 2, 16))
        tiled = t.op("unsqueeze", t.op("unsqueeze", digits, 1), 0)
        t.op("ntt", tiled, -1, None, None, q, None, None, psi, spectrum, True, True)
        t.download(spectrum)
        t.check("contiguous", t.op("moveaxis", digits, 0, 1))
        t.check("get_slice", flat, [slice(2**31 - 8, 2**31 + 8)])
        t.check("get_slice", flat, [slice(5, None, 2**28 + 1)])
        t.check("get_slice", flat, [slice(4, None, 2**28 + 1)])
    t.finish()
    sink.file.close()
