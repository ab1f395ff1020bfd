/* Concludes a comparison: figures, faults, speed-ups, geometric means and slowdowns. */
#include <math.h>

#include "cli/comparison.h"
#include "core/numbers.h"

const struct compare_figure compare_figures[COMPARE_FIGURES] = {
    {"compute", "split.compute_ns", "compute_ns", "compute_low_ns", "compute_high_ns", "speedup",
     "mean_speedup"},
    {"steady request", "steady.requests_ns", "steady_ns", "steady_low_ns", "steady_high_ns",
     "steady_speedup", "mean_steady_speedup"},
};

/* ---------------------------------------------------------------- figures */

/* Stores a number with 8 digits. */
static void put_factor(cJSON *object, const char *path, double factor)
{
    char text[32];
    snprintf(text, sizeof text, "%.8g", factor);
    compare_put_number(object, path, strtod(text, NULL));
}

enum { P95_SAMPLES = 20, P99_SAMPLES = 100 }; /* enough that 5 % or 1 % is at least one of them */
enum { OVERHEAD_SAMPLES = 3 };

/* Returns the samples in ascending order, to be freed. NULL: there are none. */
static uint64_t *sorted_samples(const cJSON *list, size_t *count)
{
    *count = 0;
    if (!list || !list->child)
        return NULL;
    uint64_t *samples = xcalloc((size_t)cJSON_GetArraySize(list), sizeof *samples);
    JSON_EACH(item, list)
    {
        samples[(*count)++] = (uint64_t)item->valuedouble;
    }
    (void)sort_to_median(samples, *count);
    return samples;
}

/* Median and quartiles of samples; low and high may be NULL. Returns the number of samples. */
static size_t put_figure(cJSON *run, const char *samples, const char *median, const char *low,
                         const char *high)
{
    size_t count;
    uint64_t *sorted = sorted_samples(json_at(run, samples), &count);
    if (!sorted)
        return 0;
    compare_put_number(run, median, (double)sort_to_median(sorted, count));
    if (low) {
        compare_put_number(run, low, (double)sorted_percentile(sorted, count, 25));
        compare_put_number(run, high, (double)sorted_percentile(sorted, count, 75));
    }
    if (count >= P95_SAMPLES && strcmp(samples, "samples_ns") == 0)
        compare_put_number(run, "p95_ns", (double)sorted_percentile(sorted, count, 95));
    if (count >= P99_SAMPLES && strcmp(samples, "samples_ns") == 0)
        compare_put_number(run, "p99_ns", (double)sorted_percentile(sorted, count, 99));
    free(sorted);
    return count;
}

/* Half the distance of the quartiles, in percent of the median. */
static double spread_of(const cJSON *run, const struct compare_figure *figure)
{
    const double median = compare_number(run, figure->median),
                 range = compare_number(run, figure->high) - compare_number(run, figure->low);
    return median > 0 ? 50 * range / median : 0;
}

static bool spreads(const cJSON *run, const struct compare_figure *figure)
{
    return spread_of(run, figure) > COMPARE_SPREAD_MAX;
}

bool compare_is_noisy(const cJSON *run, const struct compare_figure *figure)
{
    return spreads(run, figure) && compare_number(run, figure->median) >= COMPARE_LEAST_NANOSECONDS;
}

/* Stores by how much a run takes longer when operations are timed. */
static void put_overhead(cJSON *run, size_t samples)
{
    size_t count;
    uint64_t *sorted = sorted_samples(json_at(run, "profile.runs_ns"), &count);
    if (sorted && samples >= OVERHEAD_SAMPLES && count >= OVERHEAD_SAMPLES)
        put_factor(run, "profile.overhead",
                   ratio_of_times(sort_to_median(sorted, count),
                                  (uint64_t)compare_number(run, "median_ns")));
    free(sorted);
}

