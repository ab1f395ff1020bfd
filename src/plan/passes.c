#include "plan/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/axes.h"
#include "plan/pass.h"
#include "plan/values.h"

const struct pass passes[PASS_COUNT] = {
#define PASS(name, summary) {#name, summary},
#include "plan/passes.def"
#undef PASS
};

const char passes_names[] = ":"
#define PASS(name, ...) " " #name
#include "plan/passes.def"
#undef PASS
    ;

enum healcl_status passes_parse(const char *list, uint32_t *set, struct healcl_error *error)
{
    *set = !list || strcmp(list, "all") == 0 ? PASSES_ALL : 0;
    if (*set || strcmp(list, "none") == 0)
        return HEALCL_OK;
    for (const char *name = list;; name++) {
        size_t length = strcspn(name, ","), i = 0;
        while (i < PASS_COUNT &&
               (strlen(passes[i].name) != length || strncmp(passes[i].name, name, length) != 0))
            i++;
        if (i == PASS_COUNT)
            FAIL(error, HEALCL_USAGE, "there is no pass '%.*s'; the passes are%s", (int)length,
                 name, passes_names);
        *set |= UINT32_C(1) << i;
        name += length;
        if (!*name)
            return HEALCL_OK;
    }
}

/* ---------------------------------------------------------------- what passes ask */

bool pass_only_reader(const struct pass_run *run, const struct step *reader,
                      const struct storage *storage, struct step **writer)
{
    const struct storage_uses *uses = &run->uses[storage->id];
    struct step *steps = run->plan->steps;
    if (uses->count != 2 || storage->id < run->segment->first_storage ||
        steps + uses->first < run->first || steps + uses->last != reader ||
        uses->last - uses->first > PASS_WINDOW)
        return false;
    *writer = steps + uses->first;
    int inputs = 0;
    FOR_EACH_INPUT (i, tensor, reader)
        inputs += tensor->storage == storage;
    return !pass_has_removed(*writer) && !reader->vendor && !(*writer)->vendor && (*writer)->out &&
           (*writer)->out->storage == storage && !step_adds(*writer) && inputs == 1;
}

bool pass_can_join(const struct step *first, const struct step *second)
{
    enum { ORIGINS_MAX = 32 }; /* so that passes stay linear */
    return first->origins->count + second->origins->count <= ORIGINS_MAX;
}

bool pass_reads(const struct step *step, const struct tensor *view)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        if (tensors_overlap(step->in[i], view))
            return true;
    return false;
}

bool pass_touches(const struct step *step, const struct step *end, const struct tensor *view,
                  bool writes_only)
{
    for (; step < end; step++) {
        if (pass_has_removed(step))
            continue;
        if (step->kind == STEP_RELEASE
                ? step->in[0]->storage == view->storage
                : tensors_overlap(step->out, view) || (!writes_only && pass_reads(step, view)))
            return true;
    }
    return false;
}

bool pass_overwrites(const struct step *step, const struct tensor *view)
{
    struct tensor part;
    return step->out && step->out->storage == view->storage && !step->vendor && !step_adds(step) &&
           !pass_reads(step, view) && pass_move_view(view, step->out, step->out, &part);
}

bool pass_never_refuses(const struct step *step)
{
    const int moduli = step_moduli(step);
    return !step_traits[step->kind].refuses_data &&
           (moduli == NO_INPUT || step->in[moduli]->storage->scalars);
}

bool pass_none_refuses(const struct step *from, const struct step *to)
{
    for (const struct step *step = from + 1; step < to; step++)
        if (!pass_has_removed(step) && !pass_never_refuses(step))
            return false;
    return true;
}

bool pass_can_wait(const struct step *writer, const struct step *reader)
{
    if (!pass_none_refuses(writer, reader))
        return false;
    FOR_EACH_INPUT (i, tensor, writer)
        if (pass_touches(writer + 1, reader, tensor, true))
            return false;
    return true;
}

bool pass_waits_for(const struct step *step, const struct step *before)
{
    return !pass_has_removed(before) && before->kind != STEP_RELEASE &&
           (tensors_overlap(before->out, step->out) || pass_reads(before, step->out) ||
            (before->out && pass_reads(step, before->out)));
}

_Static_assert(PASS_COUNT <= 8, "struct step has a bit for each");

void pass_note(struct pass_run *run, struct step *step)
{
    step->passes |= (uint8_t)(1 << run->pass);
    run->changes++;
}

void pass_remove(struct pass_run *run, struct step *step)
{
    step->origins = NULL;
    run->changes++;
}

