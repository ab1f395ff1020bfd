/* Elementwise operations: cl/elementwise.cl, cl/vectors.cl, cl/vector_runs.cl, cl/lines.cl. */
#include "run/launch.h"

struct elementwise_kernel {
    const char *table, *tensor; /* for moduli in a table, and in a tensor */
    const char *vectors, *runs; /* in cl/vectors.cl */
};

#define KERNELS(name) \
    ((struct elementwise_kernel){name "_table", name, name "_vectors", name "_runs"})

static struct elementwise_kernel elementwise_kernel(enum step_kind kind)
{
    switch (kind) {
    case STEP_MODMUL: return KERNELS("modmul");
    case STEP_MODSUM: return KERNELS("modsum");
    case STEP_MOD: return KERNELS("mod");
    default: return KERNELS("modneg");
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
    TRY(job_add_output(job, step->out, error));
    for (uint32_t i = 0; i < 2; i++) /* some buffer must stand for a scalar's */
        TRY(job_add_input(job, scalars->mask & 1u << i ? step->out : step->in[i], error));
    return HEALCL_OK;
}

/* The moduli's place among the operands. */
enum { OPERAND_Q = 3 };

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
    job.space.operand[OPERAND_Q].offset = moduli.first;
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_scalars(&job, &scalars);
    job.granule = VECTORS_GRANULE;
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- short runs */

enum {
    RUNS_MIN = 2048,  /* elements that are worth another kernel */
    ROWS_MIN = 16,    /* in a row of rows */
    ROWS_OF_RUN = 512 /* as in cl/vector_runs.cl */
};

/* Whether out and the operands that are tensors have their elements side by side along an axis. */
static bool lies_together(const struct space *space, uint32_t axis, uint32_t scalars)
{
    for (uint32_t i = 0; i < OPERAND_Q; i++)
        if (space->operand[i].stride[axis] != 1 && !(i > 0 && scalars & 1u << (i - 1)))
            return false;
    return true;
}

/* The longest axis before `end` along which moduli are the same; `end` where there is none. */
static uint32_t longest_axis(const struct space *space, uint32_t end)
{
    uint32_t longest = end;
    for (uint32_t axis = 0; axis < end; axis++)
        if (space->operand[OPERAND_Q].stride[axis] == 0 &&
            (longest == end || space->shape[axis] >= space->shape[longest]))
            longest = axis;
    return longest;
}

/* Axis `to` of a space becomes axis `from` of another one. */
static void space_move_axis(struct space *space, uint32_t to, const struct space *other,
                            uint32_t from)
{
    space->shape[to] = other->shape[from];
    for (int i = 0; i < SPACE_OPERANDS; i++)
        space->operand[i].stride[to] = other->operand[i].stride[from];
}

/* Makes a simplified job of a general kernel, whose arguments are the space, tensors and table, one
 * of cl/vector_runs.cl, where that suits it. */
static void prefer_runs(struct job *job, const char *kernel, const struct scalars *scalars)
{
    struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    int64_t k = space->shape[last];
    bool together = (k == 2 || k == 4) && lies_together(space, last, scalars->mask);
    uint32_t axes = together ? last : space->rank, rows = longest_axis(space, axes);
    if (!together)
        k = 1;
    if (!prefers(job->executor, FAMILY_elementwise, VARIANT_VECTORS) ||
        job->executor->device->info.double_width == 0 || job_has_chunks(job) ||
        space->end < RUNS_MIN || rows == axes || space->shape[rows] < ROWS_MIN)
        return;
    int64_t q_stride = together ? space->operand[OPERAND_Q].stride[last] : 0;
    space->rank = axes;
    /* The parts of the rows' axis go last, that axis behind them. */
    struct space old = *space;
    uint32_t parts = space->rank - 1;
    for (uint32_t axis = rows; axis < parts; axis++)
        space_move_axis(space, axis, &old, axis + 1);
    space_move_axis(space, parts, &old, rows);
    space_move_axis(space, parts + 1, &old, rows);
    space->shape[parts] = (old.shape[rows] + ROWS_OF_RUN - 1) / ROWS_OF_RUN;
    for (int i = 0; i < SPACE_OPERANDS; i++)
        space->operand[i].stride[parts] *= ROWS_OF_RUN;
    space->end = 1;
    for (uint32_t axis = 0; axis <= parts; axis++)
        space->end *= (uint64_t)space->shape[axis];
    job->launch.program = "vectors";
    job->launch.kernel = kernel;
    job->granule = (uint64_t)(VECTORS_GRANULE / (ROWS_OF_RUN * k));
    job_add_long(job, k);
    job_add_long(job, old.shape[rows]);
    job_add_long(job, q_stride);
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
    job_set_operand(&job, OPERAND_Q, &moduli);
    job_simplify_space(&job);
    job_add_space(&job);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    if (table) {
        job_add_table(&job, table);
        prefer_runs(&job, kernel.runs, &scalars);
    } else
        TRY(job_add_input(&job, step->in[2], error));
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
    TRY(job_add_output(&job, step->out, error));
    TRY(job_add_input(&job, step->in[0], error));
    job_prefer_lines(&job, FAMILY_elementwise, step->out->storage->dtype, 2);
    return job_launch(&job, error);
}
