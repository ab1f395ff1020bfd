#include "report/bench.h"

#include <inttypes.h>
#include <string.h>

#include "report/columns.h"
#include "report/members.h"

/* Nanoseconds of the median operation for one unit. */
static double per_unit(const struct bench_result *result)
{
    return result->units ? result->median_ns / (double)result->units : 0;
}

/* 10^9 bytes in a second are one in a nanosecond. */
static double gigabytes_per_second(const struct bench_result *result)
{
    return result->median_ns > 0 ? (double)result->bytes / result->median_ns : 0;
}

/* ---------------------------------------------------------------- the table */

enum { TABLE_WIDTH = 80 };

static void append(char text[COLUMN_TEXT_SIZE], const char *before, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, COLUMN_TEXT_SIZE - used, "%s%s", before, word);
}

/* "64x4096 int8 heal": the main input without axes of size 1, and what is not as usual. */
static const char *describe(const struct bench_result *result, char text[COLUMN_TEXT_SIZE])
{
    const int64_t *of = result->parameters.of;
    char number[32];
    text[0] = 0;
    for (uint32_t axis = 0; axis < result->shape.rank; axis++) {
        snprintf(number, sizeof number, "%" PRId64, result->shape.shape[axis]);
        if (result->shape.shape[axis] != 1)
            append(text, *text ? "x" : "", number);
    }
    append(text, "", *text ? "" : "1");
    if (of[BENCH_DTYPE] && of[BENCH_DTYPE] != 1 + DTYPE_INT64)
        append(text, " ", bench_parameters[BENCH_DTYPE].choices[of[BENCH_DTYPE] - 1]);
    if (of[BENCH_BITS] && of[BENCH_BITS] != 62 && of[BENCH_BITS] != 30) {
        snprintf(number, sizeof number, " %" PRId64 " bits", of[BENCH_BITS]);
        append(text, "", number);
    }
    append(text, "", of[BENCH_LAYOUT] == BENCH_HEAL ? " heal" : "");
    append(text, "", of[BENCH_VALUES] == BENCH_ANY ? " any" : "");
    append(text, "", of[BENCH_PERM] == BENCH_PERM_REVERSE ? " perm" : "");
    return text;
}

/* Percent by which a time differs from the median, in [-100, 999]. */
static int deviation(double time, double median)
{
    double percent = median > 0 ? (time / median - 1) * 100 : 0;
    return percent < 999 ? (int)percent : 999;
}

static unsigned width_of(const struct style *style)
{
    return style->width > 0 ? style->width : TABLE_WIDTH;
}

/* "-3..+12%" */
static const char *spread_text(double median, double min, double max, char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "%+d..%+d%%", deviation(min, median), deviation(max, median));
    return text;
}

static const char *runs_text(uint32_t samples, uint32_t launches, char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "%" PRIu32 "x%" PRIu32, samples, launches);
    return text;
}

#define RESULT_OF(name, member, expression) COLUMN_OF(name, struct bench_result, member, expression)
#define RESULT_FIELD(member) COLUMN_FIELD(struct bench_result, member)

RESULT_OF(operation, text, bench_operation_name(it->operation))
RESULT_OF(description, text, describe(it, value->room))
RESULT_OF(unit, text, bench_unit_name(it->unit))
RESULT_OF(ns_per_unit, factor, per_unit(it))
RESULT_OF(gb_per_s, factor, gigabytes_per_second(it))
RESULT_OF(spread, text, spread_text(it->median_ns, it->min_ns, it->max_ns, value->room))
RESULT_OF(runs, text, runs_text(it->samples, it->launches, value->room))

