/* Hashes (XXH3, 128 bits) in hexadecimal. They detect damage, but do not prevent forgery. */
#ifndef HEALCL_CORE_HASH_H
#define HEALCL_CORE_HASH_H

#include <stddef.h>

enum { HASH_SIZE = 33 };

void hash_bytes(const void *data, size_t bytes, char hash[HASH_SIZE]);

/* Hashes several texts. Moving characters from one text to the next changes the hash. */
void hash_texts(size_t count, const char *const *texts, char hash[HASH_SIZE]);

#endif
