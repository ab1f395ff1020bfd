/* Sums modulo q: cl/sum/general.cl, cl/sum/columns.cl, cl/sum/rows.cl, cl/modular/interleaved.cl.
 */
#include "kernels/kernels.h"

/* Elements of a row whose lanes are worth adding up one by one. */
enum { ROW_MIN = 64 };

/* Whether cl/sum/columns.cl can do sums of so many terms in rows of n elements. */
static const char *lacks_sum_vectors(const struct step *step, const struct healcl_device *device,
                                     int64_t count, int64_t n)
{
    const char *lack = lacks_double_vectors(step, device);
    return lack                 ? lack
           : count >= SUM_TERMS ? "there are too many terms"
           : n % LANES != 0     ? "no rows of multiples of eight elements"
                                : NULL;
}

/* Of so many terms, those that one launch adds up: work-items of some devices cannot go round a
 * loop as often as they like. */
static int64_t terms_at_once(const struct launcher *self, int64_t terms)
{
    int64_t most = job_rounds_max(self);
    return terms < most ? terms : most;
}

/* ---------------------------------------------------------------- along an axis */

static int64_t terms_of(const struct step *step)
{
    return step->in[0]->layout.shape[step->value[0]];
}

/* The output's elements, with operands out and a at the axis's first element; not simplified. */
static struct space space_of_sum(const struct step *step)
{
    struct layout a_view = layout_drop_axis(&step->in[0]->layout, (uint32_t)step->value[0]);
    struct space space = step_space(step, 0);
    space_set_operand(&space, 1, &a_view);
    return space;
}

static void add_summed_axis(struct job *job, const struct step *step)
{
    job_add_long(job, terms_of(step));
    job_add_long(job, step->in[0]->layout.stride[step->value[0]]);
}

static const char *lacks_columns(const struct step *step, const struct healcl_device *device)
{
    struct space space = space_of_sum(step);
    int64_t k;
    space_simplify(&space);
    uint32_t last = space.rank - 1;
    const char *lack = lacks_sum_vectors(step, device, terms_of(step), space.shape[last]);
    if (lack)
        return lack;
    if (space.operand[0].stride[last] != 1 || space.operand[1].stride[last] != 1)
        return "rows are not in order";
    return moduli_are_periodic(step, 1, device, &k) ? NULL : "moduli do not repeat";
}

MUST_CHECK static enum healcl_status launch_columns(struct launcher *self, const struct step *step,
                                                    const struct variant *variant,
                                                    struct healcl_error *error)
{
    struct job job;
    struct periodic_moduli moduli;
    TRY(job_begin(&job, self, step, variant, 1, error));
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
    job.space = space_of_sum(step);
    space_simplify(&job.space);
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_summed_axis(&job, step);
    job.granule = LANES;
    return job_launch_alone(&job, error);
}

/* Where a's elements lie side by side along out's last axes, [n,k] or [n], but out's only k by k or
 * one by one: see axis_modsum_interleaved. */
struct interleaved {
    struct space space; /* out has stride 0 along the last axis */
    int64_t k, out_stride;
};

static struct interleaved interleaved_of(const struct step *step)
{
    struct interleaved found = {.space = space_of_sum(step), .k = 1};
    struct space *space = &found.space;
    space_simplify(space);
    uint32_t last = space->rank - 1;
    int64_t k = space->shape[last];
    if (last > 0 && (k == 2 || k == 4) && space->operand[0].stride[last] == 1 &&
        space->operand[1].stride[last] == 1 && space->operand[1].stride[last - 1] == k) {
        found.k = k;
        space->rank = last--;
        space->shape[last] *= k;
        space->operand[1].stride[last] = 1;
    }
    found.out_stride = space->operand[0].stride[last];
    space->operand[0].stride[last] = 0;
    return found;
}

static const char *lacks_interleaved(const struct step *step, const struct healcl_device *device)
{
    struct interleaved found = interleaved_of(step);
    uint32_t last = found.space.rank - 1;
    int64_t k;
    const char *lack = lacks_sum_vectors(step, device, terms_of(step), found.space.shape[last]);
    if (lack)
        return lack;
    if (found.space.operand[1].stride[last] != 1)
        return "terms are not in order";
    return moduli_are_periodic(step, 1, device, &k) && (k == 1 || k == found.k)
               ? NULL
               : "moduli do not repeat as elements lie together";
}

