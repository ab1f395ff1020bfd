#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the public headers, each alone, as C11 and C++11 with each compiler that there is.

    headers.py INCLUDE

What is there comes from them: no other header, and no name in a scope that C++ hides. Exits with 77,
skipped, where there is no compiler at all.
"""
import shutil
import subprocess
import sys

COMPILERS = {"gcc": ("c", "c11"), "clang": ("c", "c11"),
             "g++": ("c++", "c++11"), "clang++": ("c++", "c++11")}

HEALCL = """#include <healcl.h>
int kinds(const struct healcl_index *items, struct healcl_device_info *device);
int kinds(const struct healcl_index *items, struct healcl_device_info *device)
{
    device->type = HEALCL_DEVICE_CPU;
    return healcl_no_argument().kind == HEALCL_ARGUMENT_NONE && items->kind == HEALCL_INDEX_INT &&
           healcl_status_name(HEALCL_OK) != NULL;
}
"""

VENDOR = """#include <healcl_vendor.h>
#ifdef __cplusplus
extern "C"
#endif
healcl_vendor_function native;
int native(const struct healcl_vendor_call *call, char message[HEALCL_VENDOR_MESSAGE_SIZE])
{
    message[HEALCL_VENDOR_MESSAGE_SIZE - 1] = 0;
    return call->version != HEALCL_VENDOR_VERSION || call->arguments[0].tensor->rank != 1;
}
"""


def compile_alone(compiler, include, source):
    language, standard = COMPILERS[compiler]
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                           "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{include}", "-"],
                          input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{compiler} -std={standard}: {done.stderr}"


def main(include):
    found = [compiler for compiler in COMPILERS if shutil.which(compiler)]
    for compiler in COMPILERS:
        if compiler not in found:
            print(f"{compiler} is not installed: the headers are not compiled with it")
    for compiler in found:
        compile_alone(compiler, include, HEALCL)
        compile_alone(compiler, include, VENDOR)
    return 0 if found else 77


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
