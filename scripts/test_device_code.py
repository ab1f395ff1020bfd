#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what device_code.py reads and what it makes of it, on outputs of compilers made by hand.

Run: python3 scripts/test_device_code.py"""

import contextlib
import io
import os
import struct
import tempfile
import unittest
from unittest import mock

import device_code
from device_code import Code, Failure, Kernel, Use

OPTIONS = "-cl-std=CL1.2 -w -D LOCAL_SIZE=256 -D ELEMENT=long -D AXES=3 -D NARROW -D THIN"
MODMUL = Kernel("modmul_table", "core", OPTIONS)
TILES = Kernel("ntt_tiles", "ntt/local", OPTIONS.replace("ELEMENT=long", "OUT=long -D IN=char"))

AMD = """\t.text
helper:                                 ; @helper
\ts_setpc_b64 s[30:31]
.Lfunc_end0:
; Function info:
; NumVgprs: 200
; ScratchSize: 64
\t.protected\tfirst
first:                                  ; @first
; %bb.0:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB1_1:                                ; =>This Inner Loop Header: Depth=1
\tv_add_u32_e32 v0, s0, v0
\tglobal_store_dwordx2 v0, v[2:3], s[0:1]
\ts_endpgm
\t.section\t.rodata
\t\t.amdhsa_next_free_vgpr 30
.Lfunc_end1:
; Kernel info:
; NumVgprs: 30
; NumAgprs: 2
; TotalNumVgprs: 34
; ScratchSize: 16
; LDSByteSize: 4096 bytes/workgroup (compile time only)
; Occupancy: 7
second:                                 ; @second
\ts_endpgm
.Lfunc_end2:
; NumVgprs: 3
; ScratchSize: 0
; LDSByteSize: 0 bytes/workgroup (compile time only)
; Occupancy: 8
"""

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    48 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 32768 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""

INTEL = b"""---
version:         '1.20'
kernels:
  - name:            first
    execution_env:
      grf_count:       128
      simd_size:       16
      slm_size:        32768
    payload_arguments:
      - arg_type:        local_size
        size:            12
    per_thread_memory_buffers:
      - type:            scratch
        usage:           single_space
        size:            2048
      - type:            global
        usage:           private_space
        size:            100
        is_simt_thread:  true
  - name:            second
    execution_env:
      grf_count:       128
      simd_size:       32
kernels_misc_info:
  - name:            first
    args_info:
      - index:           0
...
"""


def elf(sections):
    """A file with these sections, and with nothing else that a reader of sections looks at."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".names"])
    contents, headers, offset = b"", struct.pack("<I20xQQ24x", 0, 0, 0), 64
    for name, data in {**sections, ".names": names}.items():
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        headers += struct.pack("<I20xQQ24x", at, offset + len(contents), len(data))
        contents += data
    head = bytearray(64)
    struct.pack_into("<Q", head, 0x28, 64 + len(contents))
    struct.pack_into("<HHH", head, 0x3A, 64, len(sections) + 2, len(sections) + 1)
    return bytes(head) + contents + headers


class Compilers(unittest.TestCase):
    def test_amd(self):
        self.assertEqual(device_code.parse_amd(AMD), {
            "first": Code(registers=34, private=16, local=4096, waves=7, instructions=4, loops=1),
            "second": Code(registers=3, private=0, local=0, waves=8, instructions=1, loops=0)})

    def test_ptxas(self):
        self.assertEqual(device_code.parse_ptxas(PTXAS, 256), {
            "first": Code(registers=40, private=48, local=32768, waves=48),
            "second": Code(registers=10, private=0, local=0, waves=64)})

    def test_waves(self):
        self.assertEqual(device_code.nvidia_waves(255, 0, 256), 8)
        self.assertEqual(device_code.nvidia_waves(32, 0, 1), 32)  # as many as work-groups
        self.assertEqual(device_code.nvidia_waves(0, 0, 1024), 64)

    def test_intel(self):
        data = elf({".text.first": bytes(320), ".text.second": bytes(64), ".ze_info": INTEL})
        self.assertEqual(device_code.parse_intel(data), {
            "first": Code(private=228, local=32768, simd=16, instructions=20),
            "second": Code(private=0, local=0, simd=32, instructions=4)})

    def test_failing_program(self):
        with self.assertRaisesRegex(Failure, "^sh: first second$"):
            device_code.run(["sh", "-c", "echo first >&2; echo; echo second; exit 3"])
        with self.assertRaisesRegex(Failure, "No such file"):
            device_code.run(["/nonexistent/compiler"])

    def test_missing_compiler(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"PATH": folder, "OCLOC": ""}), contextlib.redirect_stderr(
                io.StringIO()) as said:
            tools, skipped = device_code.find_all_tools(["gfx90a", "pvc"], folder)
        self.assertEqual((tools, skipped), ({}, ["gfx90a", "pvc"]))
        self.assertIn("SKIPPED gfx90a: it takes clang", said.getvalue())
        self.assertIn("SKIPPED pvc: it takes ocloc", said.getvalue())


