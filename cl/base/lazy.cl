/*
 * Lazy residues modulo q < 2^62 in vectors of LAZY_LANES, by functions of the names LAZY(...):
 * included once for each number of lanes.
 */

#define LAZY_TYPE JOIN(ulong, LAZY_LANES)
#define LAZY_SIGNED(x) JOIN(as_long, LAZY_LANES)(x)
#define LAZY_BITS(x) JOIN(as_ulong, LAZY_LANES)(x)

/* x - y where that is not below 0, else x; x - y in [-2^63, 2^63). Devices without a minimum of 64
 * bits, which are those that multiply in other ways, select by the sign. */
static inline LAZY_TYPE LAZY(subtract_once)(LAZY_TYPE x, LAZY_TYPE y)
{
    LAZY_TYPE rest = x - y;
#if MULTIPLY == MULTIPLY_DOUBLES
    return min(x, rest);
#else
    return select(rest, x, LAZY_BITS(LAZY_SIGNED(rest) < 0));
#endif
}

/* A modulus with its double, for all lanes. */
struct LAZY(lane_modulus) {
    LAZY_TYPE q, twice;
};

/* The product of the lower halves of each lane. */
static inline LAZY_TYPE LAZY(multiply_halves)(LAZY_TYPE a, LAZY_TYPE b)
{
    return (a & 0xffffffffUL) * (b & 0xffffffffUL);
}

/*
 * x*w mod q in [0, 2q) for any x; w in [0, q) with its quotient, q < 2^62.
 * The high word of x*quotient is taken without the product of the two lower halves and without
 * the carry of the two middle products: it is at most 2 too small, on top of the 1 that it may be
 * too small exactly. So x*w - high*q is in [0, 4q), and one conditional subtraction is enough.
 */
static inline LAZY_TYPE LAZY(multiply_lazy)(LAZY_TYPE x, LAZY_TYPE factor, LAZY_TYPE quotient,
                                            struct LAZY(lane_modulus) m)
{
    LAZY_TYPE x_high = JOIN(UPPER_HALVES_, LAZY_LANES)(x), quotient_high = quotient >> 32;
    LAZY_TYPE high = LAZY(multiply_halves)(x_high, quotient_high) +
                     ((LAZY(multiply_halves)(x, quotient_high) >> 32) +
                      (LAZY(multiply_halves)(x_high, quotient) >> 32));
    return LAZY(subtract_once)(x * factor - high * m.q, m.twice);
}

/* [0, 4q) to [0, 2q), and 4q to 2q */
static inline LAZY_TYPE LAZY(halve_range)(LAZY_TYPE x, struct LAZY(lane_modulus) m)
{
    return LAZY(subtract_once)(x, m.twice);
}

/* [0, 4q) to [0, q) */
static inline LAZY_TYPE LAZY(reduce_lazy)(LAZY_TYPE x, struct LAZY(lane_modulus) m)
{
    return LAZY(subtract_once)(LAZY(halve_range)(x, m), m.q);
}

#undef LAZY_TYPE
#undef LAZY_SIGNED
#undef LAZY_BITS
