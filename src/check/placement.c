#include "check/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check/view.h"

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
 * first. number: how many of them are passed over. */
static int partner_number(const struct problem *problem, bool same_shape, uint32_t number)
{
    if (problem->out < 0)
        return -1;
    const struct problem_tensor *out = &problem->tensors[problem->out];
    for (int free = 1; free >= 0; free--)
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (is_input(problem, i) && problem_is_free(&problem->tensors[i]) == (free == 1) &&
                problem->tensors[i].dtype == out->dtype &&
                problem->tensors[i].contents != CONTENTS_PERMUTATION &&
                layout_elements(&problem->tensors[i].shape) > 0 &&
                (!same_shape || layout_same_shape(&problem->tensors[i].shape, &out->shape)) &&
                number-- == 0)
                return i;
    return -1;
}

static int partner_of_out(const struct problem *problem, bool same_shape)
{
    return partner_number(problem, same_shape, 0);
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
            (problem_reshapes(problem->form) || partner_of_out(problem, true) < 0))
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
    uint32_t rank = tensor->shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = place->repeated[place->order[i]] ? 1 : tensor->shape.shape[place->order[i]];
    return layout_of_shape(rank, shape);
}

/* The shape of a storage that holds just this tensor. */
static struct layout storage_shape(const struct place *place, const struct problem_tensor *tensor)
{
    int64_t shape[LAYOUT_RANK];
    struct layout stored = stored_shape(place, tensor);
    uint32_t rank = 0;
    if (place->leading)
        shape[rank++] = 3;
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        shape[rank++] =
            place->before[axis] + span_of(stored.shape[i], place->step[axis]) + place->after[axis];
    }
    return layout_of_shape(rank, shape);
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
    storage->shape = layout_of_shape(1, &end);
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
        bool shares =
            i == problem->out ||
            (is_input(problem, i) && problem->tensors[i].dtype == out->dtype &&
             (problem_is_free(&problem->tensors[i]) || !has_critical) && random_once_in(random, 2));
        if (!shares)
            continue;
        struct place *place = &placement->places[i];
        has_critical = has_critical || !problem_is_free(&problem->tensors[i]);
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

/* The output and an input in one storage. */
static void share_with(struct placement *placement, const struct problem *problem, int partner,
                       enum arrangement arrangement, uint64_t variant, bool *together)
{
    static const enum arrangement both[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_STRIDED,
                                            ARRANGEMENT_TRANSPOSED};
    const struct problem_tensor *tensor = &problem->tensors[problem->out];
    struct place *out = &placement->places[problem->out], *in = &placement->places[partner];
    const int64_t out_count = layout_elements(&tensor->shape);
    int64_t count = layout_elements(&problem->tensors[partner].shape);
    together[partner] = together[problem->out] = true;
    if (arrangement == ARRANGEMENT_IN_PLACE) {
        arrange(out, tensor, true, both[variant % 3], variant);
        finish_alone(placement, problem, problem->out);
        *in = *out;
        placement->shared = true;
        return;
    }
    if (arrangement == ARRANGEMENT_BESIDE) {
        in->start = out_count;
    } else {
        count = count < out_count ? count : out_count;
        out->start = variant % 2 && count > 1 ? 1 : count / 2;
        if (variant % 4 >= 2) { /* the output comes first */
            in->start = out->start;
            out->start = 0;
        }
    }
    finish_flat(placement, problem, together);
}

/* alone: the one tensor that is arranged, or -1 for all. partner: that the output is put into. */
static void make(struct placement *placement, const struct problem *problem,
                 enum arrangement arrangement, int alone, int partner, uint64_t variant,
                 struct random *random)
{
    bool together[PARAMETERS_MAX] = {false};
    memset(placement, 0, sizeof *placement);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        place_init(&placement->places[i]);
    if (arrangement == ARRANGEMENT_RANDOM)
        make_random(placement, problem, random);
    else if (arrangement == ARRANGEMENT_IN_PLACE || arrangement == ARRANGEMENT_OVERLAP ||
             arrangement == ARRANGEMENT_BESIDE)
        share_with(placement, problem, partner, arrangement, variant, together);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        if (problem->tensors[i].present && !together[i] && arrangement != ARRANGEMENT_RANDOM) {
            if (alone < 0 || i == alone)
                arrange(&placement->places[i], &problem->tensors[i], i == problem->out, arrangement,
                        variant);
            finish_alone(placement, problem, i);
        }
        for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++)
            placement->repeats = placement->repeats || placement->places[i].repeated[axis];
    }
}

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random)
{
    make(placement, problem, arrangement, -1,
         partner_of_out(problem, arrangement == ARRANGEMENT_IN_PLACE), variant, random);
}

/* ---------------------------------------------------------------- room around storages */

/* Elements behind a storage, as far as axes whose strides are mixed up lead at most. */
static int64_t room_behind(const struct layout *shape)
{
    enum { LEAST = 4096, MOST = 1 << 18 };
    int64_t size = 1, stride = 1;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        size = shape->shape[axis] > size ? shape->shape[axis] : size;
        stride = shape->stride[axis] > stride ? shape->stride[axis] : stride;
    }
    return size > MOST / stride ? MOST : LEAST + size * stride;
}

/* offset: in elements, of the storage's tensors beside what is theirs. */
static void guard(struct placement *placement, uint32_t storage, int64_t offset)
{
    struct placed_storage *guarded = &placement->storages[storage];
    guarded->before = offset;
    guarded->after = room_behind(&guarded->shape) + offset;
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (placement->places[i].storage == storage)
            placement->places[i].layout.offset += offset;
}

