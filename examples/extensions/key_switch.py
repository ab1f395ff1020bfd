#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a transcript of key switches: key_switch.py [N [K [DIGITS]]] > FILE

With --low the operations of HEAL that a key switch is made of stand in its place. Expected results
are worked out here, with Python's integers.
"""

import argparse
import base64
import json
import random
import struct


def is_prime(number):
    if any(number % small == 0 for small in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return number in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def moduli_of(n, count, bits):
    found, candidate = [], (1 << bits) + 1
    while len(found) < count:
        candidate -= 2 * n
        if is_prime(candidate):
            found.append(candidate)
    return found


def reversed_bits(number, bits):
    return int(format(number, f"0{bits}b")[::-1], 2) if bits else 0


def twiddles(n, q):
    generator = 2
    while pow(generator, (q - 1) // 2, q) == 1:
        generator += 1
    root, powers = pow(generator, (q - 1) // (2 * n), q), [1]
    for _ in range(n - 1):
        powers.append(powers[-1] * root % q)
    return [powers[reversed_bits(i, n.bit_length() - 1)] for i in range(n)]


def transform(x, psi, q):
    x, n, blocks = list(x), len(x), 1
    while blocks < n:
        half = n // (2 * blocks)
        for block in range(blocks):
            for low in range(2 * block * half, (2 * block + 1) * half):
                y = x[low + half] * psi[blocks + block] % q
                x[low], x[low + half] = (x[low] + y) % q, (x[low] - y) % q
        blocks *= 2
    return x


def npy(values, shape):
    header = str({"descr": "<i8", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    data += struct.pack(f"<{len(values)}q", *values)
    return base64.b64encode(data).decode()


def argument(kind, value):
    return {"arg_type": kind, "value": value}


def host(values, shape):
    return argument("HOST_TENSOR", {"tensor_base64": {"type": "numpy", "data": npy(values, shape)}})


def tensor(name):
    return argument("DEVICE_TENSOR", {"inf_name": name, "dtype": "int64"})


def plain(value):
    """A tensor by its name, a shape as a list, a dtype in a tuple, nothing, or an integer."""
    if value is None:
        return argument("NONE", None)
    if isinstance(value, str):
        return tensor(value)
    if isinstance(value, tuple):
        return argument("TENSOR_TYPE", value[0])
    if isinstance(value, list):
        return argument("SHAPE", [argument("INT", size) for size in value])
    return value if isinstance(value, dict) else argument("INT", value)


def call(name, arguments, out):
    out = out if isinstance(out, dict) else tensor(out)
    operation = {"name": name, "args": [plain(value) for value in arguments], "out": out}
    return json.dumps({"type": "DEVICE_OP", "op": operation})


def low_level(n, k, digits, base_bits):
    """Returns the operations of a key switch."""
    int64 = ("int64",)
    return [
        call("empty", [[n, digits], int64], "digits"),
        call("apply_g_decomp", ["a", digits, base_bits, "digits"], "digits"),
        call("moveaxis", ["digits", 0, 1], "rows"),
        call("reshape", ["rows", [1, digits, 1, n]], "tiled"),
        call("empty", [[1, digits, k, n], int64], "transformed"),
        call("ntt", ["tiled", -1, None, None, "q", None, None, "psi", "transformed", 1, 1],
             "transformed"),
        call("reshape", ["out", [1, k, n]], "sum"),
        call("set_const_val", ["sum", 0], "sum"),
        call("modmul_axis_sum", ["transformed", "key", "q", "sum", -1], "sum"),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=1024)
    parser.add_argument("k", type=int, nargs="?", default=3)
    parser.add_argument("digits", type=int, nargs="?", default=4)
    parser.add_argument("--low", action="store_true", help="without key_switch")
    parser.add_argument("--times", type=int, default=1, help="key switches")
    options = parser.parse_args()
    n, k, digits, base_bits = options.n, options.k, options.digits, 60 // options.digits
    numbers = random.Random(1)
    moduli = moduli_of(n, k, 60)
    a = [numbers.randrange(1 << 60) for _ in range(n)]
    key = [[[numbers.randrange(q) for _ in range(n)] for q in moduli] for _ in range(digits)]
    psi = [twiddles(n, q) for q in moduli]
    expected = []
    for j, q in enumerate(moduli):
        total = [0] * n
        for i in range(digits):
            digit = [value >> (i * base_bits) & ((1 << base_bits) - 1) for value in a]
            for u, value in enumerate(transform(digit, psi[j], q)):
                total[u] = (total[u] + value * key[i][j][u]) % q
        expected += total
    entries = [
        call("host_to_device", [host(a, [n])], "a"),
        call("host_to_device",
             [host([value for rows in key for row in rows for value in row], [digits, k, n])],
             "key"),
        call("host_to_device", [host(moduli, [k])], "q"),
        call("host_to_device", [host([value for row in psi for value in row], [k, n])], "psi"),
        call("empty", [[k, n], ("int64",)], "out"),
        json.dumps({"type": "SEGMENT_START", "name": "key switch"}),
    ]
    for _ in range(options.times):
        entries += (low_level(n, k, digits, base_bits) if options.low else
                    [call("key_switch", ["a", "key", "q", "psi", base_bits, "out"], "out")])
    entries += [json.dumps({"type": "SEGMENT_END"}),
                call("device_to_host", ["out"], host(expected, [k, n]))]
    print("[\n" + ",\n".join(entries) + "\n]")


if __name__ == "__main__":
    main()
