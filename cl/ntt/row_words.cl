/*
 * The arithmetic of rows.cl. A row's residues are words of WORD_BITS bits, and WIDTH words make a
 * vector. Residues are lazy, with a BOUND whose double fits a word: 2q for q < 2^62 in words of 64
 * bits, q for q < 2^31 in words of 32.
 */
#include "../base/lanes.cl"

#include "../base/transpose.cl"

#if WORD_BITS == 64

typedef ulong word;
typedef ulong8 words;
enum { WIDTH = 8, MODULUS_BITS = 62 };

#define word_modulus lane_modulus
#define BOUND twice
#define multiply_words multiply_lazy
#define subtract_words subtract_once

/* [0, 2 BOUND] to [0, q] */
static inline words reduce_words(words x, struct word_modulus m)
{
    return reduce_lazy(x, m);
}

static inline struct word_modulus make_word_modulus(ulong q)
{
    struct word_modulus m = {(words)(q), (words)(2 * q)};
    return m;
}

/* Converts a quotient by 2^64 to a quotient by 2^WORD_BITS. */
static inline word word_quotient(ulong quotient)
{
    return quotient;
}

#define transpose_words transpose_8

#elif WORD_BITS == 32

typedef uint word;
typedef uint16 words;
enum { WIDTH = 16, MODULUS_BITS = 31 };

/* A modulus for all lanes. */
struct word_modulus {
    uint16 q;
};

#define BOUND q
#define subtract_words(x, y) min(x, (x) - (y))

/* x*w mod q in [0, q) for any x; w in [0, q) with its quotient, q < 2^31. */
static inline words multiply_words(words x, words factor, words quotient, struct word_modulus m)
{
    ulong8 even = multiply_halves(as_ulong8(x), as_ulong8(quotient));
    ulong8 odd = multiply_halves(as_ulong8(x) >> 32, as_ulong8(quotient) >> 32);
    words high = as_uint16((even >> 32) | (odd & 0xffffffff00000000UL));
    words rest = x * factor - high * m.q; /* in [0, 2q) */
    CHECK_LANES_BELOW(rest, 2 * m.q);
    return min(rest, rest - m.q);
}

/* [0, 2 BOUND) to [0, q) */
static inline words reduce_words(words x, struct word_modulus m)
{
    CHECK_LANES_BELOW(x, 2 * m.BOUND);
    return min(x, x - m.q);
}

static inline struct word_modulus make_word_modulus(ulong q)
{
    struct word_modulus m = {(words)((uint)q)};
    return m;
}

/* Converts a quotient by 2^64 to a quotient by 2^WORD_BITS. */
static inline word word_quotient(ulong quotient)
{
    return (word)(quotient >> 32);
}

/* a[i].lane[j] ↔ a[j].lane[i] */
static inline void transpose_words(words *a)
{
    words b[WIDTH];
    UNROLL for (uint i = 0; i < WIDTH; i += 2) {
        words u = a[i], v = a[i + 1];
        b[i] = (words)(u.s0, v.s0, u.s2, v.s2, u.s4, v.s4, u.s6, v.s6, u.s8, v.s8, u.sa, v.sa,
                       u.sc, v.sc, u.se, v.se);
        b[i + 1] = (words)(u.s1, v.s1, u.s3, v.s3, u.s5, v.s5, u.s7, v.s7, u.s9, v.s9, u.sb, v.sb,
                           u.sd, v.sd, u.sf, v.sf);
    }
    UNROLL for (uint i = 0; i < WIDTH; i++) { /* swap pairs of lanes, of i and i + 2 */
        words u = b[i & ~2u], v = b[i | 2];
        a[i] = i & 2 ? (words)(u.s23, v.s23, u.s67, v.s67, u.sab, v.sab, u.sef, v.sef)
                     : (words)(u.s01, v.s01, u.s45, v.s45, u.s89, v.s89, u.scd, v.scd);
    }
    UNROLL for (uint i = 0; i < WIDTH; i++) {
        words u = a[i & ~4u], v = a[i | 4];
        b[i] = i & 4 ? (words)(u.s4567, v.s4567, u.scdef, v.scdef)
                     : (words)(u.s0123, v.s0123, u.s89ab, v.s89ab);
    }
    UNROLL for (uint i = 0; i < WIDTH; i++) {
        words u = b[i & ~8u], v = b[i | 8];
        a[i] = i & 8 ? (words)(u.hi, v.hi) : (words)(u.lo, v.lo);
    }
}

#else
#error "WORD_BITS must be 32 or 64"
#endif

/* For addresses that are multiples of 64 bytes. (Some compilers use two stores for vstore8.) */
#define LOAD_WORDS(from) (*(global const words *)(from))
#define STORE_WORDS(value, to) (*(global words *)(to) = (value))
#define LOAD_LANES(from) (*(const words *)(from))
#define STORE_LANES(value, to) (*(words *)(to) = (value))

/* [0, 2 BOUND) to [0, BOUND), and 2 BOUND to BOUND */
static inline words halve_words(words x, struct word_modulus m)
{
    return subtract_words(x, m.BOUND);
}

/* (x, y) ← (x + y*w, x - y*w), all in [0, 2 BOUND) */
static inline void forward_butterfly(words *x, words *y, words factor, words quotient,
                                     struct word_modulus m)
{
    words a = halve_words(*x, m), b = multiply_words(*y, factor, quotient, m);
    CHECK_LANES_BELOW(b, m.BOUND);
    *x = a + b;
    *y = a + m.BOUND - b;
}

/* (x, y) ← (x + y, (x - y)*w), all in [0, BOUND] */
static inline void inverse_butterfly(words *x, words *y, words factor, words quotient,
                                     struct word_modulus m)
{
    words a = *x, b = *y;
    CHECK_LANES_BELOW(a, m.BOUND + 1);
    CHECK_LANES_BELOW(b, m.BOUND + 1);
    *x = halve_words(a + b, m);
    *y = multiply_words(a + m.BOUND - b, factor, quotient, m);
}
