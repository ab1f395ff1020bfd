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

/* Makes an axis of a sum axis `place` of a space. */
static void set_axis(struct space *space, uint32_t place, struct sum_axis axis)
{
    space->shape[place] = axis.size;
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[place] = axis.strides[k];
}

static void insert_axis(struct space *space, uint32_t place, struct sum_axis axis)
{
    space_insert_axis(space, place, axis.size);
    set_axis(space, place, axis);
}

/* A batch of one sum needs no axis. */
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
        space_insert_axis(space, 0, 1);
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

/* Finds the sums of a step. If the last one of a batch has fewer terms, it gets its own launch. */
static void plan_sums(struct variant_plan *plan)
{
    plan->products = (struct products){.sum = step_product_sum(plan->step)};
    const struct product_sum *sum = &plan->products.sum;
    plan->launches = sum->last_terms < sum->a.shape[IN_TERMS] ? 2 : 1;
}

/* Begins a job with the first arguments of kernels of sums: see sum_begin. They compute all sums of
 * a step, or add them to out if the step does. */
static enum healcl_status begin(struct job *job, struct launcher *self,
                                const struct variant_plan *plan, enum permutation_use permutation,
                                struct healcl_error *error)
{
    struct sum_operands operands;
    TRY(sum_find_operands(self, plan->step, permutation, &operands, error));
    if (plan->products.packs_a) { /* the plan's sum has a and b exchanged */
        const int a = operands.a;
        operands.a = operands.b;
        operands.b = a;
    }
    sum_begin(job, self, plan, &operands, step_adds(plan->step));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- vectors of eight along n */

/* For rows of a that are contiguous along n: a work-item adds up whole rows, eight columns at a
 * time. */
static const char *plan_product_columns(struct variant_plan *plan)
{
    plan_sums(plan);
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    RETURN_OBSTACLE(sum_vectors_obstacle(plan->device, a->shape[IN_TERMS], out->shape[OUT_N]));
    OBSTACLE_IF(a->stride[IN_N] != 1, "rows are not contiguous");
    /* Modulus by modulus, a work-item would access the same lines of out, and the same a, again. */
    const bool moduli_are_adjacent = out->shape[OUT_K] > 1 && out->stride[OUT_K] == 1;
    const bool moduli_share_a = a->stride[IN_K] == 0;
    OBSTACLE_IF(moduli_are_adjacent && moduli_share_a && !plan->step->in[PERMUTATION],
                "moduli share a, and are contiguous in out");
    return NULL;
}

/* The space has the axes [k,blocks,batch,reps], as modmul_axis_sum_vectors expects. Behind them are
 * two more, n and the terms. The kernel follows these itself: the elements of the space do not
 * count them. */
static enum healcl_status choose_product_columns(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct sum_axis n = axis_of_out(sum, OUT_N);
    const struct sum_axis terms = {
        .size = sum->a.shape[IN_TERMS],
        .strides = {[OPERAND_A] = sum->a.stride[IN_TERMS], [OPERAND_B] = sum->b.stride[IN_TERMS]}};
    struct sum_axis k = axis_of_out(sum, OUT_K);
    k.strides[OPERAND_Q] = 0; /* the kernel finds moduli by the index along k */
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    struct space *space = &job.space;
    set_blocks(space, blocks_for(n.size, (int64_t)LANES * SUM_COLUMNS), sum);
    insert_axis(space, 0, k);
    set_axis(space, space->rank, n);
    set_axis(space, space->rank + 1, terms);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* For base conversions, and other sums where b is the same along n and all moduli share a. The
 * kernel keeps a tile of a in cache, and computes the sums of all moduli from it. */
static const char *plan_product_weights(struct variant_plan *plan)
{
    plan_sums(plan);
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *out = &sum->out;
    const bool moduli_share_a = a->stride[IN_K] == 0 || out->shape[OUT_K] == 1;
    RETURN_OBSTACLE(sum_vectors_obstacle(plan->device, a->shape[IN_TERMS], out->shape[OUT_N]));
    OBSTACLE_IF(plan->step->in[PERMUTATION], "there is a permutation");
    OBSTACLE_IF(sum->b.stride[IN_N] != 0, "weights change along n");
    OBSTACLE_IF(!moduli_share_a, "moduli do not share a");
    OBSTACLE_IF(a->shape[IN_TERMS] > WEIGHTS_MAX, "there are too many terms");
    return NULL;
}

/* Parameters of modmul_axis_sum_weights after the operands: sizes, then strides along an axis. A
 * tile has `columns` columns. */
struct weights_parameters {
    int64_t n, columns, terms, k, a_term, b_term, a_n, out_n, b_k, out_k;
};

/* A tile has at most WEIGHTED_VECTORS vectors of a: all terms of its columns. */
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
    set_blocks(&job.space, blocks_for(n / LANES, columns), sum);
    JOB_ADD_MEMBERS(&job, struct weights_parameters, .n = n, .columns = columns, .terms = terms,
                    .k = out->shape[OUT_K], .a_term = a->stride[IN_TERMS],
                    .b_term = b->stride[IN_TERMS], .a_n = a->stride[IN_N],
                    .out_n = out->stride[OUT_N], .b_k = b->stride[IN_K],
                    .out_k = out->stride[OUT_K]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* For HEAL's layout of a and b: terms and the k moduli are the last axes, and contiguous. All terms
 * of a sum, for k = 1, 2, 4 or 8 moduli, are then one row. A vector of eight elements of it has
 * terms of 8 / k indices, for all moduli. */
static const char *plan_product_rows(struct variant_plan *plan)
{
    plan_sums(plan);
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b;
    const int64_t k = sum->out.shape[OUT_K], terms = a->shape[IN_TERMS];
    RETURN_OBSTACLE(sum_vectors_obstacle(plan->device, terms, sum->out.shape[OUT_N]));
    OBSTACLE_IF(k < 1 || LANES % k != 0, "k is not 1, 2, 4 or 8");
    OBSTACLE_IF(terms * k < LANES, "there are few terms");
    const bool a_has_rows = a->stride[IN_K] == 1 && a->stride[IN_TERMS] == k;
    const bool b_has_rows = b->stride[IN_K] == 1 && b->stride[IN_TERMS] == k;
    OBSTACLE_IF(!a_has_rows || !b_has_rows, "terms do not form contiguous rows");
    OBSTACLE_IF(!moduli_are_periodic(plan->step, PRODUCT_Q), "moduli do not repeat");
    return NULL;
}

/* Parameters of modmul_axis_sum_rows after the operands and the moduli as vectors: sizes, then
 * strides along an axis. */
struct rows_parameters {
    int64_t n, terms, k, a_n, b_n, out_n, out_k;
};

/* Adds the launch of modmul_axis_sum_rows. Each work-item takes a block of SUM_ROWS rows. */
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
    set_blocks(&job.space, blocks_for(n, SUM_ROWS), sum);
    job_add_buffer(&job, moduli.lanes);
    JOB_ADD_MEMBERS(&job, struct rows_parameters, .n = n, .terms = a->shape[IN_TERMS],
                    .k = out->shape[OUT_K], .a_n = a->stride[IN_N], .b_n = b->stride[IN_N],
                    .out_n = out->stride[OUT_N], .out_k = out->stride[OUT_K]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* ---------------------------------------------------------------- for GPUs */

/* For few sums with many terms, or with terms adjacent in memory: the work-items of a work-group
 * divide the terms of each sum. */
static const char *plan_shared_products(struct variant_plan *plan)
{
    plan_sums(plan);
    const struct product_sum *sum = &plan->products.sum;
    const int64_t terms = sum->a.shape[IN_TERMS];
    RETURN_OBSTACLE(sum_local_obstacle(plan, terms));
    OBSTACLE_IF(plan->step->in[PERMUTATION] || terms <= FEW_TERMS,
                "there are few terms, or a permutation");
    set_sums(&plan->space, sum, false /* without a permutation */);
    const int64_t beside = sum_columns_beside(&plan->space, sum->a.stride[IN_TERMS]);
    plan->products.sharing = sum_share_terms(plan->device, plan->space.end, terms, beside);
    OBSTACLE_IF(plan->products.sharing.parts == 1, "there are many columns");
    return NULL;
}

/* A sum is one segment of all its terms. */
static enum healcl_status choose_shared_products(struct launcher *self,
                                                 const struct variant_plan *plan,
                                                 struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct axis_sum shared = {.sharing = plan->products.sharing,
                                    .terms = sum->a.shape[IN_TERMS],
                                    .term_stride = sum->a.stride[IN_TERMS],
                                    .segment_terms = sum->a.shape[IN_TERMS],
                                    .segments = 1};
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    set_sums(&job.space, sum, false /* without a permutation */);
    return sum_choose_shared(&job, &shared, sum->b.stride[IN_TERMS], error);
}

/* For sums of which a work-item computes one or several alone. Through a permutation, work-groups
 * read and write square tiles in local memory, because neighbours are far apart in a or in out. */
static const char *plan_items(struct variant_plan *plan)
{
    plan_sums(plan);
    plan->launches = 1; /* the kernel handles a last sum of fewer terms */
    const struct healcl_device *device = plan->device;
    const int64_t n = plan->products.sum.out.shape[OUT_N];
    const bool rows_fill_tiles = n >= TILE && (n & (n - 1)) == 0; /* a power of two */
    const bool device_has_tiles =
        device->tuning.local_size >= TILE && device->info.local_memory_bytes >= TILES_BYTES;
    RETURN_OBSTACLE(sum_local_obstacle(plan, plan->products.sum.a.shape[IN_TERMS]));
    OBSTACLE_IF(plan->step->in[PERMUTATION] && !(rows_fill_tiles && device_has_tiles),
                "permuted rows do not fill tiles");
    return NULL;
}

/* The most rows, up to rows_max, into which `size` elements can be divided evenly, if each row must
 * have at least length_min elements. */
static int64_t count_even_rows(int64_t size, int64_t rows_max, int64_t length_min)
{
    int64_t rows = rows_max;
    while (rows > 1 && (size % rows != 0 || size / rows < length_min))
        rows--;
    return rows;
}

/* Finds the sums that one work-item computes. They share the modulus and one factor of each term,
 * which is then read once. An axis of the space, *axis, is divided into rows, and a work-item takes
 * the same element of each: so neighbouring work-items still have neighbouring elements. Returns
 * the number of rows. Enough work-items must remain to keep the device busy. */
static int64_t find_rows(const struct space *space, bool permutes, uint64_t sums,
                         const struct healcl_device *device, uint32_t *axis)
{
    enum { ITEMS_MIN = ITEMS_OF_UNIT / 4, NEIGHBOURS = 64 };
    const struct operand *a = &space->operand[OPERAND_A], *b = &space->operand[OPERAND_B];
    const struct operand *q = &space->operand[OPERAND_Q];
    const uint64_t keep_busy = sums / ((uint64_t)ITEMS_MIN * device->info.compute_units);
    const int64_t rows_max = keep_busy < ROWS_MAX ? (int64_t)keep_busy : ROWS_MAX;
    int64_t most = 1;
    *axis = 0;
    for (uint32_t i = 0; i < space->rank; i++) {
        const bool has_neighbours = i + 1 == space->rank && !permutes;
        const bool shares_modulus = q->stride[i] == 0;
        const bool shares_one_factor = (a->stride[i] == 0) != (b->stride[i] == 0);
        const int64_t rows =
            count_even_rows(space->shape[i], rows_max, has_neighbours ? NEIGHBOURS : 1);
        if (shares_modulus && shares_one_factor && rows > most) {
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
        space_insert_axis(space, 0, 1);
    while (space->operand[OPERAND_OUT].stride[axis] != sum->out_distance)
        axis++;
    return axis;
}

/* Adds the launch of modmul_axis_sum_items. One axis of the space is divided into rows. A work-item
 * computes the elements with one index in all rows, because they share a factor or the modulus. */
static enum healcl_status choose_product_items(struct launcher *self,
                                               const struct variant_plan *plan,
                                               struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const bool permutes = step->in[PERMUTATION] != NULL;
    const uint64_t sums = (uint64_t)layout_elements(&step->out->layout);
    uint32_t axis;
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_INVERTED, error));
    struct space *space = &job.space;
    set_sums(space, sum, permutes);
    const int64_t row_count = find_rows(space, permutes, sums, self->device, &axis);
    const int64_t row_length = space->shape[axis] / row_count;
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
    space->end /= (uint64_t)row_count;
    if (rows.short_terms < rows.terms)
        job_define_number(&job, "SHORT_AXIS", find_batch_axis(space, sum));
    return sum_choose_items(&job, step, &rows, (uint32_t)row_count, error);
}

/* ---------------------------------------------------------------- groups of moduli */

/* The factor that is constant along an axis of out: b if both are, OPERAND_OUT if neither is. */
static int constant_factor(const struct product_sum *sum, uint32_t axis)
{
    const uint32_t in = input_axis(axis);
    if (sum->b.stride[in] == 0)
        return OPERAND_B;
    return sum->a.stride[in] == 0 ? OPERAND_A : OPERAND_OUT;
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
static const char *plan_product_groups(struct variant_plan *plan)
{
    plan_sums(plan);
    struct products *found = &plan->products;
    struct product_sum *sum = &found->sum;
    const struct layout *a = &sum->a, *b = &sum->b, *out = &sum->out;
    const int64_t k = out->shape[OUT_K];
    const bool k_is_contiguous =
        a->stride[IN_K] == 1 && b->stride[IN_K] == 1 && out->stride[OUT_K] == 1;
    const bool vectors_along_n = out->shape[OUT_N] % LANES == 0;
    found->vector_axis = vectors_along_n ? OUT_N : OUT_REPS;
    found->other_axis = vectors_along_n ? OUT_REPS : OUT_N;
    found->group_size = (k == 2 || k == 4) && k_is_contiguous ? k : 1;
    /* The inner axis is k, or the other axis. One along which a factor is constant is better, and
     * of two such axes the longer one. Groups of several moduli take k themselves. */
    const bool k_has_constant = constant_factor(sum, OUT_K) != OPERAND_OUT;
    const bool other_has_constant = constant_factor(sum, found->other_axis) != OPERAND_OUT;
    const bool k_is_longer = k > out->shape[found->other_axis];
    found->k_is_inner =
        found->group_size == 1 && k_has_constant && (k_is_longer || !other_has_constant);
    const uint32_t inner_axis = found->k_is_inner ? OUT_K : found->other_axis;
    found->packs_a = constant_factor(sum, inner_axis) == OPERAND_A;
    if (found->packs_a)
        exchange_factors(sum); /* the kernel packs b */
    RETURN_OBSTACLE(
        sum_vectors_obstacle(plan->device, a->shape[IN_TERMS], out->shape[found->vector_axis]));
    OBSTACLE_IF(plan->step->in[PERMUTATION], "there is a permutation");
    return NULL;
}

/* Parameters of modmul_axis_sum_interleaved after the operands: groups along the vector axis, terms
 * of a sum, moduli of a group, then strides along terms and from group to group. */
struct groups_parameters {
    int64_t groups, terms, k, a_term, b_term, a_group, b_group, out_group;
};

/* The space is [blocks of the vector axis, batch, outer axis, inner axis]. Along the vector axis
 * and k, its elements are groups of group_size moduli. */
static enum healcl_status choose_product_groups(struct launcher *self,
                                                const struct variant_plan *plan,
                                                struct healcl_error *error)
{
    const struct products *found = &plan->products;
    const struct product_sum *sum = &found->sum;
    const int64_t group_size = found->group_size;
    const int64_t groups_of_block = (int64_t)PRODUCT_COLUMNS * LANES / group_size;
    const struct sum_axis vectors = axis_of_out(sum, found->vector_axis);
    const struct sum_axis other = axis_of_out(sum, found->other_axis);
    struct sum_axis k = axis_of_out(sum, OUT_K);
    k.size /= group_size;
    struct job job;
    TRY(begin(&job, self, plan, PERMUTATION_AS_GIVEN, error));
    const int64_t blocks = blocks_for(vectors.size, groups_of_block);
    space_init(&job.space, &(struct layout){.rank = 1, .shape = {blocks}});
    set_offsets(&job.space, sum);
    insert_axis(&job.space, 1, found->k_is_inner ? k : other);
    insert_axis(&job.space, 1, found->k_is_inner ? other : k);
    insert_batch(&job.space, 1, sum);
    JOB_ADD_MEMBERS(&job, struct groups_parameters, .groups = vectors.size,
                    .terms = sum->a.shape[IN_TERMS], .k = group_size,
                    .a_term = sum->a.stride[IN_TERMS], .b_term = sum->b.stride[IN_TERMS],
                    .a_group = vectors.strides[OPERAND_A], .b_group = vectors.strides[OPERAND_B],
                    .out_group = vectors.strides[OPERAND_OUT]);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_products(struct variant_plan *plan)
{
    plan_sums(plan);
    return NULL;
}

/* The space of the general kernel: [batch,reps,k,n], with a and b at term `first_term`. Only a
 * moves along n there, by index l: the kernel finds the index perm[l] of out and b itself. */
static void set_any_sums(struct space *space, const struct product_sum *sum, int64_t first_term)
{
    const struct layout q_view = {.rank = 3, .stride = {[OUT_K] = 1}};
    const struct layout a_view = layout_drop_axis(&sum->a, IN_TERMS);
    struct layout b_view = layout_drop_axis(&sum->b, IN_TERMS), out_view = sum->out;
    b_view.stride[OUT_N] = out_view.stride[OUT_N] = 0;
    space_init(space, &sum->out);
    space_set_operand(space, OPERAND_OUT, &out_view);
    space_set_operand(space, OPERAND_A, &a_view);
    space_set_operand(space, OPERAND_B, &b_view);
    space_set_operand(space, OPERAND_Q, &q_view);
    space->operand[OPERAND_A].offset += first_term * sum->a.stride[IN_TERMS];
    space->operand[OPERAND_B].offset += first_term * sum->b.stride[IN_TERMS];
    insert_batch(space, 0, sum);
}

/* Parameters of modmul_axis_sum after the operands: terms, then strides along an axis. */
struct products_parameters {
    int64_t terms, a_term, b_term, out_n, b_n;
};

/* Sums a part of the products at a time, because some devices limit the iterations of loops. Later
 * parts are added to out. */
static enum healcl_status choose_products(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct product_sum *sum = &plan->products.sum;
    const struct layout *a = &sum->a, *b = &sum->b;
    const int64_t terms = a->shape[IN_TERMS];
    int64_t first = 0;
    struct sum_operands operands;
    TRY(sum_find_operands(self, plan->step, PERMUTATION_AS_GIVEN, &operands, error));
    do { /* once even without terms: such sums are 0 */
        const int64_t count = sum_terms_at_once(self, terms - first);
        struct job job;
        sum_begin(&job, self, plan, &operands, step_adds(plan->step) || first > 0);
        job.rounds = (uint64_t)count;
        set_any_sums(&job.space, sum, first);
        JOB_ADD_MEMBERS(&job, struct products_parameters, .terms = count,
                        .a_term = a->stride[IN_TERMS], .b_term = b->stride[IN_TERMS],
                        .out_n = sum->out.stride[OUT_N], .b_n = b->stride[IN_N]);
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
    {"shared", STYLE_LOCAL, plan_shared_products, choose_shared_products, SHARED_SUM, "sum/local",
     "axis_sum_local", "cl/sum/local.cl",
     "at least 17 terms for few sums, or adjacent terms; at least 8192 in all, or 256 for a sum"},
    {"items", STYLE_LOCAL, plan_items, choose_product_items, SHARED_SUM, "sum/items",
     "modmul_axis_sum_items", "cl/sum/items.cl",
     "at least 8192 terms, or 256 for a sum; permuted rows of a power of two, from 256"},
    {"interleaved", STYLE_VECTORS, plan_product_groups, choose_product_groups, MULTIPLIED,
     "products", "modmul_axis_sum_interleaved", "cl/sum/product_groups.cl",
     "n or reps is a multiple of eight, and there is no permutation"},
    GENERAL_VARIANTS("elements", plan_products, choose_products, OVER_ANY_VIEW, "core/sums",
                     "modmul_axis_sum"),
};

/* The last sum of a batch may have fewer terms. If the kernel cannot handle this, plan->launches is
 * 2, and the last sum gets a launch alone. */
static enum healcl_status choose_sums(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    if (plan->launches == 1)
        return plan->variant->choose(self, plan, error);
    struct variant_plan part = *plan;
    struct product_sum *sum = &part.products.sum;
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
