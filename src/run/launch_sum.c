/* Sums modulo q: cl/sum.cl, cl/vector_sums.cl, cl/vector_row_sums.cl, cl/vector_runs.cl. */
#include "run/launch.h"

/* As in cl/lanes.cl, cl/vector_sums.cl and cl/vector_row_sums.cl. */
enum { LANES = 8, COLUMNS = 64, ROWS_OF_PART = 64 };

/* Elements of a row whose lanes are worth adding up one by one. */
enum { ROW_MIN = 64 };

/* Terms of a sum on vectors. */
static const int64_t TERMS_MAX = 1 << 30;

/* Whether cl/vector_sums.cl can do sums of so many terms in rows of n elements. */
static bool suits_vectors(const struct job *job, int64_t count, int64_t n)
{
    const struct healcl_device *device = job->executor->device;
    return prefers(job->executor, FAMILY_sum, VARIANT_VECTORS) && device->info.double_width > 0 &&
           !job_has_chunks(job) && count < TERMS_MAX && n % LANES == 0;
}

/* Of so many terms, those that one launch adds up: work-items of some devices cannot go round a
 * loop as often as they like. */
static int64_t terms_at_once(const struct device_executor *self, int64_t terms)
{
    int64_t most = job_rounds_max(self);
    return terms < most ? terms : most;
}

/* A job over the output's elements, with operands out and a at the axis's first element. */
MUST_CHECK static enum healcl_status begin_axis_modsum(struct job *job,
                                                       struct device_executor *self,
                                                       const struct step *step, const char *program,
                                                       const char *kernel,
                                                       struct healcl_error *error)
{
    struct layout a_view = layout_drop_axis(&step->in[0]->layout, (uint32_t)step->value[0]);
    job_init(job, self, step, program, kernel);
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job_add_space(job);
    TRY(job_add_output(job, step->out, error));
    TRY(job_add_input(job, step->in[0], error));
    job_set_space(job, &step->out->layout);
    job_set_operand(job, 0, &step->out->layout);
    job_set_operand(job, 1, &a_view);
    return HEALCL_OK;
}

static void add_summed_axis(struct job *job, const struct step *step)
{
    const struct layout *a = &step->in[0]->layout;
    job_add_long(job, a->shape[step->value[0]]);
    job_add_long(job, a->stride[step->value[0]]);
}

/* *done: whether the step could be done so. */
MUST_CHECK static enum healcl_status launch_axis_modsum_vectors(struct device_executor *self,
                                                                const struct step *step, bool *done,
                                                                struct healcl_error *error)
{
    struct job job;
    struct periodic_moduli moduli;
    TRY(begin_axis_modsum(&job, self, step, "vectors", "axis_modsum_vectors", error));
    job_simplify_space(&job);
    const struct space *space = &job.space;
    uint32_t last = space->rank - 1;
    *done = suits_vectors(&job, step->in[0]->layout.shape[step->value[0]], space->shape[last]) &&
            space->operand[0].stride[last] == 1 && space->operand[1].stride[last] == 1;
    if (*done)
        TRY(derive_periodic_moduli(self, step, 1, &moduli, done, error));
    if (!*done)
        return HEALCL_OK;
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_summed_axis(&job, step);
    job.granule = LANES;
    return job_launch_alone(&job, error);
}

/* The same where a's elements lie side by side along out's last axes, [n,k] or [n], but out's only
 * k by k or one by one: see axis_modsum_runs. */
MUST_CHECK static enum healcl_status launch_axis_modsum_runs(struct device_executor *self,
                                                             const struct step *step, bool *done,
                                                             struct healcl_error *error)
{
    struct job job;
    struct periodic_moduli moduli;
    TRY(begin_axis_modsum(&job, self, step, "vectors", "axis_modsum_runs", error));
    job_simplify_space(&job);
    struct space *space = &job.space;
    uint32_t last = space->rank - 1;
    int64_t k = space->shape[last];
    bool together = last > 0 && (k == 2 || k == 4) && space->operand[0].stride[last] == 1 &&
                    space->operand[1].stride[last] == 1 && space->operand[1].stride[last - 1] == k;
    if (together) {
        space->rank = last--;
        space->shape[last] *= k;
        space->operand[1].stride[last] = 1;
    } else
        k = 1;
    int64_t out_stride = space->operand[0].stride[last];
    space->operand[0].stride[last] = 0;
    *done = suits_vectors(&job, step->in[0]->layout.shape[step->value[0]], space->shape[last]) &&
            space->operand[1].stride[last] == 1;
    if (*done)
        TRY(derive_periodic_moduli(self, step, 1, &moduli, done, error));
    *done = *done && (moduli.k == 1 || (together && moduli.k == k));
    if (!*done)
        return HEALCL_OK;
    job_add_table(&job, moduli.lanes);
    add_summed_axis(&job, step);
    job_add_long(&job, k);
    job_add_long(&job, out_stride);
    job.granule = LANES;
    return job_launch_alone(&job, error);
}

