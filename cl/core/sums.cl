/* Sums modulo q. */
#include "../base/wide.cl"

/* out = sum of a over count elements, stride apart, mod q. If add is not 0, out is added too.
 * Operands: out, a, q. */
KERNEL axis_modsum(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                   global const struct modulus *q, long count, long stride, uint add)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        place_t at = POSITION(space, span, 1, i), out_at = POSITION(space, span, 0, i);
        struct wide sum = wide_zero();
        if (add)
            sum = wide_add(sum, WIDEN(AT(out, out_at)));
        for (long j = 0; j < count; j++, at += (place_t)stride)
            sum = wide_add(sum, WIDEN(AT(a, at)));
        AT(out, out_at) = (ELEMENT)wide_reduce(sum, q[POSITION(space, span, 2, i)]);
    }
}

/*
 * out[r,j,m] += sum over i of a[r,i,j,l]*b[r,i,j,m], mod q[j]. m is perm[l], or l without
 * PRODUCTS_PERMUTED in flags. Without PRODUCTS_ADDED out counts as 0. The space is [reps,k,n] with
 * l last; operands: out, a, b, q. The strides of out and b along n are separate arguments: they
 * belong to m.
 */
KERNEL modmul_axis_sum(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                       global const ELEMENT *b, global const struct modulus *q,
                       global const uint *perm, uint flags, long count, long a_stride,
                       long b_stride, long out_n_stride, long b_n_stride)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        count_t l = span.index[RANK(space) - 1] + i, m = flags & PRODUCTS_PERMUTED ? perm[l] : l;
        place_t out_at = POSITION(space, span, 0, i) + (place_t)m * (place_t)out_n_stride;
        place_t a_at = POSITION(space, span, 1, i);
        place_t b_at = POSITION(space, span, 2, i) + (place_t)m * (place_t)b_n_stride;
        struct wide sum = wide_zero();
        if (flags & PRODUCTS_ADDED)
            sum = wide_add(sum, WIDEN(AT(out, out_at)));
        for (long j = 0; j < count; j++, a_at += (place_t)a_stride, b_at += (place_t)b_stride)
            sum = wide_add_product(sum, WIDEN(AT(a, a_at)), WIDEN(AT(b, b_at)));
        AT(out, out_at) = (ELEMENT)wide_reduce(sum, q[POSITION(space, span, 3, i)]);
    }
}
