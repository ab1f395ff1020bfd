/* Sums modulo q whose terms work-items share out among them, for GPUs: so sums of few columns fill
 * a device, and neighbours read neighbours where the terms of a sum lie beside each other. ELEMENT:
 * int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

/* How a work-group does the sums of inner * rows columns. The work-items of inner columns stand
 * together, for one term of them after the other; see share_terms in sum.c. */
struct share {
    uint part, parts; /* a work-item takes each parts-th term, from that on */
    struct span span; /* the column; of length 0 where there is none */
};

static inline struct share share_of(const struct space *space, uint inner, uint parts, uint rows)
{
    uint id = (uint)get_local_id(0), rest = id / inner, row = rest / parts;
    struct share share;
    share.part = rest - row * parts;
    share.parts = parts;
    uint column = row * inner + (id - rest * inner);
    share.span = span_at(space, (count_t)get_group_id(0) * inner * rows + column);
    if (row >= rows)
        share.span.length = 0;
    return share;
}

/* The sum of what a column's parts have, for part 0. words: 3 * LOCAL_SIZE, with word i of
 * work-items side by side, those of a column's parts inner apart. */
static inline struct wide add_parts(local ulong *words, struct wide sum, const struct share *share,
                                    uint inner)
{
    local ulong *at = words + get_local_id(0);
    for (uint left = share->parts, kept; left > 1; left = kept) {
        kept = (left + 1) / 2;
        if (share->part >= kept && share->part < left) {
            at[0] = sum.low;
            at[LOCAL_SIZE] = sum.middle;
            at[2 * LOCAL_SIZE] = (ulong)sum.high;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        /* Behind the last column are work-items without one, and without others behind them. */
        if (share->part + kept < left && get_local_id(0) + kept * inner < LOCAL_SIZE) {
            local const ulong *other = at + kept * inner;
            struct wide more = {other[0], other[LOCAL_SIZE], (long)other[2 * LOCAL_SIZE]};
            sum = wide_join(sum, more);
        }
    }
    return sum;
}

#ifdef SUMMED
#define FACTOR(b, at) 1
#else
#define FACTOR(b, at) WIDEN(AT(b, at))
#endif

/*
 * As modmul_axis_sum without a permutation, or with -D SUMMED, without b, as axis_modsum. Terms are in
 * segments: column i * outputs + c of the space is the sum of output c's terms from i * segment on,
 * at most segment. Operands: out, a and b at the segment's first term, q.
 */
KERNEL axis_sum_local(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                      global const ELEMENT *b, global const struct modulus *q,
                      global const uint *perm, uint flags, long count, long a_stride, long b_stride,
                      long segment, uint outputs, uint inner, uint parts, uint rows)
{
    TAKE_SPACE(space);
    local ulong words[3 * LOCAL_SIZE];
    struct share share = share_of(&space, inner, parts, rows);
    bool is_there = share.span.length > 0;
    place_t out_at = POSITION(space, share.span, 0, 0);
    place_t a_at = POSITION(space, share.span, 1, 0) + share.part * (place_t)a_stride;
    place_t b_at = POSITION(space, share.span, 2, 0) + share.part * (place_t)b_stride;
    struct wide sum = wide_zero();
    if (is_there) {
        long left = min(segment, count - (long)(share.span.linear / outputs) * segment);
        if (share.part == 0 && flags & PRODUCTS_ADDED)
            sum = wide_add(sum, WIDEN(AT(out, out_at)));
        for (long j = share.part; j < left; j += parts) {
            sum = wide_add_product(sum, WIDEN(AT(a, a_at)), FACTOR(b, b_at));
            a_at += parts * (place_t)a_stride;
            b_at += parts * (place_t)b_stride;
        }
    }
    sum = add_parts(words, sum, &share, inner);
    if (is_there && share.part == 0)
        AT(out, out_at) = (ELEMENT)wide_reduce(sum, q[POSITION(space, share.span, 3, 0)]);
}
