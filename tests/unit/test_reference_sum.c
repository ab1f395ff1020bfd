/* axis_modsum and modmul_axis_sum of the reference. */
#include "test_reference_fixture.h"

static struct step axis_modsum(const struct tensor *a, int64_t axis, const struct tensor *q,
                               const struct tensor *out)
{
    struct step step = new_step(STEP_AXIS_MODSUM, form_named("axis_modsum", 4), out);
    set_input(&step, 0, "a", a);
    set_input(&step, 1, "q", q);
    step.value[0] = axis;
    return step;
}

/* q [k] in the shape of out, as the plan gives it. */
static struct tensor *along_last(struct fixture *f, const struct tensor *q,
                                 const struct tensor *out)
{
    struct layout layout;
    assert_int_equal(layout_broadcast(&q->layout, &out->layout, &layout, &f->error), HEALCL_OK);
    return view(f, q, layout);
}

static void test_axis_modsum(void **state)
{
    struct fixture *f = *state;
    struct tensor *a =
        filled(f, DTYPE_INT64, SHAPE(2, 3, 2), VALUES(1, 2, 3, 4, 5, 6, -7, -8, -9, -10, -11, -12));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(5, 7));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(3, 2));
    struct step step = axis_modsum(a, 0, along_last(f, q, out), out);
    run_step(f, &step); /* -6 throughout */
    expect(f, out, VALUES(4, 1, 4, 1, 4, 1));

    struct tensor *pairs = zeros(f, DTYPE_INT64, SHAPE(2, 2));
    step = axis_modsum(a, 1, along_last(f, q, pairs), pairs);
    run_step(f, &step); /* 9, 12, -27, -30 */
    expect(f, pairs, VALUES(4, 5, 3, 5));
}

static void test_axis_modsum_extremes(void **state)
{
    struct fixture *f = *state;
    const int64_t min = INT64_MIN, max = INT64_MAX;
    struct tensor *a =
        filled(f, DTYPE_INT64, SHAPE(4, 2), VALUES(min, max, min, max, min, max, min, max));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(max, max - 1));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(2));
    struct step step = axis_modsum(a, 0, q, out);
    run_step(f, &step); /* -4 and 4 */
    expect(f, out, VALUES(max - 4, 4));

    /* 2^40 times the same element: only possible as a view, and too long to run; 2^12 do. */
    struct layout repeated = {.rank = 2, .shape = {4096, 2}, .stride = {0, 1}};
    step = axis_modsum(view(f, a, repeated), 0, q, out);
    run_step(f, &step);
    expect(f, out, VALUES(max - 4096, 4096));
}

static void test_axis_modsum_of_no_terms(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT32, SHAPE(0, 2));
    struct tensor *q = filled(f, DTYPE_INT32, SHAPE(2), VALUES(5, 7));
    struct tensor *out = filled(f, DTYPE_INT32, SHAPE(2), VALUES(-1, -1));
    struct step step = axis_modsum(a, 0, q, out);
    run_step(f, &step);
    expect(f, out, VALUES(0, 0));
}

static void test_axis_modsum_refusal(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(2, 3, 2));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(5, 0));
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(3, 2), VALUES(9, 9, 9, 9, 9, 9));
    struct step step = axis_modsum(a, 0, along_last(f, q, out), out);
    expect_refusal(f, &step, "argument 'q': 0 at [1] is below 1");
    expect(f, out, VALUES(9, 9, 9, 9, 9, 9));
}

static struct step modmul_axis_sum(const struct tensor *a, const struct tensor *b,
                                   const struct tensor *q, const struct tensor *perm,
                                   const struct tensor *out)
{
    struct step step = new_step(STEP_MODMUL_AXIS_SUM, form_named("modmul_axis_sum", 8), out);
    set_input(&step, 0, "a", a);
    set_input(&step, 1, "b", b);
    set_input(&step, 2, "q", q);
    if (perm)
        set_input(&step, 3, "perm", perm);
    return step;
}

static void test_modmul_axis_sum(void **state)
{
    struct fixture *f = *state;
    /* reps 1, s 2, k 1, n 3 */
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(1, 2, 1, 3), VALUES(1, 2, 3, 4, 5, 6));
    struct tensor *b = filled(f, DTYPE_INT32, SHAPE(2, 1, 3), VALUES(10, 20, 30, -1, -2, -3));
    struct tensor *q = filled(f, DTYPE_INT32, SHAPE(1), VALUES(1000));
    struct tensor *out = filled(f, DTYPE_INT32, SHAPE(1, 1, 3), VALUES(0, -100, 2999));
    struct step step = modmul_axis_sum(a, b, q, NULL, out);
    run_step(f, &step); /* 10-4, 40-10, 90-18 */
    expect(f, out, VALUES(6, 930, 71));

    /* 0 to 1, 1 to 2, 2 to 0: m = 1: 20*1 - 2*4; m = 2: 30*2 - 3*5; m = 0: 10*3 - 1*6 */
    struct tensor *perm = filled(f, DTYPE_INT64, SHAPE(3), VALUES(1, 2, 0));
    put(f, out, VALUES(0, 0, 0));
    step = modmul_axis_sum(a, b, q, perm, out);
    run_step(f, &step);
    expect(f, out, VALUES(24, 12, 45));
    run_step(f, &step);
    expect(f, out, VALUES(48, 24, 90));
}

