# SPDX-License-Identifier: Apache-2.0
"""Writes the calls of a program as a transcript."""
from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import threading
import zlib
from collections import deque
from contextlib import contextmanager
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

from ._arrays import DTYPES, as_array, dtype_number
from ._calls import FUNCTIONS, Tensor
from ._device import AnyDevice, Device
from ._engine import Engine, heal_engine
from ._errors import ArgumentError, Error, OutOfMemoryError, StateError, c_string, call
from ._handle import Uncopied
from ._native import ffi, lib
from ._operations import Operations
from ._refused import OnDevice

_NAME_MAX = 1 << 19  # of a segment: an entry of a transcript may have 1 MiB of text
_GZIP = 16 + zlib.MAX_WBITS
_RAW_MIN = 1 << 16  # bytes of elements that go to the file beside the transcript
_ALIGNMENT = 64  # of payloads in that file
_PIECE = 3 << 18  # bytes of base64's input at a time: a multiple of 3
Name = Union[int, str]
_TUPLES = (lib.HEALCL_PARAMETER_SHAPE, lib.HEALCL_PARAMETER_INDEX)


class RecordedTensor(OnDevice, Uncopied):
    """A tensor of the engine, with a name in the transcript. Slices and np.asarray are recorded,
    too; everything else is passed to the engine's tensor."""

    __slots__ = ("_recorder", "_tensor", "_name")

    def __init__(self, recorder: Recorder, tensor: Tensor, name: Name) -> None:
        self._recorder = recorder
        self._tensor = tensor
        self._name: Optional[Name] = name

    def __del__(self) -> None:
        if self._name is not None:
            self._recorder._dropped.append(self._name)  # any thread may be in the recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)

    def __repr__(self) -> str:
        return "<recorded as %s: %r>" % (self._name or "a freed name", self._tensor)

    def __len__(self) -> int:
        return len(self._tensor)

    def __getitem__(self, index: Any) -> RecordedTensor:
        view: RecordedTensor = self._recorder.get_slice(self, index)
        return view

    def _to_host(self) -> np.ndarray:
        return np.asarray(self._recorder.device_to_host(self))


