/* Sentences about a comparison: names of devices, verdicts, and a lead that says which devices are
 * right and which is the fastest. */
#include <stdlib.h>
#include <string.h>

#include "cli/comparison.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- names */

/* Without marks of trades, and with one blank between words. */
const char *compare_plain_name(char text[NAME_SIZE], const char *name)
{
    static const char *const marks[] = {"(R)", "(r)", "(TM)", "(tm)", "(C)", " "};
    size_t length = 0;
    for (bool blank = false; *name && length + 2 < NAME_SIZE;) {
        size_t i = 0;
        while (i < 6 && strncmp(name, marks[i], strlen(marks[i])) != 0)
            i++;
        if (i == 6 && blank && length > 0)
            text[length++] = ' ';
        if (i == 6)
            text[length++] = *name;
        blank = i == 5 || (blank && i < 6);
        name += i == 6 ? 1 : strlen(marks[i]);
    }
    text[length] = 0;
    return text;
}

/* "PoCL 3.1 on AMD EPYC 9354", or the device's name. A processor is driven by several drivers,
 * which give it names of their own: what tells them apart are they. */
static void put_title(const struct comparison *comparison, cJSON *device)
{
    char name[NAME_SIZE], platform[NAME_SIZE], version[NAME_SIZE] = "";
    const cJSON *at = json_at(device, "baseline") ? device : comparison->top;
    const char *processor = json_text(at, "host.processor"), *driver = json_text(device, "driver");
    unsigned major, minor;
    if (strcmp(json_text(device, "type"), "cpu") != 0 || !*processor ||
        cJSON_IsTrue(json_at(device, "emulator"))) {
        compare_plain_name(name, json_text(device, "name"));
        compare_put_text(device, "title", *name ? name : json_text(device, "index"));
        return;
    }
    compare_plain_name(name, processor);
    compare_plain_name(platform, json_text(device, "platform"));
    if (sscanf(driver, "%u.%u", &major, &minor) == 2)
        snprintf(version, sizeof version, " %u.%u", major, minor);
    char *title = xasprintf(
        "%s%s on %s", strcmp(platform, "Portable Computing Language") == 0 ? "PoCL" : platform,
        version, name);
    compare_put_text(device, "title", title);
    free(title);
}

/* The title, and where others have the same the selector and a baseline's file. */
static void put_label(const struct comparison *comparison, cJSON *device)
{
    const char *baseline = json_text(device, "baseline");
    const cJSON *other;
    size_t alike = 0;
    cJSON_ArrayForEach(other, comparison->devices)
    {
        alike += compare_same(other, device, "title") &&
                 !json_at(other, "baseline") == !json_at(device, "baseline");
    }
    char *place = alike < 2 ? xstrdup("")
                            : xasprintf(" (%s%s%s)", json_text(device, "index"),
                                        *baseline ? ", " : "", text_base_name(baseline));
    char *label =
        xasprintf("%s%s%s", *baseline ? "(baseline) " : "", json_text(device, "title"), place);
    compare_put_text(device, "label", label);
    free(place);
    free(label);
}

void compare_name_devices(struct comparison *comparison)
{
    cJSON *device;
    cJSON_ArrayForEach(device, comparison->devices) put_title(comparison, device);
    cJSON_ArrayForEach(device, comparison->devices) put_label(comparison, device);
}

/* ---------------------------------------------------------------- verdicts */

char *compare_outcome_text(const struct comparison *comparison, const cJSON *run)
{
    char signal[PROCESS_SIGNAL_SIZE];
    const bool is_partial =
        compare_number(run, "results.compared") < compare_number(run, "results.total");
    if (json_is(run, "outcome", "crashed") && json_at(run, "signal"))
        return xasprintf("crashed: %s",
                         process_signal_name((int)compare_number(run, "signal"), signal));
    if (json_is(run, "outcome", "timed out") && compare_is_own(comparison, run))
        return xasprintf("timed out: %.0f s", compare_number(comparison->top, "timeout_s"));
    if (json_is(run, "outcome", "different"))
        return view_fill(
            run, json_is(run, "fault", "transcript")
                     ? "{outcome}: {results.different} of {results.compared}, transcript's fault"
                     : "{outcome}: {results.different} of {results.compared}");
    if (json_is(run, "outcome", "unproven"))
        return view_fill(run, "{outcome}: {results.compared} of {results.total} compared");
    if (json_is(run, "outcome", "verified") && is_partial)
        return view_fill(run, "{outcome}: {results.compared} of {results.total}");
    return view_fill(run, json_is(run, "outcome", "failed") ? "{outcome}[: exit code {exit_code}]"
                                                            : "{outcome}");
}

