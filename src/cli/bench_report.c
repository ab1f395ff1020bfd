#include "cli/bench_report.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- JSON */

enum { CASE_SIZE = 128 };

static void append(char text[CASE_SIZE], const char *before, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, CASE_SIZE - used, "%s%s", before, word);
}

/* "64x4096 int8 heal": the main input without axes of size 1, and what is not as usual. */
static const char *describe(const struct bench_result *result, char text[CASE_SIZE])
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

/* "base-bits" is the option, "base_bits" the key. */
static void add_parameter(cJSON *parent, enum bench_parameter parameter, int64_t value)
{
    const struct bench_parameter_info *info = &bench_parameters[parameter];
    char key[32];
    snprintf(key, sizeof key, "%s", info->name);
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    if (info->choices)
        json_add_string(parent, key, info->choices[value - 1]);
    else
        json_add_number(parent, key, (uint64_t)value);
}

static void add_times(cJSON *object, const struct bench_result *result)
{
    JSON_ADD(object, NUMBER("samples", result->samples), NUMBER("launches", result->launches),
             DECIMAL("median_ns", result->median_ns), DECIMAL("min_ns", result->min_ns),
             DECIMAL("max_ns", result->max_ns));
}

static void add_result(cJSON *object, const struct bench_result *result)
{
    char text[CASE_SIZE];
    const double median = result->median_ns;
    JSON_ADD(object, STRING("op", result->operation->name), STRING("case", describe(result, text)));
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (result->parameters.of[i] && i != BENCH_BYTES)
            add_parameter(object, i, result->parameters.of[i]);
    json_add_integers(object, "shape", result->shape.shape, result->shape.rank);
    JSON_ADD(object, STRING("unit", bench_unit_names[result->unit]), NUMBER("units", result->units),
             NUMBER("bytes", result->bytes));
    add_times(object, result);
    JSON_ADD(object, DECIMAL("ns_per_unit", result->units > 0 ? median / (double)result->units : 0),
             DECIMAL("gb_per_s", median > 0 ? (double)result->bytes / median : 0));
}

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

static void add_example(cJSON *object, const struct bench_example *example)
{
    JSON_ADD(object, STRING("op", example->example->operation->name),
             STRING("example", example->example->file), NUMBER("entry", example->example->entry),
             FLAG("checked", is_checked(example)));
    for (int i = 0; i < EXAMPLE_SIDES; i++) {
        const struct bench_result *side = &example->of[i];
        if (side->samples == 0)
            continue;
        cJSON *times = json_add_object(object, example_side_names[i]);
        if (i == EXAMPLE_KERNEL)
            json_add_string(times, "name", example->kernel);
        add_times(times, side);
    }
    if (ratio_of(example) <= 0)
        return;
    JSON_ADD(object, DECIMAL("ratio", ratio_of(example)),
             DECIMAL("ratio_low", ratio_bound(example, 0)),
             DECIMAL("ratio_high", ratio_bound(example, 1)));
}

cJSON *report_bench(const struct device_info *device, const struct bench_result *results,
                    size_t count, const struct bench_example *examples, size_t example_count)
{
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), device);
    cJSON *list = json_add_array(document, "results");
    for (size_t i = 0; i < count; i++)
        add_result(json_add_object(list, NULL), &results[i]);
    list = example_count > 0 ? json_add_array(document, "examples") : NULL;
    for (size_t i = 0; i < example_count; i++)
        add_example(json_add_object(list, NULL), &examples[i]);
    return document;
}

/* ---------------------------------------------------------------- text */

#define SPREAD(of) "{" of "min_ns/" of "median_ns:+}..{" of "max_ns/" of "median_ns:+}"
#define RUNS(of) "{" of "samples}x{" of "launches}"

void report_bench_text(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"operation", "{op}", VIEW_SHRINKS},    {"case", "{case}", 0},
        {"ns", "{ns_per_unit:.3}", VIEW_RIGHT}, {"per", "{unit}", 0},
        {"GB/s", "{gb_per_s:.1}", VIEW_RIGHT},  {"spread", SPREAD(""), VIEW_RIGHT},
        {"runs", RUNS(""), VIEW_RIGHT},
    };
    static const struct view_column example_columns[] = {
        {"operation", "{op}{checked!, not checked}", VIEW_SHRINKS},
        {"example", "{example}:{entry}", VIEW_SHRINKS},
        {"kernel ns", "{kernel.median_ns:.0}", VIEW_RIGHT},
        {"spread", SPREAD("kernel."), VIEW_RIGHT},
        {"runs", RUNS("kernel."), VIEW_RIGHT},
        {"body ns", "{body.median_ns:.0}", VIEW_RIGHT},
        {"spread", SPREAD("body."), VIEW_RIGHT},
        {"runs", RUNS("body."), VIEW_RIGHT},
    };
    const cJSON *examples = json_at(document, "examples");
    view_line(style, document, "device", "{device.name}");
    if (json_number_at(document, "results") > 0) {
        putc('\n', style->stream);
        VIEW_TABLE(style, json_at(document, "results"), columns);
    }
    if (!examples)
        return;
    putc('\n', style->stream);
    VIEW_TABLE(style, examples, example_columns);
    (void)view_each(style, examples,
                    "{op}, {example}:{entry}: the body takes {ratio:.2} ({ratio_low:.2} to "
                    "{ratio_high:.2}) times as long as the kernel");
}