void compare_add_figures(cJSON *run)
{
    const struct compare_figure *compute = &compare_figures[COMPARE_COMPUTE];
    bool noisy = false;
    size_t computed = 0;
    for (size_t i = 0; i < COMPARE_FIGURES; i++) {
        const struct compare_figure *figure = &compare_figures[i];
        const size_t count =
            put_figure(run, figure->samples, figure->median, figure->low, figure->high);
        computed = i == COMPARE_COMPUTE ? count : computed;
        noisy |= compare_is_noisy(run, figure);
    }
    (void)put_figure(run, "split.transfer_ns", "transfer_ns", NULL, NULL);
    (void)put_figure(run, "split.decode_ns", "decode_ns", NULL, NULL);
    put_overhead(run, put_figure(run, "samples_ns", "median_ns", "low_ns", "high_ns"));
    const double steady = compare_number(run, "steady_ns"),
                 time = compare_number(run, compute->median),
                 roofline = compare_number(run, "roofline_ns");
    if (computed > 1)
        put_factor(run, "spread_percent", spread_of(run, compute));
    if (steady > 0 && compare_is_right(run))
        put_factor(run, "per_second", 1e9 / steady);
    if (time > 0 && roofline > 0)
        put_factor(run, "rates_percent", 100 * roofline / time);
    compare_put_text(run, "warning", noisy ? "the times spread by more than 30 %" : "");
    _Static_assert(COMPARE_SPREAD_MAX == 30, "the warning states this limit");
}

/* ---------------------------------------------------------------- faults */

/* The run of a transcript on a device, or NULL. */
static cJSON *find_run(const struct comparison *comparison, size_t transcript, size_t device)
{
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (json_number_at(run, "device_at") == device)
            return run;
    }
    return NULL;
}

/* Returns the host reference's run of the same transcript, from the same comparison, or NULL. */
static const cJSON *reference_beside(const struct comparison *comparison, const cJSON *run)
{
    const size_t transcript = json_number_at(run, "transcript_at");
    const char *baseline = json_text(compare_device_of(comparison, run), "baseline");
    size_t at = 0;
    JSON_EACH(device, comparison->devices)
    {
        if (json_is(device, "baseline", baseline) && json_is(device, "index", COMPARE_REFERENCE))
            return find_run(comparison, transcript, at);
        at++;
    }
    JSON_EACH(judge, comparison->judges)
    {
        if (!*baseline && json_number_at(judge, "transcript_at") == transcript)
            return judge;
    }
    return NULL;
}

/* Whether any device computed the results that the transcript expects. */
static bool is_verified(const struct comparison *comparison, size_t transcript)
{
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (json_is(run, "outcome", "verified"))
            return true;
    }
    return false;
}

/* Whether the first repetitions of two runs have the same differences. */
static bool differ_alike(const cJSON *a, const cJSON *b)
{
    static const char later[] = "repetition "; /* one of the runs may have further repetitions */
    const cJSON *x = json_first(json_at(a, "differences")),
                *y = json_first(json_at(b, "differences"));
    if (json_number_at(a, "results.different") != json_number_at(b, "results.different"))
        return false;
    for (;; x = x->next, y = y ? y->next : NULL) {
        const char *one = x ? x->valuestring : later, *other = y ? y->valuestring : later;
        if (strncmp(one, later, sizeof later - 1) == 0)
            return strncmp(other, later, sizeof later - 1) == 0;
        if (strcmp(one, other) != 0)
            return false;
    }
}

static const char *fault_of(const struct comparison *comparison, const cJSON *run)
{
    if (compare_is_right(run))
        return "";
    if (json_is(run, "outcome", "refused") || json_is(run, "fault", "transcript"))
        return "transcript";
    if (!json_is(run, "outcome", "different") ||
        is_verified(comparison, json_number_at(run, "transcript_at")))
        return "device";
    const cJSON *reference = reference_beside(comparison, run);
    return reference && json_is(reference, "outcome", "different") && differ_alike(reference, run)
               ? "transcript"
               : "device";
}

bool compare_is_at_fault(const struct comparison *comparison, size_t device)
{
    bool failed = false;
    JSON_EACH(run, comparison->runs)
    {
        failed |= json_number_at(run, "device_at") == device && json_is(run, "fault", "device");
    }
    return failed;
}

/* ---------------------------------------------------------------- speed-ups */

static bool is_timed(const cJSON *run, const struct compare_figure *figure)
{
    return run && compare_is_right(run) && json_at(run, figure->median);
}

static double ratio(const cJSON *base, const char *over, const cJSON *run, const char *under)
{
    return ratio_of_times((uint64_t)compare_number(base, over),
                          (uint64_t)compare_number(run, under));
}

