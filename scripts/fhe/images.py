# SPDX-License-Identifier: Apache-2.0
"""Grey pictures as PNG files (ISO/IEC 15948), eight bits a pixel."""

import struct
import zlib

import numpy as np


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(path, pixels, zoom=1):
    """pixels: integers [height, width], cut to [0, 255]; each becomes zoom x zoom."""
    pixels = np.clip(pixels, 0, 255).astype(np.uint8).repeat(zoom, axis=0).repeat(zoom, axis=1)
    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))
