/* Units, clean strings, paragraphs, tables and exact JSON. */
#include "report/columns.h"
#include "report/json.h"
#include "report/table.h"
#include "report/text.h"
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

/* What a function prints, in a static buffer. */
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
    text_wrap(capture_start(&capture), "one two three four verylongword", 2, 11);
    capture_expect(&capture, "  one two\n  three\n  four\n  verylongword\n");
    text_wrap(capture_start(&capture), "", 2, 11);
    capture_expect(&capture, "\n");
}

static const struct table_column columns[] = {
    {"name", TABLE_LEFT, true}, {"count", TABLE_RIGHT, false}, {"place", TABLE_LEFT, true}};

static void add_row(struct table *table, const char *name, int count, const char *place)
{
    table_cell(table, "%s", name);
    table_cell(table, "%d", count);
    table_cell(table, "%s", place);
}

static void test_table(void **state)
{
    (void)state;
    struct capture capture;
    struct table *table = table_create(columns, 3);
    add_row(table, "caf\xc3\xa9", 12, "here");
    add_row(table, "a much longer one", 123456, "");
    add_row(table, "bell\a", 1, "there and everywhere");
    assert_int_equal(table_print(table, capture_start(&capture), 0), HEALCL_OK);
    capture_expect(&capture, "name                count  place\n"
                             "caf\xc3\xa9                   12  here\n"
                             "a much longer one  123456\n"
                             "bell?                   1  there and everywhere\n");
}

static void test_table_shrinks(void **state)
{
    (void)state;
    struct capture capture;
    for (unsigned width = 1; width <= 40; width += 13) {
        struct table *table = table_create(columns, 3);
        add_row(table, "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore", 12, "there and everywhere");
        assert_int_equal(table_print(table, capture_start(&capture), width), HEALCL_OK);
        if (width == 40)
            capture_expect(&capture, "name                count  place\n"
                                     "t\xc3\xaate-\xc3\xa0-t\xc3\xaate encore     12  there and "
                                     "...\n");
        else if (width == 27)
            capture_expect(&capture, "name        count  place\n"
                                     "t\xc3\xaate-\xc3\xa0-...     12  there...\n");
        else
            capture_expect(&capture, "name      count  place\n"
                                     "t\xc3\xaate-...     12  there...\n");
    }
}

static void test_table_without_memory(void **state)
{
    (void)state;
    table_cell(NULL, "%d", 1);
    assert_int_equal(table_print(NULL, stdout, 0), HEALCL_NO_MEMORY);
}

static void test_json(void **state)
{
    (void)state;
    struct capture capture;
    struct json json;
    json_begin(&json, "1");
    json_number(&json, json.top, "large", UINT64_MAX);
    json_number(&json, json.top, "odd", (UINT64_C(1) << 53) + 1);
    json_string(&json, json.top, "name", "a\"\n\xff");
    json_bool(&json, json.top, "yes", true);
    json_null(&json, json.top, "none");
    json_number(&json, json_array(&json, json.top, "list"), NULL, 3);
    assert_int_equal(json_print(&json, capture_start(&capture)), HEALCL_OK);
    capture_expect(&capture, "{\n\t\"healcl\":\t\"1\",\n\t\"large\":\t18446744073709551615,\n"
                             "\t\"odd\":\t9007199254740993,\n\t\"name\":\t\"a\\\"\\n?\",\n"
                             "\t\"yes\":\ttrue,\n\t\"none\":\tnull,\n\t\"list\":\t[3]\n}\n");
}

/* A missing parent is what is left where memory was lacking. */
static void test_json_without_memory(void **state)
{
    (void)state;
    struct json json;
    json_begin(&json, "1");
    json_number(&json, NULL, "lost", 1);
    assert_true(json.failed);
    assert_int_equal(json_print(&json, stdout), HEALCL_NO_MEMORY);
}

/* ---------------------------------------------------------------- columns */

struct record {
    const char *name;
    bool is_new;
    uint64_t count, load, bytes, rare;
    uint32_t small;
    double decimal;
    uint64_t figures[12];
};

COLUMN_IF(twice, struct record, number, it->count > 0, 2 * it->count)
COLUMN_OF(quoted, struct record, text,
          (snprintf(value->room, sizeof value->room, "'%s'", it->name), value->room))

#define FIELD(member) COLUMN_FIELD(struct record, member)

enum { IN_OTHER = IN_TEXT << 1 };

static const struct column record_rows[] = {
    {"name", "name", COLUMN_TEXT, IN_TEXT, FIELD(name)},
    {NULL, "quoted", COLUMN_TEXT, IN_OTHER | TO_THE_RIGHT, .value = quoted},
    {"is.new", "new", COLUMN_FLAG, IN_TEXT, FIELD(is_new)},
    {"is.count", "count", COLUMN_COUNT, IN_TEXT | IN_OTHER, FIELD(count)},
    {"load", NULL, COLUMN_HUNDREDTHS, 0, FIELD(load)},
    {"bytes", "bytes", COLUMN_BYTES, IN_TEXT | DASH_IF_0, FIELD(bytes)},
    {"rare", "rare", COLUMN_COUNT, IN_TEXT | NONE_IF_0 | BLANK, FIELD(rare)},
    {"small", "small", COLUMN_COUNT, IN_TEXT, FIELD(small)},
    {"decimal", "decimal", COLUMN_DECIMAL, IN_TEXT, FIELD(decimal), .decimals = 1},
    {"twice", "twice", COLUMN_COUNT, IN_OTHER, .value = twice},
    {"figure", "figure", COLUMN_TIME, IN_OTHER, .field = 0},
};

