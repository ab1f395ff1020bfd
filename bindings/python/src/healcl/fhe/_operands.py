# SPDX-License-Identifier: Apache-2.0
"""Ciphertexts and plaintexts on a device."""
from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple, TypeVar

import numpy as np

from .._errors import DtypeError

if TYPE_CHECKING:
    from ._evaluator import Evaluator

_Self = TypeVar("_Self", bound="Operand")


class Operand:
    """A tensor of an evaluator, with its scale; or a stack of several with equal levels and scales.

        stack[0], len(stack)                    # a slice of the tensor, and the number of slices
    """

    __array_ufunc__ = None  # NumPy's arithmetic would copy, and knows no moduli
    __hash__ = object.__hash__

    def __init__(self, evaluator: Evaluator, tensor: Any, scale: float, slots: int,
                 place: Optional[Tuple[Any, int]] = None) -> None:
        """place: if it is a slice, the whole tensor, and its place along axis 1 of that."""
        self._evaluator, self._tensor, self._scale, self._slots = evaluator, tensor, scale, slots
        self._place = place or (tensor, 0)

    def __eq__(self, other: object) -> bool:
        raise DtypeError("== does not compare what is encrypted: compare residues, from read()")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise DtypeError("the numbers of a %s on a device cannot be converted to an array: "
                         "read() copies its residues, store() returns the library's object" %
                         type(self).__name__.lower())

    def __len__(self) -> int:
        return int(self._tensor.shape[1])

    def __getitem__(self: _Self, index: int) -> _Self:
        count, i = len(self), operator.index(index)
        if not -count <= i < count:
            raise IndexError("index %d is out of range for a stack of %d" % (i, count))
        (stack, first), i = self._place, i % count
        tensor = self._tensor if count == 1 else self._tensor[:, i:i + 1]
        return type(self)(self._evaluator, tensor, self._scale, self._slots, (stack, first + i))

    def __iter__(self: _Self) -> Iterator[_Self]:
        return (self[i] for i in range(len(self)))

    @property
    def tensor(self) -> Any:
        """The residues on the device, int64 [parts, len(self), level + 1, n]. This tensor belongs
        to the evaluator's queue, whose operations can use it.

            he.queue.ops.modsum(a.tensor, b.tensor, column)
        """
        return self._tensor

    @property
    def scale(self) -> float:
        """The scale of its numbers. It can be set.

            linear.scale = cubic.scale          # they differ by less than a millionth
        """
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale = self._evaluator._check_scale(scale, self.level + 1)

    @property
    def level(self) -> int:
        """The number of primes that can still be dropped, from 0: SEAL's chain index.

            he.mod_switch(a, 0).level           # 0
        """
        return int(self._tensor.shape[2]) - 1

    def read(self) -> np.ndarray:
        """Copies the residues, int64 [parts, level + 1, n] in [0, q), in the ring's order. A
        stack gives [parts, len(self), level + 1, n].

            np.array_equal(c.read(), other.read())
        """
        array = np.asarray(self._evaluator._engine.device_to_host(self._tensor))
        return array[:, 0] if len(self) == 1 else array

    def __repr__(self) -> str:
        parts = self._tensor.shape[0]
        return "<healcl.fhe.%s: %s%slevel %d, scale 2^%.2f>" % (
            type(self).__name__, "%d parts, " % parts if parts > 1 else "",
            "%d of " % len(self) if len(self) > 1 else "", self.level, math.log2(self.scale))


def runs(*lists: Sequence[Operand]) -> Iterator[Tuple[int, List[Any]]]:
    """Cuts lists of equal length into runs of operands that are adjacent slices of tensors. Yields
    the number of a run's first operand, and for each list a tensor [parts, c, k, n]."""
    first, count = 0, len(lists[0])
    for end in range(1, count + 1):
        if end < count and all(_follows(each[end - 1], each[end]) for each in lists):
            continue
        yield first, [_slice(each[first], end - first) for each in lists]
        first = end


def _follows(a: Operand, b: Operand) -> bool:
    (stack, i), (other, j) = a._place, b._place
    return stack is other and len(a) == len(b) and j == i + len(a) and a.level == b.level


def _slice(first: Operand, count: int) -> Any:
    stack, i = first._place
    return first._tensor if count == 1 else \
        stack[:, i:i + count * len(first), :first.level + 1]


class Plaintext(Operand):
    """A plaintext on a device, an operand of +, - and *; from load() or encode().

        c + he.encode([1.5, 2.5], c)
    """

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Ciphertext):
            return NotImplemented  # the ciphertext's operators take plaintexts
        return self._evaluator._ciphertext(other)  # which raises what is wrong

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__


class Ciphertext(Operand):
    """A ciphertext on a device; from Evaluator.load(), or from operations.

    +, - and * take ciphertexts and plaintexts of the same level, and numbers. Scales of terms must
    be equal, except for a part of 2^-30. Scales of factors are multiplied. A product has three
    parts; relinearize() makes two of them. A product with an integer is exact and keeps the scale.
    Other numbers have the last prime as their scale, so that rescale() restores the ciphertext's.

        c = he.rescale(he.relinearize(a * b + b * b))
        c = 3 * c + he.mod_switch(b, c.level) - 0.5
    """

    @property
    def size(self) -> int:
        """The number of its parts: 2, or 3 for a product.

            (a * b).size                        # 3
        """
        return int(self._tensor.shape[0])

    def __add__(self, other: Any) -> Ciphertext:
        return self._evaluator.add(self, other)

    def __sub__(self, other: Any) -> Ciphertext:
        return self._evaluator.subtract(self, other)

    def __rsub__(self, other: Any) -> Ciphertext:
        return self._evaluator.add(-self, other)

    def __mul__(self, other: Any) -> Ciphertext:
        return self._evaluator.multiply(self, other)

    def __neg__(self) -> Ciphertext:
        return self._evaluator.negate(self)

    __radd__, __rmul__ = __add__, __mul__
