/* modmul, modsum, mod, modneg and abs of the reference. */
#include "test_reference_fixture.h"

/* A step with its inputs in the order a, b, p; NULL where the kind lacks one. */
static struct step elementwise(enum step_kind kind, const struct tensor *a, const struct tensor *b,
                               const struct tensor *p, const struct tensor *out)
{
    static const char *const names[] = {[STEP_MODMUL] = "modmul_ttt",
                                        [STEP_MODSUM] = "modsum_ttt",
                                        [STEP_MOD] = "mod_tt",
                                        [STEP_MODNEG] = "modneg_tt",
                                        [STEP_ABS] = "abs"};
    uint32_t parameters = 2u + (b != NULL) + (p != NULL);
    struct step step = new_step(kind, form_named(names[kind], parameters), out);
    set_input(&step, 0, "a", a);
    if (b)
        set_input(&step, 1, "b", b);
    if (p)
        set_input(&step, 2, kind == STEP_MOD ? "b" : "p", p);
    return step;
}

static void test_remainders_have_the_sign_of_the_dividend(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(4), VALUES(7, -7, 7, -7));
    struct tensor *b = filled(f, DTYPE_INT64, SHAPE(4), VALUES(3, 3, -3, -3));
    struct tensor *p = filled(f, DTYPE_INT64, SHAPE(4), VALUES(5, 5, 5, 5));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(4));
    struct step step = elementwise(STEP_MODMUL, a, b, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(1, -1, -1, 1));
    step = elementwise(STEP_MODSUM, a, b, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(0, -4, 4, 0));
    step = elementwise(STEP_MOD, a, NULL, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(2, -2, 2, -2));
    step = elementwise(STEP_MODNEG, a, NULL, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(3, 2, 3, 2));
    step = elementwise(STEP_ABS, a, NULL, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(7, 7, 7, 7));
}

/* Expected values from Python's unlimited integers. */
static void test_extremes(void **state)
{
    struct fixture *f = *state;
    const int64_t min = INT64_MIN, max = INT64_MAX;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(6), VALUES(min, min, max, min, max, min));
    struct tensor *b = filled(f, DTYPE_INT64, SHAPE(6), VALUES(min, max, max, -1, max, min));
    struct tensor *p = filled(f, DTYPE_INT64, SHAPE(6), VALUES(max, max, max - 1, max, 1, 1));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(6));
    struct step step = elementwise(STEP_MODMUL, a, b, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(1, 0, 1, 1, 0, 0));
    step = elementwise(STEP_MODSUM, a, b, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(-2, -1, 2, -2, 0, 0));
    step = elementwise(STEP_MOD, a, NULL, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(-1, -1, 1, -1, 0, 0));
    step = elementwise(STEP_MODNEG, a, NULL, p, out);
    run_step(f, &step);
    expect(f, out, VALUES(1, 1, max - 2, 1, 0, 0));
    step = elementwise(STEP_ABS, a, NULL, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(min, min, max, min, max, min));
}

static void test_int32_with_int64_constants(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(3), VALUES(INT32_MIN, 5, INT32_MAX));
    struct tensor *out = zeros(f, DTYPE_INT32, SHAPE(3));
    int64_t values[] = {INT64_MIN, 1000003, INT64_MAX};
    struct storage constants = {.dtype = DTYPE_INT64, .elements = 3};
    f->plan.constants.storage = &constants;
    f->plan.constants.values = values;
    struct tensor of = {.storage = &constants};
    struct tensor *constant[3];
    for (int i = 0; i < 3; i++)
        constant[i] =
            view(f, &of, (struct layout){.rank = 1, .shape = {3}, .stride = {0}, .offset = i});

    struct step step = elementwise(STEP_MODMUL, a, constant[0], constant[1], out);
    run_step(f, &step);
    expect(f, out, VALUES(394581, -376716, -719239));
    /* A remainder that int32 does not hold wraps. */
    step = elementwise(STEP_MODSUM, a, constant[0], constant[2], out);
    run_step(f, &step);
    expect(f, out, VALUES(2147483647, 5, 2147483647));
    step = elementwise(STEP_ABS, a, NULL, NULL, out);
    run_step(f, &step);
    expect(f, out, VALUES(INT32_MIN, 5, INT32_MAX));
}

