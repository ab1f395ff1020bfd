/*
 * Gadget digits, least significant first, base 2^base_bits. ELEMENT, A: types of the output and the
 * input. A_UNSIGNED: the unsigned type as wide as A. LIMBS: the number k of moduli, for full_q.
 */
#if !defined(A) || !defined(A_UNSIGNED) || !defined(ELEMENT)
#error "A, A_UNSIGNED and ELEMENT must be given"
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
KERNEL digits(SPACE(space), BUFFER(ELEMENT, out), BUFFER(const A, a), long base_bits, long count,
              long out_stride, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint dropped = 0;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (count_t i = 0; i < span.length; i++) {
            ulong rest = (A_UNSIGNED)AT(a, POSITION(space, span, 1, i));
            long at = POSITION(space, span, 0, i);
            for (long digit = 0; digit < count; digit++, at += out_stride) {
                AT(out, at) = (ELEMENT)low_bits(rest, base_bits);
                rest = base_bits >= 64 ? 0 : rest >> base_bits;
            }
            dropped += rest != 0;
        }
    count_dropped(status, dropped);
}

#if CHUNKS == 1
#define ELEMENT_UNSIGNED JOIN(u, ELEMENT)

/* Eight digits at any place. (Not vstore8: PoCL's takes each char for itself.) */
struct __attribute__((packed)) unaligned_digits {
    JOIN(ELEMENT, 8) value;
};

/* As digits, but out_stride is 1. */
KERNEL digits_vectors(SPACE(space), global ELEMENT *out, global const A *a, long base_bits,
                      long count, volatile global struct status *status)
{
    TAKE_SPACE(space);
    long a_stride = space.operand[1].stride[space.rank - 1];
    long out_stride = space.operand[0].stride[space.rank - 1];
    base_bits = min(base_bits, 64L);
    ulong digit_mask = low_bits((ELEMENT_UNSIGNED)~0UL, base_bits);
    ulong kept = low_bits(~0UL, base_bits * count);
    uint dropped = 0;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong first = 0; first < span.length; first += DIGITS_BLOCK) {
            int values = (int)min(span.length - first, (ulong)DIGITS_BLOCK);
            global const A *from = a + POSITION(space, span, 1, first);
            global ELEMENT *to = out + POSITION(space, span, 0, first);
            long digit = 0;
            for (; digit + LANES <= count; digit += LANES) {
                /* The digit in each lane begins at that bit. */
                ulong8 bit = ((ulong8)(0, 1, 2, 3, 4, 5, 6, 7) + (ulong)digit) * (ulong)base_bits;
                ulong8 mask = select((ulong8)(0), (ulong8)(digit_mask), as_ulong8(bit < 64));
                for (int i = 0; i < values; i++) {
                    ulong x = (A_UNSIGNED)from[i * a_stride];
                    ulong8 value = (ulong8)(x) >> (bit & 63) & mask;
                    ((global struct unaligned_digits *)(to + i * out_stride + digit))->value = JOIN(
                        as_, JOIN(ELEMENT, 8))(JOIN(convert_, JOIN(ELEMENT_UNSIGNED, 8))(value));
                }
            }
            for (; digit < count; digit++) {
                ulong mask = digit * base_bits < 64 ? digit_mask : 0;
                for (int i = 0; i < values; i++) {
                    ulong x = (A_UNSIGNED)from[i * a_stride];
                    to[i * out_stride + digit] = (ELEMENT)(x >> (digit * base_bits & 63) & mask);
                }
            }
            for (int i = 0; i < values; i++)
                dropped += ((A_UNSIGNED)from[i * a_stride] & ~kept) != 0;
        }
    count_dropped(status, dropped);
}
#endif

#ifdef LIMBS
/*
 * x in [0, q[0]*...*q[LIMBS-1]), which fits LIMBS words, of its residues, in [0, q[i]) each.
 * Mixed radix digits v, x = v0 + q0*(v1 + q1*(v2 + ...)), by H. L. Garner, "The residue number
 * system", 1959, then Horner's rule. inverses[i*LIMBS + j], i < j: q[i]^-1 mod q[j].
 */
static inline void combine(ulong x[LIMBS], const ulong residues[LIMBS],
                           global const struct modulus *q, global const struct twiddle *inverses)
{
    ulong radix_digits[LIMBS];
    for (int j = 0; j < LIMBS; j++) {
        struct modulus modulus = q[j];
        ulong v = residues[j];
        for (int h = 0; h < j; h++) {
            v = subtract_mod(v, residue_of((long)radix_digits[h], modulus), modulus.value);
            v = multiply_twiddle(v, inverses[h * LIMBS + j], modulus.value);
        }
        radix_digits[j] = v;
    }
    for (int word = 0; word < LIMBS; word++)
        x[word] = 0;
    for (int j = LIMBS - 1; j >= 0; j--) { /* x < 2^(63*(LIMBS-j)) */
        ulong factor = q[j].value, carry = radix_digits[j];
        for (int word = 0; word < LIMBS - j; word++) {
            ulong low = x[word] * factor, high = mul_hi(x[word], factor);
            x[word] = low + carry;
            carry = high + (x[word] < low);
        }
    }
}

