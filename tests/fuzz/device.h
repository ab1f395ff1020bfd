/* A device for fuzzers, as the tests choose it: opened once, and never closed. */
#ifndef HEALCL_TESTS_FUZZ_DEVICE_H
#define HEALCL_TESTS_FUZZ_DEVICE_H

#include <signal.h>

#include "fuzz.h"
#include "opencl/device.h"

/* Compilers within drivers handle signals of their own. It is libFuzzer that is to get those of
 * faults, and to write which input led to them. */
static inline void fuzz_keep_signals(void)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL};
    static struct sigaction actions[sizeof signals / sizeof *signals];
    static bool are_kept;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], are_kept ? &actions[i] : NULL, are_kept ? NULL : &actions[i]);
    are_kept = true;
}

/* Shaped as for all kinds of devices: 0 as the CPU that it is. */
static inline struct healcl_device *fuzz_device(uint32_t shape)
{
    static const char *const shapes[] = {"", "general", "local,local_size=16", "single"};
    static struct healcl_device *devices[sizeof shapes / sizeof *shapes];
    struct healcl_error error = {.detail = NULL};
    struct healcl_device **device = &devices[shape];
    fuzz_keep_signals();
    if (*device)
        return *device;
    const char *platform = getenv("HEALCL_TEST_PLATFORM");
    enum healcl_status status = healcl_device_open(platform ? platform : "pocl", device, &error);
    if (status == HEALCL_USAGE && !platform) {
        healcl_error_clear(&error);
        status = healcl_device_open("cpu", device, &error);
    }
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
