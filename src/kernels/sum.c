/* Sums of products modulo q: cl/sum. */
#include "core/numbers.h"
#include "kernels/derived.h"
#include "kernels/kernels.h"

/* Tunables for dividing sums among work-items. */
enum { SHARED_SUM = 1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes };

/* Why cl/sum/columns.cl and product_columns.cl cannot compute sums of `count` terms in rows of n
 * elements; or NULL. */
static const char *sum_vectors_obstacle(const struct healcl_device *device, int64_t count,
                                        int64_t n)
{
    const char *obstacle = double_vectors_obstacle(device);
    return obstacle             ? obstacle
           : count >= SUM_TERMS ? "there are too many terms"
           : n % LANES != 0     ? "rows are not multiples of eight elements"
                                : NULL;
}

/* The number of terms that one launch adds up: some devices limit the iterations of loops. */
static int64_t terms_at_once(const struct launcher *self, int64_t terms)
{
    const int64_t most = (int64_t)(self->device->info.loop_limit / 2);
    return most == 0 || terms < most ? terms : most;
}

enum {
    ITEMS_OF_UNIT = 1024, /* work-items that keep a compute unit busy */
    TERMS_MIN = 8192,     /* of all sums, or of one: fewer are not worth another program */
    LONG_SUM = 256,
    FEW_TERMS = 16,    /* of a sum: one work-item takes them alone */
    TERMS_OF_ITEM = 4, /* at least, if the only aim is more work-items */
    LINE = CACHE_LINE / sizeof(int64_t),
    LINES = 4 * LINE /* elements: enough that a partial line costs little */
};

static uint64_t items_wanted(const struct healcl_device *device)
{
    return (uint64_t)device->info.compute_units * ITEMS_OF_UNIT;
}

/*
 * Divides the terms of each column among work-items. beside: the number of columns whose next terms
 * are adjacent in memory, or 0. If it is not 0, work-items follow the order of terms in memory.
 * They are as many as read whole cache lines, or a few lines if columns do not start at one.
 */
static struct sharing share_terms(const struct healcl_device *device, uint64_t columns,
                                  int64_t terms, int64_t beside)
{
    struct sharing sharing = {.inner = 1, .parts = 1};
    uint32_t items = (uint32_t)device->tuning.local_size, inner_min = LINE;
    if (columns < inner_min)
        inner_min = (uint32_t)columns;
    if (beside > 0 && beside < LINES) {
        uint32_t run = terms % LINE * beside % LINE == 0 ? LINE : LINES;
        inner_min = (uint32_t)beside;
        sharing.parts = (run + inner_min - 1) / inner_min;
        if (terms < sharing.parts)
            sharing.parts = (uint32_t)terms;
    } else
        beside = 0;
    if (inner_min > items || sharing.parts > items / inner_min)
        return (struct sharing){.inner = items, .parts = 1, .rows = 1};
    while (columns * sharing.parts < items_wanted(device) &&
           sharing.parts * 2 <= items / inner_min &&
           (int64_t)sharing.parts * 2 * TERMS_OF_ITEM <= terms)
        sharing.parts *= 2;
    sharing.inner = beside > 0 ? inner_min : items / sharing.parts;
    sharing.rows = items / (sharing.inner * sharing.parts);
    uint32_t line =
        LINE % sharing.inner == 0 ? LINE / sharing.inner : LINE; /* sums that fill a cache line */
    if (sharing.rows > line)
        sharing.rows -= sharing.rows % line;
    return sharing;
}

static const char *local_obstacle(const struct step *step, const struct healcl_device *device,
                                  int64_t terms)
{
    const uint64_t words = 3 * sizeof(uint64_t) * device->tuning.local_size;
    int64_t sums = layout_elements(&step->out->layout);
    return sums == 0 || sums > INT32_MAX || terms > INT32_MAX ? "there are no sums, or too many"
           : terms == 0 || (terms < LONG_SUM && terms < TERMS_MIN / sums) ? "there are few terms"
           : device->info.loop_limit > 0             ? "loops end early on this device"
           : words > device->info.local_memory_bytes ? "there is too little local memory"
                                                     : NULL;
}

