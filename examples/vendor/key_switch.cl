/*
 * A key switch in one launch: a work-item for each modulus, with explicit vectors as CPUs want.
 * Digits of a are transformed and multiplied with the key in memory of the work-item's own, where
 * the operations of HEAL write and read them all. cl/base/arithmetic.h stands in front of this
 * file: struct modulus, make_twiddle and others, exact for every modulus below 2^63.
 *
 * STAGES, a tunable: how many stages of a transform are done between a load and a store, 1 to 3.
 */

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
#define ANY(x) any(x)
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
#define LAZY_BUTTERFLY(type, low, high, w, quotient, q)                                        \
    do {                                                                                       \
        type x_ = (high), up_ = x_ >> 32, w_ = (quotient), part_ = w_ >> 32, y_, sum_;         \
        y_ = HALVES(up_, part_) + (HALVES(x_, part_) >> 32) + (HALVES(up_, w_) >> 32);         \
        y_ = x_ * (w) - y_ * (q);                                                              \
        y_ = min(y_, y_ - 2 * (q));                                                            \
        sum_ = (low);                                                                          \
        sum_ = min(sum_, sum_ - 2 * (q));                                                      \
        low = sum_ + y_;                                                                       \
        high = sum_ - y_ + 2 * (q);                                                            \
    } while (0)
#define EXACT_BUTTERFLY(type, low, high, w, quotient, q)       \
    do {                                                       \
        type y_, difference_, sum_;                            \
        y_ = (high) * (w) - mul_hi((high), (quotient)) * (q);  \
        y_ = min(y_, y_ - (q));                                \
        difference_ = (low) - y_;                              \
        sum_ = (low) + y_;                                     \
        high = min(difference_, difference_ + (q));            \
        low = min(sum_, sum_ - (q));                           \
    } while (0)

/* [0, 4q) to [0, q) */
#define REDUCE_LAZY(x, q) min(min(x, (x) - 2 * (q)), min(x, (x) - 2 * (q)) - (q))
#define REDUCE_EXACT(x, q) (x)

/* ---------------------------------------------------------------- transforms */

/* Residues of the digits of eight, or one, elements of a. */
INLINE lanes digits_of(global const long *a, uint shift, struct modulus m)
{
    lanes digits = AS_LANES(LOAD(a)) >> shift & (lanes)((1UL << BASE_BITS) - 1);
    if (ANY(digits >= m.value))
        digits = reduce_all(digits, m);
    return digits;
}

#if N >= 16

#define RADIX (1u << STAGES)

/* Stages whose halves are at least eight elements long, R = 2^stages of them between a load and a
 * store. from: a's digits in the first pass. */
#define PASSES(kind, BUTTERFLY)                                                                     \
    INLINE void kind##_pass(uint R, uint blocks, uint b, local ulong *x,                     \
                                   global const long *a, uint shift, local const ulong *w,          \
                                   local const ulong *quotient, struct modulus m)                   \
    {                                                                                               \
        const uint size = N / blocks, step = size / R;                                              \
        local ulong *first = x + b * size;                                                          \
        lanes q = m.value;                                                                          \
        for (uint u = 0; u < step; u += WIDTH) {                                                    \
            lanes v[RADIX];                                                                         \
            UNROLL for (uint i = 0; i < R; i++)                                                     \
                v[i] = blocks == 1 ? digits_of(a + i * step + u, shift, m)                          \
                                   : LOAD(first + i * step + u);                                    \
            UNROLL for (uint parts = 1; parts < R; parts *= 2)                                      \
                UNROLL for (uint part = 0; part < parts; part++)                                    \
                    UNROLL for (uint i = 0; i < R / 2 / parts; i++) {                               \
                        const uint at = (blocks + b) * parts + part, j = part * (R / parts) + i;    \
                        BUTTERFLY(lanes, v[j], v[j + R / 2 / parts], (lanes)(w[at]),                \
                                  (lanes)(quotient[at]), q);                                        \
                    }                                                                               \
            UNROLL for (uint i = 0; i < R; i++) STORE(v[i], first + i * step + u);                  \
        }                                                                                           \
    }
PASSES(lazy, LAZY_BUTTERFLY)
PASSES(exact, EXACT_BUTTERFLY)

/* The last three stages, of eight neighbours each, reduced to [0, q). */
#define LAST_STAGES(kind, BUTTERFLY, REDUCE)                                                     \
    INLINE lanes kind##_last(lanes v, uint i, local const ulong *w,                       \
                                    local const ulong *quotient, ulong q)                        \
    {                                                                                            \
        ulong4 low = v.s0123, high = v.s4567, a, b;                                              \
        BUTTERFLY(ulong4, low, high, (ulong4)(w[i]), (ulong4)(quotient[i]), (ulong4)(q));        \
        a = (ulong4)(low.s01, high.s01);                                                         \
        b = (ulong4)(low.s23, high.s23);                                                         \
        ulong2 pair = vload2(i, w), pair_quotient = vload2(i, quotient);                         \
        BUTTERFLY(ulong4, a, b, pair.s0011, pair_quotient.s0011, (ulong4)(q));                   \
        low = (ulong4)(a.s0, b.s0, a.s2, b.s2);                                                  \
        high = (ulong4)(a.s1, b.s1, a.s3, b.s3);                                                 \
        BUTTERFLY(ulong4, low, high, vload4(i, w), vload4(i, quotient), (ulong4)(q));            \
        v = (lanes)(low.s0, high.s0, low.s1, high.s1, low.s2, high.s2, low.s3, high.s3);         \
        return REDUCE(v, (lanes)(q));                                                            \
    }
