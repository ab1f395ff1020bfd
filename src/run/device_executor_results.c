/* Results: they wait on the device until the queue is drained, and are handed out then. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "kernels/variant.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"
#include "run/host_step.h"

/* ---------------------------------------------------------------- results */

enum healcl_status device_executor_call_sink(struct device_executor *self, const struct step *step,
                                             const void *data, struct healcl_error *error)
{
    return sink_take(self->sink, self->base.trace, step, data, &self->result->sink_nanoseconds,
                     error);
}

/* A result on its way to the sink. */
struct delivery {
    struct device_executor *self;
    const struct step *step;
    uint64_t bytes;
    bool in_pieces; /* the sink takes them */
    char *memory;   /* where they are put together, or NULL */
};

static enum healcl_status deliver_piece(void *context, uint64_t offset, uint64_t bytes,
                                        const void *memory, struct healcl_error *error)
{
    struct delivery *delivery = context;
    struct device_executor *self = delivery->self;
    if (bytes == delivery->bytes)
        return device_executor_call_sink(self, delivery->step, memory, error);
    if (delivery->in_pieces) {
        int64_t size = (int64_t)dtype_size(delivery->step->in[0]->storage->dtype);
        return sink_take_piece(self->sink, self->base.trace, delivery->step, (int64_t)offset / size,
                               (int64_t)bytes / size, memory, &self->result->sink_nanoseconds,
                               error);
    }
    if (offset == 0)
        delivery->memory = malloc(delivery->bytes);
    if (!delivery->memory)
        NO_MEMORY(error);
    memcpy(delivery->memory + offset, memory, bytes);
    return HEALCL_OK;
}

/* Hands bytes [offset, offset + bytes) of a buffer to the sink as the result of a step. */
static enum healcl_status deliver(struct device_executor *self, const struct step *step,
                                  const struct buffer *buffer, uint64_t offset, uint64_t bytes,
                                  struct healcl_error *error)
{
    if (!buffer->memory) /* nobody wants the data */
        return device_executor_call_sink(self, step, NULL, error);
    if (bytes == 0)
        return device_executor_call_sink(self, step, "", error);
    struct delivery delivery = {.self = self,
                                .step = step,
                                .bytes = bytes,
                                .in_pieces = sink_takes_pieces(self->sink, step)};
    enum healcl_status status =
        device_download(self->launcher.device, buffer, offset, bytes,
                        &(struct device_taker){deliver_piece, &delivery}, error);
    if (status == HEALCL_OK && delivery.memory)
        status = device_executor_call_sink(self, step, delivery.memory, error);
    free(delivery.memory);
    if (step->payload)
        payload_forget(step->payload, self->launcher.plan->source);
    return status;
}

struct device_storage *device_executor_storage_of(struct device_executor *self,
                                                  const struct tensor *tensor)
{
    return &self->launcher.storages[tensor->storage->id];
}

void device_executor_forget_downloads(struct device_executor *self)
{
    for (size_t i = 0; i < self->download_count; i++) {
        struct download *download = &self->downloads[i];
        if (download->is_shared)
            device_executor_storage_of(self, download->step->in[0])->result = 0;
        else
            device_buffer_release(self->launcher.device, &download->buffer);
    }
    self->download_count = 0;
    self->download_bytes = 0;
}

/* Results that wait in one slab, and are mapped or read together. */
struct group {
    struct device_executor *self;
    struct buffer slab;
    uint64_t first, end; /* bytes of it */
    bool has_status;     /* the status lies in it too, and is to be looked at first */
    uint64_t status_place;
    size_t from, count;      /* of the downloads */
    const struct step *step; /* in hand */
};

/* Extends a group by bytes of a buffer, if that lies in the same slab. */
static bool group_takes(struct group *group, const struct buffer *buffer, uint64_t bytes,
                        uint64_t *offset)
{
    if (!buffer->slab || (group->end > 0 && buffer->slab != group->slab.memory))
        return false;
    *offset = buffer->slab_offset;
    uint64_t first = group->end > 0 && group->first < *offset ? group->first : *offset;
    uint64_t end = group->end > *offset + bytes ? group->end : *offset + bytes;
    if (end - first > device_piece_bytes(group->self->launcher.device))
        return false;
    group->slab = device_buffer_slab(buffer);
    group->first = first;
    group->end = end;
    return true;
}

