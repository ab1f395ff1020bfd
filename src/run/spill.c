/* Limits device memory to less than a plan's tensors need. The executor follows the moves that
 * plan/memory.h computes, and the host keeps the other tensors. */
#include <stdlib.h>
#include <string.h>

#include "core/huge_pages.h"
#include "kernels/derived.h"
#include "kernels/variant.h"
#include "plan/axes.h"
#include "run/device_executor_parts.h"

/* ---------------------------------------------------------------- what the host keeps */

/* Makes sure that the host has memory for the contents of a storage. Takes a spare buffer of the
 * same size if there is one: new pages cost more time than the copy to them. One byte more is
 * allocated, so that an empty storage has memory, too. */
static enum healcl_status ensure_host_copy(struct spill *spill, const struct storage *storage,
                                           struct healcl_error *error)
{
    uint64_t bytes = storage_bytes(storage) + 1;
    char **copy = &spill->host_copies[storage->id];
    for (int i = 0; !*copy && i < SPARE_BUFFERS; i++)
        if (spill->spare[i].bytes == bytes) {
            *copy = spill->spare[i].memory;
            spill->spare[i].memory = NULL;
            spill->spare[i].bytes = 0;
        }
    if (*copy)
        return HEALCL_OK;
    *copy = malloc(bytes);
    NEED_MEMORY(*copy, error);
    huge_pages_ask(*copy, bytes);
    return HEALCL_OK;
}

/* Discards the host's copy of a storage. Its memory becomes spare, in place of the smallest spare
 * buffer, which is freed. */
static void spill_forget(struct spill *spill, const struct storage *storage)
{
    char **copy = &spill->host_copies[storage->id];
    if (!*copy)
        return;
    int smallest = 0;
    for (int i = 1; i < SPARE_BUFFERS; i++)
        if (spill->spare[i].bytes < spill->spare[smallest].bytes)
            smallest = i;
    free(spill->spare[smallest].memory);
    spill->spare[smallest].memory = *copy;
    spill->spare[smallest].bytes = storage_bytes(storage) + 1;
    *copy = NULL;
}

/* Reads elements [first, first + count) of an upload: from the caller's data, or by decoding the
 * file's payload. Pages of the file are then released: memory is what this executor lacks. */
static enum healcl_status read_upload(struct device_executor *self, const struct step *upload,
                                      int64_t first, int64_t count, void *memory,
                                      struct healcl_error *error)
{
    const struct storage *storage = upload->out->storage;
    const struct payload *payload = upload->payload;
    const char *bound = executor_bound(&self->base, storage);
    size_t size = dtype_size(storage->dtype);
    if (bound) {
        memcpy(memory, bound + (size_t)first * size, (size_t)count * size);
        return HEALCL_OK;
    }
    self->base.reads_payloads = true;
    TRY(payload_check_data(payload, error));
    TRY(source_check_size(self->launcher.plan->source, error));
    TRY(payload_read_part(payload, storage->dtype, first, count, memory, error));
    payload_forget(payload, self->launcher.plan->source);
    return HEALCL_OK;
}

/* Makes the host keep a storage's contents. They begin with those of its upload, if it has one. */
static enum healcl_status spill_hold(struct device_executor *self, const struct storage *storage,
                                     struct healcl_error *error)
{
    struct spill *spill = self->spill;
    const struct step *upload = spill->memory.states[storage->id].upload;
    TRY(ensure_host_copy(spill, storage, error));
    return upload ? read_upload(self, upload, 0, storage->elements, spill->host_copies[storage->id],
                                error)
                  : HEALCL_OK;
}

/* Checks the payload of an upload that is not needed on the device yet, so that errors come in the
 * order of the transcript. Base64 and header were checked with the plan: only a conversion to a
 * smaller dtype can fail. */
