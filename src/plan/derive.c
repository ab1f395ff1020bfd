#include "plan/derive.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "plan/memory.h"

enum healcl_status rewrite_segment(struct rewrite *rewrite, const struct segment *segment,
                                   struct healcl_error *error)
{
    if (rewrite->from->input_parts)
        FAIL(error, HEALCL_USAGE, "a part of a split transcript cannot be split or widened again");
    TRY(planner_open_segment(&rewrite->planner, segment->name, true, error));
    struct segment *made = rewrite->planner.segment;
    memcpy(made->counts, segment->counts,
           operation_count(rewrite->from->table) * sizeof *made->counts);
    made->frees = segment->frees;
    made->operations = segment->operations;
    return HEALCL_OK;
}

enum healcl_status rewrite_storage(struct rewrite *rewrite, const struct storage *like,
                                   int64_t elements, struct storage **result,
                                   struct healcl_error *error)
{
    const struct planner *planner = &rewrite->planner;
    const uint64_t bytes = (uint64_t)elements * dtype_size(like->dtype);
    if (bytes > planner->memory_limit - planner->bytes_live) {
        (void)ERROR(error, HEALCL_REFUSED,
                    "%" PRIu64 " bytes beside %" PRIu64 " in use are above the limit of %" PRIu64,
                    bytes, planner->bytes_live, planner->memory_limit);
        error_because(error, HEALCL_CAUSE_LIMIT);
        error_prefix_origin(error, like->origin);
        return HEALCL_REFUSED;
    }
    TRY(planner_add_storage(&rewrite->planner, like->dtype, elements, result, error));
    (*result)->origin = like->origin;
    return HEALCL_OK;
}

enum healcl_status rewrite_operand(struct rewrite *rewrite, const struct storage *storage,
                                   int64_t elements, const struct layout *layout,
                                   const struct tensor **tensor, struct healcl_error *error)
{
    struct storage **made = &rewrite->of[storage->id];
    if (!*made)
        TRY(rewrite_storage(rewrite, storage, elements, made, error));
    return plan_view(rewrite->planner.plan, *made, layout, tensor, error);
}

enum healcl_status rewrite_step(struct rewrite *rewrite, const struct step *step,
                                struct healcl_error *error)
{
    struct planner *planner = &rewrite->planner;
    planner->visits = 0;
    if (step->kind == STEP_RELEASE)
        planner->bytes_live -= storage_bytes(step->in[0]->storage);
    enum healcl_status status = planner_add_step(planner, step, error);
    if (status != HEALCL_OK)
        error_prefix_step(error, step, step->in[0] ? 0 : NO_INPUT);
    return status;
}

/* Gives a plan its own arena and a copy of the scalars' values. */
static enum healcl_status refer_to(struct plan *plan, const struct plan *from,
                                   struct healcl_error *error)
{
    const size_t bytes = from->constants.count * sizeof *from->constants.values;
    plan->arena = plan->constants.arena = arena_create();
    plan->constants.values = malloc(bytes + 1);
    NEED_MEMORY(plan->arena && plan->constants.values, error);
    if (bytes > 0)
        memcpy(plan->constants.values, from->constants.values, bytes);
    return HEALCL_OK;
}

static enum healcl_status derive_begin(struct rewrite *rewrite, struct plan *from, bool stays,
                                       const struct healcl_plan_options *options,
                                       struct healcl_error *error)
{
    struct plan *plan = rewrite->planner.plan;
    *plan = *from;
    plan->steps = NULL;
    plan->segments = NULL;
    plan->storages = NULL;
    plan->step_count = plan->segment_count = plan->storage_count = 0;
    plan->uploads = plan->results = plan->expected = 0;
    plan->bytes_up = plan->bytes_down = plan->bytes_peak = 0;
    if (stays) {
        TRY(refer_to(plan, from, error));
    } else { /* Moves the scalars and everything in the old plan's arena to the new plan. */
        from->arena = NULL;
        from->constants.values = NULL;
    }
    rewrite->planner.memory_limit = plan->memory_limit;
    rewrite->planner.work_limit = options->work_limit ? options->work_limit : WORK_LIMIT_DEFAULT;
    rewrite->planner.values = (struct values){.plan = plan, .arena = plan->arena};
    /* The scalars come first, as in every plan. */
    struct storage *scalars = from->constants.storage, *place;
    TRY(planner_add_storage(&rewrite->planner, scalars->dtype, 0, &place, error));
    plan->storages[place->id] = rewrite->of[scalars->id] = scalars;
    return HEALCL_OK;
}

enum healcl_status plan_rewrite(struct plan *from, bool stays,
                                const struct healcl_plan_options *options, plan_change *change,
                                const void *how, struct plan **result, struct healcl_error *error)
{
    struct rewrite rewrite = {.from = from};
    enum healcl_status status = HEALCL_OK;
    rewrite.planner.plan = calloc(1, sizeof *rewrite.planner.plan);
    rewrite.of = calloc(from->storage_count, sizeof(struct storage *));
    if (!rewrite.planner.plan || !rewrite.of)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    THEN(status, derive_begin(&rewrite, from, stays, options, error));
    THEN(status, change(&rewrite, how, error));
    THEN(status, values_follow_plan(rewrite.planner.plan, error));
    free(rewrite.of);
    if (!stays)
        plan_free(from);
    if (status != HEALCL_OK) {
        plan_free(rewrite.planner.plan);
        return status;
    }
    *result = rewrite.planner.plan;
    return HEALCL_OK;
}