static void test_in_place_on_views(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(2, 4), VALUES(10, 11, 12, 13, 14, 15, 16, 17));
    struct layout inner = layout_narrow(&a->layout, 1, 1, 2);
    struct tensor *both = view(f, a, layout_move_axis(&inner, 0, 1)); /* [2, 2] transposed */
    struct tensor *p = filled(f, DTYPE_INT64, SHAPE(2), VALUES(100, 7));
    struct layout broadcast = {.rank = 2, .shape = {2, 2}, .stride = {0, 1}};
    struct step step = elementwise(STEP_MODMUL, both, both, view(f, p, broadcast), both);
    run_step(f, &step);
    expect(f, a, VALUES(10, 21, 44, 13, 14, 1, 4, 17));

    /* out may be p itself. */
    struct tensor *q = filled(f, DTYPE_INT64, SHAPE(2), VALUES(3, 8));
    struct tensor *b = filled(f, DTYPE_INT64, SHAPE(2), VALUES(10, 21));
    step = elementwise(STEP_MOD, b, NULL, q, q);
    run_step(f, &step);
    expect(f, q, VALUES(1, 5));
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(2, 3));
    struct tensor *p = filled(f, DTYPE_INT64, SHAPE(3), VALUES(7, 0, -1));
    struct layout rows = {.rank = 2, .shape = {2, 3}, .stride = {0, 1}};
    struct step step = elementwise(STEP_MODMUL, a, a, view(f, p, rows), out);
    expect_refusal(f, &step, "argument 'p': 0 at [1] is below 1");
    expect(f, out, VALUES(0, 0, 0, 0, 0, 0));

    struct tensor *column = filled(f, DTYPE_INT64, SHAPE(2, 1), VALUES(1, INT64_MIN));
    struct layout columns = {.rank = 2, .shape = {2, 3}, .stride = {1, 0}};
    step = elementwise(STEP_MOD, a, NULL, view(f, column, columns), out);
    expect_refusal(f, &step, "argument 'b': -9223372036854775808 at [1] is below 1");

    struct tensor *full = filled(f, DTYPE_INT64, SHAPE(2, 3), VALUES(1, 1, 1, 1, -3, 0));
    step = elementwise(STEP_MODNEG, a, NULL, full, out);
    expect_refusal(f, &step, "argument 'p': -3 at [1, 1] is below 1");

    struct tensor *scalar = filled(f, DTYPE_INT64, 0, NULL, VALUES(-2));
    struct layout all = {.rank = 2, .shape = {2, 3}, .stride = {0, 0}};
    step = elementwise(STEP_MODSUM, a, a, view(f, scalar, all), out);
    expect_refusal(f, &step, "argument 'p': -2 is below 1");
}

static void test_nothing_to_write_refuses_nothing(void **state)
{
    struct fixture *f = *state;
    struct tensor *p = filled(f, DTYPE_INT64, SHAPE(1), VALUES(0));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(0));
    struct layout none = {.rank = 1, .shape = {0}, .stride = {0}};
    struct step step = elementwise(STEP_MOD, out, NULL, view(f, p, none), out);
    run_step(f, &step);
}

/* Against sums and double-and-add products of residues. */
static void test_random(void **state)
{
    (void)state;
    uint64_t seed = 20240611;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 500; round++) {
        struct fixture *f;
        setup((void **)&f);
        enum dtype dtype = round % 2 ? DTYPE_INT32 : DTYPE_INT64;
        enum { COUNT = 8 };
        int64_t a[COUNT], b[COUNT], p[COUNT], product[COUNT], sum[COUNT], negated[COUNT];
        for (int i = 0; i < COUNT; i++) {
            a[i] = random_value(&seed, dtype);
            b[i] = random_value(&seed, dtype);
            p[i] = random_value(&seed, dtype);
            p[i] = p[i] < 1 ? 1 + (p[i] & INT32_MAX) / 2 : p[i];
            int64_t x = slow_reduce(a[i], p[i]), y = slow_reduce(b[i], p[i]);
            product[i] = slow_multiply(x, y, p[i]);
            if (product[i] > 0 && (a[i] < 0) != (b[i] < 0))
                product[i] -= p[i];
            sum[i] = slow_add(x, y, p[i]);
            if (sum[i] > 0 && (wide)a[i] + b[i] < 0)
                sum[i] -= p[i];
            negated[i] = x == 0 ? 0 : p[i] - x;
        }
        struct tensor *ta = filled(f, dtype, SHAPE(COUNT), a);
        struct tensor *tb = filled(f, dtype, SHAPE(COUNT), b);
        struct tensor *tp = filled(f, dtype, SHAPE(COUNT), p);
        struct tensor *out = zeros(f, dtype, SHAPE(COUNT));
        struct step step = elementwise(STEP_MODMUL, ta, tb, tp, out);
        run_step(f, &step);
        expect(f, out, product);
        step = elementwise(STEP_MODSUM, ta, tb, tp, out);
        run_step(f, &step);
        expect(f, out, sum);
        step = elementwise(STEP_MODNEG, ta, NULL, tp, out);
        run_step(f, &step);
        expect(f, out, negated);
        teardown((void **)&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_remainders_have_the_sign_of_the_dividend, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_extremes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_int32_with_int64_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_place_on_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_write_refuses_nothing, setup, teardown),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
