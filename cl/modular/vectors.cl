/*
 * Elementwise modular operations on vectors of eight elements, for devices with wide vectors and
 * doubles.
 *
 * Along the last axis out has stride 1 and at least 8 elements; a and b have stride 1 or 0. The
 * modulus depends only on the index along this axis, and is periodic. The table holds `period`
 * vectors of eight consecutive moduli. If the size of the axis is not a multiple of 8, the last
 * vector of a row overlaps the one before it. The overlapping results are not stored again. Its
 * moduli are vector `tail` of the table, and work-items begin at multiples of 8. ELEMENT: int or
 * long.
 */
/*
 * The moduli of table [k], repeated, as vectors of eight for struct lane_divisor. The space is [8 *
 * number of vectors].
 */
KERNEL lane_moduli(SPACE(space), global const struct modulus *table, ulong k, global ulong *lanes)
{
    TAKE_SPACE(space);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong i = 0; i < span.length; i++) {
            ulong place = span.linear + i;
            struct modulus m = table[place % k];
            global ulong *lane = lanes + place / LANES * 4 * LANES + place % LANES;
            lane[0] = m.value;
            lane[LANES] = make_inverse(m.value);
            lane[2 * LANES] = m.reciprocal;
            lane[3 * LANES] = m.shift;
        }
}

/* rest, or -rest in lanes where all bits of negative are set. */
static inline long8 lane_sign(ulong8 rest, long8 negative)
{
    return (as_long8(rest) ^ negative) - negative;
}

INLINE long8 lanes_modmul(long8 a, long8 b, struct lane_divisor p)
{
    if (are_factors(a, b, p))
        return as_long8(lane_multiply_factors(as_ulong8(a), as_ulong8(b), p));
    ulong8 rest = lane_multiply(lane_shrink(lane_magnitude(a), p),
                                lane_factor(lane_magnitude(b), p), p);
    return lane_sign(rest, (a ^ b) >> 63);
}

static inline long8 lanes_modsum(long8 a, long8 b, struct lane_divisor p)
{
    if (are_residues(a, b, p)) {
        ulong8 sum = as_ulong8(a) + as_ulong8(b);
        return as_long8(subtract_once(sum, p.q));
    }
    /* The floor remainder of the sum, and the sign of the exact sum, which may have 65 bits. */
    ulong8 rest_a = lane_reduce(lane_magnitude(a), p), rest_b = lane_reduce(lane_magnitude(b), p);
    rest_a = select(rest_a, p.q - rest_a, as_ulong8(a < 0));
    rest_b = select(rest_b, p.q - rest_b, as_ulong8(b < 0));
    ulong8 rest = rest_a + rest_b;
    rest = subtract_once(rest, p.q); /* in [0, q]; q only if both a and b are negative */
    long8 negative = ((a >> 1) + (b >> 1) + (a & b & 1)) >> 63;
    return as_long8(rest) -
           as_long8(select((ulong8)(0), p.q, as_ulong8((negative != 0) & (rest != 0))));
}

static inline long8 lanes_mod(long8 a, long8 b, struct lane_divisor p)
{
    return lane_sign(lane_reduce(lane_magnitude(a), p), a >> 63);
}

static inline long8 lanes_modneg(long8 a, long8 b, struct lane_divisor p)
{
    ulong8 rest = lane_reduce(lane_magnitude(a), p);
    return as_long8(select(rest, p.q - rest, as_ulong8((a >= 0) & (rest != 0))));
}

/* Applies an operation to a and b in each lane. Operations with one operand ignore b. */
INLINE long8 lanes_apply_one(long operation, long8 a, long8 b, struct lane_divisor p)
{
#define APPLY(KIND, name, operands) \
    if (operation == KIND)          \
        return lanes_##name(a, b, p);
    ELEMENTWISE_OPERATIONS(APPLY)
    return a;
}

static inline bool has_two_operands(const enum elementwise operation)
{
#define HAS_TWO(KIND, name, operands) (operation == KIND && operands == 2) ||
    return ELEMENTWISE_OPERATIONS(HAS_TWO) operation == CHAIN;
}

/* As lanes_apply_one, for an operation that is known only at run time. */
NOINLINE static long8 lanes_apply_any(long operation, long8 a, long8 b,
                                      const struct lane_divisor *p)
{
#define APPLY_ANY(KIND, name, operands) \
    if (operation == KIND)              \
        return lanes_##name(a, b, *p);
    ELEMENTWISE_OPERATIONS(APPLY_ANY)
    return a;
}

/* Applies an operation or a chain of two. own: the contents of out; sources, first and second: see
 * chain_table in core/chain.cl. */
