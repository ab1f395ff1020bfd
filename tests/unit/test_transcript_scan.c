#include "test_transcript_common.h"

#include "transcript/scan.h"

/* Scans a whole text; the rewritten entries end up in entries, each after a line break. */
static enum healcl_status scan(const char *text, size_t length, char *entries, size_t size,
                               struct healcl_error *error)
{
    char *copy = exact_copy(text, length);
    struct source source = {.text = copy, .length = length};
    static char rewritten[SCAN_TEXT_MAX + 1];
    struct scanner scanner = {.source = &source, .text = rewritten};
    enum healcl_status status;
    size_t used = 0;
    while ((status = scanner_next(&scanner, error)) == HEALCL_OK && scanner.in_entry) {
        assert_int_equal(strlen(rewritten), scanner.length);
        used += (size_t)snprintf(entries + used, size - used, "%s\n", rewritten);
        assert_true(used < size);
    }
    if (status == HEALCL_OK) {
        /* The end stays the end. */
        expect_ok(scanner_next(&scanner, error), error);
        assert_false(scanner.in_entry);
    }
    free(copy);
    return status;
}

static void accept(const char *text, const char *expected)
{
    struct healcl_error error = {.detail = NULL};
    char entries[TEXT_SIZE] = "";
    expect_ok(scan(text, strlen(text), entries, sizeof entries, &error), &error);
    assert_string_equal(entries, expected);
}

static void refuse_bytes(const char *text, size_t length, const char *part)
{
    struct healcl_error error = {.detail = NULL};
    char entries[TEXT_SIZE];
    expect_refusal(scan(text, length, entries, sizeof entries, &error), &error, part);
}

static void refuse(const char *text, const char *part)
{
    refuse_bytes(text, strlen(text), part);
}

static void test_top_level(void **state)
{
    (void)state;
    accept("[]", "");
    accept(" \r\n\t[ ] \n", "");
    accept("[1]", "\"#1\"\n");
    accept("[1,2 , 3]", "\"#1\"\n\"#2\"\n\"#3\"\n");
    accept("{\"__type__\":\"ExecutionTranscript\",\"transcript\":[]}", "");
    accept(" { \"__type__\" : \"ExecutionTranscript\" , \"transcript\" : [ 1 , 2 ] } ",
           "\"#1\"\n\"#2\"\n");
    accept("{\"transcript\":[1],\"__type__\":\"ExecutionTranscript\"}", "\"#1\"\n");
    accept("{\"a\":{\"transcript\":[7]},\"transcript\":[1],\"b\":[{\"c\":\"\\u00e9\"}],"
           "\"__type__\":\"ExecutionTranscript\",\"d\":1.5e7}",
           "\"#1\"\n");
    accept("{\"\\u005f_type__\":\"Execution\\u0054ranscript\",\"tr\\u0061nscript\":[1]}",
           "\"#1\"\n");
}

static void test_refused_top_levels(void **state)
{
    (void)state;
    const char *neither = "the top level is neither an ExecutionTranscript nor a list";
    refuse("", "the file is empty");
    refuse(" \n", "not JSON at byte 2: the file ends where a value is expected");
    refuse("hello", "not JSON at byte 0: a value is expected, not 'h'");
    refuse("\xef\xbb\xbf[]", "not JSON at byte 0: a value is expected, not byte 0xef");
    refuse("null", neither);
    refuse("{\"transcript\":[]}", neither);
    refuse("{\"__type__\":\"ExecutionTranscript\"}", neither);
    refuse("{\"__type__\":\"Other\",\"transcript\":[]}", neither);
    refuse("{\"__type__\":7,\"transcript\":[]}", neither);
    refuse("{\"type\":\"DEVICE_OP\"}", neither);
    refuse("{\"__type__\":\"ExecutionTranscript\",\"transcript\":{}}",
           "the value of 'transcript' is not a list");
    refuse("{\"transcript\":[],\"__type__\":\"ExecutionTranscript\",\"transcript\":[]}",
           "'transcript' appears twice");
    refuse("{\"__type__\":\"ExecutionTranscript\",\"__type__\":\"ExecutionTranscript\"}",
           "'__type__' appears twice");
    refuse("[]]", "not JSON at byte 2: the end of the file");
    refuse_bytes("[]\0", 3, "not JSON at byte 2: the end of the file is expected, not byte 0x00");
    refuse("{\"__type__\":\"ExecutionTranscript\",\"transcript\":[]} {}", "the end of the file");
    refuse("{\"__type__\":\"ExecutionTranscript\",\"transcript\":[]",
           "not JSON at byte 49: the file ends where ',' or '}' is expected");
}

