#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs healcl, moves what is installed, and builds an application with it outside of the tree:
with either library, through CMake and pkg-config. Each runs a bundled transcript. Before that healcl
is a folder of another project, which Make builds, where it is installed.

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


def needed(file):
    """The shared libraries that a program or library was linked with."""
    return call("readelf", "-d", file)


def check(application, is_shared, **environment):
    assert ("libhealcl.so" in needed(application)) == is_shared, application
    assert "OpenCL" not in needed(application), application  # it is loaded at run time
    said = call(application, ROOT / "transcripts/segments.json", **environment)
    assert said == "verified\n", said


def value_of(build, name):
    """A variable of a build folder's cache."""
    cache = (build / "CMakeCache.txt").read_text()
    return re.search(rf"^{name}:\w+=(.*)$", cache, re.M)[1]


def with_cmake(cmake, generator, cc, prefix, place):
    for kind in "shared", "static", "":
        build = place / f"cmake_{kind}"
        call(cmake, "-G", generator, "-S", SOURCE, "-B", build, f"-DCMAKE_C_COMPILER={cc}",
             f"-DCMAKE_PREFIX_PATH={prefix}", f"-DKIND={kind}")
        call(cmake, "--build", build)
        check(build / "application", kind != "static")


def with_pkg_config(pkg_config, cc, prefix, place):
    folder, = prefix.glob("**/pkgconfig")
    search = {"PKG_CONFIG_PATH": str(folder)}
    shared = call(pkg_config, "--cflags", "--libs", "healcl", **search)
    static = call(pkg_config, "--cflags", "--libs", "--static", "healcl", **search)
    assert str(prefix) in shared and "zstd" not in shared, shared
    assert "zip" in static and "crypto" not in static, static  # libzip's own: it may not be installed
    for flags, paths in ((shared, {"LD_LIBRARY_PATH": str(folder.parent)}),
                         (static.replace("-lhealcl", "-l:libhealcl.a"), {})):
        call(cc, SOURCE / "application.c", "-o", place / "application", *shlex.split(flags))
        check(place / "application", bool(paths), **paths)


def within(cmake, generator, cc, place):
    """As a folder of another project: the static library alone, and no warning an error. Make knows
    less than Ninja of what a file needs, so it builds; what it compiles is empty, to be quick."""
    build = place / "within"
    has_make = shutil.which("make")
    call(cmake, "-G", "Unix Makefiles" if has_make else generator, "-S", SOURCE, "-B", build,
         "-DCMAKE_UNITY_BUILD=ON",  # as some packagers set for all that they build
         f"-DCMAKE_C_COMPILER={cc}", f"-DSOURCE={ROOT}",
         "-DCMAKE_C_COMPILE_OBJECT=<CMAKE_C_COMPILER> -x c -c /dev/null -o <OBJECT>")
    assert not list(build.rglob("healcl_*/Unity"))
    values = {name: value_of(build, f"HEALCL_{name}") for name in ("WERROR", "PROGRAM", "INSTALL")}
    assert set(values.values()) == {"OFF"}, values
    targets = call(cmake, "--build", build, "--target", "help")
    assert set(re.findall(r"healcl_sh\w+|healcl_st\w+", targets)) == {"healcl_static"}, targets
    if has_make:
        call(cmake, "--build", build, "--target", "healcl_static", "-j", "4")
    else:
        print("make is not installed: the build with Make is skipped")


def main(cmake, build, cc, pkg_config):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        generator = value_of(Path(build), "CMAKE_GENERATOR")
        within(cmake, generator, cc, place)
        call(cmake, "--install", build, "--prefix", place / "first")
        prefix = (place / "first").rename(place / "moved")
        library, = prefix.glob("**/libhealcl.so")
        assert "OpenCL" not in needed(library) + needed(prefix / "bin/healcl")
        if not use_device(prefix / "bin/healcl"):
            print("no device")
            return 77
        with_cmake(cmake, generator, cc, prefix, place)
        with_pkg_config(pkg_config, cc, prefix, place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
