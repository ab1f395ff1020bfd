#include "test_transcript_common.h"

#include "transcript/entry.h"

/* One text and the reader over it. Tests close what they open. */
struct opened {
    char *text;
    struct source source;
    struct entry_reader *reader;
    struct arena *arena;
    struct healcl_error error;
};

static void open_text(struct opened *opened, const char *text)
{
    *opened = (struct opened){.text = exact_copy(text, strlen(text))};
    opened->source = (struct source){.text = opened->text, .length = strlen(text)};
    opened->arena = arena_create();
    assert_non_null(opened->arena);
    expect_ok(entry_reader_open(&opened->source, opened->arena, &opened->reader, &opened->error),
              &opened->error);
}

static void close_text(struct opened *opened)
{
    entry_reader_close(opened->reader);
    arena_free(opened->arena);
    free(opened->text);
}

static const struct entry *next(struct opened *opened)
{
    const struct entry *entry;
    expect_ok(entry_reader_next(opened->reader, &entry, &opened->error), &opened->error);
    return entry;
}

/* Opens a transcript whose only entry is this one, in the plain or in the tagged container. */
static const struct entry *open_entry(struct opened *opened, const char *entry, bool tagged)
{
    char text[TEXT_SIZE];
    put(text, sizeof text,
        tagged ? "{\"__type__\":\"ExecutionTranscript\",\"transcript\":[%s]}" : "[%s]", entry);
    open_text(opened, text);
    return next(opened);
}

static void close_entry(struct opened *opened)
{
    assert_null(next(opened));
    close_text(opened);
}

static void refuse_text(const char *text, const char *part)
{
    struct opened opened;
    const struct entry *entry;
    enum healcl_status status;
    open_text(&opened, text);
    while ((status = entry_reader_next(opened.reader, &entry, &opened.error)) == HEALCL_OK && entry)
        continue;
    assert_null(entry);
    expect_refusal(status, &opened.error, part);
    close_text(&opened);
}

static void refuse_entry(const char *entry, const char *part)
{
    char text[TEXT_SIZE];
    put(text, sizeof text, "[%s]", entry);
    refuse_text(text, part);
    put(text, sizeof text, "{\"__type__\":\"ExecutionTranscript\",\"transcript\":[%s]}", entry);
    refuse_text(text, part);
}

/* An operation in the plain spelling with this one argument. */
static void operation_text(char text[TEXT_SIZE], const char *argument)
{
    put(text, TEXT_SIZE, "{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"thing\",\"args\":[%s]}}",
        argument);
}

static void refuse_argument(const char *argument, const char *part)
{
    char text[TEXT_SIZE], wanted[256];
    operation_text(text, argument);
    put(wanted, sizeof wanted, "entry 0 (thing): argument 1: %s", part);
    refuse_entry(text, wanted);
    /* An out with this value, after a valid entry. */
    put(text, sizeof text,
        "[[null,null],{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"thing\",\"args\":[],"
        "\"out\":%s}}]",
        argument);
    put(wanted, sizeof wanted, "entry 1 (thing): out: %s", part);
    if (strcmp(argument, "null") != 0)
        refuse_text(text, wanted);
}

/* The value of an argument of a type, in the plain spelling and in the tagged one. */
static void refuse_value(const char *type, const char *value, const char *part)
{
    char text[TEXT_SIZE];
    put(text, sizeof text, "{\"arg_type\":\"%s\",\"value\":%s}", type, value);
    refuse_argument(text, part);
    put(text, sizeof text,
        "{\"__type__\":\"DeviceOpArg\",\"arg_type\":{\"__type__\":\"DeviceOpArgType\","
        "\"value\":\"%s\"},\"value\":%s}",
        type, value);
    refuse_argument(text, part);
}

