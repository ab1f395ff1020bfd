#include "plan/values.h"

#include <string.h>

#include "core/arena.h"
#include "plan/axes.h"

/* ---------------------------------------------------------------- what is known of a view */

/* The elements are in [0, limit), or unknown if limit is 0. If the storage of moduli, a view of the
 * same shape, is not NULL, they are residues of these moduli. */
struct range {
    uint64_t limit;
    struct tensor moduli;
};

/* Whether a known part contains all elements of a view. If so, *moduli is the view of their
 * moduli. */
static bool covers(const struct known *known, const struct layout *view, struct layout *moduli)
{
    int64_t rest = view->offset - known->offset, room[KNOWN_AXES];
    if (rest < 0)
        return false;
    *moduli = *view;
    moduli->offset = known->moduli_offset;
    for (uint32_t k = 0; k < known->rank; k++) {
        const struct known_axis *axis = &known->axes[k];
        int64_t first = rest / axis->stride;
        if (first >= axis->size)
            first = axis->size - 1;
        rest -= first * axis->stride;
        room[k] = axis->size - 1 - first;
        moduli->offset += first * axis->moduli_stride;
    }
    for (uint32_t i = 0; i < view->rank && rest == 0; i++) {
        if (view->shape[i] == 1 || view->stride[i] == 0)
            continue;
        uint32_t k = 0;
        while (k < known->rank && known->axes[k].stride > view->stride[i])
            k++;
        if (k == known->rank || view->stride[i] % known->axes[k].stride != 0)
            return false;
        int64_t steps = view->stride[i] / known->axes[k].stride;
        if (steps > room[k] / (view->shape[i] - 1))
            return false;
        room[k] -= steps * (view->shape[i] - 1);
        moduli->stride[i] = steps * known->axes[k].moduli_stride;
    }
    return rest == 0;
}

static bool is_fresh(const struct known *known)
{
    return known->moduli && known->moduli->writes == known->moduli_writes;
}

static struct range range_of(const struct values *values, const struct tensor *tensor)
{
    struct range range = {.limit = 0};
    if (tensor->storage == values->plan->constants.storage) {
        int64_t value = values->plan->constants.values[tensor->layout.offset];
        range.limit = value < 0 ? 0 : (uint64_t)value + 1;
        return range;
    }
    for (const struct known *known = tensor->storage->known; known; known = known->next)
        if (covers(known, &tensor->layout, &range.moduli.layout)) {
            range.limit = known->limit;
            if (is_fresh(known))
                range.moduli.storage = (struct storage *)known->moduli;
            break;
        }
    return range;
}

/* Whether values in that range are residues of moduli, a view of the same shape. */
static bool is_residues(const struct values *values, const struct range *range,
                        const struct tensor *moduli)
{
    if (moduli->storage == values->plan->constants.storage)
        return range->limit > 0 &&
               range->limit <= (uint64_t)values->plan->constants.values[moduli->layout.offset];
    return range->limit == 1 || (range->limit > 0 && range->moduli.storage == moduli->storage &&
                                 layout_same_elements(&range->moduli.layout, &moduli->layout));
}

/* ---------------------------------------------------------------- what a step makes */

/* The smallest non-negative number that a dtype cannot hold. */
static uint64_t limit_of(enum dtype dtype)
{
    return (uint64_t)1 << (8 * dtype_size(dtype) - 1);
}

/* Residues of the step's moduli. */
static struct range residues_of(const struct values *values, const struct step *step,
                                const struct step_axes *axes)
{
    struct range range = {.limit = 0};
    const struct tensor *moduli = &range.moduli;
    if (!step_moduli_of(step, axes, STEP_OUT, &range.moduli))
        return range;
    range.limit = limit_of(step->out->storage->dtype);
    if (moduli->storage == values->plan->constants.storage) {
        range.limit = (uint64_t)values->plan->constants.values[moduli->layout.offset];
        range.moduli.storage = NULL;
    } else if (moduli->storage->dtype != step->out->storage->dtype) {
        range.limit = 0;
    }
    return range;
}

/* Whether both factors have the same elements: their products are not negative. */
static bool is_square(const struct step *step)
{
    const struct tensor *a = step->in[0], *b = step->in[1];
    return step->kind == STEP_MODMUL && a && b && tensors_same(a, b);
}

/* The range of in[0], without moduli that vary along the mixed axis. */
static struct range as_input(const struct step *step, const struct step_axes *axes,
                             const struct range *input)
{
    struct range range = *input;
    for (uint32_t axis = 0; axis < step->out->layout.rank; axis++) {
        if (axes->names[0][axis] != '*')
            continue;
        if (range.moduli.layout.stride[axis] != 0)
            range.moduli.storage = NULL;
        range.moduli.layout.shape[axis] = step->out->layout.shape[axis];
    }
    return range;
}

