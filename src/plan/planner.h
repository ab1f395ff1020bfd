/* Shared by plan.c (entries, names, lifetimes) and infer.c (one operation). */
#ifndef HEALCL_PLAN_PLANNER_H
#define HEALCL_PLAN_PLANNER_H

#include "core/arena.h"
#include "plan/names.h"
#include "plan/plan.h"
#include "plan/values.h"

/* Default limit of elements that an operation may visit: hours on a fast device. */
#define WORK_LIMIT_DEFAULT (UINT64_C(1) << 42)

/* Cached plans of calls: cached_call.h. */
struct cached_calls {
    struct arena *arena;
    uint32_t count;  /* above CACHED_CALLS_MAX all are forgotten, together with the steps */
    uint64_t serial; /* of the latest one: step.call */
    struct cached_call *buckets[CACHED_CALLS_MAX]; /* by hash */
    uint64_t latest[CACHED_CALLS_MAX];             /* hashes of calls that were planned */
    /* Whether the device repeats its latest launch for a STEP_VENDOR step. The executor of the
     * steps sets this function. */
    bool (*runs_again)(const struct step *step, const struct healcl_device *device);
    const struct healcl_device *device;
};

struct planner {
    struct plan *plan;
    struct names names;
    struct names constants; /* from a scalar's text to the tensor of rank 0 that reads it */
    struct values values;
    uint64_t memory_limit, work_limit;
    enum healcl_expand expand;
    uint64_t bytes_live;
    uint64_t visits; /* sum of step_visits over the steps of the current operation */
    size_t step_capacity, segment_capacity, storage_capacity, constant_capacity;
    struct segment *segment;       /* the open one, or NULL */
    const struct origins *origins; /* the current entry, if it is an operation or a free */
    bool segment_is_named;
    enum step_side side; /* of the steps being added, and the call that they belong to */
    const struct vendor_call *vendor;
    const struct operation *outer; /* the operation whose body is being planned, or NULL */
    struct eager_storages *eager;  /* for operations by call (eager.c); NULL: for a transcript */
    struct cached_calls *kept;     /* NULL: nothing is cached */
};

/* One operation entry during planning. */
struct call {
    struct planner *planner;
    const struct entry *entry;
    const struct form *form;
    const struct tensor *tensors[PARAMETERS_MAX]; /* bound tensors of the arguments, or NULL */
    /* The OUT parameter's tensor. infer sets it if it is RESULT_NEW or omitted. */
    const struct tensor *result;
};

/* Returns a planner with these options, which may be NULL. */
struct planner planner_of_options(const struct healcl_plan_options *options);

/* Infers an operation whose arguments have the right kinds. Checks shapes, dtypes and values, adds
 * its steps to the plan, and sets call->result of a RESULT_NEW operation. */
enum healcl_status infer(struct call *call, struct healcl_error *error);

/* Copies parameter a to parameter out, of the same shape and dtype. */
enum healcl_status infer_copy(struct call *call, struct healcl_error *error);

/* Makes a new contiguous storage of that shape. It counts as live until its last name is
 * dropped. */
enum healcl_status planner_new_tensor(struct call *call, enum dtype dtype, uint32_t rank,
                                      const int64_t *shape, const struct tensor **tensor,
                                      struct healcl_error *error);

/* Adds a storage that is already known to fit the limits. It counts as live. */
enum healcl_status planner_add_storage(struct planner *planner, enum dtype dtype, int64_t elements,
                                       struct storage **result, struct healcl_error *error);

/* Begins a segment. Steps are added to it from here on. */
enum healcl_status planner_open_segment(struct planner *planner, const char *name, bool is_named,
                                        struct healcl_error *error);

/* Makes a scalar operand, as a tensor of rank 0. */
enum healcl_status planner_constant(struct planner *planner, int64_t value,
                                    const struct tensor **tensor, struct healcl_error *error);

/* Returns a step of the current entry. */
struct step planner_step(const struct planner *planner, enum step_kind kind,
                         const struct tensor *out);

/* Adds a step. Refuses one beyond the limits, and names its first argument. */
enum healcl_status planner_add_step(struct planner *planner, const struct step *step,
                                    struct healcl_error *error);

/* As planner_add_step, for a step that is known to be within the limits. */
enum healcl_status planner_append_step(struct planner *planner, const struct step *step,
                                       struct healcl_error *error);

/* Plans an operation up to its result, but does not bind the result to a name. The caller sets
 * call->planner and call->entry. Sets call->form and the members after it. */
enum healcl_status planner_operation(struct call *call, struct healcl_error *error);

/* Plans a copy of the entry's first tensor to its second one, in the same way. Both must be bound.
 * The operation counts as `contiguous`. */
enum healcl_status planner_copy(struct call *call, struct healcl_error *error);

/* Plans an operation that is an entry of another operation's body, as planner_operation does. Only
 * the outer operation is counted. */
enum healcl_status planner_inner_operation(struct call *call, struct healcl_error *error);

/* A storage for an operation by call; NULL if all are in use. */
struct storage *eager_storage(struct eager_storages *eager);

/* Drops a name, and the storage with its last name. Refuses a name that is not bound. */
enum healcl_status planner_free_name(struct planner *planner, const char *name,
                                     struct healcl_error *error);

/* Releases a storage that no name views. */
enum healcl_status planner_release(struct planner *planner, const struct tensor *tensor,
                                   struct healcl_error *error);

#endif