/* Opens an operation with one argument of this type and value; returns the argument. */
static const struct argument *open_value(struct opened *opened, const char *type, const char *value,
                                         bool tagged)
{
    char argument[TEXT_SIZE / 2], text[TEXT_SIZE];
    if (tagged) {
        put(argument, sizeof argument,
            "{\"__type__\":\"DeviceOpArg\",\"arg_type\":{\"__type__\":\"DeviceOpArgType\","
            "\"value\":\"%s\"},\"value\":%s}",
            type, value);
        put(text, sizeof text,
            "[{\"__type__\":\"ExecutionTranscriptOpType\",\"value\":\"DEVICE_OP\"},"
            "{\"__type__\":\"DeviceOp\",\"name\":\"thing\",\"args\":[%s],\"out\":null}]",
            argument);
    } else {
        put(argument, sizeof argument, "{\"arg_type\":\"%s\",\"value\":%s}", type, value);
        operation_text(text, argument);
    }
    const struct entry *entry = open_entry(opened, text, tagged);
    assert_non_null(entry);
    assert_int_equal(entry->kind, ENTRY_OPERATION);
    assert_string_equal(entry->name, "thing");
    assert_int_equal(entry->argument_count, 1);
    assert_int_equal(entry->out.kind, ARGUMENT_NONE);
    assert_string_equal(argument_kind_name(entry->arguments[0].kind), type);
    return &entry->arguments[0];
}

/* ---------------------------------------------------------------- whole transcripts */

static void test_tagged_transcript(void **state)
{
    (void)state;
    const int64_t values[] = {-1, INT64_MAX};
    unsigned char data[16];
    for (size_t i = 0; i < 16; i++)
        data[i] = (unsigned char)((uint64_t)values[i / 8] >> 8 * (i % 8));
    char payload[TEXT_SIZE], text[2 * TEXT_SIZE];
    make_payload("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", data, sizeof data,
                 payload);
    put(text, sizeof text,
        "{\"__type__\": \"ExecutionTranscript\", \"transcript\": ["
        "[{\"__type__\":\"ExecutionTranscriptOpType\",\"value\":\"SEGMENT_START\"},\"upload\"],"
        "[{\"__type__\":\"ExecutionTranscriptOpType\",\"value\":\"DEVICE_OP\"},"
        "{\"__type__\":\"DeviceOp\",\"name\":\"host_to_device\",\"args\":[{\"__type__\":"
        "\"DeviceOpArg\",\"arg_type\":{\"__type__\":\"DeviceOpArgType\",\"value\":\"HOST_TENSOR\"},"
        "\"value\":{\"__type__\":\"HostTensor\",\"tensor_base64\":{\"type\":\"numpy\",\"data\":"
        "\"%s\"}}}],\"out\":{\"__type__\":\"DeviceOpArg\",\"arg_type\":{\"__type__\":"
        "\"DeviceOpArgType\",\"value\":\"DEVICE_TENSOR\"},\"value\":{\"__type__\":"
        "\"DeviceTensorPointer\",\"dtype\":\"torch.int64\",\"inf_name\":200}}}],"
        "[{\"__type__\":\"ExecutionTranscriptOpType\",\"value\":\"SEGMENT_END\"},null],"
        "[null,null],"
        "[{\"__type__\":\"ExecutionTranscriptOpType\",\"value\":\"FREE_DEVICE_TENSOR\"},"
        "{\"__type__\":\"FreeDeviceTensor\",\"tensor_name\":200}]]}",
        payload);

    struct opened opened;
    open_text(&opened, text);
    const struct entry *entry = next(&opened);
    assert_int_equal(entry->kind, ENTRY_SEGMENT_START);
    assert_int_equal(entry->index, 0);
    assert_string_equal(entry->name, "upload");
    entry = next(&opened);
    assert_int_equal(entry->kind, ENTRY_OPERATION);
    assert_int_equal(entry->index, 1);
    assert_string_equal(entry->name, "host_to_device");
    assert_int_equal(entry->argument_count, 1);
    assert_int_equal(entry->arguments[0].kind, ARGUMENT_HOST_TENSOR);
    assert_true(entry->arguments[0].host.present);
    struct payload kept = entry->arguments[0].host.payload;
    assert_int_equal(entry->out.kind, ARGUMENT_DEVICE_TENSOR);
    assert_string_equal(entry->out.tensor.name, "200");
    assert_true(entry->out.tensor.has_dtype);
    assert_int_equal(entry->out.tensor.dtype, DTYPE_INT64);
    entry = next(&opened);
    assert_int_equal(entry->kind, ENTRY_SEGMENT_END);
    entry = next(&opened);
    assert_int_equal(entry->kind, ENTRY_NOTHING);
    assert_int_equal(entry->index, 3);
    entry = next(&opened);
    assert_int_equal(entry->kind, ENTRY_FREE);
    assert_string_equal(entry->name, "200");
    assert_null(next(&opened));
    assert_null(next(&opened));

    /* A payload lives as long as the source. */
    int64_t array[2];
    expect_ok(payload_read(&kept, DTYPE_INT64, array, &opened.error), &opened.error);
    assert_memory_equal(array, values, sizeof values);
    close_text(&opened);
}

