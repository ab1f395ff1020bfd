#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs transcripts with `healcl run --trace`, and holds the traces to what else is known of the runs.

    trace.py HEALCL

Without a device only the host reference is looked at.
"""
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from devices import use_device  # noqa: E402
HOST, TRANSFER, COMPUTE = 1, 2, 3
# Microseconds: the file has nanoseconds.
EXACT = 0.0015


class Run:
    """One run: its exit code, its JSON and its trace."""

    def __init__(self, healcl, folder, *arguments):
        report, trace = Path(folder) / "run.json", Path(folder) / "trace.json"
        for path in report, trace:
            path.unlink(missing_ok=True)
        self.code = subprocess.run([healcl, "run", "-q", "--json", report, "--trace", trace,
                                    *arguments], cwd=ROOT, capture_output=True).returncode
        self.json = json.loads(report.read_text())
        self.trace = json.loads(trace.read_text())
        self.about = self.trace["otherData"]
        self.spans = [event for event in self.trace["traceEvents"] if event["ph"] == "X"]
        assert sorted(path.name for path in Path(folder).iterdir()) == ["run.json", "trace.json"]

    def track(self, track):
        return [span for span in self.spans if span["tid"] == track]

    def of(self, category, track=None):
        return [span for span in self.spans
                if span["cat"] == category and track in (None, span["tid"])]

    def kinds(self):
        """Returns the report's operations by kind, over all segments: count and time."""
        count, nanoseconds = Counter(), Counter()
        for segment in self.json["segments"]:
            for kind in segment["operations_by_kind"]:
                count[kind["name"]] += kind["count"]
                nanoseconds[kind["name"]] += kind["time_ns"]
        return count, nanoseconds


def end(span):
    return span["ts"] + span["dur"]


def check_nesting(spans):
    """A span lies within another or beside it. Returns the parent of each, by its id."""
    parents, open_spans = {}, []
    for span in sorted(spans, key=lambda span: (span["ts"], -span["dur"])):
        while open_spans and end(open_spans[-1]) <= span["ts"] + EXACT:
            open_spans.pop()
        if open_spans:
            assert end(span) <= end(open_spans[-1]) + EXACT, (span, open_spans[-1])
            parents[id(span)] = open_spans[-1]
        open_spans.append(span)
    return parents


def check_form(run):
    for span in run.spans:
        assert span["ts"] >= 0 and span["dur"] >= 0, span
        assert end(span) <= run.about["total_ns"] / 1000 + EXACT, span
    assert run.about["dropped_spans"] == 0
    names = {event["tid"]: event["args"]["name"] for event in run.trace["traceEvents"]
             if event["name"] == "thread_name"}
    assert names == {HOST: "host", TRANSFER: "transfer queue", COMPUTE: "compute queue"}, names


def check_segments(run, repetitions):
    """The host's segments, in the order of the report, in each repetition."""
    expected = [segment["name"] or "(outside segments)" for segment in run.json["segments"]]
    assert len(run.of("repetition")) == repetitions
    assert [span["name"] for span in run.of("segment", HOST)] == expected * repetitions
    # The report knows the time of each; there, building and comparing do not count.
    for segment, span in zip(run.json["segments"], run.of("segment", HOST)):
        if repetitions == 1:
            assert segment["time_ns"] <= span["dur"] * 1000 + 1, (segment, span)


def check_kernels(run):
    parents = check_nesting(run.track(COMPUTE))
    slack = run.about["clock_error_ns"] / 1000 + EXACT
    host_segments = run.of("segment", HOST)
    for kernel in run.of("kernel"):
        segment = parents[id(kernel)]
        assert segment["cat"] == "segment", kernel
        assert any(host["name"] == segment["name"] and host["ts"] - slack <= kernel["ts"]
                   and end(kernel) <= end(host) + slack for host in host_segments), kernel
        arguments = kernel["args"]
        assert arguments["work_groups"] > 0 and arguments["local_size"] > 0, kernel
        assert arguments["program"] and arguments["entry"] >= 0, kernel
        assert f"-D LOCAL_SIZE={arguments['local_size']}" in arguments["options"], kernel


