# SPDX-License-Identifier: Apache-2.0
"""Sessions: a transcript on a device, which can run many times."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, TypeVar, Union

import numpy as np

from ._arrays import address, as_array, check_array, check_output
from ._device import Device
from ._errors import Error, NameUnknownError, OutOfMemoryError, call, integer, nearest
from ._handle import Closed, Handle
from ._native import ffi, lib
from ._rows import row, rows

if TYPE_CHECKING:
    from ._transcript import Tensors, Transcript

Name = Union[str, int]
_Value = TypeVar("_Value", covariant=True)


class _Named(Mapping[Name, _Value]):
    """The inputs or results of a session, by name or by number."""

    def __init__(self, session: Session, tensors: Tensors) -> None:
        self._session, self._tensors = session, tensors

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[Name]:
        return iter(self._tensors.names())

    def __contains__(self, name: object) -> bool:
        return name in self._tensors.names() or (
            isinstance(name, (int, np.integer)) and -len(self) <= int(name) < len(self))

    def __repr__(self) -> str:
        named = ["%r: %s %s" % (name, info.dtype, list(info.shape))
                 for name, info in zip(self, self._tensors[:10])]
        return "{%s}" % ", ".join([*named, "..."][:len(self)])


class Inputs(_Named[Optional[np.ndarray]]):
    """The inputs of a session, which can be set."""

    def __getitem__(self, name: Name) -> Optional[np.ndarray]:
        """The array that the next run reads: the one that was set, else a copy of the file's data,
        else None."""
        number = self._tensors.find(name)
        bound = self._session._bound.get(number)
        return self._tensors[number].data if bound is None else bound

    def __setitem__(self, name: Name, value: Any) -> None:
        """Sets an input, as session[name] = value does."""
        self._session[name] = value

    def update(self, inputs: Mapping[Name, Any]) -> None:
        """Sets several inputs."""
        for name, value in inputs.items():
            self[name] = value


class Outputs(_Named[np.ndarray]):
    """The results of a session's last run."""

    def __getitem__(self, name: Name) -> np.ndarray:
        """Returns a copy, as session.read(name) does."""
        return self._session.read(name)


