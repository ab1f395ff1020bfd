/*
 * The self-test of a device: what arithmetic, memory and atomics give there, for the host to
 * compare with what it knows (src/device/self_test.c).
 */

/* x with the sign of another number */
FUNCTION ulong signed_as(long sign, ulong x)
{
    return sign < 0 ? 0 - x : x;
}

/* A case is a, b and q, in [1, 2^63); there are groups * LOCAL_SIZE of them. bytes and words get
 * one element of each case, its b cut off. loops: whether one work-item goes round a loop. */
KERNEL self_test(global const ulong *cases, global ulong *answers, global char *stored_bytes,
                 global int *stored_words, volatile global struct self_test_counters *counters,
                 uint loops)
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
#define ANSWER(name, families, operands, on_device, on_host) *next++ = (ulong)(on_device);
    global ulong *next = answers + i * ANSWERS;
#include "self_test_answers.cl"
#undef ANSWER
    stored_bytes[i] = (char)b;
    stored_words[i] = (int)b;
    uint key = (uint)i + 1;
    atomic_inc(&counters->count);
    atomic_add(&counters->sum, (uint)b);
    atomic_min(&counters->least, (uint)(b >> 32) | 1u);
    atomic_and(&counters->common, ~(1u << (i % 31)));
    atomic_cmpxchg(&counters->first, 0u, key);
    /* Some compilers have loops end early, without a word. */
    if (i == 0 && loops) {
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
