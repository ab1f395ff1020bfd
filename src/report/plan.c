/* A plan: what a transcript holds. */
#include "plan/plan.h"

#include <inttypes.h>

#include "plan/memory.h"
#include "plan/passes.h"
#include "report/columns.h"
#include "report/members.h"

/* The storage of the constants is no tensor of the transcript's. */
static uint64_t count_storages(const struct plan *plan)
{
    return plan->storage_count > 0 ? plan->storage_count - 1 : 0;
}

/* ---------------------------------------------------------------- text */

COLUMN_OF(segment_name, struct segment, text, segment_title(it->name))

#define SEGMENT_FIELD(member) COLUMN_FIELD(struct segment, member)

static const struct column segment_rows[] = {
    {"name", NULL, COLUMN_TEXT, 0, SEGMENT_FIELD(name)},
    {NULL, "segment", COLUMN_TEXT, IN_TEXT | SHRINKS, .value = segment_name},
    {"operations", "operations", COLUMN_COUNT, IN_TEXT, SEGMENT_FIELD(operations)},
    {"frees", "frees", COLUMN_COUNT, IN_TEXT, SEGMENT_FIELD(frees)},
    {"bytes_up", "up", COLUMN_BYTES, IN_TEXT | DASH_IF_0, SEGMENT_FIELD(bytes_up)},
    {"bytes_down", "down", COLUMN_BYTES, IN_TEXT | DASH_IF_0, SEGMENT_FIELD(bytes_down)},
};

static const struct column_table segment_columns = COLUMN_TABLE(segment_rows);

static enum healcl_status print_kinds(const struct plan *plan, const struct style *style)
{
    static const struct table_column columns[] = {{"operation", TABLE_LEFT, true},
                                                  {"family", TABLE_LEFT, false},
                                                  {"count", TABLE_RIGHT, false}};
    struct table *table = table_create(columns, 3);
    for (size_t number = 0; number < operation_count(plan->table); number++) {
        const struct operation *operation = operation_at(plan->table, number);
        uint64_t count = 0;
        for (size_t i = 0; i < plan->segment_count; i++)
            count += plan->segments[i].counts[number];
        if (count == 0)
            continue;
        table_cell(table, "%s", operation->name);
        table_cell(table, "%s", operation->family);
        table_cell(table, "%" PRIu64, count);
    }
    return table_print(table, style->stream, style->width);
}

static void print_memory(const struct plan *plan, const struct memory_facts *memory,
                         const struct style *style)
{
    if (!memory || memory->limit > 0)
        report_label(style, "memory", "%s at most, scratch of kernels aside",
                     TEXT_BYTES(plan->bytes_peak));
    else
        report_label(style, "memory", "%s at most, in buffers of %s; scratch of kernels aside",
                     TEXT_BYTES(plan->bytes_peak), TEXT_BYTES(memory->allocated));
    if (memory && memory->limit > 0)
        report_label(
            style, "limit", "%s of tensors at most: %s spilled, %s brought back, %s uploaded again",
            TEXT_BYTES(memory->peak), TEXT_BYTES(memory->price.spilled),
            TEXT_BYTES(memory->price.brought_back), TEXT_BYTES(memory->price.streamed_again));
}

enum healcl_status report_plan(const char *file, const struct plan *plan,
                               const struct memory_facts *memory, const struct style *style)
{
    report_label(style, "transcript", "%s", file);
    report_label(style, "entries", "%zu", plan->entries);
    report_label(style, "operations", "%" PRIu64 " in %zu segment%s", plan->operations,
                 plan->segment_count, plan->segment_count == 1 ? "" : "s");
    report_label(style, "tensors", "%zu names on %" PRIu64 " allocations", plan->tensors,
                 count_storages(plan));
    report_label(style, "results", "%zu, %zu with an expected tensor", plan->results,
                 plan->expected);
    report_label(style, "upload", "%s", TEXT_BYTES(plan->bytes_up));
    report_label(style, "download", "%s", TEXT_BYTES(plan->bytes_down));
    print_memory(plan, memory, style);
    if (plan->segment_count > 0) {
        putc('\n', style->stream);
        TRY(columns_print(&segment_columns, IN_TEXT, NULL,
                          COLUMN_RECORDS(plan->segments, plan->segment_count), style->stream,
                          style->width));
    }
    if (plan->operations == 0)
        return HEALCL_OK;
    putc('\n', style->stream);
    return print_kinds(plan, style);
}

