/*
 * Every OpenCL call of a whole run fails once: an error comes back that names it, and nothing is
 * left alive. Then every call from it on fails, as when a device is lost.
 */
#include <string.h>

#include "helper_scenario.h"
#include "helper_share.h"

static void ignore_times(void *context, const struct launch_times *times)
{
    (void)context;
    (void)times;
}

static enum healcl_status use(struct healcl_device *device, struct scenario *scenario, bool *right)
{
    give_program(device, "scenario", scenario_source);
    TRY(scenario_run(device, scenario, right, &error));
    TRY(device_set_profiling(device, true, &error));
    for (int i = 0; i < 2; i++)
        TRY(scenario_launch(device, scenario, &error));
    TRY(device_finish(device, &error));
    TRY(device_take_times(device, ignore_times, NULL, &error));
    return scenario_launch(device, scenario, &error); /* its event is left for the close */
}

static enum healcl_status open_use_close(uint64_t count, bool *right)
{
    struct healcl_device *device = NULL;
    TRY(device_open(&helper_opencl, "", &device, &error));
    struct scenario scenario = {.count = count, .local_size = 4};
    enum healcl_status status = use(device, &scenario, right);
    scenario_release(device, &scenario);
    healcl_device_close(device);
    return status;
}

/* may_recover: whether a call may be tried again, so that a run succeeds in spite of it. */
static void fail_each(cl_int code, bool lost, bool may_recover, uint64_t count)
{
    bool right = false;
    helper_reset();
    OK(open_use_close(count, &right));
    assert_true(right && helper_balanced());
    /* The close finishes both queues, and unmaps staging memory, and nobody hears of it. */
    const uint64_t closing = getenv("HEALCL_TUNING") ? 4 : 2;
    uint64_t calls = helper.calls;
    for (uint64_t k = 1; k <= calls; k++) {
        if (!share_takes("calls", k, 3))
            continue;
        helper_reset();
        healcl_error_clear(&error);
        helper.fail_code = code;
        helper.fail_after = lost;
        helper.fail_at = k;
        enum healcl_status status = open_use_close(count, &right);
        assert_non_null(helper.failed);
        /* OpenCL 1.0 has no barrier of that kind. */
        const bool does_without = code == CL_INVALID_OPERATION &&
                                  strcmp(helper.failed, "clEnqueueBarrierWithWaitList") == 0;
        if (!helper_balanced() ||
            (status == HEALCL_OK && k <= calls - closing && !may_recover && !does_without))
            fail_msg("call %d, %s, failed: '%s'", (int)k, helper.failed, error.message);
        /* A device that does not answer is refused, a failed build has words of its own. */
        if (status == HEALCL_DEVICE && helper.count[CALL_clGetProgramBuildInfo] == 0)
            assert_non_null(strstr(error.message, helper.failed));
    }
}

static void each_call_fails_once(void **state)
{
    (void)state;
    fail_each(CL_INVALID_OPERATION, false, false, 2500);
}

static void each_call_fails_on_mapped_memory(void **state)
{
    (void)state;
    fail_each(CL_INVALID_OPERATION, false, false, 80000);
}

static void device_is_lost(void **state)
{
    (void)state;
    fail_each(CL_OUT_OF_RESOURCES, true, false, 80000);
}

static void each_call_runs_out_of_memory(void **state)
{
    (void)state;
    fail_each(CL_MEM_OBJECT_ALLOCATION_FAILURE, false, true, 100);
}

/* Through staging memory, in pieces of 4 KiB. */
static void each_call_fails_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_INVALID_OPERATION, false, false, 8000);
}

static void device_is_lost_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_OUT_OF_RESOURCES, true, false, 8000);
}

static void each_call_runs_out_of_memory_on_staging(void **state)
{
    (void)state;
    setenv("HEALCL_TUNING", "staging_bytes=4096", 1);
    fail_each(CL_MEM_OBJECT_ALLOCATION_FAILURE, false, true, 5000);
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* the device itself reports which calls transfers make */
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(each_call_fails_once),
        DEVICE_TEST(each_call_fails_on_mapped_memory),
        DEVICE_TEST(device_is_lost),
        DEVICE_TEST(each_call_runs_out_of_memory),
        DEVICE_TEST(each_call_fails_on_staging),
        DEVICE_TEST(device_is_lost_on_staging),
        DEVICE_TEST(each_call_runs_out_of_memory_on_staging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
