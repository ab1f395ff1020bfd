# SPDX-License-Identifier: Apache-2.0
"""A program that uses all of the package. mypy reads it, and nothing runs it."""
from typing import List, Optional

import numpy as np

import healcl
from healcl import fhe


def transcripts(dev: healcl.Device) -> Optional[bool]:
    t = healcl.load("t.json", memory_limit=1 << 30)
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
        y: np.ndarray = s.outputs["y"]
        print([array.sum() for array in s.outputs.values()], "y" in s.outputs, len(s.inputs))
        print(s.read(0, out=y), s.view(0), s.compare(0), s.facts["runs"], s.audit, s.device)
    return report.verified


def calls(dev: healcl.Device) -> int:
    with dev.queue(expand="spec", operations=healcl.Operations("folder", trusted=True)) as q:
        a: healcl.Tensor = q.array([1, 2, 3], np.int32)
        q.ops.modmul(a, a, 97, a)
        a[1:] = 5
        print(np.asarray(a), a.shape, a.dtype.itemsize, a.device.selector, a.read(), len(a))
        return a[::2][0].item()


def recorded() -> None:
    engine: healcl.Engine = healcl.heal_engine("reference", expand="sdk")
    with healcl.record("r.json", engine, inputs=False) as r, r.segment("work"):
        x: healcl.RecordedTensor = r.host_to_device(np.arange(3))
        r.device_to_host(x[1:])


def ciphertexts(dev: healcl.Device, key: np.ndarray) -> None:
    ring = fhe.Ring(256, [7681, 10753])
    with fhe.from_arrays(dev, ring, relinearization_key=key) as he:
        a: fhe.Ciphertext = he.load(key, 2.0**20)
        print(he.store(he.rescale(he.relinearize(a * a + a))))
        t = fhe.LinearTransform({0: 1, 1: key[0]}, 128)
        he.prepare(t, 1)
        rows: List[fhe.Plaintext] = he.encode(key, a)
        b: fhe.Ciphertext = he.dot(he.rotations(a, t.rotations), rows) + 0.5
        c: fhe.Ciphertext = he.polynomial(he.apply(t, 3 * b), [1, 2], basis="chebyshev")
        print(he.load_keys(level=1), he.queue.ops.modneg(c.tensor, 7), fhe.Bootstrapping(256).moduli)
    print(fhe.ntt(key, ring, dev), fhe.from_seal(object(), "pocl"))


try:
    with healcl.open("gpu", fallback=False) as opened:
        print(transcripts(opened), calls(healcl.reference), healcl.__version__)
except (healcl.DataError, healcl.NameUnknownError) as error:
    print(error.entry, error.operation, error.argument, error.detail, healcl.devices()[0].unusable)
