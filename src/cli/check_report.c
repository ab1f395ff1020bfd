/* The report of healcl check: as text, and as JUnit XML. */
#include "cli/report.h"

#include "tools/example.h"

/* ---------------------------------------------------------------- text */

/* Prints operations of manifests. */
static void print_examples(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"operation", "{op}", 0},
        {"kernel", "{kernel.passed}/{kernel.calls:#?}", VIEW_RIGHT},
        {"body", "{body.passed}/{body.calls:#?}", VIEW_RIGHT},
        {"", "[not checked: {not_checked}]", VIEW_SHRINKS}};
    static const struct view_column kernel_columns[] = {
        {"kernel of a manifest", "{name}, of {manifest}", 0},
        {"of", "{of}", 0},
        {"steps", "{steps}", VIEW_RIGHT},
        {"wrong calls", "{failed}", VIEW_RIGHT}};
    if (json_number_at(document, "examples") > 0) {
        fputs("\noperations of manifests: right calls of those derived from examples/\n",
              style->stream);
        VIEW_TABLE(style, json_at(document, "examples"), columns);
    }
    if (json_number_at(document, "kernels") > 0) {
        VIEW_SECTION(style, json_at(document, "kernels"), kernel_columns);
        view_each(style, json_at(document, "kernels"), "{name} of {manifest} never ran: {why_not}");
    }
}

static bool have_same(const cJSON *a, const cJSON *b, const char *key)
{
    return cJSON_Compare(json_at(a, key), json_at(b, key), true);
}

/* Whether another failure of the same cell precedes this one. Wrong results precede those beyond
 * the device, earlier failures later ones. */
static bool is_repeated(const cJSON *failures, const cJSON *failure)
{
    bool is_behind = false;
    const bool is_beyond = cJSON_IsTrue(json_at(failure, "unsupported"));
    JSON_EACH(other, failures)
    {
        is_behind |= other == failure;
        if (have_same(other, failure, "op") && have_same(other, failure, "dtype") &&
            (have_same(other, failure, "unsupported") ? !is_behind : is_beyond))
            return true;
    }
    return false;
}

#define WITH_KERNEL "[\n  with the kernel {kernel.name}, of {kernel.manifest}]"
#define ASIDE                                                                  \
    "[; {unsupported:#?} are beyond this device][; {refused:#?} combinations " \
    "of dtypes are refused as they must be][; {unchecked:#?} "                 \
    "operation{unchecked:s} not checked][; {idle_kernels:#?} "                 \
    "kernel{idle_kernels:s} of manifests never ran]"
#define FAILURE "[{form}, {dtypes}][, n {n}, k {k:#?}][, {layout}][{plan}]: {message}" WITH_KERNEL

/* Prints paragraphs of the variants that no call has reached, by reason. */
static void print_not_reached(const cJSON *variants, const struct style *style)
{
    cJSON *reasons = cJSON_CreateArray();
    JSON_EACH(row, variants)
    {
        if (!json_at(row, "not_reached"))
            continue;
        cJSON *reason = json_row(reasons, "reason", json_text(row, "not_reached")),
              *rows = cJSON_GetObjectItemCaseSensitive(reason, "rows");
        json_add_string(rows ? rows : json_add_array(reason, "rows"), NULL,
                        view_fill(row, "{step} {variant}"));
    }
    if (cJSON_GetArraySize(reasons) > 0)
        fputs("\nnot reached\n", style->stream);
    JSON_EACH(reason, reasons)
    {
        fputs("  ", style->stream);
        text_wrap(style->stream, view_fill(reason, "{reason}: {rows}"), 2, 4, 79);
    }
    cJSON_Delete(reasons);
}

static void print_variants(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {{"step", "{step}", 0},
                                                 {"variant", "{variant}", 0},
                                                 {"kernel", "{kernel}", 0},
                                                 {"calls", "{calls}", VIEW_RIGHT},
                                                 {"wrong", "{failed:#?}", VIEW_RIGHT},
                                                 {"recorded", "{recorded:#?}", VIEW_RIGHT}};
    const cJSON *variants = json_at(document, "variants");
    cJSON *reached = cJSON_CreateArray();
    JSON_EACH(row, variants)
    {
        if (json_at(row, "kernel"))
            cJSON_AddItemToArray(reached, cJSON_Duplicate(row, true));
    }
    json_sort(reached, "failed");
    VIEW_SECTION(style, reached, columns);
    cJSON_Delete(reached);
    print_not_reached(variants, style);
}

