#include "report/requests.h"

#include <inttypes.h>

#include "core/numbers.h"
#include "report/members.h"
#include "report/text.h"

struct latencies latencies_of(uint64_t *nanoseconds, size_t count)
{
    if (count == 0)
        return (struct latencies){.median = 0};
    uint64_t median = sort_to_median(nanoseconds, count);
    return (struct latencies){
        .median = median,
        .p95 = sorted_percentile(nanoseconds, count, 95),
        .p99 = sorted_percentile(nanoseconds, count, 99),
        .most = nanoseconds[count - 1],
    };
}

const char *latencies_text(const struct latencies *latencies, char text[LATENCIES_TEXT_SIZE])
{
    char median[UNIT_TEXT_SIZE], p95[UNIT_TEXT_SIZE], p99[UNIT_TEXT_SIZE], most[UNIT_TEXT_SIZE];
    snprintf(text, LATENCIES_TEXT_SIZE, "median %s, p95 %s, p99 %s, longest %s",
             text_time(latencies->median, median), text_time(latencies->p95, p95),
             text_time(latencies->p99, p99), text_time(latencies->most, most));
    return text;
}

void latencies_json(struct json *json, cJSON *object, const char *name,
                    const struct latencies *latencies)
{
    cJSON *member = json_object(json, object, name);
    json_number(json, member, "median", latencies->median);
    json_number(json, member, "p95", latencies->p95);
    json_number(json, member, "p99", latencies->p99);
    json_number(json, member, "longest", latencies->most);
}

/* Of all of them, or 0 where none was done. */
static double per_second(const struct request_facts *facts)
{
    return facts->spent_nanoseconds > 0 ? facts->done * 1e9 / (double)facts->spent_nanoseconds : 0;
}

static double audit_share(const struct healcl_audit_facts *facts)
{
    return facts->run_nanoseconds > 0 ? (double)facts->nanoseconds / (double)facts->run_nanoseconds
                                      : 0;
}

static void report_audit(const struct request_audit *audit, const struct style *style)
{
    const struct healcl_audit_facts *facts = &audit->facts;
    const struct healcl_audit_difference *difference = facts->difference;
    char time[UNIT_TEXT_SIZE];
    size_t kernels = 0;
    for (size_t i = 0; i < facts->kernel_count; i++)
        kernels += facts->kernels[i].audits > 0;
    report_label(style, "audited",
                 "%" PRIu64 " times a step, %" PRIu64 " elements, in %s, %.2f %% of all",
                 facts->audits, facts->elements, text_time(facts->nanoseconds, time),
                 100 * audit_share(facts));
    report_label(style, "covered", "%zu of %zu steps, %zu of %zu kernels", facts->steps_audited,
                 facts->steps, kernels, facts->kernel_count);
    if (facts->steps_left_out > 0)
        report_label(style, "not audited", "%" PRIu64 " steps of the transcript",
                     facts->steps_left_out);
    if (!difference)
        return;
    report_label(style, "differs",
                 "entry %zu (%s), step %zu (%s) at %s: %" PRId64 ", expected %" PRId64,
                 difference->entry, difference->operation, difference->step, difference->kernel,
                 difference->index, difference->actual, difference->expected);
}

enum healcl_status report_requests(struct request_facts *facts, const struct style *style)
{
    struct latencies latencies = latencies_of(facts->nanoseconds, facts->done);
    char time[UNIT_TEXT_SIZE], bytes[UNIT_TEXT_SIZE], text[LATENCIES_TEXT_SIZE];
    report_label(style, "requests", "%" PRIu32 ", %.4g a second", facts->done, per_second(facts));
    report_label(style, "latency", "%s", latencies_text(&latencies, text));
    report_label(style, "upload", "%s by each", text_bytes(facts->bytes_uploaded, bytes));
    report_label(style, "first", "%s, with an upload of %s",
                 text_time(facts->first_nanoseconds, time),
                 text_bytes(facts->first_bytes_uploaded, bytes));
    if (facts->device)
        report_label(style, "memory", "%s on %s", text_bytes(facts->device_bytes, bytes),
                     facts->device->name);
    if (facts->fallbacks > 0)
        report_label(style, "on the host", "%" PRIu64 " steps of the last request",
                     facts->fallbacks);
    if (facts->audit.share > 0)
        report_audit(&facts->audit, style);
    if (facts->compared > 0 && facts->different == 0)
        report_label(style, "results", "%" PRIu64 " compared, all equal", facts->compared);
    else if (facts->compared > 0)
        report_label(style, "results", "%" PRIu64 " compared, %" PRIu64 " differ", facts->compared,
                     facts->different);
    else
        report_label(style, "results", "%s", "none compared");
    return HEALCL_OK;
}

