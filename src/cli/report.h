/*
 * What healcl reports. Each command makes a document of JSON (docs/JSON.md), for json_write or
 * cJSON_Delete; report_..._text prints what people read of it.
 */
#ifndef HEALCL_CLI_REPORT_H
#define HEALCL_CLI_REPORT_H

#include <stdio.h>

#include "cli/json.h"
#include "cli/view.h"
#include "core/trace.h"
#include "opencl/device.h"
#include "opencl/self_test.h"
#include "plan/memory.h"
#include "plan/plan.h"
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

/* What staying below a limit of device memory takes, or where there is none what tensors take.
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

/* Of a command that failed. file may be NULL. */
void report_error_json(const char *file, const struct healcl_error *error, bool is_of_driver,
                       FILE *stream);

/* ---- a run ---- */

/* A line about a result that differs, and the place of the segment that computed it. */
struct run_difference {
    char *line;
    size_t segment;
};

struct request_facts; /* cli/requests_report.h */

struct run_facts {
    const char *file;
    const struct plan *plan;
    const struct device_info *device;   /* NULL: the host reference */
    const struct device_tuning *tuning; /* of the device; NULL without one */
    struct roofline roofline;           /* the device's, 0 where it is not known */
    const struct healcl_report *report;
    cJSON *kernels; /* cli/run_kernels_report.h; NULL: they are not reported */
    bool no_verify;
    /* Before the run: finding and opening the device, and reading the transcript. */
    uint64_t open_device_nanoseconds, open_transcript_nanoseconds;
    uint64_t self_test_nanoseconds;    /* of opening the device; 0: it had passed before */
    uint64_t first_result_nanoseconds; /* from the start of the command to the end of the first
                                          repetition, its results compared */
    uint64_t total_nanoseconds;        /* from the start of the command until now */
    const struct run_difference *differences;
    size_t difference_count;
    struct request_facts *steady; /* requests behind the run, each with its time; or NULL */
};

cJSON *report_run(const struct run_facts *facts);

/* verbose: all segments, and the operations by kind with their times. */
void report_run_text(const cJSON *document, const struct style *style, bool verbose);

/* Prints a trace that is finished: docs/TRACE.md. */
void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream);

/* ---- a plan ---- */

/* memory: what staying below a limit of device memory takes; with a limit of 0, which is none, what
 * tensors take. NULL: neither is known. The roofline's rates may be 0. */
cJSON *report_plan(const char *file, const struct plan *plan, const struct memory_facts *memory,
                   const struct roofline *roofline);
void report_plan_text(const cJSON *document, const struct style *style);

/* What passes have made of it: how many steps each has changed, and costs before and after. */
void report_passes_text(const cJSON *document, const struct style *style);

/* The steps that are left after passes, by segment, a line for each: the entries that it does, its
 * kind, its inputs and its output, as views of storages. */
void report_steps(const struct plan *plan, const struct style *style);

/* A transcript that ranks share, and what they have for that. */
struct ranks_facts {
    const struct healcl_transcript *whole, *part; /* part: rank 0's, for no rank has more */
    struct healcl_split split;
    bool is_chosen;           /* by healcl: nobody named an axis */
    struct roofline roofline; /* of each rank's device; 0 where it is not known */
};

/* What is split, whole and exchanged, and what one rank alone and each of them take. */
void report_add_ranks(cJSON *document, const struct ranks_facts *facts);
void report_ranks_text(const cJSON *document, const struct style *style);

/* Along which axis ranks split which upload; what they exchange; which parts of inputs and results
 * rank 0 has. */
void report_add_split(cJSON *object, const struct healcl_transcript *part,
                      const struct healcl_split *split, bool is_chosen);
void report_add_exchanges(cJSON *object, const struct healcl_transcript *part);
void report_add_parts(cJSON *object, const struct healcl_transcript *part);
#define REPORT_SPLIT                                    \
    "entry {entry}, tensor {tensor}, along axis {axis}" \
    "{chosen= (the least memory, work and exchange)}"

/* Which kernels serve the steps on a device, and why not others. */
void report_add_kernels(cJSON *document, const struct plan *plan,
                        const struct healcl_device *device);
void report_kernels_text(const cJSON *document, const struct style *style);

/* ---- devices ---- */

struct self_test_result {
    enum self_test_outcome outcome;
    char reason[SELF_TEST_REASON_SIZE]; /* of a failure, or why it could not run */
};

/* best: index of the one that runs by default, else the count. self_tests, of each; rates, of each,
 * 0 where not measured, or NULL. */
cJSON *report_devices(const struct device_listing *listing, size_t best,
                      const struct self_test_result *self_tests, const struct device_rates *rates);
void report_devices_text(const cJSON *document, const struct style *style);

/* ---- operations ---- */

/* Operations, and the kernels that there are. */
cJSON *report_operations(const struct operation_table *table);
void report_operations_text(const cJSON *document, const struct style *style);

/* ---- healcl itself ---- */

/* The commit that it was built from, with "-dirty" behind it where files had changed since; ""
 * where there was no repository. */
const char *healcl_commit(void);

/* The compiler that built it: "gcc 12.2.0". */
extern const char healcl_compiler[];

/* Prints the versions of healcl and its libraries; the first line is "healcl 0.1.0". */
void report_version(const struct style *style);

#endif
