/* Gathers: cl/gather.cl. */
#include "run/launch.h"

enum healcl_status launch_gather(struct device_executor *self, const struct step *step,
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
    TRY(job_add_tensor(&job, step->out, error));
    TRY(job_add_tensor(&job, step->in[0], error));
    TRY(job_add_tensor(&job, step->in[1], error));
    job_add_long(&job, size);
    job_add_long(&job, stride);
    return job_launch(&job, error);
}
