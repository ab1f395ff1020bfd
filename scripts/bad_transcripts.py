# SPDX-License-Identifier: Apache-2.0
"""Small transcripts with exactly one defect each: refused (3), or a result differs (1).

expected.txt has one line per file: NAME EXIT ENTRY OP. ENTRY counts from 0 in the
transcript list; it and OP are "-" where the defect belongs to no entry or operation."""

import base64

import numpy as np

import heal_oracle
from transcript_builder import (INT64_MIN, Handle, Ring, Transcript, npy_bytes, ntt_primes,
                                tag)

CASES = {}  # name -> (exit status, function of a Transcript, options of Transcript)


def case(name, exit_status=3, **options):
    """Registers a function that writes a transcript into t and returns (entry, op), or
    (text, entry, op) where the text is not what t holds."""

    def register(function):
        assert name not in CASES
        CASES[name] = exit_status, function, options
        return function

    return register


def refused(name, build):
    """Registers an operation that is refused: build(t) -> [operation name, argument...]."""

    @case(name)
    def write(t):
        t.segment_start("work")
        op, *args = build(t)
        handles = [arg for arg in args if isinstance(arg, Handle)]
        entry = t.raw(op, *args, out=handles[-1] if handles else t.new_handle())
        t.segment_end()
        return entry, op


def replaced(text, old, new):
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)


# Tensors to go wrong with


def a(t, *shape, dtype="int64"):
    return t.upload(t.rng.extremes(shape or (4, 2), dtype))


def out(t, *shape, dtype="int64"):
    return t.zeros(shape or (4, 2), dtype)


def ints(t, *values, dtype="int64"):
    return t.upload(np.array(values, dtype=dtype))


def q(t):
    return ints(t, 97, 193)


# ------------------------------------------------- arguments: number, kind, dtype

refused("args_missing", lambda t: ["_modmul_ttt", a(t), a(t), q(t)])
refused("args_too_many", lambda t: ["abs", a(t), out(t), out(t)])
refused("args_none", lambda t: ["zeros"])
refused("args_count_ntt", lambda t: ["ntt", a(t, 1, 4, 1, 2), None, None, q(t), a(t, 2, 4),
                                     out(t, 1, 4, 1, 2), False])
refused("args_count_axis_sum", lambda t: ["modmul_axis_sum", a(t, 1, 3, 2, 4), a(t, 3, 2, 4), q(t),
                                          None, None, None, out(t, 1, 2, 4)])
refused("kind_int_for_tensor", lambda t: ["abs", 5, out(t)])
refused("kind_none_for_tensor", lambda t: ["_modsum_ttt", a(t), None, q(t), out(t)])
refused("kind_tensor_for_int", lambda t: ["_modmul_ttc", a(t), a(t), q(t), out(t)])
refused("kind_shape_for_axis", lambda t: ["squeeze", a(t, 1, 4), [0]])
refused("kind_dtype_for_shape", lambda t: ["empty", "int64", "int64"])
refused("kind_two_scalars", lambda t: ["mod", 7, 5, out(t)])
refused("op_unknown", lambda t: ["modpow", a(t), a(t), q(t), out(t)])
refused("op_unknown_variant", lambda t: ["_modmul_ctt", 3, a(t), q(t), out(t)])
refused("op_vendor", lambda t: ["key_switch", a(t), a(t), out(t)])
refused("op_two_underscores", lambda t: ["__abs", a(t), out(t)])
refused("dtype_mixture", lambda t: ["_modmul_ttt", a(t), a(t, dtype="int32"), q(t), out(t)])
refused("dtype_mixed_modulus", lambda t: ["_modmul_ttt", a(t), a(t), ints(t, 5, 7, dtype="int32"),
                                          out(t)])
refused("dtype_int8_arithmetic", lambda t: ["_modsum_ttc", a(t, dtype="int8"), a(t, dtype="int8"), 97,
                                            out(t, dtype="int8")])
