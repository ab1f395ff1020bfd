/* Copies and fills: cl/memory.cl. */
#include "run/launch.h"

enum healcl_status launch_fill(struct device_executor *self, const struct step *step,
                               struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "fill");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_tensor(&job, step->out, error));
    job_add_long(&job, step->value[0]);
    return job_launch(&job, error);
}

enum healcl_status launch_copy(struct device_executor *self, const struct step *step,
                               const struct layout *out_layout, const struct buffer *out,
                               const struct tensor *in, struct healcl_error *error)
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
    TRY(job_add_tensor(&job, in, error));
    return job_launch(&job, error);
}

enum healcl_status launch_pack(struct device_executor *self, const struct step *step,
                               const struct tensor *tensor, const struct buffer *out,
                               struct healcl_error *error)
{
    struct layout packed = layout_packed(&tensor->layout);
    return launch_copy(self, step, &packed, out, tensor, error);
}
