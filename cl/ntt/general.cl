/*
 * Negacyclic number-theoretic transforms of any length and layout. A work-group loads a row into
 * scratch memory, transforms it in place and stores it. A row is one polynomial for one modulus.
 * All residues are in [0, q) for every q in [1, 2^63).
 */
#include "../base/wide.cl"
#include "stages.cl"
#include "tensor_rows.cl"

#if LOCAL_SIZE == 1
/* x*w mod q in each lane, as in multiply_twiddle. */
static inline ulong8 lanes_times_twiddle(ulong8 x, struct twiddle w, ulong8 q)
{
    const ulong mask = 0xffffffffUL;
    ulong8 x_high = x >> 32, x_low = x & mask;
    ulong8 middle = x_high * (w.quotient & mask) + (x_low * (w.quotient & mask) >> 32);
    ulong8 other = x_low * (w.quotient >> 32) + (middle & mask);
    ulong8 quotient = x_high * (w.quotient >> 32) + (middle >> 32) + (other >> 32);
    ulong8 rest = x * w.factor - quotient * q; /* in [0, 2q) */
    CHECK_LANES_BELOW(rest, 2 * q);
    return min(rest, rest - q);
}

/* The stages of stages.cl for eight rows of one modulus at once. Each lane has a row. */
static inline void lanes_forward(ulong8 *x, uint n, ulong8 q, global const struct twiddle *twiddles)
{
    for (uint m = 1, half_size = n / 2; m < n; m *= 2, half_size /= 2)
        for (uint block = 0; block < m; block++) {
            struct twiddle w = twiddles[m + block];
            for (uint i = 0; i < half_size; i++) {
                ulong8 *low = x + 2 * half_size * block + i, *high = low + half_size;
                ulong8 a = *low, b = lanes_times_twiddle(*high, w, q);
                ulong8 sum = a + b, difference = a - b;
                *low = min(sum, sum - q);
                *high = min(difference, difference + q);
            }
        }
}

static inline void lanes_inverse(ulong8 *x, uint n, ulong8 q, global const struct twiddle *twiddles)
{
    for (uint m = n / 2, half_size = 1; m > 0; m /= 2, half_size *= 2)
        for (uint block = 0; block < m; block++) {
            struct twiddle w = twiddles[m + block];
            for (uint i = 0; i < half_size; i++) {
                ulong8 *low = x + 2 * half_size * block + i, *high = low + half_size;
                ulong8 a = *low, b = *high;
                ulong8 sum = a + b, difference = a - b;
                *low = min(sum, sum - q);
                *high = lanes_times_twiddle(min(difference, difference + q), w, q);
            }
        }
}

/* The whole transform of the rows number, number + k, ... of one modulus, n < NTT_ROW_MIN. n_inv:
 * that of the modulus; NULL for the forward transform. Operands of the space: out, in. */
static inline void transform_lanes(const struct space *space, uint number, global ELEMENT *out,
                                   global const char *in, uint size, struct modulus modulus,
                                   global const struct twiddle *twiddles, global const uint *perm,
                                   global const struct twiddle *n_inv)
{
    ulong8 x[NTT_ROW_MIN / 2];
    uint n = (uint)space->shape[3], k = (uint)space->shape[2];
    for (uint lane = 0; lane < LANES; lane++) {
        struct row from = row_of(space, 1, number + lane * k);
        ulong *to = (ulong *)x + lane;
        for (uint u = 0; u < n; u++) {
            long value = load_number(&AT(in, (from.position + u * from.stride) * size), size);
            to[LANES * (n_inv && perm ? perm[u] : u)] = residue_of(value, modulus);
        }
    }
    if (n_inv)
        lanes_inverse(x, n, modulus.value, twiddles);
    else
        lanes_forward(x, n, modulus.value, twiddles);
    for (uint lane = 0; lane < LANES; lane++) {
        struct row to = row_of(space, 0, number + lane * k);
        const ulong *from = (const ulong *)x + lane;
        for (uint u = 0; u < n; u++) {
            ulong value = from[LANES * (!n_inv && perm ? perm[u] : u)];
            if (n_inv)
                value = (ulong)multiply_scale(value, *n_inv, modulus.value);
            AT(out, to.position + u * to.stride) = (ELEMENT)value;
        }
    }
}

#endif

/* The whole transform of the rows of each work-group. It has elements_per_item elements, which are
 * whole rows. rows: scratch memory for all rows from space.first on. n_inv [k]: NULL for the
 * forward transform. perm: NULL if not used. The space is [l,r,k,n]; operands: out, in. The
 * elements of in have `size` bytes. Their type is not compiled in: a transform of int8 would then
 * need another program. */
static inline void transform_rows(const struct space *space, global ulong *rows,
                                  global ELEMENT *out, global const char *in, uint size,
                                  global const struct modulus *q,
                                  global const struct twiddle *twiddles, global const uint *perm,
                                  global const struct twiddle *n_inv)
{
    ulong n = space->shape[3], first = space->first / n, per_group = space->elements_per_item / n;
    ulong row = first + get_group_id(0) * per_group, end = min(row + per_group, space->end / n);
    uint k = (uint)space->shape[2];
#if LOCAL_SIZE == 1
    for (; n < NTT_ROW_MIN && row < end && end - row >= (ulong)LANES * k; row += (ulong)LANES * k)
        for (uint i = 0; i < k; i++) {
            uint j = ((uint)row + i) % k;
            transform_lanes(space, (uint)row + i, out, in, size, q[j], twiddles + j * n, perm,
                            n_inv ? n_inv + j : 0);
        }
#endif
    for (; row < end; row++) {
        uint j = (uint)(row % k);
        struct row from = row_of(space, 1, (uint)row), to = row_of(space, 0, (uint)row);
        struct modulus modulus = q[j];
        global ulong *x = rows + (row - first) * n;
        for (ulong u = get_local_id(0); u < n; u += LOCAL_SIZE) {
            long value = load_number(&AT(in, (from.position + u * from.stride) * size), size);
            x[n_inv && perm ? perm[u] : u] = residue_of(value, modulus);
        }
        ROW_BARRIER();
        if (!n_inv) {
            ntt_row(x, n, modulus.value, twiddles + j * n);
        } else {
            intt_row(x, n, modulus.value, twiddles + j * n);
        }
        for (ulong u = get_local_id(0); u < n; u += LOCAL_SIZE) {
            ulong value = x[!n_inv && perm ? perm[u] : u];
            if (n_inv)
                value = (ulong)multiply_scale(value, n_inv[j], modulus.value);
            AT(out, to.position + u * to.stride) = (ELEMENT)value;
        }
    }
}

KERNEL ntt_stages(SPACE(space), global ulong *rows, global ELEMENT *out, global const char *in,
                  uint size, global const struct modulus *q, global const struct twiddle *twiddles,
                  global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    transform_rows(&space, rows, out, in, size, q, twiddles, use_perm ? perm : 0, 0);
}

KERNEL intt_stages(SPACE(space), global ulong *rows, global ELEMENT *out, global const char *in,
                   uint size, global const struct modulus *q, global const struct twiddle *twiddles,
                   global const uint *perm, uint use_perm, global const struct twiddle *n_inv)
{
    TAKE_SPACE(space);
    transform_rows(&space, rows, out, in, size, q, twiddles, use_perm ? perm : 0, n_inv);
}