/* Adds the remaining arguments, and launches over all elements of the job's space. */
static enum healcl_status launch_shared(struct job *job, const struct sharing *sharing,
                                        struct healcl_error *error)
{
    uint64_t columns = (uint64_t)sharing->inner * sharing->rows;
    uint64_t groups = columns > 0 ? (job->space.end + columns - 1) / columns : 0;
    job_add_uint(job, sharing->inner);
    job_add_uint(job, sharing->parts);
    job_add_uint(job, sharing->rows);
    job->space.elements_per_item = 1;
    return job_launch_groups(job, groups, job->launcher->device->tuning.local_size, error);
}

/* The number of factors in a term. The next input has the moduli. */
static int factors_of(const struct step *step)
{
    return step->kind == STEP_AXIS_MODSUM ? 1 : 2;
}

/* Begins a job with the first arguments of all kernels of modmul_axis_sum: the space, the tensors,
 * q, the permutation, and whether they add to out. The kernels of cl/sum/items.cl and local.cl for
 * axis_modsum take the same arguments. */
static enum healcl_status begin_product(struct job *job, struct launcher *self,
                                        const struct variant_plan *plan, bool adds,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const int factors = factors_of(step);
    int q, perm, weights;
    TRY(derive_modulus_vector(self, step, factors, &q, error));
    perm = q; /* an unused argument needs a stand-in buffer */
    if (step->in[3])
        TRY(derive_permutation(self, step, &perm, error));
    job_begin(job, self, step, plan, factors);
    if (step->kind == STEP_BASE_CONVERSION) { /* b is the last argument so far */
        TRY(derive_weights(self, step, &weights, error));
        job->slots[job->launch.argument_count - 1] = (uint8_t)weights;
    }
    if (factors == 1) {
        job_add_buffer(job, q);
        job_define(job, "SUMMED", "");
    }
    job_add_buffer(job, q);
    job_add_buffer(job, perm);
    job_add_uint(job, (step->in[3] ? PRODUCTS_PERMUTED : 0u) | (adds ? PRODUCTS_ADDED : 0u));
    return HEALCL_OK;
}

/* For cl/sum/items.cl: elements of a tile, and the most local memory of a work-group. */
enum { TILE = 256, ROWS_MAX = 9, TILES_BYTES = ROWS_MAX * 272 * 8 };

/* Launches a kernel of cl/sum/items.cl over the space of a job. Each work-item, or element of a
 * tile, has `count` rows. With a permutation, tiles cover n, and the space does not have that
 * axis. */
static enum healcl_status launch_items(struct job *job, const struct step *step,
                                       const struct product_rows *rows, uint32_t count,
                                       struct healcl_error *error)
{
    struct launcher *self = job->launcher;
    const uint64_t largest = launcher_largest(self, step->in[factors_of(step)]->storage);
    const size_t local_size = self->device->tuning.local_size;
    int inverse;
    job->space.elements_per_item = 1;
    job_define_number(job, "BITS", largest > 0 && largest >> 62 == 0 ? 62 : 63);
    job_define_number(job, "A_ROWS", rows->a_row == 0 ? 1 : count);
    job_define_number(job, "B_ROWS", rows->b_row == 0 ? 1 : count);
    job_add_value(job, rows, sizeof *rows);
    if (!step->in[3])
        return job_launch_groups(job, (job->space.end + local_size - 1) / local_size, local_size,
                                 error);
    const uint32_t perm = job->launch.argument_count - 3; /* flags and rows follow it */
    TRY(derive_inverse_permutation(self, step, &inverse, error));
    job->slots[perm] = (uint8_t)inverse;
    job->launch.kernel = "modmul_axis_sum_turned";
    job_define(job, "TURNED", "");
    const size_t places = count <= 4 ? 2 : 1; /* of a work-item, in a tile */
    return job_launch_groups(job, (job->space.end << rows->log2_n) / TILE, TILE / places, error);
}

/* ---------------------------------------------------------------- along an axis */

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

