/*
 * Every OpenCL call of a run on the executor fails once, on a device whose programs are built: an
 * error comes back or the run recovers with the right results, nothing is left alive, and the next
 * run works. Then every call from it on fails, as when a device is lost. Opening devices and
 * building programs has tests of its own, but a whole run from a cold start is in here too.
 */
#include "helper_device.h"

#include <string.h>

#include "check/random.h"
#include "helper_script.h"
#include "helper_share.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* A little of everything: uploads small and large, tables, checks, every family, results. */
static void write_script(struct script *script)
{
    enum { LARGE = 10000 }; /* 80 kB: mapped */
    int64_t *values = malloc(LARGE * sizeof *values);
    assert_non_null(values);
    struct random random = {0xfa017};
    for (int i = 0; i < LARGE; i++)
        values[i] = random_value(&random, DTYPE_INT64);
    script_segment_start(script, "first");
    script_upload(script, "large", DTYPE_INT64, 1, VALUES(LARGE), values);
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_upload(script, "psi", DTYPE_INT64, 2, VALUES(2, 4), values);
    script_upload(script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(2, 3, 1, 0));
    script_upload(script, "idx", DTYPE_INT64, 1, VALUES(4), VALUES(9999, 0, -1, 77));
    script_upload(script, "a", DTYPE_INT64, 4, VALUES(1, 4, 1, 2), values);
    script_segment_end(script);
    script_segment_start(script, "second");
    script_call(script, "large", "_modmul_tcc", "large 5 1000003 large");
    script_call(script, "a", "ntt", "a perm none q psi a 0 0");
    script_call(script, "few", "empty", "(4) :int64");
    script_call(script, "few", "take_along_axis", "large idx 0 few");
    script_download(script, "few");
    script_call(script, "some", "get_slice", "large [0:9999:1]");
    script_call(script, "others", "get_slice", "large [1:10000:1]");
    script_call(script, "some", "_modsum_ttc", "some others 1000003 some"); /* copies first */
    script_call(script, "digits", "empty", "(1,3,1) :int8");
    script_call(script, "residues", "reshape", "a (4,2,1)");
    script_call(script, "one", "get_slice", "residues [0:1:1]");
    script_call(script, "digits", "apply_g_decomp_relative_to_full_q", "one q 3 4 digits");
    script_download(script, "digits");
    script_download(script, "large");
    script_segment_end(script);
    free(values);
}

/* What is alive. */
struct alive {
    long contexts, queues, programs, kernels, buffers, events, maps;
};

/* The last upload's event is the device's until work waits for it, the last one of each half of
 * staging memory until that is used again; and the memory is made at first use, and mapped. */
static struct alive alive(const struct healcl_device *device)
{
    const struct staging *staging = &device->staging;
    long events = (device->upload != NULL) + (staging->halves[0].event != NULL) +
                  (staging->halves[1].event != NULL);
    long made = staging->memory != NULL;
    return (struct alive){helper.contexts,   helper.queues,         helper.programs,
                          helper.kernels,    helper.buffers - made, helper.events - events,
                          helper.maps - made};
}

/* Frees what a device keeps for later and waits for what is under way. */
static void calm_down(struct healcl_device *device)
{
    helper.fail_at = 0;
    helper.fail_after = false;
    OK(device_finish(device, &error));
    device_pool_empty(device);
}

/* A run that may fail; the status is one of those documented. */
static enum healcl_status try_run(const struct script *script, struct healcl_device *device,
                                  bool profile, struct script_results *results,
                                  struct healcl_error *failure)
{
    struct executor *executor = NULL;
    memset(results, 0, sizeof *results);
    TRY(device_executor_create(device, script->plan, profile, &executor, failure));
    executor->falls_back = device->programs->forced_lacks != NULL;
    enum healcl_status status = script_run(script, executor, results, failure);
    executor->class->destroy(executor);
    return status;
}

/* Whether a call that finds no memory on the device is made again. */
static bool is_tried_again(const char *call)
{
    return strcmp(call, "clCreateBuffer") == 0 || strcmp(call, "clEnqueueMapBuffer") == 0 ||
           strcmp(call, "clEnqueueCopyBuffer") == 0 ||
           strcmp(call, "clEnqueueNDRangeKernel") == 0 ||
           strcmp(call, "clEnqueueReadBuffer") == 0 || strcmp(call, "clEnqueueWriteBuffer") == 0;
}

