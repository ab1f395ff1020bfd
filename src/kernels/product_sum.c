/* Sums of products modulo q: cl/sum. */
#include "core/numbers.h"
#include "kernels/sum.h"

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
static enum healcl_status choose_product_columns(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2];
    const int64_t block = (int64_t)LANES * SUM_COLUMNS;
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, false, &operands, error));
    sum_begin(&job, self, plan, &operands, step_adds(step));
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

static enum healcl_status choose_product_weights(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t n = out->shape[2], terms = a->shape[1];
    const int64_t columns = WEIGHTED_VECTORS / (terms > 0 ? terms : 1);
    struct layout tiles = {.rank = 2,
                           .shape = {(n / LANES + columns - 1) / columns, out->shape[0]}};
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, plan->step, false, &operands, error));
    sum_begin(&job, self, plan, &operands, step_adds(plan->step));
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

static enum healcl_status choose_product_rows(struct launcher *self,
                                              const struct variant_plan *plan,
                                              struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    int64_t reps = out->shape[0], n = out->shape[2];
    struct layout blocks = {.rank = 2, .shape = {(n + SUM_ROWS - 1) / SUM_ROWS, reps}};
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, false, &operands, error));
    sum_begin(&job, self, plan, &operands, step_adds(step));
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, 2);
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
    const char *obstacle = sum_local_obstacle(step, device, terms);
    if (obstacle || step->in[3] || terms <= FEW_TERMS)
        return obstacle ? obstacle : "there are few terms, or a permutation";
    set_sums(&plan->space, sum, false);
    plan->products.sharing = sum_share_terms(device, plan->space.end, terms,
                                             sum_columns_beside(&plan->space, sum->a.stride[1]));
    return plan->products.sharing.parts > 1 ? NULL : "there are many columns";
}

static enum healcl_status choose_shared_products(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct sharing *sharing = &plan->products.sharing;
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, plan->step, false, &operands, error));
    sum_begin(&job, self, plan, &operands, step_adds(plan->step));
    set_sums(&job.space, sum, false);
    job.rounds = (uint64_t)(sum->a.shape[1] / sharing->parts + 1);
    JOB_ADD_LONGS(&job, sum->a.shape[1], sum->a.stride[1], sum->b.stride[1], sum->a.shape[1]);
    job_add_uint(&job, (uint32_t)job.space.end);
    return sum_choose_shared(&job, sharing, error);
}

static const char *plan_items(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    (void)plan_products(step, device, plan);
    plan->launches = 1;
    const int64_t n = plan->products.sum.out.shape[2];
    const char *obstacle = sum_local_obstacle(step, device, plan->products.sum.a.shape[1]);
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

static enum healcl_status choose_product_items(struct launcher *self,
                                               const struct variant_plan *plan,
                                               struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    uint32_t axis;
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, plan->step, true, &operands, error));
    sum_begin(&job, self, plan, &operands, step_adds(plan->step));
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
    return sum_choose_items(&job, plan->step, &rows, (uint32_t)count, error);
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

static enum healcl_status choose_product_groups(struct launcher *self,
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
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, false, &operands, error));
    if (found.swaps) {
        const int first = operands.a;
        operands.a = operands.b;
        operands.b = first;
    }
    sum_begin(&job, self, plan, &operands, step_adds(step));
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
static enum healcl_status choose_modmul_axis_sum(struct launcher *self,
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
    struct sum_operands operands;
    TRY(sum_find_operands(self, step, false, &operands, error));
    do {
        int64_t count = sum_terms_at_once(self, terms - first);
        struct job job;
        sum_begin(&job, self, plan, &operands, step_adds(step) || first > 0);
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
    {"weights", STYLE_VECTORS, plan_product_weights, choose_product_weights, MULTIPLIED, "products",
     "modmul_axis_sum_weights", "cl/sum/product_weights.cl",
     "b is constant along n, and all moduli share a; n is a multiple of eight; up to 64 terms"},
    {"vectors", STYLE_VECTORS, plan_product_columns, choose_product_columns, MULTIPLIED, "products",
     "modmul_axis_sum_vectors", "cl/sum/product_columns.cl",
     "contiguous rows of a multiple of eight elements"},
    {"rows", STYLE_VECTORS, plan_product_rows, choose_product_rows, MULTIPLIED, "products",
     "modmul_axis_sum_rows", "cl/sum/product_rows.cl", "HEAL's layout, with 1, 2, 4 or 8 moduli"},
    {"single", STYLE_SINGLE, plan_products, choose_modmul_axis_sum, 0, "core/sums",
     "modmul_axis_sum", "cl/core/sums.cl", "up to 2^31 elements"},
    {"shared", STYLE_LOCAL, plan_shared_products, choose_shared_products, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_items, choose_product_items, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl",
     "at least 8192 terms, or 256 for a sum; permuted rows of a power of two, from 256"},
    {"interleaved", STYLE_VECTORS, plan_product_groups, choose_product_groups, MULTIPLIED,
     "products", "modmul_axis_sum_interleaved", "cl/sum/product_groups.cl",
     "n or reps is a multiple of eight, and there is no permutation"},
    {"elements", STYLE_GENERAL, plan_products, choose_modmul_axis_sum, OVER_ANY_VIEW, "core/sums",
     "modmul_axis_sum", "cl/core/sums.cl", "anything"},
};

/* The last sum of a batch may have fewer terms. If the kernel cannot handle this, it is launched
 * alone. */
static enum healcl_status choose_sums(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    struct variant_plan part = *plan;
    struct product_sum *sum = &part.products.sum;
    if (sum->last_terms == sum->a.shape[1] || plan->launches == 1)
        return plan->variant->choose(self, plan, error);
    sum->batch--;
    TRY(plan->variant->choose(self, &part, error));
    sum->out.offset += sum->batch * sum->out_distance;
    sum->a.offset += sum->batch * sum->a_distance;
    sum->b.offset += sum->batch * sum->b_distance;
    sum->a.shape[1] = sum->b.shape[1] = sum->last_terms;
    sum->batch = 1;
    return plan->variant->choose(self, &part, error);
}

const struct family family_modmul_axis_sum = {"modmul_axis_sum", FAMILY_sum, product_variants,
                                              sizeof product_variants / sizeof *product_variants,
                                              choose_sums};
