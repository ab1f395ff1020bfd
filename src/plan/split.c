#include "plan/split.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "plan/passes.h"
#include "plan/split_axes.h"

/* A plan while its steps are written anew. */
struct splitter {
    struct plan *plan;
    const struct split *split;
    struct split_axes axes;
    int64_t start, size; /* the rank's indices of the axis */
    struct step *steps;
    size_t step_count, step_capacity;
    struct segment *segments;
    size_t segment_count, segment_capacity;
    struct segment *segment;   /* in hand */
    struct exchange *pending;  /* sums that ranks have summands of by now */
    size_t pending_count, pending_capacity;
    uint32_t next_storage;     /* above the ids that steps have used so far */
    size_t last_entry;         /* that was counted for the segment in hand */
};

/* ---------------------------------------------------------------- views */

/* The rank's part of a view of a storage that is cut. */
static struct layout part_of_view(const struct splitter *splitter, const struct tensor *tensor)
{
    const struct split_axes *axes = &splitter->axes;
    const int64_t unit = axes->units[tensor->storage->id], period = unit * axes->count;
    const struct view_cut cut = split_axes_view(axes, tensor);
    struct layout part = tensor->layout;
    part.offset = part.offset / period * (unit * splitter->size) + part.offset % period;
    part.shape[cut.axis] = part.shape[cut.axis] / axes->count * splitter->size;
    for (uint32_t axis = 0; axis < part.rank; axis++)
        if (part.stride[axis] >= period)
            part.stride[axis] = part.stride[axis] / axes->count * splitter->size;
    return part;
}

/* The rank's part of a view of one that is whole, along an axis. */
static struct layout part_of_whole(const struct splitter *splitter, const struct layout *view,
                                   uint32_t axis, int64_t each)
{
    struct layout part = *view;
    if (part.stride[axis] == 0)
        part.shape[axis] = part.shape[axis] / splitter->axes.count * splitter->size;
    else
        part = layout_narrow(view, axis, splitter->start * each, splitter->size * each);
    return part;
}

MUST_CHECK static enum healcl_status new_view(const struct splitter *splitter,
                                              struct storage *storage, const struct layout *layout,
                                              const struct tensor **result,
                                              struct healcl_error *error)
{
    struct tensor *tensor = arena_alloc(splitter->plan->arena, sizeof *tensor);
    if (!tensor)
        NO_MEMORY(error);
    *tensor = (struct tensor){storage, *layout};
    *result = tensor;
    return HEALCL_OK;
}

/* The rank's part of a step, which meets the axis. */
MUST_CHECK static enum healcl_status split_operands(const struct splitter *splitter,
                                                    const struct step_cut *cut, struct step *step,
                                                    struct healcl_error *error)
{
    struct step_axes names;
    const struct step whole = *step;
    step_axes(&whole, &names);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(&whole, i);
        const int axis = tensor ? step_axis(&names, i, cut->letter) : NO_AXIS;
        if (axis == NO_AXIS)
            continue;
        const struct layout layout =
            splitter->axes.units[tensor->storage->id] > 0
                ? part_of_view(splitter, tensor)
                : part_of_whole(splitter, &tensor->layout, (uint32_t)axis, cut->each);
        TRY(new_view(splitter, tensor->storage, &layout, i == STEP_OUT ? &step->out : &step->in[i],
                     error));
    }
    return HEALCL_OK;
}

/* What a rank has of a tensor that is cut: of an upload's output, or of a download. */
static struct payload_part part_of(const struct splitter *splitter, const struct tensor *tensor)
{
    if (splitter->axes.units[tensor->storage->id] == 0)
        return (struct payload_part){.period = 0};
    const struct view_cut cut = split_axes_view(&splitter->axes, tensor);
    return (struct payload_part){cut.axis, splitter->start * cut.each, splitter->size * cut.each,
                                 splitter->axes.count * cut.each};
}

