#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl tune of kernels of manifests: the fastest right one is chosen, saved, used, discarded.

    tune.py HEALCL
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "extensions"))
from key_switch import call  # noqa: E402

SOURCE = """
#if ROUNDS == 4
#error "not on this device"
#endif
KERNEL scale(global long *out, long out_at, global const long *a, long a_at, long f)
{
    long i = get_global_id(0);
    for (volatile int round = 0; round < ROUNDS * 1000; round++) {
    }
    out[out_at + i] = a[a_at + i] * f % 97 + (ROUNDS == 2 && i == 1);
}
KERNEL other(global long *out, long out_at, global const long *a, long a_at, long f)
{
    long i = get_global_id(0);
    for (volatile int round = 0; round < 100000; round++) {
    }
    out[out_at + i] = a[a_at + i] * f % 97;
}
KERNEL replaced(global long *out, long out_at, long s0, long s1, global const long *a, long a_at,
                long t0, long t1, long n)
{
    long i = get_global_id(0);
    out[out_at + i / n * s0 + i % n * s1] = a[a_at + i / n * t0 + i % n * t1];
}
"""

KERNEL = {"source": "scale.cl", "kernel": "scale", "global": "size(out)", "local": 1,
          "when": "ROUNDS != 5", "tunables": {"ROUNDS": [100, 2, 4, 5, 1], "UNUSED": [7]},
          "arguments": ["out", "a", "f"]}
OTHER = {"source": "scale.cl", "kernel": "other", "global": "size(out)", "local": 1,
         "options": "-D ROUNDS=0", "arguments": ["out", "a", "f"]}
OPERATION = {
    "name": "scale",
    "parameters": [{"name": "a", "kind": "tensor", "dtype": "int64", "values": [0, 1000]}, {"name": "f", "kind": "int"},
                   {"name": "out", "kind": "out", "dtype": "int64"}],
    "kernels": [KERNEL, OTHER],
    "body": [{"name": "modmul", "args": ["a", "f", 97, "out"]}],
}
REPLACEMENT = {"step": "copy", "source": "scale.cl", "kernel": "replaced", "options": "-D ROUNDS=0",
               "when": "rank(out) == 2 && dtype(out) == 64", "tunables": {"LOCAL": [1, 2]},
               "global": "size(out)", "local": "LOCAL",
               "arguments": ["out", "a", "shape(a, 1)"]}

TRANSCRIPT = "[" + ",".join([call("zeros", [[64], ("int64",)], "a"), call("empty", [[64], ("int64",)], "out"),
                             call("scale", ["a", 5, "out"], "out")]) + "]"


class Folder:
    def __init__(self, healcl, path):
        self.healcl, self.path = healcl, path
        self.kept = os.path.join(path, "kept")
        self.write("scale.cl", SOURCE)
        self.write("m.json", json.dumps({"healcl": 1, "operations": [OPERATION],
                                         "replacements": [REPLACEMENT]}))

        self.write("transcript", TRANSCRIPT)
        os.mkdir(os.path.join(path, "examples"))
        self.write("examples/scale.json", TRANSCRIPT)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, command, *options, kept=None):
        environment = {**os.environ, "HEALCL_CACHE_DIR": kept or self.kept}
        environment.pop("HEALCL_AS", None)
        return subprocess.Popen([self.healcl, command, *options], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=environment)

    def run(self, command, *options, code=0, kept=None):
        process = self.start(command, *options, kept=kept)
        told = "".join(process.communicate())
        assert process.returncode == code, (process.args, process.returncode, told)
        return told

    def tune(self, *options, code=0):
        told = self.run("tune", "--ops", self.path, "--force", "--json", "-", *options, code=code)
        return json.JSONDecoder().raw_decode(told)[0]

    def ran(self, *options):
        """Which kernel ran in a transcript, and whether it was tuned."""
        trace = os.path.join(self.path, "trace")
        told = json.loads(self.run("run", "--ops", self.path, "--quiet", "--json", "-", "--trace",
                                   trace, *options, os.path.join(self.path, "transcript")))
        kernel, = told["manifest_kernels"]
        assert (kernel["of"], kernel["steps"], told["fallbacks"]) == ("scale", 1, 0), told
        with open(trace, encoding="utf-8") as file:
            traced = {(event["args"]["alternative"], event["args"]["tuned"])
                      for event in json.load(file)["traceEvents"]
                      if "manifest" in event.get("args", {})}
        assert traced == {(kernel["name"], kernel["tuned"])}, traced
        return kernel["name"], kernel["tuned"]

    def kernel(self):
        """Returns the kernel that runs the operation."""
        told = self.run("bench", "--ops", self.path, "--op", "scale", "--repeat", "1", "--json", "-")
        return json.JSONDecoder().raw_decode(told)[0]["examples"][0]["kernel"]["name"]


