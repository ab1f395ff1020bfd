/* Copies, fills and absolute values: cl/core/copies.cl, cl/copy/lines.cl,
 * cl/copy/tiles.cl, cl/copy/local.cl. */
#include "core/numbers.h"
#include "kernels/kernels.h"

/* Operands of spaces. */
enum { COPY_OUT = OPERAND_OUT, COPY_IN = OPERAND_A };

/* In elements: the shortest rows that are worth copying by lines, and the least work of a
 * work-item.
 */
enum { LINES_ROW_MIN = 512, LINES_GRANULE = 1 << 15 };

/* Fills have no input. */
static int count_inputs(const struct step *step)
{
    return step->kind == STEP_FILL ? 0 : 1;
}

/* The output's elements as a simplified space. Its operands are out, and the input if there is one.
 */
static struct space space_of_elements(const struct step *step)
{
    struct space space = step_space(step, count_inputs(step));
    space_simplify(&space);
    return space;
}

/* Begins a job with the arguments of all kernels: space, out, then the input or a fill's value. */
static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    job_begin(job, self, plan, count_inputs(step));
    if (step->kind == STEP_FILL)
        job_add_long(job, step->value[0]);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_elements(struct variant_plan *plan)
{
    plan->space = space_of_elements(plan->step);
    return NULL;
}

/* Copies lines, or elements of any layout. The general kernel uses vectors if operands are
 * contiguous and aligned. Copies have wider ones than absolute values, whose code grows with them.
 */
static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    const uint32_t widest = step->kind == STEP_ABS ? VECTOR_MOST : COPY_VECTOR_MOST;
    struct job job;
    begin(&job, self, plan);
    if (plan->variant->style == STYLE_VECTORS)
        job.granule = LINES_GRANULE;
    else
        job_allow_vectors(&job, step, widest, count_inputs(step));
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- lines */

/* For outputs that are too large for caches anyway: the kernel writes whole cache lines past them,
 * so that lines are not read before they are written. */
