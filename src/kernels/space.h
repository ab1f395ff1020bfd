/* Spaces: the elements that a launch works on, and their positions in each operand
 * (cl/base/base.h). */
#ifndef HEALCL_KERNELS_SPACE_H
#define HEALCL_KERNELS_SPACE_H

#include "cl/base/base.h"
#include "core/layout.h"

/* All elements of a shape, without operands. */
void space_init(struct space *space, const struct layout *shape);

/* Makes the operand a view of the space's shape. */
void space_set_operand(struct space *space, uint32_t operand, const struct layout *layout);

/* The elements of two views of the same shape, operands 0 and 1; simplified. */
void space_of_views(struct space *space, const struct layout *out, const struct layout *in);

/* Inserts an axis of `size` elements before `axis`. No operand moves along it. The space must have
 * room for it. */
void space_insert_axis(struct space *space, uint32_t axis, int64_t size);

/* Adds an axis of size 1 before all others. */
void space_add_axis(struct space *space);

/* Makes axis `from` of another space, or of this one, axis `to` of a space. */
void space_move_axis(struct space *space, uint32_t to, const struct space *other, uint32_t from);

/* Joins axes that are contiguous in all operands, and drops axes of size 1. For kernels that do not
 * use single axes. */
void space_simplify(struct space *space);

/* Divides an axis into blocks of `block` elements. The axis then counts blocks, and so do the
 * elements of the space. */
void space_divide_axis(struct space *space, uint32_t axis, int64_t block);

/* floor(2^32 / size), at most 2^32-1. size is in [1, 2^31-1]: see struct space. */
uint32_t reciprocal_of(int64_t size);

#endif