MUST_CHECK static enum healcl_status launch_interleaved(struct launcher *self,
                                                        const struct step *step,
                                                        const struct variant *variant,
                                                        struct healcl_error *error)
{
    struct interleaved found = interleaved_of(step);
    struct periodic_moduli moduli;
    struct job job;
    TRY(job_begin(&job, self, step, variant, 1, error));
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
    job.space = found.space;
    job_add_table(&job, moduli.lanes);
    add_summed_axis(&job, step);
    job_add_long(&job, found.k);
    job_add_long(&job, found.out_stride);
    job.granule = LANES;
    return job_launch_alone(&job, error);
}

/* The axis before a last one of 1, 2, 4 or 8: see axis_modsum_rows. */
static const char *lacks_rows(const struct step *step, const struct healcl_device *device)
{
    const struct layout *a = &step->in[0]->layout;
    uint32_t axis = (uint32_t)step->value[0], last = a->rank - 1;
    int64_t count = a->shape[axis], k = a->shape[last], period;
    const char *lack = lacks_sum_vectors(step, device, count, LANES);
    if (lack)
        return lack;
    if (k < 1 || LANES % k != 0 || a->stride[last] != 1 || a->stride[axis] != k ||
        count * k < ROW_MIN)
        return "terms do not make rows in order";
    return moduli_are_periodic(step, 1, device, &period) ? NULL : "moduli do not repeat";
}

MUST_CHECK static enum healcl_status launch_rows(struct launcher *self, const struct step *step,
                                                 const struct variant *variant,
                                                 struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    uint32_t axis = (uint32_t)step->value[0], last = a->rank - 1;
    struct layout a_rows = layout_drop_axis(a, last), out_rows = layout_drop_axis(out, last - 1);
    struct periodic_moduli moduli;
    struct job job;
    a_rows = layout_drop_axis(&a_rows, axis);
    TRY(job_begin(&job, self, step, variant, 1, error));
    TRY(derive_periodic_moduli(self, step, 1, &moduli, error));
    space_init(&job.space, &out_rows);
    space_set_operand(&job.space, 0, &out_rows);
    space_set_operand(&job.space, 1, &a_rows);
    space_simplify(&job.space);
    job_add_table(&job, moduli.table);
    job_add_long(&job, moduli.k);
    job_add_long(&job, terms_of(step));
    job_add_long(&job, a->shape[last]);
    job_add_long(&job, out->stride[out->rank - 1]);
    return job_launch_alone(&job, error);
}

/* Some terms after others: later ones are added to out. */
MUST_CHECK static enum healcl_status launch_axis_modsum(struct launcher *self,
                                                        const struct step *step,
                                                        const struct variant *variant,
                                                        struct healcl_error *error)
{
    int64_t stride = step->in[0]->layout.stride[step->value[0]];
    const struct buffer *q;
    /* q varies along the last axis only: there the vector has its elements in order. */
    struct layout q_view = layout_packed(&step->out->layout);
    for (uint32_t i = 0; i < q_view.rank; i++)
        q_view.stride[i] = i + 1 == q_view.rank;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    int64_t terms = terms_of(step), first = 0;
    do {
        int64_t count = terms_at_once(self, terms - first);
        struct job job;
        TRY(job_begin(&job, self, step, variant, 1, error));
        job.rounds = (uint64_t)count;
        job.space = space_of_sum(step);
        job.space.operand[1].offset += first * stride;
        space_set_operand(&job.space, 2, &q_view);
        space_simplify(&job.space);
        job_add_table(&job, q);
        job_add_long(&job, count);
        job_add_long(&job, stride);
        job_add_uint(&job, first > 0);
        TRY(job_launch(&job, error));
        first += count;
    } while (first < terms);
    return HEALCL_OK;
}

static const struct variant axis_modsum_variants[] = {
    {"vectors", VARIANT_VECTORS, lacks_columns, launch_columns, OVER_ELEMENTS, "vectors",
     "axis_modsum_vectors", "cl/sum/columns.cl", "rows of multiples of eight elements in order"},
    {"rows", VARIANT_VECTORS, lacks_rows, launch_rows, OVER_ELEMENTS, "vectors", "axis_modsum_rows",
     "cl/sum/rows.cl", "terms in order, a last axis of 1, 2, 4 or 8"},
    {"interleaved", VARIANT_VECTORS, lacks_interleaved, launch_interleaved, OVER_ELEMENTS,
     "vectors", "axis_modsum_interleaved", "cl/modular/interleaved.cl",
     "terms in order, an output whose elements lie together by ones, twos or fours"},
    {"elements", VARIANT_GENERAL, NULL, launch_axis_modsum, OVER_ANY_VIEW, "core", "axis_modsum",
     "cl/sum/general.cl", "anything"},
};

