/* Which kernels a run has launched, and what they took: the last repetition of its trace. */
#include "report/run_kernels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "kernels/variant.h"

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
static enum healcl_status find_steps(const struct plan *plan, struct timed_steps *steps)
{
    size_t kept = 0;
    steps->of = calloc(plan->step_count + 1, sizeof *steps->of);
    if (!steps->of)
        return HEALCL_NO_MEMORY;
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
    return HEALCL_OK;
}

/* NULL for a kernel that serves none, as those that make tables. */
static struct timed_step *step_of(const struct timed_steps *steps, const struct trace_span *span)
{
    const struct timed_step key = {.origins = span->tag};
    return span->tag ? bsearch(&key, steps->of, steps->count, sizeof key, by_origins) : NULL;
}

/* Why the first variant of the shape that the tuning asks for does not serve, but a general one. */
static const char *why_general(const struct step *step, const struct variant *variant,
                               const struct healcl_device *device)
{
    const struct family *family = family_of(step->kind);
    const char *why = NULL;
    for (size_t i = 0; variant->shape == SHAPE_GENERAL && &family->variants[i] != variant; i++)
        if (!why && family->variants[i].shape == device->tuning.shapes[family->preference])
            why = variant_obstacle(family, &family->variants[i], step, device);
    return why ? why : "";
}

static struct kernel_row row_of(const struct trace_span *span, const struct timed_step *step,
                                const struct healcl_device *device)
{
    struct kernel_row row = {.kernel = span->name,
                             .step = "",
                             .variant = "",
                             .why_general = "",
                             .groups = span->groups,
                             .local_size = span->local_size};
    if (!step)
        return row;
    row.step = step_traits[step->step->kind].name;
    if (span->manifest.name)
        row.variant = span->manifest.name;
    else if (family_of(step->step->kind) && step->step->kind != STEP_VENDOR) {
        const struct variant *variant = variant_for(step->step, device);
        row.variant = variant->name;
        row.why_general = why_general(step->step, variant, device);
    }
    return row;
}

static bool are_same(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

/* A row for what is like row; NULL when out of memory. */
static struct kernel_row *find_row(struct kernel_rows *rows, const struct kernel_row *row)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct kernel_row *known = &rows->of[i];
        if (known->groups == row->groups && known->local_size == row->local_size &&
            are_same(known->kernel, row->kernel) && are_same(known->step, row->step) &&
            are_same(known->variant, row->variant) &&
            are_same(known->why_general, row->why_general))
            return &rows->of[i];
    }
    if (!ARRAY_GROW(rows->of, rows->count, &rows->capacity))
        return NULL;
    rows->of[rows->count] = *row;
    return &rows->of[rows->count++];
}

static int slower_first(const void *a, const void *b)
{
    const struct kernel_row *x = a, *y = b;
    return (x->nanoseconds < y->nanoseconds) - (x->nanoseconds > y->nanoseconds);
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
static enum healcl_status add_launches(const struct trace *trace, const struct roofline *roofline,
                                       const struct healcl_device *device,
                                       struct timed_steps *steps, struct kernel_rows *rows)
{
    const size_t first = last_repetition(trace);
    for (size_t i = first; i < trace->count; i++) {
        struct timed_step *step = step_of(steps, &trace->spans[i]);
        if (step && is_kernel(&trace->spans[i]))
            step->nanoseconds += trace->spans[i].end - trace->spans[i].start;
    }
    for (size_t i = first; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (!is_kernel(span))
            continue;
        const struct timed_step *step = step_of(steps, span);
        const struct kernel_row like = row_of(span, step, device);
        struct kernel_row *row = find_row(rows, &like);
        if (!row)
            return HEALCL_NO_MEMORY;
        const uint64_t nanoseconds = span->end - span->start;
        row->launches++;
        row->nanoseconds += nanoseconds;
        if (!step)
            continue;
        const double share = (double)nanoseconds / (double)step->nanoseconds;
        row->bytes += (double)step->cost.bytes * share;
        row->roofline += (double)roofline_time(roofline, &step->cost) * share;
    }
    return HEALCL_OK;
}

enum healcl_status kernel_rows_of(const struct plan *plan, const struct trace *trace,
                                  const struct roofline *roofline,
                                  const struct healcl_device *device, struct kernel_rows *rows,
                                  struct healcl_error *error)
{
    struct timed_steps steps = {.of = NULL};
    enum healcl_status status = find_steps(plan, &steps);
    if (status == HEALCL_OK)
        status = add_launches(trace, roofline, device, &steps, rows);
    free(steps.of);
    if (status != HEALCL_OK)
        NO_MEMORY(error);
    if (rows->count > 0)
        qsort(rows->of, rows->count, sizeof *rows->of, slower_first);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- told */

static const char *groups_text(const struct kernel_row *row, char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "%" PRIu64 " x %" PRIu32, row->groups, row->local_size);
    return text;
}

static const char *why_text(const struct kernel_row *row, char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "general: %.100s", row->why_general);
    return text;
}

#define ROW_IF(name, member, known, expression) \
    COLUMN_IF(name, struct kernel_row, member, known, expression)
#define ROW_FIELD(member) COLUMN_FIELD(struct kernel_row, member)

ROW_IF(groups, text, true, groups_text(it, value->room))
ROW_IF(rate, factor, it->bytes >= 1, it->bytes / (double)it->nanoseconds)
ROW_IF(bytes, number, it->bytes >= 1, (uint64_t)it->bytes)
ROW_IF(allowed, number, it->roofline >= 1, (uint64_t)it->roofline)
ROW_IF(share, text, it->roofline >= 1,
       text_roofline(it->roofline, (double)it->nanoseconds, value->room))
ROW_IF(why, text, *it->why_general, why_text(it, value->room))

static const struct column kernel_rows[] = {
    {"kernel", "kernel", COLUMN_TEXT, IN_TEXT | SHRINKS, ROW_FIELD(kernel)},
    {"step", "step", COLUMN_TEXT, IN_TEXT | NONE_IF_0 | SHRINKS, ROW_FIELD(step)},
    {"variant", "variant", COLUMN_TEXT, IN_TEXT | NONE_IF_0, ROW_FIELD(variant)},
    {"launches", "launches", COLUMN_COUNT, IN_TEXT, ROW_FIELD(launches)},
    {"work_groups", NULL, COLUMN_COUNT, 0, ROW_FIELD(groups)},
    {"local_size", NULL, COLUMN_COUNT, 0, ROW_FIELD(local_size)},
    {NULL, "groups x size", COLUMN_TEXT, IN_TEXT | TO_THE_RIGHT, .value = groups},
    {"time_ns", "time", COLUMN_TIME, IN_TEXT, ROW_FIELD(nanoseconds)},
    {"bytes", NULL, COLUMN_BYTES, 0, .value = bytes},
    {NULL, "GB/s", COLUMN_DECIMAL, IN_TEXT, .decimals = 1, .value = rate},
    {"roofline_ns", NULL, COLUMN_TIME, 0, .value = allowed},
    {NULL, "roofline", COLUMN_TEXT, IN_TEXT | TO_THE_RIGHT, .value = share},
    {"why_general", NULL, COLUMN_TEXT, NONE_IF_0, ROW_FIELD(why_general)},
    {NULL, "why", COLUMN_TEXT, IN_TEXT | SHRINKS | BLANK, .value = why},
};

const struct column_table kernel_row_columns = COLUMN_TABLE(kernel_rows);
