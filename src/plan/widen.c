#include "plan/widen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/axes.h"

/* ---------------------------------------------------------------- one step */

/* Adds a first axis for the batch to all operands. The axis that a step works along moves by
 * one. */
static bool add_axis(const struct step *step, int64_t batch, const int64_t *distance,
                     struct layout *views, int64_t value[2])
{
    if (step->kind == STEP_AXIS_MODSUM && distance[step_moduli(step)] > 0)
        return false; /* its moduli vary along the last axis only */
    FOR_EACH_OPERAND (i, tensor, step) {
        if (tensor->layout.rank >= MAX_RANK)
            return false;
        views[i] = layout_insert_axis(&tensor->layout, 0, batch, distance[i]);
    }
    value[0] += strpbrk(step_traits[step->kind].axes, "+=") != NULL;
    return true;
}

/* An axis of a view that continues evenly from request to request; NO_AXIS: all requests share the
 * view. */
static bool widen_lengthen_axis(struct layout *view, int axis, int64_t batch, int64_t distance)
{
    if (axis == NO_AXIS)
        return distance == 0;
    int64_t *shape = &view->shape[axis], *stride = &view->stride[axis];
    if (*shape == 1)
        *stride = distance;
    else if (*shape * *stride != distance)
        return false;
    *shape *= batch;
    return true;
}

/* Lengthens the axis with a letter of out. Moduli that all requests share are not repeated along
 * it, nor are the tables that kernels make of them. */
static bool lengthen_letter(const struct step *step, const struct step_axes *axes, char letter,
                            int64_t batch, const int64_t *distance, struct layout *views)
{
    const int moduli = step_moduli(step);
    if (letter == '*' ||
        (moduli != NO_INPUT && distance[moduli] == 0 && step_axis(axes, moduli, letter) != NO_AXIS))
        return false;
    FOR_EACH_OPERAND (i, tensor, step) {
        views[i] = tensor->layout;
        if (!widen_lengthen_axis(&views[i], step_axis(axes, i, letter), batch, distance[i]))
            return false;
    }
    return true;
}

/* Adds a first axis, named by the letter, to the operands whose signatures begin with it. Before
 * that, adds the other axes that such an operand lacks. */
static bool add_letter(const struct step *step, const struct step_axes *axes, char letter,
                       int64_t batch, const int64_t *distance, struct layout *views)
{
    FOR_EACH_OPERAND (i, tensor, step) {
        size_t length;
        const char *letters = step_letters(step, i, &length);
        views[i] = tensor->layout;
        if (*letters != letter && distance[i] > 0)
            return false;
        if (*letters != letter)
            continue;
        while (views[i].rank + 1 < length) {
            const int axis = step_axis(axes, STEP_OUT, letters[length - views[i].rank - 1]);
            views[i] = layout_insert_axis(&views[i], 0, step->out->layout.shape[axis], 0);
        }
        views[i] = layout_insert_axis(&views[i], 0, batch, distance[i]);
    }
    return true;
}

bool step_widen(const struct step *step, int64_t batch, const int64_t *distance,
                struct layout *views, int64_t value[2])
{
    struct step_axes axes;
    if (strncmp(step_traits[step->kind].axes, "...", 3) == 0) /* all of out's axes, by position */
        return add_axis(step, batch, distance, views, value);
    step_axes(step, &axes);
    size_t length;
    const char *letters = step_letters(step, STEP_OUT, &length);
    if (length > step->out->layout.rank)
        return add_letter(step, &axes, *letters, batch, distance, views);
    for (const char *letter = axes.names[STEP_OUT]; *letter; letter++)
        if (lengthen_letter(step, &axes, *letter, batch, distance, views))
            return true;
    return false;
}

/* ---------------------------------------------------------------- which storages */

struct widening {
    struct rewrite *rewrite;
    const struct widen_how *how;
    bool *is_wide, *is_live; /* by storage of the plan: depends on an input; is an input */
};

static bool is_wide(const struct widening *widening, const struct tensor *tensor)
{
    return widening->is_wide[tensor->storage->id];
}

static bool touches_wide(const struct widening *widening, const struct step *step)
{
    FOR_EACH_OPERAND (i, tensor, step)
        if (is_wide(widening, tensor))
            return true;
    return false;
}

