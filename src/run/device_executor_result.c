/* Results. They stay on the device until the queue is drained, and are handed out then. */
#include <stdlib.h>

#include "core/array.h"
#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/device_executor_parts.h"

/* Copies the result to a new buffer on the device. */
static enum healcl_status pack_on_host(struct device_executor *self, struct download *download,
                                       const char *reason, struct healcl_error *error)
{
    const struct tensor *tensor = download->step->in[0];
    const size_t bytes = (size_t)packed_bytes(tensor);
    TRY(device_executor_prepare_host(self, download->step, reason, error));
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(self->base.trace, "fallback", "copy");
    void *memory = malloc(bytes);
    enum healcl_status status = memory ? device_executor_read_tensor(self, tensor, error)
                                       : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = reference_read(self->reference, tensor, memory, error);
    if (status == HEALCL_OK)
        status = device_upload_memory(self->launcher.device, NULL, bytes, memory, &download->buffer,
                                      error);
    reference_forget(self->reference, tensor->storage);
    free(memory);
    trace_end(self->base.trace, span);
    device_executor_note_host_time(self, download->step, monotonic_nanoseconds() - start);
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
    enum healcl_status status =
        launch_pack(&self->launcher, step, step->in[0], &download->buffer, &own);
    if (status != HEALCL_OK && self->base.falls_back && device_executor_is_lacking(&own)) {
        device_buffer_release(device, &download->buffer);
        status = pack_on_host(self, download, own.message, error);
    } else if (status != HEALCL_OK) {
        error_move(error, &own);
    }
    healcl_error_clear(&own);
    return status;
}

/* Copies the results that wait in a storage, before the storage is written. */
enum healcl_status device_executor_move_results(struct device_executor *self,
                                                const struct storage *storage,
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

enum healcl_status device_executor_download(struct device_executor *self, const struct step *step,
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
