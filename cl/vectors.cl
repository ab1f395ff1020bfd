/*
 * Elementwise modular operations on vectors of eight elements, for devices with wide vectors.
 *
 * Along the last axis out has stride 1 and a size that is a multiple of 8; a and b have stride 1
 * there, or 0. The modulus depends on the place on that axis only, with a period: the table holds
 * period vectors of eight moduli, in turn. A modulus of 2^62 or more makes all go the general way.
 * ELEMENT: int or long.
 */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif
#if CHUNKS != 1
#error "vectors need CHUNKS=1"
#endif

#include "elementwise.cl"
#include "lanes.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(ELEMENT, 8) element8;

/* Eight moduli with what reduction by them needs; s is the bit length of q. */
struct lane_barrett {
    struct lane_modulus modulus;
    ulong8 one, one_quotient; /* the twiddle of the factor 1 */
    ulong8 reciprocal;        /* floor((2^(s+63) - 1) / q) */
    ulong8 shift;             /* s - 1 */
};

/* x mod q in [0, q) for x in [0, 2^63] */
static inline ulong8 lane_reduce(ulong8 x, struct lane_barrett p)
{
    return reduce_lazy(multiply_lazy(x, p.one, p.one_quotient, p.modulus), p.modulus);
}

/*
 * a*b mod q in [0, q); a in [0, q), b in [0, 2^63]. P. Barrett, "Implementing the Rivest Shamir and
 * Adleman public key encryption algorithm on a standard digital signal processor", 1986: with the
 * top 64 bits of the product, which is below 2^(s+63), the quotient is at most 3 too small.
 */
static inline ulong8 lane_multiply(ulong8 a, ulong8 b, struct lane_barrett p)
{
    ulong8 low = a * b, high = multiply_high(a, b);
    ulong8 top = high << (64 - p.shift) | low >> p.shift;
    top = select(top, low, as_ulong8(p.shift == 0)); /* q = 1 */
    ulong8 rest = low - multiply_high(top, p.reciprocal) * p.modulus.q;
    return reduce_lazy(rest, p.modulus);
}

/* rest, or -rest where negative has all bits set */
static inline long8 lane_sign(ulong8 rest, long8 negative)
{
    return (as_long8(rest) ^ negative) - negative;
}

/* All lanes of a and b are in [0, q): most are, as results of other operations. */
static inline bool are_residues(long8 a, long8 b, struct lane_barrett p)
{
    return all(max(as_ulong8(a), as_ulong8(b)) < p.modulus.q);
}

static inline long8 lanes_modmul(long8 a, long8 b, struct lane_barrett p)
{
    if (are_residues(a, b, p))
        return as_long8(lane_multiply(as_ulong8(a), as_ulong8(b), p));
    ulong8 rest = lane_multiply(lane_reduce(lane_magnitude(a), p), lane_magnitude(b), p);
    return lane_sign(rest, (a ^ b) >> 63);
}

static inline long8 lanes_modsum(long8 a, long8 b, struct lane_barrett p)
{
    if (are_residues(a, b, p)) {
        ulong8 sum = as_ulong8(a) + as_ulong8(b);
        return as_long8(min(sum, sum - p.modulus.q));
    }
    /* The floor remainder of the sum, and the sign of the exact sum, which may have 65 bits. */
    ulong8 rest_a = lane_reduce(lane_magnitude(a), p), rest_b = lane_reduce(lane_magnitude(b), p);
    rest_a = select(rest_a, p.modulus.q - rest_a, as_ulong8(a < 0));
    rest_b = select(rest_b, p.modulus.q - rest_b, as_ulong8(b < 0));
    ulong8 rest = reduce_lazy(rest_a + rest_b, p.modulus);
    long8 negative = ((a >> 1) + (b >> 1) + (a & b & 1)) >> 63;
    return as_long8(rest) -
           as_long8(select((ulong8)(0), p.modulus.q, as_ulong8((negative != 0) & (rest != 0))));
}

static inline long8 lanes_mod(long8 a, long8 b, struct lane_barrett p)
{
    return lane_sign(lane_reduce(lane_magnitude(a), p), a >> 63);
}

static inline long8 lanes_modneg(long8 a, long8 b, struct lane_barrett p)
{
    ulong8 rest = lane_reduce(lane_magnitude(a), p);
    return as_long8(select(rest, p.modulus.q - rest, as_ulong8((a >= 0) & (rest != 0))));
}

/* Element at + i, or the one at `at` where the stride is 0. */
static inline long8 load_operand(global const ELEMENT *from, long at, long stride, ulong i)
{
    return stride ? convert_long8(vload8(0, from + at + (long)i)) : (long8)(from[at]);
}

static inline element8 convert_result(long8 value)
{
    return JOIN(convert_, JOIN(ELEMENT, 8))(value);
}

static inline bool are_lazy(global const struct lane_barrett *table, ulong period)
{
    bool lazy = true;
    for (ulong i = 0; i < period; i++)
        lazy = lazy && all(table[i].modulus.q >> 62 == 0);
    return lazy;
}

/* Operands: out, a, b. p: the k moduli, lanes: the same in period vectors of eight, in turn.
 * scalars: see elementwise.cl. */
#define VECTORS(name)                                                                              \
    KERNEL name##_vectors(struct space space, global ELEMENT *out, global const ELEMENT *a,        \
                          global const ELEMENT *b, global const struct modulus *p, ulong k,        \
                          global const struct lane_barrett *lanes, ulong period, uint scalars,     \
                          long a_scalar, long b_scalar)                                            \
    {                                                                                              \
        uint last = space.rank - 1;                                                                \
        long a_stride = space.operand[1].stride[last], b_stride = space.operand[2].stride[last];   \
        bool lazy = are_lazy(lanes, period);                                                       \
        for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run)) {         \
            ulong first = (ulong)run.index[last], place = first / LANES % period;                  \
            long out_at = run.position[0], a_at = run.position[1], b_at = run.position[2];         \
            struct lane_barrett m = lanes[place];                                                  \
            for (ulong i = 0; lazy && i < run.length; i += LANES) {                                \
                long8 x = scalars & 1 ? (long8)(a_scalar) : load_operand(a, a_at, a_stride, i);    \
                long8 y = scalars & 2 ? (long8)(b_scalar) : load_operand(b, b_at, b_stride, i);    \
                vstore8(convert_result(lanes_##name(x, y, m)), 0, out + out_at + (long)i);         \
                if (period > 1) {                                                                  \
                    place = place + 1 == period ? 0 : place + 1;                                   \
                    m = lanes[place];                                                              \
                }                                                                                  \
            }                                                                                      \
            for (ulong i = 0; !lazy && i < run.length; i++)                                        \
                out[out_at + (long)i] = (ELEMENT)compute_##name(                                   \
                    scalars & 1 ? a_scalar : a[a_at + (long)i * a_stride],                         \
                    scalars & 2 ? b_scalar : b[b_at + (long)i * b_stride], p[(first + i) % k]);    \
        }                                                                                          \
    }

VECTORS(modmul)
VECTORS(modsum)
VECTORS(mod)
VECTORS(modneg)
