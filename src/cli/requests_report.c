#include "cli/requests_report.h"

#include "core/numbers.h"

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

/* ---------------------------------------------------------------- JSON */

void latencies_json(cJSON *object, const char *name, const struct latencies *latencies)
{
    cJSON *member = json_add_object(object, name);
    JSON_ADD(member, NUMBER("median", latencies->median), NUMBER("p95", latencies->p95),
             NUMBER("p99", latencies->p99), NUMBER("longest", latencies->most));
}

/* Of all of them, or 0 where none was done. */
static double per_second(const struct request_facts *facts)
{
    return facts->spent_nanoseconds > 0 ? facts->done * 1e9 / (double)facts->spent_nanoseconds : 0;
}

void report_add_steady(cJSON *document, const struct request_facts *facts)
{
    cJSON *object = json_add_object(document, "steady");
    json_add_numbers(object, "requests_ns", facts->nanoseconds, facts->done);
    JSON_ADD(object, NUMBER("bytes_uploaded", facts->bytes_uploaded),
             NUMBER("results_compared", facts->compared),
             NUMBER("results_different", facts->different));
}

static double audit_share(const struct healcl_audit_facts *facts)
{
    return facts->run_nanoseconds > 0 ? (double)facts->nanoseconds / (double)facts->run_nanoseconds
                                      : 0;
}

static void add_difference(cJSON *object, const struct request_audit *audit)
{
    const struct healcl_audit_difference *difference = audit->facts.difference;
    JSON_ADD(object, NUMBER("entry", difference->entry), STRING("op", difference->operation),
             NUMBER("step", difference->step), STRING("kernel", difference->kernel),
             NUMBER("element", difference->element), STRING("index", difference->index),
             INTEGER("actual", difference->actual), INTEGER("expected", difference->expected),
             NUMBER("different", difference->different), NUMBER("compared", difference->compared),
             STRING("message", audit->error.message));
}

static void add_audit(cJSON *document, const struct request_audit *audit)
{
    const struct healcl_audit_facts *facts = &audit->facts;
    cJSON *object = json_add_object(document, "audit");
    JSON_ADD(object, STRING("verdict", facts->difference ? "differs" : "agrees"),
             DECIMAL("share", audit->share), DECIMAL("share_taken", audit_share(facts)),
             NUMBER("steps", facts->steps), NUMBER("steps_audited", facts->steps_audited),
             NUMBER("steps_left_out", facts->steps_left_out), NUMBER("audits", facts->audits),
             NUMBER("elements", facts->elements), NUMBER("ns", facts->nanoseconds));
    cJSON *kernels = json_add_array(object, "kernels");
    for (size_t i = 0; i < facts->kernel_count; i++) {
        cJSON *kernel = json_add_object(kernels, NULL);
        JSON_ADD(kernel, STRING("name", facts->kernels[i].name),
                 NUMBER("steps", facts->kernels[i].steps),
                 NUMBER("steps_audited", facts->kernels[i].steps_audited),
                 NUMBER("audits", facts->kernels[i].audits),
                 NUMBER("elements", facts->kernels[i].elements));
    }
    if (facts->difference)
        add_difference(json_add_object(object, "difference"), audit);
}

cJSON *report_requests(const struct request_facts *facts)
{
    const struct latencies latencies = latencies_of(facts->nanoseconds, facts->done);
    cJSON *document = report_of(facts->file, facts->device);
    JSON_ADD(document, NUMBER("requests", facts->done),
             DECIMAL("requests_per_second", per_second(facts)));
    latencies_json(document, "latency_ns", &latencies);
    JSON_ADD(document, NUMBER("bytes_uploaded", facts->bytes_uploaded),
             NUMBER("fallbacks", facts->fallbacks), NUMBER("first_ns", facts->first_nanoseconds),
             NUMBER("first_bytes_uploaded", facts->first_bytes_uploaded),
             NUMBER("device_bytes", facts->device_bytes),
             NUMBER("results_compared", facts->compared),
             NUMBER("results_different", facts->different));
    if (facts->audit.share > 0)
        add_audit(document, &facts->audit);
    return document;
}

/* ---------------------------------------------------------------- text */

void report_requests_text(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"requests", "{requests}, {requests_per_second:factor} a second"},
        {"latency", "median {latency_ns.median:time}, p95 {latency_ns.p95:time}, p99 "
                    "{latency_ns.p99:time}, longest {latency_ns.longest:time}"},
        {"upload", "{bytes_uploaded:bytes} by each"},
        {"first", "{first_ns:time}, with an upload of {first_bytes_uploaded:bytes}"},
        {"memory", "{device_bytes:bytes} on {device.name}"},
        {"on the host", "{fallbacks:#?} steps of the last request"},
        {"audited", "{audit.audits} times a step, {audit.elements} elements, in {audit.ns:time}, "
                    "{audit.share_taken:%} of all"},
        {"covered", "{audit.steps_audited} of {audit.steps} steps"},
        {"not audited", "{audit.steps_left_out:#?} steps of the transcript"},
        {"differs", "entry {audit.difference.entry} ({audit.difference.op}), step "
                    "{audit.difference.step} ({audit.difference.kernel}) at "
                    "{audit.difference.index}: {audit.difference.actual}, expected "
                    "{audit.difference.expected}"},
        {"results", "{results_compared:#?} compared, {results_different} differ"}};
    VIEW_LINES(style, document, lines);
    if (json_number_at(document, "results_compared") == 0)
        report_label(style, "results", "none compared");
}
