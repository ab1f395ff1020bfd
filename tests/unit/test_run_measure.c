/* Copies of `healcl devices --measure`, and rooflines from a GPU's figures. */
#include <string.h>

#include "helper_device.h"
#include "tools/measure.h"

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
    OK(device_measure(device, false, &rates, &error));
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
}

/* ---------------------------------------------------------------- GPUs as they were measured */

/* Rates in 10^9 a second; products by those of both halves, writes of the H200 as on the H100. A
 * launch takes so much more, and what lies in the second cache goes faster than memory. */
struct gpu {
    double launch_ns, cached, copied, written, products, twiddle_products;
};

enum { CACHED_BYTES = 32 << 20 };

static const struct gpu h100 = {3300, 4241, 2977, 3253, 1292, 1027};
static const struct gpu h200 = {3300, 5267, 4066, 4440, 1268, 1009};

/* The device of a test: its launches run one work-group alone, and say that they took the time of
 * all. */
static struct {
    const struct gpu *gpu;
    uint32_t rounds; /* of the launch at hand */
    cl_ulong nanoseconds;
} simulated;

static cl_int set_simulated(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    static const uint32_t once = 1;
    const bool is_rounds = index == 1 && size == sizeof once;
    if (is_rounds)
        memcpy(&simulated.rounds, value, size);
    return helper_opencl.clSetKernelArg(kernel, index, size, is_rounds ? &once : value);
}

static double bytes_time(const struct gpu *gpu, double bytes, double rate)
{
    return bytes / (bytes <= CACHED_BYTES ? gpu->cached : rate);
}

static cl_int enqueue_simulated(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                const size_t *offset, const size_t *items, const size_t *local,
                                cl_uint awaited_count, const cl_event *awaited, cl_event *event)
{
    char name[32] = "";
    const struct gpu *gpu = simulated.gpu;
    (void)clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    const double all = (double)*items, products = all * 8 * simulated.rounds;
    double time = gpu->launch_ns;
    if (strcmp(name, "copy") == 0)
        time += bytes_time(gpu, 16 * all, gpu->copied);
    else if (strcmp(name, "write") == 0)
        time += bytes_time(gpu, 8 * all, gpu->written);
    else
        time += products / (strcmp(name, "multiply") == 0 ? gpu->products : gpu->twiddle_products);
    simulated.nanoseconds = (cl_ulong)time;
    return helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, local, local,
                                                awaited_count, awaited, event);
}

static cl_int simulated_time(cl_event event, cl_profiling_info what, size_t size, void *value,
                             size_t *needed)
{
    cl_command_type type = 0;
    cl_ulong *time = value;
    cl_int code = helper_opencl.clGetEventProfilingInfo(event, what, size, value, needed);
    if (code != CL_SUCCESS ||
        clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL) != CL_SUCCESS)
        return code;
    if (type == CL_COMMAND_NDRANGE_KERNEL)
        *time = what == CL_PROFILING_COMMAND_END ? 1000 + simulated.nanoseconds : 1000;
    return code;
}

static struct roofline measure_gpu(const struct gpu *gpu)
{
    struct opencl cl = helper_opencl;
    struct healcl_device *device = NULL;
    struct roofline roofline;
    cl.clSetKernelArg = set_simulated;
    cl.clEnqueueNDRangeKernel = enqueue_simulated;
    cl.clGetEventProfilingInfo = simulated_time;
    simulated.gpu = gpu;
    setenv("HEALCL_AS", "gpu", 1);
    OK(device_open(&cl, "", &device, &error));
    unsetenv("HEALCL_AS");
    device->info.compute_units = 132;
    device->info.cache_bytes = 4325376; /* of the first caches: drivers report no more */
    device->info.global_memory_bytes = UINT64_C(80) << 30;
    OK(roofline_measure(device, 0, &roofline, &error));
    assert_false(device->profiling);
    healcl_device_close(device);
    return roofline;
}

static void is_about(uint64_t rate, double expected)
{
    assert_in_range(rate / 1000000, (uint64_t)(980 * expected), (uint64_t)(1001 * expected));
}

/* Sizes fill the device, whatever a launch takes. */
static void measures_what_a_gpu_does(void **state)
{
    (void)state;
    const struct gpu *const gpus[] = {&h100, &h200};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        const struct roofline roofline = measure_gpu(gpus[i]);
        is_about(roofline.bytes, gpus[i]->written);
        is_about(roofline.work[WORK_PRODUCTS], gpus[i]->twiddle_products);
        is_about(roofline.work[WORK_BUTTERFLIES], gpus[i]->twiddle_products);
        is_about(roofline.work[WORK_SUMMED_PRODUCTS], gpus[i]->products);
        assert_true(roofline.overlaps && roofline.work[WORK_DIGITS] == 0);
    }
}

/* A CPU's copy is as large as its caches ask for: a launch takes nothing beside it. */
static void copies_no_more_than_it_needs(void **state)
{
    (void)state;
    assert_int_equal(larger_copy(64 * MEBIBYTE, 1000000, 1024 * MEBIBYTE), 64 * MEBIBYTE);
    assert_int_equal(larger_copy(64 * MEBIBYTE, 46000, 1024 * MEBIBYTE), 704 * MEBIBYTE);
    assert_int_equal(larger_copy(64 * MEBIBYTE, 46000, 512 * MEBIBYTE), 512 * MEBIBYTE);
    assert_int_equal(larger_copy(64 * MEBIBYTE, 0, UINT64_MAX), UINT64_C(64) * 500001 * MEBIBYTE);
    assert_int_equal(larger_copy(64 * MEBIBYTE, 1, 32 * MEBIBYTE), 64 * MEBIBYTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(copies_what_was_written),
        DEVICE_TEST(copies_more_than_caches_hold),
        DEVICE_TEST(copies_no_more_than_there_is_room_for),
        cmocka_unit_test(copies_no_more_than_it_needs),
        DEVICE_TEST(measures_what_a_gpu_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
