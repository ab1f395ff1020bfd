/* A run, for programs: docs/JSON.md. */
#include <stdlib.h>

#include "core/numbers.h"
#include "report/members.h"
#include "report/requests.h"
#include "report/run_kernels.h"
#include "report/run_segments.h"

#define KERNEL_FIELD(member) COLUMN_FIELD(struct healcl_manifest_kernel, member)

static const struct column kernel_rows[] = {
    {"name", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(name)},
    {"of", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(what)},
    {"manifest", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(manifest)},
    {"replaces", NULL, COLUMN_FLAG, 0, KERNEL_FIELD(replaces)},
    {"steps", NULL, COLUMN_COUNT, 0, KERNEL_FIELD(steps)},
    {"tuned", NULL, COLUMN_FLAG, 0, KERNEL_FIELD(tuned)},
};

const struct column_table report_kernel_columns = COLUMN_TABLE(kernel_rows);

/* Bytes that the operations of a segment read and write, by number, for the caller to free; NULL
 * when out of memory. */
static uint64_t *sum_bytes(const struct plan *plan, const struct segment *segment)
{
    uint64_t *bytes = calloc(operation_count(plan->table), sizeof *bytes);
    const struct step *steps = plan->steps + segment->first_step;
    for (size_t i = 0; bytes && i < segment->step_count; i++)
        if (steps[i].kind != STEP_RELEASE)
            origins_share(steps[i].origins, step_bytes(&steps[i]), bytes);
    return bytes;
}

static void add_segment(struct json *json, cJSON *segments, const struct run_facts *facts, size_t i)
{
    const struct plan *plan = facts->plan;
    const struct segment *planned = &plan->segments[i];
    const struct segment_row row = report_segment_row(facts, i);
    cJSON *object = json_object(json, segments, NULL);
    columns_add_json(json, object, &report_segment_columns, NULL, &row);
    cJSON *kinds = json_array(json, object, "operations_by_kind");
    uint64_t *bytes = sum_bytes(plan, planned);
    json->failed |= !bytes;
    /* The profiles are those of the operations that are counted, in their order. */
    const struct healcl_operation_profile *profile = row.of.profiles;
    for (size_t number = 0; bytes && number < operation_count(plan->table); number++) {
        if (planned->counts[number] == 0)
            continue;
        cJSON *kind = json_object(json, kinds, NULL);
        json_string(json, kind, "name", profile->name);
        json_number(json, kind, "count", profile->count);
        json_number(json, kind, "time_ns", profile->nanoseconds);
        json_number(json, kind, "bytes", bytes[number]);
        json_number(json, kind, "fallbacks", profile->fallbacks);
        if (profile->fallbacks > 0) {
            json_number(json, kind, "fallback_ns", profile->fallback_nanoseconds);
            json_string(json, kind, "fallback_reason", profile->fallback_reason);
        }
        profile++;
    }
    free(bytes);
}

/* What the runs are made of. */
static void add_split(struct json *json, const struct healcl_report *report)
{
    uint64_t *compute = calloc(report->run_count + 1, sizeof *compute);
    cJSON *split = json_object(json, json->top, "split");
    json_string(json, split, "clock", "host");
    cJSON *decodes = json_array(json, split, "decode_ns");
    cJSON *transfers = json_array(json, split, "transfer_ns");
    cJSON *computes = json_array(json, split, "compute_ns");
    json->failed |= !compute;
    for (size_t i = 0; compute && i < report->run_count; i++) {
        const uint64_t all = report->run_nanoseconds[i];
        uint64_t decode = report->decode_nanoseconds[i];
        decode = decode < all ? decode : all;
        compute[i] = report->compute_nanoseconds[i];
        compute[i] = compute[i] < all - decode ? compute[i] : all - decode;
        json_number(json, decodes, NULL, decode);
        json_number(json, transfers, NULL, all - decode - compute[i]);
        json_number(json, computes, NULL, compute[i]);
    }
    if (compute)
        json_number(json, json->top, "compute_ns", sort_to_median(compute, report->run_count));
    free(compute);
}

/* What the device's rates allow for the kernels. */
static void add_roofline(struct json *json, const struct run_facts *facts)
{
    uint64_t allowed = 0;
    for (size_t i = 0; i < facts->report->segment_count; i++)
        allowed += roofline_time(&facts->roofline, &facts->plan->segments[i].after);
    if (facts->roofline.bytes == 0)
        return;
    json_number(json, json->top, "roofline_ns", allowed);
    report_roofline(json, json->top, &facts->roofline);
}