static void test_modmul_axis_sum_of_no_terms(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(1, 0, 1, 2));
    struct tensor *b = zeros(f, DTYPE_INT64, SHAPE(0, 1, 2));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(1), VALUES(10));
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(1, 1, 2), VALUES(-3, 25));
    struct step step = modmul_axis_sum(a, b, q, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(7, 5));
}

static void test_modmul_axis_sum_refusals(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(1, 1, 2, 4));
    struct tensor *b = zeros(f, DTYPE_INT64, SHAPE(1, 2, 4));
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(5, -5));
    struct tensor *perm = filled(f, DTYPE_INT32, SHAPE(4), VALUES(3, 1, 3, 4));
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(1, 2, 4), VALUES(9, 9, 9, 9, 9, 9, 9, 9));
    struct step step = modmul_axis_sum(a, b, q, perm, out);
    expect_refusal(f, &step, "argument 'q': -5 at [1] is below 1");
    put(f, q, VALUES(5, 5));
    expect_refusal(f, &step, "argument 'perm': 3 at [2] repeats an earlier entry");
    put(f, perm, VALUES(3, 4, 3, 0));
    expect_refusal(f, &step, "argument 'perm': 4 at [1] is outside of [0, 4)");
    put(f, perm, VALUES(3, 2, -1, 0));
    expect_refusal(f, &step, "argument 'perm': -1 at [2] is outside of [0, 4)");
    expect(f, out, VALUES(9, 9, 9, 9, 9, 9, 9, 9));
}

/* Strided views as those of axis -3, any values, against the formula on slow products. */
static void test_modmul_axis_sum_random(void **state)
{
    (void)state;
    uint64_t seed = 77;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 60; round++) {
        struct fixture *f;
        setup((void **)&f);
        enum { REPS = 2, S = 3, K = 2, N = 4 };
        enum dtype dtype = round % 2 ? DTYPE_INT32 : DTYPE_INT64;
        int64_t va[REPS * N * S * K], vb[N * S * K], vout[REPS * N * K], vq[K], vperm[N];
        for (size_t i = 0; i < sizeof va / sizeof *va; i++)
            va[i] = random_value(&seed, dtype);
        for (size_t i = 0; i < sizeof vb / sizeof *vb; i++)
            vb[i] = random_value(&seed, dtype);
        for (size_t i = 0; i < sizeof vout / sizeof *vout; i++)
            vout[i] = random_value(&seed, dtype);
        for (int j = 0; j < K; j++) {
            vq[j] = random_value(&seed, dtype);
            vq[j] = vq[j] < 1 ? 1 + (vq[j] & 0xffff) : vq[j];
        }
        for (int l = 0; l < N; l++) {
            int other = (int)(random_bits(&seed) % (uint64_t)(l + 1));
            vperm[l] = vperm[other];
            vperm[other] = l;
        }
        struct tensor *a = filled(f, dtype, SHAPE(REPS, N, S, K), va);
        struct tensor *b = filled(f, dtype, SHAPE(N, S, K), vb);
        struct tensor *q = filled(f, dtype, SHAPE(K), vq);
        struct tensor *perm = filled(f, DTYPE_INT64, SHAPE(N), vperm);
        struct tensor *out = filled(f, dtype, SHAPE(REPS, N, K), vout);
        bool permuted = round % 3 != 0;
        struct step step = modmul_axis_sum(view(f, a, layout_move_axis(&a->layout, 1, 3)),
                                           view(f, b, layout_move_axis(&b->layout, 0, 2)), q,
                                           permuted ? perm : NULL,
                                           view(f, out, layout_move_axis(&out->layout, 1, 2)));
        run_step(f, &step);
        for (int r = 0; r < REPS; r++)
            for (int l = 0; l < N; l++)
                for (int j = 0; j < K; j++) {
                    int64_t m = permuted ? vperm[l] : l;
                    int64_t *to = &vout[(r * N + m) * K + j];
                    *to = slow_reduce(*to, vq[j]);
                    for (int i = 0; i < S; i++) {
                        int64_t x = slow_reduce(va[((r * N + l) * S + i) * K + j], vq[j]);
                        int64_t y = slow_reduce(vb[(m * S + i) * K + j], vq[j]);
                        *to = slow_add(*to, slow_multiply(x, y, vq[j]), vq[j]);
                    }
                }
        expect(f, out, vout);
        teardown((void **)&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_axis_modsum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_axis_modsum_extremes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_axis_modsum_of_no_terms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_axis_modsum_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modmul_axis_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modmul_axis_sum_of_no_terms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_modmul_axis_sum_refusals, setup, teardown),
        cmocka_unit_test(test_modmul_axis_sum_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
