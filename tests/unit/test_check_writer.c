/* Transcripts as they are written: arguments, payloads, and what is read of them again. */
#include "test_transcript_common.h"

#include "tools/writer.h"
#include "transcript/base64.h"

static void encodes_base64(void **state)
{
    (void)state;
    /* RFC 4648, section 10 */
    static const char *const texts[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xfb\xff", "+/8="}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[16];
        size_t count = strlen(texts[i][0]);
        base64_encode((const unsigned char *)texts[i][0], count, text);
        assert_string_equal(text, texts[i][1]);
        assert_int_equal(base64_length(count), strlen(text));
    }
}

static void headers_are_read_again(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank <= MAX_RANK; rank++)
        for (int dtype = 0; dtype < 2 * DTYPE_COUNT; dtype++) {
            struct layout shape = {.rank = rank};
            for (uint32_t axis = 0; axis < rank; axis++)
                shape.shape[axis] = 1 + axis % 3;
            struct npy_header header;
            struct healcl_error error = {0};
            char text[NPY_HEADER_SIZE];
            uint32_t start, data;
            size_t length = npy_write_header((enum dtype)(dtype / 2), &shape, dtype % 2, text);
            assert_int_equal(length % 64, 0);
            expect_ok(npy_read_prefix((unsigned char *)text, length, &start, &data, &error),
                      &error);
            assert_int_equal(data, length);
            expect_ok(npy_read_header(1, text + start, data - start, &header, &error), &error);
            assert_int_equal(header.dtype, dtype / 2);
            assert_int_equal(header.fortran_order, dtype % 2);
            assert_true(layout_same_shape(&header.layout, &shape));
        }
}

/* arguments: as they are to stand in the transcript, with ' for ". */
static void check_words(const char *words, const char *arguments)
{
    struct writer writer = {0};
    char expected[512];
    writer_call(&writer, "out", "f", "%s", words);
    char *text = writer_finish(&writer);
    snprintf(expected, sizeof expected,
             "[\n{'type':'DEVICE_OP','op':{'name':'f','args':[%s],'out':"
             "{'arg_type':'DEVICE_TENSOR','value':{'inf_name':'out'}}}}\n]\n",
             arguments);
    for (char *quote = expected; (quote = strchr(quote, '\''));)
        *quote = '"';
    assert_string_equal(text, expected);
    free(text);
}

static void arguments_are_words(void **state)
{
    (void)state;
    check_words("", "");
    check_words("a0 -17", "{'arg_type':'DEVICE_TENSOR','value':{'inf_name':'a0'}},"
                          "{'arg_type':'INT','value':-17}");
    check_words("none :int8 ", "{'arg_type':'NONE','value':null},"
                               "{'arg_type':'TENSOR_TYPE','value':'int8'}");
    check_words("[] (3)", "{'arg_type':'SHAPE','value':[]},"
                          "{'arg_type':'SHAPE','value':[{'arg_type':'INT','value':3}]}");
    check_words("[2, -1]", "{'arg_type':'SHAPE','value':[{'arg_type':'INT','value':2},"
                           "{'arg_type':'INT','value':-1}]}");
    check_words("[...,2:]", "{'arg_type':'SHAPE','value':[{'arg_type':'ELLIPSIS','value':null},"
                            "{'arg_type':'SLICE','value':{'start':2,'stop':null,'step':null}}]}");
    check_words("[:-3,4:5:6]", "{'arg_type':'SHAPE','value':["
                               "{'arg_type':'SLICE','value':{'start':null,'stop':-3,'step':null}},"
                               "{'arg_type':'SLICE','value':{'start':4,'stop':5,'step':6}}]}");
}

static void entries_follow_each_other(void **state)
{
    (void)state;
    struct writer writer = {0};
    writer_entry(&writer, "SEGMENT_START", "name", "s");
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    char *text = writer_finish(&writer);
    assert_string_equal(text, "[\n{\"type\":\"SEGMENT_START\",\"name\":\"s\"},\n"
                              "{\"type\":\"SEGMENT_END\"}\n]\n");
    free(text);
}

static void nothing_is_an_empty_list(void **state)
{
    (void)state;
    struct writer writer = {0};
    char *text = writer_finish(&writer);
    assert_string_equal(text, "[]\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_base64),           cmocka_unit_test(headers_are_read_again),
        cmocka_unit_test(arguments_are_words),      cmocka_unit_test(entries_follow_each_other),
        cmocka_unit_test(nothing_is_an_empty_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
