/* The executor that needs no OpenCL: it runs a plan on the host reference, step by step. */
#include <stdlib.h>
#include <string.h>

#include "reference/reference.h"
#include "run/run.h"

struct reference_executor {
    struct executor base;
    const struct plan *plan;
    struct reference *reference;
};

/* Returns the address of a contiguous tensor's elements in the reference's memory. Unmapping is not
 * needed. */
static enum healcl_status reference_map(struct executor *executor, const struct tensor *tensor,
                                        void **data, struct healcl_error *error)
{
    struct reference_executor *self = (struct reference_executor *)executor;
    void *memory;
    TRY(reference_memory(self->reference, tensor->storage, &memory, error));
    *data = (char *)memory + (size_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
    return HEALCL_OK;
}

/* Hands out a result: in place if its elements are contiguous and in order, else packed. An empty
 * result gets "", since NULL means that the sink does not need the data. */
static enum healcl_status deliver(struct reference_executor *self, const struct step *step,
                                  const struct result_sink *sink, struct healcl_error *error)
{
    const struct tensor *tensor = step->in[0];
    const int64_t elements = layout_elements(&tensor->layout);
    if (elements == 0 || !sink_wants_data(sink, step))
        return sink_take(&self->base, sink, step, 0, elements, elements == 0 ? "" : NULL, error);
    void *data, *packed = NULL;
    TRY(reference_map(&self->base, tensor, &data, error));
    enum healcl_status status = HEALCL_OK;
    if (!layout_is_contiguous(&tensor->layout)) {
        data = packed = malloc((size_t)packed_bytes(tensor));
        NEED_MEMORY(packed, error);
        status = reference_read(self->reference, tensor, packed, error);
    }
    THEN(status, sink_take(&self->base, sink, step, 0, elements, data, error));
    free(packed);
    return status;
}

/* Runs a step, except that a session keeps some uploads: they are neither released nor uploaded
 * again. Uploads of bound inputs copy the caller's data. */
static enum healcl_status run_step(struct reference_executor *self, const struct step *step,
                                   struct healcl_error *error)
{
    const struct storage *storage = step->out ? step->out->storage : step->in[0]->storage;
    const bool moves_data = step->kind == STEP_UPLOAD || step->kind == STEP_RELEASE;
    if (moves_data && executor_has_kept(&self->base, storage))
        return HEALCL_OK;
    if (step->kind != STEP_UPLOAD)
        return reference_step(self->reference, step, error);
    const void *bound = executor_bound(&self->base, storage);
    void *memory;
    if (bound) {
        TRY(reference_memory(self->reference, storage, &memory, error));
        memcpy(memory, bound, storage_bytes(storage));
    } else {
        TRY(source_check_size(self->plan->source, error));
        TRY(reference_step(self->reference, step, error));
    }
    executor_note_upload(&self->base, storage);
    return HEALCL_OK;
}

/* Runs one step or hands out its result. Errors name the step's entry. */
static enum healcl_status reference_run_one(struct reference_executor *self,
                                            const struct step *step, const struct result_sink *sink,
                                            struct healcl_error *error)
{
    if (step->kind != STEP_RELEASE)
        TRY(executor_check_cancelled(&self->base, error));
    enum healcl_status status = step->kind == STEP_DOWNLOAD ? deliver(self, step, sink, error)
                                                            : run_step(self, step, error);
    if (status != HEALCL_OK)
        error_prefix_step(error, step, self->reference->refused_input);
    return status;
}

/* Adds a step's time, in nanoseconds, to the times of its segment: to those of decoding or
 * computing, and to those of its operations. */
static void note_time(struct reference_executor *self, const struct step *step,
                      uint64_t nanoseconds)
{
    struct segment_result *times = &self->base.times;
    const bool is_upload = step->kind == STEP_UPLOAD;
    if (is_upload && !executor_bound(&self->base, step->out->storage))
        times->decode_nanoseconds += nanoseconds;
    if (!is_upload && step->kind != STEP_DOWNLOAD)
        times->compute_nanoseconds += nanoseconds;
    if (step->kind != STEP_RELEASE && times->operation_nanoseconds)
        origins_share(step->origins, nanoseconds, times->operation_nanoseconds);
}

/* Runs the steps of a segment one by one, and measures each. The sink's time, in which results are
 * compared, is not the step's. Kernels of vendors cannot run here, so that the steps of their
 * bodies run (STEP_OF_KERNEL steps are left out). */
static enum healcl_status reference_run_segment(struct executor *executor,
                                                const struct segment *segment,
                                                const struct result_sink *sink,
                                                struct healcl_error *error)
{
    struct reference_executor *self = (struct reference_executor *)executor;
    struct segment_result *times = &self->base.times;
    const uint64_t segment_start = monotonic_nanoseconds();
    times->sink_nanoseconds = times->decode_nanoseconds = times->compute_nanoseconds = 0;
    for (size_t i = 0; i < segment->step_count; i++) {
        const struct step *step = &self->plan->steps[segment->first_step + i];
        if (step->side == STEP_OF_KERNEL)
            continue;
        uint64_t start = monotonic_nanoseconds(), sink_before = times->sink_nanoseconds;
        size_t span = trace_begin_step(self->base.trace, step);
        enum healcl_status status = reference_run_one(self, step, sink, error);
        trace_end(self->base.trace, span);
        TRY(status);
        if (step->payload)
            payload_forget(step->payload, self->plan->source);
        const uint64_t of_sink = times->sink_nanoseconds - sink_before;
        note_time(self, step, monotonic_nanoseconds() - start - of_sink);
    }
    times->nanoseconds = monotonic_nanoseconds() - segment_start - times->sink_nanoseconds;
    self->base.dropped_digits = self->reference->dropped_digits;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- operations by call */

/* Runs some steps of the plan at once, for operations by call: the host has nothing to wait for. */
static enum healcl_status reference_enqueue(struct executor *executor, size_t first, size_t count,
                                            const struct result_sink *sink,
                                            struct healcl_error *error)
{
    const struct segment steps = {.first_step = first, .step_count = count};
    return reference_run_segment(executor, &steps, sink, error);
}

/* Copies packed elements to a contiguous tensor. */
static enum healcl_status reference_write(struct executor *executor, const struct tensor *tensor,
                                          const void *data, struct healcl_error *error)
{
    void *memory;
    TRY(reference_map(executor, tensor, &memory, error));
    memcpy(memory, data, (size_t)packed_bytes(tensor));
    return HEALCL_OK;
}

/* Forgets the storages from number `first` on, except uploads that a session keeps, so that their
 * segments can run again. */
static enum healcl_status reference_rewind(struct executor *executor, size_t first,
                                           struct healcl_error *error)
{
    (void)error;
    struct reference_executor *self = (struct reference_executor *)executor;
    for (size_t i = first; i < self->plan->storage_count; i++)
        if (!executor_has_kept(executor, self->plan->storages[i]))
            reference_forget(self->reference, self->plan->storages[i]);
    executor->dropped_digits = self->reference->dropped_digits = 0;
    return HEALCL_OK;
}

static void reference_destroy(struct executor *executor)
{
    struct reference_executor *self = (struct reference_executor *)executor;
    reference_free(self->reference);
    free(self);
}

/* Creates an executor that needs no OpenCL. The reference calls executor_check_cancelled during
 * long steps. */
enum healcl_status reference_executor_create(const struct plan *plan, struct executor **result,
                                             struct healcl_error *error)
{
    static const struct executor_class class = {.run_segment = reference_run_segment,
                                                .rewind = reference_rewind,
                                                .destroy = reference_destroy,
                                                .enqueue = reference_enqueue,
                                                .write = reference_write,
                                                .map = reference_map};
    struct reference_executor *self = calloc(1, sizeof *self);
    NEED_MEMORY(self, error);
    self->base.class = &class;
    self->plan = plan;
    enum healcl_status status = reference_create(plan, &self->reference, error);
    if (status != HEALCL_OK) {
        reference_destroy(&self->base);
        return status;
    }
    self->reference->check = executor_check_cancelled;
    self->reference->executor = &self->base;
    *result = &self->base;
    return HEALCL_OK;
}