const struct family family_axis_modsum = FAMILY_OF(axis_modsum, sum, axis_modsum_variants);

/* ---------------------------------------------------------------- of products */

/* A job with what all kernels of modmul_axis_sum take first: the space, the tensors, q, the
 * permutation and whether they add to out. */
MUST_CHECK static enum healcl_status begin_product(struct job *job, struct launcher *self,
                                                   const struct step *step,
                                                   const struct variant *variant, bool adds,
                                                   struct healcl_error *error)
{
    const struct buffer *q, *perm;
    TRY(derive_modulus_vector(self, step, 2, &q, error));
    perm = q; /* some buffer must stand for one that is not used */
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &perm, error));
    TRY(job_begin(job, self, step, variant, 2, error));
    job_add_table(job, q);
    job_add_table(job, perm);
    job_add_uint(job, (step->in[3] ? PRODUCTS_PERMUTED : 0u) | (adds ? PRODUCTS_ADDED : 0u));
    return HEALCL_OK;
}

static const char *lacks_product_columns(const struct step *step,
                                         const struct healcl_device *device)
{
    const struct layout *a = &step->in[0]->layout;
    const char *lack = lacks_sum_vectors(step, device, a->shape[1], step->out->layout.shape[2]);
    return lack ? lack : a->stride[3] == 1 ? NULL : "rows are not in order";
}

/* The space is as modmul_axis_sum_vectors wants it. */
MUST_CHECK static enum healcl_status launch_product_columns(struct launcher *self,
                                                            const struct step *step,
                                                            const struct variant *variant,
                                                            struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2];
    const int64_t block = (int64_t)LANES * SUM_COLUMNS;
    struct job job;
    TRY(begin_product(&job, self, step, variant, step_adds(step), error));
    struct layout blocks = {.rank = 3, .shape = {k, (n + block - 1) / block, reps}};
    space_init(&job.space, &blocks);
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

/* In HEAL's layout: see modmul_axis_sum_rows. */
static const char *lacks_product_rows(const struct step *step, const struct healcl_device *device)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    int64_t k = step->out->layout.shape[1], count = a->shape[1], period;
    const char *lack = lacks_sum_vectors(step, device, count, step->out->layout.shape[2]);
    if (lack)
        return lack;
    if (k < 1 || LANES % k != 0 || a->stride[2] != 1 || b->stride[1] != 1 || a->stride[1] != k ||
        b->stride[0] != k || count * k < LANES)
        return "terms do not make rows in order";
    return moduli_are_periodic(step, 2, device, &period) ? NULL : "moduli do not repeat";
}

MUST_CHECK static enum healcl_status launch_product_rows(struct launcher *self,
                                                         const struct step *step,
                                                         const struct variant *variant,
                                                         struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t reps = out->shape[0], n = out->shape[2];
    struct layout blocks = {.rank = 2, .shape = {(n + SUM_ROWS - 1) / SUM_ROWS, reps}};
    struct periodic_moduli moduli;
    struct job job;
    TRY(begin_product(&job, self, step, variant, step_adds(step), error));
    TRY(derive_periodic_moduli(self, step, 2, &moduli, error));
    space_init(&job.space, &blocks);
    job.space.operand[0] = (struct operand){.offset = out->offset, .stride = {0, out->stride[0]}};
    job.space.operand[1] = (struct operand){.offset = a->offset, .stride = {0, a->stride[0]}};
    job.space.operand[2] = (struct operand){.offset = b->offset};
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, n);
    job_add_long(&job, a->shape[1]);
    job_add_long(&job, out->shape[1]);
    job_add_long(&job, a->stride[3]);
    job_add_long(&job, b->stride[2]);
    job_add_long(&job, out->stride[2]);
    job_add_long(&job, out->stride[1]);
    return job_launch_alone(&job, error);
}

/* Where elements of k moduli lie together, but neither those of n nor of the terms: see
 * modmul_axis_sum_interleaved. */
static const char *lacks_product_groups(const struct step *step, const struct healcl_device *device)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t k = out->shape[1], period;
    const char *lack = lacks_sum_vectors(step, device, a->shape[1], out->shape[2]);
    if (lack)
        return lack;
    if (step->in[3])
        return "there is a permutation";
    if ((k != 1 && k != 2 && k != 4) ||
        (k > 1 && (a->stride[2] != 1 || b->stride[1] != 1 || out->stride[1] != 1)))
        return "moduli do not lie together by ones, twos or fours";
    return moduli_are_periodic(step, 2, device, &period) ? NULL : "moduli do not repeat";
}

