/* Number-theoretic transforms: cl/ntt. */
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "kernels/transform.h"

/* ---------------------------------------------------------------- any length, any layout */

/* Adds the general launch, which serves any n, for the rows [first, first + count). A work-group
 * transforms each row in scratch memory, stage by stage. If the tuning has work-groups of one
 * work-item, a work-item transforms one or several rows. scratch: the slot of the memory. */
static enum healcl_status choose_stages_of_rows(struct launcher *self,
                                                const struct transform *transform, int scratch,
                                                int64_t first, int64_t count,
                                                struct healcl_error *error)
{
    const struct step *step = transform->step;
    const uint64_t n = (uint64_t)transform->n, stages = log2_of(n);
    const uint32_t local_size = self->device->tuning.transform_local_size;
    struct job job;
    transform_begin(&job, self, transform, "ntt_stages", "intt_stages");
    job.single = false; /* this general kernel always has several work-items */
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job.space.first = (uint64_t)first * n;
    job.space.end = (uint64_t)(first + count) * n;
    job_add_written(&job, scratch);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->in[INPUT_A]->storage->dtype));
    transform_add_tables(&job, transform);
    job.granule = n;
    if (local_size > 1) { /* one work-group for each row */
        const uint64_t rounds_of_stage = n / local_size + 2;
        job.space.elements_per_item = n;
        job.rounds = rounds_of_stage * (stages + 2); /* the row is also read and written */
        return job_launch_groups(&job, (uint64_t)count, local_size, error);
    }
    /* Eight short rows of a modulus are processed at once, if every compute unit has that many. */
    const int64_t eight_of_each_modulus = LANES * step->out->layout.shape[AXIS_K];
    const int64_t rows_of_unit = count / self->device->info.compute_units;
    if (n < NTT_ROW_MIN && rows_of_unit >= eight_of_each_modulus)
        job.granule *= (uint64_t)eight_of_each_modulus;
    job.rounds = stages;
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

static const char *plan_stages(struct variant_plan *plan)
{
    const int64_t n = plan->step->out->layout.shape[AXIS_N];
    plan->launches = transform_count_parts(plan->device, transform_rows(plan->step), n);
    return NULL;
}

