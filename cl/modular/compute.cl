/* Elementwise modular operations on one element, and the lookup of its modulus. */
#ifndef HEALCL_CL_COMPUTE
#define HEALCL_CL_COMPUTE

/* The C remainder mod p of a value with this sign, given the remainder of its magnitude. */
static inline long with_sign(ulong rest, bool negative)
{
    return negative ? -(long)rest : (long)rest;
}

/* a*b, C remainder by p */
static inline long compute_modmul(long a, long b, struct modulus p)
{
#ifndef AXES /* on CPUs a branch is well predicted: most values are residues */
    if ((ulong)a < p.value && (ulong)b < p.value)
        return (long)multiply_mod((ulong)a, (ulong)b, p);
#endif
    ulong size_a = magnitude(a), size_b = magnitude(b), scaled, rest;
    divide_wide(size_a >> (64 - p.shift), size_a << p.shift, p, &scaled);
    divide_wide(high_word(scaled, size_b), scaled * size_b, p, &rest);
    return with_sign(rest >> p.shift, (a ^ b) < 0);
}

/* a, C remainder by p */
static inline long compute_mod(long a, long b, struct modulus p)
{
    ulong size = magnitude(a);
    return with_sign(size < p.value ? size : reduce(size, p), a < 0);
}

/* a+b, C remainder by p */
static inline long compute_modsum(long a, long b, struct modulus p)
{
    if ((ulong)a < p.value && (ulong)b < p.value)
        return (long)add_mod((ulong)a, (ulong)b, p.value);
    ulong size_a = magnitude(a), size_b = magnitude(b);
    if ((a ^ b) < 0)
        return compute_mod(a + b, 0, p);
    ulong sum = size_a + size_b, carry = sum < size_a && p.value > 1; /* modulo 1 all is 0 */
    return with_sign(reduce_wide_below(carry, sum, p), a < 0);
}

/* -a mod p, in [0, p) */
static inline long compute_modneg(long a, long b, struct modulus p)
{
    ulong rest = reduce_signed(a, p);
    return rest ? (long)(p.value - rest) : 0;
}

/* As compute_NAME, for residues a and b in [0, p). They have no sign and need no reduction. */
static inline long residues_modmul(long a, long b, struct modulus p)
{
    CHECK_BELOW((ulong)b, p.value);
    return (long)multiply_mod((ulong)a, (ulong)b, p);
}

static inline long residues_modsum(long a, long b, struct modulus p)
{
    return (long)add_mod((ulong)a, (ulong)b, p.value);
}

static inline long residues_mod(long a, long b, struct modulus p)
{
    CHECK_BELOW((ulong)a, p.value);
    return a;
}

static inline long residues_modneg(long a, long b, struct modulus p)
{
    CHECK_BELOW((ulong)a, p.value);
    return a ? (long)p.value - a : 0;
}

/* An operation that is known only at run time. Most operands are residues. */
static inline long compute(long operation, long a, long b, struct modulus p)
{
    bool are_residues = (ulong)a < p.value && (ulong)b < p.value;
#define COMPUTE(KIND, name, operands) \
    if (operation == KIND)            \
        return are_residues ? residues_##name(a, b, p) : compute_##name(a, b, p);
    ELEMENTWISE_OPERATIONS(COMPUTE)
    return 0;
}

#define TABLE_PARAMETER global const struct modulus *p
#ifdef NARROW
#define TABLE_AT(i) (p[(uint)(i)&NARROW_MASK(sizeof(*p))])
#else
#define TABLE_AT(i) (p[i])
#endif

#endif
