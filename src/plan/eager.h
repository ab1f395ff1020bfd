/*
 * Plans that grow by one call at a time, for operations by call. Each call is planned like an entry
 * of a transcript, with tensors instead of names. Its steps are executed at once. They are kept
 * until all enqueued work has been waited for.
 */
#ifndef HEALCL_PLAN_EAGER_H
#define HEALCL_PLAN_EAGER_H

#include "plan/planner.h"

enum {
    EAGER_STORAGES_MAX = 1 << 16, /* alive at one time */
    EAGER_STEPS_MAX = 4096,       /* between two waits; also the most calls */
    EAGER_CONSTANTS_MAX = 4096,   /* different integers between two resets of the constants */
    CALL_STEPS_MAX = 256,         /* of one call */
    CALL_CONSTANTS_MAX = 256
};

/* Room for a live plan. The addresses of storages never change; their ids are reused. */
struct eager_storages {
    struct storage storages[EAGER_STORAGES_MAX], *by_id[EAGER_STORAGES_MAX];
    uint32_t free_ids[EAGER_STORAGES_MAX];
    size_t free_count;
    struct tensor dropped[EAGER_STEPS_MAX]; /* by step number: the tensors that releases name */
    int64_t constants[EAGER_CONSTANTS_MAX];
};

struct eager_plan {
    struct plan plan; /* its storage_count counts all storages that can exist */
    struct planner planner;
    struct eager_storages *storages;
    struct cached_calls kept; /* used if planner.kept is set to it */
    struct segment segment;
    size_t calls;
    /* Calls since memory was forgotten, refused ones included. The caller counts. */
    size_t calls_since;
};

/* options may be NULL. Errors: HEALCL_NO_MEMORY; nothing needs to be released then. */
enum healcl_status eager_plan_init(struct eager_plan *eager,
                                   const struct healcl_plan_options *options,
                                   struct healcl_error *error);
void eager_plan_release(struct eager_plan *eager);

/* Whether the steps so far must be waited for and forgotten before another call is planned. */
bool eager_plan_is_full(const struct eager_plan *eager);

/* Plans a call. Its steps are those of plan.steps from *first on. *result becomes the tensor that
 * the call makes or views, or NULL. It is alive until eager_plan_forget. A refused call leaves the
 * plan unchanged. */
enum healcl_status eager_plan_call(struct eager_plan *eager, const struct entry *entry,
                                   size_t *first, const struct tensor **result,
                                   struct healcl_error *error);

/* Drops one handle of the tensor's storage; storage->references counts handles. With the last
 * handle, adds a step that releases the storage. There must be fewer than EAGER_STEPS_MAX such
 * steps. */
enum healcl_status eager_plan_drop(struct eager_plan *eager, const struct tensor *tensor,
                                   struct healcl_error *error);

/* The steps from first on were executed: storages that they release can be used again. */
void eager_plan_executed(struct eager_plan *eager, size_t first);

/* A planned step has failed: forgets all that is known of values. */
void eager_plan_distrust(struct eager_plan *eager);

/* All work was waited for: forgets all steps, and the constants if there are many. Returns whether
 * it forgot the constants. */
bool eager_plan_forget(struct eager_plan *eager);

#endif
