/*
 * Negacyclic transforms for GPUs: many thin work-items, local memory, coalesced accesses.
 *
 * A work-group loads TILES tiles into local memory, does STAGES stages there, and stores them; up
 * to LOG2_RADIX stages at a time are done in registers, on 2^LOG2_RADIX elements of each work-item.
 * A tile has TILE = 2^LOG2_TILE elements of each of ROWS rows:
 *   - without COLUMNS, a block of TILE elements side by side, which is to go through the last
 *     stages of the forward transform, the first ones of the inverse. A row of TILE elements is one
 *     such block, and goes through all stages at once;
 *   - with COLUMNS, TILE >> STAGES columns side by side of the row as a matrix of 2^STAGES rows,
 *     which is to go through the first stages of the forward transform, the last ones of the
 *     inverse.
 * So a row that fits local memory is read and written once, a longer one twice: columns and blocks,
 * and in between in scratch memory, which is operand SCRATCH of that pass.
 *
 * Where elements of one number lie side by side, as in HEAL's [l,n,r,k], ROWS rows of one l are
 * done together. Neighbouring work-items have neighbouring rows, behind the last row the next
 * elements: so they read and write neighbours.
 *
 * Several tiles give a work-group as many work-items as there should be. They are those of rows
 * that follow each other, or with APART blocks of the same rows, as far apart as they can be:
 * reversing the bits of their elements' numbers brings these side by side.
 *
 * Butterflies and numbers of twiddles as in stages.cl. In local memory residues are lazy for
 * q < 2^62, as in D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014: in [0, 4q)
 * in the forward transform, in [0, 2q) in the inverse. For larger q they are in [0, q). In global
 * memory they are in [0, q).
 */
#if !defined(LOG2_TILE) || !defined(STAGES) || !defined(LOG2_RADIX)
#error "LOG2_TILE, STAGES and LOG2_RADIX are not given"
#endif
#if !defined(ROWS) || !defined(LOG2_TILES) || LOCAL_SIZE % (ROWS << LOG2_TILES) != 0
#error "ROWS and LOG2_TILES are not given, or do not divide the work-items"
#endif
#if !defined(IN) || !defined(OUT)
#error "IN and OUT, the types of the tensors' elements, are not given"
#endif

#include "tensor_rows.cl"

/* For functions of an array, which would not be in registers if they were called. */
#define INLINE __attribute__((always_inline)) static inline

/* On some GPUs a compiler chooses how many work-items share a set of registers, which elements of
 * 64 bits had better be few. */
#if defined(cl_intel_required_subgroup_size) && LOCAL_SIZE % 16 == 0
#define FEW_TOGETHER __attribute__((intel_reqd_sub_group_size(16)))
#else
#define FEW_TOGETHER
#endif

#define TILE (1u << LOG2_TILE)
#define TILES (1u << LOG2_TILES)
#define RADIX (1u << LOG2_RADIX)
/* Elements of a tile, and of all of a work-group's. */
#define TILE_ELEMENTS (ROWS * TILE)
#define ELEMENTS (TILES * TILE_ELEMENTS)
/* Work-items that share a tile, and a row of it. */
#define TILE_SIZE (LOCAL_SIZE / TILES)
#define ROW_SIZE (TILE_SIZE / ROWS)
/* Stages of the forward transform's first pass and the inverse's last. All others have
 * LOG2_RADIX. */
#define FIRST_STAGES ((STAGES - 1) % LOG2_RADIX + 1)

#if LOG2_TILE < STAGES
#error "LOG2_TILE is too small"
#endif

/* Element i of a row of a tile among all of a work-group's. */
#define ELEMENT_OF(number, row, i) ((number)*TILE_ELEMENTS + (i)*ROWS + (row))
/* Where that is kept, among a multiple of 16. Of elements 16 apart, 16 are in different banks of
 * the local memory, as those side by side are. */
#define SLOT(element) ((element) ^ ((element) / 16 % 16))
#define SLOTS ((ELEMENTS + 15) / 16 * 16)

/* ---------------------------------------------------------------- butterflies */

/* x*w mod q in [0, 2q), any x; q < 2^63 */
static inline ulong multiply_twiddle_lazy(ulong x, struct twiddle w, ulong q)
{
    CHECK_BELOW(w.factor, q);
    CHECK_BELOW(x * w.factor - mul_hi(x, w.quotient) * q, 2 * q);
    return x * w.factor - mul_hi(x, w.quotient) * q;
}

