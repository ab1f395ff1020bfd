#include "plan/split_axes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"

/* Passes forward and back through a plan to follow the axis. Plans that people write need fewer,
 * and more would take time quadratic in the plan's size. */
enum { ROUNDS_MOST = 64 };

enum { STAYS_WHOLE = -1 }; /* as the unit of a storage that could be cut */

/* Groups of `each` indices of an axis that stay together, and the number of groups. */
struct indices {
    int64_t each, count;
};

static bool is_cut(const struct split_axes *axes, const struct tensor *tensor)
{
    return axes->units[tensor->storage->id] > 0;
}

/* ---------------------------------------------------------------- views */

/* The axis with the longest stride that is not a multiple of the period; NO_AXIS if none. */
static int longest_axis(const struct layout *view, int64_t period)
{
    int longest = NO_AXIS;
    for (uint32_t axis = 0; axis < view->rank; axis++)
        if (view->shape[axis] > 1 && view->stride[axis] % period != 0 &&
            (longest == NO_AXIS || view->stride[axis] > view->stride[longest]))
            longest = (int)axis;
    return longest;
}

/* The extent of the elements that belong to one index of the longest axis. */
static int64_t reach_below(const struct layout *view, uint32_t longest, int64_t period)
{
    int64_t reach = view->offset % period % view->stride[longest];
    for (uint32_t axis = 0; axis < view->rank; axis++)
        if (axis != longest && view->shape[axis] > 1 && view->stride[axis] % period != 0)
            reach += (view->shape[axis] - 1) * view->stride[axis];
    return reach;
}

/* Finds the axis along which the indices run. Returns false if the view lacks some indices, or
 * changes their order, or joins some. *other: indices for which it would succeed: a reshape joins
 * `each` of them, or slices are runs of `count`; count is 0 if none exist. */
static bool find_view_cut(const struct layout *view, int64_t unit, int64_t count,
                          struct view_cut *cut, struct indices *other)
{
    const int64_t period = unit * count;
    const int longest = longest_axis(view, period);
    *other = (struct indices){.count = 0};
    if (longest == NO_AXIS || reach_below(view, (uint32_t)longest, period) >= view->stride[longest])
        return false;
    const int64_t stride = view->stride[longest], span = stride * view->shape[longest];
    const int64_t start = view->offset % period / stride * stride;
    const bool is_whole = start == 0 && span % period == 0;
    *cut = (struct view_cut){(uint32_t)longest, unit / stride};
    if (stride > unit && is_whole && stride % unit == 0 && count % (stride / unit) == 0)
        *other = (struct indices){stride / unit, count / (stride / unit)};
    else if (unit % stride == 0 && !is_whole && start % unit == 0 && span % unit == 0)
        *other = (struct indices){
            1, greatest_common_divisor(count, greatest_common_divisor(start, span) / unit)};
    return unit % stride == 0 && is_whole;
}

struct view_cut split_axes_view(const struct split_axes *axes, const struct tensor *tensor)
{
    struct view_cut cut = {0};
    struct indices other;
    (void)find_view_cut(&tensor->layout, axes->units[tensor->storage->id], axes->count, &cut,
                        &other);
    return cut;
}

/* ---------------------------------------------------------------- steps */

/* Why a step cannot be split, and the operand. */
struct fault {
    const char *text; /* NULL: it can be split */
    int operand;
    struct indices other; /* indices by which it could be split; count: 0 or 1 if none */
};

static struct fault fault_of(const char *text, int operand)
{
    return (struct fault){.text = text, .operand = operand};
}

/* Finds the letter of the split operands. */
static struct fault find_letter(const struct split_axes *axes, const struct step *step,
                                const struct step_axes *names, struct step_cut *cut)
{
    FOR_EACH_OPERAND (i, tensor, step) {
        struct view_cut view = {0};
        struct indices other;
        if (!is_cut(axes, tensor))
            continue;
        if (!find_view_cut(&tensor->layout, axes->units[tensor->storage->id], axes->count, &view,
                           &other))
            return (struct fault){"takes a part of the split axis", i, other};
        if (step->kind == STEP_VENDOR || names->names[i][view.axis] == '*')
            return fault_of("mixes elements along the split axis", i);
        if (cut->letter == 0)
            *cut = (struct step_cut){.letter = names->names[i][view.axis], .each = view.each};
        if (cut->letter != names->names[i][view.axis] || cut->each != view.each)
            return fault_of("has the split axis on two of its axes", i);
    }
    return (struct fault){.text = NULL};
}

/* Whether a part of a whole operand can be read along an axis. */
static bool can_narrow(const struct split_axes *axes, const struct step_cut *cut,
                       const struct layout *layout, int axis)
{
    return axis == NO_AXIS || layout->stride[axis] == 0 ||
           layout->shape[axis] == cut->each * axes->count;
}

