/* What `healcl check` found as JUnit XML: a case for each form of an operation with its dtypes. */
#include <inttypes.h>
#include <string.h>

#include "report/check.h"
#include "report/junit.h"

static const char *operation_of(const struct coverage_row *row)
{
    return row->form->operation->name;
}

/* The first kept failure of a row that is no limit of the device, or NULL. */
static const struct check_failure *worst_of(const struct check_facts *facts,
                                            const struct coverage_row *row)
{
    for (size_t i = 0; i < facts->failure_count; i++)
        if (facts->failures[i].row == row && facts->failures[i].why.status != HEALCL_REFUSED)
            return &facts->failures[i];
    return NULL;
}

static void put_failures(struct junit *junit, const struct check_facts *facts,
                         const struct coverage_row *row)
{
    for (size_t i = 0; i < facts->failure_count; i++) {
        const struct check_failure *failure = &facts->failures[i];
        char cell[COVERAGE_CELL_SIZE];
        if (failure->row != row)
            continue;
        junit_line(junit, "n %" PRId64 ", k %" PRId64 ", %s: %s", failure->cell.size.n,
                   failure->cell.size.k,
                   failure->cell.arrangement < ARRANGEMENT_COUNT
                       ? arrangement_name(failure->cell.arrangement)
                       : "any layout",
                   failure->why.message);
        junit_line(junit, "  healcl check -d %u:%u%s --case %s", facts->device->platform_index,
                   facts->device->device_index, row->table ? " --ops DIR" : "",
                   coverage_cell_text(&failure->cell, cell));
    }
}

static void put_row(struct junit *junit, const struct check_facts *facts, size_t index)
{
    const struct coverage_row *row = &facts->rows[index];
    const struct check_totals totals = check_totals_of(row, 1);
    char name[256], dtypes[COVERAGE_DTYPES_SIZE], text[96];
    /* Forms share names; the number is the one that --case begins with. */
    snprintf(name, sizeof name, "%s, %s (case %" PRIu32 ")", row->form->name,
             coverage_dtypes_text(row, dtypes), row->number);
    junit_case(junit, name, facts->row_nanoseconds[index]);
    if (totals.failures > 0) {
        const struct check_failure *worst = worst_of(facts, row);
        snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " calls are not right",
                 totals.failures, totals.cells);
        junit_outcome(junit, JUNIT_FAILURE, "wrong", worst ? worst->why.message : text);
        put_failures(junit, facts, row);
    } else if (totals.cells > 0 && totals.unsupported == totals.cells) {
        junit_outcome(junit, JUNIT_SKIPPED, "beyond the device",
                      "all calls are beyond this device");
        put_failures(junit, facts, row);
    } else if (row->refused) {
        junit_line(junit, "these dtypes are refused, as they must be");
    } else if (totals.cells == 0) {
        junit_outcome(junit, JUNIT_SKIPPED, "no layout", "no layout is for this operation");
    } else {
        junit_line(junit, "%" PRIu64 " calls are right, %" PRIu64 " are beyond this device",
                   totals.passed, totals.unsupported);
    }
}

static void put_example(struct junit *junit, const struct example_check *check)
{
    junit_suite(junit, check->operation->name);
    junit_case(junit, "examples", check->nanoseconds);
    if (!example_is_right(check))
        junit_outcome(junit, JUNIT_FAILURE, "wrong", check->why.message);
    else if (check->unchecked)
        junit_outcome(junit, JUNIT_SKIPPED, "not checked", check->unchecked);
    else if (check->of[EXAMPLE_KERNEL].passed + check->of[EXAMPLE_BODY].passed == 0)
        junit_outcome(junit, JUNIT_SKIPPED, "beyond the device",
                      "all calls are beyond this device");
    for (int side = 0; side < EXAMPLE_SIDES; side++)
        junit_line(junit, "its %s: %" PRIu32 " of %" PRIu32 " calls are right",
                   example_side_name((enum example_side)side), check->of[side].passed,
                   check->of[side].calls);
}

enum healcl_status report_check_junit(const struct check_facts *facts, FILE *stream)
{
    struct junit junit;
    char name[sizeof facts->device->name + 32];
    snprintf(name, sizeof name, "healcl check of %s", facts->device->name);
    junit_init(&junit, name);
    junit_suite(&junit, "self-test");
    junit_case(&junit, "self-test", 0);
    if (facts->self_test_failure)
        junit_outcome(&junit, JUNIT_FAILURE, "wrong", facts->self_test_failure);
    for (size_t i = 0; i < facts->row_count; i++) {
        const char *operation = operation_of(&facts->rows[i]);
        if (i == 0 || strcmp(operation, operation_of(&facts->rows[i - 1])) != 0)
            junit_suite(&junit, operation);
        put_row(&junit, facts, i);
    }
    for (size_t i = 0; i < facts->example_count; i++)
        put_example(&junit, &facts->examples[i]);
    return junit_print(&junit, stream);
}
