/* Sentences about a comparison: names of devices, verdicts, and a summary of which devices are
 * right and which is fastest. */

#include "cli/comparison.h"

/* ---------------------------------------------------------------- names */

/* Removes trademark signs, and leaves one blank between words. */
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

/* "PoCL 3.1 on AMD EPYC 9354", or the device's name. Several drivers may run on one processor and
 * name it differently, so the title names the driver. */
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
    const bool is_pocl = strcmp(platform, "Portable Computing Language") == 0;
    compare_put_text(device, "title",
                     xformat("%s%s on %s", is_pocl ? "PoCL" : platform, version, name));
}

/* The title. If other devices have the same title, the selector and a baseline's file are added. */
static void put_label(const struct comparison *comparison, cJSON *device)
{
    const char *baseline = json_text(device, "baseline");
    size_t alike = 0;
    JSON_EACH(other, comparison->devices)
    {
        alike += compare_same(other, device, "title") &&
                 !json_at(other, "baseline") == !json_at(device, "baseline");
    }
    const char *place = alike < 2 ? ""
                                  : xformat(" (%s%s%s)", json_text(device, "index"),
                                            *baseline ? ", " : "", text_base_name(baseline));
    compare_put_text(
        device, "label",
        xformat("%s%s%s", *baseline ? "(baseline) " : "", json_text(device, "title"), place));
}

void compare_name_devices(struct comparison *comparison)
{
    JSON_EACH(device, comparison->devices) put_title(comparison, device);
    JSON_EACH(device, comparison->devices) put_label(comparison, device);
}

/* ---------------------------------------------------------------- verdicts */

