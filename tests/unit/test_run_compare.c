/* Comparing results with payloads: every order and dtype, block borders, and their messages. */
#include "run/compare.h"
#include "test_transcript_common.h"
#include "transcript/base64.h"

enum { LARGE = 20000 }; /* int64 elements: more than two blocks */

/* A payload of the header's shape; the text is to be freed. */
static char *payload_of(const char *header, const void *data, size_t bytes, struct payload *payload)
{
    struct healcl_error error = {.status = HEALCL_OK};
    unsigned char *npy = malloc(strlen(header) + bytes + 16);
    char *text = malloc((strlen(header) + bytes + 16) * 4 / 3 + 8);
    assert_true(npy && text);
    size_t length = encode_base64(npy, make_npy(1, header, data, bytes, npy), text);
    free(npy);
    expect_ok(payload_parse(text, length, base64_good(text, length), NULL, payload, &error),
              &error);
    return text;
}

static struct comparison compare(const struct layout *shape, enum dtype dtype, const void *data,
                                 const struct payload *payload)
{
    struct comparison comparison;
    struct healcl_error error = {.status = HEALCL_OK};
    expect_ok(compare_result(shape, dtype, data, payload, &comparison, &error), &error);
    return comparison;
}

static struct layout shape_2(int64_t a, int64_t b)
{
    struct layout layout;
    int64_t shape[] = {a, b};
    assert_int_equal(layout_init(&layout, 2, shape, 8, NULL), HEALCL_OK);
    return layout;
}

#define HEADER(descr, order, shape) \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': (" shape "), }\n"

static void test_equal(void **state)
{
    (void)state;
    const int64_t data[] = {1, -2, INT64_MAX, INT64_MIN, 5, 6};
    struct payload payload;
    char *text = payload_of(HEADER("<i8", "False", "2, 3"), data, sizeof data, &payload);
    struct layout shape = shape_2(2, 3);
    struct comparison comparison = compare(&shape, DTYPE_INT64, data, &payload);
    assert_true(comparison_is_equal(&comparison));
    assert_int_equal(comparison.first_count, 0);
    free(text);
}

static void test_shapes_differ(void **state)
{
    (void)state;
    const int64_t data[] = {1, 2, 3, 4, 5, 6};
    struct payload payload;
    char *text = payload_of(HEADER("<i8", "False", "2, 3"), data, sizeof data, &payload);
    struct layout shape = shape_2(3, 2);
    struct comparison comparison = compare(&shape, DTYPE_INT64, data, &payload);
    assert_false(comparison.same_shape);
    assert_false(comparison_is_equal(&comparison));
    assert_int_equal(comparison.different, 0);
    free(text);
}

/* Values count, not their width, order or byte order. */
static void test_other_representations(void **state)
{
    (void)state;
    const int64_t data[] = {1, 2, 3, 4, -5, 6};
    struct layout shape = shape_2(2, 3);
    struct payload payload;

    const int8_t bytes[] = {1, 2, 3, 4, -5, 6};
    char *text = payload_of(HEADER("|i1", "False", "2, 3"), bytes, sizeof bytes, &payload);
    struct comparison comparison = compare(&shape, DTYPE_INT64, data, &payload);
    assert_true(comparison_is_equal(&comparison));
    comparison = compare(&shape, DTYPE_INT8, bytes, &payload);
    assert_true(comparison_is_equal(&comparison));
    free(text);

    const unsigned char big[] = {0, 0, 0, 1, 0,   0,   0,   2,   0, 0, 0, 3,
                                 0, 0, 0, 4, 255, 255, 255, 251, 0, 0, 0, 6};
    text = payload_of(HEADER(">i4", "False", "2, 3"), big, sizeof big, &payload);
    comparison = compare(&shape, DTYPE_INT64, data, &payload);
    assert_true(comparison_is_equal(&comparison));
    const int32_t narrow[] = {1, 2, 3, 4, -5, 6};
    comparison = compare(&shape, DTYPE_INT32, narrow, &payload);
    assert_true(comparison_is_equal(&comparison));
    free(text);

    const int64_t columns[] = {1, 4, 2, -5, 3, 6};
    text = payload_of(HEADER("<i8", "True", "2, 3"), columns, sizeof columns, &payload);
    comparison = compare(&shape, DTYPE_INT64, data, &payload);
    assert_true(comparison_is_equal(&comparison));
    free(text);
}

