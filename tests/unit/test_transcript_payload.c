#include "test_transcript_common.h"

#include <inttypes.h>

#include "transcript/base64.h"
#include "transcript/payload.h"

/* A payload with its text, which tests own. */
struct sample {
    char *text;
    size_t length;
    struct payload payload;
};

/* Little- or big-endian bytes of values, whatever the host's order is. */
static size_t put_values(const int64_t *values, size_t count, size_t item_size, bool big_endian,
                         unsigned char *bytes)
{
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < item_size; byte++) {
            size_t shift = 8 * (big_endian ? item_size - 1 - byte : byte);
            bytes[i * item_size + byte] = (unsigned char)((uint64_t)values[i] >> shift);
        }
    return count * item_size;
}

/* values in file order. descr as in a header, e.g. ">i4"; shape e.g. "(2, 3)". */
static struct sample make_sample(const char *descr, bool fortran_order, const char *shape,
                                 const int64_t *values, size_t count)
{
    unsigned char *data = malloc(count * 8 + 1);
    unsigned char *npy = malloc(count * 8 + 256);
    char *text = malloc(count * 12 + 512);
    assert_true(data && npy && text);
    char header[160];
    put(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
        fortran_order ? "True" : "False", shape);
    size_t data_length = put_values(values, count, (size_t)(descr[2] - '0'), descr[0] == '>', data);
    size_t length = encode_base64(npy, make_npy(1, header, data, data_length, npy), text);
    struct sample sample = {.text = exact_copy(text, length), .length = length};
    free(text);
    free(npy);
    free(data);

    struct healcl_error error = {.detail = NULL};
    expect_ok(payload_parse(sample.text, length, base64_good(sample.text, length), NULL,
                            &sample.payload, &error),
              &error);
    return sample;
}

/* Reads a whole payload into an array with guards and compares it. */
static void expect_values(const struct payload *payload, enum dtype dtype, const int64_t *expected)
{
    struct healcl_error error = {.detail = NULL};
    size_t count = (size_t)layout_elements(&payload->layout);
    size_t bytes = count * dtype_size(dtype);
    unsigned char *array = malloc(bytes + 16);
    assert_non_null(array);
    memset(array, 0x5a, bytes + 16);
    expect_ok(payload_read(payload, dtype, array, &error), &error);
    for (size_t i = 0; i < count; i++)
        if (dtype_load(dtype, array, (int64_t)i) != expected[i])
            fail_msg("element %zu is %" PRId64 ", not %" PRId64, i,
                     dtype_load(dtype, array, (int64_t)i), expected[i]);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(array[bytes + i], 0x5a);
    free(array);
}

static const char *const descrs[] = {"<i8", ">i8", "<i4", ">i4", "|i1", ">i1"};
enum { DESCR_COUNT = sizeof descrs / sizeof *descrs };

static const enum dtype all_dtypes[] = {DTYPE_INT8, DTYPE_INT32, DTYPE_INT64};

/* Every pair of dtypes, byte orders, sizes around the blocks. */
static void test_reads_and_converts(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 5, 1023, 2048, 2049, 5000};
    uint64_t random = 7;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int j = 0; j < DESCR_COUNT; j++) {
            size_t count = counts[i];
            char shape[32];
            int64_t *values = malloc(count * sizeof *values + 1);
            assert_non_null(values);
            for (size_t k = 0; k < count; k++)
                values[k] = (int64_t)(next_random(&random) % 256) - 128;
            put(shape, sizeof shape, "(%zu,)", count);
            struct sample sample = make_sample(descrs[j], false, shape, values, count);
            assert_int_equal(sample.payload.layout.rank, 1);
            for (size_t k = 0; k < DTYPE_COUNT; k++)
                expect_values(&sample.payload, all_dtypes[k], values);
            free(sample.text);
            free(values);
        }
}

static void test_extreme_values(void **state)
{
    (void)state;
    const int64_t wide[] = {INT64_MIN, INT64_MAX, -1, 0, INT64_C(9007199254740993)};
    const int64_t middle[] = {INT32_MIN, INT32_MAX, -1, 0, 5};
    for (int j = 0; j < 4; j++) {
        const int64_t *values = j < 2 ? wide : middle;
        struct sample sample = make_sample(descrs[j], false, "(5,)", values, 5);
        expect_values(&sample.payload, DTYPE_INT64, values);
        expect_values(&sample.payload, sample.payload.dtype, values);
        free(sample.text);
    }
}