/* Of struct bench_result; in JSON, behind its operation and parameters. */
static const struct column result_rows[] = {
    {NULL, "operation", COLUMN_TEXT, IN_TEXT | SHRINKS, .value = operation},
    {NULL, "case", COLUMN_TEXT, IN_TEXT, .value = description},
    {"unit", NULL, COLUMN_TEXT, 0, .value = unit},
    {"units", NULL, COLUMN_COUNT, 0, RESULT_FIELD(units)},
    {"bytes", NULL, COLUMN_BYTES, 0, RESULT_FIELD(bytes)},
    {"samples", NULL, COLUMN_COUNT, 0, RESULT_FIELD(samples)},
    {"launches", NULL, COLUMN_COUNT, 0, RESULT_FIELD(launches)},
    {"median_ns", NULL, COLUMN_DECIMAL, 0, RESULT_FIELD(median_ns)},
    {"min_ns", NULL, COLUMN_DECIMAL, 0, RESULT_FIELD(min_ns)},
    {"max_ns", NULL, COLUMN_DECIMAL, 0, RESULT_FIELD(max_ns)},
    {"ns_per_unit", "ns", COLUMN_DECIMAL, IN_TEXT, .decimals = 3, .value = ns_per_unit},
    {NULL, "per", COLUMN_TEXT, IN_TEXT, .value = unit},
    {"gb_per_s", "GB/s", COLUMN_DECIMAL, IN_TEXT, .decimals = 1, .value = gb_per_s},
    {NULL, "spread", COLUMN_TEXT, IN_TEXT | TO_THE_RIGHT, .value = spread},
    {NULL, "runs", COLUMN_TEXT, IN_TEXT | TO_THE_RIGHT, .value = runs},
};

static const struct column_table result_columns = COLUMN_TABLE(result_rows);

/* Without a body there is nothing to compare with. */
static bool is_checked(const struct bench_example *example)
{
    return example_vendor(example->example->operation)->body_count > 0;
}

/* How many times as long the body takes; 0 where one of both is not measured. */
static double ratio_of(const struct bench_example *example)
{
    const double kernel = example->of[EXAMPLE_KERNEL].median_ns;
    return kernel > 0 ? example->of[EXAMPLE_BODY].median_ns / kernel : 0;
}

/* The same of quartiles: of the body's lower one and the kernel's upper one, or the other way. */
static double ratio_bound(const struct bench_example *example, int which)
{
    const double kernel = example->of[EXAMPLE_KERNEL].quartile_ns[1 - which];
    return kernel > 0 ? example->of[EXAMPLE_BODY].quartile_ns[which] / kernel : 0;
}

/* In words. */
static void tell_ratio(const struct bench_example *example, FILE *stream)
{
    const double ratio = ratio_of(example), low = ratio_bound(example, 0),
                 high = ratio_bound(example, 1);
    const bool is_slower = ratio<1, is_clear = low> 1 || high < 1;
    if (ratio <= 0 || low <= 0 || high <= 0)
        return;
    fprintf(stream, "%s, %s:%zu: the %s is %.2f [%.2f, %.2f] times as fast as the %s%s\n",
            example->example->operation->name, example->example->file, example->example->entry,
            is_slower ? "body" : "kernel", is_slower ? 1 / ratio : ratio,
            is_slower ? 1 / high : low, is_slower ? 1 / low : high, is_slower ? "kernel" : "body",
            is_clear ? "" : ": the samples do not tell which is faster");
}

static enum healcl_status print_examples(const struct bench_example *examples, size_t count,
                                         const struct style *style)
{
    static const struct table_column columns[] = {
        {"operation", TABLE_LEFT, true}, {"example", TABLE_LEFT, true},
        {"by its", TABLE_LEFT, false},   {"us", TABLE_RIGHT, false},
        {"spread", TABLE_RIGHT, false},  {"runs", TABLE_RIGHT, false},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++)
        for (int side = 0; side < EXAMPLE_SIDES; side++) {
            const struct bench_example *example = &examples[i];
            const double median = example->of[side].median_ns;
            char text[COLUMN_TEXT_SIZE];
            if (example->of[side].samples == 0)
                continue;
            table_cell(table, "%s", example->example->operation->name);
            table_cell(table, "%s:%zu", example->example->file, example->example->entry);
            table_cell(table, "%s%s", example_side_name((enum example_side)side),
                       is_checked(example) ? "" : ", not checked");
            table_cell(table, "%.2f", median / 1000);
            table_cell(
                table, "%s",
                spread_text(median, example->of[side].min_ns, example->of[side].max_ns, text));
            table_cell(table, "%s",
                       runs_text(example->of[side].samples, example->of[side].launches, text));
        }
    TRY(table_print(table, style->stream, width_of(style)));
    for (size_t i = 0; i < count; i++)
        tell_ratio(&examples[i], style->stream);
    return HEALCL_OK;
}

