/* Shared by the passes. */
#ifndef HEALCL_PLAN_PASS_H
#define HEALCL_PLAN_PASS_H

#include "core/arena.h"
#include "plan/passes.h"

/* Steps that use a storage, by number, without releases. */
struct storage_uses {
    uint32_t first, last, count;
};

/* The state of one pass over the plan. */
struct pass_run {
    struct plan *plan;
    struct storage_uses *uses; /* by storage, as of the pass's beginning */
    uint32_t *next; /* by storage, for a pass that goes backwards: initially PASS_NO_STEP */
    const struct segment *segment; /* the current one; segments come from last to first */
    struct step *first, *end;      /* its steps */
    size_t pass;                   /* its index in passes.def */
    uint64_t changes;              /* steps changed or removed so far */
};

/* Passes compare steps that are at most this many steps apart, so that they take linear time. */
enum { PASS_WINDOW = 64 };

#define PASS_NO_STEP UINT32_MAX

/* Whether `reader` reads a storage that this segment made, exactly one other step of the segment
 * wrote it, and no further step uses it. Then *writer is the step that wrote it. */
bool pass_only_reader(const struct pass_run *run, const struct step *reader,
                      const struct storage *storage, struct step **writer);

/* Whether the steps come from few enough entries to be joined. */
bool pass_can_join(const struct step *first, const struct step *second);

/* Whether a step from `step` on and before `end` may read or write elements of a view, or releases
 * its storage. writes_only: ignores reads. */
bool pass_touches(const struct step *step, const struct step *end, const struct tensor *view,
                  bool writes_only);

/* Whether a step may read elements of a view. */
bool pass_reads(const struct step *step, const struct tensor *view);

/* Whether a step writes all elements of a view and reads none of them. */
bool pass_overwrites(const struct step *step, const struct tensor *view);

/* Whether a step only writes or releases, and no data can make it refuse. */
bool pass_never_refuses(const struct step *step);

/* Whether no step between two steps can refuse. */
bool pass_none_refuses(const struct step *from, const struct step *to);

/* Whether the writer can move down to the reader: its inputs do not change in between, and no step
 * in between could refuse before the writer would. */
bool pass_can_wait(const struct step *writer, const struct step *reader);

/* Whether a step must stay behind the earlier step `before`. */
bool pass_waits_for(const struct step *step, const struct step *before);

/* Replaces `kept`, one of the two steps, with a step that does the work of both. Sets its origins,
 * and removes the other step. */
enum healcl_status pass_join(struct pass_run *run, struct step *first, struct step *second,
                             struct step *kept, const struct step *both,
                             struct healcl_error *error);

/* Notes that the pass has changed a step. */
void pass_note(struct pass_run *run, struct step *step);

/* Removes the step from the plan when the pass ends. */
void pass_remove(struct pass_run *run, struct step *step);
static inline bool pass_has_removed(const struct step *step)
{
    return !step->origins;
}

/* `view` shows elements of `from`, and `to` replaces `from`, with the same shape. *result becomes
 * the same view of to's storage. Returns whether such a view exists. */
bool pass_move_view(const struct tensor *view, const struct tensor *from, const struct tensor *to,
                    struct tensor *result);

#define PASS(name, ...) \
    enum healcl_status pass_##name(struct pass_run *run, struct healcl_error *error);
#include "plan/passes.def"
#undef PASS

#endif
