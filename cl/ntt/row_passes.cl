/*
 * Negacyclic transforms of one row. Each pass over it does a few stages, by the butterflies of
 * stages.cl on vectors.
 *
 * A row of n >= 256 residues is transformed in tiles of at most NTT_ROW_TILE elements, which fit
 * the innermost cache. Before this (in the inverse: after it) passes of radix 16 and one of radix
 * 2, 4 or 8 divide the row into tiles. A tile of 16 blocks goes through
 *   spread: four stages between the blocks, and a transposition. Then WIDTH neighbouring blocks are
 *           in the lanes of vectors: the remaining stages need no shuffles;
 *   middle: none to four stages, until blocks have 16 elements;
 *   last:   four stages, the transposition back, and residues reduced to [0, q).
 * The inverse does the same in reverse order.
 *
 * A program only has the passes of its rows. ROW_TILES: 0 for rows shorter than a tile; 1, 2, 4 or
 * 8 for rows of that number of tiles; 16 for longer rows.
 */
#define MAY_DIVIDE(R) (ROW_TILES == (R) || ROW_TILES == NTT_RADIX)
/*
 * LARGE: tensors are larger than the caches, and rows are loaded from memory and stored to it.
 * Forward transforms are stored past the caches. While a tile is processed, the next tile is
 * prefetched, or with fetch_row that of the next row: then caches have room for both rows.
 */
#ifdef LARGE
#define FETCH(address) PREFETCH(address)
#define STORE_RESULT(value, x) STORE_PAST(words, value, x)
#else
#define FETCH(address) (void)(0)
#define STORE_RESULT(value, x) STORE_WORDS(value, x)
#endif

/* Factors of the inverse's last pass: n_inv, and n_inv * ipsi[1] in place of twiddle 1. With scale,
 * the results are in [0, q). */
struct scale {
    struct twiddle n_inv, first;
};

/* A transform of rows of n elements, modulo one q. */
struct row_transform {
    ulong n;
    global const struct twiddle *twiddles; /* [n] */
    global const word *lane_twiddles;      /* of a row, see rows.cl */
    struct word_modulus modulus;
    struct scale scale; /* only for the inverse */
    word limit;         /* inputs must be below it; a power of two */
    word *tile;         /* scratch of NTT_ROW_TILE words */
    uint fetch_row;     /* with LARGE: whether the next row is prefetched during this one */
    global const word
        *next; /* the row that is read next, or any other: its contents are not used */
};

/* ---------------------------------------------------------------- butterflies of a pass */

/* Twiddles 1 ... R-1 of a pass of radix R. Block b of the 2^s blocks of stage s, s = 0 ...
 * log2(R)-1, has its twiddle at 2^s + b. This is also the order in a whole transform. */
struct pass_twiddles {
    words factor[NTT_RADIX], quotient[NTT_RADIX];
};

static inline void set_twiddle(struct pass_twiddles *w, uint t, struct twiddle twiddle)
{
    w->factor[t] = (words)((word)twiddle.factor);
    w->quotient[t] = (words)(word_quotient(twiddle.quotient));
}

/* These passes are unrolled for constant R, to keep all arrays in registers. They are macros:
 * compilers optimise functions with R as a constant argument less. */
#define LOAD_TWIDDLES(R, w, twiddles, number)                                                      \
    UNROLL for (uint t = 1; t < R; t++)                                                            \
        set_twiddle(&(w), t, (twiddles)[ntt_twiddle_number(t, number)])
/* For passes in which each lane has its own block. */
#define LOAD_LANE_TWIDDLES(R, w, lane_twiddles)                                                    \
    UNROLL for (uint t = 1; t < R; t++) {                                                          \
        (w).factor[t] = LOAD_WORDS((lane_twiddles) + (2 * t - 2) * WIDTH);                         \
        (w).quotient[t] = LOAD_WORDS((lane_twiddles) + (2 * t - 1) * WIDTH);                       \
    }

/* The words of lane twiddles for a pass of radix R. */
static inline ulong pass_lane_twiddles(ulong R)
{
    return 2 * (R - 1) * WIDTH;
}

#define FORWARD_BUTTERFLIES(R, a, w, modulus)                                                      \
    UNROLL for (uint blocks = 1; blocks < R; blocks *= 2)                                          \
        UNROLL for (uint block = 0; block < blocks; block++)                                       \
            UNROLL for (uint i = 0; i < R / 2 / blocks; i++)                                       \
                forward_butterfly(&(a)[block * (R / blocks) + i],                                  \
                                  &(a)[block * (R / blocks) + i + R / 2 / blocks],                 \
                                  (w).factor[blocks + block], (w).quotient[blocks + block],        \
                                  modulus)
