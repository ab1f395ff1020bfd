/* Building kernel launches. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

/* ---------------------------------------------------------------- spaces */

/* Sets a space to all elements of a shape, without operands. A scalar gets an axis of size 1. */
void space_init(struct space *space, const struct layout *shape)
{
    memset(space, 0, sizeof *space);
    space->rank = shape->rank;
    memcpy(space->shape, shape->shape, shape->rank * sizeof *shape->shape);
    if (space->rank == 0)
        space->shape[space->rank++] = 1;
    space->end = (uint64_t)layout_elements(shape);
}

void space_set_operand(struct space *space, uint32_t operand, const struct layout *layout)
{
    space->operand[operand].offset = layout->offset;
    memcpy(space->operand[operand].stride, layout->stride, layout->rank * sizeof *layout->stride);
}

void space_of_views(struct space *space, const struct layout *out, const struct layout *in)
{
    space_init(space, out);
    space_set_operand(space, OPERAND_OUT, out);
    space_set_operand(space, OPERAND_A, in);
    space_simplify(space);
}

/* Inserts an axis of `size` elements before `axis`. All operands get stride 0 along it. */
void space_insert_axis(struct space *space, uint32_t axis, int64_t size)
{
    for (uint32_t to = space->rank; to > axis; to--)
        space_move_axis(space, to, space, to - 1);
    space->rank++;
    space->shape[axis] = size;
    space->end *= (uint64_t)size;
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[axis] = 0;
}

void space_move_axis(struct space *space, uint32_t to, const struct space *other, uint32_t from)
{
    space->shape[to] = other->shape[from];
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[to] = other->operand[k].stride[from];
}

static void drop_axis(struct space *space, uint32_t axis)
{
    space->rank--;
    for (uint32_t i = axis; i < space->rank; i++)
        space_move_axis(space, i, space, i + 1);
}

/* Whether an axis and the next one can be one axis: the first one's stride is the whole length of
 * the next one, in all operands. */
static bool axes_join(const struct space *space, uint32_t axis)
{
    const int64_t next_size = space->shape[axis + 1];
    for (int k = 0; k < SPACE_OPERANDS; k++) {
        const int64_t *stride = space->operand[k].stride;
        if (stride[axis] != stride[axis + 1] * next_size)
            return false;
    }
    return true;
}

/* Drops axes of size 1, and joins neighbouring axes if that is possible in all operands: kernels
 * then compute fewer indices. */
void space_simplify(struct space *space)
{
    for (uint32_t axis = space->rank; axis-- > 0 && space->rank > 1;)
        if (space->shape[axis] == 1)
            drop_axis(space, axis);
    for (uint32_t axis = space->rank - 1; axis-- > 0;)
        if (axes_join(space, axis)) {
            space->shape[axis + 1] *= space->shape[axis];
            drop_axis(space, axis);
        }
}

/* Makes blocks of `block` elements the elements of an axis. The last block may be incomplete. */
void space_divide_axis(struct space *space, uint32_t axis, int64_t block)
{
    space->shape[axis] = (space->shape[axis] + block - 1) / block;
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[axis] *= block;
    space->end = 1;
    for (uint32_t i = 0; i < space->rank; i++)
        space->end *= (uint64_t)space->shape[i];
}

uint32_t reciprocal_of(int64_t size)
{
    return size > 1 ? (uint32_t)(((uint64_t)1 << 32) / (uint64_t)size) : UINT32_MAX;
}

/* ---------------------------------------------------------------- jobs */

/* The name of a dtype in kernels. */
static const char *opencl_type(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_INT8: return "char";
    case DTYPE_INT32: return "int";
    case DTYPE_INT64: break;
    }
    return "long";
}

/* Begins a job without arguments. No operand of its space follows an operand of the step yet. */
void job_init(struct job *job, struct launcher *launcher, const struct step *step,
              const char *program, const char *kernel)
{
    memset(job, 0, offsetof(struct job, options));
    job->options[0] = 0;
    job->launcher = launcher;
    job->launch.program = program;
    job->launch.kernel = kernel;
    job->launch.kind = (int)step->kind;
    job->launch.options = job->options;
    job->launch.arguments = job->arguments;
    for (int k = 0; k < SPACE_OPERANDS; k++) {
        job->followed[k] = SLOT_NONE;
        job->units[k] = 1;
    }
}

