/* The option --json of a command: a file that appears when it is whole, or standard output, which
 * then holds nothing else. */
#ifndef HEALCL_CLI_JSON_OUTPUT_H
#define HEALCL_CLI_JSON_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "run/new_file.h"

struct json_output {
    const char *path; /* NULL: none is wanted */
    bool on_stdout;
    int kept_stdout; /* while drivers' output goes to standard error; 0: it does not */
    struct new_file file;
};

/* path: the option's, "-" for standard output. */
void json_output_set(struct json_output *output, const char *path);

/* Opens the file, if it is to be one. What drivers print on standard output from here on goes to
 * standard error where the JSON goes to standard output. */
MUST_CHECK enum healcl_status json_output_open(struct json_output *output,
                                               struct healcl_error *error);

/* Where to write; NULL where nothing is wanted, or the file has not been opened. */
FILE *json_output_stream(struct json_output *output);

/* Ends what a printer of report.h has written to the stream: lets the file appear, or says why it
 * cannot. Returns the exit code. */
int json_output_end(struct json_output *output, enum healcl_status written, bool verbose);

/* For a command that failed: prints the error, and writes it where its JSON was to be. file: what
 * it is about, or NULL. Returns the exit code. */
int json_output_error(struct json_output *output, const char *file,
                      const struct healcl_error *error, bool verbose);

/* Nothing is left of a file that has not appeared. */
void json_output_discard(struct json_output *output);

#endif
