# SPDX-License-Identifier: Apache-2.0
"""Ciphertexts and keys of SEAL 4, through TenSEAL."""
from __future__ import annotations

import math
import os
import struct
import tempfile
from typing import Any, Iterator, List, Optional, Tuple, Union

import numpy as np

from .._device import AnyDevice
from .._queue import Queue
from .._refused import OnDevice
from .._errors import ArgumentError, DtypeError, FormatError
from ._arithmetic import check_layout, ntt
from ._evaluator import RELINEARIZATION, Evaluator, engine_of
from ._operands import Ciphertext
from ._ring import Ring

# SEAL 4 saves a header, then the object in zstd: fields, and elements behind a header of their own.
_HEADER = struct.Struct("<HBBBBHQ")  # magic, header's size, version, packing, reserved, size
_MAGIC, _ZSTD = 0xa15e, 2
_CIPHERTEXT = struct.Struct("<4QB3QdQ")  # parameters, NTT form, parts, n, k, scale, correction
_PLAINTEXT = struct.Struct("<5Qd")  # parameters, elements, scale
_COUNT = struct.Struct("<Q")


def _imports() -> Tuple[Any, Any]:
    try:
        import tenseal.sealapi  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import zstandard  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError("%s: pip install 'healcl[seal]'" % error) from None
    return tenseal.sealapi, zstandard


