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
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        if (run->outcome == COMPARE_VERIFIED)
            return true;
    }
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

static bool is_timed(const struct compare_run *run, enum compare_figure figure)
{
    return run && compare_is_right(run) && run->times[figure].count > 0;
}

static bool has_times(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device && is_timed(&comparison->runs[i], COMPARE_COMPUTE))
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

_Static_assert(COMPARE_LEAST_NANOSECONDS == 100000 && COMPARE_LEAST_BYTES == 16 << 10,
               "the sentence tells it");
const char compare_too_small[] =
    "Too small to tell devices apart: its operations have less than "
    "16 KiB each, or the fastest device computes for less than 0.1 ms.";

bool compare_is_reference(const struct compare_device *device)
{
    return strcmp(device->selector, COMPARE_REFERENCE) == 0;
}

/* Whether a run's operations that read or write anything, transfers aside, have so few bytes. */
static bool has_small_operations(const struct compare_run *run)
{
    double bytes = 0, count = 0;
    for (size_t i = 0; i < run->operation_count; i++) {
        const struct compare_part *kind = &run->operations[i];
        if (kind->bytes == 0 || strcmp(kind->name, "host_to_device") == 0 ||
            strcmp(kind->name, "device_to_host") == 0)
            continue;
        bytes += (double)kind->bytes;
        count += (double)kind->count;
    }
    return run->operation_count > 0 && bytes < COMPARE_LEAST_BYTES * fmax(count, 1);
}

/* By the devices here; no transcript is too small for one device alone. */
static bool is_too_small(const struct comparison *comparison, size_t transcript)
{
    bool is_known = false, is_small = false;
    uint64_t least = UINT64_MAX;
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        struct compare_times times;
        if (!compare_is_own(comparison, run) || !is_timed(run, COMPARE_COMPUTE))
            continue;
        is_small |= has_small_operations(run);
        if (compare_is_reference(&comparison->devices[run->device]) ||
            !compare_times_of(run, COMPARE_COMPUTE, &times))
            continue;
        is_known = true;
        if (times.median < least)
            least = times.median;
    }
    return comparison->device_count > 1 &&
           (is_small || (is_known && least < COMPARE_LEAST_NANOSECONDS));
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
        comparison->transcripts[i].too_small = is_too_small(comparison, i);
        bool all =
            comparison->base < comparison->device_count && !comparison->transcripts[i].too_small;
        for (size_t j = 0; all && j < own; j++)
            all = !compared[j] || is_timed(compare_find(comparison, i, j), COMPARE_COMPUTE);
        comparison->transcripts[i].counts = all;
        comparison->counting_count += all;
    }
    if (comparison->counting_count == 0)
        comparison->base = comparison->device_count;
}

bool compare_mean_part(const struct comparison *comparison, enum compare_figure figure,
                       size_t transcript, size_t device, size_t other,
                       struct compare_speedup *speedup)
{
    const struct compare_run *run = compare_find(comparison, transcript, device);
    const struct compare_run *against = compare_find(comparison, transcript, other);
    return comparison->transcripts[transcript].counts && is_timed(run, figure) &&
           is_timed(against, figure) && compare_speedup_over(against, run, figure, speedup);
}

bool compare_mean_against(const struct comparison *comparison, enum compare_figure figure,
                          size_t device, size_t other, struct compare_mean *mean)
{
    double sum = 0, sum_low = 0, sum_high = 0;
    *mean = (struct compare_mean){.factor = 0};
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        struct compare_speedup speedup;
        if (!comparison->transcripts[i].counts)
            continue;
        if (!compare_mean_part(comparison, figure, i, device, other, &speedup)) {
            *mean = (struct compare_mean){.factor = 0};
            return false;
        }
        sum += log(speedup.factor);
        sum_low += log(speedup.low);
        sum_high += log(speedup.high);
        if (mean->least <= 0 || speedup.factor < mean->least) {
            mean->least = speedup.factor;
            mean->least_at = i;
        }
        if (speedup.factor > mean->most) {
            mean->most = speedup.factor;
            mean->most_at = i;
        }
    }
    const double count = (double)comparison->counting_count;
    if (comparison->counting_count == 0)
        return false;
    mean->factor = exp(sum / count);
    mean->low = exp(sum_low / count);
    mean->high = exp(sum_high / count);
    return true;
}

bool compare_has_means(const struct comparison *comparison)
{
    return comparison->transcript_count > 1 && comparison->device_count > 1 &&
           comparison->base < comparison->device_count;
}

bool compare_is_alike(const struct compare_mean *mean)
{
    return mean->low <= 1 && mean->high >= 1;
}

/* The fastest but for one; device_count where there is none. */
static size_t fastest_but(const struct comparison *comparison, enum compare_figure figure,
                          size_t but)
{
    size_t best = comparison->device_count;
    for (size_t j = 0; j < compare_own_devices(comparison); j++) {
        const struct compare_device *device = &comparison->devices[j];
        if (j != but && !device->at_fault && !compare_is_reference(device) &&
            device->means[figure].factor > 0 &&
            (best == comparison->device_count ||
             device->means[figure].factor > comparison->devices[best].means[figure].factor))
            best = j;
    }
    return best;
}

size_t compare_fastest(const struct comparison *comparison, enum compare_figure figure)
{
    return fastest_but(comparison, figure, comparison->device_count);
}

size_t compare_next(const struct comparison *comparison, enum compare_figure figure)
{
    return fastest_but(comparison, figure, compare_fastest(comparison, figure));
}

void compare_conclude(struct comparison *comparison)
{
    char title[TITLE_SIZE];
    for (size_t j = 0; j < comparison->device_count; j++)
        comparison->devices[j].title =
            comparison_keep(comparison, compare_title(&comparison->devices[j], title));
    find_faults(comparison);
    choose_means(comparison);
    for (size_t j = 0; j < comparison->device_count; j++)
        for (enum compare_figure i = 0; i < COMPARE_LEADING; i++)
            (void)compare_mean_against(comparison, i, j, comparison->base,
                                       &comparison->devices[j].means[i]);
}
