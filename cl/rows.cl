/*
 * Negacyclic transforms for devices with wide vectors and few, strong compute units: a work-item
 * takes whole rows, one after another, and keeps a row in its caches from load to store.
 *
 * Butterflies work on vectors of eight residues, up to four stages in one pass over memory
 * (radix 16). Residues are lazy, as in D. Harvey, "Faster arithmetic for number-theoretic
 * transforms", 2014: in [0, 4q) in the forward transform, in [0, 2q] in the inverse, which needs
 * q < 2^62; a row with a larger modulus goes through stages.cl. Products with a twiddle drop the
 * lowest of the four partial products of 32 bits: see multiply_lazy.
 *
 * n >= 128. The tensors' types are not fixed: compiling this takes long, and a test for every eight
 * elements costs nothing.
 */
#if CHUNKS != 1 || LOCAL_SIZE != 1
#error "rows need CHUNKS=1 and LOCAL_SIZE=1"
#endif

#include "stages.cl"

#include "lanes.cl"

enum { LAST_RADIX = 16, GROUP = LANES * LAST_RADIX, CACHED_ROW = 4096 };

/* (x, y) ← (x + y*w, x - y*w), all in [0, 4q) */
static inline void forward_butterfly(ulong8 *x, ulong8 *y, ulong8 factor, ulong8 quotient,
                                     struct lane_modulus m)
{
    ulong8 a = halve_range(*x, m), b = multiply_lazy(*y, factor, quotient, m);
    *x = a + b;
    *y = a + m.twice - b;
}

/* (x, y) ← (x + y, (x - y)*w), all in [0, 2q] */
static inline void inverse_butterfly(ulong8 *x, ulong8 *y, ulong8 factor, ulong8 quotient,
                                     struct lane_modulus m)
{
    ulong8 a = *x, b = *y;
    *x = halve_range(a + b, m);
    *y = multiply_lazy(a + m.twice - b, factor, quotient, m);
}

/* Of the 2^s blocks of stage s, s = 0 ... log2(RADIX)-1, block b has its twiddle at 2^s + b: the
 * same order in which a radix-RADIX pass and a whole transform have them. */
#define FOR_EACH_FORWARD(RADIX, stage, block, i)                                                   \
    UNROLL for (uint stage = 1; stage < RADIX; stage *= 2)                                         \
        UNROLL for (uint block = 0; block < stage; block++)                                        \
            UNROLL for (uint i = 0; i < RADIX / 2 / stage; i++)
#define FOR_EACH_INVERSE(RADIX, stage, block, i)                                                   \
    UNROLL for (uint stage = RADIX / 2; stage > 0; stage /= 2)                                     \
        UNROLL for (uint block = 0; block < stage; block++)                                        \
            UNROLL for (uint i = 0; i < RADIX / 2 / stage; i++)
#define FIRST(RADIX, stage, block, i) (block * (RADIX / stage) + i)
#define SECOND(RADIX, stage, block, i) (block * (RADIX / stage) + i + RADIX / 2 / stage)

/*
 * log2(RADIX) stages over the size elements at x, which are block number m - m0 of the m0 blocks
 * of the first of these stages: its twiddle is number m. size / RADIX is at least 8.
 */