static enum healcl_status check_upload(struct device_executor *self, const struct storage *storage,
                                       struct healcl_error *error)
{
    const struct step *upload = self->spill->memory.states[storage->id].upload;
    if (executor_bound(&self->base, storage))
        return HEALCL_OK;
    TRY(payload_check_data(upload->payload, error));
    if (upload->payload->dtype == storage->dtype)
        return HEALCL_OK;
    TRY(spill_hold(self, storage, error));
    spill_forget(self->spill, storage);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- moves */

/* Performs one move that plan/memory.h has decided. See enum memory_move for what each kind does.
 */
static enum healcl_status do_move(struct device_executor *self, enum memory_move kind,
                                  const struct storage *storage, struct healcl_error *error)
{
    struct spill *spill = self->spill;
    struct launcher *launcher = &self->launcher;
    struct buffer *memory = launcher_memory(launcher, storage);
    uint64_t bytes = storage_bytes(storage);
    switch (kind) {
    case MEMORY_MOVE_UPLOAD: /* to the device */
        return device_executor_upload(self, spill->memory.states[storage->id].upload, error);
    case MEMORY_MOVE_CHECK: return check_upload(self, storage, error);
    case MEMORY_MOVE_HOLD: return spill_hold(self, storage, error);
    case MEMORY_MOVE_SPILL: /* from the device to the host */
        TRY(ensure_host_copy(spill, storage, error));
        return memory->memory ? device_read(launcher->device, memory, 0, bytes,
                                            spill->host_copies[storage->id], error)
                              : HEALCL_OK;
    case MEMORY_MOVE_BACK: /* from the host's copy to the device */
        return device_upload_memory(launcher->device, NULL, bytes, spill->host_copies[storage->id],
                                    memory, error);
    case MEMORY_MOVE_DROP: device_executor_release_storage(self, storage); return HEALCL_OK;
    case MEMORY_MOVE_FORGET: spill_forget(spill, storage); return HEALCL_OK;
    }
    return HEALCL_OK;
}

/* Performs a move with its trace span and adds its time to the cost of limited memory. Freeing
 * takes no time. Nor is the first upload of a payload such a cost: it is needed without a limit,
 * too. */
static enum healcl_status spill_move(void *context, enum memory_move kind,
                                     const struct storage *storage, struct healcl_error *error)
{
    static const char *const names[] = {[MEMORY_MOVE_UPLOAD] = "upload",
                                        [MEMORY_MOVE_CHECK] = "hold",
                                        [MEMORY_MOVE_HOLD] = "hold",
                                        [MEMORY_MOVE_SPILL] = "spill",
                                        [MEMORY_MOVE_BACK] = "bring back"};
    struct device_executor *self = context;
    struct spill *spill = self->spill;
    if (kind == MEMORY_MOVE_DROP || kind == MEMORY_MOVE_FORGET)
        return do_move(self, kind, storage, error);
    bool is_first = kind == MEMORY_MOVE_UPLOAD && !spill->memory.states[storage->id].streamed;
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(self->base.trace, "memory", names[kind]);
    enum healcl_status status = do_move(self, kind, storage, error);
    trace_end(self->base.trace, span);
    if (!is_first)
        spill->nanoseconds += monotonic_nanoseconds() - start;
    return status;
}

/* Called by the device before it would exceed its limit: moves tensors to the host until `bytes`
 * bytes are free. */
static enum healcl_status spill_make_room(void *context, uint64_t bytes, struct healcl_error *error)
{
    return memory_make_room(&((struct device_executor *)context)->spill->memory, bytes, error);
}

/* ---------------------------------------------------------------- life */

/* Limits the device memory of an executor. plan/memory.h plans which tensors are on the device at
 * each step; the executor performs its moves. */
enum healcl_status device_executor_limit(struct executor *executor, uint64_t limit,
                                         struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    const struct plan *plan = self->launcher.plan;
    struct spill *spill = calloc(1, sizeof *spill);
    NEED_MEMORY(spill, error);
    spill->limit = limit;
    spill->mover =
        (struct memory_mover){.move = spill_move,
                              .context = self,
                              .allocation = self->launcher.device->info.max_allocation_bytes};
    spill->host_copies = calloc(plan->storage_count + 1, sizeof *spill->host_copies);
    enum healcl_status status = spill->host_copies
                                    ? memory_init(&spill->memory, plan, limit, &spill->mover, error)
                                    : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status != HEALCL_OK) {
        free(spill->host_copies);
        free(spill);
        return status;
    }
    device_limit_memory(self->launcher.device, limit, spill_make_room, self);
    self->spill = spill;
    return HEALCL_OK;
}

/* Discards all copies of the host, so that the plan can run from its beginning. */
void spill_reset(struct device_executor *self)
{
    const struct plan *plan = self->launcher.plan;
    for (size_t id = 0; id < plan->storage_count; id++)
        spill_forget(self->spill, plan->storages[id]);
    memory_reset(&self->spill->memory);
    self->spill->nanoseconds = 0;
}

/* Ends the limit of device memory, and frees all copies of the host. */
void spill_free(struct device_executor *self)
{
    device_limit_memory(self->launcher.device, 0, NULL, NULL);
    spill_reset(self);
    for (int i = 0; i < SPARE_BUFFERS; i++)
        free(self->spill->spare[i].memory);
    memory_release(&self->spill->memory);
    free(self->spill->host_copies);
    free(self->spill);
}

/* ---------------------------------------------------------------- steps */

