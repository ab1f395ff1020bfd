#include "core/numbers.h"

#include <stdlib.h>

uint32_t log2_of(uint64_t value)
{
    uint32_t shift = 0;
    while (value >> shift > 1)
        shift++;
    return shift;
}

static int smaller_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t sort_to_median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, smaller_first);
    uint64_t low = values[(count - 1) / 2], high = values[count / 2];
    return low + (high - low) / 2;
}
