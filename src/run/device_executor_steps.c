/* Runs one step: its upload, its kernel or a substitute, its result. Results stay on the device
 * until the queue is drained, and are handed out then. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "kernels/derived.h"
#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"

/* ---------------------------------------------------------------- uploads */

/* The context that decodes a payload's pieces. */
struct decoding {
    struct device_executor *self;
    const struct payload *payload;
    enum dtype dtype;
    char *copy; /* for all bytes, or NULL */
};

static enum healcl_status decode_piece(void *context, uint64_t offset, uint64_t bytes, void *memory,
                                       struct healcl_error *error)
{
    struct decoding *decoding = context;
    const uint64_t start = monotonic_nanoseconds(), size = dtype_size(decoding->dtype);
    size_t span = trace_begin(decoding->self->base.trace, "decode", "decode");
    enum healcl_status status =
        payload_read_part(decoding->payload, decoding->dtype, (int64_t)(offset / size),
                          (int64_t)(bytes / size), memory, error);
    trace_end(decoding->self->base.trace, span);
    decoding->self->result->decode_nanoseconds += monotonic_nanoseconds() - start;
    if (decoding->copy)
        memcpy(decoding->copy + offset, memory, bytes);
    return status;
}

/* copy: destination of a copy of the elements, or NULL. */
static enum healcl_status upload(struct device_executor *self, const struct storage *storage,
                                 const struct payload *payload, char *copy,
                                 struct healcl_error *error)
{
    struct healcl_device *device = self->launcher.device;
    struct buffer *buffer = launcher_memory(&self->launcher, storage);
    struct buffer_place memory;
    const struct buffer_place *place = launcher_place(&self->launcher, storage, &memory);
    struct decoding decoding = {.self = self, .payload = payload, .dtype = storage->dtype};
    decoding.copy = copy;
    TRY(payload_check_data(payload, error));
    TRY(source_check_size(self->launcher.plan->source, error));
    return device_upload(device, place, storage_bytes(storage),
                         &(struct device_filler){decode_piece, &decoding}, buffer, error);
}

/* ---------------------------------------------------------------- steps on the host */

/* The bytes of a storage from the first to the last element of a tensor. */
struct extent {
    uint64_t first, bytes;
};

static struct extent extent_of(const struct tensor *tensor)
{
    const uint64_t size = dtype_size(tensor->storage->dtype);
    return (struct extent){(uint64_t)tensor->layout.offset * size,
                           (uint64_t)layout_span(&tensor->layout) * size};
}

/* With limited memory, returns the host's copy of a storage that is not on the device. Else
 * NULL. */
static char *held_by_host(const struct device_executor *self, const struct storage *storage)
{
    const struct spill *spill = self->spill;
    return spill && !spill->memory.states[storage->id].resident ? spill->held[storage->id] : NULL;
}

static enum healcl_status read_tensor(struct device_executor *self, const struct tensor *tensor,
                                      struct healcl_error *error)
{
    const struct extent extent = extent_of(tensor);
    const struct buffer *buffer;
    void *memory;
    if (tensor->storage->scalars || extent.bytes == 0) /* the plan has its elements */
        return HEALCL_OK;
    TRY(reference_memory(self->reference, tensor->storage, &memory, error));
    if (held_by_host(self, tensor->storage)) {
        memcpy((char *)memory + extent.first, held_by_host(self, tensor->storage) + extent.first,
               extent.bytes);
        return HEALCL_OK;
    }
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    return device_read(self->launcher.device, buffer, extent.first, extent.bytes,
                       (char *)memory + extent.first, error);
}

enum { PIECE_BYTES = 4 << 20 /* each is copied, and kept until it is written */ };

/* A storage that is written completely gets a new buffer. */
static enum healcl_status write_tensor(struct device_executor *self, const struct tensor *tensor,
                                       struct healcl_error *error)
{
    struct launcher *launcher = &self->launcher;
    struct healcl_device *device = launcher->device;
    const struct extent extent = extent_of(tensor);
    const struct buffer *buffer;
    void *memory;
    TRY(reference_memory(self->reference, tensor->storage, &memory, error));
    if (held_by_host(self, tensor->storage)) {
        memcpy(held_by_host(self, tensor->storage) + extent.first, (char *)memory + extent.first,
               extent.bytes);
        return HEALCL_OK;
    }
    if (extent.bytes == storage_bytes(tensor->storage)) {
        struct buffer *whole = launcher_memory(launcher, tensor->storage);
        struct buffer_place place;
        device_buffer_release(device, whole);
        return device_upload_memory(device, launcher_place(launcher, tensor->storage, &place),
                                    extent.bytes, memory, whole, error);
    }
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    for (uint64_t done = 0; done < extent.bytes; done += PIECE_BYTES) {
        const uint64_t left = extent.bytes - done, at = extent.first + done;
        TRY(device_write(device, buffer, at, left < PIECE_BYTES ? left : PIECE_BYTES,
                         (const char *)memory + at, error));
        if (left > PIECE_BYTES)
            TRY(device_finish(device, error));
    }
    return HEALCL_OK;
}

