/*
 * Sessions and queues where OpenCL fails: every call of a request fails once, then every one from
 * it on until the request has ended. An error comes back or the results are right, and the next
 * request works; at last no object is alive. Through staging memory and around steps of the host,
 * too. And each call of a cold start, from opening the device on.
 */
#include "helper_device.h"

#include <string.h>

#include "helper_script.h"
#include "helper_share.h"
#include "plan/eager.h"

enum { LARGE = 10000 /* 80 kB: mapped */, SMALL = 4 };

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static struct healcl_device *device;
static int64_t large[LARGE], got[LARGE];
static const int64_t q = 1000003, indices[SMALL] = {9999, 0, -1, 77};

/* Without a variable, through pieces of 4 KiB, and where the host runs every step. */
static const char *const variables[][2] = {
    {NULL}, {"HEALCL_TUNING", "staging_bytes=4096"}, {"HEALCL_LACKS", "all"}};

enum { VARIABLES = sizeof variables / sizeof *variables };

static void open_device(const char *const variable[2])
{
    setenv("HEALCL_CACHE_DIR", "", 1);
    helper_reset();
    for (int i = 0; i < LARGE; i++)
        large[i] = (int64_t)i * i % q;
    if (variable[0])
        setenv(variable[0], variable[1], 1);
    OK(device_open(&helper_opencl, "", &device, &error));
    if (variable[0])
        unsetenv(variable[0]);
}

static void close_device(void)
{
    healcl_device_close(device);
    healcl_error_clear(&error);
    assert_true(helper_balanced());
}

/* ---------------------------------------------------------------- what is done again and again */

/* Whether the results of a request are right: 5 times the input, and some of it beside the next. */
static bool is_right(const int64_t *few)
{
    bool right = true;
    for (int i = 0; i < LARGE; i++) {
        int64_t own = large[i] * 5 % q, previous = i > 0 ? large[i - 1] * 5 % q : 0;
        right &= got[i] == (own + previous) % q;
    }
    for (int i = 0; i < SMALL; i++) {
        int64_t at = indices[i] < 0 ? indices[i] + LARGE : indices[i];
        right &= few[i] == large[at] * 5 % q;
    }
    return right;
}

static struct healcl_session *session;

