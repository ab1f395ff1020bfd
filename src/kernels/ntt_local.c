/* Transforms in local memory: cl/ntt/local.cl. */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/ntt.h"

/* One reading and writing of rows: tiles of so many elements of each go through so many stages. */
struct tile_sweep {
    uint32_t log2_tile, stages;
    uint32_t log2_apart; /* 0 for columns */
    bool is_columns;
    const struct buffer *out, *in;
    enum dtype out_dtype, in_dtype;
    int scratch;               /* which operand is scratch memory; NO_SCRATCH: neither */
    const struct buffer *perm; /* NULL: none */
    uint32_t log2_low;         /* of twiddles that are products; 0: they are not */
    const struct buffer *high; /* their factors */
    bool scale;
};

enum { NO_SCRATCH = -1 };

/* Stages that are done in registers at a time, on rows of n. */
static uint32_t log2_radix(const struct healcl_device *device, int64_t n)
{
    uint32_t most = log2_of(device->tuning.transform_radix), wanted = log2_of((uint64_t)n);
    return n == 1 ? 1 : wanted < most ? wanted : most;
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

/* Log2 of how many of what lies side by side fill a line, of rows that are done together. */
static uint32_t log2_of_line(const struct tensor *tensor, int64_t rows)
{
    int64_t together = is_interleaved(&tensor->layout) ? rows : 1;
    uint32_t log2_width = 0;
    while (together << log2_width < line_elements(tensor))
        log2_width++;
    return log2_width;
}

/* Whether rows fit one or two passes if so many are done together; then how. */
static bool fits(struct tiling *tiling, const struct step *step, const struct healcl_device *device,
                 int64_t rows)
{
    const struct tensor *in = step->in[0], *out = step->out;
    int64_t n = out->layout.shape[3], all = out->layout.shape[1] * out->layout.shape[2];
    int64_t groups = (all + rows - 1) / rows;
    int64_t most = (int64_t)device->info.local_memory_bytes / (int64_t)sizeof(uint64_t);
    most = most < device->tuning.transform_tile ? most : device->tuning.transform_tile;
    rows = (all + groups - 1) / groups; /* the same number in each, if that can be */
    *tiling = (struct tiling){.rows = (uint32_t)rows, .groups = out->layout.shape[0] * groups};
    uint32_t log2_n = log2_of((uint64_t)n), radix = log2_radix(device, n);
    if (rows * n <= most)
        return true;
    if (most / rows < (int64_t)1 << radix ||
        rows * n > (int64_t)(device->info.max_allocation_bytes / sizeof(uint64_t)))
        return false;
    tiling->log2_most = log2_of((uint64_t)(most / rows));
    bool inverse = step->kind == STEP_INTT, permutes = step->in[3] != NULL;
    tiling->log2_width = log2_of_line(inverse ? out : in, rows);
    /* Numbers of elements whose bits are reversed follow each other from block to block. */
    tiling->log2_apart = permutes ? log2_of_line(inverse ? in : out, rows) : 0;
    for (;; tiling->log2_apart--) {
        uint32_t stages = log2_n + tiling->log2_apart - tiling->log2_most;
        tiling->stages = stages;
        if (radix + tiling->log2_apart <= tiling->log2_most &&
            stages + tiling->log2_width <= tiling->log2_most)
            return true;
        if (tiling->log2_apart == 0)
            return false;
    }
}

/* As many rows together as fill lines of the caches, or fewer where these fit one pass. */
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
    int64_t fewer = rows < tuning->transform_rows ? rows : tuning->transform_rows;
    if ((fits(tiling, step, device, rows) && tiling->stages == 0) ||
        (fits(tiling, step, device, fewer) && tiling->stages == 0))
        return true;
    for (; !fits(tiling, step, device, rows); rows /= 2)
        if (rows == 1)
            return false;
    return true;
}

const char *plan_ntt_local(const struct step *step, const struct healcl_device *device,
                           struct variant_plan *plan)
{
    int64_t n = step->out->layout.shape[3];
    if (transform_rows(step) > UINT32_MAX / n) /* tiles and elements are counted in 32 bits */
        return "there are too many rows";
    return find_tiling(&plan->tiling, step, device) ? NULL : "rows do not fit two passes";
}

/* Of a work-group: tiles, and work-items for each row of one. */
struct group {
    uint32_t log2_tiles;
    size_t row_size;
};

/* As many work-items as there should be, for fewer leave a device's units idle: several rows where
 * one has not enough for all of them to do. */
static struct group group_of(const struct launcher *self, const struct transform *transform,
                             const struct tiling *tiling, const struct tile_sweep *pass)
{
    const struct healcl_device *device = self->device;
    uint32_t radix = log2_radix(device, transform->n);
    uint32_t log2_items = log2_of(device->tuning.transform_local_size / tiling->rows);
    uint32_t row = pass->log2_tile > radix ? pass->log2_tile - radix : 0, tiles = pass->log2_apart;
    row = row + tiles < log2_items ? row : log2_items > tiles ? log2_items - tiles : 0;
    if ((uint64_t)1 << pass->log2_tile == (uint64_t)transform->n) {
        uint64_t most = device->info.local_memory_bytes / sizeof(uint64_t);
        most = most < device->tuning.transform_tile ? most : device->tuning.transform_tile;
        uint32_t fit = log2_of(most / ((uint64_t)tiling->rows << pass->log2_tile));
        tiles = log2_items - row < fit ? log2_items - row : fit;
    }
    return (struct group){tiles, (size_t)1 << row};
}