/* Avoids snprintf, which takes a tenth of the time of a launch. */
static void add_option(struct job *job, const char *text)
{
    while (*text && job->options_length < sizeof job->options - 1)
        job->options[job->options_length++] = *text++;
    job->options[job->options_length] = 0;
}

void job_define(struct job *job, const char *name, const char *value)
{
    add_option(job, job->options[0] ? " -D " : "-D ");
    add_option(job, name);
    if (value[0])
        add_option(job, "=");
    add_option(job, value);
}

void job_define_number(struct job *job, const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, value);
    job_define(job, name, text);
}

void job_define_type(struct job *job, const char *name, enum dtype dtype)
{
    job_define(job, name, opencl_type(dtype));
}

void job_define_vectors(struct job *job)
{
    uint32_t multiply = job->launcher->device->tuning.multiply;
    if (multiply != MULTIPLY_BY_DOUBLES)
        job_define_number(job, "MULTIPLY", multiply);
}

void job_allow_vectors(struct job *job, const struct step *step, uint32_t width, int inputs)
{
    uint32_t access = job->launcher->device->tuning.access_bytes /
                      (uint32_t)dtype_size(step->out->storage->dtype);
    job->width = access < width ? access : width;
    job->vector_operands = ((uint32_t)2 << inputs) - 1; /* operand 0, and one for each input */
}

static void add_argument(struct job *job, int slot, const struct launch_argument *argument)
{
    job->slots[job->launch.argument_count] = (uint8_t)slot;
    job->launch.arguments[job->launch.argument_count++] = *argument;
}

void job_add_value(struct job *job, const void *value, size_t size)
{
    add_argument(job, SLOT_VALUE, &(struct launch_argument){.value = value, .size = size});
}

void job_add_space(struct job *job)
{
    job_add_value(job, &job->space, sizeof job->space);
}

/* Some devices allow few bytes of arguments, and a space has 816. */
void job_put_space_in_memory(struct job *job)
{
    job->launch.arguments[0] = (struct launch_argument){.read_only = true};
    job->slots[0] = SLOT_SPACE;
}

static void add_memory(struct job *job, int slot, bool read_only)
{
    add_argument(job, slot,
                 &(struct launch_argument){.size = sizeof(cl_mem), .read_only = read_only});
}

void job_add_buffer(struct job *job, int slot)
{
    add_memory(job, slot, true);
}

void job_add_written(struct job *job, int slot)
{
    add_memory(job, slot, false);
}

void job_add_input(struct job *job, const struct tensor *tensor)
{
    job_add_buffer(job, template_slot_of(job->launcher, tensor));
}

/* Notes that an operand of the space begins at the offset of the step's operand with this slot. */
static void follow_offset(struct job *job, int operand, int slot)
{
    job->followed[operand] = slot < STEP_OPERANDS ? slot : SLOT_NONE;
}

void job_add_output_operand(struct job *job, int slot)
{
    job_add_written(job, slot);
    follow_offset(job, OPERAND_OUT, slot);
}

void job_add_input_operand(struct job *job, int operand, int slot)
{
    job_add_buffer(job, slot);
    follow_offset(job, operand, slot);
}

void job_move_scalar(struct job *job, int k, const struct step *step, int i)
{
    if (!step->in[i] || !is_scalar(step, i))
        return;
    job->space.operand[k].offset = step->in[i]->layout.offset;
    job->followed[k] = i;
}

/* A kernel gets the value of a scalar elsewhere. Here it gets memory that it does not read. */
void job_add_tensor(struct job *job, int k, const struct step *step, int i)
{
    if (is_scalar(step, i))
        job_add_input(job, step->out);
    else
        job_add_input_operand(job, k, template_slot_of(job->launcher, step->in[i]));
}

