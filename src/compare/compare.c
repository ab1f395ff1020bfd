#include "compare/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "core/numbers.h"
#include "report/text.h"

/* ---------------------------------------------------------------- filling */

enum healcl_status comparison_init(struct comparison *comparison, struct healcl_error *error)
{
    *comparison = (struct comparison){.arena = arena_create(),
                                      .command = "",
                                      .environment = "",
                                      .origin = {.date = "",
                                                 .healcl = "",
                                                 .commit = "",
                                                 .system = "",
                                                 .processor = "",
                                                 .model = "",
                                                 .governor = ""}};
    if (!comparison->arena)
        NO_MEMORY(error);
    return HEALCL_OK;
}

void comparison_release(struct comparison *comparison)
{
    arena_free(comparison->arena);
    free(comparison->runs);
    *comparison = (struct comparison){.arena = NULL};
}

enum healcl_status comparison_status(const struct comparison *comparison,
                                     struct healcl_error *error)
{
    if (comparison->no_memory)
        NO_MEMORY(error);
    return HEALCL_OK;
}

void *comparison_alloc(struct comparison *comparison, size_t size)
{
    void *memory = arena_alloc(comparison->arena, size);
    comparison->no_memory |= !memory;
    return memory;
}

const char *comparison_keep(struct comparison *comparison, const char *text)
{
    char *kept = arena_strdup(comparison->arena, text);
    comparison->no_memory |= !kept;
    if (kept)
        text_clean(kept, false);
    return kept ? kept : "";
}

enum healcl_status comparison_add_device(struct comparison *comparison,
                                         struct compare_device **device, struct healcl_error *error)
{
    if (comparison->device_count == COMPARE_DEVICES_MAX)
        FAIL(error, HEALCL_USAGE, "more than %d devices", COMPARE_DEVICES_MAX);
    *device = &comparison->devices[comparison->device_count++];
    **device = (struct compare_device){.origin = &comparison->origin,
                                       .selector = "",
                                       .name = "",
                                       .type = "",
                                       .platform = "",
                                       .platform_version = "",
                                       .vendor = "",
                                       .driver = "",
                                       .version = "",
                                       .tuning = "",
                                       .tuned_by = "",
                                       .check.message = ""};
    return HEALCL_OK;
}

enum healcl_status comparison_add_run(struct comparison *comparison, size_t transcript,
                                      size_t device, struct compare_run **run,
                                      struct healcl_error *error)
{
    if (!ARRAY_GROW(comparison->runs, comparison->run_count, &comparison->run_capacity))
        NO_MEMORY(error);
    *run = &comparison->runs[comparison->run_count++];
    **run = (struct compare_run){.device = device, .transcript = transcript};
    comparison_reset_run(*run);
    return HEALCL_OK;
}

/* Whether a result differs here and now, with no host reference beside it. */
static bool needs_judge(const struct comparison *comparison, size_t transcript)
{
    bool differs = false;
    for (size_t j = 0; j < compare_own_devices(comparison); j++) {
        const struct compare_run *run = compare_find(comparison, transcript, j);
        if (strcmp(comparison->devices[j].selector, COMPARE_REFERENCE) == 0)
            return false;
        differs |= run && run->outcome == COMPARE_DIFFERENT;
    }
    return differs;
}

enum healcl_status comparison_add_judge(struct comparison *comparison, size_t transcript,
                                        struct compare_run **judge, struct healcl_error *error)
{
    *judge = NULL;
    if (!needs_judge(comparison, transcript))
        return HEALCL_OK;
    *judge = arena_alloc(comparison->arena, sizeof **judge);
    if (!*judge)
        NO_MEMORY(error);
    **judge = (struct compare_run){
        .transcript = transcript, .outcome = COMPARE_FAILED, .message = "", .command = ""};
    comparison->transcripts[transcript].judge = *judge;
    return HEALCL_OK;
}

void comparison_reset_run(struct compare_run *run)
{
    *run = (struct compare_run){.device = run->device,
                                .transcript = run->transcript,
                                .outcome = COMPARE_FAILED,
                                .exit_code = -1,
                                .message = "",
                                .command = ""};
}

bool compare_is_own(const struct comparison *comparison, const struct compare_run *run)
{
    return !comparison->devices[run->device].origin->baseline;
}

