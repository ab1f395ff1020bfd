/* Units, clean strings, paragraphs, tables and exact JSON. */
#include "cli/json.h"
#include "cli/text.h"
#include "cli/view.h"
#include "test_transcript_common.h"

static void test_bytes(void **state)
{
    (void)state;
    const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},          {999, "999 B"},        {1000, "1.00 kB"},       {9994, "9.99 kB"},
        {9995, "10.0 kB"},   {99949, "99.9 kB"},    {99950, "100 kB"},       {999499, "999 kB"},
        {999500, "1.00 MB"}, {13400000, "13.4 MB"}, {UINT64_MAX, "18.4 EB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[UNIT_TEXT_SIZE];
        assert_string_equal(text_bytes(cases[i].bytes, text), cases[i].text);
    }
}

static void test_time(void **state)
{
    (void)state;
    const struct {
        uint64_t nanoseconds;
        const char *text;
    } cases[] = {
        {0, "0 ns"},           {999, "999 ns"},         {1000, "1.00 us"},
        {999499, "999 us"},    {999500, "1.00 ms"},     {1234567, "1.23 ms"},
        {999500000, "1.00 s"}, {75000000000, "75.0 s"}, {3600000000000, "3600 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[UNIT_TEXT_SIZE];
        assert_string_equal(text_time(cases[i].nanoseconds, text), cases[i].text);
    }
}

static void expect_clean(const char *given, bool keep_controls, const char *expected)
{
    char text[64];
    strcpy(text, given);
    text_clean(text, keep_controls);
    assert_string_equal(text, expected);
}

static void test_clean(void **state)
{
    (void)state;
    expect_clean("plain", false, "plain");
    expect_clean("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", false,
                 "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    expect_clean("a\x1b[31m\nb\x7f", false, "a?[31m?b?");
    expect_clean("a\x1b\n", true, "a\x1b\n");
    expect_clean("\xc2\x9b"
                 "1m",
                 false, "??1m");                           /* a control sequence in one character */
    expect_clean("\xff\xc3", false, "??");                 /* bytes of no character */
    expect_clean("\xc0\xaf \xe0\x80\xaf", true, "?? ???"); /* overlong */
    expect_clean("\xed\xa0\x80", true, "???");             /* half of a surrogate pair */
    expect_clean("\xf4\x90\x80\x80 \xf5\x80\x80\x80", true, "???? ????");
    expect_clean("\xe2\x82", true, "??"); /* cut off */
    /* Controls of the writing direction, and their neighbours. */
    expect_clean("a\xe2\x80\xae"
                 "fdp.exe",
                 false, "a???fdp.exe");
    expect_clean("\xe2\x80\x8d \xe2\x80\x8e \xe2\x80\x8f \xe2\x80\x90", false,
                 "\xe2\x80\x8d ??? ??? \xe2\x80\x90");
    expect_clean("\xe2\x80\xa9 \xe2\x80\xaa \xe2\x80\xae \xe2\x80\xaf", false,
                 "\xe2\x80\xa9 ??? ??? \xe2\x80\xaf");
    expect_clean("\xe2\x81\xa5 \xe2\x81\xa6 \xe2\x81\xa9 \xe2\x81\xaa", false,
                 "\xe2\x81\xa5 ??? ??? \xe2\x81\xaa");
    expect_clean("\xd8\x9b \xd8\x9c \xd9\x9c", false, "\xd8\x9b ?? \xd9\x9c");
    expect_clean("\xe2\x80\xae", true, "\xe2\x80\xae");
    assert_int_equal(text_columns("\xc3\xa9\xe2\x82\xac"
                                  "a"),
                     3);
}

/* Captures a function's output in a static buffer. */
struct capture {
    FILE *stream;
    char *text;
    size_t size;
};

static FILE *capture_start(struct capture *capture)
{
    capture->stream = open_memstream(&capture->text, &capture->size);
    assert_non_null(capture->stream);
    return capture->stream;
}

static void capture_expect(struct capture *capture, const char *expected)
{
    assert_int_equal(fclose(capture->stream), 0);
    assert_string_equal(capture->text, expected);
    free(capture->text);
}

static void test_wrap(void **state)
{
    (void)state;
    struct capture capture;
    text_wrap(capture_start(&capture), "one two three four verylongword", 0, 2, 11);
    capture_expect(&capture, "  one two\n  three\n  four\n  verylongword\n");
    text_wrap(capture_start(&capture), "", 0, 2, 11);
    capture_expect(&capture, "\n");
}

static const struct view_column columns[] = {
    {"name", NULL, VIEW_SHRINKS}, {"count", NULL, VIEW_RIGHT}, {"place", NULL, VIEW_SHRINKS}};

static void add_row(struct table *table, const char *name, int count, const char *place)
{
    char number[16];
    snprintf(number, sizeof number, "%d", count);
    table_cell(table, name);
    table_cell(table, number);
    table_cell(table, place);
}

static void test_table(void **state)
{
    (void)state;
    struct capture capture;
    struct table *table = table_create(columns, 3);
    add_row(table, "caf\xc3\xa9", 12, "here");
    add_row(table, "a much longer one", 123456, "");
    add_row(table, "bell\a", 1, "there and everywhere");
    table_print(table, &(struct style){.stream = capture_start(&capture)});
    capture_expect(&capture, "name                count  place\n"
                             "caf\xc3\xa9                   12  here\n"
                             "a much longer one  123456\n"
                             "bell?                   1  there and everywhere\n");
}

static void test_table_shrinks(void **state)
{
    (void)state;
    struct capture capture;
    for (unsigned width = 40; width <= 44; width += 4) {
        struct table *table = table_create(columns, 3);
        add_row(table, "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore", 12, "there and everywhere");
        table_print(table, &(struct style){.stream = capture_start(&capture), .width = width});
        if (width == 44) /* the widest column is cut in its middle */
            capture_expect(&capture, "name                count  place\n"
                                     "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore     12  "
                                     "there a...rywhere\n");
        else /* cut, they would still be too wide */
            capture_expect(&capture,
                           "name                count\n"
                           "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore     12\n\n"
                           "name                place\n"
                           "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore  there and everywhere\n");
    }
}

static void test_json(void **state)
{
    (void)state;
    struct capture capture;
    cJSON *document = cJSON_CreateObject();
    JSON_ADD(document, NUMBER("large", UINT64_MAX), NUMBER("odd", (UINT64_C(1) << 53) + 1),
             INTEGER("least", INT64_MIN), DECIMAL("ratio", 0.125), STRING("name", "a\"\n\xff"),
             STRING("none", NULL), FLAG("yes", true));
    json_add_numbers(document, "list", (uint64_t[]){3, 4}, 2);
    assert_int_equal(json_number_at(document, "list"), 2);
    assert_true(json_number_at(document, "large") == UINT64_MAX);
    json_write(document, capture_start(&capture));
    capture_expect(&capture, "{\n\t\"large\":\t18446744073709551615,\n"
                             "\t\"odd\":\t9007199254740993,\n\t\"least\":\t-9223372036854775808,\n"
                             "\t\"ratio\":\t0.125,\n\t\"name\":\t\"a\\\"\\n?\",\n"
                             "\t\"none\":\tnull,\n\t\"yes\":\ttrue,\n\t\"list\":\t[3, 4]\n}\n");
}

/* Sums by name, the largest first. */
static void test_rows(void **state)
{
    (void)state;
    cJSON *list = cJSON_CreateArray();
    json_increase(json_row(list, "name", "a"), "sum", 1);
    json_increase(json_row(list, "name", "b"), "sum", 5);
    json_increase(json_row(list, "name", "a"), "sum", 2);
    json_sort(list, "sum");
    char *text = cJSON_PrintUnformatted(list);
    assert_string_equal(text, "[{\"name\":\"b\",\"sum\":5},{\"name\":\"a\",\"sum\":3}]");
    cJSON_free(text);
    cJSON_Delete(list);
}

/* ---------------------------------------------------------------- views */

static void expect_view(const cJSON *document, const char *template, const char *expected)
{
    const char *text = view_fill(document, template);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
}

static void test_view(void **state)
{
    (void)state;
    cJSON *document = cJSON_CreateObject(), *inner = json_add_object(document, "in");
    JSON_ADD(document, STRING("name", "a\x1b"), STRING("empty", ""), STRING("null", NULL),
             STRING("version", "OpenCL 3.0 x"), NUMBER("one", 1), NUMBER("zero", 0),
             NUMBER("time", 2500), NUMBER("whole", 5000), FLAG("yes", true), FLAG("no", false));
    json_add_integers(document, "shape", (int64_t[]){3, -4}, 2);
    json_add_string(json_add_array(inner, "texts"), NULL, "x");
    const struct {
        const char *template, *expected;
    } cases[] = {
        {"{name} of {in.texts}", "a? of x"},
        {"{shape}, {shape:#}, {in.texts:#}", "[3, -4], 2, 1"},
        {"{time:time} {time:bytes} {time:count}", "2.50 us 2.50 kB 2.50 k"},
        {"{one} step{one:s}, {zero} step{zero:s}", "1 step, 0 steps"},
        {"{time/whole:%} {whole/time:%} {time/whole:.2}", "50.0 % 100.0 %, in cache 0.50"},
        {"{whole/time:+} {time/whole:+} {time/whole:factor}", "+100% -50% 0.50"},
        {"{version:word}", "3.0"},
        {"{empty|none}{null|none}{name|none}", "nonenonea?"},
        {"{yes=, yes}{no=, no}{gone=, gone}{gone!, not}", ", yes, not"},
        {"a[, {gone}][, {zero:#?}][, {time:time?}]", "a, 2.50 us"},
        {"[{gone}]", ""},
        {"{gone}", NULL},
        {"{null}", NULL},
        {"{zero:time?}", NULL},
        {"{empty:?}", NULL},
        {"{time/zero:%}", NULL},
        {"{in.gone.more}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_view(document, cases[i].template, cases[i].expected);
    cJSON_Delete(document);
}

static void test_view_table(void **state)
{
    (void)state;
    struct capture capture;
    const struct style style = {.stream = capture_start(&capture)};
    static const struct view_column views[] = {
        {"name", "{name}", 0}, {"time", "{time:time}", VIEW_RIGHT}, {"note", "{note}", VIEW_BLANK}};
    cJSON *rows = cJSON_CreateArray();
    json_add_string(json_add_object(rows, NULL), "name", "a");
    JSON_ADD(json_add_object(rows, NULL), STRING("name", "bb"), NUMBER("time", 12),
             STRING("note", "new"));
    VIEW_TABLE(&style, rows, views);
    view_each(&style, rows, "{name}: {note}");
    view_line(&style, rows->child, "label", "{name}");
    cJSON_Delete(rows);
    capture_expect(&capture, "name   time  note\n"
                             "a         -\n"
                             "bb    12 ns  new\n"
                             "bb: new\n"
                             "label       a\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_time),
        cmocka_unit_test(test_clean), cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_table), cmocka_unit_test(test_table_shrinks),
        cmocka_unit_test(test_json),  cmocka_unit_test(test_rows),
        cmocka_unit_test(test_view),  cmocka_unit_test(test_view_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
