/*
 * core/layout.h against brute force: every function is compared with a model that holds the
 * position of every element, over small random views from a printed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/layout.h"

enum { ROUNDS = 20000, ELEMENTS_MAX = 400, STEPS = 6 };

static const uint64_t seed = 0x1a9007;

static uint64_t random_bits(uint64_t *state)
{
    /* splitmix64 (Steele, Lea and Flood, 2014) */
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t state;

/* In [low, high]. */
static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(&state) % (uint64_t)(high - low + 1));
}

/* ---------------------------------------------------------------- the model */

/* A view as the list of its elements' positions in C order. */
struct model {
    uint32_t rank;
    int64_t shape[LAYOUT_RANK];
    int64_t count;
    int64_t positions[ELEMENTS_MAX];
};

static int64_t product(uint32_t rank, const int64_t *shape)
{
    int64_t elements = 1;
    for (uint32_t axis = 0; axis < rank; axis++)
        elements *= shape[axis];
    return elements;
}

/* The C-order number of an index, and back. */
static int64_t number_of(uint32_t rank, const int64_t *shape, const int64_t *index)
{
    int64_t number = 0;
    for (uint32_t axis = 0; axis < rank; axis++)
        number = number * shape[axis] + index[axis];
    return number;
}

static void index_of(uint32_t rank, const int64_t *shape, int64_t number, int64_t *index)
{
    for (uint32_t axis = rank; axis-- > 0;) {
        index[axis] = number % shape[axis];
        number /= shape[axis];
    }
}

/* Position of an element as the layout's definition has it. */
static int64_t position_of(const struct layout *layout, const int64_t *index)
{
    int64_t position = layout->offset;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        position += index[axis] * layout->stride[axis];
    return position;
}

static void check_view(const struct layout *layout, const struct model *model)
{
    assert_int_equal(layout->rank, model->rank);
    for (uint32_t axis = 0; axis < model->rank; axis++)
        assert_int_equal(layout->shape[axis], model->shape[axis]);
    for (int64_t i = 0; i < model->count; i++) {
        int64_t index[LAYOUT_RANK];
        index_of(model->rank, model->shape, i, index);
        assert_int_equal(position_of(layout, index), model->positions[i]);
    }
}

/* ---------------------------------------------------------------- random views */

static void random_shape(uint32_t *rank, int64_t *shape)
{
    do {
        *rank = (uint32_t)pick(0, 4);
        for (uint32_t axis = 0; axis < *rank; axis++)
            shape[axis] = pick(0, 20) == 0 ? 0 : pick(1, 6);
    } while (product(*rank, shape) > ELEMENTS_MAX / 2);
}

static void packed_view(uint32_t rank, const int64_t *shape, struct layout *layout,
                        struct model *model)
{
    assert_int_equal(layout_init(layout, rank, shape, 8, NULL), HEALCL_OK);
    model->rank = rank;
    memcpy(model->shape, shape, rank * sizeof *shape);
    model->count = product(rank, shape);
    for (int64_t i = 0; i < model->count; i++)
        model->positions[i] = i;
    check_view(layout, model);
}

/* result[i] = source[map(i)], for a result of another shape. */
static void model_map(const struct model *source, struct model *result,
                      void (*map)(const int64_t *to, int64_t *from, const void *context),
                      const void *context)
{
    result->count = product(result->rank, result->shape);
    assert_true(result->count <= ELEMENTS_MAX);
    for (int64_t i = 0; i < result->count; i++) {
        int64_t to[LAYOUT_RANK] = {0}, from[LAYOUT_RANK] = {0};
        index_of(result->rank, result->shape, i, to);
        map(to, from, context);
        result->positions[i] = source->positions[number_of(source->rank, source->shape, from)];
    }
}

struct slicing {
    uint32_t rank; /* of the source */
    bool dropped[LAYOUT_RANK];
    int64_t start[LAYOUT_RANK], step[LAYOUT_RANK];
};

static void slice_map(const int64_t *to, int64_t *from, const void *context)
{
    const struct slicing *slicing = context;
    uint32_t next = 0;
    for (uint32_t axis = 0; axis < slicing->rank; axis++)
        from[axis] =
            slicing->start[axis] + (slicing->dropped[axis] ? 0 : to[next++] * slicing->step[axis]);
}

