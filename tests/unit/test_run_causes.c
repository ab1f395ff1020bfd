/* Errors for programs: causes, and the numbers of entry, operation and argument. */
#include "helper_queue_calls.h"

#include <stdio.h>
#include <string.h>

#include "plan/ops.h"

/* The call fails for that cause; entry, operation and argument are these. */
#define FAILS(status_, cause_, entry_, operation_, argument_, call)            \
    do {                                                                       \
        assert_int_equal(call, status_);                                       \
        if (error.cause != HEALCL_CAUSE_##cause_)                              \
            fail_msg("%s: %s", healcl_cause_name(error.cause), error.message); \
        assert_int_equal(error.entry, entry_);                                 \
        assert_int_equal(error.operation, operation_);                         \
        assert_int_equal(error.argument, argument_);                           \
    } while (0)
#define REFUSED(...) FAILS(HEALCL_REFUSED, __VA_ARGS__)
#define USAGE(...) FAILS(HEALCL_USAGE, __VA_ARGS__)

static struct healcl_tensor *create(struct healcl_queue *queue, enum healcl_dtype dtype,
                                    uint32_t rank, const int64_t *shape)
{
    static const int64_t zeros[12];
    struct healcl_tensor *tensor = NULL;
    OK(healcl_tensor_create(queue, dtype, rank, shape, zeros, &tensor, &error));
    return tensor;
}

static void calls_report_causes_on(struct healcl_device *on)
{
    struct healcl_queue *queue = NULL, *other = NULL;
    const struct healcl_plan_options options = {.memory_limit = 10000, .work_limit = 1000};
    OK(healcl_queue_open(on, &options, &queue, &error));
    OK(healcl_queue_open(on, NULL, &other, &error));
    const int64_t shape[2] = {3, 4}, huge[1] = {2000}, several[1] = {5};
    struct healcl_tensor *a = create(queue, HEALCL_INT64, 2, shape);
    struct healcl_tensor *narrow = create(queue, HEALCL_INT32, 2, shape);
    struct healcl_tensor *bytes = create(queue, HEALCL_INT8, 2, shape);
    struct healcl_tensor *five = create(queue, HEALCL_INT64, 1, several), *made = NULL;
    struct healcl_tensor *foreign = create(other, HEALCL_INT64, 2, shape);
    const enum operation_id modmul = OPERATION_MODMUL;
    void *mapped;
    int64_t value;
    REFUSED(OPERATION, 4, -1, -1, CALL(queue, "nonsense", NULL, TENSOR(a)));
    REFUSED(ARGUMENT, 4, modmul, -1, CALL(queue, "modmul", NULL, TENSOR(a)));
    REFUSED(ARGUMENT, 4, modmul, 3,
            CALL(queue, "_modmul", NULL, TENSOR(a), TENSOR(a), INT(7), INT(7)));
    REFUSED(ARGUMENT, 4, modmul, 2,
            CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), INT(0), TENSOR(a)));
    REFUSED(SHAPE, 4, modmul, 1,
            CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(five), INT(7), TENSOR(a)));
    REFUSED(DTYPE, 4, modmul, 1,
            CALL(queue, "modmul_ttc", NULL, TENSOR(a), TENSOR(narrow), INT(7), TENSOR(a)));
    REFUSED(DTYPE, 4, OPERATION_ABS, 1, CALL(queue, "abs", NULL, TENSOR(bytes), TENSOR(bytes)));
    REFUSED(ARGUMENT, 4, OPERATION_MOVEAXIS, 1,
            CALL(queue, "moveaxis", NULL, TENSOR(a), INT(2), INT(0)));
    REFUSED(SHAPE, 4, OPERATION_SQUEEZE, 1, CALL(queue, "squeeze", NULL, TENSOR(a), INT(0)));
    REFUSED(LIMIT, 4, OPERATION_ZEROS, 0,
            healcl_tensor_create(queue, HEALCL_INT64, 1, huge, NULL, &made, &error));
    USAGE(ARGUMENT, 4, modmul, 1,
          CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(foreign), INT(7), TENSOR(a)));
    USAGE(ARGUMENT, -1, -1, -1, healcl_tensor_read(a, &value, 1, &error));
    USAGE(OPERATION, -1, -1, -1, healcl_call(queue, "host_to_device", 0, NULL, NULL, &error));
    USAGE(STATE, -1, -1, -1, healcl_tensor_unmap(a, &error));
    OK(healcl_tensor_map(a, &mapped, &error));
    USAGE(STATE, 4, OPERATION_ABS, 0, CALL(queue, "abs", NULL, TENSOR(a), TENSOR(a)));
    OK(healcl_tensor_unmap(a, &error));
    close_queue(queue);
    close_queue(other);
}
ON_BOTH(calls_report_causes)

