/* Sums of products modulo q: cl/sum. Also base conversions, which are batches of such sums. */
#include "core/numbers.h"
#include "kernels/sum.h"

/* ---------------------------------------------------------------- spaces of sums */

/* An axis of out's elements, and the operands' strides along it. */
struct sum_axis {
    int64_t size, strides[SPACE_OPERANDS];
};

/* The axis of a and b that corresponds to one of out: they also have the axis of terms. */
static uint32_t input_axis(uint32_t out_axis)
{
    return out_axis == OUT_REPS ? IN_REPS : out_axis == OUT_K ? IN_K : IN_N;
}

/* An axis of out. The modulus changes along k only. */
static struct sum_axis axis_of_out(const struct product_sum *sum, uint32_t axis)
{
    const uint32_t in = input_axis(axis);
    return (struct sum_axis){.size = sum->out.shape[axis],
                             .strides = {[OPERAND_OUT] = sum->out.stride[axis],
                                         [OPERAND_A] = sum->a.stride[in],
                                         [OPERAND_B] = sum->b.stride[in],
                                         [OPERAND_Q] = axis == OUT_K ? 1 : 0}};
}

/* From one sum of a batch to the next one, which has the same moduli. */
static struct sum_axis batch_axis(const struct product_sum *sum)
{
    return (struct sum_axis){.size = sum->batch,
                             .strides = {[OPERAND_OUT] = sum->out_distance,
                                         [OPERAND_A] = sum->a_distance,
                                         [OPERAND_B] = sum->b_distance}};
}

static void insert_axis(struct space *space, uint32_t place, struct sum_axis axis)
{
    space_insert_axis(space, place, axis.size);
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[place] = axis.strides[k];
}

static void insert_batch(struct space *space, uint32_t place, const struct product_sum *sum)
{
    if (sum->batch > 1)
        insert_axis(space, place, batch_axis(sum));
}

/* Inserts an axis where out's strides then descend: neighbours write neighbouring elements. */
static void insert_ordered(struct space *space, struct sum_axis axis)
{
    uint32_t place = space->rank;
    while (place > 0 && space->operand[OPERAND_OUT].stride[place - 1] < axis.strides[OPERAND_OUT])
        place--;
    if (axis.size != 1)
        insert_axis(space, place, axis);
}

static void set_offsets(struct space *space, const struct product_sum *sum)
{
    space->operand[OPERAND_OUT].offset = sum->out.offset;
    space->operand[OPERAND_A].offset = sum->a.offset;
    space->operand[OPERAND_B].offset = sum->b.offset;
}

/* Sets a space to all sums: [batch,reps,k,n] in the order of memory. If rows are permuted, it lacks
 * n: kernels follow that axis themselves, through the permutation. */
static void set_sums(struct space *space, const struct product_sum *sum, bool permutes)
{
    *space = (struct space){.end = 1, .elements_per_item = 1};
    set_offsets(space, sum);
    insert_ordered(space, batch_axis(sum));
    insert_ordered(space, axis_of_out(sum, OUT_REPS));
    insert_ordered(space, axis_of_out(sum, OUT_K));
    if (!permutes)
        insert_ordered(space, axis_of_out(sum, OUT_N));
    if (space->rank == 0) /* one sum: a space has at least one axis */
        space_add_axis(space);
}

/* Sets a space to [blocks,batch,reps]. Each element is a block of n, whose elements the kernel
 * finds itself: operands do not move along the first axis. */
static void set_blocks(struct space *space, int64_t blocks, const struct product_sum *sum)
{
    space_init(space, &(struct layout){.rank = 1, .shape = {blocks}});
    set_offsets(space, sum);
    insert_axis(space, 1, axis_of_out(sum, OUT_REPS));
    insert_batch(space, 1, sum);
}

static int64_t ceiling(int64_t count, int64_t of_block)
{
    return (count + of_block - 1) / of_block;
}

