/*
 * Gadget digits, least significant first, in base 2^base_bits. ELEMENT, A: types of the output and
 * the input. A_UNSIGNED: the unsigned type of A's width. LIMBS: the number k of moduli, for full_q.
 */
#if !defined(A) || !defined(A_UNSIGNED) || !defined(ELEMENT)
#error "A, A_UNSIGNED and ELEMENT must be given"
#endif

/* Counts values with dropped digits. */
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

#ifndef SINGLE
/*
 * Each value of a work-group has count digits, or limbs, and the work-items process all of them
 * together. They follow memory: one value after the other, or the same digit of all values. In both
 * cases each work-item processes count digits.
 */
struct piece {
    uint value, number; /* indices of the group's value, and of its digit or limb */
};

static inline struct piece first_piece(uint count, bool side_by_side)
{
    uint id = (uint)get_local_id(0);
    struct piece piece = {id, 0};
    if (side_by_side) {
        piece.value = id / count;
        piece.number = id - piece.value * count;
    }
    return piece;
}

static inline struct piece next_piece(struct piece piece, uint count, bool side_by_side)
{
    piece.value += side_by_side ? LOCAL_SIZE / count : 0;
    piece.number += side_by_side ? LOCAL_SIZE % count : 1;
    if (piece.number >= count) {
        piece.number -= count;
        piece.value++;
    }
    return piece;
}

/* The number of values in a work-group, one for each work-item. */
static inline uint group_values(const struct space *space)
{
    count_t first = (count_t)get_group_id(0) * LOCAL_SIZE;
    return (uint)min((count_t)space->end - first, (count_t)LOCAL_SIZE);
}
#endif

#ifndef LIMBS /* a program only has the kernels of its launch */
/* out[..., i] = digit i of a, for count digits, out_stride apart. Operands: out, a. */
KERNEL digits(SPACE(space), global ELEMENT *out, global const A *a, long base_bits, long count,
              long out_stride, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint dropped = 0;
    EACH_ELEMENT(space, span, i) {
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

#ifndef SINGLE
/* As digits, through local memory: each value is read once, and neighbours write neighbours. */
KERNEL digits_local(SPACE(space), global ELEMENT *out, global const A *a, long base_bits,
                    uint count, long out_stride, uint side_by_side,
                    volatile global struct status *status)
{
    TAKE_SPACE(space);
    local ulong value[LOCAL_SIZE];
    local place_t place[LOCAL_SIZE];
    struct span span = first_span(&space);
    uint id = (uint)get_local_id(0), values = group_values(&space);
    uint bits = (uint)min(base_bits, 64L), dropped = 0;
    if (id < values) {
        ulong x = (A_UNSIGNED)AT(a, POSITION(space, span, 1, 0));
        ulong kept = (ulong)count * bits;
        value[id] = x;
        place[id] = POSITION(space, span, 0, 0);
        dropped = kept < 64 && x >> kept != 0;
    }
    count_dropped(status, dropped);
    barrier(CLK_LOCAL_MEM_FENCE);
    struct piece piece = first_piece(count, side_by_side);
    for (uint i = 0; i < count; i++) {
        if (piece.value < values) {
            ulong bit = (ulong)piece.number * bits;
            ulong rest = bit < 64 ? value[piece.value] >> bit : 0;
            AT(out, place[piece.value] + (place_t)piece.number * (place_t)out_stride) =
                (ELEMENT)low_bits(rest, (long)bits);
        }
        piece = next_piece(piece, count, side_by_side);
    }
}

#define ELEMENT_UNSIGNED JOIN(u, ELEMENT)

/* Eight digits at any address. (PoCL's vstore8 stores each char separately.) */
struct __attribute__((packed)) unaligned_digits {
    JOIN(ELEMENT, 8) value;
};

/* As digits, with out_stride 1. */
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
            long values = (long)min(span.length - first, (ulong)DIGITS_BLOCK);
            global const A *from = a + POSITION(space, span, 1, first);
            global ELEMENT *to = out + POSITION(space, span, 0, first);
            long digit = 0;
            for (; digit + LANES <= count; digit += LANES) {
                /* The first bit of the digit in each lane. */
                ulong8 bit = ((ulong8)(0, 1, 2, 3, 4, 5, 6, 7) + (ulong)digit) * (ulong)base_bits;
                ulong8 mask = select((ulong8)(0), (ulong8)(digit_mask), as_ulong8(bit < 64));
                for (long i = 0; i < values; i++) {
                    ulong x = (A_UNSIGNED)from[i * a_stride];
                    ulong8 value = (ulong8)(x) >> (bit & 63) & mask;
                    ((global struct unaligned_digits *)(to + i * out_stride + digit))->value = JOIN(
                        as_, JOIN(ELEMENT, 8))(JOIN(convert_, JOIN(ELEMENT_UNSIGNED, 8))(value));
                }
            }
            for (; digit < count; digit++) {
                ulong mask = digit * base_bits < 64 ? digit_mask : 0;
                for (long i = 0; i < values; i++) {
                    ulong x = (A_UNSIGNED)from[i * a_stride];
                    to[i * out_stride + digit] = (ELEMENT)(x >> (digit * base_bits & 63) & mask);
                }
            }
            for (long i = 0; i < values; i++)
                dropped += ((A_UNSIGNED)from[i * a_stride] & ~kept) != 0;
        }
    count_dropped(status, dropped);
}
#endif

