/*
 * Sums of products modulo q for GPUs. A work-item computes ROWS sums that share a factor of each
 * term. Values in [0, 2^BITS) are added up without signs, in two words, and reduced once. Sums with
 * other values are computed again, exactly. ELEMENT: char, int or long.
 *
 *   BITS             62: all moduli are below 2^62; 63: any
 *   A_ROWS, B_ROWS   elements of a and b in a term of the ROWS sums: 1 or ROWS
 *   SUMMED           sums a's elements, without b: axis_modsum
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
/* A work-item has PLACES elements of a tile, at most two, APART rows from each other, and ROWS sums
 * for each. It adds up TERMS_TOGETHER terms without a loop. */
enum { LOG2_TILE = 4, TILE = 1 << LOG2_TILE, PADDED_ROW = TILE + 1 /* in another bank */ };
#ifdef TURNED
#define NAME modmul_axis_sum_turned
#define TAKE_A(t, r, p) tile[TILE_PLACE(t, r, p)]
#define A_OFFSET(p) perm[index + (p) * apart] * rows.a_n
enum { PLACES = TILE * TILE / LOCAL_SIZE, APART = TILE / PLACES };
enum { TERMS_TOGETHER = A_ROWS == 1 ? 4 : A_ROWS == 2 ? 2 : 1 }; /* with tiles */
#else
#define NAME modmul_axis_sum_items
#define TAKE_A(t, r, p) load(a_term + (r) * rows.a_row)
#define A_OFFSET(p) 0
enum { PLACES = 1, APART = 0, TERMS_TOGETHER = ROWS <= 4 ? 4 : 2 };
#endif
#define EACH_PLACE(p) UNROLL for (uint p = 0; p < PLACES; p++)
#define SUM_OFFSET(s) ((s) % ROWS * rows.out_row + (s) / ROWS * out_apart)
#define EACH_SUM(s) UNROLL for (uint s = 0; s < PLACES * ROWS; s++)
enum { TERMS_AT_ONCE = 16 }; /* products below 2^124 fit two words, along with a residue */

/* low + middle * 2^32 + high * 2^64. low and middle are below 2^32; with BITS 63 high is below
 * 2^63. */
struct total {
    ulong low, middle, high;
};

/* Adds a*b, both below 2^BITS, by halves: devices multiply and add these in one instruction. With
 * BITS 63, high is then below 2^63 + 2^62. It is lowered by half a normalized modulus, in
 * [2^62, 2^63). */
static inline void add_product(struct total *total, uint2 a, uint2 b, struct modulus m)
{
    ulong low = (ulong)a.x * b.x + (uint)total->low, middle = (uint)total->middle;
    total->low = (uint)low;
    if (!IS_SHORT) {
        middle += (ulong)a.x * b.y;
        middle += (ulong)a.y * b.x;
        total->high += (ulong)a.y * b.y;
    }
    middle += low >> 32;
    total->high += middle >> 32;
    total->middle = (uint)middle;
    if (BITS == 63 && (long)total->high < 0)
        total->high -= m.normalized >> 1;
}

/* Lowers high to below q, from below 8 * q, or with BITS 63 from below 2 * q. A larger high sets
 * *beyond, and becomes 0. Few sums need it: those of many terms, or of values above q. */
static inline void lower_high(struct total *total, ulong q, uint *beyond)
{
    _Pragma("unroll 1") for (uint i = BITS == 62 ? 4 : 1; i > 0; i /= 2)
        total->high -= total->high >= i * q ? i * q : 0;
    *beyond |= total->high < q ? 0 : ~0u;
    total->high = total->high < q ? total->high : 0;
}

/* Lowers a total from below 2^64 * q to below 2^63 * q. */
static inline void lower_total(struct total *total, ulong q)
{
    ulong low = total->middle << 32 | total->low, bit = q << 63;
    ulong less = total->high - (q >> 1) - (low < bit);
    if ((long)less >= 0) {
        total->high = less;
        total->middle ^= bit >> 32;
    }
}

/* x, or x - limit if x >= limit; x in [0, 2 * limit), limit <= 2^63. */
static inline ulong subtract_once(ulong x, ulong limit)
{
    ulong less = x - limit;
    return (long)less < 0 ? x : less;
}

