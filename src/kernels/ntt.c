/* Number-theoretic transforms: cl/ntt. */
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "kernels/kernels.h"

/* The axes of a transform: batch, components, moduli, coefficients. A row is all coefficients of
 * one modulus. */
enum { AXIS_L, AXIS_R, AXIS_K, AXIS_N };

/* A transform that is being launched. */
struct transform {
    const struct step *step;
    const struct variant *variant;
    int64_t n, k;
    bool inverse;
    int q, twiddles, n_inv, perm; /* slots */
};

/* Kernels with scratch memory transform a part of the rows at a time. Rows that must stay together
 * form a group of `elements` elements. Returns the number of groups that get scratch memory at
 * once: those that 64 MiB and one allocation can hold, but at least one. */
static int64_t groups_at_once(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    enum { ROWS_BYTES = 64 << 20 };
    const uint64_t most = device_scratch_bytes(device);
    const uint64_t bytes = most < ROWS_BYTES ? most : ROWS_BYTES;
    const int64_t fit = (int64_t)(bytes / sizeof(uint64_t)) / elements;
    const int64_t at_once = fit < groups ? fit : groups;
    return at_once < 1 ? 1 : at_once;
}

/* Adds scratch memory for *at_once of `groups` groups of rows. Returns its slot. */
static int add_rows(struct launcher *self, const struct transform *transform, int64_t groups,
                    int64_t rows_of_group, int64_t *at_once)
{
    const int64_t elements = rows_of_group * transform->n;
    *at_once = groups_at_once(self->device, groups, elements);
    return template_add_scratch(self, (uint64_t)(*at_once * elements) * sizeof(uint64_t));
}

/* The number of launches for `groups` groups, at_once in each. */
static uint32_t rounds_of(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    const int64_t at_once = groups_at_once(device, groups, elements);
    return groups == 0 ? 0 : (uint32_t)((groups - 1) / at_once) + 1;
}

/* The rows of all moduli: l*r*k. */
static int64_t transform_rows(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    return out->shape[AXIS_L] * out->shape[AXIS_R] * out->shape[AXIS_K];
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
    job->space = step_space(transform->step, 1 /* input */);
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
                                    .n = out->shape[AXIS_N],
                                    .k = out->shape[AXIS_K],
                                    .inverse = step->kind == STEP_INTT};
    if (transform->k > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument 'q': %lld moduli are more than 2^31-1",
                   (long long)transform->k);
    struct transform_tables tables;
    TRY(derive_transform(self, step, &tables, error));
    transform->q = tables.q;
    transform->twiddles = tables.twiddles;
    /* Kernels take all tables. One that the step does not have gets a stand-in, which is not read.
     */
    transform->n_inv = tables.n_inv == SLOT_NONE ? tables.twiddles : tables.n_inv;
    transform->perm = tables.permutation == SLOT_NONE ? tables.q : tables.permutation;
    return HEALCL_OK;
}

/* Adds the last arguments: q, twiddles, perm, whether there is a permutation, and for the inverse
 * n_inv. */
static void add_tables(struct job *job, const struct transform *transform)
{
    job_add_buffer(job, transform->q);
    job_add_buffer(job, transform->twiddles);
    job_add_buffer(job, transform->perm);
    job_add_uint(job, transform->step->in[PERMUTATION] != NULL);
    if (transform->inverse)
        job_add_buffer(job, transform->n_inv);
}

/* ---------------------------------------------------------------- any length, any layout */

/* Adds a launch for the rows [first, first + count). A work-group, or a work-item if local_size is
 * 1, transforms a row in scratch memory, stage by stage. scratch: a slot. */
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
    job.single = false; /* this general kernel always has several work-items */
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job.space.first = (uint64_t)first * n;
    job.space.end = (uint64_t)(first + count) * n;
    job_add_written(&job, scratch);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->in[INPUT_A]->storage->dtype));
    add_tables(&job, transform);
    job.granule = n;
    if (local_size > 1) { /* one work-group for each row */
        job.space.elements_per_item = n;
        job.rounds = (n / local_size + 2) * (2 + log2_of(n)); /* all stages, reading and writing */
        return job_launch_groups(&job, (uint64_t)count, local_size, error);
    }
    /* Eight short rows of a modulus are processed at once, if every compute unit has that many. */
    const int64_t units = self->device->info.compute_units, eight_of_each = LANES * transform->k;
    if (n < NTT_ROW_MIN && count / units >= eight_of_each)
        job.granule *= (uint64_t)eight_of_each;
    job.rounds = log2_of(n);
    return job_launch_of(&job, 1 /* work-item in a group */, error);
}

