/*
 * Every function of healcl.h with NULL, and with handles in the wrong state; with and without an
 * error to fill. public_functions.cmake holds that none is left out.
 */
#include "helper_device.h"

#include <string.h>

#include "helper_script.h"

enum { ELEMENTS = 4096, STEPS = 400 };

static const int64_t shape[1] = {ELEMENTS};

/* Twice: with an error, and with none. */
#define FAILS(wanted, call)                     \
    do {                                        \
        struct healcl_error *e = &error;        \
        assert_int_equal(call, wanted);         \
        assert_int_equal(error.status, wanted); \
        assert_true(error.message[0] != 0);     \
        healcl_error_clear(&error);             \
        e = NULL;                               \
        assert_int_equal(call, wanted);         \
    } while (0)
#define USAGE(call) FAILS(HEALCL_USAGE, call)
#define REFUSED(call) FAILS(HEALCL_REFUSED, call)

/* keys: w. model: x * w, STEPS times; it takes a while on the reference. x has no data. */
static struct healcl_transcript *open_transcript(struct script *script)
{
    struct healcl_transcript *transcript = NULL;
    static int64_t w[ELEMENTS];
    const struct layout layout = layout_of_shape(1, shape);
    script_segment_start(script, "keys");
    script_upload(script, "w", DTYPE_INT64, 1, shape, w);
    script_segment_end(script);
    script_segment_start(script, "model");
    writer_declare(&script->writer, "x", DTYPE_INT64, &layout);
    for (int i = 0; i < STEPS; i++)
        script_call(script, "x", "_modmul_ttc", "x w 97 x");
    script_download(script, "x");
    script_segment_end(script);
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

static void errors_and_names(void **state)
{
    (void)state;
    healcl_error_clear(NULL);
    assert_non_null(healcl_status_name((enum healcl_status)99));
    assert_string_equal(healcl_status_name(HEALCL_CANCELLED), "cancelled");
    assert_string_equal(healcl_cause_name(HEALCL_CAUSE_DATA), "data");
    assert_string_equal(healcl_version(), HEALCL_VERSION);
}

static void operations_of_vendors(void **state)
{
    (void)state;
    struct healcl_operations *loaded = NULL;
    USAGE(healcl_operations_load(NULL, &loaded, e));
    USAGE(healcl_operations_load("/nowhere/at/all", &loaded, e));
    USAGE(healcl_operations_load("/nowhere/at/all", NULL, e));
    USAGE(healcl_operations_load_trusted(NULL, &loaded, e));
    USAGE(healcl_operations_load_trusted("/nowhere/at/all", &loaded, e));
    USAGE(healcl_operations_load_trusted("/nowhere/at/all", NULL, e));
    assert_null(loaded);
    healcl_operations_free(NULL);
}

static void batchers(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_transcript(&script);
    const struct healcl_batcher_options options = {.batch = 2};
    const struct healcl_batcher_options bad[] = {
        {.batch = 0}, {.batch = SIZE_MAX}, {.batch = 1, .input_count = 1}};
    struct healcl_batcher *batcher = NULL;
    USAGE(healcl_batcher_open(NULL, NULL, &options, &batcher, e));
    USAGE(healcl_batcher_open(transcript, NULL, NULL, &batcher, e));
    USAGE(healcl_batcher_open(transcript, NULL, &options, NULL, e));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        USAGE(healcl_batcher_open(transcript, NULL, &bad[i], &batcher, e));
    assert_null(batcher);
    USAGE(healcl_batcher_run(NULL, NULL, 0, e));
    assert_int_equal(healcl_batcher_facts(NULL).batch, 0);
    healcl_batcher_close(NULL);
    OK(healcl_batcher_open(transcript, NULL, &options, &batcher, &error));
    USAGE(healcl_batcher_run(batcher, NULL, 1, e));
    OK(healcl_batcher_run(batcher, NULL, 0, &error));
    healcl_batcher_close(batcher);
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void splits(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_transcript(&script), *part = NULL;
    struct healcl_split split = {.input = 0, .axis = 0, .rank = 0, .ranks = 2};
    USAGE(healcl_transcript_split(NULL, &split, &part, e));
    USAGE(healcl_transcript_split(transcript, NULL, &part, e));
    USAGE(healcl_transcript_split(transcript, &split, NULL, e));
    USAGE(healcl_transcript_choose_split(NULL, &split, e));
    USAGE(healcl_transcript_choose_split(transcript, NULL, e));
    USAGE(healcl_transcript_choose_split(transcript, &(struct healcl_split){.ranks = 0}, e));
    OK(healcl_transcript_choose_split(transcript, &split, &error));
    split.rank = 1;
    OK(healcl_transcript_split(transcript, &split, &part, &error));
    assert_int_equal(healcl_transcript_input_part(part, 0).start, ELEMENTS / 2);
    assert_int_equal(healcl_transcript_result_part(part, 0).size, ELEMENTS / 2);
    assert_int_equal(healcl_transcript_input_part(part, SIZE_MAX).period, 0);
    assert_int_equal(healcl_transcript_result_part(NULL, 0).period, 0);
    assert_int_equal(healcl_transcript_input_part(transcript, 0).period, 0);
    assert_int_equal(healcl_transcript_split_facts(part).exchanges, 0);
    assert_int_equal(healcl_transcript_split_facts(NULL).tensor_bytes, 0);
    const int64_t modulus = 7;
    const struct healcl_exchange of = {0, 0, HEALCL_INT64, 2, &modulus, 1, 1};
    int64_t sum[] = {6, 3}, others[] = {6};
    healcl_exchange_add(&of, 1, 1, sum, others);
    healcl_exchange_add(&of, 0, 1, sum, others);
    assert_int_equal(sum[0], 5);
    assert_int_equal(sum[1], 2);
    healcl_transcript_close(part);
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void transcripts(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    size_t count = 9;
    USAGE(healcl_transcript_open(NULL, NULL, &transcript, e));
    USAGE(healcl_transcript_open("/nowhere/at/all", NULL, &transcript, e));
    USAGE(healcl_transcript_open("/nowhere/at/all", NULL, NULL, e));
    USAGE(healcl_transcript_open_memory(NULL, 1, NULL, &transcript, e));
    USAGE(healcl_transcript_open_memory("[]", 2, NULL, NULL, e));
    REFUSED(healcl_transcript_open_memory("", 0, NULL, &transcript, e));
    REFUSED(healcl_transcript_open_memory("[", 1, NULL, &transcript, e));
    assert_null(transcript);
    healcl_transcript_close(NULL);
    assert_null(healcl_transcript_inputs(NULL, &count));
    assert_int_equal(count, 0);
    assert_null(healcl_transcript_results(NULL, NULL));
    assert_int_equal(healcl_transcript_segment_count(NULL), 0);
    assert_null(healcl_transcript_segment_name(NULL, 0));
    USAGE(healcl_run(NULL, NULL, NULL, &report, e));
    transcript = open_transcript(&script);
    assert_non_null(healcl_transcript_inputs(transcript, NULL));
    assert_null(healcl_transcript_segment_name(transcript, SIZE_MAX));
    int64_t w[ELEMENTS];
    USAGE(healcl_transcript_read_input(NULL, 0, w, sizeof w, e));
    USAGE(healcl_transcript_read_input(transcript, 2, w, sizeof w, e));
    USAGE(healcl_transcript_read_input(transcript, 0, w, sizeof w - 1, e));
    USAGE(healcl_transcript_read_input(transcript, 0, NULL, sizeof w, e));
    USAGE(healcl_transcript_read_input(transcript, 1, w, sizeof w, e)); /* x has no data */
    USAGE(healcl_transcript_read_expected(transcript, 0, w, sizeof w, e));
    OK(healcl_transcript_read_input(transcript, 0, w, sizeof w, &error));
    struct healcl_transcript *wide = NULL;
    const size_t none = SIZE_MAX;
    USAGE(healcl_transcript_widen(NULL, NULL, 0, 1, &wide, e));
    USAGE(healcl_transcript_widen(transcript, NULL, 0, 1, NULL, e));
    USAGE(healcl_transcript_widen(transcript, NULL, 1, 1, &wide, e));
    USAGE(healcl_transcript_widen(transcript, &none, 1, 1, &wide, e));
    USAGE(healcl_transcript_widen(transcript, NULL, 0, -1, &wide, e));
    REFUSED(healcl_transcript_widen(transcript, (size_t[]){0}, 1, INT64_MAX, &wide, e));
    assert_null(wide);
    OK(healcl_transcript_widen(transcript, NULL, 0, 1, &wide, &error));
    healcl_transcript_close(wide);
    USAGE(healcl_run(transcript, NULL, NULL, NULL, e));
    REFUSED(healcl_run(transcript, NULL, NULL, &report, e)); /* an input has no data */
    assert_null(report);
    healcl_report_free(NULL);
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void devices(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    struct healcl_device_info *list = NULL;
    size_t count = 0;
    USAGE(healcl_device_open(NULL, NULL, e));
    USAGE(healcl_device_open("no such device", &device, e));
    USAGE(healcl_device_open_with(NULL, NULL, e));
    USAGE(healcl_device_list(NULL, &count, e));
    USAGE(healcl_device_list(&list, NULL, e));
    assert_null(device);
    assert_null(list);
    healcl_device_list_free(NULL);
    healcl_device_close(NULL);
    assert_string_equal(healcl_device_describe(NULL).selector, "");
}

/* All that wants a session which does nothing, and a result that is there. */
static void expect_usage(struct healcl_session *session)
{
    static int64_t memory[ELEMENTS];
    const void *data = NULL;
    uint64_t different = 0;
    USAGE(healcl_session_bind(session, 0, memory, e));
    USAGE(healcl_session_keep(session, 0, false, e));
    USAGE(healcl_session_run(session, e));
    USAGE(healcl_session_run_segments(session, 0, 1, e));
    USAGE(healcl_session_start(session, 0, 1, NULL, NULL, e));
    USAGE(healcl_session_receive(session, 0, memory, e));
    USAGE(healcl_session_map(session, 0, &data, e));
    USAGE(healcl_session_read(session, 0, memory, sizeof memory, e));
    USAGE(healcl_session_compare(session, 0, &different, e));
}

static void sessions(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_transcript(&script);
    struct healcl_session *session = NULL;
    static int64_t x[ELEMENTS], memory[ELEMENTS];
    const void *data = NULL;
    uint64_t different = 0;
    USAGE(healcl_session_open(NULL, NULL, NULL, &session, e));
    USAGE(healcl_session_open(transcript, NULL, NULL, NULL, e));
    expect_usage(NULL);
    USAGE(healcl_session_wait(NULL, e));
    assert_true(healcl_session_poll(NULL));
    assert_int_equal(healcl_session_facts(NULL).runs, 0);
    assert_int_equal(healcl_session_audit(NULL).steps, 0);
    healcl_session_cancel(NULL);
    healcl_session_close(NULL);

    OK(healcl_session_open(transcript, NULL, NULL, &session, &error));
    healcl_session_cancel(session); /* nothing runs */
    USAGE(healcl_session_wait(session, e));
    USAGE(healcl_session_map(session, 0, &data, e)); /* nothing has run */
    USAGE(healcl_session_map(session, 0, NULL, e));
    USAGE(healcl_session_map(session, 1, &data, e)); /* there are 2 inputs, 1 result, 2 segments */
    USAGE(healcl_session_read(session, SIZE_MAX, memory, sizeof memory, e));
    USAGE(healcl_session_compare(session, SIZE_MAX, &different, e));
    USAGE(healcl_session_compare(session, 0, NULL, e));
    USAGE(healcl_session_receive(session, SIZE_MAX, memory, e));
    USAGE(healcl_session_bind(session, 2, x, e));
    USAGE(healcl_session_keep(session, SIZE_MAX, true, e));
    USAGE(healcl_session_run_segments(session, 1, 1, e));
    USAGE(healcl_session_run_segments(session, SIZE_MAX, 2, e));
    REFUSED(healcl_session_run(session, e)); /* x has no data */
    USAGE(healcl_session_read(session, 0, memory, sizeof memory, e));

    OK(healcl_session_bind(session, 1, x, &error));
    OK(healcl_session_start(session, 0, 2, NULL, NULL, &error));
    expect_usage(session);
    if (!healcl_session_poll(session))
        assert_int_equal(healcl_session_facts(session).runs, 0);
    while (!healcl_session_poll(session))
        ;
    expect_usage(session); /* it has not been waited for */
    OK(healcl_session_wait(session, &error));
    USAGE(healcl_session_wait(session, e));
    USAGE(healcl_session_read(session, 0, memory, sizeof memory - 1, e));
    USAGE(healcl_session_read(session, 0, NULL, sizeof memory, e));
    USAGE(healcl_session_compare(session, 0, &different, e)); /* nothing is expected */
    OK(healcl_session_read(session, 0, memory, sizeof memory, &error));
    OK(healcl_session_start(session, 5, 1, NULL, NULL, &error)); /* reported by the wait */
    assert_int_equal(healcl_session_wait(session, NULL), HEALCL_USAGE);
    OK(healcl_session_start(session, 0, 2, NULL, NULL, &error));
    healcl_session_cancel(session);
    healcl_session_close(session); /* while it runs */
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void queues(void **state)
{
    (void)state;
    struct healcl_queue *queue = NULL, *other = NULL;
    struct healcl_tensor *tensor = NULL, *foreign = NULL, *made = NULL;
    static int64_t memory[ELEMENTS];
    USAGE(healcl_queue_open(NULL, NULL, NULL, e));
    USAGE(healcl_queue_wait(NULL, e));
    assert_int_equal(healcl_queue_fallbacks(NULL), 0);
    USAGE(healcl_tensor_create(NULL, HEALCL_INT64, 1, shape, NULL, &tensor, e));
    USAGE(healcl_tensor_read(NULL, memory, sizeof memory, e));
    USAGE(healcl_call(NULL, "zeros", 0, NULL, NULL, e));
    assert_int_equal(healcl_tensor_describe(NULL).bytes, 0);
    healcl_tensor_release(NULL);
    healcl_queue_close(NULL);
    assert_true(healcl_queue_poll(NULL));
    healcl_queue_cancel(NULL);
    USAGE(healcl_queue_open_with(NULL, NULL, NULL, e));

    OK(healcl_queue_open_with(NULL, NULL, &queue, &error));
    OK(healcl_queue_open(NULL, NULL, &other, &error));
    USAGE(healcl_tensor_create(queue, HEALCL_INT64, 1, NULL, NULL, &tensor, e));
    USAGE(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, NULL, NULL, e));
    USAGE(healcl_tensor_create(queue, (enum healcl_dtype)99, 1, shape, NULL, &tensor, e));
    REFUSED(healcl_tensor_create(queue, HEALCL_INT64, UINT32_MAX, shape, NULL, &tensor, e));
    REFUSED(healcl_tensor_create(queue, HEALCL_INT64, UINT32_MAX, shape, memory, &tensor, e));
    REFUSED(healcl_tensor_create(queue, HEALCL_INT64, 1, (int64_t[]){-1}, memory, &tensor, e));
    assert_null(tensor);
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, memory, &tensor, &error));
    OK(healcl_tensor_create(other, HEALCL_INT64, 1, shape, NULL, &foreign, &error));
    USAGE(healcl_tensor_read(tensor, memory, 1, e));
    USAGE(healcl_tensor_read(tensor, NULL, sizeof memory, e));
    USAGE(healcl_call(queue, NULL, 0, NULL, NULL, e));
    USAGE(healcl_call(queue, "reshape", 2, NULL, NULL, e));
    struct healcl_operation_info info;
    assert_true(healcl_operation_describe(NULL, 0, &info));
    assert_false(healcl_operation_describe(NULL, 0, NULL));
    REFUSED(healcl_call(queue, "", 0, NULL, NULL, e));
    REFUSED(healcl_call(queue, "_", 0, NULL, NULL, e));

    const struct healcl_argument own = healcl_tensor_argument(tensor);
    struct healcl_argument odd = healcl_no_argument(), odd_index = healcl_no_argument();
    odd.kind = 99;
    struct healcl_index item = {.kind = 99};
    odd_index = healcl_index_argument(1, &item);
#define CALL(name, argument) \
    healcl_call(queue, name, 2, (struct healcl_argument[]){own, argument}, &made, e)
    USAGE(CALL("reshape", odd));
    USAGE(CALL("get_slice", odd_index));
    USAGE(CALL("get_slice", healcl_index_argument(1, NULL)));
    USAGE(CALL("reshape", healcl_shape_argument(1, NULL)));
    REFUSED(CALL("reshape", healcl_shape_argument(UINT32_MAX, shape)));
    REFUSED(CALL("get_slice", healcl_index_argument(UINT32_MAX, &item)));
    REFUSED(CALL("reshape", healcl_int_argument(1)));
    REFUSED(CALL("set_const_val", healcl_no_argument()));
    USAGE(CALL("modneg", healcl_tensor_argument(NULL)));
    USAGE(CALL("modneg", healcl_tensor_argument(foreign)));
    USAGE(CALL("empty", healcl_dtype_argument((enum healcl_dtype)99)));
    USAGE(CALL("device_to_host", healcl_no_argument()));
    assert_null(made);
    void *data = memory;
    size_t offset = 0;
    assert_true(healcl_tensor_layout(tensor).contiguous);
    USAGE(healcl_tensor_write(tensor, memory, 1, e));
    USAGE(healcl_tensor_write(NULL, memory, 1, e));
    USAGE(healcl_tensor_copy(tensor, NULL, e));
    USAGE(healcl_tensor_copy(tensor, foreign, e));
    USAGE(healcl_tensor_map(tensor, NULL, e));
    USAGE(healcl_tensor_map(NULL, &data, e));
    USAGE(healcl_tensor_unmap(tensor, e));
    USAGE(healcl_tensor_unmap(NULL, e));
    USAGE(healcl_tensor_memory(tensor, &data, &offset, e));
    USAGE(healcl_tensor_adopt(queue, HEALCL_INT64, 1, shape, memory, &made, e));
    OK(healcl_queue_wait(queue, &error));
    OK(healcl_tensor_read(tensor, memory, sizeof memory, &error));
    assert_true(healcl_queue_poll(queue));
    healcl_queue_cancel(queue);
    healcl_queue_close(queue); /* with a tensor */
    USAGE(healcl_tensor_read(tensor, memory, sizeof memory, e));
    healcl_tensor_release(tensor);
    healcl_tensor_release(foreign);
    healcl_queue_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_and_names), cmocka_unit_test(operations_of_vendors),
        cmocka_unit_test(transcripts),      cmocka_unit_test(batchers),
        cmocka_unit_test(splits),           cmocka_unit_test(devices),
        cmocka_unit_test(sessions),         cmocka_unit_test(queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
