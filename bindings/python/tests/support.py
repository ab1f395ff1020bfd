# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests: devices, transcripts, and programs in processes of their own."""
import base64
import gzip
import io
import json
import os
import subprocess
import sys
import unittest

import numpy as np

import healcl

CLONE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
TRANSCRIPTS = os.path.join(CLONE, "transcripts")
_opened = {}


def transcript(name):
    path = os.path.join(TRANSCRIPTS, name)
    if not os.path.exists(path):
        raise unittest.SkipTest("no transcripts here: the tests want a clone of healcl")
    return path


def device():
    """PoCL, or what HEALCL_TEST_PLATFORM names; opened once."""
    name = os.environ.get("HEALCL_TEST_PLATFORM", "pocl")
    if name not in _opened:
        try:
            _opened[name] = healcl.open(name)
        except healcl.Error as error:
            _opened[name] = error
    if isinstance(_opened[name], healcl.Error):
        raise unittest.SkipTest("no device: %s" % _opened[name])
    return _opened[name]


def both(test):
    """Runs a test on the reference and on a device."""
    def run(self):
        with self.subTest("reference"):
            test(self, healcl.reference)
        with self.subTest("device"):
            test(self, device())
    run.__name__ = test.__name__
    return run


def python(program, *arguments, timeout=120, **options):
    """Runs a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True,
                          text=True, timeout=timeout, check=False,
                          cwd=os.path.dirname(os.path.abspath(__file__)), **options)


# Defines the device in such a program, as the file and the tests do.
SETUP = "import healcl, os, support\ndev = support.device()\n"


# ---- transcripts as a runtime reads them: lists of operations, looked up on an engine by name


def entries(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return json.load(file)["transcript"]


def is_tagged(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read(60).lstrip().startswith(b'{"__type__"')


def array_of(argument):
    content = argument["value"]["tensor_base64"]
    return np.load(io.BytesIO(base64.b64decode(content["data"])))


def value_of(argument, names):
    kind, value = argument["arg_type"]["value"], argument["value"]
    if kind == "DEVICE_TENSOR":
        return names[value["inf_name"]]
    if kind == "SHAPE":
        return tuple(value_of(item, names) for item in value)
    if kind == "TENSOR_TYPE":
        return value["value"]
    if kind == "SLICE":
        return slice(value["start"], value["stop"], value["step"])
    return {"INT": value, "NONE": None, "ELLIPSIS": Ellipsis}[kind]


def replay(path, engine):
    """Runs a tagged transcript on an engine; -> how many results were compared, all equal."""
    names, compared = {}, 0
    for kind, payload in entries(path):
        kind = kind and kind["value"]
        if kind == "FREE_DEVICE_TENSOR":
            del names[payload["tensor_name"]]
        if kind != "DEVICE_OP":
            continue
        name, out = payload["name"], payload["out"]
        function = getattr(engine, name)
        if name == "host_to_device":
            result = function(array_of(payload["args"][0]), out["value"]["dtype"])
        else:
            result = function(*[value_of(argument, names) for argument in payload["args"]])
        if name == "device_to_host":
            expected = array_of(out)
            if result.shape != expected.shape or not (result == expected).all():
                raise AssertionError("%s: a result differs" % path)
            compared += 1
        elif out["arg_type"]["value"] == "DEVICE_TENSOR":
            names[out["value"]["inf_name"]] = result
        del result
    return compared


def operations(path):
    """The names of its operations, in order, but for those that free, which entries can do."""
    return [payload["name"] for kind, payload in entries(path)
            if kind and kind["value"] == "DEVICE_OP" and
            payload["name"].lstrip("_") != "free_device_tensor"]
