/* Elementwise modular operations: cl/elementwise.cl, cl/vectors.cl. */
#include "run/launch.h"

struct elementwise_kernel {
    const char *table, *tensor; /* for moduli in a table, and in a tensor */
    const char *vectors;        /* in cl/vectors.cl */
};

static struct elementwise_kernel elementwise_kernel(enum step_kind kind)
{
    switch (kind) {
    case STEP_MODMUL:
        return (struct elementwise_kernel){"modmul_table", "modmul", "modmul_vectors"};
    case STEP_MODSUM:
        return (struct elementwise_kernel){"modsum_table", "modsum", "modsum_vectors"};
    case STEP_MOD: return (struct elementwise_kernel){"mod_table", "mod", "mod_vectors"};
    default: return (struct elementwise_kernel){"modneg_table", "modneg", "modneg_vectors"};
    }
}

/* The value of a scalar operand; false where input i is a tensor. An absent one counts as 0. */
static bool scalar_value(const struct device_executor *self, const struct step *step, int i,
                         int64_t *value)
{
    const struct tensor *input = step->in[i];
    *value = 0;
    if (!input)
        return true;
    if (input->storage != self->plan->constants.storage)
        return false;
    *value = self->plan->constants.values[input->layout.offset];
    return true;
}

/* The scalar operands among a and b. */
struct scalars {
    uint32_t mask; /* bit i: input i is one */
    int64_t values[2];
};

static void add_scalars(struct job *job, const struct scalars *scalars)
{
    job_add_uint(job, scalars->mask);
    job_add_long(job, scalars->values[0]);
    job_add_long(job, scalars->values[1]);
}

/* A job over the output's elements, with operands out, a and b. */
static void begin_elementwise(struct job *job, struct device_executor *self,
                              const struct step *step, const char *program, const char *kernel,
                              struct scalars *scalars)
{
    job_init(job, self, step, program, kernel);
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job_set_space(job, &step->out->layout);
    job_set_operand(job, 0, &step->out->layout);
    scalars->mask = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (scalar_value(self, step, (int)i, &scalars->values[i]))
            scalars->mask |= 1u << i;
        else
            job_set_operand(job, i + 1, &step->in[i]->layout);
}

MUST_CHECK static enum healcl_status add_elementwise_tensors(struct job *job,
                                                             const struct step *step,
                                                             const struct scalars *scalars,
                                                             struct healcl_error *error)
{
    TRY(job_add_tensor(job, step->out, error));
    for (uint32_t i = 0; i < 2; i++) /* some buffer must stand for a scalar's */
        TRY(job_add_tensor(job, scalars->mask & 1u << i ? step->out : step->in[i], error));
    return HEALCL_OK;
}

/* Elements that a work-item of cl/vectors.cl takes at least: starting costs as much as 200 do. */
enum { VECTORS_GRANULE = 4096 };

/* Whether cl/vectors.cl can do a job whose space has been simplified; see there. */
static bool suits_vectors(const struct job *job)
{
    const struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    return prefers(job->executor, FAMILY_elementwise, VARIANT_VECTORS) &&
           job->executor->device->info.double_width > 0 && !job_has_chunks(job) &&
           space->shape[last] % 8 == 0 && space->operand[0].stride[last] == 1 &&
           (space->operand[1].stride[last] == 0 || space->operand[1].stride[last] == 1) &&
           (space->operand[2].stride[last] == 0 || space->operand[2].stride[last] == 1);
}

/* *done: whether the step could be done so. */
MUST_CHECK static enum healcl_status launch_vectors(struct device_executor *self,
                                                    const struct step *step, bool *done,
                                                    struct healcl_error *error)
{
    struct scalars scalars;
    struct periodic_moduli moduli;
    struct job job;
    begin_elementwise(&job, self, step, "vectors", elementwise_kernel(step->kind).vectors,
                      &scalars);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    *done = suits_vectors(&job);
    if (*done)
        TRY(derive_periodic_moduli(self, step, 2, &moduli, done, error));
    if (!*done)
        return HEALCL_OK;
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_scalars(&job, &scalars);
    job.granule = VECTORS_GRANULE;
    return job_launch(&job, error);
}

enum healcl_status launch_elementwise(struct device_executor *self, const struct step *step,
                                      struct healcl_error *error)
{
    bool done;
    TRY(launch_vectors(self, step, &done, error));
    if (done)
        return HEALCL_OK;
    struct elementwise_kernel kernel = elementwise_kernel(step->kind);
    struct scalars scalars;
    const struct buffer *table;
    struct layout moduli;
    TRY(derive_moduli(self, step, 2, &table, &moduli, error));
    struct job job;
    begin_elementwise(&job, self, step, "core", table ? kernel.table : kernel.tensor, &scalars);
    job_set_operand(&job, 3, &moduli);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    if (table)
        job_add_table(&job, table);
    else
        TRY(job_add_tensor(&job, step->in[2], error));
    add_scalars(&job, &scalars);
    return job_launch(&job, error);
}

enum healcl_status launch_absolute(struct device_executor *self, const struct step *step,
                                   struct healcl_error *error)
{
    struct job job;
    job_init(&job, self, step, "core", "absolute");
    job_define_type(&job, "ELEMENT", step->out->storage->dtype);
    job_set_space(&job, &step->out->layout);
    job_set_operand(&job, 0, &step->out->layout);
    job_set_operand(&job, 1, &step->in[0]->layout);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(job_add_tensor(&job, step->out, error));
    TRY(job_add_tensor(&job, step->in[0], error));
    job_prefer_lines(&job, FAMILY_elementwise, step->out->storage->dtype, 2);
    return job_launch(&job, error);
}
