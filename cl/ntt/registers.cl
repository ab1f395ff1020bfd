/*
 * Negacyclic transforms for GPUs: one pass over rows, in registers.
 *
 * A work-item has E = 2^LOG2_E elements in registers and does up to LOG2_E stages on them. Between
 * such rounds it exchanges elements through local memory. Rows that fit a work-group go through all
 * stages in one pass. Longer rows take two passes, as matrices of 2^STAGES by AROUND elements:
 *   COLUMNS  first pass of the forward transform, last one of the inverse: a lane is a column
 *   else     blocks, the other pass or the only one: a lane is a block of 2^STAGES elements
 * A work-group has 2^LOG2_LANES neighbouring lanes, and 2^(STAGES - LOG2_E) work-items for each.
 *
 *   TOGETHER     the rows of one l are interleaved element by element, as in HEAL's [l,n,r,k]:
 *                lanes belong to 2^LOG2_ROWS such rows; columns may belong to any rows
 *   LOAD_FIRST   the number of the lane's lowest bits that are the lowest bits of a work-item's
 *   STORE_FIRST  number when it loads, or stores; bits within the lane follow. This makes accesses
 *                coalesced
 *   FROM_PASS    in is the result of the other pass: residues in [0, LIMIT*q)
 *   FOR_PASS     out is for the other pass
 *   IN_ORDER     in's elements of a row are contiguous; OUT_ORDER: out's
 *   PERMUTED     values are permuted in memory
 *   LIMIT        q < 2^WORD_BITS / LIMIT: 2, 4 or 16. Between butterflies residues are lazy, below
 *                LIMIT*q, as in D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014.
 *                Their bounds, in units of q, are constants once loops are unrolled
 *   ADDEND       the pass that ends a forward transform adds another tensor, and multiplies the sum
 *   PIECES       an exchange moves WORD_BITS / PIECES bits at a time
 *
 * Butterflies and numbers of twiddles are those of stages.cl.
 */
#if !defined(LOG2_N) || !defined(STAGES) || !defined(LOG2_E) || !defined(IN) || !defined(OUT) || \
    STAGES < LOG2_E || LOG2_N < STAGES || LOCAL_SIZE != 1 << (STAGES - LOG2_E + LOG2_LANES) || \
    (WORD_BITS != 64 && WORD_BITS != 32) || (LIMIT != 2 && LIMIT != 4 && LIMIT != 16)
#error "a constant of the pass is not given, or they do not go together"
#endif

#include "tensor_rows.cl"

/* For functions of an array, which must be inlined to keep it in registers. */
#define INLINE __attribute__((always_inline)) static inline

#if WORD_BITS == 64
typedef ulong word;
typedef ulong2 word_twiddle; /* factor and quotient */
typedef long signed_word;
#else
typedef uint word;
typedef uint2 word_twiddle;
typedef int signed_word;
#endif

#define E (1u << LOG2_E)
#define N (1u << LOG2_N)
#define AROUND (1u << (LOG2_N - STAGES))
#define LANES (1u << LOG2_LANES)
#define LOG2_ITEMS (STAGES - LOG2_E)

/* ---------------------------------------------------------------- residues */

/* Products are in [0, TIMES_BOUND*q). */
#define TIMES_BOUND (LIMIT == 2 ? 1u : 2u)
#define LOADED_BOUND TIMES_BOUND

/* x mod c for x in [0, 2c), c <= 2^(WORD_BITS - 1) */
INLINE word subtract_once(word x, word c)
{
    word rest = x - c;
    return (signed_word)rest < 0 ? x : rest;
}

/* x*w mod q in [0, TIMES_BOUND*q), any x */
INLINE word times(word x, word_twiddle w, word q)
{
    word product = x * w.x + mul_hi(x, w.y) * (0 - q); /* one chain of additions */
    CHECK_BELOW(w.x, q);
    CHECK_BELOW(product, 2 * q);
    return LIMIT == 2 ? subtract_once(product, q) : product;
}

/* x in [0, bound*q), lowered to [0, to*q). Subtracts powers of two from `to` on. This is not a
 * loop: some compilers do not unroll it. */
