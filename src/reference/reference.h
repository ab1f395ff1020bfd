/*
 * The host reference: every kind of step of a plan, in plain C and with exact integers.
 *
 * It is written to be easy to read. It is the oracle of the kernel tests, the fallback for what a
 * device lacks, and the executor of `healcl run --reference`.
 *
 * For a whole plan, call reference_create, reference_step for each step in order, and
 * reference_free. At a STEP_DOWNLOAD the caller reads the result with reference_read and compares
 * it.
 *
 * A single step on a test's arrays needs no transcript, only storages with ids below storage_count:
 *     struct plan plan = {.storage_count = 2};
 *     reference_create(&plan, &reference, &error);
 *     reference_lend(reference, step.in[0]->storage, a);
 *     reference_lend(reference, step.out->storage, out);
 *     reference_step(reference, &step, &error);
 */
#ifndef HEALCL_REFERENCE_REFERENCE_H
#define HEALCL_REFERENCE_REFERENCE_H

#include "plan/plan.h"

struct executor; /* defined by the caller */

/* The memory of one storage: its elements in their dtype. */
struct reference_memory {
    void *bytes; /* NULL before the first use and after a release */
    bool lent;   /* the caller owns bytes */
};

struct reference {
    const struct plan *plan;           /* must outlive the reference */
    struct reference_memory *memories; /* by storage id; without the plan's constants */
    uint64_t dropped_digits; /* count of values so far with gadget digits beyond those kept */
    int refused_input;       /* of the latest step; NO_INPUT if none */
    /* Called regularly within a step, unless NULL. An error ends the step; the elements that it
     * writes are then undefined. */
    enum healcl_status (*check)(const struct executor *executor, struct healcl_error *error);
    const struct executor *executor;
    int64_t unchecked; /* elements visited since the last check */
};

/* Uses only storage_count and constants of the plan. Errors: HEALCL_NO_MEMORY. */
enum healcl_status reference_create(const struct plan *plan, struct reference **result,
                                    struct healcl_error *error);
void reference_free(struct reference *reference);

/* Makes the caller's array the memory of a storage, until the storage is released or lent again. */
void reference_lend(struct reference *reference, const struct storage *storage, void *bytes);

/* Frees the memory of a storage, unless the caller lent it. */
void reference_forget(struct reference *reference, const struct storage *storage);

/*
 * Sets *bytes to the memory of a storage. It is allocated at first use, as zeros. The plan's
 * constants must only be read. Errors: HEALCL_NO_MEMORY.
 */
enum healcl_status reference_memory(struct reference *reference, const struct storage *storage,
                                    void **bytes, struct healcl_error *error);

/*
 * Executes one step. STEP_DOWNLOAD does nothing. A step whose out has no elements does nothing: it
 * refuses nothing and counts no dropped digits.
 * Errors: HEALCL_NO_MEMORY, and HEALCL_REFUSED for errors that only the data reveal. Then nothing
 * has been written, except by an upload. refused_input is the argument, and the message names it
 * with the first offending index:
 *     argument 'idx': 9 at [1, 0] is outside of axis 0 of size 4
 * The index omits axes along which the argument was broadcast (stride 0).
 */
enum healcl_status reference_step(struct reference *reference, const struct step *step,
                                  struct healcl_error *error);

/* Copies the elements of a tensor, in C order and packed, into an array of its dtype.
 * Errors: HEALCL_NO_MEMORY. */
enum healcl_status reference_read(struct reference *reference, const struct tensor *tensor,
                                  void *packed, struct healcl_error *error);

#endif
