/* Steps that the host reference runs instead of the device. */
#include <stdlib.h>
#include <string.h>

#include "reference/reference.h"
#include "run/device_executor_parts.h"

/* The bytes of a storage from the first to the last element of a tensor. */
struct extent {
    uint64_t offset, bytes; /* in the storage */
    char *reference;        /* their place in the reference's memory */
    /* With limited memory, if the storage is not on the device: their place in the host's copy of
     * it. Otherwise NULL. */
    char *host_copy;
};

/* Finds what a tensor spans. Allocates the reference's memory for its storage if necessary. */
static enum healcl_status find_extent(struct device_executor *self, const struct tensor *tensor,
                                      struct extent *extent, struct healcl_error *error)
{
    const struct storage *storage = tensor->storage;
    const struct spill *spill = self->spill;
    void *memory;
    TRY(reference_memory(self->reference, storage, &memory, error));
    *extent = (struct extent){
        .offset = (uint64_t)tensor->layout.offset * dtype_size(storage->dtype),
        .bytes = (uint64_t)layout_span(&tensor->layout) * dtype_size(storage->dtype)};
    extent->reference = (char *)memory + extent->offset;
    if (spill && !spill->memory.states[storage->id].resident && spill->host_copies[storage->id])
        extent->host_copy = spill->host_copies[storage->id] + extent->offset;
    return HEALCL_OK;
}

/* Copies what a tensor spans to the reference's memory: from the device, which is waited for, or
 * from the host's copy. Scalars are not copied: the plan has them. */
static enum healcl_status read_tensor(struct device_executor *self, const struct tensor *tensor,
                                      struct healcl_error *error)
{
    struct extent extent;
    const struct buffer *buffer;
    if (tensor->storage->scalars || layout_elements(&tensor->layout) == 0)
        return HEALCL_OK;
    TRY(find_extent(self, tensor, &extent, error));
    if (extent.host_copy) {
        memcpy(extent.reference, extent.host_copy, extent.bytes);
        return HEALCL_OK;
    }
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    return device_read(self->launcher.device, buffer, extent.offset, extent.bytes, extent.reference,
                       error);
}

enum { PIECE_BYTES = 4 << 20 /* each is copied, and kept until it is written */ };

/* Writes a part of a storage on the device, in pieces. Each is copied, and waited for before the
 * next one, to bound the memory of the copies. */
static enum healcl_status write_part(struct launcher *launcher, const struct storage *storage,
                                     const struct extent *extent, struct healcl_error *error)
{
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, storage, &buffer, error));
    for (uint64_t done = 0; done < extent->bytes; done += PIECE_BYTES) {
        const uint64_t left = extent->bytes - done;
        const uint64_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        TRY(device_write(launcher->device, buffer, extent->offset + done, piece,
                         extent->reference + done, error));
        if (left > PIECE_BYTES)
            TRY(device_finish(launcher->device, error));
    }
    return HEALCL_OK;
}

/* Copies what a tensor spans from the reference's memory: back to the device, or to the host's
 * copy. A storage that is written completely gets a new buffer, which need not wait for the old
 * one. */
static enum healcl_status write_tensor(struct device_executor *self, const struct tensor *tensor,
                                       struct healcl_error *error)
{
    struct launcher *launcher = &self->launcher;
    const struct storage *storage = tensor->storage;
    struct extent extent;
    TRY(find_extent(self, tensor, &extent, error));
    if (extent.host_copy) {
        memcpy(extent.host_copy, extent.reference, extent.bytes);
        return HEALCL_OK;
    }
    if (extent.bytes < storage_bytes(storage))
        return write_part(launcher, storage, &extent, error);
    struct buffer *whole = launcher_memory(launcher, storage);
    struct buffer_place place;
    device_buffer_release(launcher->device, whole);
    return device_upload_memory(launcher->device, launcher_place(launcher, storage, &place),
                                extent.bytes, extent.reference, whole, error);
}

/* Runs a step on the host. Reads the inputs from the device, waits for them, and writes the output
 * back. An output that is not written completely is read first. After an error of the reference
 * nothing is written. */