/* Where a digit begins in LIMBS words. */
struct bit {
    long word, shift; /* word is in [0, LIMBS], shift in [0, 63] */
};

/* base_bits may be anything above 0: no sum of it may overflow. */
static inline struct bit next_digit(struct bit bit, long base_bits)
{
    long words = base_bits / 64;
    bit.shift += base_bits % 64;
    words += bit.shift / 64;
    bit.shift %= 64;
    bit.word = words < LIMBS - bit.word ? bit.word + words : LIMBS;
    return bit;
}

/*
 * out[l,i,r] = digit i of the value x with residues a[l,:,r]. The space is [l,r]; operands: out, a.
 * Limb strides of a, digit strides of out are given apart. q, inverses: see combine.
 */
KERNEL digits_full_q(SPACE(space), BUFFER(ELEMENT, out), BUFFER(const A, a),
                     global const struct modulus *q, global const struct twiddle *inverses,
                     long base_bits, long count, long out_stride, long a_stride,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint dropped = 0;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (count_t i = 0; i < span.length; i++) {
            long a_at = POSITION(space, span, 1, i), out_at = POSITION(space, span, 0, i);
            ulong x[LIMBS], residues[LIMBS];
            for (int j = 0; j < LIMBS; j++)
                residues[j] = residue_of(WIDEN(AT(a, a_at + j * a_stride)), q[j]);
            combine(x, residues, q, inverses);
            struct bit bit = {0, 0};
            for (long digit = 0; digit < count; digit++, out_at += out_stride) {
                ulong value = 0;
                if (bit.word < LIMBS) {
                    value = x[bit.word] >> bit.shift;
                    if (bit.shift > 0 && bit.word + 1 < LIMBS)
                        value |= x[bit.word + 1] << (64 - bit.shift);
                    bit = next_digit(bit, base_bits);
                }
                AT(out, out_at) = (ELEMENT)low_bits(value, base_bits);
            }
            bool rest = false;
            for (long w = bit.word; w < LIMBS; w++)
                rest = rest || (w == bit.word ? x[w] >> bit.shift : x[w]) != 0;
            dropped += rest;
        }
    count_dropped(status, dropped);
}

#if CHUNKS == 1
/* As digits_full_q, for out of stride 1 along r: one digit of many values after the other, which
 * compilers turn into vectors. */
KERNEL digits_full_q_vectors(SPACE(space), global ELEMENT *out, global const A *a,
                             global const struct modulus *q, global const struct twiddle *inverses,
                             long base_bits, long count, long out_stride, long a_stride,
                             volatile global struct status *status)
{
    TAKE_SPACE(space);
    ulong words[LIMBS + 1][DIGITS_BLOCK]; /* of all values of a block; the last are 0 */
    for (int i = 0; i < DIGITS_BLOCK; i++)
        words[LIMBS][i] = 0;
    ulong mask = low_bits(~0UL, base_bits);
    uint dropped = 0;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong first = 0; first < span.length; first += DIGITS_BLOCK) {
            int values = (int)min(span.length - first, (ulong)DIGITS_BLOCK);
            for (int i = 0; i < values; i++) {
                long at = POSITION(space, span, 1, first + i);
                ulong x[LIMBS], residues[LIMBS];
                for (int j = 0; j < LIMBS; j++)
                    residues[j] = residue_of(WIDEN(a[at + j * a_stride]), q[j]);
                combine(x, residues, q, inverses);
                for (int word = 0; word < LIMBS; word++)
                    words[word][i] = x[word];
            }
            global ELEMENT *to = out + POSITION(space, span, 0, first);
            struct bit bit = {0, 0};
            for (long digit = 0; digit < count; digit++, to += out_stride) {
                ulong *low = words[bit.word], *high = words[min(bit.word + 1, (long)LIMBS)];
                /* Two shifts, since one by 64 would be none. */
                for (int i = 0; i < values; i++)
                    to[i] =
                        (ELEMENT)((low[i] >> bit.shift | high[i] << 1 << (63 - bit.shift)) & mask);
                bit = next_digit(bit, base_bits);
            }
            for (int i = 0; i < values; i++) {
                ulong rest = words[bit.word][i] >> bit.shift;
                for (long word = bit.word + 1; word < LIMBS; word++)
                    rest |= words[word][i];
                dropped += rest != 0;
            }
        }
    count_dropped(status, dropped);
}
#endif
#endif
