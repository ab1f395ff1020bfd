/* Transforms by one work-item: cl/single.cl. */
#include "core/numbers.h"
#include "run/launch_transform.h"

bool can_run_single(const struct device_executor *self, const struct transform *transform,
                    int64_t rows)
{
    uint64_t row_bytes = (uint64_t)transform->n * sizeof(uint64_t);
    return prefers(self, FAMILY_transform, VARIANT_SINGLE) && transform->n >= 2 &&
           rows <= UINT32_MAX && row_bytes <= self->device->info.local_memory_bytes;
}

enum healcl_status launch_single(struct device_executor *self, const struct transform *transform,
                                 int64_t rows, struct healcl_error *error)
{
    const struct step *step = transform->step;
    uint32_t log2_n = log2_of((uint64_t)transform->n);
    struct job job;
    if (rows == 0)
        return HEALCL_OK;
    job_init(&job, self, step, "single", transform->inverse ? "inverse" : "forward");
    job_define_type(&job, "OUT", step->out->storage->dtype);
    job_define_type(&job, "IN", step->in[0]->storage->dtype);
    job_define_number(&job, "LOG2_N", log2_n);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_add_space(&job);
    job_add_uint(&job, (uint32_t)rows);
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_add_table(&job, transform->q);
    job_add_table(&job, transform->twiddles);
    job_add_table(&job, transform->perm);
    job_add_uint(&job, step->in[3] != NULL);
    if (transform->inverse)
        job_add_table(&job, transform->n_inv);
    return job_launch_groups(&job, 1, 1, error);
}
