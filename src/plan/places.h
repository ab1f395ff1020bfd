/*
 * Places: buffers that storages of a plan share, one after the other, by their lifetimes. All of it
 * follows from the plan, so that what they take is known before it runs.
 *
 * The larger a storage, the earlier it gets its place: the smallest one that it fits into and that
 * nobody else has while it lives, or a new one, of its size ("greedy by size" for shared objects in
 * Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
 */
#ifndef HEALCL_PLAN_PLACES_H
#define HEALCL_PLAN_PLACES_H

#include "plan/plan.h"

#define NO_PLACE UINT32_MAX

struct places {
    uint32_t *of;    /* by storage: the number of its place, or NO_PLACE */
    uint64_t *bytes; /* by number: of the largest storage that has the place */
    size_t count;
    uint64_t place_bytes; /* the sum of these */
    uint64_t other_bytes; /* the most that live storages without a place take at one time */
    uint64_t live_bytes;  /* the most that all live storages take at one time */
};

/* Which storages get places. */
struct places_rule {
    uint64_t least; /* bytes: those of fewer have none */
    /* Whether a storage stays after its release, to the end of the plan; NULL: none does. */
    bool (*stays)(void *context, const struct storage *storage);
    void *context;
};

/* Results that wait for the end of their segment take at most about this much, and a quarter of
 * memory_limit, bytes that a plan may take. */
uint64_t pending_results_most(uint64_t memory_limit);

/*
 * Finds places for the storages of a plan. Of two that share one, the first is released before a
 * step uses the second. A storage that is handed out lives until its segment ends, or what waits
 * there has to be handed out earlier; and one that is uploaded lives from its segment's first step
 * on, for uploads do not wait for what is computed. Those that only one side of a vendor's
 * operation makes have no places, nor has any where the plan has 2^32 - 1 steps or more. Errors:
 * HEALCL_NO_MEMORY; there is nothing to release then.
 */
enum healcl_status places_init(struct places *places, const struct plan *plan,
                               const struct places_rule *rule, struct healcl_error *error);
void places_release(struct places *places);

#endif
