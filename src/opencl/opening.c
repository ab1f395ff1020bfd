/* Opens devices for runs and for callers of the library: with a self-test if necessary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- tested */

/* Whether the device must be tested before use. Not if an earlier test that it passed tried the way
 * to multiply vectors that it is tuned to use. A package is tested each time: its image may be the
 * whole device, as an FPGA's is. */
static bool needs_test(const struct healcl_device *device)
{
    char reason[SELF_TEST_REASON_SIZE];
    if (device->programs->package ||
        self_test_read_cached(&device->info, reason) != SELF_TEST_PASSED)
        return true;
    const bool way_is_right = device->info.multiply_right >> device->tuning.multiply & 1;
    return tuning_has_vectors(&device->tuning) && !way_is_right;
}

/* Runs the self-test, measures if binaries are cheap, and caches the outcome. trace: for spans, or
 * NULL. */
static enum healcl_status test_and_cache(struct healcl_device *device, struct trace *trace,
                                         struct healcl_error *error)
{
    struct healcl_error failure = {.status = HEALCL_OK};
    const uint64_t start = monotonic_nanoseconds();
    const size_t span = trace_begin(trace, "start-up", "self-test");
    device->programs->opening_trace = trace;
    enum healcl_status status = self_test_run(device, &failure);
    device->info.binaries_are_cheap =
        status == HEALCL_OK && device->info.type & CL_DEVICE_TYPE_CPU && binaries_are_cheap(device);
    self_test_cache(device, status, &failure);
    /* Reports of a run's memory do not include the test's. */
    device->bytes_peak = device->used_peak = 0;
    if (status != HEALCL_OK)
        error_move(error, &failure);
    device->programs->opening_trace = NULL;
    trace_end(trace, span);
    device->programs->self_test_nanoseconds = monotonic_nanoseconds() - start;
    return status;
}

/* Opens a device, and runs the self-test unless an earlier result is cached. While the test runs,
 * child processes already build the programs of the plan. If the test finds that other kernels must
 * run, those programs are abandoned. */
static enum healcl_status open_and_test(const struct opencl *cl,
                                        const struct healcl_device_options *options,
                                        const struct device_opening *opening,
                                        struct healcl_device **device, struct healcl_error *error)
{
    static const struct device_opening no_options;
    struct healcl_device *opened;
    enum healcl_status status = HEALCL_OK;
    *device = NULL;
    if (!opening)
        opening = &no_options;
    TRY(device_open_with(cl, options, &opened, error));
    struct device_programs *programs = opened->programs;
    const struct device_info *info = &opened->info;
    programs->ahead.board = opening->board;
    programs->builder = opening->builder;
    if (needs_test(opened)) {
        device_log(opened, "%s is tested%s", info->name,
                   programs->package ? "" : ", as it has not been before");
        device_build_ahead(opened, &opening->lister, opening->trace);
        status = test_and_cache(opened, opening->trace, error);
        binaries_decide(opened);
        if (info->failed_families || info->multiply_wrong || info->compiler_limit)
            device_build_abandon(opened); /* the plan will use other kernels */
    }
    if (status == HEALCL_OK && options->queue)
        status = device_take_queue(opened, options->queue, error);
    if (status != HEALCL_OK) {
        healcl_device_close(opened);
        return status;
    }
    programs->first_launches = 0; /* those of the self-test do not count as the run's */
    programs->lister = opening->lister;
    *device = opened;
    return HEALCL_OK;
}

/* Opens and tests a device. Locked as a whole: if several threads open a device that has not been
 * tested yet, one of them tests it. */
enum healcl_status device_open_for_run(const struct opencl *cl,
                                       const struct healcl_device_options *options,
                                       const struct device_opening *opening,
                                       struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = open_and_test(cl, options, opening, device, error);
    opening_end();
    return status;
}

/* ---------------------------------------------------------------- for callers of the library */

/* Closes a handle, and stops child processes that still build programs for it. NULL is ignored. */
void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    device_build_abandon(device);
    device_close(device);
}

/* Checks that the caller's options fit together, and opens and tests the device. NULL options are
 * the defaults. */
enum healcl_status healcl_device_open_with(const struct healcl_device_options *options,
                                           struct healcl_device **device,
                                           struct healcl_error *error)
{
    static const struct healcl_device_options none;
    NEED(device, error);
    if (!options)
        options = &none;
    if (options->queue && !options->context)
        FAIL(error, HEALCL_USAGE, "a queue needs its context to be given, too");
    if (options->context && !options->device && !options->selector)
        FAIL(error, HEALCL_USAGE, "a context needs one of its devices to be given, too");
    if ((options->allocate == NULL) != (options->release == NULL))
        FAIL(error, HEALCL_USAGE, "allocate and release must be given together");
    return device_open_for_run(&opencl_loader, options, NULL, device, error);
}

enum healcl_status healcl_device_open(const char *selector, struct healcl_device **device,
                                      struct healcl_error *error)
{
    return healcl_device_open_with(&(struct healcl_device_options){.selector = selector}, device,
                                   error);
}

/* What the library's callers see of a device: a copy, which does not depend on the list of devices.
 */
static struct healcl_device_info public_info(const struct device_info *info)
{
    struct healcl_device_info public = {.compute_units = info->compute_units,
                                        .memory_bytes = info->global_memory_bytes,
                                        .shares_memory = info->unified_memory};
    const char *unusable = device_unusable(info);
    snprintf(public.selector, sizeof public.selector, "%u:%u", info->platform_index,
             info->device_index);
    memcpy(public.name, info->name, sizeof public.name);
    memcpy(public.vendor, info->vendor, sizeof public.vendor);
    memcpy(public.platform, info->platform, sizeof public.platform);
    memcpy(public.driver, info->driver, sizeof public.driver);
    memcpy(public.version, info->version, sizeof public.version);
    snprintf(public.unusable, sizeof public.unusable, "%s", unusable ? unusable : "");
    public.type = info->type & CL_DEVICE_TYPE_CPU           ? HEALCL_DEVICE_CPU
                  : info->type & CL_DEVICE_TYPE_GPU         ? HEALCL_DEVICE_GPU
                  : info->type & CL_DEVICE_TYPE_ACCELERATOR ? HEALCL_DEVICE_ACCELERATOR
                                                            : HEALCL_DEVICE_OTHER;
    return public;
}

/* Lists devices as public structs, in an array that healcl_device_list_free frees. One more element
 * is allocated, so that an empty list is not NULL. */
enum healcl_status healcl_device_list(struct healcl_device_info **list, size_t *count,
                                      struct healcl_error *error)
{
    NEED(list, error);
    NEED(count, error);
    struct device_info *infos = NULL;
    TRY(device_list(&opencl_loader, false, &infos, count, error)); /* without a package */
    *list = calloc(*count + 1, sizeof **list);
    for (size_t i = 0; *list && i < *count; i++)
        (*list)[i] = public_info(&infos[i]);
    free(infos);
    NEED_MEMORY(*list, error);
    return HEALCL_OK;
}

void healcl_device_list_free(struct healcl_device_info *list)
{
    free(list);
}

struct healcl_device_info healcl_device_describe(const struct healcl_device *device)
{
    return device ? public_info(&device->info) : (struct healcl_device_info){.selector = ""};
}
