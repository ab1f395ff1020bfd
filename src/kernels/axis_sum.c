/* Sums along an axis modulo q: cl/sum. */
#include "kernels/sum.h"

/* Shorter rows, in elements, are not worth adding up lane by lane. */
enum { ROW_MIN = 64 };

static int64_t terms_of(const struct step *step)
{
    return step->in[0]->layout.shape[step->value[0]];
}

/* The output's elements as a space. Its operands are out, and a at the first element of the axis.
 * It is not simplified. */
static struct space space_of_sum(const struct step *step)
{
    struct layout a_view = layout_drop_axis(&step->in[0]->layout, (uint32_t)step->value[0]);
    struct space space = step_space(step, 0);
    space_set_operand(&space, 1, &a_view);
    return space;
}

static const char *plan_columns(const struct step *step, const struct healcl_device *device,
                                struct variant_plan *plan)
{
    struct space *space = &plan->space;
    int64_t k;
    *space = space_of_sum(step);
    space_simplify(space);
    uint32_t last = space->rank - 1;
    const char *obstacle = sum_vectors_obstacle(device, terms_of(step), space->shape[last]);
    if (obstacle)
        return obstacle;
    if (space->operand[0].stride[last] != 1 || space->operand[1].stride[last] != 1)
        return "rows are not contiguous";
    return moduli_are_periodic(step, 1, &k) ? NULL : "moduli do not repeat";
}

static enum healcl_status choose_columns(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    job_begin(&job, self, step, plan, 1);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, 1);
    job_add_buffer(&job, moduli.lanes);
    JOB_ADD_LONGS(&job, moduli.period, terms_of(step), step->in[0]->layout.stride[step->value[0]]);
    job.granule = LANES;
    return job_launch_of(&job, 1, error);
}

/* The summed axis is followed by a last axis of 1, 2, 4 or 8: see axis_modsum_rows. */
static const char *plan_rows(const struct step *step, const struct healcl_device *device,
                             struct variant_plan *plan)
{
    const struct layout *a = &step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0], last = a->rank - 1;
    int64_t count = a->shape[axis], k = a->shape[last], period;
    const char *obstacle = sum_vectors_obstacle(device, count, LANES);
    if (obstacle)
        return obstacle;
    if (k < 1 || LANES % k != 0 || a->stride[last] != 1 || a->stride[axis] != k ||
        count * k < ROW_MIN)
        return "terms do not form contiguous rows";
    if (!moduli_are_periodic(step, 1, &period))
        return "moduli do not repeat";
    struct layout a_rows = layout_drop_axis(a, last);
    struct layout out_rows = layout_drop_axis(&step->out->layout, last - 1);
    a_rows = layout_drop_axis(&a_rows, axis);
    space_of_views(&plan->space, &out_rows, &a_rows);
    return NULL;
}

static enum healcl_status choose_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    struct job job;
    job_begin(&job, self, step, plan, 1);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, 1);
    job_add_buffer(&job, moduli.table);
    JOB_ADD_LONGS(&job, moduli.k, terms_of(step), a->shape[a->rank - 1],
                  out->stride[out->rank - 1]);
    return job_launch_of(&job, 1, error);
}

/* The simplified space of a sum. This operand is the vector of moduli, which varies along the last
 * axis only. */
static struct space space_with_moduli(const struct step *step, uint32_t operand)
{
    struct space space = space_of_sum(step);
    struct layout view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < view.rank; i++)
        view.stride[i] = i + 1 == view.rank;
    space_set_operand(&space, operand, &view);
    space_simplify(&space);
    return space;
}

enum { SEGMENTS_MAX = 1024, SEGMENT_TERMS = 16 /* of a work-item, at least */ };

/* Terms are divided into segments if columns are so few that several work-groups share one. */
static const char *plan_shared_sum(const struct step *step, const struct healcl_device *device,
                                   struct variant_plan *plan)
{
    struct space *space = &plan->space;
    struct axis_sum *sum = &plan->sum;
    const char *obstacle = sum_local_obstacle(step, device, terms_of(step));
    if (obstacle || terms_of(step) <= FEW_TERMS)
        return obstacle ? obstacle : "there are few terms";
    *sum = (struct axis_sum){.terms = terms_of(step),
                             .stride = step->in[0]->layout.stride[step->value[0]],
                             .segments = 1};
    *space = space_with_moduli(step, 3);
    sum->sharing =
        sum_share_terms(device, space->end, sum->terms, sum_columns_beside(space, sum->stride));
    uint64_t items = space->end * sum->sharing.parts;
    int64_t most = sum->terms / ((int64_t)sum->sharing.parts * SEGMENT_TERMS);
    while (items * (uint64_t)sum->segments < sum_items_wanted(device) &&
           sum->segments * 2 <= most && sum->segments < SEGMENTS_MAX &&
           space->end * 2 * (uint64_t)sum->segments <= INT32_MAX)
        sum->segments *= 2;
    sum->segment = (sum->terms + sum->segments - 1) / sum->segments;
    plan->launches = sum->segments > 1 ? 2 : 1;
    return sum->sharing.parts > 1 || sum->segments > 1
               ? NULL
               : "there are many columns, and terms are not adjacent";
}

