/*
 * Data that the executor caches between steps: tables computed from tensors are discarded once the
 * tensor is written, results are those of their moment, runs can be repeated, memory is freed.
 * Every script runs on the device and on the host reference.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "helper_share.h"
#include "kernels/launcher.h"
#include "tools/random.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* Plans and runs a script on both executors; releases it. The results stay for more checks. */
static void run_both(struct script *script, struct script_results *device_results)
{
    struct script_results reference_results = {0};
    memset(device_results, 0, sizeof *device_results);
    script_plan(script);
    OK(script_run_on(script, NULL, &reference_results, &error));
    OK(script_run_on(script, device, device_results, &error));
    assert_true(script_same_results(device_results, &reference_results));
    script_results_release(&reference_results);
    script_release(script);
}

static void expect_results(const struct script_results *results, size_t count,
                           const int64_t *values)
{
    assert_int_equal(results->count, count);
    assert_memory_equal(results->values, values, count * sizeof *values);
}

/* ---------------------------------------------------------------- short rows */

/* So many rows that a work-item does eight of a modulus together, and some alone: of any values and
 * of moduli of all sizes, forward and back, with a permutation and without, also in place. */
static void many_short_rows(void **state)
{
    (void)state;
    enum { L = 107, LONGEST = 128, K = 3 };
    static const int64_t moduli[] = {INT64_MAX, ((int64_t)1 << 62) - 57, 97,
                                     1,         ((int64_t)1 << 62) + 1,  2};
    static int64_t values[L * LONGEST * K], perm[LONGEST];
    struct random random = {0x5407};
    for (int64_t n = 1; n <= LONGEST; n *= n == 2 || n == 16 ? 8 : 2)
        for (int64_t k = 1; k <= K; k++) {
            struct script script = {0};
            struct script_results results;
            char shape[64];
            for (int64_t i = 0; i < L * n * k; i++)
                values[i] = random_value(&random, DTYPE_INT64);
            for (int64_t i = 0; i < n; i++)
                perm[i] = (3 * i + 1) % n;
            snprintf(shape, sizeof shape, "(%d,%d,1,%d) :int64", L, (int)n, (int)k);
            script_upload(&script, "a", DTYPE_INT64, 4, VALUES(L, n, 1, k), values);
            script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(k, n), values);
            script_upload(&script, "n_inv", DTYPE_INT64, 1, VALUES(k), values);
            script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(n), perm);
            script_upload(&script, "q", DTYPE_INT64, 1, VALUES(k), moduli + k % 3);
            script_call(&script, "out", "empty", shape);
            script_call(&script, "out", "ntt", "a none none q psi out 0 1");
            script_download(&script, "out");
            script_call(&script, "out", "intt", "a perm none q none none psi n_inv out 0");
            script_download(&script, "out");
            script_call(&script, "a", "ntt", "a perm none q psi a 0 0");
            script_download(&script, "a");
            script_call(&script, "a", "intt", "a perm none q none none psi n_inv a 0");
            script_download(&script, "a");
            run_both(&script, &results);
            script_results_release(&results);
        }
}

/* ---------------------------------------------------------------- derived tables */

/* A modulus tensor that is filled, uploaded under its name again, computed in place and through a
 * view of it. */
static void moduli_change(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results;
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(4), VALUES(100, 101, 102, 103));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(4), VALUES(7, 8, 9, 10));
    script_call(&script, "last", "get_slice", "q [3:4:1]");
    script_call(&script, "out", "empty", "(4) :int64");
    const char *const changes[][3] = {
        {NULL, NULL, NULL},
        {"q", "set_const_val", "q 13"},
        {"q", "_modsum_tcc", "q 4 100 q"},
        {"last", "set_const_val", "last 5"},
        {"q", "_modsum_ttc", "q q 1000 q"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i][0])
            script_call(&script, changes[i][0], changes[i][1], changes[i][2]);
        script_call(&script, "out", "_mod_tt", "a q out");
        script_download(&script, "out");
        script_call(&script, "out", "_modmul_ttt", "a a last out");
        script_download(&script, "out");
    }
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(4), VALUES(50, 51, 52, 53));
    script_call(&script, "out", "_mod_tt", "a q out");
    script_download(&script, "out");
    run_both(&script, &results);
    expect_results(&results, 44,
                   VALUES(2, 5, 3, 3,                /* mod 7, 8, 9, 10 */
                          0, 1, 4, 9,                /* squares mod 10 */
                          9, 10, 11, 12, 3, 9, 4, 1, /* 13 */
                          15, 16, 0, 1, 4, 1, 0, 1,  /* 17 */
                          15, 16, 0, 3, 0, 1, 4, 4,  /* and 5 */
                          32, 33, 0, 3, 0, 1, 4, 9,  /* 34 and 10 */
                          0, 50, 50, 50));           /* 50 to 53 */
    script_results_release(&results);
}