refused("dtype_int8_abs", lambda t: ["abs", a(t, dtype="int8"), out(t, dtype="int8")])
refused("dtype_int8_gather", lambda t: ["take_along_axis", a(t, dtype="int8"), ints(t, [0, 1]), 0,
                                        out(t, 1, 2, dtype="int8")])
refused("dtype_int8_pad", lambda t: ["pad_single_axis", a(t, dtype="int8"), 1, 0,
                                     out(t, 5, 2, dtype="int8")])
refused("dtype_int8_index", lambda t: ["take_along_axis", a(t), ints(t, [0, 1], dtype="int8"), 0,
                                       out(t, 1, 2)])
refused("dtype_int8_digits_input", lambda t: ["apply_g_decomp", a(t, dtype="int8"), 2, 4,
                                              out(t, 4, 2, 2)])
refused("dtype_int8_ntt_output", lambda t: ["ntt", a(t, 1, 4, 1, 2, dtype="int8"), -3, None, None,
                                            q(t), None, None, a(t, 2, 4),
                                            out(t, 1, 4, 1, 2, dtype="int8"), False, True])
refused("dtype_ntt_widens", lambda t: ["ntt", a(t, 1, 4, 1, 2, dtype="int32"), -3, None, None, q(t),
                                       None, None, a(t, 2, 4), out(t, 1, 4, 1, 2), False, True])
refused("dtype_unknown", lambda t: ["empty", [2, 2], "float64"])
refused("dtype_with_prefix", lambda t: ["zeros", [2, 2], "torch.int64"])


@case("dtype_pointer_disagrees")
def _(t):
    x, y = a(t), out(t)
    return t.raw("abs", t.pointer(x, "int32"), y, out=y), "abs"


@case("dtype_pointer_unknown")
def _(t):
    x, y = a(t), out(t)
    return t.raw("abs", t.pointer(x, "uint64"), y, out=y), "abs"


@case("dtype_out_disagrees")
def _(t):
    return t.raw("zeros", [2, 3], "int64", out=t.pointer(t.new_handle(), "int32")), "zeros"


# ------------------------------------------------------- memory, shapes and views

refused("shape_negative", lambda t: ["zeros", [3, -1], "int64"])
refused("shape_product_overflows", lambda t: ["empty", [2**40, 2**40], "int8"])
refused("shape_bytes_overflow", lambda t: ["empty", [2**60], "int64"])
refused("shape_holds_slice", lambda t: ["zeros", [3, slice(0, 2)], "int64"])
refused("fill_does_not_fit_int8", lambda t: ["set_const_val", out(t, dtype="int8"), 128])
refused("fill_does_not_fit_int32", lambda t: ["set_const_val", out(t, dtype="int32"), -(2**31) - 1])
refused("fill_overlaps", lambda t: ["set_const_val", t.op("expand", out(t, 1, 3), 0, 2), 1])
refused("reshape_size", lambda t: ["reshape", a(t), [3, 3]])
refused("reshape_two_inferred", lambda t: ["reshape", a(t), [-1, -1]])
refused("reshape_not_divisible", lambda t: ["reshape", a(t), [3, -1]])
refused("reshape_below_minus_one", lambda t: ["reshape", a(t), [-2, -4]])
refused("reshape_infers_from_zero", lambda t: ["reshape", out(t, 0, 2), [0, -1]])
refused("flatten_order", lambda t: ["flatten", a(t), 1, 0])
refused("flatten_axis", lambda t: ["flatten", a(t), 0, 2])
refused("squeeze_size", lambda t: ["squeeze", a(t), 0])
refused("squeeze_axis", lambda t: ["squeeze", a(t, 1, 1), -3])
refused("unsqueeze_axis", lambda t: ["unsqueeze", a(t), 3])
refused("unsqueeze_axis_negative", lambda t: ["unsqueeze", a(t), -4])
refused("expand_size", lambda t: ["expand", a(t), 0, 4])
refused("expand_zero", lambda t: ["expand", a(t, 1, 4), 0, 0])
refused("moveaxis_from", lambda t: ["moveaxis", a(t), -3, 0])
refused("moveaxis_to", lambda t: ["moveaxis", a(t), 0, 2])
refused("slice_index_high", lambda t: ["get_slice", a(t), [4]])
refused("slice_index_low", lambda t: ["get_slice", a(t), [Ellipsis, -3]])
refused("slice_step_zero", lambda t: ["get_slice", a(t), [slice(0, 4, 0)]])
refused("slice_step_negative", lambda t: ["get_slice", a(t), [slice(None, None, -1)]])
refused("slice_two_ellipses", lambda t: ["get_slice", a(t), [Ellipsis, 0, Ellipsis]])
refused("slice_too_many", lambda t: ["get_slice", a(t), [0, 0, 0]])
refused("slice_new_axis", lambda t: ["get_slice", a(t), [None, 0]])

