/* The elements of views in arrays, and views in transcripts. */
#ifndef HEALCL_CHECK_VIEW_H
#define HEALCL_CHECK_VIEW_H

#include "check/writer.h"

/* Copies an array in C order to a view's elements in a storage's image. */
void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed);

/* Room for a slice of each axis as an argument. */
enum { VIEW_INDEX_SIZE = 64 * LAYOUT_RANK };

/* Moves the axes of a tensor into rising order: axis i of it is called order[i], and order is
 * sorted. */
void view_order_axes(struct writer *writer, const char *name, uint32_t count, uint32_t *order);

#endif
