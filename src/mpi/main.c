/* healcl-mpi: the command line. */
#include "mpi/opening.h"

static const struct command *const commands[] = {&command_run_ranks, &command_serve};

static const struct program program = {
    .name = "healcl-mpi",
    .ended_by = "a driver, or MPI,",
    .summary = "Runs HEAL transcripts on many OpenCL devices, by a rank of MPI for each.\n",
    .exit_codes = "Exit codes: 0 all is done, 1 a result differs, 2 wrong usage, 3 the transcript\n"
                  "or a request is refused, or ranks differ, 4 a device or OpenCL failed.\n",
    .starts_once = true,
    .commands = commands,
    .command_count = sizeof commands / sizeof *commands,
};

int main(int argc, char **argv)
{
    return program_run(&program, argc, argv);
}
