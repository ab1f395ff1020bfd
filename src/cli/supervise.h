/*
 * Commands that open a device run in a child of the process that was started: a driver that ends
 * the process, crashes or hangs must not decide its exit code.
 */
#ifndef HEALCL_CLI_SUPERVISE_H
#define HEALCL_CLI_SUPERVISE_H

#include "cli/cli.h"

/* Whether nothing is to be forked for that, as debuggers and tests have it: the environment's
 * HEALCL_ONE_PROCESS. */
bool is_one_process(void);

/*
 * Forks where the command line opens a device or has --timeout, and goes on as the child: returns
 * GOES_ON, and what the command returns goes through verdict_tell. The parent waits, for so long as
 * --timeout allows, and returns the exit code: the child's, or EXIT_DEVICE where it has ended
 * without one of its own. Then it says so, and writes the reports that the child has not written.
 * Interrupted, it ends as the child does. Called before there are threads, and after signals_init.
 */
int supervise(const struct command *command, int argc, char **argv);

#endif