/* Adds a copy of a value of at most 8 bytes. */
static void add_copy(struct job *job, int slot, const void *value, size_t size)
{
    int64_t *kept = &job->values[job->launch.argument_count];
    memcpy(kept, value, size);
    add_argument(job, slot, &(struct launch_argument){.value = kept, .size = size});
}

void job_add_long(struct job *job, int64_t value)
{
    add_copy(job, SLOT_VALUE, &value, sizeof value);
}

void job_add_longs(struct job *job, size_t count, const int64_t *values)
{
    for (size_t i = 0; i < count; i++)
        job_add_long(job, values[i]);
}

void job_add_uint(struct job *job, uint32_t value)
{
    add_copy(job, SLOT_VALUE, &value, sizeof value);
}

/* Each run of the template sets the value: see step_scalar. */
void job_add_scalar(struct job *job, int slot)
{
    add_copy(job, slot, &(int64_t){0}, slot == SLOT_Q_NUMBER ? sizeof(uint32_t) : sizeof(int64_t));
}

/* Iterations of loops that finding an element takes in every kernel. */
enum { FEW_ROUNDS = 128 };

/* Whether all memory of the launch has less than 2^32 bytes: then kernels can compute positions in
 * 32 bits. */
static bool is_narrow(const struct job *job)
{
    for (uint32_t i = 0; i < job->launch.argument_count; i++) {
        const int slot = job->slots[i];
        const bool is_memory = slot < SLOT_SPACE;
        if (is_memory && template_slot_bytes(job->launcher, slot) > UINT32_MAX)
            return false;
    }
    return true;
}

bool axes_are_compiled(const struct space *space, const struct healcl_device *device)
{
    return space->rank > 0 && space->rank <= device->tuning.compiled_axes &&
           space->end <= INT32_MAX;
}

/* Whether an operand has vectors of `width` elements along the last axis: contiguous elements, each
 * vector aligned to its size. */
static bool has_aligned_vectors(const struct space *space, const struct operand *operand,
                                uint32_t width)
{
    const uint32_t last = space->rank - 1;
    bool is_aligned = operand->offset % width == 0;
    for (uint32_t axis = 0; axis < last; axis++)
        is_aligned = is_aligned && operand->stride[axis] % width == 0;
    return operand->stride[last] == 1 && is_aligned;
}

/* Whether all operands of a space suit vectors of job->width elements along the last axis. Either
 * all elements of a vector are the same one, or the kernel can load vectors of the operand. */
static bool operands_suit_vectors(const struct job *job)
{
    const struct space *space = &job->space;
    const uint32_t last = space->rank - 1;
    for (uint32_t k = 0; k < SPACE_OPERANDS; k++) {
        const struct operand *operand = &space->operand[k];
        const bool is_same_element = operand->stride[last] == 0;
        const bool kernel_loads_vectors = job->vector_operands >> k & 1;
        if (!is_same_element &&
            !(kernel_loads_vectors && has_aligned_vectors(space, operand, job->width)))
            return false;
    }
    return space->operand[OPERAND_OUT].stride[last] != 0; /* out needs an element for each */
}

/* Whether the kernel should use vectors. Each of `items` work-items must get at least one. */
static bool should_use_vectors(const struct job *job, uint64_t items)
{
    const struct space *space = &job->space;
    const bool kernel_has_vectors = job->width >= 2 && !job->single && space->first == 0;
    if (!kernel_has_vectors || !axes_are_compiled(space, job->launcher->device))
        return false;
    const bool enough_vectors = space->end / job->width >= items;
    const bool rows_are_vectors = space->shape[space->rank - 1] % job->width == 0;
    return enough_vectors && rows_are_vectors && is_narrow(job) && operands_suit_vectors(job);
}

/* Makes each element of the space a vector of job->width elements along its last axis. Offsets and
 * strides of operands then count vectors. An operand with one element for the whole vector keeps
 * its own. */
static void use_vectors(struct job *job)
{
    struct space *space = &job->space;
    uint32_t last = space->rank - 1;
    space_divide_axis(space, last, job->width);
    for (uint32_t k = 0; k < SPACE_OPERANDS; k++) {
        struct operand *operand = &space->operand[k];
        if (operand->stride[last] == 0) /* one element serves the whole vector */
            continue;
        operand->offset /= job->width;
        job->units[k] = job->width;
        for (uint32_t axis = 0; axis < space->rank; axis++)
            operand->stride[axis] /= job->width;
    }
    job_define_number(job, "WIDE", job->width);
}

