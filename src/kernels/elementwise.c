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

/* Bits of both inputs in masks such as step->residues. */
enum { A_AND_B = 1 << INPUT_A | 1 << INPUT_B };

/* Bit i: input i, a or b, is a scalar of the plan. Chains have none. */
static uint32_t scalar_mask(const struct step *step)
{
    if (step->kind == STEP_CHAIN)
        return 0;
    return (uint32_t)is_scalar(step, INPUT_A) | (uint32_t)is_scalar(step, INPUT_B) << INPUT_B;
}

/* The tensors that a chain reads from memory besides out, x and y. A chain has three operands: a, b
 * and the second operation's b. One of them is missing or is out. sources has two bits for each of
 * the three, the first one lowest: 0 out, 1 x, 2 y. */
struct chain_memory {
    const struct tensor *x_and_y[2]; /* out, as a stand-in, if there is none */
    uint32_t sources;
};

/* Finds the tensors that a chain reads from memory. */
static struct chain_memory chain_memory_of(const struct step *step)
{
    static const int operands[] = {INPUT_A, INPUT_B, INPUT_SECOND_B};
    struct chain_memory memory = {.x_and_y = {step->out, step->out}};
    uint32_t used = 0;
    for (int i = 0; i < 3; i++) {
        const struct tensor *tensor = step->in[operands[i]];
        const bool is_out = tensor && tensor->storage == step->out->storage &&
                            layout_same_elements(&tensor->layout, &step->out->layout);
        if (!tensor || is_out)
            continue;
        memory.x_and_y[used++] = tensor;
        memory.sources |= used << 2 * i;
    }
    return memory;
}

/* A copy of a step whose first two inputs are those that its kernel reads: x and y of a chain. */
static struct step as_kernels_read(const struct step *step)
{
    struct step arranged = *step;
    if (step->kind == STEP_CHAIN) {
        const struct chain_memory memory = chain_memory_of(step);
        arranged.in[INPUT_A] = memory.x_and_y[0];
        arranged.in[INPUT_B] = memory.x_and_y[1];
    }
    return arranged;
}

/* Adds the value of input i, a or b. Kernels do not read it if the input is a tensor. */
static void add_scalar(struct job *job, const struct step *step, int i)
{
    if (is_scalar(step, i))
        job_add_scalar(job, SLOT_A + i);
    else
        job_add_long(job, 0);
}

/* Adds the last three arguments: a mask of scalars and their values. Kernels of chains take the
 * sources of operands there, and the numbers of the two operations. */
static void add_scalars(struct job *job, const struct step *step)
{
    if (step->kind == STEP_CHAIN) {
        job_add_uint(job, chain_memory_of(step).sources);
        JOB_ADD_LONGS(job, step->value[0] - STEP_MODMUL, step->value[1] - STEP_MODMUL);
        return;
    }
    job_add_uint(job, scalar_mask(step));
    add_scalar(job, step, INPUT_A);
    add_scalar(job, step, INPUT_B);
}

/* The output's elements as a space. Its operands are out, and a and b if they are tensors. If
 * moduli is not NULL, it is the layout of operand p in a table. */
static struct space space_of(const struct step *step, const struct layout *moduli)
{
    const struct step arranged = as_kernels_read(step);
    struct space space = step_space(&arranged, 2 /* inputs */);
    if (moduli)
        space_set_operand(&space, OPERAND_Q, moduli);
    space_simplify(&space);
    return space;
}

/* Begins a job with the space, the output, and the first `inputs` inputs, as the kernel reads them.
 * If the modulus is a scalar, the space finds it in the table of the plan's scalars. */
static void begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
                  int inputs, const char *kernel)
{
    const struct step arranged = as_kernels_read(plan->step);
    job_begin(job, self, plan, 0);
    job->launch.kernel = kernel;
    for (int i = 0; i < inputs; i++)
        job_add_tensor(job, OPERAND_A + i, &arranged, i);
    job_move_scalar(job, OPERAND_Q, plan->step, INPUT_P);
}

