/* Internals shared by the parts of the device executor. All functions act on the current executor.
 * Errors are those of struct executor_class. */
#ifndef HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H
#define HEALCL_RUN_DEVICE_EXECUTOR_PARTS_H

#include "kernels/launcher.h"
#include "run/run.h"
#include "run/slice.h"

/* A result to hand out once the queue is drained. It remains in its storage until that is written
 * again, or in a separate buffer. */
struct download {
    const struct step *step;
    struct buffer buffer;   /* has no memory if its data are not read */
    uint64_t offset;        /* offset of the result in the buffer, in bytes */
    bool is_in_storage;     /* the storage or another result releases the buffer */
    uint64_t in_slab;       /* offset of the result in its slab, if it has one */
    size_t next_in_storage; /* number plus one of the next result waiting there; 0: none */
};

enum { SPARE_BUFFERS = 4 };

/* The state of an executor whose device memory is limited. */
struct spill {
    struct memory memory;
    struct memory_mover mover;
    uint64_t limit;     /* bytes of device memory */
    char **host_copies; /* contents kept on the host, by storage, or NULL */
    struct {
        char *memory; /* or NULL */
        uint64_t bytes;
    } spare[SPARE_BUFFERS]; /* the largest host buffers that are no longer used */
    uint64_t nanoseconds;   /* nanoseconds spent moving data, including waits */
    /* The current slice; size 0: none. */
    struct slices slices;
    int64_t start;
};

struct device_executor {
    struct executor base; /* must be first: executor functions cast back */
    struct launcher launcher;
    struct healcl_error launch_error; /* empty between steps: clearing it at each takes time */
    bool has_refused;                 /* a check of data has failed */
    bool status_is_initial; /* the status buffer is initialized, and no kernel has used it since */
    struct download *downloads;
    size_t download_count, download_capacity;
    uint64_t download_bytes;
    uint64_t recent_wait; /* nanoseconds of the longest drain, halved with each later one */
    /* If the segment's times are split: kernels are enqueued, since phase_start. */
    bool in_compute_phase;
    uint64_t phase_start;
    const struct result_sink *sink;
    struct reference *reference; /* runs steps that the device cannot; NULL before the first one */
    struct spill *spill;         /* if memory is limited, or NULL */
};

/* ---- device_executor_upload.c ---- */

/* Runs an upload step as it is done without a memory limit. */
enum healcl_status device_executor_upload(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error);

/* Whether a step fills all of a small storage with zeros, as most accumulators begin. */
bool device_executor_clears(const struct healcl_device *device, const struct step *step);

/* Clears a storage without memory with an upload, which needs no command. */
enum healcl_status device_executor_clear(struct device_executor *self,
                                         const struct storage *storage, struct healcl_error *error);

/* ---- device_executor_host.c ---- */

/* Runs a step on the host reference, and counts it under `reason`. The reference keeps no data
 * afterwards. */
enum healcl_status device_executor_run_on_host(struct device_executor *self,
                                               const struct step *step, const char *reason,
                                               struct healcl_error *error);

/* Counts a step once for each of its operations. The host ran it, or kernels other than a
 * manifest's. */
enum healcl_status device_executor_note_fallback(struct device_executor *self,
                                                 const struct step *step, const char *reason,
                                                 struct healcl_error *error);

/* ---- device_executor_result.c ---- */

/* Runs a download step: the result waits, or is handed out. */
enum healcl_status device_executor_download(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

/* Copies the results that wait in a storage, before the storage is written. */
enum healcl_status device_executor_move_results(struct device_executor *self,
                                                const struct storage *storage,
                                                struct healcl_error *error);

/* Releases a storage. Results waiting in it keep its memory. */
void device_executor_release_storage(struct device_executor *self, const struct storage *storage);

/* ---- device_executor_step.c ---- */

/* Runs a step. If device_executor_is_awaited holds for it, the queue must have been drained. */
enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

/* Whether the host can run what failed: the device lacks something for it, or is too small. */
bool device_executor_is_lacking(const struct healcl_error *error);

/* Skips a step of the side of a vendor's operation that is not run. Still releases the copies that
 * a kernel took before its build failed. If no kernel of the operation can be built, counts the
 * call as a fallback. */
enum healcl_status device_executor_leave_out(struct device_executor *self, const struct step *step,
                                             struct healcl_error *error);

/* ---- device_executor.c ---- */

/* Whether a result is handed out at once because it is too large for a second copy. */
bool device_executor_is_awaited(const struct device_executor *self, const struct step *step);

/* Hands bytes [offset, offset + bytes) of a buffer to the sink as a step's result. */
enum healcl_status device_executor_deliver(struct device_executor *self, const struct step *step,
                                           const struct buffer *buffer, uint64_t offset,
                                           uint64_t bytes, struct healcl_error *error);

/* Waits for the queue and reads the status that kernels wrote. */
enum healcl_status device_executor_read_status(struct device_executor *self,
                                               struct healcl_error *error);

/* ---- spill.c: limited device memory ---- */

void spill_free(struct device_executor *self);
void spill_reset(struct device_executor *self);

/* Whether the device has no room for a step, by number, besides its current contents. Waiting
 * results should then be handed out first. */
bool spill_is_short(struct device_executor *self, size_t step);

/* Runs a step, by number. Moves its tensors to the device first, or runs it in slices. */
enum healcl_status spill_run_step(struct device_executor *self, size_t number,
                                  struct healcl_error *error);

/* Returns as text the index of an element of input i that a check found. If a slice is current, the
 * index is that in the whole operand. spill may be NULL. */
void spill_index_text(const struct spill *spill, int i, const struct layout *elements,
                      int64_t position, char text[SHAPE_TEXT_SIZE]);

#endif
