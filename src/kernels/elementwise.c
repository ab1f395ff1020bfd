/* Elementwise modular operations: cl/core, cl/modular. */
#include "kernels/kernels.h"

struct elementwise_kernel {
    const char *table;    /* for any values */
    const char *residues; /* for known residues */
    const char *repeated; /* in cl/modular/repeated.cl; also for known residues */
    const char *repeated_residues;
    const char *vectors, *interleaved; /* in cl/vectors.cl */
};

/* Kernels are named after the kinds of steps. Only those of elementwise kinds exist. */
static const struct elementwise_kernel kernels[STEP_KINDS] = {
#define STEP(kind, id, ...)                                                                        \
    [STEP_##kind] = {#id "_table",   #id "_residues",   #id "_repeated", #id "_repeated_residues", \
                     #id "_vectors", #id "_interleaved"},
#include "plan/steps.def"
#undef STEP
};

/* add_scalars and cl/modular count the operations of a chain from STEP_MODMUL on. */
#define IN_ORDER(KIND, name, operands)                       \
    _Static_assert((int)(KIND) == STEP_##KIND - STEP_MODMUL, \
                   #name " has another number in cl/base/geometry.h than in plan/steps.def");
ELEMENTWISE_OPERATIONS(IN_ORDER)

/* Bit i: input i is a scalar. Inputs are a and b. */
static uint32_t scalar_mask(const struct step *step)
{
    return step->kind == STEP_CHAIN
               ? 0
               : (uint32_t)is_scalar(step, 0) | (uint32_t)is_scalar(step, 1) << 1;
}

/* Binds a chain's operands. Two bits for each of a, b and the second operation's b name its source:
 * out, x or y. x and y become in[0] and in[1] of *arranged. For other steps *arranged is a copy of
 * the step. */
static uint32_t bind_chain_operands(const struct step *step, struct step *arranged)
{
    static const int operands[] = {0, 1, 3};
    uint32_t sources = 0, used = 0;
    *arranged = *step;
    if (step->kind != STEP_CHAIN)
        return 0;
    arranged->in[0] = arranged->in[1] = step->out;
    for (int i = 0; i < 3; i++) {
        const struct tensor *tensor = step->in[operands[i]];
        if (!tensor || (tensor->storage == step->out->storage &&
                        layout_same_elements(&tensor->layout, &step->out->layout)))
            continue;
        arranged->in[used++] = tensor;
        sources |= used << 2 * i;
    }
    return sources;
}

/* Adds the value of an input; 0 if it is no scalar. */
static void add_scalar(struct job *job, const struct step *step, int i)
{
    if (is_scalar(step, i))
        job_add_scalar(job, SLOT_A + i);
    else
        job_add_long(job, 0);
}

static void add_scalars(struct job *job, const struct step *step)
{
    struct step arranged;
    if (step->kind == STEP_CHAIN) {
        job_add_uint(job, bind_chain_operands(step, &arranged));
        JOB_ADD_LONGS(job, step->value[0] - STEP_MODMUL, step->value[1] - STEP_MODMUL);
        return;
    }
    job_add_uint(job, scalar_mask(step));
    for (int i = 0; i < 2; i++)
        add_scalar(job, step, i);
}

/* The index of the moduli among the operands. */

/* The output's elements as a space. Its operands are out, and a and b if they are tensors. If
 * moduli is not NULL, it is the layout of operand p in a table. */
static struct space space_of(const struct step *step, const struct layout *moduli)
{
    struct step arranged;
    (void)bind_chain_operands(step, &arranged);
    struct space space = step_space(&arranged, 2);
    if (moduli)
        space_set_operand(&space, OPERAND_Q, moduli);
    space_simplify(&space);
    return space;
}

static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
                  int inputs, const char *kernel)
{
    struct step arranged;
    (void)bind_chain_operands(plan->step, &arranged);
    job_begin(job, self, &arranged, plan, inputs);
    job->launch.kernel = kernel;
    job_move_scalar(job, OPERAND_Q, plan->step, 2);
}

/* The least elements of a work-item of cl/vectors.cl. Its start costs as much as 200 elements. */
enum { VECTORS_GRANULE = 4096 };

static const char *plan_vectors(const struct step *step, const struct healcl_device *device,
                                struct variant_plan *plan)
{
    struct space *space = &plan->space;
    const char *obstacle = double_vectors_obstacle(device);
    if (obstacle)
        return obstacle;
    *space = space_of(step, NULL);
    uint32_t last = space->rank - 1;
    if (space->shape[last] < LANES || space->operand[0].stride[last] != 1)
        return "rows are short, or not contiguous";
    if (space->shape[last] % LANES != 0 && last > 0 && space->shape[last] > VECTORS_GRANULE)
        return "rows are long, but not multiples of eight";
    for (int i = 1; i <= 2; i++)
        if (space->operand[i].stride[last] != 0 && space->operand[i].stride[last] != 1)
            return "an operand's elements are not contiguous";
    return moduli_are_periodic(step, INPUT_P) ? NULL : "moduli do not repeat along the last axis";
}

/* The index of the vector of moduli for the last eight elements of a row of n. n is a multiple of
 * the number of moduli. */
static int64_t last_moduli(const struct periodic_moduli *moduli, int64_t n)
{
    int64_t place = 0;
    while (n % LANES != 0 && (place * LANES - (n - LANES)) % moduli->k != 0)
        place++;
    return place;
}

static enum healcl_status choose_vectors(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan, 2, kernels[step->kind].vectors);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, 2);
    job_add_buffer(&job, moduli.lanes);
    int64_t n = job.space.shape[job.space.rank - 1];
    bool is_whole = n % LANES == 0 || job.space.rank == 1;
    JOB_ADD_LONGS(&job, moduli.period, last_moduli(&moduli, n));
    add_scalars(&job, step);
    job.granule = (uint64_t)(is_whole ? VECTORS_GRANULE : VECTORS_GRANULE / n * n);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- interleaved groups */

