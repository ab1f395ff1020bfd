/*
 * The self-test of a device: what arithmetic, memory and atomics give there, for the host to
 * compare with what it knows (src/opencl/self_test.c).
 */

/* x with the sign of another number */
FUNCTION ulong signed_as(long sign, ulong x)
{
    return sign < 0 ? 0 - x : x;
}

/* Stores a value. Returns whether another one was there. */
FUNCTION uint put(global ulong *place, ulong value)
{
    uint differs = *place != value;
    *place = value;
    return differs;
}

/* A case is a, b and q, in [1, 2^63); there are groups * LOCAL_SIZE of them. bytes and words get
 * one element of each case, its b cut off. In the first launch one work-item goes round a loop;
 * those of later ones count where they do not find what they come to themselves. */
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
    /* Some compilers have loops end early, without a word. */
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
