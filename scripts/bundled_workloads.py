# SPDX-License-Identifier: Apache-2.0
"""The transcripts that come with the project: one function each, see WORKLOADS."""

import numpy as np

import sequences
from random_program import RandomProgram
from transcript_builder import INT64_MAX, INT64_MIN, Handle, Ring, ntt_primes

INT32_MAX = 2**31 - 1
WORKLOADS = {}  # name -> (function, options of Transcript)


def workload(name, **options):
    """Registers a function of a Transcript; its docstring is its line in the README."""

    def register(function):
        WORKLOADS[name] = (function, options)
        return function

    return register


def ring_tensors(t, ring, dtype="int64"):
    """Uploads a Ring's tables; -> dict of handles. mu is clipped for int32."""
    limit = np.iinfo(dtype).max
    names = ("perm", "pairs", "q", "log2p", "mu", "psi", "ipsi", "n_inv")
    return {name: t.upload(np.minimum(getattr(ring, name), limit).astype(dtype)) for name in names}


def ntt_args(tensors, a, axis, out, tile, skip_perm):
    """The 11 arguments of ntt."""
    return [a, axis] + [tensors[name] for name in ("perm", "pairs", "q", "log2p", "mu", "psi")] + [
        out, tile, skip_perm]


def intt_args(tensors, a, out, tile=False):
    """The 10 arguments of intt."""
    names = ("perm", "pairs", "q", "log2p", "mu", "ipsi", "n_inv")
    return [a] + [tensors[name] for name in names] + [out, tile]


def index(*items):
    """A get_slice index."""
    return list(items)


# ----------------------------------------------------------------- applications


@workload("recognizer")
def recognizer(t):
    """digit recognizer, n = 16, two 62-bit primes: dense layer 36 to 6, square activation,
    relinearisation with 4-bit digits (CRT and per prime), dense layer 6 to 4"""
    n, inputs, hidden, outputs, digits = 16, 36, 6, 4, 32
    ring = Ring(n, ntt_primes(62, n, 2))
    k, rng = ring.k, t.rng
    with t.segment("upload_inf_context"):
        tables = ring_tensors(t, ring)
        q = tables["q"]
        level_inv = t.upload(np.array([pow(ring.moduli[1 - j], -1, ring.moduli[j]) for j in (0, 1)]))
        q_inv = t.upload(np.array([[0, pow(ring.moduli[1], -1, ring.moduli[0])],
                                   [pow(ring.moduli[0], -1, ring.moduli[1]), 0]]))
    t.nothing()
    with t.segment("upload_ek"):
        relin_key = t.upload(ring.residues(rng, (2, digits, n, k)), fortran=True)
        switch_key = t.upload(ring.residues(rng, (2, digits, k, n), k_axis=2))
    t.nothing()
    with t.segment("upload_pipeline"):
        weights1 = t.upload(ring.residues(rng, (hidden, inputs, 1, n, k)), fortran=True)
        bias1 = t.upload(ring.residues(rng, (hidden, 1, n, k)))
        weights2 = t.upload(ring.residues(rng, (outputs, hidden, n, k)))
        bias2 = t.upload(ring.residues(rng, (outputs, n, k)), fortran=True)
    t.nothing()
    with t.segment("upload_ct_1"):
        ct = t.upload(ring.residues(rng, (1, inputs, 1, n, 2, k)))
    t.nothing()
    with t.segment("compute_block_1"):
        layer1 = dense(t, ct, weights1, q, (hidden, 1, n, k))
        t.free(ct, weights1)
        constant = t.op("get_slice", layer1, index(Ellipsis, 0, slice(0, k, 1)))
        t.op("_modsum_ttt", constant, bias1, q, constant)
        t.free(constant, bias1)
        squared, top = square(t, layer1, q, (hidden, 1, n), k)
        t.free(layer1)
        add_key_switched(t, ring, tables, squared, top, relin_key,
                         lambda a, out: t.op("apply_g_decomp_relative_to_full_q", a, q, q_inv,
                                             digits, 4, 60, level_inv, out))
        t.free(top, relin_key, q_inv, level_inv)
        refresh_second_half(t, ring, tables, squared, switch_key)
        t.free(switch_key)
        flat = t.op("reshape", squared, [1, hidden, n, 2, k])
        t.free(squared)
        result = dense(t, flat, weights2, q, (outputs, n, k))
        t.free(flat, weights2)
        constant = t.op("get_slice", result, index(Ellipsis, 0, slice(None)))
        t.op("_modsum_ttt", constant, bias2, q, constant)
        t.free(constant, bias2)
    t.nothing()
    with t.segment("download_ct_1"):
        t.download(result)


def dense(t, ct, weights, q, shape):
    """Σ over axis 1 of ct [1,m,...,2,k] times weights [o,m,...,k] -> [shape..., 2, k]."""
    halves = []
    for half in (0, 1):
        part = t.op("get_slice", ct, index(Ellipsis, half, slice(None)))
        products = t.empty(t.array(weights).shape)
        t.op("_modmul_ttt", part, weights, q, products)
        t.free(part)
        halves.append(t.op("axis_modsum", products, 1, q, t.empty(shape)))
        t.free(products)
    out = t.empty(shape[:-1] + (2,) + shape[-1:])
    for half in (0, 1):
        target = t.op("get_slice", out, index(Ellipsis, half, slice(0, shape[-1], 1)))
        zero = t.zeros(shape)
        t.op("_modsum_ttt", halves[half], zero, q, target)
        t.free(target, zero, halves[half])
    return out


def square(t, ct, q, shape, k):
    """ct [shape..., 2, k] -> ([shape..., 2, k] holding c0^2 and 2 c0 c1, [shape..., k] c1^2)."""
    c0 = t.op("get_slice", ct, index(Ellipsis, 0, slice(None)))
    c1 = t.op("get_slice", ct, index(Ellipsis, 1, slice(None)))
    out = t.zeros(shape + (2, k))
    low = t.op("get_slice", out, index(Ellipsis, 0, slice(None)))
    middle = t.op("get_slice", out, index(Ellipsis, 1, slice(None)))
    t.op("_modmul_ttt", c0, c0, q, low)
    t.op("_modmul_ttt", c0, c1, q, middle)
    t.op("_modsum_ttt", middle, middle, q, middle)
    top = t.op("_modmul_ttt", c1, c1, q, t.empty(shape + (k,)))
    t.free(low, middle, c0, c1)
    return out, top