/* ---------------------------------------------------------------- who is right */

/* Whether a result was verified here and now, or is wrong by a device's fault. */
static bool any_verified(const struct comparison *comparison)
{
    const cJSON *run;
    cJSON_ArrayForEach(run, comparison->runs)
    {
        if (compare_is_own(comparison, run) &&
            (json_is(run, "outcome", "verified") ||
             (json_is(run, "outcome", "different") && json_is(run, "fault", "device"))))
            return true;
    }
    return false;
}

static void put_devices_at_fault(const struct comparison *comparison, FILE *stream)
{
    size_t right = 0, count = compare_own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += !compare_is_at_fault(comparison, i);
    if (right == count && !any_verified(comparison))
        fputs("Nothing was verified.", stream);
    else
        fprintf(stream, "%zu of %zu device%s right in every result that was verified.", right,
                count, count == 1 ? " is" : "s are");
}

/* ---------------------------------------------------------------- transcripts */

/* Whether a transcript is at fault here and now, with that outcome; NULL: whether it is too small.
 */
static bool is_meant(const struct comparison *comparison, size_t transcript, const char *outcome)
{
    const cJSON *run;
    if (!outcome)
        return cJSON_IsTrue(json_at(compare_transcript(comparison, transcript), "too_small"));
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (compare_is_own(comparison, run) && json_is(run, "outcome", outcome) &&
            json_is(run, "fault", "transcript"))
            return true;
    }
    return false;
}

/* " 1 transcript is refused.", " 2 transcripts are refused." */
static void put_transcripts(const struct comparison *comparison, FILE *stream, const char *outcome,
                            const char *one, const char *several)
{
    size_t count = 0;
    for (size_t i = 0; i < json_number_at(comparison->top, "transcripts"); i++)
        count += is_meant(comparison, i, outcome);
    if (count > 0)
        fprintf(stream, " %zu transcript%s %s.", count, count == 1 ? "" : "s",
                count == 1 ? one : several);
}

/* ---------------------------------------------------------------- who is the fastest */

static void put_pair(const struct comparison *comparison, FILE *stream, size_t figure, size_t best,
                     size_t other)
{
    struct compare_mean mean;
    const cJSON *against = compare_device(comparison, other);
    const size_t counting = comparison->counting,
                 all = json_number_at(comparison->top, "transcripts");
    if (!compare_mean_against(comparison, &compare_figures[figure], best, other, &mean))
        return;
    const bool alike = mean.of.low <= 1 && mean.of.high >= 1; /* the interval has 1 in it */
    fprintf(stream, " In %s %s is faster on %zu of %zu transcript%s than %s%s",
            figure == COMPARE_COMPUTE ? "compute" : "a steady request",
            json_text(compare_device(comparison, best), "label"), mean.faster, counting,
            counting == 1 ? "" : "s", json_is(against, "index", COMPARE_REFERENCE) ? "the " : "",
            json_text(against, "label"));
    if (mean.slower > 0)
        fprintf(stream, ", slower on %zu", mean.slower);
    fprintf(stream, ", and %s%s times as fast%s (%s to %s)",
            alike ? "there is no difference: " : "", TEXT_FACTOR(mean.of.factor),
            counting > 1 ? " on average" : "",
            TEXT_FACTOR(alike || counting == 1 ? mean.of.low : mean.least),
            TEXT_FACTOR(alike || counting == 1 ? mean.of.high : mean.most));
    fputs(counting < all ? ", without those too small or not run by all." : ".", stream);
}

/* The fastest device here, not at fault and not the reference, but for one; or no device. */
static size_t fastest_but(const struct comparison *comparison, size_t figure, size_t but)
{
    size_t best = json_number_at(comparison->top, "devices");
    double most = 0;
    for (size_t j = 0; j < compare_own_devices(comparison); j++) {
        const cJSON *device = compare_device(comparison, j);
        const double factor =
            compare_number(json_at(device, compare_figures[figure].mean), "factor");
        if (j == but || factor <= most || json_is(device, "index", COMPARE_REFERENCE) ||
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
        if (json_is(compare_device(comparison, j), "index", COMPARE_REFERENCE) &&
            !compare_is_at_fault(comparison, j))
            return j;
    return json_number_at(comparison->top, "devices");
}

/* The fastest device beside the next one and the host reference. */
static void put_fastest(const struct comparison *comparison, FILE *stream, size_t figure)
{
    const size_t none = json_number_at(comparison->top, "devices"),
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
           !is_meant(comparison, json_number_at(run, "transcript_at"), NULL);
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
    const size_t saved =
        json_number_at(comparison->top, "devices") - compare_own_devices(comparison);
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
