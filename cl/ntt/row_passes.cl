/*
 * Negacyclic transforms of one row, a few stages in each pass over it, by the butterflies of
 * stages.cl on vectors.
 *
 * A row of n >= 256 residues is transformed in parts of at most NTT_ROW_PART, which fit the innermost
 * cache; before that (in the inverse: after) it is divided into them by passes of radix 16 and one
 * of radix 2, 4 or 8. A part of 16 blocks goes through
 *   spread: four stages between the blocks, and a transposition: then WIDTH neighbouring blocks lie
 *           in the lanes of vectors, so that the stages left need no shuffles;
 *   middle: none to four stages, as many as leave blocks of 16;
 *   last:   four stages, the transposition back, and residues reduced to [0, q).
 * The inverse takes the same way back.
 */
/*
 * LARGE > 0: rows come from memory and go there, for the tensors are larger than the caches. Forward
 * transforms are stored past the caches. What is fetched while a part is worked on is the next part,
 * or with LARGE=2 that of the next row: caches have room for both rows.
 */
#ifndef LARGE
#define LARGE 0
#endif
#if LARGE
#define FETCH(address) PREFETCH(address)
#define STORE_RESULT(value, x) STORE_PAST(words, value, x)
#else
#define FETCH(address) (void)(0)
#define STORE_RESULT(value, x) STORE_WORDS(value, x)
#endif

/* Of the 2^s blocks of stage s, s = 0 ... log2(R)-1, block b has its twiddle at 2^s + b: the same
 * order in which a pass of radix R and a whole transform have them. */
#define FOR_EACH_FORWARD(R, stage, block, i)                                                       \
    UNROLL for (uint stage = 1; stage < R; stage *= 2)                                             \
        UNROLL for (uint block = 0; block < stage; block++)                                        \
            UNROLL for (uint i = 0; i < R / 2 / stage; i++)
#define FOR_EACH_INVERSE(R, stage, block, i)                                                       \
    UNROLL for (uint stage = R / 2; stage > 0; stage /= 2)                                         \
        UNROLL for (uint block = 0; block < stage; block++)                                        \
            UNROLL for (uint i = 0; i < R / 2 / stage; i++)
#define FIRST(R, stage, block, i) (block * (R / stage) + i)
#define SECOND(R, stage, block, i) (block * (R / stage) + i + R / 2 / stage)
#define STAGE_OF(twiddle) ((twiddle) >= 8 ? 8 : (twiddle) >= 4 ? 4 : (twiddle) >= 2 ? 2 : 1)

/* The twiddles 1 ... R-1 of a pass: for block number `number` of the blocks that its first stage
 * divides, or in lanes, where each lane has its own block (see lane_twiddles in rows.cl). */
#define LOAD_TWIDDLES(R, number)                                                                   \
    words factor[R], quotient[R];                                                                  \
    UNROLL for (uint t = 1; t < R; t++) {                                                          \
        struct twiddle w = twiddles[STAGE_OF(t) * (number) + t - STAGE_OF(t)];                     \
        factor[t] = (words)((word)w.factor);                                                       \
        quotient[t] = (words)(word_quotient(w.quotient));                                          \
    }
#define LOAD_LANE_TWIDDLES(R)                                                                      \
    words factor[R], quotient[R];                                                                  \
    UNROLL for (uint t = 1; t < R; t++) {                                                          \
        factor[t] = LOAD_WORDS(lane_twiddles + (2 * t - 2) * WIDTH);                               \
        quotient[t] = LOAD_WORDS(lane_twiddles + (2 * t - 1) * WIDTH);                             \
    }
/* Words of a table of lane twiddles for a pass. */
#define LANE_TWIDDLES(R) (2 * (R - 1) * WIDTH)

#define FORWARD_BUTTERFLIES(R)                                                                     \
    FOR_EACH_FORWARD(R, stage, block, i)                                                           \
    forward_butterfly(&a[FIRST(R, stage, block, i)], &a[SECOND(R, stage, block, i)],               \
                      factor[stage + block], quotient[stage + block], modulus);