static void whole_axis(struct slicing *slicing, struct model *result, int64_t size)
{
    uint32_t axis = slicing->rank++;
    slicing->dropped[axis] = false;
    slicing->start[axis] = 0;
    slicing->step[axis] = 1;
    result->shape[result->rank++] = size;
}

/* Python's slice.indices, step > 0. */
static int64_t clamp(int64_t bound, int64_t size)
{
    if (bound < 0)
        bound += size;
    return bound < 0 ? 0 : bound > size ? size : bound;
}

static void random_index(struct layout *layout, struct model *model)
{
    struct healcl_index items[LAYOUT_RANK];
    struct slicing slicing = {.rank = 0};
    struct model result = {.rank = 0};
    uint32_t count = 0, given = (uint32_t)pick(0, model->rank);
    uint32_t ellipsis = (uint32_t)pick(0, 2 * given + 1); /* before which item; else none */
    for (uint32_t i = 0; i <= given; i++) {
        if (i == ellipsis) {
            items[count++] = (struct healcl_index){.kind = HEALCL_INDEX_ELLIPSIS};
            for (uint32_t j = given; j < model->rank; j++)
                whole_axis(&slicing, &result, model->shape[slicing.rank]);
        }
        if (i == given)
            break;
        uint32_t axis = slicing.rank;
        int64_t size = model->shape[axis];
        struct healcl_index item = {.kind = pick(0, 3) == 0 && size > 0 ? HEALCL_INDEX_INT
                                                                        : HEALCL_INDEX_SLICE};
        if (item.kind == HEALCL_INDEX_INT) {
            item.value = pick(-size, size - 1);
            slicing.start[axis] = item.value < 0 ? item.value + size : item.value;
            slicing.dropped[axis] = true;
            slicing.rank++;
        } else {
            item.has_start = pick(0, 1), item.start = pick(-size - 2, size + 2);
            item.has_stop = pick(0, 1), item.stop = pick(-size - 2, size + 2);
            item.has_step = pick(0, 1), item.step = pick(0, 9) ? pick(1, 3) : INT64_MAX;
            int64_t start = item.has_start ? clamp(item.start, size) : 0;
            int64_t stop = item.has_stop ? clamp(item.stop, size) : size;
            int64_t step = item.has_step ? item.step : 1, length = 0;
            for (int64_t at = start; at < stop; at += step) {
                length++;
                if (step > size)
                    break;
            }
            whole_axis(&slicing, &result, length);
            slicing.start[axis] = start;
            slicing.step[axis] = length > 1 ? step : 1;
        }
        items[count++] = item;
    }
    while (slicing.rank < model->rank)
        whole_axis(&slicing, &result, model->shape[slicing.rank]);
    model_map(model, &result, slice_map, &slicing);
    assert_int_equal(layout_index(layout, items, count, layout, NULL), HEALCL_OK);
    *model = result;
}

struct moving {
    uint32_t rank, from, to;
};

static void move_map(const int64_t *to, int64_t *from, const void *context)
{
    const struct moving *moving = context;
    uint32_t next = 0;
    for (uint32_t axis = 0; axis < moving->rank; axis++)
        if (axis != moving->from) {
            if (next == moving->to)
                next++;
            from[axis] = to[next++];
        }
    from[moving->from] = to[moving->to];
}

static void random_move(struct layout *layout, struct model *model)
{
    if (model->rank == 0)
        return;
    struct moving moving = {.rank = model->rank,
                            .from = (uint32_t)pick(0, model->rank - 1),
                            .to = (uint32_t)pick(0, model->rank - 1)};
    struct model result = {.rank = model->rank};
    uint32_t next = 0;
    for (uint32_t axis = 0; axis < model->rank; axis++) {
        if (axis == moving.from)
            continue;
        if (next == moving.to)
            next++;
        result.shape[next++] = model->shape[axis];
    }
    result.shape[moving.to] = model->shape[moving.from];
    model_map(model, &result, move_map, &moving);
    *layout = layout_move_axis(layout, moving.from, moving.to);
    *model = result;
}

