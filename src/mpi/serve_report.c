#include "mpi/serve_report.h"

#include <inttypes.h>
#include <string.h>

#include "report/members.h"
#include "report/table.h"
#include "report/text.h"

/* Of all ranks, which work at the same time. */
static struct served sum_of(const struct serve_facts *facts)
{
    struct served sum = {.requests = 0};
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
    return sum;
}

static double per_second(const struct served *served)
{
    return served->nanoseconds > 0 ? (double)served->requests * 1e9 / (double)served->nanoseconds
                                   : 0;
}

/* ---------------------------------------------------------------- text */

static void add_row(struct table *table, const char *name, const struct served *served,
                    uint64_t *nanoseconds)
{
    const struct latencies latencies = latencies_of(nanoseconds, served->requests);
    char time[UNIT_TEXT_SIZE];
    table_cell(table, "%s", name);
    table_cell(table, "%s", served->host);
    table_cell(table, "%s", served->device);
    table_cell(table, "%" PRIu64, served->requests);
    table_cell(table, "%" PRIu64, served->batches);
    table_cell(table, "%.4g", per_second(served));
    table_cell(table, "%s", text_time(latencies.median, time));
    table_cell(table, "%s", text_time(latencies.p95, time));
    table_cell(table, "%s", text_time(latencies.p99, time));
}

/* Each rank's rows first: sorting all latencies mixes them. */
static void add_rows(struct table *table, const struct serve_facts *facts)
{
    const struct served sum = sum_of(facts);
    uint64_t *nanoseconds = facts->nanoseconds;
    for (int rank = 0; rank < facts->rank_count; rank++) {
        char name[16];
        snprintf(name, sizeof name, "%d", rank);
        add_row(table, name, &facts->ranks[rank], nanoseconds);
        nanoseconds += facts->ranks[rank].requests;
    }
    add_row(table, "all", &sum, facts->nanoseconds);
}

enum healcl_status report_serve(const struct serve_facts *facts, const struct style *style)
{
    static const struct table_column columns[] = {
        {"rank", TABLE_LEFT, false},     {"host", TABLE_LEFT, true},
        {"device", TABLE_LEFT, true},    {"requests", TABLE_RIGHT, false},
        {"batches", TABLE_RIGHT, false}, {"a second", TABLE_RIGHT, false},
        {"median", TABLE_RIGHT, false},  {"p95", TABLE_RIGHT, false},
        {"p99", TABLE_RIGHT, false},
    };
    char up[UNIT_TEXT_SIZE], down[UNIT_TEXT_SIZE], memory[UNIT_TEXT_SIZE];
    const struct served sum = sum_of(facts);
    report_label(style, "transcript", "%s", facts->file);
    report_label(style, "results", "%s", facts->folder);
    report_label(style, "bytes", "%s uploaded, %s of results, %s on devices",
                 text_bytes(sum.bytes_uploaded, up), text_bytes(sum.bytes_written, down),
                 text_bytes(sum.device_bytes, memory));
    if (sum.left_out > 0)
        report_label(style, "left out", "%" PRIu64 " requests, whose results were there",
                     sum.left_out);
    if (sum.failed > 0)
        report_label(style, "failed", "%" PRIu64 " requests", sum.failed);
    putc('\n', style->stream);
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    if (table)
        add_rows(table, facts);
    return table_print(table, style->stream, style->width);
}

/* ---------------------------------------------------------------- JSON */

static void add_members(struct json *json, cJSON *object, const struct served *served,
                        uint64_t *nanoseconds)
{
    const struct latencies latencies = latencies_of(nanoseconds, served->requests);
    json_number(json, object, "requests", served->requests);
    json_number(json, object, "left_out", served->left_out);
    json_number(json, object, "failed", served->failed);
    json_number(json, object, "ns", served->nanoseconds);
    json_decimal(json, object, "requests_per_second", per_second(served));
    latencies_json(json, object, "latency_ns", &latencies);
    json_number(json, object, "longest_wait_ns", served->longest_wait);
    json_number(json, object, "bytes_uploaded", served->bytes_uploaded);
    json_number(json, object, "bytes_written", served->bytes_written);
    json_number(json, object, "device_bytes", served->device_bytes);
    json_number(json, object, "sessions", served->sessions);
    json_number(json, object, "batch", served->batch);
    json_number(json, object, "batches", served->batches);
}

static void add_ranks(struct json *json, const struct serve_facts *facts)
{
    cJSON *ranks = json_array(json, json->top, "ranks");
    uint64_t *nanoseconds = facts->nanoseconds;
    for (int rank = 0; rank < facts->rank_count; rank++) {
        const struct served *served = &facts->ranks[rank];
        cJSON *object = json_object(json, ranks, NULL);
        json_number(json, object, "rank", (uint64_t)rank);
        json_string(json, object, "host", served->host);
        json_string(json, object, "device", served->device);
        add_members(json, object, served, nanoseconds);
        nanoseconds += served->requests;
    }
}

enum healcl_status report_serve_json(const struct serve_facts *facts, FILE *stream)
{
    const struct served sum = sum_of(facts);
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    json_string(&json, json.top, "results", facts->folder);
    add_ranks(&json, facts);
    add_members(&json, json.top, &sum, facts->nanoseconds);
    cJSON *failures = json_array(&json, json.top, "failures");
    for (size_t i = 0; i < facts->failure_count; i++) {
        cJSON *object = json_object(&json, failures, NULL);
        json_string(&json, object, "request", facts->failures[i].name);
        json_number(&json, object, "rank", (uint64_t)facts->failures[i].rank);
        json_string(&json, object, "message", facts->failures[i].message);
    }
    return json_print(&json, stream);
}
