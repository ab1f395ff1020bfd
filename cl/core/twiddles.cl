/* Twiddles in the order that kernels of transforms use. */

/* Twiddles [k,n] for cl/ntt/registers.cl, in words of word_bits: factors and quotients. If beside
 * is not 0, only the first `beside` twiddles of each modulus, [beside,k]. */
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

#if LOCAL_SIZE == 1
/*
 * The lane twiddles of transforms of n by cl/ntt/rows.cl, for words of word_bits. A group has as
 * many blocks as a vector has lanes. For every group the twiddles of its middle pass come first,
 * then those of its last passes, each for 16 elements. A pass has twiddles t = 1 ... R-1, and for
 * each t the factors of all blocks, then their quotients. twiddles: [k,n]; table: k times
 * ntt_lane_twiddles(n) words.
 */
KERNEL lane_twiddles(global const struct twiddle *twiddles, ulong n, ulong k, uint word_bits,
                     global ulong *table)
{
    ulong lanes = 512 / word_bits, block = min(n, (ulong)NTT_ROW_TILE) / NTT_RADIX;
    ulong middle = block / NTT_RADIX, groups = n / block / lanes;
    for (ulong group = get_group_id(0); group < k * groups; group += get_num_groups(0)) {
        ulong number = group % groups * lanes + n / block; /* of the block in lane 0 */
        global const struct twiddle *row = twiddles + group / groups * n;
        ulong at = 2 * lanes * (block - 1) * group; /* in words */
        /* The middle pass comes first; then t runs through each last pass. */
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