/* The number of axes that the kernel is compiled for, at least the space's; 0: any number. Some
 * numbers share a kernel: each one needs a compilation, which takes hours for an FPGA. */
static uint32_t compiled_axes(const struct job *job)
{
    enum { FEW_AXES = 4, MORE_AXES = 8 }; /* for one work-item, which FPGAs use */
    const struct space *space = &job->space;
    const bool needs_any_number = space->rank == 0 || space->end > INT32_MAX || job->granule > 0;
    if (needs_any_number)
        return 0;
    if (job->single && space->rank <= FEW_AXES)
        return FEW_AXES;
    if (job->single)
        return space->rank <= MORE_AXES ? MORE_AXES : SPACE_AXES;
    if (!axes_are_compiled(space, job->launcher->device))
        return 0;
    return space->rank == 2 ? 3 : space->rank;
}

/* Compiles the kernel for the number of axes of the space, if that is possible and the tuning asks
 * for it. Missing axes are added in front, with size 1. Indices are then computed by multiplication
 * with reciprocals, not by division. */
static void compile_axes(struct job *job)
{
    struct space *space = &job->space;
    uint32_t axes = compiled_axes(job);
    if (axes == 0)
        return;
    while (space->rank < axes)
        space_insert_axis(space, 0, 1);
    for (uint32_t axis = 0; axis < space->rank; axis++)
        space->reciprocal[axis] = reciprocal_of(space->shape[axis]);
    job_define_number(job, "AXES", space->rank);
    if (is_narrow(job))
        job_define(job, "NARROW", "");
    if (job->single)
        job_define(job, "SINGLE", "");
    else if (space->elements_per_item <= 1)
        job_define(job, "THIN", ""); /* kernels then need no loop */
}

enum healcl_status job_add_to_template(const struct job *job, struct healcl_error *error)
{
    return job->launch.groups == 0 ? HEALCL_OK : template_add_launch(job->launcher, job, error);
}

/* If programs are built one at a time, one large program is built sooner than several small ones.
 * cl/core.cl includes all programs of cl/core. */
static void join_core_programs(struct job *job)
{
    static const char core_folder[] = "core/";
    const bool builds_one_at_a_time = job->launcher->device->tuning.builds_at_once == 1;
    const bool is_of_core = strncmp(job->launch.program, core_folder, strlen(core_folder)) == 0;
    const bool is_of_manifest = job->launch.source != NULL;
    if (builds_one_at_a_time && is_of_core && !is_of_manifest)
        job->launch.program = "core";
}

/* Puts the space into memory if the device allows fewer bytes of arguments. */
static void limit_arguments(struct job *job)
{
    const bool space_is_argument = job->launch.arguments[0].value == &job->space;
    const uint64_t most = job->launcher->device->tuning.argument_bytes;
    if (!space_is_argument || launch_argument_bytes(&job->launch) <= most)
        return;
    job_define(job, "SPACE_IN_MEMORY", "");
    job_put_space_in_memory(job);
}

/* Completes a job, and adds it to the template. Some devices limit the loop iterations of a
 * work-item: job->rounds. */
enum healcl_status job_launch_groups(struct job *job, uint64_t groups, size_t local_size,
                                     struct healcl_error *error)
{
    const uint64_t limit = job->launcher->device->info.loop_limit;
    if (limit > 0 && job->rounds > limit)
        REFUSE_FOR(error, LIMIT,
                   "a work-item needs loops of %" PRIu64
                   " rounds, but this device ends loops after %" PRIu64,
                   job->rounds, limit);
    job->single = job->single && job->space.first == 0 && compiled_axes(job) > 0;
    if (job->single) { /* one work-item takes all elements */
        groups = groups > 0 ? 1 : 0;
        local_size = 1;
    }
    compile_axes(job);
    join_core_programs(job);
    limit_arguments(job);
    job->launch.groups = groups;
    job->launch.local_size = local_size;
    return job_add_to_template(job, error);
}

