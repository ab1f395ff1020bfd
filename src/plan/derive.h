/*
 * Plans of derived transcripts (run/transcript.h), which have the file, limits and passes of
 * another. That is the other one's before passes, changed; passes follow.
 *
 * A change walks through a plan and writes its steps anew, segment by segment, with other storages,
 * views and steps where it wants. What it writes is checked against the limits as what a file says.
 */
#ifndef HEALCL_PLAN_DERIVE_H
#define HEALCL_PLAN_DERIVE_H

#include "plan/planner.h"

/* A plan that is being written, and the one that it is written from. */
struct rewrite {
    struct planner planner; /* of planner.plan, the new one */
    const struct plan *from;
    struct storage **of; /* by id of from's: the new one, see rewrite_operand; NULL: none so far */
};

/* Writes a whole plan. how: as transcript_derive was given it. What it allocates in
 * rewrite->planner.plan->arena lives as long as the plan does. */
typedef enum healcl_status plan_change(struct rewrite *rewrite, const void *how,
                                       struct healcl_error *error);

/* Begins a segment with the name and counts of one of from's; all have to be there, in order. */
enum healcl_status rewrite_segment(struct rewrite *rewrite, const struct segment *segment,
                                   struct healcl_error *error);

/* Adds a storage, as of a copy; the caller adds a step that releases it. Errors: HEALCL_REFUSED
 * beyond the limit of memory, with the entry that made `like`. */
enum healcl_status rewrite_storage(struct rewrite *rewrite, const struct storage *like,
                                   int64_t elements, struct storage **result,
                                   struct healcl_error *error);

/* Makes a view of the new storage in the place of one of from's: at the first call one of so many
 * elements is made, which counts as live from there. from's scalars stay as they are, with any
 * number. Errors: as rewrite_storage. */
enum healcl_status rewrite_operand(struct rewrite *rewrite, const struct storage *storage,
                                   int64_t elements, const struct layout *layout,
                                   const struct tensor **tensor, struct healcl_error *error);

/* Adds a step with operands of new storages; a STEP_RELEASE ends one. Of the rest of the step what
 * is from's may stay. Errors: HEALCL_REFUSED beyond the limits, with its entry. */
enum healcl_status rewrite_step(struct rewrite *rewrite, const struct step *step,
                                struct healcl_error *error);

/* Adds a step as it is, with storages of from's sizes. */
enum healcl_status rewrite_same(struct rewrite *rewrite, const struct step *step,
                                struct healcl_error *error);

/* Makes the changed plan. The new one refers to what `from` owns: where that stays it has to live
 * as long, and else it is freed in any case. */
enum healcl_status plan_rewrite(struct plan *from, bool stays, const struct healcl_limits *limits,
                                plan_change *change, const void *how, struct plan **result,
                                struct healcl_error *error);

#endif