#define INVERSE_BUTTERFLIES(R)                                                                     \
    FOR_EACH_INVERSE(R, stage, block, i)                                                           \
    inverse_butterfly(&a[FIRST(R, stage, block, i)], &a[SECOND(R, stage, block, i)],               \
                      factor[stage + block], quotient[stage + block], modulus);

/* What the last pass of the inverse multiplies by: n_inv, and in the place of twiddle 1 n_inv *
 * ipsi[1]. With scale, the results are in [0, q). */
struct scale {
    struct twiddle n_inv, first;
};
#define SCALE_FIRST                                                                                \
    if (scale) {                                                                                   \
        factor[1] = (words)((word)scale->first.factor);                                            \
        quotient[1] = (words)(word_quotient(scale->first.quotient));                               \
    }
#define SCALE(R)                                                                                   \
    if (scale) {                                                                                   \
        UNROLL for (uint i = 0; i < R / 2; i++)                                                    \
            a[i] = multiply_words(a[i], (words)((word)scale->n_inv.factor),                        \
                                  (words)(word_quotient(scale->n_inv.quotient)), modulus);         \
        UNROLL for (uint i = 0; i < R; i++) a[i] = reduce_words(a[i], modulus);                    \
    }

#define FOR_EACH_STEP(R)                                                                           \
    ulong step = size / R;                                                                         \
    for (ulong j = 0; j < step; j += WIDTH)
#define LOAD_STEPS(R, LOAD, from)                                                                  \
    words a[R];                                                                                    \
    UNROLL for (uint i = 0; i < R; i++) a[i] = LOAD(from + i * step + j);
#define STORE_STEPS(R, STORE, x)                                                                   \
    UNROLL for (uint i = 0; i < R; i++) STORE(a[i], x + i * step + j);

/* Passes of radix R: divide takes block number `number`, of size elements, from `from` to x, which
 * may be the same; middle takes the size words of WIDTH blocks in lanes. */
#define PASSES(R)                                                                                  \
    static inline words forward_divide_##R(global word *x, global const word *from, ulong size,    \
                                          global const struct twiddle *twiddles, ulong number,     \
                                          struct word_modulus modulus)                             \
    {                                                                                              \
        LOAD_TWIDDLES(R, number)                                                                   \
        words seen = (words)(0);                                                                   \
        FOR_EACH_STEP(R)                                                                           \
        {                                                                                          \
            LOAD_STEPS(R, LOAD_WORDS, from)                                                        \
            UNROLL for (uint i = 0; i < R; i++) seen |= a[i];                                      \
            FORWARD_BUTTERFLIES(R)                                                                 \
            STORE_STEPS(R, STORE_WORDS, x)                                                         \
        }                                                                                          \
        return seen;                                                                               \
    }                                                                                              \
    static inline void forward_middle_##R(word *x, ulong size,                                     \
                                          global const word *lane_twiddles,                        \
                                          struct word_modulus modulus)                             \
    {                                                                                              \
        LOAD_LANE_TWIDDLES(R)                                                                      \
        FOR_EACH_STEP(R)                                                                           \
        {                                                                                          \
            LOAD_STEPS(R, LOAD_LANES, x)                                                           \
            FORWARD_BUTTERFLIES(R)                                                                 \
            STORE_STEPS(R, STORE_LANES, x)                                                         \
        }                                                                                          \
    }                                                                                              \
    static inline void inverse_divide_##R(global word *x, global const word *from, ulong size,     \
                                          global const struct twiddle *twiddles, ulong number,     \
                                          struct word_modulus modulus, const struct scale *scale)  \
    {                                                                                              \
        LOAD_TWIDDLES(R, number)                                                                   \
        SCALE_FIRST                                                                                \
        FOR_EACH_STEP(R)                                                                           \
        {                                                                                          \
            LOAD_STEPS(R, LOAD_WORDS, from)                                                        \
            INVERSE_BUTTERFLIES(R)                                                                 \
            SCALE(R)                                                                               \
            STORE_STEPS(R, STORE_WORDS, x)                                                         \
        }                                                                                          \
    }                                                                                              \
    static inline void inverse_middle_##R(word *x, ulong size,                                     \
                                          global const word *lane_twiddles,                        \
                                          struct word_modulus modulus)                             \
    {                                                                                              \
        LOAD_LANE_TWIDDLES(R)                                                                      \
        FOR_EACH_STEP(R)                                                                           \
        {                                                                                          \
            LOAD_STEPS(R, LOAD_LANES, x)                                                           \
            INVERSE_BUTTERFLIES(R)                                                                 \
            STORE_STEPS(R, STORE_LANES, x)                                                         \
        }                                                                                          \
    }

