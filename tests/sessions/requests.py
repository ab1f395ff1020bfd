"""A service of encrypted digits: other images for every request, under the key of the transcript,
through one session; every answer is decrypted.

Makes the transcript (`--workload digits`: n = 8192, 37 MB) unless --transcript names it, encrypts
the held out images in other orders, has session_requests (requests.c) run them, and compares each
decrypted class with the plaintext model's.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import python_with_numpy  # noqa: E402

if not python_with_numpy.find():
    print("skipped: no Python with NumPy")
    sys.exit(77)
python_with_numpy.require()

import numpy as np  # noqa: E402
from fhe import answers, ckks, data, digits, workloads  # noqa: E402
from fhe.program import limbs_last  # noqa: E402
from fhe.sampling import Sampler  # noqa: E402

SEGMENT = "upload_ct_"  # of the ciphertexts of a request


def images():
    """The held out images' pixels [images, 64], in the transcript's order."""
    model = data.model("digits")
    pixels, _ = data.digits()
    return pixels[model["held_out"]]


def encrypt(side, secret, pixels, seed, path):
    """Writes the ciphertexts of all blocks of images, as the transcript uploads them."""
    sampler, slots_count = Sampler(seed), side["n"] // 2
    with open(path, "wb") as file:
        for start in range(0, len(pixels), slots_count):
            slots = np.zeros((pixels.shape[1], slots_count))
            batch = pixels[start:start + slots_count].T
            slots[:, :batch.shape[1]] = batch
            message = ckks.encode(slots, 2.0**digits.SCALE_BITS)
            file.write(limbs_last(secret.encrypt(sampler, message)).astype("<i8").tobytes())


def judge(side, path, order):
    """Decrypts results -> the verdict on images in this order."""
    shape = side["results"][0]["shape"]
    size = int(np.prod(shape))
    values = np.fromfile(path, dtype="<i8").reshape(-1, size)
    arrays = [block.reshape(shape) for block in values]
    own = dict(side, truth=[side["truth"][i] for i in order],
               labels=[side["labels"][i] for i in order])
    return answers.judge(own, arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", help="session_requests")
    parser.add_argument("--transcript", help="its side file lies beside it (default: made anew)")
    parser.add_argument("--workload", default="digits", choices=["digits", "digits_toy"])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--inputs", type=int, default=20, help="different ones (default 20)")
    parser.add_argument("--device", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        transcript = options.transcript
        if not transcript:
            transcript = os.path.join(folder, "digits.json")
            workloads.write_encrypted(options.workload, transcript)
        with open(workloads.side_path(transcript), encoding="utf-8") as file:
            side = json.load(file)
        secret, pixels, draw = answers.secret_key(side), images(), np.random.default_rng(1)
        orders = [draw.permutation(len(pixels)) for _ in range(options.inputs)]
        for kind, order in enumerate(orders):
            encrypt(side, secret, pixels[order], 1000 + kind, os.path.join(folder, f"in.{kind}"))
        status = subprocess.run([options.program, transcript, folder, str(options.inputs),
                                 str(options.requests), SEGMENT]
                                + [options.device] * bool(options.device), check=False).returncode
        if status != 0:
            return 1
        verdicts = [judge(side, os.path.join(folder, f"out.{kind}"), order)
                    for kind, order in enumerate(orders)]
    wrong = [verdict for verdict in verdicts if not verdict.good]
    for verdict in wrong or verdicts[:1]:
        print("\n".join(line for line in verdict.lines if line.startswith(("ok", "NOT"))))
    print(f"of {len(verdicts)} inputs of {len(pixels)} images {len(verdicts) - len(wrong)} "
          "are answered rightly, in all requests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
