/*
 * Writing transcripts, in the plain spelling:
 *
 *     struct writer writer = {0};
 *     writer_upload(&writer, "a", DTYPE_INT64, &layout, false, values);
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
    char *bytes; /* terminated; freed with free() */
    size_t length, capacity;
};

/* Any text, as it is. */
__attribute__((format(printf, 2, 3))) void writer_put(struct writer *writer, const char *format,
                                                      ...);

/* An operation. out: the name of the result, or NULL for none. */
__attribute__((format(printf, 4, 5))) void writer_call(struct writer *writer, const char *out,
                                                       const char *operation, const char *arguments,
                                                       ...);

/* Elements that lie as layout says in memory; fortran: in Fortran order in the transcript. */
void writer_upload(struct writer *writer, const char *out, enum dtype dtype,
                   const struct layout *layout, bool fortran, const void *memory);

/* Values in C order, of which the transcript has what fits dtype: the lowest bits. */
void writer_upload_values(struct writer *writer, const char *out, enum dtype dtype,
                          const struct layout *shape, const int64_t *values);

/* expected: the elements that the result is to have, or NULL. */
void writer_download(struct writer *writer, const char *name, enum dtype dtype,
                     const struct layout *layout, const void *expected);

/* Any other entry, with one member or, key NULL, none. */
void writer_entry(struct writer *writer, const char *type, const char *key, const char *value);

/* Ends the transcript. Returns it, freed with free(). */
char *writer_finish(struct writer *writer);

#endif