static struct fault find_step_cut(const struct split_axes *axes, const struct step *step,
                                  struct step_cut *cut)
{
    struct step_axes names;
    *cut = (struct step_cut){0};
    bool any = false;
    FOR_EACH_OPERAND (i, tensor, step)
        any |= is_cut(axes, tensor);
    if (!any || step->kind == STEP_RELEASE)
        return (struct fault){.text = NULL};
    step_axes(step, &names);
    struct fault fault = find_letter(axes, step, &names, cut);
    if (fault.text)
        return fault;
    if (step->out && step_axis(&names, STEP_OUT, cut->letter) == NO_AXIS) {
        const int moduli = step_moduli(step);
        if (moduli == NO_INPUT || step_axis(&names, moduli, cut->letter) != NO_AXIS)
            return fault_of("mixes elements along the split axis", 0);
        cut->sums = true;
    }
    return fault;
}

struct step_cut split_axes_step(const struct split_axes *axes, const struct step *step)
{
    struct step_cut cut;
    (void)find_step_cut(axes, step, &cut);
    return cut;
}

static enum healcl_status split_refuse(const struct step *step, const struct fault *fault,
                                       struct healcl_error *error)
{
    const bool is_input = fault->operand != STEP_OUT && step->kind != STEP_VENDOR;
    (void)ERROR(error, HEALCL_REFUSED, "%s%s%s%s", is_input ? "argument '" : "",
                is_input ? step_input_name(step, fault->operand) : "", is_input ? "': " : "",
                fault->text);
    error_prefix_step(error, step, is_input ? fault->operand : NO_INPUT);
    return HEALCL_REFUSED;
}

/* ---------------------------------------------------------------- forward */

/* The unit that makes a view cut along an axis, or STAYS_WHOLE. */
static int64_t unit_for(const struct split_axes *axes, const struct tensor *tensor, int axis,
                        int64_t each)
{
    struct view_cut cut = {0};
    struct indices other;
    const struct layout *layout = &tensor->layout;
    int64_t unit, period;
    if (axis == NO_AXIS || __builtin_mul_overflow(layout->stride[axis], each, &unit) || unit == 0 ||
        __builtin_mul_overflow(unit, axes->count, &period) ||
        tensor->storage->elements % period != 0 ||
        !find_view_cut(layout, unit, axes->count, &cut, &other) || (int)cut.axis != axis)
        return STAYS_WHOLE;
    return unit;
}

/* Cuts the output of a step that meets the axis, and its inputs that no view can read in part. */
static struct fault cut_operands(struct split_axes *axes, const struct step *step,
                                 const struct step_cut *cut, bool *changed)
{
    struct step_axes names;
    struct fault fault = {.text = NULL};
    if (cut->letter == 0)
        return fault;
    step_axes(step, &names);
    FOR_EACH_OPERAND (i, tensor, step) {
        const int axis = step_axis(&names, i, cut->letter);
        if (axis == NO_AXIS || is_cut(axes, tensor) ||
            (i != STEP_OUT && can_narrow(axes, cut, &tensor->layout, axis)))
            continue;
        const int64_t unit = unit_for(axes, tensor, axis, cut->each);
        if (unit == STAYS_WHOLE)
            return fault_of("takes a part of the split axis", i);
        axes->units[tensor->storage->id] = unit;
        *changed = true;
    }
    return fault;
}

/* Follows the axis through all steps, until no further storage is cut or a step needs other
 * indices. */
