# SPDX-License-Identifier: Apache-2.0
"""Runs HEAL transcripts, and HEAL's operations on NumPy arrays, on OpenCL devices.

    dev = healcl.open("pocl")                     # or healcl.reference
    report = healcl.load("digits.json").run(dev)  # compares all results
    with dev.queue() as q:                        # operations one by one
        a = q.array([1, 2, 3])
        q.ops.modmul(a, a, 97, a)

All results are exact: tensors are int8, int32 or int64. All errors are subclasses of healcl.Error.
"""
from ._calls import Ops, Tensor
from ._device import Device, DeviceInfo, devices, open, reference
from ._engine import Engine, heal_engine
from ._errors import (ArgumentError, CancelledError, DataError, DeviceError, DifferenceError,
                      DtypeError, Error, FileError, FormatError, LimitError, NameUnknownError,
                      OperationError, OutOfMemoryError, ShapeError, StateError, text as _text)
from ._native import lib as _lib
from ._operations import Operations
from ._queue import Queue
from ._recorder import RecordedTensor, Recorder, record
from ._samples import sample
from ._session import Session
from ._signatures import SignatureError
from ._transcript import Report, TensorInfo, Transcript, load

__version__ = _text(_lib.healcl_version())

__all__ = [  # in full, for type checkers
    "ArgumentError", "CancelledError", "DataError", "Device", "DeviceError", "DeviceInfo",
    "DifferenceError", "DtypeError", "Engine", "Error", "FileError", "FormatError", "LimitError",
    "NameUnknownError", "OperationError", "Operations", "Ops", "OutOfMemoryError", "Queue",
    "RecordedTensor", "Recorder", "Report", "Session", "ShapeError", "SignatureError",
    "StateError", "Tensor", "TensorInfo", "Transcript", "devices", "heal_engine", "load", "open",
    "record", "reference", "sample"]
