/*
 * Negacyclic transforms for devices with wide vectors and few, strong compute units. A work-item
 * transforms whole rows in sequence, and keeps each row in its caches from load to store.
 *
 * Residues are lazy, as in D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014.
 * Rows of moduli without room for this, of 2^62 or more, are transformed by stages.cl.
 *
 * n >= 256. WORD_BITS: 64, or 32 if the output and the moduli have 32 bits and the input has no
 * more. Otherwise the tensors' types are not compiled in: compiling takes long, and a test for
 * every eight elements is cheap. For the same reason a program has only one direction, INVERSE 0 or
 * 1, and the parts that its launch needs. ROW_TILES selects passes; INTERLEAVED, BATCH_ROWS and
 * PERMUTED select row memory: see row_passes.cl and row_memory.cl.
 */
#if LOCAL_SIZE != 1
#error "rows need LOCAL_SIZE=1"
#endif

#include "../base/caches.cl"
#include "row_words.cl"
#include "row_passes.cl"
#include "row_memory.cl"
#include "stages.cl"
#include "tensor_rows.cl"

/* Row `number` of [l,r,k,n] in operand k of the space, whose elements have size bytes. */
static inline struct tensor_row tensor_row(const struct space *space, uint operand, ulong number,
                                           global char *memory, uint size)
{
    struct row row = row_of(space, operand, (uint)number);
    struct tensor_row result = {memory + row.position * size, row.stride, size};
    return result;
}

/* Whether passes can process a row of a tensor in place. */
static inline bool is_direct(struct tensor_row row)
{
    return row.size == sizeof(word) && row.stride == 1 && (ulong)row.memory % sizeof(words) == 0;
}

static inline enum order order_of(global const uint *perm, ulong n)
{
    if (!PERMUTED || perm[n] & PERMUTATION_IDENTITY)
        return ORDER_NATURAL;
    return perm[n] & PERMUTATION_REVERSES_BITS ? ORDER_BIT_REVERSED : ORDER_PERMUTED;
}

/* Transforms a row whose modulus is too large for vectors. n_inv: NULL in the forward transform. */
NOINLINE static void transform_exactly(global ulong *x, struct tensor_row out, struct tensor_row in,
                                       ulong n, global const uint *perm, struct modulus modulus,
                                       global const struct twiddle *twiddles,
                                       global const struct twiddle *n_inv)
{
    for (ulong u = 0; u < n; u++)
        x[n_inv && perm ? perm[u] : u] = reduce_signed(load_element(in, u), modulus);
    if (n_inv)
        intt_row(x, n, modulus.value, twiddles);
    else
        ntt_row(x, n, modulus.value, twiddles);
    for (ulong u = 0; u < n; u++) {
        ulong value = x[!n_inv && perm ? perm[u] : u];
        store_element(out, u, n_inv ? (ulong)multiply_scale(value, *n_inv, modulus.value) : value);
    }
}

NOINLINE static void negate_row(struct tensor_row row, ulong n)
{
    for (ulong u = 0; u < n; u++)
        store_element(row, u, (ulong)-load_element(row, u));
}

/* A power of two above q, which inputs of passes must be below. In the forward transform with words
 * of 64 bits it is twice as large, at most 2 BOUND. */
static inline word limit_of(struct modulus modulus, const bool inverse)
{
    return (word)1 << (64 - modulus.shift + (WORD_BITS == 64 && !inverse));
}

/*
 * out = transform of in. The space is [l,r,k,n]; operands: out, in, with elements of out_size and
 * in_size bytes. Work-items take turns with batches of batch_rows rows, at most NTT_BATCH_ROWS, of
 * one l. INTERLEAVED: the tensors in which these rows are interleaved element by element. scratch,
 * if use_scratch is not 0: batch_rows * (n + NTT_ROW_PADDING) words for each work-item. Otherwise
 * rows of out must be direct, separate from the input, and in natural order. q [k]; twiddles [k,n];
 * lane_twiddles are derived from them; n_inv [k], for the inverse only. perm [n] is used if
 * PERMUTED is 1; perm[n] is its kind, see core/checks.cl.
 *
 * Contiguous rows of residues are read in place, and contiguous rows are written in place. LARGE
 * requires rows of out that are direct and in natural order, one row in a batch, and scratch.
 * fetch_row: caches have room for the next row too.
 */
