# SPDX-License-Identifier: Apache-2.0
"""Runs scripts that need NumPy where the first python3 has none, but another one has: on machines
with a Python of their own (pyenv, conda) beside the system's, whose packages have it.

A script that is run calls require() before it imports NumPy.
"""
import importlib.util
import os
import subprocess
import sys


def has_numpy(python):
    return subprocess.run([python, "-c", "import numpy"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def find():
    """A Python that has NumPy: this one, else the first on the PATH or of the system; or None."""
    if importlib.util.find_spec("numpy"):
        return sys.executable
    for folder in dict.fromkeys([*os.get_exec_path(), "/usr/local/bin", "/usr/bin"]):
        python = os.path.join(folder, "python3")
        if os.access(python, os.X_OK) and has_numpy(python):
            return python
    return None


def require():
    """Returns where there is NumPy; else starts the script that runs again with a Python that has
    it, or says what to install."""
    if importlib.util.find_spec("numpy"):
        return
    script = sys.modules["__main__"].__file__
    python = find()
    if not python:
        sys.exit("%s: no python3 on this machine has NumPy: install package python3-numpy (scripts/setup.sh "
                 "--demo does)" % os.path.basename(script))
    options = ["-B"] if sys.dont_write_bytecode else []
    os.execv(python, [python, *options, script, *sys.argv[1:]])
