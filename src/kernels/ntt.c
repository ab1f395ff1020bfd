/* Number-theoretic transforms: cl/ntt. */
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "kernels/kernels.h"

/* A transform that is being launched. */
struct transform {
    const struct step *step;
    const struct variant *variant;
    int64_t n, k;
    bool inverse;
    int q, twiddles, n_inv, perm; /* slots */
};

/* The number of groups of rows that get scratch memory at once. It is the most that one allocation
 * can hold. It is one if even one group exceeds an allocation. */
static int64_t groups_at_once(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    enum { ROWS_BYTES = 64 << 20 };
    const uint64_t most = device_scratch_bytes(device),
                   bytes = most < ROWS_BYTES ? most : ROWS_BYTES;
    const int64_t at_once = (int64_t)(bytes / sizeof(uint64_t)) / elements;
    return at_once < 1 ? 1 : at_once < groups ? at_once : groups;
}

/* Returns the slot of scratch memory for *at_once of `groups` groups. */
static int add_rows(struct launcher *self, const struct transform *transform, int64_t groups,
                    int64_t rows, int64_t *at_once)
{
    const int64_t elements = rows * transform->n;
    *at_once = groups_at_once(self->device, groups, elements);
    return template_add_scratch(self, (uint64_t)(*at_once * elements) * sizeof(uint64_t));
}

/* The number of launches for `groups` groups. */
static uint32_t rounds_of(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    const int64_t at_once = groups_at_once(device, groups, elements);
    return groups == 0 ? 0 : (uint32_t)((groups - 1) / at_once) + 1;
}

/* The rows of all moduli: l*r*k. */
static int64_t transform_rows(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    return out->shape[0] * out->shape[1] * out->shape[2];
}

/* Begins a job of the variant's program, with a kernel for each direction. Its space is the whole
 * output with operands out and in, and is the first argument. */
static void transform_begin(struct job *job, struct launcher *self,
                            const struct transform *transform, const char *forward,
                            const char *inverse)
{
    job_init(job, self, transform->step, transform->variant->program,
             transform->inverse ? inverse : forward);
    job->launch.variant = transform->variant;
    job->single = transform->variant->style == STYLE_SINGLE;
    if (transform->variant->tunables >> TUNABLE_multiply & 1)
        job_define_vectors(job);
    job->space = step_space(transform->step, 1);
    job_add_space(job);
}

/* Sets what all variants need of a step: its tables. */
static enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
                                         struct transform *transform, struct healcl_error *error)
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
    struct transform_tables tables;
    TRY(derive_transform(self, step, &tables, error));
    transform->q = tables.q;
    transform->twiddles = tables.twiddles;
    /* An unused table needs a stand-in. */
    transform->n_inv = tables.n_inv == SLOT_NONE ? tables.twiddles : tables.n_inv;
    transform->perm = tables.permutation == SLOT_NONE ? tables.q : tables.permutation;
    return HEALCL_OK;
}

/* Adds the last arguments, which kernels take even if they do not permute. */
static void add_tables(struct job *job, const struct transform *transform)
{
    job_add_buffer(job, transform->q);
    job_add_buffer(job, transform->twiddles);
    job_add_buffer(job, transform->perm);
    job_add_uint(job, transform->step->in[3] != NULL);
    if (transform->inverse)
        job_add_buffer(job, transform->n_inv);
}

/* ---------------------------------------------------------------- any length, any layout */

/* Transforms the rows [first, first + count). scratch: a slot. */
static enum healcl_status choose_stages_of_rows(struct launcher *self,
                                                const struct transform *transform, int scratch,
                                                int64_t first, int64_t count,
                                                struct healcl_error *error)
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
    job_add_written(&job, scratch);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->in[0]->storage->dtype));
    add_tables(&job, transform);
    job.granule = n;
    if (local_size > 1) { /* one work-group for each row */
        job.space.elements_per_item = n;
        job.rounds = (n / local_size + 2) * (2 + log2_of(n));
        return job_launch_groups(&job, (uint64_t)count, local_size, error);
    }
    /* Eight short rows of a modulus are processed at once, if every compute unit has that many. */
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

