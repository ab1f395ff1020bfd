/* Defines OpenCL C's functions on 64-bit words in C, for headers of cl/ that are tested on the
 * host. */
#ifndef HEALCL_TESTS_HELPER_WORDS_H
#define HEALCL_TESTS_HELPER_WORDS_H

typedef unsigned long ulong; /* 64 bits wide, as in OpenCL C */
_Static_assert(sizeof(ulong) == 8, "a long must have 64 bits");

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

static inline ulong mul_hi_unsigned(ulong a, ulong b)
{
    return (ulong)((uint128)a * b >> 64);
}

static inline long mul_hi_signed(long a, long b)
{
    return (long)((int128)a * b >> 64);
}

#define mul_hi(a, b) _Generic((a), ulong : mul_hi_unsigned, long : mul_hi_signed)(a, b)

static inline ulong clz(ulong x)
{
    return (ulong)__builtin_clzl(x);
}

#endif