static const struct column_table record_columns = {
    .columns = record_rows,
    .count = sizeof record_rows / sizeof *record_rows,
    .figures = 1 + offsetof(struct record, figures),
};

static const struct record full = {"a", true, 3, 150, 2000, 5, 7, 2.25, {[10] = 4000}};
static const struct record bare = {.name = "b"};

static void test_columns_as_text(void **state)
{
    (void)state;
    struct capture capture;
    struct table *table = columns_create(&record_columns, IN_TEXT);
    columns_row(table, &record_columns, IN_TEXT, NULL, &full);
    columns_row(table, &record_columns, IN_TEXT, NULL, &bare);
    assert_int_equal(table_print(table, capture_start(&capture), 0), HEALCL_OK);
    capture_expect(&capture, "name  new  count    bytes  rare  small  decimal\n"
                             "a     yes      3  2.00 kB     5      7      2.2\n"
                             "b      no      0        -            0      0.0\n");
    table = columns_create(&record_columns, IN_OTHER);
    columns_row(table, &record_columns, IN_OTHER, NULL, &full);
    columns_row(table, &record_columns, IN_OTHER, NULL, &bare);
    assert_int_equal(table_print(table, capture_start(&capture), 0), HEALCL_OK);
    capture_expect(&capture, "quoted  count  twice   figure\n"
                             "   'a'      3      6  4.00 us\n"
                             "   'b'      0      -     0 ns\n");
}

static void test_columns_as_json(void **state)
{
    (void)state;
    struct capture capture;
    struct json json;
    json_begin(&json, "1");
    columns_add_json(&json, json.top, &record_columns, NULL, &full);
    columns_add_json(&json, json_object(&json, json.top, "bare"), &record_columns, NULL, &bare);
    assert_int_equal(json_print(&json, capture_start(&capture)), HEALCL_OK);
    capture_expect(
        &capture,
        "{\n\t\"healcl\":\t\"1\",\n\t\"name\":\t\"a\",\n\t\"is\":\t{\n\t\t\"new\":\ttrue,"
        "\n\t\t\"count\":\t3\n\t},\n\t\"load\":\t1.5,\n\t\"bytes\":\t2000,\n\t\"rare\":\t5,"
        "\n\t\"small\":\t7,\n\t\"decimal\":\t2.25,\n\t\"twice\":\t6,\n\t\"figure\":\t4000,"
        "\n\t\"bare\":\t{\n\t\t\"name\":\t\"b\",\n\t\t\"is\":\t{\n\t\t\t\"new\":\tfalse,"
        "\n\t\t\t\"count\":\t0\n\t\t},\n\t\t\"load\":\t0,\n\t\t\"bytes\":\t0,"
        "\n\t\t\"small\":\t0,\n\t\t\"decimal\":\t0,\n\t\t\"figure\":\t0\n\t}\n}\n");
}

static const char *keep_text(void *context, const char *text)
{
    (void)context;
    return strcmp(text, "a") == 0 ? full.name : text;
}

/* What is read is what was told; what is missing, or of another type, is empty. */
static void test_columns_read(void **state)
{
    (void)state;
    struct record record = full;
    cJSON *top =
        cJSON_Parse("{\"name\": \"a\", \"is\": {\"new\": true, \"count\": 3}, \"load\": 1.5,"
                    "\"bytes\": 2000, \"rare\": 5, \"small\": 7, \"decimal\": 2.25,"
                    "\"twice\": 99, \"figure\": 4000}");
    memset(&record, 0, sizeof record);
    columns_read_json(top, &record_columns, &record, keep_text, NULL);
    cJSON_Delete(top);
    assert_memory_equal(&record, &full, sizeof full);
    top = cJSON_Parse("{\"name\": 1, \"is\": [], \"load\": \"x\", \"bytes\": -1, \"rare\": 1e300,"
                      "\"small\": 5e9, \"decimal\": null}");
    columns_read_json(top, &record_columns, &record, keep_text, NULL);
    cJSON_Delete(top);
    assert_string_equal(record.name, "");
    assert_false(record.is_new);
    assert_true(record.count == 0 && record.load == 0 && record.bytes == 0 && record.rare == 0);
    assert_true(record.small == 0 && record.decimal >= 0 && record.decimal <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_shrinks),
        cmocka_unit_test(test_table_without_memory),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_without_memory),
        cmocka_unit_test(test_columns_as_text),
        cmocka_unit_test(test_columns_as_json),
        cmocka_unit_test(test_columns_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
