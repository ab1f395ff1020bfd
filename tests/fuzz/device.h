/* PoCL's device, for fuzzers: opened once, and never closed. */
#ifndef HEALCL_TESTS_FUZZ_DEVICE_H
#define HEALCL_TESTS_FUZZ_DEVICE_H

#include "device/device.h"
#include "fuzz.h"

/* Shaped as for all kinds of devices: 0 as the CPU that it is. */
static inline struct healcl_device *fuzz_device(uint32_t shape)
{
    static const char *const shapes[] = {"", "general", "local,local_size=16", "single"};
    static struct healcl_device *devices[sizeof shapes / sizeof *shapes];
    struct healcl_error error = {.detail = NULL};
    struct healcl_device **device = &devices[shape];
    if (*device)
        return *device;
    enum healcl_status status = healcl_device_open("pocl", device, &error);
    if (status == HEALCL_OK) {
        struct device_tuning tuning = (*device)->tuning;
        status = tuning_parse(&tuning, shapes[shape], "a shape", &(*device)->info, &error);
        if (status == HEALCL_OK)
            status = device_set_tuning(*device, &tuning, &error);
    }
    if (status != HEALCL_OK)
        fprintf(stderr, "%s\n", error.message);
    EXPECT(status == HEALCL_OK);
    return *device;
}

#endif