#define INVERSE_BUTTERFLIES(R, a, w, modulus)                                                      \
    UNROLL for (uint blocks = R / 2; blocks > 0; blocks /= 2)                                      \
        UNROLL for (uint block = 0; block < blocks; block++)                                       \
            UNROLL for (uint i = 0; i < R / 2 / blocks; i++)                                       \
                inverse_butterfly(&(a)[block * (R / blocks) + i],                                  \
                                  &(a)[block * (R / blocks) + i + R / 2 / blocks],                 \
                                  (w).factor[blocks + block], (w).quotient[blocks + block],        \
                                  modulus)
/* scale: NULL if not used. */
#define SCALE_RESULTS(R, a, scale, modulus)                                                        \
    if (scale) {                                                                                   \
        UNROLL for (uint i = 0; i < R / 2; i++)                                                    \
            (a)[i] = multiply_words((a)[i], (words)((word)(scale)->n_inv.factor),                  \
                                    (words)(word_quotient((scale)->n_inv.quotient)), modulus);     \
        UNROLL for (uint i = 0; i < R; i++)                                                        \
            (a)[i] = reduce_words((a)[i], modulus);                                                \
    }

/* ---------------------------------------------------------------- passes of radix R */

/* divide reads block `number`, of size elements, from `from` and writes it to x, which may be the
 * same. In the forward transform it returns the OR of all elements. middle processes the size words
 * of WIDTH blocks in lanes. */
#define PASSES(R)                                                                               \
    static inline words forward_divide_##R(global word *x, global const word *from, ulong size, \
                                           const struct row_transform *transform, ulong number) \
    {                                                                                           \
        struct pass_twiddles w;                                                                 \
        struct word_modulus modulus = transform->modulus;                                       \
        words seen = (words)(0);                                                                \
        ulong step = size / R;                                                                  \
        LOAD_TWIDDLES(R, w, transform->twiddles, number);                                       \
        for (ulong j = 0; j < step; j += WIDTH) {                                               \
            words a[R];                                                                         \
            UNROLL for (uint i = 0; i < R; i++) a[i] = LOAD_WORDS(from + i * step + j);         \
            UNROLL for (uint i = 0; i < R; i++) seen |= a[i];                                   \
            FORWARD_BUTTERFLIES(R, a, w, modulus);                                              \
            UNROLL for (uint i = 0; i < R; i++) STORE_WORDS(a[i], x + i * step + j);            \
        }                                                                                       \
        return seen;                                                                            \
    }                                                                                           \
    static inline void inverse_divide_##R(global word *x, global const word *from, ulong size,  \
                                          const struct row_transform *transform, ulong number,  \
                                          const struct scale *scale)                            \
    {                                                                                           \
        struct pass_twiddles w;                                                                 \
        struct word_modulus modulus = transform->modulus;                                       \
        ulong step = size / R;                                                                  \
        LOAD_TWIDDLES(R, w, transform->twiddles, number);                                       \
        if (scale)                                                                              \
            set_twiddle(&w, 1, scale->first);                                                   \
        for (ulong j = 0; j < step; j += WIDTH) {                                               \
            words a[R];                                                                         \
            UNROLL for (uint i = 0; i < R; i++) a[i] = LOAD_WORDS(from + i * step + j);         \
            INVERSE_BUTTERFLIES(R, a, w, modulus);                                              \
            SCALE_RESULTS(R, a, scale, modulus)                                                 \
            UNROLL for (uint i = 0; i < R; i++) STORE_WORDS(a[i], x + i * step + j);            \
        }                                                                                       \
    }

PASSES(2)
PASSES(4)
PASSES(8)
PASSES(16)

#define MIDDLE_PASS(R, direction, BUTTERFLIES)                                              \
    static inline void direction##_middle_##R(                                              \
        word *x, ulong size, global const word *lane_twiddles, struct word_modulus modulus) \
    {                                                                                       \
        struct pass_twiddles w;                                                             \
        ulong step = size / R;                                                              \
        LOAD_LANE_TWIDDLES(R, w, lane_twiddles)                                             \
        for (ulong j = 0; j < step; j += WIDTH) {                                           \
            words a[R];                                                                     \
            UNROLL for (uint i = 0; i < R; i++) a[i] = LOAD_LANES(x + i * step + j);        \
            BUTTERFLIES(R, a, w, modulus);                                                  \
            UNROLL for (uint i = 0; i < R; i++) STORE_LANES(a[i], x + i * step + j);        \
        }                                                                                   \
    }
