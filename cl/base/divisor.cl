/*
 * Vectors of eight residues modulo q, for any q in [1, 2^63), on devices with wide vectors.
 * Requires lanes.cl.
 *
 * With doubles, quotients are estimated from an inverse of q. The inverse is too small by a
 * relative error between 2^-50 and 2^-49. This exceeds what the following roundings can add: there
 * are at most five, each with a relative error of at most 2^-53. An estimate is thus never above
 * the quotient x/q, and below it by less than x/q * 2^-48. Truncated to an integer, it leaves a
 * remainder in [0, q + x * 2^-48). Fused operations only have fewer roundings.
 *
 * Without doubles, quotients are estimated by integers, as by P. Barrett, 1986. For x < 2^126 /
 * 2^shift the quotient is (x << shift) / 2^62 times r / 2^65, with r = floor((2^127 - 1) / (q <<
 * shift)).
 */
/* Eight moduli. */
struct lane_divisor {
    ulong8 q;
    ulong8 inverse; /* bits of a double: 1/q, reduced by a relative error between 2^-50 and 2^-49 */
    ulong8 reciprocal, shift; /* as in struct modulus */
};

/* 1/q as in struct lane_divisor. Each of its three roundings has a relative error of at most 2^-53,
 * and 12 * 2^-53 is subtracted. 0 on devices without doubles. */
static inline ulong make_inverse(ulong q)
{
#ifdef cl_khr_fp64
    return as_ulong(1.0 / (double)q * (1 - INVERSE_MARGIN));
#else
    return 0;
#endif
}

/* The same modulus in all eight lanes. */
static inline struct lane_divisor make_divisor(struct modulus m)
{
    struct lane_divisor p;
    p.q = m.value;
    p.inverse = make_inverse(m.value);
    p.reciprocal = m.reciprocal;
    p.shift = m.shift;
    return p;
}

/* Whether all lanes of a and b are in [0, q). Most are, as results of other operations. */
static inline bool are_residues(long8 a, long8 b, struct lane_divisor p)
{
#if MULTIPLY == MULTIPLY_DOUBLES
    return are_all(max(as_ulong8(a), as_ulong8(b)) < p.q);
#else /* such devices only have signed comparisons */
    return are_all((as_long8((as_ulong8(a) - p.q) & (as_ulong8(b) - p.q)) & ~(a | b)) < 0);
#endif
}

/*
 * Whether no lane of a or b has more bits than q, and q < 2^62. Then multiply_by_halves and the
 * functions below accept them. This test takes half the time of are_residues.
 */
static inline bool are_short(long8 a, long8 b, struct lane_divisor p)
{
    ulong8 above = ~(ulong8)(0) << ((64 - p.shift) & 63);
    return are_all(p.q >> 62 == 0) && are_all((as_ulong8(a | b) & above) == 0);
}

#ifdef cl_khr_fp64

/* x minus a multiple of q, in [0, q + 2^16); x in [0, 2^64). */
static inline ulong8 shrink_by_doubles(ulong8 x, struct lane_divisor p)
{
    return x - convert_ulong8(convert_double8(x) * as_double8(p.inverse)) * p.q;
}

/*
 * a*b mod q in [0, q); a in [0, q + 2^16), b in [0, 2^63]. First a is multiplied by the upper bits
 * of b, then the remainder and the lower bits are added. The first quotient is below (1 + 2^16/q) *
 * 2^32 <= 2^49 + 2^32, and its remainder below q + q/2 + 1. The second quotient is below (2 +
 * 2^16/q) * 2^31 + 1, and its remainder below 2q. Both remainders are below 2^64.
 */
static inline ulong8 multiply_by_doubles(ulong8 a, ulong8 b, struct lane_divisor p)
{
    ulong8 high = b >> 31, low = b & 0x7fffffff;
    double8 inverse = as_double8(p.inverse), part = convert_double8(a) * inverse;
    ulong8 rest = a * high - convert_ulong8(part * convert_double8(high)) * p.q;
    CHECK_LANES_BELOW(a, p.q + (1 << 16));
    double8 quotient = convert_double8(rest) * (inverse * 0x1p31) + part * convert_double8(low);
    rest = (rest << 31) + a * low - convert_ulong8(quotient) * p.q;
    CHECK_LANES_BELOW(rest, 2 * p.q);
    return subtract_once(rest, p.q);
}

