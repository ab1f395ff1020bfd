/* What `healcl check` found. */
#ifndef HEALCL_CLI_CHECK_REPORT_H
#define HEALCL_CLI_CHECK_REPORT_H

#include "cli/report.h"
#include "tools/coverage.h"
#include "tools/example.h"

struct check_failure {
    const struct coverage_row *row;
    struct coverage_cell cell;
    struct healcl_error why;
    struct manifest_kernel kernel; /* that had a part in it; without a name where none had */
};

/* Wrong calls that an alternative of a manifest's kernel had a part in. */
struct check_kernel {
    struct manifest_kernel kernel;
    uint64_t failures;
};

struct check_facts {
    const struct device_info *device;
    const char *self_test_failure; /* NULL: passed */
    const struct coverage_row *rows;
    size_t row_count;
    const struct check_failure *failures; /* some of them, beyond the device or wrong */
    size_t failure_count;
    const struct healcl_operations *operations; /* of manifests, whose kernels served; or NULL */
    const struct check_kernel *kernels;         /* of calls of the table */
    size_t kernel_count;
    const struct example_check *examples; /* of operations of manifests */
    size_t example_count;
};

/* Cells that were checked; combinations of dtypes that are refused as they must be; what is wrong
 * or failed; cells that are beyond the device. */
struct check_totals {
    uint64_t cells, passed, refused, failures, unsupported;
};

/* Those of the table and of examples. */
struct check_totals check_totals_of_all(const struct check_facts *facts);

/* Whether nothing is wrong, and something is right: what is beyond the device is not wrong. */
bool check_is_right(const struct check_facts *facts);

cJSON *report_check(const struct check_facts *facts);

/* While it is made: about the device; for each operation a line, its name and then its counts, once
 * all rows of the operation in facts are filled in. */
void report_check_head(const struct check_facts *facts, const struct style *style);
void report_check_name(enum operation_id operation, const struct style *style);
void report_check_counts(const struct check_facts *facts, enum operation_id operation,
                         const struct style *style);

/* What follows: examples; the first failure of each dtype, a wrong one if there is any,
 * with the command that repeats it; how many calls are right. */
void report_check_text(const cJSON *document, const struct style *style);

/* Of one call alone: its failure, with arguments and their layouts. */
void report_check_call_text(const cJSON *document, const struct style *style);

void report_check_junit(const cJSON *document, FILE *stream);

#endif
