/* What a transcript takes that ranks share: healcl inspect --ranks. */
#include <inttypes.h>

#include "plan/split.h"
#include "plan/transcript.h"
#include "report/columns.h"
#include "report/members.h"

/* What a rank takes. */
struct rank_costs {
    const char *who;
    const struct plan *plan;
    uint64_t sent;
    uint64_t device; /* nanoseconds of a run whose inputs are there already; 0: not known */
};

static uint64_t device_time(const struct ranks_facts *facts, const struct plan *plan)
{
    uint64_t time = 0;
    for (size_t s = 0; s < plan->segment_count; s++)
        time += roofline_time(&facts->roofline, &plan->segments[s].after);
    return time;
}

static struct rank_costs costs_alone(const struct ranks_facts *facts)
{
    const struct plan *plan = facts->whole->plan;
    return (struct rank_costs){.who = "one rank", .plan = plan, .device = device_time(facts, plan)};
}

static struct rank_costs costs_of_each(const struct ranks_facts *facts, const char *who)
{
    const struct plan *plan = facts->part->plan;
    const uint64_t sent = exchange_bytes_sent(plan, 0, facts->split.ranks);
    return (struct rank_costs){
        .who = who, .plan = plan, .sent = sent, .device = device_time(facts, plan)};
}

#define COSTS_FIELD(member) COLUMN_FIELD(struct rank_costs, member)

COLUMN_OF(memory, struct rank_costs, number, it->plan->bytes_peak)
COLUMN_OF(upload, struct rank_costs, number, it->plan->bytes_up)

static const struct column cost_rows[] = {
    {NULL, "", COLUMN_TEXT, IN_TEXT, COSTS_FIELD(who)},
    {"device_memory_peak", "memory", COLUMN_BYTES, IN_TEXT, .value = memory},
    {"bytes_up", "up", COLUMN_BYTES, IN_TEXT, .value = upload},
    {"bytes_sent", "sent", COLUMN_BYTES, IN_TEXT, COSTS_FIELD(sent)},
    {"device_ns", "device", COLUMN_TIME, IN_TEXT | DASH_IF_0, COSTS_FIELD(device)},
};

static const struct column_table cost_columns = COLUMN_TABLE(cost_rows);

/* ---------------------------------------------------------------- parts of tensors */

/* A rank's part of an input, or of a result. */
struct tensor_part {
    bool is_result;
    struct healcl_tensor_info info;
    struct healcl_part of;
};

/* Inputs are numbered first. Returns false where there are no more. */
static bool part_at(const struct healcl_transcript *part, size_t number, struct tensor_part *row)
{
    size_t inputs, results;
    const struct healcl_tensor_info *input = healcl_transcript_inputs(part, &inputs);
    const struct healcl_tensor_info *result = healcl_transcript_results(part, &results);
    const size_t place = number - inputs;
    if (number < inputs)
        *row =
            (struct tensor_part){false, input[number], healcl_transcript_input_part(part, number)};
    else if (place < results)
        *row =
            (struct tensor_part){true, result[place], healcl_transcript_result_part(part, place)};
    return number < inputs + results;
}

/* "whole", or "axis 0: 4 of 8", of each 8 where the axis is longer. */
static const char *part_text(const struct healcl_part *part, char text[COLUMN_TEXT_SIZE])
{
    if (part->period == 0)
        return "whole";
    snprintf(text, COLUMN_TEXT_SIZE, "axis %" PRIu32 ": %" PRId64 " of %" PRId64, part->axis,
             part->size, part->period);
    return text;
}

#define PART_OF(name, member, expression) COLUMN_OF(name, struct tensor_part, member, expression)
#define PART_FIELD(member) COLUMN_FIELD(struct tensor_part, member)

PART_OF(what, text, it->is_result ? "result" : "input")
PART_OF(part_of, text, part_text(&it->of, value->room))
PART_OF(is_split, number, it->of.period > 0)

static const struct column part_rows[] = {
    {NULL, "", COLUMN_TEXT, IN_TEXT, .value = what},
    {"entry", "entry", COLUMN_COUNT, IN_TEXT, PART_FIELD(info.entry)},
    {"tensor", "tensor", COLUMN_TEXT, IN_TEXT | SHRINKS, PART_FIELD(info.name)},
    {"rank", NULL, COLUMN_COUNT, 0, PART_FIELD(info.rank)},
    {"bytes", "a rank's", COLUMN_BYTES, IN_TEXT, PART_FIELD(info.bytes)},
    {NULL, "part", COLUMN_TEXT, IN_TEXT, .value = part_of},
    {"split", NULL, COLUMN_FLAG, 0, .value = is_split},
};