static enum healcl_status launch_columns(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    struct periodic_moduli moduli;
    job_begin(&job, self, step, plan, 1);
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
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

static enum healcl_status launch_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    struct periodic_moduli moduli;
    struct job job;
    job_begin(&job, self, step, plan, 1);
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
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

/* The argument `beside` of share_terms, for a's elements at out's positions. The space must be
 * simplified. */
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

/* Terms are divided into segments if columns are so few that several work-groups share one. */
static const char *plan_shared_sum(const struct step *step, const struct healcl_device *device,
                                   struct variant_plan *plan)
{
    struct space *space = &plan->space;
    struct axis_sum *sum = &plan->sum;
    const char *obstacle = local_obstacle(step, device, terms_of(step));
    if (obstacle || terms_of(step) <= FEW_TERMS)
        return obstacle ? obstacle : "there are few terms";
    *sum = (struct axis_sum){.terms = terms_of(step),
                             .stride = step->in[0]->layout.stride[step->value[0]],
                             .segments = 1};
    *space = space_with_moduli(step, 3);
    sum->sharing = share_terms(device, space->end, sum->terms, columns_beside(space, sum->stride));
    uint64_t items = space->end * sum->sharing.parts;
    int64_t most = sum->terms / ((int64_t)sum->sharing.parts * SEGMENT_TERMS);
    while (items * (uint64_t)sum->segments < items_wanted(device) && sum->segments * 2 <= most &&
           sum->segments < SEGMENTS_MAX && space->end * 2 * (uint64_t)sum->segments <= INT32_MAX)
        sum->segments *= 2;
    sum->segment = (sum->terms + sum->segments - 1) / sum->segments;
    plan->launches = sum->segments > 1 ? 2 : 1;
    return sum->sharing.parts > 1 || sum->segments > 1
               ? NULL
               : "there are many columns, and terms are not adjacent";
}

/* Adds up the segments of a sum. The slots out and a replace the step's, unless they are
 * SLOT_NONE. */
static enum healcl_status launch_segments(struct launcher *self, const struct variant_plan *plan,
                                          int out, int a, struct healcl_error *error)
{
    const struct axis_sum *sum = &plan->sum;
    struct job job;
    TRY(begin_product(&job, self, plan, false, error));
    if (out != SLOT_NONE)
        job.slots[1] = (uint8_t)out;
    if (a != SLOT_NONE)
        job.slots[2] = (uint8_t)a;
    job.rounds = (uint64_t)sum->segment / sum->sharing.parts + 1;
    JOB_ADD_LONGS(&job, sum->terms, sum->stride, 0, sum->segment);
    job_add_uint(&job, (uint32_t)(plan->space.end / (uint64_t)sum->segments));
    return launch_shared(&job, &sum->sharing, error);
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
static enum healcl_status launch_shared_sum(struct launcher *self, const struct variant_plan *plan,
                                            struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct variant_plan parts = *plan, whole = *plan;
    struct axis_sum *sum = &whole.sum;
    const int64_t segments = sum->segments;
    const uint64_t outputs = whole.space.end;
    if (segments == 1)
        return launch_segments(self, plan, SLOT_NONE, SLOT_NONE, error);
    space_add_axis(&parts.space);
    parts.space.shape[0] = segments;
    parts.space.end *= (uint64_t)segments;
    parts.space.operand[1].stride[0] = sum->segment * sum->stride;
    pack_operand(&parts.space, 0);
    pack_operand(&whole.space, 1);
    *sum = (struct axis_sum){
        .terms = segments, .stride = (int64_t)outputs, .segment = segments, .segments = 1};
    sum->sharing =
        share_terms(self->device, outputs, sum->terms, columns_beside(&whole.space, sum->stride));
    const int scratch =
        template_add_scratch(self, parts.space.end * dtype_size(step->out->storage->dtype));
    TRY(launch_segments(self, &parts, scratch, SLOT_NONE, error));
    return launch_segments(self, &whole, SLOT_NONE, scratch, error);
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
    return local_obstacle(step, device, terms_of(step));
}

static enum healcl_status launch_item_sums(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_rows rows = {.a_term = step->in[0]->layout.stride[step->value[0]],
                                      .terms = (uint32_t)terms_of(step)};
    struct job job;
    TRY(begin_product(&job, self, plan, false, error));
    return launch_items(&job, step, &rows, 1, error);
}

/* Sums a part of the terms at a time. Later parts are added to out. */
static enum healcl_status launch_axis_modsum(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    int64_t stride = step->in[0]->layout.stride[step->value[0]];
    int q;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    int64_t terms = terms_of(step), first = 0;
    do {
        int64_t count = terms_at_once(self, terms - first);
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
    {"vectors", STYLE_VECTORS, plan_columns, launch_columns, MULTIPLIED, "vectors",
     "axis_modsum_vectors", "cl/sum/columns.cl", "contiguous rows of a multiple of eight elements"},
    {"rows", STYLE_VECTORS, plan_rows, launch_rows, MULTIPLIED, "vectors", "axis_modsum_rows",
     "cl/sum/columns.cl", "contiguous terms, with a last axis of size 1, 2, 4 or 8"},
    {"single", STYLE_SINGLE, plan_terms, launch_axis_modsum, 0, "core/sums", "axis_modsum",
     "cl/core/sums.cl", "up to 2^31 elements"},
    {"shared", STYLE_LOCAL, plan_shared_sum, launch_shared_sum, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_item_sums, launch_item_sums, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl", "at least 8192 terms, or 256 for a sum"},
    {"elements", STYLE_GENERAL, plan_terms, launch_axis_modsum, OVER_ANY_VIEW, "core/sums",
     "axis_modsum", "cl/core/sums.cl", "anything"},
};

const struct family family_axis_modsum = FAMILY_OF(axis_modsum, sum, axis_modsum_variants);

/* ---------------------------------------------------------------- of products */

/* Inserts the axis of the batch before an axis of a space of out, a and b. Does nothing for a
 * single sum. */
static void add_batch(struct space *space, uint32_t axis, const struct product_sum *sum)
{
    if (sum->batch == 1)
        return;
    space_insert_axis(space, axis, sum->batch);
    space->operand[0].stride[axis] = sum->out_distance;
    space->operand[1].stride[axis] = sum->a_distance;
    space->operand[2].stride[axis] = sum->b_distance;
}

/* Finds the sums of a step. The last one may have fewer terms. */
static void plan_sums(const struct step *step, struct variant_plan *plan)
{
    struct product_sum *sum = &plan->products.sum;
    *sum = step_product_sum(step);
    plan->launches = sum->last_terms < sum->a.shape[1] ? 2 : 1;
}

static const char *plan_product_columns(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    plan_sums(step, plan);
    const char *obstacle = sum_vectors_obstacle(device, a->shape[1], out->shape[2]);
    if (obstacle)
        return obstacle;
    if (a->stride[3] != 1)
        return "rows are not contiguous";
    /* Modulus by modulus, a work-item would access the same lines of out, and the same a, again. */
    return out->shape[1] > 1 && out->stride[1] == 1 && a->stride[2] == 0 && !step->in[3]
               ? "moduli share a, and are contiguous in out"
               : NULL;
}

/* The space is as modmul_axis_sum_vectors expects it. */
static enum healcl_status launch_product_columns(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2];
    const int64_t block = (int64_t)LANES * SUM_COLUMNS;
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(step), error));
    struct layout blocks = {.rank = 3, .shape = {k, (n + block - 1) / block, reps}};
    struct operand *operand = job.space.operand;
    space_init(&job.space, &blocks);
    operand[0] =
        (struct operand){.offset = out->offset, .stride = {out->stride[1], 0, out->stride[0]}};
    operand[1] = (struct operand){.offset = a->offset, .stride = {a->stride[2], 0, a->stride[0]}};
    operand[2] = (struct operand){.offset = b->offset, .stride = {b->stride[2], 0, b->stride[0]}};
    add_batch(&job.space, 2, sum);
    const uint32_t axis_n = job.space.rank, axis_terms = axis_n + 1; /* after the space's */
    job.space.shape[axis_n] = n;
    job.space.shape[axis_terms] = a->shape[1];
    operand[0].stride[axis_n] = out->stride[2];
    operand[1].stride[axis_n] = a->stride[3];
    operand[2].stride[axis_n] = b->stride[3];
    operand[1].stride[axis_terms] = a->stride[1];
    operand[2].stride[axis_terms] = b->stride[1];
    return job_launch_of(&job, 1, error);
}

/* b is the same along n, and all moduli share a. */
static const char *plan_product_weights(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    plan_sums(step, plan);
    const char *obstacle = sum_vectors_obstacle(device, a->shape[1], out->shape[2]);
    return obstacle                                  ? obstacle
           : step->in[3]                             ? "there is a permutation"
           : sum->b.stride[3] != 0                   ? "weights change along n"
           : a->stride[2] != 0 && out->shape[1] != 1 ? "moduli do not share a"
           : a->shape[1] > WEIGHTS_MAX               ? "there are too many terms"
                                                     : NULL;
}

static enum healcl_status launch_product_weights(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t n = out->shape[2], terms = a->shape[1];
    const int64_t columns = WEIGHTED_VECTORS / (terms > 0 ? terms : 1);
    struct layout tiles = {.rank = 2,
                           .shape = {(n / LANES + columns - 1) / columns, out->shape[0]}};
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(plan->step), error));
    space_init(&job.space, &tiles);
    job.space.operand[0] = (struct operand){.offset = out->offset, .stride = {0, out->stride[0]}};
    job.space.operand[1] = (struct operand){.offset = a->offset, .stride = {0, a->stride[0]}};
    job.space.operand[2] = (struct operand){.offset = b->offset, .stride = {0, b->stride[0]}};
    add_batch(&job.space, 1, sum);
    JOB_ADD_LONGS(&job, n, columns, terms, out->shape[1], a->stride[1], b->stride[1], a->stride[3],
                  out->stride[2], b->stride[2], out->stride[1]);
    return job_launch_of(&job, 1, error);
}

