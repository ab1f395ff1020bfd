/*
 * Sums of products modulo q on vectors of eight elements. Work-items traverse memory as in
 * columns.cl.
 */


enum {
    HALF = 31,                 /* bits of each half of a factor */
    TERMS = 2,                 /* added up at once: the rows that are read at a time */
    PRODUCT_FETCH = 2 * TERMS, /* see FETCH */
    PACKED = 32, /* rows of b that are packed, in 128 KiB: unpacked they share few cache sets */
    REPS_MIN = 3, /* that share b: fewer are not worth packing */
    BESIDE = 8,   /* vectors of columns that are read and written in sequence */
    FETCH_REVERSED = 4 * LANES /* prefetch distance for reversed bits: elements, or vectors of a */
};

/* Sums of up to 2^30 products of numbers in [0, 2^62): word[0] + word[1] * 2^31 + word[2] * 2^62 +
 * word[3] * 2^93. Words are below 2^63, word[0] is below 2^61. */
struct lane_products {
    ulong8 word[4];
};

static inline void lane_products_clear(struct lane_products *sums)
{
    UNROLL for (uint i = 0; i < 4; i++) sums->word[i] = 0;
}

/* sums += a[0]*b[0] + ...; all in [0, 2^62), at most TERMS terms. Four products of halves are below
 * 2^64 - 2^33: no sum overflows. For each term, words grow by less than 2^31, and word[3] by less
 * than 2^32. */
INLINE void lane_products_add(struct lane_products *sums, const ulong8 *a, const ulong8 *b,
                              uint terms)
{
    const ulong8 mask = (1UL << HALF) - 1;
    ulong8 high = 0, middle = 0, low = 0;
    UNROLL for (uint i = 0; i < terms; i++) {
        ulong8 a_high = a[i] >> HALF, b_high = b[i] >> HALF, a_low = a[i] & mask,
               b_low = b[i] & mask;
        high += multiply_halves(a_high, b_high);
        middle += multiply_halves(a_high, b_low) + multiply_halves(a_low, b_high);
        low += multiply_halves(a_low, b_low);
    }
    middle += low >> HALF;
    high += middle >> HALF;
    sums->word[0] += low & mask;
    sums->word[1] += middle & mask;
    sums->word[2] += high & mask;
    sums->word[3] += high >> HALF;
}

/* sums + x mod q in [0, q); x in [0, 2^62). Shrinking a value below q + q/2^8 + 2^17 leaves less
 * than q + 1 + q/2^40. */
static inline ulong8 lane_products_reduce(const struct lane_products *sums, ulong8 x,
                                          struct lane_divisor p)
{
    ulong8 rest = lane_shrink(sums->word[3], p);
    rest = lane_append(rest, HALF, sums->word[2], p);
    rest = lane_append(rest, HALF, sums->word[1], p);
    rest = lane_append(rest, HALF, sums->word[0] + x, p);
    rest = lane_shrink(rest, p);
    return subtract_once(rest, p.q);
}

/* Axis n of out or b: element l is at l * stride, or at perm[l] * stride. */
struct permuted_axis {
    long stride;
    global const uint *perm; /* or NULL */
};

static inline long axis_position(struct permuted_axis axis, long l)
{
    return (axis.perm ? (long)axis.perm[l] : l) * axis.stride;
}

/* Elements l to l + 7 of such an axis. */
static inline long8 load_permuted(global const ELEMENT *from, struct permuted_axis axis, long l)
{
    if (axis.stride == 1 && !axis.perm)
        return load_vector(from + l);
    long values[LANES];
    for (long i = 0; i < LANES; i++)
        values[i] = WIDEN(from[axis_position(axis, l + i)]);
    return vload8(0, values);
}

static inline void store_permuted(long8 x, global ELEMENT *to, struct permuted_axis axis, long l)
{
    long values[LANES];
    vstore8(x, 0, values);
    for (long i = 0; i < LANES; i++)
        to[axis_position(axis, l + i)] = (ELEMENT)values[i];
}

