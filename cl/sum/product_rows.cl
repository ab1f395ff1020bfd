/*
 * Sums of products in HEAL's layout: the terms and moduli of a row are contiguous.
 */

/*
 * Adds up the lanes of eight vectors that are k apart; k is 1, 2, 4 or 8. The results are in the
 * first k vectors, ordered by vector, then by lane.
 */
INLINE void fold_lanes(ulong8 *a, ulong k)
{
    if (k <= 4)
        UNROLL for (uint i = 0; i < 4; i++) {
            ulong8 u = a[2 * i], v = a[2 * i + 1];
            a[i] = (ulong8)(u.lo, v.lo) + (ulong8)(u.hi, v.hi);
        }
    if (k <= 2)
        UNROLL for (uint i = 0; i < 2; i++) {
            ulong8 u = a[2 * i], v = a[2 * i + 1];
            a[i] = (ulong8)(u.s01, u.s45, v.s01, v.s45) + (ulong8)(u.s23, u.s67, v.s23, v.s67);
        }
    if (k == 1)
        a[0] = (ulong8)(a[0].even, a[1].even) + (ulong8)(a[0].odd, a[1].odd);
}

/* The last count < 8 of size >= 8 elements in the last lanes, and zeros in the other lanes. */
static inline ulong8 load_last(global const ELEMENT *from, ulong size, ulong count)
{
    const ulong8 lane = (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
    ulong8 x = as_ulong8(load_vector(from + size - LANES));
    return select((ulong8)(0), x, as_ulong8(lane >= LANES - count));
}

/* Adds the products of size >= 8 elements of a and b. Those at j go to lane j % 8. The last ones,
 * which do not fill a vector, go to lane (j - size) % 8: this is the same lane modulo k. Returns
 * the OR of all elements. */
static inline ulong8 add_row_products(struct lane_products *sums, global const ELEMENT *a,
                                      global const ELEMENT *b, ulong size)
{
    ulong i = 0;
    ulong8 x[TERMS], y[TERMS], bits = 0;
    for (; i + TERMS * LANES <= size; i += TERMS * LANES) {
        UNROLL for (uint term = 0; term < TERMS; term++) {
            PREFETCH(a + i + term * LANES + AHEAD);
            x[term] = as_ulong8(load_vector(a + i + term * LANES));
            y[term] = as_ulong8(load_vector(b + i + term * LANES));
            bits |= x[term] | y[term];
        }
        lane_products_add(sums, x, y, TERMS);
    }
    for (; i < size; i += LANES) {
        bool whole = i + LANES <= size;
        x[0] = whole ? as_ulong8(load_vector(a + i)) : load_last(a, size, size - i);
        y[0] = whole ? as_ulong8(load_vector(b + i)) : load_last(b, size, size - i);
        bits |= x[0] | y[0];
        lane_products_add(sums, x, y, 1);
    }
    return bits;
}

/*
 * As modmul_axis_sum in core/sums.cl, for k of 1, 2, 4 or 8. The space is [blocks of SUM_ROWS rows
 * of n, any, reps]; the second axis may be missing. Operands: out, a, b, with stride 0 for blocks.
 * The terms of row l, count * k contiguous elements, are at a + l * a_stride and at b + m *
 * b_stride. Their sums belong at out + m * out_stride, out_k_stride apart. lanes: the moduli q,
 * repeated. n is a multiple of 8.
 */
KERNEL modmul_axis_sum_rows(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                            global const ELEMENT *b, global const struct modulus *q,
                            global const uint *perm, uint flags,
                            global const struct lane_divisor *lanes, long n, long count, ulong k,
                            long a_stride, long b_stride, long out_stride, long out_k_stride)
{
    TAKE_SPACE(space);
    struct lane_divisor p = lanes[0];
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        long begin = span.index[0] * SUM_ROWS, end = min(begin + SUM_ROWS, n);
        for (ulong r = 0; r < span.length; r++)
            for (long first = begin; first < end; first += LANES) {
                ulong8 word[4][LANES], bits = 0;
                global const ELEMENT *row_a[LANES], *row_b[LANES];
                global ELEMENT *row_out[LANES];
                for (uint row = 0; row < LANES; row++) {
                    long l = first + row, m = flags & PRODUCTS_PERMUTED ? (long)perm[l] : l;
                    struct lane_products sums;
                    row_a[row] = a + POSITION(space, span, 1, r) + l * a_stride;
                    row_b[row] = b + POSITION(space, span, 2, r) + m * b_stride;
                    row_out[row] = out + POSITION(space, span, 0, r) + m * out_stride;
                    lane_products_clear(&sums);
                    bits |= add_row_products(&sums, row_a[row], row_b[row], (ulong)count * k);
                    UNROLL for (uint i = 0; i < 4; i++) word[i][row] = sums.word[i];
                }
                UNROLL for (uint i = 0; i < 4; i++) fold_lanes(word[i], k);
                for (ulong v = 0; v < k; v++) {
                    global ELEMENT *to[LANES];
                    long values[LANES];
                    struct lane_products sums;
                    for (ulong i = 0; i < LANES; i++) {
                        ulong place = v * LANES + i;
                        to[i] = row_out[place / k] + (long)(place % k) * out_k_stride;
                        values[i] = flags & PRODUCTS_ADDED ? WIDEN(*to[i]) : 0;
                    }
                    ulong8 x = as_ulong8(vload8(0, values));
                    if (are_all((bits | x) >> 62 == 0)) {
                        UNROLL for (uint i = 0; i < 4; i++) sums.word[i] = word[i][v];
                        vstore8(as_long8(lane_products_reduce(&sums, x, p)), 0, values);
                        for (uint i = 0; i < LANES; i++)
                            *to[i] = (ELEMENT)values[i];
                    } else
                        for (ulong i = 0; i < LANES; i++) {
                            ulong place = v * LANES + i, j = place % k;
                            sum_products(to[i], row_a[place / k] + j, (long)k, row_b[place / k] + j,
                                         (long)k, count, q[j], flags & PRODUCTS_ADDED);
                        }
                }
            }
    }
}