INLINE word lower(word x, const uint bound, const uint to, word q)
{
    CHECK_BELOW(x, bound * q);
    if (LIMIT / 2 >= 8 && to <= 8 && bound > 8)
        x = subtract_once(x, 8 * q);
    if (LIMIT / 2 >= 4 && to <= 4 && bound > 4)
        x = subtract_once(x, 4 * q);
    if (LIMIT / 2 >= 2 && to <= 2 && bound > 2)
        x = subtract_once(x, 2 * q);
    if (to <= 1 && bound > 1)
        x = subtract_once(x, q);
    return x;
}

/* ---------------------------------------------------------------- rounds */

/* A row's twiddles. If step is not 1, twiddles of several moduli are interleaved. */
struct table {
    global const word_twiddle *first;
    uint step;
};

static inline word_twiddle twiddle(struct table table, uint i)
{
    return table.first[i * table.step];
}

/* The bound to which elements in [0, bound*q) are lowered before a butterfly. */
#define FORWARD_BOUND(bound) ((bound) + TIMES_BOUND <= LIMIT ? LIMIT : LIMIT / 2u)

/* The first `stages` of LOG2_E stages, on elements in [0, bound*q). Returns their new bound. base:
 * the number of the first stage's twiddle. is_last: they end with the last stage of all, before
 * which elements are lowered further. */
INLINE uint forward_round(word *a, const uint stages, uint bound, uint base, struct table table,
                          word q, const bool is_last)
{
    UNROLL for (uint s = 0; s < stages; s++) {
        uint half_size = E / 2 >> s;
        uint to = is_last && s + 1 == stages ? TIMES_BOUND : FORWARD_BOUND(bound);
        UNROLL for (uint j = 0; j < E / 2; j++) {
            uint block = j / half_size, x = j + block * half_size, y = x + half_size;
            word u = lower(a[x], bound, to, q);
            word v = times(a[y], twiddle(table, (base << s) + block), q);
            a[x] = u + v;
            a[y] = u + TIMES_BOUND * q - v;
        }
        bound = min(bound, to) + TIMES_BOUND;
    }
    return bound;
}

/* The bound of elements after this number of stages. */
INLINE uint forward_bound(const uint stages)
{
    uint bound = LOADED_BOUND;
    UNROLL for (uint s = 0; s < stages; s++)
        bound = min(bound, FORWARD_BOUND(bound)) + TIMES_BOUND;
    return bound;
}

/* Factors of the last stage of all: n_inv, and n_inv times the stage's twiddle. */
struct scale {
    word_twiddle n_inv, last;
};

INLINE word_twiddle word_twiddle_of(struct twiddle w)
{
    return (word_twiddle)((word)w.factor, (word)(w.quotient >> (64 - WORD_BITS)));
}

static inline struct scale scale_of(struct twiddle n_inv, word_twiddle w, struct modulus q)
{
    struct scale scale;
    n_inv.factor &= ~TWIDDLE_NEGATIVE;
    scale.n_inv = word_twiddle_of(n_inv);
    scale.last = word_twiddle_of(make_twiddle(multiply_twiddle(w.x, n_inv, q.value), q));
    return scale;
}

/* The same stages backwards, on elements in [0, INVERSE_BOUND*q). The results are in this range
 * too, and after the last stage of all, which multiplies by scale, below TIMES_BOUND*q. */
