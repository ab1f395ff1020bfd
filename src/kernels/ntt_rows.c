/* Transforms by cl/ntt/rows.cl: whole rows, or batches of interleaved rows, in one work-item each.
 */
#include "kernels/ntt.h"

/* Scratch memory of a compute unit's work-items takes no more than this, or there is one of them:
 * it stays in the caches, whichever of them runs. */
enum { SCRATCH_BYTES = 2 << 20 };

/* Bytes of a row that caches have room for beside another one. */
enum { TWO_ROWS_MAX = 128 << 10 };

/* Words from a row in scratch memory to the next. */
static int64_t pitch_of(int64_t n)
{
    return n + NTT_ROW_PADDING;
}

const char *plan_ntt_rows(const struct step *step, const struct healcl_device *device,
                          struct variant_plan *plan)
{
    (void)plan;
    int64_t n = step->out->layout.shape[3];
    if (n < NTT_ROW_MIN)
        return "rows are shorter than 256";
    if (transform_rows(step) > UINT32_MAX)
        return "there are too many rows";
    return NTT_BATCH_ROWS * pitch_of(n) * (int64_t)sizeof(uint64_t) <=
                   (int64_t)device->info.max_allocation_bytes
               ? NULL
               : "eight rows do not fit one allocation";
}

/* Whether the elements of one number, in the rows of one l, lie side by side: [l,r,k,n] in memory
 * as [l,n,r,k]. */
static bool is_interleaved(const struct layout *layout)
{
    int64_t r = layout->shape[1], k = layout->shape[2];
    return r * k > 1 && (k == 1 || layout->stride[2] == 1) && (r == 1 || layout->stride[1] == k);
}

/* No number has more: a transform's moduli are of the dtype of its output, its input is of that or
 * of int8. */
static uint32_t word_bits(const struct step *step)
{
    return 8 * (uint32_t)dtype_size(step->out->storage->dtype);
}

/* ROW_TILES: see cl/ntt/row_passes.cl. */
static uint32_t row_tiles(int64_t n)
{
    const int64_t tiles = n / NTT_ROW_TILE; /* a power of two, or 0 */
    return tiles < NTT_RADIX ? (uint32_t)tiles : NTT_RADIX;
}

/* Batches that the first compute unit takes, with so many work-items for each. */
static int64_t first_share(int64_t batches, int64_t units, int64_t work_items)
{
    int64_t all = units * work_items, rest = batches % all;
    return batches / all * work_items + (rest < work_items ? rest : work_items);
}

/* So many work-items for every compute unit that one which starts late, for its thread has to wake,
 * does fewer of them; but no more than have room. Of those, what shares the batches evenly. */
