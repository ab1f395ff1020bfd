#include "mpi/serve_report.h"

#include <inttypes.h>

#include "report/columns.h"
#include "report/members.h"

static double per_second(const struct served *served)
{
    return served->nanoseconds > 0 ? (double)served->requests * 1e9 / (double)served->nanoseconds
                                   : 0;
}

static const char *rank_text(const struct served *served, char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "%d", served->rank);
    return served->rank == SERVED_ALL ? "all" : text;
}

#define SERVED_FIELD(member) COLUMN_FIELD(struct served, member)

COLUMN_IF(rank_number, struct served, number, it->rank != SERVED_ALL, (uint64_t)it->rank)
COLUMN_OF(rank_name, struct served, text, rank_text(it, value->room))
COLUMN_OF(rate, struct served, factor, per_second(it))

static const struct column served_rows[] = {
    {"rank", NULL, COLUMN_COUNT, 0, .value = rank_number},
    {NULL, "rank", COLUMN_TEXT, IN_TEXT, .value = rank_name},
    {"host", "host", COLUMN_TEXT, IN_TEXT | SHRINKS | NONE_IF_0 | BLANK,
     COLUMN_CHARACTERS(struct served, host)},
    {"device", "device", COLUMN_TEXT, IN_TEXT | SHRINKS | NONE_IF_0 | BLANK,
     COLUMN_CHARACTERS(struct served, device)},
    {"requests", "requests", COLUMN_COUNT, IN_TEXT, SERVED_FIELD(requests)},
    {"left_out", NULL, COLUMN_COUNT, 0, SERVED_FIELD(left_out)},
    {"failed", NULL, COLUMN_COUNT, 0, SERVED_FIELD(failed)},
    {"batches", "batches", COLUMN_COUNT, IN_TEXT, SERVED_FIELD(batches)},
    {"batch", NULL, COLUMN_COUNT, 0, SERVED_FIELD(batch)},
    {"sessions", NULL, COLUMN_COUNT, 0, SERVED_FIELD(sessions)},
    {"ns", NULL, COLUMN_TIME, 0, SERVED_FIELD(nanoseconds)},
    {"requests_per_second", "a second", COLUMN_RATE, IN_TEXT, .value = rate},
    {"latency_ns.median", "median", COLUMN_TIME, IN_TEXT, SERVED_FIELD(latencies.median)},
    {"latency_ns.p95", "p95", COLUMN_TIME, IN_TEXT, SERVED_FIELD(latencies.p95)},
    {"latency_ns.p99", "p99", COLUMN_TIME, IN_TEXT, SERVED_FIELD(latencies.p99)},
    {"latency_ns.longest", NULL, COLUMN_TIME, 0, SERVED_FIELD(latencies.most)},
    {"longest_wait_ns", NULL, COLUMN_TIME, 0, SERVED_FIELD(longest_wait)},
    {"bytes_uploaded", NULL, COLUMN_BYTES, 0, SERVED_FIELD(bytes_uploaded)},
    {"bytes_written", NULL, COLUMN_BYTES, 0, SERVED_FIELD(bytes_written)},
    {"device_bytes", NULL, COLUMN_BYTES, 0, SERVED_FIELD(device_bytes)},
};

static const struct column_table served_columns = COLUMN_TABLE(served_rows);

/* Of all ranks, which work at the same time. */
static struct served sum_of(const struct serve_facts *facts)
{
    struct served sum = {.rank = SERVED_ALL};
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

enum healcl_status report_serve(const struct serve_facts *facts, const struct style *style)
{
    const struct served sum = sum_of(facts);
    report_label(style, "transcript", "%s", facts->file);
    report_label(style, "results", "%s", facts->folder);
    report_label(style, "bytes", "%s uploaded, %s of results, %s on devices",
                 TEXT_BYTES(sum.bytes_uploaded), TEXT_BYTES(sum.bytes_written),
                 TEXT_BYTES(sum.device_bytes));
    if (sum.left_out > 0)
        report_label(style, "left out", "%" PRIu64 " requests, whose results were there",
                     sum.left_out);
    if (sum.failed > 0)
        report_label(style, "failed", "%" PRIu64 " requests", sum.failed);
    putc('\n', style->stream);
    struct table *table = columns_create(&served_columns, IN_TEXT);
    for (int rank = 0; rank < facts->rank_count; rank++)
        columns_row(table, &served_columns, IN_TEXT, NULL, &facts->ranks[rank]);
    columns_row(table, &served_columns, IN_TEXT, NULL, &sum);
    return table_print(table, style->stream, style->width);
}

enum healcl_status report_serve_json(const struct serve_facts *facts, FILE *stream)
{
    const struct served sum = sum_of(facts);
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    json_string(&json, json.top, "results", facts->folder);
    columns_add_list(&json, json.top, "ranks", &served_columns, NULL,
                     COLUMN_RECORDS(facts->ranks, (size_t)facts->rank_count));
    columns_add_json(&json, json.top, &served_columns, NULL, &sum);
    return json_print(&json, stream);
}