INLINE long8 lanes_apply(const enum elementwise operation, long8 own, long8 a, long8 b,
                         const struct lane_divisor *p, uint sources, long first, long second)
{
    if (operation != CHAIN)
        return lanes_apply_one(operation, a, b, *p);
    long8 values[4];
    values[0] = own;
    values[1] = a;
    values[2] = b;
    long8 between = lanes_apply_any(first, values[sources & 3], values[sources >> 2 & 3], p);
    between = WIDEN_LANES(8, JOIN(convert_, JOIN(ELEMENT, 8))(between));
    return lanes_apply_any(second, between, values[sources >> 4], p);
}

/* The last `left` of eight elements. */
NOINLINE static void store_last(long8 value, global ELEMENT *to, ulong left)
{
    long values[LANES];
    vstore8(value, 0, values);
    for (ulong i = LANES - left; i < LANES; i++)
        to[i] = (ELEMENT)values[i];
}

/* An operand along a span: a constant value, or contiguous elements. */
struct vector_operand {
    global const ELEMENT *from;
    bool repeats;
    long8 value;
};

static inline struct vector_operand vector_operand(global const ELEMENT *from, long stride,
                                                   bool is_scalar, long scalar)
{
    struct vector_operand x;
    x.from = from;
    x.repeats = is_scalar || stride == 0;
    x.value = (long8)(0);
    if (x.repeats)
        x.value = (long8)(is_scalar ? scalar : WIDEN(*from));
    return x;
}

static inline long8 operand_vector(struct vector_operand x, long i)
{
    return x.repeats ? x.value : load_vector(x.from + i);
}

/* The body of the kernels below, with their arguments. For a chain, the arguments for scalars hold
 * its sources and operations. */
INLINE void operate_on_vectors(const enum elementwise operation, const struct space *space,
                               global ELEMENT *out, global const ELEMENT *a,
                               global const ELEMENT *b, global const struct lane_divisor *table,
                               ulong period, ulong tail, uint scalars, long a_scalar,
                               long b_scalar)
{
    const bool is_chain = operation == CHAIN, two = has_two_operands(operation);
    uint last = space->rank - 1;
    table += space->operand[3].offset;
    for (struct span span = first_span(space); span.length > 0; next_span(space, &span)) {
        global ELEMENT *to = out + span.position[0];
        struct vector_operand x =
            vector_operand(a + span.position[1], space->operand[1].stride[last],
                           !is_chain && scalars & 1, a_scalar);
        struct vector_operand y =
            vector_operand(b + span.position[2], space->operand[2].stride[last],
                           !is_chain && scalars & 2, b_scalar);
        ulong place = (ulong)span.index[last] / LANES % period;
        struct lane_divisor p = table[place];
        ulong left = span.length % LANES, whole = span.length - left;
        /* the case of most spans */
        bool is_plain = !is_chain && period == 1 && !x.repeats && (!two || !y.repeats);
        if (is_plain)
            for (ulong i = 0; i < whole; i += LANES) {
                long8 y_vector = (long8)(0);
                PREFETCH(x.from + i + AHEAD);
                if (two) {
                    PREFETCH(y.from + i + AHEAD);
                    y_vector = load_vector(y.from + i);
                }
                PREFETCH(to + i + AHEAD);
                store_vector(lanes_apply_one(operation, load_vector(x.from + i), y_vector, p),
                             to + i);
            }
        for (ulong i = 0; !is_plain && i < whole; i += LANES) {
            long8 own = (long8)(0);
            if (is_chain) {
                PREFETCH(x.from + i + AHEAD);
                PREFETCH(y.from + i + AHEAD);
                PREFETCH(to + i + AHEAD);
                own = load_vector(to + i);
            }
            store_vector(lanes_apply(operation, own, operand_vector(x, (long)i),
                                     operand_vector(y, (long)i), &p, scalars, a_scalar, b_scalar),
                         to + i);
            place = place + 1 == period ? 0 : place + 1;
            if (!is_chain || period > 1)
                p = table[place];
        }
        long end = (long)span.length - LANES;
        p = table[tail];
        if (left > 0)
            store_last(lanes_apply(operation, is_chain ? load_vector(to + end) : (long8)(0),
                                   operand_vector(x, end), operand_vector(y, end), &p, scalars,
                                   a_scalar, b_scalar),
                       to + end, left);
    }
}

/* Operands: out, a, b, and table, which is an operand for its offset only. table has
 * `period` vectors of moduli. scalars: see core/elementwise.cl. */
#define VECTORS(KIND, name, operands)                                                          \
    KERNEL name##_vectors(SPACE(space), global ELEMENT *out, global const ELEMENT *a,       \
                          global const ELEMENT *b, global const struct lane_divisor *table, \
                          ulong period, ulong tail, uint scalars, long a_scalar,            \
                          long b_scalar)                                                    \
    {                                                                                       \
        TAKE_SPACE(space);                                                                  \
        operate_on_vectors(KIND, &space, out, a, b, table, period, tail, scalars,      \
                           a_scalar, b_scalar);                                             \
    }

ELEMENTWISE_OPERATIONS(VECTORS)
VECTORS(CHAIN, chain, 2)