def add_key_switched(t, ring, tables, ct, top, key, decompose):
    """ct [h,1,n,2,k] += digits of top [h,1,n,k] times key [2,digits,n,k], transformed."""
    h, n, k, digits = t.array(ct).shape[0], ring.n, ring.k, t.array(key).shape[1]
    flat = t.op("reshape", top, [h, n, 1, k])
    coefficients = t.op("intt", *intt_args(tables, flat, t.empty((h, n, 1, k))))
    t.free(flat)
    squeezed = t.op("squeeze", coefficients, 2)
    moved = t.op("moveaxis", squeezed, 1, -1)
    residues = t.op("contiguous", moved)
    t.free(coefficients, squeezed, moved)
    small = t.empty((h, digits, n), "int8")
    decompose(residues, small)
    t.free(residues)
    tiled = t.op("unsqueeze", small, 2)
    t.free(small)
    spectrum = t.empty((h, digits, k, n))
    t.op("ntt", *ntt_args(tables, tiled, -1, spectrum, True, True))
    t.free(tiled)
    for half in (0, 1):
        part = t.op("get_slice", key, index(half))
        moved = t.op("moveaxis", part, 1, -1)
        total = t.zeros((h, k, n))
        t.op("modmul_axis_sum", spectrum, moved, tables["q"], tables["log2p"], tables["mu"],
             tables["perm"], total, True)
        t.free(part, moved)
        back = t.op("moveaxis", total, -1, 1)
        target = t.op("get_slice", ct, index(slice(None), 0, Ellipsis, half, slice(None)))
        t.op("_modsum_ttt", target, back, tables["q"], target)
        t.free(total, back, target)
    t.free(spectrum)


def refresh_second_half(t, ring, tables, ct, key):
    """Replaces c1 of ct [h,1,n,2,k] by its key-switched value, digits prime by prime."""
    h, n, k, each = t.array(ct).shape[0], ring.n, ring.k, t.array(key).shape[1] // ring.k
    c1 = t.op("get_slice", ct, index(slice(None), 0, Ellipsis, 1, slice(None)))
    shaped = t.op("unsqueeze", c1, 2)
    coefficients = t.op("intt", *intt_args(tables, shaped, t.empty((h, n, 1, k))))
    t.free(shaped)
    total = t.zeros((2, h, k, n))
    for prime in range(k):
        residue = t.op("get_slice", coefficients, index(Ellipsis, 0, prime))
        small = t.empty((h, n, each), "int8")
        t.op("apply_g_decomp", residue, each, 4, small)
        t.free(residue)
        moved = t.op("moveaxis", small, -1, 1)
        tiled = t.op("unsqueeze", moved, -2)
        spectrum = t.empty((h, each, k, n))
        t.op("ntt", *ntt_args(tables, tiled, -1, spectrum, True, False))
        t.free(small, moved, tiled)
        for half in (0, 1):
            part = t.op("get_slice", key, index(half, slice(prime * each, (prime + 1) * each, 1)))
            target = t.op("get_slice", total, index(half))
            t.op("modmul_axis_sum", spectrum, part, tables["q"], tables["log2p"], tables["mu"],
                 None, target, False, -1)
            t.free(part, target)
        t.free(spectrum)
    t.free(coefficients)
    t.op("set_const_val", c1, 0)
    t.free(c1)
    for half in (0, 1):
        part = t.op("get_slice", total, index(half))
        back = t.op("moveaxis", part, 2, 1)
        target = t.op("get_slice", ct, index(Ellipsis, half, slice(None)))
        flat = t.op("squeeze", target, 1)
        t.op("_modsum_ttt", flat, back, tables["q"], flat)
        t.free(part, back, target, flat)
    t.free(total)