static void add_verdict(struct json *json, const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    if (report->verdict == HEALCL_NOTHING_TO_VERIFY)
        json_null(json, json->top, "verified");
    else
        json_bool(json, json->top, "verified", report->verdict == HEALCL_VERIFIED);
    cJSON *results = json_object(json, json->top, "results");
    json_number(json, results, "total", report->results);
    json_number(json, results, "expected", facts->plan->expected);
    json_number(json, results, "compared", report->results_compared);
    json_number(json, results, "different", report->results_different);
    cJSON *differences = json_array(json, json->top, "differences");
    for (size_t i = 0; i < facts->difference_count; i++)
        json_string(json, differences, NULL, facts->differences[i].line);
}

/* Where device memory is limited. */
static void add_memory(struct json *json, const struct healcl_report *report)
{
    const struct memory_facts memory = {.limit = report->device_memory_limit,
                                        .peak = report->tensor_bytes_peak,
                                        .price = {.spilled = report->bytes_spilled,
                                                  .brought_back = report->bytes_brought_back,
                                                  .streamed_again = report->bytes_streamed_again}};
    json_number(json, report_memory(json, json->top, &memory), "moving_ns",
                report->spill_nanoseconds);
}

enum healcl_status report_run_json(const struct run_facts *facts, FILE *stream)
{
    const struct healcl_report *report = facts->report;
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    if (facts->device) {
        cJSON *device = json_object(&json, json.top, "device");
        report_device_members(&json, device, facts->device);
        report_tuning(&json, device, facts->tuning);
    } else
        json_string(&json, json.top, "device", "reference");
    add_verdict(&json, facts);
    cJSON *runs = json_array(&json, json.top, "runs_ns");
    for (size_t i = 0; i < report->run_count; i++)
        json_number(&json, runs, NULL, report->run_nanoseconds[i]);
    if (report->decode_nanoseconds)
        add_split(&json, report);
    add_roofline(&json, facts);
    if (facts->steady)
        report_steady_json(&json, facts->steady);
    cJSON *profile = json_object(&json, json.top, "profile");
    json_string(&json, profile, "clock", report->operations_by_host ? "host" : "device");
    cJSON *profiled = json_array(&json, profile, "runs_ns");
    for (size_t i = 0; i < report->profiled_count; i++)
        json_number(&json, profiled, NULL, report->profiled_nanoseconds[i]);
    json_number(&json, json.top, "open_device_ns", facts->open_device_nanoseconds);
    json_number(&json, json.top, "self_test_ns", facts->self_test_nanoseconds);
    json_number(&json, json.top, "open_transcript_ns", facts->open_transcript_nanoseconds);
    json_number(&json, json.top, "compile_ns", report->compile_nanoseconds);
    json_number(&json, json.top, "warm_up_ns", report->warm_up_nanoseconds);
    json_number(&json, json.top, "programs_built", report->programs_built);
    json_number(&json, json.top, "programs_loaded", report->programs_loaded);
    json_number(&json, json.top, "first_launches", report->first_launches);
    json_number(&json, json.top, "first_launch_ns", report->first_launch_nanoseconds);
    json_number(&json, json.top, "first_result_ns", facts->first_result_nanoseconds);
    json_number(&json, json.top, "verify_ns", report->verify_nanoseconds);
    json_number(&json, json.top, "total_ns", facts->total_nanoseconds);
    json_number(&json, json.top, "device_memory_peak", report->device_bytes_peak);
    if (report->device_memory_limit > 0)
        add_memory(&json, report);
    else if (facts->device)
        report_tensor_memory(&json, json.top,
                             &(struct memory_facts){.allocated = report->tensor_bytes_allocated,
                                                    .live = report->tensor_bytes_live});
    json_number(&json, json.top, "bytes_up", facts->plan->bytes_up);
    json_number(&json, json.top, "bytes_down", facts->plan->bytes_down);
    json_number(&json, json.top, "dropped_digits", report->dropped_digits);
    json_number(&json, json.top, "fallbacks", report->fallbacks);
    if (report->manifest_kernel_count > 0)
        columns_add_list(&json, json.top, "manifest_kernels", &report_kernel_columns, NULL,
                         COLUMN_RECORDS(report->manifest_kernels, report->manifest_kernel_count));
    if (facts->kernels)
        columns_add_list(&json, json.top, "kernels", &kernel_row_columns, NULL,
                         COLUMN_RECORDS(facts->kernels->of, facts->kernels->count));
    cJSON *segments = json_array(&json, json.top, "segments");
    for (size_t i = 0; i < report->segment_count; i++)
        add_segment(&json, segments, facts, i);
    return json_print(&json, stream);
}
