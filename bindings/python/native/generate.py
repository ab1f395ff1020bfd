# SPDX-License-Identifier: Apache-2.0
"""Makes the C source of healcl._native: generate.py OUTPUT HEADER...

What Python can call is what the headers declare. Nothing is declared twice.
"""
import os
import re
import sys

from cffi import FFI


def declarations(path):
    """A header as cffi reads it: no preprocessor, no functions with a body. Functions python_... are
    Python's."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^static inline .*?^}\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^#(?:.*\\\n)*.*\n", "", text, flags=re.M)
    text = re.sub(r"^(?=\w+ python_)", 'extern "Python+C" ', text, flags=re.M)
    return re.sub(r"HEALCL_MUST_CHECK(_TYPE)? ", "", text)


def main(output, *headers):
    ffi = FFI()
    for header in headers:
        ffi.cdef(declarations(header))
    ffi.set_source("healcl._native",
                   "".join('#include "%s"\n' % os.path.basename(header) for header in headers))
    ffi.emit_c_code(output)


main(*sys.argv[1:])
