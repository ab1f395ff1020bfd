/* Inverses of moduli modulo each other. */

/* table[i*k + j], i < j: q[i]^-1 mod q[j]. Reports i*k + j if no inverse exists. The space is
 * [k,k]. Uses the extended Euclidean algorithm with coefficients modulo q[j]. */
KERNEL crt_inverses(SPACE(space), global const struct modulus *q, uint k,
                    global struct twiddle *table, volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        ulong row = (span.linear + i) / k, column = (span.linear + i) % k;
        if (row >= column)
            continue;
        struct modulus modulus = q[column];
        ulong old_rest = modulus.value, rest = reduce(q[row].value, modulus);
        ulong old_factor = 0, factor = 1 % modulus.value;
        while (rest != 0) {
            ulong quotient = old_rest / rest;
            ulong next_rest = old_rest - quotient * rest;
            ulong product = multiply_mod(reduce(quotient, modulus), factor, modulus);
            ulong next_factor = subtract_mod(old_factor, product, modulus.value);
            old_rest = rest;
            rest = next_rest;
            old_factor = factor;
            factor = next_factor;
        }
        if (old_rest != 1)
            report(status, space.key, span.linear + i);
        table[span.linear + i] = make_twiddle(old_factor, modulus);
    }
}
