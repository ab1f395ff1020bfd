#include "run/device_executor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/derive.h"
#include "kernels/variant.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"
#include "run/host_step.h"

struct launcher *device_executor_launcher(struct executor *executor)
{
    return &((struct device_executor *)executor)->launcher;
}

bool device_executor_has_refused(const struct executor *executor)
{
    const struct device_executor *self = (const struct device_executor *)executor;
    return self->has_refused || self->launcher.device->programs->manifest_is_wrong;
}

uint64_t device_executor_pending_most(const struct device_executor *self)
{
    return pending_results_most(self->spill ? self->spill->limit
                                            : self->launcher.plan->memory_limit);
}

/* ---------------------------------------------------------------- the status buffer */

enum healcl_status device_executor_clear_status(struct device_executor *self,
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
static enum healcl_status refuse_check(struct device_executor *self, const struct status *found,
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

enum healcl_status device_executor_take_status(struct device_executor *self,
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

enum healcl_status device_executor_read_status(struct device_executor *self,
                                               struct healcl_error *error)
{
    struct status found;
    TRY(device_read(self->launcher.device, &self->launcher.status, 0, sizeof found, &found, error));
    TRY(device_executor_take_status(self, &found, error));
    return device_executor_clear_status(self, error);
}

/* ---------------------------------------------------------------- less memory than wanted */

/* What a check finds is told with the slice in hand. Without one nothing is waited for. */
static enum healcl_status after_slice(struct executor *executor, struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    return self->launcher.check_count > 0 ? device_executor_read_status(self, error) : HEALCL_OK;
}

static enum healcl_status run_in_slices(struct device_executor *self, const struct step *step,
                                        const struct slices *slices, struct healcl_error *error)
{
    self->status_is_clear = false;
    return spill_run_slices(self->spill, step, slices, after_slice, error);
}

/* Of what the host has. */
static enum healcl_status hand_out_held(struct device_executor *self, const struct step *step,
                                        struct healcl_error *error)
{
    char *packed = NULL;
    if (sink_wants_data(self->sink, step))
        TRY(spill_read(self->spill, step->in[0], &packed, error));
    if (!packed)
        return device_executor_run_step(self, step, error);
    enum healcl_status status = device_executor_call_sink(self, step, packed, error);
    free(packed);
    return status;
}

static enum healcl_status run_limited_step(struct device_executor *self, size_t number,
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
        TRY(device_executor_run_step(self, step, error));
    return spill_end_step(self->spill, &slices, error);
}

/* Whether results that wait are handed out before a step. */
static bool drains_before(struct device_executor *self, size_t number)
{
    const struct step *step = &self->launcher.plan->steps[number];
    if (device_executor_is_awaited(self, step) ||
        self->download_bytes > device_executor_pending_most(self))
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
static enum healcl_status first_error(struct device_executor *self, struct healcl_error *own,
                                      struct healcl_error *error)
{
    enum healcl_status status = own->status;
    enum healcl_status earlier =
        status == HEALCL_REFUSED ? device_executor_read_status(self, error) : HEALCL_OK;
    if (earlier == HEALCL_OK && error)
        *error = *own;
    else
        healcl_error_clear(own);
    return earlier == HEALCL_OK ? status : earlier;
}

/* What follows are kernels, or transfers. What counts elsewhere is no time of kernels. */
static void note_phase(struct device_executor *self, bool computes)
{
    const uint64_t elsewhere = self->result->sink_nanoseconds + self->result->decode_nanoseconds +
                               self->launcher.device->programs->compile_nanoseconds;
    const uint64_t now = monotonic_nanoseconds() - elsewhere;
    if (self->computes)
        self->result->compute_nanoseconds += now - self->compute_start;
    self->computes = computes;
    self->compute_start = now;
}

/* The same, once what was enqueued before has ended. */
static enum healcl_status change_phase(struct device_executor *self, bool computes,
                                       struct healcl_error *error)
{
    if (!self->result->is_split || computes == self->computes)
        return HEALCL_OK;
    if (self->computes || self->launcher.device->upload)
        TRY(device_finish(self->launcher.device, error));
    note_phase(self, computes);
    return HEALCL_OK;
}

static enum healcl_status enqueue_steps(struct device_executor *self, size_t first, size_t count,
                                        struct healcl_error *error)
{
    self->launcher.device->programs->keeps_failures = self->base.falls_back;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &self->launcher.plan->steps[first + i];
        if (step_is_left_out(step, self->launcher.device)) {
            if (self->spill)
                TRY(memory_skip_step(&self->spill->memory, first + i, error));
            TRY(device_executor_leave_out(self, step, error));
            continue;
        }
        if (step->kind != STEP_RELEASE) {
            TRY(executor_check_cancelled(&self->base, error));
            TRY(change_phase(self, step->kind != STEP_UPLOAD && step->kind != STEP_DOWNLOAD,
                             error));
        }
        if (drains_before(self, first + i))
            TRY(device_executor_drain(self, error));
        bool had_refused = self->has_refused;
        struct healcl_error own = {0};
        self->launcher.refused_input = NO_INPUT;
        size_t span = trace_begin_step(self->base.trace, step);
        enum healcl_status status = self->spill ? run_limited_step(self, first + i, &own)
                                                : device_executor_run_step(self, step, &own);
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

static enum healcl_status run_steps(struct device_executor *self, const struct segment *segment,
                                    struct healcl_error *error)
{
    TRY(enqueue_steps(self, segment->first_step, segment->step_count, error));
    if (self->download_count > 0)
        TRY(change_phase(self, false, error));
    return device_executor_drain(self, error);
}

static bool is_kept(void *context, const struct storage *storage)
{
    const struct device_executor *self = context;
    return self->base.uploads && self->base.uploads[storage->id].is_kept;
}

/* Before the first segment, when it is known what a session keeps. Where memory is limited, it is
 * said step by step who has which. */
static enum healcl_status find_places(struct device_executor *self, struct healcl_error *error)
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
    result->sink_nanoseconds = result->decode_nanoseconds = result->compute_nanoseconds = 0;
    self->computes = false;
    uint64_t start = monotonic_nanoseconds();
    device_turn_begin(self->launcher.device);
    enum healcl_status status = find_places(self, error);
    if (self->base.audit)
        audit_begin_segment(self->base.audit, segment);
    if (status == HEALCL_OK)
        status = run_steps(self, segment, error);
    if (self->base.audit)
        audit_drop(self->base.audit, self->launcher.device);
    note_phase(self, false);
    result->nanoseconds = monotonic_nanoseconds() - start - result->sink_nanoseconds;
    if (self->launcher.device
            ->profiling) { /* after an error too: else the next run would be given these times */
        enum healcl_status taken = device_take_times(self->launcher.device, add_times, self,
                                                     status == HEALCL_OK ? error : NULL);
        if (status == HEALCL_OK)
            status = taken;
    }
    device_executor_forget_downloads(self);
    self->result = &self->of_calls; /* the other one is the caller's */
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
        (void)!device_executor_clear_status(self, NULL);
    return forget_unchecked(self, status);
}

static enum healcl_status wait(struct executor *executor, const struct result_sink *sink,
                               struct healcl_error *error)
{
    struct device_executor *self = (struct device_executor *)executor;
    take_sink(self, sink);
    return forget_unchecked(self, device_executor_drain(self, error));
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

static enum healcl_status begin(struct device_executor *self, struct healcl_error *error)
{
    const struct plan *plan = self->launcher.plan;
    self->base.dropped_digits = 0;
    TRY(device_executor_clear_status(self, error));
    if (plan->constants.count == 0)
        return HEALCL_OK;
    const struct storage *storage = plan->constants.storage;
    return device_upload_memory(self->launcher.device, NULL, storage_bytes(storage),
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
    return device_executor_clear_status(self, error);
}

static void destroy(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    device_executor_forget_downloads(self);
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
    self->result = &self->of_calls;
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
