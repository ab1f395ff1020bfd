/* Gathers: cl/gather/gather.cl. */
#include "kernels/kernels.h"

enum {
    LINE_MIN = 4,          /* elements with one index: fewer are not worth another kernel */
    ROW_MIN = 256,         /* elements of a row: fewer are not worth a first pass over the row */
    ELEMENTS_MIN = 1 << 14 /* fewer are not worth another kernel */
};

/* Operands of the space: out, a and the indices. */
enum { OPERAND_INDICES = 2 };

/* The output's elements as a space. Operand a does not move along the gathered axis, value[0]:
 * kernels add an index times a's stride. */
static struct space space_of_gather(const struct step *step)
{
    struct layout a_view = step->in[INPUT_A]->layout;
    struct space space = step_space(step, 2 /* inputs */);
    a_view.stride[step->value[0]] = 0;
    space_set_operand(&space, OPERAND_A, &a_view);
    space_simplify(&space);
    return space;
}

/* Whether the space's operands have these strides along its last axis. */
static bool last_strides_are(const struct space *space, int64_t out, int64_t a, int64_t indices)
{
    const uint32_t last = space->rank - 1;
    return space->operand[OPERAND_OUT].stride[last] == out &&
           space->operand[OPERAND_A].stride[last] == a &&
           space->operand[OPERAND_INDICES].stride[last] == indices;
}

static const char *plan_elements(struct variant_plan *plan)
{
    plan->space = space_of_gather(plan->step);
    return NULL;
}

/* Contiguous elements of out and a share one index: the kernel copies them as a line. */
static const char *plan_lines(struct variant_plan *plan)
{
    const struct space *space = &plan->space;
    plan->space = space_of_gather(plan->step);
    const int64_t line = space->shape[space->rank - 1];
    OBSTACLE_IF(!last_strides_are(space, 1, 1, 0), "adjacent elements have different indices");
    OBSTACLE_IF(line < LINE_MIN || space->end < ELEMENTS_MIN,
                "few elements, or few that share an index");
    return NULL;
}

/* Indices select within contiguous rows of a. A work-item first reads a whole row into the cache.
 * So it should use most of the row, and each compute unit needs a few rows. */
static const char *plan_rows(struct variant_plan *plan)
{
    enum { ROWS_OF_UNIT = 2 };
    const struct step *step = plan->step;
    const struct space *space = &plan->space;
    const struct layout *a = &step->in[INPUT_A]->layout;
    plan->space = space_of_gather(step);
    const int64_t gathered_axis = step->value[0], row = a->shape[gathered_axis];
    const int64_t taken = space->shape[space->rank - 1]; /* elements of out from one row of a */
    OBSTACLE_IF(a->stride[gathered_axis] != 1 || !last_strides_are(space, 1, 0, 1),
                "the gathered axis is not contiguous");
    OBSTACLE_IF(row < ROW_MIN || taken < row / 2, "rows are short, or few elements are taken");
    const uint64_t rows = space->end / (uint64_t)taken; /* taken is above 0: row is not short */
    const uint64_t rows_min = ROWS_OF_UNIT * (uint64_t)plan->device->info.compute_units;
    OBSTACLE_IF(space->end < ELEMENTS_MIN || rows < rows_min, "there are too few rows");
    return NULL;
}

/* Lets the general kernel use vectors of elements with one index. They must be aligned to their
 * size at every index: so the stride of the gathered axis must be a multiple of it. */
static void allow_vectors(struct job *job, const struct step *step, int64_t gathered_stride)
{
    const struct operand *operand = job->space.operand;
    const uint32_t last = job->space.rank - 1;
    if (operand[OPERAND_INDICES].stride[last] == 0 && operand[OPERAND_A].stride[last] == 1)
        job_allow_vectors(job, step, COPY_VECTOR_MOST, 2 /* inputs */);
    if (job->width > 1 && gathered_stride % job->width != 0)
        job->width = 1;
}

/* The kernels' parameters after the operands: the size of a's gathered axis, and its stride. The
 * kernel of rows has no stride: it is 1. Indices out of range are reported by a check, and are not
 * used. */
static enum healcl_status choose(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[INPUT_A]->layout;
    const int64_t gathered_axis = step->value[0], stride = a->stride[gathered_axis];
    const enum kernel_style style = plan->variant->style;
    const bool takes_stride = plan->variant->plan != plan_rows;
    struct job job;
    TRY(derive_check(self, step, INDICES, error));
    job_begin(&job, self, plan, 2 /* inputs */);
    job_define_type(&job, "INDEX", step->in[INDICES]->storage->dtype);
    job_add_long(&job, a->shape[gathered_axis]);
    if (takes_stride)
        job_add_long(&job, stride);
    if (style == STYLE_VECTORS) /* a work-item takes whole rows or lines */
        job.granule = (uint64_t)job.space.shape[job.space.rank - 1];
    if (style == STYLE_GENERAL)
        allow_vectors(&job, step, stride);
    return job_launch(&job, error);
}

static const struct variant variants[] = {
    {"rows", STYLE_VECTORS, plan_rows, choose, OVER_ELEMENTS, "gather/gather", "gather_rows",
     "cl/gather/gather.cl", "most elements of long contiguous rows"},
    {"lines", STYLE_VECTORS, plan_lines, choose, OVER_ELEMENTS, "gather/gather", "gather_lines",
     "cl/gather/gather.cl", "contiguous elements that share an index"},
    GENERAL_VARIANTS("elements", plan_elements, choose, WIDE_OVER_ANY_VIEW, "gather/gather",
                     "gather"),
};

const struct family family_gather = FAMILY_OF(gather, gather, variants);
