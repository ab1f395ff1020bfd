#include "run/spill.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/huge_pages.h"
#include "kernels/derive.h"
#include "kernels/variant.h"
#include "transcript/payload.h"

/* ---------------------------------------------------------------- what the host keeps */

/* From what was let go of last, if it fits: fresh pages cost more than what is copied to them. */
static enum healcl_status make_held(struct spill *spill, const struct storage *storage,
                                    struct healcl_error *error)
{
    uint64_t bytes = storage_bytes(storage) + 1;
    char **held = &spill->held[storage->id];
    for (int i = 0; !*held && i < SPARE_BUFFERS; i++)
        if (spill->spare[i].bytes == bytes) {
            *held = spill->spare[i].memory;
            spill->spare[i].memory = NULL;
            spill->spare[i].bytes = 0;
        }
    if (*held)
        return HEALCL_OK;
    *held = malloc(bytes);
    if (!*held)
        NO_MEMORY(error);
    huge_pages_ask(*held, bytes);
    return HEALCL_OK;
}

static void forget(struct spill *spill, const struct storage *storage)
{
    char **held = &spill->held[storage->id];
    if (!*held)
        return;
    int smallest = 0;
    for (int i = 1; i < SPARE_BUFFERS; i++)
        if (spill->spare[i].bytes < spill->spare[smallest].bytes)
            smallest = i;
    free(spill->spare[smallest].memory);
    spill->spare[smallest].memory = *held;
    spill->spare[smallest].bytes = storage_bytes(storage) + 1;
    *held = NULL;
}

/* Elements [first, first + count) of an upload's data. */
static enum healcl_status read_upload(struct spill *spill, const struct step *upload, int64_t first,
                                      int64_t count, void *memory, struct healcl_error *error)
{
    const struct storage *storage = upload->out->storage;
    const struct payload *payload = upload->payload;
    const char *bound = executor_bound(spill->executor, storage);
    size_t size = dtype_size(storage->dtype);
    if (bound) {
        memcpy(memory, bound + (size_t)first * size, (size_t)count * size);
        return HEALCL_OK;
    }
    TRY(payload_check_data(payload, error));
    TRY(count == storage->elements
            ? payload_read(payload, storage->dtype, memory, error)
            : payload_read_part(payload, storage->dtype, first, count, memory, error));
    payload_forget(payload, spill->launcher->plan->source);
    return HEALCL_OK;
}

static enum healcl_status hold(struct spill *spill, const struct storage *storage,
                               struct healcl_error *error)
{
    const struct step *upload = spill->memory.states[storage->id].upload;
    TRY(make_held(spill, storage, error));
    return upload
               ? read_upload(spill, upload, 0, storage->elements, spill->held[storage->id], error)
               : HEALCL_OK;
}

