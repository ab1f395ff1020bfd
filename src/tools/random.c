#include "tools/random.h"

#include <string.h>

#include "reference/arithmetic.h"

uint64_t random_bits(struct random *random)
{
    /* splitmix64 (Steele, Lea and Flood, 2014) */
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(random) % ((uint64_t)high - (uint64_t)low + 1));
}

bool random_once_in(struct random *random, int64_t times)
{
    return random_between(random, 1, times) == 1;
}

int64_t random_largest(enum dtype dtype)
{
    return INT64_MAX >> (64 - 8 * dtype_size(dtype));
}

int64_t random_value(struct random *random, enum dtype dtype)
{
    const int64_t high = random_largest(dtype);
    const int64_t extremes[] = {-high - 1, high, 0, -1, 1, -high};
    uint64_t bits = random_bits(random);
    int64_t value = (int64_t)random_bits(random);
    if (bits % 8 < 2)
        return extremes[bits / 8 % 6];
    if (bits % 8 < 4)
        value >>= bits / 8 % 64;
    return dtype == DTYPE_INT8 ? (int8_t)value : dtype == DTYPE_INT32 ? (int32_t)value : value;
}

int64_t random_modulus(struct random *random, enum dtype dtype)
{
    int64_t high = random_largest(dtype);
    uint64_t bits = random_bits(random);
    int64_t value = (int64_t)(random_bits(random) >> 1) & high;
    int64_t power = (int64_t)1 << (bits / 64 % (8 * dtype_size(dtype) - 1));
    switch (bits % 8) {
    case 0: return high;
    case 1: return random_between(random, 1, 3);
    case 2: return power;
    case 3: return power > 1 ? power - 1 : 1;
    case 4: return power < high ? power + 1 : high;
    case 5: return (value >> (bits / 8 % 64)) + 1 > 0 ? (value >> (bits / 8 % 64)) % high + 1 : 1;
    default: return value % high + 1;
    }
}

static void swap(enum dtype dtype, void *array, int64_t i, int64_t j)
{
    int64_t value = dtype_load(dtype, array, i);
    dtype_store(dtype, array, i, dtype_load(dtype, array, j));
    dtype_store(dtype, array, j, value);
}

void random_shuffle(struct random *random, enum dtype dtype, int64_t count, void *array)
{
    for (int64_t i = count - 1; i > 0; i--)
        swap(dtype, array, i, random_between(random, 0, i));
}

void random_fill_permutation(struct random *random, enum dtype dtype, int64_t count, void *array)
{
    bool is_power = count > 0 && (count & (count - 1)) == 0;
    int64_t kind = random_between(random, 0, 7); /* 0, 1: the identity; 2 to 4: bit reversal */
    for (int64_t i = 0; i < count; i++)
        dtype_store(dtype, array, i, i);
    if (kind >= 2 && kind <= 4 && is_power) {
        uint32_t bits = (uint32_t)__builtin_ctzll((uint64_t)count);
        for (int64_t i = 0; i < count; i++)
            dtype_store(dtype, array, i, (int64_t)reverse_bits((uint64_t)i, bits));
    } else if (kind >= 5 || !is_power) {
        random_shuffle(random, dtype, count, array);
    }
    if (count > 1 && (kind == 1 || kind == 4)) { /* except for two elements, often the last ones */
        bool last = random_once_in(random, 2);
        swap(dtype, array, last ? count - 1 : random_between(random, 0, count - 1),
             last ? count - 2 : random_between(random, 0, count - 1));
    }
}

/* ---------------------------------------------------------------- primes */

/* base in [0, q) */
static uint64_t power(uint64_t base, uint64_t exponent, uint64_t q)
{
    uint64_t result = 1 % q;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = mod_multiply(result, base, q);
        base = mod_multiply(base, base, q);
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
        x = mod_multiply(x, x, q);
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

/* ---------------------------------------------------------------- coprime moduli */

static void find_coprimes(enum dtype dtype, uint64_t list[COPRIME_MAX])
{
    if (dtype == DTYPE_INT8) /* the dtype has too few values; only for calls to be refused */
        dtype = DTYPE_INT64;
    /* Bit lengths from 7 to the largest; then the largest primes. */
    uint32_t bits = (uint32_t)(8 * dtype_size(dtype)) - 1, next = 0;
    list[next++] = (uint64_t)1 << (bits - 1);
    for (uint32_t length = 7; length < bits; length += 5)
        find_primes(length, 2, 1, &list[next++]);
    find_primes(bits, 2, COPRIME_MAX - next, &list[next]);
}

void random_fill_coprime(struct random *random, enum dtype dtype, int64_t count, void *array)
{
    static uint64_t lists[DTYPE_COUNT][COPRIME_MAX];
    uint64_t order[COPRIME_MAX];
    if (lists[dtype][0] == 0)
        find_coprimes(dtype, lists[dtype]);
    memcpy(order, lists[dtype], sizeof order);
    random_shuffle(random, DTYPE_INT64, COPRIME_MAX, order);
    for (int64_t i = 0; i < count; i++)
        dtype_store(dtype, array, i, (int64_t)order[i]);
}
