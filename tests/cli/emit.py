#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources that `healcl compile --emit` writes: the offline compilers that are here compile them without
a word, and what comes out has the kernels of the manifest; and what was compiled becomes a package.

    emit.py HEALCL FAULTY_SOURCE.so BUILD_BINARY

A target whose compiler is missing is named and left out. Exits with 77, skipped, where there is no
device.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
from share import COMPILE_FAST, IS_ALL, share  # noqa: E402
from vendors import KERNELS, make_vendors  # noqa: E402

healcl, driver, builder = sys.argv[1:4]
SMALL, SEVERAL, LARGE = (f"transcripts/{name}.json" for name in ("segments", "plain", "recognizer"))


def have(*names):
    return any(shutil.which(name) for name in names if name)


def folders(*patterns):
    return any(list(Path("/").glob(pattern)) for pattern in patterns)


CLANG = have("clang-15")
TARGETS = {
    "gfx90a": ("clang-15, lld and rocm-device-libs", CLANG and have("ld.lld") and
               folders("usr/lib/*/amdgcn/bitcode")),
    "sm_90": ("clang-15 and libclc", CLANG and folders("usr/lib/clc/nvptx64--nvidiacl.bc")),
    "dg2": ("ocloc", have(os.environ.get("OCLOC"), "ocloc")),
    "spirv": ("clang-15 and llvm-spirv-15", CLANG and have("llvm-spirv-15")),
    "fpga": ("clang-15", CLANG),
}


def run(*arguments, **more):
    result = subprocess.run([healcl, *map(str, arguments)], cwd=ROOT, text=True, capture_output=True,
                            env={**os.environ, "HEALCL_CACHE_DIR": "", **COMPILE_FAST, **more})
    return result


def expect(result, code, text=""):
    if result.returncode != code or text not in result.stdout + result.stderr:
        sys.exit(f"{result.args} ends with {result.returncode}, not {code} and '{text}':\n"
                 f"{result.stdout}{result.stderr}")
    return result


compiled_before = {}  # binaries, by target and source


def build(target, folder):
    """Compiles what was emitted, without a word, each source once; or says what is missing for that."""
    missing, here = TARGETS[target]
    if not here:
        print(f"{target}: {missing} are missing: its sources were not compiled")
        return False
    known = {} if target == "fpga" else {  # whose image is one, of all sources
        source: compiled_before[target, source.read_text()] for source in folder.glob("[0-9]*.cl")
        if (target, source.read_text()) in compiled_before}
    texts = {source: source.read_text() for source in folder.glob("[0-9]*.cl")}
    assert len(known) < len(texts), "something new is to be compiled"
    for source in known:
        source.unlink()
    # For FPGAs' own compiler the device's stands in.
    more = {"AOC": builder, **COMPILE_FAST} if target == "fpga" else {}
    built = subprocess.run(["sh", folder / "build.sh"], capture_output=True, text=True, check=False,
                           env={**os.environ, **more})
    if built.returncode or built.stdout or built.stderr:
        sys.exit(f"{target}: build.sh ends with {built.returncode}:\n{built.stdout}{built.stderr}")
    for source, text in texts.items() if target != "fpga" else ():
        binary = source.with_suffix(".bin")
        if source in known:
            assert not binary.exists(), binary
            binary.write_bytes(known[source])
        compiled_before[target, text] = binary.read_bytes()
    return True


def kernels_of(source):
    """Those that were wanted of an emitted program"""
    return source.read_text().split("// kernels: ")[1].split("\n")[0].split()


