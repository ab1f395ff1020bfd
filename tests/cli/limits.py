#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small transcripts that ask for endless work or memory by repeating few elements: `healcl run` refuses
them at once, on a device and on the reference, and takes no memory for it.

    limits.py HEALCL [--no-bars]

--no-bars: times and memory are those of sanitizers, and are not looked at.
Without a device only the host reference is looked at.
"""
import base64
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

# Costs of a refusal, at most, above those of a transcript that is refused for its first operation.
SECONDS, BYTES = 0.2, 32 << 20
CPU_SECONDS = 120
NONE = {"arg_type": "NONE", "value": None}


# ---------------------------------------------------------------- transcripts


def tensor(name):
    return {"arg_type": "DEVICE_TENSOR", "value": {"inf_name": name}}


def integer(value):
    return {"arg_type": "INT", "value": value}


def shape(*sizes):
    return {"arg_type": "SHAPE", "value": [integer(size) for size in sizes]}


INT64 = {"arg_type": "TENSOR_TYPE", "value": "int64"}


def host(*values, sizes=None):
    sizes = sizes or (len(values),)
    text = "{'descr': '<i8', 'fortran_order': False, 'shape': (%s), }" % "".join(
        "%d, " % size for size in sizes)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    data = (b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode()
            + struct.pack("<%dq" % len(values), *values))
    return {"arg_type": "HOST_TENSOR", "value": {"tensor_base64": {
        "type": "numpy", "data": base64.b64encode(data).decode()}}}


def call(name, *arguments, out=None):
    """An operation whose last argument is its output, unless out names another."""
    return {"type": "DEVICE_OP", "op": {"name": name, "args": list(arguments),
                                        "out": out or arguments[-1]}}


def download(repeats, expected=NONE):
    return [call("zeros", shape(1), INT64, out=tensor(1)),
            call("expand", tensor(1), integer(0), integer(repeats), out=tensor(2)),
            call("device_to_host", tensor(2), out=expected)]


def axis_modsum(terms):
    return [call("zeros", shape(1, 1), INT64, out=tensor(1)),
            call("expand", tensor(1), integer(0), integer(terms), out=tensor(2)),
            call("host_to_device", host(7), out=tensor(3)),
            call("zeros", shape(1), INT64, out=tensor(4)),
            call("axis_modsum", tensor(2), integer(0), tensor(3), tensor(4)),
            call("device_to_host", tensor(4), out=host(0))]


def full_q(k):
    """Digits of values with k residues; all moduli are 1."""
    return [call("zeros", shape(1, 1, 8), INT64, out=tensor(1)),
            call("expand", tensor(1), integer(1), integer(k), out=tensor(1)),
            call("host_to_device", host(1), out=tensor(2)),
            call("expand", tensor(2), integer(0), integer(k), out=tensor(2)),
            call("zeros", shape(1, 1, 8), INT64, out=tensor(3)),
            call("apply_g_decomp_relative_to_full_q", tensor(1), tensor(2), integer(1), integer(4),
                 tensor(3)),
            call("device_to_host", tensor(3), out=host(*[0] * 8, sizes=(1, 1, 8)))]


# ---------------------------------------------------------------- runs


def end_some_time():
    """A run without the limits that are looked for here must not go on for ever."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


