#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages: where no program can be built from a source, and devices report no compiler
(faulty_source.c), transcripts verify with packages of `healcl compile`. Damaged packages are refused
with the lines of packages.txt. Binaries of `healcl compile --cache` are found without an option.

    packages.py HEALCL FAULTY_SOURCE.so [--update] [FILE...]

FILE: more transcripts that are to verify from a package. Exits with 77, skipped, where there is no
device.
"""
import copy
import difflib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST  # noqa: E402
from vendors import KERNELS, make_vendors  # noqa: E402

SMALL = "transcripts/segments.json"  # two programs
GOLDEN = Path(__file__).with_suffix(".txt")
healcl, driver = sys.argv[1:3]
update = "--update" in sys.argv
files = [path for path in sys.argv[3:] if path != "--update"]
MANY_VALUES = b"[" + b"0," * 2_000_000 + b"0]"  # 4 MB: as a tree 128 MB


def run(*arguments, compiler=True, program=healcl, **more):
    environment = {**os.environ, **COMPILE_FAST, "HEALCL_CACHE_DIR": "", **more}
    if not compiler:
        environment.update(LD_PRELOAD=driver, FAULTY_NO_COMPILER="1")
    return subprocess.run([program, *map(str, arguments)], cwd=ROOT, env=environment, text=True,
                          capture_output=True)


def expect(result, code, text=""):
    if result.returncode != code or text not in result.stdout + result.stderr:
        sys.exit(f"{result.args} ends with {result.returncode}, not {code} and '{text}':\n"
                 f"{result.stdout}{result.stderr}")
    return result


def check_manifests(folder):
    """Kernels of manifests run from a package, those of operations of their own and those for built-in
    ones; where they are not the packaged ones none can be built, and bodies run."""
    operations, transcripts = make_vendors(folder)
    package = folder / "vendors.healcl"
    expect(run("compile", "-o", package, transcripts[0]), 3, "unknown operation")
    expect(run("compile", "--ops", operations, "-o", package, *transcripts), 0)
    packaged = ("run", "--quiet", "--json", "-", "--package", package, "--ops")
    for transcript, kernel in zip(transcripts, KERNELS):
        # With a compiler too nothing is built.
        for compiler in False, True:
            told = json.loads(expect(run(*packaged, operations, "--no-fallback", transcript,
                                         compiler=compiler), 0).stdout)
            assert told["verified"] and told["programs_built"] == 0 < told["programs_loaded"], told
            assert [one["name"] for one in told["manifest_kernels"]] == [kernel], told
    expect(run("run", "--package", package, transcripts[0], compiler=False), 3, "unknown operation")
    # Without the manifests the built-in kernel is wanted, and the package has none.
    expect(run("run", "--no-fallback", "--package", package, transcripts[1], compiler=False), 4,
           "is not in")
    # A package of another source of the kernels is none for them.
    for name in "key_switch.cl", "ntt.cl":
        (operations / name).write_text((operations / name).read_text() + "\n")
    for transcript, kernel in zip(transcripts, KERNELS):
        expect(run(*packaged, operations, "--no-fallback", transcript, compiler=False), 4, "is not in")
        told = json.loads(expect(run(*packaged, operations, transcript, compiler=False), 0).stdout)
        assert told["verified"] and told["programs_built"] == 0 and told["fallbacks"] > 0, told
        assert kernel not in [one["name"] for one in told.get("manifest_kernels", [])], told


def check_runs(folder):
    package = folder / "runs.healcl"
    transcripts = [SMALL, *files]
    expect(run("compile", "-o", package, *transcripts), 0)
    for transcript in transcripts:
        packaged = run("run", "--package", package, "--json", "-", transcript, compiler=False)
        expect(packaged, 0)
    expect(run("run", transcripts[0], compiler=False), 2, "healcl compile")
    # The environment's kernels do not apply, and other programs are missing.
    expect(run("run", "-v", "--package", package, transcripts[0], compiler=False,
               HEALCL_TUNING="general,local_size=2"), 0, "by the package")
    missing = expect(run("run", "--no-fallback", "--package", package,
                         "transcripts/digits_full_q.json", compiler=False), 4,
                     "make another with healcl compile").stderr
    assert re.search(r"program '\S+' with options '.*-D .*' is not in '.*runs.healcl'", missing), missing
    # A compiler that is there is not asked either.
    expect(run("run", "--no-fallback", "--package", package, "transcripts/digits_full_q.json"), 4,
           "is not in")
    # The host does what is not there, unless that is not wanted.
    told = json.loads(expect(run("run", "--package", package, "--json", "-",
                                 "transcripts/digits_full_q.json", compiler=False), 0).stdout)
    assert told["verified"] and told["fallbacks"] > 0 and told["programs_built"] == 0, told
    reasons = {kind.get("fallback_reason", "") for segment in told["segments"]
               for kind in segment["operations_by_kind"]}
    assert any(" is not in '" in reason for reason in reasons), reasons
    with tempfile.TemporaryDirectory(dir=folder) as vendors:
        check_manifests(Path(vendors))
    # Equal programs make equal packages.
    again = folder / "again.healcl"
    expect(run("compile", "-o", again, transcripts[0]), 0)
    once = again.read_bytes()
    expect(run("compile", "-o", again, transcripts[0]), 0)
    # Whether launches overlap is measured each time.
    manifests = [re.sub(rb"launches_at_once=\d+", b"", zipfile.ZipFile(io.BytesIO(data)).read("manifest.json"))
                 for data in (once, again.read_bytes())]
    assert manifests[0] == manifests[1]
    expect(run("compile", "-o", folder / "none.healcl", "tests/bad/differs_in_last_value.json"), 1,
           "differ")
    assert not (folder / "none.healcl").exists()
    line = expect(run("compile", "-o", "/dev/full", transcripts[0]), 2).stderr
    assert line == "healcl: cannot write '/dev/full': No space left on device\n", line
    return again


def check_board(folder):
    """A board reports OpenCL 1.0, the embedded profile and 256 bytes of kernel arguments, and programs come
    from binaries alone. It runs without the host's help, in the styles of all devices."""
    for style in {}, {"HEALCL_AS": "cpu"}, {"HEALCL_AS": "gpu"}:
        package, board = folder / "board.healcl", {"LD_PRELOAD": driver, "FAULTY_BOARD": "1", **style}
        expect(run("compile", "-o", package, *files, **board), 0)
        listed = json.loads(expect(run("devices", "--json", "-", **board), 0).stdout)["devices"]
        assert all(device["version"].startswith("OpenCL 1.0") for device in listed), listed
        for transcript in files:
            expect(run("run", "-q", "--no-fallback", "--package", package, transcript, compiler=False,
                       **board), 0)


