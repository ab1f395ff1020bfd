/* Copies, fills and absolute values: cl/core/copies.cl, cl/copy/lines.cl,
 * cl/copy/tiles.cl, cl/copy/local.cl. */
#include "core/numbers.h"
#include "kernels/kernels.h"

static const char *plan_elements(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    (void)device;
    plan->space = step_space(step, step->in[0] != NULL);
    space_simplify(&plan->space);
    return NULL;
}

static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    job_begin(job, self, step, plan, step->in[0] != NULL);
    if (step->kind == STEP_FILL)
        job_add_long(job, step->value[0]);
}

/* ---------------------------------------------------------------- any layout */

static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan);
    job_allow_vectors(&job, step, step->kind == STEP_ABS ? VECTOR_MOST : COPY_VECTOR_MOST,
                      step->in[0] != NULL);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- lines */

enum { LINES_ROW_MIN = 512, LINES_GRANULE = 1 << 15 /* elements */ };

static const char *plan_lines(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    const struct space *space = &plan->space;
    (void)plan_elements(step, device, plan);
    uint32_t last = space->rank - 1;
    if (!passes_caches(device, space->end, step->out->storage->dtype))
        return "the output fits into caches";
    if (space->operand[0].stride[last] != 1 || (step->in[0] && space->operand[1].stride[last] != 1))
        return "elements are not contiguous";
    return space->shape[last] < LINES_ROW_MIN ? "rows are short" : NULL;
}

