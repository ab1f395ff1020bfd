# SPDX-License-Identifier: Apache-2.0
"""Transcripts of an evaluator's operations."""
from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Set

import numpy as np

from .._errors import ArgumentError
from .._recorder import Name, RecordedTensor, Recorder, mark

_CONSTANTS, _INPUTS, _REST = "upload", "upload_ct_1", ""


class SandboxRecorder(Recorder):
    """A Recorder whose first segment, "upload", has keys, plaintexts and tables, and tensors that
    are computed from them once. The second segment, "upload_ct_1", has the ciphertexts that
    requests upload. Then come compute_block_1, download_1, compute_block_2 and so on.

    Later segments do not free the tensors of these two, so that they can run again.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._texts: Dict[str, Any] = {}  # files: entries of the two segments, and of the others
        self._text: Any = None  # where entries go; None: to the transcript
        self._blocks: List[str] = []
        self._homes: Dict[Name, str] = {}  # where tensors were made
        self._used_elsewhere: Set[Name] = set()
        self._given: Set[str] = set()
        self._preparations = 0

    @contextmanager
    def preparation(self) -> Iterator[None]:
        """Puts the calls within, which depend only on constants, into the segment of constants."""
        self._preparations += 1
        try:
            yield
        finally:
            self._preparations -= 1

    def upload_table(self, host: Any) -> RecordedTensor:
        with self.preparation():
            return super().upload_table(host)

    def upload_input(self, host: Any, name: Optional[str]) -> RecordedTensor:
        """Records the upload of an input of requests, under a name that the program chooses."""
        if name is not None:
            if not isinstance(name, str) or not name.isprintable() or name.isdigit() or \
                    json.dumps(name) != '"%s"' % name or not 0 < len(name) <= 1000:
                raise ArgumentError("an input's name must be ASCII text without quotes, not a "
                                    "number and not %.60r" % (name,))
            if name in self._given:
                raise ArgumentError("two inputs have the name %r" % name)
            self._given.add(name)
        return self._upload(host, None, self._inputs, name)

    def _frees(self) -> None:
        if self._text:  # what is dropped from then on may be a tensor of a later entry
            super()._frees()

    def _free(self, name: Name) -> None:
        home = self._homes.pop(name, None)
        if home is not None and name not in self._used_elsewhere:
            with self._into(home):
                super()._free(name)

    def _entry(self, entry: List[Any], array: Optional[np.ndarray] = None) -> None:
        if entry[0]["value"] != "DEVICE_OP":
            super()._entry(entry, array)
            return
        self._frees()
        name = entry[1]["name"]
        home = _CONSTANTS if self._preparations else _INPUTS if name == "host_to_device" else _REST
        kind = "download" if name == "device_to_host" else "compute_block"
        if home == _REST and not self._blocks[-1:] == [kind]:
            self._end_block()
            self._blocks.append(kind)
            super()._entry(mark("%s_%d" % (kind, self._blocks.count(kind))))
        for argument in [*entry[1]["args"], entry[1]["out"]]:
            if argument["arg_type"]["value"] == "DEVICE_TENSOR":
                tensor = argument["value"]["inf_name"]
                if self._homes.setdefault(tensor, home) != home:
                    self._used_elsewhere.add(tensor)
        with self._into(home):
            super()._entry(entry, array)

    def _end_block(self) -> None:
        if self._blocks:
            super()._entry(mark(None))

    @contextmanager
    def _into(self, home: str) -> Iterator[None]:
        before, self._text = self._text, self._texts[home]
        try:
            yield
        finally:
            self._text = before

    def _write(self, data: bytes) -> None:
        if self._text and self._file:
            self._text.write(data)
        else:
            super()._write(data)

    def _copy(self, home: str) -> None:
        file = self._texts[home]
        file.seek(0)
        for piece in iter(lambda: file.read(1 << 20), b""):
            self._write(piece)

    def __enter__(self) -> SandboxRecorder:
        super().__enter__()
        self._separator = b",\n"
        for home in _CONSTANTS, _INPUTS, _REST:
            self._texts[home] = tempfile.TemporaryFile()
        self._text = self._texts[_REST]
        return self

    def __exit__(self, kind: Any, *rest: object) -> None:
        with self._lock:
            try:
                if kind is None:
                    self._frees()
                    self._end_block()
                    self._text = None
                    self._separator = b"\n"
                    for home in _CONSTANTS, _INPUTS:
                        with self.segment(home):
                            self._copy(home)
                    self._copy(_REST)
            finally:
                for file in self._texts.values():
                    file.close()
                super().__exit__(kind, *rest)