/* The general variant: any length, any layout. */
static enum healcl_status choose_stages(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    int64_t rows = transform_rows(step), at_once;
    if (rows > UINT32_MAX)
        REFUSE_FOR(error, LIMIT, "%lld rows are more than 2^32-1", (long long)rows);
    TRY(transform_init(self, plan, &transform, error));
    const int scratch = add_rows(self, &transform, rows, 1, &at_once);
    for (int64_t first = 0; first < rows; first += at_once) {
        int64_t count = rows - first < at_once ? rows - first : at_once;
        TRY(choose_stages_of_rows(self, &transform, scratch, first, count, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- in registers:
 * cl/ntt/registers.cl */

/* No residue has more bits. A transform's moduli have the dtype of its output, and its input has
 * this dtype or int8. */
static uint32_t word_bits(const struct step *step)
{
    return 8 * (uint32_t)dtype_size(step->out->storage->dtype);
}

/* Whether consecutive rows are closer together in memory than the elements of a row. */
static bool rows_lie_closer(const struct layout *layout)
{
    int axis = layout->shape[2] > 1 ? 2 : 1;
    return layout->shape[axis] > 1 && layout->stride[axis] != 0 &&
           llabs(layout->stride[axis]) < llabs(layout->stride[3]);
}

/* Log2 of the rows of one l that a work-group processes together, if rows are interleaved. */
static uint32_t log2_rows(const struct step *step, const struct healcl_device *device)
{
    const struct layout *out = &step->out->layout;
    if (!rows_lie_closer(out) && !rows_lie_closer(&step->in[0]->layout))
        return 0;
    uint32_t log2 = 0, most = log2_of(device->tuning.transform_rows * 64 / word_bits(step));
    while (log2 < most && (int64_t)1 << log2 < out->shape[1] * out->shape[2])
        log2++;
    return log2;
}

/* Whether local memory has room for the exchanges of a pass. Sets the number of pieces. */
static bool fits_memory(struct transform_pass *pass, const struct step *step,
                        const struct healcl_device *device)
{
    const uint64_t tile = device->tuning.transform_tile * sizeof(uint64_t);
    const uint64_t local = device->info.local_memory_bytes, most = tile < local ? tile : local;
    for (uint32_t bits = word_bits(step); bits >= 32; bits /= 2) {
        pass->pieces = word_bits(step) / bits;
        if ((uint64_t)NTT_SLOTS(pass->stages, pass->log2_lanes, bits) * bits / 8 <= most)
            return true;
    }
    return false;
}

/* Fits a pass of `stages` stages, with 2^radix elements in registers, to a device. A work-group has
 * transform_local_size work-items, or more up to `most`, and as many lanes as these allow. If the
 * lanes are too few for this, it has 2^LOG2_LEAST work-items: GPUs run as many at once anyway, and
 * few sizes need few programs. It has at least 2^least lanes. If possible, neighbouring work-items
 * access one cache line. */
static bool fit_pass(struct transform_pass *pass, const struct step *step,
                     const struct healcl_device *device, uint32_t stages, uint32_t radix,
                     uint32_t wanted, uint32_t least, int64_t lanes, uint64_t most)
{
    enum { LOG2_NEIGHBOURS = 3, ROUNDS_MOST = 5, LOG2_LEAST = 5 };
    const uint32_t local = log2_of(device->tuning.transform_local_size);
    uint32_t e = stages > LOG2_NEIGHBOURS ? stages - LOG2_NEIGHBOURS : stages > 0;
    e = e < radix ? e : radix;
    while (e < radix && e < stages && stages - e + wanted > local)
        e++;
    if (stages > ROUNDS_MOST * e)
        return false;
    *pass = (struct transform_pass){stages, e, wanted, 0, 1};
    while (stages - e + pass->log2_lanes < local)
        pass->log2_lanes++;
    if (lanes < (int64_t)1 << pass->log2_lanes)
        while (pass->log2_lanes > wanted && stages - e + pass->log2_lanes > LOG2_LEAST)
            pass->log2_lanes--;
    while ((uint64_t)1 << (stages - e + pass->log2_lanes) > most ||
           !fits_memory(pass, step, device))
        if (pass->log2_lanes-- <= least)
            return false;
    return true;
}

/* Decides where rows are kept between two passes. That is the output, if its layout suits the
 * columns and the input is not needed there. Otherwise it is scratch memory. */
static void plan_between(const struct step *step, const struct healcl_device *device,
                         struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    const bool inverse = step->kind == STEP_INTT, permutes = step->in[3] != NULL;
    const int64_t n = out->shape[3], of_l = out->shape[1] * out->shape[2];
    struct transform_passes *passes = &plan->passes;
    passes->together = rows_lie_closer(inverse ? out : &step->in[0]->layout) &&
                       (uint64_t)(of_l * n) <= device_scratch_bytes(device) / sizeof(uint64_t);
    passes->needs_scratch = inverse ? permutes && tensors_overlap(step->in[0], step->out)
                                    : permutes || rows_lie_closer(out) != passes->together;
    const int64_t rows = passes->together ? of_l : 1;
    plan->launches =
        passes->needs_scratch ? 2 * rounds_of(device, transform_rows(step) / rows, rows * n) : 2;
}

/* One pass is enough if a work-group holds a row, or all rows that are processed together. The
 * work-group may have twice the tuned size, or the least size. One pass moves each byte once.
 * Otherwise there are two passes with about the same number of stages. */
static const char *plan_registers(const struct step *step, const struct healcl_device *device,
                                  struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    const int64_t n = out->shape[3], rows = transform_rows(step);
    const uint32_t log2_n = log2_of((uint64_t)n), blocks = (log2_n + 1) / 2;
    const uint32_t together = log2_rows(step, device),
                   line = log2_of(8 * CACHE_LINE / word_bits(step));
    const uint32_t radix = log2_of(together > 0 ? device->tuning.transform_rows_radix
                                                : device->tuning.transform_radix);
    const uint64_t most = device->info.max_work_group_size,
                   tuned = 2 * (uint64_t)device->tuning.transform_local_size;
    struct transform_passes *passes = &plan->passes;
    *passes = (struct transform_passes){0};
    if (rows > UINT32_MAX / n) /* elements are counted in 32 bits */
        return "there are too many rows";
    const int64_t lanes = together > 0 ? out->shape[0] << together : rows;
    bool fits = fit_pass(&passes->blocks, step, device, log2_n, radix, together, together, lanes,
                         tuned < most ? tuned : most);
    if (!fits && log2_n > 1)
        fits =
            fit_pass(&passes->blocks, step, device, blocks, radix, together, 0, INT64_MAX, most) &&
            fit_pass(&passes->columns, step, device, log2_n - blocks, radix, line, 0, INT64_MAX,
                     most);
    if (!fits) {
        passes->columns.stages = 0;
        fits = fit_pass(&passes->blocks, step, device, log2_n, radix, together, 0, lanes, most);
    }
    passes->blocks.log2_rows =
        together < passes->blocks.log2_lanes ? together : passes->blocks.log2_lanes;
    if (fits && passes->columns.stages > 0)
        plan_between(step, device, plan);
    return fits ? NULL : "rows are too long for two passes";
}

/* What a pass reads rows from, or writes them to. */
struct rows {
    int slot;
    enum dtype dtype;
    struct layout layout; /* [l,r,k,n] */
    bool is_between;      /* the memory between the passes */
};

/* The bound by which kernels track ranges. It follows from the largest modulus known to the
 * host. */
static uint32_t residue_limit(struct launcher *self, const struct step *step)
{
    const uint64_t most = launcher_largest(self, step->in[Q]->storage);
    const uint32_t bits = word_bits(step);
    return most == 0 || most >> (bits - 2) > 0 ? 2 : most >> (bits - 4) > 0 ? 4 : 16;
}

/* How many bits of a lane come first in the work-item's number, to give neighbours adjacent
 * elements. all: in columns, and if permuted blocks are far apart. */
static uint32_t lane_first(const struct transform_pass *pass, const struct rows *rows, bool all)
{
    return all ? pass->log2_lanes : rows_lie_closer(&rows->layout) ? pass->log2_rows : 0;
}

/* A pass over the rows [first, end). If rows are interleaved, the range has whole l. */
struct pass_launch {
    const struct transform *transform;
    const struct transform_pass *pass;
    const struct rows *out, *in;
    bool is_columns, permutes;
    bool together; /* rows of one l are interleaved in out or in */
    int64_t first, end;
};

static void define_pass(struct job *job, const struct pass_launch *launch)
{
    const struct transform_pass *pass = launch->pass;
    const struct rows *out = launch->out, *in = launch->in;
    const uint32_t log2_n = log2_of((uint64_t)launch->transform->n);
    const bool inverse = launch->transform->inverse;
    const bool scatters = launch->permutes && pass->stages < log2_n;
    const bool all = launch->is_columns;
    job_define_type(job, "OUT", out->dtype);
    job_define_type(job, "IN", in->dtype);
    job_define_number(job, "WORD_BITS", word_bits(launch->transform->step));
    job_define_number(job, "LIMIT", residue_limit(job->launcher, launch->transform->step));
    job_define_number(job, "LOG2_N", log2_n);
    job_define_number(job, "STAGES", pass->stages);
    job_define_number(job, "LOG2_E", pass->log2_e);
    job_define_number(job, "LOG2_LANES", pass->log2_lanes);
    job_define_number(job, "LOG2_ROWS", pass->log2_rows);
    job_define_number(job, "LOAD_FIRST", lane_first(pass, in, all || (scatters && inverse)));
    job_define_number(job, "STORE_FIRST", lane_first(pass, out, all || (scatters && !inverse)));
    job_define_number(job, "PIECES", pass->pieces);
    job_define_number(job, "INVERSE", inverse);
    job_define_number(job, "COLUMNS", launch->is_columns);
    job_define_number(job, "TOGETHER", launch->together);
    job_define_number(job, "PERMUTED", launch->permutes);
    job_define_number(job, "FROM_PASS", in->is_between);
    job_define_number(job, "FOR_PASS", out->is_between);
    job_define_number(job, "IN_ORDER", in->layout.stride[3] == 1);
    job_define_number(job, "OUT_ORDER", out->layout.stride[3] == 1);
}

/* Work-groups share the columns, or blocks, of the rows. */
static uint64_t count_groups(const struct pass_launch *launch)
{
    const struct transform_pass *pass = launch->pass;
    const struct layout *out = &launch->out->layout;
    const int64_t rows = launch->together ? out->shape[1] * out->shape[2] : 1;
    const int64_t lanes =
        (launch->end - launch->first + rows - 1) / rows * (launch->transform->n >> pass->stages);
    const uint32_t of_set = pass->log2_lanes - pass->log2_rows;
    if (launch->is_columns)
        return ((uint64_t)(lanes * rows - 1) >> of_set) + 1;
    const uint64_t sets = (uint64_t)((rows - 1) >> pass->log2_rows) + 1;
    return (((uint64_t)(lanes - 1) >> of_set) + 1) * sets;
}

/* Adds the launch of a pass. perm: slot of the permutation, for blocks; SLOT_NONE: values are not
 * permuted. */
static enum healcl_status choose_pass(struct launcher *self, struct pass_launch *launch, int perm,
                                      struct healcl_error *error)
{
    const struct transform *transform = launch->transform;
    const struct transform_pass *pass = launch->pass;
    const uint32_t bits = word_bits(transform->step);
    int twiddles = transform->twiddles;
    launch->permutes = perm != SLOT_NONE && !launch->is_columns;
    launch->together =
        rows_lie_closer(&launch->out->layout) || rows_lie_closer(&launch->in->layout);
    const bool has_few = launch->is_columns && launch->together; /* twiddles for each modulus */
    if (bits == 32 || has_few)
        twiddles = derive_pass_twiddles(self, transform->step, transform->twiddles,
                                        has_few ? 1 << pass->stages : 0, bits);
    struct job job;
    transform_begin(&job, self, transform, "ntt_pass", "intt_pass");
    space_set_operand(&job.space, 0, &launch->out->layout);
    space_set_operand(&job.space, 1, &launch->in->layout);
    define_pass(&job, launch);
    job_add_uint(&job, (uint32_t)launch->first);
    job_add_uint(&job, (uint32_t)launch->end);
    job_add_output_operand(&job, launch->out->slot);
    job_add_input_operand(&job, OPERAND_A, launch->in->slot);
    job_add_buffer(&job, transform->q);
    job_add_buffer(&job, twiddles);
    job_add_buffer(&job, launch->permutes ? perm : transform->perm);
    if (transform->inverse)
        job_add_buffer(&job, transform->n_inv);
    job.rounds = (uint64_t)(2 * pass->stages + 8) << pass->log2_e;
    return job_launch_groups(&job, count_groups(launch),
                             (size_t)1 << (pass->stages - pass->log2_e + pass->log2_lanes), error);
}

/* Transforms rows by two passes. */
static enum healcl_status choose_in_two(struct launcher *self, struct transform *transform,
                                        const struct transform_passes *passes,
                                        const struct rows *out, const struct rows *in,
                                        struct healcl_error *error)
{
    const struct step *step = transform->step;
    const bool permutes = step->in[3] != NULL, together = passes->together;
    const int64_t n = transform->n, k = out->layout.shape[2], r = out->layout.shape[1];
    const int64_t rows = transform_rows(step), step_rows = together ? r * k : 1;
    int perm = SLOT_NONE;
    int64_t at_once = rows / step_rows;
    struct rows between = *out;
    const struct rows *const path[] = {in, &between, out};
    if (permutes)
        TRY(derive_inverse_permutation(self, step, &perm, error));
    if (passes->needs_scratch)
        between.slot = add_rows(self, transform, at_once, step_rows, &at_once);
    between.is_between = true;
    for (int64_t first = 0; first < rows; first += at_once * step_rows) {
        const int64_t left = rows - first, most = at_once * step_rows;
        const int64_t end = first + (left < most ? left : most);
        if (passes->needs_scratch) {
            const int64_t strides[] = {r * k * n, together ? k : k * n, together ? 1 : n,
                                       together ? r * k : 1};
            memcpy(between.layout.stride, strides, sizeof strides);
            between.layout.offset = -first * n;
        }
        for (int pass = 0; pass < 2; pass++) {
            const bool is_columns = (pass == 1) == transform->inverse;
            struct pass_launch launch = {.transform = transform,
                                         .pass = is_columns ? &passes->columns : &passes->blocks,
                                         .out = path[pass + 1],
                                         .in = path[pass],
                                         .is_columns = is_columns,
                                         .first = first,
                                         .end = end};
            TRY(choose_pass(self, &launch, perm, error));
        }
    }
    return HEALCL_OK;
}

static enum healcl_status choose_registers(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const struct tensor *a = step->in[0];
    const struct rows out = {
        .slot = STEP_OUT, .dtype = step->out->storage->dtype, .layout = step->out->layout};
    const struct rows in = {.slot = 0, .dtype = a->storage->dtype, .layout = a->layout};
    if (plan->passes.columns.stages > 0)
        return choose_in_two(self, &transform, &plan->passes, &out, &in, error);
    struct pass_launch launch = {.transform = &transform,
                                 .pass = &plan->passes.blocks,
                                 .out = &out,
                                 .in = &in,
                                 .end = transform_rows(step)};
    return choose_pass(self, &launch, step->in[3] ? transform.perm : SLOT_NONE, error);
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
               : "eight rows do not fit into one allocation";
}

/* Whether the rows of one l are interleaved element by element: [l,r,k,n] in memory as
 * [l,n,r,k]. */
static bool is_interleaved(const struct layout *layout)
{
    int64_t r = layout->shape[1], k = layout->shape[2];
    return r * k > 1 && (k == 1 || layout->stride[2] == 1) && (r == 1 || layout->stride[1] == k);
}

/* The batches of the first compute unit, if each unit has `work_items` work-items. */
static int64_t first_share(int64_t batches, int64_t units, int64_t work_items)
{
    int64_t all = units * work_items, rest = batches % all;
    return batches / all * work_items + (rest < work_items ? rest : work_items);
}

/* The number of work-items for every compute unit. It is large enough that a unit whose thread
 * wakes up late runs fewer of them, but limited by scratch memory. Among these numbers, the one
 * that shares batches most evenly is taken. */
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

/* Whether the kernel can keep its results in the rows of the output. The rows must be in natural
 * order, and aligned to the kernel's vectors, which are cache lines. OpenCL aligns buffers to 128
 * bytes. */
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

static struct row_batches divide_rows(const struct launcher *self,
                                      const struct transform *transform)
{
    const struct step *step = transform->step;
    const struct layout *out = &step->out->layout, *in = &step->in[0]->layout;
    const int64_t row_bytes = pitch_of(transform->n) * word_bits(step) / 8;
    const int64_t rows = out->shape[1] * out->shape[2]; /* of one l */
    struct row_batches batches = {.batch_rows = 1};
    batches.interleaved = (is_interleaved(out) ? NTT_OUT_INTERLEAVED : 0) |
                          (is_interleaved(in) ? NTT_IN_INTERLEAVED : 0);
    if (batches.interleaved)
        batches.batch_rows =
            limit_batch(self, rows < NTT_BATCH_ROWS ? rows : NTT_BATCH_ROWS, row_bytes);
    const bool direct = batches.batch_rows == 1 && has_direct_rows(transform);
    /* The inverse of long rows fetches its tiles anyway. */
    batches.large =
        direct && !(transform->inverse && transform->n > NTT_ROW_TILE) &&
        passes_caches(self->device, (uint64_t)layout_elements(out), step->out->storage->dtype);
    /* A permuted row is written in random order, which should happen in the caches. */
    const bool scatters = transform->inverse && step->in[3] && transform->n > NTT_ROW_TILE;
    if (batches.large || scatters || !direct || step->in[0]->storage == step->out->storage)
        batches.scratch_bytes = batches.batch_rows * row_bytes;
    batches.work_items = count_work_items(
        self, out->shape[0] * ((rows + batches.batch_rows - 1) / batches.batch_rows),
        batches.scratch_bytes);
    const int64_t most = (int64_t)device_scratch_bytes(self->device);
    if (batches.scratch_bytes > 0 && batches.work_items > most / batches.scratch_bytes)
        batches.work_items = most > batches.scratch_bytes ? most / batches.scratch_bytes : 1;
    return batches;
}

static enum healcl_status choose_rows(struct launcher *self, const struct variant_plan *plan,
                                      struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const uint32_t bits = word_bits(step);
    const int lane_twiddles = derive_lane_twiddles(self, step, transform.twiddles, bits);
    const struct row_batches batches = divide_rows(self, &transform);
    struct job job;
    transform_begin(&job, self, &transform, "ntt_rows", "intt_rows");
    job_define_number(&job, "WORD_BITS", bits);
    job_define_number(&job, "INVERSE", transform.inverse);
    const int64_t tiles = transform.n / NTT_ROW_TILE; /* a power of two, or 0 */
    job_define_number(&job, "ROW_TILES", tiles < NTT_RADIX ? (uint32_t)tiles : NTT_RADIX);
    job_define_number(&job, "INTERLEAVED", batches.interleaved);
    if (batches.interleaved) /* two rows, as in ciphertexts of two components, or any number */
        job_define_number(&job, "BATCH_ROWS", batches.batch_rows == 2 ? 2 : NTT_BATCH_ROWS);
    job_define_number(&job, "PERMUTED", step->in[3] != NULL);
    if (batches.large)
        job_define(&job, "LARGE", "");
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->out->storage->dtype));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[0]->storage->dtype));
    if (batches.scratch_bytes > 0)
        job_add_written(&job, template_add_scratch(
                                  self, (uint64_t)(batches.work_items * batches.scratch_bytes)));
    else
        job_add_buffer(&job, transform.q); /* an unused argument needs a stand-in */
    job_add_uint(&job, batches.scratch_bytes > 0);
    job_add_buffer(&job, transform.q);
    job_add_buffer(&job, transform.twiddles);
    job_add_buffer(&job, lane_twiddles);
    job_add_buffer(&job, transform.perm);
    job_add_uint(&job, (uint32_t)batches.batch_rows);
    job_add_uint(&job, transform.n * bits / 8 <= TWO_ROWS_MAX);
    job_add_buffer(&job, transform.n_inv);
    return job_launch_groups(&job, (uint64_t)batches.work_items, 1, error);
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
               : "a row does not fit into local memory";
}