/* The same for the axis before a last one of 1, 2, 4 or 8: see axis_modsum_rows. */
MUST_CHECK static enum healcl_status launch_axis_modsum_rows(struct device_executor *self,
                                                             const struct step *step, bool *done,
                                                             struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    uint32_t axis = (uint32_t)step->value[0], last = a->rank - 1;
    int64_t count = a->shape[axis], k = a->shape[last];
    struct layout a_rows = layout_drop_axis(a, last), out_rows = layout_drop_axis(out, last - 1);
    struct periodic_moduli moduli;
    struct job job;
    a_rows = layout_drop_axis(&a_rows, axis);
    job_init(&job, self, step, "vectors", "axis_modsum_rows");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &out_rows);
    job_set_operand(&job, 0, &out_rows);
    job_set_operand(&job, 1, &a_rows);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    *done = k > 0 && suits_vectors(&job, count, LANES) && LANES % k == 0 && a->stride[last] == 1 &&
            a->stride[axis] == k && count * k >= ROW_MIN;
    if (*done)
        TRY(derive_periodic_moduli(self, step, 1, &moduli, done, error));
    if (!*done)
        return HEALCL_OK;
    job_add_table(&job, moduli.table);
    job_add_long(&job, moduli.k);
    job_add_long(&job, count);
    job_add_long(&job, k);
    job_add_long(&job, out->stride[out->rank - 1]);
    return job_launch_alone(&job, error);
}

/* Terms [first, first + count) of the sum; added to out where they are not the first. */
MUST_CHECK static enum healcl_status launch_axis_modsum_part(struct device_executor *self,
                                                             const struct step *step,
                                                             const struct buffer *q, int64_t first,
                                                             int64_t count,
                                                             struct healcl_error *error)
{
    int64_t stride = step->in[0]->layout.stride[step->value[0]];
    /* q varies along the last axis only: there the vector has its elements in order. */
    struct layout q_view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < q_view.rank; i++)
        q_view.stride[i] = i + 1 == q_view.rank;

    struct job job;
    TRY(begin_axis_modsum(&job, self, step, "core", "axis_modsum", error));
    job.rounds = (uint64_t)count;
    job.space.operand[1].offset += first * stride;
    job_set_operand(&job, 2, &q_view);
    job_simplify_space(&job);
    job_add_table(&job, q);
    job_add_long(&job, count);
    job_add_long(&job, stride);
    job_add_uint(&job, first > 0);
    return job_launch(&job, error);
}

enum healcl_status launch_axis_modsum(struct device_executor *self, const struct step *step,
                                      struct healcl_error *error)
{
    bool done;
    TRY(launch_axis_modsum_vectors(self, step, &done, error));
    if (!done)
        TRY(launch_axis_modsum_rows(self, step, &done, error));
    if (!done)
        TRY(launch_axis_modsum_runs(self, step, &done, error));
    if (done)
        return HEALCL_OK;
    const struct buffer *q;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    int64_t count = step->in[0]->layout.shape[step->value[0]], first = 0;
    do {
        int64_t part = terms_at_once(self, count - first);
        TRY(launch_axis_modsum_part(self, step, q, first, part, error));
        first += part;
    } while (first < count);
    return HEALCL_OK;
}

/* What both kernels of modmul_axis_sum take after the space: the tensors, q and the permutation. */
MUST_CHECK static enum healcl_status add_product_arguments(struct job *job,
                                                           struct device_executor *self,
                                                           const struct step *step,
                                                           struct healcl_error *error)
{
    const struct buffer *q, *perm;
    TRY(derive_modulus_vector(self, step, 2, &q, error));
    perm = q; /* some buffer must stand for one that is not used */
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &perm, error));
    job_add_space(job);
    TRY(job_add_output(job, step->out, error));
    TRY(job_add_input(job, step->in[0], error));
    TRY(job_add_input(job, step->in[1], error));
    job_add_table(job, q);
    job_add_table(job, perm);
    job_add_uint(job, step->in[3] != NULL);
    return HEALCL_OK;
}

