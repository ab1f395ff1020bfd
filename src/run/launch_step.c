/* Steps as kernel launches: one function for each family of cl/. */
#include <stdio.h>

#include "run/device_executor.h"

MUST_CHECK static enum healcl_status add_tensor(struct job *job, const struct tensor *tensor,
                                                struct healcl_error *error)
{
    const struct buffer *buffer;
    TRY(executor_buffer(job->executor, tensor->storage, &buffer, error));
    job_add_buffer(job, buffer);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- cl/memory.cl */

MUST_CHECK static enum healcl_status launch_fill(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "fill");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    job_add_long(&job, step->value[0]);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_copy(struct device_executor *self,
                                                 const struct step *step,
                                                 const struct layout *out_layout,
                                                 const struct buffer *out, const struct tensor *in,
                                                 struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "copy");
    job_define_type(&job, "ELEMENT", in->storage->dtype);
    job_set_space(&job, out_layout);
    job_set_operand(&job, 0, out_layout);
    job_set_operand(&job, 1, &in->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    job_add_buffer(&job, out);
    TRY(add_tensor(&job, in, error));
    return job_launch(&job, error);
}

enum healcl_status launch_pack(struct device_executor *self, const struct step *step,
                               const struct tensor *tensor, const struct buffer *out,
                               struct healcl_error *error)
{
    struct layout packed = layout_packed(&tensor->layout);
    return launch_copy(self, step, &packed, out, tensor, error);
}

/* ---------------------------------------------------------------- cl/elementwise.cl, cl/vectors.cl
 */

struct elementwise_kernel {
    const char *table, *tensor; /* for moduli in a table, and in a tensor */
    const char *vectors;        /* in cl/vectors.cl */
};

static struct elementwise_kernel elementwise_kernel(enum step_kind kind)
{
    switch (kind) {
    case STEP_MODMUL:
        return (struct elementwise_kernel){"modmul_table", "modmul", "modmul_vectors"};
    case STEP_MODSUM:
        return (struct elementwise_kernel){"modsum_table", "modsum", "modsum_vectors"};
    case STEP_MOD: return (struct elementwise_kernel){"mod_table", "mod", "mod_vectors"};
    default: return (struct elementwise_kernel){"modneg_table", "modneg", "modneg_vectors"};
    }
}

/* The value of a scalar operand; false where input i is a tensor. An absent one counts as 0. */
static bool scalar_value(const struct device_executor *self, const struct step *step, int i,
                         int64_t *value)
{
    const struct tensor *input = step->in[i];
    *value = 0;
    if (!input)
        return true;
    if (input->storage != self->plan->constants.storage)
        return false;
    *value = self->plan->constants.values[input->layout.offset];
    return true;
}

/* The scalar operands among a and b. */
struct scalars {
    uint32_t mask; /* bit i: input i is one */
    int64_t values[2];
};

static void add_scalars(struct job *job, const struct scalars *scalars)
{
    job_add_uint(job, scalars->mask);
    job_add_long(job, scalars->values[0]);
    job_add_long(job, scalars->values[1]);
}

/* A job over the output's elements, with operands out, a and b. */
static void begin_elementwise(struct job *job, struct device_executor *self,
                              const struct step *step, const char *program, const char *kernel,
                              struct scalars *scalars)
{
    job_init(job, self, step, program, kernel);
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job_set_space(job, &step->out->layout);
    job_set_operand(job, 0, &step->out->layout);
    scalars->mask = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (scalar_value(self, step, (int)i, &scalars->values[i]))
            scalars->mask |= 1u << i;
        else
            job_set_operand(job, i + 1, &step->in[i]->layout);
}

MUST_CHECK static enum healcl_status add_elementwise_tensors(struct job *job,
                                                             const struct step *step,
                                                             const struct scalars *scalars,
                                                             struct healcl_error *error)
{
    TRY(add_tensor(job, step->out, error));
    for (uint32_t i = 0; i < 2; i++) /* some buffer must stand for a scalar's */
        TRY(add_tensor(job, scalars->mask & 1u << i ? step->out : step->in[i], error));
    return HEALCL_OK;
}

/* Whether cl/vectors.cl can do a job whose space has been simplified; see there. */
static bool suits_vectors(const struct job *job)
{
    const struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    for (uint32_t i = 0; i < job->launch.argument_count; i++)
        if (job->launch.arguments[i].buffer && job->launch.arguments[i].buffer->chunk_count > 1)
            return false;
    return job->executor->device->tuning.vectors && space->shape[last] % 8 == 0 &&
           space->operand[0].stride[last] == 1 &&
           (space->operand[1].stride[last] == 0 || space->operand[1].stride[last] == 1) &&
           (space->operand[2].stride[last] == 0 || space->operand[2].stride[last] == 1);
}

/* *done: whether the step could be done so. */
MUST_CHECK static enum healcl_status launch_vectors(struct device_executor *self,
                                                    const struct step *step, bool *done,
                                                    struct healcl_error *error)
{
    struct scalars scalars;
    struct periodic_moduli moduli;
    struct job job;
    begin_elementwise(&job, self, step, "vectors", elementwise_kernel(step->kind).vectors,
                      &scalars);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    *done = suits_vectors(&job);
    if (*done)
        TRY(derive_periodic_moduli(self, step, 2, &moduli, done, error));
    if (!*done)
        return HEALCL_OK;
    job_add_table(&job, moduli.table);
    job_add_long(&job, moduli.k);
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_scalars(&job, &scalars);
    job.granule = 8;
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_elementwise(struct device_executor *self,
                                                        const struct step *step,
                                                        struct healcl_error *error)
{
    bool done;
    TRY(launch_vectors(self, step, &done, error));
    if (done)
        return HEALCL_OK;
    struct elementwise_kernel kernel = elementwise_kernel(step->kind);
    struct scalars scalars;
    const struct buffer *table;
    struct layout moduli;
    TRY(derive_moduli(self, step, 2, &table, &moduli, error));
    struct job job;
    begin_elementwise(&job, self, step, "core", table ? kernel.table : kernel.tensor, &scalars);
    job_set_operand(&job, 3, &moduli);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    if (table)
        job_add_table(&job, table);
    else
        TRY(add_tensor(&job, step->in[2], error));
    add_scalars(&job, &scalars);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_absolute(struct device_executor *self,
                                                     const struct step *step,
                                                     struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "absolute");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- cl/sum.cl */

MUST_CHECK static enum healcl_status launch_axis_modsum(struct device_executor *self,
                                                        const struct step *step,
                                                        struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0];
    struct layout a_view = layout_drop_axis(a, axis), q_view;
    const struct buffer *q;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    /* q varies along the last axis only: there the vector has its elements in order. */
    q_view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < q_view.rank; i++)
        q_view.stride[i] = i + 1 == q_view.rank;