static const char *plan_lines(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    plan->space = space_of_elements(step);
    const struct space *space = &plan->space;
    const uint32_t last = space->rank - 1;
    const bool out_is_contiguous = space->operand[COPY_OUT].stride[last] == 1;
    const bool in_is_contiguous =
        count_inputs(step) == 0 || space->operand[COPY_IN].stride[last] == 1;
    OBSTACLE_IF(!passes_caches(plan->device, space->end, step->out->storage->dtype),
                "the output fits into caches");
    OBSTACLE_IF(!out_is_contiguous || !in_is_contiguous, "elements are not contiguous");
    OBSTACLE_IF(space->shape[last] < LINES_ROW_MIN, "rows are short");
    return NULL;
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

/* Orders a simplified space's axes as cl/copy/tiles.cl expects: out has stride 1 along the last
 * axis, x, and the input has its smallest stride along the axis before, y. Tiles of x and y are
 * then contiguous in both directions. Returns whether the copy is worth them: the general kernel is
 * as good for few elements, and for rows that are long in both operands. */
static bool order_for_tiles(struct space *space)
{
    const uint32_t rank = space->rank, x = rank - 1, y = rank - 2;
    if (rank < 2 || space->end < TILES_MIN)
        return false;
    const uint32_t closest_in_out = closest_axis(space, COPY_OUT, rank);
    const bool out_has_rows =
        closest_in_out < rank && space->operand[COPY_OUT].stride[closest_in_out] == 1;
    if (!out_has_rows)
        return false;
    swap_axes(space, closest_in_out, x);
    const uint32_t closest_in_input = closest_axis(space, COPY_IN, x);
    if (closest_in_input < x)
        swap_axes(space, closest_in_input, y);
    const int64_t *in_stride = space->operand[COPY_IN].stride;
    const bool rows_are_short = space->shape[x] < LONG_ROW;
    const bool in_is_transposed = in_stride[x] > 1 && in_stride[y] < in_stride[x];
    return rows_are_short || in_is_transposed;
}

static const char *plan_tiles(struct variant_plan *plan)
{
    plan->space = space_of_elements(plan->step);
    OBSTACLE_IF(!order_for_tiles(&plan->space), "both have long rows, or there are few elements");
    return NULL;
}

/* Work-items copy blocks of the plane [y,x] of the space's last two axes. A block is as wide as its
 * least height allows, in whole cache lines, and then as high as its width allows. The kernel's
 * parameters after the operands: elements of the input's storage, the block's height and width,
 * those of the plane, the strides of out along y, of the input along y and x, and whether out
 * should bypass the caches. */
static enum healcl_status choose_tiles(struct launcher *self, const struct variant_plan *plan,
                                       struct healcl_error *error)
{
    const struct storage *in = plan->step->in[INPUT_A]->storage;
    const int64_t element_bytes = (int64_t)dtype_size(in->dtype);
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    const uint32_t x = space->rank - 1, y = space->rank - 2;
    const int64_t plane_height = space->shape[y], plane_width = space->shape[x];
    const int64_t block_elements = BLOCK_BYTES / element_bytes;
    const int64_t least_height = smaller(plane_height, HEIGHT_BYTES / element_bytes);
    const int64_t widest = block_elements / least_height / CACHE_LINE * CACHE_LINE;
    const int64_t width = smaller(plane_width, widest);
    const int64_t height = smaller(plane_height, block_elements / width);
    JOB_ADD_LONGS(&job, in->elements, height, width, plane_height, plane_width,
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
static const char *plan_transpose(struct variant_plan *plan)
{
    enum { PADDED_TILE_BYTES = COPY_TILE_BYTES * 3 / 2 }; /* against conflicts of memory banks */
    struct space *space = &plan->space;
    *space = space_of_elements(plan->step);
    OBSTACLE_IF(space->end > INT32_MAX, "there are too many elements");
    OBSTACLE_IF(plan->device->info.local_memory_bytes < PADDED_TILE_BYTES,
                "there is too little local memory");
    OBSTACLE_IF(!order_for_tiles(space), "there are few elements, or out is not contiguous");
    const int64_t in_x = space->operand[COPY_IN].stride[space->rank - 1];
    const int64_t in_y = space->operand[COPY_IN].stride[space->rank - 2];
    const bool orders_differ = in_x > 1 && in_y > 0 && in_y < in_x;
    OBSTACLE_IF(!orders_differ, "both have the same order of axes");
    return NULL;
}

/* log2 of the least power of two that is at least size; at most `most`. */
static uint32_t log2_up_to(int64_t size, uint32_t most)
{
    uint32_t log2 = 0;
    while (log2 < most && size > (int64_t)1 << log2)
        log2++;
    return log2;
}

/* Each work-group takes one tile of the plane [y,x] of the space's last two axes. Tiles are powers
 * of two, and square. In planes that are too small for this in one direction, they are longer in
 * the other. The kernel's parameters after the operands: log2 of the tile's height and width,
 * height and width of the plane, the strides of out along y, and of the input along y and x. */
static enum healcl_status choose_transpose(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const size_t local_size = self->device->tuning.local_size;
    const uint64_t tile_elements = COPY_TILE_BYTES / dtype_size(plan->step->out->storage->dtype);
    const uint32_t log2_tile = log2_of(tile_elements);
    struct job job;
    begin(&job, self, plan);
    struct space *space = &job.space;
    const uint32_t x = space->rank - 1, y = space->rank - 2;
    const int64_t plane_height = space->shape[y], plane_width = space->shape[x];
    const uint32_t log2_square_width = log2_up_to(plane_width, log2_tile / 2);
    const uint32_t log2_height = log2_up_to(plane_height, log2_tile - log2_square_width);
    const uint32_t log2_width = log2_up_to(plane_width, log2_tile - log2_height);
    job_add_uint(&job, log2_height);
    job_add_uint(&job, log2_width);
    job_add_uint(&job, (uint32_t)plane_height);
    job_add_uint(&job, (uint32_t)plane_width);
    JOB_ADD_LONGS(&job, space->operand[COPY_OUT].stride[y], space->operand[COPY_IN].stride[y],
                  space->operand[COPY_IN].stride[x]);
    space_divide_axis(space, y, (int64_t)1 << log2_height);
    space_divide_axis(space, x, (int64_t)1 << log2_width);
    space->elements_per_item = 1;
    job.rounds = 2 * (tile_elements / local_size + 1); /* the tile is read, then written */
    return job_launch_groups(&job, space->end, local_size, error);
}

/* ---------------------------------------------------------------- families */

static const struct variant fill_variants[] = {
    {"lines", STYLE_VECTORS, plan_lines, choose_elements, PAST_CACHES, "copy/lines", "fill",
     "cl/copy/lines.cl", "long rows, with an output too large for caches"},
    GENERAL_VARIANTS("elements", plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
                     "fill"),
};

static const struct variant copy_variants[] = {
    {"tiles", STYLE_VECTORS, plan_tiles, choose_tiles, PAST_CACHES, "copy/tiles", "copy_blocks",
     "cl/copy/tiles.cl", "input and output have different orders of axes, or rows are short"},
    {"transpose", STYLE_LOCAL, plan_transpose, choose_transpose,
     1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes, "copy/local", "copy_transpose",
     "cl/copy/local.cl", "input and output have different orders of axes"},
    {"lines", STYLE_VECTORS, plan_lines, choose_elements, PAST_CACHES, "copy/lines", "copy",
     "cl/copy/lines.cl", "long contiguous rows, with an output too large for caches"},
    GENERAL_VARIANTS("elements", plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
                     "copy"),
};

static const struct variant absolute_variants[] = {
    {"lines", STYLE_VECTORS, plan_lines, choose_elements, PAST_CACHES, "copy/lines", "absolute",
     "cl/copy/lines.cl", "long contiguous rows, with an output too large for caches"},
    GENERAL_VARIANTS("elements", plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/copies",
                     "absolute"),
};

const struct family family_fill = FAMILY_OF(fill, copy, fill_variants);
const struct family family_copy = FAMILY_OF(copy, copy, copy_variants);
const struct family family_absolute = FAMILY_OF(absolute, elementwise, absolute_variants);
