/*
 * Plans that grow by a call at a time: operations by call. Each call is planned as an entry of a
 * transcript would be, with tensors in the place of names; its steps are executed at once, and kept
 * until all that was enqueued has been waited for.
 */
#ifndef HEALCL_PLAN_LIVE_H
#define HEALCL_PLAN_LIVE_H

#include "plan/planner.h"

enum {
    LIVE_STORAGES_MAX = 1 << 16, /* at one time */
    LIVE_STEPS_MAX = 4096,       /* between two waits, and calls */
    LIVE_CONSTANTS_MAX = 4096,   /* different integers between two resets of them */
    CALL_STEPS_MAX = 256,        /* of one call */
    CALL_CONSTANTS_MAX = 256
};

/* Storages of a live plan: their addresses stay, their ids are used again. */
struct live_storages {
    struct storage *storages; /* LIVE_STORAGES_MAX of them */
    struct storage **by_id;
    uint32_t *free_ids;
    size_t free_count;
};

struct live_plan {
    struct plan plan; /* its storage_count is that of all that there can be */
    struct planner planner;
    struct live_storages storages;
    struct kept_calls kept;
    struct tensor *dropped; /* by number of step, LIVE_STEPS_MAX of them: what a release names */
    struct segment segment;
    size_t calls;
    size_t calls_since; /* memory was forgotten; counted by who makes them, refused or not */
};

/* limits may be NULL. Errors: HEALCL_NO_MEMORY; then nothing is left to release. */
enum healcl_status live_plan_init(struct live_plan *live, const struct healcl_limits *limits,
                                  struct healcl_error *error);
void live_plan_release(struct live_plan *live);

/* Calls of vendors' operations may be kept: their steps run on a device. */
void live_plan_keep_calls(struct live_plan *live, const struct healcl_device *device,
                          bool (*runs_again)(const struct step *step,
                                             const struct healcl_device *device));

/* Whether the steps so far have to be waited for, and forgotten, before another call is planned. */
bool live_plan_is_full(const struct live_plan *live);

/* Plans a call: its steps are those of plan.steps from *first on. *result becomes the tensor that
 * it makes or views, alive until live_plan_forget, or NULL. Where it is refused, it has left
 * nothing. */
enum healcl_status live_plan_call(struct live_plan *live, const struct entry *entry, size_t *first,
                                  const struct tensor **result, struct healcl_error *error);

/* Plans a copy of the entry's first tensor to its second one likewise. */
enum healcl_status live_plan_copy(struct live_plan *live, const struct entry *entry, size_t *first,
                                  struct healcl_error *error);

/* One handle less views the tensor's storage; with the last one a step that releases it is added.
 * storage->references counts them. */
enum healcl_status live_plan_drop(struct live_plan *live, const struct tensor *tensor,
                                  struct healcl_error *error);

/* The steps from first on were executed: storages that they release can be used again. */
void live_plan_executed(struct live_plan *live, size_t first);

/* Something that was planned has failed: nothing is known of values any more. */
void live_plan_distrust(struct live_plan *live);

/* Everything was waited for: all steps are forgotten, and constants where they are many. Returns
 * whether constants were. */
bool live_plan_forget(struct live_plan *live);

#endif
