#include "tools/primes.h"

#include <stddef.h>

__extension__ typedef unsigned __int128 uint128;

/* x, y in [0, q) */
static uint64_t multiply(uint64_t x, uint64_t y, uint64_t q)
{
    return (uint64_t)((uint128)x * y % q);
}

/* base in [0, q) */
static uint64_t power(uint64_t base, uint64_t exponent, uint64_t q)
{
    uint64_t result = 1 % q;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply(result, base, q);
        base = multiply(base, base, q);
    }
    return result;
}

/* The Miller-Rabin test of an odd q > 40 with one base in [2, q). False proves that q is
 * composite. */
static bool passes(uint64_t q, uint64_t base)
{
    uint64_t odd = q - 1;
    uint32_t twos = 0;
    for (; odd % 2 == 0; odd /= 2)
        twos++;
    uint64_t x = power(base, odd, q);
    if (x == 1 || x == q - 1)
        return true;
    while (--twos > 0) {
        x = multiply(x, x, q);
        if (x == q - 1)
            return true;
    }
    return false;
}

bool is_prime(uint64_t value)
{
    /* No composite number below 3.3e24 passes with all of these bases (Sorenson and Webster,
     * 2015). */
    static const uint64_t bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        if (value % bases[i] == 0)
            return value == bases[i];
    if (value < 2)
        return false;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        if (!passes(value, bases[i]))
            return false;
    return true;
}

bool find_primes(uint32_t bits, uint64_t step, uint32_t count, uint64_t *primes)
{
    uint64_t least = (uint64_t)1 << (bits - 1), most = 2 * (least - 1) + 1, found = 0;
    for (uint64_t q = (most - 1) / step * step + 1; found < count && q >= least && q > step;
         q -= step)
        if (is_prime(q))
            primes[found++] = q;
    return found == count;
}

uint64_t reverse_bits(uint64_t value, uint32_t count)
{
    uint64_t result = 0;
    for (uint32_t i = 0; i < count; i++)
        result |= (value >> i & 1) << (count - 1 - i);
    return result;
}