#if INVERSE
#define NTT_ROWS intt_rows
#else
#define NTT_ROWS ntt_rows
#endif
KERNEL NTT_ROWS(SPACE(space), global char *out_memory, global char *in_memory, uint out_size,
                uint in_size, global word *scratch, uint use_scratch,
                global const struct modulus *q, global const struct twiddle *twiddles,
                global const word *lane_twiddles, global const uint *perm, uint batch_rows,
                uint fetch_row, global const struct twiddle *n_inv)
{
    TAKE_SPACE(space);
    const bool inverse = INVERSE;
    ulong n = (ulong)space.shape[3], k = (ulong)space.shape[2], pitch = n + NTT_ROW_PADDING;
    ulong rows_of_l = (ulong)space.shape[1] * k;
    ulong batches = (rows_of_l + batch_rows - 1) / batch_rows;
    enum order order = order_of(perm, n);
    enum order in_order = inverse ? order : ORDER_NATURAL;
    enum order out_order = inverse ? ORDER_NATURAL : order;
    global word *rows = scratch + get_group_id(0) * batch_rows * pitch;
    words tile[NTT_ROW_TILE / WIDTH]; /* private: in the cache of the unit running the work-item */
    for (ulong batch = get_group_id(0); batch < (ulong)space.shape[0] * batches;
         batch += get_num_groups(0)) {
        ulong begin = batch % batches * batch_rows;
        ulong count = min((ulong)batch_rows, rows_of_l - begin);
        ulong first = batch / batches * rows_of_l + begin;
        struct reduction reductions[NTT_BATCH_ROWS];
        bool fits = true;
        for (ulong g = 0; g < count; g++) {
            struct modulus modulus = q[(first + g) % k];
            fits = fits && modulus.value >> MODULUS_BITS == 0;
            reductions[g] = make_reduction(modulus);
        }
        bool out_together = fits && count > 1 && OUT_INTERLEAVED;
        bool in_together = count > 1 && IN_INTERLEAVED;
        if (in_together)
            load_rows(rows, pitch, tensor_row(&space, 1, first, in_memory, in_size), count, n,
                      in_order, perm, reductions);
        for (ulong g = 0; g < count; g++) {
            ulong j = (first + g) % k, later = first + get_num_groups(0);
            struct tensor_row in = tensor_row(&space, 1, first + g, in_memory, in_size);
            struct tensor_row out = tensor_row(&space, 0, first + g, out_memory, out_size);
            struct modulus modulus = q[j];
            global const struct twiddle *row_twiddles = twiddles + j * n;
            global word *x = use_scratch ? rows + g * pitch : (global word *)out.memory;
            if (modulus.value >> MODULUS_BITS) {
                transform_exactly((global ulong *)x, out, in, n, PERMUTED ? perm : 0, modulus,
                                  row_twiddles, inverse ? n_inv + j : 0);
                continue;
            }
            struct row_transform transform;
            transform.n = n;
            transform.twiddles = row_twiddles;
            transform.lane_twiddles = lane_twiddles + j * ntt_lane_twiddles(n);
            transform.modulus = make_word_modulus(modulus.value);
            transform.fetch_row = fetch_row;
            transform.limit = limit_of(modulus, inverse);
            transform.tile = (word *)tile;
            transform.next =
                (global const word *)tensor_row(&space, 1, later, in_memory, in_size).memory;
            if (inverse) {
                transform.scale.n_inv = n_inv[j];
                transform.scale.n_inv.factor &= ~TWIDDLE_NEGATIVE;
                ulong scaled = multiply_mod(transform.scale.n_inv.factor, row_twiddles[1].factor,
                                            modulus);
                transform.scale.first = make_twiddle(scaled, modulus);
            }
            bool directly = is_direct(out) && out_order == ORDER_NATURAL;
            global word *to = directly ? (global word *)out.memory : x;
            bool done = false;
            if (!in_together && is_direct(in) && in_order == ORDER_NATURAL)
                done = transform_row(&transform, to, x, (global const word *)in.memory, inverse);
            if (!done) {
                if (!in_together)
                    load_rows(x, pitch, in, 1, n, in_order, perm, &reductions[g]);
                (void)transform_row(&transform, to, x, x, inverse);
            }
            if (!directly && !out_together)
                store_rows(out, x, pitch, 1, n, out_order, perm);
        }
        if (out_together)
            store_rows(tensor_row(&space, 0, first, out_memory, out_size), rows, pitch, count, n,
                       out_order, perm);
        for (ulong g = 0; inverse && g < count; g++)
            if (n_inv[(first + g) % k].factor & TWIDDLE_NEGATIVE &&
                q[(first + g) % k].value >> MODULUS_BITS == 0)
                negate_row(tensor_row(&space, 0, first + g, out_memory, out_size), n);
    }
#if defined LARGE && !INVERSE
    FENCE_PAST();
#endif
}
