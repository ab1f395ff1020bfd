/*
 * Products and sums in which one operand, b, and the moduli are constant along an axis, for GPUs. A
 * work-item processes several elements along this axis. It keeps b, the modulus and Shoup's
 * quotient of both in registers. The axis is the first one of the space, divided by the number of
 * these elements. From one of them to the next, the element's number grows by the size of the
 * space.
 */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "compute.cl"

/* a*b, C remainder by p; w is b's twiddle. */
static inline long multiply_repeated(long a, long b, struct twiddle w, struct modulus p)
{
    return with_sign(multiply_twiddle(magnitude(a), w, p.value), (a ^ b) < 0);
}

/* out = operation of each element of a with an element of b, which is constant along an axis. If
 * is_scalar is not 0, b is the scalar b_scalar. Operands: out, a, b, p. */
#define REPEATED(name, has_twiddle, operation)                                                      \
    KERNEL name(SPACE(space), global ELEMENT *out, global const ELEMENT *a,                    \
                global const ELEMENT *b, TABLE_PARAMETER, uint elements, long out_step,         \
                long a_step, uint is_scalar, long b_scalar)                                      \
    {                                                                                            \
        TAKE_SPACE(space);                                                                       \
        EACH_ELEMENT(space, span, i) { \
                place_t out_at = POSITION(space, span, 0, i), a_at = POSITION(space, span, 1, i); \
                struct modulus modulus = TABLE_AT(POSITION(space, span, 3, i));                  \
                long b_value = is_scalar ? b_scalar : WIDEN(AT(b, POSITION(space, span, 2, i))); \
                struct twiddle w = {0, 0};                                                       \
                if (has_twiddle)                                                                 \
                    w = make_twiddle(reduce(magnitude(b_value), modulus), modulus);              \
                for (uint element = (uint)(span.linear + i); element < elements;                 \
                     element += (uint)space.end) {                                               \
                    long value = WIDEN(AT(a, a_at));                                             \
                    AT(out, out_at) = (ELEMENT)(operation);                                      \
                    a_at += (place_t)a_step;                                                     \
                    out_at += (place_t)out_step;                                                 \
                }                                                                                \
            }                                                                                    \
    }

#define REPEATED_1(KIND, name)
#define REPEATED_2(KIND, name)                                                                 \
    REPEATED(name##_repeated, KIND == MODMUL,                                                  \
             KIND == MODMUL ? multiply_repeated(value, b_value, w, modulus)                    \
                            : compute_##name(value, b_value, modulus))                         \
    REPEATED(name##_repeated_residues, false, residues_##name(value, b_value, modulus))
#define REPEATED_OPERATION(KIND, name, operands) REPEATED_##operands(KIND, name)
ELEMENTWISE_OPERATIONS(REPEATED_OPERATION)