/* Twiddles depend on psi and on q; n_inv likewise. */
static void twiddles_change(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results;
    script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, 4, 1, 1), VALUES(1, 2, 3, 4));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(17));
    script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(1, 4), VALUES(1, 4, 2, 8));
    script_upload(&script, "n_inv", DTYPE_INT64, 1, VALUES(1), VALUES(13));
    script_call(&script, "second", "get_slice", "psi [0,1:3:1]");
    script_call(&script, "out", "empty", "(1,4,1,1) :int64");
    const char *const changes[][3] = {
        {NULL, NULL, NULL},
        {"q", "set_const_val", "q 97"},
        {"psi", "_modsum_tcc", "psi 1 1000 psi"},
        {"second", "set_const_val", "second 30"},
        {"n_inv", "set_const_val", "n_inv 3"},
        {"q", "set_const_val", "q 17"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i][0])
            script_call(&script, changes[i][0], changes[i][1], changes[i][2]);
        script_call(&script, "out", "ntt", "a none none q psi out 0 1");
        script_download(&script, "out");
        script_call(&script, "perm", "empty", "(4) :int64");
        script_call(&script, "perm", "set_const_val", "perm 0"); /* replaced: a new storage */
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(0, 2, 1, 3));
        script_call(&script, "out", "intt", "a perm none q none none psi n_inv out 0");
        script_download(&script, "out");
    }
    run_both(&script, &results);
    /* By hand, psi[1] = 4, psi[2..3] = 2, 8, q = 17: (1+12, 2+16, 1-12, 2-16) = (13, 1, 6, 3),
     * then (13+2, 13-2, 6+24, 6-24). */
    assert_memory_equal(results.values, VALUES(15, 11, 13, 16), 4 * sizeof(int64_t));
    /* Every change shows. */
    for (size_t i = 1; i < 4; i++)
        assert_memory_not_equal(results.values + 8 * i, results.values + 8 * (i - 1), 32);
    script_results_release(&results);
}

/* Permutations and indices: filled through views, computed, uploaded again. */
static void permutations_change(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results;
    script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, 1, 1, 4), VALUES(1, 2, 3, 4));
    script_upload(&script, "b", DTYPE_INT64, 3, VALUES(1, 1, 4), VALUES(1, 10, 100, 1000));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(1000000));
    script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(1, 2, 3, 0));
    script_call(&script, "out", "zeros", "(1,1,4) :int64");
    for (int i = 0; i < 2; i++) {
        script_call(&script, "out", "modmul_axis_sum", "a b q none none perm out 1");
        script_download(&script, "out");
        /* p -> p + 1 mod 4 */
        script_call(&script, "perm", "_modsum_tcc", "perm 1 4 perm");
        script_call(&script, "out", "set_const_val", "out 0");
    }
    script_call(&script, "out", "modmul_axis_sum", "a b q none none perm out 1");
    script_download(&script, "out");
    script_upload(&script, "perm", DTYPE_INT32, 1, VALUES(4), VALUES(0, 1, 2, 3));
    script_call(&script, "out", "set_const_val", "out 0");
    script_call(&script, "out", "modmul_axis_sum", "a b q none none perm out 1");
    script_download(&script, "out");

    script_upload(&script, "v", DTYPE_INT64, 1, VALUES(4), VALUES(5, 6, 7, 8));
    script_upload(&script, "idx", DTYPE_INT64, 1, VALUES(4), VALUES(3, 2, 1, 0));
    script_call(&script, "w", "empty", "(4) :int64");
    script_call(&script, "w", "take_along_axis", "v idx 0 w");
    script_download(&script, "w");
    script_call(&script, "idx", "_modsum_tcc", "idx -3 9 idx");
    script_call(&script, "w", "take_along_axis", "v idx 0 w");
    script_download(&script, "w");
    run_both(&script, &results);
    expect_results(&results, 24,
                   VALUES(4, 10, 200, 3000, /* perm 1 2 3 0 */
                          3, 40, 100, 2000, /* 2 3 0 1 */
                          2, 30, 400, 1000, /* 3 0 1 2 */
                          1, 20, 300, 4000, /* 0 1 2 3 */
                          8, 7, 6, 5,       /* idx 3 2 1 0 */
                          5, 8, 7, 6));     /* 0 -1 -2 -3 */
    script_results_release(&results);
}

