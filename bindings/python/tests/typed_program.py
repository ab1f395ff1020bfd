# SPDX-License-Identifier: Apache-2.0
"""A program that uses all of the package."""
from typing import Optional

import numpy as np

import healcl
from healcl import fhe


def transcripts(path: str, dev: healcl.Device) -> Optional[bool]:
    t = healcl.load(path, memory_limit=1 << 30)
    first: Optional[np.ndarray] = t.inputs["ct"].data
    report: healcl.Report = t.run("pocl", inputs={0: first})
    print(report, report.segments[0]["seconds"], t.results[-1].shape, t.segments)
    wide: healcl.Transcript = t.widen(2, ["ct"])
    with wide.session(dev, audit_share=0.1) as s:
        s.inputs["ct"] = s.inputs[0]
        s.inputs.update({"key": np.zeros(3)})
        s[0] = first
        s.run("work")
        s.start(0, 1)
        s.wait()
        y: np.ndarray = s.outputs["y"]
        for name, array in s.outputs.items():
            print(name, array.sum() + y.sum(), "y" in s.outputs, len(s.inputs))
        print(s.read(0, out=y), s.view(0), s.compare(0), s.facts["runs"], s.audit, s.device)
    return report.verified


def calls(dev: healcl.Device) -> int:
    with dev.queue(expand="spec") as q:
        a: healcl.Tensor = q.array([1, 2, 3], np.int32)
        q.ops.modmul(a, a, 97, a)
        a[1:] = 5
        b: healcl.Tensor = a[::2]
        print(np.asarray(b), b.shape, b.dtype.itemsize, b.device.selector, a.read(), len(a))
        q.wait()
        return b[0].item()


def recorded(path: str) -> None:
    engine: healcl.Engine = healcl.heal_engine("reference", expand="sdk")
    with healcl.record(path, engine, inputs=False) as r:
        with r.segment("work"):
            x: healcl.RecordedTensor = r.host_to_device(np.arange(3))
            r.device_to_host(x[1:])
    with healcl.record(path, "reference") as other:
        print(other.host_to_device([1]))


def ciphertexts(dev: healcl.Device, key: np.ndarray) -> None:
    ring = fhe.Ring(256, [7681, 10753])
    with fhe.from_arrays(dev, ring, relinearization_key=key) as he:
        a: fhe.Ciphertext = he.load(key, 2.0**20)
        print(he.store(he.rescale(he.relinearize(a * a + a))))
    print(fhe.ntt(key, ring, dev), fhe.from_seal(object(), "pocl"))


def main() -> None:
    for info in healcl.devices():
        print(info.selector, info.name, info.unusable)
    try:
        with healcl.open("gpu", fallback=False) as dev:
            print(transcripts("t.json", dev), calls(dev), healcl.__version__)
            ciphertexts(dev, np.zeros(3))
            recorded("r.json")
    except (healcl.DataError, healcl.NameUnknownError) as error:
        print(error.entry, error.operation, error.argument, error.detail)
    print(calls(healcl.reference), healcl.Operations("folder", trusted=True))
