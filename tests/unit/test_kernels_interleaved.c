/*
 * Elementwise operations and sums where elements lie together only by ones, twos or fours
 * (cl/modular/interleaved.cl), against the host reference: components of ciphertexts, operands that
 * repeat, are turned, or are scalars, in place, moduli that are the same or not, all around whole
 * vectors.
 */
#include "helper_calls.h"
#include "helper_share.h"

static const enum dtype dtypes[] = {DTYPE_INT32, DTYPE_INT64};

/* Numbers of rows: less than fill a vector, one more, a few blocks; products are above
 * INTERLEAVED_MIN. */
static const int64_t sizes[] = {16, 17, 511, 512, 513, 1027};
enum { SIZES = sizeof sizes / sizeof *sizes, MODULI_MAX = 1040 };

/* Moduli, of up to the dtype's largest. */
static void upload_moduli(struct script *script, const char *name, enum dtype dtype, int64_t k)
{
    int64_t values[MODULI_MAX];
    assert_true(k <= MODULI_MAX);
    for (int64_t i = 0; i < k; i++) {
        int64_t largest = dtype == DTYPE_INT32 ? INT32_MAX : INT64_MAX;
        values[i] = random_between(&generator, 1, largest >> random_between(&generator, 0, 20));
    }
    script_upload(script, name, dtype, 1, &k, values);
}

/* All operations on operands a and b that are there; q: "q" or "one". */
static void call_all(struct script *script, const char *a, const char *b, const char *q,
                     const char *out)
{
    call(script, NULL, "modmul_ttt", "%s %s %s %s", a, b, q, out);
    script_download(script, "all");
    call(script, NULL, "modsum_ttt", "%s %s %s %s", b, a, q, out);
    script_download(script, "all");
    call(script, NULL, "modneg_tt", "%s %s %s", a, q, out);
    script_download(script, "all");
    call(script, NULL, "mod_tt", "%s %s %s", a, q, out);
    script_download(script, "all");
    call(script, NULL, "modmul_tct", "%s -12345 %s %s", a, q, out);
    script_download(script, "all");
    call(script, NULL, "modsum_ttt", "%s %s %s %s", out, a, q, out); /* in place */
    script_download(script, "all");
}

/* out: a component of [l,n,2,k]; a: one of another tensor, or all of one; b: a row for all. */
static void check_components(enum dtype dtype, int64_t n, int64_t k)
{
    struct script script = {0};
    char what[96];
    int l = (int)(2100 / (n * k) + 2), rows = (int)n, width = (int)k;
    snprintf(what, sizeof what, "%s [%d,%d,2,%d]", dtype_name(dtype), l, rows, width);
    upload(&script, "all", dtype, 4, VALUES(l, n, 2, k));
    upload(&script, "other", dtype, 4, VALUES(l, n, 2, k));
    upload(&script, "whole", dtype, 3, VALUES(l, n, k));
    upload(&script, "row", dtype, 3, VALUES(l, 1, k));
    upload(&script, "turned", dtype, 3, VALUES(l, k, n));
    upload_moduli(&script, "q", dtype, k);
    upload_moduli(&script, "one", dtype, 1);
    call(&script, "out", "get_slice", "all [0:%d:1,0:%d:1,1,0:%d:1]", l, rows, width);
    call(&script, "a", "get_slice", "other [0:%d:1,0:%d:1,0,0:%d:1]", l, rows, width);
    call(&script, "b", "moveaxis", "turned 1 2");
    call_all(&script, "a", "row", "q", "out");
    call_all(&script, "whole", "a", "q", "out");
    call_all(&script, "b", "whole", "q", "out");
    call_all(&script, "out", "b", "one", "out");
    upload_moduli(&script, "many", dtype, n);
    call(&script, "each", "unsqueeze", "many 1");
    call_all(&script, "a", "whole", "each", "out"); /* moduli that differ from row to row */
    expect_same(&script, what);
}

static void components(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < SIZES; i++)
            for (int64_t k = 1; k <= 4; k++)
                check_components(dtypes[d], sizes[i], k);
    static const int64_t rows[] = {7, 8, 9, 12, 23, 30, 41}; /* of vectors, and what is left */
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 7; i++)
            check_components(dtypes[d], sizes[rows[i] == 23 ? 4 : i % 2], rows[i]);
}

/* Summands of sums of products: below 2^62, the fast path; one that is not; or any. */
enum summands { SMALL, ONE_ODD, ANY, SUMMANDS };

