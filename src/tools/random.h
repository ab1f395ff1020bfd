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

/* Few ones, few zeros, or anything; of any length. */
uint64_t random_word(struct random *random);

/* In [low, high]. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* True once in so many times. */
bool random_once_in(struct random *random, int64_t times);

/* Any value of a dtype: of any length, negative or not, the extremes often. */
int64_t random_value(struct random *random, enum dtype dtype);

/* In [1, the largest of dtype]: of any length, 1, 2 and the neighbours of powers of two often. */
int64_t random_modulus(struct random *random, enum dtype dtype);

/* ---- arrays of count elements of dtype ---- */

void random_fill_values(struct random *random, enum dtype dtype, int64_t count, void *array);

/* Moduli of all kinds, or all below 2^62, or all of 2^62 or more (of int64): there the ways of
 * kernels part. */
void random_fill_moduli(struct random *random, enum dtype dtype, int64_t count, void *array);

/* In [low, high]. */
void random_fill_between(struct random *random, enum dtype dtype, int64_t count, int64_t low,
                         int64_t high, void *array);

/* In [0, high], high + 1 a power of two. outliers: a few values are anything. */
void random_fill_tame(struct random *random, enum dtype dtype, int64_t count, int64_t high,
                      bool outliers, void *array);

/* Puts elements in another order, any one as often as any other. */
void random_shuffle(struct random *random, enum dtype dtype, int64_t count, void *array);

/* A permutation of 0 .. count-1: any, often the identity, a bit reversal, or nearly one of them. */
void random_fill_permutation(struct random *random, enum dtype dtype, int64_t count, void *array);

/* Pairwise coprime and above 1: primes of many lengths, most of them near the largest, and a power
 * of two. count is at most COPRIME_MAX. */
enum { COPRIME_MAX = 64 };
void random_fill_coprime(struct random *random, enum dtype dtype, int64_t count, void *array);

#endif
