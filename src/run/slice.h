/* A part of a step: some indices of an axis of each operand, on storages of their own. */
#ifndef HEALCL_RUN_SLICE_H
#define HEALCL_RUN_SLICE_H

#include "plan/memory.h"

struct slice {
    struct step step; /* refers to what follows: a slice stays where it is */
    struct tensor tensors[STEP_OPERANDS];
    struct storage storages[STEP_OPERANDS];
    int64_t first[STEP_OPERANDS]; /* of the whole storage's elements, where the slice's begins */
    int64_t start, size;          /* indices of the axes */
};

/* Cuts a step. Storages get ids from first_id on, by operand. Operands that are not cut stay as
 * they are, or where all is true have such storages, too. The plan's scalars stay in theirs. */
void slice_init(struct slice *slice, const struct step *step, const struct slices *slices,
                int64_t start, int64_t size, uint32_t first_id, bool all);

/* The place in C order, among all elements of a tensor, of an element of a part of it. The part has
 * indices from start on of an axis of so many; axis NO_AXIS: it is the whole. */
int64_t slice_element(const struct layout *part, int axis, int64_t start, int64_t full,
                      int64_t position);

#endif
