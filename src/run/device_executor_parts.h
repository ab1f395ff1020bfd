/* The parts of the device executor share these. Functions act on the executor in hand; errors are
 * those of struct executor_class. */
#ifndef HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H
#define HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H

#include "kernels/launcher.h"
#include "run/run.h"
#include "run/slice.h"

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

enum { SPARE_BUFFERS = 4 };

/* The state of an executor whose device memory is limited. */
struct spill {
    struct memory memory;
    struct memory_mover mover;
    uint64_t limit; /* bytes of device memory */
    char **held;    /* what the host keeps, by storage, or NULL */
    struct {
        char *memory; /* or NULL */
        uint64_t bytes;
    } spare[SPARE_BUFFERS]; /* the largest that the host keeps nothing in any more */
    uint64_t nanoseconds;   /* that moving took, with waiting for the device */
    /* The slice in hand; size 0: none. */
    struct slices slices;
    int64_t start;
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

/* ---- device_executor_steps.c ---- */

/* Does an upload, as without a limit of memory. */
enum healcl_status device_executor_upload(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error);

/* Releases a storage; its memory stays with the results that wait in it. */
void device_executor_release_storage(struct device_executor *self, const struct storage *storage);

/* The queue has been drained if a result is to be awaited. */
enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

/* Runs a step on the host reference, which holds nothing afterwards, and counts it for a reason. */
enum healcl_status device_executor_run_on_host(struct device_executor *self,
                                               const struct step *step, const char *reason,
                                               struct healcl_error *error);

/* A step of the other side of a vendor's operation. What its kernel's copies have taken before
 * that could not be built is given back; and where no kernel of it can be, each call counts. */
enum healcl_status device_executor_leave_out(struct device_executor *self, const struct step *step,
                                             struct healcl_error *error);

/* ---- device_executor.c ---- */

/* Whether a result is handed out on the spot: it is too large to keep a second copy of. */
bool device_executor_is_awaited(const struct device_executor *self, const struct step *step);

/* Hands bytes [offset, offset + bytes) of a buffer to the sink as the result of a step. */
enum healcl_status device_executor_deliver(struct device_executor *self, const struct step *step,
                                           const struct buffer *buffer, uint64_t offset,
                                           uint64_t bytes, struct healcl_error *error);

/* Waits for the queue and reads what kernels have noted. */
enum healcl_status device_executor_read_status(struct device_executor *self,
                                               struct healcl_error *error);

/* ---- spill.c: where memory is limited ---- */

/* Bounds what the device allocates from now on. Errors: as memory_init. */
enum healcl_status spill_create(struct device_executor *self, uint64_t limit,
                                struct healcl_error *error);
void spill_free(struct device_executor *self);
void spill_reset(struct device_executor *self);

/* Whether there is no room for a step, by number, beside what is on the device: results that wait
 * should be handed out before it. */
bool spill_is_short(struct device_executor *self, size_t step);

/* Runs a step, by number, on what is moved to the device for it, or in slices. */
enum healcl_status spill_run_step(struct device_executor *self, size_t number,
                                  struct healcl_error *error);

/* The index, as text, of an element of input i that a check has found, in the whole of the operand
 * where a slice is in hand. spill may be NULL. */
void spill_index_text(const struct spill *spill, int i, const struct layout *elements,
                      int64_t position, char text[SHAPE_TEXT_SIZE]);

#endif