/*
 * x * 2^shift + word minus a multiple of q; shift <= 32, x and the result in [0, q + q/2^8 + 2^17),
 * word in [0, 2^63]. The quotient is below 2^63 + 2^50. Its remainder is thus below q + (2^32 * (q
 * + q/2^8 + 2^17) + 2^63) * 2^-48.
 */
static inline ulong8 append_by_doubles(ulong8 x, uint shift, ulong8 word, struct lane_divisor p)
{
    double8 inverse = as_double8(p.inverse);
    double8 quotient = convert_double8(x) * (inverse * (double)(1UL << shift)) +
                       convert_double8(word) * inverse;
    CHECK_LANES_BELOW(x, p.q + (p.q >> 8) + (1 << 17) + 1);
    return (x << shift) + word - convert_ulong8(quotient) * p.q;
}

#endif

/* r as above */
static inline ulong8 lane_reciprocal(struct lane_divisor p)
{
    return p.reciprocal >> 1 | (ulong)1 << 63;
}

/* x mod q in [0, q); x in [0, 2^64). The high word is too small by less than 2. The quotient is
 * thus too small by less than 2 without a shift, and otherwise by less than 1 + 1/2. */
static inline ulong8 reduce_by_integers(ulong8 x, struct lane_divisor p)
{
    ulong8 quotient = multiply_high(x, lane_reciprocal(p)) >> (63 - p.shift);
    return subtract_once(x - quotient * p.q, p.q);
}

/* The upper 64 bits of x << count, x = high * 2^64 + low, for count in [1, 63]. Moduli below 4 need
 * a count of 64 or 65: then high is 0, and low has less than 32 bits. */
#define SHIFT_LEFT(high, low, count) ((high) << ((count)&63) | (low) >> ((64 - (count)) & 63))

/*
 * A number below 2^126 / 2^shift mod q in [0, q), from x, the number * 2^shift / 2^62 without its
 * fraction, and its lower word; q < 2^62. The error of the quotient has these parts. The number's
 * bits below 2^62 contribute less than 1/2, the reciprocal less than 1/2. The product with the
 * reciprocal, computed from three of four products of halves, contributes less than 3/2, and the
 * last bit 1/2. The remainder is thus below 3q < 2^64.
 */
static inline ulong8 reduce_product(ulong8 x, ulong8 low, struct lane_divisor p)
{
    ulong8 x_high = x >> 32, r = lane_reciprocal(p), r_high = r >> 32;
    ulong8 quotient = multiply_halves(x_high, r_high) + (multiply_halves(x, r_high) >> 32) +
                      (multiply_halves(x_high, r) >> 32);
    CHECK_LANES_BELOW(p.q, (ulong8)(1UL << 62));
    CHECK_LANES_BELOW(low - (quotient >> 1) * p.q, 3 * p.q);
    ulong8 rest = subtract_once(low - (quotient >> 1) * p.q, p.q << 1);
    return subtract_once(rest, p.q);
}

/* a*b mod q in [0, q); a and b in [0, 2^63), their product below 2^126 / 2^shift; q < 2^62. */
static inline ulong8 multiply_by_halves(ulong8 a, ulong8 b, struct lane_divisor p)
{
    const ulong8 mask = 0xffffffffUL;
    CHECK_LANES_BELOW(a | b, (ulong8)(1UL << 63));
    ulong8 a_high = a >> 32, b_high = b >> 32, lower = multiply_halves(a, b);
    /* below 2^64: the upper halves of a and b are below 2^31 */
    ulong8 middle = multiply_halves(a, b_high) + multiply_halves(a_high, b) + (lower >> 32);
    ulong8 high = multiply_halves(a_high, b_high) + (middle >> 32);
    ulong8 low = middle << 32 | (lower & mask);
    return reduce_product(SHIFT_LEFT(high, low, p.shift + 2), low, p);
}