/* x mod bound for x in [0, 2*bound) */
static inline ulong subtract_once(ulong x, ulong bound)
{
    CHECK_BELOW(x >= bound ? x - bound : x, bound);
    return x >= bound ? x - bound : x;
}

/* How residues are kept, and whether a twiddle is a product. */
enum way { EXACT, LAZY, LAZY_PRODUCTS };

/* A twiddle, or its factors. */
struct factors {
    struct twiddle low, high;
};

/* x*w mod q in [0, 2q), any x; q < 2^63 */
static inline ulong multiply_factors_lazy(ulong x, struct factors w, ulong q, enum way way)
{
    x = multiply_twiddle_lazy(x, w.low, q);
    return way == LAZY_PRODUCTS ? multiply_twiddle_lazy(x, w.high, q) : x;
}

/* (x, y) ← (x + y*w, x - y*w), all in [0, 4q) if lazy, else in [0, q) */
static inline void forward_butterfly(ulong *x, ulong *y, struct factors w, ulong q, enum way way)
{
    if (way != EXACT) {
        ulong a = subtract_once(*x, 2 * q), b = multiply_factors_lazy(*y, w, q, way);
        CHECK_BELOW(*y, 4 * q);
        *x = a + b;
        *y = a + 2 * q - b;
    } else {
        ulong a = *x, b = multiply_twiddle(*y, w.low, q);
        CHECK_BELOW(*y, q);
        *x = add_mod(a, b, q);
        *y = subtract_mod(a, b, q);
    }
}

/* (x, y) ← (x + y, (x - y)*w), all in [0, 2q) if lazy, else in [0, q) */
static inline void inverse_butterfly(ulong *x, ulong *y, struct factors w, ulong q, enum way way)
{
    ulong a = *x, b = *y;
    CHECK_BELOW(a, way == EXACT ? q : 2 * q);
    CHECK_BELOW(b, way == EXACT ? q : 2 * q);
    if (way != EXACT) {
        *x = subtract_once(a + b, 2 * q);
        *y = multiply_factors_lazy(a + 2 * q - b, w, q, way);
    } else {
        *x = add_mod(a, b, q);
        *y = multiply_twiddle(subtract_mod(a, b, q), w.low, q);
    }
}

/* The twiddles of a row. If they are_products, twiddle i from 2^LOG2_LOW on is the product of
 * number i mod 2^LOG2_LOW and high[i >> LOG2_LOW]: two short tables, which caches hold, instead of
 * a long one. */
struct row_twiddles {
    global const struct twiddle *all, *high;
    bool are_products;
};
#ifndef LOG2_LOW
#define LOG2_LOW 0
#endif

/* The first stages, at most LOG2_RADIX, of the RADIX elements of a, which are block number
 * m - m0 of the m0 blocks that a row then has: its twiddle is number m. The inverse does the same
 * stages backwards. Loops have fixed bounds, so that a stays in registers. */
INLINE void butterflies(ulong *a, uint stages, struct row_twiddles twiddles, uint m, ulong q,
                        const enum way way, const bool inverse)
{
    UNROLL for (uint turn = 0; turn < LOG2_RADIX; turn++) {
        uint stage = inverse ? LOG2_RADIX - 1 - turn : turn;
        uint first = m << stage;
        struct factors w;
        if (way == LAZY_PRODUCTS) /* fewer blocks than 2^LOG2_LOW, and so one factor for all */
            w.high = twiddles.high[first >> LOG2_LOW];
        if (stage < stages)
            UNROLL for (uint i = 0; i < RADIX / 2; i++) {
                uint half_size = RADIX / 2 >> stage, block = i / half_size;
                uint number = first + block;
                if (way == LAZY_PRODUCTS)
                    number &= (1u << LOG2_LOW) - 1;
                w.low = twiddles.all[number];
                ulong *x = a + i + block * half_size;
                if (inverse)
                    inverse_butterfly(x, x + half_size, w, q, way);
                else
                    forward_butterfly(x, x + half_size, w, q, way);
            }
    }
}

/* ---------------------------------------------------------------- tiles */

/* A row of a tile. */
struct tile {
    uint n;
    uint group, number; /* which rows, from the launch's first ones; which tile of these */
    uint slot;          /* of the row among them */
    uint row;           /* its number */
    bool exists;        /* there may be fewer rows */
    uint modulus;
    uint first_block;   /* see tile_pass */
};

