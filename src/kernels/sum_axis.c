/* Sums modulo q along an axis: cl/sum. */
#include "kernels/sum.h"

/* Elements of a row whose lanes are worth adding up one by one. */
enum { ROW_MIN = 64 };

static int64_t terms_of(const struct step *step)
{
    return step->in[0]->layout.shape[step->value[0]];
}

/* The output's elements, with operands out and a at the axis's first element; not simplified. */
static struct space space_of_sum(const struct step *step)
{
    struct layout a_view = layout_drop_axis(&step->in[0]->layout, (uint32_t)step->value[0]);
    struct space space = step_space(step, 0);
    space_set_operand(&space, 1, &a_view);
    return space;
}

static void add_summed_axis(struct job *job, const struct step *step)
{
    job_add_long(job, terms_of(step));
    job_add_long(job, step->in[0]->layout.stride[step->value[0]]);
}

static const char *plan_columns(const struct step *step, const struct healcl_device *device,
                                struct variant_plan *plan)
{
    struct space *space = &plan->space;
    int64_t k;
    *space = space_of_sum(step);
    space_simplify(space);
    uint32_t last = space->rank - 1;
    const char *lack = lacks_sum_vectors(device, terms_of(step), space->shape[last]);
    if (lack)
        return lack;
    if (space->operand[0].stride[last] != 1 || space->operand[1].stride[last] != 1)
        return "rows are not in order";
    return moduli_are_periodic(step, 1, &k) ? NULL : "moduli do not repeat";
}

static enum healcl_status launch_columns(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    struct periodic_moduli moduli;
    TRY(job_begin(&job, self, step, plan, 1, error));
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
    job_add_buffer(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_summed_axis(&job, step);
    job.granule = LANES;
    return job_launch_alone(&job, error);
}

/* The axis before a last one of 1, 2, 4 or 8: see axis_modsum_rows. */
static const char *plan_rows(const struct step *step, const struct healcl_device *device,
                             struct variant_plan *plan)
{
    const struct layout *a = &step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0], last = a->rank - 1;
    int64_t count = a->shape[axis], k = a->shape[last], period;
    const char *lack = lacks_sum_vectors(device, count, LANES);
    if (lack)
        return lack;
    if (k < 1 || LANES % k != 0 || a->stride[last] != 1 || a->stride[axis] != k ||
        count * k < ROW_MIN)
        return "terms do not make rows in order";
    if (!moduli_are_periodic(step, 1, &period))
        return "moduli do not repeat";
    struct layout a_rows = layout_drop_axis(a, last);
    struct layout out_rows = layout_drop_axis(&step->out->layout, last - 1);
    a_rows = layout_drop_axis(&a_rows, axis);
    space_init(&plan->space, &out_rows);
    space_set_operand(&plan->space, 0, &out_rows);
    space_set_operand(&plan->space, 1, &a_rows);
    space_simplify(&plan->space);
    return NULL;
}

static enum healcl_status launch_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    struct periodic_moduli moduli;
    struct job job;
    TRY(job_begin(&job, self, step, plan, 1, error));
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
    job_add_buffer(&job, moduli.table);
    job_add_long(&job, moduli.k);
    job_add_long(&job, terms_of(step));
    job_add_long(&job, a->shape[a->rank - 1]);
    job_add_long(&job, out->stride[out->rank - 1]);
    return job_launch_alone(&job, error);
}

/* The vector of moduli as an operand of out's shape: it varies along the last axis only. */
static struct layout moduli_view(const struct step *step)
{
    struct layout view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < view.rank; i++)
        view.stride[i] = i + 1 == view.rank;
    return view;
}

/* As share_terms has it, of a's elements with out's places; the space is simplified. */
static int64_t columns_beside(const struct space *space, int64_t stride)
{
    int64_t size = 1;
    for (uint32_t axis = space->rank; axis-- > 0 && size < stride;) {
        if (space->operand[1].stride[axis] != size)
            break;
        size *= space->shape[axis];
    }
    return size == stride ? size : 0;
}

enum { SEGMENTS_MAX = 1024, SEGMENT_TERMS = 16 /* of a work-item, at least */ };

/* Terms are shared out in segments, where columns are so few that work-groups share one. Operands:
 * out, a, q. */
static const char *plan_shared_sum(const struct step *step, const struct healcl_device *device,
                                   struct variant_plan *plan)
{
    struct space *space = &plan->space;
    struct axis_sum *sum = &plan->sum;
    const struct layout q_view = moduli_view(step);
    const char *lack = lacks_local(step, device, terms_of(step));
    if (lack)
        return lack;
    *sum = (struct axis_sum){.terms = terms_of(step),
                             .stride = step->in[0]->layout.stride[step->value[0]],
                             .segments = 1};
    *space = space_of_sum(step);
    space_set_operand(space, 2, &q_view);
    space_simplify(space);
    sum->sharing =
        share_terms(device, space->end, sum->terms, columns_beside(space, sum->stride), 1);
    uint64_t items = space->end * sum->sharing.parts;
    int64_t most = sum->terms / ((int64_t)sum->sharing.parts * SEGMENT_TERMS);
    while (items * (uint64_t)sum->segments < items_wanted(device) && sum->segments * 2 <= most &&
           sum->segments < SEGMENTS_MAX && space->end * 2 * (uint64_t)sum->segments <= INT32_MAX)
        sum->segments *= 2;
    sum->segment = (sum->terms + sum->segments - 1) / sum->segments;
    return sum->sharing.parts > 1 || sum->segments > 1
               ? NULL
               : "there are many columns, and terms do not lie beside each other";
}

