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

static inline global char *element_at(struct row row, ulong i)
{
    return row.memory + (long)i * row.stride * row.size;
}

static inline long load_element(struct row row, ulong i)
{
    global char *at = element_at(row, i);
    return row.size == 8 ? *(global long *)at : row.size == 4 ? *(global int *)at : *at;
}

static inline void store_element(struct row row, ulong i, ulong value)
{
    global char *at = element_at(row, i);
    if (row.size == 8)
        *(global long *)at = (long)value;
    else
        *(global int *)at = (int)value;
}

/* What lies side by side in memory, from element i of the row on: elements of this row where the
 * stride is 1, or element i of this row and of its neighbours. */
#define NEIGHBOURS(count)                                                                          \
    static inline ulong##count load_neighbours_##count(struct row row, ulong i)                    \
    {                                                                                              \
        global char *at = element_at(row, i);                                                      \
        if (row.size == 8)                                                                         \
            return as_ulong##count(vload##count(0, (global long *)at));                            \
        if (row.size == 4)                                                                         \
            return as_ulong##count(convert_long##count(vload##count(0, (global int *)at)));        \
        return as_ulong##count(convert_long##count(vload##count(0, at)));                          \
    }                                                                                              \
    static inline void store_neighbours_##count(struct row row, ulong i, ulong##count value)       \
    {                                                                                              \
        global char *at = element_at(row, i);                                                      \
        if (row.size == 8)                                                                         \
            vstore##count(as_long##count(value), 0, (global long *)at);                            \
        else                                                                                       \
            vstore##count(as_int##count(convert_uint##count(value)), 0, (global int *)at);         \
    }

NEIGHBOURS(2)
NEIGHBOURS(4)
NEIGHBOURS(8)

static inline struct row neighbour(struct row row, ulong rows)
{
    row.memory += rows * row.size;
    return row;
}

/* The elements with numbers i, any. */
static inline ulong8 load_elements(struct row row, ulong8 i)
{
    return as_ulong8((long8)(load_element(row, i.s0), load_element(row, i.s1),
                             load_element(row, i.s2), load_element(row, i.s3),
                             load_element(row, i.s4), load_element(row, i.s5),
                             load_element(row, i.s6), load_element(row, i.s7)));
}

