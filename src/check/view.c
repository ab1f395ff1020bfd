#include "check/view.h"

#include <inttypes.h>
#include <string.h>

/* The last axes of a view whose elements lie without gaps. */
static uint32_t packed_axes(const struct layout *layout, int64_t *elements)
{
    uint32_t axis = layout->rank;
    *elements = 1;
    while (axis > 0 && (layout->shape[axis - 1] == 1 || layout->stride[axis - 1] == *elements))
        *elements *= layout->shape[--axis];
    return axis;
}

static void copy_row(size_t size, int64_t count, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < count; i++)
            to[i * to_step] = from[i * from_step];
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i * to_step, from + 4 * i * from_step, 4);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 8 * i * to_step, from + 8 * i * from_step, 8);
        break;
    }
}

static void copy_view(const struct layout *layout, size_t size, char *image, char *packed,
                      bool scatters)
{
    int64_t row = 1, step = 1;
    uint32_t outer = packed_axes(layout, &row);
    bool is_dense = row > 1 || outer == 0;
    if (layout_elements(layout) == 0)
        return;
    if (!is_dense) { /* rows along the last axis, a step apart */
        outer = layout->rank - 1;
        row = layout->shape[outer];
        step = layout->stride[outer];
    }
    struct layout rows = *layout;
    rows.rank = outer;
    const struct layout *layouts[] = {&rows};
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        char *at = image + walk.position[0] * (int64_t)size;
        if (step == 1)
            memcpy(scatters ? at : packed, scatters ? packed : at, (size_t)row * size);
        else if (scatters)
            copy_row(size, row, at, step, packed, 1);
        else
            copy_row(size, row, packed, 1, at, step);
        packed += (size_t)row * size;
    }
}

void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed)
{
    union {
        const void *read;
        void *taken;
    } from = {.read = packed};
    copy_view(layout, size, image, from.taken, true);
}

void view_gather(const struct layout *layout, size_t size, const void *image, void *packed)
{
    union {
        const void *read;
        void *taken;
    } from = {.read = image};
    copy_view(layout, size, from.taken, packed, false);
}

void view_order_axes(struct writer *writer, const char *name, uint32_t count, uint32_t *order)
{
    for (uint32_t to = 0; to < count; to++) {
        uint32_t from = to;
        for (uint32_t i = to; i < count; i++)
            from = order[i] < order[from] ? i : from;
        if (from == to)
            continue;
        uint32_t axis = order[from];
        writer_call(writer, name, "moveaxis", "%s %" PRIu32 " %" PRIu32, name, from, to);
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
        order[to] = axis;
    }
}
