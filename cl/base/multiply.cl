/*
 * Each way to multiply residues, for the host to measure (src/programs/multiply.c).
 */
#define MULTIPLY MULTIPLY_HALVES /* what is not said below is as there */
#include "lanes.cl"
#include "divisor.cl"

#define WAY(number, multiply)                                            \
    case number:                                                         \
        for (uint round = 0; round < rounds; round++)                    \
            for (uint i = 0; i < MULTIPLY_VECTORS; i++)                  \
                if (are_residues(as_long8(x[i]), as_long8(y[i]), p))     \
                    x[i] = multiply(x[i], y[i], p);                      \
        break

/* x = x * y mod m, in rounds; x and y in [0, m), m < 2^62. A way that is not there leaves x. */
KERNEL multiply(global ulong8 *x, global const ulong8 *y, global const struct modulus *m, uint way,
                uint rounds)
{
    struct lane_divisor p = make_divisor(*m);
    switch (way) {
#ifdef cl_khr_fp64
        WAY(MULTIPLY_DOUBLES, multiply_by_doubles);
#endif
        WAY(MULTIPLY_HALVES, multiply_by_halves);
        WAY(MULTIPLY_MUL_HI, multiply_by_mul_hi);
#ifdef __SIZEOF_INT128__
        WAY(MULTIPLY_INT128, multiply_by_int128);
#endif
    }
}
