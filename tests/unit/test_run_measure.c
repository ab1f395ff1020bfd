/* What `healcl devices --measure` copies. */
#include "bench/measure.h"
#include "helper_device.h"

enum { MEMORIES = 4, MEBIBYTE = 1 << 20 };

/* The arguments of the launch at hand, and what launches have written so far. */
static cl_mem arguments[2], written[MEMORIES];
static int written_count;
static bool source_written; /* of the last launch that has a source */

static cl_int set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    if (index < 2)
        arguments[index] = size == sizeof(cl_mem) ? *(const cl_mem *)value : NULL;
    return helper_opencl.clSetKernelArg(kernel, index, size, value);
}

static bool was_written(cl_mem memory)
{
    for (int i = 0; i < written_count; i++)
        if (written[i] == memory)
            return true;
    return false;
}

static cl_int enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                      const size_t *offset, const size_t *items, const size_t *local,
                      cl_uint awaited_count, const cl_event *awaited, cl_event *event)
{
    if (arguments[1])
        source_written = was_written(arguments[1]);
    if (!was_written(arguments[0])) {
        assert_in_range(written_count, 0, MEMORIES - 1);
        written[written_count++] = arguments[0];
    }
    return helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, items, local,
                                                awaited_count, awaited, event);
}

/* Returns how much memory it takes. */
static uint64_t measure(uint64_t cache_bytes, uint64_t memory_bytes)
{
    struct opencl watched = helper_opencl;
    struct healcl_device *device = NULL;
    struct device_rates rates = {0};
    watched.clSetKernelArg = set_argument;
    watched.clEnqueueNDRangeKernel = enqueue;
    written_count = 0;
    source_written = false;
    OK(device_open(&watched, "", &device, &error));
    device->info.cache_bytes = cache_bytes;
    device->info.global_memory_bytes = memory_bytes;
    OK(device_measure(device, &rates, &error));
    uint64_t peak = device->bytes_peak;
    assert_true(rates.products > 0 && rates.copied_bytes > 0);
    healcl_device_close(device);
    return peak;
}

/* Reading memory that nothing was written to may be faster than memory is. */
static void copies_what_was_written(void **state)
{
    (void)state;
    measure(0, 0);
    assert_true(source_written);
}

static void copies_more_than_caches_hold(void **state)
{
    (void)state;
    const uint64_t floor = measure(0, 0), more = measure(20 * MEBIBYTE, 0);
    assert_in_range(floor, 128 * MEBIBYTE, 140 * MEBIBYTE);
    assert_in_range(more, 160 * MEBIBYTE, 172 * MEBIBYTE);
}

static void copies_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    assert_in_range(measure(UINT64_MAX, 40 * MEBIBYTE), 10 * MEBIBYTE, 12 * MEBIBYTE);
    setenv("HEALCL_CHUNK_BYTES", "1048576", 1);
    assert_in_range(measure(UINT64_MAX, UINT64_MAX), 2 * MEBIBYTE, 4 * MEBIBYTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(copies_what_was_written),
        DEVICE_TEST(copies_more_than_caches_hold),
        DEVICE_TEST(copies_no_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
