/*
 * Checks and tables that are worked out once from a tensor and kept until it is written.
 * In every space operand 0 is the tensor.
 */

/* After a check has reported under this key: notes the value it found. One work-item. */
KERNEL note_value(SPACE(space), global const ELEMENT *in, volatile global struct status *status)
{
    TAKE_SPACE(space);
    if (WORK_ITEM > 0 || status->key != space.key || status->index >= space.end)
        return;
    space.first = status->index;
    struct span span = span_at(&space, 0);
    status->value = WIDEN(AT(in, span.position[0]));
}

/* Reports elements outside of [first, size). */
KERNEL check_indices(SPACE(space), global const ELEMENT *in, long first, long size,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value < first || value >= size)
            report(status, space.key, span.linear + i);
    }
}

/* table[i] = the constants of modulus i. Reports elements below 1, which then count as 1. */
KERNEL moduli(SPACE(space), global const ELEMENT *in, global struct modulus *table,
              volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value < 1)
            report(status, space.key, span.linear + i);
        table[span.linear + i] = make_modulus((ulong)max(value, 1L));
    }
}

/* table[j,i] = element (j, i) of [k,n] reduced modulo q[j], with its quotient; n = 2^log2_n. */
KERNEL twiddles(SPACE(space), global const ELEMENT *in, global const struct modulus *q, uint log2_n,
                global struct twiddle *table)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        struct modulus modulus = q[(span.linear + i) >> log2_n];
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        table[span.linear + i] = make_twiddle(residue_of(value, modulus), modulus);
    }
}

/* table[j] = twiddle j times the magnitude of element j, marked TWIDDLE_NEGATIVE where that is below
 * 0. */
KERNEL scaled_twiddles(SPACE(space), global const ELEMENT *in, global const struct modulus *q,
                       global const struct twiddle *twiddles, global struct twiddle *table)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        ulong j = span.linear + i;
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        ulong size = reduce(magnitude(value), q[j]);
        struct twiddle w =
            make_twiddle(multiply_mod(size, twiddles[j].factor, q[j]), q[j]);
        w.factor |= value < 0 ? TWIDDLE_NEGATIVE : 0;
        table[j] = w;
    }
}

/* Twiddles [k,n] for cl/ntt/registers.cl, in words of word_bits: factors and quotients; where beside
 * is not 0, the first ones so many of each modulus, [beside,k]. */
KERNEL pass_twiddles(global const struct twiddle *twiddles, ulong n, ulong k, ulong beside,
                     uint word_bits, global ulong *table)
{
    ulong count = k * (beside ? beside : n), size = (ulong)get_num_groups(0) * LOCAL_SIZE;
    for (ulong i = (ulong)get_group_id(0) * LOCAL_SIZE + get_local_id(0); i < count; i += size) {
        struct twiddle w = twiddles[beside ? i % k * n + i / k : i];
        if (word_bits == 64)
            ((global ulong2 *)table)[i] = (ulong2)(w.factor, w.quotient);
        else
            ((global uint2 *)table)[i] = (uint2)((uint)w.factor, (uint)(w.quotient >> 32));
    }
}

/* The lowest bits of i in reversed order, for n = 2^bits. */
static inline uint reverse_bits(uint i, ulong n)
{
    uint reversed = 0;
    for (ulong m = n; m > 1; m /= 2, i /= 2)
        reversed = reversed << 1 | (i & 1);
    return reversed;
}

/* first[v] = the smallest i with perm[i] = v; first begins as 2^32-1 everywhere.
 * n is the space's number of elements, at most 2^31. */
KERNEL permutation_first(SPACE(space), global const ELEMENT *in, volatile global uint *first)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value >= 0 && value < (long)space.end)
            atomic_min(&first[value], (uint)(span.linear + i));
    }
}

/* table[i] = perm[i]; table[n] keeps its bits PERMUTATION_... only where the permutation is that.
 * Reports values outside of the axis and those that came before; they then count as i, so that
 * what uses the table stays inside. */
KERNEL permutation(SPACE(space), global const ELEMENT *in, global const uint *first,
                   volatile global uint *table, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint n = (uint)space.end;
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        uint place = (uint)(span.linear + i);
        bool good = value >= 0 && value < (long)space.end;
        good = good && first[good ? value : 0] == place;
        if (!good)
            report(status, space.key, place);
        table[place] = good ? (uint)value : place;
        uint kinds = value == place ? PERMUTATION_IDENTITY : 0;
        if ((n & (n - 1)) == 0 && value == reverse_bits(place, n))
            kinds |= PERMUTATION_REVERSES_BITS;
        if (kinds != (PERMUTATION_IDENTITY | PERMUTATION_REVERSES_BITS))
            atomic_and(&table[n], kinds);
    }
}

/* inverse[perm[i]] = i, for the space [n] and a table perm of permutation; of the same kind. */
KERNEL inverse_permutation(SPACE(space), global const uint *perm, global uint *inverse)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i)
        inverse[perm[span.linear + i]] = (uint)(span.linear + i);
    if (get_global_id(0) == 0)
        inverse[space.shape[0]] = perm[space.shape[0]];
}

/* table[i*k + j], i < j: q[i]^-1 mod q[j]. Reports i*k + j where there is none. The space is
 * [k,k]; extended Euclid with coefficients modulo q[j]. */
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

#if LOCAL_SIZE == 1
/*
 * The lane twiddles of transforms of n by cl/ntt/rows.cl, for words of word_bits: for every group
 * of as many blocks as a vector has lanes, first those of its middle pass, then those of its last
 * passes, for 16 elements after 16; for each the twiddles t = 1 ... R-1, and for each the factors
 * of these blocks, then their quotients. twiddles: [k,n]; table: k times ntt_lane_twiddles(n)
 * words.
 */
KERNEL lane_twiddles(global const struct twiddle *twiddles, ulong n, ulong k, uint word_bits,
                     global ulong *table)
{
    ulong lanes = 512 / word_bits, block = min(n, (ulong)NTT_ROW_TILE) / NTT_RADIX;
    ulong middle = block / NTT_RADIX, groups = n / block / lanes;
    for (ulong group = get_group_id(0); group < k * groups; group += get_num_groups(0)) {
        ulong number = group % groups * lanes + n / block; /* of a block: lane 0's */
        global const struct twiddle *row = twiddles + group / groups * n;
        ulong at = 2 * lanes * (block - 1) * group; /* in words */
        /* The middle pass comes first; then t runs through each of the last passes. */
        for (ulong pass = 0; pass <= middle; pass++) {
            bool is_last = pass > 0;
            ulong radix = is_last ? NTT_RADIX : middle;
            for (ulong t = 1; t < radix; t++, at += 2 * lanes)
                for (ulong lane = 0; lane < lanes; lane++) {
                    ulong of = number + lane;
                    struct twiddle w =
                        row[ntt_twiddle_number((uint)t, is_last ? of * middle + pass - 1 : of)];
                    if (word_bits == 64) {
                        table[at + lane] = w.factor;
                        table[at + lanes + lane] = w.quotient;
                    } else {
                        global uint *words = (global uint *)table + at;
                        words[lane] = (uint)w.factor;
                        words[lanes + lane] = (uint)(w.quotient >> 32);
                    }
                }
        }
    }
}
#endif