    struct job job;
    job_init(&job, self, step, "core", "axis_modsum");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &q_view);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    job_add_table(&job, q);
    job_add_long(&job, a->shape[axis]);
    job_add_long(&job, a->stride[axis]);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_modmul_axis_sum(struct device_executor *self,
                                                            const struct step *step,
                                                            struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    const struct buffer *q, *perm;
    TRY(derive_modulus_vector(self, step, 2, &q, error));
    perm = q; /* some buffer must stand for one that is not used */
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &perm, error));

    /* The space is [reps,k,n]; out and b go along n by m, a by l. */
    struct layout out_view = *out, a_view = layout_drop_axis(a, 1);
    struct layout b_rows = layout_drop_axis(b, 0), b_view = layout_insert_axis(&b_rows, 0, 1, 0);
    struct layout q_view = {.rank = 3, .stride = {0, 1, 0}};
    out_view.stride[2] = 0;
    b_view.stride[2] = 0;

    struct job job;
    job_init(&job, self, step, "core", "modmul_axis_sum");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, out);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &b_view);
    job_set_operand(&job, 3, &q_view);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    TRY(add_tensor(&job, step->in[1], error));
    job_add_table(&job, q);
    job_add_table(&job, perm);
    job_add_uint(&job, step->in[3] != NULL);
    job_add_long(&job, a->shape[1]);
    job_add_long(&job, a->stride[1]);
    job_add_long(&job, b->stride[0]);
    job_add_long(&job, out->stride[2]);
    job_add_long(&job, b->stride[2]);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- cl/transform.cl, cl/rows.cl */