#define PASSES(RADIX)                                                                              \
    static inline void load_twiddles_##RADIX(ulong8 *factor, ulong8 *quotient,                     \
                                             global const struct twiddle *twiddles, ulong m)       \
    {                                                                                              \
        UNROLL for (uint stage = 1; stage < RADIX; stage *= 2)                                     \
            UNROLL for (uint block = 0; block < stage; block++) {                                  \
                struct twiddle w = twiddles[stage * m + block];                                    \
                factor[stage + block] = (ulong8)(w.factor);                                        \
                quotient[stage + block] = (ulong8)(w.quotient);                                    \
            }                                                                                      \
    }                                                                                              \
    static inline ulong8 forward_pass_##RADIX(global ulong *x, global const ulong *from,           \
                                              ulong size, global const struct twiddle *twiddles,   \
                                              ulong m, struct lane_modulus modulus)                 \
    {                                                                                              \
        ulong8 inputs = (ulong8)(0);                                                               \
        ulong8 factor[RADIX], quotient[RADIX];                                                     \
        load_twiddles_##RADIX(factor, quotient, twiddles, m);                                      \
        ulong step = size / RADIX;                                                                 \
        for (ulong j = 0; j < step; j += LANES) {                                                  \
            ulong8 a[RADIX];                                                                       \
            UNROLL for (uint i = 0; i < RADIX; i++) {                                              \
                a[i] = vload8(0, from + i * step + j);                                             \
                inputs |= a[i];                                                                    \
            }                                                                                      \
            FOR_EACH_FORWARD(RADIX, stage, block, i)                                               \
            forward_butterfly(&a[FIRST(RADIX, stage, block, i)],                                   \
                              &a[SECOND(RADIX, stage, block, i)], factor[stage + block],           \
                              quotient[stage + block], modulus);                                   \
            UNROLL for (uint i = 0; i < RADIX; i++) vstore8(a[i], 0, x + i * step + j);            \
        }                                                                                          \
        return inputs;                                                                             \
    }                                                                                              \
    /* With scale, the first half of the results is multiplied by it, and all are reduced. */      \
    static inline void inverse_pass_##RADIX(global ulong *x, ulong size,                           \
                                            global const struct twiddle *twiddles, ulong m,        \
                                            struct lane_modulus modulus, const struct twiddle *scale, \
                                            const struct twiddle *scaled_first)                    \
    {                                                                                              \
        ulong8 factor[RADIX], quotient[RADIX];                                                     \
        load_twiddles_##RADIX(factor, quotient, twiddles, m);                                      \
        if (scale) {                                                                               \
            factor[1] = (ulong8)(scaled_first->factor);                                            \
            quotient[1] = (ulong8)(scaled_first->quotient);                                        \
        }                                                                                          \
        ulong step = size / RADIX;                                                                 \
        for (ulong j = 0; j < step; j += LANES) {                                                  \
            ulong8 a[RADIX];                                                                       \
            UNROLL for (uint i = 0; i < RADIX; i++) a[i] = vload8(0, x + i * step + j);            \
            FOR_EACH_INVERSE(RADIX, stage, block, i)                                               \
            inverse_butterfly(&a[FIRST(RADIX, stage, block, i)],                                   \
                              &a[SECOND(RADIX, stage, block, i)], factor[stage + block],           \
                              quotient[stage + block], modulus);                                   \
            if (scale) {                                                                           \
                UNROLL for (uint i = 0; i < RADIX / 2; i++)                                        \
                    a[i] = multiply_lazy(a[i], (ulong8)(scale->factor),                            \
                                         (ulong8)(scale->quotient), modulus);                      \
                UNROLL for (uint i = 0; i < RADIX; i++) a[i] = reduce_lazy(a[i], modulus);         \
            }                                                                                      \
            UNROLL for (uint i = 0; i < RADIX; i++) vstore8(a[i], 0, x + i * step + j);            \
        }                                                                                          \
    }

PASSES(2)
PASSES(4)
PASSES(8)
PASSES(16)

/* a[i].lane[j] ↔ a[j].lane[i] */
static inline void transpose(ulong8 *a)
{
    ulong8 b[LANES], c[LANES];
    UNROLL for (uint i = 0; i < LANES; i += 2) {
        ulong8 u = a[i], v = a[i + 1];
        b[i] = (ulong8)(u.s0, v.s0, u.s2, v.s2, u.s4, v.s4, u.s6, v.s6);
        b[i + 1] = (ulong8)(u.s1, v.s1, u.s3, v.s3, u.s5, v.s5, u.s7, v.s7);
    }
    UNROLL for (uint i = 0; i < LANES; i += 4)
        UNROLL for (uint j = i; j < i + 2; j++) {
            ulong8 u = b[j], v = b[j + 2];
            c[j] = (ulong8)(u.s01, v.s01, u.s45, v.s45);
            c[j + 2] = (ulong8)(u.s23, v.s23, u.s67, v.s67);
        }
    UNROLL for (uint i = 0; i < LANES / 2; i++) {
        a[i] = (ulong8)(c[i].lo, c[i + 4].lo);
        a[i + 4] = (ulong8)(c[i].hi, c[i + 4].hi);
    }
}