static struct compare_speedup speedup_over(const cJSON *base, const cJSON *run,
                                           const struct compare_figure *figure)
{
    if (base == run)
        return (struct compare_speedup){1, 1, 1};
    return (struct compare_speedup){.factor = ratio(base, figure->median, run, figure->median),
                                    .low = ratio(base, figure->low, run, figure->high),
                                    .high = ratio(base, figure->high, run, figure->low)};
}

static cJSON *put_speedup(cJSON *object, const char *key, const struct compare_speedup *speedup)
{
    cJSON *about = cJSON_CreateObject();
    put_factor(about, "factor", speedup->factor);
    put_factor(about, "low", speedup->low);
    put_factor(about, "high", speedup->high);
    compare_put(object, key, about);
    return about;
}

/* Stores the speed-up of each run over the first device with times. */
static void put_speedups(const struct comparison *comparison, size_t transcript,
                         const struct compare_figure *figure)
{
    const cJSON *base = NULL;
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (!is_timed(run, figure))
            continue;
        base = base ? base : run;
        const struct compare_speedup speedup = speedup_over(base, run, figure);
        (void)put_speedup(run, figure->speedup, &speedup);
    }
}

/* ---------------------------------------------------------------- geometric means */

enum { LEAST_BYTES = 1 << 14 };
const char compare_too_small[] =
    "Too small to tell devices apart: its operations have less than "
    "16 KiB each, or the fastest device computes for less than 0.1 ms.";
_Static_assert(COMPARE_LEAST_NANOSECONDS == 100000 && LEAST_BYTES == 16 << 10,
               "compare_too_small states these limits");

/* Whether a run's operations, other than transfers, read and write so few bytes that their launches
 * dominate the time. */
static bool has_small_operations(const cJSON *run)
{
    double bytes = 0, count = 0;
    const cJSON *kinds = json_at(run, "ops");
    JSON_EACH(kind, kinds)
    {
        const char *name = json_text(kind, "name");
        if (compare_number(kind, "bytes") <= 0 || strcmp(name, "host_to_device") == 0 ||
            strcmp(name, "device_to_host") == 0)
            continue;
        bytes += compare_number(kind, "bytes");
        count += compare_number(kind, "count");
    }
    return cJSON_GetArraySize(kinds) > 0 && bytes < LEAST_BYTES * fmax(count, 1);
}

/* Compares the devices of this comparison. With a single device, no transcript is too small. */
static bool is_too_small(const struct comparison *comparison, size_t transcript)
{
    const struct compare_figure *compute = &compare_figures[COMPARE_COMPUTE];
    bool is_small = false;
    double least = INFINITY;
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (!compare_is_own(comparison, run) || !is_timed(run, compute))
            continue;
        is_small |= has_small_operations(run);
        if (!json_is(compare_device_of(comparison, run), "index", COMPARE_REFERENCE))
            least = fmin(least, compare_number(run, compute->median));
    }
    return json_number_at(comparison->top, "devices") > 1 &&
           (is_small || least < COMPARE_LEAST_NANOSECONDS);
}

/* Whether a device must have run all transcripts that count. */
static bool is_compared(const struct comparison *comparison, size_t device)
{
    bool timed = false;
    JSON_EACH(run, comparison->runs)
    {
        timed |= json_number_at(run, "device_at") == device &&
                 is_timed(run, &compare_figures[COMPARE_COMPUTE]);
    }
    return timed && !compare_is_at_fault(comparison, device);
}

/* Chooses the base device, and the transcripts that count. */
static void choose_means(struct comparison *comparison)
{
    const size_t own = compare_own_devices(comparison),
                 none = json_number_at(comparison->top, "devices");
    bool *compared = xcalloc(own, sizeof *compared);
    comparison->base = none;
    for (size_t j = own; j-- > 0;) {
        compared[j] = is_compared(comparison, j);
        comparison->base = compared[j] ? j : comparison->base;
    }
    comparison->counting = 0;
    for (size_t i = 0; i < json_number_at(comparison->top, "transcripts"); i++) {
        cJSON *transcript = compare_transcript(comparison, i);
        const bool too_small = is_too_small(comparison, i);
        bool counts = comparison->base < none && !too_small;
        for (size_t j = 0; counts && j < own; j++)
            counts = !compared[j] ||
                     is_timed(find_run(comparison, i, j), &compare_figures[COMPARE_COMPUTE]);
        compare_put(transcript, "too_small", cJSON_CreateBool(too_small));
        compare_put(transcript, "in_mean", cJSON_CreateBool(counts));
        comparison->counting += counts;
    }
    if (comparison->counting == 0)
        comparison->base = none;
    free(compared);
}