class Traces(unittest.TestCase):
    def test_uses(self):
        kernel = {"cat": "kernel", "name": "copy", "args": {
            "program": "core", "options": OPTIONS, "work_groups": 3, "local_size": 256}}
        trace = {"traceEvents": [{"ph": "M", "name": "process_name"},
                                 {"cat": "transfer", "name": "upload", "args": {}}, kernel, kernel]}
        self.assertEqual(device_code.uses_of(trace),
                         {Kernel("copy", "core", OPTIONS): Use(2, 1536)})

    def test_options(self):
        self.assertEqual(device_code.shape_of(OPTIONS), "long, 3 axes")
        self.assertEqual(device_code.shape_of(OPTIONS, types=False), "3 axes")
        self.assertEqual(device_code.shape_of(
            "-D LOCAL_SIZE=16 -D A=int -D A_UNSIGNED=uint -D LIMBS=2 -D WIDE"),
            "int, any axes, local size 16, 2 limbs, WIDE")
        self.assertEqual(device_code.elements_of(OPTIONS), 1)
        self.assertIsNone(device_code.elements_of(OPTIONS.replace(" -D THIN", "")))


def checked(codes, exceptions=()):
    said = io.StringIO()
    with mock.patch.object(device_code, "EXCEPTIONS", list(exceptions)):
        good = device_code.check(codes, said)
    return good, said.getvalue()


class Bars(unittest.TestCase):
    GOOD = Code(registers=64, private=0, local=0, waves=8, instructions=225, loops=0)

    def test_good(self):
        self.assertEqual(checked({(MODMUL, "gfx90a"): self.GOOD}), (True, ""))

    def test_broken(self):
        for field, value, said in (("registers", 65, "65 registers"), ("private", 4, "4 bytes"),
                                   ("instructions", 226, "226 instructions")):
            good, told = checked({(MODMUL, "gfx90a"): self.GOOD._replace(**{field: value})})
            self.assertFalse(good)
            self.assertIn("BROKEN: gfx90a: modmul_table (core: long, 3 axes): " + said, told)

    def test_what_has_no_bar_of_instructions(self):
        code = self.GOOD._replace(instructions=2000)
        for options in (OPTIONS.replace("AXES=3", "AXES=4"), OPTIONS.replace("-D AXES=3", ""),
                        OPTIONS.replace("=long", "=int"), OPTIONS.replace("-D THIN", "")):
            self.assertTrue(checked({(MODMUL._replace(options=options), "gfx90a"): code})[0])

    def test_other_targets(self):
        code = self.GOOD._replace(registers=200, instructions=2000)
        self.assertTrue(checked({(MODMUL, "sm_90"): code})[0])
        self.assertFalse(checked({(MODMUL, "sm_90"): code._replace(private=8)})[0])

    def test_transforms(self):
        self.assertTrue(checked({(TILES, "gfx90a"): self.GOOD._replace(registers=128)})[0])
        self.assertFalse(checked({(TILES, "gfx90a"): self.GOOD._replace(registers=129)})[0])

    def test_not_compiled(self):
        good, told = checked({(MODMUL, "pvc"): Failure("no kernel")})
        self.assertFalse(good)
        self.assertIn("not compiled: no kernel", told)

    def test_exceptions(self):
        row = "pvc|sm_90", "ntt_.*", "IN=char", "they are being mended"
        spilling = self.GOOD._replace(private=128)
        good, told = checked({(TILES, "pvc"): spilling}, [row])
        self.assertTrue(good)
        self.assertIn("they are being mended): 1 kernels have", told)
        self.assertFalse(checked({(TILES, "gfx90a"): spilling}, [row])[0])
        good, told = checked({(TILES, "pvc"): self.GOOD}, [row])
        self.assertTrue(good)
        self.assertIn("remove this row", told)


