#include "report/junit.h"

#include <stdarg.h>

#include "core/arena.h"
#include "report/xml.h"

struct line {
    struct line *next;
    const char *text;
};

struct junit_case {
    struct junit_case *next;
    const char *name, *type, *message;
    enum junit_outcome outcome;
    uint64_t nanoseconds;
    struct line *first, *last;
};

struct junit_suite {
    struct junit_suite *next;
    const char *name;
    struct junit_case *first, *last;
};

/* ---------------------------------------------------------------- collecting */

/* Zeroed. */
static void *allocate(struct junit *junit, size_t size)
{
    void *memory = junit->failed ? NULL : arena_alloc(junit->arena, size);
    junit->failed = !memory;
    return memory;
}

static const char *copy(struct junit *junit, const char *text)
{
    const char *kept = junit->failed ? NULL : arena_strdup(junit->arena, text);
    junit->failed = !kept;
    return kept;
}

void junit_init(struct junit *junit, const char *name)
{
    *junit = (struct junit){.arena = arena_create()};
    junit->failed = !junit->arena;
    junit->name = copy(junit, name);
}

void junit_suite(struct junit *junit, const char *name)
{
    struct junit_suite *suite = allocate(junit, sizeof *suite);
    if (!suite)
        return;
    suite->name = copy(junit, name);
    *(junit->last ? &junit->last->next : &junit->first) = suite;
    junit->last = suite;
}

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds)
{
    struct junit_case *next = allocate(junit, sizeof *next);
    if (!next)
        return;
    struct junit_suite *suite = junit->last;
    next->name = copy(junit, name);
    next->nanoseconds = nanoseconds;
    *(suite->last ? &suite->last->next : &suite->first) = next;
    suite->last = next;
}

void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message)
{
    if (junit->failed)
        return;
    struct junit_case *last = junit->last->last;
    last->outcome = outcome;
    last->type = copy(junit, type);
    last->message = copy(junit, message);
}

void junit_line(struct junit *junit, const char *format, ...)
{
    char text[2048];
    struct line *line = allocate(junit, sizeof *line);
    if (!line)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct junit_case *last = junit->last->last;
    line->text = copy(junit, text);
    *(last->last ? &last->last->next : &last->first) = line;
    last->last = line;
}

/* ---------------------------------------------------------------- printing */

struct totals {
    uint64_t tests, of[JUNIT_OUTCOME_COUNT], nanoseconds;
};

static void count(struct totals *totals, const struct junit_suite *suite)
{
    for (const struct junit_case *next = suite->first; next; next = next->next) {
        totals->tests++;
        totals->of[next->outcome]++;
        totals->nanoseconds += next->nanoseconds;
    }
}

static void put_number(struct xml *xml, const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    xml_attribute(xml, name, text);
}

static void put_seconds(struct xml *xml, uint64_t nanoseconds)
{
    char text[32];
    snprintf(text, sizeof text, "%llu.%09llu", (unsigned long long)(nanoseconds / 1000000000),
             (unsigned long long)(nanoseconds % 1000000000));
    xml_attribute(xml, "time", text);
}

static void put_totals(struct xml *xml, const char *name, const struct totals *totals)
{
    xml_attribute(xml, "name", name);
    put_number(xml, "tests", totals->tests);
    put_number(xml, "failures", totals->of[JUNIT_FAILURE]);
    put_number(xml, "errors", totals->of[JUNIT_ERROR]);
    put_number(xml, "skipped", totals->of[JUNIT_SKIPPED]);
    put_seconds(xml, totals->nanoseconds);
}

static void put_case(struct xml *xml, const struct junit_suite *suite,
                     const struct junit_case *this)
{
    static const char *const elements[JUNIT_OUTCOME_COUNT] = {
        [JUNIT_PASSED] = "system-out",
        [JUNIT_FAILURE] = "failure",
        [JUNIT_ERROR] = "error",
        [JUNIT_SKIPPED] = "skipped",
    };
    xml_open(xml, "testcase");
    xml_attribute(xml, "classname", suite->name);
    xml_attribute(xml, "name", this->name);
    put_seconds(xml, this->nanoseconds);
    if (this->outcome != JUNIT_PASSED || this->first) {
        xml_open(xml, elements[this->outcome]);
        if (this->outcome != JUNIT_PASSED) {
            xml_attribute(xml, "type", this->type);
            xml_attribute(xml, "message", this->message);
        }
        for (const struct line *line = this->first; line; line = line->next) {
            xml_text(xml, line->text);
            xml_text(xml, line->next ? "\n" : "");
        }
        xml_close(xml);
    }
    xml_close(xml);
}

static void put_all(const struct junit *junit, FILE *stream)
{
    struct xml xml;
    struct totals all = {.tests = 0};
    for (const struct junit_suite *suite = junit->first; suite; suite = suite->next)
        count(&all, suite);
    xml_start(&xml, stream);
    xml_open(&xml, "testsuites");
    put_totals(&xml, junit->name, &all);
    for (const struct junit_suite *suite = junit->first; suite; suite = suite->next) {
        struct totals totals = {.tests = 0};
        count(&totals, suite);
        xml_open(&xml, "testsuite");
        put_totals(&xml, suite->name, &totals);
        for (const struct junit_case *next = suite->first; next; next = next->next)
            put_case(&xml, suite, next);
        xml_close(&xml);
    }
    xml_close(&xml);
}

enum healcl_status junit_print(struct junit *junit, FILE *stream)
{
    const bool failed = junit->failed;
    if (!failed)
        put_all(junit, stream);
    arena_free(junit->arena);
    *junit = (struct junit){.arena = NULL};
    return failed ? HEALCL_NO_MEMORY : HEALCL_OK;
}
