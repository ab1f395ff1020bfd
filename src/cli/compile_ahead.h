/* Compiling in a second process, beside a run. */
#ifndef HEALCL_CLI_COMPILE_AHEAD_H
#define HEALCL_CLI_COMPILE_AHEAD_H

#include "opencl/opening.h"

/* Starts a process that compiles the kernels of a transcript, from its end on, where that shortens
 * a run of it on a device that is to be opened: a CPU with another core, not tested yet, so that
 * nothing is compiled. *board is for device_open_for_run. For process_stop; 0: none was started. */
int compile_ahead_start(const struct device_info *info, const char *file,
                        struct compile_board **board);

/* What such a process does: healcl compile-ahead SELECTOR -- FILE. Not for people; it is in no
 * list. Returns only where it is called wrongly. */
#define COMPILE_AHEAD "compile-ahead"
int compile_ahead_run(int argc, char **argv);

#endif
