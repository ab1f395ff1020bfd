/* Copies and fills: cl/memory.cl, cl/lines.cl, cl/tiles.cl. */
#include "run/launch.h"

enum { LINES_RUN_MIN = 512 /* elements */ };

void job_prefer_lines(struct job *job, enum kernel_family family, enum dtype dtype,
                      uint32_t operands)
{
    const struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    bool suits = prefers(job->executor, family, VARIANT_VECTORS) && !job_has_chunks(job) &&
                 passes_caches(job->executor, space->end, dtype) &&
                 space->shape[last] >= LINES_RUN_MIN;
    for (uint32_t i = 0; i < operands; i++)
        suits = suits && space->operand[i].stride[last] == 1;
    if (!suits)
        return;
    job->launch.program = "lines";
    job->granule = 1 << 15;
}

enum healcl_status launch_fill(struct device_executor *self, const struct step *step,
                               struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "fill");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_output(&job, step->out, error));
    job_add_long(&job, step->value[0]);
    job_prefer_lines(&job, FAMILY_copy, step->out->storage->dtype, 1);
    return job_launch(&job, error);
}

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

/* Orders a simplified space's axes as cl/tiles.cl wants them: out has stride 1 along the last one,
 * x, and in lies closest along the one before, y. Returns whether it is a copy for tiles: the
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
    job_add_uint(job, passes_caches(job->executor, job->space.end, in->storage->dtype));
    divide_axis(space, y, height);
    divide_axis(space, x, width);
    space->end = 1;
    for (uint32_t axis = 0; axis < space->rank; axis++)
        space->end *= (uint64_t)space->shape[axis];
}

enum healcl_status launch_copy(struct device_executor *self, const struct step *step,
                               const struct layout *out_layout, const struct buffer *out,
                               const struct tensor *in, struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "copy");
    job_define_type(&job, "ELEMENT", in->storage->dtype);
    job_set_space(&job, out_layout);
    job_set_operand(&job, COPY_OUT, out_layout);
    job_set_operand(&job, COPY_IN, &in->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    job_add_written_buffer(&job, out);
    TRY(job_add_input(&job, in, error));
    if (prefers(self, FAMILY_copy, VARIANT_VECTORS) && !job_has_chunks(&job) &&
        order_for_tiles(&job.space)) {
        job.launch.program = "tiles";
        job.launch.kernel = "copy_blocks";
        divide_into_blocks(&job, in);
    } else
        job_prefer_lines(&job, FAMILY_copy, in->storage->dtype, 2);
    return job_launch(&job, error);
}

enum healcl_status launch_pack(struct device_executor *self, const struct step *step,
                               const struct tensor *tensor, const struct buffer *out,
                               struct healcl_error *error)
{
    struct layout packed = layout_packed(&tensor->layout);
    return launch_copy(self, step, &packed, out, tensor, error);
}
