/* Copies, fills and absolute values. */
#include "../base/wide.cl"

/* Operands: out, in. */
KERNEL copy(SPACE(space), global ELEMENT *out, global const ELEMENT *in)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i)
        PUT(out, space, span, i, TAKE(in, space, span, 1, i));
}

/* Operand: out. */
KERNEL fill(SPACE(space), global ELEMENT *out, long value)
{
    TAKE_SPACE(space);
    union elements x;
    EACH_OF_WIDTH(j)
        x.element[j] = (ELEMENT)value;
    EACH_ELEMENT(space, span, i)
        PUT(out, space, span, i, x);
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
