/*
 * The known answers of the self-test:
 *
 *     ANSWER(name, families, operands, on_device, on_host)
 *
 * name and operands ("ab": of a and b) are for the message. families: the kernels that need the
 * answer, or PLAIN: all kernels do. on_device is computed in a kernel from a, b, q, and from values
 * that self_test.cl derives from them. on_host is the same, computed from a, b and q by 128-bit
 * integers in src/opencl/self_test.c. a and b have any value, q is in [1, 2^63).
 */
ANSWER("multiply", PLAIN, "ab", a * b, a * b)
ANSWER("mul_hi", PLAIN, "ab", mul_hi(a, b), (uint128)a * b >> 64)
ANSWER("mul_hi_signed", PLAIN, "ab", mul_hi((long)a, (long)b), (int128)(int64_t)a * (int64_t)b >> 64)
ANSWER("shift_left", PLAIN, "ab", a << (b & 63), a << (b & 63))
ANSWER("shift_right", PLAIN, "ab", a >> (b & 63), a >> (b & 63))
ANSWER("shift_right_signed", PLAIN, "ab", (long)a >> (b & 63), (int64_t)a >> (b & 63))
ANSWER("clz", PLAIN, "q", clz(q), __builtin_clzll(q))
ANSWER("less_signed", PLAIN, "ab", (long)a < (long)b, (int64_t)a < (int64_t)b)
ANSWER("sign_of_int32", PLAIN, "a", WIDEN((int)a) < 0, (int32_t)a < 0)
ANSWER("min", PLAIN, "ab", min(a, b), a < b ? a : b)

/* 64-bit division */
ANSWER("divide", PLAIN, "aq", a / q, a / q)
ANSWER("remainder", PLAIN, "aq", a % q, a % q)
ANSWER("divide_signed", PLAIN, "aq", (long)a / (long)q, (int64_t)a / (int64_t)q)
ANSWER("remainder_signed", PLAIN, "aq", (long)a % (-(long)q - 1), (int64_t)a % (-(int64_t)q - 1))

/* loads and conversions of narrow types: bytes and words of a in memory */
ANSWER("load_int8", PLAIN, "a", (long)bytes[3], (int8_t)(a >> 24))
ANSWER("load_int8_last", PLAIN, "a", (long)bytes[7], (int8_t)(a >> 56))
ANSWER("load_int32", PLAIN, "a", (long)words[0], (int32_t)a)
ANSWER("load_int32_last", PLAIN, "a", (long)words[1], (int32_t)(a >> 32))
ANSWER("convert_int8", PLAIN, "b", (long)(char)b, (int8_t)b)
ANSWER("convert_int32", PLAIN, "b", (long)(int)b, (int32_t)b)

/* arithmetic.h */
ANSWER("magnitude", PLAIN, "a", magnitude((long)a), (int64_t)a < 0 ? 0 - a : a)
ANSWER("make_modulus.reciprocal", PLAIN, "q", m.reciprocal,
       ~(uint128)0 / (q << __builtin_clzll(q)) - ((uint128)1 << 64))
ANSWER("reduce", PLAIN, "aq", reduce(a, m), a % q)
ANSWER("reduce_signed", PLAIN, "aq", reduce_signed((long)a, m), floor_mod((int64_t)a, q))
ANSWER("reduce_wide_below", PLAIN, "abq", reduce_wide_below(x, b, m), ((uint128)(a % q) << 64 | b) % q)
ANSWER("multiply_mod", PLAIN, "abq", multiply_mod(x, b, m), (uint128)(a % q) * b % q)
ANSWER("add_mod", PLAIN, "abq", add_mod(x, y, q), ((uint128)(a % q) + b % q) % q)
ANSWER("subtract_mod", PLAIN, "abq", subtract_mod(x, y, q), ((uint128)(a % q) + q - b % q) % q)
ANSWER("make_twiddle.quotient", TRANSFORM, "aq", w.quotient, ((uint128)(a % q) << 64) / q)
ANSWER("multiply_twiddle", TRANSFORM, "abq", multiply_twiddle(b, w, q), (uint128)(a % q) * b % q)

/* five times a*b, both signed: 192 bits */
ANSWER("wide_add_product.low", SUM, "ab", sum.low, 5 * a * b)
ANSWER("wide_add_product.middle", SUM, "ab", sum.middle,
       upper_of_five_times((int128)(int64_t)a * (int64_t)b))
ANSWER("wide_add_product.high", SUM, "ab", sum.high,
       upper_of_five_times((int128)(int64_t)a * (int64_t)b) >> 64)
ANSWER("wide_reduce", SUM, "abq", wide_reduce(sum, m),
       (uint128)floor_mod((int64_t)a, q) * floor_mod((int64_t)b, q) % q * 5 % q)

/* computations of families: an element at its position in a view, a C remainder of a product, the
 * difference of a butterfly, a gadget digit, an element at an index */
ANSWER("walk", COPY, "ab", operands[b % 6 / 3], b % 6 < 3 ? a : b)
ANSWER("modmul", ELEMENTWISE, "abq",
       signed_as((long)(a ^ b), multiply_mod(reduce(magnitude((long)a), m),
                                             reduce(magnitude((long)b), m), m)),
       (int128)(int64_t)a * (int64_t)b % (int128)q)
ANSWER("butterfly", TRANSFORM, "abq", subtract_mod(y, multiply_twiddle(b, w, q), q),
       (b % q + q - (uint64_t)((uint128)(a % q) * b % q)) % q)
ANSWER("digit", DIGITS, "ab", (magnitude((long)a) >> (b & 31)) & 0x1f,
       (((int64_t)a < 0 ? 0 - a : a) >> (b & 31)) & 0x1f)
ANSWER("gather", GATHER, "ab", operands[(long)(b & 1)], b & 1 ? b : a)
