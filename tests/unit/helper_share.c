#include "helper_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

enum { SECONDS_A_DAY = 86400 };

bool share_is_all(void)
{
    const char *all = getenv("HEALCL_TEST_ALL");
    return all && strcmp(all, "1") == 0;
}

static uint64_t share_seed(void)
{
    static bool known;
    static uint64_t seed;
    if (known)
        return seed;
    const char *text = getenv("HEALCL_TEST_SEED");
    seed = text && *text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) / SECONDS_A_DAY;
    known = true;
    printf("a share of the whole: HEALCL_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

static bool takes(uint64_t seed, const char *sweep, uint64_t number, uint32_t of)
{
    const uint64_t block[] = {seed, number / of};
    uint64_t hash = XXH3_64bits_withSeed(sweep, strlen(sweep), 0);
    return number % of == XXH3_64bits_withSeed(block, sizeof block, hash) % of;
}

static bool is_drawn;

bool share_is_drawn(void)
{
    const bool was_drawn = is_drawn;
    is_drawn = false;
    return was_drawn;
}

bool share_takes(const char *sweep, uint64_t number, uint32_t of)
{
    if (share_is_all())
        return true;
    const bool is_fixed = share_chooses() && takes(0, sweep, number, of);
    is_drawn = !is_fixed;
    return is_fixed || takes(share_seed(), sweep, number, of);
}

static bool is_of_others(void)
{
    return getenv("HEALCL_TUNING") || getenv("HEALCL_VARIANT") || getenv("HEALCL_AS");
}

enum share_programs share_programs_wanted(void)
{
    const char *tuning = getenv("HEALCL_TUNING");
    if (tuning && strncmp(tuning, "multiply=", 9) == 0 && !strchr(tuning, ','))
        return PROGRAMS_BUT_SIZES;
    return is_of_others() ? PROGRAMS_VALUES : PROGRAMS_PAIRS;
}
