/*
 * Runs this program again as a child process. A driver that crashes or hangs there harms no other
 * process. The child writes its output through a separate pipe, because drivers print on standard
 * output.
 */
#ifndef HEALCL_CORE_PROCESS_H
#define HEALCL_CORE_PROCESS_H

#include "core/status.h"

/* The file that a child writes its parent's data to. */
#define PROCESS_FILE "/dev/fd/3"

/* The first argument of a child that reports its exit code to PROCESS_VERDICT_FILE
 * argv[0] may get lost: an emulator may replace it with a path. */
#define PROCESS_CHILD "as-child"

enum { PROCESS_LINE_SIZE = 1024, PROCESS_VERDICT_FILE = 4 };

enum process_end {
    PROCESS_EXITED,
    PROCESS_KILLED,      /* by a signal that this program did not send */
    PROCESS_TIMED_OUT,   /* and was killed, even if it had reported its exit code */
    PROCESS_INTERRUPTED, /* this program got SIGINT, SIGTERM or SIGHUP, and ended the child */
};

/* What a process has reported so far. */
struct verdict {
    bool is_reported;
    bool is_last;     /* the code holds, whatever the exit status is: MPI or a signal then ends the
                         process */
    int code;         /* an exit code, below 16 */
    uint64_t reports; /* bit i: report i has been written */
    char kernel[96];  /* the manifest's kernel being checked; "": none */
};

struct process_result {
    enum process_end end;
    bool is_child; /* of process_fork: this is the child, and nothing else is set */
    bool is_own;   /* it ended with its own exit code, not with one from a driver */
    struct verdict verdict;
    int code;             /* exit code, or the signal that the child or this program got */
    uint64_t nanoseconds; /* from before it started to after it ended, monotonic clock */
    uint64_t bytes_peak;  /* peak resident host memory */
    char *text;           /* what it wrote to PROCESS_FILE, with a 0 behind it; owned */
    size_t size;
    char last_line[PROCESS_LINE_SIZE]; /* of its standard error, without control characters */
};

/* What a child does: one of the first three. */
struct process_task {
    /* Runs this program: its name and PROCESS_CHILD come first, NULL last. */
    const char *const *arguments;
    /* Writes to file, and returns an exit code. The child is a copy of this process, which must
     * have no other thread and no loaded driver. */
    int (*function)(int file);
    /* Returns from process_run, with result->is_child set, and goes on with all that this process
     * has. This process passes signals on to it, and it then has some seconds to end. */
    bool is_callers;
    /* Beside any of them: called in this process now and then while it waits; or NULL. */
    void (*looking)(void);
};

/*
 * Starts a child, and waits at most `seconds` seconds until it ends; 0: no limit. Unless it is the
 * caller's, the child has no input, its standard output is discarded, and every process that it
 * started ends with it. All of them end if this process does. Errors: HEALCL_DEVICE if it cannot be
 * started; HEALCL_NO_MEMORY. An abnormal end of the child is not an error. Call it only from the
 * main thread, with SIGCHLD not ignored. Release the result in any case.
 */
enum healcl_status process_run(const struct process_task *task, uint32_t seconds,
                               struct process_result *result, struct healcl_error *error);
void process_result_release(struct process_result *result);

/*
 * Starts `count` processes of this program with arguments, and does not wait for them. They have no
 * input, their output is discarded, and they end if this process does. *shared becomes zeroed
 * memory of `bytes` bytes that all of them share; they get it by process_shared. Returns how many
 * were started. processes: their process ids.
 */
size_t process_start_beside(const char *const *arguments, size_t count, size_t bytes, void **shared,
                            int *processes);

/* The shared memory, in the process that was started; NULL if there is none. */
void *process_shared(size_t bytes);

bool process_has_ended(int process);

/* Ends such a process; ignores 0. */
void process_stop(int process);

/* Returns the signal's name, "SIGSEGV", or text, which then holds "signal 42". */
enum { PROCESS_SIGNAL_SIZE = 24 };
const char *process_signal_name(int signal, char text[PROCESS_SIGNAL_SIZE]);

/* ---------------------------------------------------------------- verdicts */

/*
 * An exit code that is certain to be the process's own. A driver may end the process in which it
 * runs, with any exit code. A process with a driver therefore first reports its exit code through a
 * pipe. Then it ends with a status that no driver uses. The parent accepts the exit code only if
 * both agree.
 */

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

#endif
