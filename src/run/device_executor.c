/*
 * The executor that runs a plan on an OpenCL device.
 *
 * A segment is enqueued as one batch: nothing in it waits for the device. The executor drains the
 * queue at the segment's end, or earlier if many results are pending. It then reads the status
 * buffer, in which kernels have recorded data errors, and hands out the results.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/derived.h"
#include "kernels/launcher.h"
#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"

struct launcher *device_executor_launcher(struct executor *executor)
{
    return &((struct device_executor *)executor)->launcher;
}

/* Whether the last error was caused by data or by a vendor's manifest, not by the device. */
bool device_executor_has_refused(const struct executor *executor)
{
    const struct device_executor *self = (const struct device_executor *)executor;
    return self->has_refused || self->launcher.device->programs->manifest_is_wrong;
}

/* The most bytes of results that wait on the device, by its memory. Once they exceed this, they are
 * handed out. */
static uint64_t pending_most(const struct device_executor *self)
{
    return pending_results_most(self->spill ? self->spill->limit
                                            : self->launcher.plan->memory_limit);
}

/* Whether a download is handed out at once, after waiting for the device: a copy of it would take
 * too much memory. Only a contiguous result can be read from its storage. */
bool device_executor_is_awaited(const struct device_executor *self, const struct step *step)
{
    return step->kind == STEP_DOWNLOAD && packed_bytes(step->in[0]) > pending_most(self) &&
           layout_is_contiguous(&step->in[0]->layout) && sink_wants_data(self->sink, step);
}

/* ---------------------------------------------------------------- the status buffer */

/* Initializes the status buffer for the checks that follow. Skipped if no kernel has used it since
 * the last time. The smallest index of an error wins, so it begins with the largest. */
static enum healcl_status clear_status(struct device_executor *self, struct healcl_error *error)
{
    const struct status initial = {.index = UINT32_MAX};
    self->launcher.check_count = 0;
    if (self->status_is_initial)
        return HEALCL_OK;
    if (!self->launcher.status.memory)
        TRY(device_buffer_acquire_part(self->launcher.device, sizeof initial,
                                       &self->launcher.status, error));
    TRY(device_write(self->launcher.device, &self->launcher.status, 0, sizeof initial, &initial,
                     error));
    self->status_is_initial = true;
    return HEALCL_OK;
}

/* Turns what a check has recorded into an error: which argument of which entry has which value at
 * which index. found->key is the number of the check plus 1. A check records 32 bits of an index:
 * UINT32_MAX stands for all that are larger, and then the value is unknown. */
static enum healcl_status refuse_check(struct device_executor *self, const struct status *found,
                                       struct healcl_error *error)
{
    const struct check *check = &self->launcher.checks[found->key - 1];
    const char *name = step_input_name(check->step, check->input);
    char index[SHAPE_TEXT_SIZE], value[24] = "a value";
    if (found->index == UINT32_MAX) { /* the report was cut, so the value is unknown */
        strcpy(index, "an index beyond 2^32-2");
    } else {
        spill_index_text(self->spill, check->input, &check->elements, found->index, index);
        snprintf(value, sizeof value, "%" PRId64, found->value);
    }
    const char *at = check->elements.rank > 0 ? " at " : "";
    if (check->elements.rank == 0) /* a single number has no index */
        index[0] = 0;
    char fault[80] = "below 1"; /* of a modulus */
    if (check->kind == CHECK_INDEX)
        snprintf(fault, sizeof fault, "outside of axis %" PRIu32 " of size %" PRId64, check->axis,
                 check->size);
    else if (check->kind == CHECK_PERMUTATION)
        snprintf(fault, sizeof fault, "outside of [0, %" PRId64 ")", check->size);
    if (check->kind == CHECK_COPRIME) /* the index is that of a pair: i * moduli + j */
        (void)ERROR(error, HEALCL_REFUSED,
                    "argument '%s': the moduli at [%" PRId64 "] and [%" PRId64 "] are not coprime",
                    name, found->index / check->size, found->index % check->size);
    else if (check->kind == CHECK_PERMUTATION && found->value >= 0 && found->value < check->size)
        (void)ERROR(error, HEALCL_REFUSED, "argument '%s': %s%s%s repeats an earlier entry", name,
                    value, at, index);
    else
        (void)ERROR(error, HEALCL_REFUSED, "argument '%s': %s%s%s is %s", name, value, at, index,
                    fault);
    error_because(error, HEALCL_CAUSE_DATA);
    error_prefix_step(error, check->step, check->input);
    self->has_refused = true;
    return HEALCL_REFUSED;
}

