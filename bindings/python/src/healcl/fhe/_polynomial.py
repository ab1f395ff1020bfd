# SPDX-License-Identifier: Apache-2.0
"""Evaluates polynomials of slots by Paterson and Stockmeyer's method (SIAM Journal on Computing
2(1), 1973), in powers or in Chebyshev polynomials."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .._errors import ArgumentError
from ._encoding import scaled_integer
from ._operands import Ciphertext

if TYPE_CHECKING:
    from ._evaluator import Evaluator

_Leaf = Tuple[np.ndarray, int, float]  # coefficients, level and scale


def _steps(degree: int) -> int:
    """The power of two m that needs the fewest products. All powers below m are computed, then m,
    2 m, 4 m and so on."""
    def products(m: int) -> int:
        blocks = -(-(degree + 1) // m)
        return min(m, degree) + (blocks - 1).bit_length() + blocks

    return min((2 << i for i in range(degree.bit_length())), key=products)


def depth(degree: int) -> int:
    """The number of levels that a polynomial needs."""
    return (degree if degree >= _steps(degree) else degree - 1).bit_length() + 1


def _power_products(he: Evaluator, powers: Dict[int, Ciphertext], which: Sequence[int],
                    chebyshev: bool, stack: Any) -> None:
    """Adds the powers with these numbers, which go from one to its double, at once. A power is the
    product of its halves. A Chebyshev polynomial is 2 T_a T_b - T_(a - b); a - b is 0 or 1. stack:
    has space for them, one after the other."""
    engine, on, one = he._engine, he._on, powers[1]
    halves = [((j + 1) // 2, j // 2) for j in which]
    level = min(powers[i].level for pair in halves for i in pair)
    low = {i: he.mod_switch(powers[i], level) for i in {1, *sum(halves, ())}}
    column, q, count = he._column(level + 1), he.ring.moduli[level], len(one)
    product = on.empty(3, len(which) * count, level + 1, he.ring.n)
    for i, (a, b) in enumerate(halves):
        he._product(low[a].tensor, low[b].tensor, product[:, i * count:(i + 1) * count])
    total = he.relinearize(he._new(one, product, 1.0)).tensor
    del product
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
    on.rescale(total, stack[:, :len(which) * count, :level])
    for i, j in enumerate(which):
        powers[j] = Ciphertext(he, stack[:, i * count:(i + 1) * count, :level], scales[i] / q,
                               one._slots)


def _all_sums(he: Evaluator, powers: Dict[int, Ciphertext], stack: Any,
              leaves: Sequence[_Leaf]) -> Dict[int, Ciphertext]:
    """Computes sums of coefficients times powers, by their numbers, in as few stacks as levels
    allow. stack: has the powers, one after the other."""
    sums: Dict[int, Ciphertext] = {}
    while len(sums) < len(leaves):
        top = max(leaf[1] for i, leaf in enumerate(leaves) if i not in sums)
        which = [i for i, leaf in enumerate(leaves)
                 if i not in sums and powers[max(1, len(leaf[0]) - 1)].level > top]
        sums.update(zip(which, _sums(he, powers, stack, [leaves[i] for i in which])))
    return sums


def _sums(he: Evaluator, powers: Dict[int, Ciphertext], stack: Any,
          leaves: Sequence[_Leaf]) -> List[Ciphertext]:
    """Computes sums of coefficients times powers, all in one stack."""
    engine, one = he._engine, powers[1]
    top, count = max(level for _, level, _ in leaves), len(one)
    width, q = max(2, *(len(leaf) for leaf, _, _ in leaves)), he.ring.moduli[top + 1]
    weights = he._residues([
        scaled_integer(leaf[j], scale * q / powers[j].scale) if j < len(leaf) else 0
        for leaf, _, scale in leaves for j in range(1, width)], top + 1)
    weights = engine.expand(engine.reshape(weights, (len(leaves), width - 1, top + 2, 1)), 3,
                            he.ring.n)
    sums = engine.zeros((2, len(leaves) * count, top + 2, he.ring.n), np.int64)
    moduli = he._on.moduli(he.special, he.special + top + 2)
    for part in range(2):
        for i in range(count):
            engine.modmul_axis_sum(weights, stack[part, i:(width - 1) * count:count, :top + 2],
                                   moduli, sums[part, i::count], -1)
    total = he._on.rescale(sums)
    grid = engine.reshape(total, (2, len(leaves), count, top + 1, he.ring.n))
    constants = he._residues([scaled_integer(leaf[0], scale) for leaf, _, scale in leaves], top)
    engine.modsum(grid[:1], engine.unsqueeze(constants, 2), he._column(top + 1), grid[:1])
    return [Ciphertext(he, total[:, i * count:(i + 1) * count, :level + 1], scale, one._slots)
            for i, (_, level, scale) in enumerate(leaves)]


def evaluate(he: Evaluator, a: Ciphertext, coefficients: Any, chebyshev: bool, scale: float,
             imaginary: Optional[Callable[[Any, Any], None]] = None) -> Ciphertext:
    """Evaluates a polynomial of a's slots; the result has the given scale. imaginary: a function
    that multiplies a tensor by i, to a new one. Odd powers are then multiplied by i, and the
    evaluation needs the fewest levels but more products."""
    given: Any = np.asarray(coefficients)
    if given.dtype.kind not in "iuf" or given.ndim != 1 or not np.isfinite(given).all() or \
            not given[1:].any():
        raise ArgumentError("a polynomial needs at least two real, finite coefficients, the "
                            "lowest first, not %s %s" % (given.dtype, list(given.shape)))
    given = np.trim_zeros(given.astype(float), "b")
    degree, last = len(given) - 1, a.level
    levels = degree.bit_length() if imaginary else depth(degree)
    if last < levels:
        raise ArgumentError("a polynomial of degree %d needs %d levels: level %d is too low" % (
            degree, levels, last))
    m = _steps(degree)
    powers, top, count = {1: a}, 1, len(a)
    stack = he._on.empty(2, min(m, degree) * count, last + 1, he.ring.n)
    if imaginary:
        imaginary(a.tensor, stack[:, :count])
    else:
        he._engine.modsum(a.tensor, 0, he._column(last + 1), stack[:, :count])
    while top < min(m, degree):
        which = range(top + 1, min(2 * top, m, degree) + 1)
        _power_products(he, powers, which, chebyshev, stack[:, top * count:])
        top = which[-1]
    while 2 * top <= degree:
        _power_products(he, powers, [2 * top], chebyshev,
                        he._on.empty(2, count, last + 1, he.ring.n))
        top *= 2
    for j in (1 << i for i in range(1, (min(m, degree + 1) - 1).bit_length())):
        if not imaginary:
            break
        odd = stack[:, j * count:(2 * j - 1) * count, :powers[j + 1].level + 1]
        odd = he._engine.reshape(odd, (2, -1, count, *odd.shape[2:]))[:, ::2]
        imaginary(odd, odd)  # of one level
    leaves: List[_Leaf] = []

    def plan(part: np.ndarray, level: int, scale: float) -> Callable[[], Ciphertext]:
        """Returns a function that computes the part after all leaves: the sum of its quotients
        times powers, which is relinearized at once, plus a leaf."""
        products = []
        while len(part) > m or powers[max(1, len(part) - 1)].level <= level:
            giant = 1 << (len(part) - 1).bit_length() - 1
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

    result = plan(given, last - levels, scale)
    values = _all_sums(he, powers, stack, leaves)
    del plan  # which refers to itself, and would keep all powers
    return result()
