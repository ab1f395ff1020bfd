/* Reports of healcl. Each command makes a JSON document (docs/JSON.md), which json_write or
 * cJSON_Delete frees. report_..._text prints it for people. */
#ifndef HEALCL_CLI_REPORT_H
#define HEALCL_CLI_REPORT_H

#include "cli/json.h"
#include "cli/text.h"
#include "cli/view.h"
#include "opencl/opening.h"
#include "plan/memory.h"
#include "tools/measure.h"
#include "tools/xmalloc.h"

/* ---- parts of documents ---- */

/* Makes a document about a transcript on a device. device: NULL for the host reference. */
cJSON *report_of(const char *file, const struct device_info *device);

/* Add the members of a device, its kernels' tuning, and the result of its self-test. */
void report_add_device(cJSON *object, const struct device_info *info);
void report_add_tuning(cJSON *object, const struct device_tuning *tuning);
void report_add_self_test(cJSON *object, enum self_test_outcome outcome, const char *failure);

/* Adds the known rates. */
void report_add_roofline(cJSON *object, const struct roofline *roofline);

/* Adds the cost of a limit of device memory, or without a limit the memory of tensors. Returns the
 * added member. */
cJSON *report_add_memory(cJSON *object, const struct memory_facts *memory);

/* is_of_driver: a driver ended the process, or hangs. */
void report_add_error(cJSON *document, const struct healcl_error *error, bool is_of_driver);

/* Sums times over segments, in a row for each kind of operation. The caller frees the rows. */
cJSON *report_sum_kinds(const cJSON *document);

/* Adds "repeat", a shell command: "healcl COMMAND -d 0:1 --ops DIR OPTION OPERAND". It has an --ops
 * or --trust for each folder of manifests; manifests may be NULL. */
void report_add_command(cJSON *object, const char *command, const struct device_info *device,
                        const struct healcl_operations *manifests, const char *option,
                        const char *operand);

/* ---- a run ---- */

/* A message about a result that differs, and the index of the segment that computed it. */
struct run_difference {
    const char *line;
    size_t segment;
};

struct request_facts; /* cli/requests.h */

struct run_facts {
    const char *file;
    const struct plan *plan;
    const struct device_info *device;   /* NULL: the host reference */
    const struct device_tuning *tuning; /* of the device; NULL for the reference */
    struct roofline roofline;           /* of the device; 0 if unknown */
    struct healcl_report *report;
    cJSON *kernels; /* for run --kernels; NULL: not reported */
    bool no_verify;
    /* Before the run: the time to find and open the device, and to read the transcript. */
    uint64_t open_device_nanoseconds, open_transcript_nanoseconds;
    uint64_t self_test_nanoseconds; /* part of opening the device; 0: it passed earlier */
    /* From the start of the command to the end of the first repetition, with its results
     * compared. */
    uint64_t first_result_nanoseconds;
    uint64_t total_nanoseconds; /* from the start of the command to this report */
    struct run_difference *differences;
    size_t difference_count;
    struct request_facts *steady; /* timed requests after the run; or NULL */
};

cJSON *report_run(const struct run_facts *facts);

/* verbose: prints all segments, and the operations by kind with their times. */
void report_run_text(const cJSON *document, const struct style *style, bool verbose);

/* Lists the kernels of a trace's last repetition. A row combines similar launches; the slowest
 * comes first. */
cJSON *report_launches(const struct plan *plan, const struct trace *trace,
                       const struct roofline *roofline, const struct healcl_device *device);

/* Prints a complete trace: docs/TRACE.md. */
void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream);

/* ---- JUnit XML for CI services; well-formed for any text ---- */

enum junit_outcome {
    JUNIT_PASSED,
    JUNIT_FAILURE, /* a wrong result, or a time above its limit */
    JUNIT_ERROR,   /* no result: the device failed, or the transcript is refused */
    JUNIT_SKIPPED,
    JUNIT_OUTCOME_COUNT
};

/* Suites of test cases, as JSON. */
struct junit {
    cJSON *top, *suites, *cases, *last;
};

/* name: of the whole report. */
void junit_init(struct junit *junit, const char *name);

/* Begins a suite, to which later cases are added. */
void junit_suite(struct junit *junit, const char *name);

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds);

/* Sets the outcome of the last case, if it did not pass. type: a word; message: one line. */
void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message);

/* Adds a line to the text of the last case. */
void junit_line(struct junit *junit, const char *text);

/* Prints the report and frees it. */
void junit_print(struct junit *junit, FILE *stream);

/* Prints a case for each segment. */
void report_run_junit(const struct run_facts *facts, FILE *stream);

/* ---- healcl check ---- */

/* What --op, JSON and JUnit call the bundled transcripts. */
#define CHECK_TRANSCRIPTS "transcripts"

void report_check_text(const cJSON *document, const struct style *style);

/* Prints the report of a single call. */
void report_check_call_text(const cJSON *document, const struct style *style);

/* command: ignored. */
void report_check_junit(void *command, const cJSON *document, FILE *stream);

/* ---- a transcript split among ranks ---- */

/* Add which upload ranks split along which axis, what ranks exchange, and which parts of inputs and
 * results rank 0 has. */
void report_add_split(cJSON *object, const struct healcl_transcript *part,
                      const struct healcl_split *split, bool is_chosen);
void report_add_exchanges(cJSON *object, const struct healcl_transcript *part);
void report_add_parts(cJSON *object, const struct healcl_transcript *part);
#define REPORT_SPLIT                                    \
    "entry {entry}, tensor {tensor}, along axis {axis}" \
    "{chosen= (the least memory, work and exchange)}"

/* ---- healcl itself ---- */

/* The commit that healcl was built from. "-dirty" is appended if files had changed since. "" if it
 * was not built in a repository. */
const char *healcl_commit(void);

/* The compiler that built healcl: "gcc 12.2.0". */
extern const char healcl_compiler[];

#endif
