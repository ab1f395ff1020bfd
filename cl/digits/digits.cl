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
    EACH_SPAN(space, span)
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

/* As digits, but of a single digit at a time, so that neighbours write neighbours. The space is
 * out's. Operands: out, a, the digit's number. */
KERNEL digits_each(SPACE(space), BUFFER(ELEMENT, out), BUFFER(const A, a), long base_bits,
                   long count, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint dropped = 0;
    ulong bits = (ulong)min(base_bits, 64L);
    EACH_SPAN(space, span)
        for (count_t i = 0; i < span.length; i++) {
            ulong digit = (ulong)POSITION(space, span, 2, i), bit = digit * bits;
            ulong value = (A_UNSIGNED)AT(a, POSITION(space, span, 1, i));
            ulong rest = bit < 64 ? value >> bit : 0, low = low_bits(rest, (long)bits);
            AT(out, POSITION(space, span, 0, i)) = (ELEMENT)low;
            dropped += digit + 1 == (ulong)count && rest != low;
        }
    count_dropped(status, dropped);
}

#if CHUNKS == 1 && !defined(SINGLE)
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
    EACH_SPAN(space, span)
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
/* A value's words, in private memory or, with IN_LOCAL, in a work-group's local memory: word i of
 * all its work-items side by side. */
#ifdef IN_LOCAL
#define WORDS_MEMORY local
#define COUNT(limbs) ((int)(limbs)) /* not known to compilers: some unroll what they know */
enum { WORDS_STRIDE = LOCAL_SIZE };
#else
#define WORDS_MEMORY
#define COUNT(limbs) LIMBS
enum { WORDS_STRIDE = 1 };
#endif

/*
 * Makes x in [0, q[0]*...*q[LIMBS-1]), which fits LIMBS words, of its residues, in [0, q[i]) each,
 * in their place. Mixed radix digits v, x = v0 + q0*(v1 + q1*(v2 + ...)), by H. L. Garner, "The
 * residue number system", 1959, then Horner's rule. inverses[i*LIMBS + j], i < j: q[i]^-1 mod q[j].
 */
static inline void combine(int limbs, WORDS_MEMORY ulong *x, global const struct modulus *q,
                           global const struct twiddle *inverses)
{
    for (int j = 1; j < limbs; j++) {
        struct modulus modulus = q[j];
        ulong v = x[j * WORDS_STRIDE];
        for (int h = 0; h < j; h++) {
            v = subtract_mod(v, residue_of((long)x[h * WORDS_STRIDE], modulus), modulus.value);
            v = multiply_twiddle(v, inverses[h * limbs + j], modulus.value);
        }
        x[j * WORDS_STRIDE] = v;
    }
    for (int j = limbs - 2; j >= 0; j--) { /* x/(q[0]*...*q[j]) is in the words behind digit j */
        ulong factor = q[j].value, carry = x[j * WORDS_STRIDE];
        for (int i = j; i < limbs; i++) {
            ulong word = i + 1 < limbs ? x[(i + 1) * WORDS_STRIDE] : 0;
            ulong low = word * factor, high = mul_hi(word, factor);
            low += carry;
            carry = high + (low < carry);
            x[i * WORDS_STRIDE] = low;
        }
    }
}

/* Where a digit begins in so many limbs. */
struct bit {
    long word, shift; /* word is in [0, limbs], shift in [0, 63] */
};

/* base_bits may be anything above 0: no sum of it may overflow. */
static inline struct bit next_digit(struct bit bit, long base_bits, int limbs)
{
    long words = base_bits / 64;
    bit.shift += base_bits % 64;
    words += bit.shift / 64;
    bit.shift %= 64;
    bit.word = words < limbs - bit.word ? bit.word + words : limbs;
    return bit;
}

/*
 * out[l,i,r] = digit i of the value x with residues a[l,:,r]. The space is [l,r]; operands: out, a.
 * Limb strides of a, digit strides of out are given apart. moduli: LIMBS. q, inverses:
 * see combine.
 */
KERNEL digits_full_q(SPACE(space), BUFFER(ELEMENT, out), BUFFER(const A, a),
                     global const struct modulus *q, global const struct twiddle *inverses,
                     uint moduli, long base_bits, long count, long out_stride, long a_stride,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    const int limbs = COUNT(moduli);
    uint dropped = 0;
#ifdef IN_LOCAL
    local ulong group_words[LIMBS * LOCAL_SIZE];
    local ulong *x = group_words + get_local_id(0);
#else
    ulong x[LIMBS];
#endif
    EACH_SPAN(space, span)
        for (count_t i = 0; i < span.length; i++) {
            long a_at = POSITION(space, span, 1, i), out_at = POSITION(space, span, 0, i);
            for (int j = 0; j < limbs; j++)
                x[j * WORDS_STRIDE] = residue_of(WIDEN(AT(a, a_at + j * a_stride)), q[j]);
            combine(limbs, x, q, inverses);
            struct bit bit = {0, 0};
            for (long digit = 0; digit < count; digit++, out_at += out_stride) {
                ulong value = 0;
                if (bit.word < limbs) {
                    value = x[bit.word * WORDS_STRIDE] >> bit.shift;
                    if (bit.shift > 0 && bit.word + 1 < limbs)
                        value |= x[(bit.word + 1) * WORDS_STRIDE] << (64 - bit.shift);
                    bit = next_digit(bit, base_bits, limbs);
                }
                AT(out, out_at) = (ELEMENT)low_bits(value, base_bits);
            }
            bool rest = bit.word < limbs && x[bit.word * WORDS_STRIDE] >> bit.shift != 0;
            for (long word = bit.word + 1; word < limbs; word++)
                rest = rest || x[word * WORDS_STRIDE] != 0;
            dropped += rest;
        }
    count_dropped(status, dropped);
}

#if CHUNKS == 1 && !defined(IN_LOCAL) && !defined(SINGLE)
/* As digits_full_q, for out of stride 1 along r: one digit of many values after the other, which
 * compilers turn into vectors. */
KERNEL digits_full_q_vectors(SPACE(space), global ELEMENT *out, global const A *a,
                             global const struct modulus *q, global const struct twiddle *inverses,
                             uint moduli, long base_bits, long count, long out_stride,
                             long a_stride, volatile global struct status *status)
{
    TAKE_SPACE(space);
    ulong words[LIMBS + 1][DIGITS_BLOCK]; /* of all values of a block; the last are 0 */
    for (int i = 0; i < DIGITS_BLOCK; i++)
        words[LIMBS][i] = 0;
    ulong mask = low_bits(~0UL, base_bits);
    uint dropped = 0;
    EACH_SPAN(space, span)
        for (ulong first = 0; first < span.length; first += DIGITS_BLOCK) {
            int values = (int)min(span.length - first, (ulong)DIGITS_BLOCK);
            for (int i = 0; i < values; i++) {
                long at = POSITION(space, span, 1, first + i);
                ulong x[LIMBS];
                for (int j = 0; j < LIMBS; j++)
                    x[j] = residue_of(WIDEN(a[at + j * a_stride]), q[j]);
                combine(LIMBS, x, q, inverses);
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
                bit = next_digit(bit, base_bits, LIMBS);
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
