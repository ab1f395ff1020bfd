/* Operations by call: each is planned, and its steps are executed at once. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "run/queue.h"

/* ---------------------------------------------------------------- executing */

/* A sink: copies a piece of the result of healcl_tensor_read to the caller's memory, queue->read.
 */
static enum healcl_status queue_take_piece(void *context, const struct step *step, int64_t first,
                                           int64_t count, const void *data,
                                           struct healcl_error *error)
{
    (void)error;
    struct healcl_queue *queue = context;
    const size_t size = dtype_size(step->in[0]->storage->dtype);
    if (queue->read)
        memcpy((char *)queue->read + (size_t)first * size, data, (size_t)count * size);
    return HEALCL_OK;
}

/* Keeps an error for the next wait to report, unless an earlier one is kept. *own is then empty. */
static void keep_error(struct healcl_queue *queue, struct healcl_error *own)
{
    error_move(queue->unreported.status == HEALCL_OK ? &queue->unreported : NULL, own);
}

/* Waits for all calls and hands out results, even if some have failed. Then forgets the steps:
 * enqueued commands have ended, or never will. If the plan's scalars were forgotten with them,
 * notes that their storage changes. After a failure what is known of values is distrusted, and the
 * error is kept. */
static void wait_and_forget(struct healcl_queue *queue)
{
    const struct executor_class *class = queue->executor->class;
    struct healcl_error error = {.status = HEALCL_OK};
    device_turn_begin(queue->device);
    enum healcl_status status =
        class->wait ? class->wait(queue->executor, &queue->sink, &error) : HEALCL_OK;
    queue->has_enqueued = false;
    if (status != HEALCL_OK) {
        /* From behind the last storage: only clears the status buffer, all tensors remain. */
        (void)!class->rewind(queue->executor, queue->eager.plan.storage_count, NULL);
        eager_plan_distrust(&queue->eager);
    }
    if (eager_plan_forget(&queue->eager) && class->written)
        class->written(queue->executor, queue->eager.plan.constants.storage);
    device_turn_end(queue->device);
    keep_error(queue, &error);
}

/* Waits for pending calls so that it can be cancelled. A few steps are awaited faster in the
 * driver, by whatever waits next. */
enum healcl_status queue_await(struct healcl_queue *queue, struct healcl_error *error)
{
    enum { FEW_STEPS = 4 }; /* so few steps are faster to await in the driver */
    return queue->eager.plan.step_count > FEW_STEPS && !healcl_queue_poll(queue)
               ? executor_await(queue->executor, queue->device, error)
               : HEALCL_OK;
}

/* Waits for all calls and returns their first error. An error that an earlier wait could not report
 * comes first. */
enum healcl_status queue_wait(struct healcl_queue *queue, struct healcl_error *error)
{
    TRY(queue_await(queue, error));
    wait_and_forget(queue);
    const enum healcl_status status = queue->unreported.status;
    if (status != HEALCL_OK)
        error_move(error, &queue->unreported);
    return status;
}

/* Runs the release steps behind a step that failed: their tensors' numbers are given to new
 * tensors. */
static void release_anyhow(struct healcl_queue *queue, size_t first)
{
    const struct plan *plan = &queue->eager.plan;
    for (size_t i = first; i < plan->step_count; i++)
        if (plan->steps[i].kind == STEP_RELEASE)
            (void)!queue->executor->class->enqueue(queue->executor, i, 1, &queue->sink, NULL);
}

/* Executes the plan's steps from `first` on, without waiting for the device, in a turn of the
 * queue's handle. If one fails, what is known of values is distrusted. */
static enum healcl_status execute(struct healcl_queue *queue, size_t first,
                                  struct healcl_error *error)
{
    const struct plan *plan = &queue->eager.plan;
    const struct executor_class *class = queue->executor->class;
    if (first == plan->step_count)
        return HEALCL_OK;
    queue->has_enqueued = queue->has_enqueued_more = true;
    device_turn_begin(queue->device);
    const enum healcl_status status =
        class->enqueue(queue->executor, first, plan->step_count - first, &queue->sink, error);
    if (status != HEALCL_OK)
        release_anyhow(queue, first);
    device_turn_end(queue->device);
    eager_plan_executed(&queue->eager, first);
    if (status != HEALCL_OK)
        eager_plan_distrust(&queue->eager);
    return status;
}

/* ---------------------------------------------------------------- tensors */

/* Ends one handle's use of a tensor's storage, which adds a release step to the plan. If the plan
 * is full, waits first. This function cannot fail, so an error is kept for the next wait. */