/* BESIDE elements of a permutation that reverses bits, in its order: they are n / BESIDE apart. */
#define REVERSED(i) (((i)&1) << 2 | ((i)&2) | (i) >> 2)

/* Loads eight vectors of a row through a permutation that reverses bits. In memory these elements
 * form eight vectors, n / 8 apart, and `from` is the first one. The results begin with elements
 * perm[from - row] + i * n / 8. */
static inline void load_reversed(ulong8 *x, global const ELEMENT *from, long apart)
{
    ulong8 y[BESIDE];
    UNROLL for (uint i = 0; i < BESIDE; i++) {
        PREFETCH(from + i * apart + FETCH_REVERSED);
        y[i] = as_ulong8(load_vector(from + REVERSED(i) * apart));
    }
    transpose_8(y);
    UNROLL for (uint i = 0; i < BESIDE; i++) x[i] = y[REVERSED(i)];
}

static inline void store_reversed(const ulong8 *x, global ELEMENT *to, long apart)
{
    ulong8 y[BESIDE];
    UNROLL for (uint i = 0; i < BESIDE; i++) y[i] = x[REVERSED(i)];
    transpose_8(y);
    UNROLL for (uint i = 0; i < BESIDE; i++)
        store_vector(as_long8(y[i]), to + REVERSED(i) * apart);
}

/* A block of a row of out that a work-item of modmul_axis_sum_vectors reads and writes. It has
 * `columns` vectors of columns, with count rows of a and of b. Columns of a are contiguous from
 * `first` on, and so are those of out and b without a permutation. If the permutation reverses
 * bits, columns of out and b are used in memory order. First come BESIDE vectors at first, first +
 * apart and so on, then the vectors after them. Columns of a follow from these. Rows of a have
 * stride 1. */
struct product_block {
    global ELEMENT *out;
    global const ELEMENT *a, *b;
    struct permuted_axis out_axis, b_axis;
    long first, apart, count, a_stride, b_stride;
    ulong columns;
    bool adds;     /* adds to the contents of out */
    bool reverses; /* rows of out and b are contiguous, but bits of their indices are reversed */
};

/* The first column of vector i of a block. */
static inline long block_column(struct product_block block, ulong i)
{
    if (!block.reverses)
        return block.first + (long)i * LANES;
    return (long)block.b_axis.perm[block.first + (long)(i / BESIDE) * LANES] +
           (long)(i % BESIDE) * block.apart;
}

/* The position of the BESIDE vectors from i on, in rows of out and b in memory order. */
static inline long reversed_place(struct product_block block, ulong i)
{
    return block.first + (long)(i / BESIDE) * LANES;
}

/* Packs rows j to j + rows - 1 of b, SUM_COLUMNS vectors apart. Returns the OR of all elements. */
NOINLINE static ulong8 pack_rows(ulong8 *packed, struct product_block block, long j, long rows)
{
    ulong8 bits = 0;
    for (long row = 0; row < rows; row++) {
        global const ELEMENT *from = block.b + (j + row) * block.b_stride;
        ulong8 *to = packed + (ulong)row * SUM_COLUMNS;
        for (ulong i = 0; block.reverses && i < block.columns; i += BESIDE)
            load_reversed(to + i, from + reversed_place(block, i), block.apart);
        for (ulong i = 0; i < block.columns; i++) {
            if (!block.reverses)
                to[i] = as_ulong8(load_permuted(from, block.b_axis, block_column(block, i)));
            bits |= to[i];
        }
    }
    return bits;
}

/* Adds the products of `rows` rows of a and b, from row j of a block on, to the sums of their
 * columns. b's rows are packed, or read with stride 1 if packed is NULL. Returns the OR of all
 * elements that were not packed. */