/* Bytes that tensors may use: the limit, without scratch memory, derived tables and pending
 * results, which are on the device beside them. */
static uint64_t room_for_tensors(const struct device_executor *self)
{
    const struct healcl_device *device = self->launcher.device;
    const struct spill *spill = self->spill;
    uint64_t used = device->bytes_live - device->bytes_pooled;
    uint64_t other_bytes = used > spill->memory.resident ? used - spill->memory.resident : 0;
    return spill->limit > other_bytes ? spill->limit - other_bytes : 0;
}

/* Whether the operands of a step may not fit beside the tensors that are on the device now. An
 * operand that is there already counts twice: this is only an estimate. The executor then hands out
 * pending results first, which need memory. */
bool spill_is_short(struct device_executor *self, size_t number)
{
    const struct step *step = &self->launcher.plan->steps[number];
    uint64_t bytes = 0;
    FOR_EACH_OPERAND (i, tensor, step)
        if (step->kind != STEP_RELEASE)
            bytes += storage_bytes(tensor->storage);
    return self->spill->memory.resident + bytes > room_for_tensors(self);
}

/* ---------------------------------------------------------------- slices */

/* Uploads the slice of operand i that a step reads: from the host's copy of the storage, or from
 * its upload if that is all the storage has. */
static enum healcl_status upload_slice(struct device_executor *self, const struct step *step,
                                       const struct slice *slice, int i, struct healcl_error *error)
{
    struct healcl_device *device = self->launcher.device;
    const struct storage *whole = step->operands[i]->storage;
    const struct storage *part = &slice->storages[i];
    const struct memory_state *state = &self->spill->memory.states[whole->id];
    struct buffer *buffer = launcher_memory(&self->launcher, part);
    const uint64_t bytes = storage_bytes(part),
                   offset = (uint64_t)slice->first[i] * dtype_size(whole->dtype);
    if (state->source != MEMORY_UPLOAD)
        return device_upload_memory(device, NULL, bytes,
                                    self->spill->host_copies[whole->id] + offset, buffer, error);
    char *memory = malloc(bytes + 1); /* for a part of the payload */
    NEED_MEMORY(memory, error);
    enum healcl_status status =
        read_upload(self, state->upload, slice->first[i], part->elements, memory, error);
    THEN(status, device_upload_memory(device, NULL, bytes, memory, buffer, error));
    free(memory);
    return status;
}

/* Whether a chain works in place on an input: that is its output. */
static bool is_in_place(const struct step *step, int input)
{
    const struct tensor *tensor = step->in[input];
    return step->kind == STEP_CHAIN && tensor && tensors_same(tensor, step->out);
}

/* Cuts one slice of a step, at spill->start, and uploads the parts that it reads. The slice's
 * storages get the numbers behind the plan's. Slices of a sum's terms add to the same output: all
 * but the first must not clear it. A chain that works in place does so in the slice, too. */
static enum healcl_status begin_slice(struct device_executor *self, const struct step *step,
                                      struct slice *slice, int64_t size, struct healcl_error *error)
{
    const struct slices *slices = &self->spill->slices;
    const int64_t start = self->spill->start;
    const uint32_t first_id = (uint32_t)self->launcher.plan->storage_count + 1;
    slice_init(slice, step, slices, start, size, first_id, false); /* only operands that are cut */
    const bool cuts_terms = step->kind == STEP_MODMUL_AXIS_SUM && slices->axis[STEP_OUT] < 0;
    if (cuts_terms && start > 0)
        slice->step.value[0] = 0; /* adds to the sum of earlier slices */
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (slices->axis[i] >= 0 && slice_is_read(step, slices, i, size))
            TRY(upload_slice(self, step, slice, i, error));
    for (int i = 0; i < STEP_INPUTS; i++) {
        if (!is_in_place(step, i))
            continue;
        slice->step.in[i] = slice->step.out;
        if (!slice_is_read(step, slices, STEP_OUT, size))
            TRY(upload_slice(self, step, slice, STEP_OUT, error));
    }
    return HEALCL_OK;
}

/* Reads a slice's output back to the host's copy of the whole output. An output that is not cut
 * stays on the device for the next slice. */
static enum healcl_status end_slice(struct device_executor *self, const struct step *step,
                                    const struct slice *slice, struct healcl_error *error)
{
    const struct spill *spill = self->spill;
    if (spill->slices.axis[STEP_OUT] < 0)
        return HEALCL_OK;
    const struct storage *whole = step->out->storage, *part = &slice->storages[STEP_OUT];
    const size_t offset = (size_t)slice->first[STEP_OUT] * dtype_size(whole->dtype);
    return device_read(self->launcher.device, launcher_memory(&self->launcher, part), 0,
                       storage_bytes(part), spill->host_copies[whole->id] + offset, error);
}

