/*
 * A key switch in one launch: BLOCKS work-items for each modulus, with explicit vectors as CPUs
 * want. Digits of a are transformed and multiplied with the key in memory of the work-item's own,
 * where the operations of HEAL write and read them all. cl/base/arithmetic.h stands in front of this
 * file: struct modulus, make_twiddle and others, exact for every modulus below 2^63.
 *
 * After log2(BLOCKS) stages a transform of N residues falls into BLOCKS that know nothing of each
 * other. A work-item does these stages for its own block alone: half of a butterfly for each of its
 * residues in the last of them, twice as much in each one before.
 *
 * Tunables: SHARED, work-items that share a transform where it is long enough, from which the
 * manifest takes BLOCKS; STAGES, how many stages are done between a load and a store, 1 to 3.
 */

/* The length of a block; digits of 64 bits, later ones are 0; how many of them are held at once,
 * and how many sums are stored in between. */
#define M (N / BLOCKS)
#define DIGITS (G <= 63 / BASE_BITS ? G : 63 / BASE_BITS + 1)
#define ROUNDS ((DIGITS + 3) / 4) /* of at most four digits */
#define TOGETHER ((DIGITS + ROUNDS - 1) / ROUNDS)
#define SUMS (DIGITS > TOGETHER ? M : 1)

/* Unrolled, so that arrays which such a loop's number indexes are registers. All that works on
 * local memory is inlined: PoCL 3.1 computes wrongly where such a function is called. */
#define UNROLL _Pragma("unroll")
#define INLINE __attribute__((always_inline)) static inline

#if N >= 16
#define WIDTH 8
typedef ulong8 lanes;
#define LOAD(from) vload8(0, from)
#define STORE(value, to) vstore8(value, 0, to)
#define AS_LANES(x) as_ulong8(x)
#define AS_LONGS(x) as_long8(x)
#define ANY(x) any_lane(x)
#define CARRY(x) (0 - as_ulong8(x)) /* a lane that is true is -1 */
#else
#define WIDTH 1
typedef ulong lanes;
#define LOAD(from) (*(from))
#define STORE(value, to) (*(to) = (value))
#define AS_LANES(x) (ulong)(x)
#define AS_LONGS(x) (long)(x)
#define ANY(x) (x)
#define CARRY(x) (ulong)(x)
#endif

#if N >= 16
/* Compilers make less of any(). */
INLINE bool any_lane(long8 comparison)
{
    long4 four = comparison.lo | comparison.hi;
    long2 two = four.lo | four.hi;
    return (two.s0 | two.s1) != 0;
}
#endif

/* The product of the lower halves of each lane. */
#define HALVES(x, y) (((x) & 0xffffffffUL) * ((y) & 0xffffffffUL))

/* The upper 64 bits of x * y. */
#if N >= 16
INLINE lanes key_upper_word(lanes x, lanes y)
{
    lanes x_high = x >> 32, y_high = y >> 32;
    lanes middle = HALVES(x_high, y) + (HALVES(x, y) >> 32);
    lanes other = HALVES(x, y_high) + (middle & 0xffffffffUL);
    return HALVES(x_high, y_high) + (middle >> 32) + (other >> 32);
}
#else
#define key_upper_word mul_hi
#endif

/* high * 2^64 + low modulo q and its quotient; high in [0, q). As divide_wide of arithmetic.h. */
INLINE lanes divide_lanes(lanes high, lanes low, struct modulus m, lanes *quotient)
{
    lanes x = high << m.shift | low >> (64 - m.shift), divisor = m.normalized, one = 1;
    low <<= m.shift;
    lanes lower = x * m.reciprocal, estimate = key_upper_word(x, (lanes)(m.reciprocal)) + x + one;
    lanes fraction = lower + low;
    estimate += CARRY(fraction < lower);
    lanes rest = low - estimate * divisor;
    lanes carry = CARRY(rest > fraction);
    estimate -= carry;
    rest += (0 - carry) & divisor;
    carry = CARRY(rest >= divisor);
    *quotient = estimate + carry;
    return (rest - ((0 - carry) & divisor)) >> m.shift;
}