# ------------------------------------------------------------------- elementwise

refused("broadcast_fails", lambda t: ["_modsum_ttc", a(t), a(t, 3, 2), 97, out(t)])
refused("broadcast_modulus_fails", lambda t: ["_modmul_ttt", a(t), a(t), ints(t, 3, 5, 7), out(t)])
refused("out_too_small", lambda t: ["_modsum_ttc", a(t), a(t), 97, out(t, 1, 2)])
refused("out_too_large", lambda t: ["_modsum_ttc", a(t), a(t), 97, out(t, 3, 4, 2)])
refused("out_rank", lambda t: ["abs", a(t), out(t, 1, 4, 2)])
refused("out_enlarged_by_modulus", lambda t: ["_modneg_tt", a(t, 2), ints(t, [5], [7]), out(t, 2)])
refused("out_overlaps_itself", lambda t: ["_modsum_ttc", a(t), a(t), 97,
                                          t.op("expand", out(t, 1, 2), 0, 4)])
refused("modulus_zero", lambda t: ["_modmul_tcc", a(t), 3, 0, out(t)])
refused("modulus_negative", lambda t: ["modsum", a(t), a(t), -5, out(t)])
refused("modulus_lowest", lambda t: ["_mod_tc", a(t), INT64_MIN, out(t)])
refused("modulus_zero_in_tensor", lambda t: ["_modmul_ttt", a(t), a(t), ints(t, 97, 0), out(t)])
refused("modulus_negative_in_tensor", lambda t: ["_mod_ct", 9, ints(t, 5, -5), out(t, 2)])
refused("modulus_zero_modneg", lambda t: ["_modneg_tt", a(t), ints(t, 0, 3), out(t)])

# -------------------------------------------------------------------------- sums

refused("sum_last_axis", lambda t: ["axis_modsum", a(t), -1, q(t), out(t, 4)])
refused("sum_axis_range", lambda t: ["axis_modsum", a(t), 2, q(t), out(t, 4)])
refused("sum_modulus_shape", lambda t: ["axis_modsum", a(t), 0, ints(t, 3, 5, 7), out(t, 2)])
refused("sum_out_shape", lambda t: ["axis_modsum", a(t), 0, q(t), out(t, 1, 2)])
refused("sum_modulus_zero", lambda t: ["axis_modsum", a(t), 0, ints(t, 0, 5), out(t, 2)])


def axis_sum(t, perm, apply_perm=True, axis=-1, b_shape=(3, 2, 4), out_shape=(1, 2, 4)):
    return ["modmul_axis_sum", a(t, 1, 3, 2, 4), a(t, *b_shape), q(t), None, None, perm,
            out(t, *out_shape), apply_perm, axis]


refused("axis_sum_perm_none", lambda t: axis_sum(t, None))
refused("axis_sum_perm_repeats", lambda t: axis_sum(t, ints(t, 0, 1, 1, 3)))
refused("axis_sum_perm_range", lambda t: axis_sum(t, ints(t, 0, 1, 2, 4)))
refused("axis_sum_perm_length", lambda t: axis_sum(t, ints(t, 0, 1, 2)))
refused("axis_sum_axis", lambda t: axis_sum(t, None, False, axis=-2))
refused("axis_sum_key_shape", lambda t: axis_sum(t, None, False, b_shape=(2, 2, 4)))
refused("axis_sum_out_shape", lambda t: axis_sum(t, None, False, out_shape=(1, 4, 2)))

