/*
 * Vectors of eight residues modulo q < 2^62, for devices with wide vectors. Little-endian devices
 * only. Residues are lazy: each function states their range.
 */

/* NOINLINE: functions that are compiled once. INLINE: functions that become a different loop, with
 * other constants, at every call. */
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline)) static inline

/* -D MULTIPLY: the way to multiply 64-bit numbers, one of those in geometry.h. The default is for
 * devices that multiply, compare and convert 64-bit vectors in few instructions. */
#ifndef MULTIPLY
#define MULTIPLY MULTIPLY_DOUBLES
#endif

/* Whether a comparison holds in all lanes. Compilers generate worse code for all(). */
static inline bool are_all(long8 comparison)
{
#if MULTIPLY == MULTIPLY_DOUBLES /* there, comparisons are masks with one bit for each lane */
    return as_ulong(convert_char8(comparison)) == ~(ulong)0;
#else
    long4 four = comparison.lo & comparison.hi;
    long2 two = four.lo & four.hi;
    return (two.s0 & two.s1) != 0;
#endif
}

/* x - y if it is not negative, else x. x - y is in [-2^63, 2^63): its sign shows which. */
static inline ulong8 subtract_once(ulong8 x, ulong8 y)
{
    ulong8 rest = x - y;
#if MULTIPLY == MULTIPLY_DOUBLES
    return min(x, rest);
#else
    return select(rest, x, as_ulong8(as_long8(rest) < 0));
#endif
}

/* A modulus with its double, for all lanes. */
struct lane_modulus {
    ulong8 q, twice;
};

#if defined __aarch64__ && defined __OPENCL_C_VERSION__
/* The lower halves of four lanes. NEON multiplies these, but LLVM (15 to 19) uses it only for
 * values that it sees being widened. If it sees where the halves come from, it takes the widening
 * for a mask. */
static inline uint4 lower_halves(ulong4 a)
{
    uint4 low = as_uint8(a).even;
    __asm__("" : "+w"(low));
    return low;
}

/* The product of the lower halves of each lane. */
static inline ulong8 multiply_halves(ulong8 a, ulong8 b)
{
    return (ulong8)(convert_ulong4(lower_halves(a.lo)) * convert_ulong4(lower_halves(b.lo)),
                    convert_ulong4(lower_halves(a.hi)) * convert_ulong4(lower_halves(b.hi)));
}
#else
/* The product of the lower halves of each lane. */
static inline ulong8 multiply_halves(ulong8 a, ulong8 b)
{
    return (a & 0xffffffffUL) * (b & 0xffffffffUL);
}
#endif

/*
 * x*w mod q in [0, 2q) for any x; w in [0, q) with its quotient, q < 2^62. The high word of
 * x*quotient is computed without the product of the lower halves, and without the carry of the
 * middle products. It is at most 2 too small, in addition to 1 for the exact high word. x*w -
 * high*q is thus in [0, 4q), and one conditional subtraction is enough.
 */
static inline ulong8 multiply_lazy(ulong8 x, ulong8 factor, ulong8 quotient, struct lane_modulus m)
{
    ulong8 x_high = as_ulong8(as_uint16(x).s1133557799bbddff), quotient_high = quotient >> 32;
    ulong8 high = multiply_halves(x_high, quotient_high) +
                  ((multiply_halves(x, quotient_high) >> 32) +
                   (multiply_halves(x_high, quotient) >> 32));
#if MULTIPLY == MULTIPLY_DOUBLES
    ulong8 rest = x * factor - high * m.q;
#else /* without 64-bit products: all terms multiplied by 2^32 are added up first */
    ulong8 lower = multiply_halves(x, factor) - multiply_halves(high, m.q);
    ulong8 upper = multiply_halves(x_high, factor) + multiply_halves(x, factor >> 32) -
                   multiply_halves(high >> 32, m.q) - multiply_halves(high, m.q >> 32);
    ulong8 rest = lower + (upper << 32);
#endif
    CHECK_LANES_BELOW(factor, m.q);
    CHECK_LANES_BELOW(rest >> 1, m.twice); /* loads also reduce rows of larger moduli */
    return subtract_once(rest, m.twice);
}

/* [0, 4q) to [0, 2q), and 4q to 2q */
static inline ulong8 halve_range(ulong8 x, struct lane_modulus m)
{
    CHECK_LANES_BELOW(x >> 1, m.twice + 1);
    return subtract_once(x, m.twice);
}

/* [0, 4q) to [0, q) */
static inline ulong8 reduce_lazy(ulong8 x, struct lane_modulus m)
{
    return subtract_once(halve_range(x, m), m.q);
}

/* The high word of a*b, exactly. */
static inline ulong8 multiply_high(ulong8 a, ulong8 b)
{
    ulong8 a_high = a >> 32, b_high = b >> 32;
    ulong8 middle = multiply_halves(a_high, b) + (multiply_halves(a, b) >> 32);
    ulong8 other = multiply_halves(a, b_high) + (middle & 0xffffffffUL);
    return multiply_halves(a_high, b_high) + (middle >> 32) + (other >> 32);
}

/* |x|, in [0, 2^63] */
static inline ulong8 lane_magnitude(long8 x)
{
    ulong8 bits = as_ulong8(x);
    return select(bits, 0 - bits, as_ulong8(x < 0));
}
