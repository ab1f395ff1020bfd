/*
 * Negacyclic transforms for GPUs: many thin work-items, local memory, coalesced accesses.
 *
 * A work-group loads a tile into local memory, does STAGES stages there, and stores it; up to
 * LOG2_RADIX stages at a time are done in registers, on 2^LOG2_RADIX elements of each work-item. A
 * tile has TILE = 2^LOG2_TILE elements of each of ROWS rows:
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
 * elements: so they read and write neighbours. A work-item stays with its row.
 *
 * Butterflies and numbers of twiddles as in stages.cl. In local memory residues are lazy for
 * q < 2^62, as in D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014: in [0, 4q)
 * in the forward transform, in [0, 2q) in the inverse. For larger q they are in [0, q). In global
 * memory they are in [0, q).
 */
#if !defined(LOG2_TILE) || !defined(STAGES) || !defined(LOG2_RADIX)
#error "LOG2_TILE, STAGES and LOG2_RADIX are not given"
#endif
#if !defined(ROWS) || LOCAL_SIZE % ROWS != 0
#error "ROWS is not given, or does not divide the work-items"
#endif
#if !defined(IN) || !defined(OUT)
#error "IN and OUT, the types of the tensors' elements, are not given"
#endif

#include "tensor_rows.cl"

/* What takes an array, which would not be in registers if it were called. */
#define INLINE __attribute__((always_inline)) static inline

/* On some GPUs a compiler chooses how many work-items share a set of registers, which elements of
 * 64 bits had better be few. */
#if defined(cl_intel_required_subgroup_size) && LOCAL_SIZE % 16 == 0
#define FEW_TOGETHER __attribute__((intel_reqd_sub_group_size(16)))
#else
#define FEW_TOGETHER
#endif

#define TILE (1u << LOG2_TILE)
#define RADIX (1u << LOG2_RADIX)
/* Work-items that share a row. */
#define ROW_SIZE (LOCAL_SIZE / ROWS)
/* Of the first pass of the forward transform, the last of the inverse; all others have
 * LOG2_RADIX. */
#define FIRST_STAGES ((STAGES - 1) % LOG2_RADIX + 1)

#if LOG2_TILE < LOG2_RADIX || LOG2_TILE < STAGES
#error "LOG2_TILE is too small"
#endif

/* Where element i of a row of the tile is kept. Of elements 16 apart, 16 are in different banks of
 * the local memory, as those side by side are. */
#define SLOT(row, i) (((i)*ROWS + (row)) ^ (((i)*ROWS + (row)) / 16 % 16))

/* ---------------------------------------------------------------- butterflies */

/* x*w mod q in [0, 2q), any x; q < 2^63 */
static inline ulong multiply_twiddle_lazy(ulong x, struct twiddle w, ulong q)
{
    return x * w.factor - mul_hi(x, w.quotient) * q;
}

/* x mod bound for x in [0, 2*bound) */
static inline ulong subtract_once(ulong x, ulong bound)
{
    return x >= bound ? x - bound : x;
}

/* (x, y) ← (x + y*w, x - y*w), all in [0, 4q) if lazy, else in [0, q) */
static inline void forward_butterfly(ulong *x, ulong *y, struct twiddle w, ulong q, bool lazy)
{
    if (lazy) {
        ulong a = subtract_once(*x, 2 * q), b = multiply_twiddle_lazy(*y, w, q);
        *x = a + b;
        *y = a + 2 * q - b;
    } else {
        ulong a = *x, b = multiply_twiddle(*y, w, q);
        *x = add_mod(a, b, q);
        *y = subtract_mod(a, b, q);
    }
}

/* (x, y) ← (x + y, (x - y)*w), all in [0, 2q) if lazy, else in [0, q) */
static inline void inverse_butterfly(ulong *x, ulong *y, struct twiddle w, ulong q, bool lazy)
{
    ulong a = *x, b = *y;
    if (lazy) {
        *x = subtract_once(a + b, 2 * q);
        *y = multiply_twiddle_lazy(a + 2 * q - b, w, q);
    } else {
        *x = add_mod(a, b, q);
        *y = multiply_twiddle(subtract_mod(a, b, q), w, q);
    }
}

