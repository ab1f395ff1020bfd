# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device, and functions that call operations on them."""
from __future__ import annotations

import math
import operator
import struct
import weakref
from functools import lru_cache
from inspect import Parameter, Signature as PythonSignature
from types import MethodType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._arrays import (DTYPES, address, as_array, as_torch, check_output, converted, dtype_number,
                      shape_of)
from ._errors import (ArgumentError, DtypeError, Error, OperationError, ShapeError, StateError,
                      error_of)
from ._handle import Handle, Uncopied, Watch
from ._native import ffi, lib
from ._operations import Operation, Operations, find, operations_by_name, pointer_of
from ._refused import OnDevice
from ._signatures import Signature

if TYPE_CHECKING:
    from ._device import Device
    _Rings = weakref.WeakKeyDictionary[Any, Dict[str, "Tensor"]]

_TENSOR, _INT = lib.HEALCL_ARGUMENT_TENSOR, lib.HEALCL_ARGUMENT_INT
_OUT, _INDEX = lib.HEALCL_PARAMETER_OUT, lib.HEALCL_PARAMETER_INDEX
_SHAPE, _DTYPE = lib.HEALCL_PARAMETER_SHAPE, lib.HEALCL_PARAMETER_DTYPE
_SPECIAL = (_SHAPE, _INDEX, _DTYPE)  # an integer has another meaning there
_INTEGERS = (int, bool)
_LIMIT = 2**63
_PATIENCE = 1.0  # seconds that a repr waits for elements
_pack = struct.Struct("2q").pack  # what native_call takes for an argument
_NOTHING = _pack(lib.HEALCL_ARGUMENT_NONE, 0)
_pack_index = struct.Struct("iq3?3q").pack  # a struct healcl_index
_NO_ENDS = 0, False, False, False, 0, 0, 0
_PACKED = {value: _pack(_INT, value) for value in range(-16, 257)}  # axes, flags, counts
FUNCTIONS = {"host_to_device", "device_to_host", "free_device_tensor"}  # not calls


class QueueHandle(Handle):
    """The queue's handle, which its tensors and operations use."""

    __slots__ = ("device", "operations", "table", "error", "noted", "forked", "rings", "watch")

    def __init__(self, pointer: Any, device: Device, operations: Optional[Operations],
                 watch: Watch) -> None:
        super().__init__("queue", pointer, lib.healcl_queue_close, lib.healcl_queue_cancel,
                         device.info is not None)
        self.watch = watch
        self.device = device
        self.operations = operations
        self.noted: Optional[Error] = None  # shown by a repr; the next wait raises it
        self.table = operations_by_name(operations)
        self.error = ffi.new("struct healcl_error *")
        self.forked = False
        self.rings: Callable[[], Optional[_Rings]] = lambda: None  # those of its Ops

    def forsake(self, why: Error) -> None:
        super().forsake(why)
        self.forked = True

    def is_settled(self, pointer: Any) -> bool:
        return bool(lib.native_queue_settled(pointer))

    def failed(self) -> BaseException:
        """Returns the error of a failed call, or the exception of a signal handler that ended the
        call. The caller holds the lock."""
        error = error_of(self.error, pointer_of(self.operations))
        return self.watch.take() or (error if self.pointer else self.gone())

    def raise_noted(self) -> None:
        """The caller holds the lock."""
        error, self.noted = self.noted, None
        if error is not None:
            raise error

    def create(self, shape: Tuple[int, ...], dtype: int, array: Optional[np.ndarray]) -> Tensor:
        """Creates a tensor with the elements of an array in C order, or with zeros."""
        tensor = ffi.new("struct healcl_tensor **")
        data = ffi.NULL if array is None else address(array)
        with self.lock:
            if lib.healcl_tensor_create(self.get(), dtype, len(shape), shape, data, tensor,
                                        self.error) != lib.HEALCL_OK:
                raise self.failed()
        return Tensor(self, int(ffi.cast("intptr_t", tensor[0])))

    def tables(self, ring: Any) -> Mapping[str, Tensor]:
        """The tables of a healcl.fhe.Ring. They live as long as the queue and the ring."""
        with self.lock:
            rings = self.rings()
            tables = None if rings is None else rings.get(ring)
            if tables is None:
                tables = {name: self.create(table.shape, lib.HEALCL_INT64, table)
                          for name, table in ring.tables.items()}
                if rings is not None:
                    rings[ring] = tables
            return tables

    def find(self, name: str) -> Operation:
        operation = self.table.get(name) or find(self.table, name)
        if not hasattr(operation, "function"):
            signature = Signature(operation)
            operation.bind = signature.bind
            operation.function = _function_of(operation, signature)
        return operation

    def call(self, name: str, *arguments: Any) -> Any:
        return self.find(name).function(self, *arguments)