INLINE ulong8 add_products(struct lane_products *sums, struct product_block block, long j,
                           const ulong8 *packed, uint rows)
{
    ulong8 bits = 0;
    for (ulong i = 0; i < block.columns; i++) {
        long column = block_column(block, i);
        long ahead = block.reverses ? block_column(block, i + FETCH_REVERSED) - column
                                    : PRODUCT_FETCH * block.a_stride;
        global const ELEMENT *a = block.a + j * block.a_stride + column;
        global const ELEMENT *b = block.b + j * block.b_stride + column;
        ulong8 x[TERMS], y[TERMS];
        UNROLL for (uint row = 0; row < rows; row++) {
            PREFETCH(a + row * block.a_stride + ahead);
            x[row] = as_ulong8(load_vector(a + row * block.a_stride));
            y[row] = packed ? packed[row * SUM_COLUMNS + i]
                            : as_ulong8(load_vector(b + row * block.b_stride));
            bits |= packed ? x[row] : x[row] | y[row];
        }
        struct lane_products sum = sums[i];
        lane_products_add(&sum, x, y, rows);
        sums[i] = sum;
    }
    return bits;
}

/* As add_products, for any number of rows. */
INLINE ulong8 add_block(struct lane_products *sums, struct product_block block, long j,
                        const ulong8 *packed, long rows)
{
    ulong8 bits = 0;
    long row = 0;
    for (; row + TERMS <= rows; row += TERMS)
        bits |= add_products(sums, block, j + row, packed ? packed + row * SUM_COLUMNS : 0, TERMS);
    for (; row < rows; row++)
        bits |= add_products(sums, block, j + row, packed ? packed + row * SUM_COLUMNS : 0, 1);
    return bits;
}

/* Loads the contents of out, or prefetches its lines. Returns the OR of all elements. */
NOINLINE static ulong8 load_out(ulong8 *held, struct product_block block)
{
    ulong8 bits = 0;
    for (ulong i = 0; block.reverses && i < block.columns; i += BESIDE) {
        global ELEMENT *from = block.out + reversed_place(block, i);
        if (block.adds)
            load_reversed(held + i, from, block.apart);
        else
            UNROLL for (uint j = 0; j < BESIDE; j++) PREFETCH(from + j * block.apart);
    }
    for (ulong i = 0; i < block.columns; i++) {
        if (!block.adds)
            held[i] = 0;
        else if (!block.reverses)
            held[i] = as_ulong8(load_permuted(block.out, block.out_axis, block_column(block, i)));
        bits |= held[i];
    }
    return bits;
}

/* out = held + sums mod q. All values of held are in [0, 2^62). held gets the results too. */
NOINLINE static void store_out(const struct lane_products *sums, ulong8 *held,
                               struct product_block block, struct lane_divisor p)
{
    for (ulong i = 0; i < block.columns; i++) {
        held[i] = lane_products_reduce(&sums[i], held[i], p);
        if (!block.reverses)
            store_permuted(as_long8(held[i]), block.out, block.out_axis, block_column(block, i));
    }
    for (ulong i = 0; block.reverses && i < block.columns; i += BESIDE)
        store_reversed(held + i, block.out + reversed_place(block, i), block.apart);
}

/* *out = a[0]*b[0] + ... over count terms, a_stride and b_stride apart, mod q. With adds, *out is
 * added too. Values have any size and sign. */
NOINLINE static void sum_products(global ELEMENT *out, global const ELEMENT *a, long a_stride,
                                global const ELEMENT *b, long b_stride, long count,
                                struct modulus q, bool adds)
{
    struct wide sum = adds ? wide_add(wide_zero(), WIDEN(*out)) : wide_zero();
    for (long j = 0; j < count; j++)
        sum = wide_add_product(sum, WIDEN(a[j * a_stride]), WIDEN(b[j * b_stride]));
    *out = (ELEMENT)wide_reduce(sum, q);
}