void report_steady(const struct request_facts *facts, const struct style *style)
{
    uint64_t least = UINT64_MAX, most = 0;
    char fastest[UNIT_TEXT_SIZE], slowest[UNIT_TEXT_SIZE], bytes[UNIT_TEXT_SIZE];
    for (uint32_t i = 0; i < facts->done; i++) {
        least = facts->nanoseconds[i] < least ? facts->nanoseconds[i] : least;
        most = facts->nanoseconds[i] > most ? facts->nanoseconds[i] : most;
    }
    report_label(style, "steady", "%" PRIu32 " requests of %s to %s, each uploads %s", facts->done,
                 text_time(least, fastest), text_time(most, slowest),
                 text_bytes(facts->bytes_uploaded, bytes));
}

void report_steady_json(struct json *json, const struct request_facts *facts)
{
    cJSON *object = json_object(json, json->top, "steady");
    cJSON *times = json_array(json, object, "requests_ns");
    for (uint32_t i = 0; i < facts->done; i++)
        json_number(json, times, NULL, facts->nanoseconds[i]);
    json_number(json, object, "bytes_uploaded", facts->bytes_uploaded);
    json_number(json, object, "results_compared", facts->compared);
    json_number(json, object, "results_different", facts->different);
}

static void add_difference(struct json *json, cJSON *object, const struct request_audit *audit)
{
    const struct healcl_audit_difference *difference = audit->facts.difference;
    json_number(json, object, "entry", difference->entry);
    json_string(json, object, "op", difference->operation);
    json_number(json, object, "step", difference->step);
    json_string(json, object, "kernel", difference->kernel);
    json_number(json, object, "element", difference->element);
    json_string(json, object, "index", difference->index);
    json_integer(json, object, "actual", difference->actual);
    json_integer(json, object, "expected", difference->expected);
    json_number(json, object, "different", difference->different);
    json_number(json, object, "compared", difference->compared);
    json_string(json, object, "message", audit->error.message);
}

static void add_audit(struct json *json, const struct request_audit *audit)
{
    const struct healcl_audit_facts *facts = &audit->facts;
    cJSON *object = json_object(json, json->top, "audit");
    json_string(json, object, "verdict", facts->difference ? "differs" : "agrees");
    json_decimal(json, object, "share", audit->share);
    json_decimal(json, object, "share_taken", audit_share(facts));
    json_number(json, object, "steps", facts->steps);
    json_number(json, object, "steps_audited", facts->steps_audited);
    json_number(json, object, "steps_left_out", facts->steps_left_out);
    json_number(json, object, "audits", facts->audits);
    json_number(json, object, "elements", facts->elements);
    json_number(json, object, "ns", facts->nanoseconds);
    cJSON *kernels = json_array(json, object, "kernels");
    for (size_t i = 0; i < facts->kernel_count; i++) {
        cJSON *kernel = json_object(json, kernels, NULL);
        json_string(json, kernel, "name", facts->kernels[i].name);
        json_number(json, kernel, "steps", facts->kernels[i].steps);
        json_number(json, kernel, "steps_audited", facts->kernels[i].steps_audited);
        json_number(json, kernel, "audits", facts->kernels[i].audits);
        json_number(json, kernel, "elements", facts->kernels[i].elements);
    }
    if (facts->difference)
        add_difference(json, json_object(json, object, "difference"), audit);
}

enum healcl_status report_requests_json(struct request_facts *facts, FILE *stream)
{
    struct latencies latencies = latencies_of(facts->nanoseconds, facts->done);
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    if (facts->device)
        report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    else
        json_string(&json, json.top, "device", "reference");
    json_number(&json, json.top, "requests", facts->done);
    json_decimal(&json, json.top, "requests_per_second", per_second(facts));
    latencies_json(&json, json.top, "latency_ns", &latencies);
    json_number(&json, json.top, "bytes_uploaded", facts->bytes_uploaded);
    json_number(&json, json.top, "fallbacks", facts->fallbacks);
    json_number(&json, json.top, "first_ns", facts->first_nanoseconds);
    json_number(&json, json.top, "first_bytes_uploaded", facts->first_bytes_uploaded);
    json_number(&json, json.top, "device_bytes", facts->device_bytes);
    json_number(&json, json.top, "results_compared", facts->compared);
    json_number(&json, json.top, "results_different", facts->different);
    if (facts->audit.share > 0)
        add_audit(&json, &facts->audit);
    return json_print(&json, stream);
}
