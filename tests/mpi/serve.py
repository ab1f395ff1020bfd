#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""healcl-mpi serve: requests on several ranks, refusals, and kills. ends.py has what ends all ranks.

    serve.py HEALCL HEALCL-MPI MPIRUN

HEALCL_TEST_ALL=1 kills 30 times during 500 requests. Exits with 77, skipped, where there is no MPI.
"""
import base64
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "cli")]
from launch import ENVIRONMENT, Launcher, rank_processes  # noqa: E402
from requests import MODULUS, host, npy, operation, read_npy, tensor, transcript  # noqa: E402
from share import IS_ALL, SEED  # noqa: E402

RANKS = 2
SERVE = ("serve", "--input", "x=in", "--results", "out")


def expected(values):
    return [x * w % MODULUS for x, w in zip(values, (2, 3, 4))]


def write_requests(place, count):
    (place / "in").mkdir(exist_ok=True)
    (place / "in" / "._r000.npy").write_bytes(b"hidden files are no requests")
    for number in range(count):
        (place / "in" / f"r{number:03}.npy").write_bytes(npy([number, number + 1, number * number]))


def check_results(place, count, missing=()):
    for number in range(count):
        path = place / "out" / f"r{number:03}.npy"
        if number in missing:
            assert not path.exists(), path
        else:
            assert read_npy(path) == expected([number, number + 1, number * number]), path


def serve(launcher, *options, model="model.json"):
    """-> the report, the lines on standard error"""
    out, lines, _ = launcher.run((RANKS, (*SERVE, "--reference", "--json", "-", *options, model)))
    return json.loads(out), lines


def check_serving(launcher, place, devices):
    """All requests, each once; what was done is left out the next time, unless its input changed."""
    write_requests(place, 40)
    report, lines = serve(launcher)
    assert not lines, lines
    assert report["requests"] == 40 == sum(rank["requests"] for rank in report["ranks"])
    assert [rank["rank"] for rank in report["ranks"]] == list(range(RANKS))
    assert report["failed"] == report["left_out"] == 0
    assert report["bytes_written"] == 40 * 24 and report["requests_per_second"] > 0
    latency = report["latency_ns"]
    assert 0 < latency["median"] <= latency["p95"] <= latency["p99"] <= latency["longest"]
    check_results(place, 40)
    report, _ = serve(launcher, "--resume")
    assert report["left_out"] == 40 and report["requests"] == 0
    (place / "in" / "r005.npy").write_bytes(npy([7, 8, 9]))
    (place / "out" / "r007.npy").unlink()
    report, _ = serve(launcher, "--resume", "--sessions", "1")
    assert report["left_out"] == 38 and report["requests"] == 2
    (place / "changed.json").write_text((place / "model.json").read_text() + "\n")
    report, _ = serve(launcher, "--resume", model="changed.json")
    assert report["left_out"] == 0 and report["requests"] == 40
    assert read_npy(place / "out" / "r005.npy") == expected([7, 8, 9])
    write_requests(place, 40)
    for device in devices:
        empty(place / "out")
        out, lines, _ = launcher.run((RANKS, (*SERVE, "--batch", "7", *device, "model.json")))
        assert "40" in out and "all" in out and not lines, (out, lines)
        check_results(place, 40)
    report, _ = serve(launcher, "--resume", "--batch", "3")
    assert report["left_out"] == 40 and report["batches"] == 0


def check_two_inputs(launcher, place):
    model = transcript()
    model[1] = operation("host_to_device", [host(dtype="int64", shape=[3])], tensor("w"))
    (place / "two.json").write_text(json.dumps(model))
    for folder, name, values in (("x", "a", [4, 5, 6]), ("x", "b", [1, 2, 3]), ("w", "a", [2, 2, 2]),
                                 ("w", "b", [2, 2, 2])):
        (place / folder).mkdir(exist_ok=True)
        (place / folder / f"{name}.npy").write_bytes(npy(values))
    two = "-i", "x=x", "-i", "1=w", "--results", "two", "-d", "reference", "two.json"
    launcher.run((RANKS, ("serve", "-q", *two)))
    assert read_npy(place / "two" / "a.npy") == [8, 10, 12]
    assert read_npy(place / "two" / "b.npy") == [2, 4, 6]
    (place / "two" / "a.npy").unlink()
    (place / "two" / "a.npy").symlink_to("../x/b.npy")
    refuse(launcher, "cannot write 'two/a.npy': it is the input 'x/b.npy'", *two)
    (place / "two" / "a.npy").unlink()
    (place / "two" / "a.npy").symlink_to("../two.json")
    refuse(launcher, "cannot write 'two/a.npy': it is the input 'two.json'", *two)
    (place / "w" / "a.npy").rename(place / "w" / "c.npy")
    refuse(launcher, "'w/a.npy': No such file", *two)


def refuse(launcher, words, *arguments, code=2):
    """One line reports the error, for any number of ranks."""
    _, lines, _ = launcher.run((RANKS, ("serve", *arguments)), code=code)
    assert len(lines) == 1 and words in lines[0], (words, lines)


def check_usage(launcher):
    refuse(launcher, "--input is missing", "--results", "out", "model.json")
    refuse(launcher, "unrecognized option '--nothing'", "--nothing")
    refuse(launcher, "No such file", "-i", "x=nothing", "--results", "out", "model.json")
    refuse(launcher, "--results 'in' would overwrite the input --input 'in'", "-i", "x=in", "--results", "in",
           "model.json")


def check_launchers(launcher):
    """A process that MPI takes for rank 0 of 1 warns where its launcher has started several."""
    environment = {**{name: value for name, value in os.environ.items() if "SLURM" not in name}, **ENVIRONMENT}
    for name in "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS":
        for count in "1", "2":
            done = subprocess.run([launcher.program, "serve", "-i", "x=nothing", "--results", "out", "model.json"],
                                  cwd=launcher.place, env={**environment, name: count}, text=True,
                                  capture_output=True, check=False)
            warned = f"healcl-mpi: warning: {name} is 2, but MPI has 1 rank: " in done.stderr
            assert done.returncode == 2 and warned == (count == "2"), (name, count, done)


def check_failures(launcher, place):
    """A request of another shape, and one whose data break a rule: the others go on."""
    model = transcript()
    model[6] = operation("_modmul_ttt", [tensor("w"), tensor("w"), tensor("x"), tensor("out")],
                         tensor("out"))
    (place / "moduli.json").write_text(json.dumps(model))
    (place / "moduli").mkdir()
    for name, values in ("good", [5, 7, 11]), ("short", [5, 7]), ("zero", [5, 0, 11]):
        (place / "moduli" / f"{name}.npy").write_bytes(npy(values))
    for batch in "1", "4":
        out, lines, _ = launcher.run((RANKS, ("serve", "-i", "x=moduli", "--results", "rest", "--json",
                                              "-", "--batch", batch, "--reference", "moduli.json")),
                                     code=3)
        report = json.loads(out)
        assert report["requests"] == 1 and report["failed"] == 2, report
        assert len(lines) == 2 and all("healcl-mpi: rank " in line for line in lines), lines
        assert {line.split("'")[1] for line in lines} == {"short", "zero"}, lines
        assert [path.name for path in (place / "rest").glob("*.npy")] == ["good.npy"]
        assert read_npy(place / "rest" / "good.npy") == [4, 2, 5]


# ---------------------------------------------------------------- kills


def empty(folder):
    for path in folder.iterdir():
        path.unlink()


def kill_at(launcher, place, draw, results):
    """Serves until there are so many results, then kills one rank, or all; -> whether that came in
    time"""
    process = launcher.start((RANKS, (*SERVE, "--reference", "--resume", "--quiet", "model.json")))
    while process.poll() is None and len(list((place / "out").glob("*.npy"))) < results:
        time.sleep(0.001)
    ranks = rank_processes(process.pid, "healcl-mpi")
    for rank in ranks if draw.random() < 0.5 else draw.sample(ranks, min(1, len(ranks))):
        try:
            os.kill(rank, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate(timeout=60)
    return process.returncode != 0


def check_kills(launcher, place, requests, kills):
    """After any kill there is no half file, and in the end each result once and right."""
    draw = random.Random(SEED)
    write_requests(place, requests)
    empty(place / "out")
    killed = 0
    for _ in range(kills):
        done = len(list((place / "out").glob("*.npy")))
        if done > requests * 3 // 4:
            empty(place / "out")
            done = 0
        killed += kill_at(launcher, place, draw, draw.randrange(done, requests))
        for path in (place / "out").glob("*.npy"):
            assert read_npy(path) == expected(read_npy(place / "in" / path.name)), path
    assert killed > 0
    serve(launcher, "--resume")
    check_results(place, requests)
    names = {path.name for path in (place / "out").iterdir() if ".tmp-" not in path.name}
    assert len(names) == requests + 1, names  # and what they are of
    print(f"{killed} of {kills} kills came in time")


def main(healcl, program, mpirun):
    if not program or not mpirun:
        print("MPI is missing: there is no healcl-mpi to be tested")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        launcher = Launcher(Path(program).resolve(), mpirun, place)
        (place / "model.json").write_text(json.dumps(transcript()))
        has_device = subprocess.run([healcl, "devices"], capture_output=True,
                                    check=False).returncode == 0
        check_serving(launcher, place, [("--reference",)] + [()] * has_device)
        check_two_inputs(launcher, place)
        check_usage(launcher)
        check_launchers(launcher)
        check_failures(launcher, place)
        check_kills(launcher, place, *((500, 30) if IS_ALL else (60, 2)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