/* Applies f to each lane of a, b and the divisor. */
#define LANE(f, i) f(a.i, b.i, p.q.i, p.reciprocal.i, p.shift.i)
#ifdef __OPENCL_C_VERSION__
#define EACH_LANE(f)                                                                      \
    ((ulong8)(LANE(f, s0), LANE(f, s1), LANE(f, s2), LANE(f, s3), LANE(f, s4), LANE(f, s5), \
              LANE(f, s6), LANE(f, s7)))
#else /* the tests' C compiler has vectors of one lane only */
#define EACH_LANE(f) f(a, b, p.q, p.reciprocal, p.shift)
#endif

/* As multiply_by_halves, with exact high words, lane by lane. Each of three truncations contributes
 * less than 1. */
static inline ulong multiply_lane_by_mul_hi(ulong a, ulong b, ulong q, ulong reciprocal,
                                            ulong shift)
{
    ulong low = a * b, x = SHIFT_LEFT(high_word(a, b), low, shift + 1);
    ulong rest = low - high_word(x, reciprocal >> 1 | (ulong)1 << 63) * q;
    rest = min(rest, rest - 2 * q);
    return min(rest, rest - q);
}

static inline ulong8 multiply_by_mul_hi(ulong8 a, ulong8 b, struct lane_divisor p)
{
    return EACH_LANE(multiply_lane_by_mul_hi);
}

static inline ulong multiply_lane_exactly(ulong a, ulong b, ulong q, ulong reciprocal, ulong shift)
{
    struct modulus m;
    m.value = q;
    m.normalized = q << shift;
    m.reciprocal = reciprocal;
    m.shift = shift;
    return multiply_residue(a, b, m); /* PoCL 6.0 passes structures wrongly to code that prints */
}

/* a*b mod q in [0, q); a in [0, q), any b */
NOINLINE static ulong8 multiply_exactly(ulong8 a, ulong8 b, struct lane_divisor p)
{
    return EACH_LANE(multiply_lane_exactly);
}

#if MULTIPLY == MULTIPLY_DOUBLES
#define lane_shrink shrink_by_doubles
#define lane_multiply multiply_by_doubles
#define lane_append append_by_doubles
#define are_factors are_residues
#define lane_multiply_factors multiply_by_doubles

/* A factor for lane_multiply, computed from any b in [0, 2^63]. */
#define lane_factor(b, p) (b)

/* x mod q in [0, q); x in [0, 2^64). Shrinking twice leaves less than q + (q + 2^16) * 2^-48. */
static inline ulong8 lane_reduce(ulong8 x, struct lane_divisor p)
{
    CHECK_LANES_BELOW(lane_shrink(x, p), p.q + (1 << 16));
    return subtract_once(lane_shrink(lane_shrink(x, p), p), p.q);
}

#else
#if MULTIPLY == MULTIPLY_HALVES
#define MULTIPLY_LANES multiply_by_halves
#else
#define MULTIPLY_LANES multiply_by_mul_hi
#endif

#define lane_shrink reduce_by_integers
#define lane_reduce reduce_by_integers
#define lane_factor reduce_by_integers
#define are_factors are_short
#define lane_multiply_factors MULTIPLY_LANES

/* As multiply_by_halves, for any q. */
static inline ulong8 lane_multiply(ulong8 a, ulong8 b, struct lane_divisor p)
{
    return are_all(p.q >> 62 == 0) ? MULTIPLY_LANES(a, b, p) : multiply_exactly(a, b, p);
}

/* x * 2^shift + word mod q in [0, q); shift <= 32, x in [0, q), word in [0, 2^64) */
static inline ulong8 lane_append(ulong8 x, uint shift, ulong8 word, struct lane_divisor p)
{
    CHECK_LANES_BELOW(x, p.q);
    ulong8 sum = lane_multiply(x, (ulong8)(1UL << shift), p) + lane_reduce(word, p);
    return subtract_once(sum, p.q);
}
#endif
