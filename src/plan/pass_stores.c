/* Removes writes of values that are overwritten or released before anything reads them. Only
 * tensors of the segment count. */
#include "plan/pass.h"

static bool is_dead(const struct pass_run *run, const struct step *step)
{
    const struct storage *storage = step->out->storage;
    uint32_t next = run->next[storage->id];
    if (storage->id < run->segment->first_storage)
        return false;
    if (next == PASS_NO_STEP)
        return true;
    const struct step *later = run->plan->steps + next;
    return later < run->end && pass_overwrites(later, step->out);
}

enum healcl_status pass_stores(struct pass_run *run, struct healcl_error *error)
{
    (void)error;
    for (struct step *step = run->end; step-- > run->first;) {
        uint32_t number = (uint32_t)(step - run->plan->steps);
        if (step->kind == STEP_RELEASE)
            continue;
        if (step->out && !step->vendor && pass_never_refuses(step) && is_dead(run, step)) {
            pass_remove(run, step);
            continue;
        }
        FOR_EACH_OPERAND (i, tensor, step)
            run->next[tensor->storage->id] = number;
    }
    return HEALCL_OK;
}
