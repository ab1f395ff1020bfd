/* The value of --json or --junit. It is a file that appears when complete, or standard output,
 * which then contains nothing else. */
#ifndef HEALCL_CLI_REPORT_FILE_H
#define HEALCL_CLI_REPORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/cli.h"
#include "core/new_file.h"

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

/* Prints the error of a command, and writes it to the JSON and JUnit reports. file: the file that
 * the error is about, or NULL. is_of_driver: as in report_add_error. Returns the exit code. */
int report_files_error(struct report_file *json, struct report_file *junit, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose);

/* Removes an incomplete file. */
void report_file_discard(struct report_file *output);

#endif
