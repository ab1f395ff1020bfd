/*
 * Plans of derived transcripts (run/loaded_transcript.h), which have the file, options and passes
 * of another transcript. A change rewrites the other plan as it was before its passes. The passes
 * then run on the result.
 *
 * A change walks through a plan and writes its steps anew, segment by segment. It may use other
 * storages, views and steps. What it writes is checked against the limits, like the content of a
 * file.
 */
#ifndef HEALCL_PLAN_DERIVE_H
#define HEALCL_PLAN_DERIVE_H

#include "plan/planner.h"

/* A plan that is being written, and the plan that it is written from. */
struct rewrite {
    struct planner planner; /* it writes planner.plan, the new plan */
    const struct plan *from;
    struct storage **of; /* by id in `from`: the new storage, see rewrite_operand; NULL: none yet */
};

/* Writes a whole plan. how: the argument of transcript_derive. Memory allocated in
 * rewrite->planner.plan->arena lives as long as the plan. */
typedef enum healcl_status plan_change(struct rewrite *rewrite, const void *how,
                                       struct healcl_error *error);

/* Begins a segment with the name and counts of a segment of `from`. The new plan needs all
 * segments, in order. */
enum healcl_status rewrite_segment(struct rewrite *rewrite, const struct segment *segment,
                                   struct healcl_error *error);

/* Adds a storage, for example for a copy. The caller adds a step that releases it. Errors:
 * HEALCL_REFUSED beyond the limit of memory, with the entry that made `like`. */
enum healcl_status rewrite_storage(struct rewrite *rewrite, const struct storage *like,
                                   int64_t elements, struct storage **result,
                                   struct healcl_error *error);

/* Makes a view of the new storage that replaces `storage` of `from`. The first call creates that
 * storage with `elements` elements; it counts as live from then on. The scalars of `from` are kept
 * as they are, whatever `elements` is. Errors: as rewrite_storage. */
enum healcl_status rewrite_operand(struct rewrite *rewrite, const struct storage *storage,
                                   int64_t elements, const struct layout *layout,
                                   const struct tensor **tensor, struct healcl_error *error);

/* Adds a step whose operands are views of new storages; a STEP_RELEASE ends its storage. The other
 * members of the step may still belong to `from`. Errors: HEALCL_REFUSED beyond the limits, with
 * its entry. */
enum healcl_status rewrite_step(struct rewrite *rewrite, const struct step *step,
                                struct healcl_error *error);

/* Makes the changed plan. It refers to memory that `from` owns. If `stays`, `from` must live as
 * long as the new plan; otherwise it is freed, also after an error. */
enum healcl_status plan_rewrite(struct plan *from, bool stays,
                                const struct healcl_plan_options *options, plan_change *change,
                                const void *how, struct plan **result, struct healcl_error *error);

#endif
