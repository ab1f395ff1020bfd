# SPDX-License-Identifier: Apache-2.0
"""Polynomials of slots, by Paterson and Stockmeyer's method (SIAM Journal on Computing 2(1), 1973),
in powers or in Chebyshev polynomials."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

from .._errors import ArgumentError
from ._encoding import scaled_integer
from ._operands import Ciphertext, runs

if TYPE_CHECKING:
    from ._evaluator import Evaluator

_Leaf = Tuple[np.ndarray, int, float]  # coefficients, level and scale


def _steps(degree: int) -> int:
    """A power of two, m: all powers below m are computed, then m, 2 m, 4 m and so on; the one with
    which products are fewest."""
    def products(m: int) -> int:
        blocks = -(-(degree + 1) // m)
        return min(m, degree) + (blocks - 1).bit_length() + blocks

    return min((2 << i for i in range(degree.bit_length())), key=products)


def depth(degree: int) -> int:
    """The levels that a polynomial takes."""
    return (degree if degree >= _steps(degree) else degree - 1).bit_length() + 1


def power_products(he: Evaluator, powers: Dict[int, Ciphertext], which: Sequence[int],
                   chebyshev: bool) -> None:
    """Adds the powers with these numbers, from one to its double, in one stack: the product of the
    halves, or of Chebyshev polynomials 2 T_a T_b - T_(a - b), where a - b is 0 or 1."""
    engine, on, one = he._engine, he._on, powers[1]
    halves = [((j + 1) // 2, j // 2) for j in which]
    level = min(powers[i].level for pair in halves for i in pair)
    low = {i: he.mod_switch(powers[i], level) for i in {1, *sum(halves, ())}}
    column, q, count = he._column(level + 1), he.ring.moduli[level], len(one)
    product = on.empty(3, len(which) * count, level + 1, he.ring.n)
    for i, (a, b) in enumerate(halves):
        he._product(low[a].tensor, low[b].tensor, product[:, i * count:(i + 1) * count])
    total = he.relinearize(he._new(one, product, 1.0)).tensor
    scales = [powers[a].scale * powers[b].scale for a, b in halves]
    if chebyshev:
        engine.modsum(total, total, column, total)
        grid = engine.reshape(total, (2, len(which), count, level + 1, he.ring.n))
        ones = he._residues([-round(scale) if a == b else 0
                             for scale, (a, b) in zip(scales, halves)], level)
        engine.modsum(grid[:1], engine.unsqueeze(ones, 2), column, grid[:1])
        odd = [-round(scale / one.scale) for scale, (a, b) in zip(scales, halves) if a != b]
        if odd:  # which stand first, third and so on
            target = grid[:, ::2][:, :len(odd)]
            engine.modsum(target, engine.modmul(
                engine.unsqueeze(low[1].tensor, 1), engine.unsqueeze(he._residues(odd, level), 2),
                column), column, target)
    total = on.rescale(total)
    for i, j in enumerate(which):
        powers[j] = Ciphertext(he, total[:, i * count:(i + 1) * count], scales[i] / q, one._slots,
                               (total, i * count))


def doubled(he: Evaluator, a: Ciphertext) -> Ciphertext:
    """2 a a - 1: the cosine of the doubled angle."""
    powers = {1: a}
    power_products(he, powers, [2], True)
    return powers[2]


def _sums(he: Evaluator, powers: Dict[int, Ciphertext], leaves: Sequence[_Leaf]) -> \
        List[Ciphertext]:
    """Sums of coefficients times powers, all in one stack."""
    engine, one = he._engine, powers[1]
    top, count = max(level for _, level, _ in leaves), len(one)
    width, q = max(2, *(len(leaf) for leaf, _, _ in leaves)), he.ring.moduli[top + 1]
    low = [he.mod_switch(powers[j], top + 1) for j in range(1, width)]
    weights = he._residues([
        scaled_integer(leaf[j], scale * q / power.scale) if j < len(leaf) else 0
        for leaf, _, scale in leaves for j, power in enumerate(low, 1)], top + 1)
    weights = engine.expand(engine.reshape(weights, (len(leaves), len(low), top + 2, 1)), 3,
                            he.ring.n)
    sums = engine.zeros((2, len(leaves) * count, top + 2, he.ring.n), np.int64)
    moduli = he._on.moduli(he.special, he.special + top + 2)
    for first, (tensor,) in runs(low):
        end = first + tensor.shape[1] // count
        for part in range(2):
            for i in range(count):
                engine.modmul_axis_sum(weights[:, first:end], tensor[part, i::count], moduli,
                                       sums[part, i::count], -1)
    total = he._on.rescale(sums)
    grid = engine.reshape(total, (2, len(leaves), count, top + 1, he.ring.n))
    constants = he._residues([scaled_integer(leaf[0], scale) for leaf, _, scale in leaves], top)
    engine.modsum(grid[:1], engine.unsqueeze(constants, 2), he._column(top + 1), grid[:1])
    return [Ciphertext(he, total[:, i * count:(i + 1) * count, :level + 1], scale, one._slots)
            for i, (_, level, scale) in enumerate(leaves)]


def evaluate(he: Evaluator, a: Ciphertext, coefficients: Any, chebyshev: bool,
             scale: float) -> Ciphertext:
    """A polynomial of a's slots, at the given scale."""
    given: Any = np.asarray(coefficients)
    if given.dtype.kind not in "iuf" or given.ndim != 1 or not np.isfinite(given).all() or \
            not given[1:].any():
        raise ArgumentError("a polynomial has two or more real, finite coefficients, the lowest "
                            "first, not %s %s" % (given.dtype, list(given.shape)))
    given = np.trim_zeros(given.astype(float), "b")
    degree, last = len(given) - 1, a.level
    if last < depth(degree):
        raise ArgumentError("a polynomial of degree %d takes %d levels: level %d has too few" % (
            degree, depth(degree), last))
    m = _steps(degree)
    powers = {1: a}
    top = 1
    while top < min(m, degree):
        which = range(top + 1, min(2 * top, m, degree) + 1)
        power_products(he, powers, which, chebyshev)
        top = which[-1]
    while 2 * top <= degree:
        power_products(he, powers, [2 * top], chebyshev)
        top *= 2
    leaves: List[_Leaf] = []

    def plan(part: np.ndarray, level: int, scale: float) -> Callable[[], Ciphertext]:
        """How the part is computed, once all leaves are: as the sum of its quotients times powers,
        which is relinearised at once, and a leaf."""
        products = []
        while len(part) > m:
            giant = m << ((len(part) - 1) // m).bit_length() - 1
            quotient, rest = part[giant:].copy(), part[:giant].copy()
            if chebyshev:  # 2 T_m T_j = T_(m + j) + T_(m - j)
                quotient[1:] *= 2
                rest[giant - len(quotient) + 1:] -= part[giant + 1:][::-1]
            power, q = he.mod_switch(powers[giant], level + 1), float(he.ring.moduli[level + 1])
            products.append((plan(quotient, level + 1, scale * q / power.scale), power))
            part = rest
        leaves.append((part, level, scale))
        number = len(leaves) - 1

        def compute() -> Ciphertext:
            if not products:
                return values[number]
            total: Any = sum(above() * power for above, power in products)
            return he._new(a, he.rescale(he.relinearize(total)).tensor, scale) + values[number]

        return compute

    result = plan(given, last - depth(degree), scale)
    values = _sums(he, powers, leaves)
    return result()
