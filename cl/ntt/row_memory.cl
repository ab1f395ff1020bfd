/*
 * Rows between tensors and scratch memory, eight elements at a time. Residues are reduced as they
 * are loaded. A row x in scratch has its elements in the order of the transform. Element v of x is
 * element v of the tensor's row, or the element with v's bits reversed, or follows a permutation.
 *
 * A program only has the code of its launch. INTERLEAVED: the tensors whose rows of a batch may be
 * interleaved element by element, bits of NTT_IN_INTERLEAVED and NTT_OUT_INTERLEAVED. BATCH_ROWS:
 * the most rows of a batch, 2 or NTT_BATCH_ROWS. PERMUTED: 1 if there may be a permutation, of what
 * the inverse loads, or of what the forward transform stores.
 */
enum order { ORDER_NATURAL, ORDER_BIT_REVERSED, ORDER_PERMUTED };

#define IN_INTERLEAVED (INTERLEAVED & NTT_IN_INTERLEAVED)
#define OUT_INTERLEAVED (INTERLEAVED & NTT_OUT_INTERLEAVED)
#define IN_PERMUTED (PERMUTED && INVERSE)
#define OUT_PERMUTED (PERMUTED && !INVERSE)

/* Eight words of a row in scratch, from a multiple of eight on. */
#if WORD_BITS == 64
#define LOAD_EIGHT(x) (*(global const ulong8 *)(x))
#define STORE_EIGHT(value, x) (*(global ulong8 *)(x) = (value))
#else
#define LOAD_EIGHT(x) convert_ulong8(*(global const uint8 *)(x))
#define STORE_EIGHT(value, x) (*(global uint8 *)(x) = convert_uint8(value))
#endif

/* ---------------------------------------------------------------- a tensor's row */

/* stride: the distance between elements of `size` bytes, 1, 4 or 8. */
struct tensor_row {
    global char *memory;
    long stride;
    uint size;
};

static inline void store_number(global char *at, uint size, ulong value)
{
    if (size == 8)
        *(global long *)at = (long)value;
    else
        *(global int *)at = (int)value;
}

static inline global char *element_at(struct tensor_row row, ulong i)
{
    return row.memory + (long)i * row.stride * row.size;
}

static inline long load_element(struct tensor_row row, ulong i)
{
    return load_number(element_at(row, i), row.size);
}

static inline void store_element(struct tensor_row row, ulong i, ulong value)
{
    store_number(element_at(row, i), row.size, value);
}

/* Contiguous numbers in memory. */
#define NUMBERS(count)                                                                             \
    static inline ulong##count load_numbers_##count(global const char *at, uint size)              \
    {                                                                                              \
        if (size == 8)                                                                             \
            return as_ulong##count(vload##count(0, (global const long *)at));                      \
        if (size == 4)                                                                             \
            return as_ulong##count(WIDEN_int(count, vload##count(0, (global const int *)at)));    \
        return as_ulong##count(convert_long##count(vload##count(0, at)));                          \
    }                                                                                              \
    static inline void store_numbers_##count(global char *at, uint size, ulong##count value)       \
    {                                                                                              \
        if (size == 8)                                                                             \
            vstore##count(as_long##count(value), 0, (global long *)at);                            \
        else                                                                                       \
            vstore##count(as_int##count(convert_uint##count(value)), 0, (global int *)at);         \
    }

NUMBERS(2)
NUMBERS(4)
NUMBERS(8)

/* ---------------------------------------------------------------- residues */

/* Reduces any elements modulo q < 2^62. */
struct reduction {
    struct lane_modulus modulus;
    struct twiddle one; /* of the factor 1 */
};

static inline struct reduction make_reduction(struct modulus m)
{
    struct reduction r;
    r.modulus.q = (ulong8)(m.value);
    r.modulus.twice = (ulong8)(2 * m.value);
    r.one = make_twiddle(1 % m.value, m);
    return r;
}

/* Elements as residues in [0, q]. Most are in [0, q) already. As unsigned numbers, negative
 * elements are large. */
static inline ulong8 reduce_elements(ulong8 value, const struct reduction *r)
{
    if (are_all(value < r->modulus.q))
        return value;
    ulong8 rest = reduce_lazy(multiply_lazy(lane_magnitude(as_long8(value)),
                                            (ulong8)(r->one.factor), (ulong8)(r->one.quotient),
                                            r->modulus),
                              r->modulus);
    return select(rest, r->modulus.q - rest, as_ulong8(as_long8(value) < 0));
}

