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

/* On how many of the transcripts that count the interval says that a device is faster, or slower.
 */
struct tally {
    size_t faster, slower;
};

static struct tally tally_of(const struct comparison *comparison, enum compare_figure figure,
                             size_t device, size_t other)
{
    struct tally tally = {0};
    struct compare_speedup speedup;
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        if (!compare_mean_part(comparison, figure, i, device, other, &speedup))
            continue;
        tally.faster += speedup.low > 1;
        tally.slower += speedup.high < 1;
    }
    return tally;
}

/* "the host reference", or a device's label */
static void put_name(const struct comparison *comparison, FILE *stream, size_t device)
{
    char label[LABEL_SIZE];
    fprintf(stream, "%s%s", compare_is_reference(&comparison->devices[device]) ? "the " : "",
            compare_device_label(comparison, device, label));
}

/* "A is faster on 2 of 3 transcripts than B, slower on 1, and" */
static void put_tally(const struct comparison *comparison, FILE *stream, struct tally tally,
                      size_t best, size_t other)
{
    put_name(comparison, stream, best);
    fprintf(stream, " is faster on %zu of %zu transcripts than ", tally.faster,
            comparison->counting_count);
    put_name(comparison, stream, other);
    if (tally.slower > 0)
        fprintf(stream, ", slower on %zu", tally.slower);
    fputs(", and ", stream);
}

static void put_pair(const struct comparison *comparison, FILE *stream, enum compare_figure figure,
                     size_t best, size_t other)
{
    struct compare_mean mean;
    if (!compare_mean_against(comparison, figure, best, other, &mean))
        return;
    char times[96];
    const bool alike = compare_is_alike(&mean);
    if (alike)
        snprintf(times, sizeof times, "%s to %s times as fast", TEXT_FACTOR(mean.low),
                 TEXT_FACTOR(mean.high));
    else
        snprintf(times, sizeof times, "%s times as fast", TEXT_FACTOR(mean.factor));
    fputs(figure == COMPARE_COMPUTE ? " In compute " : " In a steady request ", stream);
    if (comparison->counting_count > 1) {
        put_tally(comparison, stream, tally_of(comparison, figure, best, other), best, other);
        fprintf(stream, alike ? "there is no difference on average, %s" : "%s on average", times);
    } else if (alike) {
        fputs("there is no difference between ", stream);
        put_name(comparison, stream, best);
        fputs(" and ", stream);
        put_name(comparison, stream, other);
        fprintf(stream, ", %s", times);
    } else {
        put_name(comparison, stream, best);
        fprintf(stream, " is %s as ", times);
        put_name(comparison, stream, other);
    }
    put_range(comparison, stream, &mean);
    putc('.', stream);
}

/* The host reference among the devices that are compared; device_count where it is not. */
static size_t find_reference(const struct comparison *comparison)
{
    for (size_t j = 0; j < compare_own_devices(comparison); j++)
        if (compare_is_reference(&comparison->devices[j]) && !comparison->devices[j].at_fault)
            return j;
    return comparison->device_count;
}

/* The fastest device beside the host reference, and beside the next one. */
static void put_fastest(const struct comparison *comparison, FILE *stream,
                        enum compare_figure figure)
{
    const size_t none = comparison->device_count, best = compare_fastest(comparison, figure),
                 next = compare_next(comparison, figure), reference = find_reference(comparison);
    if (best == none || (next == none && reference == none))
        return;
    if (comparison->repeat < 2) {
        fputs(figure == COMPARE_COMPUTE ? " One run of each tells no device from another." : "",
              stream);
        return;
    }
    if (next < none)
        put_pair(comparison, stream, figure, best, next);
    if (reference < none)
        put_pair(comparison, stream, figure, best, reference);
}

/* ---------------------------------------------------------------- what is not known */

/* Whether a time spreads that says anything. */
static bool is_noisy(const struct compare_run *run)
{
    bool noisy = false;
    struct compare_times times;
    for (enum compare_figure i = 0; i < COMPARE_LEADING; i++)
        noisy |= compare_spreads(run, i) && compare_times_of(run, i, &times) &&
                 times.median >= COMPARE_LEAST_NANOSECONDS;
    return noisy;
}

static void put_noise(const struct comparison *comparison, FILE *stream)
{
    const struct compare_run *noisy = NULL;
    size_t count = 0;
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        if (!compare_is_own(comparison, run) || is_too_small(comparison, run->transcript) ||
            !is_noisy(run))
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
    put_fastest(comparison, stream, COMPARE_COMPUTE);
    put_fastest(comparison, stream, COMPARE_STEADY);
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
