/* Sums along an axis modulo q: cl/sum. The step's axis value[0] is summed. */
#include "kernels/sum.h"

/* Shorter rows, in elements, are not worth adding up lane by lane. */
enum { ROW_MIN = 64 };

/* The kernel axis_modsum has no b: its moduli are operand 2. */
enum { AXIS_MODSUM_Q = 2 };

static int64_t terms_of(const struct step *step)
{
    return step->in[INPUT_A]->layout.shape[step->value[0]];
}

static int64_t term_stride_of(const struct step *step)
{
    return step->in[INPUT_A]->layout.stride[step->value[0]];
}

/* The output's elements as a space. Its operands are out, and a at the first term of each sum. Axes
 * are not simplified. */
static struct space space_of_sum(const struct step *step)
{
    struct layout first_terms =
        layout_drop_axis(&step->in[INPUT_A]->layout, (uint32_t)step->value[0]);
    struct space space = step_space(step, 0 /* inputs */);
    space_set_operand(&space, OPERAND_A, &first_terms);
    return space;
}

/* For sums of contiguous rows. The kernel adds up whole rows of a, eight columns at a time. It
 * takes moduli as vectors of eight, which must repeat along a row. */
static const char *plan_columns(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    struct space *space = &plan->space;
    *space = space_of_sum(step);
    space_simplify(space);
    const uint32_t last = space->rank - 1;
    const bool out_is_contiguous = space->operand[OPERAND_OUT].stride[last] == 1;
    const bool a_is_contiguous = space->operand[OPERAND_A].stride[last] == 1;
    RETURN_OBSTACLE(sum_vectors_obstacle(plan->device, terms_of(step), space->shape[last]));
    OBSTACLE_IF(!out_is_contiguous || !a_is_contiguous, "rows are not contiguous");
    OBSTACLE_IF(!moduli_are_periodic(step, Q), "moduli do not repeat");
    return NULL;
}

/* Parameters of axis_modsum_vectors after the moduli as vectors. These repeat after `period`. */
struct columns_parameters {
    int64_t period, terms, a_term;
};

/* Adds the launch of axis_modsum_vectors. */
static enum healcl_status choose_columns(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    job_begin(&job, self, plan, 1 /* input */);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, Q);
    job_add_buffer(&job, moduli.lanes);
    JOB_ADD_MEMBERS(&job, struct columns_parameters, .period = moduli.period,
                    .terms = terms_of(step), .a_term = term_stride_of(step));
    job.granule = LANES; /* work-items begin at whole vectors */
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* For a summed axis that is followed only by a last axis of k = 1, 2, 4 or 8 moduli, in contiguous
 * memory. Then the terms of k sums form one row, and a vector of eight holds whole groups of k. The
 * kernel, axis_modsum_rows, adds up vectors, then their lanes. */
static const char *plan_rows(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[INPUT_A]->layout;
    const uint32_t summed_axis = (uint32_t)step->value[0], last = a->rank - 1;
    const int64_t terms = a->shape[summed_axis], k = a->shape[last];
    RETURN_OBSTACLE(sum_vectors_obstacle(plan->device, terms, LANES));
    OBSTACLE_IF(k < 1 || LANES % k != 0, "k is not 1, 2, 4 or 8");
    OBSTACLE_IF(terms * k < ROW_MIN, "rows are short");
    OBSTACLE_IF(a->stride[last] != 1 || a->stride[summed_axis] != k,
                "terms do not form contiguous rows");
    OBSTACLE_IF(!moduli_are_periodic(step, Q), "moduli do not repeat");
    /* The kernel itself follows the summed axis and the last one: its space has neither. */
    struct layout a_rows = layout_drop_axis(a, last);
    struct layout out_rows = layout_drop_axis(&step->out->layout, last - 1);
    a_rows = layout_drop_axis(&a_rows, summed_axis);
    space_of_views(&plan->space, &out_rows, &a_rows);
    return NULL;
}

/* Parameters of axis_modsum_rows after the moduli. k: the size of the last axis. */
struct axis_rows_parameters {
    int64_t moduli, terms, k, out_k;
};