/* Finds the sums of a step. If the last one of a batch has fewer terms, it gets its own launch. */
static void plan_sums(const struct step *step, struct variant_plan *plan)
{
    struct product_sum *sum = &plan->products.sum;
    *sum = step_product_sum(step);
    plan->launches = sum->last_terms < sum->a.shape[IN_TERMS] ? 2 : 1;
}

/* Begins a job that computes all sums of a step, or adds them to out. */
static enum healcl_status begin(struct job *job, struct launcher *self,
                                const struct variant_plan *plan, enum sum_permutation permutation,
                                struct healcl_error *error)
{
    struct sum_operands operands;
    TRY(sum_find_operands(self, plan->step, permutation, &operands, error));
    sum_begin(job, self, plan, &operands, step_adds(plan->step));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- vectors of eight along n */

/* For rows of a that are contiguous along n: a work-item adds up whole rows, eight columns at a
 * time. */
static const char *plan_product_columns(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    plan_sums(step, plan);
    RETURN_OBSTACLE(sum_vectors_obstacle(device, a->shape[IN_TERMS], out->shape[OUT_N]));
    OBSTACLE_IF(a->stride[IN_N] != 1, "rows are not contiguous");
    /* Modulus by modulus, a work-item would access the same lines of out, and the same a, again. */
    OBSTACLE_IF(out->shape[OUT_K] > 1 && out->stride[OUT_K] == 1 && a->stride[IN_K] == 0 &&
                    !step->in[PERMUTATION],
                "moduli share a, and are contiguous in out");
    return NULL;
}

/* The space is as modmul_axis_sum_vectors expects it: [k,blocks,batch,reps]. Behind these axes come
 * two more, n and the terms, which do not count as its elements. */
static enum healcl_status choose_product_columns(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b;
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    struct operand *operand = job.space.operand;
    struct sum_axis k = axis_of_out(sum, OUT_K), n = axis_of_out(sum, OUT_N);
    k.strides[OPERAND_Q] = 0; /* the kernel finds moduli by the index along k */
    set_blocks(&job.space, ceiling(n.size, (int64_t)LANES * SUM_COLUMNS), sum);
    insert_axis(&job.space, 0, k);
    const uint32_t axis_n = job.space.rank, axis_terms = axis_n + 1;
    job.space.shape[axis_n] = n.size;
    job.space.shape[axis_terms] = a->shape[IN_TERMS];
    for (int i = OPERAND_OUT; i <= OPERAND_B; i++)
        operand[i].stride[axis_n] = n.strides[i];
    operand[OPERAND_A].stride[axis_terms] = a->stride[IN_TERMS];
    operand[OPERAND_B].stride[axis_terms] = b->stride[IN_TERMS];
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* For base conversions, and other sums where b is the same along n and all moduli share a. The
 * kernel keeps a tile of a in cache, and computes the sums of all moduli from it. */
static const char *plan_product_weights(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    plan_sums(step, plan);
    RETURN_OBSTACLE(sum_vectors_obstacle(device, a->shape[IN_TERMS], out->shape[OUT_N]));
    OBSTACLE_IF(step->in[PERMUTATION], "there is a permutation");
    OBSTACLE_IF(sum->b.stride[IN_N] != 0, "weights change along n");
    OBSTACLE_IF(a->stride[IN_K] != 0 && out->shape[OUT_K] != 1, "moduli do not share a");
    return a->shape[IN_TERMS] > WEIGHTS_MAX ? "there are too many terms" : NULL;
}

/* The kernel's parameters after the operands: n, columns, count, k, a_term, b_term, a_n, out_n,
 * b_k, out_k. A tile has WEIGHTED_VECTORS vectors of a: all terms of `columns` columns. */
static enum healcl_status choose_product_weights(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t n = out->shape[OUT_N], terms = a->shape[IN_TERMS];
    const int64_t columns = WEIGHTED_VECTORS / (terms > 0 ? terms : 1);
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    set_blocks(&job.space, ceiling(n / LANES, columns), sum);
    JOB_ADD_LONGS(&job, n, columns, terms, out->shape[OUT_K], a->stride[IN_TERMS],
                  b->stride[IN_TERMS], a->stride[IN_N], out->stride[OUT_N], b->stride[IN_K],
                  out->stride[OUT_K]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* For HEAL's layout: the terms of k = 1, 2, 4 or 8 moduli are contiguous, as [s,k]. A vector of
 * eight then holds whole groups of k: see modmul_axis_sum_rows. */
static const char *plan_product_rows(const struct step *step, const struct healcl_device *device,
                                     struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b;
    plan_sums(step, plan);
    const int64_t k = sum->out.shape[OUT_K], terms = a->shape[IN_TERMS];
    RETURN_OBSTACLE(sum_vectors_obstacle(device, terms, sum->out.shape[OUT_N]));
    OBSTACLE_IF(k < 1 || LANES % k != 0 || terms * k < LANES || a->stride[IN_K] != 1 ||
                    b->stride[IN_K] != 1 || a->stride[IN_TERMS] != k || b->stride[IN_TERMS] != k,
                "terms do not form contiguous rows");
    return moduli_are_periodic(step, PRODUCT_Q) ? NULL : "moduli do not repeat";
}

/* The kernel's parameters after the operands: lanes, n, count, k, and strides: of a, b and out
 * along n, of out along k. */
static enum healcl_status choose_product_rows(struct launcher *self,
                                              const struct variant_plan *plan,
                                              struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t n = out->shape[OUT_N];
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, PRODUCT_Q);
    set_blocks(&job.space, ceiling(n, SUM_ROWS), sum);
    job_add_buffer(&job, moduli.lanes);
    JOB_ADD_LONGS(&job, n, a->shape[IN_TERMS], out->shape[OUT_K], a->stride[IN_N], b->stride[IN_N],
                  out->stride[OUT_N], out->stride[OUT_K]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* ---------------------------------------------------------------- for GPUs */

/* For few sums with many terms, or with terms adjacent in memory: the work-items of a work-group
 * divide the terms of each sum. */
static const char *plan_shared_products(const struct step *step, const struct healcl_device *device,
                                        struct variant_plan *plan)
{
    const struct product_sum *sum = &plan->products.sum;
    plan_sums(step, plan);
    const int64_t terms = sum->a.shape[IN_TERMS];
    RETURN_OBSTACLE(sum_local_obstacle(step, device, terms));
    OBSTACLE_IF(step->in[PERMUTATION] || terms <= FEW_TERMS,
                "there are few terms, or a permutation");
    set_sums(&plan->space, sum, false);
    const int64_t beside = sum_columns_beside(&plan->space, sum->a.stride[IN_TERMS]);
    plan->products.sharing = sum_share_terms(device, plan->space.end, terms, beside);
    return plan->products.sharing.parts == 1 ? "there are many columns" : NULL;
}

/* The parameters of axis_sum_local after the operands: count, a_stride, b_stride, segment, outputs.
 * A sum is one segment of all its terms. */
static enum healcl_status choose_shared_products(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct sharing *sharing = &plan->products.sharing;
    const int64_t terms = sum->a.shape[IN_TERMS];
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    set_sums(&job.space, sum, false);
    job.rounds = (uint64_t)(terms / sharing->parts + 1);
    JOB_ADD_LONGS(&job, terms, sum->a.stride[IN_TERMS], sum->b.stride[IN_TERMS], terms);
    job_add_uint(&job, (uint32_t)job.space.end);
    return sum_choose_shared(&job, sharing, error);
}

/* For sums of which a work-item computes one or several alone. Through a permutation, work-groups
 * read and write square tiles in local memory, because neighbours are far apart in a or in out. */
static const char *plan_items(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    plan_sums(step, plan);
    plan->launches = 1; /* the kernel handles a last sum of fewer terms */
    const int64_t n = plan->products.sum.out.shape[OUT_N];
    const bool is_power_of_two = (n & (n - 1)) == 0;
    const bool fills_tiles = n >= TILE && is_power_of_two && device->tuning.local_size >= TILE &&
                             device->info.local_memory_bytes >= TILES_BYTES;
    RETURN_OBSTACLE(sum_local_obstacle(step, device, plan->products.sum.a.shape[IN_TERMS]));
    return step->in[PERMUTATION] && !fills_tiles ? "permuted rows do not fill tiles" : NULL;
}

/* The number of sums that one work-item computes. They share the modulus and one factor of each
 * term, which is then read once. They are the same element of rows that divide *axis evenly, as far
 * apart as possible: so neighbouring work-items still have neighbouring elements. Enough work-items
 * must remain to keep the device busy. */
static int64_t find_rows(const struct space *space, bool permutes, uint64_t sums,
                         const struct healcl_device *device, uint32_t *axis)
{
    enum { ITEMS_MIN = ITEMS_OF_UNIT / 4, NEIGHBOURS = 64 };
    const int64_t *a_stride = space->operand[OPERAND_A].stride;
    const int64_t *b_stride = space->operand[OPERAND_B].stride;
    const int64_t *q_stride = space->operand[OPERAND_Q].stride;
    const uint64_t keep_busy = sums / ((uint64_t)ITEMS_MIN * device->info.compute_units);
    const int64_t rows_max = keep_busy < ROWS_MAX ? (int64_t)keep_busy : ROWS_MAX;
    int64_t most = 1;
    *axis = 0;
    for (uint32_t i = 0; i < space->rank; i++) {
        const bool is_last = i + 1 == space->rank && !permutes;
        const int64_t size = space->shape[i], length_min = is_last ? NEIGHBOURS : 1;
        const bool shares_one_factor = (a_stride[i] == 0) != (b_stride[i] == 0);
        int64_t rows = rows_max;
        while (rows > 1 && (size % rows != 0 || size / rows < length_min))
            rows--;
        if (rows > most && q_stride[i] == 0 && shares_one_factor) {
            *axis = i;
            most = rows;
        }
    }
    return most;
}

/* The axis of the batch: the kernel takes fewer terms at its last index. Kernels are compiled for
 * at least three axes, so that its number does not change with those added later. */
static uint32_t find_batch_axis(struct space *space, const struct product_sum *sum)
{
    uint32_t axis = 0;
    while (space->rank < 3)
        space_add_axis(space);
    while (space->operand[OPERAND_OUT].stride[axis] != sum->out_distance)
        axis++;
    return axis;
}

/* Divides one axis of the space into `count` rows, which each work-item computes together. */
static enum healcl_status choose_product_items(struct launcher *self,
                                               const struct variant_plan *plan,
                                               struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    uint32_t axis;
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_INVERTED, error));
    struct space *space = &job.space;
    const bool permutes = step->in[PERMUTATION] != NULL;
    set_sums(space, sum, permutes);
    const uint64_t sums = (uint64_t)layout_elements(&step->out->layout);
    const int64_t count = find_rows(space, permutes, sums, self->device, &axis);
    const int64_t row_length = space->shape[axis] / count;
    const struct product_rows rows = {
        .out_row = row_length * space->operand[OPERAND_OUT].stride[axis],
        .a_row = row_length * space->operand[OPERAND_A].stride[axis],
        .b_row = row_length * space->operand[OPERAND_B].stride[axis],
        .a_term = a->stride[IN_TERMS],
        .b_term = b->stride[IN_TERMS],
        .out_n = out->stride[OUT_N],
        .a_n = a->stride[IN_N],
        .b_n = b->stride[IN_N],
        .terms = (uint32_t)a->shape[IN_TERMS],
        .short_terms = (uint32_t)sum->last_terms,
        .log2_n = log2_of((uint64_t)out->shape[OUT_N]),
    };
    space->shape[axis] = row_length;
    space->end /= (uint64_t)count;
    if (rows.short_terms < rows.terms)
        job_define_number(&job, "SHORT_AXIS", find_batch_axis(space, sum));
    return sum_choose_items(&job, step, &rows, (uint32_t)count, error);
}

/* ---------------------------------------------------------------- groups of moduli */

/* The factor that is constant along an axis of out, b if both are. OPERAND_OUT: neither is. */
static int shared_factor(const struct product_sum *sum, uint32_t axis)
{
    const uint32_t in = input_axis(axis);
    return sum->b.stride[in] == 0 ? OPERAND_B : sum->a.stride[in] == 0 ? OPERAND_A : OPERAND_OUT;
}

static void exchange_factors(struct product_sum *sum)
{
    const struct product_sum old = *sum;
    sum->a = old.b;
    sum->b = old.a;
    sum->a_distance = old.b_distance;
    sum->b_distance = old.a_distance;
}

/* For interleaved elements, whose groups of 1, 2 or 4 moduli alone are contiguous. Vectors run
 * along n, or along reps if n is not a multiple of eight. The kernel packs the factor that is
 * constant along the inner axis into vectors once, and uses them for the whole axis. */
static const char *plan_product_groups(const struct step *step, const struct healcl_device *device,
                                       struct variant_plan *plan)
{
    struct products *found = &plan->products;
    struct product_sum *sum = &found->sum;
    plan_sums(step, plan);
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t k = out->shape[OUT_K];
    const bool k_is_contiguous =
        a->stride[IN_K] == 1 && b->stride[IN_K] == 1 && out->stride[OUT_K] == 1;
    found->vector_axis = out->shape[OUT_N] % LANES == 0 ? OUT_N : OUT_REPS;
    found->group_size = (k == 2 || k == 4) && k_is_contiguous ? k : 1;
    /* The inner axis is k, or the one of reps and n that vectors do not run along. An axis along
     * which a factor is constant is better, and then the longer one. */
    const uint32_t other_axis = found->vector_axis == OUT_N ? OUT_REPS : OUT_N;
    const bool k_is_better =
        k > out->shape[other_axis] || shared_factor(sum, other_axis) == OPERAND_OUT;
    const bool k_shares = found->group_size == 1 && shared_factor(sum, OUT_K) != OPERAND_OUT;
    found->inner_axis = k_shares && k_is_better ? OUT_K : other_axis;
    found->packs_a = shared_factor(sum, found->inner_axis) == OPERAND_A;
    if (found->packs_a)
        exchange_factors(sum); /* the kernel packs b */
    RETURN_OBSTACLE(
        sum_vectors_obstacle(device, a->shape[IN_TERMS], out->shape[found->vector_axis]));
    return step->in[PERMUTATION] ? "there is a permutation" : NULL;
}

/* The space is [blocks of the vector axis, batch, outer axis, inner axis]. The kernel's parameters
 * after the operands: n, count, k, a_stride, b_stride, a_group, b_group, out_group. Here n is the
 * number of groups along the vector axis, and k the size of a group. */
static enum healcl_status choose_product_groups(struct launcher *self,
                                                const struct variant_plan *plan,
                                                struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct products *found = &plan->products;
    const struct product_sum *sum = &found->sum;
    const int64_t group_size = found->group_size;
    const uint32_t inner_axis = found->inner_axis;
    const uint32_t other_axis = found->vector_axis == OUT_N ? OUT_REPS : OUT_N;
    const struct sum_axis groups = axis_of_out(sum, found->vector_axis);
    struct sum_axis k = axis_of_out(sum, OUT_K), other = axis_of_out(sum, other_axis);
    struct sum_operands operands;
    struct job job;
    TRY(sum_find_operands(self, step, PERMUTATION_AS_GIVEN, &operands, error));
    if (found->packs_a) {
        const int a = operands.a;
        operands.a = operands.b;
        operands.b = a;
    }
    sum_begin(&job, self, plan, &operands, step_adds(step));
    k.size /= group_size;
    const int64_t block = (int64_t)PRODUCT_COLUMNS * LANES / group_size; /* groups */
    space_init(&job.space, &(struct layout){.rank = 1, .shape = {ceiling(groups.size, block)}});
    set_offsets(&job.space, sum);
    insert_axis(&job.space, 1, inner_axis == OUT_K ? k : other);
    insert_axis(&job.space, 1, inner_axis == OUT_K ? other : k);
    insert_batch(&job.space, 1, sum);
    JOB_ADD_LONGS(&job, groups.size, sum->a.shape[IN_TERMS], group_size, sum->a.stride[IN_TERMS],
                  sum->b.stride[IN_TERMS], groups.strides[OPERAND_A], groups.strides[OPERAND_B],
                  groups.strides[OPERAND_OUT]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_products(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    (void)device;
    plan_sums(step, plan);
    return NULL;
}

/* Sums a part of the products at a time, because some devices limit the iterations of loops. Later
 * parts are added to out. The space is [batch,reps,k,n]. Only a follows index l of n there. The
 * kernel finds m = perm[l] for out and b, and so needs their strides along n. Its parameters after
 * the operands: count, and strides: of a and b along terms, of out and b along n. */
static enum healcl_status choose_modmul_axis_sum(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    struct layout out_view = *out, a_view = layout_drop_axis(a, IN_TERMS);
    struct layout b_view = layout_drop_axis(b, IN_TERMS);
    const struct layout q_view = {.rank = 3, .stride = {[OUT_K] = 1}};
    out_view.stride[OUT_N] = 0;
    b_view.stride[OUT_N] = 0;
    int64_t terms = a->shape[IN_TERMS], first = 0;
    struct sum_operands operands;
    TRY(sum_find_operands(self, step, PERMUTATION_AS_GIVEN, &operands, error));
    do { /* once even without terms */
        int64_t count = sum_terms_at_once(self, terms - first);
        struct job job;
        sum_begin(&job, self, plan, &operands, step_adds(step) || first > 0);
        job.rounds = (uint64_t)count;
        space_init(&job.space, out);
        space_set_operand(&job.space, OPERAND_OUT, &out_view);
        space_set_operand(&job.space, OPERAND_A, &a_view);
        space_set_operand(&job.space, OPERAND_B, &b_view);
        space_set_operand(&job.space, OPERAND_Q, &q_view);
        job.space.operand[OPERAND_A].offset += first * a->stride[IN_TERMS];
        job.space.operand[OPERAND_B].offset += first * b->stride[IN_TERMS];
        insert_batch(&job.space, 0, sum);
        JOB_ADD_LONGS(&job, count, a->stride[IN_TERMS], b->stride[IN_TERMS], out->stride[OUT_N],
                      b->stride[IN_N]);
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

/* The last sum of a batch may have fewer terms. If the kernel cannot handle this, the last sum gets
 * a launch alone. plan->launches is 1 if there is no such sum, or the kernel handles it. */
static enum healcl_status choose_sums(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    struct variant_plan part = *plan;
    struct product_sum *sum = &part.products.sum;
    if (sum->last_terms == sum->a.shape[IN_TERMS] || plan->launches == 1)
        return plan->variant->choose(self, plan, error);
    sum->batch--;
    TRY(plan->variant->choose(self, &part, error));
    sum->out.offset += sum->batch * sum->out_distance;
    sum->a.offset += sum->batch * sum->a_distance;
    sum->b.offset += sum->batch * sum->b_distance;
    sum->a.shape[IN_TERMS] = sum->b.shape[IN_TERMS] = sum->last_terms;
    sum->batch = 1;
    return plan->variant->choose(self, &part, error);
}

const struct family family_modmul_axis_sum = {"modmul_axis_sum", FAMILY_sum, product_variants,
                                              sizeof product_variants / sizeof *product_variants,
                                              choose_sums};
