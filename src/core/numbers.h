#ifndef HEALCL_CORE_NUMBERS_H
#define HEALCL_CORE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* Floor of the logarithm to base 2; 0 for 0. */
uint32_t log2_of(uint64_t value);

/* Sorts values, the smallest first, and returns their median, rounded down; count is not 0. */
uint64_t sort_to_median(uint64_t *values, size_t count);

/* The largest rank, from 1, for which the median of what count values are drawn from, whatever its
 * distribution is, lies between the value of that rank and its counterpart from the other end with
 * so much confidence, below 1. 0 where there are too few values. */
size_t median_rank(size_t count, double confidence);

#endif