static enum healcl_status run_by_reference(struct device_executor *self, const struct step *step,
                                           struct healcl_error *error)
{
    FOR_EACH_INPUT (i, tensor, step)
        TRY(read_tensor(self, tensor, error));
    /* If the output has no gaps, the step writes all that it spans. */
    const struct layout *out = &step->out->layout;
    const bool has_gaps = layout_span(out) != layout_elements(out);
    if (step_traits[step->kind].adds || has_gaps)
        TRY(read_tensor(self, step->out, error));
    TRY(reference_step(self->reference, step, error));
    TRY(write_tensor(self, step->out, error));
    launcher_storage_written(&self->launcher, step->out->storage);
    return HEALCL_OK;
}

/* Counts a step that the device could not run as planned, once for each of its operations. A step
 * that passes have merged comes from several operations; equal ones count once. The first reason of
 * each operation is kept for reports, and logged. */
enum healcl_status device_executor_note_fallback(struct device_executor *self,
                                                 const struct step *step, const char *reason,
                                                 struct healcl_error *error)
{
    const struct origins *origins = step->origins;
    if (!self->base.fallbacks)
        self->base.fallbacks =
            calloc(operation_count(self->launcher.plan->table) + 1, sizeof *self->base.fallbacks);
    NEED_MEMORY(self->base.fallbacks, error);
    self->base.fallback_steps++;
    for (size_t i = 0; i < origins->count; i++) {
        const struct operation *operation = origin_operation(&origins->of[i]);
        struct fallback *fallback = &self->base.fallbacks[operation->number];
        size_t first = 0; /* origin with this operation */
        while (origin_operation(&origins->of[first]) != operation)
            first++;
        if (first < i) /* counted already */
            continue;
        fallback->steps++;
        if (fallback->reason)
            continue;
        fallback->reason = strdup(reason);
        NEED_MEMORY(fallback->reason, error);
        device_log(self->launcher.device, "%s falls back: %s", operation->name, reason);
    }
    return HEALCL_OK;
}

/* Divides the time of a step on the host among its operations, for reports. The device was idle
 * meanwhile, which must not count as a gap between kernels. */
static void note_host_time(struct device_executor *self, const struct step *step,
                           uint64_t nanoseconds)
{
    const struct origins *origins = step->origins;
    size_t count = operation_count(self->launcher.plan->table);
    uint64_t *shares = calloc(count, sizeof *shares);
    if (shares) /* otherwise the time is reported with the device's */
        origins_share(origins, nanoseconds, shares);
    for (size_t i = 0; shares && i < count; i++)
        self->base.fallbacks[i].nanoseconds += shares[i];
    free(shares);
    self->launcher.device->host_worked = true;
    if (self->base.times.operation_nanoseconds)
        origins_share(origins, nanoseconds, self->base.times.operation_nanoseconds);
}

/* Prepares the reference for a step that the device cannot run. Fails if such steps must not run on
 * the host. Reads the status buffer first: refusals of earlier steps take precedence. */
static enum healcl_status prepare_host(struct device_executor *self, const struct step *step,
                                       const char *reason, struct healcl_error *error)
{
    if (!self->base.falls_back)
        FAIL(error, HEALCL_DEVICE, "the device lacks kernels for it: %s", reason);
    if (!self->reference)
        TRY(reference_create(self->launcher.plan, &self->reference, error));
    self->reference->check = executor_check_cancelled;
    self->reference->executor = &self->base;
    TRY(device_executor_read_status(self, error));
    self->base.host_steps++;
    return device_executor_note_fallback(self, step, reason, error);
}

/* Runs a step on the host, counts it under `reason`, and forgets the reference's data: the device
 * may change them. A refusal by the reference names the step's entry. */
enum healcl_status device_executor_run_on_host(struct device_executor *self,
                                               const struct step *step, const char *reason,
                                               struct healcl_error *error)
{
    TRY(prepare_host(self, step, reason, error));
    uint64_t start = monotonic_nanoseconds(), dropped_before = self->reference->dropped_digits;
    size_t span = trace_begin(self->base.trace, "fallback", step_traits[step->kind].name);
    enum healcl_status status = HEALCL_OK;
    if (layout_elements(&step->out->layout) > 0)
        status = run_by_reference(self, step, error);
    if (status == HEALCL_REFUSED)
        error_prefix_step(error, step, self->reference->refused_input);
    FOR_EACH_OPERAND (i, tensor, step)
        reference_forget(self->reference, tensor->storage);
    trace_end(self->base.trace, span);
    self->base.dropped_digits += self->reference->dropped_digits - dropped_before;
    note_host_time(self, step, monotonic_nanoseconds() - start);
    self->has_refused |= status == HEALCL_REFUSED;
    return status;
}
