#include "run/device_executor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "kernels/derive.h"
#include "kernels/variant.h"
#include "run/audit.h"
#include "run/host_step.h"
#include "run/spill.h"
#include "transcript/payload.h"

/* A result that waits until the queue is drained: in its storage, until that is written again, else
 * in a buffer of its own. */
struct download {
    const struct step *step;
    struct buffer buffer; /* without chunks where nobody wants the data */
    uint64_t offset;      /* of the result in it, in bytes */
    bool is_shared;       /* another one releases the buffer: the storage, or a result of it */
    uint64_t place;       /* of the result in its slab, where it lies in one */
    size_t next; /* another result that waits in the same storage, as device_storage.result */
};

struct device_executor {
    struct executor base; /* first: executor functions cast back */
    struct launcher launcher;
    bool has_refused;     /* a check of what only data reveal has failed */
    bool status_is_clear; /* the status buffer is, and nothing was launched since */
    struct download *downloads;
    size_t download_count, download_capacity;
    uint64_t download_bytes;
    struct segment_result *result;  /* of the segment in hand */
    struct segment_result of_calls; /* in the place of a segment's, for operations by call */
    const struct result_sink *sink;
    struct reference
        *reference;      /* of steps that the device cannot run; NULL before the first one */
    struct spill *spill; /* where memory is limited, or NULL */
};

struct launcher *device_executor_launcher(struct executor *executor)
{
    return &((struct device_executor *)executor)->launcher;
}

bool device_executor_has_refused(const struct executor *executor)
{
    const struct device_executor *self = (const struct device_executor *)executor;
    return self->has_refused || self->launcher.device->manifest_is_wrong;
}

static uint64_t pending_most(const struct device_executor *self)
{
    return pending_results_most(self->spill ? self->spill->limit
                                            : self->launcher.plan->memory_limit);
}

/* ---------------------------------------------------------------- uploads */

/* What a payload's pieces are decoded with. */
struct decoding {
    struct device_executor *self;
    const struct payload *payload;
    struct payload_cursor cursor;
    enum dtype dtype;
    char *copy; /* of all bytes, or NULL */
};

static enum healcl_status decode_piece(void *context, uint64_t offset, uint64_t bytes, void *memory,
                                       struct healcl_error *error)
{
    struct decoding *decoding = context;
    size_t span = trace_begin(decoding->self->base.trace, "decode", "decode");
    enum healcl_status status =
        decoding->payload->fortran_order /* comes whole */
            ? payload_read(decoding->payload, decoding->dtype, memory, error)
            : payload_cursor_read(&decoding->cursor, decoding->dtype,
                                  (int64_t)(bytes / dtype_size(decoding->dtype)), memory, error);
    trace_end(decoding->self->base.trace, span);
    if (decoding->copy)
        memcpy(decoding->copy + offset, memory, bytes);
    return status;
}

/* In Fortran order neighbours in the file lie anywhere in the tensor: more than a piece is decoded
 * as a whole. */
MUST_CHECK static enum healcl_status upload_whole(struct decoding *decoding,
                                                  const struct buffer_place *place, uint64_t bytes,
                                                  struct buffer *buffer, struct healcl_error *error)
{
    void *whole = malloc(bytes);
    if (!whole)
        NO_MEMORY(error);
    enum healcl_status status = decode_piece(decoding, 0, bytes, whole, error);
    if (status == HEALCL_OK)
        status = device_upload_memory_at(decoding->self->launcher.device, place, bytes, whole,
                                         buffer, error);
    free(whole);
    return status;
}

/* copy: where a copy of the elements goes, or NULL. */
MUST_CHECK static enum healcl_status upload(struct device_executor *self,
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
    payload_cursor_init(&decoding.cursor, payload);
    if (payload->fortran_order && storage_bytes(storage) > device_piece_bytes(device))
        return upload_whole(&decoding, place, storage_bytes(storage), buffer, error);
    return device_upload_at(device, place, storage_bytes(storage),
                            &(struct device_filler){decode_piece, &decoding}, buffer, error);
}

/* ---------------------------------------------------------------- the status buffer */

MUST_CHECK static enum healcl_status clear_status(struct device_executor *self,
                                                  struct healcl_error *error)
{
    const struct status clear = {.index = UINT32_MAX};
    self->launcher.check_count = 0;
    if (self->status_is_clear)
        return HEALCL_OK;
    TRY(device_write(self->launcher.device, &self->launcher.status, 0, sizeof clear, &clear,
                     error));
    self->status_is_clear = true;
    return HEALCL_OK;
}

