/* What a comparison comes to, in a few sentences: who is right, who is the fastest, and what keeps
 * that from being known. */
#include <stdlib.h>

#include "compare/compare.h"
#include "report/text.h"

/* ---------------------------------------------------------------- who is right */

/* Whether a result was verified here and now, or is wrong by a device's fault. */
static bool any_verified(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        if (compare_is_own(comparison, run) &&
            (run->outcome == COMPARE_VERIFIED ||
             (run->outcome == COMPARE_DIFFERENT && run->fault == COMPARE_DEVICE_FAULT)))
            return true;
    }
    return false;
}

static void put_devices_at_fault(const struct comparison *comparison, FILE *stream)
{
    size_t right = 0, count = compare_own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += !comparison->devices[i].at_fault;
    if (right == count && !any_verified(comparison))
        fputs("Nothing was verified.", stream);
    else if (right > 0 && !any_verified(comparison))
        fprintf(stream, "Nothing was verified, and %zu of %zu devices failed.", count - right,
                count);
    else if (count == 1)
        fputs(right ? "The device is right in every result that was verified."
                    : "The device did not get it right.",
              stream);
    else if (right == 0)
        fprintf(stream, "None of %zu devices got everything right.", count);
    else if (right == count)
        fprintf(stream, "All %zu devices are right in every result that was verified.", count);
    else
        fprintf(stream, "%zu of %zu devices are right.", right, count);
}

/* ---------------------------------------------------------------- transcripts */

typedef bool transcript_test(const struct comparison *comparison, size_t transcript);

/* Whether a transcript is at fault here and now, in that way. */
static bool is_at_fault(const struct comparison *comparison, size_t transcript,
                        enum compare_outcome how)
{
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        if (compare_is_own(comparison, run) && run->outcome == how &&
            run->fault == COMPARE_TRANSCRIPT_FAULT)
            return true;
    }
    return false;
}

static bool is_refused(const struct comparison *comparison, size_t transcript)
{
    return is_at_fault(comparison, transcript, COMPARE_REFUSED);
}

static bool expects_other_values(const struct comparison *comparison, size_t transcript)
{
    return is_at_fault(comparison, transcript, COMPARE_DIFFERENT);
}

static bool is_too_small(const struct comparison *comparison, size_t transcript)
{
    return comparison->transcripts[transcript].too_small;
}

/* " digits.json is refused.", " 2 transcripts are refused." */
static void put_transcripts(const struct comparison *comparison, FILE *stream,
                            transcript_test *test, const char *one, const char *several)
{
    size_t count = 0, last = 0;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        if (test(comparison, i)) {
            last = i;
            count++;
        }
    if (count == 0)
        return;
    if (comparison->transcript_count == 1)
        fputs(" The transcript", stream);
    else if (count == 1)
        fprintf(stream, " %s", compare_base_name(comparison->transcripts[last].file));
    else
        fprintf(stream, " %zu transcripts", count);
    fprintf(stream, " %s.", count == 1 ? one : several);
}

/* "recognizer.json and digits.json", or how many. */
static void put_counting(const struct comparison *comparison, FILE *stream)
{
    enum { NAMED_MAX = 3 };
    size_t told = 0, count = comparison->counting_count;
    if (count > NAMED_MAX && count == comparison->transcript_count) {
        fprintf(stream, "all %zu transcripts", count);
    } else if (count > NAMED_MAX) {
        fprintf(stream, "%zu of %zu transcripts", count, comparison->transcript_count);
    } else {
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            if (!comparison->transcripts[i].counts)
                continue;
            told++;
            fprintf(stream, "%s%s",
                    told == 1       ? ""
                    : told == count ? " and "
                                    : ", ",
                    compare_base_name(comparison->transcripts[i].file));
        }
    }
}

/* ---------------------------------------------------------------- who is the fastest */

/* "1.09 (digits.json)" */
static void put_extreme(const struct comparison *comparison, FILE *stream, double factor,
                        size_t transcript)
{
    fprintf(stream, "%s (%s)", TEXT_FACTOR(factor),
            compare_base_name(comparison->transcripts[transcript].file));
}

