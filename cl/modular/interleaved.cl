/*
 * The operations of vectors.cl, and sums, for elements that are contiguous only in groups of one,
 * two or four: see base/groups.cl. For example, a ciphertext's moduli in HEAL's layout are
 * contiguous only this far if one of its components is used.
 */

/* An operand: a constant value, a constant group, or groups that are stride apart. */
struct group_operand {
    global const ELEMENT *from;
    long stride;
    bool repeats;
    long8 value; /* if it is constant */
};

static inline struct group_operand group_operand(global const ELEMENT *from, long stride, ulong k,
                                                 bool is_scalar, long scalar)
{
    struct group_operand x;
    x.from = from;
    x.stride = stride;
    x.repeats = stride == 0; /* as for a scalar */
    x.value = is_scalar ? (long8)(scalar) : x.repeats ? load_groups(from, 0, k) : (long8)(0);
    return x;
}

static inline long8 groups_at(struct group_operand x, long i, ulong k)
{
    return x.repeats ? x.value : load_groups(x.from + i * x.stride, x.stride, k);
}

/* As groups_at, if too few groups are left to fill a vector. Other lanes are 0. */
static inline long8 last_groups_at(struct group_operand x, long i, ulong k, ulong left)
{
    long values[LANES];
    if (x.repeats)
        return x.value;
    for (ulong lane = 0; lane < LANES; lane++)
        values[lane] =
            lane / k < left ? WIDEN(x.from[(i + (long)(lane / k)) * x.stride + (long)(lane % k)])
                            : 0;
    return vload8(0, values);
}

/* The body of the kernels below, with their arguments: see operate_on_vectors. */
INLINE void operate_on_groups(const enum elementwise operation, const struct space *space,
                              global ELEMENT *out, global const ELEMENT *a, global const ELEMENT *b,
                              global const struct modulus *q, ulong k, long m, long q_stride,
                              uint scalars, long a_scalar, long b_scalar)
{
    const bool is_chain = operation == CHAIN;
    uint blocks = space->rank - 1, groups = space->rank; /* axes */
    long step = LANES / (long)k, out_stride = space->operand[0].stride[groups];
    long a_stride = space->operand[1].stride[groups], b_stride = space->operand[2].stride[groups];
    for (struct span span = first_span(space); span.length > 0; next_span(space, &span))
        for (ulong block = 0; block < span.length; block++) {
            long first = (span.index[blocks] + (long)block) * INTERLEAVED_GROUPS;
            long count = min((long)INTERLEAVED_GROUPS, m - first), i = 0;
            global ELEMENT *to = out + POSITION(*space, span, 0, block);
            struct group_operand own = group_operand(to, out_stride, k, false, 0);
            struct group_operand x = group_operand(a + POSITION(*space, span, 1, block), a_stride,
                                                   k, !is_chain && scalars & 1, a_scalar);
            struct group_operand y = group_operand(b + POSITION(*space, span, 2, block), b_stride,
                                                   k, !is_chain && scalars & 2, b_scalar);
            struct lane_divisor p =
                group_divisor(q + POSITION(*space, span, 3, block), q_stride, k);
            for (; i + step <= count; i += step) {
                long8 second = has_two_operands(operation) ? groups_at(y, i, k) : (long8)(0);
                store_groups(lanes_apply(operation, is_chain ? groups_at(own, i, k) : (long8)(0),
                                         groups_at(x, i, k), second, &p, scalars, a_scalar,
                                         b_scalar),
                             to + i * out_stride, out_stride, k);
            }
            if (i < count) {
                ulong left = (ulong)(count - i);
                long values[LANES];
                vstore8(lanes_apply(operation,
                                    is_chain ? last_groups_at(own, i, k, left) : (long8)(0),
                                    last_groups_at(x, i, k, left), last_groups_at(y, i, k, left),
                                    &p, scalars, a_scalar, b_scalar),
                        0, values);
                for (ulong lane = 0; lane < left * k; lane++)
                    to[(i + (long)(lane / k)) * out_stride + (long)(lane % k)] =
                        (ELEMENT)values[lane];
            }
        }
}

/*
 * The space's last axis counts blocks of INTERLEAVED_GROUPS groups, out of m groups. The axis of
 * the groups follows it. Operands: out, a, b, q. Moduli are the same in all groups, and q_stride
 * apart within a group. scalars: see core/elementwise.cl.
 */
#define INTERLEAVED(KIND, name, operands)                                                           \
    KERNEL name##_interleaved(SPACE(space), global ELEMENT *out, global const ELEMENT *a,        \
                              global const ELEMENT *b, global const struct modulus *q, ulong k,  \
                              long m, long q_stride, uint scalars, long a_scalar, long b_scalar) \
    {                                                                                            \
        TAKE_SPACE(space);                                                                       \
        operate_on_groups(KIND, &space, out, a, b, q, k, m, q_stride, scalars, a_scalar,    \
                          b_scalar);                                                             \
    }

ELEMENTWISE_OPERATIONS(INTERLEAVED)
INTERLEAVED(CHAIN, chain, 2)