/* Runs on the host a step that needs kernels. Waits for the device, reads the inputs from it, and
 * writes the output back. After an error of the reference it writes nothing. */
static enum healcl_status run_by_reference(struct device_executor *self, const struct step *step,
                                           struct healcl_error *error)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            TRY(read_tensor(self, step->in[i], error));
    /* A dense output that does not overlap itself is written completely. */
    if (step_traits[step->kind].adds || extent_of(step->out).bytes != packed_bytes(step->out))
        TRY(read_tensor(self, step->out, error));
    TRY(reference_step(self->reference, step, error));
    TRY(write_tensor(self, step->out, error));
    launcher_storage_written(&self->launcher, step->out->storage);
    return HEALCL_OK;
}

/* Counts a step once for each of its operations. The host ran it, or kernels other than a
 * manifest's. */
static enum healcl_status note_fallback(struct device_executor *self, const struct step *step,
                                        const char *reason, struct healcl_error *error)
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
        size_t earlier = 0;
        while (origin_operation(&origins->of[earlier]) != operation)
            earlier++;
        if (earlier < i)
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

/* Divides the time of a step on the host among its operations. */
static void note_fallback_time(struct device_executor *self, const struct step *step,
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
    self->launcher.device->host_worked = true; /* do not count this time as a gap between kernels */
    if (self->result->operation_nanoseconds)
        origins_share(origins, nanoseconds, self->result->operation_nanoseconds);
}

/* Waits for the status first: refusals of earlier steps take precedence. */
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
    return note_fallback(self, step, reason, error);
}

enum healcl_status device_executor_run_on_host(struct device_executor *self,
                                               const struct step *step, const char *reason,
                                               struct healcl_error *error)
{
    TRY(prepare_host(self, step, reason, error));
    uint64_t start = monotonic_nanoseconds(), dropped = self->reference->dropped_digits;
    size_t span = trace_begin(self->base.trace, "fallback", step_traits[step->kind].name);
    enum healcl_status status = HEALCL_OK;
    if (layout_elements(&step->out->layout) > 0)
        status = run_by_reference(self, step, error);
    if (status == HEALCL_REFUSED)
        error_prefix_step(error, step, self->reference->refused_input);
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (step_operand(step, i))
            reference_forget(self->reference, step_operand(step, i)->storage);
    trace_end(self->base.trace, span);
    self->base.dropped_digits += self->reference->dropped_digits - dropped;
    note_fallback_time(self, step, monotonic_nanoseconds() - start);
    self->has_refused |= status == HEALCL_REFUSED;
    return status;
}

/* ---------------------------------------------------------------- results that wait */

/* Copies the result to a new buffer on the device. */
static enum healcl_status pack_on_host(struct device_executor *self, struct download *download,
                                       const char *reason, struct healcl_error *error)
{
    const struct tensor *tensor = download->step->in[0];
    const size_t bytes = (size_t)packed_bytes(tensor);
    TRY(prepare_host(self, download->step, reason, error));
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(self->base.trace, "fallback", "copy");
    void *memory = malloc(bytes);
    enum healcl_status status =
        memory ? read_tensor(self, tensor, error) : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = reference_read(self->reference, tensor, memory, error);
    if (status == HEALCL_OK)
        status = device_upload_memory(self->launcher.device, NULL, bytes, memory, &download->buffer,
                                      error);
    reference_forget(self->reference, tensor->storage);
    free(memory);
    trace_end(self->base.trace, span);
    note_fallback_time(self, download->step, monotonic_nanoseconds() - start);
    return status;
}