/* ---------------------------------------------------------------- order */

/* The lowest log2(n) bits of i in reversed order; n is a power of two below 2^32. */
static inline ulong reverse_index(ulong i, ulong n)
{
    uint x = (uint)i;
    x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
    x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
    x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
    x = (x & 0x00ff00ff) << 8 | (x >> 8 & 0x00ff00ff);
    x = x << 16 | x >> 16;
    return x >> (clz((uint)n) + 1);
}

/* Reversing bits moves tiles of 8 x 8 elements, and transposes them. A tile has eight rows of eight
 * elements, n/8 apart, from w on, a multiple of 8 below n/8. It moves to such rows from
 * reverse_index(w) on. Returns the start of row i. */
static inline ulong reversed_tile_row(ulong w, uint i, ulong n)
{
    return w + n / 8 * ((i & 1) << 2 | (i & 2) | i >> 2);
}

/* Byte offsets from an element of a row to this and the next seven elements, and to the one that is
 * prefetched. */
struct offsets {
    long offset[8], ahead;
};

static inline struct offsets make_offsets(struct tensor_row row)
{
    long spacing = row.stride * row.size;
    ulong far = max(AHEAD_BYTES / max(abs(spacing), (ulong)1), (ulong)1); /* elements */
    struct offsets offsets;
    for (uint i = 0; i < 8; i++)
        offsets.offset[i] = (long)i * spacing;
    offsets.ahead = (long)((far + 7) / 8 * 8) * spacing;
    return offsets;
}

/* Stores lanes to elements v ... v+7 of x, or as the permutation specifies. */
static inline void store_ordered(global word *x, ulong v, ulong8 residues, enum order order,
                                 global const uint *perm)
{
    if (!IN_PERMUTED || order != ORDER_PERMUTED) {
        STORE_EIGHT(residues, x + v);
        return;
    }
    ulong values[8];
    vstore8(residues, 0, values);
    UNROLL for (uint i = 0; i < 8; i++) x[perm[v + i]] = (word)values[i];
}

static inline ulong8 load_ordered(global const word *x, ulong v, enum order order,
                                  global const uint *perm)
{
    if (!OUT_PERMUTED || order != ORDER_PERMUTED)
        return LOAD_EIGHT(x + v);
    uint8 from = vload8(0, perm + v);
    return (ulong8)(x[from.s0], x[from.s1], x[from.s2], x[from.s3], x[from.s4], x[from.s5],
                    x[from.s6], x[from.s7]);
}

/* ---------------------------------------------------------------- eight elements of R rows */

/* R interleaved rows have their elements of one index contiguous in memory. R is 1, 2, 3, 4 or 8,
 * and 3 only if memory has only these rows. In a, vector g has the eight elements of row g. */

/* Prefetches ahead of elements v ... v+7. Does nothing for a single contiguous row, which hardware
 * predicts. */
INLINE void fetch_ahead(const uint R, struct tensor_row row, ulong v, const struct offsets *by,
                        const bool reversed)
{
    const uint count = R == 1 && !reversed ? 8 : R;
    if (R > 1 || reversed || row.stride != 1)
        UNROLL for (uint i = 0; i < count; i++)
            PREFETCH(element_at(row, v) + by->ahead + by->offset[i * 8 / count]);
}

static inline ulong8 load_one(global const char *at, struct tensor_row in, const struct offsets *by)
{
    uint size = in.size;
    if (in.stride == 1)
        return load_numbers_8(at, size);
    ulong values[8];
    UNROLL for (uint i = 0; i < 8; i++) values[i] = (ulong)load_number(at + by->offset[i], size);
    return vload8(0, values);
}

/* If memory has only these two rows, whole vectors are loaded instead of pieces. */
static inline void load_two(ulong8 *a, global const char *at, struct tensor_row in,
                            const struct offsets *by)
{
    uint size = in.size;
    if (in.stride == 2) {
        ulong8 low = load_numbers_8(at, size), high = load_numbers_8(at + 8 * size, size);
        a[0] = (ulong8)(low.even, high.even);
        a[1] = (ulong8)(low.odd, high.odd);
        return;
    }
    UNROLL for (uint i = 0; i < 2; i++)
        a[i] = (ulong8)(load_numbers_2(at + by->offset[i], size),
                        load_numbers_2(at + by->offset[i + 2], size),
                        load_numbers_2(at + by->offset[i + 4], size),
                        load_numbers_2(at + by->offset[i + 6], size));
    transpose_2(a);
}

