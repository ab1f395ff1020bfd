#include "kernels/template.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/derived.h"
#include "kernels/job.h"

__extension__ typedef unsigned __int128 uint128;

/* ---------------------------------------------------------------- choosing */

void template_begin(struct launcher *self, const struct step *step, struct template *template,
                    struct table tables[TABLES_MAX])
{
    *template = (struct template){.tables = tables};
    template->last = &template->launches;
    self->templates.current = template;
    self->templates.step = step;
    self->templates.operands = NULL;
}

void template_end(struct launcher *self)
{
    self->templates.current = NULL;
}

/* Frees the launches of a template. Its struct belongs to the caller. */
void template_release(struct launcher *self, struct template *template)
{
    while (template->launches) {
        struct template_launch *launch = template->launches;
        template->launches = launch->next;
        device_buffer_release(self->device, &launch->space_memory);
        free(launch);
    }
}

/* The bytes of the memory that a slot names, in the template that is being made. */
uint64_t template_slot_bytes(const struct launcher *self, int slot)
{
    const struct template *current = self->templates.current;
    if (slot < STEP_OPERANDS)
        return storage_bytes(self->templates.step->operands[slot]->storage);
    if (slot >= SLOT_SCRATCH)
        return current->scratch_bytes[slot - SLOT_SCRATCH];
    if (slot == SLOT_STATUS)
        return sizeof(struct status);
    const struct table *table = &current->tables[slot - SLOT_TABLE];
    return (uint64_t)table->count * table->element_bytes;
}

/* The number of an operand of the current step. If a part of the step is chosen, the operand may be
 * a view of the part's own: then any operand with its storage will do, as spaces have the layout.
 */
int template_slot_of(const struct launcher *self, const struct tensor *operand)
{
    const struct tensor *const *operands = self->templates.step->operands;
    const bool is_part = self->templates.operands != NULL;
    int slot = 0;
    while (operands[slot] != operand &&
           !(is_part && operands[slot] && operands[slot]->storage == operand->storage))
        slot++;
    return slot;
}

/* Adds a table, unless the template has an equal one: with the same key, of the same inputs. If a
 * part of the step is chosen, the table has the part's numbers of inputs, and the template the
 * step's. Variants add at most TABLES_MAX tables and SCRATCH_MAX buffers. */
int template_add_table(struct launcher *self, const struct table *table)
{
    struct template *current = self->templates.current;
    const uint8_t *numbers_in_step = self->templates.operands;
    struct table added = *table;
    size_t i = 0;
    for (int j = 0; numbers_in_step && j < TABLE_INPUTS; j++)
        if (table->inputs[j] != NO_INPUT)
            added.inputs[j] = numbers_in_step[table->inputs[j]];
    while (i < current->table_count &&
           (!derived_same_key(&current->tables[i].key, &added.key) ||
            memcmp(current->tables[i].inputs, added.inputs, sizeof added.inputs) != 0))
        i++;
    if (i == current->table_count)
        current->tables[current->table_count++] = added;
    return SLOT_TABLE + (int)i;
}