/* Each lane, as a signed integer, modulo q. */
static lanes reduce_all(lanes x, struct modulus m)
{
    ulong each[WIDTH];
    STORE(x, each);
    for (uint lane = 0; lane < WIDTH; lane++)
        each[lane] = residue_of((long)each[lane], m);
    return LOAD(each);
}

/* ---------------------------------------------------------------- butterflies */

/*
 * Two kinds, for vectors of any type. Where q < 2^62 residues are lazy, in [0, 4q) between stages:
 * the upper word of x * quotient is taken without the lowest of its four products and one carry, by
 * which it is at most 2 too small, on top of the 1 that it is anyway; so the product is in [0, 4q),
 * and in [0, 2q) after a conditional subtraction. Else all are in [0, q), by exact words.
 * (low, high) becomes (low + w * high, low - w * high).
 */
#define LAZY_BUTTERFLY(type, low, high, w, quotient, q)                                \
    do {                                                                               \
        type x_ = (high), up_ = x_ >> 32, w_ = (quotient), part_ = w_ >> 32, y_, sum_; \
        y_ = HALVES(up_, part_) + (HALVES(x_, part_) >> 32) + (HALVES(up_, w_) >> 32); \
        y_ = x_ * (w) - y_ * (q);                                                      \
        y_ = min(y_, y_ - 2 * (q));                                                    \
        sum_ = (low);                                                                  \
        sum_ = min(sum_, sum_ - 2 * (q));                                              \
        low = sum_ + y_;                                                               \
        high = sum_ - y_ + 2 * (q);                                                    \
    } while (0)
#define EXACT_BUTTERFLY(type, low, high, w, quotient, q)      \
    do {                                                      \
        type y_, difference_, sum_;                           \
        y_ = (high) * (w) - mul_hi((high), (quotient)) * (q); \
        y_ = min(y_, y_ - (q));                               \
        difference_ = (low) - y_;                             \
        sum_ = (low) + y_;                                    \
        high = min(difference_, difference_ + (q));           \
        low = min(sum_, sum_ - (q));                          \
    } while (0)

/* [0, 4q) to [0, q) */
#define REDUCE_LAZY(x, q) min(min(x, (x) - 2 * (q)), min(x, (x) - 2 * (q)) - (q))
#define REDUCE_EXACT(x, q) (x)

/* ---------------------------------------------------------------- transforms */

/* Residues of the digits of eight, or one, elements of a. */
INLINE lanes digits_of(global const long *a, uint shift, struct modulus m)
{
    lanes digits = AS_LANES(LOAD(a)) >> shift & (lanes)((1UL << BASE_BITS) - 1);
    if (m.value >> BASE_BITS == 0 && ANY(digits >= m.value))
        digits = reduce_all(digits, m);
    return digits;
}

#if N >= 16

#define RADIX (1u << STAGES)

/* The stages before blocks are on their own: block `own` of a's digits, to x. first: the twiddles
 * on its way. */
#define FIRST_STAGES(kind, BUTTERFLY)                                                           \
    INLINE void kind##_first(uint own, local ulong *x, global const long *a, uint shift,        \
                             const struct twiddle *first, struct modulus m)                     \
    {                                                                                           \
        lanes q = m.value;                                                                      \
        for (uint u = 0; u < M; u += WIDTH) {                                                   \
            lanes v[BLOCKS];                                                                    \
            UNROLL for (uint i = 0; i < BLOCKS; i++) v[i] = digits_of(a + i * M + u, shift, m); \
            UNROLL for (uint apart = BLOCKS / 2, stage = 0; apart > 0; apart /= 2, stage++)     \
                UNROLL for (uint i = 0; i < apart; i++) {                                       \
                    BUTTERFLY(lanes, v[i], v[i + apart], (lanes)(first[stage].factor),          \
                              (lanes)(first[stage].quotient), q);                               \
                    v[i] = own & apart ? v[i + apart] : v[i];                                   \
                }                                                                               \
            STORE(v[0], x + u);                                                                 \
        }                                                                                       \
    }
