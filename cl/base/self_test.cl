/*
 * The self-test of a device: results of its arithmetic, memory and atomics, which the host compares
 * with known ones (src/opencl/self_test.c).
 */

/* x with the sign of another number. */
FUNCTION ulong signed_as(long sign, ulong x)
{
    return sign < 0 ? 0 - x : x;
}

/* Stores a value. Returns whether the previous value differed. */
FUNCTION uint put(global ulong *place, ulong value)
{
    uint differs = *place != value;
    *place = value;
    return differs;
}

/* A case is a, b and q, with q in [1, 2^63). There are groups * LOCAL_SIZE cases. For each case,
 * bytes and words get one element, b truncated. In the first launch one work-item also runs a loop.
 * Later launches count work-items whose results differ from the stored ones. */
KERNEL self_test(global const ulong *cases, global ulong *answers, global char *stored_bytes,
                 global int *stored_words, volatile global struct self_test_counters *counters,
                 uint is_first)
{
    size_t i = get_global_id(0);
    global const ulong *operands = cases + 3 * i;
    global const char *bytes = (global const char *)operands;
    global const int *words = (global const int *)operands;
    ulong a = operands[0], b = operands[1], q = operands[2];
    struct modulus m = make_modulus(q);
    ulong x = reduce(a, m), y = reduce(b, m); /* in [0, q) */
    struct twiddle w = make_twiddle(x, m);
    struct wide sum = wide_zero();
    for (int k = 0; k < 5; k++)
        sum = wide_add_product(sum, (long)a, (long)b);
    uint differs = stored_bytes[i] != (char)b || stored_words[i] != (int)b;
#define ANSWER(name, families, operands, on_device, on_host) \
    differs |= put(next++, (ulong)(on_device));
    global ulong *next = answers + i * ANSWERS;
#include "self_test_answers.cl"
#undef ANSWER
    stored_bytes[i] = (char)b;
    stored_words[i] = (int)b;
    uint key = (uint)i + 1, upper = (uint)(b >> 32) | 1u, bit = (uint)i % 31;
    atomic_inc(&counters->count);
    atomic_add(&counters->sum, (uint)b);
    differs |= atomic_min(&counters->least, upper) > upper;
    differs |= atomic_and(&counters->common, ~(1u << bit)) >> bit & 1u;
    if (atomic_cmpxchg(&counters->first, 0u, key) == 0u) {
        differs = 1;
        counters->winner = key;
    }
    if (differs && !is_first)
        atomic_inc(&counters->changed);
    /* Some compilers end loops early, without an error. */
    if (i == 0 && is_first) {
        uint rounds = 0, mixed = 1;
        for (; rounds < ROUNDS; rounds++) {
            mixed ^= mixed << 13;
            mixed ^= mixed >> 17;
            mixed ^= mixed << 5;
        }
        counters->rounds = rounds;
        counters->mixed = mixed;
    }
}