/* expects_error: no call is tried again, so that a failure must show. */
static void fail_each(cl_int code, bool lost, bool profile, bool expects_error)
{
    struct healcl_device *device = NULL;
    struct script script = {0};
    struct script_results expected = {0}, results = {0};
    helper_reset();
    OK(device_open(&helper_opencl, "", &device, &error));
    write_script(&script);
    script_plan(&script);
    OK(script_run_on(&script, NULL, &expected, &error));
    for (int warm = 0; warm < 2; warm++) {
        script_results_release(&results);
        OK(device_finish(device, &error));
        device_pool_empty(device);
        helper.calls = 0;
        OK(try_run(&script, device, profile, &results, &error));
        assert_true(script_same_results(&results, &expected));
    }
    uint64_t calls = helper.calls, recovered = 0;
    script_results_release(&results);
    calm_down(device);
    struct alive before = alive(device);
    for (uint64_t k = 1; k <= calls; k++) {
        if (!share_takes("calls", k, 3))
            continue;
        struct healcl_error failure = {0};
        helper.calls = 0;
        helper.failed = NULL;
        helper.fail_code = code;
        helper.fail_after = lost;
        helper.fail_at = k;
        enum healcl_status status = try_run(&script, device, profile, &results, &failure);
        assert_non_null(helper.failed);
        const char *failed = helper.failed;
        if (status == HEALCL_OK) {
            recovered++;
            if (expects_error)
                fail_msg("call %d, %s, failed, and nobody heard of it", (int)k, failed);
            if (!script_same_results(&results, &expected))
                fail_msg("call %d, %s, failed, and the results are wrong", (int)k, failed);
        } else if (!expects_error && is_tried_again(failed)) {
            fail_msg("call %d, %s, failed for lack of memory, and was not made again", (int)k,
                     failed);
        } else if (status != HEALCL_DEVICE || !strstr(failure.message, failed) ||
                   failure.opencl_code != code) {
            fail_msg("call %d, %s, failed: %s, '%s'", (int)k, failed, healcl_status_name(status),
                     failure.message);
        }
        healcl_error_clear(&failure);
        script_results_release(&results);
        calm_down(device);
        struct alive after = alive(device);
        if (memcmp(&before, &after, sizeof before) != 0) {
            (void)helper_balanced();
            fail_msg("call %d, %s, failed: something is left", (int)k, failed);
        }
        assert_int_equal(device->bytes_live, 0);
        /* The device still works. */
        if (k % 16 == 0) {
            OK(try_run(&script, device, profile, &results, &error));
            assert_true(script_same_results(&results, &expected));
            script_results_release(&results);
            calm_down(device);
        }
    }
    print_message("%d calls, recovered from %d\n", (int)calls, (int)recovered);
    script_results_release(&expected);
    script_release(&script);
    healcl_device_close(device);
}

static void each_call_fails_once(void **state)
{
    (void)state;
    fail_each(CL_INVALID_OPERATION, false, false, true);
}

static void each_call_fails_while_times_are_taken(void **state)
{
    (void)state;
    fail_each(CL_INVALID_OPERATION, false, true, true);
}

static void device_is_lost(void **state)
{
    (void)state;
    fail_each(CL_OUT_OF_RESOURCES, true, false, true);
}

static void each_call_runs_out_of_memory(void **state)
{
    (void)state;
    fail_each(CL_MEM_OBJECT_ALLOCATION_FAILURE, false, false, false);
}

/* The same through staging memory, in pieces of 4 KiB. */
static void each_call_fails_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_INVALID_OPERATION, false, false, true);
}

static void each_call_fails_on_staging_while_times_are_taken(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_INVALID_OPERATION, false, true, true);
}

static void device_is_lost_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_OUT_OF_RESOURCES, true, false, true);
}

static void each_call_runs_out_of_memory_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_MEM_OBJECT_ALLOCATION_FAILURE, false, false, false);
}

