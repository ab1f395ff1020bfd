/* Uploads, launches, profiled times and downloads, with one chunk and with several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "helper_opencl.h"

static const char source[] =
    "KERNEL add(BUFFER(const int, a), BUFFER(int, out), global const int *table, ulong count)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        AT(out, i) = AT(a, i) + table[i % 4] + AMOUNT;\n"
    "}\n";

static struct healcl_error error;

#define OK(expression)                                                                \
    do {                                                                              \
        enum healcl_status ok_ = (expression);                                        \
        if (ok_ != HEALCL_OK)                                                         \
            print_error("%s\n%s\n", error.message, error.detail ? error.detail : ""); \
        assert_int_equal(ok_, HEALCL_OK);                                             \
    } while (0)

static int set_up(void **state)
{
    (void)state;
    unsetenv("HEALCL_DEVICE");
    unsetenv("HEALCL_TUNING");
    unsetenv("HEALCL_CHUNK_BYTES");
    setenv("HEALCL_CACHE_DIR", "", 1);
    helper_reset();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    healcl_error_clear(&error);
    return helper_balanced() ? 0 : -1;
}

static void upload(struct healcl_device *device, const struct buffer *buffer, uint64_t count)
{
    int32_t next = 0;
    for (uint32_t chunk = 0; chunk < buffer->chunk_count; chunk++) {
        void *memory = NULL;
        OK(device_upload_map(device, buffer, chunk, &memory, &error));
        int32_t *values = memory;
        for (uint64_t i = 0; i < device->chunk_bytes / 4 && (uint64_t)next < count; i++)
            values[i] = next++;
        OK(device_upload_end(device, buffer, chunk, memory, &error));
    }
}

static void expect(struct healcl_device *device, const struct buffer *buffer, uint64_t count,
                   int32_t amount)
{
    int32_t next = 0;
    for (uint32_t chunk = 0; chunk < buffer->chunk_count; chunk++) {
        uint64_t left = (count - (uint64_t)next) * 4;
        uint64_t bytes = left < device->chunk_bytes ? left : device->chunk_bytes;
        void *memory = NULL;
        OK(device_download_map(device, buffer, chunk, 0, bytes, &memory, &error));
        const int32_t *values = memory;
        for (uint64_t i = 0; i < bytes / 4; i++, next++)
            assert_int_equal(values[i], next + next % 4 * 10 + amount);
        OK(device_download_end(device, buffer, chunk, memory, &error));
    }
    assert_int_equal(next, count);
}

static struct launch launch_add(const struct buffer *a, const struct buffer *out,
                                const struct buffer *table, const uint64_t *count,
                                size_t local_size)
{
    return (struct launch){
        .program = "test",
        .kernel = "add",
        .options = "-D AMOUNT=5",
        .argument_count = 4,
        .arguments = {{.buffer = a},
                      {.buffer = out},
                      {.table = table},
                      {.value = count, .size = 8}},
        .local_size = local_size,
        .groups = (*count + local_size - 1) / local_size,
        .tag = 7,
    };
}

static void run_add(struct healcl_device *device, uint64_t count, size_t local_size)
{
    static const int32_t table_values[] = {0, 10, 20, 30};
    struct buffer a, out, table;
    OK(device_buffer_acquire(device, count * 4, true, &a, &error));
    OK(device_buffer_acquire(device, count * 4, false, &out, &error));
    OK(device_buffer_acquire(device, sizeof table_values, false, &table, &error));
    OK(device_write(device, &table, 0, sizeof table_values, table_values, &error));
    upload(device, &a, count);
    struct launch launch = launch_add(&a, &out, &table, &count, local_size);
    OK(device_launch(device, &launch, &error));
    device_buffer_release(device, &a);
    device_buffer_release(device, &table);
    expect(device, &out, count, 5);
    device_buffer_release(device, &out);
}

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, "", &device, &error));
    OK(device_add_program(device, "test", source, &error));
    return device;
}

static void launches(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    run_add(device, 1000, 1);
    run_add(device, 1000, 8);
    run_add(device, 1, 8);
    assert_true(device->compile_nanoseconds > 0);
    assert_int_equal(helper.count[CALL_clBuildProgram], 2);
    healcl_device_close(device);
}

static void launches_on_chunks(void **state)
{
    (void)state;
    setenv("HEALCL_CHUNK_BYTES", "4096", 1);
    struct healcl_device *device = open_device();
    assert_int_equal(device_buffer_limit(device), 16384);
    for (uint64_t count = 1000; count <= 4096; count += 516)
        run_add(device, count, 4);
    healcl_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(launches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(launches_on_chunks, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