static enum healcl_status choose_single(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    int64_t rows = transform_rows(step);
    TRY(transform_init(self, plan, &transform, error));
    struct job job;
    transform_begin(&job, self, &transform, "ntt_single", "intt_single");
    job_define_type(&job, "OUT", step->out->storage->dtype);
    job_define_type(&job, "IN", step->in[0]->storage->dtype);
    job_define_number(&job, "LOG2_N", log2_of((uint64_t)transform.n));
    job_add_uint(&job, (uint32_t)rows);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    add_tables(&job, &transform);
    return job_launch_groups(&job, 1, 1, error);
}

/* ---------------------------------------------------------------- the family */

enum {
    SHARED = 1 << TUNABLE_transform_local_size,
    TILED = SHARED | 1 << TUNABLE_transform_rows | 1 << TUNABLE_transform_tile |
            1 << TUNABLE_transform_radix | 1 << TUNABLE_transform_rows_radix
};

static const struct variant variants[] = {
    {"registers", STYLE_LOCAL, plan_registers, choose_registers, TILED, "ntt/registers", NULL,
     "cl/ntt/registers.cl", "rows that two passes can transform"},
    {"single", STYLE_SINGLE, plan_single, choose_single, 0, "ntt/single", NULL, "cl/ntt/single.cl",
     "rows that fit into local memory"},
    {"rows", STYLE_VECTORS, plan_rows, choose_rows,
     1 << TUNABLE_past_caches_bytes | 1 << TUNABLE_multiply, "ntt/rows", NULL, "cl/ntt/rows.cl",
     "rows of 256 elements or more"},
    {"stages", STYLE_GENERAL, plan_stages, choose_stages, SHARED | 1 << TUNABLE_elements_per_item,
     "ntt/general", NULL, "cl/ntt/general.cl", "anything"},
};

const struct family family_transform = FAMILY_OF(transform, transform, variants);