# ------------------------------------------------------------------ programs in the cache


def check_cache(folder):
    """Later runs find binaries of `compile --cache`. Missing ones, or ones of another program under
    that name, are built. It finds the bundled transcripts of an installed healcl."""
    cache, transcript = folder / "cache", SMALL

    def counts():
        told = json.loads(expect(run("run", "--quiet", "--json", "-", transcript,
                                     HEALCL_CACHE_DIR=cache), 0).stdout)
        assert told["verified"], told
        return told["programs_built"], told["programs_loaded"]

    def compile_all(code, text, program=healcl, names=(transcript,), at=cache):
        expect(run("compile", "--cache", *names, program=program, HEALCL_CACHE_DIR=at), code, text)

    compile_all(0, f"{cache}: kept ")
    none, count = counts()
    assert none == 0 < count, (none, count)
    kept = sorted(cache.glob("binary_*"))
    for one, other in zip(kept, [*kept[1:], kept[0]]):
        one.rename(other.with_suffix(".swapped"))
    for path in cache.glob("*.swapped"):
        path.rename(path.with_suffix(""))
    assert counts() == (count, 0), counts()
    compile_all(0, "kept ")
    assert counts() == (0, count), counts()
    names = {path: path.read_bytes() for path in kept}
    for path in kept:
        path.unlink()
        if counts() == (1, count - 1):
            break
        path.write_bytes(names[path])
    else:
        sys.exit("no program is built when its binary is missing")
    compile_all(2, "there is no folder for programs", at="")
    compile_all(2, "cannot write '/dev/null/cache/binary_", at="/dev/null/cache")
    compile_all(2, ": Not a directory", at="/dev/null/cache")

    installed = folder / "bin" / "healcl"
    installed.parent.mkdir()
    shutil.copy(healcl, installed)
    compile_all(2, "no bundled transcripts", installed, ())
    bundled = folder / "share/healcl/transcripts"
    bundled.mkdir(parents=True)
    shutil.copy(ROOT / transcript, bundled)
    compile_all(0, "kept ", installed, ())
    (bundled / "none.json").write_text("{")
    compile_all(3, "none.json", installed, ())


