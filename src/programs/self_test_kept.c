/* Self-tests that were passed before, by what the cache keeps of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "programs/internal.h"
#include "programs/self_test.h"

/* To be raised where other answers come to be asked for; arithmetic.h and the kernel are part of
 * the name anyway. */
#define SELF_TEST_ABI "healcl self-test 6"

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

#define PASSED "passed"

#define OVERLAP ", launches overlap"
#define LOOPS ", loops end after "
#define LACKS ", lacks " /* families, and behind ": " why */

/* A file of one line: "passed", "passed, launches overlap" or a part of that, or the message of the
 * failure. */
static bool read_kept(const struct device_info *info, char line[SELF_TEST_REASON_SIZE])
{
    char name[CACHE_NAME_SIZE];
    name_of(info, name);
    return cache_read_text(name, SELF_TEST_REASON_SIZE, line);
}

enum self_test_outcome self_test_read_kept(const struct device_info *info,
                                           char reason[SELF_TEST_REASON_SIZE])
{
    bool read = read_kept(info, reason);
    if (read && strncmp(reason, PASSED, strlen(PASSED)) != 0)
        return SELF_TEST_FAILED;
    reason[0] = 0;
    return read ? SELF_TEST_PASSED : SELF_TEST_NOT_RUN;
}

static void take_lacks(struct device_info *info, const char *line)
{
    const char *lacks = strstr(line, LACKS), *why = lacks ? strstr(lacks, ": ") : NULL;
    info->failed_families = 0;
    if (!why)
        return;
    for (int family = 0; family < FAMILY_COUNT; family++) {
        const char *name = strstr(lacks, kernel_family_name((enum kernel_family)family));
        info->failed_families |= (uint32_t)(name && name < why) << family;
    }
    snprintf(info->family_failure, sizeof info->family_failure, "%s", why + 2);
}

void self_test_take_findings(struct device_info *info)
{
    char line[SELF_TEST_REASON_SIZE];
    if (!read_kept(info, line) || strncmp(line, PASSED, strlen(PASSED)) != 0)
        return;
    const char *loops = strstr(line, LOOPS);
    info->launches_overlap = strstr(line, OVERLAP) != NULL;
    if (!loops || sscanf(loops, LOOPS "%" SCNu64, &info->loop_limit) != 1)
        info->loop_limit = 0;
    take_lacks(info, line);
}

/* Where it cannot be kept, the test runs again. */
static void keep(const struct healcl_device *device, const char *line)
{
    char name[CACHE_NAME_SIZE];
    const struct device_programs *programs = device->programs;
    if (!programs->cache_directory || programs->package)
        return;
    name_of(&device->info, name);
    (void)!cache_write(programs->cache_directory, name, line, strlen(line), NULL);
}

static enum healcl_status run_and_keep(struct healcl_device *device, struct healcl_error *error)
{
    struct healcl_error failure = {.status = HEALCL_OK};
    enum healcl_status status = self_test_run(device, &failure);
    char line[SELF_TEST_REASON_SIZE] = PASSED, loops[48] = "";
    if (device->info.loop_limit > 0)
        snprintf(loops, sizeof loops, LOOPS "%" PRIu64 " rounds", device->info.loop_limit);
    snprintf(line, sizeof line, PASSED "%s%s", device->info.launches_overlap ? OVERLAP : "", loops);
    size_t used = strlen(line);
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (device->info.failed_families >> family & 1) {
            const char *name = kernel_family_name((enum kernel_family)family);
            const char *head = strstr(line, LACKS) ? " " : LACKS;
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", head, name);
        }
    if (device->info.failed_families)
        snprintf(line + used, sizeof line - used, ": %s", device->info.family_failure);
    if (status == HEALCL_OK)
        keep(device, line);
    else if (status == HEALCL_DEVICE)
        keep(device, failure.message);
    /* What is told of a device's memory later is not about this. */
    device->bytes_peak = device->used_peak = 0;
    if (status != HEALCL_OK && error)
        *error = failure;
    else
        healcl_error_clear(&failure);
    return status;
}

enum healcl_status self_test_run_and_keep(struct healcl_device *device, struct trace *trace,
                                          struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(trace, "start-up", "self-test");
    device->programs->opening_trace = trace;
    enum healcl_status status = run_and_keep(device, error);
    device->programs->opening_trace = NULL;
    trace_end(trace, span);
    device->programs->self_test_nanoseconds = monotonic_nanoseconds() - start;
    return status;
}