/*
 * The last four stages of the forward transform, the first four of the inverse, work on blocks of
 * 16 elements, eight blocks at a time: lane l of a[i] is element i of block l. The eight blocks lie
 * side by side. Where the other end of the row is in bit-reversed order as well, which puts it
 * into natural order, they are those whose reversed numbers are eight in a row: then there element
 * i of the eight blocks is one vector, and that side needs no transposition.
 */
#define REVERSED_LANE(lane) (((lane) & 1) << 2 | ((lane) & 2) | (lane) >> 2)
#define REVERSED_ELEMENT(i) (((i) & 1) << 3 | ((i) & 2) << 1 | ((i) & 4) >> 1 | (i) >> 3)
#define BLOCK_AT(lane, n, reversed) ((reversed) ? REVERSED_LANE(lane) * ((n) / 8) : (lane) * LAST_RADIX)

/* The number of blocks before group h of eight, times 16. */
static inline ulong group_position(ulong group, ulong n, bool reversed)
{
    if (!reversed)
        return group * GROUP;
    ulong position = 0;
    for (ulong m = n / GROUP; m > 1; m /= 2, group /= 2)
        position = position << 1 | (group & 1);
    return position * LAST_RADIX;
}

static inline void load_blocks(ulong8 *a, global const ulong *x, ulong n, bool reversed)
{
    UNROLL for (uint lane = 0; lane < LANES; lane++) {
        a[lane] = vload8(0, x + BLOCK_AT(lane, n, reversed));
        a[lane + LANES] = vload8(0, x + BLOCK_AT(lane, n, reversed) + LANES);
    }
    transpose(a);
    transpose(a + LANES);
}

static inline void store_blocks(ulong8 *a, global ulong *x, ulong n, bool reversed)
{
    transpose(a);
    transpose(a + LANES);
    UNROLL for (uint lane = 0; lane < LANES; lane++) {
        vstore8(a[lane], 0, x + BLOCK_AT(lane, n, reversed));
        vstore8(a[lane + LANES], 0, x + BLOCK_AT(lane, n, reversed) + LANES);
    }
}

/* The twiddle t of eight blocks: stage + block, as in FOR_EACH_FORWARD. */
#define LANE_FACTOR(t) vload8(2 * (t) - 2, lane_twiddles)
#define LANE_QUOTIENT(t) vload8(2 * (t) - 1, lane_twiddles)

/* The last four stages of size elements of x, part of a row of n, with results in [0, q): in
 * place, or reversed into the row natural. lane_twiddles: see derive.cl, for that order. */
static inline void forward_last(global ulong *x, ulong size, ulong n, global ulong *natural,
                                global const ulong *lane_twiddles, struct lane_modulus modulus)
{
    bool reversed = natural != 0;
    for (ulong group = 0; group < size / GROUP; group++) {
        ulong8 a[LAST_RADIX];
        global ulong *blocks = x + group_position(group, n, reversed);
        load_blocks(a, blocks, n, reversed);
        FOR_EACH_FORWARD(LAST_RADIX, stage, block, i)
        forward_butterfly(&a[FIRST(LAST_RADIX, stage, block, i)],
                          &a[SECOND(LAST_RADIX, stage, block, i)], LANE_FACTOR(stage + block),
                          LANE_QUOTIENT(stage + block), modulus);
        UNROLL for (uint i = 0; i < LAST_RADIX; i++) a[i] = reduce_lazy(a[i], modulus);
        if (reversed) {
            UNROLL for (uint i = 0; i < LAST_RADIX; i++)
                vstore8(a[i], group, natural + REVERSED_ELEMENT(i) * (n / LAST_RADIX));
        } else {
            store_blocks(a, blocks, n, reversed);
        }
        lane_twiddles += 2 * LANES * (LAST_RADIX - 1);
    }
}