static int64_t count_work_items(const struct launcher *self, int64_t batches, int64_t scratch_bytes)
{
    int64_t units = self->device->info.compute_units, most = 32;
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

/* Whether the kernel can leave its results in the rows of the output: they begin at multiples of
 * its vectors, which are cache lines (OpenCL aligns buffers to 128 bytes), and are in natural
 * order. */
static bool has_direct_rows(const struct transform *transform)
{
    const struct step *step = transform->step;
    const struct layout *out = &step->out->layout;
    int64_t size = (int64_t)dtype_size(step->out->storage->dtype);
    bool in_natural_order = transform->inverse || !step->in[3];
    bool aligned = out->offset * size % CACHE_LINE == 0;
    for (int axis = 0; axis < 3; axis++)
        aligned = aligned && (out->shape[axis] == 1 || out->stride[axis] * size % CACHE_LINE == 0);
    return in_natural_order && aligned && out->stride[3] == 1;
}

/* As many rows of a batch as leave each compute unit a batch, where little scratch memory may be
 * taken: fewer take longer, but not as long as the units that would have nothing to do. */
static int64_t limit_batch(const struct launcher *self, int64_t batch_rows, int64_t row_bytes)
{
    const int64_t units = self->device->info.compute_units;
    const int64_t most = (int64_t)device_scratch_bytes(self->device) / units;
    while (batch_rows > 2 && batch_rows * row_bytes > most)
        batch_rows = (batch_rows + 1) / 2;
    return batch_rows;
}

enum healcl_status launch_ntt_rows(struct launcher *self, const struct variant_plan *plan,
                                   struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const struct layout *out = &step->out->layout, *in = &step->in[0]->layout;
    const struct buffer *lane_twiddles;
    const uint32_t bits = word_bits(step);
    TRY(derive_lane_twiddles(self, step, 2, 1, bits, &lane_twiddles, error));

    const uint32_t interleaved = (is_interleaved(out) ? NTT_OUT_INTERLEAVED : 0) |
                                 (is_interleaved(in) ? NTT_IN_INTERLEAVED : 0);
    int64_t rows = out->shape[1] * out->shape[2], batch_rows = 1; /* rows of one l */
    if (interleaved)
        batch_rows = limit_batch(self, rows < NTT_BATCH_ROWS ? rows : NTT_BATCH_ROWS,
                                 pitch_of(transform.n) * bits / 8);
    int64_t batches = out->shape[0] * ((rows + batch_rows - 1) / batch_rows);
    bool direct = batch_rows == 1 && has_direct_rows(&transform);
    /* The inverse of long rows fetches its tiles in any case. */
    bool large =
        direct && !(transform.inverse && transform.n > NTT_ROW_TILE) &&
        passes_caches(self->device, (uint64_t)layout_elements(out), step->out->storage->dtype);
    /* A permuted row is written all over: that had better be where the caches hold it. */
    bool scatters = transform.inverse && step->in[3] && transform.n > NTT_ROW_TILE;
    bool scratch = large || scatters || !direct || step->in[0]->storage == step->out->storage;
    int64_t scratch_bytes = scratch ? batch_rows * pitch_of(transform.n) * bits / 8 : 0;
    int64_t work_items = count_work_items(self, batches, scratch_bytes);
    int64_t most = (int64_t)device_scratch_bytes(self->device);
    if (scratch && work_items > most / scratch_bytes)
        work_items = most > scratch_bytes ? most / scratch_bytes : 1;
    struct job job;
    transform_begin(&job, self, &transform, "ntt_rows", "intt_rows");
    job_define_number(&job, "WORD_BITS", bits);
    job_define_number(&job, "INVERSE", transform.inverse);
    job_define_number(&job, "ROW_TILES", row_tiles(transform.n));
    job_define_number(&job, "INTERLEAVED", interleaved);
    if (interleaved) /* ciphertexts of two components, or any number of rows */
        job_define_number(&job, "BATCH_ROWS", batch_rows == 2 ? 2 : NTT_BATCH_ROWS);
    job_define_number(&job, "PERMUTED", step->in[3] != NULL);
    if (large)
        job_define(&job, "LARGE", "");
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_uint(&job, (uint32_t)dtype_size(step->out->storage->dtype));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[0]->storage->dtype));
    if (scratch) {
        TRY(device_buffer_acquire(self->device, (uint64_t)(work_items * scratch_bytes), false,
                                  &transform.rows, error));
        job_add_written(&job, &transform.rows);
    } else
        job_add_buffer(&job, transform.q); /* some buffer must stand for it */
    job_add_uint(&job, scratch);
    job_add_buffer(&job, transform.q);
    job_add_buffer(&job, transform.twiddles);
    job_add_buffer(&job, lane_twiddles);
    job_add_buffer(&job, transform.perm);
    job_add_uint(&job, (uint32_t)batch_rows);
    job_add_uint(&job, transform.n * bits / 8 <= TWO_ROWS_MAX);
    job_add_buffer(&job, transform.n_inv);
    enum healcl_status status = job_launch_groups(&job, (uint64_t)work_items, 1, error);
    device_buffer_release(self->device, &transform.rows);
    return status;
}
