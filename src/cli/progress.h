/* A line on a terminal that shows the current work and its elapsed time. A separate thread updates
 * it, because most of the time is spent in single calls of drivers. Commands that may take many
 * minutes also report without a terminal, one line per minute. A process has one such line, and
 * only its main thread calls these functions. */
#ifndef HEALCL_CLI_PROGRESS_H
#define HEALCL_CLI_PROGRESS_H

#include <stdbool.h>

/* Shows nothing unless `wanted` is set and standard error is a terminal that can erase a line. */
void progress_start(bool wanted);

/* Call it after progress_start. Without such a terminal, a line is written to standard error every
 * minute. HEALCL_PROGRESS_SECONDS in the environment sets another interval; 0: no lines. */
void progress_start_long(void);

/* Sets the text of the line. */
__attribute__((format(printf, 1, 2))) void progress_say(const char *format, ...);

/* Removes the line while other text is printed, or a process is forked. Pairs of these calls may
 * nest; print_notice makes its own. */
void progress_pause(void);
void progress_resume(void);

/* Removes the line and ends the thread. */
void progress_end(void);

#endif
