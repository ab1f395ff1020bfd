/*
 * Sums of products with weights: b is the same along n, and all moduli share a. Base conversions
 * are such sums. A work-item splits a tile of a into halves once, for all moduli.
 */

/* The terms of a sum, in halves of `split` bits. Products of halves of `together` terms are added up
 * before they are reduced. */
struct weighted {
    ulong8 low[WEIGHTS_MAX], high[WEIGHTS_MAX];
    uint count, together, split;
};

/* (sum + products of these terms) mod q in [0, q); sum in [0, 2^62). low and high: the halves of a
 * vector of each term. `together` terms and their weights, below q, are below 2^62 / together. With
 * b the bits of q, the products and sum are thus below 2^(62 + b), as (q - 1) <= 2^b - 2. Words are
 * below 2^64. */
static inline ulong8 add_weighted(const ulong8 *low, const ulong8 *high,
                                  const struct weighted *weights, ulong8 sum,
                                  struct lane_divisor p)
{
    const uint split = weights->split;
    const ulong8 mask = (1UL << split) - 1;
    for (uint t = 0; t < weights->count;) {
        const uint end = min(t + weights->together, weights->count);
        ulong8 lower = sum & mask, middle = sum >> split, upper = 0;
        for (; t < end; t++) {
            const ulong8 w_low = weights->low[t], w_high = weights->high[t];
            lower += multiply_halves(low[t], w_low);
            middle += multiply_halves(high[t], w_low) + multiply_halves(low[t], w_high);
            upper += multiply_halves(high[t], w_high);
        }
        middle += lower >> split;
        upper += middle >> split;
        lower = (middle & mask) << split | (lower & mask);
        sum = reduce_product(upper << (p.shift + 2 * split - 62) | lower >> (62 - p.shift),
                             (upper << 2 * split) + lower, p);
    }
    return sum;
}

/* A tile of modmul_axis_sum_weights: `columns` vectors along n, for k moduli. Distances: from term
 * to term, along n, and from modulus to modulus. */
struct weighted_tile {
    global ELEMENT *out;
    global const ELEMENT *a, *b;
    global const struct modulus *q;
    long columns, count, k, a_term, b_term, a_n, out_n, b_k, out_k;
    bool adds;
};

/* Sums lanes [0, 8) of a column, of any values. */
NOINLINE static void sum_column_slowly(const struct weighted_tile *tile, long column, long j)
{
    for (long l = column * LANES; l < (column + 1) * LANES; l++)
        sum_products(tile->out + l * tile->out_n + j * tile->out_k, tile->a + l * tile->a_n,
                     tile->a_term, tile->b + j * tile->b_k, tile->b_term, tile->count, tile->q[j],
                     tile->adds);
}

/* Splits b's weights for modulus j. */
static inline void take_weights(struct weighted *weights, const struct weighted_tile *tile, long j)
{
    const struct modulus m = tile->q[j];
    for (long t = 0; t < tile->count; t++) {
        const ulong w = residue_of(WIDEN(tile->b[t * tile->b_term + j * tile->b_k]), m);
        weights->low[t] = w & ((1UL << weights->split) - 1);
        weights->high[t] = w >> weights->split;
    }
}

NOINLINE static void sum_weighted_tile(const struct weighted_tile *tile)
{
    const ulong count = (ulong)tile->count, vectors = (ulong)tile->columns * count;
    ulong8 low[WEIGHTED_VECTORS], high[WEIGHTED_VECTORS], bits = 0;
    struct weighted weights;
    for (ulong t = 0; t < count; t++)
        for (long i = 0; i < tile->columns; i++) {
            global const ELEMENT *from = tile->a + (long)t * tile->a_term + i * LANES * tile->a_n;
            ulong8 x = as_ulong8(load_groups(from, tile->a_n, 1));
            low[(ulong)i * count + t] = x;
            bits |= x;
        }
    for (long j = 0; j < tile->k; j++)
        bits |= tile->q[j].value == 1 ? ~0UL : tile->q[j].value;
    const bool is_short = are_all(bits >> 60 == 0), is_any = !are_all(bits >> 62 == 0);
    weights.count = (uint)count;
    weights.together = is_short ? 4 : are_all(bits >> 61 == 0) ? 2 : 1;
    weights.split = is_short ? 30 : 31;
    for (ulong i = 0; i < vectors; i++) {
        high[i] = low[i] >> weights.split;
        low[i] &= (1UL << weights.split) - 1;
    }
    for (long j = 0; j < tile->k; j++) {
        const struct lane_divisor p = make_divisor(tile->q[j]);
        take_weights(&weights, tile, j);
        for (long i = 0; i < tile->columns; i++) {
            global ELEMENT *to = tile->out + i * LANES * tile->out_n + j * tile->out_k;
            ulong8 held = tile->adds ? as_ulong8(load_groups(to, tile->out_n, 1)) : (ulong8)(0);
            if (is_any || (tile->adds && !are_all(held >> 62 == 0))) {
                sum_column_slowly(tile, i, j);
                continue;
            }
            held = add_weighted(low + (ulong)i * count, high + (ulong)i * count, &weights, held, p);
            if (tile->out_n == 1)
                store_vector(as_long8(held), to);
            else
                store_groups(as_long8(held), to, tile->out_n, 1);
        }
    }
}

/*
 * As modmul_axis_sum in core/sums.cl, for at most WEIGHTS_MAX terms, without a permutation. The
 * space is [tiles of `columns` vectors of n, any, reps]; the second axis may be missing. Operands:
 * out, a, b, with stride 0 for tiles. n is a multiple of 8.
 */
KERNEL modmul_axis_sum_weights(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                               global const ELEMENT *b, global const struct modulus *q,
                               global const uint *perm, uint flags, long n, long columns,
                               long count, long k, long a_term, long b_term, long a_n, long out_n,
                               long b_k, long out_k)
{
    TAKE_SPACE(space);
    struct weighted_tile tile;
    tile.q = q;
    tile.count = count;
    tile.k = k;
    tile.a_term = a_term;
    tile.b_term = b_term;
    tile.a_n = a_n;
    tile.out_n = out_n;
    tile.b_k = b_k;
    tile.out_k = out_k;
    tile.adds = flags & PRODUCTS_ADDED;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        const long first = span.index[0] * columns * LANES;
        tile.columns = min(columns, (n - first) / LANES);
        for (ulong r = 0; r < span.length; r++) {
            tile.out = out + POSITION(space, span, 0, r) + first * out_n;
            tile.a = a + POSITION(space, span, 1, r) + first * a_n;
            tile.b = b + POSITION(space, span, 2, r);
            sum_weighted_tile(&tile);
        }
    }
}
