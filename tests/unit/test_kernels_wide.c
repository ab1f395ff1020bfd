/*
 * GPU work-items with several elements, against the host reference: copies, fills and elementwise
 * operations with accesses of 16 bytes, on rows that allow these, or with odd length, distance or
 * offset; products and sums of an operand that repeats along an axis; and kernels on local memory
 * for views of any number of axes.
 */
#include "helper_calls.h"
#include "opencl/internal.h"

#include <string.h>

#include "helper_share.h"

static const enum dtype dtypes[] = {DTYPE_INT64, DTYPE_INT32};

/* As a GPU of one compute unit with small work-groups, for which a few elements are many. */
static int open_small_gpu(void **state)
{
    setenv("HEALCL_AS", "gpu", 1);
    unsetenv("HEALCL_TUNING");
    unsetenv("HEALCL_VARIANT");
    if (open_device(state))
        return -1;
    device->tuning.local_size = 2;
    device->info.compute_units = 1;
    return 0;
}

/* Programs that were built with such a name and such a word in their options. */
static size_t programs_built(const char *name, const char *option)
{
    size_t count = 0;
    const struct device_program *program = NULL;
    while ((program = device_next_program(device, program)) != NULL)
        count += strcmp(program->name, name) == 0 && strstr(program->all_options, option) != NULL;
    return count;
}

/* Uploads moduli up to the dtype's largest, including that. */
static void upload_moduli(struct script *script, const char *name, enum dtype dtype, int64_t k)
{
    int64_t values[64];
    const int64_t largest = dtype == DTYPE_INT32 ? INT32_MAX : INT64_MAX;
    assert_true(k <= 64);
    for (int64_t i = 0; i < k; i++)
        values[i] = i == 0 ? largest : random_modulus(&generator, dtype);
    script_upload(script, name, dtype, 1, &k, values);
}

/* Each operation on a and b into out, of any values and then of residues. */
static void call_all(struct script *script, const char *a, const char *b, const char *q,
                     const char *out, const char *whole)
{
    static const char *const with_two[] = {"modmul", "modsum"};
    static const char *const with_one[] = {"modneg", "mod"};
    for (int residues = 0; residues < 2; residues++) {
        for (int i = 0; i < 2; i++) {
            call(script, NULL, with_two[i], "%s %s %s %s", a, b, q, out);
            script_download(script, whole);
            call(script, NULL, with_one[i], "%s %s %s", a, q, out);
            script_download(script, whole);
        }
        call(script, NULL, "modmul", "%s -98765 %s %s", a, q, out);
        call(script, NULL, "modmul", "%s %s %s %s", out, b, q, out); /* in place */
        script_download(script, whole);
        call(script, NULL, "modneg", "%s %s %s", a, q, a);
        call(script, NULL, "modneg", "%s %s %s", b, q, b);
    }
    call(script, NULL, "modmul", "%s 98765 97 %s", a, out);
    script_download(script, whole);
}

/* Rows of length elements out of [3,6,80], from a first one on. */
static void check_rows(enum dtype dtype, int first, int length)
{
    struct script script = {0};
    char what[64];
    snprintf(what, sizeof what, "%s rows from %d on, of %d", dtype_name(dtype), first, length);
    upload(&script, "x", dtype, 3, VALUES(3, 6, 80));
    upload(&script, "y", dtype, 3, VALUES(3, 6, 80));
    upload(&script, "z", dtype, 3, VALUES(3, 6, 80));
    upload_moduli(&script, "q", dtype, 6);
    upload_moduli(&script, "k", dtype, length);
    call(&script, "rows", "unsqueeze", "q 1");
    for (const char *name = "xyz"; *name; name++)
        call(&script, (char[]){*name, '0', 0}, "get_slice", "%c [0:3:1,0:6:1,%d:%d:1]", *name,
             first, first + length);
    call_all(&script, "x0", "y0", "rows", "z0", "z");
    call_all(&script, "x0", "y0", "k", "z0", "z"); /* moduli that differ within a vector */
    call(&script, NULL, "abs", "x0 z0");
    call(&script, NULL, "pad_single_axis", "z0 0 0 y0");
    call(&script, NULL, "set_const_val", "x0 -5");
    script_download(&script, "x");
    script_download(&script, "y");
    script_download(&script, "z");
    expect_same(&script, what);
}