/* The same where the host runs every step. */
static void each_call_fails_around_host_steps(void **state)
{
    (void)state;
    setenv("HEALCL_LACKS", "all", 1);
    fail_each(CL_INVALID_OPERATION, false, true, true);
    fail_each(CL_MEM_OBJECT_ALLOCATION_FAILURE, false, false, false);
    unsetenv("HEALCL_LACKS");
}

static void device_is_lost_around_host_steps(void **state)
{
    (void)state;
    setenv("HEALCL_LACKS", "all", 1);
    fail_each(CL_OUT_OF_RESOURCES, true, false, true);
    unsetenv("HEALCL_LACKS");
}

/* The host refuses an entry, and what was enqueued before it has failed: that shows. */
static void device_fails_before_a_refusal(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    struct script script = {0};
    struct script_results results;
    OK(device_open(&helper_opencl, "", &device, &error));
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(2), VALUES(1, 2));
    script_call(&script, "a", "_modmul_ttc", "a a 17 a");
    script_upload(&script, "small", DTYPE_INT64, 1, VALUES(2), VALUES(1, 128));
    script.writer.length -= strlen("}}}}"); /* the name gets a dtype */
    writer_put(&script.writer, ",\"dtype\":\"torch.int8\"}}}}");
    script_plan(&script);
    assert_int_equal(try_run(&script, device, false, &results, &error), HEALCL_REFUSED);
    enum healcl_status status = HEALCL_OK;
    helper.failed = "";
    for (uint64_t k = 1; strcmp(helper.failed, "clEnqueueReadBuffer") != 0; k++) {
        healcl_error_clear(&error);
        calm_down(device); /* else a run makes fewer calls than the one before */
        helper.calls = 0;
        helper.failed = NULL;
        helper.fail_at = k;
        status = try_run(&script, device, false, &results, &error);
        assert_non_null(helper.failed);
    }
    assert_int_equal(status, HEALCL_DEVICE);
    assert_non_null(strstr(error.message, helper.failed));
    calm_down(device);
    script_release(&script);
    healcl_device_close(device);
}

/* From the first call to the last, the build of every program included: each fails once on a
 * device that is opened and closed for it. */
static void cold_start(void **state)
{
    (void)state;
    struct script script = {0};
    script_upload(&script, "a", DTYPE_INT64, 1, VALUES(4), VALUES(1, 2, 3, 4));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(4), VALUES(5, 6, 7, 8));
    script_call(&script, "a", "_modmul_ttt", "a a q a");
    script_download(&script, "a");
    script_plan(&script);
    uint64_t calls = 0;
    for (uint64_t k = 0; k <= calls; k++) {
        if (k > 0 && !share_takes("calls of a cold start", k, 3))
            continue;
        struct healcl_device *device = NULL;
        struct script_results results = {0};
        struct healcl_error failure = {0};
        helper_reset();
        helper.fail_at = k;
        enum healcl_status status = device_open(&helper_opencl, "", &device, &failure);
        if (status == HEALCL_OK)
            status = try_run(&script, device, false, &results, &failure);
        if (k == 0) {
            calls = helper.calls;
            OK(status);
        }
        if (k > 0 && status == HEALCL_OK)
            fail_msg("call %d, %s, failed, and nobody heard of it", (int)k, helper.failed);
        healcl_error_clear(&failure);
        script_results_release(&results);
        if (device)
            healcl_device_close(device);
        assert_true(helper_balanced());
    }
    print_message("%d calls\n", (int)calls);
    script_release(&script);
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* which calls transfers make is told by the device itself */
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(each_call_fails_once),
        DEVICE_TEST(each_call_fails_while_times_are_taken),
        DEVICE_TEST(device_is_lost),
        DEVICE_TEST(each_call_runs_out_of_memory),
        DEVICE_TEST(each_call_fails_on_staging),
        DEVICE_TEST(each_call_fails_on_staging_while_times_are_taken),
        DEVICE_TEST(device_is_lost_on_staging),
        DEVICE_TEST(each_call_runs_out_of_memory_on_staging),
        DEVICE_TEST(each_call_fails_around_host_steps),
        DEVICE_TEST(device_is_lost_around_host_steps),
        DEVICE_TEST(device_fails_before_a_refusal),
        DEVICE_TEST(cold_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
