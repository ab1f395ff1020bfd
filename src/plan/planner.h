/* Shared by plan.c (entries, names, lifetimes) and infer.c (one operation). */
#ifndef HEALCL_PLAN_PLANNER_H
#define HEALCL_PLAN_PLANNER_H

#include "core/arena.h"
#include "plan/names.h"
#include "plan/plan.h"
#include "plan/values.h"

/* Elements that an operation may visit where nothing else is said: hours of a fast device. */
#define WORK_LIMIT_DEFAULT (UINT64_C(1) << 42)

enum { CACHED_CALLS_MAX = 256 };

/* Steps that calls of vendors' operations have planned, for calls with arguments of the same
 * shapes, layouts and integers (vendor/cached_call.c): they take one step, without a look at the
 * manifest. */
struct cached_calls {
    struct arena *arena;
    uint32_t count; /* above CACHED_CALLS_MAX all are forgotten, together with the steps */
    const struct cached_call *buckets[CACHED_CALLS_MAX]; /* by hash */
    /* Whether the device runs a step of the kind STEP_VENDOR with the launch that ran last; set by
     * who executes the steps. */
    bool (*runs_again)(const struct step *step, const struct healcl_device *device);
    const struct healcl_device *device;
};

struct planner {
    struct plan *plan;
    struct names names;
    struct names constants; /* a scalar as text, and the tensor of rank 0 that reads it */
    struct values values;
    uint64_t memory_limit, work_limit;
    enum healcl_expand expand;
    uint64_t bytes_live;
    uint64_t visits; /* step_visits of the steps of the operation in hand */
    size_t step_capacity, segment_capacity, storage_capacity, constant_capacity;
    struct segment *segment;       /* the open one, or NULL */
    const struct origins *origins; /* the entry in hand, if it is an operation or a free */
    bool segment_is_named;
    enum step_side side; /* of the steps that are added, and whose they are */
    const struct vendor_call *vendor;
    const struct operation *outer; /* whose body is planned, or NULL */
    struct eager_storages *eager;  /* of operations by call (eager.c); NULL: of a transcript */
    struct cached_calls *kept;     /* NULL: nothing is cached */
};

/* One operation entry while it is planned. */
struct call {
    struct planner *planner;
    const struct entry *entry;
    const struct form *form;
    const struct tensor *tensors[PARAMETERS_MAX]; /* bound tensors of the arguments, or NULL */
    const struct tensor *result; /* the OUT parameter's; infer sets it if RESULT_NEW, or left out */
};

/* One that plans within limits, which may be NULL. */
struct planner planner_of_limits(const struct healcl_limits *limits);

/* Works out an operation whose arguments have the right kinds: checks shapes, dtypes and values,
 * adds its steps to the plan and sets call->result of a RESULT_NEW operation. */
enum healcl_status infer(struct call *call, struct healcl_error *error);

/* Copies a to out, parameters of the form, of the same shape and dtype. */
enum healcl_status infer_copy(struct call *call, struct healcl_error *error);

/* A new storage of the layout's elements; it counts as eager until its last name is dropped. */
enum healcl_status planner_new_tensor(struct call *call, enum dtype dtype, uint32_t rank,
                                      const int64_t *shape, const struct tensor **tensor,
                                      struct healcl_error *error);

/* A new storage, in the limits already; it counts as eager. */
enum healcl_status planner_add_storage(struct planner *planner, enum dtype dtype, int64_t elements,
                                       struct storage **result, struct healcl_error *error);

/* Begins a segment, which steps are added to from here on. */
enum healcl_status planner_open_segment(struct planner *planner, const char *name, bool is_named,
                                        struct healcl_error *error);

/* A scalar operand, as a tensor of rank 0. */
enum healcl_status planner_constant(struct planner *planner, int64_t value,
                                    const struct tensor **tensor, struct healcl_error *error);

/* A step of the entry in hand. */
struct step planner_step(const struct planner *planner, enum step_kind kind,
                         const struct tensor *out);

/* Refuses a step that goes beyond the limits, with the first argument named. */
enum healcl_status planner_add_step(struct planner *planner, const struct step *step,
                                    struct healcl_error *error);

/* Plans an operation up to its result, which is not bound to a name: sets call->form and the
 * members behind it. call->planner and call->entry are given. */
enum healcl_status planner_operation(struct call *call, struct healcl_error *error);

/* Plans a copy of the entry's first tensor to its second one, both bound, in the same way. It
 * counts as contiguous. */
enum healcl_status planner_copy(struct call *call, struct healcl_error *error);

/* Plans an operation that is an entry of another one's body, as planner_operation does; only the
 * other one is counted. */
enum healcl_status planner_inner_operation(struct call *call, struct healcl_error *error);

/* A storage for an operation by call; NULL where there are too many. */
struct storage *eager_storage(struct eager_storages *eager);

/* Drops a name, and with the last one its storage. Refuses a name that is not bound. */
enum healcl_status planner_free_name(struct planner *planner, const char *name,
                                     struct healcl_error *error);

/* Ends a storage that no name views. */
enum healcl_status planner_release(struct planner *planner, const struct tensor *tensor,
                                   struct healcl_error *error);

#endif
