/* Sums modulo q whose terms work-items share out among them, for GPUs: so sums of few columns fill
 * a device, and neighbours read neighbours where the terms of a sum lie beside each other. ELEMENT:
 * int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

/* How a work-group does the sums of inner * rows columns. The work-items of inner columns stand
 * together, for one term of them after the other; see share_terms in sum.c. */
struct share {
    uint rep;         /* which of several sums of a column; may be one too many */
    uint part, parts; /* a work-item takes each parts-th term, from that on */
    uint apart;       /* work-items from one rep to the next */
    struct span span; /* the column; of length 0 where there is none */
};

static inline struct share share_of(const struct space *space, uint inner, uint parts, uint rows)
{
    uint id = (uint)get_local_id(0), rest = id / inner, row = rest / parts;
    struct share share;
    share.part = rest - row * parts;
    share.parts = parts;
    share.rep = row / rows;
    share.apart = inner * parts * rows;
    uint column = (row - share.rep * rows) * inner + (id - rest * inner);
    share.span = span_at(space, (count_t)get_group_id(0) * inner * rows + column);
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

/*
 * As axis_modsum, in segments of the terms: column i * outputs + c of the space is the sum of
 * output c's terms from i * segment on, at most segment. Operands: out, a at the segment's first
 * term, q.
 */
KERNEL axis_modsum_local(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                         global const struct modulus *q, long count, long stride, long segment,
                         uint outputs, uint inner, uint parts, uint rows)
{
    TAKE_SPACE(space);
    local ulong words[3 * LOCAL_SIZE];
    struct share share = share_of(&space, inner, parts, rows);
    bool is_there = share.span.length > 0 && share.rep == 0;
    struct wide sum = wide_zero();
    if (is_there) {
        long left = min(segment, count - (long)(share.span.linear / outputs) * segment);
        place_t at = POSITION(space, share.span, 1, 0) + share.part * (place_t)stride;
        for (long j = share.part; j < left; j += parts, at += parts * (place_t)stride)
            sum = wide_add(sum, WIDEN(AT(a, at)));
    }
    sum = add_parts(words, sum, &share, inner);
    if (is_there && share.part == 0)
        AT(out, POSITION(space, share.span, 0, 0)) =
            (ELEMENT)wide_reduce(sum, q[POSITION(space, share.span, 2, 0)]);
}

/* Factors are a work-item's own, or with SEVERAL_REPS shared. Not a matter of reps alone: PoCL takes
 * long to compile barriers that are passed at times. */
#ifdef SEVERAL_REPS
#define FACTORS_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#else
#define FACTORS_BARRIER()
#endif

/* -D SAME_ALONG_N: a is the same for all columns of a work-group, and its elements for a round of
 * terms are read once, into what add_parts uses later. */
#ifdef SAME_ALONG_N
#define A_OF_TERM(i) (long)words[share.rep * reps * parts + (i)*parts + share.part]
#else
#define A_OF_TERM(i) WIDEN(AT(a, a_at + (place_t)term * (place_t)a_stride))
#endif

/*
 * As modmul_axis_sum. The space is [blocks of reps,k,n], or where n_last is 0 [blocks of reps,n,k];
 * a block has so many reps as a work-group does, which read the elements of b once together, or
 * what is left of all_reps. Strides along reps are given apart.
 */
KERNEL modmul_axis_sum_local(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                             global const ELEMENT *b, global const struct modulus *q,
                             global const uint *perm, uint flags, long count, long a_stride,
                             long b_stride, long out_n_stride, long b_n_stride,
                             long out_reps_stride, long a_reps_stride, uint all_reps, uint n_last,
                             uint reps, uint inner, uint parts, uint rows)
{
    TAKE_SPACE(space);
    local ulong words[3 * LOCAL_SIZE];
    local long factors[LOCAL_SIZE];
    struct share share = share_of(&space, inner, parts, rows);
    uint id = (uint)get_local_id(0), last = RANK(space) - 1;
    uint rep = (uint)share.span.index[last - 2] * reps + share.rep;
    bool reads = share.span.length > 0 && share.rep < reps, adds = reads && rep < all_reps;
    count_t l = n_last ? share.span.index[last] : share.span.index[last - 1];
    count_t m = l;
    if (reads && share.part == 0 && share.rep == 0) /* once for a column */
        factors[id] = flags & PRODUCTS_PERMUTED ? perm[l] : l;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (reads)
        m = (count_t)factors[id - share.part * inner - share.rep * share.apart];
    barrier(CLK_LOCAL_MEM_FENCE);
    place_t out_at = POSITION(space, share.span, 0, 0) + (place_t)m * (place_t)out_n_stride +
                     share.rep * (place_t)out_reps_stride;
    place_t a_at = POSITION(space, share.span, 1, 0) + share.rep * (place_t)a_reps_stride;
    place_t b_at = POSITION(space, share.span, 2, 0) + (place_t)m * (place_t)b_n_stride;
    struct wide sum = wide_zero();
    if (adds && share.part == 0 && flags & PRODUCTS_ADDED)
        sum = wide_add(sum, WIDEN(AT(out, out_at)));
    for (long first = share.part; first - share.part < count; first += reps * parts) {
        long term = first + share.rep * parts;
        FACTORS_BARRIER();
        if (reads && term < count)
            factors[id] = WIDEN(AT(b, b_at + (place_t)term * (place_t)b_stride));
#ifdef SAME_ALONG_N
        uint a_rep = id / (reps * parts);
        term = first - share.part + (id - a_rep * reps * parts);
        if (a_rep < reps && rep - share.rep + a_rep < all_reps && term < count)
            words[id] = (ulong)WIDEN(AT(a, a_at + (place_t)term * (place_t)a_stride +
                                               ((place_t)a_rep - (place_t)share.rep) *
                                                   (place_t)a_reps_stride));
#endif
        FACTORS_BARRIER();
        term = first;
        for (uint i = 0; i < reps; i++, term += parts)
            if (adds && term < count)
                sum = wide_add_product(sum, A_OF_TERM(i),
                                       factors[id - (share.rep - i) * share.apart]);
    }
#ifdef SAME_ALONG_N
    barrier(CLK_LOCAL_MEM_FENCE); /* words are read until here */
#endif
    sum = add_parts(words, sum, &share, inner);
    if (adds && share.part == 0)
        AT(out, out_at) = (ELEMENT)wide_reduce(sum, q[POSITION(space, share.span, 3, 0)]);
}