/* The general variant: any length, any layout. */
static enum healcl_status choose_stages(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const int64_t rows = transform_rows(plan->step);
    struct transform transform;
    int64_t at_once;
    if (rows > UINT32_MAX)
        REFUSE_FOR(error, LIMIT, "%lld rows are more than 2^32-1", (long long)rows);
    TRY(transform_init(self, plan, &transform, error));
    const int scratch = transform_add_scratch(self, rows, transform.n, &at_once);
    for (int64_t first = 0; first < rows; first += at_once) {
        const int64_t count = smaller(rows - first, at_once);
        TRY(choose_stages_of_rows(self, &transform, scratch, first, count, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- whole rows, or batches of
 * interleaved rows, in one work-item each: cl/ntt/rows.cl */

/* The most scratch memory of a compute unit's work-items, unless it has only one. Then the memory
 * stays in the caches, whichever work-item runs. */
enum { SCRATCH_BYTES = 2 << 20 };

/* The largest row, in bytes, that fits into caches beside another one. */
enum { TWO_ROWS_MAX = 128 << 10 };

/* The words between the starts of consecutive rows in scratch memory. */
static int64_t pitch_of(int64_t n)
{
    return n + NTT_ROW_PADDING;
}

/* For CPUs: a work-item transforms whole rows on vectors. Rows have at least one tile of 256
 * elements. */
static const char *plan_rows(struct variant_plan *plan)
{
    const int64_t n = plan->step->out->layout.shape[AXIS_N];
    const int64_t batch_bytes = NTT_BATCH_ROWS * pitch_of(n) * (int64_t)sizeof(uint64_t);
    OBSTACLE_IF(n < NTT_ROW_MIN, "rows are shorter than 256");
    OBSTACLE_IF(transform_rows(plan->step) > UINT32_MAX, "there are too many rows");
    OBSTACLE_IF(batch_bytes > (int64_t)plan->device->info.max_allocation_bytes,
                "eight rows do not fit into one allocation");
    return NULL;
}

/* Whether the rows of one l are interleaved element by element: [l,r,k,n] in memory as
 * [l,n,r,k]. */
static bool is_interleaved(const struct layout *layout)
{
    const int64_t r = layout->shape[AXIS_R], k = layout->shape[AXIS_K];
    const bool k_is_last = k == 1 || layout->stride[AXIS_K] == 1;
    const bool r_is_before_k = r == 1 || layout->stride[AXIS_R] == k;
    return r * k > 1 && k_is_last && r_is_before_k;
}

/* The batches of the first compute unit, if each unit has `work_items` work-items, which take
 * batches in turns. */
static int64_t first_share(int64_t batches, int64_t units, int64_t work_items)
{
    const int64_t whole_turns = batches / (units * work_items);
    const int64_t rest = batches % (units * work_items);
    return whole_turns * work_items + smaller(rest, work_items);
}

/* The number of work-items of all compute units. For each unit it is large enough that a unit whose
 * thread wakes up late runs fewer of them, but limited by scratch memory. Among these numbers, the
 * one that shares batches most evenly is taken. scratch_bytes: of a work-item. */
static int64_t count_work_items(const struct launcher *self, int64_t batches, int64_t scratch_bytes)
{
    enum { ITEMS_OF_UNIT_MAX = 32 };
    const int64_t units = self->device->info.compute_units;
    int64_t most = ITEMS_OF_UNIT_MAX;
    if (most * scratch_bytes > SCRATCH_BYTES)
        most = scratch_bytes < SCRATCH_BYTES ? SCRATCH_BYTES / scratch_bytes : 1;
    if (units * most >= batches)
        return batches;
    int64_t best = most;
    for (int64_t count = most - 1; count > most / 2; count--)
        if (first_share(batches, units, count) < first_share(batches, units, best))
            best = count;
    return units * best;
}

/* Whether the kernel can keep its results in the rows of the output. The rows must be in natural
 * order, and aligned to the kernel's vectors, which are cache lines. OpenCL aligns buffers to 128
 * bytes. */
static bool has_direct_rows(const struct transform *transform)
{
    const struct step *step = transform->step;
    const struct layout *out = &step->out->layout;
    const int64_t element_bytes = (int64_t)dtype_size(step->out->storage->dtype);
    const bool in_natural_order = transform->inverse || !step->in[PERMUTATION];
    bool is_aligned = out->offset * element_bytes % CACHE_LINE == 0;
    for (int axis = AXIS_L; axis < AXIS_N; axis++)
        if (out->shape[axis] > 1)
            is_aligned = is_aligned && out->stride[axis] * element_bytes % CACHE_LINE == 0;
    return in_natural_order && is_aligned && out->stride[AXIS_N] == 1;
}

/* Limits the rows of a batch to leave every compute unit a batch, if scratch memory is small.
 * Smaller batches are slower, but idle compute units cost more. */
static int64_t limit_batch(const struct launcher *self, int64_t batch_rows, int64_t row_bytes)
{
    const int64_t units = self->device->info.compute_units;
    const int64_t most = (int64_t)device_scratch_bytes(self->device) / units;
    while (batch_rows > 2 && batch_rows * row_bytes > most)
        batch_rows = (batch_rows + 1) / 2;
    return batch_rows;
}

/* How work-items share the rows of a transform. */
struct row_batches {
    uint32_t interleaved;  /* NTT_OUT_INTERLEAVED, NTT_IN_INTERLEAVED */
    int64_t batch_rows;    /* rows of one l that a work-item transforms together */
    int64_t scratch_bytes; /* of a work-item; 0: it keeps its results in the output */
    int64_t work_items;
    bool large; /* the output bypasses the caches */
};

/* Decides which rows a work-item transforms together, and whether in scratch memory. That is needed
 * if the output cannot hold intermediate results: then they stay in the caches. */
static struct row_batches divide_rows(const struct launcher *self,
                                      const struct transform *transform)
{
    const struct step *step = transform->step;
    const struct layout *out = &step->out->layout, *in = &step->in[INPUT_A]->layout;
    const bool inverse = transform->inverse, is_long = transform->n > NTT_ROW_TILE;
    const bool output_is_large =
        passes_caches(self->device, (uint64_t)layout_elements(out), step->out->storage->dtype);
    const int64_t row_bytes = pitch_of(transform->n) * transform_word_bits(step) / 8;
    const int64_t rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    struct row_batches batches = {.batch_rows = 1};
    batches.interleaved = (is_interleaved(out) ? NTT_OUT_INTERLEAVED : 0) |
                          (is_interleaved(in) ? NTT_IN_INTERLEAVED : 0);
    if (batches.interleaved)
        batches.batch_rows = limit_batch(self, smaller(rows_of_l, NTT_BATCH_ROWS), row_bytes);
    const bool is_direct = batches.batch_rows == 1 && has_direct_rows(transform);
    /* The inverse of long rows fetches its tiles anyway. */
    batches.large = is_direct && output_is_large && !(inverse && is_long);
    /* A permuted row is written in random order, which should happen in the caches. */
    const bool scatters = inverse && is_long && step->in[PERMUTATION];
    const bool overwrites_input = step->in[INPUT_A]->storage == step->out->storage;
    if (batches.large || scatters || overwrites_input || !is_direct)
        batches.scratch_bytes = batches.batch_rows * row_bytes;
    const int64_t batch_count = out->shape[AXIS_L] * blocks_for(rows_of_l, batches.batch_rows);
    batches.work_items = count_work_items(self, batch_count, batches.scratch_bytes);
    if (batches.scratch_bytes > 0) {
        const int64_t fit = (int64_t)device_scratch_bytes(self->device) / batches.scratch_bytes;
        batches.work_items = smaller(batches.work_items, fit > 1 ? fit : 1);
    }
    return batches;
}

/* Defines the constants that cl/ntt/rows.cl is compiled with. */
static void define_rows(struct job *job, const struct transform *transform,
                        const struct row_batches *batches)
{
    const int64_t tiles = transform->n / NTT_ROW_TILE; /* a power of two, or 0 */
    job_define_number(job, "WORD_BITS", transform_word_bits(transform->step));
    job_define_number(job, "INVERSE", transform->inverse);
    job_define_number(job, "ROW_TILES", (uint32_t)smaller(tiles, NTT_RADIX));
    job_define_number(job, "INTERLEAVED", batches->interleaved);
    if (batches->interleaved) /* two rows, as in ciphertexts of two components, or any number */
        job_define_number(job, "BATCH_ROWS", batches->batch_rows == 2 ? 2 : NTT_BATCH_ROWS);
    job_define_number(job, "PERMUTED", transform->step->in[PERMUTATION] != NULL);
    if (batches->large)
        job_define(job, "LARGE", "");
}

/* Each work-item transforms some batches of rows. The kernel's parameters: space, out, in, their
 * element sizes, scratch, whether to use it, q, twiddles, lane twiddles, perm, rows of a batch,
 * whether the next row is prefetched, n_inv. */
static enum healcl_status choose_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    const uint32_t bits = transform_word_bits(step);
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const int lane_twiddles = derive_lane_twiddles(self, step, transform.tables.twiddles, bits);
    const struct row_batches batches = divide_rows(self, &transform);
    const int64_t scratch_bytes = batches.work_items * batches.scratch_bytes;
    const bool two_rows_fit_caches = transform.n * bits / 8 <= TWO_ROWS_MAX;
    struct job job;
    transform_begin(&job, self, &transform, "ntt_rows", "intt_rows");
    define_rows(&job, &transform, &batches);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->out->storage->dtype));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[INPUT_A]->storage->dtype));
    if (batches.scratch_bytes > 0)
        job_add_written(&job, template_add_scratch(self, (uint64_t)scratch_bytes));
    else
        job_add_buffer(&job, transform.tables.q); /* an unused argument needs a stand-in */
    job_add_uint(&job, batches.scratch_bytes > 0);
    job_add_buffer(&job, transform.tables.q);
    job_add_buffer(&job, transform.tables.twiddles);
    job_add_buffer(&job, lane_twiddles);
    job_add_buffer(&job, transform.tables.permutation);
    job_add_uint(&job, (uint32_t)batches.batch_rows);
    job_add_uint(&job, two_rows_fit_caches);
    job_add_buffer(&job, transform.tables.n_inv);
    return job_launch_groups(&job, (uint64_t)batches.work_items, 1 /* each */, error);
}