/* An index tensor that was good becomes bad: the check that was made is out of date too. */
static void checks_change(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results = {0};
    struct healcl_error refusal = {0};
    script_upload(&script, "v", DTYPE_INT64, 1, VALUES(4), VALUES(5, 6, 7, 8));
    script_upload(&script, "idx", DTYPE_INT64, 1, VALUES(4), VALUES(3, 2, 1, 0));
    script_call(&script, "part", "get_slice", "idx [2:3:1]");
    script_call(&script, "w", "empty", "(4) :int64");
    script_call(&script, "w", "take_along_axis", "v idx 0 w");
    script_call(&script, "part", "set_const_val", "part 4");
    script_call(&script, "w", "take_along_axis", "v idx 0 w");
    script_download(&script, "w");
    script_plan(&script);
    assert_int_equal(script_run_on(&script, device, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 6 (take_along_axis): argument 'idx': 4 at [2] is "
                                         "outside of axis 0 of size 4");
    healcl_error_clear(&refusal);
    script_results_release(&results);
    script_release(&script);
}

/* Many uses and views share moduli, and the coprimality computed from them. */
static void crt_moduli_change(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results;
    script_upload(&script, "a", DTYPE_INT64, 3, VALUES(1, 2, 1), VALUES(2, 3));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(5, 7));
    script_call(&script, "out", "empty", "(1,2,1) :int64");
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 2 8 out");
    script_download(&script, "out");
    script_call(&script, "q", "_modsum_tcc", "q 6 1000 q"); /* 11, 13 */
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 2 3 out");
    script_download(&script, "out");
    run_both(&script, &results);
    /* 17 = 2 mod 5 = 3 mod 7; 68 = 2 mod 11 = 3 mod 13, in base 8: 4, 0 (and 1 that is dropped) */
    expect_results(&results, 4, VALUES(17, 0, 4, 0));
    script_results_release(&results);
}

/* ---------------------------------------------------------------- results */

/* A result keeps its value when its tensor is overwritten, or freed and its memory used again,
 * before the segment ends. */
static void results_are_snapshots(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results;
    script_segment_start(&script, "all");
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(4), VALUES(1, 2, 3, 4));
    script_download(&script, "a");
    script_call(&script, "a", "set_const_val", "a 9");
    script_download(&script, "a");
    script_call(&script, "part", "get_slice", "a [1:4:2]");
    script_call(&script, "part", "set_const_val", "part 8");
    script_download(&script, "part");
    script_download(&script, "a");
    script_free(&script, "part");
    script_free(&script, "a");
    for (int i = 0; i < 5; i++) {
        script_call(&script, "b", "zeros", "(4) :int64");
        script_call(&script, "b", "set_const_val", "b 77");
    }
    script_download(&script, "b");
    script_segment_end(&script);
    run_both(&script, &results);
    expect_results(&results, 18, VALUES(1, 2, 3, 4, 9, 9, 9, 9, 8, 8, 9, 8, 9, 8, 77, 77, 77, 77));
    script_results_release(&results);
}

/* Uploads do not wait for the compute queue: one must not overtake the steps that still use memory
 * that was released. */
static void uploads_do_not_overtake(void **state)
{
    (void)state;
    enum { COUNT = 40000, ROUNDS = 12 }; /* above what is copied aside */
    struct script script = {0};
    struct script_results results;
    int64_t *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    script_call(&script, "sum", "zeros", "(40000) :int64");
    for (int64_t round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < COUNT; i++)
            values[i] = round * 1000 + i % 7;
        script_upload(&script, "a", DTYPE_INT64, 1, VALUES(COUNT), values);
        for (int i = 0; i < 5; i++)
            script_call(&script, "a", "_modmul_tcc", "a 3 1000003 a");
        script_call(&script, "sum", "_modsum_ttc", "sum a 1000003 sum");
        script_free(&script, "a");
    }
    script_download(&script, "sum");
    run_both(&script, &results);
    assert_int_equal(results.count, COUNT);
    script_results_release(&results);
    free(values);
}

