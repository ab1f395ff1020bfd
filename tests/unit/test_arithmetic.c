/*
 * cl/base/arithmetic.h, compiled for the host, against 128-bit integers: small moduli exhaustively,
 * edges of moduli and values in all combinations, random ones from a printed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cl/base/base.h"
#include "helper_words.h"
#include "tools/random.h"

/* OpenCL C compilers do not mind a truth value in unsigned arithmetic. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "cl/base/arithmetic.h"
#pragma GCC diagnostic pop

/* ---- values ---- */

enum { ROUNDS = 200000 };

static const uint64_t seed = 0x4ea1c1;

static ulong any_modulus(struct random *state)
{
    ulong q = random_word(state) >> 1;
    return q ? q : 1;
}

static const ulong edge_moduli[] = {
    1,
    2,
    3,
    4,
    5,
    255,
    256,
    ((ulong)1 << 31) - 1,
    (ulong)1 << 31,
    ((ulong)1 << 31) + 1,
    ((ulong)1 << 32) - 1,
    (ulong)1 << 32,
    ((ulong)1 << 32) + 1,
    ((ulong)1 << 62) - 1,
    (ulong)1 << 62,
    ((ulong)1 << 62) + 1,
    ((ulong)1 << 63) - 25, /* a prime */
    ((ulong)1 << 63) - 2,
    ((ulong)1 << 63) - 1,
};

enum { EDGE_MODULI = sizeof edge_moduli / sizeof *edge_moduli, EDGE_VALUES = 18 };

static void edge_values(ulong q, ulong values[EDGE_VALUES])
{
    const ulong list[EDGE_VALUES] = {
        0,
        1,
        2,
        q - 1,
        q,
        q + 1,
        2 * q - 1,
        2 * q,
        q / 2,
        ((ulong)1 << 32) - 1,
        (ulong)1 << 32,
        ((ulong)1 << 63) - 1,
        (ulong)1 << 63, /* INT64_MIN */
        ((ulong)1 << 63) + 1,
        0 - q,
        0 - q - 1,
        ~(ulong)0 - 1,
        ~(ulong)0,
    };
    for (int i = 0; i < EDGE_VALUES; i++)
        values[i] = list[i];
}

/* ---- one check of everything for a modulus and two values ---- */

#define CHECK(actual, expected)                                                            \
    do {                                                                                   \
        ulong actual_ = (actual), expected_ = (expected);                                  \
        if (actual_ != expected_)                                                          \
            fail_msg("%s is %#lx, not %#lx, for q %#lx, a %#lx, b %#lx", #actual, actual_, \
                     expected_, q, a, b);                                                  \
    } while (0)

static ulong floor_mod(int128 value, ulong q)
{
    int128 rest = value % (int128)q;
    return (ulong)(rest < 0 ? rest + (int128)q : rest);
}

static void check_modulus(ulong q)
{
    ulong a = 0, b = 0;
    struct modulus m = make_modulus(q);
    CHECK(m.value, q);
    CHECK(m.shift, (ulong)__builtin_clzl(q));
    CHECK(m.normalized, q << m.shift);
    /* floor((2^128 - 1) / normalized) - 2^64 */
    CHECK(m.reciprocal, (ulong)(~(uint128)0 / m.normalized - ((uint128)1 << 64)));
}

static void check_pair(struct modulus m, ulong a, ulong b)
{
    ulong q = m.value, a_rest = a % q, b_rest = b % q, rest;
    CHECK(reduce(a, m), a_rest);
    CHECK(reduce_signed((long)a, m), floor_mod((long)a, q));
    CHECK(magnitude((long)a), (ulong)((long)a < 0 ? -(int128)(long)a : (int128)(long)a));
    CHECK(multiply_mod(a_rest, b, m), (ulong)((uint128)a_rest * b % q));
    CHECK(add_mod(a_rest, b_rest, q), (ulong)(((uint128)a_rest + b_rest) % q));
    CHECK(subtract_mod(a_rest, b_rest, q), floor_mod((int128)a_rest - (int128)b_rest, q));
    CHECK(reduce_wide_below(a_rest, b, m), (ulong)(((uint128)a_rest << 64 | b) % q));

    struct twiddle w = make_twiddle(b_rest, m);
    CHECK(w.factor, b_rest);
    CHECK(w.quotient, (ulong)(((uint128)b_rest << 64) / q));
    CHECK(multiply_twiddle(a, w, q), (ulong)((uint128)a * b_rest % q));

    ulong high = a % m.normalized;
    uint128 dividend = (uint128)high << 64 | b;
    CHECK(divide_wide(high, b, m, &rest), (ulong)(dividend / m.normalized));
    CHECK(rest, (ulong)(dividend % m.normalized));
    CHECK(divide_slowly(high, b, m.normalized), (ulong)(dividend / m.normalized));
}

static void small_moduli(void **state)
{
    (void)state;
    for (ulong q = 1; q <= 40; q++) {
        struct modulus m = make_modulus(q);
        check_modulus(q);
        for (long a = -81; a <= 81; a++)
            for (long b = -81; b <= 81; b++)
                check_pair(m, (ulong)a, (ulong)b);
    }
}

static void edges(void **state)
{
    (void)state;
    for (int i = 0; i < EDGE_MODULI; i++) {
        struct modulus m = make_modulus(edge_moduli[i]);
        ulong values[EDGE_VALUES];
        check_modulus(edge_moduli[i]);
        edge_values(edge_moduli[i], values);
        for (int a = 0; a < EDGE_VALUES; a++)
            for (int b = 0; b < EDGE_VALUES; b++)
                check_pair(m, values[a], values[b]);
    }
}

