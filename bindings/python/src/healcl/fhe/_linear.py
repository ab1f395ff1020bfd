# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and slots."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Tuple

import numpy as np

from .._errors import ArgumentError, ShapeError, integer
from ._operands import Ciphertext, Plaintext

if TYPE_CHECKING:
    from ._evaluator import Evaluator


class LinearTransform:
    """Multiplies a matrix by the slots, using its diagonals (Halevi, Shoup 2014). The result is the
    sum of each diagonal times the slots, rotated to the left by the diagonal's steps. Rotations are
    composed of baby and giant steps (Halevi, Shoup 2018).

    diagonals   the diagonals by their steps: `slots` numbers, or one number for all slots
    slots       n/2, or a divisor of it if the slots of the ciphertext repeat
    baby_steps  the number of steps in a giant step; None chooses it
    rotations   the steps for which Galois keys are needed

        t = fhe.LinearTransform({k: np.diagonal(np.roll(m, -k, 1)) for k in range(64)}, 64)
        y = he.apply(t, x)                  # m times x, a level lower
    """

    def __init__(self, diagonals: Mapping[int, Any], slots: int,
                 baby_steps: Optional[int] = None) -> None:
        self.slots = integer(slots, "the number of slots")
        self._diagonals = {integer(k, "a diagonal's steps"): np.asarray(diagonal)
                           for k, diagonal in diagonals.items()}
        steps = sorted(self._diagonals)
        if not steps or steps[-1] - steps[0] >= self.slots or max(map(abs, steps)) >= self.slots:
            raise ArgumentError("diagonals must have different steps below %d" % slots)
        for k, diagonal in self._diagonals.items():
            if diagonal.shape not in ((), (self.slots,)) or diagonal.dtype.kind not in "iufc":
                raise ShapeError("diagonal %d is %s %s, but needs %d numbers" % (
                    k, diagonal.dtype, list(diagonal.shape), self.slots))
        stride = math.gcd(*steps)
        widths = [stride << i for i in range(self.slots.bit_length())] if stride else [1]
        if baby_steps is not None:
            widths = [integer(baby_steps, "baby_steps") * max(1, stride)]
        self._babies, self._giants = min(
            (self._grid(steps, width) for width in reversed(widths)),
            key=lambda grid: 20 * len(grid[0]) + 20 * len(grid[1]) + len(grid[0]) * len(grid[1]))
        self.rotations = sorted({*self._babies, *self._giants} - {0})

    @staticmethod
    def _grid(steps: List[int], width: int) -> Tuple[List[int], List[int]]:
        giants = {k - k % width for k in steps}  # 0 first: the others are turned in one stack
        return sorted({k % width for k in steps}), sorted(giants, key=lambda k: (k != 0, k))

    def prepared(self, he: Evaluator, level: int, scale: Optional[float]) -> Plaintext:
        """The diagonals for apply(), encoded once."""
        plain: Plaintext = he._on.keep(("prepared", self, level), lambda: self._encoded(
            he, level, float(he.ring.moduli[level]) if scale is None else scale))
        return plain

    def _encoded(self, he: Evaluator, level: int, scale: float) -> Plaintext:
        """A stack of the diagonals, rotated back by their giant steps; zeros for missing ones."""
        if he.ring.n // 2 % self.slots:
            raise ArgumentError("%d slots do not divide %d" % (self.slots, he.ring.n // 2))
        rows = np.stack([np.roll(np.broadcast_to(self._diagonals.get(giant + baby, np.zeros(())),
                                                 self.slots), giant)
                         for giant in self._giants for baby in self._babies])
        rows = rows.astype(complex if rows.dtype.kind == "c" else float)
        return he._plaintext(np.tile(rows, he.ring.n // 2 // self.slots), level, scale,
                             he._turn != "before")

    def scaled(self, he: Evaluator, a: Ciphertext, scale: float,
               rescaled: bool = True) -> Ciphertext:
        """As apply(), but the result has the given scale, and keys are cut to the level of a.
        rescaled: whether it is rescaled to that scale already."""
        factor = scale * he.ring.moduli[a.level] / a.scale
        plain = he._on.keep(("scaled", self, a.level, factor),
                            lambda: self._encoded(he, a.level, factor))
        he.load_keys(self.rotations, a.level)
        result = self.product(he, a, plain)
        if rescaled:
            result = he.rescale(result)
            result.scale = scale
        return result

    def apply(self, he: Evaluator, a: Ciphertext) -> Ciphertext:
        """Evaluator.apply()."""
        return he.rescale(self.product(he, a, self.prepared(he, a.level, None)))

    def product(self, he: Evaluator, a: Ciphertext, plain: Plaintext) -> Ciphertext:
        """The transform of a, of the same level, by diagonals from prepared()."""
        paths = [[he._path(k) for k in steps] for steps in (self._babies, self._giants)]
        first = plain.level - a.level  # its special primes
        if first and max(len(path) for each in paths for path in each) < 2:
            total = self._hoisted(he, a, plain, *[[path[0] if path else 1 for path in each]
                                                  for each in paths])
            return he._new(a, total, a.scale * plain.scale)
        babies = he._joined(he.rotations(a, self._babies), None)
        sums = self._sums(he, babies, plain.tensor[:, :, first:], he.special)
        stack = he._new(a, sums, a.scale * plain.scale)
        return he._rotated_sum(list(stack), self._giants)

    def _sums(self, he: Evaluator, babies: Any, diagonals: Any, first: int) -> Any:
        """[2, babies, k, n] -> [2, giants, k, n], modulo the primes from `first` on."""
        shape = (len(self._giants), len(self._babies), *babies.shape[2:])
        grid = he._engine.reshape(diagonals, shape)
        sums = he._engine.zeros((2, shape[0], *shape[2:]), np.int64)
        moduli = he._on.moduli(first, first + shape[2])
        for part in range(2):
            he._engine.modmul_axis_sum(grid, babies[part], moduli, sums[part], -1)
        return sums

    def _hoisted(self, he: Evaluator, a: Ciphertext, plain: Plaintext, babies: List[int],
                 giants: List[int]) -> Any:
        """The sum with fewer divisions by the special primes' product: one for each giant step, and
        one at the end (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021)."""
        on, engine, end = he._on, he._engine, he.special + a.level + 1
        column = on.column(0, end)
        turned, spread = on.empty(2, len(babies), end, he.ring.n), on.spread(a.tensor[1:])
        for i, j in he._cuts(babies, a.level):
            on.products(spread, he._keys_at(a.level, babies[i:j]), a.tensor[:1],
                        he._indices(babies[i:j]), out=turned[:, i:j])
        for i in [i for i, element in enumerate(babies) if element == 1]:
            engine.set_const_val(turned[:, i:i + 1, :he.special], 0)
            engine.modsum(a.tensor, 0, he._column(a.level + 1), turned[:, i:i + 1, he.special:])
        sums = self._sums(he, turned, plain.tensor, 0)
        parts = [sums[:, i:i + 1] for i, element in enumerate(giants) if element == 1]
        for i, j in he._cuts(giants, a.level):
            c = on.divide(on.rounded(sums[1:, i:j]))
            parts.append(on.add_up(on.products(
                on.spread(c), he._keys_at(a.level, giants[i:j]), sums[:1, i:j],
                he._indices(giants[i:j])), 0))
        for part in parts[1:]:
            engine.modsum(parts[0], part, column, parts[0])
        return on.divide(on.rounded(parts[0]))
