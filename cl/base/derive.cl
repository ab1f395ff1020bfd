/*
 * Checks and tables that are worked out once from a tensor and kept until it is written.
 * In every space operand 0 is the tensor.
 */

/* As report, with the value of the element that was found: number n * index of operand 0. */
static inline void report_value(volatile global struct status *status, const struct space *space,
                                global const ELEMENT *in, count_t n, count_t index)
{
    if (!report(status, space->key, index))
        return;
    /* An index before this one may be found meanwhile. Whoever notes a value last looks again. */
    uint found;
    do {
        found = atomic_or(&status->index, 0u);
        count_t rest = found * n;
        place_t place = (place_t)space->operand[0].offset;
        for (uint axis = RANK(*space); axis-- > 0;) {
            count_t next = axis > 0 ? divide_by_axis(rest, space, axis) : 0;
            place += (place_t)(rest - next * (count_t)space->shape[axis]) *
                     (place_t)space->operand[0].stride[axis];
            rest = next;
        }
        status->value = WIDEN(AT(in, place));
        mem_fence(CLK_GLOBAL_MEM_FENCE);
    } while (atomic_or(&status->index, 0u) != found);
}

/* Reports elements outside of [first, size). */
KERNEL check_indices(SPACE(space), global const ELEMENT *in, long first, long size,
                     volatile global struct status *status)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        if (value < first || value >= size)
            report_value(status, &space, in, 1, span.linear + i);
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
            report_value(status, &space, in, 1, span.linear + i);
        table[span.linear + i] = make_modulus((ulong)max(value, 1L));
    }
}

#define ROW_PLACE(k, j, i)                                                            \
    ((place_t)space.operand[k].offset + (place_t)(j) * (place_t)space.operand[k].stride[row] + \
     (place_t)(i) * (place_t)space.operand[k].stride[row + 1])

/*
 * Tables of a transform, those of `wanted`; the space is [k,n]. Operands are q [k], psi [k,n], n_inv
 * [k] and factors [k].
 *   TABLE_MODULI       moduli [k]; if it is not wanted, it is there. Reports elements of q below 1,
 *                      which then count as 1
 *   TABLE_TWIDDLES     twiddles [k,n]: psi modulo q, with quotients
 *   TABLE_SCALES       scales [k]: n_inv modulo q
 *   TABLE_FACTORS      ... times the magnitude of factors, marked TWIDDLE_NEGATIVE where they are
 *                      below 0
 *   TABLE_PERMUTATION  permutation [n+1] and inverse [2n+1] as the kernel permutation wants them
 */
KERNEL transform_tables(SPACE(space), uint wanted, global const ELEMENT *q,
                        global const ELEMENT *psi, global const ELEMENT *n_inv,
                        global const ELEMENT *factors, global struct modulus *moduli,
                        global struct twiddle *twiddles, global struct twiddle *scales, global uint *permutation,
                        global uint *inverse, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint row = RANK(space) - 2;
    count_t k = (count_t)space.shape[row], n = (count_t)space.shape[row + 1];
    count_t per_item = (count_t)space.elements_per_item, per_block = per_item * LOCAL_SIZE;
    count_t blocks = (n + per_block - 1) / per_block; /* of a row, whose modulus is made once */
    for (count_t block = get_group_id(0); block < k * blocks; block += get_num_groups(0)) {
        count_t j = block / blocks, first = block % blocks * per_block + get_local_id(0);
        struct modulus modulus = {1, 1, 1, 1};
        if (wanted & TABLE_MODULI) {
            long value = WIDEN(AT(q, ROW_PLACE(0, j, 0)));
            modulus = make_modulus((ulong)max(value, 1L));
            if (first == 0) {
                moduli[j] = modulus;
                if (value < 1)
                    report_value(status, &space, q, n, j);
            }
        } else if (wanted != TABLE_PERMUTATION)
            modulus = moduli[j];
        count_t end = min(n, first + per_block);
        for (count_t i = first; i < end && wanted & TABLE_TWIDDLES; i += LOCAL_SIZE) {
            long value = WIDEN(AT(psi, ROW_PLACE(1, j, i)));
            twiddles[j * n + i] = make_twiddle(residue_of(value, modulus), modulus);
        }
        for (count_t i = first; i < end && j == 0 && wanted & TABLE_PERMUTATION; i += LOCAL_SIZE) {
            inverse[i] = 0; /* counts where what is no permutation leaves an entry out */
            inverse[n + 1 + i] = UINT_MAX;
        }
        if (first > 0)
            continue;
        if (wanted & TABLE_SCALES) {
            ulong scale = residue_of(WIDEN(AT(n_inv, ROW_PLACE(2, j, 0))), modulus);
            long factor = wanted & TABLE_FACTORS ? WIDEN(AT(factors, ROW_PLACE(3, j, 0))) : 1;
            scale = multiply_mod(reduce(magnitude(factor), modulus), scale, modulus);
            scales[j] = make_twiddle(scale, modulus);
            scales[j].factor |= factor < 0 ? TWIDDLE_NEGATIVE : 0;
        }
        if (wanted & TABLE_PERMUTATION && j == 0)
            permutation[n] = inverse[n] = PERMUTATION_REVERSES_BITS | PERMUTATION_IDENTITY;
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

/* table[i] = perm[i], inverse[perm[i]] = i; the space is [n], n at most 2^31. Both end with bits
 * PERMUTATION_..., which are there only where the permutation is that. They begin as
 * transform_tables leaves them, and behind inverse first[v], which becomes the smallest i with
 * perm[i] = v. Reports values outside of the axis, which then count as i, so that what uses
 * the table stays inside, and those that came before. */
KERNEL permutation(SPACE(space), global const ELEMENT *in, volatile global uint *table,
                   volatile global uint *inverse, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint n = (uint)space.end;
    volatile global uint *first = inverse + n + 1;
    EACH_ELEMENT(space, span, i) {
        long value = WIDEN(AT(in, POSITION(space, span, 0, i)));
        uint place = (uint)(span.linear + i), earlier = UINT_MAX;
        bool inside = value >= 0 && value < (long)n;
        if (inside) {
            earlier = atomic_min(&first[value], place);
            inverse[value] = place;
        }
        table[place] = inside ? (uint)value : place;
        /* The second of all with that value meets the first one, or is met by it. */
        if (!inside || earlier != UINT_MAX)
            report_value(status, &space, in, 1, inside ? max(place, earlier) : place);
        uint kinds = value == place ? PERMUTATION_IDENTITY : 0;
        if ((n & (n - 1)) == 0 && value == reverse_bits(place, n))
            kinds |= PERMUTATION_REVERSES_BITS;
        if (table[n] & ~kinds) {
            atomic_and(&table[n], kinds);
            atomic_and(&inverse[n], kinds);
        }
    }
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
