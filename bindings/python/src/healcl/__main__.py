# SPDX-License-Identifier: Apache-2.0
"""The command line: python3 -m healcl COMMAND is healcl COMMAND."""
import os
import sys

from . import _native


def main() -> None:
    """Replaces this process by the program healcl, which is in the package."""
    program = os.path.join(os.path.dirname(os.path.abspath(_native.__file__)), "bin", "healcl")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
