/* Launches on an out-of-order queue: which wait for which, and that those which must do. */
#include <string.h>

#include "helper_device.h"

/* to[0] = from[0] + 1, after so many rounds. */
static const char source[] =
    "KERNEL increase(global const int *from, global int *to, uint rounds)\n"
    "{\n"
    "    uint mixed = 1;\n"
    "    for (uint i = 0; i < rounds; i++) {\n"
    "        mixed ^= mixed << 13;\n"
    "        mixed ^= mixed >> 17;\n"
    "        mixed ^= mixed << 5;\n"
    "    }\n"
    "    to[0] = from[0] + (mixed != 0);\n"
    "}\n";

enum { BUFFERS = 4, SLOW = 10000000 };

/* How many events the last launch, or map, waited for; set aside from the call. */
static cl_uint awaited;

static cl_int CL_API_CALL count_awaited(cl_command_queue queue, cl_kernel kernel,
                                        cl_uint dimensions, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint count,
                                        const cl_event *list, cl_event *event)
{
    awaited = count;
    return helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                count, list, event);
}

static cl_int CL_API_CALL count_awaited_by_read(cl_command_queue queue, cl_mem memory,
                                                cl_bool blocking, size_t offset, size_t size,
                                                void *data, cl_uint count, const cl_event *list,
                                                cl_event *event)
{
    awaited = count;
    return helper_opencl.clEnqueueReadBuffer(queue, memory, blocking, offset, size, data, count,
                                             list, event);
}

static struct opencl cl;
static struct healcl_device *device;
static struct buffer buffers[BUFFERS]; /* of one int, number i at first 10*i */

static size_t groups = 1;

/* Returns how many launches it waits for. */
static cl_uint step_with(const char *options, int from, int to, uint32_t rounds)
{
    struct launch launch = {
        .program = "overlap",
        .kernel = "increase",
        .argument_count = 3,
        .arguments = (struct launch_argument[]){{.buffer = &buffers[from], .read_only = true},
                                                {.buffer = &buffers[to]},
                                                {.value = &rounds, .size = sizeof rounds}},
        .local_size = 1,
        .groups = groups,
        .options = options};
    OK(device_launch(device, &launch, &error));
    return awaited;
}

static cl_uint step(int from, int to, uint32_t rounds)
{
    return step_with("", from, to, rounds);
}

static void write(int i, int32_t value)
{
    OK(device_write(device, &buffers[i], 0, sizeof value, &value, &error));
}

static void open_with(const char *tuning)
{
    cl = helper_opencl;
    cl.clEnqueueNDRangeKernel = count_awaited;
    cl.clEnqueueReadBuffer = count_awaited_by_read;
    setenv("HEALCL_TUNING", tuning, 1);
    OK(device_open(&cl, "", &device, &error));
    give_program(device, "overlap", source);
    for (int i = 0; i < BUFFERS; i++)
        OK(device_buffer_acquire(device, sizeof(int32_t), true, &buffers[i], &error));
    (void)step(0, 1, 0); /* is not the kernel's first launch later */
    for (int i = 0; i < BUFFERS; i++)
        write(i, 10 * i);
    OK(device_finish(device, &error));
}

static void close_device(void)
{
    for (int i = 0; i < BUFFERS; i++)
        device_buffer_release(device, &buffers[i]);
    healcl_device_close(device);
}

static bool open_overlapping(void)
{
    open_with("local_size=1,launches_at_once=16");
    if (device->commands_overlap)
        return true;
    close_device();
    return false;
}

#define NEEDS_OVERLAP()          \
    do {                         \
        if (!open_overlapping()) \
            skip();              \
    } while (0)

static int32_t read(int i)
{
    int32_t value;
    OK(device_read(device, &buffers[i], 0, sizeof value, &value, &error));
    return value;
}

static void waits_for_what_it_uses(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    assert_int_equal(step(0, 1, SLOW), 0);
    assert_int_equal(step(0, 2, SLOW), 0); /* both only read 0 */
    assert_int_equal(step(3, 0, 0), 2);    /* is read by two */
    assert_int_equal(step(1, 2, 0), 2);    /* one is written, the other one was */
    assert_int_equal(step(0, 3, 0), 1);    /* was written by the third, which also read 3 */
    assert_int_equal(step(1, 3, 0), 1);    /* the last one waits for the first already */
    assert_int_equal(read(0), 31);
    assert_int_equal(read(1), 1);
    assert_int_equal(read(2), 2);
    assert_int_equal(read(3), 2);
    close_device();
}

static void waits_for_slower_launches(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    for (int round = 0; round < 3; round++) {
        write(0, 100);
        (void)step(0, 1, SLOW); /* is written after it was read */
        (void)step(3, 0, 0);
        assert_int_equal(read(1), 101);
        (void)step(0, 2, SLOW); /* twice written */
        (void)step(3, 2, 0);
        assert_int_equal(read(2), 31);
        (void)step(3, 1, SLOW); /* is read after it was written */
        (void)step(1, 2, 0);
        assert_int_equal(read(2), 32);
    }
    close_device();
}

static void waits_in_long_chains(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    write(0, 0);
    for (int i = 0; i < 100; i++)
        (void)step(i % 2, 1 - i % 2, i % 3 == 0 ? SLOW / 100 : 0);
    assert_int_equal(read(0), 100);
    close_device();
}