#define INVERSE_BOUND (LIMIT == 2 ? 1u : LIMIT == 4 ? 2u : 4u)
INLINE void inverse_round(word *a, const uint stages, uint base, struct table table, word q,
                          const bool is_last, struct scale scale)
{
    uint bound[E];
    UNROLL for (uint i = 0; i < E; i++)
        bound[i] = INVERSE_BOUND;
    UNROLL for (uint t = 0; t < stages; t++) {
        uint s = stages - 1 - t, half_size = E / 2 >> s;
        bool scales = is_last && s == 0;
        UNROLL for (uint j = 0; j < E / 2; j++) {
            uint block = j / half_size, x = j + block * half_size, y = x + half_size;
            uint most = min(max(bound[x], bound[y]), LIMIT / 2u);
            word u = lower(a[x], bound[x], LIMIT / 2, q);
            word v = lower(a[y], bound[y], LIMIT / 2, q);
            word_twiddle w = scales ? scale.last : twiddle(table, (base << s) + block);
            a[x] = scales ? times(u + v, scale.n_inv, q) : u + v;
            a[y] = times(u + most * q - v, w, q);
            bound[x] = scales ? TIMES_BOUND : 2 * most;
            bound[y] = TIMES_BOUND;
        }
    }
    UNROLL for (uint i = 0; i < E; i++)
        a[i] = lower(a[i], bound[i], is_last ? TIMES_BOUND : INVERSE_BOUND, q);
}

/* All rounds have LOG2_E stages, except the first round of the forward transform. In a round, a
 * work-item's elements are 2^LOW_OF apart. */
#define ROUNDS (LOG2_E == 0 ? 0 : (STAGES + LOG2_E - 1) / (LOG2_E + (LOG2_E == 0)))
#define FIRST_STAGES (STAGES - (ROUNDS - 1) * LOG2_E)
#define STAGES_OF(round) ((round) == 0 ? FIRST_STAGES : LOG2_E)
#define LOW_OF(round) ((round) == 0 ? LOG2_ITEMS : STAGES - FIRST_STAGES - (round)*LOG2_E)
#define TOP LOG2_ITEMS /* value of low if consecutive work-items have adjacent elements */

/* ---------------------------------------------------------------- lanes */

/* The lowest bits of i in reversed order. i has no higher bits. */
INLINE uint reversed(uint i, const uint bits)
{
    i = i >> 16 | i << 16;
    i = (i >> 8 & 0x00ff00ff) | (i & 0x00ff00ff) << 8;
    i = (i >> 4 & 0x0f0f0f0f) | (i & 0x0f0f0f0f) << 4;
    i = (i >> 2 & 0x33333333) | (i & 0x33333333) << 2;
    i = (i >> 1 & 0x55555555) | (i & 0x55555555) << 1;
    return i >> (31 - bits) >> 1;
}

/* The part of a work-item in its group's work. */
struct part {
    uint lane, u;  /* u: the work-item's index in the lane */
    uint number;   /* of the column or block in its row */
    uint row;      /* index among all rows */
    uint modulus;
    uint is_there; /* else another lane has the same row; not a bool, whose padding compilers
                      copy through memory */
};

/* A permutation in memory, and its kind. The table is not read if it reverses bits or is the
 * identity. */
struct permutation {
    global const uint *table;
    uint reverses, changes;
};

static inline struct permutation permutation_of(global const uint *table)
{
    const uint kinds = PERMUTED ? table[N] : PERMUTATION_IDENTITY;
    struct permutation perm = {table, kinds & PERMUTATION_REVERSES_BITS,
                               ~kinds & PERMUTATION_IDENTITY};
    return perm;
}

/* The part of a work-item if lane_first bits of the lane come first in its number. The launch has
 * rows [first_row, end_row). */
static inline struct part part_of(const struct space *space, uint first_row, uint end_row,
                                  struct permutation perm, const uint lane_first)
{
    uint id = (uint)get_local_id(0), group = (uint)get_group_id(0), place;
    struct part part;
    part.lane = (id & ((1u << lane_first) - 1)) | id >> (LOG2_ITEMS + lane_first) << lane_first;
    part.u = id >> lane_first & ((1u << LOG2_ITEMS) - 1);
    uint k = (uint)space->shape[2];
    uint rows = TOGETHER ? (uint)space->shape[1] * k : 1;
#if COLUMNS
    uint flat = group * LANES + part.lane, number = flat / rows;
    place = flat - number * rows;
#else
    uint sets = (rows + (1u << LOG2_ROWS) - 1) >> LOG2_ROWS, set = group / sets;
    uint number = (set << (LOG2_LANES - LOG2_ROWS)) + (part.lane >> LOG2_ROWS);
    place = ((group - set * sets) << LOG2_ROWS) + (part.lane & ((1u << LOG2_ROWS) - 1));
#endif
    part.number = number % AROUND;
    if (!COLUMNS && PERMUTED && perm.changes) /* blocks as far apart as possible: see LOAD_FIRST */
        part.number = reversed(part.number, LOG2_N - STAGES);
    part.row = first_row + number / AROUND * rows + place;
    part.is_there = LOG2_LANES + TOGETHER == 0 || (place < rows && part.row < end_row);
    if (!part.is_there)
        part.row = end_row - 1;
    part.modulus = part.row - (uint)divide_by_axis(part.row, space, 2) * k;
    return part;
}

