#include "tools/placement.h"

#include <stdio.h>
#include <string.h>

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

/* Returns the axis that an input repeats in ARRANGEMENT_BROADCAST, or -1. */
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

/* Finds an input with the output's dtype, and its shape too if required. Inputs with any values
 * come first. number: how many matching inputs to skip. */
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

bool arrangement_applies(const struct problem *problem, enum arrangement arrangement)
{
    const bool in_place = arrangement == ARRANGEMENT_IN_PLACE;
    bool has_tensor = false, repeats = false;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        has_tensor = has_tensor || problem->tensors[i].present;
        repeats = repeats || (is_input(problem, i) && repeated_axis(&problem->tensors[i], 0) >= 0);
    }
    switch (arrangement) {
    case ARRANGEMENT_CONTIGUOUS: return true;
    case ARRANGEMENT_BROADCAST: return repeats;
    case ARRANGEMENT_IN_PLACE:
    case ARRANGEMENT_OVERLAP:
        return partner_number(problem, in_place, 0) >= 0 &&
               !(in_place && problem_reshapes(problem->form));
    default: return has_tensor;
    }
}

/* ---------------------------------------------------------------- layouts */

/* The layout of a tensor's elements: the order of axes in the storage, and for each axis the other
 * elements around and between the tensor's. */
struct spread {
    uint32_t order[LAYOUT_RANK];
    int64_t before[LAYOUT_RANK], after[LAYOUT_RANK], step[LAYOUT_RANK];
    bool repeated[LAYOUT_RANK]; /* one element, expanded */
    int64_t start;              /* elements before all others */
};

static struct spread spread_packed(void)
{
    struct spread spread = {.start = 0};
    for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++) {
        spread.order[axis] = axis;
        spread.step[axis] = 1;
    }
    return spread;
}

/* Places a tensor in a storage, which grows if necessary. */
static void place(struct placement *placement, const struct problem *problem, int i,
                  uint32_t number, const struct spread *spread)
{
    struct placed_storage *storage = &placement->storages[number];
    struct place *placed = &placement->places[i];
    struct layout *layout = &placed->layout;
    int64_t elements = 1;
    *layout = problem->tensors[i].shape;
    layout->offset = spread->start;
    for (uint32_t j = layout->rank; j-- > 0;) {
        const uint32_t axis = spread->order[j];
        const int64_t size = spread->repeated[axis] ? 1 : layout->shape[axis];
        const int64_t span = size > 0 ? (size - 1) * spread->step[axis] + 1 : 0;
        layout->stride[axis] = spread->repeated[axis] ? 0 : elements * spread->step[axis];
        layout->offset += spread->before[axis] * elements;
        elements *= spread->before[axis] + span + spread->after[axis];
    }
    elements += spread->start;
    elements = elements > view_end(layout) ? elements : view_end(layout);
    placed->storage = number;
    storage->dtype = problem->tensors[i].dtype;
    storage->elements = elements > storage->elements ? elements : storage->elements;
    if (number == placement->storage_count)
        placement->storage_count++;
}

/* ---------------------------------------------------------------- arrangements */

static void arrange(struct spread *spread, const struct problem_tensor *tensor, bool is_out,
                    enum arrangement arrangement, uint64_t variant)
{
    const uint32_t rank = tensor->shape.rank;
    const bool is_strided = arrangement == ARRANGEMENT_STRIDED;
    const uint32_t spaced = is_strided && rank > 0 ? rank - 1 : 0; /* the axis */
    if (is_strided || arrangement == ARRANGEMENT_OFFSET) {
        spread->start = rank == 0;
        spread->step[spaced] = is_strided ? 2 : 1;
        spread->before[spaced] = spread->after[spaced] = 1;
    } else if (arrangement == ARRANGEMENT_TRANSPOSED) {
        for (uint32_t axis = 0; axis < rank; axis++)
            spread->order[axis] = rank - 1 - axis;
        spread->after[0] = 1;
    } else if (arrangement == ARRANGEMENT_BROADCAST && !is_out &&
               repeated_axis(tensor, variant) >= 0) {
        spread->repeated[repeated_axis(tensor, variant)] = true;
    }
}

/* Number of axes with other elements around them: each multiplies the size of the storage. */
enum { ROOMY_AXES = 4 };

static void arrange_any(struct spread *spread, const struct problem_tensor *tensor, bool is_out,
                        struct random *random)
{
    uint32_t rank = tensor->shape.rank;
    int roomy = 0;
    if (random_once_in(random, 4))
        return;
    spread->start = random_between(random, 0, 3);
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool repeats = !is_out && may_repeat(tensor) && random_once_in(random, 6);
        if (repeats && tensor->shape.shape[axis] > 0)
            spread->repeated[axis] = true;
        else if (random_once_in(random, 2) && roomy++ < ROOMY_AXES) {
            spread->step[axis] = random_between(random, 1, 3);
            spread->before[axis] = random_between(random, 0, 2);
            spread->after[axis] = random_between(random, 0, 2);
        }
    }
    if (random_once_in(random, 2))
        return;
    for (uint32_t axis = rank; axis-- > 1;) {
        uint32_t other = (uint32_t)random_between(random, 0, axis), swapped = spread->order[axis];
        spread->order[axis] = spread->order[other];
        spread->order[other] = swapped;
    }
}

