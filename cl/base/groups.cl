/*
 * Eight elements in groups of k, 1, 2 or 4. Groups are stride apart. A vector has 8 / k groups.
 */

static inline long8 load_groups(global const ELEMENT *from, long stride, ulong k)
{
    if (k == 1 && stride == 0)
        return (long8)(WIDEN(from[0]));
    if (k == 1 && stride == 1)
        return load_vector(from);
    if (k == 2)
        return (long8)(WIDEN_LANES(2, vload2(0, from)), WIDEN_LANES(2, vload2(0, from + stride)),
                       WIDEN_LANES(2, vload2(0, from + 2 * stride)),
                       WIDEN_LANES(2, vload2(0, from + 3 * stride)));
    if (k == 4)
        return (long8)(WIDEN_LANES(4, vload4(0, from)), WIDEN_LANES(4, vload4(0, from + stride)));
    ELEMENT x[LANES];
    UNROLL for (long i = 0; i < LANES; i++) x[i] = from[i * stride];
    return WIDEN_LANES(8, vload8(0, x));
}

#define STORE_2(x, to) vstore2(JOIN(convert_, JOIN(ELEMENT, 2))(x), 0, to)
#define STORE_4(x, to) vstore4(JOIN(convert_, JOIN(ELEMENT, 4))(x), 0, to)

static inline void store_groups(long8 x, global ELEMENT *to, long stride, ulong k)
{
    if (k == 2) {
        STORE_2(x.s01, to);
        STORE_2(x.s23, to + stride);
        STORE_2(x.s45, to + 2 * stride);
        STORE_2(x.s67, to + 3 * stride);
    } else if (k == 4) {
        STORE_4(x.lo, to);
        STORE_4(x.hi, to + stride);
    } else {
        long values[LANES];
        vstore8(x, 0, values);
        UNROLL for (long i = 0; i < LANES; i++) to[i * stride] = (ELEMENT)values[i];
    }
}

/* The moduli of a group, stride apart, repeated to fill a vector. */
static inline struct lane_divisor group_divisor(global const struct modulus *q, long stride,
                                                ulong k)
{
    struct lane_divisor p;
    ulong words[4][LANES];
    for (ulong i = 0; i < LANES; i++) {
        struct modulus m = q[(long)(i % k) * stride];
        words[0][i] = m.value;
        words[1][i] = make_inverse(m.value);
        words[2][i] = m.reciprocal;
        words[3][i] = m.shift;
    }
    p.q = vload8(0, words[0]);
    p.inverse = vload8(0, words[1]);
    p.reciprocal = vload8(0, words[2]);
    p.shift = vload8(0, words[3]);
    return p;
}