/* Radix 1 has no stages. */
#define MIDDLE_PASSES(direction, BUTTERFLIES)                                   \
    MIDDLE_PASS(2, direction, BUTTERFLIES)                                      \
    MIDDLE_PASS(4, direction, BUTTERFLIES)                                      \
    MIDDLE_PASS(8, direction, BUTTERFLIES)                                      \
    MIDDLE_PASS(16, direction, BUTTERFLIES)                                     \
    static inline void direction##_middle(ulong radix, word *x, ulong size,     \
                                          global const word *lane_twiddles,     \
                                          struct word_modulus modulus)          \
    {                                                                           \
        if (ROW_TILES > 0) {                                                    \
            direction##_middle_16(x, size, lane_twiddles, modulus);             \
            return;                                                             \
        }                                                                       \
        switch (radix) {                                                        \
        case 2: direction##_middle_2(x, size, lane_twiddles, modulus); break;   \
        case 4: direction##_middle_4(x, size, lane_twiddles, modulus); break;   \
        case 8: direction##_middle_8(x, size, lane_twiddles, modulus); break;   \
        }                                                                       \
    }

MIDDLE_PASSES(forward, FORWARD_BUTTERFLIES)
MIDDLE_PASSES(inverse, INVERSE_BUTTERFLIES)

/* ---------------------------------------------------------------- between rows and lanes */

/* A tile in lanes, with blocks of step elements: element e of block b is in vector (b / WIDTH *
 * step + e), in lane b % WIDTH. */

/* Processes block `number` of size elements, a tile. next: a tile that is read later. */
static inline words forward_spread(global const word *from, global const word *next, ulong size,
                                   const struct row_transform *transform, ulong number)
{
    struct pass_twiddles w;
    struct word_modulus modulus = transform->modulus;
    ulong step = size / NTT_RADIX;
    words seen = (words)(0);
    word *tile = transform->tile;
    LOAD_TWIDDLES(NTT_RADIX, w, transform->twiddles, number);
    for (ulong j = 0; j < step; j += WIDTH) {
        words a[NTT_RADIX];
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) a[i] = LOAD_WORDS(from + i * step + j);
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) seen |= a[i];
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) FETCH(next + i * step + j);
        FORWARD_BUTTERFLIES(NTT_RADIX, a, w, modulus);
        UNROLL for (uint i = 0; i < NTT_RADIX; i += WIDTH) {
            transpose_words(a + i);
            UNROLL for (uint t = 0; t < WIDTH; t++)
                STORE_LANES(a[i + t], tile + (i / WIDTH * step + j + t) * WIDTH);
        }
    }
    return seen;
}

static inline void inverse_spread(global word *x, ulong size, const struct row_transform *transform,
                                  ulong number, const struct scale *scale)
{
    struct pass_twiddles w;
    struct word_modulus modulus = transform->modulus;
    ulong step = size / NTT_RADIX;
    const word *tile = transform->tile;
    LOAD_TWIDDLES(NTT_RADIX, w, transform->twiddles, number);
    if (scale)
        set_twiddle(&w, 1, scale->first);
    for (ulong j = 0; j < step; j += WIDTH) {
        words a[NTT_RADIX];
        UNROLL for (uint i = 0; i < NTT_RADIX; i += WIDTH) {
            UNROLL for (uint t = 0; t < WIDTH; t++)
                a[i + t] = LOAD_LANES(tile + (i / WIDTH * step + j + t) * WIDTH);
            transpose_words(a + i);
        }
        INVERSE_BUTTERFLIES(NTT_RADIX, a, w, modulus);
        SCALE_RESULTS(NTT_RADIX, a, scale, modulus)
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) STORE_WORDS(a[i], x + i * step + j);
    }
}

