/* Gathers of the reference: take_along_axis and permute. */
#include "test_reference_fixture.h"

static struct step gather(const struct tensor *a, const struct tensor *idx, int64_t axis,
                          bool wraps, const struct tensor *out)
{
    const char *name = wraps ? "take_along_axis" : "permute";
    struct step step = new_step(STEP_GATHER, form_named(name, wraps ? 4 : 5), out);
    set_input(&step, 0, "a", a);
    set_input(&step, 1, wraps ? "idx" : "perms", idx);
    step.value[0] = axis;
    step.value[1] = wraps;
    return step;
}

static void test_take_along_each_axis(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(2, 3), VALUES(10, 11, 12, 20, 21, INT64_MIN));
    struct tensor *idx = filled(f, DTYPE_INT32, SHAPE(2, 4), VALUES(0, -1, 2, -3, 1, 1, -2, 2));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(2, 4));
    struct step step = gather(a, idx, 1, true, out);
    run_step(f, &step);
    expect(f, out, VALUES(10, 12, 12, 10, 21, 21, 21, INT64_MIN));

    struct tensor *rows = filled(f, DTYPE_INT64, SHAPE(3, 3), VALUES(0, 1, 0, -1, -2, -1, 1, 0, 1));
    struct tensor *tall = zeros(f, DTYPE_INT64, SHAPE(3, 3));
    step = gather(a, rows, 0, true, tall);
    run_step(f, &step);
    expect(f, tall, VALUES(10, 21, 12, 20, 11, INT64_MIN, 20, 11, INT64_MIN));
}

static void test_broadcast_and_offset_views(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(2, 4), VALUES(0, 1, 2, 3, 4, 5, 6, 7));
    /* The second row, read for every row of out, every other element. */
    struct layout row = {.rank = 2, .shape = {3, 2}, .stride = {0, 2}, .offset = 5};
    struct tensor *idx = filled(f, DTYPE_INT64, SHAPE(3), VALUES(1, 0, 1));
    struct layout column = {.rank = 2, .shape = {3, 2}, .stride = {1, 0}};
    struct tensor *memory = zeros(f, DTYPE_INT32, SHAPE(3, 4));
    struct layout middle = layout_narrow(&memory->layout, 1, 1, 2);
    struct step step =
        gather(view(f, a, row), view(f, idx, column), 1, true, view(f, memory, middle));
    run_step(f, &step);
    expect(f, memory, VALUES(0, 7, 7, 0, 0, 5, 5, 0, 0, 7, 7, 0));
}

static void test_permute(void **state)
{
    struct fixture *f = *state;
    /* elementwise_axis 1, perm_axis 0: perms [2, 3] is read transposed. */
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(3, 2), VALUES(1, 2, 3, 4, 5, 6));
    struct tensor *perms = filled(f, DTYPE_INT64, SHAPE(2, 3), VALUES(2, 0, 1, 1, 1, 0));
    struct tensor *transposed = view(f, perms, layout_move_axis(&perms->layout, 0, 1));
    struct tensor *out = zeros(f, DTYPE_INT64, SHAPE(3, 2));
    struct step step = gather(a, transposed, 0, false, out);
    run_step(f, &step);
    expect(f, out, VALUES(5, 4, 1, 4, 3, 2));

    put(f, perms, VALUES(2, 0, 1, 1, -1, 0)); /* negative indices do not count from the end */
    expect_refusal(f, &step, "argument 'perms': -1 at [1, 1] is outside of axis 0 of size 3");
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(4, 2));
    struct tensor *idx = filled(f, DTYPE_INT64, SHAPE(2, 2), VALUES(0, -4, 9, 4));
    struct tensor *out = filled(f, DTYPE_INT64, SHAPE(2, 2), VALUES(1, 1, 1, 1));
    struct step step = gather(a, idx, 0, true, out);
    expect_refusal(f, &step, "argument 'idx': 9 at [1, 0] is outside of axis 0 of size 4");
    put(f, idx, VALUES(0, -5, 3, INT64_MIN));
    expect_refusal(f, &step, "argument 'idx': -5 at [0, 1] is outside of axis 0 of size 4");
    expect(f, out, VALUES(1, 1, 1, 1));

    struct layout column = {.rank = 2, .shape = {2, 2}, .stride = {1, 0}, .offset = 2};
    step = gather(a, view(f, idx, column), 0, true, out);
    expect_refusal(f, &step,
                   "argument 'idx': -9223372036854775808 at [1] is outside of axis 0 of size 4");

    /* No index is inside of an axis without elements. */
    struct tensor *nothing = zeros(f, DTYPE_INT64, SHAPE(0, 2));
    put(f, idx, VALUES(0, 0, 0, 0));
    step = gather(nothing, idx, 0, true, out);
    expect_refusal(f, &step, "argument 'idx': 0 at [0, 0] is outside of axis 0 of size 0");
}

static void test_the_index_may_be_overwritten(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(3), VALUES(100, 200, 300));
    struct tensor *idx = filled(f, DTYPE_INT64, SHAPE(3), VALUES(2, 2, 0));
    struct step step = gather(a, idx, 0, true, idx);
    run_step(f, &step);
    expect(f, idx, VALUES(300, 300, 100));
}

/* Rank 16, which the walk must carry through. */
static void test_highest_rank(void **state)
{
    struct fixture *f = *state;
    int64_t shape[MAX_RANK], values[16], indices[16], expected[16];
    for (int axis = 0; axis < MAX_RANK; axis++)
        shape[axis] = axis % 4 == 3 ? 2 : 1;
    for (int i = 0; i < 16; i++) {
        values[i] = 100 + i;
        indices[i] = i % 3 == 0;
        expected[i] = 100 + (i & ~4) + 4 * (i % 3 == 0); /* axis 7 is bit 2 */
    }
    struct tensor *a = filled(f, DTYPE_INT64, MAX_RANK, shape, values);
    struct tensor *idx = filled(f, DTYPE_INT32, MAX_RANK, shape, indices);
    struct tensor *out = zeros(f, DTYPE_INT64, MAX_RANK, shape);
    struct step step = gather(a, idx, 7, true, out);
    run_step(f, &step);
    expect(f, out, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_take_along_each_axis, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broadcast_and_offset_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_permute, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_index_may_be_overwritten, setup, teardown),
        cmocka_unit_test_setup_teardown(test_highest_rank, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