/* For HEAL's layout: see modmul_axis_sum_rows. */
static const char *plan_product_rows(const struct step *step, const struct healcl_device *device,
                                     struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b;
    plan_sums(step, plan);
    int64_t k = sum->out.shape[1], count = a->shape[1], period;
    const char *obstacle = sum_vectors_obstacle(device, count, sum->out.shape[2]);
    if (obstacle)
        return obstacle;
    if (k < 1 || LANES % k != 0 || a->stride[2] != 1 || b->stride[2] != 1 || a->stride[1] != k ||
        b->stride[1] != k || count * k < LANES)
        return "terms do not form contiguous rows";
    return moduli_are_periodic(step, 2, &period) ? NULL : "moduli do not repeat";
}

static enum healcl_status launch_product_rows(struct launcher *self,
                                              const struct variant_plan *plan,
                                              struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    int64_t reps = out->shape[0], n = out->shape[2];
    struct layout blocks = {.rank = 2, .shape = {(n + SUM_ROWS - 1) / SUM_ROWS, reps}};
    struct periodic_moduli moduli;
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(step), error));
    TRY(derive_periodic_moduli(self, step, 2, &moduli, error));
    space_init(&job.space, &blocks);
    job.space.operand[0] = (struct operand){.offset = out->offset, .stride = {0, out->stride[0]}};
    job.space.operand[1] = (struct operand){.offset = a->offset, .stride = {0, a->stride[0]}};
    job.space.operand[2] = (struct operand){.offset = b->offset, .stride = {0, b->stride[0]}};
    add_batch(&job.space, 1, sum);
    job_add_buffer(&job, moduli.lanes);
    JOB_ADD_LONGS(&job, n, a->shape[1], out->shape[1], a->stride[3], b->stride[3], out->stride[2],
                  out->stride[1]);
    return job_launch_of(&job, 1, error);
}

