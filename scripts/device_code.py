#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of runs for GPUs' instruction sets, without a GPU: docs/DEVICES.md.

Runs transcripts as on a GPU (HEALCL_AS=gpu) on any device that is here, reads from the traces which
kernels were launched and with which options their programs were built, compiles these for real GPUs,
and prints the compilers' reports on each kernel. A target whose compiler is missing is named and
skipped. Instructions are those in a kernel's text: one trip of loops, both sides of branches.

Bytes of global memory are counted by Oclgrind, which interprets kernels, while healcl bench runs
single operations there as on a GPU, and healcl run an encrypted workload, whose trace has what formulas
say of each launch. --bytes reports by these formulas the share of bytes that passes leave.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from share import IS_ALL, share  # noqa: E402


class Failure(Exception):
    pass


# Build options for Oclgrind, which supports neither LLVM's optimized code, nor prefetches, nor
# fences (docs/DRIVERS.md).
SYSTEM_OCLGRIND = "/etc/OpenCL/vendors/oclgrind.icd"
OCLGRIND_BUILD_OPTIONS = "-cl-opt-disable -DNO_HINTS"

# A compiler's report on a kernel; None where it reports nothing.
Code = collections.namedtuple("Code", [
    "registers",     # of 32 bits, for a work-item
    "private",       # bytes of memory for a work-item: arrays, and registers that were spilled
    "local",         # bytes for a work-group, of those that are known to the compiler
    "waves",         # that fit at once: on AMD's GPUs for a SIMD, on NVIDIA's for a multiprocessor
    "simd",          # work-items that share an instruction, where the compiler chooses
    "instructions",  # on Intel's GPUs: the text's bytes over 16
    "loops",         # in the text
], defaults=[None] * 7)

# A kernel in a program, and how often runs launched it and on how many work-items.
Kernel = collections.namedtuple("Kernel", "name program options")
Use = collections.namedtuple("Use", "launches work_items")


# ------------------------------------------------------------------ what compilers say


def parse_amd(assembly):
    """{kernel: Code} of LLVM's assembly for AMD's GPUs"""
    codes = {}
    for part in re.split(r"^(?=\w+: +; @)", assembly, flags=re.M)[1:]:
        told = dict(re.findall(r"^; (\w+): (\d+)", part, flags=re.M))
        if "Occupancy" not in told:
            continue  # a function that is not a kernel
        text = part.split(".Lfunc_end")[0]
        codes[part.split(":")[0]] = Code(
            registers=int(told.get("TotalNumVgprs", told["NumVgprs"])),
            private=int(told["ScratchSize"]), local=int(told["LDSByteSize"]),
            waves=int(told["Occupancy"]),
            instructions=len(re.findall(r"^\t[a-z]+_\w+", text, flags=re.M)),
            loops=len(re.findall(r"Loop Header", text)))
    return codes


