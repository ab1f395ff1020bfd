/* Results. They stay on the device until the queue is drained, and are handed out then. */
#include <stdlib.h>

#include "core/array.h"
#include "kernels/variant.h"
#include "run/device_executor_parts.h"

/* Runs a step that copies a result in C order: on the device, or on the host if the device lacks a
 * kernel or memory for it. download: the step of the plan that the copy is made for. */
static enum healcl_status pack_result(struct device_executor *self, const struct step *download,
                                      const struct step *copy, struct healcl_error *error)
{
    const char *obstacle = pack_obstacle(&self->launcher, copy);
    if (obstacle)
        return device_executor_run_on_host(self, copy, obstacle, error);
    struct healcl_error launch_error = {0};
    enum healcl_status status = launch_pack(&self->launcher, download, copy, &launch_error);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    if (self->base.falls_back && device_executor_is_lacking(&launch_error))
        status = device_executor_run_on_host(self, copy, launch_error.message, error);
    else
        error_move(error, &launch_error);
    healcl_error_clear(&launch_error);
    return status;
}

/* Copies a result, in C order, to its own buffer, which becomes that of the download. Later steps
 * of the segment then cannot change the result. The copy is a step that writes a storage behind the
 * plan's. */
static enum healcl_status snapshot(struct device_executor *self, struct download *download,
                                   struct healcl_error *error)
{
    struct launcher *launcher = &self->launcher;
    const struct tensor *tensor = download->step->in[0];
    struct storage packed = {.id = (uint32_t)launcher->plan->storage_count,
                             .dtype = tensor->storage->dtype,
                             .elements = layout_elements(&tensor->layout)};
    const struct tensor out = {.storage = &packed, .layout = layout_packed(&tensor->layout)};
    struct step copy = *download->step;
    copy.kind = STEP_COPY;
    copy.out = &out;
    const enum healcl_status status = pack_result(self, download->step, &copy, error);
    download->offset = 0;
    download->is_in_storage = false;
    download->buffer = *launcher_memory(launcher, &packed);
    *launcher_memory(launcher, &packed) = (struct buffer){0}; /* the download's from now on */
    return status;
}

/* Copies the results that wait in a storage, which is about to be written. They form a list:
 * waiting_result is the number of the last one plus 1, and 0 ends it. */
enum healcl_status device_executor_move_results(struct device_executor *self,
                                                const struct storage *storage,
                                                struct healcl_error *error)
{
    struct device_storage *memory = &self->launcher.storages[storage->id];
    while (memory->waiting_result > 0) {
        struct download *download = &self->downloads[memory->waiting_result - 1];
        memory->waiting_result = download->next_in_storage;
        (void)trace_for_step(self->base.trace, download->step);
        TRY(snapshot(self, download, error));
    }
    return HEALCL_OK;
}

/* Releases a storage. If results wait in it, the last one takes over its buffer, and releases it
 * once it is handed out. */
void device_executor_release_storage(struct device_executor *self, const struct storage *storage)
{
    struct device_storage *memory = &self->launcher.storages[storage->id];
    if (memory->waiting_result > 0) {
        self->downloads[memory->waiting_result - 1].is_in_storage = false;
        memory->waiting_result = 0;
        memory->buffer = (struct buffer){0};
    }
    launcher_storage_release(&self->launcher, storage);
}

/* Whether a result can be handed out from its storage without a copy: its elements are contiguous
 * there. They must be at least half of the storage, whose memory they keep from being reused. */
static bool may_wait_in_storage(const struct step *step)
{
    const struct tensor *tensor = step->in[0];
    uint64_t bytes = packed_bytes(step->in[0]);
    return bytes > 0 && layout_is_contiguous(&tensor->layout) &&
           storage_bytes(tensor->storage) / 2 <= bytes;
}

/* Keeps a result until the queue is drained: in its storage if it can wait there, else as a copy.
 * The list of results that wait in one storage goes through next_in_storage. */
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
    download->is_in_storage = true;
    download->next_in_storage = memory->waiting_result;
    memory->waiting_result = self->download_count;
    return HEALCL_OK;
}

/* Runs a download step. The result waits on the device, since nothing in a segment waits for the
 * device. A result that is too large for that is handed out at once. */
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
