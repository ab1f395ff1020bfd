#include "plan/split.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/array.h"
#include "plan/split_axes.h"

/* A sum of which ranks hold summands so far, in the whole plan and in the part. */
struct pending {
    struct tensor sum, moduli;
    struct exchange part;
};

struct splitter {
    struct rewrite *rewrite;
    const struct healcl_split *split;
    struct split_axes axes;
    int64_t start, size;        /* the rank's indices of the axis */
    const struct segment *from; /* of the whole plan, the current one */
    struct pending *pending;
    size_t pending_count, pending_capacity;
    size_t inputs, results; /* so far */
};

/* ---------------------------------------------------------------- views */

/* The rank's share of `whole` elements, of which each index of the axis has equally many. */
static int64_t split_elements_of_rank(const struct splitter *splitter, int64_t whole)
{
    return whole / splitter->axes.count * splitter->size;
}

/* The rank's part of a view of a split storage. */
static struct layout part_of_split(const struct splitter *splitter, const struct tensor *tensor)
{
    const int64_t period = splitter->axes.units[tensor->storage->id] * splitter->axes.count;
    const struct view_cut cut = split_axes_view(&splitter->axes, tensor);
    struct layout part = tensor->layout;
    part.offset =
        split_elements_of_rank(splitter, part.offset / period * period) + part.offset % period;
    part.shape[cut.axis] = split_elements_of_rank(splitter, part.shape[cut.axis]);
    for (uint32_t axis = 0; axis < part.rank; axis++)
        if (part.stride[axis] >= period)
            part.stride[axis] = split_elements_of_rank(splitter, part.stride[axis]);
    return part;
}

/* The rank's part of a view of a whole storage. */
static struct layout part_of_whole(const struct splitter *splitter, const struct layout *view,
                                   uint32_t axis, int64_t each)
{
    struct layout part = *view;
    if (view->stride[axis] == 0)
        part.shape[axis] = split_elements_of_rank(splitter, part.shape[axis]);
    else
        part = layout_narrow(view, axis, splitter->start * each, splitter->size * each);
    return part;
}

static bool is_split(const struct splitter *splitter, const struct storage *storage)
{
    return splitter->axes.units[storage->id] > 0;
}

/* Writes an operand: a view of the part's storage. */
static enum healcl_status split_write_view(const struct splitter *splitter,
                                           const struct storage *storage,
                                           const struct layout *layout,
                                           const struct tensor **tensor, struct healcl_error *error)
{
    const int64_t elements = is_split(splitter, storage)
                                 ? split_elements_of_rank(splitter, storage->elements)
                                 : storage->elements;
    return rewrite_operand(splitter->rewrite, storage, elements, layout, tensor, error);
}

