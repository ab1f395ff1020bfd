/*
 * Parts of plans, for ranks that do one large request together: an input is cut along an axis, and
 * with it all that the axis runs through, as the signatures of steps tell (axes.h).
 *
 * Each storage is whole on every rank, or cut. A step that meets the axis works on its rank's part
 * of it: what is whole is read in part. Where the axis is summed, each rank has a summand of
 * the result, and an exchange (struct exchange) makes it whole. What is only read in parts is cut
 * too, back to its uploads.
 */
#ifndef HEALCL_PLAN_SPLIT_H
#define HEALCL_PLAN_SPLIT_H

#include "plan/plan.h"

/* What rank has of an input's axis; of ranks that do the same. */
struct split {
    const struct step *upload; /* of the input */
    uint32_t axis;
    uint32_t rank, ranks;
};

/*
 * Makes a plan that no pass has seen the part of a rank. Parts of an axis differ by at most one
 * element, or where a view takes several elements together, by so many. Errors: HEALCL_USAGE for an
 * axis, rank or number of ranks that cannot be; HEALCL_REFUSED where an operation mixes the axis or
 * takes a part of it, with entry and operation, and where there are more ranks than parts;
 * HEALCL_NO_MEMORY. After an error the plan is only to be freed.
 */
MUST_CHECK enum healcl_status plan_split(struct plan *plan, const struct split *split,
                                         struct healcl_error *error);

#endif
