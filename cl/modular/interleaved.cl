/*
 * The operations of vectors.cl, and sums, where elements lie together only by ones, twos or fours,
 * as a ciphertext's moduli in HEAL's layout do, while one of its components is taken: groups of k
 * elements, 1, 2 or 4, that are stride apart. A vector has eight elements of 8 / k such groups.
 */

static inline long8 load_groups(global const ELEMENT *from, long stride, ulong k)
{
    if (k == 1 && stride == 0)
        return (long8)(from[0]);
    if (k == 1 && stride == 1)
        return load_vector(from);
    if (k == 2)
        return (long8)(convert_long2(vload2(0, from)), convert_long2(vload2(0, from + stride)),
                       convert_long2(vload2(0, from + 2 * stride)),
                       convert_long2(vload2(0, from + 3 * stride)));
    if (k == 4)
        return (long8)(convert_long4(vload4(0, from)), convert_long4(vload4(0, from + stride)));
    return (long8)(from[0], from[stride], from[2 * stride], from[3 * stride], from[4 * stride],
                   from[5 * stride], from[6 * stride], from[7 * stride]);
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
        to[0] = (ELEMENT)x.s0;
        to[stride] = (ELEMENT)x.s1;
        to[2 * stride] = (ELEMENT)x.s2;
        to[3 * stride] = (ELEMENT)x.s3;
        to[4 * stride] = (ELEMENT)x.s4;
        to[5 * stride] = (ELEMENT)x.s5;
        to[6 * stride] = (ELEMENT)x.s6;
        to[7 * stride] = (ELEMENT)x.s7;
    }
}

/* An operand: one value, the same group again and again, or groups that are stride apart. */
struct group_operand {
    global const ELEMENT *from;
    long stride;
    bool repeats;
    long8 value; /* where it repeats */
};

static inline struct group_operand group_operand(global const ELEMENT *from, long stride, ulong k,
                                                 bool is_scalar, long scalar)
{
    struct group_operand x;
    x.from = from;
    x.stride = stride;
    x.repeats = stride == 0; /* as of a scalar */
    x.value = is_scalar ? (long8)(scalar) : x.repeats ? load_groups(from, 0, k) : (long8)(0);
    return x;
}

static inline long8 groups_at(struct group_operand x, long i, ulong k)
{
    return x.repeats ? x.value : load_groups(x.from + i * x.stride, x.stride, k);
}

/* The same where fewer groups are left than fill a vector; other lanes are 0. */
static inline long8 last_groups_at(struct group_operand x, long i, ulong k, ulong left)
{
    long values[LANES];
    if (x.repeats)
        return x.value;
    for (ulong lane = 0; lane < LANES; lane++)
        values[lane] =
            lane / k < left ? x.from[(i + (long)(lane / k)) * x.stride + (long)(lane % k)] : 0;
    return vload8(0, values);
}

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

/* What the kernels do whose arguments these are. */
INLINE void operate_on_groups(const enum elementwise operation, const struct space *space,
                              global ELEMENT *out, global const ELEMENT *a, global const ELEMENT *b,
                              global const struct modulus *q, ulong k, long m, long q_stride,
                              uint scalars, long a_scalar, long b_scalar)
{
    uint blocks = space->rank - 1, groups = space->rank; /* axes */
    long step = LANES / (long)k, out_stride = space->operand[0].stride[groups];
    long a_stride = space->operand[1].stride[groups], b_stride = space->operand[2].stride[groups];
    for (struct span span = first_span(space); span.length > 0; next_span(space, &span))
        for (ulong block = 0; block < span.length; block++) {
            long first = (span.index[blocks] + (long)block) * INTERLEAVED_GROUPS;
            long count = min((long)INTERLEAVED_GROUPS, m - first), i = 0;
            global ELEMENT *to = out + POSITION(*space, span, 0, block);
            struct group_operand x = group_operand(a + POSITION(*space, span, 1, block), a_stride,
                                                   k, scalars & 1, a_scalar);
            struct group_operand y = group_operand(b + POSITION(*space, span, 2, block), b_stride,
                                                   k, scalars & 2, b_scalar);
            struct lane_divisor p =
                group_divisor(q + POSITION(*space, span, 3, block), q_stride, k);
            for (; i + step <= count; i += step) {
                long8 second = has_two_operands(operation) ? groups_at(y, i, k) : (long8)(0);
                store_groups(lanes_apply(operation, groups_at(x, i, k), second, p),
                             to + i * out_stride, out_stride, k);
            }
            if (i < count) {
                ulong left = (ulong)(count - i);
                long values[LANES];
                vstore8(lanes_apply(operation, last_groups_at(x, i, k, left),
                                    last_groups_at(y, i, k, left), p),
                        0, values);
                for (ulong lane = 0; lane < left * k; lane++)
                    to[(i + (long)(lane / k)) * out_stride + (long)(lane % k)] =
                        (ELEMENT)values[lane];
            }
        }
}