/* The first four stages of the inverse, of size elements of from, which may be x, or with reversed
 * of a whole row in natural order. Values are in [0, 2q]; returns the bits of
 * all of them. */
static inline ulong8 inverse_first(global ulong *x, global const ulong *from, ulong size, ulong n,
                                   bool reversed,
                                   global const ulong *lane_twiddles, struct lane_modulus modulus)
{
    ulong8 inputs = (ulong8)(0);
    for (ulong group = 0; group < size / GROUP; group++) {
        ulong8 a[LAST_RADIX];
        ulong position = group_position(group, n, reversed);
        if (reversed) {
            UNROLL for (uint i = 0; i < LAST_RADIX; i++)
                a[i] = vload8(group, from + REVERSED_ELEMENT(i) * (n / LAST_RADIX));
        } else {
            load_blocks(a, from + position, n, reversed);
        }
        UNROLL for (uint i = 0; i < LAST_RADIX; i++) inputs |= a[i];
        FOR_EACH_INVERSE(LAST_RADIX, stage, block, i)
        inverse_butterfly(&a[FIRST(LAST_RADIX, stage, block, i)],
                          &a[SECOND(LAST_RADIX, stage, block, i)], LANE_FACTOR(stage + block),
                          LANE_QUOTIENT(stage + block), modulus);
        store_blocks(a, x + position, n, reversed);
        lane_twiddles += 2 * LANES * (LAST_RADIX - 1);
    }
    return inputs;
}

/* How the stages before the last four are divided: a first pass of radix 2, 4 or 8 if their number
 * is not a multiple of 4, then passes of radix 16. They go over the whole row until its blocks fit
 * the innermost cache, then one such part of the row after another goes through all that is left. */
static inline ulong first_radix(ulong n)
{
    return (ulong)1 << (63 - clz(n / LAST_RADIX)) % 4;
}

/* The lane twiddles of the blocks from x[begin] on, and where those of modulus j begin. */
#define LANE_TWIDDLES_OF(j, n) ((j) * ((n) / LAST_RADIX * 2 * (LAST_RADIX - 1)))
#define LANE_TWIDDLES(begin) (lane_twiddles + LANE_TWIDDLES_OF(1, begin))

/*
 * Transforms from, which may be x, into x; or, where there is a row natural, with x for scratch,
 * into that in natural order. Results are in [0, q). Returns the bits of all inputs: only where
 * these are in [0, 4q) are the results right.
 */
static inline ulong8 forward_row(global ulong *x, global const ulong *from, global ulong *natural,
                                 ulong n, global const struct twiddle *twiddles,
                                 global const ulong *lane_twiddles, struct lane_modulus modulus)
{
    ulong first = first_radix(n), part = n; /* first: blocks at the start of a part */
    ulong8 inputs = (ulong8)(0);
    if (first == 2)
        inputs = forward_pass_2(x, from, n, twiddles, 1, modulus);
    else if (first == 4)
        inputs = forward_pass_4(x, from, n, twiddles, 1, modulus);
    else if (first == 8)
        inputs = forward_pass_8(x, from, n, twiddles, 1, modulus);
    for (ulong begin = 0; begin < n; begin += part) {
        for (ulong blocks = first; n / blocks > LAST_RADIX; blocks *= 16) {
            ulong size = n / blocks;
            if (part == n && size <= CACHED_ROW) {
                part = max(size, (ulong)GROUP);
                first = blocks;
            }
            for (ulong at = begin; at < begin + part; at += size) {
                ulong8 seen = forward_pass_16(x + at, blocks == 1 ? from : x + at, size, twiddles,
                                              blocks + at / size, modulus);
                inputs = blocks == 1 ? seen : inputs;
            }
        }
        bool done = begin + part == n;
        if (!natural)
            forward_last(x + begin, part, n, 0, LANE_TWIDDLES(begin), modulus);
        else if (done) /* its blocks come from all over the row */
            forward_last(x, n, n, natural, lane_twiddles, modulus);
    }
    return inputs;
}

