#include "core/layout.h"

#include <stdio.h>
#include <string.h>

int64_t layout_elements(const struct layout *layout)
{
    int64_t elements = 1;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->shape[axis] == 0)
            return 0;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        elements *= layout->shape[axis];
    return elements;
}

/* C-order strides, all 0 if there are no elements, so that no product can overflow. */
static void set_packed_strides(struct layout *layout)
{
    bool empty = layout_elements(layout) == 0;
    int64_t stride = 1;
    for (uint32_t axis = layout->rank; axis-- > 0;) {
        layout->stride[axis] = empty ? 0 : stride;
        if (!empty)
            stride *= layout->shape[axis];
    }
}

enum healcl_status layout_init(struct layout *layout, uint32_t rank, const int64_t *shape,
                               uint64_t item_size, struct healcl_error *error)
{
    if (rank > MAX_RANK)
        REFUSE_FOR(error, SHAPE, "rank %" PRIu32 " is above %d", rank, MAX_RANK);
    memset(layout, 0, sizeof *layout);
    layout->rank = rank;
    bool empty = false;
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0)
            REFUSE_FOR(error, SHAPE, "size %" PRId64 " of axis %" PRIu32 " is negative",
                       shape[axis], axis);
        layout->shape[axis] = shape[axis];
        empty = empty || shape[axis] == 0;
    }
    int64_t bytes = (int64_t)item_size;
    for (uint32_t axis = 0; axis < rank && !empty; axis++)
        if (__builtin_mul_overflow(bytes, shape[axis], &bytes)) {
            char text[SHAPE_TEXT_SIZE];
            REFUSE_FOR(error, SHAPE, "shape %s is larger than 2^63-1 bytes",
                       layout_shape_text(layout, text));
        }
    set_packed_strides(layout);
    return HEALCL_OK;
}

struct layout layout_of_shape(uint32_t rank, const int64_t *shape)
{
    struct layout layout = {.rank = rank};
    memcpy(layout.shape, shape, rank * sizeof *shape);
    set_packed_strides(&layout);
    return layout;
}

struct layout layout_packed(const struct layout *layout)
{
    return layout_of_shape(layout->rank, layout->shape);
}

int64_t layout_last(const struct layout *layout)
{
    int64_t last = layout->offset;
    if (layout_elements(layout) > 0)
        for (uint32_t axis = 0; axis < layout->rank; axis++)
            last += (layout->shape[axis] - 1) * layout->stride[axis];
    return last;
}

int64_t layout_span(const struct layout *layout)
{
    return layout_elements(layout) > 0 ? layout_last(layout) - layout->offset + 1 : 0;
}

bool layout_is_contiguous(const struct layout *layout)
{
    if (layout_elements(layout) <= 1)
        return true;
    int64_t expected = 1;
    for (uint32_t axis = layout->rank; axis-- > 0;) {
        if (layout->shape[axis] == 1)
            continue;
        if (layout->stride[axis] != expected)
            return false;
        expected *= layout->shape[axis];
    }
    return true;
}