/*
 * The space's last axis are blocks of INTERLEAVED_GROUPS groups, of m; behind it stands that of the
 * groups. Operands: out, a, b, q; moduli are the same in all groups, and q_stride apart in one.
 * scalars: see general.cl.
 */
#define INTERLEAVED(name, operation)                                                             \
    KERNEL name##_interleaved(SPACE(space), global ELEMENT *out, global const ELEMENT *a,        \
                              global const ELEMENT *b, global const struct modulus *q, ulong k,  \
                              long m, long q_stride, uint scalars, long a_scalar, long b_scalar) \
    {                                                                                            \
        TAKE_SPACE(space);                                                                       \
        operate_on_groups(operation, &space, out, a, b, q, k, m, q_stride, scalars, a_scalar,    \
                          b_scalar);                                                             \
    }

INTERLEAVED(modmul, MODMUL)
INTERLEAVED(modsum, MODSUM)
INTERLEAVED(mod, MOD)
INTERLEAVED(modneg, MODNEG)

/* A chain of two: see chain_table in general.cl. Space, operands and q: as above. */
KERNEL chain_interleaved(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                         global const ELEMENT *b, global const struct modulus *q, ulong k, long m,
                         long q_stride, uint sources, long first, long second)
{
    TAKE_SPACE(space);
    uint blocks = space.rank - 1, groups = space.rank; /* axes */
    long step = LANES / (long)k, out_stride = space.operand[0].stride[groups];
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong block = 0; block < span.length; block++) {
            long begin = (span.index[blocks] + (long)block) * INTERLEAVED_GROUPS;
            long count = min((long)INTERLEAVED_GROUPS, m - begin);
            global ELEMENT *to = out + POSITION(space, span, 0, block);
            struct group_operand own = group_operand(to, out_stride, k, false, 0);
            struct group_operand x = group_operand(a + POSITION(space, span, 1, block),
                                                   space.operand[1].stride[groups], k, false, 0);
            struct group_operand y = group_operand(b + POSITION(space, span, 2, block),
                                                   space.operand[2].stride[groups], k, false, 0);
            struct lane_divisor p = group_divisor(q + POSITION(space, span, 3, block), q_stride, k);
            for (long i = 0; i < count; i += step) {
                ulong left = (ulong)(count - i);
                bool whole = i + step <= count;
                long values[LANES];
                long8 result = lanes_chain(
                    whole ? groups_at(own, i, k) : last_groups_at(own, i, k, left),
                    whole ? groups_at(x, i, k) : last_groups_at(x, i, k, left),
                    whole ? groups_at(y, i, k) : last_groups_at(y, i, k, left), sources, first,
                    second, &p);
                if (whole) {
                    store_groups(result, to + i * out_stride, out_stride, k);
                    continue;
                }
                vstore8(result, 0, values);
                for (ulong lane = 0; lane < left * k; lane++)
                    to[(i + (long)(lane / k)) * out_stride + (long)(lane % k)] =
                        (ELEMENT)values[lane];
            }
        }
}

/* As axis_modsum_vectors, where out has stride 0 along the space's last axis: element i of it lies
 * at i / k * out_stride + i % k. k: 1, 2 or 4. table: one vector of moduli. */
KERNEL axis_modsum_interleaved(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                               global const struct lane_divisor *table, long count, long stride,
                               ulong k, long out_stride)
{
    TAKE_SPACE(space);
    struct lane_sum sums[SUM_COLUMNS];
    struct lane_divisor p = table[0];
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong first = 0; first < span.length; first += SUM_COLUMNS * LANES) {
            ulong columns = min((ulong)SUM_COLUMNS, (span.length - first) / LANES);
            long group = (long)(((ulong)span.index[space.rank - 1] + first) / k);
            global ELEMENT *to = out + span.position[0] + group * out_stride;
            sum_rows(sums, columns, a + span.position[1] + first, count, stride);
            for (ulong i = 0; i < columns; i++)
                store_groups(as_long8(lane_sum_reduce(&sums[i], p)),
                             to + (long)(i * LANES / k) * out_stride, out_stride, k);
        }
}

/* A block of modmul_axis_sum_interleaved: rows of terms are b_stride or a_stride apart, groups
 * a_group, b_group and out_group. */
struct group_products {
    global const ELEMENT *a, *b;
    long a_stride, b_stride, a_group, b_group;
    ulong k, columns;
};