/* Takes over what kernels have recorded in the status buffer: dropped digits, and the first error
 * that a check has found. Commands must have ended. */
static enum healcl_status take_status(struct device_executor *self, const struct status *found,
                                      struct healcl_error *error)
{
    uint64_t dropped = (uint64_t)found->dropped_high << 32 | found->dropped_low;
    self->base.dropped_digits += dropped;
    if (found->key > 0 && found->key <= self->launcher.check_count)
        return refuse_check(self, found, error);
    self->status_is_initial = found->key == 0 && dropped == 0;
    return HEALCL_OK;
}

/* Waits for the device, reads the status buffer and initializes it again. */
enum healcl_status device_executor_read_status(struct device_executor *self,
                                               struct healcl_error *error)
{
    struct status found;
    TRY(device_read(self->launcher.device, &self->launcher.status, 0, sizeof found, &found, error));
    TRY(take_status(self, &found, error));
    return clear_status(self, error);
}

/* ---------------------------------------------------------------- handing results out */

/* Hands a whole, packed result to the sink. */
static enum healcl_status call_sink(struct device_executor *self, const struct step *step,
                                    const void *data, struct healcl_error *error)
{
    return sink_take(&self->base, self->sink, step, 0, layout_elements(&step->in[0]->layout), data,
                     error);
}

/* A result that is being handed to the sink. */
struct delivery {
    struct device_executor *self;
    const struct step *step;
    uint64_t bytes;
    char *memory; /* where pieces are joined, or NULL */
};

/* Receives a piece of a download. Hands it to the sink, or joins the pieces in memory if the sink
 * only takes whole results. */
static enum healcl_status deliver_piece(void *context, uint64_t offset, uint64_t bytes,
                                        const void *memory, struct healcl_error *error)
{
    struct delivery *delivery = context;
    struct device_executor *self = delivery->self;
    const int64_t size = (int64_t)dtype_size(delivery->step->in[0]->storage->dtype);
    if (bytes == delivery->bytes || !self->sink->take)
        return sink_take(&self->base, self->sink, delivery->step, (int64_t)offset / size,
                         (int64_t)bytes / size, memory, error);
    if (offset == 0)
        delivery->memory = malloc(delivery->bytes);
    NEED_MEMORY(delivery->memory, error);
    memcpy(delivery->memory + offset, memory, bytes);
    return HEALCL_OK;
}

/* Downloads a result from a buffer to the sink, in pieces if the sink can take them. The pages of
 * the expected tensor are released afterwards. */