/* Runs one slice of a step. What its checks have found is read before the next slice, while the
 * index of a bad element can still be converted. Without checks it does not wait. */
static enum healcl_status run_slice(struct device_executor *self, const struct step *step,
                                    struct slice *slice, int64_t size, struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    enum healcl_status status = begin_slice(self, step, slice, size, error);
    self->spill->nanoseconds += monotonic_nanoseconds() - start;
    TRY(status);
    TRY(launch_step(&self->launcher, &slice->step, &slice->step, error));
    if (self->launcher.check_count > 0)
        TRY(device_executor_read_status(self, error));
    start = monotonic_nanoseconds();
    status = end_slice(self, step, slice, error);
    self->spill->nanoseconds += monotonic_nanoseconds() - start;
    return status;
}

/* Runs a step slice by slice along one axis: its operands do not fit on the device together. The
 * slice that is running is noted in self->spill, for messages. */
static enum healcl_status run_slices(struct device_executor *self, const struct step *step,
                                     const struct slices *slices, struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    struct spill *spill = self->spill;
    self->status_is_initial = false;
    spill->slices = *slices;
    for (spill->start = 0; spill->start < slices->size && status == HEALCL_OK;
         spill->start += slices->most) {
        int64_t left = slices->size - spill->start;
        struct slice slice = {.size = 0};
        status = run_slice(self, step, &slice, left < slices->most ? left : slices->most, error);
        for (int i = 0; i < STEP_OPERANDS; i++)
            if (slices->axis[i] >= 0)
                launcher_storage_release(&self->launcher, &slice.storages[i]);
    }
    spill->slices = (struct slices){.size = 0};
    return status;
}

/* ---------------------------------------------------------------- results and refusals */

/* Hands out a result. If only the host has it, packs it from the host's copy. */
static enum healcl_status spill_hand_out(struct device_executor *self, const struct step *step,
                                         struct healcl_error *error)
{
    const struct tensor *tensor = step->in[0];
    const struct storage *storage = tensor->storage;
    if (self->spill->memory.states[storage->id].resident || !sink_wants_data(self->sink, step))
        return device_executor_run_step(self, step, error);
    void *packed = malloc(packed_bytes(tensor) + 1);
    NEED_MEMORY(packed, error);
    layout_copy_packed(&tensor->layout, dtype_size(storage->dtype),
                       self->spill->host_copies[storage->id], packed, false); /* to packed */
    enum healcl_status status = sink_take(&self->base, self->sink, step, 0,
                                          layout_elements(&tensor->layout), packed, error);
    free(packed);
    return status;
}

/* Runs a step, by number, with limited memory. plan/memory.h moves its operands to the device
 * first, or has the step run in slices or on the host. If memory is short, derived tables may keep
 * only a quarter of it: they are computed again when needed. */
enum healcl_status spill_run_step(struct device_executor *self, size_t number,
                                  struct healcl_error *error)
{
    const struct step *step = &self->launcher.plan->steps[number];
    struct memory *memory = &self->spill->memory;
    struct slices slices;
    if (spill_is_short(self, number) && self->launcher.cache.bytes > self->spill->limit / 4)
        derived_forget_all(&self->launcher);
    memory->room = room_for_tensors(self);
    TRY(memory_begin_step(memory, number, &slices, error));
    if (slices.most > 0)
        TRY(run_slices(self, step, &slices, error));
    else if (slices.on_host)
        TRY(device_executor_run_on_host(self, step, "its tensors do not fit into one allocation",
                                        error));
    else if (step->kind == STEP_DOWNLOAD)
        TRY(spill_hand_out(self, step, error));
    else if (step->kind != STEP_UPLOAD && step->kind != STEP_RELEASE)
        TRY(device_executor_run_step(self, step, error));
    return memory_end_step(memory, &slices, error);
}

/* Writes the index of a bad element that a check has found in input i. `position` counts in
 * `elements`, which is only a slice of the operand if a step runs in slices; the index is that in
 * the whole operand. spill may be NULL. */
void spill_index_text(const struct spill *spill, int i, const struct layout *elements,
                      int64_t position, char text[SHAPE_TEXT_SIZE])
{
    struct layout whole = *elements;
    const int axis = spill && spill->slices.size > 0 ? spill->slices.axis[i] : NO_AXIS;
    if (axis >= 0 && (uint32_t)axis < whole.rank) {
        whole.shape[axis] = spill->slices.size;
        position = slice_element(elements, axis, spill->start, spill->slices.size, position);
    }
    layout_index_text(&whole, position, text);
}
