/*
 * Negacyclic transforms for devices with wide vectors and few, strong compute units: a work-item
 * takes whole rows, one after another, and keeps a row in its caches from load to store.
 *
 * Residues are lazy, as in D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014. A
 * modulus that leaves no room for that, of 2^62 or more, sends its rows through stages.cl.
 *
 * n >= 256. WORD_BITS: 64, or 32 where the output and the moduli have 32 bits and the input has no
 * more. Otherwise the tensors' types are not fixed: compiling this takes long, and a test for every
 * eight elements costs little.
 */
#if CHUNKS != 1 || LOCAL_SIZE != 1
#error "rows need CHUNKS=1 and LOCAL_SIZE=1"
#endif

#include "stages.cl"

#include "../base/caches.cl"

#include "row_words.cl"

#include "row_passes.cl"

#include "row_memory.cl"

/*
 * The lane twiddles of transforms of n: for every group of WIDTH blocks, first those of its middle
 * pass, then those of its last passes, for 16 elements after 16; for each the twiddles t = 1 ...
 * R-1, and for each the factors of the WIDTH blocks, then their quotients.
 * twiddles: [k,n]; table: k times lane_twiddles_of(n) words.
 */
KERNEL lane_twiddles(global const struct twiddle *twiddles, ulong n, ulong k, global word *table)
{
    ulong block = divide_row(n).block, middle = block / NTT_RADIX;
    ulong vectors = n / block / WIDTH * (block - 1); /* factors of one row */
    for (ulong i = get_group_id(0); i < k * vectors * WIDTH; i += get_num_groups(0)) {
        ulong lane = i % WIDTH, vector = i / WIDTH;
        ulong place = vector % vectors, t = place % (block - 1) + 1;
        ulong number = place / (block - 1) * WIDTH + lane + n / block; /* of a block */
        if (t >= middle) {
            ulong last = t - middle;
            t = last % (NTT_RADIX - 1) + 1;
            number = number * middle + last / (NTT_RADIX - 1);
        }
        struct twiddle w = twiddles[vector / vectors * n + STAGE_OF(t) * number + t - STAGE_OF(t)];
        table[2 * vector * WIDTH + lane] = (word)w.factor;
        table[(2 * vector + 1) * WIDTH + lane] = word_quotient(w.quotient);
    }
}

/*
 * out = transform of in. The space is [l,r,k,n]; operands: out, in, of elements of out_size and
 * in_size bytes. Work-items take turns with batches of `together` rows, at most NTT_ROWS_TOGETHER, of one l;
 * neighbours says in which tensors the elements of one number of these rows lie side by side: bit 0
 * for out, bit 1 for in. scratch: together * (n + NTT_ROW_PADDING) words for each work-item, where
 * use_scratch is not 0; else rows of out are direct, apart from the input, and in plain order.
 * q [k]; twiddles [k,n]; lane_twiddles made of them; n_inv [k] (inverse only). perm [n] is used
 * where use_perm is not 0; perm[n] tells its kind, see derive.cl.
 *
 * Rows that lie side by side, and are residues, are read where they are, and such rows are written
 * where they are. LARGE wants rows of out that are direct and in plain order, one in a batch,
 * with scratch.
 */
#define ROWS_PARAMETERS                                                                            \
    SPACE, global char *out_memory, global char *in_memory, uint out_size, uint in_size,           \
        global word *scratch, uint use_scratch, global const struct modulus *q,                    \
        global const struct twiddle *twiddles, global const word *lane_twiddles,                   \
        global const uint *perm, uint use_perm, uint together, uint neighbours

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

/* Whether the passes can work on a row of a tensor where it is. */
static inline bool is_direct(struct row row)
{
    return row.size == sizeof(word) && row.stride == 1 && (ulong)row.memory % sizeof(words) == 0;
}

static inline enum order order_of(global const uint *perm, uint use_perm, ulong n)
{
    if (!use_perm || perm[n] & 2)
        return ORDER_PLAIN;
    return perm[n] & 1 ? ORDER_REVERSED : ORDER_OTHER;
}

/* A row whose modulus the vectors have no room for; n_inv: NULL in the forward transform. */
NOINLINE static void transform_exactly(global ulong *x, struct row out, struct row in, ulong n,
                                     global const uint *perm, struct modulus modulus,
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
        store_element(out, u, n_inv ? multiply_twiddle(value, *n_inv, modulus.value) : value);
    }
}

/* What both kernels begin a batch with: it has count rows from row `first` on. */
#define FOR_EACH_BATCH                                                                             \
    ulong n = (ulong)space.shape[3], k = (ulong)space.shape[2], pitch = n + NTT_ROW_PADDING;           \
    ulong rows_of_l = (ulong)space.shape[1] * k, batches = (rows_of_l + together - 1) / together;  \
    enum order order = order_of(perm, use_perm, n);                                                \
    global word *rows = scratch + get_group_id(0) * together * pitch;                              \
    words lane_vectors[NTT_ROW_PART / WIDTH]; /* private: in the cache of whoever runs the work-item */    \
    word *lanes = (word *)lane_vectors;                                                            \
    for (ulong batch = get_group_id(0); batch < (ulong)space.shape[0] * batches;                   \
         batch += get_num_groups(0))