/* The rank's part of what the file has for an upload, or expects. */
MUST_CHECK static enum healcl_status split_payload(const struct splitter *splitter,
                                                   const struct payload_part *part,
                                                   const struct tensor *whole, struct step *step,
                                                   struct healcl_error *error)
{
    if (part->period == 0 || !step->payload)
        return HEALCL_OK;
    struct payload *payload = arena_alloc(splitter->plan->arena, sizeof *payload);
    if (!payload)
        NO_MEMORY(error);
    *payload = *step->payload;
    if (layout_same_shape(&payload->layout, &whole->layout)) /* else what is expected is wrong */
        payload_narrow(payload, part);
    step->payload = payload;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- writing */

MUST_CHECK static enum healcl_status add_segment(struct splitter *splitter,
                                                 const struct segment *from,
                                                 struct healcl_error *error)
{
    const size_t counts_size = operation_count(splitter->plan->table) * sizeof *from->counts;
    struct segment *segments = array_with_room(splitter->segments, splitter->segment_count,
                                               &splitter->segment_capacity, sizeof *segments);
    if (!segments)
        NO_MEMORY(error);
    splitter->segments = segments;
    splitter->segment = &segments[splitter->segment_count++];
    *splitter->segment = (struct segment){.name = from->name, .first_step = splitter->step_count};
    splitter->segment->counts = arena_alloc(splitter->plan->arena, counts_size);
    if (!splitter->segment->counts)
        NO_MEMORY(error);
    return HEALCL_OK;
}

/* Notes what a segment does, but for operations and frees. */
static void count_step(struct segment *segment, const struct step *step)
{
    if (step->kind == STEP_UPLOAD)
        segment->bytes_up += storage_bytes(step->out->storage);
    if (step->kind != STEP_DOWNLOAD)
        return;
    segment->results++;
    segment->bytes_down += (uint64_t)layout_elements(&step->in[0]->layout) *
                           dtype_size(step->in[0]->storage->dtype);
}

MUST_CHECK static enum healcl_status write_step(struct splitter *splitter, const struct step *step,
                                                struct healcl_error *error)
{
    struct step *steps = array_with_room(splitter->steps, splitter->step_count,
                                         &splitter->step_capacity, sizeof *steps);
    if (!steps)
        NO_MEMORY(error);
    splitter->steps = steps;
    steps[splitter->step_count++] = *step;
    splitter->segment->step_count++;
    count_step(splitter->segment, step);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(step, i);
        if (tensor && tensor->storage->id >= splitter->next_storage)
            splitter->next_storage = tensor->storage->id + 1;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- exchanges */

/* Ends the segment in hand with what is pending. */
MUST_CHECK static enum healcl_status exchange_pending(struct splitter *splitter,
                                                      struct healcl_error *error)
{
    const size_t bytes = splitter->pending_count * sizeof *splitter->pending;
    struct exchange *exchanges = arena_alloc(splitter->plan->arena, bytes + 1);
    if (!exchanges)
        NO_MEMORY(error);
    if (bytes > 0)
        memcpy(exchanges, splitter->pending, bytes);
    splitter->segment->exchanges = exchanges;
    splitter->segment->exchange_count = splitter->pending_count;
    splitter->pending_count = 0;
    return HEALCL_OK;
}

/* Whether a step of a sum only adds summands more to what is pending. */
static bool adds_to(const struct exchange *pending, const struct step *step,
                    const struct tensor *moduli)
{
    return step_adds(step) && step->out->storage == pending->sum->storage &&
           layout_same_elements(&step->out->layout, &pending->sum->layout) &&
           moduli->storage == pending->moduli->storage &&
           layout_same_elements(&moduli->layout, &pending->moduli->layout);
}

static bool uses(const struct tensor *tensor, const struct tensor *pending)
{
    return tensor && tensor->storage == pending->storage &&
           layouts_may_overlap(&tensor->layout, &pending->layout);
}

/* Whether a step wants a sum that is pending, or its moduli change. but: an operand that is left
 * out. */
static bool wants(const struct exchange *pending, const struct step *step, int but)
{
    bool found = step->kind == STEP_RELEASE && (step->in[0]->storage == pending->sum->storage ||
                                                step->in[0]->storage == pending->moduli->storage);
    for (int i = 0; i < STEP_OPERANDS && !found; i++)
        found = i != but && uses(step_operand(step, i), pending->sum);
    return found || (step->out && uses(step->out, pending->moduli));
}

/* Whether a sum that a step wants is pending. sum: the moduli of one that it makes itself, or NULL;
 * then *is_open tells whether it adds to one that is pending. */
static bool waits(const struct splitter *splitter, const struct step *step,
                  const struct tensor *sum, bool *is_open)
{
    bool found = false;
    *is_open = false;
    for (size_t i = 0; i < splitter->pending_count; i++) {
        const struct exchange *pending = &splitter->pending[i];
        const bool adds = sum && adds_to(pending, step, sum);
        *is_open |= adds;
        found |= wants(pending, step, adds ? STEP_OUT : NO_INPUT);
    }
    return found;
}

MUST_CHECK static enum healcl_status begin_step(struct splitter *splitter, const struct step *step,
                                                const struct tensor *sum, bool *is_open,
                                                struct healcl_error *error)
{
    if (!waits(splitter, step, sum, is_open))
        return HEALCL_OK;
    *is_open = false;
    TRY(exchange_pending(splitter, error));
    TRY(add_segment(splitter, splitter->segment, error));
    splitter->segment->first_storage = splitter->next_storage;
    return HEALCL_OK;
}

/* The first step of a sum: what it adds to is counted by one rank alone. */
MUST_CHECK static enum healcl_status open_sum(struct splitter *splitter, const struct step *step,
                                              const struct tensor *moduli,
                                              struct healcl_error *error)
{
    struct exchange *pending = array_with_room(splitter->pending, splitter->pending_count,
                                               &splitter->pending_capacity, sizeof *pending);
    if (!pending)
        NO_MEMORY(error);
    splitter->pending = pending;
    pending[splitter->pending_count] = (struct exchange){.sum = step->out};
    TRY(new_view(splitter, moduli->storage, &moduli->layout,
                 &pending[splitter->pending_count].moduli, error));
    splitter->pending_count++;
    if (!step_adds(step) || splitter->split->rank == 0)
        return HEALCL_OK;
    struct step fill = {.kind = STEP_FILL, .side = step->side, .origins = step->origins};
    fill.out = step->out;
    return write_step(splitter, &fill, error);
}

/* ---------------------------------------------------------------- steps */

/* Operations with steps are counted where those are. */
static void count_operation(struct splitter *splitter, const struct segment *from,
                            const struct step *step)
{
    const struct origin *origin = step_origin(step, NO_INPUT);
    struct segment *first = &splitter->segments[splitter->segment_count - 1];
    (void)from;
    if (!origin->form || origin->entry == splitter->last_entry)
        return;
    splitter->last_entry = origin->entry;
    first->counts[origin_operation(origin)->number]++;
}

MUST_CHECK static enum healcl_status split_step(struct splitter *splitter, struct step *step,
                                                struct healcl_error *error)
{
    const struct step whole = *step;
    const struct step_cut cut = split_axes_step(&splitter->axes, step);
    struct step_axes names;
    struct tensor moduli;
    bool is_open = false;
    if (cut.letter)
        TRY(split_operands(splitter, &cut, step, error));
    if (cut.sums) {
        step_axes(step, &names);
        (void)step_moduli_of(step, &names, STEP_OUT, &moduli);
    }
    TRY(begin_step(splitter, step, cut.sums ? &moduli : NULL, &is_open, error));
    if (cut.sums && !is_open)
        TRY(open_sum(splitter, step, &moduli, error));
    if (whole.kind == STEP_UPLOAD || whole.kind == STEP_DOWNLOAD) {
        const struct tensor *tensor = whole.out ? whole.out : whole.in[0];
        const struct payload_part part = part_of(splitter, tensor);
        TRY(split_payload(splitter, &part, tensor, step, error));
        if (whole.kind == STEP_UPLOAD)
            splitter->plan->input_parts[splitter->inputs++] = part;
        else
            splitter->plan->result_parts[splitter->results++] = part;
    }
    return write_step(splitter, step, error);
}