/* The groups of rows [first, first + count). */
static enum healcl_status launch_pass(struct launcher *self, const struct transform *transform,
                                      const struct tiling *tiling, const struct tile_sweep *pass,
                                      int64_t first, int64_t count, struct healcl_error *error)
{
    uint32_t radix_stages = log2_radix(self->device, transform->n);
    struct group group = group_of(self, transform, tiling, pass);
    struct job job;
    transform_begin(&job, self, transform, "ntt_tiles", "intt_tiles");
    job_define_type(&job, "OUT", pass->out_dtype);
    job_define_type(&job, "IN", pass->in_dtype);
    job_define_number(&job, "LOG2_TILE", pass->log2_tile);
    job_define_number(&job, "STAGES", pass->stages);
    job_define_number(&job, "LOG2_RADIX", radix_stages);
    job_define_number(&job, "ROWS", tiling->rows);
    job_define_number(&job, "LOG2_TILES", group.log2_tiles);
    if (pass->is_columns)
        job_define(&job, "COLUMNS", "");
    if (pass->log2_apart > 0)
        job_define(&job, "APART", "");
    if (pass->log2_low > 0)
        job_define_number(&job, "LOG2_LOW", pass->log2_low);
    if (pass->scratch != NO_SCRATCH)
        job_define_number(&job, "SCRATCH", (uint32_t)pass->scratch);
    job_add_uint(&job, (uint32_t)first);
    job_add_written(&job, pass->out);
    job.writes_output = true;
    job_add_buffer(&job, pass->in);
    job_add_buffer(&job, transform->q);
    job_add_buffer(&job, transform->twiddles);
    job_add_buffer(&job, pass->high ? pass->high : transform->twiddles);
    job_add_buffer(&job, pass->perm ? pass->perm : transform->perm);
    job_add_uint(&job, pass->perm != NULL);
    if (transform->inverse) {
        job_add_buffer(&job, transform->n_inv);
        job_add_uint(&job, pass->scale);
    }
    /* Loading and storing the tiles, and as many stages at a time as registers allow. */
    uint64_t elements = ((uint64_t)1 << pass->log2_tile) / group.row_size,
             passes = (pass->stages + radix_stages - 1) / radix_stages;
    job.rounds = elements * 2 + passes * ((elements >> radix_stages) + 1);
    uint64_t tiles = (uint64_t)(count * transform->n) >> pass->log2_tile;
    uint64_t groups = ((tiles - 1) >> group.log2_tiles) + 1;
    size_t local_size = (tiling->rows * group.row_size) << group.log2_tiles;
    return job_launch_groups(&job, groups, local_size, error);
}

/* Log2 of the elements of a row in a tile of columns: enough for all work-items. */
static uint32_t log2_columns_tile(const struct launcher *self, const struct tiling *tiling,
                                  int64_t n)
{
    uint32_t least = tiling->stages + tiling->log2_width;
    uint32_t wanted = log2_radix(self->device, n) +
                      log2_of(self->device->tuning.transform_local_size / tiling->rows);
    return wanted < least ? least : wanted < tiling->log2_most ? wanted : tiling->log2_most;
}

/* Rows by two passes: columns and blocks, and in between in scratch memory. */
static enum healcl_status launch_in_two(struct launcher *self, struct transform *transform,
                                        const struct tiling *tiling, struct tile_sweep whole,
                                        struct healcl_error *error)
{
    int64_t at_once;
    struct tile_sweep columns = whole, blocks = whole;
    blocks.log2_tile = blocks.stages = tiling->log2_most - tiling->log2_apart;
    blocks.log2_apart = tiling->log2_apart;
    columns.log2_tile = log2_columns_tile(self, tiling, transform->n);
    columns.stages = tiling->stages;
    columns.is_columns = true;
    columns.perm = NULL;
    columns.log2_low = 0;
    blocks.scale = false;
    struct tile_sweep *before = transform->inverse ? &blocks : &columns;
    struct tile_sweep *after = transform->inverse ? &columns : &blocks;
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

enum healcl_status launch_ntt_local(struct launcher *self, const struct variant_plan *plan,
                                    struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct tiling *tiling = &plan->tiling;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const struct tensor *in = step->in[0], *out = step->out;
    uint32_t log2_n = log2_of((uint64_t)transform.n);
    struct tile_sweep whole = {.log2_tile = log2_n,
                               .stages = log2_n,
                               .out_dtype = out->storage->dtype,
                               .in_dtype = in->storage->dtype,
                               .scratch = NO_SCRATCH,
                               .scale = transform.inverse};
    TRY(launcher_buffer(self, out->storage, &whole.out, error));
    TRY(launcher_buffer(self, in->storage, &whole.in, error));
    if (transform.n >= self->device->tuning.transform_products) {
        /* The twiddles of the last stages are numbers from n / radix on. */
        uint32_t radix = log2_radix(self->device, transform.n), half = log2_n / 2;
        whole.log2_low = half < log2_n - radix ? half : log2_n - radix;
        TRY(derive_twiddle_products(self, step, 2, 1, whole.log2_low, &whole.high, error));
    }
    bool permutes = step->in[3] != NULL;
    if (tiling->stages == 0) {
        whole.perm = permutes ? transform.perm : NULL;
        return launch_pass(self, &transform, tiling, &whole, 0, tiling->groups, error);
    }
    if (permutes)
        TRY(derive_inverse_permutation(self, step, 3, &whole.perm, error));
    return launch_in_two(self, &transform, tiling, whole, error);
}