OCLGRIND = """Instructions executed for kernel '%s':
              64 - load private (512 bytes)
              32 - load global (%d bytes)
              16 - store global (128 bytes)
               4 - call llvm.memcpy.p0i8.p1i8.i64()
               2 - call llvm.memcpy.p0i8.p0i8.i64()
"""


def counts_of(*launches):
    return "".join(OCLGRIND % launch for launch in launches)


class Programs(unittest.TestCase):
    PROGRAMS = [("core", "-D A=%d" % i) for i in range(30)]

    def test_each_is_compiled_for_the_bars_and_one_more(self):
        targets = ["gfx906", "gfx90a", "sm_90"]
        with mock.patch("share.IS_ALL", False), contextlib.redirect_stdout(io.StringIO()):
            some = device_code.chosen(self.PROGRAMS, targets, False)
        by_target = {target: [pair[:2] for pair in some if pair[2] == target] for target in targets}
        self.assertEqual(by_target["gfx90a"], self.PROGRAMS)
        self.assertEqual(sorted(by_target["gfx906"] + by_target["sm_90"]), sorted(self.PROGRAMS))
        self.assertTrue(by_target["gfx906"] and by_target["sm_90"])

    def test_all(self):
        pairs = device_code.chosen(self.PROGRAMS, ["gfx90a", "sm_90"], True)
        self.assertEqual(len(set(pairs)), 60)

    def test_a_target_alone(self):
        with mock.patch("share.IS_ALL", False), contextlib.redirect_stdout(io.StringIO()):
            for target in "gfx90a", "sm_90":
                self.assertEqual(len(device_code.chosen(self.PROGRAMS, [target], False)), 30)


class Bytes(unittest.TestCase):
    def test_counts(self):
        log = counts_of(("moduli", 8), ("ntt_tiles", 64), ("copy", 8), ("ntt_tiles", 64))
        self.assertEqual(device_code.parse_counts(log, "ntt_tiles"), [192, 4])

    def test_operation_of_two_kernels(self):
        two = ("copy", 256), ("fill", 0)
        log = counts_of(("copy", 512), *two, *two)
        self.assertEqual(device_code.parse_counts(log, "copy|fill"), [512, 8])
        log = counts_of(*two, *two, ("copy", 512))  # which hands the result out
        self.assertEqual(device_code.parse_counts(log, "copy|fill"), [512, 8])

    def test_nothing_counted(self):
        with self.assertRaisesRegex(Failure, "has not counted gather"):
            device_code.parse_counts(counts_of(("copy", 8), ("copy", 8)), "gather")

    def test_out_of_bounds(self):
        traffic = device_code.Traffic("copy --n 8", "copy", 1.05)
        for fault in ("Invalid write of size 8 at local memory address 0x1000000008000",
                      "Index (4096) exceeds static array size (4096)"):
            with mock.patch.object(device_code, "run", return_value="\n%s\n\tstore\n" % fault):
                said = device_code.count("healcl", traffic, {}, "none.json")
            self.assertEqual(str(said), "Oclgrind says: " + fault)
            with self.assertRaisesRegex(Failure, "Oclgrind says: "):
                device_code.hold_to_counts({"traceEvents": []}, "\n%s\n" % fault)

    def test_bars(self):
        traffic = device_code.Traffic("copy --n 8", "copy", 1.05)
        for bytes, good in ((128, True), (134, True), (135, False)):
            said = io.StringIO()
            counts = [(traffic, device_code.Counted(bytes, 128, 8, 0))]
            self.assertEqual(device_code.check_counts(counts, said), good)
            self.assertEqual(said.getvalue(), "" if good else
                             "BROKEN: bytes of copy --n 8: 135, at most 1.05 times 128\n")
        self.assertFalse(device_code.check_counts([(traffic, Failure("no"))], io.StringIO()))

    def test_missing(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"HEALCL_VENDORS_DIR": folder}), mock.patch.object(
                device_code, "SYSTEM_OCLGRIND", folder + "/none"), contextlib.redirect_stderr(
                io.StringIO()) as said:
            self.assertEqual(device_code.count_all("healcl", device_code.TRAFFIC, folder, 1), [])
        self.assertIn("SKIPPED bytes of global memory", said.getvalue())


def span_of(name, **told):
    return {"cat": "kernel", "name": name, "args": {"entry": 7, **told}}