/* Scratch memory that the rows of a transform take at one time, if one row does not take more. */
enum { ROWS_BYTES = 64 << 20 };

struct transform {
    const struct step *step;
    int64_t n, k;
    bool inverse;
    const struct buffer *q, *twiddles, *n_inv, *perm;
    struct buffer rows;
};

/* Loads, transforms and stores the rows [first, first + count). */
MUST_CHECK static enum healcl_status transform_rows(struct device_executor *self,
                                                    const struct transform *transform,
                                                    int64_t first, int64_t count,
                                                    struct healcl_error *error)
{
    const struct step *step = transform->step;
    uint64_t n = (uint64_t)transform->n;
    bool permutes = step->in[3] != NULL;
    struct job job;

    job_init(&job, self, step, "core", "load");
    job_define_type(&job, "ELEMENT", step->in[0]->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job.space.first = (uint64_t)first * n;
    job.space.end = (uint64_t)(first + count) * n;
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_add_space(&job);
    job_add_table(&job, &transform->rows);
    TRY(add_tensor(&job, step->in[0], error));
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->perm);
    job_add_uint(&job, transform->inverse && permutes);
    TRY(job_launch(&job, error));

    job_init(&job, self, step, "core", transform->inverse ? "inverse" : "forward");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_add_table(&job, &transform->rows);
    job_add_long(&job, transform->n);
    job_add_uint(&job, (uint32_t)transform->k);
    job_add_uint(&job, (uint32_t)(first % transform->k));
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->twiddles);
    TRY(job_launch_groups(&job, (uint64_t)count, self->device->tuning.transform_local_size, error));

    job_init(&job, self, step, "core", "store");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job.space.first = (uint64_t)first * n;
    job.space.end = (uint64_t)(first + count) * n;
    job_set_operand(&job, 0, &step->out->layout);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    job_add_table(&job, &transform->rows);
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->n_inv);
    job_add_uint(&job, transform->inverse);
    job_add_table(&job, transform->perm);
    job_add_uint(&job, !transform->inverse && permutes);
    return job_launch(&job, error);
}

/* The general way: any length, any layout; all rows are loaded, transformed and stored in turn. */
MUST_CHECK static enum healcl_status launch_stages(struct device_executor *self,
                                                   struct transform *transform, int64_t rows,
                                                   struct healcl_error *error)
{
    int64_t row_bytes = transform->n * (int64_t)sizeof(uint64_t);
    int64_t at_once = row_bytes < ROWS_BYTES ? ROWS_BYTES / row_bytes : 1;
    if (at_once > rows)
        at_once = rows;
    TRY(device_buffer_acquire(self->device, (uint64_t)(at_once * row_bytes), false,
                              &transform->rows, error));
    enum healcl_status status = HEALCL_OK;
    for (int64_t first = 0; status == HEALCL_OK && first < rows; first += at_once) {
        int64_t count = rows - first < at_once ? rows - first : at_once;
        status = transform_rows(self, transform, first, count, error);
    }
    device_buffer_release(self->device, &transform->rows);
    return status;
}