/* Found at a wait on a device, and by the call itself where each is waited for. */
static void data_name_their_call_on(struct healcl_device *on)
{
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        const struct healcl_queue_options options = {.synchronous = synchronous};
        struct healcl_queue *queue = NULL;
        OK(healcl_queue_open_with(on, &options, &queue, &error));
        const int64_t shape[2] = {3, 4}, one[1] = {1};
        struct healcl_tensor *a = create(queue, HEALCL_INT64, 2, shape);
        struct healcl_tensor *p = create(queue, HEALCL_INT64, 1, one);
        OK(CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), INT(7), TENSOR(a)));
        enum healcl_status status =
            CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), TENSOR(p), TENSOR(a));
        assert_true(!on || synchronous == (status != HEALCL_OK));
        for (int i = 0; i < 3 && status == HEALCL_OK; i++)
            status = CALL(queue, "modmul", NULL, TENSOR(a), TENSOR(a), INT(7), TENSOR(a));
        REFUSED(DATA, 3, OPERATION_MODMUL, 2,
                status == HEALCL_OK ? healcl_queue_wait(queue, &error) : status);
        close_queue(queue);
    }
}
ON_BOTH(data_name_their_call)

#define OPERATION_TEXT(name, arguments)                                                        \
    "[{\"type\":\"SEGMENT_START\",\"name\":\"a\"},{\"type\":\"DEVICE_OP\",\"op\":{\"name\":"   \
    "\"" name "\",\"args\":[" arguments "],\"out\":{\"arg_type\":\"DEVICE_TENSOR\",\"value\":" \
    "{\"inf_name\":1}}}},{\"type\":\"SEGMENT_END\"}]"
#define SHAPE_TEXT "{\"arg_type\":\"SHAPE\",\"value\":[{\"arg_type\":\"INT\",\"value\":-3}]}"
#define DTYPE_TEXT(dtype) ",{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"" dtype "\"}"

static enum healcl_status open_text(const char *text)
{
    struct healcl_transcript *transcript = NULL;
    enum healcl_status status =
        healcl_transcript_open_memory(text, strlen(text), NULL, &transcript, &error);
    healcl_transcript_close(transcript);
    return status;
}

static void transcripts_report_causes(void **state)
{
    (void)state;
    struct healcl_transcript *transcript = NULL;
    USAGE(FILE, -1, -1, -1, healcl_transcript_open("/nowhere", NULL, &transcript, &error));
    REFUSED(FORMAT, -1, -1, -1, open_text("{}"));
    REFUSED(FORMAT, 0, -1, -1, open_text("[7]"));
    REFUSED(FORMAT, 1, -1, -1, open_text(OPERATION_TEXT("empty", "7")));
    REFUSED(OPERATION, 1, -1, -1, open_text(OPERATION_TEXT("nonsense", "")));
    REFUSED(ARGUMENT, 1, OPERATION_EMPTY, -1, open_text(OPERATION_TEXT("empty", "")));
    REFUSED(SHAPE, 1, OPERATION_EMPTY, 0,
            open_text(OPERATION_TEXT("empty", SHAPE_TEXT DTYPE_TEXT("int64"))));
    struct healcl_operations *loaded = NULL;
    USAGE(FILE, -1, -1, -1, healcl_operations_load("/nowhere", &loaded, &error));
    USAGE(ARGUMENT, -1, -1, -1, healcl_transcript_open(NULL, NULL, &transcript, &error));
    for (int cause = 0; cause <= HEALCL_CAUSE_MEMORY; cause++)
        assert_string_not_equal(healcl_cause_name((enum healcl_cause)cause), "unknown");
    assert_string_equal(healcl_cause_name((enum healcl_cause)99), "unknown");
}

static void sessions_report_states(void **state)
{
    (void)state;
    struct healcl_transcript *transcript = NULL;
    struct healcl_session *session = NULL;
    OK(healcl_transcript_open_memory("[]", 2, NULL, &transcript, &error));
    OK(healcl_session_open(transcript, NULL, NULL, &session, &error));
    USAGE(STATE, -1, -1, -1, healcl_session_wait(session, &error));
    USAGE(ARGUMENT, -1, -1, -1, healcl_session_bind(session, 7, NULL, &error));
    healcl_session_close(session);
    healcl_transcript_close(transcript);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_report_causes),
        cmocka_unit_test(data_name_their_call),
        cmocka_unit_test(transcripts_report_causes),
        cmocka_unit_test(sessions_report_states),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
