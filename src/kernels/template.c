#include "kernels/template.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/derived.h"
#include "kernels/job.h"
#include "kernels/variant.h"

__extension__ typedef unsigned __int128 uint128;

/* ---------------------------------------------------------------- choosing */

void template_begin(struct launcher *self, const struct step *step, struct template *made,
                    struct table tables[TABLES_MAX])
{
    *made = (struct template){.tables = tables};
    made->last = &made->launches;
    self->templates.made = made;
    self->templates.step = step;
}

void template_end(struct launcher *self)
{
    self->templates.made = NULL;
}

enum healcl_status template_add_part(struct launcher *self, const struct step *part,
                                     const uint8_t *operands, struct healcl_error *error)
{
    struct templates *templates = &self->templates;
    const struct step *step = templates->step;
    templates->step = part;
    templates->operands = operands;
    const enum healcl_status status = choose_variant(self, part, error);
    templates->step = step;
    templates->operands = NULL;
    return status;
}

/* The number of the step's operand that is this one of the part that is being chosen. */
static int operand_of(const struct launcher *self, int slot)
{
    const uint8_t *operands = self->templates.operands;
    return operands && slot >= 0 && slot < STEP_OPERANDS ? operands[slot] : slot;
}

void template_release(struct launcher *self, struct template *template)
{
    while (template->launches) {
        struct template_launch *launch = template->launches;
        template->launches = launch->next;
        device_buffer_release(self->device, &launch->space_memory);
        free(launch);
    }
}

uint64_t template_slot_bytes(const struct launcher *self, int slot)
{
    const struct template *made = self->templates.made;
    if (slot < STEP_OPERANDS)
        return storage_bytes(self->templates.step->operands[slot]->storage);
    if (slot >= SLOT_SCRATCH)
        return made->scratch[slot - SLOT_SCRATCH];
    if (slot == SLOT_STATUS)
        return sizeof(struct status);
    const struct table *table = &made->tables[slot - SLOT_TABLE];
    return (uint64_t)table->count * table->element_bytes;
}

int template_slot_of(const struct launcher *self, const struct tensor *operand)
{
    int slot = 0;
    while (self->templates.step->operands[slot] != operand)
        slot++;
    return slot;
}

int template_add_table(struct launcher *self, const struct table *table)
{
    struct template *made = self->templates.made;
    struct table added = *table;
    size_t i = 0;
    for (int j = 0; j < TABLE_INPUTS; j++)
        added.inputs[j] = operand_of(self, table->inputs[j]);
    while (i < made->table_count &&
           (!derived_same_key(&made->tables[i].key, &added.key) ||
            memcmp(made->tables[i].inputs, added.inputs, sizeof added.inputs) != 0))
        i++;
    if (i == made->table_count)
        made->tables[made->table_count++] = added;
    return SLOT_TABLE + (int)i;
}

int template_add_scratch(struct launcher *self, uint64_t bytes)
{
    struct template *made = self->templates.made;
    made->scratch[made->scratch_count] = bytes;
    return SLOT_SCRATCH + (int)made->scratch_count++;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The bytes of an argument's value, if it has more than 8. */
static size_t extra_bytes(const struct job *job, uint32_t i)
{
    const size_t size =
        job->slots[i] == SLOT_SPACE ? sizeof(struct space) : job->launch.arguments[i].size;
    return job->slots[i] >= SLOT_SPACE && size > sizeof(int64_t) ? padded(size) : 0;
}

/* Notes which offsets the space has from the step that the template is made for. */
static void set_bases(const struct launcher *self, const struct job *job,
                      struct template_launch *added)
{
    memcpy(added->units, job->units, sizeof added->units);
    for (int k = 0; k < SPACE_OPERANDS; k++) {
        added->moved[k] = operand_of(self, job->moved[k]);
        if (job->moved[k] < STEP_OPERANDS)
            added->bases[k] =
                job->space.operand[k].offset -
                self->templates.step->operands[job->moved[k]]->layout.offset / added->units[k];
    }
}

/* One allocation has the launch, its arguments, values, slots and options. */
enum healcl_status template_add_launch(struct launcher *self, const struct job *job,
                                       struct healcl_error *error)
{
    struct template *made = self->templates.made;
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
    *made->last = added;
    made->last = &added->next;
    made->launch_count++;
    made->bytes += bytes;
    added->launch = *launch;
    set_bases(self, job, added);
    added->launch.arguments = (struct launch_argument *)(added + 1);
    added->values = (int64_t *)(added->launch.arguments + count);
    char *next = (char *)(added->values + count);
    for (uint32_t i = 0; i < count; i++) {
        struct launch_argument *argument = &added->launch.arguments[i];
        *argument = launch->arguments[i];
        if (job->slots[i] < SLOT_SPACE)
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
    added->slots = (uint8_t *)next;
    for (uint32_t i = 0; i < count; i++)
        added->slots[i] = (uint8_t)operand_of(self, job->slots[i]);
    added->launch.options = memcpy(next + padded(count), launch->options, options);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- running */

static const struct buffer *memory_of(const struct launcher *self, const struct template_run *run,
                                      int slot)
{
    if (slot < STEP_OPERANDS)
        return &self->storages[run->step->operands[slot]->storage->id].buffer;
    if (slot >= SLOT_SCRATCH)
        return &run->scratch[slot - SLOT_SCRATCH];
    return slot == SLOT_STATUS ? &self->status : &run->tables[slot - SLOT_TABLE]->table;
}

/* Sets offsets of the launch's space. Returns whether any changed. */
static bool move_operands(struct template_launch *launch, const struct step *step)
{
    bool has_moved = false;
    for (int k = 0; k < SPACE_OPERANDS && launch->space; k++) {
        int64_t *offset = &launch->space->operand[k].offset;
        if (launch->moved[k] == SLOT_NONE)
            continue;
        const int64_t now =
            launch->bases[k] + step->operands[launch->moved[k]]->layout.offset / launch->units[k];
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
        return step->in[2]->layout.offset;
    const int64_t b = scalar_value(step, 1 - is_scalar(step, 0)), q = scalar_value(step, 2);
    const uint64_t modulus = q > 0 ? (uint64_t)q : 1; /* the plan has refused others */
    const uint64_t factor = (b < 0 ? 0 - (uint64_t)b : (uint64_t)b) % modulus;
    return slot == SLOT_Q        ? q
           : slot == SLOT_FACTOR ? (int64_t)factor
                                 : (int64_t)(uint64_t)(((uint128)factor << 64) / modulus);
}

/* Sets memory, and values that the step gives. */
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

enum healcl_status template_run(struct launcher *self, const struct template_run *run,
                                const struct kernel_object *own, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    struct template_launch *const first = run->template->launches, *launch;
    const bool is_ahead = device->programs->ahead.is_on;
    for (launch = first; launch && self->list; launch = launch->next)
        self->list(self->list_context, &launch->launch);
    if (self->list)
        return HEALCL_OK;
    for (launch = first; launch; launch = launch->next) {
        TRY(set_arguments(self, run, launch, error));
        if (is_ahead) /* the kernel runs once */
            TRY(device_compile(device, &launch->launch, error));
        else if (!launch->kernel)
            TRY(device_attach(device, &launch->launch, &launch->kernel, error));
    }
    for (launch = first; launch && !is_ahead; launch = launch->next)
        TRY(device_enqueue(device, &launch->launch, launch->kernel, own ? own++ : NULL, error));
    for (launch = first; launch && !self->templates.runs_again; launch = launch->next)
        device_buffer_release(device, &launch->space_memory);
    return HEALCL_OK;
}