def main():
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(os.path.abspath(sys.argv[1]), path)
        listed = folder.run("tune", "--ops", path, "--dry-run")
        for name in "scale[ROUNDS=100,UNUSED=7]", "scale[ROUNDS=1,UNUSED=7]", "other", "step copy":
            assert f" {name}" in listed or f"\n{name}" in listed, (name, listed)
        assert "local_size" in listed, listed
        assert not [name for name in os.listdir(folder.kept) if name.startswith("kernels_")]
        assert "local_size" not in folder.run("tune", "--ops", path, "--dry-run", "--op", "_scale")
        folder.run("tune", "--op", "scale", code=2)
        assert "no kernels of manifests for 'ntt'" in folder.run(
            "tune", "--ops", path, "--op", "ntt", code=2)
        os.rename(f"{path}/examples", f"{path}/none")
        told = folder.run("tune", "--ops", path, "--op", "scale", code=2)
        assert told.startswith("healcl: no example calls 'scale': "), told
        os.rename(f"{path}/none", f"{path}/examples")
        # A folder or file that cannot be written is noticed before anything is measured.
        told = folder.run("tune", "--ops", path, "--op", "scale", code=2, kept="/dev/null/kept")
        assert told == "healcl: cannot store a choice in '/dev/null/kept': Not a directory\n", told
        told = folder.run("tune", "--ops", path, "--op", "scale", "--save", "/dev/null/x", code=2)
        assert told == "healcl: cannot write '/dev/null/x': Not a directory\n", told
        assert folder.kernel() == "scale[ROUNDS=100,UNUSED=7]"
        made = folder.tune("--op", "scale")
        outcomes = [(one["choice"].split(",")[0], one["outcome"], one["chosen"])
                    for one in made["alternatives"]]
        assert outcomes == [("scale[ROUNDS=100", "right", False), ("scale[ROUNDS=2", "wrong", False),
                            ("scale[ROUNDS=4", "failed", False), ("scale[ROUNDS=5", "failed", False),
                            ("scale[ROUNDS=1", "right", True), ("other", "right", False)], outcomes
        assert "1, not 0, at [1]" in made["alternatives"][1]["reason"], made
        assert "it runs no example" in made["alternatives"][3]["reason"], made
        assert made["kept"] is None and os.path.dirname(made["kept_kernels"]) == folder.kept
        assert folder.kernel() == "scale[ROUNDS=1,UNUSED=7]"
        assert folder.ran() == ("scale[ROUNDS=1,UNUSED=7]", True)
        # A package has the choice of its time.
        package = os.path.join(path, "tuned.healcl")
        folder.run("compile", "--ops", path, "-o", package, os.path.join(path, "transcript"))
        assert folder.ran("--package", package) == ("scale[ROUNDS=1,UNUSED=7]", True)
        # Another subject leaves the choice as it is.
        made = folder.tune("--op", "copy")
        assert [one["subject"] for one in made["alternatives"]] == ["step copy"] * 2, made
        assert folder.kernel() == "scale[ROUNDS=1,UNUSED=7]"
        # Another source is another kernel, of which nothing is known.
        folder.write("scale.cl", SOURCE + "\n")
        assert folder.kernel() == "scale[ROUNDS=100,UNUSED=7]"
        folder.write("scale.cl", SOURCE)
        assert folder.kernel() == "scale[ROUNDS=1,UNUSED=7]"
        # What cannot be kept in the end is printed, and saved, all the same.
        os.rename(made["kept_kernels"], f"{path}/before")
        os.mkdir(made["kept_kernels"])
        told = folder.run("tune", "--ops", path, "--force", "--op", "scale", "--save",
                          f"{path}/saved", code=2)
        assert "right, chosen" in told and "cannot write" in told, told
        assert os.path.exists(f"{path}/saved")
        os.rmdir(made["kept_kernels"])
        # Two at once keep both choices.
        both = [folder.start("tune", "--ops", path, "--force", "--op", name) for name in ("scale", "copy")]
        told = [process.communicate() for process in both]
        assert [process.returncode for process in both] == [0, 0], told
        with open(made["kept_kernels"], encoding="utf-8") as file:
            assert file.read().count("=") == 2, told
        # An unreadable file counts as none.
        with open(made["kept_kernels"], "r+", encoding="utf-8") as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace("=", "?"))
        assert folder.kernel() == "scale[ROUNDS=100,UNUSED=7]"
        assert folder.ran() == ("scale[ROUNDS=100,UNUSED=7]", False)
        assert folder.ran("--no-fallback", "--package", package) == ("scale[ROUNDS=1,UNUSED=7]", True)


main()