/* Row slot of the work-group's tile number. */
static inline struct tile tile_of_group(const struct space *space, uint first_group, uint number,
                                        uint slot)
{
    struct tile tile;
    tile.n = (uint)space->shape[3];
    uint tiles = tile.n >> LOG2_TILE;
#ifdef APART
    uint step = tiles / TILES;
    tile.group = (uint)get_group_id(0) / step;
    tile.number = (uint)get_group_id(0) % step + number * step;
#else
    number += (uint)get_group_id(0) * TILES;
    tile.group = number / tiles;
    tile.number = number % tiles;
#endif
    tile.slot = slot;
    tile.row = first_group + tile.group;
    uint rows = (uint)space->shape[1] * (uint)space->shape[2], row = 0;
    if (ROWS > 1) {
        uint groups = (rows + ROWS - 1) / ROWS;
        row = tile.row % groups * ROWS + slot; /* of its l */
        tile.row = tile.row / groups * rows + row;
    }
    tile.exists = row < rows && tile.row < (uint)space->shape[0] * rows;
    uint k = (uint)space->shape[2];
    tile.modulus = tile.row - (uint)divide_by_axis(tile.row, space, 2) * k;
#ifdef COLUMNS
    tile.first_block = 1;
#else
    tile.first_block = tiles + tile.number;
#endif
    return tile;
}

/* The place in the row of the tile's element i. */
static inline uint place_of(struct tile tile, uint i)
{
#ifdef COLUMNS
    uint log2_width = LOG2_TILE - STAGES, width = 1u << log2_width;
    return (i >> log2_width) * (tile.n >> STAGES) + (tile.number << log2_width) + i % width;
#else
    return (tile.number << LOG2_TILE) + i;
#endif
}

/* Number i of count, a power of two, with its bits in reversed order. A product, for a compiler gets
 * a shift by what is not a constant wrong here (docs/DRIVERS.md). */
static inline uint reverse_bits(uint i, uint count)
{
    i = i >> 16 | i << 16;
    i = (i >> 8 & 0x00ff00ff) | (i & 0x00ff00ff) << 8;
    i = (i >> 4 & 0x0f0f0f0f) | (i & 0x0f0f0f0f) << 4;
    i = (i >> 2 & 0x33333333) | (i & 0x33333333) << 2;
    i = (i >> 1 & 0x55555555) | (i & 0x55555555) << 1;
    return mul_hi(i, count);
}

/* permutation[i] of a row of n, of those kinds. */
static inline uint permuted(uint i, uint n, uint kinds, global const uint *permutation)
{
    if (kinds & PERMUTATION_IDENTITY)
        return i;
    return kinds & PERMUTATION_REVERSES_BITS ? reverse_bits(i, n) : permutation[i];
}

/* The element of a work-group whose turn it is, e-th, where places are permuted. Blocks that are
 * APART take turns in such an order that neighbours have neighbours where bits are reversed. */
static inline uint element_of_turn(uint e, uint kinds)
{
#ifdef APART
    if ((kinds & PERMUTATION_IDENTITY) == 0)
        return ELEMENT_OF(reverse_bits(e / ROWS % TILES, TILES), e % ROWS,
                          reverse_bits(e / ROWS / TILES, TILE));
#endif
    return e;
}

/* Where an operand has the work-item's row. Scratch memory has rows that are done together element
 * by element. */
static inline struct row row_of_tile(const struct space *space, uint operand, struct tile tile)
{
#ifdef SCRATCH
    if (operand == SCRATCH) {
        struct row row = {(long)tile.group * tile.n * ROWS + tile.slot, ROWS};
        return row;
    }
#endif
    return row_of(space, operand, tile.row);
}

/* ---------------------------------------------------------------- passes over a tile */

/* The work-item's share of its own row begins there, of ROW_SIZE work-items'. own_slot: where
 * element i is kept. A row that does not exist has no share. */
static inline uint own_first(struct tile tile)
{
    return tile.exists ? (uint)get_local_id(0) % TILE_SIZE / ROWS : TILE;
}

static inline uint own_slot(struct tile tile, uint i)
{
    uint element = ELEMENT_OF((uint)get_local_id(0) / TILE_SIZE, tile.slot, i);
    return SLOT(element);
}

/* x mod q in [0, q), for x in [0, 4q) after the forward transform; the inverse's x, in [0, 2q),
 * times n_inv with scale. */
static inline ulong finished(ulong x, ulong q)
{
    return subtract_once(subtract_once(x, 2 * q), q);
}

static inline ulong inverse_finished(ulong x, struct twiddle n_inv, uint scale, ulong q)
{
    return scale ? (ulong)multiply_scale(x, n_inv, q) : subtract_once(x, q);
}