void queue_drop(struct healcl_queue *queue, const struct tensor *view)
{
    const struct tensor copy = *view; /* the steps may be freed */
    struct healcl_error error = {.status = HEALCL_OK};
    if (queue->eager.plan.step_count == EAGER_STEPS_MAX)
        wait_and_forget(queue);
    const size_t first = queue->eager.plan.step_count;
    if (eager_plan_drop(&queue->eager, &copy, &error) == HEALCL_OK)
        (void)!execute(queue, first, &error);
    keep_error(queue, &error);
}

/* Plans and executes the queue's current entry. *result: a handle for what the call makes or views;
 * NULL if that is nothing, or after an error. Its storage is retained until the handle exists,
 * which is then its owner. Uploads take `data` now, so they need not outlive the call. */
enum healcl_status queue_run_entry(struct healcl_queue *queue, const void *data,
                                   struct healcl_tensor **result, struct healcl_error *error)
{
    size_t first_step = 0;
    const struct tensor *planned = NULL;
    struct healcl_tensor *handle = NULL;
    if (result)
        *result = NULL;
    queue->entry.index = queue->eager.calls;
    TRY(eager_plan_call(&queue->eager, &queue->entry, &first_step, &planned, error));
    struct tensor made = {.storage = NULL}; /* a copy, since waiting frees the plan's tensors */
    if (planned) {
        made = *planned;
        made.storage->references++;
    }
    if (data)
        queue->uploads[made.storage->id].data = data;
    enum healcl_status status = execute(queue, first_step, error);
    if (data)
        queue->uploads[made.storage->id].data = NULL;
    if (status == HEALCL_OK && queue->synchronous)
        status = queue_wait(queue, error);
    if (status == HEALCL_OK && planned && result) {
        handle = *result = queue_add_handle(queue, &made);
        if (!handle)
            status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    }
    if (planned && !handle)
        queue_drop(queue, &made);
    return status;
}

/* Begins the queue's entry, before its arguments are set. Tensors that were released are freed
 * first. If the plan is full, waits, which clears it. */
enum healcl_status queue_begin_entry(struct healcl_queue *queue, const char *operation,
                                     uint32_t count, struct healcl_error *error)
{
    atomic_store_explicit(&queue->is_cancelled, false, memory_order_relaxed);
    TRY(queue_free_released(queue, error));
    if (eager_plan_is_full(&queue->eager))
        TRY(queue_wait(queue, error));
    queue->eager.calls_since++;
    queue->entry.kind = ENTRY_OPERATION;
    queue->entry.name = operation;
    queue->entry.argument_count = count;
    queue->entry.out.kind = ARGUMENT_NONE;
    queue->entry.makes_out = true;
    return HEALCL_OK;
}

/* Notes that something other than a step wrote to a storage: what was known of its values, and
 * tables derived from it, are no longer true. */
void queue_note_written(struct healcl_queue *queue, struct storage *storage)
{
    values_forget(&queue->eager.planner.values, storage);
    device_turn_begin(queue->device);
    if (queue->executor->class->written)
        queue->executor->class->written(queue->executor, storage);
    device_turn_end(queue->device);
}

/* Sets a tensor as an argument of the current entry, which refers to the handle's own view: no step
 * keeps that once it is enqueued. Memory that was lent may have been written by others. */
enum healcl_status queue_set_tensor(struct healcl_queue *queue, struct argument *argument,
                                    const struct healcl_tensor *tensor, struct healcl_error *error)
{
    struct storage *storage = tensor->view.storage;
    if (tensor->handles != queue->handles)
        FAIL(error, HEALCL_USAGE, "the tensor belongs to another queue");
    if (storage->is_mapped)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "the tensor is mapped");
    if (storage->is_lent)
        queue_note_written(queue, storage);
    argument->kind = ARGUMENT_DEVICE_TENSOR;
    argument->tensor.name = "";
    argument->tensor.has_dtype = false;
    argument->tensor.bound = &tensor->view;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- calls */

enum healcl_status queue_check_dtype(enum healcl_dtype dtype, struct healcl_error *error)
{
    if ((unsigned)dtype > HEALCL_INT64)
        FAIL_FOR(error, HEALCL_USAGE, DTYPE, "dtype %d does not exist", (int)dtype);
    return HEALCL_OK;
}