/* A random value near an edge of a random modulus meets any value. */
static void random_pairs(void **state)
{
    (void)state;
    struct random random = {seed};
    print_message("seed %#lx\n", (unsigned long)seed);
    for (int round = 0; round < ROUNDS; round++) {
        ulong q = any_modulus(&random), values[EDGE_VALUES];
        struct modulus m = make_modulus(q);
        check_modulus(q);
        edge_values(q, values);
        ulong a = random_word(&random), b = random_word(&random);
        check_pair(m, a, b);
        check_pair(m, values[random_bits(&random) % EDGE_VALUES], b);
        check_pair(m, a, values[random_bits(&random) % EDGE_VALUES]);
    }
}

/* Divisors whose lower half is large beside a small upper one make a first guess of a digit wrong
 * most often; so do dividends just below a multiple. */
static void slow_division(void **state)
{
    (void)state;
    static const ulong low_halves[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    static const ulong high_halves[] = {0x80000000, 0x80000001, 0xc0000000, 0xfffffffe, 0xffffffff};
    struct random random = {seed};
    for (int h = 0; h < 5; h++)
        for (int l = 0; l < 6; l++) {
            ulong divisor = high_halves[h] << 32 | low_halves[l];
            for (int round = 0; round < 2000; round++) {
                ulong quotient = random_word(&random);
                ulong rest = round % 3 == 0   ? divisor - 1
                             : round % 3 == 1 ? 0
                                              : random_bits(&random) % divisor;
                uint128 dividend = (uint128)quotient * divisor + rest;
                ulong got = divide_slowly((ulong)(dividend >> 64), (ulong)dividend, divisor);
                if (got != quotient)
                    fail_msg("%#lx * %#lx + %#lx divided gives %#lx", quotient, divisor, rest, got);
            }
        }
}

/* ---- wide sums ---- */

/* high * 2^128 + low */
struct wide_reference {
    int128 high;
    uint128 low;
};

static void reference_add(struct wide_reference *sum, int128 value)
{
    uint128 before = sum->low;
    sum->low += (uint128)value;
    sum->high += (value < 0 ? -1 : 0) + (sum->low < before ? 1 : 0);
}

static ulong reference_mod(const struct wide_reference *sum, ulong q)
{
    ulong power = (ulong)(~(uint128)0 % q + 1) % q; /* 2^128 mod q */
    uint128 high = (uint128)floor_mod(sum->high, q) * power % q;
    return (ulong)((high + sum->low % q) % q);
}

static void check_sum(struct wide sum, const struct wide_reference *expected, ulong q)
{
    ulong a = 0, b = 0;
    CHECK(sum.low, (ulong)expected->low);
    CHECK(sum.middle, (ulong)(expected->low >> 64));
    CHECK((ulong)sum.high, (ulong)expected->high);
    CHECK(wide_reduce(sum, make_modulus(q)), reference_mod(expected, q));
}

static long random_factor(struct random *random)
{
    static const long extremes[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, -1, 0, 1};
    uint64_t how = random_bits(random);
    return how % 2 ? extremes[how / 2 % 6] : (long)random_word(random);
}

/* Sums of products that carry into all three words and go up and down through 0. */
static void wide_sums(void **state)
{
    (void)state;
    struct random random = {seed};
    for (int round = 0; round < 2000; round++) {
        struct wide sum = wide_zero();
        struct wide_reference expected = {0, 0};
        ulong q = round < EDGE_MODULI ? edge_moduli[round] : any_modulus(&random);
        bool grows = round % 2 == 0; /* all products of one sign */
        for (int i = 0; i < 60; i++) {
            long a = grows ? INT64_MIN : random_factor(&random);
            long b = grows ? (round % 4 ? INT64_MAX : INT64_MIN) : random_factor(&random);
            sum = wide_add_product(sum, a, b);
            reference_add(&expected, (int128)a * b);
            check_sum(sum, &expected, q);
            long c = random_factor(&random);
            sum = wide_add(sum, c);
            reference_add(&expected, c);
            check_sum(sum, &expected, q);
            if (i % 3 == 0) { /* twice as much, of both signs, or nothing */
                struct wide more = i % 2 ? sum : wide_add_product(wide_zero(), a, b);
                expected.low += (uint128)more.middle << 64 | more.low;
                expected.high +=
                    more.high + (expected.low < ((uint128)more.middle << 64 | more.low));
                sum = wide_join(sum, more);
                check_sum(sum, &expected, q);
            }
        }
    }
}

/* Sums as large as 2^65 products of int64 make them, near the edges of their words. */
static void wide_remainders(void **state)
{
    (void)state;
    static const ulong words[] = {0, 1, (ulong)1 << 63, ~(ulong)0, ~(ulong)0 - 1};
    static const long highs[] = {0, 1, -1, -2, 2, 0x7fffffffffffffff, -0x7fffffffffffffff};
    struct random random = {seed};
    for (int round = 0; round < ROUNDS; round++) {
        struct wide sum = {
            .low = words[round % 5], .middle = words[round / 5 % 5], .high = highs[round / 25 % 7]};
        if (round >= 25 * 7 * EDGE_MODULI) {
            sum.low = random_word(&random);
            sum.middle = random_word(&random);
            sum.high = (long)random_word(&random);
            if (sum.high == INT64_MIN)
                sum.high = 0;
        }
        ulong q = round < 25 * 7 * EDGE_MODULI ? edge_moduli[round / 175] : any_modulus(&random);
        struct wide_reference expected = {sum.high, (uint128)sum.middle << 64 | sum.low};
        check_sum(sum, &expected, q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_moduli), cmocka_unit_test(edges),
        cmocka_unit_test(random_pairs), cmocka_unit_test(slow_division),
        cmocka_unit_test(wide_sums),    cmocka_unit_test(wide_remainders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