/* Both spellings of an entry in both containers. */
static void test_mixed_spellings(void **state)
{
    (void)state;
    for (int tagged = 0; tagged < 2; tagged++) {
        struct opened opened;
        const struct entry *entry =
            open_entry(&opened,
                       "{\"type\":\"SEGMENT_START\",\"name\":\"a\"},[\"SEGMENT_START\",\"b\"],"
                       "[{\"value\":\"SEGMENT_START\"}],[\"SEGMENT_START\",null],"
                       "{\"type\":\"SEGMENT_START\"},{\"type\":\"SEGMENT_START\",\"name\":null},"
                       "[\"SEGMENT_END\"],[\"SEGMENT_END\",null],[null],"
                       "[\"FREE_DEVICE_TENSOR\",{\"tensor_name\":-5}]",
                       tagged);
        static const char *const names[] = {"a", "b", "", "", "", "", "", "", "", "-5"};
        static const enum entry_kind kinds[] = {
            ENTRY_SEGMENT_START, ENTRY_SEGMENT_START, ENTRY_SEGMENT_START, ENTRY_SEGMENT_START,
            ENTRY_SEGMENT_START, ENTRY_SEGMENT_START, ENTRY_SEGMENT_END,   ENTRY_SEGMENT_END,
            ENTRY_NOTHING,       ENTRY_FREE};
        for (size_t i = 0; i < 10; i++, entry = next(&opened)) {
            assert_int_equal(entry->index, i);
            assert_int_equal(entry->kind, kinds[i]);
            assert_string_equal(entry->name, names[i]);
        }
        assert_null(entry);
        close_text(&opened);
    }
}

static void test_no_entries(void **state)
{
    (void)state;
    struct opened opened;
    open_text(&opened, "[]");
    assert_null(next(&opened));
    close_text(&opened);
    refuse_text("", "the file is empty");
    refuse_text("{}", "the top level is neither");
    entry_reader_close(NULL);
}

/* ---------------------------------------------------------------- arguments */

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"-7", -7},
        {"9007199254740993", INT64_C(9007199254740993)},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"true", 1},
        {"false", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int tagged = 0; tagged < 2; tagged++) {
            struct opened opened;
            const struct argument *argument = open_value(&opened, "INT", cases[i].text, tagged);
            assert_true(argument->integer == cases[i].value);
            close_entry(&opened);
        }
    refuse_value("INT", "1.0", "'value' is 1.0: an integer has no fraction");
    refuse_value("INT", "1.5E3", "'value' is 1.5E3: an integer has no exponent");
    refuse_value("INT", "9223372036854775808",
                 "'value' is 9223372036854775808: outside of the 64-bit range");
    refuse_value("INT", "-9223372036854775809", "'value' is -9223372036854775809: outside");
    refuse_value("INT", "\"#7\"", "'value' is the string '#7', not an integer");
    refuse_value("INT", "[1]", "'value' is a list, not an integer");
    refuse_argument("{\"arg_type\":\"INT\"}", "'value' is missing, not an integer");
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"5", "5"},
        {"-0", "0"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"\"\"", "\"\""},
        {"\"5\"", "\"5\""},
        {"\"#5\"", "\"#5\""},
        {"\"\\u00e9\\n\"", "\"\xc3\xa9\n\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int tagged = 0; tagged < 2; tagged++) {
            struct opened opened;
            char value[128];
            put(value, sizeof value, "{\"inf_name\":%s,\"dtype\":null}", cases[i].text);
            const struct argument *argument = open_value(&opened, "DEVICE_TENSOR", value, tagged);
            assert_string_equal(argument->tensor.name, cases[i].name);
            assert_false(argument->tensor.has_dtype);
            close_entry(&opened);
        }
    refuse_value("DEVICE_TENSOR", "{\"inf_name\":99999999999999999999}",
                 "'inf_name' is 99999999999999999999: outside");
    refuse_value("DEVICE_TENSOR", "{\"inf_name\":true}", "'inf_name' is a boolean");
    refuse_value("DEVICE_TENSOR", "5",
                 "an object of type 'DeviceTensorPointer' is expected, not a number");
    refuse_argument("{\"arg_type\":\"DEVICE_TENSOR\"}",
                    "an object of type 'DeviceTensorPointer' is expected, not nothing");
    refuse_value("DEVICE_TENSOR", "{\"inf_name\":5,\"inf_name\":6}",
                 "the key 'inf_name' appears twice");
    refuse_value("DEVICE_TENSOR", "{\"inf_name\":5,\"inf\\u005fname\":6}",
                 "the key 'inf_name' appears twice");
    refuse_value("DEVICE_TENSOR", "{\"__type__\":\"HostTensor\",\"inf_name\":5}",
                 "'__type__' is 'HostTensor', not 'DeviceTensorPointer'");
}

