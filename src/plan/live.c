#include "plan/live.h"

#include <stdlib.h>
#include <string.h>

struct storage *live_storage(struct live_storages *live)
{
    return live->free_count > 0 ? live->by_id[live->free_ids[--live->free_count]] : NULL;
}

static enum healcl_status init(struct live_plan *live, struct healcl_error *error)
{
    struct plan *plan = &live->plan;
    struct live_storages *storages = &live->storages;
    storages->storages = calloc(LIVE_STORAGES_MAX, sizeof *storages->storages);
    storages->by_id = calloc(LIVE_STORAGES_MAX, sizeof *storages->by_id);
    storages->free_ids = calloc(LIVE_STORAGES_MAX, sizeof *storages->free_ids);
    plan->arena = arena_create();
    plan->constants.arena = arena_create();
    live->planner.values = (struct values){.plan = plan, .arena = arena_create()};
    live->kept.arena = arena_create();
    plan->steps = calloc(LIVE_STEPS_MAX, sizeof *plan->steps);
    live->dropped = calloc(LIVE_STEPS_MAX, sizeof *live->dropped);
    plan->constants.values = calloc(LIVE_CONSTANTS_MAX, sizeof *plan->constants.values);
    live->segment.counts = calloc(operation_count(plan->table), sizeof *live->segment.counts);
    NEED_MEMORY(storages->storages && storages->by_id && storages->free_ids && plan->arena &&
                    plan->constants.arena && live->planner.values.arena && live->kept.arena &&
                    plan->steps && live->dropped && plan->constants.values && live->segment.counts,
                error);
    for (uint32_t id = 0; id < LIVE_STORAGES_MAX; id++) {
        storages->storages[id].id = id;
        storages->by_id[id] = &storages->storages[id];
        storages->free_ids[id] = LIVE_STORAGES_MAX - 1 - id; /* number 0 is taken first */
    }
    storages->free_count = LIVE_STORAGES_MAX;
    live->planner.step_capacity = LIVE_STEPS_MAX;
    live->planner.constant_capacity = LIVE_CONSTANTS_MAX;
    plan->storages = live->storages.by_id;
    plan->storage_count = LIVE_STORAGES_MAX;
    plan->constants.storage = live_storage(&live->storages);
    *plan->constants.storage = (struct storage){.id = plan->constants.storage->id,
                                                .dtype = DTYPE_INT64,
                                                .elements = LIVE_CONSTANTS_MAX,
                                                .scalars = plan->constants.values};
    return HEALCL_OK;
}

enum healcl_status live_plan_init(struct live_plan *live, const struct healcl_limits *limits,
                                  struct healcl_error *error)
{
    *live = (struct live_plan){.planner = planner_of_limits(limits)};
    live->segment.name = "";
    live->planner.plan = &live->plan;
    live->planner.live = &live->storages;
    live->planner.segment = &live->segment;
    live->plan.table = operations_of_limits(limits);
    live->plan.memory_limit = live->planner.memory_limit;
    enum healcl_status status = init(live, error);
    if (status != HEALCL_OK)
        live_plan_release(live);
    return status;
}

void live_plan_release(struct live_plan *live)
{
    names_clear(&live->planner.constants);
    arena_free(live->plan.arena);
    arena_free(live->plan.constants.arena);
    arena_free(live->planner.values.arena);
    arena_free(live->kept.arena);
    free(live->plan.steps);
    free(live->dropped);
    free(live->plan.constants.values);
    free(live->segment.counts);
    free(live->storages.storages);
    free(live->storages.by_id);
    free(live->storages.free_ids);
}

void live_plan_keep_calls(struct live_plan *live, const struct healcl_device *device,
                          bool (*runs_again)(const struct step *step,
                                             const struct healcl_device *device))
{
    live->kept.device = device;
    live->kept.runs_again = runs_again;
    live->planner.kept = &live->kept;
}

bool live_plan_is_full(const struct live_plan *live)
{
    return live->plan.step_count + CALL_STEPS_MAX > LIVE_STEPS_MAX ||
           live->calls_since >= LIVE_STEPS_MAX || /* views are no steps, but take memory */
           live->plan.constants.count + CALL_CONSTANTS_MAX > LIVE_CONSTANTS_MAX;
}

/* Plans a call by a function. */
static enum healcl_status plan_call(struct live_plan *live, struct call *call, infer_function *plan,
                                    size_t *first, struct healcl_error *error)
{
    struct planner *planner = &live->planner;
    const struct entry *entry = call->entry;
    const size_t free_count = live->storages.free_count, steps = live->plan.step_count;
    const uint64_t bytes_live = planner->bytes_live;
    call->planner = planner;
    enum healcl_status status = plan(call, error);
    if (status != HEALCL_OK) {
        error_prefix(error, "call %zu (%s): ", entry->index, entry->name);
        error_place(error, (int64_t)entry->index, operation_number(live->plan.table, entry->name));
        live->storages.free_count = free_count; /* the ids that it took still stand there */
        live->plan.step_count = steps;
        planner->bytes_live = bytes_live;
        live_plan_distrust(live); /* steps that never run were followed */
        return status;
    }
    live->calls++;
    *first = steps;
    return HEALCL_OK;
}

enum healcl_status live_plan_call(struct live_plan *live, const struct entry *entry, size_t *first,
                                  const struct tensor **result, struct healcl_error *error)
{
    struct call call = {.entry = entry};
    TRY(plan_call(live, &call, planner_operation, first, error));
    *result =
        call.form->operation->result == RESULT_NEW || call.form->operation->result == RESULT_ALIAS
            ? call.result
            : NULL;
    return HEALCL_OK;
}

enum healcl_status live_plan_copy(struct live_plan *live, const struct entry *entry, size_t *first,
                                  struct healcl_error *error)
{
    struct call call = {.entry = entry};
    return plan_call(live, &call, planner_copy, first, error);
}

enum healcl_status live_plan_drop(struct live_plan *live, const struct tensor *tensor,
                                  struct healcl_error *error)
{
    static const struct origin release = {.is_call = true, .name = "release"};
    static const struct origins origins = {.count = 1, .of = &release};
    if (--tensor->storage->references > 0)
        return HEALCL_OK;
    /* The caller's goes; and where memory runs out nothing stays that could be released. */
    struct tensor *dropped = &live->dropped[live->plan.step_count];
    *dropped = *tensor;
    live->planner.origins = &origins;
    return planner_release(&live->planner, dropped, error);
}

void live_plan_executed(struct live_plan *live, size_t first)
{
    for (size_t i = first; i < live->plan.step_count; i++)
        if (live->plan.steps[i].kind == STEP_RELEASE)
            live->storages.free_ids[live->storages.free_count++] =
                live->plan.steps[i].in[0]->storage->id;
}

void live_plan_distrust(struct live_plan *live)
{
    for (size_t id = 0; id < LIVE_STORAGES_MAX; id++)
        values_forget(&live->planner.values, live->storages.by_id[id]);
}

bool live_plan_forget(struct live_plan *live)
{
    struct plan *plan = &live->plan;
    plan->step_count = live->segment.step_count = live->calls_since = 0;
    arena_clear(plan->arena);
    if (live->kept.count > KEPT_CALLS_MAX) { /* no step comes from them any more */
        arena_clear(live->kept.arena);
        live->kept.count = 0;
        memset(live->kept.buckets, 0, sizeof live->kept.buckets);
    }
    if (plan->constants.count < LIVE_CONSTANTS_MAX / 2)
        return false;
    names_clear(&live->planner.constants);
    arena_clear(plan->constants.arena);
    plan->constants.count = 0;
    return true;
}
