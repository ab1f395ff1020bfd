/* Where a cut axis runs through a plan: the analysis behind split.h. */
#ifndef HEALCL_PLAN_SPLIT_AXES_H
#define HEALCL_PLAN_SPLIT_AXES_H

#include "plan/axes.h"
#include "plan/split.h"

/*
 * The axis has `count` indices, again and again, which are dealt to the ranks. A storage that is
 * cut has `unit` elements of one index behind each other, then those of the next, and begins again
 * after the last: element e belongs to index e / unit % count.
 */
struct split_axes {
    const struct plan *plan;
    int64_t count;
    int64_t *units; /* by storage; 0: it is whole on every rank */
};

/* The axis of a view along which indices run: element i belongs to index i / each % count. */
struct view_cut {
    uint32_t axis;
    int64_t each;
};

/* How a step meets the axis. */
struct step_cut {
    char letter;  /* of its axes, see axes.h; 0: it does not meet it */
    int64_t each; /* elements of the letter's axis for one index */
    bool sums;    /* its result is a sum over the axis */
};

/* Follows the axis of an upload's output to at least as many indices as there are ranks. Errors as
 * plan_split has them. */
enum healcl_status split_axes_find(const struct plan *plan, const struct step *upload,
                                   const struct healcl_split *split, struct split_axes *axes,
                                   struct healcl_error *error);
void split_axes_release(struct split_axes *axes);

/* Tells how a step meets the axis, once that has been followed. */
struct step_cut split_axes_step(const struct split_axes *axes, const struct step *step);

/* How a view lies in a storage that is cut. */
struct view_cut split_axes_view(const struct split_axes *axes, const struct tensor *tensor);

#endif