/* Inputs are numbered in the order of uploads. */
static void widen_find_inputs(struct widening *widening)
{
    const struct plan *from = widening->rewrite->from;
    for (size_t i = 0, input = 0; i < from->step_count; i++) {
        const struct step *step = &from->steps[i];
        if (step->kind != STEP_UPLOAD)
            continue;
        for (size_t j = 0; j < widening->how->count; j++)
            if (widening->how->inputs[j] == input)
                widening->is_live[step->out->storage->id] =
                    widening->is_wide[step->out->storage->id] = true;
        input++;
    }
}

/* Widens the storage that a step writes, if the step uses a wide one. */
static bool widen_step_storage(struct widening *widening, const struct step *step)
{
    if (!step->out || is_wide(widening, step->out) || !touches_wide(widening, step))
        return false;
    return widening->is_wide[step->out->storage->id] = true;
}

/* Passes forward and back. Plans that people write need fewer, and more would take quadratic
 * time. */
enum { ROUNDS_MOST = 64 };

static enum healcl_status find_storages(struct widening *widening, struct healcl_error *error)
{
    const struct plan *from = widening->rewrite->from;
    bool changed = true;
    widen_find_inputs(widening);
    for (int round = 0; changed; round++) {
        if (round == ROUNDS_MOST)
            REFUSE_FOR(error, LIMIT, "following the inputs takes too many rounds");
        changed = false;
        for (size_t i = 0; i < from->step_count; i++)
            changed |= widen_step_storage(widening, &from->steps[i]);
        for (size_t i = from->step_count; i-- > 0;)
            changed |= widen_step_storage(widening, &from->steps[i]);
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- steps */

static enum healcl_status widen_refuse(const struct step *step, const char *why,
                                       struct healcl_error *error)
{
    (void)ERROR(error, HEALCL_REFUSED, "%s", why);
    error_because(error, HEALCL_CAUSE_OPERATION);
    error_prefix_step(error, step, NO_INPUT);
    return HEALCL_REFUSED;
}

/* Makes an operand: a view of the storage that replaces a tensor's. */
static enum healcl_status widen_write_view(struct widening *widening, const struct tensor *tensor,
                                           const struct layout *view, const struct tensor **result,
                                           struct healcl_error *error)
{
    const struct storage *old = tensor->storage;
    int64_t elements = old->elements, batch = is_wide(widening, tensor) ? widening->how->batch : 1;
    const int64_t most = INT64_MAX / (int64_t)dtype_size(old->dtype);
    if (elements > most / batch) {
        (void)ERROR(error, HEALCL_REFUSED, "%" PRId64 " times %" PRId64 " elements are too many",
                    batch, elements);
        error_because(error, HEALCL_CAUSE_LIMIT);
        error_prefix_origin(error, old->origin);
        return HEALCL_REFUSED;
    }
    return rewrite_operand(widening->rewrite, old, elements * batch, view, result, error);
}

/* Adds a step with these views as its operands; NULL: the step as it is. */
static enum healcl_status add_step(struct widening *widening, const struct step *step,
                                   const struct layout *views, struct healcl_error *error)
{
    struct step added = *step;
    if (step->vendor && views) { /* only its body is left */
        added.vendor = NULL;
        added.side = STEP_ALWAYS;
    }
    FOR_EACH_OPERAND (i, tensor, step)
        TRY(widen_write_view(widening, tensor, views ? &views[i] : &tensor->layout,
                             &added.operands[i], error));
    return rewrite_step(widening->rewrite, &added, error);
}

static void find_distances(const struct widening *widening, const struct step *step,
                           int64_t *distance)
{
    FOR_EACH_OPERAND (i, tensor, step)
        distance[i] = is_wide(widening, tensor) ? tensor->storage->elements : 0;
}

/* Processes the whole batch in one step, or in one step for each request. */
static enum healcl_status widen_step(struct widening *widening, const struct step *step,
                                     struct healcl_error *error)
{
    int64_t distance[STEP_OPERANDS] = {0};
    struct layout views[STEP_OPERANDS];
    struct step widened = *step;
    find_distances(widening, step, distance);
    if (step_widen(step, widening->how->batch, distance, views, widened.value))
        return add_step(widening, &widened, views, error);
    for (int64_t request = 0; request < widening->how->batch; request++) {
        FOR_EACH_OPERAND (i, tensor, step) {
            views[i] = tensor->layout;
            views[i].offset += request * distance[i];
        }
        TRY(add_step(widening, step, views, error));
    }
    return HEALCL_OK;
}

/* Adds a batch axis to an upload or a download. copies: how many requests share the payload of one
 * request; 0: none, callers supply the data. */
static enum healcl_status widen_transfer(struct widening *widening, const struct step *step,
                                         int64_t copies, struct healcl_error *error)
{
    struct step widened = *step;
    struct layout views[STEP_OPERANDS];
    int64_t distance[STEP_OPERANDS] = {0};
    find_distances(widening, step, distance);
    if (!add_axis(step, widening->how->batch, distance, views, widened.value))
        return widen_refuse(step, "its rank is too high to add an axis of requests", error);
    if (step->payload) {
        struct payload *payload =
            arena_copy(widening->rewrite->planner.plan->arena, step->payload, sizeof *payload);
        NEED_MEMORY(payload, error);
        payload->copies = copies;
        if (copies == 0)
            *payload = (struct payload){.dtype = payload->dtype,
                                        .layout = layout_packed(&views[STEP_OUT])};
        widened.payload = payload;
    }
    return add_step(widening, &widened, views, error);
}

/* Uploads the same data for all requests, which each need their own copy because they write to
 * it. */
static enum healcl_status copy_upload(struct widening *widening, const struct step *step,
                                      struct healcl_error *error)
{
    struct rewrite *rewrite = widening->rewrite;
    const struct storage *old = step->out->storage;
    struct step upload = *step, copy = {.kind = STEP_COPY, .origins = step->origins};
    struct step release = {.kind = STEP_RELEASE, .origins = step->origins};
    struct storage *single;
    const struct layout from = {
        .rank = 2, .shape = {widening->how->batch, old->elements}, .stride = {0, 1}};
    const struct layout to = layout_packed(&from);
    TRY(rewrite_storage(rewrite, old, old->elements, &single, error));
    TRY(plan_view(rewrite->planner.plan, single, &step->out->layout, &upload.out, error));
    TRY(rewrite_step(rewrite, &upload, error));
    TRY(widen_write_view(widening, step->out, &to, &copy.out, error));
    TRY(plan_view(rewrite->planner.plan, single, &from, &copy.in[0], error));
    TRY(rewrite_step(rewrite, &copy, error));
    release.in[0] = copy.in[0];
    return rewrite_step(rewrite, &release, error);
}

static enum healcl_status write_step(struct widening *widening, const struct step *step,
                                     struct healcl_error *error)
{
    switch (step->kind) {
    case STEP_UPLOAD:
        return widening->is_live[step->out->storage->id] ? widen_transfer(widening, step, 0, error)
                                                         : copy_upload(widening, step, error);
    case STEP_DOWNLOAD: return widen_transfer(widening, step, widening->how->batch, error);
    case STEP_RELEASE: return add_step(widening, step, &step->in[0]->layout, error);
    case STEP_VENDOR:
        return widen_refuse(
            step, "a manifest's operation without a body cannot run several requests together",
            error);
    default: return widen_step(widening, step, error);
    }
}

/* The steps of one entry, or of one call of a vendor's operation. If the call has both a kernel and
 * a body, omits the kernel. Returns their number. */
static size_t call_steps(const struct widening *widening, const struct step *steps, size_t count,
                         bool *is_wide)
{
    size_t length = 0;
    *is_wide = false;
    do
        *is_wide |= touches_wide(widening, &steps[length++]);
    while (length < count && steps->vendor && steps[length].vendor == steps->vendor);
    return length;
}

static enum healcl_status write_segment(struct widening *widening, const struct segment *segment,
                                        struct healcl_error *error)
{
    TRY(rewrite_segment(widening->rewrite, segment, error));
    for (size_t i = 0; i < segment->step_count;) {
        const struct step *step = &widening->rewrite->from->steps[segment->first_step + i];
        bool is_wide;
        const size_t length = call_steps(widening, step, segment->step_count - i, &is_wide);
        for (size_t j = 0; j < length; j++) {
            if (!is_wide)
                TRY(add_step(widening, &step[j], NULL, error));
            else if (step[j].side != STEP_OF_KERNEL)
                TRY(write_step(widening, &step[j], error));
        }
        i += length;
    }
    return HEALCL_OK;
}

enum healcl_status widen_plan(struct rewrite *rewrite, const void *how, struct healcl_error *error)
{
    const size_t count = rewrite->from->storage_count;
    bool *both = calloc(2 * count, sizeof *both);
    NEED_MEMORY(both, error);
    struct widening widening = {rewrite, how, both, both + count};
    enum healcl_status status = find_storages(&widening, error);
    for (size_t s = 0; s < rewrite->from->segment_count && status == HEALCL_OK; s++)
        status = write_segment(&widening, &rewrite->from->segments[s], error);
    free(both);
    return status;
}