/* Turns what a check has found into a refusal. */
MUST_CHECK static enum healcl_status refuse_check(struct device_executor *self,
                                                  const struct status *found,
                                                  struct healcl_error *error)
{
    const struct check *check = &self->launcher.checks[found->key - 1];
    const char *name = step_input_name(check->step, check->input);
    char index[SHAPE_TEXT_SIZE], value[24] = "a value";
    if (found->index == UINT32_MAX) { /* report has cut it off, and nobody knows the value */
        strcpy(index, "an index beyond 2^32-2");
    } else {
        spill_index_text(self->spill, check->input, &check->elements, found->index, index);
        snprintf(value, sizeof value, "%" PRId64, found->value);
    }
    const char *at = check->elements.rank > 0 ? " at " : "";
    if (check->elements.rank == 0)
        index[0] = 0;
    char what[80] = "below 1";
    if (check->kind == CHECK_INDEX)
        snprintf(what, sizeof what, "outside of axis %" PRIu32 " of size %" PRId64, check->axis,
                 check->size);
    else if (check->kind == CHECK_PERMUTATION)
        snprintf(what, sizeof what, "outside of [0, %" PRId64 ")", check->size);
    if (check->kind == CHECK_COPRIME)
        (void)ERROR(error, HEALCL_REFUSED,
                    "argument '%s': the moduli at [%" PRId64 "] and [%" PRId64 "] are not coprime",
                    name, found->index / check->size, found->index % check->size);
    else if (check->kind == CHECK_PERMUTATION && found->value >= 0 && found->value < check->size)
        (void)ERROR(error, HEALCL_REFUSED, "argument '%s': %s%s%s repeats an earlier entry", name,
                    value, at, index);
    else
        (void)ERROR(error, HEALCL_REFUSED, "argument '%s': %s%s%s is %s", name, value, at, index,
                    what);
    error_because(error, HEALCL_CAUSE_DATA);
    error_prefix_step(error, check->step, check->input);
    self->has_refused = true;
    return HEALCL_REFUSED;
}

/* Notes what kernels have noted. */
MUST_CHECK static enum healcl_status take_status(struct device_executor *self,
                                                 const struct status *found,
                                                 struct healcl_error *error)
{
    uint64_t dropped = (uint64_t)found->dropped_high << 32 | found->dropped_low;
    self->base.dropped_digits += dropped;
    if (found->key > 0 && found->key <= self->launcher.check_count)
        return refuse_check(self, found, error);
    self->status_is_clear = found->key == 0 && dropped == 0;
    return HEALCL_OK;
}

/* Waits for the queue and reads what kernels have noted. */
MUST_CHECK static enum healcl_status read_status(struct device_executor *self,
                                                 struct healcl_error *error)
{
    struct status found;
    TRY(device_read(self->launcher.device, &self->launcher.status, 0, sizeof found, &found, error));
    TRY(take_status(self, &found, error));
    return clear_status(self, error);
}

/* ---------------------------------------------------------------- steps on the host */

/* Counts a step, on the host or by other kernels than a manifest's, for each of its operations
 * once. */
MUST_CHECK static enum healcl_status note_fallback(struct device_executor *self,
                                                   const struct step *step, const char *reason,
                                                   struct healcl_error *error)
{
    const struct origins *origins = step->origins;
    if (!self->base.fallbacks)
        self->base.fallbacks =
            calloc(operation_count(self->launcher.plan->table) + 1, sizeof *self->base.fallbacks);
    if (!self->base.fallbacks)
        NO_MEMORY(error);
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
        if (!fallback->reason)
            NO_MEMORY(error);
        device_log(self->launcher.device, "%s falls back: %s", operation->name, reason);
    }
    return HEALCL_OK;
}

/* Of a step on the host; it counts for its operations in proportion. */
static void note_fallback_time(struct device_executor *self, const struct step *step,
                               uint64_t nanoseconds)
{
    const struct origins *origins = step->origins;
    size_t count = operation_count(self->launcher.plan->table);
    uint64_t *shares = calloc(count, sizeof *shares);
    if (shares) /* else the time is told with the device's */
        origins_share(origins, nanoseconds, shares);
    for (size_t i = 0; shares && i < count; i++)
        self->base.fallbacks[i].nanoseconds += shares[i];
    free(shares);
    device_note_host_work(self->launcher.device);
    if (self->result->operation_nanoseconds)
        origins_share(origins, nanoseconds, self->result->operation_nanoseconds);
}

/* What was noted until now comes first, and is waited for. */
MUST_CHECK static enum healcl_status prepare_host(struct device_executor *self,
                                                  const struct step *step, const char *reason,
                                                  struct healcl_error *error)
{
    if (!self->base.falls_back)
        FAIL(error, HEALCL_DEVICE, "the device lacks kernels for it: %s", reason);
    if (!self->reference)
        TRY(reference_create(self->launcher.plan, &self->reference, error));
    TRY(read_status(self, error));
    self->base.host_steps++;
    return note_fallback(self, step, reason, error);
}

/* Runs a step on the host reference. */
MUST_CHECK static enum healcl_status run_on_host(struct device_executor *self,
                                                 const struct step *step, const char *reason,
                                                 struct healcl_error *error)
{
    TRY(prepare_host(self, step, reason, error));
    uint64_t start = monotonic_nanoseconds(), dropped = self->reference->dropped_digits;
    size_t span = trace_begin(self->base.trace, "fallback", step_traits[step->kind].name);
    enum healcl_status status = host_step_run(&self->launcher, self->reference, step, error);
    trace_end(self->base.trace, span);
    self->base.dropped_digits += self->reference->dropped_digits - dropped;
    note_fallback_time(self, step, monotonic_nanoseconds() - start);
    self->has_refused |= status == HEALCL_REFUSED;
    return status;
}

