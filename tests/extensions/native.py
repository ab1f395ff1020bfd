#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Native code of manifests: it runs, its errors are reported, and only --ops loads it.

    native.py HEALCL LIBRARY
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples",
                             "extensions"))
from key_switch import call, host  # noqa: E402

MANIFEST = {
    "healcl": 1,
    "operations": [{
        "name": "copy_and_set",
        "parameters": [{"name": "a", "kind": "tensor", "dtype": "int64"},
                       {"name": "place", "kind": "int"},
                       {"name": "value", "kind": "scalar"}],
        "result": {"dtype": "int64", "shape": ["size(a)"]},
        "rules": ["rank(a) == 1"],
        "kernels": [{"library": "native.so", "entry": "copy_and_set",
                     "arguments": ["out", "a", "place", "value + 1"]}],
    }],
}


def main():
    healcl, library = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        ops, path = os.path.join(folder, "ops"), os.path.join(folder, "made.json")
        note = os.path.join(folder, "loaded")
        os.mkdir(ops)
        shutil.copy(library, os.path.join(ops, "native.so"))

        def manifest(old="", new=""):
            text = json.dumps(MANIFEST, indent=1)
            assert old in text
            with open(os.path.join(ops, "m.json"), "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))

        def run(*options, place=2, code=0):
            entries = [call("host_to_device", [host([5, 6, 7, 8], [4])], "a"),
                       call("copy_and_set", ["a", place, 98], "b"),
                       call("modsum", ["b", "a", 1000, "b"], "b"),
                       call("copy_and_set", ["b", 0, 10], "c"),
                       call("device_to_host", ["c"], host([11, 12, 106, 16], [4]))]
            with open(path, "w", encoding="utf-8") as file:
                file.write("[" + ",".join(entries) + "]")
            done = subprocess.run([healcl, "run", *options, path], capture_output=True, text=True,
                                  env=dict(os.environ, NATIVE_NOTE=note), check=False)
            assert done.returncode == code, done
            return done.stdout + done.stderr

        manifest()
        run("--ops", ops)
        assert os.path.exists(note)
        os.remove(note)
        # Its own commands cannot be seen: the trace has its calls, on the host's track.
        trace = os.path.join(folder, "trace.json")
        told = json.loads(run("--ops", ops, "--quiet", "--json", "-", "--trace", trace))
        kernel = {"name": "copy_and_set", "of": "copy_and_set", "manifest": "m.json",
                  "replaces": False, "steps": 2, "tuned": False}
        assert told["manifest_kernels"] == [kernel], told
        with open(trace, encoding="utf-8") as file:
            calls = [(event["name"], event["tid"], event["args"])
                     for event in json.load(file)["traceEvents"] if event.get("cat") == "native"]
        assert calls == [("copy_and_set", 1, {"op": "copy_and_set", "entry": entry,
                                              "manifest": "m.json", "alternative": "copy_and_set",
                                              "tuned": False}) for entry in (1, 3)] * 2, calls
        told = run("--ops", ops, place=9, code=4)
        assert "entry 1 (copy_and_set): native code 'copy_and_set' failed with 7: place 9" in told
        told = run("--ops", ops, "--reference", code=3)
        assert "without a body cannot run on the host reference" in told, told
        os.remove(note)
        run(code=3)
        # Errors elsewhere in the manifest are found before anything is loaded.
        for old, new, expected in (
                ('"rank(a) == 1"', '"rank(a) =="', "rules[0]: column 11: a value is missing"),
                ("value + 1", "value +", "arguments[3]: column 8: a value is missing"),
                ("native.so", "other.so", "other.so: cannot open shared object"),
                ("native.so", "../native.so", "must be a file in the manifest's own folder"),
                ('"entry"', '"global": 1, "entry"', "kernels[0].global: is not known")):
            manifest(old, new)
            told = run("--ops", ops, code=3)
            assert expected in told, told
            assert not os.path.exists(note), old
        manifest('"entry": "copy_and_set"', '"entry": "other"')
        assert "the library has no function 'other'" in run("--ops", ops, code=3)


main()