static enum healcl_status write_operands(const struct splitter *splitter, const struct step *whole,
                                         const struct step_cut *cut, struct step *part,
                                         struct healcl_error *error)
{
    struct step_axes names;
    step_axes(whole, &names);
    FOR_EACH_OPERAND (i, tensor, whole) {
        const int axis = cut->letter ? step_axis(&names, i, cut->letter) : NO_AXIS;
        struct layout layout = tensor->layout;
        if (axis != NO_AXIS)
            layout = is_split(splitter, tensor->storage)
                         ? part_of_split(splitter, tensor)
                         : part_of_whole(splitter, &layout, (uint32_t)axis, cut->each);
        TRY(split_write_view(splitter, tensor->storage, &layout, &part->operands[i], error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- transfers */

/* The rank's part of an upload's output, or of a download. */
static struct healcl_part split_part(const struct splitter *splitter, const struct tensor *tensor)
{
    if (!is_split(splitter, tensor->storage))
        return (struct healcl_part){.period = 0};
    const struct view_cut cut = split_axes_view(&splitter->axes, tensor);
    return (struct healcl_part){cut.axis, splitter->start * cut.each, splitter->size * cut.each,
                                splitter->axes.count * cut.each};
}

/* Notes the part of a transfer, and narrows the payload to it. */
static enum healcl_status write_transfer(struct splitter *splitter, const struct step *whole,
                                         struct step *part, struct healcl_error *error)
{
    struct plan *plan = splitter->rewrite->planner.plan;
    const struct tensor *tensor = whole->out ? whole->out : whole->in[0];
    const struct healcl_part of = split_part(splitter, tensor);
    if (whole->kind == STEP_UPLOAD)
        plan->input_parts[splitter->inputs++] = of;
    else
        plan->result_parts[splitter->results++] = of;
    if (of.period > 0 && whole->payload && whole->payload->copies > 0)
        FAIL(error, HEALCL_USAGE, "a widened transcript that expects results cannot be split");
    /* If another shape is expected, no part of it corresponds. */
    if (of.period == 0 || !whole->payload ||
        !layout_same_shape(&whole->payload->layout, &tensor->layout))
        return HEALCL_OK;
    struct payload *payload = arena_copy(plan->arena, whole->payload, sizeof *payload);
    NEED_MEMORY(payload, error);
    payload_narrow(payload, &of);
    part->payload = payload;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- exchanges */

/* Ends the current segment with the pending exchanges. */
static enum healcl_status exchange(struct splitter *splitter, struct healcl_error *error)
{
    struct segment *segment = splitter->rewrite->planner.segment;
    struct exchange *exchanges = arena_alloc(splitter->rewrite->planner.plan->arena,
                                             splitter->pending_count * sizeof *exchanges);
    NEED_MEMORY(exchanges, error);
    for (size_t i = 0; i < splitter->pending_count; i++)
        exchanges[i] = splitter->pending[i].part;
    segment->exchanges = exchanges;
    segment->exchange_count = splitter->pending_count;
    splitter->pending_count = 0;
    return HEALCL_OK;
}

/* Whether a step needs a pending sum, releases it, or releases or changes its moduli. but: an
 * operand to ignore. */
static bool wants(const struct step *step, const struct pending *pending, int but)
{
    if (step->kind == STEP_RELEASE)
        return step->in[0]->storage == pending->sum.storage ||
               step->in[0]->storage == pending->moduli.storage;
    bool found = tensors_overlap(step->out, &pending->moduli);
    for (int i = 0; i < STEP_OPERANDS; i++)
        found |= i != but && tensors_overlap(step->operands[i], &pending->sum);
    return found;
}

/* Whether a step must wait for an exchange. moduli: of the sum that it makes a summand of, or NULL.
 * *adds: such a sum is pending, and the step only adds to it. */
static bool waits(const struct splitter *splitter, const struct step *step,
                  const struct tensor *moduli, bool *adds)
{
    bool found = false;
    *adds = false;
    for (size_t i = 0; i < splitter->pending_count; i++) {
        const struct pending *pending = &splitter->pending[i];
        const bool is_more = moduli && step_adds(step) && tensors_same(step->out, &pending->sum) &&
                             tensors_same(moduli, &pending->moduli);
        *adds |= is_more;
        found |= wants(step, pending, is_more ? STEP_OUT : NO_INPUT);
    }
    return found;
}

/* Begins a sum with its first summands. Only one rank includes the value that the sum adds to. */
static enum healcl_status open_sum(struct splitter *splitter, const struct step *whole,
                                   const struct tensor *moduli, const struct step *part,
                                   struct healcl_error *error)
{
    NEED_MEMORY(ARRAY_GROW(splitter->pending, splitter->pending_count, &splitter->pending_capacity),
                error);
    struct pending *pending = &splitter->pending[splitter->pending_count++];
    *pending = (struct pending){.sum = *whole->out, .moduli = *moduli};
    struct exchange *exchange = &pending->part;
    exchange->sum = part->out;
    TRY(split_write_view(splitter, moduli->storage, &moduli->layout, &exchange->moduli, error));
    if (!step_adds(whole) || splitter->split->rank == 0)
        return HEALCL_OK;
    const struct step fill = {.kind = STEP_FILL,
                              .side = part->side,
                              .vendor = part->vendor,
                              .origins = part->origins,
                              .out = part->out};
    return rewrite_step(splitter->rewrite, &fill, error);
}

/* ---------------------------------------------------------------- steps */

static enum healcl_status split_step(struct splitter *splitter, const struct step *step,
                                     struct healcl_error *error)
{
    const struct step_cut cut = split_axes_step(&splitter->axes, step);
    struct step part = *step;
    struct step_axes names;
    struct tensor moduli;
    bool adds;
    step_axes(step, &names);
    if (cut.sums && !step_moduli_of(step, &names, STEP_OUT, &moduli))
        REFUSE(error, "a sum without moduli cannot be split");
    if (waits(splitter, step, cut.sums ? &moduli : NULL, &adds)) {
        TRY(exchange(splitter, error)); /* the segment continues after it */
        TRY(planner_open_segment(&splitter->rewrite->planner, splitter->from->name, true, error));
        adds = false;
    }
    TRY(write_operands(splitter, step, &cut, &part, error));
    if (cut.sums && !adds)
        TRY(open_sum(splitter, step, &moduli, &part, error));
    if (step->kind == STEP_UPLOAD || step->kind == STEP_DOWNLOAD)
        TRY(write_transfer(splitter, step, &part, error));
    return rewrite_step(splitter->rewrite, &part, error);
}

static enum healcl_status split_segments(struct splitter *splitter, struct healcl_error *error)
{
    const struct plan *from = splitter->rewrite->from;
    for (size_t s = 0; s < from->segment_count; s++) {
        splitter->from = &from->segments[s];
        TRY(rewrite_segment(splitter->rewrite, splitter->from, error));
        for (size_t i = 0; i < splitter->from->step_count; i++)
            TRY(split_step(splitter, &from->steps[splitter->from->first_step + i], error));
        TRY(exchange(splitter, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- all */

/* The upload of an input. */
static enum healcl_status find_upload(const struct plan *plan, const struct healcl_split *split,
                                      const struct step **upload, struct healcl_error *error)
{
    NEED_NUMBER("input", split->input, plan->uploads, error);
    const struct step *step = plan->steps;
    for (size_t left = split->input;; step++)
        if (step->kind == STEP_UPLOAD && left-- == 0)
            break;
    *upload = step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    if (split->axis >= step->out->layout.rank)
        FAIL(error, HEALCL_USAGE,
             "entry %zu (%s): there is no axis %" PRIu32 "; the rank is %" PRIu32, origin->entry,
             origin->name, split->axis, step->out->layout.rank);
    if (split->rank >= split->ranks)
        FAIL(error, HEALCL_USAGE, "there is no rank %" PRIu32 " among %" PRIu32, split->rank,
             split->ranks);
    return HEALCL_OK;
}

enum healcl_status plan_split(struct rewrite *rewrite, const void *how, struct healcl_error *error)
{
    struct plan *plan = rewrite->planner.plan;
    struct splitter splitter = {.rewrite = rewrite, .split = how};
    const struct step *upload = NULL;
    TRY(find_upload(rewrite->from, splitter.split, &upload, error));
    plan->input_parts =
        arena_alloc(plan->arena, rewrite->from->uploads * sizeof *plan->input_parts);
    plan->result_parts =
        arena_alloc(plan->arena, rewrite->from->results * sizeof *plan->result_parts);
    NEED_MEMORY(plan->input_parts && plan->result_parts, error);
    TRY(split_axes_find(rewrite->from, upload, splitter.split, &splitter.axes, error));
    /* Parts have equally many indices, or one more for the first ones. */
    const int64_t rank = splitter.split->rank, ranks = splitter.split->ranks;
    const int64_t least = splitter.axes.count / ranks, more = splitter.axes.count % ranks;
    splitter.start = least * rank + (rank < more ? rank : more);
    splitter.size = least + (rank < more);
    enum healcl_status status = split_segments(&splitter, error);
    split_axes_release(&splitter.axes);
    free(splitter.pending);
    return status;
}

/* ---------------------------------------------------------------- choosing */

/* Number of inputs that are tried, the largest ones. */
enum { INPUTS_MOST = 32 };

static double visits_of(const struct plan *plan)
{
    double visits = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        visits += (double)step_visits(&plan->steps[i]);
    return visits;
}

/* Cost of a part relative to the whole: the sum of its shares of memory, exchange and work. */
static double share_of(const struct plan *part, const struct plan *whole)
{
    uint64_t exchanged = 0;
    for (size_t s = 0; s < part->segment_count; s++)
        for (size_t i = 0; i < part->segments[s].exchange_count; i++)
            exchanged += packed_bytes(part->segments[s].exchanges[i].sum);
    return ((double)part->bytes_peak + 2 * (double)exchanged) / ((double)whole->bytes_peak + 1) +
           visits_of(part) / (visits_of(whole) + 1);
}

struct candidate {
    const struct step *upload;
    size_t input;
};

/* The largest inputs, largest first, with room for one more. Returns their number. */
static size_t find_largest(const struct plan *plan, struct candidate largest[INPUTS_MOST + 1])
{
    size_t count = 0, input = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind != STEP_UPLOAD)
            continue;
        const struct candidate candidate = {step, input++};
        size_t place = count < INPUTS_MOST ? count++ : INPUTS_MOST;
        for (; place > 0 && storage_bytes(largest[place - 1].upload->out->storage) <
                                storage_bytes(step->out->storage);
             place--)
            largest[place] = largest[place - 1];
        largest[place] = candidate;
    }
    return count;
}

/* Tries all axes of an input. The first rank's part is at least as large as the others. */
static enum healcl_status try_input(struct plan *plan, const struct healcl_plan_options *options,
                                    const struct candidate *candidate, double *least,
                                    struct healcl_split *split, struct healcl_error *error)
{
    for (uint32_t axis = 0; axis < candidate->upload->out->layout.rank; axis++) {
        const struct healcl_split one = {candidate->input, axis, 0, split->ranks};
        struct plan *part;
        const enum healcl_status status =
            plan_rewrite(plan, true, options, plan_split, &one, &part, error);
        if (status == HEALCL_NO_MEMORY)
            return status;
        if (status != HEALCL_OK) {
            healcl_error_clear(error);
            continue;
        }
        const double share = share_of(part, plan);
        plan_free(part);
        if (share >= *least)
            continue;
        *least = share;
        split->input = one.input;
        split->axis = one.axis;
    }
    return HEALCL_OK;
}

enum healcl_status plan_choose_split(struct plan *plan, const struct healcl_plan_options *options,
                                     struct healcl_split *split, struct healcl_error *error)
{
    struct candidate largest[INPUTS_MOST + 1];
    const size_t count = find_largest(plan, largest);
    double least = INFINITY;
    for (size_t i = 0; i < count; i++)
        TRY(try_input(plan, options, &largest[i], &least, split, error));
    if (isinf(least))
        REFUSE(error, "no axis of an input can be split for %" PRIu32 " ranks", split->ranks);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- exchanges */

uint64_t exchange_piece(uint64_t elements, uint32_t rank, uint32_t ranks)
{
    return elements * rank / ranks;
}

uint64_t exchange_bytes_sent(const struct plan *plan, uint32_t rank, uint32_t ranks)
{
    uint64_t bytes = 0;
    for (size_t s = 0; s < plan->segment_count; s++)
        for (size_t i = 0; i < plan->segments[s].exchange_count; i++) {
            const struct tensor *sum = plan->segments[s].exchanges[i].sum;
            uint64_t left = (uint64_t)layout_elements(&sum->layout);
            for (uint64_t block; left > 0; left -= block) {
                block = left < EXCHANGE_BLOCK ? left : EXCHANGE_BLOCK;
                const uint64_t own =
                    exchange_piece(block, rank + 1, ranks) - exchange_piece(block, rank, ranks);
                bytes += (block - own + own * (ranks - 1)) * dtype_size(sum->storage->dtype);
            }
        }
    return bytes;
}