static void narrow_map(const int64_t *to, int64_t *from, const void *context)
{
    const struct slicing *slicing = context;
    for (uint32_t axis = 0; axis < slicing->rank; axis++)
        from[axis] = to[axis] + slicing->start[axis];
}

static void random_narrow(struct layout *layout, struct model *model)
{
    if (model->rank == 0)
        return;
    uint32_t axis = (uint32_t)pick(0, model->rank - 1);
    struct slicing slicing = {.rank = model->rank};
    int64_t start = pick(0, model->shape[axis]), size = pick(0, model->shape[axis] - start);
    slicing.start[axis] = start;
    struct model result = {.rank = model->rank};
    memcpy(result.shape, model->shape, sizeof result.shape);
    result.shape[axis] = size;
    model_map(model, &result, narrow_map, &slicing);
    *layout = layout_narrow(layout, axis, start, size);
    *model = result;
}

/* An axis of any size that repeats the elements, or one of size 1 that goes away. */
static void random_axis(struct layout *layout, struct model *model)
{
    uint32_t axis = (uint32_t)pick(0, model->rank);
    if (axis < model->rank && model->shape[axis] == 1) {
        *layout = layout_drop_axis(layout, axis);
        model->rank--;
        memmove(model->shape + axis, model->shape + axis + 1,
                (model->rank - axis) * sizeof *model->shape);
        return;
    }
    int64_t repeats = pick(0, 1) ? 1 : pick(1, 3);
    if (model->count * repeats > ELEMENTS_MAX || model->rank > 5)
        return;
    *layout = layout_insert_axis(layout, axis, repeats, repeats > 1 ? 0 : pick(0, 50));
    int64_t inner = product(model->rank - axis, model->shape + axis);
    struct model result = {.rank = model->rank + 1, .count = model->count * repeats};
    memcpy(result.shape, model->shape, axis * sizeof *model->shape);
    result.shape[axis] = repeats;
    memcpy(result.shape + axis + 1, model->shape + axis,
           (model->rank - axis) * sizeof *model->shape);
    for (int64_t i = 0; i < result.count; i++)
        result.positions[i] = model->positions[i / (inner * repeats) * inner + i % inner];
    *model = result;
}

/* Any shape of so many elements. */
static void random_factors(int64_t elements, uint32_t *rank, int64_t *shape)
{
    *rank = 0;
    if (elements == 0) {
        shape[(*rank)++] = pick(0, 3);
        shape[(*rank)++] = 0;
        return;
    }
    while (elements > 1 && *rank < 5) {
        int64_t factor;
        do
            factor = pick(1, elements);
        while (elements % factor != 0);
        shape[(*rank)++] = factor;
        elements /= factor;
    }
    if (elements > 1 || pick(0, 2) == 0)
        shape[(*rank)++] = elements;
}

/* Whether one offset and one stride for each axis give the positions. */
static bool is_a_view(const struct model *model)
{
    struct layout layout = {.rank = model->rank};
    if (model->count == 0)
        return true;
    layout.offset = model->positions[0];
    for (uint32_t axis = 0; axis < model->rank; axis++) {
        int64_t index[LAYOUT_RANK] = {0};
        index[axis] = model->shape[axis] > 1;
        layout.stride[axis] =
            model->positions[number_of(model->rank, model->shape, index)] - layout.offset;
    }
    for (int64_t i = 0; i < model->count; i++) {
        int64_t index[LAYOUT_RANK];
        index_of(model->rank, model->shape, i, index);
        if (position_of(&layout, index) != model->positions[i])
            return false;
    }
    return true;
}

static int reshapes_viewed, reshapes_copied;

static void random_reshape(struct layout *layout, struct model *model)
{
    struct model result = *model;
    random_factors(model->count, &result.rank, result.shape);
    struct layout view = *layout;
    bool viewed = layout_reshape(layout, result.rank, result.shape, &view);
    assert_int_equal(viewed, is_a_view(&result));
    if (viewed) {
        reshapes_viewed++;
        *layout = view;
        *model = result;
    } else {
        reshapes_copied++;
    }
}

