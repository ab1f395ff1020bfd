#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The system around a run: signals, its limits, files that change or are not what they seem. Each case
ends with one line, an exit code, and no file left behind.

    system.py HEALCL [--sanitized]

Sanitizers take memory of their own: with --sanitized its limits are left out.
"""
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEGMENTS = ROOT / "transcripts/segments.json"
RECOGNIZER = ROOT / "transcripts/recognizer.json"
PACKED = ROOT / "transcripts/encrypted_digits_toy.json.gz"
MIB = 1 << 20


class System:
    def __init__(self, healcl, folder):
        self.healcl, self.folder = healcl, Path(folder)

    def start(self, *arguments, limits=(), **more):
        def prepare():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            for what, most in limits:
                resource.setrlimit(what, (most, most))
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([self.healcl, *map(str, arguments)], preexec_fn=prepare, **more)

    def run(self, *arguments, **more):
        """The exit code, and what was printed on both streams."""
        process = self.start(*arguments, **more)
        out, errors = process.communicate(timeout=120)
        return process.returncode, (out or b"").decode(), errors.decode()

    def many_differences(self):
        """A transcript whose run prints more than a pipe holds: while nobody reads on, it waits in
        the middle of the run, and its file is mapped."""
        lines = (ROOT / "tests/bad/differs_in_last_value.json").read_text().splitlines()
        file = self.folder / "differences.json"
        differing = lines[4]  # of entry 3
        file.write_text("\n".join([*lines[:4], *[differing] * 5000, *lines[5:]]) + "\n")
        return file

    def start_differences(self, file, *options, **more):
        """The process, of which one line was read."""
        process = self.start("run", "--reference", *options, file, bufsize=0, **more)
        assert os.read(process.stdout.fileno(), 6) == b"entry ", process.communicate()
        return process


def one_line(errors):
    assert errors.startswith("healcl: ") and errors.count("\n") == 1, errors
    return errors


def test_signals(system):
    file = system.many_differences()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with tempfile.TemporaryDirectory(dir=system.folder) as place:
            options = ("--json", f"{place}/run.json", "--trace", f"{place}/trace.json")
            process = system.start_differences(file, *options)
            names = sorted(name.split(".tmp-")[0] for name in os.listdir(place))
            assert names == ["run.json", "trace.json"], names
            process.send_signal(number)
            _, errors = process.communicate(timeout=120)
            assert process.returncode == -number and not errors, (process.returncode, errors)
            assert not os.listdir(place), os.listdir(place)


def test_first_process(system):
    """As the first process of a container: the kernel lets no signal end that by default."""
    if subprocess.run(["unshare", "-pf", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("first process: skipped, unshare needs root")
        return
    again = ("--repeat", "250000", ROOT / "transcripts/nothing.json")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for command in (("run", "--reference"), ("compare", "--no-measure", "-d", "reference")):
            process = subprocess.Popen(["unshare", "-pf", system.healcl, *command, *again],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None:  # the first ones may come before it has handlers
                time.sleep(0.05)
                for child in Path(f"/proc/{process.pid}/task/{process.pid}/children"
                                  ).read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(child), number)
            assert process.returncode == 128 + number, (command, process.returncode)


def test_cut_while_mapped(system):
    file = system.many_differences()
    with tempfile.TemporaryDirectory(dir=system.folder) as place:
        process = system.start_differences(file, "--json", f"{place}/run.json")
        os.truncate(file, 0)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 3, process.returncode
        # Whichever comes first: an access, or the look at the file before results are told.
        assert one_line(errors.decode()) == f"healcl: '{file}': lost while it was read: the file " \
            "was truncated, or its disk failed\n" or "changed while it was read: it has 0 bytes" in \
            errors.decode(), errors
        for report in os.listdir(place):
            assert "error" in json.loads(Path(place, report).read_text()), report


def test_written_while_mapped(system):
    """In place that is the file's fault, or its payloads'; a rename leaves what is mapped."""
    other = system.folder / "other.json"
    for code, words in ((3, "the file changed while it was read: it has been written to"),
                        (1, "5000 of 5002 results differ")):
        file = system.many_differences()
        process = system.start_differences(file)
        if code == 3:
            with open(file, "r+") as stream:
                stream.write("[")
        else:
            shutil.copy(file, other)
            os.replace(other, file)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == code, (process.returncode, errors)
        assert one_line(errors.decode()) == f"healcl: {file}: {words}\n", errors
    assert system.run("pack", file, "-o", other)[0] == 0
    process = system.start_differences(other)
    with open(f"{other}.bin", "r+") as stream:
        stream.write("x")
    _, errors = process.communicate(timeout=120)
    assert one_line(errors.decode()) == f"healcl: {other}: 'other.json.bin': the file changed " \
        "while it was read: it has been written to\n", errors


def test_file_size_limit(system):
    limits = ((resource.RLIMIT_FSIZE, 1024),)
    with tempfile.TemporaryDirectory(dir=system.folder) as place:
        for arguments in (("run", "--reference", "--json", f"{place}/run.json", RECOGNIZER),
                          ("run", "--reference", "--trace", f"{place}/trace.json", RECOGNIZER),
                          ("run", "--reference", "--dump", f"{place}/dump", RECOGNIZER),
                          ("pack", RECOGNIZER, "-o", f"{place}/p.json"),
                          ("pack", SEGMENTS, "-o", f"{place}/p.json"),
                          ("inspect", PACKED)):
            code, _, errors = system.run(*arguments, limits=limits)
            assert code == 2 and "File too large" in one_line(errors), (arguments, code, errors)
        assert os.listdir(place) == ["dump"] and not os.listdir(f"{place}/dump")
        with open(f"{place}/out", "wb") as out:
            code, _, errors = system.run("ops", limits=limits, stdout=out)
        assert code == 2 and "File too large" in one_line(errors), (code, errors)


def test_full_disk(system):
    """A pack that does not fit leaves the one that is there, and reports leave nothing."""
    with tempfile.TemporaryDirectory(dir=system.folder) as place:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64K", "none", place],
                          stderr=subprocess.DEVNULL).returncode != 0:
            return print("no file system can be mounted: skipped")
        try:
            pack = f"{place}/p.json"
            assert system.run("pack", SEGMENTS, "-o", pack)[0] == 0
            names = os.listdir(place)
            for arguments in (("pack", RECOGNIZER, "-o", pack),
                              ("run", "--reference", "--trace", f"{place}/t.json", PACKED)):
                code, _, errors = system.run(*arguments)
                assert code == 2 and "No space left" in one_line(errors), (arguments, code, errors)
                assert os.listdir(place) == names, os.listdir(place)
            assert system.run("run", "--reference", pack)[0] == 0
        finally:
            subprocess.run(["umount", place], check=True)


def test_memory_limit(system):
    """Memory that the system refuses is not the transcript's fault."""
    limits = ((resource.RLIMIT_AS, 128 * MIB),)
    large = system.folder / "large.json"
    large.touch()
    os.truncate(large, 1 << 30)
    window = system.folder / "window.json.zst"
    # A frame that wants a window of 128 MiB, which zstd allows, for a block of 2 bytes.
    window.write_bytes(bytes([0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 2 << 3 | 1, 0, 0]) + b"[]")
    for file, words in ((large, "cannot be mapped"), (window, "out of memory")):
        for command in (("run", "--reference"), ("inspect",)):
            code, _, errors = system.run(*command, file, limits=limits)
            assert code == 4 and words in one_line(errors), (file, code, errors)
    assert system.run("inspect", window)[0] == 0


def main():
    tests = [test_signals, test_first_process, test_cut_while_mapped, test_written_while_mapped,
             test_file_size_limit, test_full_disk]
    if "--sanitized" not in sys.argv:
        tests += [test_memory_limit]
    with tempfile.TemporaryDirectory(prefix="healcl-system-") as folder:
        for test in tests:
            print(test.__name__, flush=True)
            test(System(sys.argv[1], folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
