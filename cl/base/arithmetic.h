/*
 * Exact arithmetic modulo q for every q in [1, 2^63). Comments state the ranges of values. It is
 * compiled for the device, and for the host by its unit test, which provides mul_hi and clz.
 *
 * Division by a modulus follows N. Moeller and T. Granlund, "Improved division by invariant
 * integers", IEEE Transactions on Computers 60 (2011), algorithm 4: two multiplications and two
 * corrections with a precomputed reciprocal.
 */
#ifndef HEALCL_CL_ARITHMETIC_H
#define HEALCL_CL_ARITHMETIC_H

/* -D CALLED prevents inlining of functions: they compile faster. */
#ifdef CALLED
#define FUNCTION __attribute__((noinline)) static
#else
#define FUNCTION static inline
#endif

/* |x|, in [0, 2^63] */
FUNCTION ulong magnitude(long x)
{
    return x < 0 ? 0 - (ulong)x : (ulong)x;
}

/* The upper word of a*b. If a CPU has an instruction for it, compilers seldom use it for mul_hi. */
FUNCTION ulong high_word(ulong a, ulong b)
{
#if defined(__OPENCL_C_VERSION__) && defined(__SIZEOF_INT128__) && \
    (defined(__x86_64__) || defined(__aarch64__))
    return (ulong)((unsigned __int128)a * b >> 64);
#else
    return mul_hi(a, b);
#endif
}

/* Quotient and remainder of high*2^64 + low divided by m.normalized; high < m.normalized. */
FUNCTION ulong divide_wide(ulong high, ulong low, struct modulus m, ulong *remainder)
{
    ulong product_low = m.reciprocal * high;
    ulong quotient = high_word(m.reciprocal, high) + high;
    ulong fraction = product_low + low;
    quotient += (fraction < product_low) + 1u;
    ulong rest = low - quotient * m.normalized;
    if (rest > fraction) {
        quotient--;
        rest += m.normalized;
    }
    if (rest >= m.normalized) {
        quotient++;
        rest -= m.normalized;
    }
    *remainder = rest;
    return quotient;
}

/* high*2^64 + low mod q, high in [0, q) */
FUNCTION ulong reduce_wide_below(ulong high, ulong low, struct modulus m)
{
    ulong rest;
    CHECK_BELOW(high, m.value);
    divide_wide(high << m.shift | low >> (64 - m.shift), low << m.shift, m, &rest);
    return rest >> m.shift;
}

/* x mod q, for any x */
FUNCTION ulong reduce(ulong x, struct modulus m)
{
    return reduce_wide_below(0, x, m);
}

/* x mod q in [0, q), for any x of either sign */
FUNCTION ulong reduce_signed(long x, struct modulus m)
{
    ulong rest = reduce(magnitude(x), m);
    return x < 0 && rest != 0 ? m.value - rest : rest;
}

/* As reduce_signed, for x that is mostly in [0, q). As an unsigned number, a negative x is above
 * every q. */
FUNCTION ulong residue_of(long x, struct modulus m)
{
    return (ulong)x < m.value ? (ulong)x : reduce_signed(x, m);
}

/* As multiply_mod, without a check of ranges, which would print. */
FUNCTION ulong multiply_residue(ulong a, ulong b, struct modulus m)
{
    ulong rest, scaled = a << m.shift;
    divide_wide(high_word(scaled, b), scaled * b, m, &rest);
    return rest >> m.shift;
}

/* a*b mod q; a in [0, q), any b */
FUNCTION ulong multiply_mod(ulong a, ulong b, struct modulus m)
{
    CHECK_BELOW(a, m.value);
    return multiply_residue(a, b, m);
}

/* a+b mod q; a and b in [0, q) */
FUNCTION ulong add_mod(ulong a, ulong b, ulong q)
{
    ulong sum = a + b;
    CHECK_BELOW(a, q);
    CHECK_BELOW(b, q);
    return sum >= q ? sum - q : sum;
}

/* a-b mod q; a and b in [0, q) */
FUNCTION ulong subtract_mod(ulong a, ulong b, ulong q)
{
    CHECK_BELOW(a, q);
    CHECK_BELOW(b, q);
    return a >= b ? a - b : a - b + q;
}

