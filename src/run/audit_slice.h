/*
 * Parts of a step that can be done alone: so much of each of the axes that go with one of out's
 * (plan/axes.h), on storages of their own.
 */
#ifndef HEALCL_RUN_AUDIT_SLICE_H
#define HEALCL_RUN_AUDIT_SLICE_H

#include "plan/axes.h"

/* How far a step is cut, by letters of its axes; full 0: no such letter, or one that is not cut. */
struct audit_cut {
    const struct step *step;
    struct step_axes axes;
    int64_t full[AXIS_LETTERS], start[AXIS_LETTERS], size[AXIS_LETTERS];
};

struct audit_slice {
    struct step step; /* refers to what follows: a slice stays where it is */
    struct tensor tensors[STEP_OPERANDS];
    struct storage storages[STEP_OPERANDS]; /* ids are the operands' numbers */
    int64_t first[STEP_OPERANDS]; /* of the whole storage's elements, where the slice's begins */
};

/* What the reference takes on this host, in nanoseconds. */
struct audit_rates {
    double fixed;                 /* for each audit */
    double per_byte;              /* that is read */
    double per_visit[STEP_KINDS]; /* of step_visits */
};

/* The smallest part that is worth it: AUDIT_LANES neighbours in memory, with all moduli where these
 * are few and cost little. */
enum { AUDIT_LANES = 64, AUDIT_MODULI_MOST = 64 };
void audit_cut_least(struct audit_cut *cut, const struct step *step,
                     const struct audit_rates *rates);

/* More of all axes, while it costs no more than so many nanoseconds. */
void audit_cut_grow(struct audit_cut *cut, const struct audit_rates *rates, double nanoseconds);

/* Puts it somewhere: parts lie at multiples of their sizes, where they can. */
void audit_cut_place(struct audit_cut *cut, uint64_t *random);

/* The part of a step. */
void audit_slice_init(struct audit_slice *slice, const struct audit_cut *cut);

/* Bytes that are read for it, the output behind the launch among them. */
uint64_t audit_slice_bytes(const struct audit_slice *slice);

/* Nanoseconds that it takes. */
double audit_slice_cost(const struct audit_slice *slice, const struct audit_rates *rates);

/* The place in C order, among all elements of out, of an element of the slice's. */
int64_t audit_cut_element(const struct audit_cut *cut, int64_t position);

/* The next number of a sequence: SplitMix64, by Guy Steele, Doug Lea and Christine Flood, 2014. */
uint64_t audit_random(uint64_t *state);

#endif
