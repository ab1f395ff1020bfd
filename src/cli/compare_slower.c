/*
 * Times beside those of a baseline, with intervals that no distribution is assumed for.
 *
 * A sample is below the median of what it is drawn from like heads of a coin. So the r-th smallest
 * and the r-th largest of n samples have it between them unless fewer than r of n coins fall on one
 * side, however the times are distributed. The interval of a median misses it in 2.5 % of cases at
 * most, and so that of the ratio of two in 5 % at most.
 */
#include <stdlib.h>

#include "cli/comparison.h"
#include "cli/text.h"
#include "core/numbers.h"
#include "tools/xmalloc.h"

enum { SAMPLES_LEAST = 7 }; /* of both runs, for an interval */

struct interval {
    uint64_t median, low, high;
};

/* False where there are too few samples. */
static bool interval_of(const cJSON *samples, struct interval *interval)
{
    const double confidence = 0.975;
    size_t count;
    uint64_t *sorted = compare_sorted(samples, &count);
    const size_t rank = median_rank(count, confidence);
    if (rank > 0)
        *interval = (struct interval){.median = sort_to_median(sorted, count),
                                      .low = sorted[rank - 1],
                                      .high = sorted[count - rank]};
    free(sorted);
    return rank > 0;
}

/* ---------------------------------------------------------------- which runs belong together */

static bool is_called_as(const cJSON *a, const cJSON *b)
{
    return compare_same(a, b, "name") && compare_same(a, b, "platform");
}

/* Whether saved is what a device here was: called the same, in a host with the same processor.
 * Where its baseline has several of them it is the one with the same index, if there is one. */
static bool is_same_device(const struct comparison *comparison, const cJSON *device,
                           const cJSON *saved)
{
    if (!compare_at(saved, "baseline") || !is_called_as(device, saved) ||
        !compare_same(comparison->top, saved, "host.processor"))
        return false;
    if (compare_same(device, saved, "index"))
        return true;
    const cJSON *other;
    cJSON_ArrayForEach(other, comparison->devices)
    {
        if (compare_same(other, saved, "baseline") && is_called_as(device, other) &&
            compare_same(device, other, "index"))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- slowdowns */

static void hold_against(const struct comparison *comparison, const cJSON *run, const cJSON *saved,
                         const struct compare_figure *figure, cJSON *slowdown)
{
    struct interval now, before;
    const cJSON *here = compare_at(run, figure->samples),
                *there = compare_at(saved, figure->samples);
    const double allowed = 1 + compare_number(comparison->top, "fail_slower_percent") / 100;
    const char *reason = NULL;
    if (!compare_is_right(saved))
        reason = "it was not right there";
    else if (compare_spreads(run, figure))
        reason = "its times here spread by more than 30 %";
    else if (compare_spreads(saved, figure))
        reason = "its times there spread by more than 30 %";
    if (reason) {
        compare_put_text(slowdown, "not_judged_because", reason);
    } else if (!interval_of(here, &now) || !interval_of(there, &before)) {
        char *text = xasprintf("too few runs for an interval (%d here, %d there, %d of each are "
                               "needed)",
                               cJSON_GetArraySize(here), cJSON_GetArraySize(there), SAMPLES_LEAST);
        compare_put_text(slowdown, "not_judged_because", text);
        free(text);
    } else {
        const double low = ratio_of_times(now.low, before.high);
        compare_put_factor(slowdown, "factor", ratio_of_times(now.median, before.median));
        compare_put_factor(slowdown, "low", low);
        compare_put_factor(slowdown, "high", ratio_of_times(now.high, before.low));
        compare_put(slowdown, "slower", cJSON_CreateBool(low > allowed));
    }
}

static cJSON *add_slowdown(cJSON *list)
{
    cJSON *slowdown = cJSON_CreateObject();
    cJSON_AddItemToArray(list, slowdown);
    return slowdown;
}

/* One for each figure of each baseline that has the device. */
static void add_slowdowns(const struct comparison *comparison, const cJSON *run, cJSON *list)
{
    const cJSON *device = compare_device(comparison, compare_index(run, "device_at")), *other;
    size_t at = 0;
    cJSON_ArrayForEach(other, comparison->devices)
    {
        const cJSON *saved = compare_find(comparison, compare_index(run, "transcript_at"), at++);
        if (!saved || !is_same_device(comparison, device, other))
            continue;
        for (size_t i = 0; i < COMPARE_FIGURES; i++) {
            cJSON *slowdown = add_slowdown(list);
            compare_put_text(slowdown, "figure", compare_figures[i].name);
            compare_put_text(slowdown, "baseline", compare_text(other, "baseline"));
            hold_against(comparison, run, saved, &compare_figures[i], slowdown);
        }
    }
}

static bool is_slower(const cJSON *run)
{
    const cJSON *slowdown;
    cJSON_ArrayForEach(slowdown, compare_at(run, "slowdowns"))
    {
        if (cJSON_IsTrue(compare_at(slowdown, "slower")))
            return true;
    }
    return false;
}

bool compare_judge(const struct comparison *comparison, cJSON *run)
{
    if (!compare_at(comparison->top, "fail_slower_percent") || !compare_is_own(comparison, run) ||
        !compare_is_right(run))
        return false;
    cJSON *list = cJSON_CreateArray();
    add_slowdowns(comparison, run, list);
    if (!list->child)
        compare_put_text(add_slowdown(list), "not_judged_because",
                         "no baseline has this transcript on this device and processor");
    compare_put(run, "slowdowns", list);
    return is_slower(run);
}

char *compare_slowdown_text(const struct comparison *comparison, const cJSON *slowdown)
{
    const char *reason = compare_text(slowdown, "not_judged_because"),
               *name = compare_text(slowdown, "figure"), *file = compare_text(slowdown, "baseline");
    if (!*name)
        return xasprintf("its time is not judged: %s", reason);
    if (*reason)
        return xasprintf("%s: it is not judged by %.300s: %s", name, file, reason);
    return xasprintf(
        "%s: %s times the time in %.300s (%s to %s at 95 %%), %s %g %% slower", name,
        TEXT_FACTOR(compare_number(slowdown, "factor")), file,
        TEXT_FACTOR(compare_number(slowdown, "low")), TEXT_FACTOR(compare_number(slowdown, "high")),
        cJSON_IsTrue(compare_at(slowdown, "slower")) ? "more than" : "not certainly more than",
        compare_number(comparison->top, "fail_slower_percent"));
}

/* ---------------------------------------------------------------- all of them */

static enum compare_news news_of(const cJSON *run)
{
    if (compare_is_right(run))
        return is_slower(run) ? COMPARED_SLOWER : COMPARED_RIGHT;
    return compare_has_outcome(run, "different") ? COMPARED_DIFFERENT
           : compare_has_outcome(run, "refused") ? COMPARED_REFUSED
                                                 : COMPARED_FAILED;
}

enum compare_news compare_worst(const struct comparison *comparison)
{
    enum compare_news worst = COMPARED_RIGHT;
    const cJSON *run;
    cJSON_ArrayForEach(run, comparison->runs)
    {
        if (compare_is_own(comparison, run) && news_of(run) > worst)
            worst = news_of(run);
    }
    return worst;
}
