# SPDX-License-Identifier: Apache-2.0
"""The encrypted workloads by name, and how they become files."""

import contextlib
import gzip
import io
import json
import os
from typing import Any, NamedTuple

from fhe import bootstrap
from fhe.digits import digits_secure, digits_toy
from fhe.hybrid import MOST_LIMBS, SIZES, hybrid, hybrid_toy
from fhe.sentiment import sentiment
from fhe.sharpen import sharpen

SEED = 1  # of the bundled files
TRANSCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "transcripts")


class Workload(NamedTuple):
    """function(seed, sink, **options) -> (Program, the side file's content); or, of one that the
    Python package records, function(path, seed, **options) -> the side file's content. options: the
    values that each may have."""

    function: Any
    bundled: bool
    options: Any = {}
    recorded: bool = False


ENCRYPTED = {
    "digits_toy": Workload(digits_toy, True),
    "digits": Workload(digits_secure, False),
    "sharpen": Workload(sharpen, True),
    "sentiment": Workload(sentiment, True),
    "bootstrap_toy": Workload(bootstrap.bootstrap_toy, True, recorded=True),
    "bootstrap": Workload(bootstrap.bootstrap, False, {"n": bootstrap.SIZES}, True),
    "hybrid_toy": Workload(hybrid_toy, True),
    "hybrid": Workload(hybrid, False, {"n": SIZES, "limbs": range(2, MOST_LIMBS + 1),
                                       "dnum": range(1, MOST_LIMBS + 1)}),
}


def bundled(name):
    """-> (transcript text, side text, its line in the README). What the package records is read."""
    if ENCRYPTED[name].recorded:
        path = os.path.join(TRANSCRIPTS, "encrypted_%s.json.gz" % name)
        text, side = read_text(path), read_text(side_path(path))
    else:
        sink = io.StringIO()
        program, content = ENCRYPTED[name].function(SEED, sink)
        program.finish()
        text, side = sink.getvalue(), side_text(content)
    names = list(bootstrap.operations(text).values())
    return text, side, "| `encrypted_%s.json.gz` | %s | %d | %d |\n" % (
        name, about(name), len(names), names.count("device_to_host"))


def about(name):
    return " ".join(ENCRYPTED[name].function.__doc__.split())


def side_text(side):
    """JSON, a field a line."""
    fields = ["%s: %s" % (json.dumps(key), json.dumps(value)) for key, value in side.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def side_path(path):
    """NAME.json or NAME.json.gz -> NAME.answers."""
    stem = os.path.basename(path).split(".json")[0]
    return os.path.join(os.path.dirname(path), stem + ".answers")


@contextlib.contextmanager
def text_writer(path):
    """A text file; through gzip, with no time or name in its header, where the path ends in .gz."""
    with contextlib.ExitStack() as stack:
        if not path.endswith(".gz"):
            yield stack.enter_context(open(path, "w", encoding="utf-8", newline=""))
            return
        raw = stack.enter_context(open(path, "wb"))
        packed = stack.enter_context(gzip.GzipFile("", "wb", 9, raw, 0))
        yield stack.enter_context(io.TextIOWrapper(packed, encoding="utf-8", newline=""))


def read_text(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return file.read()


def write_encrypted(name, path, seed=SEED, **options):
    """A workload's transcript to a path, and its side file beside it."""
    if ENCRYPTED[name].recorded:
        side = ENCRYPTED[name].function(path, seed, **options)
        names = bootstrap.operations(read_text(path))
        side["results"][0]["entry"] = next(
            number for number, each in names.items() if each == "device_to_host")
    else:
        with text_writer(path) as sink:
            program, side = ENCRYPTED[name].function(seed, sink, **options)
            program.finish()
    with text_writer(side_path(path)) as file:
        file.write(side_text(side))