class Tensor(OnDevice, Uncopied):
    """A tensor of a queue, or a view of one; from Queue.array() and operations.

    a[1::2, ...] is a view on the device, and a[...] = values writes into it. np.asarray(a) waits
    for all calls and copies the elements. No other function of NumPy takes a tensor, and no
    operator does. The memory is reused when no tensor views it any more.
    """

    __slots__ = ("_queue", "_address", "_packed", "_shape", "_dtype", "__weakref__")

    def __init__(self, queue: QueueHandle, address: int) -> None:
        self._queue = queue
        self._address = address
        self._packed = _pack(_TENSOR, address)

    def __del__(self, release: Callable[[int], None] = lib.native_release) -> None:
        try:
            if not self._queue.forked:
                release(self._address)
        except AttributeError:  # __init__ was called with something else
            pass

    def release(self) -> None:
        """Frees the tensor's memory now, unless another tensor views it."""
        with self._queue.lock:
            address, self._address = self._address, 0
            self._packed = _pack(_TENSOR, 0)  # which calls refuse
            if not self._queue.forked:
                lib.native_release(address)

    def _pointer(self) -> Any:
        """The caller holds the queue's lock."""
        self._queue.get()
        return self._handle()

    def _handle(self) -> Any:
        if not self._address:
            raise StateError("the tensor was released")
        return ffi.cast("struct healcl_tensor *", self._address)

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._queue.lock:
            self._queue.raise_noted()
            if function(self._pointer(), *arguments, self._queue.error) != lib.HEALCL_OK:
                raise self._queue.failed()

    def _describe(self) -> None:
        with self._queue.lock:
            info = lib.healcl_tensor_describe(self._handle())  # also of a closed queue
            self._shape = tuple(info.shape[0:info.rank])
            self._dtype = DTYPES[info.dtype]

    @property
    def device(self) -> Device:
        """The device of the tensor's queue. It may be closed."""
        return self._queue.device

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes."""
        try:
            return self._shape
        except AttributeError:
            self._describe()
            return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype: int8, int32 or int64."""
        try:
            return self._dtype
        except AttributeError:
            self._describe()
            return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes, without gaps."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> Tuple[int, ...]:
        """The bytes from an element to the next one along each axis, as in NumPy; 0 along an axis
        that repeats its elements."""
        with self._queue.lock:
            layout = lib.healcl_tensor_layout(self._handle())
            return tuple(stride * self.dtype.itemsize for stride in layout.strides[0:layout.rank])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, (int, np.integer)) and self.ndim and not (
                -len(self) <= index < len(self)):
            raise IndexError("index %d is out of range for an axis of size %d" % (index, len(self)))
        if index is None or isinstance(index, Tensor):
            index = (index,)
        view: Tensor = self._queue.call("get_slice", self, index)
        return view

    def __setitem__(self, index: Any, values: Any) -> None:
        view = self if index is Ellipsis else self[index]
        if isinstance(values, Tensor) and values._queue is self._queue:
            with self._queue.lock:
                view._call(lambda to, error: lib.healcl_tensor_copy(values._pointer(), to, error))
            return
        array = as_array(values)
        if array.ndim == 0:
            self._queue.call("set_const_val", view, int(array))
            return
        try:
            array = np.broadcast_to(converted(array, view.dtype), view.shape)
        except ValueError:
            raise ShapeError("values of the shape %s do not fit into %s" % (
                array.shape, view.shape)) from None
        array = np.asarray(array, order="C")
        view._call(lib.healcl_tensor_write, address(array), array.nbytes)

    def read(self, out: Optional[Any] = None) -> np.ndarray:
        """Waits for all calls, and copies the elements into a new array, or into out: an array in
        C order of the same dtype and shape."""
        if out is None:
            array = np.empty(self.shape, self.dtype)
        else:
            array = check_output(out, self.dtype, self.shape, "the tensor")
        self._call(lib.healcl_tensor_read, address(array), array.nbytes)
        return array if out is None else out

    def _to_host(self) -> np.ndarray:
        return self.read()

    def torch(self) -> Any:
        """A copy as a tensor of PyTorch, which the program must have imported."""
        return as_torch(self.read())

    def item(self) -> int:
        """The element of a tensor that has just one, as an integer."""
        return int(self.read().item())

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            if name[:1] == "_":
                raise AttributeError(name)
            advice = ""
            if name in self._queue.table:
                advice = ": use queue.ops.%s on the device" % name
            elif hasattr(np.ndarray, name):
                advice = ": use np.asarray(tensor).%s, of a copy on the host" % name
            elif name in ("cpu", "get", "numpy"):  # of PyTorch and CuPy
                advice = ": np.asarray(tensor) copies to the host"
            raise AttributeError("healcl.Tensor has no '%s'%s" % (name, advice))

    def __repr__(self) -> str:
        parts = ["<in use by another thread>"]
        if self._queue.lock.acquire(timeout=_PATIENCE):
            try:
                parts = self._parts()
            finally:
                self._queue.lock.release()
        return "healcl.Tensor(%s, device=%r)" % (", ".join(parts), self._queue.device.selector)

    def _parts(self) -> List[str]:
        """Returns the parts of repr(). The caller holds the queue's lock."""
        if not self._address:
            return ["<released>"]
        kind = ["shape=%s" % (self.shape,), "dtype=%s" % self.dtype]
        if not self._queue.pointer:
            return ["<%s>" % self._queue.gone(), *kind]
        if self.size > np.get_printoptions()["threshold"]:
            return kind
        for _ in range(round(_PATIENCE / 0.05)):
            if lib.native_queue_settled(self._queue.pointer):
                break
        else:
            return ["<not computed yet>", *kind]
        try:
            array = self.read()
        except Error as error:
            self._queue.noted = error
            return ["<%s>" % error, *kind]
        return [np.array2string(array, separator=", ", prefix="healcl.Tensor("), *kind]


