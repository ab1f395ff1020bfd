/* Copies and fills: cl/copy/general.cl, cl/copy/lines.cl, cl/copy/tiles.cl. */
#include "kernels/kernels.h"

enum { LINES_RUN_MIN = 512 /* elements */ };

const char *lacks_lines(const struct space *space, const struct step *step,
                        const struct healcl_device *device, uint32_t operands)
{
    uint32_t last = space->rank - 1;
    const char *lack = lacks_vectors(step, device);
    if (lack)
        return lack;
    if (!passes_caches(device, space->end, step->out->storage->dtype))
        return "the output fits caches";
    for (uint32_t i = 0; i < operands; i++)
        if (space->operand[i].stride[last] != 1)
            return "elements are not in order";
    return space->shape[last] < LINES_RUN_MIN ? "rows are short" : NULL;
}

void job_take_lines(struct job *job)
{
    job->launch.program = "copy/lines";
    job->granule = 1 << 15;
}

/* ---------------------------------------------------------------- fills */

static struct space space_of_fill(const struct step *step)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, 0, &step->out->layout);
    space_simplify(&space);
    return space;
}

static const char *lacks_fill_lines(const struct step *step, const struct healcl_device *device)
{
    struct space space = space_of_fill(step);
    return lacks_lines(&space, step, device, 1);
}

