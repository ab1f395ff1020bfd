#include "check/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/transcript_text.h"

const char *arrangement_name(enum arrangement arrangement)
{
    static const char *const names[] = {"contiguous", "offset",    "strided",
                                        "transposed", "broadcast", "in place",
                                        "overlap",    "random",    "beside"};
    return names[arrangement];
}

/* ---------------------------------------------------------------- which tensors */

static bool is_input(const struct problem *problem, int i)
{
    return problem->tensors[i].present && i != problem->out;
}

/* Whether any values will do, so that other tensors may share them. */
static bool is_free(const struct problem *problem, int i)
{
    return problem->tensors[i].contents == CONTENTS_VALUES ||
           problem->tensors[i].contents == CONTENTS_TAME;
}

static bool may_repeat(const struct problem_tensor *tensor)
{
    return tensor->contents != CONTENTS_COPRIME && tensor->contents != CONTENTS_PERMUTATION;
}

/* The axis that an input repeats in ARRANGEMENT_BROADCAST, or -1. */
static int repeated_axis(const struct problem_tensor *tensor, uint64_t variant)
{
    int found[LAYOUT_RANK], count = 0;
    if (!may_repeat(tensor))
        return -1;
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        if (tensor->shape.shape[axis] > 1)
            found[count++] = (int)axis;
    return count ? found[variant % (uint64_t)count] : -1;
}

/* An input of the output's dtype, of its shape too where that is asked for; those of any values
 * first. */
static int partner_of_out(const struct problem *problem, bool same_shape)
{
    if (problem->out < 0)
        return -1;
    const struct problem_tensor *out = &problem->tensors[problem->out];
    for (int free = 1; free >= 0; free--)
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (is_input(problem, i) && is_free(problem, i) == (free == 1) &&
                problem->tensors[i].dtype == out->dtype &&
                problem->tensors[i].contents != CONTENTS_PERMUTATION &&
                layout_elements(&problem->tensors[i].shape) > 0 &&
                (!same_shape || layout_same_shape(&problem->tensors[i].shape, &out->shape)))
                return i;
    return -1;
}

/* Operations whose output has a shape of its own: it may equal an input's only by chance. */
static bool reshapes(const struct problem *problem)
{
    switch (form_id(problem->form)) {
    case OPERATION_AXIS_MODSUM:
    case OPERATION_MODMUL_AXIS_SUM:
    case OPERATION_G_DECOMP:
    case OPERATION_G_DECOMP_FULL_Q: return true;
    default: return false;
    }
}

const char *arrangement_excluded(const struct problem *problem, enum arrangement arrangement)
{
    int tensors = 0, repeats = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        tensors += problem->tensors[i].present;
        repeats += is_input(problem, i) && repeated_axis(&problem->tensors[i], 0) >= 0;
    }
    if (arrangement != ARRANGEMENT_CONTIGUOUS && tensors == 0)
        return "no tensor among the arguments";
    if (arrangement == ARRANGEMENT_BROADCAST && repeats == 0)
        return "no input to repeat";
    if (arrangement == ARRANGEMENT_IN_PLACE || arrangement == ARRANGEMENT_OVERLAP) {
        if (problem->out < 0)
            return "nothing is written";
        if (partner_of_out(problem, false) < 0)
            return "no input of the output's dtype";
        if (arrangement == ARRANGEMENT_IN_PLACE &&
            (reshapes(problem) || partner_of_out(problem, true) < 0))
            return "no input of the output's shape and dtype";
    }
    return NULL;
}

/* ---------------------------------------------------------------- layouts */

static void place_init(struct place *place)
{
    memset(place, 0, sizeof *place);
    for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++) {
        place->order[axis] = axis;
        place->step[axis] = 1;
    }
    place->flat_step = 1;
}

static int64_t span_of(int64_t size, int64_t step)
{
    return size > 0 ? (size - 1) * step + 1 : 0;
}

