/*
 * This program once more, as a child process: a driver that crashes or hangs there harms nobody
 * else. What the child is asked to write goes through a pipe of its own, for drivers print on
 * standard output.
 */
#ifndef HEALCL_CORE_PROCESS_H
#define HEALCL_CORE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* The file in which a child writes what its parent wants to read. */
#define PROCESS_FILE "/dev/fd/3"

/* The first argument of a child that says its exit code to PROCESS_VERDICT_FILE (core/verdict.h).
 * The name before it may get lost: an emulator may put a path in its place. */
#define PROCESS_CHILD "as-child"

enum { PROCESS_LINE_SIZE = 1024, PROCESS_VERDICT_FILE = 4 };

enum process_end {
    PROCESS_EXITED,
    PROCESS_KILLED,      /* by a signal that was not ours */
    PROCESS_TIMED_OUT,   /* and was killed for it, also where it had said its exit code */
    PROCESS_INTERRUPTED, /* this program got SIGINT, SIGTERM or SIGHUP, and killed the child */
};

struct process_result {
    enum process_end end;
    bool is_own;          /* it has exited with a code of its own, not a driver's */
    int code;             /* of the exit; the signal where the child or we got one */
    uint64_t nanoseconds; /* from before it started to after it ended, monotonic clock */
    uint64_t bytes_peak;  /* of host memory, resident at one time */
    char *text;           /* what it wrote for us, with a 0 behind it; owned */
    size_t size;
    char last_line[PROCESS_LINE_SIZE]; /* of its standard error, without control characters */
};

/*
 * Runs this program with arguments (its name and PROCESS_CHILD are first, NULL ends them) and waits
 * until it ends, seconds at the longest. It reads nothing, and its standard output is lost. With
 * the child ends every process that it started; all of them end if this one does. How the child
 * ended is no error. Errors: HEALCL_DEVICE where it cannot be started, HEALCL_NO_MEMORY. Only the
 * main thread calls this, where SIGCHLD is not ignored. Release the result either way.
 */
enum healcl_status process_run(const char *const *arguments, uint32_t seconds,
                               struct process_result *result, struct healcl_error *error);
void process_result_release(struct process_result *result);

/* Runs a function of this program likewise: it writes to file, and returns an exit code. The child
 * is a copy of this process, in which no other thread may run and no driver be loaded. */
enum healcl_status process_call(int (*function)(int file), uint32_t seconds,
                                struct process_result *result, struct healcl_error *error);

/*
 * Starts this program with arguments, `count` times, beside this process, which goes on. Each reads
 * nothing, and what it prints is lost; it ends if this process does. All get *shared, memory of
 * some bytes, zeros, by process_shared. Returns how many were started, with their numbers in
 * processes.
 */
size_t process_start_beside(const char *const *arguments, size_t count, size_t bytes, void **shared,
                            int *processes);

/* That memory in the process that was started; NULL: there is none. */
void *process_shared(size_t bytes);

bool process_has_ended(int process);

/* Ends such a process. 0: there is none. */
void process_stop(int process);

/* A pipe whose ends programs that are started do not get; to read from it does not block. Returns
 * whether it could be made, or errno says why. */
bool process_pipe(int pair[2]);

/* "SIGSEGV", or "signal 42" in text, which is returned. */
enum { PROCESS_SIGNAL_SIZE = 24 };
const char *process_signal_name(int signal, char text[PROCESS_SIGNAL_SIZE]);

#endif
