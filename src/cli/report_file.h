/* The value of --json or --junit: a file that appears when it is whole, or standard output, which
 * then holds nothing else. */
#ifndef HEALCL_CLI_REPORT_FILE_H
#define HEALCL_CLI_REPORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/cli.h"
#include "core/new_file.h"

struct report_file {
    const char *path; /* "-": standard output; NULL: none is wanted */
    bool on_stdout;
    bool is_junit;   /* for verdict_report_file too: JSON is report 0, JUnit 1 */
    int kept_stdout; /* while drivers' output goes to standard error; 0: it does not */
    struct new_file file;
};

/* Opens the file, if it is to be one. What drivers print on standard output from here on goes to
 * standard error where the report goes to standard output. */
enum healcl_status report_file_open(struct report_file *output, struct healcl_error *error);

/* For a command that opens nothing else: the same, and says why it cannot. Returns the exit code.
 */
int report_file_begin(struct report_file *output);

/* Where to write; NULL where nothing is wanted, or the file has not been opened. */
FILE *report_file_stream(struct report_file *output);

/* Ends what a printer of report.h has written to the stream: lets the file appear, or says why it
 * cannot. Returns code, or where that is EXIT_VERIFIED what this comes to. */
int report_file_end(struct report_file *output, int code, bool verbose);

/* Writes an error where a report is wanted. is_of_driver: as of report_add_error. */
void report_file_error(struct report_file *output, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose);

/* For a command that failed: prints the error, and writes it where its JSON, and its JUnit XML,
 * were to be. file: what the error is about, or NULL. is_of_driver: as of report_add_error. Returns
 * the exit code. */
int report_files_error(struct report_file *json, struct report_file *junit, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose);

/* Nothing is left of a file that has not appeared. */
void report_file_discard(struct report_file *output);

#endif