static void test_rewriting(void **state)
{
    (void)state;
    accept("[ [ null , true,false, {} ,[], \"\", \"a b\" ] ]",
           "[null,true,false,{},[],\"$\",\"$a b\"]\n");
    accept("[{ \"a\" : 1 , \"b\" : \"x\" }]", "{\"a\":\"#1\",\"b\":\"$x\"}\n");
    accept("[{\"data\":\"AAAA\"}]", "{\"data\":\"@10,4,4\"}\n");
    accept("[{\"data\":\"\"}]", "{\"data\":\"@10,0,0\"}\n");
    accept("[{\"data\" : \"A\\/+A\"}]", "{\"data\":\"@12,5,1\"}\n");
    accept("[{\"d\\u0061ta\":\"AAAA\"}]", "{\"d\\u0061ta\":\"@15,4,4\"}\n");
    /* Only strings, and only right after the key. */
    accept("[{\"data\":7,\"DATA\":\"x\",\"data2\":\"y\"}]",
           "{\"data\":\"#7\",\"DATA\":\"$x\",\"data2\":\"$y\"}\n");
    accept("[{\"data\":[\"x\",{\"data\":\"y\"}]}]", "{\"data\":[\"$x\",{\"data\":\"@23,1,1\"}]}\n");
    /* Text that looks like the scanner's own marks. */
    accept("[\"#1\",\"@1,2\",\"$\"]", "\"$#1\"\n\"$@1,2\"\n\"$$\"\n");
    accept("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\uDE00\"]",
           "\"$\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\uDE00\"\n");
    accept("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"]",
           "\"$\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"\n");
}

static void test_numbers(void **state)
{
    (void)state;
    accept("[0,-0,10,-9223372036854775808,18446744073709551616,1.50,0.0,1e5,1E+5,-1.5e-05]",
           "\"#0\"\n\"#-0\"\n\"#10\"\n\"#-9223372036854775808\"\n\"#18446744073709551616\"\n"
           "\"#1.50\"\n\"#0.0\"\n\"#1e5\"\n\"#1E+5\"\n\"#-1.5e-05\"\n");
    refuse("[01]", "not JSON at byte 2: ',' or ']' is expected, not '1'");
    refuse("[-]", "not JSON at byte 2: a digit is expected, not ']'");
    refuse("[+1]", "a value is expected, not '+'");
    refuse("[.5]", "a value is expected, not '.'");
    refuse("[1.]", "a digit is expected, not ']'");
    refuse("[1e]", "a digit is expected, not ']'");
    refuse("[-Infinity]", "a digit is expected, not 'I'");
    refuse("[1", "the file ends where ',' or ']' is expected");
}

static void test_structure(void **state)
{
    (void)state;
    refuse("[1 2]", "not JSON at byte 3: ',' or ']' is expected, not '2'");
    refuse("[1,]", "not JSON at byte 3: a value is expected after ','");
    refuse("[,1]", "a value is expected, not ','");
    refuse("[{\"a\":1,}]", "a value is expected after ','");
    refuse("[{\"a\" 1}]", "':' is expected, not '1'");
    refuse("[{\"a\":}]", "a value is expected, not '}'");
    refuse("[{\"a\":1 \"b\":2}]", "',' or '}' is expected, not '\"'");
    refuse("[{a:1}]", "a key is expected, not 'a'");
    refuse("[1}", "',' or ']' is expected, not '}'");
    refuse("[tru]", "true is expected, not ']'");
    refuse("[falsy]", "false is expected, not 'y'");
    refuse("[\v1]", "a value is expected, not byte 0x0b");
}

static void test_strings(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"[\"", "[{\"", "[{\"data\":\""};
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"abc", "the file ends within a string"},
        {"a\nb\"]", "a control character within a string"},
        {"a\\x\"]", "an escape is expected, not 'x'"},
        {"a\\", "the file ends where an escape is expected"},
        {"a\\u12g4\"]", "a hexadecimal digit is expected, not 'g'"},
        {"a\\u0000\"]", "\\u0000 is not supported"},
        {"a\\udc00\"]", "half a surrogate pair"},
        {"a\\ud800\"]", "half a surrogate pair"},
        {"a\\ud800\\ud800\"]", "half a surrogate pair"},
        {"a\\ud800\\ue000\"]", "half a surrogate pair"},
        {"a\x80\"]", "not UTF-8"},
        {"a\xc1\x81\"]", "not UTF-8"},
        {"a\xc3", "not UTF-8"},
        {"a\xe0\x9f\xbf\"]", "not UTF-8"},
        {"a\xed\xa0\x80\"]", "not UTF-8"},
        {"a\xf0\x8f\xbf\xbf\"]", "not UTF-8"},
        {"a\xf4\x90\x80\x80\"]", "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
            char text[128];
            put(text, sizeof text, "%s%s", prefixes[i], cases[j].text);
            refuse(text, cases[j].part);
        }
    refuse_bytes("[\"a\0b\"]", 7, "a control character within a string");
}