def nvidia_waves(registers, local, work_items):
    """Warps that a multiprocessor of compute capability 9.0 holds at once."""
    warps = -(-work_items // 32)
    groups = min(32, 64 // warps, 65536 // (-(-max(registers, 1) // 8) * 8 * 32 * warps),
                 233472 // (local + 1024))
    return groups * warps


def parse_ptxas(log, work_items):
    """{kernel: Code} of what ptxas -v says"""
    codes = {}
    for part in log.split("Compiling entry function '")[1:]:
        frame = int(re.search(r"(\d+) bytes stack frame", part)[1])
        spills = [int(bytes) for bytes in re.findall(r"(\d+) bytes spill", part)]
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        local = int((re.search(r"(\d+) bytes smem", part) or [0, 0])[1])
        codes[part.split("'")[0]] = Code(registers=registers, private=max([frame] + spills),
                                         local=local,
                                         waves=nvidia_waves(registers, local, work_items))
    return codes


def elf_sections(data):
    """{name: contents} of an ELF file of 64 bits"""
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<I20xQQ", data, start + i * size) for i in range(count)]
    _, offset, length = headers[names_at]
    names = data[offset:offset + length]
    return {names[name:names.index(b"\0", name)].decode(): data[at:at + length]
            for name, at, length in headers}


def parse_intel(data):
    """{kernel: Code} of a binary for Level Zero: what it says of its kernels, and their texts"""
    sections = elf_sections(data)
    about = sections[".ze_info"].decode().split("\nkernels_misc_info:")[0]
    codes = {}
    for part in re.split(r"^  - name: +", about, flags=re.M)[1:]:
        name = part.split("\n")[0].strip("' ")
        told = {key: int(value) for key, value in re.findall(r"^      (\w+): +(\d+)$", part, re.M)}
        buffers = part.partition("per_thread_memory_buffers:")[2]
        private = 0
        for buffer in re.split(r"^      - ", buffers, flags=re.M)[1:]:
            size = int(re.search(r"size: +(\d+)", buffer)[1])
            of_one = re.search(r"is_simt_thread: +true", buffer)
            private += size if of_one else -(-size // told["simd_size"])
        codes[name] = Code(private=private, local=told.get("slm_size", 0), simd=told["simd_size"],
                           instructions=len(sections[".text." + name]) // 16)
    return codes


# ------------------------------------------------------------------ compilers


def run(arguments, **options):
    """-> what it prints; raises Failure with its first lines where it fails"""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, **options)
    except OSError as error:
        raise Failure("%s: %s" % (arguments[0], error.strerror)) from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Failure("%s: %s" % (os.path.basename(arguments[0]), " ".join(lines[:3])[:400]
                                  or "exit code %d" % done.returncode))
    return done.stdout + done.stderr


def clangs():
    """Those that are here. Version 15 goes first: the bars were set with it."""
    names = ["clang-%d" % version for version in (15, 16, 17, 18, 19, 20, 21, 14)] + ["clang"]
    return [path for path in map(shutil.which, names) if path]


def first_path(*patterns):
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


class Compiler:
    def __init__(self, target):
        self.target = target


class Amd(Compiler):
    wants = "clang from 14 on with rocm-device-libs of its version"

    def candidates(self):
        folders = first_path("/usr/lib/*/amdgcn/bitcode", "/usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode",
                             "/usr/lib/clang/*/amdgcn/bitcode", "/usr/lib64/amdgcn/bitcode",
                             "/opt/rocm*/amdgcn/bitcode")
        return [(clang, folder) for clang in clangs() for folder in folders]

    def compile(self, tools, source, options, out):
        clang, libraries = tools
        run([clang, "-x", "cl", "-O3", *options.split(), "-target", "amdgcn-amd-amdhsa",
             "-mcpu=" + self.target, "--rocm-device-lib-path=" + libraries, "-S", source,
             "-o", out + ".s"])
        return parse_amd(pathlib.Path(out + ".s").read_text())


class Nvidia(Compiler):
    wants = "clang with libclc of its version, and ptxas of CUDA"

    def candidates(self):
        ptxas = first_path(shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas")
        libraries = first_path("/usr/lib/clc/nvptx64--nvidiacl.bc",
                               "/usr/lib/llvm-*/share/clc/nvptx64--nvidiacl.bc",
                               "/usr/share/clc/nvptx64--nvidiacl.bc")
        return [(clang, library, path) for clang in clangs() for library in libraries
                for path in ptxas]

    def compile(self, tools, source, options, out):
        clang, library, ptxas = tools
        # Older than the target, whose name not every clang knows: ptxas compiles it for that.
        xclang = ["-target-cpu", "sm_75", "-target-feature", "+ptx63", "-mlink-builtin-bitcode",
                  library]
        run([clang, "-x", "cl", "-O3", *options.split(), "-target", "nvptx64-nvidia-nvcl",
             *[word for option in xclang for word in ("-Xclang", option)], "-S", source,
             "-o", out + ".ptx"])
        log = run([ptxas, "-v", "-arch=" + self.target, out + ".ptx", "-o", out + ".cubin"])
        return parse_ptxas(log, int(re.search(r"LOCAL_SIZE=(\d+)", options)[1]))


class Intel(Compiler):
    wants = "ocloc of intel-opencl-icd; OCLOC=PATH names one"

    def candidates(self):
        path = os.environ.get("OCLOC") or shutil.which("ocloc")
        return [(path,)] if path else []

    def compile(self, tools, source, options, out):
        run([tools[0], "compile", "-q", "--format", "zebin", "-file", source, "-device",
             self.target, "-options", options, "-out_dir", out])
        binaries = glob.glob(out + "/*.bin")
        if not binaries:
            raise Failure("ocloc wrote nothing")
        return parse_intel(pathlib.Path(binaries[0]).read_bytes())


TARGETS = {target: vendor(target) for vendor, targets in (
    (Amd, ("gfx906", "gfx90a", "gfx1030")), (Nvidia, ("sm_90",)),
    (Intel, ("pvc", "dg2-g10", "tgllp"))) for target in targets}
PROBE = "kernel void probe(global ulong *a) { a[get_global_id(0)] = mul_hi(a[0], a[1]); }\n"


def find_tools(target, folder):
    """-> the first tools that compile a small kernel for the target, or None; and why not"""
    source = os.path.join(folder, "probe.cl")
    pathlib.Path(source).write_text(PROBE)
    why = "there is none"
    for i, tools in enumerate(TARGETS[target].candidates()):
        try:
            if "probe" in TARGETS[target].compile(tools, source, "-cl-std=CL1.2 -D LOCAL_SIZE=1",
                                                  os.path.join(folder, "%s-%d" % (target, i))):
                return tools, None
            why = "it says nothing of a small kernel"
        except Failure as failure:
            why = str(failure)
    return None, why


# ------------------------------------------------------------------ runs


def healcl_program():
    for preset in "release", "test":
        path = ROOT / "build" / preset / "healcl"
        if path.exists():
            return str(path)
    raise Failure("there is neither build/release/healcl nor build/test/healcl: name one with --healcl")


def uses_of(trace):
    """{Kernel: Use} of a trace"""
    uses = {}
    for span in trace["traceEvents"]:
        if span.get("cat") != "kernel":
            continue
        told = span["args"]
        kernel = Kernel(span["name"], told["program"], told["options"])
        before = uses.get(kernel, Use(0, 0))
        uses[kernel] = Use(before.launches + 1,
                           before.work_items + told["work_groups"] * told["local_size"])
    return uses


GPU = {"HEALCL_AS": "gpu"}


def trace_of(healcl, device, transcript, folder):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        path = os.path.join(own, "trace.json")
        run([healcl, "run", "-q", "--no-warmup", "--device", device, "--trace", path, transcript],
            env={**os.environ, **GPU})
        return json.loads(pathlib.Path(path).read_text())


def launched(healcl, device, transcripts, folder):
    """{Kernel: Use} of all these runs"""
    uses = {}
    for transcript in transcripts:
        for kernel, use in uses_of(trace_of(healcl, device, transcript, folder)).items():
            before = uses.get(kernel, Use(0, 0))
            uses[kernel] = Use(*(a + b for a, b in zip(before, use)))
    return uses


def chosen(programs, targets, everything):
    """-> [(program, options, target)]: all, or each program for the target with bars and, by a seed, for
    one of the others"""
    pairs = [(*program, target) for program in programs for target in targets]
    others = [pair for pair in pairs if pair[2] != BARRED]
    return pairs if everything else [pair for pair in pairs if pair[2] == BARRED] + share(
        "targets", others, len(set(targets) - {BARRED}) or 1)


def compile_program(row, tools, folder):
    """-> {kernel: Code}, or a Failure"""
    program, options, target = row
    out = tempfile.mkdtemp(dir=folder) + "/program"
    texts = "cl/base/base.h", "cl/base/arithmetic.h", "cl/%s.cl" % program
    pathlib.Path(out + ".cl").write_text("".join('#include "%s"\n' % (ROOT / text) for text in texts))
    try:
        return TARGETS[target].compile(tools[target], out + ".cl",
                                       "%s -I %s" % (options, ROOT / "cl"), out)
    except Failure as failure:
        return failure


def compile_all(uses, tools, folder, everything=True):
    """-> {(Kernel, target): Code or Failure}, without what is not chosen"""
    programs = sorted({(kernel.program, kernel.options) for kernel in uses})
    compiled = dict(in_parallel(compile_program, chosen(programs, tools, everything), tools, folder))
    codes = {}
    for kernel in uses:
        for target in tools:
            got = compiled.get((kernel.program, kernel.options, target))
            if isinstance(got, dict):
                got = got.get(kernel.name) or Failure("the compiler says nothing of it")
            if got is not None:
                codes[kernel, target] = got
    return codes


# ------------------------------------------------------------------ the bars

# Those of registers and instructions are of this target.
BARRED = "gfx90a"
REGISTERS = 64
MANY_REGISTERS = 128
# Instructions for an element of int64 of one, two and three merged axes.
INSTRUCTIONS = {
    "modmul_table": (166, 225, 225),
    "modsum_table": (225, 280, 280),
    "mod_table": (140, 140, 140),
    "modmul_residues": (105, 135, 135),
    "modsum_residues": (60, 85, 85),
    "modmul_constant": (75, 105, 105),
    "copy": (70, 70, 70),
}
# Instructions where a work-item takes two elements.
INSTRUCTIONS_WIDE = {
    **INSTRUCTIONS,
    "modmul_residues": (105, 105, 105),
    "modsum_residues": (60, 60, 60),
    "modmul_constant": (75, 75, 75),
}


def defines(options):
    """{name: value} of the macros in a program's options"""
    return dict((name, value) for name, value in re.findall(r"-D (\w+)(?:=(\S+))?", options))


def elements_of(options):
    """of a work-item, or None where only the launch knows"""
    told = defines(options)
    return int(told.get("WIDE") or 1) if "THIN" in told else None


def holds_many(kernel):
    """whether its work-items hold several elements: those of transforms, and several sums"""
    return kernel.program.startswith(("ntt/", "sum/items")) or re.match(r"i?ntt_", kernel.name) is not None


def broken_bars(kernel, target, code):
    """-> what does not hold"""
    if isinstance(code, Failure):
        return ["not compiled: %s" % code]
    broken = ["%d bytes of private memory, at most 0" % code.private] if code.private else []
    if target != BARRED:
        return broken
    most = MANY_REGISTERS if holds_many(kernel) else REGISTERS
    if code.registers > most:
        broken.append("%d registers, at most %d" % (code.registers, most))
    told = defines(kernel.options)
    axes, elements = int(told.get("AXES") or 0), elements_of(kernel.options)
    table = INSTRUCTIONS_WIDE if elements and elements > 1 else INSTRUCTIONS
    bars = table.get(kernel.name, ()) if told.get("ELEMENT") == "long" else ()
    if elements and 0 < axes <= len(bars) and code.instructions > bars[axes - 1] * elements:
        broken.append("%d instructions for an element, at most %d"
                      % (code.instructions // elements, bars[axes - 1]))
    return broken


def report(broken):
    """-> whether all bars hold; prints those that do not"""
    for line in sorted(broken):
        print("BROKEN: " + line)
    return not broken


def check(codes):
    return report({"%s: %s (%s: %s): %s" % (target, kernel.name, kernel.program,
                                             shape_of(kernel.options), what)
                   for (kernel, target), code in codes.items()
                   for what in broken_bars(kernel, target, code)})


# ------------------------------------------------------------------ bytes of global memory

# An operation as healcl bench has it: its options, its kernels, and the most traffic as a multiple
# of the compulsory, which is each input and output once. (Oclgrind does not count structures that
# are read as a whole: table entries of moduli. It counts the twiddles of transforms at each butterfly,
# for it does not optimise.)
Traffic = collections.namedtuple("Traffic", "options kernels most")
Counted = collections.namedtuple("Counted", "bytes compulsory elements entries")
MOST, MOST_OF_SUMS = 1.05, 1.1
ROW, INDEX = 1, 0.25  # a transform's row read and written, and beside that four bytes of a permutation
TRAFFIC = [Traffic(*row) for row in (
    ("modmul --n 64 --batch 1 --k 4", "modmul_(?:table|residues)", MOST),
    ("modmul --n 64 --batch 1 --k 4 --dtype int32", "modmul_(?:table|residues)", MOST),
    ("modmul --n 64 --batch 16 --k 4 --layout heal", "modmul_repeated", MOST),
    ("modmul --n 128 --batch 9 --k 2 --layout heal --dtype int32 --values any", "modmul_repeated",
     MOST),
    ("modsum --n 64 --batch 1 --k 4", "modsum_(?:table|residues)", MOST),
    ("modsum --n 128 --batch 17 --k 4 --layout heal", "modsum_repeated_residues", MOST),
    ("modsum --n 64 --batch 16 --k 4 --layout heal --values any", "modsum_repeated", MOST),
    ("mod --n 64 --batch 1 --k 4 --values any", "mod_table", MOST),
    ("modneg --n 64 --batch 1 --k 4", "modneg_(?:table|residues)", MOST),
    ("modneg --n 2048 --batch 1 --k 4", "modneg_(?:table|residues)", MOST),
    ("abs --n 256 --batch 1", "absolute", MOST),
    ("axis_modsum --n 64 --batch 2 --k 4 --s 8", ".*axis_.*sum.*", MOST_OF_SUMS),
    ("axis_modsum --n 1 --batch 4 --k 1 --s 1024", ".*axis_.*sum.*", MOST_OF_SUMS),
    ("axis_modsum --n 1 --batch 1 --k 2 --s 4096", ".*axis_.*sum.*", MOST_OF_SUMS),
    ("modmul_axis_sum --n 128 --batch 1 --k 4 --s 8", "modmul_axis_sum.*", MOST_OF_SUMS),
    ("modmul_axis_sum --n 128 --batch 4 --k 2 --s 8", "modmul_axis_sum.*", MOST_OF_SUMS),
    ("modmul_axis_sum --n 128 --batch 9 --k 2 --s 4 --layout heal", "modmul_axis_sum.*",
     MOST_OF_SUMS),
    ("modmul_axis_sum --n 1024 --batch 2 --k 1 --s 4 --layout heal --perm reverse",
     "modmul_axis_sum.*", MOST_OF_SUMS),
    ("contiguous --n 32 --batch 1 --k 4 --r 2", "copy.*", MOST),
    ("contiguous --n 128 --batch 2 --k 2 --r 8 --dtype int32", "copy.*", MOST),
    ("copy --n 256 --batch 2", "copy.*", MOST),
    ("set_const_val --n 256 --batch 2", "fill", MOST),
    ("pad_single_axis --n 128 --batch 2", "copy|fill", MOST),
    ("apply_g_decomp --n 128 --batch 2 --digits 4 --base-bits 8", "digits.*", MOST),
    ("apply_g_decomp --n 128 --batch 2 --digits 9 --base-bits 7 --dtype int64", "digits.*", MOST),
    ("apply_g_decomp_relative_to_full_q --n 64 --batch 2 --k 4 --digits 8 --base-bits 30 "
     "--dtype int64", "digits.*", MOST),
    ("take_along_axis --n 256 --batch 1", "gather", MOST),
    ("permute --n 256 --batch 1 --r 1", "gather", MOST),
    ("ntt --n 1024 --batch 1", "ntt_pass", ROW + 5.9),
    ("ntt --n 4096 --batch 1", "ntt_pass", 2 * ROW + 6.9),
    ("intt --n 1024 --batch 1", "intt_pass", ROW + INDEX + 6.1),
    ("ntt --n 256 --batch 1 --k 4 --r 2 --layout heal", "ntt_pass", ROW + 4.8),
    ("ntt --n 512 --batch 1 --k 4 --r 1 --layout heal", "ntt_pass", ROW + 5.3),
    ("ntt --n 1024 --batch 1 --k 4 --r 2 --layout heal", "ntt_pass", 2 * ROW + 6.5),
)]


def parse_launches(log):
    """-> [(kernel, what Oclgrind says of it)], a launch each"""
    parts = [part.partition("':") for part in log.split("Instructions executed for kernel '")[1:]]
    return [(name, counts) for name, _, counts in parts]


def asked_for(counts):
    """-> [bytes of global memory, structures read from there as a whole]"""
    return [sum(map(int, re.findall(pattern, counts))) for pattern in (
        r"- (?:load|store) global \((\d+) bytes\)", r"(\d+) - call llvm\.memcpy\.p0\w*\.p1")]


def refuse_faults(log):
    """Raises Failure where Oclgrind has seen an access out of bounds: results do not show all of them"""
    fault = re.search(r"^(?:Invalid (?:read|write)|Index \(\d+\) exceeds) .*", log, re.M)
    if fault:
        raise Failure("Oclgrind says: %s" % fault.group())


def parse_counts(log, kernels):
    """-> bytes, and structures read as a whole, of one operation, in what Oclgrind says of several
    that were alike: the shortest end of its launches that comes twice, a last copy aside"""
    launches = [launch for launch in parse_launches(log) if re.fullmatch(kernels, launch[0])]
    for end in launches, launches[:-1]:
        for size in range(1, len(end) // 2 + 1):
            if end[-size:] == end[-2 * size:-size]:
                return asked_for("".join(counts for _, counts in end[-size:]))
    raise Failure("Oclgrind has not counted %s" % kernels)


def find_oclgrind():
    """-> the environment in which a loader finds it alone; None where it is not installed"""
    folder = os.environ.get("HEALCL_VENDORS_DIR") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "healcl/vendors")
    unpacked = os.path.join(folder, "icd/oclgrind.icd")
    environment = {**os.environ, "HEALCL_AS": "gpu", "OCLGRIND_INST_COUNTS": "1",
                   "HEALCL_TUNING": "", "HEALCL_VARIANT": ""}
    if os.path.exists(unpacked):
        told = run(["bash", "-c", '. "$0" && env -0', os.path.join(folder, "environment")])
        environment.update(line.split("=", 1) for line in told.split("\0")
                           if line.startswith(("LD_LIBRARY_PATH=", "OCLGRIND_")))
        return {**environment, "OCL_ICD_VENDORS": unpacked}
    environment.update(OCL_ICD_VENDORS=SYSTEM_OCLGRIND,
                       OCLGRIND_BUILD_OPTIONS=OCLGRIND_BUILD_OPTIONS)
    return environment if os.path.exists(SYSTEM_OCLGRIND) else None


def count(traffic, healcl, environment, folder):
    """-> Counted of an operation, or a Failure"""
    try:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            out = os.path.join(own, "bench.json")
            log = run([healcl, "bench", "--device", "Oclgrind", "--repeat", "1", "--json", out, "--op",
                       *traffic.options.split()], env=environment)
            refuse_faults(log)
            bench, = json.loads(pathlib.Path(out).read_text())["results"]
        bytes, entries = parse_counts(log, traffic.kernels)
        return Counted(bytes, bench["bytes"], bench["units"], entries)
    except (Failure, ValueError) as failure:
        return Failure(str(failure))


def in_parallel(function, rows, *arguments):
    """-> [(row, what function makes of it)]"""
    jobs = int(os.environ.get("HEALCL_JOBS") or os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(zip(rows, pool.map(lambda row: function(row, *arguments), rows)))


def check_counts(counts):
    """Whether none takes more than the most of what is compulsory."""
    broken = []
    for traffic, counted in counts:
        if isinstance(counted, Failure):
            broken.append("bytes of %s: %s" % (traffic.options, counted))
        elif counted.bytes > traffic.most * counted.compulsory:
            broken.append("bytes of %s: %d, at most %g times %d" % (
                traffic.options, counted.bytes, traffic.most, counted.compulsory))
    return report(broken)


# ------------------------------------------------------------------ tables

FAMILIES = [
    ("elementwise", r"(modmul|modsum|mod|modneg|chain)(_(table|residues|repeated|repeated_residues|constant))?|absolute|multiply_add"),
    ("sums", r".*axis_.*sum.*"),
    ("transforms", r"i?ntt_.*"),
    ("copies and fills", r"copy.*|fill.*"),
    ("digits", r"digits.*"),
    ("gathers and permutations", r"gather.*"),
    ("checks and derived tables", r""),
]
TYPES = "ELEMENT", "A", "A_UNSIGNED", "INDEX", "IN", "OUT"
UNTOLD = "NARROW", "THIN"


def family_of(name):
    """its place in FAMILIES; what no pattern matches belongs to the last"""
    return next((i for i, (_, pattern) in enumerate(FAMILIES) if re.fullmatch(pattern, name)),
                len(FAMILIES) - 1)


def shape_of(options, types=True):
    """A program's options in a few words."""
    told = defines(options)
    words = ["/".join(value for name, value in told.items()
                      if types and name in TYPES and name != "A_UNSIGNED")]
    axes = told.pop("AXES", None)
    words.append("any axes" if axes is None else "1 axis" if axes == "1" else axes + " axes")
    if told["LOCAL_SIZE"] != "256":
        words.append("local size " + told["LOCAL_SIZE"])
    if told.get("WIDE"):
        words.append("vectors of " + told.pop("WIDE"))
    for name, value in told.items():
        if name not in TYPES + UNTOLD + ("LOCAL_SIZE",):
            words.append(name if not value else "%s %s" % (value, name.lower()))
    return ", ".join(word for word in words if word)


def cell_of(code):
    if isinstance(code, Failure):
        return "?"
    place = code.waves if code.simd is None else "SIMD%d" % code.simd
    words = [place] if code.registers is None else [code.registers, place]
    if code.instructions is not None:
        words.append("%d%s" % (code.instructions, "*" if code.loops else ""))
    text = " / ".join(map(str, words))
    return text + (" / **%d B**" % code.private if code.private else "")


def worst(codes):
    """The most that one of them takes, instructions aside; a Failure where one is."""
    def most(field):
        values = [value for value in (getattr(code, field) for code in codes) if value is not None]
        choose = min if field in ("waves", "simd") else max
        return choose(values) if values else None
    failed = [code for code in codes if isinstance(code, Failure)]
    return failed[0] if failed else Code(*map(most, Code._fields))._replace(instructions=None)


def print_families(uses, codes, targets):
    """The table of docs/DEVICES.md."""
    families = collections.defaultdict(list)
    for kernel in sorted(uses, key=lambda kernel: family_of(kernel.name)):
        families[FAMILIES[family_of(kernel.name)][0]].append(kernel)
    print("| kernels | programs | %s |\n|%s" % (" | ".join(targets), "---|" * (len(targets) + 2)))
    for family, kernels in families.items():
        print("| %s | %d | %s |" % (family, len(kernels), " | ".join(
            cell_of(worst([codes[kernel, target] for kernel in kernels]))
            for target in targets)))


def print_counts(counts):
    print("\n| operation | kernels | bytes for an element | of what is compulsory | at most | "
          "table entries for an element |\n|---|---|---:|---:|---:|---:|")
    for traffic, counted in counts:
        cells = ("?", "?", "?") if isinstance(counted, Failure) else (
            "%.4g" % (counted.bytes / counted.elements),
            "%.3f" % (counted.bytes / counted.compulsory),
            "%.3g" % (counted.entries / counted.elements))
        print("| `%s` | `%s` | %s | %s | %g | %s |" % (traffic.options, traffic.kernels.replace(
            "|", "`, `").replace(".*", "*"), *cells[:2], traffic.most, cells[2]))


def print_text(uses, codes, targets):
    print("registers, waves or SIMD, instructions (* has loops, of which one trip counts), private memory")
    for kernel, use in sorted(uses.items(), key=lambda item: -item[1].work_items):
        elements = elements_of(kernel.options)
        print("\n%s (%s: %s): %d launches, %d work-items%s" % (
            kernel.name, kernel.program, shape_of(kernel.options), use.launches, use.work_items,
            " of %d elements" % elements if elements else ""))
        for target in targets:
            code = codes[kernel, target]
            local = getattr(code, "local", 0)
            print("    %-8s %s%s" % (target, code if isinstance(code, Failure)
                                     else cell_of(code).replace("**", ""),
                                     ", %d B of local memory" % local if local else ""))
    print()
    for target in targets:
        print("%s: %d of %d launches use private memory" % (
            target, sum(use.launches for kernel, use in uses.items()
                        if getattr(codes[kernel, target], "private", 1)),
            sum(use.launches for use in uses.values())))
    print()


# ------------------------------------------------------------------ the command line


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcripts", nargs="*", help="by default all in transcripts/")
    parser.add_argument("--healcl", help="the program; by default build/release's, else build/test's")
    parser.add_argument("--device", default="cpu", help="the device that runs them, selected as for healcl run")
    parser.add_argument("--target", action="append", choices=TARGETS, metavar="NAME",
                        help="may be given several times; by default all: " + " ".join(TARGETS))
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 if a limit is exceeded; print only what concerns limits")
    options = parser.parse_args(arguments)
    if not options.transcripts:
        options.transcripts = first_path(str(ROOT / "transcripts/*.json"),
                                         str(ROOT / "transcripts/*.json.gz"))
    return options


def find_all_tools(targets, folder):
    """-> {target: tools}, [target without]; says which are skipped"""
    tools, skipped = {}, []
    for target in targets:
        tools[target], why = find_tools(target, folder)
        if tools[target] is None:
            del tools[target]
            skipped.append(target)
            print("device_code.py: SKIPPED %s: it takes %s (%s)"
                  % (target, TARGETS[target].wants, why), file=sys.stderr)
    return tools, skipped


def main(arguments=None):
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="healcl-device-code-") as folder:
        try:
            healcl = options.healcl or healcl_program()
            return look(options, healcl, folder)
        except Failure as failure:
            print("device_code.py: %s" % failure, file=sys.stderr)
            return 2


def look(options, healcl, folder):
    tools, skipped = find_all_tools(options.target or TARGETS, folder)
    if not tools:
        print("device_code.py: NOTHING was checked", file=sys.stderr)
        return 0
    oclgrind, counts = find_oclgrind(), []
    if oclgrind is None:
        print("device_code.py: SKIPPED bytes of global memory: Oclgrind is needed "
              "(scripts/setup-vendors.sh oclgrind)", file=sys.stderr)
    else:
        counts = in_parallel(count, share("operations", TRAFFIC, 2) if options.check else TRAFFIC,
                             healcl, oclgrind, folder)
    uses = launched(healcl, options.device, options.transcripts, folder)
    codes = compile_all(uses, tools, folder, IS_ALL or not options.check)
    if not options.check:
        print_text(uses, codes, tools)
        print_families(uses, codes, tools)
        print_counts(counts)
        return 0
    good = check(codes) & check_counts(counts)
    print("%d kernels on %s%s, bytes of %d operations: %s%s%s" % (
        len(uses), " ".join(tools), "" if IS_ALL else " (%s and one of the others each)" % BARRED,
        len(counts),
        "all bars hold" if good else "bars are broken",
        "; NOT on %s" % " ".join(skipped) if skipped else "",
        "" if counts else "; NOT bytes of global memory"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