def _integer(value: Any) -> int:
    if isinstance(value, (float, np.floating)):
        raise DtypeError("%r is a float; healcl computes with integers" % (value,))
    try:
        result = operator.index(value)
    except TypeError:
        raise ArgumentError("must be a tensor, an integer or None, not %s%s" % (
            type(value).__name__, "; convert it with queue.array()"
            if isinstance(value, (np.ndarray, list)) else "")) from None
    if not -_LIMIT <= result < _LIMIT:
        raise DtypeError("%d does not fit in 64 bits" % result)
    return result


@lru_cache(maxsize=4096, typed=True)
def _slice(*ends: Any) -> bytes:
    """A struct healcl_index of a slice."""
    return _pack_index(lib.HEALCL_INDEX_SLICE, 0, *[end is not None for end in ends],
                       *[0 if end is None else _integer(end) for end in ends])


def _index_item(item: Any) -> bytes:
    """A struct healcl_index of an integer, a slice or an Ellipsis."""
    if isinstance(item, slice):
        ends = item.start, item.stop, item.step
        try:
            return _slice(*ends)
        except TypeError:  # ends that are no integers may have no hash
            return _slice.__wrapped__(*ends)
    if item is Ellipsis:
        return _pack_index(lib.HEALCL_INDEX_ELLIPSIS, *_NO_ENDS)
    if item is None:
        raise ArgumentError("None is not allowed in an index: add axes with unsqueeze()")
    if isinstance(item, (bool, list, np.bool_, np.ndarray, Tensor)):
        raise ArgumentError("an index consists of integers, slices and '...'; for a tensor "
                            "of indices, use the operation take_along_axis")
    return _pack_index(lib.HEALCL_INDEX_INT, _integer(item), *_NO_ENDS[1:])