/* As segment_work_names. */
static const char *const segment_work_labels[WORKS] = {
    [WORK_PRODUCTS] = "products",       [WORK_SUMMED_PRODUCTS] = "products of sums",
    [WORK_BUTTERFLIES] = "butterflies", [WORK_DIGITS] = "digits",
    [WORK_CRT_DIGITS] = "CRT digits",
};

/* A row of a segment's costs; none where there is nothing of it. */
static void add_cost(struct table *table, const char **segment, const char *cost,
                     const char *(*text_of)(uint64_t, char[UNIT_TEXT_SIZE]), uint64_t before,
                     uint64_t after)
{
    char text[UNIT_TEXT_SIZE];
    if (before == 0)
        return;
    table_cell(table, "%s", *segment);
    *segment = "";
    table_cell(table, "%s", cost);
    table_cell(table, "%s", text_of(before, text));
    table_cell(table, "%s", text_of(after, text));
    table_cell(table, "%s", text_factor((double)after / (double)before, text));
}

static enum healcl_status print_costs(const struct plan *plan, const struct roofline *roofline,
                                      const struct style *style)
{
    static const struct table_column columns[] = {{"segment", TABLE_LEFT, true},
                                                  {"cost", TABLE_LEFT, false},
                                                  {"before", TABLE_RIGHT, false},
                                                  {"after", TABLE_RIGHT, false},
                                                  {"ratio", TABLE_RIGHT, false}};
    struct table *table = table_create(columns, 5);
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        const struct segment_cost *before = &segment->before, *after = &segment->after;
        const char *name = segment_title(segment->name);
        if (before->launches == 0)
            continue;
        add_cost(table, &name, "launches", text_count, before->launches, after->launches);
        add_cost(table, &name, "bytes", text_bytes, before->bytes, after->bytes);
        for (int i = 0; i < WORKS; i++)
            add_cost(table, &name, segment_work_labels[i], text_count, before->work[i],
                     after->work[i]);
        add_cost(table, &name, "memory", text_bytes, before->memory, after->memory);
        add_cost(table, &name, "roofline", text_time, roofline_time(roofline, before),
                 roofline_time(roofline, after));
    }
    return table_print(table, style->stream, style->width);
}

/* How many steps each pass has changed. */
static enum healcl_status print_changes(const struct plan *plan, const struct style *style)
{
    struct table_column columns[1 + PASS_COUNT] = {{"segment", TABLE_LEFT, true}};
    for (size_t i = 0; i < PASS_COUNT; i++)
        columns[1 + i] = (struct table_column){passes[i].name, TABLE_RIGHT, false};
    struct table *table = table_create(columns, 1 + PASS_COUNT);
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        if (segment->before.launches == 0)
            continue;
        table_cell(table, "%s", segment_title(segment->name));
        for (size_t i = 0; i < PASS_COUNT; i++)
            table_cell(table, "%" PRIu64, segment->pass_changes[i]);
    }
    return table_print(table, style->stream, style->width);
}

static void print_rates(const struct roofline *roofline, const struct style *style)
{
    if (roofline->bytes == 0)
        return;
    fprintf(style->stream, "\nroofline, a second: copies %s", TEXT_BYTES(roofline->bytes));
    for (int i = 0; i < WORKS; i++)
        if (roofline->work[i] > 0)
            fprintf(style->stream, ",%s%s %s", i == 2 ? "\n" : " ", segment_work_labels[i],
                    TEXT_COUNT(roofline->work[i]));
    fprintf(style->stream, "%s\n", roofline->overlaps ? "; the longer of both counts" : "");
}

