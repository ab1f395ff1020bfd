/*
 * Places: buffers that storages of a plan share, one after the other, by their lifetimes. They
 * follow from the plan alone, so their size is known before it runs.
 *
 * Larger storages get their places first. Each gets the smallest place that is large enough and
 * unused during its lifetime, or else a new one of its own size. This is "greedy by size" for
 * shared objects: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
 * 2020.
 */
#ifndef HEALCL_PLAN_PLACES_H
#define HEALCL_PLAN_PLACES_H

#include "plan/plan.h"

#define NO_PLACE UINT32_MAX

struct places {
    uint32_t *of;    /* by storage: the number of its place, or NO_PLACE */
    uint64_t *bytes; /* by place: bytes of the largest storage in it */
    size_t count;
    uint64_t place_bytes; /* the sum of bytes */
    uint64_t other_bytes; /* most bytes that live storages without a place take at one time */
    uint64_t live_bytes;  /* most bytes that all live storages take at one time */
};

/* Which storages get places. */
struct places_rule {
    uint64_t least; /* bytes: smaller storages get no place */
    /* Whether a storage stays after its release, to the end of the plan; NULL: none stays. */
    bool (*stays)(void *context, const struct storage *storage);
    void *context;
};

/* The most bytes, roughly, that results may hold until their segment ends. memory_limit is the most
 * that a plan may take; results get at most a quarter of it. */
uint64_t pending_results_most(uint64_t memory_limit);

/*
 * Finds places for the storages of a plan. Of two storages that share a place, the first is
 * released before a step uses the second. A downloaded storage lives until its segment ends, or
 * until pending results must be handed out earlier. An uploaded storage lives from its segment's
 * first step on, because uploads do not wait for computation. Storages that only one side of a
 * vendor's operation makes get no places. No storage gets one if the plan has 2^32 - 1 steps or
 * more. Errors: HEALCL_NO_MEMORY; nothing needs to be released then.
 */
enum healcl_status places_init(struct places *places, const struct plan *plan,
                               const struct places_rule *rule, struct healcl_error *error);
void places_release(struct places *places);

#endif
