/* Results of the self-test, cached for a device and its driver. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/internal.h"

/* Part of the name of a cached result. It must be increased if the test asks for other answers.
 * arithmetic.h and the kernel are part of the name anyway. */
#define SELF_TEST_ABI "healcl self-test 9"

extern const char healcl_cl_base_arithmetic_h[], healcl_cl_base_self_test[],
    healcl_cl_base_self_test_lanes[];

/* Writes the name of the cached result of a device's self-test. It depends on all that may change
 * the result. Layers between loader and driver are part of it, and so is the number of compute
 * units: a sub-device may behave differently. */
static void test_result_name(const struct device_info *info, char name[CACHE_NAME_SIZE])
{
    char units[16];
    const char *layers = getenv("OPENCL_LAYERS");
    const char *const texts[] = {SELF_TEST_ABI,
                                 layers ? layers : "",
                                 healcl_cl_base_arithmetic_h,
                                 healcl_cl_base_self_test,
                                 healcl_cl_base_self_test_lanes,
                                 units};
    snprintf(units, sizeof units, "%" PRIu32, info->compute_units);
    cache_name(info, "selftest", sizeof texts / sizeof *texts, texts, name);
}

const char *self_test_outcome_name(enum self_test_outcome outcome)
{
    static const char *const names[] = {"not run", "passed", "failed"};
    return names[outcome];
}

/* The first word of a cached result. "passed" is followed by the findings that
 * self_test_take_findings reads, "failed " by the error message. */
#define PASSED "passed"
#define FAILED "failed "

/* Reads the cached result of a device's self-test. Returns false if there is none. */
static bool read_test_result(const struct device_info *info, char line[SELF_TEST_REASON_SIZE])
{
    char name[CACHE_NAME_SIZE];
    test_result_name(info, name);
    return cache_read_text(name, SELF_TEST_REASON_SIZE, line);
}

/* The cached outcome of the self-test. For a failure, reason becomes its message without the word
 * "failed "; otherwise it becomes "". */
enum self_test_outcome self_test_read_cached(const struct device_info *info,
                                             char reason[SELF_TEST_REASON_SIZE])
{
    if (!read_test_result(info, reason))
        reason[0] = 0;
    const bool has_passed = strncmp(reason, PASSED, strlen(PASSED)) == 0;
    if (strncmp(reason, FAILED, strlen(FAILED)) == 0) {
        memmove(reason, reason + strlen(FAILED), strlen(reason + strlen(FAILED)) + 1);
        return SELF_TEST_FAILED;
    }
    reason[0] = 0;
    return has_passed ? SELF_TEST_PASSED : SELF_TEST_NOT_RUN;
}

/* Sets the fields of info that an earlier self-test has found, such as loop_limit. Leaves info
 * unchanged if no result is cached or it does not have all eight numbers. Text after the ':'
 * describes the first wrong answer of a family. */
void self_test_take_findings(struct device_info *info)
{
    char line[SELF_TEST_REASON_SIZE];
    struct device_info found = *info;
    if (!read_test_result(info, line) ||
        sscanf(line,
               PASSED " %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
                      " %" SCNu32 " %" SCNu32,
               &found.launches_overlap, &found.loop_limit, &found.lacks_maps,
               &found.binaries_are_cheap, &found.failed_families, &found.multiply_right,
               &found.multiply_wrong, &found.compiler_limit) != 8)
        return;
    const char *colon = strchr(line, ':');
    *info = found;
    snprintf(info->family_failure, sizeof info->family_failure, "%s", colon ? colon + 1 : "");
}

/* Caches the outcome of a self-test, as self_test_take_findings reads it. Other errors, such as
 * lack of memory, say nothing about the device and are not cached. Nor are results of a package,
 * which is tested each time. */
void self_test_cache(const struct healcl_device *device, enum healcl_status status,
                     const struct healcl_error *failure)
{
    char name[CACHE_NAME_SIZE], line[SELF_TEST_REASON_SIZE];
    const struct device_info *info = &device->info;
    if (device->programs->package || (status != HEALCL_OK && status != HEALCL_DEVICE))
        return;
    if (status == HEALCL_OK)
        snprintf(line, sizeof line,
                 PASSED " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
                        " %" PRIu32 " %" PRIu32 ":%s",
                 info->launches_overlap, info->loop_limit, info->lacks_maps,
                 info->binaries_are_cheap, info->failed_families, info->multiply_right,
                 info->multiply_wrong, info->compiler_limit,
                 info->failed_families ? info->family_failure : "");
    else
        snprintf(line, sizeof line, FAILED "%s", failure->message);
    test_result_name(info, name);
    (void)!cache_write(name, line, strlen(line), NULL, NULL);
}
