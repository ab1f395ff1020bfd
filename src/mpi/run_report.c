#include "mpi/run_report.h"

#include <inttypes.h>

#include "report/members.h"
#include "report/table.h"
#include "report/text.h"

/* ---------------------------------------------------------------- text */

static void add_row(struct table *table, uint32_t rank, const struct ran *ran)
{
    char text[UNIT_TEXT_SIZE];
    table_cell(table, "%" PRIu32, rank);
    table_cell(table, "%s", ran->host);
    table_cell(table, "%s", ran->device);
    table_cell(table, "%s", text_time(ran->nanoseconds, text));
    table_cell(table, "%s", text_time(ran->exchange_nanoseconds, text));
    table_cell(table, "%s", text_bytes(ran->bytes_sent, text));
    table_cell(table, "%s", text_bytes(ran->bytes_uploaded, text));
    table_cell(table, "%s", text_bytes(ran->device_bytes, text));
}

static void tell_split(const struct run_ranks_facts *facts, const struct style *style)
{
    size_t count;
    const struct healcl_tensor_info *input =
        healcl_transcript_inputs(facts->part, &count) + facts->split->input;
    if (facts->split->ranks > 1)
        report_label(style, "split", "entry %zu, tensor %s, along axis %" PRIu32 "%s", input->entry,
                     input->name, facts->split->axis,
                     facts->is_chosen ? " (the least memory, work and exchange)" : "");
}

enum healcl_status report_run_ranks(const struct run_ranks_facts *facts, const struct style *style)
{
    static const struct table_column columns[] = {
        {"rank", TABLE_LEFT, false},      {"host", TABLE_LEFT, true},
        {"device", TABLE_LEFT, true},     {"time", TABLE_RIGHT, false},
        {"exchange", TABLE_RIGHT, false}, {"sent", TABLE_RIGHT, false},
        {"uploaded", TABLE_RIGHT, false}, {"memory", TABLE_RIGHT, false},
    };
    report_label(style, "transcript", "%s", facts->file);
    tell_split(facts, style);
    putc('\n', style->stream);
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (uint32_t rank = 0; table && rank < facts->split->ranks; rank++)
        add_row(table, rank, &facts->ranks[rank]);
    TRY(table_print(table, style->stream, style->width));
    putc('\n', style->stream);
    if (facts->compared == 0)
        fputs("nothing to verify\n", style->stream);
    else
        fprintf(style->stream, "%s: %zu of %zu result%s\n",
                facts->different > 0 ? "different" : "verified",
                facts->different > 0 ? facts->different : facts->compared, facts->compared,
                facts->compared == 1 ? "" : "s");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- JSON */

static void add_rank(struct json *json, cJSON *list, uint32_t rank, const struct ran *ran)
{
    cJSON *object = json_object(json, list, NULL);
    json_number(json, object, "rank", rank);
    json_string(json, object, "host", ran->host);
    json_string(json, object, "device", ran->device);
    json_number(json, object, "ns", ran->nanoseconds);
    json_number(json, object, "exchange_ns", ran->exchange_nanoseconds);
    json_number(json, object, "bytes_sent", ran->bytes_sent);
    json_number(json, object, "bytes_foreseen", ran->bytes_foreseen);
    json_number(json, object, "bytes_uploaded", ran->bytes_uploaded);
    json_number(json, object, "tensor_bytes", ran->tensor_bytes);
    json_number(json, object, "device_bytes_peak", ran->device_bytes);
}

enum healcl_status report_run_ranks_json(const struct run_ranks_facts *facts, FILE *stream)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(facts->part);
    struct json json;
    size_t count;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    json_number(&json, json.top, "rank_count", facts->split->ranks);
    if (facts->split->ranks > 1) {
        cJSON *object = json_object(&json, json.top, "split");
        const struct healcl_tensor_info *input =
            healcl_transcript_inputs(facts->part, &count) + facts->split->input;
        json_number(&json, object, "entry", input->entry);
        json_number(&json, object, "axis", facts->split->axis);
        json_bool(&json, object, "chosen", facts->is_chosen);
    }
    json_number(&json, json.top, "repeat", facts->repeat);
    json_number(&json, json.top, "exchanges", split.exchanges);
    json_number(&json, json.top, "exchange_bytes", split.exchange_bytes);
    json_number(&json, json.top, "results_compared", facts->compared);
    json_number(&json, json.top, "results_different", facts->different);
    cJSON *ranks = json_array(&json, json.top, "ranks");
    for (uint32_t rank = 0; rank < facts->split->ranks; rank++)
        add_rank(&json, ranks, rank, &facts->ranks[rank]);
    report_parts(&json, json.top, facts->part);
    return json_print(&json, stream);
}