/* Places the output and an input in one storage. */
static void share_with(struct placement *placement, const struct problem *problem, int partner,
                       enum arrangement arrangement, uint64_t variant, struct spread *spreads)
{
    static const enum arrangement both[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_STRIDED,
                                            ARRANGEMENT_TRANSPOSED};
    const int out = problem->out;
    const int64_t out_count = layout_elements(&problem->tensors[out].shape);
    int64_t count = layout_elements(&problem->tensors[partner].shape);
    const uint32_t number = placement->storage_count;
    if (arrangement == ARRANGEMENT_IN_PLACE) {
        arrange(&spreads[out], &problem->tensors[out], true, both[variant % 3], variant);
        spreads[partner] = spreads[out];
    } else if (arrangement == ARRANGEMENT_BESIDE) {
        spreads[partner].start = out_count;
    } else {
        count = count < out_count ? count : out_count;
        spreads[variant % 4 < 2 ? out : partner].start += variant % 2 && count > 1 ? 1 : count / 2;
    }
    place(placement, problem, out, number, &spreads[out]);
    place(placement, problem, partner, number, &spreads[partner]);
}

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random)
{
    const bool is_random = arrangement == ARRANGEMENT_RANDOM;
    struct spread spreads[PARAMETERS_MAX];
    uint32_t number = 0; /* of the input that shares the output's storage */
    memset(placement, 0, sizeof *placement);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        spreads[i] = spread_packed();
        if (is_random && problem->tensors[i].present)
            arrange_any(&spreads[i], &problem->tensors[i], i == problem->out, random);
    }
    if (is_random && random_once_in(random, 2)) {
        arrangement = random_once_in(random, 2) ? ARRANGEMENT_IN_PLACE : ARRANGEMENT_OVERLAP;
        variant = random_bits(random);
        number = (uint32_t)random_between(random, 0, 2);
    }
    const bool is_in_place = arrangement == ARRANGEMENT_IN_PLACE;
    int partner = partner_number(problem, is_in_place, number);
    if (partner < 0)
        partner = partner_number(problem, is_in_place, 0);
    const bool shares = partner >= 0 && (is_in_place || arrangement == ARRANGEMENT_OVERLAP ||
                                         arrangement == ARRANGEMENT_BESIDE);
    if (shares)
        share_with(placement, problem, partner, arrangement, variant, spreads);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        if (!problem->tensors[i].present || (shares && (i == partner || i == problem->out)))
            continue;
        if (!is_random)
            arrange(&spreads[i], &problem->tensors[i], i == problem->out, arrangement, variant);
        place(placement, problem, i, placement->storage_count, &spreads[i]);
    }
}

/* ---------------------------------------------------------------- room around storages */

/* offset: elements by which the tensors move within the enlarged storage. The space after them
 * covers all elements that mixed-up strides of axes can reach. */
static void guard(struct placement *placement, uint32_t storage, int64_t offset)
{
    enum { LEAST = 4096, MOST = 1 << 18 };
    int64_t size = 1, stride = 1;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        struct layout *layout = &placement->places[i].layout;
        if (placement->places[i].storage != storage)
            continue;
        layout->offset += offset;
        for (uint32_t axis = 0; axis < layout->rank; axis++) {
            size = layout->shape[axis] > size ? layout->shape[axis] : size;
            stride = layout->stride[axis] > stride ? layout->stride[axis] : stride;
        }
    }
    placement->storages[storage].before = offset;
    placement->storages[storage].after =
        offset + (size > MOST / stride ? MOST : LEAST + size * stride);
}

void placement_guard(struct placement *placement, enum arrangement arrangement)
{
    for (uint32_t i = 0; i < placement->storage_count; i++)
        guard(placement, i, arrangement == ARRANGEMENT_CONTIGUOUS ? 0 : 37 + 54 * (int64_t)i);
}

uint64_t placement_bytes(const struct placement *placement, uint32_t storage)
{
    const struct placed_storage *placed = &placement->storages[storage];
    return (uint64_t)(placed->before + placed->elements + placed->after) *
           dtype_size(placed->dtype);
}

/* ---------------------------------------------------------------- transcripts */

/* Writes "t3"; returns text. */
static const char *name_of(const char *kind, uint32_t number, char text[32])
{
    snprintf(text, 32, "%s%" PRIu32, kind, number);
    return text;
}

void problem_put_call(struct writer *writer, const struct problem *problem)
{
    const struct form *form = problem->form;
    enum operation_result result = form->operation->result;
    char words[PARAMETERS_MAX * (ARGUMENT_TEXT_SIZE + 1)] = "", name[32], tensor[32];
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
    char name[32], storage[32];
    for (uint32_t i = 0; i < placement->storage_count; i++) {
        const struct placed_storage *placed = &placement->storages[i];
        const int64_t count = placed->before + placed->elements + placed->after;
        writer_call(&writer, name_of("storage", i, storage), "empty", "[%" PRId64 "] :%s", count,
                    dtype_name(placed->dtype));
    }
    for (uint32_t i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            (void)view_put(&writer, name_of("t", i, name),
                           name_of("storage", placement->places[i].storage, storage),
                           &placement->places[i].layout);
    problem_put_call(&writer, problem);
    for (uint32_t i = 0; i < placement->storage_count; i++)
        writer_download(&writer, name_of("storage", i, storage), DTYPE_INT64, NULL, NULL);
    if (problem->form->operation->result == RESULT_NEW)
        writer_download(&writer, "made", DTYPE_INT64, NULL, NULL);
    return writer_finish(&writer);
}
