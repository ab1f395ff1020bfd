#include "test_transcript_common.h"

#include "transcript/base64.h"
#include "transcript/escape.h"

static void check(const char *text, size_t length, bool escaped, const char *refusal,
                  uint64_t expected)
{
    struct healcl_error error = {.detail = NULL};
    uint64_t decoded = 0;
    char *copy = exact_copy(text, length);
    enum healcl_status status = base64_check(copy, length, escaped, &decoded, &error);
    free(copy);
    if (refusal) {
        expect_refusal(status, &error, refusal);
        return;
    }
    expect_ok(status, &error);
    assert_int_equal(decoded, expected);
}

static void refuse(const char *text, const char *refusal)
{
    check(text, strlen(text), false, refusal, 0);
    check(text, strlen(text), true, refusal, 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint64_t random = 42;
    for (size_t length = 0; length < 300; length++) {
        unsigned char bytes[300];
        char text[512];
        for (size_t i = 0; i < length; i++)
            bytes[i] = (unsigned char)next_random(&random);
        size_t characters = encode_base64(bytes, length, text);
        check(text, characters, false, NULL, length);
        check(text, characters, true, NULL, length);

        /* Exactly three bytes for each group, none behind. */
        char *copy = exact_copy(text, characters);
        unsigned char *decoded = malloc(characters / 4 * 3 + 8);
        assert_non_null(decoded);
        memset(decoded, 0xa5, characters / 4 * 3 + 8);
        base64_decode(copy, characters / 4, decoded);
        assert_memory_equal(decoded, bytes, length);
        for (size_t i = length; i < characters / 4 * 3; i++)
            assert_int_equal(decoded[i], 0);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(decoded[characters / 4 * 3 + i], 0xa5);
        free(decoded);
        free(copy);
    }
}

static void test_every_character(void **state)
{
    (void)state;
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int c = 0; c < 256; c++) {
        bool good = c != 0 && strchr(alphabet, c);
        /* In the first block, at a block's border, and among the rest. */
        for (size_t place = 0; place < 300; place += 43) {
            char text[300];
            char wanted[64];
            memset(text, 'A', sizeof text);
            text[place] = (char)c;
            put(wanted, sizeof wanted, "at %zu is not", place);
            check(text, sizeof text, false, good ? NULL : wanted, 225);
            if (c != '\\')
                check(text, sizeof text, true, good ? NULL : wanted, 225);
        }
    }
}

static void test_padding_and_length(void **state)
{
    (void)state;
    check("", 0, false, NULL, 0);
    check("", 0, true, NULL, 0);
    check("QQ==", 4, false, NULL, 1);
    check("QUE=", 4, false, NULL, 2);
    check("QUFB", 4, false, NULL, 3);
    refuse("A", "length 1 is not a multiple of 4");
    refuse("AAAAA", "length 5 is not a multiple of 4");
    refuse("QQ=", "length 3 is not a multiple of 4");
    refuse("=", "length 1 is not a multiple of 4");
    refuse("==", "length 2 is not a multiple of 4");
    refuse("====", "padding '=' at 0 is not at the end");
    refuse("Q===", "padding '=' at 1 is not at the end");
    refuse("QQ==QUFB", "padding '=' at 2 is not at the end");
    refuse("Q=QQ", "padding '=' at 1 is not at the end");
    refuse("QU\nFB", "character 0x0a at 2 is not in the alphabet");
    refuse("QU-B", "character '-' at 2 is not in the alphabet");
    refuse("QU_B", "character '_' at 2 is not in the alphabet");
    refuse("QUFB ", "character ' ' at 4 is not in the alphabet");
}

static void test_escapes(void **state)
{
    (void)state;
    check("\\/\\/\\/\\/", 8, true, NULL, 3);
    check("\\u002b\\u002F\\u0041A", 19, true, NULL, 3);
    check("QQ\\u003d=", 9, true, NULL, 1);
    check("QQ=\\u003d", 9, true, NULL, 1);
    check("AA\\nA", 5, true, "character 0x0a at 2 is not", 0);
    check("AA\\\"A", 5, true, "character '\"' at 2 is not", 0);
    check("AA\\u00e9A", 9, true, "character 0xff at 2 is not", 0);
    check("AA\\u12", 6, true, "character 0xff at 2 is not", 0);
    check("AA\\u1x34", 8, true, "character 0xff at 2 is not", 0);
    check("AAA\\", 4, true, "character 0xff at 3 is not", 0);
    check("AAA\\x", 5, true, "character 0xff at 3 is not", 0);

    /* Longer than a block, with an escape in each place of a group; then one bad character. */
    enum { GROUPS = 5000 };
    char *text = malloc(GROUPS * 10 + 1);
    assert_non_null(text);
    size_t length = 0;
    for (int i = 0; i < GROUPS; i++)
        length += (size_t)sprintf(text + length, "%s", i % 2 ? "A\\u0042C\\/" : "\\/BCD");
    check(text, length, true, NULL, GROUPS * 3);
    text[length - 1] = '!'; /* "\!" is no escape */
    check(text, length, true, "character 0xff at 19999 is not", 0);
    free(text);
}

static void test_escape_resolve(void **state)
{
    (void)state;
    const char *text = "a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u007a";
    size_t left = strlen(text);
    char characters[16];
    assert_int_equal(escape_resolve(&text, &left, characters, 3), 3);
    assert_memory_equal(characters, "a\"\\", 3);
    assert_int_equal(escape_resolve(&text, &left, characters, sizeof characters), 7);
    assert_memory_equal(characters, "/\b\f\n\r\tz", 7);
    assert_int_equal(left, 0);
    assert_int_equal(escape_resolve(&text, &left, characters, sizeof characters), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_padding_and_length), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_escape_resolve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
