/*
 * The arithmetic of cl/base/lanes.cl, cl/base/divisor.cl, cl/vectors.cl and cl/sum,
 * compiled for the host with vectors of one lane, against 128-bit integers: ranges and values,
 * where quotients are estimated too small most.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cl/base/base.h"
#include "helper_words.h"
#include "tools/random.h"

/* ---- functions of OpenCL C that C does not have ---- */

typedef unsigned int uint;

/* One lane. A comparison is all ones or zeros there, but a truth value here: select takes both. */
typedef ulong ulong8;
typedef long long8;
typedef double double8;

struct halves { /* the upper half of each lane, twice */
    ulong s1133557799bbddff;
};

#define as_ulong8(x) ((ulong)(x))
#define as_long8(x) ((long)(x))
#define as_uint16(x) ((struct halves){(x) >> 32 << 32 | (x) >> 32})
#define select(a, b, choice) ((choice) ? (b) : (a))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define cl_khr_fp64
#define convert_double8(x) ((double)(x))
#define convert_ulong8(x) ((ulong)(x))
#define UNROLL /* loops whose lengths are known in kernels only */
#define convert_char8(x) ((x) ? ~(ulong)0 : (ulong)0)
#define as_ulong(x) _Generic((x), double : double_bits, ulong : same)(x)

