#include "core/hash.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static void format(XXH128_hash_t hash, char text[HASH_SIZE])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    for (size_t i = 0; i < sizeof canonical.digest; i++)
        snprintf(text + 2 * i, 3, "%02x", canonical.digest[i]);
}

void hash_bytes(const void *data, size_t bytes, char hash[HASH_SIZE])
{
    format(XXH3_128bits(data, bytes), hash);
}

void hash_texts(size_t count, const char *const *texts, char hash[HASH_SIZE])
{
    XXH128_hash_t sum = {0};
    for (size_t i = 0; i < count; i++) {
        XXH128_hash_t both[2] = {sum, XXH3_128bits(texts[i], strlen(texts[i]))};
        sum = XXH3_128bits(both, sizeof both);
    }
    format(sum, hash);
}