/* Moves WIDTH blocks of step elements from lanes to x. */
static inline void forward_last(global word *x, const word *lanes, ulong step,
                                global const word *lane_twiddles, struct word_modulus modulus)
{
    for (ulong e = 0; e < step; e += NTT_RADIX) {
        words a[NTT_RADIX];
        struct pass_twiddles w;
        LOAD_LANE_TWIDDLES(NTT_RADIX, w, lane_twiddles)
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = LOAD_LANES(lanes + (e + t) * WIDTH);
        FORWARD_BUTTERFLIES(NTT_RADIX, a, w, modulus);
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = reduce_words(a[t], modulus);
        UNROLL for (uint t = 0; t < NTT_RADIX; t += WIDTH) {
            transpose_words(a + t);
            UNROLL for (uint b = 0; b < WIDTH; b++) STORE_RESULT(a[t + b], x + b * step + e + t);
        }
        lane_twiddles += pass_lane_twiddles(NTT_RADIX);
    }
}

/* The first pass of the inverse: moves WIDTH blocks of step elements from `from` to lanes. They are
 * in [0, 2 BOUND) for words of 32 bits, in [0, BOUND] for 64. next: blocks that are read later. */
static inline words inverse_last(word *lanes, global const word *from, global const word *next,
                                 ulong step, global const word *lane_twiddles,
                                 struct word_modulus modulus)
{
    words seen = (words)(0);
    for (ulong e = 0; e < step; e += NTT_RADIX) {
        words a[NTT_RADIX];
        struct pass_twiddles w;
        LOAD_LANE_TWIDDLES(NTT_RADIX, w, lane_twiddles)
        UNROLL for (uint t = 0; t < NTT_RADIX; t += WIDTH) {
            UNROLL for (uint b = 0; b < WIDTH; b++) a[t + b] = LOAD_WORDS(from + b * step + e + t);
            UNROLL for (uint b = 0; b < WIDTH; b++) FETCH(next + b * step + e + t);
            transpose_words(a + t);
        }
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) seen |= a[t];
        if (WORD_BITS == 32)
            UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = halve_words(a[t], modulus);
#ifdef CHECK_RANGES /* a row with larger elements is transformed again by other code */
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = min(a[t], modulus.BOUND);
#endif
        INVERSE_BUTTERFLIES(NTT_RADIX, a, w, modulus);
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) STORE_LANES(a[t], lanes + (e + t) * WIDTH);
        lane_twiddles += pass_lane_twiddles(NTT_RADIX);
    }
    return seen;
}

/* ---------------------------------------------------------------- rows */

/* Whether any bit in `seen` is that of limit, a power of two, or higher. */
static inline bool are_any_from(words seen, word limit)
{
    volatile words kept = seen; /* otherwise compilers use halves of vectors to collect bits */
    return any(kept >= limit);
}

/* Whether n contiguous words are below limit, a power of two. */
static inline bool are_below(global const word *x, ulong n, word limit)
{
    words seen = (words)(0);
    for (ulong i = 0; i < n; i += WIDTH)
        seen |= LOAD_WORDS(x + i);
    return all(seen < limit);
}

/* The division of a row of n elements. */
struct division {
    ulong first; /* radix of its first pass: 1 (no pass), 2, 4 or 8 */
    ulong size;  /* elements of a tile */
    ulong block; /* elements of a tile's block: NTT_RADIX * radix of the middle pass */
};

static inline struct division divide_row(ulong n)
{
    struct division d = {1, min(n, (ulong)NTT_ROW_TILE), 0};
    for (ulong tiles = n / d.size; tiles > 1; tiles /= NTT_RADIX)
        d.first = min(tiles, (ulong)NTT_RADIX);
    d.first = d.first == NTT_RADIX ? 1 : d.first;
    if (ROW_TILES > 1 && ROW_TILES < NTT_RADIX)
        d.first = ROW_TILES;
    d.block = d.size / NTT_RADIX;
    return d;
}

/*
 * Transforms `from` to out through scratch; any of them may be the same. Results are in [0, q).
 * modulus is the transform's: by value, to keep it in registers. The limit of inputs is at most 2
 * BOUND. If inputs are not below it, returns false. Then only scratch has been written, and only if
 * n > NTT_ROW_TILE.
 */