static void random_step(struct layout *layout, struct model *model)
{
    static void (*const steps[])(struct layout *, struct model *) = {
        random_index, random_move, random_narrow, random_axis, random_reshape};
    steps[pick(0, 4)](layout, model);
    check_view(layout, model);
}

/* A chain of views of a tensor in C order of that shape. */
static void random_view(uint32_t rank, const int64_t *shape, struct layout *layout,
                        struct model *model)
{
    packed_view(rank, shape, layout, model);
    for (int64_t steps = pick(0, STEPS); steps > 0; steps--)
        random_step(layout, model);
}

/* ---------------------------------------------------------------- properties of one view */

static void check_properties(const struct layout *layout, const struct model *model)
{
    int64_t last = layout->offset, smallest = layout->offset;
    bool contiguous = true, repeats = false;
    for (int64_t i = 0; i < model->count; i++) {
        last = model->positions[i] > last ? model->positions[i] : last;
        assert_true(model->positions[i] >= smallest);
        contiguous = contiguous && model->positions[i] == model->positions[0] + i;
        for (int64_t j = 0; j < i && !repeats; j++)
            repeats = model->positions[i] == model->positions[j];
    }
    assert_int_equal(layout_elements(layout), model->count);
    assert_int_equal(layout_last(layout), last);
    assert_int_equal(layout_is_contiguous(layout), contiguous);
    /* Views of C order repeat elements by strides of 0 only. */
    assert_int_equal(layout_overlaps_itself(layout), repeats);

    struct layout packed = layout_packed(layout);
    assert_true(layout_same_shape(layout, &packed));
    for (int64_t i = 0; i < model->count; i++) {
        int64_t index[LAYOUT_RANK];
        index_of(model->rank, model->shape, i, index);
        assert_int_equal(position_of(&packed, index), i);
    }
}

/* Each element once, in the order in which it comes first. */
static void check_own_elements(const struct layout *layout, const struct model *model)
{
    int64_t own_count = 0, own[ELEMENTS_MAX];
    for (int64_t i = 0; i < model->count; i++) {
        bool seen = false;
        for (int64_t j = 0; j < own_count && !seen; j++)
            seen = own[j] == model->positions[i];
        if (!seen)
            own[own_count++] = model->positions[i];
    }
    struct layout result = layout_own_elements(layout);
    assert_int_equal(layout_elements(&result), own_count);
    for (int64_t i = 0; i < own_count; i++) {
        int64_t index[LAYOUT_RANK];
        index_of(result.rank, result.shape, i, index);
        assert_int_equal(position_of(&result, index), own[i]);
    }
}

static void check_walk(const struct layout *layout, const struct model *model)
{
    struct layout packed = layout_packed(layout);
    const struct layout *layouts[] = {layout, &packed};
    struct walk walk;
    int64_t i = 0;
    for (walk_init(&walk, 2, layouts); walk.left > 0; walk_next(&walk), i++) {
        assert_int_equal(walk.position[0], model->positions[i]);
        assert_int_equal(walk.position[1], i);
        assert_int_equal(walk.left, model->count - i);
    }
    assert_int_equal(i, model->count);
}

static void views(void **unused)
{
    (void)unused;
    state = seed;
    print_message("seed %#lx\n", (unsigned long)seed);
    reshapes_viewed = reshapes_copied = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t rank;
        int64_t shape[LAYOUT_RANK];
        struct layout layout;
        struct model model;
        random_shape(&rank, shape);
        random_view(rank, shape, &layout, &model);
        check_properties(&layout, &model);
        check_own_elements(&layout, &model);
        check_walk(&layout, &model);
    }
    print_message("%d reshapes are views, %d copy\n", reshapes_viewed, reshapes_copied);
    assert_true(reshapes_viewed > ROUNDS / 100 && reshapes_copied > ROUNDS / 100);
}

/* ---------------------------------------------------------------- pairs of views */

static bool share_an_element(const struct model *a, const struct model *b)
{
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count; j++)
            if (a->positions[i] == b->positions[j])
                return true;
    return false;
}

static bool same_elements(const struct model *a, const struct model *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0 &&
           memcmp(a->positions, b->positions, (size_t)a->count * sizeof *a->positions) == 0;
}

