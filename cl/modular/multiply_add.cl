/*
 * Products that are added one after the other, on vectors of eight elements: see
 * cl/core/multiply_add.cl. The last axis has a multiple of eight elements. Along it moduli are
 * equal if `period` is 0. Otherwise they are periodic: `lanes` has `period` vectors of them.
 * Work-items begin at multiples of eight. The space is always in memory: the other arguments leave
 * no room for it, and SPACE_IN_MEMORY would make a second program of cl/vectors.cl.
 */
#define WRAP_LANES(x) WIDEN_LANES(8, JOIN(convert_, JOIN(ELEMENT, 8))(x))

KERNEL multiply_add_vectors(global const struct space *space_argument, global ELEMENT *out,
                            FACTOR_PARAMETERS,
                            global const struct modulus *q,
                            global const struct lane_divisor *lanes, ulong period)
{
    const struct space space = *space_argument;
    TAKE_FACTORS;
    const uint last = space.rank - 1;
    const long out_stride = space.operand[0].stride[last];
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        const uint has = operands_of(&factors, space.rank, &span, 0);
        global ELEMENT *to = out + span.position[0];
        global const ELEMENT *from[FACTORS_ALL];
#define FIND_FACTOR(k, name) from[k] = name + factor_place(&factors, k, space.rank, &span, 0);
        EACH_FACTOR(FIND_FACTOR)
        ulong place = period > 0 ? (ulong)span.index[last] / LANES % period : 0;
        global const struct lane_divisor *table = lanes + space.operand[3].offset;
        struct lane_divisor p = period > 0 ? table[place] : make_divisor(q[span.position[3]]);
        for (long i = 0; i < (long)span.length; i += LANES) {
            long8 x[FACTORS_ALL], sum = (long8)(0);
            UNROLL for (uint k = 0; k < FACTORS_ALL; k++)
                if (HAS(k)) {
                    long stride = factors.stride[k * PRODUCT_AXES];
                    PREFETCH(from[k] + i * stride + AHEAD);
                    x[k] = load_groups(from[k] + i * stride, stride, 1);
                }
            if (HAS(FACTORS_ADDEND))
                sum = x[FACTORS_ADDEND];
            UNROLL for (uint t = 0; t < PRODUCTS; t++)
                if (HAS_PRODUCT(t)) {
                    long8 a = x[FACTOR(t)];
                    if (t == 0 && ADDS_FACTORS)
                        a = WRAP_LANES(lanes_modsum(a, x[FACTOR(1)], p));
                    long8 product = WRAP_LANES(lanes_modmul(a, x[FACTOR(t) + 1], p));
                    sum = t == 0 && !HAS(FACTORS_ADDEND)
                              ? product
                              : WRAP_LANES(lanes_modsum(sum, product, p));
                }
            if (out_stride == 1)
                store_vector(sum, to + i);
            else
                store_groups(sum, to + i * out_stride, out_stride, 1);
            place = place + 1 < period ? place + 1 : 0;
            if (period > 1)
                p = table[place];
        }
    }
}
