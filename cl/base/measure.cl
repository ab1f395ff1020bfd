/* Kernels that `healcl devices --measure` times. */
#include "caches.cl"

/* rounds * 8 products of 64-bit integers in each work-item, with both halves of each product. */
KERNEL multiply(global ulong *out, uint rounds)
{
    ulong8 x = (ulong8)(1, 2, 3, 4, 5, 6, 7, 8) + (ulong)get_global_id(0);
    const ulong8 factor = (ulong8)(0x9e3779b97f4a7c15UL) + x;
    for (uint i = 0; i < rounds; i++)
        x = x * factor + mul_hi(x, factor);
    ulong4 half_sum = x.lo + x.hi;
    out[get_global_id(0)] = half_sum.x + half_sum.y + half_sum.z + half_sum.w;
}

/* The same number of products modulo an odd q below 2^60, as in butterflies: by a factor and a
 * quotient, with results in [0, 2q). The eight products do not depend on each other. */
KERNEL multiply_lazily(global ulong *out, uint rounds)
{
    const ulong8 q = 0x0ffffffffffc0001UL - 2 * (ulong)rounds;
    const ulong8 factor = q / 3 - (ulong)get_global_id(0), quotient = factor << 4;
    ulong8 x = (ulong8)(1, 2, 3, 4, 5, 6, 7, 8) + (ulong)get_global_id(0);
    for (uint i = 0; i < rounds; i++)
        x = x * factor - mul_hi(x, quotient) * q;
    ulong4 half_sum = x.lo + x.hi;
    out[get_global_id(0)] = half_sum.x + half_sum.y + half_sum.z + half_sum.w;
}

/* Copies per_item elements in each work-item, and count elements in total. It stores whole lines as
 * the fastest copies do, but without FENCE_PAST: the elements are not read. per_item: below LANES,
 * or a multiple of it. */
KERNEL copy(global ulong *to, global const ulong *from, ulong count, uint per_item)
{
    ulong i = (ulong)get_global_id(0) * per_item;
    ulong end = min(i + per_item, count);
    for (; i + LANES <= end; i += LANES)
        STORE_PAST(ulong8, *(global const ulong8 *)(from + i), to + i);
    for (; i < end; i++)
        to[i] = from[i];
}

/* Writes per_item elements in each work-item, and count elements in total. */
KERNEL write(global ulong *to, ulong count, uint per_item)
{
    ulong i = (ulong)get_global_id(0) * per_item;
    for (ulong end = min(i + per_item, count); i < end; i++)
        to[i] = i;
}