#else
/* The words of a value. They are in private memory, or with IN_LOCAL in a work-group's local
 * memory: there, word i of all work-items is contiguous. */
#ifdef IN_LOCAL
#define WORDS_MEMORY local
enum { WORDS_STRIDE = LOCAL_SIZE };
#else
#define WORDS_MEMORY
enum { WORDS_STRIDE = 1 };
#endif

/*
 * Computes x in [0, q[0]*...*q[LIMBS-1]) from its residues, which are in [0, q[i]). x has LIMBS
 * words, and replaces the residues. First come the mixed radix digits v of x = v0 + q0*(v1 + q1*(v2
 * + ...)), by H. L. Garner, "The residue number system", 1959, then Horner's rule. inverses[i*LIMBS
 * + j], i < j: q[i]^-1 mod q[j].
 */
static inline void combine(uint limbs, WORDS_MEMORY ulong *x, global const struct modulus *q,
                           global const struct twiddle *inverses)
{
    for (uint j = 1; j < limbs; j++) {
        struct modulus modulus = q[j];
        ulong v = x[j * WORDS_STRIDE];
        for (uint h = 0; h < j; h++) {
            v = subtract_mod(v, residue_of((long)x[h * WORDS_STRIDE], modulus), modulus.value);
            v = multiply_twiddle(v, inverses[h * limbs + j], modulus.value);
        }
        x[j * WORDS_STRIDE] = v;
    }
    for (uint j = limbs - 1; j-- > 0;) { /* the words after digit j hold x/(q[0]*...*q[j]) */
        struct modulus modulus = q[j];
        ulong factor = modulus.value, carry = x[j * WORDS_STRIDE];
        for (uint i = j; i < limbs; i++) {
            ulong word = i + 1 < limbs ? x[(i + 1) * WORDS_STRIDE] : 0;
            ulong low = word * factor, high = mul_hi(word, factor);
            low += carry;
            carry = high + (low < carry);
            x[i * WORDS_STRIDE] = low;
        }
    }
}

/* The position of a digit's first bit among the limbs. */
struct bit {
    long word, shift; /* word is in [0, limbs], shift in [0, 63] */
};

/* base_bits may be any positive number: no sum with it may overflow. */
static inline struct bit next_digit(struct bit bit, long base_bits, uint limbs)
{
    long words = base_bits / 64;
    bit.shift += base_bits % 64;
    words += bit.shift / 64;
    bit.shift %= 64;
    bit.word = words < limbs - bit.word ? bit.word + words : limbs;
    return bit;
}

#ifdef IN_LOCAL
/*
 * As digits_full_q below, through local memory: neighbours read and write neighbours, either limbs
 * and digits of a value, or different values. limbs equals LIMBS, but is not a constant: some
 * compilers unroll constant loops.
 */