/* Adds up the segments of a sum: out and a, unless NULL, stand for the step's. */
static enum healcl_status launch_segments(struct launcher *self, const struct variant_plan *plan,
                                          const struct buffer *out, const struct buffer *a,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct axis_sum *sum = &plan->sum;
    const struct buffer *q;
    struct job job;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    TRY(job_begin(&job, self, step, plan, 1, error));
    if (out)
        job.launch.arguments[1].buffer = out;
    if (a)
        job.launch.arguments[2].buffer = a;
    job.rounds = (uint64_t)sum->segment / sum->sharing.parts + 1;
    job_add_buffer(&job, q);
    job_add_long(&job, sum->terms);
    job_add_long(&job, sum->stride);
    job_add_long(&job, sum->segment);
    job_add_uint(&job, (uint32_t)(plan->space.end / (uint64_t)sum->segments));
    return launch_shared(&job, &sum->sharing, error);
}

/* Operand k has the space's elements in C order from 0 on. */
static void pack_operand(struct space *space, uint32_t operand)
{
    int64_t stride = 1;
    space->operand[operand].offset = 0;
    for (uint32_t axis = space->rank; axis-- > 0; stride *= space->shape[axis])
        space->operand[operand].stride[axis] = stride;
}

/* The sums of segments, reduced, lie in scratch memory before they are added up. */
static enum healcl_status launch_shared_sum(struct launcher *self, const struct variant_plan *plan,
                                            struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct variant_plan parts = *plan, whole = *plan;
    struct axis_sum *sum = &whole.sum;
    const int64_t segments = sum->segments;
    const uint64_t outputs = whole.space.end;
    struct buffer scratch;
    if (segments == 1)
        return launch_segments(self, plan, NULL, NULL, error);
    space_add_axis(&parts.space);
    parts.space.shape[0] = segments;
    parts.space.end *= (uint64_t)segments;
    parts.space.operand[1].stride[0] = sum->segment * sum->stride;
    pack_operand(&parts.space, 0);
    pack_operand(&whole.space, 1);
    *sum = (struct axis_sum){
        .terms = segments, .stride = (int64_t)outputs, .segment = segments, .segments = 1};
    sum->sharing = share_terms(self->device, outputs, sum->terms,
                               columns_beside(&whole.space, sum->stride), 1);
    TRY(device_buffer_acquire(self->device, parts.space.end * dtype_size(step->out->storage->dtype),
                              false, &scratch, error));
    enum healcl_status status = launch_segments(self, &parts, &scratch, NULL, error);
    if (status == HEALCL_OK)
        status = launch_segments(self, &whole, NULL, &scratch, error);
    device_buffer_release(self->device, &scratch);
    return status;
}

/* Operands: out, a at the axis's first element, q. */
static const char *plan_terms(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    const struct layout q_view = moduli_view(step);
    (void)device;
    plan->space = space_of_sum(step);
    space_set_operand(&plan->space, 2, &q_view);
    space_simplify(&plan->space);
    return NULL;
}

/* Some terms after others: later ones are added to out. */
static enum healcl_status launch_axis_modsum(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    int64_t stride = step->in[0]->layout.stride[step->value[0]];
    const struct buffer *q;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    int64_t terms = terms_of(step), first = 0;
    do {
        int64_t count = terms_at_once(self, terms - first);
        struct job job;
        TRY(job_begin(&job, self, step, plan, 1, error));
        job.rounds = (uint64_t)count;
        job.space.operand[1].offset += first * stride;
        job_add_buffer(&job, q);
        job_add_long(&job, count);
        job_add_long(&job, stride);
        job_add_uint(&job, first > 0);
        TRY(job_launch(&job, error));
        first += count;
    } while (first < terms);
    return HEALCL_OK;
}

static const struct variant axis_modsum_variants[] = {
    {"vectors", STYLE_VECTORS, plan_columns, launch_columns, MULTIPLIED, "vectors",
     "axis_modsum_vectors", "cl/sum/columns.cl", "rows of multiples of eight elements in order"},
    {"rows", STYLE_VECTORS, plan_rows, launch_rows, MULTIPLIED, "vectors", "axis_modsum_rows",
     "cl/sum/columns.cl", "terms in order, a last axis of 1, 2, 4 or 8"},
    {"single", STYLE_SINGLE, plan_terms, launch_axis_modsum, 0, "core", "axis_modsum",
     "cl/sum/general.cl", "up to 2^31 elements"},
    {"shared", STYLE_LOCAL, plan_shared_sum, launch_shared_sum, SHARED_SUM, "sum/local",
     "axis_modsum_local", "cl/sum/local.cl",
     "8192 terms, or 256 of a sum: few columns, or terms beside each other"},
    {"elements", STYLE_GENERAL, plan_terms, launch_axis_modsum, OVER_ANY_VIEW, "core",
     "axis_modsum", "cl/sum/general.cl", "anything"},
};

const struct family family_axis_modsum = FAMILY_OF(axis_modsum, sum, axis_modsum_variants);