def galois_indices(n, element):
    """int64 [n]: x -> x^element as a permutation of the transform's values."""
    return np.array([((2 * i + 1) * element % (2 * n) - 1) // 2 for i in range(n)], dtype=np.int64)


@workload("sentiment")
def sentiment(t):
    """sentiment model's rotations, n = 64, one 61-bit prime, 17 four-bit digits: slice, gather on
    a rank-15 view, digits, ntt and modmul_axis_sum per rotation, then a dot product"""
    n, tokens, digits, steps = 64, 3, 17, (5, 25, 2 * 64 - 1)
    ring, rng = Ring(n, ntt_primes(61, n, 1)), t.rng
    with t.segment("upload_inf_context"):
        tables = ring_tensors(t, ring)
    with t.segment("upload_ek"):
        keys = [t.upload(ring.residues(rng, (2, digits, 1, n), k_axis=2), fortran=i % 2 == 1)
                for i in range(len(steps))]
        rotations = [t.upload(galois_indices(n, step).reshape((1,) * 13 + (n, 1)).astype(dtype))
                     for step, dtype in zip(steps, ("int64", "int32", "int64"))]
    with t.segment("upload_pipeline"):
        weights = t.upload(ring.residues(rng, (tokens, n, 1)))
    with t.segment("upload_ct_1"):
        ct = t.upload(ring.residues(rng, (2, tokens, n, 1)))
    q = tables["q"]
    with t.segment("compute_block_1"):
        total = t.op("_modmul_ttt", ct, weights, q, t.empty((2, tokens, n, 1)))
        for rotation, key in zip(rotations, keys):
            deep = t.op("reshape", total, [1, 2] + [1] * 6 + [tokens] + [1] * 4 + [n, 1])
            turned = t.empty(t.array(deep).shape)
            t.op("take_along_axis", deep, rotation, -2, turned)
            t.free(deep, rotation)
            halves = t.op("reshape", turned, [2, tokens, n, 1])
            t.free(turned)
            c1 = t.op("get_slice", halves, index(1))
            layer = t.op("unsqueeze", c1, 2)
            coefficients = t.op("intt", *intt_args(tables, layer, t.empty((tokens, n, 1, 1))))
            t.free(c1, layer)
            flat = t.op("flatten", coefficients, 1, -1)
            small = t.empty((tokens, n, digits), "int8")
            t.op("apply_g_decomp", flat, digits, 4, small)
            t.free(coefficients, flat)
            moved = t.op("moveaxis", small, 1, 2)
            tiled = t.op("unsqueeze", moved, 2)
            spectrum = t.empty((tokens, digits, 1, n))
            t.op("ntt", *ntt_args(tables, tiled, -1, spectrum, True, True))
            t.free(small, moved, tiled)
            for half in (0, 1):
                part = t.op("get_slice", key, index(half))
                switched = t.zeros((tokens, 1, n))
                t.op("modmul_axis_sum", spectrum, part, q, tables["log2p"], tables["mu"],
                     tables["perm"], switched, True)
                t.free(part)
                back = t.op("moveaxis", switched, 2, 1)
                if half == 0:
                    c0 = t.op("get_slice", halves, index(0))
                    t.op("_modsum_ttt", back, c0, q, back)
                    t.free(c0)
                target = t.op("get_slice", total, index(half))
                t.op("_modsum_ttt", target, back, q, target)
                t.free(switched, back, target)
            t.free(halves, spectrum, key)
        score = t.op("axis_modsum", total, 1, q, t.empty((2, n, 1)))
        t.free(total, ct)
    with t.segment("download_ct_1"):
        t.download(score)


# ----------------------------------------------------------- one per operation family


@workload("memory")
def memory(t):
    """uploads, downloads, zeros, empty, fills, frees as entries and as operations, references,
    work outside segments, empty segments, names live at the end"""
    outside = t.upload(t.rng.extremes((3, 4)))
    t.nothing()
    with t.segment("nothing happens here"):
        pass
    with t.segment("fills"):
        for dtype in ("int8", "int32", "int64"):
            limits = np.iinfo(dtype)
            t.download(t.zeros((2, 3), dtype))
            for value in (int(limits.min), -1, 0, 7, int(limits.max)):
                t.check("set_const_val", t.empty((5,), dtype), value)
        filled = t.check("set_const_val", t.empty((3, 5)), 2**53 + 1)
        column = t.op("get_slice", filled, index(slice(None), slice(1, None, 2)))
        t.op("set_const_val", column, True)
        t.op("set_const_val", column, -(2**53) - 3, out=column)
        t.download(filled)
    t.nothing()
    t.nothing()
    with t.segment("references"):
        parent = t.upload(t.rng.extremes((4, 6)))
        row = t.op("get_slice", parent, index(2))
        left = t.op("get_slice", parent, index(slice(None), slice(0, 3)))
        t.free(parent)
        t.op("set_const_val", row, 11)
        t.download(left)
        again = t.op("new_reference", left)
        t.free(left)
        t.download(again)
        t.op("free_device_tensor", again)
        t.op("_free_device_tensor", row)
        alias = t.new_handle()
        source = t.upload(t.rng.extremes((3,)))
        t.op("abs", source, source, out=alias)
        t.free(source)
        t.download(alias)
        t.op("zeros", [2, 2], "int32", out=alias)
        t.download(alias, none=False)
        t.upload(t.rng.extremes((2, 1, 3), "int8"), out=alias)
        t.download(alias)
        t.op("reshape", alias, [6], out=alias)
        t.download(alias)
    t.download(outside)


@workload("names", string_names=True)
def names(t):
    """names that are strings, with quotes, backslashes and letters beyond ASCII among them,
    bound, bound again, aliased and freed"""
    odd = [Handle(name) for name in ("w/0:weights", "\u03c8 table", 'a "quoted" name', "back\\slash",
                                     "", " ", "tab\tnew\nline", "x" * 300, "{}[],:")]
    with t.segment('segment "\u03b1"\\'):
        for i, handle in enumerate(odd):
            t.upload(t.rng.extremes((2, i + 1)), out=handle)
        for handle in odd:
            t.download(handle)
        t.free(*odd[2:5])
        for i, handle in enumerate(odd[2:5]):
            t.upload(t.rng.extremes((3,), "int32"), out=handle)
        t.op("_modsum_ttc", odd[2], odd[3], 1000003, odd[4])
        t.op("new_reference", odd[4], out=odd[0])
        t.free(odd[4])
        t.download(odd[0])
        shown = t.check("modneg", odd[0], 97, odd[0], out=Handle("result"))
        t.free(shown, odd[0])


@workload("plain", plain=True)
def plain(t):
    """the plain spelling with dtypes in its pointers: every kind of argument"""
    spelled(t)


@workload("plain_names", plain=True, string_names=True, dtypes=False)
def plain_names(t):
    """the plain spelling without dtypes in its pointers, names are strings"""
    spelled(t)


def spelled(t):
    ring = Ring(8, ntt_primes(30, 8, 2))
    first = t.upload(t.rng.extremes((2, 3, 4)))
    with t.segment("upload"):
        tables = ring_tensors(t, ring)
        a = t.upload(ring.residues(t.rng, (1, 8, 3, 2)))
        t.upload(t.rng.integers(-100, 100, (4,)), dtype="int8")
    with t.segment("compute"):
        t.check("get_slice", first, index(Ellipsis, slice(None, None, 2), -1))
        t.check("get_slice", first, index(1, slice(0, 2, 1)))
        spectrum = t.empty((1, 8, 3, 2))
        t.check("ntt", *ntt_args(tables, a, -3, spectrum, False, False))
        t.check("ntt", a, -3, None, None, tables["q"], None, None, tables["psi"], spectrum, 0, 1)
        t.op("intt", *intt_args(tables, spectrum, spectrum))
        t.download(spectrum, none=False)
        t.check("modmul_tcc", first, INT64_MIN, INT64_MAX, first)
        t.check("reshape", first, [-1, 2])
        t.check("set_const_val", t.zeros((), "int32"), -5)
        t.op("free_device_tensor", a)
        t.free(first)
    with t.segment("download"):
        t.download(tables["psi"])


@workload("payloads")
def payloads(t):
    """.npy files of versions 1 to 3, C and Fortran order, little and big endian, all dtypes,
    converting uploads, expected results in another dtype"""
    for shape in ((7,), (3, 4), (2, 3, 5), (), (0, 3)):
        for dtype in ("int8", "int32", "int64"):
            for version in (1, 2, 3):
                values = t.rng.extremes(shape, dtype)
                big = version != 2 and dtype != "int8"
                t.download(t.upload(values, version=version, fortran=version > 1, big_endian=big))
    for source in ("int8", "int32", "int64"):
        for target in ("int8", "int32", "int64"):
            small = t.rng.integers(-128, 127, (4, 3)).astype(source)
            handle = t.upload(small, dtype=target)
            t.download(handle, dtype=source, version=2)
            t.download(handle, dtype="int64", fortran=True, big_endian=True)
    edges = t.upload(np.array([-(2**31), 2**31 - 1]), dtype="int32")
    t.download(edges, dtype="int64")
    t.download(t.upload(t.rng.extremes((3,) * 7)), version=3, fortran=True)


@workload("layout")
def layout(t):
    """views: slices of every kind, reshape that views and that copies, moved, squeezed, expanded
    and flattened axes, contiguous as alias and as copy, writes through views"""
    base = t.upload(t.rng.extremes((4, 5, 6)))
    for picks in ([], [Ellipsis], [0], [-1, -5], [3, 4, 5], [Ellipsis, 2], [1, Ellipsis, -6],
                  [slice(None)], [slice(1, 3, 1)], [slice(-3, -1)], [slice(None, None, 3), slice(4, 1)],
                  [slice(-100, 100), slice(2, 10**18, 2), 0], [Ellipsis, slice(5, None)],
                  [slice(None), Ellipsis, slice(0, 6, 4)], [slice(INT64_MIN, INT64_MAX, INT64_MAX)],
                  [slice(1, 4, 2), Ellipsis], [0, 0, 0, Ellipsis], [slice(4, None)]):
        t.check("get_slice", base, picks)
    for shape in ([20, 6], [-1], [4, 30], [2, -1, 3, 2], [1, 4, 1, 5, 6, 1], [120, 1]):
        t.check("reshape", base, shape)
    moved = t.check("moveaxis", base, 0, -1)
    for shape in ([5, 6, 4], [30, 4], [5, 24], [120], [5, 3, 2, 2, 2]):
        t.check("reshape", moved, shape)
    for first, last in ((0, 1), (1, 2), (0, -1), (-2, -1), (1, 1)):
        t.check("flatten", base, first, last)
        t.check("flatten", moved, first, last)
    for source, target in ((0, 0), (2, 0), (-1, 1), (1, -1), (0, 1)):
        t.check("moveaxis", base, source, target)
    for axis in (0, 2, 3, -1, -4):
        wide = t.op("unsqueeze", base, axis)
        t.check("expand", wide, axis, 3)
        t.check("squeeze", wide, axis)
        t.op("expand", wide, axis, 1)
    t.op("contiguous", base, out=Handle(5))
    t.op("contiguous", moved, out=Handle(6))
    view = t.op("reshape", base, [20, 6], out=Handle(7))
    t.op("set_const_val", t.op("get_slice", view, index(slice(3, 20, 5))), -4)
    for handle in (base, Handle(5), Handle(6), moved):
        t.download(handle)
    copied = t.op("reshape", moved, [120])
    t.op("set_const_val", t.op("get_slice", copied, index(slice(0, 120, 7))), 9)
    t.download(moved)
    t.download(copied)
    one = t.op("get_slice", base, index(2, 3, 4))
    t.op("set_const_val", one, 77)
    t.download(base)
    wide = t.op("expand", t.op("unsqueeze", one, 0), 0, 5)
    t.download(wide)
    solid = t.op("contiguous", wide)
    t.op("set_const_val", t.op("get_slice", solid, index(slice(0, 2))), 1)
    t.download(solid)
    t.download(wide)
    t.check("reshape", t.op("expand", t.op("unsqueeze", wide, 0), 0, 4), [2, 10])
    for view in (["reshape", [3, 8]], ["flatten", 1, 2], ["unsqueeze", 1], ["squeeze", 2],
                 ["moveaxis", 0, 3], ["get_slice", [Ellipsis, slice(0, 4, 3)]], ["new_reference"],
                 ["contiguous"], ["expand", 2, 3]):
        parent = t.upload(t.rng.extremes((3, 2, 1, 4)))
        child = t.op(view[0], parent, *view[1:])
        t.op("set_const_val", t.op("get_slice", parent, index(1)), 17)
        t.download(child)
        picks = index(0, 0, 2) if view[0] == "expand" else index(Ellipsis, 1)
        t.op("set_const_val", t.op("get_slice", child, picks), -18)
        t.download(parent)
    for dtype in ("int8", "int32"):
        small = t.upload(t.rng.extremes((3, 2, 4), dtype))
        turned = t.op("moveaxis", small, 2, 0)
        t.op("set_const_val", t.op("get_slice", turned, index(Ellipsis, slice(None, None, 2))), 5)
        t.check("contiguous", turned)
        t.check("flatten", turned, 0, 2)
        t.download(small)


def modular_family(t, dtype, moduli, scalars):
    """Every elementwise modular operation in every variant, for one dtype."""
    rng, largest = t.rng, int(np.iinfo(dtype).max)
    shape = (3, 5, 2)
    a = t.upload(rng.extremes(shape, dtype))
    b = t.upload(rng.extremes(shape, dtype))
    row = t.upload(rng.extremes((5, 1), dtype))
    per_prime = t.upload(np.array(moduli[:2], dtype=dtype))
    everywhere = t.upload(rng.integers(1, largest, shape).astype(dtype))
    wide = t.upload(np.array([[1], [2], [largest]], dtype=dtype).reshape(3, 1, 1))
    single = t.upload(np.array(moduli[0], dtype=dtype))
    new = lambda *sizes: t.empty(sizes or shape, dtype)
    for prefix, suffix in (("_", True), ("", True), ("", False), ("_", False)):
        for name in ("modmul", "modsum"):
            name = prefix + name
            variant = lambda letters: name + ("_" + letters if suffix else "")
            t.check(variant("ttt"), a, b, per_prime, new())
            t.check(variant("ttc"), a, b, rng.choice(moduli), new())
            t.check(variant("tct"), a, rng.choice(scalars), everywhere, new())
            t.check(variant("tcc"), b, rng.choice(scalars), rng.choice(moduli), new())
    for name in ("_modmul_ttt", "_modsum_ttt"):
        for p in (per_prime, everywhere, wide, single):
            t.check(name, a, row, p, new())
            t.check(name, row, b, p, new())
        t.check(name, row, single, wide, new(3, 5, 1))
        t.check(name, single, single, single, t.empty((), dtype))
    for modulus in moduli:
        for scalar in scalars[:3] + scalars[-2:]:
            t.check("_modmul_tcc", row, scalar, modulus, new(5, 1))
            t.check("_modsum_tcc", row, scalar, modulus, new(5, 1))
        t.check("_mod_tc", a, modulus, new())
        t.check("_modneg_tc", b, modulus, new())
        t.check("mod", row, modulus, new(5, 1))
    for p in (per_prime, everywhere, wide):
        t.check("_mod_tt", a, p, new())
        t.check("mod_tt", row, p, new(*np.broadcast(t.array(row), t.array(p)).shape))
        t.check("_modneg_tt", b, p, new())
        t.check("modneg", row, p, new(*np.broadcast(t.array(row), t.array(p)).shape))
    for scalar in scalars:
        t.check("_mod_ct", scalar, wide, new(3, 1, 1))
        t.check("mod", scalar, per_prime, new(2))
    t.check("modneg", a, moduli[-1], new())
    t.check("mod", a, everywhere, new())
    t.check("abs", a, new())
    t.check("_abs", row, new(5, 1))
    in_place = t.upload(rng.extremes(shape, dtype))
    t.check("_modmul_ttt", in_place, in_place, per_prime, in_place)
    t.check("_modsum_ttt", b, in_place, per_prime, in_place)
    t.check("_mod_tt", in_place, everywhere, everywhere)


@workload("modular")
def modular(t):
    """modmul, modsum, mod, modneg and abs on int64: all variants and spellings, negative and
    unreduced values, moduli from 1 to 2^63-1, broadcast p, in place"""
    moduli = ntt_primes(62, 16, 1) + ntt_primes(63, 8, 1) + [1, 2, 3, 2**32, 2**62, 2**62 + 1,
                                                            INT64_MAX - 1, INT64_MAX]
    scalars = [INT64_MIN, -1, 0, 1, INT64_MAX, 2**53 + 1, -(2**40) - 7, 2**62 - 57]
    modular_family(t, "int64", moduli, scalars)


@workload("modular_int32")
def modular_int32(t):
    """the same on int32, with 64-bit scalars"""
    moduli = ntt_primes(31, 16, 2) + [1, 2, 65536, INT32_MAX - 1, INT32_MAX, 2**31]
    scalars = [INT64_MIN, -1, 0, 1, INT64_MAX, -(2**31), INT32_MAX, 12345678901]
    tensors = moduli[:-1]
    modular_family(t, "int32", tensors, scalars)
    a = t.upload(t.rng.extremes((7,), "int32"))
    for scalar in scalars:  # 2^31 as a modulus fits only a scalar
        t.check("_modmul_tcc", a, scalar, moduli[-1], t.empty((7,), "int32"))


@workload("sums")
def sums(t):
    """axis_modsum over every axis but the last, long sums of extreme values, modmul_axis_sum in
    all argument forms and both layouts, accumulating into values that are not reduced"""
    rng = t.rng
    for dtype, moduli in (("int64", ntt_primes(62, 16, 1) + [INT64_MAX]),
                          ("int32", ntt_primes(31, 16, 1) + [INT32_MAX])):
        limits = np.iinfo(dtype)
        q = t.upload(np.array(moduli, dtype=dtype))
        hints = t.upload(np.array([62, 63], dtype=dtype))
        a = t.upload(rng.extremes((4, 3, 5, 2), dtype))
        for axis in (0, 1, 2, -2, -4):
            shape = list(t.array(a).shape)
            del shape[axis]
            t.check("axis_modsum", a, axis, q, t.empty(shape, dtype))
        for value in (int(limits.min), int(limits.max)):
            steep = t.op("set_const_val", t.empty((1, 2), dtype), value)
            steep = t.op("expand", steep, 0, 1000)
            t.check("axis_modsum", steep, 0, q, t.empty((2,), dtype))
        t.check("axis_modsum", t.upload(rng.extremes((300, 2), dtype)), -2, q, t.empty((2,), dtype))
        t.check("axis_modsum", t.zeros((2, 0, 2), dtype), 1, q, t.empty((2, 2), dtype))
        reps, s, k, n = 3, 5, 2, 8
        for axis in (-1, -3):
            last = axis == -1
            a = t.upload(rng.extremes((reps, s, k, n) if last else (reps, n, s, k), dtype))
            b = t.upload(rng.extremes((s, k, n) if last else (n, s, k), dtype))
            out = t.upload(rng.extremes((reps, k, n) if last else (reps, n, k), dtype))
            t.check("modmul_axis_sum", a, b, q, out, axis)
            t.op("set_const_val", out, -17)
            for perm in (None, rng.permutation(n), rng.permutation(n).astype(np.int32)):
                handle = None if perm is None else t.upload(perm)
                apply_perm = perm is not None
                t.check("modmul_axis_sum", a, b, q, hints, hints, handle, out, apply_perm, axis)
                t.op("modmul_axis_sum", a, b, q, None, None, handle, out, 0, axis)
                if last:
                    t.check("_modmul_axis_sum", a, b, q, hints, None, handle, out, int(apply_perm))
            t.download(out)
            spread = t.upload(rng.extremes((k, reps, n) if last else (k, n, reps), dtype))
            target = t.op("moveaxis", spread, 0, 1) if last else t.op("moveaxis", spread, 0, 2)
            if not last:
                target = t.op("moveaxis", target, 0, 1)
            t.op("modmul_axis_sum", a, b, q, target, axis)
            t.download(spread)
            t.check("modmul_axis_sum", t.op("expand", t.op("get_slice", a, index(slice(0, 1))), 0, 3),
                    b, q, out, axis)


@workload("ntt")
def ntt(t):
    """forward transforms, n from 2 to 1024: all argument forms, both layouts, tiled, int8 and int32
    inputs, moduli of 20 to 63 bits, unreduced inputs, any permutation, composite moduli"""
    rng = t.rng
    for n, bits, k in ((2, 62, 2), (4, 63, 1), (8, 20, 3), (16, 62, 2), (32, 61, 1), (64, 63, 2),
                       (128, 50, 1), (256, 62, 1), (1024, 63, 1)):
        ring = Ring(n, ntt_primes(bits, n, k))
        tables = ring_tensors(t, ring)
        l, r = (2, 3) if n <= 32 else (1, 2) if n <= 64 else (1, 1)
        a = t.upload(ring.residues(rng, (l, n, r, k)))
        out = t.empty((l, n, r, k))
        t.check("ntt", *ntt_args(tables, a, -3, out, False, True))
        if n > 64:
            continue
        t.check("ntt", *ntt_args(tables, a, 1, out, False, False))
        skipping = dict(tables, perm=None, pairs=None, log2p=None, mu=None)
        last = t.upload(rng.extremes((l, r, k, n)))
        spectrum = t.empty((l, r, k, n))
        t.check("ntt", *ntt_args(skipping, last, -1, spectrum, False, True))
        t.check("ntt", *ntt_args(tables, last, 3, last, 0, 0))
        digits = t.upload(rng.extremes((l, r, 1, n), "int8"))
        t.check("ntt", *ntt_args(tables, digits, -1, spectrum, True, False))
        wide = t.upload(rng.extremes((l, n, r, 1)))
        p = tables
        t.check("ntt", wide, p["perm"], p["pairs"], p["q"], p["log2p"], p["mu"], p["psi"], out,
                True, False)
        t.check("ntt", wide, p["perm"], None, p["q"], p["psi"], out, 1, 0)
        shuffled = dict(tables, perm=t.upload(rng.permutation(n).astype(np.int32)))
        t.check("ntt", *ntt_args(shuffled, a, -3, a, False, False))
    any_modulus(t, "ntt")
    ring = Ring(16, ntt_primes(31, 16, 2))
    tables = ring_tensors(t, ring, "int32")
    for a in (rng.extremes((2, 16, 1, 1), "int32"), rng.extremes((2, 16, 1, 1), "int8")):
        t.check("ntt", *ntt_args(tables, t.upload(a), -3, t.empty((2, 16, 1, 2), "int32"), 1, 0))
    t.check("ntt", *ntt_args(tables, t.upload(rng.extremes((1, 3, 2, 16), "int32")), -1,
                             t.empty((1, 3, 2, 16), "int32"), 0, 1))
    strided_transforms(t, "ntt")


def any_modulus(t, name):
    """Moduli that are no primes and tables that hold no roots: the formulas define the result."""
    rng, n = t.rng, 8
    moduli = np.array([1, 2, 6, 2**62, 2**62 + 4, INT64_MAX])
    k = len(moduli)
    tables = {"q": t.upload(moduli), "psi": t.upload(rng.extremes((k, n))),
              "ipsi": t.upload(rng.extremes((k, n))), "n_inv": t.upload(rng.extremes((k,))),
              "perm": t.upload(rng.permutation(n)), "pairs": None, "log2p": None, "mu": None}
    a = t.upload(rng.extremes((2, n, 2, k)))
    out = t.empty((2, n, 2, k))
    if name == "ntt":
        t.check("ntt", *ntt_args(tables, a, -3, out, False, False))
    else:
        t.check("intt", *intt_args(tables, a, out))


def strided_transforms(t, name):
    """Inputs, tables and outputs that are slices, moved or expanded views."""
    rng, n = t.rng, 16
    ring = Ring(n, ntt_primes(62, n, 2))
    tables = ring_tensors(t, ring)
    padded = t.upload(rng.extremes((4, 2 * n)))
    tables["psi"] = t.op("get_slice", padded, index(slice(1, 3), slice(0, None, 2)))
    tables["ipsi"] = t.op("get_slice", padded, index(slice(0, None, 2), slice(1, None, 2)))
    spaced = t.upload(np.repeat(ring.q, 2))
    tables["q"] = t.op("get_slice", spaced, index(slice(0, None, 2)))
    base = t.upload(rng.extremes((2, n + 1, 3, 2)))
    a = t.op("get_slice", base, index(slice(None), slice(1, None)))
    out = t.op("get_slice", base, index(slice(None), slice(0, n)))
    call = ((lambda x, y: ntt_args(tables, x, -3, y, False, False)) if name == "ntt"
            else (lambda x, y: intt_args(tables, x, y)))
    t.op(name, *call(a, out))
    t.download(base)
    crossed = t.op("moveaxis", t.upload(rng.extremes((n, 2, 2, 3))), 0, 2)
    crossed = t.op("moveaxis", t.op("moveaxis", crossed, 2, 0), 0, 1)
    crossed = t.op("moveaxis", crossed, 3, 2)
    t.check(name, *call(crossed, t.empty((2, n, 3, 2))))
    single = t.op("expand", t.op("get_slice", base, index(slice(0, 1), slice(0, n))), 0, 2)
    t.op(name, *call(single, out))
    t.download(base)


@workload("intt")
def intt(t):
    """inverse transforms, n from 2 to 1024: both argument forms, layouts by axis, tiled, int8 and
    int32 inputs, any permutation, round trips with ntt, composite moduli"""
    rng = t.rng
    for n, bits, k in ((2, 63, 1), (4, 62, 2), (16, 63, 2), (32, 62, 3), (64, 40, 1), (256, 61, 1),
                       (1024, 62, 1)):
        ring = Ring(n, ntt_primes(bits, n, k))
        tables = ring_tensors(t, ring)
        l, r = (2, 2) if n <= 32 else (1, 1)
        a = t.upload(ring.residues(rng, (l, n, r, k)))
        out = t.empty((l, n, r, k))
        t.check("intt", *intt_args(tables, a, out))
        t.op("ntt", *ntt_args(tables, out, -3, out, False, False))
        t.download(out)  # a again
        if n > 64:
            continue
        last = t.upload(rng.extremes((l, r, k, n)))
        args = intt_args(tables, last, last)
        t.check("intt", *(args[:1] + [-1] + args[1:]))
        args = intt_args(tables, t.upload(rng.extremes((l, n, r, 1))), out, True)
        t.check("intt", *(args[:1] + [-3] + args[1:]))
        shuffled = dict(tables, perm=t.upload(rng.permutation(n)), pairs=None, log2p=None, mu=None)
        t.check("_intt", *intt_args(shuffled, t.upload(rng.extremes((l, n, r, 1), "int8")), out, 1))
        t.check("intt", *intt_args(shuffled, a, a))
    any_modulus(t, "intt")
    ring = Ring(16, ntt_primes(31, 16, 2))
    tables = ring_tensors(t, ring, "int32")
    t.check("intt", *intt_args(tables, t.upload(rng.extremes((2, 16, 1, 2), "int32")),
                               t.empty((2, 16, 1, 2), "int32")))
    strided_transforms(t, "intt")


@workload("digits")
def digits(t):
    """gadget digits of int64 and int32 values, negative ones included, to int8, int32 and int64:
    1 to 64 bits each, too many and too few of them, strided inputs and outputs"""
    rng = t.rng
    for source in ("int64", "int32"):
        a = t.upload(rng.extremes((3, 4), source))
        scalar = t.upload(rng.extremes((), source))
        for target in ("int8", "int32", "int64"):
            for base_bits in (1, 2, 3, 4, 7, 8, 13, 16, 31, 32, 33, 63, 64):
                count = -(-8 * np.dtype(source).itemsize // base_bits) + base_bits % 2
                t.check("apply_g_decomp", a, count, base_bits, t.empty((3, 4, count), target))
            t.check("g_decomposition", a, 3, 4, t.empty((3, 4, 3), target))
            t.check("_apply_g_decomp", scalar, 17, 4, t.empty((17,), target))
        moved = t.op("moveaxis", t.op("expand", t.op("unsqueeze", a, 0), 0, 2), 0, 1)
        wide = t.upload(rng.extremes((16, 3, 2, 2, 4), "int8"))
        half = t.op("get_slice", wide, index(slice(None), slice(None), 1))
        target = t.op("moveaxis", half, 0, -1)
        t.op("apply_g_decomp", moved, 16, 4, target)
        t.download(wide)
    both = t.upload(rng.extremes((6, 4)))
    t.op("apply_g_decomp", t.op("get_slice", both, index(2)), 5, 13,
         t.op("moveaxis", t.op("get_slice", both, index(slice(0, 5))), 0, 1))
    t.download(both)


@workload("digits_full_q")
def digits_full_q(t):
    """digits of the CRT value for 1, 2, 3, 8 and 24 moduli: primes and coprime composites up to
    2^63-1, unreduced residues, hints that are wrong, both argument forms"""
    rng = t.rng
    some = ntt_primes(62, 64, 24)
    for moduli, base_bits in (([some[0]], 4), ([1], 4), ([INT64_MAX], 16), (some[:2], 4),
                              ([2**62, INT64_MAX], 7), ([2, 3], 1), (some[:3], 6),
                              (ntt_primes(63, 16, 3), 64), ([1, 2**31, 3**39, 5**27], 8),
                              (some[:8], 4), (some[:8], 31), (some, 16), (some, 60)):
        k = len(moduli)
        bits = int(np.prod(np.array(moduli, dtype=object))).bit_length()
        count = -(-bits // base_bits)
        q = t.upload(np.array(moduli))
        a = t.upload(rng.extremes((2, k, 3)))
        pairs, single = t.upload(rng.extremes((k, k))), t.upload(rng.extremes((k,)))
        for target in ("int8", "int32", "int64") if k <= 3 else ("int8",):
            t.check("apply_g_decomp_relative_to_full_q", a, q, count, base_bits,
                    t.empty((2, count, 3), target))
        t.check("apply_g_decomp_relative_to_full_q", a, q, pairs, max(count - 1, 1), base_bits, 60,
                single, t.empty((2, max(count - 1, 1), 3)))
        t.check("_apply_g_decomp_relative_to_full_q", a, q, pairs, count + 2, base_bits, 60, single,
                t.empty((2, count + 2, 3), "int32"))
    q = t.upload(np.array(ntt_primes(31, 16, 3), dtype=np.int32))
    a = t.op("moveaxis", t.upload(rng.extremes((3, 2, 5), "int32")), 0, 1)
    wide = t.zeros((12, 2, 9), "int8")
    target = t.op("moveaxis", t.op("get_slice", wide, index(Ellipsis, slice(0, None, 2))), 0, 1)
    t.op("apply_g_decomp_relative_to_full_q", a, q, 12, 8, target)
    t.download(wide)


@workload("gather")
def gather(t):
    """take_along_axis with broadcast sides, int32 and int64 indices, negative ones included, and
    permute with rows that are no permutations"""
    rng = t.rng
    for dtype in ("int64", "int32"):
        a = t.upload(rng.extremes((3, 7, 4), dtype))
        for index_dtype in ("int64", "int32"):
            for axis in (0, 1, 2, -1, -2, -3):
                size = t.array(a).shape[axis]
                shape = [3, 7, 4]
                shape[axis] = 5
                idx = t.upload(rng.integers(-size, size - 1, shape).astype(index_dtype))
                t.check("take_along_axis", a, idx, axis, t.empty(shape, dtype))
                thin = [1, 1, 1]
                thin[axis] = 6
                shape[axis] = 6
                idx = t.upload(rng.integers(-size, size - 1, thin).astype(index_dtype))
                t.check("take_along_axis", a, idx, axis, t.empty(shape, dtype))
            lone = t.upload(rng.extremes((1, 7, 1), dtype))
            idx = t.upload(rng.integers(-7, 6, (5, 2, 3)).astype(index_dtype))
            t.check("take_along_axis", lone, idx, 1, t.empty((5, 2, 3), dtype))
            for along, axis in ((0, 1), (1, 0), (2, 0), (0, 2), (-1, -2), (1, -1)):
                sizes = t.array(a).shape
                rows = rng.integers(0, sizes[axis] - 1, (sizes[along], sizes[axis]))
                t.check("permute", a, t.upload(rows.astype(index_dtype)), t.empty(sizes, dtype),
                        along, axis)
        square = t.upload(rng.extremes((5, 5), dtype))
        rows = t.upload(np.stack([rng.permutation(5) for _ in range(5)]))
        turned = t.op("moveaxis", rows, 0, 1)
        t.check("permute", square, turned, square, 0, 1)
        t.check("permute", t.op("moveaxis", square, 0, 1), rows, square, 1, 0)
        t.check("take_along_axis", square, rows, 0, square)
        spread = t.op("expand", t.op("get_slice", rows, index(slice(0, 1))), 0, 5)
        t.check("take_along_axis", square, spread, 1, t.op("moveaxis", square, 0, 1))
        t.download(square)
    own = t.upload(rng.integers(-6, 5, (6,)))
    t.check("take_along_axis", own, own, 0, own)


@workload("pad_repeat")
def pad_repeat(t):
    """pad_single_axis and repeat_interleave over every axis, by none, one and several, into
    contiguous and strided outputs, overlapping their input"""
    rng = t.rng
    for dtype in ("int64", "int32"):
        a = t.upload(rng.extremes((3, 2, 4), dtype))
        for axis in (0, 1, 2, -1, -2, -3):
            for amount in (0, 1, 3):
                shape = list(t.array(a).shape)
                shape[axis] += amount
                t.check("pad_single_axis", a, amount, axis, t.empty(shape, dtype))
                shape[axis] = t.array(a).shape[axis] * (amount + 1)
                t.check("repeat_interleave", a, amount + 1, axis, t.empty(shape, dtype))
        turned = t.op("moveaxis", a, 0, -1)
        wide = t.upload(rng.extremes((3, 8, 9), dtype))
        target = t.op("moveaxis", t.op("get_slice", wide, index(Ellipsis, slice(1, None, 2))), 1, 0)
        t.op("repeat_interleave", t.op("get_slice", turned, index(slice(0, 2), slice(0, 1))), 4, 0,
             t.op("get_slice", target, index(slice(None), slice(0, 1), slice(0, 3))))
        t.download(wide)
        line = t.upload(rng.extremes((12,), dtype))
        t.op("repeat_interleave", t.op("get_slice", line, index(slice(0, 4))), 3, 0, line)
        t.download(line)
        t.op("pad_single_axis", t.op("get_slice", line, index(slice(3, 10))), 4, 0,
             t.op("get_slice", line, index(slice(1, None))))
        t.download(line)


@workload("aliasing")
def aliasing(t):
    """outputs that are inputs, other views of them, or overlap them partly: forward, backward,
    interleaved, transposed, with stride 0 inputs, for most operations"""
    rng = t.rng
    for dtype, p in (("int64", 2**61 - 1), ("int32", 2**31 - 1)):
        for step in (1, 2):
            for a, b, out in ((0, 1, 2), (2, 1, 0), (1, 0, 1), (0, 2, 1), (3, 3, 2), (2, 2, 3)):
                line = t.upload(rng.extremes((24,), dtype))
                a, b, out = (t.op("get_slice", line, index(slice(start, start + 9 * step, step)))
                             for start in (a, b, out))
                t.op("_modmul_ttc", a, b, p, out)
                t.download(line)
        square = t.upload(rng.extremes((6, 6), dtype))
        turned = t.op("moveaxis", square, 0, 1)
        t.check("_modsum_ttc", square, turned, p, square)
        t.check("_modmul_ttc", square, square, p, turned)
        t.check("abs", turned, square)
        t.check("_modneg_tc", square, p, turned)
        row = t.op("expand", t.op("get_slice", square, index(slice(3, 4))), 0, 6)
        t.check("_modsum_ttc", square, row, p, square)
        column = t.op("get_slice", square, index(slice(None), slice(2, 3)))
        t.check("_modmul_ttc", column, row, p, turned)
        moduli = t.upload(rng.integers(1, p, (6, 6)).astype(dtype))
        t.check("_modmul_ttt", square, turned, moduli, moduli)
        t.check("_mod_ct", INT64_MIN, t.op("set_const_val", moduli, 1000), moduli)
        top = t.op("get_slice", square, index(slice(0, 5)))
        bottom = t.op("get_slice", square, index(slice(1, 6)))
        t.op("_mod_tc", top, 977, bottom)
        t.download(square)
        q = t.upload(np.array([p, p - 18], dtype=dtype))
        block = t.upload(rng.extremes((4, 4, 2), dtype))
        t.op("axis_modsum", block, 0, q, t.op("get_slice", block, index(2)))
        t.download(block)
        t.op("axis_modsum", block, 1, q, t.op("get_slice", block, index(slice(None), 1)))
        t.download(block)
        pool = t.upload(rng.extremes((2, 5, 2, 4), dtype))
        key = t.op("get_slice", pool, index(1))
        out = t.op("get_slice", pool, index(slice(None), 2))
        t.op("modmul_axis_sum", pool, key, q, out, -1)
        t.download(pool)
        t.op("modmul_axis_sum", pool, key, q, None, None, t.upload(rng.permutation(4)), out, 1)
        t.download(pool)
        psi = t.upload(rng.extremes((2, 4), dtype))
        spectrum = t.op("get_slice", pool, index(slice(None), slice(1, 5)))
        t.op("ntt", t.op("get_slice", pool, index(slice(None), slice(0, 4))), -1, None, None, q,
             None, None, psi, spectrum, False, True)
        t.download(pool)
        t.op("ntt", t.op("get_slice", pool, index(slice(None), slice(0, 4), slice(0, 1))), -1, None,
             None, q, None, None, t.op("get_slice", pool, index(0, 0)), spectrum, True, True)
        t.download(pool)
        idx = t.upload(np.array([[3, 0, 1, 2, -1, 2]]))
        t.op("take_along_axis", square, idx, 1, square)
        t.download(square)
        padded = t.op("get_slice", square, index(slice(0, 6), slice(0, 4)))
        t.op("pad_single_axis", t.op("get_slice", square, index(slice(0, 6), slice(2, 5))), 1, 1,
             padded)
        t.download(square)
    own = t.upload(rng.integers(0, 3, (4, 4)))
    t.check("permute", own, own, own, 0, 1)


@workload("high_rank")
def high_rank(t):
    """views of rank 15 and 16: slices, moved and expanded axes, broadcasting, sums, gathers,
    digits and reshapes that copy"""
    rng = t.rng
    shape = (2, 1, 2, 1, 1, 3, 1, 2, 1, 1, 1, 2, 1, 1, 3)
    base = t.upload(rng.extremes(shape))
    q = t.upload(np.array(ntt_primes(62, 4, 3)))
    t.download(base)
    turned = t.op("moveaxis", t.op("moveaxis", base, 0, -2), 5, 1)
    t.download(turned)
    t.check("contiguous", turned)
    t.check("reshape", turned, [-1, 3])
    t.check("flatten", turned, 3, 14)
    sliced = t.op("get_slice", turned, index(Ellipsis, 0, slice(0, 3, 2)))
    t.download(sliced)
    wide = t.op("expand", t.op("unsqueeze", base, 5), 5, 2)  # rank 16
    t.download(wide)
    out = t.empty(t.array(wide).shape)
    t.check("_modmul_ttt", wide, t.op("unsqueeze", base, 5), q, out)
    t.check("_modsum_ttc", out, t.upload(rng.extremes((3, 1, 2, 1, 1, 1, 2, 1, 1, 1))), INT64_MAX, out)
    t.check("axis_modsum", out, 6, q, t.empty((2, 1, 2, 1, 1, 2, 1, 2, 1, 1, 1, 2, 1, 1, 3)))
    idx = t.upload(rng.integers(-2, 1, (1,) * 12 + (4, 1, 1, 3)))
    target = t.empty(t.array(wide).shape[:12] + (4, 1, 1, 3))
    t.check("take_along_axis", wide, idx, 12, target)
    small = t.empty(shape + (16,), "int8")
    t.check("apply_g_decomp", base, 16, 4, small)
    t.check("permute", base, t.upload(rng.integers(0, 2, (3, 3))), t.empty(shape), 5, -1)
    t.check("repeat_interleave", base, 2, 7, t.empty(shape[:7] + (4,) + shape[8:]))
    t.check("pad_single_axis", turned, 1, 3, t.empty(
        t.array(turned).shape[:3] + (t.array(turned).shape[3] + 1,) + t.array(turned).shape[4:]))
    t.op("set_const_val", sliced, 4)
    t.download(base)
    t.check("squeeze", t.op("squeeze", base, 1), -2)


@workload("empty_shapes")
def empty_shapes(t):
    """tensors without elements and tensors of rank 0 through every operation that takes them"""
    rng = t.rng
    one = t.upload(rng.extremes(()))
    t.download(one)
    t.check("set_const_val", t.empty((), "int8"), -128)
    t.check("_modmul_ttc", one, one, 1000003, t.empty(()))
    t.check("_modsum_tct", one, 5, t.upload(np.array([7, 9])), t.empty((2,)))
    t.check("_mod_ct", INT64_MIN, t.upload(np.array(10)), t.empty(()))
    t.check("_modneg_tc", one, INT64_MAX, one)
    t.check("abs", t.upload(np.array(INT64_MIN)), t.empty(()))
    for shape in ([1], [1, 1], []):
        t.check("reshape", one, shape)
    t.check("expand", t.check("unsqueeze", one, 0), -1, 4)
    t.check("unsqueeze", one, -1)
    t.check("contiguous", one)
    t.check("get_slice", one, [])
    t.check("get_slice", one, [Ellipsis])
    t.check("new_reference", one)
    for dtype in ("int64", "int32"):
        nothing = t.upload(np.zeros((2, 0, 3), dtype=dtype))
        q = t.upload(np.array([5, 7, 9], dtype=dtype))
        t.download(nothing)
        t.check("get_slice", nothing, [1, slice(None), slice(0, 2)])
        t.check("reshape", nothing, [0, 5])
        t.check("flatten", nothing, 0, -1)
        t.check("moveaxis", nothing, 1, 0)
        t.check("contiguous", t.op("moveaxis", nothing, 2, 0))
        t.check("set_const_val", nothing, 1)
        t.check("_modmul_ttt", nothing, nothing, q, t.empty((2, 0, 3), dtype))
        t.check("_modsum_ttt", nothing, q, q, nothing)
        t.check("_mod_tc", nothing, 3, nothing)
        t.check("abs", nothing, nothing)
        t.check("axis_modsum", nothing, 0, q, t.empty((0, 3), dtype))
        t.check("axis_modsum", nothing, 1, q, t.empty((2, 3), dtype))
        t.check("apply_g_decomp", nothing, 4, 4, t.empty((2, 0, 3, 4), "int8"))
        t.check("pad_single_axis", nothing, 2, 1, t.empty((2, 2, 3), dtype))
        t.check("repeat_interleave", nothing, 2, 0, t.empty((4, 0, 3), dtype))
        idx = t.zeros((2, 4, 0))
        t.check("take_along_axis", t.zeros((2, 4, 3), dtype), idx, 2, t.empty((2, 4, 0), dtype))
    empty = t.check("get_slice", t.upload(rng.extremes((4,), "int8")), [slice(3, 1)])
    t.check("expand", t.op("unsqueeze", empty, 0), 0, 3)
    out = t.upload(rng.extremes((2, 2, 4)))
    q = t.upload(np.array([5, 7]))
    t.check("modmul_axis_sum", t.zeros((2, 0, 2, 4)), t.zeros((0, 2, 4)), q, out, -1)


@workload("sequences", plain=True, dtypes=False)
def sequences_of_calls(t):
    """769 segments that passes turn into fewer steps: chains of all pairs of elementwise operations,
    sums of products, base conversions, slices, zeros, stores, copies, transforms; in four layouts,
    on tensors of 24 to 400,000 elements"""
    sequences.make(t)


@workload("segments")
def segments(t):
    """many short segments, the same name twice, work before, between and after them, frees and
    bindings that cross their borders"""
    tensors = [t.upload(t.rng.extremes((3, 2)))]
    for step in range(12):
        with t.segment("step %d" % (step % 5) if step != 7 else ""):
            tensors.append(t.op("_modsum_tcc", tensors[-1], step, 2**40 + step, t.empty((3, 2))))
            if step % 3 == 1:
                t.free(tensors.pop(0))
        if step % 4 == 0:
            t.download(tensors[-1])
        if step % 2:
            t.nothing()
    for tensor in tensors:
        t.download(tensor)


@workload("nothing")
def nothing(t):
    """no entries at all"""



def random_workload(seed):
    def function(t):
        RandomProgram(t).run(40)

    function.__doc__ = "a random program of 40 steps: random operations, layouts and overlaps"
    workload("random_%d" % seed)(function)


for _seed in (1, 2):
    random_workload(_seed)