# -------------------------------------------------------------------- transforms


def transform(t, name, a_shape=(1, 4, 1, 2), axis=-3, perm=(0, 2, 1, 3), moduli=(97, 193),
              table=(2, 4), scale=2, out_shape=(1, 4, 1, 2), tile=False, skip_perm=False):
    """ntt or intt of 11 arguments, right but for what the caller changes."""
    args = [a(t, *a_shape), axis, None if perm is None else ints(t, *perm), None, ints(t, *moduli),
            None, None, a(t, *table)]
    if name == "intt":
        return [name] + args + [a(t, scale), out(t, *out_shape), tile]
    return [name] + args + [out(t, *out_shape), tile, skip_perm]


refused("ntt_length", lambda t: transform(t, "ntt", (1, 6, 1, 2), table=(2, 6), perm=range(6),
                                          out_shape=(1, 6, 1, 2)))
refused("ntt_axis", lambda t: transform(t, "ntt", axis=-2))
refused("ntt_rank", lambda t: transform(t, "ntt", (4, 1, 2), out_shape=(4, 1, 2)))
refused("ntt_moduli", lambda t: transform(t, "ntt", moduli=(97, 193, 257)))
refused("ntt_table_shape", lambda t: transform(t, "ntt", table=(2, 8)))
refused("ntt_out_shape", lambda t: transform(t, "ntt", out_shape=(1, 4, 2, 1)))
refused("ntt_tile_shape", lambda t: transform(t, "ntt", tile=True))
refused("ntt_not_tiled", lambda t: transform(t, "ntt", (1, 4, 1, 1)))
refused("ntt_perm_none", lambda t: transform(t, "ntt", perm=None))
refused("ntt_perm_repeats", lambda t: transform(t, "ntt", perm=(0, 2, 2, 3)))
refused("ntt_modulus_negative", lambda t: transform(t, "ntt", moduli=(97, -193)))
refused("intt_scale_shape", lambda t: transform(t, "intt", scale=4))
refused("intt_perm_negative", lambda t: transform(t, "intt", perm=(0, 2, 1, -1)))
refused("intt_modulus_zero", lambda t: transform(t, "intt", moduli=(0, 97)))
refused("intt_args", lambda t: transform(t, "intt") + [0])

# ------------------------------------------------------------------------ digits

refused("digits_out_shape", lambda t: ["apply_g_decomp", a(t), 16, 4, out(t, 4, 2, 15, dtype="int8")])
refused("digits_base_zero", lambda t: ["g_decomposition", a(t), 16, 0, out(t, 4, 2, 16)])
refused("digits_count_negative", lambda t: ["apply_g_decomp", a(t), -1, 4, out(t, 4, 2, 1)])


def full_q(t, moduli, a_shape=(1, 2, 3), out_shape=(1, 4, 3)):
    return ["apply_g_decomp_relative_to_full_q", a(t, *a_shape), ints(t, *moduli), 4, 4,
            out(t, *out_shape, dtype="int8")]


refused("full_q_not_coprime", lambda t: full_q(t, (6, 35, 77), (1, 3, 3)))
refused("full_q_equal_moduli", lambda t: full_q(t, (97, 97)))
refused("full_q_modulus_zero", lambda t: full_q(t, (97, 0)))
refused("full_q_modulus_shape", lambda t: full_q(t, (97, 193, 257)))
refused("full_q_rank", lambda t: full_q(t, (97, 193), (2, 3)))
refused("full_q_out_shape", lambda t: full_q(t, (97, 193), out_shape=(1, 3, 4)))

# ------------------------------------------------------------------ gathers, pads

