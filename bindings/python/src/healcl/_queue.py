# SPDX-License-Identifier: Apache-2.0
"""Queues of calls."""
from __future__ import annotations

from typing import Any, Iterable, Union

import numpy as np

from ._arrays import DTYPES, as_array, converted, dtype_number, shape_of
from ._calls import Ops, QueueHandle, Tensor
from ._device import Device
from ._handle import Closed
from ._native import lib

Shape = Union[int, Iterable[int]]


class Queue(Closed):
    """Tensors on a device, and calls of operations on them; from Device.queue().

    A call is checked and enqueued, but not waited for. Errors that only the data reveal are raised
    by the next read or wait, which names the call. Threads take turns. Any thread may drop tensors.
    """

    def __init__(self, handle: QueueHandle) -> None:
        self._handle = handle
        self.ops = Ops(handle)

    @property
    def device(self) -> Device:
        """The device of the queue. It may be closed."""
        return self._handle.device

    def array(self, values: Any, dtype: Any = None) -> Tensor:
        """Creates a tensor with a copy of an array's elements. dtype: another dtype, which must
        hold all of them."""
        array = as_array(values)
        number = dtype_number(array.dtype if dtype is None else dtype)
        array = np.asarray(converted(array, DTYPES[number]), order="C")
        return self._handle.create(array.shape, number, array)

    def zeros(self, shape: Shape, dtype: Any = np.int64) -> Tensor:
        """Creates a tensor of zeros."""
        return self._handle.create(shape_of(shape), dtype_number(dtype), None)

    def empty(self, shape: Shape, dtype: Any = np.int64) -> Tensor:
        """Creates a tensor with undefined elements."""
        tensor: Tensor = self.ops.empty(shape, dtype)
        return tensor

    def empty_like(self, tensor: Any) -> Tensor:
        """As empty(), with the shape and dtype of a tensor or an array."""
        like = tensor if hasattr(tensor, "dtype") else as_array(tensor)
        return self.empty(like.shape, like.dtype)

    def wait(self) -> None:
        """Waits for all calls. Raises errors that only the data have revealed."""
        handle = self._handle
        with handle.lock:
            status = lib.healcl_queue_wait(handle.get(), handle.error)
            if status != lib.HEALCL_CANCELLED:
                handle.raise_noted()
            if status != lib.HEALCL_OK:
                raise handle.failed()

    def cancel(self) -> None:
        """Ends the current wait, call or read with CancelledError. Any thread may call this.
        Enqueued calls continue. What a cancelled call of the reference writes is undefined."""
        self._handle.cancel()

    @property
    def fallbacks(self) -> int:
        """The number of steps that the host has run because the device could not."""
        with self._handle.lock:
            return int(lib.healcl_queue_fallbacks(self._handle.get()))

    def close(self) -> None:
        """Ends current calls, also in other threads, and waits for the device to finish enqueued
        calls. Afterwards its tensors can only be dropped."""
        self._handle.close()
        self.ops._rings.clear()

    def __repr__(self) -> str:
        return "<healcl.Queue on %s%s>" % (self.device.selector,
                                           "" if self._handle.pointer else ", closed")
