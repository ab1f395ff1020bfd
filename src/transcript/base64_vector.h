/* Base64 in vector code, which base64.c chooses at run time. */
#ifndef HEALCL_TRANSCRIPT_BASE64_VECTOR_H
#define HEALCL_TRANSCRIPT_BASE64_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

enum { BASE64_ALIGNMENT = 64 };

struct base64_vector {
    const char *name;
    bool (*is_here)(void); /* whether the processor has the instructions */
    /* Both stop at any block before the end, and before the block of the first bad character. They
     * return how many groups, or characters, they have done. is_past: bytes, at a multiple of
     * BASE64_ALIGNMENT, go past the caches. */
    size_t (*decode)(const char *text, size_t groups, bool is_past, unsigned char *bytes);
    size_t (*good)(const char *text, size_t length);
};

/* Fastest first; the last has no name. */
extern const struct base64_vector base64_vectors[];

/* The six bits of each character. One outside of the alphabet has this bit. */
enum { BASE64_BAD = 0x80 };
extern const unsigned char base64_values[256];

#endif
