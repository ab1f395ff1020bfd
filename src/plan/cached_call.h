/*
 * A cache of planned calls. A call finds the plan of an earlier one that differs at most in its
 * tensors' storages, in the values of scalars, and in what is known of values.
 */
#ifndef HEALCL_PLAN_CACHED_CALL_H
#define HEALCL_PLAN_CACHED_CALL_H

#include "plan/eager.h"

/* What a call's plan depends on. */
struct call_key {
    uint64_t hash;
    size_t count;
    int64_t words[1 + PARAMETERS_MAX * (3 + 2 * LAYOUT_RANK)];
};

struct cached_call {
    struct cached_call *next; /* of the same bucket */
    uint64_t hash;
    struct step step;              /* without facts; its operands belong to it */
    int8_t sources[STEP_OPERANDS]; /* the argument that gives each operand; -1: a new tensor */
    struct layout out;             /* of that */
    uint64_t bytes;                /* that the call needs beside its tensors, at most */
    size_t count;                  /* of the key's words */
    int64_t words[];
};

/* Makes the key of a call. Returns false for a call that is not cached. */
bool call_key(const struct call *call, struct call_key *key);

/* NULL: there is none. */
struct cached_call *cached_call_find(const struct cached_calls *all, const struct call_key *key);

/* Adds a call whose plan is this step. The caller sets `bytes`. NULL: out of memory. */
struct cached_call *cached_call_add(const struct call *call, const struct call_key *key,
                                    const struct step *step);

/* Keeps the plan of a call of a built-in operation, if the last such call with a hash in this
 * bucket was the same, and if its plan is one step: step `first` of the plan. */
void cached_call_keep(const struct call *call, const struct call_key *key, size_t first);

/* Plans a call as the one that is kept. The kernel of a manifest must be the one that ran last.
 * Returns false if there is none that serves. */
bool cached_call_repeat(struct call *call, const struct call_key *key, enum healcl_status *status,
                        struct healcl_error *error);

#endif
