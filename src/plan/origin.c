/* Which entries of the transcript a step comes from, and the cost attributed to each. */
#include <stdio.h>
#include <string.h>

#include "core/arena.h"
#include "plan/plan.h"

const struct origin *step_origin(const struct step *step, int i)
{
    const struct origins *origins = step->origins;
    return &origins->of[i == NO_INPUT ? origins->count - 1 : step->arguments[i].origin];
}

const char *step_input_name(const struct step *step, int i)
{
    return step_origin(step, i)->form->parameters[step->arguments[i].parameter].name;
}

const struct operation *origin_operation(const struct origin *origin)
{
    return origin->outer ? origin->outer : origin->form->operation;
}

void error_prefix_origin(struct healcl_error *error, const struct origin *origin)
{
    error_prefix(error, "%s %zu (%s): ", origin->is_call ? "call" : "entry", origin->entry,
                 origin->name);
    error_place(error, (int64_t)origin->entry,
                origin->form ? (int64_t)origin_operation(origin)->number : -1);
}

void error_prefix_step(struct healcl_error *error, const struct step *step, int input)
{
    const struct origin *origin = step_origin(step, input);
    const bool has_argument = input != NO_INPUT && !origin->outer;
    error_prefix_origin(error, origin);
    error_argument(error, has_argument ? step->arguments[input].parameter : -1);
}

void origins_share(const struct origins *origins, uint64_t amount, uint64_t *amounts)
{
    const size_t last = origins->count - 1;
    double visits = 0;
    for (size_t i = 0; i <= last; i++)
        visits += (double)origins->of[i].visits;
    uint64_t left = amount;
    for (size_t i = 0; i < last; i++) {
        double part =
            visits > 0 ? (double)origins->of[i].visits / visits : 1.0 / (double)(last + 1);
        uint64_t share = (uint64_t)((double)amount * part);
        share = share < left ? share : left;
        amounts[origin_operation(&origins->of[i])->number] += share;
        left -= share;
    }
    amounts[origin_operation(&origins->of[last])->number] += left;
}

/* Copies the origins of a step. If there is only one, it is attributed all that the step visits. */
static void copy_origins(struct origin *copies, const struct step *step)
{
    memcpy(copies, step->origins->of, step->origins->count * sizeof *copies);
    if (step->origins->count == 1)
        copies->visits = step_visits(step);
}

enum healcl_status step_join_origins(struct plan *plan, struct step *step, const struct step *first,
                                     const struct step *second, struct healcl_error *error)
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