static void test_dtypes(void **state)
{
    (void)state;
    /* Text before and after the name. */
    static const char *const spellings[][2] = {
        {"\"", "\""},
        {"\"torch.", "\""},
        {"{\"__type__\":\"dtype\",\"value\":\"", "\"}"},
        {"{\"value\":\"", "\"}"},
    };
    enum { TORCH = 1 }; /* of tensor pointers only */
    static const char *const names[] = {"int8", "int32", "int64"};
    for (size_t i = 0; i < 4; i++)
        for (int dtype = 0; dtype < 3; dtype++)
            for (int tagged = 0; tagged < 2; tagged++) {
                struct opened opened;
                char text[96], value[128];
                put(text, sizeof text, "%s%s%s", spellings[i][0], names[dtype], spellings[i][1]);
                const struct argument *argument;
                if (i != TORCH) {
                    argument = open_value(&opened, "TENSOR_TYPE", text, tagged);
                    assert_int_equal(argument->dtype, dtype);
                    close_entry(&opened);
                }
                put(value, sizeof value, "{\"inf_name\":1,\"dtype\":%s}", text);
                argument = open_value(&opened, "DEVICE_TENSOR", value, tagged);
                assert_true(argument->tensor.has_dtype);
                assert_int_equal(argument->tensor.dtype, dtype);
                close_entry(&opened);
            }
    refuse_value("TENSOR_TYPE", "\"torch.int64\"", "dtype 'torch.int64' is not supported");
    refuse_value("TENSOR_TYPE", "\"numpy.int64\"", "dtype 'numpy.int64' is not supported");
    refuse_value("TENSOR_TYPE", "7", "'value' is a number, not a string");
    refuse_value("TENSOR_TYPE", "{\"__type__\":\"type\",\"value\":\"int64\"}",
                 "'__type__' is 'type', not 'dtype'");
    refuse_value("TENSOR_TYPE", "{\"__type__\":\"dtype\"}", "'value' is missing, not a string");
}

