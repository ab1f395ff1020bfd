/* Operations by call: queue.c has the calls, tensor.c the tensors. */
#ifndef HEALCL_RUN_QUEUE_H
#define HEALCL_RUN_QUEUE_H

#include <stdatomic.h>

#include "opencl/device.h"
#include "plan/eager.h"
#include "run/run.h"

/* Shared by the handles of a queue's tensors, which may live longer than the queue. */
struct handles {
    atomic_size_t owners;                     /* the queue, and each handle */
    _Atomic(struct healcl_tensor *) released; /* by any thread, the last one first */
    atomic_bool is_closed;                    /* there is no queue any more */
};

struct healcl_tensor {
    struct handles *handles;
    struct healcl_queue *queue;            /* until it is closed */
    struct healcl_tensor *next, *previous; /* of the queue's */
    struct healcl_tensor *released;        /* before it */
    struct tensor view;                    /* of a storage that is gone with the queue, */
    enum dtype dtype;                      /* but not what there is to tell of it */
    int64_t storage_elements;
    void *mapped; /* where, or NULL */
};

struct healcl_queue {
    struct eager_plan eager;
    struct healcl_device *device; /* a handle of the queue's own; NULL: the host reference */
    struct executor *executor;
    struct result_sink sink;
    struct upload *uploads; /* by storage */
    struct healcl_tensor *tensors;
    struct handles *handles;
    struct healcl_operations *operations; /* that the plan refers to, or NULL */
    bool synchronous;                     /* each call is waited for */
    bool has_enqueued, has_enqueued_more; /* since a wait, and since healcl_queue_poll */
    atomic_bool is_cancelled;
    struct healcl_observer observer; /* its cancelled is the caller's, or NULL */
    size_t constants;                /* of the plan, that the executor knows */
    struct entry entry;              /* of the call in hand; large */
    void *read;                 /* where a result is to be copied to; NULL: nobody waits for it */
    struct healcl_error missed; /* of a wait that had nobody to tell; status HEALCL_OK: none */
};

/* Waits until the device has done all calls, unless few steps are left. Errors:
 * HEALCL_CANCELLED. */
enum healcl_status queue_await(struct healcl_queue *queue, struct healcl_error *error);

/* The same, and takes what has become of them. Errors: as healcl_queue_wait. */
enum healcl_status queue_wait(struct healcl_queue *queue, struct healcl_error *error);

/* Begins the queue's entry: what the steps so far take is there again before its arguments are set.
 */
enum healcl_status queue_begin_entry(struct healcl_queue *queue, const char *operation,
                                     uint32_t count, struct healcl_error *error);

/* An argument of the entry. Steps have a view of their own, for the handle may be gone before they
 * are. Errors: HEALCL_USAGE for a tensor that is mapped, or of another queue. */
enum healcl_status queue_set_tensor(struct healcl_queue *queue, struct argument *argument,
                                    const struct healcl_tensor *tensor, struct healcl_error *error);

/* Errors: HEALCL_USAGE for what is no dtype. */
enum healcl_status queue_check_dtype(enum healcl_dtype dtype, struct healcl_error *error);

/* Plans the queue's entry, executes it, and makes a handle of its result if that is wanted. data:
 * of an upload, else NULL. */
enum healcl_status queue_run_entry(struct healcl_queue *queue, const void *data,
                                   struct healcl_tensor **result, struct healcl_error *error);

/* Executes the plan's steps from first on, without waiting. */
enum healcl_status queue_execute(struct healcl_queue *queue, size_t first,
                                 struct healcl_error *error);

/* A handle for a view, which is held already; NULL where memory is lacking. */
struct healcl_tensor *queue_add_handle(struct healcl_queue *queue, const struct tensor *view);

/* Frees the handles that were released. Errors: HEALCL_CANCELLED; the rest stays released. */
enum healcl_status queue_free_released(struct healcl_queue *queue, struct healcl_error *error);

/* The queue is closed: handles that are left, and released later, have only their own memory. */
void queue_leave_handles(struct healcl_queue *queue);

/* One handle less views a tensor. */
void queue_drop(struct healcl_queue *queue, const struct tensor *view);

/* A storage was written to by something else than a call. */
void queue_note_written(struct healcl_queue *queue, struct storage *storage);

#endif