/* Never says no wrongly, whatever the views. */
static void overlaps(void **unused)
{
    (void)unused;
    state = seed + 1;
    int overlapping = 0, disjoint = 0, cautious = 0;
    for (int round = 0; round < 3 * ROUNDS; round++) {
        uint32_t rank;
        int64_t shape[LAYOUT_RANK];
        struct layout a, b;
        struct model model_a, model_b;
        random_shape(&rank, shape);
        random_view(rank, shape, &a, &model_a);
        random_view(rank, shape, &b, &model_b);
        bool truly = share_an_element(&model_a, &model_b), said = layouts_may_overlap(&a, &b);
        assert_int_equal(said, layouts_may_overlap(&b, &a));
        assert_true(said || !truly);
        overlapping += truly;
        disjoint += !said;
        cautious += said && !truly;
        if (model_a.count > 0 && model_b.count > 0)
            assert_int_equal(layout_same_elements(&a, &b), same_elements(&model_a, &model_b));
    }
    print_message("%d overlap, %d are found disjoint, %d are not found disjoint\n", overlapping,
                  disjoint, cautious);
    assert_true(overlapping > ROUNDS / 10 && disjoint > 10 * cautious);
}

/* Slices of one tensor with one step for each axis, their axes in any order: exact. */
static void overlaps_of_slices(void **unused)
{
    (void)unused;
    state = seed + 2;
    int overlapping = 0, disjoint = 0;
    for (int round = 0; round < 3 * ROUNDS; round++) {
        uint32_t rank;
        int64_t shape[LAYOUT_RANK], steps[LAYOUT_RANK];
        random_shape(&rank, shape);
        for (uint32_t axis = 0; axis < rank; axis++)
            steps[axis] = pick(1, 3);
        struct layout views[2];
        struct model models[2];
        for (int i = 0; i < 2; i++) {
            struct healcl_index items[LAYOUT_RANK];
            struct slicing slicing = {.rank = rank};
            struct model result = {.rank = rank};
            packed_view(rank, shape, &views[i], &models[i]);
            for (uint32_t axis = 0; axis < rank; axis++) {
                int64_t start = pick(0, shape[axis]), stop = pick(start, shape[axis]);
                items[axis] = (struct healcl_index){.kind = HEALCL_INDEX_SLICE,
                                                    .has_start = true,
                                                    .has_stop = true,
                                                    .has_step = true,
                                                    .start = start,
                                                    .stop = stop,
                                                    .step = steps[axis]};
                slicing.start[axis] = start;
                slicing.step[axis] = steps[axis];
                result.shape[axis] = (stop - start + steps[axis] - 1) / steps[axis];
            }
            model_map(&models[i], &result, slice_map, &slicing);
            models[i] = result;
            assert_int_equal(layout_index(&views[i], items, rank, &views[i], NULL), HEALCL_OK);
            random_move(&views[i], &models[i]);
            check_view(&views[i], &models[i]);
        }
        bool truly = share_an_element(&models[0], &models[1]);
        assert_int_equal(layouts_may_overlap(&views[0], &views[1]), truly);
        overlapping += truly;
        disjoint += !truly;
    }
    assert_true(overlapping > ROUNDS / 10 && disjoint > ROUNDS / 10);
}

/* ---------------------------------------------------------------- broadcasting */

static void broadcast_map(const int64_t *to, int64_t *from, const void *context)
{
    const struct layout *const *pair = context; /* source, target */
    uint32_t skipped = pair[1]->rank - pair[0]->rank;
    for (uint32_t axis = 0; axis < pair[0]->rank; axis++)
        from[axis] = pair[0]->shape[axis] == 1 ? 0 : to[skipped + axis];
}