/* Packs terms j to j + terms - 1 of b, by columns. Returns the bits that any element has. */
NOINLINE static ulong8 pack_groups(ulong8 *packed, struct group_products block, long j, long terms)
{
    const long step = LANES / (long)block.k;
    ulong8 bits = 0;
    for (long term = 0; term < terms; term++)
        for (ulong i = 0; i < block.columns; i++) {
            global const ELEMENT *from =
                block.b + (j + term) * block.b_stride + (long)i * step * block.b_group;
            ulong8 x = as_ulong8(load_groups(from, block.b_group, block.k));
            packed[i * PRODUCT_TERMS + (ulong)term] = x;
            bits |= x;
        }
    return bits;
}

/* Adds the products of these terms and a's to the sums of columns. Returns the bits of a. */
NOINLINE static ulong8 add_groups(struct lane_products *sums, const ulong8 *packed,
                                  struct group_products block, long j, long terms)
{
    const long step = LANES / (long)block.k;
    ulong8 x[PRODUCT_TERMS], bits = 0;
    for (ulong i = 0; i < block.columns; i++) {
        const ulong8 *y = packed + i * PRODUCT_TERMS;
        struct lane_products sum = sums[i];
        for (long term = 0; term < terms && (i == 0 || block.a_group != 0); term++) {
            global const ELEMENT *from =
                block.a + (j + term) * block.a_stride + (long)i * step * block.a_group;
            x[term] = as_ulong8(load_groups(from, block.a_group, block.k));
            bits |= x[term];
        }
        long term = 0;
        for (; term + TERMS <= terms; term += TERMS)
            lane_products_add(&sum, x + term, y + term, TERMS);
        for (; term < terms; term++)
            lane_products_add(&sum, x + term, y + term, 1);
        sums[i] = sum;
    }
    return bits;
}

/*
 * As modmul_axis_sum in general.cl, without a permutation, where the elements of groups of k, 1, 2
 * or 4, lie together, and all of what is summed has these k moduli, or, for k of 1, one for each
 * element of the space. The space is [blocks of PRODUCT_COLUMNS vectors of groups, any, any]: along
 * its last axis b is packed once where it has a stride of 0. Operands: out, a, b, q, with strides
 * for blocks of 0. n, the groups, is a multiple of 8.
 */
KERNEL modmul_axis_sum_interleaved(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                                   global const ELEMENT *b, global const struct modulus *q,
                                   global const uint *perm, uint flags, long n, long count, ulong k,
                                   long a_stride, long b_stride, long a_group, long b_group,
                                   long out_group)
{
    TAKE_SPACE(space);
    const long step = LANES / (long)k;
    const bool adds = flags & PRODUCTS_ADDED;
    struct lane_divisor p = group_divisor(q, 1, k);
    struct lane_products sums[PRODUCT_COLUMNS];
    ulong8 packed[PRODUCT_COLUMNS * PRODUCT_TERMS], packed_bits = 0;
    struct group_products block;
    block.k = k;
    block.a_stride = a_stride;
    block.b_stride = b_stride;
    block.a_group = a_group;
    block.b_group = b_group;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        long first = span.index[0] * PRODUCT_COLUMNS * step, packed_first = -1;
        block.columns = (ulong)min((long)PRODUCT_COLUMNS, (n - first) / step);
        const bool shares = space.operand[2].stride[space.rank - 1] == 0;
        for (ulong r = 0; r < span.length; r++) {
            global ELEMENT *to = out + POSITION(space, span, 0, r) + first * out_group;
            global const struct modulus *moduli = q + POSITION(space, span, 3, r);
            ulong8 bits = 0;
            block.a = a + POSITION(space, span, 1, r) + first * a_group;
            block.b = b + POSITION(space, span, 2, r) + first * b_group;
            if (k == 1)
                p = make_divisor(moduli[0]);
            for (ulong i = 0; i < block.columns; i++)
                lane_products_clear(&sums[i]);
            for (long j = 0; j < count; j += PRODUCT_TERMS) {
                long terms = min((long)PRODUCT_TERMS, count - j);
                if (packed_first != j || !shares)
                    packed_bits = pack_groups(packed, block, j, terms);
                packed_first = j;
                bits |= packed_bits | add_groups(sums, packed, block, j, terms);
            }
            for (ulong i = 0; i < block.columns; i++) {
                global ELEMENT *at = to + (long)i * step * out_group;
                ulong8 held = adds ? as_ulong8(load_groups(at, out_group, k)) : (ulong8)(0);
                if (are_all((bits | held) >> 62 == 0)) {
                    store_groups(as_long8(lane_products_reduce(&sums[i], held, p)), at, out_group,
                                 k);
                    continue;
                }
                for (long lane = 0; lane < LANES; lane++) {
                    long group = lane / (long)k, j = lane % (long)k, l = (long)i * step + group;
                    sum_products(at + group * out_group + j, block.a + l * a_group + j, a_stride,
                                 block.b + l * b_group + j, b_stride, count, moduli[j], adds);
                }
            }
        }
    }
}
