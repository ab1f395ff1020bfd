/*
 * An exit code that is certain to be the process's own. A driver may end the process in which it
 * runs, with any exit code. A process with a driver therefore first reports its exit code through a
 * pipe. Then it ends with a status that no driver uses. The parent accepts the exit code only if
 * both agree.
 */
#ifndef HEALCL_CORE_VERDICT_H
#define HEALCL_CORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* What a process has reported so far. */
struct verdict {
    bool is_reported;
    bool is_last;     /* the code holds, whatever the exit status is: MPI or a signal then ends the
                         process */
    int code;         /* an exit code, below 16 */
    uint64_t reports; /* bit i: report i has been written */
    char kernel[96];  /* the manifest's kernel being checked; "": none */
};

/* Sets the pipe that this process reports to. Until then nothing is reported. */
void verdict_to(int pipe);

bool verdict_is_asked(void);

/* Reports that report number i, below 64, has been written. */
void verdict_report_file(uint32_t i);

/* Reports that a manifest's kernel is being checked, by its ASCII name; "": none. */
void verdict_kernel(const char *name);

/* Reports the exit code. Call it last before the process ends. Returns the status to end the
 * process with. Async-signal-safe, like verdict_report_last. */
int verdict_report(int code);

/* Reports the exit code of a process that MPI ends, whatever its status. */
void verdict_report_last(int code);

/* Reads what has been reported from the other end of the pipe, which must not block. */
void verdict_read(int pipe, struct verdict *verdict);

/* Whether a process with this status, from waitpid, has ended with the code that it reported. */
bool verdict_holds(const struct verdict *verdict, int status);

#endif
