/* What a transcript takes that ranks share: healcl inspect --ranks. */
#include <inttypes.h>

#include "plan/split.h"
#include "plan/transcript.h"
#include "report/members.h"
#include "report/table.h"
#include "report/text.h"

/* Nanoseconds of a run whose inputs that stay are there already; 0: not known. */
struct times {
    uint64_t device, exchange;
};

static uint64_t device_time(const struct ranks_facts *facts, const struct plan *plan)
{
    uint64_t time = 0;
    for (size_t s = 0; s < plan->segment_count; s++)
        time += roofline_time(&facts->roofline, &plan->segments[s].after);
    return time;
}

static uint64_t bytes_sent(const struct ranks_facts *facts)
{
    return exchange_bytes_sent(facts->part->plan, 0, facts->split.ranks);
}

/* Each exchange has two messages behind each other: summands, and sums. */
static uint64_t exchange_time(const struct ranks_facts *facts)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(facts->part);
    if (facts->network_bytes_per_second <= 0)
        return 0;
    return (uint64_t)((double)bytes_sent(facts) / facts->network_bytes_per_second * 1e9 +
                      2 * (double)split.exchanges * facts->network_latency_ns);
}

/* ---------------------------------------------------------------- text */

static void add_time(struct table *table, uint64_t nanoseconds)
{
    char text[UNIT_TEXT_SIZE];
    table_cell(table, "%s", nanoseconds > 0 ? text_time(nanoseconds, text) : "-");
}

static void add_row(struct table *table, const char *name, const struct plan *plan, uint64_t sent,
                    const struct times *times)
{
    char text[UNIT_TEXT_SIZE];
    table_cell(table, "%s", name);
    table_cell(table, "%s", text_bytes(plan->bytes_peak, text));
    table_cell(table, "%s", text_bytes(plan->bytes_up, text));
    table_cell(table, "%s", text_bytes(sent, text));
    add_time(table, times->device);
    add_time(table, times->exchange);
    add_time(table, times->device > 0 ? times->device + times->exchange : 0);
}

MUST_CHECK static enum healcl_status print_costs(const struct ranks_facts *facts,
                                                 const struct style *style)
{
    static const struct table_column columns[] = {
        {"", TABLE_LEFT, false},        {"memory", TABLE_RIGHT, false},
        {"up", TABLE_RIGHT, false},     {"sent", TABLE_RIGHT, false},
        {"device", TABLE_RIGHT, false}, {"exchange", TABLE_RIGHT, false},
        {"time", TABLE_RIGHT, false},
    };
    const struct times alone = {device_time(facts, facts->whole->plan), 0};
    const struct times shared = {device_time(facts, facts->part->plan), exchange_time(facts)};
    char name[32];
    snprintf(name, sizeof name, "each of %" PRIu32, facts->split.ranks);
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    if (table) {
        add_row(table, "one rank", facts->whole->plan, 0, &alone);
        add_row(table, name, facts->part->plan, bytes_sent(facts), &shared);
    }
    return table_print(table, style->stream, style->width);
}

/* "whole", or "axis 0: 4 of 8", of each 8 where the axis is longer. */
static void add_part(struct table *table, const struct healcl_part *part)
{
    if (part->period == 0)
        table_cell(table, "whole");
    else
        table_cell(table, "axis %" PRIu32 ": %" PRId64 " of %" PRId64, part->axis, part->size,
                   part->period);
}

static void add_tensors(struct table *table, const struct ranks_facts *facts, bool results)
{
    size_t count;
    const struct healcl_tensor_info *tensor = results
                                                  ? healcl_transcript_results(facts->part, &count)
                                                  : healcl_transcript_inputs(facts->part, &count);
    char text[UNIT_TEXT_SIZE];
    for (size_t i = 0; i < count; i++) {
        const struct healcl_part part = results ? healcl_transcript_result_part(facts->part, i)
                                                : healcl_transcript_input_part(facts->part, i);
        table_cell(table, "%s", results ? "result" : "input");
        table_cell(table, "%zu", tensor[i].entry);
        table_cell(table, "%s", tensor[i].name);
        table_cell(table, "%s", text_bytes(tensor[i].bytes, text));
        add_part(table, &part);
    }
}

