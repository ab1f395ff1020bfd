# SPDX-License-Identifier: Apache-2.0
"""Transforms, base conversion and key switching, composed of HEAL's operations."""
from __future__ import annotations

import math
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Dict, Hashable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .._device import AnyDevice, device_of, reference
from .._engine import heal_engine
from .._errors import ArgumentError, DtypeError, ShapeError, integer
from ._ring import Ring


def digit_ranges(primes: int, dnum: int) -> List[range]:
    """Divides 0 to primes - 1 into at most dnum ranges, one for each digit. All have the same size
    except the last."""
    size = -(-primes // dnum)
    return [range(first, min(first + size, primes)) for first in range(0, primes, size)]


class Arithmetic:
    """Residues on a device. Tensors are int64 [r, c, k, n]: values in the ring's order, in [0, q),
    of r parts of c ciphertexts.

    engine   the Engine or Recorder whose operations are called
    ring     has the special primes first: with them, the primes of each level are one range
    special  the number of special primes
    dnum     the number of digits of the full modulus in key switching
    nearest  whether rescale() and switch() round to the nearest integer; else they round down. With
             s special primes, switch() differs from that by at most s/2, or by less than s

    Tables and constants are uploaded when they are first used. The number of calls matters: a
    launch takes a device about as long as 1,000 butterflies.
    """

    def __init__(self, engine: Any, ring: Ring, special: int, dnum: int,
                 nearest: Tuple[bool, bool]) -> None:
        self.engine, self.ring, self.special, self.nearest = engine, ring, special, nearest
        self.digits = digit_ranges(len(ring.moduli) - special, dnum)
        self._kept: Dict[Hashable, Any] = {}
        # Only recorders have these two. An engine looks for names that it lacks for 0.6 ms.
        self.preparation = getattr(engine, "preparation", nullcontext)
        self._upload_table = getattr(engine, "upload_table", engine.host_to_device)
        moduli = np.array(ring.moduli)
        self._tables = {**ring.tables, "column": moduli[:, None],
                        "minus_n_inv": moduli - ring.n_inverse}

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Calls `make` once for each key, and keeps its result."""
        kept = self._kept.get(key)
        if kept is None:
            with self.preparation():
                kept = self._kept[key] = make()
        return kept

    def drop(self, key: Hashable) -> None:
        """Drops what keep() keeps for the key."""
        self._kept.pop(key, None)

    def upload(self, array: Any, is_input: bool = True) -> Any:
        """Uploads an integer array. is_input: it is a key or a ciphertext, whose elements a
        recording may leave out."""
        upload = self.engine.host_to_device if is_input else self._upload_table
        return upload(np.ascontiguousarray(array, np.int64))

    def constant(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Uploads the array that `make` returns, once for each key."""
        return self.keep(key, lambda: self.upload(make(), False))

    def empty(self, *shape: int) -> Any:
        return self.engine.empty(shape, np.int64)

    # ---- tables of the moduli first to end - 1

    def _table(self, name: str, first: int, end: int) -> Any:
        return self.keep((name, first, end), lambda: self.constant(
            name, lambda: self._tables[name])[first:end])

    def moduli(self, first: int, end: int) -> Any:
        """The moduli, int64 [k]."""
        return self._table("q", first, end)

    def column(self, first: int, end: int) -> Any:
        """The moduli, int64 [k, 1]."""
        return self._table("column", first, end)

    # ---- transforms

    def transform(self, a: Any, first: int, end: int, out: Any = None, tile: bool = False) -> Any:
        """Coefficients [r, c, k, n], or with tile [r, c, 1, n] for all moduli -> values
        [r, c, k, n], in out or a new tensor."""
        return self.engine.ntt(a, -1, None, None, self.moduli(first, end), None, None,
                               self._table("psi", first, end), out, int(tile), 1)

    def encoded(self, array: np.ndarray, first: int, end: int) -> Any:
        """Coefficients [m, n], the same for all moduli, or [m, k, n] -> values [1, m, k, n]."""
        with self.preparation():
            a = self.upload(array.reshape(1, len(array), -1, self.ring.n), False)
            return self.transform(a, first, end, tile=array.ndim == 2)

    def coefficients(self, a: Any, first: int, end: int, out: Any = None,
                     negative: bool = False) -> Any:
        """Values [r, c, k, n] -> coefficients, or their negatives, in out or a new tensor."""
        order = self.constant("perm", lambda: self._tables["perm"])
        scale = self._table("minus_n_inv" if negative else "n_inv", first, end)
        return self.engine.intt(a, -1, order, None, self.moduli(first, end), None, None,
                                self._table("ipsi", first, end), scale, out, 0)

    # ---- base conversion

    def prepare(self, a: Any, sources: List[range]) -> None:
        """Multiplies coefficients [r, c, s, n] by (D/d)^-1 modulo each prime d. The axis s has the
        primes of all sources, one after the other; D is the product of the prime's source."""
        moduli = self.ring.moduli

        def factors() -> np.ndarray:
            return np.array([[pow(math.prod(moduli[j] for j in source if j != i), -1, moduli[i])]
                             for source in sources for i in source])

        if any(len(source) > 1 for source in sources):
            self.engine.modmul(a, self.constant(("factors", *sources), factors),
                               self.column(sources[0].start, sources[-1].stop), a)

    def convert(self, a: Any, source: range, first: int, end: int, out: Any = None,
                by: Optional[int] = None) -> Any:
        """Fast base conversion (Bajard, Eynard, Hasan, Zucca 2016). Takes prepared coefficients
        [r, c, s, n] of x modulo the source's primes, of product D. Returns x + e D, 0 <= e < s,
        modulo the primes first to end - 1, in a new tensor or in out [r, c, k, n], which must be
        zeros. by: divides the result by -by. If a has several such x along s, adds them up."""
        engine, moduli = self.engine, self.ring.moduli
        rows, count, width = a.shape[0] * a.shape[1], a.shape[2], end - first
        full = math.prod(moduli[i] for i in source)

        def weights() -> np.ndarray:
            return np.array([[[full // moduli[i] * (1 if by is None else -pow(by, -1, q)) % q]
                              for q in moduli[first:end]] for i in source] * (count // len(source)))

        column = self.constant(("weights", source, first, end, by, count), weights)
        if count == 1:
            return engine.modmul(a, column, self.column(first, end), out)
        if out is None:
            out = engine.zeros((*a.shape[:2], width, self.ring.n), np.int64)
        engine.modmul_axis_sum(
            engine.expand(engine.reshape(a, (rows, count, 1, self.ring.n)), 2, width),
            engine.expand(column, 2, self.ring.n), self.moduli(first, end),
            engine.reshape(out, (rows, width, self.ring.n)), -1)
        return out

    # ---- division and key switching

    def rescale(self, a: Any, out: Any = None) -> Any:
        """Values [r, c, k, n] modulo the first k primes that are not special -> values
        [r, c, k - 1, n], divided by the last of these primes, in out or a new tensor."""
        engine, moduli, k = self.engine, self.ring.moduli, a.shape[2]
        last = self.special + k - 1
        first, q = self.special, moduli[last]
        column = self.column(first, last)
        x = self.coefficients(a[:, :, k - 1:], last, last + 1, negative=self.nearest[0])
        if self.nearest[0]:  # -x in [-q/2, q/2], as (-x + q/2) modulo q, less q/2
            engine.modsum(x, q >> 1, q, x)
            x = engine.modsum(x, self.constant(("half", last), lambda: [
                [-(q >> 1) % m] for m in moduli[first:last]]), column)
        else:
            x = engine.modneg(x, column)
        self.transform(x, first, last, x)
        engine.modsum(a[:, :, :k - 1], x, column, x)
        return engine.modmul(x, self.constant(("by", last), lambda: [
            [pow(q, -1, m)] for m in moduli[first:last]]), column, x if out is None else out)

    def key(self, array: np.ndarray) -> Any:
        """Converts a key [2, digits, special + k, n] for switch(). Residues modulo other than the
        special primes are divided by the product of the special primes."""
        moduli, special, end = self.ring.moduli, self.special, array.shape[2]
        product = math.prod(moduli[:special])
        by = self.constant("by", lambda: [[1]] * special + [
            [pow(product, -1, q)] for q in moduli[special:]])
        with self.preparation():
            return self.engine.modmul(self.upload(array), by[:end], self.column(0, end))

    def cut(self, key: Any, level: int) -> Any:
        """Returns a view of a key, cut to the digits and primes of a level."""
        digits = sum(digit.start <= level for digit in self.digits)
        return key[:, :digits, :self.special + level + 1]

    def _start(self) -> Any:
        """Values [2, 1, all primes, n] that make a division by the special primes' product P round
        to the nearest integer. They add P/2 modulo P, and subtract P/2 from the quotient. With s
        special primes they use s P/2, because convert() adds (s - 1) P/2 on average."""
        engine, moduli, special = self.engine, self.ring.moduli, self.special
        count, product = len(moduli), math.prod(moduli[:special])
        half = special * product >> 1
        halves = self.upload([[half % q] for q in moduli[:special]] + [
            [half * pow(product, -1, q) % q] for q in moduli[special:]], False)
        out = engine.modsum(engine.zeros((1, 1, count, self.ring.n), np.int64), halves,
                            self.column(0, count))
        return engine.expand(self.transform(out, 0, count, out), 0, 2)

    def _rounding(self, parts: int, count: int, end: int) -> Any:
        start = self.keep(("start", end, count), lambda: self.engine.expand(
            self.keep("start", self._start)[:, :, :end], 1, count))
        return start[:parts] if parts == 1 else start

    def rounded(self, total: Any) -> Any:
        """Adds to [1 or 2, c, special + k, n], in place, what makes divide() round."""
        parts, count, end = total.shape[:3]
        if self.nearest[1]:
            self.engine.modsum(total, self._rounding(parts, count, end), self.column(0, end), total)
        return total

    def products(self, spread: Any, keys: Sequence[Any], added: Any, indices: Any = None,
                 rounded: bool = False, out: Any = None) -> Any:
        """Switches parts from the keys' old secrets to the new one (Gentry, Halevi, Smart 2012),
        before the division by the special primes' product.

        spread   from spread(), of one part for all keys, or one part for each key
        keys     c keys from key(), cut to the primes of spread
        added    [1 or 2, c or 1, k, n], added to the first parts of the quotient. It may begin with
                 residues of the dividend modulo the special primes
        indices  int64 [1, c, 1, n], a rotation; or None
        rounded  whether to call rounded(), too

        Returns [2, c, special + k, n], in a new tensor or, only with indices, in out: the dividend
        modulo the special primes, and values that are already divided modulo the others.
        """
        engine, count, end = self.engine, len(keys), spread.shape[2]
        if rounded and self.nearest[1] and indices is None:
            total = engine.contiguous(self._rounding(2, count, end))  # a copy, because it repeats
        else:
            total = engine.zeros((2, count, end, self.ring.n), np.int64)
        first = end - added.shape[2]
        target = total[:added.shape[0], :, first:]
        engine.modsum(target, added, self.column(first, end), target)
        moduli = self.moduli(0, end)
        if count > 2 and all(key is keys[0] for key in keys):  # a call for each half of the key
            parts = engine.moveaxis(spread, 1, 0)
            for half in range(2):
                engine.modmul_axis_sum(parts, keys[0][half], moduli, total[half], -1)
        else:
            for i, key in enumerate(keys):
                engine.modmul_axis_sum(key, spread[:, i % spread.shape[1]], moduli, total[:, i], -1)
        if indices is None:
            return total
        total = engine.take_along_axis(total, indices, 3, out)  # which negates coefficients
        return self.rounded(total) if rounded else total

    def divide(self, total: Any, out: Any = None, summed: bool = False) -> Any:
        """Divides the result of products(), [1 or 2, c, special + k, n] -> [1 or 2, c, k, n].
        summed: also adds up the quotients, which takes less time and gives the same bits."""
        special, (parts, count, end) = self.special, total.shape[:3]
        rest, x = total[:, :, special:], self.coefficients(total[:, :, :special], 0, special)
        self.prepare(x, [range(special)])
        if summed:  # before the transforms: one for all
            rest = self.add_up(rest, special)
            x = self.engine.reshape(x, (parts, 1, count * special, self.ring.n))
        x = self.convert(x, range(special), special, end, by=math.prod(self.ring.moduli[:special]))
        return self.engine.modsum(rest, self.transform(x, special, end, x),
                                  self.column(special, end), x if out is None else out)

    def switch(self, spread: Any, keys: Sequence[Any], added: Any, indices: Any = None,
               out: Any = None, summed: bool = False) -> Any:
        """Calls products(), then divide()."""
        return self.divide(self.products(spread, keys, added, indices, True), out, summed)

    def add_up(self, a: Any, first: int) -> Any:
        """Values [r, c, k, n] modulo the primes from `first` on -> their sums [r, 1, k, n].
        Overwrites the values."""
        count, column = a.shape[1], self.column(first, first + a.shape[2])
        while count > 1:
            half = count // 2
            self.engine.modsum(a[:, :half], a[:, count - half:count], column, a[:, :half])
            count -= half
        return a[:, :1]

    def spread(self, c: Any) -> Any:
        """Parts [1, c, k, n] -> values of their digits, modulo all primes, [digits, c, end, n]."""
        engine, special, k, n = self.engine, self.special, c.shape[2], self.ring.n
        end = special + k
        digits = [range(special + digit.start, special + min(digit.stop, k))
                  for digit in self.digits if digit.start < k]
        x = self.coefficients(c, special, end)
        if len(digits) == k:
            x = engine.reshape(x, (k, 1, 1, n)) if c.shape[1] == 1 else \
                engine.moveaxis(engine.moveaxis(x, 0, 2), 0, 1)
            return self.transform(x, 0, end, tile=True)
        self.prepare(x, digits)
        spread = engine.zeros((len(digits), c.shape[1], end, n), np.int64)
        for i, digit in enumerate(digits):
            self.convert(x[:, :, digit.start - special:digit.stop - special], digit, 0, end,
                         spread[i:i + 1])
        return self.transform(spread, 0, end, spread)


# ---- on arrays


def check_layout(ring: Ring, special: int, dnum: Optional[int],
                 *roundings: str) -> Tuple[int, int]:
    """Checks arguments, and returns (special, dnum)."""
    if not isinstance(ring, Ring):
        raise DtypeError("a ring must be a healcl.fhe.Ring, not %s" % type(ring).__name__)
    special = integer(special, "the number of special primes")
    primes = len(ring.moduli) - special
    if special < 0 or primes < 1:
        raise ArgumentError("of %d moduli, at most %d can be special, not %d" %
                            (len(ring.moduli), len(ring.moduli) - 1, special))
    dnum = primes if dnum is None else integer(dnum, "dnum")
    if not 1 <= dnum <= primes:
        raise ArgumentError("%d primes can make 1 to %d digits, not %d" % (primes, primes, dnum))
    for each in roundings:
        if each not in ("nearest", "down"):
            raise ArgumentError("rounding must be 'nearest' or 'down', not %r" % (each,))
    return special, dnum


def special_first(ring: Ring, special: int) -> Ring:
    """Returns the ring with its special primes moved from the end to the front."""
    count = len(ring.moduli)
    return ring.pick([*range(count - special, count), *range(count - special)])


def check_special(ring: Ring, special: int, dnum: int) -> None:
    """Refuses special primes that are too small for key switching."""
    primes = len(ring.moduli) - special
    if not special:
        raise ArgumentError("key switching needs at least one special prime")
    bits, widest = (math.prod(part).bit_length() for part in (
        ring.moduli[primes:], max((ring.moduli[digit.start:digit.stop] for digit in
                                   digit_ranges(primes, dnum)), key=math.prod)))
    if bits < widest:
        raise ArgumentError("the special primes have %d bits, but a digit of key switching has "
                            "%d: use more special primes, or a larger dnum" % (bits, widest))


def check_key(ring: Ring, special: int, dnum: int, key: Any, what: str) -> int:
    """The level that a key [digits, 2, level + 1 + special, n] reaches. Checks only its shape."""
    shape = np.shape(key)
    primes = len(ring.moduli) - special
    level = shape[2] - special - 1 if len(shape) == 4 else primes - 1
    digits = sum(digit.start <= level for digit in digit_ranges(primes, dnum))
    if not 0 <= level < primes or shape != (digits, 2, level + 1 + special, ring.n):
        raise ShapeError("%s has the shape %s, not %s" % (
            what, list(shape), [len(digit_ranges(primes, dnum)), 2, len(ring.moduli), ring.n]))
    return level


def packed_key(ring: Ring, special: int, dnum: int, key: Any, level: int, what: str) -> np.ndarray:
    """A key [digits, 2, k, n] of the ring's moduli -> [2, digits, special + level + 1, n], with
    the special primes first."""
    reach, primes = check_key(ring, special, dnum, key, what), len(ring.moduli) - special
    which = [*range(reach + 1), *range(primes, len(ring.moduli))]
    array = ring.check(key, tuple(ring.moduli[i] for i in which), 4, what)
    digits = sum(digit.start <= level for digit in digit_ranges(primes, dnum))
    return np.roll(array.transpose(1, 0, 2, 3), special, axis=2)[:, :digits, :special + level + 1]


@contextmanager
def _on(device: AnyDevice, ring: Ring, special: int, dnum: int,
        rounding: str) -> Iterator[Arithmetic]:
    engine = heal_engine(device, expand="spec")
    with engine.queue:
        yield Arithmetic(engine, special_first(ring, special), special, dnum,
                         (rounding == "nearest",) * 2)


def _transformed(name: str, a: Any, ring: Ring, device: AnyDevice) -> np.ndarray:
    check_layout(ring, 0, 1)
    array = ring.check(a, ring.moduli, max(2, np.ndim(a)), "the polynomial")
    opened = device_of(device)
    queue = vars(opened).get("_transforms") or opened.queue()
    if opened is device:
        vars(opened)["_transforms"] = queue  # which keeps the ring's tables
    out = getattr(queue.ops, name)(queue.array(array.reshape(-1, 1, *array.shape[-2:])), ring)
    return np.asarray(out.read().reshape(array.shape))


def ntt(coefficients: Any, ring: Ring, device: AnyDevice = reference) -> np.ndarray:
    """Coefficients of polynomials, int64 [..., k, n] in [0, q) -> values, in the ring's order.

        fhe.ntt([[0, 1] + [0] * 254], ring)     # of x: psi to the power of 2 r + 1

    A device that is open keeps the tables of each ring.
    """
    return _transformed("ntt", coefficients, ring, device)


def intt(values: Any, ring: Ring, device: AnyDevice = reference) -> np.ndarray:
    """Values, int64 [..., k, n] in [0, q), in the ring's order -> coefficients: inverts ntt().

        fhe.intt(fhe.ntt(a, ring), ring)        # a
    """
    return _transformed("intt", values, ring, device)


def base_convert(coefficients: Any, ring: Ring, source: int,
                 device: AnyDevice = reference) -> np.ndarray:
    """Fast base conversion of coefficients to other primes (Bajard, Eynard, Hasan, Zucca 2016).

    coefficients  int64 [source, n]: x in [0, D) modulo the ring's first primes, of product D
    ring          these primes, then k others

    Returns int64 [k, n]: x + e D modulo the others, 0 <= e < source.

        fhe.base_convert(x, fhe.Ring(256, [7681, 10753, 11777]), 2)     # [1, 256]
    """
    check_layout(ring, 0, 1)
    source, count = integer(source, "the number of source primes"), len(ring.moduli)
    if not 0 < source < count:
        raise ArgumentError("of %d primes, 1 to %d can be the source, not %d" %
                            (count, count - 1, source))
    array = ring.check(coefficients, ring.moduli[:source], 2, "the polynomial")
    with _on(device, ring, 0, 1, "down") as on:
        x = on.upload(array[None, None])
        on.prepare(x, [range(source)])
        return np.asarray(on.convert(x, range(source), source, count).read()[0, 0])


def rescale(values: Any, ring: Ring, rounding: str = "nearest",
            device: AnyDevice = reference) -> np.ndarray:
    """Divides polynomials by the ring's last prime, and drops that prime.

    values    int64 [r, k, n] in [0, q), in the ring's order
    rounding  "nearest", as SEAL does, or "down"

    Returns int64 [r, k - 1, n].

        fhe.rescale(ciphertext, ring)           # [2, 3, 8192] -> [2, 2, 8192]
    """
    check_layout(ring, 1, None, rounding)
    array = ring.check(values, ring.moduli, 3, "the ciphertext")
    with _on(device, ring, 0, 1, rounding) as on:
        return np.asarray(on.rescale(on.upload(array[:, None])).read()[:, 0])


def key_switch(values: Any, key: Any, ring: Ring, special: int = 1, dnum: Optional[int] = None,
               rounding: str = "nearest", device: AnyDevice = reference) -> np.ndarray:
    """Switches a part of a ciphertext to another key (Gentry, Halevi, Smart 2012; Han, Ki 2020).

    values    int64 [k, n] in [0, q): modulo the first k primes of the ring, in its order
    key       int64 [digits, 2, primes of the ring, n], in the same order. key[i, 0] + key[i, 1] s
              is P g t plus a small error. s is the new secret, t the old one, and g the integer
              that is 1 modulo the primes of digit i and 0 modulo the others
    ring      the primes of ciphertexts, then the special primes, of product P
    special   the number of special primes
    dnum      the number of digits into which the primes of ciphertexts are divided, in order; all
              have the same size except the last. None: each prime is a digit, as in SEAL
    rounding  of the division by P: "nearest", as SEAL does, or "down"

    Returns int64 [2, k, n], to be added to the other part.

        c0, c1 = fhe.key_switch(d2, relinearization_key, ring)
    """
    special, dnum = check_layout(ring, special, dnum, rounding)
    check_special(ring, special, dnum)
    array = np.asarray(values)
    count = array.shape[0] if array.ndim == 2 else 0
    if not 0 < count <= len(ring.moduli) - special:
        raise ShapeError("the polynomial has the shape %s, not [1 to %d, %d]" % (
            list(array.shape), len(ring.moduli) - special, ring.n))
    array = ring.check(array, ring.moduli[:count], 2, "the polynomial")
    packed = packed_key(ring, special, dnum, key, count - 1, "the key")
    with _on(device, ring, special, dnum, rounding) as on:
        none = on.engine.zeros((1, 1, *array.shape), np.int64)
        switched = on.switch(on.spread(on.upload(array[None, None])), [on.key(packed)], none)
        return np.asarray(switched.read()[:, 0])