enum healcl_status report_passes(const struct plan *plan, const struct roofline *roofline,
                                 const struct style *style)
{
    putc('\n', style->stream);
    for (size_t i = 0; i < PASS_COUNT; i++)
        report_label(style, passes[i].name, "%s", passes[i].summary);
    report_label(style, "memory", "%s at most before, %s after",
                 TEXT_BYTES(plan->bytes_peak_before), TEXT_BYTES(plan->bytes_peak));
    putc('\n', style->stream);
    TRY(print_changes(plan, style));
    putc('\n', style->stream);
    TRY(print_costs(plan, roofline, style));
    print_rates(roofline, style);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- JSON */

void report_roofline(struct json *json, cJSON *object, const struct roofline *roofline)
{
    cJSON *rates = json_object(json, object, "roofline");
    json_number(json, rates, "copied_bytes_per_s", roofline->bytes);
    for (int i = 0; i < WORKS; i++) {
        char key[48];
        snprintf(key, sizeof key, "%s_per_s", segment_work_names[i]);
        if (roofline->work[i] > 0)
            json_number(json, rates, key, roofline->work[i]);
    }
}

/* Before the passes, or after them. */
static void add_costs(struct json *json, cJSON *object, const struct segment_cost *cost,
                      const struct roofline *roofline)
{
    json_number(json, object, "launches", cost->launches);
    json_number(json, object, "device_bytes", cost->bytes);
    for (int i = 0; i < WORKS; i++)
        json_number(json, object, segment_work_names[i], cost->work[i]);
    json_number(json, object, "device_memory_peak", cost->memory);
    if (roofline->bytes > 0)
        json_number(json, object, "roofline_ns", roofline_time(roofline, cost));
}

cJSON *report_memory(struct json *json, cJSON *object, const struct memory_facts *memory)
{
    cJSON *member = json_object(json, object, "device_memory");
    json_number(json, member, "limit", memory->limit);
    json_number(json, member, "tensors_peak", memory->peak);
    json_number(json, member, "bytes_spilled", memory->price.spilled);
    json_number(json, member, "bytes_brought_back", memory->price.brought_back);
    json_number(json, member, "bytes_streamed_again", memory->price.streamed_again);
    return member;
}

void report_tensor_memory(struct json *json, cJSON *object, const struct memory_facts *memory)
{
    cJSON *member = json_object(json, object, "tensor_memory");
    json_number(json, member, "allocated", memory->allocated);
    json_number(json, member, "live", memory->live);
}

static void add_segment(struct json *json, cJSON *segments, const struct plan *plan,
                        const struct segment *segment, const struct roofline *roofline)
{
    cJSON *object = json_object(json, segments, NULL);
    columns_add_json(json, object, &segment_columns, NULL, segment);
    add_costs(json, object, &segment->after, roofline);
    add_costs(json, json_object(json, object, "without_passes"), &segment->before, roofline);
    cJSON *changes = json_object(json, object, "passes");
    for (size_t i = 0; segment->pass_changes && i < PASS_COUNT; i++)
        json_number(json, changes, passes[i].name, segment->pass_changes[i]);
    cJSON *kinds = json_array(json, object, "operations_by_kind");
    for (size_t number = 0; number < operation_count(plan->table); number++) {
        if (segment->counts[number] == 0)
            continue;
        cJSON *kind = json_object(json, kinds, NULL);
        json_string(json, kind, "name", operation_at(plan->table, number)->name);
        json_number(json, kind, "count", segment->counts[number]);
    }
}

enum healcl_status report_plan_json(const char *file, const struct plan *plan,
                                    const struct memory_facts *memory,
                                    const struct healcl_device *device,
                                    const struct roofline *roofline,
                                    const struct ranks_facts *ranks, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "transcript", file);
    json_number(&json, json.top, "entries", plan->entries);
    json_number(&json, json.top, "operations", plan->operations);
    json_number(&json, json.top, "frees", plan->frees);
    json_number(&json, json.top, "tensors", plan->tensors);
    json_number(&json, json.top, "allocations", count_storages(plan));
    json_number(&json, json.top, "steps", plan->step_count);
    cJSON *results = json_object(&json, json.top, "results");
    json_number(&json, results, "total", plan->results);
    json_number(&json, results, "expected", plan->expected);
    json_number(&json, json.top, "bytes_up", plan->bytes_up);
    json_number(&json, json.top, "bytes_down", plan->bytes_down);
    json_number(&json, json.top, "device_memory_peak", plan->bytes_peak);
    if (memory && memory->limit > 0)
        (void)report_memory(&json, json.top, memory);
    else if (memory)
        report_tensor_memory(&json, json.top, memory);
    cJSON *segments = json_array(&json, json.top, "segments");
    for (size_t i = 0; i < plan->segment_count; i++)
        add_segment(&json, segments, plan, &plan->segments[i], roofline);
    if (roofline->bytes > 0)
        report_roofline(&json, json.top, roofline);
    if (device)
        report_kernels_members(&json, json.top, plan, device);
    if (ranks)
        report_ranks_members(&json, json.top, ranks);
    return json_print(&json, stream);
}
