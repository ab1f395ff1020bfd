#include "report/requests.h"

#include <inttypes.h>

#include "core/numbers.h"
#include "report/internal.h"
#include "report/json.h"
#include "report/text.h"

struct latencies {
    uint64_t median, p95, p99, most;
    double per_second;
};

/* The smallest of count sorted values that so many of a hundred are not above. */
static uint64_t percentile(const uint64_t *values, uint32_t count, uint32_t percent)
{
    uint64_t rank = ((uint64_t)count * percent + 99) / 100;
    return values[rank > 0 ? rank - 1 : 0];
}

static struct latencies latencies_of(struct request_facts *facts)
{
    double sum = 0;
    for (uint32_t i = 0; i < facts->count; i++)
        sum += (double)facts->nanoseconds[i];
    uint64_t median = sort_to_median(facts->nanoseconds, facts->count);
    return (struct latencies){
        .median = median,
        .p95 = percentile(facts->nanoseconds, facts->count, 95),
        .p99 = percentile(facts->nanoseconds, facts->count, 99),
        .most = facts->nanoseconds[facts->count - 1],
        .per_second = sum > 0 ? facts->count * 1e9 / sum : 0,
    };
}

enum healcl_status report_requests(struct request_facts *facts, const struct style *style)
{
    struct latencies latencies = latencies_of(facts);
    char median[UNIT_TEXT_SIZE], p95[UNIT_TEXT_SIZE], p99[UNIT_TEXT_SIZE], most[UNIT_TEXT_SIZE];
    char bytes[UNIT_TEXT_SIZE];
    report_label(style, "requests", "%" PRIu32 ", %.4g a second", facts->count,
                 latencies.per_second);
    report_label(style, "latency", "median %s, p95 %s, p99 %s, longest %s",
                 text_time(latencies.median, median), text_time(latencies.p95, p95),
                 text_time(latencies.p99, p99), text_time(latencies.most, most));
    report_label(style, "upload", "%s by each", text_bytes(facts->bytes_uploaded, bytes));
    report_label(style, "first", "%s, with an upload of %s",
                 text_time(facts->first_nanoseconds, median),
                 text_bytes(facts->first_bytes_uploaded, bytes));
    if (facts->device)
        report_label(style, "memory", "%s on %s", text_bytes(facts->device_bytes, bytes),
                     facts->device->name);
    if (facts->fallbacks > 0)
        report_label(style, "on the host", "%" PRIu64 " steps of the last request",
                     facts->fallbacks);
    if (facts->compared > 0 && facts->different == 0)
        report_label(style, "results", "%" PRIu64 " compared, all equal", facts->compared);
    else if (facts->compared > 0)
        report_label(style, "results", "%" PRIu64 " compared, %" PRIu64 " differ", facts->compared,
                     facts->different);
    else
        report_label(style, "results", "%s", "none compared");
    return HEALCL_OK;
}

enum healcl_status report_requests_json(struct request_facts *facts, FILE *stream)
{
    struct latencies latencies = latencies_of(facts);
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    if (facts->device)
        report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    else
        json_string(&json, json.top, "device", "reference");
    json_number(&json, json.top, "requests", facts->count);
    json_decimal(&json, json.top, "requests_per_second", latencies.per_second);
    cJSON *object = json_object(&json, json.top, "latency_ns");
    json_number(&json, object, "median", latencies.median);
    json_number(&json, object, "p95", latencies.p95);
    json_number(&json, object, "p99", latencies.p99);
    json_number(&json, object, "longest", latencies.most);
    json_number(&json, json.top, "bytes_uploaded", facts->bytes_uploaded);
    json_number(&json, json.top, "fallbacks", facts->fallbacks);
    json_number(&json, json.top, "first_ns", facts->first_nanoseconds);
    json_number(&json, json.top, "first_bytes_uploaded", facts->first_bytes_uploaded);
    json_number(&json, json.top, "device_bytes", facts->device_bytes);
    json_number(&json, json.top, "results_compared", facts->compared);
    json_number(&json, json.top, "results_different", facts->different);
    return json_print(&json, stream);
}
