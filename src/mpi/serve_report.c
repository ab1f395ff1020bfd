#include "mpi/serve_report.h"

#include "cli/report.h"

static void add_served(cJSON *object, const struct served *served)
{
    const double seconds = (double)served->nanoseconds / 1e9;
    JSON_ADD(object, NUMBER("requests", served->requests), NUMBER("left_out", served->left_out),
             NUMBER("failed", served->failed), NUMBER("batches", served->batches),
             NUMBER("batch", served->batch), NUMBER("sessions", served->sessions),
             NUMBER("ns", served->nanoseconds),
             DECIMAL("requests_per_second", seconds > 0 ? (double)served->requests / seconds : 0));
    latencies_json(object, "latency_ns", &served->latencies);
    JSON_ADD(object, NUMBER("longest_wait_ns", served->longest_wait),
             NUMBER("bytes_uploaded", served->bytes_uploaded),
             NUMBER("bytes_written", served->bytes_written),
             NUMBER("device_bytes", served->device_bytes));
}

/* Of all ranks, which work at the same time. */
static struct served sum_of(const struct serve_facts *facts)
{
    struct served sum = {.rank = 0};
    for (int rank = 0; rank < facts->rank_count; rank++) {
        const struct served *served = &facts->ranks[rank];
        sum.requests += served->requests;
        sum.left_out += served->left_out;
        sum.failed += served->failed;
        sum.bytes_uploaded += served->bytes_uploaded;
        sum.bytes_written += served->bytes_written;
        sum.device_bytes += served->device_bytes;
        sum.batches += served->batches;
        sum.sessions += served->sessions;
        if (served->batch > sum.batch)
            sum.batch = served->batch;
        if (served->nanoseconds > sum.nanoseconds)
            sum.nanoseconds = served->nanoseconds;
        if (served->longest_wait > sum.longest_wait)
            sum.longest_wait = served->longest_wait;
    }
    sum.latencies = latencies_of(facts->nanoseconds, sum.requests);
    return sum;
}

cJSON *report_serve(const struct serve_facts *facts)
{
    const struct served sum = sum_of(facts);
    cJSON *document = json_report();
    JSON_ADD(document, STRING("transcript", facts->file), STRING("results", facts->folder));
    cJSON *ranks = json_add_array(document, "ranks");
    for (int i = 0; i < facts->rank_count; i++) {
        cJSON *object = json_add_object(ranks, NULL);
        JSON_ADD(object, NUMBER("rank", (uint64_t)facts->ranks[i].rank),
                 STRING("host", facts->ranks[i].host), STRING("device", facts->ranks[i].device));
        add_served(object, &facts->ranks[i]);
    }
    add_served(document, &sum);
    return document;
}

void report_serve_text(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"transcript", "{transcript}"},
        {"results", "{results}"},
        {"bytes", "{bytes_uploaded:bytes} uploaded, {bytes_written:bytes} of results, "
                  "{device_bytes:bytes} on devices"},
        {"left out", "{left_out:#?} requests, whose results were there"},
        {"failed", "{failed:#?} requests"},
    };
    static const struct view_column columns[] = {
        {"rank", "{rank|all}", VIEW_RIGHT},
        {"host", "{host}", VIEW_SHRINKS | VIEW_BLANK},
        {"device", "{device}", VIEW_SHRINKS | VIEW_BLANK},
        {"requests", "{requests}", VIEW_RIGHT},
        {"batches", "{batches}", VIEW_RIGHT},
        {"a second", "{requests_per_second:factor}", VIEW_RIGHT},
        {"median", "{latency_ns.median:time}", VIEW_RIGHT},
        {"p95", "{latency_ns.p95:time}", VIEW_RIGHT},
        {"p99", "{latency_ns.p99:time}", VIEW_RIGHT},
    };
    cJSON *rows = cJSON_Duplicate(json_at(document, "ranks"), true),
          *all = cJSON_Duplicate(document, true);
    cJSON_AddItemToArray(rows, all);
    VIEW_LINES(style, document, lines);
    putc('\n', style->stream);
    VIEW_TABLE(style, rows, columns);
    cJSON_Delete(rows);
}