static void upload_summands(struct script *script, const char *name, enum dtype dtype,
                            enum summands summands, uint32_t rank, const int64_t *shape)
{
    const int64_t most = dtype == DTYPE_INT32 ? INT32_MAX : ((int64_t)1 << 62) - 1;
    const int64_t odd[] = {-1, -most - 1, dtype == DTYPE_INT32 ? -2 : most + 1};
    int64_t count = 1;
    if (summands == ANY) {
        upload(script, name, dtype, rank, shape);
        return;
    }
    for (uint32_t axis = 0; axis < rank; axis++)
        count *= shape[axis];
    int64_t *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = most - random_between(&generator, 0, random_once_in(&generator, 3) ? 3 : most);
    if (summands == ONE_ODD)
        values[random_between(&generator, 0, count - 1)] = odd[random_between(&generator, 0, 2)];
    script_upload(script, name, dtype, rank, shape, values);
    free(values);
}

/* Base conversions: residues [l,n,s], with places between them, times weights [s,k], which all rows
 * share, into one component of [l,n,2,k], or into [l,k,n]; and with n for the reps, too. */
static void check_conversion(enum dtype dtype, int64_t n, int64_t s, int64_t k,
                             enum summands summands)
{
    struct script script = {0};
    char what[96];
    int l = 2, rows = (int)n, terms = (int)s, width = (int)k;
    const int odd = (int)random_between(&generator, 0, 3);
    snprintf(what, sizeof what, "%s, n %d, s %d, k %d, summands %d", dtype_name(dtype), rows, terms,
             width, (int)summands);
    upload_summands(&script, "more", dtype, odd == 0 ? SMALL : summands, 3, VALUES(l, n, s + 1));
    upload_summands(&script, "weights", dtype, odd == 1 ? SMALL : summands, 2, VALUES(s, k));
    upload_summands(&script, "all", dtype, odd == 2 ? SMALL : summands, 4, VALUES(l, n, 2, k));
    upload_summands(&script, "rows", dtype, odd == 2 ? SMALL : summands, 3, VALUES(l, k, n));
    upload_moduli(&script, "q", dtype, k);
    call(&script, "x", "get_slice", "more [0:%d:1,0:%d:1,1:%d:1]", l, rows, terms + 1);
    call(&script, "x", "unsqueeze", "x -1"); /* [l,n,s,1] */
    call(&script, "x", "expand", "x -1 %d", width);
    call(&script, "w", "unsqueeze", "weights 0");
    call(&script, "w", "expand", "w 0 %d", rows); /* [n,s,k] */
    call(&script, "out", "get_slice", "all [0:%d:1,0:%d:1,1,0:%d:1]", l, rows, width);
    call(&script, NULL, "modmul_axis_sum", "x w q none none none out 0 -3");
    script_download(&script, "all");
    call(&script, "turned", "moveaxis", "rows 1 2");
    call(&script, NULL, "modmul_axis_sum", "x w q none none none turned 0 -3");
    script_download(&script, "rows");
    /* [l n,1,s,k], [1,s,k] and [l n,1,k] */
    call(&script, "x", "get_slice", "more [0,0:%d:1,1:%d:1]", rows, terms + 1);
    call(&script, "x", "unsqueeze", "x 1");
    call(&script, "x", "unsqueeze", "x -1");
    call(&script, "x", "expand", "x -1 %d", width);
    call(&script, "w", "unsqueeze", "weights 0");
    call(&script, "out", "get_slice", "all [1,0:%d:1,0,0:%d:1]", rows, width);
    call(&script, "out", "unsqueeze", "out 1");
    call(&script, NULL, "modmul_axis_sum", "x w q none none none out 0 -3");
    script_download(&script, "all");
    expect_same(&script, what);
}

static void conversions(void **state)
{
    (void)state;
    static const int64_t ns[] = {8, 12, 72, 200}, ks[] = {1, 2, 3, 4, 5, 9, 29};
    static const int64_t terms[] = {1, 2, 5, 66}; /* more than are packed at a time */
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 7; j++)
                for (int t = 0; t < 4; t++)
                    if (ns[i] * terms[t] <= 1000)
                        check_conversion(dtypes[d], ns[i], terms[t], ks[j],
                                         (enum summands)((i + j + t) % SUMMANDS));
    check_conversion(DTYPE_INT64, 16, 66, 3, SMALL); /* that many of more vectors than one */
}

/* Rows of products through a permutation that reverses bits, but for two entries where it is not to
 * be that, into every other row. The fast way is for out and b in order. */