/* Transforms by the tables of all moduli, then of some, the first ones or not, or by moduli that
 * are not the table's, before and after one of them has changed. */
static void twiddles_of_some_moduli(void **state)
{
    (void)state;
    enum { K = 4, N = 256 };
    static const char *const slices[] = {"[0:4:1]", "[0:2:1]", "[0:3:2]", "[1:3:1]", "[2:4:1]"};
    static int64_t values[K * N], inputs[2 * N];
    struct random random = {0x7a1d};
    struct script script = {0};
    struct script_results results;
    for (int i = 0; i < K * N; i++)
        values[i] = random_value(&random, DTYPE_INT64);
    for (int i = 0; i < 2 * N; i++)
        inputs[i] = random_value(&random, DTYPE_INT64);
    script_upload(&script, "all", DTYPE_INT64, 4, VALUES(1, N, 1, K), values);
    script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, N, 1, 2), inputs);
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(K), VALUES(12289, 97, 65537, 40961));
    script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(K, N), values);
    script_call(&script, "whole", "empty", "(1,256,1,4) :int64");
    script_call(&script, "out", "empty", "(1,256,1,2) :int64");
    for (int round = 0; round < 2; round++) {
        script_call(&script, "whole", "ntt", "all none none q psi whole 0 1");
        script_download(&script, "whole");
        for (int of_q = 1; of_q < 5; of_q++)
            for (int of_psi = 1; of_psi < 5; of_psi++) {
                char text[64];
                snprintf(text, sizeof text, "q %s", slices[of_q]);
                script_call(&script, "some_q", "get_slice", text);
                snprintf(text, sizeof text, "psi %.6s,0:256:1]", slices[of_psi]);
                script_call(&script, "some_psi", "get_slice", text);
                script_call(&script, "out", "ntt", "a none none some_q some_psi out 0 1");
                script_download(&script, "out");
            }
        script_call(&script, "one", "get_slice", round ? "psi [0:1:1,0:256:1]" : "q [1:2:1]");
        script_call(&script, "one", "set_const_val", "one 31");
    }
    run_both(&script, &results);
    script_results_release(&results);
}

/* ---------------------------------------------------------------- repetitions and memory */

static void write_mixed_script(struct script *script)
{
    int64_t values[64];
    struct random random = {0x5c21};
    for (int i = 0; i < 64; i++)
        values[i] = random_value(&random, DTYPE_INT64);
    script_segment_start(script, "first");
    script_upload(script, "a", DTYPE_INT64, 4, VALUES(2, 8, 2, 2), values);
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_upload(script, "psi", DTYPE_INT64, 2, VALUES(2, 8), values + 7);
    script_upload(script, "n_inv", DTYPE_INT64, 1, VALUES(2), values + 3);
    script_upload(script, "perm", DTYPE_INT32, 1, VALUES(8), VALUES(0, 4, 2, 6, 1, 5, 3, 7));
    script_segment_end(script);
    script_segment_start(script, "second");
    script_call(script, "out", "empty", "(2,8,2,2) :int64");
    script_call(script, "out", "ntt", "a perm none q psi out 0 0");
    script_download(script, "out");
    script_call(script, "out", "intt", "out perm none q none none psi n_inv out 0");
    script_call(script, "sum", "empty", "(8,2,2) :int64");
    script_call(script, "sum", "axis_modsum", "out 0 q sum");
    script_call(script, "digits", "empty", "(8,2,2,3) :int8");
    script_call(script, "digits", "apply_g_decomp", "sum 3 2 digits");
    script_download(script, "digits");
    script_call(script, "a", "_modmul_ttt", "a a q a"); /* what was uploaded is changed */
    script_segment_end(script);
    script_download(script, "a");
}

static uint64_t reference_dropped_digits(const struct script *script)
{
    struct executor *executor = NULL;
    struct script_results results = {0};
    OK(reference_executor_create(script->plan, &executor, &error));
    OK(script_run(script, executor, &results, &error));
    uint64_t dropped = executor->dropped_digits;
    executor->class->destroy(executor);
    script_results_release(&results);
    return dropped;
}

