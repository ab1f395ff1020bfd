/* Compares facts that a plan states about values with the values. */
#ifndef HEALCL_TESTS_HELPER_CLAIMS_H
#define HEALCL_TESTS_HELPER_CLAIMS_H

#include "plan/plan.h"

struct claims {
    size_t nonnegative, residues; /* inputs of steps */
};

/* Runs a plan on the host reference and looks at each step's inputs before it. Adds what is claimed
 * of them to claims. Returns the first step of which that is not true; step_count where all is. */
size_t claims_check(const struct plan *plan, struct claims *claims);

#endif
