/*
 * Elementwise modular operations: out = compute_NAME(a, b, p) in a kernel NAME_table, where p is a
 * table that has been checked.
 * A scalar a or b comes by value: scalars has bit 0 set for a, bit 1 for b.
 */

#include "compute.cl"

/* Operands: out, a, b, p. */
#define MODULAR(KIND, name, operands)                                                             \
    KERNEL name##_table(SPACE(space), global ELEMENT *out, global const ELEMENT *a,               \
                        global const ELEMENT *b, TABLE_PARAMETER, uint scalars, long a_scalar,    \
                        long b_scalar)                                                            \
    {                                                                                             \
        TAKE_SPACE(space);                                                                        \
        EACH_ELEMENT(space, span, i) { \
                union elements x = scalars & 1 ? NO_ELEMENTS : TAKE(a, space, span, 1, i);        \
                union elements y = scalars & 2 ? NO_ELEMENTS : TAKE(b, space, span, 2, i);        \
                struct modulus modulus = TABLE_AT(POSITION(space, span, 3, i));                   \
                EACH_OF_WIDTH(j)                                                                  \
                    x.element[j] = (ELEMENT)compute_##name(                                       \
                        scalars & 1 ? a_scalar : WIDEN(x.element[j]),                             \
                        scalars & 2 ? b_scalar : WIDEN(y.element[j]), modulus);                   \
                PUT(out, space, span, i, x);                                                      \
            }                                                                                     \
    }
ELEMENTWISE_OPERATIONS(MODULAR)

/* out = second(first(a, b), c), where what is between has ELEMENT's range. Two bits of sources for
 * each of a, b and c tell what it is: 0 what out holds, 1 x, 2 y. Operands: out, x, y, p. */
FEW_TOGETHER KERNEL chain_table(SPACE(space), global ELEMENT *out, global const ELEMENT *x,
                   global const ELEMENT *y, TABLE_PARAMETER, uint sources, long first, long second)
{
    TAKE_SPACE(space);
    uint a = sources & 3, b = sources >> 2 & 3, c = sources >> 4;
    bool reads_out = a == 0 || b == 0 || c == 0, reads_y = a == 2 || b == 2 || c == 2;
    EACH_ELEMENT(space, span, i) {
        struct modulus modulus = TABLE_AT(POSITION(space, span, 3, i));
        long own = reads_out ? WIDEN(AT(out, POSITION(space, span, 0, i))) : 0;
        long x_value = WIDEN(AT(x, POSITION(space, span, 1, i)));
        long y_value = reads_y ? WIDEN(AT(y, POSITION(space, span, 2, i))) : 0;
        long between = compute(first, a == 0 ? own : a == 1 ? x_value : y_value,
                               b == 0 ? own : b == 1 ? x_value : y_value, modulus);
        AT(out, POSITION(space, span, 0, i)) = (ELEMENT)compute(
            second, (ELEMENT)between, c == 0 ? own : c == 1 ? x_value : y_value, modulus);
    }
}

#if defined AXES && !defined SINGLE
/* Where element i of a span has its modulus in the table. In a space of one axis each is that of
 * `repeats` elements, and after `moduli` of them the first one comes again; by_repeats and by_moduli
 * are reciprocals as those in struct space. */
#if AXES == 1
static inline uint modulus_place(uint i, uint first, uint repeats, uint by_repeats, uint moduli,
                                 uint by_moduli)
{
    uint group = mul_hi(i, by_repeats); /* may be 1 too small, and so may the next quotient */
    group += i - group * repeats >= repeats;
    uint rest = group - mul_hi(group, by_moduli) * moduli;
    return first + min(rest, rest - moduli);
}
#define MODULUS_PLACE(i) \
    modulus_place((span.linear + (i)) * WIDTH, first, repeats, by_repeats, moduli, by_moduli)
#else
#define MODULUS_PLACE(i) POSITION(space, span, 3, i)
#endif

/* Operands: out, a, b, which is there where the operation has two, and p where there are several
 * axes. */
#define RESIDUES(KIND, name, operands)                                                                         \
    KERNEL name##_residues(SPACE(space), global ELEMENT *out, global const ELEMENT *a,       \
                           global const ELEMENT *b, TABLE_PARAMETER, uint first,              \
                           uint repeats, uint by_repeats, uint moduli, uint by_moduli)         \
    {                                                                                          \
        TAKE_SPACE(space);                                                                     \
        for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) \
            for (count_t i = 0; i < span.length; i++) {                                        \
                union elements x = TAKE(a, space, span, 1, i), y = SECOND_##operands;                        \
                struct modulus modulus = TABLE_AT(MODULUS_PLACE(i));                           \
                EACH_OF_WIDTH(j)                                                               \
                    x.element[j] = (ELEMENT)residues_##name(WIDEN(x.element[j]),               \
                                                            WIDEN(y.element[j]), modulus);     \
                PUT(out, space, span, i, x);                                                   \
            }                                                                                  \
    }

#define SECOND_1 NO_ELEMENTS
#define SECOND_2 TAKE(b, space, span, 2, i)
ELEMENTWISE_OPERATIONS(RESIDUES)
#endif /* AXES */

/* out = a*b, C remainder by q, for one b of magnitude w modulo q. Operands: out, a. */
KERNEL modmul_constant(SPACE(space), global ELEMENT *out, global const ELEMENT *a, ulong factor,
                       ulong quotient, ulong q, long b)
{
    TAKE_SPACE(space);
    struct twiddle w = {factor, quotient};
    EACH_ELEMENT(space, span, i) {
        union elements x = TAKE(a, space, span, 1, i);
        EACH_OF_WIDTH(j)
        {
            long value = WIDEN(x.element[j]);
            x.element[j] = (ELEMENT)with_sign(multiply_twiddle(magnitude(value), w, q),
                                              (value ^ b) < 0);
        }
        PUT(out, space, span, i, x);
    }
}

/* out = |a|; the smallest value wraps. Operands: out, a. */
KERNEL absolute(SPACE(space), global ELEMENT *out, global const ELEMENT *a)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        union elements x = TAKE(a, space, span, 1, i);
        EACH_OF_WIDTH(j)
            x.element[j] = (ELEMENT)magnitude(WIDEN(x.element[j]));
        PUT(out, space, span, i, x);
    }
}