FIRST_STAGES(lazy, LAZY_BUTTERFLY)
FIRST_STAGES(exact, EXACT_BUTTERFLY)

/* Stages of a block whose halves are at least eight elements long, R = 2^stages of them between a
 * load and a store; the first ones of a whole transform take a's digits. */
#define PASSES(kind, BUTTERFLY)                                                                  \
    INLINE void kind##_pass(uint R, uint blocks, uint b, local ulong *x,                         \
                            global const long *a, uint shift, local const ulong *w,              \
                            local const ulong *quotient, struct modulus m)                       \
    {                                                                                            \
        const uint size = M / blocks, step = size / R;                                           \
        local ulong *first = x + b * size;                                                       \
        lanes q = m.value;                                                                       \
        for (uint u = 0; u < step; u += WIDTH) {                                                 \
            lanes v[RADIX];                                                                      \
            UNROLL for (uint i = 0; i < R; i++)                                                  \
                v[i] = BLOCKS == 1 && blocks == 1 ? digits_of(a + i * step + u, shift, m)        \
                                                  : LOAD(first + i * step + u);                  \
            UNROLL for (uint parts = 1; parts < R; parts *= 2)                                   \
                UNROLL for (uint part = 0; part < parts; part++)                                 \
                    UNROLL for (uint i = 0; i < R / 2 / parts; i++) {                            \
                        const uint at = (blocks + b) * parts + part, j = part * (R / parts) + i; \
                        BUTTERFLY(lanes, v[j], v[j + R / 2 / parts], (lanes)(w[at]),             \
                                  (lanes)(quotient[at]), q);                                     \
                    }                                                                            \
            UNROLL for (uint i = 0; i < R; i++) STORE(v[i], first + i * step + u);               \
        }                                                                                        \
    }
PASSES(lazy, LAZY_BUTTERFLY)
PASSES(exact, EXACT_BUTTERFLY)

/* The last three stages of TOGETHER digits, of eight neighbours each, reduced to [0, q). Stage by
 * stage for all digits: what knows nothing of each other stands beside each other. */
#define EACH_DIGIT UNROLL for (uint d = 0; d < TOGETHER; d++)
#define LAST_STAGES(kind, BUTTERFLY, REDUCE)                                                     \
    INLINE void kind##_last(lanes *v, uint i, local const ulong *w, local const ulong *quotient, \
                            ulong q)                                                             \
    {                                                                                            \
        ulong4 low[TOGETHER], high[TOGETHER], a[TOGETHER], b[TOGETHER], all = q;                 \
        ulong4 each = vload4(i, w), each_quotient = vload4(i, quotient);                         \
        ulong4 one = w[i], one_quotient = quotient[i];                                           \
        ulong4 pair = vload2(i, w).s0011, pair_quotient = vload2(i, quotient).s0011;             \
        EACH_DIGIT low[d] = v[d].s0123;                                                          \
        EACH_DIGIT high[d] = v[d].s4567;                                                         \
        EACH_DIGIT BUTTERFLY(ulong4, low[d], high[d], one, one_quotient, all);                   \
        EACH_DIGIT a[d] = (ulong4)(low[d].s01, high[d].s01);                                     \
        EACH_DIGIT b[d] = (ulong4)(low[d].s23, high[d].s23);                                     \
        EACH_DIGIT BUTTERFLY(ulong4, a[d], b[d], pair, pair_quotient, all);                      \
        EACH_DIGIT low[d] = (ulong4)(a[d].s0, b[d].s0, a[d].s2, b[d].s2);                        \
        EACH_DIGIT high[d] = (ulong4)(a[d].s1, b[d].s1, a[d].s3, b[d].s3);                       \
        EACH_DIGIT BUTTERFLY(ulong4, low[d], high[d], each, each_quotient, all);                 \
        EACH_DIGIT v[d] = (lanes)(low[d].s0, high[d].s0, low[d].s1, high[d].s1,                  \
                                  low[d].s2, high[d].s2, low[d].s3, high[d].s3);                 \
        EACH_DIGIT v[d] = REDUCE(v[d], (lanes)(q));                                              \
    }