static inline void store_elements(struct row row, ulong8 i, ulong8 value)
{
    store_element(row, i.s0, value.s0);
    store_element(row, i.s1, value.s1);
    store_element(row, i.s2, value.s2);
    store_element(row, i.s3, value.s3);
    store_element(row, i.s4, value.s4);
    store_element(row, i.s5, value.s5);
    store_element(row, i.s6, value.s6);
    store_element(row, i.s7, value.s7);
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
    if (all(value < r->modulus.q))
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

/* Of the tensor's row, the elements that are v ... v+7 of x; v is a multiple of 8. */
static inline ulong8 elements_of(ulong v, ulong n, enum order order)
{
    if (order == ORDER_REVERSED)
        return reverse_index(v, n) + n / 8 * (ulong8)(0, 4, 2, 6, 1, 5, 3, 7);
    return v + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
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

/* ---------------------------------------------------------------- one row */

/* With elements side by side and bits reversed, 8 x 8 elements are transposed: rows of eight that
 * are n/8 apart become rows of eight that are n/8 apart. The first of them for row w = 8i: */
#define REVERSED_TILE(w, i) ((w) + (n) / 8 * (((i) & 1) << 2 | ((i) & 2) | (i) >> 2))

NOINLINE static void load_row(global word *x, struct row in, ulong n, enum order order,
                            global const uint *perm, const struct reduction *reduction)
{
    if (in.stride == 1 && order == ORDER_REVERSED) {
        for (ulong w = 0; w < n / 8; w += 8) {
            ulong8 a[8];
            ulong from = reverse_index(w, n);
            UNROLL for (uint i = 0; i < 8; i++)
                a[i] = reduce_elements(load_neighbours_8(in, REVERSED_TILE(from, i)), reduction);
            transpose_8(a);
            UNROLL for (uint i = 0; i < 8; i++) STORE_EIGHT(a[i], x + REVERSED_TILE(w, i));
        }
        return;
    }
    for (ulong v = 0; v < n; v += 8) {
        ulong8 value = in.stride == 1 ? load_neighbours_8(in, v)
                                      : load_elements(in, elements_of(v, n, order));
        put(x, v, reduce_elements(value, reduction), order, perm);
    }
}

NOINLINE static void store_row(struct row out, global const word *x, ulong n, enum order order,
                             global const uint *perm)
{
    if (out.stride == 1 && order == ORDER_REVERSED) {
        for (ulong w = 0; w < n / 8; w += 8) {
            ulong8 a[8];
            ulong from = reverse_index(w, n);
            UNROLL for (uint i = 0; i < 8; i++) a[i] = LOAD_EIGHT(x + REVERSED_TILE(from, i));
            transpose_8(a);
            UNROLL for (uint i = 0; i < 8; i++)
                store_neighbours_8(out, REVERSED_TILE(w, i), a[i]);
        }
        return;
    }
    for (ulong v = 0; v < n; v += 8) {
        ulong8 value = get(x, v, order, perm);
        if (out.stride == 1)
            store_neighbours_8(out, v, value);
        else
            store_elements(out, elements_of(v, n, order), value);
    }
}

/* ---------------------------------------------------------------- neighbouring rows */

/* Rows whose elements of one number lie side by side: row g of them is in[g] and x + g * pitch.
 * R at a time, for R = 2, 4, 8: the R lanes of one element are turned into R rows. */
#define ROWS_TOGETHER(R)                                                                           \
    static inline void load_rows_##R(global word *x, ulong pitch, struct row in, ulong n,          \
                                     enum order order, global const uint *perm,                    \
                                     const struct reduction *reductions)                           \
    {                                                                                              \
        for (ulong v = 0; v < n; v += 8) {                                                         \
            ulong8 a[R];                                                                           \
            ulong8 number = elements_of(v, n, order);                                              \
            GATHER_##R(a, in, number)                                                              \
            transpose_##R(a);                                                                      \
            UNROLL for (uint g = 0; g < R; g++)                                                    \
                put(x + g * pitch, v, reduce_elements(a[g], &reductions[g]), order, perm);         \
        }                                                                                          \
    }                                                                                              \
    static inline void store_rows_##R(struct row out, global const word *x, ulong pitch, ulong n,  \
                                      enum order order, global const uint *perm)                   \
    {                                                                                              \
        for (ulong v = 0; v < n; v += 8) {                                                         \
            ulong8 a[R];                                                                           \
            ulong8 number = elements_of(v, n, order);                                              \
            UNROLL for (uint g = 0; g < R; g++) a[g] = get(x + g * pitch, v, order, perm);         \
            transpose_##R(a);                                                                      \
            SCATTER_##R(a, out, number)                                                            \
        }                                                                                          \
    }

#define GATHER_8(a, in, number)                                                                    \
    a[0] = load_neighbours_8(in, number.s0);                                                       \
    a[1] = load_neighbours_8(in, number.s1);                                                       \
    a[2] = load_neighbours_8(in, number.s2);                                                       \
    a[3] = load_neighbours_8(in, number.s3);                                                       \
    a[4] = load_neighbours_8(in, number.s4);                                                       \
    a[5] = load_neighbours_8(in, number.s5);                                                       \
    a[6] = load_neighbours_8(in, number.s6);                                                       \
    a[7] = load_neighbours_8(in, number.s7);
#define GATHER_4(a, in, number)                                                                    \
    a[0] = (ulong8)(load_neighbours_4(in, number.s0), load_neighbours_4(in, number.s4));           \
    a[1] = (ulong8)(load_neighbours_4(in, number.s1), load_neighbours_4(in, number.s5));           \
    a[2] = (ulong8)(load_neighbours_4(in, number.s2), load_neighbours_4(in, number.s6));           \
    a[3] = (ulong8)(load_neighbours_4(in, number.s3), load_neighbours_4(in, number.s7));