/* The total, lowered, mod q in [0, q). Barrett's quotient has four truncations of less than 1 each.
 * One of them omits the product of lower halves. */
static inline ulong reduce_total(struct total total, struct modulus m)
{
    ulong low = total.middle << 32 | total.low;
    if (BITS == 63)
        return reduce_wide_below(total.high, low, m);
    ulong top = total.high << ((m.shift + 1) & 63) | low >> (63 - m.shift);
    ulong reciprocal = m.reciprocal >> 1 | (ulong)1 << 63;
    ulong product = (top >> 32) * (uint)reciprocal, other = (uint)top * (reciprocal >> 32);
    ulong high = (top >> 32) * (reciprocal >> 32) + (product >> 32);
    high += (other + (uint)product) >> 32;
    ulong rest = low - high * m.value;
    CHECK_BELOW(rest, 4 * m.value);
    return subtract_once(subtract_once(rest, 2 * m.value), m.value);
}

static inline void reduce_totals(struct total *totals, struct modulus m, uint *beyond)
{
    ulong all = 0; /* at least the largest high */
    EACH_SUM(s) all |= totals[s].high;
    if (all >= m.value)
        EACH_SUM(s) lower_high(&totals[s], m.value, beyond);
    if (BITS == 62 && all >= m.value >> 1)
        EACH_SUM(s) lower_total(&totals[s], m.value);
    EACH_SUM(s)
    {
        ulong rest = reduce_total(totals[s], m);
        totals[s] = (struct total){(uint)rest, rest >> 32, 0};
    }
}

/* The halves of an element, the lower one first. Compilers multiply halves directly if they were
 * never one word. */
static inline uint2 load(global const ELEMENT *from)
{
#ifdef __ENDIAN_LITTLE__
    return IS_SHORT ? (uint2)((uint)*from, 0) : *(global const uint2 *)from;
#else
    return (uint2)((uint)*from, IS_SHORT ? 0 : (uint)((ulong)*from >> 32));
#endif
}

/* Notes values outside [0, 2^BITS). */
static inline uint2 note(uint2 halves, uint *beyond)
{
    *beyond |= IS_SHORT ? halves.x & 1u << 31 : halves.y;
    return halves;
}

static inline bool are_beyond(uint beyond)
{
    return beyond >> (BITS - 32) != 0;
}

#define EACH_TERM(t, first, terms) \
    UNROLL for (uint t = 0; t < TERMS_TOGETHER; t++) if (t == 0 || (first) + t < (terms))
#define TILE_PLACE(t, r, p) (((t) * A_ROWS + (r)) * TILE * PADDED_ROW + (p) * APART * PADDED_ROW)

/*
 * As modmul_axis_sum, for at least one term. The space has the first rows. Operands: out, a, b, q.
 *
 * With TURNED, the space omits n, which has 2^log2_n elements, at least TILE * TILE, and perm is
 * the inverse permutation. A work-group has the elements whose m agree in the bits between the
 * first LOG2_TILE and the last LOG2_TILE. If the permutation reverses bits, their l agree in these
 * bits too. Then a is read along l into tiles, and found there by m. Otherwise a is read in random
 * order.
 */