/* The index of element e of a lane in its row. */
#define PLACE(part, e) (COLUMNS ? (e)*AROUND + (part).number : (part).number << STAGES | (e))
#define PLACE_STEP (COLUMNS ? AROUND : 1u)

/* In a round a work-item has E elements, whose indices differ in LOG2_E bits from bit low on. */
#define STEP(i, low) ((i) << (low))
INLINE uint element_of(struct part part, const uint low)
{
    return (part.u >> low) << (low + LOG2_E) | (part.u & ((1u << low) - 1));
}

/* The number of the first twiddle of these elements in the round. */
INLINE uint twiddle_of(struct part part, const uint low)
{
    uint first = COLUMNS ? 1 : AROUND + part.number; /* stage */
    return (first << (LOG2_ITEMS - low)) + (part.u >> low);
}

static inline struct table table_of(struct part part, const struct space *space,
                                    global const word_twiddle *twiddles)
{
#if COLUMNS && TOGETHER
    struct table table = {twiddles + part.modulus, (uint)space->shape[2]};
#else
    struct table table = {twiddles + (ulong)part.modulus * N, 1};
#endif
    return table;
}

/* ---------------------------------------------------------------- permutations */

/* The permutation of i = first + step. step is a constant, and shares no bit with first. */
INLINE uint permuted(uint first, uint step, struct permutation perm)
{
    return perm.reverses ? reversed(first, LOG2_N) + reversed(step, LOG2_N)
           : perm.changes ? perm.table[first + step]
                          : first + step;
}

/* A permutation of rows of one block is applied in local memory. Otherwise its inverse is applied
 * in global memory. In both cases either loads or stores are in order. */
#define PERMUTES_LOCAL (PERMUTED && STAGES == LOG2_N)
/* Whether elements are exchanged between the last round and memory, where their order is
 * `first`. */
#define MOVES(first) (TOP > 0 || PERMUTES_LOCAL || (first) != ORDER_OF(ROUNDS - 1))
#define PERMUTES_PLACES (PERMUTED && STAGES < LOG2_N)
/* LOAD_FIRST or STORE_FIRST, or its value for values in order if perm is the identity. */
#define FIRST(first, in_order) \
    (PERMUTES_PLACES && MOVES(first) && !perm.changes ? (in_order ? 0 : LOG2_ROWS) : (first))

/* ---------------------------------------------------------------- exchanges */

#if WORD_BITS / PIECES == 64
typedef ulong piece;
#else
typedef uint piece;
#endif
#define SLOTS NTT_SLOTS(STAGES, LOG2_LANES, WORD_BITS / PIECES)
#define LANE_SLOTS (SLOTS >> LOG2_LANES)
#define SLOT(e) NTT_SLOT(e, WORD_BITS / PIECES)

/* The position of element i of a work-item in local memory. */
INLINE local piece *slot_of(local piece *x, struct part part, uint i, const uint low,
                            const bool permutes, struct permutation perm)
{
    uint first = element_of(part, low);
    x += part.lane * LANE_SLOTS;
    return permutes ? x + SLOT(permuted(first, STEP(i, low), perm))
                    : x + SLOT(first) + SLOT(STEP(i, low));
}

