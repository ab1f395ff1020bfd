/*
 * Steps of one kind on slices of the same tensors that lie evenly, one behind the other or by
 * turns: one step on all of them. It stands where the first did. What data make a step refuse,
 * moduli and the like, is the same for both, so that the first would have been refused first.
 */
#include "plan/pass.h"

/* Steps apart that slices are looked for in. */
enum { WINDOW = 16 };

enum { OUT = STEP_INPUTS, OPERANDS };

/* The axis of each operand that goes with one of out's, or NO_AXIS for operands that all slices
 * share. */
enum { NO_AXIS = LAYOUT_RANK };

static const struct tensor *operand(const struct step *step, int i)
{
    return i == OUT ? step->out : step->in[i];
}

static bool is_elementwise(enum step_kind kind)
{
    return kind == STEP_FILL || kind == STEP_COPY || kind == STEP_MODMUL || kind == STEP_MODSUM ||
           kind == STEP_MOD || kind == STEP_MODNEG || kind == STEP_ABS || kind == STEP_CHAIN;
}

static bool has_slices(const struct step *step)
{
    return !pass_has_removed(step) && !step->vendor &&
           (is_elementwise(step->kind) || step->kind == STEP_MODMUL_AXIS_SUM ||
            step->kind == STEP_AXIS_MODSUM || step->kind == STEP_NTT || step->kind == STEP_INTT);
}

/* Which axes of the operands go with out's. Returns whether slices may lie along it. */
static bool find_axes(const struct step *step, uint32_t axis, uint32_t axes[OPERANDS])
{
    for (int i = 0; i < OPERANDS; i++)
        axes[i] = is_elementwise(step->kind) || i == OUT ? axis : NO_AXIS;
    switch (step->kind) {
    case STEP_MODMUL_AXIS_SUM: /* out [reps,k,n], a and b [reps,s,k,n] */
        axes[0] = axes[1] = axis + (axis > 0);
        axes[2] = axis == 1 ? 0 : NO_AXIS;
        return axis < 2 || !step->in[3];
    case STEP_AXIS_MODSUM:
        axes[0] = axis + (axis >= step->value[0]);
        axes[1] = axis;
        return axis + 1 < step->out->layout.rank;
    case STEP_NTT:
    case STEP_INTT: axes[0] = axis; return axis < 2;
    default: return true;
    }
}

/* A step's operand; factors that all reps share have an axis for them. */
static struct layout view_of(const struct step *step, int i)
{
    return step->kind == STEP_MODMUL_AXIS_SUM && i == 1 ? step_factor(step)
                                                        : operand(step, i)->layout;
}

/* How slices lie: one behind the other, or by turns. */
enum { BEHIND = 1, BY_TURNS = 2 };

/* How one operand of two steps may lie along an axis, as bits; *view is that of `one`. */
static int lie(const struct layout *view, const struct layout *other, uint32_t axis)
{
    int64_t apart = other->offset - view->offset;
    if (view->rank != other->rank || apart < 0)
        return 0;
    for (uint32_t i = 0; i < view->rank; i++)
        if (i != axis && (view->shape[i] != other->shape[i] ||
                          (view->shape[i] > 1 && view->stride[i] != other->stride[i])))
            return 0;
    if (axis >= view->rank)
        return apart == 0 ? BEHIND | BY_TURNS : 0;
    if (view->shape[axis] == 0 || other->shape[axis] == 0)
        return 0;
    int64_t size = view->shape[axis], stride = size > 1 ? view->stride[axis] : apart;
    if (other->shape[axis] > 1 && other->stride[axis] != stride)
        return 0;
    return (apart % size == 0 && apart / size == stride ? BEHIND : 0) |
           (size == other->shape[axis] && stride % 2 == 0 && stride / 2 == apart ? BY_TURNS : 0);
}

/* Both views in one along an axis. */
static struct layout joined(const struct layout *view, const struct layout *other, uint32_t axis,
                            bool by_turns)
{
    struct layout both = *view;
    if (axis >= view->rank)
        return both;
    both.shape[axis] += other->shape[axis];
    if (by_turns || view->shape[axis] == 1)
        both.stride[axis] = other->offset - view->offset;
    return both;
}

