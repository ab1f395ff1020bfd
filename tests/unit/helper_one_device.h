/* For programs of which all tests use one device, so that kernels are built once. */
#ifndef HEALCL_TESTS_HELPER_ONE_DEVICE_H
#define HEALCL_TESTS_HELPER_ONE_DEVICE_H

#include "helper_device.h"

static struct healcl_device *device;

/* The set-up and tear-down of the group. */
static inline int open_device(void **state)
{
    (void)state;
    setenv("HEALCL_CACHE_DIR", "", 1);
    if (helper_open_tested(helper_loader(), &device, &error) != HEALCL_OK)
        return -1;
    return 0;
}

static inline int close_device(void **state)
{
    (void)state;
    healcl_device_close(device);
    healcl_error_clear(&error);
    return 0;
}

/* Calls a function with a device, and with none. */
#define ON_BOTH(function)              \
    static void function(void **state) \
    {                                  \
        (void)state;                   \
        function##_on(device);         \
        function##_on(NULL);           \
    }

#endif
