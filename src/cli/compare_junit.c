/* A comparison as JUnit XML: a suite for each transcript, in it a case for each device that runs it
 * here, and one for each baseline that its time is held against. */
#include "cli/junit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/comparison.h"
#include "cli/text.h"
#include "tools/xmalloc.h"

static void put_details(struct junit *junit, const cJSON *run)
{
    const cJSON *line;
    if (*compare_text(run, "message"))
        junit_line(junit, "%s", compare_text(run, "message"));
    cJSON_ArrayForEach(line, compare_at(run, "differences"))
    {
        junit_line(junit, "%s", line->valuestring);
    }
    junit_line(junit, "%s", compare_text(run, "command"));
}

static void put_verdict(struct junit *junit, const struct comparison *comparison, const cJSON *run,
                        const char *name)
{
    char text[OUTCOME_SIZE];
    const char *type = compare_text(run, "outcome"), *message = compare_text(run, "message");
    const enum junit_outcome outcome = strcmp(type, "verified") == 0            ? JUNIT_PASSED
                                       : strcmp(type, "nothing to verify") == 0 ? JUNIT_SKIPPED
                                       : strcmp(type, "different") == 0         ? JUNIT_FAILURE
                                                                                : JUNIT_ERROR;
    char *whole = xasprintf("%s%s%.400s", compare_outcome_text(comparison, run, text),
                            *message ? ": " : "", message);
    junit_case(junit, name, (uint64_t)compare_number(run, "process_ns"));
    if (outcome != JUNIT_PASSED)
        junit_outcome(junit, outcome, type, whole);
    put_details(junit, run);
    free(whole);
}

static void put_slowdown(struct junit *junit, const struct comparison *comparison, const cJSON *run,
                         const cJSON *slowdown, const char *name)
{
    const char *figure = compare_text(slowdown, "figure");
    const bool is_steady = strcmp(figure, compare_figures[COMPARE_STEADY].name) == 0;
    char *text = compare_slowdown_text(comparison, slowdown),
         *title = *figure ? xasprintf("%.250s: %s against %.200s", name, figure,
                                      compare_text(slowdown, "baseline"))
                          : xasprintf("%.250s: time against a baseline", name);
    junit_case(junit, title, (uint64_t)compare_number(run, compare_figures[is_steady].median));
    if (compare_at(slowdown, "not_judged_because"))
        junit_outcome(junit, JUNIT_SKIPPED, "not judged", text);
    else if (cJSON_IsTrue(compare_at(slowdown, "slower")))
        junit_outcome(junit, JUNIT_FAILURE, "slower", text);
    else
        junit_line(junit, "%s", text);
    free(title);
    free(text);
}

void compare_print_junit(const struct comparison *comparison, FILE *stream)
{
    struct junit junit;
    const cJSON *run, *slowdown;
    junit_init(&junit, "healcl compare");
    for (size_t i = 0; i < compare_transcript_count(comparison); i++) {
        junit_suite(&junit, compare_text(compare_transcript(comparison, i), "file"));
        FOR_EACH_RUN_OF(run, comparison, i)
        {
            if (!compare_is_own(comparison, run))
                continue;
            const cJSON *device = compare_device(comparison, compare_index(run, "device_at"));
            char *name = xasprintf("%.60s %.200s (%.200s)", compare_text(device, "index"),
                                   compare_text(device, "name"), compare_text(device, "platform"));
            put_verdict(&junit, comparison, run, name);
            cJSON_ArrayForEach(slowdown, compare_at(run, "slowdowns"))
            {
                put_slowdown(&junit, comparison, run, slowdown, name);
            }
            free(name);
        }
    }
    (void)junit_print(&junit, stream);
}