#define GATHER_2(a, in, number)                                                                    \
    a[0] = (ulong8)(load_neighbours_2(in, number.s0), load_neighbours_2(in, number.s2),            \
                    load_neighbours_2(in, number.s4), load_neighbours_2(in, number.s6));           \
    a[1] = (ulong8)(load_neighbours_2(in, number.s1), load_neighbours_2(in, number.s3),            \
                    load_neighbours_2(in, number.s5), load_neighbours_2(in, number.s7));
#define SCATTER_8(a, out, number)                                                                  \
    store_neighbours_8(out, number.s0, a[0]);                                                      \
    store_neighbours_8(out, number.s1, a[1]);                                                      \
    store_neighbours_8(out, number.s2, a[2]);                                                      \
    store_neighbours_8(out, number.s3, a[3]);                                                      \
    store_neighbours_8(out, number.s4, a[4]);                                                      \
    store_neighbours_8(out, number.s5, a[5]);                                                      \
    store_neighbours_8(out, number.s6, a[6]);                                                      \
    store_neighbours_8(out, number.s7, a[7]);
#define SCATTER_4(a, out, number)                                                                  \
    store_neighbours_4(out, number.s0, a[0].lo);                                                   \
    store_neighbours_4(out, number.s1, a[1].lo);                                                   \
    store_neighbours_4(out, number.s2, a[2].lo);                                                   \
    store_neighbours_4(out, number.s3, a[3].lo);                                                   \
    store_neighbours_4(out, number.s4, a[0].hi);                                                   \
    store_neighbours_4(out, number.s5, a[1].hi);                                                   \
    store_neighbours_4(out, number.s6, a[2].hi);                                                   \
    store_neighbours_4(out, number.s7, a[3].hi);
#define SCATTER_2(a, out, number)                                                                  \
    store_neighbours_2(out, number.s0, a[0].s01);                                                  \
    store_neighbours_2(out, number.s1, a[1].s01);                                                  \
    store_neighbours_2(out, number.s2, a[0].s23);                                                  \
    store_neighbours_2(out, number.s3, a[1].s23);                                                  \
    store_neighbours_2(out, number.s4, a[0].s45);                                                  \
    store_neighbours_2(out, number.s5, a[1].s45);                                                  \
    store_neighbours_2(out, number.s6, a[0].s67);                                                  \
    store_neighbours_2(out, number.s7, a[1].s67);

ROWS_TOGETHER(8)
ROWS_TOGETHER(4)
ROWS_TOGETHER(2)

/* count rows in all. */
NOINLINE static void load_rows(global word *x, ulong pitch, struct row in, ulong count, ulong n,
                             enum order order, global const uint *perm,
                             const struct reduction *reductions)
{
    for (ulong g = 0; g < count;) {
        ulong rest = count - g;
        global word *to = x + g * pitch;
        struct row from = neighbour(in, g);
        if (rest >= 8)
            load_rows_8(to, pitch, from, n, order, perm, reductions + g);
        else if (rest >= 4)
            load_rows_4(to, pitch, from, n, order, perm, reductions + g);
        else if (rest >= 2)
            load_rows_2(to, pitch, from, n, order, perm, reductions + g);
        else
            load_row(to, from, n, order, perm, reductions + g);
        g += rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
    }
}

NOINLINE static void store_rows(struct row out, global const word *x, ulong pitch, ulong count,
                              ulong n, enum order order, global const uint *perm)
{
    for (ulong g = 0; g < count;) {
        ulong rest = count - g;
        global const word *from = x + g * pitch;
        struct row to = neighbour(out, g);
        if (rest >= 8)
            store_rows_8(to, from, pitch, n, order, perm);
        else if (rest >= 4)
            store_rows_4(to, from, pitch, n, order, perm);
        else if (rest >= 2)
            store_rows_2(to, from, pitch, n, order, perm);
        else
            store_row(to, from, n, order, perm);
        g += rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
    }
}
