# SPDX-License-Identifier: Apache-2.0
"""Starting healcl-mpi by mpirun, of Open MPI or MPICH."""
import os
import subprocess
import time
from pathlib import Path

# Open MPI asks root whether he means it, and counts cores where more ranks than cores are started. Its
# ranks give a processor that others want to them.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_mpi_yield_when_idle": "1",
               "POCL_MAX_PTHREAD_COUNT": "1"}
SECONDS = 120


class Launcher:
    def __init__(self, program, mpirun, place):
        self.program, self.mpirun, self.place = str(program), mpirun, place
        self.error = ""  # all that the last run printed on standard error

    def command(self, parts):
        """parts: of each kind of rank how many, the program's arguments, and what stands before it."""
        command = [self.mpirun]
        for number, (count, arguments, *before) in enumerate(parts):
            command += [":"] if number else []
            command += ["-n", str(count), *before, self.program, *map(str, arguments)]
        return command

    def start(self, *parts, **environment):
        return subprocess.Popen(self.command(parts), cwd=self.place, text=True,
                                env={**os.environ, **ENVIRONMENT, **environment},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, *parts, code=0, **environment):
        """-> standard output, the lines of healcl-mpi on standard error, seconds"""
        begin = time.monotonic()
        process = self.start(*parts, **environment)
        try:
            out, error = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        self.error = error
        assert process.returncode == code, (parts, process.returncode, out, error)
        lines = [line for line in error.splitlines() if line.startswith("healcl")]
        return out, lines, time.monotonic() - begin


def children(process):
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            pass
    return found


def rank_processes(process, name):
    """The processes of that name which descend from one."""
    found = []
    for child in children(process):
        try:
            is_rank = Path(f"/proc/{child}/comm").read_text().strip() == name
        except OSError:
            continue
        found += [child] if is_rank else rank_processes(child, name)
    return found