static int tensor_number(const struct problem *problem, uint32_t number)
{
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present && number-- == 0)
            return i;
    return -1;
}

bool placement_make_part(struct placement *placement, const struct problem *problem,
                         enum arrangement arrangement, uint32_t part, uint64_t variant,
                         struct random *random)
{
    const bool shares = arrangement == ARRANGEMENT_IN_PLACE || arrangement == ARRANGEMENT_OVERLAP;
    const int partner = partner_number(problem, arrangement == ARRANGEMENT_IN_PLACE, part);
    const int alone = part > 0 && !shares ? tensor_number(problem, part - 1) : -1;
    if (part > 0 && (shares ? partner < 0
                            : alone < 0 || arrangement == ARRANGEMENT_CONTIGUOUS ||
                                  arrangement >= ARRANGEMENT_COUNT))
        return false;
    make(placement, problem, arrangement, alone, partner, variant, random);
    for (uint32_t i = 0; i < placement->storage_count; i++) {
        const bool is_moved = arrangement != ARRANGEMENT_CONTIGUOUS &&
                              (alone < 0 || arrangement != ARRANGEMENT_OFFSET ||
                               placement->places[alone].storage == i);
        guard(placement, i, is_moved ? 37 + 54 * (int64_t)i : 0);
    }
    return true;
}

uint64_t placement_bytes(const struct placement *placement, uint32_t storage)
{
    const struct placed_storage *placed = &placement->storages[storage];
    return (uint64_t)(placed->before + layout_elements(&placed->shape) + placed->after) *
           dtype_size(placed->dtype);
}

/* ---------------------------------------------------------------- transcripts */

/* "t3" into text; returns text. */
static const char *name_of(const char *kind, uint32_t number, char text[32])
{
    snprintf(text, 32, "%s%" PRIu32, kind, number);
    return text;
}

/* The part of the storage that holds the tensor's elements, axes in the storage's order. */
static void put_part(struct writer *writer, const struct place *place,
                     const struct problem_tensor *tensor, const char *name)
{
    char storage[32], shape[SHAPE_TEXT_SIZE], index[VIEW_INDEX_SIZE];
    struct layout stored = stored_shape(place, tensor);
    name_of("storage", place->storage, storage);
    if (place->flat) {
        int64_t end = place->start + span_of(layout_elements(&stored), place->flat_step);
        writer_call(writer, name, "get_slice", "%s [%" PRId64 ":%" PRId64 ":%" PRId64 "]", storage,
                    place->start, end, place->flat_step);
        writer_call(writer, name, "reshape", "%s %s", name, layout_shape_text(&stored, shape));
        return;
    }
    int used = sprintf(index, place->leading ? "-2," : "");
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        int64_t start = place->before[axis], step = place->step[axis];
        used += sprintf(index + used, "%" PRId64 ":%" PRId64 ":%" PRId64 ",", start,
                        start + span_of(stored.shape[i], step), step);
    }
    writer_call(writer, name, "get_slice", "%s [%s]", storage, index);
}

/* Binds the name t<number> to a tensor of the problem. */
static void put_tensor(struct writer *writer, const struct place *place,
                       const struct problem_tensor *tensor, uint32_t number)
{
    char name[32];
    uint32_t order[LAYOUT_RANK];
    put_part(writer, place, tensor, name_of("t", number, name));
    memcpy(order, place->order, sizeof order);
    view_order_axes(writer, name, tensor->shape.rank, order);
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        if (place->repeated[axis])
            writer_call(writer, name, "expand", "%s %" PRIu32 " %" PRId64, name, axis,
                        tensor->shape.shape[axis]);
}

static void put_call(struct writer *writer, const struct problem *problem)
{
    const struct form *form = problem->form;
    enum operation_result result = form->operation->result;
    char words[PROBLEM_TEXT_SIZE] = "", name[32], tensor[32];
    const char *out = result == RESULT_NEW     ? "made"
                      : result == RESULT_ALIAS ? name_of("t", (uint32_t)problem->out, name)
                                               : NULL;
    for (uint32_t i = 0, used = 0; i < form->parameter_count; i++) {
        const char *word = problem->tensors[i].present ? name_of("t", i, tensor) : problem->text[i];
        used += (uint32_t)sprintf(words + used, "%s ", word);
    }
    writer_call(writer, out, form->name, "%s", words);
}

char *placement_transcript(const struct placement *placement, const struct problem *problem)
{
    struct writer writer = {0};
    for (uint32_t i = 0; i < placement->storage_count; i++) {
        char name[32], shape[SHAPE_TEXT_SIZE];
        const struct placed_storage *storage = &placement->storages[i];
        const int64_t count = layout_elements(&storage->shape), before = storage->before;
        const bool is_guarded = storage->after > 0;
        const struct layout whole = layout_of_shape(1, &(int64_t){before + count + storage->after});
        layout_shape_text(is_guarded ? &whole : &storage->shape, shape);
        writer_call(&writer, name_of("storage", i, name), "empty", "%s :%s", shape,
                    dtype_name(storage->dtype));
        if (!is_guarded)
            continue;
        writer_call(&writer, name, "get_slice", "%s [%" PRId64 ":%" PRId64 "]", name, before,
                    before + count);
        writer_call(&writer, name, "reshape", "%s %s", name,
                    layout_shape_text(&storage->shape, shape));
    }
    for (uint32_t i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            put_tensor(&writer, &placement->places[i], &problem->tensors[i], i);
    put_call(&writer, problem);
    if (problem->form->operation->result == RESULT_NEW)
        writer_download(&writer, "made", DTYPE_INT64, NULL, NULL);
    return writer_finish(&writer);
}
