#include "core/numbers.h"

#include <math.h>
#include <stdlib.h>

bool host_is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

uint32_t log2_of(uint64_t value)
{
    return value > 1 ? 63 - (uint32_t)__builtin_clzll(value) : 0;
}

int64_t greatest_common_divisor(int64_t x, int64_t y)
{
    return y == 0 ? x : greatest_common_divisor(y, x % y);
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

uint64_t sorted_percentile(const uint64_t *values, size_t count, unsigned percent)
{
    size_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
    return count > 0 ? values[rank > 0 ? rank - 1 : 0] : 0;
}

double ratio_of_times(uint64_t a, uint64_t b)
{
    return (double)(a ? a : 1) / (double)(b ? b : 1);
}

/* The probability that exactly `rank` of `count` coins show heads. */
static double binomial(size_t count, size_t rank)
{
    const double n = (double)count, r = (double)rank;
    return exp(lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1) - n * log(2));
}

size_t median_rank(size_t count, double confidence)
{
    double tail = binomial(count, 0); /* P(at most rank values are below the median) */
    size_t rank = 0;
    while (2 * tail <= 1 - confidence && rank < count / 2)
        tail += binomial(count, ++rank);
    return rank;
}