/* Sets an argument to `count` items of an index. */
static enum healcl_status set_index(struct argument *argument, uint32_t count,
                                    const struct healcl_index *items, struct healcl_error *error)
{
    argument->kind = ARGUMENT_SHAPE;
    argument->shape.count = count;
    if (count > INDEX_ITEMS_MAX)
        FAIL_FOR(error, HEALCL_REFUSED, SHAPE, "it has more than %d items", INDEX_ITEMS_MAX);
    NEED(items || count == 0, error);
    for (uint32_t i = 0; i < count; i++) {
        argument->shape.items[i] = items[i];
        if ((unsigned)items[i].kind > HEALCL_INDEX_ELLIPSIS)
            FAIL(error, HEALCL_USAGE, "an item of an index has the unknown kind %d",
                 (int)items[i].kind);
    }
    return HEALCL_OK;
}

/* Sets an argument to a shape. The planner takes it as an index of integers. */
static enum healcl_status set_shape(struct argument *argument, uint32_t rank, const int64_t *sizes,
                                    struct healcl_error *error)
{
    struct healcl_index items[INDEX_ITEMS_MAX];
    const bool is_too_long = rank > INDEX_ITEMS_MAX; /* set_index refuses it, and reads nothing */
    NEED(sizes || rank == 0, error);
    for (uint32_t i = 0; i < rank && !is_too_long; i++)
        items[i] = (struct healcl_index){HEALCL_INDEX_INT, .value = sizes[i]};
    return set_index(argument, rank, items, error);
}

/* Converts an argument of healcl_call to one of the planner's. */
static enum healcl_status queue_set_argument(struct healcl_queue *queue, struct argument *argument,
                                             const struct healcl_argument *given,
                                             struct healcl_error *error)
{
    switch (given->kind) {
    case HEALCL_ARGUMENT_TENSOR:
        NEED(given->as.tensor, error);
        return queue_set_tensor(queue, argument, given->as.tensor, error);
    case HEALCL_ARGUMENT_INT:
        argument->kind = ARGUMENT_INT;
        argument->integer = given->as.integer;
        return HEALCL_OK;
    case HEALCL_ARGUMENT_NONE: argument->kind = ARGUMENT_NONE; return HEALCL_OK;
    case HEALCL_ARGUMENT_SHAPE:
        return set_shape(argument, given->as.shape.rank, given->as.shape.sizes, error);
    case HEALCL_ARGUMENT_INDEX:
        return set_index(argument, given->as.index.count, given->as.index.items, error);
    case HEALCL_ARGUMENT_DTYPE:
        TRY(queue_check_dtype(given->as.dtype, error));
        argument->kind = ARGUMENT_TENSOR_TYPE;
        argument->dtype = (enum dtype)given->as.dtype;
        return HEALCL_OK;
    }
    FAIL(error, HEALCL_USAGE, "an argument has the unknown kind %d", (int)given->kind);
}

/* Whether an operation moves host data or frees a tensor: the library has its own functions for
 * that. A leading '_' is ignored. */
static bool is_function(const char *operation)
{
    const char *name = operation + (operation[0] == '_');
    return strcmp(name, "host_to_device") == 0 || strcmp(name, "device_to_host") == 0 ||
           strcmp(name, "free_device_tensor") == 0;
}

/* Runs an operation by its name: plans it and enqueues its steps. Errors name the call and the
 * argument. *result: a handle for the tensor that it makes, if any. */
enum healcl_status healcl_call(struct healcl_queue *queue, const char *operation, size_t count,
                               const struct healcl_argument *arguments,
                               struct healcl_tensor **result, struct healcl_error *error)
{
    NEED(queue, error);
    NEED(operation, error);
    NEED(arguments || count == 0, error);
    if (is_function(operation))
        FAIL_FOR(error, HEALCL_USAGE, OPERATION,
                 "%s cannot be called by name; it has its own function", operation);
    if (count > ENTRY_ARGUMENTS_MAX)
        FAIL(error, HEALCL_REFUSED, "%zu arguments are more than any operation takes", count);
    TRY(queue_begin_entry(queue, operation, (uint32_t)count, error));
    for (size_t i = 0; i < count; i++) {
        enum healcl_status status =
            queue_set_argument(queue, &queue->entry.arguments[i], &arguments[i], error);
        if (status == HEALCL_OK)
            continue;
        error_prefix(error, "call %zu (%.80s): argument %zu: ", queue->eager.calls, operation,
                     i + 1);
        error_place(error, (int64_t)queue->eager.calls,
                    operation_number(queue->eager.plan.table, operation));
        error_argument(error, (int)i);
        return status;
    }
    return queue_run_entry(queue, NULL, result, error);
}

