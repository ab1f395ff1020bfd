# SPDX-License-Identifier: Apache-2.0
"""Transcripts, and what runs of them report."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import numpy as np

from ._arrays import DTYPES, address, as_array, check_array
from ._device import Device
from ._errors import CancelledError, NameUnknownError, StateError, c_string, call, text
from ._handle import Closed, Handle
from ._native import ffi, lib
from ._operations import Operations, limits_of, pointer_of
from ._rows import row, rows
from ._session import Session

Name = Union[str, int]


@dataclass(frozen=True)
class TensorInfo:
    """A tensor that a transcript uploads or downloads.

    name      of the device's tensor
    entry     its entry of the transcript, counted from 0
    segment   its segment, counted from 0
    has_data  an input comes with data; a result, with the expected tensor
    """

    name: str
    entry: int
    segment: int
    dtype: np.dtype[Any]
    shape: Tuple[int, ...]
    bytes: int
    has_data: bool


def _infos(infos: Any, count: int) -> Tuple[TensorInfo, ...]:
    return tuple(TensorInfo(text(info.name).strip('"'), info.entry, info.segment,
                            DTYPES[info.dtype], tuple(info.shape[0:info.rank]), info.bytes,
                            info.has_data) for info in infos[0:count])


def find(infos: Tuple[TensorInfo, ...], name: Name, what: str) -> int:
    """The number of an input or a result, by number or name."""
    if isinstance(name, int):
        if not 0 <= name < len(infos):
            raise NameUnknownError("there are %d %ss, counted from 0: not %d" %
                                   (len(infos), what, name))
        return name
    found = [number for number, info in enumerate(infos) if info.name == name]
    if len(found) != 1:
        raise NameUnknownError("there are %d %ss '%s', of %s: numbers name them, too" % (
            len(found), what, name, ", ".join(info.name for info in infos) or "none"))
    return found[0]


@dataclass(frozen=True)
class Report:
    """The report of a run.

    verified     whether all results are as expected; None where nothing was compared
    seconds      of a repetition with warm kernels: the median
    runs         of each repetition, in seconds
    results, results_compared, results_different
    segments     a row for each segment: pandas.DataFrame(report.segments)
    operations   a row for each operation of each segment; with times where profile was asked for
    differences  a line for each result that differs
    warnings     lines
    facts        further values: bytes, launches, seconds of compiling
    """

    verified: Optional[bool]
    seconds: float
    runs: List[float]
    results: int
    results_compared: int
    results_different: int
    segments: List[Dict[str, Any]]
    operations: List[Dict[str, Any]]
    differences: List[str] = field(repr=False)
    warnings: List[str] = field(repr=False)
    facts: Dict[str, Any] = field(repr=False)


def _report(report: Any, differences: List[str], warnings: List[str]) -> Report:
    facts = row(report)
    verified = {lib.HEALCL_NOTHING_TO_VERIFY: None, lib.HEALCL_VERIFIED: True,
                lib.HEALCL_DIFFERS: False}[report.verdict]
    runs = [report.run_nanoseconds[i] * 1e-9 for i in range(report.run_count)]
    segments = report.segments[0:report.segment_count]
    operations = [{"segment": text(segment.name), **each} for segment in segments
                  for each in rows(segment.profiles, segment.profile_count)]
    return Report(
        verified=verified, seconds=median(runs) if runs else 0.0, runs=runs,
        results=facts.pop("results"), results_compared=facts.pop("results_compared"),
        results_different=facts.pop("results_different"),
        segments=rows(report.segments, report.segment_count), operations=operations,
        differences=differences, warnings=warnings, facts=facts)


class _Watch:
    """Functions that a run calls while it works."""

    def __init__(self) -> None:
        self.differences: List[str] = []
        self.warnings: List[str] = []
        self.interrupt: Optional[BaseException] = None


def _interrupted(kind: Any, exception: BaseException, traceback: Any) -> bool:
    """A signal's handler has raised in one of the functions below."""
    ffi.from_handle(traceback.tb_frame.f_locals["context"]).interrupt = exception
    return True


def python_difference(context: Any, line: Any) -> None:
    ffi.from_handle(context).differences.append(text(line))


def python_warning(context: Any, line: Any) -> None:
    ffi.from_handle(context).warnings.append(text(line))


def python_cancelled(context: Any) -> bool:
    """Called now and then, so that Python runs the handlers of signals that have come."""
    return ffi.from_handle(context).interrupt is not None


for _function in (python_difference, python_warning, python_cancelled):
    ffi.def_extern(onerror=_interrupted)(_function)


