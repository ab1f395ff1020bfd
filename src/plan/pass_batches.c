/*
 * Joins steps of one kind on evenly spaced slices of the same tensors, which are adjacent or
 * interleaved. One step then does all of them. It replaces the first step. Moduli and other data
 * that can make a step refuse are the same for both, so the first would have been refused first.
 */
#include <ctype.h>
#include <string.h>

#include "plan/axes.h"
#include "plan/pass.h"

/* Number of steps searched for slices, and of other steps of the kind among them. */
enum { WINDOW = 16, TRIES = 2 };

static bool has_slices(const struct step *step)
{
    return !pass_has_removed(step) && !step->vendor && step_traits[step->kind].batches;
}

/* A step's operand. Factors that all reps share get an axis for reps. */
static struct layout batches_view(const struct step *step, int i)
{
    return step->kind == STEP_MODMUL_AXIS_SUM && i == 1 ? step_factor(step)
                                                        : step->operands[i]->layout;
}

/* Whether steps may be joined along an axis of out. Sets the corresponding axis of each operand's
 * view; NO_AXIS if all slices share the operand. */
static bool find_axes(const struct step *step, uint32_t axis, int axes[STEP_OPERANDS])
{
    struct step_axes names;
    step_axes(step, &names);
    const char letter = names.names[STEP_OUT][axis], *along = step_traits[step->kind].batches;
    if (letter == '*' || !(isupper((unsigned char)letter) || strchr(along, letter)))
        return false;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        axes[i] = step_axis(&names, i, letter);
        if (tensor && batches_view(step, i).rank > tensor->layout.rank)
            axes[i]++; /* NO_AXIS becomes the first axis */
    }
    return true;
}

/* How slices are arranged: adjacent, or interleaved. */
enum { BEHIND = 1, BY_TURNS = 2 };

/* Possible arrangements, as bits, of one operand of two steps along an axis. *view belongs to the
 * first. */
static int slice_adjacency(const struct layout *view, const struct layout *other, int axis)
{
    int64_t apart = other->offset - view->offset;
    if (apart < 0 || !layout_alike(view, other, axis))
        return 0;
    if (axis == NO_AXIS)
        return apart == 0 ? BEHIND | BY_TURNS : 0;
    if (view->shape[axis] == 0 || other->shape[axis] == 0)
        return 0;
    int64_t size = view->shape[axis], stride = size > 1 ? view->stride[axis] : apart;
    if (other->shape[axis] > 1 && other->stride[axis] != stride)
        return 0;
    return (apart % size == 0 && apart / size == stride ? BEHIND : 0) |
           (size == other->shape[axis] && stride % 2 == 0 && stride / 2 == apart ? BY_TURNS : 0);
}

/* Joins both views along an axis. */
static struct layout joined(const struct layout *view, const struct layout *other, int axis,
                            bool by_turns)
{
    struct layout both = *view;
    if (axis == NO_AXIS)
        return both;
    both.shape[axis] += other->shape[axis];
    if (by_turns || view->shape[axis] == 1)
        both.stride[axis] = other->offset - view->offset;
    return both;
}

/* Whether all slices must share an input: data that can be refused, and scalars. */
static bool is_common(const struct step *step, int i)
{
    return i == step_moduli(step) || step->operands[i]->storage->scalars;
}

/* Views of the operands of two steps of the same kind. */
struct pair {
    struct layout views[STEP_OPERANDS], others[STEP_OPERANDS];
};

/* Joins each operand's two views along its axis. Returns whether that is possible. */
static bool join_views(const struct step *step, const int axes[STEP_OPERANDS], struct pair *pair)
{
    int how = BEHIND | BY_TURNS;
    FOR_EACH_OPERAND (i, tensor, step)
        how &= slice_adjacency(&pair->views[i], &pair->others[i], axes[i]);
    if (how == 0)
        return false;
    FOR_EACH_OPERAND (i, tensor, step)
        pair->views[i] = joined(&pair->views[i], &pair->others[i], axes[i], !(how & BEHIND));
    return true;
}

static bool find_views(const struct step *one, const struct step *other, struct pair *pair)
{
    uint32_t rank = one->out->layout.rank;
    FOR_EACH_OPERAND (i, tensor, one) {
        pair->views[i] = batches_view(one, i);
        pair->others[i] = batches_view(other, i);
        if (is_common(one, i) && pair->views[i].offset != pair->others[i].offset)
            return false;
    }
    int axes[STEP_OPERANDS];
    for (uint32_t axis = 0; axis < rank; axis++)
        if (find_axes(one, axis, axes) && join_views(one, axes, pair))
            return true;
    if (!step_is_elementwise(one) || rank == MAX_RANK)
        return false;
    memset(axes, 0, sizeof axes);
    FOR_EACH_OPERAND (i, tensor, one) {
        pair->views[i] = layout_insert_axis(&pair->views[i], 0, 1, 0);
        pair->others[i] = layout_insert_axis(&pair->others[i], 0, 1, 0);
    }
    return join_views(one, axes, pair);
}

/* Whether both do the same to the same tensors, in any order. */
static bool are_alike(const struct step *one, const struct step *other)
{
    if (one->kind != other->kind || one->value[0] != other->value[0] ||
        one->value[1] != other->value[1])
        return false;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *a = one->operands[i], *b = other->operands[i];
        if (!a != !b || (a && a->storage != b->storage))
            return false;
    }
    return !tensors_overlap(one->out, other->out) && !pass_reads(one, other->out) &&
           !pass_reads(other, one->out);
}

static enum healcl_status batches_join(struct pass_run *run, struct step *one, struct step *other,
                                       const struct layout *views, struct healcl_error *error)
{
    struct step both = *one;
    FOR_EACH_OPERAND (i, tensor, one) {
        struct layout view = views[i];
        if (one->kind == STEP_MODMUL_AXIS_SUM && i == 1 && view.rank == 4 && view.stride[0] == 0)
            view = layout_drop_axis(&view, 0);
        TRY(plan_view(run->plan, tensor->storage, &view, &both.operands[i], error));
    }
    both.nonnegative &= other->nonnegative;
    both.residues &= other->residues;
    both.zeros &= other->zeros;
    return pass_join(run, one, other, one, &both, error);
}

enum healcl_status pass_batches(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *step = run->first; step < run->end; step++) {
        struct pair pair;
        int tries = 0;
        if (!has_slices(step))
            continue;
        for (struct step *one = step; one > run->first && step - one < WINDOW && tries < TRIES;) {
            one--;
            if (has_slices(one) && are_alike(one, step) && pass_can_join(one, step)) {
                tries++;
                if (find_views(one, step, &pair)) {
                    TRY(batches_join(run, one, step, pair.views, error));
                    break;
                }
            }
            if (pass_waits_for(step, one))
                break;
        }
    }
    return HEALCL_OK;
}
