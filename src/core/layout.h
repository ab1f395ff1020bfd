/*
 * Layouts: where the elements of a tensor view are in its storage.
 *
 * Element (i0, i1, ...) is at offset + i0*stride[0] + i1*stride[1] + ..., counted in elements from
 * the start of the storage. Strides are never negative; 0 repeats an element along an axis. Every
 * function here keeps two invariants. The number of elements is at most 2^63-1. So is the largest
 * position plus one, times the largest item size.
 */
#ifndef HEALCL_CORE_LAYOUT_H
#define HEALCL_CORE_LAYOUT_H

#include "core/status.h"

enum {
    MAX_RANK = 16,    /* of a tensor */
    LAYOUT_RANK = 17, /* of a layout: splitting an axis for repeat_interleave adds one */
};

struct layout {
    uint32_t rank;
    int64_t offset;
    int64_t shape[LAYOUT_RANK];
    int64_t stride[LAYOUT_RANK];
};

/* Number of elements; 1 for rank 0. */
int64_t layout_elements(const struct layout *layout);

/* A C-order layout from offset 0. Refuses a negative size, a rank above MAX_RANK, and more than
 * 2^63-1 bytes at item_size. */
enum healcl_status layout_init(struct layout *layout, uint32_t rank, const int64_t *shape,
                               uint64_t item_size, struct healcl_error *error);

/* A C-order layout of a shape that is known to fit: rank at most LAYOUT_RANK, no negative size. */
struct layout layout_of_shape(uint32_t rank, const int64_t *shape);

/* The C-order layout, from offset 0, of the same shape. */
struct layout layout_packed(const struct layout *layout);

/* Position of the last element; the offset if there are no elements. */
int64_t layout_last(const struct layout *layout);

/* Elements of the storage from a view's first to its last element; 0 if the view is empty. */
int64_t layout_span(const struct layout *layout);

/* Copies the elements of a view, each of bytes_each bytes, from its storage's data to packed, which
 * is in C order without gaps. back: copies from packed to data instead. */
void layout_copy_packed(const struct layout *layout, size_t bytes_each, void *data, void *packed,
                        bool back);

/* Whether the elements are in C order without gaps (from any offset). */
bool layout_is_contiguous(const struct layout *layout);

bool layout_same_shape(const struct layout *a, const struct layout *b);

/* Whether two views are equal except for their offsets, and except for axis `but` unless it is
 * -1. */
bool layout_alike(const struct layout *a, const struct layout *b, int but);

/* Whether both put every element at the same position (ignoring axes of size 1). */
bool layout_same_elements(const struct layout *a, const struct layout *b);

/* Whether two views of one storage may share an element. Exact for nested strides (slices,
 * transposes and reshapes of C order); otherwise may return true wrongly. */
bool layouts_may_overlap(const struct layout *a, const struct layout *b);

/* Whether two indices refer to the same element: a stride of 0 on an axis longer than 1. */
bool layout_overlaps_itself(const struct layout *layout);

/* Broadcasts a's shape and b's as NumPy does: aligned at the last axis, sizes equal or 1. Sets only
 * rank and shape of result. */
enum healcl_status layout_broadcast_shape(const struct layout *a, const struct layout *b,
                                          struct layout *result, struct healcl_error *error);

/* The view `layout`, broadcast to target's shape. Refuses a shape that cannot be broadcast. */
enum healcl_status layout_broadcast(const struct layout *layout, const struct layout *target,
                                    struct layout *result, struct healcl_error *error);

/* Maps an axis in [-rank, rank) to [0, rank). */
enum healcl_status axis_normalize(int64_t axis, uint32_t rank, uint32_t *normalized,
                                  struct healcl_error *error);

/* ---- views; result may be the source itself ---- */

/* Replaces at most one -1 in shape, and checks that the shape has `elements` elements. */
enum healcl_status shape_complete(uint32_t rank, int64_t *shape, int64_t elements,
                                  struct healcl_error *error);

/* Whether layout can be viewed in another shape with as many elements; if so, sets result. */
bool layout_reshape(const struct layout *layout, uint32_t rank, const int64_t *shape,
                    struct layout *result);

/* The view without the axes that repeat its elements (stride 0). It has each distinct element once,
 * in the same order. */
struct layout layout_own_elements(const struct layout *layout);

struct layout layout_drop_axis(const struct layout *layout, uint32_t axis);
struct layout layout_insert_axis(const struct layout *layout, uint32_t axis, int64_t size,
                                 int64_t stride);
struct layout layout_move_axis(const struct layout *layout, uint32_t from, uint32_t to);

/* Python's basic indexing: see get_slice in docs/OPS.md. */
enum healcl_status layout_index(const struct layout *layout, const struct healcl_index *items,
                                uint32_t count, struct layout *result, struct healcl_error *error);

/* The part [start, start + size) of one axis. The caller ensures that it is within the axis. */
struct layout layout_narrow(const struct layout *layout, uint32_t axis, int64_t start,
                            int64_t size);

/* Drops axes of size 1 from views of one shape, and joins axes that are evenly strided in all of
 * them. At least one axis remains. */
void layouts_simplify(struct layout *views, uint32_t count);

/* Writes the shape into text, such as "[2, 3]", cut off with "..." if it does not fit. Returns
 * text. */
enum { SHAPE_TEXT_SIZE = 160 };
const char *layout_shape_text(const struct layout *layout, char text[SHAPE_TEXT_SIZE]);

/* The multi-index of a C-order position, as numbers or as text such as "[1, 0]". */
void layout_multi_index(const struct layout *layout, int64_t position, int64_t index[LAYOUT_RANK]);
const char *layout_index_text(const struct layout *layout, int64_t position,
                              char text[SHAPE_TEXT_SIZE]);

/* ---- walking ---- */

/*
 * Visits the elements of a shape in C order, and tracks the positions in up to WALK_LAYOUTS layouts
 * of that shape:
 *     for (walk_init(&walk, n, layouts); walk.left > 0; walk_next(&walk)) use(walk.position[0]);
 */
enum { WALK_LAYOUTS = 9 };

struct walk {
    int64_t left; /* elements still to visit, this one included */
    int64_t position[WALK_LAYOUTS];
    int64_t index[LAYOUT_RANK];
    uint32_t count;
    const struct layout *layouts[WALK_LAYOUTS];
};

void walk_init(struct walk *walk, uint32_t count, const struct layout *const *layouts);
void walk_next(struct walk *walk);

#endif