static void test_shapes(void **state)
{
    (void)state;
    for (int tagged = 0; tagged < 2; tagged++) {
        struct opened opened;
        const struct argument *argument = open_value(&opened, "SHAPE", "[]", tagged);
        assert_int_equal(argument->shape.count, 0);
        close_entry(&opened);
        argument = open_value(
            &opened, "SHAPE",
            "[{\"arg_type\":\"INT\",\"value\":-1},{\"arg_type\":\"ELLIPSIS\"},"
            "{\"arg_type\":\"SLICE\",\"value\":{\"start\":1,\"stop\":null}},"
            "{\"__type__\":\"DeviceOpArg\",\"arg_type\":{\"__type__\":\"DeviceOpArgType\","
            "\"value\":\"INT\"},\"value\":true}]",
            tagged);
        assert_int_equal(argument->shape.count, 4);
        assert_int_equal(argument->shape.items[0].kind, HEALCL_INDEX_INT);
        assert_int_equal(argument->shape.items[0].value, -1);
        assert_int_equal(argument->shape.items[1].kind, HEALCL_INDEX_ELLIPSIS);
        assert_int_equal(argument->shape.items[2].kind, HEALCL_INDEX_SLICE);
        assert_true(argument->shape.items[2].has_start);
        assert_int_equal(argument->shape.items[2].start, 1);
        assert_false(argument->shape.items[2].has_stop);
        assert_int_equal(argument->shape.items[3].value, 1);
        close_entry(&opened);
    }
    char list[TEXT_SIZE / 2] = "[";
    for (int i = 0; i < INDEX_ITEMS_MAX; i++)
        strcat(list,
               i ? ",{\"arg_type\":\"INT\",\"value\":1}" : "{\"arg_type\":\"INT\",\"value\":1}");
    strcat(list, "]");
    struct opened opened;
    assert_int_equal(open_value(&opened, "SHAPE", list, false)->shape.count, INDEX_ITEMS_MAX);
    close_entry(&opened);
    list[strlen(list) - 1] = 0;
    strcat(list, ",{\"arg_type\":\"INT\",\"value\":1}]");
    refuse_value("SHAPE", list, "a SHAPE of more than 32 items");
    refuse_value("SHAPE", "null", "'value' is null, not a list");
    refuse_value("SHAPE", "[2]",
                 "item 1: an argument is an object with 'arg_type' and 'value', "
                 "not a number");
    refuse_value("SHAPE", "[{\"arg_type\":\"INT\",\"value\":1},{\"arg_type\":\"INT\"}]",
                 "item 2: 'value' is missing, not an integer");
    refuse_value("SHAPE", "[{\"arg_type\":\"NONE\"}]", "item 1: a NONE is not allowed in a SHAPE");
    refuse_value("SHAPE", "[{\"arg_type\":\"SHAPE\",\"value\":[]}]",
                 "item 1: a SHAPE is not allowed in a SHAPE");
}

static void test_slices(void **state)
{
    (void)state;
    for (int tagged = 0; tagged < 2; tagged++) {
        struct opened opened;
        const struct argument *argument =
            open_value(&opened, "SLICE",
                       "{\"__type__\":\"slice\",\"start\":-9223372036854775808,\"stop\":5,"
                       "\"step\":2}",
                       tagged);
        const struct healcl_index *slice = &argument->slice;
        assert_int_equal(slice->kind, HEALCL_INDEX_SLICE);
        assert_true(slice->has_start && slice->has_stop && slice->has_step);
        assert_true(slice->start == INT64_MIN && slice->stop == 5 && slice->step == 2);
        close_entry(&opened);
        slice = &open_value(&opened, "SLICE", "{}", tagged)->slice;
        assert_false(slice->has_start || slice->has_stop || slice->has_step);
        close_entry(&opened);
    }
    refuse_value("SLICE", "null", "an object of type 'slice' is expected, not null");
    refuse_value("SLICE", "{\"step\":true}", "'step' is a boolean, not an integer");
    refuse_value("SLICE", "{\"__type__\":\"ellipsis\"}", "'__type__' is 'ellipsis', not 'slice'");
}

static void test_empty_kinds(void **state)
{
    (void)state;
    static const char *const kinds[] = {"NONE", "ELLIPSIS"};
    for (int i = 0; i < 2; i++)
        for (int tagged = 0; tagged < 2; tagged++) {
            struct opened opened;
            open_value(&opened, kinds[i], "null", tagged);
            close_entry(&opened);
            open_value(&opened, kinds[i], "{}", tagged);
            close_entry(&opened);
            char argument[64], text[TEXT_SIZE];
            put(argument, sizeof argument, "{\"arg_type\":\"%s\"}", kinds[i]);
            operation_text(text, argument);
            open_entry(&opened, text, tagged);
            close_entry(&opened);
            refuse_value(kinds[i], "5", "'value' is a number, not null");
            refuse_value(kinds[i], "[]", "'value' is a list, not null");
            refuse_value(kinds[i], "{\"x\":1}", "'value' is an object with the key 'x', not null");
            refuse_value(kinds[i], "{\"__type__\":\"slice\"}", "'__type__' is 'slice', not '");
        }
    struct opened opened;
    open_value(&opened, "ELLIPSIS", "{\"__type__\":\"ellipsis\"}", true);
    close_entry(&opened);
}

