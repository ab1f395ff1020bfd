/* Operations by call. queue.c implements calls, tensor.c implements tensors. */
#ifndef HEALCL_RUN_QUEUE_H
#define HEALCL_RUN_QUEUE_H

#include <stdatomic.h>

#include "opencl/device.h"
#include "plan/eager.h"
#include "run/run.h"

/* Shared by the handles of a queue's tensors, which may live longer than the queue. */
struct handles {
    atomic_size_t owners;                     /* the queue, and each handle */
    _Atomic(struct healcl_tensor *) released; /* released by any thread; the last one comes first */
    atomic_bool is_closed;                    /* the queue was closed */
};

struct healcl_tensor {
    struct handles *handles;
    struct healcl_queue *queue;            /* NULL after the queue was closed */
    struct healcl_tensor *next, *previous; /* list of the queue's tensors */
    struct healcl_tensor *released;        /* next in handles->released */
    struct tensor view;                    /* its storage ends with the queue, */
    enum dtype dtype;                      /* but its description stays valid */
    int64_t storage_elements;
    void *mapped; /* host address while mapped, or NULL */
};

struct healcl_queue {
    struct eager_plan eager;
    struct healcl_device *device; /* the queue's own handle; NULL: the host reference */
    struct executor *executor;
    struct result_sink sink;
    struct upload *uploads; /* by storage */
    struct healcl_tensor *tensors;
    struct handles *handles;
    struct healcl_operations *operations; /* that the plan refers to, or NULL */
    bool synchronous;                     /* wait for each call */
    bool has_enqueued, has_enqueued_more; /* since the last wait; since healcl_queue_poll */
    atomic_bool is_cancelled;
    struct healcl_observer observer; /* `cancelled` is the caller's, or NULL */
    struct entry entry;              /* the current call; kept here because it is large */
    void *read;                      /* destination of a result; NULL: the result is not read */
    /* The error of a wait that could not report it. Status HEALCL_OK: none. */
    struct healcl_error unreported;
};

/* Waits until the device has done all calls. Returns at once if only few steps are pending. Errors:
 * HEALCL_CANCELLED. */
enum healcl_status queue_await(struct healcl_queue *queue, struct healcl_error *error);

/* Waits for all calls and collects their errors. Errors: as healcl_queue_wait. */
enum healcl_status queue_wait(struct healcl_queue *queue, struct healcl_error *error);

/* Begins the queue's entry, before its arguments are set. First frees released handles, and waits
 * for all steps if the plan is full. */
enum healcl_status queue_begin_entry(struct healcl_queue *queue, const char *operation,
                                     uint32_t count, struct healcl_error *error);

/* Sets an argument of the entry. No step may refer to the view of the handle once it has been
 * enqueued, but downloads, which copy it. Errors: HEALCL_USAGE for a tensor that is mapped, or of
 * another queue. */
enum healcl_status queue_set_tensor(struct healcl_queue *queue, struct argument *argument,
                                    const struct healcl_tensor *tensor, struct healcl_error *error);

/* Errors: HEALCL_USAGE for a value that is not a dtype. */
enum healcl_status queue_check_dtype(enum healcl_dtype dtype, struct healcl_error *error);

/* Plans and executes the queue's entry. Makes a handle for its result if `result` is not NULL.
 * data: the elements for an upload, else NULL. */
enum healcl_status queue_run_entry(struct healcl_queue *queue, const void *data,
                                   struct healcl_tensor **result, struct healcl_error *error);

/* Makes a handle for a view. The caller has already retained the view's storage. Returns NULL if
 * memory runs out. */
struct healcl_tensor *queue_add_handle(struct healcl_queue *queue, const struct tensor *view);

/* Frees the handles that were released. Errors: HEALCL_CANCELLED; handles not yet freed remain in
 * the list. */
enum healcl_status queue_free_released(struct healcl_queue *queue, struct healcl_error *error);

/* Detaches the remaining handles from a closed queue. A later release frees only the handle's
 * memory. */
void queue_leave_handles(struct healcl_queue *queue);

/* Drops one handle's use of a tensor's storage. */
void queue_drop(struct healcl_queue *queue, const struct tensor *view);

/* Notes that something other than a call wrote to a storage. */
void queue_note_written(struct healcl_queue *queue, struct storage *storage);

#endif
