/* Primes to use as moduli of transforms: 1 modulo 2n. */
#ifndef HEALCL_TOOLS_PRIMES_H
#define HEALCL_TOOLS_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether value is prime; exact for all values below 2^63. */
bool is_prime(uint64_t value);

/* Finds the `count` largest primes of exactly `bits` bits (2 to 63) that are 1 modulo `step`, the
 * largest first. Returns false if there are fewer. */
bool find_primes(uint32_t bits, uint64_t step, uint32_t count, uint64_t *primes);

/* Returns the `count` lowest bits of value in reverse order. */
uint64_t reverse_bits(uint64_t value, uint32_t count);

#endif