/* The result of a chain is known from both of its operations. */
static enum step_result result_kind(const struct step *step)
{
    const bool is_chain = step->kind == STEP_CHAIN;
    for (int i = 0; is_chain && i < 2; i++)
        if (step_traits[step->value[i]].result != step_traits[STEP_CHAIN].result)
            return STEP_UNKNOWN;
    return step_traits[step->kind].result;
}

/* inputs: the ranges of the inputs. */
static struct range result_of(const struct values *values, const struct step *step,
                              const struct step_axes *axes, const struct range inputs[STEP_INPUTS])
{
    struct range range = {.limit = 0};
    switch (result_kind(step)) {
    case STEP_UNKNOWN: break;
    case STEP_VALUE: range.limit = step->value[0] < 0 ? 0 : (uint64_t)step->value[0] + 1; break;
    case STEP_AS_INPUT: range = as_input(step, axes, &inputs[0]); break;
    case STEP_DIGIT: /* 0 if larger than can be counted */
        range.limit = step->value[0] < 64 ? (uint64_t)1 << step->value[0] : 0;
        break;
    case STEP_RESIDUES:
        range = residues_of(values, step, axes);
        FOR_EACH_INPUT (i, tensor, step)
            if (step_traits[step->kind].signs >> i & 1 && inputs[i].limit == 0 && !is_square(step))
                range.limit = 0;
        break;
    }
    if (range.limit > limit_of(step->out->storage->dtype)) /* a stored value wraps */
        range.limit = 0;
    return range;
}

/* ---------------------------------------------------------------- what is kept */

/* Sets the axes of a known part, merged and with the largest stride first. Returns whether there is
 * room. */