refused("gather_index_high", lambda t: ["take_along_axis", a(t), ints(t, [0, 4]), 0, out(t, 1, 2)])
refused("gather_index_low", lambda t: ["take_along_axis", a(t), ints(t, [0, -5]), 0, out(t, 1, 2)])
refused("gather_axis", lambda t: ["take_along_axis", a(t), ints(t, [0, 1]), 2, out(t, 1, 2)])
refused("gather_rank", lambda t: ["take_along_axis", a(t), ints(t, 0, 1), 0, out(t, 1, 2)])
refused("gather_shape", lambda t: ["take_along_axis", a(t), ints(t, [0, 1, 0]), 0, out(t, 1, 2)])
refused("permute_same_axes", lambda t: ["permute", a(t, 3, 3), ints(t, *[[0, 1, 2]] * 3),
                                        out(t, 3, 3), 0, -2])
refused("permute_perms_shape", lambda t: ["permute", a(t), ints(t, *[[0, 1, 2, 3]] * 2), out(t), 0, 1])
refused("permute_index_high", lambda t: ["permute", a(t), ints(t, *[[0, 2]] * 4), out(t), 0, 1])
refused("permute_index_negative", lambda t: ["permute", a(t), ints(t, *[[0, -1]] * 4), out(t), 0, 1])
refused("permute_out_shape", lambda t: ["permute", a(t), ints(t, *[[0, 1]] * 4), out(t, 2, 4), 0, 1])
refused("pad_negative", lambda t: ["pad_single_axis", a(t), -1, 0, out(t, 3, 2)])
refused("pad_out_shape", lambda t: ["pad_single_axis", a(t), 1, 0, out(t, 6, 2)])
refused("repeat_out_shape", lambda t: ["repeat_interleave", a(t), 2, 0, out(t, 4, 4)])
refused("repeat_negative", lambda t: ["repeat_interleave", a(t), -1, 0, out(t, 4, 2)])

# ------------------------------------------------------------------------- names


@case("name_never_bound")
def _(t):
    y = out(t)
    return t.raw("abs", Handle(99999), y, out=y), "abs"


@case("name_used_after_free")
def _(t):
    x, y = a(t), out(t)
    t.free(x)
    return t.raw("abs", x, y, out=y), "abs"


@case("name_freed_twice")
def _(t):
    x = a(t)
    t.free(x)
    return t.write_free(x), "-"


@case("name_freed_by_op_twice")
def _(t):
    x = a(t)
    t.op("free_device_tensor", x)
    return t.raw("free_device_tensor", x, out=None), "free_device_tensor"


@case("name_free_unbound", plain=True, string_names=True)
def _(t):
    a(t)
    return t.write_free(Handle("nobody")), "-"


@case("name_download_unbound")
def _(t):
    a(t)
    return t.raw("device_to_host", Handle(7), None, out=np.zeros((4, 2), dtype=np.int64)), "device_to_host"


@case("name_is_null")
def _(t):
    x = a(t)
    t.free(x)
    return replaced(t.text(), '"tensor_name":%d' % x.name, '"tensor_name":null'), 1, "-"


@case("name_is_fraction")
def _(t):
    x = a(t)
    t.free(x)
    return replaced(t.text(), '"tensor_name":%d' % x.name, '"tensor_name":%d.0' % x.name), 1, "-"


@case("name_is_missing")
def _(t):
    x = a(t)
    return replaced(t.text(), ',"inf_name":%d' % x.name, ""), 0, "host_to_device"


# ------------------------------------------------------------ entries and segments


@case("segment_nested")
def _(t):
    t.segment_start("outer")
    a(t)
    entry = t.segment_start("inner")
    t.segment_end()
    t.segment_end()
    return entry, "-"


@case("segment_never_started", plain=True)
def _(t):
    with t.segment("one"):
        a(t)
    return t.segment_end(), "-"


@case("segment_never_ends")
def _(t):
    t.segment_start("one")
    a(t)
    return "-", "-"


def bad_entry(name, document, op="-", **options):
    """Registers a transcript whose second entry is the given JSON document."""

    @case(name, **options)
    def write(t):
        a(t)
        return t.entry(document), op