static inline void load_three(ulong8 *a, global const char *at, uint size)
{
    ulong8 low = load_numbers_8(at, size), middle = load_numbers_8(at + 8 * size, size);
    ulong8 high = load_numbers_8(at + 16 * size, size);
    a[0] = (ulong8)(low.s036, middle.s147, high.s25);
    a[1] = (ulong8)(low.s147, middle.s25, high.s036);
    a[2] = (ulong8)(low.s25, middle.s036, high.s147);
}

/* Elements v ... v+7. */
INLINE void load_eight(const uint R, ulong8 *a, struct tensor_row in, ulong v,
                       const struct offsets *by)
{
    global const char *at = element_at(in, v);
    if (R == 1)
        a[0] = load_one(at, in, by);
    else if (R == 2)
        load_two(a, at, in, by);
    else if (R == 3)
        load_three(a, at, in.size);
    else if (R == 4) {
        UNROLL for (uint i = 0; i < 4; i++)
            a[i] = (ulong8)(load_numbers_4(at + by->offset[i], in.size),
                            load_numbers_4(at + by->offset[i + 4], in.size));
        transpose_4(a);
    } else {
        UNROLL for (uint i = 0; i < 8; i++)
            a[i] = load_numbers_8(at + by->offset[i], in.size);
        transpose_8(a);
    }
}

static inline void store_one(ulong8 value, global char *at, struct tensor_row out,
                             const struct offsets *by)
{
    uint size = out.size;
    if (out.stride == 1) {
        store_numbers_8(at, size, value);
        return;
    }
    ulong values[8];
    vstore8(value, 0, values);
    UNROLL for (uint i = 0; i < 8; i++) store_number(at + by->offset[i], size, values[i]);
}

static inline void store_two(ulong8 *a, global char *at, struct tensor_row out,
                             const struct offsets *by)
{
    uint size = out.size;
    if (out.stride == 2) {
        ulong8 low, high;
        low.even = a[0].lo, low.odd = a[1].lo;
        high.even = a[0].hi, high.odd = a[1].hi;
        store_numbers_8(at, size, low);
        store_numbers_8(at + 8 * size, size, high);
        return;
    }
    transpose_2(a);
    UNROLL for (uint i = 0; i < 2; i++) {
        store_numbers_2(at + by->offset[i], size, a[i].s01);
        store_numbers_2(at + by->offset[i + 2], size, a[i].s23);
        store_numbers_2(at + by->offset[i + 4], size, a[i].s45);
        store_numbers_2(at + by->offset[i + 6], size, a[i].s67);
    }
}

static inline void store_three(const ulong8 *a, global char *at, uint size)
{
    ulong8 low, middle, high;
    low.s036 = a[0].s012, middle.s147 = a[0].s345, high.s25 = a[0].s67;
    low.s147 = a[1].s012, middle.s25 = a[1].s34, high.s036 = a[1].s567;
    low.s25 = a[2].s01, middle.s036 = a[2].s234, high.s147 = a[2].s567;
    store_numbers_8(at, size, low);
    store_numbers_8(at + 8 * size, size, middle);
    store_numbers_8(at + 16 * size, size, high);
}

/* Overwrites a. */
INLINE void store_eight(const uint R, ulong8 *a, struct tensor_row out, ulong v,
                        const struct offsets *by)
{
    global char *at = element_at(out, v);
    if (R == 1)
        store_one(a[0], at, out, by);
    else if (R == 2)
        store_two(a, at, out, by);
    else if (R == 3)
        store_three(a, at, out.size);
    else if (R == 4) {
        transpose_4(a);
        UNROLL for (uint i = 0; i < 4; i++) {
            store_numbers_4(at + by->offset[i], out.size, a[i].lo);
            store_numbers_4(at + by->offset[i + 4], out.size, a[i].hi);
        }
    } else {
        transpose_8(a);
        UNROLL for (uint i = 0; i < 8; i++)
            store_numbers_8(at + by->offset[i], out.size, a[i]);
    }
}