void report_check_text(const cJSON *document, const struct style *style)
{
    const cJSON *failures = json_at(document, "failures");
    print_examples(document, style);
    putc('\n', style->stream);
    JSON_EACH(object, json_at(document, "examples"))
    {
        if (!json_at(object, "message"))
            continue;
        view_text(style, object, "{op}, {message}");
        if (json_at(object, "detail")) /* a compiler's log */
            fputs(json_text(object, "detail"), style->stream);
        view_text(style, object,
                  "[  with the kernel {kernel.name}, of {kernel.manifest}\n]  {repeat}");
    }
    JSON_EACH(object, failures)
    {
        if (json_at(object, "plan") || !is_repeated(failures, object))
            view_text(style, object, FAILURE "\n  {repeat}");
    }
    view_text(style, document,
              json_number_at(document, "failed") > 0 ? "FAILED: {failed} of {calls} calls" ASIDE
              : json_number_at(document, "calls") == 0 && json_number_at(document, "refused") == 0
                  ? "nothing was checked" ASIDE
              : json_number_at(document, "idle_kernels") > 0
                  ? "FAILED: the {passed} calls that were made are right" ASIDE
              : json_number_at(document, "unsupported") > 0
                  ? "the other {passed} calls are right" ASIDE
                  : "all {passed} calls are right" ASIDE);
    if (json_at(document, "variants"))
        print_variants(document, style);
}

void report_check_call_text(const cJSON *document, const struct style *style)
{
    JSON_EACH(failure, json_at(document, "failures"))
    {
        view_text(style, failure, FAILURE);
        if (json_at(failure, "detail"))
            fputs(json_text(failure, "detail"), style->stream);
        else
            view_text(style, failure, "  {repeat}");
    }
    if (json_number_at(document, "failures") == 0)
        view_each(style, json_at(document, "rows"), "{form}: right");
}

/* ---------------------------------------------------------------- JUnit */

static void put_text(struct junit *junit, const cJSON *object, const char *template)
{
    const char *text = view_fill(object, template);
    if (text)
        junit_line(junit, text);
}

static void put_failures(struct junit *junit, const cJSON *document, const cJSON *row)
{
    JSON_EACH(failure, json_at(document, "failures"))
    {
        if (have_same(failure, row, "form") && have_same(failure, row, "dtypes"))
            put_text(junit, failure, "[n {n}, k {k:#?}, ]{layout}: {message}\n  {repeat}");
    }
}

/* Prints the outcomes of a row's calls. */
static void put_outcome(struct junit *junit, const cJSON *row)
{
    if (json_number_at(row, "failed") > 0)
        junit_outcome(junit, JUNIT_FAILURE, "wrong",
                      view_fill(row, "{failed} of {calls} calls are not right"));
    else if (cJSON_IsTrue(json_at(row, "refused")))
        junit_line(junit, "these dtypes are refused, as they must be");
    else if (json_number_at(row, "calls") == 0)
        junit_outcome(junit, JUNIT_SKIPPED, "no call", "no call is for this device");
    else if (json_number_at(row, "calls") == json_number_at(row, "unsupported"))
        junit_outcome(junit, JUNIT_SKIPPED, "beyond the device",
                      "all calls are beyond this device");
    else
        put_text(junit, row, "{passed} calls are right, {unsupported} are beyond this device");
}

/* Prints the kernel and the body of a manifest's operation. */
static void put_example(struct junit *junit, const cJSON *example)
{
    const char *unchecked = json_text(example, "not_checked");
    junit_suite(junit, json_text(example, "op"));
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        const char *name = example_side_names[side];
        junit_case(junit, name, side == 0 ? json_number_at(example, "ns") : 0);
        if (*unchecked)
            junit_outcome(junit, JUNIT_SKIPPED, "not checked", unchecked);
        else
            put_outcome(junit, json_at(example, name));
        put_text(junit, example, "{message}");
    }
}

void report_check_junit(void *command, const cJSON *document, FILE *stream)
{
    (void)command;
    struct junit junit;
    const cJSON *last = NULL;
    const char *failure = json_text(document, "self_test_failure");
    junit_init(&junit, view_fill(document, "healcl check of {device.name}"));
    junit_suite(&junit, "self-test");
    junit_case(&junit, "self-test", 0);
    if (*failure)
        junit_outcome(&junit, JUNIT_FAILURE, "wrong", failure);
    JSON_EACH(row, json_at(document, "rows"))
    {
        if (!last || !have_same(row, last, "op"))
            junit_suite(&junit, json_text(row, "op"));
        last = row;
        /* Forms may share names. The number is the one that --case begins with. */
        junit_case(&junit, view_fill(row, "{form}, {dtypes} (case {case})"),
                   json_number_at(row, "ns"));
        put_outcome(&junit, row);
        put_failures(&junit, document, row);
    }
    if (json_at(document, CHECK_TRANSCRIPTS)) {
        junit_suite(&junit, CHECK_TRANSCRIPTS);
        junit_case(&junit, CHECK_TRANSCRIPTS, 0);
        put_outcome(&junit, json_at(document, CHECK_TRANSCRIPTS));
        JSON_EACH(row, json_at(document, "failures"))
        {
            if (json_is(row, "op", CHECK_TRANSCRIPTS))
                put_text(&junit, row, "{plan}: {message}\n  {repeat}");
        }
    }
    JSON_EACH(example, json_at(document, "examples")) put_example(&junit, example);
    JSON_EACH(row, json_at(document, "kernels"))
    {
        junit_suite(&junit, "kernels of manifests");
        junit_case(&junit, view_fill(row, "{name}, of {manifest}"), 0);
        if (cJSON_IsTrue(json_at(row, "idle")))
            junit_outcome(&junit, JUNIT_FAILURE, "ran nothing", json_text(row, "why_not"));
    }
    junit_print(&junit, stream);
}
