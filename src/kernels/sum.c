/* What sums along an axis and sums of products share. */
#include "kernels/sum.h"

const char *sum_vectors_obstacle(const struct healcl_device *device, int64_t count, int64_t n)
{
    RETURN_OBSTACLE(double_vectors_obstacle(device));
    OBSTACLE_IF(count >= SUM_TERMS, "there are too many terms");
    OBSTACLE_IF(n % LANES != 0, "rows are not multiples of eight elements");
    return NULL;
}

/* Half of the limit: the kernels' other loops count too. */
int64_t sum_terms_at_once(const struct launcher *self, int64_t terms)
{
    const int64_t most = (int64_t)(self->device->info.loop_limit / 2);
    const bool is_unlimited = most == 0;
    return is_unlimited ? terms : smaller(terms, most);
}

uint64_t sum_items_wanted(const struct healcl_device *device)
{
    return (uint64_t)device->info.compute_units * ITEMS_OF_UNIT;
}

/* The number of work-items that share a column if they follow the order of terms in memory. A
 * column is the terms of one sum. The terms of `beside` columns are adjacent in memory. The
 * work-items of these columns read a run of adjacent elements. The run is one cache line if each
 * column starts at a line. Otherwise it has several lines, because partial lines are read too. */
static uint32_t parts_in_order(int64_t terms, int64_t beside)
{
    const bool columns_start_at_lines = terms % LINE * beside % LINE == 0;
    const int64_t run = columns_start_at_lines ? LINE : LINES;
    return (uint32_t)smaller(terms, blocks_for(run, beside));
}

/* Divides the terms of each column among `parts` work-items, and a work-group among columns.
 * beside: see sum_columns_beside; 0 if the terms of several columns are not adjacent. Then only few
 * columns need parts: as many as keep the device busy. */
struct sharing sum_share_terms(const struct healcl_device *device, uint64_t columns, int64_t terms,
                               int64_t beside)
{
    const uint32_t items = (uint32_t)device->tuning.local_size;
    const bool follows_memory = beside > 0 && beside < LINES;
    uint32_t parts = 1, inner_min = columns < LINE ? (uint32_t)columns : LINE;
    if (follows_memory) {
        inner_min = (uint32_t)beside;
        parts = parts_in_order(terms, beside);
    }
    const bool fits_group = inner_min <= items && parts <= items / inner_min;
    if (!fits_group)
        return (struct sharing){.inner = items, .parts = 1, .rows = 1};
    while (columns * parts < sum_items_wanted(device) && parts * 2 <= items / inner_min &&
           (int64_t)parts * 2 * TERMS_OF_ITEM <= terms)
        parts *= 2;
    const uint32_t inner = follows_memory ? inner_min : items / parts;
    uint32_t rows = items / (inner * parts);
    /* A work-group should write whole cache lines: this number of rows fills one. */
    const uint32_t rows_of_line = LINE % inner == 0 ? LINE / inner : LINE;
    if (rows > rows_of_line)
        rows -= rows % rows_of_line;
    return (struct sharing){.inner = inner, .parts = parts, .rows = rows};
}

/* Returns term_stride if as many columns lie side by side in a, directly before their next terms:
 * then all their terms are one contiguous run. Returns 0 otherwise. */
int64_t sum_columns_beside(const struct space *space, int64_t term_stride)
{
    int64_t contiguous = 1; /* columns that the last axes cover */
    for (uint32_t axis = space->rank; axis-- > 0 && contiguous < term_stride;) {
        if (space->operand[OPERAND_A].stride[axis] != contiguous)
            break;
        contiguous *= space->shape[axis];
    }
    return contiguous == term_stride ? contiguous : 0;
}

/* Why kernels for GPUs, which share sums among work-items, do not serve sums of `terms` terms; or
 * NULL. */
const char *sum_local_obstacle(const struct variant_plan *plan, int64_t terms)
{
    const struct healcl_device *device = plan->device;
    /* Each work-item exchanges a sum of three words. */
    const uint64_t local_bytes = 3 * sizeof(uint64_t) * device->tuning.local_size;
    const int64_t sums = layout_elements(&plan->step->out->layout);
    OBSTACLE_IF(sums == 0 || sums > INT32_MAX || terms > INT32_MAX,
                "there are no sums, or too many");
    OBSTACLE_IF(terms == 0 || (terms < LONG_SUM && terms < TERMS_MIN / sums),
                "there are few terms");
    OBSTACLE_IF(device->info.loop_limit > 0, "loops end early on this device");
    OBSTACLE_IF(local_bytes > device->info.local_memory_bytes, "there is too little local memory");
    return NULL;
}

/* Parameters of axis_sum_local after the operands. The number of columns follows, then inner, parts
 * and rows. */
struct local_parameters {
    int64_t terms, a_term, b_term, segment_terms;
};

