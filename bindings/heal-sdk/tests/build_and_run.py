#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the backend of HEAL's SDK with stand-ins for torch and for three versions of the SDK, over
healcl as it is installed, and runs its tests on the host reference and on a device.

    build_and_run.py CMAKE BUILD

Exits with 77, skipped, where there is no C++ compiler.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "bindings/heal-sdk"
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402


def call(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def main(cmake, build):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        print("no C++ compiler: the backend of HEAL's SDK is not built")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        call(cmake, "--install", build, "--prefix", place / "healcl")
        on_device = use_device(place / "healcl/bin/healcl")
        if not on_device:
            print("no device: they run on the host reference alone")
        for sdk in "main", "between", "later":
            build = place / sdk
            call(cmake, "-S", SOURCE, "-B", build, "-DHEAL_SDK_TESTS=ON",
                 f"-DHEAL_SDK={SOURCE / 'tests/stand_in' / sdk}",
                 f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={place / 'healcl'}",
                 "-DCMAKE_BUILD_TYPE=Debug")
            call(cmake, "--build", build)
            assert call(build / "test_backend", HEALCL_DEVICE="reference") == "passed\n"
            if on_device:
                assert call(build / "test_backend") == "passed\n"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
