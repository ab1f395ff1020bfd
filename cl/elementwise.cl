/*
 * Elementwise modular operations. One of MODMUL, MODSUM, MOD, MODNEG and ABS is defined.
 * OUT, A, B, P: the types of the operands, int or long. MODULUS_TABLE: whether p is a table of
 * struct modulus that has been checked; else its elements are, and one below 1 counts as 1 (the
 * check that has been enqueued before reports it).
 */
#if !defined(OUT) || !defined(A)
#error "OUT and A must be given"
#endif

#ifdef MODULUS_TABLE
#define P_PARAMETER global const struct modulus *p
#define P_AT(i) (p[i])
#else
#define P_PARAMETER BUFFER(const P, p)
#define P_AT(i) make_modulus((ulong)max((long)AT(p, i), 1L))
#endif

/* The C remainder of a value with that magnitude mod q and that sign. */
static inline long with_sign(ulong rest, bool negative)
{
    return negative ? -(long)rest : (long)rest;
}

#if defined(MODMUL)
static inline long compute(long a, long b, struct modulus p)
{
    ulong rest = multiply_mod(reduce(magnitude(a), p), reduce(magnitude(b), p), p);
    return with_sign(rest, (a < 0) != (b < 0));
}
#elif defined(MODSUM)
static inline long compute(long a, long b, struct modulus p)
{
    ulong size_a = magnitude(a), size_b = magnitude(b);
    if ((a < 0) == (b < 0)) {
        ulong rest = add_mod(reduce(size_a, p), reduce(size_b, p), p.value);
        return with_sign(rest, a < 0);
    }
    bool negative = size_a > size_b ? a < 0 : b < 0;
    return with_sign(reduce(size_a > size_b ? size_a - size_b : size_b - size_a, p), negative);
}
#elif defined(MOD)
static inline long compute(long a, struct modulus p)
{
    return with_sign(reduce(magnitude(a), p), a < 0);
}
#elif defined(MODNEG)
static inline long compute(long a, struct modulus p)
{
    ulong rest = reduce_signed(a, p);
    return rest ? (long)(p.value - rest) : 0;
}
#elif defined(ABS)
static inline long compute(long a)
{
    return (long)magnitude(a);
}
#else
#error "no operation is given"
#endif

/* Operands: out, a, b, p; those that the operation lacks are left out. */
KERNEL elementwise(struct space space, BUFFER(OUT, out), BUFFER(const A, a)
#if defined(MODMUL) || defined(MODSUM)
                                       , BUFFER(const B, b)
#endif
#ifndef ABS
                                       , P_PARAMETER
#endif
                   )
{
    for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
        for (ulong i = 0; i < run.length; i++) {
            long value = AT(a, POSITION(space, run, 1, i));
#if defined(MODMUL) || defined(MODSUM)
            value = compute(value, AT(b, POSITION(space, run, 2, i)),
                            P_AT(POSITION(space, run, 3, i)));
#elif defined(ABS)
            value = compute(value);
#else
            value = compute(value, P_AT(POSITION(space, run, 3, i)));
#endif
            AT(out, POSITION(space, run, 0, i)) = (OUT)value;
        }
}
