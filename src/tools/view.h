/* The elements of views in arrays, and views in transcripts. */
#ifndef HEALCL_TOOLS_VIEW_H
#define HEALCL_TOOLS_VIEW_H

#include "tools/writer.h"

/* Copies an array in C order to a view's elements in a storage's image. */
void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed);

/* How many elements a storage of one axis has at least, so that view_put can make a view of it. */
int64_t view_end(const struct layout *layout);

/* Makes a tensor, by its name, with a layout in a storage of one axis, by slices and reshapes.
 * Returns false where its axes interlock. */
bool view_put(struct writer *writer, const char *name, const char *storage,
              const struct layout *layout);

#endif