/* Reads ranges of a payload whose values are their position in C order, modulo 100: from many
 * elements on, and in a part of each axis. */
static void expect_ranges(const struct payload *payload, enum dtype dtype, const int64_t *expected)
{
    struct healcl_error error = {.detail = NULL};
    const struct layout *layout = &payload->layout;
    const int64_t count = layout_elements(layout);
    int64_t *array = malloc((size_t)count * sizeof *array + 1);
    assert_non_null(array);
    for (int64_t first = 0; first < count; first += 1 + count / 50) {
        const int64_t size = (count - first) / (1 + first % 3);
        expect_ok(payload_read_part(payload, dtype, first, size, array, &error), &error);
        for (int64_t i = 0; i < size; i++)
            assert_int_equal(dtype_load(dtype, array, i), expected[first + i]);
    }
    for (uint32_t i = 0; i < 2 * layout->rank && count > 0; i++) {
        const uint32_t axis = i / 2;
        const int64_t shape = layout->shape[axis], stride = layout->stride[axis];
        const int64_t period = i % 2 && shape % 3 == 0 ? 3 : shape, size = (period + 1) / 2;
        const struct healcl_part part = {axis, period - size, size, period};
        struct payload half = *payload;
        payload_narrow(&half, &part);
        expect_ok(payload_read(&half, dtype, array, &error), &error);
        for (int64_t k = 0, run = size * stride; k < layout_elements(&half.layout); k++)
            assert_int_equal(dtype_load(dtype, array, k),
                             expected[k / run * period * stride + part.start * stride + k % run]);
    }
    free(array);
}

/* Values that are their own position in C order, given in Fortran order. */
static void check_fortran(uint32_t rank, const int64_t *shape, const char *text)
{
    int64_t count = 1;
    for (uint32_t axis = 0; axis < rank; axis++)
        count *= shape[axis];
    int64_t *file = malloc((size_t)count * sizeof *file + 1);
    int64_t *expected = malloc((size_t)count * sizeof *expected + 1);
    assert_true(file && expected);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, index[16] = {0}, position = 0;
        for (uint32_t axis = 0; axis < rank; axis++) {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        for (uint32_t axis = 0; axis < rank; axis++)
            position = position * shape[axis] + index[axis];
        file[i] = position % 100;
        expected[i] = i % 100;
    }
    for (int j = 0; j < DESCR_COUNT; j++) {
        struct sample sample = make_sample(descrs[j], true, text, file, (size_t)count);
        for (size_t k = 0; k < DTYPE_COUNT; k++) {
            expect_values(&sample.payload, all_dtypes[k], expected);
            expect_ranges(&sample.payload, all_dtypes[k], expected);
        }
        free(sample.text);
    }
    free(expected);
    free(file);
}

static void test_fortran_order(void **state)
{
    (void)state;
    const int64_t a[] = {2, 3}, b[] = {1, 4, 1, 3, 5, 1}, c[] = {3000, 2}, d[] = {2, 3000};
    const int64_t e[] = {1, 7, 1}, f[] = {3, 0, 2}, g[] = {5, 7, 11, 13};
    check_fortran(2, a, "(2, 3)");
    check_fortran(6, b, "(1, 4, 1, 3, 5, 1)");
    check_fortran(2, c, "(3000, 2)");
    check_fortran(2, d, "(2, 3000)");
    check_fortran(3, e, "(1, 7, 1)");
    check_fortran(3, f, "(3, 0, 2)");
    check_fortran(4, g, "(5, 7, 11, 13)");
}

/* A payload in both orders counts as one in C order. */
static void test_orders_that_are_the_same(void **state)
{
    (void)state;
    const int64_t values[] = {1, 2, 3, 4, 5, 6};
    struct sample sample = make_sample("<i8", true, "(1, 6, 1)", values, 6);
    assert_false(sample.payload.fortran_order);
    free(sample.text);
    sample = make_sample("<i8", true, "(2, 0)", values, 0);
    assert_false(sample.payload.fortran_order);
    free(sample.text);
    sample = make_sample("<i8", true, "()", values, 1);
    assert_false(sample.payload.fortran_order);
    assert_int_equal(sample.payload.layout.rank, 0);
    expect_values(&sample.payload, DTYPE_INT64, values);
    free(sample.text);
    sample = make_sample("<i8", true, "(3, 2)", values, 6);
    assert_true(sample.payload.fortran_order);
    assert_int_equal(sample.payload.layout.stride[0], 2);
    free(sample.text);
}

