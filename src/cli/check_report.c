#include "cli/check_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/junit.h"

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

struct check_totals check_totals_of_all(const struct check_facts *facts)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < facts->row_count; i++)
        add(&totals, &facts->rows[i]);
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

/* ---------------------------------------------------------------- JSON */

static void add_members(cJSON *object, const struct check_counts *counts)
{
    JSON_ADD(object, NUMBER("calls", counts->calls), NUMBER("passed", counts->passed),
             NUMBER("unsupported", counts->unsupported),
             NUMBER("failed", counts->calls - counts->passed - counts->unsupported));
}

static void add_row(cJSON *object, const struct coverage_row *row)
{
    char dtypes[COVERAGE_DTYPES_SIZE];
    struct check_totals totals = {0};
    add(&totals, row);
    JSON_ADD(object, STRING("op", operation_of(row)), STRING("form", row->form->name),
             STRING("dtypes", coverage_dtypes_text(row, dtypes)), NUMBER("case", row->number),
             FLAG("refused", row->refused), NUMBER("calls", totals.cells),
             NUMBER("passed", totals.passed), NUMBER("unsupported", totals.unsupported),
             NUMBER("failed", totals.failures), NUMBER("ns", row->nanoseconds));
    if (row->table)
        json_add_number(object, "by_manifests", (uint64_t)row->replaced);
    cJSON *layouts = json_add_object(object, "layouts");
    for (int i = 0; i < ARRANGEMENT_COUNT; i++)
        if (row->cells[i].calls > 0)
            add_members(json_add_object(layouts, arrangement_name((enum arrangement)i)),
                        &row->cells[i]);
}

/* What was not right, with the command that repeats it. */
static void add_why(cJSON *object, const struct check_facts *facts, const char *option,
                    const char *operand, const struct healcl_error *why)
{
    if (why->status == HEALCL_OK)
        return;
    report_add_command(object, "check", facts->device, facts->operations, option, operand);
    json_add_string(object, "message", why->message);
    if (why->detail)
        json_add_string(object, "detail", why->detail);
}

static void add_kernel(cJSON *object, const struct manifest_kernel *kernel)
{
    if (!kernel->name)
        return;
    JSON_ADD(object, STRING("name", kernel->name), STRING("manifest", kernel->file));
}

static void add_failure(cJSON *object, const struct check_facts *facts,
                        const struct check_failure *failure)
{
    char cell[COVERAGE_CELL_SIZE], dtypes[COVERAGE_DTYPES_SIZE];
    const struct coverage_row *row = failure->row;
    const enum arrangement layout = failure->cell.arrangement;
    JSON_ADD(object, STRING("op", operation_of(row)), STRING("form", row->form->name),
             STRING("dtypes", coverage_dtypes_text(row, dtypes)),
             STRING("dtype", dtype_name(row->dtypes.value)),
             NUMBER("n", (uint64_t)failure->cell.size.n),
             NUMBER("k", (uint64_t)failure->cell.size.k),
             STRING("layout", layout < ARRANGEMENT_COUNT ? arrangement_name(layout) : "any layout"),
             STRING("case", coverage_cell_text(&failure->cell, cell)),
             FLAG("unsupported", failure->why.status == HEALCL_REFUSED));
    if (failure->kernel.name)
        add_kernel(json_add_object(object, "kernel"), &failure->kernel);
    add_why(object, facts, "--case ", cell, &failure->why);
}

static void add_example(cJSON *object, const struct check_facts *facts,
                        const struct example_check *check)
{
    JSON_ADD(object, STRING("op", check->operation->name), FLAG("checked", !check->unchecked));
    if (check->unchecked)
        json_add_string(object, "not_checked", check->unchecked);
    json_add_number(object, "ns", check->nanoseconds);
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        cJSON *calls = json_add_object(object, example_side_names[side]);
        if (side == EXAMPLE_KERNEL)
            add_kernel(calls, &check->kernel);
        add_members(calls, &check->of[side]);
    }
    add_why(object, facts, "--op ", check->operation->name, &check->why);
}