PASSES(2)
PASSES(4)
PASSES(8)
PASSES(16)

/* ---------------------------------------------------------------- between rows and lanes */

/* Element e of block b of a part, with blocks of step elements, lies in vector
 * (b / WIDTH * step + e) of the part in lanes, in lane b % WIDTH. */

/* next: a part that is read later. */
static inline words forward_spread(word *lanes, global const word *from, global const word *next,
                                   ulong size, global const struct twiddle *twiddles, ulong number,
                                   struct word_modulus modulus)
{
    LOAD_TWIDDLES(NTT_RADIX, number)
    ulong step = size / NTT_RADIX;
    words seen = (words)(0);
    for (ulong j = 0; j < step; j += WIDTH) {
        LOAD_STEPS(NTT_RADIX, LOAD_WORDS, from)
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) seen |= a[i];
        UNROLL for (uint i = 0; i < NTT_RADIX; i++) FETCH(next + i * step + j);
        FORWARD_BUTTERFLIES(NTT_RADIX)
        UNROLL for (uint i = 0; i < NTT_RADIX; i += WIDTH) {
            transpose_words(a + i);
            UNROLL for (uint t = 0; t < WIDTH; t++)
                STORE_LANES(a[i + t], lanes + (i / WIDTH * step + j + t) * WIDTH);
        }
    }
    return seen;
}

static inline void inverse_spread(global word *x, const word *lanes, ulong size,
                                  global const struct twiddle *twiddles, ulong number,
                                  struct word_modulus modulus, const struct scale *scale)
{
    LOAD_TWIDDLES(NTT_RADIX, number)
    SCALE_FIRST
    ulong step = size / NTT_RADIX;
    for (ulong j = 0; j < step; j += WIDTH) {
        words a[NTT_RADIX];
        UNROLL for (uint i = 0; i < NTT_RADIX; i += WIDTH) {
            UNROLL for (uint t = 0; t < WIDTH; t++)
                a[i + t] = LOAD_LANES(lanes + (i / WIDTH * step + j + t) * WIDTH);
            transpose_words(a + i);
        }
        INVERSE_BUTTERFLIES(NTT_RADIX)
        SCALE(NTT_RADIX)
        STORE_STEPS(NTT_RADIX, STORE_WORDS, x)
    }
}

/* WIDTH blocks of step elements, from lanes to x. */
static inline void forward_last(global word *x, const word *lanes, ulong step,
                                global const word *lane_twiddles, struct word_modulus modulus)
{
    for (ulong e = 0; e < step; e += NTT_RADIX) {
        words a[NTT_RADIX];
        LOAD_LANE_TWIDDLES(NTT_RADIX)
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = LOAD_LANES(lanes + (e + t) * WIDTH);
        FORWARD_BUTTERFLIES(NTT_RADIX)
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = reduce_words(a[t], modulus);
        UNROLL for (uint t = 0; t < NTT_RADIX; t += WIDTH) {
            transpose_words(a + t);
            UNROLL for (uint b = 0; b < WIDTH; b++) STORE_RESULT(a[t + b], x + b * step + e + t);
        }
        lane_twiddles += LANE_TWIDDLES(NTT_RADIX);
    }
}

/* The first pass of the inverse: WIDTH blocks of step elements in [0, 2 BOUND) for words of 32
 * bits, in [0, BOUND] for 64, from `from` to lanes. next: blocks that are read later. */