/* Only a conversion can find something wrong: base64 and header were checked with the plan. */
static enum healcl_status check_upload(struct spill *spill, const struct storage *storage,
                                       struct healcl_error *error)
{
    const struct step *upload = spill->memory.states[storage->id].upload;
    if (executor_bound(spill->executor, storage))
        return HEALCL_OK;
    TRY(payload_check_data(upload->payload, error));
    if (upload->payload->dtype == storage->dtype)
        return HEALCL_OK;
    TRY(hold(spill, storage, error));
    forget(spill, storage);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- moves */

static enum healcl_status do_move(struct spill *spill, enum memory_move kind,
                                  const struct storage *storage, struct healcl_error *error)
{
    struct launcher *launcher = spill->launcher;
    struct buffer *memory = launcher_memory(launcher, storage);
    uint64_t bytes = storage_bytes(storage);
    switch (kind) {
    case MEMORY_MOVE_UPLOAD:
        return device_executor_upload(spill->executor, spill->memory.states[storage->id].upload,
                                      error);
    case MEMORY_MOVE_CHECK: return check_upload(spill, storage, error);
    case MEMORY_MOVE_HOLD: return hold(spill, storage, error);
    case MEMORY_MOVE_SPILL:
        TRY(make_held(spill, storage, error));
        return memory->memory ? device_read(launcher->device, memory, 0, bytes,
                                            spill->held[storage->id], error)
                              : HEALCL_OK;
    case MEMORY_MOVE_BACK:
        return device_upload_memory(launcher->device, NULL, bytes, spill->held[storage->id], memory,
                                    error);
    case MEMORY_MOVE_DROP: device_executor_release(spill->executor, storage); return HEALCL_OK;
    case MEMORY_MOVE_FORGET: forget(spill, storage); return HEALCL_OK;
    }
    return HEALCL_OK;
}

static const char *move_name(enum memory_move kind)
{
    switch (kind) {
    case MEMORY_MOVE_SPILL: return "spill";
    case MEMORY_MOVE_BACK: return "bring back";
    case MEMORY_MOVE_UPLOAD: return "upload";
    default: return "hold";
    }
}

static enum healcl_status move(void *context, enum memory_move kind, const struct storage *storage,
                               struct healcl_error *error)
{
    struct spill *spill = context;
    if (kind == MEMORY_MOVE_DROP || kind == MEMORY_MOVE_FORGET)
        return do_move(spill, kind, storage, error);
    bool is_first = kind == MEMORY_MOVE_UPLOAD && !spill->memory.states[storage->id].streamed;
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(spill->executor->trace, "memory", move_name(kind));
    enum healcl_status status = do_move(spill, kind, storage, error);
    trace_end(spill->executor->trace, span);
    if (!is_first)
        spill->nanoseconds += monotonic_nanoseconds() - start;
    return status;
}

/* The device is about to allocate more than its limit. */
static enum healcl_status make_room(void *context, uint64_t bytes, struct healcl_error *error)
{
    return memory_make_room(&((struct spill *)context)->memory, bytes, error);
}

/* ---------------------------------------------------------------- life */

enum healcl_status spill_create(struct executor *executor, struct launcher *launcher,
                                uint64_t limit, struct spill **result, struct healcl_error *error)
{
    struct spill *spill = calloc(1, sizeof *spill);
    if (!spill)
        NO_MEMORY(error);
    spill->executor = executor;
    spill->launcher = launcher;
    spill->limit = limit;
    spill->mover = (struct memory_mover){move, spill};
    spill->held = calloc(launcher->plan->storage_count + 1, sizeof *spill->held);
    enum healcl_status status =
        spill->held ? memory_init(&spill->memory, launcher->plan, limit, &spill->mover, error)
                    : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status != HEALCL_OK) {
        free(spill->held);
        free(spill);
        return status;
    }
    device_limit_memory(launcher->device, limit, make_room, spill);
    *result = spill;
    return HEALCL_OK;
}

static void forget_all(struct spill *spill)
{
    for (size_t id = 0; id < spill->launcher->plan->storage_count; id++)
        forget(spill, spill->launcher->plan->storages[id]);
}

void spill_free(struct spill *spill)
{
    if (!spill)
        return;
    device_limit_memory(spill->launcher->device, 0, NULL, NULL);
    forget_all(spill);
    for (int i = 0; i < SPARE_BUFFERS; i++)
        free(spill->spare[i].memory);
    memory_release(&spill->memory);
    free(spill->held);
    free(spill);
}

void spill_reset(struct spill *spill)
{
    forget_all(spill);
    memory_reset(&spill->memory);
    spill->nanoseconds = 0;
}

/* ---------------------------------------------------------------- steps */

/* What else is in use: scratch memory, derived tables, results that wait. */
static uint64_t room(const struct spill *spill)
{
    const struct healcl_device *device = spill->launcher->device;
    uint64_t used = device->bytes_live - device->bytes_pooled;
    uint64_t beside = used > spill->memory.resident ? used - spill->memory.resident : 0;
    return spill->limit > beside ? spill->limit - beside : 0;
}

bool spill_is_short(struct spill *spill, size_t number)
{
    const struct step *step = &spill->launcher->plan->steps[number];
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (step_operand(step, i) && step->kind != STEP_RELEASE)
            bytes += storage_bytes(step_operand(step, i)->storage);
    return spill->memory.resident + bytes > room(spill);
}

