/*
 * A key switch in one launch: a work-item for each modulus, with explicit vectors as CPUs want.
 * Digits of a are transformed and multiplied with the key in memory of the work-item's own, where
 * the operations of HEAL write and read them all. cl/base/arithmetic.h stands in front of this
 * file: struct modulus, make_twiddle and others, exact for every modulus below 2^63.
 */

/* x * w mod q for eight or four x, w with its quotient, floor(w * 2^64 / q) */
#define TIMES(x, w, quotient, q, result)                 \
    do {                                                 \
        result = (x) * (w) - mul_hi((x), (quotient)) * q; \
        result = min(result, result - q);                \
    } while (0)

/* low and high become low + w * high and low - w * high mod q; all in [0, q) */
#define BUTTERFLY(type, low, high, w, quotient, q)      \
    do {                                                \
        type y_, difference_, sum_;                     \
        TIMES(high, w, quotient, q, y_);                \
        difference_ = (low) - y_;                       \
        sum_ = (low) + y_;                              \
        high = min(difference_, difference_ + q);       \
        low = min(sum_, sum_ - q);                      \
    } while (0)

#if N >= 16
#define WIDTH 8
#define VECTOR(type) type##8
#define LOAD(from) vload8(0, from)
#define STORE(value, to) vstore8(value, 0, to)
#define AS_ULONGS(x) as_ulong8(x)
#define ANY(x) any(x)
#define CARRY(x) (0 - as_ulong8(x)) /* a lane that is true is -1 */
#else
#define WIDTH 1
#define VECTOR(type) type
#define LOAD(from) (*(from))
#define STORE(value, to) (*(to) = (value))
#define AS_ULONGS(x) (ulong)(x)
#define ANY(x) (x)
#define CARRY(x) (ulong)(x)
#endif

/* Each lane, as a signed integer, modulo q. */
static VECTOR(ulong) reduce_all(VECTOR(ulong) x, struct modulus m)
{
    ulong lanes[WIDTH];
    STORE(x, lanes);
    for (uint lane = 0; lane < WIDTH; lane++)
        lanes[lane] = residue_of((long)lanes[lane], m);
    return LOAD(lanes);
}

#if N >= 16
/* Stages whose halves are at least eight elements long. */
static void long_stages(local ulong *x, local const ulong *w, local const ulong *quotient, ulong q)
{
    for (uint blocks = 1; blocks <= N / 16; blocks *= 2)
        for (uint b = 0; b < blocks; b++) {
            uint half_size = N / (2 * blocks);
            local ulong *first = x + 2 * b * half_size;
            ulong8 factor = w[blocks + b], factor_quotient = quotient[blocks + b];
            for (uint u = 0; u < half_size; u += 8) {
                ulong8 low = vload8(0, first + u), high = vload8(0, first + half_size + u);
                BUTTERFLY(ulong8, low, high, factor, factor_quotient, q);
                vstore8(low, 0, first + u);
                vstore8(high, 0, first + half_size + u);
            }
        }
}

/* The last three, of eight neighbours each. */
static void short_stages(local ulong *x, local const ulong *w, local const ulong *quotient, ulong q)
{
    for (uint u = 0; u < N; u += 8) {
        ulong8 v = vload8(0, x + u);
        uint i = N / 8 + u / 8;
        ulong4 low = v.s0123, high = v.s4567, a, b;
        BUTTERFLY(ulong4, low, high, w[i], quotient[i], q);
        a = (ulong4)(low.s01, high.s01);
        b = (ulong4)(low.s23, high.s23);
        ulong2 pair = vload2(i, w), pair_quotient = vload2(i, quotient);
        BUTTERFLY(ulong4, a, b, pair.s0011, pair_quotient.s0011, q);
        low = (ulong4)(a.s0, b.s0, a.s2, b.s2);
        high = (ulong4)(a.s1, b.s1, a.s3, b.s3);
        BUTTERFLY(ulong4, low, high, vload4(i, w), vload4(i, quotient), q);
        vstore8((ulong8)(low.s0, high.s0, low.s1, high.s1, low.s2, high.s2, low.s3, high.s3), 0,
                x + u);
    }
}

static void all_stages(local ulong *x, local const ulong *w, local const ulong *quotient, ulong q)
{
    long_stages(x, w, quotient, q);
    short_stages(x, w, quotient, q);
}
#else
static void all_stages(local ulong *x, local const ulong *w, local const ulong *quotient, ulong q)
{
    for (uint blocks = 1; blocks < N; blocks *= 2)
        for (uint b = 0; b < blocks; b++)
            for (uint u = 0; u < N / (2 * blocks); u++) {
                local ulong *low = x + 2 * b * (N / (2 * blocks)) + u, *high = low + N / (2 * blocks);
                BUTTERFLY(ulong, *low, *high, w[blocks + b], quotient[blocks + b], q);
            }
}
#endif

/* Adds products of x and a row of the key, reduced, to sums of 128 bits, whose upper halves stay
 * below q. */
static void add_products(local ulong *upper, local ulong *lower, local const ulong *x,
                         global const long *key, struct modulus m)
{
    for (uint u = 0; u < N; u += WIDTH) {
        VECTOR(ulong) factor = AS_ULONGS(LOAD(key + u)), value = LOAD(x + u);
        if (ANY(factor >= m.value))
            factor = reduce_all(factor, m);
        VECTOR(ulong) product = value * factor, low = LOAD(lower + u) + product;
        VECTOR(ulong) high = LOAD(upper + u) + mul_hi(value, factor) + CARRY(low < product);
        STORE(low, lower + u);
        STORE(min(high, high - m.value), upper + u);
    }
}

/* out[j] = sum over i of ntt(digit i of a modulo q[j]) * key[i, j], modulo q[j] */
KERNEL key_switch(global long *out, long out_at, global const long *a, long a_at,
                  global const long *key, long key_at, global const long *q, long q_at,
                  global const long *psi, long psi_at)
{
    local ulong x[N], w[N], quotient[N], upper[N], lower[N];
    const ulong mask = (1UL << BASE_BITS) - 1;
    uint j = get_group_id(0);
    struct modulus m = make_modulus((ulong)q[q_at + j]);
    out += out_at + (long)j * N;
    psi += psi_at + (long)j * N;
    for (uint u = 0; u < N; u++) {
        struct twiddle twiddle = make_twiddle(residue_of(psi[u], m), m);
        w[u] = twiddle.factor;
        quotient[u] = twiddle.quotient;
        upper[u] = lower[u] = 0;
    }
    for (uint i = 0; i < G; i++) {
        uint shift = i * BASE_BITS;
        for (uint u = 0; u < N; u++) {
            ulong digit = shift < 64 ? ((ulong)a[a_at + u] >> shift) & mask : 0;
            x[u] = digit < m.value ? digit : reduce(digit, m);
        }
        all_stages(x, w, quotient, m.value);
        add_products(upper, lower, x, key + key_at + ((long)i * K + j) * N, m);
    }
    for (uint u = 0; u < N; u++)
        out[u] = (long)reduce_wide_below(upper[u], lower[u], m);
}
