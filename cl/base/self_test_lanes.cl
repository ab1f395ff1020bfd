/*
 * The self-test of vectors: results of divisor.cl and lanes.cl with the selected -D MULTIPLY, and
 * hints to the caches (src/opencl/self_test.c).
 */
#include "caches.cl"
#include "lanes.cl"
#include "divisor.cl"

/* A case is eight values of a, eight of b, and q. Answers are vectors, ANSWERS for each case. */
KERNEL self_test_lanes(global const ulong *cases, global ulong *answers)
{
    size_t i = get_global_id(0);
    global const ulong *operands = cases + (2 * LANES + 1) * i;
    ulong8 a = vload8(0, operands), b = lane_magnitude(as_long8(vload8(1, operands)));
    ulong q = operands[2 * LANES];
    struct modulus modulus = make_modulus(q);
    struct lane_divisor p = make_divisor(modulus);
    struct lane_modulus m = {p.q, p.q << 1};
    struct twiddle w = make_twiddle(reduce(a.s0, modulus), modulus);
    ulong8 reduced = lane_reduce(a, p);
    global ulong *next = answers + ANSWERS * LANES * i;
    PREFETCH(next + AHEAD_BYTES / sizeof *next);
    vstore8(p.inverse, 0, next);
    vstore8(lane_shrink(a, p), 1, next);
    vstore8(reduced, 2, next);
    vstore8(lane_multiply(lane_shrink(a, p), lane_factor(b, p), p), 3, next);
    vstore8(lane_append(reduced, 32, b, p), 4, next);
    STORE_PAST(ulong8, q >> 62 ? 0 : multiply_lazy(a, w.factor, w.quotient, m), next + 5 * LANES);
    FENCE_PAST();
}