static const char *plan_products(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    (void)device;
    plan_sums(step, plan);
    return NULL;
}

/* Adds an axis to a space of sums, ordered by out's stride. */
static void add_axis(struct space *space, int64_t size, int64_t out, int64_t a, int64_t b,
                     int64_t q)
{
    const int64_t strides[SPACE_OPERANDS] = {out, a, b, q};
    uint32_t axis = space->rank;
    if (size == 1)
        return;
    while (axis > 0 && space->operand[0].stride[axis - 1] < out)
        axis--;
    space_insert_axis(space, axis, size);
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[axis] = strides[k];
}

/* Sets a space to the sums [batch,reps,k,n], without n if rows are permuted. */
static void set_sums(struct space *space, const struct product_sum *sum, bool permutes)
{
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    *space = (struct space){.end = 1, .elements_per_item = 1};
    space->operand[0].offset = out->offset;
    space->operand[1].offset = a->offset;
    space->operand[2].offset = b->offset;
    add_axis(space, sum->batch, sum->out_distance, sum->a_distance, sum->b_distance, 0);
    add_axis(space, out->shape[0], out->stride[0], a->stride[0], b->stride[0], 0);
    add_axis(space, out->shape[1], out->stride[1], a->stride[2], b->stride[2], 1);
    if (!permutes)
        add_axis(space, out->shape[2], out->stride[2], a->stride[3], b->stride[3], 0);
    if (space->rank == 0)
        space_add_axis(space);
}