/* The sizes of a tensor in the order of its storage, repeated axes once. */
static struct layout stored_shape(const struct place *place, const struct problem_tensor *tensor)
{
    int64_t shape[LAYOUT_RANK];
    struct layout stored;
    uint32_t rank = tensor->shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = place->repeated[place->order[i]] ? 1 : tensor->shape.shape[place->order[i]];
    if (layout_init(&stored, rank, shape, 8, NULL) != HEALCL_OK)
        abort();
    return stored;
}

/* The shape of a storage that holds just this tensor. */
static struct layout storage_shape(const struct place *place, const struct problem_tensor *tensor)
{
    int64_t shape[LAYOUT_RANK];
    struct layout layout, stored = stored_shape(place, tensor);
    uint32_t rank = 0;
    if (place->leading)
        shape[rank++] = 3;
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        shape[rank++] =
            place->before[axis] + span_of(stored.shape[i], place->step[axis]) + place->after[axis];
    }
    if (layout_init(&layout, rank, shape, 8, NULL) != HEALCL_OK)
        abort();
    return layout;
}

static void set_layout(struct place *place, const struct problem_tensor *tensor,
                       const struct layout *storage)
{
    struct layout stored = stored_shape(place, tensor);
    place->layout = tensor->shape;
    place->layout.offset = place->flat ? place->start : place->leading ? storage->stride[0] : 0;
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        int64_t stride = place->flat ? stored.stride[i] * place->flat_step
                                     : storage->stride[i + place->leading] * place->step[axis];
        if (!place->flat)
            place->layout.offset += place->before[axis] * storage->stride[i + place->leading];
        place->layout.stride[axis] = place->repeated[axis] ? 0 : stride;
    }
}

/* The tensor's own storage. */
static void finish_alone(struct placement *placement, const struct problem *problem, int i)
{
    struct place *place = &placement->places[i];
    struct placed_storage *storage = &placement->storages[placement->storage_count];
    storage->dtype = problem->tensors[i].dtype;
    storage->shape = storage_shape(place, &problem->tensors[i]);
    place->storage = placement->storage_count++;
    set_layout(place, &problem->tensors[i], &storage->shape);
}

/* The output and the given inputs in a storage of one axis, the largest that any of them needs. */
static void finish_flat(struct placement *placement, const struct problem *problem,
                        const bool *together)
{
    struct placed_storage *storage = &placement->storages[placement->storage_count];
    int64_t end = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        struct place *place = &placement->places[i];
        if (!together[i])
            continue;
        struct layout stored = stored_shape(place, &problem->tensors[i]);
        int64_t last = place->start + span_of(layout_elements(&stored), place->flat_step);
        end = last > end ? last : end;
        place->flat = true;
        place->storage = placement->storage_count;
        set_layout(place, &problem->tensors[i], NULL);
    }
    end += 3;
    storage->dtype = problem->tensors[problem->out].dtype;
    if (layout_init(&storage->shape, 1, &end, 8, NULL) != HEALCL_OK)
        abort();
    placement->storage_count++;
    placement->shared = true;
}

/* ---------------------------------------------------------------- arrangements */

static void reverse_axes(struct place *place, uint32_t rank)
{
    for (uint32_t axis = 0; axis < rank; axis++)
        place->order[axis] = rank - 1 - axis;
}

static void arrange(struct place *place, const struct problem_tensor *tensor, bool is_out,
                    enum arrangement arrangement, uint64_t variant)
{
    uint32_t rank = tensor->shape.rank;
    switch (arrangement) {
    case ARRANGEMENT_OFFSET:
        place->leading = rank == 0;
        place->before[0] = place->after[0] = 1;
        break;
    case ARRANGEMENT_STRIDED:
        place->leading = rank == 0;
        if (rank > 0) {
            place->step[rank - 1] = 2;
            place->before[rank - 1] = place->after[rank - 1] = 1;
        }
        break;
    case ARRANGEMENT_TRANSPOSED:
        reverse_axes(place, rank);
        place->after[0] = 1;
        break;
    case ARRANGEMENT_BROADCAST:
        if (!is_out && repeated_axis(tensor, variant) >= 0)
            place->repeated[repeated_axis(tensor, variant)] = true;
        break;
    default: break;
    }
}