/*
 * Transforms from, which may be x, and with reversed is in natural order, into x; results are in
 * [0, q). n_inv: what they are multiplied by; scaled_first: n_inv * ipsi[1]. Returns the bits of
 * all inputs: only where these are in [0, 2q] are the results right.
 */
static inline ulong8 inverse_row(global ulong *x, global const ulong *from, bool reversed, ulong n,
                                 global const struct twiddle *twiddles,
                                 global const ulong *lane_twiddles, struct lane_modulus modulus,
                                 const struct twiddle *n_inv, const struct twiddle *scaled_first)
{
    ulong8 inputs = (ulong8)(0);
    ulong first = first_radix(n), part = n / first;
    while (part > CACHED_ROW)
        part /= 16;
    part = max(part, (ulong)GROUP);
    for (ulong begin = 0; begin < n; begin += part) {
        if (!reversed || begin == 0) { /* reversed blocks go all over the row */
            ulong8 seen = inverse_first(x + begin, from + begin, reversed ? n : part, n, reversed,
                                        LANE_TWIDDLES(begin), modulus);
            inputs |= seen;
        }
        for (ulong blocks = n / LAST_RADIX / 16; blocks >= first; blocks /= 16) {
            ulong size = n / blocks;
            bool whole = size > part;
            if (whole && begin + part < n)
                break; /* what spans several parts waits for the last of them */
            for (ulong at = whole ? 0 : begin; at < begin + part; at += size)
                inverse_pass_16(x + at, size, twiddles, blocks + at / size, modulus,
                                blocks == 1 ? n_inv : 0, scaled_first);
        }
    }
    if (first == 2)
        inverse_pass_2(x, n, twiddles, 1, modulus, n_inv, scaled_first);
    else if (first == 4)
        inverse_pass_4(x, n, twiddles, 1, modulus, n_inv, scaled_first);
    else if (first == 8)
        inverse_pass_8(x, n, twiddles, 1, modulus, n_inv, scaled_first);
    return inputs;
}

/* ---------------------------------------------------------------- load and store */

/* Residues in [0, 2q] of any integers; one: the twiddle of the factor 1. */
static inline ulong8 reduce_any(long8 x, struct twiddle one, struct lane_modulus modulus)
{
    ulong8 rest = multiply_lazy(lane_magnitude(x), (ulong8)(one.factor), (ulong8)(one.quotient),
                                modulus);
    return select(rest, modulus.twice - rest, as_ulong8(x < 0));
}

/* A tensor in memory: size is that of its elements, 1, 4 or 8 bytes. */
struct row {
    global char *memory;
    long stride;
    uint size;
};

static inline long load_element(struct row row, long i)
{
    global char *at = row.memory + i * row.stride * row.size;
    return row.size == 8 ? *(global long *)at : row.size == 4 ? *(global int *)at : *at;
}

static inline void store_element(struct row row, long i, ulong value)
{
    global char *at = row.memory + i * row.stride * row.size;
    if (row.size == 8)
        *(global long *)at = (long)value;
    else
        *(global int *)at = (int)value;
}

/* Elements i to i + 7. */
static inline long8 load_lanes(struct row row, long i)
{
    if (row.stride == 1 && row.size == 8)
        return vload8(0, (global long *)row.memory + i);
    if (row.stride == 1 && row.size == 4)
        return convert_long8(vload8(0, (global int *)row.memory + i));
    if (row.stride == 1)
        return convert_long8(vload8(0, row.memory + i));
    return (long8)(load_element(row, i), load_element(row, i + 1), load_element(row, i + 2),
                   load_element(row, i + 3), load_element(row, i + 4), load_element(row, i + 5),
                   load_element(row, i + 6), load_element(row, i + 7));
}