static void runs_repeat(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results first = {0};
    struct executor *executor = NULL;
    write_mixed_script(&script);
    script_plan(&script);
    device_pool_empty(device);
    uint64_t bytes_before = device->bytes_live;
    OK(device_executor_create(device, script.plan, &executor, &error));
    OK(script_run(&script, executor, &first, &error));
    uint64_t bytes_once = 0, dropped = executor->dropped_digits;
    assert_true(dropped > 0);
    assert_int_equal(dropped, reference_dropped_digits(&script)); /* each segment counts its own */
    for (int i = 0; i < 5; i++) {
        struct script_results again = {0};
        OK(executor->class->rewind(executor, 0, &error));
        assert_int_equal(executor->dropped_digits, 0);
        OK(script_run(&script, executor, &again, &error));
        assert_true(script_same_results(&first, &again));
        assert_int_equal(executor->dropped_digits, dropped);
        script_results_release(&again);
        if (i == 1)
            bytes_once = device->bytes_live;
        if (i > 1) /* repetitions take no more memory than one */
            assert_int_equal(device->bytes_live, bytes_once);
    }
    executor->class->destroy(executor);
    device_pool_empty(device);
    assert_int_equal(device->bytes_live, bytes_before);
    assert_int_equal(device->bytes_pooled, 0);
    script_results_release(&first);
    script_release(&script);
}

/* A tensor that was never written can be read: its values are undefined, nothing else is. */
static void unwritten_tensors(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results = {0};
    script_call(&script, "a", "empty", "(4) :int64");
    script_call(&script, "none_at_all", "empty", "(4,0) :int64");
    script_download(&script, "a");
    script_download(&script, "none_at_all");
    script_call(&script, "b", "empty", "(4) :int64");
    script_call(&script, "b", "_modmul_tcc", "a 0 7 b");
    script_download(&script, "b");
    script_plan(&script);
    OK(script_run_on(&script, device, &results, &error));
    assert_int_equal(results.results, 3);
    assert_int_equal(results.count, 8);
    assert_memory_equal(results.values + 4, VALUES(0, 0, 0, 0), 4 * sizeof(int64_t));
    script_results_release(&results);
    script_release(&script);
}

/* Moduli that are views of the same elements, each with a table of 2 MiB: not all tables are kept,
 * and those that are taken again are right. */
static void few_tables_are_kept(void **state)
{
    (void)state;
    enum { N = 65536, VIEWS = 50, TABLE = N * sizeof(struct modulus) };
    struct script script = {0};
    struct script_results results = {0}, expected = {0};
    struct executor *executor = NULL;
    char index[64];
    int64_t *moduli = malloc((N + VIEWS) * sizeof *moduli);
    assert_non_null(moduli);
    for (int64_t i = 0; i < N + VIEWS; i++)
        moduli[i] = 1000 + i;
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(N + VIEWS), moduli);
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(N), moduli);
    free(moduli);
    script_call(&script, "out", "empty", "(65536) :int64");
    for (int i = 0; i < VIEWS + 2; i++) {
        snprintf(index, sizeof index, "q [%d:%d:1]", i % VIEWS, i % VIEWS + N);
        script_call(&script, "part", "get_slice", index);
        script_call(&script, "a", "_modmul_ttt", "a a part a");
    }
    script_download(&script, "a");
    script_plan(&script);
    OK(script_run_on(&script, NULL, &expected, &error));
    OK(device_executor_create(device, script.plan, &executor, &error));
    OK(script_run(&script, executor, &results, &error));
    assert_true(script_same_results(&results, &expected));
    const struct derived_cache *kept = &device_executor_launcher(executor)->cache;
    assert_true(VIEWS * (uint64_t)TABLE > (64 << 20) + 4 * script.plan->bytes_peak + 2 * TABLE);
    assert_true(kept->bytes <= (64 << 20) + 4 * script.plan->bytes_peak + 2 * TABLE);
    executor->class->destroy(executor);
    script_results_release(&results);
    script_results_release(&expected);
    script_release(&script);
}

