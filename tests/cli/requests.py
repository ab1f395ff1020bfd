#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl run --input, --requests, --steady and --keep: inputs and requests through one session."""
import base64
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MODULUS = 97


def npy(values, shape=None, kind="<i8"):
    shape = (len(values),) if shape is None else shape
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header = header.ljust(117) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{len(values)}{'q' if kind == '<i8' else 'i'}", *values))


def read_npy(path):
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - begin) // 8}q", data[begin:]))


def operation(name, args, out=None):
    return {"type": "DEVICE_OP", "op": {"name": name, "args": args,
                                        "out": out or {"arg_type": "NONE", "value": None}}}


def tensor(name):
    return {"arg_type": "DEVICE_TENSOR", "value": {"inf_name": name}}


def host(**members):
    return {"arg_type": "HOST_TENSOR", "value": {"tensor_base64": {"type": "numpy", **members}}}


def transcript(expected=None, w="w", x="x"):
    """out = x * w mod 97, with w in one segment, and x, which has no data, in the next."""
    weights = base64.b64encode(npy([2, 3, 4])).decode()
    result = host(data=base64.b64encode(npy(expected)).decode()) if expected else None
    return [
        {"type": "SEGMENT_START", "name": "weights"},
        operation("host_to_device", [host(data=weights)], tensor(w)),
        {"type": "SEGMENT_END"},
        {"type": "SEGMENT_START", "name": "model"},
        operation("host_to_device", [host(dtype="int64", shape=[3])], tensor(x)),
        operation("empty", [{"arg_type": "SHAPE", "value": [{"arg_type": "INT", "value": 3}]},
                            {"arg_type": "TENSOR_TYPE", "value": "int64"}], tensor("out")),
        operation("_modmul_ttc", [tensor(x), tensor(w),
                                  {"arg_type": "INT", "value": MODULUS}, tensor("out")],
                  tensor("out")),
        operation("device_to_host", [tensor("out")], result),
        {"type": "SEGMENT_END"},
    ]