/* Those from one on that are taken together, perhaps none. */
static void find_group(struct group *group)
{
    struct device_executor *self = group->self;
    uint64_t offset;
    for (size_t i = group->from; i < self->download_count; i++, group->count++) {
        struct download *download = &self->downloads[i];
        if (!download->buffer.memory || packed_bytes(download->step->in[0]) == 0)
            continue; /* no data are wanted */
        if (!group_takes(group, &download->buffer,
                         download->offset + packed_bytes(download->step->in[0]), &offset))
            return;
        download->place = offset + download->offset;
    }
}

static enum healcl_status deliver_group(void *context, uint64_t offset, uint64_t bytes,
                                        const void *memory, struct healcl_error *error)
{
    struct group *group = context;
    struct device_executor *self = group->self;
    const char *slab = memory;
    (void)offset, (void)bytes; /* all at once */
    if (group->has_status && slab) {
        struct status found;
        memcpy(&found, slab + (group->status_place - group->first), sizeof found);
        TRY(device_executor_take_status(self, &found, error));
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct download *download = &self->downloads[group->from + i];
        group->step = download->step;
        const void *data = !download->buffer.memory ? NULL
                           : packed_bytes(group->step->in[0]) == 0
                               ? ""
                               : slab + (download->place - group->first);
        size_t span = trace_begin_step(self->base.trace, group->step);
        enum healcl_status status = device_executor_call_sink(self, group->step, data, error);
        trace_end(self->base.trace, span);
        if (status != HEALCL_OK)
            return status;
        if (data && group->step->payload)
            payload_forget(group->step->payload, self->launcher.plan->source);
    }
    group->step = NULL;
    return HEALCL_OK;
}
/* Waits for everything enqueued so far, and hands out the results of a group, whose status, where
 * it has one, is looked at before. */
static enum healcl_status take_group(struct group *group, struct healcl_error *error)
{
    struct device_executor *self = group->self;
    enum healcl_status status =
        group->first == group->end /* there are no data to wait for */
            ? deliver_group(group, 0, 0, NULL, error)
            : device_download(self->launcher.device, &group->slab, group->first,
                              group->end - group->first,
                              &(struct device_taker){deliver_group, group}, error);
    if (status != HEALCL_OK && group->step)
        error_prefix_step(error, group->step, NO_INPUT);
    return status == HEALCL_OK && group->has_status ? device_executor_clear_status(self, error)
                                                    : status;
}

static enum healcl_status take_alone(struct device_executor *self, const struct download *download,
                                     struct healcl_error *error)
{
    size_t span = trace_begin_step(self->base.trace, download->step);
    enum healcl_status status = deliver(self, download->step, &download->buffer, download->offset,
                                        packed_bytes(download->step->in[0]), error);
    trace_end(self->base.trace, span);
    if (status != HEALCL_OK)
        error_prefix_step(error, download->step, NO_INPUT);
    return status;
}

/* Begins with the status, unless nothing that could have changed it, and that nobody has waited
 * for, is enqueued. */
static enum healcl_status take_all(struct device_executor *self, struct healcl_error *error)
{
    struct group group = {.self = self};
    if (!self->status_is_clear || self->launcher.device->upload) {
        group.has_status =
            group_takes(&group, &self->launcher.status, sizeof(struct status), &group.status_place);
        if (!group.has_status)
            TRY(device_executor_read_status(self, error));
    }
    for (size_t next = 0; group.has_status || next < self->download_count;) {
        group.from = next;
        find_group(&group);
        bool alone = group.count == 0 && !group.has_status;
        TRY(alone ? take_alone(self, &self->downloads[next], error) : take_group(&group, error));
        next += alone ? 1 : group.count;
        group = (struct group){.self = self};
    }
    return HEALCL_OK;
}