def _saved(source: Any, layout: struct.Struct) -> Tuple[Tuple[Any, ...], np.ndarray]:
    """Fields and elements from SEAL's saved form: SEAL's getters take 0.2 us for each element."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "object")
        source.save(path)
        with open(path, "rb") as file:
            data = file.read()
    magic, size, major, minor, packing, _, _ = _HEADER.unpack_from(data)
    if (magic, size, major, packing) != (_MAGIC, _HEADER.size, 4, _ZSTD):
        raise FormatError("TenSEAL has SEAL %d.%d, compression %d: only files of SEAL 4 in zstd "
                          "are supported" % (major, minor, packing))
    body = _imports()[1].ZstdDecompressor().decompressobj().decompress(data[size:])
    first = layout.size + size
    count, = _COUNT.unpack_from(body, first)
    elements = np.frombuffer(body, "<u8", count, first + _COUNT.size)
    return layout.unpack_from(body), elements.astype(np.int64)


def _residues(ciphertext: Any) -> np.ndarray:
    """The residues [parts, k, n] of a ciphertext, or of a part of a key."""
    fields, elements = _saved(ciphertext, _CIPHERTEXT)
    return elements.reshape(fields[5], fields[7], fields[6])


class _Keys:
    """Keys by Galois element, read from SEAL when they are needed."""

    def __init__(self, relinearization: Any, galois: Any, n: int) -> None:
        self._relinearization, self._galois, self._n = relinearization, galois, n

    def __iter__(self) -> Iterator[int]:
        count = 1 if self._galois is None else 2 * self._n
        return (element for element in (RELINEARIZATION, *range(3, count, 2)) if element in self)

    def __contains__(self, element: object) -> bool:
        if element == RELINEARIZATION:
            return self._relinearization is not None and self._relinearization.has_key(2)
        return self._galois is not None and bool(self._galois.has_key(element))

    def __getitem__(self, element: int) -> np.ndarray:
        keys = self._relinearization.key(2) if element == RELINEARIZATION else \
            self._galois.key(element)
        return np.stack([_residues(key.data()) for key in keys])


class SealEvaluator(Evaluator):
    """An Evaluator that loads ciphertexts from SEAL and stores them to SEAL; from from_seal()."""

    def __init__(self, engine: Any, api: Any, context: Any, vectors: Any, keys: _Keys) -> None:
        self._api, self._context, self._vectors = api, context, vectors
        parameters = context.key_context_data().parms()
        ring = Ring(parameters.poly_modulus_degree(),
                    [q.value() for q in parameters.coeff_modulus()])
        special, dnum = check_layout(ring, int(context.using_keyswitching()), None)
        super().__init__(engine, ring, special, dnum, keys)
        self._encodes_alike: Optional[bool] = None
        self._ids: List[List[int]] = []  # SEAL's names of the levels, from 0
        data = context.last_context_data()
        while data is not None and len(self._ids) < len(self._primes):
            self._ids.append(list(data.parms_id()))
            data = data.prev_context_data()

    def load(self, source: Any, scale: Optional[float] = None, name: Optional[str] = None) -> Any:
        """Uploads a ciphertext (a TenSEAL vector or sealapi's Ciphertext) or a plaintext (sealapi's
        Plaintext), in NTT form. scale: None for SEAL's. name: the ciphertext's name in a recording,
        for session.inputs. Also takes a tensor, as Evaluator.load() does.

            a = he.load(tenseal.ckks_vector(context, [1.5, 2.5]), name="a")
        """
        if isinstance(source, OnDevice):
            return super().load(source, scale)
        slots, source = self._single(source)
        plain = type(source).__name__ == "Plaintext"
        what = "the plaintext" if plain else "the ciphertext"
        if list(source.parms_id()) not in self._ids:
            raise ArgumentError("%s has other parameters than the context%s" % (
                what, "" if plain or source.poly_modulus_degree() == self.ring.n else
                ": n = %d, not %d" % (source.poly_modulus_degree(), self.ring.n)))
        if not source.is_ntt_form():
            raise ArgumentError("%s is not in NTT form" % what)
        values = _saved(source, _PLAINTEXT)[1].reshape(-1, self.ring.n) if plain else \
            _residues(source)
        return self._load(values, source.scale if scale is None else scale, slots, what,
                          name)

    def _single(self, source: Any) -> Tuple[int, Any]:
        """The slots in use, and the ciphertext or plaintext, of an argument of load()."""
        slots = self.ring.n // 2
        if hasattr(source, "ciphertext"):
            parts = source.ciphertext()
            if len(parts) != 1:
                raise ArgumentError("it has %d ciphertexts: load() each item of ciphertext()" %
                                    len(parts))
            slots, source = source.size(), parts[0]
        if type(source).__name__ not in ("Ciphertext", "Plaintext") or \
                not hasattr(source, "parms_id"):
            raise DtypeError("must be a ciphertext or a plaintext of SEAL, not %s" %
                             type(source).__name__)
        return slots, source

    def expect(self, a: Ciphertext, source: Any) -> None:
        """Records a download, with a ciphertext of SEAL as its expected result.

            program.expect(product, seal_s_product)
        """
        source = self._single(source)[1]
        if type(source).__name__ != "Ciphertext":
            raise DtypeError("the result is a ciphertext, but a plaintext is expected")
        super().expect(a, _residues(source))

    def _encoded(self, numbers: np.ndarray, level: int, scale: float, wide: bool = False) -> Any:
        """Encodes with the bits of SEAL's encoder, or by SEAL's encoder if its bits differ."""
        if self._encodes_alike is None:
            self._encodes_alike = self._compare_encoders()
        if self._encodes_alike:
            return super()._encoded(numbers, level, scale)
        values = self._encoded_by_seal(numbers, level, scale)
        return self._on.upload(values[None], False)

    def _encoded_by_seal(self, numbers: np.ndarray, level: int, scale: float) -> np.ndarray:
        plain, encoder = self._api.Plaintext(), self._api.CKKSEncoder(self._context)
        encoded = []
        for row in numbers if numbers.ndim == 2 else [numbers]:
            try:
                encoder.encode(row.tolist(), self._ids[level], scale, plain)
            except ValueError as error:
                raise ArgumentError("SEAL cannot encode the numbers: %s" % error) from None
            encoded.append(_saved(plain, _PLAINTEXT)[1].reshape(level + 1, self.ring.n))
        return np.array(encoded)

    def _compare_encoders(self) -> bool:
        """Whether SEAL's encoder gives the same bits as ours. Both do the same operations for all
        numbers. So numbers are compared whose coefficients are large and show the last bits."""
        level, n = len(self._primes) - 1, self.ring.n
        scale = 2.0**min(math.prod(self._primes).bit_length() - 4, 61)
        if scale < 2.0**50 * math.sqrt(n):
            return False
        random = np.random.default_rng(n)
        numbers = random.uniform(-1, 1, (1, n // 2)) + 1j * random.uniform(-1, 1, (1, n // 2))
        coefficients, _ = self._coefficients(numbers, scale)
        found = ntt(coefficients % np.array(self._primes)[:, None], self.ring.pick(
            range(level + 1)))
        return np.array_equal(found, self._encoded_by_seal(numbers, level, scale)[0])

    def store(self, a: Ciphertext) -> Any:
        """Returns sealapi's Ciphertext, or a vector if the context is TenSEAL's.

            he.store(a * b).decrypt()
        """
        import tenseal
        packed = self._serialized(a)
        if self._vectors is not None:
            slots = _varint(a._slots)
            return tenseal.ckks_vector_from(self._vectors, b"".join((  # fields of CKKSVectorProto
                b"\x0a", _varint(len(slots)), slots, b"\x12", _varint(len(packed)), packed,
                b"\x19", struct.pack("<d", a.scale))))
        result = self._api.Ciphertext()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ciphertext")
            with open(path, "wb") as file:
                file.write(packed)
            result.load(self._context, path)  # which checks the parameters, and all residues
        return result

    def _serialized(self, a: Ciphertext) -> bytes:
        """Returns the bytes that Ciphertext::save writes without compression."""
        residues = self._ciphertext(a).read()
        fields = _CIPHERTEXT.pack(*self._ids[a.level], True, len(residues), self.ring.n,
                                  residues.shape[1], a.scale, 1)
        elements = _COUNT.pack(residues.size) + residues.astype("<u8").tobytes()
        body = fields + self._header(len(elements)) + elements
        return self._header(len(body)) + body

    def _header(self, size: int) -> bytes:
        version = self._api.Serialization.SEALHeader().version_minor
        return _HEADER.pack(_MAGIC, _HEADER.size, 4, version, 0, 0, _HEADER.size + size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def from_seal(context: Any, device: Union[AnyDevice, Queue], *, relinearization_keys: Any = None,
              galois_keys: Any = None) -> SealEvaluator:
    """Creates an evaluator for CKKS ciphertexts of SEAL 4, through TenSEAL.

    context               tenseal.context(...), whose keys are used; or sealapi's SEALContext
    device                or a queue, whose operations then take the tensors of ciphertexts
    relinearization_keys  sealapi's RelinKeys; None: those of the context
    galois_keys           sealapi's GaloisKeys; None: those of the context

        with fhe.from_seal(context, healcl.open("gpu")) as he:
            c = he.rescale(he.relinearize(he.load(x) * he.load(y)))
    """
    api, _ = _imports()
    vectors = None
    if hasattr(context, "seal_context"):
        vectors, context = context, context.seal_context().data
        if relinearization_keys is None and vectors.has_relin_keys():
            relinearization_keys = vectors.relin_keys().data
        if galois_keys is None and vectors.has_galois_keys():
            galois_keys = vectors.galois_keys().data
    if not hasattr(context, "key_context_data"):
        raise ArgumentError("a context must be TenSEAL's or sealapi's, not %s" %
                            type(context).__name__)
    if not context.parameters_set():
        raise ArgumentError("SEAL refuses the context: " + context.parameters_error_message())
    scheme = context.key_context_data().parms().scheme().name
    if scheme != "CKKS":
        raise ArgumentError("the scheme is %s, not CKKS" % scheme)
    for keys, kind in ((relinearization_keys, "RelinKeys"), (galois_keys, "GaloisKeys")):
        if keys is not None and type(keys).__name__ != kind:
            raise DtypeError("the keys must be %s, not %s" % (kind, type(keys).__name__))
        if keys is not None and list(keys.parms_id()) != list(context.key_parms_id()):
            raise ArgumentError("the %s have other parameters than the context" % kind)
    return SealEvaluator(engine_of(device), api, context, vectors,
                         _Keys(relinearization_keys, galois_keys,
                              context.key_context_data().parms().poly_modulus_degree()))
