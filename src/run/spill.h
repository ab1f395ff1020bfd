/*
 * A device's memory where it is less than the tensors of a plan take: what plan/memory.h asks for
 * is done by an executor, and the host keeps what it is told to.
 */
#ifndef HEALCL_RUN_SPILL_H
#define HEALCL_RUN_SPILL_H

#include "kernels/launcher.h"
#include "plan/memory.h"
#include "run/run.h"

enum { SPARE_BUFFERS = 4 };

struct spill {
    struct executor *executor; /* whose inputs are the caller's, and its trace */
    struct launcher *launcher;
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

/* Does an upload, as an executor does it without a limit. */
enum healcl_status device_executor_upload(struct executor *executor, const struct step *step,
                                          struct healcl_error *error);
/* Gives a storage's memory back, but to results that wait in it. */
void device_executor_release(struct executor *executor, const struct storage *storage);

/* Bounds what the launcher's device allocates from now on. Errors: as memory_init. */
enum healcl_status spill_create(struct executor *executor, struct launcher *launcher,
                                uint64_t limit, struct spill **result, struct healcl_error *error);
void spill_free(struct spill *spill);
void spill_reset(struct spill *spill);

/* Whether there is no room for a step, by number, beside what is on the device: results that wait
 * should be handed out before it. */
bool spill_is_short(struct spill *spill, size_t step);

/* Before and after a step, as memory_begin_step and memory_end_step. */
enum healcl_status spill_begin_step(struct spill *spill, size_t step, struct slices *slices,
                                    struct healcl_error *error);
enum healcl_status spill_end_step(struct spill *spill, const struct slices *slices,
                                  struct healcl_error *error);

/* Does a step in slices. after: called behind each of them, when the device has done it; its steps
 * live no longer. */
enum healcl_status spill_run_slices(struct spill *spill, const struct step *step,
                                    const struct slices *slices,
                                    enum healcl_status (*after)(struct executor *executor,
                                                                struct healcl_error *error),
                                    struct healcl_error *error);

/* The elements of a tensor that only the host has, packed; freed with free(). NULL where the device
 * has them. */
enum healcl_status spill_read(struct spill *spill, const struct tensor *tensor, char **packed,
                              struct healcl_error *error);

/* The index, as text, of an element of input i that a check has found, in the whole of the operand
 * where a slice is in hand. */
void spill_index_text(const struct spill *spill, int i, const struct layout *elements,
                      int64_t position, char text[SHAPE_TEXT_SIZE]);

#endif
