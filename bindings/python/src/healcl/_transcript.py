# SPDX-License-Identifier: Apache-2.0
"""Transcripts, and reports of their runs."""
from __future__ import annotations

import operator
import os
from collections import Counter
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import (Any, Callable, Dict, Iterable, List, Mapping, Optional, SupportsIndex, Tuple,
                    Union, overload)

import numpy as np

from ._arrays import DTYPES, address, as_array, check_array
from ._device import AnyDevice, device_of
from ._errors import (ArgumentError, CancelledError, NameUnknownError, StateError, c_string, call,
                      integer, nearest, text)
from ._handle import Closed, Handle, Watch, interrupted
from ._native import ffi, lib
from ._operations import Operations, plan_options, pointer_of
from ._rows import row, rows
from ._session import Name, Session


class _File:
    """The transcript of TensorInfo objects. handle: None after it is closed."""

    def __init__(self, handle: Handle) -> None:
        self.handle: Optional[Handle] = handle

    def get(self) -> Handle:
        if self.handle is None:
            raise StateError("the transcript is closed")
        return self.handle

    def read(self, function: Callable[..., int], number: int, array: np.ndarray) -> None:
        handle = self.get()
        call(function, handle.get(), number, address(array), array.nbytes)


@dataclass(frozen=True)
class TensorInfo:
    """A tensor that a transcript uploads or downloads.

    name      the name of the tensor on the device
    entry     its entry of the transcript, counted from 0
    segment   its segment, counted from 0
    has_data  whether an input has data, or a result has an expected tensor
    """

    name: str
    entry: int
    segment: int
    dtype: np.dtype[Any]
    shape: Tuple[int, ...]
    bytes: int
    has_data: bool

    @property
    def data(self) -> Optional[np.ndarray]:
        """An input's elements in the file, or the expected elements of a result. Each use decodes
        them to a new array. None if the file has none."""
        if not self.has_data:
            return None
        read = self.__dict__.get("_read")
        if read is None:
            raise StateError("a copy of this description has no data: use the transcript's")
        array = np.empty(self.shape, self.dtype)
        read(array)
        return array

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_read"}


class Tensors(Tuple[TensorInfo, ...]):
    """A transcript's inputs, or its results: t.inputs[-1], t.inputs["ct"].

    what  "input" or "result"
    """

    what: str

    @overload
    def __getitem__(self, which: Union[SupportsIndex, str]) -> TensorInfo: ...

    @overload
    def __getitem__(self, which: slice) -> Tuple[TensorInfo, ...]: ...

    def __getitem__(self, which: Any) -> Any:
        return super().__getitem__(self.find(which) if isinstance(which, str) else which)

    def find(self, name: Name) -> int:
        """Returns a tensor's number, given its name or number; -1 is the last one."""
        if not isinstance(name, str):
            try:
                return range(len(self))[operator.index(name)]
            except (IndexError, TypeError):
                raise NameUnknownError("there is no %s %r: there are %d, counted from 0" % (
                    self.what, name, len(self))) from None
        found = [number for number, info in enumerate(self) if info.name == name]
        if not found:
            raise NameUnknownError("there is no %s %r: %s" % (
                self.what, name, nearest(name, [info.name for info in self])))
        if len(found) > 1:
            raise NameUnknownError("%d %ss have the name %r: use a number, such as %d or %d" % (
                len(found), self.what, name, found[0], found[1]))
        return found[0]

    def names(self) -> List[Name]:
        """A name for each tensor; its number if it has no name, or if another has the same."""
        counts = Counter(info.name for info in self)
        return [info.name if info.name and counts[info.name] == 1 else number
                for number, info in enumerate(self)]


def _tensors(what: str, describe: Callable[..., Any], read: Callable[..., int],
             file: _File) -> Tensors:
    count = ffi.new("size_t *")
    infos = describe(file.get().pointer, count)
    tensors = Tensors(TensorInfo(text(info.name).strip('"'), info.entry, info.segment,
                                 DTYPES[info.dtype], tuple(info.shape[0:info.rank]), info.bytes,
                                 info.has_data) for info in infos[0:count[0]])
    tensors.what = what
    for number, info in enumerate(tensors):
        info.__dict__["_read"] = partial(file.read, read, number)
    return tensors


