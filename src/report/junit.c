#include "report/junit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- texts that wait */

/* depth: of the elements that will stand around it. */
static void begin_text(struct junit *junit, struct junit_text *text, size_t depth)
{
    *text = (struct junit_text){.xml.depth = depth};
    text->xml.stream = junit->failed ? NULL : open_memstream(&text->text, &text->size);
    junit->failed = !text->xml.stream;
}

/* Adds it to where it belongs. */
static void end_text(struct junit *junit, struct junit_text *text, struct xml *xml)
{
    if (fclose(text->xml.stream) == 0 && !junit->failed)
        xml_elements(xml, text->text);
    else
        junit->failed = true;
    free(text->text);
    *text = (struct junit_text){.text = NULL};
}

/* ---------------------------------------------------------------- totals */

static void put_number(struct xml *xml, const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    xml_attribute(xml, name, text);
}

static void put_seconds(struct xml *xml, uint64_t nanoseconds)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%09" PRIu64, nanoseconds / 1000000000,
             nanoseconds % 1000000000);
    xml_attribute(xml, "time", text);
}

static void put_totals(struct xml *xml, const char *name, const struct junit_totals *totals)
{
    const uint64_t *of = totals->of;
    xml_attribute(xml, "name", name);
    put_number(xml, "tests",
               of[JUNIT_PASSED] + of[JUNIT_FAILURE] + of[JUNIT_ERROR] + of[JUNIT_SKIPPED]);
    put_number(xml, "failures", of[JUNIT_FAILURE]);
    put_number(xml, "errors", of[JUNIT_ERROR]);
    put_number(xml, "skipped", of[JUNIT_SKIPPED]);
    put_seconds(xml, totals->nanoseconds);
}

/* ---------------------------------------------------------------- cases and suites */

static void end_case(struct junit *junit)
{
    if (!junit->in_case)
        return;
    if (junit->in_outcome)
        xml_close(&junit->cases.xml);
    xml_close(&junit->cases.xml);
    junit->in_case = junit->in_outcome = false;
    junit->suite.of[junit->outcome]++;
    junit->all.of[junit->outcome]++;
}

static void end_suite(struct junit *junit)
{
    if (!junit->cases.xml.stream)
        return;
    end_case(junit);
    xml_open(&junit->suites.xml, "testsuite");
    put_totals(&junit->suites.xml, junit->suite_name, &junit->suite);
    end_text(junit, &junit->cases, &junit->suites.xml);
    xml_close(&junit->suites.xml);
}

void junit_init(struct junit *junit, const char *name)
{
    *junit = (struct junit){.name = name};
    begin_text(junit, &junit->suites, 1);
}

void junit_suite(struct junit *junit, const char *name)
{
    end_suite(junit);
    junit->suite_name = name;
    junit->suite = (struct junit_totals){.nanoseconds = 0};
    begin_text(junit, &junit->cases, 2);
}

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds)
{
    if (junit->failed)
        return;
    struct xml *xml = &junit->cases.xml;
    end_case(junit);
    xml_open(xml, "testcase");
    xml_attribute(xml, "classname", junit->suite_name);
    xml_attribute(xml, "name", name);
    put_seconds(xml, nanoseconds);
    junit->in_case = true;
    junit->outcome = JUNIT_PASSED;
    junit->suite.nanoseconds += nanoseconds;
    junit->all.nanoseconds += nanoseconds;
}

void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message)
{
    static const char *const elements[JUNIT_OUTCOME_COUNT] = {
        [JUNIT_FAILURE] = "failure", [JUNIT_ERROR] = "error", [JUNIT_SKIPPED] = "skipped"};
    if (junit->failed)
        return;
    xml_open(&junit->cases.xml, elements[outcome]);
    xml_attribute(&junit->cases.xml, "type", type);
    xml_attribute(&junit->cases.xml, "message", message);
    junit->in_outcome = true;
    junit->outcome = outcome;
}

void junit_line(struct junit *junit, const char *format, ...)
{
    char text[2048];
    struct xml *xml = &junit->cases.xml;
    if (junit->failed)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!junit->in_outcome)
        xml_open(xml, "system-out");
    junit->in_outcome = true;
    xml_text(xml, xml->has_text ? "\n" : "");
    xml_text(xml, text);
}

enum healcl_status junit_print(struct junit *junit, FILE *stream)
{
    struct xml xml = {.stream = stream};
    end_suite(junit);
    if (!junit->failed) {
        xml_start(&xml, stream);
        xml_open(&xml, "testsuites");
        put_totals(&xml, junit->name, &junit->all);
    }
    if (junit->suites.xml.stream)
        end_text(junit, &junit->suites, &xml);
    if (junit->failed)
        return HEALCL_NO_MEMORY;
    xml_close(&xml);
    return HEALCL_OK;
}
