#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a copy in the host's memory, by all processors that this process may use.

    host_copy.py bench --bytes BYTES [...] --json -    # a peer of kernels_bench.py

BYTES are read and written together."""

import ctypes
import json
import mmap
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

RUNS = 15


def host_copy_ns(size):
    """-> the median of nanoseconds that reading and writing size bytes together takes"""
    count = len(os.sched_getaffinity(0))
    part = size // 2 // count
    blocks = [mmap.mmap(-1, part * count) for _ in range(2)]
    for block in blocks:
        block.madvise(mmap.MADV_HUGEPAGE)  # as a device's buffers
    source, target = (ctypes.addressof(ctypes.c_char.from_buffer(block)) for block in blocks)
    times = []
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda i: ctypes.memset(source + i * part, i + 1, part), range(count)))
        for _ in range(1 + RUNS):  # the first one touches the target's pages
            begin = time.perf_counter_ns()
            list(pool.map(lambda i: ctypes.memmove(target + i * part, source + i * part, part),
                          range(count)))
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times[1:])


if __name__ == "__main__":
    BYTES = int(sys.argv[sys.argv.index("--bytes") + 1])
    print(json.dumps({"results": [{"median_ns": host_copy_ns(BYTES), "units": BYTES,
                                   "bytes": BYTES, "unit": "byte"}]}))