bool layout_same_shape(const struct layout *a, const struct layout *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

bool layout_alike(const struct layout *a, const struct layout *b, int but)
{
    for (uint32_t axis = 0; axis < a->rank && a->rank == b->rank; axis++)
        if ((int)axis != but && (a->shape[axis] != b->shape[axis] ||
                                 (a->shape[axis] > 1 && a->stride[axis] != b->stride[axis])))
            return false;
    return a->rank == b->rank;
}

bool layout_same_elements(const struct layout *a, const struct layout *b)
{
    return a->offset == b->offset && layout_alike(a, b, -1);
}

/*
 * Divides positions by the largest stride s of either view, into quotient and remainder. If the
 * smaller axes of neither view carry into the quotient, the views are disjoint if their quotients
 * or their remainders are. Both are the same question with one stride less.
 */
static bool may_overlap(struct layout a, struct layout b)
{
    struct layout *views[2] = {&a, &b};
    int64_t first[2], last[2], stride = 0;
    for (int i = 0; i < 2; i++)
        for (uint32_t axis = 0; axis < views[i]->rank; axis++)
            if (views[i]->shape[axis] > 1 && views[i]->stride[axis] > stride)
                stride = views[i]->stride[axis];
    if (stride == 0)
        return a.offset == b.offset;

    for (int i = 0; i < 2; i++) {
        struct layout *view = views[i];
        int64_t steps = 0;
        for (uint32_t axis = 0; axis < view->rank; axis++)
            if (view->shape[axis] > 1 && view->stride[axis] == stride) {
                steps += view->shape[axis] - 1;
                view->shape[axis] = 1;
            }
        first[i] = view->offset / stride;
        last[i] = first[i] + steps;
        view->offset %= stride;
        if (layout_last(view) >= stride)
            return true;
    }
    if (last[0] < first[1] || last[1] < first[0])
        return false;
    return may_overlap(a, b);
}

bool layouts_may_overlap(const struct layout *a, const struct layout *b)
{
    if (layout_elements(a) == 0 || layout_elements(b) == 0)
        return false;
    if (layout_last(a) < b->offset || layout_last(b) < a->offset)
        return false;
    return may_overlap(*a, *b);
}

bool layout_overlaps_itself(const struct layout *layout)
{
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->shape[axis] > 1 && layout->stride[axis] == 0)
            return layout_elements(layout) > 0;
    return false;
}

enum healcl_status layout_broadcast_shape(const struct layout *a, const struct layout *b,
                                          struct layout *result, struct healcl_error *error)
{
    const struct layout *longer = a->rank >= b->rank ? a : b;
    const struct layout *shorter = a->rank >= b->rank ? b : a;
    struct layout shape = *longer;
    uint32_t skipped = longer->rank - shorter->rank;
    for (uint32_t axis = 0; axis < shorter->rank; axis++) {
        int64_t *size = &shape.shape[skipped + axis];
        if (*size == 1)
            *size = shorter->shape[axis];
        else if (shorter->shape[axis] != 1 && shorter->shape[axis] != *size) {
            char text_a[SHAPE_TEXT_SIZE], text_b[SHAPE_TEXT_SIZE];
            REFUSE_FOR(error, SHAPE, "shapes %s and %s do not broadcast",
                       layout_shape_text(a, text_a), layout_shape_text(b, text_b));
        }
    }
    /* Two operands that fit memory may broadcast to a shape that does not. */
    int64_t checked[LAYOUT_RANK];
    memcpy(checked, shape.shape, sizeof checked);
    return layout_init(result, shape.rank, checked, sizeof(int64_t), error);
}

enum healcl_status layout_broadcast(const struct layout *layout, const struct layout *target,
                                    struct layout *result, struct healcl_error *error)
{
    struct layout view = *target;
    view.offset = layout->offset;
    bool fits = layout->rank <= target->rank;
    uint32_t skipped = fits ? target->rank - layout->rank : 0;
    for (uint32_t axis = 0; fits && axis < target->rank; axis++) {
        view.stride[axis] = 0;
        if (axis < skipped)
            continue;
        int64_t size = layout->shape[axis - skipped];
        if (size == target->shape[axis])
            view.stride[axis] = layout->stride[axis - skipped];
        else
            fits = size == 1;
    }
    if (!fits) {
        char text[SHAPE_TEXT_SIZE], text_target[SHAPE_TEXT_SIZE];
        REFUSE_FOR(error, SHAPE, "shape %s does not broadcast to %s",
                   layout_shape_text(layout, text), layout_shape_text(target, text_target));
    }
    *result = view;
    return HEALCL_OK;
}

enum healcl_status axis_normalize(int64_t axis, uint32_t rank, uint32_t *normalized,
                                  struct healcl_error *error)
{
    int64_t signed_rank = rank;
    if (axis < -signed_rank || axis >= signed_rank)
        REFUSE(error, "axis %" PRId64 " is outside of rank %" PRIu32, axis, rank);
    *normalized = (uint32_t)(axis < 0 ? axis + signed_rank : axis);
    return HEALCL_OK;
}

