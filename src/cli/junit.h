/*
 * Test results as JUnit XML, as CI services read it: testsuites, in them testsuite, in them
 * testcase with failure, error or skipped. It is well-formed whatever texts hold.
 */
#ifndef HEALCL_CLI_JUNIT_H
#define HEALCL_CLI_JUNIT_H

#include <stdint.h>

#include "cli/report.h"

enum junit_outcome {
    JUNIT_PASSED,
    JUNIT_FAILURE, /* a result that is wrong, a time that is too long */
    JUNIT_ERROR,   /* no result: a device that failed, a transcript that is refused */
    JUNIT_SKIPPED,
    JUNIT_OUTCOME_COUNT
};

/* What is added, as JSON: suites of cases. */
struct junit {
    cJSON *top, *suites, *cases, *last;
};

/* name: of the whole. */
void junit_init(struct junit *junit, const char *name);

/* Begins a suite; cases that are added then belong to it. */
void junit_suite(struct junit *junit, const char *name);

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds);

/* How the last case ended, where it did not pass. type: a word; message: one line. */
void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message);

/* Adds a line to the text of the last case. */
__attribute__((format(printf, 2, 3))) void junit_line(struct junit *junit, const char *format, ...);

/* Prints the whole and frees it. */
void junit_print(struct junit *junit, FILE *stream);

/* ---- of the commands ---- */

/* A case for each segment. */
void report_run_junit(const struct run_facts *facts, FILE *stream);

/* Of a command that failed. file may be NULL. */
void report_error_junit(const char *file, const struct healcl_error *error, FILE *stream);

#endif