/* ---------------------------------------------------------------- results */

MUST_CHECK static enum healcl_status call_sink(struct device_executor *self,
                                               const struct step *step, const void *data,
                                               struct healcl_error *error)
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
        return call_sink(self, delivery->step, memory, error);
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
MUST_CHECK static enum healcl_status deliver(struct device_executor *self, const struct step *step,
                                             const struct buffer *buffer, uint64_t offset,
                                             uint64_t bytes, struct healcl_error *error)
{
    if (buffer->chunk_count == 0) /* nobody wants the data */
        return call_sink(self, step, NULL, error);
    if (bytes == 0)
        return call_sink(self, step, "", error);
    struct delivery delivery = {.self = self,
                                .step = step,
                                .bytes = bytes,
                                .in_pieces = self->sink->takes_pieces &&
                                             self->sink->takes_pieces(self->sink->context, step)};
    enum healcl_status status =
        device_download(self->launcher.device, buffer, offset, bytes,
                        &(struct device_taker){deliver_piece, &delivery}, error);
    if (status == HEALCL_OK && delivery.memory)
        status = call_sink(self, step, delivery.memory, error);
    free(delivery.memory);
    if (step->payload)
        payload_forget(step->payload, self->launcher.plan->source);
    return status;
}

static uint64_t result_bytes(const struct step *step)
{
    return (uint64_t)layout_elements(&step->in[0]->layout) *
           dtype_size(step->in[0]->storage->dtype);
}

static struct device_storage *storage_of(struct device_executor *self, const struct tensor *tensor)
{
    return &self->launcher.storages[tensor->storage->id];
}