enum healcl_status shape_complete(uint32_t rank, int64_t *shape, int64_t elements,
                                  struct healcl_error *error)
{
    int64_t known = 1;
    int64_t *unknown = NULL;
    bool empty = false, overflow = false;
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (shape[axis] == -1) {
            if (unknown)
                REFUSE_FOR(error, SHAPE, "more than one size is -1");
            unknown = &shape[axis];
        } else if (shape[axis] < 0) {
            REFUSE_FOR(error, SHAPE, "size %" PRId64 " of axis %" PRIu32 " is negative",
                       shape[axis], axis);
        } else if (shape[axis] == 0) {
            empty = true;
        } else {
            overflow = overflow || __builtin_mul_overflow(known, shape[axis], &known);
        }
    }
    if (unknown) {
        if (empty)
            REFUSE_FOR(error, SHAPE, "the size -1 is ambiguous beside a size 0");
        if (overflow || elements % known != 0)
            REFUSE_FOR(error, SHAPE, "%" PRId64 " elements do not divide into the given sizes",
                       elements);
        *unknown = elements / known;
    } else if ((!empty && overflow) || (empty ? 0 : known) != elements) {
        struct layout wanted = {.rank = rank};
        char text[SHAPE_TEXT_SIZE];
        memcpy(wanted.shape, shape, rank * sizeof *shape);
        REFUSE_FOR(error, SHAPE, "%" PRId64 " elements cannot take the shape %s", elements,
                   layout_shape_text(&wanted, text));
    }
    return HEALCL_OK;
}

bool layout_reshape(const struct layout *layout, uint32_t rank, const int64_t *shape,
                    struct layout *result)
{
    struct layout view = {.rank = rank, .offset = layout->offset};
    memcpy(view.shape, shape, rank * sizeof *shape);
    if (layout_elements(layout) == 0) {
        set_packed_strides(&view);
        *result = view;
        return true;
    }

    /* Walk both shapes from the right. Adjacent old axes form one contiguous run of memory. Any new
     * axes with the same number of elements may divide the run. */
    int64_t run_left = 1, run_stride = 1; /* elements of the current run not yet assigned */
    uint32_t old = layout->rank;
    for (uint32_t axis = rank; axis-- > 0;) {
        int64_t wanted = view.shape[axis];
        if (wanted == 1) {
            view.stride[axis] = 0;
            continue;
        }
        while (run_left == 1) {
            old--;
            run_left = layout->shape[old];
            run_stride = layout->stride[old];
        }
        while (run_left % wanted != 0) {
            /* The run must be extended by the next old axis, which must be adjacent to it. */
            if (old == 0)
                return false;
            old--;
            if (layout->shape[old] == 1)
                continue;
            if (layout->stride[old] != run_stride * run_left)
                return false;
            run_left *= layout->shape[old];
        }
        view.stride[axis] = run_stride;
        run_stride *= wanted;
        run_left /= wanted;
    }
    /* An axis of size 1 is never stepped along. A stride as in C order keeps the view printable. */
    int64_t stride = 1;
    for (uint32_t axis = rank; axis-- > 0;) {
        if (view.shape[axis] == 1)
            view.stride[axis] = stride;
        else
            stride = view.stride[axis] * view.shape[axis];
    }
    *result = view;
    return true;
}

struct layout layout_drop_axis(const struct layout *layout, uint32_t axis)
{
    struct layout view = *layout;
    view.rank--;
    for (uint32_t i = axis; i < view.rank; i++) {
        view.shape[i] = layout->shape[i + 1];
        view.stride[i] = layout->stride[i + 1];
    }
    return view;
}