FEW_TOGETHER KERNEL NAME(SPACE(space), global ELEMENT *restrict out,
                         global const ELEMENT *restrict a, global const ELEMENT *restrict b,
                         global const struct modulus *restrict q, global const uint *restrict perm,
                         uint flags, struct product_rows rows)
{
    TAKE_SPACE(space);
#ifdef TURNED
    local uint2 tiles[TERMS_TOGETHER * A_ROWS * TILE * PADDED_ROW];
    const uint high = rows.log2_n - LOG2_TILE, log2_tiles = high - LOG2_TILE;
    const uint group = (uint)get_group_id(0), item = (uint)get_local_id(0);
    const uint row = item / TILE, column = item % TILE, first_m = row << high | column;
    const uint middle = (group & ((1u << log2_tiles) - 1)) << LOG2_TILE;
    const struct span span = span_at(&space, group >> log2_tiles);
    const bool reverses = perm[(uint)1 << rows.log2_n] & PERMUTATION_REVERSES_BITS;
    const uint other = perm[first_m | middle], index = first_m | (reverses ? perm[middle] : middle);
    const uint apart = (uint)APART << high;
    global const ELEMENT *from[PLACES], *a_term = a += span.position[1];
    local uint2 *to[PLACES], *const tile = tiles + row * PADDED_ROW + column;
    EACH_PLACE(p)
    {
        from[p] = a + ((first_m | middle) + p * apart) * rows.a_n;
        to[p] = tiles + (other >> high) * PADDED_ROW + other % TILE + p; /* at most one bit */
    }
    if (!reverses)
        EACH_PLACE(p)
        {
            from[p] = a + perm[(first_m | middle) + p * apart] * rows.a_n;
            to[p] = tile + TILE_PLACE(0, 0, p);
        }
#else
    const uint index = 0, apart = 0;
    const struct span span = span_at(&space, WORK_ITEM);
    if (span.length == 0)
        return;
    global const ELEMENT *a_term = a += span.position[1];
#endif
    const struct modulus m = q[span.position[3]];
#ifdef SHORT_AXIS
    const bool is_short = span.index[SHORT_AXIS] + 1 == space.shape[SHORT_AXIS];
    const uint terms = is_short ? rows.short_terms : rows.terms;
#else
    const uint terms = rows.terms;
#endif
    const long out_apart = apart * rows.out_n, b_apart = apart * rows.b_n;
    out += span.position[0] + index * rows.out_n;
    global const ELEMENT *b_term = b += span.position[2] + index * rows.b_n;
    struct total totals[PLACES * ROWS];
    uint beyond = 0, first = 0;
    EACH_SUM(s)
    {
        uint2 x = flags & PRODUCTS_ADDED ? note(load(out + SUM_OFFSET(s)), &beyond) : (uint2)(0);
        totals[s] = (struct total){x.x, x.y, 0};
    }
    do {
#ifdef TURNED
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_TERM(t, first, terms)
        EACH_PLACE(p)
        {
            EACH_ROW(r, A_ROWS) to[p][TILE_PLACE(t, r, 0)] = load(from[p] + r * rows.a_row);
            from[p] += rows.a_term;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        EACH_TERM(t, first, terms)
        {
            EACH_PLACE(p)
            {
                uint2 x[A_ROWS], y[B_ROWS];
                EACH_ROW(r, A_ROWS) x[r] = note(TAKE_A(t, r, p), &beyond);
                EACH_ROW(r, B_ROWS)
                y[r] = FACTOR(note(load(b_term + p * b_apart + r * rows.b_row), &beyond),
                              (uint2)(1, 0));
                EACH_ROW(r, ROWS)
                add_product(&totals[p * ROWS + r], x[A_ROWS > 1 ? r : 0], y[B_ROWS > 1 ? r : 0], m);
            }
            a_term += rows.a_term;
            b_term += rows.b_term;
        }
        first += TERMS_TOGETHER;
        if (first % TERMS_AT_ONCE == 0 || first >= terms)
            reduce_totals(totals, m, &beyond);
    } while (first < terms);
    if (!are_beyond(beyond)) {
        EACH_SUM(s) out[SUM_OFFSET(s)] = (ELEMENT)(totals[s].middle << 32 | totals[s].low);
        return;
    }
    /* Sums with values beyond 2^BITS are computed again, exactly. */
    _Pragma("unroll 1") for (uint s = 0; s < PLACES * ROWS; s++)
    {
        const long a_at = s % ROWS * rows.a_row + A_OFFSET(s / ROWS);
        const long b_at = s % ROWS * rows.b_row + s / ROWS * b_apart;
        struct wide sum = wide_zero();
        if (flags & PRODUCTS_ADDED)
            sum = wide_add(sum, WIDEN(out[SUM_OFFSET(s)]));
        _Pragma("unroll 1") for (uint j = 0; j < terms; j++)
            sum = wide_add_product(sum, WIDEN(a[a_at + j * rows.a_term]),
                                   FACTOR(WIDEN(b[b_at + j * rows.b_term]), 1));
        out[SUM_OFFSET(s)] = (ELEMENT)wide_reduce(sum, m);
    }
}
