/* Products by a constant. */
#include "../base/wide.cl"
#include "../modular/compute.cl"

/* out = a*b, C remainder by q, for one b. factor and quotient are the twiddle of its magnitude
 * modulo q. Operands: out, a. */
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
