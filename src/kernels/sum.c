/* What sums along an axis and sums of products share. */
#include "kernels/sum.h"

const char *sum_vectors_obstacle(const struct healcl_device *device, int64_t count, int64_t n)
{
    const char *obstacle = double_vectors_obstacle(device);
    return obstacle             ? obstacle
           : count >= SUM_TERMS ? "there are too many terms"
           : n % LANES != 0     ? "rows are not multiples of eight elements"
                                : NULL;
}

int64_t sum_terms_at_once(const struct launcher *self, int64_t terms)
{
    const int64_t most = (int64_t)(self->device->info.loop_limit / 2);
    return most == 0 || terms < most ? terms : most;
}

uint64_t sum_items_wanted(const struct healcl_device *device)
{
    return (uint64_t)device->info.compute_units * ITEMS_OF_UNIT;
}

struct sharing sum_share_terms(const struct healcl_device *device, uint64_t columns, int64_t terms,
                               int64_t beside)
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
    while (columns * sharing.parts < sum_items_wanted(device) &&
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

int64_t sum_columns_beside(const struct space *space, int64_t stride)
{
    int64_t size = 1;
    for (uint32_t axis = space->rank; axis-- > 0 && size < stride;) {
        if (space->operand[1].stride[axis] != size)
            break;
        size *= space->shape[axis];
    }
    return size == stride ? size : 0;
}

const char *sum_local_obstacle(const struct step *step, const struct healcl_device *device,
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

enum healcl_status sum_choose_shared(struct job *job, const struct sharing *sharing,
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
static int sum_factors(const struct step *step)
{
    return step->kind == STEP_AXIS_MODSUM ? 1 : 2;
}

enum healcl_status sum_find_operands(struct launcher *self, const struct step *step, bool inverse,
                                     struct sum_operands *operands, struct healcl_error *error)
{
    const int q = derive_modulus_vector(self, step, sum_factors(step));
    *operands = (struct sum_operands){.out = template_slot_of(self, step->out),
                                      .a = template_slot_of(self, step->in[0]),
                                      .b = q, /* unused arguments need a stand-in */
                                      .q = q,
                                      .permutation = q};
    if (step->in[3])
        TRY((inverse ? derive_inverse_permutation
                     : derive_permutation)(self, step, &operands->permutation, error));
    if (step->kind == STEP_BASE_CONVERSION)
        operands->b = derive_weights(self, step);
    else if (sum_factors(step) == 2)
        operands->b = template_slot_of(self, step->in[1]);
    return HEALCL_OK;
}

void sum_begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
               const struct sum_operands *operands, bool adds)
{
    job_begin_kernel(job, self, plan->step, plan);
    if (sum_factors(plan->step) == 1)
        job_define(job, "SUMMED", "");
    job_add_operand(job, 0, operands->out, true);
    job_add_operand(job, 1, operands->a, false);
    job_add_operand(job, 2, operands->b, false);
    job_add_buffer(job, operands->q);
    job_add_buffer(job, operands->permutation);
    job_add_uint(job, (plan->step->in[3] ? PRODUCTS_PERMUTED : 0u) | (adds ? PRODUCTS_ADDED : 0u));
}

enum healcl_status sum_choose_items(struct job *job, const struct step *step,
                                    const struct product_rows *rows, uint32_t count,
                                    struct healcl_error *error)
{
    struct launcher *self = job->launcher;
    const uint64_t largest = launcher_largest(self, step->in[sum_factors(step)]->storage);
    const size_t local_size = self->device->tuning.local_size;
    job->space.elements_per_item = 1;
    job_define_number(job, "BITS", largest > 0 && largest >> 62 == 0 ? 62 : 63);
    job_define_number(job, "A_ROWS", rows->a_row == 0 ? 1 : count);
    job_define_number(job, "B_ROWS", rows->b_row == 0 ? 1 : count);
    job_add_value(job, rows, sizeof *rows);
    if (!step->in[3])
        return job_launch_groups(job, (job->space.end + local_size - 1) / local_size, local_size,
                                 error);
    job->launch.kernel = "modmul_axis_sum_turned";
    job_define(job, "TURNED", "");
    const size_t places = count <= 4 ? 2 : 1; /* of a work-item, in a tile */
    return job_launch_groups(job, (job->space.end << rows->log2_n) / TILE, TILE / places, error);
}