static void test_host_tensors(void **state)
{
    (void)state;
    static const char *const absent[] = {"null", "{}", "{\"tensor_base64\":null}",
                                         "{\"__type__\":\"HostTensor\"}"};
    for (size_t i = 0; i < 4; i++)
        for (int tagged = 0; tagged < 2; tagged++) {
            struct opened opened;
            assert_false(open_value(&opened, "HOST_TENSOR", absent[i], tagged)->host.present);
            close_entry(&opened);
        }

    char payload[TEXT_SIZE], value[TEXT_SIZE / 4];
    make_payload("{'descr': '>i4', 'fortran_order': True, 'shape': (1, 2), }",
                 "\xff\xff\xff\xfe\x00\x00\x00\x3f", 8, payload);
    for (int tagged = 0; tagged < 2; tagged++) {
        struct opened opened;
        put(value, sizeof value, "{\"tensor_base64\":{\"data\":\"%s\",\"type\":\"numpy\"}}",
            payload);
        const struct argument *argument = open_value(&opened, "HOST_TENSOR", value, tagged);
        assert_true(argument->host.present);
        assert_int_equal(argument->host.payload.dtype, DTYPE_INT32);
        int32_t array[2];
        expect_ok(payload_read(&argument->host.payload, DTYPE_INT32, array, &opened.error),
                  &opened.error);
        assert_int_equal(array[0], -2);
        assert_int_equal(array[1], 63);
        close_entry(&opened);
    }

    refuse_value("HOST_TENSOR",
                 "{\"tensor_base64\":{\"type\":\"numpy\",\"data\":\"AA\\/\\u00e9\"}}",
                 "base64: the JSON escape at 4 is not a character of the alphabet");
    refuse_value("HOST_TENSOR",
                 "{\"tensor_base64\":{\"type\":\"numpy\",\"data\":{\"file\":\"a.bin\","
                 "\"offset\":0,\"bytes\":8,\"xxh3\":\"\"}}}",
                 "'a.bin' must be beside the transcript, which is not in a folder");
    refuse_value("HOST_TENSOR", "{\"__type__\":\"DeviceTensorPointer\"}",
                 "'__type__' is 'DeviceTensorPointer', not 'HostTensor'");
    refuse_value("HOST_TENSOR", "{\"tensor_base64\":\"AAAA\"}",
                 "an object with 'type' is expected, not a string");
    refuse_value("HOST_TENSOR", "{\"tensor_base64\":{}}", "'type' is missing, not a string");
    refuse_value("HOST_TENSOR", "{\"tensor_base64\":{\"type\":\"numpy\",\"data\":7}}",
                 "'data' is a number, not a string");
    refuse_value("HOST_TENSOR",
                 "{\"tensor_base64\":{\"type\":\"numpy\",\"data\":\"AA\",\"data\":\"BB\"}}",
                 "the key 'data' appears twice");
}

static void test_refused_arguments(void **state)
{
    (void)state;
    refuse_argument("7", "an argument is an object with 'arg_type' and 'value', not a number");
    refuse_argument("{\"arg_type\":{\"__type__\":\"Wrong\",\"value\":\"INT\"},\"value\":1}",
                    "'__type__' is 'Wrong', not 'DeviceOpArgType'");
    refuse_argument("{\"arg_type\":{\"__type__\":\"DeviceOpArgType\"},\"value\":1}",
                    "'arg_type' is missing, not a string");
    refuse_argument("{\"__type__\":\"Wrong\",\"arg_type\":\"INT\",\"value\":1}",
                    "'__type__' is 'Wrong', not 'DeviceOpArg'");
    refuse_argument("{\"arg_type\":\"INT\",\"value\":1,\"value\":2}",
                    "the key 'value' appears twice");
}

