/* Two elementwise modular operations in sequence. */
#include "../base/wide.cl"
#include "../modular/compute.cl"

/* out = second(first(a, b), c), with the intermediate value in ELEMENT's range. Two bits of sources
 * for each of a, b and c name it: 0 the contents of out, 1 x, 2 y. Operands: out, x, y, p. */
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
            second, WIDEN((ELEMENT)between), c == 0 ? own : c == 1 ? x_value : y_value, modulus);
    }
}