enum healcl_status device_executor_deliver(struct device_executor *self, const struct step *step,
                                           const struct buffer *buffer, uint64_t offset,
                                           uint64_t bytes, struct healcl_error *error)
{
    struct delivery delivery = {.self = self, .step = step, .bytes = bytes};
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

/* Drops all pending results and releases their buffers. A result that waited in its storage leaves
 * the buffer there. */
static void forget_downloads(struct device_executor *self)
{
    for (size_t i = 0; i < self->download_count; i++) {
        struct download *download = &self->downloads[i];
        if (download->is_in_storage)
            self->launcher.storages[download->step->in[0]->storage->id].waiting_result = 0;
        else
            device_buffer_release(self->launcher.device, &download->buffer);
    }
    self->download_count = 0;
    self->download_bytes = 0;
}

/* Pending results in one slab, which are mapped or read together. */
struct group {
    struct device_executor *self;
    struct buffer slab;
    uint64_t first, end; /* bytes of it */
    bool has_status;     /* the status buffer is also in it, and must be checked first */
    uint64_t status_in_slab;
    size_t from, count;      /* range of the downloads */
    const struct step *step; /* the current one */
};

/* Extends a group by the first `bytes` bytes of a buffer, if that is in the same slab and the whole
 * range can be read at once. *in_slab: where the buffer begins there. The first buffer decides
 * which slab it is. */
static bool group_takes(struct group *group, const struct buffer *buffer, uint64_t bytes,
                        uint64_t *in_slab)
{
    if (!buffer->slab || (group->end > 0 && buffer->slab != group->slab.memory))
        return false;
    const uint64_t begin = buffer->slab_offset;
    const bool is_empty = group->end == 0;
    const uint64_t first = !is_empty && group->first < begin ? group->first : begin;
    const uint64_t end = group->end > begin + bytes ? group->end : begin + bytes;
    if (end - first > device_piece_bytes(group->self->launcher.device))
        return false;
    group->slab = device_buffer_slab(buffer);
    group->first = first;
    group->end = end;
    *in_slab = begin;
    return true;
}

/* Extends a group by the pending results from number group->from on, until one cannot be read
 * together with it. Notes where each begins in the slab. Results without data join any group. */
static void extend_group(struct group *group)
{
    struct device_executor *self = group->self;
    uint64_t buffer_in_slab;
    for (size_t i = group->from; i < self->download_count; i++, group->count++) {
        struct download *download = &self->downloads[i];
        const uint64_t bytes = packed_bytes(download->step->in[0]);
        if (!download->buffer.memory || bytes == 0)
            continue;
        if (!group_takes(group, &download->buffer, download->offset + bytes, &buffer_in_slab))
            return;
        download->in_slab = buffer_in_slab + download->offset;
    }
}

/* Receives the range of a slab that a group spans, and hands its results to the sink. If the status
 * buffer is in it, checks that first: an error holds all results back. memory: NULL if there are no
 * data to read. */
static enum healcl_status deliver_group(void *context, uint64_t offset, uint64_t bytes,
                                        const void *memory, struct healcl_error *error)
{
    struct group *group = context;
    struct device_executor *self = group->self;
    const char *slab = memory;
    (void)offset, (void)bytes; /* all at once */
    if (group->has_status && slab) {
        struct status found;
        memcpy(&found, slab + (group->status_in_slab - group->first), sizeof found);
        TRY(take_status(self, &found, error));
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct download *download = &self->downloads[group->from + i];
        group->step = download->step;
        const void *data = NULL; /* not needed */
        if (download->buffer.memory)
            data = packed_bytes(group->step->in[0]) == 0
                       ? "" /* not NULL, but without elements */
                       : slab + (download->in_slab - group->first);
        size_t span = trace_begin_step(self->base.trace, group->step);
        enum healcl_status status = call_sink(self, group->step, data, error);
        trace_end(self->base.trace, span);
        TRY(status);
        if (data && group->step->payload)
            payload_forget(group->step->payload, self->launcher.plan->source);
    }
    group->step = NULL;
    return HEALCL_OK;
}

/* Waits for all commands, and hands out a group's results in one download. */
static enum healcl_status take_group(struct group *group, struct healcl_error *error)
{
    struct device_executor *self = group->self;
    enum healcl_status status =
        group->first == group->end /* there are no data to read */
            ? deliver_group(group, 0, 0, NULL, error)
            : device_download(self->launcher.device, &group->slab, group->first,
                              group->end - group->first,
                              &(struct device_taker){deliver_group, group}, error);
    if (status != HEALCL_OK && group->step)
        error_prefix_step(error, group->step, NO_INPUT);
    return status == HEALCL_OK && group->has_status ? clear_status(self, error) : status;
}

/* Waits for all commands, and hands out one result that is not in a slab. */
static enum healcl_status take_alone(struct device_executor *self, const struct download *download,
                                     struct healcl_error *error)
{
    size_t span = trace_begin_step(self->base.trace, download->step);
    enum healcl_status status =
        device_executor_deliver(self, download->step, &download->buffer, download->offset,
                                packed_bytes(download->step->in[0]), error);
    trace_end(self->base.trace, span);
    if (status != HEALCL_OK)
        error_prefix_step(error, download->step, NO_INPUT);
    return status;
}

/* Hands out all pending results, in order. Those of one slab are read by one transfer, if possible
 * with the status buffer. The status is checked before any result. It need not be if no command has
 * used it: but reading it also waits for uploads, which may still fail. */
static enum healcl_status take_all(struct device_executor *self, struct healcl_error *error)
{
    struct group group = {.self = self}; /* empty: no range of a slab yet */
    if (!self->status_is_initial || self->launcher.device->last_upload) {
        group.has_status = group_takes(&group, &self->launcher.status, sizeof(struct status),
                                       &group.status_in_slab);
        if (!group.has_status)
            TRY(device_executor_read_status(self, error));
    }
    size_t next = 0;
    while (group.has_status || next < self->download_count) {
        group.from = next;
        extend_group(&group);
        const bool is_alone = group.count == 0 && !group.has_status;
        TRY(is_alone ? take_alone(self, &self->downloads[next], error) : take_group(&group, error));
        next += is_alone ? 1 : group.count;
        group = (struct group){.self = self};
    }
    return HEALCL_OK;
}

/* Waits for all commands, then hands out the pending results and judges audits. A long wait can be
 * cancelled: it polls. Polling costs time, so that it is only done if recent waits were long. */
static enum healcl_status drain(struct device_executor *self, struct healcl_error *error)
{
    enum { LONG_WAIT = 50000000 }; /* nanoseconds */
    const struct executor *base = &self->base;
    const uint64_t start = monotonic_nanoseconds();
    enum healcl_status status = HEALCL_OK;
    trace_for_operation(base->trace, NULL, 0); /* waiting belongs to no operation */
    if ((base->is_cancelled || (base->observer && base->observer->cancelled)) &&
        self->recent_wait > LONG_WAIT && !device_poll(self->launcher.device, true))
        status = executor_await(base, self->launcher.device, error);
    THEN(status, take_all(self, error));
    forget_downloads(self);
    const uint64_t waited = monotonic_nanoseconds() - start;
    /* A long wait is remembered for some time: it counts half with each later one. */
    self->recent_wait = waited > self->recent_wait / 2 ? waited : self->recent_wait / 2;
    return status == HEALCL_OK && self->base.audit ? audit_judge(self->base.audit, error) : status;
}

/* ---------------------------------------------------------------- segments */

/* Whether a download reads a tensor that limited memory has moved to the host. */
static bool reads_moved(const struct spill *spill, const struct step *step)
{
    return step->kind == STEP_DOWNLOAD && !spill->memory.states[step->in[0]->storage->id].resident;
}

/* Whether pending results are handed out before a step: it waits anyway, or they take too much
 * memory, or with limited memory the step needs theirs. */
static bool drains_before(struct device_executor *self, size_t number)
{
    const struct step *step = &self->launcher.plan->steps[number];
    if (device_executor_is_awaited(self, step) || self->download_bytes > pending_most(self))
        return true;
    return self->spill && self->download_count > 0 &&
           (spill_is_short(self, number) || reads_moved(self->spill, step));
}

/* Adds the times of a launch to the segment's. times->tag are the operations that the launch
 * belongs to. */
static void add_times(void *context, const struct launch_times *times)
{
    struct device_executor *self = context;
    if (self->base.times.operation_nanoseconds)
        origins_share(times->tag, times->running, self->base.times.operation_nanoseconds);
    self->base.times.without_command_nanoseconds += times->without_command;
    self->base.times.not_begun_nanoseconds += times->not_begun;
}

/* Decides which error a segment reports. When the host meets an error, the device may already have
 * recorded one of an earlier entry: that comes first. is_reported: the error itself came from such
 * a record. */
static enum healcl_status first_error(struct device_executor *self, struct healcl_error *host_error,
                                      bool is_reported, struct healcl_error *error)
{
    enum healcl_status status = host_error->status, earlier = HEALCL_OK;
    if (status == HEALCL_REFUSED && !is_reported)
        earlier = device_executor_read_status(self, error);
    if (earlier == HEALCL_OK && error)
        *error = *host_error;
    else
        healcl_error_clear(host_error);
    return earlier == HEALCL_OK ? status : earlier;
}

/* Begins a phase of a segment whose times are split: kernels, or transfers. Adds the time of the
 * phase that ends. What is measured elsewhere (sink, decoding, building) is subtracted from the
 * clock. */
static void note_phase(struct device_executor *self, bool begins_compute)
{
    const uint64_t elsewhere = self->base.times.sink_nanoseconds +
                               self->base.times.decode_nanoseconds +
                               self->launcher.device->programs->compile_nanoseconds;
    const uint64_t now = monotonic_nanoseconds() - elsewhere;
    if (self->in_compute_phase)
        self->base.times.compute_nanoseconds += now - self->phase_start;
    self->in_compute_phase = begins_compute;
    self->phase_start = now;
}

/* If times are split, ends the current phase: waits until its commands have ended. */
static enum healcl_status change_phase(struct device_executor *self, bool begins_compute,
                                       struct healcl_error *error)
{
    if (!self->base.times.is_split || begins_compute == self->in_compute_phase)
        return HEALCL_OK;
    if (self->in_compute_phase || self->launcher.device->last_upload)
        TRY(device_finish(self->launcher.device, error));
    note_phase(self, begins_compute);
    return HEALCL_OK;
}

/* Enqueues `count` steps of the plan. Between them it checks for a cancellation, and hands out
 * pending results if necessary. Errors of steps name their entry. Those that the device has
 * recorded, or the host has found, name it already. */
static enum healcl_status enqueue_steps(struct device_executor *self, size_t first, size_t count,
                                        struct healcl_error *error)
{
    struct healcl_error step_error = {0}; /* until a step fails */
    /* A program that cannot be built is not tried again if the host may run its steps. */
    self->launcher.device->programs->keeps_failures = self->base.falls_back;
    for (size_t number = first; number < first + count; number++) {
        const struct step *step = &self->launcher.plan->steps[number];
        if (step_is_left_out(step, self->launcher.device)) {
            if (self->spill)
                memory_skip_step(&self->spill->memory, number);
            TRY(device_executor_leave_out(self, step, error));
            continue;
        }
        if (step->kind != STEP_RELEASE) {
            TRY(executor_check_cancelled(&self->base, error));
            const bool computes = step->kind != STEP_UPLOAD && step->kind != STEP_DOWNLOAD;
            TRY(change_phase(self, computes, error));
        }
        if (drains_before(self, number))
            TRY(drain(self, error));
        const bool had_refused = self->has_refused; /* an earlier step */
        self->has_refused = false;
        self->launcher.refused_input = NO_INPUT;
        const size_t span = trace_begin_step(self->base.trace, step);
        enum healcl_status status = self->spill ? spill_run_step(self, number, &step_error)
                                                : device_executor_run_step(self, step, &step_error);
        trace_end(self->base.trace, span);
        const bool is_reported = self->has_refused; /* by a check of a slice, or by the host */
        self->has_refused |= had_refused;
        if (status != HEALCL_OK) {
            if (!is_reported)
                error_prefix_step(&step_error, step, self->launcher.refused_input);
            return first_error(self, &step_error, is_reported, error);
        }
    }
    return HEALCL_OK;
}

/* Enqueues all steps of a segment, then waits and hands out its results. */
static enum healcl_status run_steps(struct device_executor *self, const struct segment *segment,
                                    struct healcl_error *error)
{
    TRY(enqueue_steps(self, segment->first_step, segment->step_count, error));
    if (self->download_count > 0)
        TRY(change_phase(self, false, error)); /* to transfers */
    return drain(self, error);
}

/* Whether a session keeps an upload: its storage must then keep its place in memory. */
static bool is_kept(void *context, const struct storage *storage)
{
    const struct device_executor *self = context;
    return self->base.uploads && self->base.uploads[storage->id].is_kept;
}

/* Assigns tensors to places in memory, once, before the first segment: then it is known what a
 * session keeps. With limited memory, each step decides where its tensors are. */
static enum healcl_status find_places(struct device_executor *self, struct healcl_error *error)
{
    if (self->spill || self->launcher.places.of)
        return HEALCL_OK;
    return launcher_find_places(&self->launcher,
                                (struct places_rule){.stays = is_kept, .context = self}, error);
}

/* After an error, forgets all derived tables: the checks of their data may not have run. Returns
 * the status. */
static enum healcl_status forget_unchecked(struct device_executor *self, enum healcl_status status)
{
    if (status != HEALCL_OK)
        derived_forget_all(&self->launcher);
    return status;
}

/* Runs one segment: enqueues its steps, waits, hands out results, and takes the device's times.
 * Times are taken even after an error: otherwise the next run would get them. */
static enum healcl_status run_segment(struct executor *executor, const struct segment *segment,
                                      const struct result_sink *sink, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    self->sink = sink;
    struct segment_result *times = &self->base.times;
    times->sink_nanoseconds = times->decode_nanoseconds = times->compute_nanoseconds = 0;
    self->in_compute_phase = false;
    uint64_t start = monotonic_nanoseconds();
    device_turn_begin(self->launcher.device);
    enum healcl_status status = find_places(self, error);
    if (self->base.runs_again && !self->spill)
        self->launcher.templates.runs_again = true;
    if (self->base.audit)
        audit_begin_segment(self->base.audit, segment);
    THEN(status, run_steps(self, segment, error));
    if (self->base.audit)
        audit_drop(self->base.audit, self->launcher.device);
    note_phase(self, false); /* ends the last phase */
    times->nanoseconds = monotonic_nanoseconds() - start - times->sink_nanoseconds;
    if (self->launcher.device->profiling) {
        enum healcl_status taken = device_take_times(self->launcher.device, add_times, self,
                                                     status == HEALCL_OK ? error : NULL);
        THEN(status, taken);
    }
    forget_downloads(self);
    status = forget_unchecked(self, status);
    device_turn_end(self->launcher.device);
    return status;
}

/* ---------------------------------------------------------------- operations by call */

/* Enqueues some steps of the plan, for operations by call. After a refusal the status buffer is
 * cleared, so that it is reported once. */
static enum healcl_status enqueue(struct executor *executor, size_t first, size_t count,
                                  const struct result_sink *sink, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    self->sink = sink;
    enum healcl_status status = enqueue_steps(self, first, count, error);
    if (status == HEALCL_REFUSED) /* each record of a kernel is reported once */
        (void)!clear_status(self, NULL);
    return forget_unchecked(self, status);
}

/* Waits for all steps so far and hands out their results, for operations by call. */
static enum healcl_status wait(struct executor *executor, const struct result_sink *sink,
                               struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    self->sink = sink;
    return forget_unchecked(self, drain(self, error));
}

/* ---------------------------------------------------------------- callers' memory */

/* Offset in bytes of a contiguous tensor in its storage's buffer. */
static uint64_t begin_of(const struct tensor *tensor)
{
    return (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
}

/* Writes packed elements to a contiguous tensor, in order with the steps. */
static enum healcl_status write(struct executor *executor, const struct tensor *tensor,
                                const void *data, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    return device_write(launcher->device, buffer, begin_of(tensor), packed_bytes(tensor), data,
                        error);
}

/* Notes that something other than a step wrote to a storage: tables derived from it are stale. */
static void written(struct executor *executor, const struct storage *storage)
{
    struct launcher *launcher = device_executor_launcher(executor);
    launcher_storage_written(launcher, storage);
    if (storage->scalars) /* they are uploaded again when a kernel reads them */
        device_buffer_release(launcher->device, launcher_memory(launcher, storage));
}

/* Maps a contiguous tensor for the host, after waiting for the device. */
static enum healcl_status map(struct executor *executor, const struct tensor *tensor, void **data,
                              struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    return device_buffer_map(launcher->device, buffer, CL_MAP_READ | CL_MAP_WRITE, begin_of(tensor),
                             packed_bytes(tensor), data, error);
}

/* Ends a mapping of `map`. */
static enum healcl_status unmap(struct executor *executor, const struct tensor *tensor, void *data,
                                struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    return device_buffer_unmap(launcher->device, launcher_memory(launcher, tensor->storage), data,
                               error);
}

/* Returns the cl_mem of a storage, for the caller's own commands on the same queue. These must come
 * after uploads. */
static enum healcl_status lend_memory(struct executor *executor, const struct storage *storage,
                                      void **memory, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, storage, &buffer, error));
    *memory = buffer->memory;
    return device_await_uploads(launcher->device, error);
}