static void forget_downloads(struct device_executor *self)
{
    for (size_t i = 0; i < self->download_count; i++) {
        struct download *download = &self->downloads[i];
        if (download->is_shared)
            storage_of(self, download->step->in[0])->result = 0;
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
    if (!buffer->slab || (group->end > 0 && buffer->slab != group->slab.chunks[0]))
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
        if (download->buffer.chunk_count == 0 || result_bytes(download->step) == 0)
            continue; /* no data are wanted */
        if (!group_takes(group, &download->buffer, download->offset + result_bytes(download->step),
                         &offset))
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
        TRY(take_status(self, &found, error));
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct download *download = &self->downloads[group->from + i];
        group->step = download->step;
        const void *data = download->buffer.chunk_count == 0 ? NULL
                           : result_bytes(group->step) == 0
                               ? ""
                               : slab + (download->place - group->first);
        size_t span = trace_begin_step(self->base.trace, group->step);
        enum healcl_status status = call_sink(self, group->step, data, error);
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
MUST_CHECK static enum healcl_status take_group(struct group *group, struct healcl_error *error)
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
    return status == HEALCL_OK && group->has_status ? clear_status(self, error) : status;
}

MUST_CHECK static enum healcl_status take_alone(struct device_executor *self,
                                                const struct download *download,
                                                struct healcl_error *error)
{
    size_t span = trace_begin_step(self->base.trace, download->step);
    enum healcl_status status = deliver(self, download->step, &download->buffer, download->offset,
                                        result_bytes(download->step), error);
    trace_end(self->base.trace, span);
    if (status != HEALCL_OK)
        error_prefix_step(error, download->step, NO_INPUT);
    return status;
}

/* Begins with the status, unless nothing that could have changed it, and that nobody has waited
 * for, is enqueued. */
MUST_CHECK static enum healcl_status take_all(struct device_executor *self,
                                              struct healcl_error *error)
{
    struct group group = {.self = self};
    if (!self->status_is_clear || self->launcher.device->upload) {
        group.has_status =
            group_takes(&group, &self->launcher.status, sizeof(struct status), &group.status_place);
        if (!group.has_status)
            TRY(read_status(self, error));
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

/* Waits for everything enqueued so far, then hands out the results that were pending. */
MUST_CHECK static enum healcl_status drain(struct device_executor *self, struct healcl_error *error)
{
    trace_for_operation(self->base.trace, NULL, 0);
    enum healcl_status status = take_all(self, error);
    forget_downloads(self);
    return status == HEALCL_OK && self->base.audit ? audit_judge(self->base.audit, error) : status;
}

/* Makes that copy on the host. */
MUST_CHECK static enum healcl_status pack_on_host(struct device_executor *self,
                                                  struct download *download, const char *reason,
                                                  struct healcl_error *error)
{
    download->buffer = (struct buffer){0};
    download->offset = 0;
    download->is_shared = false;
    TRY(prepare_host(self, download->step, reason, error));
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(self->base.trace, "fallback", "copy");
    enum healcl_status status = host_step_pack(&self->launcher, self->reference,
                                               download->step->in[0], &download->buffer, error);
    trace_end(self->base.trace, span);
    note_fallback_time(self, download->step, monotonic_nanoseconds() - start);
    return status;
}

/* Enqueues a copy of a result, which later steps of the segment cannot change. */
MUST_CHECK static enum healcl_status snapshot(struct device_executor *self,
                                              struct download *download, struct healcl_error *error)
{
    const struct step *step = download->step;
    struct healcl_device *device = self->launcher.device;
    struct buffer copy;
    struct healcl_error own = {0};
    const char *lack = pack_lack(&self->launcher, step, step->in[0], result_bytes(step));
    if (lack)
        return pack_on_host(self, download, lack, error);
    TRY(device_buffer_acquire_part(device, result_bytes(step), &copy, error));
    download->buffer = copy;
    download->offset = 0;
    download->is_shared = false;
    if (copy.bytes == 0)
        return HEALCL_OK;
    device->lack_met = false;
    enum healcl_status status =
        launch_pack(&self->launcher, step, step->in[0], &download->buffer, &own);
    if (status != HEALCL_OK && self->base.falls_back && device->lack_met) {
        device_buffer_release(device, &download->buffer);
        status = pack_on_host(self, download, own.message, error);
    } else if (status != HEALCL_OK && error) {
        *error = own;
        return status;
    }
    healcl_error_clear(&own);
    return status;
}

/* Before a storage is written: the results that wait in it get copies. */
MUST_CHECK static enum healcl_status move_results(struct device_executor *self,
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

/* Releases a storage; its memory stays with the results that wait in it. */
static void release_storage(struct device_executor *self, const struct storage *storage)
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
    uint64_t bytes = result_bytes(step);
    return bytes > 0 && layout_is_contiguous(&tensor->layout) &&
           storage_bytes(tensor->storage) / 2 <= bytes;
}

/* Keeps a result, which later steps of the segment cannot change. */
MUST_CHECK static enum healcl_status keep_result(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    struct download *downloads = array_with_room(self->downloads, self->download_count,
                                                 &self->download_capacity, sizeof *downloads);
    if (!downloads)
        NO_MEMORY(error);
    self->downloads = downloads;
    struct download *download = &self->downloads[self->download_count++];
    *download = (struct download){.step = step};
    if (!sink_wants_data(self->sink, step))
        return HEALCL_OK;
    self->download_bytes += result_bytes(step);
    if (!may_wait_in_storage(step))
        return snapshot(self, download, error);
    const struct tensor *tensor = step->in[0];
    const struct buffer *buffer;
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    struct device_storage *memory = storage_of(self, step->in[0]);
    download->buffer = *buffer;
    download->offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    download->is_shared = true;
    download->next = memory->result;
    memory->result = self->download_count;
    return HEALCL_OK;
}

/* Whether a result is handed out on the spot: it is too large to keep a second copy of. */
static bool is_awaited(const struct device_executor *self, const struct step *step)
{
    return step->kind == STEP_DOWNLOAD && result_bytes(step) > pending_most(self) &&
           layout_is_contiguous(&step->in[0]->layout) && sink_wants_data(self->sink, step);
}

/* The queue has been drained if the result is to be awaited. */
MUST_CHECK static enum healcl_status run_download(struct device_executor *self,
                                                  const struct step *step,
                                                  struct healcl_error *error)
{
    if (!is_awaited(self, step))
        return keep_result(self, step, error);
    const struct tensor *tensor = step->in[0];
    const struct buffer *buffer;
    TRY(launcher_buffer(&self->launcher, tensor->storage, &buffer, error));
    uint64_t offset = (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    return deliver(self, step, buffer, offset, result_bytes(step), error);
}

/* ---------------------------------------------------------------- segments */

enum healcl_status device_executor_upload(struct executor *executor, const struct step *step,
                                          struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    const struct storage *storage = step->out->storage;
    if (executor_keeps(&self->base, storage))
        return HEALCL_OK;
    release_storage(self, storage); /* a session has kept it until now */
    const void *bound = executor_bound(&self->base, storage);
    const uint64_t bytes = storage_bytes(storage);
    struct buffer_place place;
    char *copy = launcher_keeps_contents(&self->launcher, storage) ? malloc(bytes) : NULL;
    enum healcl_status status =
        bound ? device_upload_memory_at(self->launcher.device,
                                        launcher_place(&self->launcher, storage, &place), bytes,
                                        bound, launcher_memory(&self->launcher, storage), error)
              : upload(self, storage, step->payload, copy, error);
    if (status != HEALCL_OK) {
        free(copy);
        return status;
    }
    if (bound && copy)
        memcpy(copy, bound, bytes);
    executor_note_upload(&self->base, storage);
    launcher_storage_uploaded(&self->launcher, storage, copy);
    payload_forget(step->payload, self->launcher.plan->source);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status run_upload(struct device_executor *self,
                                                const struct step *step, struct healcl_error *error)
{
    return device_executor_upload(&self->base, step, error);
}

void device_executor_release(struct executor *executor, const struct storage *storage)
{
    release_storage((struct device_executor *)executor, storage);
}

MUST_CHECK static enum healcl_status run_release(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    (void)error;
    if (!executor_keeps(&self->base, step->in[0]->storage))
        release_storage(self, step->in[0]->storage);
    return HEALCL_OK;
}

static enum healcl_status clear_piece(void *context, uint64_t offset, uint64_t bytes, void *memory,
                                      struct healcl_error *error)
{
    (void)context, (void)offset, (void)error;
    memset(memory, 0, (size_t)bytes);
    return HEALCL_OK;
}

/* Whether a step fills the whole of what is new and small with zeros, as most accumulators begin.
 */
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
           self->launcher.storages[step->out->storage->id].buffer.chunk_count == 0;
}

/* That is an upload, which takes no command. */
MUST_CHECK static enum healcl_status clear_new(struct device_executor *self,
                                               const struct storage *storage,
                                               struct healcl_error *error)
{
    TRY(device_upload(self->launcher.device, storage_bytes(storage),
                      &(struct device_filler){clear_piece, NULL},
                      launcher_memory(&self->launcher, storage), error));
    launcher_storage_written(&self->launcher, storage);
    return HEALCL_OK;
}

/* Whether the host can still do a step, after a launch of it has failed for something that the
 * device lacks: what it reads is as it was. */
static bool can_fall_back(const struct device_executor *self, const struct step *step)
{
    bool reads_out = step_traits[step->kind].adds;
    for (int i = 0; i < STEP_INPUTS; i++)
        reads_out |= step->in[i] && step->in[i]->storage == step->out->storage;
    return self->launcher.device->lack_met && !(self->launcher.has_written && reads_out);
}

/* instead: why a built-in kernel runs a step that is a manifest's, or NULL. It counts as a
 * fallback, once: not where the host then runs it. */
MUST_CHECK static enum healcl_status launch_or_fall_back(struct device_executor *self,
                                                         const struct step *step,
                                                         const char *instead,
                                                         struct healcl_error *error);

/* Whether there are others where a kernel of a manifest cannot be built: built-in ones, or those of
 * a body. */
static bool has_others(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return step->kind == STEP_VENDOR
               ? step->side == STEP_OF_KERNEL
               : vendor_kernel_for(launcher->plan, step, launcher->device).name != NULL;
}

/* Of an operation of a manifest the steps of its body follow, unless another kernel is for it. */
MUST_CHECK static enum healcl_status take_others(struct device_executor *self,
                                                 const struct step *step, const char *reason,
                                                 struct healcl_error *error)
{
    struct healcl_device *device = self->launcher.device;
    TRY(vendor_note_failed(self->launcher.plan, step, device, error));
    if (step->kind != STEP_VENDOR)
        return launch_or_fall_back(self, step, reason, error);
    TRY(note_fallback(self, step, reason, error));
    return vendor_has_kernel(step, device) ? launch_or_fall_back(self, step, NULL, error)
                                           : HEALCL_OK;
}

/* What was derived from its inputs may not have come to its end. */
static void forget_derived(struct device_executor *self, const struct step *step)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i] && !step->in[i]->storage->scalars)
            derived_forget(&self->launcher, storage_of(self, step->in[i]));
    derived_forget_scalars(&self->launcher);
}

static enum healcl_status launch_or_fall_back(struct device_executor *self, const struct step *step,
                                              const char *instead, struct healcl_error *error)
{
    struct healcl_error own = {0};
    self->launcher.has_written = self->launcher.device->lack_met = false;
    enum healcl_status status = launch_step(&self->launcher, step, &own);
    if (status == HEALCL_OK)
        return instead ? note_fallback(self, step, instead, error) : HEALCL_OK;
    if (can_fall_back(self, step)) {
        self->launcher.refused_input = NO_INPUT;
        forget_derived(self, step);
        status = has_others(self, step) ? take_others(self, step, own.message, error)
                                        : run_on_host(self, step, own.message, error);
    } else if (error) {
        *error = own;
        return status;
    }
    healcl_error_clear(&own);
    return status;
}

#define NOT_BUILT "the manifest's kernel could not be built"

/* Whether a built-in kernel runs a step only since a manifest's could not be built. */
static bool is_instead(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return vendor_has_failed(launcher->plan, step, launcher->device) &&
           !vendor_kernel_for(launcher->plan, step, launcher->device).name;
}

MUST_CHECK static enum healcl_status launch(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error)
{
    if (!self->base.falls_back)
        return launch_step(&self->launcher, step, error);
    return launch_or_fall_back(self, step, is_instead(self, step) ? NOT_BUILT : NULL, error);
}

MUST_CHECK static enum healcl_status launch_audited(struct device_executor *self,
                                                    const struct step *step,
                                                    struct healcl_error *error)
{
    const uint64_t host_steps = self->base.host_steps;
    TRY(audit_before_step(self->base.audit, &self->launcher, error));
    TRY(launch(self, step, error));
    return audit_after_step(self->base.audit, &self->launcher, self->base.host_steps == host_steps,
                            error);
}

MUST_CHECK static enum healcl_status run_kernel(struct device_executor *self,
                                                const struct step *step, struct healcl_error *error)
{
    const char *lack = step_lack(step, self->launcher.device);
    if (!lack && clears_new(self, step))
        return clear_new(self, step->out->storage, error);
    TRY(move_results(self, step->out->storage, error));
    (void)trace_for_step(self->base.trace, step);
    if (lack)
        return run_on_host(self, step, lack, error);
    self->status_is_clear = false;
    if (self->base.audit && audit_takes(self->base.audit, step))
        return launch_audited(self, step, error);
    return launch(self, step, error);
}

static enum healcl_status (*const step_functions[STEP_KINDS])(struct device_executor *,
                                                              const struct step *,
                                                              struct healcl_error *) = {
#define STEP(kind, id, name, axes, visits, work, result, refuses, reference, device, ...) \
    [STEP_##kind] = run_##device,
#include "plan/steps.def"
#undef STEP
};

MUST_CHECK static enum healcl_status run_step(struct device_executor *self, const struct step *step,
                                              struct healcl_error *error)
{
    return step_functions[step->kind](self, step, error);
}

/* ---------------------------------------------------------------- compiling ahead */

/* The host works tables out from what it keeps of uploads: these take no kernel. */
static void upload_kept(struct device_executor *self)
{
    const struct plan *plan = self->launcher.plan;
    struct healcl_error error = {.status = HEALCL_OK};
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind == STEP_UPLOAD &&
            launcher_keeps_contents(&self->launcher, step->out->storage))
            (void)!device_executor_upload(&self->base, step, &error);
        healcl_error_clear(&error);
    }
}