/* Derived tables may take a part of the memory. */
static void limit_derived(struct spill *spill)
{
    enum { DERIVED_SHARE = 4 };
    struct launcher *launcher = spill->launcher;
    if (launcher->kept.bytes <= spill->limit / DERIVED_SHARE)
        return;
    for (size_t id = 0; id < launcher->plan->storage_count; id++)
        derived_forget(launcher, &launcher->storages[id]);
}

enum healcl_status spill_begin_step(struct spill *spill, size_t step, struct slices *slices,
                                    struct healcl_error *error)
{
    if (spill_is_short(spill, step))
        limit_derived(spill);
    spill->memory.room = room(spill);
    return memory_begin_step(&spill->memory, step, slices, error);
}

enum healcl_status spill_end_step(struct spill *spill, const struct slices *slices,
                                  struct healcl_error *error)
{
    return memory_end_step(&spill->memory, slices, error);
}

/* ---------------------------------------------------------------- slices */

/* A step cut to one slice: its own operands are storages behind those of the plan. */
struct slice {
    struct step step;
    struct tensor tensors[STEP_OPERANDS];
    struct storage storages[STEP_OPERANDS];
    int64_t first[STEP_OPERANDS]; /* of the whole storage's elements */
    int64_t size;
};

static enum healcl_status upload_slice(struct spill *spill, const struct step *step,
                                       const struct slice *slice, int i, struct healcl_error *error)
{
    const struct storage *whole = step_operand(step, i)->storage;
    const struct storage *part = &slice->storages[i];
    const struct memory_state *state = &spill->memory.states[whole->id];
    struct buffer *buffer = launcher_memory(spill->launcher, part);
    uint64_t bytes = storage_bytes(part);
    if (state->source != MEMORY_UPLOAD)
        return device_upload_memory(spill->launcher->device, NULL, bytes,
                                    spill->held[whole->id] +
                                        (size_t)slice->first[i] * dtype_size(whole->dtype),
                                    buffer, error);
    char *memory = malloc(bytes + 1);
    if (!memory)
        NO_MEMORY(error);
    enum healcl_status status =
        read_upload(spill, state->upload, slice->first[i], part->elements, memory, error);
    if (status == HEALCL_OK)
        status = device_upload_memory(spill->launcher->device, NULL, bytes, memory, buffer, error);
    free(memory);
    return status;
}

/* The operand of a chain that is in out's place is there in a slice too. */
static enum healcl_status set_in_place(struct spill *spill, const struct step *step,
                                       struct slice *slice, struct healcl_error *error)
{
    for (int i = 0; i < STEP_INPUTS && step->kind == STEP_CHAIN; i++) {
        const struct tensor *input = step->in[i];
        if (!input || input->storage != step->out->storage ||
            !layout_same_elements(&input->layout, &step->out->layout))
            continue;
        slice->step.in[i] = slice->step.out;
        if (!slice_is_read(step, &spill->slices, STEP_OUT, slice->size))
            TRY(upload_slice(spill, step, slice, STEP_OUT, error));
    }
    return HEALCL_OK;
}

static enum healcl_status begin_slice(struct spill *spill, const struct step *step,
                                      struct slice *slice, struct healcl_error *error)
{
    slice->step = *step;
    if (step->kind == STEP_MODMUL_AXIS_SUM && spill->slices.axis[STEP_OUT] < 0 && spill->start > 0)
        slice->step.value[0] = 0; /* more terms are added to those before */
    for (int i = 0; i < STEP_OPERANDS; i++) {
        if (spill->slices.axis[i] < 0)
            continue;
        const struct tensor *tensor = step_operand(step, i);
        uint32_t axis = (uint32_t)spill->slices.axis[i];
        int64_t span = slice_span(tensor, axis, spill->start, slice->size, &slice->first[i]);
        slice->storages[i] = (struct storage){
            .id = (uint32_t)(spill->launcher->plan->storage_count + 1) + (uint32_t)i,
            .dtype = tensor->storage->dtype,
            .origin = tensor->storage->origin,
            .elements = span};
        slice->tensors[i] = (struct tensor){
            .storage = &slice->storages[i],
            .layout = layout_narrow(&tensor->layout, axis, spill->start, slice->size)};
        slice->tensors[i].layout.offset -= slice->first[i];
        if (i == STEP_OUT)
            slice->step.out = &slice->tensors[i];
        else
            slice->step.in[i] = &slice->tensors[i];
        if (slice_is_read(step, &spill->slices, i, slice->size))
            TRY(upload_slice(spill, step, slice, i, error));
    }
    return set_in_place(spill, step, slice, error);
}