static void broadcasts(void **unused)
{
    (void)unused;
    state = seed + 3;
    int good = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        /* Shapes that nearly always agree: one, and the other with some axes of size 1. */
        uint32_t rank[2];
        int64_t shape[2][LAYOUT_RANK];
        random_shape(&rank[0], shape[0]);
        rank[1] = (uint32_t)pick(0, rank[0]);
        memcpy(shape[1], shape[0] + (rank[0] - rank[1]), rank[1] * sizeof *shape[1]);
        for (int i = 0; i < 2; i++)
            for (uint32_t axis = 0; axis < rank[i]; axis++)
                if (pick(0, 3) == 0)
                    shape[i][axis] = pick(0, 4) ? 1 : pick(0, 6);
        if (product(rank[0], shape[0]) > ELEMENTS_MAX || product(rank[1], shape[1]) > ELEMENTS_MAX)
            continue;
        struct layout layouts[2], target;
        struct model models[2];
        for (int i = 0; i < 2; i++)
            packed_view(rank[i], shape[i], &layouts[i], &models[i]);

        /* NumPy's rule. */
        bool agree = true;
        int64_t wanted[LAYOUT_RANK];
        for (uint32_t axis = 0; axis < rank[0]; axis++) {
            int64_t size = shape[0][axis];
            if (axis >= rank[0] - rank[1]) {
                int64_t other = shape[1][axis - (rank[0] - rank[1])];
                agree = agree && (size == other || size == 1 || other == 1);
                size = size == 1 ? other : size;
            }
            wanted[axis] = size;
        }
        int order = (int)pick(0, 1);
        enum healcl_status status =
            layout_broadcast_shape(&layouts[order], &layouts[1 - order], &target, NULL);
        assert_int_equal(status, agree ? HEALCL_OK : HEALCL_REFUSED);
        refused += !agree;
        if (!agree || product(rank[0], wanted) > ELEMENTS_MAX)
            continue;
        good++;
        assert_int_equal(target.rank, rank[0]);
        assert_memory_equal(target.shape, wanted, rank[0] * sizeof *wanted);
        for (int i = 0; i < 2; i++) {
            struct layout view;
            struct model result = {.rank = rank[0]};
            memcpy(result.shape, wanted, sizeof wanted);
            const struct layout *pair[] = {&layouts[i], &target};
            model_map(&models[i], &result, broadcast_map, pair);
            assert_int_equal(layout_broadcast(&layouts[i], &target, &view, NULL), HEALCL_OK);
            check_view(&view, &result);
        }
    }
    assert_true(good > ROUNDS / 10 && refused > ROUNDS / 100);
}

