/* Sums modulo q for GPUs, whose terms are divided among work-items. Sums with few columns then fill
 * a device, and neighbours read neighbours if the terms of a sum are adjacent. ELEMENT: int or
 * long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

/* How a work-group computes the sums of inner * rows columns. The work-items of inner columns are
 * consecutive, for one term after the other; see share_terms in sum.c. */
struct share {
    uint part, parts; /* a work-item takes every parts-th term, from term `part` on */
    struct span span; /* the column; of length 0 if it has none */
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

/* Adds up the sums of a column's parts. Part 0 gets the result. words has 3 * LOCAL_SIZE words:
 * word i of all work-items is contiguous. The parts of a column are inner apart. */
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
        /* Work-items after the last column have no column. Beyond LOCAL_SIZE there is nothing to
         * add. */
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
 * As modmul_axis_sum without a permutation. With -D SUMMED it has no b, as axis_modsum. Terms are
 * divided into segments. Column i * outputs + c of the space sums at most `segment` terms of output
 * c, from term i * segment on. Operands: out, a and b at the segment's first term, q.
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