/* ---------------------------------------------------------------- R rows */

/* Row g of R interleaved rows is in[g] in the tensor, and x + g * pitch in scratch memory. */

#if IN_PERMUTED
NOINLINE static void load_reversed_row(global word *x, struct tensor_row in, ulong n,
                                       const struct reduction *reduction)
{
    struct offsets by = make_offsets(in);
    for (ulong w = 0; w < n / 8; w += 8) {
        ulong8 a[8];
        ulong to = reverse_index(w, n);
        UNROLL for (uint i = 0; i < 8; i++) {
            ulong v = reversed_tile_row(w, i, n);
            fetch_ahead(1, in, v, &by, true);
            load_eight(1, &a[i], in, v, &by);
            a[i] = reduce_elements(a[i], reduction);
        }
        transpose_8(a);
        UNROLL for (uint i = 0; i < 8; i++) STORE_EIGHT(a[i], x + reversed_tile_row(to, i, n));
    }
}

INLINE void load_reversed(const uint R, global word *x, ulong pitch, struct tensor_row in, ulong n,
                          const struct reduction *reductions)
{
    struct offsets by = make_offsets(in);
    for (ulong w = 0; w < n / 8; w += 8) {
        ulong8 a[8], tile[8][8];
        ulong to = reverse_index(w, n);
        for (uint i = 0; i < 8; i++) {
            ulong v = reversed_tile_row(w, i, n);
            fetch_ahead(R, in, v, &by, true);
            load_eight(R, a, in, v, &by);
            UNROLL for (uint g = 0; g < R; g++) tile[g][i] = reduce_elements(a[g], &reductions[g]);
        }
        for (uint g = 0; g < R; g++) {
            transpose_8(tile[g]);
            UNROLL for (uint i = 0; i < 8; i++)
                STORE_EIGHT(tile[g][i], x + g * pitch + reversed_tile_row(to, i, n));
        }
    }
}
#endif

#if OUT_PERMUTED
NOINLINE static void store_reversed_row(struct tensor_row out, global const word *x, ulong n)
{
    struct offsets by = make_offsets(out);
    for (ulong w = 0; w < n / 8; w += 8) {
        ulong8 a[8];
        ulong from = reverse_index(w, n);
        UNROLL for (uint i = 0; i < 8; i++)
            a[i] = LOAD_EIGHT(x + reversed_tile_row(from, i, n));
        transpose_8(a);
        UNROLL for (uint i = 0; i < 8; i++)
            store_eight(1, &a[i], out, reversed_tile_row(w, i, n), &by);
    }
}

INLINE void store_reversed(const uint R, struct tensor_row out, global const word *x, ulong pitch,
                           ulong n)
{
    struct offsets by = make_offsets(out);
    for (ulong w = 0; w < n / 8; w += 8) {
        ulong8 a[8], tile[8][8];
        ulong from = reverse_index(w, n);
        for (uint g = 0; g < R; g++) {
            UNROLL for (uint i = 0; i < 8; i++)
                tile[g][i] = LOAD_EIGHT(x + g * pitch + reversed_tile_row(from, i, n));
            transpose_8(tile[g]);
        }
        for (uint i = 0; i < 8; i++) {
            ulong v = reversed_tile_row(w, i, n);
            fetch_ahead(R, out, v, &by, true);
            UNROLL for (uint g = 0; g < R; g++) a[g] = tile[g][i];
            store_eight(R, a, out, v, &by);
        }
    }
}
#endif

/* Elements begin ... end-1 of rows; all elements if bits are reversed. */
struct range {
    ulong begin, end;
};

INLINE void load_range(const uint R, global word *x, ulong pitch, struct tensor_row in,
                       struct range range, enum order order, global const uint *perm,
                       const struct reduction *reductions)
{
#if IN_PERMUTED
    if (order == ORDER_BIT_REVERSED) {
        if (R == 1)
            load_reversed_row(x, in, range.end, reductions);
        else
            load_reversed(R, x, pitch, in, range.end, reductions);
        return;
    }
#endif
    struct offsets by = make_offsets(in);
    for (ulong v = range.begin; v < range.end; v += 8) {
        ulong8 a[8];
        fetch_ahead(R, in, v, &by, false);
        load_eight(R, a, in, v, &by);
        UNROLL for (uint g = 0; g < R; g++)
            store_ordered(x + g * pitch, v, reduce_elements(a[g], &reductions[g]), order, perm);
    }
}