static void share_place(struct placement *placement, const struct problem *problem, int with_out)
{
    finish_alone(placement, problem, problem->out);
    placement->places[with_out] = placement->places[problem->out];
    placement->shared = true;
}

/* ---------------------------------------------------------------- random ones */

/* Axes with room around them: each makes the storage several times as large. */
enum { ROOMY_AXES = 4 };

static void arrange_any(struct place *place, const struct problem_tensor *tensor, bool is_out,
                        struct random *random)
{
    uint32_t rank = tensor->shape.rank;
    if (random_once_in(random, 4))
        return;
    int roomy = 0;
    place->leading = rank < MAX_RANK && random_once_in(random, 3);
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool repeats = !is_out && may_repeat(tensor) && random_once_in(random, 6);
        if (repeats && tensor->shape.shape[axis] > 0)
            place->repeated[axis] = true;
        else if (random_once_in(random, 2) && roomy++ < ROOMY_AXES) {
            place->step[axis] = random_between(random, 1, 3);
            place->before[axis] = random_between(random, 0, 2);
            place->after[axis] = random_between(random, 0, 2);
        }
    }
    if (random_once_in(random, 2))
        return;
    for (uint32_t axis = rank; axis-- > 1;) {
        uint32_t other = (uint32_t)random_between(random, 0, axis), swapped = place->order[axis];
        place->order[axis] = place->order[other];
        place->order[other] = swapped;
    }
}

/* The output, one input whose contents matter, and any others: anywhere in one storage. */
static void share_any(struct placement *placement, const struct problem *problem, bool *together,
                      struct random *random)
{
    const struct problem_tensor *out = &problem->tensors[problem->out];
    bool has_critical = false;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        bool shares = i == problem->out ||
                      (is_input(problem, i) && problem->tensors[i].dtype == out->dtype &&
                       (is_free(problem, i) || !has_critical) && random_once_in(random, 2));
        if (!shares)
            continue;
        struct place *place = &placement->places[i];
        has_critical = has_critical || !is_free(problem, i);
        together[i] = true;
        place->leading = false;
        for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++) {
            place->before[axis] = place->after[axis] = 0;
            place->step[axis] = 1;
        }
        place->start = random_between(random, 0, random_once_in(random, 2) ? 3 : 60);
        place->flat_step = random_once_in(random, 3) ? 2 : 1;
    }
    /* Often the very same elements, in the same or another order. */
    int partner = partner_of_out(problem, true);
    if (partner >= 0 && together[partner] && random_once_in(random, 2)) {
        struct place *place = &placement->places[partner];
        const struct place *as = &placement->places[problem->out];
        place->start = as->start;
        place->flat_step = as->flat_step;
        memset(place->repeated, 0, sizeof place->repeated);
        if (random_once_in(random, 2))
            memcpy(place->order, as->order, sizeof place->order);
    }
    finish_flat(placement, problem, together);
}

/* Shifted views of one storage of several axes: out and an input of its shape. */
static void share_shifted(struct placement *placement, const struct problem *problem, int partner,
                          struct random *random)
{
    struct place *out = &placement->places[problem->out], *in = &placement->places[partner];
    uint32_t rank = problem->tensors[partner].shape.rank;
    place_init(out);
    place_init(in);
    for (int i = 0; i < ROOMY_AXES && rank > 0; i++) {
        int64_t axis = random_between(random, 0, rank - 1);
        out->step[axis] = in->step[axis] = random_once_in(random, 3) ? 2 : 1;
        out->before[axis] = random_between(random, 0, 2);
        in->before[axis] = random_between(random, 0, 2);
        out->after[axis] = 2 - out->before[axis];
        in->after[axis] = 2 - in->before[axis];
    }
    finish_alone(placement, problem, problem->out);
    in->storage = out->storage;
    set_layout(in, &problem->tensors[partner], &placement->storages[out->storage].shape);
    placement->shared = true;
}

