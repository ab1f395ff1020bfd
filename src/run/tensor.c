/* Tensors of operations by call: their contents and memory. */
#include <stdlib.h>

#include "run/queue.h"

/* Refuses NULL, and a tensor whose queue is closed. */
#define NEED_OPEN(tensor, error)                                                  \
    do {                                                                          \
        NEED(tensor, error);                                                      \
        if (atomic_load(&(tensor)->handles->is_closed))                           \
            FAIL_FOR(error, HEALCL_USAGE, STATE, "the tensor's queue is closed"); \
    } while (0)

static int64_t tensor_byte_count(const struct healcl_tensor *tensor)
{
    return layout_elements(&tensor->view.layout) * (int64_t)dtype_size(tensor->dtype);
}

/* ---------------------------------------------------------------- handles */

/* Ends the use of `handles` by one owner: the queue, or a handle of it. The last owner frees it. */
static void disown(struct handles *handles)
{
    if (atomic_fetch_sub(&handles->owners, 1) == 1)
        free(handles);
}

/* Makes a handle for a view, and puts it at the front of the queue's list. The handle also is an
 * owner of queue->handles, because it may live longer than the queue. */
struct healcl_tensor *queue_add_handle(struct healcl_queue *queue, const struct tensor *view)
{
    struct healcl_tensor *tensor = malloc(sizeof *tensor);
    if (!tensor)
        return NULL;
    *tensor = (struct healcl_tensor){.handles = queue->handles,
                                     .queue = queue,
                                     .next = queue->tensors,
                                     .view = *view,
                                     .dtype = view->storage->dtype,
                                     .storage_elements = view->storage->elements};
    atomic_fetch_add(&queue->handles->owners, 1);
    if (queue->tensors)
        queue->tensors->previous = tensor;
    queue->tensors = tensor;
    return tensor;
}

/* Frees a handle's own memory, and ends its use of the shared `handles`. */
static void free_handle(struct healcl_tensor *tensor)
{
    struct handles *handles = tensor->handles;
    free(tensor);
    disown(handles);
}

/* Takes a released handle out of its queue: removes it from the queue's list, ends its mapping, and
 * drops its use of the storage. Only the queue's thread may call this. */
static void forget_handle(struct healcl_tensor *tensor)
{
    struct healcl_queue *queue = tensor->queue;
    if (tensor->next)
        tensor->next->previous = tensor->previous;
    if (tensor->previous)
        tensor->previous->next = tensor->next;
    else
        queue->tensors = tensor->next;
    if (tensor->mapped)
        (void)!healcl_tensor_unmap(tensor, NULL);
    queue_drop(queue, &tensor->view);
}

/* Frees the handles that any thread has released: only the queue's thread may change the queue. If
 * the plan has no more room for their releases, waits until it can be cleared. */
enum healcl_status queue_free_released(struct healcl_queue *queue, struct healcl_error *error)
{
    struct healcl_tensor *tensor = atomic_load(&queue->handles->released);
    while (tensor) {
        if (queue->eager.plan.step_count == EAGER_STEPS_MAX)
            TRY(queue_await(queue, error));
        /* Fails if another thread has put a handle before it, which is then the next to be freed.
         * Only this function removes handles, so the handles below it do not change. */
        if (!atomic_compare_exchange_weak(&queue->handles->released, &tensor, tensor->released))
            continue;
        forget_handle(tensor);
        free_handle(tensor);
        tensor = atomic_load(&queue->handles->released);
    }
    return HEALCL_OK;
}

/* Frees the released handles of a closed queue. Any thread may call this: it takes the whole list
 * at once, so that no other thread frees the same handles. */
static void free_left(struct handles *handles)
{
    struct healcl_tensor *tensor = atomic_exchange(&handles->released, NULL);
    while (tensor) {
        struct healcl_tensor *next = tensor->released;
        free_handle(tensor);
        tensor = next;
    }
}

/* Closes the shared `handles` of a queue. Handles that exist still are freed when they are
 * released. */
void queue_leave_handles(struct healcl_queue *queue)
{
    atomic_store(&queue->handles->is_closed, true);
    free_left(queue->handles);
    disown(queue->handles);
}

