/* The reference's storages, and upload, fill, copy, release, read. */
#include "test_reference_fixture.h"

static void test_memory_is_zero_before_the_first_write(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT32, SHAPE(2, 2));
    expect(f, a, VALUES(0, 0, 0, 0));
    struct tensor *empty = zeros(f, DTYPE_INT64, SHAPE(3, 0));
    void *bytes = NULL;
    assert_int_equal(reference_memory(f->reference, empty->storage, &bytes, NULL), HEALCL_OK);
    assert_non_null(bytes);
    expect(f, empty, VALUES(0));
}

/* Under the address sanitizer too, an allocation that is too large only fails. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_too_much_memory(void **state)
{
    struct fixture *f = *state;
    struct storage storage = {.dtype = DTYPE_INT64, .elements = INT64_MAX / 8};
    void *bytes;
    assert_int_equal(reference_memory(f->reference, &storage, &bytes, &f->error), HEALCL_NO_MEMORY);
}

static void test_fill(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT8, SHAPE(3, 4));
    struct layout column = layout_narrow(&a->layout, 1, 1, 2);
    struct step step = new_step(STEP_FILL, NULL, view(f, a, column));
    step.value[0] = -128;
    run_step(f, &step);
    expect(f, a, VALUES(0, -128, -128, 0, 0, -128, -128, 0, 0, -128, -128, 0));
}

static void test_fill_int64_minimum(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, 0, NULL);
    struct step step = new_step(STEP_FILL, NULL, a);
    step.value[0] = INT64_MIN;
    run_step(f, &step);
    expect(f, a, VALUES(INT64_MIN));
}

static void test_copy_of_views(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT32, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, INT32_MIN));
    struct tensor *out = zeros(f, DTYPE_INT32, SHAPE(3, 2));
    struct step step = new_step(STEP_COPY, NULL, out);
    set_input(&step, 0, "a", view(f, a, layout_move_axis(&a->layout, 0, 1)));
    run_step(f, &step);
    expect(f, out, VALUES(1, 4, 2, 5, 3, INT32_MIN));

    /* One element for a whole row, into every other column. */
    struct layout row = {.rank = 1, .shape = {3}, .stride = {0}, .offset = 4};
    struct layout odd = {.rank = 1, .shape = {3}, .stride = {2}, .offset = 1};
    struct step repeat = new_step(STEP_COPY, NULL, view(f, out, odd));
    set_input(&repeat, 0, "a", view(f, a, row));
    run_step(f, &repeat);
    expect(f, out, VALUES(1, 5, 2, 5, 3, 5));
}

static void test_copy_of_nothing(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = zeros(f, DTYPE_INT64, SHAPE(0, 3));
    struct step step = new_step(STEP_COPY, NULL, zeros(f, DTYPE_INT64, SHAPE(0, 3)));
    set_input(&step, 0, "a", a);
    run_step(f, &step);
}

static void test_release_and_lend(void **state)
{
    struct fixture *f = *state;
    struct tensor *a = filled(f, DTYPE_INT64, SHAPE(2), VALUES(5, 6));
    struct step release = {.kind = STEP_RELEASE, .in = {a}};
    run_step(f, &release);
    assert_null(f->reference->memories[a->storage->id].bytes);
    run_step(f, &release); /* harmless where nothing is held */
    expect(f, a, VALUES(0, 0));

    int64_t own[2] = {7, 8};
    reference_lend(f->reference, a->storage, own);
    expect(f, a, VALUES(7, 8));
    struct step fill = new_step(STEP_FILL, NULL, a);
    fill.value[0] = 9;
    run_step(f, &fill);
    assert_int_equal(own[1], 9);
    run_step(f, &release);
    expect(f, a, VALUES(0, 0));
    assert_int_equal(own[0], 9);
}

static void test_constants(void **state)
{
    struct fixture *f = *state;
    int64_t values[] = {3, -5};
    struct storage storage = {.dtype = DTYPE_INT64, .elements = 2};
    f->plan.constants.storage = &storage;
    f->plan.constants.values = values;
    struct tensor of = {.storage = &storage};
    struct layout second = {.rank = 1, .shape = {3}, .stride = {0}, .offset = 1};
    struct tensor *constant = view(f, &of, second);
    expect(f, constant, VALUES(-5, -5, -5));
    struct step release = {.kind = STEP_RELEASE, .in = {constant}};
    run_step(f, &release);
    expect(f, constant, VALUES(-5, -5, -5));
}

static void test_download_does_nothing(void **state)
{
    struct fixture *f = *state;
    struct step step = {.kind = STEP_DOWNLOAD, .in = {zeros(f, DTYPE_INT64, SHAPE(1))}};
    run_step(f, &step);
}

/* numpy.save of [[1, -2, 3], [40, 50, -60]] as int32 and of [127, 128] as int64. */
static const char small[] =
    "k05VTVBZAQB2AHsnZGVzY3InOiAnPGk0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMp"
    "LCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoBAAAA"
    "/v///wMAAAAoAAAAMgAAAMT///8=";
static const char large[] =
    "k05VTVBZAQB2AHsnZGVzY3InOiAnPGk4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwg"
    "fSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAp/AAAA"
    "AAAAAIAAAAAAAAAA";

static void test_upload(void **state)
{
    struct fixture *f = *state;
    struct payload payload;
    assert_int_equal(payload_parse(small, sizeof small - 1, &payload, &f->error), HEALCL_OK);
    struct step step = new_step(STEP_UPLOAD, NULL, zeros(f, DTYPE_INT64, SHAPE(2, 3)));
    step.payload = &payload;
    run_step(f, &step);
    expect(f, step.out, VALUES(1, -2, 3, 40, 50, -60));

    assert_int_equal(payload_parse(large, sizeof large - 1, &payload, &f->error), HEALCL_OK);
    step.out = zeros(f, DTYPE_INT8, SHAPE(2));
    assert_int_equal(reference_step(f->reference, &step, &f->error), HEALCL_REFUSED);
    step.out = zeros(f, DTYPE_INT32, SHAPE(2));
    run_step(f, &step);
    expect(f, step.out, VALUES(127, 128));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_is_zero_before_the_first_write, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_too_much_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fill_int64_minimum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy_of_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_release_and_lend, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_download_does_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_upload, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