/* An expected value that the result's dtype cannot hold is a difference, not an overflow. */
static void test_expected_beyond_the_dtype(void **state)
{
    (void)state;
    const int64_t expected[] = {256 + 7, 0};
    const int8_t data[] = {7, 0};
    struct payload payload;
    char *text = payload_of(HEADER("<i8", "False", "2, 1"), expected, sizeof expected, &payload);
    struct layout shape = shape_2(2, 1);
    struct comparison comparison = compare(&shape, DTYPE_INT8, data, &payload);
    assert_int_equal(comparison.different, 1);
    assert_int_equal(comparison.first[0].actual, 7);
    assert_int_equal(comparison.first[0].expected, 263);
    free(text);
}

static void test_first_in_c_order_whatever_the_file_is_in(void **state)
{
    (void)state;
    int64_t rows[4 * 5], columns[4 * 5], data[4 * 5];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++) {
            data[i * 5 + j] = 100 * i + j;
            rows[i * 5 + j] = columns[j * 4 + i] = -(100 * i + j);
        }
    struct layout shape = shape_2(4, 5);
    struct payload payload;
    char *texts[] = {payload_of(HEADER("<i8", "False", "4, 5"), rows, sizeof rows, &payload), NULL};
    struct comparison in_rows = compare(&shape, DTYPE_INT64, data, &payload);
    texts[1] = payload_of(HEADER("<i8", "True", "4, 5"), columns, sizeof columns, &payload);
    struct comparison in_columns = compare(&shape, DTYPE_INT64, data, &payload);
    assert_int_equal(in_rows.different, 19); /* 0 is -0 */
    assert_int_equal(in_columns.different, 19);
    assert_int_equal(in_rows.first_count, COMPARISON_FIRST);
    for (int i = 0; i < COMPARISON_FIRST; i++) {
        assert_int_equal(in_rows.first[i].position, i + 1);
        assert_int_equal(in_columns.first[i].position, i + 1);
        assert_int_equal(in_columns.first[i].actual, data[i + 1]);
        assert_int_equal(in_columns.first[i].expected, -data[i + 1]);
    }
    free(texts[0]);
    free(texts[1]);
}

static void test_across_blocks(void **state)
{
    (void)state;
    int64_t *data = calloc(LARGE, sizeof *data), *expected = calloc(LARGE, sizeof *expected);
    assert_true(data && expected);
    uint64_t random = 1;
    for (int i = 0; i < LARGE; i++)
        data[i] = expected[i] = (int64_t)next_random(&random);
    const int64_t places[] = {0, 8191, 8192, 16384, LARGE - 1};
    struct layout shape = shape_2(LARGE / 100, 100);
    for (int fortran = 0; fortran < 2; fortran++) {
        struct payload payload;
        int64_t *file = calloc(LARGE, sizeof *file);
        assert_non_null(file);
        for (int i = 0; i < LARGE; i++)
            file[fortran ? i % 100 * (LARGE / 100) + i / 100 : i] = expected[i];
        char *text = payload_of(fortran ? HEADER("<i8", "True", "200, 100")
                                        : HEADER("<i8", "False", "200, 100"),
                                file, LARGE * sizeof *file, &payload);
        struct comparison comparison = compare(&shape, DTYPE_INT64, data, &payload);
        assert_true(comparison_is_equal(&comparison));
        for (int i = 0; i < 5; i++)
            data[places[i]] ^= 1;
        comparison = compare(&shape, DTYPE_INT64, data, &payload);
        assert_int_equal(comparison.different, 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(comparison.first[i].position, places[i]);
            data[places[i]] ^= 1;
        }
        free(text);
        free(file);
    }
    free(data);
    free(expected);
}

static void test_scalar_and_empty(void **state)
{
    (void)state;
    const int64_t seven = 7, eight = 8;
    struct payload payload;
    struct layout shape = {.rank = 0};
    char *text = payload_of(HEADER("<i8", "False", ""), &seven, sizeof seven, &payload);
    struct comparison comparison = compare(&shape, DTYPE_INT64, &seven, &payload);
    assert_true(comparison_is_equal(&comparison));
    comparison = compare(&shape, DTYPE_INT64, &eight, &payload);
    assert_int_equal(comparison.different, 1);
    free(text);

    shape = shape_2(0, 3);
    text = payload_of(HEADER("<i8", "False", "0, 3"), NULL, 0, &payload);
    comparison = compare(&shape, DTYPE_INT64, &seven, &payload);
    assert_true(comparison_is_equal(&comparison));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_shapes_differ),
        cmocka_unit_test(test_other_representations),
        cmocka_unit_test(test_expected_beyond_the_dtype),
        cmocka_unit_test(test_first_in_c_order_whatever_the_file_is_in),
        cmocka_unit_test(test_across_blocks),
        cmocka_unit_test(test_scalar_and_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
