/*
 * Rows between tensors and scratch memory, eight elements at a time, with residues reduced as they
 * are loaded. A row x in scratch has its elements in the order of the transform: element v of x is
 * element v of the tensor's row; or the one with v's bits reversed; or it goes by a permutation.
 */
enum order { ORDER_PLAIN, ORDER_REVERSED, ORDER_OTHER };

/* Eight words of a row in scratch, from a multiple of eight on. */
#if WORD_BITS == 64
#define LOAD_EIGHT(x) (*(global const ulong8 *)(x))
#define STORE_EIGHT(value, x) (*(global ulong8 *)(x) = (value))
#else
#define LOAD_EIGHT(x) convert_ulong8(*(global const uint8 *)(x))
#define STORE_EIGHT(value, x) (*(global uint8 *)(x) = convert_uint8(value))
#endif

/* ---------------------------------------------------------------- a tensor's row */

/* stride: between its elements, whose size is 1, 4 or 8 bytes. */
struct row {
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

static inline global char *element_at(struct row row, ulong i)
{
    return row.memory + (long)i * row.stride * row.size;
}

static inline long load_element(struct row row, ulong i)
{
    return load_number(element_at(row, i), row.size);
}

static inline void store_element(struct row row, ulong i, ulong value)
{
    store_number(element_at(row, i), row.size, value);
}

/* Numbers side by side in memory. */
#define NUMBERS(count)                                                                             \
    static inline ulong##count load_numbers_##count(global const char *at, uint size)              \
    {                                                                                              \
        if (size == 8)                                                                             \
            return as_ulong##count(vload##count(0, (global const long *)at));                      \
        if (size == 4)                                                                             \
            return as_ulong##count(WIDEN_INTS(count, vload##count(0, (global const int *)at)));    \
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

static inline struct row neighbour(struct row row, ulong rows)
{
    row.memory += rows * row.size;
    return row;
}

/* ---------------------------------------------------------------- residues */

/* What reduces elements of any value modulo q < 2^62. */
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

/* Elements as residues in [0, q]. Most are in [0, q) already; negative ones are large when seen as
 * unsigned. */
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

/* The lowest log2(n) bits of i in reversed order, n a power of two below 2^32. */
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

/* Reversal of bits takes 8 x 8 elements to 8 x 8 elements, transposed: eight rows of eight, n/8
 * apart, from w on, a multiple of 8 below n/8, to such rows from reverse_index(w) on. Row i begins
 * at: */
#define REVERSED_TILE(w, i) ((w) + (n) / 8 * (((i) & 1) << 2 | ((i) & 2) | (i) >> 2))

/* Bytes by which the next elements of a row are further on: itself and seven, and the one that is
 * asked for ahead. */
struct offsets {
    long offset[8], ahead;
};

static inline struct offsets make_offsets(struct row row)
{
    long spacing = row.stride * row.size;
    ulong far = max(AHEAD_BYTES / max(abs(spacing), (ulong)1), (ulong)1); /* elements */
    struct offsets offsets;
    for (uint i = 0; i < 8; i++)
        offsets.offset[i] = (long)i * spacing;
    offsets.ahead = (long)((far + 7) / 8 * 8) * spacing;
    return offsets;
}

/* Lanes to elements v ... v+7 of x, or where the permutation says. */
static inline void put(global word *x, ulong v, ulong8 residues, enum order order,
                       global const uint *perm)
{
    if (order != ORDER_OTHER) {
        STORE_EIGHT(residues, x + v);
        return;
    }
    uint8 to = vload8(0, perm + v);
    x[to.s0] = (word)residues.s0;
    x[to.s1] = (word)residues.s1;
    x[to.s2] = (word)residues.s2;
    x[to.s3] = (word)residues.s3;
    x[to.s4] = (word)residues.s4;
    x[to.s5] = (word)residues.s5;
    x[to.s6] = (word)residues.s6;
    x[to.s7] = (word)residues.s7;
}

static inline ulong8 get(global const word *x, ulong v, enum order order, global const uint *perm)
{
    if (order != ORDER_OTHER)
        return LOAD_EIGHT(x + v);
    uint8 from = vload8(0, perm + v);
    return (ulong8)(x[from.s0], x[from.s1], x[from.s2], x[from.s3], x[from.s4], x[from.s5],
                    x[from.s6], x[from.s7]);
}

/* Elements begin ... end-1 of rows; with bits reversed, all of them. */
struct strip {
    ulong begin, end;
};

/* ---------------------------------------------------------------- one row */

/* Elements v ... v+7 of a row. */
static inline ulong8 load_eight(struct row in, ulong v, const struct offsets *by)
{
    global const char *at = element_at(in, v);
    uint size = in.size;
    if (in.stride == 1)
        return load_numbers_8(at, size);
    return as_ulong8(
        (long8)(load_number(at + by->offset[0], size), load_number(at + by->offset[1], size),
                load_number(at + by->offset[2], size), load_number(at + by->offset[3], size),
                load_number(at + by->offset[4], size), load_number(at + by->offset[5], size),
                load_number(at + by->offset[6], size), load_number(at + by->offset[7], size)));
}

static inline void store_eight(struct row out, ulong v, const struct offsets *by, ulong8 value)
{
    global char *at = element_at(out, v);
    uint size = out.size;
    if (out.stride == 1) {
        store_numbers_8(at, size, value);
        return;
    }
    store_number(at + by->offset[0], size, value.s0);
    store_number(at + by->offset[1], size, value.s1);
    store_number(at + by->offset[2], size, value.s2);
    store_number(at + by->offset[3], size, value.s3);
    store_number(at + by->offset[4], size, value.s4);
    store_number(at + by->offset[5], size, value.s5);
    store_number(at + by->offset[6], size, value.s6);
    store_number(at + by->offset[7], size, value.s7);
}

/* Asks for what lies ahead of elements that are not side by side: devices foresee no gathers. */
static inline void fetch_eight(struct row row, ulong v, const struct offsets *by)
{
    if (row.stride != 1)
        UNROLL for (uint i = 0; i < 8; i++)
            PREFETCH(element_at(row, v) + by->ahead + by->offset[i]);
}

NOINLINE static void load_row(global word *x, struct row in, struct strip strip, enum order order,
                              global const uint *perm, const struct reduction *reduction)
{
    struct offsets by = make_offsets(in);
    if (order == ORDER_REVERSED) {
        ulong n = strip.end;
        for (ulong w = 0; w < n / 8; w += 8) {
            ulong8 a[8];
            ulong to = reverse_index(w, n);
            UNROLL for (uint i = 0; i < 8; i++) {
                PREFETCH(element_at(in, REVERSED_TILE(w, i)) + by.ahead);
                a[i] = reduce_elements(load_eight(in, REVERSED_TILE(w, i), &by), reduction);
            }
            transpose_8(a);
            UNROLL for (uint i = 0; i < 8; i++) STORE_EIGHT(a[i], x + REVERSED_TILE(to, i));
        }
        return;
    }
    for (ulong v = strip.begin; v < strip.end; v += 8) {
        fetch_eight(in, v, &by);
        put(x, v, reduce_elements(load_eight(in, v, &by), reduction), order, perm);
    }
}

NOINLINE static void store_row(struct row out, global const word *x, struct strip strip,
                               enum order order, global const uint *perm)
{
    struct offsets by = make_offsets(out);
    if (order == ORDER_REVERSED) {
        ulong n = strip.end;
        for (ulong w = 0; w < n / 8; w += 8) {
            ulong8 a[8];
            ulong from = reverse_index(w, n);
            UNROLL for (uint i = 0; i < 8; i++) a[i] = LOAD_EIGHT(x + REVERSED_TILE(from, i));
            transpose_8(a);
            UNROLL for (uint i = 0; i < 8; i++)
                store_eight(out, REVERSED_TILE(w, i), &by, a[i]);
        }
        return;
    }
    for (ulong v = strip.begin; v < strip.end; v += 8) {
        fetch_eight(out, v, &by);
        store_eight(out, v, &by, get(x, v, order, perm));
    }
}

/* ---------------------------------------------------------------- neighbouring rows */

/* Rows whose elements of one number lie side by side: row g of them is in[g] and x + g * pitch.
 * R at a time, for R = 2, 3, 4, 8: the R lanes of one element are turned into R rows. */
#define ROWS_TOGETHER(R)                                                                           \
    /* a[g] = elements v ... v+7 of row g */                                                       \
    INLINE void load_lanes_##R(ulong8 *a, struct row in, ulong v, const struct offsets *by)        \
    {                                                                                              \
        global const char *at = element_at(in, v);                                                 \
        UNROLL for (uint i = 0; i < R; i++) PREFETCH(at + by->ahead + by->offset[i * 8 / R]);      \
        LOAD_##R(load_numbers_##R)                                                                 \
    }                                                                                              \
    INLINE void store_lanes_##R(struct row out, ulong v, const struct offsets *by, ulong8 *a)      \
    {                                                                                              \
        global char *at = element_at(out, v);                                                      \
        UNROLL for (uint i = 0; i < R; i++) PREFETCH(at + by->ahead + by->offset[i * 8 / R]);      \
        STORE_##R(store_numbers_##R)                                                               \
    }                                                                                              \
    NOINLINE static void load_reversed_##R(global word *x, ulong pitch, struct row in, ulong n,    \
                                           const struct reduction *reductions)                     \
    {                                                                                              \
        struct offsets by = make_offsets(in);                                                      \
        for (ulong w = 0; w < n / 8; w += 8) {                                                     \
            ulong8 a[R], tile[R][8];                                                               \
            ulong to = reverse_index(w, n);                                                        \
            for (uint i = 0; i < 8; i++) {                                                         \
                load_lanes_##R(a, in, REVERSED_TILE(w, i), &by);                                   \
                UNROLL for (uint g = 0; g < R; g++)                                                \
                    tile[g][i] = reduce_elements(a[g], &reductions[g]);                            \
            }                                                                                      \
            for (uint g = 0; g < R; g++) {                                                         \
                transpose_8(tile[g]);                                                              \
                UNROLL for (uint i = 0; i < 8; i++)                                                \
                    STORE_EIGHT(tile[g][i], x + g * pitch + REVERSED_TILE(to, i));                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    NOINLINE static void store_reversed_##R(struct row out, global const word *x, ulong pitch,     \
                                            ulong n)                                               \
    {                                                                                              \
        struct offsets by = make_offsets(out);                                                     \
        for (ulong w = 0; w < n / 8; w += 8) {                                                     \
            ulong8 a[R], tile[R][8];                                                               \
            ulong from = reverse_index(w, n);                                                      \
            for (uint g = 0; g < R; g++) {                                                         \
                UNROLL for (uint i = 0; i < 8; i++)                                                \
                    tile[g][i] = LOAD_EIGHT(x + g * pitch + REVERSED_TILE(from, i));               \
                transpose_8(tile[g]);                                                              \
            }                                                                                      \
            for (uint i = 0; i < 8; i++) {                                                         \
                UNROLL for (uint g = 0; g < R; g++) a[g] = tile[g][i];                             \
                store_lanes_##R(out, REVERSED_TILE(w, i), &by, a);                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void load_rows_##R(global word *x, ulong pitch, struct row in,                   \
                                     struct strip strip, enum order order,                         \
                                     global const uint *perm,                                      \
                                     const struct reduction *reductions)                           \
    {                                                                                              \
        if (order == ORDER_REVERSED) {                                                             \
            load_reversed_##R(x, pitch, in, strip.end, reductions);                                \
            return;                                                                                \
        }                                                                                          \
        struct offsets by = make_offsets(in);                                                      \
        for (ulong v = strip.begin; v < strip.end; v += 8) {                                       \
            ulong8 a[R];                                                                           \
            load_lanes_##R(a, in, v, &by);                                                         \
            UNROLL for (uint g = 0; g < R; g++)                                                    \
                put(x + g * pitch, v, reduce_elements(a[g], &reductions[g]), order, perm);         \
        }                                                                                          \
    }                                                                                              \
    static inline void store_rows_##R(struct row out, global const word *x, ulong pitch,           \
                                      struct strip strip, enum order order,                        \
                                      global const uint *perm)                                     \
    {                                                                                              \
        if (order == ORDER_REVERSED) {                                                             \
            store_reversed_##R(out, x, pitch, strip.end);                                          \
            return;                                                                                \
        }                                                                                          \
        struct offsets by = make_offsets(out);                                                     \
        for (ulong v = strip.begin; v < strip.end; v += 8) {                                       \
            ulong8 a[R];                                                                           \
            UNROLL for (uint g = 0; g < R; g++) a[g] = get(x + g * pitch, v, order, perm);         \
            store_lanes_##R(out, v, &by, a);                                                       \
        }                                                                                          \
    }

/* Between the R lanes of elements 0 ... 7 in memory and R rows. */
#define LOAD_8(load)                                                                               \
    UNROLL for (uint i = 0; i < 8; i++) a[i] = load(at + by->offset[i], in.size);                  \
    transpose_8(a);
#define LOAD_4(load)                                                                               \
    UNROLL for (uint i = 0; i < 4; i++)                                                            \
        a[i] = (ulong8)(load(at + by->offset[i], in.size), load(at + by->offset[i + 4], in.size)); \
    transpose_4(a);
/* Two rows that fill memory take whole vectors instead of pieces. */
#define LOAD_2(load)                                                                               \
    if (in.stride == 2) {                                                                          \
        ulong8 low = load_numbers_8(at, in.size);                                                  \
        ulong8 high = load_numbers_8(at + 8 * in.size, in.size);                                   \
        a[0] = (ulong8)(low.even, high.even);                                                      \
        a[1] = (ulong8)(low.odd, high.odd);                                                        \
        return;                                                                                    \
    }                                                                                              \
    UNROLL for (uint i = 0; i < 2; i++)                                                            \
        a[i] =                                                                                     \
            (ulong8)(load(at + by->offset[i], in.size), load(at + by->offset[i + 2], in.size),     \
                     load(at + by->offset[i + 4], in.size),                                        \
                     load(at + by->offset[i + 6], in.size));                                       \
    transpose_2(a);
/* Three rows that fill memory; only such. */
#define LOAD_3(load)                                                                               \
    ulong8 low = load_numbers_8(at, in.size), middle = load_numbers_8(at + 8 * in.size, in.size);  \
    ulong8 high = load_numbers_8(at + 16 * in.size, in.size);                                      \
    a[0] = (ulong8)(low.s036, middle.s147, high.s25);                                              \
    a[1] = (ulong8)(low.s147, middle.s25, high.s036);                                              \
    a[2] = (ulong8)(low.s25, middle.s036, high.s147);
#define STORE_3(store)                                                                             \
    ulong8 low, middle, high;                                                                      \
    low.s036 = a[0].s012, middle.s147 = a[0].s345, high.s25 = a[0].s67;                            \
    low.s147 = a[1].s012, middle.s25 = a[1].s34, high.s036 = a[1].s567;                            \
    low.s25 = a[2].s01, middle.s036 = a[2].s234, high.s147 = a[2].s567;                            \
    store_numbers_8(at, out.size, low);                                                            \
    store_numbers_8(at + 8 * out.size, out.size, middle);                                          \
    store_numbers_8(at + 16 * out.size, out.size, high);
#define STORE_8(store)                                                                             \
    transpose_8(a);                                                                                \
    UNROLL for (uint i = 0; i < 8; i++) store(at + by->offset[i], out.size, a[i]);
#define STORE_4(store)                                                                             \
    transpose_4(a);                                                                                \
    UNROLL for (uint i = 0; i < 4; i++)                                                            \
    {                                                                                              \
        store(at + by->offset[i], out.size, a[i].lo);                                              \
        store(at + by->offset[i + 4], out.size, a[i].hi);                                          \
    }
#define STORE_2(store)                                                                             \
    if (out.stride == 2) {                                                                         \
        ulong8 low, high;                                                                          \
        low.even = a[0].lo, low.odd = a[1].lo;                                                     \
        high.even = a[0].hi, high.odd = a[1].hi;                                                   \
        store_numbers_8(at, out.size, low);                                                        \
        store_numbers_8(at + 8 * out.size, out.size, high);                                        \
        return;                                                                                    \
    }                                                                                              \
    transpose_2(a);                                                                                \
    UNROLL for (uint i = 0; i < 2; i++)                                                            \
    {                                                                                              \
        store(at + by->offset[i], out.size, a[i].s01);                                             \
        store(at + by->offset[i + 2], out.size, a[i].s23);                                         \
        store(at + by->offset[i + 4], out.size, a[i].s45);                                         \
        store(at + by->offset[i + 6], out.size, a[i].s67);                                         \
    }

ROWS_TOGETHER(8)
ROWS_TOGETHER(4)
ROWS_TOGETHER(3)
ROWS_TOGETHER(2)

/* How many of so many rows are taken at once: three only where they fill memory. */
static inline ulong rows_at_once(ulong rows, long stride)
{
    if (rows == 3 && stride == 3)
        return 3;
    return rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

/* All rows are gone over in strips of so many elements: lines that they share are still in the
 * caches when the last of them are taken. */
enum { STRIP = 512 };

static inline struct strip first_strip(ulong n, enum order order)
{
    struct strip strip = {0, order == ORDER_REVERSED ? n : min(n, (ulong)STRIP)};
    return strip;
}

static inline struct strip next_strip(struct strip strip)
{
    ulong size = strip.end - strip.begin;
    strip.begin += size;
    strip.end += size;
    return strip;
}

/* count rows in all. */
NOINLINE static void load_rows(global word *x, ulong pitch, struct row in, ulong count, ulong n,
                             enum order order, global const uint *perm,
                             const struct reduction *reductions)
{
    for (struct strip strip = first_strip(n, order); strip.begin < n; strip = next_strip(strip))
        for (ulong g = 0, rows; g < count; g += rows) {
            global word *to = x + g * pitch;
            struct row from = neighbour(in, g);
            rows = rows_at_once(count - g, in.stride);
            if (rows == 8)
                load_rows_8(to, pitch, from, strip, order, perm, reductions + g);
            else if (rows == 4)
                load_rows_4(to, pitch, from, strip, order, perm, reductions + g);
            else if (rows == 3)
                load_rows_3(to, pitch, from, strip, order, perm, reductions + g);
            else if (rows == 2)
                load_rows_2(to, pitch, from, strip, order, perm, reductions + g);
            else
                load_row(to, from, strip, order, perm, reductions + g);
        }
}

NOINLINE static void store_rows(struct row out, global const word *x, ulong pitch, ulong count,
                              ulong n, enum order order, global const uint *perm)
{
    for (struct strip strip = first_strip(n, order); strip.begin < n; strip = next_strip(strip))
        for (ulong g = 0, rows; g < count; g += rows) {
            global const word *from = x + g * pitch;
            struct row to = neighbour(out, g);
            rows = rows_at_once(count - g, out.stride);
            if (rows == 8)
                store_rows_8(to, from, pitch, strip, order, perm);
            else if (rows == 4)
                store_rows_4(to, from, pitch, strip, order, perm);
            else if (rows == 3)
                store_rows_3(to, from, pitch, strip, order, perm);
            else if (rows == 2)
                store_rows_2(to, from, pitch, strip, order, perm);
            else
                store_row(to, from, strip, order, perm);
        }
}
