/* A comparison, for programs: docs/COMPARE.md, docs/compare.schema.json. */
#include "compare/columns.h"
#include "report/internal.h"

static void add_origin(struct json *json, cJSON *object, const struct compare_origin *origin)
{
    cJSON *host = json_object(json, object, "host");
    json_string(json, host, "system", origin->system);
    json_string(json, host, "processor", origin->processor);
    json_string(json, host, "model", origin->model);
    json_string(json, host, "governor", origin->governor);
    json_number(json, host, "processors", origin->processors);
    json_number(json, host, "memory", origin->memory_bytes);
    json_decimal(json, host, "load_before", (double)origin->load_before / 100);
    json_decimal(json, host, "load_after", (double)origin->load_after / 100);
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

static void add_device(struct json *json, cJSON *list, const struct compare_device *device)
{
    cJSON *object = json_object(json, list, NULL);
    json_string(json, object, "index", device->selector);
    json_string(json, object, "name", device->name);
    json_string(json, object, "title", compare_device_name(device));
    json_string(json, object, "type", device->type);
    json_string(json, object, "platform", device->platform);
    json_string(json, object, "platform_version", device->platform_version);
    json_string(json, object, "vendor", device->vendor);
    json_string(json, object, "driver", device->driver);
    json_string(json, object, "version", device->version);
    json_bool(json, object, "emulator", device->emulator);
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
    if (device->check.done) {
        cJSON *check = json_object(json, object, "check");
        json_bool(json, check, "verified", device->check.verified);
        json_number(json, check, "calls", device->check.calls);
        json_number(json, check, "failed", device->check.failed);
        json_number(json, check, "unsupported", device->check.unsupported);
        json_string(json, check, "message", device->check.message);
    }
    if (device->mean.factor > 0) {
        cJSON *mean = json_object(json, object, "mean_speedup");
        json_decimal(json, mean, "factor", device->mean.factor);
        json_decimal(json, mean, "low", device->mean.low);
        json_decimal(json, mean, "high", device->mean.high);
        json_decimal(json, mean, "least", device->mean.least);
        json_decimal(json, mean, "most", device->mean.most);
    }
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
        if (parts[i].fallbacks > 0) {
            json_number(json, object, "fallbacks", parts[i].fallbacks);
            json_string(json, object, "fallback_reason", parts[i].fallback_reason);
        }
    }
}

static void add_kernels(struct json *json, cJSON *object, const struct compare_run *run)
{
    cJSON *list = run->kernel_count > 0 ? json_array(json, object, "manifest_kernels") : NULL;
    for (size_t i = 0; i < run->kernel_count; i++) {
        const struct compare_kernel *kernel = &run->kernels[i];
        cJSON *about = json_object(json, list, NULL);
        json_string(json, about, "name", kernel->name);
        json_string(json, about, "of", kernel->what);
        json_string(json, about, "manifest", kernel->manifest);
        json_bool(json, about, "replaces", kernel->replaces);
        json_number(json, about, "steps", kernel->steps);
        json_bool(json, about, "tuned", kernel->tuned);
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

static void add_samples(struct json *json, cJSON *object, const struct compare_run *run)
{
    add_numbers(json, json_array(json, object, "samples_ns"), run->samples, run->sample_count);
    if (run->sample_count == 0)
        return;
    cJSON *profile = json_object(json, object, "profile");
    json_string(json, profile, "clock", run->operations_by_host ? "host" : "device");
    add_numbers(json, json_array(json, profile, "runs_ns"), run->profiled, run->profiled_count);
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
    cJSON *object = json_object(json, list, NULL);
    json_number(json, object, "transcript_at", run->transcript);
    json_number(json, object, "device_at", run->device);
    json_string(json, object, "command", run->command);
    add_verdict(json, object, run);
    add_samples(json, object, run);
    columns_add_json(json, object, comparison, run);
    add_slowdowns(json, object, comparison, run);
    add_parts(json, json_array(json, object, "segments"), "operations", run->segments,
              run->segment_count);
    add_parts(json, json_array(json, object, "ops"), "count", run->operations,
              run->operation_count);
    add_kernels(json, object, run);
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
    return json_print(&json, stream);
}