/* ---------------------------------------------------------------- vectors of eight */

/* The least elements of a work-item of cl/vectors.cl. Its start costs as much as 200 elements. */
enum { VECTORS_GRANULE = 4096 };

/* For contiguous rows. The kernel takes moduli as vectors of eight, which must repeat along a row.
 */
static const char *plan_vectors(struct variant_plan *plan)
{
    struct space *space = &plan->space;
    RETURN_OBSTACLE(double_vectors_obstacle(plan->device));
    *space = space_of(plan->step, NULL);
    const uint32_t last = space->rank - 1;
    const int64_t row = space->shape[last];
    const bool has_whole_vectors = row % LANES == 0 || space->rank == 1;
    OBSTACLE_IF(row < LANES || space->operand[OPERAND_OUT].stride[last] != 1,
                "rows are short, or not contiguous");
    OBSTACLE_IF(!has_whole_vectors && row > VECTORS_GRANULE,
                "rows are long, but not multiples of eight");
    for (int i = OPERAND_A; i <= OPERAND_B; i++)
        OBSTACLE_IF(space->operand[i].stride[last] != 0 && space->operand[i].stride[last] != 1,
                    "an operand's elements are not contiguous");
    OBSTACLE_IF(!moduli_are_periodic(plan->step, INPUT_P),
                "moduli do not repeat along the last axis");
    return NULL;
}

/* The index of the vector of moduli for the last eight elements of a row of n elements. If n is not
 * a multiple of eight, these overlap the last whole vector. The first of them is element n - 8. So
 * its modulus must be that of element 8 * index, modulo k. n is a multiple of k. */
static int64_t last_moduli_index(const struct periodic_moduli *moduli, int64_t n)
{
    if (n % LANES == 0)
        return 0;
    int64_t index = 0;
    while ((index * LANES - (n - LANES)) % moduli->k != 0)
        index++;
    return index;
}

/* The kernel's parameters after the operands: moduli as vectors, vectors until they repeat, the
 * index of those for the end of a row, then the scalars. */
static enum healcl_status choose_vectors(struct launcher *self, const struct variant_plan *plan,
                                         struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan, 2 /* inputs */, kernels[step->kind].vectors);
    const struct periodic_moduli moduli = derive_periodic_moduli(self, step, INPUT_P);
    job_add_buffer(&job, moduli.lanes);
    const int64_t row = job.space.shape[job.space.rank - 1];
    JOB_ADD_LONGS(&job, moduli.period, last_moduli_index(&moduli, row));
    add_scalars(&job, step);
    /* A work-item begins at a whole vector: several rows of other lengths are taken together. */
    const bool has_whole_vectors = row % LANES == 0 || job.space.rank == 1;
    job.granule = (uint64_t)(has_whole_vectors ? VECTORS_GRANULE : VECTORS_GRANULE / row * row);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- interleaved groups */

enum {
    INTERLEAVED_MIN = 2048, /* elements: fewer are not worth another kernel */
    GROUPS_MIN = 16,        /* along an axis */
};

/* Whether out and all operands that are tensors are contiguous along an axis. scalars: see
 * scalar_mask. */
