#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What fresh_root.sh asks of a machine and of its tools, which only pretend here.

    test_fresh_root.py
"""
import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fresh_root.sh")

SOURCES = """main http://other.example/node/ Node Source
contrib http://mirror.example/contrib/ Debian
main http://mirror.example/debian/ Debian
main http://mirror.example/debian-security/ Debian"""
CONFIG = """Acquire::http::Proxy "http://proxy.example:3128";
Acquire::Check-Date "false";
Acquire::https "";
Acquire::Languages "none";"""

TOOLS = {
    "id": "echo ${USER_ID-0}",
    "git": "[ $1 = log ] && echo 1234567 A commit || mkdir \"$5\"",
    "apt-get": "[ \"$1\" = indextargets ] && echo '%s'" % SOURCES,
    "apt-config": "[ $1 = shell ] && echo \"$2='http://proxy.example:3128'\" || echo '%s'" % CONFIG,
    "debootstrap": "echo \"debootstrap http_proxy=$http_proxy $*\" >>$CALLS\n"
                   "for last; do root=$mirror mirror=$last; done\n"
                   "mkdir -p $root/etc/apt/apt.conf.d $root/root\n"
                   "echo 12.0 >$root/etc/debian_version\n"
                   "exit ${BOOTSTRAP_FAILS-0}",
    "chroot": "root=$1; shift\n"
              "cat $root/etc/apt/apt.conf.d/* >>$CALLS\n"
              "while [ $1 != sh ]; do shift; done\n"
              "shift 4\n"
              "echo \"within $*\" >>$CALLS\n"
              "exit ${COMMAND_FAILS-0}",
    "mount": "",
    "unshare": "while [ $1 != -- ]; do shift; done; shift; exec \"$@\"",
}


class FreshRoot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="healcl-fresh-root-")
        self.addCleanup(folder.cleanup)
        self.tools = os.path.join(folder.name, "tools")
        self.calls = os.path.join(folder.name, "calls")
        self.roots = os.path.join(folder.name, "roots")
        os.mkdir(self.tools)
        for name, text in TOOLS.items():
            path = os.path.join(self.tools, name)
            with open(path, "w", encoding="utf-8") as tool:
                tool.write("#!/bin/sh\n%s\n" % text)
            os.chmod(path, 0o755)

    def run_script(self, *arguments, path=None, **environment):
        done = subprocess.run(
            ["bash", SCRIPT, "--folder", self.roots, *arguments], capture_output=True, text=True,
            check=False, env={"PATH": path or self.tools + os.pathsep + os.environ["PATH"],
                              "HOME": self.roots, "CALLS": self.calls, **environment})
        calls = ""
        if os.path.exists(self.calls):
            with open(self.calls, encoding="utf-8") as text:
                calls = text.read()
            os.remove(self.calls)
        return done, calls

    def test_says_what_it_needs(self):
        done, calls = self.run_script(USER_ID="1000")
        self.assertEqual((done.returncode, done.stderr, calls),
                         (1, "fresh_root.sh: only root can make a root and change into it\n", ""))
        for tool in ("dirname", "realpath", "bash"):
            os.symlink("/usr/bin/" + tool, os.path.join(self.tools, tool))
        os.remove(os.path.join(self.tools, "debootstrap"))
        done, calls = self.run_script(path=self.tools)
        self.assertEqual((done.returncode, calls), (1, ""))
        self.assertIn("fresh_root.sh: debootstrap is missing", done.stderr)
        self.assertEqual(self.run_script("--wrong")[0].returncode, 2)

    def test_runs_a_command_and_keeps_the_archive_alone(self):
        done, calls = self.run_script("trixie", "scripts/test.sh", "-R", "a b", COMMAND_FAILS="3")
        self.assertEqual(done.returncode, 3, done.stderr)
        bootstrap, *config, command = calls.splitlines()
        self.assertRegex(bootstrap, "^debootstrap http_proxy=http://proxy.example:3128 "
                         "--variant=minbase trixie .* http://mirror.example/debian/$")
        self.assertEqual(config, CONFIG.splitlines()[:2])
        self.assertEqual(command, "within scripts/test.sh -R a b")
        self.assertEqual(sorted(os.listdir(self.roots)), ["trixie.log", "trixie.tar.gz"])
        done, calls = self.run_script("trixie", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("debootstrap", calls)

    def test_takes_another_mirror(self):
        done, calls = self.run_script("--mirror", "https://other.example/debian", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(calls, "--include=ca-certificates bookworm .* https://other.example/debian\n")

    def test_leaves_no_part_of_an_archive(self):
        done, calls = self.run_script("bookworm", "true", BOOTSTRAP_FAILS="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--mirror", done.stderr)
        self.assertNotIn("within", calls)
        self.assertEqual(os.listdir(self.roots), ["bookworm.log"])


if __name__ == "__main__":
    unittest.main()