MUST_CHECK static enum healcl_status print_parts(const struct ranks_facts *facts,
                                                 const struct style *style)
{
    static const struct table_column columns[] = {
        {"", TABLE_LEFT, false},      {"entry", TABLE_RIGHT, false},
        {"tensor", TABLE_LEFT, true}, {"a rank's", TABLE_RIGHT, false},
        {"part", TABLE_LEFT, false},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    if (table) {
        add_tensors(table, facts, false);
        add_tensors(table, facts, true);
    }
    return table_print(table, style->stream, style->width);
}

enum healcl_status report_ranks(const struct ranks_facts *facts, const struct style *style)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(facts->part);
    char text[UNIT_TEXT_SIZE];
    size_t count;
    const struct healcl_tensor_info *input =
        healcl_transcript_inputs(facts->part, &count) + facts->split.input;
    putc('\n', style->stream);
    report_label(style, "ranks", "%" PRIu32, facts->split.ranks);
    if (facts->split.ranks > 1)
        report_label(style, "split", "entry %zu, tensor %s, along axis %" PRIu32 "%s", input->entry,
                     input->name, facts->split.axis,
                     facts->is_chosen ? " (the least memory, work and exchange)" : "");
    report_label(style, "exchange", "%zu tensor%s of %s", split.exchanges,
                 split.exchanges == 1 ? "" : "s", text_bytes(split.exchange_bytes, text));
    putc('\n', style->stream);
    TRY(print_parts(facts, style));
    putc('\n', style->stream);
    return print_costs(facts, style);
}

/* ---------------------------------------------------------------- JSON */

static void add_tensor(struct json *json, cJSON *list, const struct healcl_tensor_info *info,
                       const struct healcl_part *part)
{
    cJSON *object = json_object(json, list, NULL);
    json_number(json, object, "entry", info->entry);
    json_string(json, object, "tensor", info->name);
    json_number(json, object, "rank", info->rank);
    json_number(json, object, "bytes", info->bytes);
    json_bool(json, object, "split", part->period > 0);
    if (part->period == 0)
        return;
    json_number(json, object, "axis", part->axis);
    json_number(json, object, "start", (uint64_t)part->start);
    json_number(json, object, "size", (uint64_t)part->size);
    json_number(json, object, "period", (uint64_t)part->period);
}

void report_parts(struct json *json, cJSON *object, const struct healcl_transcript *part)
{
    size_t count;
    const struct healcl_tensor_info *inputs = healcl_transcript_inputs(part, &count);
    cJSON *list = json_array(json, object, "inputs");
    for (size_t i = 0; i < count; i++) {
        const struct healcl_part of = healcl_transcript_input_part(part, i);
        add_tensor(json, list, &inputs[i], &of);
    }
    const struct healcl_tensor_info *results = healcl_transcript_results(part, &count);
    list = json_array(json, object, "results");
    for (size_t i = 0; i < count; i++) {
        const struct healcl_part of = healcl_transcript_result_part(part, i);
        add_tensor(json, list, &results[i], &of);
    }
}

static void add_costs(struct json *json, cJSON *object, const char *key, const struct plan *plan,
                      uint64_t sent, const struct times *times)
{
    cJSON *costs = json_object(json, object, key);
    json_number(json, costs, "device_memory_peak", plan->bytes_peak);
    json_number(json, costs, "bytes_up", plan->bytes_up);
    json_number(json, costs, "bytes_sent", sent);
    json_number(json, costs, "device_ns", times->device);
    json_number(json, costs, "exchange_ns", times->exchange);
}

void report_ranks_members(struct json *json, cJSON *object, const struct ranks_facts *facts)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(facts->part);
    const struct times alone = {device_time(facts, facts->whole->plan), 0};
    const struct times shared = {device_time(facts, facts->part->plan), exchange_time(facts)};
    size_t count;
    const struct healcl_tensor_info *input =
        healcl_transcript_inputs(facts->part, &count) + facts->split.input;
    cJSON *ranks = json_object(json, object, "ranks");
    json_number(json, ranks, "count", facts->split.ranks);
    if (facts->split.ranks > 1) {
        json_number(json, ranks, "entry", input->entry);
        json_number(json, ranks, "axis", facts->split.axis);
        json_bool(json, ranks, "chosen", facts->is_chosen);
    }
    json_number(json, ranks, "exchanges", split.exchanges);
    json_number(json, ranks, "exchange_bytes", split.exchange_bytes);
    add_costs(json, ranks, "alone", facts->whole->plan, 0, &alone);
    add_costs(json, ranks, "each", facts->part->plan, bytes_sent(facts), &shared);
    report_parts(json, ranks, facts->part);
}
