#include "kernels/space.h"

#include <string.h>

void space_init(struct space *space, const struct layout *shape)
{
    memset(space, 0, sizeof *space);
    space->rank = shape->rank;
    memcpy(space->shape, shape->shape, shape->rank * sizeof *shape->shape);
    if (space->rank == 0)
        space->shape[space->rank++] = 1;
    space->end = (uint64_t)layout_elements(shape);
}

void space_set_operand(struct space *space, uint32_t operand, const struct layout *layout)
{
    space->operand[operand].offset = layout->offset;
    memcpy(space->operand[operand].stride, layout->stride, layout->rank * sizeof *layout->stride);
}

void space_of_views(struct space *space, const struct layout *out, const struct layout *in)
{
    space_init(space, out);
    space_set_operand(space, 0, out);
    space_set_operand(space, 1, in);
    space_simplify(space);
}

void space_insert_axis(struct space *space, uint32_t axis, int64_t size)
{
    const uint32_t behind = space->rank++ - axis;
    memmove(space->shape + axis + 1, space->shape + axis, behind * sizeof *space->shape);
    space->shape[axis] = size;
    space->end *= (uint64_t)size;
    for (int k = 0; k < SPACE_OPERANDS; k++) {
        int64_t *stride = space->operand[k].stride + axis;
        memmove(stride + 1, stride, behind * sizeof *stride);
        *stride = 0;
    }
}

void space_add_axis(struct space *space)
{
    space_insert_axis(space, 0, 1);
}

void space_move_axis(struct space *space, uint32_t to, const struct space *other, uint32_t from)
{
    space->shape[to] = other->shape[from];
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[to] = other->operand[k].stride[from];
}

static void drop_axis(struct space *space, uint32_t axis)
{
    space->rank--;
    for (uint32_t i = axis; i < space->rank; i++)
        space_move_axis(space, i, space, i + 1);
}

static bool axes_join(const struct space *space, uint32_t axis)
{
    for (int k = 0; k < SPACE_OPERANDS; k++)
        if (space->operand[k].stride[axis] !=
            space->operand[k].stride[axis + 1] * space->shape[axis + 1])
            return false;
    return true;
}

void space_simplify(struct space *space)
{
    for (uint32_t axis = space->rank; axis-- > 0 && space->rank > 1;)
        if (space->shape[axis] == 1)
            drop_axis(space, axis);
    for (uint32_t axis = space->rank - 1; axis-- > 0;)
        if (axes_join(space, axis)) {
            space->shape[axis + 1] *= space->shape[axis];
            drop_axis(space, axis);
        }
}

void space_divide_axis(struct space *space, uint32_t axis, int64_t block)
{
    space->shape[axis] = (space->shape[axis] + block - 1) / block;
    for (int k = 0; k < SPACE_OPERANDS; k++)
        space->operand[k].stride[axis] *= block;
    space->end = 1;
    for (uint32_t i = 0; i < space->rank; i++)
        space->end *= (uint64_t)space->shape[i];
}

uint32_t reciprocal_of(int64_t size)
{
    return size > 1 ? (uint32_t)(((uint64_t)1 << 32) / (uint64_t)size) : UINT32_MAX;
}