/* Notes that another step now uses the operands of a step. */
static void note_moved(struct pass_run *run, const struct step *from, const struct step *to)
{
    uint32_t old = (uint32_t)(from - run->plan->steps), new = (uint32_t)(to - run->plan->steps);
    FOR_EACH_OPERAND (i, tensor, from) {
        struct storage_uses *uses = &run->uses[tensor->storage->id];
        if (uses->last == old || uses->last < new)
            uses->last = new;
        if (uses->first == old || uses->first > new)
            uses->first = new;
    }
}

/* Copies the origins of a step. If there is only one, it is attributed all that the step visits. */
static void copy_origins(struct origin *copies, const struct step *step)
{
    memcpy(copies, step->origins->of, step->origins->count * sizeof *copies);
    if (step->origins->count == 1)
        copies->visits = step_visits(step);
}

/* Gives a step that replaces two steps the origins of both, first's in front. Arguments from
 * `second` have origin indices from first->origins->count on. */
static enum healcl_status join_origins(struct plan *plan, struct step *step,
                                       const struct step *first, const struct step *second,
                                       struct healcl_error *error)
{
    size_t front = first->origins->count, count = front + second->origins->count;
    struct origins *origins = arena_alloc(plan->arena, sizeof *origins);
    struct origin *of = arena_alloc(plan->arena, count * sizeof *of);
    NEED_MEMORY(origins && of, error);
    copy_origins(of, first);
    copy_origins(of + front, second);
    size_t length = 1;
    for (size_t i = 0; i < count; i++)
        length += strlen(of[i].form->operation->name) + strlen(" + ");
    char *names = arena_alloc(plan->arena, length), *end = names;
    NEED_MEMORY(names, error);
    for (size_t i = 0; i < count; i++)
        end += snprintf(end, length - (size_t)(end - names), "%s%s", i ? " + " : "",
                        of[i].form->operation->name);
    *origins = (struct origins){count, of, names};
    step->origins = origins;
    return HEALCL_OK;
}

enum healcl_status pass_join(struct pass_run *run, struct step *first, struct step *second,
                             struct step *kept, const struct step *both, struct healcl_error *error)
{
    struct step *gone = kept == first ? second : first, joined = *both;
    TRY(join_origins(run->plan, &joined, first, second, error));
    note_moved(run, gone, kept);
    joined.passes = first->passes | second->passes | (uint8_t)(1 << run->pass);
    pass_remove(run, gone);
    *kept = joined;
    return HEALCL_OK;
}

/* Finds the stride in `to` of a view's axis, which is one axis of `from`, or several that are
 * evenly strided in both. */
static bool move_axis(int64_t size, int64_t stride, const struct layout *from,
                      const struct layout *to, int64_t *result)
{
    uint32_t axis = 0;
    while (axis < from->rank && (from->stride[axis] != stride || from->shape[axis] == 1))
        axis++;
    if (axis == from->rank)
        return false;
    *result = to->stride[axis];
    int64_t found = from->shape[axis];
    while (found < size && axis-- > 0) {
        if (from->stride[axis] != found * stride || to->stride[axis] != found * *result)
            return false;
        found *= from->shape[axis];
    }
    return found == size;
}

bool pass_move_view(const struct tensor *view, const struct tensor *from, const struct tensor *to,
                    struct tensor *result)
{
    const struct layout *shape = &from->layout;
    if (view->layout.offset != shape->offset)
        return false;
    *result = (struct tensor){to->storage, view->layout};
    result->layout.offset = to->layout.offset;
    for (uint32_t i = 0; i < view->layout.rank; i++)
        if (view->layout.shape[i] > 1 && view->layout.stride[i] != 0 &&
            !move_axis(view->layout.shape[i], view->layout.stride[i], shape, &to->layout,
                       &result->layout.stride[i]))
            return false;
    return true;
}

/* ---------------------------------------------------------------- one after the other */

static void find_uses(struct pass_run *run)
{
    const struct plan *plan = run->plan;
    memset(run->uses, 0, plan->storage_count * sizeof *run->uses);
    for (uint32_t i = 0; i < plan->step_count; i++)
        FOR_EACH_OPERAND (j, tensor, &plan->steps[i]) {
            struct storage_uses *uses = &run->uses[tensor->storage->id];
            const bool is_counted = uses->count > 0 && uses->last == i; /* as another operand */
            if (is_counted || plan->steps[i].kind == STEP_RELEASE)
                continue;
            if (uses->count++ == 0)
                uses->first = i;
            uses->last = i;
        }
}

/* Closes the gaps that removed steps leave. */
static void close_gaps(struct pass_run *run)
{
    struct plan *plan = run->plan;
    size_t to = 0;
    for (size_t s = 0; s < plan->segment_count; s++) {
        struct segment *segment = &plan->segments[s];
        size_t first = segment->first_step, end = first + segment->step_count;
        segment->first_step = to;
        for (size_t i = first; i < end; i++)
            if (!pass_has_removed(&plan->steps[i]))
                plan->steps[to++] = plan->steps[i];
        segment->step_count = to - segment->first_step;
    }
    plan->step_count = to;
}

