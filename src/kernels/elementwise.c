/* Elementwise operations: cl/modular/general.cl, cl/vectors.cl, cl/modular/interleaved.cl,
 * cl/copy/lines.cl. */
#include "kernels/kernels.h"

struct elementwise_kernel {
    const char *table, *tensor; /* for moduli in a table, and in a tensor */
    const char *vectors, *interleaved; /* in cl/vectors.cl */
};

/* Named after the kinds of steps; only those of elementwise ones are there. */
static const struct elementwise_kernel kernels[STEP_KINDS] = {
#define STEP(kind, name, ...) [STEP_##kind] = {name "_table", name, name "_vectors", name "_interleaved"},
#include "plan/steps.def"
#undef STEP
};

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

static struct scalars scalars_of(const struct step *step)
{
    struct scalars scalars = {.mask = 0};
    for (int i = 0; i < 2; i++)
        if (is_scalar(step, i)) {
            scalars.mask |= 1u << i;
            scalars.values[i] = scalar_value(step, i);
        }
    return scalars;
}

/* The moduli's place among the operands. */
enum { OPERAND_Q = 3 };

/* The output's elements, with operands out, a and b, those that are tensors, and p where moduli is
 * not NULL: then that is where a table has them. */
static struct space space_of(const struct step *step, const struct layout *moduli)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, 0, &step->out->layout);
    for (int i = 0; i < 2; i++)
        if (!is_scalar(step, i))
            space_set_operand(&space, (uint32_t)i + 1, &step->in[i]->layout);
    if (moduli)
        space_set_operand(&space, OPERAND_Q, moduli);
    space_simplify(&space);
    return space;
}