class Recorder(Uncopied):
    """An engine whose calls are written to a transcript; from record()."""

    def __init__(self, path: Union[str, os.PathLike[str]], engine: Engine, inputs: bool) -> None:
        self._engine = engine
        self._inputs = inputs
        self._path = os.fsdecode(path)
        self._file: Any = None
        self._raw: Any = None  # the file of payloads beside it, once there is one
        self._raw_size = 0
        self._failure: Optional[Error] = None  # why the files are not whole
        self._packer: Any = None
        self._lock = threading.RLock()
        self._dropped: Deque[Name] = deque()
        self._names = 0
        self._entries = 0
        self._separator = b"\n"
        self._segment = False
        self._rings: Dict[Any, Dict[str, RecordedTensor]] = {}

    def __repr__(self) -> str:
        return "<healcl.Recorder of %r, %d entries>" % (self._path, self._entries)

    # ---- the program's side

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" and name[1:] in FUNCTIONS:
            return getattr(self, name[1:])
        operation = getattr(self._engine, name)
        if not callable(operation):
            return operation

        found = self._engine.queue._handle.find(name)

        def function(*given: Any, **keywords: Any) -> Any:
            with self._lock:
                arguments = found.bind(given, keywords, self._tables)
                plain = tuple(self._plain(argument) for argument in arguments)
                result = operation(*plain)
                self._engine.queue.wait()  # what data reveal is this call's error
                out = None
                if result is not None:
                    same = [argument for argument, each in zip(arguments, plain) if each is result]
                    out = same[0] if same else self._named(result)
                form = next(form for form in found.forms if len(form) == len(arguments))
                names = [parameter.name for parameter in form]
                if "out" in names and arguments[names.index("out")] is None:
                    arguments[names.index("out")] = out
                    adds = found.canonical == "modmul_axis_sum"
                    self._new("zeros" if adds else "empty", out)
                if found.canonical == "expand":
                    arguments = _in_one_order(arguments, out)
                self._operation(name, [self._value(argument, parameter.kind)
                                       for argument, parameter in zip(arguments, form)],
                                _argument("NONE", None) if out is None else self._pointer(out))
                return out

        return function

    def host_to_device(self, host: Any, dtype: Any = None) -> RecordedTensor:
        """Uploads and records a tensor; its elements are recorded unless inputs are left out."""
        return self._upload(host, dtype, self._inputs)

    def upload_table(self, host: Any) -> RecordedTensor:
        """Uploads a tensor that is not secret, such as moduli, and records its elements."""
        return self._upload(host, None, True)

    def _upload(self, host: Any, dtype: Any, with_data: bool,
                name: Optional[str] = None) -> RecordedTensor:
        with self._lock:
            tensor = self._named(self._engine.host_to_device(host, dtype), name)
            array = _native(host)
            self._operation("host_to_device", [_host_argument(array)], self._pointer(tensor),
                            array if with_data else None)
            return tensor

    def device_to_host(self, tensor: RecordedTensor, unused: None = None) -> Any:
        """Downloads a tensor, and records its elements as the expected result."""
        with self._lock:
            host = self._engine.device_to_host(self._plain(tensor))
            self.expect(tensor, host)
            return host

    def expect(self, tensor: RecordedTensor, host: Any) -> None:
        """Records a download that is to be equal to an array."""
        with self._lock:
            array = _native(host)
            self._operation("device_to_host", [self._pointer(tensor)], _host_argument(array), array)

    def free_device_tensor(self, tensor: RecordedTensor) -> None:
        """Frees a tensor, and records that its name ends."""
        with self._lock:
            self._engine.free_device_tensor(self._plain(tensor))
            if tensor._name is not None:
                self._dropped.append(tensor._name)
                tensor._name = None

    @contextmanager
    def segment(self, name: str) -> Iterator[None]:
        """Puts the calls within into a segment of the transcript."""
        if not isinstance(name, str) or not _is_segment_name(name):
            raise ArgumentError("a segment's name must be a string of at most %d bytes as JSON, "
                                "without U+0000 and halves of surrogate pairs, not %.60r" %
                                (_NAME_MAX, name))
        with self._lock:
            if self._segment:
                raise StateError("segments do not nest")
            self._entry(mark(name))
            self._segment = True
        try:
            yield
        finally:
            with self._lock:
                self._entry(mark(None))
                self._segment = False

    def __enter__(self) -> Recorder:
        if not os.path.isabs(self._path):
            self._path = os.path.join(os.getcwd(), self._path)
        file = _new_file(self._path)
        self._packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP) if self._path.endswith(".gz") \
            else None
        self._file = file
        self._write(b'{"__type__":"ExecutionTranscript","transcript":[')
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        with self._lock:
            try:
                if kind is None:
                    self._frees()
                    self._write(b"\n]}\n")
                    if self._packer:
                        self._put(self._file, self._packer.flush())
                    self._commit()
            finally:
                files, self._file, self._raw = (self._file, self._raw), None, None
                for file in files:
                    if file:
                        ffi.release(file)

    def _commit(self) -> None:
        """Renames the files to their final names, the payloads first: a transcript always has its
        payloads. The folder is locked meanwhile, so that both belong to the same recording."""
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY) if self._raw else None
        try:
            if folder is not None:
                fcntl.flock(folder, fcntl.LOCK_EX)
                if lib.native_file_sync(self._file):
                    call(lib.native_file_commit, self._raw)
            call(lib.native_file_commit, self._file)
        finally:
            if folder is not None:
                os.close(folder)

    # ---- the transcript's side

    def _plain(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            raise ArgumentError("the tensor was not made through the recorder")
        if not isinstance(argument, RecordedTensor):
            return argument
        if argument._recorder is not self or argument._name is None:
            raise ArgumentError("the tensor belongs to another recorder, or has been freed")
        return argument._tensor

    def _named(self, tensor: Tensor, name: Optional[str] = None) -> RecordedTensor:
        self._names += name is None
        return RecordedTensor(self, tensor, self._names if name is None else name)

    def _pointer(self, tensor: RecordedTensor) -> Dict[str, Any]:
        return _argument("DEVICE_TENSOR", {
            "__type__": "DeviceTensorPointer", "dtype": "torch.%s" % tensor.dtype,
            "inf_name": tensor._name})

    def _new(self, name: str, tensor: Any) -> None:
        self._operation(name, [self._value(tensor.shape, lib.HEALCL_PARAMETER_SHAPE),
                               self._value(tensor.dtype, lib.HEALCL_PARAMETER_DTYPE)],
                        self._pointer(tensor))

    def _tables(self, ring: Any) -> Dict[str, RecordedTensor]:
        if ring not in self._rings:
            self._rings[ring] = {name: self.upload_table(table)
                                 for name, table in ring.tables.items()}
        return self._rings[ring]

    def _value(self, value: Any, kind: int) -> Dict[str, Any]:
        if isinstance(value, RecordedTensor):
            return self._pointer(value)
        if value is None:
            return _argument("NONE", None)
        if kind == lib.HEALCL_PARAMETER_DTYPE:
            return _argument("TENSOR_TYPE", {"__type__": "dtype",
                                             "value": str(DTYPES[dtype_number(value)])})
        if kind in _TUPLES:
            return _argument("SHAPE", [_item(item) for item in
                                       (value if isinstance(value, (tuple, list)) else (value,))])
        return _item(value)

    def _operation(self, name: str, arguments: List[Dict[str, Any]], out: Dict[str, Any],
                   array: Optional[np.ndarray] = None) -> None:
        self._entry([_kind("DEVICE_OP"), {"__type__": "DeviceOp", "name": name, "args": arguments,
                                          "out": out}], array)

    def _frees(self) -> None:
        while self._dropped:
            self._free(self._dropped.popleft())

    def _free(self, name: Name) -> None:
        self._entry([_kind("FREE_DEVICE_TENSOR"), {"__type__": "FreeDeviceTensor",
                                                   "tensor_name": name}])

    def _entry(self, entry: List[Any], array: Optional[np.ndarray] = None) -> None:
        """Writes an entry, with the elements of its array, if any."""
        if entry[0]["value"] != "FREE_DEVICE_TENSOR":
            self._frees()
        text = json.dumps(entry, separators=(",", ":")).encode()
        if array is None:
            self._write(self._separator + text)
        else:  # in the place of its dtype and shape
            head, _, rest = text.partition(b'"dtype":"%s","shape":' % str(array.dtype).encode())
            self._write(self._separator + head + b'"data":')
            self._payload(array)
            self._write(rest[rest.index(b"]") + 1:])
        self._separator = b",\n"
        self._entries += 1

    def _payload(self, array: np.ndarray) -> None:
        """Writes a .npy file in base64, or to the file beside the transcript and then its place.
        Never copies it as a whole."""
        header = io.BytesIO()
        array = np.asarray(array, order="C")
        np.lib.format.write_array_header_1_0(
            header, np.lib.format.header_data_from_array_1_0(array))
        first, data = header.getvalue(), array.reshape(-1).view(np.uint8).data
        if array.nbytes >= _RAW_MIN and self._has_raw():
            self._write(json.dumps(self._raw_payload(first, data), separators=(",", ":")).encode())
            return
        self._write(b'"')
        start = -len(first) % 3
        self._write(base64.b64encode(first + data[:start]))
        for at in range(start, len(data), _PIECE):
            self._write(base64.b64encode(data[at:at + _PIECE]))
        self._write(b'"')

    def _has_raw(self) -> bool:
        """Whether payloads have their own file. A compressed transcript, and one that is not a
        regular file, has none, so that all runtimes can read it."""
        if self._raw is None and self._packer is None and (
                os.path.isfile(self._path) or not os.path.lexists(self._path)):
            self._raw_path = os.path.realpath(self._path) + ".bin"
            if not _has_surrogates(self._raw_path):
                self._raw = _new_file(self._raw_path)
        return self._raw is not None

    def _raw_payload(self, header: bytes, data: memoryview) -> Dict[str, Any]:
        digest, size = ffi.new("char[33]"), len(header) + len(data)
        elements = ffi.from_buffer("char[]", data)
        if not lib.native_hash(header, len(header), elements, len(data), digest):
            raise OutOfMemoryError("out of memory")
        offset, padding = self._raw_size, -size % _ALIGNMENT
        for part in header, elements, bytes(padding):
            self._put(self._raw, part)
        self._raw_size += size + padding
        return {"file": os.path.basename(self._raw_path), "offset": offset, "bytes": size,
                "xxh3": ffi.string(digest).decode()}

    def _write(self, data: bytes) -> None:
        if self._file is None:
            raise StateError("the recorder is used outside of its 'with'")
        self._put(self._file, self._packer.compress(data) if self._packer else data)

    def _put(self, file: Any, data: Any) -> None:
        if self._failure is None and not lib.native_file_write(file, data, len(data)):
            try:
                call(lib.native_file_commit, file)  # which says what is wrong
            except Error as error:
                self._failure = error
        if self._failure is not None:
            raise self._failure


def _new_file(path: str) -> Any:
    pointer = ffi.new("struct native_file **")
    try:
        call(lib.native_file_open, c_string(path), pointer)
    finally:
        file = ffi.gc(pointer[0], lib.native_file_free)
    return file


def _in_one_order(arguments: List[Any], out: Any) -> List[Any]:
    """Returns expand's arguments. The axis is negative if the HEAL SDK's runtime could otherwise
    confuse axis and count."""
    a, *numbers = arguments
    if numbers[0] != numbers[1] and all(
            0 < axis < len(a.shape) and a.shape[axis] == 1 for axis in numbers):
        grown = [axis for axis in numbers if out.shape[axis] > 1] or [max(numbers)]
        numbers[numbers.index(grown[0])] -= len(a.shape)
    return [a, *numbers]


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in text)


