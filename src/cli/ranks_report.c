/* What a transcript takes that ranks share: healcl inspect --ranks, healcl-mpi run. */
#include "cli/report.h"
#include "plan/split.h"
#include "plan/transcript.h"

/* ---------------------------------------------------------------- JSON */

static void add_costs(cJSON *object, const struct ranks_facts *facts, const struct plan *plan,
                      uint64_t sent)
{
    uint64_t time = 0; /* of a run whose inputs are there already */
    for (size_t s = 0; s < plan->segment_count; s++)
        time += roofline_time(&facts->roofline, &plan->segments[s].after);
    JSON_ADD(object, NUMBER("device_memory_peak", plan->bytes_peak),
             NUMBER("bytes_up", plan->bytes_up), NUMBER("bytes_sent", sent),
             NUMBER("device_ns", time));
}

static void add_parts(cJSON *list, const struct healcl_transcript *transcript,
                      const struct healcl_tensor_info *tensors, size_t count,
                      struct healcl_part (*part_of)(const struct healcl_transcript *, size_t))
{
    for (size_t i = 0; i < count; i++) {
        const struct healcl_part part = part_of(transcript, i);
        cJSON *about = json_add_object(list, NULL);
        JSON_ADD(about, NUMBER("entry", tensors[i].entry), STRING("tensor", tensors[i].name),
                 NUMBER("rank", tensors[i].rank), NUMBER("bytes", tensors[i].bytes),
                 FLAG("split", part.period > 0));
        if (part.period == 0)
            continue;
        JSON_ADD(about, NUMBER("axis", part.axis), NUMBER("start", (uint64_t)part.start),
                 NUMBER("size", (uint64_t)part.size), NUMBER("period", (uint64_t)part.period));
    }
}

void report_add_parts(cJSON *object, const struct healcl_transcript *part)
{
    size_t count;
    const struct healcl_tensor_info *tensors = healcl_transcript_inputs(part, &count);
    add_parts(json_add_array(object, "inputs"), part, tensors, count, healcl_transcript_input_part);
    tensors = healcl_transcript_results(part, &count);
    add_parts(json_add_array(object, "results"), part, tensors, count,
              healcl_transcript_result_part);
}

void report_add_split(cJSON *object, const struct healcl_transcript *part,
                      const struct healcl_split *split, bool is_chosen)
{
    size_t count;
    const struct healcl_tensor_info *input = healcl_transcript_inputs(part, &count) + split->input;
    JSON_ADD(object, NUMBER("entry", input->entry), STRING("tensor", input->name),
             NUMBER("axis", split->axis), FLAG("chosen", is_chosen));
}

void report_add_exchanges(cJSON *object, const struct healcl_transcript *part)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(part);
    JSON_ADD(object, NUMBER("exchanges", split.exchanges),
             NUMBER("exchange_bytes", split.exchange_bytes));
}

void report_add_ranks(cJSON *document, const struct ranks_facts *facts)
{
    const struct plan *plan = facts->part->plan;
    cJSON *ranks = json_add_object(document, "ranks");
    json_add_number(ranks, "count", facts->split.ranks);
    if (facts->split.ranks > 1)
        report_add_split(ranks, facts->part, &facts->split, facts->is_chosen);
    report_add_exchanges(ranks, facts->part);
    add_costs(json_add_object(ranks, "alone"), facts, facts->whole->plan, 0);
    add_costs(json_add_object(ranks, "each"), facts, plan,
              exchange_bytes_sent(plan, 0, facts->split.ranks));
    report_add_parts(ranks, facts->part);
}

/* ---------------------------------------------------------------- text */

#define PART "{bytes:bytes} for each rank, [{size} of each {period} of axis {axis}]{split!whole}"

void report_ranks_text(const cJSON *document, const struct style *style)
{
    static const struct view_line costs[] = {
        {"one rank", "{alone.device_memory_peak:bytes} of memory, {alone.bytes_up:bytes} up[, "
                     "{alone.device_ns:time?} on its device]"},
        {"each", "{each.device_memory_peak:bytes} of memory, {each.bytes_up:bytes} up, "
                 "{each.bytes_sent:bytes} sent[, {each.device_ns:time?} on its device]"}};
    const cJSON *ranks = json_at(document, "ranks");
    putc('\n', style->stream);
    view_line(style, ranks, "ranks", "{count}");
    view_line(style, ranks, "split", REPORT_SPLIT);
    view_line(style, ranks, "exchange",
              "{exchanges} tensor{exchanges:s} of {exchange_bytes:bytes}");
    VIEW_LINES(style, ranks, costs);
    (void)view_each(style, json_at(ranks, "inputs"), "input       tensor {tensor}: " PART);
    (void)view_each(style, json_at(ranks, "results"), "result      tensor {tensor}: " PART);
}