KERNEL digits_full_q_local(SPACE(space), global ELEMENT *out, global const A *a,
                           global const struct modulus *q, global const struct twiddle *inverses,
                           uint limbs, long base_bits, uint count, long out_stride, long a_stride,
                           uint digits_side_by_side, uint limbs_side_by_side,
                           volatile global struct status *status)
{
    TAKE_SPACE(space);
    local ulong words[LIMBS * LOCAL_SIZE];
    local place_t place[LOCAL_SIZE];
    struct span span = first_span(&space);
    uint id = (uint)get_local_id(0), values = group_values(&space);
    bool has_value = id < values;
    if (has_value)
        place[id] = POSITION(space, span, 1, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    struct piece piece = first_piece(limbs, limbs_side_by_side);
    for (uint i = 0; i < limbs; i++) {
        if (piece.value < values)
            words[piece.number * LOCAL_SIZE + piece.value] = (ulong)WIDEN(
                AT(a, place[piece.value] + (place_t)piece.number * (place_t)a_stride));
        piece = next_piece(piece, limbs, limbs_side_by_side);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong bits = (ulong)min(base_bits, (long)limbs * 64), kept = count * bits;
    uint dropped = 0;
    if (has_value) {
        local ulong *x = words + id;
        for (uint j = 0; j < limbs; j++)
            x[j * LOCAL_SIZE] = residue_of((long)x[j * LOCAL_SIZE], q[j]);
        combine(limbs, x, q, inverses);
        for (ulong word = kept / 64; word < limbs; word++)
            dropped |= x[word * LOCAL_SIZE] >> (word == kept / 64 ? kept % 64 : 0) != 0;
        place[id] = POSITION(space, span, 0, 0);
    }
    count_dropped(status, dropped);
    barrier(CLK_LOCAL_MEM_FENCE);
    piece = first_piece(count, digits_side_by_side);
    for (uint i = 0; i < count; i++) {
        if (piece.value < values) {
            ulong bit = piece.number * bits, digit = 0;
            uint word = (uint)(bit / 64), shift = (uint)(bit % 64);
            local const ulong *x = words + piece.value + word * LOCAL_SIZE;
            if (word < limbs)
                digit = x[0] >> shift;
            if (word + 1 < limbs && shift > 0)
                digit |= x[LOCAL_SIZE] << (64 - shift);
            AT(out, place[piece.value] + (place_t)piece.number * (place_t)out_stride) =
                (ELEMENT)low_bits(digit, base_bits);
        }
        piece = next_piece(piece, count, digits_side_by_side);
    }
}
#else

/*
 * out[l,i,r] = digit i of the value x with residues a[l,:,r]. The space is [l,r]; operands: out, a.
 * The strides of a's limbs and of out's digits are separate arguments. moduli: LIMBS. q, inverses:
 * see combine.
 */
KERNEL digits_full_q(SPACE(space), global ELEMENT *out, global const A *a,
                     global const struct modulus *q, global const struct twiddle *inverses,
                     uint moduli, long base_bits, long count, long out_stride, long a_stride,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    const uint limbs = LIMBS;
    uint dropped = 0;
    ulong x[LIMBS];
    EACH_ELEMENT(space, span, i) {
        long a_at = POSITION(space, span, 1, i), out_at = POSITION(space, span, 0, i);
        for (uint j = 0; j < limbs; j++)
            x[j] = residue_of(WIDEN(AT(a, a_at + j * a_stride)), q[j]);
        combine(limbs, x, q, inverses);
        struct bit bit = {0, 0};
        for (long digit = 0; digit < count; digit++, out_at += out_stride) {
            ulong value = 0;
            if (bit.word < limbs) {
                value = x[bit.word] >> bit.shift;
                if (bit.shift > 0 && bit.word + 1 < limbs)
                    value |= x[bit.word + 1] << (64 - bit.shift);
                bit = next_digit(bit, base_bits, limbs);
            }
            AT(out, out_at) = (ELEMENT)low_bits(value, base_bits);
        }
        bool rest = bit.word < limbs && x[bit.word] >> bit.shift != 0;
        for (long word = bit.word + 1; word < limbs; word++)
            rest = rest || x[word] != 0;
        dropped += rest;
    }
    count_dropped(status, dropped);
}

#ifndef SINGLE
/* As digits_full_q, for out with stride 1 along r. It computes one digit of many values in a loop
 * that compilers vectorize. */
KERNEL digits_full_q_vectors(SPACE(space), global ELEMENT *out, global const A *a,
                             global const struct modulus *q, global const struct twiddle *inverses,
                             uint moduli, long base_bits, long count, long out_stride,
                             long a_stride, volatile global struct status *status)
{
    TAKE_SPACE(space);
    ulong words[LIMBS + 1][DIGITS_BLOCK]; /* of all values of a block; the last ones are 0 */
    for (uint i = 0; i < DIGITS_BLOCK; i++)
        words[LIMBS][i] = 0;
    ulong mask = low_bits(~0UL, base_bits);
    uint dropped = 0;
    EACH_SPAN(space, span)
        for (ulong first = 0; first < span.length; first += DIGITS_BLOCK) {
            long values = (long)min(span.length - first, (ulong)DIGITS_BLOCK);
            for (long i = 0; i < values; i++) {
                long at = POSITION(space, span, 1, first + i);
                ulong x[LIMBS];
                for (uint j = 0; j < LIMBS; j++)
                    x[j] = residue_of(WIDEN(a[at + j * a_stride]), q[j]);
                combine(LIMBS, x, q, inverses);
                for (uint word = 0; word < LIMBS; word++)
                    words[word][i] = x[word];
            }
            global ELEMENT *to = out + POSITION(space, span, 0, first);
            struct bit bit = {0, 0};
            for (long digit = 0; digit < count; digit++, to += out_stride) {
                ulong *low = words[bit.word], *high = words[min(bit.word + 1, (long)LIMBS)];
                /* Two shifts: a single one by 64 would not shift. */
                for (long i = 0; i < values; i++)
                    to[i] =
                        (ELEMENT)((low[i] >> bit.shift | high[i] << 1 << (63 - bit.shift)) & mask);
                bit = next_digit(bit, base_bits, LIMBS);
            }
            for (long i = 0; i < values; i++) {
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
#endif
