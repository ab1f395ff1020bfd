/*
 * Sums of products modulo q, of which a work-item does ROWS that share a factor of each term, for
 * GPUs. What is in [0, 2^BITS) is added up without signs, in two words, and reduced once; sums of
 * other values are done again, exactly. ELEMENT: char, int or long.
 *
 *   BITS             62: all moduli are below 2^62; 63: any
 *   A_ROWS, B_ROWS   elements of a and b that a term of the ROWS sums has: 1 or ROWS
 *   SUMMED           a's elements are summed, without b: axis_modsum
 *   TURNED           the kernel for permutations
 */
#if !defined(ELEMENT) || !defined(BITS) || !defined(A_ROWS) || !defined(B_ROWS)
#error "ELEMENT, BITS, A_ROWS and B_ROWS must be given"
#endif

#define ROWS (A_ROWS > B_ROWS ? A_ROWS : B_ROWS)
#define EACH_ROW(r, rows) UNROLL for (uint r = 0; r < (rows); r++)
#ifdef SUMMED
#define FACTOR(b, one) one
#else
#define FACTOR(b, one) b
#endif
#define IS_SHORT (sizeof(ELEMENT) < sizeof(long))
#define OPERANDS                                                                                \
    global ELEMENT *restrict out, global const ELEMENT *restrict a,                             \
        global const ELEMENT *restrict b, global const struct modulus *restrict q, \
        global const uint *restrict perm
enum { TERMS_AT_ONCE = 16 }; /* products below 2^124 fit two words, with a residue */

/* low + middle * 2^32 + high * 2^64; low and middle below 2^32, with BITS of 63 high below 2^63 */
struct total {
    ulong low, middle, high;
};

/* Adds a*b, both below 2^BITS, by halves: devices multiply and add these at once. Then middle has
 * more bits, until they are carried. */
static inline void add_product(struct total *total, uint2 a, uint2 b)
{
    ulong low = (ulong)a.x * b.x + (uint)total->low, middle = (uint)total->middle;
    total->low = (uint)low;
    if (!IS_SHORT) {
        middle += (ulong)a.x * b.y;
        middle += (ulong)a.y * b.x;
        total->high += (ulong)a.y * b.y;
    }
    total->middle = middle + (low >> 32);
}

/* With BITS of 63 high, below 2^63 + 2^62 then, is lowered by half a normalized modulus, in
 * [2^62, 2^63). */
static inline void carry(struct total *total, struct modulus m)
{
    total->high += total->middle >> 32;
    total->middle = (uint)total->middle;
    if (BITS == 63 && (long)total->high < 0)
        total->high -= m.normalized >> 1;
}

/* Lowers a total below 2^63 * q, or with BITS of 63 below 2^64 * q; with *beyond set, one of 2^66 * q
 * or more, or of 2^65 * q, to anything. Few need it: residues of larger moduli, or many terms. */
static inline void lower_total(struct total *total, ulong q, uint *beyond)
{
    UNROLL for (uint i = BITS == 62 ? 4 : 1; i > 0; i /= 2)
        total->high -= total->high >= i * q ? i * q : 0;
    *beyond |= total->high < q ? 0 : ~0u;
    total->high = total->high < q ? total->high : 0;
    ulong low = total->middle << 32 | total->low, bit = q << 63;
    ulong less = total->high - (q >> 1) - (low < bit);
    if (BITS == 62 && (long)less >= 0) {
        total->high = less;
        total->middle ^= bit >> 32;
    }
}

/* x less limit where it is not below; x in [0, 2 * limit), limit <= 2^63 */
static inline ulong subtract_once(ulong x, ulong limit)
{
    ulong less = x - limit;
    return (long)less < 0 ? x : less;
}

/* The total, lowered, mod q in [0, q). Barrett's quotient has three cuts of less than 1 each. */
static inline ulong reduce_total(struct total total, struct modulus m)
{
    ulong low = total.middle << 32 | total.low;
    if (BITS == 63)
        return reduce_wide_below(total.high, low, m);
    ulong top = total.high << ((m.shift + 1) & 63) | low >> (63 - m.shift);
    ulong rest = low - mul_hi(top, m.reciprocal >> 1 | (ulong)1 << 63) * m.value;
    CHECK_BELOW(rest, 3 * m.value);
    return subtract_once(subtract_once(rest, 2 * m.value), m.value);
}

