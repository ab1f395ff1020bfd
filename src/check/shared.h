/* What all failures of a check have in common: often that is what is wrong. */
#ifndef HEALCL_CHECK_SHARED_H
#define HEALCL_CHECK_SHARED_H

#include "check/problem_check.h"

struct shared_facts {
    uint64_t count; /* failures so far; with none, nothing is shared */
    bool same_n, same_dtype;
    int64_t n;
    enum dtype dtype; /* of values */
    /* Those that each failing call had, in rising order. */
    int64_t *moduli;
    size_t modulus_count;
};

/* Adds a failure of a call. Where memory runs out no modulus is shared. */
void shared_add(struct shared_facts *shared, int64_t n, enum dtype dtype,
                const struct problem *problem, const struct problem_data *data);
void shared_release(struct shared_facts *shared);

#endif