bool compare_mean_against(const struct comparison *comparison, const struct compare_figure *figure,
                          size_t device, size_t other, struct compare_mean *mean)
{
    struct compare_speedup sum = {0, 0, 0};
    const double count = (double)comparison->counting;
    *mean = (struct compare_mean){.most = 0};
    for (size_t i = 0; i < json_number_at(comparison->top, "transcripts"); i++) {
        if (!cJSON_IsTrue(json_at(compare_transcript(comparison, i), "in_mean")))
            continue;
        const cJSON *run = find_run(comparison, i, device),
                    *against = find_run(comparison, i, other);
        if (!is_timed(run, figure) || !is_timed(against, figure))
            return false;
        const struct compare_speedup speedup = speedup_over(against, run, figure);
        sum.factor += log(speedup.factor);
        sum.low += log(speedup.low);
        sum.high += log(speedup.high);
        mean->faster += speedup.low > 1;
        mean->slower += speedup.high < 1;
        mean->least = mean->most > 0 ? fmin(mean->least, speedup.factor) : speedup.factor;
        mean->most = fmax(mean->most, speedup.factor);
    }
    mean->of = (struct compare_speedup){exp(sum.factor / count), exp(sum.low / count),
                                        exp(sum.high / count)};
    return comparison->counting > 0;
}

static void put_means(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < COMPARE_FIGURES; i++) {
        struct compare_mean mean;
        if (!compare_mean_against(comparison, &compare_figures[i], device, comparison->base, &mean))
            continue;
        cJSON *about =
            put_speedup(compare_device(comparison, device), compare_figures[i].mean, &mean.of);
        put_factor(about, "least", mean.least);
        put_factor(about, "most", mean.most);
    }
}

void compare_conclude(struct comparison *comparison)
{
    compare_name_devices(comparison);
    JSON_EACH(run, comparison->runs)
    {
        compare_put_text(run, "fault", fault_of(comparison, run));
        (void)compare_judge(comparison, run);
    }
    for (size_t i = 0; i < json_number_at(comparison->top, "transcripts"); i++)
        for (size_t j = 0; j < COMPARE_FIGURES; j++)
            put_speedups(comparison, i, &compare_figures[j]);
    choose_means(comparison);
    for (size_t j = 0; j < json_number_at(comparison->top, "devices"); j++)
        put_means(comparison, j);
}

/* ---------------------------------------------------------------- slower than a baseline */

/*
 * Compares times with those of a baseline. The intervals assume no distribution.
 *
 * A sample is below the median of its distribution with probability one half, like heads of a coin.
 * So the r-th smallest and the r-th largest of n samples enclose the median, unless fewer than r of
 * n coins fall on one side. The interval of a median misses it in at most 2.5 % of cases. The
 * interval of the ratio of two medians then misses it in at most 5 %.
 */
enum { SAMPLES_LEAST = 7 }; /* of both runs, to have an interval */

struct interval {
    uint64_t median, low, high;
};