const char *compare_outcome_text(const struct comparison *comparison, const cJSON *run)
{
    char signal[PROCESS_SIGNAL_SIZE];
    const bool is_partial =
        compare_number(run, "results.compared") < compare_number(run, "results.total");
    if (json_is(run, "outcome", "crashed") && json_at(run, "signal"))
        return xformat("crashed: %s",
                       process_signal_name((int)compare_number(run, "signal"), signal));
    if (json_is(run, "outcome", "timed out") && compare_is_own(comparison, run))
        return xformat("timed out: %.0f s", compare_number(comparison->top, "timeout_s"));
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

/* A device's results in this comparison, without transcripts that are at fault themselves. */
struct tally {
    /* Results of its runs; runs without a verdict, and all runs. */
    size_t right, compared, failed, runs;
};

static struct tally tally_of(const struct comparison *comparison, size_t device)
{
    struct tally tally = {0, 0, 0, 0};
    JSON_EACH(run, comparison->runs)
    {
        if (json_number_at(run, "device_at") != device || json_is(run, "fault", "transcript"))
            continue;
        const size_t compared = json_number_at(run, "results.compared"),
                     different = json_number_at(run, "results.different");
        tally.runs++;
        tally.failed += json_is(run, "fault", "device") && !json_is(run, "outcome", "different");
        tally.compared += compared;
        tally.right += different < compared ? compared - different : 0;
    }
    return tally;
}

/* Prints how many results each device computed correctly. */
static void put_right(const struct comparison *comparison, FILE *stream)
{
    bool any = false;
    for (size_t i = 0; i < compare_own_devices(comparison); i++) {
        const struct tally tally = tally_of(comparison, i);
        const cJSON *device = compare_device(comparison, i);
        if (tally.compared == 0 && tally.failed == 0)
            continue;
        fprintf(stream, "%s%s%s got %zu of %zu results right", any ? " " : "",
                json_is(device, "index", COMPARE_REFERENCE) ? "The " : "",
                json_text(device, "label"), tally.right, tally.compared);
        if (tally.failed > 0)
            fprintf(stream, " and failed in %zu of %zu runs", tally.failed, tally.runs);
        putc('.', stream);
        any = true;
    }
    if (!any)
        fputs("Nothing was verified.", stream);
}

/* ---------------------------------------------------------------- transcripts */

/* Whether a transcript of this comparison is at fault with this outcome; NULL: whether it is too
 * small. */
static bool is_meant(const struct comparison *comparison, size_t transcript, const char *outcome)
{
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
    const size_t counting = comparison->counting;
    if (!compare_mean_against(comparison, &compare_figures[figure], best, other, &mean))
        return;
    const bool alike = mean.of.low <= 1 && mean.of.high >= 1; /* the interval contains 1 */
    const bool is_slower = mean.faster == 0 && mean.slower > 0;
    const char *name = json_text(compare_device(comparison, best), "label"),
               *article = json_is(against, "index", COMPARE_REFERENCE) ? "the " : "",
               *of = figure == COMPARE_COMPUTE ? "compute" : "a steady request";
    if (alike)
        fprintf(stream, " In %s the difference between %s and %s%s is within noise:", of, name,
                article, json_text(against, "label"));
    else
        fprintf(stream, " In %s %s is %s than %s%s on %zu of %zu transcript%s", of, name,
                is_slower ? "slower" : "faster", article, json_text(against, "label"),
                is_slower ? mean.slower : mean.faster, counting, counting == 1 ? "" : "s");
    if (mean.slower > 0 && !is_slower && !alike)
        fprintf(stream, ", slower on %zu", mean.slower);
    fprintf(stream, "%s %s times as fast%s (%s to %s).", alike ? "" : ", and",
            TEXT_FACTOR(mean.of.factor), counting > 1 ? " on average" : "",
            TEXT_FACTOR(alike || counting == 1 ? mean.of.low : mean.least),
            TEXT_FACTOR(alike || counting == 1 ? mean.of.high : mean.most));
}

/* Finds the fastest device of this comparison, except those at fault, the reference and device
 * `but`. Returns no device if there is none. */
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

/* Finds the host reference among the compared devices, or no device. */
static size_t find_reference(const struct comparison *comparison)
{
    for (size_t j = 0; j < compare_own_devices(comparison); j++)
        if (json_is(compare_device(comparison, j), "index", COMPARE_REFERENCE) &&
            !compare_is_at_fault(comparison, j))
            return j;
    return json_number_at(comparison->top, "devices");
}

/* Describes the fastest device relative to the next one and the host reference. */
static void put_fastest(const struct comparison *comparison, FILE *stream, size_t figure)
{
    const size_t none = json_number_at(comparison->top, "devices"),
                 best = fastest_but(comparison, figure, none),
                 next = fastest_but(comparison, figure, best),
                 reference = find_reference(comparison);
    if (best == none || (next == none && reference == none))
        return;
    if (compare_number(comparison->top, "repeat") < 2) {
        fputs(figure == COMPARE_COMPUTE ? " One run of each is too few to compare devices." : "",
              stream);
        return;
    }
    if (next < none)
        put_pair(comparison, stream, figure, best, next);
    if (reference < none)
        put_pair(comparison, stream, figure, best, reference);
}

/* ---------------------------------------------------------------- what is not known */

static void put_noise(const struct comparison *comparison, FILE *stream)
{
    size_t count = 0;
    JSON_EACH(run, comparison->runs)
    {
        count += compare_is_own(comparison, run) && *json_text(run, "warning");
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
    JSON_EACH(run, comparison->runs)
    {
        made += compare_is_own(comparison, run);
    }
    if (planned > 0)
        fprintf(stream, "Interrupted: %zu of %.0f runs were made. ", made, planned);
    put_right(comparison, stream);
    put_transcripts(comparison, stream, "refused", "is refused", "are refused");
    put_transcripts(comparison, stream, "different",
                    "expects other values than the host reference computes",
                    "expect other values than the host reference computes");
    put_transcripts(comparison, stream, NULL, "is too small to tell devices apart",
                    "are too small to tell devices apart");
    put_fastest(comparison, stream, COMPARE_COMPUTE);
    put_fastest(comparison, stream, COMPARE_STEADY);
    if (comparison->counting > 0 && compare_own_devices(comparison) > 1 &&
        comparison->counting < json_number_at(comparison->top, "transcripts"))
        fputs(" Transcripts that are too small, or that not all ran right, are left out.", stream);
    put_noise(comparison, stream);
    if (saved > 0)
        fprintf(stream, " %zu device%s of saved runs %s also shown.", saved, saved == 1 ? "" : "s",
                saved == 1 ? "is" : "are");
}

const char *compare_lead(const struct comparison *comparison)
{
    char *text;
    size_t size;
    FILE *stream = xopen_memstream(&text, &size);
    put_lead(comparison, stream);
    xclose(stream);
    return xkeep(text);
}
