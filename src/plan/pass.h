/* Shared by passes. */
#ifndef HEALCL_PLAN_PASS_H
#define HEALCL_PLAN_PASS_H

#include "core/arena.h"
#include "plan/passes.h"

/* Steps that use a storage, releases aside, by number. */
struct storage_uses {
    uint32_t first, last, count;
};

/* One pass on its way through the plan. */
struct pass_run {
    struct plan *plan;
    struct storage_uses *uses; /* by storage, as they were when the pass began */
    uint32_t *next; /* by storage, for a pass that goes backwards: PASS_NO_STEP to begin with */
    const struct segment *segment; /* in hand; segments come from the last to the first */
    struct step *first, *end;      /* its steps */
    size_t pass;                   /* its place in passes.def */
    uint64_t changes;              /* steps that have been changed or removed */
};

/* Steps apart that are looked at, so that passes stay linear. */
enum { PASS_WINDOW = 64 };

#define PASS_NO_STEP UINT32_MAX

/* Whether a step reads a storage that the segment has made and one other step of it has written,
 * and nobody else uses that storage: then *writer is that step. */
bool pass_only_reader(const struct pass_run *run, const struct step *reader,
                      const struct storage *storage, struct step **writer);

/* Whether steps come from few enough entries to become one. */
bool pass_can_join(const struct step *first, const struct step *second);

/* Whether a step from `step` on and before `end` may read or write elements of a view, or releases
 * its storage. writes_only: may write or releases. */
bool pass_touches(const struct step *step, const struct step *end, const struct tensor *view,
                  bool writes_only);

/* Whether a step may read elements of a view. */
bool pass_reads(const struct step *step, const struct tensor *view);

/* Whether a step writes all elements of a view and reads none of them. */
bool pass_overwrites(const struct step *step, const struct tensor *view);

/* Whether a step writes only, or releases, and no data can make it refuse. */
bool pass_never_refuses(const struct step *step);

/* Whether a writer's inputs stay as they are until a reader, and nothing in between could refuse
 * before the writer would. */
bool pass_can_wait(const struct step *writer, const struct step *reader);

/* Whether a step cannot be done before `before`, which is in front of it. */
bool pass_waits_for(const struct step *step, const struct step *before);

/* Puts a step that does the work of two, but for its origins, in the place of one of them, `kept`,
 * and takes the other one out. */
enum healcl_status pass_join(struct pass_run *run, struct step *first, struct step *second,
                             struct step *kept, const struct step *both,
                             struct healcl_error *error);

/* Notes that the pass has changed a step. */
void pass_note(struct pass_run *run, struct step *step);

/* Takes the step out of the plan once the pass has ended. */
void pass_remove(struct pass_run *run, struct step *step);
static inline bool pass_has_removed(const struct step *step)
{
    return !step->origins;
}

/* view, of elements of `from`, where `from` is `to` instead, which has its shape: *result is the
 * same view of to's storage. Returns whether there is one. */
bool pass_move_view(const struct tensor *view, const struct tensor *from, const struct tensor *to,
                    struct tensor *result);

#define PASS(name, ...) \
    enum healcl_status pass_##name(struct pass_run *run, struct healcl_error *error);
#include "plan/passes.def"
#undef PASS

#endif
