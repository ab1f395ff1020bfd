/*
 * Test results as JUnit XML, as CI services read it: testsuites, in them testsuite, in them
 * testcase with failure, error or skipped. What lacks memory on the way is noticed at the end, as
 * with json.h. It is well-formed whatever texts hold.
 */
#ifndef HEALCL_REPORT_JUNIT_H
#define HEALCL_REPORT_JUNIT_H

#include <stdint.h>

#include "report/report.h"

enum junit_outcome {
    JUNIT_PASSED,
    JUNIT_FAILURE, /* a result that is wrong, a time that is too long */
    JUNIT_ERROR,   /* no result: a device that failed, a transcript that is refused */
    JUNIT_SKIPPED,
    JUNIT_OUTCOME_COUNT
};

struct junit_totals {
    uint64_t of[JUNIT_OUTCOME_COUNT], nanoseconds; /* cases that ended so, and their time */
};

/* XML that waits for the totals that stand in front of it. */
struct junit_text {
    FILE *stream;
    char *text;
    size_t size;
};

struct junit {
    const char *name, *suite_name;   /* of the whole, and of the suite that is written */
    struct junit_text suites, cases; /* of the whole; of that suite. cases: no stream without one */
    struct junit_totals all, suite;
    enum junit_outcome outcome; /* of the last case */
    const char *element;        /* that is open in it; NULL: none yet */
    bool in_case, has_lines;    /* the case is open; the element has text */
    bool failed;                /* something had no memory */
};

/* name: of the whole. It and the names of suites live until junit_print. */
void junit_init(struct junit *junit, const char *name);

/* Begins a suite; cases that are added then belong to it. */
void junit_suite(struct junit *junit, const char *name);

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds);

/* How the last case ended, where it did not pass, before any line about it. type: a word; message:
 * one line. */
void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message);

/* Adds a line to what is told of the last case. */
__attribute__((format(printf, 2, 3))) void junit_line(struct junit *junit, const char *format, ...);

/* Prints the whole and frees it. HEALCL_NO_MEMORY, and nothing printed, where memory was lacking.
 */
enum healcl_status junit_print(struct junit *junit, FILE *stream);

/* ---- of the commands ---- */

/* A case for each segment. */
enum healcl_status report_run_junit(const struct run_facts *facts, FILE *stream);

/* Of a command that failed. file may be NULL. */
enum healcl_status report_error_junit(const char *file, const struct healcl_error *error,
                                      FILE *stream);

#endif
