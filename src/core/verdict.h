/*
 * An exit code that is the process's own. A driver may end the process in which it runs, with any
 * code. So a process in which one runs says its exit code through a pipe first, and then ends with
 * a status that no driver ends it with: whoever waits for it believes both together alone.
 */
#ifndef HEALCL_CORE_VERDICT_H
#define HEALCL_CORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* Words that a process has said until now. */
struct verdict {
    bool is_reported;
    bool is_last;     /* the code holds however the process ends: MPI, or a signal, ends it then */
    int code;         /* an exit code, below 16 */
    uint64_t reports; /* bit i: report i has been written */
    char kernel[96];  /* of a manifest, that is being checked; "": none is */
};

/* The end of a pipe that this process says it to; until then nobody asks. */
void verdict_to(int pipe);

bool verdict_is_asked(void);

/* Says that report number i, below 64, has been written. */
void verdict_report_file(uint32_t i);

/* Says that a kernel of a manifest is being checked, by a name in ASCII, or "": none. */
void verdict_kernel(const char *name);

/* Says the exit code, which must be the last that happens before the process ends. Returns the
 * status to end it with. Async-signal-safe, as the next. */
int verdict_report(int code);

/* Says it for a process that MPI ends, with whatever status. */
void verdict_report_last(int code);

/* Takes what has been said into a pipe of which this is the other end, and which does not block. */
void verdict_read(int pipe, struct verdict *verdict);

/* Whether a process of that status, as of waitpid, has ended with the code that it said. */
bool verdict_holds(const struct verdict *verdict, int status);

#endif
