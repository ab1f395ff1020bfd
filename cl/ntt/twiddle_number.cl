/* The number of the twiddle t of block `number` of those that a pass divides. */
static inline ulong twiddle_number(uint t, ulong number)
{
    uint blocks = t >= 8 ? 8 : t >= 4 ? 4 : t >= 2 ? 2 : 1;
    return blocks * number + t - blocks;
}