void layouts_simplify(struct layout *views, uint32_t count)
{
    for (uint32_t axis = views->rank; axis-- > 0 && views->rank > 1;) {
        const bool is_single = views->shape[axis] == 1;
        bool joins = axis + 1 < views->rank;
        for (uint32_t i = 0; i < count && joins; i++)
            joins = views[i].stride[axis] == views[i].stride[axis + 1] * views[i].shape[axis + 1];
        for (uint32_t i = 0; i < count && (is_single || joins); i++) {
            if (!is_single)
                views[i].shape[axis + 1] *= views[i].shape[axis];
            views[i] = layout_drop_axis(&views[i], axis);
        }
    }
}

struct layout layout_own_elements(const struct layout *layout)
{
    struct layout own = *layout;
    own.rank = 0;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->stride[axis] != 0 || layout->shape[axis] < 1) {
            own.shape[own.rank] = layout->shape[axis];
            own.stride[own.rank++] = layout->stride[axis];
        }
    return own;
}

struct layout layout_insert_axis(const struct layout *layout, uint32_t axis, int64_t size,
                                 int64_t stride)
{
    struct layout view = *layout;
    for (uint32_t i = layout->rank; i > axis; i--) {
        view.shape[i] = layout->shape[i - 1];
        view.stride[i] = layout->stride[i - 1];
    }
    view.rank++;
    view.shape[axis] = size;
    view.stride[axis] = stride;
    return view;
}

struct layout layout_move_axis(const struct layout *layout, uint32_t from, uint32_t to)
{
    struct layout view = layout_drop_axis(layout, from);
    return layout_insert_axis(&view, to, layout->shape[from], layout->stride[from]);
}

struct layout layout_narrow(const struct layout *layout, uint32_t axis, int64_t start, int64_t size)
{
    struct layout view = *layout;
    view.shape[axis] = size;
    if (layout_elements(&view) > 0)
        view.offset += start * view.stride[axis];
    return view;
}

/* A slice bound: negative values count from the end; then clamped to [0, size]. */
static int64_t slice_bound(int64_t bound, int64_t size)
{
    if (bound < 0)
        bound = bound < -size ? 0 : bound + size;
    return bound > size ? size : bound;
}

/* Appends `count` whole axes of a layout, from `axis` on, to a view. */
static void append_whole(struct layout *view, const struct layout *layout, uint32_t axis,
                         uint32_t count)
{
    for (uint32_t end = axis + count; axis < end; axis++) {
        view->shape[view->rank] = layout->shape[axis];
        view->stride[view->rank++] = layout->stride[axis];
    }
}

static enum healcl_status append_slice(struct layout *view, const struct layout *layout,
                                       uint32_t axis, const struct healcl_index *slice,
                                       struct healcl_error *error)
{
    int64_t size = layout->shape[axis], stride = layout->stride[axis];
    int64_t step = slice->has_step ? slice->step : 1;
    if (step <= 0)
        REFUSE(error, "slice step %" PRId64 " is not positive", step);
    int64_t start = slice->has_start ? slice_bound(slice->start, size) : 0;
    int64_t stop = slice->has_stop ? slice_bound(slice->stop, size) : size;
    int64_t length = start < stop ? (stop - start - 1) / step + 1 : 0;
    if (length > 0)
        view->offset += start * stride;
    view->shape[view->rank] = length;
    /* If one element remains, the stride is never used, and step may be huge. */
    view->stride[view->rank++] = length > 1 ? stride * step : stride;
    return HEALCL_OK;
}