static bool set_axes(struct known *known, const struct layout *view, const struct layout *moduli)
{
    struct known_axis sorted[LAYOUT_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (view->shape[i] == 1)
            continue;
        uint32_t at = count++;
        for (; at > 0 && sorted[at - 1].stride < view->stride[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (struct known_axis){view->shape[i], view->stride[i], moduli->stride[i]};
    }
    known->rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct known_axis *next = known->axes + known->rank, *inner = &sorted[i];
        if (known->rank > 0 && next[-1].stride == inner->stride * inner->size &&
            next[-1].moduli_stride == inner->moduli_stride * inner->size) {
            inner->size *= next[-1].size;
            next[-1] = *inner;
        } else if (known->rank < KNOWN_AXES) {
            *next = *inner;
            known->rank++;
        } else {
            return false;
        }
    }
    return true;
}

static struct layout values_view(const struct known *known)
{
    struct layout view = {.rank = known->rank, .offset = known->offset};
    for (uint32_t k = 0; k < known->rank; k++) {
        view.shape[k] = known->axes[k].size;
        view.stride[k] = known->axes[k].stride;
    }
    return view;
}

/* A view of the same elements with merged axes, like those that it is compared with. Only merged
 * axes have nested strides. */
static struct layout merged(const struct layout *view)
{
    static const struct layout none;
    struct known known = {.offset = view->offset};
    return set_axes(&known, view, &none) ? values_view(&known) : *view;
}

/* Whether a known part remains true after values of a range are written to a view of it. */
static bool stays_true(const struct known *known, const struct layout *view,
                       const struct range *range)
{
    struct layout moduli;
    if (range->limit == 0 || range->limit > known->limit || !covers(known, view, &moduli))
        return false;
    return !known->moduli || range->limit == 1 ||
           (is_fresh(known) && range->moduli.storage == known->moduli &&
            layout_same_elements(&range->moduli.layout, &moduli));
}

static void known_forget(struct values *values, struct known **at)
{
    struct known *known = *at;
    *at = known->next;
    known->next = values->unused;
    values->unused = known;
}

void values_forget(struct values *values, struct storage *storage)
{
    while (storage->known)
        known_forget(values, &storage->known);
    storage->writes++; /* facts with moduli in it are outdated too */
}

/* Reduces a known part to what is before a view along its first axis, or after it if that is more.
 * Returns whether anything remains. */
static bool values_shrink(struct known *known, const struct layout *view)
{
    struct known_axis *axis = known->axes;
    int64_t inner = 0, first = view->offset - known->offset,
            last = layout_last(view) - known->offset;
    for (uint32_t k = 1; k < known->rank; k++)
        inner += (axis[k].size - 1) * axis[k].stride;
    if (known->rank == 0 || inner >= axis->stride)
        return false;
    int64_t before = first > 0 ? first / axis->stride : 0, end = last / axis->stride + 1;
    int64_t behind = end < axis->size ? axis->size - end : 0;
    if (behind > before) {
        known->offset += end * axis->stride;
        known->moduli_offset += end * axis->moduli_stride;
        before = behind;
    }
    axis->size = before;
    if (before == 1)
        memmove(axis, axis + 1, --known->rank * sizeof *axis);
    return before > 0;
}

/* Keeps what is known of out's storage and remains true. Returns whether that includes the
 * range. */
static bool values_keep(struct values *values, const struct tensor *out, const struct range *range)
{
    bool changed = false;
    uint32_t views = 0;
    const struct layout written = merged(&out->layout);
    for (struct known **at = &out->storage->known; *at;) {
        struct known *known = *at;
        bool stays = stays_true(known, &out->layout, range);
        struct layout view = values_view(known);
        if (known->moduli) /* which may have kept axes from merging */
            view = merged(&view);
        if (++views == KNOWN_VIEWS || (!stays && layouts_may_overlap(&view, &written) &&
                                       !values_shrink(known, &out->layout))) {
            known_forget(values, at);
            continue;
        }
        if (stays)
            changed |= known->moduli || (!range->moduli.storage && range->limit == known->limit);
        at = &(*at)->next;
    }
    return changed;
}

static enum healcl_status values_note(struct values *values, const struct tensor *out,
                                      const struct range *range, struct healcl_error *error)
{
    const struct storage *moduli = range->moduli.storage;
    struct known known = {.next = out->storage->known,
                          .limit = range->limit,
                          .moduli = moduli,
                          .moduli_writes = moduli ? moduli->writes : 0,
                          .offset = out->layout.offset,
                          .moduli_offset = moduli ? range->moduli.layout.offset : 0};
    static const struct layout none;
    if (!set_axes(&known, &out->layout, moduli ? &range->moduli.layout : &none))
        return HEALCL_OK;
    struct known *kept = values->unused;
    if (kept)
        values->unused = kept->next;
    else
        kept = arena_alloc(values->arena, sizeof *kept);
    NEED_MEMORY(kept, error);
    *kept = known;
    out->storage->known = kept;
    return HEALCL_OK;
}

enum healcl_status values_follow(struct values *values, struct step *step,
                                 struct healcl_error *error)
{
    struct range ranges[STEP_INPUTS];
    struct step_axes axes;
    step_axes(step, &axes);
    FOR_EACH_INPUT (i, tensor, step) {
        struct tensor moduli;
        ranges[i] = range_of(values, tensor);
        if (ranges[i].limit > 0)
            step->nonnegative |= (uint8_t)(1u << i);
        if (ranges[i].limit == 1)
            step->zeros |= (uint16_t)(1u << i);
        if (step_moduli_of(step, &axes, i, &moduli) && is_residues(values, &ranges[i], &moduli))
            step->residues |= (uint8_t)(1u << i);
    }
    if (step->kind == STEP_RELEASE)
        values_forget(values, step->in[0]->storage);
    if (!step->out)
        return HEALCL_OK;
    if (step_adds(step) && range_of(values, step->out).limit == 1)
        step->zeros |= 1u << STEP_INPUTS;
    struct range range = result_of(values, step, &axes, ranges);
    bool changed = values_keep(values, step->out, &range);
    enum healcl_status status =
        changed || range.limit == 0 ? HEALCL_OK : values_note(values, step->out, &range, error);
    step->out->storage->writes++; /* out's previous moduli are also out of date */
    return status;
}

enum healcl_status values_follow_plan(struct plan *plan, struct healcl_error *error)
{
    struct values values = {.plan = plan, .arena = plan->arena};
    struct storage *of_vendor = NULL;
    for (size_t i = 0; i < plan->storage_count; i++) {
        plan->storages[i]->known = NULL;
        plan->storages[i]->writes = 0;
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        struct step *step = &plan->steps[i];
        step->nonnegative = step->residues = 0;
        step->zeros = 0;
        TRY(values_follow(&values, step, error));
        if (step->kind == STEP_VENDOR)
            of_vendor = step->out->storage;
        if (step->vendor && of_vendor &&
            (i + 1 == plan->step_count || step[1].vendor != step->vendor)) {
            values_forget(&values, of_vendor); /* what the body's steps say */
            of_vendor->writes++;
            of_vendor = NULL;
        }
    }
    return HEALCL_OK;
}