/* One axis, along which moduli change at multiples of length elements. */
static void check_joined(enum dtype dtype, int length)
{
    struct script script = {0};
    char what[64];
    snprintf(what, sizeof what, "%s [6,%d]", dtype_name(dtype), length);
    upload(&script, "x", dtype, 2, VALUES(6, length));
    upload(&script, "y", dtype, 2, VALUES(6, length));
    upload(&script, "z", dtype, 2, VALUES(6, length));
    upload_moduli(&script, "q", dtype, 6);
    call(&script, "rows", "unsqueeze", "q 1");
    call_all(&script, "x", "y", "rows", "z", "z");
    call_all(&script, "x", "y", "97", "z", "z");
    expect_same(&script, what);
}

static void vectors(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        const size_t before = programs_built("core", "-D WIDE");
        check_rows(dtypes[d], 1, 64);
        check_rows(dtypes[d], 0, 63);
        assert_int_equal(programs_built("core", "-D WIDE"), before);
        check_rows(dtypes[d], 0, 64);
        check_rows(dtypes[d], 16, 60);
        assert_true(programs_built("core", d ? "-D WIDE=4" : "-D WIDE=2") > 0);
    }
    for (int d = 0; d < 2; d++) {
        check_joined(dtypes[d], 65); /* one modulus and the next one in the same vector */
        check_joined(dtypes[d], 64);
    }
    assert_true(programs_built("core", "-D WIDE=2 -D AXES=1") > 0);
    assert_true(programs_built("core", "-D WIDE=4 -D AXES=1") > 0);
    device->tuning.access_bytes = 1;
    const size_t before = programs_built("core", "-D WIDE");
    check_joined(DTYPE_INT64, 62);
    device->tuning.access_bytes = 8;
    check_joined(DTYPE_INT64, 66);
    assert_int_equal(programs_built("core", "-D WIDE"), before);
    device->tuning.access_bytes = 16;
}

/* Bytes, by sixteens where all is even. */
static void bytes(void **state)
{
    (void)state;
    for (int first = 8; first <= 32; first += 8) {
        struct script script = {0};
        upload(&script, "x", DTYPE_INT8, 2, VALUES(20, 96));
        call(&script, "part", "get_slice", "x [0:20:1,%d:%d:1]", first, first + 64);
        call(&script, "packed", "contiguous", "part");
        script_download(&script, "packed");
        call(&script, NULL, "set_const_val", "part -7");
        script_download(&script, "x");
        expect_same(&script, "bytes");
        assert_int_equal(programs_built("core", "-D WIDE=16"), first >= 16);
    }
}

/* Rows of elements with one index, of even and odd length and distance, from even and odd places.
 */
static void gathers(void **state)
{
    (void)state;
    static const int rows[][2] = {{0, 24}, {2, 20}, {1, 20}, {0, 21}};
    for (int i = 0; i < 8; i++) {
        struct script script = {0};
        int64_t indices[60];
        for (int j = 0; j < 60; j++)
            indices[j] = random_between(&generator, -50, 49);
        upload(&script, "x", dtypes[i % 2], 3, VALUES(2, 50, i < 6 ? 24 : 25));
        upload(&script, "out", dtypes[i % 2], 3, VALUES(2, 60, rows[i / 2][1]));
        script_upload(&script, "rows", DTYPE_INT64, 2, VALUES(60, 1), indices);
        call(&script, "part", "get_slice", "x [0:2:1,0:50:1,%d:%d:1]", rows[i / 2][0],
             rows[i / 2][0] + rows[i / 2][1]);
        call(&script, "all", "expand", "rows 1 %d", rows[i / 2][1]);
        call(&script, "both", "unsqueeze", "all 0");
        call(&script, "index", "expand", "both 0 2");
        call(&script, NULL, "take_along_axis", "part index 1 out");
        script_download(&script, "out");
        expect_same(&script, "rows of one index");
    }
    assert_true(programs_built("gather/gather", "-D WIDE=2") > 0);
    assert_true(programs_built("gather/gather", "-D WIDE=4") > 0);
}