/* Moves piece p of a work-item's elements to local memory, and from there. */
INLINE void put(local piece *x, const word *a, const uint p, struct part part, const uint low,
                const bool permutes, struct permutation perm)
{
    UNROLL for (uint i = 0; i < E; i++)
        *slot_of(x, part, i, low, permutes, perm) = (piece)(a[i] >> (p * (WORD_BITS / PIECES)));
}

INLINE void take(local piece *x, word *a, const uint p, struct part part, const uint low,
                 const bool permutes, struct permutation perm)
{
    UNROLL for (uint i = 0; i < E; i++) {
        word value = *slot_of(x, part, i, low, permutes, perm);
        a[i] = p == 0 ? value : a[i] | value << (p * (WORD_BITS / PIECES) % WORD_BITS);
    }
}

/* `next` takes elements that `part` has put. to_first bits of the lane come first in `next`: if
 * from_first differs, it takes other elements. A work-item only puts where it alone has taken last.
 * One barrier is thus enough, except for further pieces. */
#define TURN(from_first, to_first, PUT, TAKE)                                                \
    {                                                                                        \
        struct part next =                                                                   \
            (from_first) == (to_first) ? part : part_of(&space, first_row, end_row, perm, to_first); \
        word taken[E];                                                                       \
        UNROLL for (uint p = 0; p < PIECES; p++) {                                           \
            if (p > 0)                                                                       \
                barrier(CLK_LOCAL_MEM_FENCE);                                                \
            PUT;                                                                             \
            barrier(CLK_LOCAL_MEM_FENCE);                                                    \
            TAKE;                                                                            \
        }                                                                                    \
        UNROLL for (uint i = 0; i < E; i++)                                                  \
            a[i] = taken[i];                                                                 \
        part = next;                                                                         \
    }

/* ---------------------------------------------------------------- global memory */

#ifndef LOAD
#define LOAD(name, i) ((word)WIDEN((name)[i]))
#define STORE(name, i, x) ((name)[i] = (OUT)(x))
#endif

/* The distance of element i of a work-item from the start of its row. AT would mask this distance.
 * Then no address would be another one plus a constant. */
INLINE long place_of(struct part part, uint i, const uint low, long stride, const bool permutes,
                     struct permutation perm)
{
    uint first = PLACE(part, element_of(part, low)), step = STEP(i, low) * PLACE_STEP;
    return permutes ? (long)permuted(first, step, perm) * stride
                    : (long)first * stride + (long)step * stride;
}

/* Reduces any elements mod q to [0, LOADED_BOUND*q). Multiplies each element with
 * floor((2^WORD_BITS - 1) / q). Few inputs need this: a loop that rotates the elements keeps the
 * code short, and the elements in registers. */
INLINE void reduce_all(word *a, struct modulus modulus)
{
    word q = (word)modulus.value;
    ulong of_64_bits = (modulus.reciprocal >> (64 - modulus.shift)) + ((ulong)1 << modulus.shift);
    word reciprocal = (word)(of_64_bits >> (64 - WORD_BITS));
    /* Compilers that unroll loops do not know the number of iterations. */
    for (uint left = E + (q == 0); left > 0; left--) {
        word x = a[0], rest = subtract_once(x - mul_hi(x, reciprocal) * q, q);
        UNROLL for (uint i = 0; i + 1 < E; i++)
            a[i] = a[i + 1];
        if ((signed_word)x < 0) /* the element is x - 2^WORD_BITS, mod q */
            rest += (reciprocal + 1) * q;
        a[E - 1] = lower(rest, 2, LOADED_BOUND, q);
    }
}

/* Loads a work-item's elements of in; see element_of for low. */
INLINE void load_all(word *a, global const IN *in, const struct space *space, struct part part,
                     const uint low, global const struct modulus *q, const bool permutes,
                     struct permutation perm)
{
    struct row row = row_of(space, 1, part.row);
    in += row.position;
    UNROLL for (uint i = 0; i < E; i++)
        a[i] = LOAD(in, place_of(part, i, low, IN_ORDER ? 1 : row.stride, permutes, perm));
#if !FROM_PASS
    word value = (word)q[part.modulus].value, all = 0;
    UNROLL for (uint i = 0; i < E; i++)
        all = LIMIT == 2 ? max(all, a[i]) : all | a[i];
    if (LIMIT == 2 ? all >= value : (all & ~value) > value) /* if its highest bit is above q's */
        reduce_all(a, q[part.modulus]);
#endif
}

