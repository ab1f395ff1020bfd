/* Hashes (XXH3, 128 bits) in hexadecimal. They detect damage, but do not prevent forgery. */
#ifndef HEALCL_CORE_HASH_H
#define HEALCL_CORE_HASH_H

#include <stdbool.h>
#include <stddef.h>

enum { HASH_SIZE = 33 };

void hash_bytes(const void *data, size_t bytes, char hash[HASH_SIZE]);

/* Hashes bytes that stand in two places, as if they stood in one. False: no memory. */
bool hash_joined(const void *first, size_t first_bytes, const void *rest, size_t rest_bytes,
                 char hash[HASH_SIZE]);

/* Hashes several texts. Moving characters from one text to the next changes the hash. */
void hash_texts(size_t count, const char *const *texts, char hash[HASH_SIZE]);

#endif
