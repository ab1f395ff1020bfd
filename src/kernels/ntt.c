/* Number-theoretic transforms: cl/ntt. */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/kernels.h"

/* A transform in hand. */
struct transform {
    const struct step *step;
    const struct variant *variant;
    int64_t n, k;
    bool inverse;
    const struct buffer *q, *twiddles, *n_inv, *perm, *high;
    struct buffer rows; /* scratch */
};

/* The groups of rows that scratch memory is made for at once: as many as one allocation can hold,
 * or one that no allocation can. */
static int64_t groups_at_once(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    enum { ROWS_BYTES = 64 << 20 };
    const uint64_t most = device_scratch_bytes(device),
                   bytes = most < ROWS_BYTES ? most : ROWS_BYTES;
    const int64_t at_once = (int64_t)(bytes / sizeof(uint64_t)) / elements;
    return at_once < 1 ? 1 : at_once < groups ? at_once : groups;
}

/* Makes transform->rows, which the caller releases: scratch for *at_once of so many groups. */
static enum healcl_status transform_acquire_rows(struct launcher *self, struct transform *transform,
                                                 int64_t groups, int64_t rows, int64_t *at_once,
                                                 struct healcl_error *error)
{
    const int64_t elements = rows * transform->n;
    *at_once = groups_at_once(self->device, groups, elements);
    return device_buffer_acquire(self->device, (uint64_t)(*at_once * elements) * sizeof(uint64_t),
                                 false, &transform->rows, error);
}

/* Launches that transform so many groups. */
static uint32_t rounds_of(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    const int64_t at_once = groups_at_once(device, groups, elements);
    return groups == 0 ? 0 : (uint32_t)((groups - 1) / at_once) + 1;
}

/* Rows of all moduli: l*r*k. */
static int64_t transform_rows(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    return out->shape[0] * out->shape[1] * out->shape[2];
}

/* A job of the variant's program, by a kernel for each direction, over the whole of out with
 * operands out and in: the space is its first argument. */
static void transform_begin(struct job *job, struct launcher *self,
                            const struct transform *transform, const char *forward,
                            const char *inverse)
{
    job_init(job, self, transform->step, transform->variant->program,
             transform->inverse ? inverse : forward);
    if (transform->variant->tunables >> TUNABLE_multiply & 1)
        job_define_vectors(job);
    job->space = step_space(transform->step, 1);
    job_add_space(job);
}

/* Fills in what all variants need of a step: its tables. log2_low: see struct transform_tables. */
static enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
                                         uint32_t log2_low, struct transform *transform,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    *transform = (struct transform){.step = step,
                                    .variant = plan->variant,
                                    .n = out->shape[3],
                                    .k = out->shape[2],
                                    .inverse = step->kind == STEP_INTT};
    if (transform->k > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument 'q': %lld moduli are more than 2^31-1",
                   (long long)transform->k);
    struct transform_tables tables = {.log2_low = log2_low};
    TRY(derive_transform(self, step, &tables, error));
    transform->q = tables.q;
    transform->twiddles = tables.twiddles;
    /* Some buffer must stand for one that is not used. */
    transform->n_inv = tables.n_inv ? tables.n_inv : tables.twiddles;
    transform->perm = tables.permutation ? tables.permutation : tables.q;
    transform->high = tables.high ? tables.high : tables.twiddles;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- any length, any layout */