#ifdef ADDEND
#define ADDEND_PARAMETERS , global const OUT *addend, global const struct twiddle *factors
#else
#define ADDEND_PARAMETERS
#endif

INLINE void store_all(const word *a, global OUT *out, const struct space *space, struct part part,
                      const uint low, const bool permutes, struct permutation perm)
{
    struct row row = row_of(space, 0, part.row);
    out += row.position;
    UNROLL for (uint i = 0; i < E && part.is_there; i++)
        STORE(out, place_of(part, i, low, OUT_ORDER ? 1 : row.stride, permutes, perm), a[i]);
}

/* ---------------------------------------------------------------- kernels */

/*
 * The rows [first_row, end_row) of a space [l,r,k,n]; with TOGETHER, of whole l. Operands: out, in.
 * q [k]. twiddles: psi, or ipsi for the inverse, as [k,n], or for COLUMNS with TOGETHER as
 * [2^STAGES,k]. perm, with PERMUTED: the table of the permutation if a row is one block, or else of
 * its inverse.
 */
#define PARAMETERS                                                                             \
    uint first_row, uint end_row, global OUT *out, global const IN *in,                        \
        global const struct modulus *restrict q,                                               \
        global const word_twiddle *restrict twiddles, global const uint *restrict table

#define ENDS (!FOR_PASS)
/* Between rounds the work-items of a block are consecutive. */
#define BLOCKS_FIRST (COLUMNS ? LOG2_LANES : 0)

#if !INVERSE

#define ORDER_OF(round) ((round) == 0 ? LOAD_FIRST : BLOCKS_FIRST)

/* Element u of a row of out = transform of in at u, or at permutation[u]. ADDEND: then out = (out +
 * addend)*factors[modulus], as C remainders: see STEP_NTT in src/plan/steps.def. */
FEW_TOGETHER KERNEL ntt_pass(SPACE(space), PARAMETERS ADDEND_PARAMETERS)
{
    TAKE_SPACE(space);
#if ROUNDS > 1 || (ENDS && MOVES(STORE_FIRST))
    local piece x[SLOTS];
#else /* PoCL 6 rejects local arrays that are not used */
    local piece *const x = 0;
#endif
    word a[E];
    const struct permutation perm = permutation_of(table);
    struct part part = part_of(&space, first_row, end_row, perm, LOAD_FIRST);
    load_all(a, in, &space, part, TOP, q, false, perm);
    uint bound = FROM_PASS ? forward_bound(LOG2_N - STAGES) : LOADED_BOUND;
#define ROUND(r)                                                                               \
    if (r > 0 && r < ROUNDS)                                                                   \
        TURN(ORDER_OF(r - 1), ORDER_OF(r), put(x, a, p, part, LOW_OF(r - 1), false, perm),     \
             take(x, taken, p, next, LOW_OF(r), false, perm))                                               \
    if (r < ROUNDS)                                                                            \
        bound = forward_round(a, STAGES_OF(r), bound, twiddle_of(part, LOW_OF(r)),             \
                              table_of(part, &space, twiddles), (word)q[part.modulus].value,   \
                              ENDS && r + 1 == ROUNDS);
    ROUND(0)
    ROUND(1)
    ROUND(2)
    ROUND(3)
    ROUND(4)
    UNROLL for (uint i = 0; i < E && ENDS; i++)
        a[i] = lower(a[i], bound, 1, (word)q[part.modulus].value);
    if (ENDS && MOVES(STORE_FIRST))
        TURN(ORDER_OF(ROUNDS - 1), FIRST(STORE_FIRST, OUT_ORDER),
             put(x, a, p, part, 0, false, perm),
             take(x, taken, p, next, TOP, PERMUTES_LOCAL, perm))
#ifdef ADDEND /* any: a sum that is not negative is below 2^WORD_BITS, without a sign */
    const struct row row = row_of(&space, 2, part.row);
    struct twiddle w = factors[part.modulus];
    const word scale_sign = w.factor & TWIDDLE_NEGATIVE ? ~(word)0 : 0, value = q[part.modulus].value;
    w.factor &= ~TWIDDLE_NEGATIVE;
    UNROLL for (uint i = 0; i < E; i++) {
        long place = row.position + place_of(part, i, TOP, row.stride, PERMUTES_PLACES, perm);
        word x = LOAD(addend, place), sum = a[i] + x;
        word sign = (signed_word)(x & sum) < 0 ? ~(word)0 : 0; /* all bits of a negative sum */
        word rest = times((sum ^ sign) - sign, word_twiddle_of(w), value);
        sign ^= scale_sign;
        a[i] = (lower(rest, TIMES_BOUND, 1, value) ^ sign) - sign;
    }
#endif
    store_all(a, out, &space, part, ENDS ? TOP : 0, PERMUTES_PLACES, perm);
}

