/* Hashes (XXH3, 128 bits) in hexadecimal. They find damage; they keep nobody from forging. */
#ifndef HEALCL_CORE_HASH_H
#define HEALCL_CORE_HASH_H

#include <stddef.h>

enum { HASH_SIZE = 33 };

void hash_bytes(const void *data, size_t bytes, char hash[HASH_SIZE]);

/* Hashes several texts: no end of one can pass for the beginning of the next. */
void hash_texts(size_t count, const char *const *texts, char hash[HASH_SIZE]);

#endif
