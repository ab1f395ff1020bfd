#include "report/junit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "report/text.h"

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

static void put_seconds(FILE *stream, uint64_t nanoseconds)
{
    fprintf(stream, " time=\"%" PRIu64 ".%09" PRIu64 "\"", nanoseconds / 1000000000,
            nanoseconds % 1000000000);
}

/* An element with its totals, around those that are in it: an indented line, maybe none. */
static void put_suite(FILE *stream, const char *element, const char *indent, const char *name,
                      const struct junit_totals *totals, const char *inner)
{
    const uint64_t *of = totals->of;
    fprintf(stream, "\n%s<%s", indent, element);
    put_attribute(stream, "name", name);
    fprintf(stream,
            " tests=\"%" PRIu64 "\" failures=\"%" PRIu64 "\" errors=\"%" PRIu64
            "\" skipped=\"%" PRIu64 "\"",
            of[JUNIT_PASSED] + of[JUNIT_FAILURE] + of[JUNIT_ERROR] + of[JUNIT_SKIPPED],
            of[JUNIT_FAILURE], of[JUNIT_ERROR], of[JUNIT_SKIPPED]);
    put_seconds(stream, totals->nanoseconds);
    if (*inner)
        fprintf(stream, ">%s\n%s</%s>", inner, indent, element);
    else
        fputs("/>", stream);
}

/* ---------------------------------------------------------------- texts that wait */

static void begin_text(struct junit *junit, struct junit_text *text)
{
    *text = (struct junit_text){.text = NULL};
    text->stream = junit->failed ? NULL : open_memstream(&text->text, &text->size);
    junit->failed = !text->stream;
}

/* Its elements; NULL where there was no memory. */
static const char *end_text(struct junit *junit, struct junit_text *text)
{
    junit->failed |= !text->stream || fclose(text->stream) != 0;
    text->stream = NULL;
    return junit->failed ? NULL : text->text;
}

/* ---------------------------------------------------------------- cases and suites */

static void end_case(struct junit *junit)
{
    FILE *stream = junit->cases.stream;
    if (!junit->in_case)
        return;
    if (junit->has_lines)
        fprintf(stream, "</%s>\n    </testcase>", junit->element);
    else
        fputs(junit->element ? "/>\n    </testcase>" : "/>", stream);
    junit->in_case = junit->has_lines = false;
    junit->element = NULL;
    junit->suite.of[junit->outcome]++;
    junit->all.of[junit->outcome]++;
}

static void end_suite(struct junit *junit)
{
    if (!junit->cases.stream)
        return;
    end_case(junit);
    const char *cases = end_text(junit, &junit->cases);
    if (cases)
        put_suite(junit->suites.stream, "testsuite", "  ", junit->suite_name, &junit->suite, cases);
    free(junit->cases.text);
}

void junit_init(struct junit *junit, const char *name)
{
    *junit = (struct junit){.name = name};
    begin_text(junit, &junit->suites);
}

void junit_suite(struct junit *junit, const char *name)
{
    end_suite(junit);
    junit->suite_name = name;
    junit->suite = (struct junit_totals){.nanoseconds = 0};
    begin_text(junit, &junit->cases);
}

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds)
{
    FILE *stream = junit->cases.stream;
    if (junit->failed)
        return;
    end_case(junit);
    fputs("\n    <testcase", stream);
    put_attribute(stream, "classname", junit->suite_name);
    put_attribute(stream, "name", name);
    put_seconds(stream, nanoseconds);
    junit->in_case = true;
    junit->outcome = JUNIT_PASSED;
    junit->suite.nanoseconds += nanoseconds;
    junit->all.nanoseconds += nanoseconds;
}

static void open_element(struct junit *junit, const char *element)
{
    fprintf(junit->cases.stream, ">\n      <%s", element);
    junit->element = element;
}

void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message)
{
    static const char *const elements[JUNIT_OUTCOME_COUNT] = {
        [JUNIT_FAILURE] = "failure", [JUNIT_ERROR] = "error", [JUNIT_SKIPPED] = "skipped"};
    if (junit->failed)
        return;
    open_element(junit, elements[outcome]);
    put_attribute(junit->cases.stream, "type", type);
    put_attribute(junit->cases.stream, "message", message);
    junit->outcome = outcome;
}

void junit_line(struct junit *junit, const char *format, ...)
{
    char text[2048];
    if (junit->failed)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!junit->element)
        open_element(junit, "system-out");
    putc(junit->has_lines ? '\n' : '>', junit->cases.stream);
    text_print_escaped(junit->cases.stream, text, in_text);
    junit->has_lines = true;
}

enum healcl_status junit_print(struct junit *junit, FILE *stream)
{
    end_suite(junit);
    const char *suites = end_text(junit, &junit->suites);
    if (suites) {
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", stream);
        put_suite(stream, "testsuites", "", junit->name, &junit->all, suites);
        putc('\n', stream);
    }
    free(junit->suites.text);
    return junit->failed ? HEALCL_NO_MEMORY : HEALCL_OK;
}
