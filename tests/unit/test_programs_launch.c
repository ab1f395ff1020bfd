/* Uploads, writes, launches, times and downloads. */
#include <string.h>

#include "core/clock.h"
#include "helper_scenario.h"

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, "", &device, &error));
    give_program(device, "scenario", scenario_source);
    return device;
}

static void run(struct healcl_device *device, uint64_t count, size_t local_size)
{
    struct scenario scenario = {.count = count, .local_size = local_size};
    bool right = false;
    OK(scenario_run(device, &scenario, &right, &error));
    assert_true(right);
    scenario_release(device, &scenario);
}

static void launches(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    run(device, 1000, 1);
    run(device, 1000, 8);
    run(device, 1, 8);
    run(device, 100000, 8); /* too large for a small upload */
    assert_true(device->programs->compile_nanoseconds > 0);
    assert_int_equal(helper.count[CALL_clBuildProgram], 2);
    assert_int_equal(helper.count[CALL_clCreateKernel], 2);
    healcl_device_close(device);
}

static void uploads_by_mapping(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    run(device, 100000, 16);
    assert_int_equal(helper.count[CALL_clEnqueueBarrierWithWaitList], 1);
    assert_null(device->last_upload);
    healcl_device_close(device);
}

static void no_groups_no_launch(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct launch launch = {
        .program = "none", .kernel = "none", .options = "", .local_size = 1, .groups = 0};
    OK(device_launch(device, &launch, &error));
    launch.program = "scenario";
    launch.kernel = "add";
    launch.options = "-D AMOUNT=5";
    launch.local_size = 4;
    launch.groups = SIZE_MAX / 2;
    assert_int_equal(device_launch(device, &launch, &error), HEALCL_DEVICE);
    assert_int_equal(helper.count[CALL_clEnqueueNDRangeKernel], 0);
    healcl_device_close(device);
}

static void reports_a_refused_launch(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct launch launch = {.program = "scenario",
                            .kernel = "add",
                            .options = "-D AMOUNT=5",
                            .argument_count = 1,
                            .arguments = &(struct launch_argument){.value = "x", .size = 1},
                            .local_size = 1,
                            .groups = 1};
    assert_int_equal(device_launch(device, &launch, &error), HEALCL_DEVICE);
    assert_string_equal(
        error.message,
        "kernel 'add': argument 0: clSetKernelArg failed: CL_INVALID_ARG_SIZE (-51)");
    assert_int_equal(error.opencl_code, CL_INVALID_ARG_SIZE);
    healcl_device_close(device);
}

struct sum {
    uint64_t count, nanoseconds, idle;
};

static void add_times(void *context, const struct launch_times *times)
{
    struct sum *sum = context;
    assert_ptr_equal(times->tag, SCENARIO_TAG);
    sum->count++;
    sum->nanoseconds += times->running;
    sum->idle += times->without_command + times->not_begun;
}

static void takes_times(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct scenario scenario = {.count = 10000, .local_size = 8};
    struct sum sum = {0};
    bool right = false;
    OK(scenario_run(device, &scenario, &right, &error)); /* before: no times */
    OK(device_take_times(device, add_times, &sum, &error));
    assert_int_equal(sum.count, 0);
    OK(device_set_profiling(device, true, &error));
    OK(device_set_profiling(device, true, &error));
    assert_int_equal(helper.queues, 2);
    uint64_t start = monotonic_nanoseconds();
    for (int i = 0; i < 1000; i++)
        OK(scenario_launch(device, &scenario, &error));
    OK(device_finish(device, &error));
    uint64_t passed = monotonic_nanoseconds() - start;
    OK(device_take_times(device, add_times, &sum, &error));
    assert_int_equal(sum.count, 1000);
    assert_true(sum.nanoseconds > 0 && sum.idle > 0);
    assert_true(sum.nanoseconds + sum.idle <= passed);
    assert_int_equal(helper.events, 0);
    OK(scenario_launch(device, &scenario, &error)); /* left for the close to release */
    OK(device_set_profiling(device, false, &error));
    OK(scenario_launch(device, &scenario, &error));
    assert_int_equal(helper.events, device->commands_overlap ? 2 : 1); /* one to wait for */
    scenario_release(device, &scenario);
    healcl_device_close(device);
}

/* The host's clock counts: all times together are less than what passed. */
static void takes_times_by_the_host(void **state)
{
    (void)state;
    const struct opencl cl = helper_opencl_without_times();
    struct scenario scenario = {.count = 10000, .local_size = 8};
    struct sum sum = {0};
    struct healcl_device *device = NULL;
    bool right = false;
    OK(device_open(&cl, "", &device, &error));
    give_program(device, "scenario", scenario_source);
    OK(device_set_profiling(device, true, &error));
    assert_false(device->event_times);
    uint64_t start = monotonic_nanoseconds();
    OK(scenario_run(device, &scenario, &right, &error));
    for (int i = 0; i < 10; i++)
        OK(scenario_launch(device, &scenario, &error));
    OK(device_take_times(device, add_times, &sum, &error));
    assert_true(right && sum.count == 11);
    assert_true(sum.nanoseconds > 0 && sum.nanoseconds < monotonic_nanoseconds() - start);
    assert_int_equal(sum.idle, 0);
    scenario_release(device, &scenario);
    healcl_device_close(device);
}

static void flushes_now_and_then(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct scenario scenario = {.count = 4, .local_size = 1};
    bool right = false;
    OK(scenario_run(device, &scenario, &right, &error));
    uint64_t before = helper.count[CALL_clFlush];
    for (int i = 0; i < 640; i++)
        OK(scenario_launch(device, &scenario, &error));
    assert_int_equal(helper.count[CALL_clFlush] - before, 10);
    scenario_release(device, &scenario);
    healcl_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(launches),
        DEVICE_TEST(uploads_by_mapping),
        DEVICE_TEST(no_groups_no_launch),
        DEVICE_TEST(reports_a_refused_launch),
        DEVICE_TEST(takes_times),
        DEVICE_TEST(takes_times_by_the_host),
        DEVICE_TEST(flushes_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