/* Checks [l,k,n] modulo k: b is constant along l, n, both, or everywhere. */
static void check_repeated(enum dtype dtype, int l, int n)
{
    static const char *const operands[] = {"over_l", "over_n", "over_both", "everywhere"};
    struct script script = {0};
    char what[64];
    snprintf(what, sizeof what, "%s [%d,3,%d], repeated", dtype_name(dtype), l, n);
    upload(&script, "x", dtype, 3, VALUES(l, 3, n));
    upload(&script, "z", dtype, 3, VALUES(l, 3, n));
    upload(&script, "over_l", dtype, 2, VALUES(3, n));
    upload(&script, "over_n", dtype, 3, VALUES(l, 3, 1));
    upload(&script, "over_both", dtype, 2, VALUES(3, 1));
    upload(&script, "everywhere", dtype, 1, VALUES(1));
    upload_moduli(&script, "q", dtype, 3);
    upload_moduli(&script, "one", dtype, 1);
    call(&script, "rows", "unsqueeze", "q 1");
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            const char *b = operands[i], *q = j ? "one" : "rows";
            call(&script, NULL, "modmul", "x %s %s z", b, q);
            script_download(&script, "z");
            call(&script, NULL, "modsum", "%s x %s z", b, q);
            script_download(&script, "z");
            call(&script, NULL, "modmul", "z -98765 %s z", q); /* in place */
            script_download(&script, "z");
        }
    call(&script, NULL, "modneg", "x rows x");
    for (int i = 0; i < 4; i++) { /* of residues, where b has them too */
        call(&script, NULL, "modneg", "%s %s %s", operands[i], i == 3 ? "one" : "rows",
             operands[i]);
        call(&script, NULL, "modsum", "x %s rows z", operands[i]);
        script_download(&script, "z");
    }
    call(&script, "turned", "moveaxis", "z 0 2"); /* [3,n,l] */
    call(&script, "columns", "moveaxis", "x 0 2");
    call(&script, "thirds", "unsqueeze", "rows 2");
    call(&script, NULL, "modmul", "columns thirds thirds turned");
    script_download(&script, "z");
    expect_same(&script, what);
}

static void repeated(void **state)
{
    (void)state;
    static const int sizes[][2] = {{2, 64},   {5, 100},  {16, 32},  {17, 33}, {33, 8},
                                   {1, 2048}, {2, 1024}, {1, 1001}, {40, 1}};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_repeated(dtypes[d], sizes[i][0], sizes[i][1]);
    assert_true(programs_built("modular/repeated", "-D AXES=1") > 0);
    assert_true(programs_built("modular/repeated", "-D AXES=3") > 0);
}

/* Kernels on local memory that do not know how many axes there are. */
static void any_axes(void **state)
{
    (void)state;
    struct script script = {0};
    device->tuning.local_size = 64;
    device->tuning.compiled_axes = 0;
    upload(&script, "a", DTYPE_INT64, 3, VALUES(300, 5, 3));
    upload(&script, "sums", DTYPE_INT64, 2, VALUES(5, 3));
    upload_moduli(&script, "q", DTYPE_INT64, 3);
    call(&script, NULL, "axis_modsum", "a 0 q sums");
    script_download(&script, "sums");
    upload(&script, "plane", DTYPE_INT64, 2, VALUES(70, 90));
    call(&script, "turned", "moveaxis", "plane 0 1");
    call(&script, "out", "contiguous", "turned");
    script_download(&script, "out");
    upload(&script, "digits", DTYPE_INT32, 3, VALUES(90, 70, 3));
    call(&script, NULL, "apply_g_decomp", "turned 3 8 digits");
    script_download(&script, "digits");
    expect_same(&script, "any axes");
    static const char *const programs[] = {"sum/local", "copy/local", "digits/digits"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(programs_built(programs[i], "-D AXES"), 0);
        assert_true(programs_built(programs[i], "-D LOCAL_SIZE=64") > 0);
    }
}

int main(void)
{
#define GPU_TEST(test) cmocka_unit_test_setup_teardown(test, open_small_gpu, close_device)
    const struct CMUnitTest tests[] = {
        GPU_TEST(vectors),  GPU_TEST(bytes),    GPU_TEST(gathers),
        GPU_TEST(repeated), GPU_TEST(any_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
