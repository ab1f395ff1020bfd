/* Exact modular arithmetic on one value: every function states the ranges it is exact for. */
#ifndef HEALCL_REFERENCE_ARITHMETIC_H
#define HEALCL_REFERENCE_ARITHMETIC_H

#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* ---- any value, any modulus q in [1, 2^63) ---- */

/* The remainder with the sign of value, in (-q, q): C's %. */
static inline int64_t c_remainder(int128 value, int64_t q)
{
    return (int64_t)(value % q);
}

/* The remainder in [0, q). */
static inline uint64_t floor_remainder(int128 value, int64_t q)
{
    int64_t remainder = c_remainder(value, q);
    return (uint64_t)(remainder < 0 ? remainder + q : remainder);
}

/* ---- residues: x, y in [0, q), q in [1, 2^63) ---- */

static inline uint64_t mod_add(uint64_t x, uint64_t y, uint64_t q)
{
    uint64_t sum = x + y; /* in [0, 2q), below 2^64 */
    return sum >= q ? sum - q : sum;
}

static inline uint64_t mod_subtract(uint64_t x, uint64_t y, uint64_t q)
{
    return x >= y ? x - y : x + (q - y);
}

static inline uint64_t mod_multiply(uint64_t x, uint64_t y, uint64_t q)
{
    return (uint64_t)((uint128)x * y % q);
}

/*
 * A residue w that multiplies many values, with Shoup's quotient floor(w * 2^64 / q). See David
 * Harvey, "Faster arithmetic for number-theoretic transforms", 2014.
 */
struct twiddle {
    uint64_t value, quotient;
};

static inline struct twiddle twiddle_init(uint64_t w, uint64_t q)
{
    return (struct twiddle){.value = w, .quotient = (uint64_t)(((uint128)w << 64) / q)};
}

/* x * w mod q, in [0, q); x may be any 64-bit value. */
static inline uint64_t twiddle_multiply(uint64_t x, struct twiddle w, uint64_t q)
{
    /* The true quotient floor(x*w / q) equals this one or this one plus 1. */
    uint64_t quotient = (uint64_t)((uint128)x * w.quotient >> 64);
    uint64_t product = x * w.value - quotient * q; /* in [0, 2q), below 2^64 */
    return product >= q ? product - q : product;
}

/* The y in [0, q) with x*y = 1 mod q, for x in [0, q) coprime to q; 0 for q = 1. */
static inline uint64_t mod_inverse(uint64_t x, int64_t q)
{
    /* Extended Euclid: r[i] = c[i] * x mod q throughout, |c[i]| <= q. */
    int64_t r[2] = {q, (int64_t)x}, c[2] = {0, 1};
    while (r[1] != 0) {
        int64_t quotient = r[0] / r[1];
        int64_t next_r = r[0] - quotient * r[1];
        int64_t next_c = c[0] - quotient * c[1];
        r[0] = r[1], r[1] = next_r;
        c[0] = c[1], c[1] = next_c;
    }
    return floor_remainder(c[0], q);
}

#endif