enum {
    INTERLEAVED_MIN = 2048, /* elements: fewer are not worth another kernel */
    GROUPS_MIN = 16,        /* along an axis */
};

/* Whether out and all operands that are tensors are contiguous along an axis. */
static bool lies_together(const struct space *space, uint32_t axis, uint32_t scalars)
{
    for (uint32_t i = 0; i < OPERAND_Q; i++)
        if (space->operand[i].stride[axis] != 1 && !(i > 0 && scalars & 1u << (i - 1)))
            return false;
    return true;
}

/* The longest axis before `end` along which moduli are equal. `end` if none exists. */
static uint32_t longest_axis(const struct space *space, uint32_t end)
{
    uint32_t longest = end;
    for (uint32_t axis = 0; axis < end; axis++)
        if (space->operand[OPERAND_Q].stride[axis] == 0 &&
            (longest == end || space->shape[axis] >= space->shape[longest]))
            longest = axis;
    return longest;
}

static const char *plan_interleaved(const struct step *step, const struct healcl_device *device,
                                    struct variant_plan *plan)
{
    struct elementwise_plan *found = &plan->elementwise;
    struct space *space = &plan->space;
    const char *obstacle = double_vectors_obstacle(device);
    if (obstacle)
        return obstacle;
    const struct layout moduli = modulus_operand(step, 2);
    *space = space_of(step, &moduli);
    const uint32_t last = space->rank - 1;
    const int64_t k = space->shape[last];
    found->k = (k == 2 || k == 4) && lies_together(space, last, scalar_mask(step)) ? k : 1;
    found->axes = found->k > 1 ? last : space->rank;
    found->groups = longest_axis(space, found->axes);
    if (space->end < INTERLEAVED_MIN)
        return "there are too few elements";
    return found->groups == found->axes || space->shape[found->groups] < GROUPS_MIN
               ? "moduli are not equal along a long axis"
               : NULL;
}

