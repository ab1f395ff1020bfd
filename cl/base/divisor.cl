/*
 * Vectors of eight residues modulo q, for any q in [1, 2^63), on devices with wide vectors and
 * doubles. After lanes.cl.
 *
 * Quotients are estimated in doubles from the inverse of q, which is too small by a part between
 * 2^-50 and 2^-49 of it. That is more than what the up to five roundings behind an estimate, of a
 * part of at most 2^-53 each, can add; so an estimate is never above the quotient x/q, and below it
 * by less than x/q * 2^-48. Cut to an integer it leaves a rest in [0, q + x * 2^-48). An operation
 * that is fused with the next one only leaves roundings out.
 */
#ifndef cl_khr_fp64
#error "quotients need doubles"
#endif

/* Eight moduli. */
struct lane_divisor {
    ulong8 q;
    double8 inverse; /* 1/q, less a part between 2^-50 and 2^-49 of it */
};

/* 1/q as in struct lane_divisor: the two roundings before the last one, and that, are of a part of
 * 2^-53 at most each, beside the 12 * 2^-53 that are taken off. */
static inline double make_inverse(ulong q)
{
    return 1.0 / (double)q * (1 - INVERSE_MARGIN);
}

/* x less a multiple of q, in [0, q + 2^16); x in [0, 2^64) */
static inline ulong8 lane_shrink(ulong8 x, struct lane_divisor p)
{
    return x - convert_ulong8(convert_double8(x) * p.inverse) * p.q;
}

/* x mod q in [0, q); x in [0, 2^64). What is shrunk twice is below q + (q + 2^16) * 2^-48. */
static inline ulong8 lane_reduce(ulong8 x, struct lane_divisor p)
{
    x = lane_shrink(lane_shrink(x, p), p);
    return min(x, x - p.q);
}

/*
 * a*b mod q in [0, q); a in [0, q + 2^16), b in [0, 2^63]: a times the upper bits of b, then that
 * rest and the lower bits. The first quotient is below (1 + 2^16/q) * 2^32 <= 2^49 + 2^32, so that
 * the rest is below q + q/2 + 1; the second one is below (2 + 2^16/q) * 2^31 + 1, and that rest is
 * below 2q. Both rests are below 2^64.
 */
static inline ulong8 lane_multiply(ulong8 a, ulong8 b, struct lane_divisor p)
{
    ulong8 high = b >> 31, low = b & 0x7fffffff;
    double8 part = convert_double8(a) * p.inverse;
    ulong8 rest = a * high - convert_ulong8(part * convert_double8(high)) * p.q;
    double8 quotient = convert_double8(rest) * (p.inverse * 0x1p31) + part * convert_double8(low);
    rest = (rest << 31) + a * low - convert_ulong8(quotient) * p.q;
    return min(rest, rest - p.q);
}

/*
 * x * 2^shift + word less a multiple of q; shift <= 32, x and the result in [0, q + q/2^8 + 2^17),
 * word in [0, 2^63]. The quotient is below 2^63 + 2^50, and so leaves a rest below
 * q + (2^32 * (q + q/2^8 + 2^17) + 2^63) * 2^-48.
 */
static inline ulong8 lane_append(ulong8 x, uint shift, ulong8 word, struct lane_divisor p)
{
    double8 quotient = convert_double8(x) * (p.inverse * (double)(1UL << shift)) +
                       convert_double8(word) * p.inverse;
    return (x << shift) + word - convert_ulong8(quotient) * p.q;
}
