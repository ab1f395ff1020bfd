/*
 * Writing transcripts, in the plain spelling:
 *
 *     struct writer writer = {0};
 *     writer_upload(&writer, "a", DTYPE_INT64, &layout, false, DTYPE_INT64, values);
 *     writer_call(&writer, "b", "get_slice", "a [...,%d:5]", first);
 *     writer_download(&writer, "b", DTYPE_INT64, NULL, NULL);
 *     char *text = writer_finish(&writer);
 *
 * Arguments are words between blanks: the name of a tensor, an integer, "none", ":int64" for a
 * dtype, "[2, 3]" or "(2,3)" for a shape, and the same for an index, whose items are Python's:
 * integers, "...", and slices such as "1:", ":-1" and "0:5:2". Names are letters, digits and
 * underscores, and begin with a letter.
 */
#ifndef HEALCL_TOOLS_WRITER_H
#define HEALCL_TOOLS_WRITER_H

#include "transcript/npy.h"

struct writer {
    char *bytes; /* terminated; to be freed with free() */
    size_t length, capacity;
};

/* Writes any text unchanged. */
__attribute__((format(printf, 2, 3))) void writer_put(struct writer *writer, const char *format,
                                                      ...);

/* Writes an operation. out: the name of the result, or NULL if there is none. */
__attribute__((format(printf, 4, 5))) void writer_call(struct writer *writer, const char *out,
                                                       const char *operation, const char *arguments,
                                                       ...);

/* Uploads elements that have this layout in memory. fortran: the transcript has them in Fortran
 * order. held: their dtype in memory; of each, the transcript gets as many bits as dtype has. */
void writer_upload(struct writer *writer, const char *out, enum dtype dtype,
                   const struct layout *layout, bool fortran, enum dtype held, const void *memory);

/* Downloads a tensor. expected: the elements of the expected result, or NULL. */
void writer_download(struct writer *writer, const char *name, enum dtype dtype,
                     const struct layout *layout, const void *expected);

/* Writes another kind of entry, with one member, or with none if key is NULL. */
void writer_entry(struct writer *writer, const char *type, const char *key, const char *value);

/* Ends a segment, and starts another one. */
void writer_next_segment(struct writer *writer, const char *name);

/* The least number of elements of a one-axis storage from which view_put can make a view. */
int64_t view_end(const struct layout *layout);

/* Writes operations that make a tensor with this name and layout from a storage of one axis, by
 * slices and reshapes. Returns false if its axes interlock. */
bool view_put(struct writer *writer, const char *name, const char *storage,
              const struct layout *layout);

/* Ends the transcript and returns it, to be freed with free(). */
char *writer_finish(struct writer *writer);

#endif
