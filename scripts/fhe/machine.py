# SPDX-License-Identifier: Apache-2.0
"""The oracle's machine with fast exact arithmetic where the operands are plain residues.

The oracle computes with Python's integers, about 10^7 a second. Transcripts of real size
need 10^10. An operation whose operands are reduced, of at most 62 bits and int64 runs here;
every other falls back to the oracle. make_transcripts.py --check compares the two."""

import numpy as np

import heal_oracle as oracle
from fhe.ring import Modulus, forward_butterflies, inverse_butterflies, transform

LIMIT = 2**62
WORD = 28  # bits of a CRT value that are cut into digits at a time
FAST = {}  # name without leading underscore -> function(values) -> the result, or None


def fast(*names):
    def register(function):
        for name in names:
            FAST[name] = function
        return function
    return register


class FastMachine(oracle.Machine):
    def execute(self, op):
        function = FAST.get(op.name.lstrip("_"))
        if function is None:
            return super().execute(op)
        form = oracle.select_form(op.name, op.args)
        values = {param: self.argument(param, kind, arg)
                  for (param, kind), arg in zip(form.params, op.args)}
        result = function(**values)
        if result is None:
            return super().execute(op)
        self.operations += 1
        self.tensors[op.out.value.name] = result


def moduli_of(q):
    """int64 [k] -> list of Modulus, or None."""
    if q.ndim != 1 or q.dtype != np.int64 or not len(q) or q.min() < 2 or q.max() >= LIMIT:
        return None
    return [Modulus(int(one)) for one in q]


def reduced(a, moduli, axis):
    """Is a, of size k or 1 on the axis, in [0, q)?"""
    if a.size == 0 or a.shape[axis] not in (1, len(moduli)) or a.min() < 0:
        return False
    if a.shape[axis] == 1:
        return int(a.max()) < min(modulus.q for modulus in moduli)
    limbs = np.moveaxis(a, axis, 0)
    return all(int(limb.max()) < modulus.q for limb, modulus in zip(limbs, moduli))


def same_shape(out, *operands):
    return np.broadcast_shapes(*[x.shape for x in operands]) == out.shape


def elementwise(function, a, b, p, out):
    """modmul and modsum of tensors whose last axis is the limb; what is not reduced must at least
    not be negative."""
    if out.dtype != np.int64 or a.dtype != np.int64 or b.dtype != np.int64:
        return None
    moduli = moduli_of(p)
    if (not moduli or out.shape[-1:] != p.shape or not same_shape(out, a, b) or out.size == 0
            or a.min() < 0 or b.min() < 0):
        return None
    read = [(lambda limb, q: limb) if reduced(x, moduli, -1) else np.remainder for x in (a, b)]
    limbs = [function(modulus, *[one(x[..., j % x.shape[-1]], modulus.q)
                                 for one, x in zip(read, (a, b))])
             for j, modulus in enumerate(moduli)]
    for j, limb in enumerate(limbs):
        out[..., j] = limb
    return out


@fast("modmul_ttt")
def modmul(a, b, p, out):
    return elementwise(Modulus.times, a, b, p, out)


@fast("modsum_ttt")
def modsum(a, b, p, out):
    return elementwise(Modulus.plus, a, b, p, out)


@fast("axis_modsum")
def axis_modsum(a, axis, q, out):
    moduli = moduli_of(q)
    axis %= a.ndim
    if (not moduli or out.dtype != np.int64 or axis == a.ndim - 1 or a.shape[-1:] != q.shape
            or out.shape != a.shape[:axis] + a.shape[axis + 1:] or not reduced(a, moduli, -1)):
        return None
    limbs = [modulus.sum(a[..., j], axis) for j, modulus in enumerate(moduli)]
    out[...] = np.stack(limbs, axis=-1)
    return out


@fast("modmul_axis_sum")
def modmul_axis_sum(a, b, q, out, log2p=None, mu=None, perm=None, apply_perm=0, axis=-1):
    moduli = moduli_of(q)
    if (not moduli or axis != -1 or a.ndim != 4 or a.shape[1:] != b.shape or out.dtype != np.int64
            or out.shape != a.shape[:1] + a.shape[2:] or a.shape[2:3] != q.shape
            or np.may_share_memory(out, a) or np.may_share_memory(out, b)
            or not all(reduced(x, moduli, -2) for x in (a, b, out))):
        return None
    source = np.argsort(oracle.check_permutation(perm, a.shape[3])) if apply_perm else slice(None)
    for j, modulus in enumerate(moduli):
        for r in range(len(a)):
            products = modulus.times(a[r, :, j][:, source], b[:, j])
            out[r, j] = modulus.plus(out[r, j], modulus.sum(products, 0))
    return out


