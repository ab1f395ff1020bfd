#include "plan/eager.h"

#include <stdlib.h>
#include <string.h>

struct storage *eager_storage(struct eager_storages *eager)
{
    return eager->free_count > 0 ? eager->by_id[eager->free_ids[--eager->free_count]] : NULL;
}

static enum healcl_status eager_init(struct eager_plan *eager, struct healcl_error *error)
{
    struct plan *plan = &eager->plan;
    struct eager_storages *storages = eager->storages = calloc(1, sizeof *storages);
    plan->steps = calloc(EAGER_STEPS_MAX, sizeof *plan->steps);
    plan->arena = arena_create();
    plan->constants.arena = arena_create();
    eager->planner.values = (struct values){.plan = plan, .arena = arena_create()};
    eager->kept.arena = arena_create();
    eager->segment.counts = calloc(operation_count(plan->table), sizeof *eager->segment.counts);
    NEED_MEMORY(storages && plan->steps && plan->arena && plan->constants.arena &&
                    eager->planner.values.arena && eager->kept.arena && eager->segment.counts,
                error);
    for (uint32_t id = 0; id < EAGER_STORAGES_MAX; id++) {
        storages->storages[id].id = id;
        storages->by_id[id] = &storages->storages[id];
        storages->free_ids[id] = EAGER_STORAGES_MAX - 1 - id; /* id 0 is taken first */
    }
    storages->free_count = EAGER_STORAGES_MAX;
    eager->planner.step_capacity = EAGER_STEPS_MAX;
    eager->planner.constant_capacity = EAGER_CONSTANTS_MAX;
    eager->planner.eager = storages;
    plan->storages = storages->by_id;
    plan->storage_count = EAGER_STORAGES_MAX;
    plan->constants.values = storages->constants;
    plan->constants.storage = eager_storage(storages);
    *plan->constants.storage = (struct storage){.id = plan->constants.storage->id,
                                                .dtype = DTYPE_INT64,
                                                .elements = EAGER_CONSTANTS_MAX,
                                                .scalars = plan->constants.values};
    return HEALCL_OK;
}

enum healcl_status eager_plan_init(struct eager_plan *eager,
                                   const struct healcl_plan_options *options,
                                   struct healcl_error *error)
{
    *eager = (struct eager_plan){.planner = planner_of_options(options)};
    eager->segment.name = "";
    eager->planner.plan = &eager->plan;
    eager->planner.segment = &eager->segment;
    eager->plan.table = operations_of_options(options);
    eager->plan.memory_limit = eager->planner.memory_limit;
    enum healcl_status status = eager_init(eager, error);
    if (status != HEALCL_OK)
        eager_plan_release(eager);
    return status;
}

void eager_plan_release(struct eager_plan *eager)
{
    names_clear(&eager->planner.constants);
    arena_free(eager->plan.arena);
    arena_free(eager->plan.constants.arena);
    arena_free(eager->planner.values.arena);
    arena_free(eager->kept.arena);
    free(eager->plan.steps);
    free(eager->segment.counts);
    free(eager->storages);
}

bool eager_plan_is_full(const struct eager_plan *eager)
{
    return eager->plan.step_count + CALL_STEPS_MAX > EAGER_STEPS_MAX ||
           eager->calls_since >= EAGER_STEPS_MAX || /* views have no steps, but take memory */
           eager->plan.constants.count + CALL_CONSTANTS_MAX > EAGER_CONSTANTS_MAX;
}

enum healcl_status eager_plan_call(struct eager_plan *eager, const struct entry *entry,
                                   size_t *first, const struct tensor **result,
                                   struct healcl_error *error)
{
    struct planner *planner = &eager->planner;
    struct call call = {.planner = planner, .entry = entry};
    const size_t free_count = eager->storages->free_count, steps = eager->plan.step_count;
    const uint64_t bytes_live = planner->bytes_live;
    enum healcl_status status =
        entry->kind == ENTRY_COPY ? planner_copy(&call, error) : planner_operation(&call, error);
    if (status != HEALCL_OK) {
        error_prefix(error, "call %zu (%s): ", entry->index, entry->name);
        error_place(error, (int64_t)entry->index, operation_number(eager->plan.table, entry->name));
        eager->storages->free_count = free_count; /* the array still has these ids */
        eager->plan.step_count = steps;
        planner->bytes_live = bytes_live;
        eager_plan_distrust(eager); /* values_follow saw steps that never run */
        return status;
    }
    eager->calls++;
    *first = steps;
    *result =
        call.form->operation->result == RESULT_NEW || call.form->operation->result == RESULT_ALIAS
            ? call.result
            : NULL;
    return HEALCL_OK;
}

enum healcl_status eager_plan_drop(struct eager_plan *eager, const struct tensor *tensor,
                                   struct healcl_error *error)
{
    static const struct origin release = {.is_call = true, .name = "release"};
    static const struct origins origins = {.count = 1, .of = &release};
    if (--tensor->storage->references > 0)
        return HEALCL_OK;
    /* The caller's tensor disappears. If memory runs out, nothing is left to release. */
    struct tensor *dropped = &eager->storages->dropped[eager->plan.step_count];
    *dropped = *tensor;
    eager->planner.origins = &origins;
    return planner_release(&eager->planner, dropped, error);
}

void eager_plan_executed(struct eager_plan *eager, size_t first)
{
    for (size_t i = first; i < eager->plan.step_count; i++)
        if (eager->plan.steps[i].kind == STEP_RELEASE)
            eager->storages->free_ids[eager->storages->free_count++] =
                eager->plan.steps[i].in[0]->storage->id;
}

void eager_plan_distrust(struct eager_plan *eager)
{
    for (size_t id = 0; id < EAGER_STORAGES_MAX; id++)
        values_forget(&eager->planner.values, eager->storages->by_id[id]);
}

bool eager_plan_forget(struct eager_plan *eager)
{
    struct plan *plan = &eager->plan;
    plan->step_count = eager->segment.step_count = eager->calls_since = 0;
    arena_clear(plan->arena);
    if (eager->kept.count > CACHED_CALLS_MAX) { /* no step refers to them any more */
        arena_clear(eager->kept.arena);
        eager->kept.count = 0;
        memset(eager->kept.buckets, 0, sizeof eager->kept.buckets);
        memset(eager->kept.latest, 0, sizeof eager->kept.latest);
    }
    if (plan->constants.count < EAGER_CONSTANTS_MAX / 2)
        return false;
    names_clear(&eager->planner.constants);
    arena_clear(plan->constants.arena);
    plan->constants.count = 0;
    return true;
}