static void begin_elementwise(struct job *job, struct launcher *self, const struct step *step,
                              const char *program, const char *kernel)
{
    job_init(job, self, step, program, kernel);
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job_add_space(job);
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

/* Elements that a work-item of cl/vectors.cl takes at least: starting costs as much as 200 do. */
enum { VECTORS_GRANULE = 4096 };

static const char *lacks_rows_of_vectors(const struct step *step,
                                         const struct healcl_device *device)
{
    int64_t k;
    const char *lack = lacks_double_vectors(step, device);
    if (lack)
        return lack;
    struct space space = space_of(step, NULL);
    uint32_t last = space.rank - 1;
    if (space.shape[last] % 8 != 0 || space.operand[0].stride[last] != 1)
        return "no rows of multiples of eight elements in order";
    for (int i = 1; i <= 2; i++)
        if (space.operand[i].stride[last] != 0 && space.operand[i].stride[last] != 1)
            return "an operand's elements are not in order";
    return moduli_are_periodic(step, 2, device, &k) ? NULL
                                                    : "moduli do not repeat along the last axis";
}

MUST_CHECK static enum healcl_status launch_vectors(struct launcher *self, const struct step *step,
                                                    struct healcl_error *error)
{
    struct scalars scalars = scalars_of(step);
    struct periodic_moduli moduli;
    struct job job;
    begin_elementwise(&job, self, step, "vectors", kernels[step->kind].vectors);
    job.space = space_of(step, NULL);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    TRY(derive_periodic_moduli(self, step, 2, &moduli, error));
    job.space.operand[OPERAND_Q].offset = moduli.first;
    job_add_table(&job, moduli.lanes);
    job_add_long(&job, moduli.period);
    add_scalars(&job, &scalars);
    job.granule = VECTORS_GRANULE;
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- short runs */

enum {
    RUNS_MIN = 2048, /* elements that are worth another kernel */
    ROWS_MIN = 16,   /* in a row of rows */
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

/* Rows of k elements that lie together, along an axis. */
struct interleaved {
    int64_t k;
    uint32_t axes; /* without that of the k elements */
    uint32_t rows; /* their axis; axes where there is none */
};

static struct interleaved interleaved_of(const struct step *step, const struct space *space)
{
    uint32_t last = space->rank - 1;
    int64_t k = space->shape[last];
    struct interleaved found = {.k = 1, .axes = space->rank};
    if ((k == 2 || k == 4) && lies_together(space, last, scalars_of(step).mask))
        found = (struct interleaved){.k = k, .axes = last};
    found.rows = longest_axis(space, found.axes);
    return found;
}

static const char *lacks_interleaved(const struct step *step, const struct healcl_device *device)
{
    const char *lack = lacks_double_vectors(step, device);
    if (lack)
        return lack;
    if (!has_modulus_table(step, 2, device))
        return "there are too many moduli for a table";
    struct layout moduli = modulus_operand(step, 2, device);
    struct space space = space_of(step, &moduli);
    struct interleaved found = interleaved_of(step, &space);
    if (space.end < RUNS_MIN)
        return "there are too few elements";
    return found.rows == found.axes || space.shape[found.rows] < ROWS_MIN
               ? "no long axis along which moduli are the same"
               : NULL;
}

/* The parts of the rows' axis go last, that axis behind them. */
MUST_CHECK static enum healcl_status launch_interleaved(struct launcher *self,
                                                        const struct step *step,
                                                        struct healcl_error *error)
{
    struct scalars scalars = scalars_of(step);
    struct layout moduli = modulus_operand(step, 2, self->device);
    const struct buffer *table;
    struct job job;
    begin_elementwise(&job, self, step, "vectors", kernels[step->kind].interleaved);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    TRY(derive_moduli(self, step, 2, &table, error));
    job_add_table(&job, table);
    job.space = space_of(step, &moduli);
    struct interleaved found = interleaved_of(step, &job.space);
    struct space *space = &job.space, old = *space;
    uint32_t parts = found.axes - 1;
    space->rank = found.axes;
    for (uint32_t axis = found.rows; axis < parts; axis++)
        space_move_axis(space, axis, &old, axis + 1);
    space_move_axis(space, parts, &old, found.rows);
    space_move_axis(space, parts + 1, &old, found.rows);
    space->shape[parts] = (old.shape[found.rows] + INTERLEAVED_GROUPS - 1) / INTERLEAVED_GROUPS;
    for (int i = 0; i < SPACE_OPERANDS; i++)
        space->operand[i].stride[parts] *= INTERLEAVED_GROUPS;
    space->end = 1;
    for (uint32_t axis = 0; axis <= parts; axis++)
        space->end *= (uint64_t)space->shape[axis];
    job.granule = (uint64_t)(VECTORS_GRANULE / (INTERLEAVED_GROUPS * found.k));
    job_add_long(&job, found.k);
    job_add_long(&job, old.shape[found.rows]);
    job_add_long(&job, found.k > 1 ? old.operand[OPERAND_Q].stride[old.rank - 1] : 0);
    add_scalars(&job, &scalars);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- any layout */

static const char *lacks_table(const struct step *step, const struct healcl_device *device)
{
    return has_modulus_table(step, 2, device) ? NULL : "there are too many moduli for a table";
}

/* With moduli in a table, or where there are too many as they are. */
MUST_CHECK static enum healcl_status launch_elements(struct launcher *self, const struct step *step,
                                                     bool has_table, struct healcl_error *error)
{
    struct scalars scalars = scalars_of(step);
    struct layout moduli = modulus_operand(step, 2, self->device);
    const struct buffer *table;
    struct job job;
    begin_elementwise(&job, self, step, "core",
                      has_table ? kernels[step->kind].table : kernels[step->kind].tensor);
    job.space = space_of(step, &moduli);
    TRY(add_elementwise_tensors(&job, step, &scalars, error));
    TRY(derive_moduli(self, step, 2, &table, error));
    if (has_table)
        job_add_table(&job, table);
    else
        TRY(job_add_input(&job, step->in[2], error));
    add_scalars(&job, &scalars);
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_table(struct launcher *self, const struct step *step,
                                                  struct healcl_error *error)
{
    return launch_elements(self, step, true, error);
}

MUST_CHECK static enum healcl_status launch_tensor(struct launcher *self, const struct step *step,
                                                   struct healcl_error *error)
{
    return launch_elements(self, step, false, error);
}

static const struct variant elementwise_variants[] = {
    {"vectors", VARIANT_VECTORS, lacks_rows_of_vectors, launch_vectors, OVER_ELEMENTS,
     "cl/modular/vectors.cl",
     "rows of multiples of eight elements in order, moduli that repeat along them"},
    {"interleaved", VARIANT_VECTORS, lacks_interleaved, launch_interleaved, OVER_ELEMENTS,
     "cl/modular/interleaved.cl",
     "elements that lie together by ones, twos or fours, the same moduli along a long axis"},
    {"table", VARIANT_GENERAL, lacks_table, launch_table, OVER_ELEMENTS, "cl/modular/general.cl",
     "anything with up to 2^16 moduli"},
    {"tensor", VARIANT_GENERAL, NULL, launch_tensor, OVER_ELEMENTS, "cl/modular/general.cl",
     "anything"},
};

const struct family family_elementwise = FAMILY_OF(elementwise, elementwise, elementwise_variants);

/* ---------------------------------------------------------------- absolute values */

static struct space space_of_absolute(const struct step *step)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, 0, &step->out->layout);
    space_set_operand(&space, 1, &step->in[0]->layout);
    space_simplify(&space);
    return space;
}

static const char *lacks_absolute_lines(const struct step *step, const struct healcl_device *device)
{
    struct space space = space_of_absolute(step);
    return lacks_lines(&space, step, device, 2);
}

MUST_CHECK static enum healcl_status begin_absolute(struct job *job, struct launcher *self,
                                                    const struct step *step,
                                                    struct healcl_error *error)
{
    job_init(job, self, step, "core", "absolute");
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job->space = space_of_absolute(step);
    job_add_space(job);
    TRY(job_add_output(job, step->out, error));
    return job_add_input(job, step->in[0], error);
}

MUST_CHECK static enum healcl_status launch_absolute(struct launcher *self, const struct step *step,
                                                     struct healcl_error *error)
{
    struct job job;
    TRY(begin_absolute(&job, self, step, error));
    return job_launch(&job, error);
}

MUST_CHECK static enum healcl_status launch_absolute_lines(struct launcher *self,
                                                           const struct step *step,
                                                           struct healcl_error *error)
{
    struct job job;
    TRY(begin_absolute(&job, self, step, error));
    job_take_lines(&job);
    return job_launch(&job, error);
}

static const struct variant absolute_variants[] = {
    {"lines", VARIANT_VECTORS, lacks_absolute_lines, launch_absolute_lines, PAST_CACHES,
     "cl/copy/lines.cl", "long rows, in order in both, of outputs too large for caches"},
    {"elements", VARIANT_GENERAL, NULL, launch_absolute, OVER_ELEMENTS, "cl/modular/general.cl",
     "anything"},
};

const struct family family_absolute = FAMILY_OF(absolute, elementwise, absolute_variants);
