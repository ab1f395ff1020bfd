/* A comparison, for programs: docs/COMPARE.md, docs/compare.schema.json. */
#include "compare/columns.h"

static void add_host(struct json *json, cJSON *object, const struct compare_origin *origin)
{
    columns_add_json(json, json_object(json, object, "host"), &compare_origin_columns, NULL,
                     origin);
}

static void add_transcript(struct json *json, cJSON *list,
                           const struct compare_transcript *transcript)
{
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "file", transcript->file);
    json_number(json, object, "bytes", transcript->bytes);
    json_string(json, object, "digest", transcript->digest);
    json_bool(json, object, "too_small", transcript->too_small);
    json_bool(json, object, "in_mean", transcript->counts);
}

static void add_mean(struct json *json, cJSON *object, const char *name,
                     const struct compare_mean *mean)
{
    if (mean->factor <= 0)
        return;
    cJSON *about = json_object(json, object, name);
    json_decimal(json, about, "factor", mean->factor);
    json_decimal(json, about, "low", mean->low);
    json_decimal(json, about, "high", mean->high);
    json_decimal(json, about, "least", mean->least);
    json_decimal(json, about, "most", mean->most);
}

static void add_device(struct json *json, cJSON *list, const struct compare_device *device)
{
    cJSON *object = json_object(json, list, NULL);
    columns_add_json(json, object, &compare_device_columns, NULL, device);
    if (device->check.done)
        columns_add_json(json, json_object(json, object, "check"), &compare_check_columns, NULL,
                         &device->check);
    add_mean(json, object, "mean_speedup", &device->means[COMPARE_COMPUTE]);
    add_mean(json, object, "mean_steady_speedup", &device->means[COMPARE_STEADY]);
    if (device->origin->baseline) {
        json_string(json, object, "baseline", device->origin->baseline);
        json_string(json, object, "date", device->origin->date);
        add_host(json, object, device->origin);
    }
}

static void add_parts(struct json *json, cJSON *list, const char *count_key,
                      const struct compare_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cJSON *object = json_object(json, list, NULL);
        json_string(json, object, "name", parts[i].name);
        json_number(json, object, count_key, parts[i].count);
        json_number(json, object, "bytes", parts[i].bytes);
        json_number(json, object, "time_ns", parts[i].nanoseconds);
        if (parts[i].fallbacks > 0) {
            json_number(json, object, "fallbacks", parts[i].fallbacks);
            json_string(json, object, "fallback_reason", parts[i].fallback_reason);
        }
    }
}

static void add_verdict(struct json *json, cJSON *object, const struct compare_run *run)
{
    if (run->outcome == COMPARE_VERIFIED || run->outcome == COMPARE_DIFFERENT)
        json_bool(json, object, "verified", run->outcome == COMPARE_VERIFIED);
    else
        json_null(json, object, "verified");
    if (run->exit_code >= 0)
        json_number(json, object, "exit_code", (uint64_t)run->exit_code);
    if (run->signal > 0)
        json_number(json, object, "signal", (uint64_t)run->signal);
    cJSON *differences = json_array(json, object, "differences");
    for (size_t i = 0; i < run->difference_count; i++)
        json_string(json, differences, NULL, run->differences[i]);
}

static void add_numbers(struct json *json, cJSON *list, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_number(json, list, NULL, numbers[i]);
}

static void add_times(struct json *json, cJSON *object, const char *name,
                      const struct compare_samples *times)
{
    if (times->count > 0)
        add_numbers(json, json_array(json, object, name), times->of, times->count);
}

/* As `healcl run --json` tells them. Of an older baseline's run, which has but the sum of segments,
 * there is no more either. */
static void add_samples(struct json *json, cJSON *object, const struct compare_run *run)
{
    const struct compare_samples *times = run->times;
    add_numbers(json, json_array(json, object, "samples_ns"), times[COMPARE_WHOLE].of,
                times[COMPARE_WHOLE].count);
    if (times[COMPARE_COMPUTE].count > 0) {
        cJSON *split = json_object(json, object, "split");
        json_string(json, split, "clock", "host");
        add_times(json, split, "decode_ns", &times[COMPARE_DECODE]);
        add_times(json, split, "transfer_ns", &times[COMPARE_TRANSFER]);
        add_times(json, split, "compute_ns", &times[COMPARE_COMPUTE]);
    }
    if (times[COMPARE_STEADY].count > 0)
        add_times(json, json_object(json, object, "steady"), "requests_ns", &times[COMPARE_STEADY]);
    if (times[COMPARE_WHOLE].count == 0)
        return;
    cJSON *profile = json_object(json, object, "profile");
    json_string(json, profile, "clock", run->operations_by_host ? "host" : "device");
    add_numbers(json, json_array(json, profile, "runs_ns"), run->profiled, run->profiled_count);
}