size_t comparison_end_early(struct comparison *comparison)
{
    size_t kept = 0, made = 0;
    comparison->planned = 0;
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run run = comparison->runs[i];
        const bool own = compare_is_own(comparison, &run);
        comparison->planned += own;
        made += own && run.taken_nanoseconds > 0;
        if (!own || run.taken_nanoseconds > 0)
            comparison->runs[kept++] = run;
    }
    comparison->run_count = kept;
    return made;
}

uint64_t comparison_left(const struct comparison *comparison)
{
    uint64_t left = 0, all = 0, all_count = 0;
    for (size_t i = 0; i < comparison->run_count; i++) {
        all += comparison->runs[i].taken_nanoseconds;
        all_count += comparison->runs[i].taken_nanoseconds > 0;
    }
    for (size_t i = 0; i < comparison->run_count && all_count > 0; i++) {
        const struct compare_run *run = &comparison->runs[i];
        uint64_t same = 0, count = 0;
        if (!compare_is_own(comparison, run) || run->taken_nanoseconds > 0)
            continue;
        for (size_t j = 0; j < comparison->run_count; j++)
            if (comparison->runs[j].transcript == run->transcript) {
                same += comparison->runs[j].taken_nanoseconds;
                count += comparison->runs[j].taken_nanoseconds > 0;
            }
        left += count > 0 ? same / count : all / all_count;
    }
    return left;
}

/* ---------------------------------------------------------------- times */

static bool times_of(const uint64_t *samples, size_t count, struct compare_times *times)
{
    uint64_t *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (!sorted)
        return false;
    memcpy(sorted, samples, count * sizeof *sorted);
    uint64_t median = sort_to_median(sorted, count);
    *times = (struct compare_times){.median = median,
                                    .low = sorted_percentile(sorted, count, 25),
                                    .high = sorted_percentile(sorted, count, 75),
                                    .least = sorted[0],
                                    .most = sorted[count - 1]};
    if (count >= P95_SAMPLES)
        times->p95 = sorted_percentile(sorted, count, 95);
    if (count >= P99_SAMPLES)
        times->p99 = sorted_percentile(sorted, count, 99);
    free(sorted);
    return true;
}

bool compare_times_of(const struct compare_run *run, enum compare_figure figure,
                      struct compare_times *times)
{
    return times_of(run->times[figure].of, run->times[figure].count, times);
}

double compare_spread(const struct compare_times *times)
{
    return times->median > 0 ? 50.0 * (double)(times->high - times->low) / (double)times->median
                             : 0;
}

bool compare_spreads(const struct compare_run *run, enum compare_figure figure)
{
    struct compare_times times;
    return compare_times_of(run, figure, &times) && compare_spread(&times) > COMPARE_SPREAD_MAX;
}

bool compare_is_noisy(const struct compare_run *run)
{
    return compare_spreads(run, COMPARE_COMPUTE) || compare_spreads(run, COMPARE_STEADY);
}

bool compare_is_right(const struct compare_run *run)
{
    return run->outcome == COMPARE_VERIFIED || run->outcome == COMPARE_UNVERIFIED;
}

const struct compare_run *compare_next_run(const struct comparison *comparison, size_t transcript,
                                           const struct compare_run *last)
{
    for (size_t i = last ? (size_t)(last - comparison->runs) + 1 : 0; i < comparison->run_count;
         i++)
        if (comparison->runs[i].transcript == transcript)
            return &comparison->runs[i];
    return NULL;
}

const struct compare_run *compare_find(const struct comparison *comparison, size_t transcript,
                                       size_t device)
{
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        if (run->device == device)
            return run;
    }
    return NULL;
}

const struct compare_run *compare_reference(const struct comparison *comparison, size_t transcript,
                                            enum compare_figure figure)
{
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        if (compare_is_right(run) && run->times[figure].count > 0)
            return run;
    }
    return NULL;
}

bool compare_speedup_over(const struct compare_run *base, const struct compare_run *run,
                          enum compare_figure figure, struct compare_speedup *speedup)
{
    struct compare_times before, times;
    if (!compare_times_of(base, figure, &before) || !compare_times_of(run, figure, &times))
        return false;
    *speedup = (struct compare_speedup){.factor = ratio_of_times(before.median, times.median),
                                        .low = ratio_of_times(before.low, times.high),
                                        .high = ratio_of_times(before.high, times.low)};
    return true;
}

