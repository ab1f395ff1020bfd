/* Copies, fills and absolute values: cl/core/copies.cl, cl/copy/lines.cl,
 * cl/copy/tiles.cl, cl/copy/local.cl. */
#include "core/numbers.h"
#include "kernels/kernels.h"

/* Operands of spaces. */
enum { COPY_OUT = OPERAND_OUT, COPY_IN = OPERAND_A };

/* The output's elements as a simplified space. Its operands are out, and the input if there is one.
 */
static struct space space_of_elements(const struct step *step)
{
    struct space space = step_space(step, step->in[INPUT_A] ? 1 : 0);
    space_simplify(&space);
    return space;
}

/* Begins a job with the arguments of all kernels: space, out, then the input or a fill's value. */
static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    job_begin(job, self, step, plan, step->in[INPUT_A] ? 1 : 0); /* fills have no input */
    if (step->kind == STEP_FILL)
        job_add_long(job, step->value[0]);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_elements(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    (void)device;
    plan->space = space_of_elements(step);
    return NULL;
}

/* The general kernel. It uses vectors if operands are contiguous and aligned. */
static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan);
    job_allow_vectors(&job, step, step->kind == STEP_ABS ? VECTOR_MOST : COPY_VECTOR_MOST,
                      step->in[INPUT_A] ? 1 : 0);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- lines */

/* In elements: the shortest rows that are worth it, and the least work of a work-item. */
enum { LINES_ROW_MIN = 512, LINES_GRANULE = 1 << 15 };

/* For outputs that are too large for caches anyway: the kernel writes whole cache lines past them,
 * so that lines are not read before they are written. */
static const char *plan_lines(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    const struct space *space = &plan->space;
    plan->space = space_of_elements(step);
    const uint32_t last = space->rank - 1;
    const bool in_is_contiguous = !step->in[INPUT_A] || space->operand[COPY_IN].stride[last] == 1;
    OBSTACLE_IF(!passes_caches(device, space->end, step->out->storage->dtype),
                "the output fits into caches");
    OBSTACLE_IF(space->operand[COPY_OUT].stride[last] != 1 || !in_is_contiguous,
                "elements are not contiguous");
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
 * last axis, x. The input has its smallest stride along the axis before, y. Tiles of x and y are
 * contiguous in both directions. Returns whether the copy is worth them: the general kernel is as
 * good if rows are long in both operands. */
static bool order_for_tiles(struct space *space)
{
    if (space->rank < 2 || space->end < TILES_MIN)
        return false;
    const uint32_t x = space->rank - 1, y = x - 1;
    const uint32_t out_closest = closest_axis(space, COPY_OUT, space->rank);
    if (out_closest > x || space->operand[COPY_OUT].stride[out_closest] != 1)
        return false;
    swap_axes(space, out_closest, x);
    const uint32_t in_closest = closest_axis(space, COPY_IN, x);
    if (in_closest < x)
        swap_axes(space, in_closest, y);
    const int64_t *in_stride = space->operand[COPY_IN].stride;
    return space->shape[x] < LONG_ROW || (in_stride[x] > 1 && in_stride[y] < in_stride[x]);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *plan_tiles(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    (void)device;
    plan->space = space_of_elements(step);
    return order_for_tiles(&plan->space) ? NULL : "both have long rows, or there are few elements";
}

/* A block of out is as wide as its height allows, in whole cache lines, and then as high as its
 * width allows. The kernel's parameters after the operands: readable, height, width, all_height,
 * all_width, out_y, in_y, in_x, past. readable: the elements of the input's storage. past: the
 * output should bypass the caches. */
static enum healcl_status choose_tiles(struct launcher *self, const struct variant_plan *plan,
                                       struct healcl_error *error)
{
    const struct storage *in = plan->step->in[INPUT_A]->storage;
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    const uint32_t x = space->rank - 1, y = space->rank - 2;
    const int64_t block_elements = BLOCK_BYTES / (int64_t)dtype_size(in->dtype);
    const int64_t height_min = HEIGHT_BYTES / (int64_t)dtype_size(in->dtype);
    const int64_t all_height = space->shape[y], all_width = space->shape[x];
    int64_t height = smaller(all_height, height_min);
    const int64_t width = smaller(all_width, block_elements / height / CACHE_LINE * CACHE_LINE);
    height = smaller(all_height, block_elements / width);
    JOB_ADD_LONGS(&job, in->elements, height, width, all_height, all_width,
                  space->operand[COPY_OUT].stride[y], space->operand[COPY_IN].stride[y],
                  space->operand[COPY_IN].stride[x]);
    job_add_uint(&job, passes_caches(self->device, space->end, in->dtype));
    space_divide_axis(space, y, height);
    space_divide_axis(space, x, width);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- transposed in local memory */

/* For GPUs: neighbouring work-items should access neighbouring elements of both operands. A
 * work-group reads a tile in the input's order, and writes it in the output's. */
static const char *plan_transpose(const struct step *step, const struct healcl_device *device,
                                  struct variant_plan *plan)
{
    enum { PADDED_TILE_BYTES = COPY_TILE_BYTES * 3 / 2 }; /* against conflicts of memory banks */
    struct space *space = &plan->space;
    *space = space_of_elements(step);
    OBSTACLE_IF(space->end > INT32_MAX || device->info.local_memory_bytes < PADDED_TILE_BYTES,
                "there are too many elements, or too little local memory");
    OBSTACLE_IF(!order_for_tiles(space), "there are few elements, or out is not contiguous");
    const int64_t in_x = space->operand[COPY_IN].stride[space->rank - 1];
    const int64_t in_y = space->operand[COPY_IN].stride[space->rank - 2];
    return in_x <= 1 || in_y <= 0 || in_y >= in_x ? "both have the same order of axes" : NULL;
}

/* log2 of the least power of two that is at least size; at most `most`. */
static uint32_t log2_up_to(int64_t size, uint32_t most)
{
    uint32_t log2 = 0;
    while (log2 < most && size > (int64_t)1 << log2)
        log2++;
    return log2;
}

/* Tiles are powers of two, and square. In planes that are too small for this in one direction, they
 * are longer in the other. The kernel's parameters after the operands: log2_height, log2_width,
 * all_height, all_width, out_y, in_y, in_x. Each work-group takes one tile. */
static enum healcl_status choose_transpose(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    const uint32_t x = space->rank - 1, y = space->rank - 2;
    const int64_t all_height = space->shape[y], all_width = space->shape[x];
    const uint64_t tile_elements = COPY_TILE_BYTES / dtype_size(step->out->storage->dtype);
    const uint32_t log2_tile = log2_of(tile_elements);
    uint32_t log2_width = log2_up_to(all_width, log2_tile / 2);
    const uint32_t log2_height = log2_up_to(all_height, log2_tile - log2_width);
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
    job.rounds = 2 * (tile_elements / local_size + 1); /* the tile is read, then written */
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