/* Whether that was a step with a kernel. */
static bool compile_step(struct device_executor *self, const struct step *step)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (step_functions[step->kind] != run_kernel || clears_small(self, step) ||
        step_is_left_out(step, self->launcher.device) || step_lack(step, self->launcher.device))
        return false;
    (void)!launch_step(&self->launcher, step, &error);
    healcl_error_clear(&error);
    return true;
}

void device_executor_compile_ahead(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    struct healcl_device *device = self->launcher.device;
    const struct plan *plan = self->launcher.plan;
    device->keeps_failures = true;
    upload_kept(self);
    device_compile_ahead(device, COMPILE_NOTE);
    for (size_t i = 0; i < plan->step_count && !compile_step(self, &plan->steps[i]); i++)
        continue;
    /* The other process builds the first step's program right now: this one begins with another. */
    device_compile_ahead(device, COMPILE_ANOTHER);
    for (size_t i = plan->step_count; i-- > 0 && device->ahead.what == COMPILE_ANOTHER;)
        (void)compile_step(self, &plan->steps[i]);
    device_compile_ahead(device, COMPILE_ALL);
    for (size_t i = plan->step_count; i-- > 0;)
        (void)compile_step(self, &plan->steps[i]);
}

/* ---------------------------------------------------------------- less memory than wanted */