/* Enqueues a copy of a result, so that later steps of the segment cannot change it. */
static enum healcl_status snapshot(struct device_executor *self, struct download *download,
                                   struct healcl_error *error)
{
    const struct step *step = download->step;
    struct healcl_device *device = self->launcher.device;
    struct healcl_error own = {0};
    const char *obstacle =
        pack_obstacle(&self->launcher, step, step->in[0], packed_bytes(step->in[0]));
    download->buffer = (struct buffer){0};
    download->offset = 0;
    download->is_shared = false;
    if (obstacle)
        return pack_on_host(self, download, obstacle, error);
    TRY(device_buffer_acquire_part(device, packed_bytes(step->in[0]), &download->buffer, error));
    if (download->buffer.bytes == 0)
        return HEALCL_OK;
    device->programs->unsupported_met = false;
    enum healcl_status status =
        launch_pack(&self->launcher, step, step->in[0], &download->buffer, &own);
    if (status != HEALCL_OK && self->base.falls_back && device->programs->unsupported_met) {
        device_buffer_release(device, &download->buffer);
        status = pack_on_host(self, download, own.message, error);
    } else if (status != HEALCL_OK) {
        error_move(error, &own);
    }
    healcl_error_clear(&own);
    return status;
}

/* Copies the results that wait in a storage, before the storage is written. */
static enum healcl_status move_results(struct device_executor *self, const struct storage *storage,
                                       struct healcl_error *error)
{
    struct device_storage *memory = &self->launcher.storages[storage->id];
    while (memory->result > 0) {
        struct download *download = &self->downloads[memory->result - 1];
        memory->result = download->next;
        (void)trace_for_step(self->base.trace, download->step);
        TRY(snapshot(self, download, error));
    }
    return HEALCL_OK;
}

void device_executor_release_storage(struct device_executor *self, const struct storage *storage)
{
    struct device_storage *memory = &self->launcher.storages[storage->id];
    if (memory->result > 0) {
        self->downloads[memory->result - 1].is_shared = false;
        memory->result = 0;
        memory->buffer = (struct buffer){0};
    }
    launcher_storage_release(&self->launcher, storage);
}

/* Whether a result has in its storage the layout to hand out, and is most of the storage. */
static bool may_wait_in_storage(const struct step *step)
{
    const struct tensor *tensor = step->in[0];
    uint64_t bytes = packed_bytes(step->in[0]);
    return bytes > 0 && layout_is_contiguous(&tensor->layout) &&
           storage_bytes(tensor->storage) / 2 <= bytes;
}

/* Keeps a result so that later steps of the segment cannot change it. */
static enum healcl_status keep_result(struct device_executor *self, const struct step *step,
                                      struct healcl_error *error)
{
    NEED_MEMORY(ARRAY_GROW(self->downloads, self->download_count, &self->download_capacity), error);
    struct download *download = &self->downloads[self->download_count++];
    *download = (struct download){.step = step};
    if (!sink_wants_data(self->sink, step))
        return HEALCL_OK;
    self->download_bytes += packed_bytes(step->in[0]);
    if (!may_wait_in_storage(step))
        return snapshot(self, download, error);
    const struct tensor *tensor = step->in[0];
    const struct buffer *buffer;
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    struct device_storage *memory = &self->launcher.storages[tensor->storage->id];
    download->buffer = *buffer;
    download->offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    download->is_shared = true;
    download->next = memory->result;
    memory->result = self->download_count;
    return HEALCL_OK;
}

static enum healcl_status device_executor_download(struct device_executor *self,
                                                   const struct step *step,
                                                   struct healcl_error *error)
{
    if (!device_executor_is_awaited(self, step))
        return keep_result(self, step, error);
    const struct tensor *tensor = step->in[0];
    const struct buffer *buffer;
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    uint64_t offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    return device_executor_deliver(self, step, buffer, offset, packed_bytes(step->in[0]), error);
}

/* ---------------------------------------------------------------- segments */

enum healcl_status device_executor_upload(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error)
{
    const struct storage *storage = step->out->storage;
    if (executor_keeps(&self->base, storage))
        return HEALCL_OK;
    device_executor_release_storage(self, storage); /* a session kept it until now */
    const void *bound = executor_bound(&self->base, storage);
    const uint64_t bytes = storage_bytes(storage);
    struct buffer_place place;
    char *copy = launcher_keeps_contents(&self->launcher, storage) ? malloc(bytes) : NULL;
    enum healcl_status status =
        bound ? device_upload_memory(self->launcher.device,
                                     launcher_place(&self->launcher, storage, &place), bytes, bound,
                                     launcher_memory(&self->launcher, storage), error)
              : upload(self, storage, step->payload, copy, error);
    if (status != HEALCL_OK) {
        free(copy);
        return status;
    }
    if (bound && copy)
        memcpy(copy, bound, bytes);
    executor_note_upload(&self->base, storage);
    launcher_storage_uploaded(&self->launcher, storage, bound ? NULL : step->payload, copy);
    payload_forget(step->payload, self->launcher.plan->source);
    return HEALCL_OK;
}