MUST_CHECK static enum healcl_status launch_product_groups(struct launcher *self,
                                                           const struct step *step,
                                                           const struct variant *variant,
                                                           struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    int64_t reps = out->shape[0], k = out->shape[1], n = out->shape[2];
    int64_t block = (int64_t)PRODUCT_COLUMNS * LANES / k;
    struct layout blocks = {.rank = 2, .shape = {(n + block - 1) / block, reps}};
    struct periodic_moduli moduli;
    struct job job;
    TRY(begin_product(&job, self, step, variant, step_adds(step), error));
    TRY(derive_periodic_moduli(self, step, 2, &moduli, error));
    space_init(&job.space, &blocks);
    job.space.operand[0] = (struct operand){.offset = out->offset, .stride = {0, out->stride[0]}};
    job.space.operand[1] = (struct operand){.offset = a->offset, .stride = {0, a->stride[0]}};
    job.space.operand[2] = (struct operand){.offset = b->offset};
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, n);
    job_add_long(&job, a->shape[1]);
    job_add_long(&job, k);
    job_add_long(&job, a->stride[1]);
    job_add_long(&job, b->stride[0]);
    job_add_long(&job, a->stride[3]);
    job_add_long(&job, b->stride[2]);
    job_add_long(&job, out->stride[2]);
    return job_launch_alone(&job, error);
}

/* Some products after others. The space is [reps,k,n]; out and b go along n by m, a by l. */
MUST_CHECK static enum healcl_status launch_modmul_axis_sum(struct launcher *self,
                                                            const struct step *step,
                                                            const struct variant *variant,
                                                            struct healcl_error *error)
{
    const struct layout *a = &step->in[0]->layout, *b = &step->in[1]->layout;
    const struct layout *out = &step->out->layout;
    struct layout out_view = *out, a_view = layout_drop_axis(a, 1);
    struct layout b_rows = layout_drop_axis(b, 0), b_view = layout_insert_axis(&b_rows, 0, 1, 0);
    const struct layout q_view = {.rank = 3, .stride = {0, 1, 0}};
    out_view.stride[2] = 0;
    b_view.stride[2] = 0;
    int64_t terms = a->shape[1], first = 0;
    do {
        int64_t count = terms_at_once(self, terms - first);
        struct job job;
        TRY(begin_product(&job, self, step, variant, step_adds(step) || first > 0, error));
        job.rounds = (uint64_t)count;
        space_init(&job.space, out);
        space_set_operand(&job.space, 0, &out_view);
        space_set_operand(&job.space, 1, &a_view);
        space_set_operand(&job.space, 2, &b_view);
        space_set_operand(&job.space, 3, &q_view);
        job.space.operand[1].offset += first * a->stride[1];
        job.space.operand[2].offset += first * b->stride[0];
        job_add_long(&job, count);
        job_add_long(&job, a->stride[1]);
        job_add_long(&job, b->stride[0]);
        job_add_long(&job, out->stride[2]);
        job_add_long(&job, b->stride[2]);
        TRY(job_launch(&job, error));
        first += count;
    } while (first < terms);
    return HEALCL_OK;
}

static const struct variant product_variants[] = {
    {"vectors", VARIANT_VECTORS, lacks_product_columns, launch_product_columns, OVER_ELEMENTS,
     "vectors", "modmul_axis_sum_vectors", "cl/sum/columns.cl",
     "rows of multiples of eight elements in order"},
    {"rows", VARIANT_VECTORS, lacks_product_rows, launch_product_rows, OVER_ELEMENTS, "vectors",
     "modmul_axis_sum_rows", "cl/sum/rows.cl", "HEAL's layout, k of 1, 2, 4 or 8"},
    {"interleaved", VARIANT_VECTORS, lacks_product_groups, launch_product_groups, OVER_ELEMENTS,
     "vectors", "modmul_axis_sum_interleaved", "cl/modular/interleaved.cl",
     "k of 1, 2 or 4 whose elements lie together"},
    {"elements", VARIANT_GENERAL, NULL, launch_modmul_axis_sum, OVER_ANY_VIEW, "core",
     "modmul_axis_sum", "cl/sum/general.cl", "anything"},
};

const struct family family_modmul_axis_sum = FAMILY_OF(modmul_axis_sum, sum, product_variants);