/* Each of many views has a table of its own, found again, and gone with the tensor. */
static void many_tables(void **state)
{
    (void)state;
    enum { VIEWS = 500 };
    struct script script = {0};
    struct script_results results = {0};
    struct executor *executor = NULL;
    char index[64];
    int64_t moduli[VIEWS], expected[2 * VIEWS];
    for (int64_t i = 0; i < VIEWS; i++) {
        moduli[i] = 3 + 7 * i;
        expected[i] = expected[VIEWS + i] = 1000003 % moduli[i];
    }
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(VIEWS), moduli);
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(1), VALUES(1000003));
    script_call(&script, "out", "empty", "(1) :int64");
    for (int i = 0; i < 2 * VIEWS; i++) {
        snprintf(index, sizeof index, "q [%d:%d:1]", i % VIEWS, i % VIEWS + 1);
        script_call(&script, "part", "get_slice", index);
        script_call(&script, "out", "_mod_tt", "a part out");
        script_download(&script, "out");
    }
    script_segment_start(&script, "after");
    script_free(&script, "part");
    script_free(&script, "q");
    script_segment_end(&script);
    script_plan(&script);
    OK(device_executor_create(device, script.plan, &executor, &error));
    const struct derived_cache *kept = &device_executor_launcher(executor)->cache;
    struct result_sink sink = script_sink(&results);
    OK(executor->class->run_segment(executor, &script.plan->segments[0], &sink, &error));
    expect_results(&results, 2 * VIEWS, expected);
    assert_true(kept->bytes >= VIEWS * sizeof(struct modulus));
    OK(executor->class->run_segment(executor, &script.plan->segments[1], &sink, &error));
    assert_int_equal(kept->bytes, 0);
    executor->class->destroy(executor);
    script_results_release(&results);
    script_release(&script);
}

/* Calls of a sink: the results' sizes, negative for a call without data. */
struct given {
    int64_t sizes[8];
    size_t count;
};

static enum healcl_status note_given(void *context, const struct step *step, const void *data,
                                     struct healcl_error *failure)
{
    struct given *given = context;
    int64_t size = layout_elements(&step->in[0]->layout);
    (void)failure;
    assert_true(given->count < 8);
    given->sizes[given->count++] = data ? size : -size;
    return HEALCL_OK;
}

static bool wants_few(void *context, const struct step *step)
{
    (void)context;
    return layout_elements(&step->in[0]->layout) < 10;
}

/* A result that nobody looks at is not packed: this one would take 8 TB. Others come in order. */
static void unwanted_results(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, -((int64_t)1 << 40), 3, -10, 1};
    struct script script = {0};
    script_call(&script, "a", "zeros", "(1) :int64");
    script_call(&script, "endless", "expand", "a 0 1099511627776");
    script_call(&script, "few", "expand", "a 0 3");
    script_call(&script, "ten", "zeros", "(10) :int64");
    script_download(&script, "a");
    script_download(&script, "endless");
    script_download(&script, "few");
    script_download(&script, "ten");
    script_download(&script, "a");
    script_plan(&script);
    for (int on_device = 0; on_device < 2; on_device++) {
        struct given given = {.count = 0};
        const struct result_sink sink = {
            .context = &given, .take = note_given, .wants_data = wants_few};
        struct executor *executor = NULL;
        if (on_device)
            OK(device_executor_create(device, script.plan, &executor, &error));
        else
            OK(reference_executor_create(script.plan, &executor, &error));
        OK(executor->class->run_segment(executor, &script.plan->segments[0], &sink, &error));
        assert_int_equal(given.count, sizeof sizes / sizeof *sizes);
        assert_memory_equal(given.sizes, sizes, sizeof sizes);
        executor->class->destroy(executor);
    }
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_short_rows),
        cmocka_unit_test(moduli_change),
        cmocka_unit_test(twiddles_change),
        cmocka_unit_test(twiddles_of_some_moduli),
        cmocka_unit_test(permutations_change),
        cmocka_unit_test(checks_change),
        cmocka_unit_test(crt_moduli_change),
        cmocka_unit_test(results_are_snapshots),
        cmocka_unit_test(uploads_do_not_overtake),
        cmocka_unit_test(runs_repeat),
        cmocka_unit_test(unwritten_tensors),
        cmocka_unit_test(few_tables_are_kept),
        cmocka_unit_test(many_tables),
        cmocka_unit_test(unwanted_results),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