#else

#define ORDER_OF(round) ((round) == 0 ? STORE_FIRST : BLOCKS_FIRST)

/* A row of out = inverse transform of a row whose element permutation[u] is in's element u. The
 * pass that ends the transform multiplies by n_inv [k]. */
FEW_TOGETHER KERNEL intt_pass(SPACE(space), PARAMETERS, global const struct twiddle *n_inv)
{
    TAKE_SPACE(space);
#if ROUNDS > 1 || (!FROM_PASS && MOVES(LOAD_FIRST))
    local piece x[SLOTS];
#else
    local piece *const x = 0;
#endif
    word a[E];
    const struct permutation perm = permutation_of(table);
    const uint load_first = FIRST(LOAD_FIRST, IN_ORDER);
    struct part part = part_of(&space, first_row, end_row, perm, load_first);
    load_all(a, in, &space, part, FROM_PASS ? 0 : TOP, q, PERMUTES_PLACES, perm);
    if (!FROM_PASS && MOVES(LOAD_FIRST))
        TURN(load_first, ORDER_OF(ROUNDS - 1), put(x, a, p, part, TOP, PERMUTES_LOCAL, perm),
             take(x, taken, p, next, 0, false, perm))
    struct scale scale = {0, 0};
/* Between the halves of an exchange, when registers are free. */
#define SCALE(r, of)                                                                         \
    if (ENDS && r == 0)                                                                      \
        scale = scale_of(n_inv[(of).modulus], twiddle(table_of(of, &space, twiddles), 1),    \
                         q[(of).modulus]);
#define ROUND(r)                                                                             \
    if (r + 1 < ROUNDS)                                                                      \
        TURN(ORDER_OF(r + 1), ORDER_OF(r), put(x, a, p, part, LOW_OF(r + 1), false, perm);    \
             SCALE(r, next), take(x, taken, p, next, LOW_OF(r), false, perm))                             \
    else if (r < ROUNDS)                                                                     \
        SCALE(r, part)                                                                       \
    if (r < ROUNDS)                                                                          \
        inverse_round(a, STAGES_OF(r), twiddle_of(part, LOW_OF(r)),                          \
                      table_of(part, &space, twiddles), (word)q[part.modulus].value,         \
                      ENDS && r == 0, scale);
    ROUND(4)
    ROUND(3)
    ROUND(2)
    ROUND(1)
    ROUND(0)
    if (ROUNDS == 0) {
        scale = scale_of(n_inv[part.modulus], 0, q[part.modulus]);
        a[0] = times(a[0], scale.n_inv, (word)q[part.modulus].value);
    }
    UNROLL for (uint i = 0; i < E && ENDS; i++)
        a[i] = lower(a[i], TIMES_BOUND, 1, (word)q[part.modulus].value);
    if (ENDS && (n_inv[part.modulus].factor & TWIDDLE_NEGATIVE))
        UNROLL for (uint i = 0; i < E; i++)
            a[i] = 0 - a[i];
    store_all(a, out, &space, part, TOP, false, perm);
}

#endif