def _is_segment_name(name: str) -> bool:
    return "\0" not in name and not _has_surrogates(name) and len(json.dumps(name)) <= _NAME_MAX


def _kind(name: str) -> Dict[str, str]:
    return {"__type__": "ExecutionTranscriptOpType", "value": name}


def mark(segment: Optional[str]) -> List[Any]:
    """Returns the entry that begins a segment; None: the one that ends it."""
    return [_kind("SEGMENT_END" if segment is None else "SEGMENT_START"), segment]


def _argument(kind: str, value: Any) -> Dict[str, Any]:
    return {"__type__": "DeviceOpArg",
            "arg_type": {"__type__": "DeviceOpArgType", "value": kind}, "value": value}


def _item(value: Any) -> Dict[str, Any]:
    """Writes an integer, or an item of an index or a shape."""
    if value is Ellipsis:
        return _argument("ELLIPSIS", {"__type__": "ellipsis"})
    if isinstance(value, slice):
        return _argument("SLICE", {"__type__": "slice", **{
            name: None if getattr(value, name) is None else int(getattr(value, name))
            for name in ("start", "stop", "step")}})
    return _argument("INT", value if isinstance(value, bool) else int(value))


def _native(host: Any) -> np.ndarray:
    """Converts an array to native byte order."""
    array = as_array(host)
    return array.astype(DTYPES[dtype_number(array.dtype)], copy=False)