/* What a check finds is told with the slice in hand. Without one nothing is waited for. */
static enum healcl_status after_slice(struct executor *executor, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    return self->launcher.check_count > 0 ? read_status(self, error) : HEALCL_OK;
}

MUST_CHECK static enum healcl_status run_in_slices(struct device_executor *self,
                                                   const struct step *step,
                                                   const struct slices *slices,
                                                   struct healcl_error *error)
{
    self->status_is_clear = false;
    return spill_run_slices(self->spill, step, slices, after_slice, error);
}

/* Of what the host has. */
MUST_CHECK static enum healcl_status hand_out_held(struct device_executor *self,
                                                   const struct step *step,
                                                   struct healcl_error *error)
{
    char *packed = NULL;
    if (sink_wants_data(self->sink, step))
        TRY(spill_read(self->spill, step->in[0], &packed, error));
    if (!packed)
        return run_step(self, step, error);
    enum healcl_status status = call_sink(self, step, packed, error);
    free(packed);
    return status;
}

MUST_CHECK static enum healcl_status run_limited_step(struct device_executor *self, size_t number,
                                                      struct healcl_error *error)
{
    const struct step *step = &self->launcher.plan->steps[number];
    struct slices slices;
    TRY(spill_begin_step(self->spill, number, &slices, error));
    if (slices.most > 0)
        TRY(run_in_slices(self, step, &slices, error));
    else if (step->kind == STEP_DOWNLOAD)
        TRY(hand_out_held(self, step, error));
    else if (step->kind != STEP_UPLOAD && step->kind != STEP_RELEASE)
        TRY(run_step(self, step, error));
    return spill_end_step(self->spill, &slices, error);
}

/* Whether results that wait are handed out before a step. */
static bool drains_before(struct device_executor *self, size_t number)
{
    const struct step *step = &self->launcher.plan->steps[number];
    if (is_awaited(self, step) || self->download_bytes > pending_most(self))
        return true;
    return self->spill && self->download_count > 0 &&
           (spill_is_short(self->spill, number) ||
            (step->kind == STEP_DOWNLOAD &&
             !self->spill->memory.states[step->in[0]->storage->id].resident));
}

static void add_times(void *context, const struct launch_times *times)
{
    struct device_executor *self = context;
    if (self->result->operation_nanoseconds)
        origins_share(times->tag, times->running, self->result->operation_nanoseconds);
    self->result->without_command_nanoseconds += times->without_command;
    self->result->not_begun_nanoseconds += times->not_begun;
}

