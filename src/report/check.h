/* What `healcl check` found. */
#ifndef HEALCL_REPORT_CHECK_H
#define HEALCL_REPORT_CHECK_H

#include "check/coverage.h"
#include "check/example.h"
#include "report/report.h"

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
    const uint64_t *row_nanoseconds;            /* what each row took */
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
struct check_totals check_totals_of(const struct coverage_row *rows, size_t count);

/* The same with the calls of examples. */
struct check_totals check_totals_of_all(const struct check_facts *facts);

/* Whether nothing is wrong, and something is right: what is beyond the device is not wrong. */
bool check_is_right(const struct check_facts *facts);

/* The table: its head; a row for each operation, which has a column for each dtype of its values,
 * in it a mark for each layout; and at the end the first failure of each dtype, a wrong one if
 * there is any, with the command that repeats it. A row is its name and then its marks, once all
 * rows of the operation in facts are filled in. */
void report_check_head(const struct check_facts *facts, const struct style *style);
void report_check_name(const struct check_facts *facts, enum operation_id operation,
                       const struct style *style);
void report_check_marks(const struct check_facts *facts, enum operation_id operation,
                        const struct style *style);
void report_check_end(const struct check_facts *facts, const struct style *style);

enum healcl_status report_check_json(const struct check_facts *facts, FILE *stream);
enum healcl_status report_check_junit(const struct check_facts *facts, FILE *stream);

/* One failure in a few lines. verbose: with the call's arguments and their layouts. */
void report_check_failure(const struct check_failure *failure, const struct check_facts *facts,
                          bool verbose, FILE *stream);

#endif