LAST_STAGES(lazy, LAZY_BUTTERFLY, REDUCE_LAZY)
LAST_STAGES(exact, EXACT_BUTTERFLY, REDUCE_EXACT)

#else

/* A pass of one stage, and nothing after the passes. */
#define RADIX 2u
#define PASSES(kind, BUTTERFLY)                                                     \
    INLINE void kind##_pass(uint R, uint blocks, uint b, local ulong *x,            \
                            global const long *a, uint shift, local const ulong *w, \
                            local const ulong *quotient, struct modulus m)          \
    {                                                                               \
        for (uint u = 0; u < N / (2 * blocks); u++) {                               \
            local ulong *low = x + 2 * b * (N / (2 * blocks)) + u;                  \
            local ulong *high = low + N / (2 * blocks);                             \
            ulong v = blocks == 1 ? digits_of(a + u, shift, m) : *low;              \
            ulong y = blocks == 1 ? digits_of(a + u + N / 2, shift, m) : *high;     \
            BUTTERFLY(ulong, v, y, w[blocks + b], quotient[blocks + b], m.value);   \
            *low = v;                                                               \
            *high = y;                                                              \
        }                                                                           \
    }
PASSES(lazy, LAZY_BUTTERFLY)
PASSES(exact, EXACT_BUTTERFLY)
#define lazy_first(own, x, a, shift, first, m) /* short transforms are not shared */
#define exact_first(own, x, a, shift, first, m)
#define lazy_last(v, i, w, quotient, q) \
    for (uint d = 0; d < TOGETHER; d++) v[d] = REDUCE_LAZY(v[d], q)
#define exact_last(v, i, w, quotient, q)

#endif

/* The stages of digit d's transform, but the last three, to x. */
#define TRANSFORM(kind)                                                                             \
    INLINE void kind##_transform(local ulong *x, local const ulong *w, local const ulong *quotient, \
                                 uint own, const struct twiddle *first, global const long *a,       \
                                 uint d, struct modulus m)                                          \
    {                                                                                               \
        const uint shift = d * BASE_BITS;                                                           \
        uint blocks = 1;                                                                            \
        if (N == 1)                                                                                 \
            STORE(digits_of(a, shift, m), x);                                                       \
        if (BLOCKS > 1)                                                                             \
            kind##_first(own, x, a, shift, first, m);                                               \
        for (; blocks * RADIX <= M / WIDTH; blocks *= RADIX)                                        \
            for (uint b = 0; b < blocks; b++)                                                       \
                kind##_pass(RADIX, blocks, b, x, a, shift, w, quotient, m);                         \
        for (; blocks < M / WIDTH; blocks *= 2)                                                     \
            for (uint b = 0; b < blocks; b++)                                                       \
                kind##_pass(2, blocks, b, x, a, shift, w, quotient, m);                             \
    }
TRANSFORM(lazy)
TRANSFORM(exact)

/* The last stages of TOGETHER digits, from d on, their products with the key, and sums of 128 bits,
 * whose upper halves stay below q: to upper and lower, or after the last digit modulo q to out.
 * The digits' chains of operations know nothing of each other, which keeps a core busy. */
