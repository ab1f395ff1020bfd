/*
 * What healcl prints, as text for people and as JSON for programs (docs/JSON.md).
 *
 * Functions that print return HEALCL_OK or HEALCL_NO_MEMORY; whether the stream took everything
 * is for the caller to see at its end.
 */
#ifndef HEALCL_REPORT_REPORT_H
#define HEALCL_REPORT_REPORT_H

#include <stdio.h>

#include "bench/measure.h"
#include "bench/roofline.h"
#include "core/trace.h"
#include "device/device.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "programs/self_test.h"

/* Where text goes. */
struct style {
    FILE *stream;
    unsigned width; /* columns of the terminal, 0 where there is none */
    bool colour;
};

/* ---- a run ---- */

/* A line about a result that differs, and the place of the segment that computed it. */
struct run_difference {
    char *line;
    size_t segment;
};

struct request_facts; /* report/requests.h */

struct run_facts {
    const char *file;
    const struct plan *plan;
    const struct device_info *device;   /* NULL: the host reference */
    const struct device_tuning *tuning; /* of the device; NULL without one */
    struct roofline roofline;           /* the device's, 0 where it is not known */
    const struct healcl_report *report;
    const struct kernel_rows *kernels; /* report/run_kernels.h; NULL: they are not told */
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

/* verbose: all segments, and the operations by kind with their times. */
enum healcl_status report_run(const struct run_facts *facts, const struct style *style,
                              bool verbose);
enum healcl_status report_run_json(const struct run_facts *facts, FILE *stream);

/* A trace that is finished: docs/TRACE.md. */
void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream);

/* Of a command that failed. file may be NULL. is_of_driver: that has ended the process, or hangs.
 */
enum healcl_status report_error_json(const char *file, const struct healcl_error *error,
                                     bool is_of_driver, FILE *stream);

/* ---- a plan ---- */

/* memory: what staying below a limit of device memory takes; with a limit of 0, which is none, what
 * tensors take. NULL: neither is told. */
enum healcl_status report_plan(const char *file, const struct plan *plan,
                               const struct memory_facts *memory, const struct style *style);

/* What passes have made of a plan: a line for each, and what segments cost before and after them.
 * Times are those that a roofline allows, if its rates are known. */
enum healcl_status report_passes(const struct plan *plan, const struct roofline *roofline,
                                 const struct style *style);

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
enum healcl_status report_ranks(const struct ranks_facts *facts, const struct style *style);

/* device: NULL, or one whose kernels for the steps are told too. ranks may be NULL. */
enum healcl_status report_plan_json(const char *file, const struct plan *plan,
                                    const struct memory_facts *memory,
                                    const struct healcl_device *device,
                                    const struct roofline *roofline,
                                    const struct ranks_facts *ranks, FILE *stream);

/* docs/KERNELS.md */
void report_kernels_markdown(FILE *stream);

/* The tables of docs/PORTING.md about the environment and tunables. */
void report_porting_markdown(FILE *stream);

/* Which kernels serve the steps on a device, and why not others. */
enum healcl_status report_kernels(const struct plan *plan, const struct healcl_device *device,
                                  const struct style *style);

/* ---- devices ---- */

struct self_test_result {
    enum self_test_outcome outcome;
    char reason[SELF_TEST_REASON_SIZE]; /* of a failure, or why it could not run */
};

struct devices_facts {
    const struct device_info *list;
    const struct self_test_result *self_tests; /* of each that can be used */
    size_t count;
    size_t best;                         /* index of the one that runs by default, else count */
    const struct device_rates *rates;    /* of each, 0 where not measured; or NULL */
    const struct platform_fault *faults; /* platforms that cannot be asked */
    size_t fault_count;
    const struct healcl_error *error; /* why there is none to choose, or NULL */
    bool is_of_driver;                /* the error: as of report_error_json */
};

enum healcl_status report_devices(const struct devices_facts *facts, const struct style *style);
enum healcl_status report_devices_json(const struct devices_facts *facts, FILE *stream);

/* ---- operations ---- */

void report_operations(const struct operation_table *table, const struct style *style);
enum healcl_status report_operations_json(const struct operation_table *table, FILE *stream);

/* docs/OPS.md */
void report_operations_markdown(FILE *stream);

/* ---- healcl itself ---- */

/* The commit that it was built from, with "-dirty" behind it where files had changed since; ""
 * where there was no repository. */
const char *healcl_commit(void);

/* The compiler that built it: "gcc 12.2.0". */
extern const char healcl_compiler[];

/* Its first line is "healcl 0.1.0". */
void report_version(const struct style *style);

#endif
