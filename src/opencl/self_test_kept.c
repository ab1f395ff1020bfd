/* Self-tests that were passed before, by what the cache keeps of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "opencl/programs_internal.h"
#include "opencl/self_test.h"

/* To be raised where other answers come to be asked for; arithmetic.h and the kernel are part of
 * the name anyway. */
#define SELF_TEST_ABI "healcl self-test 7"

extern const char healcl_cl_base_arithmetic_h[], healcl_cl_base_self_test[];

/* Layers between the loader and the driver, which may change what a device does, count as another
 * driver; a device of which fewer units are used may do other things to advantage. */
static void name_of(const struct device_info *info, char name[CACHE_NAME_SIZE])
{
    char units[16];
    const char *layers = getenv("OPENCL_LAYERS");
    const char *const texts[] = {SELF_TEST_ABI, layers ? layers : "", healcl_cl_base_arithmetic_h,
                                 healcl_cl_base_self_test, units};
    snprintf(units, sizeof units, "%" PRIu32, info->compute_units);
    cache_name(info, "selftest", sizeof texts / sizeof *texts, texts, name);
}

const char *self_test_outcome_name(enum self_test_outcome outcome)
{
    static const char *const names[] = {"not run", "passed", "failed"};
    return names[outcome];
}

/* What is kept begins with one of these. Behind the latter is the message, behind the former what
 * self_test_take_findings takes. */
#define PASSED "passed"
#define FAILED "failed "

static bool read_kept(const struct device_info *info, char line[SELF_TEST_REASON_SIZE])
{
    char name[CACHE_NAME_SIZE];
    name_of(info, name);
    return cache_read_text(name, SELF_TEST_REASON_SIZE, line);
}

enum self_test_outcome self_test_read_kept(const struct device_info *info,
                                           char reason[SELF_TEST_REASON_SIZE])
{
    if (!read_kept(info, reason))
        reason[0] = 0;
    const bool has_passed = strncmp(reason, PASSED, strlen(PASSED)) == 0;
    if (strncmp(reason, FAILED, strlen(FAILED)) == 0) {
        memmove(reason, reason + strlen(FAILED), strlen(reason + strlen(FAILED)) + 1);
        return SELF_TEST_FAILED;
    }
    reason[0] = 0;
    return has_passed ? SELF_TEST_PASSED : SELF_TEST_NOT_RUN;
}

void self_test_take_findings(struct device_info *info)
{
    char line[SELF_TEST_REASON_SIZE];
    int overlap;
    uint64_t loop_limit;
    uint32_t families;
    if (!read_kept(info, line) ||
        sscanf(line, PASSED " %d %" SCNu64 " %" SCNu32, &overlap, &loop_limit, &families) != 3)
        return;
    const char *why = strchr(line, ':');
    info->launches_overlap = overlap != 0;
    info->loop_limit = loop_limit;
    info->failed_families = families & (((uint32_t)1 << FAMILY_COUNT) - 1);
    snprintf(info->family_failure, sizeof info->family_failure, "%s", why ? why + 1 : "");
}

/* Where it cannot be kept, the test runs again. */
static void keep(const struct healcl_device *device, enum healcl_status status,
                 const struct healcl_error *failure)
{
    char name[CACHE_NAME_SIZE], line[SELF_TEST_REASON_SIZE];
    const struct device_info *info = &device->info;
    if (device->programs->package || (status != HEALCL_OK && status != HEALCL_DEVICE))
        return;
    if (status == HEALCL_OK)
        snprintf(line, sizeof line, PASSED " %d %" PRIu64 " %" PRIu32 ":%s", info->launches_overlap,
                 info->loop_limit, info->failed_families,
                 info->failed_families ? info->family_failure : "");
    else
        snprintf(line, sizeof line, FAILED "%s", failure->message);
    name_of(info, name);
    (void)!cache_write_text(name, line, NULL, NULL);
}

enum healcl_status self_test_run_and_keep(struct healcl_device *device, struct trace *trace,
                                          struct healcl_error *error)
{
    struct healcl_error failure = {.status = HEALCL_OK};
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(trace, "start-up", "self-test");
    device->programs->opening_trace = trace;
    enum healcl_status status = self_test_run(device, &failure);
    keep(device, status, &failure);
    /* What is told of a device's memory later is not about this. */
    device->bytes_peak = device->used_peak = 0;
    if (status != HEALCL_OK && error)
        *error = failure;
    else
        healcl_error_clear(&failure);
    device->programs->opening_trace = NULL;
    trace_end(trace, span);
    device->programs->self_test_nanoseconds = monotonic_nanoseconds() - start;
    return status;
}