static const char *plan_stages(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    plan->launches = rounds_of(device, transform_rows(step), step->out->layout.shape[AXIS_N]) +
                     (step->in[ADDEND] != NULL);
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
 * cl/ntt/registers.cl. A pass computes some stages of a transform. Each work-item keeps a few
 * elements in registers, and exchanges them with its work-group through local memory. The stages of
 * long rows are divided into two passes: one over columns, one over contiguous blocks. A lane is
 * one column or block. */

/* The words of kernels: no residue has more bits. A transform's moduli have the dtype of its
 * output, and its input has this dtype or int8. */
static uint32_t word_bits(const struct step *step)
{
    return 8 * (uint32_t)dtype_size(step->out->storage->dtype);
}

/* Whether rows are interleaved: consecutive rows are closer together in memory than the elements of
 * a row. */
static bool rows_lie_closer(const struct layout *layout)
{
    const int axis = layout->shape[AXIS_K] > 1 ? AXIS_K : AXIS_R;
    return layout->shape[axis] > 1 && layout->stride[axis] != 0 &&
           llabs(layout->stride[axis]) < llabs(layout->stride[AXIS_N]);
}

/* Log2 of the rows of one l that a work-group processes together, if rows are interleaved. */
static uint32_t log2_rows(const struct step *step, const struct healcl_device *device)
{
    const struct layout *out = &step->out->layout;
    if (!rows_lie_closer(out) && !rows_lie_closer(&step->in[INPUT_A]->layout))
        return 0;
    uint32_t log2 = 0, most = log2_of(device->tuning.transform_rows * 64 / word_bits(step));
    while (log2 < most && (int64_t)1 << log2 < out->shape[AXIS_R] * out->shape[AXIS_K])
        log2++;
    return log2;
}

/* Whether local memory has room for the exchanges of a pass. Words may be exchanged in two pieces,
 * which takes half the memory. Sets the number of pieces. */
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

/* What a pass should fit. */
struct pass_limits {
    uint32_t stages;
    uint32_t log2_radix;      /* the most elements of a work-item */
    uint32_t log2_lanes;      /* that a work-group should have */
    uint32_t log2_lanes_min;  /* that it must have */
    int64_t lanes;            /* of the whole transform */
    uint64_t work_items_most; /* of a work-group */
};

/* Fits a pass to a device. Returns whether it fits. A work-group has transform_local_size
 * work-items, or more if the lanes that it should have need them, and as many lanes as these allow.
 * If the transform has too few lanes for this, a work-group has 2^LOG2_LEAST work-items: GPUs run
 * as many at once anyway, and few sizes need few programs. If possible, 2^LOG2_NEIGHBOURS
 * neighbouring work-items access one cache line: then a lane has as many work-items. */
static bool fit_pass(struct transform_pass *pass, const struct step *step,
                     const struct healcl_device *device, const struct pass_limits *limits)
{
    enum { LOG2_NEIGHBOURS = 3, EXCHANGES_MOST = 5, LOG2_LEAST = 5 };
    const uint32_t stages = limits->stages, radix = limits->log2_radix;
    const uint32_t log2_local = log2_of(device->tuning.transform_local_size);
    uint32_t log2_elements = stages > LOG2_NEIGHBOURS ? stages - LOG2_NEIGHBOURS : stages > 0;
    log2_elements = log2_elements < radix ? log2_elements : radix;
    while (log2_elements < radix && log2_elements < stages &&
           stages - log2_elements + limits->log2_lanes > log2_local)
        log2_elements++;
    /* Between two exchanges a work-item computes one stage for each bit of its elements' index. */
    if (stages > EXCHANGES_MOST * log2_elements)
        return false;
    const uint32_t log2_items_of_lane = stages - log2_elements;
    *pass = (struct transform_pass){.stages = stages,
                                    .log2_elements = log2_elements,
                                    .log2_lanes = limits->log2_lanes,
                                    .pieces = 1};
    while (log2_items_of_lane + pass->log2_lanes < log2_local)
        pass->log2_lanes++;
    if (limits->lanes < (int64_t)1 << pass->log2_lanes)
        while (pass->log2_lanes > limits->log2_lanes &&
               log2_items_of_lane + pass->log2_lanes > LOG2_LEAST)
            pass->log2_lanes--;
    while ((uint64_t)1 << (log2_items_of_lane + pass->log2_lanes) > limits->work_items_most ||
           !fits_memory(pass, step, device))
        if (pass->log2_lanes-- <= limits->log2_lanes_min)
            return false;
    return true;
}

/* Decides where rows are kept between two passes. That is the output, if its layout suits the
 * columns and no pass still reads an input there. Otherwise it is scratch memory. The forward
 * transform starts with columns, the inverse ends with them. A permutation, which the other pass
 * applies, needs its rows elsewhere. */
static void plan_between(const struct step *step, const struct healcl_device *device,
                         struct variant_plan *plan)
{
    const struct layout *out = &step->out->layout;
    const bool inverse = step->kind == STEP_INTT, permutes = step->in[PERMUTATION] != NULL;
    const int64_t n = out->shape[AXIS_N], rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    struct transform_passes *passes = &plan->passes;
    const bool fits = (uint64_t)(rows_of_l * n) <= device_scratch_bytes(device) / sizeof(uint64_t);
    passes->interleaves = rows_lie_closer(inverse ? out : &step->in[INPUT_A]->layout) && fits;
    passes->needs_scratch = inverse ? permutes && tensors_overlap(step->in[INPUT_A], step->out)
                                    : permutes || rows_lie_closer(out) != passes->interleaves;
    const int64_t rows = passes->interleaves ? rows_of_l : 1;
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
    const int64_t n = out->shape[AXIS_N], rows = transform_rows(step);
    const uint32_t log2_n = log2_of((uint64_t)n), block_stages = (log2_n + 1) / 2;
    const uint32_t log2_together = log2_rows(step, device); /* interleaved rows; 0: they are not */
    const uint32_t log2_line = log2_of(8 * CACHE_LINE / word_bits(step)); /* words */
    const uint64_t most = device->info.max_work_group_size;
    const uint64_t tuned = 2 * (uint64_t)device->tuning.transform_local_size;
    struct transform_passes *passes = &plan->passes;
    *passes = (struct transform_passes){0};
    plan->takes_addend = true;
    if (rows > UINT32_MAX / n) /* elements are counted in 32 bits */
        return "there are too many rows";
    struct pass_limits row = {
        .stages = log2_n,
        .log2_radix = log2_of(log2_together > 0 ? device->tuning.transform_rows_radix
                                                : device->tuning.transform_radix),
        .log2_lanes = log2_together,
        .log2_lanes_min = log2_together,
        .lanes = log2_together > 0 ? out->shape[AXIS_L] << log2_together : rows,
        .work_items_most = tuned < most ? tuned : most};
    struct pass_limits block = row;
    block.stages = block_stages;
    block.log2_lanes_min = 0;
    block.lanes = INT64_MAX; /* rows of two passes have enough columns and blocks */
    block.work_items_most = most;
    struct pass_limits column = block;
    column.stages = log2_n - block_stages;
    column.log2_lanes = log2_line; /* neighbouring columns share a cache line */
    bool fits = fit_pass(&passes->blocks, step, device, &row);
    if (!fits && log2_n > 1)
        fits = fit_pass(&passes->blocks, step, device, &block) &&
               fit_pass(&passes->columns, step, device, &column);
    if (!fits) { /* one pass by larger work-groups, with fewer lanes */
        passes->columns.stages = 0;
        row.log2_lanes_min = 0;
        row.work_items_most = most;
        fits = fit_pass(&passes->blocks, step, device, &row);
    }
    passes->blocks.log2_rows =
        log2_together < passes->blocks.log2_lanes ? log2_together : passes->blocks.log2_lanes;
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

/* Kernels let values grow to this multiple of the modulus before they reduce them: a word must hold
 * that. 16 leaves 4 bits of a word free, and 4 leaves 2 bits. It follows from the largest modulus
 * known to the host. */
static uint32_t residue_limit(struct launcher *self, const struct step *step)
{
    const uint64_t largest = launcher_largest(self, step->in[Q]->storage);
    const uint32_t bits = word_bits(step);
    const bool is_unknown = largest == 0;
    if (is_unknown || largest >> (bits - 2) > 0)
        return 2;
    return largest >> (bits - 4) > 0 ? 4 : 16;
}

/* The number of a work-item names its lane and its elements. Returns how many bits of the lane come
 * first, to give neighbouring work-items adjacent elements of memory. all_lanes: of columns, and if
 * permuted blocks are far apart. */
static uint32_t lane_bits_first(const struct transform_pass *pass, const struct rows *rows,
                                bool all_lanes)
{
    if (all_lanes)
        return pass->log2_lanes;
    return rows_lie_closer(&rows->layout) ? pass->log2_rows : 0;
}

/* A pass over the rows [first, end). If rows are interleaved, the range has whole l. */
struct pass_launch {
    const struct transform *transform;
    const struct transform_pass *pass;
    const struct rows *out, *in;
    bool is_columns, permutes, adds;
    bool is_interleaved; /* rows of one l are, in out or in */
    int64_t first, end;
};

/* Defines the constants that cl/ntt/registers.cl is compiled with. */
static void define_pass(struct job *job, const struct pass_launch *launch)
{
    const struct transform_pass *pass = launch->pass;
    const struct rows *out = launch->out, *in = launch->in;
    const uint32_t log2_n = log2_of((uint64_t)launch->transform->n);
    const bool inverse = launch->transform->inverse;
    const bool scatters = launch->permutes && pass->stages < log2_n; /* blocks of a row */
    job_define_type(job, "OUT", out->dtype);
    job_define_type(job, "IN", in->dtype);
    job_define_number(job, "WORD_BITS", word_bits(launch->transform->step));
    job_define_number(job, "LIMIT", residue_limit(job->launcher, launch->transform->step));
    job_define_number(job, "LOG2_N", log2_n);
    job_define_number(job, "STAGES", pass->stages);
    job_define_number(job, "LOG2_E", pass->log2_elements);
    job_define_number(job, "LOG2_LANES", pass->log2_lanes);
    job_define_number(job, "LOG2_ROWS", pass->log2_rows);
    job_define_number(job, "LOAD_FIRST",
                      lane_bits_first(pass, in, launch->is_columns || (scatters && inverse)));
    job_define_number(job, "STORE_FIRST",
                      lane_bits_first(pass, out, launch->is_columns || (scatters && !inverse)));
    job_define_number(job, "PIECES", pass->pieces);
    job_define_number(job, "INVERSE", inverse);
    job_define_number(job, "COLUMNS", launch->is_columns);
    job_define_number(job, "TOGETHER", launch->is_interleaved);
    job_define_number(job, "PERMUTED", launch->permutes);
    job_define_number(job, "FROM_PASS", in->is_between);
    job_define_number(job, "FOR_PASS", out->is_between);
    job_define_number(job, "IN_ORDER", in->layout.stride[AXIS_N] == 1);
    job_define_number(job, "OUT_ORDER", out->layout.stride[AXIS_N] == 1);
    if (launch->adds) {
        job_define(job, "ADDEND", "");
        space_set_operand(&job->space, OPERAND_B, &launch->transform->step->in[ADDEND]->layout);
    }
}

/* ceil(count / 2^log2_size), for count above 0. */
static uint64_t ceiling(int64_t count, uint32_t log2_size)
{
    return ((uint64_t)(count - 1) >> log2_size) + 1;
}

/* The number of work-groups. Each has 2^log2_lanes columns or blocks. If rows are interleaved, its
 * blocks are the same ones of 2^log2_rows rows. */
static uint64_t count_groups(const struct pass_launch *launch)
{
    const struct transform_pass *pass = launch->pass;
    const struct layout *out = &launch->out->layout;
    const int64_t rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    const int64_t rows = launch->is_interleaved ? rows_of_l : 1; /* that are interleaved */
    const int64_t lanes_of_row = launch->transform->n >> pass->stages;
    const int64_t lanes = (launch->end - launch->first + rows - 1) / rows * lanes_of_row;
    const uint32_t log2_lanes_of_row = pass->log2_lanes - pass->log2_rows;
    return launch->is_columns ? ceiling(lanes * rows, log2_lanes_of_row)
                              : ceiling(lanes, log2_lanes_of_row) * ceiling(rows, pass->log2_rows);
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
    launch->adds = transform->step->in[ADDEND] && !launch->out->is_between;
    launch->is_interleaved =
        rows_lie_closer(&launch->out->layout) || rows_lie_closer(&launch->in->layout);
    /* Columns of a pass use 2^stages twiddles of each modulus. If rows are interleaved, neighbours
     * have different moduli: then these twiddles are stored side by side. */
    const bool needs_beside = launch->is_columns && launch->is_interleaved;
    if (bits == 32 || needs_beside)
        twiddles = derive_pass_twiddles(self, transform->step, transform->twiddles,
                                        needs_beside ? 1 << pass->stages : 0, bits);
    struct job job;
    transform_begin(&job, self, transform, "ntt_pass", "intt_pass");
    space_set_operand(&job.space, OPERAND_OUT, &launch->out->layout);
    space_set_operand(&job.space, OPERAND_A, &launch->in->layout);
    define_pass(&job, launch);
    job_add_uint(&job, (uint32_t)launch->first);
    job_add_uint(&job, (uint32_t)launch->end);
    job_add_output_operand(&job, launch->out->slot);
    job_add_input_operand(&job, OPERAND_A, launch->in->slot);
    job_add_buffer(&job, transform->q);
    job_add_buffer(&job, twiddles);
    job_add_buffer(&job, launch->permutes ? perm : transform->perm);
    if (launch->adds)
        job_add_input_operand(&job, OPERAND_B, ADDEND);
    if (transform->inverse || launch->adds)
        job_add_buffer(&job, transform->n_inv);
    const uint32_t log2_items_of_lane = pass->stages - pass->log2_elements;
    job.rounds = (uint64_t)(2 * pass->stages + 8) << pass->log2_elements; /* at most */
    return job_launch_groups(&job, count_groups(launch),
                             (size_t)1 << (log2_items_of_lane + pass->log2_lanes), error);
}

/* Transforms rows by two passes: columns then blocks, or for the inverse blocks then columns. With
 * scratch memory between them, a part of the rows at a time. */
static enum healcl_status choose_in_two(struct launcher *self, struct transform *transform,
                                        const struct transform_passes *passes,
                                        const struct rows *out, const struct rows *in,
                                        struct healcl_error *error)
{
    const struct step *step = transform->step;
    const bool permutes = step->in[PERMUTATION] != NULL;
    const int64_t n = transform->n, k = out->layout.shape[AXIS_K], r = out->layout.shape[AXIS_R];
    const int64_t rows = transform_rows(step), group_rows = passes->interleaves ? r * k : 1;
    const int64_t contiguous[] = {r * k * n, k * n, n, 1};  /* strides of [l,r,k,n] */
    const int64_t interleaved[] = {r * k * n, k, 1, r * k}; /* in memory as [l,n,r,k] */
    int perm = SLOT_NONE;
    int64_t at_once = rows / group_rows;
    struct rows between = *out;
    const struct rows *const path[] = {in, &between, out};
    if (permutes)
        TRY(derive_inverse_permutation(self, step, &perm, error));
    if (passes->needs_scratch)
        between.slot = add_rows(self, transform, at_once, group_rows, &at_once);
    between.is_between = true;
    for (int64_t first = 0; first < rows; first += at_once * group_rows) {
        const int64_t left = rows - first, most = at_once * group_rows;
        const int64_t end = first + (left < most ? left : most);
        if (passes->needs_scratch) {
            memcpy(between.layout.stride, passes->interleaves ? interleaved : contiguous,
                   sizeof contiguous);
            between.layout.offset = -first * n; /* scratch memory begins with row `first` */
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

/* One pass over all rows, or two passes. */
static enum healcl_status choose_registers(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    const struct tensor *a = step->in[INPUT_A];
    const struct rows out = {
        .slot = STEP_OUT, .dtype = step->out->storage->dtype, .layout = step->out->layout};
    const struct rows in = {.slot = INPUT_A, .dtype = a->storage->dtype, .layout = a->layout};
    if (plan->passes.columns.stages > 0)
        return choose_in_two(self, &transform, &plan->passes, &out, &in, error);
    struct pass_launch launch = {.transform = &transform,
                                 .pass = &plan->passes.blocks,
                                 .out = &out,
                                 .in = &in,
                                 .end = transform_rows(step)};
    return choose_pass(self, &launch, step->in[PERMUTATION] ? transform.perm : SLOT_NONE, error);
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
static const char *plan_rows(const struct step *step, const struct healcl_device *device,
                             struct variant_plan *plan)
{
    int64_t n = step->out->layout.shape[AXIS_N];
    const int64_t batch_bytes = NTT_BATCH_ROWS * pitch_of(n) * (int64_t)sizeof(uint64_t);
    plan->launches += step->in[ADDEND] != NULL;
    OBSTACLE_IF(n < NTT_ROW_MIN, "rows are shorter than 256");
    OBSTACLE_IF(transform_rows(step) > UINT32_MAX, "there are too many rows");
    OBSTACLE_IF(batch_bytes > (int64_t)device->info.max_allocation_bytes,
                "eight rows do not fit into one allocation");
    return NULL;
}

/* Whether the rows of one l are interleaved element by element: [l,r,k,n] in memory as
 * [l,n,r,k]. */
static bool is_interleaved(const struct layout *layout)
{
    int64_t r = layout->shape[AXIS_R], k = layout->shape[AXIS_K];
    return r * k > 1 && (k == 1 || layout->stride[AXIS_K] == 1) &&
           (r == 1 || layout->stride[AXIS_R] == k);
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
    bool in_natural_order = transform->inverse || !step->in[PERMUTATION];
    bool aligned = out->offset * size % CACHE_LINE == 0;
    for (int axis = AXIS_L; axis < AXIS_N; axis++)
        aligned = aligned && (out->shape[axis] == 1 || out->stride[axis] * size % CACHE_LINE == 0);
    return in_natural_order && aligned && out->stride[AXIS_N] == 1;
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
    const int64_t row_bytes = pitch_of(transform->n) * word_bits(step) / 8;
    const int64_t rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    struct row_batches batches = {.batch_rows = 1};
    batches.interleaved = (is_interleaved(out) ? NTT_OUT_INTERLEAVED : 0) |
                          (is_interleaved(in) ? NTT_IN_INTERLEAVED : 0);
    if (batches.interleaved)
        batches.batch_rows =
            limit_batch(self, rows_of_l < NTT_BATCH_ROWS ? rows_of_l : NTT_BATCH_ROWS, row_bytes);
    const bool direct = batches.batch_rows == 1 && has_direct_rows(transform);
    /* The inverse of long rows fetches its tiles anyway. */
    batches.large =
        direct && !(transform->inverse && transform->n > NTT_ROW_TILE) &&
        passes_caches(self->device, (uint64_t)layout_elements(out), step->out->storage->dtype);
    /* A permuted row is written in random order, which should happen in the caches. */
    const bool scatters =
        transform->inverse && step->in[PERMUTATION] && transform->n > NTT_ROW_TILE;
    if (batches.large || scatters || !direct || step->in[INPUT_A]->storage == step->out->storage)
        batches.scratch_bytes = batches.batch_rows * row_bytes;
    const int64_t batches_of_l = (rows_of_l + batches.batch_rows - 1) / batches.batch_rows;
    batches.work_items =
        count_work_items(self, out->shape[AXIS_L] * batches_of_l, batches.scratch_bytes);
    const int64_t most = (int64_t)device_scratch_bytes(self->device);
    if (batches.scratch_bytes > 0 && batches.work_items > most / batches.scratch_bytes)
        batches.work_items = most > batches.scratch_bytes ? most / batches.scratch_bytes : 1;
    return batches;
}

/* Each work-item transforms some batches of rows. The kernel's parameters: space, out, in, their
 * element sizes, scratch, whether to use it, q, twiddles, lane twiddles, perm, rows of a batch,
 * whether the next row is prefetched, n_inv. */
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
    job_define_number(&job, "PERMUTED", step->in[PERMUTATION] != NULL);
    if (batches.large)
        job_define(&job, "LARGE", "");
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    job_add_uint(&job, (uint32_t)dtype_size(step->out->storage->dtype));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[INPUT_A]->storage->dtype));
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
    return job_launch_groups(&job, (uint64_t)batches.work_items, 1 /* each */, error);
}

/* ---------------------------------------------------------------- by one work-item:
 * cl/ntt/single.cl */

/* For FPGAs: a row must fit into local memory. */
static const char *plan_single(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    const uint64_t n = (uint64_t)step->out->layout.shape[AXIS_N];
    plan->launches += step->in[ADDEND] != NULL;
    OBSTACLE_IF(n < 2, "rows are shorter than 2");
    OBSTACLE_IF(n * sizeof(uint64_t) > device->info.local_memory_bytes,
                "a row does not fit into local memory");
    return NULL;
}

/* For FPGAs: one work-item transforms all rows, one after the other, in local memory. */

/* Adds one work-item that transforms all rows. */
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
    job_define_type(&job, "IN", step->in[INPUT_A]->storage->dtype);
    job_define_number(&job, "LOG2_N", log2_of((uint64_t)transform.n));
    job_add_uint(&job, (uint32_t)rows);
    job_add_output_operand(&job, STEP_OUT);
    job_add_input_operand(&job, OPERAND_A, INPUT_A);
    add_tables(&job, &transform);
    return job_launch_groups(&job, 1 /* group */, 1 /* work-item */, error);
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