static void make_random(struct placement *placement, const struct problem *problem,
                        struct random *random)
{
    bool together[PARAMETERS_MAX] = {false};
    int partner = partner_of_out(problem, true);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            arrange_any(&placement->places[i], &problem->tensors[i], i == problem->out, random);
    if (partner >= 0 && random_once_in(random, 4)) {
        share_shifted(placement, problem, partner, random);
        together[partner] = together[problem->out] = true;
    } else if (problem->out >= 0 && random_once_in(random, 2)) {
        share_any(placement, problem, together, random);
    }
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present && !together[i])
            finish_alone(placement, problem, i);
}

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random)
{
    memset(placement, 0, sizeof *placement);
    bool together[PARAMETERS_MAX] = {false};
    for (int i = 0; i < PARAMETERS_MAX; i++)
        place_init(&placement->places[i]);
    if (arrangement == ARRANGEMENT_RANDOM) {
        make_random(placement, problem, random);
    } else if (arrangement == ARRANGEMENT_IN_PLACE) {
        int partner = partner_of_out(problem, true);
        static const enum arrangement both[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_STRIDED,
                                                ARRANGEMENT_TRANSPOSED};
        arrange(&placement->places[problem->out], &problem->tensors[problem->out], true,
                both[variant % 3], variant);
        share_place(placement, problem, partner);
        together[partner] = together[problem->out] = true;
    } else if (arrangement == ARRANGEMENT_OVERLAP) {
        int partner = partner_of_out(problem, false);
        int64_t count = layout_elements(&problem->tensors[partner].shape);
        int64_t out_count = layout_elements(&problem->tensors[problem->out].shape);
        struct place *out = &placement->places[problem->out];
        count = count < out_count ? count : out_count;
        out->start = variant % 2 && count > 1 ? 1 : count / 2;
        if (variant % 4 >= 2) { /* the output comes first */
            placement->places[partner].start = out->start;
            out->start = 0;
        }
        together[partner] = together[problem->out] = true;
        finish_flat(placement, problem, together);
    } else if (arrangement == ARRANGEMENT_BESIDE) {
        int partner = partner_of_out(problem, false);
        placement->places[partner].start = layout_elements(&problem->tensors[problem->out].shape);
        together[partner] = together[problem->out] = true;
        finish_flat(placement, problem, together);
    } else {
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (problem->tensors[i].present)
                arrange(&placement->places[i], &problem->tensors[i], i == problem->out, arrangement,
                        variant);
    }
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        if (problem->tensors[i].present && !together[i] && arrangement != ARRANGEMENT_RANDOM)
            finish_alone(placement, problem, i);
        for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++)
            placement->repeats = placement->repeats || placement->places[i].repeated[axis];
    }
}

uint64_t placement_bytes(const struct placement *placement, uint32_t storage)
{
    return (uint64_t)layout_elements(&placement->storages[storage].shape) *
           dtype_size(placement->storages[storage].dtype);
}

/* ---------------------------------------------------------------- transcripts */

static void put_name(struct text *text, const char *name, int number)
{
    char whole[32];
    snprintf(whole, sizeof whole, "%s%d", name, number);
    text_tensor(text, whole);
}

/* Ends an operation whose result gets a name. */
static void end_operation(struct text *text, const char *name, int number)
{
    text_put(text, "],\"out\":");
    put_name(text, name, number);
    text_put(text, "}}");
}

static void put_empty(struct text *text, const struct placed_storage *storage, uint32_t number)
{
    text_begin(text, "empty");
    text_shape(text, storage->shape.rank, storage->shape.shape);
    text_put(text, ",{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"%s\"}", dtype_name(storage->dtype));
    end_operation(text, "storage", (int)number);
}

/* The part of the storage that holds the tensor's elements, axes in the storage's order. */
static void put_part(struct text *text, const struct place *place,
                     const struct problem_tensor *tensor, int number)
{
    struct layout stored = stored_shape(place, tensor);
    text_begin(text, "get_slice");
    put_name(text, "storage", (int)place->storage);
    text_put(text, ",{\"arg_type\":\"SHAPE\",\"value\":[");
    if (place->flat)
        text_slice(text, place->start,
                   place->start + span_of(layout_elements(&stored), place->flat_step),
                   place->flat_step);
    if (place->leading)
        text_int(text, -2);
    for (uint32_t i = 0; i < stored.rank && !place->flat; i++) {
        uint32_t axis = place->order[i];
        text_put(text, i || place->leading ? "," : "");
        text_slice(text, place->before[axis],
                   place->before[axis] + span_of(stored.shape[i], place->step[axis]),
                   place->step[axis]);
    }
    text_put(text, "]}");
    end_operation(text, "t", number);
    if (!place->flat)
        return;
    text_begin(text, "reshape");
    put_name(text, "t", number);
    text_put(text, ",");
    text_shape(text, stored.rank, stored.shape);
    end_operation(text, "t", number);
}

