/*
 * Reports of healcl. Each command makes a document of JSON (docs/JSON.md), for json_write or
 * cJSON_Delete; report_..._text prints what people read of it.
 */
#ifndef HEALCL_CLI_REPORT_H
#define HEALCL_CLI_REPORT_H

#include <stdio.h>

#include "cli/json.h"
#include "cli/view.h"
#include "opencl/self_test.h"
#include "plan/memory.h"
#include "tools/measure.h"
#include "tools/roofline.h"

/* ---- parts of documents ---- */

/* A document about a transcript on a device; NULL: the host reference. */
cJSON *report_of(const char *file, const struct device_info *device);

/* Members of a device; how its kernels are tuned; what its self-test said. */
void report_add_device(cJSON *object, const struct device_info *info);
void report_add_tuning(cJSON *object, const struct device_tuning *tuning);
void report_add_self_test(cJSON *object, enum self_test_outcome outcome, const char *failure);

/* Rates that are known. */
void report_add_roofline(cJSON *object, const struct roofline *roofline);

/* Adds the cost of a limit of device memory, or without a limit the memory of tensors.
 * Returns that member. */
cJSON *report_add_memory(cJSON *object, const struct memory_facts *memory);

/* is_of_driver: a driver has ended the process, or hangs. */
void report_add_error(cJSON *document, const struct healcl_error *error, bool is_of_driver);

/* Sums over segments, a row for each kind of operation. The caller frees them. */
cJSON *report_sum_kinds(const cJSON *document);

/* Adds "repeat", a command of a shell: "healcl COMMAND -d 0:1 --ops DIR OPTION" and the operand
 * behind it, with an --ops or --trust for each folder of manifests, which may be NULL. */
void report_add_command(cJSON *object, const char *command, const struct device_info *device,
                        const struct healcl_operations *manifests, const char *option,
                        const char *operand);

/* ---- a run ---- */

/* A line about a result that differs, and the place of the segment that computed it. */
struct run_difference {
    char *line;
    size_t segment;
};

struct request_facts; /* cli/requests.h */

struct run_facts {
    const char *file;
    const struct plan *plan;
    const struct device_info *device;   /* NULL: the host reference */
    const struct device_tuning *tuning; /* of the device; NULL without one */
    struct roofline roofline;           /* the device's, 0 where it is not known */
    struct healcl_report *report;
    cJSON *kernels; /* those of run --kernels; NULL: they are not reported */
    bool no_verify;
    /* Before the run: finding and opening the device, and reading the transcript. */
    uint64_t open_device_nanoseconds, open_transcript_nanoseconds;
    uint64_t self_test_nanoseconds;    /* of opening the device; 0: it had passed before */
    uint64_t first_result_nanoseconds; /* from the start of the command to the end of the first
                                          repetition, its results compared */
    uint64_t total_nanoseconds;        /* from the start of the command until now */
    struct run_difference *differences;
    size_t difference_count;
    struct request_facts *steady; /* requests behind the run, each with its time; or NULL */
};

cJSON *report_run(const struct run_facts *facts);

/* verbose: all segments, and the operations by kind with their times. */
void report_run_text(const cJSON *document, const struct style *style, bool verbose);

/* A list of the kernels of a trace's last repetition: a row for launches that are alike, the
 * slowest first. */
cJSON *report_launches(const struct plan *plan, const struct trace *trace,
                       const struct roofline *roofline, const struct healcl_device *device);

/* Prints a trace that is finished: docs/TRACE.md. */
void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream);

/* ---- JUnit XML, as CI services read it: well-formed whatever texts hold ---- */

enum junit_outcome {
    JUNIT_PASSED,
    JUNIT_FAILURE, /* a result that is wrong, a time that is too long */
    JUNIT_ERROR,   /* no result: a device that failed, a transcript that is refused */
    JUNIT_SKIPPED,
    JUNIT_OUTCOME_COUNT
};

/* Suites of cases, as JSON. */
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
void junit_line(struct junit *junit, const char *text);

/* Prints the whole and frees it. */
void junit_print(struct junit *junit, FILE *stream);

/* A case for each segment. */
void report_run_junit(const struct run_facts *facts, FILE *stream);

/* ---- a transcript that ranks share ---- */

/* Along which axis ranks split which upload; what they exchange; which parts of inputs and results
 * rank 0 has. */
void report_add_split(cJSON *object, const struct healcl_transcript *part,
                      const struct healcl_split *split, bool is_chosen);
void report_add_exchanges(cJSON *object, const struct healcl_transcript *part);
void report_add_parts(cJSON *object, const struct healcl_transcript *part);
#define REPORT_SPLIT                                    \
    "entry {entry}, tensor {tensor}, along axis {axis}" \
    "{chosen= (the least memory, work and exchange)}"

/* ---- healcl itself ---- */

/* The commit that it was built from, with "-dirty" behind it where files had changed since; ""
 * where there was no repository. */
const char *healcl_commit(void);

/* The compiler that built it: "gcc 12.2.0". */
extern const char healcl_compiler[];

#endif