/* Keys: idx. Input: large. */
static struct healcl_transcript *open_script(struct script *script)
{
    struct healcl_transcript *transcript = NULL;
    const struct layout layout = layout_of_shape(1, SHAPE(LARGE));
    script_upload(script, "idx", DTYPE_INT64, 1, SHAPE(SMALL), indices);
    writer_declare(&script->writer, "large", DTYPE_INT64, &layout);
    script_call(script, "large", "_modmul_tcc", "large 5 1000003 large");
    script_call(script, "few", "empty", "(4) :int64");
    script_call(script, "few", "take_along_axis", "large idx 0 few");
    script_download(script, "few");
    script_call(script, "first", "get_slice", "large [0:9999:1]");
    script_call(script, "next", "get_slice", "large [1:10000:1]");
    script_call(script, "next", "_modsum_ttc", "first next 1000003 next"); /* copies first */
    script_download(script, "large");
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

static enum healcl_status request_session(bool *right, struct healcl_error *failure)
{
    int64_t few[SMALL];
    memset(got, 0xa5, sizeof got);
    TRY(healcl_session_run(session, failure));
    TRY(healcl_session_read(session, 0, few, sizeof few, failure));
    TRY(healcl_session_read(session, 1, got, sizeof got, failure));
    *right = is_right(few);
    return HEALCL_OK;
}

static struct healcl_queue *queue;
static struct healcl_tensor *tensors[8];
static size_t tensor_count;

static struct healcl_argument tensor(size_t number)
{
    return healcl_tensor_argument(tensors[number]);
}

static enum healcl_status call(const char *name, size_t count,
                               const struct healcl_argument *arguments, bool makes,
                               struct healcl_error *failure)
{
    TRY(healcl_call(queue, name, count, arguments, makes ? &tensors[tensor_count] : NULL, failure));
    tensor_count += makes;
    return HEALCL_OK;
}

static enum healcl_status create(int64_t elements, const int64_t *data,
                                 struct healcl_error *failure)
{
    TRY(healcl_tensor_create(queue, HEALCL_INT64, 1, &elements, data, &tensors[tensor_count],
                             failure));
    tensor_count++;
    return HEALCL_OK;
}

static enum healcl_status compute(bool *right, struct healcl_error *failure)
{
#define ARGUMENTS(...) ((const struct healcl_argument[]){__VA_ARGS__})
    const struct healcl_argument modulus = healcl_int_argument(q), axis = healcl_int_argument(0);
    const struct healcl_index first = {HEALCL_INDEX_SLICE, .has_stop = true, .stop = LARGE - 1};
    const struct healcl_index next = {HEALCL_INDEX_SLICE, .has_start = true, .start = 1};
    int64_t few[SMALL];
    TRY(create(LARGE, large, failure));
    TRY(create(SMALL, indices, failure));
    TRY(create(SMALL, NULL, failure));
    TRY(call("modmul", 4, ARGUMENTS(tensor(0), healcl_int_argument(5), modulus, tensor(0)), false,
             failure));
    TRY(call("take_along_axis", 4, ARGUMENTS(tensor(0), tensor(1), axis, tensor(2)), false,
             failure));
    TRY(call("get_slice", 2, ARGUMENTS(tensor(0), healcl_index_argument(1, &first)), true,
             failure));
    TRY(call("get_slice", 2, ARGUMENTS(tensor(0), healcl_index_argument(1, &next)), true, failure));
    TRY(call("modsum", 4, ARGUMENTS(tensor(3), tensor(4), modulus, tensor(4)), false, failure));
    TRY(healcl_tensor_read(tensors[2], few, sizeof few, failure));
    TRY(healcl_tensor_read(tensors[0], got, sizeof got, failure));
    *right = is_right(few);
    return HEALCL_OK;
}

static enum healcl_status request_queue(bool *right, struct healcl_error *failure)
{
    memset(got, 0xa5, sizeof got);
    tensor_count = 0;
    enum healcl_status status = compute(right, failure);
    while (tensor_count > 0)
        healcl_tensor_release(tensors[--tensor_count]);
    /* A release cannot report its failure. */
    enum healcl_status waited = healcl_queue_wait(queue, status == HEALCL_OK ? failure : NULL);
    return status == HEALCL_OK ? waited : status;
}

/* ---------------------------------------------------------------- faults */

static void expect_right(enum healcl_status (*request)(bool *right, struct healcl_error *failure),
                         uint64_t k, const char *failed)
{
    bool right = false;
    helper.fail_at = 0;
    helper.fail_after = false;
    OK(request(&right, &error));
    if (!right)
        fail_msg("call %d, %s, had failed, and the next results are wrong", (int)k, failed);
}

static void fail_each(const char *name,
                      enum healcl_status (*request)(bool *right, struct healcl_error *failure),
                      cl_int code, bool lost)
{
    uint64_t failures = 0, survived = 0;
    expect_right(request, 0, "none"); /* kernels are built */
    helper.calls = 0;
    expect_right(request, 0, "none");
    const uint64_t calls = helper.calls;
    assert_true(calls > 10);
    for (uint64_t k = 1; k <= calls; k++) {
        if (!share_takes("calls", k, 2))
            continue;
        struct healcl_error failure = {0};
        bool right = false;
        helper.calls = 0;
        helper.failed = NULL;
        helper.fail_code = code;
        helper.fail_after = lost;
        helper.fail_at = k;
        enum healcl_status status = request(&right, &failure);
        const char *failed = helper.failed;
        if (!failed)
            continue; /* the one before had left more to do */
        failures += status != HEALCL_OK;
        survived += status == HEALCL_OK;
        if (status == HEALCL_OK && !right)
            fail_msg("call %d, %s, failed, and the results are wrong", (int)k, failed);
        /* A launch that cannot be recorded goes unrecorded, and a later call fails. */
        bool is_named = lost || strstr(failure.message, failed);
        if (status != HEALCL_OK &&
            (status != HEALCL_DEVICE || failure.opencl_code != code || !is_named))
            fail_msg("call %d, %s, failed: %s", (int)k, failed, failure.message);
        healcl_error_clear(&failure);
        expect_right(request, k, failed);
    }
    helper.fail_at = 0; /* the last one may not have come to it */
    helper.fail_after = false;
    assert_true(failures > 0);
    printf("fault matrix: %s %s%s: %d calls, %d failed, %d survived\n", name,
           opencl_error_name(code), lost ? "_from_there_on" : "", (int)calls,
           (int)(failures + survived), (int)survived);
}

static void fail_all(const char *name,
                     enum healcl_status (*request)(bool *right, struct healcl_error *failure))
{
    fail_each(name, request, CL_OUT_OF_RESOURCES, false);
    fail_each(name, request, CL_OUT_OF_HOST_MEMORY, false);
    fail_each(name, request, CL_INVALID_OPERATION, false);
    fail_each(name, request, CL_INVALID_OPERATION, true);
    fail_each(name, request, CL_MEM_OBJECT_ALLOCATION_FAILURE, true);
}

static void sessions_go_on(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_script(&script);
    for (int i = 0; i < VARIABLES; i++) {
        open_device(variables[i]);
        OK(healcl_session_open(transcript, device, NULL, &session, &error));
        OK(healcl_session_bind(session, 1, large, &error));
        fail_all("session", request_session);
        healcl_session_close(session);
        close_device();
    }
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void queues_go_on(void **state)
{
    (void)state;
    for (int i = 0; i < VARIABLES; i++) {
        open_device(variables[i]);
        OK(healcl_queue_open(device, NULL, &queue, &error));
        fail_all("calls", request_queue);
        healcl_queue_close(queue);
        close_device();
    }
}

static enum healcl_status run_once(const struct healcl_transcript *transcript,
                                   struct healcl_device *on, int64_t values[SMALL],
                                   struct healcl_error *failure)
{
    struct healcl_session *once = NULL;
    enum healcl_status status = healcl_session_open(transcript, on, NULL, &once, failure);
    if (status == HEALCL_OK)
        status = healcl_session_run(once, failure);
    if (status == HEALCL_OK)
        status = healcl_session_read(once, 0, values, SMALL * sizeof *values, failure);
    healcl_session_close(once);
    return status;
}

/* From the first call to the last, the build of every program included. */
static void cold_starts_fail_or_are_right(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = NULL;
    int64_t expected[SMALL], values[SMALL];
    script_lines(&script, "a (4); abs a a; _modmul_ttc a a 97 a; get a");
    script_finish(&script);
    OK(healcl_transcript_open_memory(script.writer.bytes, script.writer.length, NULL, &transcript,
                                     &error));
    OK(run_once(transcript, NULL, expected, &error));
    uint64_t calls = 0;
    for (uint64_t k = 0; k <= calls; k++) {
        if (k > 0 && !share_takes("calls of a cold start", k, 3))
            continue;
        struct healcl_error failure = {0};
        device = NULL;
        helper_reset();
        helper.fail_at = k;
        enum healcl_status status = device_open(&helper_opencl, "", &device, &failure);
        if (status == HEALCL_OK)
            status = run_once(transcript, device, values, &failure);
        if (k == 0) {
            calls = helper.calls;
            OK(status);
        }
        if (status != HEALCL_OK)
            assert_int_equal(status, HEALCL_DEVICE);
        else if (memcmp(values, expected, sizeof values) != 0)
            fail_msg("call %d, %s, failed, and the results are wrong", (int)k, helper.failed);
        healcl_error_clear(&failure);
        healcl_device_close(device);
        assert_true(helper_balanced());
    }
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* Views are no steps, but what the plan keeps of them is forgotten now and then: at a wait. */
static void views_are_forgotten(void **state)
{
    (void)state;
    open_device(variables[0]);
    OK(healcl_queue_open(device, NULL, &queue, &error));
    tensor_count = 0;
    OK(create(LARGE, large, &error));
    for (int round = 0; round < 3; round++) {
        OK(call("modneg", 3, ARGUMENTS(tensor(0), healcl_int_argument(q), tensor(0)), false,
                &error)); /* or there would be nothing to wait for */
        uint64_t before = helper.count[CALL_clEnqueueReadBuffer];
        for (int i = 0; i < EAGER_STEPS_MAX; i++) {
            OK(call("reshape", 2,
                    ARGUMENTS(tensor(0), healcl_shape_argument(2, SHAPE(2, LARGE / 2))), true,
                    &error));
            healcl_tensor_release(tensors[--tensor_count]);
        }
        assert_true(helper.count[CALL_clEnqueueReadBuffer] > before);
    }
    healcl_queue_close(queue);
    close_device();
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* the device itself reports which calls transfers make */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_go_on), cmocka_unit_test(queues_go_on),
        cmocka_unit_test(cold_starts_fail_or_are_right), cmocka_unit_test(views_are_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
