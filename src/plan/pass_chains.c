/*
 * Joins two elementwise operations with the same moduli, if only the second one reads the first
 * one's result. The joined step replaces the second one, and never writes the intermediate result.
 * The first may also be an inverse transform whose result is multiplied by one factor for each
 * modulus; or a forward one, whose result is added to another tensor before.
 */
#include "plan/pass.h"

enum {
    WINDOW = 16,         /* steps that are searched */
    MODULI_MAX = 1 << 16 /* limit of kernels' tables */
};

static bool is_modular(const struct step *step)
{
    return !pass_has_removed(step) && !step->vendor && step_traits[step->kind].chains;
}

static bool is_product_of_sum(const struct step *step)
{
    return !pass_has_removed(step) && step->kind == STEP_CHAIN && step->value[0] == STEP_MODSUM &&
           step->value[1] == STEP_MODMUL;
}

/* Whether a step, which is modular or a product of a sum, may be fused into a transform. */
static bool may_scale(const struct step *transform, const struct step *product)
{
    const bool is_sum = product->kind == STEP_CHAIN;
    return !transform->vendor && !transform->in[STEP_FACTORS] &&
           (is_sum || product->kind == STEP_MODMUL) &&
           transform->kind == (is_sum ? STEP_NTT : STEP_INTT);
}

static bool is_out(const struct step *step, const struct tensor *tensor)
{
    return !tensor || tensors_same(tensor, step->out);
}

static bool has_scalars(const struct step *step)
{
    return step->in[0]->storage->scalars || (step->in[1] && step->in[1]->storage->scalars);
}

/* Whether no step other than `second` reads what an earlier step has written to a view. */
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

/* The step that wrote input i of another step, if nothing else reads that input; else NULL. */
static struct step *find_first(const struct pass_run *run, struct step *second, int i)
{
    const struct tensor *view = second->in[i];
    if (!view || view->storage->scalars || tensors_overlap(second->in[1 - i], view) ||
        tensors_overlap(second->in[3], view))
        return NULL;
    for (struct step *step = second; step > run->first && second - step < WINDOW;) {
        step--;
        if (pass_has_removed(step) || step->kind == STEP_RELEASE ||
            !pass_touches(step, step + 1, view, false))
            continue;
        return (is_modular(step) ? is_modular(second) : may_scale(step, second)) &&
                       step->out->storage == view->storage && pass_can_wait(step, second) &&
                       is_dead_behind(run, second, view)
                   ? step
                   : NULL;
    }
    return NULL;
}

/* Joins two steps, if possible. Input i of the second one is the first one's output. */
static enum healcl_status chain(struct pass_run *run, struct step *first, struct step *second,
                                int i, struct healcl_error *error)
{
    const struct tensor *p = second->in[2];
    const struct layout own = layout_own_elements(&p->layout);
    if (!layout_same_elements(&first->out->layout, &second->in[i]->layout) ||
        !tensors_same(first->in[2], p) || has_scalars(first) || has_scalars(second) ||
        layout_elements(&own) > MODULI_MAX ||
        !(is_out(second, first->in[0]) || is_out(second, first->in[1]) ||
          is_out(second, second->in[1 - i])))
        return HEALCL_OK;
    struct step both = *first;
    for (int j = 0; j < 2; j++) /* inputs may not be overwritten, unless they are out itself */
        if (!is_out(second, first->in[j]) && tensors_overlap(first->in[j], second->out))
            return HEALCL_OK;
    both.kind = STEP_CHAIN;
    both.value[0] = (int64_t)first->kind;
    both.value[1] = (int64_t)second->kind;
    both.out = second->out;
    both.in[3] = second->in[1 - i];
    both.arguments[3] = second->arguments[1 - i];
    both.arguments[3].origin = (uint8_t)(both.arguments[3].origin + first->origins->count);
    both.residues = both.nonnegative = 0;
    both.zeros = 0;
    return pass_join(run, first, second, second, &both, error);
}