def _packed(value: Any, kind: int) -> Tuple[bytes, Any]:
    """Converts an argument that is not a tensor for native_call. The second value must live as
    long as the first."""
    if kind == _DTYPE:
        return _pack(lib.HEALCL_ARGUMENT_DTYPE, dtype_number(value)), None
    if kind not in _SPECIAL:
        return _pack(_INT, _integer(value)), None
    if kind == _INDEX:
        index = value if isinstance(value, tuple) else (value,)
        of_items, count = lib.HEALCL_ARGUMENT_INDEX, len(index)
        items = ffi.from_buffer(b"".join([_index_item(item) for item in index]))
    else:
        shape = shape_of(value)
        of_items, count, items = lib.HEALCL_ARGUMENT_SHAPE, len(shape), ffi.new("int64_t[]", shape)
    return _pack(of_items | count << 8, int(ffi.cast("intptr_t", items))), items


def _other(operation: Operation, value: Any, kinds: List[int], at: int) -> Tuple[bytes, Any]:
    """As _packed(), but its errors name the argument."""
    try:
        if type(value) is Tensor:
            raise ArgumentError("the tensor is one of another queue")
        return _packed(value, kinds[at])
    except Error as error:
        name = next(form for form in operation.forms if len(form) == len(kinds))[at].name
        raise type(error)("%s: argument '%s': %s" % (operation.name, name, error),
                          operation=operation.name, argument=at) from None


def _function_of(operation: Operation, signature: Signature) -> Callable[..., Any]:
    """A function of a queue and of arguments: those of a form by position, or keywords, too."""
    name = operation.name.encode()
    native_call = lib.native_call
    # Kinds of arguments by their number, and which one is the out.
    forms: Dict[int, Tuple[List[int], Optional[int]]] = {}
    for form in operation.forms:
        kinds = [parameter.kind for parameter in form]
        forms[len(form)] = kinds, kinds.index(_OUT) if _OUT in kinds else None
    without_out = signature.without_out

    def function(queue: QueueHandle, *arguments: Any, **keywords: Any) -> Any:
        if len(arguments) == without_out and not keywords:
            arguments += None,
        elif keywords or len(arguments) not in forms:
            arguments = tuple(signature.bind(arguments, keywords, queue.tables))
        kinds, out = forms[len(arguments)]
        result = None if out is None else arguments[out]
        packed: List[bytes] = []
        keep: Tuple[Any, ...] = ()  # what lives until the call
        lock = queue.lock
        lock.acquire()
        try:  # which is faster than a with
            for argument in arguments:
                kind = type(argument)
                if kind is Tensor and argument._queue is queue:
                    packed.append(argument._packed)
                elif kind in _INTEGERS and kinds[len(packed)] not in _SPECIAL and (
                        -_LIMIT <= argument < _LIMIT):
                    packed.append(_PACKED[argument] if argument in _PACKED else
                                  _pack(_INT, argument))
                elif argument is None:
                    packed.append(_NOTHING)
                else:
                    other, kept = _other(operation, argument, kinds, len(packed))
                    packed.append(other)
                    keep += (kept,)
            made = native_call(queue.pointer, name, len(packed), b"".join(packed),
                               result is None, queue.error)
            if not made:
                return result
            if made == -1:
                raise queue.failed()
            return Tensor(queue, made)
        finally:
            lock.release()

    function.__name__ = function.__qualname__ = operation.name
    function.__doc__ = signature.documentation()
    first = Parameter("queue", Parameter.POSITIONAL_ONLY)
    setattr(function, "__signature__", PythonSignature([first, *signature.parameters]))
    return function


class Ops(Uncopied):
    """The operations of a queue, as functions: queue.ops.modmul(a, b, p=97).

    They take tensors of the queue, integers, None, shapes, indices and dtypes. They return out if
    it is given, else a new tensor. help(queue.ops.ntt) shows the arguments of ntt. The arguments
    of a form of HEAL can all be passed by position, in its order.
    """

    def __init__(self, queue: QueueHandle) -> None:
        self._queue = queue
        self._rings: _Rings = weakref.WeakKeyDictionary()
        queue.rings = weakref.ref(self._rings)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[name[:1] == "_":] in FUNCTIONS:
            raise OperationError("'%s' is not a call: use queue.array() and tensor.read()" %
                                 name)
        function = MethodType(self._queue.find(name).function, self._queue)
        setattr(self, name, function)
        return function

    def __dir__(self) -> List[str]:
        return sorted(set(self._queue.table) - FUNCTIONS)