/* ---------------------------------------------------------------- opening and closing */

/* Allocates the tables of a queue and opens its executor. The queue's plan, to which calls add
 * steps, exists already. */
static enum healcl_status open_queue(struct healcl_queue *queue, struct healcl_device *device,
                                     struct healcl_error *error)
{
    queue->uploads = calloc(EAGER_STORAGES_MAX, sizeof *queue->uploads);
    queue->handles = calloc(1, sizeof *queue->handles);
    NEED_MEMORY(queue->uploads && queue->handles, error);
    atomic_init(&queue->handles->owners, 1);
    TRY(executor_open(&queue->eager.plan, device, &queue->device, &queue->executor, error));
    queue->eager.kept.device = queue->device;
    queue->eager.kept.runs_again = vendor_runs_again;
    queue->eager.planner.kept = device ? &queue->eager.kept : NULL;
    queue->executor->uploads = queue->uploads;
    queue->executor->is_cancelled = &queue->is_cancelled;
    queue->executor->observer = &queue->observer;
    return HEALCL_OK;
}

/* Opens a queue for operations by call. NULL options are the defaults; device NULL is the host
 * reference. */
enum healcl_status healcl_queue_open_with(struct healcl_device *device,
                                          const struct healcl_queue_options *options,
                                          struct healcl_queue **result, struct healcl_error *error)
{
    NEED(result, error);
    static const struct healcl_queue_options defaults;
    options = options ? options : &defaults;
    struct healcl_queue *queue = calloc(1, sizeof *queue);
    NEED_MEMORY(queue, error);
    enum healcl_status status = eager_plan_init(&queue->eager, options->plan, error);
    if (status != HEALCL_OK) {
        free(queue);
        return status;
    }
    queue->operations = operations_retain(options->plan ? options->plan->operations : NULL);
    queue->sink = (struct result_sink){.context = queue, .take_piece = queue_take_piece};
    queue->synchronous = options->synchronous;
    queue->observer.context = options->cancelled_context;
    queue->observer.cancelled = options->cancelled;
    status = open_queue(queue, device, error);
    if (status != HEALCL_OK) {
        healcl_queue_close(queue);
        return status;
    }
    *result = queue;
    return HEALCL_OK;
}

enum healcl_status healcl_queue_open(struct healcl_device *device,
                                     const struct healcl_plan_options *options,
                                     struct healcl_queue **queue, struct healcl_error *error)
{
    return healcl_queue_open_with(device, &(struct healcl_queue_options){.plan = options}, queue,
                                  error);
}

/* ---------------------------------------------------------------- waiting */

/* Whether all calls have ended, without waiting. The host reference always has. */
bool healcl_queue_poll(struct healcl_queue *queue)
{
    if (!queue || !queue->device || !queue->has_enqueued)
        return true;
    const bool has_enqueued_more = queue->has_enqueued_more;
    queue->has_enqueued_more = false;
    return device_poll(queue->device, has_enqueued_more);
}

void healcl_queue_cancel(struct healcl_queue *queue)
{
    if (queue)
        atomic_store(&queue->is_cancelled, true);
}

/* Waits for all calls, and can be cancelled meanwhile by another thread. */
enum healcl_status healcl_queue_wait(struct healcl_queue *queue, struct healcl_error *error)
{
    NEED(queue, error);
    atomic_store_explicit(&queue->is_cancelled, false, memory_order_relaxed);
    TRY(queue_free_released(queue, error));
    if (!healcl_queue_poll(queue))
        TRY(executor_await(queue->executor, queue->device, error));
    return queue_wait(queue, error);
}

uint64_t healcl_queue_fallbacks(const struct healcl_queue *queue)
{
    return queue ? queue->executor->fallback_steps : 0;
}

/* Closes a queue. Mapped tensors are unmapped while their executor exists. Handles may live longer:
 * they are then only freed. */
void healcl_queue_close(struct healcl_queue *queue)
{
    if (!queue)
        return;
    for (struct healcl_tensor *tensor = queue->tensors; tensor; tensor = tensor->next)
        if (tensor->mapped)
            (void)!healcl_tensor_unmap(tensor, NULL);
    if (queue->handles)
        queue_leave_handles(queue);
    executor_close(queue->executor, queue->device);
    eager_plan_release(&queue->eager);
    healcl_operations_free(queue->operations);
    healcl_error_clear(&queue->unreported);
    free(queue->uploads);
    free(queue);
}
