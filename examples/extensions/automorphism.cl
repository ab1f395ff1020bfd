/*
 * A Galois automorphism in one launch: a gather, a product with the sign and a reduction, where the
 * operations of HEAL write and read the moved coefficients. SHARE work-items do a row of N
 * coefficients. cl/base/arithmetic.h stands in front of this file.
 *
 * Nothing checks indices for a vendor's kernel: so they are taken modulo N, and no index, however
 * wrong, leads out of a. Those from -N count from the end, as take_along_axis has it.
 */
KERNEL automorphism(global long *out, long out_at, global const long *a, long a_at,
                    global const long *index, long index_at, global const long *sign, long sign_at,
                    global const long *q, long q_at)
{
    uint row = get_group_id(0) / SHARE, part = get_group_id(0) % SHARE;
    struct modulus m = make_modulus((ulong)q[q_at + row]);
    out += out_at + (long)row * N;
    a += a_at + (long)row * N;
    for (uint i = part; i < N; i += SHARE) {
        long place = index[index_at + i] % N;
        place += place < 0 ? N : 0;
        out[i] = (long)multiply_mod(residue_of(a[place], m), residue_of(sign[sign_at + i], m), m);
    }
}
