/*
 * Knowledge of values before any data are seen. Steps are followed in their order: each gets
 * what is known of its inputs, and what it makes of its output is noted with that storage,
 * until something else is written there. Uploads are unknown.
 */
#ifndef HEALCL_PLAN_VALUES_H
#define HEALCL_PLAN_VALUES_H

#include "plan/plan.h"

enum {
    KNOWN_AXES = 4,  /* merged ones, of a view that something is known of */
    KNOWN_VIEWS = 4, /* of a storage, the last ones that were written */
};

/*
 * A part of a storage whose elements are all at least 0 and below a limit, and those with moduli
 * are residues: the element at offset + i0*stride0 + i1*stride1 + ... is below the one at
 * moduli_offset + i0*moduli_stride0 + ... of the moduli's storage, if that has not been written
 * since.
 */
struct known {
    struct known *next;           /* of the storage, or of those that are unused */
    uint64_t limit;               /* in [1, 2^63] */
    const struct storage *moduli; /* NULL: none */
    uint64_t moduli_writes;       /* that storage's, when this was found out */
    int64_t offset, moduli_offset;
    uint32_t rank;
    struct known_axis {
        int64_t size, stride, moduli_stride;
    } axes[KNOWN_AXES]; /* of more than one element, by falling strides */
};

struct values {
    const struct plan *plan;
    struct arena *arena; /* of what is known */
    struct known *unused;
};

/* Sets what is known of the step's inputs, then notes what is of its output. All steps of a plan,
 * in their order. Errors: HEALCL_NO_MEMORY. */
enum healcl_status values_follow(struct values *values, struct step *step,
                                 struct healcl_error *error);

/* Works out anew what is known of the values of a whole plan. */
enum healcl_status values_follow_plan(struct plan *plan, struct healcl_error *error);

/* Nothing is known of a storage any more. */
void values_forget(struct values *values, struct storage *storage);

#endif