/* An error that the host has met may come after one of an earlier entry that nobody has heard of
 * yet: the device has noted it, or has failed. The first error wins. */
MUST_CHECK static enum healcl_status first_error(struct device_executor *self,
                                                 struct healcl_error *own,
                                                 struct healcl_error *error)
{
    enum healcl_status status = own->status;
    enum healcl_status earlier = status == HEALCL_REFUSED ? read_status(self, error) : HEALCL_OK;
    if (earlier == HEALCL_OK && error)
        *error = *own;
    else
        healcl_error_clear(own);
    return earlier == HEALCL_OK ? status : earlier;
}

/* A step of the other side of a vendor's operation. What its kernel's copies have taken before
 * that could not be built is given back; and where no kernel of it can be, each call counts. */
MUST_CHECK static enum healcl_status leave_out(struct device_executor *self,
                                               const struct step *step, struct healcl_error *error)
{
    const struct healcl_device *device = self->launcher.device;
    if (step->kind == STEP_RELEASE && step->side == STEP_OF_KERNEL)
        release_storage(self, step->in[0]->storage);
    if (step->kind == STEP_VENDOR && vendor_has_failed(self->launcher.plan, step, device))
        return note_fallback(self, step, NOT_BUILT, error);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status enqueue_steps(struct device_executor *self, size_t first,
                                                   size_t count, struct healcl_error *error)
{
    self->launcher.device->keeps_failures = self->base.falls_back;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &self->launcher.plan->steps[first + i];
        if (step_is_left_out(step, self->launcher.device)) {
            if (self->spill)
                TRY(memory_skip_step(&self->spill->memory, first + i, error));
            TRY(leave_out(self, step, error));
            continue;
        }
        if (step->kind != STEP_RELEASE)
            TRY(executor_check_cancelled(&self->base, error));
        if (drains_before(self, first + i))
            TRY(drain(self, error));
        bool had_refused = self->has_refused;
        struct healcl_error own = {0};
        self->launcher.refused_input = NO_INPUT;
        size_t span = trace_begin_step(self->base.trace, step);
        enum healcl_status status =
            self->spill ? run_limited_step(self, first + i, &own) : run_step(self, step, &own);
        trace_end(self->base.trace, span);
        if (status != HEALCL_OK) {
            if (self->has_refused != had_refused) { /* a check of a slice, which has been read */
                if (error)
                    *error = own;
                else
                    healcl_error_clear(&own);
                return status;
            }
            error_prefix_step(&own, step, self->launcher.refused_input);
            return first_error(self, &own, error);
        }
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status run_steps(struct device_executor *self,
                                               const struct segment *segment,
                                               struct healcl_error *error)
{
    TRY(enqueue_steps(self, segment->first_step, segment->step_count, error));
    return drain(self, error);
}

static bool is_kept(void *context, const struct storage *storage)
{
    const struct device_executor *self = context;
    return self->base.uploads && self->base.uploads[storage->id].is_kept;
}

/* Before the first segment, when it is known what a session keeps. Where memory is limited, it is
 * said step by step who has which. */
MUST_CHECK static enum healcl_status find_places(struct device_executor *self,
                                                 struct healcl_error *error)
{
    if (self->spill || self->launcher.places.of)
        return HEALCL_OK;
    return launcher_find_places(&self->launcher,
                                (struct places_rule){.stays = is_kept, .context = self}, error);
}

static enum healcl_status run_segment(struct executor *executor, const struct segment *segment,
                                      const struct result_sink *sink, struct segment_result *result,
                                      struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    self->sink = sink;
    self->result = result;
    result->sink_nanoseconds = 0;
    uint64_t start = monotonic_nanoseconds();
    device_turn_begin(self->launcher.device);
    enum healcl_status status = find_places(self, error);
    if (self->base.audit)
        audit_begin_segment(self->base.audit, segment);
    if (status == HEALCL_OK)
        status = run_steps(self, segment, error);
    if (self->base.audit)
        audit_drop(self->base.audit, self->launcher.device);
    result->nanoseconds = monotonic_nanoseconds() - start - result->sink_nanoseconds;
    if (self->launcher.device
            ->profiling) { /* after an error too: else the next run would be given these times */
        enum healcl_status taken = device_take_times(self->launcher.device, add_times, self,
                                                     status == HEALCL_OK ? error : NULL);
        if (status == HEALCL_OK)
            status = taken;
    }
    forget_downloads(self);
    device_turn_end(self->launcher.device);
    return status;
}

/* ---------------------------------------------------------------- operations by call */

static void take_sink(struct device_executor *self, const struct result_sink *sink)
{
    self->sink = sink;
    self->result = &self->of_calls;
}

/* What was checked counts as right from then on, but for what has failed. */
static enum healcl_status forget_unchecked(struct device_executor *self, enum healcl_status status)
{
    for (size_t i = 0; status != HEALCL_OK && i < self->launcher.plan->storage_count; i++)
        derived_forget(&self->launcher, &self->launcher.storages[i]);
    return status;
}

static enum healcl_status enqueue(struct executor *executor, size_t first, size_t count,
                                  const struct result_sink *sink, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    take_sink(self, sink);
    enum healcl_status status = enqueue_steps(self, first, count, error);
    if (status == HEALCL_REFUSED) /* what kernels have noted is told once */
        (void)!clear_status(self, NULL);
    return forget_unchecked(self, status);
}

static enum healcl_status wait(struct executor *executor, const struct result_sink *sink,
                               struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    take_sink(self, sink);
    return forget_unchecked(self, drain(self, error));
}

static enum healcl_status add_constants(struct executor *executor, size_t first,
                                        struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    struct launcher *launcher = &self->launcher;
    const struct plan *plan = launcher->plan;
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, plan->constants.storage, &buffer, error));
    derived_forget_scalars(launcher);
    launcher_storage_written(launcher, plan->constants.storage);
    return device_write(launcher->device, buffer, first * sizeof *plan->constants.values,
                        (plan->constants.count - first) * sizeof *plan->constants.values,
                        plan->constants.values + first, error);
}