static inline void reduce_totals(struct total *totals, struct modulus m, uint *beyond)
{
    bool are_large = false;
    EACH_ROW(r, ROWS) are_large |= totals[r].high >= m.value >> (BITS == 62);
    if (are_large)
        EACH_ROW(r, ROWS) lower_total(&totals[r], m.value, beyond);
    EACH_ROW(r, ROWS)
    {
        ulong rest = reduce_total(totals[r], m);
        totals[r] = (struct total){(uint)rest, rest >> 32, 0};
    }
}

/* An element's halves, the lower one first. Compilers multiply them as such where they have never
 * been one word. */
static inline uint2 load(global const ELEMENT *from)
{
#ifdef __ENDIAN_LITTLE__
    return IS_SHORT ? (uint2)((uint)*from, 0) : *(global const uint2 *)from;
#else
    return (uint2)((uint)*from, IS_SHORT ? 0 : (uint)((ulong)*from >> 32));
#endif
}

/* Notes what is not in [0, 2^BITS). */
static inline uint2 note(uint2 halves, uint *beyond)
{
    *beyond |= IS_SHORT ? halves.x & 1u << 31 : halves.y;
    return halves;
}

static inline bool are_beyond(uint beyond)
{
    return beyond >> (BITS - 32) != 0;
}

/* What the sums begin with. */
static inline void begin_totals(struct total *totals, global const ELEMENT *out, long out_row,
                                uint flags, uint *beyond)
{
    EACH_ROW(r, ROWS) totals[r] = (struct total){0, 0, 0};
    if (flags & PRODUCTS_ADDED)
        EACH_ROW(r, ROWS)
        {
            uint2 x = note(load(out + r * out_row), beyond);
            totals[r] = (struct total){x.x, x.y, 0};
        }
}

/* Adds a term, noted before. */
static inline void add_products(struct total *totals, const uint2 *a, const uint2 *b,
                                struct modulus m)
{
    EACH_ROW(r, ROWS) add_product(&totals[r], a[A_ROWS > 1 ? r : 0], b[B_ROWS > 1 ? r : 0]);
    EACH_ROW(r, ROWS) carry(&totals[r], m);
}

/* Stores residues, or, where something was beyond the fast way, what is worked out again from the
 * first row's terms. */
static inline void store_sums(const struct total *totals, global ELEMENT *out,
                              global const ELEMENT *a, global const ELEMENT *b, struct modulus m,
                              uint flags, uint terms, struct product_rows rows, uint beyond)
{
    if (!are_beyond(beyond)) {
        EACH_ROW(r, ROWS)
        out[r * rows.out_row] = (ELEMENT)(totals[r].middle << 32 | totals[r].low);
        return;
    }
    _Pragma("unroll 1") for (uint r = 0; r < ROWS; r++, out += rows.out_row)
    {
        struct wide sum = wide_zero();
        if (flags & PRODUCTS_ADDED)
            sum = wide_add(sum, WIDEN(*out));
        _Pragma("unroll 1") for (uint j = 0; j < terms; j++)
            sum = wide_add_product(sum, WIDEN(a[r * rows.a_row + j * rows.a_term]),
                                   FACTOR(WIDEN(b[r * rows.b_row + j * rows.b_term]), 1));
        *out = (ELEMENT)wide_reduce(sum, m);
    }
}

#ifndef TURNED

/* As modmul_axis_sum without a permutation. The space is of first rows. Operands: out, a,
 * b, q. */
FEW_TOGETHER KERNEL modmul_axis_sum_items(SPACE(space), OPERANDS, uint flags,
                             struct product_rows rows)
{
    TAKE_SPACE(space);
    struct span span = span_at(&space, WORK_ITEM);
    if (span.length == 0)
        return;
    const struct modulus m = q[span.position[3]];
#ifdef SHORT_AXIS
    const bool is_short = span.index[SHORT_AXIS] + 1 == space.shape[SHORT_AXIS];
    const uint terms = is_short ? rows.short_terms : rows.terms;
#else
    const uint terms = rows.terms;
#endif
    out += span.position[0];
    global const ELEMENT *a_term = a += span.position[1], *b_term = b += span.position[2];
    struct total totals[ROWS];
    uint beyond = 0, done = 0;
    begin_totals(totals, out, rows.out_row, flags, &beyond);
    do {
        uint end = min(terms - done, (uint)TERMS_AT_ONCE) + done;
        _Pragma("unroll 2") for (; done < end;
                                  done++, a_term += rows.a_term, b_term += rows.b_term)
        {
            uint2 x[A_ROWS], y[B_ROWS];
            EACH_ROW(r, A_ROWS) x[r] = note(load(a_term + r * rows.a_row), &beyond);
            EACH_ROW(r, B_ROWS)
            y[r] = FACTOR(note(load(b_term + r * rows.b_row), &beyond), (uint2)(1, 0));
            add_products(totals, x, y, m);
        }
        reduce_totals(totals, m, &beyond);
    } while (done < terms);
    store_sums(totals, out, a, b, m, flags, terms, rows, beyond);
}