class Launches(unittest.TestCase):
    LOG = counts_of(("self_test", 8), ("moduli", 8), ("copy", 64))

    def held(self, *spans):
        return device_code.hold_to_counts({"traceEvents": [{"cat": "transfer"}, *spans]}, self.LOG)

    def test_formulas(self):
        moduli = span_of("moduli")  # a table: none is wanted
        good = span_of("copy", bytes=192, moduli=3, twiddles=1)
        self.assertEqual(self.held(moduli, good), (1, []))
        for wrong in dict(bytes=193, moduli=3, twiddles=1), dict(bytes=192, moduli=3, twiddles=0):
            compared, differs = self.held(moduli, span_of("copy", **wrong))
            self.assertEqual(compared, 1)
            self.assertIn("copy of entry 7 asks for 192 bytes and 4 table entries", differs[0])
        self.assertEqual(self.held(moduli, span_of("copy")),
                         (0, ["copy of entry 7 has no formula"]))
        self.assertEqual(self.held(good, moduli),
                         (0, ["the trace has other launches than Oclgrind"]))

    def test_bars(self):
        row = ("workload", "all", "")
        for result, said in (((3, []), ""), (Failure("no"), "no"), ((3, ["it differs"]), "it differs"),
                             ((0, []), "no launch was compared")):
            stream = io.StringIO()
            self.assertEqual(device_code.check_launches([(row, result)], stream), said == "")
            self.assertEqual(stream.getvalue(), said and "BROKEN: launches of workload, passes all: "
                             "%s\n" % said)

    def test_first_block(self):
        one = '{"transcript":[\n["SEGMENT_START","a"],\n'
        rest = '[{"value":"SEGMENT_START"},"download_1"],\n[1]\n]}\n'
        self.assertEqual(device_code.first_block(one + rest),
                         '{"transcript":[\n["SEGMENT_START","a"]\n]}\n')
        self.assertEqual(device_code.first_block(one), one)

    def test_bytes(self):
        spans = [span_of("moduli"), *[span_of("copy", bytes=8, moduli=2, twiddles=1)] * 2]
        self.assertEqual(device_code.bytes_of({"traceEvents": spans}), {"copy": [16, 160]})


class Tables(unittest.TestCase):
    def test_families(self):
        names = [device_code.FAMILIES[device_code.family_of(name)][0] for name in (
            "modmul", "mod_table", "moduli", "modmul_axis_sum", "intt_tiles", "fill", "gather")]
        self.assertEqual(names, ["elementwise", "elementwise", "checks and derived tables", "sums",
                                 "transforms", "copies and fills", "gathers and permutations"])

    def test_cells(self):
        self.assertEqual(device_code.cell_of(Code(registers=30, private=0, waves=8,
                                                  instructions=204, loops=1)), "30 / 8 / 204*")
        self.assertEqual(device_code.cell_of(Code(registers=30, private=16, waves=64)),
                         "30 / 64 / **16 B**")
        self.assertEqual(device_code.cell_of(Code(private=0, simd=16, instructions=9)), "SIMD16 / 9")
        self.assertEqual(device_code.cell_of(Failure("no")), "?")

    def test_the_worst_of_types(self):
        other = MODMUL._replace(options=OPTIONS.replace("ELEMENT=long", "ELEMENT=int"))
        uses = {MODMUL: Use(1, 256), other: Use(2, 512)}
        codes = {(MODMUL, "gfx90a"): Code(30, 0, 0, 8, None, 204, 0),
                 (other, "gfx90a"): Code(20, 8, 0, 10, None, 210, 0)}
        self.assertEqual(device_code.grouped(uses, codes, ["gfx90a"]),
                         [(0, "modmul_table", "3 axes", Use(3, 768),
                           [Code(30, 8, 0, 8, None, 210, 0)])])

    def test_what_is_saved(self):
        code = Code(30, 16, 512, 8, None, 210, 2)
        self.assertEqual(device_code.saved(code), {"registers": 30, "private": 16, "waves": 8,
                                                   "instructions": 210, "loops": True})
        self.assertIsNone(device_code.saved(Failure("no")))
        traffic = device_code.TRAFFIC[0]
        counted = mock.Mock(bytes=48, elements=2, compulsory=40, entries=1)
        page = device_code.told({MODMUL: Use(3, 768)}, {(MODMUL, "gfx90a"): code},
                                [(traffic, counted), (traffic, Failure("no"))], {}, ["a/ntt.json"])
        self.assertEqual(page["transcripts"], ["ntt.json"])
        self.assertEqual([row["of_least"] for row in page["bytes"]], [1.2])
        self.assertEqual(page["kernels"][0]["kernel"], "modmul_table")


if __name__ == "__main__":
    unittest.main()