enum healcl_status report_bench(const struct device_info *device,
                                const struct bench_result *results, size_t count,
                                const struct bench_example *examples, size_t example_count,
                                const struct style *style)
{
    report_label(style, "device", "%s", device->name);
    putc('\n', style->stream);
    struct table *table = count > 0 ? columns_create(&result_columns, IN_TEXT) : NULL;
    for (size_t i = 0; i < count; i++)
        columns_row(table, &result_columns, IN_TEXT, NULL, &results[i]);
    if (count > 0)
        TRY(table_print(table, style->stream, width_of(style)));
    if (count > 0 && example_count > 0)
        putc('\n', style->stream);
    return example_count > 0 ? print_examples(examples, example_count, style) : HEALCL_OK;
}

/* ---------------------------------------------------------------- JSON */

/* "base-bits" is the option, "base_bits" the key. */
static void add_parameter(struct json *json, cJSON *parent, enum bench_parameter parameter,
                          int64_t value)
{
    const struct bench_parameter_info *info = &bench_parameters[parameter];
    char key[32];
    snprintf(key, sizeof key, "%s", info->name);
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    if (info->choices)
        json_string(json, parent, key, info->choices[value - 1]);
    else
        json_number(json, parent, key, (uint64_t)value);
}

static void add_result(struct json *json, cJSON *object, const struct bench_result *result)
{
    json_string(json, object, "op", bench_operation_name(result->operation));
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (result->parameters.of[i] && i != BENCH_BYTES)
            add_parameter(json, object, i, result->parameters.of[i]);
    cJSON *shape = json_array(json, object, "shape");
    for (uint32_t axis = 0; axis < result->shape.rank; axis++)
        json_number(json, shape, NULL, (uint64_t)result->shape.shape[axis]);
    columns_add_json(json, object, &result_columns, NULL, result);
}

static void add_example(struct json *json, cJSON *object, const struct bench_example *example)
{
    json_string(json, object, "op", example->example->operation->name);
    json_string(json, object, "example", example->example->file);
    json_number(json, object, "entry", example->example->entry);
    json_bool(json, object, "checked", is_checked(example));
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        if (example->of[side].samples == 0)
            continue;
        cJSON *times = json_object(json, object, example_side_name((enum example_side)side));
        if (side == EXAMPLE_KERNEL)
            json_string(json, times, "name", example->kernel);
        json_number(json, times, "samples", example->of[side].samples);
        json_number(json, times, "launches", example->of[side].launches);
        json_decimal(json, times, "median_ns", example->of[side].median_ns);
        json_decimal(json, times, "min_ns", example->of[side].min_ns);
        json_decimal(json, times, "max_ns", example->of[side].max_ns);
    }
    if (ratio_of(example) <= 0)
        return;
    json_decimal(json, object, "ratio", ratio_of(example));
    json_decimal(json, object, "ratio_low", ratio_bound(example, 0));
    json_decimal(json, object, "ratio_high", ratio_bound(example, 1));
}

enum healcl_status report_bench_json(const struct device_info *device,
                                     const struct bench_result *results, size_t count,
                                     const struct bench_example *examples, size_t example_count,
                                     FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    report_device_members(&json, json_object(&json, json.top, "device"), device);
    cJSON *list = json_array(&json, json.top, "results");
    for (size_t i = 0; i < count; i++)
        add_result(&json, json_object(&json, list, NULL), &results[i]);
    list = example_count > 0 ? json_array(&json, json.top, "examples") : NULL;
    for (size_t i = 0; i < example_count; i++)
        add_example(&json, json_object(&json, list, NULL), &examples[i]);
    return json_print(&json, stream);
}