LAST_STAGES(lazy, LAZY_BUTTERFLY, REDUCE_LAZY)
LAST_STAGES(exact, EXACT_BUTTERFLY, REDUCE_EXACT)

#else

/* A pass of one stage, and nothing behind the passes. */
#define RADIX 2u
#define PASSES(kind, BUTTERFLY)                                                                  \
    INLINE void kind##_pass(uint R, uint blocks, uint b, local ulong *x,                  \
                                   global const long *a, uint shift, local const ulong *w,       \
                                   local const ulong *quotient, struct modulus m)                \
    {                                                                                            \
        for (uint u = 0; u < N / (2 * blocks); u++) {                                            \
            local ulong *low = x + 2 * b * (N / (2 * blocks)) + u;                               \
            local ulong *high = low + N / (2 * blocks);                                          \
            ulong v = blocks == 1 ? digits_of(a + u, shift, m) : *low;                           \
            ulong y = blocks == 1 ? digits_of(a + u + N / 2, shift, m) : *high;                  \
            BUTTERFLY(ulong, v, y, w[blocks + b], quotient[blocks + b], m.value);                \
            *low = v;                                                                            \
            *high = y;                                                                           \
        }                                                                                        \
    }
PASSES(lazy, LAZY_BUTTERFLY)
PASSES(exact, EXACT_BUTTERFLY)
#define lazy_last(v, i, w, quotient, q) REDUCE_LAZY(v, q)
#define exact_last(v, i, w, quotient, q) (v)

#endif

/* Of a transform and its product with a row of the key: added to sums of 128 bits, whose upper
 * halves stay below q. */
#define ADD_DIGIT(kind)                                                                            \
    INLINE void kind##_digit(local ulong *x, local ulong *upper, local ulong *lower,               \
                             local const ulong *w, local const ulong *quotient,                    \
                             global const long *a, uint shift, global const long *key,             \
                             struct modulus m)                                                     \
    {                                                                                              \
        uint blocks = 1;                                                                           \
        for (; blocks * RADIX <= N / WIDTH; blocks *= RADIX)                                       \
            for (uint b = 0; b < blocks; b++)                                                      \
                kind##_pass(RADIX, blocks, b, x, a, shift, w, quotient, m);                        \
        for (; blocks < N / WIDTH; blocks *= 2)                                                    \
            for (uint b = 0; b < blocks; b++)                                                      \
                kind##_pass(2, blocks, b, x, a, shift, w, quotient, m);                            \
        for (uint u = 0; u < N; u += WIDTH) {                                                      \
            lanes value = N > 1 ? LOAD(x + u) : digits_of(a, shift, m);                            \
            lanes factor = AS_LANES(LOAD(key + u));                                                \
            value = kind##_last(value, (N + u) / WIDTH, w, quotient, m.value);                     \
            if (ANY(factor >= m.value))                                                            \
                factor = reduce_all(factor, m);                                                    \
            lanes product = value * factor, low = LOAD(lower + u) + product;                       \
            lanes high = LOAD(upper + u) + key_upper_word(value, factor) + CARRY(low < product);        \
            STORE(low, lower + u);                                                                 \
            STORE(min(high, high - m.value), upper + u);                                           \
        }                                                                                          \
    }
ADD_DIGIT(lazy)
ADD_DIGIT(exact)

/* out[j] = sum over i of ntt(digit i of a modulo q[j]) * key[i, j], modulo q[j] */
KERNEL key_switch(global long *out, long out_at, global const long *a, long a_at,
                  global const long *key, long key_at, global const long *q, long q_at,
                  global const long *psi, long psi_at)
{
    local ulong x[N], w[N], quotient[N], upper[N], lower[N];
    uint j = get_group_id(0);
    struct modulus m = make_modulus((ulong)q[q_at + j]);
    out += out_at + (long)j * N;
    psi += psi_at + (long)j * N;
    for (uint u = 0; u < N; u += WIDTH) {
        lanes factor = AS_LANES(LOAD(psi + u)), zero = 0, whole;
        if (ANY(factor >= m.value))
            factor = reduce_all(factor, m);
        (void)divide_lanes(factor, zero, m, &whole);
        STORE(factor, w + u);
        STORE(whole, quotient + u);
        STORE(zero, upper + u);
        STORE(zero, lower + u);
    }
    for (uint i = 0; i < G && i * BASE_BITS < 64; i++) { /* the digits behind are 0 */
        global const long *row = key + key_at + ((long)i * K + j) * N;
        if (m.value >> 62)
            exact_digit(x, upper, lower, w, quotient, a + a_at, i * BASE_BITS, row, m);
        else
            lazy_digit(x, upper, lower, w, quotient, a + a_at, i * BASE_BITS, row, m);
    }
    for (uint u = 0; u < N; u += WIDTH) {
        lanes whole, sum = divide_lanes(LOAD(upper + u), LOAD(lower + u), m, &whole);
        STORE(AS_LONGS(sum), out + u);
    }
}
