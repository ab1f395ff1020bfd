#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs healcl, moves what is installed, and builds an application with it outside of the tree:
with either library, through CMake and pkg-config. Each runs a bundled transcript.

    applications.py CMAKE BUILD CC PKG_CONFIG

Exits with 77, skipped, where there is no device.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests/install/application"
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402


def call(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def check(application, is_shared, **environment):
    assert ("libhealcl.so" in call("readelf", "-d", application)) == is_shared, application
    said = call(application, ROOT / "transcripts/segments.json", **environment)
    assert said == "verified\n", said


def with_cmake(cmake, cc, prefix, place):
    for kind in "shared", "static", "":
        build = place / f"cmake_{kind}"
        call(cmake, "-S", SOURCE, "-B", build, f"-DCMAKE_C_COMPILER={cc}",
             f"-DCMAKE_PREFIX_PATH={prefix}", f"-DKIND={kind}")
        call(cmake, "--build", build)
        check(build / "application", kind != "static")


def with_pkg_config(pkg_config, cc, prefix, place):
    folder, = prefix.glob("**/pkgconfig")
    search = {"PKG_CONFIG_PATH": str(folder)}
    shared = call(pkg_config, "--cflags", "--libs", "healcl", **search)
    static = call(pkg_config, "--cflags", "--libs", "--static", "healcl", **search)
    assert str(prefix) in shared and "zstd" not in shared, shared
    for flags, paths in ((shared, {"LD_LIBRARY_PATH": str(folder.parent)}),
                         (static.replace("-lhealcl", "-l:libhealcl.a"), {})):
        call(cc, SOURCE / "application.c", "-o", place / "application", *shlex.split(flags))
        check(place / "application", bool(paths), **paths)


def within(cmake, cc, place):
    """As a folder of another project: the static library alone, and no warning an error."""
    call(cmake, "-S", SOURCE, "-B", place / "within", f"-DCMAKE_C_COMPILER={cc}", f"-DSOURCE={ROOT}")
    cache = (place / "within/CMakeCache.txt").read_text()
    values = {name: re.search(rf"^HEALCL_{name}:BOOL=(.*)$", cache, re.M)[1]
              for name in ("WERROR", "PROGRAM", "INSTALL")}
    assert set(values.values()) == {"OFF"}, values
    targets = call(cmake, "--build", place / "within", "--target", "help")
    assert set(re.findall(r"healcl_sh\w+|healcl_st\w+", targets)) == {"healcl_static"}, targets


# Stands before the compiler, and compiles nothing: each object is a copy of one that is empty.
LAUNCHER = """#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && object=$2
    shift
done
exec cp "${0%/*}/empty.o" "$object"
"""


def with_make(cmake, cc, place):
    """Each target depends on all that its rules read: of Make nothing else gives the order."""
    if not shutil.which("make"):
        print("no make: its order of targets is not tested")
        return
    place.mkdir()
    launcher = place / "launcher"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    call(cc, "-c", "-x", "c", "/dev/null", "-o", place / "empty.o")
    call(cmake, "-G", "Unix Makefiles", "-S", ROOT, "-B", place / "build", f"-DCMAKE_C_COMPILER={cc}",
         f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", "-DHEALCL_PROGRAM=OFF")
    call(cmake, "--build", place / "build", "-j2")
    assert (place / "build/libhealcl.a").exists()


def main(cmake, build, cc, pkg_config):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with_make(cmake, cc, place / "make")
        call(cmake, "--install", build, "--prefix", place / "first")
        prefix = (place / "first").rename(place / "moved")
        if not use_device(prefix / "bin/healcl"):
            print("no device")
            return 77
        with_cmake(cmake, cc, prefix, place)
        with_pkg_config(pkg_config, cc, prefix, place)
        within(cmake, cc, place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
