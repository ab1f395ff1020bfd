/*
 * Elementwise modular operations: out = compute_NAME(a, b, p) in a kernel NAME_table, with p a
 * checked table. A scalar a or b is passed by value: scalars has bit 0 set for a, bit 1 for b.
 */

#include "../base/wide.cl"
#include "../modular/compute.cl"

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
