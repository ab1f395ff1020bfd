#ifndef HEALCL_CORE_NUMBERS_H
#define HEALCL_CORE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool host_is_little_endian(void);

/* Floor of the logarithm to base 2; 0 for 0. */
uint32_t log2_of(uint64_t value);

/* Of integers of which at least one is positive, and none negative. */
int64_t greatest_common_divisor(int64_t x, int64_t y);

/* Sorts values in ascending order, and returns their median, rounded down. count must not be 0. */
uint64_t sort_to_median(uint64_t *values, size_t count);

/* The smallest of count sorted values that at least `percent` percent of them do not exceed; 0 if
 * there are none. */
uint64_t sorted_percentile(const uint64_t *values, size_t count, unsigned percent);

/* a / b for times, with 0 replaced by 1: the clock may not resolve them. */
double ratio_of_times(uint64_t a, uint64_t b);

/* Finds a confidence interval of a median, from `count` sorted samples of any distribution. The
 * interval lies between the sample of the returned rank and its counterpart from the other end.
 * Returns the largest rank, from 1, for which it holds with at least this confidence, below 1.
 * Returns 0 if there are too few samples. */
size_t median_rank(size_t count, double confidence);

#endif
