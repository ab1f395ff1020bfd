/* What the parts of the device executor share. Functions act on the executor in hand; errors are
 * those of struct executor_class. */
#ifndef HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H
#define HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H

#include "run/device_executor.h"
#include "run/spill.h"

/* A result that waits until the queue is drained: in its storage, until that is written again, else
 * in a buffer of its own. */
struct download {
    const struct step *step;
    struct buffer buffer; /* without memory where nobody wants the data */
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
    struct segment_result *result; /* of the segment in hand */
    bool computes; /* where result is split: what is enqueued are kernels, since compute_start */
    uint64_t compute_start;
    struct segment_result of_calls; /* in the place of a segment's, for operations by call */
    const struct result_sink *sink;
    struct reference
        *reference;      /* of steps that the device cannot run; NULL before the first one */
    struct spill *spill; /* where memory is limited, or NULL */
};

/* ---- device_executor_results.c ---- */

enum healcl_status device_executor_call_sink(struct device_executor *self, const struct step *step,
                                             const void *data, struct healcl_error *error);

struct device_storage *device_executor_storage_of(struct device_executor *self,
                                                  const struct tensor *tensor);

void device_executor_forget_downloads(struct device_executor *self);

/* Waits for everything enqueued so far, then hands out the results that were pending. */
enum healcl_status device_executor_drain(struct device_executor *self, struct healcl_error *error);

/* Before a storage is written: the results that wait in it get copies. */
enum healcl_status device_executor_move_results(struct device_executor *self,
                                                const struct storage *storage,
                                                struct healcl_error *error);

/* Releases a storage; its memory stays with the results that wait in it. */
void device_executor_release_storage(struct device_executor *self, const struct storage *storage);

/* Whether a result is handed out on the spot: it is too large to keep a second copy of. */
bool device_executor_is_awaited(const struct device_executor *self, const struct step *step);

/* The queue has been drained if the result is to be awaited. */
enum healcl_status device_executor_download(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

/* ---- device_executor_steps.c ---- */

/* Of a step on the host; it counts for its operations in proportion. */
void device_executor_note_fallback_time(struct device_executor *self, const struct step *step,
                                        uint64_t nanoseconds);

/* What was noted until now comes first, and is waited for. */
enum healcl_status device_executor_prepare_host(struct device_executor *self,
                                                const struct step *step, const char *reason,
                                                struct healcl_error *error);

enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

/* A step of the other side of a vendor's operation. What its kernel's copies have taken before
 * that could not be built is given back; and where no kernel of it can be, each call counts. */
enum healcl_status device_executor_leave_out(struct device_executor *self, const struct step *step,
                                             struct healcl_error *error);

/* ---- device_executor.c ---- */

uint64_t device_executor_pending_most(const struct device_executor *self);

enum healcl_status device_executor_clear_status(struct device_executor *self,
                                                struct healcl_error *error);

/* Notes what kernels have noted. */
enum healcl_status device_executor_take_status(struct device_executor *self,
                                               const struct status *found,
                                               struct healcl_error *error);

/* Waits for the queue and reads what kernels have noted. */
enum healcl_status device_executor_read_status(struct device_executor *self,
                                               struct healcl_error *error);

#endif