/* x[u], or x[perm[u]] with a perm, = residue in [0, 2q] of element u, for n elements. */
static inline void load_row(global ulong *x, struct row in, ulong n, global const uint *perm,
                            struct twiddle one, struct lane_modulus modulus)
{
    for (ulong u = 0; u < n; u += LANES) {
        long8 value = load_lanes(in, (long)u);
        /* Most inputs are residues already; negative ones are large when seen as unsigned. */
        ulong8 residue = as_ulong8(value);
        if (any(residue >= modulus.q))
            residue = reduce_any(value, one, modulus);
        if (!perm) {
            vstore8(residue, 0, x + u);
            continue;
        }
        uint8 to = vload8(0, perm + u);
        x[to.s0] = residue.s0;
        x[to.s1] = residue.s1;
        x[to.s2] = residue.s2;
        x[to.s3] = residue.s3;
        x[to.s4] = residue.s4;
        x[to.s5] = residue.s5;
        x[to.s6] = residue.s6;
        x[to.s7] = residue.s7;
    }
}

/* Element u of out = x[u], or x[perm[u]] with a perm. */
static inline void store_row(struct row out, global const ulong *x, ulong n,
                             global const uint *perm)
{
    for (ulong u = 0; u < n; u++)
        store_element(out, (long)u, x[perm ? perm[u] : u]);
}

/* The same for any modulus below 2^63. */
static inline void load_row_exactly(global ulong *x, struct row in, ulong n,
                                    global const uint *perm, struct modulus modulus)
{
    for (ulong u = 0; u < n; u++)
        x[perm ? perm[u] : u] = reduce_signed(load_element(in, (long)u), modulus);
}

/* ---------------------------------------------------------------- kernels */

/* Row number row of [l,r,k,n] in operand k of the space. */
static inline struct row row_of(const struct space *space, ulong row, uint operand,
                                global char *memory, uint size)
{
    long r = space->shape[1], k = space->shape[2];
    long modulus = (long)(row % (ulong)k), outer = (long)(row / (ulong)k);
    const struct operand *view = &space->operand[operand];
    long position = view->offset + outer / r * view->stride[0] + outer % r * view->stride[1] +
                    modulus * view->stride[2];
    struct row result = {memory + position * size, view->stride[3], size};
    return result;
}

/*
 * out = transform of in. The space is [l,r,k,n]; operands: out, in, of elements of out_size and
 * in_size bytes. Work-items take turns with the rows; scratch has n elements for each work-item.
 * q [k]; twiddles [k,n]; lane_twiddles and reversed_lane_twiddles made of them; n_inv [k] (inverse
 * only). perm [n] is used where use_perm is not 0; perm[n] tells its kind, see derive.cl.
 *
 * Rows of 64-bit elements side by side are read, and written, where they are. That their values
 * are residues is found out on the way: where they are not, the row is done again, reduced.
 */
#define ROWS_PARAMETERS                                                                            \
    struct space space, global char *out_memory, global char *in_memory, uint out_size,            \
        uint in_size, global ulong *scratch, global const struct modulus *q,                       \
        global const struct twiddle *twiddles, global const ulong *lane_twiddles,                  \
        global const ulong *reversed_lane_twiddles, global const uint *perm

static inline bool is_direct(struct row row)
{
    return row.size == sizeof(ulong) && row.stride == 1;
}

