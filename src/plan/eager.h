/*
 * Plans that grow by a call at a time: operations by call. Each call is planned as an entry of a
 * transcript would be, with tensors in the place of names; its steps are executed at once, and kept
 * until all that was enqueued has been waited for.
 */
#ifndef HEALCL_PLAN_EAGER_H
#define HEALCL_PLAN_EAGER_H

#include "plan/planner.h"

enum {
    EAGER_STORAGES_MAX = 1 << 16, /* at one time */
    EAGER_STEPS_MAX = 4096,       /* between two waits, and calls */
    EAGER_CONSTANTS_MAX = 4096,   /* different integers between two resets of them */
    CALL_STEPS_MAX = 256,         /* of one call */
    CALL_CONSTANTS_MAX = 256
};

/* Storages of a live plan: their addresses stay, their ids are used again. */
struct eager_storages {
    struct storage *storages; /* EAGER_STORAGES_MAX of them */
    struct storage **by_id;
    uint32_t *free_ids;
    size_t free_count;
};

struct eager_plan {
    struct plan plan; /* its storage_count is that of all that there can be */
    struct planner planner;
    struct eager_storages storages;
    struct cached_calls kept;
    struct tensor *dropped; /* by number of step, EAGER_STEPS_MAX of them: what a release names */
    struct segment segment;
    size_t calls;
    size_t calls_since; /* memory was forgotten; counted by who makes them, refused or not */
};

/* limits may be NULL. Errors: HEALCL_NO_MEMORY; then nothing is left to release. */
enum healcl_status eager_plan_init(struct eager_plan *eager, const struct healcl_limits *limits,
                                   struct healcl_error *error);
void eager_plan_release(struct eager_plan *eager);

/* Calls of vendors' operations may be kept: their steps run on a device. */
void eager_plan_cache_calls(struct eager_plan *eager, const struct healcl_device *device,
                            bool (*runs_again)(const struct step *step,
                                               const struct healcl_device *device));

/* Whether the steps so far have to be waited for, and forgotten, before another call is planned. */
bool eager_plan_is_full(const struct eager_plan *eager);

/* Plans a call: its steps are those of plan.steps from *first on. *result becomes the tensor that
 * it makes or views, alive until eager_plan_forget, or NULL. Where it is refused, it has left
 * nothing. */
enum healcl_status eager_plan_call(struct eager_plan *eager, const struct entry *entry,
                                   size_t *first, const struct tensor **result,
                                   struct healcl_error *error);

/* Plans a copy of the entry's first tensor to its second one likewise. */
enum healcl_status eager_plan_copy(struct eager_plan *eager, const struct entry *entry,
                                   size_t *first, struct healcl_error *error);

/* One handle less views the tensor's storage; with the last one a step that releases it is added,
 * of which there are fewer than EAGER_STEPS_MAX. storage->references counts handles. */
enum healcl_status eager_plan_drop(struct eager_plan *eager, const struct tensor *tensor,
                                   struct healcl_error *error);

/* The steps from first on were executed: storages that they release can be used again. */
void eager_plan_executed(struct eager_plan *eager, size_t first);

/* Something that was planned has failed: nothing is known of values any more. */
void eager_plan_distrust(struct eager_plan *eager);

/* Everything was waited for: all steps are forgotten, and constants where they are many. Returns
 * whether constants were. */
bool eager_plan_forget(struct eager_plan *eager);

#endif
