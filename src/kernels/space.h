/* Spaces: the elements that a launch works on, and where each operand has them (cl/base/base.h). */
#ifndef HEALCL_KERNELS_SPACE_H
#define HEALCL_KERNELS_SPACE_H

#include "cl/base/base.h"
#include "core/layout.h"

/* All elements of a shape, without operands. */
void space_init(struct space *space, const struct layout *shape);

/* The operand is a view of that shape. */
void space_set_operand(struct space *space, uint32_t operand, const struct layout *layout);

/* The elements of two views of a shape, operands 0 and 1; simplified. */
void space_of_views(struct space *space, const struct layout *out, const struct layout *in);

/* Puts an axis of so many elements before another one, along which no operand moves; there is room
 * for it. */
void space_insert_axis(struct space *space, uint32_t axis, int64_t size);

/* One of size 1 before all. */
void space_add_axis(struct space *space);

/* Axis `to` of a space becomes axis `from` of another one, or of itself. */
void space_move_axis(struct space *space, uint32_t to, const struct space *other, uint32_t from);

/* Joins axes that lie back to back in all operands, and drops those of size 1. For kernels that do
 * not look at single axes. */
void space_simplify(struct space *space);

/* Divides an axis into blocks of so many elements: it then goes from block to block, and the space
 * has blocks for elements. */
void space_divide_axis(struct space *space, uint32_t axis, int64_t block);

/* floor(2^32 / size), at most 2^32-1, for sizes from 1 to 2^31-1: see struct space. */
uint32_t reciprocal_of(int64_t size);

#endif