KIND = "ExecutionTranscriptOpType"
bad_entry("entry_unknown_kind", [tag(KIND, value="DEVICE_OPS"), None])
bad_entry("entry_unknown_type", {"type": "HOST_OP", "op": {}}, plain=True)
bad_entry("entry_without_type", {"name": "abs", "args": []}, plain=True)
bad_entry("entry_is_number", 7)
bad_entry("entry_is_single", [tag(KIND, value="SEGMENT_END")])
bad_entry("entry_is_triple", [tag(KIND, value="SEGMENT_START"), "x", None])
bad_entry("entry_sketch", {"op": "_modsum_tcc", "args": [5, 3, 7], "output": 6}, plain=True)
bad_entry("op_payload_is_null", [tag(KIND, value="DEVICE_OP"), None])
bad_entry("op_without_name", [tag(KIND, value="DEVICE_OP"), tag("DeviceOp", args=[], out=None)])
bad_entry("op_without_args", [tag(KIND, value="DEVICE_OP"), tag("DeviceOp", name="abs")], "abs")
bad_entry("free_without_name", {"type": "FREE_DEVICE_TENSOR"}, plain=True)


def plain_fill(arg):
    """A fill in the plain spelling whose value is the given ARG."""
    pointer = {"arg_type": "DEVICE_TENSOR", "value": {"dtype": "torch.int64", "inf_name": 1}}
    return {"type": "DEVICE_OP", "op": {"name": "set_const_val", "args": [pointer, arg], "out": pointer}}


def bad_arg(name, arg):
    @case(name, plain=True)
    def write(t):
        t.upload(np.zeros((2,), dtype=np.int64), out=Handle(1))
        return t.entry(plain_fill(arg)), "set_const_val"


bad_arg("arg_unknown_type", {"arg_type": "FLOAT", "value": 1})
bad_arg("arg_without_type", {"value": 1})
bad_arg("arg_is_number", 1)
bad_arg("arg_slice_bound_is_string", {"arg_type": "SLICE", "value": {"start": "0", "stop": 1, "step": 1}})
bad_arg("arg_int_is_null", {"arg_type": "INT", "value": None})
bad_arg("arg_int_is_string", {"arg_type": "INT", "value": "7"})


def bad_number(name, spelling):
    """An INT that is spelled as no 64-bit integer."""

    @case(name)
    def write(t):
        x = out(t)
        t.op("set_const_val", x, 123454321)
        return replaced(t.text(), "123454321", spelling), 1, "set_const_val"


bad_number("int_with_point", "1.0")
bad_number("int_with_fraction", "5.5")
bad_number("int_with_exponent", "1e3")
bad_number("int_too_large", "9223372036854775808")
bad_number("int_too_small", "-9223372036854775809")
bad_number("int_huge", "1" + "0" * 400)


@case("shape_size_with_point")
def _(t):
    t.zeros((13, 2))
    return replaced(t.text(), ":13}", ":13.0}"), 0, "zeros"


# ---------------------------------------------------------------------- documents


def document(name, make):
    @case(name)
    def write(t):
        with t.segment("one"):
            t.download(a(t))
        return make(t.text()), "-", "-"


