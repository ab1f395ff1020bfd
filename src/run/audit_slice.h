/*
 * A part of a step that can be done alone: some indices of one axis of its output, and of what goes
 * along with it (plan/axes.h), on storages of their own.
 */
#ifndef HEALCL_RUN_AUDIT_SLICE_H
#define HEALCL_RUN_AUDIT_SLICE_H

#include "plan/axes.h"

/* Indices [start, start + size) of the axes of a letter; letter 0: all of the step. */
struct audit_cut {
    const struct step *step;
    struct step_axes axes;
    char letter;
    int64_t full, start, size;
};

struct audit_slice {
    struct step step; /* refers to what follows: a slice stays where it is */
    struct tensor tensors[STEP_OPERANDS];
    struct storage storages[STEP_OPERANDS]; /* ids are the operands' numbers */
    int64_t first[STEP_OPERANDS]; /* of the whole storage's elements, where the slice's begins */
};

/* All of a step, with the outermost axis of its output that can be cut: the batch, where there is
 * one. */
struct audit_cut audit_cut_of(const struct step *step);

void audit_slice_init(struct audit_slice *slice, const struct audit_cut *cut);

/* Bytes that are read for it, the output behind the launch among them. */
uint64_t audit_slice_bytes(const struct audit_slice *slice);

/* The place in C order, among all elements of out, of an element of the slice's. */
int64_t audit_cut_element(const struct audit_cut *cut, int64_t position);

#endif