int template_add_scratch(struct launcher *self, uint64_t bytes)
{
    struct template *current = self->templates.current;
    current->scratch_bytes[current->scratch_count] = bytes;
    return SLOT_SCRATCH + (int)current->scratch_count++;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The bytes of an argument's value if it has more than 8, such as a space. Smaller values are kept
 * in added->values. */
static size_t extra_bytes(const struct job *job, uint32_t i)
{
    const size_t size =
        job->slots[i] == SLOT_SPACE ? sizeof(struct space) : job->launch.arguments[i].size;
    return job->slots[i] >= SLOT_SPACE && size > sizeof(int64_t) ? padded(size) : 0;
}

/* Notes how offsets of the job's space follow those of the step's operands: its operand k that of
 * the step's operand followed[k], divided by units[k]. What remains is bases[k], to which
 * move_operands adds the offsets of other steps. */
static void note_offsets(const struct launcher *self, const struct job *job,
                         struct template_launch *added)
{
    memcpy(added->followed, job->followed, sizeof added->followed);
    memcpy(added->units, job->units, sizeof added->units);
    for (int k = 0; k < SPACE_OPERANDS; k++)
        if (added->followed[k] < STEP_OPERANDS)
            added->bases[k] =
                job->space.operand[k].offset -
                self->templates.step->operands[added->followed[k]]->layout.offset / added->units[k];
}

/* One allocation has the launch, its arguments, a word for each value, larger values, slots and the
 * text of options, in this order. */
enum healcl_status template_add_launch(struct launcher *self, const struct job *job,
                                       struct healcl_error *error)
{
    struct template *current = self->templates.current;
    const struct launch *launch = &job->launch;
    const uint32_t count = launch->argument_count;
    const size_t options = strlen(launch->options) + 1;
    size_t bytes = sizeof(struct template_launch) + count * (sizeof *launch->arguments + 8) +
                   padded(count) + options;
    for (uint32_t i = 0; i < count; i++)
        bytes += extra_bytes(job, i);
    struct template_launch *added = malloc(bytes);
    NEED_MEMORY(added, error);
    memset(added, 0, sizeof *added);
    *current->last = added;
    current->last = &added->next;
    current->launch_count++;
    current->bytes += bytes;
    added->launch = *launch;
    note_offsets(self, job, added);
    added->launch.arguments = (struct launch_argument *)(added + 1);
    added->values = (int64_t *)(added->launch.arguments + count);
    char *next = (char *)(added->values + count);
    for (uint32_t i = 0; i < count; i++) {
        struct launch_argument *argument = &added->launch.arguments[i];
        *argument = launch->arguments[i];
        if (job->slots[i] < SLOT_SPACE) /* memory, which each run sets */
            continue;
        const bool is_space = job->slots[i] == SLOT_SPACE || argument->value == &job->space;
        const size_t extra = extra_bytes(job, i);
        void *value = extra > 0 ? (void *)next : &added->values[i];
        next += extra;
        memcpy(value, is_space ? &job->space : argument->value,
               is_space ? sizeof job->space : argument->size);
        argument->value = value;
        if (is_space)
            added->space = value;
    }
    added->slots = memcpy(next, job->slots, count);
    added->launch.options = memcpy(next + padded(count), launch->options, options);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- running */

/* The memory of a slot in a run; it may be empty for an operand that was never used. */
static const struct buffer *memory_of(const struct launcher *self, const struct template_run *run,
                                      int slot)
{
    if (slot < STEP_OPERANDS)
        return &self->storages[run->step->operands[slot]->storage->id].buffer;
    if (slot >= SLOT_SCRATCH)
        return &run->scratch[slot - SLOT_SCRATCH];
    return slot == SLOT_STATUS ? &self->status : &run->tables[slot - SLOT_TABLE]->table;
}

/* Moves the operands of the launch's space to the offsets of this step. Returns whether any offset
 * has changed. */
static bool move_operands(struct template_launch *launch, const struct step *step)
{
    bool has_moved = false;
    for (int k = 0; k < SPACE_OPERANDS && launch->space; k++) {
        int64_t *offset = &launch->space->operand[k].offset;
        if (launch->followed[k] == SLOT_NONE)
            continue;
        const int64_t now = launch->bases[k] +
                            step->operands[launch->followed[k]]->layout.offset / launch->units[k];
        has_moved |= now != *offset;
        *offset = now;
    }
    return has_moved;
}

/* Puts a launch's space into memory, unless it is there already. */
static enum healcl_status upload_space(struct launcher *self, struct template_launch *launch,
                                       struct healcl_error *error)
{
    if (launch->space_memory.memory)
        return HEALCL_OK;
    return device_upload_memory(self->device, NULL, sizeof *launch->space, launch->space,
                                &launch->space_memory, error);
}

/* A value that a step's scalars give: SLOT_A to SLOT_Q_NUMBER. */
static int64_t step_scalar(const struct step *step, int slot)
{
    if (slot == SLOT_A || slot == SLOT_B)
        return scalar_value(step, slot - SLOT_A);
    if (slot == SLOT_Q_NUMBER)
        return step->in[INPUT_P]->layout.offset;
    const int64_t q = scalar_value(step, INPUT_P);
    if (slot == SLOT_Q)
        return q;
    const int64_t scalar = scalar_value(step, is_scalar(step, INPUT_A) ? INPUT_A : INPUT_B);
    const uint64_t modulus = q > 0 ? (uint64_t)q : 1; /* the plan has refused others */
    const uint64_t magnitude = scalar < 0 ? 0 - (uint64_t)scalar : (uint64_t)scalar;
    const uint64_t factor = magnitude % modulus;
    const uint128 quotient = ((uint128)factor << 64) / modulus; /* floor(factor * 2^64 / q) */
    return slot == SLOT_FACTOR ? (int64_t)factor : (int64_t)(uint64_t)quotient;
}

/* Sets the arguments of a launch that differ between steps: memory, offsets in the space, and
 * values of scalars. A space in memory is uploaded again if it has changed. */
static enum healcl_status set_arguments(struct launcher *self, const struct template_run *run,
                                        struct template_launch *launch, struct healcl_error *error)
{
    const struct step *step = run->step;
    launch->launch.tag = step->origins;
    if (move_operands(launch, step))
        device_buffer_release(self->device, &launch->space_memory);
    for (uint32_t i = 0; i < launch->launch.argument_count; i++) {
        const struct buffer **buffer = &launch->launch.arguments[i].buffer;
        const int slot = launch->slots[i];
        if (slot < SLOT_SPACE) {
            *buffer = memory_of(self, run, slot);
            if (slot < STEP_OPERANDS &&
                (!(*buffer)->memory || step->operands[slot]->storage->scalars))
                TRY(launcher_buffer(self, step->operands[slot]->storage, buffer, error));
        } else if (slot == SLOT_SPACE) {
            TRY(upload_space(self, launch, error));
            *buffer = &launch->space_memory;
        } else if (slot == SLOT_Q_NUMBER) {
            *(uint32_t *)(void *)&launch->values[i] = (uint32_t)step_scalar(step, SLOT_Q_NUMBER);
        } else if (slot != SLOT_VALUE) {
            launch->values[i] = step_scalar(step, slot);
        }
    }
    return HEALCL_OK;
}

/* Passes the launches to the launcher's `list`, which may build their kernels. */
static void list_launches(struct launcher *self, struct template_launch *first)
{
    for (struct template_launch *launch = first; launch; launch = launch->next)
        if (!launch->kernel)
            launch->kernel = self->list(self->list_context, &launch->launch);
}

/* Runs the launches of a template. own: kernel objects of a bound step, in the order of launches;
 * NULL: launches use shared ones. A launcher that lists launches does that instead. One that
 * compiles ahead runs one work-group of each kernel. */
enum healcl_status template_run(struct launcher *self, const struct template_run *run,
                                const struct kernel_object *own, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    struct template_launch *const first = run->template->launches, *launch;
    if (self->list) {
        list_launches(self, first);
        return HEALCL_OK;
    }
    const bool only_compiles = device->programs->ahead.is_on;
    for (launch = first; launch; launch = launch->next) {
        TRY(set_arguments(self, run, launch, error));
        if (only_compiles)
            TRY(device_compile(device, &launch->launch, error));
        else if (!launch->kernel)
            TRY(device_attach(device, &launch->launch, &launch->kernel, error));
    }
    /* Nothing is enqueued before all launches can be: a step is not half done. */
    size_t i = 0;
    for (launch = first; launch && !only_compiles; launch = launch->next, i++)
        TRY(device_enqueue(device, &launch->launch, launch->kernel, own ? &own[i] : NULL, error));
    /* Only a plan that runs again uses the spaces in memory again. */
    for (launch = first; launch && !self->templates.runs_again; launch = launch->next)
        device_buffer_release(device, &launch->space_memory);
    return HEALCL_OK;
}