class Transcript(Closed):
    """A transcript, checked whole and planned; from load().

    inputs    the uploads
    results   the downloads
    segments  the names of the segments; "" for what is outside of any
    """

    def __init__(self, handle: Handle, operations: Any) -> None:
        self._handle: Optional[Handle] = handle
        self._operations = operations  # by which the library numbers them
        pointer = handle.pointer
        count = ffi.new("size_t *")
        infos = lib.healcl_transcript_inputs(pointer, count)
        self.inputs = _infos(infos, count[0])
        infos = lib.healcl_transcript_results(pointer, count)
        self.results = _infos(infos, count[0])
        self.segments = tuple(text(lib.healcl_transcript_segment_name(pointer, i))
                              for i in range(lib.healcl_transcript_segment_count(pointer)))

    def run(self, device: Device, *, repeat: int = 1, verify: bool = True, profile: bool = False,
            warm_up: bool = True, inputs: Optional[Mapping[Name, Any]] = None,
            device_memory: int = 0,
            dump: Union[str, os.PathLike[str], None] = None) -> Report:
        """Runs it, and compares each result with the one that it expects.

        repeat         how often; the report has medians
        verify         whether to compare
        profile        whether to take the times of operations
        warm_up        whether a first run in which kernels are compiled is left out of the times
        inputs         arrays in the place of the file's, by name or number
        device_memory  most bytes to allocate on the device; 0: no limit
        dump           a folder for the results, as .npy files

        Results that differ are in the report; all else that goes wrong is raised. Ctrl-C ends the
        run before its next operation.
        """
        arrays = {find(self.inputs, name, "input"): as_array(value)
                  for name, value in (inputs or {}).items()}
        bound = ffi.new("struct healcl_input[]", len(arrays))
        for into, (number, array) in zip(bound, arrays.items()):
            info = self.inputs[number]
            check_array(array, info.dtype, info.shape, "input '%s'" % info.name)
            into.input, into.data = number, address(array)
        watch = _Watch()
        context = ffi.new_handle(watch)
        folder = ffi.NULL if dump is None else c_string(dump)
        options = ffi.new("struct healcl_run_options *", {
            "no_verify": not verify, "profile": profile, "no_warm_up": not warm_up,
            "repeat": repeat, "dump_dir": folder, "inputs": bound, "input_count": len(arrays),
            "device_memory_bytes": device_memory,
            "observer": {"context": context, "difference": lib.python_difference,
                         "warning": lib.python_warning,
                         "cancelled": ffi.addressof(lib, "native_cancelled")}})
        report = ffi.new("struct healcl_report **")

        handle = self._open()
        try:
            device._call(lambda pointer, error: lib.healcl_run(handle.pointer, pointer, options,
                                                               report, error),
                         operations=self._operations)
        except CancelledError:
            if watch.interrupt is not None:
                raise watch.interrupt from None
            raise
        try:
            return _report(report[0], watch.differences, watch.warnings)
        finally:
            lib.healcl_report_free(report[0])

    def session(self, device: Device, *, keep_inputs: bool = True, audit_share: float = 0.0,
                audit_seed: int = 0) -> Session:
        """The transcript on a device, to run again and again with other inputs.

        keep_inputs  whether what is not bound stays on the device from run to run
        audit_share  of the time, from 0 to 1: steps are done again on the host and compared
        audit_seed   of the steps that are drawn
        """
        return Session(self, device, ffi.new("struct healcl_session_options *", {
            "keep_nothing": not keep_inputs, "audit_share": audit_share, "audit_seed": audit_seed}))

    def widen(self, batch: int, inputs: Iterable[Name]) -> Transcript:
        """A transcript that does at once, for `batch` requests, what this one does for one.

        batch   requests together
        inputs  those that come with each request, by name or number

        These inputs, and results that depend on them, have a new first axis of `batch` requests.
        """
        numbers = [find(self.inputs, name, "input") for name in inputs]
        pointer = ffi.new("struct healcl_transcript **")
        handle = self._open()
        with handle.lock:
            call(lib.healcl_transcript_widen, handle.get(), ffi.new("size_t[]", numbers),
                 len(numbers), batch, pointer, operations=self._operations)
        return Transcript(Handle("transcript", pointer[0], lib.healcl_transcript_close,
                                 keep=handle), self._operations)

    def close(self) -> None:
        """Closes the file, once nothing runs it; sessions of the transcript live on."""
        self._handle = None

    def _open(self) -> Handle:
        if self._handle is None:
            raise StateError("the transcript is closed")
        return self._handle

    def __repr__(self) -> str:
        return "<healcl.Transcript: %d inputs, %d results, %d segments>" % (
            len(self.inputs), len(self.results), len(self.segments))


def load(source: Union[str, os.PathLike[str], bytes, bytearray, memoryview], *,
         memory_limit: int = 0, work_limit: int = 0, operations: Optional[Operations] = None,
         expand: Optional[str] = None, passes: Optional[str] = None) -> Transcript:
    """Reads a transcript, a file or bytes, packed or not, checks it whole, and plans it.

    memory_limit  most bytes of all tensors; 0: no limit
    work_limit    most elements that one operation visits; 0: 2^42
    operations    what may be named beside the built-in ones
    expand        the order of expand's integers: "spec" for (axis, repeats), "sdk" for
                  (repeats, axis); None: the one that is valid, else that of "spec"
    passes        names of passes, with commas between them, or "none"; None: all
    """
    names = ffi.NULL if passes is None else c_string(passes)
    limits = limits_of(memory_limit, work_limit, operations, expand, names)
    pointer = ffi.new("struct healcl_transcript **")
    data, numbered = None, pointer_of(operations)
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = ffi.from_buffer(source)
        call(lib.healcl_transcript_open_memory, data, len(data), limits, pointer,
             operations=numbered)
    else:
        call(lib.healcl_transcript_open, c_string(source), limits, pointer, operations=numbered)
    return Transcript(Handle("transcript", pointer[0], lib.healcl_transcript_close, keep=data),
                      numbered)
