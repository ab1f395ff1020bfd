/* Random numbers and tensor contents from fixed seeds. For one thread: tables of theirs are filled
 * at first use. */
#ifndef HEALCL_TOOLS_RANDOM_H
#define HEALCL_TOOLS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"

struct random {
    uint64_t state;
};

uint64_t random_bits(struct random *random);

/* In [low, high]. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* True once in so many times. */
bool random_once_in(struct random *random, int64_t times);

/* The largest value of a dtype. */
int64_t random_largest(enum dtype dtype);

/* Any value of a dtype: of any length, negative or not, the extremes often. */
int64_t random_value(struct random *random, enum dtype dtype);

/* In [1, the largest of dtype]: of any length, 1, 2 and the neighbours of powers of two often. */
int64_t random_modulus(struct random *random, enum dtype dtype);

/* ---- arrays of count elements of dtype ---- */

/* Puts elements in another order, any one as often as any other. */
void random_shuffle(struct random *random, enum dtype dtype, int64_t count, void *array);

/* A permutation of 0 .. count-1: any, often the identity, a bit reversal, or nearly one of them. */
void random_fill_permutation(struct random *random, enum dtype dtype, int64_t count, void *array);

/* Pairwise coprime and above 1: primes of many lengths, most of them near the largest, and a power
 * of two. count is at most COPRIME_MAX. */
enum { COPRIME_MAX = 64 };
void random_fill_coprime(struct random *random, enum dtype dtype, int64_t count, void *array);

#endif
