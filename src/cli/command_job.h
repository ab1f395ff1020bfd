/* Frame of commands that make one report. */
#ifndef HEALCL_CLI_COMMAND_JOB_H
#define HEALCL_CLI_COMMAND_JOB_H

#include "cli/progress.h"
#include "cli/report_file.h"
#include "opencl/opening.h"

/* The memory of such a command begins with it. */
struct command_job {
    const char *selector;        /* of the device; NULL: none was named */
    const char *file;            /* the transcript; NULL: there is none */
    struct healcl_limits limits; /* with the operations of manifests */
    struct report_file json, junit;
    bool quiet, verbose; /* print errors alone; also tell where an error arose */
    struct progress progress;
    struct healcl_device *device; /* closed with the job */
};

struct job_steps {
    enum healcl_status (*work)(void *self, struct healcl_error *error); /* NULL: none is needed */
    cJSON *(*report)(void *self);                                       /* NULL: it makes none */
    void (*print)(void *self, const cJSON *document, const struct style *style);
    void (*junit)(void *self, const cJSON *document, FILE *stream); /* NULL: it takes no --junit */
    /* Returns the exit code once all is printed, or it failed, which came to code; or NULL. */
    int (*conclude)(void *self, int code);
};

/* Opens the reports and works, while progress is shown. Then prints what came of it, or why it
 * failed, closes what is open, and returns the exit code. */
int job_run(void *self, const struct job_steps *steps);

/* The operations of manifests, or NULL. */
const struct operation_table *job_table(const struct command_job *job);

/* Rows of options; the last ones of a command are JOB_OPTIONS. */
#define JOB_DEVICE DEVICE_OPTION(struct command_job, selector)
#define JOB_LIMITS                                            \
    {MEMORY_OPTION(struct command_job, limits.memory_bytes)}, \
        {WORK_OPTION(struct command_job, limits.work)},       \
    {                                                         \
        EXPAND_OPTION(struct command_job, limits.expand)      \
    }
#define JOB_OPERATIONS                                                       \
    {OPS_OPTION(struct command_job, limits.operations, take_operations)},    \
    {                                                                        \
        TRUST_OPTION(struct command_job, limits.operations, take_operations) \
    }
#define JOB_OPTIONS                                                            \
    JOB_OPERATIONS, {JSON_OPTION(struct command_job, json)}, {TIMEOUT_OPTION}, \
    {                                                                          \
        HELP_OPTION                                                            \
    }

/* Starts a process that compiles the kernels of a transcript, from its end on, where that shortens
 * a run of it on a device that is to be opened: a CPU with another core, not tested yet, so that
 * nothing is compiled. *board is for device_open_for_run. For process_stop; 0: none was started. */
int compile_ahead_start(const struct device_info *info, const char *file,
                        struct compile_board **board);

/* Runs in such a process: healcl compile-ahead SELECTOR -- FILE, or as a builder of
 * device_build_listed. It is internal, and in no list. Returns only where it is called wrongly. */
#define COMPILE_AHEAD "compile-ahead"
/* For struct device_opening: that, or NULL where the user wants no such processes. */
const char *compile_ahead_command(void);
int compile_ahead_run(int argc, char **argv);

#endif
