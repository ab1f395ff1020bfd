/*
 * A key switch in one launch: a work-item for each modulus. Digits of a are transformed and
 * multiplied with the key in memory of its own, where the operations of HEAL would write and read
 * them all. cl/base/arithmetic.h stands in front of this file: struct modulus, make_twiddle and
 * others, which are exact for every modulus below 2^63.
 */

/* out[j] = sum over i of ntt(digit i of a modulo q[j]) * key[i, j], modulo q[j] */
KERNEL key_switch(global long *out, long out_at, global const long *a, long a_at,
                  global const long *key, long key_at, global const long *q, long q_at,
                  global const long *psi, long psi_at)
{
    local ulong x[N];
    local struct twiddle twiddles[N];
    const ulong mask = (1UL << BASE_BITS) - 1;
    uint j = get_group_id(0);
    struct modulus m = make_modulus((ulong)q[q_at + j]);
    out += out_at + (long)j * N;
    psi += psi_at + (long)j * N;
    for (uint u = 0; u < N; u++) {
        twiddles[u] = make_twiddle(residue_of(psi[u], m), m);
        out[u] = 0;
    }
    for (uint i = 0; i < G; i++) {
        uint shift = i * BASE_BITS;
        for (uint u = 0; u < N; u++)
            x[u] = reduce(shift < 64 ? ((ulong)a[a_at + u] >> shift) & mask : 0, m);
        for (uint blocks = 1; blocks < N; blocks *= 2) {
            uint half_size = N / (2 * blocks);
            for (uint b = 0; b < blocks; b++) {
                local ulong *low = x + 2 * b * half_size, *high = low + half_size;
                for (uint u = 0; u < half_size; u++) {
                    ulong y = multiply_twiddle(high[u], twiddles[blocks + b], m.value);
                    high[u] = subtract_mod(low[u], y, m.value);
                    low[u] = add_mod(low[u], y, m.value);
                }
            }
        }
        global const long *row = key + key_at + ((long)i * K + j) * N;
        for (uint u = 0; u < N; u++) {
            ulong product = multiply_mod(x[u], residue_of(row[u], m), m);
            out[u] = (long)add_mod((ulong)out[u], product, m.value);
        }
    }
}
