/* Transforms in local memory: cl/ntt/local.cl. */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/ntt.h"

/* How a step's rows are divided into tiles. */
struct tiling {
    uint32_t rows;       /* done together, of one l */
    int64_t groups;      /* of so many rows, the last one of each l may have fewer */
    uint32_t log2_most;  /* of the elements of a row that fit a tile */
    uint32_t stages;     /* over columns; 0: a row fits a tile */
    uint32_t log2_width; /* columns of a tile, at least */
};

/* One reading and writing of rows: tiles of so many elements of each go through so many stages. */
struct pass {
    uint32_t log2_tile, stages;
    bool is_columns;
    const struct buffer *out, *in;
    enum dtype out_dtype, in_dtype;
    int scratch;               /* which operand is scratch memory; NO_SCRATCH: neither */
    const struct buffer *perm; /* NULL: none */
    bool scale;
};

enum { NO_SCRATCH = -1 };

static uint32_t log2_radix(const struct healcl_device *device)
{
    return log2_of(device->tuning.transform_radix);
}

/* Elements that lie side by side in a line of the caches. */
static int64_t line_elements(const struct tensor *tensor)
{
    return CACHE_LINE / (int64_t)dtype_size(tensor->storage->dtype);
}

/* Whether rows that follow each other lie closer together than the elements of one. */
static bool is_interleaved(const struct layout *layout)
{
    int axis = layout->shape[2] > 1 ? 2 : 1;
    return layout->shape[axis] > 1 && layout->stride[axis] != 0 &&
           llabs(layout->stride[axis]) < llabs(layout->stride[3]);
}

/* Whether rows fit one or two passes if so many are done together; then how. */
static bool fits(struct tiling *tiling, const struct step *step, const struct healcl_device *device,
                 int64_t rows)
{
    const struct tensor *out = step->out, *first = step->kind == STEP_INTT ? out : step->in[0];
    int64_t n = out->layout.shape[3], all = out->layout.shape[1] * out->layout.shape[2];
    int64_t groups = (all + rows - 1) / rows;
    int64_t most = (int64_t)device->info.local_memory_bytes / (int64_t)sizeof(uint64_t);
    most = most < device->tuning.transform_tile ? most : device->tuning.transform_tile;
    rows = (all + groups - 1) / groups; /* the same number in each, if that can be */
    if (most / rows < device->tuning.transform_radix)
        return false;
    int64_t together = is_interleaved(&first->layout) ? rows : 1, width = 1;
    while (width * together < line_elements(first))
        width *= 2;
    *tiling = (struct tiling){.rows = (uint32_t)rows,
                              .groups = out->layout.shape[0] * groups,
                              .log2_most = log2_of((uint64_t)(most / rows)),
                              .log2_width = log2_of((uint64_t)width)};
    uint32_t log2_n = log2_of((uint64_t)n);
    if (log2_n <= tiling->log2_most)
        return true;
    tiling->stages = log2_n - tiling->log2_most;
    return tiling->stages + tiling->log2_width <= tiling->log2_most &&
           rows * n <= (int64_t)(device->chunk_bytes / sizeof(uint64_t));
}

/* As many rows together as fill lines of the caches. */
static bool find_tiling(struct tiling *tiling, const struct step *step,
                        const struct healcl_device *device)
{
    const struct layout *out = &step->out->layout;
    const struct device_tuning *tuning = &device->tuning;
    int64_t rows = 1, all = out->shape[1] * out->shape[2];
    if (is_interleaved(out) || is_interleaved(&step->in[0]->layout))
        rows = tuning->transform_rows * (int64_t)sizeof(uint64_t) /
               (int64_t)dtype_size(step->out->storage->dtype);
    rows = rows < all ? rows : all;
    rows = rows < tuning->transform_local_size ? rows : tuning->transform_local_size;
    while (rows > 1 && !fits(tiling, step, device, rows))
        rows /= 2;
    return rows > 1 || fits(tiling, step, device, 1);
}

const char *lacks_ntt_local(const struct step *step, const struct healcl_device *device)
{
    struct tiling tiling;
    int64_t n = step->out->layout.shape[3];
    if (n < device->tuning.transform_radix)
        return "rows are shorter than the radix";
    if (transform_rows(step) >
        UINT32_MAX / n * device->tuning.transform_radix) /* tiles are counted in 32 bits */
        return "there are too many rows";
    return find_tiling(&tiling, step, device) ? NULL : "rows do not fit two passes";
}

/* Work-items for each row: fewer where there is not enough for all of them to do. */
static size_t work_items_of_row(const struct launcher *self, const struct tiling *tiling,
                                uint32_t log2_tile)
{
    uint32_t most = log2_of(self->device->tuning.transform_local_size / tiling->rows);
    uint32_t wanted = log2_tile - log2_radix(self->device);
    return (size_t)1 << (wanted < most ? wanted : most);
}

