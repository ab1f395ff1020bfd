/* Which kernels a run has launched, and what they took: the last repetition of its trace. */
#include "cli/run_kernels_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/variant.h"
#include "tools/xmalloc.h"

/* A step, and what all kernels took that were launched for it. */
struct timed_step {
    const struct origins *origins; /* the tag of its launches */
    const struct step *step;
    struct segment_cost cost;
    uint64_t nanoseconds;
};

struct timed_steps {
    struct timed_step *of;
    size_t count;
};

static int by_origins(const void *a, const void *b)
{
    const struct timed_step *x = a, *y = b;
    return (x->origins > y->origins) - (x->origins < y->origins);
}

/* Steps with the same origins count as one. */
static void find_steps(const struct plan *plan, struct timed_steps *steps)
{
    size_t kept = 0;
    steps->of = xcalloc(plan->step_count, sizeof *steps->of);
    for (size_t i = 0; i < plan->step_count; i++)
        steps->of[i] =
            (struct timed_step){.origins = plan->steps[i].origins, .step = &plan->steps[i]};
    qsort(steps->of, plan->step_count, sizeof *steps->of, by_origins);
    for (size_t i = 0; i < plan->step_count; i++) {
        if (kept == 0 || steps->of[kept - 1].origins != steps->of[i].origins)
            steps->of[kept++] = steps->of[i];
        step_add_cost(steps->of[i].step, &steps->of[kept - 1].cost);
    }
    steps->count = kept;
}

/* NULL for a kernel that serves none, as those that make tables. */
static struct timed_step *step_of(const struct timed_steps *steps, const struct trace_span *span)
{
    const struct timed_step key = {.origins = span->tag};
    return span->tag ? bsearch(&key, steps->of, steps->count, sizeof key, by_origins) : NULL;
}

/* Why the first variant of the style that the tuning asks for does not serve, but a general one. */
static const char *why_general(const struct step *step, const struct variant *variant,
                               const struct healcl_device *device)
{
    const struct family *family = family_of(step->kind);
    const char *why = NULL;
    for (size_t i = 0; variant->style == STYLE_GENERAL && &family->variants[i] != variant; i++)
        if (!why && family->variants[i].style == device->tuning.styles[family->preference])
            why = variant_obstacle(family, &family->variants[i], step, device);
    return why;
}

/* The row for launches like this one. */
static cJSON *row_of(cJSON *rows, const struct trace_span *span, const struct step *step,
                     const struct healcl_device *device)
{
    const char *kind = step ? step_traits[step->kind].name : "", *name = "", *why = NULL;
    if (step && span->manifest.name) {
        name = span->manifest.name;
    } else if (step && family_of(step->kind) && step->kind != STEP_VENDOR) {
        const struct variant *variant = variant_for(step, device);
        name = variant->name;
        why = why_general(step, variant, device);
    }
    char *key = xasprintf("%s|%s|%s|%" PRIu64 "|%" PRIu32 "|%s", span->name, kind, name,
                          span->groups, span->local_size, why ? why : "");
    cJSON *row = json_row(rows, "key", key);
    free(key);
    if (json_at(row, "kernel"))
        return row;
    json_add_string(row, "kernel", span->name);
    if (*kind)
        json_add_string(row, "step", kind);
    if (*name)
        json_add_string(row, "variant", name);
    json_increase(row, "launches", 0);
    JSON_ADD(row, NUMBER("work_groups", span->groups), NUMBER("local_size", span->local_size));
    json_increase(row, "time_ns", 0);
    if (why)
        json_add_string(row, "why_general", why);
    return row;
}

/* Where the last repetition begins. */
static size_t last_repetition(const struct trace *trace)
{
    size_t first = trace->count;
    while (first > 0 && strcmp(trace->spans[first - 1].category, "repetition") != 0)
        first--;
    return first;
}

static bool is_kernel(const struct trace_span *span)
{
    return span->track == TRACE_COMPUTE && span->program && span->end > span->start;
}

/* A step's kernels share its bytes, and what rates allow for it, as they share its time. */
static void add_launch(cJSON *row, const struct trace_span *span, const struct timed_step *step,
                       const struct roofline *roofline)
{
    const uint64_t nanoseconds = span->end - span->start;
    json_increase(row, "launches", 1);
    json_increase(row, "time_ns", nanoseconds);
    if (!step)
        return;
    const double share = (double)nanoseconds / (double)step->nanoseconds;
    const double allowed = (double)roofline_time(roofline, &step->cost) * share;
    json_increase(row, "bytes", (uint64_t)((double)step->cost.bytes * share));
    if (allowed >= 1)
        json_increase(row, "roofline_ns", (uint64_t)allowed);
}

cJSON *report_launches(const struct plan *plan, const struct trace *trace,
                       const struct roofline *roofline, const struct healcl_device *device)
{
    struct timed_steps steps = {.of = NULL};
    cJSON *rows = cJSON_CreateArray(), *row;
    const size_t first = last_repetition(trace);
    find_steps(plan, &steps);
    for (size_t i = first; i < trace->count; i++) {
        struct timed_step *step = step_of(&steps, &trace->spans[i]);
        if (step && is_kernel(&trace->spans[i]))
            step->nanoseconds += trace->spans[i].end - trace->spans[i].start;
    }
    for (size_t i = first; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        const struct timed_step *step = step_of(&steps, span);
        if (is_kernel(span))
            add_launch(row_of(rows, span, step ? step->step : NULL, device), span, step, roofline);
    }
    free(steps.of);
    json_sort(rows, "time_ns");
    cJSON_ArrayForEach(row, rows) cJSON_DeleteItemFromObject(row, "key");
    return rows;
}
