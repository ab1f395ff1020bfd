#include "check/view.h"

#include <inttypes.h>
#include <string.h>

void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed)
{
    struct layout rows = *layout; /* of elements without gaps */
    int64_t row = 1;
    while (rows.rank > 0 && (rows.shape[rows.rank - 1] == 1 || rows.stride[rows.rank - 1] == row))
        row *= rows.shape[--rows.rank];
    const size_t bytes = (size_t)row * size;
    const struct layout *layouts[] = {&rows};
    struct walk walk;
    const char *from = packed;
    if (layout_elements(layout) == 0)
        return;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), from += bytes)
        memcpy((char *)image + walk.position[0] * (int64_t)size, from, bytes);
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
