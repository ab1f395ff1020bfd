# SPDX-License-Identifier: Apache-2.0
"""Random valid programs over every operation and argument form.

The operands come in random layouts (slices, moved, expanded, reshaped and flattened
views), the outputs are new tensors, inputs, or windows into the memory of inputs."""

import math

import numpy as np

from transcript_builder import INT64_MAX, Handle, Ring, ntt_primes

DTYPES = ("int8", "int32", "int64")
WIDE = ("int32", "int64", "int64")
POOL_SIZE = 24
AXES = 16  # of a tensor, at most


def extent(shape):
    return math.prod(shape)


class RandomProgram:
    """Appends random operations to a Transcript. All pooled tensors are defined."""

    def __init__(self, transcript, elements=300):
        self.t, self.rng = transcript, transcript.rng
        self.elements = elements  # how many an operand has at most, about
        self.longest = max(9, int(elements**0.5) // 2)  # axis
        self.pool = []  # names that are bound, newest last
        self.segment_open = False

    def run(self, operations, loops=0):
        """`operations` random steps, then downloads of every tensor that is left. loops: the weight
        of step_loop."""
        steps = [step for step, weight in self.STEPS for _ in range(weight)]
        steps += [RandomProgram.step_loop] * loops
        for _ in range(operations):
            self.borders()
            self.rng.choice(steps)(self)
            while len(self.pool) > POOL_SIZE:
                self.drop(self.rng.choice(self.pool[:POOL_SIZE // 2]))
        if self.segment_open:
            self.t.segment_end()
        with self.t.segment("download everything"):
            for handle in self.pool:
                self.t.download(handle)

    def borders(self):
        """Now and then a segment starts or ends, or an entry does nothing."""
        if self.rng.chance(8):
            if self.segment_open:
                self.t.segment_end()
            else:
                self.t.segment_start("segment_%d" % self.rng.between(1, 5))
            self.segment_open = not self.segment_open
        elif self.rng.chance(3):
            self.t.nothing()

    # Names

    def keep(self, handle):
        """Adds a bound name to the pool, once."""
        self.pool = [other for other in self.pool if other.name != handle.name] + [handle]
        return handle

    def drop(self, handle):
        """Frees a name, by an entry or by an operation."""
        self.pool = [other for other in self.pool if other.name != handle.name]
        if self.rng.chance(25):
            self.t.op(self.rng.choice(("free_device_tensor", "_free_device_tensor")), handle)
        else:
            self.t.free(handle)

    def call(self, name, *args, rebind=False):
        """An operation under its name with or without underscore; sometimes its result gets
        one more name, with `rebind` perhaps one that is bound already. -> Handle"""
        rng, out = self.rng, None
        if rng.chance(20):
            name = name[1:] if name.startswith("_") else "_" + name
        if rng.chance(6):
            out = rng.choice(self.pool) if rebind and rng.chance(40) else self.t.new_handle()
        result = self.keep(self.t.op(name, *args, out=out))
        if rng.chance(7):
            self.t.download(result, none=rng.chance(70))
        return result

    def last_call(self, name, *args):
        """The call that a step was for: no operand is needed any more."""
        return self.call(name, *args, rebind=True)

    def maybe_drop(self, handle, percent=40):
        if self.rng.chance(percent) and any(other.name == handle.name for other in self.pool):
            self.drop(handle)

    # Values and shapes

    def shape(self, lowest=0, highest=5, share=1):
        """A random shape of rank lowest..highest; rarely empty, rarely of high rank. It has at
        most 1/share of the usual elements."""
        rng, limit = self.rng, self.elements // share
        rank = rng.between(lowest, highest)
        if rank >= 2 and rng.chance(15):
            return (rng.between(2, 5 if rank < 4 else 3),) * rank
        if rng.chance(4):
            rank = rng.between(9, 14)
        sizes = []
        for _ in range(rank):
            most = max(1, min(self.longest, limit // max(1, extent(sizes))))
            size = 1 if rng.chance(30) or rank > 8 and rng.chance(60) else rng.between(1, most)
            sizes.append(size)
        if rank and rng.chance(2):
            sizes[rng.between(0, rank - 1)] = 0
        return tuple(sizes)

    def values(self, shape, dtype, bounds=None):
        rng = self.rng
        if bounds:
            return rng.integers(bounds[0], bounds[1], shape).astype(dtype)
        if rng.chance(25):
            return rng.integers(-100, 100, shape).astype(dtype)
        return rng.extremes(shape, dtype)

    def modulus(self, dtype):
        largest = np.iinfo(dtype).max
        if self.rng.chance(30):
            return self.rng.choice((1, 2, 3, largest, largest - 1, (largest + 1) // 2))
        return self.rng.between(1, largest >> self.rng.between(0, 20))

    def moduli(self, shape, dtype):
        """A tensor's worth of valid moduli."""
        if self.rng.chance(60):
            flat = [self.modulus(dtype) for _ in range(extent(shape))]
            return np.array(flat, dtype=dtype).reshape(shape)
        return self.values(shape, dtype, (1, int(np.iinfo(dtype).max)))

    def scalar_modulus(self, dtype):
        """A modulus as INT: what it leaves must fit dtype."""
        return 2**31 if dtype == "int32" and self.rng.chance(5) else int(self.modulus(dtype))

    def scalar(self):
        return int(self.rng.extremes((1,))[0])

    # Layouts

    def upload(self, values):
        """values in a .npy file of any kind, sometimes of a wider type than the tensor's."""
        rng, dtype = self.rng, values.dtype.name
        stored = values.astype(rng.choice(DTYPES[DTYPES.index(dtype):])) if rng.chance(20) else values
        return self.keep(self.t.upload(stored, dtype=dtype, version=rng.choice((1, 1, 1, 2, 3)),
                                       fortran=rng.chance(25), big_endian=rng.chance(15)))

    def place(self, values, depth=None):
        """-> Handle of a tensor with these values in a random layout. Parents may stay in the
        pool, or their names be freed."""
        rng = self.rng
        if depth is None:
            depth = rng.choice((0, 0, 1, 1, 2, 3))
        if depth == 0 or values.size > 4 * self.elements:
            return self.upload(np.ascontiguousarray(values).reshape(values.shape))
        disguise = rng.choice((self.sliced, self.sliced, self.sliced, self.moved, self.moved,
                               self.reshaped, self.unsqueezed, self.squeezed, self.flattened,
                               self.referenced))
        return disguise(values, depth - 1) or self.place(values, depth - 1)

    def view(self, parent, name, *args):
        result = self.call(name, parent, *args)
        if result.name != parent.name:
            self.maybe_drop(parent)
        return result

    def sliced(self, values, depth):
        """A window of a larger tensor; perhaps one axis more, which an INT drops."""
        rng, picks, sizes = self.rng, [], []
        if values.ndim > 8:
            return None
        for size in values.shape:
            start, step, tail = rng.choice((0, 0, 1, 2)), rng.choice((1, 1, 1, 2, 3)), rng.between(0, 2)
            sizes.append(start + max(size - 1, 0) * step + min(size, 1) + tail)
            picks.append((start, start + max(size - 1, 0) * step + min(size, 1), step))
        if extent(sizes) > 4 * self.elements:
            return None
        inner = self.values(sizes, values.dtype)
        inner[tuple(slice(*pick) for pick in picks)] = values
        written = [self.spelled_slice(pick, size) for pick, size in zip(picks, sizes)]
        if rng.chance(30):
            at, size = rng.between(0, values.ndim), rng.between(1, 3)
            kept = rng.between(0, size - 1)
            wide = [self.values(sizes, values.dtype) for _ in range(size)]
            wide[kept] = inner
            inner = np.stack(wide, axis=at)
            written.insert(at, kept - size if rng.chance(50) else kept)
        if rng.chance(40):
            written.insert(rng.between(0, len(written)), Ellipsis)
        return self.view(self.place(inner, depth), "get_slice", written)

    def spelled_slice(self, pick, size):
        """Returns a slice in another spelling: nulls, negative or clamped bounds."""
        rng, (start, stop, step) = self.rng, pick
        if start == 0 and rng.chance(40):
            start = rng.choice((None, -size - 3))
        elif 0 < start < size and rng.chance(30):
            start -= size
        if stop == size and rng.chance(50):
            stop = rng.choice((None, size + 7, INT64_MAX))
        elif 0 < stop < size and rng.chance(30):
            stop -= size
        if step == 1 and rng.chance(40):
            step = None
        return slice(start, stop, step)

    def moved(self, values, depth):
        if values.ndim < 2:
            return None
        rank = values.ndim
        source, target = self.rng.between(0, rank - 1), self.rng.between(0, rank - 1)
        inner = self.place(np.moveaxis(values, target, source), depth)
        signed = [axis - rank if self.rng.chance(40) else axis for axis in (source, target)]
        return self.view(inner, "moveaxis", *signed)

    def reshaped(self, values, depth):
        shape = list(values.shape)
        inner = self.place(values.reshape(self.other_shape(values.shape)), depth)
        if values.size and self.rng.chance(40) and shape:
            shape[self.rng.between(0, len(shape) - 1)] = -1
        return self.view(inner, "reshape", shape)

    def other_shape(self, shape):
        """Another shape with as many elements."""
        rng, count = self.rng, extent(shape)
        if not count:
            return tuple(reversed(shape))
        sizes = []
        while count > 1 and len(sizes) < 5:
            factors = [f for f in range(1, count + 1) if count % f == 0][:6] + [count]
            factor = rng.choice(factors)
            sizes.append(factor)
            count //= factor
        return tuple(sizes + [count] if count > 1 else sizes)

    def unsqueezed(self, values, depth):
        ones = [axis for axis, size in enumerate(values.shape) if size == 1]
        if not ones:
            return None
        axis = self.rng.choice(ones)
        inner = self.place(np.squeeze(values, axis), depth)
        return self.view(inner, "unsqueeze", axis - values.ndim if self.rng.chance(40) else axis)

    def squeezed(self, values, depth):
        if values.ndim == AXES:
            return None
        axis, rank = self.rng.between(0, values.ndim), values.ndim + 1
        inner = self.place(np.expand_dims(values, axis), depth)
        return self.view(inner, "squeeze", axis - rank if self.rng.chance(40) else axis)

    def flattened(self, values, depth):
        if values.ndim in (0, AXES):
            return None
        rng, axis = self.rng, self.rng.between(0, values.ndim - 1)
        size = values.shape[axis]
        factors = [f for f in range(1, size + 1) if size % f == 0] or [1]
        factor = rng.choice(factors)
        split = values.shape[:axis] + (factor, size // factor) + values.shape[axis + 1:]
        inner = self.place(values.reshape(split), depth)
        last = axis + 1 - len(split) if rng.chance(40) else axis + 1
        return self.view(inner, "flatten", axis, last)

    def referenced(self, values, depth):
        return self.view(self.place(values, depth), self.rng.choice(("new_reference", "contiguous")))

    # Operands and outputs

    def draw(self, shape, dtype, bounds=None):
        """-> Handle of a defined tensor: a window of a pooled one or of a larger new one that
        an output may overlap, an expanded one, or a new one in any layout."""
        rng = self.rng
        if bounds is None and rng.chance(45):
            window = self.window(shape, dtype, self.pool)
            if window:
                return window
        if bounds is None and 0 < len(shape) < 6 and extent(shape) and rng.chance(25):
            margins = [size + rng.choice((0, 1, 1, 2)) for size in shape]
            parent = self.upload(self.values(margins, dtype))
            return self.window(shape, dtype, [parent])
        wide = [axis for axis, size in enumerate(shape) if size > 1]
        if wide and rng.chance(20):
            axis = rng.choice(wide)
            thin = shape[:axis] + (1,) + shape[axis + 1:]
            parent = self.place(self.values(thin, dtype, bounds))
            signed = axis - len(shape) if rng.chance(40) else axis
            return self.view(parent, "expand", signed, shape[axis])
        return self.place(self.values(shape, dtype, bounds))

    def window(self, shape, dtype, handles):
        """-> Handle of a view with that shape of one of the handles' memory, or None."""
        rng, found = self.rng, []
        for handle in handles:
            array = self.t.array(handle)
            if array.dtype == dtype and array.ndim == len(shape) and all(
                    have >= want for have, want in zip(array.shape, shape)):
                found.append(handle)
        if not found:
            return None
        handle = rng.choice(found)
        array = self.t.array(handle)
        if array.shape == tuple(shape) and rng.chance(50):
            return handle
        picks = []
        for have, want in zip(array.shape, shape):
            step = rng.between(1, max(1, min(3, have // want if want else 1)))
            span = max(want - 1, 0) * step + min(want, 1)
            start = rng.between(0, have - span)
            picks.append(self.spelled_slice((start, start + span, step), have))
        return self.call("get_slice", handle, picks)

    def overlaps_itself(self, handle):
        array = self.t.array(handle)
        return array.size and any(stride == 0 and size > 1
                                  for stride, size in zip(array.strides, array.shape))

    def output(self, shape, dtype, inputs, accumulates=False):
        """-> Handle of an output: empty, an input, an input with its axes moved, a window that
        overlaps an input, or any other."""
        rng, shape = self.rng, tuple(shape)
        inputs = [handle for handle in inputs if isinstance(handle, Handle)
                  and self.t.array(handle).dtype == dtype and not self.overlaps_itself(handle)]
        way = rng.choice(("same", "turned", "near", "near", "any window", "empty", "empty", "new"))
        found = None
        if way == "same":
            same = [handle for handle in inputs if self.t.array(handle).shape == shape]
            found = rng.choice(same) if same else None
        elif way == "turned":
            found = self.turned(shape, inputs)
        elif way == "near":
            found = self.window(shape, dtype, self.near(shape, inputs))
        elif way == "any window":
            found = self.window(shape, dtype, [handle for handle in self.pool
                                               if not self.overlaps_itself(handle)])
        elif way == "empty" and not accumulates:
            found = self.keep(self.t.empty(shape, dtype))
        if found is None:
            found = self.place(self.values(shape, dtype))
        return found

    def near(self, shape, inputs):
        """Pooled tensors that share memory with an input and have another shape than `shape`."""
        arrays = [self.t.array(handle) for handle in inputs]
        return [handle for handle in self.pool
                if self.t.array(handle).shape != shape and not self.overlaps_itself(handle)
                and any(np.may_share_memory(self.t.array(handle), array) for array in arrays)]

    def turned(self, shape, inputs):
        """An input with an axis moved, if that gives `shape`, or None."""
        found = [(handle, source, target) for handle in inputs
                 for source in range(len(shape)) for target in range(len(shape))
                 if source != target and self.t.array(handle).ndim == len(shape)
                 and np.moveaxis(self.t.array(handle), source, target).shape == shape]
        return self.call("moveaxis", *self.rng.choice(found)) if found else None

    def finish(self, out, *inputs):
        """Now and then looks at a result at once; frees some of the inputs."""
        if self.rng.chance(30):
            self.t.download(out)
        for handle in inputs:
            if isinstance(handle, Handle):
                self.maybe_drop(handle, 25)

    # Steps: memory and views

    def step_upload(self):
        dtype = self.rng.choice(DTYPES)
        self.draw(self.shape(), dtype)

    def step_fill(self):
        rng, dtype = self.rng, self.rng.choice(DTYPES)
        shape = self.shape()
        out = self.output(shape, dtype, [])
        limits = np.iinfo(dtype)
        value = rng.choice((int(limits.min), int(limits.max), True, False, rng.between(-99, 99)))
        self.finish(self.last_call("set_const_val", out, value))

    def step_zeros(self):
        self.keep(self.t.zeros(self.shape(), self.rng.choice(DTYPES)))

    def step_free(self):
        if len(self.pool) > 4:
            self.drop(self.rng.choice(self.pool))

    def step_rebind(self):
        """A bound name gets another tensor."""
        if self.pool:
            source, target = self.rng.choice(self.pool), self.rng.choice(self.pool)
            self.t.op("new_reference", source, out=target)

    def step_download(self):
        if self.pool:
            handle = self.rng.choice(self.pool)
            self.t.download(handle, dtype=self.rng.choice((None, "int64")),
                            fortran=self.rng.chance(25), version=self.rng.choice((1, 2, 3)))

    def step_contiguous(self):
        if self.pool:
            self.last_call("contiguous", self.rng.choice(self.pool))

    # Steps: elementwise

    def broadcast_shapes(self, shape, count):
        """`count` shapes that broadcast to `shape`."""
        rng = self.rng
        shapes = [list(shape) for _ in range(count)]
        if rng.chance(50):
            for axis, size in enumerate(shape):
                owner = rng.between(0, count - 1)
                for which in range(count):
                    if which != owner and rng.chance(30):
                        shapes[which][axis] = 1
        for which in range(count):
            others = max((len(other) for i, other in enumerate(shapes) if i != which), default=0)
            while shapes[which] and shapes[which][0] == 1 and others == len(shape) and rng.chance(50):
                shapes[which].pop(0)
        return [tuple(one) for one in shapes]

    def step_modular(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        name, variant = rng.choice(("modmul", "modsum")), rng.choice(("ttt", "ttc", "tct", "tcc"))
        shape = self.shape()
        shapes = iter(self.broadcast_shapes(shape, variant.count("t")))
        args = [self.draw(next(shapes), dtype) if letter == "t" else self.scalar()
                for letter in variant[:2]]
        if variant[2] == "t":
            args.append(self.place(self.moduli(next(shapes), dtype)))
        else:
            args.append(self.scalar_modulus(dtype))
        out = self.output(shape, dtype, args)
        name += "" if rng.chance(25) else "_" + variant
        self.finish(self.last_call("_" + name, *args, out), *args)

    def step_mod(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        name, variant = rng.choice((("mod", "tt"), ("mod", "tc"), ("mod", "ct"), ("modneg", "tt"),
                                    ("modneg", "tc")))
        shape = self.shape()
        shapes = iter(self.broadcast_shapes(shape, variant.count("t")))
        first = self.draw(next(shapes), dtype) if variant[0] == "t" else self.scalar()
        second = (self.place(self.moduli(next(shapes), dtype)) if variant[1] == "t"
                  else self.scalar_modulus(dtype))
        out = self.output(shape, dtype, [first, second])
        name += "" if rng.chance(25) else "_" + variant
        self.finish(self.last_call("_" + name, first, second, out), first, second)

    def step_abs(self):
        dtype, shape = self.rng.choice(WIDE), self.shape()
        a = self.draw(shape, dtype)
        self.finish(self.last_call("abs", a, self.output(shape, dtype, [a])), a)

    # Steps: sums

    def step_axis_modsum(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        shape = self.shape(2, 5)
        axis = rng.between(0, len(shape) - 2)
        a, q = self.draw(shape, dtype), self.place(self.moduli(shape[-1:], dtype))
        out = self.output(shape[:axis] + shape[axis + 1:], dtype, [a])
        signed = axis - len(shape) if rng.chance(50) else axis
        self.finish(self.last_call("axis_modsum", a, signed, q, out), a, q)

    def hint(self):
        """A tensor that has no influence, or NONE."""
        return None if self.rng.chance(40) else self.draw((self.rng.between(1, 4),), "int64")

    def step_modmul_axis_sum(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        reps, s, k, n = (rng.between(1, most) for most in (3, 5, 3, self.longest))
        axis = rng.choice((-1, -3, 3, 1, -1, -3))
        last = axis in (-1, 3)
        a = self.draw((reps, s, k, n) if last else (reps, n, s, k), dtype)
        b = self.draw((s, k, n) if last else (n, s, k), dtype)
        q = self.place(self.moduli((k,), dtype))
        out = self.output((reps, k, n) if last else (reps, n, k), dtype, [a, b], accumulates=True)
        form = rng.choice((5, 8, 9, 9)) if last else rng.choice((5, 9, 9))
        if form == 5:
            return self.finish(self.last_call("modmul_axis_sum", a, b, q, out, axis), a, b)
        apply_perm = rng.chance(60)
        perm = None
        if apply_perm or rng.chance(50):
            perm = self.place(rng.permutation(n).astype(rng.choice(("int32", "int64"))))
        args = [a, b, q, self.hint(), self.hint(), perm, out,
                apply_perm if rng.chance(50) else int(apply_perm)]
        self.finish(self.last_call("modmul_axis_sum", *args, *([axis] if form == 9 else [])), a, b, perm)

    def step_loop(self):
        """Products that are added one after the other: each in a tensor of its own, in an operand or
        in place. Their factors may be sums, and are freed or written in between."""
        rng, dtype = self.rng, self.rng.choice(WIDE)
        shape, total = self.shape(0, 5, 2), None
        p = self.scalar_modulus(dtype) if rng.chance(20) else self.t.upload(  # which nothing writes
            self.moduli(self.broadcast_shapes(shape, 2)[0], dtype))
        kept, in_place = [p], rng.chance(50)
        for _ in range(rng.between(2, 9)):
            a, b = (self.draw(one, dtype) for one in self.broadcast_shapes(shape, 2))
            product = self.keep(self.t.empty(shape, dtype)) if rng.chance(80) else self.output(
                shape, dtype, [a, b])
            if total and product.name == total.name:
                continue
            kept = [p, product] + [total] * (total is not None)
            if rng.chance(15):
                self.t.op("_modsum", a, b, p, product)
                a = product
            self.t.op("_modmul", a, b, p, product)
            self.drop_some([a, b], kept, 60)
            if rng.chance(25):
                self.between(kept)
            if total:
                out = total if in_place and not self.overlaps_itself(total) else self.keep(
                    self.t.empty(shape, dtype))
                self.t.op("_modsum", *((total, product) if rng.chance(50) else (product, total)), p, out)
                self.drop_some([product, total], [p, out], 80)
                total = out
            else:
                total = product
        if isinstance(p, Handle):
            self.t.free(p)
        if total:
            self.finish(total)

    def drop_some(self, handles, kept, percent):
        for handle in handles:
            if all(getattr(other, "name", None) != handle.name for other in kept):
                self.maybe_drop(handle, percent)

    def between(self, kept):
        """A random step that leaves the names of `kept`, but perhaps not their memory."""
        names = [handle.name for handle in kept if isinstance(handle, Handle)]
        held = [handle for handle in self.pool if handle.name in names]
        self.pool = [handle for handle in self.pool if handle.name not in names]
        self.rng.choice((RandomProgram.step_modular, RandomProgram.step_mod, RandomProgram.step_fill,
                         RandomProgram.step_transform, RandomProgram.step_take_along_axis))(self)
        self.pool += held

    # Steps: transforms

    def tables(self, n, k, dtype):
        """-> (q, psi, ipsi, n_inv) handles: real ones for primes, or anything."""
        rng = self.rng
        if rng.chance(50):
            bits = rng.choice((20, 30, 31) if dtype == "int32" else (20, 50, 61, 62, 63))
            ring = Ring(n, ntt_primes(bits, n, k))
            arrays = [ring.q, ring.psi, ring.ipsi, ring.n_inv]
        else:
            arrays = [self.moduli((k,), dtype), self.values((k, n), dtype),
                      self.values((k, n), dtype), self.values((k,), dtype)]
        return [self.place(array.astype(dtype)) for array in arrays]

    def step_transform(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        n = rng.choice((1, 2, 4, 4, 8, 8, 16, 16, 32))
        if rng.chance(40):
            n = max(n, 1 << (self.elements // 8).bit_length() - 1)
        k, l, r = (rng.between(1, 3) for _ in range(3))
        inverse, tile = rng.chance(40), rng.chance(40)
        form = rng.choice((10, 11) if inverse else (11, 11, 11, 10, 8))
        axis = rng.choice((-3, -1, -1, 1, 3)) if form == 11 else -3
        last = axis in (-1, 3)
        shape = (l, r, k, n) if last else (l, n, r, k)
        a_shape = ((l, r, 1, n) if last else (l, n, r, 1)) if tile else shape
        a = self.draw(a_shape, "int8" if rng.chance(30) else dtype)
        q, psi, ipsi, n_inv = self.tables(n, k, dtype)
        skip_perm = not inverse and rng.chance(50)
        perm = None
        if not skip_perm or rng.chance(50):
            perm = self.place(rng.permutation(n).astype(rng.choice(("int32", "int64"))))
        out = self.output(shape, dtype, [a, psi, ipsi])
        flags = [flag if rng.chance(50) else int(flag) for flag in (tile, skip_perm)]
        hints = [] if form == 8 else [self.hint(), self.hint()]
        args = [a] + ([axis] if form == 11 else []) + [perm, self.hint(), q] + hints
        if inverse:
            args += [ipsi, n_inv, out, flags[0]]
        else:
            args += [psi, out] + flags
        self.finish(self.last_call("intt" if inverse else "ntt", *args), a, q, psi, ipsi, n_inv)

    # Steps: digits

    def step_digits(self):
        rng, source = self.rng, self.rng.choice(WIDE)
        shape = self.shape(0, 4, 5)
        base_bits = rng.choice((1, 2, 3, 4, 4, 7, 8, 13, 16, 31, 32, 33, 63, 64))
        needed = -(-8 * np.dtype(source).itemsize // base_bits)
        g_exp = rng.choice((needed, needed + 1, max(1, needed - 1), rng.between(1, 8)))
        a, target = self.draw(shape, source), rng.choice(DTYPES)
        out = self.output(shape + (g_exp,), target, [a])
        name = rng.choice(("apply_g_decomp", "g_decomposition"))
        self.finish(self.last_call(name, a, g_exp, base_bits, out), a)

    def coprime_moduli(self, k, dtype):
        rng, largest = self.rng, int(np.iinfo(dtype).max)
        found = []
        while len(found) < k:
            candidate = int(self.modulus(dtype))
            if rng.chance(50):
                candidate = rng.between(2, largest >> rng.between(0, 24)) | 1
            if all(math.gcd(candidate, other) == 1 for other in found):
                found.append(candidate)
        return found

    def step_digits_full_q(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        l, r, k = rng.between(1, 3), rng.between(1, self.longest), rng.choice((1, 2, 2, 3, 4, 6, 9))
        moduli = self.coprime_moduli(k, dtype)
        base_bits = rng.choice((1, 4, 4, 5, 8, 16, 31, 32, 60, 63, 64))
        needed = -(-math.prod(moduli).bit_length() // base_bits)
        g_exp = max(1, rng.choice((needed, needed, needed + 2, needed - 1)))
        a, q = self.draw((l, k, r), dtype), self.place(np.array(moduli, dtype=dtype))
        out = self.output((l, g_exp, r), rng.choice(DTYPES), [a])
        if rng.chance(50):
            args = [a, q, g_exp, base_bits, out]
        else:
            args = [a, q, self.draw((k, k), dtype), g_exp, base_bits, 60, self.draw((k,), dtype), out]
        self.finish(self.last_call("apply_g_decomp_relative_to_full_q", *args), a, q)

    # Steps: gathers and pads

    def step_take_along_axis(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        shape = self.shape(1, 5)
        axis, size = rng.between(0, len(shape) - 1), rng.between(1, 8)
        a_shape, idx_shape = self.broadcast_shapes(shape, 2)
        a_shape, idx_shape = ((1,) * (len(shape) - len(one)) + one for one in (a_shape, idx_shape))
        a_shape = a_shape[:axis] + (size,) + a_shape[axis + 1:]
        idx_shape = idx_shape[:axis] + (shape[axis],) + idx_shape[axis + 1:]
        a = self.draw(a_shape, dtype)
        idx = self.draw(idx_shape, rng.choice(("int32", "int64")), (-size, size - 1))
        out = self.output(shape, dtype, [a, idx])
        signed = axis - len(shape) if rng.chance(50) else axis
        self.finish(self.last_call("take_along_axis", a, idx, signed, out), a, idx)

    def step_permute(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        shape = self.shape(2, 5)
        if not extent(shape):
            return
        along, axis = rng.permutation(len(shape))[:2].tolist()
        a = self.draw(shape, dtype)
        rows = self.draw((shape[along], shape[axis]), rng.choice(("int32", "int64")),
                         (0, shape[axis] - 1))
        out = self.output(shape, dtype, [a, rows])
        signed = [one - len(shape) if rng.chance(40) else one for one in (along, axis)]
        self.finish(self.last_call("permute", a, rows, out, *signed), a, rows)

    def step_pad_or_repeat(self):
        rng, dtype = self.rng, self.rng.choice(WIDE)
        shape = self.shape(1, 5, 2)
        axis, pads = rng.between(0, len(shape) - 1), rng.chance(50)
        amount = rng.between(0, 4) if pads else rng.between(1, 4)
        new = shape[axis] + amount if pads else shape[axis] * amount
        a = self.draw(shape, dtype)
        out = self.output(shape[:axis] + (new,) + shape[axis + 1:], dtype, [a])
        signed = axis - len(shape) if rng.chance(50) else axis
        name = "pad_single_axis" if pads else "repeat_interleave"
        self.finish(self.last_call(name, a, amount, signed, out), a)

    STEPS = [(step_upload, 3), (step_fill, 3), (step_zeros, 1), (step_free, 1), (step_rebind, 1),
             (step_download, 2), (step_contiguous, 2), (step_modular, 14), (step_mod, 8),
             (step_abs, 2), (step_axis_modsum, 5), (step_modmul_axis_sum, 8), (step_transform, 12),
             (step_digits, 5), (step_digits_full_q, 5), (step_take_along_axis, 6),
             (step_permute, 5), (step_pad_or_repeat, 5)]