cJSON *report_check(const struct check_facts *facts)
{
    uint64_t unchecked = 0;
    for (size_t i = 0; i < facts->example_count; i++)
        unchecked += facts->examples[i].unchecked != NULL;
    const struct check_totals totals = check_totals_of_all(facts);
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), facts->device);
    report_add_self_test(document, facts->self_test_failure ? SELF_TEST_FAILED : SELF_TEST_PASSED,
                         facts->self_test_failure);
    JSON_ADD(document, FLAG("verified", check_is_right(facts)), NUMBER("calls", totals.cells),
             NUMBER("passed", totals.passed), NUMBER("failed", totals.failures),
             NUMBER("unsupported", totals.unsupported), NUMBER("refused", totals.refused),
             NUMBER("unchecked", unchecked));
    cJSON *rows = json_add_array(document, "rows");
    for (size_t i = 0; i < facts->row_count; i++)
        add_row(json_add_object(rows, NULL), &facts->rows[i]);
    cJSON *examples = facts->operations ? json_add_array(document, "examples") : NULL;
    for (size_t i = 0; i < facts->example_count; i++)
        add_example(json_add_object(examples, NULL), facts, &facts->examples[i]);
    cJSON *kernels = facts->operations ? json_add_array(document, "kernels") : NULL;
    for (size_t i = 0; i < facts->kernel_count; i++) {
        cJSON *object = json_add_object(kernels, NULL);
        add_kernel(object, &facts->kernels[i].kernel);
        json_add_number(object, "failed", facts->kernels[i].failures);
    }
    cJSON *failures = json_add_array(document, "failures");
    for (size_t i = 0; i < facts->failure_count; i++)
        add_failure(json_add_object(failures, NULL), facts, &facts->failures[i]);
    return document;
}

/* ---------------------------------------------------------------- while it is made */

void report_check_head(const struct check_facts *facts, const struct style *style)
{
    report_label(style, "device", "%s", facts->device->name);
    report_label(style, "driver", "%s, %s", facts->device->platform, facts->device->driver);
    report_label(style, "self-test", "%s",
                 facts->self_test_failure ? facts->self_test_failure : "passed");
    putc('\n', style->stream);
}

void report_check_name(enum operation_id operation, const struct style *style)
{
    fprintf(style->stream, "%-24s", operations[operation].name);
}

void report_check_counts(const struct check_facts *facts, enum operation_id operation,
                         const struct style *style)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < facts->row_count; i++)
        if (form_id(facts->rows[i].form) == operation)
            add(&totals, &facts->rows[i]);
    fprintf(style->stream, "%6" PRIu64 "/%" PRIu64 " right%s\n", totals.passed, totals.cells,
            totals.failures > 0      ? ", some WRONG"
            : totals.unsupported > 0 ? ", the others beyond this device"
                                     : "");
}

/* ---------------------------------------------------------------- what follows it */

/* Operations of manifests. */
static void print_examples(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"operation", "{op}", 0},
        {"kernel", "{kernel.passed}/{kernel.calls:#?}", VIEW_RIGHT},
        {"body", "{body.passed}/{body.calls:#?}", VIEW_RIGHT},
        {"", "[not checked: {not_checked}]", VIEW_SHRINKS}};
    const cJSON *examples = json_at(document, "examples"), *row;
    uint64_t replaced = 0;
    if (json_number_at(document, "examples") > 0) {
        fputs("\noperations of manifests, right of the calls derived from examples/\n",
              style->stream);
        VIEW_TABLE(style, examples, columns);
    }
    cJSON_ArrayForEach(row, json_at(document, "rows")) replaced +=
        json_number_at(row, "by_manifests");
    if (examples && json_number_at(document, "rows") > 0)
        fprintf(style->stream,
                "\nkernels of manifests had a part in %" PRIu64 " calls of the table\n", replaced);
}

static bool have_same(const cJSON *a, const cJSON *b, const char *key)
{
    return cJSON_Compare(json_at(a, key), json_at(b, key), true);
}

/* Whether another failure of the same cell of the table goes before: what is wrong before what is
 * beyond the device, then an earlier one. */
static bool is_repeated(const cJSON *failures, const cJSON *failure)
{
    const cJSON *other;
    bool is_behind = false;
    const bool is_beyond = cJSON_IsTrue(json_at(failure, "unsupported"));
    cJSON_ArrayForEach(other, failures)
    {
        is_behind |= other == failure;
        if (have_same(other, failure, "op") && have_same(other, failure, "dtype") &&
            (have_same(other, failure, "unsupported") ? !is_behind : is_beyond))
            return true;
    }
    return false;
}

#define WITH_KERNEL "[\n  with the kernel {kernel.name}, of {kernel.manifest}]"
#define FAILURE "{form}, {dtypes}, n {n}, k {k}, {layout}: {message}" WITH_KERNEL

