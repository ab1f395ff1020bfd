/*
 * A forward transform of rows [l,r,k,n], a work-item for each, in place of the built-in kernels.
 * Each tensor comes as its memory, the place of its first element, and a stride for each axis.
 */
KERNEL vendor_ntt(global TYPE_out *out, long out_at, long out_l, long out_r, long out_k, long out_n,
                  global const TYPE_a *a, long a_at, long a_l, long a_r, long a_k, long a_n,
                  global const TYPE_q *q, long q_at, long q_k, global const TYPE_psi *psi,
                  long psi_at, long psi_k, long psi_n)
{
    local ulong x[N];
    long row = get_group_id(0), j = row % K, r = row / K % R, l = row / K / R;
    struct modulus m = make_modulus((ulong)q[q_at + j * q_k]);
    a += a_at + l * a_l + r * a_r + j * a_k;
    out += out_at + l * out_l + r * out_r + j * out_k;
    psi += psi_at + j * psi_k;
    for (uint u = 0; u < N; u++)
        x[u] = residue_of(a[u * a_n], m);
    for (uint blocks = 1; blocks < N; blocks *= 2) {
        uint half_size = N / (2 * blocks);
        for (uint b = 0; b < blocks; b++) {
            struct twiddle w = make_twiddle(residue_of(psi[(blocks + b) * psi_n], m), m);
            local ulong *low = x + 2 * b * half_size, *high = low + half_size;
            for (uint u = 0; u < half_size; u++) {
                ulong y = multiply_twiddle(high[u], w, m.value);
                high[u] = subtract_mod(low[u], y, m.value);
                low[u] = add_mod(low[u], y, m.value);
            }
        }
    }
    for (uint u = 0; u < N; u++)
        out[u * out_n] = (TYPE_out)x[u];
}
