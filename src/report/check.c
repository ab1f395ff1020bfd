#include "report/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/members.h"

static const char *operation_of(const struct coverage_row *row)
{
    return row->form->operation->name;
}

/* ---------------------------------------------------------------- totals */

static void add_counts(struct check_totals *totals, const struct check_counts *counts)
{
    totals->cells += counts->calls;
    totals->passed += counts->passed;
    totals->unsupported += counts->unsupported;
    totals->failures += counts->calls - counts->passed - counts->unsupported;
}

/* Failures of a row may also be dtypes that were not refused: it has no calls then. */
static void add(struct check_totals *totals, const struct coverage_row *row)
{
    const uint64_t calls = totals->cells;
    for (int i = 0; i < ARRANGEMENT_COUNT; i++)
        add_counts(totals, &row->cells[i]);
    totals->refused += row->refused;
    totals->failures += calls == totals->cells ? (uint64_t)row->failures : 0;
}

struct check_totals check_totals_of(const struct coverage_row *rows, size_t count)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < count; i++)
        add(&totals, &rows[i]);
    return totals;
}

struct check_totals check_totals_of_all(const struct check_facts *facts)
{
    struct check_totals totals = check_totals_of(facts->rows, facts->row_count);
    for (size_t i = 0; i < facts->example_count; i++)
        for (int side = 0; side < EXAMPLE_SIDES; side++)
            add_counts(&totals, &facts->examples[i].of[side]);
    return totals;
}

bool check_is_right(const struct check_facts *facts)
{
    const struct check_totals totals = check_totals_of_all(facts);
    return totals.failures == 0 && !facts->self_test_failure && totals.cells + totals.refused > 0;
}

/* ---------------------------------------------------------------- text */

/* A mark for each layout, in the order of enum arrangement. */
enum { RIGHT = '+', WRONG = 'X', UNSUPPORTED = 'u', INAPPLICABLE = '.' };

/* The rows of an operation with values of that dtype, or with DTYPE_COUNT of any. */
static struct check_totals totals_of(const struct check_facts *facts, enum operation_id operation,
                                     int dtype)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < facts->row_count; i++)
        if (form_id(facts->rows[i].form) == operation &&
            (dtype == DTYPE_COUNT || (int)facts->rows[i].dtypes.value == dtype))
            add(&totals, &facts->rows[i]);
    return totals;
}

static char mark_of(const struct check_facts *facts, enum operation_id operation, int dtype,
                    int layout)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < facts->row_count; i++) {
        const struct coverage_row *row = &facts->rows[i];
        if (form_id(row->form) == operation && (int)row->dtypes.value == dtype)
            add_counts(&totals, &row->cells[layout]);
    }
    return totals.cells == 0               ? INAPPLICABLE
           : totals.failures > 0           ? WRONG
           : totals.passed == totals.cells ? RIGHT
                                           : UNSUPPORTED;
}

/* Prints a cell of the table in its column. */
static void print_cell(const struct style *style, const char *text)
{
    fprintf(style->stream, "  %-*s", ARRANGEMENT_COUNT, text);
}

static void print_marks(const struct check_facts *facts, enum operation_id operation, int dtype,
                        const struct style *style)
{
    const struct check_totals totals = totals_of(facts, operation, dtype);
    char marks[ARRANGEMENT_COUNT + 1] = "";
    for (int layout = 0; layout < ARRANGEMENT_COUNT; layout++)
        marks[layout] = mark_of(facts, operation, dtype, layout);
    print_cell(style, totals.cells > 0 ? marks : totals.failures > 0 ? "FAILED" : "refused");
}

/* Of the first column. */
static int name_width(const struct check_facts *facts)
{
    size_t width = strlen("operation");
    for (size_t i = 0; i < facts->row_count; i++) {
        size_t length = strlen(operation_of(&facts->rows[i]));
        width = length > width ? length : width;
    }
    return (int)width;
}

void report_check_head(const struct check_facts *facts, const struct style *style)
{
    char numbers[ARRANGEMENT_COUNT + 1] = "";
    for (int layout = 0; layout < ARRANGEMENT_COUNT; layout++)
        numbers[layout] = (char)('1' + layout);
    report_label(style, "device", "%s", facts->device->name);
    report_label(style, "driver", "%s, %s", facts->device->platform, facts->device->driver);
    report_label(style, "self-test", "%s",
                 facts->self_test_failure ? facts->self_test_failure : "passed");
    if (facts->row_count == 0)
        return;
    fprintf(style->stream, "\n%-*s", name_width(facts), "operation");
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        print_cell(style, dtype_name((enum dtype)dtype));
    fprintf(style->stream, "  right\n%-*s", name_width(facts), "  layout");
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        print_cell(style, numbers);
    putc('\n', style->stream);
}