#else

enum {
    LOG2_TILE = 4,
    TILE = 1 << LOG2_TILE,
    PADDED_ROW = TILE + 1, /* other banks */
    PADDED_TILE = TILE * PADDED_ROW,
    TILE_TERMS = A_ROWS == 1 ? 4 : A_ROWS == 2 ? 2 : 1
};
#if LOCAL_SIZE != 256
#error "A work-item has one place of a tile"
#endif
#define EACH_TERM(t, first, terms) \
    UNROLL for (uint t = 0; t < TILE_TERMS; t++) if ((first) + t < (terms))

/*
 * As modmul_axis_sum, with the inverse of its permutation, of 2^log2_n elements, at least
 * TILE * TILE. A work-group has those whose m has one number in the bits between the first
 * LOG2_TILE and the last, which is the last axis of the space; no operand moves along that. If bits
 * are reversed, their l have one number there, too: a is read along l, into tiles of local memory,
 * and found by m. Else a is read wherever it is.
 */
FEW_TOGETHER KERNEL modmul_axis_sum_turned(SPACE(space), OPERANDS, uint flags,
                              struct product_rows rows)
{
    TAKE_SPACE(space);
    local uint2 tiles[TILE_TERMS * A_ROWS * PADDED_TILE];
    const struct span span = span_at(&space, (count_t)get_group_id(0));
    const struct modulus m = q[span.position[3]];
    const uint terms = rows.terms;
    const uint row = (uint)get_local_id(0) / TILE, column = (uint)get_local_id(0) % TILE;
    const uint high = rows.log2_n - LOG2_TILE, place = row * PADDED_ROW + column;
    const uint middle = (uint)span.index[RANK(space) - 1] << LOG2_TILE;
    const bool reverses = perm[(uint)1 << rows.log2_n] & PERMUTATION_REVERSES_BITS;
    const uint there = row << high | middle | column, other = perm[there];
    const uint index = row << high | (reverses ? perm[middle] : middle) | column; /* m */
    const uint to = reverses ? (other >> high) * PADDED_ROW + other % TILE : place;
    out += span.position[0] + index * rows.out_n;
    a += span.position[1];
    b += span.position[2] + index * rows.b_n;
    global const ELEMENT *a_term = a + (reverses ? there : other) * rows.a_n;
    global const ELEMENT *b_term = b;
    struct total totals[ROWS];
    uint beyond = 0;
    begin_totals(totals, out, rows.out_row, flags, &beyond);
    for (uint first = 0; first < terms; first += TILE_TERMS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_TERM(t, first, terms)
        {
            EACH_ROW(r, A_ROWS)
            tiles[(t * A_ROWS + r) * PADDED_TILE + to] = load(a_term + r * rows.a_row);
            a_term += rows.a_term;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_TERM(t, first, terms)
        {
            uint2 x[A_ROWS], y[B_ROWS];
            EACH_ROW(r, A_ROWS)
            x[r] = note(tiles[(t * A_ROWS + r) * PADDED_TILE + place], &beyond);
            EACH_ROW(r, B_ROWS) y[r] = note(load(b_term + r * rows.b_row), &beyond);
            add_products(totals, x, y, m);
            b_term += rows.b_term;
        }
        if ((first + TILE_TERMS) % TERMS_AT_ONCE == 0 || first + TILE_TERMS >= terms)
            reduce_totals(totals, m, &beyond);
    }
    if (are_beyond(beyond))
        a += perm[index] * rows.a_n;
    store_sums(totals, out, a, b, m, flags, terms, rows, beyond);
}
#endif