static void add_slowdowns(struct json *json, cJSON *object, const struct comparison *comparison,
                          const struct compare_run *run)
{
    struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
    const size_t count = compare_slowdowns_of(comparison, run, slowdowns);
    cJSON *list = count > 0 ? json_array(json, object, "slowdowns") : NULL;
    for (size_t i = 0; i < count; i++) {
        const struct compare_slowdown *slowdown = &slowdowns[i];
        cJSON *about = json_object(json, list, NULL);
        if (slowdown->baseline) {
            json_string(json, about, "figure", compare_figure_name(slowdown->figure));
            json_string(json, about, "baseline",
                        comparison->devices[slowdown->baseline->device].origin->baseline);
        }
        if (slowdown->reason) {
            json_string(json, about, "not_judged_because", slowdown->reason);
            continue;
        }
        json_decimal(json, about, "factor", slowdown->ratio);
        json_decimal(json, about, "low", slowdown->low);
        json_decimal(json, about, "high", slowdown->high);
        json_bool(json, about, "slower", slowdown->is_slower);
    }
}

static void add_run(struct json *json, cJSON *list, const struct comparison *comparison,
                    const struct compare_run *run)
{
    cJSON *object = json_object(json, list, NULL);
    json_number(json, object, "transcript_at", run->transcript);
    json_number(json, object, "device_at", run->device);
    json_string(json, object, "command", run->command);
    add_verdict(json, object, run);
    add_samples(json, object, run);
    columns_add_json(json, object, &compare_run_columns, comparison, run);
    add_slowdowns(json, object, comparison, run);
    add_parts(json, json_array(json, object, "segments"), "operations", run->segments,
              run->segment_count);
    add_parts(json, json_array(json, object, "ops"), "count", run->operations,
              run->operation_count);
    if (run->kernel_count > 0)
        columns_add_list(json, object, "manifest_kernels", &report_kernel_columns, NULL,
                         COLUMN_RECORDS(run->kernels, run->kernel_count));
}

static void add_ranks(struct json *json, cJSON *list, const struct compare_ranks *ranks)
{
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "report", ranks->report);
    json_string(json, object, "command", compare_ranks_command(ranks));
    json_string(json, object, "transcript", ranks->transcript);
    cJSON *rows = json_array(json, object, "ranks");
    for (size_t i = 0; i < ranks->count; i++)
        columns_add_json(json,
                         ranks->rows[i].is_all ? json_object(json, object, "all")
                                               : json_object(json, rows, NULL),
                         &compare_rank_columns, ranks, &ranks->rows[i]);
}

enum healcl_status compare_print_json(const struct comparison *comparison, FILE *stream)
{
    struct json json;
    json_begin(&json, comparison->origin.healcl);
    json_string(&json, json.top, "commit", comparison->origin.commit);
    json_string(&json, json.top, "date", comparison->origin.date);
    json_string(&json, json.top, "command", comparison->command);
    json_number(&json, json.top, "repeat", comparison->repeat);
    json_number(&json, json.top, "timeout_s", comparison->timeout_seconds);
    if (comparison->planned > 0)
        json_number(&json, json.top, "interrupted_of_runs", comparison->planned);
    if (comparison->judges_times)
        json_decimal(&json, json.top, "fail_slower_percent", comparison->fail_slower);
    add_host(&json, json.top, &comparison->origin);
    cJSON *transcripts = json_array(&json, json.top, "transcripts");
    for (size_t i = 0; i < comparison->transcript_count; i++)
        add_transcript(&json, transcripts, &comparison->transcripts[i]);
    cJSON *devices = json_array(&json, json.top, "devices");
    for (size_t i = 0; i < comparison->device_count; i++)
        add_device(&json, devices, &comparison->devices[i]);
    cJSON *runs = json_array(&json, json.top, "runs");
    for (size_t i = 0; i < comparison->run_count; i++)
        add_run(&json, runs, comparison, &comparison->runs[i]);
    cJSON *ranks = comparison->ranks_count > 0 ? json_array(&json, json.top, "ranks") : NULL;
    for (size_t i = 0; i < comparison->ranks_count; i++)
        add_ranks(&json, ranks, &comparison->ranks[i]);
    return json_print(&json, stream);
}
