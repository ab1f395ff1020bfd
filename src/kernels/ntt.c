/* Number-theoretic transforms: cl/ntt/general.cl, and which variant does one. */
#include "kernels/ntt.h"
#include "core/numbers.h"

/* Transforms the rows [first, first + count). */
static enum healcl_status launch_rows(struct launcher *self, const struct transform *transform,
                                      int64_t first, int64_t count, struct healcl_error *error)
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
    return job_launch_alone(&job, error);
}

static const char *plan_stages(const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    (void)step, (void)device, (void)plan;
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
        FAIL(error, device_note_lack(self->device, HEALCL_REFUSED),
             "%lld rows are more than 2^32-1", (long long)rows);
    TRY(transform_init(self, plan, &transform, error));
    TRY(transform_acquire_rows(self, &transform, rows, 1, &at_once, error));
    enum healcl_status status = HEALCL_OK;
    for (int64_t first = 0; status == HEALCL_OK && first < rows; first += at_once) {
        int64_t count = rows - first < at_once ? rows - first : at_once;
        status = launch_rows(self, &transform, first, count, error);
    }
    device_buffer_release(self->device, &transform.rows);
    return status;
}

enum healcl_status transform_acquire_rows(struct launcher *self, struct transform *transform,
                                          int64_t groups, int64_t rows, int64_t *at_once,
                                          struct healcl_error *error)
{
    enum { ROWS_BYTES = 64 << 20 };
    uint64_t most = device_scratch_bytes(self->device);
    int64_t bytes = most < ROWS_BYTES ? (int64_t)most : ROWS_BYTES;
    int64_t group_bytes = rows * transform->n * (int64_t)sizeof(uint64_t);
    *at_once = group_bytes < bytes ? bytes / group_bytes : 1;
    *at_once = *at_once < groups ? *at_once : groups;
    return device_buffer_acquire(self->device, (uint64_t)(*at_once * group_bytes), false,
                                 &transform->rows, error);
}

int64_t transform_rows(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    return out->shape[0] * out->shape[1] * out->shape[2];
}

void transform_begin(struct job *job, struct launcher *self, const struct transform *transform,
                     const char *forward, const char *inverse)
{
    job_init(job, self, transform->step, transform->variant->program,
             transform->inverse ? inverse : forward);
    if (transform->variant->tunables >> TUNABLE_multiply & 1)
        job_define_vectors(job);
    job->space = step_space(transform->step, 1);
    job_add_space(job);
}

enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
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
    TRY(derive_modulus_vector(self, step, 1, &transform->q, error));
    TRY(derive_twiddles(self, step, 2, 1, &transform->twiddles, error));
    /* Some buffer must stand for one that is not used. */
    transform->n_inv = transform->twiddles;
    transform->perm = transform->q;
    if (step->in[5])
        TRY(derive_scaled_twiddles(self, step, 4, 5, 1, &transform->n_inv, error));
    else if (step->in[4])
        TRY(derive_twiddles(self, step, 4, 1, &transform->n_inv, error));
    if (step->in[3])
        TRY(derive_permutation(self, step, 3, &transform->perm, error));
    return HEALCL_OK;
}

enum {
    SHARED = 1 << TUNABLE_transform_local_size,
    TILED = SHARED | 1 << TUNABLE_transform_rows | 1 << TUNABLE_transform_tile |
            1 << TUNABLE_transform_radix | 1 << TUNABLE_transform_products
};

static const struct variant variants[] = {
#define NTT(name, style, tunables, when) \
    {#name,                              \
     STYLE_##style,                      \
     plan_ntt_##name,                    \
     launch_ntt_##name,                  \
     tunables,                           \
     "ntt/" #name,                       \
     NULL,                               \
     "cl/ntt/" #name ".cl",              \
     when},
#include "kernels/ntt.def"
#undef NTT
    {"stages", STYLE_GENERAL, plan_stages, launch_stages, SHARED | 1 << TUNABLE_elements_per_item,
     "core", NULL, "cl/ntt/general.cl", "anything"},
};

const struct family family_transform = FAMILY_OF(transform, transform, variants);