static void broadcast_refusals(void **unused)
{
    (void)unused;
    struct healcl_error error = {0};
    struct layout a, b, result;
    assert_int_equal(layout_init(&a, 2, (int64_t[]){2, 3}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_init(&b, 1, (int64_t[]){2}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_broadcast_shape(&a, &b, &result, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "shapes [2, 3] and [2] do not broadcast");
    healcl_error_clear(&error);
    assert_int_equal(layout_broadcast(&a, &b, &result, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "shape [2, 3] does not broadcast to [2]");
    healcl_error_clear(&error);
    /* [2^31, 1] and [2^31] fit, their broadcast shape does not. */
    int64_t large = (int64_t)1 << 31;
    assert_int_equal(layout_init(&a, 2, (int64_t[]){large, 1}, 1, NULL), HEALCL_OK);
    assert_int_equal(layout_init(&b, 1, (int64_t[]){large}, 1, NULL), HEALCL_OK);
    assert_int_equal(layout_broadcast_shape(&a, &b, &result, &error), HEALCL_REFUSED);
    healcl_error_clear(&error);
}

/* ---------------------------------------------------------------- refusals and edges */

static void sizes(void **unused)
{
    (void)unused;
    struct healcl_error error = {0};
    struct layout layout;
    int64_t ones[LAYOUT_RANK];
    for (int i = 0; i < LAYOUT_RANK; i++)
        ones[i] = 1;
    assert_int_equal(layout_init(&layout, MAX_RANK, ones, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_elements(&layout), 1);
    assert_int_equal(layout_init(&layout, MAX_RANK + 1, ones, 8, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "rank 17 is above 16");
    healcl_error_clear(&error);

    assert_int_equal(layout_init(&layout, 2, (int64_t[]){3, -1}, 8, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "size -1 of axis 1 is negative");
    healcl_error_clear(&error);

    /* 2^63-1 bytes are the most. */
    assert_int_equal(layout_init(&layout, 1, (int64_t[]){INT64_MAX}, 1, NULL), HEALCL_OK);
    assert_int_equal(layout_last(&layout), INT64_MAX - 1);
    assert_int_equal(layout_init(&layout, 1, (int64_t[]){INT64_MAX / 8}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_init(&layout, 1, (int64_t[]){INT64_MAX / 8 + 1}, 8, &error),
                     HEALCL_REFUSED);
    healcl_error_clear(&error);
    int64_t half = (int64_t)1 << 32;
    assert_int_equal(layout_init(&layout, 2, (int64_t[]){half, half}, 1, &error), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "shape [4294967296, 4294967296] is larger than 2^63-1 bytes");
    healcl_error_clear(&error);
    /* A size 0 makes any other harmless, wherever it stands. */
    assert_int_equal(layout_init(&layout, 3, (int64_t[]){half, half, 0}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_elements(&layout), 0);
    assert_int_equal(layout_last(&layout), 0);
    assert_int_equal(layout_init(&layout, 3, (int64_t[]){0, half, half}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_elements(&layout), 0);
}

static void axes(void **unused)
{
    (void)unused;
    for (uint32_t rank = 0; rank <= MAX_RANK; rank++)
        for (int64_t axis = -20; axis <= 20; axis++) {
            uint32_t normalized = 99;
            int64_t signed_rank = rank;
            bool inside = axis >= -signed_rank && axis < signed_rank;
            assert_int_equal(axis_normalize(axis, rank, &normalized, NULL),
                             inside ? HEALCL_OK : HEALCL_REFUSED);
            if (inside)
                assert_int_equal(normalized, axis < 0 ? axis + signed_rank : axis);
        }
    uint32_t normalized;
    assert_int_equal(axis_normalize(INT64_MIN, 3, &normalized, NULL), HEALCL_REFUSED);
    assert_int_equal(axis_normalize(INT64_MAX, 3, &normalized, NULL), HEALCL_REFUSED);
}

static void expect_completed(int64_t elements, uint32_t rank, const int64_t *shape,
                             const int64_t *wanted)
{
    int64_t given[LAYOUT_RANK];
    memcpy(given, shape, rank * sizeof *shape);
    assert_int_equal(shape_complete(rank, given, elements, NULL),
                     wanted ? HEALCL_OK : HEALCL_REFUSED);
    if (wanted)
        assert_memory_equal(given, wanted, rank * sizeof *wanted);
}

#define LIST(...) ((const int64_t[]){__VA_ARGS__})

static void completed_shapes(void **unused)
{
    (void)unused;
    expect_completed(1, 0, LIST(0), LIST(0)); /* rank 0 */
    expect_completed(2, 0, LIST(0), NULL);
    expect_completed(24, 3, LIST(2, -1, 3), LIST(2, 4, 3));
    expect_completed(24, 1, LIST(-1), LIST(24));
    expect_completed(1, 1, LIST(-1), LIST(1));
    expect_completed(0, 2, LIST(-1, 3), LIST(0, 3));
    expect_completed(0, 2, LIST(0, 3), LIST(0, 3));
    expect_completed(0, 2, LIST(-1, 0), NULL); /* any size would do */
    expect_completed(24, 2, LIST(-1, -1), NULL);
    expect_completed(24, 2, LIST(-1, 5), NULL);
    expect_completed(24, 2, LIST(4, 5), NULL);
    expect_completed(24, 2, LIST(-2, -12), NULL);
    expect_completed(24, 1, LIST(INT64_MIN), NULL);
    expect_completed(0, 3, LIST(INT64_MAX, INT64_MAX, 0), LIST(INT64_MAX, INT64_MAX, 0));
    expect_completed(24, 3, LIST(INT64_MAX, INT64_MAX, -1), NULL);
    expect_completed(1, 2, LIST(INT64_MAX, 3), NULL);
    /* 2^32 * 2^32 wraps to 0. */
    expect_completed(0, 2, LIST((int64_t)1 << 32, (int64_t)1 << 32), NULL);
}

static void expect_index_refused(uint32_t count, const struct healcl_index *items,
                                 const char *message)
{
    struct healcl_error error = {0};
    struct layout layout, result;
    assert_int_equal(layout_init(&layout, 2, (int64_t[]){3, 4}, 8, NULL), HEALCL_OK);
    assert_int_equal(layout_index(&layout, items, count, &result, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, message);
    healcl_error_clear(&error);
}

static void index_refusals(void **unused)
{
    (void)unused;
    const struct healcl_index all = {.kind = HEALCL_INDEX_SLICE},
                              dots = {.kind = HEALCL_INDEX_ELLIPSIS};
    expect_index_refused(2, (struct healcl_index[]){dots, dots}, "more than one ellipsis");
    expect_index_refused(3, (struct healcl_index[]){all, all, all}, "3 indices for rank 2");
    expect_index_refused(4, (struct healcl_index[]){all, dots, all, all}, "3 indices for rank 2");
    struct healcl_index item = {.kind = HEALCL_INDEX_INT, .value = 3};
    expect_index_refused(1, &item, "index 3 is outside of axis 0 of size 3");
    item.value = -5;
    expect_index_refused(2, (struct healcl_index[]){all, item},
                         "index -5 is outside of axis 1 of size 4");
    item.value = INT64_MIN;
    expect_index_refused(1, &item, "index -9223372036854775808 is outside of axis 0 of size 3");
    item = (struct healcl_index){.kind = HEALCL_INDEX_SLICE, .has_step = true, .step = 0};
    expect_index_refused(1, &item, "slice step 0 is not positive");
    item.step = INT64_MIN;
    expect_index_refused(1, &item, "slice step -9223372036854775808 is not positive");
}

/* Bounds at the ends of int64 clamp without overflowing. */
static void extreme_slices(void **unused)
{
    (void)unused;
    const int64_t bounds[] = {INT64_MIN, INT64_MIN + 1, -6, -5, 0, 4, 5, 6, INT64_MAX};
    const int64_t lengths[] = {0, 0, 0, 0, 0, 4, 5, 5, 5}; /* of [:stop], with -5 and below 0 */
    for (int i = 0; i < 9; i++) {
        struct healcl_index item = {.kind = HEALCL_INDEX_SLICE,
                                    .has_stop = true,
                                    .stop = bounds[i],
                                    .has_step = true,
                                    .step = 1};
        struct layout layout, result;
        assert_int_equal(layout_init(&layout, 1, (int64_t[]){5}, 8, NULL), HEALCL_OK);
        assert_int_equal(layout_index(&layout, &item, 1, &result, NULL), HEALCL_OK);
        assert_int_equal(result.shape[0], lengths[i]);
        item = (struct healcl_index){.kind = HEALCL_INDEX_SLICE,
                                     .has_start = true,
                                     .start = bounds[i],
                                     .has_step = true,
                                     .step = INT64_MAX};
        assert_int_equal(layout_index(&layout, &item, 1, &result, NULL), HEALCL_OK);
        assert_int_equal(result.shape[0], bounds[i] < 5);
        assert_true(result.offset >= 0 && result.offset < 5);
    }
}

static void texts(void **unused)
{
    (void)unused;
    char text[SHAPE_TEXT_SIZE];
    struct layout layout = {.rank = 0};
    assert_string_equal(layout_shape_text(&layout, text), "[]");
    assert_string_equal(layout_index_text(&layout, 0, text), "[]");
    layout = (struct layout){.rank = 3, .shape = {2, 3, 4}};
    assert_string_equal(layout_shape_text(&layout, text), "[2, 3, 4]");
    assert_string_equal(layout_index_text(&layout, 23, text), "[1, 2, 3]");
    assert_string_equal(layout_index_text(&layout, 5, text), "[0, 1, 1]");
    /* 17 long numbers are cut. */
    layout.rank = LAYOUT_RANK;
    for (int axis = 0; axis < LAYOUT_RANK; axis++)
        layout.shape[axis] = INT64_MAX;
    layout_shape_text(&layout, text);
    size_t length = strlen(text);
    assert_true(length < SHAPE_TEXT_SIZE && length > 100);
    assert_string_equal(text + length - 6, ", ...]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(overlaps_of_slices),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(broadcast_refusals),
        cmocka_unit_test(sizes),
        cmocka_unit_test(axes),
        cmocka_unit_test(completed_shapes),
        cmocka_unit_test(index_refusals),
        cmocka_unit_test(extreme_slices),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
