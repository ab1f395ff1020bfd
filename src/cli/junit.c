#include "cli/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/text.h"

/* ---------------------------------------------------------------- suites and cases */

void junit_init(struct junit *junit, const char *name)
{
    *junit = (struct junit){.top = cJSON_CreateObject()};
    json_add_string(junit->top, "name", name);
    junit->suites = json_add_array(junit->top, "suites");
}

void junit_suite(struct junit *junit, const char *name)
{
    cJSON *suite = json_add_object(junit->suites, NULL);
    json_add_string(suite, "name", name);
    junit->cases = json_add_array(suite, "cases");
}

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds)
{
    junit->last = json_add_object(junit->cases, NULL);
    json_add_string(junit->last, "name", name);
    json_add_number(junit->last, "ns", nanoseconds);
    (void)json_add_array(junit->last, "lines");
}

void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message)
{
    json_add_number(junit->last, "outcome", outcome);
    json_add_string(junit->last, "type", type);
    json_add_string(junit->last, "message", message);
}

void junit_line(struct junit *junit, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_add_string(cJSON_GetObjectItemCaseSensitive(junit->last, "lines"), NULL, text);
}

/* ---------------------------------------------------------------- XML */

/* Readers make blanks of line breaks and tabs in attributes that are not escaped, and line feeds of
 * carriage returns everywhere. */
#define ESCAPES                                                    \
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, \
    {                                                              \
        '\r', "&#13;"                                              \
    }
static const struct text_escape in_text[] = {ESCAPES, {'\n', "\n"}, {'\t', "\t"}, {0, NULL}};
static const struct text_escape in_value[] = {ESCAPES, {'\n', "&#10;"}, {'\t', "&#9;"}, {0, NULL}};

static void put_attribute(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, " %s=\"", name);
    text_print_escaped(stream, value, in_value);
    putc('"', stream);
}

static void put_member(FILE *stream, const cJSON *object, const char *key)
{
    put_attribute(stream, key, json_text(object, key));
}

static void put_seconds(FILE *stream, uint64_t nanoseconds)
{
    fprintf(stream, " time=\"%" PRIu64 ".%09" PRIu64 "\"", nanoseconds / 1000000000,
            nanoseconds % 1000000000);
}

/* Cases that ended so, and their time. */
struct totals {
    uint64_t of[JUNIT_OUTCOME_COUNT], nanoseconds;
};

static void add_cases(struct totals *totals, const cJSON *suite)
{
    const cJSON *last;
    cJSON_ArrayForEach(last, json_at(suite, "cases"))
    {
        totals->of[json_number_at(last, "outcome")]++;
        totals->nanoseconds += json_number_at(last, "ns");
    }
}

/* The attributes of one suite, or of all. */
static void put_totals(FILE *stream, const cJSON *object, const struct totals *totals)
{
    const uint64_t *of = totals->of;
    put_member(stream, object, "name");
    fprintf(stream,
            " tests=\"%" PRIu64 "\" failures=\"%" PRIu64 "\" errors=\"%" PRIu64
            "\" skipped=\"%" PRIu64 "\"",
            of[JUNIT_PASSED] + of[JUNIT_FAILURE] + of[JUNIT_ERROR] + of[JUNIT_SKIPPED],
            of[JUNIT_FAILURE], of[JUNIT_ERROR], of[JUNIT_SKIPPED]);
    put_seconds(stream, totals->nanoseconds);
    fputs(">\n", stream);
}

static void put_case(FILE *stream, const cJSON *suite, const cJSON *object)
{
    static const char *const elements[JUNIT_OUTCOME_COUNT] = {"system-out", "failure", "error",
                                                              "skipped"};
    const uint64_t outcome = json_number_at(object, "outcome");
    const cJSON *line, *lines = json_at(object, "lines");
    fputs("    <testcase", stream);
    put_attribute(stream, "classname", json_text(suite, "name"));
    put_member(stream, object, "name");
    put_seconds(stream, json_number_at(object, "ns"));
    if (outcome == JUNIT_PASSED && !lines->child) {
        fputs("/>\n", stream);
        return;
    }
    fprintf(stream, ">\n      <%s", elements[outcome]);
    if (outcome != JUNIT_PASSED) {
        put_member(stream, object, "type");
        put_member(stream, object, "message");
    }
    putc('>', stream);
    cJSON_ArrayForEach(line, lines)
    {
        text_print_escaped(stream, line->valuestring, in_text);
        fputs(line->next ? "\n" : "", stream);
    }
    fprintf(stream, "</%s>\n    </testcase>\n", elements[outcome]);
}

void junit_print(struct junit *junit, FILE *stream)
{
    struct totals all = {.nanoseconds = 0};
    const cJSON *suite, *object;
    cJSON_ArrayForEach(suite, junit->suites) add_cases(&all, suite);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", stream);
    put_totals(stream, junit->top, &all);
    cJSON_ArrayForEach(suite, junit->suites)
    {
        struct totals totals = {.nanoseconds = 0};
        add_cases(&totals, suite);
        fputs("  <testsuite", stream);
        put_totals(stream, suite, &totals);
        cJSON_ArrayForEach(object, json_at(suite, "cases")) put_case(stream, suite, object);
        fputs("  </testsuite>\n", stream);
    }
    fputs("</testsuites>\n", stream);
    cJSON_Delete(junit->top);
}

/* ---------------------------------------------------------------- errors */

void report_error_junit(const char *file, const struct healcl_error *error, FILE *stream)
{
    struct junit junit;
    junit_init(&junit, "healcl");
    junit_suite(&junit, file ? file : "healcl");
    junit_case(&junit, healcl_status_name(error->status), 0);
    junit_outcome(&junit, error->status == HEALCL_DIFFERENT ? JUNIT_FAILURE : JUNIT_ERROR,
                  healcl_status_name(error->status), error->message);
    if (error->detail)
        junit_line(&junit, "%s", error->detail);
    junit_print(&junit, stream);
}