enum healcl_status job_launch_items(struct job *job, size_t local_size, struct healcl_error *error)
{
    const uint64_t groups = (job->space.end + local_size - 1) / local_size;
    job->space.elements_per_item = 1;
    return job_launch_groups(job, groups, local_size, error);
}

/* The number of elements that a work-item takes, if about `items` work-items share `elements`
 * elements. The tuning and the device's limit of loop iterations bound it from above. Devices count
 * work-items in 32 bits, which bounds it from below. The result is a multiple of the granule. */
static uint64_t elements_of_item(const struct job *job, uint64_t elements, uint64_t items)
{
    const struct healcl_device *device = job->launcher->device;
    const uint64_t limit = device->info.loop_limit, least = (elements >> 31) + 1;
    uint64_t count = elements / items;
    if (count > device->tuning.elements_per_item)
        count = device->tuning.elements_per_item;
    if (limit > 0 && count > limit / job->rounds)
        count = limit / job->rounds;
    if (count < least)
        count = least;
    if (job->granule > 0) /* round up to whole granules */
        count = (count + job->granule - 1) / job->granule * job->granule;
    return count;
}

/* Adds a launch over the elements of the space, in work-groups of local_size work-items. Each
 * compute unit should get several work-groups: so it stays busy when some end early. job->rounds,
 * the loop iterations for one element, become those of a work-item. */
enum healcl_status job_launch_of(struct job *job, size_t local_size, struct healcl_error *error)
{
    enum { GROUPS_OF_UNIT = 8 };
    const uint64_t units = (uint64_t)job->launcher->device->info.compute_units;
    const uint64_t items = GROUPS_OF_UNIT * local_size * units;
    if (should_use_vectors(job, items))
        use_vectors(job);
    const uint64_t elements = job->space.end - job->space.first;
    job->rounds += FEW_ROUNDS;
    const uint64_t per_item = elements_of_item(job, elements, items);
    const uint64_t per_group = per_item * local_size;
    job->space.elements_per_item = per_item;
    job->rounds *= per_item;
    return job_launch_groups(job, (elements + per_group - 1) / per_group, local_size, error);
}

enum healcl_status job_launch(struct job *job, struct healcl_error *error)
{
    return job_launch_of(job, job->launcher->device->tuning.local_size, error);
}

/* ---------------------------------------------------------------- what families share */

const char *double_vectors_obstacle(const struct healcl_device *device)
{
    const bool needs_doubles = device->tuning.multiply == MULTIPLY_BY_DOUBLES;
    OBSTACLE_IF(needs_doubles && device->info.double_width == 0, "the device has no doubles");
    return NULL;
}

/* The output's elements as a space, with operands out and the first inputs. Scalars get stride 0.
 */
struct space step_space(const struct step *step, int inputs)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, OPERAND_OUT, &step->out->layout);
    for (int i = 0; i < inputs && OPERAND_A + i < SPACE_OPERANDS; i++)
        if (!is_scalar(step, i))
            space_set_operand(&space, (uint32_t)(OPERAND_A + i), &step->in[i]->layout);
    return space;
}

void job_begin_variant(struct job *job, struct launcher *launcher, const struct step *step,
                       const struct variant *variant, const char *kernel)
{
    job_init(job, launcher, step, variant->program, kernel);
    job->launch.variant = variant;
    job->single = variant->style == STYLE_SINGLE;
    if (variant->tunables >> TUNABLE_multiply & 1)
        job_define_vectors(job);
}

void job_begin_kernel(struct job *job, struct launcher *launcher, const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    job_begin_variant(job, launcher, step, plan->variant, plan->variant->kernel);
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job->space = plan->space;
    job_add_space(job);
}

void job_begin(struct job *job, struct launcher *launcher, const struct variant_plan *plan,
               int inputs)
{
    job_begin_kernel(job, launcher, plan);
    job_add_output_operand(job, template_slot_of(launcher, plan->step->out));
    for (int i = 0; i < inputs; i++)
        job_add_tensor(job, OPERAND_A + i, plan->step, i);
}