KERNEL forward_rows(ROWS_PARAMETERS, uint use_perm)
{
    ulong n = (ulong)space.shape[3], k = (ulong)space.shape[2];
    bool reversed = use_perm && perm[n] & 1;
    use_perm = use_perm && !(perm[n] & 2);
    for (ulong row = get_group_id(0); row * n < space.end; row += get_num_groups(0)) {
        struct row in = row_of(&space, row, 1, in_memory, in_size);
        struct row out = row_of(&space, row, 0, out_memory, out_size);
        struct modulus modulus = q[row % k];
        global const struct twiddle *row_twiddles = twiddles + row % k * n;
        bool in_place = is_direct(out) && !use_perm;
        global ulong *x = in_place ? (global ulong *)out.memory : scratch + get_group_id(0) * n;
        if (modulus.value >> 62) {
            load_row_exactly(x, in, n, 0, modulus);
            forward_stages(x, n, modulus.value, row_twiddles);
            if (!in_place)
                store_row(out, x, n, use_perm ? perm : 0);
            continue;
        }
        struct lane_modulus lazy = {(ulong8)(modulus.value), (ulong8)(2 * modulus.value)};
        bool natural = reversed && is_direct(out);
        /* What is read again must not have been overwritten. */
        bool directly = is_direct(in) && (in_memory != out_memory || !(in_place || natural));
        /* A power of two above q and at most 4q: numbers below it have no bit from there on. */
        ulong limit = (ulong)2 << (64 - modulus.shift);
        for (;; directly = false) {
            if (!directly)
                load_row(x, in, n, 0, make_twiddle(1 % modulus.value, modulus), lazy);
            ulong8 inputs = forward_row(
                x, directly ? (global ulong *)in.memory : x,
                natural ? (global ulong *)out.memory : 0, n, row_twiddles,
                (natural ? reversed_lane_twiddles : lane_twiddles) + LANE_TWIDDLES_OF(row % k, n),
                lazy);
            if (!directly || all(inputs < limit))
                break;
        }
        if (!in_place && !natural)
            store_row(out, x, n, use_perm ? perm : 0);
    }
}

KERNEL inverse_rows(ROWS_PARAMETERS, global const struct twiddle *n_inv)
{
    ulong n = (ulong)space.shape[3], k = (ulong)space.shape[2];
    bool reversed = perm[n] & 1, identity = perm[n] & 2;
    for (ulong row = get_group_id(0); row * n < space.end; row += get_num_groups(0)) {
        struct row in = row_of(&space, row, 1, in_memory, in_size);
        struct row out = row_of(&space, row, 0, out_memory, out_size);
        struct modulus modulus = q[row % k];
        struct twiddle scale = n_inv[row % k];
        global const struct twiddle *row_twiddles = twiddles + row % k * n;
        /* In one memory, a permuted load would overwrite what it has not read yet. */
        bool in_place = is_direct(out) && (in_memory != out_memory || identity);
        global ulong *x = in_place ? (global ulong *)out.memory : scratch + get_group_id(0) * n;
        if (modulus.value >> 62) {
            load_row_exactly(x, in, n, identity ? 0 : perm, modulus);
            inverse_stages(x, n, modulus.value, row_twiddles);
            for (ulong u = 0; u < n; u++)
                x[u] = multiply_twiddle(x[u], scale, modulus.value);
        } else {
            struct lane_modulus lazy = {(ulong8)(modulus.value), (ulong8)(2 * modulus.value)};
            struct twiddle scaled_first =
                make_twiddle(multiply_mod(scale.factor, row_twiddles[1].factor, modulus), modulus);
            /* A power of two above q and at most 2q: numbers below it have no bit from there on. */
            ulong limit = (ulong)1 << (64 - modulus.shift);
            /* What is read again must not have been overwritten. */
            bool directly = is_direct(in) && (reversed || identity) &&
                            !(in_place && in_memory == out_memory);
            for (;; directly = false) {
                if (!directly)
                    load_row(x, in, n, identity ? 0 : perm,
                             make_twiddle(1 % modulus.value, modulus), lazy);
                bool natural = directly && !identity;
                ulong8 inputs = inverse_row(
                    x, directly ? (global ulong *)in.memory : x, natural, n, row_twiddles,
                    (natural ? reversed_lane_twiddles : lane_twiddles) +
                        LANE_TWIDDLES_OF(row % k, n),
                    lazy, &scale, &scaled_first);
                if (!directly || all(inputs < limit))
                    break;
            }
        }
        if (!in_place)
            store_row(out, x, n, 0);
    }
}