/* Whether an input is the same for all slices: what data are refused for, and scalars. */
static bool is_common(const struct step *step, int i)
{
    return i == (step->kind == STEP_AXIS_MODSUM ? 1 : 2) || operand(step, i)->storage->scalars;
}

/* The views of both steps' operands in one, along an axis of out; in_front: along a new one. */
static bool join_views(const struct step *one, const struct step *other, uint32_t axis,
                       bool in_front, struct layout views[OPERANDS])
{
    uint32_t axes[OPERANDS];
    struct layout others[OPERANDS];
    int how = BEHIND | BY_TURNS;
    if (!find_axes(one, axis, axes))
        return false;
    for (int i = 0; i < OPERANDS; i++) {
        if (!operand(one, i))
            continue;
        views[i] = view_of(one, i);
        others[i] = view_of(other, i);
        if (in_front) {
            views[i] = layout_insert_axis(&views[i], 0, 1, 0);
            others[i] = layout_insert_axis(&others[i], 0, 1, 0);
        }
        how &= lie(&views[i], &others[i], axes[i]);
        if (!how || (is_common(one, i) && views[i].offset != others[i].offset))
            return false;
    }
    for (int i = 0; i < OPERANDS; i++)
        if (operand(one, i))
            views[i] = joined(&views[i], &others[i], axes[i], !(how & BEHIND));
    return true;
}

static bool find_views(const struct step *one, const struct step *other,
                       struct layout views[OPERANDS])
{
    uint32_t rank = one->out->layout.rank;
    for (uint32_t axis = 0; axis < rank; axis++)
        if (join_views(one, other, axis, false, views))
            return true;
    return is_elementwise(one->kind) && rank < MAX_RANK && join_views(one, other, 0, true, views);
}

/* Whether both do the same to the same tensors, in any order. */
static bool are_alike(const struct step *one, const struct step *other)
{
    if (one->kind != other->kind || one->value[0] != other->value[0] ||
        one->value[1] != other->value[1])
        return false;
    for (int i = 0; i < OPERANDS; i++) {
        const struct tensor *a = operand(one, i), *b = operand(other, i);
        if (!a != !b || (a && a->storage != b->storage))
            return false;
    }
    return !pass_overlap(one->out, other->out) && !pass_reads(one, other->out) &&
           !pass_reads(other, one->out);
}

/* Whether a step cannot be done before `before`. */
static bool waits_for(const struct step *step, const struct step *before)
{
    return !pass_has_removed(before) && before->kind != STEP_RELEASE &&
           (pass_overlap(before->out, step->out) || pass_reads(before, step->out) ||
            (before->out && pass_reads(step, before->out)));
}

MUST_CHECK static enum healcl_status join(struct pass_run *run, struct step *one,
                                          struct step *other, const struct layout views[OPERANDS],
                                          struct healcl_error *error)
{
    struct step both = *one;
    TRY(step_join_origins(run->plan, &both, one, other, error));
    for (int i = 0; i < OPERANDS; i++) {
        if (!operand(one, i))
            continue;
        struct tensor view = {operand(one, i)->storage, views[i]};
        if (one->kind == STEP_MODMUL_AXIS_SUM && i == 1 && view.layout.stride[0] == 0)
            view.layout = layout_drop_axis(&view.layout, 0);
        TRY(pass_tensor(run, &view, i == OUT ? &both.out : &both.in[i], error));
    }
    both.nonnegative &= other->nonnegative;
    both.residues &= other->residues;
    both.zeros &= other->zeros;
    pass_moves(run, other, one);
    pass_remove(run, other);
    *one = both;
    return HEALCL_OK;
}

enum healcl_status pass_batches(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *step = run->first; step < run->end; step++) {
        struct layout views[OPERANDS];
        if (!has_slices(step))
            continue;
        for (struct step *one = step; one > run->first && step - one < WINDOW;) {
            one--;
            if (has_slices(one) && are_alike(one, step) && pass_can_join(one, step) &&
                find_views(one, step, views)) {
                TRY(join(run, one, step, views, error));
                break;
            }
            if (waits_for(step, one))
                break;
        }
    }
    return HEALCL_OK;
}
