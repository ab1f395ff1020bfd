# SPDX-License-Identifier: Apache-2.0
"""The first of several Pythons may lack NumPy, which generators of transcripts take."""
import shutil
import subprocess
import sys


def find_python():
    """A Python with NumPy, or None."""
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run(
                [python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None