/* Puts a handle on the list of released ones, from which the queue's thread frees it. If the queue
 * is being closed by another thread, either that thread finds the handle in the list, or this one
 * sees that the queue is closed and frees it. */
void healcl_tensor_release(struct healcl_tensor *tensor)
{
    if (!tensor)
        return;
    struct handles *handles = tensor->handles;
    atomic_fetch_add(&handles->owners, 1); /* another thread may free the handle at once */
    struct healcl_tensor *head = atomic_load(&handles->released);
    do
        tensor->released = head;
    while (!atomic_compare_exchange_weak(&handles->released, &head, tensor));
    if (atomic_load(&handles->is_closed))
        free_left(handles);
    disown(handles);
}

/* Describes a tensor's shape and dtype, as those of a transcript's inputs. It stays valid when the
 * queue is closed. */
struct healcl_tensor_info healcl_tensor_describe(const struct healcl_tensor *tensor)
{
    if (!tensor)
        return (struct healcl_tensor_info){.name = ""};
    return (struct healcl_tensor_info){.name = "",
                                       .dtype = (enum healcl_dtype)tensor->dtype,
                                       .rank = tensor->view.layout.rank,
                                       .shape = tensor->view.layout.shape,
                                       .bytes = (size_t)tensor_byte_count(tensor)};
}

/* Describes where a view's elements are in its storage. NULL gives an empty description. */
struct healcl_tensor_layout healcl_tensor_layout(const struct healcl_tensor *tensor)
{
    if (!tensor)
        return (struct healcl_tensor_layout){.rank = 0};
    const struct layout *layout = &tensor->view.layout;
    return (struct healcl_tensor_layout){.rank = layout->rank,
                                         .shape = layout->shape,
                                         .strides = layout->stride,
                                         .offset = layout->offset,
                                         .storage_elements = tensor->storage_elements,
                                         .contiguous = layout_is_contiguous(layout)};
}

/* ---------------------------------------------------------------- creating */

/* Checks the arguments of functions that make a tensor. */
static enum healcl_status check_new(const struct healcl_queue *queue, enum healcl_dtype dtype,
                                    uint32_t rank, const int64_t *shape,
                                    struct healcl_tensor **tensor, struct healcl_error *error)
{
    NEED(queue, error);
    NEED(tensor, error);
    NEED(shape || rank == 0, error);
    *tensor = NULL;
    return queue_check_dtype(dtype, error);
}

/* Makes a tensor by calling an operation that takes a shape and a dtype: "zeros" or "empty". */
static enum healcl_status call_new(struct healcl_queue *queue, const char *operation,
                                   enum healcl_dtype dtype, uint32_t rank, const int64_t *shape,
                                   struct healcl_tensor **tensor, struct healcl_error *error)
{
    const struct healcl_argument arguments[] = {healcl_shape_argument(rank, shape),
                                                healcl_dtype_argument(dtype)};
    return healcl_call(queue, operation, 2, arguments, tensor, error);
}

/* Makes a tensor with the caller's elements, or with zeros if data is NULL. Plans an upload like
 * that of a transcript, whose payload is the data. */
enum healcl_status healcl_tensor_create(struct healcl_queue *queue, enum healcl_dtype dtype,
                                        uint32_t rank, const int64_t *shape, const void *data,
                                        struct healcl_tensor **tensor, struct healcl_error *error)
{
    TRY(check_new(queue, dtype, rank, shape, tensor, error));
    if (!data)
        return call_new(queue, "zeros", dtype, rank, shape, tensor, error);
    TRY(queue_begin_entry(queue, "host_to_device", 1, error));
    struct argument *host = &queue->entry.arguments[0];
    host->kind = ARGUMENT_HOST_TENSOR;
    host->host.present = true;
    TRY(payload_declare((enum dtype)dtype, rank, shape, &host->host.payload, error));
    return queue_run_entry(queue, data, tensor, error);
}

/* ---------------------------------------------------------------- reading and writing */