#define LIVE UINT32_MAX /* instead of a count of uses */

/* Counts a step's storages as live, from their first use to their release. */
static void follow_memory(const struct pass_run *run, const struct step *step, uint64_t *live)
{
    FOR_EACH_OPERAND (i, tensor, step) {
        if (tensor->storage == run->plan->constants.storage)
            continue;
        struct storage_uses *uses = &run->uses[tensor->storage->id];
        bool is_live = uses->count == LIVE, stays = step->kind != STEP_RELEASE;
        if (stays && !is_live)
            *live += storage_bytes(tensor->storage);
        else if (is_live && !stays)
            *live -= storage_bytes(tensor->storage);
        uses->count = stays ? LIVE : 0;
    }
}

/* Computes the work of each segment's kernels and its peak of live tensors with scratch memory.
 * Tensors are live from the first step that uses them. Returns the largest peak. */
static uint64_t find_costs(struct pass_run *run, bool after)
{
    struct plan *plan = run->plan;
    uint64_t live = 0, peak = 0;
    for (size_t s = 0; s < plan->segment_count; s++) {
        struct segment *segment = &plan->segments[s];
        struct segment_cost cost = {.memory = live};
        for (size_t i = 0; i < segment->step_count; i++) {
            const struct step *step = &plan->steps[segment->first_step + i];
            step_add_cost(step, &cost);
            follow_memory(run, step, &live);
            uint64_t scratch = step_scratch_bytes(step);
            if (live + scratch > cost.memory)
                cost.memory = live + scratch;
        }
        *(after ? &segment->after : &segment->before) = cost;
        peak = cost.memory > peak ? cost.memory : peak;
    }
    return peak;
}

static enum healcl_status run_pass(struct pass_run *run, size_t pass, struct healcl_error *error)
{
    static enum healcl_status (*const functions[])(struct pass_run *, struct healcl_error *) = {
#define PASS(name, ...) pass_##name,
#include "plan/passes.def"
#undef PASS
    };
    struct plan *plan = run->plan;
    uint64_t changes = 0;
    if (plan->step_count == 0) /* nor an array of them */
        return HEALCL_OK;
    run->pass = pass;
    memset(run->next, 0xff, plan->storage_count * sizeof *run->next);
    for (size_t s = plan->segment_count; s-- > 0;) { /* so that later readers are known */
        struct segment *segment = &plan->segments[s];
        run->segment = segment;
        run->first = plan->steps + segment->first_step;
        run->end = run->first + segment->step_count;
        run->changes = 0;
        TRY(functions[pass](run, error));
        segment->pass_changes[pass] += run->changes;
        changes += run->changes;
    }
    plan->pass_changes += changes;
    if (changes > 0) {
        close_gaps(run);
        find_uses(run);
    }
    return HEALCL_OK;
}

static enum healcl_status run_passes(struct pass_run *run, uint32_t set, struct healcl_error *error)
{
    struct plan *plan = run->plan;
    NEED_MEMORY(run->uses && run->next, error);
    for (size_t s = 0; s < plan->segment_count; s++) {
        struct segment *segment = &plan->segments[s];
        segment->pass_changes =
            arena_alloc(plan->arena, PASS_COUNT * sizeof *segment->pass_changes);
        NEED_MEMORY(segment->pass_changes, error);
    }
    find_uses(run);
    (void)find_costs(run, false);
    find_uses(run);
    for (uint64_t round = 0, changes = 0; round < 2 && changes == round; round++) {
        for (size_t pass = 0; pass < PASS_COUNT; pass++)
            if (set >> pass & 1)
                TRY(run_pass(run, pass, error));
        changes = plan->pass_changes > 0;
    }
    if (plan->pass_changes == 0) {
        for (size_t s = 0; s < plan->segment_count; s++)
            plan->segments[s].after = plan->segments[s].before;
        return HEALCL_OK;
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        struct step *step = &plan->steps[i];
        if (step->kind == STEP_RELEASE && run->uses[step->in[0]->storage->id].count == 0)
            step->origins = NULL;
    }
    close_gaps(run);
    plan->bytes_peak = find_costs(run, true);
    return values_follow_plan(plan, error);
}

enum healcl_status plan_optimise(struct plan *plan, uint32_t set, struct healcl_error *error)
{
    struct pass_run run = {.plan = plan};
    if (plan->step_count >= UINT32_MAX)
        return HEALCL_OK;
    run.uses = calloc(plan->storage_count + 1, sizeof *run.uses);
    run.next = calloc(plan->storage_count + 1, sizeof *run.next);
    enum healcl_status status = run_passes(&run, set, error);
    free(run.uses);
    free(run.next);
    return status;
}
