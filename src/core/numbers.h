#ifndef HEALCL_CORE_NUMBERS_H
#define HEALCL_CORE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool host_is_little_endian(void);

/* Floor of the logarithm to base 2; 0 for 0. */
uint32_t log2_of(uint64_t value);

/* Sorts values, the smallest first, and returns their median, rounded down; count is not 0. */
uint64_t sort_to_median(uint64_t *values, size_t count);

/* The smallest of count sorted values that so many percent of them do not exceed; count is not 0.
 */
uint64_t sorted_percentile(const uint64_t *values, size_t count, unsigned percent);

/* a / b, where 0 counts as 1: of times that a clock may not resolve. */
double ratio_of_times(uint64_t a, uint64_t b);

/* The largest rank, from 1, for which the median of what count values are drawn from, whatever its
 * distribution is, lies between the value of that rank and its counterpart from the other end with
 * so much confidence, below 1. 0 where there are too few values. */
size_t median_rank(size_t count, double confidence);

#endif