def check_target(target, transcripts, folder):
    expect(run("compile", "--emit", folder, "--target", target, *transcripts), 0, target)
    manifest = json.loads((folder / "manifest.json").read_text())
    sources = sorted(folder.glob("[0-9]*.cl"))
    assert len(sources) == len(manifest["programs"]) and any(
        source.name.endswith("base_self_test.cl") for source in sources), sources
    if not build(target, folder):
        return
    kernels = 0
    for source in sources:
        names = kernels_of(source)
        binary = (folder / manifest["image"] if target == "fpga"
                  else source.with_suffix(".bin")).read_bytes()
        prefix = f"p{source.name[:3]}_" if target == "fpga" else ""
        lacking = [name for name in names if (prefix + name).encode() not in binary]
        assert not lacking, (target, source, lacking)
        kernels += len(names)
    if target == "fpga":  # all programs are one image, and it runs
        package = folder / "fpga.healcl"
        expect(run("compile", "--from", folder, "-o", package), 0)
        for transcript in transcripts:
            expect(run("run", "--package", package, transcript, LD_PRELOAD=driver,
                       FAULTY_NO_COMPILER="1"), 0)
    print(f"{target}: {len(manifest['programs'])} programs with {kernels} kernels are compiled")


def check_package(folder):
    """Binaries that are made elsewhere, here by the device's own driver, become a package."""
    emitted, package, whole = folder / "emitted", folder / "from.healcl", folder / "whole.healcl"
    expect(run("compile", "--emit", emitted, "--target", "gfx90a", SMALL), 0)
    expect(run("compile", "--from", emitted, "-o", package), 2, ".bin': No such file")
    expect(run("compile", "-o", whole, SMALL, HEALCL_AS="gpu"), 0)
    manifest = json.loads((emitted / "manifest.json").read_text())
    with zipfile.ZipFile(whole) as archive:
        for key, name in manifest["programs"].items():
            (emitted / name).write_bytes(archive.read(f"binary_{key}").split(b"\n", 1)[1])
    expect(run("compile", "--from", emitted, "-o", package), 0, "for ")
    for transcript, code in ((SMALL, 0), ("transcripts/digits_full_q.json", 4)):
        expect(run("run", "--no-fallback", "--package", package, transcript, LD_PRELOAD=driver,
                   FAULTY_NO_COMPILER="1"), code)
    manifest["programs"]["0"] = "../above"
    (emitted / "manifest.json").write_text(json.dumps(manifest))
    expect(run("compile", "--from", emitted, "-o", package), 3, "'../above' is not the name of a file")


def check_manifests(folder):
    """Kernels of manifests are emitted with the others, for each target, and FPGAs' one image with
    them runs. Compilers for GPUs take 6 s for them: one of two is asked in each run."""
    operations, transcripts = make_vendors(folder)
    left_out = {"gfx90a", "sm_90"} - set(share("GPUs of manifests", ("gfx90a", "sm_90"), 2))
    sources = ("key_switch", "ntt")
    for target in TARGETS:
        emitted = folder / target
        expect(run("compile", "--ops", operations, "--emit", emitted, "--target", target,
                   *transcripts), 0)
        own = [sorted(emitted.glob(f"[0-9]*_{source}.cl_*.cl")) for source in sources]
        assert [len(programs) for programs in own] == [1, 1], (target, own)
        if target in left_out or not build(target, emitted):
            continue
        for (program,), kernel in zip(own, ("key_switch", "vendor_ntt")):
            binary = (emitted / "workload.aocx" if target == "fpga"
                      else program.with_suffix(".bin")).read_bytes()
            assert kernels_of(program) == [kernel] and kernel.encode() in binary, (target, program)
    if TARGETS["fpga"][1]:
        package = folder / "fpga.healcl"
        expect(run("compile", "--from", folder / "fpga", "-o", package), 0)
        for transcript, kernel in zip(transcripts, KERNELS):
            expect(run("run", "--ops", operations, "--no-fallback", "--package", package, transcript,
                       LD_PRELOAD=driver, FAULTY_NO_COMPILER="1"), 0, f"{kernel} of ")


def main():
    if not use_device(healcl):
        print("no device")
        return 77
    with tempfile.TemporaryDirectory() as name:
        # More programs for FPGAs, where they are one image, which runs.
        for target in TARGETS:
            more = [LARGE] if IS_ALL else [SEVERAL] if target == "fpga" else []
            check_target(target, [SMALL, *more], Path(name) / target)
        check_package(Path(name))
    with tempfile.TemporaryDirectory() as name:
        check_manifests(Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