static inline words inverse_last(word *lanes, global const word *from, global const word *next,
                                 ulong step, global const word *lane_twiddles,
                                 struct word_modulus modulus)
{
    words seen = (words)(0);
    for (ulong e = 0; e < step; e += NTT_RADIX) {
        words a[NTT_RADIX];
        LOAD_LANE_TWIDDLES(NTT_RADIX)
        UNROLL for (uint t = 0; t < NTT_RADIX; t += WIDTH) {
            UNROLL for (uint b = 0; b < WIDTH; b++)
                a[t + b] = LOAD_WORDS(from + b * step + e + t);
            UNROLL for (uint b = 0; b < WIDTH; b++) FETCH(next + b * step + e + t);
            transpose_words(a + t);
        }
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) seen |= a[t];
        if (WORD_BITS == 32)
            UNROLL for (uint t = 0; t < NTT_RADIX; t++) a[t] = halve_words(a[t], modulus);
        INVERSE_BUTTERFLIES(NTT_RADIX)
        UNROLL for (uint t = 0; t < NTT_RADIX; t++) STORE_LANES(a[t], lanes + (e + t) * WIDTH);
        lane_twiddles += LANE_TWIDDLES(NTT_RADIX);
    }
    return seen;
}

/* ---------------------------------------------------------------- rows */

/* Whether the bits seen make a number of limit, a power of two, or more. */
static inline bool are_any_from(words seen, word limit)
{
    volatile words kept = seen; /* else compilers work on halves of vectors where bits are seen */
    return any(kept >= limit);
}

/* Whether n words side by side are below limit, a power of two. */
static inline bool are_below(global const word *x, ulong n, word limit)
{
    words seen = (words)(0);
    for (ulong i = 0; i < n; i += WIDTH)
        seen |= LOAD_WORDS(x + i);
    return all(seen < limit);
}

/* How a row of n is divided. */
struct division {
    ulong first;  /* radix of its first pass: 1 (there is none), 2, 4 or 8 */
    ulong size;   /* of a part */
    ulong block;  /* of a block of a part: NTT_RADIX * radix of the middle pass */
};

static inline struct division divide_row(ulong n)
{
    struct division d = {1, min(n, (ulong)NTT_ROW_PART), 0};
    for (ulong parts = n / d.size; parts > 1; parts /= NTT_RADIX)
        d.first = min(parts, (ulong)NTT_RADIX);
    d.first = d.first == NTT_RADIX ? 1 : d.first;
    d.block = d.size / NTT_RADIX;
    return d;
}

/* Words of the lane twiddles of one row; 2n at most. */
static inline ulong lane_twiddles_of(ulong n)
{
    ulong block = min(n, (ulong)NTT_ROW_PART) / NTT_RADIX, middle = block / NTT_RADIX;
    return n / block / WIDTH * (LANE_TWIDDLES(middle) + middle * LANE_TWIDDLES(NTT_RADIX));
}

/*
 * Transforms from to out by way of `between`; any of them may be the same. Results are in [0, q).
 * lanes: scratch of NTT_ROW_PART words. Inputs are to be below limit, a power of two that is at most
 * 2 BOUND: where they are not, this returns false, and has written to between if n > NTT_ROW_PART, to
 * nothing else. next: the row that is read next, or any; nothing is asked of what it holds.
 */