document("json_empty", lambda text: "")
document("json_truncated", lambda text: text[:len(text) // 2])
document("json_without_end", lambda text: text.rstrip()[:-1])
document("json_trailing", lambda text: text + "[]\n")
document("json_missing_comma", lambda text: text.replace(",\n", "\n", 1))
document("json_deep", lambda text: "[" * 60000)
document("json_text", lambda text: "not a transcript\n")
document("json_unclosed_string", lambda text: '["')
document("json_nan", lambda text: "[NaN]")
document("top_number", lambda text: "12\n")
document("top_null", lambda text: "null\n")
document("top_object", lambda text: "{}\n")
document("top_other_object", lambda text: replaced(text, '"ExecutionTranscript"', '"DeviceOp"'))
document("top_transcript_is_object", lambda text: '{"__type__":"ExecutionTranscript","transcript":{}}')

# ----------------------------------------------------------------------- payloads


def bad_payload(name, make):
    """make(base64 text of a valid .npy file) -> the tensor_base64 object, or its data."""

    @case(name)
    def write(t):
        x = a(t, 2, 3)
        host = heal_oracle.HostTensor(t.array(x))
        good = base64.b64encode(npy_bytes(host)).decode()
        made = make(good)
        text = t.text()
        if isinstance(made, dict):
            wanted = ",".join('"%s":"%s"' % item for item in made.items())
            return replaced(text, '"type":"numpy","data":"%s"' % good, wanted), 0, "host_to_device"
        return replaced(text, good, made), 0, "host_to_device"


def npy(change):
    """bytes -> bytes, as a function of base64 texts."""
    return lambda text: base64.b64encode(change(base64.b64decode(text))).decode()


def header(old, new):
    """Replaces text in the .npy header, whose length stays the same."""

    def change(data):
        assert old in data
        return data.replace(old, new, 1).replace(b" " * (len(new) - len(old)) + b"\n", b"\n", 1) \
            if len(new) > len(old) else data.replace(old, new + b" " * (len(old) - len(new)), 1)

    return npy(change)


bad_payload("base64_bad_letter", lambda text: text[:200] + "*" + text[201:])
bad_payload("base64_url_letters", lambda text: text[:200] + "-_" + text[202:])
bad_payload("base64_space", lambda text: text[:200] + " " + text[201:])
bad_payload("base64_line_break", lambda text: text[:76] + "\\n" + text[76:])
bad_payload("base64_without_padding", lambda text: text.rstrip("=")[:-1])
bad_payload("base64_padding_inside", lambda text: text[:200] + "=" + text[201:])
bad_payload("base64_more_padding", lambda text: text + "====")
bad_payload("base64_empty", lambda text: "")
bad_payload("npy_magic", npy(lambda data: b"\x93NUMPX" + data[6:]))
bad_payload("npy_version", npy(lambda data: data[:6] + b"\x09" + data[7:]))
bad_payload("npy_only_magic", npy(lambda data: data[:9]))
bad_payload("npy_header_cut", npy(lambda data: data[:60]))
bad_payload("npy_data_cut", npy(lambda data: data[:-3]))
bad_payload("npy_data_missing", npy(lambda data: data[:128]))
bad_payload("npy_trailing_byte", npy(lambda data: data + b"\0"))
bad_payload("npy_shape_lies", header(b"(2, 3)", b"(2, 4)"))
bad_payload("npy_shape_negative", header(b"(2, 3)", b"(-2, -3)"))
bad_payload("npy_shape_overflows", header(b"(2, 3)", b"(4294967296, 4294967296, 6)"))
bad_payload("npy_shape_fraction", header(b"(2, 3)", b"(2, 3.)"))
bad_payload("npy_float", header(b"<i8", b"<f8"))
bad_payload("npy_unsigned", header(b"<i8", b"<u8"))
bad_payload("npy_int16", header(b"<i8", b"<i2"))
bad_payload("npy_header_is_list", header(b"{'descr'", b"['descr'"))
bad_payload("npy_order_is_number", header(b"False", b"0"))
bad_payload("npy_key_missing", header(b"'fortran_order'", b"'fortran_ordre'"))
bad_payload("payload_torch", lambda text: {"type": "torch", "data": "UEsDBAAACAgA"})
bad_payload("payload_unknown", lambda text: {"type": "pickle", "data": text})
bad_payload("payload_without_data", lambda text: {"type": "numpy"})


@case("upload_does_not_fit")
def _(t):
    t.upload(np.array([1, 300]))
    entry = t.raw("host_to_device", np.array([127, -129]), out=t.pointer(t.new_handle(), "int8"))
    return entry, "host_to_device"


@case("upload_does_not_fit_int32")
def _(t):
    values = np.array([2**31, 0])
    return t.raw("host_to_device", values, out=t.pointer(t.new_handle(), "int32")), "host_to_device"


# ----------------------------------------------- work and memory that views ask for


def repeated(t, array, axis, count):
    return t.op("expand", array, axis, count)


refused("work_sum", lambda t: ["axis_modsum", repeated(t, a(t, 1, 2), 0, 2**43), 0, q(t), out(t, 2)])
refused("work_sum_of_products", lambda t: ["modmul_axis_sum", repeated(t, a(t, 1, 1, 2, 4), 1, 2**50),
                                           repeated(t, a(t, 1, 2, 4), 0, 2**50), q(t), None, None, None,
                                           out(t, 1, 2, 4), 0])
refused("work_full_q", lambda t: ["apply_g_decomp_relative_to_full_q",
                                  repeated(t, a(t, 1, 1, 1), 1, 2**40),
                                  repeated(t, ints(t, 1), 0, 2**40), 1, 4, out(t, 1, 1, 1)])


@case("work_download")
def _(t):
    x = repeated(t, a(t, 1), 0, 2**59)
    return t.raw("device_to_host", x, None, out=np.array([0])), "device_to_host"


# ------------------------------------------------------------------------ results


def wrong_result(name, change):
    """A download whose expected array is change(the true one); others are right."""

    @case(name, exit_status=1)
    def write(t):
        with t.segment("work"):
            x = a(t, 3, 4)
            t.download(x)
            expected = change(t.array(x).copy())
            entry = t.raw("device_to_host", x, None, out=expected)
            t.download(x)
        return entry, "device_to_host"


def last_flipped(array):
    array[-1, -1] ^= 1
    return array


def first_flipped(array):
    array[0, 0] ^= INT64_MIN
    return array


wrong_result("differs_in_last_value", last_flipped)
wrong_result("differs_in_top_bit", first_flipped)
wrong_result("differs_in_shape", lambda array: array.reshape(4, 3))
wrong_result("differs_in_rank", lambda array: array.reshape(1, 3, 4))
wrong_result("differs_truncated", lambda array: array.astype(np.int32))
wrong_result("differs_fewer_values", lambda array: array[:, :3])


@case("differs_scalar", exit_status=1, plain=True)
def _(t):
    x = t.upload(np.array(-1, dtype=np.int8))
    return t.raw("device_to_host", x, out=np.array(255)), "device_to_host"


@case("differs_after_work", exit_status=1)
def _(t):
    ring = Ring(16, ntt_primes(62, 16, 1))
    tables = [t.upload(array) for array in (ring.perm, ring.q, ring.psi)]
    y = out(t, 1, 16, 2, 1)
    t.op("ntt", a(t, 1, 16, 2, 1), -3, tables[0], None, tables[1], None, None, tables[2], y, 0, 0)
    expected = t.array(y).copy()
    expected[0, 7, 1, 0] += 1
    return t.raw("device_to_host", y, None, out=expected), "device_to_host"


@case("expected_is_torch")
def _(t):
    t.download(a(t))
    text = t.text()
    entry = text.index("device_to_host")
    return text[:entry] + replaced(text[entry:], '"type":"numpy"', '"type":"torch"'), 1, "device_to_host"


def bad_files():
    """-> (dict of file name to text, 1 if the oracle disagrees with any of them else 0)."""
    status, files, lines = 0, {}, []
    for name in sorted(CASES):
        exit_status, function, options = CASES[name]
        transcript = Transcript("bad " + name, **options)
        made = function(transcript)
        text, entry, op = made if len(made) == 3 else (transcript.text(),) + made
        verdict = heal_oracle.run_text(text, heal_oracle.Machine())
        found = verdict[:1] + tuple("-" if part is None else part for part in verdict[1:3])
        if found != (exit_status, entry, op):
            print("%s: expected %s, the oracle says %s" % (name, (exit_status, entry, op), verdict))
            status = 1
        files[name + ".json"] = text
        lines.append("%s.json %d %s %s\n" % (name, exit_status, entry, op))
    files["expected.txt"] = "".join(lines)
    return files, status
