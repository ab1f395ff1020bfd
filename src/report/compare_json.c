/* A comparison, for programs: docs/COMPARE.md, docs/compare.schema.json. */
#include "report/compare.h"
#include "report/internal.h"

static void add_origin(struct json *json, cJSON *object, const struct compare_origin *origin)
{
    cJSON *host = json_object(json, object, "host");
    json_string(json, host, "system", origin->system);
    json_string(json, host, "processor", origin->processor);
    json_number(json, host, "processors", origin->processors);
    json_number(json, host, "memory", origin->memory_bytes);
}

static void add_transcript(struct json *json, cJSON *list,
                           const struct compare_transcript *transcript)
{
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "file", transcript->file);
    json_number(json, object, "bytes", transcript->bytes);
    json_string(json, object, "digest", transcript->digest);
}

static void add_device(struct json *json, cJSON *list, const struct compare_device *device)
{
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "index", device->selector);
    json_string(json, object, "name", device->name);
    json_string(json, object, "type", device->type);
    json_string(json, object, "platform", device->platform);
    json_string(json, object, "vendor", device->vendor);
    json_string(json, object, "driver", device->driver);
    json_string(json, object, "version", device->version);
    json_number(json, object, "compute_units", device->compute_units);
    json_number(json, object, "clock_mhz", device->clock_mhz);
    json_number(json, object, "global_memory", device->global_memory);
    json_number(json, object, "max_allocation", device->max_allocation);
    json_number(json, object, "local_memory", device->local_memory);
    json_number(json, object, "max_work_group_size", device->max_work_group_size);
    if (*device->tuning) {
        json_bool(json, object, "tuned", device->tuned);
        if (*device->tuned_by)
            json_string(json, object, "tuned_by", device->tuned_by);
        json_string(json, object, "tuning", device->tuning);
    }
    if (device->copied_bytes > 0)
        json_number(json, object, "copied_bytes_per_s", device->copied_bytes);
    if (device->products > 0)
        json_number(json, object, "products_per_s", device->products);
    if (device->origin->baseline) {
        json_string(json, object, "baseline", device->origin->baseline);
        json_string(json, object, "date", device->origin->date);
        add_origin(json, object, device->origin);
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
    }
}

static void add_verdict(struct json *json, cJSON *object, const struct compare_run *run)
{
    json_string(json, object, "outcome", compare_outcome_name(run->outcome));
    if (run->outcome == COMPARE_VERIFIED || run->outcome == COMPARE_DIFFERENT)
        json_bool(json, object, "verified", run->outcome == COMPARE_VERIFIED);
    else
        json_null(json, object, "verified");
    if (run->exit_code >= 0)
        json_number(json, object, "exit_code", (uint64_t)run->exit_code);
    if (run->signal > 0)
        json_number(json, object, "signal", (uint64_t)run->signal);
    json_string(json, object, "message", run->message);
    cJSON *results = json_object(json, object, "results");
    json_number(json, results, "total", run->results);
    json_number(json, results, "compared", run->compared);
    json_number(json, results, "different", run->different);
    cJSON *differences = json_array(json, object, "differences");
    for (size_t i = 0; i < run->difference_count; i++)
        json_string(json, differences, NULL, run->differences[i]);
}

