/* What the variants of transforms share: parts in scratch memory, jobs, tables. */
#include "kernels/transform.h"

#include "core/numbers.h"

/* Kernels with scratch memory transform a part of the rows at a time. Rows that must stay together
 * form a group of `elements` elements. Returns the number of groups that get scratch memory at
 * once: those that 64 MiB and one allocation can hold, but at least one. */
static int64_t groups_at_once(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    enum { SCRATCH_BYTES_MAX = 64 << 20 };
    const uint64_t most = device_scratch_bytes(device);
    const uint64_t bytes = most < SCRATCH_BYTES_MAX ? most : SCRATCH_BYTES_MAX;
    const int64_t fit = (int64_t)(bytes / sizeof(uint64_t)) / elements;
    const int64_t at_once = smaller(fit, groups);
    return at_once < 1 ? 1 : at_once;
}

/* The number of parts that `groups` groups are transformed in. */
uint32_t transform_count_parts(const struct healcl_device *device, int64_t groups, int64_t elements)
{
    if (groups == 0)
        return 0;
    return (uint32_t)blocks_for(groups, groups_at_once(device, groups, elements));
}

/* Adds scratch memory for the groups of one part, *at_once. Returns its slot. */
int transform_add_scratch(struct launcher *self, int64_t groups, int64_t elements, int64_t *at_once)
{
    *at_once = groups_at_once(self->device, groups, elements);
    return template_add_scratch(self, (uint64_t)(*at_once * elements) * sizeof(uint64_t));
}

/* The rows of all moduli: l*r*k. */
int64_t transform_rows(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    return out->shape[AXIS_L] * out->shape[AXIS_R] * out->shape[AXIS_K];
}

/* Begins a job of the variant's program, with one of two kernels. Its space, the first argument, is
 * the whole output with operands out and a. */
void transform_begin(struct job *job, struct launcher *self, const struct transform *transform,
                     const char *forward_kernel, const char *inverse_kernel)
{
    job_begin_variant(job, self, transform->step, transform->variant,
                      transform->inverse ? inverse_kernel : forward_kernel);
    job->space = step_space(transform->step, 1 /* input */);
    job_add_space(job);
}

/* Sets what all variants need of a step, and adds its tables. */
enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
                                  struct transform *transform, struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct layout *out = &step->out->layout;
    if (out->shape[AXIS_K] > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument 'q': %lld moduli are more than 2^31-1",
                   (long long)out->shape[AXIS_K]);
    *transform = (struct transform){.step = step,
                                    .variant = plan->variant,
                                    .n = out->shape[AXIS_N],
                                    .inverse = step->kind == STEP_INTT};
    return derive_transform(self, step, &transform->tables, error);
}

/* Adds the last arguments: q, twiddles, perm, whether there is a permutation, and for the inverse
 * n_inv. */
void transform_add_tables(struct job *job, const struct transform *transform)
{
    job_add_buffer(job, transform->tables.q);
    job_add_buffer(job, transform->tables.twiddles);
    job_add_buffer(job, transform->tables.permutation);
    job_add_uint(job, transform->step->in[PERMUTATION] != NULL);
    if (transform->inverse)
        job_add_buffer(job, transform->tables.n_inv);
}
/* The bits of the words that kernels compute with: no residue has more. Moduli have the dtype of
 * the output, and the input has this dtype or int8. */
uint32_t transform_word_bits(const struct step *step)
{
    return 8 * (uint32_t)dtype_size(step->out->storage->dtype);
}
