/*
 * Negacyclic transforms for FPGAs: one work-item, and loops of fixed bounds that become pipelines.
 * A row is kept in the kernel's own memory. One loop loads it, log2(N) iterations run a loop of N/2
 * butterflies, and one loop stores it. Arithmetic is exact for every q in [1, 2^63). There is no
 * separate code for large q: an unused circuit costs as much as a used one.
 *
 *   LOG2_N         a row has N = 2^LOG2_N elements, at least 2
 *   UNROLL_FACTOR  butterflies, and elements loaded or stored, in one iteration of a loop
 */
#if !defined(LOG2_N) || LOG2_N < 1 || LOCAL_SIZE != 1 || !defined(IN) || !defined(OUT)
#error "LOG2_N, IN or OUT is not given, LOG2_N is 0, or LOCAL_SIZE is not 1"
#endif

#include "tensor_rows.cl"

#define N (1u << LOG2_N)
#ifndef UNROLL_FACTOR
#define UNROLL_FACTOR 2
#endif
#define PRAGMA(text) _Pragma(#text)
/* The iterations of the next loop access different elements: none has to wait for the one
 * before. */
#define INDEPENDENT(unrolled) PRAGMA(ivdep) PRAGMA(unroll unrolled)

/*
 * Transforms the rows [0, rows) in sequence. The space is [l,r,k,N]; operands: out, in. q [k];
 * twiddles [k,N]: psi, or ipsi for the inverse; perm [N], or NULL if not used; n_inv [k]: NULL for
 * the forward transform. x: memory for a row.
 */
static inline void transform_single(local ulong *x, const struct space *space, uint rows,
                                    global OUT *out, global const IN *in,
                                    global const struct modulus *q,
                                    global const struct twiddle *twiddles,
                                    global const uint *perm, global const struct twiddle *n_inv)
{
    for (uint row = 0; row < rows; row++) {
        uint j = row % (uint)space->shape[2];
        struct modulus modulus = q[j];
        global const struct twiddle *row_twiddles = twiddles + (ulong)j * N;
        struct row from = row_of(space, 1, row), to = row_of(space, 0, row);

        INDEPENDENT(UNROLL_FACTOR)
        for (uint u = 0; u < N; u++)
            x[n_inv && perm ? perm[u] : u] =
                residue_of(WIDEN(AT(in, from.position + (long)u * from.stride)), modulus);

        for (uint i = 0; i < LOG2_N; i++) {
            uint stage = n_inv ? LOG2_N - 1 - i : i;
            uint m = 1u << stage, log2_half_size = LOG2_N - 1 - stage;
            INDEPENDENT(UNROLL_FACTOR)
            for (uint butterfly = 0; butterfly < N / 2; butterfly++) {
                uint block = butterfly >> log2_half_size;
                uint low = butterfly + (block << log2_half_size);
                uint high = low + (1u << log2_half_size);
                struct twiddle w = row_twiddles[m + block];
                ulong a = x[low], b = x[high];
                if (!n_inv)
                    b = multiply_twiddle(b, w, modulus.value);
                ulong difference = subtract_mod(a, b, modulus.value);
                x[low] = add_mod(a, b, modulus.value);
                x[high] = n_inv ? multiply_twiddle(difference, w, modulus.value) : difference;
            }
        }

        INDEPENDENT(UNROLL_FACTOR)
        for (uint u = 0; u < N; u++)
            AT(out, to.position + (long)u * to.stride) =
                (OUT)(n_inv ? multiply_scale(x[u], n_inv[j], modulus.value)
                            : (long)x[perm ? perm[u] : u]);
    }
}

/* Element u of a row of out = transform of in at u, or with use_perm at perm[u]. */
KERNEL ntt_single(SPACE(space), uint rows, global OUT *out, global const IN *in,
                  global const struct modulus *q, global const struct twiddle *twiddles,
                  global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    local ulong x[N];
    transform_single(x, &space, rows, out, in, q, twiddles, use_perm ? perm : 0, 0);
}

/* A row of out = inverse transform of a row, times n_inv [k]. If use_perm is not 0, in's element u
 * is element perm[u] of this row. */
KERNEL intt_single(SPACE(space), uint rows, global OUT *out, global const IN *in,
                   global const struct modulus *q, global const struct twiddle *twiddles,
                   global const uint *perm, uint use_perm, global const struct twiddle *n_inv)
{
    TAKE_SPACE(space);
    local ulong x[N];
    transform_single(x, &space, rows, out, in, q, twiddles, use_perm ? perm : 0, n_inv);
}