static enum healcl_status device_executor_release(struct device_executor *self,
                                                  const struct step *step,
                                                  struct healcl_error *error)
{
    (void)error;
    if (!executor_keeps(&self->base, step->in[0]->storage))
        device_executor_release_storage(self, step->in[0]->storage);
    return HEALCL_OK;
}

static enum healcl_status clear_piece(void *context, uint64_t offset, uint64_t bytes, void *memory,
                                      struct healcl_error *error)
{
    (void)context, (void)offset, (void)error;
    memset(memory, 0, (size_t)bytes);
    return HEALCL_OK;
}

/* Whether a step fills all of a new and small storage with zeros, as most accumulators begin. */
static bool clears_small(const struct device_executor *self, const struct step *step)
{
    const struct storage *storage = step->out->storage;
    return step->kind == STEP_FILL && step->value[0] == 0 &&
           layout_elements(&step->out->layout) == storage->elements &&
           device_copies_upload(self->launcher.device, storage_bytes(storage));
}

static bool clears_new(const struct device_executor *self, const struct step *step)
{
    return clears_small(self, step) &&
           !self->launcher.storages[step->out->storage->id].buffer.memory;
}

/* Clears the storage with an upload, which needs no command. */
static enum healcl_status clear_new(struct device_executor *self, const struct storage *storage,
                                    struct healcl_error *error)
{
    TRY(device_upload(self->launcher.device, NULL, storage_bytes(storage),
                      &(struct device_filler){clear_piece, NULL},
                      launcher_memory(&self->launcher, storage), error));
    launcher_storage_written(&self->launcher, storage);
    return HEALCL_OK;
}

/* instead: the reason why a built-in kernel runs a manifest's step, or NULL. That counts as one
 * fallback, unless the host then runs the step. */
static enum healcl_status launch_or_fall_back(struct device_executor *self, const struct step *step,
                                              const char *instead, struct healcl_error *error);

/* Whether other kernels exist for a manifest's kernel that cannot be built: built-in ones, or those
 * of a body. */
static bool has_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return step->kind == STEP_VENDOR
               ? step->side == STEP_OF_KERNEL
               : vendor_kernel_for(launcher->plan, step, launcher->device).name != NULL;
}

/* Notes the failure. The steps of a body follow automatically, unless another kernel can run. */
static enum healcl_status take_substitute(struct device_executor *self, const struct step *step,
                                          const char *reason, struct healcl_error *error)
{
    struct healcl_device *device = self->launcher.device;
    TRY(vendor_note_failed(self->launcher.plan, step, device, error));
    if (step->kind != STEP_VENDOR)
        return launch_or_fall_back(self, step, reason, error);
    TRY(note_fallback(self, step, reason, error));
    return vendor_has_kernel(step, device) ? launch_or_fall_back(self, step, NULL, error)
                                           : HEALCL_OK;
}

static enum healcl_status launch_or_fall_back(struct device_executor *self, const struct step *step,
                                              const char *instead, struct healcl_error *error)
{
    struct healcl_error own = {0};
    self->launcher.device->programs->unsupported_met = false;
    enum healcl_status status = launch_step(&self->launcher, step, &own);
    if (status == HEALCL_OK)
        return instead ? note_fallback(self, step, instead, error) : HEALCL_OK;
    if (self->launcher.device->programs->unsupported_met) {
        self->launcher.refused_input = NO_INPUT;
        status = has_substitute(self, step)
                     ? take_substitute(self, step, own.message, error)
                     : device_executor_run_on_host(self, step, own.message, error);
    } else {
        error_move(error, &own);
    }
    healcl_error_clear(&own);
    return status;
}

#define NOT_BUILT "the manifest's kernel could not be built"

/* Whether a built-in kernel runs a step because a manifest's kernel could not be built. */
static bool is_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return vendor_has_failed(launcher->plan, step, launcher->device) &&
           !vendor_kernel_for(launcher->plan, step, launcher->device).name;
}

/* Checks the conditions that a manifest's kernel assumes. Waits for the checks that it launches: a
 * modulus of 0 may crash the kernel. */
static enum healcl_status check_data(struct device_executor *self, const struct step *step,
                                     struct healcl_error *error)
{
    struct vendor_checked checked;
    for (uint32_t i = 0; vendor_check_at(self->launcher.plan, step, i, &checked); i++) {
        const size_t before = self->launcher.check_count;
        TRY(template_check(&self->launcher, &checked.step, checked.input, error));
        if (self->launcher.check_count == before)
            continue;
        const enum healcl_status status = device_executor_read_status(self, error);
        if (status != HEALCL_OK) {
            derived_distrust(&self->launcher, &checked.step);
            return status;
        }
    }
    return HEALCL_OK;
}