/* For few sums with many terms, or with terms adjacent in memory. */
static const char *plan_shared_products(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    (void)plan_products(step, device, plan);
    const int64_t terms = sum->a.shape[1];
    const char *obstacle = local_obstacle(step, device, terms);
    if (obstacle || step->in[3] || terms <= FEW_TERMS)
        return obstacle ? obstacle : "there are few terms, or a permutation";
    set_sums(&plan->space, sum, false);
    plan->products.sharing =
        share_terms(device, plan->space.end, terms, columns_beside(&plan->space, sum->a.stride[1]));
    return plan->products.sharing.parts > 1 ? NULL : "there are many columns";
}

static enum healcl_status launch_shared_products(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct sharing *sharing = &plan->products.sharing;
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(plan->step), error));
    set_sums(&job.space, sum, false);
    job.rounds = (uint64_t)(sum->a.shape[1] / sharing->parts + 1);
    JOB_ADD_LONGS(&job, sum->a.shape[1], sum->a.stride[1], sum->b.stride[1], sum->a.shape[1]);
    job_add_uint(&job, (uint32_t)job.space.end);
    return launch_shared(&job, sharing, error);
}

static const char *plan_items(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    (void)plan_products(step, device, plan);
    plan->launches = 1;
    const int64_t n = plan->products.sum.out.shape[2];
    const char *obstacle = local_obstacle(step, device, plan->products.sum.a.shape[1]);
    const bool fills_tiles = n >= TILE && (n & (n - 1)) == 0 && device->tuning.local_size >= TILE &&
                             device->info.local_memory_bytes >= TILES_BYTES;
    return obstacle                      ? obstacle
           : step->in[3] && !fills_tiles ? "permuted rows do not fill tiles"
                                         : NULL;
}

/* The number of sums that one work-item computes with the same factor and modulus. These rows
 * divide an axis and are as far apart as possible. Enough work-items remain, and neighbours still
 * follow the last axis. */
static int64_t find_rows(const struct space *space, bool permutes, uint64_t items,
                         const struct healcl_device *device, uint32_t *found)
{
    enum { ITEMS_MIN = ITEMS_OF_UNIT / 4, NEIGHBOURS = 64 };
    const struct operand *a = &space->operand[1], *b = &space->operand[2], *q = &space->operand[3];
    const uint64_t spare = items / ((uint64_t)ITEMS_MIN * device->info.compute_units);
    int64_t most = 1;
    *found = 0;
    for (uint32_t axis = 0; axis < space->rank; axis++) {
        const int64_t size = space->shape[axis];
        const int64_t side = permutes || axis + 1 < space->rank ? 1 : NEIGHBOURS;
        int64_t rows = spare < ROWS_MAX ? (int64_t)spare : ROWS_MAX;
        while (rows > 1 && (size % rows != 0 || size / rows < side))
            rows--;
        if (rows > most && q->stride[axis] == 0 &&
            (a->stride[axis] == 0) != (b->stride[axis] == 0)) {
            *found = axis;
            most = rows;
        }
    }
    return most;
}

static enum healcl_status launch_product_items(struct launcher *self,
                                               const struct variant_plan *plan,
                                               struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    uint32_t axis;
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(plan->step), error));
    struct space *space = &job.space;
    const bool permutes = plan->step->in[3] != NULL;
    set_sums(space, sum, permutes);
    const uint64_t sums = (uint64_t)layout_elements(&plan->step->out->layout);
    const int64_t count = find_rows(space, permutes, sums, self->device, &axis);
    const int64_t apart = space->shape[axis] / count;
    const struct product_rows rows = {
        .out_row = apart * space->operand[0].stride[axis],
        .a_row = apart * space->operand[1].stride[axis],
        .b_row = apart * space->operand[2].stride[axis],
        .a_term = a->stride[1],
        .b_term = b->stride[1],
        .out_n = out->stride[2],
        .a_n = a->stride[3],
        .b_n = b->stride[3],
        .terms = (uint32_t)a->shape[1],
        .short_terms = (uint32_t)sum->last_terms,
        .log2_n = log2_of((uint64_t)out->shape[2]),
    };
    space->shape[axis] = apart;
    space->end /= (uint64_t)count;
    if (rows.short_terms < rows.terms) {
        while (space->rank < 3) /* the least number of axes that kernels are compiled for */
            space_add_axis(space);
        for (axis = 0; space->operand[0].stride[axis] != sum->out_distance;)
            axis++;
        job_define_number(&job, "SHORT_AXIS", axis);
    }
    return launch_items(&job, plan->step, &rows, (uint32_t)count, error);
}