class Program:
    def __init__(self, path, place):
        self.path, self.place = path, place

    def run(self, *arguments, code=0):
        done = subprocess.run([self.path, "run", *arguments], cwd=self.place, text=True,
                              capture_output=True, check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def fails(self, words, *arguments, code):
        done = self.run(*arguments, code=code)
        assert words in done.stderr, (words, done.stderr)


def check_inputs(program, place, where):
    """Named by entry or by tensor, of another dtype too."""
    (place / "x.npy").write_bytes(npy([5, -6, 2**62]))
    (place / "narrow.npy").write_bytes(npy([5, 6, 7], kind="<i4"))
    for what, model, expected in (("entry:4=x", "model", [10, -18, 2**62 * 4 % MODULUS]),
                                  ("x=x", "model", [10, -18, 2**62 * 4 % MODULUS]),
                                  ("name:1=x", "numbers", [10, -18, 2**62 * 4 % MODULUS]),
                                  ("x=narrow", "model", [10, 18, 28])):
        program.run(*where, "--input", f"{what}.npy", "--dump", "out", "--quiet", f"{model}.json")
        result, = (place / "out").glob("*.npy")
        assert read_npy(result) == expected
        result.unlink()
        (place / "out" / "results.json").unlink()


def check_refusals(program, place, where):
    (place / "short.npy").write_bytes(npy([5, 6]))
    (place / "wide.npy").write_bytes(npy([5, 6, 7], shape=(1, 3)))
    (place / "damaged.npy").write_bytes(npy([5, 6, 7])[:-3])
    program.fails("entry 4 (host_to_device): it has a dtype and a shape, but no data", *where,
                  "model.json", code=3)
    program.fails("--input x: 'short.npy': its shape is [2], not [3]", *where,
                  "-i", "x=short.npy", "model.json", code=3)
    program.fails("its shape is [1, 3], not [3]", *where, "-i", "x=wide.npy", "model.json",
                  code=3)
    program.fails("--input x: 'damaged.npy': ", *where, "-i", "x=damaged.npy", "model.json", code=3)
    program.fails("No such file", *where, "-i", "x=none.npy", "model.json", code=2)
    program.fails("'y' is neither the entry", *where, "-i", "y=x.npy", "model.json", code=2)
    program.fails("'5' is neither the entry", *where, "-i", "5=x.npy", "model.json", code=2)
    program.fails("'name:4' is neither the entry", *where, "-i", "name:4=x.npy", "model.json", code=2)
    program.fails("--input: '1' is ambiguous: it names entries 1 and 4; write 'entry:1' or "
                  "'entry:4'", *where, "-i", "1=x.npy", "numbers.json", code=2)
    program.fails("--input takes ENTRY=FILE.npy", *where, "-i", "x", "model.json", code=2)
    program.fails("--keep needs --requests or --steady", *where, "--keep", "weights", "model.json", code=2)
    program.fails("there is no segment 'keys'", *where, "--requests", "2", "--keep", "keys",
                  "-i", "x=x.npy", "model.json", code=2)


def check_requests(program, where):
    """Bytes that each request uploads: those of x alone, or all that does not stay."""
    report = json.loads(program.run(*where, "--requests", "7", "-i", "x=x.npy", "--json", "-",
                                    "model.json").stdout)
    assert report["requests"] == 7 and report["results_compared"] == 0
    assert report["bytes_uploaded"] == 24 and report["first_bytes_uploaded"] == 48
    latency = report["latency_ns"]
    assert 0 < latency["median"] <= latency["p95"] <= latency["p99"] <= latency["longest"]
    report = json.loads(program.run(*where, "--requests", "2", "-i", "x=x.npy", "--keep", "model",
                                    "--json", "-", "model.json").stdout)
    assert report["bytes_uploaded"] == 48
    text = program.run(*where, "--requests", "2", "-i", "x=x.npy", "model.json").stdout
    assert "24 B by each" in text and "latency" in text


def check_steady(program, place, where):
    """Requests behind a run: which inputs they upload, by their bytes; a wrong run has none."""
    data = [base64.b64encode(npy(values)).decode() for values in ([5, 4, 4], range(8))]
    for name, expected, options, uploaded in (
            ("weights", [10, 12, 16], (), 24),  # the last segment that uploads
            ("upload_ct_1", [10, 12, 16], (), 88),
            ("weights", [10, 12, 16], ("--keep", "model"), 88),
            ("weights", None, ("-i", "x=x.npy"), 24),
            ("weights", [10, 12, 15], (), None)):
        entries = transcript(expected)
        entries[0]["name"] = name
        entries[4] = operation("host_to_device", [host(data=data[0])], tensor("x"))
        entries.insert(2, operation("host_to_device", [host(data=data[1])], tensor("v")))
        (place / "steady.json").write_text(json.dumps(entries))
        report = json.loads(program.run(*where, "--steady", "3", *options, "--json", "-",
                                        "steady.json", code=0 if uploaded else 1).stdout)
        steady = report.get("steady", {"bytes_uploaded": None})
        assert steady["bytes_uploaded"] == uploaded, (name, options, report)
        if uploaded:
            assert len(steady["requests_ns"]) == 3 and min(steady["requests_ns"]) > 0, report
            assert steady["results_compared"] == (0 if "-i" in options else 4), report
    program.fails("--steady cannot be combined", *where, "--steady", "2", "--requests", "2",
                  "steady.json", code=2)


def check_verdict(program, place, where):
    """Requests without inputs of their own are compared."""
    for expected, code in ([10, 12, 16], 0), ([10, 12, 15], 1):
        entries = transcript(expected)
        x = base64.b64encode(npy([5, 4, 4])).decode()
        entries[4] = operation("host_to_device", [host(data=x)], tensor("x"))
        (place / "whole.json").write_text(json.dumps(entries))
        report = json.loads(program.run(*where, "--requests", "3", "--json", "-", "whole.json",
                                        code=code).stdout)
        assert report["results_compared"] == 4
        assert report["results_different"] == (0 if code == 0 else 4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = Program(Path(sys.argv[1]).resolve(), place)
        (place / "model.json").write_text(json.dumps(transcript()))
        (place / "numbers.json").write_text(json.dumps(transcript(w=4, x=1)))
        places = [("--reference",)]
        if subprocess.run([program.path, "devices"], capture_output=True, check=False).returncode == 0:
            places.append(())
        for where in places:
            check_inputs(program, place, where)
            check_refusals(program, place, where)
            check_requests(program, where)
            check_verdict(program, place, where)
            check_steady(program, place, where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
