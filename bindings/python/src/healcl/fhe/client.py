# SPDX-License-Identifier: Apache-2.0
"""The client's side of CKKS: keys, encryption and decryption, for tests, examples and measurements.

**This implementation is not secure.** A seed determines keys and errors, nothing runs in constant
time, and nobody has reviewed it. For secrets, use SEAL, OpenFHE or another library.
"""
from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from .._device import AnyDevice, device_of, reference
from .._queue import Queue
from ._arithmetic import check_layout, intt, ntt
from ._encoding import Encoder
from ._evaluator import RELINEARIZATION, Evaluator, from_arrays
from ._ring import Ring
from ._secret import Polynomials, Sampler, SecretKey, digit_factors


class _Values(Polynomials):
    """Values in the order of a Ring. A device computes transforms and products."""

    def __init__(self, ring: Ring, special: int, device: Any) -> None:
        self.ring, self.n, self.primes, self.special = ring, ring.n, ring.moduli, special
        self.device = device
        self.column = np.array(ring.moduli)[:, None]

    def forward(self, a: np.ndarray) -> np.ndarray:
        return ntt(a, self.ring, self.device)

    def inverse(self, a: np.ndarray) -> np.ndarray:
        return intt(a, self.ring, self.device)

    def plus(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray((a + b) % self.column)

    def minus(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray((a - b) % self.column)

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with self.device.queue() as q:
            return np.asarray(q.ops.modmul(q.array(a), q.array(b), q.array(self.column)).read())


class Client:
    """Has a secret key of CKKS (Cheon, Kim, Kim, Song 2017), and makes the keys of servers.

    ring       the primes of ciphertexts, then the special primes
    special    the number of special primes
    dnum       the number of digits of key switching; None: one for each prime of ciphertexts
    generator  the generator of Galois elements of rotations
    weight     the number of nonzero coefficients of the secret; None: about two of three
    seed       an integer that determines keys and errors
    device     the device that runs the client's transforms

        client = Client(fhe.Ring(8192, fhe.primes(8192, 60, 40, 40, 60)))
        with client.evaluator(dev, [1]) as he:
            a = he.load(client.encrypt([0.5, 1.5], 2, 2.0**40), 2.0**40)
            b = he.rotate(a, 1)
            client.decrypt(b.read(), b.scale)           # [1.5, 0, ... 0, 0.5]

    This implementation is not secure: see help(healcl.fhe.client).
    """

    def __init__(self, ring: Ring, special: int = 1, dnum: Optional[int] = None, *,
                 generator: int = 5, weight: Optional[int] = None, seed: int = 1,
                 device: AnyDevice = reference) -> None:
        self.ring, self.generator, self._seed = ring, generator, seed
        self.special, self.dnum = check_layout(ring, special, dnum)
        self._device, self._drawn = device_of(device), 0
        self._rings: Dict[Tuple[int, int], _Values] = {}
        #: The secret's coefficients, int64 [n] of -1, 0 and 1.
        self.secret = self.new_secret(weight)

    def new_secret(self, weight: Optional[int] = None) -> np.ndarray:
        """Returns the coefficients of another secret, int64 [n] of -1, 0 and 1. weight: the number
        of nonzero ones; None: about two of three.

            client.key(client.secret, client.new_secret(32))
        """
        sampler, n = self._sampler(), self.ring.n
        return sampler.ternary(n) if weight is None else sampler.sparse(n, weight)

    def _sampler(self, *label: int) -> Sampler:
        """Random words, determined by the seed and the label; without a label, new ones."""
        self._drawn += not label
        return Sampler(np.random.PCG64([self._seed, *(label or (self._drawn,))]).random_raw)

    def _values(self, level: Optional[int], special: int = 0) -> _Values:
        """The ring of a level's primes (None: the highest level) and the first special primes."""
        count = len(self.ring.moduli) - self.special
        level = count - 1 if level is None else level
        if (level, special) not in self._rings:
            self._rings[level, special] = _Values(self.ring.pick(
                [*range(level + 1), *range(count, count + special)]), special, self._device)
        return self._rings[level, special]

    # ---- ciphertexts

    def encrypt(self, values: Any, level: Optional[int], scale: float) -> np.ndarray:
        """Encrypts real or complex numbers for at most n/2 slots, or one number for all slots.
        Returns a ciphertext, int64 [2, level + 1, n]. level: None for the highest.

            he.load(client.encrypt(1.5, 2, 2.0**40), 2.0**40)
        """
        ring = self._values(level)
        numbers = np.asarray(values) + np.zeros(1 if np.ndim(values) else ring.n // 2)
        message, _ = Encoder(self.ring, self.generator).coefficients(numbers[None], scale)
        return SecretKey(ring, self.secret).encrypt(self._sampler(), message[0])

    def decrypt(self, residues: Any, scale: float, secret: Optional[np.ndarray] = None) -> np.ndarray:
        """Decrypts a ciphertext, int64 [2, k, n]. Returns the numbers in its slots, complex [n/2].
        secret: the coefficients of another secret.

            client.decrypt(c.read(), c.scale).real
        """
        array, n = np.asarray(residues), self.ring.n
        key = SecretKey(self._values(array.shape[-2] - 1), self.secret if secret is None else secret)
        values = np.fft.ifft(key.decrypt(array).astype(float) *
                             np.exp(1j * np.pi * np.arange(n) / n)) * (n / scale)
        slots = [pow(self.generator, j, 2 * n) // 2 for j in range(n // 2)]
        return np.asarray(values[..., slots])  # place i has the value at exp(i pi (2 i + 1) / n)

    # ---- keys

    def key(self, old: np.ndarray, new: Optional[np.ndarray] = None, level: Optional[int] = None,
            special: Optional[int] = None) -> np.ndarray:
        """Returns a key from one secret to another, for Evaluator.load_key(): int64
        [digits, 2, level + 1 + special, n].

        old, new  the coefficients of the secrets; new: None for the client's
        level     the highest level at which the key can be used; None: the highest of all
        special   the number of special primes in it, which are the first ones; None: all. With
                  fewer than all, each prime is a digit

            he.key_switch(a, he.load_key(client.key(client.secret, other)))
        """
        ring = self._values(level, self.special if special is None else special)
        return self._key(ring, self._sampler(), SecretKey(ring, old).values,
                         self.secret if new is None else new)

    def _key(self, ring: _Values, sampler: Sampler, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """old: the values of a polynomial. new: the coefficients of a secret."""
        count, size = len(ring.primes) - ring.special, 1
        if ring.special == self.special:
            size = -(-(len(self.ring.moduli) - self.special) // self.dnum)
        digits = [range(i, min(i + size, count)) for i in range(0, count, size)]
        return SecretKey(ring, new).switching_key(sampler, old, digit_factors(
            ring.primes[:count], ring.primes[count:], digits))

    def relinearization_key(self) -> np.ndarray:
        """Returns the key from the square of the secret, for from_arrays().

            fhe.from_arrays(dev, ring, relinearization_key=client.relinearization_key())
        """
        ring = self._values(None, self.special)
        return self._key(ring, self._sampler(0, 0), SecretKey(ring, self.secret).square(),
                         self.secret)

    def galois_key(self, element: int, turn: str = "before") -> np.ndarray:
        """Returns the key of a Galois element, for from_arrays(). turn: as in from_arrays().

            client.galois_key(ring.galois_element(1, 5))
        """
        ring, before = self._values(None, self.special), turn == "before"
        secret = SecretKey(ring, self.secret)
        turned = secret.turned(element if before else pow(element, -1, 2 * self.ring.n))
        old, new = (turned, secret) if before else (secret, turned)
        return self._key(ring, self._sampler(int(before), element), old.values, new.coefficients)

    def evaluator(self, device: Union[AnyDevice, Queue], steps: Iterable[int] = (),
                  turn: str = "before", ephemeral: Optional[int] = None) -> Evaluator:
        """Creates a server: an evaluator on a device or a queue, with keys to relinearize, to
        conjugate and to rotate. Keys are created on request, and not kept here.

        steps      the steps of rotations
        turn       as in from_arrays()
        ephemeral  for bootstrapping with a dense secret: the number of nonzero coefficients of a
                   sparse secret, whose keys have only the first special prime

            he = client.evaluator(dev, transform.rotations, "within")
        """
        sparse = self.new_secret(ephemeral) if ephemeral else None
        return from_arrays(
            device, self.ring, special=self.special, dnum=self.dnum, generator=self.generator,
            turn=turn, galois_keys=_Keys(self, turn, [
                self.ring.galois_element(each, self.generator) for each in steps]),
            ephemeral_keys=sparse if sparse is None else (
                self.key(self.secret, sparse, 0, 1), self.key(sparse)))


class _Keys(Mapping[int, np.ndarray]):
    """Keys by Galois element, including that for conjugation, created on request; and 0, the
    relinearization key."""

    def __init__(self, client: Client, turn: str, elements: List[int]) -> None:
        self._client, self._turn = client, turn
        self._elements = dict.fromkeys([RELINEARIZATION, 2 * client.ring.n - 1, *elements])

    def __getitem__(self, element: int) -> np.ndarray:
        return self._client.galois_key(element, self._turn) if element != RELINEARIZATION else \
            self._client.relinearization_key()

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[int]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)
