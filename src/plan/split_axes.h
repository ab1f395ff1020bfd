/* Where a split axis runs through a plan: the analysis behind split.h. */
#ifndef HEALCL_PLAN_SPLIT_AXES_H
#define HEALCL_PLAN_SPLIT_AXES_H

#include "plan/axes.h"
#include "plan/split.h"

/*
 * The axis has `count` indices, which are divided among the ranks, and may repeat. A split storage
 * holds `unit` elements of one index, then those of the next, and starts over after the last:
 * element e belongs to index e / unit % count.
 */
struct split_axes {
    const struct plan *plan;
    int64_t count;
    int64_t *units; /* by storage; 0: it is whole on every rank */
};

/* The axis of a view along which the indices run: its element i belongs to index i / each %
 * count. */
struct view_cut {
    uint32_t axis;
    int64_t each;
};

/* How a step meets the axis. */
struct step_cut {
    char letter;  /* the axis's letter, see axes.h; 0: the step does not meet it */
    int64_t each; /* elements along the letter's axis for one index */
    bool sums;    /* its result is a sum over the axis */
};

/* Follows the axis of an upload's output until it has at least one index for each rank. Errors: as
 * plan_split. */
enum healcl_status split_axes_find(const struct plan *plan, const struct step *upload,
                                   const struct healcl_split *split, struct split_axes *axes,
                                   struct healcl_error *error);
void split_axes_release(struct split_axes *axes);

/* How a step meets the axis. Call it after split_axes_find. */
struct step_cut split_axes_step(const struct split_axes *axes, const struct step *step);

/* How a view is placed in a split storage. */
struct view_cut split_axes_view(const struct split_axes *axes, const struct tensor *tensor);

#endif