def _host_argument(array: np.ndarray) -> Dict[str, Any]:
    """Describes an array in a transcript, without its elements."""
    return _argument("HOST_TENSOR", {"__type__": "HostTensor", "tensor_base64": {
        "type": "numpy", "dtype": str(array.dtype), "shape": list(array.shape)}})


def record(path: Union[str, os.PathLike[str]], engine: Union[Engine, AnyDevice] = None, *,
           inputs: bool = True, operations: Optional[Operations] = None) -> Recorder:
    """Creates an engine that writes a program's calls to a transcript, for use in a 'with'.

    path        the transcript's path; compressed if it ends in .gz. Else tensors of 64 KiB or more
                are in a file beside it, PATH.bin
    engine      an engine of heal_engine(), a device, or an argument of open()
    inputs      whether the elements of uploads are written. Without them, the files contain no keys
                and messages, and a run must be given them
    operations  operations to add to the built-in ones; an engine has its own

    Downloads are written with their elements, as the expected results. Refused calls are left out.
    The transcript has the calls that were made, with their integers: decisions of the program are
    not repeated when it runs. If the arguments of an expand could be read in the other order, its
    axis is written as a negative number. After an exception nothing is written.
    """
    if engine is None or isinstance(engine, (Device, str)):
        engine = heal_engine(engine, operations=operations)
    elif operations is not None:
        raise ArgumentError("record() takes operations only with a device: an engine has its own")
    if not isinstance(engine, Engine):
        raise ArgumentError("record() takes a device or an engine of healcl.heal_engine(), not "
                            "%s" % type(engine).__name__)
    return Recorder(path, engine, inputs)
