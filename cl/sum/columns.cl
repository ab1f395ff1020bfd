/*
 * Sums modulo q on vectors of eight elements, for devices with wide vectors and doubles. Work-items
 * read memory in order, a few rows at a time. They process blocks of columns, whose sums fit the
 * cache too.
 */

enum {
    ROWS = 4,        /* read at a time: memory is faster for several streams than for one */
    FETCH = 2 * ROWS /* the distance of prefetches, in rows */
};

/*
 * Sums of count < 2^30 numbers. A sum is high * 2^32 plus the part of low beyond that, modulo 2^64.
 * This part is the sum of the numbers' lower halves, in [0, 2^62).
 */
struct lane_sum {
    ulong8 low;  /* of the numbers, modulo 2^64 */
    ulong8 high; /* of their upper halves */
};

static inline ulong8 lane_sum_rest(const struct lane_sum *sum)
{
    return sum->low - (sum->high << 32);
}

/* Adds `rows` rows, stride apart, to the sums of their columns. The upper halves are signed:
 * sums[i].high is in [-2^61, 2^61). */
INLINE void add_rows(struct lane_sum *sums, ulong columns, global const ELEMENT *from, long stride,
                     uint rows)
{
    for (ulong i = 0; i < columns; i++) {
        struct lane_sum sum = sums[i];
        UNROLL for (uint row = 0; row < rows; row++) {
            if (rows > 1)
                PREFETCH(from + (row + FETCH) * stride + i * LANES);
            long8 x = load_vector(from + row * stride + i * LANES);
            sum.low += as_ulong8(x);
            sum.high += as_ulong8(x >> 32);
        }
        sums[i] = sum;
    }
}

/* The sum mod q in [0, q), with high signed. A sum of residues is below 2^31 times their number,
 * and thus nearly always below a large q. As unsigned numbers, negative sums are large. Shrinking a
 * value below q + q/2^8 + 2^17 leaves less than q + 1 + q/2^40. */
static inline ulong8 lane_sum_reduce(const struct lane_sum *sum, struct lane_divisor p)
{
    ulong8 high = sum->high;
    if (!are_all(high < p.q)) {
        ulong8 rest = lane_reduce(lane_magnitude(as_long8(high)), p);
        high = subtract_once(select(rest, p.q - rest, as_ulong8(as_long8(high) < 0)), p.q);
    }
    ulong8 rest = lane_shrink(lane_append(high, 32, lane_sum_rest(sum), p), p);
    return subtract_once(rest, p.q);
}

/* The sums of `columns` vectors of columns over count rows, which are stride apart. */
INLINE void sum_rows(struct lane_sum *sums, ulong columns, global const ELEMENT *from, long count,
                     long stride)
{
    long j = 0;
    for (ulong i = 0; i < columns; i++)
        sums[i].low = sums[i].high = 0;
    for (; j + ROWS <= count; j += ROWS)
        add_rows(sums, columns, from + j * stride, stride, ROWS);
    for (; j < count; j++)
        add_rows(sums, columns, from + j * stride, stride, 1);
}

/* out = sum of a over count elements, stride apart, mod q. Operands: out, a. Both have stride 1
 * along the last axis, whose size is a multiple of 8. table: `period` vectors of consecutive
 * moduli. */
KERNEL axis_modsum_vectors(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                           global const struct lane_divisor *table, ulong period, long count,
                           long stride)
{
    TAKE_SPACE(space);
    struct lane_sum sums[SUM_COLUMNS];
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong first = 0; first < span.length; first += SUM_COLUMNS * LANES) {
            ulong columns = min((ulong)SUM_COLUMNS, (span.length - first) / LANES);
            global ELEMENT *to = out + span.position[0] + first;
            ulong place = ((ulong)span.index[space.rank - 1] + first) / LANES % period;
            sum_rows(sums, columns, a + span.position[1] + first, count, stride);
            for (ulong i = 0; i < columns; i++) {
                store_vector(as_long8(lane_sum_reduce(&sums[i], table[place])), to + i * LANES);
                place = place + 1 == period ? 0 : place + 1;
            }
        }
}

/*
 * As axis_modsum_vectors, with [count,k] as a's last two axes, contiguous, of which the first one
 * is summed. k is 1, 2, 4 or 8: lane i of each vector belongs to out's element i % k. The space is
 * out without its last axis, which has stride out_stride. Operands: out, a. q: moduli, 1 or k.
 */
KERNEL axis_modsum_rows(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                        global const struct modulus *q, ulong moduli, long count, ulong k,
                        long out_stride)
{
    TAKE_SPACE(space);
    ulong size = (ulong)count * k, whole = size / LANES * LANES;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong r = 0; r < span.length; r++) {
            global const ELEMENT *from = a + POSITION(space, span, 1, r);
            global ELEMENT *to = out + POSITION(space, span, 0, r);
            struct lane_sum sum;
            ulong rest[LANES];
            long high[LANES];
            sum.low = sum.high = 0;
            for (ulong i = 0; i < whole; i += LANES) {
                PREFETCH(from + i + AHEAD);
                add_rows(&sum, 1, from + i, 0, 1);
            }
            vstore8(lane_sum_rest(&sum), 0, rest);
            vstore8(as_long8(sum.high), 0, high);
            for (ulong j = 0; j < k; j++) {
                struct wide total = wide_zero();
                for (ulong lane = j; lane < LANES; lane += k) {
                    total = wide_add(total, (long)rest[lane]);
                    total = wide_add_product(total, high[lane], (long)1 << 32);
                }
                for (ulong i = whole + j; i < size; i += k)
                    total = wide_add(total, WIDEN(from[i]));
                to[(long)j * out_stride] = (ELEMENT)wide_reduce(total, q[j % moduli]);
            }
        }
}