static enum healcl_status choose_lines(struct launcher *self, const struct variant_plan *plan,
                                       struct healcl_error *error)
{
    struct job job;
    begin(&job, self, plan);
    job.granule = LINES_GRANULE;
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- tiles */

enum {
    COPY_OUT,
    COPY_IN,
    BLOCK_BYTES = 16384,           /* of out, and as many of in: both fit a first cache */
    HEIGHT_BYTES = 4 * CACHE_LINE, /* of a block of in, at least, where it is that high */
    LONG_ROW = 64,                 /* elements: enough for the general kernel */
    TILES_MIN = 4096               /* elements: fewer are not worth another program */
};

static void swap_axes(struct space *space, uint32_t a, uint32_t b)
{
    const struct space old = *space;
    space_move_axis(space, a, &old, b);
    space_move_axis(space, b, &old, a);
}

/* The axis before `end` with the smallest stride of an operand, other than 0. `end` if none
 * exists. */
static uint32_t closest_axis(const struct space *space, int operand, uint32_t end)
{
    const int64_t *stride = space->operand[operand].stride;
    uint32_t closest = end;
    for (uint32_t axis = 0; axis < end; axis++)
        if (stride[axis] > 0 && (closest == end || stride[axis] < stride[closest]))
            closest = axis;
    return closest;
}

/* Orders a simplified space's axes as cl/copy/tiles.cl expects. The output has stride 1 along the
 * last axis, x. The input has its smallest stride along the axis before, y. Returns whether the
 * copy is worth tiles: the general kernel is as good if rows are long in both operands. */
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
    return space->shape[x] < LONG_ROW || (in[x] > 1 && in[x - 1] < in[x]);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *plan_tiles(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    (void)plan_elements(step, device, plan);
    return order_for_tiles(&plan->space) ? NULL : "both have long rows, or there are few elements";
}

static enum healcl_status choose_tiles(struct launcher *self, const struct variant_plan *plan,
                                       struct healcl_error *error)
{
    const struct storage *in = plan->step->in[0]->storage;
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    uint32_t x = space->rank - 1, y = space->rank - 2;
    int64_t size = (int64_t)dtype_size(in->dtype);
    int64_t all_height = space->shape[y], all_width = space->shape[x];
    int64_t height = smaller(all_height, HEIGHT_BYTES / size);
    int64_t width = smaller(all_width, BLOCK_BYTES / size / height / CACHE_LINE * CACHE_LINE);
    height = smaller(all_height, BLOCK_BYTES / size / width);
    JOB_ADD_LONGS(&job, in->elements, height, width, all_height, all_width,
                  space->operand[COPY_OUT].stride[y], space->operand[COPY_IN].stride[y],
                  space->operand[COPY_IN].stride[x]);
    job_add_uint(&job, passes_caches(self->device, space->end, in->dtype));
    space_divide_axis(space, y, height);
    space_divide_axis(space, x, width);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- transposed in local memory */

static const char *plan_transpose(const struct step *step, const struct healcl_device *device,
                                  struct variant_plan *plan)
{
    struct space *space = &plan->space;
    (void)plan_elements(step, device, plan);
    if (space->end > INT32_MAX || device->info.local_memory_bytes < COPY_TILE_BYTES * 3 / 2)
        return "there are too many elements, or too little local memory";
    if (!order_for_tiles(space))
        return "there are few elements, or out is not contiguous";
    const int64_t *in = &space->operand[COPY_IN].stride[space->rank - 2];
    return in[1] > 1 && in[0] > 0 && in[0] < in[1] ? NULL : "both have the same order of axes";
}

/* log2 of the least power of two that is at least size; at most `most`. */
static uint32_t log2_up_to(int64_t size, uint32_t most)
{
    uint32_t log2 = 0;
    while (log2 < most && size > (int64_t)1 << log2)
        log2++;
    return log2;
}

/* Tiles are square. In planes that are too small for this in one direction, they are longer in the
 * other. */
static enum healcl_status choose_transpose(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    uint32_t x = space->rank - 1, y = space->rank - 2;
    int64_t all_height = space->shape[y], all_width = space->shape[x];
    uint64_t elements = COPY_TILE_BYTES / dtype_size(step->out->storage->dtype);
    uint32_t log2_tile = log2_of(elements);
    uint32_t log2_width = log2_up_to(all_width, log2_tile / 2);
    uint32_t log2_height = log2_up_to(all_height, log2_tile - log2_width);
    log2_width = log2_up_to(all_width, log2_tile - log2_height);
    job_add_uint(&job, log2_height);
    job_add_uint(&job, log2_width);
    job_add_uint(&job, (uint32_t)all_height);
    job_add_uint(&job, (uint32_t)all_width);
    JOB_ADD_LONGS(&job, space->operand[COPY_OUT].stride[y], space->operand[COPY_IN].stride[y],
                  space->operand[COPY_IN].stride[x]);
    space_divide_axis(space, y, (int64_t)1 << log2_height);
    space_divide_axis(space, x, (int64_t)1 << log2_width);
    space->elements_per_item = 1;
    size_t local_size = self->device->tuning.local_size;
    job.rounds = 2 * (elements / local_size + 1);
    return job_launch_groups(&job, space->end, local_size, error);
}

/* ---------------------------------------------------------------- families */

static const struct variant fill_variants[] = {
    {"lines", STYLE_VECTORS, plan_lines, choose_lines, PAST_CACHES, "copy/lines", "fill",
     "cl/copy/lines.cl", "long rows, with an output too large for caches"},
    {"single", STYLE_SINGLE, plan_elements, choose_elements, 0, "core/copies", "fill",
     "cl/core/copies.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
     "fill", "cl/core/copies.cl", "anything"},
};

static const struct variant copy_variants[] = {
    {"tiles", STYLE_VECTORS, plan_tiles, choose_tiles, PAST_CACHES, "copy/tiles", "copy_blocks",
     "cl/copy/tiles.cl", "input and output have different orders of axes, or rows are short"},
    {"transpose", STYLE_LOCAL, plan_transpose, choose_transpose,
     1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes, "copy/local", "copy_transpose",
     "cl/copy/local.cl", "input and output have different orders of axes"},
    {"lines", STYLE_VECTORS, plan_lines, choose_lines, PAST_CACHES, "copy/lines", "copy",
     "cl/copy/lines.cl", "long contiguous rows, with an output too large for caches"},
    {"single", STYLE_SINGLE, plan_elements, choose_elements, 0, "core/copies", "copy",
     "cl/core/copies.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
     "copy", "cl/core/copies.cl", "anything"},
};

static const struct variant absolute_variants[] = {
    {"lines", STYLE_VECTORS, plan_lines, choose_lines, PAST_CACHES, "copy/lines", "absolute",
     "cl/copy/lines.cl", "long contiguous rows, with an output too large for caches"},
    {"single", STYLE_SINGLE, plan_elements, choose_elements, 0, "core/copies", "absolute",
     "cl/core/copies.cl", "up to 2^31 elements"},
    {"elements", STYLE_GENERAL, plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
     "absolute", "cl/core/copies.cl", "anything"},
};

const struct family family_fill = FAMILY_OF(fill, copy, fill_variants);
const struct family family_copy = FAMILY_OF(copy, copy, copy_variants);
const struct family family_absolute = FAMILY_OF(absolute, elementwise, absolute_variants);