void report_check_name(const struct check_facts *facts, enum operation_id operation,
                       const struct style *style)
{
    fprintf(style->stream, "%-*s", name_width(facts), operations[operation].name);
}

void report_check_marks(const struct check_facts *facts, enum operation_id operation,
                        const struct style *style)
{
    const struct check_totals totals = totals_of(facts, operation, DTYPE_COUNT);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        print_marks(facts, operation, dtype, style);
    fprintf(style->stream, "  %" PRIu64 "/%" PRIu64 "\n", totals.passed, totals.cells);
}

static void print_legend(const struct style *style)
{
    fputs("\nlayouts: ", style->stream);
    for (int layout = 0; layout < ARRANGEMENT_COUNT; layout++)
        fprintf(style->stream, "%s%d %s",
                layout == 0       ? ""
                : layout % 4 == 0 ? ",\n         "
                                  : ", ",
                layout + 1, arrangement_name((enum arrangement)layout));
    fprintf(style->stream,
            "\n%c right, %c wrong or failed, %c beyond this device, %c not for this operation\n",
            RIGHT, WRONG, UNSUPPORTED, INAPPLICABLE);
}

/* The command that repeats a call, or with failure NULL those of an operation of a manifest. */
static void print_command(const struct check_facts *facts, const struct check_failure *failure,
                          const char *operation, FILE *stream)
{
    char cell[COVERAGE_CELL_SIZE];
    fprintf(stream, "healcl check -d %u:%u", facts->device->platform_index,
            facts->device->device_index);
    report_folders(facts->operations, stream);
    if (failure)
        fprintf(stream, " --case %s", coverage_cell_text(&failure->cell, cell));
    else
        fprintf(stream, " --op %s", operation);
}

void report_check_failure(const struct check_failure *failure, const struct check_facts *facts,
                          bool verbose, FILE *stream)
{
    char dtypes[COVERAGE_DTYPES_SIZE];
    const char *layout = failure->cell.arrangement < ARRANGEMENT_COUNT
                             ? arrangement_name(failure->cell.arrangement)
                             : "any layout";
    fprintf(stream, "%s, %s, n %" PRId64 ", k %" PRId64 ", %s: %s\n", failure->row->form->name,
            coverage_dtypes_text(failure->row, dtypes), failure->cell.size.n, failure->cell.size.k,
            layout, failure->why.message);
    if (failure->kernel.name)
        fprintf(stream, "  with the kernel %s, of %s\n", failure->kernel.name,
                failure->kernel.file);
    if (verbose && failure->why.detail) {
        fprintf(stream, "%s", failure->why.detail);
        return;
    }
    fputs("  ", stream);
    print_command(facts, failure, NULL, stream);
    putc('\n', stream);
}

static bool is_beyond_device(const struct check_failure *failure)
{
    return failure->why.status == HEALCL_REFUSED;
}

/* Whether another failure of the same cell of the table goes before: what is wrong before what is
 * beyond the device, then an earlier one. */
static bool is_told(const struct check_facts *facts, size_t index)
{
    const struct check_failure *failure = &facts->failures[index];
    for (size_t i = 0; i < facts->failure_count; i++) {
        const struct check_failure *other = &facts->failures[i];
        bool as_bad = is_beyond_device(other) == is_beyond_device(failure);
        if (other->row->form->operation == failure->row->form->operation &&
            other->row->dtypes.value == failure->row->dtypes.value &&
            (as_bad ? i < index : is_beyond_device(failure)))
            return true;
    }
    return false;
}

/* Calls that kernels of manifests had a part in. */
static uint64_t count_replaced(const struct check_facts *facts)
{
    uint64_t count = 0;
    for (size_t i = 0; i < facts->row_count; i++)
        count += (uint64_t)facts->rows[i].replaced;
    return count;
}

static void print_side(const struct example_check *check, enum example_side side, FILE *stream)
{
    if (check->of[side].calls > 0)
        fprintf(stream, "  %s %" PRIu32 "/%" PRIu32, example_side_name(side),
                check->of[side].passed, check->of[side].calls);
    else if (!check->unchecked)
        fprintf(stream, "  no kernel%s",
                example_vendor(check->operation)->kernel_count > 0 ? " for this device" : "");
}

