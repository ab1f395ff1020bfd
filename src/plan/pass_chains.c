/*
 * Two elementwise operations of the same moduli, of which the second one alone reads what the first
 * makes: one step, which stands where the second one did and never writes what is between.
 */
#include "plan/pass.h"

enum {
    WINDOW = 16,         /* steps apart that are looked at */
    MODULI_MAX = 1 << 16 /* as many as kernels have tables for */
};

static bool is_modular(const struct step *step)
{
    return !pass_has_removed(step) && !step->vendor &&
           (step->kind == STEP_MODMUL || step->kind == STEP_MODSUM || step->kind == STEP_MOD ||
            step->kind == STEP_MODNEG);
}

static bool is_out(const struct step *step, const struct tensor *tensor)
{
    return !tensor || (tensor->storage == step->out->storage &&
                       layout_same_elements(&tensor->layout, &step->out->layout));
}

static bool has_scalars(const struct step *step)
{
    return step->in[0]->storage->scalars || (step->in[1] && step->in[1]->storage->scalars);
}

/* Whether nobody reads what a step before `second` has written to a view, but that one. */
static bool is_dead_behind(const struct pass_run *run, const struct step *second,
                           const struct tensor *view)
{
    const struct storage *storage = view->storage;
    if (is_out(second, view))
        return true;
    if (storage->id < run->segment->first_storage)
        return false;
    if (run->plan->steps + run->uses[storage->id].last == second)
        return true;
    for (const struct step *step = second + 1; step < run->end && step - second < WINDOW; step++) {
        if (pass_has_removed(step))
            continue;
        if (pass_overwrites(step, view) ||
            (step->kind == STEP_RELEASE && step->in[0]->storage == storage))
            return true;
        if (pass_touches(step, step + 1, view, false))
            return false;
    }
    return false;
}

/* The step that has written what input i of another one reads, and that nobody else reads; NULL if
 * there is none. */
static struct step *find_first(const struct pass_run *run, struct step *second, int i)
{
    const struct tensor *view = second->in[i];
    if (!view || view->storage->scalars || pass_overlap(second->in[1 - i], view))
        return NULL;
    for (struct step *step = second; step > run->first && second - step < WINDOW;) {
        step--;
        if (pass_has_removed(step) || step->kind == STEP_RELEASE ||
            !pass_touches(step, step + 1, view, false))
            continue;
        return is_modular(step) && step->out->storage == view->storage &&
                       pass_can_wait(step, second, i) && is_dead_behind(run, second, view)
                   ? step
                   : NULL;
    }
    return NULL;
}

/* Input i of the second step is the first one's. */
MUST_CHECK static enum healcl_status chain(struct pass_run *run, struct step *first,
                                           struct step *second, int i, struct healcl_error *error)
{
    const struct tensor *p = second->in[2];
    const struct layout own = layout_own_elements(&p->layout);
    if (first->out->storage->dtype != second->out->storage->dtype ||
        first->in[2]->storage != p->storage ||
        !layout_same_elements(&first->in[2]->layout, &p->layout) || has_scalars(first) ||
        has_scalars(second) || layout_elements(&own) > MODULI_MAX ||
        !(is_out(second, first->in[0]) || is_out(second, first->in[1]) ||
          is_out(second, second->in[1 - i])))
        return HEALCL_OK;
    struct step both = *first;
    for (int j = 0; j < 2; j++) /* what is not out itself may not be overwritten beside it */
        if (!is_out(second, first->in[j]) && pass_overlap(first->in[j], second->out))
            return HEALCL_OK;
    TRY(step_join_origins(run->plan, &both, first, second, error));
    both.kind = STEP_CHAIN;
    both.value[0] = (int64_t)first->kind;
    both.value[1] = (int64_t)second->kind;
    both.out = second->out;
    both.in[3] = second->in[1 - i];
    both.arguments[3] = second->arguments[1 - i];
    both.arguments[3].origin = (uint8_t)(both.arguments[3].origin + first->origins->count);
    both.residues = both.nonnegative = 0;
    both.zeros = 0;
    pass_moves(run, first, second);
    pass_remove(run, first);
    *second = both;
    return HEALCL_OK;
}

enum healcl_status pass_chains(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *second = run->first; second < run->end; second++) {
        for (int i = 0; i < 2 && is_modular(second); i++) {
            struct step *first = find_first(run, second, i);
            if (first && pass_can_join(first, second))
                TRY(chain(run, first, second, i, error));
        }
    }
    return HEALCL_OK;
}
