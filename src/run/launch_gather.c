/* Gathers: cl/gather.cl. */
#include "run/launch.h"

enum {
    ROW_MIN = 256,         /* elements of a row that are worth touching it first */
    ELEMENTS_MIN = 1 << 14 /* that are worth another kernel */
};

/* Whether gather_rows can do a job of the kernel gather, which takes from rows of that size and
 * stride, and whether it is worth it: a row is one work-item's, and most of it should be taken. */
static bool suits_rows(const struct job *job, int64_t size, int64_t stride)
{
    const struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    uint64_t rows = space->end / (uint64_t)space->shape[last];
    return prefers(job->executor, FAMILY_gather, VARIANT_VECTORS) && !job_has_chunks(job) &&
           stride == 1 && size >= ROW_MIN && space->shape[last] >= size / 2 &&
           space->operand[0].stride[last] == 1 && space->operand[1].stride[last] == 0 &&
           space->operand[2].stride[last] == 1 && space->end >= ELEMENTS_MIN &&
           rows >= 2 * (uint64_t)job->executor->device->info.compute_units;
}

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
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    TRY(job_add_input(&job, step->in[1], error));
    job_add_long(&job, size);
    if (suits_rows(&job, size, stride)) {
        job.launch.kernel = "gather_rows";
        job.granule = (uint64_t)job.space.shape[job.space.rank - 1];
    } else
        job_add_long(&job, stride);
    return job_launch(&job, error);
}
