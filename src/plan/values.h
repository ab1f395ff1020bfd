/*
 * What is known of values before any data are read. Steps are followed in order. Each gets what is
 * known of its inputs. What follows for its output is noted with the output's storage, until
 * another step writes there. Uploads are unknown.
 */
#ifndef HEALCL_PLAN_VALUES_H
#define HEALCL_PLAN_VALUES_H

#include "plan/plan.h"

enum {
    KNOWN_AXES = 4,  /* of a known view, after merging */
    KNOWN_VIEWS = 4, /* of a storage, the most recently written */
};

/*
 * A part of a storage whose elements are all at least 0 and below a limit. Those with moduli are
 * residues: the element at offset + i0*stride0 + i1*stride1 + ... is below the one at moduli_offset
 * + i0*moduli_stride0 + ... of the moduli's storage, unless that has been written since.
 */
struct known {
    struct known *next;           /* in the storage's list, or the list of unused ones */
    uint64_t limit;               /* in [1, 2^63] */
    const struct storage *moduli; /* NULL: none */
    uint64_t moduli_writes;       /* the moduli storage's writes when this was noted */
    int64_t offset, moduli_offset;
    uint32_t rank;
    struct known_axis {
        int64_t size, stride, moduli_stride;
    } axes[KNOWN_AXES]; /* each longer than 1, largest stride first */
};

struct values {
    const struct plan *plan;
    struct arena *arena; /* owns the facts */
    struct known *unused;
};

/* Sets what is known of the step's inputs, then notes what is known of its output. Call it for all
 * steps of a plan, in order. Errors: HEALCL_NO_MEMORY. */
enum healcl_status values_follow(struct values *values, struct step *step,
                                 struct healcl_error *error);

/* Derives anew what is known of the values of a whole plan. */
enum healcl_status values_follow_plan(struct plan *plan, struct healcl_error *error);

/* Forgets all that is known of a storage. */
void values_forget(struct values *values, struct storage *storage);

#endif