static bool forward_row(const struct row_transform *transform, struct word_modulus modulus,
                        global word *out, global word *scratch, global const word *from)
{
    const ulong n = transform->n;
    global const word *lane_twiddles = transform->lane_twiddles;
    struct division d = divide_row(n);
    words seen = (words)(0); /* OR of all elements */
    if (ROW_TILES < 2)
        seen = forward_spread(from, transform->next, n, transform, 1);
    else if (MAY_DIVIDE(2) && d.first == 2)
        seen = forward_divide_2(scratch, from, n, transform, 1);
    else if (MAY_DIVIDE(4) && d.first == 4)
        seen = forward_divide_4(scratch, from, n, transform, 1);
    else if (MAY_DIVIDE(8) && d.first == 8)
        seen = forward_divide_8(scratch, from, n, transform, 1);
    else
        seen = forward_divide_16(scratch, from, n, transform, 1);
    if (are_any_from(seen, transform->limit))
        return false;
    ulong size = n / (d.first > 1 ? d.first : NTT_RADIX);
    for (; MAY_DIVIDE(NTT_RADIX) && size > d.size; size /= NTT_RADIX)
        for (ulong at = 0; at < n; at += size)
            (void)forward_divide_16(scratch + at, scratch + at, size, transform, (n + at) / size);
    for (ulong at = 0; at < n; at += d.size) {
        global const word *from_tile = scratch + at;
        global const word *later = transform->fetch_row ? transform->next + at : from_tile + d.size;
        if (ROW_TILES > 1)
            (void)forward_spread(from_tile, later, d.size, transform, (n + at) / d.size);
        ulong middle = d.block / NTT_RADIX, group = d.block * WIDTH;
        for (ulong begin = 0; begin < d.size; begin += group) {
            word *lanes = transform->tile + begin;
            forward_middle(middle, lanes, group, lane_twiddles, modulus);
            lane_twiddles += pass_lane_twiddles(middle);
            forward_last(out + at + begin, lanes, d.block, lane_twiddles, modulus);
            lane_twiddles += middle * pass_lane_twiddles(NTT_RADIX);
        }
    }
    return true;
}

/* The inverse, with the same arguments. For words of 64 bits the limit is at most BOUND. */
static bool inverse_row(const struct row_transform *transform, struct word_modulus modulus,
                        global word *out, global word *scratch, global const word *from)
{
    const ulong n = transform->n;
    const struct scale *scale = &transform->scale;
    global const word *lane_twiddles = transform->lane_twiddles;
    struct division d = divide_row(n);
    global word *to = ROW_TILES > 1 ? scratch : out;
    for (ulong at = 0; at < n; at += d.size) {
        /* Tiles that are far apart should be in the cache before their blocks are read and written.
         * Prefetching for writes would fill the innermost cache with words of 64 bits. */
        if (ROW_TILES > 1 && !are_below(from + at, d.size, transform->limit))
            return false;
        if (WORD_BITS == 32 && ROW_TILES > 1)
            for (ulong i = 0; i < d.size; i += WIDTH)
                PREFETCH(to + at + i);
        words seen = (words)(0);
        ulong middle = d.block / NTT_RADIX, group = d.block * WIDTH;
        for (ulong begin = 0; begin < d.size; begin += group) {
            word *lanes = transform->tile + begin;
            global const word *last_twiddles = lane_twiddles + pass_lane_twiddles(middle);
            seen |= inverse_last(lanes, from + at + begin, transform->next + at + begin, d.block,
                                 last_twiddles, modulus);
            inverse_middle(middle, lanes, group, lane_twiddles, modulus);
            lane_twiddles = last_twiddles + middle * pass_lane_twiddles(NTT_RADIX);
        }
        if (are_any_from(seen, transform->limit))
            return false;
        inverse_spread(to + at, d.size, transform, (n + at) / d.size, ROW_TILES < 2 ? scale : 0);
    }
    for (ulong size = d.size * NTT_RADIX; MAY_DIVIDE(NTT_RADIX) && size <= n / d.first;
         size *= NTT_RADIX)
        for (ulong at = 0; at < n; at += size)
            inverse_divide_16(size == n ? out : scratch + at, scratch + at, size, transform,
                              (n + at) / size, size == n ? scale : 0);
    if (ROW_TILES < 2)
        return true;
    if (MAY_DIVIDE(2) && d.first == 2)
        inverse_divide_2(out, scratch, n, transform, 1, scale);
    else if (MAY_DIVIDE(4) && d.first == 4)
        inverse_divide_4(out, scratch, n, transform, 1, scale);
    else if (MAY_DIVIDE(8) && d.first == 8)
        inverse_divide_8(out, scratch, n, transform, 1, scale);
    return true;
}

static inline bool transform_row(const struct row_transform *transform, global word *out,
                                 global word *scratch, global const word *from, const bool inverse)
{
    return inverse ? inverse_row(transform, transform->modulus, out, scratch, from)
                   : forward_row(transform, transform->modulus, out, scratch, from);
}
