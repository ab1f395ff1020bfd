/* Checks and tables that are derived once from a tensor, and kept until it is written. In every
 * space operand 0 is the tensor. */
#include "../base/report.cl"

/* Reports elements outside [first, size). */
KERNEL check_indices(SPACE(space), global const ELEMENT *in, long first, long size,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value < first || value >= size)
            report_value(status, &space, in, 1, span.linear + i);
    }
}

/* table[i] = the constants of modulus i. Reports elements below 1, which then count as 1. */
KERNEL moduli(SPACE(space), global const ELEMENT *in, global struct modulus *table,
              volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value < 1)
            report_value(status, &space, in, 1, span.linear + i);
        table[span.linear + i] = make_modulus((ulong)max(value, 1L));
    }
}

/* The lowest bits of i in reversed order, for n = 2^bits. */
static inline uint reverse_bits(uint i, ulong n)
{
    uint reversed = 0;
    for (ulong m = n; m > 1; m /= 2, i /= 2)
        reversed = reversed << 1 | (i & 1);
    return reversed;
}

/* table[i] = perm[i], inverse[perm[i]] = i; the space is [n], n at most 2^31. Both tables end with
 * bits PERMUTATION_..., which are set only if they describe the permutation. Both must be as
 * transform_tables leaves them. The array first[v] follows inverse, and becomes the smallest i with
 * perm[i] = v. Reports repeated values, and values outside the axis. The latter count as i: users
 * of the table then stay inside. */
KERNEL permutation(SPACE(space), global const ELEMENT *in, volatile global uint *table,
                   volatile global uint *inverse, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint n = (uint)space.end;
    volatile global uint *first = inverse + n + 1;
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        uint place = (uint)(span.linear + i), earlier = UINT_MAX;
        bool inside = value >= 0 && value < (long)n;
        if (inside) {
            earlier = atomic_min(&first[value], place);
            inverse[value] = place;
        }
        table[place] = inside ? (uint)value : place;
        /* The second element with this value finds the first one, or is found by it. */
        if (!inside || earlier != UINT_MAX)
            report_value(status, &space, in, 1, inside ? max(place, earlier) : place);
        uint kinds = value == place ? PERMUTATION_IDENTITY : 0;
        if ((n & (n - 1)) == 0 && value == reverse_bits(place, n))
            kinds |= PERMUTATION_REVERSES_BITS;
        if (table[n] & ~kinds) {
            atomic_and(&table[n], kinds);
            atomic_and(&inverse[n], kinds);
        }
    }
}
