/* Elementwise modular operations on residues in [0, p). */
#include "../base/wide.cl"
#include "../modular/compute.cl"

#if defined AXES && !defined SINGLE
/* The position of a modulus in the table, for element i of a span. In a space of one axis each
 * modulus is used for `repeats` elements, and after `moduli` moduli the first one returns.
 * by_repeats and by_moduli are reciprocals as in struct space. */
#if AXES == 1
static inline uint modulus_place(uint i, uint first, uint repeats, uint by_repeats, uint moduli,
                                 uint by_moduli)
{
    uint group = mul_hi(i, by_repeats); /* may be 1 too small, as may the next quotient */
    group += i - group * repeats >= repeats;
    uint rest = group - mul_hi(group, by_moduli) * moduli;
    return first + min(rest, rest - moduli);
}
#define MODULUS_PLACE(i) \
    modulus_place((span.linear + (i)) * WIDTH, first, repeats, by_repeats, moduli, by_moduli)
#else
#define MODULUS_PLACE(i) POSITION(space, span, 3, i)
#endif

/* Operands: out, a, b if the operation has two operands, and p if the space has several axes. */
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