/* Gives the caller's cl_mem to a storage that has no memory yet. */
static enum healcl_status take_memory(struct executor *executor, const struct storage *storage,
                                      void *memory, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    return device_buffer_adopt(launcher->device, storage_bytes(storage), memory,
                               launcher_memory(launcher, storage), error);
}

/* ---------------------------------------------------------------- life */

/* Forgets the storages from a number on, so that the segments that create them can run again.
 * Uploads that a session keeps stay, and so do the plan's scalars. Dropped digits are counted anew.
 */
static enum healcl_status rewind_to(struct executor *executor, size_t first_storage,
                                    struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    const struct plan *plan = self->launcher.plan;
    for (size_t i = first_storage; i < plan->storage_count; i++)
        if (!plan->storages[i]->scalars && !executor_has_kept(executor, plan->storages[i]))
            launcher_storage_release(&self->launcher, plan->storages[i]);
    const bool is_first_segment = first_storage <= 1; /* number 0 has the plan's scalars */
    if (self->spill && is_first_segment)              /* later ones begin with what it has left */
        spill_reset(self);
    executor->dropped_digits = 0;
    return clear_status(self, error);
}

/* Frees an executor, also while commands are pending: these use only objects that OpenCL itself
 * retains. */
static void destroy(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    forget_downloads(self);
    for (size_t i = 0; self->base.fallbacks && i < operation_count(self->launcher.plan->table); i++)
        free(self->base.fallbacks[i].reason);
    free(self->base.fallbacks);
    reference_free(self->reference);
    if (self->spill)
        spill_free(self);
    launcher_release(&self->launcher);
    free(self->downloads);
    free(self);
}