/* Adds up the segments of a sum. */
static enum healcl_status choose_segments(struct launcher *self, const struct variant_plan *plan,
                                          const struct sum_operands *operands,
                                          struct healcl_error *error)
{
    const struct axis_sum *sum = &plan->sum;
    struct job job;
    sum_begin(&job, self, plan, operands, false);
    job.rounds = (uint64_t)sum->segment / sum->sharing.parts + 1;
    JOB_ADD_LONGS(&job, sum->terms, sum->stride, 0, sum->segment);
    job_add_uint(&job, (uint32_t)(plan->space.end / (uint64_t)sum->segments));
    return sum_choose_shared(&job, &sum->sharing, error);
}

/* Gives the operand the space's elements in C order, from 0 on. */
static void pack_operand(struct space *space, uint32_t operand)
{
    int64_t stride = 1;
    space->operand[operand].offset = 0;
    for (uint32_t axis = space->rank; axis-- > 0; stride *= space->shape[axis])
        space->operand[operand].stride[axis] = stride;
}

/* Sums of segments are reduced and kept in scratch memory, then added up. */
static enum healcl_status choose_shared_sum(struct launcher *self, const struct variant_plan *plan,
                                            struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct variant_plan parts = *plan, whole = *plan;
    struct axis_sum *sum = &whole.sum;
    const int64_t segments = sum->segments;
    const uint64_t outputs = whole.space.end;
    struct sum_operands operands;
    TRY(sum_find_operands(self, step, false, &operands, error));
    if (segments == 1)
        return choose_segments(self, plan, &operands, error);
    space_add_axis(&parts.space);
    parts.space.shape[0] = segments;
    parts.space.end *= (uint64_t)segments;
    parts.space.operand[1].stride[0] = sum->segment * sum->stride;
    pack_operand(&parts.space, 0);
    pack_operand(&whole.space, 1);
    *sum = (struct axis_sum){
        .terms = segments, .stride = (int64_t)outputs, .segment = segments, .segments = 1};
    sum->sharing = sum_share_terms(self->device, outputs, sum->terms,
                                   sum_columns_beside(&whole.space, sum->stride));
    const int scratch =
        template_add_scratch(self, parts.space.end * dtype_size(step->out->storage->dtype));
    struct sum_operands of_parts = operands;
    of_parts.out = operands.a = scratch;
    TRY(choose_segments(self, &parts, &of_parts, error));
    return choose_segments(self, &whole, &operands, error);
}

/* The space has operands out, a at the first element of the axis, and q. */
static const char *plan_terms(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    (void)device;
    plan->space = space_with_moduli(step, 2);
    return NULL;
}

static const char *plan_item_sums(const struct step *step, const struct healcl_device *device,
                                  struct variant_plan *plan)
{
    plan->space = space_with_moduli(step, 3);
    return sum_local_obstacle(step, device, terms_of(step));
}

static enum healcl_status choose_item_sums(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_rows rows = {.a_term = step->in[0]->layout.stride[step->value[0]],
                                      .terms = (uint32_t)terms_of(step)};
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, true, &operands, error));
    sum_begin(&job, self, plan, &operands, false);
    return sum_choose_items(&job, step, &rows, 1, error);
}

/* Sums a part of the terms at a time. Later parts are added to out. */
static enum healcl_status choose_axis_modsum(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    int64_t stride = step->in[0]->layout.stride[step->value[0]];
    const int q = derive_modulus_vector(self, step, 1);
    int64_t terms = terms_of(step), first = 0;
    do {
        int64_t count = sum_terms_at_once(self, terms - first);
        struct job job;
        job_begin(&job, self, step, plan, 1);
        job.rounds = (uint64_t)count;
        job.space.operand[1].offset += first * stride;
        job_add_buffer(&job, q);
        JOB_ADD_LONGS(&job, count, stride);
        job_add_uint(&job, first > 0);
        TRY(job_launch(&job, error));
        first += count;
    } while (first < terms);
    return HEALCL_OK;
}

static const struct variant axis_modsum_variants[] = {
    {"vectors", STYLE_VECTORS, plan_columns, choose_columns, MULTIPLIED, "vectors",
     "axis_modsum_vectors", "cl/sum/columns.cl", "contiguous rows of a multiple of eight elements"},
    {"rows", STYLE_VECTORS, plan_rows, choose_rows, MULTIPLIED, "vectors", "axis_modsum_rows",
     "cl/sum/columns.cl", "contiguous terms, with a last axis of size 1, 2, 4 or 8"},
    {"single", STYLE_SINGLE, plan_terms, choose_axis_modsum, 0, "core/sums", "axis_modsum",
     "cl/core/sums.cl", "up to 2^31 elements"},
    {"shared", STYLE_LOCAL, plan_shared_sum, choose_shared_sum, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_item_sums, choose_item_sums, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl", "at least 8192 terms, or 256 for a sum"},
    {"elements", STYLE_GENERAL, plan_terms, choose_axis_modsum, OVER_ANY_VIEW, "core/sums",
     "axis_modsum", "cl/core/sums.cl", "anything"},
};

const struct family family_axis_modsum = FAMILY_OF(axis_modsum, sum, axis_modsum_variants);