enum healcl_status device_executor_drain(struct device_executor *self, struct healcl_error *error)
{
    trace_for_operation(self->base.trace, NULL, 0);
    enum healcl_status status = take_all(self, error);
    device_executor_forget_downloads(self);
    return status == HEALCL_OK && self->base.audit ? audit_judge(self->base.audit, error) : status;
}

/* Makes that copy on the host. */
static enum healcl_status pack_on_host(struct device_executor *self, struct download *download,
                                       const char *reason, struct healcl_error *error)
{
    download->buffer = (struct buffer){0};
    download->offset = 0;
    download->is_shared = false;
    TRY(device_executor_prepare_host(self, download->step, reason, error));
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(self->base.trace, "fallback", "copy");
    enum healcl_status status = host_step_pack(&self->launcher, self->reference,
                                               download->step->in[0], &download->buffer, error);
    trace_end(self->base.trace, span);
    device_executor_note_fallback_time(self, download->step, monotonic_nanoseconds() - start);
    return status;
}

/* Enqueues a copy of a result, which later steps of the segment cannot change. */
static enum healcl_status snapshot(struct device_executor *self, struct download *download,
                                   struct healcl_error *error)
{
    const struct step *step = download->step;
    struct healcl_device *device = self->launcher.device;
    struct buffer copy;
    struct healcl_error own = {0};
    const char *lack = pack_lack(&self->launcher, step, step->in[0], packed_bytes(step->in[0]));
    if (lack)
        return pack_on_host(self, download, lack, error);
    TRY(device_buffer_acquire_part(device, packed_bytes(step->in[0]), &copy, error));
    download->buffer = copy;
    download->offset = 0;
    download->is_shared = false;
    if (copy.bytes == 0)
        return HEALCL_OK;
    device->programs->lack_met = false;
    enum healcl_status status =
        launch_pack(&self->launcher, step, step->in[0], &download->buffer, &own);
    if (status != HEALCL_OK && self->base.falls_back && device->programs->lack_met) {
        device_buffer_release(device, &download->buffer);
        status = pack_on_host(self, download, own.message, error);
    } else if (status != HEALCL_OK && error) {
        *error = own;
        return status;
    }
    healcl_error_clear(&own);
    return status;
}

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

/* Whether a result lies in its storage as it is to be handed out, and is most of it. */
static bool may_wait_in_storage(const struct step *step)
{
    const struct tensor *tensor = step->in[0];
    uint64_t bytes = packed_bytes(step->in[0]);
    return bytes > 0 && layout_is_contiguous(&tensor->layout) &&
           storage_bytes(tensor->storage) / 2 <= bytes;
}

/* Keeps a result, which later steps of the segment cannot change. */
static enum healcl_status device_executor_keep_result(struct device_executor *self,
                                                      const struct step *step,
                                                      struct healcl_error *error)
{
    if (!ARRAY_GROW(self->downloads, self->download_count, &self->download_capacity))
        NO_MEMORY(error);
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
    struct device_storage *memory = device_executor_storage_of(self, step->in[0]);
    download->buffer = *buffer;
    download->offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    download->is_shared = true;
    download->next = memory->result;
    memory->result = self->download_count;
    return HEALCL_OK;
}

bool device_executor_is_awaited(const struct device_executor *self, const struct step *step)
{
    return step->kind == STEP_DOWNLOAD &&
           packed_bytes(step->in[0]) > device_executor_pending_most(self) &&
           layout_is_contiguous(&step->in[0]->layout) && sink_wants_data(self->sink, step);
}

enum healcl_status device_executor_download(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error)
{
    if (!device_executor_is_awaited(self, step))
        return device_executor_keep_result(self, step, error);
    const struct tensor *tensor = step->in[0];
    const struct buffer *buffer;
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    uint64_t offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    return deliver(self, step, buffer, offset, packed_bytes(step->in[0]), error);
}
