#include "tools/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed)
{
    const struct layout *layouts[] = {layout};
    struct walk walk;
    const char *from = packed;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), from += size)
        memcpy((char *)image + walk.position[0] * (int64_t)size, from, size);
}

/* Moves the axes of a tensor into ascending order: axis i of it is called order[i]. */
static void order_axes(struct writer *writer, const char *name, uint32_t count, uint32_t *order)
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

/* How to make a view from a storage of one axis: take it from `offset` on, reshape it to extents,
 * slice with steps, and move its axes. Axes that repeat elements come last. */
struct recipe {
    uint32_t order[LAYOUT_RANK]; /* axes by descending strides */
    int64_t extent[LAYOUT_RANK], step[LAYOUT_RANK];
    int64_t total; /* elements from `offset` on */
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t own_stride(const struct layout *layout, uint32_t axis)
{
    return layout->shape[axis] > 1 ? layout->stride[axis] : 0;
}

/* Returns whether the view can be made this way. */
static bool find_recipe(const struct layout *layout, struct recipe *recipe)
{
    int64_t grain = 0; /* elements of the storage per index of the axis */
    uint32_t innermost = 0;
    bool fits = true;
    recipe->total = 1;
    for (uint32_t axis = 0, at; axis < layout->rank; axis++) {
        for (at = axis;
             at > 0 && own_stride(layout, recipe->order[at - 1]) < own_stride(layout, axis); at--)
            recipe->order[at] = recipe->order[at - 1];
        recipe->order[at] = axis;
    }
    for (uint32_t i = 0; i < layout->rank; i++) {
        const int64_t stride = own_stride(layout, recipe->order[i]), outer = grain;
        recipe->step[i] = recipe->extent[i] = 1;
        if (stride == 0)
            continue;
        grain = common_divisor(stride, grain);
        recipe->step[i] = stride / grain;
        const int64_t span = (layout->shape[recipe->order[i]] - 1) * recipe->step[i] + 1;
        recipe->extent[i] = outer == 0 ? span : outer / grain;
        recipe->total *= recipe->extent[i];
        fits = fits && span <= recipe->extent[i];
        innermost = i;
    }
    if (grain > 0) {
        recipe->extent[innermost] *= grain;
        recipe->step[innermost] *= grain;
        recipe->total *= grain;
    }
    return fits;
}

int64_t view_end(const struct layout *layout)
{
    struct recipe recipe;
    (void)find_recipe(layout, &recipe);
    return layout->offset + recipe.total;
}

bool view_put(struct writer *writer, const char *name, const char *storage,
              const struct layout *layout)
{
    char text[SHAPE_TEXT_SIZE], index[64 * LAYOUT_RANK] = "";
    struct layout extents = {.rank = layout->rank};
    struct recipe recipe;
    bool is_whole = true;
    int used = 0;
    if (!find_recipe(layout, &recipe))
        return false;
    for (uint32_t i = 0; i < layout->rank; i++) {
        const uint32_t axis = recipe.order[i];
        const int64_t own =
            own_stride(layout, axis) > 0 || layout->shape[axis] == 0 ? layout->shape[axis] : 1;
        extents.shape[i] = recipe.extent[i];
        is_whole = is_whole && own == recipe.extent[i];
        used += sprintf(index + used, ":%" PRId64 ":%" PRId64 ",",
                        own > 0 ? (own - 1) * recipe.step[i] + 1 : 0, recipe.step[i]);
    }
    writer_call(writer, name, "get_slice", "%s [%" PRId64 ":%" PRId64 "]", storage, layout->offset,
                layout->offset + recipe.total);
    writer_call(writer, name, "reshape", "%s %s", name, layout_shape_text(&extents, text));
    if (!is_whole)
        writer_call(writer, name, "get_slice", "%s [%s]", name, index);
    order_axes(writer, name, layout->rank, recipe.order);
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->shape[axis] > 1 && layout->stride[axis] == 0)
            writer_call(writer, name, "expand", "%s %" PRIu32 " %" PRId64, name, axis,
                        layout->shape[axis]);
    return true;
}
