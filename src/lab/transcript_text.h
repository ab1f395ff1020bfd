/* Writing transcripts in the plain spelling. Tensors have strings as names. Whether there was
 * memory for all is seen at the end, in struct text. */
#ifndef HEALCL_LAB_TRANSCRIPT_TEXT_H
#define HEALCL_LAB_TRANSCRIPT_TEXT_H

#include "core/dtype.h"
#include "core/layout.h"

struct text {
    char *bytes; /* terminated; freed with free() */
    size_t length, capacity;
    bool failed; /* there was no memory; bytes then ends somewhere */
};

/* At most 1000 characters at a time: what is longer is cut off. */
__attribute__((format(printf, 2, 3))) void text_put(struct text *text, const char *format, ...);

/* An operation entry up to its arguments. The entries' list has been begun with "[". Entries stand
 * behind commas where they are not the first. */
void text_begin(struct text *text, const char *operation);

/* Arguments. */
void text_tensor(struct text *text, const char *name);
void text_int(struct text *text, int64_t value);
void text_slice(struct text *text, int64_t start, int64_t stop, int64_t step);
void text_shape(struct text *text, uint32_t rank, const int64_t *shape);
/* packed: the elements in C order. */
void text_payload(struct text *text, enum dtype dtype, const struct layout *shape, bool fortran,
                  const void *packed);

#endif