/* Operations of manifests. */
static void print_examples(const struct check_facts *facts, const struct style *style)
{
    int width = 0;
    for (size_t i = 0; i < facts->example_count; i++) {
        int length = (int)strlen(facts->examples[i].operation->name);
        width = length > width ? length : width;
    }
    if (facts->example_count > 0)
        fputs("\noperations of manifests, right of the calls derived from examples/\n",
              style->stream);
    for (size_t i = 0; i < facts->example_count; i++) {
        const struct example_check *check = &facts->examples[i];
        fprintf(style->stream, "%-*s", width, check->operation->name);
        for (int side = 0; side < EXAMPLE_SIDES; side++)
            print_side(check, (enum example_side)side, style->stream);
        if (check->unchecked)
            fprintf(style->stream, "  not checked: %s", check->unchecked);
        putc('\n', style->stream);
    }
    if (facts->operations && facts->row_count > 0)
        fprintf(style->stream,
                "\nkernels of manifests had a part in %" PRIu64 " calls of the table\n",
                count_replaced(facts));
}

static uint32_t count_unchecked(const struct check_facts *facts)
{
    uint32_t count = 0;
    for (size_t i = 0; i < facts->example_count; i++)
        count += facts->examples[i].unchecked != NULL;
    return count;
}

static void print_example_failure(const struct check_facts *facts,
                                  const struct example_check *check, FILE *stream)
{
    fprintf(stream, "%s, %s\n%s", check->operation->name, check->why.message,
            check->why.detail ? check->why.detail : ""); /* a compiler's log */
    if (check->kernel.name)
        fprintf(stream, "  with the kernel %s, of %s\n", check->kernel.name, check->kernel.file);
    fputs("  ", stream);
    print_command(facts, NULL, check->operation->name, stream);
    putc('\n', stream);
}

/* The wrong calls of each kernel of a manifest. */
static void print_kernels(const struct check_facts *facts, FILE *stream)
{
    for (size_t i = 0; i < facts->kernel_count; i++)
        fprintf(stream, "%s, of %s: %" PRIu64 " wrong calls of the table\n",
                facts->kernels[i].kernel.name, facts->kernels[i].kernel.file,
                facts->kernels[i].failures);
}

void report_check_end(const struct check_facts *facts, const struct style *style)
{
    const struct check_totals totals = check_totals_of_all(facts);
    const uint32_t unchecked = count_unchecked(facts);
    if (facts->row_count > 0)
        print_legend(style);
    print_examples(facts, style);
    putc('\n', style->stream);
    for (size_t i = 0; i < facts->example_count; i++) {
        if (facts->examples[i].why.status != HEALCL_OK)
            print_example_failure(facts, &facts->examples[i], style->stream);
    }
    for (size_t i = 0; i < facts->failure_count; i++)
        if (!is_told(facts, i))
            report_check_failure(&facts->failures[i], facts, false, style->stream);
    print_kernels(facts, style->stream);
    if (totals.failures > 0)
        fprintf(style->stream, "FAILED: %" PRIu64 " of %" PRIu64 " calls", totals.failures,
                totals.cells);
    else if (totals.cells + totals.refused == 0)
        fputs("nothing is checked", style->stream);
    else
        fprintf(style->stream, "%s %" PRIu64 " calls are right",
                totals.unsupported > 0 ? "the other" : "all", totals.passed);
    if (totals.unsupported > 0)
        fprintf(style->stream, "; %" PRIu64 " are beyond this device", totals.unsupported);
    if (totals.refused > 0)
        fprintf(style->stream, "; %" PRIu64 " combinations of dtypes are refused as they must be",
                totals.refused);
    if (unchecked > 0)
        fprintf(style->stream, "; %" PRIu32 " operation%s not checked", unchecked,
                unchecked > 1 ? "s are" : " is");
    putc('\n', style->stream);
}

/* ---------------------------------------------------------------- JSON */

static void add_members(struct json *json, cJSON *object, const struct check_counts *counts)
{
    json_number(json, object, "calls", counts->calls);
    json_number(json, object, "passed", counts->passed);
    json_number(json, object, "unsupported", counts->unsupported);
}

static void add_row(struct json *json, cJSON *object, const struct coverage_row *row)
{
    char dtypes[COVERAGE_DTYPES_SIZE];
    json_string(json, object, "op", operation_of(row));
    json_string(json, object, "form", row->form->name);
    json_string(json, object, "dtypes", coverage_dtypes_text(row, dtypes));
    json_bool(json, object, "refused", row->refused);
    if (row->table)
        json_number(json, object, "by_manifests", (uint64_t)row->replaced);
    cJSON *layouts = json_object(json, object, "layouts");
    for (int i = 0; i < ARRANGEMENT_COUNT; i++)
        if (row->cells[i].calls > 0)
            add_members(json, json_object(json, layouts, arrangement_name((enum arrangement)i)),
                        &row->cells[i]);
}