class Run:
    """One run: exit code, standard output and error, processor time, and peak of memory."""

    def __init__(self, healcl, folder, transcript, *arguments, command="run", **environment):
        path = os.path.join(folder, "t.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(transcript, file)
        with open(os.path.join(folder, "out"), "w+") as out, \
                open(os.path.join(folder, "err"), "w+") as err:
            child = subprocess.Popen([healcl, command, *arguments, "t.json"], cwd=folder, stdout=out,
                                     stderr=err, env={**os.environ, **environment},
                                     preexec_fn=end_some_time)
            _, status, usage = os.wait4(child.pid, 0)
            self.code = child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            self.out, self.err = out.read(), err.read()
        self.seconds = usage.ru_utime + usage.ru_stime
        self.bytes = usage.ru_maxrss * 1024  # not below this process's own


class Test:
    def __init__(self, healcl, folder, bars):
        self.healcl, self.folder, self.bars = healcl, folder, bars
        self.failures = 0

    def run(self, *arguments, **options):
        return Run(self.healcl, self.folder, *arguments, **options)

    def expect(self, condition, what, run):
        if condition:
            return
        self.failures += 1
        print("%s: exit code %d, %.2f s, %d bytes\n%s%s" % (what, run.code, run.seconds, run.bytes,
                                                             run.out, run.err))

    def bounded(self, what, run, start):
        """It took little more than the run start, in time and memory."""
        if self.bars:
            self.expect(run.seconds <= start.seconds + SECONDS, what + ": time", run)
            self.expect(run.bytes <= start.bytes + BYTES, what + ": memory", run)

    def refused(self, message, transcript, *arguments, **options):
        """It is refused with that message, in no time and memory."""
        what = "%s (%s)" % (message, " ".join(arguments))
        start = self.run([call("zeros", shape(-1), INT64, out=tensor(1))], *arguments, **options)
        self.expect(start.code == 3, "the first operation", start)
        run = self.run(transcript, *arguments, **options)
        self.expect(run.code == 3 and run.out == "" and run.err == "healcl: t.json: %s\n" % message,
                    what, run)
        self.bounded(what, run, start)



def check_refusals(test, *mode, command="run"):
    options = {"command": command}
    visits = "%s elements to visit, above the limit of 4398046511104"
    test.refused("entry 2 (device_to_host): argument 't': its scratch memory takes 2147483648 bytes "
                 "beside 8 in use, above the limit of 16777216", download(1 << 28),
                 *mode, "--memory-limit", "16M", **options)
    test.refused("entry 2 (device_to_host): argument 't': " + visits % (1 << 59),
                 download(1 << 59, host(0)), *mode, **options)
    test.refused("entry 4 (axis_modsum): argument 'a': " + visits % ((1 << 59) + 1),
                 axis_modsum(1 << 59), *mode, **options)
    test.refused("entry 5 (apply_g_decomp_relative_to_full_q): argument 'a': "
                 + visits % "at least 18446744073709551615", full_q(1 << 40), *mode, **options)
    test.refused("entry 5 (apply_g_decomp_relative_to_full_q): argument 'a': its scratch memory takes "
                 "1600640000 bytes beside 136 in use, above the limit of 1073741824", full_q(10000),
                 *mode, "--memory-limit", "1G", **options)
    test.refused("entry 4 (axis_modsum): argument 'a': 1048577 elements to visit, above the limit "
                 "of 1048576", axis_modsum(1 << 20), *mode, "--work-limit", "1M", **options)
    run = test.run(axis_modsum(1 << 20), *mode, "--work-limit", "1048577", **options)
    test.expect(run.code == 0, "just within the limit", run)


def check_other_shape(test, *mode):
    """A result of another shape than expected is not packed to say so."""
    runs = [test.run(download(repeats, host(0)), *mode) for repeats in (2, 1 << 28)]
    for run, repeats in zip(runs, (2, 1 << 28)):
        test.expect(run.code == 1 and "entry 2 (device_to_host): tensor 2: shape [%d], expected [1]"
                    % repeats in run.out, "another shape", run)
    test.bounded("another shape", runs[1], runs[0])


def check_many_moduli(test):
    """Kernels' data for each modulus fit a thread's stack, or are refused."""
    run = test.run(full_q(1500), HEALCL_TUNING="general,local_size=1024")
    test.expect(run.code == 0, "1500 moduli", run)
    run = test.run(full_q(40000), "--memory-limit", "1T", "--no-fallback")
    test.expect(run.code == 3 and run.err == "healcl: t.json: entry 5 "
                "(apply_g_decomp_relative_to_full_q): argument 'q': 40000 moduli are more than the "
                "32768 that devices support\n", "40000 moduli", run)


def main():
    healcl = os.path.abspath(sys.argv[1])
    has_device = subprocess.run([healcl, "devices"], capture_output=True).returncode == 0
    with tempfile.TemporaryDirectory() as folder:
        test = Test(healcl, folder, "--no-bars" not in sys.argv)
        check_refusals(test, command="inspect")
        for mode in (["--reference"], []) if has_device else (["--reference"],):
            check_refusals(test, *mode)
            check_other_shape(test, *mode)
        if has_device:
            check_many_moduli(test)
    print("%d failures%s" % (test.failures, "" if has_device else ", without a device"))
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