/* x*w mod q; any x. With the rounded quotient the remainder is at most one q too large. */
FUNCTION ulong multiply_twiddle(ulong x, struct twiddle w, ulong q)
{
    CHECK_BELOW(w.factor, q);
    ulong rest = x * w.factor - high_word(x, w.quotient) * q;
    CHECK_BELOW(rest, 2 * q);
    return rest >= q ? rest - q : rest;
}

/* Quotient of high*2^64 + low by divisor; high < divisor, divisor in [2^63, 2^64). It is computed
 * digit by digit in base 2^32: D. Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D.
 * Slow: only for precomputation. */
FUNCTION ulong divide_slowly(ulong high, ulong low, ulong divisor)
{
    ulong divisor_high = divisor >> 32, divisor_low = divisor & 0xffffffffUL;
    ulong digits[2];
    ulong rest = high;
    for (uint i = 0; i < 2; i++) {
        ulong next = i == 0 ? low >> 32 : low & 0xffffffffUL;
        ulong digit = rest / divisor_high, left = rest % divisor_high;
        while (digit > 0xffffffffUL || digit * divisor_low > (left << 32 | next)) {
            digit--;
            left += divisor_high;
            if (left > 0xffffffffUL)
                break;
        }
        rest = (rest << 32 | next) - digit * divisor;
        digits[i] = digit;
    }
    return digits[0] << 32 | digits[1];
}

/* value in [1, 2^63) */
FUNCTION struct modulus make_modulus(ulong value)
{
    struct modulus m;
    m.value = value;
    m.shift = clz(value);
    /* The highest bit is set except for a value of 0. With 0 divide_slowly would not end. */
    m.normalized = value << m.shift | (ulong)1 << 63;
    m.reciprocal = divide_slowly(~m.normalized, ~(ulong)0, m.normalized);
    return m;
}

/* factor in [0, q) */
FUNCTION struct twiddle make_twiddle(ulong factor, struct modulus m)
{
    struct twiddle w;
    ulong rest;
    CHECK_BELOW(factor, m.value);
    w.factor = factor;
    w.quotient = divide_wide(factor << m.shift, 0, m, &rest);
    return w;
}

/* A signed integer of 192 bits in two's complement: sums of up to 2^65 products of int64. */
struct wide {
    ulong low, middle;
    long high;
};

FUNCTION struct wide wide_zero(void)
{
    struct wide sum;
    sum.low = 0;
    sum.middle = 0;
    sum.high = 0;
    return sum;
}

/* sum + a*b, exactly */
FUNCTION struct wide wide_add_product(struct wide sum, long a, long b)
{
    ulong low = (ulong)a * (ulong)b;
    long middle = mul_hi(a, b);
    sum.low += low;
    ulong carry = sum.low < low;
    ulong before = sum.middle;
    sum.middle += (ulong)middle;
    sum.high += (middle < 0 ? -1L : 0L) + (sum.middle < before ? 1L : 0L);
    before = sum.middle;
    sum.middle += carry;
    sum.high += sum.middle < before ? 1L : 0L;
    return sum;
}

/* sum + a, exactly */
FUNCTION struct wide wide_add(struct wide sum, long a)
{
    return wide_add_product(sum, a, 1);
}

/* sum + more, exactly */
FUNCTION struct wide wide_join(struct wide sum, struct wide more)
{
    sum.low += more.low;
    ulong carry = sum.low < more.low;
    sum.middle += more.middle;
    sum.high += more.high + (sum.middle < more.middle ? 1L : 0L);
    sum.middle += carry;
    sum.high += sum.middle < carry ? 1L : 0L;
    return sum;
}

/* sum mod q, in [0, q) */
FUNCTION ulong wide_reduce(struct wide sum, struct modulus m)
{
    bool negative = sum.high < 0;
    if (negative) { /* 0 - sum */
        sum.low = 0 - sum.low;
        ulong borrow = sum.low != 0;
        ulong middle = 0 - sum.middle - borrow;
        sum.high = -sum.high - (long)(sum.middle != 0 || borrow != 0);
        sum.middle = middle;
    }
    ulong rest = reduce((ulong)sum.high, m);
    rest = reduce_wide_below(rest, sum.middle, m);
    rest = reduce_wide_below(rest, sum.low, m);
    return negative && rest != 0 ? m.value - rest : rest;
}

#endif
