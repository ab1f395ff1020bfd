/* The elements of views in arrays, and views in transcripts. */
#ifndef HEALCL_TOOLS_VIEW_H
#define HEALCL_TOOLS_VIEW_H

#include "tools/writer.h"

/* Copies an array in C order to the elements of a view. image: the contents of its storage. */
void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed);

/* The least number of elements of a one-axis storage from which view_put can make a view. */
int64_t view_end(const struct layout *layout);

/* Writes operations that make a tensor with this name and layout from a storage of one axis, by
 * slices and reshapes. Returns false if its axes interlock. */
bool view_put(struct writer *writer, const char *name, const char *storage,
              const struct layout *layout);

#endif