/* Refuses a size of the caller's memory that is not that of the tensor's elements. */
static enum healcl_status check_size(const struct healcl_tensor *tensor, size_t bytes,
                                     struct healcl_error *error)
{
    const size_t tensor_bytes = (size_t)tensor_byte_count(tensor);
    if (bytes != tensor_bytes)
        FAIL(error, HEALCL_USAGE, "the tensor has %zu bytes, not %zu", tensor_bytes, bytes);
    return HEALCL_OK;
}

/* Copies the elements of a tensor to memory of exactly their size. Waits for all calls before it.
 * The queue's sink writes to queue->read. */
enum healcl_status healcl_tensor_read(struct healcl_tensor *tensor, void *memory, size_t bytes,
                                      struct healcl_error *error)
{
    NEED_OPEN(tensor, error);
    struct healcl_queue *queue = tensor->queue;
    TRY(check_size(tensor, bytes, error));
    NEED(memory || bytes == 0, error);
    TRY(queue_begin_entry(queue, "device_to_host", 1, error));
    /* A large read may wait in the driver, which nothing can cancel. */
    TRY(queue_await(queue, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[0], tensor, error));
    queue->read = memory;
    enum healcl_status status = queue_run_entry(queue, NULL, NULL, error);
    THEN(status, queue_wait(queue, error));
    /* The caller may free its memory; after an error a result may still arrive. */
    queue->read = NULL;
    return status;
}

/* Enqueues a copy between tensors of one queue, also between different layouts. */
enum healcl_status healcl_tensor_copy(const struct healcl_tensor *from, struct healcl_tensor *to,
                                      struct healcl_error *error)
{
    NEED_OPEN(from, error);
    NEED_OPEN(to, error);
    struct healcl_queue *queue = to->queue;
    TRY(queue_begin_entry(queue, "copy", 2, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[0], from, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[1], to, error));
    queue->entry.kind = ENTRY_COPY;
    return queue_run_entry(queue, NULL, NULL, error);
}

/* Writes elements that are not contiguous: makes a packed tensor of the data, and copies that on
 * the device. */
static enum healcl_status tensor_write_view(struct healcl_tensor *tensor, const void *data,
                                            struct healcl_error *error)
{
    struct healcl_tensor *packed = NULL;
    const struct layout *layout = &tensor->view.layout;
    TRY(healcl_tensor_create(tensor->queue, (enum healcl_dtype)tensor->dtype, layout->rank,
                             layout->shape, data, &packed, error));
    enum healcl_status status = healcl_tensor_copy(packed, tensor, error);
    healcl_tensor_release(packed);
    return status;
}

/* Writes elements in order with the calls. Large data are not copied, so that it waits for the
 * write. */
enum healcl_status healcl_tensor_write(struct healcl_tensor *tensor, const void *data, size_t bytes,
                                       struct healcl_error *error)
{
    NEED_OPEN(tensor, error);
    struct healcl_queue *queue = tensor->queue;
    TRY(check_size(tensor, bytes, error));
    if (bytes == 0)
        return HEALCL_OK;
    NEED(data, error);
    if (!layout_is_contiguous(&tensor->view.layout))
        return tensor_write_view(tensor, data, error);
    TRY(queue_begin_entry(queue, "write", 1, error));
    if (bytes > DEVICE_COPIED_BYTES) /* writing them waits */
        TRY(queue_await(queue, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[0], tensor, error));
    device_turn_begin(queue->device);
    enum healcl_status status =
        queue->executor->class->write(queue->executor, &tensor->view, data, error);
    device_turn_end(queue->device);
    queue->has_enqueued = queue->has_enqueued_more = true;
    queue_note_written(queue, tensor->view.storage);
    return status;
}

/* ---------------------------------------------------------------- memory */

/* The address that represents an empty tensor's elements. */
static char nothing;

/* Waits for all calls, and maps a contiguous tensor for reading and writing. The device may not
 * touch it until it is unmapped, so calls refuse it. Memory of 0 bytes cannot be mapped: an empty
 * tensor gets an address that must not be used. */