/* Blocks of the groups' axis become the last axis, and the groups follow behind it. */
static enum healcl_status choose_interleaved(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct elementwise_plan found = plan->elementwise;
    const struct space old = plan->space;
    struct job job;
    begin(&job, self, plan, 2, kernels[step->kind].interleaved);
    const int table = derive_moduli(self, step, 2);
    job_add_buffer(&job, table);
    struct space *space = &job.space;
    uint32_t blocks = found.axes - 1;
    space->rank = found.axes;
    for (uint32_t axis = found.groups; axis < blocks; axis++)
        space_move_axis(space, axis, &old, axis + 1);
    space_move_axis(space, blocks, &old, found.groups);
    space_move_axis(space, blocks + 1, &old, found.groups);
    space_divide_axis(space, blocks, INTERLEAVED_GROUPS);
    job.granule = (uint64_t)(VECTORS_GRANULE / (INTERLEAVED_GROUPS * found.k));
    JOB_ADD_LONGS(&job, found.k, old.shape[found.groups],
                  found.k > 1 ? old.operand[OPERAND_Q].stride[old.rank - 1] : 0);
    add_scalars(&job, step);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_elements(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    const struct layout moduli = modulus_operand(step, 2);
    (void)device;
    plan->space = space_of(step, &moduli);
    return NULL;
}

/* The vectors, in elements, of a kernel for any values. Intel's compiler spills registers for
 * products on vectors of four. It does so for sums, which have branches, on vectors of two. */
static uint32_t width_of_any(const struct step *step)
{
    if (step->kind == STEP_MODMUL)
        return 2;
    return step->in[1] || step->kind == STEP_CHAIN ? 1 : VECTOR_MOST;
}

static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    const int table = derive_moduli(self, step, 2);
    begin(&job, self, plan, 2, kernels[step->kind].table);
    if (step->kind == STEP_CHAIN)
        job.launch.program = "core/chain";
    job_add_buffer(&job, table);
    add_scalars(&job, step);
    job_allow_vectors(&job, step, width_of_any(step), 2);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- a repeated operand */

enum {
    REPEATED_MIN = 1024, /* elements: fewer are not worth another program */
    REPEATED_ROWS = 16,  /* of a work-item: enough to make its setup cheap */
    REPEATED_ROW_MIN =
        64, /* elements between consecutive elements of a work-item that are in the same row */
};

static bool is_same_along(const struct space *space, uint32_t axis)
{
    return space->operand[2].stride[axis] == 0 && space->operand[OPERAND_Q].stride[axis] == 0;
}

/* Makes an axis the first one. */
static void move_to_front(struct space *space, uint32_t axis)
{
    const struct space old = *space;
    for (uint32_t to = axis; to > 0; to--)
        space_move_axis(space, to, &old, to - 1);
    space_move_axis(space, 0, &old, axis);
}

/* If possible, divides the last axis by a number of rows for each work-item. The rows become the
 * first axis. */
static bool divide_last(struct space *space)
{
    const uint32_t last = space->rank - 1;
    int64_t rows = REPEATED_ROWS;
    while (rows > 1 && space->shape[last] % rows != 0)
        rows /= 2;
    const int64_t length = space->shape[last] / rows;
    if (rows == 1 || length < REPEATED_ROW_MIN || space->rank == SPACE_AXES)
        return false;
    space_add_axis(space);
    space->shape[0] = rows;
    for (uint32_t k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[0] = space->operand[k].stride[last + 1] * length;
    space->shape[last + 1] = length;
    return true;
}

/* Whether an input and the moduli are constant along an axis. The longest axis but the last is
 * tried first, unless it is short, and then the last one. Rows become the space's first axis.
 * *varies: the other input, operand 1. */
static bool find_repeated(const struct step *step, const struct layout *moduli, struct space *space,
                          int *varies)
{
    for (int a = 0; a < (step_traits[step->kind].commutes ? 2 : 1); a++) {
        if (is_scalar(step, a))
            continue;
        *varies = a;
        *space = space_of(step, moduli);
        if (a == 1) {
            const struct operand b = space->operand[1];
            space->operand[1] = space->operand[2];
            space->operand[2] = b;
        }
        uint32_t last = space->rank - 1, longest = last;
        for (uint32_t axis = 0; axis < last; axis++)
            if (is_same_along(space, axis) &&
                (longest == last || space->shape[axis] > space->shape[longest]))
                longest = axis;
        bool is_short = longest == last || space->shape[longest] < REPEATED_ROWS;
        if (is_short && is_same_along(space, last) && divide_last(space))
            return true;
        if (longest < last) {
            move_to_front(space, longest);
            return true;
        }
    }
    return false;
}

/* Elements of a work-item. Less than 2 if this leaves fewer work-items than one work-group for each
 * compute unit. */
static int64_t repeated_rows(const struct space *space, const struct healcl_device *device)
{
    const uint64_t items = (uint64_t)device->tuning.local_size * device->info.compute_units;
    const uint64_t most = space->end / items;
    const int64_t rows = space->shape[0] < REPEATED_ROWS ? space->shape[0] : REPEATED_ROWS;
    return most < (uint64_t)rows ? (int64_t)most : rows;
}

static const char *plan_repeated(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    struct space *space = &plan->space;
    if (step->kind == STEP_CHAIN || !step->in[1])
        return "there is only one operand";
    const struct layout moduli = modulus_operand(step, 2);
    if (!find_repeated(step, &moduli, space, &plan->elementwise.a))
        return "no operand repeats along an axis as moduli do";
    if (space->end < REPEATED_MIN || repeated_rows(space, device) < 2)
        return "there are too few elements";
    return axes_are_compiled(space, device) ? NULL : "no kernel is compiled for this view";
}

static enum healcl_status choose_repeated(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    const int a = plan->elementwise.a,
              b = 1 - a; /* Shoup's product is faster than one of residues */
    const bool are_residues = step->kind != STEP_MODMUL && (step->residues & 3) == 3;
    const int table = derive_moduli(self, step, 2);
    begin(&job, self, plan, 0,
          are_residues ? kernels[step->kind].repeated_residues : kernels[step->kind].repeated);
    job_add_tensor(&job, 1, step, a);
    job_add_tensor(&job, 2, step, b);
    job_add_buffer(&job, table);
    struct space *space = &job.space;
    const int64_t rows = repeated_rows(space, self->device);
    const int64_t distance = (space->shape[0] + rows - 1) / rows;
    job_add_uint(&job, (uint32_t)space->end);
    JOB_ADD_LONGS(&job, distance * space->operand[0].stride[0],
                  distance * space->operand[1].stride[0]);
    job_add_uint(&job, is_scalar(step, b));
    add_scalar(&job, step, b);
    space->end = space->end / (uint64_t)space->shape[0] * (uint64_t)distance;
    space->shape[0] = distance;
    space_simplify(space);
    job.rounds = (uint64_t)rows;
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- known residues */

/* Whether moduli, seen through a table's layout, are periodic in C order. Each modulus is used for
 * *repeats elements, and after *count moduli the first one returns. */
static bool find_period(const struct layout *table, int64_t *repeats, int64_t *count)
{
    bool ended = false;
    *repeats = *count = 1;
    for (uint32_t axis = table->rank; axis-- > 0;) {
        int64_t size = table->shape[axis];
        if (size == 1)
            continue;
        if (table->stride[axis] == 0 && *count == 1)
            *repeats *= size;
        else if (table->stride[axis] == 0)
            ended = true;
        else if (!ended && table->stride[axis] == *count)
            *count *= size;
        else
            return false;
    }
    return true;
}

/* Moduli are an ordinary operand, unless the space has only one axis and moduli are periodic. */
static const char *plan_residues(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    struct elementwise_plan *found = &plan->elementwise;
    uint32_t wanted = step->in[1] ? 3 : 1;
    if (step->kind == STEP_CHAIN)
        return "the step is a chain";
    if ((step->residues & wanted) != wanted)
        return "operands are not known to be residues";
    if (is_scalar(step, 0) || (step->in[1] && is_scalar(step, 1)))
        return "an operand is a scalar";
    found->moduli = modulus_operand(step, 2);
    found->repeats = found->count = 1;
    plan->space = space_of(step, NULL);
    if (plan->space.rank != 1 || !find_period(&found->moduli, &found->repeats, &found->count))
        plan->space = space_of(step, &found->moduli);
    return axes_are_compiled(&plan->space, device) ? NULL : "no kernel is compiled for this view";
}

static enum healcl_status choose_residues(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct elementwise_plan *found = &plan->elementwise;
    struct job job;
    const int table = derive_moduli(self, step, 2);
    begin(&job, self, plan, 2, kernels[step->kind].residues);
    job_add_buffer(&job, table);
    if (is_scalar(step, 2))
        job_add_scalar(&job, SLOT_Q_NUMBER);
    else
        job_add_uint(&job, (uint32_t)found->moduli.offset);
    job_add_uint(&job, (uint32_t)found->repeats);
    job_add_uint(&job, reciprocal_of(found->repeats));
    job_add_uint(&job, (uint32_t)found->count);
    job_add_uint(&job, reciprocal_of(found->count));
    if (job.space.rank > 1 || found->repeats % VECTOR_MOST == 0)
        job_allow_vectors(&job, step, VECTOR_MOST, 2);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- one factor */

static const char *plan_constant(const struct step *step, const struct healcl_device *device,
                                 struct variant_plan *plan)
{
    (void)device;
    const int a = is_scalar(step, 0);
    if (step->kind != STEP_MODMUL || is_scalar(step, 1) == (a != 0) || !is_scalar(step, 2))
        return "factor and modulus are not scalars";
    space_of_views(&plan->space, &step->out->layout, &step->in[a]->layout);
    return NULL;
}

/* Uses Shoup's quotient, see struct twiddle. The plan has checked that the modulus is above 0. */
static enum healcl_status choose_constant(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    int a = is_scalar(step, 0);
    struct job job;
    job_begin(&job, self, step, plan, 0);
    job_add_tensor(&job, 1, step, a);
    job_add_scalar(&job, SLOT_FACTOR);
    job_add_scalar(&job, SLOT_QUOTIENT);
    job_add_scalar(&job, SLOT_Q);
    add_scalar(&job, step, 1 - a);
    job_allow_vectors(&job, step, VECTOR_MOST, 1);
    return job_launch(&job, error);
}

static const struct variant elementwise_variants[] = {
    {"vectors", STYLE_VECTORS, plan_vectors, choose_vectors, MULTIPLIED, "vectors", NULL,
     "cl/modular/vectors.cl",
     "contiguous rows of eight elements or more, with moduli that repeat along them"},
    {"interleaved", STYLE_VECTORS, plan_interleaved, choose_interleaved, MULTIPLIED, "vectors",
     NULL, "cl/modular/interleaved.cl",
     "groups of 1, 2 or 4 contiguous elements, with equal moduli along a long axis"},
    {"constant", STYLE_LOCAL, plan_constant, choose_constant, WIDE_OVER_ANY_VIEW, "core/constant",
     "modmul_constant", "cl/core/constant.cl", "a product by a scalar, modulo a scalar"},
    {"repeated", STYLE_LOCAL, plan_repeated, choose_repeated, OVER_ANY_VIEW, "modular/repeated",
     NULL, "cl/modular/repeated.cl",
     "products and sums with an operand that is constant along an axis, as moduli are"},
    {"residues", STYLE_LOCAL, plan_residues, choose_residues, WIDE_OVER_ANY_VIEW, "core/residues",
     NULL, "cl/core/residues.cl", "operands that the plan knows to be residues"},
    {"single", STYLE_SINGLE, plan_elements, choose_elements, 0, "core/elementwise", NULL,
     "cl/core/elementwise.cl", "up to 2^31 elements"},
    {"table", STYLE_GENERAL, plan_elements, choose_elements, WIDE_OVER_ANY_VIEW, "core/elementwise",
     NULL, "cl/core/elementwise.cl", "anything"},
};

const struct family family_elementwise = FAMILY_OF(elementwise, elementwise, elementwise_variants);