INLINE void store_range(const uint R, struct tensor_row out, global const word *x, ulong pitch,
                        struct range range, enum order order, global const uint *perm)
{
#if OUT_PERMUTED
    if (order == ORDER_BIT_REVERSED) {
        if (R == 1)
            store_reversed_row(out, x, range.end);
        else
            store_reversed(R, out, x, pitch, range.end);
        return;
    }
#endif
    struct offsets by = make_offsets(out);
    for (ulong v = range.begin; v < range.end; v += 8) {
        ulong8 a[8];
        fetch_ahead(R, out, v, &by, false);
        /* Not in one loop: compilers merge loops for one and for two rows, and then keep a in
         * memory. */
        a[0] = load_ordered(x, v, order, perm);
        if (R > 1)
            a[1] = load_ordered(x + pitch, v, order, perm);
        UNROLL for (uint g = 2; g < R; g++) a[g] = load_ordered(x + g * pitch, v, order, perm);
        store_eight(R, a, out, v, &by);
    }
}

/* ---------------------------------------------------------------- all rows of a batch */

/* The number of `rows` rows that are loaded at once: three only if memory has only these rows. */
static inline uint rows_at_once(ulong rows, long stride)
{
    if (rows == 3 && stride == 3)
        return 3;
    return rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

/* All rows are processed in ranges of this number of elements. Cache lines that rows share are
 * still in the caches when the last rows use them. */
enum { RANGE = 512 };

static inline struct range first_range(ulong rows, ulong n, enum order order)
{
    bool whole = rows == 1 || order == ORDER_BIT_REVERSED;
    struct range range = {0, whole ? n : min(n, (ulong)RANGE)};
    return range;
}

static inline struct range next_range(struct range range)
{
    struct range next = {range.end, 2 * range.end - range.begin};
    return next;
}

/* Loads count rows of n elements. */
NOINLINE static void load_rows(global word *x, ulong pitch, struct tensor_row in, ulong count,
                               ulong n, enum order order, global const uint *perm,
                               const struct reduction *reductions)
{
    for (struct range range = first_range(count, n, order); range.begin < n;
         range = next_range(range))
        for (ulong g = 0, rows; g < count; g += rows) {
            global word *to = x + g * pitch;
            const struct reduction *r = reductions + g;
            struct tensor_row from = in;
            from.memory += g * in.size;
            rows = IN_INTERLEAVED ? rows_at_once(count - g, in.stride) : 1;
            switch (rows) {
#if IN_INTERLEAVED && BATCH_ROWS > 2
            case 8: load_range(8, to, pitch, from, range, order, perm, r); break;
            case 4: load_range(4, to, pitch, from, range, order, perm, r); break;
            case 3: load_range(3, to, pitch, from, range, order, perm, r); break;
#endif
#if IN_INTERLEAVED
            case 2: load_range(2, to, pitch, from, range, order, perm, r); break;
#endif
            default: load_range(1, to, pitch, from, range, order, perm, r);
            }
        }
}

NOINLINE static void store_rows(struct tensor_row out, global const word *x, ulong pitch,
                                ulong count, ulong n, enum order order, global const uint *perm)
{
    for (struct range range = first_range(count, n, order); range.begin < n;
         range = next_range(range))
        for (ulong g = 0, rows; g < count; g += rows) {
            global const word *from = x + g * pitch;
            struct tensor_row to = out;
            to.memory += g * out.size;
            rows = OUT_INTERLEAVED ? rows_at_once(count - g, out.stride) : 1;
            switch (rows) {
#if OUT_INTERLEAVED && BATCH_ROWS > 2
            case 8: store_range(8, to, from, pitch, range, order, perm); break;
            case 4: store_range(4, to, from, pitch, range, order, perm); break;
            case 3: store_range(3, to, from, pitch, range, order, perm); break;
#endif
#if OUT_INTERLEAVED
            case 2: store_range(2, to, from, pitch, range, order, perm); break;
#endif
            default: store_range(1, to, from, pitch, range, order, perm);
            }
        }
}
