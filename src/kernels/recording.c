/*
 * Records launches of a plan's steps, to enqueue them again later. A repeated launch does not plan
 * a variant, build options, look up a program, or set arguments that have not changed.
 *
 * A recording is valid while inputs that tables may be derived from are unchanged. A step is not
 * recorded if it does more than launch kernels, or if its launches use memory that the launcher
 * does not know.
 */
#include <stdlib.h>

#include "kernels/derived.h"

enum {
    RECORDED_MOST =
        4096, /* launches of a plan: drivers have memory for a limited number of kernel objects */
    SCRATCH_MOST = 4,  /* buffers of a step */
    FAILURES_MOST = 12 /* more failures do not lengthen the wait */
};

/* Memory that a step takes from the pool and returns. */
struct scratch {
    uint64_t bytes, serial;
    struct buffer buffer; /* empty except while the step is launched */
};

struct recording {
    struct launch_recorder launches;
    uint64_t epoch; /* of the device, at the time of the recording */
    uint32_t stays; /* bit i: launches may depend on the contents of input i */
    struct scratch scratch[SCRATCH_MOST];
    uint32_t scratch_count;
};

struct step_recording {
    struct recording *recording; /* or NULL */
    uint32_t launched;           /* unrecorded launches since the last failure */
    uint32_t failures; /* consecutive ones: each doubles the launches before the next attempt */
    uint64_t generations[STEP_INPUTS]; /* of the inputs' storages, at the last launch */
};

/* ---------------------------------------------------------------- life */

void recordings_begin(struct launcher *self)
{
    if (!self->recordings)
        self->recordings = calloc(self->plan->step_count + 1, sizeof *self->recordings);
}

static void free_recording(struct launcher *self, struct recording *recording)
{
    if (recording)
        recorder_release(self->device, &recording->launches);
    free(recording);
}

void recordings_free(struct launcher *self)
{
    for (size_t i = 0; self->recordings && i < self->plan->step_count; i++)
        free_recording(self, self->recordings[i].recording);
    free(self->recordings);
    self->recordings = NULL;
}

/* ---------------------------------------------------------------- what launches use */

static const struct device_storage *storage_of_input(const struct launcher *self,
                                                     const struct step *step, int i)
{
    static const struct device_storage none;
    return step->in[i] ? &self->storages[step->in[i]->storage->id] : &none;
}

/* Bit i: input i has derived tables, or tables of another input depend on it. *found: whether
 * `buffer` is one of these tables. */
static uint32_t inputs_of_tables(const struct launcher *self, const struct step *step,
                                 const struct buffer *buffer, bool *found)
{
    uint32_t inputs = 0;
    *found = false;
    for (int i = 0; i < STEP_INPUTS; i++)
        for (const struct derived *derived = storage_of_input(self, step, i)->derived; derived;
             derived = derived->next_of_storage) {
            *found |= &derived->table == buffer;
            for (int j = 0; j < STEP_INPUTS; j++)
                if (j == i || (step->in[j] && step->in[j]->storage == derived->key.q_storage))
                    inputs |= 1u << j;
        }
    return inputs;
}

static bool lies_in(const struct buffer *buffer, const void *memory, size_t bytes)
{
    return (uintptr_t)buffer - (uintptr_t)memory < bytes;
}

/* The buffer that replaces scratch memory of the recording. The memory is in the pool again. NULL
 * if it was not scratch. */
static const struct buffer *find_scratch(struct healcl_device *device, struct recording *recording,
                                         const struct launch_argument *argument)
{
    uint32_t i = 0;
    while (i < recording->scratch_count && recording->scratch[i].serial != argument->serial)
        i++;
    struct scratch *scratch = &recording->scratch[i];
    if (i == recording->scratch_count) {
        if (i == SCRATCH_MOST ||
            !device_buffer_take(device, argument->serial, argument->size, &scratch->buffer))
            return NULL;
        device_buffer_release(device, &scratch->buffer);
        scratch->serial = argument->serial;
        recording->scratch_count++;
    }
    if (scratch->bytes < argument->size)
        scratch->bytes = argument->size;
    return &scratch->buffer;
}

