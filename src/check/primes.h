/* Moduli and roots for transforms: primes q with q = 1 mod 2n, and primitive 2n-th roots. */
#ifndef HEALCL_CHECK_PRIMES_H
#define HEALCL_CHECK_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether value is prime; exact for all values below 2^63. */
bool is_prime(uint64_t value);

/* The count largest primes of exactly bits bits (2 to 63) that are 1 modulo step, the largest
 * first. Returns false where there are fewer. */
bool find_primes(uint32_t bits, uint64_t step, uint32_t count, uint64_t *primes);

/* A primitive 2n-th root of unity modulo a prime q = 1 mod 2n: root^n = -1. n is a power of two. */
uint64_t primitive_root(uint64_t q, uint64_t n);

/* The inverse of value in [1, q) modulo a prime q. */
uint64_t inverse_modulo(uint64_t value, uint64_t q);

/* The count lowest bits of value in reverse order. */
uint64_t reverse_bits(uint64_t value, uint32_t count);

/* table[i] = root^bitreverse(i) mod q for i in [0, n), n a power of two. */
void root_table(uint64_t root, uint64_t q, uint64_t n, int64_t *table);

#endif
