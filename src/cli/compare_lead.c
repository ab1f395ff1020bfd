/* What a comparison comes to, in a few sentences: who is right, who is the fastest, and what keeps
 * that from being known. */
#include <string.h>

#include "cli/comparison.h"
#include "cli/text.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- who is right */

static bool is_fault_of(const cJSON *run, const char *whose)
{
    return strcmp(compare_text(run, "fault"), whose) == 0;
}

/* Whether a result was verified here and now, or is wrong by a device's fault. */
static bool any_verified(const struct comparison *comparison)
{
    const cJSON *run;
    cJSON_ArrayForEach(run, comparison->runs)
    {
        if (compare_is_own(comparison, run) &&
            (compare_has_outcome(run, "verified") ||
             (compare_has_outcome(run, "different") && is_fault_of(run, "device"))))
            return true;
    }
    return false;
}

static void put_devices_at_fault(const struct comparison *comparison, FILE *stream)
{
    const bool verified = any_verified(comparison);
    size_t right = 0, count = compare_own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += !compare_is_at_fault(comparison, i);
    if (right == count && !verified)
        fputs("Nothing was verified.", stream);
    else if (right == 1 && count == 1)
        fputs("The device is right in every result that was verified.", stream);
    else
        fprintf(stream, "%zu of %zu device%s %s right%s", right, count, count == 1 ? "" : "s",
                count == 1 ? "is" : "are",
                verified ? " in every result that was verified." : "; nothing was verified.");
}

/* ---------------------------------------------------------------- transcripts */

static const char *file_name(const struct comparison *comparison, size_t transcript)
{
    return compare_base_name(compare_text(compare_transcript(comparison, transcript), "file"));
}

/* Whether a transcript is at fault here and now, with that outcome; NULL: whether it is too small.
 */
static bool is_meant(const struct comparison *comparison, size_t transcript, const char *outcome)
{
    const cJSON *run;
    if (!outcome)
        return cJSON_IsTrue(compare_at(compare_transcript(comparison, transcript), "too_small"));
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (compare_is_own(comparison, run) && compare_has_outcome(run, outcome) &&
            is_fault_of(run, "transcript"))
            return true;
    }
    return false;
}

/* " digits.json is refused.", " 2 transcripts are refused." */
static void put_transcripts(const struct comparison *comparison, FILE *stream, const char *outcome,
                            const char *one, const char *several)
{
    size_t count = 0, last = 0, all = compare_transcript_count(comparison);
    for (size_t i = 0; i < all; i++)
        if (is_meant(comparison, i, outcome)) {
            last = i;
            count++;
        }
    if (count == 0)
        return;
    if (all == 1)
        fputs(" The transcript", stream);
    else if (count == 1)
        fprintf(stream, " %s", file_name(comparison, last));
    else
        fprintf(stream, " %zu transcripts", count);
    fprintf(stream, " %s.", count == 1 ? one : several);
}

/* ---------------------------------------------------------------- who is the fastest */

/* "the host reference", or a device's label */
static void put_name(const struct comparison *comparison, FILE *stream, size_t device)
{
    const cJSON *about = compare_device(comparison, device);
    fprintf(stream, "%s%s", compare_is_reference(about) ? "the " : "",
            compare_text(about, "label"));
}

static void put_pair(const struct comparison *comparison, FILE *stream, size_t figure, size_t best,
                     size_t other)
{
    struct compare_mean mean;
    if (!compare_mean_against(comparison, &compare_figures[figure], best, other, &mean))
        return;
    const bool alike = mean.of.low <= 1 && mean.of.high >= 1; /* the interval has 1 in it */
    const size_t counting = comparison->counting, all = compare_transcript_count(comparison);
    fputs(figure == COMPARE_COMPUTE ? " In compute " : " In a steady request ", stream);
    put_name(comparison, stream, best);
    fprintf(stream, " is faster on %zu of %zu transcript%s than ", mean.faster, counting,
            counting == 1 ? "" : "s");
    put_name(comparison, stream, other);
    if (mean.slower > 0)
        fprintf(stream, ", slower on %zu", mean.slower);
    if (alike)
        fprintf(stream, ", and there is no difference%s: %s to %s times as fast",
                counting > 1 ? " on average" : "", TEXT_FACTOR(mean.of.low),
                TEXT_FACTOR(mean.of.high));
    else
        fprintf(stream, ", and %s times as fast", TEXT_FACTOR(mean.of.factor));
    if (counting > 1 && !alike)
        fprintf(stream, " on average, from %s to %s", TEXT_FACTOR(mean.least),
                TEXT_FACTOR(mean.most));
    fputs(counting < all ? ", without those too small or not run by all." : ".", stream);
}