/* Finds all memory that the launches use. Returns whether this succeeds. */
static bool find_buffers(const struct launcher *self, const struct step *step,
                         struct recording *recording)
{
    bool found = true;
    recording->stays |= inputs_of_tables(self, step, NULL, &found);
    for (size_t i = 0; i < recording->launches.count; i++) {
        const struct recorded_launch *launch = &recording->launches.launches[i];
        for (uint32_t j = 0; j < launch->argument_count; j++) {
            struct launch_argument *argument = &launch->own[j];
            if (!argument->buffer || lies_in(argument->buffer, self, sizeof *self) ||
                lies_in(argument->buffer, self->storages,
                        (self->plan->storage_count + 1) * sizeof *self->storages))
                continue;
            (void)inputs_of_tables(self, step, argument->buffer, &found);
            if (!found)
                argument->buffer = find_scratch(self->device, recording, argument);
            if (!argument->buffer)
                return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- recording */

static void note_failure(struct launcher *self, struct step_recording *at)
{
    if (at->recording)
        self->recorded -= at->recording->launches.count;
    free_recording(self, at->recording);
    at->recording = NULL;
    at->launched = 0;
    at->failures += at->failures < FAILURES_MOST;
}

/* Bit i: input i has not changed since the last call. */
static uint32_t same_inputs(const struct launcher *self, const struct step *step,
                            struct step_recording *at)
{
    uint32_t same = 0;
    for (int i = 0; i < STEP_INPUTS; i++) {
        const uint64_t generation = storage_of_input(self, step, i)->generation;
        if (generation == at->generations[i])
            same |= 1u << i;
        at->generations[i] = generation;
    }
    return same;
}

/* If an input has no tables and has changed since the last launch, it is only data: launches do not
 * depend on it. */
static enum healcl_status record(struct launcher *self, struct step_recording *at, uint32_t same,
                                 const struct step *step, launch_function *launch,
                                 const struct step *launched, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    struct recording *made = calloc(1, sizeof *made);
    if (!made)
        return launch(self, launched, error);
    const uint64_t commands = device->commands, derived = self->cache.bytes;
    made->epoch = device->record_epoch;
    made->stays = same;
    made->launches.most = RECORDED_MOST - self->recorded;
    device->programs->recorder = &made->launches;
    enum healcl_status status = launch(self, launched, error);
    device->programs->recorder = NULL;
    at->recording = made;
    self->recorded += made->launches.count;
    if (status != HEALCL_OK || self->cache.bytes != derived ||
        device->commands - commands != made->launches.count || !find_buffers(self, step, made))
        note_failure(self, at);
    return status;
}

/* ---------------------------------------------------------------- enqueueing again */

/* A buffer without memory is that of a storage, of which it is the first member. */
static enum healcl_status launch_again(struct launcher *self, const struct recorded_launch *launch,
                                       struct healcl_error *error)
{
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct buffer *buffer = launch->arguments[i].buffer;
        if (!buffer || buffer->memory)
            continue;
        const size_t id = (size_t)((const struct device_storage *)buffer - self->storages);
        TRY(launcher_buffer(self, self->plan->storages[id], &buffer, error));
    }
    return device_launch_again(self->device, launch, error);
}

static enum healcl_status replay(struct launcher *self, struct recording *recording,
                                 struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    for (uint32_t i = 0; status == HEALCL_OK && i < recording->scratch_count; i++) {
        struct scratch *made = &recording->scratch[i];
        if (!device_buffer_take(self->device, made->serial, made->bytes, &made->buffer))
            status = device_buffer_acquire(self->device, made->bytes, false, &made->buffer, error);
        made->serial = made->buffer.serial;
    }
    for (size_t i = 0; status == HEALCL_OK && i < recording->launches.count; i++)
        status = launch_again(self, &recording->launches.launches[i], error);
    for (uint32_t i = recording->scratch_count; i-- > 0;)
        device_buffer_release(self->device, &recording->scratch[i].buffer);
    self->has_written = true;
    return status;
}

/* With a trace nothing is recorded: it needs names that only the launch itself knows. */
enum healcl_status recording_launch(struct launcher *self, const struct step *step,
                                    launch_function *launch, const struct step *launched,
                                    struct healcl_error *error)
{
    if (!self->recordings || self->device->trace)
        return launch(self, launched, error);
    struct step_recording *at = &self->recordings[step - self->plan->steps];
    const uint32_t same = same_inputs(self, step, at);
    if (at->recording &&
        (at->recording->epoch != self->device->record_epoch || at->recording->stays & ~same))
        note_failure(self, at);
    if (at->recording) {
        at->failures = 0;
        return replay(self, at->recording, error);
    }
    return at->launched++ < UINT32_C(1) << at->failures
               ? launch(self, launched, error)
               : record(self, at, same, step, launch, launched, error);
}