# ------------------------------------------------------------------ damage


def pack(members):
    """A zip of (name, contents)"""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, contents in members:
            archive.writestr(name, contents)
    return stream.getvalue()


class Package:
    def __init__(self, data):
        self.data = data
        archive = zipfile.ZipFile(io.BytesIO(data))
        self.members = [(name, archive.read(name)) for name in archive.namelist()]
        self.manifest = json.loads(self.members[0][1])

    def changed(self, at, value):
        """One byte is another"""
        at %= len(self.data)
        return self.data[:at] + bytes([self.data[at] ^ value]) + self.data[at + 1:]

    def with_text(self, text):
        return pack([("manifest.json", text), *self.members[1:]])

    def having(self, *changes):
        """With other values in the manifest: (path, value); None: it is missing"""
        manifest = copy.deepcopy(self.manifest)
        for path, value in changes:
            *way, last = path
            place = manifest
            for key in way:
                place = place[key]
            if value is None:
                del place[last]
            else:
                place[last] = value
        return self.with_text(json.dumps(manifest))

    def with_member(self, name, contents):
        """With another first member behind the manifest"""
        return pack([self.members[0], (name, contents), *self.members[2:]])


def still_inflates(package):
    """Returns a position in the first image's deflated bytes where a bit changes the data, not the size"""
    info = zipfile.ZipFile(io.BytesIO(package.data)).infolist()[1]
    start = info.header_offset + 30 + len(info.filename)
    for at in range(500, info.compress_size):
        deflated = bytearray(package.data[start:start + info.compress_size])
        deflated[at] ^= 128
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            if len(stream.decompress(deflated)) == info.file_size and stream.eof:
                return at
        except zlib.error:
            pass
    raise AssertionError("no byte of the image can be changed so")


