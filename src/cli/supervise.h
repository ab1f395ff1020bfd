/*
 * Commands that open a device run in a child of the process that was started: a driver that ends
 * the process, crashes or hangs must not decide its exit code.
 */
#ifndef HEALCL_CLI_SUPERVISE_H
#define HEALCL_CLI_SUPERVISE_H

#include "cli/command_job.h"

/* Whether nothing is to be forked for that, as debuggers and tests have it: the environment's
 * HEALCL_ONE_PROCESS. */
bool is_one_process(void);

/* Whether this is the one process of healcl, or the first of several that a launcher of MPI has
 * started: the others leave errors of the command line to it. */
bool is_first_rank(void);

/* Ends this process, in which no driver has run: what is loaded beside healcl has no say in it. */
_Noreturn void end_at_once(int code);

/*
 * Forks where the command line opens a device or has --timeout, and returns in the child, whose
 * exit code goes through verdict_report. The parent waits, for so long as --timeout allows, and
 * ends with the exit code: the child's, or EXIT_DEVICE where that has ended without one of its own.
 * Then it says so, and writes the reports that the child has not written. Interrupted, it ends as
 * the child does. Called before there are threads, and after signals_init.
 */
void supervise(const struct command *command, struct command_job *job, bool opens_device);

/* ---- signals ---- */

/*
 * SIGINT, SIGTERM and SIGHUP remove temporary files and end the program as they would without:
 * whoever waits for it sees the signal. One that is ignored, as under nohup, stays so.
 * SIGBUS in a mapped transcript, whose file was cut or whose disk failed: temporary files are
 * removed, a line tells of it, and the program exits with EXIT_REFUSED.
 * Memory that xmalloc cannot get: the same with EXIT_DEVICE.
 * SIGPIPE and SIGXFSZ: what is written fails instead, and is reported as other failures to write.
 */
void signals_init(void);

/* A line has told of memory that ran out: what ends the program for it then says nothing. */
void signals_memory_is_reported(void);

#endif