MUST_CHECK static enum healcl_status begin_fill(struct job *job, struct launcher *self,
                                                const struct step *step, struct healcl_error *error)
{
    job_init(job, self, step, "core", "fill");
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job->space = space_of_fill(step);
    job_add_space(job);
    TRY(job_add_output(job, step->out, error));
    job_add_long(job, step->value[0]);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status launch_fill(struct launcher *self, const struct step *step,
                                                 struct healcl_error *error)
{
    struct job job;
    TRY(begin_fill(&job, self, step, error));
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_fill_lines(struct launcher *self,
                                                       const struct step *step,
                                                       struct healcl_error *error)
{
    struct job job;
    TRY(begin_fill(&job, self, step, error));
    job_take_lines(&job);
    return job_launch(&job, error);
}

static const struct variant fill_variants[] = {
    {"lines", VARIANT_VECTORS, lacks_fill_lines, launch_fill_lines, PAST_CACHES, "cl/copy/lines.cl",
     "long rows of outputs too large for caches"},
    {"elements", VARIANT_GENERAL, NULL, launch_fill, OVER_ELEMENTS, "cl/copy/general.cl",
     "anything"},
};

const struct family family_fill = FAMILY_OF(fill, copy, fill_variants);

/* ---------------------------------------------------------------- copies */

enum {
    COPY_OUT,
    COPY_IN,
    BLOCK_BYTES = 16384,          /* of out, and as many of in: both fit a first cache */
    LINE_BYTES = 64,              /* of caches */
    STRIP_BYTES = 4 * LINE_BYTES, /* of in, in a row */
    LONG_RUN = 64,                /* elements: enough for the general kernel */
    TILES_MIN = 4096              /* elements that are worth another program */
};

static void swap_axes(struct space *space, uint32_t a, uint32_t b)
{
    int64_t size = space->shape[a];
    space->shape[a] = space->shape[b];
    space->shape[b] = size;
    for (int k = 0; k < SPACE_OPERANDS; k++) {
        int64_t stride = space->operand[k].stride[a];
        space->operand[k].stride[a] = space->operand[k].stride[b];
        space->operand[k].stride[b] = stride;
    }
}

/* The axis before `end` along which an operand's elements lie closest, but not on one another;
 * `end` where there is none. */
static uint32_t closest_axis(const struct space *space, int operand, uint32_t end)
{
    const int64_t *stride = space->operand[operand].stride;
    uint32_t closest = end;
    for (uint32_t axis = 0; axis < end; axis++)
        if (stride[axis] > 0 && (closest == end || stride[axis] < stride[closest]))
            closest = axis;
    return closest;
}

/* Orders a simplified space's axes as cl/copy/tiles.cl wants them: out has stride 1 along the last
 * one, x, and in lies closest along the one before, y. Returns whether it is a copy for tiles: the
 * general kernel is as good where rows are long in both. */
static bool order_for_tiles(struct space *space)
{
    uint32_t x = space->rank - 1;
    if (space->rank < 2 || space->end < TILES_MIN)
        return false;
    uint32_t unit = closest_axis(space, COPY_OUT, space->rank);
    if (unit > x || space->operand[COPY_OUT].stride[unit] != 1)
        return false;
    swap_axes(space, unit, x);
    uint32_t y = closest_axis(space, COPY_IN, x);
    if (y < x)
        swap_axes(space, y, x - 1);
    const int64_t *in = space->operand[COPY_IN].stride;
    return space->shape[x] < LONG_RUN || (in[x] > 1 && in[x - 1] < in[x]);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Divides an axis into blocks of so many elements. */
static void divide_axis(struct space *space, uint32_t axis, int64_t block)
{
    space->shape[axis] = (space->shape[axis] + block - 1) / block;
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[axis] *= block;
}

/* Makes a job of copy_blocks of one whose arguments are the space, out and in. */
static void divide_into_blocks(struct job *job, const struct tensor *in)
{
    struct space *space = &job->space;
    uint32_t x = space->rank - 1, y = space->rank - 2;
    int64_t size = (int64_t)dtype_size(in->storage->dtype);
    int64_t all_height = space->shape[y], all_width = space->shape[x];
    int64_t height = smaller(all_height, STRIP_BYTES / size);
    int64_t width = smaller(all_width, BLOCK_BYTES / size / height / LINE_BYTES * LINE_BYTES);
    height = smaller(all_height, BLOCK_BYTES / size / width);
    job_add_long(job, in->storage->elements);
    job_add_long(job, height);
    job_add_long(job, width);
    job_add_long(job, all_height);
    job_add_long(job, all_width);
    job_add_long(job, space->operand[COPY_OUT].stride[y]);
    job_add_long(job, space->operand[COPY_IN].stride[y]);
    job_add_long(job, space->operand[COPY_IN].stride[x]);
    job_add_uint(job, passes_caches(job->launcher->device, job->space.end, in->storage->dtype));
    divide_axis(space, y, height);
    divide_axis(space, x, width);
    space->end = 1;
    for (uint32_t axis = 0; axis < space->rank; axis++)
        space->end *= (uint64_t)space->shape[axis];
}

static struct space space_of_copy(const struct step *step)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, COPY_OUT, &step->out->layout);
    space_set_operand(&space, COPY_IN, &step->in[0]->layout);
    space_simplify(&space);
    return space;
}

static const char *lacks_tiles(const struct step *step, const struct healcl_device *device)
{
    struct space space = space_of_copy(step);
    const char *lack = lacks_vectors(step, device);
    return lack                      ? lack
           : order_for_tiles(&space) ? NULL
                                     : "rows are long in both, or there are few elements";
}

static const char *lacks_copy_lines(const struct step *step, const struct healcl_device *device)
{
    struct space space = space_of_copy(step);
    return lacks_lines(&space, step, device, 2);
}

MUST_CHECK static enum healcl_status begin_copy(struct job *job, struct launcher *self,
                                                const struct step *step, struct healcl_error *error)
{
    job_init(job, self, step, "core", "copy");
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job->space = space_of_copy(step);
    job_add_space(job);
    TRY(job_add_output(job, step->out, error));
    return job_add_input(job, step->in[0], error);
}

MUST_CHECK static enum healcl_status launch_tiles(struct launcher *self, const struct step *step,
                                                  struct healcl_error *error)
{
    struct job job;
    TRY(begin_copy(&job, self, step, error));
    (void)order_for_tiles(&job.space);
    job.launch.program = "copy/tiles";
    job.launch.kernel = "copy_blocks";
    divide_into_blocks(&job, step->in[0]);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_copy_lines(struct launcher *self,
                                                       const struct step *step,
                                                       struct healcl_error *error)
{
    struct job job;
    TRY(begin_copy(&job, self, step, error));
    job_take_lines(&job);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_copy(struct launcher *self, const struct step *step,
                                                 struct healcl_error *error)
{
    struct job job;
    TRY(begin_copy(&job, self, step, error));
    return job_launch(&job, error);
}

static const struct variant copy_variants[] = {
    {"tiles", VARIANT_VECTORS, lacks_tiles, launch_tiles, PAST_CACHES, "cl/copy/tiles.cl",
     "in lies in another order than out, or rows are short"},
    {"lines", VARIANT_VECTORS, lacks_copy_lines, launch_copy_lines, PAST_CACHES, "cl/copy/lines.cl",
     "long rows, in order in both, of outputs too large for caches"},
    {"elements", VARIANT_GENERAL, NULL, launch_copy, OVER_ELEMENTS, "cl/copy/general.cl",
     "anything"},
};

const struct family family_copy = FAMILY_OF(copy, copy, copy_variants);