/* The first stages, at most LOG2_RADIX, of the RADIX elements of a, which are block number
 * m - m0 of the m0 blocks that a row then has: its twiddle is number m. The inverse does the same
 * stages backwards. Loops have fixed bounds, so that a stays in registers. */
INLINE void butterflies(ulong *a, uint stages, global const struct twiddle *twiddles, uint m,
                        ulong q, bool lazy, const bool inverse)
{
    UNROLL for (uint turn = 0; turn < LOG2_RADIX; turn++) {
        uint stage = inverse ? LOG2_RADIX - 1 - turn : turn;
        if (stage < stages)
            UNROLL for (uint i = 0; i < RADIX / 2; i++) {
                uint half_size = RADIX / 2 >> stage, block = i / half_size;
                struct twiddle w = twiddles[(m << stage) + block];
                ulong *x = a + i + block * half_size;
                if (inverse)
                    inverse_butterfly(x, x + half_size, w, q, lazy);
                else
                    forward_butterfly(x, x + half_size, w, q, lazy);
            }
    }
}

/* ---------------------------------------------------------------- tiles */

/* A work-group's tile, as one of its work-items sees it. */
struct tile {
    uint n;
    uint group, number; /* which rows, from the launch's first ones; which tile of these */
    uint slot;          /* of the work-item's row among them */
    uint row;           /* its number */
    uint modulus;
    uint first_block;   /* see tile_pass */
    uint first_element; /* the work-item's; TILE: it has none, as there is no such row */
};