static void put_moveaxis(struct text *text, int number, uint32_t from, uint32_t to)
{
    text_begin(text, "moveaxis");
    put_name(text, "t", number);
    text_put(text, ",");
    text_int(text, from);
    text_put(text, ",");
    text_int(text, to);
    end_operation(text, "t", number);
}

/* Binds the name t<number> to a tensor of the problem. */
static void put_tensor(struct text *text, const struct place *place,
                       const struct problem_tensor *tensor, int number)
{
    uint32_t order[LAYOUT_RANK], rank = tensor->shape.rank;
    put_part(text, place, tensor, number);
    memcpy(order, place->order, sizeof order);
    for (uint32_t to = 0; to < rank; to++) {
        uint32_t from = to;
        while (order[from] != to)
            from++;
        if (from == to)
            continue;
        put_moveaxis(text, number, from, to);
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
        order[to] = to;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (!place->repeated[axis])
            continue;
        text_begin(text, "expand");
        put_name(text, "t", number);
        text_put(text, ",");
        text_int(text, axis);
        text_put(text, ",");
        text_int(text, tensor->shape.shape[axis]);
        end_operation(text, "t", number);
    }
}

static void put_download(struct text *text, const char *name, int number)
{
    text_begin(text, "device_to_host");
    put_name(text, name, number);
    text_put(text, "],\"out\":{\"arg_type\":\"NONE\",\"value\":null}}}");
}

static void put_call(struct text *text, const struct problem *problem, const void *payload)
{
    const struct form *form = problem->form;
    text_begin(text, form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        text_put(text, i ? "," : "");
        if (form->parameters[i].kind == PARAMETER_HOST)
            text_payload(text, problem->payload.dtype, &problem->payload.shape,
                         problem->payload_fortran, payload);
        else if (problem->tensors[i].present)
            put_name(text, "t", (int)i);
        else
            text_put(text, "%s", problem->text[i]);
    }
    enum operation_result result = form->operation->result;
    if (result == RESULT_NEW)
        end_operation(text, "made", 0);
    else if (result == RESULT_ALIAS)
        end_operation(text, "t", problem->out);
    else
        text_put(text, "],\"out\":{\"arg_type\":\"NONE\",\"value\":null}}}");
}

char *placement_transcript(const struct placement *placement, const struct problem *problem,
                           const void *payload)
{
    struct text text = {.bytes = NULL};
    enum operation_id operation = form_id(problem->form);
    text_put(&text, "[");
    for (uint32_t i = 0; i < placement->storage_count; i++)
        put_empty(&text, &placement->storages[i], i);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            put_tensor(&text, &placement->places[i], &problem->tensors[i], i);
    if (operation == OPERATION_FREE_DEVICE_TENSOR) {
        /* Another name keeps the tensor, its storage has none any more. */
        text_begin(&text, "new_reference");
        put_name(&text, "t", 0);
        end_operation(&text, "made", 0);
        text_put(&text, ",\n{\"type\":\"FREE_DEVICE_TENSOR\",\"tensor_name\":\"storage0\"}");
    }
    put_call(&text, problem, payload);
    if (operation == OPERATION_EMPTY) {
        text_begin(&text, "set_const_val");
        put_name(&text, "made", 0);
        text_put(&text, ",");
        text_int(&text, 42);
        end_operation(&text, "made", 0);
    }
    if (problem->is_new && operation != OPERATION_DEVICE_TO_HOST)
        put_download(&text, "made", 0);
    text_put(&text, "]");
    if (!text.failed)
        return text.bytes;
    free(text.bytes);
    return NULL;
}