static void test_values_that_do_not_fit(void **state)
{
    (void)state;
    struct healcl_error error = {.detail = NULL};
    int64_t array[6];
    const int64_t values[] = {1, -128, 127, 128, INT64_C(2147483648), 6};
    struct sample sample = make_sample("<i8", false, "(2, 3)", values, 6);
    expect_refusal(payload_read(&sample.payload, DTYPE_INT8, array, &error), &error,
                   "value 128 at [1, 0] does not fit int8");
    expect_refusal(payload_read(&sample.payload, DTYPE_INT32, array, &error), &error,
                   "value 2147483648 at [1, 1] does not fit int32");
    expect_refusal(payload_read_part(&sample.payload, DTYPE_INT32, 3, 2, array, &error), &error,
                   "value 2147483648 at [1, 1] does not fit int32");
    expect_ok(payload_read_part(&sample.payload, DTYPE_INT32, 5, 1, array, &error), &error);
    free(sample.text);

    /* The fourth value in the file's order lies at [1, 1]. */
    sample = make_sample(">i8", true, "(2, 3)", values, 6);
    expect_refusal(payload_read(&sample.payload, DTYPE_INT8, array, &error), &error,
                   "value 128 at [1, 1] does not fit int8");
    free(sample.text);

    const int64_t low[] = {-129, INT32_MIN, INT64_C(-2147483649)};
    sample = make_sample("<i8", false, "(3,)", low, 3);
    expect_refusal(payload_read(&sample.payload, DTYPE_INT8, array, &error), &error,
                   "value -129 at [0] does not fit int8");
    expect_refusal(payload_read(&sample.payload, DTYPE_INT32, array, &error), &error,
                   "value -2147483649 at [2] does not fit int32");
    free(sample.text);
}

static void test_parts(void **state)
{
    (void)state;
    enum { COUNT = 61 };
    struct healcl_error error = {.detail = NULL};
    int64_t values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i * 2 - COUNT;
    for (int j = 0; j < DESCR_COUNT; j++) {
        struct sample sample = make_sample(descrs[j], false, "(61,)", values, COUNT);
        for (size_t k = 0; k < DTYPE_COUNT; k++)
            for (int64_t first = 0; first <= COUNT; first++) {
                int64_t count = (COUNT - first) / (1 + first % 3);
                unsigned char array[COUNT * 8 + 1];
                int64_t aligned[COUNT];
                memset(aligned, 0x5a, sizeof aligned);
                expect_ok(payload_read_part(&sample.payload, all_dtypes[k], first, count, aligned,
                                            &error),
                          &error);
                for (int64_t i = 0; i < count; i++)
                    assert_int_equal(dtype_load(all_dtypes[k], aligned, i), values[first + i]);
                memcpy(array, aligned, sizeof aligned);
                size_t end = (size_t)count * dtype_size(all_dtypes[k]);
                if (end < sizeof aligned)
                    assert_int_equal(array[end], 0x5a);
            }
        free(sample.text);
    }
}

/* A file that has shrunk since it was checked gives zeros, and nothing is read that is not there.
 * One with other characters is refused while it is decoded. */
static void test_cut_behind_the_check(void **state)
{
    (void)state;
    const int64_t values[] = {7, 7, 7, 7, 7, 7};
    struct sample sample = make_sample("<i8", false, "(6,)", values, 6);
    struct healcl_error error = {.detail = NULL};
    for (size_t length = 0; length < sample.length; length++) {
        int64_t array[6];
        struct payload cut = sample.payload;
        char *copy = exact_copy(sample.text, length);
        cut.data = copy;
        cut.length = cut.characters = length;
        expect_ok(payload_read(&cut, DTYPE_INT64, array, &error), &error);
        expect_ok(payload_read_part(&cut, DTYPE_INT64, 5, 1, array, &error), &error);
        assert_true(array[0] == 0 || array[0] == 7);
        free(copy);
    }
    int64_t array[6];
    sample.text[sample.length - 9] = '*';
    expect_refusal(payload_read(&sample.payload, DTYPE_INT64, array, &error), &error,
                   "base64: character '*' at");
    free(sample.text);
}