/* What was not right, with the command that repeats it. */
static void add_why(struct json *json, cJSON *object, const struct check_facts *facts,
                    const struct check_failure *failure, const char *operation,
                    const struct healcl_error *why)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = why->status == HEALCL_OK ? NULL : open_memstream(&text, &bytes);
    if (stream) {
        print_command(facts, failure, operation, stream);
        if (fclose(stream) == 0)
            json_string(json, object, "repeat", text);
        json_string(json, object, "message", why->message);
    }
    if (why->detail)
        json_string(json, object, "detail", why->detail);
    free(text);
}

static void add_kernel(struct json *json, cJSON *object, const struct manifest_kernel *kernel)
{
    if (!kernel->name)
        return;
    json_string(json, object, "name", kernel->name);
    json_string(json, object, "manifest", kernel->file);
}

static void add_kernels(struct json *json, const struct check_facts *facts)
{
    cJSON *kernels = facts->operations ? json_array(json, json->top, "kernels") : NULL;
    for (size_t i = 0; i < facts->kernel_count; i++) {
        cJSON *object = json_object(json, kernels, NULL);
        add_kernel(json, object, &facts->kernels[i].kernel);
        json_number(json, object, "failed", facts->kernels[i].failures);
    }
}

static void add_failure(struct json *json, cJSON *object, const struct check_facts *facts,
                        const struct check_failure *failure)
{
    char cell[COVERAGE_CELL_SIZE], dtypes[COVERAGE_DTYPES_SIZE];
    json_string(json, object, "op", operation_of(failure->row));
    json_string(json, object, "form", failure->row->form->name);
    json_string(json, object, "dtypes", coverage_dtypes_text(failure->row, dtypes));
    json_number(json, object, "n", (uint64_t)failure->cell.size.n);
    json_number(json, object, "k", (uint64_t)failure->cell.size.k);
    json_string(json, object, "case", coverage_cell_text(&failure->cell, cell));
    json_bool(json, object, "unsupported", is_beyond_device(failure));
    if (failure->kernel.name)
        add_kernel(json, json_object(json, object, "kernel"), &failure->kernel);
    add_why(json, object, facts, failure, NULL, &failure->why);
}

static void add_example(struct json *json, cJSON *object, const struct check_facts *facts,
                        const struct example_check *check)
{
    json_string(json, object, "op", check->operation->name);
    json_bool(json, object, "checked", !check->unchecked);
    if (check->unchecked)
        json_string(json, object, "not_checked", check->unchecked);
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        cJSON *calls = json_object(json, object, example_side_name((enum example_side)side));
        if (side == EXAMPLE_KERNEL)
            add_kernel(json, calls, &check->kernel);
        add_members(json, calls, &check->of[side]);
    }
    add_why(json, object, facts, NULL, check->operation->name, &check->why);
}

enum healcl_status report_check_json(const struct check_facts *facts, FILE *stream)
{
    struct json json;
    const struct check_totals totals = check_totals_of_all(facts);
    json_begin(&json, healcl_version());
    report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    report_self_test(&json, json.top,
                     facts->self_test_failure ? SELF_TEST_FAILED : SELF_TEST_PASSED,
                     facts->self_test_failure);
    json_bool(&json, json.top, "verified", check_is_right(facts));
    json_number(&json, json.top, "calls", totals.cells);
    json_number(&json, json.top, "failed", totals.failures);
    json_number(&json, json.top, "unsupported", totals.unsupported);
    cJSON *rows = json_array(&json, json.top, "rows");
    for (size_t i = 0; i < facts->row_count; i++)
        add_row(&json, json_object(&json, rows, NULL), &facts->rows[i]);
    cJSON *examples = facts->operations ? json_array(&json, json.top, "examples") : NULL;
    for (size_t i = 0; i < facts->example_count; i++)
        add_example(&json, json_object(&json, examples, NULL), facts, &facts->examples[i]);
    add_kernels(&json, facts);
    cJSON *failures = json_array(&json, json.top, "failures");
    for (size_t i = 0; i < facts->failure_count; i++)
        add_failure(&json, json_object(&json, failures, NULL), facts, &facts->failures[i]);
    return json_print(&json, stream);
}
