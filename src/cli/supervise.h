/* A command that opens a device runs in a child process. So a driver that exits, crashes or hangs
 * does not decide the exit code. */
#ifndef HEALCL_CLI_SUPERVISE_H
#define HEALCL_CLI_SUPERVISE_H

#include "cli/command_job.h"

/* Whether to run everything in one process, as for debuggers and tests: HEALCL_ONE_PROCESS is set
 * in the environment. */
bool is_one_process(void);

/* Whether this is the only process of healcl, or the first of those that an MPI launcher started.
 * Other processes leave command line errors to it. */
bool is_first_rank(void);

/* Ends this process without running exit functions of loaded libraries. No driver has run in it. */
_Noreturn void end_at_once(int code);

/* Forks if the command line opens a device or has --timeout, and returns in the child, whose exit
 * code is sent with verdict_report. The parent waits, at most as long as --timeout allows. It ends
 * with the child's exit code, or with EXIT_DEVICE if the child ended without sending one. Then it
 * prints an error, and writes the reports that the child did not write. If interrupted, it ends
 * like the child. Call this before any threads exist, and after signals_init. */
void supervise(const struct command *command, struct command_job *job, bool opens_device);

/* ---- signals ---- */

/* Installs signal handlers. SIGINT, SIGTERM and SIGHUP remove temporary files and end the program
 * by the signal, so that its parent sees it. An ignored signal, as under nohup, remains ignored.
 * SIGBUS in a mapped transcript means that its file was truncated or its disk failed. Then
 * temporary files are removed, a message is printed, and the program exits with EXIT_REFUSED. If
 * xmalloc runs out of memory, the same happens with EXIT_DEVICE. SIGPIPE and SIGXFSZ are ignored:
 * the write fails instead, and is reported like other write errors. */
void signals_init(void);

/* Notes that a message about lack of memory was printed. The program then ends without a second
 * message. */
void signals_memory_is_reported(void);

#endif