/* *done: whether the step could be done so. The space is as modmul_axis_sum_vectors wants it. */
MUST_CHECK static enum healcl_status launch_product_vectors(struct device_executor *self,
                                                            const struct step *step, bool *done,
                                                            struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2];
    const int64_t part = (int64_t)LANES * COLUMNS;
    struct job job;
    job_init(&job, self, step, "vectors", "modmul_axis_sum_vectors");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    TRY(add_product_arguments(&job, self, step, error));
    *done = suits_vectors(&job, a->shape[1], n) && a->stride[3] == 1;
    if (!*done)
        return HEALCL_OK;
    struct layout parts = {.rank = 3, .shape = {k, (n + part - 1) / part, reps}};
    job_set_space(&job, &parts);
    job.space.shape[3] = n;
    job.space.shape[4] = a->shape[1];
    job.space.operand[0] = (struct operand){
        .offset = out->offset, .stride = {out->stride[1], 0, out->stride[0], out->stride[2], 0}};
    job.space.operand[1] = (struct operand){
        .offset = a->offset, .stride = {a->stride[2], 0, a->stride[0], a->stride[3], a->stride[1]}};
    job.space.operand[2] = (struct operand){
        .offset = b->offset, .stride = {b->stride[1], 0, 0, b->stride[2], b->stride[0]}};
    return job_launch_alone(&job, error);
}

/* The same in HEAL's layout: see modmul_axis_sum_rows. */
MUST_CHECK static enum healcl_status launch_product_rows(struct device_executor *self,
                                                         const struct step *step, bool *done,
                                                         struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2], count = a->shape[1];
    struct layout parts = {.rank = 2, .shape = {(n + ROWS_OF_PART - 1) / ROWS_OF_PART, reps}};
    struct periodic_moduli moduli;
    struct job job;
    job_init(&job, self, step, "vectors", "modmul_axis_sum_rows");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    TRY(add_product_arguments(&job, self, step, error));
    *done = k > 0 && LANES % k == 0 && suits_vectors(&job, count, n) && a->stride[2] == 1 &&
            b->stride[1] == 1 && a->stride[1] == k && b->stride[0] == k && count * k >= LANES;
    if (*done)
        TRY(derive_periodic_moduli(self, step, 2, &moduli, done, error));
    if (!*done)
        return HEALCL_OK;
    job_set_space(&job, &parts);
    job.space.operand[0] = (struct operand){.offset = out->offset, .stride = {0, out->stride[0]}};
    job.space.operand[1] = (struct operand){.offset = a->offset, .stride = {0, a->stride[0]}};
    job.space.operand[2] = (struct operand){.offset = b->offset};
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, n);
    job_add_long(&job, count);
    job_add_long(&job, k);
    job_add_long(&job, a->stride[3]);
    job_add_long(&job, b->stride[2]);
    job_add_long(&job, out->stride[2]);
    job_add_long(&job, out->stride[1]);
    return job_launch_alone(&job, error);
}

/* Adds the products [first, first + count) to out. */
MUST_CHECK static enum healcl_status launch_product_part(struct device_executor *self,
                                                         const struct step *step, int64_t first,
                                                         int64_t count, struct healcl_error *error)
{
    /* The space is [reps,k,n]; out and b go along n by m, a by l. */
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    struct layout out_view = *out, a_view = layout_drop_axis(a, 1);
    struct layout b_rows = layout_drop_axis(b, 0), b_view = layout_insert_axis(&b_rows, 0, 1, 0);
    struct layout q_view = {.rank = 3, .stride = {0, 1, 0}};
    out_view.stride[2] = 0;
    b_view.stride[2] = 0;
    a_view.offset += first * a->stride[1];
    b_view.offset += first * b->stride[0];

    struct job job;
    job_init(&job, self, step, "core", "modmul_axis_sum");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job.rounds = (uint64_t)count;
    TRY(add_product_arguments(&job, self, step, error));
    job_set_space(&job, out);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &a_view);
    job_set_operand(&job, 2, &b_view);
    job_set_operand(&job, 3, &q_view);
    job_add_long(&job, count);
    job_add_long(&job, a->stride[1]);
    job_add_long(&job, b->stride[0]);
    job_add_long(&job, out->stride[2]);
    job_add_long(&job, b->stride[2]);
    return job_launch(&job, error);
}

enum healcl_status launch_modmul_axis_sum(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error)
{
    bool done;
    TRY(launch_product_vectors(self, step, &done, error));
    if (!done)
        TRY(launch_product_rows(self, step, &done, error));
    if (done)
        return HEALCL_OK;
    int64_t count = step->in[0]->layout.shape[1], first = 0;
    do {
        int64_t part = terms_at_once(self, count - first);
        TRY(launch_product_part(self, step, first, part, error));
        first += part;
    } while (first < count);
    return HEALCL_OK;
}
