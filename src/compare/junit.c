/* A comparison as JUnit XML: a suite for each transcript, in it a case for each device that runs it
 * today, and one for each baseline that its time is held against. */
#include "report/junit.h"
#include "compare/compare.h"
#include "report/text.h"

enum { NAME_SIZE = 512 };

static void put_details(struct junit *junit, const struct compare_run *run)
{
    struct compare_times times;
    if (*run->message)
        junit_line(junit, "%s", run->message);
    for (size_t i = 0; i < run->difference_count; i++)
        junit_line(junit, "%s", run->differences[i]);
    for (enum compare_figure i = 0; i < COMPARE_LEADING; i++)
        if (compare_times_of(run, i, &times))
            junit_line(junit, "%s: median %s of %zu, spread %.1f %%%s", compare_figure_name(i),
                       TEXT_TIME(times.median), run->times[i].count, compare_spread(&times),
                       compare_spreads(run, i) ? " (noisy)" : "");
    junit_line(junit, "%s", run->command);
}

static void put_verdict(struct junit *junit, const struct comparison *comparison,
                        const struct compare_run *run, const char *name)
{
    const char *type = compare_outcome_name(run->outcome);
    char text[OUTCOME_TEXT_SIZE], message[NAME_SIZE];
    compare_outcome_text(comparison, run, text);
    junit_case(junit, name, run->process_nanoseconds);
    snprintf(message, sizeof message, "%s%s%.400s", text, *run->message ? ": " : "", run->message);
    switch (run->outcome) {
    case COMPARE_VERIFIED: break;
    case COMPARE_UNVERIFIED: junit_outcome(junit, JUNIT_SKIPPED, type, message); break;
    case COMPARE_DIFFERENT: junit_outcome(junit, JUNIT_FAILURE, type, message); break;
    case COMPARE_UNPROVEN:
    case COMPARE_REFUSED:
    case COMPARE_FAILED:
    case COMPARE_CRASHED:
    case COMPARE_TIMED_OUT: junit_outcome(junit, JUNIT_ERROR, type, message); break;
    }
    put_details(junit, run);
}

static void put_times(struct junit *junit, const struct comparison *comparison,
                      const struct compare_run *run, const char *name)
{
    struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
    const size_t count = compare_slowdowns_of(comparison, run, slowdowns);
    for (size_t i = 0; i < count; i++) {
        const struct compare_run *saved = slowdowns[i].baseline;
        struct compare_times times = {.median = 0};
        char text[NAME_SIZE], told[SLOWDOWN_TEXT_SIZE];
        (void)compare_times_of(run, slowdowns[i].figure, &times);
        snprintf(text, sizeof text, "%.250s: %s against %.200s", name,
                 saved ? compare_figure_name(slowdowns[i].figure) : "time",
                 saved ? comparison->devices[saved->device].origin->baseline : "a baseline");
        junit_case(junit, text, times.median);
        compare_slowdown_text(comparison, &slowdowns[i], told);
        if (slowdowns[i].reason)
            junit_outcome(junit, JUNIT_SKIPPED, "not judged", told);
        else if (slowdowns[i].is_slower)
            junit_outcome(junit, JUNIT_FAILURE, "slower", told);
        else
            junit_line(junit, "%s", told);
    }
}

enum healcl_status compare_print_junit(const struct comparison *comparison, FILE *stream)
{
    struct junit junit;
    junit_init(&junit, "healcl compare");
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        junit_suite(&junit, comparison->transcripts[i].file);
        FOR_EACH_RUN_OF(comparison, i, run)
        {
            const struct compare_device *device = &comparison->devices[run->device];
            char name[NAME_SIZE];
            if (!compare_is_own(comparison, run))
                continue;
            snprintf(name, sizeof name, "%.60s %.200s (%.200s)", device->selector, device->name,
                     device->platform);
            put_verdict(&junit, comparison, run, name);
            put_times(&junit, comparison, run, name);
        }
    }
    return junit_print(&junit, stream);
}