/* The fastest device here, not at fault and not the reference, but for one; or no device. */
static size_t fastest_but(const struct comparison *comparison, size_t figure, size_t but)
{
    size_t best = compare_device_count(comparison);
    double most = 0;
    for (size_t j = 0; j < compare_own_devices(comparison); j++) {
        const cJSON *device = compare_device(comparison, j);
        const double factor =
            compare_number(compare_at(device, compare_figures[figure].mean), "factor");
        if (j == but || factor <= most || compare_is_reference(device) ||
            compare_is_at_fault(comparison, j))
            continue;
        best = j;
        most = factor;
    }
    return best;
}

/* The host reference among the devices that are compared, or no device. */
static size_t find_reference(const struct comparison *comparison)
{
    for (size_t j = 0; j < compare_own_devices(comparison); j++)
        if (compare_is_reference(compare_device(comparison, j)) &&
            !compare_is_at_fault(comparison, j))
            return j;
    return compare_device_count(comparison);
}

/* The fastest device beside the next one and the host reference. */
static void put_fastest(const struct comparison *comparison, FILE *stream, size_t figure)
{
    const size_t none = compare_device_count(comparison),
                 best = fastest_but(comparison, figure, none),
                 next = fastest_but(comparison, figure, best),
                 reference = find_reference(comparison);
    if (best == none || (next == none && reference == none))
        return;
    if (compare_number(comparison->top, "repeat") < 2) {
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
static bool is_noisy(const struct comparison *comparison, const cJSON *run)
{
    bool noisy = false;
    for (size_t i = 0; i < COMPARE_FIGURES; i++)
        noisy |= compare_spreads(run, &compare_figures[i]) &&
                 compare_number(run, compare_figures[i].median) >= COMPARE_LEAST_NANOSECONDS;
    return noisy && compare_is_own(comparison, run) &&
           !is_meant(comparison, compare_index(run, "transcript_at"), NULL);
}

static void put_noise(const struct comparison *comparison, FILE *stream)
{
    const cJSON *run;
    size_t count = 0;
    cJSON_ArrayForEach(run, comparison->runs)
    {
        count += is_noisy(comparison, run);
    }
    if (count > 0)
        fprintf(stream, " Warning: the times of %zu run%s spread by more than %d %%.", count,
                count == 1 ? "" : "s", COMPARE_SPREAD_MAX);
}

static void put_lead(const struct comparison *comparison, FILE *stream)
{
    const size_t saved = compare_device_count(comparison) - compare_own_devices(comparison);
    const double planned = compare_number(comparison->top, "interrupted_of_runs");
    size_t made = 0;
    const cJSON *run;
    cJSON_ArrayForEach(run, comparison->runs)
    {
        made += compare_is_own(comparison, run);
    }
    if (planned > 0)
        fprintf(stream, "Interrupted: %zu of %.0f runs were made. ", made, planned);
    put_devices_at_fault(comparison, stream);
    put_transcripts(comparison, stream, "refused", "is refused", "are refused");
    put_transcripts(comparison, stream, "different",
                    "expects other values than the host reference computes",
                    "expect other values than the host reference computes");
    put_transcripts(comparison, stream, NULL, "is too small to tell devices apart",
                    "are too small to tell devices apart");
    put_fastest(comparison, stream, COMPARE_COMPUTE);
    put_fastest(comparison, stream, COMPARE_STEADY);
    put_noise(comparison, stream);
    if (saved > 0)
        fprintf(stream, " %zu device%s of saved runs %s beside.", saved, saved == 1 ? "" : "s",
                saved == 1 ? "stands" : "stand");
}

char *compare_lead(const struct comparison *comparison)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        xmalloc_fail();
    put_lead(comparison, stream);
    if (fclose(stream) != 0)
        xmalloc_fail();
    return text;
}