/* Whether cl/rows.cl can do a transform and the device is one that it is for. */
MUST_CHECK static enum healcl_status can_run_rows(struct device_executor *self,
                                                  const struct transform *transform, bool *can,
                                                  struct healcl_error *error)
{
    enum { ROW_LENGTH_MIN = 128 };
    const struct buffer *in, *out;
    TRY(executor_buffer(self, transform->step->in[0]->storage, &in, error));
    TRY(executor_buffer(self, transform->step->out->storage, &out, error));
    *can = self->device->tuning.vectors && transform->n >= ROW_LENGTH_MIN && in->chunk_count == 1 &&
           out->chunk_count == 1;
    return HEALCL_OK;
}

/* Whole rows in one work-item each, several work-items for every compute unit. */
MUST_CHECK static enum healcl_status launch_rows(struct device_executor *self,
                                                 struct transform *transform, int64_t rows,
                                                 struct healcl_error *error)
{
    const struct step *step = transform->step;
    const struct buffer *lane_twiddles, *reversed_lane_twiddles;
    TRY(derive_lane_twiddles(self, step, 2, 1, false, &lane_twiddles, error));
    reversed_lane_twiddles = lane_twiddles;
    if (step->in[3])
        TRY(derive_lane_twiddles(self, step, 2, 1, true, &reversed_lane_twiddles, error));
    int64_t work_items = 8 * (int64_t)self->device->info.compute_units;
    if (work_items > rows)
        work_items = rows;
    TRY(device_buffer_acquire(self->device,
                              (uint64_t)(work_items * transform->n) * sizeof(uint64_t), false,
                              &transform->rows, error));
    struct job job;
    job_init(&job, self, step, "rows", transform->inverse ? "inverse_rows" : "forward_rows");
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_add_space(&job);
    enum healcl_status status = add_tensor(&job, step->out, error);
    if (status == HEALCL_OK)
        status = add_tensor(&job, step->in[0], error);
    job_add_uint(&job, (uint32_t)dtype_size(step->out->storage->dtype));
    job_add_uint(&job, (uint32_t)dtype_size(step->in[0]->storage->dtype));
    job_add_table(&job, &transform->rows);
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->twiddles);
    job_add_table(&job, lane_twiddles);
    job_add_table(&job, reversed_lane_twiddles);
    job_add_table(&job, transform->perm);
    if (transform->inverse)
        job_add_table(&job, transform->n_inv);
    else
        job_add_uint(&job, step->in[3] != NULL);
    if (status == HEALCL_OK)
        status = job_launch_groups(&job, (uint64_t)work_items, 1, error);
    device_buffer_release(self->device, &transform->rows);
    return status;
}

MUST_CHECK static enum healcl_status launch_transform(struct device_executor *self,
                                                      const struct step *step,
                                                      struct healcl_error *error)
{
    const struct layout *out = &step->out->layout;
    struct transform transform = {
        .step = step, .n = out->shape[3], .k = out->shape[2], .inverse = step->kind == STEP_INTT};
    if (transform.k > INT32_MAX)
        REFUSE(error, "argument 'q': %lld moduli are more than 2^31-1", (long long)transform.k);
    TRY(derive_modulus_vector(self, step, 1, &transform.q, error));
    TRY(derive_twiddles(self, step, 2, 1, &transform.twiddles, error));
    /* Some buffer must stand for one that is not used. */
    transform.n_inv = transform.twiddles;
    transform.perm = transform.q;
    if (step->in[4])
        TRY(derive_twiddles(self, step, 4, 1, &transform.n_inv, error));
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &transform.perm, error));

    int64_t rows = out->shape[0] * out->shape[1] * out->shape[2];
    bool can;
    TRY(can_run_rows(self, &transform, &can, error));
    return can ? launch_rows(self, &transform, rows, error)
               : launch_stages(self, &transform, rows, error);
}

/* ---------------------------------------------------------------- cl/digits.cl */