/* ---------------------------------------------------------------- life */

MUST_CHECK static enum healcl_status begin(struct device_executor *self, struct healcl_error *error)
{
    const struct plan *plan = self->launcher.plan;
    self->base.dropped_digits = 0;
    TRY(clear_status(self, error));
    if (plan->constants.count == 0)
        return HEALCL_OK;
    const struct storage *storage = plan->constants.storage;
    return device_upload_memory(self->launcher.device, storage_bytes(storage),
                                plan->constants.values, launcher_memory(&self->launcher, storage),
                                error);
}

static enum healcl_status reset(struct executor *executor, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    launcher_forget_storages(&self->launcher);
    if (self->spill)
        spill_reset(self->spill);
    return begin(self, error);
}

static enum healcl_status rewind_to(struct executor *executor, size_t first,
                                    struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    const struct plan *plan = self->launcher.plan;
    for (size_t i = first; i < plan->storage_count; i++)
        if (!executor_keeps(executor, plan->storages[i]))
            launcher_storage_release(&self->launcher, plan->storages[i]);
    executor->dropped_digits = 0;
    return clear_status(self, error);
}

static void destroy(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    forget_downloads(self);
    for (size_t i = 0; self->base.fallbacks && i < operation_count(self->launcher.plan->table); i++)
        free(self->base.fallbacks[i].reason);
    free(self->base.fallbacks);
    reference_free(self->reference);
    spill_free(self->spill);
    /* What is still enqueued uses only what OpenCL itself keeps alive. */
    launcher_release(&self->launcher);
    free(self->downloads);
    free(self);
}

enum healcl_status executor_check_lacks(const struct operation_table *table,
                                        const struct healcl_device *device,
                                        struct healcl_error *error)
{
    return lacks_check(device, table, error);
}

enum healcl_status device_executor_limit(struct executor *executor, uint64_t bytes,
                                         struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    return spill_create(executor, &self->launcher, bytes, &self->spill, error);
}

void device_executor_price(const struct executor *executor, struct healcl_report *report)
{
    const struct device_executor *self = (const struct device_executor *)executor;
    const struct places *places = &self->launcher.places;
    const struct spill *spill = self->spill;
    if (places->of) {
        report->tensor_bytes_allocated = self->launcher.device->placed_peak + places->other_bytes;
        report->tensor_bytes_live = places->live_bytes;
    }
    if (!spill)
        return;
    report->device_memory_limit = spill->limit;
    report->tensor_bytes_peak = spill->memory.peak;
    report->bytes_spilled = spill->memory.price.spilled;
    report->bytes_brought_back = spill->memory.price.brought_back;
    report->bytes_streamed_again = spill->memory.price.streamed_again;
    report->spill_nanoseconds = spill->nanoseconds;
}

enum healcl_status device_executor_create(struct healcl_device *device, const struct plan *plan,
                                          bool profile, struct executor **result,
                                          struct healcl_error *error)
{
    static const struct executor_class class = {.run_segment = run_segment,
                                                .reset = reset,
                                                .rewind = rewind_to,
                                                .destroy = destroy,
                                                .enqueue = enqueue,
                                                .wait = wait,
                                                .add_constants = add_constants,
                                                .write = device_executor_write,
                                                .written = device_executor_written,
                                                .map = device_executor_map,
                                                .unmap = device_executor_unmap,
                                                .lend_memory = device_executor_lend_memory,
                                                .take_memory = device_executor_take_memory};
    struct device_executor *self = calloc(1, sizeof *self);
    if (!self)
        NO_MEMORY(error);
    self->base.class = &class;
    enum healcl_status status = device_set_profiling(device, profile, error);
    if (status == HEALCL_OK)
        status = launcher_init(&self->launcher, device, plan, error);
    if (status != HEALCL_OK) {
        free(self);
        return status;
    }
    status = begin(self, error);
    if (status != HEALCL_OK) {
        destroy(&self->base);
        return status;
    }
    *result = &self->base;
    return HEALCL_OK;
}