/* The groups of rows [first, first + count). */
MUST_CHECK static enum healcl_status launch_pass(struct launcher *self,
                                                 const struct transform *transform,
                                                 const struct tiling *tiling,
                                                 const struct pass *pass, int64_t first,
                                                 int64_t count, struct healcl_error *error)
{
    uint32_t radix_stages = log2_radix(self->device);
    struct job job;
    transform_begin(&job, self, transform, "ntt_tiles", "intt_tiles");
    job_define_type(&job, "OUT", pass->out_dtype);
    job_define_type(&job, "IN", pass->in_dtype);
    job_define_number(&job, "LOG2_TILE", pass->log2_tile);
    job_define_number(&job, "STAGES", pass->stages);
    job_define_number(&job, "LOG2_RADIX", radix_stages);
    job_define_number(&job, "ROWS", tiling->rows);
    if (pass->is_columns)
        job_define(&job, "COLUMNS", "");
    if (pass->scratch != NO_SCRATCH)
        job_define_number(&job, "SCRATCH", (uint32_t)pass->scratch);
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
    size_t row_size = work_items_of_row(self, tiling, pass->log2_tile);
    /* Loading and storing the tile, and as many stages at a time as registers allow. */
    uint64_t turns = ((uint64_t)1 << pass->log2_tile >> radix_stages) / row_size,
             passes = (pass->stages + radix_stages - 1) / radix_stages;
    job.rounds = (turns * 2 << radix_stages) + passes * (turns + 1);
    return job_launch_groups(&job, (uint64_t)(count * transform->n) >> pass->log2_tile,
                             tiling->rows * row_size, error);
}

/* Log2 of the elements of a row in a tile of columns: enough for all work-items. */
static uint32_t log2_columns_tile(const struct launcher *self, const struct tiling *tiling)
{
    uint32_t least = tiling->stages + tiling->log2_width;
    uint32_t wanted = log2_radix(self->device) +
                      log2_of(self->device->tuning.transform_local_size / tiling->rows);
    return wanted < least ? least : wanted < tiling->log2_most ? wanted : tiling->log2_most;
}

/* Rows by two passes: columns and blocks, and in between in scratch memory. */
MUST_CHECK static enum healcl_status launch_in_two(struct launcher *self,
                                                   struct transform *transform,
                                                   const struct tiling *tiling, struct pass whole,
                                                   struct healcl_error *error)
{
    int64_t at_once;
    struct pass columns = whole, blocks = whole;
    blocks.log2_tile = blocks.stages = tiling->log2_most;
    columns.log2_tile = log2_columns_tile(self, tiling);
    columns.stages = tiling->stages;
    columns.is_columns = true;
    columns.perm = NULL;
    blocks.scale = false;
    struct pass *before = transform->inverse ? &blocks : &columns;
    struct pass *after = transform->inverse ? &columns : &blocks;
    before->out = after->in = &transform->rows;
    before->out_dtype = after->in_dtype = DTYPE_INT64;
    before->scratch = 0;
    after->scratch = 1;

    TRY(transform_acquire_rows(self, transform, tiling->groups, tiling->rows, &at_once, error));
    enum healcl_status status = HEALCL_OK;
    for (int64_t first = 0; status == HEALCL_OK && first < tiling->groups; first += at_once) {
        int64_t left = tiling->groups - first, count = left < at_once ? left : at_once;
        status = launch_pass(self, transform, tiling, before, first, count, error);
        if (status == HEALCL_OK)
            status = launch_pass(self, transform, tiling, after, first, count, error);
    }
    device_buffer_release(self->device, &transform->rows);
    return status;
}

enum healcl_status launch_ntt_local(struct launcher *self, const struct step *step,
                                    const struct variant *variant, struct healcl_error *error)
{
    struct transform transform;
    struct tiling tiling = {.rows = 1};
    (void)find_tiling(&tiling, step, self->device); /* there is one */
    TRY(transform_init(self, step, variant, &transform, error));
    const struct tensor *in = step->in[0], *out = step->out;
    uint32_t log2_n = log2_of((uint64_t)transform.n);
    struct pass whole = {.log2_tile = log2_n,
                         .stages = log2_n,
                         .out_dtype = out->storage->dtype,
                         .in_dtype = in->storage->dtype,
                         .scratch = NO_SCRATCH,
                         .scale = transform.inverse};
    TRY(launcher_buffer(self, out->storage, &whole.out, error));
    TRY(launcher_buffer(self, in->storage, &whole.in, error));
    bool permutes = step->in[3] != NULL;
    if (tiling.stages == 0) {
        whole.perm = permutes ? transform.perm : NULL;
        return launch_pass(self, &transform, &tiling, &whole, 0, tiling.groups, error);
    }
    if (permutes)
        TRY(derive_inverse_permutation(self, step, 3, &whole.perm, error));
    return launch_in_two(self, &transform, &tiling, whole, error);
}
