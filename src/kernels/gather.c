/* Gathers: cl/gather/gather.cl. */
#include "kernels/kernels.h"

enum {
    LINE_MIN = 4,          /* elements with one index: fewer are not worth another kernel */
    ROW_MIN = 256,         /* elements of a row: fewer are not worth a first pass over the row */
    ELEMENTS_MIN = 1 << 14 /* fewer are not worth another kernel */
};

/* The output's elements as a space. Its operands are out, a at the first element of the gathered
 * axis, and idx. */
static const char *plan_elements(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    struct layout a_view = step->in[0]->layout;
    (void)device;
    plan->space = step_space(step, 2);
    a_view.stride[step->value[0]] = 0;
    space_set_operand(&plan->space, 1, &a_view);
    space_simplify(&plan->space);
    return NULL;
}

/* Contiguous elements share one index. */
static const char *plan_lines(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    const struct space *space = &plan->space;
    (void)plan_elements(step, device, plan);
    uint32_t last = space->rank - 1;
    if (space->operand[0].stride[last] != 1 || space->operand[1].stride[last] != 1 ||
        space->operand[2].stride[last] != 0)
        return "adjacent elements have different indices";
    return space->shape[last] < LINE_MIN || space->end < ELEMENTS_MIN
               ? "few elements, or few that share an index"
               : NULL;
}

/* Each work-item takes a row, and should use most of it. */
static const char *plan_rows(const struct step *step, const struct healcl_device *device,
                             struct variant_plan *plan)
{
    const struct space *space = &plan->space;
    (void)plan_elements(step, device, plan);
    uint32_t last = space->rank - 1;
    int64_t size = step->in[0]->layout.shape[step->value[0]];
    if (step->in[0]->layout.stride[step->value[0]] != 1 || space->operand[0].stride[last] != 1 ||
        space->operand[1].stride[last] != 0 || space->operand[2].stride[last] != 1)
        return "the gathered axis is not contiguous";
    if (size < ROW_MIN || space->shape[last] < size / 2)
        return "rows are short, or few elements are taken";
    return space->end < ELEMENTS_MIN || space->end / (uint64_t)space->shape[last] <
                                            2 * (uint64_t)device->info.compute_units
               ? "there are too few rows"
               : NULL;
}

/* Lets the general kernel use vectors of elements with one index. They must be aligned to their
 * size at every index. */
static void allow_vectors(struct job *job, const struct step *step, int64_t stride)
{
    const struct operand *operand = job->space.operand;
    const uint32_t last = job->space.rank - 1;
    if (operand[2].stride[last] == 0 && operand[1].stride[last] == 1)
        job_allow_vectors(job, step, COPY_VECTOR_MOST, 2);
    if (job->width > 1 && stride % job->width != 0)
        job->width = 1;
}

static enum healcl_status choose(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    uint32_t axis = (uint32_t)step->value[0];
    const int64_t size = step->in[0]->layout.shape[axis], stride = step->in[0]->layout.stride[axis];
    struct job job;
    TRY(derive_check(self, step, 1, error));
    job_begin(&job, self, step, plan, 2);
    job_define_type(&job, "INDEX", step->in[1]->storage->dtype);
    job_add_long(&job, size);
    if (plan->variant->style == STYLE_VECTORS)
        job.granule = (uint64_t)job.space.shape[job.space.rank - 1];
    if (plan->variant->plan != plan_rows)
        job_add_long(&job, stride);
    if (plan->variant->style == STYLE_GENERAL)
        allow_vectors(&job, step, stride);
    return job_launch(&job, error);
}

static const struct variant variants[] = {
    {"rows", STYLE_VECTORS, plan_rows, choose, OVER_ELEMENTS, "gather/gather", "gather_rows",
     "cl/gather/gather.cl", "most elements of long contiguous rows"},
    {"lines", STYLE_VECTORS, plan_lines, choose, OVER_ELEMENTS, "gather/gather", "gather_lines",
     "cl/gather/gather.cl", "contiguous elements that share an index"},
    {"single", STYLE_SINGLE, plan_elements, choose, 0, "gather/gather", "gather",
     "cl/gather/gather.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_elements, choose, WIDE_OVER_ANY_VIEW, "gather/gather",
     "gather", "cl/gather/gather.cl", "anything"},
};

const struct family family_gather = FAMILY_OF(gather, gather, variants);
