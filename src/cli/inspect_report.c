/* A plan: what a transcript holds, and what passes make of it. */
#include "plan/plan.h"

#include "cli/report.h"
#include "plan/memory.h"
#include "plan/passes.h"

/* ---------------------------------------------------------------- JSON */

void report_add_roofline(cJSON *object, const struct roofline *roofline)
{
    cJSON *rates = json_add_object(object, "roofline");
    json_add_number(rates, "copied_bytes_per_s", roofline->bytes);
    for (int i = 0; i < WORKS; i++) {
        char key[48];
        snprintf(key, sizeof key, "%s_per_s", segment_work_names[i]);
        if (roofline->work[i] > 0)
            json_add_number(rates, key, roofline->work[i]);
    }
}

cJSON *report_add_memory(cJSON *object, const struct memory_facts *memory)
{
    cJSON *member = json_add_object(object, memory->limit ? "device_memory" : "tensor_memory");
    if (memory->limit == 0) {
        JSON_ADD(member, NUMBER("allocated", memory->allocated), NUMBER("live", memory->live));
        return member;
    }
    JSON_ADD(member, NUMBER("limit", memory->limit), NUMBER("tensors_peak", memory->peak),
             NUMBER("bytes_spilled", memory->price.spilled),
             NUMBER("bytes_brought_back", memory->price.brought_back),
             NUMBER("bytes_streamed_again", memory->price.streamed_again));
    return member;
}

/* Before the passes, or after them. */
static void add_costs(cJSON *object, const struct segment_cost *cost,
                      const struct roofline *roofline)
{
    JSON_ADD(object, NUMBER("launches", cost->launches), NUMBER("device_bytes", cost->bytes));
    for (int i = 0; i < WORKS; i++)
        json_add_number(object, segment_work_names[i], cost->work[i]);
    json_add_number(object, "device_memory_peak", cost->memory);
    if (roofline->bytes > 0)
        json_add_number(object, "roofline_ns", roofline_time(roofline, cost));
}

static void add_segment(cJSON *segments, const struct plan *plan, const struct segment *segment,
                        const struct roofline *roofline)
{
    cJSON *object = json_add_object(segments, NULL);
    JSON_ADD(object, STRING("name", segment->name), NUMBER("operations", segment->operations),
             NUMBER("frees", segment->frees), NUMBER("bytes_up", segment->bytes_up),
             NUMBER("bytes_down", segment->bytes_down));
    add_costs(object, &segment->after, roofline);
    add_costs(json_add_object(object, "without_passes"), &segment->before, roofline);
    cJSON *changes = json_add_object(object, "passes");
    for (size_t i = 0; segment->pass_changes && i < PASS_COUNT; i++)
        json_add_number(changes, passes[i].name, segment->pass_changes[i]);
    cJSON *kinds = json_add_array(object, "operations_by_kind");
    for (size_t number = 0; number < operation_count(plan->table); number++) {
        if (segment->counts[number] == 0)
            continue;
        cJSON *kind = json_add_object(kinds, NULL);
        JSON_ADD(kind, STRING("name", operation_at(plan->table, number)->name),
                 NUMBER("count", segment->counts[number]));
    }
}

cJSON *report_plan(const char *file, const struct plan *plan, const struct memory_facts *memory,
                   const struct roofline *roofline)
{
    cJSON *document = json_report();
    JSON_ADD(document, STRING("transcript", file), NUMBER("entries", plan->entries),
             NUMBER("operations", plan->operations), NUMBER("frees", plan->frees),
             NUMBER("tensors", plan->tensors));
    /* The storage of the constants is no tensor of the transcript's. */
    JSON_ADD(document, NUMBER("allocations", plan->storage_count - (plan->storage_count > 0)),
             NUMBER("steps", plan->step_count));
    cJSON *results = json_add_object(document, "results");
    JSON_ADD(results, NUMBER("total", plan->results), NUMBER("expected", plan->expected));
    JSON_ADD(document, NUMBER("bytes_up", plan->bytes_up), NUMBER("bytes_down", plan->bytes_down),
             NUMBER("device_memory_peak", plan->bytes_peak));
    if (memory)
        (void)report_add_memory(document, memory);
    cJSON *segments = json_add_array(document, "segments");
    for (size_t i = 0; i < plan->segment_count; i++)
        add_segment(segments, plan, &plan->segments[i], roofline);
    if (roofline->bytes > 0)
        report_add_roofline(document, roofline);
    return document;
}

/* ---------------------------------------------------------------- text */

cJSON *report_sum_kinds(const cJSON *document)
{
    cJSON *sums = cJSON_CreateArray();
    const cJSON *segment, *kind, *member;
    cJSON_ArrayForEach(segment, json_at(document, "segments"))
    {
        cJSON_ArrayForEach(kind, json_at(segment, "operations_by_kind"))
        {
            cJSON *sum = json_row(sums, "name", cJSON_GetStringValue(json_at(kind, "name")));
            cJSON_ArrayForEach(member, kind)
            {
                if (!cJSON_IsString(member))
                    json_increase(sum, member->string, json_number_at(kind, member->string));
                else if (!json_at(sum, member->string))
                    json_add_string(sum, member->string, member->valuestring);
            }
        }
    }
    return sums;
}