/* Whether an operand is constant along an axis: b, or else a. *by_a: it is a. */
static bool is_shared(const struct products *found, uint32_t axis, bool *by_a)
{
    *by_a = found->strides[2][axis] != 0 && found->strides[1][axis] == 0;
    return found->strides[2][axis] == 0 || *by_a;
}

static const char *plan_product_groups(const struct step *step, const struct healcl_device *device,
                                       struct variant_plan *plan)
{
    struct products *found = &plan->products;
    plan_sums(step, plan);
    const struct layout *a = &found->sum.a, *b = &found->sum.b, *out = &found->sum.out;
    const struct layout *const layouts[] = {out, a, b};
    const int64_t k = out->shape[1];
    const bool lie_together = a->stride[2] == 1 && b->stride[2] == 1 && out->stride[1] == 1;
    found->rows = out->shape[2] % LANES == 0 ? 2 : 0;
    found->k = (k == 2 || k == 4) && lie_together ? k : 1;
    for (int i = 0; i < 3; i++) /* the strides of a and b, except along the terms */
        for (int axis = 0; axis < 3; axis++)
            found->strides[i][axis] = layouts[i]->stride[axis + (i > 0 && axis > 0)];
    const uint32_t other = 2 - found->rows;
    bool swaps;
    found->inner = other;
    if (is_shared(found, 1, &swaps) && found->k == 1 &&
        (k > out->shape[other] || !is_shared(found, other, &swaps)))
        found->inner = 1;
    is_shared(found, found->inner, &found->swaps);
    const char *obstacle = sum_vectors_obstacle(device, a->shape[1], out->shape[found->rows]);
    return obstacle ? obstacle : step->in[3] ? "there is a permutation" : NULL;
}

static enum healcl_status launch_product_groups(struct launcher *self,
                                                const struct variant_plan *plan,
                                                struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct products found = plan->products;
    const struct layout *a = &found.sum.a, *b = &found.sum.b, *out = &found.sum.out;
    const uint32_t axes[2] = {found.inner == 1 ? 2 - found.rows : 1, found.inner};
    const int packed = found.swaps ? 1 : 2, streamed = 3 - packed; /* indices into found.strides */
    const int64_t n = out->shape[found.rows];
    const int64_t block = (int64_t)PRODUCT_COLUMNS * LANES / found.k;
    struct layout blocks = {.rank = 3, .shape = {(n + block - 1) / block}};
    struct job job;
    TRY(begin_product(&job, self, plan, step_adds(step), error));
    if (found.swaps) {
        const uint8_t first = job.slots[2];
        job.slots[2] = job.slots[3];
        job.slots[3] = first;
    }
    for (int i = 0; i < 2; i++)
        blocks.shape[1 + i] = axes[i] == 1 ? out->shape[1] / found.k : out->shape[axes[i]];
    space_init(&job.space, &blocks);
    job.space.operand[0].offset = out->offset;
    job.space.operand[1].offset = found.swaps ? b->offset : a->offset;
    job.space.operand[2].offset = found.swaps ? a->offset : b->offset;
    for (int i = 0; i < 2; i++) {
        job.space.operand[0].stride[1 + i] = found.strides[0][axes[i]];
        job.space.operand[1].stride[1 + i] = found.strides[streamed][axes[i]];
        job.space.operand[2].stride[1 + i] = found.strides[packed][axes[i]];
        job.space.operand[3].stride[1 + i] = axes[i] == 1;
    }
    struct product_sum swapped = found.sum;
    if (found.swaps) {
        swapped.a_distance = found.sum.b_distance;
        swapped.b_distance = found.sum.a_distance;
    }
    add_batch(&job.space, 1, &swapped);
    JOB_ADD_LONGS(&job, n, a->shape[1], found.k, found.swaps ? b->stride[1] : a->stride[1],
                  found.swaps ? a->stride[1] : b->stride[1], found.strides[streamed][found.rows],
                  found.strides[packed][found.rows], found.strides[0][found.rows]);
    return job_launch_of(&job, 1, error);
}

