/* The elements of views in arrays. */
#ifndef HEALCL_LAB_VIEW_H
#define HEALCL_LAB_VIEW_H

#include "core/layout.h"

/* Copies between a view's elements in a storage's image and an array in C order. */
void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed);
void view_gather(const struct layout *layout, size_t size, const void *image, void *packed);

#endif
