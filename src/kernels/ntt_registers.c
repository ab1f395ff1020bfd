/*
 * Transforms in registers: cl/ntt/registers.cl.
 *
 * A pass computes some stages of a transform. Each work-item keeps a few elements in registers, and
 * exchanges them with its work-group through local memory. The stages of long rows are divided into
 * two passes: one over columns, one over contiguous blocks. A lane is one column or block.
 */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/transform.h"

/* Whether rows are interleaved: consecutive rows are closer together in memory than the elements of
 * a row. */
static bool rows_lie_closer(const struct layout *layout)
{
    const int axis = layout->shape[AXIS_K] > 1 ? AXIS_K : AXIS_R;
    return layout->shape[axis] > 1 && layout->stride[axis] != 0 &&
           llabs(layout->stride[axis]) < llabs(layout->stride[AXIS_N]);
}

/* Log2 of the rows of one l that a work-group processes together; 0 if rows are not interleaved. */
static uint32_t log2_rows_together(const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    const int64_t rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    if (!rows_lie_closer(out) && !rows_lie_closer(&step->in[INPUT_A]->layout))
        return 0;
    const uint32_t most =
        log2_of(plan->device->tuning.transform_rows * 64 / transform_word_bits(step));
    uint32_t log2 = 0;
    while (log2 < most && (int64_t)1 << log2 < rows_of_l)
        log2++;
    return log2;
}

/* Whether local memory has room for the exchanges of a pass. Words may be exchanged in two pieces,
 * which takes half the memory. Sets the number of pieces. */