def check_operations(run, repetitions):
    """Each kind of operation takes the time in the trace that the report says."""
    count, nanoseconds = run.kinds()
    of_kernels, fused = Counter(), set()
    results = [copy for copy in run.of("transfer", COMPUTE)
               if copy["name"] == "copy" and copy["args"].get("op") == "device_to_host"]
    for kernel in run.of("kernel") + results:
        operations = kernel["args"]["op"].split(" + ")  # they share a fused kernel's time
        fused.update(operations if len(operations) > 1 else ())
        for operation in operations:
            of_kernels[operation] += kernel["dur"] * 1000
    assert set(of_kernels) <= set(count)
    assert {name for name in nanoseconds if nanoseconds[name]} <= set(of_kernels)
    if repetitions == 1:
        for name, time_ns in nanoseconds.items():
            assert name in fused or abs(of_kernels[name] - time_ns) <= 0.001 * time_ns + 2 * count[name] + 100, name
    # A fused kernel's time is shared out among the operations that it does.
    for name in fused:
        assert nanoseconds[name] > 0, name
    # Every result is there, and every upload of a tensor that is not empty.
    entries = {(span["args"]["op"], span["args"]["entry"]) for span in run.of("operation")}
    seen = Counter(name for name, _ in entries)
    assert seen["device_to_host"] == count["device_to_host"]
    assert 0 < seen["host_to_device"] <= count["host_to_device"]


def check_device_run(healcl, folder, *arguments, repetitions=1):
    run = Run(healcl, folder, "--no-warmup", "--repeat", str(repetitions), *arguments)
    assert run.code == 0, arguments
    check_form(run)
    check_nesting(run.track(HOST))
    check_nesting(run.track(TRANSFER))
    check_kernels(run)
    check_segments(run, repetitions)
    check_operations(run, repetitions)
    return run


def check_reference(healcl, folder):
    run = Run(healcl, folder, "--reference", "--passes", "none", "--repeat", "2",
              "transcripts/recognizer.json")
    assert run.code == 0 and run.about["device"] == "reference"
    check_form(run)
    check_nesting(run.spans)
    check_segments(run, 2)
    assert {span["tid"] for span in run.spans} == {HOST}
    count, _ = run.kinds()
    seen = Counter(span["name"] for span in run.of("operation"))
    for name in "host_to_device", "device_to_host", "ntt", "modmul", "apply_g_decomp":
        assert seen[name] >= 2 * count[name], name


def check_failures(healcl, folder, options):
    """A run that fails in the middle leaves a whole trace; one that cannot start, too."""
    run = Run(healcl, folder, *options, "tests/bad/gather_index_high.json")
    assert run.code == 3 and run.json["error"]["status"] == "refused"
    check_form(run)
    check_nesting(run.track(HOST))
    check_nesting(run.track(COMPUTE))
    assert run.of("repetition") and run.of("segment", HOST) and run.of("operation")
    run = Run(healcl, folder, *options, "tests/bad/json_trailing.json")
    assert run.code == 3
    assert "read and plan" in {span["name"] for span in run.spans}
    failed = subprocess.run([healcl, "run", *options, "--trace", f"{folder}/no/trace.json",
                             "transcripts/nothing.json"], cwd=ROOT, capture_output=True, text=True)
    assert failed.returncode == 2 and "cannot write" in failed.stderr, failed.stderr


def main():
    healcl = sys.argv[1]
    device = use_device(healcl)
    with tempfile.TemporaryDirectory(prefix="healcl-trace-") as folder:
        check_reference(healcl, folder)
        check_failures(healcl, folder, ["--reference"])
        workload = "transcripts/encrypted_digits_toy.json.gz"
        if not device:
            print("no device: only the reference was looked at")
            return 0
        for name in "recognizer", "segments", "random_1", "aliasing", "payloads":
            check_device_run(healcl, folder, f"transcripts/{name}.json")
        run = check_device_run(healcl, folder, workload, repetitions=3)
        assert run.of("build") and run.of("wait") and run.of("compare") and run.of("decode")
        assert run.of("transfer", TRANSFER) and run.of("transfer", COMPUTE)
        check_failures(healcl, folder, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
