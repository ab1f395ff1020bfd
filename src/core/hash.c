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

bool hash_joined(const void *first, size_t first_bytes, const void *rest, size_t rest_bytes,
                 char hash[HASH_SIZE])
{
    XXH3_state_t *state = XXH3_createState();
    const bool is_done = state && XXH3_128bits_reset(state) == XXH_OK &&
                         XXH3_128bits_update(state, first, first_bytes) == XXH_OK &&
                         XXH3_128bits_update(state, rest, rest_bytes) == XXH_OK;
    if (is_done)
        format(XXH3_128bits_digest(state), hash);
    (void)XXH3_freeState(state);
    return is_done;
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