static void begin_digits(struct job *job, struct device_executor *self, const struct step *step,
                         const char *kernel)
{
    job_init(job, self, step, "digits", kernel);
    enum dtype dtype = step->in[0]->storage->dtype;
    job_define_type(job, "A", dtype);
    job_define(job, "A_UNSIGNED", dtype == DTYPE_INT32 ? "uint" : "ulong");
    job_define_type(job, "OUT", step->out->storage->dtype);
}

MUST_CHECK static enum healcl_status launch_digits(struct device_executor *self,
                                                   const struct step *step,
                                                   struct healcl_error *error)
{
    const struct layout *out = &step->out->layout;
    uint32_t digit_axis = out->rank - 1;
    struct layout out_view = layout_drop_axis(out, digit_axis);
    struct job job;
    begin_digits(&job, self, step, "digits");
    job_set_space(&job, &step->in[0]->layout);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    job_add_long(&job, step->value[0]);
    job_add_long(&job, out->shape[digit_axis]);
    job_add_long(&job, out->stride[digit_axis]);
    job_add_table(&job, &self->status);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_digits_full_q(struct device_executor *self,
                                                          const struct step *step,
                                                          struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    struct layout a_view = layout_drop_axis(a, 1), out_view = layout_drop_axis(out, 1);
    const struct buffer *q, *inverses;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    TRY(derive_crt_inverses(self, step, 1, &inverses, error));
    char limbs[24];
    snprintf(limbs, sizeof limbs, "%lld", (long long)a->shape[1]);
    struct job job;
    begin_digits(&job, self, step, "digits_full_q");
    job_define(&job, "LIMBS", limbs);
    job_set_space(&job, &a_view);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &a_view);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    job_add_table(&job, q);
    job_add_table(&job, inverses);
    job_add_long(&job, step->value[0]);
    job_add_long(&job, out->shape[1]);
    job_add_long(&job, out->stride[1]);
    job_add_long(&job, a->stride[1]);
    job_add_table(&job, &self->status);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- cl/gather.cl */

MUST_CHECK static enum healcl_status launch_gather(struct device_executor *self,
                                                   const struct step *step,
                                                   struct healcl_error *error)
{
    struct layout a_view = step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0];
    int64_t size = a_view.shape[axis], stride = a_view.stride[axis];
    a_view.stride[axis] = 0;
    TRY(derive_index_check(self, step, 1, axis, size, step->value[1] != 0, error));
    struct job job;
    job_init(&job, self, step, "gather", "gather");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_define_type(&job, "INDEX", step->in[1]->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &step->in[1]->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_tensor(&job, step->out, error));
    TRY(add_tensor(&job, step->in[0], error));
    TRY(add_tensor(&job, step->in[1], error));
    job_add_long(&job, size);
    job_add_long(&job, stride);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- all of them */

enum healcl_status launch_step(struct device_executor *self, const struct step *step,
                               struct healcl_error *error)
{
    switch (step->kind) {
    case STEP_FILL: return launch_fill(self, step, error);
    case STEP_COPY: {
        const struct buffer *out;
        TRY(executor_buffer(self, step->out->storage, &out, error));
        return launch_copy(self, step, &step->out->layout, out, step->in[0], error);
    }
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG: return launch_elementwise(self, step, error);
    case STEP_ABS: return launch_absolute(self, step, error);
    case STEP_AXIS_MODSUM: return launch_axis_modsum(self, step, error);
    case STEP_MODMUL_AXIS_SUM: return launch_modmul_axis_sum(self, step, error);
    case STEP_NTT:
    case STEP_INTT: return launch_transform(self, step, error);
    case STEP_DIGITS: return launch_digits(self, step, error);
    case STEP_DIGITS_FULL_Q: return launch_digits_full_q(self, step, error);
    case STEP_GATHER: return launch_gather(self, step, error);
    case STEP_UPLOAD:
    case STEP_DOWNLOAD:
    case STEP_RELEASE: break;
    }
    return HEALCL_OK;
}