enum healcl_status layout_index(const struct layout *layout, const struct healcl_index *items,
                                uint32_t count, struct layout *result, struct healcl_error *error)
{
    uint32_t ellipses = 0;
    for (uint32_t i = 0; i < count; i++)
        ellipses += items[i].kind == HEALCL_INDEX_ELLIPSIS;
    if (ellipses > 1)
        REFUSE(error, "more than one ellipsis");
    uint32_t indexed = count - ellipses;
    if (indexed > layout->rank)
        REFUSE(error, "%" PRIu32 " indices for rank %" PRIu32, indexed, layout->rank);

    struct layout view = {.offset = layout->offset};
    uint32_t axis = 0;
    for (uint32_t i = 0; i < count; i++) {
        switch (items[i].kind) {
        case HEALCL_INDEX_INT: { /* removes its axis */
            const int64_t index = items[i].value, size = layout->shape[axis];
            if (index < -size || index >= size)
                REFUSE(error, "index %" PRId64 " is outside of axis %" PRIu32 " of size %" PRId64,
                       index, axis, size);
            view.offset += (index < 0 ? index + size : index) * layout->stride[axis++];
            break;
        }
        case HEALCL_INDEX_SLICE: TRY(append_slice(&view, layout, axis++, &items[i], error)); break;
        case HEALCL_INDEX_ELLIPSIS:
            append_whole(&view, layout, axis, layout->rank - indexed);
            axis += layout->rank - indexed;
            break;
        }
    }
    append_whole(&view, layout, axis, layout->rank - axis);
    if (layout_elements(&view) == 0)
        view.offset = layout->offset;
    *result = view;
    return HEALCL_OK;
}

/* Writes "[values]", at most size bytes. */
static const char *list_text(uint32_t count, const int64_t *values, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (uint32_t i = 0; i < count; i++) {
        char number[24];
        int length = snprintf(number, sizeof number, "%s%" PRId64, i ? ", " : "", values[i]);
        if (used + (size_t)length + sizeof ", ...]" > size) {
            used += (size_t)snprintf(text + used, size - used, ", ...");
            break;
        }
        memcpy(text + used, number, (size_t)length);
        used += (size_t)length;
    }
    snprintf(text + used, size - used, "]");
    return text;
}

const char *layout_shape_text(const struct layout *layout, char text[SHAPE_TEXT_SIZE])
{
    return list_text(layout->rank, layout->shape, text, SHAPE_TEXT_SIZE);
}

void layout_multi_index(const struct layout *layout, int64_t position, int64_t index[LAYOUT_RANK])
{
    for (uint32_t axis = layout->rank; axis-- > 0;) {
        int64_t size = layout->shape[axis] > 0 ? layout->shape[axis] : 1;
        index[axis] = position % size;
        position /= size;
    }
}

const char *layout_index_text(const struct layout *layout, int64_t position,
                              char text[SHAPE_TEXT_SIZE])
{
    int64_t index[LAYOUT_RANK];
    layout_multi_index(layout, position, index);
    return list_text(layout->rank, index, text, SHAPE_TEXT_SIZE);
}

void walk_init(struct walk *walk, uint32_t count, const struct layout *const *layouts)
{
    memset(walk, 0, sizeof *walk);
    walk->count = count;
    walk->left = layout_elements(layouts[0]);
    for (uint32_t i = 0; i < count; i++) {
        walk->layouts[i] = layouts[i];
        walk->position[i] = layouts[i]->offset;
    }
}

void walk_next(struct walk *walk)
{
    const struct layout *shape = walk->layouts[0];
    walk->left--;
    for (uint32_t axis = shape->rank; axis-- > 0;) {
        bool carries = ++walk->index[axis] == shape->shape[axis];
        int64_t steps = carries ? 1 - shape->shape[axis] : 1;
        if (carries)
            walk->index[axis] = 0;
        for (uint32_t i = 0; i < walk->count; i++)
            walk->position[i] += steps * walk->layouts[i]->stride[axis];
        if (!carries)
            return;
    }
}

/* Elements that are contiguous along the last axes are copied at once. */
void layout_copy_packed(const struct layout *layout, size_t bytes_each, void *data, void *packed,
                        bool back)
{
    struct layout runs = *layout;
    size_t together = bytes_each;
    while (runs.rank > 0 && (size_t)runs.stride[runs.rank - 1] * bytes_each == together)
        together *= (size_t)runs.shape[--runs.rank];
    const struct layout *layouts[] = {&runs};
    struct walk walk;
    char *to = packed;
    for (walk_init(&walk, 1, layouts); together > 0 && walk.left > 0; walk_next(&walk)) {
        char *part = (char *)data + (size_t)walk.position[0] * bytes_each;
        memcpy(back ? part : to, back ? to : part, together);
        to += together;
    }
}