enum healcl_status healcl_tensor_map(struct healcl_tensor *tensor, void **data,
                                     struct healcl_error *error)
{
    NEED_OPEN(tensor, error);
    NEED(data, error);
    *data = NULL;
    struct healcl_queue *queue = tensor->queue;
    if (!layout_is_contiguous(&tensor->view.layout))
        REFUSE(error, "the tensor is not contiguous: copy it to one that is");
    TRY(queue_begin_entry(queue, "map", 1, error));
    TRY(queue_wait(queue, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[0], tensor, error));
    enum healcl_status status = HEALCL_OK;
    void *mapped = &nothing;
    if (tensor_byte_count(tensor) > 0) {
        device_turn_begin(queue->device);
        status = queue->executor->class->map(queue->executor, &tensor->view, &mapped, error);
        device_turn_end(queue->device);
    }
    TRY(status);
    tensor->view.storage->is_mapped = true;
    tensor->mapped = *data = mapped;
    return HEALCL_OK;
}

/* Ends a mapping. The host may have written to the tensor, so what was known of its values is
 * forgotten. */
enum healcl_status healcl_tensor_unmap(struct healcl_tensor *tensor, struct healcl_error *error)
{
    NEED_OPEN(tensor, error);
    struct healcl_queue *queue = tensor->queue;
    if (!tensor->mapped)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "the tensor is not mapped");
    void *mapped = tensor->mapped;
    enum healcl_status status = HEALCL_OK;
    tensor->mapped = NULL;
    tensor->view.storage->is_mapped = false;
    if (mapped != &nothing) {
        device_turn_begin(queue->device);
        if (queue->executor->class->unmap)
            status = queue->executor->class->unmap(queue->executor, &tensor->view, mapped, error);
        device_turn_end(queue->device);
        queue->has_enqueued = queue->has_enqueued_more = true;
    }
    queue_note_written(queue, tensor->view.storage);
    return status;
}

/* Returns the cl_mem that holds a tensor. From now on others may write to it at any time: is_lent
 * makes calls forget what they know of its values. */
enum healcl_status healcl_tensor_memory(struct healcl_tensor *tensor, void **memory,
                                        size_t *offset_bytes, struct healcl_error *error)
{
    NEED_OPEN(tensor, error);
    NEED(memory, error);
    NEED(offset_bytes, error);
    struct healcl_queue *queue = tensor->queue;
    *memory = NULL;
    *offset_bytes = 0; /* in a slab, each part is a separate sub-buffer */
    if (!queue->device)
        FAIL(error, HEALCL_USAGE, "the host reference has no OpenCL memory");
    TRY(queue_begin_entry(queue, "memory", 1, error));
    TRY(queue_set_tensor(queue, &queue->entry.arguments[0], tensor, error));
    device_turn_begin(queue->device);
    enum healcl_status status =
        queue->executor->class->lend_memory(queue->executor, tensor->view.storage, memory, error);
    device_turn_end(queue->device);
    tensor->view.storage->is_lent = status == HEALCL_OK || tensor->view.storage->is_lent;
    return status;
}

/* Makes a tensor of a cl_mem that belongs to the caller. It is planned as an empty tensor, which
 * then gets this memory. */
enum healcl_status healcl_tensor_adopt(struct healcl_queue *queue, enum healcl_dtype dtype,
                                       uint32_t rank, const int64_t *shape, void *memory,
                                       struct healcl_tensor **tensor, struct healcl_error *error)
{
    TRY(check_new(queue, dtype, rank, shape, tensor, error));
    NEED(memory, error);
    if (!queue->device)
        FAIL(error, HEALCL_USAGE, "the host reference cannot adopt OpenCL memory");
    struct healcl_tensor *adopted = NULL;
    TRY(call_new(queue, "empty", dtype, rank, shape, &adopted, error));
    device_turn_begin(queue->device);
    enum healcl_status status =
        queue->executor->class->take_memory(queue->executor, adopted->view.storage, memory, error);
    device_turn_end(queue->device);
    if (status != HEALCL_OK) {
        healcl_tensor_release(adopted);
        return status;
    }
    adopted->view.storage->is_lent = true;
    *tensor = adopted;
    return HEALCL_OK;
}