void report_plan_text(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"transcript", "{transcript}"},
        {"entries", "{entries}"},
        {"operations", "{operations} in {segments:#} segment{segments:s}"},
        {"tensors", "{tensors} names on {allocations} allocations"},
        {"results", "{results.total}, {results.expected} with an expected tensor"},
        {"upload", "{bytes_up:bytes}"},
        {"download", "{bytes_down:bytes}"},
        {"memory", "{device_memory_peak:bytes} at most[, in buffers of "
                   "{tensor_memory.allocated:bytes}]; scratch of kernels aside"},
        {"limit", "{device_memory.tensors_peak:bytes} of tensors at most: "
                  "{device_memory.bytes_spilled:bytes} spilled, "
                  "{device_memory.bytes_brought_back:bytes} brought back, "
                  "{device_memory.bytes_streamed_again:bytes} uploaded again"}};
    static const struct view_column segment_columns[] = {
        {"segment", "{name|(no segment)}", VIEW_SHRINKS},
        {"operations", "{operations}", VIEW_RIGHT},
        {"frees", "{frees}", VIEW_RIGHT},
        {"up", "{bytes_up:bytes?}", VIEW_RIGHT},
        {"down", "{bytes_down:bytes?}", VIEW_RIGHT}};
    static const struct view_column kind_columns[] = {{"operation", "{name}", VIEW_SHRINKS},
                                                      {"count", "{count}", VIEW_RIGHT}};
    VIEW_LINES(style, document, lines);
    if (json_number_at(document, "segments") > 0) {
        putc('\n', style->stream);
        VIEW_TABLE(style, json_at(document, "segments"), segment_columns);
    }
    if (json_number_at(document, "operations") > 0) {
        cJSON *kinds = report_sum_kinds(document);
        putc('\n', style->stream);
        VIEW_TABLE(style, kinds, kind_columns);
        cJSON_Delete(kinds);
    }
}

/* How many steps each pass has changed, in segments that launch kernels. */
static void print_changes(const cJSON *segments, const struct style *style)
{
    struct view_column columns[1 + PASS_COUNT] = {{"segment", "{name|(no segment)}", VIEW_SHRINKS}};
    char templates[PASS_COUNT][32];
    for (size_t i = 0; i < PASS_COUNT; i++) {
        snprintf(templates[i], sizeof templates[i], "{passes.%s}", passes[i].name);
        columns[1 + i] = (struct view_column){passes[i].name, templates[i], VIEW_RIGHT};
    }
    VIEW_TABLE(style, segments, columns);
}

/* What segments cost before and after passes. */
static void print_costs(const cJSON *segments, const struct style *style)
{
#define BEFORE_AND_AFTER(heading, key, form)                                            \
    {                                                                                   \
        heading, "{without_passes." key ":" form "?} -> {" key ":" form "}", VIEW_RIGHT \
    }
    static const struct view_column memory[] = {
        {"segment", "{name|(no segment)}", VIEW_SHRINKS},
        BEFORE_AND_AFTER("launches", "launches", "#"),
        BEFORE_AND_AFTER("bytes", "device_bytes", "bytes"),
        BEFORE_AND_AFTER("memory", "device_memory_peak", "bytes"),
        BEFORE_AND_AFTER("roofline", "roofline_ns", "time")};
    static const struct view_column work[] = {
        {"segment", "{name|(no segment)}", VIEW_SHRINKS},
        BEFORE_AND_AFTER("products", "products", "count"),
        BEFORE_AND_AFTER("summed", "summed_products", "count"),
        BEFORE_AND_AFTER("butterflies", "butterflies", "count"),
        BEFORE_AND_AFTER("digits", "digits", "count"),
        BEFORE_AND_AFTER("CRT digits", "crt_digits", "count")};
    VIEW_TABLE(style, segments, memory);
    putc('\n', style->stream);
    VIEW_TABLE(style, segments, work);
}

void report_passes_text(const cJSON *document, const struct style *style)
{
    cJSON *segments = cJSON_CreateArray(), *segment;
    cJSON_ArrayForEach(segment, json_at(document, "segments"))
    {
        if (json_number_at(segment, "without_passes.launches") > 0)
            cJSON_AddItemReferenceToArray(segments, segment);
    }
    putc('\n', style->stream);
    for (size_t i = 0; i < PASS_COUNT; i++)
        report_label(style, passes[i].name, "%s", passes[i].summary);
    putc('\n', style->stream);
    print_changes(segments, style);
    putc('\n', style->stream);
    print_costs(segments, style);
    cJSON_Delete(segments);
    (void)view_text(style, document,
                    "\nroofline, a second: copies {roofline.copied_bytes_per_s:bytes}"
                    "[, products {roofline.products_per_s:count}]"
                    "[, products of sums {roofline.summed_products_per_s:count}]"
                    "[, butterflies {roofline.butterflies_per_s:count}]"
                    "[, digits {roofline.digits_per_s:count}]"
                    "[, CRT digits {roofline.crt_digits_per_s:count}]");
}
