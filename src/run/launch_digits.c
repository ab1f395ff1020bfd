/* Gadget digits: cl/digits.cl. */
#include <stdio.h>

#include "run/launch.h"

static void begin_digits(struct job *job, struct device_executor *self, const struct step *step,
                         const char *kernel)
{
    job_init(job, self, step, "digits", kernel);
    enum dtype dtype = step->in[0]->storage->dtype;
    job_define_type(job, "A", dtype);
    job_define(job, "A_UNSIGNED", dtype == DTYPE_INT32 ? "uint" : "ulong");
    job_define_type(job, "OUT", step->out->storage->dtype);
}

enum {
    VECTORS_MIN = 8,    /* digits that make a vector */
    ELEMENTS_MIN = 1024 /* that are worth another kernel */
};

static bool may_use_vectors(const struct job *job)
{
    return prefers(job->executor, FAMILY_digits, VARIANT_VECTORS) && !job_has_chunks(job) &&
           job->space.end >= ELEMENTS_MIN;
}

enum healcl_status launch_digits(struct device_executor *self, const struct step *step,
                                 struct healcl_error *error)
{
    const struct layout *out = &step->out->layout;
    uint32_t digit_axis = out->rank - 1;
    int64_t count = out->shape[digit_axis], stride = out->stride[digit_axis];
    struct layout out_view = layout_drop_axis(out, digit_axis);
    struct job job;
    begin_digits(&job, self, step, "digits");
    job.rounds = (uint64_t)count;
    job_set_space(&job, &step->in[0]->layout);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_long(&job, step->value[0]);
    job_add_long(&job, count);
    if (may_use_vectors(&job) && stride == 1 && count >= VECTORS_MIN)
        job.launch.kernel = "digits_vectors";
    else
        job_add_long(&job, stride);
    job_add_written_table(&job, &self->status);
    return job_launch(&job, error);
}

/*
 * What work-items of digits_full_q keep in private arrays for each modulus: three words, and where
 * they take parts of 64 values as vectors 64 more. Some devices have these on a thread's stack, for
 * a whole work-group.
 */
enum {
    MODULI_MAX = 1 << 15,
    PRIVATE_BYTES_MAX = 1 << 20,
    PRIVATE_BYTES = 3 * sizeof(uint64_t),
    PRIVATE_BYTES_VECTORS = PRIVATE_BYTES + 64 * sizeof(uint64_t)
};

enum healcl_status launch_digits_full_q(struct device_executor *self, const struct step *step,
                                        struct healcl_error *error)
{
    const int64_t k = step->in[0]->layout.shape[1];
    if (k > MODULI_MAX)
        REFUSE(error, "argument '%s': %lld moduli are more than the %d that a device combines",
               step_input_name(step, 1), (long long)k, MODULI_MAX);
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    struct layout a_view = layout_drop_axis(a, 1), out_view = layout_drop_axis(out, 1);
    const struct buffer *q, *inverses;
    TRY(derive_modulus_vector(self, step, 1, &q, error));
    TRY(derive_crt_inverses(self, step, 1, &inverses, error));
    char limbs[24];
    snprintf(limbs, sizeof limbs, "%lld", (long long)k);
    struct job job;
    begin_digits(&job, self, step, "digits_full_q");
    job_define(&job, "LIMBS", limbs);
    job.rounds = (uint64_t)(out->shape[1] + k * (k + 4));
    job_set_space(&job, &a_view);
    job_set_operand(&job, 0, &out_view);
    job_set_operand(&job, 1, &a_view);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_table(&job, q);
    job_add_table(&job, inverses);
    job_add_long(&job, step->value[0]);
    job_add_long(&job, out->shape[1]);
    job_add_long(&job, out->stride[1]);
    job_add_long(&job, a->stride[1]);
    job_add_written_table(&job, &self->status);
    if (may_use_vectors(&job) && job.space.operand[0].stride[job.space.rank - 1] == 1 &&
        k <= PRIVATE_BYTES_MAX / PRIVATE_BYTES_VECTORS) {
        job.launch.kernel = "digits_full_q_vectors";
        return job_launch_alone(&job, error);
    }
    if (k > PRIVATE_BYTES_MAX / PRIVATE_BYTES / (int64_t)self->device->tuning.local_size)
        return job_launch_alone(&job, error);
    return job_launch(&job, error);
}
