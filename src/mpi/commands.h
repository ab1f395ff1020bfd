/* The commands of healcl-mpi. */
#ifndef HEALCL_MPI_COMMANDS_H
#define HEALCL_MPI_COMMANDS_H

#include "cli/cli.h"

extern const struct command command_run_ranks, command_serve;

#endif