def transformable(a, axis, q, roots, out, tile):
    """-> (a as [l, r, k, n], moduli), or None. The oracle's checks raise."""
    moduli = moduli_of(q)
    axis = oracle.transform_axis(axis)
    if not moduli or out.dtype != np.int64 or a.ndim != 4 or a.size == 0:
        return None
    k_axis = 3 if axis == 1 else 2
    shape = list(a.shape)
    shape[k_axis] = len(moduli)
    n = a.shape[axis]
    if (a.shape[k_axis] != (1 if tile else len(moduli)) or list(out.shape) != shape or n & (n - 1)
            or roots.shape != (len(moduli), n) or not reduced(a, moduli, k_axis)
            or not reduced(roots, moduli, 0)):
        return None
    return np.moveaxis(a, axis, 3), moduli


@fast("ntt")
def ntt(a, perm, q, psi, out, tile, skip_perm, axis=-3, pairs=None, log2p=None, mu=None):
    ready = transformable(a, axis, q, psi, out, tile)
    if ready is None:
        return None
    x = transform(ready[0], forward_butterflies, psi, ready[1])
    if not skip_perm:
        x = x[..., oracle.check_permutation(perm, x.shape[-1])]
    out[...] = np.moveaxis(x, 3, axis)
    return out


@fast("intt")
def intt(a, perm, q, ipsi, n_inv, out, tile, axis=-3, pairs=None, log2p=None, mu=None):
    ready = transformable(a, axis, q, ipsi, out, tile)
    if ready is None or not reduced(n_inv, ready[1], 0):
        return None
    shuffled = ready[0][..., np.argsort(oracle.check_permutation(perm, ready[0].shape[-1]))]
    x = transform(shuffled, inverse_butterflies, ipsi, ready[1])
    for j, modulus in enumerate(ready[1]):
        x[..., j, :] = modulus.times(x[..., j, :], n_inv[j])
    out[...] = np.moveaxis(x, 3, axis)
    return out


@fast("apply_g_decomp", "g_decomposition")
def apply_g_decomp(a, g_exp, base_bits, out):
    covered = g_exp * base_bits
    if (a.dtype != np.int64 or a.size == 0 or a.min() < 0 or not 1 <= base_bits <= 7
            or int(a.max()) >> covered or out.shape != a.shape + (g_exp,)):
        return None
    for i in range(g_exp):
        out[..., i] = a >> min(i * base_bits, 63) & (2**base_bits - 1)
    return out


@fast("apply_g_decomp_relative_to_full_q")
def full_q_digits(a, q, g_exp, base_bits, out, q_inv=None, level_bits=None, level_inv=None):
    """Mixed radix (Garner 1959) with the fast products, then words of 28 bits, then digits."""
    moduli = moduli_of(q)
    if (not moduli or a.dtype != np.int64 or a.ndim != 3 or a.shape[1:2] != q.shape
            or base_bits not in (1, 2, 4, 7) or out.shape != (a.shape[0], g_exp, a.shape[2])
            or not reduced(a, moduli, 1)):
        return None
    value, radix = a[:, 0].astype(object), moduli[0].q
    for j, modulus in enumerate(moduli[1:], 1):
        have = (value % modulus.q).astype(np.int64)
        digit = modulus.times(modulus.minus(a[:, j], have), np.int64(pow(radix, -1, modulus.q)))
        value, radix = value + digit.astype(object) * radix, radix * modulus.q
    if (radix - 1) >> (g_exp * base_bits):
        return None
    per_word = WORD // base_bits
    for first in range(0, g_exp, per_word):
        word = (value & (2**WORD - 1)).astype(np.int64)
        value = value >> WORD
        for i in range(first, min(first + per_word, g_exp)):
            out[:, i] = word >> ((i - first) * base_bits) & (2**base_bits - 1)
    return out