/* Transforms the rows [first, first + count). */
static enum healcl_status launch_stages_of_rows(struct launcher *self,
                                                const struct transform *transform, int64_t first,
                                                int64_t count, struct healcl_error *error)
{
    const struct step *step = transform->step;
    const uint64_t n = (uint64_t)transform->n;
    const uint32_t local_size = self->device->tuning.transform_local_size;
    struct job job;
    transform_begin(&job, self, transform, "ntt_stages", "intt_stages");
    job.single = false;
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job.space.first = (uint64_t)first * n;
    job.space.end = (uint64_t)(first + count) * n;
    job_add_written(&job, &transform->rows);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[0]->storage->dtype));
    job_add_buffer(&job, transform->q);
    job_add_buffer(&job, transform->twiddles);
    job_add_buffer(&job, transform->perm);
    job_add_uint(&job, step->in[3] != NULL);
    if (transform->inverse)
        job_add_buffer(&job, transform->n_inv);
    job.granule = n;
    if (local_size > 1) { /* a work-group for each row */
        job.space.elements_per_item = n;
        job.rounds = (n / local_size + 2) * (2 + log2_of(n));
        return job_launch_groups(&job, (uint64_t)count, local_size, error);
    }
    /* Eight short rows of a modulus are done at once, where there are so many for each compute
     * unit.
     */
    const int64_t units = self->device->info.compute_units, together = LANES * transform->k;
    if (n < NTT_ROW_MIN && count / units >= together)
        job.granule *= (uint64_t)together;
    job.rounds = log2_of(n);
    return job_launch_of(&job, 1, error);
}

static const char *plan_stages(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    plan->launches = rounds_of(device, transform_rows(step), step->out->layout.shape[3]);
    return NULL;
}

/* The general way: any length, any layout. */
static enum healcl_status launch_stages(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    int64_t rows = transform_rows(step), at_once;
    if (rows > UINT32_MAX)
        FAIL(error, device_note_unsupported(self->device, HEALCL_REFUSED),
             "%lld rows are more than 2^32-1", (long long)rows);
    TRY(transform_init(self, plan, 0, &transform, error));
    TRY(transform_acquire_rows(self, &transform, rows, 1, &at_once, error));
    enum healcl_status status = HEALCL_OK;
    for (int64_t first = 0; status == HEALCL_OK && first < rows; first += at_once) {
        int64_t count = rows - first < at_once ? rows - first : at_once;
        status = launch_stages_of_rows(self, &transform, first, count, error);
    }
    device_buffer_release(self->device, &transform.rows);
    return status;
}

/* ---------------------------------------------------------------- in local memory: cl/ntt/local.cl
 */

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
static bool rows_lie_closer(const struct layout *layout)
{
    int axis = layout->shape[2] > 1 ? 2 : 1;
    return layout->shape[axis] > 1 && layout->stride[axis] != 0 &&
           llabs(layout->stride[axis]) < llabs(layout->stride[3]);
}

/* Log2 of how many of what lies side by side fill a line, of rows that are done together. */
static uint32_t log2_of_line(const struct tensor *tensor, int64_t rows)
{
    int64_t together = rows_lie_closer(&tensor->layout) ? rows : 1;
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
    if (rows_lie_closer(out) || rows_lie_closer(&step->in[0]->layout))
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

static const char *plan_local(const struct step *step, const struct healcl_device *device,
                              struct variant_plan *plan)
{
    int64_t n = step->out->layout.shape[3];
    if (transform_rows(step) > UINT32_MAX / n) /* tiles and elements are counted in 32 bits */
        return "there are too many rows";
    const struct tiling *tiling = &plan->tiling;
    if (!find_tiling(&plan->tiling, step, device))
        return "rows do not fit two passes";
    if (tiling->stages > 0)
        plan->launches = 2 * rounds_of(device, tiling->groups, tiling->rows * n);
    return NULL;
}

/* A work-group's tiles, and work-items for each row of one. */
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
    job_add_buffer(&job, transform->high);
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

static enum healcl_status launch_local(struct launcher *self, const struct variant_plan *plan,
                                       struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct tiling *tiling = &plan->tiling;
    struct transform transform;
    const struct tensor *in = step->in[0], *out = step->out;
    uint32_t log2_n = log2_of((uint64_t)out->layout.shape[3]), log2_low = 0;
    if (out->layout.shape[3] >= self->device->tuning.transform_products) {
        /* The twiddles of the last stages are numbers from n / radix on. */
        uint32_t radix = log2_radix(self->device, out->layout.shape[3]), half = log2_n / 2;
        log2_low = half < log2_n - radix ? half : log2_n - radix;
    }
    TRY(transform_init(self, plan, log2_low, &transform, error));
    struct tile_sweep whole = {.log2_tile = log2_n,
                               .stages = log2_n,
                               .out_dtype = out->storage->dtype,
                               .in_dtype = in->storage->dtype,
                               .scratch = NO_SCRATCH,
                               .log2_low = log2_low,
                               .scale = transform.inverse};
    TRY(launcher_buffer(self, out->storage, &whole.out, error));
    TRY(launcher_buffer(self, in->storage, &whole.in, error));
    bool permutes = step->in[3] != NULL;
    if (tiling->stages == 0) {
        whole.perm = permutes ? transform.perm : NULL;
        return launch_pass(self, &transform, tiling, &whole, 0, tiling->groups, error);
    }
    if (permutes)
        TRY(derive_inverse_permutation(self, step, 3, &whole.perm, error));
    return launch_in_two(self, &transform, tiling, whole, error);
}

/* ---------------------------------------------------------------- whole rows, or batches of
 * interleaved rows, in one work-item each: cl/ntt/rows.cl */

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

static const char *plan_rows(const struct step *step, const struct healcl_device *device,
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

static enum healcl_status launch_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, 0, &transform, error));
    const struct layout *out = &step->out->layout, *in = &step->in[0]->layout;
    const struct buffer *lane_twiddles;
    const uint32_t bits = word_bits(step);
    TRY(derive_lane_twiddles(self, step, transform.twiddles, bits, &lane_twiddles, error));

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

