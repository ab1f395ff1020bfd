/*
 * Gadget digits, least significant first, base 2^base_bits. A, OUT: types of the tensors.
 * A_UNSIGNED: the unsigned type as wide as A. LIMBS: the number k of moduli, for full_q.
 */
#if !defined(A) || !defined(A_UNSIGNED) || !defined(OUT)
#error "A, A_UNSIGNED and OUT must be given"
#endif

/* Counts values with digits that were dropped. */
static inline void count_dropped(volatile global struct status *status, uint dropped)
{
    if (dropped == 0)
        return;
    uint before = atomic_add(&status->dropped_low, dropped);
    if (before + dropped < before)
        atomic_inc(&status->dropped_high);
}

static inline ulong low_bits(ulong x, long bits)
{
    return bits >= 64 ? x : x & (((ulong)1 << bits) - 1);
}

/* out[..., i] = digit i of a, for count digits out_stride apart. Operands: out, a. */
KERNEL digits(struct space space, BUFFER(OUT, out), BUFFER(const A, a), long base_bits, long count,
              long out_stride, volatile global struct status *status)
{
    uint dropped = 0;
    for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
        for (ulong i = 0; i < run.length; i++) {
            ulong rest = (A_UNSIGNED)AT(a, POSITION(space, run, 1, i));
            long at = POSITION(space, run, 0, i);
            for (long digit = 0; digit < count; digit++, at += out_stride) {
                AT(out, at) = (OUT)low_bits(rest, base_bits);
                rest = base_bits >= 64 ? 0 : rest >> base_bits;
            }
            dropped += rest != 0;
        }
    count_dropped(status, dropped);
}

#ifdef LIMBS
/*
 * out[l,i,r] = digit i of the value x in [0, q[0]*...*q[LIMBS-1]) with residues a[l,:,r].
 * Mixed radix digits v, x = v0 + q0*(v1 + q1*(v2 + ...)), by H. L. Garner, "The residue number
 * system", 1959, then Horner's rule. inverses[i*LIMBS + j], i < j: q[i]^-1 mod q[j].
 * The space is [l,r]; operands: out, a. Limb strides of a, digit strides of out are given apart.
 */
KERNEL digits_full_q(struct space space, BUFFER(OUT, out), BUFFER(const A, a),
                     global const struct modulus *q, global const struct twiddle *inverses,
                     long base_bits, long count, long out_stride, long a_stride,
                     volatile global struct status *status)
{
    uint dropped = 0;
    for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
        for (ulong i = 0; i < run.length; i++) {
            long a_at = POSITION(space, run, 1, i), out_at = POSITION(space, run, 0, i);
            ulong radix_digits[LIMBS];
            for (int j = 0; j < LIMBS; j++) {
                struct modulus modulus = q[j];
                ulong v = reduce_signed(AT(a, a_at + j * a_stride), modulus);
                for (int h = 0; h < j; h++) {
                    v = subtract_mod(v, reduce(radix_digits[h], modulus), modulus.value);
                    v = multiply_twiddle(v, inverses[h * LIMBS + j], modulus.value);
                }
                radix_digits[j] = v;
            }
            /* x < 2^(63*LIMBS) fits LIMBS words. */
            ulong x[LIMBS];
            for (int word = 0; word < LIMBS; word++)
                x[word] = 0;
            for (int j = LIMBS - 1; j >= 0; j--) {
                ulong factor = q[j].value, carry = radix_digits[j];
                for (int word = 0; word < LIMBS; word++) {
                    ulong low = x[word] * factor, high = mul_hi(x[word], factor);
                    x[word] = low + carry;
                    carry = high + (x[word] < low);
                }
            }
            /* The lowest bit of the next digit is bit `shift` of word `word`. */
            long word = 0, shift = 0;
            for (long digit = 0; digit < count; digit++, out_at += out_stride) {
                ulong value = 0;
                if (word < LIMBS) {
                    value = x[word] >> shift;
                    if (shift > 0 && word + 1 < LIMBS)
                        value |= x[word + 1] << (64 - shift);
                    /* base_bits may be anything above 0: no sum of it may overflow. */
                    long words = base_bits / 64;
                    shift += base_bits % 64;
                    words += shift / 64;
                    shift %= 64;
                    word = words < LIMBS - word ? word + words : LIMBS;
                }
                AT(out, out_at) = (OUT)low_bits(value, base_bits);
            }
            bool rest = false;
            for (long w = word; w < LIMBS; w++)
                rest = rest || (w == word ? x[w] >> shift : x[w]) != 0;
            dropped += rest;
        }
    count_dropped(status, dropped);
}
#endif
