/* What all commands have in common, and the frame of those that make one report. */
#ifndef HEALCL_CLI_COMMAND_JOB_H
#define HEALCL_CLI_COMMAND_JOB_H

#include "cli/progress.h"
#include "cli/report_file.h"
#include "opencl/opening.h"

/* The memory of each command begins with it. */
struct command_job {
    char **arguments; /* of the command line, the operands last */
    size_t argument_count;
    char **files; /* the operands */
    size_t file_count;
    const char *file;            /* the one that the command works on; NULL: there is none */
    const char *selector;        /* of the device; NULL: none was named */
    struct healcl_limits limits; /* with the operations of manifests */
    struct report_file json, junit;
    bool quiet, verbose; /* print errors alone; also tell where an error arose */
    uint32_t timeout;    /* seconds; 0: none was named */
    struct progress progress;
    struct healcl_device *device; /* closed with the job */
};

/* Opens the reports and works, while progress is shown. Then prints what came of it, or why it
 * failed, closes what is open, and returns the exit code. */
int job_run(const struct command *command, void *self);

/* Makes the report, prints it unless something else is to stand there, and writes it where it is
 * wanted. Returns the exit code of that. */
int job_report(const struct command *command, void *self);

/* ---- rows of options: JOB_LIMITS and JOB_OPTIONS are several, the others have no braces ---- */

#define JOB_DEVICE                                                        \
    "device", 'd', OPTION_DEVICE, "SEL", "the device, as for healcl run", \
        KEPT_IN(struct command_job, selector)
#define EXPAND_OPTION                                                                           \
    "expand", 0, OPTION_WORD, "spec|sdk", "the order of expand's arguments (docs/HEAL-SDK.md)", \
        .take = take_expand
#define PASSES_OPTION                                                   \
    "passes", 0, OPTION_WORD, "LIST|none",                              \
        "only these passes, with commas between them, or none of them", \
        KEPT_IN(struct command_job, limits.passes)
/* --timeout of a command that opens a device: supervise.h. */
enum { TIMEOUT_MAX = 1000000 }; /* seconds */
#define GIVE_UP "give up after S seconds, with exit code 4"
#define TIMEOUT_OPTION(does) \
    "timeout", 0, OPTION_COUNT, "S", does, KEPT_IN(struct command_job, timeout), .most = TIMEOUT_MAX
#define OPS_OPTION                                                                               \
    "ops", 0, OPTION_MANIFESTS, "DIR",                                                           \
        .help =                                                                                  \
            "take operations and kernels from the manifests of a folder (docs/VENDORS.md), and " \
            "native code that they name; repeatable"
#define TRUST_OPTION                     \
    "trust", 0, OPTION_MANIFESTS, "DIR", \
        .help =                          \
            "the same where manifests may name sources elsewhere, and any options of compilers"
#define JSON_OPTION                                                                \
    "json", 0, OPTION_REPORT, "FILE|-",                                            \
        "write it as JSON too, or with - alone on standard output (docs/JSON.md)", \
        KEPT_IN(struct command_job, json)

#define MEMORY_OPTION                                                                     \
    "memory-limit", 0, OPTION_BYTES, "SIZE",                                              \
        "refuse tensors that together take more: bytes, or K, M, G or T of 1024 as 512M " \
        "(docs/MEMORY.md)",                                                               \
        KEPT_IN(struct command_job, limits.memory_bytes)
#define WORK_OPTION                                                     \
    "work-limit", 0, OPTION_BYTES, "N",                                 \
        "refuse an operation that visits more elements; 4T by default", \
        KEPT_IN(struct command_job, limits.work)
#define JOB_LIMITS                  \
    {MEMORY_OPTION}, {WORK_OPTION}, \
    {                               \
        EXPAND_OPTION               \
    }
/* The last ones of most commands. */
#define JOB_OPTIONS                                                         \
    {OPS_OPTION}, {TRUST_OPTION}, {JSON_OPTION}, {TIMEOUT_OPTION(GIVE_UP)}, \
    {                                                                       \
        HELP_OPTION                                                         \
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