/* Adds a launch of axis_sum_local for the columns of the job's space, or for the segments that they
 * are divided into. A work-group sums inner * rows of them, with `parts` work-items each. */
enum healcl_status sum_choose_shared(struct job *job, const struct axis_sum *sum, int64_t b_stride,
                                     struct healcl_error *error)
{
    const struct sharing *sharing = &sum->sharing;
    const uint64_t columns_of_group = (uint64_t)sharing->inner * sharing->rows;
    const uint64_t segments = job->space.end; /* of all columns */
    const uint64_t groups =
        columns_of_group > 0 ? (segments + columns_of_group - 1) / columns_of_group : 0;
    JOB_ADD_MEMBERS(job, struct local_parameters, .terms = sum->terms, .a_term = sum->term_stride,
                    .b_term = b_stride, .segment_terms = sum->segment_terms);
    job_add_uint(job, (uint32_t)(segments / (uint64_t)sum->segments));
    job_add_uint(job, sharing->inner);
    job_add_uint(job, sharing->parts);
    job_add_uint(job, sharing->rows);
    job->space.elements_per_item = 1;
    job->rounds = (uint64_t)(sum->segment_terms / sharing->parts + 1);
    return job_launch_groups(job, groups, job->launcher->device->tuning.local_size, error);
}

/* Kernels take all of these operands. One that the step does not have gets the moduli as a
 * stand-in, which is not read. */
enum healcl_status sum_find_operands(struct launcher *self, const struct step *step,
                                     enum permutation_use permutation,
                                     struct sum_operands *operands, struct healcl_error *error)
{
    const int q = derive_modulus_vector(self, step, step_traits[step->kind].moduli);
    *operands = (struct sum_operands){.out = template_slot_of(self, step->out),
                                      .a = template_slot_of(self, step->in[INPUT_A]),
                                      .b = q,
                                      .q = q,
                                      .permutation = q};
    if (step->in[PERMUTATION])
        TRY(derive_permutation(self, step, permutation, &operands->permutation, error));
    if (step->kind == STEP_BASE_CONVERSION) /* the weights of all digits, in one table */
        operands->b = derive_weights(self, step);
    else if (step->kind == STEP_MODMUL_AXIS_SUM)
        operands->b = template_slot_of(self, step->in[INPUT_B]);
    return HEALCL_OK;
}

/* Begins a job with the first arguments of kernels of sums: space, out, a, b, q, perm, flags.
 * adds: the sums are added to out. */
void sum_begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
               const struct sum_operands *operands, bool adds)
{
    job_begin_kernel(job, self, plan);
    if (plan->step->kind == STEP_AXIS_MODSUM)
        job_define(job, "SUMMED", ""); /* terms have one factor */
    job_add_output_operand(job, operands->out);
    job_add_input_operand(job, OPERAND_A, operands->a);
    job_add_input_operand(job, OPERAND_B, operands->b);
    job_add_buffer(job, operands->q);
    job_add_buffer(job, operands->permutation);
    const uint32_t permuted = plan->step->in[PERMUTATION] ? PRODUCTS_PERMUTED : 0;
    const uint32_t added = adds ? PRODUCTS_ADDED : 0;
    job_add_uint(job, permuted | added);
}

/* Adds a launch in which each work-item computes rows_of_item sums alone. They share a factor,
 * which has a distance of 0 between rows. If all moduli are known to be below 2^62, the kernel
 * needs fewer corrections. */
enum healcl_status sum_choose_items(struct job *job, const struct step *step,
                                    const struct product_rows *rows, uint32_t rows_of_item,
                                    struct healcl_error *error)
{
    struct launcher *self = job->launcher;
    const uint64_t largest_modulus =
        launcher_largest(self, step->in[step_traits[step->kind].moduli]->storage);
    const bool is_known = largest_modulus > 0;
    job->space.elements_per_item = 1;
    job_define_number(job, "BITS", is_known && largest_modulus >> 62 == 0 ? 62 : 63);
    job_define_number(job, "A_ROWS", rows->a_row == 0 ? 1 : rows_of_item);
    job_define_number(job, "B_ROWS", rows->b_row == 0 ? 1 : rows_of_item);
    job_add_value(job, rows, sizeof *rows);
    if (!step->in[PERMUTATION])
        return job_launch_items(job, self->device->tuning.local_size, error);
    /* A permutation is read in tiles of n. A work-item takes one element of a tile, or two if it
     * has few rows. */
    job->launch.kernel = "modmul_axis_sum_turned";
    job_define(job, "TURNED", "");
    const size_t elements_of_item = rows_of_item <= 4 ? 2 : 1;
    return job_launch_groups(job, (job->space.end << rows->log2_n) / TILE, TILE / elements_of_item,
                             error);
}
