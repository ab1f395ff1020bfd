/*
 * Calls large enough that the executor cuts them up, against the host reference: transforms whose
 * rows do not fit the scratch memory at one time, rows with gaps between them, tables at their
 * limits, permutations of many entries.
 */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "helper_share.h"
#include "tools/random.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

static int64_t *random_values(struct random *random, int64_t count)
{
    int64_t *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = random_value(random, DTYPE_INT64);
    return values;
}

/* On both executors. tuning: NULL, or of the device. */
static void expect_same(struct script *script, const char *tuning)
{
    struct script_results expected = {0}, results = {0};
    struct healcl_device *device = NULL;
    if (tuning)
        setenv("HEALCL_TUNING", tuning, 1);
    else
        unsetenv("HEALCL_TUNING");
    script_plan(script);
    OK(script_run_on(script, NULL, &expected, &error));
    OK(helper_open_tested(helper_loader(), &device, &error));
    OK(script_run_on(script, device, &results, &error));
    assert_true(script_same_results(&results, &expected));
    healcl_device_close(device);
    script_results_release(&expected);
    script_results_release(&results);
    script_release(script);
}

/* 36 rows of 2^18 residues take 72 MB: more than are worked on at one time, in parts that begin
 * with another modulus. The input is small and repeated. */
static void many_rows(void **state)
{
    (void)state;
    enum { N = 1 << 18, K = 3 };
    static const char *const tunings[] = {"general", NULL};
    struct random random = {0x1a86e};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        int64_t *values = random_values(&random, K * N), *perm = random_values(&random, N);
        random_fill_permutation(&random, DTYPE_INT64, N, perm);
        script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(K, N), values);
        script_upload(&script, "row", DTYPE_INT64, 4, VALUES(1, 1, 1, N), values + 5);
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(N), perm);
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(K),
                      VALUES(INT64_MAX - 24, 65537, (1LL << 61) - 1));
        script_upload(&script, "n_inv", DTYPE_INT64, 1, VALUES(K), values);
        script_call(&script, "rows", "expand", "row 0 12");
        script_call(&script, "out", "empty", "(12,1,3,262144) :int64");
        script_call(&script, "out", "ntt", "rows -1 perm none q none none psi out 1 0");
        script_call(&script, "some", "get_slice", "out [0:12:4,0:1:1,0:3:1,0:262144:7]");
        script_download(&script, "some");
        script_call(&script, "out", "intt", "out -1 perm none q none none psi n_inv out 0");
        script_download(&script, "some");
        script_call(&script, "last", "get_slice", "out [11]");
        script_download(&script, "last");
        free(values);
        free(perm);
        expect_same(&script, tunings[i]);
    }
}

/* Rows with k moduli side by side, but a gap after them, as in a slice. */
static void rows_with_gaps(void **state)
{
    (void)state;
    enum { N = 512, R = 3, K = 4, USED = 3 };
    struct random random = {0x6a9};
    struct script script = {0};
    int64_t *values = random_values(&random, N * R * K);
    script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, N, R, K), values);
    script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(USED, N), values + 7);
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(USED),
                  VALUES((1LL << 62) - 57, 65537, (1LL << 61) - 1));
    script_call(&script, "rows", "get_slice", "a [0:1:1,0:512:1,0:3:1,0:3:1]");
    script_call(&script, "out", "empty", "(1,512,3,3) :int64");
    script_call(&script, "out", "ntt", "rows -3 none none q none none psi out 0 1");
    script_download(&script, "out");
    script_call(&script, "rows", "ntt", "out -3 none none q none none psi rows 0 1");
    script_download(&script, "a");
    free(values);
    expect_same(&script, NULL);
}

/* Each elementwise operation with as many moduli of a dtype, on two rows of one tensor. */
static void check_moduli(enum dtype dtype, int64_t count, const char *tuning)
{
    static const char *const calls[][2] = {{"_modmul_ttt", "wide a p out"},
                                           {"_modsum_ttt", "wide out p out"},
                                           {"_modneg_tt", "wide p out"},
                                           {"_mod_tt", "wide p out"}};
    struct random random = {0x70d};
    struct script script = {0};
    char shape[64];
    int64_t *moduli = malloc((size_t)count * sizeof *moduli);
    int64_t *values = malloc((size_t)count * sizeof *values);
    assert_true(moduli && values);
    for (int64_t i = 0; i < count; i++) {
        moduli[i] = random_modulus(&random, dtype);
        values[i] = random_value(&random, dtype);
    }
    snprintf(shape, sizeof shape, "(2,%lld) :%s", (long long)count, dtype_name(dtype));
    script_upload(&script, "p", dtype, 1, VALUES(count), moduli);
    script_upload(&script, "a", dtype, 1, VALUES(count), values);
    script_call(&script, "wide", "unsqueeze", "a 0");
    script_call(&script, "wide", "expand", "wide 0 2");
    script_call(&script, "out", "empty", shape);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        script_call(&script, "out", calls[i][0], calls[i][1]);
        script_download(&script, "out");
    }
    free(moduli);
    free(values);
    expect_same(&script, tuning);
}

/* More moduli than the host makes a table of, as many as there are elements in a row. */
static void many_moduli(void **state)
{
    (void)state;
    check_moduli(DTYPE_INT64, (1 << 16) + 1, NULL);
    check_moduli(DTYPE_INT32, (1 << 16) + 1, "general");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(many_rows),
        DEVICE_TEST(rows_with_gaps),
        DEVICE_TEST(many_moduli),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