static bool fits_memory(struct transform_pass *pass, const struct variant_plan *plan)
{
    const uint32_t bits = transform_word_bits(plan->step);
    const uint64_t tile = plan->device->tuning.transform_tile * sizeof(uint64_t);
    const uint64_t local = plan->device->info.local_memory_bytes;
    const uint64_t most = tile < local ? tile : local;
    for (uint32_t piece_bits = bits; piece_bits >= 32; piece_bits /= 2) {
        const int slots = NTT_SLOTS(pass->stages, pass->log2_lanes, piece_bits);
        pass->pieces = bits / piece_bits;
        if ((uint64_t)slots * piece_bits / 8 <= most)
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

/* Log2 of the elements that a work-item keeps in registers. If possible, 2^LOG2_NEIGHBOURS
 * neighbouring work-items access one cache line: then a lane has as many work-items. It has fewer
 * if the lanes that a work-group should have would need more than 2^log2_local work-items. */
static uint32_t log2_elements_of_item(const struct pass_limits *limits, uint32_t log2_local)
{
    enum { LOG2_NEIGHBOURS = 3 };
    const uint32_t stages = limits->stages;
    const uint32_t most = stages < limits->log2_radix ? stages : limits->log2_radix;
    uint32_t log2_elements = stages > LOG2_NEIGHBOURS ? stages - LOG2_NEIGHBOURS : 1;
    if (log2_elements > most)
        log2_elements = most;
    while (log2_elements < most && stages - log2_elements + limits->log2_lanes > log2_local)
        log2_elements++;
    return log2_elements;
}

/* Log2 of the lanes of a work-group. It has 2^log2_local work-items, or more if the lanes that it
 * should have need them. If the transform has too few lanes for this, a work-group has 2^LOG2_LEAST
 * work-items: GPUs run as many at once anyway, and few sizes need few programs. */
static uint32_t log2_lanes_of_group(const struct pass_limits *limits, uint32_t log2_items_of_lane,
                                    uint32_t log2_local)
{
    enum { LOG2_LEAST = 5 };
    uint32_t log2_lanes = limits->log2_lanes;
    while (log2_items_of_lane + log2_lanes < log2_local)
        log2_lanes++;
    const bool has_too_few_lanes = limits->lanes < (int64_t)1 << log2_lanes;
    while (has_too_few_lanes && log2_lanes > limits->log2_lanes &&
           log2_items_of_lane + log2_lanes > LOG2_LEAST)
        log2_lanes--;
    return log2_lanes;
}

/* Fits a pass to the plan's device: first the elements of a work-item, then the lanes of a
 * work-group, which are reduced until the work-group can be launched. Returns whether it fits. */
static bool fit_pass(struct transform_pass *pass, const struct variant_plan *plan,
                     const struct pass_limits *limits)
{
    enum { EXCHANGES_MOST = 5 };
    const uint32_t log2_local = log2_of(plan->device->tuning.transform_local_size);
    const uint32_t log2_elements = log2_elements_of_item(limits, log2_local);
    const uint32_t log2_items_of_lane = limits->stages - log2_elements;
    /* Between two exchanges a work-item computes one stage for each bit of its elements' index. */
    if (limits->stages > EXCHANGES_MOST * log2_elements)
        return false;
    *pass = (struct transform_pass){.stages = limits->stages,
                                    .log2_elements = log2_elements,
                                    .log2_lanes =
                                        log2_lanes_of_group(limits, log2_items_of_lane, log2_local),
                                    .pieces = 1};
    while ((uint64_t)1 << (log2_items_of_lane + pass->log2_lanes) > limits->work_items_most ||
           !fits_memory(pass, plan)) {
        if (pass->log2_lanes <= limits->log2_lanes_min)
            return false;
        pass->log2_lanes--;
    }
    return true;
}

/* Decides where rows are kept between two passes. That is the output, if its layout suits the
 * columns and no pass still reads an input there. Otherwise it is scratch memory. The forward
 * transform starts with columns, the inverse ends with them. A permutation, which the other pass
 * applies, needs its rows elsewhere. */
static void plan_between(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct tensor *a = step->in[INPUT_A];
    const struct layout *out = &step->out->layout;
    const bool inverse = step->kind == STEP_INTT, permutes = step->in[PERMUTATION] != NULL;
    const int64_t n = out->shape[AXIS_N], rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    const uint64_t scratch_words = device_scratch_bytes(plan->device) / sizeof(uint64_t);
    const bool l_fits_scratch = (uint64_t)(rows_of_l * n) <= scratch_words;
    const struct layout *of_columns = inverse ? out : &a->layout; /* their end of the transform */
    struct transform_passes *passes = &plan->passes;
    passes->interleaves = rows_lie_closer(of_columns) && l_fits_scratch;
    if (inverse)
        passes->needs_scratch = permutes && tensors_overlap(a, step->out);
    else
        passes->needs_scratch = permutes || rows_lie_closer(out) != passes->interleaves;
    const int64_t rows_of_group = passes->interleaves ? rows_of_l : 1;
    const int64_t groups = transform_rows(step) / rows_of_group;
    const uint32_t parts =
        passes->needs_scratch ? transform_count_parts(plan->device, groups, rows_of_group * n) : 1;
    plan->launches = 2 * parts;
}

/* The limits of one pass over whole rows. A work-group may have twice the tuned size. It holds a
 * row, or all rows that are processed together. */
static struct pass_limits limits_of_rows(const struct variant_plan *plan, uint32_t log2_together)
{
    const struct layout *out = &plan->step->out->layout;
    const struct device_tuning *tuning = &plan->device->tuning;
    const bool is_interleaved = log2_together > 0;
    const uint64_t twice_tuned = 2 * (uint64_t)tuning->transform_local_size;
    const uint64_t most = plan->device->info.max_work_group_size;
    return (struct pass_limits){
        .stages = log2_of((uint64_t)out->shape[AXIS_N]),
        .log2_radix =
            log2_of(is_interleaved ? tuning->transform_rows_radix : tuning->transform_radix),
        .log2_lanes = log2_together,
        .log2_lanes_min = log2_together,
        .lanes = is_interleaved ? out->shape[AXIS_L] << log2_together : transform_rows(plan->step),
        .work_items_most = twice_tuned < most ? twice_tuned : most};
}

/* Fits two passes with about the same number of stages: over blocks and over columns. row: the
 * limits of one pass. */
static bool fit_two_passes(struct variant_plan *plan, const struct pass_limits *row)
{
    const uint32_t words_of_line = 8 * CACHE_LINE / transform_word_bits(plan->step);
    if (row->stages < 2)
        return false;
    struct pass_limits block = *row;
    block.stages = (row->stages + 1) / 2;
    block.log2_lanes_min = 0;
    block.lanes = INT64_MAX; /* rows of two passes have enough columns and blocks */
    block.work_items_most = plan->device->info.max_work_group_size;
    struct pass_limits column = block;
    column.stages = row->stages - block.stages;
    column.log2_lanes = log2_of(words_of_line); /* neighbouring columns share a cache line */
    return fit_pass(&plan->passes.blocks, plan, &block) &&
           fit_pass(&plan->passes.columns, plan, &column);
}

/* Fits one pass by work-groups of any size, with fewer lanes. */
static bool fit_large_pass(struct variant_plan *plan, const struct pass_limits *row)
{
    struct pass_limits limits = *row;
    limits.log2_lanes_min = 0;
    limits.work_items_most = plan->device->info.max_work_group_size;
    plan->passes.columns.stages = 0;
    return fit_pass(&plan->passes.blocks, plan, &limits);
}

/* One pass moves each byte once. So it is preferred to two if work-groups need not be large. */
const char *ntt_plan_registers(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const int64_t n = step->out->layout.shape[AXIS_N];
    struct transform_passes *passes = &plan->passes;
    *passes = (struct transform_passes){0};
    plan->takes_addend = true;
    /* Elements are counted in 32 bits. */
    OBSTACLE_IF(transform_rows(step) > UINT32_MAX / n, "there are too many rows");
    const uint32_t log2_together = log2_rows_together(plan);
    const struct pass_limits row = limits_of_rows(plan, log2_together);
    const bool fits = fit_pass(&passes->blocks, plan, &row) || fit_two_passes(plan, &row) ||
                      fit_large_pass(plan, &row);
    OBSTACLE_IF(!fits, "rows are too long for two passes");
    passes->blocks.log2_rows =
        log2_together < passes->blocks.log2_lanes ? log2_together : passes->blocks.log2_lanes;
    if (passes->columns.stages > 0)
        plan_between(plan);
    return NULL;
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
    const uint32_t bits = transform_word_bits(step);
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

/* The launch of a pass over the columns of all rows, or over their blocks. Elements are permuted in
 * the pass over blocks. The last pass, which writes no rows in between, adds the addend. */
static struct pass_launch pass_over(const struct transform *transform,
                                    const struct transform_passes *passes, bool is_columns,
                                    const struct rows *out, const struct rows *in)
{
    const struct step *step = transform->step;
    return (struct pass_launch){.transform = transform,
                                .pass = is_columns ? &passes->columns : &passes->blocks,
                                .out = out,
                                .in = in,
                                .is_columns = is_columns,
                                .permutes = step->in[PERMUTATION] && !is_columns,
                                .adds = step->in[ADDEND] && !out->is_between,
                                .is_interleaved =
                                    rows_lie_closer(&out->layout) || rows_lie_closer(&in->layout),
                                .end = transform_rows(step)};
}

/* Defines the constants that cl/ntt/registers.cl is compiled with. */
static void define_pass(struct job *job, const struct pass_launch *launch)
{
    const struct step *step = launch->transform->step;
    const struct transform_pass *pass = launch->pass;
    const struct rows *out = launch->out, *in = launch->in;
    const uint32_t log2_n = log2_of((uint64_t)launch->transform->n);
    const bool inverse = launch->transform->inverse, is_columns = launch->is_columns;
    /* A permutation moves the elements of a block far apart: in the input of the inverse, and in
     * the output of the forward transform. */
    const bool blocks_are_apart = launch->permutes && pass->stages < log2_n;
    const bool loads_apart = is_columns || (blocks_are_apart && inverse);
    const bool stores_apart = is_columns || (blocks_are_apart && !inverse);
    job_define_type(job, "OUT", out->dtype);
    job_define_type(job, "IN", in->dtype);
    job_define_number(job, "WORD_BITS", transform_word_bits(step));
    job_define_number(job, "LIMIT", residue_limit(job->launcher, step));
    job_define_number(job, "LOG2_N", log2_n);
    job_define_number(job, "STAGES", pass->stages);
    job_define_number(job, "LOG2_E", pass->log2_elements);
    job_define_number(job, "LOG2_LANES", pass->log2_lanes);
    job_define_number(job, "LOG2_ROWS", pass->log2_rows);
    job_define_number(job, "LOAD_FIRST", lane_bits_first(pass, in, loads_apart));
    job_define_number(job, "STORE_FIRST", lane_bits_first(pass, out, stores_apart));
    job_define_number(job, "PIECES", pass->pieces);
    job_define_number(job, "INVERSE", inverse);
    job_define_number(job, "COLUMNS", is_columns);
    job_define_number(job, "TOGETHER", launch->is_interleaved);
    job_define_number(job, "PERMUTED", launch->permutes);
    job_define_number(job, "FROM_PASS", in->is_between);
    job_define_number(job, "FOR_PASS", out->is_between);
    job_define_number(job, "IN_ORDER", in->layout.stride[AXIS_N] == 1);
    job_define_number(job, "OUT_ORDER", out->layout.stride[AXIS_N] == 1);
    if (launch->adds)
        job_define(job, "ADDEND", "");
}

/* The number of work-groups. Each has 2^log2_lanes columns or blocks. If rows are interleaved, its
 * blocks are the same ones of 2^log2_rows rows. */
static uint64_t count_groups(const struct pass_launch *launch)
{
    const struct transform_pass *pass = launch->pass;
    const struct layout *out = &launch->out->layout;
    const int64_t rows_of_l = out->shape[AXIS_R] * out->shape[AXIS_K];
    const int64_t rows_together = launch->is_interleaved ? rows_of_l : 1;
    const int64_t sets_of_rows = blocks_for(launch->end - launch->first, rows_together);
    const int64_t lanes = sets_of_rows * (launch->transform->n >> pass->stages); /* of one row */
    const int64_t rows_of_group = (int64_t)1 << pass->log2_rows;
    const int64_t lanes_of_group = (int64_t)1 << (pass->log2_lanes - pass->log2_rows);
    if (launch->is_columns)
        return (uint64_t)blocks_for(lanes * rows_together, lanes_of_group);
    return (uint64_t)(blocks_for(lanes, lanes_of_group) * blocks_for(rows_together, rows_of_group));
}

/* The slot of the twiddles of a pass. Columns use 2^stages twiddles of each modulus. If rows are
 * interleaved, neighbours have different moduli: then these twiddles are stored side by side. */
static int twiddles_of_pass(struct launcher *self, const struct pass_launch *launch)
{
    const struct step *step = launch->transform->step;
    const int twiddles = launch->transform->tables.twiddles;
    const bool are_beside = launch->is_columns && launch->is_interleaved;
    const uint32_t bits = transform_word_bits(step);
    if (bits != 32 && !are_beside)
        return twiddles;
    return derive_pass_twiddles(self, step, twiddles, are_beside ? 1 << launch->pass->stages : 0,
                                bits);
}

/* Adds the launch of a pass. perm: slot of the permutation, or a stand-in. The kernel's parameters:
 * space, first and last row, out, in, q, twiddles, perm, and if it has them addend and n_inv. */
static enum healcl_status choose_pass(struct launcher *self, const struct pass_launch *launch,
                                      int perm, struct healcl_error *error)
{
    const struct transform *transform = launch->transform;
    const struct transform_pass *pass = launch->pass;
    const uint32_t log2_items_of_lane = pass->stages - pass->log2_elements;
    const size_t local_size = (size_t)1 << (log2_items_of_lane + pass->log2_lanes);
    const int twiddles = twiddles_of_pass(self, launch);
    struct job job;
    transform_begin(&job, self, transform, "ntt_pass", "intt_pass");
    space_set_operand(&job.space, OPERAND_OUT, &launch->out->layout);
    space_set_operand(&job.space, OPERAND_A, &launch->in->layout);
    if (launch->adds)
        space_set_operand(&job.space, OPERAND_B, &transform->step->in[ADDEND]->layout);
    define_pass(&job, launch);
    job_add_uint(&job, (uint32_t)launch->first);
    job_add_uint(&job, (uint32_t)launch->end);
    job_add_output_operand(&job, launch->out->slot);
    job_add_input_operand(&job, OPERAND_A, launch->in->slot);
    job_add_buffer(&job, transform->tables.q);
    job_add_buffer(&job, twiddles);
    job_add_buffer(&job, perm);
    if (launch->adds)
        job_add_input_operand(&job, OPERAND_B, ADDEND);
    if (transform->inverse || launch->adds)
        job_add_buffer(&job, transform->tables.n_inv);
    job.rounds = (uint64_t)(2 * pass->stages + 8) << pass->log2_elements; /* at most */
    return job_launch_groups(&job, count_groups(launch), local_size, error);
}

/* The layout [l,r,k,n] of rows in scratch memory that begins with row `first`. Interleaved rows are
 * in memory as [l,n,r,k]. */
static struct layout scratch_layout(const struct layout *out, bool interleaves, int64_t first)
{
    const int64_t r = out->shape[AXIS_R], k = out->shape[AXIS_K], n = out->shape[AXIS_N];
    struct layout layout = *out;
    layout.offset = -first * n;
    layout.stride[AXIS_L] = r * k * n;
    layout.stride[AXIS_R] = interleaves ? k : k * n;
    layout.stride[AXIS_K] = interleaves ? 1 : n;
    layout.stride[AXIS_N] = interleaves ? r * k : 1;
    return layout;
}

/* Transforms rows by two passes: columns then blocks, or for the inverse blocks then columns. If
 * there is scratch memory between them, a part of the rows at a time. */
static enum healcl_status choose_two_passes(struct launcher *self,
                                            const struct transform *transform,
                                            const struct transform_passes *passes,
                                            const struct rows *out, const struct rows *in,
                                            struct healcl_error *error)
{
    const struct layout *shape = &out->layout;
    const int64_t rows = transform_rows(transform->step);
    const int64_t rows_of_group =
        passes->interleaves ? shape->shape[AXIS_R] * shape->shape[AXIS_K] : 1;
    int64_t groups_of_part = rows / rows_of_group;
    struct rows between = *out;
    between.is_between = true;
    if (passes->needs_scratch)
        between.slot = transform_add_scratch(self, groups_of_part, rows_of_group * transform->n,
                                             &groups_of_part);
    int perm = transform->tables.permutation;
    if (transform->step->in[PERMUTATION])
        TRY(derive_permutation(self, transform->step, PERMUTATION_INVERTED, &perm, error));
    const int64_t rows_of_part = groups_of_part * rows_of_group;
    for (int64_t first = 0; first < rows; first += rows_of_part) {
        if (passes->needs_scratch)
            between.layout = scratch_layout(shape, passes->interleaves, first);
        const bool starts_with_columns = !transform->inverse;
        struct pass_launch launches[] = {
            pass_over(transform, passes, starts_with_columns, &between, in),
            pass_over(transform, passes, !starts_with_columns, out, &between)};
        for (int i = 0; i < 2; i++) {
            launches[i].first = first;
            launches[i].end = smaller(first + rows_of_part, rows);
            TRY(choose_pass(self, &launches[i], perm, error));
        }
    }
    return HEALCL_OK;
}

/* Adds the launches of cl/ntt/registers.cl. Rows that fit in a work-group's registers take one
 * pass. Longer rows take two: one transforms the columns of a row, the other its blocks. */
enum healcl_status ntt_choose_registers(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct tensor *a = step->in[INPUT_A];
    const struct rows out = {
        .slot = STEP_OUT, .dtype = step->out->storage->dtype, .layout = step->out->layout};
    const struct rows in = {.slot = INPUT_A, .dtype = a->storage->dtype, .layout = a->layout};
    struct transform transform;
    TRY(transform_init(self, plan, &transform, error));
    if (plan->passes.columns.stages > 0)
        return choose_two_passes(self, &transform, &plan->passes, &out, &in, error);
    const struct pass_launch blocks = pass_over(&transform, &plan->passes, false, &out, &in);
    return choose_pass(self, &blocks, transform.tables.permutation, error);
}
