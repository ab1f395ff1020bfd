/* Transforms in local memory: cl/ntt/local.cl. */
#include "core/numbers.h"
#include "kernels/ntt.h"

enum {
    /* Elements of a tile: 64 KiB is all the local memory of most GPUs; where there is more, several
     * work-groups may share it. */
    TILE_MAX = 8192,
    COLUMNS_MIN = 16 /* side by side in a tile: 128 bytes, which memory hands out at once */
};

/* One reading and writing of rows: tiles of so many elements go through so many stages. */
struct pass {
    uint32_t log2_tile, stages;
    const struct layout *out_layout, *in_layout;
    const struct buffer *out, *in;
    enum dtype out_dtype, in_dtype;
    const struct buffer *perm; /* NULL: none */
    bool scale;
};

/* Log2 of the elements of the largest tile. */
static uint32_t log2_tile_most(const struct healcl_device *device)
{
    uint64_t most = device->info.local_memory_bytes / sizeof(uint64_t);
    return log2_of(most < TILE_MAX ? most : TILE_MAX);
}

static int64_t tile_most(const struct healcl_device *device)
{
    return (int64_t)1 << log2_tile_most(device);
}

const char *lacks_ntt_local(const struct step *step, const struct healcl_device *device)
{
    int64_t most = tile_most(device), n = step->out->layout.shape[3];
    if (n < NTT_RADIX)
        return "rows are shorter than 16";
    if (transform_rows(step) > UINT32_MAX / n * NTT_RADIX) /* tiles are counted in 32 bits */
        return "there are too many rows";
    return n <= most || n / most <= most / COLUMNS_MIN ? NULL : "rows do not fit two passes";
}

/* Rows [first, first + count). */
MUST_CHECK static enum healcl_status launch_pass(struct launcher *self,
                                                 const struct transform *transform,
                                                 const struct pass *pass, int64_t first,
                                                 int64_t count, struct healcl_error *error)
{
    struct job job;
    transform_begin(&job, self, transform, "ntt_tiles", "intt_tiles");
    job_define_type(&job, "OUT", pass->out_dtype);
    job_define_type(&job, "IN", pass->in_dtype);
    job_define_number(&job, "LOG2_TILE", pass->log2_tile);
    job_define_number(&job, "STAGES", pass->stages);
    space_set_operand(&job.space, 0, pass->out_layout);
    space_set_operand(&job.space, 1, pass->in_layout);
    job_add_uint(&job, (uint32_t)first);
    job_add_written_buffer(&job, pass->out);
    job_add_buffer(&job, pass->in);
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->twiddles);
    job_add_table(&job, pass->perm ? pass->perm : transform->perm);
    job_add_uint(&job, pass->perm != NULL);
    if (transform->inverse) {
        job_add_table(&job, transform->n_inv);
        job_add_uint(&job, pass->scale);
    }
    /* Fewer work-items where there is not enough for all of them to do. */
    size_t local_size = self->device->tuning.transform_local_size;
    size_t items = ((size_t)1 << pass->log2_tile) / NTT_RADIX;
    if (local_size > items)
        local_size = items;
    /* Loading and storing the tile, and as many stages at a time as registers allow. */
    uint64_t turns = items / local_size,
             passes = (pass->stages + NTT_LOG2_RADIX - 1) / NTT_LOG2_RADIX;
    job.rounds = turns * 2 * NTT_RADIX + passes * (turns + 1);
    return job_launch_groups(&job, (uint64_t)(count * transform->n) >> pass->log2_tile, local_size,
                             error);
}

/* Log2 of the elements of a tile of columns: enough for all work-items, COLUMNS_MIN columns at
 * least. */
static uint32_t log2_columns_tile(const struct launcher *self, uint32_t stages)
{
    uint32_t most = log2_tile_most(self->device), least = stages + log2_of(COLUMNS_MIN);
    uint32_t wanted = log2_of(NTT_RADIX * (uint64_t)self->device->tuning.transform_local_size);
    return wanted < least ? least : wanted < most ? wanted : most;
}

/* Rows by two passes: columns and blocks, and in between in scratch memory. */
MUST_CHECK static enum healcl_status launch_in_two(struct launcher *self,
                                                   struct transform *transform, struct pass whole,
                                                   int64_t rows, struct healcl_error *error)
{
    uint32_t stages = log2_of((uint64_t)transform->n) - log2_tile_most(self->device);
    int64_t at_once;
    struct layout scratch = layout_packed(whole.out_layout);
    struct pass columns = whole, blocks = whole;
    blocks.log2_tile = blocks.stages = log2_tile_most(self->device);
    columns.log2_tile = log2_columns_tile(self, stages);
    columns.stages = stages;
    columns.perm = NULL;
    blocks.scale = false;
    struct pass *before = transform->inverse ? &blocks : &columns;
    struct pass *after = transform->inverse ? &columns : &blocks;
    before->out = after->in = &transform->rows;
    before->out_layout = after->in_layout = &scratch;
    before->out_dtype = after->in_dtype = DTYPE_INT64;

    TRY(transform_acquire_rows(self, transform, rows, &at_once, error));
    enum healcl_status status = HEALCL_OK;
    for (int64_t first = 0; status == HEALCL_OK && first < rows; first += at_once) {
        int64_t count = rows - first < at_once ? rows - first : at_once;
        scratch.offset = -first * transform->n;
        status = launch_pass(self, transform, before, first, count, error);
        if (status == HEALCL_OK)
            status = launch_pass(self, transform, after, first, count, error);
    }
    device_buffer_release(self->device, &transform->rows);
    return status;
}

enum healcl_status launch_ntt_local(struct launcher *self, const struct step *step,
                                    const struct variant *variant, struct healcl_error *error)
{
    struct transform transform;
    int64_t rows = transform_rows(step);
    TRY(transform_init(self, step, variant, &transform, error));
    const struct tensor *in = step->in[0], *out = step->out;
    uint32_t log2_n = log2_of((uint64_t)transform.n);
    struct pass whole = {.log2_tile = log2_n,
                         .stages = log2_n,
                         .out_layout = &out->layout,
                         .in_layout = &in->layout,
                         .out_dtype = out->storage->dtype,
                         .in_dtype = in->storage->dtype,
                         .scale = transform.inverse};
    TRY(launcher_buffer(self, out->storage, &whole.out, error));
    TRY(launcher_buffer(self, in->storage, &whole.in, error));
    bool permutes = step->in[3] != NULL;
    if (transform.n <= tile_most(self->device)) {
        whole.perm = permutes ? transform.perm : NULL;
        return launch_pass(self, &transform, &whole, 0, rows, error);
    }
    if (permutes)
        TRY(derive_inverse_permutation(self, step, 3, &whole.perm, error));
    return launch_in_two(self, &transform, whole, rows, error);
}