/* Finds the factors `by` of a product of which a transform's output is input i: one for each
 * modulus. Also finds where the transform would write. Returns whether both exist. */
static bool find_factors(const struct step *transform, const struct step *product, int i,
                         const struct tensor *by, struct tensor *factors, struct tensor *out)
{
    enum { AXIS_K = 2 };
    const struct layout *rows = &transform->out->layout, *view = &product->in[i]->layout;
    const struct tensor *p = product->in[2], *q = transform->in[1];
    if (by->storage->scalars || p->storage != q->storage || p->layout.offset != q->layout.offset ||
        layout_elements(rows) != layout_elements(view) ||
        !pass_move_view(transform->out, product->in[i], product->out, out))
        return false;
    *factors = (struct tensor){
        by->storage, {.rank = 1, .shape = {rows->shape[AXIS_K]}, .offset = by->layout.offset}};
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        uint32_t of = 0;
        if (view->shape[axis] == 1)
            continue;
        while (of < 4 && (rows->shape[of] == 1 || rows->stride[of] != view->stride[axis]))
            of++;
        if (of == AXIS_K)
            factors->layout.stride[0] = by->layout.stride[axis];
        if (of == 4 || p->layout.stride[axis] != (of == AXIS_K ? q->layout.stride[0] : 0) ||
            (of != AXIS_K && by->layout.stride[axis] != 0))
            return false;
    }
    return true;
}

/* Whether a transform may write there instead. Its rows must be kept, and it may overwrite its
 * input only in place. */
static bool may_write(const struct step *transform, const struct tensor *out)
{
    const struct layout *rows = &transform->out->layout;
    for (int axis = 0; axis < 4; axis++)
        if (rows->shape[axis] > 1 && rows->stride[axis] != out->layout.stride[axis])
            return false;
    for (int j = 1; j < STEP_INPUTS; j++)
        if (tensors_overlap(transform->in[j], out))
            return false;
    return !tensors_overlap(transform->in[0], out) ||
           layout_same_elements(&transform->in[0]->layout, &out->layout);
}

/* Joins a transform and a product with it, or with a sum of it and input 1 - i. */
static enum healcl_status scale(struct pass_run *run, struct step *transform, struct step *product,
                                int i, struct healcl_error *error)
{
    const bool adds = product->kind == STEP_CHAIN;
    const int by = adds ? 3 : 1 - i;
    struct tensor factors, out, addend;
    struct step both = *transform;
    if (!find_factors(transform, product, i, product->in[by], &factors, &out) ||
        (adds && !pass_move_view(transform->out, product->in[i], product->in[1 - i], &addend)))
        return HEALCL_OK;
    TRY(plan_view(run->plan, factors.storage, &factors.layout, &both.in[STEP_FACTORS], error));
    if (adds)
        TRY(plan_view(run->plan, addend.storage, &addend.layout, &both.in[STEP_ADDEND], error));
    if (!may_write(&both, &out))
        return HEALCL_OK;
    TRY(plan_view(run->plan, out.storage, &out.layout, &both.out, error));
    for (int j = 0; j < 2; j++) {
        struct step_argument *argument = &both.arguments[j ? STEP_ADDEND : STEP_FACTORS];
        *argument = product->arguments[j ? 1 - i : by];
        argument->origin = (uint8_t)(argument->origin + transform->origins->count);
    }
    return pass_join(run, transform, product, product, &both, error);
}

enum healcl_status pass_chains(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *second = run->first; second < run->end; second++) {
        for (int i = 0; i < 2 && (is_modular(second) || is_product_of_sum(second)); i++) {
            struct step *first = find_first(run, second, i);
            if (!first || !pass_can_join(first, second))
                continue;
            if (is_modular(first))
                TRY(chain(run, first, second, i, error));
            else
                TRY(scale(run, first, second, i, error));
        }
    }
    return HEALCL_OK;
}
