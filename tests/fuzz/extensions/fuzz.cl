/*
 * Kernels of operations that fuzzers' programs call, and of one in the place of a built-in one. They
 * are right for any data, as bodies are: nothing checks data for a manifest's kernel. Remainders have
 * the sign of what is divided.
 * cl/base/arithmetic.h stands in front of this file.
 */
KERNEL fuzz_scale(global TYPE_out *out, long out_at, global const TYPE_a *a, long a_at, long f)
{
    long i = get_group_id(0), x = a[a_at + i];
    struct modulus m = make_modulus(97);
    long rest = (long)multiply_mod(reduce(magnitude(x), m), reduce(magnitude(f), m), m);
    out[out_at + i] = (TYPE_out)((x < 0) == (f < 0) ? rest : -rest);
}

#ifdef COLUMNS
KERNEL fuzz_add(global TYPE_out *out, long out_at, global const TYPE_a *a, long a_at, long down,
                long along)
{
    long i = get_group_id(0), x = a[a_at + i / COLUMNS * down + i % COLUMNS * along];
    out[out_at + i] = (out[out_at + i] % 1000003 + x % 1000003) % 1000003;
}
#endif

#ifdef STEP
KERNEL fuzz_row(global TYPE_out *out, long out_at, global const TYPE_a *a, long a_at, long down,
                long along, long row)
{
    long i = get_group_id(0);
    out[out_at + i] = a[a_at + row * down + i * along] % 1000003;
}
#endif

KERNEL fuzz_copy(global TYPE_out *out, long out_at, long out_down, long out_along,
                 global const TYPE_a *a, long a_at, long down, long along)
{
    long i = get_group_id(0) / 3, j = get_group_id(0) % 3;
    out[out_at + i * out_down + j * out_along] = a[a_at + i * down + j * along];
}