static bool forward_row(global word *out, global word *between, global const word *from,
                        global const word *next, word *lanes, ulong n,
                        global const struct twiddle *twiddles, global const word *lane_twiddles,
                        struct word_modulus modulus, word limit)
{
    struct division d = divide_row(n);
    words seen = (words)(0); /* bits */
    if (d.first == 2)
        seen = forward_divide_2(between, from, n, twiddles, 1, modulus);
    else if (d.first == 4)
        seen = forward_divide_4(between, from, n, twiddles, 1, modulus);
    else if (d.first == 8)
        seen = forward_divide_8(between, from, n, twiddles, 1, modulus);
    else if (n > NTT_ROW_PART)
        seen = forward_divide_16(between, from, n, twiddles, 1, modulus);
    else
        seen = forward_spread(lanes, from, next, n, twiddles, 1, modulus);
    if (are_any_from(seen, limit))
        return false;
    ulong size = n / (d.first > 1 ? d.first : NTT_RADIX);
    for (; size > d.size; size /= NTT_RADIX)
        for (ulong at = 0; at < n; at += size)
            (void)forward_divide_16(between + at, between + at, size, twiddles, (n + at) / size,
                                    modulus);
    for (ulong at = 0; at < n; at += d.size) {
        global const word *part = between + at;
        global const word *later = LARGE == 2 ? next + at : part + d.size;
        if (n > NTT_ROW_PART)
            (void)forward_spread(lanes, part, later, d.size, twiddles, (n + at) / d.size, modulus);
        ulong middle = d.block / NTT_RADIX, group = d.block * WIDTH;
        for (ulong begin = 0; begin < d.size; begin += group) {
            if (middle == 2)
                forward_middle_2(lanes + begin, group, lane_twiddles, modulus);
            else if (middle == 4)
                forward_middle_4(lanes + begin, group, lane_twiddles, modulus);
            else if (middle == 8)
                forward_middle_8(lanes + begin, group, lane_twiddles, modulus);
            else if (middle == 16)
                forward_middle_16(lanes + begin, group, lane_twiddles, modulus);
            lane_twiddles += LANE_TWIDDLES(middle);
            forward_last(out + at + begin, lanes + begin, d.block, lane_twiddles, modulus);
            lane_twiddles += middle * LANE_TWIDDLES(NTT_RADIX);
        }
    }
    return true;
}

/* The inverse in the same way; for words of 64 bits limit is at most BOUND. */
static bool inverse_row(global word *out, global word *between, global const word *from,
                        global const word *next, word *lanes, ulong n,
                        global const struct twiddle *twiddles, global const word *lane_twiddles,
                        struct word_modulus modulus, const struct scale *scale, word limit)
{
    struct division d = divide_row(n);
    global word *to = n > NTT_ROW_PART ? between : out;
    for (ulong at = 0; at < n; at += d.size) {
        /* What lies far apart had better be in the cache before its blocks are read, and written.
         * With the latter, words of 64 bits would fill the innermost cache. */
        if (n > NTT_ROW_PART && !are_below(from + at, d.size, limit))
            return false;
        if (WORD_BITS == 32 && n > NTT_ROW_PART)
            for (ulong i = 0; i < d.size; i += WIDTH)
                PREFETCH(to + at + i);
        words seen = (words)(0);
        ulong middle = d.block / NTT_RADIX, group = d.block * WIDTH;
        for (ulong begin = 0; begin < d.size; begin += group) {
            global const word *middle_twiddles = lane_twiddles;
            lane_twiddles += LANE_TWIDDLES(middle);
            seen |= inverse_last(lanes + begin, from + at + begin, next + at + begin, d.block,
                                 lane_twiddles, modulus);
            lane_twiddles += middle * LANE_TWIDDLES(NTT_RADIX);
            if (middle == 2)
                inverse_middle_2(lanes + begin, group, middle_twiddles, modulus);
            else if (middle == 4)
                inverse_middle_4(lanes + begin, group, middle_twiddles, modulus);
            else if (middle == 8)
                inverse_middle_8(lanes + begin, group, middle_twiddles, modulus);
            else if (middle == 16)
                inverse_middle_16(lanes + begin, group, middle_twiddles, modulus);
        }
        if (are_any_from(seen, limit))
            return false;
        inverse_spread(to + at, lanes, d.size, twiddles, (n + at) / d.size, modulus,
                       n == d.size ? scale : 0);
    }
    for (ulong size = d.size * NTT_RADIX; size <= n / d.first; size *= NTT_RADIX)
        for (ulong at = 0; at < n; at += size)
            inverse_divide_16(size == n ? out : between + at, between + at, size, twiddles,
                              (n + at) / size, modulus, size == n ? scale : 0);
    if (d.first == 2)
        inverse_divide_2(out, between, n, twiddles, 1, modulus, scale);
    else if (d.first == 4)
        inverse_divide_4(out, between, n, twiddles, 1, modulus, scale);
    else if (d.first == 8)
        inverse_divide_8(out, between, n, twiddles, 1, modulus, scale);
    return true;
}