/* ": the geometric mean over a.json and b.json, from 1.09 (b.json) to 2.74 (a.json)" */
static void put_range(const struct comparison *comparison, FILE *stream,
                      const struct compare_mean *mean)
{
    if (comparison->transcript_count < 2)
        return;
    fputs(comparison->counting_count > 1 ? ": the geometric mean over " : " on ", stream);
    put_counting(comparison, stream);
    if (comparison->counting_count < 2)
        return;
    fputs(", from ", stream);
    put_extreme(comparison, stream, mean->least, mean->least_at);
    fputs(" to ", stream);
    put_extreme(comparison, stream, mean->most, mean->most_at);
}

static void put_pair(const struct comparison *comparison, FILE *stream, size_t best, size_t other)
{
    char name[LABEL_SIZE], next[LABEL_SIZE];
    struct compare_mean mean;
    if (!compare_mean_against(comparison, best, other, &mean))
        return;
    compare_device_label(comparison, best, name);
    compare_device_label(comparison, other, next);
    if (compare_is_alike(&mean))
        fprintf(stream, " There is no difference%s between %s and %s, %s to %s times as fast",
                comparison->counting_count > 1 ? " on average" : "", name, next,
                TEXT_FACTOR(mean.low), TEXT_FACTOR(mean.high));
    else if (compare_is_reference(&comparison->devices[other]))
        fprintf(stream, " %s is %s times as fast as the %s", name, TEXT_FACTOR(mean.factor), next);
    else
        fprintf(stream, " The fastest is %s, %s times as fast as %s", name,
                TEXT_FACTOR(mean.factor), next);
    put_range(comparison, stream, &mean);
    putc('.', stream);
}

/* The host reference among the devices that are compared; device_count where it is not. */
static size_t find_reference(const struct comparison *comparison)
{
    for (size_t j = 0; j < compare_own_devices(comparison); j++)
        if (compare_is_reference(&comparison->devices[j]) &&
            comparison->devices[j].mean.factor > 0 && !comparison->devices[j].at_fault)
            return j;
    return comparison->device_count;
}

static void put_fastest(const struct comparison *comparison, FILE *stream)
{
    const size_t none = comparison->device_count, best = compare_fastest(comparison),
                 next = compare_next(comparison), reference = find_reference(comparison);
    if (best == none)
        return;
    const double factor = comparison->devices[best].mean.factor;
    if (reference < none && comparison->devices[reference].mean.factor >= factor)
        fputs(" No device is faster than the host reference.", stream);
    else if (reference < none && next == none)
        put_pair(comparison, stream, best, reference);
    if (next < none)
        put_pair(comparison, stream, best, next);
}

/* ---------------------------------------------------------------- what is not known */

static void put_noise(const struct comparison *comparison, FILE *stream)
{
    const struct compare_run *noisy = NULL;
    size_t count = 0;
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        if (!compare_is_own(comparison, run) || !compare_is_noisy(run))
            continue;
        noisy = run;
        count++;
    }
    char label[LABEL_SIZE];
    if (count == 1)
        fprintf(stream, " Warning: the times of %s on %s spread by more than %d %%.",
                compare_device_label(comparison, noisy->device, label),
                compare_base_name(comparison->transcripts[noisy->transcript].file),
                COMPARE_SPREAD_MAX);
    else if (count > 1)
        fprintf(stream, " Warning: the times of %zu runs spread by more than %d %%.", count,
                COMPARE_SPREAD_MAX);
}

static size_t own_runs(const struct comparison *comparison)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->run_count; i++)
        count += compare_is_own(comparison, &comparison->runs[i]);
    return count;
}

static void put_lead(const struct comparison *comparison, FILE *stream)
{
    const size_t saved = comparison->device_count - compare_own_devices(comparison);
    if (comparison->planned > 0)
        fprintf(stream, "Interrupted: %zu of %zu runs were made. ", own_runs(comparison),
                comparison->planned);
    put_devices_at_fault(comparison, stream);
    put_transcripts(comparison, stream, is_refused, "is refused", "are refused");
    put_transcripts(comparison, stream, expects_other_values,
                    "expects other values than the host reference computes",
                    "expect other values than the host reference computes");
    put_transcripts(comparison, stream, is_too_small, "is too small to tell devices apart",
                    "are too small to tell devices apart");
    put_fastest(comparison, stream);
    put_noise(comparison, stream);
    if (saved > 0)
        fprintf(stream, " Beside them stand%s %zu of saved runs.", saved == 1 ? "s" : "", saved);
}

char *compare_lead(const struct comparison *comparison)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    put_lead(comparison, stream);
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}
