# SPDX-License-Identifier: Apache-2.0
"""Transcripts of what an evaluator does."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, List, Tuple

import numpy as np

from .._recorder import RecordedTensor, Recorder, host_argument


class SandboxRecorder(Recorder):
    """A Recorder that puts all uploads, and what is made of them once, into a first segment,
    "upload". Then come compute_block_1, download_1, compute_block_2 and so on."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._segments: List[Tuple[str, List[Any]]] = [("upload", [])]
        self._writes = False
        self._preparations = 0

    @contextmanager
    def preparation(self) -> Iterator[None]:
        """Puts calls within, which depend on uploads alone, into their segment."""
        self._preparations += 1
        try:
            yield
        finally:
            self._preparations -= 1

    def expect(self, tensor: RecordedTensor, array: np.ndarray) -> None:
        """Records a download that is to be equal to an array."""
        with self._lock:
            self._operation("device_to_host", [self._pointer(tensor)], host_argument(array, True))

    def _frees(self) -> None:
        if not self._writes:  # what is dropped from then on may be a tensor of a later entry
            super()._frees()

    def _entry(self, entry: List[Any]) -> None:
        if self._writes:
            super()._entry(entry)
            return
        if entry[0]["value"] == "DEVICE_OP":
            self._frees()
            name = entry[1]["name"]
            kind = "download" if name == "device_to_host" else "compute_block"
            if name == "host_to_device" or self._preparations:
                self._segments[0][1].append(entry)
                return
            if not self._segments[-1][0].startswith(kind):
                self._segments.append(("%s_%d" % (kind, (len(self._segments) + 1) // 2), []))
        self._segments[-1][1].append(entry)

    def __exit__(self, kind: Any, *rest: object) -> None:
        with self._lock:
            self._frees()
            self._writes = True
            for name, entries in self._segments if kind is None else ():
                with self.segment(name):
                    for entry in entries:
                        self._entry(entry)
            super().__exit__(kind, *rest)