static inline struct tile tile_of_group(const struct space *space, uint first_group)
{
    struct tile tile;
    tile.n = (uint)space->shape[3];
    uint tiles = tile.n >> LOG2_TILE;
    tile.group = (uint)get_group_id(0) / tiles;
    tile.number = (uint)get_group_id(0) % tiles;
    tile.slot = (uint)get_local_id(0) % ROWS;
    tile.row = first_group + tile.group;
    tile.first_element = (uint)get_local_id(0) / ROWS;
    if (ROWS > 1) {
        uint rows = (uint)space->shape[1] * (uint)space->shape[2];
        uint groups = (rows + ROWS - 1) / ROWS;
        uint row = tile.row % groups * ROWS + tile.slot; /* of its l */
        tile.row = tile.row / groups * rows + row;
        if (row >= rows)
            tile.first_element = TILE;
    }
    tile.modulus = tile.row % (uint)space->shape[2];
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

/*
 * Stages done, done + 1, ... of a tile in local memory; its rows then have 2^done blocks each.
 * tile.first_block: twiddle number of the one block of a row at its stage 0. A work-item takes
 * elements that are as far apart as the last of LOG2_RADIX stages has them, though there may be
 * fewer stages to do.
 */
INLINE void tile_pass(local ulong *x, uint done, uint stages, struct tile tile,
                      global const struct twiddle *twiddles, ulong q, const bool inverse)
{
    uint log2_size = LOG2_TILE - done, log2_step = log2_size - LOG2_RADIX;
    for (uint item = tile.first_element; item < TILE / RADIX; item += ROW_SIZE) {
        uint block = item >> log2_step;
        uint first = (block << log2_size) + (item & ((1u << log2_step) - 1));
        uint m = (tile.first_block << done) + block;
        ulong a[RADIX];
        UNROLL for (uint i = 0; i < RADIX; i++)
            a[i] = x[SLOT(tile.slot, first + (i << log2_step))];
        if (q >> 62)
            butterflies(a, stages, twiddles, m, q, false, inverse);
        else
            butterflies(a, stages, twiddles, m, q, true, inverse);
        UNROLL for (uint i = 0; i < RADIX; i++)
            x[SLOT(tile.slot, first + (i << log2_step))] = a[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* One loop for all passes: a second call, for the pass of fewer stages, would double the code. */
static inline void ntt_tile(local ulong *x, struct tile tile, global const struct twiddle *twiddles,
                            ulong q)
{
    uint stages = FIRST_STAGES;
    for (uint done = 0; done < STAGES; done += stages, stages = LOG2_RADIX)
        tile_pass(x, done, stages, tile, twiddles, q, false);
}

static inline void intt_tile(local ulong *x, struct tile tile,
                             global const struct twiddle *twiddles, ulong q)
{
    uint stages = LOG2_RADIX;
    for (uint done = STAGES; done > 0; done -= stages) {
        stages = min(stages, done);
        tile_pass(x, done - stages, stages, tile, twiddles, q, true);
    }
}

/* ---------------------------------------------------------------- kernels */

/*
 * One work-group for each tile of the groups of rows from first_group on, each of ROWS rows of one
 * l, the last one of the l of what is left. The space is [l,r,k,n], n less than 2^32; operands:
 * out, in. q [k]; twiddles [k,n]: psi, or ipsi for the inverse. use_perm is 0 for columns. Where it
 * is not, perm is the permutation if a row is one block, else its inverse: so one side of each
 * access is in order.
 */

/* Element u of a row of out = transform of in at u, or at permutation[u]. */
FEW_TOGETHER KERNEL ntt_tiles(SPACE(space), uint first_group, BUFFER(OUT, out), BUFFER(const IN, in),
                 global const struct modulus *q, global const struct twiddle *twiddles,
                 global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    local ulong x[ROWS * TILE];
    struct tile tile = tile_of_group(&space, first_group);
    struct modulus modulus = q[tile.modulus];
    struct row from = row_of_tile(&space, 1, tile), to = row_of_tile(&space, 0, tile);

    for (uint i = tile.first_element; i < TILE; i += ROW_SIZE) {
        long place = place_of(tile, i);
        x[SLOT(tile.slot, i)] =
            residue_of(WIDEN(AT(in, from.position + place * from.stride)), modulus);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    ntt_tile(x, tile, twiddles + (ulong)tile.modulus * tile.n, modulus.value);

    for (uint i = tile.first_element; i < TILE; i += ROW_SIZE) {
        uint place = place_of(tile, i);
        uint source = i;
        if (use_perm && tile.n == TILE)
            source = perm[i];
        else if (use_perm)
            place = perm[place];
        ulong value = subtract_once(x[SLOT(tile.slot, source)], 2 * modulus.value);
        AT(out, to.position + (long)place * to.stride) = (OUT)subtract_once(value, modulus.value);
    }
}

/* A row of out = inverse transform of a row whose element permutation[u] is in's element u; times
 * n_inv [k] with scale. */
FEW_TOGETHER KERNEL intt_tiles(SPACE(space), uint first_group, BUFFER(OUT, out), BUFFER(const IN, in),
                  global const struct modulus *q, global const struct twiddle *twiddles,
                  global const uint *perm, uint use_perm, global const struct twiddle *n_inv,
                  uint scale)
{
    TAKE_SPACE(space);
    local ulong x[ROWS * TILE];
    struct tile tile = tile_of_group(&space, first_group);
    struct modulus modulus = q[tile.modulus];
    struct row from = row_of_tile(&space, 1, tile), to = row_of_tile(&space, 0, tile);

    for (uint i = tile.first_element; i < TILE; i += ROW_SIZE) {
        uint place = place_of(tile, i);
        uint target = i;
        if (use_perm && tile.n == TILE)
            target = perm[i];
        else if (use_perm)
            place = perm[place];
        x[SLOT(tile.slot, target)] =
            residue_of(WIDEN(AT(in, from.position + (long)place * from.stride)), modulus);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    intt_tile(x, tile, twiddles + (ulong)tile.modulus * tile.n, modulus.value);

    struct twiddle factor = n_inv[tile.modulus];
    for (uint i = tile.first_element; i < TILE; i += ROW_SIZE) {
        ulong value = x[SLOT(tile.slot, i)];
        value = scale ? multiply_twiddle(value, factor, modulus.value)
                      : subtract_once(value, modulus.value);
        AT(out, to.position + (long)place_of(tile, i) * to.stride) = (OUT)value;
    }
}