#define BEGIN_BATCH                                                                                \
    ulong begin = batch % batches * together, count = min((ulong)together, rows_of_l - begin);     \
    ulong first = batch / batches * rows_of_l + begin;                                             \
    struct reduction reductions[NTT_ROWS_TOGETHER];                                                         \
    bool fits = true;                                                                              \
    for (ulong g = 0; g < count; g++) {                                                            \
        struct modulus modulus = q[(first + g) % k];                                               \
        fits = fits && modulus.value >> MODULUS_BITS == 0;                                         \
        reductions[g] = make_reduction(modulus);                                                   \
    }                                                                                              \
    bool out_together = fits && count > 1 && neighbours & 1;                                       \
    bool in_together = count > 1 && neighbours & 2;                                                \
    struct row first_out = row_of(&space, first, 0, out_memory, out_size);                         \
    struct row first_in = row_of(&space, first, 1, in_memory, in_size);

/* And one of its rows, number g, with x for scratch. */
#define BEGIN_ROW                                                                                  \
    ulong j = (first + g) % k;                                                                     \
    struct row in = row_of(&space, first + g, 1, in_memory, in_size);                              \
    struct row out = row_of(&space, first + g, 0, out_memory, out_size);                           \
    global const word *next =                                                                      \
        (global const word *)row_of(&space, first + get_num_groups(0), 1, in_memory, in_size)      \
            .memory;                                                                               \
    struct modulus modulus = q[j];                                                                 \
    struct word_modulus vector = make_word_modulus(modulus.value);                                 \
    global const struct twiddle *row_twiddles = twiddles + j * n;                                  \
    global const word *row_lane_twiddles = lane_twiddles + j * lane_twiddles_of(n);                \
    global word *x = use_scratch ? rows + g * pitch : (global word *)out.memory;

KERNEL ntt_rows(ROWS_PARAMETERS)
{
    TAKE_SPACE;
    FOR_EACH_BATCH
    {
        BEGIN_BATCH
        if (in_together)
            load_rows(rows, pitch, first_in, count, n, ORDER_PLAIN, perm, reductions);
        for (ulong g = 0; g < count; g++) {
            BEGIN_ROW
            if (modulus.value >> MODULUS_BITS) {
                transform_exactly((global ulong *)x, out, in, n, use_perm ? perm : 0, modulus,
                                  row_twiddles, 0);
                continue;
            }
            /* A power of two above q; of words of 64 bits twice that: it is at most 2 BOUND. */
            word limit = (word)1 << (64 - modulus.shift + (WORD_BITS == 64));
            bool directly = is_direct(out) && order == ORDER_PLAIN;
            global word *to = directly ? (global word *)out.memory : x;
            bool done = false;
            if (!in_together && is_direct(in))
                done = forward_row(to, x, (global const word *)in.memory, next, lanes, n,
                                   row_twiddles, row_lane_twiddles, vector, limit);
            if (!done) {
                if (!in_together)
                    load_row(x, in, (struct strip){0, n}, ORDER_PLAIN, perm, &reductions[g]);
                (void)forward_row(to, x, x, next, lanes, n, row_twiddles, row_lane_twiddles, vector,
                                  limit);
            }
            if (!directly && !out_together)
                store_row(out, x, (struct strip){0, n}, order, perm);
        }
        if (out_together)
            store_rows(first_out, rows, pitch, count, n, order, perm);
    }
    if (LARGE)
        FENCE_PAST();
}

KERNEL intt_rows(ROWS_PARAMETERS, global const struct twiddle *n_inv)
{
    TAKE_SPACE;
    FOR_EACH_BATCH
    {
        BEGIN_BATCH
        if (in_together)
            load_rows(rows, pitch, first_in, count, n, order, perm, reductions);
        for (ulong g = 0; g < count; g++) {
            BEGIN_ROW
            if (modulus.value >> MODULUS_BITS) {
                transform_exactly((global ulong *)x, out, in, n, use_perm ? perm : 0, modulus,
                                  row_twiddles, n_inv + j);
                continue;
            }
            struct scale scale = {n_inv[j], make_twiddle(multiply_mod(n_inv[j].factor,
                                                                      row_twiddles[1].factor,
                                                                      modulus),
                                                         modulus)};
            /* A power of two above q, at most 2q. */
            word limit = (word)1 << (64 - modulus.shift);
            bool directly = is_direct(out);
            global word *to = directly ? (global word *)out.memory : x;
            bool done = false;
            if (!in_together && is_direct(in) && order == ORDER_PLAIN)
                done = inverse_row(to, x, (global const word *)in.memory, next, lanes, n,
                                   row_twiddles, row_lane_twiddles, vector, &scale, limit);
            if (!done) {
                if (!in_together)
                    load_row(x, in, (struct strip){0, n}, order, perm, &reductions[g]);
                (void)inverse_row(to, x, x, next, lanes, n, row_twiddles, row_lane_twiddles,
                                  vector, &scale, limit);
            }
            if (!directly && !out_together)
                store_row(out, x, (struct strip){0, n}, ORDER_PLAIN, perm);
        }
        if (out_together)
            store_rows(first_out, rows, pitch, count, n, ORDER_PLAIN, perm);
    }
}
