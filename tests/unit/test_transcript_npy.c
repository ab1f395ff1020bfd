#include "test_transcript_common.h"

#include "transcript/npy.h"

static void test_prefix(void **state)
{
    (void)state;
    struct healcl_error error = {.detail = NULL};
    uint32_t header, data;
    const unsigned char one[] = "\x93NUMPY\x01\x00\x76\x00{'";
    expect_ok(npy_read_prefix(one, 12, &header, &data, &error), &error);
    assert_int_equal(header, 10);
    assert_int_equal(data, 10 + 0x76);
    expect_ok(npy_read_prefix(one, 10, &header, &data, &error), &error);
    const unsigned char two[] = "\x93NUMPY\x02\x00\x34\x12\x00\x00";
    expect_ok(npy_read_prefix(two, 12, &header, &data, &error), &error);
    assert_int_equal(header, 12);
    assert_int_equal(data, 12 + 0x1234);
    const unsigned char three[] = "\x93NUMPY\x03\x00\x10\x27\x00\x00";
    expect_ok(npy_read_prefix(three, 12, &header, &data, &error), &error);
    assert_int_equal(data, 12 + 10000);
}

static void refuse_prefix(const char *bytes, size_t length, const char *part)
{
    struct healcl_error error = {.detail = NULL};
    uint32_t header, data;
    char *copy = exact_copy(bytes, length);
    expect_refusal(npy_read_prefix((unsigned char *)copy, length, &header, &data, &error), &error,
                   part);
    free(copy);
}

static void test_refused_prefixes(void **state)
{
    (void)state;
    refuse_prefix("", 0, "not a .npy file");
    refuse_prefix("\x93NUMP", 5, "not a .npy file");
    refuse_prefix("\x93NUMPX\x01\x00\x76\x00{'", 12, "not a .npy file");
    refuse_prefix("\x93NUMPY\x01", 7, "ends within its header");
    refuse_prefix("\x93NUMPY\x01\x00\x76", 9, "ends within its header");
    refuse_prefix("\x93NUMPY\x02\x00\x76\x00\x00", 11, "ends within its header");
    refuse_prefix("\x93NUMPY\x00\x00\x76\x00{'", 12, ".npy version 0.0 is not supported");
    refuse_prefix("\x93NUMPY\x04\x00\x76\x00{'", 12, ".npy version 4.0 is not supported");
    refuse_prefix("\x93NUMPY\x01\x07\x76\x00{'", 12, ".npy version 1.7 is not supported");
    refuse_prefix("\x93NUMPY\x02\x00\x11\x27\x00\x00", 12, "10001 bytes is longer than 10000");
    refuse_prefix("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "4294967295 bytes is longer");
}

static enum healcl_status read_header(const char *text, struct npy_header *header,
                                      struct healcl_error *error)
{
    char *copy = exact_copy(text, strlen(text));
    enum healcl_status status = npy_read_header(1, copy, strlen(text), header, error);
    free(copy);
    return status;
}

static void accept(const char *text, enum dtype dtype, bool big_endian, bool fortran_order,
                   uint32_t rank, const int64_t *shape)
{
    struct healcl_error error = {.detail = NULL};
    struct npy_header header = {.big_endian = false};
    expect_ok(read_header(text, &header, &error), &error);
    assert_int_equal(header.dtype, dtype);
    assert_int_equal(header.big_endian, big_endian);
    assert_int_equal(header.fortran_order, fortran_order);
    assert_int_equal(header.layout.rank, rank);
    for (uint32_t axis = 0; axis < rank; axis++)
        assert_int_equal(header.layout.shape[axis], shape[axis]);
}

static void test_headers(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 3, 0, 7};
    const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    accept("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }      \n", DTYPE_INT64,
           false, false, 2, shape);
    accept("{'descr': '>i8', 'fortran_order': True, 'shape': (2,), }", DTYPE_INT64, true, true, 1,
           shape);
    accept("{'shape':(),'fortran_order':False,'descr':'<i4'}", DTYPE_INT32, false, false, 0, NULL);
    accept(" {\t\"shape\" : ( 2 , 3 , 0 , 7 , ) , \"descr\" : \">i4\" , \"fortran_order\" : True "
           "}\n \n",
           DTYPE_INT32, true, true, 4, shape);
    accept("{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", DTYPE_INT8, false, false, 1,
           shape);
    accept("{'descr': '>i1', 'fortran_order': False, 'shape': (2L,)}", DTYPE_INT8, false, false, 1,
           shape);
    accept("\f{u'descr': '>i1', 'fortran_order': False, #\n 'shape': (+2, )} # ", DTYPE_INT8, false,
           false, 1, shape);
    accept("({'de' 'scr': (\"\"\">i\\\n4\"\"\"), r'fortran_order': ((True)),\\\n "
           "'shape': (0x2, 0O3, (0b0), 0x_7)\\\n})",
           DTYPE_INT32, true, true, 4, shape);
    accept("{'descr':'<i8','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
           DTYPE_INT64, false, false, 16, ones);
    const int64_t huge[] = {INT64_MAX};
    accept("{'descr':'|i1','fortran_order':False,'shape':(9223372036854775807,)}", DTYPE_INT8,
           false, false, 1, huge);
}

static void test_refused_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "is not a dict"},
        {"{", "is not a dict"},
        {"{'descr' '<i8'}", "is not a dict"},
        {"{'descr': '<i8' 'shape': ()}", "is not a dict"},
        {"{'descr': '<i8',, 'shape': ()}", "is not a dict"},
        {"{}", "lacks the key 'descr'"},
        {"{'descr': '<i8', 'shape': ()}", "lacks the key 'fortran_order'"},
        {"{'descr': '<i8', 'fortran_order': False}", "lacks the key 'shape'"},
        {"{'color': 'red'}", "unknown key 'color'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "dtype '<f8' is not supported"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': ()}", "dtype '<i2' is not supported"},
        {"{'descr': [('a', '<i8')], 'shape': ()}", "'descr' is not a string"},
        {"{'descr': '<i8', 'fortran_order': 0, 'shape': ()}", "neither True nor False"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (,)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3,", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3.5,)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (03,)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (0x,)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1__0,)}", "not a tuple of integers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': ((2,),)}", "not a tuple of integers"},
        {"({'descr': '<i8', 'fortran_order': False, 'shape': ()}", "text after its dict"},
        {"\n {'descr': '<i8', 'fortran_order': False, 'shape': (3,)}", "is not a dict"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (-3,)}", "is negative"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775808,)}",
         "beyond 2^63-1"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846976,)}",
         "larger than 2^63-1 bytes"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': "
         "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         "more than 16 axes"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': ()} x", "text after its dict"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct healcl_error error = {.detail = NULL};
        struct npy_header header = {.big_endian = false};
        expect_refusal(read_header(cases[i].text, &header, &error), &error, cases[i].part);
    }
}

/* A header cut at any place is refused, and nothing after it is read. */
static void test_cut_headers(void **state)
{
    (void)state;
    const char *text = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3,), }";
    for (size_t length = 0; length < strlen(text); length++) {
        struct healcl_error error = {.detail = NULL};
        struct npy_header header = {.big_endian = false};
        char *copy = exact_copy(text, length);
        assert_int_equal(npy_read_header(1, copy, length, &header, &error), HEALCL_REFUSED);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),      cmocka_unit_test(test_refused_prefixes),
        cmocka_unit_test(test_headers),     cmocka_unit_test(test_refused_headers),
        cmocka_unit_test(test_cut_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