/* As sum_products, for each column of a block. */
NOINLINE static void sum_block_slowly(struct product_block block, struct modulus q)
{
    for (ulong i = 0; i < block.columns * LANES; i++) {
        long l = block_column(block, i / LANES) + (long)(i % LANES);
        sum_products(block.out + axis_position(block.out_axis, l), block.a + l, block.a_stride,
                     block.b + axis_position(block.b_axis, l), block.b_stride, block.count, q,
                     block.adds);
    }
}

/*
 * As modmul_axis_sum in core/sums.cl. The space is [k, blocks of a row, any, reps]. The third axis
 * may be missing. Reps are processed in sequence, and may share b in cache. Two more axes follow
 * the space, which each work-item traverses itself: n, a multiple of 8, and the terms. Operands:
 * out, a, b. Their strides for blocks are 0, and a has stride 1 along n.
 */
KERNEL modmul_axis_sum_vectors(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                               global const ELEMENT *b, global const struct modulus *q,
                               global const uint *perm, uint flags)
{
    TAKE_SPACE(space);
    const uint axis_reps = space.rank - 1, axis_n = axis_reps + 1, axis_terms = axis_n + 1;
    struct lane_products sums[SUM_COLUMNS];
    ulong8 held[SUM_COLUMNS], packed[PACKED * SUM_COLUMNS], packed_bits = 0;
    struct product_block block;
    global const ELEMENT *packed_of = 0; /* the block of b with packed rows, from packed_first on */
    long packed_first = -1;
    block.out_axis.stride = space.operand[0].stride[axis_n];
    block.b_axis.stride = space.operand[2].stride[axis_n];
    block.out_axis.perm = block.b_axis.perm = flags & PRODUCTS_PERMUTED ? perm : 0;
    block.adds = flags & PRODUCTS_ADDED;
    block.count = space.shape[axis_terms];
    block.a_stride = space.operand[1].stride[axis_terms];
    block.b_stride = space.operand[2].stride[axis_terms];
    const long n = space.shape[axis_n], whole = SUM_COLUMNS * LANES;
    const bool shares = space.operand[2].stride[axis_reps] == 0;
    /* Reading b's rows is cheap if many reps share them. */
    block.reverses = block.b_axis.perm && (perm[n] & PERMUTATION_REVERSES_BITS) && n % whole == 0 &&
                     block.out_axis.stride == 1 && block.b_axis.stride == 1 &&
                     !(shares && space.shape[axis_reps] >= REPS_MIN);
    block.apart = n / BESIDE;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        struct modulus modulus = q[span.index[0]];
        struct lane_divisor p = make_divisor(modulus);
        block.first = span.index[1] * (block.reverses ? whole / BESIDE : whole);
        block.columns = min((ulong)SUM_COLUMNS, (ulong)(n - block.first) / LANES);
        bool packs = (shares && span.length >= REPS_MIN) || block.b_axis.stride != 1 || block.b_axis.perm;
        for (ulong r = 0; r < span.length; r++) {
            block.out = out + POSITION(space, span, 0, r);
            block.a = a + POSITION(space, span, 1, r);
            block.b = b + POSITION(space, span, 2, r);
            ulong8 bits = load_out(held, block);
            for (ulong i = 0; i < block.columns; i++)
                lane_products_clear(&sums[i]);
            if (!packs)
                bits |= add_block(sums, block, 0, 0, block.count);
            for (long j = 0; packs && j < block.count; j += PACKED) {
                long rows = min((long)PACKED, block.count - j);
                if (packed_first != j || packed_of != block.b + block.first)
                    packed_bits = pack_rows(packed, block, j, rows);
                packed_first = j;
                packed_of = block.b + block.first;
                bits |= packed_bits | add_block(sums, block, j, packed, rows);
            }
            if (are_all(bits >> 62 == 0))
                store_out(sums, held, block, p);
            else
                sum_block_slowly(block, modulus);
        }
    }
}