/* Sums a part of the products at a time. The space is [reps,k,n]. out and b have stride m along n,
 * a has stride l. */
static enum healcl_status launch_modmul_axis_sum(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    struct layout out_view = *out, a_view = layout_drop_axis(a, 1);
    struct layout b_view = layout_drop_axis(b, 1);
    const struct layout q_view = {.rank = 3, .stride = {0, 1, 0}};
    out_view.stride[2] = 0;
    b_view.stride[2] = 0;
    int64_t terms = a->shape[1], first = 0;
    do {
        int64_t count = terms_at_once(self, terms - first);
        struct job job;
        TRY(begin_product(&job, self, plan, step_adds(step) || first > 0, error));
        job.rounds = (uint64_t)count;
        space_init(&job.space, out);
        space_set_operand(&job.space, 0, &out_view);
        space_set_operand(&job.space, 1, &a_view);
        space_set_operand(&job.space, 2, &b_view);
        space_set_operand(&job.space, 3, &q_view);
        job.space.operand[1].offset += first * a->stride[1];
        job.space.operand[2].offset += first * b->stride[1];
        add_batch(&job.space, 0, sum);
        JOB_ADD_LONGS(&job, count, a->stride[1], b->stride[1], out->stride[2], b->stride[3]);
        TRY(job_launch(&job, error));
        first += count;
    } while (first < terms);
    return HEALCL_OK;
}

static const struct variant product_variants[] = {
    {"weights", STYLE_VECTORS, plan_product_weights, launch_product_weights, MULTIPLIED, "products",
     "modmul_axis_sum_weights", "cl/sum/product_weights.cl",
     "b is constant along n, and all moduli share a; n is a multiple of eight; up to 64 terms"},
    {"vectors", STYLE_VECTORS, plan_product_columns, launch_product_columns, MULTIPLIED, "products",
     "modmul_axis_sum_vectors", "cl/sum/product_columns.cl",
     "contiguous rows of a multiple of eight elements"},
    {"rows", STYLE_VECTORS, plan_product_rows, launch_product_rows, MULTIPLIED, "products",
     "modmul_axis_sum_rows", "cl/sum/product_rows.cl", "HEAL's layout, with 1, 2, 4 or 8 moduli"},
    {"single", STYLE_SINGLE, plan_products, launch_modmul_axis_sum, 0, "core/sums",
     "modmul_axis_sum", "cl/core/sums.cl", "up to 2^31 elements"},
    {"shared", STYLE_LOCAL, plan_shared_products, launch_shared_products, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_items, launch_product_items, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl",
     "at least 8192 terms, or 256 for a sum; permuted rows of a power of two, from 256"},
    {"interleaved", STYLE_VECTORS, plan_product_groups, launch_product_groups, MULTIPLIED,
     "products", "modmul_axis_sum_interleaved", "cl/sum/product_groups.cl",
     "n or reps is a multiple of eight, and there is no permutation"},
    {"elements", STYLE_GENERAL, plan_products, launch_modmul_axis_sum, OVER_ANY_VIEW, "core/sums",
     "modmul_axis_sum", "cl/core/sums.cl", "anything"},
};

/* The last sum of a batch may have fewer terms. If the kernel cannot handle this, it is launched
 * alone. */
static enum healcl_status launch_sums(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    struct variant_plan part = *plan;
    struct product_sum *sum = &part.products.sum;
    if (sum->last_terms == sum->a.shape[1] || plan->launches == 1)
        return plan->variant->launch(self, plan, error);
    sum->batch--;
    TRY(plan->variant->launch(self, &part, error));
    sum->out.offset += sum->batch * sum->out_distance;
    sum->a.offset += sum->batch * sum->a_distance;
    sum->b.offset += sum->batch * sum->b_distance;
    sum->a.shape[1] = sum->b.shape[1] = sum->last_terms;
    sum->batch = 1;
    return plan->variant->launch(self, &part, error);
}

const struct family family_modmul_axis_sum = {"modmul_axis_sum", FAMILY_sum, product_variants,
                                              sizeof product_variants / sizeof *product_variants,
                                              launch_sums};
