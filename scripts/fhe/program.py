# SPDX-License-Identifier: Apache-2.0
"""Transcripts over ciphertexts: what the encrypted workloads have in common."""

import hashlib

import numpy as np

from bundled_workloads import index, intt_args, ntt_args
from fhe._secret import Sampler, SecretKey
from fhe.machine import FastMachine
from transcript_builder import Rng, Transcript

KEY_STREAM = 2**32  # sets the seed of keys and errors apart from that of names
BASE_BITS = 4  # of the digits that key switching cuts values into
PAIRS_LIMIT = 64  # the butterflies' indices are only a hint: large rings do without


class Program(Transcript):
    """A Transcript that runs on the fast machine, for one ring and one secret key.

    `results` lists the entries that download something. The key, the errors and the masks are
    drawn from the seed; names too, as everywhere."""

    def __init__(self, seed, ring, sink=None):
        super().__init__(seed, sink=sink)
        self.machine = FastMachine()
        self.ring, self.values = ring, Rng(seed + KEY_STREAM)
        self.sampler = Sampler(self.values.words)
        self.secret = SecretKey(ring, self.sampler.ternary(ring.n))
        self.tables, self.results = {}, []

    def upload_tables(self):
        """The tables of the ring that the transforms want."""
        names = ("perm", "q", "log2p", "mu", "psi", "ipsi", "n_inv")
        self.tables = {name: self.upload(getattr(self.ring.tables, name)) for name in names}
        small = self.ring.n <= PAIRS_LIMIT
        self.tables["pairs"] = self.upload(self.ring.tables.pairs) if small else None

    def free_tables(self):
        self.free(*[table for table in self.tables.values() if table])

    def download_result(self, handle, **npy_format):
        array = self.array(handle)
        self.results.append({"entry": self.count, "shape": [int(size) for size in array.shape],
                             "sha256": digest(array)})
        self.download(handle, **npy_format)

    # Operations in the shapes that the workloads use

    def pick(self, a, *items):
        return self.op("get_slice", a, index(*items))

    def forward(self, a, axis, shape, tile=False, skip_perm=False):
        return self.op("ntt", *ntt_args(self.tables, a, axis, self.empty(shape), tile, skip_perm))

    def inverse(self, a, shape):
        """intt of [l, n, r, k]."""
        return self.op("intt", *intt_args(self.tables, a, self.empty(shape)))

    def upload_switching_key(self, old, limbs_last=False, fortran=False):
        """A key from `old`, values [k, n], over the full q; int64 [2, digits, k, n] on the
        device, or [2, digits, n, k]."""
        factors = [1 << bit for bit in range(0, self.ring.full.bit_length(), BASE_BITS)]
        key = np.moveaxis(self.secret.switching_key(self.sampler, old, factors), 1, 0)
        return self.upload(np.ascontiguousarray(np.moveaxis(key, -1, -2) if limbs_last else key),
                           fortran=fortran)

    def upload_hints(self):
        """The precomputed hints (q_inv, level_inv) of full-q digits for two primes."""
        q = self.ring.primes
        pair = [pow(q[1 - j], -1, q[j]) for j in (0, 1)]
        return self.upload(np.array([[0, pair[0]], [pair[1], 0]])), self.upload(np.array(pair))

    def full_q_digits(self, a, out, hints):
        """Four-bit digits of the CRT value of residues [l, k, r]."""
        count = self.array(out).shape[1]
        return self.op("apply_g_decomp_relative_to_full_q", a, self.tables["q"], hints[0], count,
                       BASE_BITS, 60, hints[1], out)

    def apply_key(self, spectrum, key, half, total):
        """total [reps, k, n] += spectrum [reps, digits, k, n], bit-reversed, times a key's half
        [digits, k, n] in natural order."""
        part = self.pick(key, half)
        tables = self.tables
        self.op("modmul_axis_sum", spectrum, part, tables["q"], tables["log2p"], tables["mu"],
                tables["perm"], total, True)
        self.free(part)

    def answers(self, workload, scheme, task, **fields):
        """Returns the key owner's data: the content of the side file."""
        signs = "".join("-0+"[coefficient + 1] for coefficient in self.secret.coefficients)
        return dict({"workload": workload, "scheme": scheme, "task": task, "n": self.ring.n,
                     "primes": self.ring.primes, "secret_key": signs, "results": self.results},
                    **fields)


def digest(array):
    """SHA-256 of an array's elements as int64, little-endian, in C order."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<i8").tobytes()).hexdigest()


def limbs_last(ciphertexts):
    """[..., 2, k, n] -> contiguous [..., n, 2, k], the layout that real transcripts upload."""
    return np.ascontiguousarray(np.moveaxis(ciphertexts, -1, -3))
