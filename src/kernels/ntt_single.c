/* Transforms by one work-item: cl/ntt/single.cl. */
#include "core/numbers.h"
#include "kernels/ntt.h"

const char *plan_ntt_single(const struct step *step, const struct healcl_device *device,
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

enum healcl_status launch_ntt_single(struct launcher *self, const struct variant_plan *plan,
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
