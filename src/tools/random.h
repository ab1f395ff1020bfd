/* Random numbers and tensor contents from fixed seeds, and primes to use as moduli. For one thread
 * only: its tables are filled at first use. */
#ifndef HEALCL_TOOLS_RANDOM_H
#define HEALCL_TOOLS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"

struct random {
    uint64_t state;
};

uint64_t random_bits(struct random *random);

/* Returns a number in [low, high]. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* Returns true once in `times` calls, on average. */
bool random_once_in(struct random *random, int64_t times);

/* The largest value of a dtype. */
int64_t random_largest(enum dtype dtype);

/* Returns any value of a dtype: of any bit length and sign, with frequent extremes. */
int64_t random_value(struct random *random, enum dtype dtype);

/* Returns a value in [1, the largest of dtype], of any bit length. 1, 2 and neighbours of powers of
 * two are frequent. */
int64_t random_modulus(struct random *random, enum dtype dtype);

/* ---- arrays of count elements of dtype ---- */

/* Shuffles the elements, uniformly. */
void random_shuffle(struct random *random, enum dtype dtype, int64_t count, void *array);

/* Makes a permutation of 0 .. count-1: any one, often the identity, a bit reversal, or nearly one
 * of these. */
void random_fill_permutation(struct random *random, enum dtype dtype, int64_t count, void *array);

/* Makes pairwise coprime numbers above 1: primes of many bit lengths, mostly near the largest, and
 * a power of two. count is at most COPRIME_MAX. */
enum { COPRIME_MAX = 64 };
void random_fill_coprime(struct random *random, enum dtype dtype, int64_t count, void *array);

/* ---- primes ---- */

/* Whether value is prime; exact for all values below 2^63. */
bool is_prime(uint64_t value);

/* Finds the `count` largest primes of exactly `bits` bits (2 to 63) that are 1 modulo `step`, the
 * largest first. Returns false if there are fewer. */
bool find_primes(uint32_t bits, uint64_t step, uint32_t count, uint64_t *primes);

/* Returns the `count` lowest bits of value in reverse order. */
uint64_t reverse_bits(uint64_t value, uint32_t count);

#endif