void report_check_text(const cJSON *document, const struct style *style)
{
    const cJSON *object, *failures = json_at(document, "failures");
    print_examples(document, style);
    putc('\n', style->stream);
    cJSON_ArrayForEach(object, json_at(document, "examples"))
    {
        if (!view_text(style, object, "{op}, {message}"))
            continue;
        if (json_at(object, "detail")) /* a compiler's log */
            fputs(cJSON_GetStringValue(json_at(object, "detail")), style->stream);
        (void)view_text(style, object,
                        "[  with the kernel {kernel.name}, of {kernel.manifest}\n]  {repeat}");
    }
    cJSON_ArrayForEach(object, failures)
    {
        if (!is_repeated(failures, object))
            (void)view_text(style, object, FAILURE "\n  {repeat}");
    }
    (void)view_each(style, json_at(document, "kernels"),
                    "{name}, of {manifest}: {failed} wrong calls of the table");
    char *end = view_fill(
        document,
        json_number_at(document, "failed") > 0 ? "FAILED: {failed} of {calls} calls"
        : json_number_at(document, "calls") == 0 && json_number_at(document, "refused") == 0
            ? "nothing is checked"
        : json_number_at(document, "unsupported") > 0 ? "the other {passed} calls are right"
                                                      : "all {passed} calls are right");
    fputs(end, style->stream);
    free(end);
    (void)view_text(style, document,
                    "[; {unsupported:#?} are beyond this device]"
                    "[; {refused:#?} combinations of dtypes are refused as they must be]"
                    "[; {unchecked:#?} operation{unchecked:s} not checked]");
}

void report_check_call_text(const cJSON *document, const struct style *style)
{
    const cJSON *failure;
    cJSON_ArrayForEach(failure, json_at(document, "failures"))
    {
        (void)view_text(style, failure, FAILURE);
        if (json_at(failure, "detail"))
            fputs(cJSON_GetStringValue(json_at(failure, "detail")), style->stream);
        else
            (void)view_text(style, failure, "  {repeat}");
    }
    if (json_number_at(document, "failures") == 0)
        (void)view_each(style, json_at(document, "rows"), "{form}: right");
}

/* ---------------------------------------------------------------- JUnit */

static void put_text(struct junit *junit, const cJSON *object, const char *template)
{
    char *text = view_fill(object, template);
    if (text)
        junit_line(junit, "%s", text);
    free(text);
}

static void put_failures(struct junit *junit, const cJSON *document, const cJSON *row)
{
    const cJSON *failure;
    cJSON_ArrayForEach(failure, json_at(document, "failures"))
    {
        if (have_same(failure, row, "form") && have_same(failure, row, "dtypes"))
            put_text(junit, failure, "n {n}, k {k}, {layout}: {message}\n  {repeat}");
    }
}

/* How the calls of a row ended. */
static void put_outcome(struct junit *junit, const cJSON *row)
{
    char *message = view_fill(row, "{failed} of {calls} calls are not right");
    if (json_number_at(row, "failed") > 0)
        junit_outcome(junit, JUNIT_FAILURE, "wrong", message);
    else if (cJSON_IsTrue(json_at(row, "refused")))
        junit_line(junit, "these dtypes are refused, as they must be");
    else if (json_number_at(row, "calls") == 0)
        junit_outcome(junit, JUNIT_SKIPPED, "no call", "no call is for this device");
    else if (json_number_at(row, "calls") == json_number_at(row, "unsupported"))
        junit_outcome(junit, JUNIT_SKIPPED, "beyond the device",
                      "all calls are beyond this device");
    else
        put_text(junit, row, "{passed} calls are right, {unsupported} are beyond this device");
    free(message);
}

/* The kernel and the body of an operation of a manifest. */
static void put_example(struct junit *junit, const cJSON *example)
{
    const char *unchecked = cJSON_GetStringValue(json_at(example, "not_checked"));
    junit_suite(junit, cJSON_GetStringValue(json_at(example, "op")));
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        const char *name = example_side_names[side];
        junit_case(junit, name, side == 0 ? json_number_at(example, "ns") : 0);
        if (unchecked)
            junit_outcome(junit, JUNIT_SKIPPED, "not checked", unchecked);
        else
            put_outcome(junit, json_at(example, name));
        put_text(junit, example, "{message}");
    }
}

void report_check_junit(const cJSON *document, FILE *stream)
{
    struct junit junit;
    const cJSON *row, *last = NULL, *example;
    char *name = view_fill(document, "healcl check of {device.name}");
    const char *failure = cJSON_GetStringValue(json_at(document, "self_test_failure"));
    junit_init(&junit, name);
    free(name);
    junit_suite(&junit, "self-test");
    junit_case(&junit, "self-test", 0);
    if (failure)
        junit_outcome(&junit, JUNIT_FAILURE, "wrong", failure);
    cJSON_ArrayForEach(row, json_at(document, "rows"))
    {
        if (!last || !have_same(row, last, "op"))
            junit_suite(&junit, cJSON_GetStringValue(json_at(row, "op")));
        last = row;
        /* Forms share names; the number is the one that --case begins with. */
        name = view_fill(row, "{form}, {dtypes} (case {case})");
        junit_case(&junit, name, json_number_at(row, "ns"));
        free(name);
        put_outcome(&junit, row);
        put_failures(&junit, document, row);
    }
    cJSON_ArrayForEach(example, json_at(document, "examples")) put_example(&junit, example);
    junit_print(&junit, stream);
}