@dataclass(frozen=True, repr=False)
class Report:
    """The report of a run; print(report) shows the most important values.

    verified     whether all results are as expected; None if nothing was compared
    seconds      the median time of a repetition with warm kernels
    runs         the time of each repetition, in seconds
    results, results_compared, results_different  numbers of results
    segments     a row for each segment: pandas.DataFrame(report.segments)
    operations   a row for each operation of each segment, with times if profile was set;
                 fallbacks: steps that the host ran; fallback_reason: why
    differences  a line for each result that differs
    warnings     a line for each warning
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
    differences: List[str]
    warnings: List[str]
    facts: Dict[str, Any]

    def _verdict(self) -> str:
        if self.verified is None:
            return "nothing to compare"
        return "%s: %d of %d results compared, %d different" % (
            "verified" if self.verified else "different", self.results_compared, self.results,
            self.results_different)

    def __repr__(self) -> str:
        return "<healcl.Report: %s, %.6f s>" % (self._verdict(), self.seconds)

    def __str__(self) -> str:
        """At most ten lines."""
        facts, rows = self.facts, self.segments
        lines = [self._verdict(), "time: %.6f s%s" % (self.seconds, "" if len(
            self.runs) < 2 else ", the median of %d runs of %.6f to %.6f s" % (
                len(self.runs), min(self.runs), max(self.runs)))]
        lines.append("before: %.3f s to compile, %.3f s to warm up; after: %.3f s to compare" % (
            facts["compile_seconds"], facts["warm_up_seconds"], facts["verify_seconds"]))
        lines.append("memory: %.3f MB up, %.3f MB down, at most %.3f MB at a time" % (
            sum(row["bytes_up"] for row in rows) / 1e6,
            sum(row["bytes_down"] for row in rows) / 1e6, facts["device_bytes_peak"] / 1e6))
        if facts["fallbacks"]:
            first = next(row for row in self.operations if row["fallbacks"])
            lines.append("fallbacks: the host ran %d steps, the first of %s: %s" % (
                facts["fallbacks"], first["name"], first["fallback_reason"]))
        told = (self.differences + self.warnings)[:2]
        slowest = sorted(rows, key=lambda row: float(row["seconds"]), reverse=True)
        lines += ["segment %-24s %9.6f s %6d operations" % (
            row["name"] or "(none)", row["seconds"], row["operations"])
            for row in slowest[:9 - len(lines) - len(told)]]
        return "\n".join([*lines, *told, "more: report.segments, .operations, .differences, "
                          ".warnings, .facts"])


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


class _Watch(Watch):
    """Also collects the differences and warnings that the library reports."""

    def __init__(self) -> None:
        super().__init__()
        self.differences: List[str] = []
        self.warnings: List[str] = []


def python_difference(context: Any, line: Any) -> None:
    ffi.from_handle(context).differences.append(text(line))


def python_warning(context: Any, line: Any) -> None:
    ffi.from_handle(context).warnings.append(text(line))


for _function in python_difference, python_warning:
    ffi.def_extern(onerror=interrupted)(_function)

def _share(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("audit_share must be from 0 to 1, not %r" % (value,)) from None


class Transcript(Closed):
    """A transcript, completely checked and planned; from load().

    inputs    the uploads, by number or name: t.inputs[0].shape, t.inputs["ct"].data
    results   the downloads, by number or name
    segments  the names of the segments; "" for entries outside of segments
    """

    def __init__(self, handle: Handle, operations: Any) -> None:
        self._file = file = _File(handle)
        self._operations = operations  # by which the library numbers them
        pointer = handle.pointer
        self.inputs = _tensors("input", lib.healcl_transcript_inputs,
                               lib.healcl_transcript_read_input, file)
        self.results = _tensors("result", lib.healcl_transcript_results,
                                lib.healcl_transcript_read_expected, file)
        self.segments = tuple(text(lib.healcl_transcript_segment_name(pointer, i))
                              for i in range(lib.healcl_transcript_segment_count(pointer)))

    def run(self, device: AnyDevice = None, *, repeat: int = 1, verify: Optional[bool] = None,
            profile: bool = False, warm_up: bool = True,
            inputs: Optional[Mapping[Name, Any]] = None, device_memory: int = 0,
            dump: Union[str, os.PathLike[str], None] = None) -> Report:
        """Runs the transcript, and compares each result with its expected tensor.

        device         a device, or an argument of open() for this run alone
        repeat         the number of runs; the report has medians
        verify         whether to compare; None: compare if no input is replaced
        profile        whether to measure the times of operations
        warm_up        whether a first run, which compiles kernels, does not count in the times
        inputs         arrays that replace the file's, by name or number
        device_memory  the most bytes to allocate on the device; 0: no limit
        dump           a folder for the results, as .npy files

        Results that differ are in the report; all other faults are raised. Ctrl-C ends the run
        before its next operation, or within an operation of the reference.
        """
        inputs = {} if inputs is None else inputs
        if not isinstance(inputs, Mapping):
            raise ArgumentError("inputs must be a dict of arrays, not %s" % type(inputs).__name__)
        given = {self.inputs.find(name): value for name, value in inputs.items()}
        arrays = {number: as_array(value) for number, value in given.items() if value is not None}
        verify = not arrays if verify is None else verify
        bound = ffi.new("struct healcl_input[]", len(arrays))
        for into, (number, array) in zip(bound, arrays.items()):
            info = self.inputs[number]
            check_array(array, info.dtype, info.shape, "input '%s'" % info.name)
            into.input, into.data = number, address(array)
        watch = _Watch()
        folder = ffi.NULL if dump is None else c_string(dump)
        options = ffi.new("struct healcl_run_options *", {
            "no_verify": not verify, "profile": bool(profile), "no_warm_up": not warm_up,
            "repeat": integer(repeat, "repeat", 32), "dump_dir": folder,
            "inputs": bound, "input_count": len(arrays),
            "device_memory_bytes": integer(device_memory, "device_memory", 64),
            "observer": {"context": watch.context, "difference": lib.python_difference,
                         "warning": lib.python_warning,
                         "cancelled": ffi.addressof(lib, "native_cancelled")}})
        report = ffi.new("struct healcl_report **")

        handle, on = self._file.get(), device_of(device)
        try:
            on._call(lambda pointer, error: lib.healcl_run(
                handle.get(), pointer, options, report, error), operations=self._operations)
        except CancelledError:
            interrupt = watch.take()
            if interrupt is not None:
                raise interrupt from None
            raise
        try:
            return _report(report[0], watch.differences, watch.warnings)
        finally:
            lib.healcl_report_free(report[0])

    def session(self, device: AnyDevice = None, *, keep_inputs: bool = True,
                audit_share: float = 0.0, audit_seed: int = 0) -> Session:
        """Opens the transcript on a device, to run it many times with other inputs.

        device       a device, or an argument of open() for this session alone
        keep_inputs  whether inputs that are not set stay on the device from run to run
        audit_share  the share of the time, from 0 to 1, to repeat steps on the host and compare
        audit_seed   the seed that selects these steps
        """
        return Session(self, device_of(device), ffi.new(
            "struct healcl_session_options *", {
                "keep_nothing": not keep_inputs, "audit_share": _share(audit_share),
                "audit_seed": integer(audit_seed, "audit_seed", 64)}))

    def widen(self, batch: int, inputs: Union[Name, Iterable[Name]]) -> Transcript:
        """Returns a transcript that does for `batch` requests at once what this one does for one.

        batch   the number of requests
        inputs  the inputs that differ between requests, by name or number

        These inputs, and results that depend on them, get a new first axis of `batch` requests.
        """
        names = [inputs] if isinstance(inputs, (str, SupportsIndex)) else inputs
        numbers = [self.inputs.find(name) for name in names]
        pointer = ffi.new("struct healcl_transcript **")
        handle = self._file.get()
        with handle.lock:
            call(lib.healcl_transcript_widen, handle.get(), ffi.new("size_t[]", numbers),
                 len(numbers), integer(batch, "batch", 63), pointer, operations=self._operations)
        return Transcript(Handle("transcript", pointer[0], lib.healcl_transcript_close,
                                 keep=handle), self._operations)

    def close(self) -> None:
        """Closes the file when nothing runs it any more. Sessions of the transcript stay open."""
        self._file.handle = None

    def __repr__(self) -> str:
        return "<healcl.Transcript: %d inputs, %d results, %d segments>" % (
            len(self.inputs), len(self.results), len(self.segments))


def load(source: Union[str, os.PathLike[str], bytes, bytearray, memoryview], *,
         memory_limit: int = 0, work_limit: int = 0, operations: Optional[Operations] = None,
         expand: Optional[str] = None, passes: Optional[str] = None) -> Transcript:
    """Reads a transcript from a file or bytes, compressed or not, checks it, and plans it.

    memory_limit  the most bytes of all tensors; 0: no limit
    work_limit    the most elements that one operation visits; 0: 2^42
    operations    operations to add to the built-in ones
    expand        the order of expand's integers: "spec" for (axis, repeats), "sdk" for
                  (repeats, axis); None: the order that is valid, else "spec"
    passes        names of passes, separated by commas, or "none"; None: all

    A file that is not compressed stays mapped. If it is truncated, the next call that reads it
    raises a FileError. If it is truncated while a tensor is read, or its disk fails then, SIGBUS
    ends the process. Pass the file's bytes instead if others may write to it.
    """
    names = ffi.NULL if passes is None else c_string(passes)
    options = plan_options(memory_limit, work_limit, operations, expand, names)
    pointer = ffi.new("struct healcl_transcript **")
    data, numbered = None, pointer_of(operations)
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = ffi.from_buffer(source)
        call(lib.healcl_transcript_open_memory, data, len(data), options, pointer,
             operations=numbered)
    else:
        call(lib.healcl_transcript_open, c_string(source), options, pointer, operations=numbered)
    return Transcript(Handle("transcript", pointer[0], lib.healcl_transcript_close, keep=data),
                      numbered)