static enum healcl_status end_slice(struct spill *spill, const struct step *step,
                                    const struct slice *slice, struct healcl_error *error)
{
    if (spill->slices.axis[STEP_OUT] < 0)
        return HEALCL_OK;
    const struct storage *whole = step->out->storage, *part = &slice->storages[STEP_OUT];
    const struct buffer *buffer = launcher_memory(spill->launcher, part);
    return device_read(
        spill->launcher->device, buffer, 0, storage_bytes(part),
        spill->held[whole->id] + (size_t)slice->first[STEP_OUT] * dtype_size(whole->dtype), error);
}

static enum healcl_status run_slice(struct spill *spill, const struct step *step,
                                    struct slice *slice,
                                    enum healcl_status (*after)(struct executor *executor,
                                                                struct healcl_error *error),
                                    struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    enum healcl_status status = begin_slice(spill, step, slice, error);
    spill->nanoseconds += monotonic_nanoseconds() - start;
    TRY(status);
    TRY(launch_step(spill->launcher, &slice->step, error));
    TRY(after(spill->executor, error));
    start = monotonic_nanoseconds();
    status = end_slice(spill, step, slice, error);
    spill->nanoseconds += monotonic_nanoseconds() - start;
    return status;
}

enum healcl_status spill_run_slices(struct spill *spill, const struct step *step,
                                    const struct slices *slices,
                                    enum healcl_status (*after)(struct executor *executor,
                                                                struct healcl_error *error),
                                    struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    spill->slices = *slices;
    for (spill->start = 0; spill->start < slices->size && status == HEALCL_OK;
         spill->start += slices->most) {
        int64_t left = slices->size - spill->start;
        struct slice slice = {.size = left < slices->most ? left : slices->most};
        status = run_slice(spill, step, &slice, after, error);
        for (int i = 0; i < STEP_OPERANDS; i++)
            if (slices->axis[i] >= 0)
                launcher_storage_release(spill->launcher, &slice.storages[i]);
    }
    spill->slices = (struct slices){.size = 0};
    return status;
}

/* ---------------------------------------------------------------- results and refusals */

enum healcl_status spill_read(struct spill *spill, const struct tensor *tensor, char **packed,
                              struct healcl_error *error)
{
    const struct storage *storage = tensor->storage;
    *packed = NULL;
    if (spill->memory.states[storage->id].resident)
        return HEALCL_OK;
    size_t size = dtype_size(storage->dtype);
    char *to = malloc((size_t)layout_elements(&tensor->layout) * size + 1);
    if (!to)
        NO_MEMORY(error);
    const char *from = spill->held[storage->id];
    const struct layout *layouts[] = {&tensor->layout};
    struct walk walk;
    *packed = to;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), to += size)
        memcpy(to, from + (size_t)walk.position[0] * size, size);
    return HEALCL_OK;
}

void spill_index_text(const struct spill *spill, int i, const struct layout *elements,
                      int64_t position, char text[SHAPE_TEXT_SIZE])
{
    const struct slices *slices = spill ? &spill->slices : NULL;
    if (!slices || slices->size == 0 || slices->axis[i] < 0 ||
        elements->rank <= (uint32_t)slices->axis[i]) {
        layout_index_text(elements, position, text);
        return;
    }
    struct layout whole = *elements;
    int64_t index[LAYOUT_RANK], moved = 0;
    uint32_t axis = (uint32_t)slices->axis[i];
    layout_multi_index(elements, position, index);
    index[axis] += spill->start;
    whole.shape[axis] = slices->size;
    for (uint32_t a = 0; a < whole.rank; a++)
        moved = moved * whole.shape[a] + index[a];
    layout_index_text(&whole, moved, text);
}
