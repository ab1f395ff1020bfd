/* Which entries of the transcript a step comes from, and the cost attributed to each. */

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