/* Returns false if there are too few samples. */
static bool interval_of(const cJSON *samples, struct interval *interval)
{
    const double confidence = 0.975;
    size_t count;
    uint64_t *sorted = sorted_samples(samples, &count);
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

/* Whether a saved device is a device of this comparison: same name, on a host with the same
 * processor. If its baseline has several such devices, the one with the same index is chosen, if it
 * exists. */
static bool is_same_device(const struct comparison *comparison, const cJSON *device,
                           const cJSON *saved)
{
    if (!json_at(saved, "baseline") || !is_called_as(device, saved) ||
        !compare_same(comparison->top, saved, "host.processor"))
        return false;
    if (compare_same(device, saved, "index"))
        return true;
    JSON_EACH(other, comparison->devices)
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
    const cJSON *here = json_at(run, figure->samples), *there = json_at(saved, figure->samples);
    const double allowed = 1 + compare_number(comparison->top, "fail_slower_percent") / 100;
    const char *reason = NULL;
    if (!compare_is_right(saved))
        reason = "its results in the baseline were not right";
    else if (spreads(run, figure))
        reason = "its new times spread by more than 30 %";
    else if (spreads(saved, figure))
        reason = "its times in the baseline spread by more than 30 %";
    if (reason) {
        compare_put_text(slowdown, "not_judged_because", reason);
    } else if (!interval_of(here, &now) || !interval_of(there, &before)) {
        compare_put_text(
            slowdown, "not_judged_because",
            xformat("too few runs for an interval (%d here, %d in the baseline; %d of each are "
                    "needed)",
                    cJSON_GetArraySize(here), cJSON_GetArraySize(there), SAMPLES_LEAST));
    } else {
        const double low = ratio_of_times(now.low, before.high);
        put_factor(slowdown, "factor", ratio_of_times(now.median, before.median));
        put_factor(slowdown, "low", low);
        put_factor(slowdown, "high", ratio_of_times(now.high, before.low));
        compare_put(slowdown, "slower", cJSON_CreateBool(low > allowed));
    }
}

/* Adds an item for each figure of each baseline that has the device. */
static void add_slowdowns(const struct comparison *comparison, const cJSON *run, cJSON *list)
{
    const cJSON *device = compare_device_of(comparison, run);
    size_t at = 0;
    JSON_EACH(other, comparison->devices)
    {
        const cJSON *saved = find_run(comparison, json_number_at(run, "transcript_at"), at++);
        if (!saved || !is_same_device(comparison, device, other))
            continue;
        for (size_t i = 0; i < COMPARE_FIGURES; i++) {
            cJSON *slowdown = json_add_object(list, NULL);
            compare_put_text(slowdown, "figure", compare_figures[i].name);
            compare_put_text(slowdown, "baseline", json_text(other, "baseline"));
            hold_against(comparison, run, saved, &compare_figures[i], slowdown);
        }
    }
}

bool compare_judge(const struct comparison *comparison, cJSON *run)
{
    if (!json_at(comparison->top, "fail_slower_percent") || !compare_is_own(comparison, run) ||
        !compare_is_right(run))
        return false;
    cJSON *list = cJSON_CreateArray();
    add_slowdowns(comparison, run, list);
    if (!list->child)
        compare_put_text(json_add_object(list, NULL), "not_judged_because",
                         "no baseline has this transcript on this device and processor");
    compare_put(run, "slowdowns", list);
    return json_any(list, "slower");
}

const char *compare_slowdown_text(const struct comparison *comparison, const cJSON *slowdown)
{
    if (!json_at(slowdown, "figure"))
        return view_fill(slowdown, "its time cannot be judged: {not_judged_because}");
    if (json_at(slowdown, "not_judged_because"))
        return view_fill(slowdown,
                         "{figure}: cannot be judged by {baseline}: {not_judged_because}");
    const char *text = view_fill(slowdown, "{figure}: {factor:factor} times the time in {baseline} "
                                           "({low:factor} to {high:factor} at 95 %), "
                                           "{slower=more than}{slower!not certainly more than}");
    return xformat("%s %g %% slower", text, compare_number(comparison->top, "fail_slower_percent"));
}

/* ---------------------------------------------------------------- all of them */

static int code_of(const cJSON *run)
{
    if (compare_is_right(run))
        return json_any(json_at(run, "slowdowns"), "slower") ? EXIT_SLOWER : EXIT_VERIFIED;
    return json_is(run, "outcome", "different") ? EXIT_DIFFERENT
           : json_is(run, "outcome", "refused") ? EXIT_REFUSED
                                                : EXIT_DEVICE;
}

int compare_worst(const struct comparison *comparison)
{
    static const int worst_first[] = {EXIT_DIFFERENT, EXIT_DEVICE, EXIT_REFUSED, EXIT_SLOWER};
    for (size_t i = 0; i < sizeof worst_first / sizeof *worst_first; i++)
        JSON_EACH(run, comparison->runs)
        {
            if (compare_is_own(comparison, run) && code_of(run) == worst_first[i])
                return worst_first[i];
        }
    return EXIT_VERIFIED;
}
