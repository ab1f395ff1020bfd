#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What setup-vendors.sh says of a package that is missing, with package tools that only pretend.

    test_setup_vendors.py
"""
import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "setup-vendors.sh")
LIBCLC = "/usr/lib/clc/spirv64-mesa3d-.spv"

DEBIAN_12 = "mesa-opencl-icd\n  Depends: libclc-15\n |Depends: ocl-icd-libopencl1\n  Depends: libc6\n"
DEBIAN_13 = "mesa-opencl-icd\n  Depends: libc6\n  Depends: libclc-19\n  Suggests: libclc-19-dev\n"
EITHER = "mesa-opencl-icd\n |Depends: libclc-17\n  Depends: libclc-16\n"


class Libclc(unittest.TestCase):
    def set_up(self, dependencies, user):
        """Runs the script where rusticl is unpacked already, apt-get installs nothing, and libclc
        is missing: this machine may have it."""
        with tempfile.TemporaryDirectory(prefix="healcl-vendors-") as folder:
            tools = {"apt-cache": dependencies and "printf '%s'" % dependencies.replace("\n", "\\n"),
                     "apt-get": "echo \"$@\" >>%s/calls" % folder,
                     "dpkg": "exit 1",
                     "id": "echo %d" % user}
            for name, text in tools.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as tool:
                    tool.write("#!/bin/sh\n%s\n" % (text or "exit 100"))
                os.chmod(path, 0o755)
            vendors = os.path.join(folder, "vendors")
            os.mkdir(vendors)
            with open(os.path.join(vendors, "libRusticlOpenCL.so.1"), "w", encoding="utf-8"):
                pass
            environment = {**os.environ, "HEALCL_VENDORS_DIR": vendors,
                           "PATH": folder + os.pathsep + os.environ["PATH"]}
            copy = os.path.join(folder, "setup-vendors.sh")
            with open(SCRIPT, encoding="utf-8") as text, open(copy, "w", encoding="utf-8") as script:
                script.write(text.read().replace(LIBCLC, "/nowhere/libclc.spv"))
            ran = subprocess.run(["bash", copy, "rusticl"], env=environment, capture_output=True,
                                 text=True, check=False)
            calls = os.path.join(folder, "calls")
            if not os.path.exists(calls):
                return ran, ""
            with open(calls, encoding="utf-8") as text:
                return ran, text.read()

    def test_names_the_package(self):
        for dependencies, package in ((DEBIAN_12, "libclc-15"), (DEBIAN_13, "libclc-19"),
                                      (EITHER, "libclc-17"), ("", "libclc-N")):
            with self.subTest(package):
                ran, calls = self.set_up(dependencies, 1000)
                self.assertEqual((ran.returncode, ran.stderr, calls), (1, "", ""))
                self.assertIn("rusticl is not installed: it needs /nowhere/libclc.spv: install "
                              "package %s, as root\n" % package, ran.stdout)

    def test_installs_the_same_package(self):
        for dependencies, package in ((DEBIAN_12, "libclc-15"), (DEBIAN_13, "libclc-19")):
            with self.subTest(package):
                ran, calls = self.set_up(dependencies, 0)
                self.assertEqual(calls, "install -q -y --no-install-recommends %s\n" % package)
                self.assertIn("install package %s, as root\n" % package, ran.stdout)


class Oclgrind(unittest.TestCase):
    def set_up(self, is_registered):
        """Runs the script where the system has the package, which brings a library alone."""
        with tempfile.TemporaryDirectory(prefix="healcl-vendors-") as folder:
            library = os.path.join(folder, "liboclgrind-rt-icd.so")
            os.symlink(os.path.realpath("/bin/sh"), library)  # what ldd can read
            system = os.path.join(folder, "system")
            os.mkdir(system)
            if is_registered:
                with open(os.path.join(system, "own.icd"), "w", encoding="utf-8") as file:
                    file.write(library)
            tool = os.path.join(folder, "dpkg")
            with open(tool, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho /usr/bin/oclgrind\necho %s\n" % library)
            os.chmod(tool, 0o755)
            copy = os.path.join(folder, "setup-vendors.sh")
            with open(SCRIPT, encoding="utf-8") as text, open(copy, "w", encoding="utf-8") as script:
                script.write(text.read().replace("/etc/OpenCL/vendors", system))
            vendors = os.path.join(folder, "vendors")
            ran = subprocess.run(["bash", copy, "oclgrind"], capture_output=True, text=True, check=False,
                                 env={**os.environ, "HEALCL_VENDORS_DIR": vendors,
                                      "PATH": folder + os.pathsep + os.environ["PATH"]})
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            registered = os.path.join(vendors, "icd", "oclgrind.icd")
            if not os.path.exists(registered):
                return ran.stdout, library, None
            with open(registered, encoding="utf-8") as file:
                return ran.stdout, library, file.read().strip()

    def test_registers_what_is_installed(self):
        said, library, registered = self.set_up(False)
        self.assertEqual(registered, library)
        self.assertIn("oclgrind is registered: %s\n" % library, said)

    def test_leaves_what_the_system_has_registered(self):
        said, _, registered = self.set_up(True)
        self.assertIsNone(registered)
        self.assertIn("oclgrind is the system's: package oclgrind\n", said)


if __name__ == "__main__":
    unittest.main()
