/* The state that all commands share, and the frame of commands that make one report. */
#ifndef HEALCL_CLI_COMMAND_JOB_H
#define HEALCL_CLI_COMMAND_JOB_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "core/new_file.h"

/* ---- reports ---- */

/* The value of --json or --junit. It is a file that appears when complete, or standard output,
 * which then contains nothing else. */
struct report_file {
    const char *path; /* "-": standard output; NULL: no report */
    bool on_stdout;
    bool is_junit;   /* also for verdict_report_file: JSON is report 0, JUnit 1 */
    int kept_stdout; /* copy, while standard output is redirected; 0: it is not */
    struct new_file file;
};

/* Opens the file. If the report uses standard output, redirects other output there, such as that of
 * drivers, to standard error. */
enum healcl_status report_file_open(struct report_file *output, struct healcl_error *error);

/* The same for a command that opens nothing else; prints the error. Returns the exit code. */
int report_file_begin(struct report_file *output);

/* Returns the stream to write to; NULL if no report is wanted or the file is not open. */
FILE *report_file_stream(struct report_file *output);

/* Ends a report that was written to the stream: makes the file appear, or prints the error. Returns
 * code; or the new exit code if code is EXIT_VERIFIED. */
int report_file_end(struct report_file *output, int code, bool verbose);

/* Writes an error as a report, if a report is wanted. is_of_driver: as in report_add_error. */
void report_file_error(struct report_file *output, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose);

/* Removes an incomplete file. */
void report_file_discard(struct report_file *output);

/* ---- jobs ---- */

/* The state of each command begins with this structure. */
struct command_job {
    char **arguments; /* the command line, with operands last */
    size_t argument_count;
    char **files; /* the operands */
    size_t file_count;
    const char *file;                   /* the operand of the command; NULL: none */
    const char *selector;               /* of the device; NULL: none was given */
    struct healcl_plan_options options; /* includes the operations of manifests */
    struct report_file json, junit;
    bool quiet, verbose;          /* print only errors; print places of errors in the source */
    uint32_t timeout;             /* seconds; 0: none was given */
    bool is_of_driver;            /* a driver caused the error of the command's work */
    struct healcl_device *device; /* closed at the end of the job */
};

/* Opens the reports and runs the command's work while it shows progress. Then prints the result or
 * the error, closes everything, and returns the exit code. */
int job_run(const struct command *command, void *self);

/* Makes the report and prints it, unless standard output is used for another report. Writes it to
 * its files. Returns the exit code. */
int job_report(const struct command *command, void *self);

/* ---- rows of options: JOB_LIMITS and JOB_OPTIONS are several rows, the others are one without
 * braces ---- */

#define JOB_DEVICE                                                              \
    "device", 'd', OPTION_DEVICE, "SEL", KEPT_IN(struct command_job, selector), \
        "the device, selected as for healcl run"
#define EXPAND_OPTION                     \
    "expand", 0, OPTION_WORD, "spec|sdk", \
        .help = "the order of expand's arguments (docs/HEAL-SDK.md)", .take = take_expand
#define PASSES_OPTION                                                                   \
    "passes", 0, OPTION_WORD, "LIST|none", KEPT_IN(struct command_job, options.passes), \
        "apply only these passes, separated by commas; none: no passes"
/* --timeout of a command that opens a device: supervise.h. */
enum { TIMEOUT_MAX = 1000000 }; /* seconds */
#define GIVE_UP "give up after S seconds, with exit code 4"
#define TIMEOUT_OPTION(does) \
    "timeout", 0, OPTION_COUNT, "S", KEPT_IN(struct command_job, timeout), does, .most = TIMEOUT_MAX
#define OPS_OPTION                                                                           \
    "ops", 0, OPTION_MANIFESTS, "DIR",                                                       \
        .help = "use the operations and kernels of a folder's manifests (docs/VENDORS.md), " \
                "and the native code that they name; repeatable"
#define TRUST_OPTION                                                                            \
    "trust", 0, OPTION_MANIFESTS, "DIR",                                                        \
        .help = "like --ops, but these manifests may name sources elsewhere, and any compiler " \
                "options"
#define JSON_OPTION                                                        \
    "json", 0, OPTION_REPORT, "FILE|-", KEPT_IN(struct command_job, json), \
        "also write a report as JSON; with -, print only that (docs/JSON.md)"

#define MEMORY_OPTION                                                                           \
    "memory-limit", 0, OPTION_BYTES, "SIZE", KEPT_IN(struct command_job, options.memory_limit), \
        "refuse tensors that together take more bytes; K, M, G and T are powers of "            \
        "1024, as in 512M (docs/MEMORY.md)"
#define WORK_OPTION                                                                      \
    "work-limit", 0, OPTION_BYTES, "N", KEPT_IN(struct command_job, options.work_limit), \
        "refuse an operation that visits more than N elements; 4T by default"
#define JOB_LIMITS                  \
    {MEMORY_OPTION}, {WORK_OPTION}, \
    {                               \
        EXPAND_OPTION               \
    }
/* The last options of most commands. */
#define JOB_OPTIONS                                                         \
    {OPS_OPTION}, {TRUST_OPTION}, {JSON_OPTION}, {TIMEOUT_OPTION(GIVE_UP)}, \
    {                                                                       \
        HELP_OPTION                                                         \
    }

/* Starts a process that compiles the kernels of a transcript, beginning with the last, if that
 * makes a run faster. The device must be a CPU with several cores that is not tested yet, so that
 * nothing is compiled. *board is an argument of device_open_for_run. Returns an id for
 * process_stop; 0: no process was started. */
int compile_ahead_start(const struct device_info *info, const char *file,
                        struct compile_board **board);

/* The main function of such a process: `healcl compile-ahead SELECTOR -- FILE`, or a builder of
 * device_build_ahead. The command is internal and not listed. Returns only if the arguments are
 * wrong. */
#define COMPILE_AHEAD "compile-ahead"
/* The command for struct device_opening, or NULL if the user wants no such processes. */
const char *compile_ahead_command(void);
int compile_ahead_run(int argc, char **argv);

#endif