static void check_reversed(enum dtype dtype, int64_t n, int64_t reps, int64_t s, bool is_one,
                           enum summands summands)
{
    struct script script = {0};
    char what[96];
    const int64_t k = 2;
    int64_t *perm = malloc((size_t)n * sizeof *perm);
    assert_non_null(perm);
    for (int64_t i = 0; i < n; i++) {
        perm[i] = 0;
        for (int64_t bit = 1, to = n / 2; bit < n; bit *= 2, to /= 2)
            perm[i] |= i & bit ? to : 0;
    }
    if (!is_one) {
        int64_t first = perm[n - 1];
        perm[n - 1] = perm[n - 2];
        perm[n - 2] = first;
    }
    snprintf(what, sizeof what, "%s, reversed %d, n %d, reps %d, s %d, summands %d",
             dtype_name(dtype), is_one, (int)n, (int)reps, (int)s, (int)summands);
    upload_summands(&script, "a", dtype, summands, 4, VALUES(reps, s, k, n));
    upload_summands(&script, "b", dtype, summands, 3, VALUES(s, k, n));
    upload_summands(&script, "all", dtype, summands, 4, VALUES(reps, k, 2, n));
    upload_moduli(&script, "q", dtype, k);
    script_upload(&script, "perm", DTYPE_INT64, 1, &n, perm);
    call(&script, "out", "get_slice", "all [0:%d:1,0:2:1,1,0:%d:1]", (int)reps, (int)n);
    call(&script, NULL, "modmul_axis_sum", "a b q none none perm out 1");
    script_download(&script, "all");
    if (n == 512) { /* elements of out, or of b, that are apart */
        upload_summands(&script, "wide", dtype, SMALL, 3, VALUES(reps, k, 2 * n));
        call(&script, "apart", "get_slice", "wide [0:%d:1,0:2:1,1:%d:2]", (int)reps, 2 * (int)n);
        call(&script, NULL, "modmul_axis_sum", "a b q none none perm apart 1");
        script_download(&script, "wide");
        upload_summands(&script, "spread", dtype, SMALL, 3, VALUES(s, k, 2 * n));
        call(&script, "apart", "get_slice", "spread [0:%d:1,0:2:1,1:%d:2]", (int)s, 2 * (int)n);
        call(&script, NULL, "modmul_axis_sum", "a apart q none none perm out 1");
        script_download(&script, "all");
    }
    expect_same(&script, what);
    free(perm);
}

static void reversed_bits(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int64_t n = 256; n <= 2048; n *= 2)
            for (int64_t reps = 1; reps <= 3; reps++)
                for (int summands = 0; summands < SUMMANDS; summands++) {
                    int64_t s = reps == 1 ? 33 : 3; /* more than are packed at a time */
                    bool is_one = !random_once_in(&generator, 4);
                    check_reversed(dtypes[d], n, reps, s, is_one, (enum summands)summands);
                }
}

/* Products by one factor of either sign, modulo one number, at the ends of their ranges. */
static void one_factor(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct script script = {0};
        const int64_t most = d == 0 ? INT32_MAX : INT64_MAX, three = 3;
        const int64_t moduli[] = {1, 2, 97, most / 2, most - 1, most};
        const int64_t factors[] = {-most - 1, -most, -12345, -1, 0, 1, 98, most - 1, most};
        script_upload(&script, "ends", dtypes[d], 1, &three, VALUES(-most - 1, most, most - 1));
        upload(&script, "a", dtypes[d], 3, VALUES(5, 7, 3));
        upload(&script, "out", dtypes[d], 3, VALUES(7, 5, 3));
        upload(&script, "products", dtypes[d], 1, &three);
        call(&script, "turned", "moveaxis", "a 0 1");
        for (size_t i = 0; i < sizeof moduli / sizeof *moduli; i++)
            for (size_t j = 0; j < sizeof factors / sizeof *factors; j++) {
                call(&script, NULL, "modmul_tcc", "turned %" PRId64 " %" PRId64 " out", factors[j],
                     moduli[i]);
                script_download(&script, "out");
                call(&script, NULL, "modmul_tcc", "ends %" PRId64 " %" PRId64 " products",
                     factors[j], moduli[i]);
                script_download(&script, "products");
            }
        expect_same(&script, dtype_name(dtypes[d]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components),
        cmocka_unit_test(conversions),
        cmocka_unit_test(reversed_bits),
        cmocka_unit_test(one_factor),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
