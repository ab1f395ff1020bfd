/*
 * Vectors of eight residues modulo q < 2^62, for devices with wide vectors. Little-endian devices
 * only. Residues are lazy: each function says in which range.
 */

/* NOINLINE: what is compiled once. INLINE: what is another loop, of other constants, wherever it is
 * used. */
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline)) static inline

/* -D MULTIPLY: how 64 bits are multiplied, one of the ways that geometry.h lists. A device that is
 * given none multiplies, compares and converts vectors of 64 bits in few instructions. */
#ifndef MULTIPLY
#define MULTIPLY MULTIPLY_DOUBLES
#endif

/* Whether a comparison holds in all lanes; compilers make less of all(). */
static inline bool are_all(long8 comparison)
{
#if MULTIPLY == MULTIPLY_DOUBLES /* comparisons are masks there, a bit for each lane */
    return as_ulong(convert_char8(comparison)) == ~(ulong)0;
#else
    long4 four = comparison.lo & comparison.hi;
    long2 two = four.lo & four.hi;
    return (two.s0 & two.s1) != 0;
#endif
}

/* x - y where that is not below 0, else x; x - y in [-2^63, 2^63), so that its sign tells. */
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
/* The lower halves of four lanes. NEON multiplies those, but LLVM (15 to 19) sees that it can only
 * where they are widened, which it takes for a mask if it sees where they come from. */
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
 * x*w mod q in [0, 2q) for any x; w in [0, q) with its quotient, q < 2^62.
 * The high word of x*quotient is taken without the product of the two lower halves and without
 * the carry of the two middle products: it is at most 2 too small, on top of the 1 that it may be
 * too small exactly. So x*w - high*q is in [0, 4q), and one conditional subtraction is enough.
 */
static inline ulong8 multiply_lazy(ulong8 x, ulong8 factor, ulong8 quotient, struct lane_modulus m)
{
    ulong8 x_high = as_ulong8(as_uint16(x).s1133557799bbddff), quotient_high = quotient >> 32;
    ulong8 high = multiply_halves(x_high, quotient_high) +
                  ((multiply_halves(x, quotient_high) >> 32) +
                   (multiply_halves(x_high, quotient) >> 32));
#if MULTIPLY == MULTIPLY_DOUBLES
    ulong8 rest = x * factor - high * m.q;
#else /* no products of 64 bits: all that is multiplied by 2^32 is added up before */
    ulong8 lower = multiply_halves(x, factor) - multiply_halves(high, m.q);
    ulong8 upper = multiply_halves(x_high, factor) + multiply_halves(x, factor >> 32) -
                   multiply_halves(high >> 32, m.q) - multiply_halves(high, m.q >> 32);
    ulong8 rest = lower + (upper << 32);
#endif
    CHECK_LANES_BELOW(factor, m.q);
    CHECK_LANES_BELOW(rest >> 1, m.twice); /* loads reduce rows of larger moduli, too */
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