static enum healcl_status split_follow_axis(struct split_axes *axes, struct indices *other,
                                            struct healcl_error *error)
{
    const struct plan *plan = axes->plan;
    bool changed = true;
    for (int round = 0; changed; round++) {
        if (round == ROUNDS_MOST)
            REFUSE_FOR(error, LIMIT, "following the axis takes too many rounds");
        changed = false;
        for (size_t i = 0; i < plan->step_count; i++) {
            struct step_cut cut;
            struct fault fault = find_step_cut(axes, &plan->steps[i], &cut);
            if (!fault.text)
                fault = cut_operands(axes, &plan->steps[i], &cut, &changed);
            *other = fault.other;
            if (fault.text && other->count > 1)
                return HEALCL_OK;
            if (fault.text)
                return split_refuse(&plan->steps[i], &fault, error);
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- back */

/* Notes that a whole storage could have this unit, if all its uses agree. */
static void want(int64_t *wanted, const struct split_axes *axes, const struct tensor *tensor,
                 int64_t unit)
{
    int64_t *of = &wanted[tensor->storage->id];
    if (!is_cut(axes, tensor))
        *of = *of == 0 || *of == unit ? unit : STAYS_WHOLE;
}

/* Inputs that a step reads in parts could be cut; the others stay whole. */
static void want_inputs(int64_t *wanted, const struct split_axes *axes, const struct step *step,
                        const struct step_cut *cut)
{
    struct step_axes names;
    step_axes(step, &names);
    FOR_EACH_INPUT (i, tensor, step)
        want(wanted, axes, tensor,
             cut->letter ? unit_for(axes, tensor, step_axis(&names, i, cut->letter), cut->each)
                         : STAYS_WHOLE);
    if (cut->sums)
        want(wanted, axes, step->out, STAYS_WHOLE);
}

/* Whether a step could write only a part, along the axis, of its output, which is whole so far. */
static bool can_cut_output(const struct split_axes *axes, const struct step *step, int64_t unit)
{
    struct step_axes names;
    struct view_cut view;
    struct indices other;
    if (step->kind == STEP_VENDOR ||
        !find_view_cut(&step->out->layout, unit, axes->count, &view, &other))
        return false;
    step_axes(step, &names);
    const struct step_cut cut = {names.names[STEP_OUT][view.axis], view.each, false};
    bool can = cut.letter != '*';
    FOR_EACH_INPUT (i, tensor, step)
        can &= can_narrow(axes, &cut, &tensor->layout, step_axis(&names, i, cut.letter));
    return can;
}

/* Cuts storages that are only read in parts. Returns whether there are any. */
static bool cut_back(struct split_axes *axes, int64_t *wanted)
{
    const struct plan *plan = axes->plan;
    bool changed = false;
    memset(wanted, 0, plan->storage_count * sizeof *wanted);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step_cut cut = split_axes_step(axes, &plan->steps[i]);
        if (plan->steps[i].kind != STEP_RELEASE)
            want_inputs(wanted, axes, &plan->steps[i], &cut);
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        int64_t *unit = step->out ? &wanted[step->out->storage->id] : NULL;
        if (unit && *unit > 0 && !can_cut_output(axes, step, *unit))
            *unit = STAYS_WHOLE;
    }
    for (size_t i = 0; i < plan->storage_count; i++)
        if (wanted[i] > 0) {
            axes->units[i] = wanted[i];
            changed = true;
        }
    return changed;
}

/* ---------------------------------------------------------------- all */

static enum healcl_status split_find_axis(struct split_axes *axes, int64_t *wanted,
                                          const struct step *upload,
                                          const struct healcl_split *split,
                                          struct healcl_error *error)
{
    const struct origin *origin = step_origin(upload, NO_INPUT);
    const struct layout *input = &upload->out->layout;
    const int64_t size = input->shape[split->axis];
    if (size < (int64_t)split->ranks)
        FAIL(error, HEALCL_USAGE,
             "entry %zu (%s): axis %" PRIu32 " has size %" PRId64 ", too small for %" PRIu32
             " ranks",
             origin->entry, origin->name, split->axis, size, split->ranks);
    int64_t each = 1;
    for (struct indices other = {1, size}; other.count > 1;) { /* each round has fewer */
        axes->count = other.count;
        each *= other.each;
        if (axes->count < (int64_t)split->ranks)
            REFUSE(error,
                   "entry %zu (%s): axis %" PRIu32 " can be split into %" PRId64
                   " parts, too few for %" PRIu32 " ranks",
                   origin->entry, origin->name, split->axis, axes->count, split->ranks);
        memset(axes->units, 0, axes->plan->storage_count * sizeof *axes->units);
        axes->units[upload->out->storage->id] = input->stride[split->axis] * each;
        TRY(split_follow_axis(axes, &other, error));
        for (int round = 0; other.count <= 1 && round < ROUNDS_MOST && cut_back(axes, wanted);
             round++)
            TRY(split_follow_axis(axes, &other, error));
    }
    return HEALCL_OK;
}

enum healcl_status split_axes_find(const struct plan *plan, const struct step *upload,
                                   const struct healcl_split *split, struct split_axes *axes,
                                   struct healcl_error *error)
{
    int64_t *wanted = calloc(plan->storage_count, sizeof *wanted);
    *axes = (struct split_axes){.plan = plan, .count = 1};
    axes->units = calloc(plan->storage_count, sizeof *axes->units);
    enum healcl_status status = HEALCL_OK;
    if (!wanted || !axes->units)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK && split->ranks > 1)
        status = split_find_axis(axes, wanted, upload, split, error);
    free(wanted);
    if (status != HEALCL_OK)
        split_axes_release(axes);
    return status;
}

void split_axes_release(struct split_axes *axes)
{
    free(axes->units);
    axes->units = NULL;
}
