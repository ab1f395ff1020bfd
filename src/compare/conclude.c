/* What the runs of a comparison come to: whose fault a failure is, and geometric means. */
#include <math.h>
#include <string.h>

#include "compare/compare.h"

/* ---------------------------------------------------------------- faults */

/* The host reference's run of the same transcript at the same place and time, or NULL. */
static const struct compare_run *reference_beside(const struct comparison *comparison,
                                                  const struct compare_run *run)
{
    const struct compare_origin *origin = comparison->devices[run->device].origin;
    for (size_t i = 0; i < comparison->device_count; i++)
        if (comparison->devices[i].origin == origin &&
            strcmp(comparison->devices[i].selector, COMPARE_REFERENCE) == 0)
            return compare_find(comparison, run->transcript, i);
    return origin->baseline ? NULL : comparison->transcripts[run->transcript].judge;
}

/* Whether any device computed what the transcript expects. */
static bool is_verified(const struct comparison *comparison, size_t transcript)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].transcript == transcript &&
            comparison->runs[i].outcome == COMPARE_VERIFIED)
            return true;
    return false;
}

/* Whether the first repetitions differ by the same values. */
static bool differ_alike(const struct compare_run *a, const struct compare_run *b)
{
    static const char later[] = "repetition "; /* one of them may have but the first */
    if (a->different != b->different)
        return false;
    for (size_t i = 0;; i++) {
        const char *one = i < a->difference_count ? a->differences[i] : later;
        const char *other = i < b->difference_count ? b->differences[i] : later;
        if (strncmp(one, later, sizeof later - 1) == 0)
            return strncmp(other, later, sizeof later - 1) == 0;
        if (strcmp(one, other) != 0)
            return false;
    }
}

static enum compare_fault fault_of(const struct comparison *comparison,
                                   const struct compare_run *run)
{
    if (compare_is_right(run))
        return COMPARE_NO_FAULT;
    if (run->outcome == COMPARE_REFUSED || run->fault == COMPARE_TRANSCRIPT_FAULT)
        return COMPARE_TRANSCRIPT_FAULT;
    if (run->outcome != COMPARE_DIFFERENT || is_verified(comparison, run->transcript))
        return COMPARE_DEVICE_FAULT;
    const struct compare_run *reference = reference_beside(comparison, run);
    bool alike =
        reference && reference->outcome == COMPARE_DIFFERENT && differ_alike(reference, run);
    return alike ? COMPARE_TRANSCRIPT_FAULT : COMPARE_DEVICE_FAULT;
}

static void find_faults(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->device_count; i++) {
        const struct compare_check *check = &comparison->devices[i].check;
        comparison->devices[i].at_fault = check->done && !check->verified;
    }
    for (size_t i = 0; i < comparison->run_count; i++) {
        struct compare_run *run = &comparison->runs[i];
        run->fault = fault_of(comparison, run);
        comparison->devices[run->device].at_fault |= run->fault == COMPARE_DEVICE_FAULT;
    }
}

/* ---------------------------------------------------------------- geometric means */

static bool is_timed(const struct compare_run *run)
{
    return run && compare_is_right(run) && run->sample_count > 0;
}

static bool has_times(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device && is_timed(&comparison->runs[i]))
            return true;
    return false;
}

size_t compare_own_devices(const struct comparison *comparison)
{
    size_t count = 0;
    while (count < comparison->device_count && !comparison->devices[count].origin->baseline)
        count++;
    return count;
}

/* Chooses the base, and the transcripts that count. */
static void choose_means(struct comparison *comparison)
{
    bool compared[COMPARE_DEVICES_MAX] = {false}; /* devices whose runs all have to be right */
    size_t own = compare_own_devices(comparison);
    comparison->base = comparison->device_count;
    for (size_t j = own; j-- > 0;) {
        compared[j] = !comparison->devices[j].at_fault && has_times(comparison, j);
        if (compared[j])
            comparison->base = j;
    }
    comparison->counting_count = 0;
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        bool all = comparison->base < comparison->device_count;
        for (size_t j = 0; all && j < own; j++)
            all = !compared[j] || is_timed(compare_find(comparison, i, j));
        comparison->transcripts[i].counts = all;
        comparison->counting_count += all;
    }
    if (comparison->counting_count == 0)
        comparison->base = comparison->device_count;
}

bool compare_mean_part(const struct comparison *comparison, size_t transcript, size_t device,
                       double *factor)
{
    const struct compare_run *run = compare_find(comparison, transcript, device);
    struct compare_times base, times;
    if (!comparison->transcripts[transcript].counts || !is_timed(run) ||
        !compare_times_of(run, &times) ||
        !compare_times_of(compare_find(comparison, transcript, comparison->base), &base))
        return false;
    *factor = (double)(base.median ? base.median : 1) / (double)(times.median ? times.median : 1);
    return true;
}

static struct compare_mean mean_of(const struct comparison *comparison, size_t device)
{
    struct compare_mean mean = {.factor = 0};
    double sum = 0, factor;
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        if (!comparison->transcripts[i].counts)
            continue;
        if (!compare_mean_part(comparison, i, device, &factor))
            return (struct compare_mean){.factor = 0};
        sum += log(factor);
        if (mean.least <= 0 || factor < mean.least) {
            mean.least = factor;
            mean.least_at = i;
        }
        if (factor > mean.most) {
            mean.most = factor;
            mean.most_at = i;
        }
    }
    if (comparison->counting_count > 0)
        mean.factor = exp(sum / (double)comparison->counting_count);
    return mean;
}

size_t compare_fastest(const struct comparison *comparison)
{
    size_t best = comparison->base;
    for (size_t j = 0; j < compare_own_devices(comparison) && best < comparison->device_count; j++)
        if (!comparison->devices[j].at_fault &&
            comparison->devices[j].mean.factor > comparison->devices[best].mean.factor)
            best = j;
    return best;
}

void compare_conclude(struct comparison *comparison)
{
    find_faults(comparison);
    choose_means(comparison);
    for (size_t j = 0; j < comparison->device_count; j++)
        comparison->devices[j].mean = mean_of(comparison, j);
}
