/* Base64 with vector instructions, chosen at run time. */
#ifndef HEALCL_TRANSCRIPT_BASE64_VECTOR_H
#define HEALCL_TRANSCRIPT_BASE64_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

enum { BASE64_ALIGNMENT = 64 };

struct base64_vector {
    /* Both may stop at any block before the end. They stop before the block with the first bad
     * character. They return the number of groups, or characters, processed. is_past: stores to
     * bytes, a multiple of BASE64_ALIGNMENT, bypass the caches. */
    size_t (*decode)(const char *text, size_t groups, bool is_past, unsigned char *bytes);
    size_t (*good)(const char *text, size_t length);
};

/* The code for this processor's instructions; NULL: none. */
const struct base64_vector *base64_vector(void);

/* The six bits of each character, or this bit for a character outside of the alphabet. */
enum { BASE64_BAD = 0x80 };
extern const unsigned char base64_values[256];

#endif