static bool is_contiguous_along(const struct space *space, uint32_t axis, uint32_t scalars)
{
    const bool a_is_scalar = scalars >> INPUT_A & 1, b_is_scalar = scalars >> INPUT_B & 1;
    return space->operand[OPERAND_OUT].stride[axis] == 1 &&
           (a_is_scalar || space->operand[OPERAND_A].stride[axis] == 1) &&
           (b_is_scalar || space->operand[OPERAND_B].stride[axis] == 1);
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

/* For elements that are contiguous only in groups: of 2 or 4 moduli along the last axis, or of one.
 * The kernel gathers eight elements to a vector, from groups that follow each other along another
 * axis. There the moduli repeat, so that one vector of moduli serves the whole axis. */
static const char *plan_interleaved(struct variant_plan *plan)
{
    struct elementwise_plan *found = &plan->elementwise;
    struct space *space = &plan->space;
    RETURN_OBSTACLE(double_vectors_obstacle(plan->device));
    const struct layout moduli = modulus_operand(plan->step, INPUT_P);
    *space = space_of(plan->step, &moduli);
    const uint32_t last = space->rank - 1;
    const int64_t k = space->shape[last];
    const bool has_groups =
        (k == 2 || k == 4) && is_contiguous_along(space, last, scalar_mask(plan->step));
    found->group_size = has_groups ? k : 1;
    found->axes_of_groups = has_groups ? last : space->rank;
    found->groups_axis = longest_axis(space, found->axes_of_groups);
    const bool has_axis = found->groups_axis < found->axes_of_groups;
    OBSTACLE_IF(space->end < INTERLEAVED_MIN, "there are too few elements");
    OBSTACLE_IF(!has_axis || space->shape[found->groups_axis] < GROUPS_MIN,
                "moduli are not equal along a long axis");
    return NULL;
}

/* Makes the plan's space that of blocks of INTERLEAVED_GROUPS groups. Their axis is moved behind
 * the other axes of groups. It occurs twice: the last axis of the space counts blocks, and behind
 * the space's axes the kernel finds the stride of the groups themselves. */
static void set_blocks_of_groups(struct space *space, const struct variant_plan *plan)
{
    const uint32_t groups_axis = plan->elementwise.groups_axis;
    const uint32_t blocks_axis = plan->elementwise.axes_of_groups - 1;
    space->rank = plan->elementwise.axes_of_groups;
    for (uint32_t axis = groups_axis; axis < blocks_axis; axis++)
        space_move_axis(space, axis, &plan->space, axis + 1);
    space_move_axis(space, blocks_axis, &plan->space, groups_axis);
    space_move_axis(space, blocks_axis + 1, &plan->space, groups_axis);
    space_divide_axis(space, blocks_axis, INTERLEAVED_GROUPS);
}

/* The kernel's parameters after the operands: moduli, elements of a group, the number of groups,
 * the stride of moduli within a group, then the scalars. */
static enum healcl_status choose_interleaved(struct launcher *self, const struct variant_plan *plan,
                                             struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct space *space = &plan->space;
    const int64_t group_size = plan->elementwise.group_size;
    const int64_t group_count = space->shape[plan->elementwise.groups_axis];
    const int64_t last_q_stride = space->operand[OPERAND_Q].stride[space->rank - 1];
    struct job job;
    begin(&job, self, plan, 2 /* inputs */, kernels[step->kind].interleaved);
    job_add_buffer(&job, derive_moduli(self, step, INPUT_P));
    set_blocks_of_groups(&job.space, plan);
    job.granule = (uint64_t)(VECTORS_GRANULE / (INTERLEAVED_GROUPS * group_size));
    JOB_ADD_LONGS(&job, group_size, group_count, group_size > 1 ? last_q_stride : 0);
    add_scalars(&job, step);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- any layout */

static const char *plan_elements(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const struct layout moduli = modulus_operand(step, INPUT_P);
    plan->space = space_of(step, &moduli);
    return NULL;
}

/* The vectors, in elements, of a kernel for any values. Intel's compiler spills registers for
 * products on vectors of four. It does so for sums, which have branches, on vectors of two. */
static uint32_t width_of_any(const struct step *step)
{
    if (step->kind == STEP_MODMUL)
        return 2;
    return step->in[INPUT_B] || step->kind == STEP_CHAIN ? 1 : VECTOR_MOST;
}

/* The general kernel: any values, any layout, moduli as an operand. */
static enum healcl_status choose_elements(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    begin(&job, self, plan, 2 /* inputs */, kernels[step->kind].table);
    if (step->kind == STEP_CHAIN)
        job.launch.program = "core/chain";
    job_add_buffer(&job, derive_moduli(self, step, INPUT_P));
    add_scalars(&job, step);
    job_allow_vectors(&job, step, width_of_any(step), 2 /* inputs */);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- a repeated operand */

enum {
    REPEATED_MIN = 1024, /* elements: fewer are not worth another program */
    REPEATED_ROWS = 16,  /* of a work-item: enough to make its setup cheap */
    /* Elements between consecutive elements of a work-item that are in the same row: neighbours
     * must still access adjacent memory. */
    REPEATED_ROW_MIN = 64,
};

/* Whether operand b and the moduli are constant along an axis. */
static bool repeats_along(const struct space *space, uint32_t axis)
{
    return space->operand[OPERAND_B].stride[axis] == 0 &&
           space->operand[OPERAND_Q].stride[axis] == 0;
}

/* Makes an axis the first one. */
static void move_to_front(struct space *space, uint32_t axis)
{
    const struct space old = *space;
    for (uint32_t to = axis; to > 0; to--)
        space_move_axis(space, to, &old, to - 1);
    space_move_axis(space, 0, &old, axis);
}

/* If possible, divides the last axis [rows * length] into [rows, length], with rows as the space's
 * first axis. A work-item takes one element of each row, so that neighbours access adjacent memory.
 */
static bool divide_last_axis(struct space *space)
{
    const uint32_t last = space->rank - 1;
    int64_t rows = REPEATED_ROWS;
    while (rows > 1 && space->shape[last] % rows != 0)
        rows /= 2;
    const int64_t length = space->shape[last] / rows;
    if (rows == 1 || length < REPEATED_ROW_MIN || space->rank == SPACE_AXES)
        return false;
    const uint32_t new_last = last + 1;
    space->shape[last] = length;
    space->end /= (uint64_t)rows;
    space_insert_axis(space, 0, rows);
    for (uint32_t k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[0] = space->operand[k].stride[new_last] * length;
    return true;
}

/* Makes the axis along which b and the moduli are constant the first one. That is the longest axis
 * but the last; if it is short, rows of the last one. Returns whether such an axis exists. */
static bool move_repeated_to_front(struct space *space)
{
    const uint32_t last = space->rank - 1;
    uint32_t longest = last;
    for (uint32_t axis = 0; axis < last; axis++)
        if (repeats_along(space, axis) &&
            (longest == last || space->shape[axis] > space->shape[longest]))
            longest = axis;
    const bool was_found = longest < last;
    const bool is_short = !was_found || space->shape[longest] < REPEATED_ROWS;
    if (is_short && repeats_along(space, last) && divide_last_axis(space))
        return true;
    if (was_found)
        move_to_front(space, longest);
    return was_found;
}

/* Whether one input is constant along an axis, as the moduli are. Sets the space: its first axis is
 * that one, OPERAND_B is that input, and OPERAND_A the other one, *varying_input. */
static bool find_repeated(const struct step *step, const struct layout *moduli, struct space *space,
                          int *varying_input)
{
    const int last_input = step_traits[step->kind].commutes ? INPUT_B : INPUT_A;
    for (int varying = INPUT_A; varying <= last_input; varying++) {
        if (is_scalar(step, varying))
            continue;
        *varying_input = varying;
        *space = space_of(step, moduli);
        if (varying == INPUT_B) {
            const struct operand a = space->operand[OPERAND_A];
            space->operand[OPERAND_A] = space->operand[OPERAND_B];
            space->operand[OPERAND_B] = a;
        }
        if (move_repeated_to_front(space))
            return true;
    }
    return false;
}

/* Elements of a work-item, one for each row. Less than 2 if this leaves fewer work-items than one
 * work-group for each compute unit. */
static int64_t repeated_rows(const struct space *space, const struct healcl_device *device)
{
    const uint64_t items_min = (uint64_t)device->tuning.local_size * device->info.compute_units;
    const int64_t rows = smaller(space->shape[0], REPEATED_ROWS);
    return smaller(rows, (int64_t)(space->end / items_min));
}

/* A work-item computes several elements with the same b and modulus: it reads these once, and
 * computes b's Shoup quotient once. */
static const char *plan_repeated(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    struct space *space = &plan->space;
    OBSTACLE_IF(step->kind == STEP_CHAIN || !step->in[INPUT_B], "there is only one operand");
    const struct layout moduli = modulus_operand(step, INPUT_P);
    OBSTACLE_IF(!find_repeated(step, &moduli, space, &plan->elementwise.varying_input),
                "no operand repeats along an axis as moduli do");
    OBSTACLE_IF(space->end < REPEATED_MIN || repeated_rows(space, plan->device) < 2,
                "there are too few elements");
    return axes_are_compiled(space, plan->device) ? NULL : "no kernel is compiled for this view";
}

/* A work-item computes the elements i, i + apart, i + 2 * apart, ... of the space's first axis. The
 * space keeps the first one: that axis is shortened to `apart` elements. The kernel's parameters
 * after the operands: the number of all elements, the distances in out and a between the elements
 * of a work-item, whether b is a scalar, and its value. */
static enum healcl_status choose_repeated(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct elementwise_kernel *kernel = &kernels[step->kind];
    const int varying = plan->elementwise.varying_input;
    const int repeated = varying == INPUT_A ? INPUT_B : INPUT_A;
    const bool are_residues = (step->residues & A_AND_B) == A_AND_B;
    /* For products, Shoup's method is faster than what residues allow. */
    const bool uses_residues = are_residues && step->kind != STEP_MODMUL;
    struct job job;
    begin(&job, self, plan, 0 /* inputs */,
          uses_residues ? kernel->repeated_residues : kernel->repeated);
    job_add_tensor(&job, OPERAND_A, step, varying);
    job_add_tensor(&job, OPERAND_B, step, repeated);
    job_add_buffer(&job, derive_moduli(self, step, INPUT_P));
    struct space *space = &job.space;
    const int64_t rows = repeated_rows(space, self->device);
    const int64_t apart = blocks_for(space->shape[0], rows);
    job_add_uint(&job, (uint32_t)space->end);
    JOB_ADD_LONGS(&job, apart * space->operand[OPERAND_OUT].stride[0],
                  apart * space->operand[OPERAND_A].stride[0]);
    job_add_uint(&job, is_scalar(step, repeated));
    add_scalar(&job, step, repeated);
    space->end = space->end / (uint64_t)space->shape[0] * (uint64_t)apart;
    space->shape[0] = apart;
    space_simplify(space);
    job.rounds = (uint64_t)rows;
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- known residues */

/* Whether moduli, seen through a table's layout, are periodic in C order: *repeats elements in
 * sequence have one modulus, and after *count moduli the first one returns. From the last axis on,
 * such a layout has axes that repeat a modulus, then axes that count moduli, then axes that repeat
 * them all. */
static bool find_period(const struct layout *table, int64_t *repeats, int64_t *count)
{
    bool all_repeat = false;
    *repeats = *count = 1;
    for (uint32_t axis = table->rank; axis-- > 0;) {
        const int64_t size = table->shape[axis], stride = table->stride[axis];
        if (size == 1)
            continue;
        if (stride == 0 && *count == 1)
            *repeats *= size;
        else if (stride == 0)
            all_repeat = true;
        else if (!all_repeat && stride == *count)
            *count *= size;
        else
            return false;
    }
    return true;
}

/* For operands that are known to be residues: products and sums of them need no signs, and sums no
 * division. Moduli are an ordinary operand, unless the space has one axis and they are periodic.
 * Then the kernel computes the index of a modulus from that of the element. */
static const char *plan_residues(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    struct elementwise_plan *found = &plan->elementwise;
    const uint32_t operands = step->in[INPUT_B] ? A_AND_B : 1u << INPUT_A;
    const bool are_residues = (step->residues & operands) == operands;
    const bool has_scalar =
        is_scalar(step, INPUT_A) || (step->in[INPUT_B] && is_scalar(step, INPUT_B));
    OBSTACLE_IF(step->kind == STEP_CHAIN, "the step is a chain");
    OBSTACLE_IF(!are_residues, "operands are not known to be residues");
    OBSTACLE_IF(has_scalar, "an operand is a scalar");
    found->moduli = modulus_operand(step, INPUT_P);
    found->elements_of_modulus = found->modulus_count = 1;
    plan->space = space_of(step, NULL);
    if (plan->space.rank != 1 ||
        !find_period(&found->moduli, &found->elements_of_modulus, &found->modulus_count))
        plan->space = space_of(step, &found->moduli);
    return axes_are_compiled(&plan->space, plan->device) ? NULL
                                                         : "no kernel is compiled for this view";
}

/* The kernel's parameters after the operands: the table of moduli, and the index of the first one.
 * Then, for periodic moduli, two divisors with their reciprocals: elements that share a modulus,
 * and moduli until they repeat. */
static enum healcl_status choose_residues(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct elementwise_plan *found = &plan->elementwise;
    struct job job;
    begin(&job, self, plan, 2 /* inputs */, kernels[step->kind].residues);
    job_add_buffer(&job, derive_moduli(self, step, INPUT_P));
    if (is_scalar(step, INPUT_P))
        job_add_scalar(&job, SLOT_Q_NUMBER);
    else
        job_add_uint(&job, (uint32_t)found->moduli.offset);
    job_add_uint(&job, (uint32_t)found->elements_of_modulus);
    job_add_uint(&job, reciprocal_of(found->elements_of_modulus));
    job_add_uint(&job, (uint32_t)found->modulus_count);
    job_add_uint(&job, reciprocal_of(found->modulus_count));
    /* All elements of a vector need the same modulus. */
    if (job.space.rank > 1 || found->elements_of_modulus % VECTOR_MOST == 0)
        job_allow_vectors(&job, step, VECTOR_MOST, 2 /* inputs */);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- one factor */

/* The scalar input, a or b, of a product whose other input is a tensor. */
static int scalar_input(const struct step *step)
{
    return is_scalar(step, INPUT_A) ? INPUT_A : INPUT_B;
}

static int tensor_input(const struct step *step)
{
    return is_scalar(step, INPUT_A) ? INPUT_B : INPUT_A;
}

/* For products of a tensor and a scalar modulo a scalar: the Shoup quotient of the scalar is
 * computed once, on the host. */
static const char *plan_constant(struct variant_plan *plan)
{
    const struct step *step = plan->step;
    const bool one_is_scalar = is_scalar(step, INPUT_A) != is_scalar(step, INPUT_B);
    OBSTACLE_IF(step->kind != STEP_MODMUL || !one_is_scalar || !is_scalar(step, INPUT_P),
                "factor and modulus are not scalars");
    space_of_views(&plan->space, &step->out->layout, &step->in[tensor_input(step)]->layout);
    return NULL;
}

/* Multiplies by a scalar with its Shoup quotient, see struct twiddle. The plan has checked that the
 * modulus is above 0. The kernel's parameters after the operands: the factor without its sign, its
 * quotient, the modulus, and the scalar for its sign. */
static enum healcl_status choose_constant(struct launcher *self, const struct variant_plan *plan,
                                          struct healcl_error *error)
{
    const struct step *step = plan->step;
    struct job job;
    job_begin(&job, self, plan, 0 /* inputs */);
    job_add_tensor(&job, OPERAND_A, step, tensor_input(step));
    job_add_scalar(&job, SLOT_FACTOR);
    job_add_scalar(&job, SLOT_QUOTIENT);
    job_add_scalar(&job, SLOT_Q);
    add_scalar(&job, step, scalar_input(step));
    job_allow_vectors(&job, step, VECTOR_MOST, 1 /* input */);
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
    GENERAL_VARIANTS("table", plan_elements, choose_elements, WIDE_OVER_ANY_VIEW,
                     "core/elementwise", NULL),
};

const struct family family_elementwise = FAMILY_OF(elementwise, elementwise, elementwise_variants);
