/*
 * Vectors of eight residues modulo q < 2^62, for devices with wide vectors. Little-endian devices
 * only. Residues are lazy: each function says in which range.
 */

/* NOINLINE: what is compiled once. INLINE: what is another loop, of other constants, wherever it is
 * used. */
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline)) static inline

/* Whether a comparison holds in all lanes; compilers make less of all(). */
static inline bool are_all(long8 comparison)
{
    return as_ulong(convert_char8(comparison)) == ~(ulong)0;
}

/*
 * How 64 bits are multiplied, and what else depends on it: by -D MULTIPLY, one of those that
 * geometry.h lists. Where it is not given, devices multiply and convert vectors of 64 bits.
 */
#ifndef MULTIPLY
#define MULTIPLY MULTIPLY_DOUBLES
#endif

/* Those of each lane, twice. */
#define UPPER_HALVES_8(x) as_ulong8(as_uint16(x).s1133557799bbddff)
#define UPPER_HALVES_4(x) as_ulong4(as_uint8(x).s11335577)
#define UPPER_HALVES_2(x) as_ulong2(as_uint4(x).s1133)

#define LAZY(name) name
#define LAZY_LANES 8
#include "lazy.cl"
#undef LAZY
#undef LAZY_LANES

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
