/* Transposes COUNT x COUNT matrices: lane j of a[i] ↔ lane i of a[j], in each group of COUNT
 * lanes. */
static inline void transpose_2(ulong8 *a)
{
    ulong8 u = a[0], v = a[1];
    a[0] = (ulong8)(u.s0, v.s0, u.s2, v.s2, u.s4, v.s4, u.s6, v.s6);
    a[1] = (ulong8)(u.s1, v.s1, u.s3, v.s3, u.s5, v.s5, u.s7, v.s7);
}

static inline void transpose_4(ulong8 *a)
{
    transpose_2(a);
    transpose_2(a + 2);
    UNROLL for (uint i = 0; i < 2; i++) {
        ulong8 u = a[i], v = a[i + 2];
        a[i] = (ulong8)(u.s01, v.s01, u.s45, v.s45);
        a[i + 2] = (ulong8)(u.s23, v.s23, u.s67, v.s67);
    }
}

static inline void transpose_8(ulong8 *a)
{
    transpose_4(a);
    transpose_4(a + 4);
    UNROLL for (uint i = 0; i < 4; i++) {
        ulong8 u = a[i], v = a[i + 4];
        a[i] = (ulong8)(u.lo, v.lo);
        a[i + 4] = (ulong8)(u.hi, v.hi);
    }
}
