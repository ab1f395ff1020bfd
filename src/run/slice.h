/* A part of a step: a range of indices of one axis of each operand, on separate storages. */
#ifndef HEALCL_RUN_SLICE_H
#define HEALCL_RUN_SLICE_H

#include "plan/memory.h"

struct slice {
    struct step step; /* refers to the members below: a slice must not be moved */
    struct tensor tensors[STEP_OPERANDS];
    struct storage storages[STEP_OPERANDS];
    /* Offset of the slice's storage in the whole storage, in elements. */
    int64_t first[STEP_OPERANDS];
    int64_t start, size; /* indices of the axes */
};

/* Cuts a step. Storages get ids from first_id on, in the order of operands. Operands that are not
 * cut keep their storages, unless `all` is true. The plan's scalars always keep theirs. */
void slice_init(struct slice *slice, const struct step *step, const struct slices *slices,
                int64_t start, int64_t size, uint32_t first_id, bool all);

/* Returns the place in C order, in the whole tensor, of an element of a part of it. The part has
 * `size` indices of an axis, from `start` on. axis NO_AXIS: the part is the whole tensor. */
int64_t slice_element(const struct layout *part, int axis, int64_t start, int64_t full,
                      int64_t position);

#endif