/* Adds the launch of axis_modsum_rows. */
static enum healcl_status choose_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[INPUT_A]->layout, *out = &step->out->layout;
    struct job job;
    job_begin(&job, self, plan, 1 /* input */);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, Q);
    job_add_buffer(&job, moduli.table);
    JOB_ADD_MEMBERS(&job, struct axis_rows_parameters, .moduli = moduli.k, .terms = terms_of(step),
                    .k = a->shape[a->rank - 1], .out_k = out->stride[out->rank - 1]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* The simplified space of a sum, with the vector of moduli as one more operand. Moduli differ along
 * the last axis only: see AXIS_MODSUM in plan/steps.def. */
static struct space space_with_moduli(const struct step *step, uint32_t q_operand)
{
    struct space space = space_of_sum(step);
    struct layout q_view = layout_packed(&step->out->layout);
    for (uint32_t axis = 0; axis < q_view.rank; axis++)
        q_view.stride[axis] = axis + 1 == q_view.rank ? 1 : 0;
    space_set_operand(&space, q_operand, &q_view);
    space_simplify(&space);
    return space;
}

enum { SEGMENTS_MAX = 1024, SEGMENT_TERMS = 16 /* of a work-item, at least */ };

/* The number of segments that the terms of each column are divided into. It is doubled until there
 * are enough work-items to keep the device busy. But each work-item keeps SEGMENT_TERMS terms, and
 * kernels count the columns of all segments in 31 bits. */
static int64_t count_segments(const struct healcl_device *device, const struct axis_sum *sum,
                              uint64_t columns)
{
    const uint64_t items_of_segment = columns * sum->sharing.parts;
    const int64_t terms_min = (int64_t)sum->sharing.parts * SEGMENT_TERMS; /* of a segment */
    int64_t most = smaller(SEGMENTS_MAX, sum->terms / terms_min);
    most = smaller(most, (int64_t)(INT32_MAX / columns));
    int64_t segments = 1;
    while (segments * 2 <= most && items_of_segment * (uint64_t)segments < sum_items_wanted(device))
        segments *= 2;
    return segments;
}

/* For GPUs. The work-items of a work-group divide the terms of each column, and add up their sums
 * in local memory. If that leaves too few work-items, several work-groups share a column: then a
 * second launch adds up the sums of its segments. */
static const char *plan_shared_sum(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    struct space *space = &plan->space;
    struct axis_sum *sum = &plan->sum;
    RETURN_OBSTACLE(sum_local_obstacle(plan, terms_of(step)));
    OBSTACLE_IF(terms_of(step) <= FEW_TERMS, "there are few terms");
    *sum = (struct axis_sum){.terms = terms_of(step), .term_stride = term_stride_of(step)};
    *space = space_with_moduli(step, OPERAND_Q);
    sum->sharing = sum_share_terms(plan->device, space->end, sum->terms,
                                   sum_columns_beside(space, sum->term_stride));
    sum->segments = count_segments(plan->device, sum, space->end);
    sum->segment_terms = (sum->terms + sum->segments - 1) / sum->segments;
    plan->launches = sum->segments > 1 ? 2 : 1;
    OBSTACLE_IF(sum->sharing.parts == 1 && sum->segments == 1,
                "there are many columns, and terms are not adjacent");
    return NULL;
}

/* Adds a launch of axis_sum_local, which sums all segments of all columns. */
static enum healcl_status choose_segments(struct launcher *self, const struct variant_plan *plan,
                                          const struct sum_operands *operands,
                                          struct healcl_error *error)
{
    struct job job;
    sum_begin(&job, self, plan, operands, false /* out is only written */);
    return sum_choose_shared(&job, &plan->sum, 0 /* there is no b */, error);
}

/* Makes an operand contiguous: it has the space's elements in C order, from 0 on. */
static void pack_operand(struct space *space, uint32_t operand)
{
    int64_t stride = 1;
    space->operand[operand].offset = 0;
    for (uint32_t axis = space->rank; axis-- > 0; stride *= space->shape[axis])
        space->operand[operand].stride[axis] = stride;
}

/* One launch if columns have one segment. Otherwise a first launch writes the sums of segments to
 * scratch memory [segments, columns], reduced modulo q. A second one adds these up: its terms are
 * the segments, which are `columns` elements apart. */
static enum healcl_status choose_shared_sum(struct launcher *self, const struct variant_plan *plan,
                                            struct healcl_error *error)
{
    const struct step *step = plan->step;
    const int64_t segments = plan->sum.segments;
    const uint64_t columns = plan->space.end;
    struct sum_operands operands;
    TRY(sum_find_operands(self, step, PERMUTATION_AS_GIVEN, &operands, error));
    if (segments == 1)
        return choose_segments(self, plan, &operands, error);
    const size_t element_bytes = dtype_size(step->out->storage->dtype);
    const int scratch = template_add_scratch(self, columns * (uint64_t)segments * element_bytes);

    struct variant_plan first = *plan;
    struct sum_operands first_operands = operands;
    first_operands.out = scratch;
    space_insert_axis(&first.space, 0, segments);
    first.space.operand[OPERAND_A].stride[0] = plan->sum.segment_terms * plan->sum.term_stride;
    pack_operand(&first.space, OPERAND_OUT);
    TRY(choose_segments(self, &first, &first_operands, error));

    struct variant_plan second = *plan;
    struct sum_operands second_operands = operands;
    second_operands.a = scratch;
    pack_operand(&second.space, OPERAND_A);
    const int64_t beside = sum_columns_beside(&second.space, (int64_t)columns);
    second.sum =
        (struct axis_sum){.sharing = sum_share_terms(self->device, columns, segments, beside),
                          .terms = segments,
                          .term_stride = (int64_t)columns,
                          .segment_terms = segments,
                          .segments = 1};
    return choose_segments(self, &second, &second_operands, error);
}

/* A work-item adds up all terms of an output. Runs every step. */
static const char *plan_terms(struct variant_plan *plan)
{
    plan->space = space_with_moduli(plan->step, AXIS_MODSUM_Q);
    return NULL;
}

/* As plan_terms, for GPUs: the kernel of cl/sum/items.cl adds up several terms without a loop. */
static const char *plan_item_sums(struct variant_plan *plan)
{
    plan->space = space_with_moduli(plan->step, OPERAND_Q);
    return sum_local_obstacle(plan, terms_of(plan->step));
}

/* Terms have one factor, a: its distance between rows is 0, as a work-item has one row. */
static enum healcl_status choose_item_sums(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_rows rows = {.a_term = term_stride_of(step),
                                      .terms = (uint32_t)terms_of(step)};
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, PERMUTATION_INVERTED, &operands, error));
    sum_begin(&job, self, plan, &operands, false /* out is only written */);
    const uint32_t rows_of_item = 1;
    return sum_choose_items(&job, step, &rows, rows_of_item, error);
}

/* Sums a part of the terms at a time, because some devices limit the iterations of loops. Later
 * parts are added to out. The kernel's parameters after the space, out and a: q, terms of this
 * part, a's stride along them, and whether to add to out. */
static enum healcl_status choose_axis_modsum(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    const int64_t stride = term_stride_of(step), terms = terms_of(step);
    const int q = derive_modulus_vector(self, step, Q);
    int64_t first = 0;
    do { /* once even without terms: such sums are 0 */
        int64_t count = sum_terms_at_once(self, terms - first);
        struct job job;
        job_begin(&job, self, plan, 1 /* input */);
        job.rounds = (uint64_t)count;
        job.space.operand[OPERAND_A].offset += first * stride;
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
    {"shared", STYLE_LOCAL, plan_shared_sum, choose_shared_sum, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_item_sums, choose_item_sums, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl", "at least 8192 terms, or 256 for a sum"},
    GENERAL_VARIANTS("elements", plan_terms, choose_axis_modsum, OVER_ANY_VIEW, "core/sums",
                     "axis_modsum"),
};

const struct family family_axis_modsum = FAMILY_OF(axis_modsum, sum, axis_modsum_variants);
