/* One row of residues, transformed in place, stage by stage, by LOCAL_SIZE work-items together.
 * Works for every n and every q in [1, 2^63). Residues are in [0, q) before and after. The
 * butterflies are those of P. Longa and M. Naehrig, "Speeding up the number theoretic transform for
 * faster ideal lattice-based cryptography", 2016, algorithms 1 and 2. */

#if LOCAL_SIZE > 1
#define ROW_BARRIER() barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define ROW_BARRIER()
#endif

/* Cooley-Tukey: natural order in, bit-reversed order out. twiddles: psi [n]. */
static inline void ntt_row(global ulong *x, ulong n, ulong q, global const struct twiddle *twiddles)
{
    uint bits = 62 - (uint)clz(n); /* half_size is 2^bits; for n = 1, without stages, any value */
    for (ulong m = 1, half_size = n / 2; m < n; m *= 2, half_size /= 2, bits--) {
        for (ulong butterfly = get_local_id(0); butterfly < n / 2; butterfly += LOCAL_SIZE) {
            ulong block = butterfly >> bits;
            ulong low = butterfly + (block << bits);
            ulong a = x[low], b = multiply_twiddle(x[low + half_size], twiddles[m + block], q);
            x[low] = add_mod(a, b, q);
            x[low + half_size] = subtract_mod(a, b, q);
        }
        ROW_BARRIER();
    }
}

/* Gentleman-Sande: bit-reversed order in, natural order out, without the division by n. twiddles:
 * ipsi [n]. */
static inline void intt_row(global ulong *x, ulong n, ulong q,
                            global const struct twiddle *twiddles)
{
    uint bits = 0; /* half_size is 2^bits */
    for (ulong m = n / 2, half_size = 1; m > 0; m /= 2, half_size *= 2, bits++) {
        for (ulong butterfly = get_local_id(0); butterfly < n / 2; butterfly += LOCAL_SIZE) {
            ulong block = butterfly >> bits;
            ulong low = butterfly + (block << bits);
            ulong a = x[low], b = x[low + half_size];
            x[low] = add_mod(a, b, q);
            x[low + half_size] = multiply_twiddle(subtract_mod(a, b, q), twiddles[m + block], q);
        }
        ROW_BARRIER();
    }
}