/* Adds to a report how much memory tensors took, and with limited memory what moving them has cost.
 */
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

/* Creates an executor that runs a plan on a device. Commands are timed if it is traced. Rewinding
 * initializes the status buffer. */
enum healcl_status device_executor_create(struct healcl_device *device, const struct plan *plan,
                                          struct executor **result, struct healcl_error *error)
{
    static const struct executor_class class = {.run_segment = run_segment,
                                                .rewind = rewind_to,
                                                .destroy = destroy,
                                                .enqueue = enqueue,
                                                .wait = wait,
                                                .write = write,
                                                .written = written,
                                                .map = map,
                                                .unmap = unmap,
                                                .lend_memory = lend_memory,
                                                .take_memory = take_memory};
    struct device_executor *self = calloc(1, sizeof *self);
    NEED_MEMORY(self, error);
    self->base.class = &class;
    self->recent_wait = UINT64_C(1) << 40; /* nanoseconds: the first wait can be cancelled */
    enum healcl_status status = device_set_profiling(device, device->trace != NULL, error);
    THEN(status, launcher_init(&self->launcher, device, plan, error));
    if (status != HEALCL_OK) {
        free(self);
        return status;
    }
    status = rewind_to(&self->base, 0, error);
    if (status != HEALCL_OK) {
        destroy(&self->base);
        return status;
    }
    *result = &self->base;
    return HEALCL_OK;
}
