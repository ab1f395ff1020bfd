/*
 * Times beside those of a baseline, with intervals that no distribution is assumed for.
 *
 * A sample is below the median of what it is drawn from like heads of a coin. So the r-th smallest
 * and the r-th largest of n samples have it between them unless fewer than r of n coins fall on one
 * side, however the times are distributed. The interval of a median misses it in 2.5 % of cases at
 * most, and so that of the ratio of two in 5 % at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "core/numbers.h"
#include "report/text.h"

static const double CONFIDENCE = 0.975;
static const char too_few[] = "too few runs for an interval";

struct interval {
    uint64_t median, low, high;
};

/* Returns false where there are too few samples, or no memory to sort them in. */
static bool interval_of(const struct compare_samples *samples, struct interval *interval)
{
    const size_t count = samples->count;
    const size_t rank = median_rank(count, CONFIDENCE);
    uint64_t *sorted = rank > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (!sorted)
        return false;
    memcpy(sorted, samples->of, count * sizeof *sorted);
    interval->median = sort_to_median(sorted, count);
    interval->low = sorted[rank - 1];
    interval->high = sorted[count - rank];
    free(sorted);
    return true;
}

/* ---------------------------------------------------------------- which runs belong together */

static bool is_called_as(const struct compare_device *a, const struct compare_device *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->platform, b->platform) == 0;
}

/* Whether saved is what device was: called the same, in a host with the same processor. Where its
 * baseline has several of them it is the one with the same index, if there is one. */
static bool is_same_device(const struct comparison *comparison, const struct compare_device *device,
                           const struct compare_device *saved)
{
    if (!saved->origin->baseline || !is_called_as(device, saved) ||
        strcmp(device->origin->processor, saved->origin->processor) != 0)
        return false;
    if (strcmp(device->selector, saved->selector) == 0)
        return true;
    for (size_t i = 0; i < comparison->device_count; i++) {
        const struct compare_device *other = &comparison->devices[i];
        if (other->origin == saved->origin && is_called_as(device, other) &&
            strcmp(device->selector, other->selector) == 0)
            return false;
    }
    return true;
}

static void hold_against(const struct comparison *comparison, const struct compare_run *run,
                         const struct compare_run *saved, enum compare_figure figure,
                         struct compare_slowdown *slowdown)
{
    struct interval now, before;
    *slowdown = (struct compare_slowdown){.figure = figure, .run = run, .baseline = saved};
    if (!compare_is_right(saved)) {
        slowdown->reason = "it was not right there";
    } else if (compare_spreads(run, figure)) {
        slowdown->reason = "its times here spread by more than 30 %";
    } else if (compare_spreads(saved, figure)) {
        slowdown->reason = "its times there spread by more than 30 %";
    } else if (!interval_of(&run->times[figure], &now) ||
               !interval_of(&saved->times[figure], &before)) {
        slowdown->reason = too_few;
    } else {
        slowdown->ratio = ratio_of_times(now.median, before.median);
        slowdown->low = ratio_of_times(now.low, before.high);
        slowdown->high = ratio_of_times(now.high, before.low);
        slowdown->is_slower = slowdown->low > 1 + comparison->fail_slower / 100;
    }
}

size_t compare_slowdowns_of(const struct comparison *comparison, const struct compare_run *run,
                            struct compare_slowdown slowdowns[SLOWDOWNS_MAX])
{
    const struct compare_device *device = &comparison->devices[run->device];
    size_t count = 0;
    if (!comparison->judges_times || device->origin->baseline || !compare_is_right(run))
        return 0;
    for (size_t i = 0; i < comparison->device_count; i++) {
        const struct compare_run *saved = compare_find(comparison, run->transcript, i);
        if (!saved || !is_same_device(comparison, device, &comparison->devices[i]))
            continue;
        for (enum compare_figure figure = 0; figure < COMPARE_LEADING; figure++)
            hold_against(comparison, run, saved, figure, &slowdowns[count++]);
    }
    if (count > 0)
        return count;
    slowdowns[0] = (struct compare_slowdown){
        .run = run, .reason = "no baseline has this transcript on this device and processor"};
    return 1;
}

bool compare_is_slower(const struct comparison *comparison, const struct compare_run *run)
{
    struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
    const size_t count = compare_slowdowns_of(comparison, run, slowdowns);
    for (size_t i = 0; i < count; i++)
        if (slowdowns[i].is_slower)
            return true;
    return false;
}

const char *compare_slowdown_text(const struct comparison *comparison,
                                  const struct compare_slowdown *slowdown,
                                  char text[SLOWDOWN_TEXT_SIZE])
{
    const struct compare_run *saved = slowdown->baseline;
    const char *file = saved ? comparison->devices[saved->device].origin->baseline : "";
    const char *name = compare_figure_name(slowdown->figure);
    if (!saved)
        snprintf(text, SLOWDOWN_TEXT_SIZE, "its time is not judged: %s", slowdown->reason);
    else if (slowdown->reason == too_few)
        snprintf(text, SLOWDOWN_TEXT_SIZE,
                 "%s: it is not judged by %.300s: %s (%zu here, %zu there, %d of each are needed)",
                 name, file, too_few, slowdown->run->times[slowdown->figure].count,
                 saved->times[slowdown->figure].count, SLOWDOWN_SAMPLES);
    else if (slowdown->reason)
        snprintf(text, SLOWDOWN_TEXT_SIZE, "%s: it is not judged by %.300s: %s", name, file,
                 slowdown->reason);
    else
        snprintf(text, SLOWDOWN_TEXT_SIZE,
                 "%s: %s times the time in %.300s (%s to %s at 95 %%), %s %g %% slower", name,
                 TEXT_FACTOR(slowdown->ratio), file, TEXT_FACTOR(slowdown->low),
                 TEXT_FACTOR(slowdown->high),
                 slowdown->is_slower ? "more than" : "not certainly more than",
                 comparison->fail_slower);
    return text;
}

/* ---------------------------------------------------------------- all of them */

static enum compare_news news_of(const struct comparison *comparison, const struct compare_run *run)
{
    switch (run->outcome) {
    case COMPARE_VERIFIED:
    case COMPARE_UNVERIFIED:
        return compare_is_slower(comparison, run) ? COMPARED_SLOWER : COMPARED_RIGHT;
    case COMPARE_DIFFERENT: return COMPARED_DIFFERENT;
    case COMPARE_REFUSED: return COMPARED_REFUSED;
    case COMPARE_UNPROVEN:
    case COMPARE_FAILED:
    case COMPARE_CRASHED:
    case COMPARE_TIMED_OUT: break;
    }
    return COMPARED_FAILED;
}

enum compare_news compare_worst(const struct comparison *comparison)
{
    enum compare_news worst = COMPARED_RIGHT;
    for (size_t i = 0; i < compare_own_devices(comparison); i++) {
        const struct compare_check *check = &comparison->devices[i].check;
        const enum compare_news news = !check->done || check->verified ? COMPARED_RIGHT
                                       : check->failed > 0             ? COMPARED_DIFFERENT
                                                                       : COMPARED_FAILED;
        worst = news > worst ? news : worst;
    }
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        const enum compare_news news =
            compare_is_own(comparison, run) ? news_of(comparison, run) : COMPARED_RIGHT;
        worst = news > worst ? news : worst;
    }
    return worst;
}