#define ADD_PRODUCTS(kind)                                                                         \
    INLINE void kind##_products(global long *out, local const ulong *x, local ulong *upper,        \
                                local ulong *lower, local const ulong *w,                          \
                                local const ulong *quotient, global const long *key, uint d,       \
                                struct modulus m)                                                  \
    {                                                                                              \
        for (uint u = 0; u < M; u += WIDTH) {                                                      \
            lanes low = 0, high = 0;                                                               \
            if (d > 0) {                                                                           \
                low = LOAD(lower + u);                                                             \
                high = LOAD(upper + u);                                                            \
            }                                                                                      \
            lanes values[TOGETHER];                                                                \
            UNROLL for (uint i = 0; i < TOGETHER; i++) values[i] = LOAD(x + i * M + u);            \
            kind##_last(values, (M + u) / WIDTH, w, quotient, m.value);                            \
            UNROLL for (uint i = 0; i < TOGETHER; i++) {                                           \
                if (d + i >= DIGITS) /* what was read of it is anything */                         \
                    break;                                                                         \
                lanes value = values[i], factor = AS_LANES(LOAD(key + (long)(d + i) * K * N + u)); \
                if (ANY(factor >= m.value))                                                        \
                    factor = reduce_all(factor, m);                                                \
                lanes product = value * factor;                                                    \
                low += product;                                                                    \
                high += key_upper_word(value, factor) + CARRY(low < product);                      \
                high = min(high, high - m.value);                                                  \
            }                                                                                      \
            if (d + TOGETHER >= DIGITS) {                                                          \
                lanes whole, sum = divide_lanes(high, low, m, &whole);                             \
                STORE(AS_LONGS(sum), out + u);                                                     \
            } else {                                                                               \
                STORE(low, lower + u);                                                             \
                STORE(high, upper + u);                                                            \
            }                                                                                      \
        }                                                                                          \
    }
ADD_PRODUCTS(lazy)
ADD_PRODUCTS(exact)

/* out[j] = sum over i of ntt(digit i of a modulo q[j]) * key[i, j], modulo q[j] */
KERNEL key_switch(global long *out, long out_at, global const long *a, long a_at,
                  global const long *key, long key_at, global const long *q, long q_at,
                  global const long *psi, long psi_at)
{
    local ulong x[TOGETHER * M], w[M], quotient[M], upper[SUMS], lower[SUMS];
    struct twiddle first[BLOCKS]; /* of stages 0, 1, ... before blocks are on their own */
    uint j = get_group_id(0) / BLOCKS, own = get_group_id(0) % BLOCKS;
    struct modulus m = make_modulus((ulong)q[q_at + j]);
    lanes zero = 0;
    out += out_at + (long)j * N + own * M;
    psi += psi_at + (long)j * N;
    for (uint blocks = 1, stage = 0; blocks < BLOCKS; blocks *= 2, stage++)
        first[stage] =
            make_twiddle((ulong)residue_of(psi[blocks + own / (BLOCKS / blocks)], m), m);
    /* Twiddle i of a block of the row is w[i], as if the block was all. A vector writes beyond the
     * few of the first stages, which later ones write again. */
    for (uint blocks = 1; blocks < M; blocks *= 2)
        for (uint u = 0; u < blocks; u += WIDTH) {
            lanes factor = AS_LANES(LOAD(psi + (BLOCKS + own) * blocks + u)), whole;
            if (ANY(factor >= m.value))
                factor = reduce_all(factor, m);
            (void)divide_lanes(factor, zero, m, &whole);
            STORE(factor, w + blocks + u);
            STORE(whole, quotient + blocks + u);
        }
    a += a_at;
    key += key_at + (long)j * N + own * M;
    for (uint d = 0; d < DIGITS; d += TOGETHER) {
        for (uint i = 0; i < TOGETHER && d + i < DIGITS; i++)
            if (m.value >> 62)
                exact_transform(x + i * M, w, quotient, own, first, a, d + i, m);
            else
                lazy_transform(x + i * M, w, quotient, own, first, a, d + i, m);
        if (m.value >> 62)
            exact_products(out, x, upper, lower, w, quotient, key, d, m);
        else
            lazy_products(out, x, upper, lower, w, quotient, key, d, m);
    }
}