static void test_many_arguments(void **state)
{
    (void)state;
    char text[TEXT_SIZE] = "{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"thing\",\"args\":[";
    for (int i = 0; i < 40; i++)
        sprintf(text + strlen(text), "%s{\"arg_type\":\"INT\",\"value\":%d}", i ? "," : "", i);
    strcat(text, "]}}");
    struct opened opened;
    const struct entry *entry = open_entry(&opened, text, false);
    assert_int_equal(entry->argument_count, 40);
    for (int i = 0; i < ENTRY_ARGUMENTS_MAX; i++)
        assert_int_equal(entry->arguments[i].integer, i);
    close_entry(&opened);
}

/* ---------------------------------------------------------------- entries */

static void test_refused_entries(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *part;
    } cases[] = {
        {"null", "entry 0: an entry is a list or an object, not null"},
        {"\"x\"", "entry 0: an entry is a list or an object, not a string"},
        {"[null,7]", "entry 0: the payload of an entry without kind is a number, not null"},
        {"[7,null]", "entry 0: the kind of entry is a number, not a string"},
        {"[{\"__type__\":\"Wrong\",\"value\":\"SEGMENT_END\"},null]",
         "'__type__' is 'Wrong', not 'ExecutionTranscriptOpType'"},
        {"[\"SEGMENT_START\",7]", "entry 0: the segment's name is a number, not a string"},
        {"[\"SEGMENT_END\",\"x\"]", "entry 0: the payload of SEGMENT_END is a string, not null"},
        {"[\"DEVICE_OP\",7]", "entry 0: an object with 'name' is expected, not a number"},
        {"[\"DEVICE_OP\",{\"name\":7,\"args\":[]}]", "entry 0: 'name' is a number, not a string"},
        {"[\"DEVICE_OP\",{\"name\":\"abs\",\"args\":{}}]",
         "entry 0 (abs): 'args' is an object, not a list"},
        {"[\"DEVICE_OP\",{\"__type__\":\"Op\",\"name\":\"abs\",\"args\":[]}]",
         "entry 0 (abs): '__type__' is 'Op', not 'DeviceOp'"},
        {"[\"DEVICE_OP\",{\"name\":\"abs\",\"args\":[],\"out\":7}]",
         "entry 0 (abs): out: an argument is an object"},
        {"[\"FREE_DEVICE_TENSOR\",{\"__type__\":\"Free\",\"tensor_name\":1}]",
         "entry 0: '__type__' is 'Free', not 'FreeDeviceTensor'"},
        {"[\"FREE_DEVICE_TENSOR\",7]",
         "an object of type 'FreeDeviceTensor' is expected, not a number"},
        {"{\"type\":\"FREE_DEVICE_TENSOR\",\"tensor_name\":[]}",
         "entry 0: 'tensor_name' is a list, not an integer"},
        {"{\"type\":\"SEGMENT_START\",\"name\":7}", "the segment's name is a number"},
        {"{\"type\":\"SEGMENT_START\",\"type\":\"SEGMENT_END\"}", "the key 'type' appears twice"},
        {"{\"type\":\"DEVICE_OP\",\"op\":\"modmul\"}",
         "entry 0 (modmul): the form with 'op', 'args' and 'output'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_entry(cases[i].entry, cases[i].part);
}

/* Invalid JSON names its own entry, and no entry between them. */
static void test_places_of_json_errors(void **state)
{
    (void)state;
    refuse_text("[[null,null],[null,nul]]", "entry 1: not JSON at byte 22: null is expected");
    refuse_text("[[null,null] [null,null]]", "not JSON at byte 13: ',' or ']' is expected");
    struct opened opened;
    const struct entry *entry;
    open_text(&opened, "[[null,null] x");
    assert_non_null(next(&opened));
    assert_int_equal(entry_reader_next(opened.reader, &entry, &opened.error), HEALCL_REFUSED);
    assert_null(strstr(opened.error.message, "entry"));
    close_text(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tagged_transcript),
        cmocka_unit_test(test_mixed_spellings),
        cmocka_unit_test(test_no_entries),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_empty_kinds),
        cmocka_unit_test(test_host_tensors),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_many_arguments),
        cmocka_unit_test(test_refused_entries),
        cmocka_unit_test(test_places_of_json_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