/* ---------------------------------------------------------------- by one work-item:
 * cl/ntt/single.cl */

static const char *plan_single(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    uint64_t n = (uint64_t)step->out->layout.shape[3];
    (void)plan;
    if (n < 2)
        return "rows are shorter than 2";
    return n * sizeof(uint64_t) <= device->info.local_memory_bytes
               ? NULL
               : "a row does not fit local memory";
}

static enum healcl_status launch_single(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    int64_t rows = transform_rows(step);
    TRY(transform_init(self, plan, 0, &transform, error));
    struct job job;
    transform_begin(&job, self, &transform, "ntt_single", "intt_single");
    job_define_type(&job, "OUT", step->out->storage->dtype);
    job_define_type(&job, "IN", step->in[0]->storage->dtype);
    job_define_number(&job, "LOG2_N", log2_of((uint64_t)transform.n));
    job_add_uint(&job, (uint32_t)rows);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_buffer(&job, transform.q);
    job_add_buffer(&job, transform.twiddles);
    job_add_buffer(&job, transform.perm);
    job_add_uint(&job, step->in[3] != NULL);
    if (transform.inverse)
        job_add_buffer(&job, transform.n_inv);
    return job_launch_groups(&job, 1, 1, error);
}

/* ---------------------------------------------------------------- the family */

enum {
    SHARED = 1 << TUNABLE_transform_local_size,
    TILED = SHARED | 1 << TUNABLE_transform_rows | 1 << TUNABLE_transform_tile |
            1 << TUNABLE_transform_radix | 1 << TUNABLE_transform_products
};

static const struct variant variants[] = {
    {"local", STYLE_LOCAL, plan_local, launch_local, TILED, "ntt/local", NULL, "cl/ntt/local.cl",
     "rows that two passes through local memory hold"},
    {"single", STYLE_SINGLE, plan_single, launch_single, 0, "ntt/single", NULL, "cl/ntt/single.cl",
     "rows that fit local memory"},
    {"rows", STYLE_VECTORS, plan_rows, launch_rows,
     1 << TUNABLE_past_caches_bytes | 1 << TUNABLE_multiply, "ntt/rows", NULL, "cl/ntt/rows.cl",
     "rows of 256 and more"},
    {"stages", STYLE_GENERAL, plan_stages, launch_stages, SHARED | 1 << TUNABLE_elements_per_item,
     "ntt/general", NULL, "cl/ntt/general.cl", "anything"},
};

const struct family family_transform = FAMILY_OF(transform, transform, variants);