static void add_times(struct json *json, cJSON *object, const struct comparison *comparison,
                      const struct compare_run *run)
{
    struct compare_times times;
    struct compare_speedup speedup;
    cJSON *samples = json_array(json, object, "samples_ns");
    for (size_t i = 0; i < run->sample_count; i++)
        json_number(json, samples, NULL, run->samples[i]);
    if (compare_times_of(run, &times)) {
        json_number(json, object, "median_ns", times.median);
        json_number(json, object, "low_ns", times.low);
        json_number(json, object, "high_ns", times.high);
    }
    if (compare_speedup_of(comparison, run, &speedup)) {
        cJSON *about = json_object(json, object, "speedup");
        json_decimal(json, about, "factor", speedup.factor);
        json_decimal(json, about, "low", speedup.low);
        json_decimal(json, about, "high", speedup.high);
    }
    if (run->sample_count > 0) {
        double overhead;
        cJSON *profile = json_object(json, object, "profile");
        json_string(json, profile, "clock", run->operations_by_host ? "host" : "device");
        cJSON *profiled = json_array(json, profile, "runs_ns");
        for (size_t i = 0; i < run->profiled_count; i++)
            json_number(json, profiled, NULL, run->profiled[i]);
        if (compare_overhead_of(run, &overhead))
            json_decimal(json, profile, "overhead", overhead);
    }
    json_number(json, object, "open_device_ns", run->open_device_nanoseconds);
    json_number(json, object, "open_transcript_ns", run->open_transcript_nanoseconds);
    json_number(json, object, "compile_ns", run->compile_nanoseconds);
    json_number(json, object, "process_ns", run->process_nanoseconds);
}

static void add_slowdowns(struct json *json, cJSON *object, const struct comparison *comparison,
                          const struct compare_run *run)
{
    struct compare_slowdown slowdowns[COMPARE_DEVICES_MAX];
    const size_t count = compare_slowdowns_of(comparison, run, slowdowns);
    cJSON *list = count > 0 ? json_array(json, object, "slowdowns") : NULL;
    for (size_t i = 0; i < count; i++) {
        const struct compare_slowdown *slowdown = &slowdowns[i];
        cJSON *about = json_object(json, list, NULL);
        if (slowdown->baseline)
            json_string(json, about, "baseline",
                        comparison->devices[slowdown->baseline->device].origin->baseline);
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
    const struct compare_device *device = &comparison->devices[run->device];
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "transcript", comparison->transcripts[run->transcript].file);
    json_number(json, object, "transcript_at", run->transcript);
    json_string(json, object, "device", device->name);
    json_number(json, object, "device_at", run->device);
    json_string(json, object, "platform", device->platform);
    json_string(json, object, "driver", device->driver);
    json_string(json, object, "command", run->command);
    add_verdict(json, object, run);
    add_times(json, object, comparison, run);
    add_slowdowns(json, object, comparison, run);
    json_number(json, object, "device_memory_peak", run->device_bytes);
    json_number(json, object, "host_memory_peak", run->host_bytes);
    add_parts(json, json_array(json, object, "segments"), "operations", run->segments,
              run->segment_count);
    add_parts(json, json_array(json, object, "ops"), "count", run->operations,
              run->operation_count);
}

enum healcl_status compare_print_json(const struct comparison *comparison, FILE *stream)
{
    struct json json;
    json_init(&json, cJSON_CreateObject());
    json_string(&json, json.top, "healcl", comparison->origin.healcl);
    json_string(&json, json.top, "date", comparison->origin.date);
    json_string(&json, json.top, "command", comparison->command);
    json_number(&json, json.top, "repeat", comparison->repeat);
    json_number(&json, json.top, "timeout_s", comparison->timeout_seconds);
    if (comparison->judges_times)
        json_decimal(&json, json.top, "fail_slower_percent", comparison->fail_slower);
    add_origin(&json, json.top, &comparison->origin);
    cJSON *transcripts = json_array(&json, json.top, "transcripts");
    for (size_t i = 0; i < comparison->transcript_count; i++)
        add_transcript(&json, transcripts, &comparison->transcripts[i]);
    cJSON *devices = json_array(&json, json.top, "devices");
    for (size_t i = 0; i < comparison->device_count; i++)
        add_device(&json, devices, &comparison->devices[i]);
    cJSON *runs = json_array(&json, json.top, "runs");
    for (size_t i = 0; i < comparison->run_count; i++)
        add_run(&json, runs, comparison, &comparison->runs[i]);
    return report_finish_json(&json, stream);
}
