/* Compiling in a second process, beside a run. */
#ifndef HEALCL_CLI_COMPILE_AHEAD_H
#define HEALCL_CLI_COMPILE_AHEAD_H

#include "device/device.h"

/* Starts a process that compiles the kernels of a transcript, from its end on, where that shortens
 * a run of it on a device that was just opened: a CPU with another core, nothing compiled yet. For
 * process_stop; 0: none was started. */
int compile_ahead_start(struct healcl_device *device, const char *file);

/* What such a process does: healcl compile-ahead SELECTOR -- FILE. Not for people; it is in no
 * list. Returns only where it is called wrongly. */
#define COMPILE_AHEAD "compile-ahead"
int compile_ahead_run(int argc, char **argv);

#endif
