/* Opening a device: tuning by default and as the environment wants them. */
#include <string.h>

#include "helper_device.h"

static void opens_and_closes(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    OK(healcl_device_open(NULL, &device, &error));
    assert_non_null(device);
    assert_true(device->tuning.local_size > 0);
    healcl_device_close(device);
    healcl_device_close(NULL);
}

static void refuses_unknown_devices(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    assert_int_equal(healcl_device_open("no such device", &device, &error), HEALCL_USAGE);
    assert_null(device);
    assert_int_equal(strncmp(error.message, "no device matches 'no such device'; there ", 42), 0);
    assert_int_equal(healcl_device_open("99:0", &device, NULL), HEALCL_USAGE);
}

static void tunes_by_default(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, NULL, &device, &error));
    if ((device->info.type & CL_DEVICE_TYPE_CPU) && !device_emulates_gpu(&device->info)) {
        assert_int_equal(device->tuning.local_size, 1);
        assert_int_equal(device->tuning.elements_per_item, 1024);
        assert_int_equal(device->tuning.transform_local_size, 1);
    } else {
        assert_true(device->tuning.local_size <= 256);
        assert_int_equal(device->tuning.elements_per_item, 1);
    }
    healcl_device_close(device);
}

static void tunes_as_given(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    setenv("HEALCL_TUNING", "local_size=8,transform_local_size=16,elements_per_item=3", 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_int_equal(device->tuning.local_size, 8);
    assert_int_equal(device->tuning.elements_per_item, 3);
    assert_int_equal(device->tuning.transform_local_size, 16);
    healcl_device_close(device);
    setenv("HEALCL_TUNING", "", 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    healcl_device_close(device);
}

static void refuses_bad_tuning(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "local_size",
        "local_size=",
        "local_size=0",
        "local_size=3",
        "local_size=-1",
        "local_size=8,",
        ",local_size=8",
        "local_size=8 ",
        "size=8",
        "transform",
        "transform=",
        "transform=fast",
        "gather=local",
        "fast",
        "local_size=1073741824",
        "local_size=8;",
        "elements_per_item=0",
        "elements_per_item=x",
        "elements_per_item=99999999999999999999",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct healcl_device *device = NULL;
        setenv("HEALCL_TUNING", bad[i], 1);
        assert_int_equal(device_open(&helper_opencl, NULL, &device, &error), HEALCL_USAGE);
        assert_non_null(strstr(error.message, "HEALCL_TUNING is '"));
        assert_null(device);
    }
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* shapes are those of the device itself */
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(opens_and_closes),   DEVICE_TEST(refuses_unknown_devices),
        DEVICE_TEST(tunes_by_default),   DEVICE_TEST(tunes_as_given),
        DEVICE_TEST(refuses_bad_tuning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