class Session(Closed):
    """A transcript on a device, from Transcript.session().

        s.inputs["133"] = array      # replaces the file's data; read in each run, not copied
        s.run()
        logits = s.outputs["240"]    # a copy

    An integer is the number of an input in transcript.inputs, or of a result in
    transcript.results. If several have the same name, only their numbers can be used.
    s[name] = array sets an input, and s[name] reads a result. The session was opened with
    s.transcript, on s.device.
    """

    __iter__ = __contains__ = None  # which would read all results

    def __init__(self, transcript: Transcript, device: Device, options: Any) -> None:
        self.transcript = transcript
        self.device = device  # which may be closed
        session = ffi.new("struct healcl_session **")

        handle = transcript._file.get()
        device._call(lambda pointer, error: lib.healcl_session_open(
            handle.get(), pointer, options, session, error))
        self._bound: Dict[int, np.ndarray] = {}  # what the library reads, by input
        self._views: Dict[int, np.ndarray] = {}  # and where it writes, by result
        self._handle = SessionHandle(session[0], device._handle is not None,
                                     (self._bound, self._views))

    @property
    def inputs(self) -> Inputs:
        """The inputs by name."""
        return Inputs(self, self.transcript.inputs)

    @property
    def outputs(self) -> Outputs:
        """The results by name."""
        return Outputs(self, self.transcript.results)

    def __setitem__(self, name: Name, value: Any) -> None:
        """Takes an input's elements from an array, from the next run on. The array is not copied:
        each run reads its elements of that time. None: takes them from the file again."""
        number = self.transcript.inputs.find(name)
        array = None
        if value is not None:
            info = self.transcript.inputs[number]
            array = as_array(value)
            check_array(array, info.dtype, info.shape, "input '%s'" % info.name)
        with self._handle.lock:
            call(lib.healcl_session_bind, self._handle.get(), number,
                 ffi.NULL if array is None else address(array))
            self._bound.pop(number, None)
            if array is not None:
                self._bound[number] = array

    def __getitem__(self, name: Name) -> np.ndarray:
        """Returns a copy of a result of the last run."""
        return self.read(name)

    def read(self, name: Name, out: Optional[Any] = None) -> np.ndarray:
        """Copies a result of the last run into a new array, or into out: an array in C order of
        the same dtype and shape."""
        number = self.transcript.results.find(name)
        info = self.transcript.results[number]
        if out is None:
            array = np.empty(info.shape, info.dtype)
        else:
            array = check_output(out, info.dtype, info.shape, "result '%s'" % info.name)
        with self._handle.lock:
            call(lib.healcl_session_read, self._handle.get(), number, address(array), array.nbytes)
        return array if out is None else out

    def view(self, name: Name) -> np.ndarray:
        """A result of the last run, in an array that each further run overwrites. Only the first
        call copies. The array may outlive the session. Its elements are undefined during a run,
        and after a run that failed."""
        number = self.transcript.results.find(name)
        if number not in self._views:
            array = self.read(name)
            with self._handle.lock:
                call(lib.healcl_session_receive, self._handle.get(), number, address(array))
                self._views[number] = array
        else:
            data = ffi.new("void const **")
            with self._handle.lock:  # is there a result?
                call(lib.healcl_session_map, self._handle.get(), number, data)
        return self._views[number]

    def keep(self, name: Name, keep: bool) -> None:
        """Sets whether an input that was not set stays on the device from run to run, or each run
        uploads it from the file. An input that an operation writes to never stays."""
        number = self.transcript.inputs.find(name)
        with self._handle.lock:
            call(lib.healcl_session_keep, self._handle.get(), number, bool(keep))

    def compare(self, name: Name) -> int:
        """Returns how many elements of a result differ from the expected tensor."""
        number, different = self.transcript.results.find(name), ffi.new("uint64_t *")
        with self._handle.lock:
            call(lib.healcl_session_compare, self._handle.get(), number, different)
        return int(different[0])

    def run(self, first: Union[str, int] = 0, count: Optional[int] = None) -> None:
        """Runs all segments, or `count` of them from segment `first` on, a name or a number.
        Ctrl-C ends the run before its next operation. Other threads continue meanwhile."""
        handle = self._handle
        with handle.lock:
            ran = handle.runs  # in the background, from an earlier start()
            try:
                self.start(first, count)
                self.wait()
            except BaseException:
                if not ran:
                    handle.abandon()
                raise

    def start(self, first: Union[str, int] = 0, count: Optional[int] = None) -> None:
        """Starts a run in the background. Until wait(), only poll() and cancel() can be called."""
        names = self.transcript.segments
        if isinstance(first, str):
            if first not in names:
                raise NameUnknownError("there is no segment %r: %s" % (first,
                                                                       nearest(first, names)))
            first, count = names.index(first), 1 if count is None else count
        first = integer(first, "a segment")
        end = len(names) if count is None else first + integer(count, "count")
        if not 0 <= first <= end <= len(names):
            raise NameUnknownError("segments %d to %d do not exist: there are %d, counted from 0" %
                                   (first, end - 1, len(names)))
        handle = self._handle
        with handle.lock:
            ran = handle.runs
            try:
                handle.runs = True
                call(lib.native_session_start, handle.get(), first, end - first, handle.event)
            except Error:
                handle.runs = ran
                raise
            except BaseException:
                if not ran:
                    handle.abandon()
                raise

    def poll(self) -> bool:
        """Whether nothing runs in the background."""
        return bool(self._handle.unlocked(lib.healcl_session_poll))

    def wait(self) -> None:
        """Waits for the run that was started, and raises its error. Ctrl-C cancels the run."""
        handle = self._handle
        with handle.lock:
            try:
                while handle.runs and not lib.native_event_wait(handle.event):
                    pass  # Python looks for signals here
                call(lib.healcl_session_wait, handle.get(), operations=self.transcript._operations)
                handle.runs = False
            except Error:
                handle.runs = False
                raise
            except BaseException:
                handle.abandon()
                raise

    def cancel(self) -> None:
        """Ends the current run before its next operation. Any thread may call this."""
        self._handle.cancel()

    @property
    def facts(self) -> Dict[str, Any]:
        """Facts about the last run (seconds, bytes_uploaded, fallbacks) and the session (runs)."""
        with self._handle.lock:
            return row(lib.healcl_session_facts(self._handle.get()))

    @property
    def audit(self) -> Dict[str, Any]:
        """The audits of all runs; kernels has a row for each kernel."""
        with self._handle.lock:
            facts = lib.healcl_session_audit(self._handle.get())
            return {**row(facts), "kernels": rows(facts.kernels, facts.kernel_count),
                    "difference": row(facts.difference) if facts.difference else None}

    def close(self) -> None:
        """Ends a run in the background, and closes the session."""
        self._handle.close()

    def __repr__(self) -> str:
        return "<healcl.Session on %s: %d inputs, %d results%s>" % (
            self.device.selector, len(self.inputs), len(self.outputs),
            "" if self._handle.pointer else ", closed")


class SessionHandle(Handle):
    """A session's handle, with the event that ends a run in the background."""

    __slots__ = ("event", "runs")

    def __init__(self, pointer: Any, on_device: bool, keep: Any) -> None:
        event = lib.native_event_new()
        if not event:
            lib.healcl_session_close(pointer)
            raise OutOfMemoryError("out of memory")
        self.event = ffi.gc(event, lib.native_event_free)
        self.runs = False
        super().__init__("session", pointer, lib.healcl_session_close, lib.healcl_session_cancel,
                         on_device, keep)

    @property
    def is_of_process(self) -> bool:
        return self.on_device or self.runs

    def abandon(self) -> None:
        """Ends a run in the background after an exception in its wait."""
        if self.runs and self.pointer:
            lib.healcl_session_cancel(self.pointer)
            lib.healcl_session_wait(self.pointer, ffi.NULL)
            lib.native_event_wait(self.event)  # that of this run
            self.runs = False