/* Strings whose ends and escapes lie around the borders of the scanner's blocks. */
static void test_long_strings(void **state)
{
    (void)state;
    static const size_t lengths[] = {127, 128, 129, 16383, 16384, 16385, 32768, 70000};
    char *text = malloc(80000);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int escaped = 0; escaped < 2; escaped++) {
            struct healcl_error error = {.detail = NULL};
            char entries[128], expected[128];
            size_t length = lengths[i];
            memcpy(text, "[{\"data\":\"", 10);
            memset(text + 10, 'A', length);
            if (escaped)
                memcpy(text + 10 + length - 2, "\\\"", 2);
            memcpy(text + 10 + length, "\"}]", 3);
            expect_ok(scan(text, length + 13, entries, sizeof entries, &error), &error);
            put(expected, sizeof expected, "{\"data\":\"@10,%zu,%zu\"}\n", length,
                escaped ? length - 2 : length);
            assert_string_equal(entries, expected);
            refuse_bytes(text, length + 10, "the file ends within a string");
            text[10 + length / 2] = '\t';
            refuse_bytes(text, length + 13, "a control character within a string");
        }
    free(text);
}

static void test_depth(void **state)
{
    (void)state;
    char text[512];
    for (int depth = SCAN_DEPTH_MAX; depth <= SCAN_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        if (depth == SCAN_DEPTH_MAX) {
            struct healcl_error error = {.detail = NULL};
            char entries[256];
            expect_ok(scan(text, strlen(text), entries, sizeof entries, &error), &error);
        } else {
            refuse(text, "nest deeper than 64 at byte 64");
        }
    }
    /* Nesting where the top level is skipped, and in an object. */
    char skipped[512];
    memset(text, '[', 64);
    text[64] = 0;
    put(skipped, sizeof skipped, "{\"x\":%s", text);
    refuse(skipped, "nest deeper than 64");
    put(skipped, sizeof skipped, "{\"transcript\":[%s", text);
    refuse(skipped, "nest deeper than 64");

    enum { BOMB = 4000000 };
    char *bomb = malloc(BOMB);
    assert_non_null(bomb);
    memset(bomb, '[', BOMB);
    refuse_bytes(bomb, BOMB, "nest deeper than 64");
    free(bomb);
}

static void test_entry_size(void **state)
{
    (void)state;
    struct healcl_error error = {.detail = NULL};
    char *text = malloc(SCAN_TEXT_MAX + 64);
    char *entries = malloc(SCAN_TEXT_MAX + 64);
    assert_true(text && entries);
    /* A string's quotes and mark count, so this one is just as long as is allowed. */
    size_t length = SCAN_TEXT_MAX - 3;
    memcpy(text, "[\"", 2);
    memset(text + 2, 'x', length + 1);
    memcpy(text + 2 + length, "\"]", 2);
    expect_ok(scan(text, length + 4, entries, SCAN_TEXT_MAX + 64, &error), &error);
    memcpy(text + 2 + length, "x\"]", 3);
    refuse_bytes(text, length + 5, "the text beside base64 is longer than 1048576 bytes");

    /* White space and base64 do not count, and neither does what is skipped. */
    char *large = malloc(2 * SCAN_TEXT_MAX + 64);
    assert_non_null(large);
    memset(large, ' ', 2 * SCAN_TEXT_MAX);
    large[0] = '[';
    large[2 * SCAN_TEXT_MAX] = ']';
    expect_ok(scan(large, 2 * SCAN_TEXT_MAX + 1, entries, 64, &error), &error);
    memset(large, 'A', 2 * SCAN_TEXT_MAX);
    memcpy(large, "[{\"data\":\"", 10);
    memcpy(large + 2 * SCAN_TEXT_MAX, "\"}]", 3);
    expect_ok(scan(large, 2 * SCAN_TEXT_MAX + 3, entries, 64, &error), &error);
    memset(large, 'A', 2 * SCAN_TEXT_MAX);
    memcpy(large, "{\"x\":\"", 6);
    const char *rest = "\",\"transcript\":[],\"__type__\":\"ExecutionTranscript\"}";
    memcpy(large + 2 * SCAN_TEXT_MAX, rest, strlen(rest));
    expect_ok(scan(large, 2 * SCAN_TEXT_MAX + strlen(rest), entries, 64, &error), &error);
    free(large);
    free(entries);
    free(text);
}

/* A file cut at any place is refused. */
static void test_cut_files(void **state)
{
    (void)state;
    const char *text = "{\"__type__\":\"ExecutionTranscript\",\"transcript\":[[{\"a\":-1.5e3},"
                       "\"\\ud83d\\ude00\xc3\xa9\"],{\"data\":\"AA\\/A\"}],\"z\":[null,true]}";
    struct healcl_error error = {.detail = NULL};
    char entries[512];
    expect_ok(scan(text, strlen(text), entries, sizeof entries, &error), &error);
    for (size_t length = 0; length < strlen(text); length++)
        assert_int_equal(scan(text, length, entries, sizeof entries, &error), HEALCL_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_level),    cmocka_unit_test(test_refused_top_levels),
        cmocka_unit_test(test_rewriting),    cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_structure),    cmocka_unit_test(test_strings),
        cmocka_unit_test(test_long_strings), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_entry_size),   cmocka_unit_test(test_cut_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
