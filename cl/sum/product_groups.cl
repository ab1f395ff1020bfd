/*
 * Sums of products whose elements are contiguous only in groups of one, two or four: see
 * base/groups.cl. Base conversions are such sums.
 */

/* A block of modmul_axis_sum_interleaved. Rows of terms are b_stride or a_stride apart, and groups
 * a_group, b_group or out_group. */
struct group_products {
    global const ELEMENT *a, *b;
    long a_stride, b_stride, a_group, b_group;
    ulong k, columns;
};

/* Packs terms j to j + terms - 1 of b, by columns. Returns the OR of all elements. */
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

/* Adds the products of these terms of b and a to the sums of columns. Returns the OR of a's
 * elements. */
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
 * As modmul_axis_sum in core/sums.cl, without a permutation, for elements in contiguous groups of
 * k, 1, 2 or 4. All summed groups have the same k moduli. With k of 1 each element of the space has
 * one modulus. The space is [blocks of PRODUCT_COLUMNS vectors of groups, any axes]. If b has
 * stride 0 along the last axis, it is packed once. Operands: out, a, b, q, with stride 0 for
 * blocks. n, the number of groups, is a multiple of 8.
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