/* ---------------------------------------------------------------- by one work-item:
 * cl/ntt/single.cl */

/* For FPGAs: a row must fit into local memory. */
static const char *plan_single(struct variant_plan *plan)
{
    const uint64_t n = (uint64_t)plan->step->out->layout.shape[AXIS_N];
    OBSTACLE_IF(n < 2, "rows are shorter than 2");
    OBSTACLE_IF(n * sizeof(uint64_t) > plan->device->info.local_memory_bytes,
                "a row does not fit into local memory");
    return NULL;
}

/* Adds one work-item that transforms all rows, one after the other, in local memory. */
static enum healcl_status choose_single(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    struct job job;
    transform_begin(&job, self, &transform, "ntt_single", "intt_single");
    job_define_type(&job, "OUT", step->out->storage->dtype);
    job_define_type(&job, "IN", step->in[INPUT_A]->storage->dtype);
    job_define_number(&job, "LOG2_N", log2_of((uint64_t)transform.n));
    job_add_uint(&job, (uint32_t)transform_rows(step));
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    transform_add_tables(&job, &transform);
    return job_launch_groups(&job, 1 /* group */, 1 /* work-item */, error);
}

/* ---------------------------------------------------------------- the family */

enum {
    SHARED = 1 << TUNABLE_transform_local_size,
    TILED = SHARED | 1 << TUNABLE_transform_rows | 1 << TUNABLE_transform_tile |
            1 << TUNABLE_transform_radix | 1 << TUNABLE_transform_rows_radix
};

static const struct variant variants[] = {
    {"registers", STYLE_LOCAL, ntt_plan_registers, ntt_choose_registers, TILED, "ntt/registers",
     NULL, "cl/ntt/registers.cl", "rows that two passes can transform"},
    {"single", STYLE_SINGLE, plan_single, choose_single, 0, "ntt/single", NULL, "cl/ntt/single.cl",
     "rows that fit into local memory"},
    {"rows", STYLE_VECTORS, plan_rows, choose_rows,
     1 << TUNABLE_past_caches_bytes | 1 << TUNABLE_multiply, "ntt/rows", NULL, "cl/ntt/rows.cl",
     "rows of 256 elements or more"},
    {"stages", STYLE_GENERAL, plan_stages, choose_stages, SHARED | 1 << TUNABLE_elements_per_item,
     "ntt/general", NULL, "cl/ntt/general.cl", "anything"},
};

const struct family family_transform = FAMILY_OF(transform, transform, variants);
