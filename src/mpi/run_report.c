#include "mpi/run_report.h"

#include "report/columns.h"
#include "report/members.h"

#define RAN_FIELD(member) COLUMN_FIELD(struct ran, member)

static const struct column ran_rows[] = {
    {"rank", "rank", COLUMN_COUNT, IN_TEXT, RAN_FIELD(rank)},
    {"host", "host", COLUMN_TEXT, IN_TEXT | SHRINKS, COLUMN_CHARACTERS(struct ran, host)},
    {"device", "device", COLUMN_TEXT, IN_TEXT | SHRINKS, COLUMN_CHARACTERS(struct ran, device)},
    {"ns", "time", COLUMN_TIME, IN_TEXT, RAN_FIELD(nanoseconds)},
    {"exchange_ns", "exchange", COLUMN_TIME, IN_TEXT, RAN_FIELD(exchange_nanoseconds)},
    {"bytes_sent", "sent", COLUMN_BYTES, IN_TEXT, RAN_FIELD(bytes_sent)},
    {"bytes_foreseen", NULL, COLUMN_BYTES, 0, RAN_FIELD(bytes_foreseen)},
    {"bytes_uploaded", "uploaded", COLUMN_BYTES, IN_TEXT, RAN_FIELD(bytes_uploaded)},
    {"tensor_bytes", NULL, COLUMN_BYTES, 0, RAN_FIELD(tensor_bytes)},
    {"device_bytes_peak", "memory", COLUMN_BYTES, IN_TEXT, RAN_FIELD(device_bytes)},
};

static const struct column_table ran_columns = COLUMN_TABLE(ran_rows);

enum healcl_status report_run_ranks(const struct run_ranks_facts *facts, const struct style *style)
{
    report_label(style, "transcript", "%s", facts->file);
    report_split(facts->part, facts->split, facts->is_chosen, style);
    putc('\n', style->stream);
    TRY(columns_print(&ran_columns, IN_TEXT, NULL,
                      COLUMN_RECORDS(facts->ranks, facts->split->ranks), style->stream,
                      style->width));
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

enum healcl_status report_run_ranks_json(const struct run_ranks_facts *facts, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", facts->file);
    json_number(&json, json.top, "rank_count", facts->split->ranks);
    if (facts->split->ranks > 1)
        report_split_members(&json, json_object(&json, json.top, "split"), facts->part,
                             facts->split, facts->is_chosen);
    json_number(&json, json.top, "repeat", facts->repeat);
    report_exchanges(&json, json.top, facts->part);
    json_number(&json, json.top, "results_compared", facts->compared);
    json_number(&json, json.top, "results_different", facts->different);
    columns_add_list(&json, json.top, "ranks", &ran_columns, NULL,
                     COLUMN_RECORDS(facts->ranks, facts->split->ranks));
    report_parts(&json, json.top, facts->part);
    return json_print(&json, stream);
}
