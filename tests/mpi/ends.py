#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends of all ranks of healcl-mpi: by one whose healcl, transcript or plan differs from rank 0's, that
has no device, or that fails, also in the middle of a request. One line names rank and host.

    ends.py HEALCL FAULTY_SOURCE.so FAULTY_RANKS HEALCL-MPI MPIRUN

FAULTY_RANKS is built from faulty_ranks.c in this folder. HEALCL_TEST_ALL=1 loses a device at more
places. Exits with 77, skipped, where there is no MPI.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "cli")]
from launch import Launcher  # noqa: E402
from requests import npy, read_npy, transcript  # noqa: E402
from share import IS_ALL  # noqa: E402

TRANSCRIPTS = HERE.parents[1] / "transcripts"
SPLIT = TRANSCRIPTS / "sentiment.json"  # ranks exchange sums
WAIT_SECONDS = 30  # of these the longest that a rank waits for another one are 5
REQUESTS = 200


def instead(program):
    """Returns words before the program of a rank that make it another one."""
    return "sh", "-c", f'exec {program} "$@"'


def other_version(program, place):
    """A copy of the program that says that it is of another commit, or of another version."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    version = said.split()[1]
    changed = Path(program).read_bytes().replace(f"{version}\0".encode(), b"9" * len(version) + b"\0")
    path = place / "other"
    path.write_bytes(changed)
    path.chmod(0o755)
    assert subprocess.run([path, "--version"], capture_output=True, text=True,
                          check=True).stdout != said
    return path


class Ends:
    def __init__(self, launcher, place):
        self.launcher, self.place = launcher, place

    def of(self, words, first, second, code, ranks="1", may_abort=False):
        """Rank 0 and rank 1, each a command and what stands before it. may_abort: one may end the
        other by MPI_Abort; launchers do not always say so."""
        _, lines, seconds = self.launcher.run((1, *first), (1, *second), code=code)
        assert may_abort or "mpi_abort" not in self.launcher.error.lower(), self.launcher.error
        assert len(lines) == 1 and words in lines[0], (words, lines)
        assert any(lines[0].startswith(f"healcl-mpi: rank {rank} on ") for rank in ranks), lines
        assert seconds < WAIT_SECONDS, (words, seconds)


def serve(file, *options):
    return "serve", "--input", "x=in", "--results", "out", "--reference", *options, file


def run(file, *options):
    return "run", "--reference", *options, file


def changed(file, place):
    """Returns the transcript with one more byte."""
    path = place / f"changed-{Path(file).name}"
    path.write_bytes(Path(place, file).read_bytes() + b"\n")
    return path


def check_unlike(ends, version, place):
    """Another version, transcript or plan."""
    for command, file in (serve, "model.json"), (run, SPLIT):
        good = (command(file),)
        ends.of("its version of healcl differs from rank 0's", good,
                (command(file), *instead(version)), 3)
        ends.of("its transcript differs from rank 0's", good, (command(changed(file, place)),), 3)
        ends.of("its plan differs from rank 0's", good, (command(file, "--passes", "none"),), 3)


def check_opening(ends, driver):
    """No such file or device, and a device that gets its self-test wrong."""
    for command, file in (serve, "model.json"), (run, SPLIT):
        on_device = [word for word in command(file) if word != "--reference"]
        ends.of("none.json", (command(file),), (command("none.json"),), 2)
        ends.of("no device", (command(file),), ((*on_device[:-1], "--devices", "nothing of that name",
                                                 file),), 2)
        if driver:
            faulty = ("env", f"LD_PRELOAD={driver}", "HEALCL_CACHE_DIR=", "HEALCL_VARIANT=general",
                      "FAULTY_FROM=sum >= q ? sum - q : sum", "FAULTY_TO=sum > q ? sum - q : sum")
            ends.of("fails its self-test", (command(file),), (on_device, *faulty), 4)


# ---------------------------------------------------------------- devices that are lost


def calls_of(launcher, place, ranks, command):
    """How many calls of OpenCL's a rank makes: of all the fewest."""
    for path in place.glob("count*"):
        path.unlink()
    launcher.run(*[(1, command, "env", f"LOST_COUNT={place}/count{rank}") for rank in range(ranks)])
    return min(int(path.read_text()) for path in place.glob("count*"))


def positions(few, many):
    """Some of the calls behind the first ones."""
    places = range(1, 20) if IS_ALL else (1, 10, 18)
    return [few + max(1, (many - few) * place // 20) for place in places]


def check_lost_in_run(launcher, ends, place):
    """The other rank waits for its sums."""
    command = "run", "--repeat"
    few, many = (calls_of(launcher, place, 2, (*command, repeat, SPLIT)) for repeat in ("1", "9"))
    assert many > few + 20, (few, many)
    for position in positions(few, many):
        ends.of("CL_OUT_OF_RESOURCES", ((*command, "9", SPLIT),),
                ((*command, "9", SPLIT), "env", f"LOST_AT={position}"), 4, may_abort=True)


def check_lost_in_serve(launcher, ends, place):
    """The other rank serves. What is there is whole."""
    command = "serve", "--results", "out", "--sessions", "1", "--input"
    for name, count in ("one", 1), ("few", 6):
        (place / name).mkdir()
        for number in range(count):
            (place / name / f"r{number}.npy").write_bytes(npy([1, 1, 1]))
    few, many = (calls_of(launcher, place, 1, (*command, f"x={name}", "model.json"))
                 for name in ("one", "few"))
    assert many > few, (few, many)
    for position in positions(few, many):
        for path in (place / "out").iterdir():
            path.unlink()
        faulty = (*command, "x=in", "model.json"), "env", f"LOST_AT={position}"
        ends.of("CL_OUT_OF_RESOURCES", faulty, faulty, 4, ranks="01", may_abort=True)
        results = list((place / "out").glob("*.npy"))
        assert 0 < len(results) < REQUESTS, len(results)
        for path in results:
            number = int(path.stem[1:])
            assert read_npy(path) == [2 * (number % 32), 3 * (number % 32), 4 * (number % 24)], path


def main(healcl, driver, faulty, program, mpirun):
    if not program or not mpirun:
        print("MPI is missing: there is no healcl-mpi to be tested")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "model.json").write_text(json.dumps(transcript()))
        (place / "in").mkdir()
        (place / "out").mkdir()
        for number in range(REQUESTS):
            (place / "in" / f"r{number}.npy").write_bytes(npy([number % 32, number % 32, number % 24]))
        launcher = Launcher(Path(program).resolve(), mpirun, place)
        has_device = subprocess.run([healcl, "devices"], capture_output=True,
                                    check=False).returncode == 0
        ends = Ends(launcher, place)
        check_unlike(ends, other_version(launcher.program, place), place)
        check_opening(ends, has_device and driver)
        if has_device:
            launcher = Launcher(Path(faulty).resolve(), mpirun, place)
            ends = Ends(launcher, place)
            check_lost_in_run(launcher, ends, place)
            check_lost_in_serve(launcher, ends, place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