static const struct column_table part_columns = COLUMN_TABLE(part_rows);

static enum healcl_status print_parts(const struct healcl_transcript *part,
                                      const struct style *style)
{
    struct table *table = columns_create(&part_columns, IN_TEXT);
    struct tensor_part row;
    for (size_t i = 0; part_at(part, i, &row); i++)
        columns_row(table, &part_columns, IN_TEXT, NULL, &row);
    return table_print(table, style->stream, style->width);
}

void report_parts(struct json *json, cJSON *object, const struct healcl_transcript *part)
{
    cJSON *inputs = json_array(json, object, "inputs");
    cJSON *results = json_array(json, object, "results");
    struct tensor_part row;
    for (size_t i = 0; part_at(part, i, &row); i++) {
        cJSON *about = json_object(json, row.is_result ? results : inputs, NULL);
        columns_add_json(json, about, &part_columns, NULL, &row);
        if (row.of.period == 0)
            continue;
        json_number(json, about, "axis", row.of.axis);
        json_number(json, about, "start", (uint64_t)row.of.start);
        json_number(json, about, "size", (uint64_t)row.of.size);
        json_number(json, about, "period", (uint64_t)row.of.period);
    }
}

/* ---------------------------------------------------------------- the split */

/* The upload that is split. */
static const struct healcl_tensor_info *input_of(const struct healcl_transcript *part,
                                                 const struct healcl_split *split)
{
    size_t count;
    return healcl_transcript_inputs(part, &count) + split->input;
}

void report_split(const struct healcl_transcript *part, const struct healcl_split *split,
                  bool is_chosen, const struct style *style)
{
    const struct healcl_tensor_info *input = input_of(part, split);
    if (split->ranks > 1)
        report_label(style, "split", "entry %zu, tensor %s, along axis %" PRIu32 "%s", input->entry,
                     input->name, split->axis,
                     is_chosen ? " (the least memory, work and exchange)" : "");
}

void report_split_members(struct json *json, cJSON *object, const struct healcl_transcript *part,
                          const struct healcl_split *split, bool is_chosen)
{
    json_number(json, object, "entry", input_of(part, split)->entry);
    json_number(json, object, "axis", split->axis);
    json_bool(json, object, "chosen", is_chosen);
}

void report_exchanges(struct json *json, cJSON *object, const struct healcl_transcript *part)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(part);
    json_number(json, object, "exchanges", split.exchanges);
    json_number(json, object, "exchange_bytes", split.exchange_bytes);
}

/* ---------------------------------------------------------------- the whole */

enum healcl_status report_ranks(const struct ranks_facts *facts, const struct style *style)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(facts->part);
    char who[32];
    snprintf(who, sizeof who, "each of %" PRIu32, facts->split.ranks);
    const struct rank_costs costs[] = {costs_alone(facts), costs_of_each(facts, who)};
    putc('\n', style->stream);
    report_label(style, "ranks", "%" PRIu32, facts->split.ranks);
    report_split(facts->part, &facts->split, facts->is_chosen, style);
    report_label(style, "exchange", "%zu tensor%s of %s", split.exchanges,
                 split.exchanges == 1 ? "" : "s", TEXT_BYTES(split.exchange_bytes));
    putc('\n', style->stream);
    TRY(print_parts(facts->part, style));
    putc('\n', style->stream);
    return columns_print(&cost_columns, IN_TEXT, NULL, COLUMN_RECORDS(costs, 2), style->stream,
                         style->width);
}

void report_ranks_members(struct json *json, cJSON *object, const struct ranks_facts *facts)
{
    const struct rank_costs alone = costs_alone(facts), each = costs_of_each(facts, "");
    cJSON *ranks = json_object(json, object, "ranks");
    json_number(json, ranks, "count", facts->split.ranks);
    if (facts->split.ranks > 1)
        report_split_members(json, ranks, facts->part, &facts->split, facts->is_chosen);
    report_exchanges(json, ranks, facts->part);
    columns_add_json(json, json_object(json, ranks, "alone"), &cost_columns, NULL, &alone);
    columns_add_json(json, json_object(json, ranks, "each"), &cost_columns, NULL, &each);
    report_parts(json, ranks, facts->part);
}