/* The first launch of a kernel is compiled, on some devices. */
static void first_launches_are_alone(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    (void)step(0, 1, SLOW);
    (void)step(0, 2, SLOW);
    assert_int_equal(step_with("-D OTHER", 0, 3, 0), 2);
    assert_int_equal(step(0, 1, 0), 1);
    assert_int_equal(step_with("-D OTHER", 0, 2, 0), 1);
    assert_int_equal(step_with("-D OTHER", 0, 3, 0), 1);
    close_device();
}

/* PoCL 3.1 aborts if the larger one loads the kernel again. */
static void sizes_do_not_overlap(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    for (int i = 0; i < 300; i++) {
        groups = (size_t)i + 1; /* more than ever before */
        (void)step(0, 1 + i % 3, 1000);
    }
    OK(device_finish(device, &error));
    groups = 1;
    (void)step(0, 1, SLOW / 100);
    assert_int_equal(step(0, 2, 0), 0);
    groups = 2;
    assert_int_equal(step(0, 3, 0), 2);
    assert_int_equal(step(0, 1, 0), 2);
    groups = 1;
    OK(device_finish(device, &error));
    close_device();
}

/* Waits for commands older than any that are remembered. */
static void waits_beyond_what_is_remembered(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    write(0, 0);
    (void)step(0, 1, SLOW);
    for (int i = 0; i < LAUNCHES_AT_ONCE_MAX - 2; i++)
        assert_int_equal(step(3, 2, 0), i > 0);
    assert_int_equal(step(3, 2, 0), 2); /* remembers nothing but itself: waits for all */
    assert_int_equal(step(1, 2, 0), 1); /* for that one, hence for the first */
    assert_int_equal(read(2), 2);
    close_device();
}

/* Downloads wait for everything enqueued, and notify the pool. */
static void waits_before_downloads(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    (void)step(0, 1, SLOW);
    (void)step(0, 2, SLOW);
    (void)step(2, 3, SLOW);
    assert_int_equal(read(1), 1);
    assert_int_equal(awaited, 2);
    assert_int_equal(step(3, 2, 0), 0);
    close_device();
}

static void orders_writes(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    (void)step(1, 0, SLOW);
    write(1, 100);
    (void)step(1, 2, 0);
    assert_int_equal(read(0), 11);
    assert_int_equal(read(2), 101);
    close_device();
}

/* The pool hands buffers out again while launches may still use them. */
static void orders_buffers_that_are_used_again(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    cl_mem memory = buffers[0].memory;
    (void)step(0, 1, SLOW);
    device_buffer_release(device, &buffers[0]);
    OK(device_buffer_acquire(device, sizeof(int32_t), false, &buffers[0], &error));
    assert_ptr_equal(buffers[0].memory, memory);
    assert_int_equal(step(3, 0, 0), 1);
    assert_int_equal(read(1), 1);
    close_device();
}

/* A launch that has failed makes a read that waits for it fail, once: what comes later does not
 * wait for that launch. */
static void forgets_what_has_failed(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    int32_t value;
    (void)step(0, 1, SLOW);
    helper.fail_code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    helper.fail_at = helper.calls + 1;
    assert_int_equal(device_read(device, &buffers[1], 0, sizeof value, &value, &error),
                     HEALCL_DEVICE);
    assert_string_equal(helper.failed, "clEnqueueReadBuffer");
    assert_int_equal(step(2, 1, 0), 0);
    assert_int_equal(read(1), 21);
    close_device();
}

static void takes_times_one_by_one(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    OK(device_set_profiling(device, true, &error));
    assert_false(device->commands_overlap);
    (void)step(0, 1, SLOW);
    assert_int_equal(step(1, 2, 0), 0);
    assert_int_equal(read(2), 2);
    OK(device_set_profiling(device, false, &error));
    assert_true(device->commands_overlap);
    (void)step(3, 1, SLOW);
    assert_int_equal(step(1, 2, 0), 1);
    assert_int_equal(read(2), 32);
    close_device();
}

static void changes_with_the_tuning(void **state)
{
    (void)state;
    NEEDS_OVERLAP();
    struct device_tuning tuning = device->tuning;
    tuning.launches_at_once = 1;
    OK(device_set_tuning(device, &tuning, &error));
    assert_false(device->commands_overlap);
    (void)step(0, 1, SLOW);
    assert_int_equal(step(1, 2, 0), 0);
    assert_int_equal(read(2), 2);
    tuning.launches_at_once = 2;
    OK(device_set_tuning(device, &tuning, &error));
    assert_true(device->commands_overlap);
    assert_int_equal(step(0, 1, SLOW), 0);
    assert_int_equal(step(0, 2, SLOW), 0);
    assert_int_equal(step(0, 3, 0), 2); /* a third has to wait */
    assert_int_equal(helper.queues, 2);
    close_device();
}

static void can_be_in_order(void **state)
{
    (void)state;
    open_with("local_size=1,launches_at_once=1");
    assert_false(device->commands_overlap);
    (void)step(0, 1, SLOW);
    assert_int_equal(step(1, 2, 0), 0);
    assert_int_equal(read(2), 2);
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(waits_for_what_it_uses),
        DEVICE_TEST(waits_for_slower_launches),
        DEVICE_TEST(waits_in_long_chains),
        DEVICE_TEST(first_launches_are_alone),
        DEVICE_TEST(sizes_do_not_overlap),
        DEVICE_TEST(waits_beyond_what_is_remembered),
        DEVICE_TEST(waits_before_downloads),
        DEVICE_TEST(orders_writes),
        DEVICE_TEST(orders_buffers_that_are_used_again),
        DEVICE_TEST(forgets_what_has_failed),
        DEVICE_TEST(takes_times_one_by_one),
        DEVICE_TEST(changes_with_the_tuning),
        DEVICE_TEST(can_be_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
