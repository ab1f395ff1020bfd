/* Uploads of payloads, of the caller's data, and of zeros. */
#include <stdlib.h>
#include <string.h>

#include "run/device_executor_parts.h"

/* The context that decodes a payload's pieces. */
struct decoding {
    struct device_executor *self;
    const struct payload *payload;
    enum dtype dtype;
    char *copy; /* for all bytes, or NULL */
};

/* A filler for device_upload: decodes elements of a payload into memory of the device. Keeps a copy
 * if the host needs the elements later, to compute tables. */
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
    decoding->self->base.times.decode_nanoseconds += monotonic_nanoseconds() - start;
    if (decoding->copy)
        memcpy(decoding->copy + offset, memory, bytes);
    return status;
}

/* Decodes a payload into a buffer of a storage. copy: memory for a second copy of the elements, or
 * NULL. */
static enum healcl_status upload_payload(struct device_executor *self,
                                         const struct storage *storage,
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

/* Uploads an input: the caller's data if it is bound, otherwise the file's payload. A session skips
 * it if it has kept the earlier upload. If tables are derived from it, the host keeps a copy. */
enum healcl_status device_executor_upload(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error)
{
    const struct storage *storage = step->out->storage;
    if (executor_has_kept(&self->base, storage))
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
              : upload_payload(self, storage, step->payload, copy, error);
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

/* ---------------------------------------------------------------- zeros */

/* A filler that writes zeros. */
static enum healcl_status clear_piece(void *context, uint64_t offset, uint64_t bytes, void *memory,
                                      struct healcl_error *error)
{
    (void)context, (void)offset, (void)error;
    memset(memory, 0, (size_t)bytes);
    return HEALCL_OK;
}

/* Whether a step fills all of a small storage with zeros, as most accumulators begin. Such an
 * upload is copied by the host and takes no command. */
bool device_executor_clears(const struct healcl_device *device, const struct step *step)
{
    const struct storage *storage = step->out->storage;
    return step->kind == STEP_FILL && step->value[0] == 0 &&
           layout_elements(&step->out->layout) == storage->elements &&
           device_copies_upload(device, storage_bytes(storage));
}

/* Fills a storage without memory with zeros by an upload. */
enum healcl_status device_executor_clear(struct device_executor *self,
                                         const struct storage *storage, struct healcl_error *error)
{
    TRY(device_upload(self->launcher.device, NULL, storage_bytes(storage),
                      &(struct device_filler){clear_piece, NULL},
                      launcher_memory(&self->launcher, storage), error));
    launcher_storage_written(&self->launcher, storage);
    return HEALCL_OK;
}
