/*
 * The inner loops of kernels for CPUs alone, which scripts/cpu_code.py has compiled for many CPUs and
 * measures here. Behind cl/base/base.h and cl/base/arithmetic.h.
 *
 * WORD_BITS, MULTIPLY: as the kernels have them.
 */

/* A driver's library functions, in the compiler's own words. */
#define min(a, b) ((a) < (b) ? (a) : (b))
#define select(a, b, c) (as_long8(c) < 0 ? (b) : (a))
#define convert_char8(x) __builtin_convertvector(x, char8)
#define convert_ulong4(x) __builtin_convertvector(x, ulong4)
#define convert_ulong8(x) __builtin_convertvector(x, ulong8)
#define convert_double8(x) __builtin_convertvector(x, double8)

#include "ntt/row_words.cl"

#include "base/divisor.cl"

/* Trips over count vectors; what llvm-mca reads is one of them. */
#define LOOP(name, ...)                                                                         \
    void name(global words *x, global words *y, global const struct lane_divisor *table, \
              ulong count)                                                               \
    {                                                                                    \
        struct lane_divisor p = *table;                                                  \
        _Pragma("nounroll") for (ulong i = 0; i < count; i++)                            \
        {                                                                                \
            __asm__ volatile("# LLVM-MCA-BEGIN " #name ::: "memory");             \
            __VA_ARGS__;                                                                 \
            __asm__ volatile("# LLVM-MCA-END" ::: "memory");                      \
        }                                                                                \
    }

/* A butterfly loop has one factor throughout, like most blocks of a transform. */
#define BUTTERFLY(name, butterfly)                                                 \
    LOOP(name, struct word_modulus m = make_word_modulus(p.q.s0); words a = x[i];  \
         words b = y[i]; butterfly(&a, &b, as_words(p.reciprocal), as_words(p.shift), m); \
         x[i] = a; y[i] = b)

#if WORD_BITS == 64
#define as_words(x) (x)
BUTTERFLY(ntt, forward_butterfly)
BUTTERFLY(intt, inverse_butterfly)
LOOP(modmul_doubles, x[i] = multiply_by_doubles(x[i], y[i], p))
LOOP(modmul_halves, x[i] = multiply_by_halves(x[i], y[i], p))
LOOP(modmul_int128, x[i] = multiply_by_int128(x[i], y[i], p))
LOOP(modsum, x[i] = subtract_once(x[i] + y[i], p.q))
LOOP(mod, x[i] = lane_reduce(y[i], p))
#else
#define as_words(x) as_uint16(x)
BUTTERFLY(ntt_32, forward_butterfly)
BUTTERFLY(intt_32, inverse_butterfly)
#endif