bool compare_speedup_of(const struct comparison *comparison, const struct compare_run *run,
                        enum compare_figure figure, struct compare_speedup *speedup)
{
    const struct compare_run *reference = compare_reference(comparison, run->transcript, figure);
    if (!reference || !compare_is_right(run) ||
        !compare_speedup_over(reference, run, figure, speedup))
        return false;
    if (run == reference)
        *speedup = (struct compare_speedup){1, 1, 1};
    return true;
}

bool compare_overhead_of(const struct compare_run *run, double *factor)
{
    struct compare_times without, with;
    const struct compare_samples *whole = &run->times[COMPARE_WHOLE];
    if (whole->count < OVERHEAD_SAMPLES || run->profiled_count < OVERHEAD_SAMPLES ||
        !times_of(whole->of, whole->count, &without) ||
        !times_of(run->profiled, run->profiled_count, &with))
        return false;
    *factor = ratio_of_times(with.median, without.median);
    return true;
}

uint64_t compare_kernels_of(const struct compare_run *run)
{
    return run->cold.nanoseconds > 0 ? run->cold.compile_nanoseconds : run->compile_nanoseconds;
}

const char *compare_figure_name(enum compare_figure figure)
{
    return figure == COMPARE_STEADY ? "steady request" : "compute";
}

/* ---------------------------------------------------------------- outcomes */

const char *compare_outcome_name(enum compare_outcome outcome)
{
    switch (outcome) {
    case COMPARE_VERIFIED: return "verified";
    case COMPARE_UNVERIFIED: return "nothing to verify";
    case COMPARE_UNPROVEN: return "unproven";
    case COMPARE_DIFFERENT: return "different";
    case COMPARE_REFUSED: return "refused";
    case COMPARE_FAILED: return "failed";
    case COMPARE_CRASHED: return "crashed";
    case COMPARE_TIMED_OUT: return "timed out";
    }
    return "failed";
}

const char *compare_outcome_text(const struct comparison *comparison, const struct compare_run *run,
                                 char text[OUTCOME_TEXT_SIZE])
{
    const char *name = compare_outcome_name(run->outcome);
    char signal[PROCESS_SIGNAL_SIZE];
    snprintf(text, OUTCOME_TEXT_SIZE, "%s", name);
    if (run->outcome == COMPARE_DIFFERENT)
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: %" PRIu64 " of %" PRIu64 "%s", name, run->different,
                 run->compared,
                 run->fault == COMPARE_TRANSCRIPT_FAULT ? ", transcript's fault" : "");
    else if (run->outcome == COMPARE_UNPROVEN)
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: %" PRIu64 " of %" PRIu64 " compared", name,
                 run->compared, run->results);
    else if (run->outcome == COMPARE_VERIFIED && run->compared < run->results)
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: %" PRIu64 " of %" PRIu64, name, run->compared,
                 run->results);
    else if (run->outcome == COMPARE_CRASHED && run->signal > 0)
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: %s", name, process_signal_name(run->signal, signal));
    else if (run->outcome == COMPARE_FAILED && run->exit_code >= 0)
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: exit code %d", name, run->exit_code);
    else if (run->outcome == COMPARE_TIMED_OUT && compare_is_own(comparison, run))
        snprintf(text, OUTCOME_TEXT_SIZE, "%s: %" PRIu32 " s", name, comparison->timeout_seconds);
    return text;
}

const char *compare_check_text(const struct compare_check *check, char text[LABEL_SIZE])
{
    if (*check->message)
        snprintf(text, LABEL_SIZE, "%.400s", check->message);
    else if (check->failed > 0)
        snprintf(text, LABEL_SIZE, "%" PRIu64 " of %" PRIu64 " calls are wrong", check->failed,
                 check->calls);
    else
        snprintf(text, LABEL_SIZE, "%s%" PRIu64 " calls are right",
                 check->unsupported > 0 ? "" : "all ", check->calls - check->unsupported);
    if (check->unsupported > 0) {
        size_t used = strlen(text);
        snprintf(text + used, LABEL_SIZE - used, ", %" PRIu64 " are beyond the device",
                 check->unsupported);
    }
    return text;
}