static enum healcl_status launch(struct device_executor *self, const struct step *step,
                                 struct healcl_error *error)
{
    if (self->launcher.plan->table)
        TRY(check_data(self, step, error));
    if (!self->base.falls_back)
        return launch_step(&self->launcher, step, error);
    return launch_or_fall_back(self, step, is_substitute(self, step) ? NOT_BUILT : NULL, error);
}

static enum healcl_status launch_audited(struct device_executor *self, const struct step *step,
                                         struct healcl_error *error)
{
    const uint64_t host_steps = self->base.host_steps;
    TRY(audit_before_step(self->base.audit, &self->launcher, error));
    TRY(launch(self, step, error));
    return audit_after_step(self->base.audit, &self->launcher, self->base.host_steps == host_steps,
                            error);
}

static enum healcl_status device_executor_kernel(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    const char *obstacle = step_obstacle(step, self->launcher.device);
    if (!obstacle && clears_new(self, step))
        return clear_new(self, step->out->storage, error);
    TRY(move_results(self, step->out->storage, error));
    (void)trace_for_step(self->base.trace, step);
    if (obstacle)
        return device_executor_run_on_host(self, step, obstacle, error);
    self->status_is_clear = false;
    if (self->base.audit && audit_takes(self->base.audit, step))
        return launch_audited(self, step, error);
    return launch(self, step, error);
}

static enum healcl_status (*const step_functions[STEP_KINDS])(struct device_executor *,
                                                              const struct step *,
                                                              struct healcl_error *) = {
#define STEP(kind, id, reference, device, ...) [STEP_##kind] = device_executor_##device,
#include "plan/steps.def"
#undef STEP
};

enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error)
{
    return step_functions[step->kind](self, step, error);
}

enum healcl_status device_executor_leave_out(struct device_executor *self, const struct step *step,
                                             struct healcl_error *error)
{
    const struct healcl_device *device = self->launcher.device;
    if (step->kind == STEP_RELEASE && step->side == STEP_OF_KERNEL)
        device_executor_release_storage(self, step->in[0]->storage);
    if (step->kind == STEP_VENDOR && vendor_has_failed(self->launcher.plan, step, device))
        return note_fallback(self, step, NOT_BUILT, error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- compiling ahead */

/* Uploads the data that the host keeps to compute tables from. These uploads use no kernel. */
static void upload_kept(struct device_executor *self)
{
    const struct plan *plan = self->launcher.plan;
    struct healcl_error error = {.status = HEALCL_OK};
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind == STEP_UPLOAD &&
            launcher_keeps_contents(&self->launcher, step->out->storage))
            (void)!device_executor_upload(self, step, &error);
        healcl_error_clear(&error);
    }
}

/* Compiles a step's kernel. Returns whether the step has one. */
static bool compile_step(struct device_executor *self, const struct step *step)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (step_functions[step->kind] != device_executor_kernel || clears_small(self, step) ||
        step_is_left_out(step, self->launcher.device) || step_obstacle(step, self->launcher.device))
        return false;
    (void)!launch_step(&self->launcher, step, &error);
    healcl_error_clear(&error);
    return true;
}

void device_executor_list_programs(const void *listed, struct healcl_device *beside)
{
    const struct plan *plan = listed;
    struct executor *executor = NULL;
    struct healcl_error error = {.status = HEALCL_OK};
    if (device_executor_create(beside, plan, false, &executor, NULL) != HEALCL_OK)
        return;
    struct device_executor *self = (struct device_executor *)executor;
    upload_kept(self);
    for (size_t i = 0; i < plan->step_count; i++)
        if (!compile_step(self, &plan->steps[i]) && plan->steps[i].kind == STEP_RELEASE)
            (void)!device_executor_release(self, &plan->steps[i], &error);
    executor->class->destroy(executor);
}

void device_executor_compile_ahead(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    struct healcl_device *device = self->launcher.device;
    const struct plan *plan = self->launcher.plan;
    device->programs->keeps_failures = true;
    upload_kept(self);
    device_compile_ahead(device, COMPILE_NOTE);
    for (size_t i = 0; i < plan->step_count && !compile_step(self, &plan->steps[i]); i++)
        continue;
    /* The other process builds the first step's program now, so this process begins with
     * another. */
    device_compile_ahead(device, COMPILE_ANOTHER);
    for (size_t i = plan->step_count; i-- > 0 && device->programs->ahead.what == COMPILE_ANOTHER;)
        (void)compile_step(self, &plan->steps[i]);
    device_compile_ahead(device, COMPILE_ALL);
    for (size_t i = plan->step_count; i-- > 0;)
        (void)compile_step(self, &plan->steps[i]);
}