/*
 * Stages done, done + 1, ... of a tile, which is the work-item's own, in local memory; its rows
 * then have 2^done blocks each. tile.first_block: twiddle number of the one block of a row at its
 * stage 0. A work-item takes elements that are as far apart as the last of LOG2_RADIX stages has
 * them, though there may be fewer stages to do.
 */
INLINE void tile_pass(local ulong *x, uint done, uint stages, struct tile tile,
                      struct row_twiddles twiddles, ulong q, const bool inverse)
{
    uint log2_size = LOG2_TILE - done, log2_step = log2_size - LOG2_RADIX;
    for (uint item = own_first(tile); item < TILE / RADIX; item += ROW_SIZE) {
        uint block = item >> log2_step;
        uint first = (block << log2_size) + (item & ((1u << log2_step) - 1));
        uint m = (tile.first_block << done) + block;
        ulong a[RADIX];
        UNROLL for (uint i = 0; i < RADIX; i++)
            a[i] = x[own_slot(tile, first + (i << log2_step))];
        if (q >> 62)
            butterflies(a, stages, twiddles, m, q, EXACT, inverse);
        else if (LOG2_LOW > 0 && twiddles.are_products && done + LOG2_RADIX == STAGES)
            butterflies(a, stages, twiddles, m, q, LAZY_PRODUCTS, inverse);
        else
            butterflies(a, stages, twiddles, m, q, LAZY, inverse);
        UNROLL for (uint i = 0; i < RADIX; i++)
            x[own_slot(tile, first + (i << log2_step))] = a[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* One loop for all passes: a second call, for the pass of fewer stages, would double the code. */
static inline void ntt_tile(local ulong *x, struct tile tile, struct row_twiddles twiddles, ulong q)
{
    uint stages = FIRST_STAGES;
    for (uint done = 0; done < STAGES; done += stages, stages = LOG2_RADIX)
        tile_pass(x, done, stages, tile, twiddles, q, false);
}

static inline void intt_tile(local ulong *x, struct tile tile, struct row_twiddles twiddles,
                             ulong q)
{
    uint stages = LOG2_RADIX;
    for (uint done = STAGES; done > 0; done -= stages) {
        stages = min(stages, done);
        tile_pass(x, done - stages, stages, tile, twiddles, q, true);
    }
}

/* ---------------------------------------------------------------- kernels */

/*
 * A work-group for TILES tiles of the groups of rows from first_group on, each of ROWS rows of one
 * l, the last one of the l of what is left. The space is [l,r,k,n], n less than 2^32; operands:
 * out, in. q [k]; twiddles [k,n]: psi, or ipsi for the inverse; high, which is used with LOG2_LOW:
 * what twiddle_products has made of them. use_perm is 0 for columns. Where it
 * is not, perm is the table of the permutation if a row is one block, else of its inverse: so one
 * side of each access is in order.
 */

/* The work-item's own row, whose butterflies it does. */
#define OWN_TILE(space, first_group)                                          \
    tile_of_group(space, first_group, (uint)get_local_id(0) / TILE_SIZE, \
                  (uint)get_local_id(0) % ROWS)

static inline struct row_twiddles twiddles_of(struct tile tile, global const struct twiddle *all,
                                              global const struct twiddle *high)
{
    uint count = tile.n >> LOG2_LOW;
    struct row_twiddles twiddles = {all + (ulong)tile.modulus * tile.n, high, false};
    if (LOG2_LOW > 0) {
        twiddles.high += tile.modulus * (count + 1);
        twiddles.are_products = twiddles.high[count].factor != 0;
    }
    return twiddles;
}

/* The row of element e, in a loop through a work-group's elements in order. It is the
 * work-item's own where there is one tile. */
#define TILE_OF_ELEMENT(space, first_group, e, own) \
    (TILES > 1 ? tile_of_group(space, first_group, (e) / TILE_ELEMENTS, (e) % ROWS) : (own))

/* Where such a loop meets elements of other rows than the work-item's own, what takes a row's
 * modulus is done to its own ones, before or after. */
#ifdef APART
#define OTHER_ROWS false
#else
#define OTHER_ROWS (TILES > 1)
#endif
#define FOR_OWN_ELEMENTS(x, own, value, changed)                    \
    if (OTHER_ROWS) {                                               \
        for (uint i = own_first(own); i < TILE; i += ROW_SIZE) {    \
            ulong value = x[own_slot(own, i)];                      \
            x[own_slot(own, i)] = changed;                          \
        }                                                           \
        barrier(CLK_LOCAL_MEM_FENCE);                               \
    }

/* Element u of a row of out = transform of in at u, or at permutation[u]. */
FEW_TOGETHER KERNEL ntt_tiles(SPACE(space), uint first_group, global OUT *out, global const IN *in,
                 global const struct modulus *q, global const struct twiddle *twiddles,
                 global const struct twiddle *high, global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    local ulong x[SLOTS];
    uint kinds = use_perm ? perm[(uint)space.shape[3]] : PERMUTATION_IDENTITY;
    struct tile own = OWN_TILE(&space, first_group);
    struct modulus modulus = q[own.modulus];

    for (uint turn = get_local_id(0); turn < ELEMENTS; turn += LOCAL_SIZE) {
        struct tile tile = TILE_OF_ELEMENT(&space, first_group, turn, own);
        if (!tile.exists)
            continue;
        struct row from = row_of_tile(&space, 1, tile);
        long place = place_of(tile, turn / ROWS % TILE);
        long value = WIDEN(AT(in, from.position + place * from.stride));
        x[SLOT(turn)] = OTHER_ROWS ? (ulong)value : residue_of(value, modulus);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_OWN_ELEMENTS(x, own, value, residue_of((long)value, modulus));

    ntt_tile(x, own, twiddles_of(own, twiddles, high), modulus.value);
    FOR_OWN_ELEMENTS(x, own, value, finished(value, modulus.value));

    for (uint turn = get_local_id(0); turn < ELEMENTS; turn += LOCAL_SIZE) {
        uint e = element_of_turn(turn, kinds), i = e / ROWS % TILE;
        struct tile tile = TILE_OF_ELEMENT(&space, first_group, e, own);
        if (!tile.exists)
            continue;
        struct row to = row_of_tile(&space, 0, tile);
        uint place = place_of(tile, i);
        if (tile.n == TILE)
            e = ELEMENT_OF(e / TILE_ELEMENTS, tile.slot, permuted(i, tile.n, kinds, perm));
        else
            place = permuted(place, tile.n, kinds, perm);
        ulong value = OTHER_ROWS ? x[SLOT(e)] : finished(x[SLOT(e)], modulus.value);
        AT(out, to.position + (long)place * to.stride) = (OUT)value;
    }
}

/* A row of out = inverse transform of a row whose element permutation[u] is in's element u; times
 * n_inv [k] with scale. */
FEW_TOGETHER KERNEL intt_tiles(SPACE(space), uint first_group, global OUT *out, global const IN *in,
                  global const struct modulus *q, global const struct twiddle *twiddles,
                  global const struct twiddle *high, global const uint *perm, uint use_perm, global const struct twiddle *n_inv,
                  uint scale)
{
    TAKE_SPACE(space);
    local ulong x[SLOTS];
    uint kinds = use_perm ? perm[(uint)space.shape[3]] : PERMUTATION_IDENTITY;
    struct tile own = OWN_TILE(&space, first_group);
    struct modulus modulus = q[own.modulus];

    for (uint turn = get_local_id(0); turn < ELEMENTS; turn += LOCAL_SIZE) {
        uint e = element_of_turn(turn, kinds), i = e / ROWS % TILE;
        struct tile tile = TILE_OF_ELEMENT(&space, first_group, e, own);
        if (!tile.exists)
            continue;
        struct row from = row_of_tile(&space, 1, tile);
        uint place = place_of(tile, i);
        if (tile.n == TILE)
            e = ELEMENT_OF(e / TILE_ELEMENTS, tile.slot, permuted(i, tile.n, kinds, perm));
        else
            place = permuted(place, tile.n, kinds, perm);
        long value = WIDEN(AT(in, from.position + (long)place * from.stride));
        x[SLOT(e)] = OTHER_ROWS ? (ulong)value : residue_of(value, modulus);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_OWN_ELEMENTS(x, own, value, residue_of((long)value, modulus));

    intt_tile(x, own, twiddles_of(own, twiddles, high), modulus.value);
    struct twiddle factor = n_inv[own.modulus];
    FOR_OWN_ELEMENTS(x, own, value, inverse_finished(value, factor, scale, modulus.value));

    for (uint turn = get_local_id(0); turn < ELEMENTS; turn += LOCAL_SIZE) {
        struct tile tile = TILE_OF_ELEMENT(&space, first_group, turn, own);
        if (!tile.exists)
            continue;
        struct row to = row_of_tile(&space, 0, tile);
        ulong value = x[SLOT(turn)];
        if (!OTHER_ROWS)
            value = inverse_finished(value, factor, scale, modulus.value);
        AT(out, to.position + (long)place_of(tile, turn / ROWS % TILE) * to.stride) = (OUT)value;
    }
}