def damages(package):
    data, members = package.data, package.members
    (first, contents), central = members[1], data.index(b"PK\x01\x02")
    start = data.index(first.encode()) + len(first)
    of_method = bytearray(data)
    for at in (start - len(first) - 30 + 8, data.rindex(first.encode()) - 46 + 10):
        of_method[at:at + 2] = (99).to_bytes(2, "little")
    yield "empty", b""
    yield "text", b"not a package\n" * 10
    yield "half", data[:len(data) // 2]
    yield "last byte missing", data[:-1]
    yield "zip without its beginning", data[1000:]
    yield "zip without its middle", data[:start + 500] + data[start + 900:]
    yield "size in one place", package.changed(central + 24, 1)
    yield "byte of the manifest changed", package.changed(data.index(b"manifest.json") + 40, 16)
    yield "byte of a binary changed", package.changed(start + still_inflates(package), 128)
    yield "unknown compression", bytes(of_method)
    yield "no members", pack([])
    yield "manifest missing", pack(members[1:])
    yield "manifest later", pack([members[1], members[0]])
    yield "manifest alone", pack(members[:1])
    yield "manifest twice", pack([members[0], *members])
    yield "too many members", pack([members[0], *[(f"binary_{i}", b"") for i in range(4096)]])
    yield "member above", pack([*members, ("../../../above", b"above")])
    yield "member of a long name", package.with_member("a" * 65, contents)
    yield "member renamed", package.with_member(first[:-1] + "10"[first[-1] == "1"], contents)
    yield "member of other bytes", package.with_member(first, contents[:-1] + b"x")
    yield "member without its first line", package.with_member(first, contents.split(b"\n", 1)[1])
    yield "member fills memory", package.with_member(first, b"\0" * (400 << 20))
    yield "manifest fills memory", package.with_text(b" " * (600 << 20))
    yield "manifest of many values", package.with_text(MANY_VALUES)
    yield "no JSON", package.with_text(b"{\"format\": ")
    yield "JSON that ends with a zero", package.with_text(json.dumps(package.manifest).encode() + b"\0")
    yield "array", package.with_text(b"[]")
    yield "deep", package.with_text(b"[" * 100000)
    yield "other format", package.having((("format",), "package of another"))
    yield "ABI missing", package.having((("abi",), None))
    yield "ABI earlier", package.having((("abi",), 1))
    yield "ABI as text", package.having((("abi",), "1"))
    yield "device as text", package.having((("device",), "cpu"))
    yield "device without name", package.having((("device", "name"), None))
    yield "device's name a number", package.having((("device", "name"), 7))
    yield "another device", package.having((("device", "name"), "another device"))
    yield "another platform", package.having((("device", "platform"), "another platform"))
    yield "another driver", package.having((("device", "driver"), "another driver"))
    yield "another OpenCL", package.having((("device", "version"), "OpenCL 9.0"))
    yield "tuning missing", package.having((("tuning",), None))
    yield "tuning a list", package.having((("tuning",), ["local_size=1"]))
    yield "tuning too long", package.having((("tuning",), "vectors," * 2000))
    yield "tuning unknown", package.having((("tuning",), "local_size=3"))
    yield "choices unknown", package.having((("choices",), "0123456789abcdef=1 x"))
    yield "programs a list", package.having((("programs",), ["p001_"]))
    yield "program a number", package.having((("programs",), {"a": 7}))
    yield "no self-test", pack(members[:2])
    yield "image missing", package.having((("programs",), {
        name.removeprefix("binary_"): "p001_" for name, _ in members[1:]}))


def refusals(package, folder):
    """A line for each damage"""
    path = folder / "damaged.healcl"
    devices = json.loads(run("devices", "--no-self-test", "--json", "-").stdout)["devices"]
    device = next(d for d in devices if d["index"] == os.environ["HEALCL_DEVICE"])
    told = []

    def refused(name, target):
        result = run("run", "--package", target, SMALL, compiler=False)
        line = result.stderr.rstrip("\n").replace(str(folder), "$TMP")
        if result.returncode not in (2, 3, 4) or "\n" in line or result.stdout:
            sys.exit(f"{name}: {result}")
        for what in ("name", "platform", "driver"):
            line = line.replace(device[what], f"<{what}>")
        line = re.sub(r"(not '|device )[\d:]*( ?<name>|OpenCL \d[^']*)", r"\1<device>", line)
        line = re.sub(r"options '[^']+'", "options '<options>'", line)
        line = re.sub(r"up to \d+\)", "up to <number>)", line)
        line = re.sub(r"(it is not a valid zip file|manifest.json|binary_<hash>): [A-Z].*", r"\1: <libzip>", line)
        line = re.sub(r"[0-9a-f]{32}", "<hash>", line)
        line = re.sub(r"(<hash> unpacks .* allowed) \d+", r"\1 <number>", line)
        told.append(f"{name}\n    [{result.returncode}] {line}\n")

    refused("missing", folder / "missing.healcl")
    refused("folder", folder)
    for name, data in damages(package):
        path.write_bytes(data)
        refused(name, path)
    return told


def main():
    if not use_device(healcl):
        print("no device")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = Package(check_runs(folder).read_bytes())
        check_board(folder)
        check_cache(folder)
        told = "".join(refusals(package, folder))
        if update:
            GOLDEN.write_text(told)
        known = GOLDEN.read_text()
        if told != known:
            sys.exit("".join(difflib.unified_diff(known.splitlines(True), told.splitlines(True),
                                                  str(GOLDEN), "now")))
    print(f"{told.count('    [')} damaged packages are refused as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