static ulong double_bits(double x)
{
    ulong bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double as_double8(ulong bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static ulong same(ulong x)
{
    return x;
}

/* Stand-ins for the arithmetic's surroundings; the kernels are compiled, and not run. */
#define ELEMENT long
#define KERNEL static void
#define SPACE(name) struct space name
#define TAKE_SPACE(name)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WIDEN(x) ((long)(x))
#define WIDEN_LANES(count, x) ((long)(x))
#define global
#define AT(name, i) (name[i])
#define POSITION(space, span, k, i) ((span).position[k] + (long)(i) + (long)(space).rank)
#define convert_long8(x) ((long)(x))
#define vload8(i, from) ((from)[i])
#define vstore8(x, i, to) ((to)[i] = (x))

#define prefetch(from, count) (void)(from)

static void transpose_8(ulong *a)
{
    (void)a;
}

struct span {
    ulong linear, length;
    long index[SPACE_AXES], position[SPACE_OPERANDS];
};

static struct span first_span(const struct space *space)
{
    return (struct span){.length = space->end};
}

static void next_span(const struct space *space, struct span *span)
{
    span->length = space->first;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wpedantic" /* __int128 */
#include "cl/base/arithmetic.h"
#include "cl/vectors.cl"
/* after its dependencies */
#include "cl/sum/product_columns.cl"
#pragma GCC diagnostic pop

/* ---- values ---- */

static const uint64_t seed = 0x1a9e5;

/* A number of exactly s bits, at either end of its range or anywhere. */
static ulong modulus_of_bits(int s, struct random *state)
{
    ulong low = (ulong)1 << (s - 1), inside = random_word(state) & (low - 1);
    switch (random_bits(state) % 4) {
    case 0: return low + (inside & 15 & (low - 1));
    case 1: return low + (low - 1) - (inside & 15 & (low - 1));
    default: return low + inside;
    }
}

/* Bits of a modulus: of any one, and of a lazy one, see cl/base/lanes.cl. */
enum { S_MIN = 1, S_MAX = 63, S_MAX_LAZY = 62 };

static struct lane_divisor divisor_of(ulong q)
{
    return make_divisor(make_modulus(q));
}

#define CHECK(actual, expected)                                                            \
    do {                                                                                   \
        ulong actual_ = (ulong)(actual), expected_ = (ulong)(expected);                    \
        if (actual_ != expected_)                                                          \
            fail_msg("%s is %#lx, not %#lx, for q %#lx, a %#lx, b %#lx", #actual, actual_, \
                     expected_, q, (ulong)a, (ulong)b);                                    \
    } while (0)

static long c_remainder(int128 value, ulong q)
{
    return (long)(value % (int128)q);
}

/* x times a twiddle, for any x: in [0, 2q). */
static void check_lazy(ulong q, ulong x, ulong factor)
{
    ulong a = x, b = factor % q;
    struct lane_modulus m = {q, 2 * q};
    ulong quotient = (ulong)(((uint128)b << 64) / q);
    ulong product = multiply_lazy(x, b, quotient, m);
    assert_true(product < 2 * q);
    CHECK(product % q, (uint128)x * b % q);
    CHECK(reduce_lazy(product, m), (uint128)x * b % q);
    CHECK(multiply_high(x, factor), (uint128)x * factor >> 64);
    /* Numbers below 4q. */
    ulong wide = x % (4 * q);
    assert_true(halve_range(wide, m) < 2 * q);
    CHECK(halve_range(wide, m) % q, wide % q);
    CHECK(reduce_lazy(wide, m), wide % q);
}

/* x times 2^31 or 2^32 and a word more, for x that has been shrunk as little as that may be. */
static void check_append(struct lane_divisor p, ulong x, ulong word)
{
    ulong q = p.q, a = x, b = word;
    ulong most = q + q / 256 + (1 << 17);
    x = x % most;
    word = word > (ulong)1 << 63 ? word >> 1 : word;
    for (uint shift = 31; shift <= 32; shift++) {
        ulong rest = lane_append(x, shift, word, p);
        assert_true(rest < most);
        CHECK(rest % q, (((uint128)x << shift) + word) % q);
    }
}

/* Factors with as many bits as q, which may be above it; one bit more is reported. */
static void check_short(struct lane_divisor p, long a, long b)
{
    ulong q = p.q, last = (ulong)1 << (63 - p.shift), bits = last | (last - 1);
    ulong c = a < 0 ? bits - ((ulong)a & 7 & bits) : (ulong)a & bits, d = (ulong)b & bits;
    ulong product = (ulong)((uint128)c * d % q);
    CHECK(are_short((long)c, (long)d, p), 1);
    CHECK(multiply_by_halves(c, d, p), product);
    CHECK(multiply_by_mul_hi(c, d, p), product);
    CHECK(are_short((long)(c | last << 1), (long)d, p), 0);
    CHECK(are_short((long)c, (long)(d | (ulong)1 << 63), p), 0);
}

static void check_operations(struct lane_divisor p, long a, long b)
{
    ulong q = p.q;
    ulong size = a < 0 ? 0 - (ulong)a : (ulong)a;
    CHECK(lane_magnitude(a), size);
    ulong x = (ulong)a, shrunk = lane_shrink(x, p);
    assert_true(shrunk < q + (1 << 16));
    CHECK(shrunk % q, x % q);
    CHECK(lane_reduce(x, p), x % q);
    CHECK(lane_multiply(shrunk, lane_factor(size, p), p), (uint128)shrunk * size % q);
    CHECK(multiply_by_doubles(shrunk, size, p), (uint128)shrunk * size % q);
    ulong c = x % q, d = size % q, product = (ulong)((uint128)c * d % q);
    CHECK(multiply_exactly(c, size, p), (uint128)c * size % q);
    CHECK(are_short((long)c, (long)d, p), q >> 62 == 0);
    if (q >> 62 == 0) {
        CHECK(multiply_by_halves(c, d, p), product);
        CHECK(multiply_by_mul_hi(c, d, p), product);
        check_short(p, a, b);
    }
    CHECK(reduce_by_integers(x, p), x % q);
    check_append(p, x, (ulong)b);
    CHECK(lanes_modmul(a, b, p), c_remainder((int128)a * b, q));
    CHECK(lanes_modsum(a, b, p), c_remainder((int128)a + b, q));
    CHECK(lanes_mod(a, b, p), c_remainder(a, q));
    long rest = c_remainder(-(int128)a, q);
    CHECK(lanes_modneg(a, b, p), rest < 0 ? rest + (long)q : rest);
}

static void products_with_twiddles(void **state)
{
    (void)state;
    struct random random = {seed};
    print_message("seed %#lx\n", (unsigned long)seed);
    for (int s = 2; s <= S_MAX_LAZY; s++)
        for (int round = 0; round < 20000; round++) {
            ulong q = modulus_of_bits(s, &random), x = random_word(&random);
            ulong factor = random_word(&random);
            if (round % 8 == 0)
                x = ~(ulong)0 - x % 4;
            if (round % 4 == 0)
                factor = q - 1 - factor % 4 % q;
            check_lazy(q, x, factor);
        }
}

static void operations(void **state)
{
    (void)state;
    struct random random = {seed + 1};
    for (int s = S_MIN; s <= S_MAX; s++)
        for (int round = 0; round < 10000; round++) {
            ulong q = modulus_of_bits(s, &random);
            struct lane_divisor p = divisor_of(q);
            const long edges[] = {0,        1,           -1,        (long)q - 1, (long)q,
                                  -(long)q, 1 - (long)q, INT64_MAX, INT64_MIN,   INT64_MIN + 1};
            long a = (long)random_word(&random), b = (long)random_word(&random);
            check_operations(p, a, b);
            check_operations(p, (long)((ulong)a % q), (long)((ulong)b % q));
            check_operations(p, edges[random_bits(&random) % 10], b);
            check_operations(p, edges[random_bits(&random) % 10], edges[random_bits(&random) % 10]);
        }
}

/* Quotients are too small most where the product is just below a multiple of q: the factors are
 * chosen so. */
static void worst_products(void **state)
{
    (void)state;
    struct random random = {seed + 2};
    for (int s = S_MIN; s <= S_MAX; s++)
        for (int round = 0; round < 3000; round++) {
            ulong q = modulus_of_bits(s, &random) | 1;
            struct lane_divisor p = divisor_of(q);
            /* b = -(small) / a mod q by Euclid: a*b = -small mod q. */
            ulong a = random_bits(&random) % q, rest[2] = {q, a};
            int128 factor[2] = {0, 1};
            while (rest[1] != 0) {
                ulong quotient = rest[0] / rest[1], next = rest[0] % rest[1];
                int128 next_factor = factor[0] - (int128)quotient * factor[1];
                rest[0] = rest[1], rest[1] = next;
                factor[0] = factor[1], factor[1] = next_factor;
            }
            if (rest[0] != 1)
                continue;
            int128 small = (int128)(random_bits(&random) % 8) - 4;
            int128 wanted = factor[0] * small % (int128)q;
            ulong b = (ulong)(wanted < 0 ? wanted + (int128)q : wanted);
            /* The largest representative below 2^63 makes the longest product. */
            b += (((ulong)1 << 63) - 1 - b) / q * q;
            check_operations(p, (long)a, (long)b);
            if (s <= S_MAX_LAZY)
                check_lazy(q, b, a);
        }
}

/* Inverses must be 1/q, computed by integers, less a part between 2^-50 and 2^-49 of it. */
static void inverses(void **state)
{
    (void)state;
    struct random random = {seed + 3};
    for (int s = S_MIN; s <= S_MAX; s++)
        for (int round = 0; round < 20000; round++) {
            ulong q = modulus_of_bits(s, &random), a = 0, b = 0;
            /* An integer, since the inverse has 53 bits and is above 2^(-1 - s). */
            uint128 scaled = (uint128)ldexp(as_double8(make_inverse(q)), 53 + s);
            uint128 one = (uint128)1 << (53 + s), part = one - scaled * q;
            CHECK(part > one >> 50 && part < one >> 49, 1);
        }
}

/* Sums of products, and of numbers of either sign, at the ends of their ranges and anywhere. */
static void sums(void **state)
{
    (void)state;
    struct random random = {seed + 4};
    const ulong most = ((ulong)1 << 62) - 1;
    for (int s = S_MIN; s <= S_MAX; s++)
        for (int round = 0; round < 2000; round++) {
            ulong q = modulus_of_bits(s, &random), a = 0, b = 0;
            struct lane_divisor p = divisor_of(q);
            struct lane_products products;
            struct lane_sum sum = {0, 0};
            uint128 rest = 0;
            int128 exact = 0;
            lane_products_clear(&products);
            for (int times = 0; times < 50; times++) {
                ulong x[TERMS], y[TERMS];
                long numbers[TERMS];
                bool largest = round % 4 == 0;
                uint terms = times % 3 == 0 ? 1 : TERMS;
                for (uint i = 0; i < terms; i++) {
                    x[i] = largest ? most : random_word(&random) & most;
                    y[i] = largest ? most : random_word(&random) & most;
                    numbers[i] = (long)random_word(&random);
                    if (round % 4 < 2)
                        numbers[i] = round % 4 == 0 ? INT64_MIN : INT64_MAX;
                    rest = (rest + (uint128)x[i] * y[i] % q) % q;
                    exact += numbers[i];
                }
                lane_products_add(&products, x, y, terms);
                for (uint i = 0; i < terms; i++)
                    add_rows(&sum, 1, &numbers[i], 1, 1);
            }
            CHECK(lane_products_reduce(&products, most, p), (rest + most % q) % q);
            int128 remainder = exact % (int128)q;
            CHECK(lane_sum_reduce(&sum, p), remainder < 0 ? remainder + (int128)q : remainder);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_twiddles),
        cmocka_unit_test(operations),
        cmocka_unit_test(worst_products),
        cmocka_unit_test(inverses),
        cmocka_unit_test(sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