/* Every fifth character or so as an escape, as json-c and Gson write them. */
static void test_escapes(void **state)
{
    (void)state;
    static const char *const spellings[] = {"\\u%04x", "\\u%04X"};
    static const size_t counts[] = {0, 1, 2, 3, 2047, 2048, 9000};
    uint64_t random = 11;
    struct arena *arena = arena_create();
    assert_non_null(arena);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t values[9000];
        char shape[32];
        for (size_t k = 0; k < counts[i]; k++)
            values[k] = (int64_t)next_random(&random);
        put(shape, sizeof shape, "(%zu,)", counts[i]);
        struct sample plain = make_sample("<i8", false, shape, values, counts[i]);
        char *text = malloc(plain.length * 6 + 1);
        assert_non_null(text);
        size_t length = 0;
        for (size_t k = 0; k < plain.length; k++) {
            const char c = plain.text[k];
            const bool is_coded = c == '=' || next_random(&random) % 5 == 0;
            const char *spelling = is_coded ? spellings[k % 2] : c == '/' ? "\\%c" : "%c";
            length += (size_t)snprintf(text + length, 7, spelling, c);
        }
        char *exact = exact_copy(text, length);
        struct healcl_error error = {.detail = NULL};
        struct payload parsed, *payload = &parsed;
        expect_ok(payload_parse(exact, length, base64_good(exact, length), arena, &parsed, &error),
                  &error);
        expect_values(payload, DTYPE_INT64, values);
        for (int64_t k = 0, value; k < (int64_t)counts[i]; k += 97) {
            expect_ok(payload_read_part(payload, DTYPE_INT64, k, 1, &value, &error), &error);
            assert_int_equal(value, values[k]);
        }
        if (i > 0) { /* a file that was cut, and overwritten, behind the check */
            memset(exact + length / 2, '\\', length - length / 2);
            expect_refusal(payload_read(payload, DTYPE_INT64, values, &error), &error,
                           "base64: it changed while it was decoded");
        }
        free(exact);
        free(text);
        free(plain.text);
    }
    arena_free(arena);
}

static void refuse(const unsigned char *npy, size_t length, const char *part)
{
    struct healcl_error error = {.detail = NULL};
    struct payload payload;
    char text[TEXT_SIZE];
    size_t characters = encode_base64(npy, length, text);
    char *copy = exact_copy(text, characters);
    expect_refusal(
        payload_parse(copy, characters, base64_good(copy, characters), NULL, &payload, &error),
        &error, part);
    free(copy);
}

static void test_refused_payloads(void **state)
{
    (void)state;
    const char *header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }";
    unsigned char npy[512] = {0}, data[64] = {0};
    struct healcl_error error = {.detail = NULL};
    struct payload payload;
    expect_refusal(payload_parse("QQ*=", 4, 2, NULL, &payload, &error), &error,
                   "base64: character '*' at 2");
    refuse(npy, 0, "not a .npy file");
    refuse(npy, make_npy(1, header, data, 47, npy),
           "the .npy data are 47 bytes long, but 48 by shape [2, 3] of int64");
    refuse(npy, make_npy(1, header, data, 49, npy), "the .npy data are 49 bytes long, but 48");
    refuse(npy,
           make_npy(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (0, 5)}", data, 8, npy),
           "the .npy data are 8 bytes long, but 0");
    refuse(npy,
           make_npy(1, "{'descr': '|i1', 'fortran_order': True, 'shape': (9223372036854775807,)}",
                    data, 1, npy),
           "but 9223372036854775807 by shape");
    for (size_t length = 0; length < 12 + strlen(header); length++)
        if (length < 6)
            refuse(npy, length, "not a .npy file");
        else if (length < 12)
            refuse(npy, length, "ends within its header");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_and_converts),
        cmocka_unit_test(test_extreme_values),
        cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_orders_that_are_the_same),
        cmocka_unit_test(test_values_that_do_not_fit),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_cut_behind_the_check),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_refused_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
